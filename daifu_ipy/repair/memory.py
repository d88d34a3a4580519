"""Out of memory: which errors say so, and how what nobody uses goes back to the device."""

from __future__ import annotations

import gc
import sys

SAYING_SO: tuple[tuple[str, str | None], ...] = (
    ("OutOfMemoryError | MemoryError | tensorflow.errors.ResourceExhaustedError", None),
    ("RuntimeError", "(?i)out of memory|resource_exhausted|can't allocate memory|failed to allocate|bad_alloc"),
)
"""The errors and messages, as rules have them: memory ran out, of a device or of the machine."""


def release() -> None:
    """Collect garbage, and empty the caches of the devices that torch has in use."""
    gc.collect()
    torch = sys.modules.get("torch")
    for name in ("cuda", "xpu"):
        device = getattr(torch, name, None)
        if device is not None and device.is_initialized():  # asking for its cache must not start it
            device.empty_cache()

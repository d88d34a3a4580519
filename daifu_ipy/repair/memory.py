"""Memory that nobody uses goes back to the device."""

from __future__ import annotations

import gc
import sys


def release() -> None:
    """Collect garbage, and empty the caches of the devices that torch has in use."""
    gc.collect()
    torch = sys.modules.get("torch")
    for name in ("cuda", "xpu"):
        device = getattr(torch, name, None)
        if device is not None and device.is_initialized():  # asking for its cache must not start it
            device.empty_cache()

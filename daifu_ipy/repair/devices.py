"""Tensors in foreign code: while a variable is described, nothing reads their data or makes a device compute."""

from __future__ import annotations

import contextlib
import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

_TEXTS = frozenset({"__repr__", "__str__", "__format__"})
_FACTS = frozenset({"__get__", "size", "dim", "numel", "stride", "element_size", "__len__", "__hash__", "ndimension"})
"""What may be asked of a tensor on a device: it is known without the device."""

_DEVICES = frozenset({"cuda", "mps", "xpu", "xla", "hpu", "mtia", "privateuseone"})


class TouchesDevice(RuntimeError):
    """Foreign code was about to wait for a device."""


def hands_off() -> AbstractContextManager[Any]:
    """On this thread, tensors are shown by their shapes, and those on a device take part in no computation."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "overrides"):
        return contextlib.nullcontext()
    mode: AbstractContextManager[Any] = _mode(torch)()
    return mode


@lru_cache(maxsize=1)
def _mode(torch: Any) -> Any:
    from daifu_ipy.repair.library_values import array_text

    class HandsOff(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Sees every call of torch that involves a tensor, on the thread that entered it."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(func, "__name__", "")
            if name in _TEXTS and args:
                return array_text(args[0])
            given = (*args, *(kwargs or {}).values())
            if name not in _FACTS and any(_on_device(value, torch) for value in given):
                raise TouchesDevice(name)
            return func(*args, **(kwargs or {}))

    return HandsOff


def _on_device(value: Any, torch: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_on_device(item, torch) for item in value)
    if isinstance(value, torch.device):
        return bool(value.type != "cpu")
    if isinstance(value, str):
        return value.partition(":")[0] in _DEVICES
    return isinstance(value, torch.Tensor) and value.device.type != "cpu"

"""Where the memory went: the largest tensors and arrays in some namespaces, by the names they go by there."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from daifu_ipy.repair.builtin_values import vars_of
from daifu_ipy.repair.memory import SAYING_SO
from daifu_ipy.repair.rule import is_like
from daifu_ipy.repair.summary import one_line, summarise

_MOST = 10
_MAX_OBJECTS = 20_000
_MAX_DEPTH = 4
_MIB = 2**20


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, of a device or of the machine."""
    return any(is_like(error, kind, message) for kind, message in SAYING_SO)


def largest_tensors(namespaces: Iterable[Mapping[str, Any]], width: int = 100) -> list[str]:
    """List the variables that hold the most memory in tensors and arrays, a line each, after a heading.

    Parameters
    ----------
    namespaces
        Variables by name. What several hold is counted for the first, and only once.
    width
        The most characters of a line.

    Notes
    -----
    Only sizes are read: nothing is computed or allocated, and no device is waited for.
    """
    seen = _Seen()
    held = [each for names in namespaces for each in _holdings(names, seen)]
    held.sort(key=lambda each: -each.size)
    lines = [_row(each.size, one_line(each.text(), width - 15)) for each in held[:_MOST] if each.size >= _MIB / 2]
    others = held[len(lines) :]
    if lines and sum(each.size for each in others) >= _MIB / 2:
        lines.append(_row(sum(each.size for each in others), f"in {len(others)} others"))
    return ["largest tensors here:", *lines] if lines else []


def _row(size: int, text: str) -> str:
    return f"{size / _MIB:>9.0f} MiB  {text}"


@dataclass
class _Seen:
    """What has been counted: storages and arrays, and objects that were looked into."""

    storages: set[int] = field(default_factory=set)
    objects: set[int] = field(default_factory=set)
    left: int = _MAX_OBJECTS


@dataclass
class _Holding:
    """One variable, and what it holds."""

    name: str
    value: Any
    size: int = 0
    count: int = 0
    gradients: int = 0

    def text(self) -> str:
        """Its line."""
        what = (
            summarise(self.value, 50) if self.count == 1 or not _is_container(self.value) else type(self.value).__name__
        )
        many = f", {self.count} tensors" if self.count > 1 else ""
        gradients = f", {self.gradients / _MIB:.0f} MiB of it gradients" if self.gradients else ""
        return f"{self.name}: {what}{many}{gradients}"


def _is_container(value: Any) -> bool:
    return issubclass(type(value), (list, tuple, dict, set, deque))


def _is_module(value: Any) -> bool:
    """Modules come first: parameters are theirs, though optimizers and lists hold them too."""
    return any(base.__name__ == "Module" for base in type(value).__mro__)


def _holdings(names: Mapping[str, Any], seen: _Seen) -> Iterator[_Holding]:
    for name, value in sorted(names.items(), key=lambda item: not _is_module(item[1])):
        if name.isidentifier() and not name.startswith("__"):
            held = _Holding(name, value)
            _count(value, held, seen, 0)
            if held.size:
                yield held


def _count(value: Any, held: _Holding, seen: _Seen, depth: int, gradient: bool = False) -> None:
    if depth > _MAX_DEPTH or seen.left <= 0 or id(value) in seen.objects:
        return
    seen.left -= 1
    seen.objects.add(id(value))
    size = _size(value, seen)
    if size is None:
        for part in islice(_inside(value), _MAX_OBJECTS):
            _count(part, held, seen, depth + 1)
        return
    held.size += size
    held.count += not gradient
    held.gradients += size if gradient else 0
    slope = _gradient(value)
    if slope is not None:
        _count(slope, held, seen, depth, gradient=True)


def _size(value: Any, seen: _Seen) -> int | None:
    """The bytes of a tensor's storage or an array's memory, 0 if it was counted; None for other things."""
    if _is_tensor(value):
        storage = storage_of(value)
        return 0 if storage is None else _once(*storage, seen)
    numpy = sys.modules.get("numpy")
    if isinstance(getattr(numpy, "ndarray", None), type) and issubclass(type(value), numpy.ndarray):  # type: ignore[union-attr]
        while issubclass(type(value.base), numpy.ndarray):  # type: ignore[union-attr]
            value = value.base
        return _once(id(value), int(value.nbytes), seen)
    return None


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return isinstance(getattr(torch, "Tensor", None), type) and issubclass(type(value), torch.Tensor)  # type: ignore[union-attr]


def storage_of(tensor: Any) -> tuple[int, int] | None:
    """What tells a tensor's storage from others, and its bytes; None if it has none of its own."""
    try:
        with _without_overrides():
            storage = tensor.untyped_storage()
            return storage._cdata, int(storage.nbytes())
    except Exception:  # sparse, nested or wrapped
        return None


def _without_overrides() -> AbstractContextManager[Any]:
    """Tensors of the user's own classes answer as plain ones."""
    guard: AbstractContextManager[Any] = sys.modules["torch"]._C.DisableTorchFunctionSubclass()
    return guard


def _once(key: int, size: int, seen: _Seen) -> int:
    if key in seen.storages:
        return 0
    seen.storages.add(key)
    return size


def _gradient(value: Any) -> Any:
    """A leaf tensor's gradient; asking others for theirs warns."""
    if not _is_tensor(value):
        return None
    try:
        with _without_overrides():
            return value.grad if value.is_leaf and value.requires_grad else None
    except Exception:  # its class has properties of these names
        return None


def _inside(value: Any) -> Iterator[Any]:
    """What lies in a container, a module, an optimizer, or the attributes of an object."""
    kind = type(value)
    if issubclass(kind, dict):
        yield from dict.values(value)
    elif issubclass(kind, (list, tuple, set, deque)):
        base: Any = next(base for base in (list, tuple, set, deque) if issubclass(kind, base))
        yield from base.__iter__(value)
    else:
        yield from vars_of(value).values() if not issubclass(kind, (type, type(sys))) else ()

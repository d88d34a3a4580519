"""State that ``torch.load(..., weights_only=True)`` takes: tensors, plain values, and containers of these."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from daifu_ipy.repair.summary import type_name

_PLAIN = (int, float, bool, str, bytes, complex, type(None))
_GONE = object()


class Problem(Exception):
    """Something can't be saved; says why."""


def plain(torch: Any, value: Any, name: str, problems: list[tuple[str, str]]) -> Any:
    """The same state in plain types. Parts that have none are left out, and named in `problems`.

    Raises
    ------
    Problem
        Nothing of it can be saved.
    """
    made = _plain(torch, value, name, problems)
    if made is _GONE:
        raise Problem(problems.pop()[1])
    return made


def _plain(torch: Any, value: Any, name: str, problems: list[tuple[str, str]]) -> Any:
    kind = type(value)
    if kind in _PLAIN or kind in (torch.Size, torch.dtype, torch.device):
        return value
    if isinstance(value, torch.Tensor):
        return _tensor(torch, value)
    if isinstance(value, dict):
        return _dict(torch, value, name, problems)
    if kind in (list, tuple) or (isinstance(value, tuple) and not hasattr(kind, "_fields")):
        parts = [_plain(torch, part, f"{name}[{number}]", problems) for number, part in enumerate(value)]
        if any(part is _GONE for part in parts):
            return _GONE  # the others would have other numbers
        return parts if kind is list else tuple(parts)
    if kind.__module__ == "numpy" and hasattr(value, "item") and not getattr(value, "shape", None):
        return _plain(torch, value.item(), name, problems)
    problems.append((name, f"a {type_name(kind)} is no plain value"))
    return _GONE


def _dict(torch: Any, value: dict[Any, Any], name: str, problems: list[tuple[str, str]]) -> Any:
    made: dict[Any, Any] = OrderedDict() if isinstance(value, OrderedDict) else {}
    for key, part in value.items():
        kept = _plain(torch, part, f"{name}[{key!r:.80}]", problems)
        if kept is not _GONE and type(key) in (str, int, bool, float):
            made[key] = kept
        elif kept is not _GONE:
            problems.append((f"{name}[{key!r:.80}]", f"a {type_name(type(key))} is no plain key"))
    metadata = getattr(value, "_metadata", None)  # versions of modules, for `load_state_dict`
    if metadata is not None and isinstance(made, OrderedDict):
        made._metadata = _dict(torch, metadata, name, [])  # type: ignore[attr-defined]
    return made


def _tensor(torch: Any, value: Any) -> Any:
    """A tensor as it is; without one of them the whole state is of no use."""
    known = (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor))
    if type(value) not in known:
        raise Problem(f"a {type_name(type(value))} may need other ranks, or its library, to be saved")
    if value.is_meta:
        raise Problem("a tensor on the meta device has no data")
    return value


def tensors(torch: Any, state: Any) -> Iterator[Any]:
    """All tensors in plain state."""
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, (dict, list, tuple)):
        for part in state.values() if isinstance(state, dict) else state:
            yield from tensors(torch, part)

"""The objects that a namespace leads to, found without running any of their code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from daifu_ipy.repair.builtin_values import vars_of

_LEAVES = (
    *(str, bytes, int, float, complex, type(None), type),
    *(FunctionType, BuiltinFunctionType, MethodType, ModuleType, FrameType, CodeType),
)
MOST_ITEMS = 200
MOST_OBJECTS = 20_000
DEPTH = 3


def reached(
    namespace: Mapping[str, Any], is_wanted: Callable[[Any], bool], seen: dict[int, Any]
) -> Iterator[tuple[str, Any]]:
    """The wanted objects with the names that lead to them, as ``trainer.model``; the shortest names first.

    What is wanted is not looked into. `seen` keeps every object that was looked at, so that several namespaces give
    each one once.
    """
    level = [(name, value) for name, value in namespace.items() if not name.startswith("_")]
    for _ in range(DEPTH):
        below: list[tuple[str, Any]] = []
        for name, value in level:
            if issubclass(type(value), _LEAVES) or id(value) in seen or len(seen) > MOST_OBJECTS:
                continue
            seen[id(value)] = value
            if is_wanted(value):
                yield name, value
            else:
                below += [(f"{name}{step}", part) for step, part in _parts(value)]
        level = below


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What a container holds, and the attributes that an object has."""
    kind = type(value)
    if issubclass(kind, (list, tuple)):
        base: Any = list if issubclass(kind, list) else tuple
        yield from ((f"[{number}]", part) for number, part in enumerate(islice(base.__iter__(value), MOST_ITEMS)))
    elif issubclass(kind, dict):
        items = list(islice(dict.items(value), MOST_ITEMS))
        yield from ((f"[{key!r}]", part) for key, part in items if type(key) in (str, int))
    for name, part in [*vars_of(value).items(), *_slots(value)][:MOST_ITEMS]:
        if not str(name).startswith("__"):
            yield f".{name}", part


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    for base in type(value).__mro__:
        for name, descriptor in vars(base).items():
            if type(descriptor) is MemberDescriptorType and base.__module__ != "builtins":
                try:
                    yield name, descriptor.__get__(value)
                except AttributeError:
                    continue

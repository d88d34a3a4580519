"""Names that may follow while Python is typed in the panel, found without running any code of the program."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from daifu_ipy.frontends.panel_values import Inside, class_name, inside
from daifu_ipy.repair.builtin_values import class_vars, mro_of, vars_of
from daifu_ipy.repair.values import MISSING, value_of

MOST = 200
"""How many names are sent at a time."""

_ITEM = r"""\[(?:'[^'\\]*'|"[^"\\]*"|-?\d+)\]"""
_TYPED = re.compile(rf"(?P<base>[^\W\d]\w*(?:{_ITEM}|\.[^\W\d]\w*)*\.)?(?P<start>[^\W\d]\w*|)$")
_CALLABLE = (FunctionType, BuiltinFunctionType, MethodType, staticmethod, classmethod)


def completions(text: str, variables: Mapping[str, Any], module: Mapping[str, Any]) -> dict[str, Any]:
    """What may stand at the end of a line's text: where the name starts that is typed, and the names, with their kinds.

    After a dot only attributes are offered that can be seen without asking the object: no property is read.
    """
    found = _TYPED.search(text)
    start = "" if found is None else found["start"]
    first = len(text) - len(start)
    base = None if found is None else found["base"]
    before = text[: first if base is None else first - len(base)]
    if before.endswith(".") or (before[-1:].isalnum() and before[-1:].isascii()):  # of a call, of a number
        return {"from": first, "names": []}
    names = _variables(variables, module) if base is None else _attributes(value_of(base[:-1], variables, module))
    fitting = {name: kind for name, kind in names if name.startswith(start) and name.isidentifier()}
    ordered = sorted(fitting, key=lambda name: (name.startswith("_"), name.startswith("__")))
    return {"from": first, "names": [{"name": name, "kind": fitting[name]} for name in islice(ordered, MOST)]}


def _variables(variables: Mapping[str, Any], module: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keywords and builtins, then what hides them: what comes later says the kind."""
    yield from ((name, "keyword") for name in keyword.kwlist)
    for space in (vars(builtins), module, variables):
        yield from ((name, _kind(value)) for name, value in list(space.items()))


def _attributes(value: Any) -> Iterator[tuple[str, str]]:
    if value is MISSING:
        return
    kind = type(value)
    for base in reversed(mro_of(value) if issubclass(kind, type) else mro_of(kind)):
        yield from ((name, _kind(member)) for name, member in list(class_vars(base).items()))
    if issubclass(kind, ModuleType):
        yield from ((name, _kind(member)) for name, member in list(vars_of(value).items()))
    else:
        found: Inside = inside(value)
        yield from ((str(part.step), _kind(part.value)) for part in found.attributes)


def _kind(value: Any) -> str:
    kind = type(value)
    if issubclass(kind, _CALLABLE):
        return "function"
    if issubclass(kind, (ModuleType, type)):
        return "module" if issubclass(kind, ModuleType) else "class"
    return "property" if kind is property else class_name(kind)

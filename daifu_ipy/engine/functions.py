"""The function objects that there are: by the code that they run, by name, and behind what wraps them."""

from __future__ import annotations

import functools
import gc
from collections.abc import Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

from daifu_ipy.engine.lineage import versions_of
from daifu_ipy.engine.native import native_code
from daifu_ipy.engine.shapes import STATE
from daifu_ipy.engine.vaccinate import functions_in


class Functions:
    """All function objects there are, by name.

    After ``gc.freeze()`` those made before are found only by what the modules in `namespaces` lead to.
    """

    def __init__(self, *namespaces: Mapping[str, Any]) -> None:
        self._by_name: dict[str, list[FunctionType]] = {}  # the name is the same in native and in vaccinated code
        for one in gc.get_objects():
            if type(one) is FunctionType:
                self._by_name.setdefault(one.__code__.co_qualname, []).append(one)
        frozen = namespaces if gc.get_freeze_count() else ()
        for one in [one for space in frozen for value in space.values() for one in functions_behind(value)]:
            known = self._by_name.setdefault(one.__code__.co_qualname, [])
            if not any(one is other for other in known):
                known.append(one)

    def running(self, code: CodeType, namespace: Mapping[str, Any]) -> tuple[FunctionType, ...]:
        """Those of a definition, in any of its versions, and wherever the same text was run again."""
        versions = versions_of(code)
        found = {id(f): f for version in versions for f in self.with_code(version)}
        found |= {id(f): f for f in self.called(code.co_qualname) if native_code(f.__code__) == code}
        return tuple(function for function in found.values() if function.__globals__ is namespace)

    def with_code(self, code: CodeType) -> list[FunctionType]:
        """Those that stand for this very native code."""
        return [function for function in self.called(code.co_qualname) if native_code(function.__code__) is code]

    def called(self, qualname: str) -> list[FunctionType]:
        """Those of this qualified name; unfinished procedures are left out."""
        known = self._by_name.get(qualname, ())
        return [function for function in known if STATE not in function.__code__.co_freevars]


def functions_behind(value: Any) -> list[FunctionType]:
    """The functions that a value stands for, through what wraps them."""
    if isinstance(value, functools.cached_property | functools.partialmethod):
        return functions_behind(value.func)
    try:
        return list(functions_in(value)) if not isinstance(value, ModuleType) else []
    except TypeError:
        return []


def resolve(qualname: str, namespace: Mapping[str, Any]) -> Any:
    """What a qualified name stands for in a module, as it lies there; None if there is no such thing."""
    first, *rest = qualname.split(".")
    value = namespace.get(first)
    for name in rest:
        value = vars(value).get(name) if isinstance(value, type) else None
    return value


__all__ = ["Functions", "functions_behind", "resolve"]

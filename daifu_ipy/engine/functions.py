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
    """All function objects there are, by the native code that they stand for.

    After ``gc.freeze()`` those made before are found only by what the modules in `namespaces` lead to.
    """

    def __init__(self, *namespaces: Mapping[str, Any]) -> None:
        found: dict[int, list[FunctionType]] = {}  # by code, whose own hash would read all of it
        for one in gc.get_objects():
            if type(one) is FunctionType:
                found.setdefault(id(one.__code__), []).append(one)
        frozen = namespaces if gc.get_freeze_count() else ()
        for one in [one for space in frozen for value in space.values() for one in functions_behind(value)]:
            if not any(one is other for other in found.get(id(one.__code__), ())):
                found.setdefault(id(one.__code__), []).append(one)
        self._by_code: dict[int, list[FunctionType]] = {}
        self._by_name: dict[str, list[FunctionType]] = {}
        for functions in found.values():
            code = functions[0].__code__
            if STATE not in code.co_freevars:  # unfinished procedures are left out
                plain = native_code(code)
                self._by_code.setdefault(id(plain), []).extend(functions)
                self._by_name.setdefault(plain.co_qualname, []).extend(functions)

    def running(self, code: CodeType, namespace: Mapping[str, Any]) -> tuple[FunctionType, ...]:
        """Those of a definition, in any of its versions, and wherever the same text was run again."""
        versions = versions_of(code)
        found = {id(f): f for version in versions for f in self.with_code(version)}
        found |= {id(f): f for f in self.called(code.co_qualname) if native_code(f.__code__) == code}
        return tuple(function for function in found.values() if function.__globals__ is namespace)

    def with_code(self, code: CodeType) -> list[FunctionType]:
        """Those that stand for this very native code."""
        return self._by_code.get(id(code), [])

    def called(self, qualname: str) -> list[FunctionType]:
        """Those of this qualified name."""
        return self._by_name.get(qualname, [])


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

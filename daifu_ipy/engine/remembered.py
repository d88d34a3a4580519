"""What was vaccinated on request, by name too: a module that is loaded again has new functions, or old ones new code.

Who loads modules again (IPython's ``%autoreload``, `importlib.reload`) knows nothing of vaccination.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

Name: TypeAlias = tuple[str, str]  # of a module, and in it; "" is the module itself


class Remembered:
    """Functions that are to stay vaccinated, and the names of what was asked for."""

    def __init__(self) -> None:
        self._functions: weakref.WeakSet[FunctionType] = weakref.WeakSet()
        self._names: dict[Name, None] = {}
        self._left_out: set[Name] = set()
        self._hopeless: weakref.WeakKeyDictionary[FunctionType, CodeType] = weakref.WeakKeyDictionary()

    def add(self, asked_for: object, functions: Iterable[FunctionType]) -> None:
        """Remember what was asked for, and the functions that it stands for."""
        every = [function for function in functions if _names([function])]
        self._functions.update(every)
        for name in _names([asked_for, *every]):
            self._names[name] = None
            self._left_out.discard(name)

    def discard(self, asked_for: object, functions: Iterable[FunctionType]) -> None:
        """Forget them: they are to stay plain."""
        every = list(functions)
        self._functions.difference_update(every)
        for name in _names([asked_for, *every]):
            self._names.pop(name, None)
            self._left_out.add(name)

    def give_up(self, function: FunctionType) -> None:
        """A function can't be vaccinated with the code that it has now."""
        self._hopeless[function] = function.__code__

    def lost(self) -> list[FunctionType]:
        """The functions that run plain code now, and do so for another reason than that they can't be vaccinated."""
        from daifu_ipy.engine.vaccinate import is_vaccinated

        old = sorted(self._functions, key=lambda function: function.__qualname__)
        found = [*(f for name in self._names for f in functions_now(*name)), *old]
        return [
            function
            for function in dict.fromkeys(found)
            if not is_vaccinated(function)
            and self._hopeless.get(function) is not function.__code__
            and self._left_out.isdisjoint(_names([function]))
        ]


def _names(objects: Iterable[object]) -> list[Name]:
    """Names under which a module that is loaded again will have its own versions of these."""
    return [name for name in map(_name, objects) if name is not None and "<locals>" not in name[1]]


def _name(value: object) -> Name | None:
    match value:
        case ModuleType():
            return value.__name__, ""
        case MethodType():
            return _name(value.__func__)
        case FunctionType() | type():
            return (value.__module__, value.__qualname__) if value.__module__ not in (None, "__main__") else None
        case _:
            return None


def functions_now(module: str, qualname: str) -> list[FunctionType]:
    """The functions that a name stands for now; none if there is no such thing any more."""
    from daifu_ipy.engine.vaccinate import functions_in

    value: Any = sys.modules.get(module)
    for part in qualname.split(".") if qualname else ():
        value = vars(value).get(part) if isinstance(value, ModuleType | type) else None
    try:
        return [] if value is None else list(functions_in(value))
    except TypeError:  # it is no function any more
        return []

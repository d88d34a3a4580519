"""What a program under test may call: each helper is a *crash point*, reached before it has any effect.

==================  =======================================================================================
``t(x)``            returns x and has no effect
``log(x)``          returns x and logs it, with the exception that is being handled
``note(x)``         logs, too, but is no crash point
``obj(name)``       an object that logs its birth and its death
``it(xs)``          an iterable, also for ``async for``: ``iter()`` and every ``next()`` are points, the
                    iterator has no ``__iter__``
``seq(*xs)``        an iterable to unpack: its ``iter()`` is a point
``cm(name)``        a context manager, also for ``async with``: ``gives=`` what it enters with, ``swallow=``
                    which exceptions it swallows (the engine can't know: ``intercept="unhandled"``)
``box(name)``       an object whose attributes and items may be set, got and deleted
``flag(x)``         an object whose truth value is a point
``tick(x)``         a coroutine function that suspends once and returns x
``boom(error)``     raises the program's own exception, which is never repaired
``Base``            a class whose ``hello(x)`` logs
==================  =======================================================================================

What happened is logged as text, so that the log keeps nothing of the program alive.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import linecache
import os
import re
import sys
import traceback
import types
import weakref
from collections.abc import Container, Generator, Iterable, Iterator, Mapping
from typing import Any

PROGRAM = "<program "
"""How the file name of a program under test begins."""

_HEADER = re.compile(r"\s*(async )?(for|with)\b")
_HARNESS = {__file__, os.path.join(os.path.dirname(__file__), "testing.py")}


class InjectedCrash(BaseException):
    """Raised by a crash point, with its name; no ``except Exception`` of a program catches it."""


class World:
    """One run's crash points, log and helpers."""

    def __init__(self, crashes: tuple[int, ...]) -> None:
        self.crashes = crashes
        self.lines, self.trail, self.alive = list[str](), list[str](), list[str]()
        names = ("at", "final", "t", "log", "note", "boom", "tick", "cm", "Base")
        self.helpers: dict[str, Any] = {name: getattr(self, name) for name in names}
        for class_ in (_Obj, _It, _Seq, _Box, _Flag):
            self.helpers[class_.__name__[1:].lower()] = functools.partial(class_, self)

    def point(self, name: str) -> None:
        """A crash point: nothing of what follows has happened yet."""
        self.trail.append(name)
        if len(self.trail) in self.crashes:
            raise InjectedCrash(name)

    def note(self, entry: object) -> None:
        """Log, together with the exception that is being handled."""
        text, handled = entry if isinstance(entry, str) else describe(entry), sys.exception()
        self.lines.append(text if handled is None else f"{text}, handling {describe_exception(handled)}")

    def at(self, number: int) -> None:
        self.point(f"at({number})")

    def final(self, namespace: dict[str, Any]) -> None:
        self.note(f"locals: {describe_names(namespace)}")

    def t(self, x: object) -> object:
        self.point("t")
        return x

    def log(self, x: object) -> object:
        self.point("log")
        self.note(x)
        return x

    def boom(self, error: BaseException) -> None:
        self.point("boom")
        try:
            raise error
        finally:
            del error

    def cm(self, name: object, *, gives: object = None, swallow: Any = None) -> object:
        return _Cm(self, name, gives) if swallow is None else _Swallower(self, name, gives, swallow)

    async def tick(self, x: object) -> object:
        self.point("tick")
        await _suspend()
        self.point("resumed tick")
        self.note(f"tick {describe(x)}")
        return x

    @functools.cached_property
    def Base(self) -> type:
        return type("Base", (), {"hello": lambda _, x: self.log(x)})


@types.coroutine
def _suspend() -> Generator[None, None, None]:
    yield


class _Helper:
    """An object of a program that logs what is done to it; no program sees its ``_state``."""

    _state: tuple[World, Any]

    def __init__(self, world: World, name: object = "") -> None:
        vars(self)["_state"] = (world, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {describe(self._state[1])}>"

    def _meet(self, event: str, detail: str = "") -> None:
        world, name = self._state
        world.point(event)
        world.note(f"{event} {describe(name)}{detail}")


class _Obj(_Helper):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._meet("new")
        world.alive.append(name)
        weakref.finalize(self, self._die, world, name)

    @staticmethod
    def _die(world: World, name: str) -> None:
        world.alive.remove(name)
        world.lines.append(f"dies {name}")


class _It(_Helper):
    def __init__(self, world: World, items: Iterable[Any], name: str = "") -> None:
        super().__init__(world, name)
        self.items = items

    def __iter__(self) -> Any:
        self._meet("iter")
        return _Cursor(*self._state, self.items)

    def __aiter__(self) -> Any:
        self._meet("aiter")
        return _Cursor(*self._state, self.items)


class _Cursor(_Helper):
    """An iterator without `__iter__`, which the protocol of ``for`` does not need."""

    def __init__(self, world: World, name: str, items: Iterable[Any]) -> None:
        super().__init__(world, name)
        self.items = iter(items)

    def __next__(self) -> Any:
        self._meet("next")
        return next(self.items)

    async def __anext__(self) -> Any:
        await _suspend()
        self._meet("anext")
        for item in self.items:
            return item
        raise StopAsyncIteration


class _Seq(_Helper):
    def __init__(self, world: World, *items: Any) -> None:
        super().__init__(world, items)

    def __iter__(self) -> Iterator[Any]:
        self._meet("unpack")
        return iter(self._state[1])


class _Cm(_Helper):
    """A context manager; that it swallows nothing can be told from its code."""

    def __init__(self, world: World, name: object, gives: object) -> None:
        super().__init__(world, name)
        self.gives = gives

    def __enter__(self) -> Any:
        self._meet("enter")
        return self.gives

    def __exit__(self, kind: object, error: BaseException | None, tb: object) -> bool | None:
        self._meet("exit", f", given {describe_exception(error)}")
        return None

    async def __aenter__(self) -> Any:
        await _suspend()
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, tb: object) -> bool | None:
        await _suspend()
        self.__exit__(kind, error, tb)
        return None


class _Swallower(_Cm):
    """One that decides when it is asked."""

    def __init__(self, world: World, name: object, gives: object, swallow: type[BaseException]) -> None:
        super().__init__(world, name, gives)
        self.swallow = swallow

    def __exit__(self, kind: object, error: BaseException | None, tb: object) -> bool | None:
        super().__exit__(kind, error, tb)
        return isinstance(error, self.swallow)

    async def __aexit__(self, kind: object, error: BaseException | None, tb: object) -> bool | None:
        await _suspend()
        return self.__exit__(kind, error, tb)


class _Box(_Helper):
    def __getattr__(self, name: str) -> Any:
        world, value = self._state
        world.point(f"get {name}")
        return value

    def __setattr__(self, name: str, value: object) -> None:
        self._meet(f"set {name}", f" to {describe(value)}")

    def __delattr__(self, name: str) -> None:
        self._meet(f"del {name}")

    __getitem__, __setitem__, __delitem__ = __getattr__, __setattr__, __delattr__


class _Flag(_Helper):
    def __bool__(self) -> bool:
        self._meet("truth")
        return bool(self._state[1])


# -- values as text -----------------------------------------------------------------------------------------


def describe(value: object, within: tuple[int, ...] = ()) -> str:
    """Describe a value so that equal texts mean equal values; without addresses."""
    if id(value) in within:
        return "..."
    inner = functools.partial(describe, within=(*within, id(value)))
    match value:
        case BaseException():
            return describe_exception(value)
        case dict():
            return "{" + ", ".join(f"{inner(key)}: {inner(item)}" for key, item in value.items()) + "}"
        case list() | tuple() | set() | frozenset():
            return f"{type(value).__name__}({', '.join(map(inner, value))})"
        case type():
            own = {name: item for name, item in vars(value).items() if name[:2] != "__"}
            return f"<class {value.__qualname__} {inner(own)}>"
        case types.FunctionType():
            cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
            details = (value.__defaults__, value.__kwdefaults__, value.__annotations__, cells)
            return f"<{value.__qualname__}({', '.join(inspect.getargs(value.__code__).args)}) {inner(details)}>"
        case types.ModuleType():
            return f"<module {value.__name__}>"
        case _Helper() | str() | bytes() | int() | float() | complex() | None | range() | slice():
            return repr(value)
    shown = getattr(value, "__dict__", "") if type(value).__module__ == "program" else ""
    return f"<{type(value).__qualname__} {inner(shown)}>"


def describe_names(namespace: Mapping[str, object], without: Container[str] = ()) -> str:
    return ", ".join(f"{name}={describe(namespace[name])}" for name in sorted(namespace) if name not in without)


def describe_exception(error: BaseException | None, columns: bool = False, within: tuple[int, ...] = ()) -> str:
    """An exception with its arguments, the lines of its traceback, its cause and its context."""
    if error is None or id(error) in within:
        return "..." if error else "None"
    parts = [f"{type(error).__qualname__}{describe(error.args)} at {_lines(error.__traceback__, columns)}"]
    for name in ("__cause__", "__context__"):
        # what was handled while a generator died is not its business
        if (other := getattr(error, name)) is not None and not isinstance(error, GeneratorExit):
            parts.append(f"{name} ({describe_exception(other, columns, (*within, id(error)))})")
    parts += ["context suppressed"] * error.__suppress_context__ + getattr(error, "__notes__", [])
    return " ".join(parts)


def _lines(traceback: types.TracebackType | None, columns: bool) -> str:
    """The program's lines in a traceback; of foreign files the name, of the harness nothing."""
    lines: list[str] = []
    while traceback is not None:
        code, number = traceback.tb_frame.f_code, traceback.tb_lineno
        if code.co_filename.startswith(PROGRAM):
            place: object = number
            if columns and not _HEADER.match(linecache.getline(code.co_filename, number)):
                place = next(itertools.islice(code.co_positions(), traceback.tb_lasti // 2, None))
            lines.append(f"{code.co_qualname}:{place}")
        elif code.co_filename not in _HARNESS:
            lines.append(os.path.basename(code.co_filename))
        traceback = traceback.tb_next
    return ", ".join(lines) or "no line"


def describe_locals(error: BaseException) -> str:
    """The variables, as a debugger shows them, of the program's functions in a traceback."""
    shown: list[str] = []
    for frame, _ in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if code.co_filename.startswith(PROGRAM) and code.co_name != "<module>":
            shown.append(describe_names({name: v for name, v in frame.f_locals.items() if name[0] != "@"}))
    return "; ".join(shown)

"""Finds the notebook's own functions that a cell uses, directly or through others, and vaccinates them in place.

Only functions whose code was compiled from a cell of this notebook are touched. They are found by names: those in
the cell's text, then those in the code of what was found, the methods of classes and of the objects named, what
closures and decorators hold, and what hangs on objects as attributes. No code of the user's runs for it.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import CodeType, FunctionType
from typing import Any

from daifu_ipy.engine.barrier import Barrier
from daifu_ipy.engine.interception import barrier_in
from daifu_ipy.engine.vaccinate import CannotVaccinate, is_vaccinated, vaccinated_function
from daifu_ipy.repair.builtin_values import vars_of

MOST_OBJECTS = 5_000
"""How many objects are looked at in all; a notebook's own are among the first."""

MOST_ITEMS = 100
"""How many items of a container are looked at."""

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PLAIN_DATA = (str, bytes, int, float, complex, bool, type(None))
_CONTAINERS = (list, tuple, set, frozenset)
_HOLDERS: dict[type, tuple[str, ...]] = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    functools.partial: ("func", "args", "keywords"),
    functools.partialmethod: ("func",),
}
_MEMBERS = frozenset({FunctionType, *_HOLDERS})


@dataclass
class Protection:
    """What was found: functions that are vaccinated now (`fresh`: and were not before), and why others can't be."""

    functions: list[FunctionType] = field(default_factory=list)
    fresh: list[FunctionType] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)

    def barriers(self) -> Iterator[Barrier]:
        """The barriers of the functions, and of the functions in them."""
        for function in self.functions:
            barrier = barrier_in(function.__code__)
            if barrier is not None:
                yield from barrier.barriers.values()


def protect(
    tree: ast.Module,
    namespace: Mapping[str, Any],
    is_own: Callable[[CodeType], bool],
    only: frozenset[str] | None = None,
    apart: Iterable[object] = (),
) -> Protection:
    """Vaccinate the notebook's functions that a cell uses.

    Parameters
    ----------
    tree
        The cell.
    namespace
        The notebook's variables.
    is_own
        Whether code comes from a cell of this notebook.
    only
        Qualified names: no others.
    apart
        Objects that lead nowhere: the shell, which holds everything.
    """
    used = functions_used(tree, namespace, is_own, apart)
    return protect_all(f for f in used if is_wanted(f.__qualname__, only))


def protect_all(functions: Iterable[FunctionType]) -> Protection:
    """Vaccinate functions in place, as far as they can be; those that are already count as done."""
    made = Protection()
    for function in functions:
        known = is_vaccinated(function)
        reason = None if known else vaccinate_one(function)
        if reason is None:
            made.functions.append(function)
            made.fresh += [] if known else [function]
        elif function.__name__ != "<lambda>":
            made.reasons[function.__qualname__] = reason
    return made


def say(protection: Protection) -> None:
    """One line that names what is protected, and one for each that can't be."""
    for name, reason in protection.reasons.items():
        print(f"daifu: {name} runs plainly: {reason}")
    say_protected(protection)


def say_protected(protection: Protection, own: Iterable[str] = (), *, always: bool = False) -> None:
    """One line that names what is protected, if that is more than the cell's `own`."""
    names = grouped([*own, *(function.__qualname__ for function in protection.functions)])
    if protection.functions or always:
        print(f"daifu: protecting {listed(names)}")


def vaccinate_one(function: FunctionType) -> str | None:
    """Vaccinate a function in place; if it can't be, the reason."""
    try:
        vaccinated = vaccinated_function(function)
    except CannotVaccinate as reason:
        return str(reason)
    function.__code__ = vaccinated.code
    return None


def is_wanted(qualname: str, only: frozenset[str] | None) -> bool:
    """Whether ``--only`` lets a function be: by its name or that of its class, or of the function around it."""
    plain = qualname.replace(".<locals>", "")
    return only is None or any(plain == name or plain.startswith(f"{name}.") for name in only)


def functions_used(
    tree: ast.Module, namespace: Mapping[str, Any], is_own: Callable[[CodeType], bool], apart: Iterable[object] = ()
) -> Iterator[FunctionType]:
    """The notebook's functions that a cell's names lead to, nearest first."""
    values = [namespace[name] for name in names_used(tree) if name in namespace]
    return functions_reached(values, is_own, [namespace, *apart])


def functions_reached(
    values: Iterable[object], is_own: Callable[[CodeType], bool], apart: Iterable[object] = ()
) -> Iterator[FunctionType]:
    """The notebook's functions that objects lead to, nearest first."""
    queue: list[Any] = list(values)
    seen = {id(value): value for value in apart}  # keeps the objects, so that no id comes twice
    for value in queue:  # grows while it is walked
        if id(value) in seen or type(value) in _PLAIN_DATA:
            continue
        seen[id(value)] = value
        if len(seen) > MOST_OBJECTS:
            return
        queue += _leads_to(value, is_own)
        if _is_own_function(value, is_own):
            yield value


def names_used(tree: ast.Module) -> list[str]:
    """The names in a cell's text, but those of functions and classes that it defines anew before it names them."""
    names: dict[str, None] = {}
    defined: set[str] = set()
    for statement in tree.body:
        own = statement.name if isinstance(statement, DEFINITIONS) else None
        found = [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
        names.update(dict.fromkeys(name for name in found if name not in defined and name != own))
        if own is not None and own not in names:
            defined.add(own)
    return list(names)


def _leads_to(value: Any, is_own: Callable[[CodeType], bool]) -> Iterator[Any]:
    """What an object leads to. Its class is asked, never the object: that might run its code."""
    kind = type(value)
    if kind is FunctionType:
        yield from _held(value)
        if is_own(value.__code__):
            yield from (value.__globals__[n] for n in names_in(value.__code__) if n in value.__globals__)
    elif issubclass(kind, type):
        members = type.__dict__["__dict__"].__get__(value)
        if members.get("__module__") == "__main__" or any(_is_own_function(m, is_own) for m in members.values()):
            yield from type.__dict__["__mro__"].__get__(value)[1:-1]
            yield from (m for m in members.values() if type(m) in _MEMBERS or issubclass(type(m), type))
    elif kind is types.MethodType:
        yield from (value.__func__, value.__self__)
    elif issubclass(kind, dict):
        yield from islice(dict.values(value), MOST_ITEMS)
    elif issubclass(kind, _CONTAINERS):
        base: Any = next(base for base in _CONTAINERS if issubclass(kind, base))
        yield from islice(base.__iter__(value), MOST_ITEMS)
    elif kind in _HOLDERS:
        yield from (getattr(value, name) for name in _HOLDERS[kind])
    elif kind is not types.ModuleType:
        yield from kind.__mro__[:-1]
        yield from islice(vars_of(value).values(), MOST_ITEMS)


def _is_own_function(member: object, is_own: Callable[[CodeType], bool]) -> bool:
    return type(member) is FunctionType and is_own(member.__code__)


def _held(function: FunctionType) -> Iterator[Any]:
    """What a function holds: of its closure, its defaults, and what a decorator wrapped."""
    yield from vars_of(function).values()
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue


def names_in(code: CodeType) -> set[str]:
    """The global names, and names of attributes, in code and in the code nested in it."""
    return set(code.co_names).union(*(names_in(const) for const in code.co_consts if isinstance(const, CodeType)))


def grouped(qualnames: Iterable[str]) -> list[str]:
    """Names for a report: ``train``, and ``Net (2 methods)``."""
    counts: dict[str, int] = {}
    for qualname in qualnames:
        first, _, rest = qualname.partition(".")
        counts[first] = counts.get(first, 0) + (bool(rest) and not rest.startswith("<locals>"))
    return [f"{name} ({count} method{'s' * (count > 1)})" if count else name for name, count in counts.items()]


def listed(names: list[str], most: int = 8) -> str:
    """``a, b and c``; of many, the first."""
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

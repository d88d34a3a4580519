"""Swapping code in place: every function object that ran the old text runs the new one from its next call on."""

from __future__ import annotations

import ast
import dis
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from daifu_ipy.engine.barrier import Barrier
from daifu_ipy.engine.invariants import InternalError
from daifu_ipy.engine.matching import same
from daifu_ipy.engine.native import barrier_in, native_code
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.scopes import arguments, scope_of
from daifu_ipy.engine.shapes import STATE
from daifu_ipy.engine.unit import NestedFunction
from daifu_ipy.engine.vaccinate import (
    CannotVaccinate,
    FoundFunction,
    Vaccinated,
    all_functions,
    find_function,
    functions_in,
    is_vaccinated,
    native,
    parse,
    vaccinated,
)

if TYPE_CHECKING:
    from daifu_ipy.engine.crash import Crash, CrashFrame


@dataclass(frozen=True)
class Swap:
    """New code for some function objects, checked and not yet given to them."""

    name: str
    functions: tuple[FunctionType, ...]
    code: CodeType

    def apply(self) -> None:
        """Exchange the code."""
        for function in self.functions:
            old, new = barrier_in(function.__code__), barrier_in(self.code)
            if old is not None:
                old.replaced_by = new
            function.__code__ = self.code

    @classmethod
    def unit(cls, frame: CrashFrame, new: Vaccinated) -> tuple[Swap, ...]:
        """The swaps of a crashed unit and of the functions in it."""
        made = []
        ours, theirs = _by_name(frame.barrier), _by_name(new.barrier)
        for name, namesakes in ours.items():
            counterparts = theirs.get(name, [])
            if counterparts and len(counterparts) != len(namesakes):
                raise Refusal(f"{name} is defined {len(counterparts)} times now, and was {len(namesakes)} times before")
            for barrier, counterpart in zip(namesakes, counterparts, strict=False):
                if barrier is not frame.barrier and same(barrier.unit.node, counterpart.unit.node):
                    continue
                if counterpart.code is None:
                    raise InternalError(f"no code of {name}")
                functions = functions_of(barrier)
                check_closure(functions, counterpart.code, name)
                made.append(cls(name, functions, counterpart.code))
        return tuple(made)


def _by_name(barrier: Barrier) -> dict[str, list[Barrier]]:
    """A unit and the functions in it, in the order of the source."""
    found: dict[str, list[Barrier]] = {}
    for one in sorted(barrier.barriers.values(), key=lambda other: other.unit.plain.co_firstlineno):
        found.setdefault(one.unit.qualname, []).append(one)
    return found


def functions_of(barrier: Barrier) -> tuple[FunctionType, ...]:
    """All function objects that run vaccinated code of a unit; unfinished procedures make functions with their own."""
    functions = [f for f in gc.get_objects() if type(f) is FunctionType and _descends(barrier_in(f.__code__), barrier)]
    return tuple(f for f in functions if STATE not in f.__code__.co_freevars)  # the procedures themselves are left out


def _descends(other: Barrier | None, barrier: Barrier) -> bool:
    """Whether `other` is the barrier of the same definition, or of what a surgery has made of it."""
    if other is None:
        return False
    if other.unit.plain is barrier.unit.plain and other.namespace is barrier.namespace:
        return True
    while barrier is not other and barrier.replaced_by is not None:
        barrier = barrier.replaced_by
    return other is barrier


def functions_running(code: CodeType) -> tuple[FunctionType, ...]:
    """All function objects that run `code`."""
    return tuple(f for f in gc.get_referrers(code) if isinstance(f, FunctionType) and f.__code__ is code)


def check_closure(functions: tuple[FunctionType, ...], code: CodeType, name: str) -> None:
    """Refuse code that captures other variables than the functions that it is for."""
    for function in functions:
        if function.__code__.co_freevars != code.co_freevars:
            ours, theirs = set(function.__code__.co_freevars), set(code.co_freevars)
            raise Refusal(
                f"{name} can't be swapped in place: it captures {sorted(theirs) or 'nothing'} now, "
                f"and captured {sorted(ours) or 'nothing'} before"
            )


def check_captures(code: CodeType, qualname: str, source: str) -> None:
    """Refuse code that reads a variable of the function around it which the old code did not capture."""
    names = {op.argval for op in dis.get_instructions(code) if op.opname == "LOAD_GLOBAL"}
    for found in all_functions(parse(source).body):
        if qualname.startswith(f"{found.qualname}.<locals>."):
            scope = scope_of(found.node.body, arguments(found.node), found.class_name)
            missing = sorted(names & scope.bound)
            if missing:
                raise Refusal(f"{qualname} captures {missing} of {found.qualname} now, which its closure has not got")


def changed_functions(
    frame: CrashFrame, crash: Crash, tree: ast.Module, text: str, filename: str, skip: ast.AST | None
) -> list[Swap]:
    """The functions of a new text that exist already and whose text has changed, the crashed unit left out."""
    inside = set(ast.walk(skip)) if skip is not None else set()
    namesakes: dict[str, list[NestedFunction]] = {}
    for found in all_functions(tree.body):
        if found.node not in inside and "<locals>" not in found.qualname:
            namesakes.setdefault(found.qualname, []).append(found)
    changes = [
        _change(function, definitions, text, filename)
        for definitions in namesakes.values()
        for function in _existing(frame, crash, definitions[0])
    ]
    return [change for change in changes if change is not None]


def _existing(frame: CrashFrame, crash: Crash, found: NestedFunction) -> Iterator[FunctionType]:
    """The function objects of this name: in the module of the crashed unit, or on the stack of the crash."""
    value: Any = frame.barrier.namespace.get(found.qualname.partition(".")[0])
    for name in found.qualname.split(".")[1:]:
        value = vars(value).get(name) if isinstance(value, type) else None
    known = isinstance(value, FunctionType | staticmethod | classmethod | property)
    candidates = list(functions_in(value)) if known else []
    entry = crash.traceback
    while entry is not None:
        code = entry.tb_frame.f_code
        if code.co_qualname == found.qualname and entry.tb_frame is not frame.frame:
            candidates += functions_running(code)
        entry = entry.tb_next
    unique = {id(function): function for function in candidates}
    yield from (f for f in unique.values() if barrier_in(f.__code__) is not frame.barrier)


def _change(function: FunctionType, definitions: list[NestedFunction], text: str, filename: str) -> Swap | None:
    """The swap that one function needs; of several definitions of its name it is the one in its place."""
    try:
        old: FoundFunction | None = find_function(native_code(function.__code__))
    except CannotVaccinate:
        old = None
    if old is None and len(definitions) > 1:
        raise Refusal(f"{definitions[0].qualname} is defined several times, and which one is meant can't be told")
    if old is not None and old.namesakes != len(definitions):
        raise Refusal(
            f"{old.qualname} is defined {len(definitions)} times in the new source, and {old.namesakes} times before"
        )
    found = definitions[old.ordinal if old is not None else 0]
    if old is not None and not same(old.node.args, found.node.args):
        raise Refusal(f"the parameters of {found.qualname} can't change in place yet (line {found.node.lineno})")
    if old is not None and ast.dump(ast.Module(old.node.body, [])) == ast.dump(ast.Module(found.node.body, [])):
        return None
    plain = native(found.node, native_code(function.__code__), found.class_name, filename, 0)
    if old is not None:
        check_captures(plain, old.qualname, old.source)
    if not is_vaccinated(function):
        check_closure((function,), plain, found.qualname)
        return Swap(found.qualname, (function,), plain)
    shared = function.__code__.co_freevars
    made = vaccinated(found.node, plain, text, function.__globals__, found.class_name, shared=shared)
    check_closure((function,), made.code, found.qualname)
    return Swap(found.qualname, (function,), made.code)

"""Swapping code in place: every function object that ran the old text runs the new one from its next call on."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from daifu_ipy.engine.matching import same
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.unit import FunctionNode, NestedFunction
from daifu_ipy.engine.vaccinate import (
    CannotVaccinate,
    Vaccinated,
    all_functions,
    find_function,
    functions_in,
    is_vaccinated,
    swap,
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
    plain: CodeType | None  # of vaccinated code
    defaults: tuple[Any, ...] | None = None
    keyword_defaults: dict[str, Any] | None = None

    def apply(self) -> None:
        """Exchange the code."""
        for function in self.functions:
            if self.plain is None:
                function.__code__ = self.code
            else:
                swap(function, self.code, self.plain)

    @classmethod
    def unit(cls, frame: CrashFrame, new: Vaccinated) -> tuple[Swap, ...]:
        """The swaps of a crashed unit and of the functions in it."""
        made = []
        old = frame.barrier
        by_name = {barrier.unit.qualname: barrier for barrier in new.barrier.barriers.values()}
        for barrier in old.barriers.values():
            counterpart = by_name.get(barrier.unit.qualname)
            if counterpart is None or counterpart.code is None or barrier.code is None:
                continue
            functions = functions_of(barrier.code)
            if barrier is not old and same(barrier.unit.node, counterpart.unit.node):
                continue
            check_closure(functions, counterpart.code, barrier.unit.qualname)
            made.append(cls(barrier.unit.qualname, functions, counterpart.code, counterpart.unit.plain))
        return tuple(made)


def functions_of(code: CodeType) -> tuple[FunctionType, ...]:
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


def changed_functions(
    frame: CrashFrame, crash: Crash, tree: ast.Module, text: str, filename: str, skip: ast.AST | None
) -> list[Swap]:
    """The functions of a new text that exist already and whose text has changed, the crashed unit left out."""
    made = []
    inside = set(ast.walk(skip)) if skip is not None else set()
    for found in all_functions(tree.body):
        if found.node in inside or "<locals>" in found.qualname:
            continue
        for function in _existing(frame, crash, found):
            change = _change(function, found, text, filename)
            if change is not None:
                made.append(change)
    return made


def _existing(frame: CrashFrame, crash: Crash, found: NestedFunction) -> Iterator[FunctionType]:
    """The function objects of this name: in the module of the crashed unit, or on the stack of the crash."""
    seen: set[int] = set()
    value: Any = frame.barrier.namespace.get(found.qualname.partition(".")[0])
    for name in found.qualname.split(".")[1:]:
        value = vars(value).get(name) if isinstance(value, type) else None
    candidates = (
        list(functions_in(value)) if isinstance(value, FunctionType | staticmethod | classmethod | property) else []
    )
    entry = crash.traceback
    while entry is not None:
        code = entry.tb_frame.f_code
        if code.co_qualname == found.qualname and entry.tb_frame is not frame.frame:
            candidates += functions_of(code)
        entry = entry.tb_next
    for function in candidates:
        if id(function) not in seen and function.__code__.co_name == found.node.name:
            seen.add(id(function))
            yield function


def _change(function: FunctionType, found: NestedFunction, text: str, filename: str) -> Swap | None:
    from daifu_ipy.engine.surgery import native

    old = _old_definition(function)
    if old is not None and same(old.args, found.node.args) and _same_body(old, found.node):
        return None
    if old is not None and not same(old.args, found.node.args):
        raise Refusal(f"the parameters of {found.qualname} can't change in place yet (line {found.node.lineno})")
    plain = native(found.node, function.__code__, found.class_name, filename, 0)
    if not is_vaccinated(function):
        check_closure((function,), plain, found.qualname)
        return Swap(found.qualname, (function,), plain, None)
    made = vaccinated(
        found.node, plain, text, function.__globals__, found.class_name, shared=function.__code__.co_freevars
    )
    check_closure((function,), made.code, found.qualname)
    return Swap(found.qualname, (function,), made.code, made.plain)


def _old_definition(function: FunctionType) -> FunctionNode | None:
    try:
        return find_function(function.__code__).node
    except CannotVaccinate:
        return None


def _same_body(old: FunctionNode, new: FunctionNode) -> bool:
    return len(old.body) == len(new.body) and all(map(same, old.body, new.body))

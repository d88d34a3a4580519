"""Which module a text belongs to: the one that has most of its definitions."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from daifu_ipy.engine.functions import Functions, functions_behind
from daifu_ipy.engine.native import native_code
from daifu_ipy.engine.texts import text_of
from daifu_ipy.engine.unit import NestedFunction
from daifu_ipy.engine.vaccinate import all_functions, parse

if TYPE_CHECKING:
    from daifu_ipy.engine.crash import Crash, CrashFrame


Stack: TypeAlias = list[tuple[CodeType, dict[str, Any]]]


@dataclass(frozen=True)
class Home:
    """The module that a text belongs to: its names, and its text before."""

    namespace: dict[str, Any]
    source: str


def home_of(frame: CrashFrame, stack: Stack, tree: ast.Module, known: Functions) -> Home:
    """The module that a text belongs to; where several might be meant, the crashed unit's."""
    names = roots(tree)
    namesakes = {name: known.called(name) for name in names}
    on_stack = {(id(code), id(space)) for code, space in stack}
    statements = {ast.dump(statement) for statement in tree.body}

    def here(namespace: dict[str, Any]) -> dict[str, list[FunctionType]]:
        found = {name: [f for f in some if f.__globals__ is namespace] for name, some in namesakes.items()}
        return {name: some for name, some in found.items() if some}

    def source(namespace: dict[str, Any]) -> str:
        if namespace is frame.barrier.namespace:
            return frame.unit.source
        return next((_source_of(f) for some in here(namespace).values() for f in some), "")

    def score(namespace: dict[str, Any]) -> tuple[int, int, int]:
        found = here(namespace)
        running = {
            name
            for name, some in found.items()
            if any((id(native_code(f.__code__)), id(namespace)) in on_stack for f in some)
        }
        unit = {frame.unit.qualname, frame.unit.plain.co_name} & names.keys()  # of a method alone, or of no function
        own = set(list(unit)[:1]) if namespace is frame.barrier.namespace else set()
        same = statements & statements_of(source(namespace))
        return len(found.keys() | own), len(same), len(running | own)

    there = {id(f.__globals__) for found in namesakes.values() for f in found}
    spaces = [space for _, space in stack]
    spaces += [f.__globals__ for name in names for f in behind(frame.barrier.namespace.get(name))]
    unique = {id(space): space for space in [frame.barrier.namespace, *spaces]}
    candidates = [space for key, space in unique.items() if key in there or space is frame.barrier.namespace]
    best = max(candidates, key=score)  # the first of the best
    return Home(best, source(best))


def roots(tree: ast.Module) -> dict[str, list[NestedFunction]]:
    """The functions of a text that are in no other function, by qualified name."""
    found: dict[str, list[NestedFunction]] = {}
    for function in all_functions(tree.body):
        if "<locals>" not in function.qualname:
            found.setdefault(function.qualname, []).append(function)
    return found


def stack_of(crash: Crash, frame: CrashFrame) -> Stack:
    """The native codes on the stack with their namespaces: the crash's callees from within, then the callers."""
    callees: list[FrameType] = []
    entry = crash.traceback
    while entry is not None:
        callees.append(entry.tb_frame)
        entry = entry.tb_next
    callers, outer = [], frame.frame
    while outer is not None:
        callers.append(outer)
        outer = outer.f_back
    return [(native_code(one.f_code), one.f_globals) for one in (*reversed(callees), *callers)]


def behind(value: Any) -> list[FunctionType]:
    """The functions that a value stands for; a class stands for none."""
    return [] if isinstance(value, type) else functions_behind(value)


def _source_of(function: FunctionType) -> str:
    return text_of(native_code(function.__code__).co_filename)


def statements_of(source: str) -> set[str]:
    """The top-level statements of a text, so that they can be compared."""
    try:
        return {ast.dump(statement) for statement in parse(source).body}
    except SyntaxError:
        return set()


__all__ = ["Home", "Stack", "behind", "home_of", "roots", "stack_of", "statements_of"]

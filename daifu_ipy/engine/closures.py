"""What new code of a function captures, against what its function objects have captured, which can't change."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType
from typing import Any

from daifu_ipy.engine.frames import forget
from daifu_ipy.engine.function_state import Surroundings
from daifu_ipy.engine.functions import resolve
from daifu_ipy.engine.native import native_code
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.scopes import HIDDEN, arguments, scope_of
from daifu_ipy.engine.unit import FunctionNode, NestedFunction
from daifu_ipy.engine.vaccinate import functions_in_text, is_vaccinated, native, vaccinated


def code_for(functions: tuple[FunctionType, ...], definition: NestedFunction, code: CodeType, source: str) -> CodeType:
    """`code`, or the same over the variables that the functions have captured, which may be more."""
    ours = {name for function in functions for name in function.__code__.co_freevars}
    if not ours > set(code.co_freevars):
        check_closure(functions, code, definition.qualname)
        return code
    node = _capturing(definition.node, ours - set(code.co_freevars))
    plain = native(node, functions[0].__code__, definition.class_name, code.co_filename, code.co_flags)
    if is_vaccinated(functions[0]):
        namespace = functions[0].__globals__
        plain = vaccinated(definition.node, plain, source, namespace, definition.class_name, shared=ours).code
    check_closure(functions, plain, definition.qualname)
    return plain


def _capturing(node: FunctionNode, names: set[str]) -> FunctionNode:
    """The same definition, capturing `names` though it uses them no more: an object's closure can't shrink."""
    last = node.body[-1]
    reads = [ast.copy_location(ast.Expr(ast.copy_location(ast.Name(name, ast.Load()), last)), last) for name in names]
    never = ast.copy_location(ast.If(ast.copy_location(ast.Constant(False), last), list[ast.stmt](reads), []), last)
    made = type(node)(**dict(ast.iter_fields(node)))
    made.body = [*node.body, never]
    return ast.copy_location(made, node)


def check_closure(functions: tuple[FunctionType, ...], code: CodeType, name: str) -> None:
    """Refuse code that captures other variables than the functions that it is for."""
    for function in functions:
        if function.__code__.co_freevars != code.co_freevars:
            ours, theirs = set(function.__code__.co_freevars), set(code.co_freevars)
            raise Refusal(
                f"{name} can't be swapped in place: it captures {sorted(theirs) or 'nothing'} now, "
                f"and captured {sorted(ours) or 'nothing'} before"
            )


def check_captures(code: CodeType, qualname: str, *sources: str) -> None:
    """Refuse code that reads a variable of a function around it which the old code did not capture."""
    every = [found for source in sources for found in functions_in_text(source)]
    names = set(globals_read(code)) - {
        name
        for found in every
        if found.node.name == code.co_name
        for node in ast.walk(found.node)
        if isinstance(node, ast.Global)
        for name in node.names
    }
    for maker, bound in _bound_around(qualname, every) if names else ():
        missing = sorted(names & bound)
        if missing:
            raise Refusal(
                f"{qualname} captures {missing} of {maker} now, which its closure has not got: "
                "a parameter with a default can bring it in"
            )


def _bound_around(qualname: str, every: Iterable[NestedFunction]) -> Iterator[tuple[str, frozenset[str]]]:
    """The functions around one of this name, each with the names that it binds."""
    for found in every:
        if qualname.startswith(f"{found.qualname}.<locals>."):
            yield found.qualname, scope_of(found.node.body, arguments(found.node), found.class_name).bound


def globals_read(code: CodeType) -> Iterator[str]:
    """The names that code, and that in it, takes for globals."""
    yield from (op.argval for op in dis.get_instructions(code) if op.opname == "LOAD_GLOBAL")
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from globals_read(const)


def surroundings(
    definition: NestedFunction, source: str, namespace: Mapping[str, Any], around: Mapping[str, Any] | None = None
) -> Surroundings:
    """What the header of a definition can read: attributes of its class, or variables of the function `around` it."""
    around_it = _bound_around(definition.qualname, functions_in_text(source))
    bound = frozenset[str]().union(*(names for _, names in around_it))
    owner = resolve(definition.qualname.rpartition(".")[0], namespace)
    values = dict(vars(owner)) if isinstance(owner, type) else dict(around or {})
    return Surroundings(values, bound - values.keys())


def variables_around(function: FunctionType, frame: FrameType | None) -> dict[str, Any]:
    """The variables of the call that has made a function, if it waits for `frame` and holds it; else none."""
    maker = native_code(function.__code__).co_qualname.rpartition(".<locals>.")[0]
    while frame is not None:
        if maker and native_code(frame.f_code).co_qualname == maker and frame.f_globals is function.__globals__:
            bound = dict(frame.f_locals)
            forget(frame)
            if any(value is function for value in bound.values()):
                return {name: value for name, value in bound.items() if not name.startswith(HIDDEN)}
        frame = frame.f_back
    return {}


__all__ = ["check_captures", "check_closure", "code_for", "globals_read", "surroundings", "variables_around"]

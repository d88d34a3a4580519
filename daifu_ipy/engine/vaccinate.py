"""Vaccination: swap a function's code in place for code that can be recovered in situ, and undo it.

The function object stays; its ``__code__`` is exchanged, so every reference to it is protected. Functions nested in it,
and the methods of classes in it, are vaccinated with it, each as a unit of its own.
"""

from __future__ import annotations

import ast
import builtins
import copy
import dis
import functools
import inspect
import linecache
import re
import types
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any, TypeVar

from daifu_ipy.engine.applying import procedure
from daifu_ipy.engine.barrier import Barrier
from daifu_ipy.engine.compiling import (
    FUTURE_FLAGS,
    bare_arguments,
    bare_function,
    compile_function,
    finish,
)
from daifu_ipy.engine.invariants import InternalError, check
from daifu_ipy.engine.location import RAISING, CannotResume, Location
from daifu_ipy.engine.managers import settings
from daifu_ipy.engine.nodes import new_placeholder
from daifu_ipy.engine.resume import as_function
from daifu_ipy.engine.scopes import HIDDEN
from daifu_ipy.engine.selftest import patches_work
from daifu_ipy.engine.shapes import Options, Shapes
from daifu_ipy.engine.texts import text_of
from daifu_ipy.engine.unit import (
    CannotVaccinate,
    FunctionNode,
    NestedFunction,
    Unit,
    blocks,
    nested_functions,
    start_of,
)

F = TypeVar("F")


class NotVaccinated(UserWarning):
    """A unit runs plainly; the message names the construct and its line."""


@dataclass(frozen=True)
class Vaccinated:
    """A vaccinated unit: its code, the native code it stands for, and its barrier."""

    code: CodeType
    plain: CodeType
    barrier: Barrier


def vaccinate(fn: F, *, strict: bool = False) -> F:
    """Make a function recoverable in situ; use it as a decorator or call it.

    Parameters
    ----------
    fn
        A function, bound method, staticmethod, classmethod, functools.partial, a class (all its own methods), or a
        module (all functions and classes that it defines).
    strict
        Raise `CannotVaccinate` where a function can't be vaccinated. Otherwise it stays plain, with one warning.

    Returns
    -------
    object
        `fn` itself: its code is swapped in place, so that every reference to it is protected.

    Raises
    ------
    CannotVaccinate
        With `strict`; the message names the construct and its line.
    TypeError
        `fn` holds no Python function.
    """
    functions = list(functions_in(fn))
    for function in functions:
        if is_vaccinated(function):
            continue
        try:
            made = vaccinated_function(function)
        except CannotVaccinate as reason:
            if strict:
                raise
            warnings.warn(f"daifu: {function.__qualname__} runs plainly: {reason}", NotVaccinated, stacklevel=2)
            settings.remembered.give_up(function)
            continue
        function.__code__ = made.code
    settings.remembered.add(fn, functions)
    return fn


def unvaccinate(fn: F) -> F:
    """Give a vaccinated function its native code back; returns `fn` itself.

    Calls that are running finish with the code they have.
    """
    functions = list(functions_in(fn))
    for function in functions:
        for barrier in function.__code__.co_consts:
            if type(barrier) is Barrier:
                function.__code__ = barrier.unit.plain
    settings.remembered.discard(fn, functions)
    return fn


def is_vaccinated(function: FunctionType) -> bool:
    """Whether the function's code is vaccinated now (something else may have swapped it since)."""
    return any(type(const) is Barrier for const in function.__code__.co_consts)


def functions_in(obj: object) -> Iterator[FunctionType]:
    """The Python functions that an object stands for."""
    match obj:
        case FunctionType():
            yield inspect.unwrap(obj, stop=lambda f: not isinstance(getattr(f, "__wrapped__", None), FunctionType))
        case types.MethodType() | staticmethod() | classmethod():
            yield from functions_in(obj.__func__)
        case functools.partial():
            yield from functions_in(obj.func)
        case property():
            for accessor in (obj.fget, obj.fset, obj.fdel):
                if isinstance(accessor, FunctionType):
                    yield from functions_in(accessor)
        case type():
            for member in list(vars(obj).values()):
                if isinstance(member, FunctionType | staticmethod | classmethod | property):
                    yield from (f for f in functions_in(member) if _has_text(f))
        case types.ModuleType():
            for member in list(vars(obj).values()):
                if isinstance(member, FunctionType | type) and member.__module__ == obj.__name__:
                    yield from functions_in(member)
        case _:
            is_wrapper = inspect.getattr_static(obj, "__wrapped__", None) is not None  # some objects have every name
            inner = getattr(obj, "__wrapped__", None) if is_wrapper else None
            if not callable(inner):
                raise TypeError(f"vaccinate takes a Python function, method or class, not {type(obj).__name__}")
            yield from functions_in(inner)


NO_FILE = "<string>"
"""The file name of generated code, and of what IPython's ``%autoreload`` adds to a module or class."""


def _has_text(function: FunctionType) -> bool:
    """Whether a method may have a text: a generated one, as of a dataclass, has none, and knows its class."""
    code = function.__code__
    return bool(linecache.getlines(code.co_filename)) or (code.co_filename == NO_FILE and "." not in code.co_qualname)


def vaccinated_function(function: FunctionType) -> Vaccinated:
    """Find a function's source and vaccinate it.

    Raises
    ------
    CannotVaccinate
        Its source can't be had or is not what runs, or a construct in it can't be vaccinated.
    """
    code = function.__code__
    if code.co_name == "<lambda>":
        raise CannotVaccinate("a lambda is left as it is; write a def")
    try:
        found = find_function(code)
    except CannotVaccinate as reason:
        from daifu_ipy.engine.reloaded import find_again

        found, code = find_again(function, reason)
    return vaccinated(found.node, code, found.source, function.__globals__, found.class_name)


@dataclass(frozen=True)
class FoundFunction:
    """A function's definition in the text that it was compiled from."""

    node: FunctionNode
    source: str
    class_name: str | None
    qualname: str
    ordinal: int  # among the definitions of this name
    namesakes: int  # how many there are


def class_in(qualname: str) -> str | None:
    """The class whose private names a function of this qualified name uses."""
    parts = [part.split(".") for part in qualname.split(".<locals>.")]
    return next((part[-2] for part in reversed(parts) if len(part) > 1), None)


def parse(text: str, filename: str = "<unknown>") -> ast.Module:
    """Parse a text that may be indented as a whole, as that of a method is; positions are those of the text."""
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    if not first[:1].isspace():
        return ast.parse(text, filename)
    try:
        tree = ast.parse(f"if 1:\n{text}", filename)
    except SyntaxError as error:
        raise _moved_up(error) from None
    inner = tree.body[0]
    if not isinstance(inner, ast.If) or len(tree.body) != 1:
        raise SyntaxError("the text is indented unevenly", (filename, 1, 1, first))
    ast.increment_lineno(tree, -1)
    return ast.Module(inner.body, [])


def _moved_up(error: SyntaxError) -> SyntaxError:
    """The error of a text that stood one line lower."""

    def moved(line: int | None) -> int | None:
        return None if line is None else max(line - 1, 1)

    text = re.sub(r"\bon line (\d+)", lambda found: f"on line {int(found[1]) - 1}", error.msg)
    place = (error.filename, moved(error.lineno), error.offset, error.text, moved(error.end_lineno), error.end_offset)
    return type(error)(text, place)


def find_function(code: CodeType) -> FoundFunction:
    """Find the definition that `code` was compiled from, by its file and line.

    Raises
    ------
    CannotVaccinate
        The source can't be had, or is not what runs.
    """
    source = text_of(code.co_filename)
    if not source:
        raise CannotVaccinate(f"the source of {code.co_qualname} ({code.co_filename}) can't be had")
    try:
        every = functions_in_text(source, code.co_filename)
    except SyntaxError as error:
        raise CannotVaccinate(f"{code.co_filename} does not parse any more: line {error.lineno}: {error.msg}") from None
    for found in every:
        if found.node.name == code.co_name and start_of(found.node)[0] == code.co_firstlineno:
            class_name = found.class_name or class_in(code.co_qualname)  # the text may hold a method alone
            _check_same(found, code, class_name)
            same_name = [other for other in every if other.qualname == found.qualname]
            ordinal = next(n for n, other in enumerate(same_name) if other is found)
            node = copy.deepcopy(found.node)  # units nest the items of its `with` statements
            return FoundFunction(node, source, class_name, found.qualname, ordinal, len(same_name))
    raise CannotVaccinate(
        f"{code.co_filename} has no function {code.co_name} in line {code.co_firstlineno}: "
        "was the file edited since it was imported?"
    )


@functools.lru_cache(maxsize=8)
def functions_in_text(source: str, filename: str = "<unknown>") -> tuple[NestedFunction, ...]:
    """All functions in a text, to look at only: a text is asked for again and again."""
    return tuple(all_functions(parse(source, filename).body))


def native(node: FunctionNode, like: CodeType, class_name: str | None, filename: str, flags: int) -> CodeType:
    """Compile a function natively, in the scope of the code `like`."""
    args = bare_arguments(node.args)
    code = compile_function(bare_function(node, args, node.body), like.co_freevars, class_name, filename, flags)
    return finish(code, like, {}, patched=False)


def _check_same(found: NestedFunction, code: CodeType, class_name: str | None) -> None:
    """The text must be what runs; a test tool that rewrites ``assert`` is let through."""
    node = found.node
    expected = f"the source of {code.co_qualname} in line {node.lineno} is not the code that runs: was it edited?"
    if isinstance(node, ast.AsyncFunctionDef) != bool(code.co_flags & 0x280):
        raise CannotVaccinate(expected)
    try:
        plain = native(node, code, class_name, code.co_filename, code.co_flags)
    except SyntaxError:
        raise CannotVaccinate(expected) from None
    if not says_same(plain, code):
        raise CannotVaccinate(expected)


VARYING = frozenset({"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "PUSH_NULL", "NOP"})
"""How a call of an attribute is compiled depends on the imports of the whole module."""


def _operations(code: CodeType) -> list[tuple[str, object]]:
    """The instructions of code, as far as they do not depend on the text around it."""
    jumps = {*dis.hasjrel, *dis.hasjabs}
    return [
        (op.opname, None if op.opcode in jumps or op.opcode in dis.hasconst else op.argval)
        for op in dis.get_instructions(code)
        if op.opname not in VARYING
    ]


def says_same(new: CodeType, old: CodeType) -> bool:
    """Whether two codes do the same, at whatever lines."""
    if any(name.startswith("@py") for name in (*old.co_varnames, *old.co_names)):
        return new.co_argcount == old.co_argcount
    return (
        _operations(new) == _operations(old)
        and set(new.co_names) == set(old.co_names)
        and (new.co_varnames, new.co_cellvars, new.co_freevars) == (old.co_varnames, old.co_cellvars, old.co_freevars)
        and len(new.co_consts) == len(old.co_consts)
        and all(
            says_same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else type(a) is type(b) and a == b
            for a, b in zip(new.co_consts, old.co_consts, strict=True)
        )
    )


def all_functions(
    statements: list[ast.stmt], prefix: str = "", class_name: str | None = None
) -> Iterator[NestedFunction]:
    """Every function in a text, nested ones after the one that they are in."""
    for nested in nested_functions(statements, prefix, class_name):
        yield nested
        yield from all_functions(nested.node.body, f"{nested.qualname}.<locals>.", nested.class_name)


def vaccinated(
    node: FunctionNode,
    plain: CodeType,
    source: str,
    namespace: dict[str, Any],
    class_name: str | None,
    shared: Iterable[str] = (),
) -> Vaccinated:
    """Vaccinate one function definition and the functions in it.

    Parameters
    ----------
    node
        The definition, with the positions that `plain` has.
    plain
        The native code.
    source
        The whole text.
    namespace
        The globals that it runs with.
    class_name
        The class around it, for private names.
    shared
        Variables that stay shared with older code (`Unit`).
    """
    unit = Unit(node, plain, source, class_name=class_name, shared=shared)
    return _compiled(_units_in(unit), namespace)


def vaccinated_cell(
    tree: ast.Module,
    plain: CodeType,
    source: str,
    namespace: dict[str, Any],
    options: Options,
    only: frozenset[str] | None,
) -> Vaccinated:
    """Vaccinate a notebook cell and the functions in it (`only`: these by their qualified names)."""
    unit = Unit(tree, plain, source, qualname="<module>")
    made = _compiled(_units_in(unit, only), namespace, options)
    made.barrier.is_active = only is None
    return made


@dataclass
class _Family:
    """A unit and the units of the functions in it."""

    unit: Unit
    children: dict[FunctionNode, _Family]


def _units_in(unit: Unit, only: frozenset[str] | None = None) -> _Family:
    prefix = "" if unit.is_notebook_cell else f"{unit.qualname}.<locals>."
    children: dict[FunctionNode, _Family] = {}
    for nested in nested_functions(unit.node.body, prefix, unit.class_name):
        code = code_of(nested, unit.plain)
        wanted = only is None or nested.qualname in only or any(nested.qualname.startswith(f"{name}.") for name in only)
        if code is not None and wanted:
            child = Unit(nested.node, code, unit.source, class_name=nested.class_name, qualname=nested.qualname)
            children[nested.node] = _units_in(child)
    return _Family(unit, children)


def code_of(nested: NestedFunction, plain: CodeType) -> CodeType | None:
    """The native code of a nested function."""
    line = start_of(nested.node)[0]
    for const in plain.co_consts:
        if isinstance(const, CodeType):
            if (
                const.co_name == nested.node.name
                and const.co_firstlineno == line
                and const.co_qualname == nested.qualname
            ):
                return const
            inner = const.co_qualname.removesuffix("<generic parameters of " + nested.node.name + ">")
            if nested.qualname.startswith(const.co_qualname + ".") or inner != const.co_qualname or "<generic" in inner:
                found = code_of(nested, const)
                if found is not None:
                    return found
    return None


def _compiled(family: _Family, namespace: dict[str, Any], options: Options | None = None) -> Vaccinated:
    unit = family.unit
    shadowed = frozenset(name for name in namespace if name in vars(builtins))
    chosen = replace(options or Options(), shadowed=shadowed)
    flags = unit.plain.co_flags & FUTURE_FLAGS
    if not patches_work():
        chosen = replace(chosen, patched=False)
    try:
        return _compile(family, namespace, chosen, flags)
    except SyntaxError as error:
        if "nested blocks" in str(error):
            raise CannotVaccinate(
                f"blocks are nested too deeply around line {error.lineno or unit.node.body[0].lineno}"
            ) from None
        raise InternalError(f"the vaccinated code of {unit.qualname} does not compile: {error}") from error
    except RecursionError:
        raise CannotVaccinate(f"{unit.qualname} is nested too deeply") from None


def _compile(family: _Family, namespace: dict[str, Any], options: Options, flags: int) -> Vaccinated:
    barriers: dict[str, Barrier] = {}
    shapes = _barriers(family, namespace, options, flags, barriers)
    unit = family.unit
    node = as_function(unit, [])
    args = bare_arguments(node.args)
    bare = bare_function(node, args, shapes.function_body())
    free = [] if unit.is_notebook_cell else sorted({*unit.plain.co_freevars, *(unit.shared - unit.scope.bound)})
    code = compile_function(bare, free, unit.class_name, unit.plain.co_filename, flags)
    made = finish(code, unit.plain, dict(barriers), patched=options.patched)
    _check_names(unit, made)
    _note_codes(made)
    for barrier in barriers.values():
        _check_nesting(barrier)
    return Vaccinated(made, unit.plain, barriers[shapes.placeholder])


DEEP = 6
"""From this depth on it is tried whether the rest of a unit can be compiled at its deepest statement."""


def _check_nesting(barrier: Barrier) -> None:
    """Python allows 20 nested blocks, and an unfinished procedure nests deeper than its unit."""
    unit = barrier.unit
    deepest = max(unit.number, key=lambda statement: _depth(unit, statement), default=None)
    if deepest is None or _depth(unit, deepest) < DEEP:
        return
    finals = sum(block.field == "finalbody" for _, block in unit.path(deepest))
    location = Location(deepest, "statement", 0, (RAISING,) * finals)
    try:
        procedure(barrier, location, unit.plain_locals)
    except CannotResume:
        raise CannotVaccinate(f"blocks are nested too deeply around line {deepest.lineno}") from None
    barrier.procedures.clear()


def _depth(unit: Unit, statement: ast.stmt) -> int:
    return sum(3 if block.field in ("handler", "finalbody") else 1 for _, block in unit.path(statement))


def _note_codes(code: CodeType) -> None:
    """Tell each barrier which code is its unit's."""
    for const in code.co_consts:
        if type(const) is Barrier:
            const.code = code
        elif isinstance(const, CodeType):
            _note_codes(const)


def _barriers(
    family: _Family, namespace: dict[str, Any], options: Options, flags: int, barriers: dict[str, Barrier]
) -> Shapes:
    """Make the shapes and barriers of a unit and of the units in it."""
    inner_options = replace(options, displayed=frozenset())
    children = {
        node: _barriers(child, namespace, inner_options, flags, barriers) for node, child in family.children.items()
    }
    shapes = Shapes(family.unit, new_placeholder(), children, options)
    barrier = Barrier(family.unit, shapes, namespace, flags)
    barrier.barriers = barriers
    barriers[shapes.placeholder] = barrier
    return shapes


def _check_names(unit: Unit, code: CodeType) -> None:
    """No name of the user's was added, lost or changed in scope."""
    if unit.is_notebook_cell:
        added = {name for name in code.co_varnames if not name.startswith(HIDDEN)} - unit.inlined
        check(not added, lambda: f"names of a notebook cell became local: {sorted(added)}")
        return
    for what in ("co_varnames", "co_cellvars", "co_freevars") if not unit.shared else ():
        ours = {name for name in getattr(code, what) if not name.startswith(HIDDEN)}
        theirs = {name for name in getattr(unit.plain, what) if not name.startswith("@")}
        ours -= set(unit.plain_locals) - theirs  # annotated and never used: no local of the native code
        check(ours == theirs, lambda: f"{what} of {unit.qualname} changed: {sorted(ours ^ theirs)}")  # noqa: B023
    args = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    plain = unit.plain
    check(
        args == (plain.co_argcount, plain.co_posonlyargcount, plain.co_kwonlyargcount),
        lambda: f"the signature of {unit.qualname} changed",
    )


__all__ = [
    "CannotVaccinate", "NotVaccinated", "Vaccinated", "blocks", "find_function", "functions_in",
    "is_vaccinated", "unvaccinate", "vaccinate", "vaccinated", "vaccinated_cell", "vaccinated_function",
]  # fmt: skip

"""From vaccinated AST to code objects that look like the user's own.

A function's code is compiled inside a factory that gives it its class (private names), its closure and nothing else;
nothing is executed. `finish` then puts the unit's barrier in place of its placeholder, restores qualified names and
flags, and `patch` rewrites four kinds of instruction of the same size:

- ``COPY 1; STORE_FAST i; GET_ITER`` becomes ``GET_ITER; COPY 1; STORE_FAST i``: the slot holds the very iterator;
- ``raise place from exception`` of a unit's barrier becomes ``RERAISE 1``, which ends the frame at the crash;
- ``UNPACK_SEQUENCE 2`` into an exit slot becomes ``BEFORE_WITH`` (``BEFORE_ASYNC_WITH``): the interpreter's own entry,
with
  its order of look-ups and its messages.

A Python version whose self-test fails gets helpers instead (`Options.patched` is False): slower, never another meaning.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import dis
import itertools
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from daifu_ipy.engine.invariants import check
from daifu_ipy.engine.scopes import HIDDEN
from daifu_ipy.engine.unit import FunctionNode

FACTORY = f"{HIDDEN}factory"
FUNCTION = f"{HIDDEN}function"  # its own name would be a variable of the factory
OPTIMIZED, NESTED = 0x1, 0x10
FUTURE_FLAGS = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names}) & ~NESTED

COPY, STORE_FAST, EXTENDED_ARG = (dis.opmap[name] for name in ("COPY", "STORE_FAST", "EXTENDED_ARG"))
GET_ITER, GET_AITER, UNPACK = (dis.opmap[name] for name in ("GET_ITER", "GET_AITER", "UNPACK_SEQUENCE"))
STORE_PAIR = dis.opmap.get("STORE_FAST_STORE_FAST", -1)
RAISE, RERAISE = dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]
NOP, CACHE = dis.opmap["NOP"], dis.opmap["CACHE"]
ENTRIES = {False: dis.opmap.get("BEFORE_WITH", -1), True: dis.opmap.get("BEFORE_ASYNC_WITH", -1)}
LOAD_FAST, GET_AWAITABLE = dis.opmap["LOAD_FAST"], dis.opmap["GET_AWAITABLE"]
CALLING = frozenset(  # what stands between a slot and the await of a call of it
    dis.opmap[name]
    for name in (
        "PUSH_NULL",
        "PRECALL",
        "CALL",
        "CALL_FUNCTION_EX",
        "LOAD_CONST",
        "CACHE",
        "EXTENDED_ARG",
        "NOP",
    )
    if name in dis.opmap
)
STORES = frozenset(dis.opmap[name] for name in ("STORE_FAST", "STORE_DEREF", "STORE_GLOBAL", "STORE_NAME"))


def compile_function(
    node: FunctionNode, free: Sequence[str], class_name: str | None, filename: str, flags: int
) -> CodeType:
    """Compile a bare function (no decorators, defaults or annotations) whose free variables are `free`."""
    position = {"lineno": node.lineno, "col_offset": 0, "end_lineno": node.lineno, "end_col_offset": 0}
    parameters = ast.arguments([], parameters_named(free, position), None, [], [], None, [])
    factory: ast.stmt = _function(FACTORY, parameters, [node], position)
    if class_name is not None:
        factory = _class(class_name, [factory], position)
    tree = ast.Module([factory], [])
    with quietly():
        code: CodeType = compile(tree, filename, "exec", flags=flags & FUTURE_FLAGS, dont_inherit=True)
    for name in [*([class_name] if class_name is not None else []), FACTORY, node.name]:
        code = next(const for const in code.co_consts if isinstance(const, CodeType) and const.co_name == name)
    return code


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without what parsing and compiling warn of: that was said for the native code.

    `warnings.catch_warnings` would make the interpreter forget which of the user's warnings it has shown already.
    """
    thread = threading.get_ident()
    with _one_at_a_time:  # they must be undone in order, or what one thread has put there would stay
        shown, is_active = warnings.showwarning, True

        def show(*args: Any, **named: Any) -> None:
            if not is_active or threading.get_ident() != thread:
                shown(*args, **named)

        warnings.showwarning = show
        try:
            yield
        finally:
            warnings.showwarning, is_active = shown, False  # others may have saved it meanwhile, and put it back


_one_at_a_time = threading.RLock()


def parameters_named(names: Sequence[str], position: dict[str, int]) -> list[ast.arg]:
    """Parameters without annotations."""
    made = []
    for name in names:
        arg = ast.arg(name)
        arg.lineno, arg.col_offset = position["lineno"], position["col_offset"]
        arg.end_lineno, arg.end_col_offset = position["end_lineno"], position["end_col_offset"]
        made.append(arg)
    return made


def _function(name: str, args: ast.arguments, body: list[ast.stmt], position: dict[str, int]) -> ast.FunctionDef:
    made = ast.FunctionDef(
        name=name, args=args, body=body, decorator_list=[], returns=None, type_comment=None, **position
    )
    if sys.version_info >= (3, 12):
        made.type_params = []
    return made


def _class(name: str, body: list[ast.stmt], position: dict[str, int]) -> ast.ClassDef:
    made = ast.ClassDef(name=name, bases=[], keywords=[], body=body, decorator_list=[], **position)
    if sys.version_info >= (3, 12):
        made.type_params = []
    return made


def bare_function(node: FunctionNode, args: ast.arguments, body: list[ast.stmt]) -> FunctionNode:
    """`node` without what is evaluated outside its own code."""
    line = min([node, *node.decorator_list], key=lambda part: part.lineno).lineno  # where its code says that it begins
    position = {"lineno": line, "col_offset": 0, "end_lineno": line, "end_col_offset": 0}
    made = type(node)(
        name=FUNCTION, args=args, body=body, decorator_list=[], returns=None, type_comment=None, **position
    )
    if sys.version_info >= (3, 12):
        made.type_params = []
    return made


def bare_arguments(args: ast.arguments) -> ast.arguments:
    """The same parameters without annotations and defaults, which belong to the function object."""

    def bare(arg: ast.arg) -> ast.arg:
        return ast.copy_location(ast.arg(arg.arg, None, None), arg)

    def optional(arg: ast.arg | None) -> ast.arg | None:
        return None if arg is None else bare(arg)

    return ast.arguments(
        posonlyargs=[bare(arg) for arg in args.posonlyargs],
        args=[bare(arg) for arg in args.args],
        vararg=optional(args.vararg),
        kwonlyargs=[bare(arg) for arg in args.kwonlyargs],
        kw_defaults=[None] * len(args.kwonlyargs),
        kwarg=optional(args.kwarg),
        defaults=[],
    )


def finish(code: CodeType, plain: CodeType, barriers: Mapping[str, object], *, patched: bool) -> CodeType:
    """Make compiled code the user's own: `plain` gives its name and flags, `barriers` replace their placeholders."""
    prefix, name = code.co_qualname, plain.co_qualname

    def renamed(qualname: str) -> str:
        inside = f"{prefix}.<locals>."
        if not qualname.startswith(inside):
            return qualname
        rest = qualname.removeprefix(inside)
        return rest if name == "<module>" else f"{name}.<locals>.{rest}"

    def constant(const: object) -> object:
        return barriers.get(const, renamed(const)) if isinstance(const, str) else const

    def walk(inner: CodeType, qualname: str, nested: int) -> CodeType:
        is_function = inner.co_flags & OPTIMIZED and not (inner is code and name == "<module>")
        around = NESTED if is_function else nested
        consts = tuple(
            walk(const, renamed(const.co_qualname), around) if isinstance(const, CodeType) else constant(const)
            for const in inner.co_consts
        )
        flags = inner.co_flags & ~NESTED | (nested if is_function else 0)
        made = inner.replace(co_consts=consts, co_qualname=qualname, co_flags=flags)
        return patch(made) if patched else made

    return walk(code, name, plain.co_flags & NESTED).replace(co_name=plain.co_name)


def patch(code: CodeType) -> CodeType:
    """Rewrite the slots of loops and ``with`` entries in `code` (not in code nested in it)."""
    slots = [name for name in code.co_varnames if _has_letter(name, "ixy")]
    text = bytearray(code.co_code)
    for at in _occurrences(text, COPY, 1):
        _patch_loop(code, text, at)
    for at in _occurrences(text, UNPACK, 2):
        _patch_with(code, text, at)
    for at in _occurrences(text, RAISE, 2):
        line, end_line, column, end_column = next(itertools.islice(code.co_positions(), at // 2, None))
        if (line, column) == (end_line, end_column):  # ours
            text[at : at + 2] = bytes([RERAISE, 1])
    if any(_has_letter(name, "y") for name in slots):
        _patch_awaits(code, text)
    return code.replace(co_code=bytes(text))


def _occurrences(text: bytearray, instruction: int, argument: int) -> list[int]:
    """Where an instruction stands with this argument."""
    wanted, found = bytes([instruction, argument]), []
    at = text.find(wanted)
    while at >= 0:
        if at % 2 == 0:
            found.append(at)
        at = text.find(wanted, at + 1)
    return found


def _patch_awaits(code: CodeType, text: bytearray) -> None:
    """Say where an awaited object comes from, for the message if it can't be awaited."""
    entered = {name[len(HIDDEN) + 1 :] for name in code.co_varnames if _has_letter(name, "y")}
    source = 0
    for at in range(0, len(text), 2):
        if text[at] == LOAD_FAST:
            _, index = _argument(text, at)
            name = code.co_varnames[index] if index < len(code.co_varnames) else ""
            if name[len(HIDDEN) + 1 :] in entered and (_has_letter(name, "v") or _has_letter(name, "x")):
                source = 1 if _has_letter(name, "v") else 2
        elif text[at] == GET_AWAITABLE:
            text[at + 1] = source or text[at + 1]
            source = 0
        elif text[at] not in CALLING:
            source = 0


def _has_letter(name: str, letters: str) -> bool:
    return name.startswith(HIDDEN) and name[len(HIDDEN)] in letters


def _argument(text: bytearray, at: int) -> tuple[int, int]:
    """The instruction at or after `at` behind its prefixes, and its argument."""
    high = 0
    while text[at] == EXTENDED_ARG:
        high = (high | text[at + 1]) << 8
        at += 2
    return at, high | text[at + 1]


def _is_slot(code: CodeType, index: int, letters: str) -> bool:
    return index < len(code.co_varnames) and _has_letter(code.co_varnames[index], letters)


def _patch_loop(code: CodeType, text: bytearray, at: int) -> None:
    store, slot = _argument(text, at + 2)
    if text[store] == STORE_FAST and _is_slot(code, slot, "i") and text[store + 2] in (GET_ITER, GET_AITER):
        text[at : store + 4] = text[store + 2 : store + 4] + text[at : store + 2]


def _patch_with(code: CodeType, text: bytearray, at: int) -> None:
    after = at + 2
    while text[after] == CACHE:
        after += 2
    first, argument = _argument(text, after)
    if text[first] == STORE_PAIR:
        slot = argument & 15
    elif text[first] in STORES:
        second, slot = _argument(text, first + 2)
        if text[second] != STORE_FAST:
            return
    else:
        return
    if not _is_slot(code, slot, "xy"):
        return
    text[at : at + 2] = bytes([ENTRIES[code.co_varnames[slot][len(HIDDEN)] == "y"], 0])
    text[at + 2 : after] = bytes([NOP, 0]) * ((after - at - 2) // 2)


def function_from(code: CodeType, namespace: dict[str, Any], closure: Mapping[str, CellType]) -> FunctionType:
    """A function over existing closure cells."""
    missing = [name for name in code.co_freevars if name not in closure]
    check(not missing, lambda: f"no cells for {missing} of {code.co_qualname}")
    return FunctionType(code, namespace, code.co_name, None, tuple(closure[name] for name in code.co_freevars))

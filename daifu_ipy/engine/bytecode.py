"""Code objects as far as exceptions need them: what covers an instruction, what follows it, which expression it takes.

And the values of such expressions, as far as they can be had without running code of the program.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import inspect
import sys
import types
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any, Final, NamedTuple

from daifu_ipy.engine.frames import look

Tree = tuple[Any, ...] | None  # an expression: (kind, *parts); None where it is not understood
Refs = tuple["weakref.ref[Any]", ...]
PYTHON: Final = tuple(sys.version_info)
UNKNOWN: Final = object()  # a value that can't be had without running code of the program
_IS_COROUTINE: Final = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE
IS_GENERATOR: Final = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR | _IS_COROUTINE


class _Op(NamedTuple):
    offset: int
    name: str
    arg: int | None
    value: Any
    line: int | None


LOADS: Final = {
    "LOAD_CONST": "const",
    "LOAD_GLOBAL": "global",
    "LOAD_NAME": "name",
    **dict.fromkeys(["LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_DEREF"], "local"),
}
_JUMPS: Final = {dis.opname[code] for code in (*dis.hasjrel, *dis.hasjabs)}
_LEAPS: Final = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
CALLS: Final = {"CALL", "CALL_KW", "CALL_FUNCTION_EX"}
_OPERANDS: Final = {"LOAD_ATTR": 1, "LOAD_METHOD": 1, "LOAD_SUPER_ATTR": 3, "IS_OP": 2, "UNARY_NOT": 1}
SUPER: Final = ("call", ("global", "super"), ())


EVENTS: Final = {
    *("PUSH_EXC_INFO", "POP_EXCEPT", "CHECK_EXC_MATCH", "CHECK_EG_MATCH", "LIST_APPEND", "PREP_RERAISE_STAR"),
    *("CALL_INTRINSIC_2", "RAISE_VARARGS", "RERAISE", "CLEANUP_THROW", "WITH_EXCEPT_START", "END_ASYNC_FOR"),
}


class Code:
    """What is known of one code object, the expensive parts on demand. It must not keep the code alive."""

    def __init__(self, code: CodeType) -> None:
        key = id(code)
        self.ref = weakref.ref(code, lambda _: _CODES.pop(key, None))
        self.entries = dis._parse_exception_table(code)  # type: ignore[attr-defined]
        self.starts = [entry.start for entry in self.entries]  # in order, and entries don't overlap
        self.memory: dict[tuple[int, int], Memory] = {}
        self._events: dict[int, tuple[int, ...]] = {}
        self._trees: dict[int, Tree] = {}

    def target(self, offset: int) -> int:
        """Offset of the handler for an exception at `offset`; -1 for none."""
        n = bisect_right(self.starts, offset) - 1
        return self.entries[n].target if n >= 0 and offset < self.entries[n].end else -1

    def index(self, offset: int) -> int:
        """Index of the instruction at `offset`, which may lie in its inline cache."""
        return bisect_right(self.offsets, offset) - 1

    @functools.cached_property
    def ops(self) -> list[_Op]:
        return list(_decode(self.ref()))

    @functools.cached_property
    def offsets(self) -> list[int]:
        return [op.offset for op in self.ops]

    @functools.cached_property
    def jumps(self) -> dict[int, int]:
        """From the index of each jump to that of its target."""
        ops = enumerate(self.ops)
        return {n: bisect_left(self.offsets, op.value) for n, op in ops if op.name in _JUMPS}

    @functools.cached_property
    def joins(self) -> set[int]:
        return set(self.jumps.values())

    @functools.cached_property
    def rebound(self) -> set[str]:
        """Names bound otherwise than by `except ... as`: what they will name is not known beforehand."""

        def is_plain(n: int) -> bool:
            after, before = self.ops[n + 1], self.ops[max(n - 3, 0) : n]
            is_unbinding = after.name.startswith("DELETE_") and after.value == self.ops[n].value
            return not is_unbinding and not any(op.name.startswith("CHECK_E") for op in before)

        return {op.value for n, op in enumerate(self.ops) if op.name.startswith("STORE_") and is_plain(n)}

    @functools.cached_property
    def returned(self) -> list[Tree]:
        """What is returned, wherever this code returns."""
        ends = [(n, op) for n, op in enumerate(self.ops) if op.name.startswith("RETURN_")]
        trees = (("const", op.value) if op.name == "RETURN_CONST" else self.operand(n) for n, op in ends)
        return [tree for tree, (_, op) in zip(trees, ends, strict=True) if op.name != "RETURN_GENERATOR"]

    def events(self, start: int) -> tuple[int, ...]:
        """The instructions that matter to an exception, the first on each way from index `start`."""
        if start not in self._events:
            found, todo, seen = list[int](), [start], set[int]()
            while todo:
                n = todo.pop()
                if n in seen:
                    continue
                seen.add(n)
                if self._matters(n):
                    found.append(n)
                else:
                    todo.extend(self._after(n))
            self._events[start] = tuple(found)
        return self._events[start]

    def _matters(self, n: int) -> bool:
        op = self.ops[n]
        if op.name in CALLS:
            call = self.tree(n) if self.ops[n + 1].name == "POP_TOP" else None
            return call is not None and last_name(call[1]) in {"exit", "quit", "_exit", "abort"}
        return op.name in EVENTS and (op.name != "CALL_INTRINSIC_2" or op.arg == 1)

    def _after(self, n: int) -> list[int]:
        name = self.ops[n].name
        jump = [self.jumps[n]] if n in self.jumps else []
        return jump if name in _LEAPS or name.startswith("RETURN_") else [*jump, n + 1]

    def header(self, at: int) -> tuple[int, int]:
        """For a WITH_EXCEPT_START: the `with`'s BEFORE_WITH (-1: not found), and the first of its body."""
        target = self.offsets[at - 1]
        first = self.index(min(entry.start for entry in self.entries if entry.target == target))
        near = range(first - 1, max(first - 12, -1), -1)  # async: the await of __aenter__ lies between
        return next((n for n in near if self.ops[n].name.startswith("BEFORE_")), -1), first

    def operand(self, n: int, *, below: bool = False) -> Tree:
        """The expression on top of the stack (or `below` that) when the instruction at index `n` begins."""
        if n in self.joins:
            return None
        return self.tree(self._parse(n - 1)[1] - 1 if below else n - 1)

    def tree(self, n: int) -> Tree:
        """The expression that the instruction at index `n` completes, if it is one piece of straight code."""
        if n not in self._trees:
            tree, start = self._parse(n)
            straight = not any(k in self.joins or k in self.jumps for k in range(start + 1, n + 1))
            self._trees[n] = tree if straight and start >= 0 else None
        return self._trees[n]

    def _parse(self, n: int) -> tuple[Tree, int]:
        """The expression that index `n` completes, and the index where it starts (below 0: not found)."""
        if n < 0:
            return None, n
        op = self.ops[n]
        if op.name in LOADS:
            return (LOADS[op.name], op.value), n
        if op.name in CALLS:
            return self._parse_call(op, n - 1)
        if op.name == "TO_BOOL":  # 3.13, before each test
            return self._parse(n - 1)
        if op.name == "BUILD_TUPLE":
            items, start = self._parse_items(n, op.arg or 0)
            return ("tuple", *items), start
        if op.name in _OPERANDS:
            items, start = self._parse_items(n, _OPERANDS[op.name])
            if op.name == "LOAD_SUPER_ATTR":
                return ("attr", SUPER, op.value), start
            is_attr = op.name.startswith("LOAD_")
            return ("attr", *items, op.value) if is_attr else (op.name, *items, op.arg), start
        return None, self._begin(n)

    def _parse_items(self, n: int, count: int) -> tuple[list[Tree], int]:
        """The `count` expressions before index `n`, and the index where the first starts."""
        items: list[Tree] = []
        for _ in range(count):
            item, n = self._parse(n - 1)
            items.insert(0, item)
        return items, n

    def _parse_call(self, op: _Op, n: int) -> tuple[Tree, int]:
        has_names = op.name == "CALL" and self.ops[n].name == "KW_NAMES"
        count = (op.arg or 0) + (op.name == "CALL_KW")
        if op.name == "CALL_FUNCTION_EX":
            count = 1 + (op.arg or 0) % 2
        args, n = self._parse_items(n + 1 - has_names, count)
        callee, n = self._parse(n - 1 - (self.ops[n - 1].name == "PUSH_NULL"))  # 3.13: above the callee
        is_plain = op.name == "CALL" and not has_names
        return ("call", callee, tuple(args) if is_plain else None), n - (self.ops[n - 1].name == "PUSH_NULL")

    def _begin(self, n: int) -> int:
        """Where the expression that index `n` completes begins, by stack effects alone."""
        missing = 1
        while n >= 0:
            op = self.ops[n]
            # 3.11 counts a call's arguments at PRECALL, which is left out
            effect = dis.stack_effect(dis.opmap[op.name], op.arg, jump=False)
            missing -= -1 - (op.arg or 0) if op.name == "CALL" else effect
            if missing <= 0:
                break
            n -= 1
        return n


_CODES: Final[dict[int, Code]] = {}  # by id: to hash a code object reads all of it


def code_of(code: CodeType) -> Code:
    known = _CODES.get(id(code))
    if known is None or known.ref() is not code:
        known = _CODES[id(code)] = Code(code)
    return known


def _decode(code: CodeType | None) -> Iterator[_Op]:
    """Plain instructions: prefixes merged into what they prefix, and 3.13's fused ones taken apart."""
    start = -1
    for item in dis.get_instructions(code) if code else ():
        start = item.offset if start < 0 else start
        if item.opname in {"EXTENDED_ARG", "PRECALL"}:
            continue
        line = item.positions.lineno if item.positions else None
        if item.opname in {"LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"}:
            yield _Op(start, item.opname[:-10].rstrip("_"), item.arg, item.argval[0], line)
            yield _Op(start, item.opname[-10:].lstrip("_"), item.arg, item.argval[1], line)
        else:
            yield _Op(start, item.opname, item.arg, item.argval, line)
        start = -1


def last_name(tree: Tree) -> object:
    return tree[-1] if tree and tree[0] in {"attr", "global", "name", "local"} else None


def text_of(tree: Tree) -> str:
    """How the program writes an expression, more or less."""
    match tree:
        case ("const", value):
            return repr(value)
        case ("global" | "name" | "local", name):
            return str(name)
        case ("attr", inner, name):
            return f"{text_of(inner)}.{name}"
        case ("tuple", *items):
            return f"({', '.join(map(text_of, items))})"
        case ("call", callee, args):
            return f"{text_of(callee)}({'...' if args is None else ', '.join(map(text_of, args))})"
    return "..."


class Scope:
    """Where the names of a code are looked up: its frame or, where it does not run, what makes one."""

    def __init__(self, frame: FrameType | None, maker: Any = None) -> None:
        self.frame, self.maker = frame, maker

    def value(self, tree: Tree) -> Any:
        match tree:
            case ("global", name):
                return self._global(name)
            case ("local", name):
                return self.local(name)
            case ("name", name):
                found = self.local(name)
                return self._global(name) if found is UNKNOWN else found
            case ("attr", ("call", callee, _), name):  # of a new instance of a class: its methods are known
                cls = self.value(callee)
                found = class_attribute(cls, name) if issubclass(type(cls), type) else UNKNOWN
                return found if type(found) is FunctionType else UNKNOWN
            case ("attr", inner, name):
                return _attribute(self.value(inner), name)
            case ("tuple", *items):
                return tuple(map(self.value, items))
            case ("const", value):
                return value
        return UNKNOWN

    def _global(self, name: str) -> Any:
        frame = self.frame
        names = frame.f_globals if frame is not None else self.maker.__globals__
        if name in names:
            return names[name]
        return (frame.f_builtins if frame is not None else vars(builtins)).get(name, UNKNOWN)

    def local(self, name: str) -> Any:
        if self.frame is None:
            return self._captured(name)
        return look(self.frame, name, UNKNOWN)

    def _captured(self, name: str) -> Any:
        """Of a function that does not run: `self`, if it is bound, and what it closes over."""
        code = self.maker.__code__
        if code.co_varnames[:1] == (name,):
            return getattr(self.maker, "__self__", UNKNOWN)
        for known, cell in zip(code.co_freevars, self.maker.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # an empty cell
                if known == name:
                    return cell.cell_contents
        return UNKNOWN


def _attribute(obj: Any, name: str) -> Any:
    """The attribute, if getting it runs no code of the user: no `__getattr__`, no property."""
    cls = type(obj)
    if obj is UNKNOWN or name == "__class__":
        return obj if obj is UNKNOWN else cls
    if issubclass(cls, types.ModuleType):
        return types.ModuleType.__getattribute__(obj, "__dict__").get(name, UNKNOWN)
    if issubclass(cls, type):
        return _plain(class_attribute(obj, name))
    common = class_attribute(cls, name)
    try:
        if type(common) is types.MemberDescriptorType:
            return common.__get__(obj)
        if hasattr(type(common), "__set__"):
            return UNKNOWN
        own = object.__getattribute__(obj, "__dict__")
        if name in own:
            return own[name]
    except (AttributeError, TypeError):  # an empty slot, or no __dict__
        pass
    found = _plain(common)
    return types.MethodType(found, obj) if type(common) is FunctionType else found


def class_attribute(cls: type, name: str) -> Any:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), UNKNOWN)


def _plain(found: Any) -> Any:
    """What was found in a class, unless it is a descriptor that would have to run."""
    if type(found) in {staticmethod, classmethod}:
        return found.__func__
    return found if type(found) is FunctionType or not hasattr(type(found), "__get__") else UNKNOWN


def flat(kinds: Any) -> tuple[Any, ...]:
    return kinds if type(kinds) is tuple else (kinds,)


def refs_to(kinds: Any) -> Refs:
    return tuple(map(weakref.ref, flat(kinds)))


class Memory(NamedTuple):
    """What a handler makes of exceptions of a class, and the values that this rests on. It keeps none alive."""

    cls: weakref.ref[type[BaseException]]
    facts: list[tuple[Tree, Refs]]
    fates: list[tuple[Refs | bool | None, str]]

    def holds(self, scope: Scope) -> bool:
        for tree, refs in self.facts:
            values = flat(scope.value(tree))
            if len(values) != len(refs):
                return False
            for ref, value in zip(refs, values, strict=True):
                if ref() is not value:
                    return False
        return True

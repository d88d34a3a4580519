"""How the handlers of one code object can end, for one exception."""

from __future__ import annotations

import builtins
import os
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from daifu_ipy.engine.bytecode import CALLS, Code, Scope, Tree, flat, text_of

if TYPE_CHECKING:
    from daifu_ipy.engine.handled import Place, _Judge

_MOST_STATES: Final = 500  # of one passage: what takes more is undecidable


class Flight:
    """An exception under way, known itself, or by its class, or not at all. Compared by identity."""

    __slots__ = ("cls", "exc")

    def __init__(self, cls: type[BaseException] | None, exc: BaseException | None = None) -> None:
        self.cls, self.exc = cls, exc

    @property
    def is_group(self) -> bool:
        return self.cls is not None and issubclass(self.cls, BaseExceptionGroup)

    def is_a(self, kind: Any) -> bool | None:
        """What `except kind` asks; by the MRO, as it does, never by `__subclasscheck__`."""
        if not issubclass(type(kind), type) or BaseException not in kind.__mro__:
            return None
        if self.cls is None:
            return True if kind in {Exception, BaseException} else None
        if kind in self.cls.__mro__:
            return True
        # calling one of these may make an instance of a subclass
        may_be = self.exc is None and self.cls in {OSError, BaseExceptionGroup} and self.cls in kind.__mro__
        return None if may_be else False

    def matches(self, kinds: Any) -> bool | None:
        found = {self.is_a(kind) for kind in flat(kinds)}
        return True if True in found else None if None in found else False

    def split(self, kinds: Any) -> tuple[Flight | None, Flight | None] | None:
        """What `except* kinds` takes of it, and what is left over; None if that can't be told."""
        whole = self.matches(kinds)
        if whole:
            return (self if self.is_group else grouped([self])), None
        if whole is None or not self.is_group:
            return None if whole is None else (None, self)
        if not isinstance(self.exc, BaseExceptionGroup):
            return None
        taken, left = self.exc.split(flat(kinds))
        return _known(taken), _known(left)


Fate = Flight | bool | None
Fates = dict[Fate, str]  # with the handler that made it so, for humans


def _known(exc: BaseException | None) -> Flight | None:
    return None if exc is None else Flight(type(exc), exc)


def grouped(flights: list[Flight]) -> Flight:
    """The exception group that carries these."""
    members = [flight.exc for flight in flights if flight.exc is not None]
    if len(members) < len(flights):
        return Flight(ExceptionGroup)
    group = BaseExceptionGroup("", members)
    return Flight(type(group), group)


class _Held(NamedTuple):
    """An exception being handled. In `except*`: what the clause took, the whole, the rest, the raised."""

    flight: Flight
    clause: int
    name: str | None = None
    whole: Flight | None = None
    left: Flight | None = None
    raised: tuple[Flight, ...] = ()


_Stack = tuple[_Held, ...]


class Passage:
    """One exception passing through one code: all ways on which its handlers can end.

    A state is an index, the exceptions being handled, and the one that waits on the value stack (`pending`:
    in clean-up code, which unbinds `as` names and restores the outer exception). Each opcode that matters has
    a step.
    """

    def __init__(self, judge: _Judge, code: Code, scope: Scope, place: Place | None = None) -> None:
        self.judge, self.code, self.scope, self.place = judge, code, scope, place
        self.fates: Fates = {}
        self.facts: list[tuple[Tree, Any]] = []
        self.is_lasting = True  # nothing but these facts was asked
        self.todo: list[tuple[int, _Stack, Flight | None]] = []

    def run(self, target: int, flight: Flight) -> Fates:
        """All fates, by way of the handler at offset `target`."""
        self.go(bisect_left(self.code.offsets, target), (), flight)
        seen = set[Any]()
        while self.todo and len(seen) < _MOST_STATES:
            state = self.todo.pop()
            if state not in seen:
                seen.add(state)
                for at in self.code.events(state[0]):
                    _STEPS[self.code.ops[at].name](self, at, state[1], state[2])
        return self.fates if self.fates and not self.todo else {None: "a handler that can't be followed"}

    def go(self, index: int, held: _Stack, pending: Flight | None) -> None:
        self.todo.append((index, held, pending))

    def throw(self, offset: int, held: _Stack, flight: Flight) -> None:
        target = self.code.target(offset)
        if target < 0:
            self.fates[flight] = ""
        else:
            self.go(bisect_left(self.code.offsets, target), held, flight)

    def value(self, tree: Tree) -> Any:
        found = self.scope.value(tree)
        self.facts.append((tree, found))
        return found

    def push(self, at: int, held: _Stack, pending: Flight | None) -> None:
        self.go(at + 1, (*held, _Held(pending or self.judge.anything, at)), None)

    def pop(self, at: int, held: _Stack, pending: Flight | None) -> None:
        if pending is None and len(held) == 1:
            self.fates[True] = self.describe(held[0].clause)
        else:
            self.go(at + 1, held[:-1], pending)

    def check(self, at: int, held: _Stack, pending: Flight | None) -> None:
        found = held[-1].flight.matches(self.value(self.code.operand(at)))
        if found is not False:
            self.go(at + 2, (*held[:-1], held[-1]._replace(clause=at, name=self._bound(at + 2))), None)
        if found is not True:
            self.go(self.code.jumps[at + 1], held, None)

    def check_group(self, at: int, held: _Stack, pending: Flight | None) -> None:
        top = held[-1] if held[-1].whole else held[-1]._replace(whole=held[-1].flight, left=held[-1].flight)
        parts = top.left.split(self.value(self.code.operand(at))) if top.left else (None, None)
        if parts is None:
            self.fates[None] = self.describe(at)
        elif parts[0] is None:
            self.go(self.code.jumps[at + 2], (*held[:-1], top), None)
        else:
            top = top._replace(flight=parts[0], left=parts[1], clause=at, name=self._bound(at + 3))
            self.go(at + 3, (*held[:-1], top), None)

    def collect(self, at: int, held: _Stack, pending: Flight | None) -> None:
        """LIST_APPEND: at the end of an `except*` clause it collects what the clause raised."""
        if pending is not None and not held:
            # it comes out of the clause itself: what else goes on with it was decided before
            names = {"PREP_RERAISE_STAR", "CALL_INTRINSIC_2"}
            end = next(op.offset for op in self.code.ops[at:] if op.name in names)
            self.throw(end, held, self.judge.anything)
            return
        if pending is not None:
            held = (*held[:-1], held[-1]._replace(raised=(*held[-1].raised, pending)))
        self.go(at + 1, held, None)

    def regroup(self, at: int, held: _Stack, pending: Flight | None) -> None:
        """The end of an `except*`: what was raised, and what no clause took, goes on as one."""
        whole, raised, left = held[-1].whole, held[-1].raised, held[-1].left
        if raised:
            rest = [*raised, *([left] if left else [])]
            left = grouped(rest) if whole and whole.is_group else raised[0]  # a naked one has one clause
        self.go(self.code.jumps[at + 2] if left else at + 3, held, left)

    def raise_(self, at: int, held: _Stack, pending: Flight | None) -> None:
        count = self.code.ops[at].arg
        raised = self._raised(self.code.operand(at, below=count == 2), held) if count else held[-1].flight
        self.throw(self.code.offsets[at], held, raised)

    def reraise(self, at: int, held: _Stack, pending: Flight | None) -> None:
        self.throw(self.code.offsets[at], held, pending or held[-1].flight)

    def exit_with(self, at: int, held: _Stack, pending: Flight | None) -> None:
        fate = self.judge.with_fate(self, at, held[-1].flight)
        jump = next(n for n in self.code.jumps if n > at and self.code.ops[n].name.endswith("IF_TRUE"))
        if isinstance(fate, Flight):
            self.throw(self.code.offsets[at], held, fate)
        elif fate is not False:
            self.go(self.code.jumps[jump], (*held[:-1], held[-1]._replace(clause=at)), None)
        if not fate:
            self.go(jump + 1, held, None)

    def end_async_for(self, at: int, held: _Stack, pending: Flight | None) -> None:
        flight = pending or self.judge.anything
        ends = flight.matches(StopAsyncIteration)
        if ends is not False:
            self.fates[ends] = self.describe(at)
        else:
            self.throw(self.code.offsets[at], held, flight)

    def call(self, at: int, held: _Stack, pending: Flight | None) -> None:
        tree = self.code.tree(at)
        callee = self.value(tree[1]) if tree else None
        if any(callee is known for known in _LAST_CALLS if known):
            self.throw(self.code.offsets[at], held, self.judge.of_class(SystemExit))
        else:
            self.go(at + 1, held, pending)

    def describe(self, clause: int) -> str:
        code, op = self.code.ref(), self.code.ops[clause]
        line = next((op.line for op in self.code.ops[clause:] if op.line), 0)
        what = _CLAUSES.get(op.name, "bare except or finally")
        if op.name.startswith("CHECK_E"):
            what += text_of(self.code.operand(clause))
        elif op.name == "WITH_EXCEPT_START":
            what += text_of(self.code.tree(self.code.header(clause)[0] - 1))
        return f"{what} in {code.co_name} ({os.path.basename(code.co_filename)}:{line})" if code else what

    def _bound(self, n: int) -> str | None:
        op = self.code.ops[n]
        return op.value if op.name.startswith("STORE_") else None

    def _raised(self, tree: Tree, held: _Stack) -> Flight:
        """What `raise tree` raises."""
        match tree:
            case ("call", ("attr", inner, "with_traceback"), _):
                return self._raised(inner, held)
            case ("call", ("attr", inner, "__class__"), _) | ("call", ("call", (_, "type"), (inner,)), _):
                return self.judge.of_class(self._raised(inner, held).cls)  # of the one being handled
            case ("call", callee, _):
                return self.judge.of_class(self.value(callee))
            case ("local" | "name" | "global", name):
                if name in self.code.rebound:
                    return self.judge.anything
                for one in reversed(held):
                    if one.name == name:
                        return one.flight
        value = self.value(tree)
        return (_known(value) if isinstance(value, BaseException) else None) or self.judge.of_class(value)


_STEPS: Final[dict[str, Callable[[Passage, int, _Stack, Flight | None], None]]] = {
    "PUSH_EXC_INFO": Passage.push,
    "POP_EXCEPT": Passage.pop,
    "CHECK_EXC_MATCH": Passage.check,
    "CHECK_EG_MATCH": Passage.check_group,
    "LIST_APPEND": Passage.collect,
    "PREP_RERAISE_STAR": Passage.regroup,  # 3.11
    "CALL_INTRINSIC_2": Passage.regroup,  # 3.12+, with argument 1
    "RAISE_VARARGS": Passage.raise_,
    "RERAISE": Passage.reraise,
    "CLEANUP_THROW": Passage.reraise,
    "WITH_EXCEPT_START": Passage.exit_with,
    "END_ASYNC_FOR": Passage.end_async_for,
    **dict.fromkeys(CALLS, Passage.call),
}
_CLAUSES: Final = {
    "CHECK_EXC_MATCH": "except ",
    "CHECK_EG_MATCH": "except* ",
    "WITH_EXCEPT_START": "with ",
    "END_ASYNC_FOR": "async for",
}
_LAST_CALLS: Final = [sys.exit, os._exit, os.abort, getattr(builtins, "exit", None), getattr(builtins, "quit", None)]


def agreed(fates: Iterable[Fate]) -> Fate:
    """The fate that all agree on, else None."""
    found = set(fates)
    return found.pop() if len(found) == 1 else None

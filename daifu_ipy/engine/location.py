"""Restart locations: at which statement, and at which part of it, a unit was interrupted and goes on.

A location is found from the instruction's source position and the slots that are bound, and named so that unfinished
procedures can be cached by it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from daifu_ipy.engine.invariants import check
from daifu_ipy.engine.unit import (
    ITERATIONS,
    JUMPS,
    LOOPS,
    TRIES,
    WITHS,
    Block,
    LoopNode,
    Position,
    TryNode,
    Unit,
    WithNode,
    covers,
)

Kind: TypeAlias = Literal[
    "statement",  # from its start
    "next",  # a for loop asks its iterator
    "unpack",  # an item goes into the target
    "target",  # an entered value goes into the ``as`` target
    "exit",  # a with block is left
    "exit with exception",
    "left with exception",  # the exit counts as done, the exception goes on
    "guard",  # of a case
    "except",  # the type expression of a handler is evaluated
    "after",  # the statement is left out; `index`: the completion that was pending at its exit
    "jump",  # the statement is left out for a return, break or continue
]

JumpKind: TypeAlias = type[ast.Return] | type[ast.Break] | type[ast.Continue]

Leaving: TypeAlias = tuple[str, str]
"""How something is left before the run goes on, and in which variable it is: ``"exit"`` or ``"async exit"`` (a bound
``__exit__``), ``"drop"`` (a live iterator), ``"unbind"`` (the ``as`` variable of a handler)."""

RAISING = -1
"""Pending completion: an exception waits (`shapes`, slot k)."""


class CannotResume(Exception):
    """Execution can't go on at this place; the message says why."""


@dataclass(frozen=True)
class Location:
    """Where a unit goes on.

    Parameters
    ----------
    statement
        The statement of the unit's AST.
    kind
        The part of it.
    index
        Which case or handler, or which pending completion of an ``exit``.
    pending
        For each ``finally`` body on the path, outermost first: the completion that waits for its end.
    jump
        The kind of jump, where a repair puts one there.
    left
        What a surgery leaves before the run goes on, outermost first.
    """

    statement: ast.stmt
    kind: Kind = "statement"
    index: int = 0
    pending: tuple[int, ...] = ()
    jump: JumpKind | None = None
    left: tuple[Leaving, ...] = ()

    def at(self, kind: Kind) -> Location:
        """The same place, another way to go on."""
        return replace(self, kind=kind, index=0)


def locate(unit: Unit, position: Position, bound: Mapping[str, object]) -> Location:
    """The restart location of a unit that was executing at `position` with these variables `bound`.

    Raises
    ------
    CannotResume
        The position is in no statement, or a slot that the location needs is not bound.
    """
    statement = unit.statement_at(position)
    if statement is None:
        raise CannotResume("the crashed instruction belongs to no statement of the unit")
    kind, index = _part(unit, statement, position, bound)
    path = unit.path(statement)
    _require(unit, path, bound)
    pending = tuple(_pending(unit, owner, bound) for owner, block in path if block.field == "finalbody")
    return Location(statement, kind, index, pending)


def is_open(
    unit: Unit, letter: str, statement: ast.stmt, bound: Mapping[str, object], index: int | None = None
) -> bool:
    """Whether a slot holds something (`bound` leaves out the slots that were cleared)."""
    return unit.slot(letter, statement, index) in bound


def _part(unit: Unit, statement: ast.stmt, position: Position, bound: Mapping[str, object]) -> tuple[Kind, int]:
    if isinstance(statement, ITERATIONS) and is_open(unit, "i", statement, bound):
        unpacking = covers(statement.target, position) and is_open(unit, "u", statement, bound)
        return ("unpack" if unpacking else "next"), 0
    if isinstance(statement, WITHS) and is_open(unit, "x", statement, bound):
        return _with_part(unit, statement, position, bound)
    if isinstance(statement, ast.Match):
        return _match_part(unit, statement, position, bound)
    if isinstance(statement, TRIES):
        for index, handler in enumerate(statement.handlers):
            if handler.type is not None and covers(handler.type, position):
                return "except", index
        raise CannotResume(f"the exception left the try statement in line {statement.lineno} in no statement of it")
    return "statement", 0


def _with_part(unit: Unit, statement: WithNode, position: Position, bound: Mapping[str, object]) -> tuple[Kind, int]:
    target = statement.items[0].optional_vars
    if target is not None and covers(target, position):
        return "target", 0
    if is_open(unit, "e", statement, bound):
        return "exit with exception", 0
    pending = bound.get(unit.slot("k", statement)) or 0
    check(isinstance(pending, int), lambda: f"no completion is pending at the exit in line {statement.lineno}")
    return "exit", pending if isinstance(pending, int) else 0


def _match_part(unit: Unit, statement: ast.Match, position: Position, bound: Mapping[str, object]) -> tuple[Kind, int]:
    if not is_open(unit, "m", statement, bound):
        return "statement", 0
    for index, case in enumerate(statement.cases):
        if case.guard is not None and covers(case.guard, position):
            return "guard", index
        if covers(case.pattern, position):
            return "guard", index
    return "statement", 0


def _pending(unit: Unit, owner: ast.stmt, bound: Mapping[str, object]) -> int:
    number = bound.get(unit.slot("k", owner))
    if isinstance(number, int) and number:
        return number
    return RAISING if is_open(unit, "p", owner, bound) else 0  # None: a jump out of the finally is under way


def _require(unit: Unit, path: Iterable[tuple[ast.stmt, Block]], bound: Mapping[str, object]) -> None:
    """Every open construct on the path must have what it needs to go on."""
    for owner, block in path:
        if isinstance(owner, ITERATIONS) and block.field == "body" and not is_open(unit, "i", owner, bound):
            raise CannotResume(f"the iterator of the loop in line {owner.lineno} is not known")
        if isinstance(owner, WITHS) and not is_open(unit, "x", owner, bound):
            raise CannotResume(f"the context manager entered in line {owner.lineno} is not known")


def barrier_of(unit: Unit, location: Location) -> str | None:
    """The key of the innermost barrier around `location`: the only one that may ask about it."""
    steps = unit.path(location.statement)
    if location.kind == "target" or (location.kind == "except" and isinstance(location.statement, TRIES)):
        steps.append((location.statement, Block(location.statement, "body", 0, [])))
        if location.kind == "except" and isinstance(location.statement, ast.TryStar):
            steps[-1] = (location.statement, Block(location.statement, "orelse", 0, []))
    return unit.innermost_barrier(steps)


def leaves_group_handler(unit: Unit, location: Location, jump: type[ast.stmt]) -> bool:
    """Whether a jump put at `location` would leave an ``except*`` clause, which Python does not allow."""
    for owner, block in reversed(unit.path(location.statement)):
        if isinstance(owner, LOOPS) and block.field == "body" and jump is not ast.Return:
            return False
        if isinstance(owner, ast.TryStar) and block.field == "handler":
            return True
    return False


def jump_target(unit: Unit, location: Location) -> LoopNode:
    """The loop that a ``break`` or ``continue`` at `location` would act on."""
    statement = location.statement
    if isinstance(statement, ast.While) or (isinstance(statement, LOOPS) and location.kind in ("next", "unpack")):
        return statement
    loop = unit.loop_around(location.statement)
    if loop is None:
        raise CannotResume("there is no loop around the crashed statement")
    return loop


__all__ = ["JUMPS", "CannotResume", "Kind", "Location", "TryNode", "barrier_of", "jump_target", "locate"]

"""What a surgery offers: where the run may go on, and what it would run again from there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from daifu_ipy.engine.editing import Stretch
from daifu_ipy.engine.matching import same
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.restarting import Place, Restarts
from daifu_ipy.engine.unit import LOOPS, WITHS


@dataclass(frozen=True)
class Choice:
    """One restart location of a surgery.

    Parameters
    ----------
    restart_at
        What names it in `Surgery`: ``"crash"``, ``"edit"`` or a line of the new source.
    line, statement, kind
        Where it is.
    reason
        Why there, and what becomes of what is open.
    repeats
        What has run before the crash and runs again, in order, each in one line.
    """

    restart_at: str | int
    line: int
    statement: str
    kind: str
    reason: str
    repeats: tuple[str, ...]


@dataclass(frozen=True)
class Preview:
    """What a surgery would do: where the run goes on, why there, which functions are replaced, and where else it could.

    `choices` begins with the default.
    """

    line: int
    statement: str
    kind: str
    reason: str
    replaced: tuple[str, ...]
    choices: tuple[Choice, ...]


def choices(restarts: Restarts, default: Place | None) -> tuple[Choice, ...]:
    """The default first (if there is one), then the crash, the edit, and the start of the interrupted iteration."""
    offered: dict[tuple[ast.stmt, str], Choice] = {}
    named = list(_named(restarts))
    if default is not None:
        known = next((name for name, place in named if place.location == default.location), None)
        named.insert(0, (known or restarts.line_of(default.location.statement), default))
    for name, place in named:
        offered.setdefault((place.location.statement, place.location.kind), _choice(restarts, name, place))
    return tuple(offered.values())


def _named(restarts: Restarts) -> Iterator[tuple[str | int, Place]]:
    """The places that can be named, and their names; those where the run can't go on are left out."""
    start = restarts.iteration_start
    names: list[str | int] = ["crash", "edit"]
    names += [] if start is None else [restarts.line_of(start)]
    for name in names:
        try:
            place = restarts.chosen(name)
        except Refusal:
            continue
        if name not in ("crash", "edit"):
            if place.location.statement is not start:
                continue  # another one begins in that line
            place = Place(place.location, "the interrupted iteration from its start", place.left)
        yield name, place


def _choice(restarts: Restarts, name: str | int, place: Place) -> Choice:
    statement, text = place.location.statement, restarts.new.text
    repeats = tuple(_one_line(line) for line in _repeats(restarts, place))
    return Choice(name, restarts.line_of(statement), text(statement), place.location.kind, place.text, repeats)


def _repeats(restarts: Restarts, place: Place) -> Iterator[str]:
    """What of the old text has run and would run again."""
    target, reached = place.location.statement, False
    for stretch in restarts.edits.stretches:
        start = 0 if reached else _index(stretch, target)
        if start is None:
            continue
        if not reached and place.location.kind == "after":
            start += 1  # the statement itself does not run
        reached = True
        yield from (restarts.old.text(statement) for statement in stretch.again(start))
        owner = stretch.ends.old if stretch.ends is not None else None
        if isinstance(owner, LOOPS):
            yield f"{restarts.old.text(owner)} starts anew"
            return
        if isinstance(owner, (ast.If, ast.Match, *WITHS)):
            yield restarts.old.text(owner)
    crashed, kind = restarts.was.statement, place.location.kind
    if reached and restarts.found.counterpart is not None and same(crashed, restarts.found.counterpart):
        yield restarts.old.text(crashed)
    elif target is restarts.found.counterpart and kind == restarts.was.kind:
        yield from restarts.frame.repeats


def _index(stretch: Stretch, target: ast.stmt) -> int | None:
    """Where in a stretch the run would begin; None if it begins elsewhere."""
    for index, statement in enumerate(stretch.new):
        if statement is target:
            return index
    ends = stretch.ends
    return len(stretch.new) if ends is not None and ends.new is target else None


def _one_line(text: str) -> str:
    return " ".join(text.split())


__all__ = ["Choice", "Preview", "choices"]

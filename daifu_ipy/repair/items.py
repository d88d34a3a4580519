"""Which item of which loop the work was on when it crashed."""

from __future__ import annotations

import ast
import weakref
from dataclasses import dataclass
from typing import Any

from daifu_ipy.engine.scopes import COMPREHENSIONS
from daifu_ipy.repair.summary import one_line, summarise
from daifu_ipy.repair.view import CrashView

_MAX_TEXT = 120
_VALUES = (int, str, float, bool, bytes, type(None))


def frame_in_loop(crash: CrashView) -> int | None:
    """The innermost vaccinated frame on the stack that is in a loop; None if there is none, or none that is meant."""
    for index, frame in enumerate(crash.frames):
        if _in_comprehension(frame):
            return None
        if frame.progress:
            return index
    return None


def _in_comprehension(frame: Any) -> bool:
    """Whether the crashed expression is, or is inside, a comprehension: its loop has no item to leave out."""
    line, end_line, column, end_column = frame.position
    return any(
        (node.lineno, node.col_offset) <= (line, column)
        and (end_line, end_column) <= (node.end_lineno or 0, node.end_col_offset or 0)
        for node in ast.walk(frame.location.statement)
        if isinstance(node, COMPREHENSIONS)
    )


def standing(crash: CrashView, frame: int = 0) -> tuple[object, ...]:
    """Where the loops of a frame stand, to compare with later: it keeps no object alive."""
    at = frame_at(crash, frame)
    loops = () if at is None else at.progress
    return tuple((loop.line, name, _sign(value)) for loop in loops for name, value in loop.target.items())


def frame_at(crash: CrashView, frame: int) -> Any:
    """What has `repeats`, `stale` and `progress` of a frame; None if there is no such frame.

    Of the innermost that is the crash itself: looking for the others takes time.
    """
    if frame == 0:
        return crash
    return crash.frames[frame] if frame < len(crash.frames) else None


@dataclass(frozen=True, eq=False)
class _Reference:
    """The same for the same object, and for no other, even one that lies where that one has been."""

    to: weakref.ref[Any]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reference) and self.to is other.to  # == would compare the objects, by their code


def _sign(value: object) -> object:
    """Something small that is the same for the same value."""
    if type(value) in _VALUES:
        return hash(value)
    try:
        return _Reference(weakref.ref(value))
    except TypeError:  # of a few built-in types there are none
        return id(value)


def progress_texts(at: Any) -> tuple[str, ...]:
    """The items that the loops of a crash, or of a frame of it, were at, outermost first, in one bounded line each."""
    return tuple(
        one_line(", ".join(f"{name}={summarise(value, _MAX_TEXT)}" for name, value in loop.target.items()), _MAX_TEXT)
        for loop in at.progress
    )

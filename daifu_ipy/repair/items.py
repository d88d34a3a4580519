"""Which item of which loop the work was on when it crashed."""

from __future__ import annotations

import ast
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
    if frame and frame >= len(crash.frames):
        return ()
    loops = crash.frames[frame].progress if frame else crash.progress
    return tuple((loop.line, name, _sign(value)) for loop in loops for name, value in loop.target.items())


def _sign(value: object) -> object:
    """Something small that is the same for the same value."""
    return hash(value) if type(value) in _VALUES else id(value)


def progress_texts(crash: CrashView) -> tuple[str, ...]:
    """The items that the loops around a crash were at, outermost first, in one bounded line each."""
    return tuple(
        one_line(", ".join(f"{name}={summarise(value, _MAX_TEXT)}" for name, value in loop.target.items()), _MAX_TEXT)
        for loop in crash.progress
    )

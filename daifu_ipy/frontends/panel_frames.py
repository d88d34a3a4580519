"""The stack as the panel lists it, runs of library frames folded, and where the loops stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from daifu_ipy.engine.crash import Crash, LoopState, frame_of
from daifu_ipy.engine.frames import forget
from daifu_ipy.engine.location import CannotResume
from daifu_ipy.engine.native import barrier_in
from daifu_ipy.frontends.levels import Level, Levels
from daifu_ipy.repair.deadline import one_budget
from daifu_ipy.repair.frame_record import is_library
from daifu_ipy.repair.recording import span_at
from daifu_ipy.repair.recursion import kept_of
from daifu_ipy.repair.summary import one_line, summarise

MOST_FRAMES = 300
"""Of more, those in the middle are left out."""

TOP_LEVEL = "top level"
"""What the code of a notebook cell, or of a module, is called."""

_MAX_LINE = 160
_MAX_VALUE = 60
_MOST_LOOPS = 8


def function_of(level: Level) -> str:
    """What a frame's function is called."""
    return TOP_LEVEL if level.name == "<module>" else one_line(level.name, _MAX_LINE)


def frames(levels: Levels) -> list[dict[str, Any]]:
    """All frames, outermost first."""
    items = [_item(levels, shown) for shown in _without_middle(_without_recursion(levels))]
    folded: list[dict[str, Any]] = []
    for kind, group in groupby(items, lambda item: item["kind"]):
        run = list(group)
        folded += [_fold(run)] if kind == "library" else run
    return folded


@dataclass(frozen=True)
class _Shown:
    """A frame that is shown, by its number, and how many before it are not."""

    index: int
    left_out: int = 0
    recursion: bool = False


def _without_recursion(levels: Levels) -> list[_Shown]:
    places = [(level.frame.f_code.co_filename, level.line, level.name) for level in levels.all]
    return [_Shown(index, left_out, left_out > 0) for index, left_out in kept_of(places)]


def _without_middle(shown: list[_Shown]) -> list[_Shown]:
    if len(shown) <= MOST_FRAMES:
        return shown
    first = MOST_FRAMES // 3
    after = shown[first - MOST_FRAMES]
    hidden = after.index - shown[first - 1].index - 1
    return [*shown[:first], replace(after, left_out=hidden, recursion=False), *shown[first - MOST_FRAMES + 1 :]]


def _item(levels: Levels, shown: _Shown) -> dict[str, Any]:
    level = levels.all[shown.index]
    is_other = not level.is_vaccinated and is_library(level.frame.f_code.co_filename)
    item = {
        "level": shown.index,
        "kind": "library" if is_other else "user",
        "function": function_of(level),
        "place": one_line(level.file, _MAX_LINE),
        "line": level.line,
        "source": one_line(level.source, _MAX_LINE),
        "vaccinated": level.is_vaccinated,
        "crashed": shown.index == levels.crashed,
    }
    if shown.left_out:
        again = " (the same again and again)" if shown.recursion else ""
        item["note"] = f"{shown.left_out} frames before it are left out{again}"
    return item


def _fold(run: list[dict[str, Any]]) -> dict[str, Any]:
    """Frames of libraries that follow each other, as one item that can be opened; the last one says where they are."""
    return {**run[-1], "kind": "folded", "count": len(run), "frames": run}


def loops(crash: Crash, levels: Levels) -> list[dict[str, Any]]:
    """Where the loops around the crash stand, of all vaccinated functions on the stack, outermost first.

    Only frames that are in a loop are captured.
    """
    outer = [level for level in levels.all[: levels.crashed] if level.is_vaccinated]
    kept = kept_of([(level.frame.f_code.co_filename, level.line, level.name) for level in outer])
    with one_budget():
        found = [_loop(loop) for index, _ in kept for loop in _loops_of(outer[index])]
        found += map(_loop, crash.progress)
    half = _MOST_LOOPS // 2
    return found if len(found) <= _MOST_LOOPS else [*found[:half], *found[-half:]]


def _loops_of(level: Level) -> Sequence[LoopState]:
    """The loops around the call that an outer frame waits for."""
    barrier = barrier_in(level.frame.f_code)
    span = span_at(level.frame.f_code, level.lasti)
    statement = barrier.unit.statement_at((span[0], span[2])) if barrier is not None and span is not None else None
    if barrier is None or statement is None or barrier.unit.loop_around(statement) is None:
        return ()
    try:
        return frame_of(barrier, level.frame, level.lasti, None, is_outer=True).progress
    except CannotResume:
        return ()
    finally:
        forget(level.frame)


def _loop(loop: LoopState) -> dict[str, Any]:
    at = [[name, summarise(value, _MAX_VALUE)] for name, value in loop.target.items()]
    return {"line": loop.line, "header": one_line(loop.header.removesuffix(":"), _MAX_LINE), "at": at}

"""What each button would do with a frame, in words, before it is pressed; or why it can do nothing there."""

from __future__ import annotations

from typing import Any

from daifu_ipy.engine.applying import Plan, check_loop, location_after
from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.location import CannotResume
from daifu_ipy.engine.repairs import Abort, Break, Continue, Ending, Pass, Refusal, Repair, Return, Skip
from daifu_ipy.frontends.announce import announce
from daifu_ipy.frontends.levels import Levels
from daifu_ipy.frontends.panel_detail import Text
from daifu_ipy.frontends.panel_frames import function_of

SURE = "Abort? The run ends here; what it holds in memory is lost."
"""Asked because the button stands beside those that lose nothing."""

_RESUMING: tuple[Ending, ...] = (Pass(), Skip(), Continue(), Break(), Return("the value of the expression"))


def endings(crash: Crash, levels: Levels, text: Text) -> dict[str, dict[str, Any]]:
    """Each ending by its word, for the selected frame: whether it is enabled, what it does, and what to ask first.

    A frame that is not vaccinated can't go on by itself: there the crashed function does, and is asked about where
    the button may be meant for the selected one.
    """
    made = {Repair(then=then).word: _resuming(crash, levels, then) for then in _RESUMING}
    made["surgery"] = _surgery(crash, levels, text)
    made["abort"] = _ending(announce(crash, Abort()).partition(": ")[2], ask=SURE)
    return made


def _ending(says: str, *, why_not: str = "", ask: str = "") -> dict[str, Any]:
    return {"enabled": not why_not, "says": says, "why_not": why_not, "ask": ask}


def _resuming(crash: Crash, levels: Levels, then: Ending) -> dict[str, Any]:
    level = levels.selected
    unit = level.unit or 0
    why_not = refusal_of(crash, unit, then)
    if why_not:
        return _ending("", why_not=why_not)
    says = announce(crash, then, unit).partition(": ")[2]
    if level.unit is None:
        crashed = function_of(levels.all[levels.crashed])
        says = f"{function_of(level)} is not vaccinated and can't go on by itself, but {crashed} can: {says}"
    elif unit > 0:
        says = f"{function_of(level)} goes on: {says}"
    asks = unit > 0 or (level.unit is None and not isinstance(then, Pass))
    return _ending(says, ask=f"{says}. Do it?" if asks else "")


def refusal_of(crash: Crash, index: int, then: Ending) -> str:
    """Why the engine would refuse an ending, as far as that is known without running or compiling anything."""
    frame = crash.frame(index)
    if frame is None:
        return "this crash was decided"
    try:
        location = location_after(frame, then)
        plan = Plan(frame, location, dict(frame.slots), frame.barrier)
        check_loop(plan, then, crash.traceback if index == 0 else None)
    except (Refusal, CannotResume) as reason:
        return str(reason)
    return ""


def _surgery(crash: Crash, levels: Levels, text: Text) -> dict[str, Any]:
    level = levels.selected
    says = "the edited text takes over, now and for later calls; what it changes and where it goes on is shown first"
    if level.unit is None:
        crashed = function_of(levels.all[levels.crashed])
        restart = crash.restart
        says = (
            f"later calls of {function_of(level)} run the edited text; {crashed} runs line {restart.line} again; "
            "all of it is shown first"
        )
    return _ending(says, why_not=text.why_not)

"""What an ending is about to do, in one line: before it is done."""

from __future__ import annotations

from collections.abc import Iterator

from daifu_ipy.engine.crash import Crash, CrashFrame
from daifu_ipy.engine.repairs import Abort, Break, Continue, Ending, Pass, Repair, Return, Skip
from daifu_ipy.repair.summary import error_text, one_line

_MAX_LINE = 300
_MAX_TEXT = 100


def announce(crash: Crash, then: Ending, unit: int = 0) -> str:
    """What an ending of the vaccinated frame `unit` does: which lines run, run twice, or are left out."""
    text = f"{Repair(then=then).word}: {_effect(crash, then, unit)}"
    if unit > 0 and not isinstance(then, Abort):
        text += f"; {crash.restart.unit} and what it has not finished are left"
    return one_line(text, _MAX_LINE)


def _effect(crash: Crash, then: Ending, unit: int) -> str:
    at = crash.frame(unit)
    if at is None:
        return "this crash was decided"
    restart = at.restart
    place, statement = f"line {restart.line}", one_line(restart.statement, _MAX_TEXT)
    match then:
        case Pass():
            twice = f" (had begun, and runs twice: {', '.join(at.repeats)})" if at.repeats else ""
            return f"{place} runs again: {statement}{twice}"
        case Skip():
            stale = f"; an older value stays in {', '.join(at.stale)}" if at.stale else ""
            return f"{place} is left out: {statement}{stale}"
        case Continue():
            return f"the rest of this turn of {_loop(at)} is left out, and its next one begins"
        case Break():
            return f"{_loop(at)} is left, and the run goes on after it"
        case Return(expression=expression):
            return f"{restart.unit} ends here, and its caller gets {one_line(expression, _MAX_TEXT)}"
        case Abort():
            return f"{error_text(crash.exception, _MAX_TEXT)} goes on, as if nothing had intercepted it"
    return f"new code; it goes on in {restart.unit}"


def _loop(at: CrashFrame) -> str:
    loops = at.progress
    if not loops:
        return "the loop (there is none here)"
    return f"{one_line(loops[-1].header, _MAX_TEXT)!r} (line {loops[-1].line})"


def remarks(crash: Crash) -> Iterator[str]:
    """What a retry would do twice, and what a skip would leave as it was."""
    if crash.repeats:
        yield one_line(f"pass runs again: {', '.join(crash.repeats)}", _MAX_LINE)
    if crash.stale:
        yield one_line(f"skip leaves an older value in: {', '.join(crash.stale)}", _MAX_LINE)

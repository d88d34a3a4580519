"""What stays of a crash's panel when it is over: one line, as text and as HTML, for pages and for the saved notebook.

It holds the exception's type and message, the place, the repair, and loop counters if they are plain integers: no
other value of the program.
"""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.repairs import Repair
from daifu_ipy.repair.places import label
from daifu_ipy.repair.summary import error_message, one_line, type_name
from daifu_ipy.repair.view import CrashView

MAX_MESSAGE = 300
MOST_COUNTERS = 4
STYLE = "font-family: var(--jp-ui-font-family, sans-serif); font-size: var(--jp-ui-font-size1, 13px); padding: 2px 0"

WAITS = "The run waits for a repair in its panel. Without one: daifu_ipy.pending() in a subshell console."


@dataclass(frozen=True)
class End:
    """How a crash ended.

    Parameters
    ----------
    text
        ``Recovered ValueError at line 15 by surgery, epoch 3, resumed in 4 ms``.
    message
        The exception's message, in one line.
    outcome
        ``"recovered"`` or ``"aborted"``.
    seconds
        From the answer to the end of the repair.
    """

    text: str
    message: str
    outcome: str
    seconds: float

    @classmethod
    def of(
        cls,
        crash: Crash,
        repair: Repair | None,
        outcome: str,
        seconds: float,
        progress: Sequence[Mapping[str, Any]] = (),
        remark: str = "",
        times: int = 1,
    ) -> End:
        """Describe it, with the loops of a panel's state; to be called before the crash is closed."""
        error = crash.exception
        done = f" by {_in_words(crash, repair)}" if repair is not None and outcome == "recovered" else ""
        parts = [f"{outcome.capitalize()} {_type(crash)} {place(crash)}{done}"]
        parts += [f"and so at most {times} times here"] * (times > 1)
        parts += counters(progress)
        parts += [remark] * bool(remark)
        parts += [f"resumed in {milliseconds(seconds)}"] * (outcome == "recovered")
        message = "" if error is None else error_message(error, MAX_MESSAGE)
        return cls(one_line(", ".join(parts), 400), message, outcome, seconds)

    @property
    def bundle(self) -> dict[str, str]:
        """It, by the type of its representation; readable without a kernel, and without this package."""
        plain = self.text + f"\n{self.message}" * bool(self.message)
        says = f'<div style="opacity: 0.7">{html.escape(self.message)}</div>' * bool(self.message)
        return {
            "text/plain": plain,
            "text/html": f'<div style="{STYLE}"><div>{html.escape(self.text)}</div>{says}</div>',
        }

    def to_json(self) -> dict[str, Any]:
        """It, as the panel's state has it."""
        return {"text": self.text, "outcome": self.outcome, "seconds": self.seconds}


def waits_text(crash: CrashView) -> str:
    """What a front end shows that can't show the panel."""
    error = crash.exception
    message = "" if error is None else error_message(error, MAX_MESSAGE)
    return f"{_type(crash)}{': ' * bool(message)}{message}, {place(crash)}\n{WAITS}"


def place(crash: CrashView) -> str:
    """Where it crashed: ``at line 15``, in a function ``at line 15 of train``, in a file of its own with its name."""
    restart = crash.restart
    unit = "" if restart.unit == "<module>" else f" of {restart.unit}"
    known = label(restart.filename) is not None or restart.filename.startswith("<")
    file = "" if known else f" in {os.path.basename(restart.filename)}"
    return one_line(f"at line {restart.line}{unit}{file}", 200)


def counters(progress: Sequence[Mapping[str, Any]]) -> list[str]:
    """The loop variables that are plain integers, outermost first: ``epoch 3``; of the loops in a panel's state."""
    found: dict[str, str] = {}
    for name, text in (item for loop in progress for item in loop["at"]):
        if text.removeprefix("-").isdecimal():
            found.setdefault(name, text)
    return [f"{name} {text}" for name, text in found.items()][:MOST_COUNTERS]


def milliseconds(seconds: float) -> str:
    """A short time in words."""
    return f"{seconds * 1000:.0f} ms" if seconds < 9.95 else f"{seconds:.0f} s"


def duration(seconds: float) -> str:
    """A long time in words: ``3 h 12 min``."""
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{seconds:.0f} s"


def _in_words(crash: Crash, repair: Repair) -> str:
    """A repair, with what was typed in the panel before."""
    return replace(repair, actions=(*crash.acted, *repair.actions)).in_words


def _type(crash: CrashView) -> str:
    return "" if crash.exception is None else type_name(type(crash.exception))

"""The default repair manager, and the history of what was repaired. Imports nothing heavy: every script loads it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.repairs import Abort, Repair
from daifu_ipy.repair.event import Event
from daifu_ipy.repair.history import history
from daifu_ipy.repair.view import Answer, CrashView

if TYPE_CHECKING:
    from daifu_ipy.frontends.patience import Patience
    from daifu_ipy.repair.rules import Rules


def answer(
    crash: Crash,
    *,
    rules: Answer | None = None,
    on_crash: str = "auto",
    on_wait: Callable[[CrashView], object] | None = None,
    patience: Patience | None = None,
) -> Repair:
    """Let the first in the table of `frontends.choose` answer; the default manager of a process."""
    from daifu_ipy.frontends.choose import choose

    first = _made_here() if rules is None else rules
    return choose(crash, rules=first, on_crash=on_crash, on_wait=on_wait, patience=patience)


def remember(crash: Crash, repair: Repair | None, seconds: float, outcome: str) -> None:
    """Put a crash that was decided into the history."""
    try:
        done = repair or Repair(then=Abort())
        history.add(Event.of(crash, done, latency_seconds=seconds, outcome=outcome, actions=crash.acted))
    except Exception as error:  # the run goes on whatever its objects do when they are described
        _failed.append(f"{type(error).__name__}: {error}"[:500])


def _made_here() -> Rules:
    """Rules that a front end has made of answers, where no cell has rules of its own."""
    with _one_at_a_time:  # two threads may crash at once
        return _rules()


@functools.cache
def _rules() -> Rules:
    from daifu_ipy.repair.rules import Rules

    return Rules()


def failures() -> list[str]:
    """What went wrong while the history was written; the last ones."""
    return _failed[-10:]


_failed: list[str] = []
_one_at_a_time = threading.Lock()

"""The default repair manager, and the history of what was repaired. Imports nothing heavy: every script loads it."""

from __future__ import annotations

import ast
import weakref
from typing import Any

from daifu_ipy.engine.action import ActionResult
from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.repairs import Abort, Repair
from daifu_ipy.repair.history import Event, History
from daifu_ipy.repair.view import Answer

history = History()
"""What crashed in this process, and how it was repaired."""

_typed: weakref.WeakKeyDictionary[Crash, list[str]] = weakref.WeakKeyDictionary()


class Recorded:
    """A crash as a front end sees it: actions that change something, and end well, are kept for the history."""

    def __init__(self, crash: Crash) -> None:
        self._crash = crash

    def __getattr__(self, name: str) -> Any:
        """Everything else is the crash's own."""
        return getattr(self._crash, name)

    def action(self, code: str, frame: int = 0) -> ActionResult:
        """Run code in the crashed namespace."""
        result = self._crash.action(code, frame)
        if result.ok and not _only_looks(code):
            _typed.setdefault(self._crash, []).append(code)
        return result


def _only_looks(code: str) -> bool:
    """Whether an action shows a variable, or a part of one, and does nothing else."""
    try:
        body = ast.parse(code.strip()).body
    except (SyntaxError, ValueError):
        return False
    effects = (ast.Call, ast.NamedExpr, ast.Await)
    return all(isinstance(s, ast.Expr) and not any(isinstance(n, effects) for n in ast.walk(s)) for s in body)


def answer(crash: Crash, *, rules: Answer | None = None, on_crash: str = "auto") -> Repair:
    """Let the first in the table of `frontends.choose` answer; the default manager of a process."""
    from daifu_ipy.frontends.choose import choose

    return choose(Recorded(crash), rules=rules, on_crash=on_crash)


def remember(crash: Crash, repair: Repair | None, seconds: float, outcome: str) -> None:
    """Put a crash that was decided into the history."""
    try:
        done = repair or Repair(then=Abort())
        typed = tuple(_typed.pop(crash, ()))
        history.add(Event.of(crash, done, latency_seconds=seconds, outcome=outcome, actions=typed))
    except Exception as error:  # the run goes on whatever its objects do when they are described
        _failed.append(f"{type(error).__name__}: {error}"[:500])


_failed: list[str] = []

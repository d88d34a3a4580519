"""How long a crash waits for an answer, and what is done then."""

from __future__ import annotations

import contextlib
import math
import re
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from daifu_ipy.engine.repairs import Abort, Repair
from daifu_ipy.repair.view import CrashView

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(min|[smhd])")


@dataclass(frozen=True)
class Patience:
    """After so many seconds without an answer, `fallback` is the answer.

    Parameters
    ----------
    seconds
        How long.
    fallback
        The repair then.
    timer
        Calls a function after some seconds; as `threading.Timer`.
    """

    seconds: float
    fallback: Repair = field(default_factory=lambda: Repair(then=Abort()))
    timer: Callable[[float, Callable[[], object]], Any] = threading.Timer

    @contextlib.contextmanager
    def with_(self, crash: CrashView, show: Callable[[str], object]) -> Iterator[None]:
        """Let it run out while a front end waits. The first decision wins: an answer that came is never replaced."""

        def run_out() -> None:
            if crash.decide(self.fallback):
                show(f"daifu: nobody answered within {self.seconds:g} s: {self.fallback.word}")

        clock = _Clock(self, run_out)
        token = _clock.set(clock)
        clock.start()
        try:
            yield
        finally:
            _clock.reset(token)
            clock.stop()


class _Clock:
    """The time that is left for an answer."""

    def __init__(self, patience: Patience, run_out: Callable[[], object]) -> None:
        self.patience, self._run_out = patience, run_out

    def start(self) -> None:
        """Begin anew."""
        self._timer = self.patience.timer(self.patience.seconds, self._run_out)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        """Let it not run out."""
        self._timer.cancel()


_clock: ContextVar[_Clock | None] = ContextVar("daifu_ipy patience", default=None)


def patience_here() -> Patience | None:
    """That with the crash which this thread asks about."""
    clock = _clock.get()
    return None if clock is None else clock.patience


@contextlib.contextmanager
def somebody_works() -> Iterator[None]:
    """Somebody works on the crash that this thread asks about; afterwards all of the time is left again."""
    clock = _clock.get()
    if clock is not None:
        clock.stop()
    try:
        yield
    finally:
        if clock is not None:
            clock.start()


def seconds_of(text: str | float) -> float:
    """Read a duration: ``"2h"``, ``"1h 30m"``, ``"45s"``, ``"90"`` or a number of seconds.

    Raises
    ------
    ValueError
        If it is none.
    """
    parts = list(_PART.finditer(text)) if isinstance(text, str) else []
    try:
        if parts and "".join(part.group() for part in parts) == str(text).rstrip():
            seconds = sum(float(part[1]) * _UNITS[part[2]] for part in parts)
        else:
            seconds = float(text)
    except (TypeError, ValueError):
        seconds = math.nan
    if isinstance(text, bool) or not 0 < seconds < threading.TIMEOUT_MAX:
        raise ValueError(f"expected a duration such as '2h', '1h 30m', '45s' or seconds, not {text!r}")
    return seconds

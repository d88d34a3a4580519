"""Handlers that perhaps would handle an exception: it was let go because of them. Texts only; no frame is kept."""

from __future__ import annotations

import threading
from dataclasses import dataclass

MOST = 50


@dataclass(frozen=True)
class Undecided:
    """An exception that was not intercepted, since nobody could tell whether the program would handle it.

    Parameters
    ----------
    error
        The name of its type.
    unit, filename
        The vaccinated unit that it left.
    by
        The handler: ``perhaps except kinds in fit (trainer.py:88)``.
    """

    error: str
    unit: str
    filename: str
    by: str


class Log:
    """The last ones, each with how often it came, the newest last."""

    def __init__(self) -> None:
        self._counts: dict[Undecided, int] = {}
        self._lock = threading.Lock()

    def add(self, one: Undecided) -> None:
        """One more."""
        with self._lock:
            self._counts[one] = self._counts.pop(one, 0) + 1
            if len(self._counts) > MOST:
                del self._counts[next(iter(self._counts))]

    def all(self) -> list[tuple[Undecided, int]]:
        """What there is."""
        with self._lock:
            return list(self._counts.items())

"""Checks that hold in every run, also under ``python -O``."""

from __future__ import annotations

from collections.abc import Callable


class InternalError(Exception):
    """An invariant of the engine does not hold.

    It says which one and at which construct. The user's own exception is never lost behind it: the barrier declines,
    and the program goes on as if it were not vaccinated.
    """


def check(condition: object, message: Callable[[], str]) -> None:
    """Raise `InternalError` unless `condition` is true; `message` is only called then."""
    if not condition:
        raise InternalError(message())

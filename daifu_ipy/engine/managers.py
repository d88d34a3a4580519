"""Who repairs: managers set by API, the default one, and the crashes that wait for a decision."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from daifu_ipy.engine.remembered import Remembered
from daifu_ipy.engine.undecided import Log

if TYPE_CHECKING:
    from daifu_ipy.engine.crash import Crash

Manager: TypeAlias = "Callable[[Crash], Any]"

_local: ContextVar[Manager | None] = ContextVar("daifu_ipy repair manager", default=None)

rehearsing: ContextVar[bool] = ContextVar("daifu_ipy rehearsal", default=False)
"""A crash of a self-test is told to nobody."""


@dataclass
class _Settings:
    """The engine's global state, all of it."""

    manager: Manager | None = None
    default: Manager | None = None
    intercept: str = "auto"  # or "all", "unhandled"
    pending: list[Crash] = field(default_factory=list)
    undecided: Log = field(default_factory=Log)
    remembered: Remembered = field(default_factory=Remembered)  # vaccinated by API
    on_closed: list[Callable[[Crash, Any, float, str], None]] = field(default_factory=list)
    on_release: list[Callable[[BaseException], None]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


settings = _Settings()


class repair_with:
    """Let `manager` repair the crashes of the code in this block.

    Parameters
    ----------
    manager
        A callable ``manager(crash)`` that returns a `Repair`, an ending such as ``Pass()``, or None (abort).

    Raises
    ------
    TypeError
        If `manager` is not callable.

    Notes
    -----
    Local to the context (`contextvars`): other threads and tasks keep theirs.
    """

    def __init__(self, manager: Manager) -> None:
        self._manager = _checked(manager)
        self._tokens: list[Token[Manager | None]] = []

    def __enter__(self) -> None:
        """Set the manager."""
        self._tokens.append(_local.set(self._manager))

    def __exit__(self, *info: object) -> None:
        """Give the block's context its former manager back; exceptions pass."""
        _local.reset(self._tokens.pop())


def _checked(manager: Manager) -> Manager:
    if not callable(manager):
        raise TypeError(f"a repair manager is a callable manager(crash), not {type(manager).__name__}")
    return manager


def set_repair_manager(manager: Manager | None) -> None:
    """Let `manager` repair the crashes of all threads; None goes back to the default.

    Raises
    ------
    TypeError
        If `manager` is not callable.
    """
    settings.manager = None if manager is None else _checked(manager)


def manager_by_api() -> Manager | None:
    """The manager that the user's code has set."""
    return _local.get() or settings.manager


def current_manager() -> Manager | None:
    """Who would answer a crash here and now."""
    return manager_by_api() or settings.default


def pending() -> list[Crash]:
    """The crashes that wait for a decision, oldest first; any thread may call their `decide`."""
    with settings.lock:
        return list(settings.pending)

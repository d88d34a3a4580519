"""Code of an object's author, run with a deadline: a repr may raise, hang, or wait for a lock that the crash holds."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from opcode import opname
from types import FrameType

from daifu_ipy.engine.interception import part_of_a_repair
from daifu_ipy.repair.devices import hands_off

EACH = 0.2
"""Seconds for one value."""

TOGETHER = 1.0
"""Seconds for all values of a stack."""

_LOOKS = 4
_BETWEEN_LOOKS = 0.005


@dataclass
class Budget:
    """The seconds that are left, and the types (by id) that were late: those are not asked again."""

    left: float = TOGETHER
    late: set[int] = field(default_factory=set)


_budget: ContextVar[Budget | None] = ContextVar("daifu_ipy budget for foreign code", default=None)


@contextlib.contextmanager
def one_budget() -> Iterator[None]:
    """What this block asks has `TOGETHER` seconds."""
    if _budget.get() is not None:
        yield
        return
    token = _budget.set(Budget())
    try:
        yield
    finally:
        _budget.reset(token)


def ask(kind: type, call: Callable[[], str], what: str = "repr") -> str:
    """The text that foreign code gives for an object, or what became of it in ``<...>``.

    It runs on a thread of its own, in a copy of this context: an error ends there, and what is late is left behind.
    Code that never lets go of the interpreter, as a C function may, can't be left.

    Parameters
    ----------
    kind
        The object's type.
    call
        Gives the text.
    what
        What the text is, in words.
    """
    budget = _budget.get() or Budget()
    if id(kind) in budget.late or budget.left <= 0:
        return f"<{what} took too long>"
    worker, started = _Worker(call), time.monotonic()
    interrupted = None
    try:
        worker.start()
        worker.join(min(EACH, budget.left))
    except BaseException as error:  # Ctrl-C while waiting; no thread can be started
        interrupted = type(error).__name__
    budget.left -= time.monotonic() - started
    if worker.is_alive():
        budget.late.add(id(kind))
        try:
            worker.stop()
        except BaseException as error:  # Ctrl-C again
            interrupted = interrupted or type(error).__name__
        return f"<{what} took too long>" if interrupted is None else f"<{what} failed: {interrupted}>"
    failure = interrupted or worker.failure
    return worker.answer if failure is None else f"<{what} failed: {failure}>"


class _Worker(threading.Thread):
    """Makes one call; it holds what it calls, and so the object, no longer than the call lasts."""

    def __init__(self, call: Callable[[], str]) -> None:
        super().__init__(name="daifu_ipy: a variable's text", daemon=True)
        self._call: Callable[[], str] | None = call
        self._context = copy_context()
        self.answer = ""
        self.failure: str | None = None

    def run(self) -> None:
        """Make the call."""
        self._context.run(self._answer)
        del self._context

    def _answer(self) -> None:
        call, self._call = self._call, None
        try:
            if call is not None:
                with part_of_a_repair(), hands_off():
                    self.answer = str.__str__(call())
        except BaseException as error:  # code of the object's author
            self.failure = type(error).__name__

    def stop(self) -> None:
        """End the call if it is a loop in Python: it must not compete with the run that goes on."""
        if self.ident is not None and self._executes(self.ident):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(SystemExit))

    def _executes(self, ident: int) -> bool:
        """Whether it executes Python now.

        To what waits in C, as for a lock, the error would come just after the lock was acquired, and before the code
        that releases it: the lock would be held for ever.
        """
        places = set()
        for _ in range(_LOOKS):
            frame = sys._current_frames().get(ident)
            if frame is None:
                return False
            places.add((id(frame), frame.f_lasti))
            if len(places) > 1 or _is_in_python(frame):
                return True
            self.join(_BETWEEN_LOOKS)
        return False


def _is_in_python(frame: FrameType) -> bool:
    """Whether another thread's frame is where Python lets the others run, and takes errors from outside, at once."""
    name = opname[frame.f_code.co_code[frame.f_lasti]]
    return "JUMP_BACKWARD" in name or name == "RESUME"

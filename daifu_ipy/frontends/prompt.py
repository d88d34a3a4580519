"""The prompt: a repair manager that asks on stdin, in IPython's Pdb where IPython runs, else in Python's own."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from daifu_ipy.engine.repairs import Abort, Repair
from daifu_ipy.repair import places
from daifu_ipy.repair.rules import SameHere
from daifu_ipy.repair.summary import error_text
from daifu_ipy.repair.view import CrashView

if TYPE_CHECKING:
    from daifu_ipy.engine.crash import Crash
    from daifu_ipy.frontends.repair_pdb import Memory, RepairPdb

_one_at_a_time = threading.Lock()
_LOOKS_EVERY = 0.2
"""Seconds after which one that waits for its turn looks whether it is still wanted."""


class Prompt:
    """A repair manager that asks on stdin.

    Shows the annotated stack once, then takes commands (``help`` lists them) and Python, which runs as an action in
    the selected frame. Only a command decides: Ctrl-C and the end of input ask whether to abort. At the second end of
    input it aborts, so that it never waits for somebody who can't answer. Crashes of several threads are asked about
    one after the other.

    Parameters
    ----------
    ask
        Called with the prompt's text; gives a line, or raises `EOFError` or `KeyboardInterrupt`. By default the
        terminal's or the kernel's own way.
    """

    def __init__(self, ask: Callable[[str], str] | None = None) -> None:
        self._ask = ask
        self._remembered = threading.local()

    def __call__(self, crash: CrashView) -> Repair | SameHere:
        """Ask until a command decides, or somebody else does."""
        from daifu_ipy.frontends.terminal import seen_output

        asked_about = cast("Crash", crash)
        decided = _wait_for_turn(asked_about)
        if decided is not None:
            return decided
        try:
            with seen_output():
                return self._asked(asked_about)
        finally:
            _one_at_a_time.release()

    def _asked(self, crash: Crash) -> Repair | SameHere:
        from daifu_ipy.frontends.terminal import CannotAsk

        try:
            return self._session(crash)
        except CannotAsk as problem:
            print(f"daifu: {problem}: aborting")
            return Repair(then=Abort())

    def _session(self, crash: Crash) -> Repair | SameHere:
        from daifu_ipy.frontends.completion import completion

        thread = threading.current_thread()
        if thread is not threading.main_thread():
            print(f"daifu: a crash in thread {thread.name!r}")
        with completion(lambda text, state: session.complete(text, state)):  # Pdb changes readline when it is made
            session = debugger(shell_base())(crash, self._memory(crash), self._ask)
            try:
                return session.run_session()
            finally:
                session.let_go()

    def _memory(self, crash: Crash) -> Memory:
        """What is remembered of this crash: a thread has only one open at a time."""
        from daifu_ipy.frontends.repair_pdb import Memory

        if crash.refusal is None or not hasattr(self._remembered, "memory"):
            self._remembered.memory = Memory()
        memory: Memory = self._remembered.memory
        return memory


def _wait_for_turn(crash: Crash) -> Repair | None:
    """Take `_one_at_a_time`; or give what somebody else has decided by then, without it."""
    if _one_at_a_time.acquire(blocking=False):
        return None
    _say_waits(crash)
    while crash.decision is None:
        try:
            if _one_at_a_time.acquire(timeout=_LOOKS_EVERY):
                return None
        except KeyboardInterrupt:  # it was meant for the crash that is asked about
            continue
    return crash.decision


def _say_waits(crash: Crash) -> None:
    from daifu_ipy.frontends.terminal import seen

    where = f"{places.place(crash.restart)}, thread {threading.current_thread().name!r}"
    error = error_text(crash.exception, 100)
    print(f"daifu: {error}, in {where}: waits until the crash before it is answered", file=seen())


def running_shell() -> Any:
    """The running IPython, or None; imports nothing."""
    ipython = sys.modules.get("IPython")
    with contextlib.suppress(Exception):
        return ipython.get_ipython() if ipython is not None else None
    return None


def shell_base() -> type:
    """The Pdb to build on: that of the running IPython, else Python's (IPython's own would start a shell)."""
    import pdb

    shell = running_shell()
    if shell is None:
        return pdb.Pdb
    from IPython.core.debugger import Pdb

    base: Any = getattr(shell, "debugger_cls", None)
    return base if isinstance(base, type) and issubclass(base, Pdb) else Pdb


@functools.cache
def debugger(base: type) -> type[RepairPdb]:
    """`RepairPdb` over a Pdb."""
    from daifu_ipy.frontends.repair_pdb import RepairPdb

    return RepairPdb if issubclass(RepairPdb, base) else type("RepairPdb", (RepairPdb, base), {})

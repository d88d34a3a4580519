"""Can a page show widgets? A tiny widget asks when a protected cell starts, and a page that can says hello."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from daifu_ipy.frontends.kernel import Kernel
from daifu_ipy.frontends.waiting import Decidable, Inbox

if TYPE_CHECKING:
    from daifu_ipy.frontends.panel_widget import Greeting

_log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds in which a page that can show widgets has said hello, wherever it is."""
LESS_PATIENCE = 0.3
"""The same where one that was asked before has not."""
LOOKS_EVERY = 0.1

NO_ANSWER = (
    "no page has shown that it can show the panel: the environment that JupyterLab (or your notebook's server) runs "
    "in, which may not be this kernel's, needs `pip install anywidget`; then reload the page"
)


class Hello:
    """Asks pages, and remembers that one has answered: from then on a crash waits for a page, however long."""

    def __init__(self) -> None:
        self.answered = False
        self.problem: str | None = None
        self._asked: list[Greeting] = []
        self._asked_at = 0.0
        self._is_in_vain = False  # who was asked last
        self._was_in_vain = False  # anybody
        self._waiting: list[Inbox] = []

    @property
    def was_asked(self) -> bool:
        """Whether a page has ever been asked."""
        return self._asked_at > 0

    @property
    def may_answer(self) -> bool:
        """Whether a page has answered, or may yet; or it is still to be said why none can."""
        waits = bool(self._asked) and not self._is_in_vain
        return self.answered or waits or (self.problem is not None and not self._was_in_vain)

    def say(self) -> None:
        """Ask, unless a page has answered or was asked just now. Whatever goes wrong, the cell runs."""
        try:
            if self.answered:
                self._close()
            elif not self._asked or time.monotonic() - self._asked_at > PATIENCE:
                self._ask()
        except Exception as error:
            self.problem = _why(error)

    def wait(self, crash: Decidable, inbox: Inbox, kernel: Kernel) -> bool:
        """Wait a little for the answer; whether there is one, or somebody has decided meanwhile."""
        if self.problem is not None:
            return False
        self._waiting.append(inbox)
        try:
            self._wait(crash, inbox, kernel)
        except Exception as error:  # somebody else may still be asked
            _log.exception("no page can be asked whether it shows the panel")
            self.problem = _why(error)
        finally:
            self._waiting.remove(inbox)
        self._is_in_vain = not self.answered
        return self.answered or crash.decision is not None

    def _wait(self, crash: Decidable, inbox: Inbox, kernel: Kernel) -> None:
        ends = time.monotonic() + (LESS_PATIENCE if self._was_in_vain else PATIENCE)
        on_main = threading.current_thread() is threading.main_thread()
        with kernel.hold() if on_main else contextlib.nullcontext() as held:
            while not self.answered and crash.decision is None and time.monotonic() < ends:
                inbox.wait(LOOKS_EVERY) if held is None else held.pump(LOOKS_EVERY, inbox)
                while inbox.get() is not None:  # the stop button
                    pass

    def give_up(self) -> str:
        """Nobody has answered; what is to be said about that, if it is the first time."""
        said, self._was_in_vain = self._was_in_vain, True
        return "" if said else self.problem or NO_ANSWER

    def forget(self) -> None:
        """Ask nobody any more."""
        self._close()

    def _ask(self) -> None:
        from daifu_ipy.frontends.panel_widget import Greeting

        self._close()
        self._asked_at, self._is_in_vain = time.monotonic(), False
        self._asked.append(Greeting(self._heard))
        self.problem = None

    def _heard(self, message: dict[str, Any], session: str) -> None:
        self.answered = True
        for inbox in list(self._waiting):
            inbox.put({"kind": "hello"})

    def _close(self) -> None:
        while self._asked:
            self._asked.pop().close()


def _why(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"this kernel's environment lacks {error.name}: %pip install anywidget, and restart the kernel"
    return f"{type(error).__name__}: {error}"


hello = Hello()
"""That of this process, which is one kernel."""

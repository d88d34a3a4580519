"""The panel: asks about a crash in the notebook's pages, and waits for as long as it takes."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from daifu_ipy.engine.managers import settings
from daifu_ipy.engine.repairs import Repair
from daifu_ipy.frontends.hello import Hello
from daifu_ipy.frontends.kernel import Kernel
from daifu_ipy.frontends.panel_rerun import Running
from daifu_ipy.frontends.terminal import CannotAsk
from daifu_ipy.frontends.waiting import Inbox, stop_is_a_message, wait
from daifu_ipy.repair.rules import SameHere
from daifu_ipy.repair.view import CrashView

if TYPE_CHECKING:
    from daifu_ipy.engine.crash import Crash
    from daifu_ipy.frontends.open_panel import OpenPanel

SCRIPT = Path(__file__).parents[1] / "static" / "panel.js"
"""The page's part of the panel."""

_log = logging.getLogger(__name__)


class Panel:
    """The front end of pages that can show widgets.

    Parameters
    ----------
    hello
        Knows whether there are any.
    translate
        From the text of a notebook cell to the Python that runs.
    publisher
        Gives what displays in the running cell's output.
    """

    def __init__(self, hello: Hello, translate: Callable[[str], str], publisher: Callable[[], Any]) -> None:
        self._hello, self._translate, self._find_publisher = hello, translate, publisher
        self._publisher = publisher()
        self._open: dict[Crash, OpenPanel] = {}
        self._ended: list[OpenPanel] = []
        self._shown: weakref.WeakSet[Crash] = weakref.WeakSet()
        self._running = Running("", time.time(), "")
        self._is_over = False
        self.cell_runs()

    def cell_runs(self, info: object = None) -> None:
        """A cell begins to run, unless another runs it: what a restart from scratch would lose is counted from here."""
        kernel = Kernel.here()
        request = kernel.first_request() if kernel is not None else None
        msg_id, code = (request.msg_id, request.code) if request is not None else ("", "")
        if not msg_id or msg_id != self._running.msg_id:
            self._running = Running(msg_id, time.time(), code)
            self._publisher = self._find_publisher()  # not one that captures, as around an action

    def cell_starts(self) -> None:
        """A protected cell starts, whose crashes may be asked about here."""
        self._hello.say()

    def __call__(self, crash: CrashView) -> Repair | SameHere:
        """Ask until something is decided.

        Raises
        ------
        CannotAsk
            No page can be asked here.
        """
        asked = cast("Crash", crash)
        kernel = Kernel.here()
        if kernel is None or kernel.problem is not None:
            raise CannotAsk(f"the panel can't be used: {'no kernel' if kernel is None else kernel.problem}")
        inbox = Inbox()
        try:
            with stop_is_a_message(inbox, kernel):
                if not self._hello.answered and not self._hello.wait(asked, inbox, kernel):
                    raise CannotAsk(self._hello.give_up())
                return self._asked(asked, kernel)
        finally:
            inbox.close()

    def _asked(self, crash: Crash, kernel: Kernel) -> Repair | SameHere:
        opened = self._open.get(crash)
        if opened is None:
            opened = self._opened(crash, kernel)
        else:
            opened.refused()
        answer = wait(crash, opened.inbox, opened.session.obey, kernel, opened.tick)
        opened.session.answered(answer)
        return answer

    def _opened(self, crash: Crash, kernel: Kernel) -> OpenPanel:
        try:
            from daifu_ipy.frontends.open_panel import OpenPanel

            self._close_ended()
            opened = OpenPanel(
                crash, kernel, self._running, self._translate, lambda: self._others(crash), self._publisher
            )
        except Exception as error:
            raise CannotAsk(f"the panel can't be shown: {type(error).__name__}: {error}") from error
        self._open[crash] = opened
        self._shown.add(crash)
        self._tell_others(crash)
        return opened

    def finished(self, crash: Crash, repair: Repair | None, seconds: float, outcome: str) -> None:
        """A crash was decided, one way or the other. Whatever goes wrong here, the run goes on."""
        opened = self._open.pop(crash, None)
        if opened is None:
            return
        self._ended.append(opened)
        try:
            opened.finish(crash, repair, outcome)
            self._tell_others(crash)
        except Exception:
            _log.exception("the panel could not say what was done")
        if self._is_over and not self._open:
            self.close()

    def close(self) -> None:
        """Take what is over from all pages, and ask none any more. What is open goes on until it is answered."""
        self._is_over = True
        self._close_ended()
        self._hello.forget()
        if not self._open and self.finished in settings.on_closed:
            settings.on_closed.remove(self.finished)

    def has_shown(self, crash: Crash) -> bool:
        """Whether a crash has, or had, a panel, which says what was done about it."""
        return crash in self._shown

    def _others(self, crash: Crash) -> list[dict[str, Any]]:
        others = [opened for other, opened in list(self._open.items()) if other is not crash]
        return [{"crash_id": opened.crash_id, "text": opened.summary} for opened in others]

    def _tell_others(self, crash: Crash) -> None:
        for other, opened in list(self._open.items()):
            if other is not crash:
                opened.inbox.put({"kind": "refresh"})

    def _close_ended(self) -> None:
        while self._ended:
            self._ended.pop().close()

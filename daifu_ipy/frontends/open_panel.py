"""A crash's panel in the notebook: what is displayed, what its pages send, and what it becomes when it is over."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.repairs import Repair
from daifu_ipy.frontends.held import Held
from daifu_ipy.frontends.kept_output import KeptOutput
from daifu_ipy.frontends.kernel import Kernel
from daifu_ipy.frontends.panel_end import End, waits_text
from daifu_ipy.frontends.panel_rerun import Cell, Running
from daifu_ipy.frontends.panel_session import PanelSession
from daifu_ipy.frontends.panel_widget import CrashPanel
from daifu_ipy.frontends.waiting import Inbox

STALE = ("action", "decide", "rerun", "section")
"""What was asked for in the belief that it would come before the repair, and must not follow it."""
NOT_RUN = "the changed cell was not run"
TOO_LATE = "another repair was tried meanwhile, so this was not done"


class OpenPanel:
    """A panel, from the crash on; when that is over, it answers pages that connect later.

    Parameters
    ----------
    crash
        What waits.
    kernel
        The kernel that this process is.
    running
        The cell that runs; its text is replaced where the crash recovers by that of a re-run.
    translate
        From the text of a notebook cell to the Python that runs.
    others
        Gives the other crashes that wait, for the state.
    publisher
        Displays what it gets in the running cell's output.
    """

    def __init__(
        self,
        crash: Crash,
        kernel: Kernel,
        running: Running,
        translate: Callable[[str], str],
        others: Callable[[], list[dict[str, Any]]],
        publisher: Any,
    ) -> None:
        self.crash_id, self.inbox = uuid.uuid4().hex, Inbox()
        self.summary = crash.summary
        self._kernel, self._lock, self._running, self._publisher = kernel, threading.Lock(), running, publisher
        self._widget: CrashPanel | None = None
        self._final: dict[str, Any] | None = None
        self._kept = KeptOutput()
        self._forget_output: Callable[[], None] = lambda: None
        self._waits = waits_text(crash)
        self.session = PanelSession(
            crash,
            self._send,
            crash_id=self.crash_id,
            cell=_blocked_cell(kernel, running, translate),
            others=others,
            shown_again=self.show,
        )
        try:
            self.show()
        except BaseException:
            self.close()
            raise

    def show(self) -> None:
        """Display it in the cell's output area, or once more if that is a new one."""
        self._display_id = uuid.uuid4().hex
        self._display(self._bundle(self._open_widget()))

    def tick(self, held: Held) -> None:
        """Look whether pages can still reach it, and for requests that are held."""
        self._stay_open()
        self.session.tick(held)

    def _bundle(self, widget: CrashPanel) -> dict[str, Any]:
        return {"text/plain": self._waits, **widget.bundle}

    def _open_widget(self) -> CrashPanel:
        if self._widget is not None and self._widget.is_open:
            return self._widget
        if self._widget is not None:
            self._widget.close()
        self._widget = CrashPanel(self._received, self.crash_id)
        return self._widget

    def _stay_open(self) -> None:
        """A page, or the program, may have closed it: another takes its place, as the crash still waits."""
        if self._final is None and self._widget is not None and not self._widget.is_open:
            self._display(self._bundle(self._open_widget()), update=True)

    def refused(self) -> None:
        """The crash is asked about again. What pages have sent meanwhile was meant for how things stood before."""
        waiting = []
        while (message := self.inbox.get()) is not None:
            if message.get("kind") in STALE or "revert" in message:
                self._reply(message, error=TOO_LATE)
            else:
                waiting.append(message)
        for message in waiting:
            self.inbox.put(message)
        self.session.refused()

    def finish(self, crash: Crash, repair: Repair | None, outcome: str) -> None:
        """It is over: say what was done. To be called before the crash is closed."""
        end = self._end(crash, repair, outcome)
        if outcome == "recovered" and self.session.new_text is not None:
            self._running.code = self.session.new_text
        final = self.session.end(end)
        with self._lock:
            self._final = final
        while (message := self.inbox.get()) is not None:
            self._late(message)
        self._send({"kind": "state", "state": final})
        self._display(end.bundle, update=True)
        self._forget_output = self._kernel.record(self._kept.add)

    def close(self) -> None:
        """Take it from all pages."""
        self._forget_output()
        if self._widget is not None:
            self._widget.close()
        self.inbox.close()

    def _end(self, crash: Crash, repair: Repair | None, outcome: str) -> End:
        elsewhere = repair is not None and not self.session.has_sent(repair)
        remarks = ["decided outside of the panel"] * elsewhere + [NOT_RUN] * self.session.left_out
        seconds = time.perf_counter() - self.session.answered_at
        times = 1 if elsewhere else self.session.times
        return End.of(crash, repair, outcome, seconds, self.session.progress, ", ".join(remarks), times)

    # messages

    def _send(self, message: dict[str, Any]) -> None:
        self._stay_open()
        if self._widget is not None:
            self._widget.send_plainly(message)

    def _display(self, bundle: dict[str, Any], *, update: bool = False) -> None:
        self._publisher.publish(data=bundle, metadata={}, transient={"display_id": self._display_id}, update=update)

    def _reply(self, message: dict[str, Any], error: str = "", **result: Any) -> None:
        if message.get("id") is not None:
            failed = {"error": error} if error else {}
            self._send({"kind": "reply", "id": message["id"], "ok": not error, **failed, **result})

    def _received(self, message: dict[str, Any], client: str) -> None:
        """Called in any thread: it only passes the message on, as long as somebody waits for it."""
        message = {**message, "client": client}
        with self._lock:
            if self._final is None:
                self.inbox.put(message)
                return
        self._late(message)

    def _late(self, message: dict[str, Any]) -> None:
        final = self._final or {}
        kind, is_lost = message.get("kind"), message.get("client") != self.session.client
        version = final["version"] + (self._kept.count if is_lost else 0)
        if kind == "ping":
            self._reply(message, version=version, phase=final["phase"])
        elif kind == "state":
            output = {"lost": is_lost, "items": self._kept.items if is_lost else []}
            self._reply(message, state={**final, "version": version, "output": output})
        else:
            self._reply(message, error=f"it is over: {final['end']['text']}")


def _blocked_cell(kernel: Kernel, running: Running, translate: Callable[[str], str]) -> Cell | None:
    """The notebook cell that this thread blocks."""
    request = kernel.request()
    is_main = threading.current_thread() is threading.main_thread()
    return Cell(replace(request, code=running.code), running.started, translate) if request and is_main else None

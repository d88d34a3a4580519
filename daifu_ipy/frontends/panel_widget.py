"""The widgets that pages show: one says hello, one is a crash's panel. Nothing of the program is in their traits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import anywidget
import traitlets
from comm import get_comm_manager

from daifu_ipy.frontends.kernel import Kernel
from daifu_ipy.frontends.panel import SCRIPT

Take: TypeAlias = Callable[[dict[str, Any], str], object]
"""Gets a message of a page, and the name of the page's session with the kernel. Any thread may call it."""


class PageWidget(anywidget.AnyWidget):
    """A widget that exchanges messages with its pages, and has no state of its own.

    Parameters
    ----------
    take
        Gets what pages send. It is called as a message comes in, also in the thread of a subshell.
    """

    def __init__(self, take: Take, **traits: Any) -> None:
        super().__init__(**traits)
        self._take = take
        # IPython's own way tells everybody that a cell begins and ends: matplotlib would show, and close, the figures
        # of the cell that is blocked
        self._others, self.comm.handle_msg = self.comm.handle_msg, self._received
        kernel = Kernel.here()
        if kernel is not None:
            kernel.fix_routing(self.comm)

    def send_plainly(self, message: dict[str, Any]) -> None:
        """Send a message to all pages; what can't be sent of its texts is replaced."""
        try:
            self.send(message)
        except ValueError:
            self.send(sendable(message))

    @property
    def is_open(self) -> bool:
        """Whether pages can reach it: a page, or the program, may have closed it."""
        comm = self.comm
        return comm is not None and get_comm_manager().comms.get(comm.comm_id) is comm

    @property
    def bundle(self) -> dict[str, Any]:
        """What shows it, by the type of its representation."""
        return {
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self.model_id,
            }
        }

    def close(self) -> None:
        """Close it for all pages; it hears nothing any more."""
        if self.comm is not None:
            self.comm.handle_msg = self._others
            self._take = _ignore
            self.layout.close()
        super().close()

    def _received(self, message: dict[str, Any]) -> None:
        data = message["content"]["data"]
        if data.get("method") != "custom":
            self._others(message)
        elif isinstance(data.get("content"), dict):
            self._take(data["content"], str(message.get("header", {}).get("session", "")))


class Greeting(PageWidget):
    """Says hello as soon as a page has it, also where it is not in view."""

    _esm = "export default { initialize({ model }) { model.send({ kind: 'hello' }); } };"


class CrashPanel(PageWidget):
    """A crash's panel."""

    crash_id = traitlets.Unicode().tag(sync=True)

    def __init__(self, take: Take, crash_id: str) -> None:
        self._esm, self._css = SCRIPT.read_text("utf-8"), SCRIPT.with_suffix(".css").read_text("utf-8")
        super().__init__(take, crash_id=crash_id)


def sendable(value: Any) -> Any:
    """The same, without numbers and halves of characters that JSON does not know."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {sendable(key): sendable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(item) for item in value]
    return str(value) if isinstance(value, float) and (value != value or value in (INFINITE, -INFINITE)) else value


INFINITE = float("inf")


def _ignore(message: dict[str, Any], session: str) -> None:
    """It is closed."""

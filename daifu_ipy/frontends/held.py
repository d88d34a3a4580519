"""Requests that wait while the cell of a kernel's main thread is blocked, and those that are handled meanwhile."""

from __future__ import annotations

import contextlib
import inspect
import logging
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from daifu_ipy.frontends.shell_channel import Frames, channel_of

_log = logging.getLogger(__name__)

COMMS = frozenset({"comm_open", "comm_msg", "comm_close"})
AT_ONCE = COMMS | {
    "kernel_info_request",
    "comm_info_request",
    "complete_request",
    "inspect_request",
    "is_complete_request",
    "history_request",
}
"""What is handled while a cell is blocked, as front ends wait for it. But for messages to the program's own comms and
widgets, whose handlers are its own code, it changes no state of the program.
"""

BEATS_EVERY = 1.0
"""Seconds after which front ends are told again that the cell is running: an idle kernel may be stopped."""


@dataclass(frozen=True)
class Request:
    """An execute request.

    Parameters
    ----------
    msg_id
        Its message's id.
    cell_id
        The notebook cell it came from, where the front end says so.
    code
        What is to run.
    client
        Names the front end's connection: a page that is loaded again has another.
    """

    msg_id: str
    cell_id: str | None
    code: str
    client: str = ""


@dataclass(frozen=True)
class Kept:
    """A message, and what is in it. The kernel does not know that it was read: it can still go its own way."""

    frames: Frames
    ident: list[bytes]
    message: dict[str, Any]

    @classmethod
    def of(cls, frames: Frames, session: Any) -> Kept:
        """Read it; one that can't be read is the kernel's to complain about."""
        try:
            ident, rest = session.feed_identities(frames, copy=False)
            message = session.deserialize(rest, content=False, copy=False)
            return cls(frames, ident, message | {"content": session.unpack(message["content"])})
        except Exception:
            return cls(frames, [], {"header": {"msg_type": "", "msg_id": ""}})

    @property
    def kind(self) -> str:
        """The message's type."""
        return str(self.message["header"]["msg_type"])

    @property
    def msg_id(self) -> str:
        """The message's id."""
        return str(self.message["header"]["msg_id"])

    def emptied(self, session: Any) -> Frames:
        """The same request, of nothing: it is answered in its turn, and no code runs."""
        import zmq

        content = self.message["content"] | {"code": "", "silent": True, "store_history": False}
        parts = session.serialize(self.message | {"content": content}, self.ident)
        return [zmq.Frame(part) for part in parts]


@dataclass
class Adoptions:
    """The requests that a running cell's output went to, also by an earlier crash of it, and where it went at first."""

    whole: dict[str, Kept] = field(default_factory=dict)  # as they came: they are given back empty
    first: tuple[Any, Any] | None = None


class Held:
    """Requests that wait while the main thread's cell is blocked.

    Parameters
    ----------
    kernel
        The ipykernel kernel.
    adopted
        What was adopted so far; in place.
    """

    def __init__(self, kernel: Any, adopted: Adoptions) -> None:
        self._kernel, self._adoptions = kernel, adopted
        self._channel = channel_of(self._kernel)
        self._parent = (self._kernel._parent_ident["shell"], self._kernel.get_parent("shell"))
        self._later: list[Kept] = []
        self._adopted: list[Kept] = []
        self._places: dict[str, int] = {}
        if self._parent[1]["header"].get("msg_id") not in adopted.whole:
            adopted.first = self._parent
        self._runs_anyway: set[str] = set()
        self._busy_since = time.monotonic()
        self.handling_since: float | None = None

    def begin(self) -> None:
        """Take over from the kernel."""
        self._channel.hold()
        self._take()

    def end(self) -> None:
        """Give everything back: adopted ones first, as they are done when the running cell is."""
        self._take()  # what an action's own event loop has received
        first = next((at for at, kept in enumerate(self._later) if kept.msg_id in self._runs_anyway), None)
        frames = [kept.frames for kept in self._later]
        self._channel.give_back([kept.emptied(self._kernel.session) for kept in self._adopted] + frames[:first])
        if first is not None:
            self._channel.give_back_later(frames[first:])

    def pump(self, timeout: float, wake: Any) -> None:
        """Handle what front ends wait for; everything else is kept, in order. Say each second that the cell runs.

        Sleeps until a message comes, `wake` (a file number, or what has one) is readable, or `timeout` seconds have
        passed.
        """
        import zmq

        poller = zmq.Poller()
        poller.register(self._channel.stream.socket, zmq.POLLIN)
        poller.register(wake, zmq.POLLIN)
        poller.poll(round(timeout * 1000))
        self._take()
        if time.monotonic() - self._busy_since >= BEATS_EVERY:
            self.busy()

    def busy(self) -> None:
        """Tell front ends that the cell is still running."""
        self._busy_since = time.monotonic()
        self._kernel._publish_status("busy", "shell", parent=self._parent[1])

    @property
    def requests(self) -> list[Request]:
        """The execute requests that are held, oldest first."""
        return [request for kept in self._later if (request := request_of(kept.message)) is not None]

    def adopt(self, msg_id: str) -> None:
        """From now on the running cell's output is this request's. It is done when the cell is; its code never runs."""
        kept = {kept.msg_id: kept for kept in self._later}[msg_id]
        self._places[msg_id] = self._later.index(kept)
        self._later.remove(kept)
        self._adopted.append(kept)
        self._kernel._publish_status("idle", "shell", parent=self._parent[1])
        self._belong_to((kept.ident, kept.message))
        self._adoptions.whole[msg_id] = kept

    def run_after(self, msg_id: str) -> None:
        """This request, and those after it, run in any case: an error of the running cell aborts only those before.

        If it was adopted, it is no more: the output is again that of the request that the running cell began with.
        """
        self._runs_anyway.add(msg_id)
        adopted = next((kept for kept in self._adopted if kept.msg_id == msg_id), None)
        if adopted is not None and self._adoptions.first is not None:
            self._adopted.remove(adopted)
            del self._adoptions.whole[msg_id]
            self._later.insert(self._places.get(msg_id, 0), adopted)
            self._belong_to(self._adoptions.first)

    def _belong_to(self, parent: tuple[Any, Any]) -> None:
        """The running cell's output is this request's."""
        _flush()
        self._parent = parent
        self._kernel.set_parent(*parent, channel="shell")
        self.busy()

    def _take(self) -> None:
        """Handle what has come, or keep it."""
        handled = False
        for frames in self._channel.receive():
            kept = Kept.of(frames, self._kernel.session)
            if kept.kind in AT_ONCE:
                self._handle(kept)
                handled = True
            else:
                adopted = self._adoptions.whole.get(kept.msg_id)
                self._later.append(kept) if adopted is None else self._adopted.append(adopted)
        if handled:
            self.busy()  # each of them has told the front ends that the kernel is idle

    def _handle(self, kept: Kept) -> None:
        """As the kernel itself does, but for the signal handler: the running cell has its own."""
        session, kernel = self._kernel.session, self._kernel
        try:
            ident, rest = session.feed_identities(kept.frames, copy=False)
            message = session.deserialize(rest, copy=False)
            kernel.set_parent(ident, message, channel="shell")
            kernel._publish_status("busy", "shell")
            self.handling_since = time.monotonic()
            with _no_cell(getattr(kernel, "shell", None)):
                _run(kernel.shell_handlers[kept.kind], self._channel.replies, ident, message)
            self.handling_since = None
        except (Exception, KeyboardInterrupt):
            self.handling_since = None
            _log.exception("a message to the kernel could not be handled")
        _flush()
        kernel._publish_status("idle", "shell")
        self._channel.flush_replies()
        kernel.set_parent(*self._parent, channel="shell")


def request_of(message: dict[str, Any]) -> Request | None:
    """A message as an execute request; None if it is none."""
    if message["header"]["msg_type"] != "execute_request":
        return None
    header, cell_id = message["header"], message["metadata"].get("cellId")
    code, client = message["content"].get("code", ""), str(header.get("session", ""))
    return Request(header["msg_id"], str(cell_id) if cell_id else None, code, client)


def _flush() -> None:
    """Send what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


@contextlib.contextmanager
def _no_cell(shell: Any) -> Iterator[None]:
    """A message is no cell: what is done at the end of one, as showing and closing plots, is not done at its end."""
    callbacks = getattr(getattr(shell, "events", None), "callbacks", {})
    before = {name: callbacks[name] for name in ("pre_execute", "post_execute") if name in callbacks}
    callbacks.update({name: [] for name in before})
    try:
        yield
    finally:
        callbacks.update({name: [*kept, *callbacks[name]] for name, kept in before.items()})


def _run(handler: Callable[..., Any], *arguments: Any) -> None:
    """Call a handler; if it is a coroutine, it has no reason to wait, and could not here."""
    result = handler(*arguments)
    if inspect.iscoroutine(result):
        with contextlib.suppress(StopIteration):
            result.send(None)
            result.close()

"""The Jupyter kernel that this process is: which request runs, and requests handled while its cell is blocked."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from daifu_ipy.engine.invariants import check
from daifu_ipy.frontends.held import Adoptions, Held, Request, request_of
from daifu_ipy.frontends.prompt import running_shell
from daifu_ipy.frontends.shell_channel import problem_of

_log = logging.getLogger(__name__)

OUTPUTS = frozenset({"stream", "display_data", "execute_result", "error", "clear_output", "update_display_data"})
"""The messages that are a cell's output."""


class Kernel:
    """A kernel of ipykernel, from 6.29 on. Its insides are touched here, in `held` and in `shell_channel` only.

    Parameters
    ----------
    kernel
        The ipykernel kernel.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.problem = _problem(kernel)
        self._held: Held | None = None
        self._adopted = Adoptions()
        self._recorders: list[Callable[[dict[str, Any]], object]] = []
        self._recorded: set[str] = set()
        self._unwatch: Callable[[], object] = lambda: None

    @classmethod
    def here(cls) -> Kernel | None:
        """The kernel of the running shell: the same object each time; None where there is none."""
        kernel = getattr(running_shell(), "kernel", None)
        if kernel is None:
            return None
        if not _here or _here[0].kernel is not kernel:
            _here[:] = [cls(kernel)]
        _admit_thread(kernel)
        return _here[0]

    def request(self) -> Request | None:
        """The execute request that runs; None outside of any."""
        with contextlib.suppress(Exception):
            return request_of(self.kernel.get_parent("shell"))
        return None

    def first_request(self) -> Request | None:
        """The one that the running cell began with: its output may belong to another since."""
        request, first = self.request(), self._adopted.first
        if request is None or first is None or request.msg_id not in self._adopted.whole:
            return request
        return request_of(first[1])

    @property
    def is_ending(self) -> bool:
        """Whether somebody has asked the kernel to shut down or to restart."""
        return getattr(self.kernel, "_shutdown_message", None) is not None

    @property
    def handling_since(self) -> float | None:
        """When the message that is being handled began to be (`time.monotonic`); None if there is none."""
        return self._held.handling_since if self._held is not None else None

    @contextlib.contextmanager
    def hold(self) -> Iterator[Held]:
        """Read requests on the main thread while its cell is blocked. At the end, what was held goes back, in order.

        Inside of another `hold`, it is that one again.
        """
        check(self.problem is None, lambda: f"requests can't be held: {self.problem}")
        check(threading.current_thread() is threading.main_thread(), lambda: "only the main thread reads requests")
        if self._held is not None:
            yield self._held
            return
        held = Held(self.kernel, self._adopted)
        try:
            held.begin()
            self._held = held
            yield held
        finally:
            self._held = None
            try:
                held.end()
            except Exception:  # not the cell's fault
                _log.exception("requests that waited for a blocked cell are lost")

    def record(self, add: Callable[[dict[str, Any]], object]) -> Callable[[], None]:
        """Let `add` see every message of the running cell's output as it is sent, in the thread that sends it.

        Returns
        -------
        Callable
            Ends it.
        """
        request = self.request()
        if not self._recorders:
            self._unwatch()
            self._unwatch = self._watch_output()
            self._recorded.clear()
        if request is not None:
            self._recorded.add(request.msg_id)
        self._recorders.append(add)

        def undo() -> None:
            with contextlib.suppress(ValueError):
                self._recorders.remove(add)
            if not self._recorders:
                self._unwatch()

        return undo

    def fix_routing(self, comm: Any) -> None:
        """Let messages to a comm go where the front end sends them: to a subshell, if it has one.

        ipykernel 7.4 sends them to the shell that used the comm last, which is the one that is blocked.
        """
        if hasattr(type(comm), "_reply_subshell_for"):
            comm._reply_subshell_for = lambda data, default: default

    def _watch_output(self) -> Callable[[], object]:
        """Output of every kind passes `Session.send` on its way to the iopub socket. Gives what ends it."""
        session, kernel, send = self.kernel.session, self.kernel, self.kernel.session.send

        def watched(stream: Any, *args: Any, **kwargs: Any) -> Any:
            message = send(stream, *args, **kwargs)
            if self._recorders and message and (stream is kernel.iopub_socket or stream is kernel.iopub_thread):
                self._seen(message)
            return message

        session.send = watched

        def unwatch() -> None:
            if vars(session).get("send") is watched:  # nobody has put himself before it
                del session.send
                if session.send != send:
                    session.send = send

        return unwatch

    def _seen(self, message: dict[str, Any]) -> None:
        parent = message["parent_header"].get("msg_id")
        if message["msg_type"] in OUTPUTS and (parent in self._recorded or parent in self._adopted.whole):
            for add in list(self._recorders):
                try:
                    add(message)
                except Exception:
                    _log.exception("an output message was not recorded")


_here: list[Kernel] = []


def _admit_thread(kernel: Any) -> None:
    """In ipykernel 7.0 alone, a thread of the program can't send anything: there is no request that it belongs to."""
    parent = getattr(kernel, "_shell_parent", None)
    if isinstance(parent, ContextVar) and not hasattr(kernel, "_shell_context") and parent.get(None) is None:
        parent.set({})


def _problem(kernel: Any) -> str | None:
    try:
        lacks = problem_of(kernel)
    except Exception as error:
        lacks = f"{type(error).__name__}: {error}"
    if lacks is None:
        return None
    package = type(kernel).__module__.partition(".")[0]
    version = getattr(sys.modules.get(package), "__version__", "of unknown version")
    return f"{package} {version} is not as expected (Kernel.{lacks}): a blocked cell can't be reached"

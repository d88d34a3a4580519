"""A crashed thread waits for an answer: blocked, while messages, the stop button and the kernel are all served."""

from __future__ import annotations

import contextlib
import logging
import math
import selectors
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from daifu_ipy.engine.repairs import Abort, Repair
from daifu_ipy.frontends.held import Held
from daifu_ipy.frontends.kernel import Kernel
from daifu_ipy.repair.rules import SameHere

T = TypeVar("T")
R = TypeVar("R")
_log = logging.getLogger(__name__)

LOOKS_EVERY = 0.2
"""Seconds after which one that waits looks whether somebody else has decided."""
SLOW = 0.5
"""Seconds after which the stop button stops the handling of a message."""


class Decidable(Protocol):
    """What is waited for."""

    @property
    def decision(self) -> Repair | None:
        """What somebody else has decided, or None."""
        ...


class Inbox:
    """Messages for a thread that waits. Any thread, and a signal handler, may `put`: it never fails or blocks."""

    def __init__(self) -> None:
        self._messages: deque[dict[str, Any]] = deque()
        self._bell, self._push = socket.socketpair()
        self._bell.setblocking(False)
        self._push.setblocking(False)

    def put(self, message: dict[str, Any]) -> None:
        """Add a message and wake the thread that waits."""
        self._messages.append(message)
        with contextlib.suppress(OSError):  # full: it rings already; closed: nobody waits any more
            self._push.send(b"\0")

    def get(self) -> dict[str, Any] | None:
        """The oldest message; None if there is none: then `fileno` is readable as soon as there is one."""
        if not self._messages:
            self._silence()
        try:
            return self._messages.popleft()
        except IndexError:
            return None

    def wait(self, timeout: float) -> None:
        """Sleep until a message comes, `timeout` seconds at most."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._bell, selectors.EVENT_READ)
            selector.select(timeout)

    def fileno(self) -> int:
        """The file number that is readable when a message has come."""
        return self._bell.fileno()

    def close(self) -> None:
        """Free its sockets."""
        self._bell.close()
        self._push.close()

    def _silence(self) -> None:
        with contextlib.suppress(OSError):
            while self._bell.recv(4096):
                pass


def wait(
    crash: Decidable,
    inbox: Inbox,
    obey: Callable[[dict[str, Any]], Repair | SameHere | None],
    kernel: Kernel | None = None,
    tick: Callable[[Held], object] | None = None,
) -> Repair | SameHere:
    """Block the crashed thread until there is an answer.

    On the main thread of a kernel, messages of front ends are handled meanwhile, requests to run code are held, and the
    stop button is a message, ``{"kind": "sigint"}``. Elsewhere the thread just sleeps.

    Parameters
    ----------
    crash
        What waits. If somebody else decides it, that is the answer.
    inbox
        Where messages come in.
    obey
        Called with each message, on this thread; what it returns is the answer, None if there is none yet. If it
        fails, the wait goes on.
    kernel
        The kernel that this process is.
    tick
        Called with the held requests, at first and each time after messages were looked for.
    """
    pumps = kernel is not None and kernel.problem is None and threading.current_thread() is threading.main_thread()
    with stop_is_a_message(inbox, kernel) as listen, contextlib.ExitStack() as stack:
        held = None
        if kernel is not None and pumps:
            held = _guarded(stack.enter_context, kernel.hold())
        return _until_answered(crash, inbox, obey, kernel, held, tick, listen)


@contextlib.contextmanager
def stop_is_a_message(inbox: Inbox, kernel: Kernel | None = None) -> Iterator[Callable[[], object]]:
    """While this is open, the stop button is a message, so that it can't strike between two of our own statements.

    It still stops somebody else's handler of a message, if that takes long. What this gives makes it so again.
    """

    def stopped(*_: Any) -> None:
        since = kernel.handling_since if kernel is not None else None
        if since is not None and time.monotonic() - since > SLOW:
            raise KeyboardInterrupt
        inbox.put({"kind": "sigint"})

    with _sigint(stopped) as listen:
        yield listen


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """While this is open, the stop button raises `KeyboardInterrupt`: around the program's own code, and nothing else.

    It may be raised by the end of the `with` statement, too. Pressed again at once, the button does what it did before
    the block: the program's code may have ended by then. Pressed later it raises again, as code may ignore the first.
    """
    before, stopped_at = signal.getsignal(signal.SIGINT), -math.inf

    def stop(*at: Any) -> None:
        nonlocal stopped_at
        now = time.monotonic()
        if now - stopped_at < SLOW and callable(before):
            before(*at)
            return
        stopped_at = now
        raise KeyboardInterrupt

    with _sigint(stop):
        yield


def _until_answered(
    crash: Decidable,
    inbox: Inbox,
    obey: Callable[[dict[str, Any]], Repair | SameHere | None],
    kernel: Kernel | None,
    held: Held | None,
    tick: Callable[[Held], object] | None,
    listen: Callable[[], object],
) -> Repair | SameHere:
    if held is not None and tick is not None:
        _guarded(tick, held)
    while crash.decision is None:
        with contextlib.suppress(KeyboardInterrupt):  # one that struck just as an action ended
            listen()
            if _process_ends(kernel):  # the program's own clean-up may run before
                return Repair(then=Abort())
            message = inbox.get()
            if message is not None:
                answer = _guarded(obey, message)
                if answer is not None:
                    return answer
            elif held is not None and _pumped(held, inbox):
                if tick is not None:
                    _guarded(tick, held)
            else:
                held = None  # if it failed, it will fail again: messages may still come by a subshell
                inbox.wait(LOOKS_EVERY)
    return crash.decision


def _process_ends(kernel: Kernel | None) -> bool:
    """Whether nobody will answer, and a thread that waits would only keep the process from ending."""
    return not threading.main_thread().is_alive() or (kernel is not None and kernel.is_ending)


def _pumped(held: Held, inbox: Inbox) -> bool:
    try:
        held.pump(LOOKS_EVERY, inbox)
        return True
    except Exception:
        _log.exception("a crash goes on waiting, but the kernel can't be served")
    return False


def _guarded(call: Callable[[T], R], argument: T) -> R | None:
    """Nothing that fails ends a wait for hours of work."""
    try:
        return call(argument)
    except BaseException:
        _log.exception("a crash goes on waiting")
    return None


@contextlib.contextmanager
def _sigint(handler: Callable[..., Any]) -> Iterator[Callable[[], object]]:
    """Have SIGINT handled so; gives what sets the handler again."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield lambda: signal.signal(signal.SIGINT, handler)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)

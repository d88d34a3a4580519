"""How requests reach a kernel's main thread, and how they are kept from it and given back: ipykernel's own insides.

While a cell runs, the main thread reads no requests. Here it can read them all the same. What it does not handle at
once goes back the way it would have come, so that order, and the abort that follows an error, stay the kernel's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections import deque
from collections.abc import Coroutine, Iterator
from contextvars import Context
from typing import Any, TypeAlias

Frames: TypeAlias = list[Any]
"""A message as it comes from the socket: not unpacked, so that its signature is still new to the kernel."""

MISSING = object()
NEEDED = (
    "session.feed_identities",
    "session.deserialize",
    "session.serialize",
    "session.send",
    "shell_handlers",
    "get_parent",
    "set_parent",
    "_parent_ident",
    "_publish_status",
    "iopub_socket",
    "iopub_thread",
)
QUEUED = ("msg_queue.get_nowait", "msg_queue.put_nowait", "schedule_dispatch", "dispatch_shell", "shell_stream")
THREADED = (
    "shell_channel_thread.io_loop.add_callback",
    "shell_channel_thread.manager.get_shell_channel_to_subshell_pair",
    "shell_channel_thread.manager.get_shell_channel_to_subshell_socket",
    "shell_channel_thread.manager.get_subshell_to_shell_channel_socket",
    "_main_asyncio_lock",
    "io_loop.asyncio_loop.create_task",
)
STREAM = ("socket", "flush", "on_recv", "_recv_callback")


def missing(owner: object, names: tuple[str, ...]) -> str | None:
    """The first of these dotted names that an object lacks."""
    for name in names:
        value = owner
        for part in name.split("."):
            value = getattr(value, part, MISSING)
            if value is MISSING or value is None:
                return name
    return None


class ShellChannel:
    """A kernel's requests on their way to its main thread.

    Parameters
    ----------
    kernel
        The ipykernel kernel.
    stream
        What the main thread reads them from.
    replies
        Where its replies go.
    """

    def __init__(self, kernel: Any, stream: Any, replies: Any) -> None:
        self.kernel, self.stream, self.replies = kernel, stream, replies
        self._callback: Any = None
        self._arrived: deque[Frames] = deque()

    def hold(self) -> None:
        """From now on every request is received here; those that had come already are the first."""
        self._callback = self.stream._recv_callback
        self.stream.on_recv(self._arrived.append, copy=False)
        self._arrived.extend(self._come())

    def receive(self) -> Iterator[Frames]:
        """What has come by now, oldest first."""
        import zmq

        self.stream.flush(zmq.POLLIN)  # it must not be flushed again by what it calls: so the loop is outside
        while self._arrived:
            yield self._arrived.popleft()

    def give_back(self, messages: list[Frames]) -> None:
        """Requests go their own way again, and these go before those that are still to come."""
        self.stream.on_recv(self._callback, copy=False)
        for frames in messages:
            self._give_back(frames)

    def give_back_later(self, messages: list[Frames]) -> None:
        """The same, but behind the end of the abort that follows if the running cell fails."""
        raise NotImplementedError

    def flush_replies(self) -> None:
        """Send the replies that wait for the main loop to do it."""

    def _give_back(self, frames: Frames) -> None:
        self._callback(frames)

    def _come(self) -> list[Frames]:
        """What has come, and waits for the running cell to end."""
        raise NotImplementedError


class QueuedChannel(ShellChannel):
    """ipykernel 6: the main thread reads the socket itself, and queues what it reads."""

    def __init__(self, kernel: Any) -> None:
        super().__init__(kernel, kernel.shell_stream, kernel.shell_stream)

    def give_back_later(self, messages: list[Frames]) -> None:
        callback = self._callback

        async def queue_again() -> None:
            for frames in messages:
                callback(frames)

        self.kernel.schedule_dispatch(queue_again)

    def flush_replies(self) -> None:
        import zmq

        self.stream.flush(zmq.POLLOUT)

    def _come(self) -> list[Frames]:
        queue = self.kernel.msg_queue
        items = [queue.get_nowait() for _ in range(queue.qsize())]
        come = []
        for item in items:
            _, dispatch, arguments = item
            if dispatch == self.kernel.dispatch_shell:
                come.append(arguments[0])
            else:
                queue.put_nowait(item)
        return come


class ThreadedChannel(ShellChannel):
    """ipykernel 7: a thread reads the socket; each message becomes a task that waits for a lock."""

    def __init__(self, kernel: Any) -> None:
        manager = kernel.shell_channel_thread.manager
        pair = manager.get_shell_channel_to_subshell_pair(None)
        super().__init__(kernel, pair.to_stream, manager.get_subshell_to_shell_channel_socket(None))
        self.loop = kernel.io_loop.asyncio_loop

    def give_back_later(self, messages: list[Frames]) -> None:
        thread = self.kernel.shell_channel_thread
        socket = thread.manager.get_shell_channel_to_subshell_socket(None)

        async def send_again() -> None:
            async with self.kernel._main_asyncio_lock:  # the cell has ended: the abort's end, if any, is on its way
                for frames in messages:
                    thread.io_loop.add_callback(socket.send_multipart, frames, copy=False)

        self._start(send_again())

    def _give_back(self, frames: Frames) -> None:
        self._start(self._callback(frames))

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """In a context of its own: what the running cell has set in its context is not for the next one."""
        self.loop.create_task(coroutine, context=Context())

    def _come(self) -> list[Frames]:
        """Messages of tasks that have not got the lock: the tasks are cancelled, the messages are ours."""
        tasks = list(_tasks_with_frames(self.loop))
        begun = {id(frames) for task, frames in tasks if _has_begun(task.get_coro())}
        come: dict[int, tuple[str, Frames]] = {}
        for task, frames in tasks:
            sent = self._sent(frames)
            if id(frames) not in begun and sent is not None:
                come[id(frames)] = (sent, frames)
                _cancel(task)
        return [frames for _, frames in sorted(come.values(), key=lambda item: item[0])]

    def _sent(self, frames: Frames) -> str | None:
        """When a message was sent; None if the kernel has read it (its signature is known then), or can't."""
        session = self.kernel.session
        with contextlib.suppress(Exception):
            _, rest = session.feed_identities(frames, copy=False)
            return str(session.deserialize(rest, content=False, copy=False)["header"].get("date"))
        return None


def _has_begun(coroutine: Any) -> bool:
    """Whether it, or what it waits for, handles its message by now: it has got the lock."""
    while inspect.iscoroutine(coroutine):
        state = inspect.getcoroutinestate(coroutine)
        if state == inspect.CORO_RUNNING:
            return True
        if coroutine.__name__ == "dispatch_shell" and state == inspect.CORO_SUSPENDED:
            return True
        coroutine = coroutine.cr_await
    return False


def _cancel(task: asyncio.Task[Any]) -> None:
    """Without the complaint of the stream that made the task."""
    for callback, _ in getattr(task, "_callbacks", None) or ():
        if getattr(callback, "__name__", "") == "_log_error":
            task.remove_done_callback(callback)
    task.cancel()


def _tasks_with_frames(loop: asyncio.AbstractEventLoop) -> Iterator[tuple[asyncio.Task[Any], Frames]]:
    import zmq

    for task in asyncio.all_tasks(loop):
        frame = getattr(task.get_coro(), "cr_frame", None)
        if frame is None or not str(frame.f_globals.get("__name__")).startswith("ipykernel."):
            continue  # a frame that was looked at keeps what its variables held: not the program's
        values = frame.f_locals
        message = values.get("msg") or next(iter(values.get("args") or ()), None)
        if isinstance(message, list) and len(message) > 1 and isinstance(message[0], zmq.Frame):
            yield task, message


def problem_of(kernel: Any) -> str | None:
    """The internal that is missing, or None where requests can be held."""
    if getattr(kernel, "shell_channel_thread", None) is None:
        lacks = missing(kernel, NEEDED + QUEUED)
        stream = getattr(kernel, "shell_stream", None)
    else:
        lacks = missing(kernel, NEEDED + THREADED)
        stream = None if lacks else ThreadedChannel(kernel).stream
    if lacks is None and "comm_msg" not in kernel.shell_handlers:
        lacks = "shell_handlers['comm_msg']"
    return lacks or missing(stream, STREAM)


def channel_of(kernel: Any) -> ShellChannel:
    """The way that this kernel has."""
    threaded = getattr(kernel, "shell_channel_thread", None) is not None
    return ThreadedChannel(kernel) if threaded else QueuedChannel(kernel)

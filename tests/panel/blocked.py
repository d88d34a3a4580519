"""A real kernel, of a chosen version of ipykernel, with a cell that blocks; its client looks at each message."""

from __future__ import annotations

import ast
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zmq
from jupyter_client.manager import start_new_kernel

PROJECT = Path(__file__).parents[2]
OVERLAYS = PROJECT / ".envs" / "kernels"
INSTALLED = "installed"
VERSIONS = [
    INSTALLED,
    "6.29.5",
    "6.31.0",
    "7.0.1",
    pytest.param("7.1.0", marks=pytest.mark.exhaustive),
    pytest.param("7.2.0", marks=pytest.mark.exhaustive),
    "7.3.0",
    pytest.param("7.4.0", marks=pytest.mark.exhaustive),
]

# `block()` waits as a crash does. Its page is a comm: `{"id", "code"}` is answered by the value of the code.
SETUP = """
import time
from types import SimpleNamespace
from comm import get_comm_manager
from daifu_ipy.engine.repairs import Abort, Repair, Skip
from daifu_ipy.frontends.kernel import Kernel
from daifu_ipy.frontends.waiting import Inbox, interruptible, wait

kernel, inbox, crash, log, page, ticks = Kernel.here(), Inbox(), SimpleNamespace(decision=None), [], [], []

def opened(comm, message):
    page[:] = [comm]
    comm.on_msg(lambda message: inbox.put(message["content"]["data"]))

get_comm_manager().register_target("page", opened)

def obey(message):
    if "code" not in message:
        log.append(message["kind"])
        return None
    try:
        value = eval(message["code"], globals())
    except BaseException as error:
        value = repr(error)
    page[0].send({"id": message["id"], "value": value if isinstance(value, (int, str, list)) else None})
    return value if isinstance(value, Repair) else None

def see(now):
    global held
    held = now
    ticks.append(None)

def block():
    return wait(crash, inbox, obey, kernel, see).word
"""
END = "Repair(then=Skip())"


def overlay(version: str) -> Path:
    """The folder of a version of ipykernel; it is got where it is missing."""
    folder = OVERLAYS / version
    if not folder.is_dir():
        OVERLAYS.mkdir(parents=True, exist_ok=True)
        with (OVERLAYS / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = subprocess.run(
                [PROJECT / "scripts" / "get-kernels", version],
                env={**os.environ, "PYTHON": sys.executable},
                capture_output=True,
                text=True,
            )
        if done.returncode:
            pytest.skip(f"ipykernel {version} could not be got: {done.stderr[-500:]}")
    return folder


class Blocked:
    """A kernel's client that keeps every message; requests are sent, and then waited for or not."""

    def __init__(self, version: str = INSTALLED, setup: str = SETUP) -> None:
        env = dict(os.environ)
        if version != INSTALLED:
            env["PYTHONPATH"] = str(overlay(version))
        self.manager, self.client = start_new_kernel(
            kernel_name="python3", env=env, extra_arguments=["--HistoryManager.hist_file=:memory:"]
        )
        self.replies: dict[str, dict[str, Any]] = {}
        self.shown: list[dict[str, Any]] = []
        self.asked = 0
        self.poller = zmq.Poller()
        for channel in (self.client.shell_channel, self.client.iopub_channel):
            self.poller.register(channel.socket, zmq.POLLIN)
        assert self.run(setup)["status"] == "ok"
        self.send("comm_open", comm_id="page", target_name="page", data={})
        if version != INSTALLED:
            assert self.value("__import__('ipykernel').__version__") == version

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    # ---- sending

    def send(self, kind: str, metadata: dict[str, Any] | None = None, **content: Any) -> str:
        """Send a request on the shell channel: its id."""
        message = self.client.session.msg(kind, content, metadata=metadata)
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def execute(self, code: str, metadata: dict[str, Any] | None = None, **content: Any) -> str:
        """Ask for a cell to be run: the request's id."""
        content = {"code": code, "silent": False, "allow_stdin": False, "stop_on_error": True} | content
        return self.send("execute_request", metadata, **content)

    def block(self, cell: str = "block()", **content: Any) -> str:
        """Run a cell that blocks; it does when this returns."""
        request = self.execute(cell, **content)
        assert self.ask("'blocked'") == "blocked"
        return request

    def tell(self, code: str) -> str:
        """Have the blocked thread run code; its answer is not waited for."""
        self.asked += 1
        name = f"question-{self.asked}"
        self.send("comm_msg", comm_id="page", data={"id": name, "code": code})
        return name

    # ---- receiving

    def ask(self, code: str) -> Any:
        """The value of code that the blocked thread runs."""
        name = self.tell(code)
        return self.until(lambda: self.answer(name))["value"]

    def answer(self, name: str) -> dict[str, Any] | None:
        """The message that answers a question, if it has come."""
        answers = [m["content"]["data"] for m in self.shown if m["msg_type"] == "comm_msg"]
        return next((data for data in answers if data.get("id") == name), None)

    def reply(self, request: str) -> dict[str, Any]:
        """What a request was answered with, once it is done altogether."""
        self.until(lambda: request in self.replies and "idle" in self.states(request))
        return self.replies[request]

    def run(self, code: str, **content: Any) -> dict[str, Any]:
        """Run a cell to its end: the reply."""
        return self.reply(self.execute(code, **content))

    def value(self, code: str) -> Any:
        """The value of an expression, when nothing is blocked."""
        request = self.execute("", user_expressions={"value": code}, silent=True)
        shown = self.reply(request)["user_expressions"]["value"]
        assert shown["status"] == "ok", shown
        return ast.literal_eval(shown["data"]["text/plain"])

    def of(self, request: str, *kinds: str) -> list[dict[str, Any]]:
        """The messages of these kinds that belong to a request's output."""
        return [m for m in self.shown if m["parent_header"].get("msg_id") == request and m["msg_type"] in kinds]

    def states(self, request: str) -> list[str]:
        return [m["content"]["execution_state"] for m in self.of(request, "status")]

    def text(self, request: str) -> str:
        """What a request's cell has printed, so far as it has come."""
        return "".join(m["content"]["text"] for m in self.of(request, "stream"))

    def until(self, wanted: Callable[[], Any]) -> Any:
        """Receive messages until something is there."""
        begun = nudged = time.monotonic()
        while not (found := wanted()):
            self.poller.poll(200)
            self.receive()
            if time.monotonic() - nudged > 1:
                nudged = time.monotonic()
                self.send("comm_info_request")  # ipykernel 7.0 to 7.3 may leave a request unread until the next one
            assert nudged - begun < 30, (self.replies.keys(), [m["content"] for m in self.shown[-20:]])
        return found

    def receive(self) -> None:
        for channel in (self.client.shell_channel, self.client.iopub_channel):
            while channel.socket.poll(0):
                message = channel.get_msg(timeout=1)
                if channel is self.client.iopub_channel:
                    self.shown.append(message)
                else:
                    self.replies[message["parent_header"]["msg_id"]] = message["content"]

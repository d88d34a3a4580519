"""The rules with a name: which crashes they are for, and how they end. Nothing here sleeps."""

from __future__ import annotations

import ast
import http.client
import socket
import sqlite3
import urllib.error
from types import SimpleNamespace

import pytest

from daifu_ipy.engine.repairs import Continue, Pass, Repair
from tests.fakes import FakeCrash
from tests.repair.test_rules import Answers, loop


class HTTPError(OSError):  # as those of requests and urllib: part of OSError
    pass


class HTTPStatusError(Exception):
    pass


class OutOfMemoryError(RuntimeError):
    pass


def transient():
    yield from (ConnectionResetError(), ConnectionRefusedError(111, "refused"), BrokenPipeError(), TimeoutError())
    yield from (OSError(5, "Input/output error"), OSError(116, "Stale file handle"), InterruptedError())
    yield from (http.client.IncompleteRead(b""), http.client.RemoteDisconnected(), http.client.BadStatusLine(""))
    yield urllib.error.URLError(TimeoutError("timed out"))
    yield urllib.error.URLError(socket.gaierror(-3, "Temporary failure in name resolution"))
    yield urllib.error.HTTPError("http://x", 503, "Service Unavailable", None, None)
    yield HTTPError("429 Client Error: Too Many Requests for url: http://x")
    yield HTTPStatusError("Server error '502 Bad Gateway' for url 'http://x'")
    yield sqlite3.OperationalError("database is locked")


def lasting():
    yield from (FileNotFoundError(2, "gone"), PermissionError(13, "no"), IsADirectoryError(21, "a directory"))
    yield from (NotADirectoryError(20, "none"), FileExistsError(17, "there"), OSError(28, "No space left on device"))
    yield from (EOFError(), ValueError("timed out"), KeyError(), RuntimeError("[Errno 5]"))
    yield urllib.error.HTTPError("http://x", 404, "Not Found", None, None)
    yield HTTPError("404 Client Error: Not Found for url: http://x/503/429")
    yield sqlite3.OperationalError("no such table: t")


@pytest.mark.parametrize("error", list(transient()), ids=repr)
def test_transient_io_retries_what_may_pass(error):
    rules = Answers("transient-io")
    assert rules(FakeCrash(exception=error)) == Repair(then=Pass())
    assert rules.waits == [1.0]


@pytest.mark.parametrize("error", list(lasting()), ids=repr)
def test_transient_io_leaves_what_will_not_pass(error):
    assert Answers("transient-io")(FakeCrash(exception=error)) is None


def test_transient_io_goes_on_for_days_and_gives_up_after_five_in_a_row():
    rules = Answers("transient-io")
    assert all(rules(FakeCrash(exception=TimeoutError())) for _ in range(1_000))
    assert [rules(FakeCrash(exception=TimeoutError(), again=True)) is not None for _ in range(5)].count(True) == 4


def frame(*loops, position=(1, 1, 0, 4), source="f(x)"):
    return SimpleNamespace(
        progress=loops, position=position, location=SimpleNamespace(statement=ast.parse(source).body[0])
    )


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ((frame(loop(x=1)),), 0),
        ((frame(), frame(loop(x=1))), 1),
        ((frame(), frame(), frame(loop(x=1)), frame(loop(x=1))), 2),
        ((frame(),), None),
        ((frame(loop(x=1), source="[f(x) for x in y]"),), None),
        ((frame(), frame(loop(x=1), source="[f(x) for x in y]")), None),
    ],
)
def test_skip_item_is_for_the_innermost_frame_in_a_loop(frames, expected):
    answer = Answers("skip-item")(FakeCrash(frames=frames))
    assert answer == (None if expected is None else Repair(then=Continue(), frame=expected))


def test_skip_item_ends():
    rules = Answers("skip-item")
    answers = [rules(FakeCrash(frames=(frame(loop(x=1)),))) for _ in range(101)]
    assert (answers.count(Repair(then=Continue())), answers[-1]) == (100, None)
    for error in (NameError(), ImportError(), MemoryError(), SyntaxError()):
        assert Answers("skip-item")(FakeCrash(exception=error, frames=(frame(loop(x=1)),))) is None


@pytest.mark.parametrize(
    "error",
    [
        OutOfMemoryError(),
        MemoryError(),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("std::bad_alloc"),
    ],
)
def test_out_of_memory_releases_and_passes_once_then_leaves_the_item_out(error):
    rules = Answers("out-of-memory")
    frames = (frame(loop(x=1)),)
    answers = [rules(FakeCrash(exception=error, again=again, frames=frames)) for again in (False, True, False)]
    assert [answer.then for answer in answers] == [Pass(), Continue(), Pass()]
    assert len({answer.actions for answer in answers}) == 1
    crash = FakeCrash()
    assert crash.action(answers[0].actions[0]).error is None
    assert crash.namespace == {}
    assert rules(FakeCrash(exception=RuntimeError("shape"))) is None


def test_out_of_memory_then_does_what_the_user_says():
    rules = Answers("out-of-memory -> action 'n //= 2' then pass")
    first, second = [rules(FakeCrash(exception=MemoryError(), again=again)) for again in (False, True)]
    assert (first.then, len(first.actions)) == (Pass(), 1)
    assert (second.then, second.actions[1:]) == (Pass(), ("n //= 2",))

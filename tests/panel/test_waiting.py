"""Waiting without a kernel; a kernel that ends; insides of ipykernel that are not there."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from daifu_ipy.engine.repairs import Pass, Repair, Skip
from daifu_ipy.frontends.kernel import Kernel
from daifu_ipy.frontends.shell_channel import missing
from daifu_ipy.frontends.waiting import Inbox, interruptible, stop_is_a_message, wait
from tests.panel.blocked import END, SETUP, Blocked

SKIP = Repair(then=Skip())


@pytest.fixture
def inbox():
    made = Inbox()
    yield made
    made.close()


@pytest.fixture
def crash():
    return SimpleNamespace(decision=None)


def answers(message):
    return SKIP if message["kind"] == "end" else None


def test_messages_come_in_order_and_none_is_lost(inbox, crash):
    seen = []
    senders = [
        threading.Thread(target=lambda n=n: [inbox.put({"kind": "x", "of": (n, i)}) for i in range(3000)])
        for n in range(4)
    ]
    for thread in senders:
        thread.start()
    ender = threading.Thread(target=lambda: [t.join() for t in senders] and inbox.put({"kind": "end"}))
    ender.start()
    assert wait(crash, inbox, lambda message: seen.append(message.get("of")) or answers(message)) is SKIP
    ender.join()
    for n in range(4):
        assert [of for of in seen if of and of[0] == n] == [(n, i) for i in range(3000)]


def test_a_message_wakes_at_once(inbox, crash, monkeypatch):
    monkeypatch.setattr("daifu_ipy.frontends.waiting.LOOKS_EVERY", 600)
    threading.Timer(0.05, inbox.put, [{"kind": "end"}]).start()
    assert wait(crash, inbox, answers) is SKIP


def test_somebody_else_decides(inbox, crash):
    threading.Timer(0.05, setattr, [crash, "decision", Repair(then=Pass())]).start()
    assert wait(crash, inbox, answers) == Repair(then=Pass())


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_nothing_that_fails_ends_the_wait(inbox, crash, error, caplog):
    def obey(message):
        if message["kind"] == "fail":
            raise error("here")
        return answers(message)

    for kind in ("fail", "fail", "end"):
        inbox.put({"kind": kind})
    assert wait(crash, inbox, obey) is SKIP
    assert caplog.text.count(error.__name__) == 2


def test_an_inbox_that_is_closed_or_full_takes_messages_all_the_same(inbox):
    for n in range(100_000):
        inbox.put({"kind": n})
    inbox.close()
    inbox.put({"kind": "late"})
    assert [inbox.get()["kind"] for _ in range(100_001)] == [*range(100_000), "late"]
    assert inbox.get() is None


def test_stop_is_a_message_but_where_the_program_runs(inbox, crash):
    seen = []

    def obey(message):
        seen.append(message["kind"])
        if message["kind"] == "begin":
            signal.raise_signal(signal.SIGINT)
        if message["kind"] == "run":
            with pytest.raises(KeyboardInterrupt), interruptible():
                signal.raise_signal(signal.SIGINT)
            inbox.put({"kind": "end"})
        return answers(message)

    before = signal.getsignal(signal.SIGINT)
    inbox.put({"kind": "begin"})
    inbox.put({"kind": "run"})
    assert wait(crash, inbox, obey) is SKIP
    assert seen == ["begin", "run", "sigint", "end"]
    assert signal.getsignal(signal.SIGINT) is before


def test_stop_again_as_an_action_ends(inbox, crash, monkeypatch):
    """It strikes before the handler is as it was: neither this one nor the next ends the wait."""
    seen, original, strikes = [], signal.signal, []

    def struck(number, handler):
        if strikes:
            strikes.pop()
            signal.raise_signal(signal.SIGINT)
        return original(number, handler)

    def obey(message):
        seen.append(message["kind"])
        if message["kind"] == "run":
            with contextlib.suppress(KeyboardInterrupt), interruptible():
                monkeypatch.setattr(signal, "signal", struck)
                strikes.append(1)
                if message["stop"]:
                    signal.raise_signal(signal.SIGINT)
        if message["kind"] == "begin":
            signal.raise_signal(signal.SIGINT)
        return answers(message)

    for message in ({"stop": True}, {"stop": False}):
        inbox.put({"kind": "run", **message})
        inbox.put({"kind": "begin"})
    threading.Timer(0.05, inbox.put, [{"kind": "end"}]).start()
    assert wait(crash, inbox, obey) is SKIP
    assert seen.count("sigint") == 3  # the second of the first action, and that of each "begin"


def test_an_action_that_ignores_the_first_stop_gets_the_second(inbox, monkeypatch):
    monkeypatch.setattr("daifu_ipy.frontends.waiting.SLOW", 0)
    with stop_is_a_message(inbox), pytest.raises(KeyboardInterrupt), interruptible():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert inbox.get() is None


def test_stop_before_the_wait(inbox, crash):
    with stop_is_a_message(inbox):
        signal.raise_signal(signal.SIGINT)
        inbox.put({"kind": "end"})
        assert wait(crash, inbox, answers) is SKIP
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_in_another_thread_signals_are_left_alone(inbox, crash):
    seen = []

    def run():
        with interruptible():
            seen.append(wait(crash, inbox, answers))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=run)
    thread.start()
    assert signal.getsignal(signal.SIGINT) is before
    inbox.put({"kind": "end"})
    thread.join(30)
    assert seen == [SKIP]


def test_a_thread_that_waits_does_not_keep_the_process():
    code = """
import threading
from types import SimpleNamespace
from daifu_ipy.frontends.waiting import Inbox, wait
def run():
    print(wait(SimpleNamespace(decision=None), Inbox(), print).word)
threading.Thread(target=run).start()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "abort\n"


@pytest.mark.parametrize("lacks", ["session.serialize", "shell_handlers", "msg_queue.put_nowait", "shell_stream"])
def test_a_kernel_that_lacks_something_is_not_used(lacks, inbox, crash):
    kernel = fake(lacks)
    assert f"(Kernel.{lacks})" in kernel.problem
    assert kernel.problem.startswith("types of unknown version is not as expected")
    inbox.put({"kind": "end"})
    assert wait(crash, inbox, answers, kernel, pytest.fail) is SKIP


def fake(lacks):
    names = "deserialize feed_identities serialize send"
    session = SimpleNamespace(**dict.fromkeys(names.split(), print))
    names = (
        "get_parent set_parent _parent_ident _publish_status iopub_socket iopub_thread schedule_dispatch dispatch_shell"
    )
    stream = SimpleNamespace(socket=1, flush=print, on_recv=print, _recv_callback=print)
    queue = SimpleNamespace(get_nowait=print, put_nowait=print)
    kernel = SimpleNamespace(
        **dict.fromkeys(names.split(), print),
        session=session,
        shell_handlers={"comm_msg": print},
        msg_queue=queue,
        shell_stream=stream,
    )
    assert Kernel(kernel).problem is None
    *path, last = lacks.split(".")
    owner = kernel
    for part in path:
        owner = getattr(owner, part)
    delattr(owner, last)
    return Kernel(kernel)


def test_missing():
    value = SimpleNamespace(a=SimpleNamespace(b=0), c=None)
    assert missing(value, ("a", "a.b")) is None
    assert missing(value, ("a", "a.d", "e")) == "a.d"
    assert missing(value, ("c",)) == "c"


def test_where_there_is_no_kernel():
    assert Kernel.here() is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("version", ["installed", "6.31.0"])
def test_a_kernel_that_is_shut_down_ends_as_ever(version, tmp_path):
    kernel = Blocked(version, SETUP)
    note = tmp_path / "note"
    cell = f"try:\n    word = block()\nfinally:\n    open({str(note)!r}, 'w').write(word)"
    kernel.block(cell)
    kernel.manager.shutdown_wait_time = 30
    kernel.manager.shutdown_kernel()
    assert note.read_text() == "abort"  # so it was not killed
    kernel.client.stop_channels()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_messages_by_a_subshell():
    kernel = Blocked()
    try:
        kernel.run("kernel.fix_routing(page[0])")
        cell = kernel.block()
        message = kernel.client.session.msg("create_subshell_request", {})
        kernel.client.control_channel.send(message)
        subshell = kernel.client.control_channel.get_msg(timeout=30)["content"]["subshell_id"]
        message = kernel.client.session.msg(
            "comm_msg", {"comm_id": "page", "data": {"id": "sub", "code": "'by a subshell'"}}
        )
        message["header"]["subshell_id"] = subshell
        kernel.client.shell_channel.send(message)
        assert kernel.until(lambda: kernel.answer("sub"))["value"] == "by a subshell"
        kernel.tell(END)
        assert kernel.reply(cell)["status"] == "ok"
    finally:
        kernel.stop()

"""A cell is blocked, and its kernel is alive: on every version of ipykernel that is supported."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.panel.blocked import END, VERSIONS, Blocked

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


@pytest.fixture(scope="module", params=VERSIONS)
def kernel(request) -> Iterator[Blocked]:
    made = Blocked(request.param)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def fresh(kernel):
    kernel.run("log.clear(); ticks.clear(); crash.decision = None")
    kernel.shown.clear()
    kernel.replies.clear()


def test_it_fits(kernel):
    assert kernel.value("kernel.problem") is None


def test_messages_arrive_and_cells_wait_in_order(kernel):
    cell = kernel.execute("block()")
    later = [kernel.execute(f"log.append({n})") for n in range(5)]
    assert kernel.ask("[r.code for r in held.requests]") == [f"log.append({n})" for n in range(5)]
    later += [kernel.execute(f"log.append({n})") for n in range(5, 8)]
    info = kernel.send("kernel_info_request")
    assert kernel.reply(info)["status"] == "ok"
    assert kernel.ask("[r.msg_id for r in held.requests]") == later
    assert cell not in kernel.replies
    assert kernel.ask("log") == []
    kernel.tell(END)
    assert [kernel.reply(request)["status"] for request in (cell, *later)] == ["ok"] * 9
    assert list(kernel.replies)[-9:] == [cell, *later]
    assert kernel.value("log") == list(range(8))
    assert not kernel.of(cell, "stream")
    assert not [m for m in kernel.shown if m["msg_type"] == "stream"]  # nothing complains


@pytest.mark.parametrize("at", [0, 1, 3, 10, 29])
def test_what_comes_while_the_wait_ends_keeps_its_place(kernel, at):
    requests = [kernel.execute("block()")]
    for n in range(30):
        if n == at:
            kernel.tell(END)
        requests.append(kernel.execute(f"log.append({n})"))
    assert [kernel.reply(request)["status"] for request in requests] == ["ok"] * 31
    assert kernel.value("log") == list(range(30))


def test_an_error_aborts_what_waits(kernel):
    early = [kernel.execute(code) for code in ("block(), 1 / 0", "log.append('no')", "log.append('no')")]
    kernel.ask("1")
    late = kernel.execute("log.append('no')")
    kernel.ask("1")
    kernel.tell(END)
    assert [kernel.reply(request)["status"] for request in (*early, late)] == ["error", *["aborted"] * 3]
    assert kernel.run("log")["status"] == "ok"
    assert kernel.value("log") == []


def test_one_that_runs_in_spite_of_an_error(kernel):
    cell = kernel.execute("block(), 1 / 0")
    requests = [kernel.execute(f"log.append({n})") for n in range(5)]
    kernel.ask(f"held.run_after({requests[2]!r})")
    kernel.tell(END)
    replies = [kernel.reply(request)["status"] for request in (cell, *requests)]
    assert replies == ["error", "aborted", "aborted", "ok", "ok", "ok"]
    assert kernel.value("log") == [2, 3, 4]


def test_its_own_error_aborts_as_ever(kernel):
    cell = kernel.execute("block(), 1 / 0")
    again, *rest = [kernel.execute(code) for code in ("block(), 1 / 0", "log.append('no')", "log.append('no')")]
    kernel.ask(f"held.run_after({again!r})")
    kernel.tell(END)
    assert kernel.reply(cell)["status"] == "error"
    kernel.ask("1")  # the second is blocked now
    rest.append(kernel.execute("log.append('no')"))
    kernel.ask("1")
    kernel.tell(END)
    assert [kernel.reply(request)["status"] for request in (again, *rest)] == ["error", *["aborted"] * 3]
    assert kernel.value("log") == []


def test_one_that_runs_in_any_case_keeps_its_place(kernel):
    cell = kernel.execute("block()")
    requests = [kernel.execute(f"log.append({n})") for n in range(5)]
    kernel.ask(f"held.run_after({requests[2]!r})")
    kernel.tell(END)
    assert [kernel.reply(request)["status"] for request in (cell, *requests)] == ["ok"] * 6
    assert kernel.value("log") == [0, 1, 2, 3, 4]


def test_adopt(kernel):
    cell = kernel.execute("print('first'); block(); print('last'); 7")
    other = kernel.execute("log.append('other')")
    again = kernel.execute("log.append('never')", {"cellId": "abc"})
    assert kernel.ask("[r.cell_id for r in held.requests]") == [None, "abc"]
    kernel.ask(f"held.adopt({again!r})")
    assert kernel.ask("[r.msg_id for r in held.requests]") == [other]
    assert kernel.ask("kernel.request().msg_id") == again
    kernel.tell(END)
    count = kernel.reply(cell)["execution_count"]
    assert {k: kernel.reply(again)[k] for k in ("status", "execution_count")} == {
        "status": "ok",
        "execution_count": count,
    }
    assert kernel.reply(other)["execution_count"] == count + 1
    assert kernel.text(cell) == "first\n"
    assert kernel.text(again) == "last\n"
    assert [m["content"]["data"]["text/plain"] for m in kernel.of(again, "execute_result")] == ["7"]
    assert [m["content"]["execution_count"] for m in kernel.of(again, "execute_result")] == [count]
    assert kernel.states(cell)[-1] == kernel.states(again)[-1] == "idle"
    assert kernel.value("log") == ["other"]
    after = kernel.execute("print('after')")
    assert kernel.reply(after)["execution_count"] == count + 2
    assert kernel.text(after) == "after\n"


def test_adopt_one_and_another_and_fail(kernel):
    cell = kernel.execute("block(), 1 / 0")
    one, two = kernel.execute("log.append('never')"), kernel.execute("log.append('never')")
    kernel.ask(f"held.adopt({one!r})")
    kernel.ask("print('to the first')")
    kernel.ask(f"held.adopt({two!r})")
    kernel.tell(END)
    assert kernel.reply(cell)["status"] == "error"
    assert [kernel.reply(request)["status"] for request in (one, two)] == ["aborted", "aborted"]
    assert kernel.text(one) == "to the first\n"
    assert [m["content"]["ename"] for m in kernel.of(two, "error")] == ["ZeroDivisionError"]
    assert kernel.value("log") == []


def test_a_second_crash_of_an_adopted_cell(kernel):
    cell = kernel.execute("block(); block(); print('last')")
    other, again = kernel.execute("log.append('other')"), kernel.execute("log.append('never')")
    kernel.ask(f"held.adopt({again!r})")
    kernel.tell(END)
    assert kernel.ask("[r.msg_id for r in held.requests]") == [other]
    kernel.tell(END)
    count = kernel.reply(cell)["execution_count"]
    assert [kernel.reply(r)["execution_count"] for r in (again, other)] == [count, count + 1]
    assert kernel.text(again) == "last\n"
    assert kernel.value("log") == ["other"]


def test_stop_does_not_end_the_wait(kernel):
    cell = kernel.block()
    for n in range(3):
        kernel.manager.interrupt_kernel()
        kernel.until(lambda n=n: kernel.ask("log") == ["sigint"] * (n + 1))
    assert cell not in kernel.replies
    kernel.tell(END)
    assert kernel.reply(cell)["status"] == "ok"


STOPPED = """
def act():
    try:
        with interruptible():
            print('acting', flush=True)
            while True:
                time.sleep(0.01)
    except KeyboardInterrupt:
        return 'stopped'
"""


@pytest.mark.parametrize("cell", ["block()", "import asyncio; await asyncio.sleep(0); block()"])
def test_stop_ends_an_action(kernel, cell):
    kernel.run(STOPPED)
    request = kernel.block(cell)
    name = kernel.tell("act()")
    kernel.until(lambda: "acting" in kernel.text(request))
    kernel.manager.interrupt_kernel()
    assert kernel.until(lambda: kernel.answer(name))["value"] == "stopped"
    kernel.manager.interrupt_kernel()
    kernel.until(lambda: kernel.ask("log") == ["sigint"])
    kernel.tell(END)
    assert kernel.reply(request)["status"] == "ok"


def test_stop_ends_a_handler_of_somebody_else(kernel):
    kernel.run(
        "def slow(comm, message):\n    print('handles', flush=True)\n    time.sleep(600)\nget_comm_manager().register_target('slow', slow)"
    )
    cell = kernel.block()
    opened = kernel.send("comm_open", comm_id="s", target_name="slow", data={})
    kernel.until(lambda: "handles" in kernel.text(opened))
    name = kernel.tell("'still here'")

    def answered():
        kernel.manager.interrupt_kernel()  # a quick one is a message
        return kernel.answer(name)

    assert kernel.until(answered)["value"] == "still here"
    kernel.tell(END)
    assert kernel.reply(cell)["status"] == "ok"


def test_a_cell_that_awaits(kernel):
    cell = kernel.execute(
        "import asyncio\nlog.append(0)\nawait asyncio.sleep(0.01)\nblock()\nawait asyncio.sleep(0.01)\nblock()\nawait asyncio.sleep(0.01)\nlog.append(1)"
    )
    kernel.ask("1")
    later = [kernel.execute(f"log.append({n})") for n in (2, 3)]
    kernel.ask("1")
    assert kernel.ask("[r.msg_id for r in held.requests]") == later
    kernel.tell(END)
    assert kernel.ask("log") == [0]
    assert kernel.ask("[r.msg_id for r in held.requests]") == later
    kernel.tell(END)
    assert [kernel.reply(request)["status"] for request in (cell, *later)] == ["ok"] * 3
    assert kernel.value("log") == [0, 1, 2, 3]


def test_a_cell_that_awaits_and_fails(kernel):
    cell = kernel.execute("import asyncio\nawait asyncio.sleep(0)\nblock()\nawait asyncio.sleep(0.01)\n1 / 0")
    later = [kernel.execute(f"log.append({n})") for n in range(4)]
    kernel.ask(f"held.run_after({later[2]!r})")
    kernel.tell(END)
    replies = [kernel.reply(request)["status"] for request in (cell, *later)]
    assert replies == ["error", "aborted", "aborted", "ok", "ok"]
    assert kernel.value("log") == [2, 3]


def test_one_crash_after_another(kernel):
    cell = kernel.execute("for n in range(3):\n    block()")
    later = [kernel.execute(f"log.append({n}) or block()") for n in range(2)]
    for _ in range(5):
        kernel.ask("1")
        kernel.tell(END)
    assert [kernel.reply(request)["status"] for request in (cell, *later)] == ["ok"] * 3
    assert kernel.value("log") == [0, 1]


def test_a_wait_in_a_wait(kernel):
    cell = kernel.execute("block()")
    later = [kernel.execute(f"log.append({n})") for n in range(2)]
    kernel.tell("block()")
    kernel.ask("1")
    later.append(kernel.execute("log.append(2)"))
    kernel.tell(END)
    assert kernel.ask("log") == []
    assert kernel.ask("[r.msg_id for r in held.requests]") == later
    kernel.tell(END)
    assert [kernel.reply(request)["status"] for request in (cell, *later)] == ["ok"] * 4
    assert kernel.value("log") == [0, 1, 2]


def test_it_is_shown_as_busy_and_costs_little(kernel):
    cell = kernel.block()
    kernel.ask("ticks.clear() or [log.append(f()) for f in (time.monotonic, time.process_time)]")
    kernel.until(lambda: kernel.states(cell).count("busy") >= 7)  # of its own, one for each message, one a second
    assert "idle" not in kernel.states(cell)
    assert [m["content"]["execution_state"] for m in kernel.shown if m["msg_type"] == "status"][-1] == "busy"
    kernel.ask("[log.append(f()) for f in (time.monotonic, time.process_time)]")
    start, used, end, used_then = map(float, kernel.ask("[str(x) for x in log]"))
    assert (used_then - used) / (end - start) < 0.1
    assert kernel.ask("len(ticks)") < 12 * (end - start)
    kernel.tell(END)
    assert kernel.reply(cell)["status"] == "ok"


def test_what_front_ends_ask_for_is_answered(kernel):
    kernel.run("some_long_name = 5")
    cell = kernel.block()
    assert "some_long_name" in kernel.reply(kernel.send("complete_request", code="some_lo", cursor_pos=7))["matches"]
    assert kernel.reply(kernel.send("inspect_request", code="some_long_name", cursor_pos=3))["found"]
    assert kernel.reply(kernel.send("is_complete_request", code="x = ("))["status"] == "incomplete"
    history = kernel.send("history_request", hist_access_type="tail", n=2, output=False, raw=True)
    assert kernel.reply(history)["status"] == "ok"
    assert "page" in kernel.reply(kernel.send("comm_info_request"))["comms"]
    kernel.tell(END)
    assert kernel.reply(cell)["status"] == "ok"


def test_a_debugger_may_ask(kernel):
    cell = kernel.block()
    content = {"type": "request", "command": "debugInfo", "seq": 1, "arguments": {}}
    message = kernel.client.session.msg("debug_request", content)
    kernel.client.control_channel.send(message)
    reply = kernel.client.control_channel.get_msg(timeout=30)
    assert (reply["msg_type"], reply["content"]["success"]) == ("debug_reply", True)
    kernel.tell(END)
    assert kernel.reply(cell)["status"] == "ok"


RECORDED = """
from IPython.display import clear_output, display
def show(x):
    print('text', x)
    display(x, display_id='d')
    display(x, display_id='d', update=True)
    clear_output()
    x
seen = []
"""


def test_record(kernel):
    kernel.run(RECORDED)
    cell = kernel.execute("undo = kernel.record(seen.append); show(1); block(); print('now'); 1 / 0")
    again = kernel.execute("never")
    kernel.ask(f"held.adopt({again!r})")
    kernel.tell(END)
    assert kernel.reply(cell)["status"] == "error"
    kernel.run("print('of another cell'); undo()")
    kernel.run("undo(); print('later')")
    kinds = ["stream", "display_data", "update_display_data", "clear_output", "stream", "error"]
    assert kernel.value("[m['msg_type'] for m in seen]") == kinds
    assert kernel.value("seen[0]['content']") == {"name": "stdout", "text": "text 1\n"}
    sent = [
        m["msg_id"] for m in kernel.shown if m["msg_type"] in kinds and m["parent_header"]["msg_id"] in (cell, again)
    ]
    assert kernel.value("[m['msg_id'] for m in seen]") == sent


def test_the_request_that_runs(kernel):
    assert kernel.run("assert kernel.request().cell_id == 'abc'", metadata={"cellId": "abc"})["status"] == "ok"
    code = kernel.execute("log.append(kernel.request())", {"cellId": "vscode-notebook-cell:/a.ipynb#W0sZmlsZQ%3D%3D"})
    assert kernel.reply(code)["status"] == "ok"
    assert kernel.value("log[0].cell_id") == "vscode-notebook-cell:/a.ipynb#W0sZmlsZQ%3D%3D"
    assert kernel.value("(log[0].msg_id, log[0].code)") == (code, "log.append(kernel.request())")


@pytest.mark.parametrize("content", [{"silent": True}, {"store_history": False}])
def test_requests_that_leave_no_trace(kernel, content):
    count = kernel.run("1")["execution_count"]
    cell = kernel.execute("block()", **content)
    later = kernel.execute("log.append(1)", **content)
    again = kernel.execute("log.append(2)", **content)
    kernel.ask(f"held.adopt({again!r})")
    kernel.tell(END)
    assert [kernel.reply(request)["status"] for request in (cell, later, again)] == ["ok"] * 3
    assert kernel.value("log") == [1]
    assert kernel.run("1")["execution_count"] == count + 1


def test_what_a_cell_set_in_its_context_stays_there(kernel):
    kernel.run("from contextvars import ContextVar\nmine = ContextVar('mine')")
    cell = kernel.execute("token = mine.set(1)\nblock()\nmine.reset(token)\nmine.get('none')")
    later = kernel.execute("log.append(mine.get('none'))")
    kernel.ask("1")
    kernel.tell(END)
    assert [kernel.reply(request)["status"] for request in (cell, later)] == ["ok"] * 2
    assert kernel.value("log") == ["none"]


def test_somebody_else_decides(kernel):
    kernel.run("import threading")
    cell = kernel.block()
    kernel.tell("threading.Thread(target=lambda: setattr(crash, 'decision', Repair(then=Abort()))).start()")
    assert kernel.reply(cell)["status"] == "ok"
    assert [m["content"]["data"]["text/plain"] for m in kernel.of(cell, "execute_result")] == ["'abort'"]


def test_a_crash_in_another_thread_waits_there(kernel):
    kernel.run(
        "import threading\nthread = threading.Thread(target=lambda: Kernel.here() and log.append(block()), daemon=True)\nthread.start()"
    )
    assert kernel.run("1")["status"] == "ok"  # nothing is held
    kernel.ask("1")
    kernel.tell(END)
    assert kernel.run("thread.join(30)")["status"] == "ok"
    assert kernel.value("log") == ["skip"]

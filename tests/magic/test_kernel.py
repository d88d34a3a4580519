"""%%daifu in a real kernel: the prompt, rules and aborts as a client sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.magic.kernel import STOP, Kernel, text
from tests.magic.notebook import MARKER, PLAIN, without_report

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    made = Kernel("%load_ext daifu_ipy")
    yield made
    made.stop()


def test_user_expressions_and_silent_cells(kernel):
    *sent, reply = kernel.run(f"{MARKER}\nx = 5\nx", silent=True, user_expressions={"y": "x + 1"})
    assert [message["type"] for message in sent] == ["status", "status"]
    assert reply["user_expressions"]["y"]["data"]["text/plain"] == "6"


def test_an_abort_shows_the_stack_and_the_kernel_lives_on(kernel):
    sent = kernel.run(f"{MARKER}\nbatch = [1, 2]\nfor i in range(3):\n    batch[i]")
    assert re.search(r"Cell In\[n\], line 4\n", text(sent))
    assert "batch = [1, 2]" in text(sent)
    assert "IndexError: list index out of range\ndaifu: aborting; nobody can be asked here\n" in text(sent)
    (error,) = [message for message in sent if message["type"] == "error"]
    assert "----> 4     batch[i]" in "\n".join(error["traceback"])
    assert not re.search("daifu_ipy|@daifu", "\n".join(error["traceback"]))
    assert (sent[-1]["type"], sent[-1]["status"]) == ("execute_reply", "error")
    assert kernel.run("i")[-1]["status"] == "ok"


def test_rules_without_anybody_to_ask(kernel):
    sent = kernel.run(
        f"{MARKER} --rules 'IndexError -> skip'\nbatch = [1, 2]\nfor i in range(3):\n    print(batch[i])\ni"
    )
    assert (
        text(sent)
        == "1\n2\ndaifu: IndexError: list index out of range, in Cell In[n], line 4: skip (rule 1, use 1 of 1)\n"
    )
    assert [m["data"]["text/plain"] for m in sent if m["type"] == "execute_result"] == ["2"]
    assert sent[-1]["status"] == "ok"


def test_the_prompt(kernel):
    kernel.run("def load(path):\n    return open(path).read()")
    typed = ["path", "path = '/dev/null'", "pass"]
    sent = kernel.run(f"{MARKER}\nlen(load('/no/such/file'))", typed=typed)
    assert [m["prompt"] for m in sent if m["type"] == "input_request"] == ["daifu> "] * 3
    shown = text(sent)
    assert shown.startswith("daifu: protecting this cell and load\n")
    assert "path = '/no/such/file'\n" in shown
    assert "The run waits. pass, action, surgery, skip" in shown
    assert shown.endswith("in load, line 2: pass\n")
    assert [m["data"]["text/plain"] for m in sent if m["type"] == "execute_result"] == ["0"]


def test_the_prompt_in_a_coroutine(kernel):
    cell = f"{MARKER}\nasync def f(n):\n    return 8 / n\nn = await f(4)\nawait f(0)"
    sent = kernel.run(cell, typed=["n = 2", "pass"])
    assert [m["data"]["text/plain"] for m in sent if m["type"] == "execute_result"] == ["4.0"]


def test_abort_at_the_prompt(kernel):
    *_, error, _idle, reply = kernel.run(f"{MARKER}\n1 / 0", typed=["abort"])
    assert (error["type"], error["ename"], reply["status"]) == ("error", "ZeroDivisionError", "error")
    assert "".join(error["traceback"]).count("1 / 0") == 1


def test_stop_ends_a_cell_as_ever(kernel):
    seen = []
    for first in (PLAIN, MARKER):
        sent = kernel.run(f"{first}\ntry:\n    x = input('? ')\nfinally:\n    print('end')", typed=[STOP])
        # where the interrupt strikes differs: inside the wait for input, or just before it
        seen.append([{**message, "traceback": "", "evalue": ""} for message in sent])
    assert seen[1] == seen[0]
    assert seen[1][-1]["ename"] == "KeyboardInterrupt"


def test_stop_at_the_prompt_asks(kernel):
    sent = kernel.run(f"{MARKER}\nx = 0\n6 / x", typed=[STOP, "n", "x = 2", "pass"])
    assert [m["prompt"] for m in sent if m["type"] == "input_request"][:2] == [
        "daifu> ",
        "abort? the run's state is lost [y/N] ",
    ]
    assert [m["data"]["text/plain"] for m in sent if m["type"] == "execute_result"] == ["3.0"]


def test_capture_and_time(kernel):
    rules = "--rules '* -> skip'"
    sent = kernel.run(f"%%time\n{MARKER} {rules}\nprint('a')\n1 / 0\n3")
    assert text(sent).splitlines()[:2] == [
        "a",
        "daifu: ZeroDivisionError: division by zero, in Cell In[n], line 4: skip (rule 1, use 1 of 1)",
    ]
    kernel.run(f"%%capture out\n{MARKER} {rules}\n1 / 0")
    assert "skip (rule 1, use 1 of 1)" in text(kernel.run("out.show()"))


def test_an_old_report_does_not_go_to_a_capture_that_has_ended(kernel):
    kernel.run(f"%%capture out\n{MARKER} --rules '* -> skip, limit=none'\ndef f():\n    1 / 0")
    assert "in f, line 3: skip" in text(kernel.run("f()"))


def test_without_report():
    assert without_report("a\ndaifu: protecting this cell and f\nb\n") == "a\nb\n"

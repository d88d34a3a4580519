"""%%daifu in a real kernel: its messages are those of the plain cell; the prompt, rules and aborts as a client sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

from tests.magic.notebook import MARKER, PLAIN, without_report

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


STOP = "the Stop button"


class Kernel:
    """A kernel with the extension loaded."""

    def __init__(self) -> None:
        self.manager, self.client = start_new_kernel(
            kernel_name="python3", extra_arguments=["--HistoryManager.enabled=False"]
        )
        self.run("%load_ext daifu_ipy")

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def run(self, code: str, typed: list[str] | None = None, **options: Any) -> list[dict[str, Any]]:
        """Run a cell: what it asked (on a channel of its own), then the messages that it sent, the reply last."""
        asked: list[dict[str, Any]] = []
        sent: list[dict[str, Any]] = []
        lines = list(typed or ())

        def answer(message):
            asked.append({"type": "input_request", "prompt": message["content"]["prompt"]})
            line = lines.pop(0) if lines else "abort"  # so that no test leaves a kernel that waits
            self.manager.interrupt_kernel() if line == STOP else self.client.input(line)

        reply = self.client.execute_interactive(
            code,
            allow_stdin=typed is not None,
            stdin_hook=answer,
            output_hook=lambda message: add(sent, plain(message)),
            timeout=60,
            **options,
        )
        assert lines == []
        return [*asked, *sent, plain(reply)]


def add(sent: list[dict[str, Any]], message: dict[str, Any]) -> None:
    """Where a stream's text is cut into messages is a matter of time."""
    last = sent[-1] if sent else {}
    if message["type"] == last.get("type") == "stream" and message["name"] == last["name"]:
        last["text"] += message["text"]
    else:
        sent.append(message)


def plain(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what is different each time."""
    content = message["content"]
    return {"type": message["msg_type"]} | normal(content)


def normal(value: Any) -> Any:
    if isinstance(value, str):
        value = re.sub(r"\x1b\[[0-9;]*m", "", value)
        value = re.sub(r"(CPU times|Wall time): .*", r"\1", value)
        value = re.sub(r"(/tmp/ipykernel_\d+/)?\b\d+\.py", "CELL", value)
        value = re.sub(r"In\[\d+\]", "In[n]", value)
        value = re.sub(r"0x[0-9a-f]+", "0x", value)
        return re.sub(rf"'{MARKER}'|(?<!#){MARKER}(?=\\n)", PLAIN, value)
    if isinstance(value, dict):
        return {
            key: normal(item) for key, item in value.items() if key not in ("engine_info", "execution_count", "code")
        }
    if isinstance(value, list):
        return [normal(item) for item in value]
    return value if type(value) is not int else "n"


def text(messages: list[dict[str, Any]]) -> str:
    return "".join(message.get("text", "") for message in messages if message["type"] == "stream")


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    made = Kernel()
    yield made
    made.stop()


SAME = {
    "value": "@\nx = 1\nprint('a')\nx + 1",
    "semicolon": "@\nx = 1\nx;",
    "out": "@\n41\n---\n@\n_ + 1",
    "display": "@\nfrom IPython.display import HTML, display\ndisplay(HTML('<b>b</b>'))\nHTML('<i>i</i>')",
    "stderr": "@\nimport sys\nprint('e', file=sys.stderr)\nprint('o')",
    "await": "@\nimport asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 3\nprint(await f())\nawait f()",
    "task": "@\nimport asyncio\nasync def f():\n    return 3\nawait asyncio.gather(asyncio.create_task(f()), f())",
    "shell": "@\n!echo a\nx = !echo b\nx",
    "magic": "@\n%who_ls no_such_type\n%pinfo len",
    "time": "%%time\n@\nprint('a')\n3",
    "capture": "%%capture out\n@\nprint('a')\n3\n---\nout.stdout, out.outputs[0].data",
    "clear": "@\nfrom IPython.display import clear_output\nprint('a')\nclear_output()\nprint('b')",
    "progress": "@\nfrom IPython.display import display\nh = display('a', display_id='id')\nh.update('b')",
    "syntax-error": "@\nx = 1\nfor i in x\n    pass",
    "error": "@\ndef f(x):\n    return [\n        1,\n        1 / x]\n\nfor i in (1, 0):\n    f(i)",
    "error-await": "@\nasync def f(x):\n    return 1 / x\n\nawait f(0)",
    "error-chained": "@\ntry:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError('v') from e",
    "error-in-library": "@\nimport json\njson.loads('{')",
    "exit-code": "@\nraise SystemExit",
    "input": "@\nprint(input('? '))",
    "classes": "@\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int = 1\nimport pickle\npickle.loads(pickle.dumps(P())) == P()",
    "usage-error": "@\n%cd /no/such/folder/xyz\n%no_such_magic",
    "syntax-warning": "@\nx = 1\nx is 1",
}  # fmt: skip


# IPython shows of a frame in a cell not the traceback's line but `frame.f_lineno`, where the frame stopped last.
@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in SAME.items()])
def test_the_messages_are_those_of_the_plain_cell(kernel, row):
    """With a manager that always aborts, so that nothing of ours is printed."""
    kernel.run("import daifu_ipy\ndaifu_ipy.set_repair_manager(lambda crash: daifu_ipy.Abort())", silent=True)
    seen = {}
    for first in (PLAIN, MARKER):
        seen[first] = []
        for cell in row.split("\n---\n"):
            code = f"\n{cell}".replace("\n@", f"\n{first}", 1)[1:]
            seen[first] += kernel.run(code, typed=["typed"] if "input(" in row else None)
    kernel.run("daifu_ipy.set_repair_manager(None)", silent=True)
    for plain_message, message in zip(seen[PLAIN], seen[MARKER], strict=True):
        assert message == plain_message


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
    assert "skip (rule 1, use 1 of 1)" in text(kernel.run("print(out.stdout)"))


def test_an_old_report_does_not_go_to_a_capture_that_has_ended(kernel):
    kernel.run(f"%%capture out\n{MARKER} --rules '* -> skip, limit=none'\ndef f():\n    1 / 0")
    assert "in f, line 3: skip" in text(kernel.run("f()"))


def test_without_report():
    assert without_report("a\ndaifu: protecting this cell and f\nb\n") == "a\nb\n"

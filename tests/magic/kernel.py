"""A real kernel, and its messages without what is different each time."""

from __future__ import annotations

import re
from typing import Any

from jupyter_client.manager import start_new_kernel

from tests.magic.notebook import MARKER, PLAIN

STOP = "the Stop button"
ABORTING = "__import__('daifu_ipy').set_repair_manager(lambda crash: __import__('daifu_ipy').Abort())"


class Kernel:
    """A kernel; `first`: what is run in it before anything else, without a trace."""

    def __init__(self, *first: str) -> None:
        self.manager, self.client = start_new_kernel(
            kernel_name="python3", extra_arguments=["--HistoryManager.hist_file=:memory:"]
        )
        for code in first:
            assert self.run(code, silent=True)[-1]["status"] == "ok"

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def run(self, code: str, typed: list[str] | None = None, **options: Any) -> list[dict[str, Any]]:
        """Run a cell: what it asked (on a channel of its own), then the messages that it sent, the reply last."""
        asked: list[dict[str, Any]] = []
        sent: list[dict[str, Any]] = []
        lines = list(typed or ())

        def answer(message: dict[str, Any]) -> None:
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
        value = re.sub(r"(?m)^Compiler *: .*\n", "", value)  # said where it took long
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
    """What stands in the output: streams, and texts that are displayed."""
    shown = [message.get("text") or message.get("data", {}).get("text/plain", "") + "\n" for message in messages]
    kinds = ("stream", "display_data")
    return "".join(line for message, line in zip(messages, shown, strict=True) if message["type"] in kinds)

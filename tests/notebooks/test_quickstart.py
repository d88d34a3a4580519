"""The quickstart in a real kernel: unattended, as `jupyter execute` runs it, and then once more by hand."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from jupyter_client import BlockingKernelClient
from nbclient import NotebookClient

QUICKSTART = Path(__file__).parents[2] / "notebooks" / "01_quickstart.ipynb"
SAME = "The weights are the same, bit for bit.\n"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


def text(cell: nbformat.NotebookNode) -> str:
    shown = {"stream": lambda output: output.text, "display_data": lambda output: output.data["text/plain"] + "\n"}
    return "".join(shown[o.output_type](o) for o in cell.outputs if o.output_type in shown)


def by_hand(client: NotebookClient, cell: nbformat.NotebookNode, typed: list[str]) -> str:
    """Run a cell with somebody at the prompt; what it shows."""
    shown: list[str] = []
    person = BlockingKernelClient(connection_file=client.km.connection_file)
    person.load_connection_file()
    person.start_channels()
    try:
        reply = person.execute_interactive(
            re.sub("^%%daifu.*", "%%daifu", cell.source),
            allow_stdin=True,
            stdin_hook=lambda message: person.input(typed.pop(0)),
            output_hook=lambda message: shown.append(message["content"].get("text", "")),
            timeout=120,
        )
    finally:
        person.stop_channels()
    assert (reply["content"]["status"], typed) == ("ok", [])
    return "".join(shown)


def test_quickstart():
    notebook = nbformat.read(QUICKSTART, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    *_, last = code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    protected = next(cell for cell in code if cell.source.startswith("%%daifu"))
    plain = next(cell for cell in code if cell.source.startswith("never_crashed"))

    client = NotebookClient(notebook, kernel_name="python3", timeout=120)
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
        again = by_hand(client, protected, ["part['labels'][:3]", "return None"])
        compared = by_hand(client, last, [])

    assert text(last) == SAME
    recovered = re.findall(
        r"^daifu: ValueError: Number of classes .*, in validate, line 7: return", text(protected), re.M
    )
    assert len(recovered) == 1
    assert "daifu" not in text(plain)
    without = re.sub(r"(?m)^daifu: .*\n", "", text(protected))
    lines, expected = without.splitlines(), text(plain).splitlines()
    assert (len(lines), [n for n, line in enumerate(lines) if line != expected[n]]) == (8, [4])
    assert lines[4].startswith("epoch 3, step 12: ")
    assert lines[4].endswith("ROC AUC None")

    assert "array([3, 3, 3])" in again
    assert "daifu: aborting" not in again
    assert [line for line in again.splitlines() if line.startswith("epoch")] == lines
    assert compared == SAME

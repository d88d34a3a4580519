"""A notebook that papermill or `jupyter execute` has run holds what happened: recoveries, or the annotated stack."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

LOAD = "%load_ext daifu_ipy"
TRAIN = """
def train(batches):
    seen = []
    for step, batch in enumerate(batches):
        loss = 6 / batch
        seen.append(loss)
    return seen
"""
RULES = '%%daifu --rules "ZeroDivisionError -> continue, limit=9"\ntrain([1, 0, 2, 0, 0, 3])'
UNATTENDED = "%%daifu\ntrain([1, 2, 0, 3])"
TOOLS = {
    "papermill": lambda source, made: [sys.executable, "-m", "papermill", source, made, "--no-progress-bar"],
    "jupyter-execute": lambda source, made: [
        sys.executable, "-m", "jupyter", "execute", source, f"--output={made}", "--allow-errors",
    ],
}  # fmt: skip


def executed(tool: str, folder: Path, *cells: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run a notebook with a tool; what its cells say in the saved file, cell by cell."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, folder / "source.ipynb")
    command = TOOLS[tool](str(folder / "source.ipynb"), str(folder / "made.ipynb"))
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    saved = nbformat.read(folder / "made.ipynb", 4)
    return done, ["".join(map(text_of, cell.outputs)) for cell in saved.cells if cell.source in cells]


def text_of(output) -> str:
    if output.output_type == "stream":
        return output.text
    if output.output_type == "error":
        return "\n".join(output.traceback)
    return output.data.get("text/plain", "")


@pytest.mark.parametrize("tool", TOOLS)
def test_recoveries_stay_in_the_executed_notebook(tool, tmp_path):
    done, said = executed(tool, tmp_path, LOAD, TRAIN, RULES, "%daifu history", "%daifu auto on", "train([1, 1])")
    assert done.returncode == 0, done.stderr
    assert "[6.0, 3.0, 2.0]" in said[2]
    reports = [line for line in said[2].splitlines() if "ZeroDivisionError" in line]
    assert len(reports) == 1, said[2]  # one line, updated in place
    assert re.search(r"\b3\b", reports[0]), reports
    assert said[3].count("ZeroDivisionError") == 3
    assert "[6.0, 6.0]" in said[5]


@pytest.mark.parametrize("tool", TOOLS)
def test_the_annotated_stack_stays_in_the_executed_notebook(tool, tmp_path):
    done, said = executed(tool, tmp_path, LOAD, TRAIN, UNATTENDED)
    assert "ZeroDivisionError" in (done.stderr if tool == "papermill" else said[2])
    ours, ending, _ = said[2].partition("nobody can be asked here")
    assert ending
    assert "loss = 6 / batch" in ours
    assert re.search(r"batch = 0\b", ours)
    assert "\x1b" not in ours

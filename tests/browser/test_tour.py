"""The tour of the panel, notebooks/02_panel.ipynb, as its text says: three crashes, three repairs, the same weights."""

from __future__ import annotations

from pathlib import Path

import nbformat
from playwright.sync_api import expect

TOUR = Path(__file__).parents[2] / "notebooks/02_panel.ipynb"
RUN, HISTORY, DIFF, COMPARED = 3, 4, 5, 6


def test_the_tour(lab):
    tour = nbformat.read(TOUR, as_version=4)
    nbformat.validate(tour)
    cells = [cell for cell in tour.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells)
    notebook = lab.open(*(cell.source for cell in cells))
    notebook.run_all()

    panel = notebook.panel(RUN).waits("is invalid for input of size")
    notebook.screenshot("tour-1-last-batch")
    panel.replace("view(BATCH, 10)", "view(-1, 10)")
    panel.choose("surgery")
    expect(panel.part("diff")).to_contain_text("view(-1, 10)")
    notebook.screenshot("tour-1-surgery")
    panel.part("apply").click()

    panel = notebook.panel(RUN).waits("could not convert string to float")
    expect(panel.part("variables")).to_contain_text("record")
    notebook.screenshot("tour-2-corrupt-record")
    panel.choose("more")
    panel.choose("continue")

    panel = notebook.panel(RUN).waits("acuracy")
    panel.act('name = "accuracy"')
    notebook.screenshot("tour-3-wrong-name")
    panel.choose("pass")

    expect(notebook.output(COMPARED)).to_contain_text("The weights are the same, bit for bit.")
    for error, repair in (("RuntimeError", "surgery"), ("ValueError", "continue"), ("KeyError", "pass")):
        expect(notebook.output(RUN)).to_contain_text(f"Recovered {error}")
        expect(notebook.output(HISTORY)).to_contain_text(repair)
    expect(notebook.output(DIFF)).to_contain_text("+        loss = nn.functional.cross_entropy(scores.view(-1, 10)")
    notebook.screenshot("tour-recovered")

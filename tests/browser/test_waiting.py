"""While a crash waits: later cells, a re-run of the blocked cell, and the end of the kernel."""

from __future__ import annotations

from playwright.sync_api import expect

COUNT = """
%load_ext daifu_ipy
squares = [0, 1]
"""
CELL = """
%%daifu
done = []
for number in range(4):
    done.append(squares[number])
print("counted", done)
"""
MESSAGE = "list index out of range"
MEND = "squares += [4, 9]"
COUNTED = "counted [0, 1, 4, 9]"
LATER = ["print('first later', done)", "print('second later', done)"]


def crash(lab, *later):
    notebook = lab.open(COUNT, CELL, *later)
    notebook.run_all()
    return notebook, notebook.panel(1).waits(MESSAGE)


def test_later_cells_of_run_all_wait_and_run_in_order(lab):
    notebook, panel = crash(lab, *LATER)
    for number in (1, 2, 3):
        expect(notebook.prompt(number)).to_have_text("[*]:")
    expect(notebook.output(2)).not_to_contain_text("later")
    notebook.screenshot("run-all-waits")
    panel.act(MEND)
    panel.choose("pass")
    expect(notebook.output(1)).to_contain_text(COUNTED)
    expect(notebook.output(2)).to_contain_text("first later [0, 1, 4, 9]")
    expect(notebook.output(3)).to_contain_text("second later [0, 1, 4, 9]")
    for number in (1, 2, 3):
        expect(notebook.prompt(number)).to_have_text(f"[{number + 1}]:")


def test_later_cells_of_run_all_are_given_up_after_an_abort(lab):
    notebook, panel = crash(lab, *LATER)
    panel.choose("abort")
    panel.confirm()
    expect(notebook.output(1)).to_contain_text("IndexError")
    for number in (2, 3):
        expect(notebook.prompt(number)).to_have_text("[ ]:")
        expect(notebook.output(number)).not_to_contain_text("later")
    notebook.run(2)
    expect(notebook.output(2)).to_contain_text("first later [0, 1]")


def rerun(notebook, text=None):
    """The blocked cell is run again, its text perhaps changed; the panel asks."""
    if text is not None:
        notebook.edit(1, text)
    notebook.run(1)
    panel = notebook.panel(1)
    expect(panel.part("rerun")).to_be_visible()
    return panel


def test_a_rerun_goes_on_with_the_new_text(lab):
    notebook, _ = crash(lab, *LATER)
    panel = rerun(notebook, CELL.replace("squares[number]", "number**2"))
    expect(panel.part("rerun")).to_contain_text("number**2")
    notebook.screenshot("rerun")
    panel.part("rerun-apply").click()
    expect(notebook.output(1)).to_contain_text(COUNTED)
    expect(notebook.output(3)).to_contain_text("second later [0, 1, 4, 9]")
    notebook.ran(1)


def test_a_rerun_restarts_from_scratch(lab):
    notebook, _ = crash(lab)
    panel = rerun(notebook, CELL.replace("done = []", "done, squares = ['again'], [0, 1, 4, 9]"))
    panel.part("rerun-restart").click()
    notebook.screenshot("rerun-restart-asks")
    panel.confirm()
    expect(notebook.output(1)).to_contain_text("counted ['again', 0, 1, 4, 9]")
    notebook.ran(1)


def test_a_rerun_is_forgotten(lab):
    notebook, _ = crash(lab)
    panel = rerun(notebook)
    panel.part("rerun-forget").click()
    expect(panel.part("rerun")).to_be_hidden()
    panel.act(MEND)
    panel.choose("pass")
    expect(notebook.output(1)).to_contain_text(COUNTED)
    notebook.ran(1)


def test_the_kernel_is_restarted(lab):
    notebook, panel = crash(lab)
    notebook.restart_kernel()
    expect(panel.root).to_contain_text("restarted")
    notebook.screenshot("kernel-restarted")
    notebook.run(0)
    notebook.ran(0, 1)

"""Each answer by mouse, on a training run: what the run gives then is what a run without the fault gives."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.training import CELL, CRASH, LINE, MENDED, MESSAGE, SETUP, STATEMENT, same_as


@pytest.fixture
def crashed(lab):
    """A function that opens a notebook with the crashing training in its second cell, and runs it up to the crash."""

    def crash(*later):
        notebook = lab.open(SETUP, CELL, *later)
        notebook.run(0)
        notebook.ran(0, 1)
        notebook.run(1)
        return notebook, notebook.panel(1).waits(MESSAGE)

    return crash


def test_the_panel_shows_the_crash(crashed):
    notebook, panel = crashed()
    expect(panel.part("title")).to_contain_text(CRASH)
    expect(panel.part("place")).to_contain_text(str(LINE))
    expect(panel.part("loop").first).to_contain_text("epoch 1")
    expect(panel.part("loop").last).to_contain_text("start 900")
    expect(panel.part("frames")).to_contain_text("train")
    expect(panel.part("editor")).to_contain_text(STATEMENT)
    expect(panel.part("variables")).to_contain_text("targets")
    expect(notebook.prompt(1)).to_have_text("[*]:")
    assert notebook.kernel_status() == "busy"
    notebook.screenshot("crash")


def test_action_then_pass(crashed):
    notebook, panel = crashed(same_as())
    entry = panel.act("print('twelve', targets.max().item()); targets.shape")
    expect(entry).to_contain_text("twelve 12")
    expect(entry).to_contain_text("torch.Size([300])")
    expect(panel.act("targets[1 / 0]")).to_contain_text("ZeroDivisionError")
    panel.act(MENDED)
    notebook.screenshot("action")
    panel.choose("pass")
    panel.ends(f"Recovered {CRASH}")
    notebook.ran(1)
    expect(notebook.output(1)).to_contain_text("epoch 2 loss")
    notebook.screenshot("recovered")
    notebook.run(2)
    expect(notebook.output(2)).to_contain_text("same True")


def test_pass_without_a_mend_crashes_again(crashed):
    notebook, panel = crashed()
    panel.choose("pass")
    panel = notebook.panel(1).waits(MESSAGE)
    panel.act(MENDED)
    panel.choose("pass")
    panel.ends("Recovered")
    notebook.ran(1)
    expect(notebook.output(1)).to_contain_text("epoch 2 loss")


def test_surgery(crashed):
    notebook, panel = crashed(
        same_as("[labels, damaged, labels]", "inputs), targets)", "inputs), targets.clamp(max=9))")
    )
    panel.replace("(model(inputs), targets)", "(model(inputs), targets.clamp(max=9))")
    panel.choose("surgery")
    expect(panel.part("diff")).to_contain_text("clamp(max=9)")
    expect(panel.part("choice").first).to_be_visible()
    notebook.screenshot("surgery-preview")
    panel.part("apply").click()
    panel.ends("surgery")
    notebook.ran(1)
    expect(notebook.output(1)).to_contain_text("epoch 2 loss")
    notebook.screenshot("surgery-done")
    notebook.run(2)
    expect(notebook.output(2)).to_contain_text("same True")


def test_skip_says_what_is_stale(crashed):
    notebook, panel = crashed(
        same_as(
            "[labels, labels, labels]",
            "loss = nn",
            "if epoch == 1 and start == 900:\n                total += loss.item()\n                continue\n            loss = nn",
        )
    )
    panel.part("button-skip").hover()
    expect(panel.part("says")).to_contain_text("loss")
    notebook.screenshot("skip-says-what-is-stale")
    panel.choose("skip")
    again = notebook.panel(1).waits("backward through the graph a second time")
    again.choose("skip")
    again.ends("skip")
    notebook.ran(1)
    expect(notebook.output(1)).to_contain_text("epoch 2 loss")
    notebook.run(2)
    expect(notebook.output(2)).to_contain_text("same True")


def test_abort(crashed):
    notebook, panel = crashed()
    panel.choose("abort")
    panel.confirm()
    expect(notebook.output(1)).to_contain_text("Traceback (most recent call last)")
    expect(notebook.output(1)).to_contain_text(f"{CRASH}: {MESSAGE}")
    notebook.ran(1)
    notebook.screenshot("aborted")


def test_a_refusal_is_shown_at_its_line_and_loses_nothing(crashed):
    notebook, panel = crashed()
    panel.replace("(model(inputs), targets)", "(model(inputs), targets.clamp(max=9)")
    panel.choose("surgery")
    expect(panel.part("refusal").first).to_be_visible()
    notebook.screenshot("refusal")
    expect(panel.part("editor")).to_contain_text("targets.clamp(max=9)")
    panel.replace("targets.clamp(max=9)", "targets.clamp(max=9))")
    panel.operate()
    panel.ends("surgery")
    notebook.ran(1)
    expect(notebook.output(1)).to_contain_text("epoch 2 loss")


def test_the_stop_button_stops_an_action_only(crashed):
    notebook, panel = crashed()
    notebook.command("notebook:interrupt-kernel")
    panel.waits(MESSAGE)
    panel.start("while True: pass")
    expect(panel.root).to_have_attribute("data-phase", "working")
    expect(panel.part("button-pass")).to_be_disabled()
    notebook.screenshot("working")
    notebook.command("notebook:interrupt-kernel")
    expect(panel.entries.last).to_contain_text("KeyboardInterrupt")
    panel.waits(MESSAGE)
    panel.act(MENDED)
    panel.choose("pass")
    panel.ends("Recovered")
    notebook.ran(1)

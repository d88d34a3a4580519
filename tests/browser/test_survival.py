"""The panel outlives the page: reloads, second tabs, closed notebooks, a network that is gone."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.test_waiting import CELL, COUNT, COUNTED, LATER, MEND, MESSAGE, crash

SUBSHELL = """() => [...jupyterapp.shell.widgets('main')].some(
  widget => widget.console?.sessionContext.session?.kernel?.subshellId
)"""


def test_a_reload_of_a_saved_notebook(lab):
    notebook, panel = crash(lab)
    panel.type_action("half = 'typed'")
    notebook.saved()
    notebook.reload()
    panel = notebook.panel(1).waits(MESSAGE)
    expect(panel.part("console-input")).to_contain_text("half = 'typed'")
    expect(notebook.dock().root).to_be_hidden()
    mend(panel)
    panel.ends("Recovered")
    expect(panel.part("output")).to_contain_text(COUNTED)
    notebook.screenshot("reloaded")


def test_a_reload_of_an_unsaved_notebook_shows_the_dock(lab):
    notebook, panel = crash(lab, *LATER)
    panel.replace("squares[number]", "number**2")
    notebook.reload()
    dock = notebook.dock().waits(MESSAGE)
    expect(dock.part("editor")).to_contain_text("number**2")
    notebook.screenshot("dock")
    dock.operate()
    dock.ends("surgery")
    expect(dock.part("output")).to_contain_text(COUNTED)
    notebook.screenshot("dock-recovered")


def test_a_second_tab(lab):
    notebook, panel = crash(lab)
    notebook.saved()
    other = notebook.second_tab()
    second = other.panel(1).waits(MESSAGE)
    panel.act(MEND)
    expect(second.entries).to_have_count(1)
    second.choose("pass")
    panel.ends("Recovered")
    expect(notebook.output(1)).to_contain_text(COUNTED)


def test_a_crash_while_no_page_is_open(lab):
    start = """import pathlib, time
print("started")
while not pathlib.Path("crash-now").exists():
    time.sleep(0.01)
done = []"""
    notebook = lab.open(COUNT, CELL.replace("done = []", start))
    notebook.run_all()
    expect(notebook.output(1)).to_contain_text("started")
    notebook.saved()
    notebook.page.close()
    (lab.server.root / "crash-now").touch()
    again = notebook.second_tab()
    panel = again.any_panel().waits(MESSAGE)
    again.screenshot("opened-after-the-crash")
    mend(panel)
    panel.ends("Recovered")
    expect(panel.part("output")).to_contain_text(COUNTED)


def test_the_network_is_gone_and_back(lab):
    notebook, panel = crash(lab)
    lab.context.set_offline(True)
    notebook.screenshot("offline")
    lab.context.set_offline(False)
    mend(panel.waits(MESSAGE))
    panel.ends("Recovered")


def test_a_closed_notebook_is_opened_again(lab):
    notebook, _ = crash(lab)
    notebook.close()
    notebook.open_again()
    panel = notebook.any_panel().waits(MESSAGE)
    mend(panel)
    panel.ends("Recovered")


def mend(panel):
    panel.act(MEND)
    panel.choose("pass")


def test_a_second_crash_of_a_cell_after_a_reload(lab):
    """Its output goes to a request that this page has never made: the dock shows it."""
    notebook, _ = crash(lab)
    notebook.saved()
    notebook.reload()
    notebook.panel(1).waits(MESSAGE).choose("skip")
    dock = notebook.dock().waits(MESSAGE)
    expect(dock.root).to_contain_text("number = 3")
    mend(dock)
    dock.ends("Recovered")
    expect(dock.part("output")).to_contain_text("counted [0, 1, 9]")
    expect(notebook.page.locator("body")).not_to_contain_text("The kernel was restarted")


def test_a_subshell_console_decides_too(lab):
    notebook, _ = crash(lab)
    notebook.command("notebook:create-subshell-console", wait=False)
    console = notebook.page.locator(".jp-CodeConsole-input .cm-content")
    console.click()
    notebook.page.wait_for_function(SUBSHELL)  # what is sent before goes to the main shell, and waits there
    notebook.page.keyboard.insert_text("import daifu_ipy; daifu_ipy.pending()[0].decide(daifu_ipy.Skip())")
    notebook.page.keyboard.press("Shift+Enter")
    expect(notebook.output(1)).to_contain_text("Recovered IndexError at line 4 by skip")
    expect(notebook.output(1)).to_contain_text("decided outside of the panel")
    expect(notebook.panel(1).waits(MESSAGE).part("title")).to_contain_text(MESSAGE)  # at the next number

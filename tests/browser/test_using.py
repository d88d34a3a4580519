"""By keyboard alone, in the dark, read by a screen reader, and without a key that reaches the notebook."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.test_waiting import COUNTED, MEND, MESSAGE, crash

AXE = Path(__file__).parents[2] / "labextension/node_modules/axe-core/axe.min.js"

NOTE_COMMANDS = """() => {
  window.commands = [];
  jupyterapp.commands.commandExecuted.connect((_, executed) => window.commands.push(executed.id));
}"""


def serious(page):
    """What axe-core has against the panel, as a list of rules with the elements."""
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run('[data-daifu=root]', {resultTypes: ['violations']})")
    return [
        (rule["id"], [node["html"] for node in rule["nodes"]])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]


def tab_to(panel, name, most=60):
    """Press Tab until the focus is in this part."""
    for _ in range(most):
        if panel.part(name).first.evaluate("part => part.contains(document.activeElement)"):
            return
        panel.keys.press("Tab")
    raise AssertionError(f"Tab does not come to {name}")


def test_by_keyboard_alone(lab):
    notebook, panel = crash(lab)
    notebook.page.evaluate(NOTE_COMMANDS)
    panel.root.focus()
    tab_to(panel, "frame")
    panel.keys.press("ArrowUp")
    panel.keys.press("Enter")
    tab_to(panel, "editor")
    panel.keys.press("Escape")
    tab_to(panel, "button-action")
    panel.keys.press("Enter")
    panel.keys.type("print('by key', 1)")
    panel.keys.press("Shift+Enter")
    expect(panel.entries.last).to_contain_text("by key 1")
    panel.keys.press("ArrowUp")
    expect(panel.part("console-input")).to_contain_text("by key")
    panel.keys.press("Control+A")
    panel.keys.type(MEND)
    panel.keys.press("Shift+Enter")
    expect(panel.entries).to_have_count(2)
    panel.keys.press("Escape")
    tab_to(panel, "button-pass")
    notebook.screenshot("keyboard")
    panel.keys.press("Enter")
    panel.ends("Recovered")
    expect(notebook.output(1)).to_contain_text(COUNTED)
    assert notebook.page.evaluate("window.commands.filter(name => name.startsWith('notebook:'))") == []


def test_surgery_by_keyboard(lab):
    notebook, panel = crash(lab)
    panel.focus("editor")
    panel.keys.press("Control+F")
    panel.keys.type("squares[number]")
    panel.keys.press("Enter")
    panel.keys.press("Escape")
    panel.keys.type("number**2")
    panel.keys.press("Control+Enter")
    expect(panel.part("diff")).to_contain_text("number**2")
    panel.keys.press("Control+Enter")
    panel.ends("surgery")
    expect(notebook.output(1)).to_contain_text(COUNTED)


KEYS = [
    "a",
    "b",
    "d",
    "d",
    "m",
    "x",
    "z",
    "Enter",
    "Shift+Enter",
    "Control+Enter",
    "Alt+Enter",
    "0",
    "0",
    "i",
    "i",
    "ArrowUp",
    "ArrowDown",
    "Escape",
]


@pytest.mark.parametrize("part", ["frame", "editor", "console-input", "button-more", "variable", "root"])
def test_no_key_reaches_the_notebook(lab, part):
    notebook, panel = crash(lab)
    notebook.page.evaluate(NOTE_COMMANDS)
    panel.root.focus() if part == "root" else panel.focus(part)
    for key in KEYS:
        panel.keys.press(key)
    expect(panel.part("title")).to_contain_text(MESSAGE)
    assert notebook.page.evaluate("window.commands") == []
    assert notebook.page.locator(".jp-NotebookPanel .jp-Cell").count() == 2


def test_a_screen_reader_finds_names_and_roles(lab):
    notebook, panel = crash(lab)
    panel.act("number")
    assert serious(notebook.page) == []
    panel.replace("squares[number]", "number**2")
    panel.choose("surgery")
    expect(panel.part("diff")).to_be_visible()
    assert serious(notebook.page) == []
    expect(notebook.page.locator("[aria-live]").filter(has_text=MESSAGE).first).to_be_attached()


@pytest.fixture
def dark(server):
    theme = "@jupyterlab/apputils-extension:themes"
    server.set(theme, theme="JupyterLab Dark")
    yield
    server.set(theme, theme="JupyterLab Light")


@pytest.mark.usefixtures("dark")
def test_in_the_dark(lab):
    notebook, panel = crash(lab)
    panel.act("number / 3")
    notebook.screenshot("dark-crash")
    assert serious(notebook.page) == []
    panel.replace("squares[number]", "number**2")
    panel.choose("surgery")
    expect(panel.part("diff")).to_be_visible()
    notebook.screenshot("dark-surgery")
    assert serious(notebook.page) == []

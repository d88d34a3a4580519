"""The program's text is text, never HTML; its values stay in the kernel."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

SCRIPT = "<script>window.attacked = 1</script>"
IMAGE = "<img src=x onerror='window.attacked = 2'>"
FOLDER = "<img src=y onerror='window.attacked = 3'>"

LIBRARY = f"def inner(value):\n    name = value\n    raise ValueError({IMAGE!r})\n"
HOSTILE = f"""
%load_ext daifu_ipy
import pathlib, sys, tempfile

class Hostile:
    def __repr__(self):
        return {SCRIPT!r}
    def _repr_html_(self):
        return {SCRIPT + IMAGE!r}
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {{"text/html": {SCRIPT + IMAGE!r}, "application/javascript": "window.attacked = 4", "text/plain": "bundle"}}

folder = pathlib.Path(tempfile.mkdtemp()) / {FOLDER!r}
folder.mkdir(parents=True)
(folder / "lib.py").write_text({LIBRARY!r})
sys.path.insert(0, str(folder))
"""
RAISING = f"""
%%daifu
import lib
value = Hostile()
table = {{{IMAGE!r}: value}}
globals()[{IMAGE!r}] = {SCRIPT!r}
lib.inner(value)
print("done")
"""


def attacked(page):
    return page.evaluate("window.attacked ?? null")


def test_nothing_of_the_program_is_html(lab):
    notebook = lab.open(HOSTILE, RAISING)
    notebook.run_all()
    panel = notebook.panel(1).waits(IMAGE)
    expect(panel.part("variables")).to_contain_text(SCRIPT)
    expect(panel.act("value")).to_contain_text("value")
    panel.act(f"print({IMAGE!r}); raise KeyError({SCRIPT!r})")
    panel.part("variable").filter(has_text="table").first.click()
    expect(panel.part("variables")).to_contain_text("onerror")
    panel.part("frame").last.click()
    expect(panel.part("editor")).to_contain_text("def inner")
    expect(panel.part("frames")).to_contain_text("attacked = 3'>/lib.py")
    notebook.screenshot("hostile")
    assert attacked(notebook.page) is None
    panel.choose("abort")
    panel.confirm()
    expect(notebook.output(1)).to_contain_text("Traceback")
    assert attacked(notebook.page) is None
    notebook.saved()
    notebook.reload()
    expect(notebook.output(1)).to_contain_text("Traceback")
    assert attacked(notebook.page) is None


SECRET = "a secret of the program"
KEEPING = f"""
%%daifu
secret = {SECRET[::-1]!r}[::-1]
for epoch in range(3):
    rate = rates[epoch]
print("done")
"""


@pytest.fixture
def widget_state_is_saved(server):
    plugin = "@jupyter-widgets/jupyterlab-manager:plugin"
    server.set(plugin, saveState=True)
    yield
    server.set(plugin, saveState=False)


@pytest.mark.usefixtures("widget_state_is_saved")
def test_no_value_reaches_the_saved_notebook(lab):
    notebook = lab.open("%load_ext daifu_ipy\nrates = [1]", KEEPING)
    notebook.run_all()
    panel = notebook.panel(1).waits("list index out of range")
    expect(panel.part("variables")).to_contain_text(SECRET)
    expect(panel.act("secret")).to_contain_text(SECRET)
    waiting = notebook.saved()
    assert "application/vnd.jupyter.widget-state+json" in waiting["metadata"]["widgets"]
    assert SECRET not in json.dumps(waiting)
    panel.act("rates += [2, 3]")
    panel.choose("pass")
    panel.ends("Recovered IndexError")
    notebook.ran(1)
    over = notebook.saved()
    assert SECRET not in json.dumps(over)
    shown = json.dumps(over["cells"][1]["outputs"])
    assert "Recovered IndexError" in shown
    assert "text/html" in shown
    assert "text/plain" in shown


def test_the_saved_line_is_read_without_a_kernel(lab):
    notebook = lab.open("%load_ext daifu_ipy\nrates = [1]", KEEPING)
    notebook.run_all()
    panel = notebook.panel(1).waits("list index out of range")
    panel.act("rates += [2, 3]")
    panel.choose("pass")
    notebook.ran(1)
    notebook.saved()
    notebook.end_kernel()
    notebook.reload()
    expect(notebook.output(1)).to_contain_text("Recovered IndexError")
    notebook.screenshot("saved-line")

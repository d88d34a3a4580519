"""From the crash to the visible panel, and from the click to the resumed statement: `panel.py`.

A real JupyterLab in Chromium, on this machine, so that kernel and page read the same clock. The kernel notes when the
exception is raised and when the retried statement runs; the page notes when a frame with the panel in it has been
drawn and when the button is clicked. The large crash has 200 frames on its stack and 2,000 variables, one of them a
tensor of 2 GB.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from measure import Figure, conclude, line, setting
from playwright.sync_api import expect

from tests.browser.chromium import launched
from tests.browser.lab import Lab
from tests.browser.server import running

CRASHES = 8
"""In one run of a cell; the first, which imports and draws what the others find, is not counted."""
ROUNDS = 3
"""Runs of each cell, in turn, so that a change of the machine's speed hits both."""
APPEARS, RESUMES = "crash to visible panel", "click to resumed statement"
LARGER = 1.2
"""How many times longer it may take with many frames and variables."""
WIDTHS = (44, 12, 10, 10, 12, 8)
DEPTH, VARIABLES, BYTES = 200, 2000, 2 * 1024**3

SETUP = '''
%load_ext daifu_ipy
import json, time, torch
raised, resumed, waiting = [], [], False

exec("""  # without a source it is not vaccinated: the statement that calls it is retried
def step(number):
    global waiting
    waiting = not waiting
    if waiting:
        time.sleep(0.5)  # the page has done with the crash before
    (raised if waiting else resumed).append(time.time())
    if waiting:
        raise ValueError(f"crash {number}")
""")
'''
SMALL = f"""
%%daifu
for number in range({CRASHES}):
    step(number)
"""
ASSIGNMENTS = "\n    ".join(f"v{number} = {number}" for number in range(VARIABLES - 1))
LARGE = f"""
%%daifu
def deep(level, number):
    if level:
        return deep(level - 1, number)
    tensor = torch.empty({BYTES}, dtype=torch.uint8)
    {ASSIGNMENTS}
    step(number)

for number in range({CRASHES}):
    deep({DEPTH}, number)
"""
TIMES = "print('times', json.dumps([raised, resumed]))"

# When the page has drawn a waiting panel with this crash, and when its button is clicked, in seconds since 1970.
NOTE_TIMES = """() => {
  const now = () => (performance.timeOrigin + performance.now()) / 1000;
  window.shown = {};
  window.clicked = [];
  addEventListener('click', () => window.clicked.push(now()), true);
  const look = () => {
    for (const root of document.querySelectorAll('[data-daifu="root"][data-phase="waiting"]')) {
      const text = root.querySelector('[data-daifu="title"]')?.textContent ?? '';
      const crash = text.match(/crash \\d+/)?.[0];
      const pass = root.querySelector('[data-daifu="button-pass"]');
      if (crash && pass?.checkVisibility() && !(crash in window.shown)) {
        window.shown[crash] = 0;
        requestAnimationFrame(() => setTimeout(() => { window.shown[crash] = now(); }));
      }
    }
    requestAnimationFrame(look);
  };
  look();
}"""


def measured(lab: Lab, cell: str) -> tuple[list[float], list[float]]:
    """Milliseconds from raise to shown and from click to resumed, of each crash but the first."""
    notebook = lab.open(SETUP, cell, TIMES)
    notebook.run(0)
    notebook.ran(0, 1)
    notebook.page.evaluate(NOTE_TIMES)
    notebook.run(1)
    for number in range(CRASHES):
        panel = notebook.panel(1).waits(f"crash {number}")
        notebook.page.wait_for_function("crash => window.shown[crash] > 0", arg=f"crash {number}")
        notebook.page.evaluate("window.clicked.length = " + str(number))
        panel.choose("pass")
    notebook.ran(1)
    shown, clicked = notebook.page.evaluate("[window.shown, window.clicked]")
    notebook.run(2)
    expect(notebook.output(2)).to_contain_text("times")
    raised, resumed = json.loads(notebook.output(2).inner_text().split("times", 1)[1])
    appeared = [1000 * (shown[f"crash {number}"] - raised[number]) for number in range(1, CRASHES)]
    return appeared, [1000 * (resumed[number] - clicked[number]) for number in range(1, CRASHES)]


def all_rounds(lab: Lab) -> dict[str, list[float]]:
    """The times of both cells by row."""
    times: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for size, cell in (("small", SMALL), ("large", LARGE)):
            appeared, resumed = measured(lab, cell)
            times.setdefault(f"{size}: {APPEARS}", []).extend(appeared)
            times.setdefault(f"{size}: {RESUMES}", []).extend(resumed)
            lab.server.end_kernels()
            lab.context.pages[-1].close()
    return times


def shown(name: str, times: list[float], goal: float | None) -> Figure:
    """Print one row."""
    figure = Figure(name, median(times), goal, " ms", digits=0)
    goes = "-" if goal is None else f"{goal:g} ms"
    line(WIDTHS, name, str(figure), f"{min(times):.0f}", f"{max(times):.0f}", goes, figure.verdict)
    return figure


def ratio(name: str, times: dict[str, list[float]]) -> Figure:
    """Print how the large crash compares."""
    value = median(times[f"large: {name}"]) / median(times[f"small: {name}"])
    figure = Figure(f"large / small: {name}", value, LARGER, digits=2)
    line(WIDTHS, figure.name, str(figure), "", "", f"{LARGER:g}", figure.verdict)
    return figure


def main() -> int:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "lab") as server, launched() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        times = all_rounds(Lab(server, context, Path(folder), "bench"))
    print(setting())  # only now: it pins this process, and what that starts
    line(WIDTHS, "panel in JupyterLab", "median", "least", "most", "goal", "")
    goals = {f"small: {APPEARS}": 1000, f"small: {RESUMES}": 150}
    figures = [shown(name, row, goals.get(name)) for name, row in times.items()]
    return conclude([*figures, ratio(APPEARS, times), ratio(RESUMES, times)])


if __name__ == "__main__":
    sys.exit(main())

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

CRASHES = 15
WIDTHS = (44, 12, 10, 10, 12, 8)
DEPTH, VARIABLES, BYTES = 200, 2000, 2 * 1024**3

SETUP = '''
%load_ext daifu_ipy
import json, time
raised, resumed, waiting = [], [], False

exec("""  # without a source it is not vaccinated: the statement that calls it is retried
def step(number):
    global waiting
    waiting = not waiting
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
ASSIGNMENTS = "; ".join(f"v{number} = {number}" for number in range(VARIABLES - 1))
LARGE = f"""
%%daifu
import torch

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


def rows(name: str, cell: str, lab: Lab) -> list[tuple[str, list[float]]]:
    """The two rows of one cell."""
    appeared, resumed = measured(lab, cell)
    return [(f"{name}: crash to visible panel", appeared), (f"{name}: click to resumed statement", resumed)]


def shown(name: str, value: float, goal: float, unit: str, times: list[float]) -> Figure:
    """Print one row."""
    figure = Figure(name, value, goal, unit, digits=2 if not unit else 0)
    low, high = (f"{min(times):.0f}", f"{max(times):.0f}") if times else ("", "")
    line(WIDTHS, name, str(figure), low, high, f"{goal:g}{unit}", figure.verdict)
    return figure


def main() -> int:
    """Measure."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder) / "lab") as server,
        launched() as browser,
    ):
        lab = Lab(server, browser.new_context(viewport={"width": 1280, "height": 1000}), Path(folder), "bench")
        small, large = rows("small", SMALL, lab), rows("large", LARGE, lab)
    print(setting())  # only now: it pins this process, and what that starts
    line(WIDTHS, "panel in JupyterLab", "median", "least", "most", "goal", "")
    figures = []
    for (name, times), goal in zip(small, (1000, 150), strict=True):
        figures.append(shown(name, median(times), goal, " ms", times))
    for (name, times), (_, reference) in zip(large, small, strict=True):
        print(f"{name}: {median(times):.0f} ms")
        figures.append(shown(name.replace("large", "large / small"), median(times) / median(reference), 1.2, "", []))
    return conclude(figures)


if __name__ == "__main__":
    sys.exit(main())

"""A run that was repaired, exported, and run afresh with the export: the same output, with nobody asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# the program: RECORDS says what fails; main() is called by either run
PROGRAM = """
import daifu_ipy
log = []
table = {0: "a", 2: "c"}
def look(i):
    return table[i]
def work(i):
    if i == 1 and not mended:
        raise ValueError(f"bad {i}")
    return i * 10
def main():
    total = 0
    for i in range(4):
        name = look(i)
        value = work(i)
        total += value
        log.append((i, name, value, total))
    return total
mended = []
for function in (look, work, main):
    daifu_ipy.vaccinate(function)
"""
RUN = """
import json, threading, daifu_ipy
import program
from answers import manager
daifu_ipy.set_repair_manager(manager)
ends = []
threading.excepthook = lambda args: ends.append(repr(args.exc_value))  # a try around it would be a handler
thread = threading.Thread(target=lambda: ends.append(program.main()))
thread.start()
thread.join()
print(json.dumps([ends[0], program.log, getattr(manager, "left", None)]))
"""
INTERACTIVE = """
from daifu_ipy import *
import daifu_ipy, json, atexit
answers = iter([{answers}])
def manager(crash):
    given = next(answers)
    return given(crash) if callable(given) and not isinstance(given, type) else given
def export():
    for form, path in (("script", "replayed.py"), ("json", "replayed.json")):
        text = daifu_ipy.history.export_script() if form == "script" else json.dumps(daifu_ipy.history.to_json())
        open(path, "w", encoding="utf-8").write(text)
atexit.register(export)
"""
FRESH = {
    "script": "from replayed import manager\n",
    "json": "from daifu_ipy.repair.replay import replay\nmanager = replay('replayed.json')\n",
}
LOOK = "def look(i):\n    return table.get(i, f'made {i}')\n"
MAIN = PROGRAM[PROGRAM.index("def main") : PROGRAM.index("mended = []")]
# what a person answers, crash after crash
PEOPLE = {
    "pass-after-an-action": 'Repair(("table[i] = 1",)), Repair(("mended.append(1)",), Skip()), Repair(("table[3] = \\"d\\"",)), Pass()',
    "actions-typed-before": "lambda c: (c.action('table[i] = \"typed\"'), c.action('i'), Pass())[-1], "
    "lambda c: (c.action('mended.append(1)'), Skip())[-1], lambda c: (c.action('table[3] = 0'), Pass())[-1]",
    "actions-in-two-frames": "lambda c: (c.action('table[i] = 1'), Pass())[-1], "
    "lambda c: (c.action('total = 1000', 1), c.action('mended.append(1)'), Return('5'))[-1], Return('\"r\"')",
    "skip-and-return": "Return('\"none\"'), Return('-1'), Return('\"none\"')",
    "outer-continue": "Repair(then=Continue(), frame=1), Repair(then=Continue(), frame=1)",
    "outer-break": "Repair(then=Break(), frame=1)",
    "surgery-of-a-helper": f"Surgery({LOOK!r}), Return('5')",
    "surgery-from-the-edit": f"Surgery({LOOK!r}), Repair(then=Surgery({MAIN.replace('value = work(i)', 'value = 7')!r}, 'edit'), frame=1)",
    "surgery-then-a-crash-in-the-new-text": f"Surgery({LOOK.replace('made', '{1 // (3 - i)}')!r}), Return('7'), "
    "Return('\"zero\"')",
    "abort-at-last": "Return('1'), Abort()",
    "refused-once": "Break(), Return('1'), Return('2'), Return('3')",
}


def run(folder: Path, answers: str) -> list:
    (folder / "answers.py").write_text(answers, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=folder, env=environment, capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("answers", PEOPLE.values(), ids=PEOPLE)
def test_a_fresh_run_is_repaired_as_the_first_one_was(answers, tmp_path, request):
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    first = run(tmp_path, INTERACTIVE.format(answers=answers))
    assert isinstance(first[0], int) or "abort" in request.node.name
    # a comment above moves every line
    (tmp_path / "program.py").write_text(f"# new\n\n{PROGRAM}", "utf-8")
    for fresh in FRESH.values():
        assert run(tmp_path, fresh) == [*first[:2], 0]


def test_a_crash_without_an_answer_aborts_and_what_is_left_is_told(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    run(tmp_path, INTERACTIVE.format(answers=PEOPLE["skip-and-return"]))
    (tmp_path / "program.py").write_text(PROGRAM.replace("table[i]", "dict(table)[i]"), "utf-8")
    result, log, left = run(tmp_path, FRESH["script"])
    assert (result, len(log), left) == ("KeyError(1)", 1, 3)

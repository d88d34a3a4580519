"""``%daifu status``, read by somebody in a hurry."""

from __future__ import annotations

import threading

import pytest

import daifu_ipy
from daifu_ipy import Pass, Repair, Surgery, repair_with
from daifu_ipy.engine import versions
from daifu_ipy.engine.undecided import MOST, Log, Undecided
from tests.magic.notebook import Notebook


@pytest.fixture
def notebook():
    with Notebook() as made:
        yield made
    versions.clear()


def lines(notebook, title):
    """What is said under a title."""
    shown = notebook.run("%daifu status").stdout.splitlines()
    return [line[16:] for line in shown if line[:15].rstrip() == title]


UNDECIDABLE = {
    "computed types": ("kinds = [KeyError]\ndef g():\n    try:\n        f()\n    except tuple(kinds): return 'handled'", "except", "which exceptions it takes, or whether it raises them again, is computed"),
    "raised again at times": ("def g():\n    try:\n        f()\n    except KeyError:\n        if kinds: raise\n        return 'handled'\nkinds = []", "except KeyError", "which exceptions it takes, or whether it raises them again, is computed"),
    "a computed answer": ("class Block:\n    def __enter__(self): pass\n    def __exit__(self, *info): return len(info) == 3\ndef g():\n    with Block(): f()\n    return 'handled'", "with Block()", "its __exit__ computes the answer"),
}  # fmt: skip


@pytest.mark.parametrize(("cell", "handler", "why"), UNDECIDABLE.values(), ids=UNDECIDABLE.keys())
def test_handlers_that_can_not_be_decided_are_named(notebook, cell, handler, why):
    with repair_with(lambda crash: pytest.fail("it is handled")):
        assert notebook.run(f"%%daifu\ndef f(): return {{}}['x']\n{cell}\ng()").result == "'handled'"
        line = lines(notebook, "let go")[0]
        assert line.startswith(f"KeyError in f: {handler}")
        assert " in g (Cell In[1], line " in line
        assert line.endswith(f" may handle it: {why}")
        assert notebook.run("g()").result == "'handled'"
        assert lines(notebook, "let go")[0].startswith(f"KeyError in f, 2 times: {handler}")


def test_what_is_decided_is_not_named(notebook):
    notebook.run("%%daifu\ndef f(): return {}['x']\ndef g():\n    try: f()\n    except KeyError: pass\ng()")
    assert lines(notebook, "let go") == []


def test_with_intercept_unhandled_nothing_is_let_go(notebook):
    notebook.runs("%config Daifu.intercept = 'unhandled'", "%config Daifu.rules = 'KeyError -> return \"5\"'")
    cell = "%%daifu\ndef f(): return {}['x']\n" + UNDECIDABLE["computed types"][0] + "\n    return 6\nf() + 1"
    assert notebook.run(cell).result == "6"
    assert lines(notebook, "let go") == []


def test_the_log_is_bounded_and_keeps_the_newest():
    log = Log()
    for number in range(MOST + 10):
        log.add(Undecided("KeyError", f"f{number}", "a.py", "except x in g (a.py:1)"))
        log.add(Undecided("KeyError", "often", "a.py", "except x in g (a.py:1)"))
    kept = log.all()
    assert len(kept) == MOST
    assert (kept[-1][0].unit, kept[-1][1]) == ("often", MOST + 10)
    assert kept[-2][0].unit == f"f{MOST + 9}"


def test_what_is_on(notebook):
    assert lines(notebook, "cells") == ["those with %%daifu on top (%daifu auto is off)"]
    notebook.run("%config Daifu.auto = True")
    assert lines(notebook, "cells") == ["every one (%daifu auto is on); %%daifu off above one leaves it alone"]
    assert lines(notebook, "told") + lines(notebook, "patience") + lines(notebook, "surgeries") == []
    notebook.runs(
        "%config Daifu.on_crash = 'mail me'", "%config Daifu.patience = '2h'", "%config Daifu.fallback = 'skip'"
    )
    assert lines(notebook, "told") == ["mail me, when a crash begins to wait (Daifu.on_crash)"]
    assert lines(notebook, "patience") == ["2h in a panel, then skip (Daifu.patience, Daifu.fallback)"]


def test_rules_and_what_is_left_of_them(notebook):
    notebook.run(
        '%config Daifu.rules = \'KeyError ~ "x" @ f:2 -> action "y = 1" then pass, limit=3; ValueError -> skip\''
    )
    first, second = lines(notebook, "rule 1") + lines(notebook, "rule 2")
    assert first.startswith("KeyError ~ 'x' @ f:2 -> 1 action, then pass; 3 of 3 uses left")
    assert second.startswith("ValueError -> skip; ")
    notebook.run("def f():\n    return {}['x']")
    seen = notebook.run(
        "%%daifu --rules 'ZeroDivisionError -> skip, limit=4'\n1 / 0\n1 / 0\nget_ipython().run_line_magic('daifu', 'status')"
    )
    assert "rule 1          ZeroDivisionError -> skip; 2 of 4 uses left\n" in seen.stdout
    assert "rule 2          KeyError" in seen.stdout


def test_crashes_that_wait_come_first(notebook):
    arrived, shown = threading.Event(), []

    def manager(crash):
        arrived.set()
        return crash.wait()

    notebook.runs("def f(x):\n    return 1 / x", "%daifu vaccinate f")
    daifu_ipy.set_repair_manager(manager)
    try:
        thread = threading.Thread(target=lambda: shown.append(notebook["f"](0)), name="trainer")
        thread.start()
        assert arrived.wait(30)
        first = notebook.run("%daifu status").stdout.splitlines()[0]
        daifu_ipy.pending()[0].decide(Repair(("x = 4",), Pass()))
        thread.join(30)
    finally:
        daifu_ipy.set_repair_manager(None)
    assert first == "waits           ZeroDivisionError: division by zero, in f, line 2 (trainer)"
    assert shown == [0.25]
    assert lines(notebook, "waits") == []


def test_surgeries_are_counted(notebook):
    notebook.run("def f(x):\n    return 1 / x")
    with repair_with(lambda crash: Surgery("def f(x):\n    return 1 / (x or 2)")):
        assert notebook.run("%%daifu\nf(0)").result == "0.5"
    (line,) = lines(notebook, "surgeries")
    assert line.startswith("1 in what runs now; %daifu versions")


def test_many_lines_of_a_kind(notebook):
    runner = next(
        m for m in notebook.shell.magics_manager.registry.values() if type(m).__name__ == "DaifuMagics"
    ).runner
    runner.plain.update({f"f{n}": "too deep" for n in range(30)})
    shown = lines(notebook, "runs plainly")
    assert shown == ["20 more, and:", *(f"f{n}: too deep" for n in range(20, 30))]


def test_who_answers_a_crash_of_the_cell_that_runs(notebook):
    seen = notebook.run(
        "%%daifu --rules 'KeyError -> skip' --on-crash rules\nget_ipython().run_line_magic('daifu', 'status')"
    )
    assert "a crash now     is tried by 1 rule, then is aborted\n" in seen.stdout
    notebook.run("%config Daifu.rules = 'ZeroDivisionError -> skip, limit=4'")
    notebook.run("def f():\n    1 / 0")
    notebook.run("%daifu vaccinate f")
    seen = notebook.run("f()\nget_ipython().run_line_magic('daifu', 'status')")
    assert "rule 1          ZeroDivisionError -> skip; 3 of 4 uses left\n" in seen.stdout


def test_to_look_changes_nothing_of_where_a_crash_is_told(notebook):
    notebook.run("%config Daifu.rules = 'ZeroDivisionError -> skip, limit=4'")
    notebook.runs("def f():\n    1 / 0", "%daifu vaccinate f", "import contextlib, io")
    look = "with contextlib.redirect_stdout(io.StringIO()):\n    get_ipython().run_line_magic('daifu', 'status')\nf()"
    assert "skip (rule 1, use 1 of 4)" in notebook.run(look).stdout

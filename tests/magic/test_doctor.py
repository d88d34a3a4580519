"""``%daifu doctor``: what it finds, and that it touches nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import types

import pytest

import daifu_ipy
from daifu_ipy import Pass, history, repair_with
from daifu_ipy.engine.managers import settings
from daifu_ipy.magic import answers, rehearsal
from tests.magic.notebook import Notebook


@pytest.fixture
def notebook(monkeypatch):
    monkeypatch.setattr("daifu_ipy.frontends.choose._has_terminal", lambda: True)
    monkeypatch.setattr("daifu_ipy.frontends.choose._kernel", lambda: None)
    monkeypatch.setattr("sys.excepthook", sys.__excepthook__)
    with Notebook() as made:
        yield made


def report(notebook):
    """The lines of the report, by their titles; the last line."""
    seen = notebook.run("%daifu doctor")
    assert (seen.error, seen.stderr) == ("", "")
    *shown, last = seen.stdout.splitlines()
    return [(line[:15].rstrip(), line[16:]) for line in shown], last


def found(notebook, title):
    return [text for what, text in report(notebook)[0] if what == title]


def test_all_is_fine(notebook):
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        shown, last = report(notebook)
    finally:
        sys.settrace(tracer)
    assert last == "daifu: everything fine"
    assert not any("TO DO" in text for _, text in shown)
    assert [what for what, _ in shown][:4] == ["recovery", "Python", "IPython", "answers"]
    assert found(notebook, "recovery") == [
        "a small function was crashed and recovered; its result is that of a plain run"
    ]


def test_it_touches_nothing(notebook):
    notebook.run("x = 1")
    told = []
    settings.on_closed.append(lambda *told_of: told.append(told_of))
    before = dict(notebook.shell.user_ns), vars(settings).copy(), len(history), sys.modules.keys() - {None}
    report(notebook)
    names = {name for name in notebook.shell.user_ns if not name.startswith("_")}
    assert names == {name for name in before[0] if not name.startswith("_")}
    assert vars(settings) == before[1]
    assert (len(history), told, daifu_ipy.pending()) == (before[2], [], [])
    assert settings.remembered.lost() == []
    assert rehearsal.FILENAME not in __import__("linecache").cache
    with repair_with(lambda crash: pytest.fail("asked about the doctor's own crash")):
        assert report(notebook)[0][0][0] == "recovery"


def test_nobody_can_be_asked(notebook, monkeypatch):
    monkeypatch.setattr("daifu_ipy.frontends.choose._has_terminal", lambda: False)
    shown, last = report(notebook)
    (text,) = [text for what, text in shown if what == "answers"]
    assert text.startswith("TO DO: a crash now is aborted: nobody can be asked here, since stdin is no terminal. Rules")
    assert last == "daifu: 1 thing to do"
    notebook.run("%config Daifu.rules = 'KeyError -> skip'")
    assert report(notebook)[1] == "daifu: everything fine"
    notebook.runs("%config Daifu.rules = None", "%config Daifu.answer = 'abort'")
    assert report(notebook)[1] == "daifu: everything fine"


def test_who_answers_instead(notebook, monkeypatch, tmp_path):
    monkeypatch.setattr("daifu_ipy.frontends.choose._has_terminal", lambda: False)
    seen = notebook.run("%%daifu --rules 'KeyError -> skip'\nget_ipython().run_line_magic('daifu', 'doctor')")
    assert "a crash now is tried by 1 rule, then is aborted" in seen.stdout
    assert seen.stdout.endswith("daifu: everything fine\n")
    (tmp_path / "run.json").write_text(json.dumps(history.to_json()))
    notebook.run(f"%daifu replay {tmp_path / 'run.json'}")
    assert found(notebook, "answers")[0].startswith("a crash now is answered by the replay, or is aborted")
    with repair_with(lambda crash: Pass()):
        assert found(notebook, "answers") == [
            "note: a crash now goes to the repair manager that the program has set, not to you"
        ]


def test_recovery_that_does_not_work(notebook, monkeypatch):
    monkeypatch.setattr(rehearsal, "Pass", daifu_ipy.Skip)
    assert found(notebook, "recovery")[0].startswith(
        "TO DO: a small function could not be recovered: the recovered run gave"
    )
    monkeypatch.setattr(rehearsal, "Pass", lambda: {}["x"])
    assert "by zero. Please report it" in found(notebook, "recovery")[0]


def test_internal_errors_are_shown(notebook, monkeypatch):
    monkeypatch.setattr(answers, "_failed", ["TypeError: no"])
    assert found(notebook, "internal error") == ["TO DO: TypeError: no: please report it"]


def test_a_tracer(notebook):
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        texts = found(notebook, "debugger")
    finally:
        sys.settrace(before)
    assert any(text.startswith("note: ") and __name__ in text for text in texts)


def test_other_tools(notebook):
    import ast

    class Double(ast.NodeTransformer):
        pass

    notebook.shell.ast_transformers.append(Double())
    notebook.shell.set_custom_exc((KeyError,), lambda *_: None)
    notebook.shell.run_code = notebook.shell.run_code
    texts = " ".join(found(notebook, "other tools"))
    for part in ("Double rewrites cells", "set_custom_exc handles KeyError", "run_code of this shell was replaced"):
        assert part in texts
    del notebook.shell.run_code


def test_autoreload(notebook):
    assert found(notebook, "autoreload") == []
    notebook.run("%load_ext autoreload")
    assert found(notebook, "autoreload") == ["loaded; what it loads again is protected again, before the next cell"]


def test_torch(notebook, monkeypatch):
    """Told by the names of classes; nothing is imported for it."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert found(notebook, "torch") == ["not imported"]
    assert "torch" not in sys.modules
    fake = types.ModuleType("torch")
    fake.__version__ = "9.9"
    monkeypatch.setitem(sys.modules, "torch", fake)
    compiled = type("OptimizedModule", (), {"__module__": "torch._dynamo.eval_frame"})
    loader = type("DataLoader", (), {"__module__": "torch.utils.data.dataloader"})
    notebook.shell.user_ns.update(model=compiled(), loader=loader(), own=loader())
    notebook["loader"].num_workers, notebook["own"].num_workers = 2, 0
    assert found(notebook, "torch") == ["9.9, imported"]
    assert found(notebook, "torch.compile")[0].startswith("note: model: made by torch.compile;")
    assert found(notebook, "DataLoader")[0].startswith("note: loader: an exception in a worker process")


def test_a_python_without_columns():
    code = "from daifu_ipy.magic.doctor import _columns\nprint([(one.kind, one.what) for one in _columns()])"
    for options, expected in (((), "[]"), (("-X", "no_debug_ranges"), "[('do', 'columns')]")):
        shown = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=True)
        assert shown.stdout.strip() == expected

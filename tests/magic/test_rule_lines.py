"""What rules did is one line for each rule, brought up to date in place; in a log, few lines."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from daifu_ipy.magic import rule_lines
from daifu_ipy.magic.rule_lines import RuleLines
from daifu_ipy.repair.rules import Report
from tests.magic.kernel import Kernel
from tests.magic.notebook import MARKER, Notebook

RULES = f"{MARKER} --rules '* -> skip, limit=100'\n"
LOOP = "for i in range(40):\n    1 / 0"


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    made = Kernel("%load_ext daifu_ipy")
    yield made
    made.stop()


def lines(messages):
    """The texts of the outputs as a notebook would save them."""
    return [m["data"]["text/plain"] for m in messages if m["type"] == "display_data"]


def updates(messages):
    return [m["data"]["text/plain"] for m in messages if m["type"] == "update_display_data"]


kernel_test = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@kernel_test
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "cell",
    [
        RULES + LOOP,
        RULES
        + "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n    "
        + LOOP.replace("\n", "\n    "),
        RULES
        + "import threading\ndef work():\n    "
        + LOOP.replace("\n", "\n    ")
        + "\nt = threading.Thread(target=work)\nt.start()\nt.join()",
    ],
    ids=["plain", "redirected", "thread"],
)
def test_forty_uses_are_one_output_of_a_notebook(kernel, cell):
    sent = kernel.run(cell)
    assert len(lines(sent)) == 1
    assert "skip (rule 1, use 1 of 100)" in lines(sent)[0]
    assert "skip (rule 1, use 40 of 100)" in updates(sent)[-1]
    assert len(updates(sent)) <= 39
    assert not any("rule 1" in message.get("text", "") for message in sent if message["type"] == "stream")


@kernel_test
@pytest.mark.timeout(120)
def test_after_the_cell_has_ended_its_line_is_changed(kernel):
    kernel.run(f"{MARKER} --rules '* -> skip, limit=100'\ndef f():\n    1 / 0\nf()")
    sent = kernel.run("f()\nf()")
    assert lines(sent) == []
    assert "use 3 of 100" in updates(sent)[-1]


def test_in_a_log_the_telling_uses_and_the_last_have_lines():
    with Notebook() as notebook:
        shown = notebook.run(RULES + LOOP).stdout
    uses = [line.split("use ")[1].split()[0] for line in shown.splitlines() if "rule 1" in line]
    assert uses == ["1", "2", "3", "4", "8", "16", "32", "40"]


def test_many_uses_give_few_updates(monkeypatch):
    now, sent = [0.0], []
    monkeypatch.setattr(
        rule_lines, "publish_display_data", lambda data, **more: sent.append((data["text/plain"], more))
    )
    shown = RuleLines(SimpleNamespace(kernel=object()), clock=lambda: now[0])
    for use in range(1, 1001):
        now[0] += 0.01
        shown(Report(f"use {use}", 1, use))
    shown(Report("other", 2, 1))
    shown.end()
    assert 50 <= len(sent) <= 70
    assert [more["update"] for text, more in sent if text in ("use 1", "use 2", "other")] == [False, True, False]
    assert sent[-1][0] == "use 1000"
    assert len({more["transient"]["display_id"] for _, more in sent}) == 2
    before = len(sent)
    shown.end()
    assert len(sent) == before


def test_two_runs_have_lines_of_their_own(monkeypatch):
    sent = []
    monkeypatch.setattr(rule_lines, "publish_display_data", lambda data, transient, update: sent.append(transient))
    for _ in range(2):
        RuleLines(SimpleNamespace(kernel=object()))(Report("a", 1, 1))
    assert sent[0] != sent[1]


# the traits


def daifu(notebook):
    return next(c for c in notebook.shell.configurables if type(c).__name__ == "Daifu")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("on_crash", 5, "on_crash must be a function, or a command"),
        ("on_crash", " ", "on_crash must be a function, or a command"),
        ("patience", "soon", "patience: expected a duration such as '2h'"),
        ("fallback", "retry", "fallback: rules: expected one of pass"),
        ("answer", "ask", "'ask'"),
    ],
)
def test_wrong_traits_are_refused(name, value, problem):
    from traitlets import TraitError

    with Notebook() as notebook, pytest.raises(TraitError, match=problem):
        setattr(daifu(notebook), name, value)


def test_the_patience_of_a_notebook():
    with Notebook(config={"Daifu": {"patience": "2h", "fallback": "skip"}}) as notebook:
        patience = daifu(notebook).how_patient()
        assert (patience.seconds, patience.fallback.word) == (7200, "skip")
        daifu(notebook).patience = None
        assert daifu(notebook).how_patient() is None


def test_the_hook_of_a_notebook_is_called_when_somebody_is_asked(monkeypatch):
    from daifu_ipy import Repair, Skip
    from daifu_ipy.frontends.choose import ASKERS, Asker

    told = []
    panel = Asker("panel", lambda environment: True, lambda crash: Repair(then=Skip()))
    monkeypatch.setattr("daifu_ipy.magic.manager.notify", lambda hook, crash, show: hook(crash.restart.line))
    ASKERS.insert(0, panel)
    try:
        with Notebook() as notebook:
            daifu(notebook).on_crash = told.append
            notebook.run(f"{MARKER} --rules 'KeyError -> skip'\n{{}}[0]\n1 / 0")
    finally:
        ASKERS.remove(panel)
    assert told == [3]

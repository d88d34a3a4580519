"""Who answers: every row of the table, and that nothing ever waits where nobody can answer."""

from __future__ import annotations

import io
import itertools
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from daifu_ipy import repair_with, vaccinate
from daifu_ipy.engine.repairs import Abort, Pass, Repair, Skip
from daifu_ipy.frontends.choose import ASKERS, ON_CRASH, Asker, Environment, choose, describe
from daifu_ipy.repair.rules import Rules, SameHere, read_rules
from tests.fakes import FakeCrash

SCRIPT = Environment()
TERMINAL = Environment(is_tty=True)
KERNEL = Environment(in_kernel=True, allows_stdin=True)
BATCH_KERNEL = Environment(in_kernel=True)
BATCH_KERNEL_ON_A_TTY = Environment(in_kernel=True, is_tty=True)

ASKED = Repair(then=Skip())
ABORTED = Repair(then=Abort())
PROMPT = (Asker("prompt", lambda environment: environment.can_prompt, lambda crash: ASKED),)


def rules(text):
    return Rules(read_rules(text), show=lambda line: None)


def decide(environment, crash=None, **options):
    """The repair, and what was printed."""
    shown: list[str] = []
    options = {"askers": PROMPT, **options}
    return choose(crash or FakeCrash(), environment=environment, show=shown.append, **options), "\n".join(shown)


@pytest.mark.parametrize(
    ("environment", "on_crash", "expected"),
    [
        (SCRIPT, "auto", ABORTED),
        (TERMINAL, "auto", ASKED),
        (KERNEL, "auto", ASKED),
        (BATCH_KERNEL, "auto", ABORTED),
        (BATCH_KERNEL_ON_A_TTY, "auto", ABORTED),
        (TERMINAL, "prompt", ASKED),
        (SCRIPT, "prompt", ABORTED),
        (BATCH_KERNEL, "prompt", ABORTED),
        (TERMINAL, "panel", ASKED),
        (SCRIPT, "panel", ABORTED),
        (TERMINAL, "rules", ABORTED),
        (KERNEL, "rules", ABORTED),
        (TERMINAL, "abort", ABORTED),
    ],
)
def test_without_a_rule_that_matches(environment, on_crash, expected):
    for source in (None, rules(""), rules("KeyError -> pass")):
        assert decide(environment, on_crash=on_crash, rules=source)[0] == expected


@pytest.mark.parametrize("on_crash", ON_CRASH)
@pytest.mark.parametrize("environment", [SCRIPT, TERMINAL, KERNEL, BATCH_KERNEL])
def test_rules_come_first_in_every_mode(environment, on_crash):
    answer, printed = decide(environment, on_crash=on_crash, rules=rules("ValueError -> pass"))
    assert (answer, printed) == (Repair(then=Pass()), "")


def test_a_rule_may_be_any_callable():
    assert decide(SCRIPT, rules=lambda crash: Pass)[0] == Repair()


def test_a_used_up_rule_leaves_it_to_the_table():
    used = rules("* -> pass")
    assert [decide(TERMINAL, rules=used)[0] for _ in range(2)] == [Repair(), ASKED]


def test_a_refused_rule_leaves_it_to_the_table():
    one = rules("* -> pass, limit=none")
    decide(TERMINAL, rules=one)
    assert decide(TERMINAL, FakeCrash(refusal="no"), rules=one)[0] == ASKED


def test_the_askers_are_tried_in_order_where_they_fit():
    panel = Asker("panel", lambda environment: environment.in_kernel, lambda crash: Repair(("panel",)))
    both = [panel, *PROMPT]
    assert decide(KERNEL, askers=both)[0].actions == ("panel",)
    assert decide(TERMINAL, askers=both)[0] == ASKED
    assert decide(KERNEL, askers=both, on_crash="prompt")[0] == ASKED
    assert decide(BATCH_KERNEL, askers=both, on_crash="rules")[0] == ABORTED


def test_an_abort_prints_the_bounded_stack_and_why():
    crash = FakeCrash(exception=ValueError("x" * 10**6))
    _, printed = decide(SCRIPT, crash)
    assert printed.startswith("ValueError: xxx")
    assert printed.endswith("daifu: aborting; nobody can be asked here")
    assert len(printed) < 9_000
    _, printed = decide(SCRIPT, FakeCrash(refusal="no loop"), on_crash="abort")
    assert printed.endswith("daifu: the repair was refused: no loop\ndaifu: aborting; on-crash is abort")


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="on_crash must be one of auto, panel, prompt, rules, abort, not 'ask'"):
        choose(FakeCrash(), on_crash="ask", environment=SCRIPT)


def test_nothing_is_asked_where_nobody_can_answer(monkeypatch, capsys):
    def fail(prompt=""):
        raise AssertionError("asked")

    monkeypatch.setattr("builtins.input", fail)
    flags = itertools.product([False, True], repeat=3)
    for environment, on_crash in itertools.product((Environment(*flag) for flag in flags), ON_CRASH):
        if not environment.can_prompt:
            assert choose(FakeCrash(), on_crash=on_crash, environment=environment) == ABORTED
    assert "daifu: aborting" in capsys.readouterr().out


def test_the_prompt_is_the_real_one(monkeypatch, capsys):
    monkeypatch.setattr("builtins.input", lambda prompt="": "skip")

    @vaccinate
    def unit():
        1 / 0
        return 5

    with repair_with(lambda crash: choose(crash, environment=TERMINAL)):
        assert unit() == 5
    assert [asker.name for asker in ASKERS] == ["prompt"]
    assert "ZeroDivisionError" in capsys.readouterr().out


def test_a_later_front_end_may_put_itself_first():
    panel = Asker("panel", lambda environment: environment.in_kernel, lambda crash: Repair(("panel",)))
    ASKERS.insert(0, panel)
    try:
        assert choose(FakeCrash(), environment=BATCH_KERNEL).actions == ("panel",)
        assert describe(environment=BATCH_KERNEL) == "is asked about at the panel"
    finally:
        ASKERS.remove(panel)


def asker(*answers):
    left = list(answers)
    return (Asker("prompt", lambda environment: True, lambda crash: left.pop(0)),)


def test_the_same_here_makes_a_rule():
    made = rules("KeyError -> pass")
    asked = asker(SameHere(ASKED, 3))
    assert [decide(TERMINAL, rules=made, askers=asked)[0] for _ in range(3)] == [ASKED] * 3
    assert made.rules[0].limit == 3
    with pytest.raises(IndexError):  # asked again
        decide(TERMINAL, rules=made, askers=asked)


def test_the_same_here_that_is_refused_makes_none():
    made, asked = rules(""), asker(SameHere(ASKED, 3), Repair())
    decide(TERMINAL, rules=made, askers=asked)
    assert decide(TERMINAL, FakeCrash(refusal="no"), rules=made, askers=asked)[0] == Repair()
    assert made.rules == ()


def test_the_same_here_without_rules_is_the_repair():
    assert decide(TERMINAL, askers=asker(SameHere(ASKED, 3)))[0] == ASKED


def test_somebody_is_told_when_a_crash_begins_to_wait():
    told = []
    for environment, crash, source in [
        (TERMINAL, FakeCrash(), None),
        (TERMINAL, FakeCrash(refusal="no"), None),
        (SCRIPT, FakeCrash(), None),
        (TERMINAL, FakeCrash(), rules("* -> skip")),
    ]:
        decide(environment, crash, rules=source, on_wait=told.append)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"environment": SCRIPT}, "is aborted: nobody can be asked here"),
        ({"environment": TERMINAL}, "is asked about at the prompt"),
        ({"environment": TERMINAL, "on_crash": "rules", "rules": 1}, "is tried by 1 rule, then is aborted"),
        ({"environment": KERNEL, "rules": 2}, "is tried by 2 rules, then is asked about at the prompt"),
    ],
)
def test_it_says_who_would_answer(options, text):
    assert describe(**options) == text


class FakeKernel:
    def __init__(self, parent=None, **attributes):
        self.parent = parent
        vars(self).update(attributes)

    def get_parent(self, channel):
        if self.parent is None:
            raise RuntimeError
        return self.parent


def request(allow):
    return {"content": {"allow_stdin": allow}}


@pytest.mark.parametrize(
    ("kernel", "allows"),
    [
        (FakeKernel(request(True)), True),
        (FakeKernel(request(False)), False),
        (FakeKernel(request(False), _allow_stdin=True), False),
        (FakeKernel({}, _allow_stdin=True), True),
        (FakeKernel(_allow_stdin=True), True),
        (FakeKernel(), False),
        (SimpleNamespace(), False),
    ],
)
def test_a_kernel_is_asked_whether_its_request_allows_stdin(kernel, allows, monkeypatch):
    shell = SimpleNamespace(kernel=kernel)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert Environment.detect() == Environment(in_kernel=True, allows_stdin=allows)


class Terminal(io.StringIO):
    def __init__(self, fileno=None, tty=True):
        super().__init__()
        self._fileno, self._tty = fileno, tty

    def isatty(self):
        return self._tty

    def fileno(self):
        if self._fileno is None:
            raise OSError
        return self._fileno


@pytest.mark.parametrize("ipython", [None, SimpleNamespace(get_ipython=lambda: None), SimpleNamespace()])
@pytest.mark.parametrize(
    ("stdin", "foreground", "is_tty"),
    [
        (None, True, False),
        (Terminal(0, tty=False), True, False),
        (Terminal(0), True, True),
        (Terminal(0), False, False),
        (Terminal(None), True, False),
    ],
    ids=["none", "no tty", "tty", "background", "no file"],
)
def test_a_script_is_asked_on_its_terminal_only(stdin, foreground, is_tty, ipython, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr(os, "tcgetpgrp", lambda fd: os.getpgrp() if foreground else 1)
    assert Environment.detect() == Environment(is_tty=is_tty)


def test_a_closed_stdin_is_no_terminal(monkeypatch):
    stdin = Terminal(0)
    stdin.close()
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert not Environment.detect().can_prompt


def test_looking_imports_nothing():
    code = (
        "import sys; from daifu_ipy.frontends.choose import Environment; e = Environment.detect();"
        "print(e, sorted({'IPython', 'ipykernel', 'torch'} & sys.modules.keys()))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    assert shown.stdout == "Environment(in_kernel=False, allows_stdin=False, is_tty=False, has_panel=False) []\n"

"""A repair that can't be applied changes nothing, whatever shows that it can't: the manager is asked again."""

from __future__ import annotations

import pytest

from daifu_ipy import Pass, Repair, Surgery, repair_with, vaccinate
from daifu_ipy.engine.managers import settings
from tests.engine.modules import escaping

DEEP = "x = " + "-" * 4000 + "1"


def make():
    calls = []

    def fail_once():
        calls.append(len(calls))
        if len(calls) == 2:
            raise ValueError("once")

    @vaccinate
    def unit():
        total = 0
        for number in range(3):
            fail_once()
            total += number
        return total

    return unit


@pytest.mark.parametrize(
    "repair",
    [
        Surgery(DEEP),
        Surgery("def unit():\n    return '\ud800'\n"),
        Repair(actions=("\ud800",), then=Pass()),
    ],
    ids=["deeper than Python can parse", "half a character", "half a character in an action"],
)
def test_a_failing_repair_is_refused(repair):
    seen = []

    def manager(crash):
        seen.append(crash.refusal)
        return repair if len(seen) == 1 else Pass()

    with repair_with(manager):
        assert make()() == 3
    assert seen[0] is None
    assert seen[1]


def test_a_stop_while_it_is_applied_refuses_it(monkeypatch):
    seen = []

    def stopped(*arguments):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("daifu_ipy.engine.interception.plan_for", stopped)

    def manager(crash):
        seen.append(crash.refusal)
        return Pass() if len(seen) == 1 else Repair(actions=("1",), then=Pass())

    with repair_with(manager):
        assert make()() == 3
    assert seen == [None, "it was stopped"]


@pytest.mark.parametrize("raised", [RuntimeError("of the hook"), KeyboardInterrupt()])
@pytest.mark.parametrize("last", [True, False])
def test_who_fails_to_hear_of_it_undoes_nothing(raised, last):
    told = []

    def failing(*arguments):
        raise raised

    settings.on_closed.insert(len(settings.on_closed) if last else 0, failing)
    settings.on_closed.insert(0 if last else len(settings.on_closed), lambda *a: told.append(a[3]))
    with repair_with(lambda crash: Pass()):
        assert make()() == 3
    assert told == ["recovered"]


def test_the_same_failing_repair_twice_aborts():
    def run():
        with repair_with(lambda crash: Surgery(DEEP)):
            make()()

    error = escaping(run)
    assert type(error) is ValueError
    assert any("refused twice: " in note for note in error.__notes__)

"""Patience: what is done when nobody answers; no test waits for it."""

from __future__ import annotations

import threading

import pytest

from daifu_ipy import Pass, Repair, Skip, repair_with, vaccinate
from daifu_ipy.frontends.choose import Asker, Environment, choose
from daifu_ipy.frontends.patience import Patience, seconds_of
from tests.fakes import FakeCrash


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h", 7200),
        ("1h 30m", 5400),
        ("1h30min", 5400),
        ("45s", 45),
        ("1.5 h", 5400),
        ("90", 90),
        (2.5, 2.5),
        ("1d", 86400),
        (" 2 h ", 7200),
    ],
)
def test_durations(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "2 h x", "-1", 0, -5, "0s", float("nan"), float("inf"), True, None, "5y"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="expected a duration such as '2h'"):
        seconds_of(text)


class Timer:
    """A timer that runs out when the test says so."""

    made: list[Timer]

    def __init__(self, seconds, function):
        self.seconds, self.function = seconds, function
        self.state = "new"
        self.made.append(self)

    def start(self):
        self.state = "running"

    def cancel(self):
        self.state = "cancelled"


@pytest.fixture
def timers():
    Timer.made = []
    return Timer.made


def ask(answer, *, yields=True, crash=None, shown=None):
    panel = Asker("panel", lambda environment: True, answer, yields)
    patience = Patience(5, Repair(then=Skip()), Timer)
    show = (shown if shown is not None else []).append
    return choose(crash or FakeCrash(), environment=Environment(), askers=[panel], show=show, patience=patience)


def test_an_answer_in_time_ends_it(timers):
    assert ask(lambda crash: Repair()) == Repair()
    assert [(timer.seconds, timer.state) for timer in timers] == [(5, "cancelled")]


def test_it_is_not_asked_where_it_could_not_be_heard(timers):
    ask(lambda crash: Repair(), yields=False)
    assert timers == []


def test_a_front_end_that_waits_gets_the_fallback(timers):
    shown = []

    @vaccinate
    def unit():
        1 / 0
        return 5

    def wait(crash):
        timers[0].function()
        return crash.wait()

    with repair_with(lambda crash: ask(wait, crash=crash, shown=shown)):
        assert unit() == 5
    assert shown == ["daifu: nobody answered within 5 s: skip"]


def test_an_answer_that_came_is_never_replaced(timers):
    crash, shown = FakeCrash(), []
    crash.decide(Repair(then=Pass()))

    def late(crash):
        timers[0].function()
        return crash.decision

    assert ask(late, crash=crash, shown=shown) == Repair(then=Pass())
    assert shown == []


def test_the_real_timer_keeps_no_process_alive():
    before = set(threading.enumerate())
    with Patience(3600).with_(FakeCrash(), print):
        (timer,) = set(threading.enumerate()) - before
        assert timer.daemon
    timer.join()

"""`expect_recovers` itself: what is wrong is found, and the report says how to see it again."""

from __future__ import annotations

import linecache

import pytest

import daifu_ipy
from daifu_ipy import Abort, Break, Continue, Pass, Repair, Return, Skip
from daifu_ipy.testing import InjectedCrash, expect_aborts, expect_recovers


def fault(source, **options):
    with pytest.raises(AssertionError) as caught:
        expect_recovers(source, **options)
    return str(caught.value)


def test_a_lost_effect_is_found_and_reported():
    report = fault("x = 1\nlog(x)", repair=Skip())
    assert "   5   log(x)" in report
    assert "\n- 1\n" in report
    assert report.endswith(r"once more: expect_recovers('x = 1\nlog(x)', repair=Skip(), crash_at=3)")


def test_the_report_reproduces_the_fault():
    report = fault("for i in it([1, 2]):\n log(i)", repair=Skip())
    assert "3 " in report
    with pytest.raises(AssertionError) as caught:
        eval(report.rpartition("once more: ")[2])
    assert str(caught.value).splitlines()[-2:] == report.splitlines()[-2:]


def test_an_escaping_exception_is_found():
    assert "+ -- raised: InjectedCrash" in fault("log(1)", repair=Abort())


def test_a_repeated_effect_is_found():
    assert "\n+ 1\n" in fault("log(log(1))", crash_at=3)


def test_a_wrong_local_is_found():
    assert "+ locals: x=2" in fault("x = 1\nt(x)", crash_at=2, repair=Repair(actions=("x = 2",)))


def test_a_leaked_global_is_found():
    report = fault("t(1)", crash_at=1, repair=Repair(actions=("globals()['leak'] = 1",)))
    assert "leak=1" in report


def test_a_crash_that_nothing_intercepts_is_a_fault(monkeypatch):
    monkeypatch.setattr(daifu_ipy, "vaccinate", lambda fn, *, strict=False: fn)
    assert "1 interceptions expected, 0 made" in fault("log(1)", crash_at=1)
    with pytest.raises(AssertionError, match="1 interceptions expected, 0 made"):
        expect_aborts("log(1)")


def test_a_point_that_is_not_reached_is_a_fault():
    assert "there are only 3 crash points" in fault("log(1)", crash_at=5)


def test_a_program_without_points_is_refused():
    with pytest.raises(ValueError, match="no crash point"):
        expect_recovers("def f(): pass", kind="module", call="5")


@pytest.mark.parametrize("repair", [Pass(), Skip(), Repair(), Repair(actions=("1 + 1",))])
def test_a_skipped_probe_leaves_no_trace(repair):
    expect_recovers("for i in it([1, 2]):\n with cm(i):\n  log(i)", points="statements", repair=repair)


def test_a_repair_may_be_compared_with_another_program():
    loop = "for i in it([1, 2]):\n log(i)"
    expect_recovers(loop, crash_at=5, repair=Break(), like="for i in it([1, 2]):\n break")
    expect_recovers(loop, crash_at=5, repair=Continue(), like="for i in it([1, 2]):\n if i > 1: log(i)")
    expect_recovers(loop, crash_at=5, repair=Return("i + 4"), like="for i in it([1]): return 5")


def test_the_same_text_runs_in_both_cases():
    expect_recovers("import sys, linecache\nx = sys._getframe().f_lineno\nlog(x)\ndel sys, linecache")
    assert not [name for name in linecache.cache if name.startswith("<program ")]


def test_handlers_for_exception_let_the_injected_crash_pass():
    assert not issubclass(InjectedCrash, Exception)
    expect_recovers("try:\n log(1)\nexcept Exception:\n log('no')")

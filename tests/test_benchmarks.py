"""The benchmarks' programs do the same plain, vaccinated and recovered, and missed goals fail. Nothing here is timed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import daifu_ipy

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import measure
import overhead
import recovery
from measure import Figure, conclude

sys.path.pop(0)


@pytest.mark.parametrize("row", overhead.ROWS, ids=lambda row: row.name)
def test_a_row_computes_the_same(row):
    with daifu_ipy.repair_with(overhead.asked):
        assert row.result(True, 7) == row.result(False, 7)


def test_rows_have_names_of_their_own():
    assert len({row.name for row in overhead.ROWS}) == len(overhead.ROWS)


def test_a_row_is_measured(monkeypatch, capsys):
    monkeypatch.setattr(measure, "RUN_SECONDS", 1e-6)
    monkeypatch.setattr(measure, "ROUNDS", 2)
    with daifu_ipy.repair_with(overhead.asked):
        figure = overhead.measured(overhead.ROWS[0], 1)
    assert figure.value > 0
    assert overhead.ROWS[0].name in capsys.readouterr().out


@pytest.mark.parametrize("lines", [recovery.SMALL, recovery.LARGE])
@pytest.mark.parametrize("number", range(8))
def test_a_unit_recovers(lines, number):
    text = recovery.unit(lines, number)
    assert text.count("\n") == lines
    namespace = measure.program(text, "unit")
    expected = namespace["run"](recovery.Probe())
    measure.protect(namespace, ["run"])
    probe = recovery.Probe(armed=number % 4)
    with daifu_ipy.repair_with(recovery.passes):
        assert namespace["run"](probe) == expected
    assert len(probe.seconds) == 1


@pytest.mark.parametrize("measured", [recovery.first_time, recovery.other_location, recovery.known_location])
def test_recoveries_are_counted(measured):
    probe = recovery.Probe()
    with daifu_ipy.repair_with(recovery.passes):
        measured(recovery.SMALL, probe, 3)
    assert len(probe.seconds) == 3


def test_many_recoveries_in_one_call():
    probe = recovery.Probe()
    with daifu_ipy.repair_with(recovery.passes):
        assert recovery.many(probe, 30) == sum(range(30))
        deeper, _, _ = recovery.steadiness(30)
    assert len(probe.seconds) == 30
    assert deeper == 0


@pytest.mark.parametrize(
    ("figures", "status", "last"),
    [
        ([Figure("a", 1.0, 1.01), Figure("b", 1.0, 1.05)], 0, "deciding: a: 1.000, goal at most 1.01: all 2 goals met"),
        ([Figure("a", 1.2, 1.01), Figure("b", 1.0, 2)], 1, "deciding: a: 1.200, goal at most 1.01: 1 of 2 goals missed"),
        ([Figure("a", 1.02, 1.01, in_noise=True)], 0, "deciding: a: 1.020, goal at most 1.01: all 1 goals met"),
        ([Figure("a", 1.0, 1.01, void=True)], 1, "deciding: a: 1.000, goal at most 1.01: 1 of 1 goals missed"),
        ([Figure("a", 2, 0, digits=0)], 1, "deciding: a: 2, goal at most 0: 1 of 1 goals missed"),
        ([Figure("a", 9.0, None), Figure("b", 0.1, 0.2, " ms")], 0, "deciding: b: 0.100 ms, goal at most 0.2 ms: all 1 goals met"),
        ([Figure("a", 9.0, None)], 1, "deciding: none of these has a goal"),
    ],
)  # fmt: skip
def test_a_missed_goal_fails_and_the_deciding_figure_comes_last(figures, status, last, capsys):
    assert conclude(figures) == status
    assert capsys.readouterr().out.splitlines()[-1] == last

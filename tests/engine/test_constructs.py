"""Every statement kind in every kind of unit recovers, crashed at each point; small ones at each pair, too."""

from __future__ import annotations

import sys

import pytest

from daifu_ipy.testing import expect_recovers
from tests.engine import programs

DRIVEN = {
    "generator": programs.GENERATORS,
    "coroutine": programs.COROUTINES,
    "async generator": programs.ASYNC_GENERATORS,
}
OTHER_UNITS = {"generator": "yield 0\n", "coroutine": "", "async generator": "yield 0\n", "notebook cell": ""}
COMPOUND = {
    name: row
    for name, row in programs.SMALL.items()
    if name.startswith(("for", "while", "with", "try", "match", "raise"))
}


def rows(table):
    return [pytest.param(*(row if isinstance(row, tuple) else [row]), id=name) for name, row in table.items()]


def driven_rows():
    return [
        pytest.param(kind, *row, id=f"{kind}-{name}") for kind, table in DRIVEN.items() for name, row in table.items()
    ]


@pytest.mark.parametrize("source", rows(programs.SMALL))
def test_function_at_every_pair(source):
    expect_recovers(source, pairs=True)


@pytest.mark.parametrize("source", rows(programs.LARGER | programs.JUMPS))
def test_function(source):
    expect_recovers(source)


@pytest.mark.parametrize("source", rows(programs.METHODS))
def test_method(source):
    expect_recovers(source, kind="method", pairs=True)


@pytest.mark.parametrize(("kind", "source", "drive"), driven_rows())
def test_driven(kind, source, drive):
    expect_recovers(source, kind=kind, drive=drive)


@pytest.mark.parametrize("source", rows(programs.CELLS))
def test_notebook_cell(source):
    expect_recovers(source, kind="notebook cell")


@pytest.mark.parametrize(("source", "unit"), rows(programs.MODULES))
def test_module(source, unit):
    expect_recovers(source, kind="module", **unit)


@pytest.mark.parametrize(("source", "unit"), rows(programs.UNDECIDED))
def test_what_nobody_can_decide_beforehand(source, unit):
    expect_recovers(source, intercept="unhandled", **unit)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
@pytest.mark.parametrize(("source", "unit"), rows(programs.TYPE_PARAMETERS))
def test_type_parameters(source, unit):
    expect_recovers(source, kind="module", **unit)


@pytest.mark.parametrize("kind", OTHER_UNITS)
@pytest.mark.parametrize("source", rows(COMPOUND))
def test_in_other_units(source, kind):
    # what an except* clause raises leaves it inside a group: whether a caller's `except X` takes it is undecidable
    expect_recovers(OTHER_UNITS[kind] + source, kind=kind, intercept="unhandled" if "except*" in source else "auto")


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("source", rows(programs.LARGER | programs.JUMPS))
def test_larger_function_at_every_pair(source):
    expect_recovers(source, pairs=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "source", "drive"), driven_rows())
def test_driven_at_every_pair(kind, source, drive):
    expect_recovers(source, kind=kind, drive=drive, pairs=True)


def test_a_handled_exception_does_not_pin_what_its_unfinished_procedure_held():
    """The second crash leaves an unfinished procedure, whose frame the handled exception's traceback keeps."""
    expect_recovers(
        "try:\n x = obj('a')\n boom(ValueError(1))\nexcept ValueError:\n x = None\n log('handler')\nlog('after')",
        crash_at=(1, 7),
    )

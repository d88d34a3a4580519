"""Abort, for every statement kind and kind of unit: the exception goes on as if never intercepted."""

from __future__ import annotations

import sys

import pytest

from daifu_ipy.testing import expect_aborts
from tests.engine import programs
from tests.engine.test_constructs import driven_rows, rows

FUNCTIONS = programs.SMALL | programs.LARGER | programs.JUMPS
if sys.version_info < (3, 13):  # there a traceback names the line of `with`, not that of the item (docs/semantics.md)
    FUNCTIONS = {name: source for name, source in FUNCTIONS.items() if name != "with-parenthesised"}


@pytest.mark.parametrize("source", rows(FUNCTIONS))
def test_function(source):
    expect_aborts(source)


@pytest.mark.parametrize("source", rows(programs.METHODS))
def test_method(source):
    expect_aborts(source, kind="method")


@pytest.mark.parametrize(("kind", "source", "drive"), driven_rows())
def test_driven(kind, source, drive):
    expect_aborts(source, kind=kind, drive=drive)


@pytest.mark.parametrize("source", rows(programs.CELLS))
def test_notebook_cell(source):
    expect_aborts(source, kind="notebook cell")


@pytest.mark.parametrize(("source", "unit"), rows(programs.MODULES))
def test_module(source, unit):
    expect_aborts(source, kind="module", **unit)


@pytest.mark.parametrize(("source", "unit"), rows(programs.UNDECIDED))
def test_what_nobody_can_decide_beforehand(source, unit):
    expect_aborts(source, intercept="unhandled", **unit)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
@pytest.mark.parametrize(("source", "unit"), rows(programs.TYPE_PARAMETERS))
def test_type_parameters(source, unit):
    expect_aborts(source, kind="module", **unit)

"""What humans call a place in code: ``Cell In[3], line 5``, ``train, line 12``."""

from __future__ import annotations

from collections.abc import Callable

from daifu_ipy.repair.view import RestartView

labels: list[Callable[[str], str | None]] = []
"""Front ends add here what they call a file; None for files that are not theirs."""


def label(filename: str) -> str | None:
    """What a front end calls a file."""
    return next((name for call in labels if (name := call(filename)) is not None), None)


def place(restart: RestartView) -> str:
    """Where a crash is: the unit, or the notebook cell, and the line."""
    cell = label(getattr(restart, "filename", ""))
    unit = (cell or "the cell") if restart.unit == "<module>" else restart.unit
    return f"{unit}, line {restart.line}"

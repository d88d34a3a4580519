"""What humans call a place in code: ``Cell In[3], line 5``, ``train, line 12``."""

from __future__ import annotations

from collections.abc import Callable

from daifu_ipy.engine.documents import name_of, namers
from daifu_ipy.engine.versions import version_of
from daifu_ipy.repair.view import RestartView

labels: list[Callable[[str], str | None]] = []
"""Front ends add here what they call a file; None for files that are not theirs."""


def label(filename: str) -> str | None:
    """What a front end calls a file: ``Cell In[3]``, ``surgery 2 of Cell In[3]``."""
    version = version_of(filename)
    if version is not None:
        return f"surgery {version.number} of {name_of(version.file)}"
    return next((name for call in labels if (name := call(filename)) is not None), None)


def place(restart: RestartView) -> str:
    """Where a crash is: the unit, or the notebook cell, and the line."""
    filename = getattr(restart, "filename", "")
    version = version_of(filename)
    if restart.unit == "<module>":
        unit = label(filename) or "the cell"
    else:
        unit = restart.unit if version is None else f"{restart.unit} (surgery {version.number})"
    return f"{unit}, line {restart.line}"


namers.append(label)

"""A protected cell's variables for tools that look at its frame: it is a function, its variables are the notebook's."""

from __future__ import annotations

import pdb
import sys
from types import FrameType
from typing import Any

from daifu_ipy.engine.interception import barrier_in


def variables_of(frame: FrameType) -> Any:
    """What ``frame.f_locals`` is natively."""
    barrier = barrier_in(frame.f_code)
    return barrier.namespace if barrier is not None and barrier.unit.is_notebook_cell else frame.f_locals


def local_scope(stack_depth: int) -> Any:
    """The variables where a magic is called; stands in for the shell's method: ``%time x = f()`` binds ``x`` there."""
    return variables_of(sys._getframe(stack_depth + 1))


def _get(debugger: pdb.Pdb) -> Any:
    return debugger.__dict__["curframe_locals"]


def _set(debugger: pdb.Pdb, value: Any) -> None:
    frame = debugger.curframe
    if frame is not None and (value is frame.f_locals or type(value) is not dict):  # 3.13: a proxy, new each time
        value = variables_of(frame)
    debugger.__dict__["curframe_locals"] = value


def teach_pdb() -> None:
    """Let debuggers assign the variables of protected cells."""
    pdb.Pdb.curframe_locals = property(_get, _set)  # type: ignore[assignment]


def forget_pdb() -> None:
    """Undo that."""
    if "curframe_locals" in pdb.Pdb.__dict__:
        del pdb.Pdb.curframe_locals

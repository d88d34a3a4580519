"""Live frames: writing their variables, and letting go of the copies that looking at them leaves behind."""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import Any

WRITES_THROUGH = sys.version_info >= (3, 13)
"""``frame.f_locals`` is the frame itself (PEP 667), not a copy."""

OWN_REFERENCES = 3
"""To a frame's copy of its variables that nobody else holds: the frame's, `forget`'s, and the call's."""


def forget(frame: FrameType) -> None:
    """Until Python 3.12 a frame whose variables were looked at keeps a copy: empty it, unless the user holds it."""
    if not WRITES_THROUGH and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        copied = frame.f_locals
        if sys.getrefcount(copied) <= OWN_REFERENCES:
            code = frame.f_code
            for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
                copied.pop(name, None)  # what `exec` has left there stays


def look(frame: FrameType, name: str, default: Any = None) -> Any:
    """The value of one variable of a frame, or `default` if it is unbound; no copy is left behind."""
    value = frame.f_locals.get(name, default)
    forget(frame)
    return value


def entry_of(exception: BaseException, frame: FrameType) -> TracebackType | None:
    """The traceback entry that says where `frame` was."""
    entry = exception.__traceback__
    while entry is not None and entry.tb_frame is not frame:
        entry = entry.tb_next
    return entry


def write(frame: FrameType, changes: Mapping[str, Any]) -> None:
    """Give variables of a waiting frame new values, shared ones too. None is unbound by it."""
    variables: Any = frame.f_locals
    variables.update(changes)
    if not WRITES_THROUGH:
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))

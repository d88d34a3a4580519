"""Live frames: writing their variables, and letting go of the copies that looking at them leaves behind."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

WRITES_THROUGH = sys.version_info >= (3, 13)
"""``frame.f_locals`` is the frame itself (PEP 667), not a copy."""

OWN_REFERENCES = 3
"""To a frame's copy of its variables that nobody else holds: the frame's, `forget`'s, and the call's."""


def forget(frame: FrameType) -> None:
    """Until Python 3.12 a frame whose variables were looked at keeps a copy: empty it, unless the user holds it."""
    if not WRITES_THROUGH:
        copied = frame.f_locals
        if sys.getrefcount(copied) <= OWN_REFERENCES:
            copied.clear()


def write(frame: FrameType, changes: Mapping[str, Any]) -> None:
    """Give variables of a waiting frame new values, shared ones too. None is unbound by it."""
    variables: Any = frame.f_locals
    variables.update(changes)
    if not WRITES_THROUGH:
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))

"""Whether a stream is a terminal, and how wide that is; a program may have put any object in its place."""

from __future__ import annotations

import contextlib
import shutil
import sys
from typing import Any

_WIDTH = 100


def is_tty(stream: Any) -> bool:
    """Whether a stream is a terminal; one that can't say is none."""
    with contextlib.suppress(Exception):
        return bool(stream.isatty())
    return False


def terminal_width() -> int:
    """The most characters of a line on the terminal, within bounds; 100 without one."""
    if not is_tty(sys.stdout):
        return _WIDTH
    return min(max(shutil.get_terminal_size((_WIDTH, 24)).columns - 1, 60), 140)

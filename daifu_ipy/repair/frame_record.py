"""One frame of a stack as plain data: it keeps nothing of the run alive, and goes through JSON."""

from __future__ import annotations

import dataclasses
import functools
import os
import sysconfig
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FrameRecord:
    """One frame of a stack, in text only.

    Parameters
    ----------
    filename, line, function
        Where it executes.
    source
        The executing line.
    variables
        Names, attributes and items on the executing statement, and summaries of their values.
    context
        Lines around the executing node, with their numbers; what indents all of them is left out.
    library
        Whether it is code of an installed package or of Python itself: then there are no variables and no context.
    executing
        The text of the executing node, in one line; empty if it is not known.
    marks
        Where that node is in `context`: line, and first and last column in characters. None if it is all of a line.
    left_out
        How many frames are left out before this one.
    recursion
        Whether those are the same as the ones before them, again and again.
    note
        Why there is no source, if there should be.
    """

    filename: str
    line: int
    function: str
    source: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    context: tuple[tuple[int, str], ...] = ()
    library: bool = False
    executing: str = ""
    marks: tuple[tuple[int, int, int], ...] = ()
    left_out: int = 0
    recursion: bool = False
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The record as JSON knows it."""
        return dataclasses.asdict(self)

    @property
    def short_filename(self) -> str:
        """The file, from the folder of its package or from the working folder."""
        root = library_root(self.filename)
        return self.filename.removeprefix(root if root is not None else os.getcwd() + os.sep)


def is_library(filename: str) -> bool:
    """Whether a file is of an installed package or of Python itself."""
    return filename.startswith("<frozen ") or library_root(filename) is not None


@functools.lru_cache(maxsize=1024)
def library_root(filename: str) -> str | None:
    """The folder of the standard library or of installed packages that a file lies in."""
    for name in ("site-packages", "dist-packages"):
        head, found, _ = filename.rpartition(f"{os.sep}{name}{os.sep}")
        if found:
            return f"{head}{found}"
    paths = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    return next((f"{path}{os.sep}" for path in paths if path and filename.startswith(f"{path}{os.sep}")), None)

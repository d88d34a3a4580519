"""Save first: what a crash still holds goes to a file before anything is tried.

Libraries say what can be saved of theirs, by adding a `Saver`; see `daifu_ipy.libraries.torch_state`.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from daifu_ipy.repair.summary import error_text
from daifu_ipy.repair.view import CrashView

if TYPE_CHECKING:
    from pathlib import Path

_MAX_LISTED = 12
_SUFFIX = ".pt"


@dataclass(frozen=True)
class Saved:
    """What became of saving; `str` is the report for a user.

    Parameters
    ----------
    path
        The file; None if there is none.
    saved
        What is in it, a line each.
    failed
        What is not, and why.
    notes
        What else is to be known, as how to load it.
    """

    path: str | None = None
    saved: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"saved to {self.path}:" if self.path else "nothing was saved"
        lines = [head, *(f"    {line}" for line in _some(self.saved)), *self.notes]
        problems = [f"{name}: {reason}" for name, reason in self.failed]
        return "\n".join([*lines, *(["not saved:"] if problems else []), *(f"    {line}" for line in _some(problems))])


Saver: TypeAlias = Callable[[CrashView, "Path"], Saved | None]
"""Writes what it knows of a crash to a new file; None if there is nothing of its library."""

savers: list[Saver] = []
"""What libraries have added; the first one that finds something saves."""


def save_first(crash: CrashView, path: str | os.PathLike[str] | None = None) -> Saved:
    """Save the state that a crash has left: models, optimizers, random number generators, loop counters.

    Parameters
    ----------
    crash
        A crash that waits for a repair; it goes on waiting.
    path
        A file that does not exist yet, or a directory; by default a new file in the working directory.

    Returns
    -------
    Saved
        Where it is, what is in it, what is not, and how to load it. Nothing is raised, and no file overwritten.
    """
    try:
        file = _new_file(crash, path)
    except (OSError, RuntimeError) as error:
        return Saved(failed=((str(path or "."), error_text(error)),))
    for saver in savers:
        try:
            saved = saver(crash, file)
        except Exception as error:  # of the library, or the disk: the crash goes on waiting
            return Saved(failed=((str(file), error_text(error)),))
        if saved is not None:
            return saved
    return Saved(notes=("no model, optimizer or the like was found in the crashed functions and their modules",))


def _new_file(crash: CrashView, path: str | os.PathLike[str] | None) -> Path:
    """The file to write; it does not exist.

    Raises
    ------
    FileExistsError
        The user named one that does.
    """
    from pathlib import Path

    wanted = Path.cwd() if path is None else Path(path).expanduser().absolute()
    if wanted.is_dir():
        unit = re.sub(r"\W+", "_", crash.restart.unit).strip("_")
        now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        stem = f"daifu-saved-{now}-{'cell' if unit == 'module' else unit}"[:100]
        names = (f"{stem}{number}{_SUFFIX}" for number in ("", *(f"-{n}" for n in range(2, 1000))))
        return next(wanted / name for name in names if not (wanted / name).exists())
    if wanted.exists():
        raise FileExistsError(f"{wanted} exists: choose another name")
    return wanted


def namespaces(crash: CrashView) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The variables of the crashed functions, innermost first, then those of their modules and of the notebook."""
    frames = crash.frames
    for frame in frames:
        if not frame.unit.is_notebook_cell:
            yield frame.unit.qualname, frame.view()
    seen: list[Mapping[str, Any]] = []
    for frame in frames:
        namespace = frame.barrier.namespace
        if not any(namespace is other for other in seen):
            seen.append(namespace)
            yield str(namespace.get("__name__", "module")), dict(namespace)


def _some(lines: list[str] | tuple[str, ...]) -> list[str]:
    more = [f"... {len(lines) - _MAX_LISTED} more"] if len(lines) > _MAX_LISTED else []
    return [*lines[:_MAX_LISTED], *more]

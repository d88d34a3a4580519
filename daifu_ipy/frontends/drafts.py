"""The text of a surgery while it is written: kept until it is applied, so that nothing typed is lost."""

from __future__ import annotations

import difflib
import inspect
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from daifu_ipy.engine.choices import Choice, Preview
from daifu_ipy.engine.crash import CrashFrame
from daifu_ipy.engine.native import barrier_in
from daifu_ipy.repair.summary import one_line

_MAX_DIFF = 200
_MAX_LINE = 160


def present_text(unit: CrashFrame | None, code: Any) -> str:
    """The text that stands in a frame, or in code, now; nothing where its source can't be found."""
    barrier = barrier_in(code) if unit is None and isinstance(code, CodeType) else None
    if unit is not None or barrier is not None:
        return (unit or barrier).unit.own_text  # type: ignore[union-attr]
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        return ""


def first_line(unit: CrashFrame | None, code: Any) -> int:
    """The line of its file at which the text starts."""
    if unit is None:
        return int(code.co_firstlineno)
    return 1 if unit.unit.is_notebook_cell else min(unit.unit.plain.co_firstlineno, unit.restart.line)


@dataclass
class Draft:
    """What the user has written last for code of this name, and the file of ours that it lies in."""

    name: str
    text: str | None = None
    path: str | None = None

    def keep(self) -> str:
        """Have it in a file that only its user can read; give the path."""
        if self.path is None:
            word = re.sub(r"\W+", "-", self.name).strip("-") or "cell"
            descriptor, self.path = tempfile.mkstemp(prefix=f"daifu-{word}-", suffix=".py")
            os.close(descriptor)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.text or "")
        return self.path

    def take(self, text: str) -> None:
        """Hold a text from elsewhere; the one before stays in its file."""
        if self.text not in (None, text):
            self.keep()
            self.path = None
        self.text = text

    def discard(self, *, keep_text: bool = False) -> None:
        """Remove the file; the text too, unless a repair that may be refused still needs it."""
        if self.path is not None:
            os.unlink(self.path)
        self.path = None
        self.text = self.text if keep_text else None


def read_draft(path: str) -> str:
    """The text of a file; a byte order mark and the line ends of other systems do not count.

    Raises
    ------
    OSError, UnicodeDecodeError
        If it can't be read.
    """
    with open(path, encoding="utf-8-sig") as file:
        return file.read()


def difference(old: str, new: str) -> list[str]:
    """What was changed, as a unified diff of bounded length."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "as it is", "your text", lineterm=""))
    shown = [line[:_MAX_LINE] for line in lines[:_MAX_DIFF]]
    return shown + [f"... {len(lines) - _MAX_DIFF} more lines"] * (len(lines) > _MAX_DIFF)


def preview_lines(preview: Preview) -> Iterator[str]:
    """Where a surgery would go on, why, and what runs again; then the same of each other choice."""
    chosen = next((c for c in preview.choices if (c.line, c.kind) == (preview.line, preview.kind)), None)
    yield f"goes on at line {preview.line}: {one_line(preview.statement, _MAX_LINE)}{_again(chosen)}"
    yield f"  because {preview.reason}"
    if preview.replaced:
        yield f"  new code for {', '.join(preview.replaced)}"
    for choice in preview.choices:
        if (choice.line, choice.kind) != (preview.line, preview.kind):
            text = f"{choice.restart_at}: line {choice.line}, {one_line(choice.statement, 60)}{_again(choice)}"
            yield f"  or {one_line(f'{text} ({choice.reason})', 300)}"


def _again(choice: Choice | None) -> str:
    return f"; runs again: {', '.join(choice.repeats)}" if choice is not None and choice.repeats else ""


_IN_NEW_TEXT = re.compile(
    r"(?:does not (?:parse|compile): |the edit in |goes on in )line (?P<a>\d+)"
    r"|\bline (?P<b>\d+)(?=, as chosen| of the new source| can't stand beside)"
    r"|\bon line (?P<c>\d+)$"
)
"""Where the engine names a line of the text that was typed; other lines are of the code that crashed."""


def line_in(reason: str) -> int | None:
    """The line of the new text that a refusal speaks of; None if it speaks of none."""
    found = _IN_NEW_TEXT.search(reason)
    return _number(found) if found else None


def counted_from(reason: str, first: int) -> str:
    """A reason with the lines of the new text counted as in its file, where it starts in line `first`."""

    def counted(found: re.Match[str]) -> str:
        return found[0].replace(f"line {_number(found)}", f"line {_number(found) + first - 1}")

    return _IN_NEW_TEXT.sub(counted, reason)


def _number(found: re.Match[str]) -> int:
    return int(next(filter(None, found.groups())))


def shown_line(reason: str, text: str) -> str | None:
    """The line of the text that a refusal speaks of."""
    lines = text.splitlines()
    number = line_in(reason) or 0
    return f"  line {number}: {lines[number - 1].strip()[:_MAX_LINE]}" if 0 < number <= len(lines) else None

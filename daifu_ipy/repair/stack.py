"""The annotated stack as text: user frames with source and values, library frames folded, all bounded."""

from __future__ import annotations

import functools
import linecache
import os
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from types import TracebackType
from typing import Any

from daifu_ipy.repair.places import label
from daifu_ipy.repair.statement import statement_values
from daifu_ipy.repair.summary import error_text, one_line, summarise

_HIDDEN = "@daifu_"
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MAX_LINE = 160
_MAX_CAUSES = 3
_FIRST_PARTS = 3


@dataclass(frozen=True)
class FrameRecord:
    """One frame of a stack, in text only: it keeps nothing of the run alive.

    Parameters
    ----------
    filename, line, function
        Where it executes.
    source
        The executing line.
    variables
        Name and summary of the variables on the executing statement.
    context
        Lines around the executing one, with their numbers.
    library
        Whether it is code of an installed package or of Python itself.
    """

    filename: str
    line: int
    function: str
    source: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    context: tuple[tuple[int, str], ...] = ()
    library: bool = False


def format_stack(subject: Any, *, context: int = 2, max_frames: int = 12, width: int = 120, limit: int = 8_000) -> str:
    """Show where an exception was raised and with which values.

    Parameters
    ----------
    subject
        An exception, a traceback, or a crash (its `exception`, `stack` and, for its unit, `namespace`).
    context
        How many source lines to show before and after the executing one.
    max_frames
        How many frames, or folded runs of library frames, to show; of more, those in the middle are left out.
    width
        The most characters of a value.
    limit
        The most characters of the whole text; of a longer one, lines in the middle are left out.
    """
    exception, entries, namespace = _parts(subject)
    if isinstance(entries, TracebackType):
        entries = record_frames(entries, context=context, width=width, namespace=namespace)
    lines = _frame_lines(list(entries), max_frames)
    lines += _error_lines(exception) if exception is not None else [str(getattr(subject, "summary", ""))]
    return _bounded(lines, limit)


def record_frames(
    traceback: TracebackType | None,
    *,
    context: int = 2,
    width: int = 120,
    namespace: Mapping[str, Any] | None = None,
    most: int = 60,
) -> list[FrameRecord]:
    """Turn a traceback into records; our own frames are left out, and those in the middle of a very deep one.

    `namespace`, if given, stands for the variables of the first frame, which actions may have changed.
    """
    entries = list(_walk(traceback))
    if len(entries) > most:
        entries = entries[: most // 3] + entries[most // 3 - most :]
    return [
        _record(entry, context, width, number == 0, namespace if number == 0 else None)
        for number, entry in enumerate(entries)
    ]


def _parts(subject: Any) -> tuple[BaseException | None, Any, Mapping[str, Any] | None]:
    """The exception, its traceback or records, and the first frame's variables if known better."""
    if isinstance(subject, BaseException):
        return subject, subject.__traceback__ or (), None
    if isinstance(subject, TracebackType):
        return None, subject, None
    entries = subject.stack
    if entries is None and subject.exception is not None:
        entries = subject.exception.__traceback__
    return subject.exception, entries or (), getattr(subject, "namespace", None)


def _walk(entry: TracebackType | None) -> Iterator[TracebackType]:
    while entry is not None:
        code = entry.tb_frame.f_code
        if not code.co_filename.startswith(_OURS) and not code.co_name.startswith(_HIDDEN):
            yield entry
        entry = entry.tb_next


def _record(
    entry: TracebackType, context: int, width: int, first: bool, namespace: Mapping[str, Any] | None
) -> FrameRecord:
    frame = entry.tb_frame
    code, line = frame.f_code, entry.tb_lineno or 0
    library = not first and _is_library(code.co_filename)
    source = _clean(linecache.getline(code.co_filename, line, frame.f_globals)).strip()
    if library:
        return FrameRecord(code.co_filename, line, code.co_qualname, source, library=True)
    local = dict(frame.f_locals) if namespace is None else namespace
    values = statement_values(code.co_filename, _position(entry), local, frame.f_globals)
    shown = tuple((name, summarise(value, width)) for name, value in values)
    around = _context(code.co_filename, line, context)
    return FrameRecord(code.co_filename, line, code.co_qualname, source, shown, around)


def _position(entry: TracebackType) -> tuple[int, int]:
    """Line and column of the instruction, so that two statements on one line are told apart."""
    positions = islice(entry.tb_frame.f_code.co_positions(), max(entry.tb_lasti, 0) // 2, None)
    line, _, column, _ = next(positions, (None, None, None, None))
    return (entry.tb_lineno or 0, 0) if line is None or column is None else (line, column)


def _context(filename: str, line: int, size: int) -> tuple[tuple[int, str], ...]:
    lines = linecache.getlines(filename)
    numbers = range(max(line - size, 1), min(line + size, len(lines)) + 1)
    return tuple((number, _clean(lines[number - 1])) for number in numbers)


def _clean(line: str) -> str:
    text = line.rstrip().expandtabs()[:_MAX_LINE]
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


@functools.lru_cache(maxsize=1024)
def _is_library(filename: str) -> bool:
    return filename.startswith("<frozen ") or _library_root(filename) is not None


def _library_root(filename: str) -> str | None:
    """The folder of the standard library or of installed packages that a file lies in."""
    for name in ("site-packages", "dist-packages"):
        head, found, _ = filename.rpartition(f"{os.sep}{name}{os.sep}")
        if found:
            return f"{head}{found}"
    paths = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    return next((f"{path}{os.sep}" for path in paths if path and filename.startswith(f"{path}{os.sep}")), None)


def _short(filename: str) -> str:
    root = _library_root(filename)
    here = os.getcwd() + os.sep
    return filename.removeprefix(root) if root is not None else filename.removeprefix(here)


def _place(record: Any) -> str:
    cell = label(record.filename)
    if cell is None:
        return f"{record.function}, {_short(record.filename)}:{record.line}"
    return (
        f"{cell}, line {record.line}"
        if record.function == "<module>"
        else f"{record.function}, {cell}, line {record.line}"
    )


def _frame_lines(records: list[Any], max_frames: int) -> list[str]:
    blocks: list[list[str]] = []
    for library, group in groupby(records, _library):
        run = list(group)
        blocks += [_folded(run)] if library else [_shown(record) for record in run]
    if len(blocks) > max_frames:
        first = min(_FIRST_PARTS, max_frames - 1)
        left_out = len(blocks) - max_frames
        blocks[first : first + left_out] = [[f"    ... {left_out} frames left out"]]
    return [line for block in blocks for line in block]


def _library(record: Any) -> bool:
    return bool(getattr(record, "library", False))


def _folded(run: list[Any]) -> list[str]:
    last = run[-1]
    place = f"{_short(last.filename)}:{last.line} in {last.function}"
    count = f"{len(run)} library frames, the last:" if len(run) > 1 else "library frame:"
    return [f"    ... {one_line(f'{count} {place}', _MAX_LINE)}"]


def _shown(record: Any) -> list[str]:
    lines = [one_line(_place(record), _MAX_LINE)]
    for number, text in getattr(record, "context", ()) or ((record.line, record.source),):
        lines.append(f"{'->' if number == record.line else '  '} {number:>5} | {text}".rstrip())
    return lines + [f"           {name} = {value}" for name, value in _pairs(record.variables)]


def _pairs(variables: Any) -> Iterable[tuple[str, str]]:
    pairs = variables.items() if isinstance(variables, Mapping) else variables
    return [(name, value) for name, value in pairs if not name.startswith(_HIDDEN)]


def _error_lines(error: BaseException) -> Iterator[str]:
    yield error_text(error)
    notes = getattr(error, "__notes__", ())
    for note in notes[:_MAX_CAUSES] if isinstance(notes, list) else ():
        yield f"  {one_line(note, _MAX_LINE) if isinstance(note, str) else summarise(note, _MAX_LINE)}"
    for _ in range(_MAX_CAUSES):
        caused = error.__cause__
        if caused is None and (error.__context__ is None or error.__suppress_context__):
            return
        word, error = ("caused by", caused) if caused is not None else ("while handling", _context_of(error))
        yield f"  {word} {error_text(error, _MAX_LINE)}"


def _context_of(error: BaseException) -> BaseException:
    return error if error.__context__ is None else error.__context__


def _bounded(lines: list[str], limit: int) -> str:
    text = "\n".join(lines)
    if len(text) <= limit:
        return text
    half = max(limit // 2 - 20, 0)
    head, tail = text[:half].rpartition("\n")[0], text[len(text) - half :].partition("\n")[2]
    return f"{head}\n    ... (cut)\n{tail}"

"""The annotated stack as text: user frames with source and values, library frames folded, all bounded."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from types import TracebackType
from typing import Any

from daifu_ipy.repair.builtin_values import vars_of
from daifu_ipy.repair.deadline import one_budget
from daifu_ipy.repair.frame_record import FrameRecord, is_library
from daifu_ipy.repair.largest import is_out_of_memory, largest_tensors
from daifu_ipy.repair.places import label
from daifu_ipy.repair.recording import record_frames, user_entries
from daifu_ipy.repair.recursion import kept_of
from daifu_ipy.repair.summary import error_text, one_line, printable, raw_message, summarise, type_name
from daifu_ipy.repair.terminals import terminal_width

__all__ = ["FrameRecord", "format_stack", "record_frames"]

_HIDDEN = "@daifu_"
_MAX_STATEMENT = 100
_FIRST_PARTS = 3
_MAX_CAUSES = 3
_MAX_MESSAGE = 2_000
_MAX_MESSAGE_LINES = 8
_INDENT = " " * 10


def format_stack(
    subject: Any, *, context: int = 2, max_frames: int = 12, width: int | None = None, limit: int = 8_000
) -> str:
    """Show where an exception was raised and with which values; what matters most comes last.

    Parameters
    ----------
    subject
        An exception, a traceback, or a crash (its `exception`, `stack` and, for its unit, `namespace`).
    context
        How many lines of source to show before the executing node; after it, half as many.
    max_frames
        How many frames, or folded runs of library frames, to show; of more, those in the middle are left out.
    width
        The most characters of a line; by default the terminal's, or 100.
    limit
        The most characters of the whole text; of a longer one, lines in the middle are left out.

    Notes
    -----
    Where memory ran out, the largest tensors in the variables of the frames are listed, too.
    """
    width = terminal_width() if width is None else width
    exception, entries, namespace = _parts(subject)
    crash = None if isinstance(subject, (BaseException, TracebackType)) else subject
    traceback = entries if isinstance(entries, TracebackType) else None
    with one_budget():
        if traceback is not None:
            entries = record_frames(traceback, context=context, width=width, namespace=namespace, most=3 * max_frames)
        records = list(entries)
        lines = _frame_lines([*_outer_records(crash), *records], max_frames, width)
        if exception is not None and is_out_of_memory(exception):
            lines += largest_tensors(_namespaces(traceback, namespace), width)
        lines += _loop_line(crash, {name for record in records[:1] for name, _ in record.variables}, width)
        lines += _error_lines(exception, width) if exception is not None else [str(getattr(crash, "summary", ""))]
    return _bounded(lines, limit)


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


def _namespaces(entry: TracebackType | None, first: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """The variables of the frames, innermost first, and of their modules."""
    frames = [entry.tb_frame for entry in user_entries(entry)]
    for frame in frames[:0:-1]:
        yield dict(frame.f_locals)
    if first is not None or frames:
        yield first if first is not None else dict(frames[0].f_locals)
    yield from {id(frame.f_globals): frame.f_globals for frame in frames}.values()


def _frame_lines(records: list[FrameRecord], max_frames: int, width: int) -> list[str]:
    blocks: list[list[str]] = []
    for library, group in groupby(records, attrgetter("library")):
        run = list(group)
        blocks += [_folded(run, width)] if library else [_shown(record, width) for record in run]
    if len(blocks) > max_frames:
        first = min(_FIRST_PARTS, max_frames - 1)
        left_out = len(blocks) - max_frames
        blocks[first : first + left_out] = [[f"    ... {left_out} frames left out"]]
    return [line for block in blocks for line in block]


def _folded(run: list[FrameRecord], width: int) -> list[str]:
    last = run[-1]
    number = sum(1 + record.left_out for record in run)
    count = f"{number} library frames, the last:" if number > 1 else "library frame:"
    lines = [f"    ... {count} {last.function}, {last.short_filename}:{last.line}"]
    lines += [f"{_INDENT}{last.source}"] * bool(last.source)
    return [_fitted(line, width) for line in lines]


def _shown(record: FrameRecord, width: int) -> list[str]:
    lines = [_left_out(record)] if record.left_out else []
    note = f" ({record.note})" if record.note else ""
    lines.append(_fitted(f"{_place(record)}{note}", width))
    context = record.context or ([(record.line, record.source)] if record.source else ())
    for number, text in context:
        lines.append(f"{'->' if number == record.line else '  '} {number:>4} | {text}".rstrip())
        lines += [_marked(text, start, end) for line, start, end in record.marks if line == number]
    shown = [(name, value) for name, value in record.variables if not name.startswith(_HIDDEN)]
    return lines + [_fitted(f"{_INDENT}{name} = {value}", width) for name, value in shown]


def _left_out(record: FrameRecord) -> str:
    return (
        f"    ... the same {record.left_out} frames more"
        if record.recursion
        else (f"    ... {record.left_out} frames left out")
    )


def _marked(text: str, start: int, end: int) -> str:
    return f"{_INDENT}{' ' * _columns(text[:start])}{'^' * _columns(text[start:end])}"


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _place(record: FrameRecord) -> str:
    cell = label(record.filename)
    if cell is None:
        return f"{record.function}, {record.short_filename}:{record.line}"
    unit = "" if record.function == "<module>" else f"{record.function}, "
    return f"{unit}{cell}, line {record.line}"


def _outer_records(crash: Any) -> list[FrameRecord]:
    """The protected callers of a crash's unit, outermost first, each with the state of its loops."""
    frames = list(getattr(crash, "frames", ()))[:0:-1]
    kept = kept_of([(frame.restart.filename, frame.restart.line, frame.restart.unit) for frame in frames])
    return [_outer_record(frames[index], left_out) for index, left_out in kept]


def _outer_record(frame: Any, left_out: int) -> FrameRecord:
    at = frame.restart
    source = one_line(at.statement.partition("\n")[0], _MAX_STATEMENT)
    targets = tuple(_loop_targets(frame))
    return FrameRecord(at.filename, at.line, at.unit, source, targets, left_out=left_out, recursion=left_out > 0)


def _loop_targets(at: Any) -> Iterator[tuple[str, str]]:
    """The variables of the loops around a place, innermost loop last."""
    for loop in getattr(at, "progress", ()):
        yield from ((name, summarise(value, 60)) for name, value in loop.target.items())


def _loop_line(crash: Any, shown: set[str], width: int) -> list[str]:
    """Where the loops of the crashed unit stand, as far as its statement does not show it."""
    parts = [f"{name} = {text}" for name, text in _loop_targets(crash) if name not in shown]
    return [_fitted(f"in the loop: {', '.join(parts)}", width)] if parts else []


def _error_lines(error: BaseException, width: int) -> Iterator[str]:
    yield from _message_lines(type_name(type(error)), raw_message(error, _MAX_MESSAGE), width)
    notes = vars_of(error).get("__notes__")  # asking the error might run its code
    for note in notes[:_MAX_CAUSES] if isinstance(notes, list) else ():
        yield f"  {one_line(note, width) if isinstance(note, str) else summarise(note, width)}"
    if isinstance(error, BaseExceptionGroup):
        yield from (
            f"  in it {error_text(inner, width - 8)}{_where(inner)}" for inner in error.exceptions[:_MAX_CAUSES]
        )
    for _ in range(_MAX_CAUSES):
        caused = error.__cause__
        if caused is None and (error.__context__ is None or error.__suppress_context__):
            return
        word, error = ("caused by", caused) if caused is not None else ("while handling", _context_of(error))
        yield f"  {word} {error_text(error, width - 20)}{_where(error)}"


def _message_lines(kind: str, message: str, width: int) -> list[str]:
    """Type and message, wrapped, the lines of the message kept."""
    text = f"{kind}: {message}" if message.strip() else kind
    lines: list[str] = []
    for line in text[:_MAX_MESSAGE].strip().splitlines():
        clean = printable(line.rstrip().expandtabs())
        lines += textwrap.wrap(clean, width, subsequent_indent="  ", drop_whitespace=True) or [""]
    if len(lines) > _MAX_MESSAGE_LINES or len(text) > _MAX_MESSAGE:
        lines = [*lines[: _MAX_MESSAGE_LINES - 1], "  ..."]
    return lines


def _where(error: BaseException) -> str:
    """The last place of the program's own in an exception's traceback."""
    places = [(entry.tb_frame.f_code, entry.tb_lineno or 0) for entry in user_entries(error.__traceback__)]
    own = [(code, line) for code, line in places if not is_library(code.co_filename)]
    return "".join(f" ({_place(FrameRecord(code.co_filename, line, code.co_qualname))})" for code, line in own[-1:])


def _context_of(error: BaseException) -> BaseException:
    return error if error.__context__ is None else error.__context__


def _fitted(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 3]}..."


def _bounded(lines: list[str], limit: int) -> str:
    text = "\n".join(lines)
    if len(text) <= limit:
        return text
    half = max(limit // 2 - 20, 0)
    head, tail = text[:half].rpartition("\n")[0], text[len(text) - half :].partition("\n")[2]
    return f"{head}\n    ... (cut)\n{tail}"

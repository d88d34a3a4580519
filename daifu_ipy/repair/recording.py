"""From a traceback to records of its frames: which are shown, what of their source, and which values."""

from __future__ import annotations

import functools
import linecache
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from textwrap import dedent
from types import CodeType, FrameType, TracebackType
from typing import Any

from daifu_ipy.engine.crash import position_of
from daifu_ipy.engine.location import CannotResume
from daifu_ipy.engine.native import barrier_in, is_injected, native_code
from daifu_ipy.engine.scopes import HIDDEN
from daifu_ipy.engine.texts import bare_lines
from daifu_ipy.repair.deadline import one_budget
from daifu_ipy.repair.frame_record import FrameRecord, is_library
from daifu_ipy.repair.recursion import kept_of
from daifu_ipy.repair.statement import ChangedSource, Executing, Span, executing, segment, span_of
from daifu_ipy.repair.summary import one_line, printable, summarise
from daifu_ipy.repair.values import statement_values

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_ANY_SCOPE = (1, 1 << 30)
_MAX_NODE_LINES = 6
_CLASS_ONLY = (" object>", " module, training>", " module, eval>")
_MARGIN = 12
"""What stands before a line of source, and before a value, in the text of a stack."""


def record_frames(
    traceback: TracebackType | None,
    *,
    context: int = 2,
    width: int = 100,
    namespace: Mapping[str, Any] | None = None,
    most: int = 60,
) -> list[FrameRecord]:
    """Turn a traceback into records; our own frames are left out, and the same ones again and again of a recursion.

    Parameters
    ----------
    traceback
        Where to begin.
    context
        How many lines of source to keep before the executing node; after it, half as many.
    width
        The most characters of a line of text.
    namespace
        Stands for the variables of the first frame, which actions may have changed.
    most
        The most frames; of more, those in the middle are left out.
    """
    shown = _without_middle(_without_recursion(list(user_entries(traceback))), most)
    with one_budget():
        return [
            _record(step, _Settings(context, width), namespace if index == 0 else None, index == 0)
            for index, step in enumerate(shown)
        ]


@dataclass(frozen=True)
class _Settings:
    """How much of a frame to keep."""

    context: int
    width: int


@dataclass(frozen=True)
class _Step:
    """An entry of a traceback that is shown, and how many before it are not."""

    entry: TracebackType
    left_out: int = 0
    recursion: bool = False


def user_entries(entry: TracebackType | None) -> Iterator[TracebackType]:
    """The entries of a traceback that are not ours."""
    while entry is not None:
        code = entry.tb_frame.f_code
        if not code.co_filename.startswith(_OURS) and not code.co_name.startswith(HIDDEN) and not _waits(entry):
            yield entry
        entry = entry.tb_next


def _waits(entry: TracebackType) -> bool:
    """Whether a frame only waits for its unfinished procedure."""
    span = span_at(entry.tb_frame.f_code, entry.tb_lasti)
    return span is not None and barrier_in(entry.tb_frame.f_code) is not None and is_injected(span)


def span_at(code: CodeType, lasti: int) -> Span | None:
    """Where in the source an instruction stands; None if the code was compiled without columns."""
    try:
        return position_of(code, max(lasti, 0))
    except CannotResume:
        return None


def _without_recursion(entries: list[TracebackType]) -> list[_Step]:
    places = [(entry.tb_frame.f_code.co_filename, entry.tb_lineno, entry.tb_frame.f_code.co_name) for entry in entries]
    return [_Step(entries[index], left_out, left_out > 0) for index, left_out in kept_of(places)]


def _without_middle(steps: list[_Step], most: int) -> list[_Step]:
    first = most // 3
    hidden = steps[first : first - most] if len(steps) > most else []
    if not hidden:
        return steps
    after = steps[first - most]
    count = sum(1 + step.left_out for step in hidden) + after.left_out
    return [*steps[:first], replace(after, left_out=count, recursion=False), *steps[first - most + 1 :]]


def _record(step: _Step, settings: _Settings, namespace: Mapping[str, Any] | None, first: bool) -> FrameRecord:
    entry, frame = step.entry, step.entry.tb_frame
    code, line = frame.f_code, entry.tb_lineno or 0
    bare = FrameRecord(code.co_filename, line, code.co_qualname, left_out=step.left_out, recursion=step.recursion)
    if not first and is_library(code.co_filename):
        source = linecache.getline(code.co_filename, line, frame.f_globals)
        return replace(bare, library=True, source=one_line(source, settings.width))
    try:
        site = site_of(frame, line, span_at(code, entry.tb_lasti))
    except ChangedSource:
        return replace(bare, note="its source has changed since")
    if site is None:
        return bare
    local = dict(frame.f_locals) if namespace is None else namespace
    return _with_source(replace(bare, variables=site.values(local, frame, settings.width)), site, settings)


@dataclass(frozen=True)
class Site:
    """What a frame executes: the lines of its source, the span of the node, and the statement if it can be told.

    `exact`: the span is that of the instruction; else it is the whole line.
    """

    lines: list[str]
    span: Span
    found: Executing | None
    exact: bool

    def values(self, local: Mapping[str, Any], frame: FrameType, width: int) -> tuple[tuple[str, str], ...]:
        """What the statement names, each with a summary of its value now; `local` are the frame's variables."""
        return () if self.found is None else _variables(self.found, self.lines, local, frame, width)


def site_of(frame: FrameType, line: int, span: Span | None) -> Site | None:
    """Find what a frame executes in a line, or at a span that is known; None where there is no such line.

    Raises
    ------
    ChangedSource
        If the source is not the one that the code was compiled from.
    """
    text = _text(frame)
    lines = _split(text)
    if not 0 < line <= len(lines) or not text:
        return None
    known = span or _whole_line(lines, line)
    found = executing(text, native_code(frame.f_code), known)
    return Site(lines, known if found is None else found.span, found, span is not None and found is not None)


def _text(frame: FrameType) -> str:
    """The source of a frame: of a unit the very text that it was made from."""
    barrier = barrier_in(frame.f_code)
    if barrier is not None:
        return barrier.unit.source
    return "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))


_split = functools.lru_cache(maxsize=16)(bare_lines)


def _whole_line(lines: list[str], line: int) -> Span:
    text = lines[line - 1].encode()
    return line, line, len(text) - len(text.lstrip()), len(text)


def _variables(
    found: Executing, lines: list[str], local: Mapping[str, Any], frame: FrameType, width: int
) -> tuple[tuple[str, str], ...]:
    inner = frame.f_code.co_name.startswith("<") and frame.f_code.co_name != "<module>"
    values = statement_values(found, lines, local, frame.f_globals, inner=inner)
    texts = [(name, summarise(value, max(width - _MARGIN - len(name), 40))) for name, value in values]
    return tuple((name, text) for name, text in texts if not _says_little(name, text, texts))


def _says_little(name: str, text: str, texts: list[tuple[str, str]]) -> bool:
    """An object of which only the class is known, as of `self`, where an attribute of it is shown anyway."""
    return text.endswith(_CLASS_ONLY) and any(other.startswith(f"{name}.") for other, _ in texts)


def _with_source(record: FrameRecord, site: Site, settings: _Settings) -> FrameRecord:
    """The record with the lines around its node, cut to the width, and the node marked in them."""
    lines, span, found = site.lines, site.span, site.found
    scope = _ANY_SCOPE if found is None else found.scope
    shown = [(number, _tidy(lines[number - 1])) for number in _window(lines, span, scope, settings.context)]
    indent = _common_indent([text for _, text in shown])
    marks = _marks(lines, span, indent) if site.exact and found is not None and _says_more(found) else []
    room = settings.width - _MARGIN
    start = max(next((last for _, _, last in marks), 0) - room + 3, 0)
    context = [(number, _cut(text[indent:], start if number == span[0] else 0, room)) for number, text in shown]
    seen = [(n, first - start * (n == span[0]), min(last - start * (n == span[0]), room)) for n, first, last in marks]
    return replace(
        record,
        source=one_line(lines[record.line - 1], settings.width),
        context=tuple(context),
        executing=one_line(segment(lines, span), settings.width) if site.exact else "",
        marks=tuple((n, max(a, 0), b) for n, a, b in seen if b > a and any(n == number for number, _ in context)),
    )


def _window(lines: list[str], span: Span, scope: tuple[int, int], context: int) -> list[int]:
    """The numbers of the lines to show, without blank ones at either end."""
    last_of_node = min(span[1], span[0] + _MAX_NODE_LINES - 1)
    numbers = list(range(max(span[0] - context, scope[0]), min(last_of_node + context // 2, scope[1], len(lines)) + 1))
    while numbers and numbers[0] < span[0] and not lines[numbers[0] - 1].strip():
        del numbers[0]
    while numbers and numbers[-1] > last_of_node and not lines[numbers[-1] - 1].strip():
        del numbers[-1]
    return numbers


def _tidy(line: str) -> str:
    return printable(line.rstrip().expandtabs())


def _common_indent(texts: list[str]) -> int:
    longest = max(map(len, texts), default=0)
    return longest - max(map(len, dedent("\n".join(texts)).split("\n")), default=0)


def _cut(text: str, start: int, room: int) -> str:
    shown = f"...{text[start + 3 :]}" if start else text
    return shown if len(shown) <= room else f"{shown[: room - 3]}..."


def _says_more(found: Executing) -> bool:
    """Whether the node is not the whole statement."""
    return found.span != span_of(found.statement)


def _marks(lines: list[str], span: Span, indent: int) -> list[tuple[int, int, int]]:
    """The columns of a span on each of its lines, in characters of the shown text."""
    first, last, start, end = span
    marks = []
    for number in range(first, min(last, len(lines), first + _MAX_NODE_LINES - 1) + 1):
        line = lines[number - 1]
        begin = _column(line, start) if number == first else len(_tidy(line)) - len(_tidy(line).lstrip())
        stop = _column(line, end) if number == last else len(_tidy(line))
        marks.append((number, begin - indent, stop - indent))
    return [mark for mark in marks if mark[2] > mark[1]]


def _column(line: str, column: int) -> int:
    """From a column in bytes to one in characters of the shown line."""
    return len(line.encode()[:column].decode(errors="replace").expandtabs())

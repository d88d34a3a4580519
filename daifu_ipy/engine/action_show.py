"""What an action shows: its output while it runs, its value and its error afterwards, all of bounded size."""

from __future__ import annotations

import reprlib
import threading
from typing import Any, TextIO

_MAX_STDOUT = 65_536
_MAX_VALUE = 4_000
_MAX_MESSAGE = 1_000
_MAX_LINE = 200


class Tee:
    """Stands in for ``sys.stdout``: passes everything on, and keeps what the thread that made it writes."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._thread = threading.get_ident()
        self._kept: list[str] = []
        self._room = _MAX_STDOUT

    def write(self, text: str) -> int:
        """Show `text`, and keep as much of it as there is room for."""
        if self._room > 0 and threading.get_ident() == self._thread:
            self._kept.append(text[: self._room])
            self._room -= len(text)
        return len(text) if self._stream is None else self._stream.write(text)

    def flush(self) -> None:
        """Pass it on."""
        if self._stream is not None:
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        """Everything else (``encoding``, ``isatty``, ...) is the stream's."""
        return getattr(self._stream, name)

    def text(self) -> str:
        """What was written, up to a limit."""
        return "".join(self._kept) + ("\n... (cut)\n" if self._room < 0 else "")


class _Shown(reprlib.Repr):
    """Bounds the work on builtin containers; anything else that the user wants to see gives its own repr."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxdict = 50
        self.maxstring = self.maxother = _MAX_VALUE

    def repr_instance(self, x: object, level: int) -> str:
        return cut(repr(x), self.maxother)


def show_value(value: object) -> str:
    """A bounded repr of a value that the user asked for: it is read (a tensor shows its numbers)."""
    try:
        return cut(_Shown().repr(value), _MAX_VALUE)
    except BaseException as error:  # a repr is user code, and Ctrl-C is the way out of one that hangs
        return f"<repr failed: {type(error).__name__}>"


def show_error(error: BaseException, filename: str, text: str) -> str:
    """Type, message and the line of the action's text."""
    try:
        message = str(error.msg if isinstance(error, SyntaxError) else error)
    except BaseException as failure:
        message = f"<message failed: {type(failure).__name__}>"
    shown = f"{type(error).__name__}: {message}" if message else type(error).__name__
    line = _line_number(error, filename)
    lines = text.splitlines()
    if line is None or not 0 < line <= len(lines):
        return cut(shown, _MAX_MESSAGE)
    return f"{cut(shown, _MAX_MESSAGE)}\n  line {line}: {cut(lines[line - 1].strip(), _MAX_LINE)}"


def _line_number(error: BaseException, filename: str) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == filename:
        return error.lineno
    line = None
    entry = error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename == filename:
            line = entry.tb_lineno
        entry = entry.tb_next
    return line


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and a mark that it goes on."""
    return text if len(text) <= limit else f"{text[: limit - 4]} ..."

"""Writes what surgeries have changed into the module's file: only on request, and only where nobody else changed it."""

from __future__ import annotations

import difflib
import io
import itertools
import os
import shutil
import tempfile
import tokenize
from collections.abc import Container
from dataclasses import dataclass

from daifu_ipy.engine import versions
from daifu_ipy.engine.differences import Conflict
from daifu_ipy.engine.documents import Document
from daifu_ipy.engine.texts import lines_of


class NotWritten(ValueError):
    """A file was left as it is; says why."""


@dataclass(frozen=True)
class Written:
    """A file that was written: its name, where the former text is, and the diff between them."""

    path: str
    backup: str
    diff: str


def write(number: int | None = None) -> list[Written]:
    """Write the text of a version into the files that it changes.

    Parameters
    ----------
    number
        The version; without one, the newest text of all that was operated on.

    Returns
    -------
    list of Written
        One for each file; files that have the text already, and notebook cells, are left out.

    Raises
    ------
    NotWritten
        A function that is to be replaced was changed in its file since; then no file is written.
    VersionError
        There is no such version.

    Notes
    -----
    What is not replaced stays byte for byte. A file is exchanged at once, and its former text is kept beside it.
    """
    held = versions.holding(number)
    meant = [document for document in versions.documents(number) if document.is_file]
    texts = [(document, _new_text(document, held)) for document in meant]
    written = []
    for document, text in texts:
        diff = document.diff(held)
        if diff:
            backup = f"{document.file}.before-surgery-{max(n for n in document.edits if n in held)}"
            written.append(Written(document.file, _exchange(document.file, text, backup), diff))
    return written


def _new_text(document: Document, held: Container[int]) -> bytes:
    """The file's new bytes."""
    changed = document.changed_since(held)
    if changed:
        raise NotWritten(f"{document.name} was left as it is: {', '.join(changed)} was changed there since the crash")
    try:
        text = document.repaired(held)
    except Conflict as conflict:
        raise NotWritten(f"{document.name} was left as it is: {conflict}") from None
    try:
        with open(document.file, "rb") as file:
            return _in_the_manner_of(file.read(), text)
    except (OSError, SyntaxError, UnicodeError) as error:
        raise NotWritten(f"{document.name} was left as it is: {error}") from None


def _in_the_manner_of(present: bytes, text: str) -> bytes:
    """The text in the encoding of the present file; lines that are there already keep their ends."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(present).readline)
    old = io.StringIO(present.decode(encoding), newline="").readlines()
    plain, new = lines_of("".join(old)), lines_of(text)
    end = next((line[len(line.rstrip("\r\n")) :] for line in old), "\n") or "\n"
    made: list[str] = []
    for tag, i, j, start, stop in difflib.SequenceMatcher(None, plain, new, autojunk=False).get_opcodes():
        made += old[i:j] if tag == "equal" else [line.replace("\n", end) for line in new[start:stop]]
    return "".join(made).encode(encoding)


def _exchange(path: str, text: bytes, backup: str) -> str:
    """Put a text into a file at once; gives the name of the file that has the former text now."""
    path = os.path.realpath(path)
    free = (name for n in itertools.count() if not os.path.exists(name := f"{backup}-{n}" if n else backup))
    backup = next(free)
    handle, made = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, made)
        shutil.copy2(path, backup)
        os.replace(made, path)
    except BaseException:
        os.unlink(made)
        raise
    return backup


__all__ = ["NotWritten", "Written", "write"]

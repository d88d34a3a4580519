"""Which codes are versions of one definition: what surgery has made of it, in the order in which it came."""

from __future__ import annotations

import ast
import difflib
from types import CodeType

_versions: dict[int, list[CodeType]] = {}  # by the identity of each native code in the list


def versions_of(code: CodeType) -> tuple[CodeType, ...]:
    """The native codes of one definition, the newest last."""
    return tuple(_versions.get(id(code), [code]))


def succeed(old: CodeType, new: CodeType) -> None:
    """Say that `new` stands for the definition of `old` from now on."""
    line = _versions.setdefault(id(old), [old])
    for code in versions_of(new):
        line[:] = [other for other in line if other is not code]
        line.append(code)
        _versions[id(code)] = line


def newest(code: CodeType) -> CodeType:
    """What later calls of a definition run."""
    return versions_of(code)[-1]


def is_newest(code: CodeType) -> bool:
    """Whether later calls run the same text."""
    last = newest(code)
    return (last.co_filename, last.co_firstlineno) == (code.co_filename, code.co_firstlineno)


def brought_back(before: ast.AST, newest: ast.AST, given: ast.AST) -> str | None:
    """What a text that was written for an older version would undo of the newest: a line of it; None if nothing."""
    old, now, new = (ast.unparse(text).splitlines() for text in (before, newest, given))
    again = [line for line in old if old.count(line) > now.count(line) < new.count(line)]
    lost = [
        line
        for _, first, last, start, stop in difflib.SequenceMatcher(None, now, new, autojunk=False).get_opcodes()
        for line in now[first:last]
        if stop - start < last - first and now.count(line) > old.count(line)  # fewer lines: not all were rewritten
    ]
    return next((line.strip() for line in (*again, *lost)), None)


__all__ = ["brought_back", "is_newest", "newest", "succeed", "versions_of"]

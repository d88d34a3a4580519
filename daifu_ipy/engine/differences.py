"""A version of a text against what the user has now: a change carried over to it, and a unified diff."""

from __future__ import annotations

import difflib

from daifu_ipy.engine.texts import lines_of


class Conflict(ValueError):
    """What a change is about was changed since by somebody else."""


def carried_over(original: str, version: str, present: str) -> str:
    """The present text with the changes from `original` to `version` in it; itself if it has them already.

    Raises
    ------
    Conflict
        The lines that are to be replaced are not in the present text, as they were.
    """
    if present in (original, version):
        return version
    try:
        return _carried(lines_of(original), lines_of(version), lines_of(present))
    except Conflict as conflict:
        try:
            _carried(lines_of(version), lines_of(original), lines_of(present))
        except Conflict:
            raise conflict from None
        return present


def _carried(old: list[str], new: list[str], present: list[str]) -> str:
    where = {
        block.a + index: block.b + index
        for block in difflib.SequenceMatcher(None, old, present, autojunk=False).get_matching_blocks()
        for index in range(block.size)
    }
    made = list(present)
    for tag, first, last, start, stop in reversed(
        difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    ):
        if tag != "equal":
            at = _replaced(where, first, last) if last > first else _between(where, first)
            made[at : at + last - first] = new[start:stop]
    return "".join(made)


def _replaced(where: dict[int, int], first: int, last: int) -> int:
    """Where the lines from `first` on are now."""
    at = where.get(first)
    if at is None or any(where.get(line) != at + line - first for line in range(first, last)):
        raise Conflict(f"line {first + 1} was changed since")
    return at


def _between(where: dict[int, int], line: int) -> int:
    """Where new lines in front of `line` go."""
    before, after = where.get(line - 1), where.get(line)
    if before is None and after is None:
        raise Conflict(f"line {line + 1} was changed since")
    if before is not None and after is not None and after != before + 1:
        raise Conflict(f"something was put in front of line {line + 1} since")
    return after if after is not None else (before or 0) + 1


def unified(old: str, new: str, old_name: str, new_name: str, old_note: str, new_note: str) -> str:
    """A unified diff, as ``patch`` takes it; "" if nothing differs."""
    made = difflib.unified_diff(lines_of(old), lines_of(new), old_name, new_name, old_note, new_note)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made)


__all__ = ["Conflict", "carried_over", "unified"]

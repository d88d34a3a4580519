"""How often in a row one statement has failed, with no success in between."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

from daifu_ipy.repair.items import standing
from daifu_ipy.repair.view import CrashView

Place: TypeAlias = tuple[Hashable, ...]

_MOST_PLACES = 256


@dataclass(frozen=True)
class Row:
    """How often in a row a statement has failed, and where its loops stood then."""

    count: int
    standing: tuple[object, ...]


def place_of(crash: CrashView) -> Place:
    """Which statement a crash is about, and in which thread."""
    restart = crash.restart
    return threading.get_ident(), restart.filename, restart.unit, restart.line


def next_row(before: Row | None, crash: CrashView, frame: int = 0) -> Row:
    """The row that a crash goes on with; `before` is the one that ended with the failure before at its place."""
    stands = standing(crash, frame)
    again = crash.failed_again(frame)
    if before is None or again is False or (again is None and before.standing != stands):
        return Row(1, stands)
    return Row(before.count + 1, stands)


class InARow:
    """Counts the crashes in a row of one type at one statement; it keeps none alive."""

    def __init__(self) -> None:
        self._rows: dict[Place, Row] = {}
        self._counted: weakref.WeakKeyDictionary[CrashView, int] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def count(self, crash: CrashView) -> int:
        """The how manieth in a row a crash is; asked again about the same crash, the same."""
        known = self._counted.get(crash)
        if known is not None:
            return known
        kind = type(crash.exception)
        place = (*place_of(crash), kind.__module__, kind.__qualname__)
        with self._lock:
            row = next_row(self._rows.pop(place, None), crash)
            self._rows[place] = row  # at the end: the oldest place is forgotten first
            while len(self._rows) > _MOST_PLACES:
                del self._rows[next(iter(self._rows))]
            self._counted[crash] = row.count
        return row.count


in_a_row = InARow()
"""Of the crashes that somebody is asked about in this process."""

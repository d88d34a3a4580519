"""What crashed in a process, and how it was repaired: events in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from daifu_ipy.repair.event import Event, events_from_json, events_to_json
from daifu_ipy.repair.replay import script


class History:
    """Events in order, the oldest forgotten first; safe to use from several threads.

    Parameters
    ----------
    limit
        The most events that are kept.
    """

    def __init__(self, limit: int = 1_000) -> None:
        self._events: deque[Event] = deque(maxlen=limit)
        self._forgotten = 0
        self._lock = threading.Lock()

    def add(self, event: Event) -> None:
        """Put an event at the end."""
        with self._lock:
            self._forgotten += len(self._events) == self._events.maxlen
            self._events.append(event)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._events.clear()
            self._forgotten = 0

    @property
    def events(self) -> tuple[Event, ...]:
        """What is kept, oldest first."""
        with self._lock:
            return tuple(self._events)

    @property
    def forgotten(self) -> int:
        """How many events are not kept any more; the first one that is kept has the number after it."""
        return self._forgotten

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"<History: {len(self)} events>"

    def __str__(self) -> str:
        """A numbered line for each event."""
        lines = [f"({self._forgotten} older ones are forgotten)"] if self._forgotten else []
        lines += [f"{number:>3}  {event}" for number, event in enumerate(self, self._forgotten + 1)]
        return "\n".join(lines) or "nothing has crashed"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def to_json(self) -> dict[str, Any]:
        """Give everything as a plain dict that `from_json` and `replay` read."""
        return events_to_json(self.events)

    @classmethod
    def from_json(cls, data: object, limit: int = 1_000) -> History:
        """Read what `to_json` gave.

        Raises
        ------
        ValueError
            If it is no history, of another version, or has a damaged event.
        """
        history = cls(limit)
        for event in events_from_json(data):
            history.add(event)
        return history

    def export_script(self) -> str:
        """Give a Python script that defines `manager`, which repairs the same crashes in the same way."""
        return script(self.events)


history = History()
"""What crashed in this process."""

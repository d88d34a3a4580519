"""What crashed, how it was repaired, and a script that repairs the same crashes of a fresh run alike.

An event is text and numbers only: no frame, exception or value of the run is kept alive by it.
"""

from __future__ import annotations

import datetime
import json
import os
import pprint
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeAlias

from daifu_ipy.engine.repairs import Repair
from daifu_ipy.repair.summary import error_message, one_line
from daifu_ipy.repair.view import CrashView

HISTORY_VERSION = 1
"""The value of ``daifu_history`` in the JSON form."""

_TAG = "daifu_history"
_MAX_TEXT = 500

Place: TypeAlias = tuple[str, int, str]
"""A unit's qualified name, a line, and the name of an exception's type: what a replay knows a crash by."""


@dataclass(frozen=True)
class Event:
    """One answer to one crash.

    Parameters
    ----------
    time
        When it crashed: ISO 8601, with the offset from UTC.
    unit, file, line, statement
        Where.
    error, message
        The exception: its type's name, and its message in one line.
    repair
        What was done, as `Repair.to_json` gives it.
    latency_seconds
        From the crash to the end of the repair, waiting for a person included.
    outcome
        ``"recovered"``, ``"aborted"``, or ``"refused: ..."`` with the reason.
    repeats
        What had begun when the statement raised, and ran again in a retry.
    """

    time: str
    unit: str
    file: str
    line: int
    statement: str
    error: str
    message: str
    repair: Mapping[str, Any]
    latency_seconds: float
    outcome: str
    repeats: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        crash: CrashView,
        repair: Repair,
        *,
        latency_seconds: float,
        outcome: str,
        actions: Iterable[str] = (),
    ) -> Event:
        """Describe what was done about a crash; to be called before the crash is closed.

        `actions` are those that ran by `crash.action` before the repair: a replay has them in the repair.
        """
        restart, error = crash.restart, crash.exception
        began = datetime.datetime.now() - datetime.timedelta(seconds=latency_seconds)
        return cls(
            time=began.astimezone().isoformat(timespec="seconds"),
            unit=restart.unit,
            file=restart.filename,
            line=restart.line,
            statement=one_line(restart.statement, _MAX_TEXT),
            error="" if error is None else type(error).__name__,
            message="" if error is None else error_message(error, _MAX_TEXT),
            repair=replace(repair, actions=(*actions, *repair.actions)).to_json(),
            latency_seconds=latency_seconds,
            outcome=outcome,
            repeats=tuple(one_line(text, _MAX_TEXT) for text in crash.repeats),
        )

    @classmethod
    def from_json(cls, data: object) -> Event:
        """Read what `asdict` gave.

        Raises
        ------
        ValueError
            If it is no event, or its repair is none.
        """
        names = {field.name for field in fields(cls)}
        if not isinstance(data, Mapping) or not names - {"repeats"} <= data.keys() <= names:
            raise ValueError(f"not an event of a history: expected a dict of {', '.join(sorted(names))}")
        Repair.from_json(data["repair"])
        return cls(**{**data, "repeats": tuple(data.get("repeats", ()))})

    @property
    def place(self) -> Place:
        """What a replay knows the crash by."""
        return self.unit, self.line, self.error


class History:
    """Events in order, the oldest forgotten first; safe to use from several threads.

    Parameters
    ----------
    limit
        The most events that are kept.
    """

    def __init__(self, limit: int = 1_000) -> None:
        self._events: deque[Event] = deque(maxlen=limit)
        self._lock = threading.Lock()

    def add(self, event: Event) -> None:
        """Put an event at the end."""
        with self._lock:
            self._events.append(event)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._events.clear()

    @property
    def events(self) -> tuple[Event, ...]:
        """What is kept, oldest first."""
        with self._lock:
            return tuple(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"<History: {len(self)} events>"

    def to_json(self) -> dict[str, Any]:
        """Give everything as a plain dict that `from_json` and `replay` read."""
        return {_TAG: HISTORY_VERSION, "events": [_plain(event) for event in self.events]}

    @classmethod
    def from_json(cls, data: object, limit: int = 1_000) -> History:
        """Read what `to_json` gave.

        Raises
        ------
        ValueError
            If it is no history, of another version, or has a damaged event.
        """
        history = cls(limit)
        for event in _events(data):
            history.add(event)
        return history

    def export_script(self) -> str:
        """Give a Python script that defines `manager`, which repairs the same crashes in the same way."""
        answers = [(_comment(event), event.place, dict(event.repair)) for event in self.events if _is_answer(event)]
        return _SCRIPT.format(answers="".join(_entry(*answer) for answer in answers))


class Replay:
    """A repair manager that answers crashes as they were answered before.

    A crash is known by unit, line and type of exception; the answers for one such place are given in order,
    each once. Another crash gets None: alone, that aborts; among other managers, the next is asked.

    Parameters
    ----------
    answers
        Pairs of a place and a repair.
    """

    def __init__(self, answers: Iterable[tuple[Place, Repair]]) -> None:
        self._answers: dict[Place, deque[Repair]] = {}
        self._lock = threading.Lock()
        for place, repair in answers:
            self._answers.setdefault(place, deque()).append(repair)

    def __call__(self, crash: CrashView) -> Repair | None:
        """Give the next answer for the place of this crash."""
        error = crash.exception
        if error is None or crash.refusal is not None:
            return None
        with self._lock:
            queue = self._answers.get((crash.restart.unit, crash.restart.line, type(error).__name__))
            return queue.popleft() if queue else None

    @property
    def left(self) -> int:
        """How many answers were not asked for."""
        return sum(map(len, self._answers.values()))


def replay(source: History | Mapping[str, Any] | Iterable[Any] | str | os.PathLike[str]) -> Replay:
    """Make a manager that repairs the same crashes in the same way.

    Parameters
    ----------
    source
        A history, its JSON form (dict or text), a path to a file that holds it, or pairs of a place
        ``(unit, line, error)`` and a repair in JSON form, as an exported script has them.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if isinstance(source, History):
        return Replay((event.place, Repair.from_json(event.repair)) for event in source if _is_answer(event))
    data: Any = _read(source) if isinstance(source, (str, os.PathLike)) else source
    if isinstance(data, Mapping):
        return replay(History.from_json(data, limit=10**9))
    return Replay((_place(place), Repair.from_json(repair)) for place, repair in data)


def _read(source: str | os.PathLike[str]) -> Any:
    text = source if isinstance(source, str) and source.lstrip().startswith("{") else None
    if text is None:
        with open(source, encoding="utf-8") as file:
            text = file.read()
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"not the JSON of a history: {error}") from None


def _events(data: object) -> Iterator[Event]:
    if not isinstance(data, Mapping) or data.get(_TAG) != HISTORY_VERSION:
        raise ValueError(f"not a history that this version reads: expected a dict with {_TAG!r}: {HISTORY_VERSION}")
    events = data.get("events")
    if not isinstance(events, list):
        raise ValueError("a history's 'events' must be a list")
    yield from (Event.from_json(event) for event in events)


def _place(place: Iterable[Any]) -> Place:
    unit, line, error = place
    return unit, line, error


def _is_answer(event: Event) -> bool:
    """A refused repair changed nothing: the manager was asked again, and so is a replay."""
    return not event.outcome.startswith("refused")


def _plain(event: Event) -> dict[str, Any]:
    return asdict(event) | {"repair": dict(event.repair), "repeats": list(event.repeats)}


def _comment(event: Event) -> str:
    return one_line(f"{event.time} {event.outcome}: {event.error}: {event.message}", 100)


def _entry(comment: str, place: Place, repair: dict[str, Any]) -> str:
    text = pprint.pformat((place, repair), width=100, sort_dicts=False)
    indented = "".join(f"    {line}\n" for line in text.splitlines())
    return f"    # {comment}\n{indented.rstrip()},\n"


_SCRIPT = '''\
"""Repairs, recorded by daifu_ipy: `manager` gives them again, each once, where the same crash happens.

    import daifu_ipy
    with daifu_ipy.repair_with(manager):
        train()
"""

from daifu_ipy.repair.history import replay

# (unit, line, type of the exception), repair
ANSWERS = [
{answers}]

manager = replay(ANSWERS)
'''

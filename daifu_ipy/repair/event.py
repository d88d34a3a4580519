"""One crash and what was done about it, in text and numbers: no frame, exception or value is kept alive by it."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, TypeAlias

from daifu_ipy.engine import versions
from daifu_ipy.engine.repairs import Action, Repair, Surgery
from daifu_ipy.repair import places
from daifu_ipy.repair.items import frame_at, progress_texts
from daifu_ipy.repair.summary import error_message, one_line
from daifu_ipy.repair.view import CrashView

HISTORY_VERSION = 1
"""The value of ``daifu_history`` in the JSON form."""

_TAG = "daifu_history"
_MAX_TEXT = 500

Place: TypeAlias = tuple[str, str, str]
"""A unit's qualified name, the text of a statement, and the name of an exception's type: a replay knows a crash by it.

The line is not in it: it moves when a line is added above, and the number of a notebook cell when it runs again.
"""


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
        ``"recovered"`` or ``"aborted"``.
    repeats
        What had begun when the statement raised, and ran again in a retry. This, `stale` and `progress` are of the
        frame that was repaired.
    stale
        Names that a skipped statement would have bound, and that kept an older value.
    progress
        The items that the loops around the crash were at, outermost first: what a skip has left out.
    version
        The number of the surgery, if it was one that was applied (`daifu_ipy.engine.versions`).
    thread
        The name of the thread that crashed.
    place
        What a user calls the file: the label of a notebook cell, or else its path.
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
    stale: tuple[str, ...] = ()
    progress: tuple[str, ...] = ()
    version: int | None = None
    thread: str = "MainThread"
    place: str = ""

    @classmethod
    def of(
        cls,
        crash: CrashView,
        repair: Repair,
        *,
        latency_seconds: float,
        outcome: str,
        actions: Iterable[Action] = (),
    ) -> Event:
        """Describe what was done about a crash; to be called before the crash is closed.

        `actions` are those that ran before the repair was decided: a replay has them in the repair.
        """
        restart, error = crash.restart, crash.exception
        at = frame_at(crash, repair.frame) or crash
        began = datetime.datetime.now() - datetime.timedelta(seconds=latency_seconds)
        made = [action.code if action.frame == repair.frame else action for action in actions]
        return cls(
            time=began.astimezone().isoformat(timespec="seconds"),
            unit=restart.unit,
            file=restart.filename,
            line=restart.line,
            statement=_statement(crash),
            error="" if error is None else type(error).__name__,
            message="" if error is None else error_message(error, _MAX_TEXT),
            repair=(replace(repair, actions=(*made, *repair.actions)) if made else repair).to_json(),
            latency_seconds=latency_seconds,
            outcome=outcome,
            repeats=_texts(at.repeats),
            stale=_texts(at.stale) if repair.word in ("skip", "continue") else (),
            progress=progress_texts(at),
            version=_version(repair) if outcome == "recovered" else None,
            thread=threading.current_thread().name,
            place=places.label(restart.filename) or restart.filename,
        )

    @classmethod
    def from_json(cls, data: object) -> Event:
        """Read what `asdict` gave.

        Raises
        ------
        ValueError
            If it is no event, or its repair is none.
        """
        kinds = {field.name: str(field.type) for field in fields(cls)}
        must = {field.name for field in fields(cls) if field.default is MISSING}
        if not isinstance(data, Mapping) or not must <= data.keys() <= kinds.keys():
            raise ValueError(f"not an event of a history: expected a dict of {', '.join(sorted(kinds))}")
        Repair.from_json(data["repair"])
        for name, value in data.items():
            texts = value if isinstance(value, (list, tuple)) else ()
            if not isinstance(value, _JSON[kinds[name]]) or not all(isinstance(text, str) for text in texts):
                raise ValueError(f"an event's {name!r} can't be {value!r:.80}")
        lists = {name: tuple(data[name]) for name in ("repeats", "stale", "progress") if name in data}
        return cls(**{**data, **lists})

    def to_json(self) -> dict[str, Any]:
        """Give it as a plain dict that `from_json` reads."""
        lists = {name: list(getattr(self, name)) for name in ("repeats", "stale", "progress")}
        return asdict(self) | lists | {"repair": dict(self.repair)}

    @property
    def key(self) -> Place:
        """What a replay knows the crash by."""
        return self.unit, self.statement, self.error

    @property
    def done(self) -> str:
        """What was done, in a few words."""
        repair = Repair.from_json(self.repair)
        outer = f" in the caller {repair.frame} further out" * bool(repair.frame)
        number = f" {self.version}" if self.version is not None else ""
        return f"{repair.in_words}{number}{outer}" if self.outcome == "recovered" else self.outcome

    def __str__(self) -> str:
        """It in one line."""
        error = one_line(f"{self.error}: {self.message}" if self.message else self.error, 80)
        unit = "" if self.unit == "<module>" else f"{self.unit}, "
        where = one_line(self.place, 60) if not unit else unit.removesuffix(", ")
        return f"{self.time[11:19]}  {where}, line {self.line}: {error} -> {self.done}"

    def details(self) -> str:
        """It whole, a line for each thing that is known."""
        return "\n".join(f"{name:<10} {text}" for name, text in self._details() if text)

    def _details(self) -> Iterator[tuple[str, str]]:
        repair = Repair.from_json(self.repair)
        yield "crashed", f"{self.time}, {self.place}, line {self.line}, in {self.unit}" + _in_thread(self.thread)
        yield "statement", self.statement
        yield "exception", f"{self.error}: {self.message}" if self.message else self.error
        yield "loops at", "; ".join(self.progress)
        for action in repair.actions:
            code, frame = (action.code, action.frame) if isinstance(action, Action) else (action, repair.frame)
            yield "action", one_line(code, _MAX_TEXT) + (f"  (in frame {frame})" if frame != repair.frame else "")
        yield "repair", self.done
        yield "ran again", ", ".join(self.repeats) if repair.word == "pass" else ""
        yield "older value", ", ".join(self.stale)
        yield "took", f"{self.latency_seconds:.3g} s"


_JSON: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "int | None": (int, type(None)),
    "tuple[str, ...]": (list, tuple),
    "Mapping[str, Any]": (Mapping,),
}
"""What stands in JSON for a field of each type."""


def key_of(crash: CrashView) -> Place:
    """The same for a crash that waits."""
    error = crash.exception
    return crash.restart.unit, _statement(crash), "" if error is None else type(error).__name__


def events_to_json(events: Iterable[Event]) -> dict[str, Any]:
    """Events as a plain dict that `events_from_json` reads."""
    return {_TAG: HISTORY_VERSION, "events": [event.to_json() for event in events]}


def events_from_json(data: object) -> list[Event]:
    """Read what `events_to_json` gave.

    Raises
    ------
    ValueError
        If `data` is no history, is of another version, or has a damaged event.
    """
    if not isinstance(data, Mapping) or data.get(_TAG) != HISTORY_VERSION:
        raise ValueError(f"not a history that this version reads: expected a dict with {_TAG!r}: {HISTORY_VERSION}")
    events = data.get("events")
    if not isinstance(events, list):
        raise ValueError("a history's 'events' must be a list")
    return [Event.from_json(event) for event in events]


def _statement(crash: CrashView) -> str:
    return one_line(crash.restart.statement, _MAX_TEXT)


def _texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(one_line(text, _MAX_TEXT) for text in texts)


def _version(repair: Repair) -> int | None:
    """The number of a surgery that was applied just now."""
    source = repair.then.source if isinstance(repair.then, Surgery) else None
    return next((version.number for version in reversed(versions.all()) if version.source == source), None)


def _in_thread(name: str) -> str:
    return "" if name == "MainThread" else f", thread {name}"

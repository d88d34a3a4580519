"""A repair manager that answers crashes as they were answered before, and a script that makes it."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from daifu_ipy.engine.repairs import Repair
from daifu_ipy.repair.event import Event, Place, events_from_json, key_of
from daifu_ipy.repair.summary import one_line
from daifu_ipy.repair.view import CrashView


class Replay:
    """A repair manager that answers crashes as they were answered before.

    A crash is known by its unit, the text of its statement, and the type of the exception; the answers for one such
    place are given in order, each once. Another crash gets None: alone, that aborts; among rules, the next is asked.

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
        """Give the next answer for the place of this crash; none if the last one was refused."""
        if crash.exception is None or crash.refusal is not None:
            return None
        key = key_of(crash)
        with self._lock:
            queue = self._answers.get(key)
            return queue.popleft() if queue else None

    @property
    def left(self) -> int:
        """How many answers were not asked for."""
        return sum(map(len, self._answers.values()))

    def __repr__(self) -> str:
        left = [place for place, queue in self._answers.items() if queue]
        places = "".join(f"; {unit}: {statement} ({error})" for unit, statement, error in left)
        return f"<Replay: {self.left} answers left{places}>"


def replay(source: Mapping[str, Any] | Iterable[Any] | str | os.PathLike[str]) -> Replay:
    """Make a manager that repairs the same crashes in the same way.

    Parameters
    ----------
    source
        A history, its JSON form (dict or text), a path to a file that holds it, or pairs of a place
        ``(unit, statement, error)`` and a repair in JSON form, as an exported script has them.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    data: Any = _read(source) if isinstance(source, (str, os.PathLike)) else source
    try:
        items: list[Any] = events_from_json(data) if isinstance(data, Mapping) else list(data)
        pairs = [(e.key, e.repair) if isinstance(e, Event) else e for e in items]
        return Replay(((unit, statement, error), Repair.from_json(made)) for (unit, statement, error), made in pairs)
    except TypeError as error:
        raise ValueError(f"not the answers of an exported script: {error}") from None


def script(events: Iterable[Event]) -> str:
    """A Python script that defines `manager`, which repairs the same crashes in the same way."""
    return _SCRIPT.format(answers="".join(_entry(event) for event in events))


def _read(source: str | os.PathLike[str]) -> Any:
    import json

    text = source if isinstance(source, str) and source.lstrip().startswith("{") else None
    if text is None:
        with open(source, encoding="utf-8") as file:
            text = file.read()
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"not the JSON of a history: {error}") from None


def _entry(event: Event) -> str:
    import pprint

    comment = one_line(f"{event.time}, line {event.line}, {event.outcome}: {event.error}: {event.message}", 100)
    text = pprint.pformat((event.key, dict(event.repair)), width=100, sort_dicts=False)
    indented = "".join(f"    {line}\n" for line in text.splitlines())
    return f"    # {comment}\n{indented.rstrip()},\n"


_SCRIPT = '''\
"""Repairs, recorded by daifu_ipy: given again, each once, where the same crash happens in a fresh run.

In a notebook, before the cells run:   %daifu replay THIS_FILE
In a script (THIS_FILE as a module):   with daifu_ipy.repair_with(manager): train()

`manager.left` says how many were not asked for.
"""

from daifu_ipy.repair.replay import replay

# (unit, statement, type of the exception), repair
ANSWERS = [
{answers}]

manager = replay(ANSWERS)
'''

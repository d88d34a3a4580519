"""A crash as the repair panel shows it: plain JSON, made on the crashed thread, and only when it is asked for.

No code of the program runs for it but ``repr`` with a deadline, actions, and the value of a `Return`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from daifu_ipy.engine.action import value_shown
from daifu_ipy.engine.action_show import show_value
from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.repairs import ENDINGS, Abort, Repair, Return, Surgery
from daifu_ipy.frontends.levels import Level, Levels
from daifu_ipy.frontends.panel_completion import completions
from daifu_ipy.frontends.panel_detail import Text, mark, ordered, site, text_of_frame, text_of_function, values
from daifu_ipy.frontends.panel_end import duration
from daifu_ipy.frontends.panel_endings import endings
from daifu_ipy.frontends.panel_frames import TOP_LEVEL, frames, function_of, loops
from daifu_ipy.frontends.panel_functions import functions
from daifu_ipy.frontends.panel_statistics import statistics
from daifu_ipy.frontends.panel_surgery import preview, refusal
from daifu_ipy.frontends.panel_values import Page, Step, expand, page, value_at
from daifu_ipy.frontends.patience import patience_here
from daifu_ipy.frontends.prompt import running_shell
from daifu_ipy.frontends.typed import problem_of
from daifu_ipy.repair.deadline import one_budget
from daifu_ipy.repair.in_a_row import in_a_row
from daifu_ipy.repair.summary import error_text, one_line, raw_message, type_name

if TYPE_CHECKING:
    from daifu_ipy.frontends.panel_rerun import Cell

MANY_IN_A_ROW = 3
"""As many crashes in a row at one place are worth a remark."""

_MAX_MESSAGE = 4_000
_MAX_LINE = 300
_MOST_NAMES = 500


class PanelState:
    """What can be asked about one crash, and what can be done about it. A frame is named by its level.

    Parameters
    ----------
    crash
        What waits.
    cell
        The notebook cell that is blocked, if it is known.
    """

    def __init__(self, crash: Crash, cell: Cell | None = None) -> None:
        self._crash, self._cell = crash, cell
        self._levels = Levels(crash)
        self._since = time.time()
        self._in_a_row = in_a_row.count(crash)
        self._texts: dict[str, Text] = {}
        self._operated: Text | None = None
        self._refused: tuple[str, dict[str, Any]] | None = None

    def let_go(self) -> None:
        """Hold nothing of the crash any more."""
        self._levels.let_go()
        for name in ("_crash", "frames"):
            self.__dict__.pop(name, None)

    # all of it

    def overview(self) -> dict[str, Any]:
        """What happened, where the loops stand, the stack, and which frame is the crashed one."""
        return {
            "crash": {**self._what, "remarks": self._remarks()},
            "progress": loops(self._crash, self._levels),
            "frames": self.frames,
            "selected": self._levels.crashed,
        }

    @cached_property
    def frames(self) -> list[dict[str, Any]]:
        """The stack: it stays as it is while the crash waits."""
        return frames(self._levels)

    @cached_property
    def _what(self) -> dict[str, Any]:
        crash, restart, error = self._crash, self._crash.restart, self._crash.exception
        crashed = self._levels.all[self._levels.crashed] if self._levels.all else None
        place = crashed.file if crashed is not None else restart.filename
        with one_budget():
            message = "" if error is None else raw_message(error, _MAX_MESSAGE)[:_MAX_MESSAGE]
        return {
            "type": type_name(type(error)),
            "message": message,
            "unit": restart.unit if restart.unit != "<module>" else place,
            "place": place,
            "line": restart.line,
            "statement": one_line(restart.statement, _MAX_LINE),
            "kind": restart.kind,
            "thread": None if crash.thread is threading.main_thread() else crash.thread.name,
            "since": self._since,
            "in_a_row": self._in_a_row,
        }

    def _remarks(self) -> list[str]:
        many = self._in_a_row >= MANY_IN_A_ROW
        row = [f"crash {self._in_a_row} in a row at this statement: retried so far in vain"] if many else []
        patience = patience_here()
        waits = f"after {duration(patience.seconds)} without an answer: {patience.fallback.word}" if patience else ""
        return [*row, *([waits] if waits else [])]

    # one frame

    def _select(self, level: int) -> Level:
        if not 0 <= level < len(self._levels.all):
            raise ValueError(f"there is no frame {level}")
        self._levels.index = level
        return self._levels.selected

    def frame(self, level: int) -> dict[str, Any]:
        """A frame with its text, its variables, and what each ending would do there."""
        selected, levels = self._select(level), self._levels
        text, found, unit = self._keep(text_of_frame(levels, self._cell)), site(levels), levels.unit
        variables = levels.variables()
        parts = ordered(levels, variables)
        return {
            "level": level,
            "function": function_of(selected),
            "place": one_line(selected.file, _MAX_LINE),
            "line": selected.line,
            "vaccinated": unit is not None,
            "key": text.key,
            "text": text.text,
            "first_line": text.first_line,
            "mark": mark(selected, found),
            "values": values(selected, found, variables),
            **page(parts, len(parts), 0),
            "can_edit": not text.why_not,
            "why_not": text.why_not,
            "endings": endings(self._crash, levels, text),
            "stale": list(unit.stale) if unit is not None else [],
            "repeats": list(unit.repeats) if unit is not None else [],
        }

    def _keep(self, text: Text) -> Text:
        self._texts[text.key] = text
        return text

    # variables

    def variables(self, level: int, start: int = 0, filter: str = "") -> Page:
        """The variables of a frame whose names have `filter` in them, from one on."""
        self._select(level)
        wanted = filter.casefold()
        parts = [part for part in ordered(self._levels, self._levels.variables()) if wanted in part.label.casefold()]
        return page(parts[start:], len(parts), start)

    def expand(self, level: int, path: Sequence[Step], start: int = 0) -> Page:
        """What lies in a variable, or in a part of one."""
        self._select(level)
        return expand(self._levels.variables(), path, start)

    def statistics(self, level: int, path: Sequence[Step]) -> str:
        """Statistics of a tensor or array: only this reads data."""
        self._select(level)
        return statistics(value_at(self._levels.variables(), path))

    def complete(self, level: int, text: str) -> dict[str, Any]:
        """The names that may follow a line's text up to the cursor."""
        self._select(level)
        return completions(text, self._levels.variables(), self._levels.module())

    # texts

    def functions(self, filter: str = "") -> list[str]:
        """The names of the functions that can be opened."""
        wanted = filter.casefold()
        return [name for name in functions(self._levels) if wanted in name.casefold()][:_MOST_NAMES]

    def function(self, name: str) -> dict[str, Any]:
        """A function's text, for the editor."""
        code = functions(self._levels).get(name)
        if code is None:
            raise ValueError(f"there is no function {one_line(name, _MAX_LINE)} here")
        text = text_of_function(name, code)
        if text.why_not:
            raise ValueError(f"{one_line(name, _MAX_LINE)} can't be edited: {text.why_not}")
        self._keep(text)
        return {"name": name, "text": text.text, "first_line": text.first_line, "key": text.key}

    def _text(self, level: int, key: str | None) -> Text:
        """The text that is edited: what was given out under a key, or else the frame's."""
        self._select(level)
        known = self._texts.get(key or "")
        return known if known is not None else self._keep(text_of_frame(self._levels, self._cell))

    def preview(
        self, level: int, source: str, restart_at: str | int | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """What a text would do in the place of the one with this key: ``preview`` and ``diff``, or ``refusal``."""
        text = self._text(level, key)
        return preview(self._crash, self._unit(level), text, source, restart_at)

    def refusal(self) -> dict[str, Any] | None:
        """Why the last repair could not be applied."""
        reason = self._crash.refusal
        if reason is not None and (self._refused is None or self._refused[0] != reason):
            self._refused = reason, refusal(reason, self._operated)
            self._operated = None  # the next one may be of a text from elsewhere
        return None if reason is None or self._refused is None else self._refused[1]

    # what is done

    def _unit(self, level: int) -> int:
        """The vaccinated frame that a button acts on: the selected one, or else the crashed one."""
        return self._select(level).unit or 0

    def repair(self, level: int, word: str, **fields: Any) -> Repair:
        """The repair that a button stands for.

        Raises
        ------
        ValueError
            It can't be made of these `fields` (``expression``; ``source``, ``restart_at`` and ``key``).
        """
        unit = self._unit(level)
        kind = ENDINGS.get(word)
        if kind is None:
            raise ValueError(f"there is no ending {word!r}: one of {', '.join(ENDINGS)}")
        self._operated = None
        try:
            if kind is Return:
                return Repair(then=_returned(str(fields.get("expression") or "None")), frame=unit)
            if kind is Surgery:
                self._operated = self._text(level, fields.get("key"))
                source = _translated(self._operated, fields.get("source") or "")
                return Repair(then=Surgery(source, fields.get("restart_at")), frame=unit)
            return replace(Repair.of(kind), frame=0 if kind is Abort else unit)
        except TypeError as error:
            raise ValueError(str(error)) from None

    def act(self, level: int, code: str) -> dict[str, Any]:
        """Run code in a frame: what it printed, gave and raised, and the forms in which its value can be shown."""
        self._select(level)
        rich: list[dict[str, str]] = []

        def show(value: object) -> str:
            rich.extend(_rich(value))
            return show_value(value)

        token = value_shown.set(show)
        try:
            result = self._levels.run(code)
        finally:
            value_shown.reset(token)
        return {
            "level": level,
            "code": code,
            "stdout": result.stdout,
            "value": result.value,
            "error": result.error,
            "note": result.note,
            "rich": rich,
        }


def _translated(text: Text, source: Any) -> Any:
    """The Python of a text; what is no text is refused by `Surgery`."""
    try:
        return text.translate(source) if isinstance(source, str) else source
    except Exception as error:  # of somebody's input transformer
        raise ValueError(error_text(error, _MAX_LINE)) from None


def _returned(expression: str) -> Return:
    problem = problem_of(expression.strip(), "eval")
    if problem is not None:
        raise ValueError(f"the value to return must be an expression: {problem}")
    return Return(expression)


def _rich(value: object) -> list[dict[str, str]]:
    """A value as the notebook would show it, where that is more than text."""
    shell = running_shell()
    if shell is None:
        return []
    from daifu_ipy.frontends.rich_output import shown_part

    shown: dict[str, str] = {}
    with contextlib.suppress(Exception):  # the value's own code; what the action did is done
        shown = shown_part(shell.display_formatter.format(value)[0])
    return [shown] if shown.keys() - {"text/plain"} else []


__all__ = ["MANY_IN_A_ROW", "TOP_LEVEL", "PanelState"]

"""The frames that a prompt moves through: the crashed unit, what it called, and who called it."""

from __future__ import annotations

import itertools
import linecache
import os
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from daifu_ipy.engine.action import ActionResult, Namespace, run_action
from daifu_ipy.engine.action_code import parse_action
from daifu_ipy.engine.crash import Crash, CrashFrame, transform_action
from daifu_ipy.engine.frames import forget, look
from daifu_ipy.engine.native import barrier_in, stands_aside
from daifu_ipy.engine.scopes import HIDDEN, scope_of
from daifu_ipy.repair.frame_record import FrameRecord
from daifu_ipy.repair.places import label
from daifu_ipy.repair.recording import user_entries

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""Where the files of this package lie."""

_HIDES = "__tracebackhide__"
_BOTTOM = "__ipython_bottom__"


class Units:
    """The vaccinated frames of a crash by number. They are captured only as far out as is asked for."""

    def __init__(self, crash: Crash) -> None:
        self._crash: Crash | None = crash
        self._known: dict[int, int | None] = {}  # by frame, which lives as long as the crash waits

    def number_of(self, frame: FrameType) -> int | None:
        """Which of them a frame is."""
        key = id(frame)
        if key not in self._known and self._crash is not None:
            self._known[key] = self._search(self._crash, frame)
        return self._known.get(key)

    def _search(self, crash: Crash, frame: FrameType) -> int | None:
        for number in itertools.count():
            unit = crash.frame(number)
            if unit is None or unit.frame is frame:
                return None if unit is None else number
        return None

    def let_go(self) -> None:
        """Keep nothing of the crash."""
        self._crash = None
        self._known.clear()


@dataclass(frozen=True)
class Level:
    """One frame, and the line and instruction that it executes."""

    frame: FrameType
    line: int
    lasti: int
    units: Units

    @property
    def is_vaccinated(self) -> bool:
        """Whether its code is; in rare places even such a frame can't go on, and then `unit` is None."""
        return barrier_in(self.frame.f_code) is not None

    @property
    def unit(self) -> int | None:
        """Its number among the vaccinated frames of the crash; None if it is none of them."""
        return self.units.number_of(self.frame) if self.is_vaccinated else None

    @property
    def name(self) -> str:
        """What the frame's code is called."""
        return self.frame.f_code.co_qualname

    @property
    def place(self) -> str:
        """Where it is: ``train, Cell In[3], line 5``."""
        is_cell = self.name == "<module>" and label(self.frame.f_code.co_filename) is not None
        return ", ".join([*([] if is_cell else [self.name]), self.file, f"line {self.line}"])

    @property
    def file(self) -> str:
        """What a user calls its file or notebook cell."""
        record = FrameRecord(self.frame.f_code.co_filename, self.line, self.name)
        return label(record.filename) or record.short_filename

    @property
    def source(self) -> str:
        """The executing line."""
        return linecache.getline(self.frame.f_code.co_filename, self.line, self.frame.f_globals).strip()


class Levels:
    """All frames, outermost first, and which one is selected (`index`): at first the crashed unit's (`crashed`)."""

    def __init__(self, crash: Crash) -> None:
        self._crash: Crash | None = crash
        units = self._units = Units(crash)
        innermost = crash.innermost
        crashed = innermost.frame if innermost is not None else None
        traceback = crash.stack
        line = traceback.tb_lineno if traceback is not None else crash.restart.line
        self.all: list[Level] = []
        if crashed is not None:
            outer = [*_callers(crash, crashed)][::-1]
            self.all += [Level(frame, frame.f_lineno, frame.f_lasti, units) for frame in outer]
            lasti = traceback.tb_lasti if traceback is not None else crashed.f_lasti
            self.all.append(Level(crashed, line or crash.restart.line, lasti, units))
        self._looked: set[int] = set()
        self.index = self.crashed = len(self.all) - 1
        inner = traceback.tb_next if traceback is not None else None
        entries = [entry for entry in user_entries(inner) if not _hides(entry.tb_frame)]
        self.all += [Level(entry.tb_frame, entry.tb_lineno, entry.tb_lasti, units) for entry in entries]

    @property
    def index(self) -> int:
        """Which of them is selected."""
        return self._index

    @index.setter
    def index(self, index: int) -> None:
        self._index = index
        self._looked.add(index)

    @property
    def selected(self) -> Level:
        """The frame that is looked at."""
        return self.all[self.index]

    @property
    def unit(self) -> CrashFrame | None:
        """The selected frame as the engine knows it; None if it is not vaccinated."""
        number = self.selected.unit
        return self._crash.frame(number) if self._crash is not None and number is not None else None

    def variables(self) -> dict[str, Any]:
        """The selected frame's variables as they are now."""
        unit = self.unit
        if unit is None:
            return _visible(dict(self.selected.frame.f_locals))
        if unit.unit.is_notebook_cell:
            return _visible(dict(unit.barrier.namespace))
        unit.look_again() if unit.is_outer else None
        return _visible(unit.view())

    def module(self) -> dict[str, Any]:
        """The namespace of the selected frame's module."""
        return self.selected.frame.f_globals

    def run(self, code: str) -> ActionResult:
        """Run code in the selected frame; in one that is not vaccinated, only what sticks there."""
        level = self.selected
        if self._crash is not None and level.unit is not None:
            return self._crash.action(code, level.unit)
        frame, code = level.frame, transform_action(code)
        at_module = frame.f_locals is frame.f_globals
        lost = [] if at_module else _bound(code)
        if lost:
            names = ", ".join(lost)
            return ActionResult(
                error=f"{level.name} is not vaccinated: {names} would not stick there, so nothing was run"
            )
        known = dict(frame.f_locals)
        space = Namespace(known, {}, frame.f_globals, frozenset(known), module_level=at_module)
        return run_action(code, space)

    def let_go(self) -> None:
        """Keep nothing of the frames, nor the copies of variables that looking at them has left in them."""
        for number, level in enumerate(self.all):
            if number >= self.crashed or number in self._looked:  # not the others: it takes long for large frames
                forget(level.frame)
        self.all.clear()
        self._units.let_go()
        self._crash = None


def _visible(variables: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in variables.items() if name.isidentifier()}


def _bound(code: str) -> list[str]:
    try:
        return sorted(scope_of(parse_action(code, "<action>").body).bound)
    except SyntaxError:
        return []  # which the action says itself


def _callers(crash: Crash, crashed: FrameType) -> Iterator[FrameType]:
    """Who called the crashed unit, innermost first: without our own frames, and those of IPython around a cell."""
    cells = {barrier.unit.plain.co_filename for barrier in crash.barriers if barrier.unit.is_notebook_cell}
    hiding: dict[int, bool] = {}  # by code: to list the variables of a large one takes time
    frame = crashed.f_back
    while frame is not None:
        code = frame.f_code
        stands_for_cell = code.co_name == "<module>" and code.co_filename in cells and barrier_in(code) is None
        if not (_is_ours(frame) or stands_aside(frame) or stands_for_cell):
            if id(code) not in hiding:
                hiding[id(code)] = _HIDES in code.co_varnames
            hides = look(frame, _HIDES) if hiding[id(code)] else None
            if hides == _BOTTOM:
                return
            if not hides:
                yield frame
        frame = frame.f_back


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(OURS) or frame.f_code.co_name.startswith(HIDDEN)


def _hides(frame: FrameType) -> Any:
    """What a frame says about itself in ``__tracebackhide__``."""
    return look(frame, _HIDES) if _HIDES in frame.f_code.co_varnames else None

"""Who answers a crash in IPython: which cell's settings hold for it, and what the cell's output says about it."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TextIO

from daifu_ipy.engine.barrier import Barrier
from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.managers import manager_by_api
from daifu_ipy.engine.repairs import Repair
from daifu_ipy.frontends.choose import describe
from daifu_ipy.frontends.notify import notify
from daifu_ipy.magic.answers import answer
from daifu_ipy.magic.options import CellOptions, Daifu
from daifu_ipy.magic.rule_lines import RuleLines
from daifu_ipy.repair import places
from daifu_ipy.repair.replay import Replay
from daifu_ipy.repair.rules import Rules, read_rules
from daifu_ipy.repair.summary import error_text
from daifu_ipy.repair.view import CrashView

running: ContextVar[CellSettings | None] = ContextVar("daifu_ipy cell", default=None)
"""The settings of the ``%%daifu`` cell that runs."""


@dataclass(eq=False)
class CellSettings:
    """Who answers the crashes of one run of a cell, and where its output goes."""

    rules: Rules
    on_crash: str
    lines: RuleLines
    output: TextIO | None = field(default_factory=lambda: sys.stdout)

    @classmethod
    def of(cls, options: CellOptions, daifu: Daifu) -> CellSettings:
        """The settings of a cell: its own rules come before those of `daifu`."""
        lines = RuleLines(daifu.parent)
        rules = Rules([*options.rules, *read_rules(daifu.rules)], show=lines)
        return cls(rules, options.on_crash or daifu.answer, lines)

    def end(self) -> None:
        """The cell has ended; what crashes later, in a thread or called by another cell, reports to where it is."""
        with _printing_to(self.output):
            self.lines.end()
        self.output = None


class CrashManager:
    """The repair manager of a shell: finds the settings that hold for a crash, and asks as they say.

    Parameters
    ----------
    daifu
        The traits.
    shell
        Its execution count tells one run of a plain cell from the next.
    is_shown
        Whether a front end that has shown a crash says itself what was done about it.
    """

    def __init__(self, daifu: Daifu, shell: Any, is_shown: Callable[[Crash], bool] = lambda crash: False) -> None:
        self._daifu, self._shell, self._is_shown = daifu, shell, is_shown
        self._settings: weakref.WeakKeyDictionary[Barrier, CellSettings] = weakref.WeakKeyDictionary()
        self._of_plain_cell: tuple[int, CellSettings] | None = None
        self._by_rule: weakref.WeakSet[Crash] = weakref.WeakSet()
        self.replay: Replay | None = None

    def adopt(self, barriers: Iterable[Barrier], settings: CellSettings) -> None:
        """Let `settings` hold for the crashes of these units, wherever they are called."""
        for barrier in barriers:
            self._settings[barrier] = settings

    def settings_of(self, crash: Crash) -> CellSettings:
        """Those of the cell that is running; where none is, as in a thread, those of where a function was protected."""
        known = [barrier for barrier in crash.barriers if barrier in self._settings]
        cells = [barrier for barrier in known if barrier.unit.is_notebook_cell]
        for barrier in [*cells[:1], *([] if running.get() else known[-1:])]:
            return self._settings[barrier]
        return running.get() or self._plain()

    def now(self) -> CellSettings:
        """Those of the cell that runs, marked or plain; to look at them leaves no trace."""
        return running.get() or self._held() or CellSettings.of(CellOptions(), self._daifu)

    def outlook(self) -> str:
        """Say what would become of a crash now: ``"is tried by 2 rules, then is aborted"``."""
        if manager_by_api() is not None:
            return "goes to the repair manager that the program has set"
        cell = self.now()
        replayed = "is answered by the replay, or " if self.replay is not None else ""
        return replayed + describe(rules=len(cell.rules.rules), on_crash=cell.on_crash)

    def _plain(self) -> CellSettings:
        made = self._held() or CellSettings.of(CellOptions(), self._daifu)
        self._of_plain_cell = self._shell.execution_count, made
        return made

    def _held(self) -> CellSettings | None:
        """Those that an earlier crash in this plain cell has made."""
        count, made = self._of_plain_cell or (None, None)
        return made if count == self._shell.execution_count else None

    def forget_plain(self) -> None:
        """Read the traits anew for what crashes outside ``%%daifu`` cells."""
        self._of_plain_cell = None

    def __call__(self, crash: Crash) -> Repair:
        """Answer a crash."""
        replayed = None if self.replay is None else self.replay(crash)
        if replayed is not None:
            self._by_rule.discard(crash)
            return replayed
        settings = self.settings_of(crash)
        with _printing_to(settings.output):
            repair = answer(
                crash,
                rules=settings.rules,
                on_crash=settings.on_crash,
                on_wait=self._tell,
                patience=self._daifu.how_patient(),
            )
        (self._by_rule.discard if settings.rules.answered is None else self._by_rule.add)(crash)
        return repair

    def _tell(self, crash: CrashView) -> None:
        """Run the user's hook: somebody is wanted."""
        if self._daifu.on_crash is not None:
            output = sys.stdout
            notify(self._daifu.on_crash, crash, lambda text: print(text, file=output))

    def report(self, crash: Crash, repair: Repair | None, seconds: float, outcome: str) -> None:
        """Say in one line of the cell's output what was done; a rule, and a panel, say it themselves."""
        if outcome != "recovered" or repair is None or crash in self._by_rule or self._is_shown(crash):
            return
        with _printing_to(self.settings_of(crash).output):
            print(report_line(crash, repair))


def report_line(crash: Crash, repair: Repair) -> str:
    """A crash and its repair in one line."""
    return f"daifu: {error_text(crash.exception, 100)}, in {places.place(crash.restart)}: {repair.in_words}"


@contextlib.contextmanager
def _printing_to(output: TextIO | None) -> Iterator[None]:
    """Print to the cell's output, also where the program has redirected its own."""
    if output is None or output is sys.stdout or getattr(output, "closed", False):
        yield
        return
    with contextlib.redirect_stdout(output):
        yield

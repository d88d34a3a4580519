"""What rules do, in one line of output for each rule that is brought up to date in place."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable
from typing import Any

from IPython.display import publish_display_data

from daifu_ipy.repair.rules import Report

SECONDS = 0.2
"""A notebook gets no more than one update in this time, and the last state when the cell ends."""


class RuleLines:
    """Shows the reports of one run of a cell.

    A notebook's output is changed in place, also from threads and after the cell has ended; what is saved has the last
    state. On a terminal or in a log, where the program's own lines come in between, the telling uses have lines.

    Parameters
    ----------
    shell
        Whose outputs they are.
    clock
        Seconds that pass.
    """

    def __init__(self, shell: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._in_place = getattr(shell, "kernel", None) is not None
        self._clock = clock
        self._run = uuid.uuid4().hex
        self._shown: dict[int, float] = {}  # by rule: when
        self._waiting: dict[int, Report] = {}

    def __call__(self, report: Report) -> None:
        """Show a report, or keep it until it is worth it."""
        long_ago = self._in_place and self._clock() - self._shown.get(report.rule, -math.inf) >= SECONDS
        if report.is_milestone or long_ago:
            self._waiting.pop(report.rule, None)
            self._show(report)
        else:
            self._waiting[report.rule] = report

    def end(self) -> None:
        """Show what is kept: no more may come."""
        for rule in list(self._waiting):
            report = self._waiting.pop(rule, None)
            if report is not None:
                self._show(report)

    def _show(self, report: Report) -> None:
        if not self._in_place:
            print(report)
            return
        is_first = report.rule not in self._shown
        self._shown[report.rule] = self._clock()
        publish_display_data(
            {"text/plain": report.text}, transient={"display_id": f"{self._run}-{report.rule}"}, update=not is_first
        )

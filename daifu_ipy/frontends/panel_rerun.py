"""A re-run of the blocked cell. It decides nothing: its request waits, and the panel asks what was meant by it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.repairs import Abort, Refusal, Repair, Surgery
from daifu_ipy.engine.texts import text_of
from daifu_ipy.engine.versions import root_of
from daifu_ipy.frontends.drafts import difference
from daifu_ipy.frontends.held import Held, Request
from daifu_ipy.frontends.panel_end import duration
from daifu_ipy.repair.summary import error_text

NOT_PROTECTED = "this cell's own code is not protected, so that it can't go on with another text"


@dataclass
class Running:
    """The request that the cell which runs began with, when (`time.time`), and the cell's present text."""

    msg_id: str
    started: float
    code: str


@dataclass(frozen=True)
class Cell:
    """The notebook cell that is blocked.

    Parameters
    ----------
    request
        What it was run by.
    started
        When (`time.time`).
    translate
        From a cell's text to the Python that runs.
    """

    request: Request
    started: float
    translate: Callable[[str], str] = str

    def frame_in(self, crash: Crash) -> int | None:
        """The innermost vaccinated frame of a crash whose text stands in this cell."""
        files = [root_of(frame.unit.plain.co_filename) for frame in crash.frames]
        cells = [file for file, frame in zip(files, crash.frames, strict=True) if frame.unit.is_notebook_cell]
        text = self.translate(self.request.code)
        own = cells[-1] if cells else next((file for file in files if text_of(file) == text), None)
        return files.index(own) if own is not None else None


class Rerun:
    """One re-run of it, and what could be done about it.

    Parameters
    ----------
    crash
        The crash that waits.
    cell
        The cell, as it was run first.
    request
        What it was run by again.
    """

    def __init__(self, crash: Crash, cell: Cell, request: Request) -> None:
        self.request = request
        self.changed = cell.request.code != request.code
        self._crash, self._cell = crash, cell
        self._text, self._frame, self._problem = "", None, NOT_PROTECTED
        try:
            self._text = cell.translate(request.code)
            self._frame = cell.frame_in(crash)
        except Exception as error:  # of somebody's input transformer
            self._problem = error_text(error)

    def to_json(self) -> dict[str, Any]:
        """It, as the panel's state has it."""
        old, new = self._cell.request.code, self.request.code
        return {
            "msg_id": self.request.msg_id,
            "changed": self.changed,
            "diff": difference(old, new) if self.changed else [],
            "hours": f"the work of {duration(time.time() - self._cell.started)}",
            **self._outlook(),
        }

    def apply(self, restart_at: str | int | None) -> Repair:
        """Go on with the new text; `ValueError` if that can't be."""
        refusal = self._outlook(restart_at)["refusal"]
        if self._frame is None or refusal is not None:
            raise ValueError(refusal["text"])
        return Repair(then=Surgery(self._text, restart_at), frame=self._frame)

    def restart(self, held: Held) -> Repair:
        """Give the crashed run up, and run the cell anew."""
        held.run_after(self.request.msg_id)
        return Repair(then=Abort())

    @property
    def question(self) -> str:
        """What is asked before that."""
        return f"Give up the crashed run, and with it the work of {duration(time.time() - self._cell.started)}?"

    def _outlook(self, restart_at: str | int | None = None) -> dict[str, Any]:
        if self._frame is None:
            return {"preview": None, "refusal": {"text": self._problem}}
        try:
            preview = self._crash.preview(self._text, restart_at, self._frame)
            return {"preview": asdict(preview), "refusal": None}
        except Exception as error:  # as a repair, it would abort the run
            reason = str(error) if isinstance(error, Refusal) else error_text(error)
            return {"preview": None, "refusal": {"text": reason}}


def rerun_in(held: Held, cell: Cell) -> Request | None:
    """The newest request to run the cell again; its output area is the cell's from now on, also for those before."""
    again = [request for request in held.requests if request.cell_id == cell.request.cell_id]
    for request in again if cell.request.cell_id is not None else ():
        held.adopt(request.msg_id)
    return again[-1] if again and cell.request.cell_id is not None else None

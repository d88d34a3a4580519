"""What pages ask of a crash's panel, and what they are answered: on the crashed thread, until something is decided."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from daifu_ipy.engine import versions as engine
from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.repairs import Abort, Repair
from daifu_ipy.frontends.held import Held
from daifu_ipy.frontends.panel_console import Console
from daifu_ipy.frontends.panel_end import End
from daifu_ipy.frontends.panel_reading import READINGS, Message, level_of, reverted_text, versions_json
from daifu_ipy.frontends.panel_rerun import Cell, Rerun, rerun_in
from daifu_ipy.frontends.panel_state import PanelState
from daifu_ipy.frontends.patience import somebody_works
from daifu_ipy.frontends.rich_output import captured
from daifu_ipy.frontends.sections import SECTIONS, sections_of
from daifu_ipy.frontends.waiting import interruptible
from daifu_ipy.repair.rules import SameHere

T = TypeVar("T")
_log = logging.getLogger(__name__)

ACTS = "an action runs (the stop button stops it)"
REPAIRS = "the repair is being made"
STOP_DECIDES_NOTHING = "The stop button decides nothing: the run waits. Abort ends it."
BY_ITSELF = ("ping", "state")
"""What pages ask for without anybody there."""
AGAIN = "This was refused. Refused again, it would abort the run. Do it?"
"""What the engine does about the same refused repair (law)."""


class PanelSession:
    """One crash and its pages.

    Parameters
    ----------
    crash
        What waits.
    send
        Sends a message to all pages.
    crash_id
        What they know it by.
    cell
        The notebook cell that is blocked, if it is known.
    others
        Gives the other crashes that wait, for the state.
    shown_again
        Called when the cell has got a new output area.
    """

    def __init__(
        self,
        crash: Crash,
        send: Callable[[dict[str, Any]], object],
        *,
        crash_id: str = "",
        cell: Cell | None = None,
        others: Callable[[], list[dict[str, Any]]] = list,
        shown_again: Callable[[], object] = lambda: None,
    ) -> None:
        self._crash, self._send, self._crash_id, self._cell = crash, send, crash_id, cell
        self._others, self._shown_again = others, shown_again
        self.client = cell.request.client if cell is not None else ""
        self.answered_at, self.times = time.perf_counter(), 1
        self._state = PanelState(crash, cell)
        self._phase, self._doing, self._version = "waiting", "", 1
        self._overview: dict[str, Any] | None = None
        self._drafts: dict[str, str] = {}
        self._console = Console()
        self._held: Held | None = None
        self._queued = 0
        self._rerun: Rerun | None = None
        self._rerun_json: dict[str, Any] | None = None
        self._sent: Repair | None = None
        self._here = self._heard = False
        self._by_rerun = ""
        self._answer: Repair | SameHere | None = None

    # messages

    def obey(self, message: Message) -> Repair | SameHere | None:
        """Do what a page asks, and reply; gives the answer to the crash, if that is what it is."""
        kind, name = message.get("kind"), message.get("id")
        self._heard = True
        if name is None:
            self._told(kind)
            return None
        try:
            with contextlib.nullcontext() if kind in BY_ITSELF else somebody_works():
                result = {"ok": True, **self._done(str(kind), message)}
        except ValueError as error:
            result = {"ok": False, "error": str(error)}
        except Exception as error:
            result = {"ok": False, "error": self._fault(error)}
        self._post({"kind": "reply", "id": name, **result})
        answer, self._answer = self._answer, None
        if answer is not None:
            self._here, self.answered_at = True, time.perf_counter()
            self._phase, self._doing = "working", REPAIRS
            self.broadcast()
        return answer

    def _done(self, kind: str, message: Message) -> dict[str, Any]:
        if kind in READINGS:
            return READINGS[kind](self._state, message)
        if kind not in self._handlers:
            raise ValueError(f"{kind!r} is not known: page and kernel run different versions of daifu_ipy")
        return self._handlers[kind](self, message)

    def tick(self, held: Held) -> None:
        """Look for re-runs of the cell, and for cells that wait."""
        self._held = held
        if self._heard:  # a subshell that has handled a message says that the kernel is idle
            held.busy()
            self._heard = False
        request = rerun_in(held, self._cell) if self._cell is not None else None
        if request is not None and self._cell is not None:
            self.client = request.client
            self._shown_again()
            self._rerun, self._rerun_json = Rerun(self._crash, self._cell, request), None
        if request is not None or len(held.requests) != self._queued:
            self._queued = len(held.requests)
            self.broadcast()

    def refused(self) -> None:
        """The crash is asked about again: what was sent last could not be applied."""
        self._here, self._by_rerun = False, ""
        self._phase, self._doing = "waiting", ""
        self._changed()

    def answered(self, answer: Repair | SameHere) -> None:
        """An answer was given, here or elsewhere."""
        self._sent = answer.repair if isinstance(answer, SameHere) else answer
        self.times = (answer.times or 1) if isinstance(answer, SameHere) else 1
        if not self._here:
            self.answered_at = time.perf_counter()

    @property
    def new_text(self) -> str | None:
        """The cell's text that the answer goes on with, if it is that of a re-run."""
        return self._rerun.request.code if self._rerun is not None and self._by_rerun == "apply" else None

    @property
    def left_out(self) -> bool:
        """Whether the cell was run again with another text, and the answer does not heed it."""
        return self._rerun is not None and self._rerun.changed and not self._by_rerun

    def has_sent(self, repair: Repair) -> bool:
        """Whether this is what a page has answered."""
        return self._here and repair == self._sent

    def broadcast(self) -> None:
        """Tell all pages how things stand; nothing is lost if that fails."""
        self._version += 1
        try:
            self._send({"kind": "state", "state": self.state()})
        except Exception:
            _log.exception("the panel's pages could not be told how things stand")

    def state(self) -> dict[str, Any]:
        """The whole of it."""
        if self._overview is None:
            self._overview = self._state.overview()
        return self._filled(
            phase=self._phase,
            doing=self._doing,
            **self._overview,
            refusal=self._state.refusal(),
            queued=self._queued,
            others=self._others(),
            rerun=self._rerun_state(),
            sections=sections_of(self._crash),
        )

    def _filled(self, **fields: Any) -> dict[str, Any]:
        """A state with these fields; the others say that there is nothing."""
        return {
            "version": self._version,
            "crash_id": self._crash_id,
            "doing": "",
            "refusal": None,
            "drafts": self._drafts,
            "console": self._console.entries,
            "queued": 0,
            "others": [],
            "rerun": None,
            "sections": [],
            "end": None,
            "output": {"lost": False, "items": []},
            **fields,
        }

    def end(self, end: End) -> dict[str, Any]:
        """The last state; from now on nothing of the crash is held."""
        self._version += 1
        final = self._filled(phase=end.outcome, **{**self._known(), "frames": []}, end=end.to_json())
        self.let_go()
        return final

    @property
    def progress(self) -> list[dict[str, Any]]:
        """Where the loops stand, as the state has it."""
        progress: list[dict[str, Any]] = self._known()["progress"]
        return progress

    def _known(self) -> dict[str, Any]:
        try:
            return self._overview or self._state.overview()
        except Exception:
            return {"crash": {}, "progress": [], "selected": 0}

    def let_go(self) -> None:
        """Hold nothing of the crash."""
        self._state.let_go()
        del self._crash, self._state, self._others, self._shown_again
        self._held = self._rerun = self._sent = self._answer = None

    # what is not a request

    def _told(self, kind: object) -> None:
        if kind == "sigint":
            self._console.add(note=STOP_DECIDES_NOTHING)
            self.broadcast()
        elif kind == "refresh":
            self.broadcast()

    def _fault(self, error: Exception) -> str:
        """A fault of our own: it is shown, and the crash goes on waiting."""
        _log.exception("a request of the panel failed", exc_info=error)
        text = f"internal error: {type(error).__name__}: {error}"
        self._console.add(error=text)
        self.broadcast()
        return text

    def _post(self, message: dict[str, Any]) -> None:
        try:
            self._send(message)
        except Exception:
            _log.exception("the panel could not be reached")

    def _changed(self) -> None:
        """Something of the program ran: what is known of it is no longer true."""
        self._overview = self._rerun_json = None
        self.broadcast()

    def _work(self, doing: str, do: Callable[[], T]) -> T:
        """Do what may take long: pages are told so, and the stop button stops it."""
        done: list[T] = []
        self._phase, self._doing = "working", doing
        self.broadcast()
        try:
            with contextlib.suppress(KeyboardInterrupt), interruptible():
                done.append(do())
        finally:
            self._phase, self._doing = "waiting", ""
            self._changed() if not done else None
        if not done:
            raise ValueError("it was stopped")
        return done[0]

    def _rerun_state(self) -> dict[str, Any] | None:
        if self._rerun is not None and self._rerun_json is None:
            self._rerun_json = self._rerun.to_json()
        return self._rerun_json if self._rerun is not None else None

    # requests

    def _ask_state(self, message: Message) -> dict[str, Any]:
        return {"state": self.state()}

    def _ping(self, message: Message) -> dict[str, Any]:
        return {"version": self._version, "phase": self._phase}

    def _statistics(self, message: Message) -> dict[str, Any]:
        level, path = level_of(message), message["path"]
        return {"text": self._quietly(lambda: self._state.statistics(level, path))}

    def _draft(self, message: Message) -> dict[str, Any]:
        self._drafts = {**self._drafts, str(message["key"]): str(message["text"])}
        return {}

    def _action(self, message: Message) -> dict[str, Any]:
        level, code = level_of(message), str(message["code"])
        result: dict[str, Any] = {}
        with captured() as shown:
            try:
                result = self._work(ACTS, lambda: self._state.act(level, code))
            except ValueError as error:
                result["error"] = str(error)
        printed, rich = result.pop("stdout", "") + shown.errors, [*result.pop("rich", ()), *shown.rich]
        entry = self._console.add(**{"level": level, "code": code, **result}, stdout=printed, rich=rich)
        self._changed()
        return {"entry": entry}

    def _save(self, message: Message) -> dict[str, Any]:
        from daifu_ipy.repair.saving import save_first

        path = message.get("path") or None
        return {"text": self._quietly(lambda: str(save_first(self._crash, path)), "the state is being saved")}

    def _versions(self, message: Message) -> dict[str, Any]:
        if "revert" in message:
            text = reverted_text(int(message["revert"]["number"]))
            self._changed()
            return {"text": text, "versions": versions_json()}
        if "diff" in message:
            return {"diff": engine.diff(int(message["diff"]["number"])).splitlines()}
        return {"versions": versions_json()}

    def _section(self, message: Message) -> dict[str, Any]:
        section = next((one for one in SECTIONS if one.name == message["name"]), None)
        command = section.commands.get(message["command"]) if section is not None else None
        if section is None or command is None:
            raise ValueError(f"there is no {message['name']} with {message['command']!r} here any more")
        values = dict(message.get("values") or {})
        text = self._work(f"{section.title} works", lambda: command(self._crash, values))
        self._changed()
        return {"text": text}

    def _quietly(self, do: Callable[[], T], doing: str = "the data is being read") -> T:
        """As `_work`, for what changes nothing."""
        done = self._work(doing, do)
        self.broadcast()
        return done

    # decisions

    def _decide(self, message: Message) -> dict[str, Any]:
        repair = self._repair(message)
        times = message.get("times")
        answer = SameHere(repair, int(times)) if times else repair
        return self._decided(repair, answer, message)

    def _repair(self, message: Message) -> Repair:
        asked = message["repair"]
        if "word" not in asked:
            return Repair.from_json(asked)
        fields = {"key": message.get("key"), **asked}
        return self._state.repair(level_of(message), str(fields.pop("word")), **fields)

    def _decided(self, repair: Repair, answer: Repair | SameHere, message: Message) -> dict[str, Any]:
        if repair == self._crash.refused and not message.get("sure") and not isinstance(repair.then, Abort):
            return {"ask": AGAIN}
        self._answer = answer
        return {}

    def _rerun_answer(self, message: Message) -> dict[str, Any]:
        rerun, word = self._rerun, message.get("answer")
        if rerun is None or rerun.request.msg_id != message.get("msg_id"):
            raise ValueError("the cell was not run again, or once more since")
        if word == "apply":
            repair = rerun.apply(message.get("restart_at"))
            result = self._decided(repair, repair, message)
            self._by_rerun = word if self._answer is not None else ""
            return result
        if word == "forget":
            self._rerun = None
            self.broadcast()
            return {}
        if word != "restart" or self._held is None:
            raise ValueError(f"the answer to a re-run is apply, restart or forget, not {word!r}")
        if not message.get("sure"):
            return {"ask": rerun.question}
        self._answer, self._by_rerun = rerun.restart(self._held), word
        return {}

    _handlers: ClassVar[dict[str, Callable[[PanelSession, Message], dict[str, Any]]]] = {
        "state": _ask_state,
        "ping": _ping,
        "statistics": _statistics,
        "action": _action,
        "draft": _draft,
        "decide": _decide,
        "save": _save,
        "versions": _versions,
        "rerun": _rerun_answer,
        "section": _section,
    }

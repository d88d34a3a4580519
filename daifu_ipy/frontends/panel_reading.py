"""What pages read of a crash: its frames, variables and texts. Nothing of the program is changed by it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from daifu_ipy.engine import versions as engine
from daifu_ipy.engine.documents import name_of

if TYPE_CHECKING:
    from daifu_ipy.frontends.panel_state import PanelState

Message: TypeAlias = Mapping[str, Any]
Reading: TypeAlias = "Callable[[PanelState, Message], dict[str, Any]]"


def level_of(message: Message) -> int:
    """The frame that a message is about."""
    level = message.get("level")
    if not isinstance(level, int) or isinstance(level, bool):
        raise ValueError(f"a frame is named by its number, not by {level!r}")
    return level


def _frame(state: PanelState, message: Message) -> dict[str, Any]:
    return {"frame": state.frame(level_of(message))}


def _variables(state: PanelState, message: Message) -> dict[str, Any]:
    return state.variables(level_of(message), int(message.get("start") or 0), str(message.get("filter") or ""))


def _expand(state: PanelState, message: Message) -> dict[str, Any]:
    return state.expand(level_of(message), message["path"], int(message.get("start") or 0))


def _complete(state: PanelState, message: Message) -> dict[str, Any]:
    return state.complete(level_of(message), str(message["text"]))


def _functions(state: PanelState, message: Message) -> dict[str, Any]:
    return {"names": state.functions(str(message.get("filter") or ""))}


def _function(state: PanelState, message: Message) -> dict[str, Any]:
    return state.function(str(message["name"]))


def _preview(state: PanelState, message: Message) -> dict[str, Any]:
    return state.preview(level_of(message), str(message["source"]), message.get("restart_at"), message.get("key"))


READINGS: dict[str, Reading] = {
    "frame": _frame,
    "variables": _variables,
    "expand": _expand,
    "complete": _complete,
    "functions": _functions,
    "function": _function,
    "preview": _preview,
}


def versions_json() -> list[dict[str, Any]]:
    """The surgeries that were made, oldest first; the newest that was not taken back is the present code."""
    made = engine.all()
    present = next((version.number for version in reversed(made) if not version.reverted), None)
    return [
        {
            "number": version.number,
            "unit": ", ".join(version.replaced) or version.unit,
            "filename": name_of(version.file),
            "time": datetime.datetime.fromisoformat(version.time).timestamp(),
            "current": version.number == present,
            "reverted": version.reverted,
        }
        for version in made
    ]


def reverted_text(number: int) -> str:
    """Take a surgery back; what was done, in words."""
    done = engine.revert(number)
    names = ", ".join(done.functions) or "nothing"
    return "\n".join([f"surgery {number} is taken back: {names} as before", *done.left])

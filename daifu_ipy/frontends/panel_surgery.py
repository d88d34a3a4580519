"""What a surgery would do, and why one was refused, with lines counted as in the file that the editor shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from daifu_ipy.engine.choices import Preview
from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.frontends.drafts import counted_from, difference, line_in
from daifu_ipy.frontends.panel_detail import Text
from daifu_ipy.repair.summary import error_text, one_line

_MAX_REASON = 2_000
_MAX_LINE = 160


def preview(crash: Crash, unit: int, old: Text, source: str, restart_at: str | int | None) -> dict[str, Any]:
    """What `source`, typed in the place of `old`, would do: what changes, and where the run could go on; or why not.

    A `restart_at` among the choices counts lines as `Surgery` does, from the first one of `source`.
    """
    if source.strip() == old.text.strip():
        return {"refusal": refusal("the text is as it was: nothing would change", old)}
    try:
        found = crash.preview(old.translate(source), restart_at, unit)
    except Refusal as reason:
        return {"refusal": refusal(str(reason), old)}
    except Exception as error:  # sent as a repair it would abort the run
        return {"refusal": refusal(error_text(error, _MAX_REASON), old)}
    return {"preview": _in_file(found, old.first_line), "diff": difference(old.text, source)}


def refusal(reason: str, text: Text | None) -> dict[str, Any]:
    """Why a repair is refused, and at which line of the text, if it speaks of one."""
    first = 1 if text is None else text.first_line
    line = None if text is None else line_in(reason)
    shown = one_line(counted_from(reason, first), _MAX_REASON)
    return {
        "text": shown,
        "line": None if line is None else line + first - 1,
        "key": None if text is None else text.key,
    }


def _in_file(found: Preview, first: int) -> dict[str, Any]:
    made = asdict(found)
    for place in (made, *made["choices"]):
        place["line"] += first - 1
        place["statement"] = one_line(place["statement"], _MAX_LINE)
        place["reason"] = one_line(counted_from(place["reason"], first), _MAX_REASON)
    return made

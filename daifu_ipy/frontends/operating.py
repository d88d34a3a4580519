"""Surgery at the prompt: write the new text, see what it would do, choose where to go on."""

from __future__ import annotations

import difflib
import linecache
import os
from collections.abc import Callable
from typing import Any

from daifu_ipy.engine.crash import Crash, CrashFrame
from daifu_ipy.engine.repairs import Refusal, Surgery
from daifu_ipy.frontends.drafts import (
    Draft,
    difference,
    first_line,
    present_text,
    preview_lines,
    read_draft,
    shown_line,
)
from daifu_ipy.frontends.levels import Level
from daifu_ipy.frontends.terminal import edit

END = "END"
APPLY = "apply? [y/N, e(dit) again, or where to go on: crash, edit, LINE] "


class Surgeon:
    """Gets the new text for one frame, and makes a `Surgery` of it that the user has agreed to.

    Parameters
    ----------
    crash, level
        The crash, and the frame whose text is changed: a unit, or a helper that is not vaccinated.
    unit
        That frame as the engine knows it; None if it is not vaccinated.
    ask, read_lines, say
        Get one line; get lines up to a given one, or None; show text.
    can_edit
        Whether an editor can be opened.
    """

    def __init__(
        self,
        crash: Crash,
        level: Level,
        unit: CrashFrame | None,
        ask: Callable[[str], str],
        read_lines: Callable[[str], str | None],
        say: Callable[[str], object],
        *,
        can_edit: bool,
    ) -> None:
        self._crash, self._level = crash, level
        self._ask, self._read_lines, self._say, self._can_edit = ask, read_lines, say, can_edit
        self._unit = unit
        self._old = present_text(self._unit, level.frame)

    def operate(self, path: str, draft: Draft) -> Surgery | None:
        """The surgery; None if nothing is to be done. What the user has written is in `draft` then."""
        path = path.strip("'\"")
        text = self._read(path) if path else self._write(draft)
        while text is not None:
            if text.strip() in ("", self._old.strip()):
                self._say("nothing was changed: nothing is applied")
                if self._can_edit and not path:  # the draft itself was emptied
                    draft.discard()
                return None
            if path and draft.text not in (None, text):
                self._say(f"your last text is in {draft.keep()}")
            draft.take(text)
            answer = self._chosen(text)
            if isinstance(answer, Surgery):
                draft.discard(keep_text=True)
                return answer
            if answer == "kept":
                kept = path or draft.keep()
                self._say(f"not applied; your text is kept: surgery opens it again, and it is in {kept}")
                return None
            path, text = "", self._write(draft)
        return None

    def preview(self, path: str) -> None:
        """Show what the text of a file would do."""
        text = self._read(path.strip("'\""))
        if text is not None:
            self._show(text)

    def _read(self, path: str) -> str | None:
        path = os.path.expanduser(path)
        try:
            return read_draft(path)
        except (OSError, UnicodeDecodeError) as error:
            self._say(f"can't read {path}: {error}")
            return None

    def _write(self, draft: Draft) -> str | None:
        if self._can_edit:
            return self._edit(draft)
        if draft.text is not None:
            self._say(f"your last text is in {draft.keep()}")
        self._say(f"type the new text of {self._level.name}; a line {END} ends it, Ctrl-C drops it")
        return self._read_lines(END)

    def _edit(self, draft: Draft) -> str | None:
        if draft.text is None:
            draft.text = self._old
        path = draft.keep()
        try:
            edit(path, max(self._level.line - first_line(self._unit, self._level.frame.f_code) + 1, 1))
        except OSError as error:
            self._say(f"can't start the editor ({error}): set EDITOR, or surgery FILE")
            return None
        text = self._read(path)
        if text is None:  # what was written there stays there
            draft.path = None
        else:
            draft.text = text
        return text

    def _show(self, text: str, restart_at: str | int | None = None) -> bool:
        """Show the change and what it would do; False if it would be refused."""
        for line in difference(self._nearest(text), text):
            self._say(line)
        options: dict[str, Any] = {} if restart_at is None else {"restart_at": restart_at}
        options |= {"frame": self._level.unit} if self._level.unit else {}
        try:
            preview = self._crash.preview(text, **options)
        except Exception as error:  # sent as a repair it would be refused, or abort the run
            reason = str(error) if isinstance(error, Refusal) else f"{type(error).__name__}: {error}"
            self._say(f"refused: {reason}")
            self._say(shown_line(reason, text) or "") if shown_line(reason, text) else None
            return False
        for line in preview_lines(preview):
            self._say(line)
        return True

    def _nearest(self, text: str) -> str:
        """What the text is to be compared with: the unit, or the whole file that holds it."""
        lines = text.splitlines()
        whole = "".join(linecache.getlines(self._level.frame.f_code.co_filename))
        return max(
            (self._old, whole),
            key=lambda old: difflib.SequenceMatcher(None, old.splitlines(), lines, autojunk=False).quick_ratio(),
        )

    def _chosen(self, text: str) -> Surgery | str:
        """The surgery that the user agrees to; or that the text is to be edited again, or kept."""
        restart_at: str | int | None = None
        while True:
            shown = self._show(text, restart_at)
            if not shown and restart_at is not None:  # only this place is refused
                restart_at = None
                continue
            try:
                reply = self._ask(APPLY if shown else "e(dit) again? [y/N] ").strip().lower()
            except (EOFError, KeyboardInterrupt):
                return "kept"
            if not shown:
                return "edit again" if reply in ("y", "yes", "e") else "kept"
            if reply in ("y", "yes"):
                return Surgery(text, restart_at)
            if reply == "e":
                return "edit again"
            if reply not in ("crash", "edit") and not (reply.isdecimal() and int(reply)):
                return "kept"
            restart_at = int(reply) if reply.isdecimal() else reply

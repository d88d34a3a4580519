"""Pdb over a crash: its commands look at the frames, and what is typed changes the crashed variables for good."""

from __future__ import annotations

import builtins
import cmd
import pdb
import sys
from collections.abc import Callable
from typing import Any

from daifu_ipy.engine.crash import Crash
from daifu_ipy.frontends import typed
from daifu_ipy.frontends.completion import candidates
from daifu_ipy.frontends.levels import Levels
from daifu_ipy.frontends.terminal import CannotAsk, ask_by_toolkit, printed
from daifu_ipy.frontends.typed import first_word, is_about, is_incomplete, nearest, problem_of
from daifu_ipy.repair.summary import one_line

MORE = "  ...> "

_MAX_LINE = 160

_STEPS = "a crashed run can't be stepped through: pass runs the statement again, skip leaves it out"
_BREAKPOINTS = "a crashed run has no breakpoints; break (in full) goes on after the loop"
_FRAMES = "w shows all frames"
NOT_HERE: dict[str, str] = {
    **dict.fromkeys(["s", "step", "n", "next", "unt", "until"], _STEPS),
    **dict.fromkeys(["b", "tbreak", "cl", "clear", "condition", "commands", "ignore", "enable"], _BREAKPOINTS),
    **dict.fromkeys(["skip_hidden", "skip_predicates", "ignore_module", "unignore_module", "context"], _FRAMES),
    "disable": _BREAKPOINTS,
    "r": "return (in full) leaves the function with a value; pass runs the statement again",
    **dict.fromkeys(["j", "jump"], "skip, continue, break and surgery go on elsewhere"),
    **dict.fromkeys(["run", "restart"], "nothing starts anew here: pass goes on, abort ends the run"),
    **dict.fromkeys(["rv", "retval"], "nothing has returned: it crashed"),
    "debug": "no debugger inside the debugger; p CALL tries a call",
    **dict.fromkeys(["exceptions", "exception"], "stack shows what caused the exception"),
}
"""Pdb's commands that make no sense after a crash, and what to type instead."""


class CrashPdb(pdb.Pdb):
    """Looks at the frames of a crash, and runs what is typed in them.

    Python goes through `crash.action`, so that an assignment sticks. Where IPython runs, a class is made of this
    one and of the shell's own Pdb (`prompt.debugger`).
    """

    def __init__(self, crash: Crash, ask: Callable[[str], str] | None = None) -> None:
        super().__init__(nosigint=True)
        self.crash, self._ask = crash, ask
        self.levels = Levels(crash)
        self._line = ""
        self.variables: dict[str, Any] = {}
        self._displayed: dict[str, str] = {}
        self._matches: list[str] = []
        self.lineno: int | None = None
        self._refresh()
        for line in self.rcLines:
            if line.split()[:1] == ["alias"]:
                self.do_alias(line.partition(" ")[2])

    # asking

    def ask(self, prompt: str) -> str:
        """Get a line.

        Raises
        ------
        CannotAsk
            If stdin itself fails, as it does where a kernel's request does not allow it.
        """
        try:
            return self._asked(prompt)
        except EOFError:
            raise
        except Exception as error:
            raise CannotAsk(f"can't ask here ({type(error).__name__}: {error})") from None

    def _asked(self, prompt: str) -> str:
        session = getattr(self, "pt_app", None)
        if self._ask is not None or session is None:
            return (self._ask or input)(prompt)
        completer = self._ptcomp.ipy_completer  # type: ignore[attr-defined]
        completer.namespace, completer.global_namespace = self.variables, self.levels.module()
        return ask_by_toolkit(session, prompt)

    def read_block(self, line: str) -> str | None:
        """Read on while the Python is incomplete; a block ends at a blank line. None if Ctrl-C dropped it."""
        lines = [line]
        while is_incomplete("\n".join(lines)):
            try:
                lines.append(self.ask(MORE))
            except EOFError:
                break
            except KeyboardInterrupt:
                self.message("(dropped)")
                return None
        return "\n".join(lines)

    def read_lines(self, end: str) -> str | None:
        """Read lines up to a line `end`. None if Ctrl-C dropped them."""
        lines: list[str] = []
        while True:
            try:
                line = self.ask(MORE)
            except EOFError:
                return "\n".join(lines)
            except KeyboardInterrupt:
                self.message("(dropped)")
                return None
            if line.strip() == end:
                return "\n".join(lines)
            lines.append(line)

    # what a line does

    def obey(self, line: str) -> None:
        """Do what a line says."""
        with printed(getattr(self, "shell", None), self.message):
            self._line = self._translated(line)
            cmd.Cmd.onecmd(self, self._line)  # Pdb's own looks after breakpoints and changed files
        self._refresh()

    def _translated(self, line: str) -> str:
        word, text = first_word(line), line.strip()
        if word in self.aliases or (";;" in line and problem_of(text) is not None):
            return super().precmd(line)
        name = text.strip("?")
        if text != name and name.replace(".", "").isidentifier():
            return f"pinfo2 {name}" if "??" in text else f"pinfo {name}"
        return line

    def parseline(self, line: str) -> tuple[str | None, str | None, str]:
        """Divide a line into a command and the rest; Python is no command."""
        if self.is_python(line):
            return None, None, line.strip()
        return super().parseline(line)

    def is_python(self, line: str) -> bool:
        """Whether a line is meant as Python although it starts like a command."""
        return line.strip()[:1] in ("!", "%") or typed.is_python(line, self.names())

    def names(self) -> dict[str, Any]:
        """What exists in the selected frame."""
        return {**self.levels.module(), **self.variables}

    def emptyline(self) -> bool:
        """Enter repeats what only looks; never a statement."""
        if first_word(self.lastcmd) in ("l", "list", "u", "up", "d", "down"):
            self.onecmd(self.lastcmd)
        return False

    def default(self, line: str) -> None:
        """Run Python in the selected frame."""
        if line[:1] == "!" and (not self._has_shell or is_about(line[1:].strip(), self.names())):
            line = line[1:].strip()
        code = self.read_block(line)
        if code is None or not code.strip():
            return
        for_shell = self._has_shell and code.lstrip()[0] in "!%?"
        problem = None if for_shell else self._unknown(code) or problem_of(code)
        if problem is None:
            self.act(code)
        else:
            self.error(f"neither a command nor Python: {problem}{self._suggestion(code)} (help lists the commands)")

    def _unknown(self, code: str) -> str | None:
        word = code.strip()
        if word.isidentifier() and word not in self.names() and not hasattr(builtins, word):
            return None if problem_of(word) else f"there is no variable {word}"
        return None

    def _suggestion(self, code: str) -> str:
        found = nearest(first_word(code), self.commands_here())
        return f"; did you mean {found}?" if found else ""

    def commands_here(self) -> list[str]:
        """The words that do something here."""
        return [name[3:] for name in dir(self) if name.startswith("do_") and name[3:] not in NOT_HERE]

    def act(self, code: str) -> None:
        """Run code in the selected frame and show what came of it; its output was shown already."""
        result = self.levels.run(code)
        for text in (result.value, result.error, result.note):
            if text is not None:
                self.message(text)

    def _not_here(self, arg: str) -> None:
        word = first_word(self._line)
        if word in self.variables and not arg:
            self.default(word)
        else:
            self.error(f"{word}: {NOT_HERE[word]}")

    # frames

    def _refresh(self) -> None:
        level = self.levels.selected
        self.stack = [(level.frame, level.line) for level in self.levels.all]
        self.curindex, self.curframe = self.levels.index, level.frame
        self.curframe_locals = self.variables = self.levels.variables()

    @property
    def _curframe_locals(self) -> dict[str, Any]:
        """Where IPython's Pdb looks names up."""
        return self.variables

    def set_convenience_variable(self, frame: Any, name: str, value: Any) -> None:
        """Pdb would put these into the program's module."""

    def _move(self, steps: int) -> None:
        index = self.levels.index + steps
        if not 0 <= index < len(self.levels.all):
            self.error("Oldest frame" if steps < 0 else "Newest frame")
            return
        self.levels.index, self.lineno = index, None
        self._show_level(index)

    def _show_level(self, index: int) -> None:
        level = self.levels.all[index]
        mark = ">" if index == self.levels.index else " "
        repairable = "" if level.unit is None else "  [vaccinated]"
        self.message(f"{mark} {one_line(level.place, _MAX_LINE)}{repairable}")
        self.message(f"    {one_line(level.source, _MAX_LINE)}")

    def do_where(self, arg: str) -> None:
        """w(here): show all frames; what is typed runs in the one marked by >."""
        for index in range(len(self.levels.all)):
            self._show_level(index)

    do_w = do_bt = do_where

    def do_up(self, arg: str) -> None:
        """u(p) [COUNT]: select the frame that called this one."""
        self._move(-int(arg) if arg.isdecimal() else -1)

    do_u = do_up

    def do_down(self, arg: str) -> None:
        """d(own) [COUNT]: select the frame that this one called."""
        self._move(int(arg) if arg.isdecimal() else 1)

    do_d = do_down

    @property
    def _has_shell(self) -> bool:
        return getattr(self, "shell", None) is not None

    def complete(self, text: str, state: int) -> str | None:  # type: ignore[override]  # typeshed means another
        """What may follow, for readline: its `state`-th candidate."""
        if state == 0:
            line = sys.modules["readline"].get_line_buffer()
            self._matches = candidates(text, line, self.names(), self.commands_here())
        return self._matches[state] if state < len(self._matches) else None

    def let_go(self) -> None:
        """Keep nothing of the frames."""
        self.levels.let_go()
        self.forget()
        self.curframe_locals = self.variables = {}
        self._matches.clear()
        for name in ("_skip_cache", "_parent_skip_cache"):
            getattr(self, name, {}).clear()
        completer = getattr(getattr(self, "_ptcomp", None), "ipy_completer", None)
        if completer is not None:
            completer.namespace, completer.global_namespace = {}, {}
        for name, end in (("thread_executor", "shutdown"), ("pt_loop", "close")):
            getattr(getattr(self, name, None), end, lambda: None)()


for _word in NOT_HERE:
    setattr(CrashPdb, f"do_{_word}", CrashPdb._not_here)

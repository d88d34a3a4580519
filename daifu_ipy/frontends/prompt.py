"""A minimal repair prompt over stdin, for a script or IPython on a tty and for a kernel that allows stdin."""

from __future__ import annotations

import ast
import codeop
import os
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from daifu_ipy.engine.repairs import Abort, Break, Continue, Ending, Pass, Repair, Return, Skip, Surgery
from daifu_ipy.repair.stack import format_stack
from daifu_ipy.repair.summary import one_line, summarise
from daifu_ipy.repair.view import CrashView

PROMPT = "daifu> "
MORE = "  ...> "
ABORT_QUESTION = "abort? the run's state is lost [y/N] "

_MAX_LINE = 300
_MAX_VARIABLES = 60
_UNINTERESTING = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)

_one_at_a_time = threading.Lock()


class Prompt:
    """A repair manager that asks on stdin.

    Shows the annotated stack once, then takes commands (``help`` lists them) and Python, which runs as an
    action in the crashed namespace. Only a command decides: Ctrl-C and the end of input ask whether to abort.
    At the second end of input it aborts, so that it never waits for somebody who can't answer.

    Parameters
    ----------
    ask
        Called with the prompt's text; gives a line, or raises `EOFError` or `KeyboardInterrupt`.
    show
        Called with text to show.
    """

    def __init__(self, ask: Callable[[str], str] | None = None, show: Callable[[str], object] | None = None) -> None:
        self._ask, self._show = ask, show

    def __call__(self, crash: CrashView) -> Repair:
        """Ask until a command decides. Crashes of several threads are asked about one after the other."""
        with _one_at_a_time:
            return _Session(crash, self._ask or input, self._show or print).run()


class CannotAsk(Exception):
    """Stdin does not work: nobody can answer."""


class _Session:
    """The questions about one crash."""

    def __init__(self, crash: CrashView, ask: Callable[[str], str], show: Callable[[str], object]) -> None:
        self.crash, self._ask, self.show = crash, ask, show

    def run(self) -> Repair:
        """Ask until there is an answer."""
        self._introduce()
        try:
            return Repair(then=self._ending())
        except CannotAsk as problem:
            self.show(f"daifu: {problem}: aborting")
            return Repair(then=Abort())

    def _ending(self) -> Ending:
        ending: Ending | None = None
        while ending is None:
            try:
                ending = self.answer(self.ask(PROMPT))
            except (EOFError, KeyboardInterrupt):
                ending = Abort() if self.wants_abort() else None
        return ending

    def ask(self, prompt: str) -> str:
        """Get a line from stdin.

        Raises
        ------
        CannotAsk
            If stdin itself fails, as it does where a kernel's request does not allow it.
        """
        try:
            return self._ask(prompt)
        except EOFError:
            raise
        except Exception as error:
            raise CannotAsk(f"can't ask here ({type(error).__name__}: {error})") from None

    def _introduce(self) -> None:
        if self.crash.refusal is not None:
            self.show(f"refused: {self.crash.refusal}")
            return
        self.show(format_stack(self.crash))
        for line in _remarks(self.crash):
            self.show(line)
        self.show("The run waits. " + ", ".join(COMMANDS) + ", or Python to change variables.")

    def answer(self, line: str) -> Ending | None:
        """Do what a line says; an ending if it decides."""
        found = _find_command(line)
        if found is None:
            self._python(line)
            return None
        command, argument = found
        return command.run(self, argument)

    def _python(self, line: str) -> None:
        code = self.read_block(line)
        if code is None or not code.strip():
            return
        for_ipython = code.lstrip()[0] in "!%?"  # which crash.action knows
        problem = None if for_ipython else _problem(code)
        if problem is not None:
            self.show(f"neither a command nor Python: {problem} (help lists the commands)")
            return
        self.act(code)

    def act(self, code: str) -> None:
        """Run an action and show what came of it; its output was shown already."""
        result = self.crash.action(code)
        for text in (result.value, result.error, result.note):
            if text is not None:
                self.show(text)

    def read_block(self, line: str) -> str | None:
        """Read on while the Python is incomplete; a block ends at a blank line. None if Ctrl-C dropped it."""
        lines = [line]
        while _is_incomplete("\n".join(lines)):
            try:
                lines.append(self.ask(MORE))
            except EOFError:
                break
            except KeyboardInterrupt:
                self.show("(dropped)")
                return None
        return "\n".join(lines)

    def read_text(self) -> str | None:
        """Read lines up to a blank one. None if Ctrl-C dropped them."""
        lines: list[str] = []
        while True:
            try:
                line = self.ask(MORE)
            except EOFError:
                line = ""
            except KeyboardInterrupt:
                self.show("(dropped)")
                return None
            if not line.strip():
                return "\n".join(lines)
            lines.append(line)

    def wants_abort(self) -> bool:
        """Ask whether to abort; the end of input is a yes, Ctrl-C a no."""
        try:
            return self.ask(ABORT_QUESTION).strip().lower() in ("y", "yes")
        except EOFError:
            return True
        except KeyboardInterrupt:
            return False


@dataclass(frozen=True)
class Command:
    """One command: `argument` is how help shows what may follow it ("" if nothing may)."""

    help: str
    run: Callable[[_Session, str], Ending | None]
    argument: str = ""


def _action(session: _Session, argument: str) -> None:
    code = session.read_block(argument) if argument else session.read_text()
    if code:
        session.act(code)


def _surgery(session: _Session, argument: str) -> Ending | None:
    path = os.path.expanduser(argument.strip("'\""))
    if not path:
        session.show("surgery FILE: the file holds the new text of the unit, or of its class, notebook cell or module")
        return None
    try:
        with open(path, encoding="utf-8") as file:
            return Surgery(file.read())
    except (OSError, UnicodeDecodeError) as error:
        session.show(f"can't read {path}: {error}")
        return None


def _return(session: _Session, argument: str) -> Ending | None:
    expression = argument or "None"
    try:
        ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError) as error:
        session.show(f"return EXPRESSION: {error}")
        return None
    return Return(expression)


def _show_variables(session: _Session, argument: str) -> None:
    variables = [
        (name, value)
        for name, value in session.crash.namespace.items()
        if name.isidentifier() and not name.startswith("__") and not issubclass(type(value), _UNINTERESTING)
    ]
    for name, value in islice(variables, _MAX_VARIABLES):
        session.show(f"{name} = {summarise(value)}")
    if len(variables) > _MAX_VARIABLES:
        session.show(f"... {len(variables) - _MAX_VARIABLES} more")


def _show_help(session: _Session, argument: str) -> None:
    for name, command in COMMANDS.items():
        session.show(f"{f'{name} {command.argument}':<20} {command.help}")
    session.show(f"{'anything else':<20} is Python, and runs as an action")


def _ask_abort(session: _Session, argument: str) -> Ending | None:
    return Abort() if session.wants_abort() else None


COMMANDS: dict[str, Command] = {
    "pass": Command("run the crashed statement again", lambda *_: Pass()),
    "action": Command("run CODE in the crashed namespace; without CODE, lines up to a blank one", _action, "[CODE]"),
    "surgery": Command("replace the code by FILE's text and go on in it", _surgery, "FILE"),
    "skip": Command("leave the crashed statement out", lambda *_: Skip()),
    "continue": Command("go on with the next iteration", lambda *_: Continue()),
    "break": Command("go on after the loop", lambda *_: Break()),
    "return": Command("return the value of an expression from the unit", _return, "[EXPR]"),
    "abort": Command("let the exception go on; the run ends", lambda *_: Abort()),
    "stack": Command("show the annotated stack", lambda session, _: _show_stack(session)),
    "vars": Command("show the variables", _show_variables),
    "help": Command("show this", _show_help),
}

_ASKING = {name: Command("", _ask_abort) for name in ("quit", "exit")}


def _show_stack(session: _Session) -> None:
    session.show(format_stack(session.crash))


def _find_command(line: str) -> tuple[Command, str] | None:
    """The command that a line names; ``skip = 3`` and ``vars(x)`` are Python."""
    word, _, argument = line.strip().partition(" ")
    command = COMMANDS.get(word) or _ASKING.get(word)
    argument = argument.strip()
    if command is None or (argument and not command.argument):
        return None
    if argument.startswith("=") and not argument.startswith("=="):
        return None
    return command, argument


def _is_incomplete(code: str) -> bool:
    try:
        return bool(code.strip()) and codeop.compile_command(code, "<prompt>", "single") is None
    except (SyntaxError, ValueError, OverflowError):
        return False


def _problem(code: str) -> str | None:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError) as error:
        return error.msg if isinstance(error, SyntaxError) else str(error)
    return None


def _remarks(crash: CrashView) -> Iterator[str]:
    """What a retry would do twice, and what a skip would leave as it was."""
    if crash.repeats:
        yield one_line(f"pass runs again: {', '.join(crash.repeats)}", _MAX_LINE)
    if crash.stale:
        yield one_line(f"skip leaves an older value in: {', '.join(crash.stale)}", _MAX_LINE)

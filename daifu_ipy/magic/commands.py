"""``%daifu WORD ...``: a table of commands, each a function with `magic_arguments` in a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from IPython.core.error import UsageError

from daifu_ipy.magic.automatic import auto
from daifu_ipy.magic.doctor import doctor
from daifu_ipy.magic.past import history, replay_file
from daifu_ipy.magic.protecting import unvaccinate, vaccinate
from daifu_ipy.magic.revising import diff, fix, revert, versions, write_files
from daifu_ipy.magic.running import Runner
from daifu_ipy.magic.showing import show
from daifu_ipy.magic.status import status


@dataclass(frozen=True)
class Command:
    """One word of ``%daifu``; `arguments` is how the list shows what follows it."""

    run: Callable[[Runner, str], None]
    arguments: str = ""

    @property
    def help(self) -> str:
        """Its first line of help."""
        return str(self.run.parser.description).strip().splitlines()[0]  # type: ignore[attr-defined]

    @property
    def whole_help(self) -> str:
        """All of it: what ``%daifu WORD -h`` shows."""
        return str(self.run.parser.format_help()).replace("::\n\n  %", "%", 1).rstrip()  # type: ignore[attr-defined]


HELP = ("-h", "--help", "?")

COMMANDS: dict[str, Command] = {
    "status": Command(status),
    "auto": Command(auto, "[on | off]"),
    "vaccinate": Command(vaccinate, "NAME ..."),
    "unvaccinate": Command(unvaccinate, "NAME ..."),
    "show": Command(show, "NAME"),
    "history": Command(history, "[N] [--json]"),
    "versions": Command(versions),
    "diff": Command(diff, "[N]"),
    "fix": Command(fix, "[N]"),
    "write": Command(write_files, "[N]"),
    "revert": Command(revert, "[N]"),
    "replay": Command(replay_file, "[FILE]"),
    "doctor": Command(doctor),
}


def overview() -> str:
    """All commands, a line each."""
    return "\n".join(f"%daifu {f'{name} {c.arguments}':<20} {c.help}" for name, c in COMMANDS.items())


def run_command(runner: Runner, line: str) -> None:
    """Do what a ``%daifu`` line says; without a word, list the commands.

    Raises
    ------
    UsageError
        The word, a name or an option is not known.
    """
    word, _, rest = line.strip().partition(" ")
    if not word:
        print(overview())
    elif word in COMMANDS and rest.strip() in HELP:
        print(COMMANDS[word].whole_help)
    elif word in COMMANDS:
        COMMANDS[word].run(runner, rest)
    else:
        raise UsageError(f"%daifu has no {word!r}. It has:\n{overview()}")

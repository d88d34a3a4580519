"""``%daifu WORD ...``: a table of commands, each a function with `magic_arguments`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from daifu_ipy.engine.managers import manager_by_api
from daifu_ipy.engine.repairs import Repair
from daifu_ipy.engine.vaccinate import functions_in, is_vaccinated
from daifu_ipy.engine.vaccinate import unvaccinate as make_plain
from daifu_ipy.frontends.choose import ASKERS, ON_CRASH, Environment
from daifu_ipy.magic.answers import history as past
from daifu_ipy.magic.protect import grouped, listed, protect_all, say
from daifu_ipy.magic.running import Runner
from daifu_ipy.repair.rules import read_rules
from daifu_ipy.repair.summary import one_line


@magic_arguments("daifu status")
def status(runner: Runner, line: str) -> None:
    """Show what is protected, what runs plainly and why, and who would answer a crash now."""
    parse_argstring(status, line)
    protected = [f for f in runner.functions() if is_vaccinated(f)]
    names = grouped(f.__qualname__ for f in protected)
    print(f"protected       {listed(names, 20) if names else 'no function yet; %%daifu above a cell protects it'}")
    for name, reason in runner.plain.items():
        print(f"runs plainly    {name}: {reason}")
    print(f"intercepted     {_INTERCEPT[runner.daifu.intercept]}")
    print(f"a crash now     {_who_answers(runner)}")


_INTERCEPT = {
    "auto": "exceptions that nothing would handle (Daifu.intercept = 'auto')",
    "unhandled": "exceptions that nothing is known to handle (Daifu.intercept = 'unhandled')",
    "all": "every exception that leaves protected code (Daifu.intercept = 'all')",
}


@magic_arguments("daifu vaccinate")
@argument("names", metavar="NAME", nargs="+", help="A function, a class (its methods), or a method: Trainer.fit.")
def vaccinate(runner: Runner, line: str) -> None:
    """Protect functions, wherever they are called."""
    for name in parse_argstring(vaccinate, line).names:
        made = protect_all(_functions_named(runner, name))
        runner.note(made)
        say(made)


@magic_arguments("daifu unvaccinate")
@argument("names", metavar="NAME", nargs="+", help="As for vaccinate.")
def unvaccinate(runner: Runner, line: str) -> None:
    """Give functions their native code back; calls that run now end with what they have."""
    for name in parse_argstring(unvaccinate, line).names:
        done = [f for f in _functions_named(runner, name) if is_vaccinated(f)]
        for function in done:
            make_plain(function)
        text = listed([f.__qualname__ for f in done]) + " no longer protected" if done else f"{name} was not protected"
        print(f"daifu: {text}")


@magic_arguments("daifu history")
@argument("--json", action="store_true", help="Show it as JSON, as daifu_ipy.repair.history.replay reads it.")
def history(runner: Runner, line: str) -> None:
    """Show what crashed, and how it was repaired. `daifu_ipy.history` is the same as an object."""
    if parse_argstring(history, line).json:
        import json

        print(json.dumps(past.to_json(), indent=1))
        return
    if not len(past):
        print("nothing has crashed")
    for number, event in enumerate(past, 1):
        repair = Repair.from_json(event.repair)
        actions = f"{len(repair.actions)} action{'s' * (len(repair.actions) > 1)}, then " * bool(repair.actions)
        done = f"{actions}{repair.word}" if event.outcome == "recovered" else event.outcome
        error = one_line(f"{event.error}: {event.message}" if event.message else event.error, 80)
        print(f"{number:>3}  {event.time[11:19]}  {event.unit}, line {event.line}: {error} -> {done}")


@dataclass(frozen=True)
class Command:
    """One word of ``%daifu``; `arguments` is how the list shows what follows it."""

    run: Callable[[Runner, str], None]
    arguments: str = ""

    @property
    def help(self) -> str:
        """Its first line of help."""
        return str(self.run.parser.description).strip().splitlines()[0]  # type: ignore[attr-defined]


COMMANDS: dict[str, Command] = {
    "status": Command(status),
    "vaccinate": Command(vaccinate, "NAME ..."),
    "unvaccinate": Command(unvaccinate, "NAME ..."),
    "history": Command(history, "[--json]"),
}


def overview() -> str:
    """All commands, a line each."""
    return "\n".join(f"%daifu {f'{name} {c.arguments}':<22} {c.help}" for name, c in COMMANDS.items())


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
    elif word in COMMANDS:
        COMMANDS[word].run(runner, rest)
    else:
        raise UsageError(f"%daifu has no {word!r}. It has:\n{overview()}")


def _functions_named(runner: Runner, name: str) -> list[FunctionType]:
    first, *rest = name.split(".")
    try:
        value: Any = runner.shell.user_ns[first]
        for part in rest:
            value = getattr(value, part)
        return list(functions_in(value))
    except KeyError:
        raise UsageError(f"%daifu: there is no {first} in this notebook") from None
    except AttributeError:
        raise UsageError(f"%daifu: there is no {name}") from None
    except TypeError:
        kind = type(value).__name__
        raise UsageError(f"%daifu: {name} is no function, method or class of Python code, but a {kind}") from None


def _who_answers(runner: Runner) -> str:
    if manager_by_api() is not None:
        return "goes to the repair manager that the program has set"
    count = len(read_rules(runner.daifu.rules))
    first = [f"is tried by {count} rule{'s' * (count > 1)}"] if count else []
    here, asked = Environment.detect(), ON_CRASH[runner.daifu.on_crash]
    askers = [f"is asked about at the {asker.name}" for asker in ASKERS if asker.name in asked and asker.fits(here)]
    then = askers[:1] or ["is aborted" + (": nobody can be asked here" if asked else "")]
    return ", then ".join([*first, *then])

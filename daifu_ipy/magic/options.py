"""The options of %%daifu: those of one cell, and the traits that hold for all (`c.Daifu`, `%config Daifu`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from traitlets import Any as AnyTrait
from traitlets import Bool, Enum, TraitError, Unicode, observe, validate
from traitlets.config import Configurable

from daifu_ipy.engine.managers import settings
from daifu_ipy.frontends.choose import ON_CRASH
from daifu_ipy.frontends.patience import Patience, seconds_of
from daifu_ipy.repair.rule_sets import SETS
from daifu_ipy.repair.rule_text import OPTIONS, SYNTAX, parse_repair
from daifu_ipy.repair.rules import Rule, read_rules

MODES = tuple(ON_CRASH)


class Daifu(Configurable):
    """What holds for every ``%%daifu`` cell."""

    rules = AnyTrait(
        None,
        allow_none=True,
        help=f"""
        Rules that answer crashes without a person, after those of the cell: text (one rule a line), a dict, or a
        list of these. A rule is: {SYNTAX}. Options: {OPTIONS}. Ready-made: {", ".join(SETS)}. How often a rule was
        used is counted anew for each cell that runs.""",
    ).tag(config=True)
    answer = Enum(
        MODES,
        "auto",
        help="""
        Who is asked where no rule matches. auto: in the panel or at a prompt, where somebody can answer; else the
        exception goes on. panel, prompt: there. rules, abort: nobody. The rules come first in every mode.""",
    ).tag(config=True)
    on_crash = AnyTrait(
        None,
        allow_none=True,
        help="""
        Called, or run by the shell, when a crash begins to wait for somebody (a rule keeps nobody waiting): to send a
        mail or a message. A function gets a dict; a command gets the same as JSON on stdin, and as DAIFU_TEXT,
        DAIFU_UNIT, DAIFU_LINE, DAIFU_ERROR, DAIFU_MESSAGE, ... in its environment: time, place, and the exception's
        type and message; no variables.""",
    ).tag(config=True)
    patience = AnyTrait(
        None,
        allow_none=True,
        help="""
        How long a crash waits in the panel: '2h', '1h 30m', or seconds; None: for ever. Then `fallback` is done. At a
        prompt it does not run out: what is being typed there is not known.""",
    ).tag(config=True)
    fallback = Unicode(
        "abort",
        help="""
        What is done when patience runs out, as right of a rule's arrow: 'abort', 'skip', 'action "code" then pass'.""",
    ).tag(config=True)
    auto = Bool(
        False,
        help="""
        Protect every cell of the notebook, as if it had %%daifu on top; %%daifu off on top of one leaves that one
        alone.""",
    ).tag(config=True)
    intercept = Enum(
        ("auto", "unhandled", "all"),
        "auto",
        help="""
        Which exceptions are crashes. auto: those that no handler further out would handle, as far as can be told.
        unhandled: also where it can't be told. all: every exception that leaves protected code.""",
    ).tag(config=True)

    @validate("rules")
    def _check_rules(self, proposal: Any) -> Any:
        try:
            read_rules(proposal["value"])
        except (TypeError, ValueError) as error:
            raise TraitError(str(error)) from None
        return proposal["value"]

    @validate("on_crash")
    def _check_hook(self, proposal: Any) -> Any:
        hook = proposal["value"]
        if hook is not None and not callable(hook) and not (isinstance(hook, str) and hook.strip()):
            raise TraitError(f"on_crash must be a function, or a command for the shell, not {hook!r}")
        return hook

    @validate("patience", "fallback")
    def _check_patience(self, proposal: Any) -> Any:
        value = proposal["value"]
        try:
            if value is not None:
                (seconds_of if proposal["trait"].name == "patience" else parse_repair)(value)
        except ValueError as error:
            raise TraitError(f"{proposal['trait'].name}: {error}") from None
        return value

    def how_patient(self) -> Patience | None:
        """How long a crash waits, and what is done then; None: for ever."""
        return None if self.patience is None else Patience(seconds_of(self.patience), parse_repair(self.fallback))

    @observe("intercept")
    def _apply_intercept(self, change: Any) -> None:
        settings.intercept = change["new"]


@dataclass(frozen=True)
class CellOptions:
    """What one ``%%daifu`` line says; None: as the traits say."""

    off: bool = False
    quiet: bool = False  # nobody asked for this cell
    only: frozenset[str] | None = None
    rules: tuple[Rule, ...] = ()
    on_crash: str | None = None
    strict: bool = False
    show: bool = False


@magic_arguments("%daifu")
@argument(
    "--only",
    metavar="NAME,...",
    action="append",
    help="Protect only these functions, methods or classes: train,Trainer.fit. The rest of the cell runs plainly.",
)
@argument(
    "--rules",
    metavar="TEXT",
    action="append",
    help=f"Rules, in quotes, separated by ';', or the name of a variable that holds them. A rule is: {SYNTAX}. "
    f"Ready-made: {', '.join(SETS)}.",
)
@argument(
    "--on-crash", choices=MODES, help="Who is asked where no rule matches. auto: the panel, the prompt, or nobody."
)
@argument(
    "--strict", action="store_true", help="Fail where the cell can't be protected, instead of running it plainly."
)
@argument("--show", action="store_true", help="Show the code that stands for the cell before it runs, for the curious.")
def cell_options(line: str) -> None:
    """Protect this cell, and the functions of this notebook that it calls.

    An exception that nothing in the program would handle stops the run where it is: variables, loops and open
    blocks stay. After a repair the run goes on from the statement that crashed.

    `%%daifu off` leaves a cell alone that `%daifu auto on` would protect.

    Examples::

        %%daifu
        %%daifu --only train,Trainer.fit
        %%daifu --rules "ConnectionError -> pass, limit=5; KeyError -> continue"
        %%daifu --rules transient-io --on-crash rules
    """


def read_cell_options(line: str, namespace: Mapping[str, Any]) -> CellOptions:
    """Read a ``%%daifu`` line.

    Raises
    ------
    UsageError
        What is wrong with it.
    """
    if line.split() == ["off"]:
        return CellOptions(off=True)
    try:
        found = parse_argstring(cell_options, line)
    except UsageError as error:
        hint = "; rules stand in quotes" if "--rules" in line and "->" in line else ""
        raise UsageError(f"%%daifu: {error}{hint}") from None
    except ValueError as error:  # quotes that are not closed
        raise UsageError(f"%%daifu: {error}".lower()) from None
    only = {name.strip() for text in found.only or () for name in _unquoted(text).split(",")} - {""}
    return CellOptions(
        only=None if found.only is None else frozenset(only),
        rules=tuple(rule for text in found.rules or () for rule in _rules(_unquoted(text), namespace)),
        on_crash=found.on_crash,
        strict=found.strict,
        show=found.show,
    )


def _rules(text: str, namespace: Mapping[str, Any]) -> list[Rule]:
    source = namespace[text] if text.isidentifier() and text in namespace else text
    try:
        return read_rules(source)
    except (TypeError, ValueError) as error:
        raise UsageError(f"%%daifu: {error}") from None


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text

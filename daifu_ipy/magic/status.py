"""``%daifu status``: what is protected, what is not and why, and what would become of a crash now."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from IPython.core.magic_arguments import magic_arguments, parse_argstring

from daifu_ipy.engine import versions
from daifu_ipy.engine.managers import pending, settings
from daifu_ipy.engine.undecided import Undecided
from daifu_ipy.engine.vaccinate import is_vaccinated
from daifu_ipy.magic.protect import grouped, listed
from daifu_ipy.repair import places
from daifu_ipy.repair.rule import Rule
from daifu_ipy.repair.summary import error_text, one_line

if TYPE_CHECKING:
    from daifu_ipy.magic.running import Runner

MOST = 10
"""Lines of one kind."""

INTERCEPTED = {
    "auto": "exceptions that nothing would handle (Daifu.intercept = 'auto')",
    "unhandled": "exceptions that nothing is known to handle (Daifu.intercept = 'unhandled')",
    "all": "every exception that leaves protected code (Daifu.intercept = 'all')",
}


@magic_arguments("daifu status")
def status(runner: Runner, line: str) -> None:
    """Show what is protected, what runs plainly and why, and who would answer a crash now.

    `waits` are crashes that nobody has answered yet. `let go` are exceptions that were not intercepted, since it can't
    be told whether the handler that is named would handle them; `%config Daifu.intercept = 'unhandled'` intercepts
    those too.
    """
    parse_argstring(status, line)
    for title, text in _lines(runner):
        print(f"{title:<15} {text}")


def _lines(runner: Runner) -> Iterator[tuple[str, str]]:
    yield from _waiting()
    yield from _protected(runner)
    yield "intercepted", INTERCEPTED[runner.daifu.intercept]
    yield from _let_go()
    yield "a crash now", runner.manager.outlook()
    yield from _rules(runner)
    yield from _telling(runner)
    yield from _surgeries()


def _waiting() -> Iterator[tuple[str, str]]:
    for crash in pending():
        yield "waits", f"{error_text(crash.exception, 100)}, in {places.place(crash.restart)} ({crash.thread.name})"


def _protected(runner: Runner) -> Iterator[tuple[str, str]]:
    if runner.daifu.auto:
        yield "cells", "every one (%daifu auto is on); %%daifu off above one leaves it alone"
    else:
        yield "cells", "those with %%daifu on top (%daifu auto is off)"
    names = grouped(f.__qualname__ for f in runner.functions() if is_vaccinated(f))
    yield "protected", listed(names, 20) if names else "no function yet; %%daifu above a cell protects it"
    yield from _first([("runs plainly", f"{name}: {reason}") for name, reason in runner.plain.items()])


def _first(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The newest of many."""
    more = len(lines) - MOST
    return lines if more <= 0 else [(lines[0][0], f"{more} more, and:"), *lines[more:]]


def _let_go() -> list[tuple[str, str]]:
    """Exceptions that were not intercepted because of a handler that nobody can decide about."""
    return _first([("let go", _undecided(one, count)) for one, count in settings.undecided.all()])


def _undecided(one: Undecided, count: int) -> str:
    unit = places.label(one.filename) or "a cell" if one.unit == "<module>" else one.unit
    times = f", {count} times" if count > 1 else ""
    return f"{one.error} in {unit}{times}: {_readable(one.by)} may handle it: {_why(one.by)}"


def _why(by: str) -> str:
    """What can't be told of a handler without running it."""
    if re.search(r"\bwith ", by):
        return "its __exit__ computes the answer"
    if re.search(r"\bexcept\b", by):
        return "which exceptions it takes, or whether it raises them again, is computed"
    return "it can't be told without running it"


def _readable(by: str) -> str:
    """A handler with its notebook cell called as the notebook calls it."""
    found = re.search(r"\(([^()]*):(\d+)\)$", by.removeprefix("perhaps "))
    files = [name for name in linecache.cache if found and os.path.basename(name) == found[1]]
    label = next((label for name in files if (label := places.label(name))), None)
    text = by.removeprefix("perhaps ")
    return text if found is None or label is None else f"{text[: found.start()]}({label}, line {found[2]})"


def _rules(runner: Runner) -> Iterator[tuple[str, str]]:
    """The rules of the cell that runs, with what is left of them."""
    rules = runner.manager.now().rules
    for number, (rule, used) in enumerate(zip(rules.rules, rules.uses, strict=True), 1):
        yield f"rule {number}", _rule(rule, used)


def _rule(rule: Rule, used: int) -> str:
    error = rule.error if isinstance(rule.error, str) else rule.error.__name__
    message = f" ~ {rule.message!r}" if rule.message else ""
    place = f" @ {rule.unit or '*'}" + (f":{rule.line}" if rule.line else "") if rule.unit or rule.line else ""
    left = "any number of times" if rule.limit is None else f"{rule.limit - used} of {rule.limit} uses left"
    return one_line(f"{error}{message}{place} -> {rule.repair.in_words}; {left}", 120)


def _telling(runner: Runner) -> Iterator[tuple[str, str]]:
    daifu = runner.daifu
    if daifu.on_crash is not None:
        hook = daifu.on_crash if isinstance(daifu.on_crash, str) else getattr(daifu.on_crash, "__name__", "a function")
        yield "told", f"{one_line(hook, 80)}, when a crash begins to wait (Daifu.on_crash)"
    if daifu.patience is not None:
        yield "patience", f"{daifu.patience} in a panel, then {daifu.fallback} (Daifu.patience, Daifu.fallback)"


def _surgeries() -> Iterator[tuple[str, str]]:
    holding = [version for version in versions.all() if not version.reverted]
    if holding:
        yield "surgeries", f"{len(holding)} in what runs now; %daifu versions lists them, %daifu diff shows them"

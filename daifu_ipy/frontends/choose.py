"""Who answers a crash: rules first, then whoever can be asked here, else nobody. Nothing ever hangs (law)."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from daifu_ipy.engine.repairs import Abort, Repair
from daifu_ipy.frontends.patience import Patience
from daifu_ipy.frontends.prompt import Prompt, running_shell
from daifu_ipy.frontends.terminal import CannotAsk
from daifu_ipy.repair.rules import Rule, Rules, SameHere
from daifu_ipy.repair.stack import format_stack
from daifu_ipy.repair.view import Answer, CrashView


@dataclass(frozen=True)
class Environment:
    """What decides who can be asked.

    Parameters
    ----------
    in_kernel
        The code runs in a Jupyter kernel.
    allows_stdin
        The kernel's present request allows to ask on stdin.
    is_tty
        Stdin is a terminal, and this process may read from it.
    has_panel
        A page has shown that it can show the panel, or may yet do so.
    """

    in_kernel: bool = False
    allows_stdin: bool = False
    is_tty: bool = False
    has_panel: bool = False

    @property
    def can_prompt(self) -> bool:
        """Whether somebody can answer on stdin. In a kernel, its own stdin is nobody's."""
        return self.allows_stdin if self.in_kernel else self.is_tty

    @classmethod
    def detect(cls) -> Environment:
        """Look at this process now, without importing anything; what can't be told counts as "no"."""
        kernel = _kernel()
        if kernel is not None:
            allows = _allows_stdin(kernel)
            return cls(in_kernel=True, allows_stdin=allows, has_panel=_has_panel(allows))
        return cls(is_tty=_has_terminal())


@dataclass(frozen=True)
class Asker:
    """A row of the table: a front end, and where it can be asked.

    Parameters
    ----------
    name
        Its name in `ON_CRASH`.
    fits
        Whether somebody can answer there.
    ask
        Gives the answer, however long that takes; or raises `CannotAsk`: then the next is asked.
    yields
        `ask` returns when somebody else decides the crash, as `Crash.wait` does. Only then can patience run out.
    """

    name: str
    fits: Callable[[Environment], bool]
    ask: Callable[[CrashView], Repair | SameHere]
    yields: bool = False


ASKERS: list[Asker] = [Asker("prompt", lambda environment: environment.can_prompt, Prompt())]
"""The front ends, in the order in which they are tried. One that comes later puts its row where it belongs."""

ON_CRASH: dict[str, tuple[str, ...]] = {
    "auto": ("panel", "prompt"),
    "panel": ("panel", "prompt"),
    "prompt": ("prompt",),
    "rules": (),
    "abort": (),
}
"""For each ``--on-crash``: which front ends may be asked after the rules."""


def choose(
    crash: CrashView,
    *,
    rules: Answer | None = None,
    on_crash: str = "auto",
    environment: Environment | None = None,
    askers: Sequence[Asker] = ASKERS,
    show: Callable[[str], object] | None = None,
    on_wait: Callable[[CrashView], object] | None = None,
    patience: Patience | None = None,
) -> Repair:
    """Let the first in the table answer.

    Parameters
    ----------
    crash
        What crashed.
    rules
        Asked first, in every mode; None leaves it to the rest of the table.
    on_crash
        A key of `ON_CRASH`. Where none of its front ends can be asked, the crash is aborted.
    environment
        Facts about this process; by default they are looked up.
    askers
        The front ends there are.
    show
        Gets the annotated stack before an abort; by default `print`.
    on_wait
        Called when somebody is asked for the first time: rules, and an abort, keep nobody waiting.
    patience
        What is done if nobody answers.

    Raises
    ------
    ValueError
        If `on_crash` is not known.
    """
    if on_crash not in ON_CRASH:
        raise ValueError(f"on_crash must be one of {', '.join(ON_CRASH)}, not {on_crash!r}")
    answer = None if rules is None else rules(crash)
    if answer is not None:
        return Repair.of(answer)
    here = environment if environment is not None else Environment.detect()
    found = _fitting(askers, on_crash, here)
    if found and on_wait is not None and crash.refusal is None:
        on_wait(crash)
    for asker in found:
        try:
            with patience.with_(crash, show or print) if patience and asker.yields else contextlib.nullcontext():
                return _kept(asker.ask(crash), crash, rules)
        except CannotAsk as problem:
            (show or print)(f"daifu: {problem}") if str(problem) else None
    _report(crash, on_crash, show or print)
    return Repair(then=Abort())


def describe(
    *,
    rules: int = 0,
    on_crash: str = "auto",
    environment: Environment | None = None,
    askers: Sequence[Asker] = ASKERS,
) -> str:
    """Say what would become of a crash now, with so many rules: ``"is tried by 2 rules, then is aborted"``."""
    here = environment if environment is not None else Environment.detect()
    asker = next(iter(_fitting(askers, on_crash, here)), None)
    tried = [f"is tried by {rules} rule{'s' * (rules > 1)}"] if rules else []
    if asker is not None:
        last = f"is asked about at the {asker.name}"
    else:
        last = "is aborted" + (": nobody can be asked here" if ON_CRASH[on_crash] else "")
    return ", then ".join([*tried, last])


def _fitting(askers: Sequence[Asker], on_crash: str, here: Environment) -> list[Asker]:
    return [asker for asker in askers if asker.name in ON_CRASH[on_crash] and asker.fits(here)]


def _kept(answer: Repair | SameHere, crash: CrashView, rules: Answer | None) -> Repair:
    """The repair; where it is for later crashes too, the rules get it as one of theirs."""
    if not isinstance(answer, SameHere):
        return answer
    if isinstance(rules, Rules):
        rules.add(Rule.here(crash, answer.repair, answer.times), used=True)
    return answer.repair


def _report(crash: CrashView, on_crash: str, show: Callable[[str], object]) -> None:
    show(format_stack(crash))
    if crash.refusal is not None:
        show(f"daifu: the repair was refused: {crash.refusal}")
    asked = ON_CRASH[on_crash]
    show("daifu: aborting; " + ("nobody can be asked here" if asked else f"on-crash is {on_crash}"))


def _kernel() -> Any:
    """The Jupyter kernel that this process is, or None."""
    return getattr(running_shell(), "kernel", None)


def _allows_stdin(kernel: Any) -> bool:
    with contextlib.suppress(Exception):
        return kernel.get_parent("shell")["content"]["allow_stdin"] is True
    return getattr(kernel, "_allow_stdin", False) is True


def _has_panel(allows_stdin: bool) -> bool:
    """Whether a page can show the panel; one that has not said so is waited for only where somebody can be asked."""
    module = sys.modules.get("daifu_ipy.frontends.hello")
    return module is not None and (module.hello.answered or (allows_stdin and module.hello.may_answer))


def _has_terminal() -> bool:
    """Whether stdin is a terminal that this process may read: one in the background would be stopped."""
    with contextlib.suppress(Exception):
        stdin = sys.stdin
        if stdin is None or stdin.closed or not stdin.isatty():
            return False
        return not hasattr(os, "tcgetpgrp") or os.tcgetpgrp(stdin.fileno()) == os.getpgrp()
    return False

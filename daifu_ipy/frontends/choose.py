"""Who answers a crash: rules first, then whoever can be asked here, else nobody. Nothing ever hangs (law)."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from daifu_ipy.engine.repairs import Abort, Repair
from daifu_ipy.frontends.prompt import Prompt
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
    """

    in_kernel: bool = False
    allows_stdin: bool = False
    is_tty: bool = False

    @property
    def can_prompt(self) -> bool:
        """Whether somebody can answer on stdin. In a kernel, its own stdin is nobody's."""
        return self.allows_stdin if self.in_kernel else self.is_tty

    @classmethod
    def detect(cls) -> Environment:
        """Look at this process now, without importing anything; what can't be told counts as "no"."""
        kernel = _kernel()
        if kernel is not None:
            return cls(in_kernel=True, allows_stdin=_allows_stdin(kernel))
        return cls(is_tty=_has_terminal())


@dataclass(frozen=True)
class Asker:
    """A row of the table: a front end, and where it can be asked."""

    name: str
    fits: Callable[[Environment], bool]
    ask: Callable[[CrashView], Repair]


ASKERS: tuple[Asker, ...] = (Asker("prompt", lambda environment: environment.can_prompt, Prompt()),)
"""The front ends, in the order in which they are tried."""

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
    for asker in askers:
        if asker.name in ON_CRASH[on_crash] and asker.fits(here):
            return asker.ask(crash)
    _report(crash, on_crash, show or print)
    return Repair(then=Abort())


def _report(crash: CrashView, on_crash: str, show: Callable[[str], object]) -> None:
    show(format_stack(crash))
    if crash.refusal is not None:
        show(f"daifu: the repair was refused: {crash.refusal}")
    asked = ON_CRASH[on_crash]
    show("daifu: aborting; " + ("nobody can be asked here" if asked else f"on-crash is {on_crash}"))


def _kernel() -> Any:
    """The Jupyter kernel that this process is, or None."""
    ipython = sys.modules.get("IPython")
    with contextlib.suppress(Exception):
        shell = ipython.get_ipython() if ipython is not None else None
        return getattr(shell, "kernel", None)
    return None


def _allows_stdin(kernel: Any) -> bool:
    with contextlib.suppress(Exception):
        return kernel.get_parent("shell")["content"]["allow_stdin"] is True
    return getattr(kernel, "_allow_stdin", False) is True


def _has_terminal() -> bool:
    """Whether stdin is a terminal that this process may read: one in the background would be stopped."""
    with contextlib.suppress(Exception):
        stdin = sys.stdin
        if stdin is None or stdin.closed or not stdin.isatty():
            return False
        return not hasattr(os, "tcgetpgrp") or os.tcgetpgrp(stdin.fileno()) == os.getpgrp()
    return False

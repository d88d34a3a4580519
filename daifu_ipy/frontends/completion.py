"""Completion by the Tab key: commands, and the names of the selected frame."""

from __future__ import annotations

import contextlib
import glob
import os
import rlcompleter
import sys
from collections.abc import Callable, Iterator
from typing import Any

from daifu_ipy.frontends.terminal import is_terminal

Complete = Callable[[str, int], str | None]

_PATHS = frozenset({"surgery", "preview", "save"})


def candidates(text: str, line: str, names: dict[str, Any], commands: list[str]) -> list[str]:
    """What may stand in a line for `text`: commands at its start, names everywhere, files where a command takes one."""
    word, _, rest = line.lstrip().partition(" ")
    if rest and word in _PATHS:
        tail = os.path.expanduser(rest)
        return [path[len(tail) - len(text) :] for path in sorted(glob.glob(f"{glob.escape(tail)}*"))]
    completer = rlcompleter.Completer(names)
    found = completer.attr_matches(text) if "." in text else completer.global_matches(text)
    at_start = [] if rest or word != text else [name for name in commands if name.startswith(text)]
    return sorted({*at_start, *(name for name in found if "@" not in name)})


@contextlib.contextmanager
def completion(complete: Complete) -> Iterator[None]:
    """Let readline complete by `complete`, and give the program its own settings back afterwards."""
    readline = sys.modules.get("readline")
    if readline is None and is_terminal():
        with contextlib.suppress(ImportError):
            import readline
    if readline is None:
        yield
        return
    before, delimiters = readline.get_completer(), readline.get_completer_delims()
    libedit = "libedit" in (readline.__doc__ or "")
    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n`@#$%^&*()=+[{]}\\|;:'\",<>?")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before)
        readline.set_completer_delims(delimiters)
        if before is None and not libedit:
            readline.parse_and_bind("tab: tab-insert")

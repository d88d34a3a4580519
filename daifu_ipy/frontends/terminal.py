"""Asking on a terminal: an editor for longer texts, and output that is seen."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from daifu_ipy.repair.terminals import is_tty

_ANSI = re.compile(r"\x1b\[[0-9;]*m")

_TAKE_A_LINE = frozenset(
    {"vi", "vim", "nvim", "view", "gvim", "nano", "pico", "emacs", "emacsclient", "joe", "ne", "mg"}
)
"""Editors that open a file at a line that is given as ``+LINE``."""


class CannotAsk(Exception):
    """Stdin does not work: nobody can answer."""


def is_terminal() -> bool:
    """Whether the prompt talks with a terminal, on both ways."""
    return is_tty(sys.stdin) and is_tty(sys.stdout)


def seen() -> TextIO:
    """Where a person sees what is written: where a script's output goes to a file, its stderr."""
    if is_tty(sys.stdin) and not is_tty(sys.stdout) and is_tty(sys.stderr) and sys.stdout is sys.__stdout__:
        return sys.stderr
    return sys.stdout


@contextlib.contextmanager
def seen_output() -> Iterator[None]:
    """All output goes where it is seen: of the whole process, so that only one thread at a time may ask for it."""
    if seen() is sys.stdout:
        yield
        return
    with contextlib.redirect_stdout(seen()):
        yield


@contextlib.contextmanager
def printed(shell: Any, show: Callable[[str], object]) -> Iterator[None]:
    """Show what IPython would hand to a pager: a notebook shows that only when its cell has ended."""
    hooks = getattr(shell, "hooks", None)
    if hooks is None or is_terminal():
        yield
        return

    def page(text: Any, *_: Any, **__: Any) -> None:
        plain = text.get("text/plain", "") if isinstance(text, dict) else text
        show(_ANSI.sub("", str(plain)))

    before, hooks.show_in_pager = hooks.show_in_pager, page
    try:
        yield
    finally:
        hooks.show_in_pager = before


def editor() -> list[str]:
    """The user's editor, found as git finds it."""
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")


def edit(path: str, line: int) -> None:
    """Let the user edit a file, and wait for the end of it.

    Raises
    ------
    OSError
        If the editor can't be started.
    """
    command = editor()
    at = [f"+{line}"] if os.path.basename(command[0]) in _TAKE_A_LINE else []
    with _ctrl_c_is_the_editors():
        subprocess.call([*command, *at, path])


@contextlib.contextmanager
def _ctrl_c_is_the_editors() -> Iterator[None]:
    """The terminal sends Ctrl-C to both: only the editor takes it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)  # SIG_IGN would be inherited
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def ask_by_toolkit(session: Any, prompt: str) -> str:
    """Ask by a session of prompt_toolkit, in a thread of its own: here an event loop may be running already."""
    try:
        return str(session.prompt(prompt, in_thread=True))
    except KeyboardInterrupt:
        app = session.app
        if app.is_running and app.loop is not None:  # it came by a signal, and not by the key
            app.loop.call_soon_threadsafe(lambda: app.is_running and app.exit(result=""))
        raise

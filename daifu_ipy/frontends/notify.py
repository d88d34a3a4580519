"""Tells somebody that a crash has begun to wait: calls a function, or runs a command, and never waits for it."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from daifu_ipy.repair.places import place
from daifu_ipy.repair.summary import error_message, error_text, one_line, type_name
from daifu_ipy.repair.view import CrashView

Hook: TypeAlias = str | Callable[[dict[str, Any]], object]
"""A function that gets the notice, or a shell command that gets it on stdin and in its environment."""

MAX_MESSAGE = 300
MAX_SECONDS = 60


def notice(crash: CrashView) -> dict[str, Any]:
    """What is told: time, place, and the exception's type and message. No variable, no source, no frame.

    Returns
    -------
    dict
        ``text`` (one line that says it all), ``time`` (ISO 8601), ``unit``, ``file``, ``line``, ``error``,
        ``message``, ``process``; texts are bounded and in one line.
    """
    restart, error = crash.restart, crash.exception
    return {
        "text": one_line(f"{error_text(error, MAX_MESSAGE)}, in {place(restart)}", 600)
        + ": the run waits for a repair",
        "time": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "unit": one_line(restart.unit, MAX_MESSAGE),
        "file": one_line(restart.filename, MAX_MESSAGE),
        "line": restart.line,
        "error": "" if error is None else type_name(type(error)),
        "message": "" if error is None else error_message(error, MAX_MESSAGE),
        "process": os.getpid(),
    }


def notify(hook: Hook, crash: CrashView, show: Callable[[str], object]) -> threading.Thread:
    """Run the hook in a thread of its own; what goes wrong there is shown in one line, and changes nothing."""
    told = notice(crash)

    def run() -> None:
        try:
            problem = _run_command(hook, told) if isinstance(hook, str) else (hook(told), None)[1]
        except BaseException as error:
            problem = error_text(error, MAX_MESSAGE)
        if problem is not None:
            show(one_line(f"daifu: on_crash failed: {problem}", MAX_MESSAGE))

    thread = threading.Thread(target=run, name="daifu on_crash", daemon=True)
    thread.start()
    return thread


def _run_command(command: str, told: Mapping[str, Any]) -> str | None:
    """Run the user's command line. The notice is data for it: nothing of it is ever put into the line."""
    names = {f"DAIFU_{name.upper()}": str(value) for name, value in told.items()}
    done = subprocess.run(
        command,
        shell=True,
        input=json.dumps(dict(told)),
        env={**os.environ, **names},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        timeout=MAX_SECONDS,
        check=False,
    )
    return f"exit status {done.returncode}: {done.stderr[-MAX_MESSAGE:]}" if done.returncode else None

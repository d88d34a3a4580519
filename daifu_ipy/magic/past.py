"""``%daifu history`` and ``%daifu replay``: what crashed, how it was repaired, and the same repairs again."""

from __future__ import annotations

import json
import os
import runpy
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from daifu_ipy.engine import versions
from daifu_ipy.repair.event import Event
from daifu_ipy.repair.history import history as past
from daifu_ipy.repair.replay import Replay, replay
from daifu_ipy.repair.summary import error_text

if TYPE_CHECKING:
    from daifu_ipy.magic.running import Runner


@magic_arguments("daifu history")
@argument("number", metavar="N", nargs="?", type=int, help="Show this crash alone, with all that is known of it.")
@argument("--json", action="store_true", help="As JSON, which `%%daifu replay` reads from a file.")
@argument("--script", action="store_true", help="As a script that repairs the same crashes of a fresh run alike.")
@argument("--to", metavar="FILE", help="Write it to a new file: a script to a *.py, else JSON.")
def history(runner: Runner, line: str) -> None:
    """Show what crashed, and how it was repaired. `daifu_ipy.history` is the same as an object."""
    chosen = parse_argstring(history, line)
    if chosen.number is not None and (chosen.json or chosen.script or chosen.to is not None):
        raise UsageError("%daifu history: N goes alone: it shows one crash, and writes nothing")
    if chosen.json and chosen.script:
        raise UsageError("%daifu history: either --json or --script")
    if chosen.number is not None:
        print(_details(chosen.number))
    elif chosen.to is not None:
        if chosen.json if chosen.to.endswith(".py") else chosen.script:
            raise UsageError("%daifu history: a script goes to a file *.py, JSON to one of another name")
        _export(chosen.to)
    else:
        print(past.export_script() if chosen.script else _json() if chosen.json else past)


def _export(path: str) -> None:
    """Write what `_read` reads from a file of that name."""
    _write(path, past.export_script() if path.endswith(".py") else _json())
    print(f"daifu: {len(past)} repairs in {path}. In a fresh run: %daifu replay {path}")


def _json() -> str:
    return json.dumps(past.to_json(), indent=1)


def _details(number: int) -> str:
    index = number - past.forgotten - 1
    if not 0 <= index < len(past):
        first, last = past.forgotten + 1, past.forgotten + len(past)
        raise UsageError(f"%daifu history: there is no crash {number}: they are numbered {first} to {last}")
    event = past.events[index]
    return event.details() + _diff(event)


def _diff(event: Event) -> str:
    if event.version is None:
        return ""
    try:
        return f"\n\n{versions.diff(event.version)}".rstrip()
    except versions.VersionError:  # forgotten
        return ""


def _write(path: str, text: str) -> None:
    try:
        with open(os.path.expanduser(path), "x", encoding="utf-8") as file:
            file.write(f"{text.rstrip()}\n")
    except FileExistsError:
        raise UsageError(f"%daifu history: {path} exists already; nothing was written") from None
    except OSError as error:
        raise UsageError(f"%daifu history: can't write {path}: {error}") from None


@magic_arguments("daifu replay")
@argument("file", metavar="FILE", nargs="?", help="What `%%daifu history --script --to FILE` or `--json` has written.")
@argument("--off", action="store_true", help="Drop the answers that are left.")
def replay_file(runner: Runner, line: str) -> None:
    """Repair the crashes of this run as those of an earlier one were; without FILE, show what is left to answer."""
    chosen = parse_argstring(replay_file, line)
    if chosen.off:
        runner.manager.replay = None
    if chosen.file is not None:
        runner.manager.replay = _read(os.path.expanduser(chosen.file))
    held = runner.manager.replay
    if held is None:
        print("daifu: nothing is replayed")
    else:
        print(f"daifu: {held.left} answer{'s' * (held.left != 1)} of an earlier run left; they come before all rules")


def _read(path: str) -> Replay:
    """The answers in an exported script, which is run, or in JSON."""
    try:
        if not path.endswith(".py"):
            return replay(path)
        manager = runpy.run_path(path).get("manager")
    except Exception as error:  # whatever the script does
        raise UsageError(f"%daifu replay: can't read {path}: {error_text(error, 300)}") from None
    if not isinstance(manager, Replay):
        raise UsageError(f"%daifu replay: {path} was not made by `%daifu history --script`")
    return manager

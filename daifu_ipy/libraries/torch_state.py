"""Saves what torch can load again: models, optimizers, schedulers, scalers, and anything else with a ``state_dict``."""

from __future__ import annotations

import contextlib
import datetime
import inspect
import os
import random
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from daifu_ipy.libraries.plain_state import Problem, plain, tensors
from daifu_ipy.libraries.reaching import reached
from daifu_ipy.repair.largest import storage_of
from daifu_ipy.repair.places import place
from daifu_ipy.repair.saving import Saved, namespaces
from daifu_ipy.repair.summary import error_text, type_name
from daifu_ipy.repair.view import CrashView

_NEEDS_ALL_RANKS = frozenset(
    {"FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine", "DeepSpeedZeroOptimizer", "ZeroRedundancyOptimizer"}
)
_ROOM = 1 << 20


@dataclass
class _Contents:
    """What goes into the file, and what does not."""

    state: dict[str, Any] = field(default_factory=dict)
    saved: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)


def save(crash: CrashView, path: Path) -> Saved | None:
    """Write all that is found to `path`; None if torch is not in use, or nothing of it is there.

    Tensors are copied to the host one storage at a time, while they are written: nothing is allocated on a device.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    contents = _Contents()
    found = _outermost(torch, _found(torch, crash))
    if not found:
        return None
    usable: dict[str, str | None] = {}
    for name, value in found:
        _add(torch, contents, name, value, usable)
    size = _size(contents.state)
    free = shutil.disk_usage(path.parent).free
    if free < size + _ROOM:
        reason = f"{_mib(size)} are needed, and {_mib(free)} are free there"
        return Saved(failed=((str(path), reason), *contents.failed))
    if contents.state:
        _write(torch, _document(torch, crash, contents), path)
    notes = [*_half_done(crash), *_how_to_load(contents, path)]
    return Saved(str(path) if contents.state else None, tuple(contents.saved), tuple(contents.failed), tuple(notes))


# what is there


def _found(torch: Any, crash: CrashView) -> list[tuple[str, Any]]:
    seen: dict[int, Any] = {}
    made: dict[str, Any] = {}

    def is_wanted(value: Any) -> bool:
        if issubclass(type(value), torch.Tensor):
            return False
        found = inspect.getattr_static(type(value), "state_dict", None)  # a metaclass may have code of its own
        return callable(found) or isinstance(found, classmethod)

    for unit, namespace in namespaces(crash):
        for name, value in reached(namespace, is_wanted, seen):
            made[name if name not in made else f"{unit}: {name}"] = value
    return list(made.items())


def _outermost(torch: Any, found: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Without the modules that are parts of others."""
    modules = [value for _, value in found if issubclass(type(value), torch.nn.Module)]
    inside = {id(part) for module in modules for part in _modules(module) if part is not module}
    return [(name, value) for name, value in found if id(value) not in inside]


def _modules(module: Any) -> list[Any]:
    try:
        return list(module.modules())
    except Exception:  # half made: `_add` says so
        return []


def _add(torch: Any, contents: _Contents, name: str, value: Any, usable: dict[str, str | None]) -> None:
    """Take one object's state; whatever it does, the others are saved."""
    try:
        refuse_collective(torch, value)
        problems: list[tuple[str, str]] = []
        state = plain(torch, value.state_dict(), name, problems)
        for device in {str(tensor.device) for tensor in tensors(torch, state)}:
            if device not in usable:
                usable[device] = _trouble(torch, device)
            if usable[device] is not None:
                raise Problem(f"{device} does not answer: {usable[device]}")
    except Exception as error:
        contents.failed.append((name, str(error) if isinstance(error, Problem) else error_text(error)))
        return
    contents.state[name] = state
    contents.failed += problems
    contents.saved.append(f"{name}: {type_name(type(value))}, {_mib(_size(state))}")


def refuse_collective(torch: Any, value: Any) -> None:
    """Refuse an object whose ``state_dict`` would wait for other ranks.

    Raises
    ------
    Problem
        It would.
    """
    parts = value.modules() if isinstance(value, torch.nn.Module) else [value]
    for part in parts:
        names = {base.__name__ for base in type(part).__mro__}
        if names & _NEEDS_ALL_RANKS:
            raise Problem(f"{type(part).__name__}: all ranks would have to take part")


def _trouble(torch: Any, device: str) -> str | None:
    """Why a device can't be read from: after some errors it can't any more."""
    module = getattr(torch, device.partition(":")[0], None)
    synchronize = getattr(module, "synchronize", None)
    try:
        if synchronize is not None and device != "cpu":
            synchronize()
    except Exception as error:
        return error_text(error, 200)
    return None


# the file


def _document(torch: Any, crash: CrashView, contents: _Contents) -> dict[str, Any]:
    restart = crash.restart
    return {
        "daifu_saved": 1,
        "time": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "crash": f"{error_text(crash.exception)}, in {place(restart)}",
        "state": contents.state,
        "counters": _counters(crash),
        "rng": dict(_generators(torch)),
    }


def _counters(crash: CrashView) -> dict[str, Any]:
    """Plain numbers of the crashed functions, and what their loops have come to."""
    made: dict[str, Any] = {}
    for frame in crash.frames:
        unit = frame.unit.qualname
        numbers = {} if frame.unit.is_notebook_cell else frame.view()
        made |= {f"{unit}: {name}": value for name, value in numbers.items() if type(value) in (int, float, bool)}
        for loop in frame.progress:
            items = loop.target.items()
            made |= {f"{unit}: {name}": value for name, value in items if type(value) in (int, float, bool, str)}
    return made


def _generators(torch: Any) -> Iterator[tuple[str, Any]]:
    """The states of the random number generators, as they are now."""
    yield "python", random.getstate()
    yield "torch", torch.get_rng_state()
    with contextlib.suppress(Exception):
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            yield "torch.cuda", torch.cuda.get_rng_state_all()
    numpy = sys.modules.get("numpy.random")
    if numpy is not None and numpy.get_state(legacy=False)["bit_generator"] == "MT19937":
        name, keys, *rest = numpy.get_state()
        yield "numpy", (name, keys.tolist(), *rest)


def _write(torch: Any, document: dict[str, Any], path: Path) -> None:
    """Write under another name first: a file with the final name is whole."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "xb") as file:
            torch.save(document, file)
            file.flush()
            os.fsync(file.fileno())
        _name(part, path)
    finally:
        part.unlink(missing_ok=True)


def _name(part: Path, path: Path) -> None:
    """Give a file its final name, if no other has it."""
    try:
        os.link(part, path)  # unlike a renaming, this never replaces a file
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise
        part.rename(path)


def _size(state: Any) -> int:
    found = (storage_of(tensor) for tensor in tensors(sys.modules["torch"], state))
    return sum(dict(storage for storage in found if storage is not None).values())


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


# what is said


def _how_to_load(contents: _Contents, path: Path) -> list[str]:
    if not contents.state:
        return []
    first = next(iter(contents.state))
    name = first.rpartition(": ")[2]
    return [
        f'load it by: saved = torch.load("{path}", weights_only=True)',
        f'            {name}.load_state_dict(saved["state"][{first!r}])',
        '            saved["rng"], saved["counters"]: random number generators; loop counters and numbers',
    ]


def _half_done(crash: CrashView) -> list[str]:
    entry: TracebackType | None = crash.stack
    while entry is not None:
        if str(entry.tb_frame.f_globals.get("__name__", "")).startswith("torch.optim"):
            return ["the crash is inside an optimizer's step: some parameters may have made it, and others not"]
        entry = entry.tb_next
    return []

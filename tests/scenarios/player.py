"""Plays one recovery case (format: cases/README.md): crash, recovery, check."""

from __future__ import annotations

import importlib.util
import linecache
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import daifu_ipy
from daifu_ipy import Crash, Pass, Repair, Surgery


@dataclass
class Case:
    """A case file's definitions."""

    name: str
    definitions: dict[str, Any]

    @classmethod
    def load(cls, path: Path) -> Case:
        """Read a case file."""
        spec = importlib.util.spec_from_file_location(f"daifu_case_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return cls(path.stem, vars(module))

    @property
    def needs(self) -> set[str]:
        """The kinds of repair that it uses."""
        return {kind for kind, *_ in self.definitions["RECOVERY"]}


class CaseManager:
    """Answers each crash by the next element of RECOVERY, and checks that the crash is the expected one."""

    def __init__(self, case: Case) -> None:
        self.left = list(case.definitions["RECOVERY"])
        self.fault = case.definitions["FAULT"]
        self.first = True
        self.problems: list[str] = []

    def __call__(self, crash: Crash) -> Repair | None:
        if crash.refusal is not None:
            self.problems.append(f"refused: {crash.refusal}")
            return None
        if self.first:
            self.first = False
            self._check(crash)
        if not self.left:
            self.problems.append(f"one crash too many: {crash!r}")
            return None
        kind, *text = self.left.pop(0)
        if kind == "action":
            return Repair(actions=(text[0],))
        return Repair(then=Surgery(text[0]) if kind == "surgery" else Pass())

    def _check(self, crash: Crash) -> None:
        names = [kind.__name__ for kind in type(crash.exception).__mro__]
        if self.fault["exc"] not in names:
            self.problems.append(f"{self.fault['exc']} expected, {crash!r} came")
        line = linecache.getline(crash.restart.filename, crash.restart.line).strip()
        if not line.startswith(self.fault["stmt"]):
            self.problems.append(f"crash expected at {self.fault['stmt']!r}, but it is at {line!r}")


def play(case: Case) -> list[str]:
    """Run a case; returns what went wrong (nothing: it passed).

    An exception that escapes is let through: a handler here would be one of the program's, and nothing would be a crash.
    """
    given = case.definitions
    name = f"daifu_played_{case.name}"
    module = types.ModuleType(name)
    sys.modules[name] = module
    namespace = module.__dict__
    exec(compile(given["ARGS"], f"<{case.name} ARGS>", "exec", dont_inherit=True), namespace)
    manager = CaseManager(case)
    try:
        with daifu_ipy.repair_with(manager):
            if given["ENTRY"] is None:
                daifu_ipy.run_cell(given["SOURCE"], namespace, filename=f"<{case.name}>")
            else:
                namespace["result"] = _call(case, namespace)
        if manager.left:
            manager.problems.append(f"recovery steps not used: {manager.left}")
        if not manager.problems:
            exec(compile(given["CHECK"], f"<{case.name} CHECK>", "exec", dont_inherit=True), namespace)
    finally:
        del sys.modules[name]
    return manager.problems


def _call(case: Case, namespace: dict[str, Any]) -> object:
    given = case.definitions
    filename = f"<{case.name}>"
    source = given["SOURCE"]
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec", dont_inherit=True), namespace)
    daifu_ipy.vaccinate(_lookup(namespace, given.get("TARGET", given["ENTRY"])), strict=True)
    args = namespace["make_args"]()
    entry = _lookup(namespace, given["ENTRY"])
    if "DRIVE" in given:
        return eval(given["DRIVE"], {**namespace, "ENTRY": entry, "args": args})
    return entry(*args)


def _lookup(namespace: dict[str, Any], dotted: str) -> Any:
    first, *rest = dotted.split(".")
    found = namespace[first]
    for name in rest:
        found = getattr(found, name)
    return found

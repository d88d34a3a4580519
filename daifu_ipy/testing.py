"""One line makes a test: a program runs plainly, then vaccinated and crashed, and nothing may differ.

CPython itself is the reference. Both runs execute the same text, in which `at(k)` stands before every
statement of the unit. Each `at(k)`, and each helper that a program may call (crash_points.py), is a crash
point: an injected crash there, repaired by `Pass`, must leave no trace. A retried statement runs again from
its start, so a program keeps an effect behind all other points of its statement.
"""

from __future__ import annotations

import ast
import difflib
import gc
import inspect
import itertools
import linecache
import re
import sys
import textwrap
from collections.abc import AsyncIterator, Coroutine, Generator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any, TypedDict, Unpack

import daifu_ipy
from daifu_ipy.crash_points import (
    PROGRAM,
    InjectedCrash,
    World,
    describe,
    describe_exception,
    describe_locals,
    describe_names,
)
from daifu_ipy.engine.managers import settings
from daifu_ipy.engine.texts import keep

__all__ = ["InjectedCrash", "expect_aborts", "expect_recovers"]

_LEFT = re.compile(r"(\w+=None[,; ]*)*")
"""The locals of a frame that was left by a takeover, in the traceback of an exception from before it."""
_numbers = itertools.count(1)
_HEADERS = {
    "function": "def f():",
    "generator": "def f():",
    "coroutine": "async def f():",
    "async generator": "async def f():",
    "method": "class K(Base):\n def f(self):",
    "notebook cell": "",
    "module": "",
}


class Unit(TypedDict, total=False):
    """How a program is vaccinated and run."""

    kind: str
    """One of "function" (default), "method", "generator", "coroutine", "async generator", "notebook cell" and
    "module"."""
    target: str
    """The expression for what is vaccinated in a module (default "f"; several with commas)."""
    call: str
    """The expression that runs it (default "f()")."""
    drive: str | None
    """Code that drives the generator or coroutine ``g`` and logs by ``seen(x)`` (default: to its end)."""
    intercept: str
    """The engine's setting: "auto" (default), "unhandled" or "all"."""


def expect_recovers(
    source: str,
    *,
    crash_at: int | tuple[int, ...] | None = None,
    repair: object = None,
    pairs: bool = False,
    points: str = "all",
    like: str | None = None,
    **unit: Unpack[Unit],
) -> None:
    """Check that `source`, crashed and repaired, can't be told from `source` run plainly.

    Where the program itself takes the injected crash, by ``except:`` or a ``finally`` that is left by a jump,
    the reference is the plain run with the same crash, and a bare ``except`` must not be intercepted at all.

    Parameters
    ----------
    source : str
        The body of a unit or, for the kinds "notebook cell" and "module", the whole text.
    crash_at : int or tuple of int, optional
        The points to crash at, counted from 1 as they are reached; a retried point counts again. Default:
        every point, each in a run of its own, after a run without a crash.
    repair : Repair or ending, optional
        The answer to every injected crash, by default `Pass`. The program's own exceptions are aborted.
    pairs : bool
        Crash at every pair of points, too.
    points : {"all", "statements"}
        "statements" leaves the helpers out, for statements with more than one effect.
    like : str, optional
        The program whose plain run is the reference, by default `source`.
    **unit : Unit
        How the program is vaccinated and run.

    Raises
    ------
    AssertionError
        On the first run that differs: the program, the differences and the one line that reproduces it.
    """
    repair = daifu_ipy.Pass() if repair is None else repair
    program, example = _Program(source, **unit), _Program(source if like is None else like, **unit)
    plain = _run(example)
    natively, crashed = cache(partial(_run, program)), cache(partial(_run, program, repair=repair))
    call = _spell("expect_recovers", source, repair=repair, points=points, like=like, **unit)

    def check(*crashes: int) -> _Run:
        run, expected, interceptions = crashed(crashes), plain, len(crashes)
        may_handle = program.catches_all or len(run.interceptions) < len(crashes)
        if crashes and like is None and may_handle:
            # what was reached again after the earlier crashes is not there in a plain run
            repeated = len(crashed(crashes[:-1]).trail) - len(plain.trail)
            handled = natively((crashes[-1] - repeated,))
            if not handled.escaped:
                expected, interceptions = handled, len(crashes) - 1
        _compare(call, program, crashes, expected, run, interceptions)
        return run

    if crash_at is not None:
        check(*(crash_at if isinstance(crash_at, tuple) else (crash_at,)))
        return
    check()
    for first in _points(natively(()), points):
        run = check(first)
        if pairs and run.interceptions:
            for second in range(first + 1, len(run.trail) + 1):
                check(first, second)


def expect_aborts(source: str, *, crash_at: int | None = None, points: str = "all", **unit: Unpack[Unit]) -> None:
    """Check that a crash answered by `Abort` is the plain run with the same exception, to the very columns.

    Not for ``for`` and ``with`` lines: up to Python 3.12 the interpreter blames all of the statement.

    The parameters are those of `expect_recovers`.
    """
    program = _Program(source, **unit)
    spelled = _spell("expect_aborts", source, points=points, **unit)
    for crash in _points(_run(program), points) if crash_at is None else [crash_at]:
        expected = _run(program, (crash,), columns=True)
        run = _run(program, (crash,), daifu_ipy.Abort(), columns=True)
        interceptions = 1 if expected.escaped else min(1, len(run.interceptions))
        _compare(spelled, program, (crash,), expected, run, interceptions)


# -- programs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Program:
    """A unit and how it is run."""

    source: str
    kind: str = "function"
    target: str = ""
    call: str = ""
    drive: str | None = None
    intercept: str = "auto"
    file: str = field(default_factory=lambda: f"{PROGRAM}{next(_numbers)}>")

    @cached_property
    def text(self) -> str:
        """What both runs execute: the source, in its unit, with probes."""
        header, text = _HEADERS[self.kind], self.source
        if header:
            text = f"{header}\n{textwrap.indent(text + chr(10) + 'final(locals())', '  ')}"
        return _with_probes(text, None if self.kind == "notebook cell" else self._targets)

    @cached_property
    def catches_all(self) -> bool:
        """Whether the program has a handler that an injected crash can't pass."""
        handlers = (node for node in ast.walk(ast.parse(self.text)) if isinstance(node, ast.ExceptHandler))
        return any(node.type is None or "BaseException" in ast.unparse(node.type) for node in handlers)

    @property
    def _targets(self) -> str:
        return self.target or ("K.f" if self.kind == "method" else "f")

    @cached_property
    def _code(self) -> Any:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if self.kind == "notebook cell" else 0
        return compile(self.text, self.file, "exec", flags, dont_inherit=True)

    def start(self, namespace: dict[str, Any], *, vaccinated: bool) -> Any:
        """Run the program; its value may be a generator or a coroutine that is still to be driven."""
        if self.kind == "notebook cell":
            if vaccinated:
                return daifu_ipy.run_cell(self.text, namespace, filename=self.file)
            return eval(self._code, namespace)
        exec(self._code, namespace)
        if vaccinated:
            for target in eval(f"[{self._targets}]", namespace):
                daifu_ipy.vaccinate(_function_of(target), strict=True)
        call = self.call or ("K().f()" if self.kind == "method" else "f()")
        return eval(compile(call, "<call>", "eval", dont_inherit=True), namespace)


def _function_of(target: Any) -> Any:
    """The function in a method, property, or class or static method."""
    for name in ("__func__", "fget"):
        target = getattr(target, name, target)
    return target


def _with_probes(text: str, targets: str | None) -> str:
    """Put `at(k)` before each statement of the functions named in `targets`, and in them; None: of all."""
    named = re.findall(r"\w+", targets or "")
    lines, places = text.split("\n"), list[tuple[int, int]]()

    def visit(node: ast.AST, within: bool) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            private = [name for name in named if node.name.startswith("__") and name.endswith(node.name)]
            within = within or node.name in named or bool(private)
        for child in ast.iter_child_nodes(node):
            in_unit = within and not isinstance(node, ast.ClassDef)
            if in_unit and isinstance(child, ast.stmt) and not has_fixed_place(node, child):
                first = min([child.lineno, *(each.lineno for each in getattr(child, "decorator_list", ()))])
                places.append((first - 1, child.col_offset))
            if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                visit(child, within)

    def has_fixed_place(parent: ast.AST, child: ast.stmt) -> bool:
        match parent, child:
            case ((ast.Module() | ast.FunctionDef() | ast.AsyncFunctionDef()), ast.Expr(ast.Constant(str()))):
                return child is parent.body[0]
            case _, ast.ImportFrom("__future__"):
                return True
        return lines[child.lineno - 1].encode().startswith(b"elif", child.col_offset)

    visit(ast.parse(text), targets is None)
    for number, (line, column) in sorted(enumerate(places, 1), key=lambda place: place[1], reverse=True):
        before = lines[line].encode()[:column].decode()
        probe = f"at({number}); " if before.strip() else f"at({number})\n{before}"
        lines[line] = before + probe + lines[line].removeprefix(before)
    return "\n".join(lines) + "\n"


# -- runs ---------------------------------------------------------------------------------------------------


@dataclass
class _Run:
    """What can be observed of a run, as text: it keeps nothing of the program alive."""

    log: list[str] = field(default_factory=list)
    trail: list[str] = field(default_factory=list)
    interceptions: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    escaped: bool = False
    result: str = ""
    raised: str = ""
    post_mortem: str = ""
    names: str = ""
    alive: str = ""

    def lines(self) -> list[str]:
        """The log and the outcome; objects that die at the same moment do so in any order."""
        lines: list[str] = []
        for dying, group in itertools.groupby(self.log, lambda entry: entry.startswith("dies ")):
            entries = list(group)
            lines += sorted(entries) if dying else entries
        outcome = ("result", "raised", "names", "alive")
        return lines + [f"-- {name}: {getattr(self, name)}" for name in outcome]


def _run(program: _Program, crashes: tuple[int, ...] = (), repair: object = None, *, columns: bool = False) -> _Run:
    """Run plainly or, given a repair, vaccinated."""
    world = World(crashes)
    run, namespace = _Run(world.lines, world.trail), {"__name__": "program", **world.helpers}
    manager = nullcontext() if repair is None else daifu_ipy.repair_with(partial(_answer, run, repair))
    keep(program.file, program.text)
    collecting, hook, setting = gc.isenabled(), sys.unraisablehook, settings.intercept
    gc.disable()
    settings.intercept = program.intercept
    sys.unraisablehook = lambda what: run.log.append(f"unraisable {describe_exception(what.exc_value)}")
    try:
        # the handler below lies outside the block: inside it the engine would take it for the program's own
        with manager:
            vaccinated = repair is not None
            run.result = describe(_drive(program.start(namespace, vaccinated=vaccinated), program.drive, world))
    except BaseException as error:
        run.raised, run.post_mortem = describe_exception(error, columns), describe_locals(error)
        crashes_of = error.subgroup(InjectedCrash) if isinstance(error, BaseExceptionGroup) else None
        run.escaped = isinstance(error, InjectedCrash) or crashes_of is not None
    finally:
        run.names = describe_names(namespace, without={"__builtins__", *world.helpers})
        namespace.clear()
        if world.alive:
            run.alive = f"{sorted(world.alive)} before a collection"
            gc.collect()
            run.alive += f", {sorted(world.alive)} after it"
        sys.unraisablehook, settings.intercept = hook, setting
        linecache.cache.pop(program.file, None)
        if collecting:
            gc.enable()
    return run


def _answer(run: _Run, repair: object, crash: Any) -> object:
    """The repair manager: the program's own exceptions are not ours to repair."""
    if not isinstance(crash.exception, InjectedCrash):
        run.own.append(describe_exception(crash.exception))
        return daifu_ipy.Abort()
    run.interceptions.append(f"{crash.restart}" + (f", refused: {crash.refusal}" if crash.refusal else ""))
    return repair


def _drive(value: Any, code: str | None, world: World) -> Any:
    """Take a generator or coroutine to its end, or as far as `code` takes it."""
    if code is not None:
        namespace = {"g": value, "seen": world.note}
        del value  # so that the code can drop it
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        value = eval(compile(code, "<drive>", "exec", flags, dont_inherit=True), namespace)
    if inspect.isgenerator(value):
        return _exhaust(value, world)
    if inspect.isasyncgen(value):
        value = _exhaust_async(value, world)
    return _complete(value) if inspect.iscoroutine(value) else value


def _exhaust(generator: Generator[Any, Any, Any], world: World) -> Any:
    try:
        while True:
            world.note(next(generator))
    except StopIteration as stop:
        return stop.value


async def _exhaust_async(generator: AsyncIterator[Any], world: World) -> None:
    async for item in generator:
        world.note(item)


def _complete(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value


# -- reports ------------------------------------------------------------------------------------------------


def _compare(
    call: str, program: _Program, crashes: tuple[int, ...], expected: _Run, actual: _Run, interceptions: int
) -> None:
    """Raise an AssertionError with a report unless the runs are the same."""
    faults: list[str] = []
    if actual.lines() != expected.lines():
        faults += difflib.ndiff(expected.lines(), actual.lines())
    if actual.post_mortem != expected.post_mortem and not _LEFT.fullmatch(actual.post_mortem):
        faults.append(f"post mortem, locals were {expected.post_mortem} and are {actual.post_mortem}")
    if len(actual.interceptions) != interceptions:
        faults.append(f"{interceptions} interceptions expected, {len(actual.interceptions)} made")
    if actual.own and not expected.raised and program.intercept == "auto":
        faults.append(f"intercepted, though the program handles it: {actual.own}")
    if max(crashes, default=0) > len(actual.trail):
        faults.append(f"there are only {len(actual.trail)} crash points")
    if faults:
        numbered = [f"{number:4} {line}" for number, line in enumerate(program.text.splitlines(), 1)]
        where = [f"{number}, {name}" for number, name in enumerate(actual.trail, 1) if number in crashes]
        at = f", crash_at={crashes[0] if len(crashes) == 1 else crashes}"
        raise AssertionError("\n".join([
            "the vaccinated run differs (-: plain run, +: vaccinated run)",
            *numbered,
            f"crash points: {'; '.join(where) or 'none'}",
            f"intercepted at: {'; '.join(actual.interceptions) or 'none'}",
            *faults,
            f"once more: {call[:-1]}{at if crashes else ''})",
        ]))  # fmt: skip


def _spell(function: str, source: str, **options: object) -> str:
    """The call that repeats a run, but for where to crash."""
    defaults = {"repair": daifu_ipy.Pass(), "points": "all", "like": None, "drive": None}
    given = {name: value for name, value in options.items() if value != defaults.get(name, "")}
    return f"{function}({source!r}{''.join(f', {name}={value!r}' for name, value in given.items())})"


def _points(plain: _Run, points: str) -> list[int]:
    prefix = {"all": "", "statements": "at("}[points]
    found = [number for number, name in enumerate(plain.trail, 1) if name.startswith(prefix)]
    if not found:
        raise ValueError("the program reaches no crash point")
    return found

"""Runs ``%%daifu`` cells: called by the few statements that stand for a cell (`transformers`).

Only when a cell starts is it known under which name, with which variables and with which ``__future__`` features it
runs: the frame that calls `start` tells. So it is compiled and vaccinated then.
"""

from __future__ import annotations

import ast
import gc
import inspect
import itertools
import linecache
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType
from typing import Any

from IPython.core.error import UsageError

from daifu_ipy.engine import barrier as engine_barrier
from daifu_ipy.engine.barrier import Barrier
from daifu_ipy.engine.cells import cell_function, compile_cell
from daifu_ipy.engine.compiling import FUTURE_FLAGS, quietly
from daifu_ipy.engine.interception import barrier_in
from daifu_ipy.engine.remembered import Remembered
from daifu_ipy.engine.shapes import STATE, Options
from daifu_ipy.engine.unit import CannotVaccinate
from daifu_ipy.engine.vaccinate import all_functions, vaccinated_cell
from daifu_ipy.magic.manager import CellSettings, CrashManager, running
from daifu_ipy.magic.options import CellOptions, Daifu
from daifu_ipy.magic.protect import Protection, functions_reached, is_wanted, protect, say_protected
from daifu_ipy.magic.showing import vaccinated_source
from daifu_ipy.magic.shown import Shown, store_texts

OWN_FILES = frozenset({__file__, engine_barrier.__file__})
MOST_WAITING = 32

_numbers = itertools.count(1)
_expected: OrderedDict[int, _Cell] = OrderedDict()
_values: dict[int, Any] = {}
_outer: dict[int, CellSettings | None] = {}


# what the statements call


def start(number: int) -> Callable[[], Any]:
    """The vaccinated cell, ready to be called."""
    cell = _expected.pop(number, None)
    if cell is None:
        raise UsageError("%%daifu: this code has run already; it is compiled for one run")
    _outer[number] = running.get()
    return cell.prepare(sys._getframe(1))


def strip(number: int) -> None:
    """Take the frames between IPython and the cell out of the traceback of the exception that leaves the cell."""
    _values.pop(number, None)
    error = sys.exception()
    entry = error.__traceback__ if error is not None else None
    inner = entry.tb_next if entry is not None else None
    while inner is not None and inner.tb_frame.f_code.co_filename in OWN_FILES:
        inner = inner.tb_next
    if error is not None and inner is not None:
        error.__traceback__ = inner


def end(number: int) -> None:
    """The cell has ended, one way or the other."""
    ended = running.get()
    if ended is not None:
        ended.end()
    running.set(_outer.pop(number, None))


def take(number: int) -> Any:
    """The value of the cell's last expression; of its last assignment, where IPython shows those."""
    value = _values.pop(number, None)
    return sys._getframe(1).f_globals[value.name] if type(value) is _Assigned else value


@dataclass(frozen=True)
class _Assigned:
    """Stands for the value that a variable has at the end."""

    name: str


def refuse(message: str) -> None:
    """A ``%%daifu`` line that can't be read."""
    raise UsageError(message)


# the cell


@dataclass
class Runner:
    """What every cell of a shell needs."""

    shell: Any
    daifu: Daifu
    manager: CrashManager
    plain: dict[str, str] = field(default_factory=dict)  # what runs plainly, and why
    swapped: weakref.WeakSet[FunctionType] = field(default_factory=weakref.WeakSet)
    remembered: Remembered = field(default_factory=Remembered)  # vaccinated by ``%daifu vaccinate``
    born: weakref.WeakSet[Barrier] = field(default_factory=weakref.WeakSet)  # of ``%%daifu`` cells
    said: set[tuple[str, str]] = field(default_factory=set)  # what runs plainly, and why, in cells that nobody marked
    on_start: list[Callable[[CellSettings], object]] = field(default_factory=list)  # told when a cell starts

    def number(self) -> int:
        """A number by which the statements ask for their cell."""
        return next(_numbers)

    def expect(self, number: int, tree: ast.Module, options: CellOptions, text: Callable[[], str]) -> None:
        """Have a cell ready for the statements with this number."""
        _expected[number] = _Cell(self, number, tree, options, text)
        while len(_expected) > MOST_WAITING:  # never started: they did not compile in their surroundings
            _expected.popitem(last=False)

    def is_own(self, code: CodeType) -> bool:
        """Whether code comes from a cell of this notebook."""
        return self.shell.compile.format_code_name(code.co_filename) is not None

    def note(self, protection: Protection) -> None:
        """Remember what was protected, and what could not be."""
        self.swapped.update(protection.fresh)
        for function in protection.functions:
            self.plain.pop(function.__qualname__, None)
        self.plain.update(protection.reasons)

    def say_plain(self, name: str, reason: str, options: CellOptions) -> None:
        """Say what runs plainly, and why; in a cell that nobody marked, once."""
        if not options.quiet or (name, reason) not in self.said:
            print(f"daifu: {name} runs plainly: {reason}")
        if options.quiet:
            self.said.add((name, reason))

    def functions(self) -> list[FunctionType]:
        """The notebook's functions and methods, and others that ``%daifu`` has protected."""
        shell = self.shell
        values = [value for name, value in shell.user_ns.items() if name not in shell.user_ns_hidden]
        reached = functions_reached(values, self.is_own, [shell, shell.user_ns])
        return list(dict.fromkeys([*reached, *self.swapped]))

    def vaccinated_here(self) -> list[FunctionType]:
        """Functions that are vaccinated by, or defined in, protected cells, whoever holds them."""
        return [f for f in gc.get_objects() if type(f) is FunctionType and self._has_vaccinated(f)]

    def _has_vaccinated(self, function: FunctionType) -> bool:
        barrier = barrier_in(function.__code__)
        if barrier is None or barrier.unit.is_notebook_cell or STATE in function.__code__.co_freevars:
            return False  # a cell that has run, or an unfinished procedure
        return function in self.swapped or barrier in self.born


@dataclass(eq=False)
class _Cell:
    runner: Runner
    number: int
    tree: ast.Module
    options: CellOptions
    text: Callable[[], str]

    def prepare(self, frame: FrameType) -> Callable[[], Any]:
        settings = CellSettings.of(self.options, self.runner.daifu)
        running.set(settings)
        for tell in self.runner.on_start:
            tell(settings)
        protection = self._protect(frame.f_globals)
        self.runner.manager.adopt(protection.barriers(), settings)
        shown = Shown.of(self.tree, _interactivity(frame, self.runner.shell))
        if shown.name is not None:
            self._keep(_Assigned(shown.name))
        try:
            run = self._vaccinated(frame, shown, settings)
        except Exception as error:
            reason = str(error) if isinstance(error, CannotVaccinate) else f"internal error: {error!r:.300}"
            if self.options.strict:
                raise UsageError(f"%%daifu: {reason}") from None
            self._say(protection, reason)
            return self._natively(frame, shown)
        self._say(protection, None)
        return run

    def _protect(self, namespace: dict[str, Any]) -> Protection:
        """Vaccinate what the cell uses; whatever an object does while it is looked at, the cell runs."""
        try:
            with quietly():
                made = protect(self.tree, namespace, self.runner.is_own, self.options.only, apart=(self.runner.shell,))
        except Exception as error:
            made = Protection(reasons={"what this cell calls": f"internal error: {error!r:.300}"})
        self.runner.note(made)
        return made

    def _vaccinated(self, frame: FrameType, shown: Shown, settings: CellSettings) -> Callable[[], Any]:
        namespace, code = frame.f_globals, frame.f_code
        if frame.f_locals is not namespace:
            raise CannotVaccinate("this shell has local variables of its own, beside the module's")
        filename, source = self._text(frame)
        plain = compile_cell(self.tree, filename, code.co_flags)
        if _by_ipython(frame):
            store_texts(self.tree, shown)
        options = Options(displayed=frozenset(shown.at_once) or frozenset(shown.kept))
        with quietly():
            made = vaccinated_cell(self.tree, plain, source, namespace, options, self.options.only)
        if self.options.show:
            print(vaccinated_source(made.barrier))
        if not shown.at_once:
            made.barrier.display = self._keep  # type: ignore[method-assign]
        self.runner.manager.adopt(made.barrier.barriers.values(), settings)
        self.runner.born.update(made.barrier.barriers.values())
        return cell_function(made, namespace)

    def _text(self, frame: FrameType) -> tuple[str, str]:
        """The cell's file name, and its text.

        IPython keeps no text of what a magic runs (``<timed exec>``): it gets a name, so that tracebacks, the crash's
        stack and `inspect` find it, with the line numbers that the notebook shows.
        """
        filename = frame.f_code.co_filename
        known = "".join(linecache.getlines(filename))
        text = "" if known else self.text()
        if not text:
            return filename, known
        if frame.f_back is not None and frame.f_back.f_code.co_name == "time":
            ast.increment_lineno(self.tree)
            text = f"\n{text}"
        result = self.runner.shell.displayhook.exec_result
        count = self.runner.shell.execution_count if result is None else result.execution_count
        return self.runner.shell.compile.cache(text, count), text

    def _keep(self, value: Any) -> None:
        _values[self.number] = value

    def _keep_last(self, shown: Shown, value: Any) -> None:
        if shown.kept:
            self._keep(value)

    def _say(self, protection: Protection, reason: str | None) -> None:
        for name, why in [*([] if reason is None else [("this cell", reason)]), *protection.reasons.items()]:
            self.runner.say_plain(name, why, self.options)
        if self.options.quiet:
            return
        own: list[str] = []
        if self.options.only is not None:
            own = [f.qualname for f in all_functions(self.tree.body) if is_wanted(f.qualname, self.options.only)]
            there = [*own, *(function.__qualname__ for function in protection.functions)]
            for name in sorted(self.options.only):
                if not any(is_wanted(qualname, frozenset({name})) for qualname in there):
                    print(f"daifu: --only {name}: this cell neither defines nor uses such a function")
            say_protected(protection, own, always=bool(own))
        else:
            say_protected(protection, ["this cell"] if reason is None else [])

    def _natively(self, frame: FrameType, shown: Shown) -> Callable[[], Any]:
        """The cell as IPython runs it, statement by statement."""
        name, flags = frame.f_code.co_filename, frame.f_code.co_flags & FUTURE_FLAGS
        flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        codes = [compile(node, name, mode, flags, True) for node, mode in shown.pieces(self.tree)]  # type: ignore[call-overload]
        spaces = frame.f_globals, frame.f_locals

        def run() -> None:
            for code in codes:
                self._keep_last(shown, eval(code, *spaces))

        async def run_awaiting() -> None:
            for code in codes:
                result = eval(code, *spaces)
                self._keep_last(shown, await result if code.co_flags & inspect.CO_COROUTINE else result)

        return run_awaiting if any(code.co_flags & inspect.CO_COROUTINE for code in codes) else run


def _by_ipython(frame: FrameType) -> bool:
    """Whether IPython itself runs the cell; else a magic such as ``%%time`` does, all at once."""
    return frame.f_back is not None and frame.f_back.f_code.co_name == "run_code"


def _interactivity(frame: FrameType, shell: Any) -> str:
    if not _by_ipython(frame):
        return "last_expr"
    result = shell.displayhook.exec_result
    return "none" if result is not None and result.info.silent else str(shell.ast_node_interactivity)

"""Pdb's commands that look at a crash: source, values, displays."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import pydoc
import re
import sys
import traceback
import types
from collections.abc import Iterable
from itertools import islice
from typing import Any

from daifu_ipy.frontends.crash_pdb import CrashPdb
from daifu_ipy.frontends.drafts import first_line, present_text
from daifu_ipy.frontends.typed import assigns_inside
from daifu_ipy.repair.stack import format_stack
from daifu_ipy.repair.summary import one_line, summarise

INTERACT = ">>> "

_MAX_LINE = 600
_MAX_VARIABLES = 60
_LISTED = 11
_UNINTERESTING = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)


class LookingPdb(CrashPdb):
    """Shows source and values of the selected frame."""

    def obey(self, line: str) -> None:
        """Do what a line says, then show which displayed values it has changed."""
        super().obey(line)
        self._show_changes()

    # source

    def do_list(self, arg: str) -> None:
        """l(ist) [FIRST[, LAST] | .]: show lines around the executing one, or go on showing."""
        level = self.levels.selected
        numbers = [int(part) for part in re.findall(r"\d+", arg)]
        first = level.line - _LISTED // 2 if self.lineno is None or arg == "." else self.lineno + 1
        first = max(numbers[0] if numbers else first, 1)
        last = first + _LISTED - 1
        if len(numbers) > 1:
            last = numbers[1] if numbers[1] >= first else first + numbers[1]
        lines = linecache.getlines(level.frame.f_code.co_filename, level.frame.f_globals)
        self._show_lines(lines[first - 1 : last], first)
        self.lineno = min(last, len(lines))
        if last > len(lines):
            self.message("[EOF]")

    do_l = do_list

    def do_longlist(self, arg: str) -> None:
        """ll: show the whole function, or notebook cell."""
        unit, frame = self.levels.unit, self.levels.selected.frame
        text = present_text(unit, frame)
        if not text:
            self.error("its source can't be found")
        self._show_lines(text.splitlines(), first_line(unit, frame.f_code))

    do_ll = do_longlist

    def _show_lines(self, lines: Iterable[str], first: int) -> None:
        for number, line in enumerate(lines, first):
            mark = "->" if number == self.levels.selected.line else "  "
            self.message(f"{mark} {number:>5} | {line.rstrip()}".rstrip())

    # values

    def _getval(self, arg: str) -> Any:
        try:
            if assigns_inside(arg):
                raise SyntaxError("this only looks: leave the command out to assign")
            return eval(arg, self.names())
        except BaseException:
            self._error_exc()
            raise

    def _error_exc(self) -> None:
        self.error(one_line("".join(traceback.format_exception_only(sys.exception())), _MAX_LINE))

    def do_args(self, arg: str) -> None:
        """a(rgs): show the arguments of the function."""
        code, bound = self.levels.selected.frame.f_code, self.variables
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        for name in code.co_varnames[:count]:
            self.message(f"{name} = {summarise(bound[name]) if name in bound else '*** undefined ***'}")

    do_a = do_args

    def do_vars(self, arg: str) -> None:
        """vars: show the variables, each in one line."""
        shown = [
            (name, value)
            for name, value in self.variables.items()
            if not name.startswith("__") and not issubclass(type(value), _UNINTERESTING)
        ]
        for name, value in islice(shown, _MAX_VARIABLES):
            self.message(f"{name} = {summarise(value)}")
        if len(shown) > _MAX_VARIABLES:
            self.message(f"... {len(shown) - _MAX_VARIABLES} more")

    def do_stack(self, arg: str) -> None:
        """stack: show the annotated stack again."""
        self.message(format_stack(self.crash))

    def do_display(self, arg: str) -> None:
        """display [EXPR]: show the value of EXPR now, and whenever it has changed."""
        if arg:
            self._displayed[arg] = ""
        for expression, text in self._displayed.items() if not arg else ():
            self.message(f"display {expression}: {text}")

    def do_undisplay(self, arg: str) -> None:
        """undisplay [EXPR]: show it no more; without EXPR, none."""
        if not arg:
            self._displayed.clear()
        elif self._displayed.pop(arg, None) is None:
            self.error(f"not displaying {arg}")

    def _show_changes(self) -> None:
        for expression, before in self._displayed.items():
            now = self._summary(expression)
            if now != before:
                self._displayed[expression] = now
                self.message(f"display {expression}: {now}" + (f"  [old: {before}]" if before else ""))

    def _summary(self, expression: str) -> str:
        try:
            return summarise(eval(expression, self.names()))
        except Exception as error:
            return f"** raised {type(error).__name__} **"

    def do_pinfo(self, arg: str) -> None:
        """pinfo EXPR, or EXPR?: describe an object."""
        by_shell = getattr(super(), "do_pinfo", None)
        if by_shell is not None:
            by_shell(arg)
            return
        with contextlib.suppress(Exception):
            value = self._getval(arg)
            if inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value):
                self.message(pydoc.plain(pydoc.render_doc(value, "%s")))
            else:
                self.message(f"{type(value)}: {summarise(value)}\n{inspect.getdoc(value) or ''}")

    def do_pinfo2(self, arg: str) -> None:
        """pinfo2 EXPR, or EXPR??: describe an object, with its source."""
        by_shell = getattr(super(), "do_pinfo2", None)
        (by_shell or self.do_source)(arg)

    def do_interact(self, arg: str) -> None:
        """interact: take lines of Python only, up to the end of input (Ctrl-D) or exit(); assignments stick."""
        while True:
            try:
                line = self.ask(INTERACT)
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            if line.strip() in ("exit()", "quit()"):
                return
            code = self.read_block(line)
            if code and code.strip():
                self.act(code)
                self._refresh()

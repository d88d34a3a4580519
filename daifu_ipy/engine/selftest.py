"""Does patched code do on this Python what the native statements do? Asked once; if not, helpers stand in."""

from __future__ import annotations

import ast
import dis
import functools
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from daifu_ipy.engine.compiling import compile_function, patch
from daifu_ipy.engine.scopes import HIDDEN


@functools.cache
def patches_work() -> bool:
    """Run both patches on a small program; any failure counts as no."""
    try:
        return _iterates_once() and _enters() and _leaves()
    except Exception:
        return False


class _Twice:
    """Counts how often it is asked for an iterator, which itself can't be iterated."""

    asked = 0

    def __iter__(self) -> Iterator[int]:
        self.asked += 1
        return _Bare()  # type: ignore[return-value]


class _Bare:
    left = 2

    def __next__(self) -> int:
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left


class _Manager:
    def __enter__(self) -> str:
        return "entered"

    def __exit__(self, *info: object) -> str:
        return "left"


def _patched(source: str) -> Any:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for field in ("id", "name"):
            if getattr(node, field, "").startswith("slot_"):
                setattr(node, field, HIDDEN + getattr(node, field).removeprefix("slot_"))
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef):
        raise TypeError("the self-test is no function")
    code = patch(compile_function(function, [], None, "<daifu self-test>", 0))
    return FunctionType(code, {})


def _iterates_once() -> bool:
    run = _patched("def f(xs):\n    n = []\n    for x in (slot_i1 := xs):\n        n.append(x)\n    return n, slot_i1")
    xs = _Twice()
    seen, iterator = run(xs)
    return seen == [1, 0] and xs.asked == 1 and type(iterator) is _Bare


def _enters() -> bool:
    if "BEFORE_WITH" not in dis.opmap or "BEFORE_ASYNC_WITH" not in dis.opmap:
        return False
    run = _patched("def f(cm):\n    (v, slot_x1) = cm\n    return v, slot_x1(None, None, None)")
    return bool(run(_Manager()) == ("entered", "left"))


def _leaves() -> bool:
    """An exception that is let go leaves the frame at the line that raised it, once, as it is."""
    tree = ast.parse(
        "def f(place, leaving):\n    try:\n        1 / 0\n    except:\n        raise place() from leaving()"
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            for part in ast.walk(node):
                if isinstance(part, ast.Raise | ast.expr):
                    part.end_lineno, part.end_col_offset = part.lineno, part.col_offset
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef):
        return False
    run = FunctionType(patch(compile_function(function, [], None, "<daifu self-test>", 0)), {})
    try:
        run(lambda: sys.exception().__traceback__.tb_lasti // 2, sys.exception)  # type: ignore[union-attr]
    except ZeroDivisionError as error:
        entry = error.__traceback__.tb_next if error.__traceback__ is not None else None
        once = entry is not None and entry.tb_next is None and error.__cause__ is error.__context__ is None
        return once and entry is not None and entry.tb_lineno == entry.tb_frame.f_lineno == 3
    return False

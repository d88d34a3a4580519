"""Notebook cells: text or a tree to run in a namespace, its top-level code and the functions in it vaccinated."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

from daifu_ipy.engine.compiling import FUTURE_FLAGS, function_from
from daifu_ipy.engine.shapes import Options
from daifu_ipy.engine.texts import keep
from daifu_ipy.engine.vaccinate import CannotVaccinate, NotVaccinated, Vaccinated, vaccinated_cell

_numbers = itertools.count(1)


def run_cell(
    source: str, namespace: dict[str, Any], *, filename: str | None = None, only: Iterable[str] | None = None
) -> Any:
    """Run notebook-cell text, vaccinated.

    Parameters
    ----------
    source
        The text.
    namespace
        Its variables: a dict, such as a module's ``__dict__``.
    filename
        What tracebacks call it; the text is kept in `linecache` under this name.
    only
        Qualified names (``"train"``, ``"Trainer.fit"``): only these functions are vaccinated; the rest, and the
        top-level code, runs plainly.

    Returns
    -------
    object
        None; for text with a top-level ``await``, a coroutine to be awaited.

    Raises
    ------
    SyntaxError
        As Python would raise it for the same text.
    """
    name = filename or f"<daifu cell {next(_numbers)}>"
    keep(name, source)
    tree = ast.parse(source, name)
    plain = compile_cell(tree, name)
    chosen = None if only is None else frozenset(only)
    try:
        made = vaccinated_cell(tree, plain, source, namespace, Options(), chosen)
        run: Callable[[], Any] = cell_function(made, namespace)
    except CannotVaccinate as reason:
        warnings.warn(f"daifu: the cell runs plainly: {reason}", NotVaccinated, stacklevel=2)
        run = functools.partial(run_plain, plain, namespace)
    try:
        return run()
    except BaseException as error:  # this frame leaves no entry in the traceback
        error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ is not None else None
        raise


def compile_cell(tree: ast.Module, filename: str, flags: int = 0) -> CodeType:
    """Compile a cell natively; all its syntax errors are found here."""
    allowed = (flags & FUTURE_FLAGS) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: CodeType = compile(tree, filename, "exec", flags=allowed, dont_inherit=True)
    return code


def run_plain(code: CodeType, namespace: dict[str, Any]) -> Any:
    """Run natively compiled cell code."""
    result = eval(code, namespace)
    return result if inspect.CO_COROUTINE & code.co_flags else None


def cell_function(made: Vaccinated, namespace: dict[str, Any]) -> FunctionType:
    """The cell as a function without arguments."""
    namespace.setdefault("__builtins__", __builtins__)
    return function_from(made.code, namespace, {})

"""Run code in a crashed namespace: what a user types, or a rule holds, to put the variables right."""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType
from typing import Any

from daifu_ipy.engine.action_code import (
    ActionScope,
    bound_names,
    compile_action,
    parse_action,
    split_last,
    visible,
)
from daifu_ipy.engine.action_show import Tee, show_error, show_value
from daifu_ipy.engine.texts import keep

_KEPT_TEXTS = 256
_KEPT_CODES = 64
_ONLY_OURS = 2  # references to a cell that nothing but a local variable and the call of getrefcount holds

value_shown: ContextVar[Callable[[object], str]] = ContextVar("daifu_ipy shows an action's value", default=show_value)
"""Gets the value of an action's last expression, and gives its text: a front end may show it in other forms too."""

_numbers = itertools.count(1)
_filenames: dict[str, str] = {}
_filenames_lock = threading.Lock()


@dataclass
class Namespace:
    """The names in reach of a crashed frame; an action reads and writes them in place.

    Parameters
    ----------
    variables
        Bound plain locals. Writes go back into this very dict; deleting a name removes it.
    cells
        Captured variables and their shared closure cells, which are written through.
    globals
        The module's namespace.
    local_names
        All names local to the unit, bound or not.
    global_names
        Names that the unit declares ``global`` (or reads as such): an action writes the module's variable.
    class_name
        The class around the unit, for private-name mangling.
    module_level
        A notebook cell: everything goes to `globals`.
    extras
        Names that an action made and that the unit doesn't know; later actions see them.
    first_parameter
        The name that ``super()`` without arguments takes for the instance.
    flags
        ``co_flags`` of the unit, for its ``__future__`` features; other bits are ignored.
    shared
        Made by actions: cells of plain locals and extras that a function made by an action still holds. Later
        actions use the same cells; a resumed unit shares them only if it is built over them.
    """

    variables: dict[str, Any] = field(default_factory=dict)
    cells: dict[str, CellType] = field(default_factory=dict)
    globals: dict[str, Any] = field(default_factory=dict)
    local_names: frozenset[str] = frozenset()
    global_names: frozenset[str] = frozenset()
    class_name: str | None = None
    module_level: bool = False
    extras: dict[str, Any] = field(default_factory=dict)
    first_parameter: str | None = None
    flags: int = 0
    shared: dict[str, CellType] = field(default_factory=dict)

    def visible(self) -> dict[str, Any]:
        """Give what is bound now, by name, without hidden names: for views, not for writing."""
        if self.module_level:
            return {name: value for name, value in self.globals.items() if name.isidentifier()}
        bound = dict(self.extras) | dict(self.variables) | dict(_contents(self.cells))
        return {name: value for name, value in bound.items() if name in visible([name])}


@dataclass(frozen=True)
class ActionResult:
    """What an action printed, gave and raised.

    Parameters
    ----------
    stdout
        What it printed (which was shown too); the end is cut off if it is very long.
    value
        Bounded repr of its last expression; None if there is none, or if its value is None.
    error
        Type and message of what it raised, and the line of its text; None if it ended well. What it had
        assigned before that sticks.
    note
        What the user should know although it ended well, or None.
    """

    stdout: str = ""
    value: str | None = None
    error: str | None = None
    note: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the action ended without an error."""
        return self.error is None


def run_action(code: str, namespace: Namespace) -> ActionResult:
    """Run an action's text as if it stood in the unit at the crashed statement.

    Its comprehensions, lambdas, functions and classes see and write the same variables. Nothing is raised: an
    error is in the result, `KeyboardInterrupt` and `SystemExit` included.

    Parameters
    ----------
    code
        Python text; its line 1 is line 1 of the traceback. ``return``, ``yield`` and ``await`` are refused.
    namespace
        Changed in place.
    """
    tee = Tee(sys.stdout)
    filename = _register(code)
    value = error = None
    cells: dict[str, CellType] = {}
    made: frozenset[str] = frozenset()
    try:
        with contextlib.redirect_stdout(tee):
            if namespace.module_level:
                result = _run_in_module(*_module_code(code, filename, namespace.flags), namespace.globals)
            else:
                function_code, made = _function_code(code, filename, _scope(namespace))
                result = _run_in_frame(function_code, namespace, cells)
            value = None if result is None else value_shown.get()(result)
            result = None
    except BaseException as raised:  # a repair goes on whatever the action does: sys.exit(), Ctrl-C
        error = show_error(raised, filename, code)
    _read_back(cells, namespace)  # only now: the traceback, gone by here, held the cells too
    return ActionResult(tee.text(), value, error, _note(made, namespace))


@functools.lru_cache(maxsize=_KEPT_CODES)  # a rule's action may run at every step
def _module_code(text: str, filename: str, flags: int) -> tuple[CodeType, CodeType | None]:
    return split_last(parse_action(text, filename), filename, flags)


@functools.lru_cache(maxsize=_KEPT_CODES)
def _function_code(text: str, filename: str, scope: ActionScope) -> tuple[CodeType, frozenset[str]]:
    """The action's code, and the names that it makes."""
    tree = parse_action(text, filename)
    made = bound_names(tree, scope) - scope.names - scope.global_names
    return compile_action(tree, scope, filename), made


def _run_in_module(statements: CodeType, last: CodeType | None, namespace: dict[str, Any]) -> object:
    exec(statements, namespace)
    return None if last is None else eval(last, namespace)


def _run_in_frame(code: CodeType, namespace: Namespace, cells: dict[str, CellType]) -> object:
    for name in code.co_freevars:
        if name not in namespace.cells:
            cells[name] = _plain_cell(name, namespace)
    captured = namespace.cells
    closure = tuple(captured[name] if name in captured else cells[name] for name in code.co_freevars)
    return FunctionType(code, namespace.globals, "<action>", None, closure)()


def _scope(namespace: Namespace) -> ActionScope:
    known = namespace.local_names.union(namespace.variables, namespace.extras, namespace.cells)
    class_name = namespace.class_name
    global_names = visible(namespace.global_names, class_name)
    names = visible(known, class_name) - global_names
    return ActionScope(names, global_names, class_name, namespace.first_parameter, namespace.flags)


def _note(made: frozenset[str], namespace: Namespace) -> str | None:
    """Say so where a name made by the action hides a module's variable, which the unit goes on to read."""
    known, missing = namespace.globals, object()
    hiding = [name for name in sorted(made) if name in known]
    names = ", ".join(name for name in hiding if namespace.extras.get(name, missing) is not known[name])
    return f"{names}: new, and hides the module's; to change that one: global {names}" if names else None


def _plain_cell(name: str, namespace: Namespace) -> CellType:
    """A cell that holds what the plain local, or extra, holds now; empty if it is unbound."""
    cell = namespace.shared[name] if name in namespace.shared else CellType()
    for values in (namespace.variables, namespace.extras):
        if name in values:
            cell.cell_contents = values[name]
            return cell
    _empty(cell)
    return cell


def _read_back(cells: dict[str, CellType], namespace: Namespace) -> None:
    """Put what the cells hold where it belongs; keep the cells that a function made by an action holds."""
    local_names = visible(namespace.local_names, namespace.class_name).union(namespace.variables)
    bound = dict(_contents(cells))
    for name in cells:
        values = namespace.variables if name in local_names else namespace.extras
        namespace.shared.pop(name, None)
        if name in bound:
            values[name] = bound[name]
        else:
            values.pop(name, None)
    while cells:
        name, cell = cells.popitem()
        if sys.getrefcount(cell) > _ONLY_OURS:
            namespace.shared[name] = cell


def _contents(cells: Mapping[str, CellType]) -> Iterator[tuple[str, Any]]:
    for name, cell in cells.items():
        try:
            yield name, cell.cell_contents
        except ValueError:  # empty: the variable is unbound
            continue


def _empty(cell: CellType) -> None:
    try:
        del cell.cell_contents
    except ValueError:
        return


def _register(text: str) -> str:
    """Give the text a file name that tracebacks find in `linecache`; a repeated text keeps its name."""
    with _filenames_lock:
        filename = _filenames.pop(text, None) or f"<daifu action {next(_numbers)}>"
        _filenames[text] = filename
        keep(filename, text)
        while len(_filenames) > _KEPT_TEXTS:
            oldest = next(iter(_filenames))
            linecache.cache.pop(_filenames.pop(oldest), None)
    return filename

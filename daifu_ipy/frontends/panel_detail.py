"""One frame as the panel shows it: its text with the executing part marked, its values, and its variables in order."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from daifu_ipy.engine.native import barrier_in, native_code
from daifu_ipy.frontends.drafts import first_line, present_text
from daifu_ipy.frontends.levels import Level, Levels
from daifu_ipy.frontends.panel_values import Part
from daifu_ipy.frontends.prompt import running_shell
from daifu_ipy.repair.deadline import one_budget
from daifu_ipy.repair.recording import Site, site_of, span_at
from daifu_ipy.repair.statement import ChangedSource, own_part

if TYPE_CHECKING:
    from daifu_ipy.frontends.panel_rerun import Cell

MOST_TEXT = 500_000

_MAX_VALUE = 160
_KEPT_BY_SHELL = re.compile(r"__\w*__|_+|_[io]h|_dh|_i+|_i?\d+")
"""Names that a notebook's user does not make: the module's own, and IPython's of cells and their results."""
_UNINTERESTING = (ModuleType, type, FunctionType, BuiltinFunctionType)


@dataclass(frozen=True)
class Text:
    """A text for the editor: what it is called, where its file has it, and why it can't be changed, if so.

    `key` stands for the code that it is the text of: what is typed for one frame is there for all that run the same.
    `translate` makes Python of it: of a notebook cell with its magics.
    """

    key: str
    name: str
    text: str
    first_line: int
    why_not: str = ""
    translate: Callable[[str], str] = str


def key_of(code: CodeType) -> str:
    """What stands for a code, and for no other, as long as the process lives."""
    plain = native_code(code)
    return f"{plain.co_qualname}, {plain.co_filename}:{plain.co_firstlineno}"


def text_of_frame(levels: Levels, cell: Cell | None = None) -> Text:
    """The text of the selected frame's function, or notebook cell: as it was typed, where that is known."""
    unit, frame = levels.unit, levels.selected.frame
    code = frame.f_code
    text = present_text(unit, code if code.co_name != "<module>" else frame)
    first = first_line(unit, native_code(code)) if unit is not None or code.co_name != "<module>" else 1
    why_not = _too_long(text) if unit is not None else why_fixed(code, text)
    made = Text(key_of(code), levels.selected.name, text[:MOST_TEXT], first, why_not)
    if cell is None or unit is None or not unit.unit.is_notebook_cell or why_not:
        return made
    return replace(made, text=_as_typed(text, cell), translate=cell.translate)


def _as_typed(text: str, cell: Cell) -> str:
    """A cell's text before it was translated, line by line; after a surgery at least its ``%%daifu`` line."""
    typed = cell.request.code
    with contextlib.suppress(Exception):  # of somebody's input transformer
        same = cell.translate(typed).strip() == text.strip()
        if same and len(typed.strip().splitlines()) == len(text.strip().splitlines()):
            return typed
    first, end, rest = text.partition("\n")
    with contextlib.suppress(ValueError, SyntaxError):
        line = ast.literal_eval(first)
        return f"{line}{end}{rest}" if isinstance(line, str) and line.startswith("%%daifu") else text
    return text


def text_of_function(name: str, code: CodeType) -> Text:
    """The text of a function that is opened by its name."""
    text = present_text(None, code)
    barrier = barrier_in(code)
    own = code if barrier is None else barrier.unit.plain
    return Text(key_of(code), name, text[:MOST_TEXT], int(own.co_firstlineno), why_fixed(code, text))


def why_fixed(code: CodeType, text: str) -> str:
    """Why the text of code that is not vaccinated can't be replaced; "" if it can."""
    if not text:
        return "its source can't be found"
    if code.co_name == "<module>":
        return "it is top-level code that is not vaccinated, and runs once"
    if code.co_name.startswith("<"):
        return f"a {code.co_name.strip('<>')} is changed in the function that it stands in"
    if not re.search(rf"\bdef\s+{re.escape(code.co_name)}\b", text):
        return "its file was changed since it was imported"
    return _too_long(text)


def _too_long(text: str) -> str:
    return "its source is too long for the editor" if len(text) > MOST_TEXT else ""


# what it executes


def site(levels: Levels) -> Site | None:
    """What the selected frame executes; None where its source is not known."""
    level, unit = levels.selected, levels.unit
    span = unit.position if unit is not None else span_at(level.frame.f_code, level.lasti)
    try:
        return site_of(level.frame, level.line, span)
    except ChangedSource:
        return None


def mark(level: Level, found: Site | None) -> dict[str, Any]:
    """The executing line, and which columns of it the executing node takes, if that is not all of it."""
    if found is None or not found.exact:
        return {"line": level.line}
    first, last, start, end = found.span
    line = found.lines[first - 1]
    stop = _column(line, end) if first == last else len(line)
    return {"line": first, "start": _column(line, start), "end": stop}


def _column(line: str, column: int) -> int:
    return len(line.encode()[:column].decode(errors="replace"))


def values(level: Level, found: Site | None, variables: Mapping[str, Any]) -> list[list[str]]:
    """What the executing statement names, each with its value now."""
    with one_budget():
        shown = () if found is None else found.values(variables, level.frame, _MAX_VALUE)
    return [list(pair) for pair in shown]


# its variables


def ordered(levels: Levels, variables: Mapping[str, Any]) -> list[Part]:
    """The variables: those on the executing statement, the function's own, the others; of a notebook cell those that
    it binds, then the notebook's, its functions, classes and modules last.
    """
    first = _named(site(levels))
    is_module = levels.selected.name == "<module>"
    own = set(_own(levels))
    hidden = _hidden_in_shell() if is_module else {}

    def rank(name: str, value: Any) -> tuple[bool, int, bool]:
        last = is_module and issubclass(type(value), _UNINTERESTING)
        return last, first.get(name, len(first)), name not in own

    shown = [
        (name, value)
        for name, value in variables.items()
        if not (is_module and (_KEPT_BY_SHELL.fullmatch(name) or (name in hidden and hidden[name] is value)))
    ]
    return [Part(name, name, value) for name, value in sorted(shown, key=lambda pair: rank(*pair))]


def _named(found: Site | None) -> dict[str, int]:
    """The names on the executing statement, in the order of the source."""
    nodes: Iterator[ast.AST] = iter(()) if found is None or found.found is None else own_part(found.found.statement)
    names = sorted(((n.lineno, n.col_offset), n.id) for n in nodes if isinstance(n, ast.Name))
    return {name: number for number, name in enumerate(dict.fromkeys(name for _, name in names))}


def _own(levels: Levels) -> Iterator[str]:
    """The names that the selected frame's code binds itself."""
    unit = levels.unit
    if unit is None:
        yield from levels.selected.frame.f_code.co_varnames
    else:
        yield from unit.unit.scope.bound


def _hidden_in_shell() -> Mapping[str, Any]:
    hidden = getattr(running_shell(), "user_ns_hidden", {})
    return hidden if isinstance(hidden, dict) else {}

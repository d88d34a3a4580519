"""``%%daifu --show`` and ``%daifu show NAME``: the vaccinated source, for the curious.

A line with a number is the user's own, of that line of the notebook cell or file; one without was added.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from daifu_ipy.engine.barrier import Barrier
from daifu_ipy.engine.native import barrier_in
from daifu_ipy.engine.scopes import HIDDEN
from daifu_ipy.engine.unit import start_of
from daifu_ipy.magic.protecting import functions_named

if TYPE_CHECKING:
    from daifu_ipy.magic.running import Runner

MOST_LINES = 1_000
"""How many lines are shown."""

LEGEND = """\
# Lines with a number are yours. Added are crash barriers (daifu.takeover, daifu.guard: asked when an exception arrives)
# and hidden variables{slots}."""
SLOTS = {
    "i": "iterator",
    "u": "item",
    "x": "exit",
    "y": "entering",
    "v": "entered",
    "e": "leaving",
    "k": "pending",
    "p": "waiting",
    "r": "returning",
    "h": "handled",
    "m": "subject",
    "g": "group",
    "d": "raised",
    "s": "stands_by",
}
"""What the letters of the slots (`shapes`) stand for."""


@magic_arguments("daifu show")
@argument("name", metavar="NAME", help="A protected function, method, class or module.")
def show(runner: Runner, line: str) -> None:
    """Show the code that stands for a protected function; `%%daifu --show` does it for a cell."""
    name = parse_argstring(show, line).name
    found = [barrier for function in functions_named(runner, name) if (barrier := barrier_in(function.__code__))]
    if not found:
        raise UsageError(f"%daifu show: {name} is not protected; %daifu vaccinate {name} protects it")
    for barrier in found:
        print(vaccinated_source(barrier))


def vaccinated_source(barrier: Barrier) -> str:
    """The vaccinated source of a unit and of the functions in it."""
    unit, shapes = barrier.unit, barrier.shapes
    body = shapes.function_body() if unit.is_notebook_cell else [shapes.definition()]
    own: Own = {_place(node): node for node in ast.walk(unit.node) if isinstance(node, ast.stmt | ast.ExceptHandler)}
    own |= {(ast.Assign, *_start(node)): node for node in own.values() if isinstance(node, ast.With | ast.AsyncWith)}
    lines = [line for made in body for line in _lines(_Readable().visit(copy.deepcopy(made)), own, "")]
    more = [f"# {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    text = "\n".join([*lines[:MOST_LINES], *more])
    slots = sorted(set(re.findall(r"@([a-z_]+)_\d", text)) & set(SLOTS.values()))
    return f"{LEGEND.format(slots=': @' + ', @'.join(slots) if slots else '')}\n{text}"


Place: TypeAlias = tuple[type, int, int]
Own: TypeAlias = dict[Place, ast.stmt | ast.ExceptHandler]


def _place(node: ast.stmt | ast.ExceptHandler) -> Place:
    return type(node), node.lineno, node.col_offset


def _start(node: ast.With | ast.AsyncWith) -> tuple[int, int]:
    """Where the assignment stands that enters a block."""
    expression = node.items[0].context_expr
    return expression.lineno, expression.col_offset


def _own_line(node: ast.AST, header: str, own: Own) -> int | None:
    """The line of the user's statement that this one is, or was made of; None for one that was added."""
    if not isinstance(node, ast.stmt | ast.ExceptHandler) or re.search(r"\bdaifu\.(strip|resume\w*)\(", header):
        return None
    match node, own.get(_place(node)):
        case _, None:
            return None
        case ast.Return(value=made), ast.Return(value=typed):
            return node.lineno if (made is None) == (typed is None) else None
        case ast.ExceptHandler(type=made), ast.ExceptHandler(type=typed):
            return node.lineno if (made is None) == (typed is None) else None
        case ast.stmt(), _:
            return start_of(node)[0]
        case _:
            return None


class _Readable(ast.NodeTransformer):
    """Hidden names by what they stand for, and the barrier as ``daifu``."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(_readable(node.id), node.ctx), node)

    def visit_Global(self, node: ast.Global) -> ast.AST:
        return ast.copy_location(ast.Global([_readable(name) for name in node.names]), node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        node.name = None if node.name is None else _readable(node.name)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and node.value.startswith("\0daifu"):
            return ast.copy_location(ast.Name("daifu", ast.Load()), node)
        return node


def _readable(name: str) -> str:
    if not name.startswith(HIDDEN):
        return name
    found = re.fullmatch(r"([a-z])(\d.*)", name.removeprefix(HIDDEN))
    return f"@{SLOTS[found[1]]}_{found[2]}" if found and found[1] in SLOTS else f"@{name.removeprefix(HIDDEN)}"


def _lines(node: ast.AST, own: Own, indent: str) -> Iterator[str]:
    """A statement, handler or case, line by line, with the numbers of those that are the user's."""
    header, parts = _header(node)
    line_number = _own_line(node, header, own)
    number = f"{'' if line_number is None else line_number:>5}  "
    for line in header.splitlines():
        yield f"{number}{indent}{line}"
        number = " " * len(number)
    for title, inner in parts:
        if title:
            yield f"{' ' * 7}{indent}{title}"
        deeper = indent if not title and isinstance(node, ast.Try | ast.TryStar) else f"{indent}    "
        for child in inner:
            yield from _lines(child, own, deeper)


def _header(node: ast.AST) -> tuple[str, list[tuple[str, list[ast.AST]]]]:
    """The text of a statement; of a compound one what stands above its blocks, and these with their titles."""
    match node:
        case ast.Try() | ast.TryStar():
            parts: list[tuple[str, list[ast.AST]]] = [("try:", [*node.body]), ("", [*node.handlers])]
            return "", [*parts, *_when("else:", node.orelse), *_when("finally:", node.finalbody)]
        case ast.Match(subject=subject, cases=cases):
            return f"match {ast.unparse(subject)}:", [("", [*cases])]
        case ast.match_case(pattern=pattern, guard=guard, body=body):
            asked = f" if {ast.unparse(guard)}" if guard is not None else ""
            return f"case {ast.unparse(pattern)}{asked}:", [("", [*body])]
        case _ if hasattr(node, "body") and isinstance(node, ast.stmt | ast.ExceptHandler):
            bare: Any = copy.copy(node)
            body, orelse = bare.body, getattr(node, "orelse", [])
            bare.body, bare.orelse = [ast.Pass()], []
            return ast.unparse(bare).rpartition("\n")[0].lstrip("\n"), [("", [*body]), *_when("else:", orelse)]
        case _:
            return ast.unparse(node), []


def _when(title: str, statements: list[ast.stmt]) -> list[tuple[str, list[ast.AST]]]:
    return [(title, [*statements])] if statements else []

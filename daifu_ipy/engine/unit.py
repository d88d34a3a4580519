"""A unit: one function, or the top-level code of one notebook cell, as the engine sees it.

A unit knows its AST (with several ``with`` items written as nested statements), which block each statement stands in,
which jumps cross which ``with`` and ``try`` statements, the names of its variables, and the numbers of its slots. It
never changes after it was made; vaccinated and synthesised code are both made from it.
"""

from __future__ import annotations

import ast
import builtins
import dis
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import TypeAlias

from daifu_ipy.engine.invariants import check
from daifu_ipy.engine.scopes import COMPREHENSIONS, HIDDEN, Scope, arguments, mangle, own_nodes, scope_of
from daifu_ipy.engine.texts import bare_lines

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
UnitNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
LoopNode: TypeAlias = ast.For | ast.AsyncFor | ast.While
WithNode: TypeAlias = ast.With | ast.AsyncWith
TryNode: TypeAlias = ast.Try | ast.TryStar
JumpNode: TypeAlias = ast.Return | ast.Break | ast.Continue
Position: TypeAlias = tuple[int, int]
Span: TypeAlias = tuple[int, int, int, int]  # first line, last line, first column, last column

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
ITERATIONS = (ast.For, ast.AsyncFor)
WITHS = (ast.With, ast.AsyncWith)
TRIES = (ast.Try, ast.TryStar)
JUMPS = (ast.Return, ast.Break, ast.Continue)


class CannotVaccinate(Exception):
    """A unit can't be vaccinated: the message names the construct and its line. It runs plainly instead."""


@dataclass(frozen=True, eq=False)
class Block:
    """A list of statements inside one compound statement (`owner`; None: the unit itself)."""

    owner: ast.stmt | None
    field: str  # "body", "orelse", "finalbody", "handler" or "case"
    index: int  # which handler or case
    statements: list[ast.stmt]


@dataclass(frozen=True)
class Jump:
    """A ``return``, ``break`` or ``continue`` and the statements that it leaves, innermost first.

    `pending`: those whose ``finally`` or ``__exit__`` runs while the jump is under way. `overriding`: the ``try``
    statements whose ``finally`` body it leaves. `left_loops`: the ``for`` loops that a ``return`` leaves before any of
    `pending`.
    """

    node: JumpNode
    number: int
    pending: tuple[ast.stmt, ...]
    overriding: tuple[ast.stmt, ...]
    left_loops: tuple[ast.stmt, ...] = ()


def blocks(statement: ast.stmt) -> Iterator[Block]:
    """The blocks of a compound statement that run in the unit's own frame, in the order of the source."""
    if isinstance(statement, (*LOOPS, ast.If)):
        yield Block(statement, "body", 0, statement.body)
        yield Block(statement, "orelse", 0, statement.orelse)
    elif isinstance(statement, WITHS):
        yield Block(statement, "body", 0, statement.body)
    elif isinstance(statement, TRIES):
        yield Block(statement, "body", 0, statement.body)
        for index, handler in enumerate(statement.handlers):
            yield Block(statement, "handler", index, handler.body)
        yield Block(statement, "orelse", 0, statement.orelse)
        yield Block(statement, "finalbody", 0, statement.finalbody)
    elif isinstance(statement, ast.Match):
        for index, case in enumerate(statement.cases):
            yield Block(statement, "case", index, case.body)


def start_of(statement: ast.stmt) -> Position:
    """Where a statement's text begins, decorators included."""
    decorators = getattr(statement, "decorator_list", [])
    first = decorators[0] if decorators else statement
    return first.lineno, first.col_offset


def is_constant(statement: ast.stmt | None) -> bool:
    """Whether a statement is a mere constant: a text, ``...``."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def end_of(node: ast.stmt | ast.expr | ast.pattern) -> Position:
    """Where a node's text ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def covers(node: ast.expr | ast.stmt | ast.pattern, position: Position) -> bool:
    """Whether the text of `node` covers `position`."""
    return (node.lineno, node.col_offset) <= position < end_of(node)


def nest_with_items(statements: list[ast.stmt]) -> None:
    """Write ``with A, B:`` as ``with A:`` around ``with B:`` (the language defines it so), in place."""
    for statement in statements:
        if isinstance(statement, WITHS):
            _nest_items(statement)
        for block in blocks(statement):
            nest_with_items(block.statements)


def _nest_items(statement: WithNode) -> None:
    if len(statement.items) > 1:
        expression = statement.items[1].context_expr
        inner = type(statement)(items=statement.items[1:], body=statement.body)
        inner.lineno, inner.col_offset = expression.lineno, expression.col_offset
        inner.end_lineno, inner.end_col_offset = statement.end_lineno, statement.end_col_offset
        statement.items, statement.body = statement.items[:1], [inner]


class Unit:
    """One function or notebook cell; see the module's text.

    Parameters
    ----------
    node
        The function's definition, or the notebook cell's module.
    plain
        The native code object of the same source.
    source
        The whole text that `node` was parsed from.
    class_name
        The class whose body holds the function directly or indirectly (for private names).
    qualname
        What the user calls it.
    shared
        Variables that stay shared with other functions though this text does not capture them: older code may.
    """

    def __init__(
        self,
        node: UnitNode,
        plain: CodeType,
        source: str,
        *,
        class_name: str | None = None,
        qualname: str | None = None,
        shared: Iterable[str] = (),
    ) -> None:
        self.shared = frozenset(shared)
        nest_with_items(node.body)
        self.node = node
        self.plain = plain
        self.source = source
        self.class_name = class_name
        self.qualname = qualname or plain.co_qualname
        self.is_notebook_cell = isinstance(node, ast.Module)
        self.block_of: dict[ast.stmt, Block] = {}
        self.number: dict[ast.stmt, int] = {}
        self.jumps: dict[ast.stmt, Jump] = {}
        self.crossed: set[ast.stmt] = set()
        self.overridden: set[ast.stmt] = set()  # ``try`` whose finally is left by a jump on whose way other code runs
        self._offsets: dict[Span, int | None] = {}
        self._statements: dict[Position, ast.stmt | None] = {}
        self._headers: dict[ast.stmt, str] = {}
        self._targets: dict[ast.stmt, tuple[str, ...]] = {}
        self.body = Block(None, "body", 0, node.body)
        self._enter(self.body, [])

    # structure

    def _enter(self, block: Block, around: list[Block]) -> None:
        for statement in block.statements:
            self.block_of[statement] = block
            self.number[statement] = len(self.number)
            if isinstance(statement, JUMPS):
                self._enter_jump(statement, [*around, block])
            for inner in blocks(statement):
                self._enter(inner, [*around, block])

    def _enter_jump(self, jump: JumpNode, around: list[Block]) -> None:
        pending: list[ast.stmt] = []
        overriding: list[ast.stmt] = []
        left: list[ast.stmt] = []
        for block in reversed(around):
            owner = block.owner
            if isinstance(owner, ITERATIONS) and block.field == "body" and not pending:
                left.append(owner)
            if isinstance(owner, LOOPS) and block.field == "body" and not isinstance(jump, ast.Return):
                break
            if isinstance(owner, WITHS):
                pending.append(owner)
            elif isinstance(owner, TRIES) and owner.finalbody:
                (overriding if block.field == "finalbody" else pending).append(owner)
        loops = tuple(left) if pending and isinstance(jump, ast.Return) else ()
        self.jumps[jump] = Jump(jump, len(self.jumps) + 1, tuple(pending), tuple(overriding), loops)
        self.crossed.update(pending)
        if pending:
            self.overridden.update(overriding)

    def path(self, statement: ast.stmt) -> list[tuple[ast.stmt, Block]]:
        """The compound statements around `statement`, outermost first, each with the block that leads inwards."""
        steps: list[tuple[ast.stmt, Block]] = []
        block = self.block_of[statement]
        while block.owner is not None:
            steps.append((block.owner, block))
            block = self.block_of[block.owner]
        return steps[::-1]

    def open_withs(self, position: Position) -> list[tuple[WithNode, Position]]:
        """The ``with`` blocks around `position`, innermost first, each with its statement's start in the source."""
        statement = self.statement_at(position)
        if statement is None:
            return []
        found: list[tuple[WithNode, Position]] = []
        first = (0, 0)
        for owner in [*(owner for owner, _ in self.path(statement)), statement]:
            if isinstance(owner, WITHS):
                item = owner.items[0]
                start, target = (item.context_expr.lineno, item.context_expr.col_offset), item.optional_vars
                first = first if (owner.lineno, owner.col_offset) == start else (owner.lineno, owner.col_offset)
                if owner is not statement or (target is not None and covers(target, position)):
                    found.append((owner, first))
        return found[::-1]

    def loop_around(self, statement: ast.stmt) -> LoopNode | None:
        """The innermost loop whose body holds `statement`."""
        for owner, block in reversed(self.path(statement)):
            if isinstance(owner, LOOPS) and block.field == "body":
                return owner
        return None

    def statement_at(self, position: Position) -> ast.stmt | None:
        """The innermost statement whose text covers `position` (line, column in bytes)."""
        if position not in self._statements:
            self._statements[position] = self._find(position)
        return self._statements[position]

    def _find(self, position: Position) -> ast.stmt | None:
        found: ast.stmt | None = None
        inner: list[Block] = [self.body]
        while inner:
            block = inner.pop()
            for statement in block.statements:
                if start_of(statement) <= position < end_of(statement):
                    found, inner = statement, list(blocks(statement))
                    break
        return found

    @cached_property
    def _plain_spans(self) -> list[tuple[int | None, ...]]:
        return list(self.plain.co_positions())

    def plain_offset(self, span: Span) -> int | None:
        """Where the native code executes what vaccinated code executes at `span` (asked for its handlers only)."""
        if not self.plain.co_exceptiontable:
            return 0
        if span not in self._offsets:
            self._offsets[span] = self._plain_offset(span)
        return self._offsets[span]

    def _plain_offset(self, span: Span) -> int | None:
        spans = self._plain_spans
        if span in spans:
            return 2 * spans.index(span)
        statement = self.statement_at((span[0], span[2]))
        near = [
            (line, column, index)
            for index, (line, _, column, _) in enumerate(spans)
            if line is not None and column is not None and statement is self.statement_at((line, column))
        ]
        return 2 * min(near)[2] if near else None

    # barriers

    def barrier_key(self, owner: ast.stmt, part: str, index: int = 0) -> str:
        """What a barrier inside the unit calls itself."""
        return f"{part} {self.number[owner]} {index}"

    def innermost_barrier(self, steps: list[tuple[ast.stmt, Block]]) -> str | None:
        """The key of the innermost barrier around a place with this path (None: the unit's own)."""
        for owner, block in reversed(steps):
            if isinstance(owner, WITHS):
                return self.barrier_key(owner, "with")
            if isinstance(owner, TRIES) and block.field == "handler":
                return self.barrier_key(owner, "handler", block.index)
            if isinstance(owner, ast.TryStar) and block.field == "body":
                return self.barrier_key(owner, "star")
            if isinstance(owner, TRIES) and owner.finalbody and block.field != "finalbody":
                return self.barrier_key(owner, "try")
        return None

    # names

    @cached_property
    def scope(self) -> Scope:
        """The names that this unit binds and declares."""
        parameters = [] if isinstance(self.node, ast.Module) else arguments(self.node)
        return scope_of(self.node.body, parameters, self.class_name)

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Variables shared with other functions, as the compiler spells them."""
        return tuple(sorted({*self.plain.co_cellvars, *self.plain.co_freevars, *self.shared}))

    @cached_property
    def plain_locals(self) -> tuple[str, ...]:
        """Local variables that no other function shares."""
        if self.is_notebook_cell:
            return ()
        return tuple(sorted(self.scope.bound - set(self.cells)))

    @cached_property
    def inlined(self) -> frozenset[str]:
        """Variables of comprehensions, which Python 3.12 and later run inside the function; it makes locals of them."""
        found = set()
        for comprehension in ast.walk(self.node):
            if isinstance(comprehension, COMPREHENSIONS):
                stored = (
                    n for n in ast.walk(comprehension) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                )
                found |= {name.id for name in stored}
        return frozenset(found)

    @cached_property
    def declared_globals(self) -> tuple[str, ...]:
        """Names that assignments write to the module."""
        names = self.scope.globals | (self.scope.bound if self.is_notebook_cell else frozenset())
        if self.has_module_docstring:
            names |= {"__doc__"}
        return tuple(sorted(names))

    @cached_property
    def read_globals(self) -> frozenset[str]:
        """Names that the unit, or a function in it, reads from its module, builtins left out.

        An action that assigns one means that: it is how a missing or wrong global is mended.
        """
        found: set[str] = set()
        codes = [self.plain]
        while codes:
            code = codes.pop()
            codes += [const for const in code.co_consts if isinstance(const, CodeType)]
            found |= {op.argval for op in dis.get_instructions(code) if op.opname == "LOAD_GLOBAL"}
        return frozenset(found - set(vars(builtins)) - self.scope.bound)

    @cached_property
    def has_module_docstring(self) -> bool:
        """It is a notebook cell that begins with a text."""
        return isinstance(self.node, ast.Module) and ast.get_docstring(self.node, clean=False) is not None

    @cached_property
    def first_argument(self) -> str | None:
        """The variable that ``super()`` takes as its instance."""
        return None if self.plain.co_argcount == 0 else self.plain.co_varnames[0]

    @property
    def is_generator(self) -> bool:
        """The unit holds a ``yield``."""
        return bool(self.plain.co_flags & (0x20 | 0x200))

    @property
    def is_async(self) -> bool:
        """The unit is a coroutine or an async generator (or a cell with a top-level ``await``)."""
        return bool(self.plain.co_flags & (0x80 | 0x200))

    # slots

    def slot(self, letter: str, statement: ast.stmt, index: int | None = None) -> str:
        """The hidden local of one kind that belongs to `statement`."""
        check(statement in self.number, lambda: f"a slot for a statement outside {self.qualname}")
        suffix = "" if index is None else f"_{index}"
        return f"{HIDDEN}{letter}{self.number[statement]}{suffix}"

    @cached_property
    def _texts(self) -> list[str]:
        return bare_lines(self.source)

    @cached_property
    def own_text(self) -> str:
        """The text of the whole unit, indented as in its file."""
        if isinstance(self.node, ast.Module):
            return self.source
        return "\n".join(self._texts[start_of(self.node)[0] - 1 : end_of(self.node)[0]])  # a comment at its end too

    def targets(self, loop: ast.stmt) -> tuple[str, ...]:
        """The variables that a loop binds to its items."""
        if loop not in self._targets:
            nodes = ast.walk(loop.target) if isinstance(loop, ITERATIONS) else ()
            self._targets[loop] = tuple(node.id for node in nodes if isinstance(node, ast.Name))
        return self._targets[loop]

    def segment(self, node: ast.expr) -> str:
        """The source text of an expression, on one line."""
        return " ".join(_cut(self._texts, (node.lineno, node.col_offset), end_of(node)).split())

    def text(self, statement: ast.stmt) -> str:
        """The source text of a statement (of a compound statement: its header)."""
        if statement not in self._headers:
            self._headers[statement] = self._text(statement)
        return self._headers[statement]

    def _text(self, statement: ast.stmt) -> str:
        inner = [block.statements[0] for block in blocks(statement) if block.statements]
        first = start_of(statement)
        last = start_of(inner[0]) if inner else end_of(statement)
        return _cut(self._texts, first, last).rstrip().removesuffix(":") + (":" if inner else "")


def _cut(lines: list[str], first: Position, last: Position) -> str:
    if not 0 < first[0] <= last[0] <= len(lines):
        return ""
    if first[0] == last[0]:
        return lines[first[0] - 1].encode()[first[1] : last[1]].decode(errors="replace")
    head = lines[first[0] - 1].encode()[first[1] :].decode(errors="replace")
    tail = lines[last[0] - 1].encode()[: last[1]].decode(errors="replace")
    return "\n".join([head, *lines[first[0] : last[0] - 1], tail])


@dataclass(frozen=True)
class NestedFunction:
    """A function defined in a unit's own blocks or in a class body there."""

    node: FunctionNode
    qualname: str
    class_name: str | None


def nested_functions(statements: list[ast.stmt], prefix: str, class_name: str | None) -> Iterator[NestedFunction]:
    """The functions defined among `statements`, in any block and in class bodies, but not inside other functions."""
    for statement in statements:
        if isinstance(statement, FUNCTIONS):
            yield NestedFunction(statement, f"{prefix}{statement.name}", class_name)
        elif isinstance(statement, ast.ClassDef):
            yield from nested_functions(statement.body, f"{prefix}{statement.name}.", statement.name)
        for block in blocks(statement):
            yield from nested_functions(block.statements, prefix, class_name)


__all__ = [
    "Block", "CannotVaccinate", "Jump", "NestedFunction", "Unit", "blocks", "end_of", "mangle", "nested_functions",
    "own_nodes", "start_of",
]  # fmt: skip

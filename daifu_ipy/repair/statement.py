"""Which part of a source an instruction executes, found by its position; nothing is run."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from types import CodeType
from typing import Any, TypeAlias

Span: TypeAlias = tuple[int, int, int, int]
"""First line, last line, first column, last column; columns in bytes, as instructions have them."""

_MAX_SOURCE = 500_000
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Executing:
    """A statement that is being executed, the `span` of the node in it, and the lines of the scope around it."""

    statement: ast.stmt
    span: Span
    scope: tuple[int, int]


class ChangedSource(Exception):
    """The text is not the one that the code was compiled from."""


def executing(text: str, code: CodeType, span: Span) -> Executing | None:
    """Find what `code`, compiled from `text`, executes at `span`; None where the text can't be parsed.

    Raises
    ------
    ChangedSource
        If there is another function, or none, at this place.
    """
    tree = _parsed(text)
    path = [] if tree is None else list(_path(tree, (span[0], span[2])))
    if tree is None or not any(isinstance(node, ast.stmt) for node in path):
        return None
    statement = next(node for node in reversed(path) if isinstance(node, ast.stmt))
    scope = next((node for node in reversed(path) if isinstance(node, _SCOPES) and node is not statement), None)
    if not _fits(code, scope, statement):
        raise ChangedSource
    lines = (1, span[1] + 1_000_000) if scope is None else (_first_line(scope), scope.end_lineno or span[1])
    return Executing(statement, _part(statement, span), lines)


def own_part(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement; of a compound one, those of its header."""
    for field, value in ast.iter_fields(statement):
        children = value if isinstance(value, list) else [value]
        if field not in _BLOCKS:
            yield from (node for child in children if isinstance(child, ast.AST) for node in ast.walk(child))


@functools.lru_cache(maxsize=16)
def _parsed(source: str) -> ast.Module | None:
    if len(source) > _MAX_SOURCE:
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a notebook cell with magics
        return None


def _path(tree: ast.Module, position: tuple[int, int]) -> Iterator[ast.AST]:
    """The statements, handlers and cases around a position, outermost first."""
    inside: ast.AST | None = tree
    while inside is not None:
        inside = next((child for child in _blocks(inside) if _covers(child, position)), None)
        if inside is not None:
            yield inside


def _blocks(node: ast.AST) -> Iterator[ast.AST]:
    """The statements directly inside a node, and its handlers and cases, last first: two may share a line."""
    for field in reversed(_BLOCKS):
        children = getattr(node, field, None)
        if isinstance(children, list):
            yield from reversed(children)


def _covers(node: Any, position: tuple[int, int]) -> bool:
    if isinstance(node, ast.match_case):
        return any(_covers(child, position) for child in node.body)
    decorators = getattr(node, "decorator_list", ())
    first = min((each.lineno, each.col_offset) for each in (node, *decorators))
    return bool(first <= position < (node.end_lineno, node.end_col_offset))


def _first_line(scope: Any) -> int:
    return int(min(each.lineno for each in (scope, *scope.decorator_list)))


def _fits(code: CodeType, scope: ast.stmt | None, statement: ast.stmt) -> bool:
    """Whether the code may be that of this place: a file may have been edited since it was imported."""
    if not code.co_name.startswith("<"):  # a lambda, a comprehension, a module
        if scope is None or code.co_name != scope.name or code.co_firstlineno != _first_line(scope):  # type: ignore[attr-defined]
            return False
    names = {node.id for node in own_part(statement) if isinstance(node, ast.Name)}
    return not names or not names.isdisjoint(_names_of(code))


def _names_of(code: CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    own = {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    return own.union(*map(_names_of, inner))


def _part(statement: ast.stmt, span: Span) -> Span:
    """The span; of a compound statement executed as a whole, as loops are natively, that of its header's expression."""
    if span != span_of(statement):
        return span
    match statement:
        case ast.For(iter=node) | ast.AsyncFor(iter=node):
            return span_of(node)
        case ast.With(items=[item]) | ast.AsyncWith(items=[item]):
            return span_of(item.context_expr)
    return span


def span_of(node: Any) -> Span:
    """Where a node's text is."""
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def segment(lines: list[str], span: Span) -> str:
    """The text of a span, in one line."""
    first, last, start, end = span
    cut = [line.encode() for line in lines[first - 1 : last]]
    if not cut:
        return ""
    cut[-1] = cut[-1][:end]
    cut[0] = cut[0][start:]
    return " ".join(chain.from_iterable(part.decode(errors="replace").split() for part in cut))

"""Matching an edited unit with the one that crashed: what around the crash lives on in the new text.

The path to the crashed statement is followed from the outside in. In each block equal statements are anchors (longest
common subsequence, so that order is kept); between them a construct on the path is the most similar one of its kind,
or the edit has put something new around it, or has taken it away from around what it held. Of all these readings the
one with the most in common counts.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from daifu_ipy.engine.subsequence import common
from daifu_ipy.engine.unit import ITERATIONS, TRIES, WITHS, Block, Unit, blocks

WRAPPED = -0.25
"""What it counts for a reading that something was put around the path, or taken away."""


def same(old: ast.AST, new: ast.AST) -> bool:
    """Whether two pieces of code say the same."""
    return ast.dump(old) == ast.dump(new)


@dataclass(frozen=True)
class Pair:
    """A construct around the crash, and its block that leads inwards: in the old text, in the new one, or in both."""

    old: ast.stmt | None
    old_block: Block | None
    new: ast.stmt | None = None
    new_block: Block | None = None


@dataclass(frozen=True)
class Gap:
    """Where a statement that is gone stood in the new text: before index `start` of `statements`.

    `hollow`: the construct whose block it was the last of, and that has no such block any more.
    """

    statements: list[ast.stmt]
    start: int
    hollow: ast.stmt | None = None


@dataclass(frozen=True)
class Match:
    """The constructs around the crash, outermost first, and what the crashed statement is in the new text.

    `counterpart` is None where it is gone; `gap` says then where it stood.
    """

    pairs: tuple[Pair, ...]
    counterpart: ast.stmt | None
    gap: Gap
    score: float = field(default=0.0, compare=False)

    @cached_property
    def living(self) -> dict[ast.stmt, Pair]:
        """The constructs of the old text that the new one has too, with the same block around the crash."""
        return {pair.old: pair for pair in self.pairs if pair.old is not None and pair.new is not None}

    def within(self, pair: Pair, worth: float) -> Match:
        """The same with one more construct around it."""
        return Match((pair, *self.pairs), self.counterpart, self.gap, self.score + worth)


def match(old: Unit, new: Unit, crashed: ast.stmt) -> Match:
    """Match the path to `crashed` in the old unit with the new unit."""
    return _Matching(old, new, crashed).find(0, new.body.statements, 0, len(new.body.statements))


class _Matching:
    """Finds step `i` of the path (a construct, at last the crashed statement) among statements of the new text."""

    def __init__(self, old: Unit, new: Unit, crashed: ast.stmt) -> None:
        self.old = old
        self.new = new
        self.steps = [*old.path(crashed), (crashed, Block(None, "", 0, []))]
        self._dumps: dict[ast.AST, str] = {}
        self._parts: dict[ast.stmt, Counter[str]] = {}
        self._headers: dict[ast.stmt, str] = {}
        self._inside: dict[ast.stmt, frozenset[str]] = {}
        self._found: dict[tuple[int, int, int, int], Match] = {}

    def find(self, i: int, statements: list[ast.stmt], start: int, end: int) -> Match:
        key = (i, id(statements), start, end)
        if key not in self._found:
            self._found[key] = self._find(i, statements, start, end)
        return self._found[key]

    def _find(self, i: int, statements: list[ast.stmt], start: int, end: int) -> Match:
        statement = self.steps[i][0]
        siblings = self.old.block_of[statement].statements
        index = siblings.index(statement)
        ours, theirs = [self._dump(s) for s in siblings], [self._dump(s) for s in statements[start:end]]
        pairs = [(p, q + start) for p, q in common(ours, theirs)]
        exact = next((q for p, q in pairs if p == index), None)
        if exact is None and ours.count(ours[index]) == theirs.count(ours[index]) == 1:
            exact = start + theirs.index(ours[index])  # it was moved
        if exact is not None:
            return self._unchanged(i, statements, exact)
        first = max((q + 1 for p, q in pairs if p < index), default=start)
        last = min((q for p, q in pairs if p > index), default=end)
        readings = [self._gone(i, statements, first)]
        readings += [self._alive(i, new, statements, k) for k, new in enumerate(statements[first:last], first)]
        wrappers = [new for new in statements[first:last] if self._holds(new, i)]
        readings += [self._wrapped(i, new, block) for new in wrappers for block in self._blocks(new)]
        if i + 1 < len(self.steps):
            inside = self.find(i + 1, statements, first, last)
            readings.append(inside.within(Pair(*self.steps[i]), WRAPPED))
        return max(readings, key=lambda reading: reading.score)

    def _dump(self, statement: ast.AST) -> str:
        if statement not in self._dumps:
            self._dumps[statement] = ast.dump(statement)
        return self._dumps[statement]

    def _blocks(self, new: ast.stmt) -> list[Block]:
        """The blocks of a construct of the new text, as its unit has them."""
        return [self.new.block_of[block.statements[0]] for block in blocks(new) if block.statements]

    def _header(self, statement: ast.stmt) -> str:
        if statement not in self._headers:
            self._headers[statement] = header(statement)
        return self._headers[statement]

    def _holds(self, new: ast.stmt, i: int) -> bool:
        """Whether what step `i` begins with stands somewhere in `new`."""
        if new not in self._inside:
            inside = (node for node in ast.walk(new) if isinstance(node, ast.stmt) and node is not new)
            self._inside[new] = frozenset(map(self._header, inside)) if any(blocks(new)) else frozenset()
        return self._header(self.steps[i][0]) in self._inside[new]

    def _likeness(self, old: ast.stmt, new: ast.stmt) -> float:
        """The share of their parts that two statements have in common."""
        for statement in (old, new):
            if statement not in self._parts:
                self._parts[statement] = Counter(self._dump(part) for part in _parts(statement))
        parts, others = self._parts[old], self._parts[new]
        return (parts & others).total() / max(1, (parts | others).total())

    def _unchanged(self, i: int, statements: list[ast.stmt], index: int) -> Match:
        """Step `i` is this statement, letter for letter, and so is all in it."""
        if i + 1 == len(self.steps):
            return Match((), statements[index], Gap(statements, index), 4.0)
        owner, inner = self.steps[i]
        block = next(b for b in self._blocks(statements[index]) if (b.field, b.index) == (inner.field, inner.index))
        following = inner.statements.index(self.steps[i + 1][0])
        return self._unchanged(i + 1, block.statements, following).within(
            Pair(owner, inner, statements[index], block), 2.5
        )

    def _gone(self, i: int, statements: list[ast.stmt], index: int, hollow: ast.stmt | None = None) -> Match:
        removed = tuple(Pair(*step) for step in self.steps[i:-1])
        return Match(removed, None, Gap(statements, index, hollow))

    def _alive(self, i: int, new: ast.stmt, statements: list[ast.stmt], index: int) -> Match:
        """Step `i` was edited, and is `new` now."""
        owner, inner = self.steps[i]
        if type(owner) is not type(new):
            return self._gone(i, statements, index)
        likeness, is_same = self._likeness(owner, new), self._header(owner) == self._header(new)
        if not (likeness or is_same or _is_same_loop(owner, new) or _source(owner) == _source(new) is not None):
            return self._gone(i, statements, index)
        worth = 0.5 + likeness + is_same
        if i + 1 == len(self.steps):
            return Match((), new, Gap(statements, index), worth)
        place = counterpart_of(new, owner, inner)
        block = next((b for b in self._blocks(new) if (b.field, b.index) == place), None)
        if block is None:
            lost = self._gone(i, statements, index + 1, hollow=new)
            return Match(lost.pairs, None, lost.gap, worth - 1.0)
        inside = self.find(i + 1, block.statements, 0, len(block.statements))
        return inside.within(Pair(owner, inner, new, block), worth)

    def _wrapped(self, i: int, new: ast.stmt, block: Block) -> Match:
        """Step `i` is inside `new`, which was put around it."""
        inside = self.find(i, block.statements, 0, len(block.statements))
        return inside.within(Pair(None, None, new, block), WRAPPED)


def counterpart_of(new: ast.stmt, old: ast.stmt, inner: Block) -> tuple[str, int]:
    """Field and index of the block of `new` that is what `inner` was of `old`; handlers and cases may have moved."""
    index = inner.index
    if inner.field in ("handler", "case"):
        ours, theirs = _heads(old), _heads(new)
        if not (index < len(theirs) and theirs[index] == ours[index]) and theirs.count(ours[index]) == 1:
            index = theirs.index(ours[index])
        elif isinstance(old, TRIES) and isinstance(new, TRIES) and index < len(theirs):
            index = index if _takes(new.handlers[index].type, old.handlers[index].type) else GONE
    return inner.field, index


GONE = -1
"""The index of a clause that has no counterpart."""


def _takes(new: ast.expr | None, old: ast.expr | None) -> bool:
    """Whether a handler for `new` takes what one for `old` did, as far as the text tells."""
    ours, theirs = _types_in(old), _types_in(new)
    return new is None or any(ast.dump(a) == ast.dump(b) or _is_below(a, b) for a in ours for b in theirs)


def _types_in(expression: ast.expr | None) -> list[ast.expr]:
    if expression is None:
        return [ast.Name("BaseException", ast.Load())]
    return expression.elts if isinstance(expression, ast.Tuple) else [expression]


def _is_below(one: ast.expr, other: ast.expr) -> bool:
    """Whether one built-in exception is a kind of the other; of every other one `Exception` is taken to be the base."""
    if not isinstance(other, ast.Name):
        return False
    kinds = [getattr(builtins, n.id, None) if isinstance(n, ast.Name) else None for n in (one, other)]
    kind, base = (k if isinstance(k, type) and issubclass(k, BaseException) else None for k in kinds)
    return base is not None and issubclass(kind or Exception, base)


def _heads(statement: ast.stmt) -> list[str]:
    """What chooses each handler, or each case."""
    if isinstance(statement, TRIES):
        return ["" if handler.type is None else ast.dump(handler.type) for handler in statement.handlers]
    return [ast.dump(case.pattern) for case in statement.cases] if isinstance(statement, ast.Match) else []


def header(statement: ast.stmt) -> str:
    """A compound statement without what stands in its blocks."""
    bare = copy.copy(statement)
    for block in {"body", "orelse", "finalbody"} & set(statement._fields):
        setattr(bare, block, [])
    for clauses in {"handlers", "cases"} & set(statement._fields):
        setattr(bare, clauses, [_bare(clause) for clause in getattr(statement, clauses)])
    return ast.dump(bare)


def _bare(clause: ast.AST) -> ast.AST:
    bare = copy.copy(clause)
    bare.body = []  # type: ignore[attr-defined]
    return bare


def _is_same_loop(old: ast.stmt, new: ast.stmt) -> bool:
    """Whether two loops bind the same variables, wherever their items come from."""
    return isinstance(old, ITERATIONS) and isinstance(new, ITERATIONS) and same(old.target, new.target)


def _source(statement: ast.stmt) -> str | None:
    """What a loop goes through, or what a ``with`` enters."""
    if isinstance(statement, ITERATIONS):
        return ast.dump(statement.iter)
    return ast.dump(statement.items[0].context_expr) if isinstance(statement, WITHS) else None


def _parts(statement: ast.stmt) -> list[ast.AST]:
    """The simple statements in a compound one; the expressions of a simple one."""
    inner = [inside for block in blocks(statement) for inside in block.statements]
    if not inner:
        return [node for node in ast.walk(statement) if isinstance(node, ast.expr)]
    return [part for inside in inner for part in (_parts(inside) if any(blocks(inside)) else [inside])]


__all__ = ["Gap", "Match", "Pair", "counterpart_of", "header", "match", "same"]

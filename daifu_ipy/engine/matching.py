"""Matching an edited unit with the one that crashed: which loops live on, and where the edit begins.

Blocks are matched from the outside in, along the path to the crashed statement. In each block equal statements are
anchors (longest common subsequence, so that order is kept); what stands between two anchors was edited. A compound
statement on the path that was edited is matched with the most similar statement of its kind in the same gap.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from daifu_ipy.engine.unit import Block, Unit, blocks


def same(old: ast.AST, new: ast.AST) -> bool:
    """Whether two pieces of code say the same."""
    return ast.dump(old) == ast.dump(new)


def common(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    inner = _common(old[start : len(old) - end], new[start : len(new) - end])
    tail = [(len(old) - k, len(new) - k) for k in range(end, 0, -1)]
    return [*((k, k) for k in range(start)), *((i + start, j + start) for i, j in inner), *tail]


def _common(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    rows = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            rows[i][j] = rows[i + 1][j + 1] + 1 if old[i] == new[j] else max(rows[i + 1][j], rows[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(old) and j < len(new):
        if old[i] == new[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif rows[i + 1][j] >= rows[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


@dataclass(frozen=True)
class Level:
    """One block on the path to the crash, in the old and in the new text.

    `old` and `new` are the block's statements, `index` that of the statement on the path in `old`, `counterpart` the
    statement in `new` that it lives on in (None: there is none).
    """

    old: list[ast.stmt]
    new: list[ast.stmt]
    index: int
    counterpart: ast.stmt | None
    gap: tuple[int, int]  # where in `new` the statement on the path was edited

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        return common([ast.dump(s) for s in self.old[: self.index]], [ast.dump(s) for s in self.new[: self.gap[1]]])

    @cached_property
    def first_edit(self) -> int | None:
        """Index in `new` of the first statement before the path's that is new or was changed; None if there is none."""
        matched = {j for _, j in self._pairs}
        end = self.gap[0] if self.counterpart is None else self.new.index(self.counterpart)
        return next((j for j in range(end) if j not in matched), None)


@dataclass
class Match:
    """The path to the crash, block by block, as far as the new text has it."""

    levels: list[Level] = field(default_factory=list)
    counterparts: dict[ast.stmt, ast.stmt] = field(default_factory=dict)


def match(old: Unit, new: Unit, crashed: ast.stmt) -> Match:
    """Match the path to `crashed` in the old unit with the new unit's blocks."""
    found = Match()
    steps = [*old.path(crashed), (crashed, Block(None, "", 0, []))]
    statements = new.body.statements
    siblings = old.body.statements
    for statement, inner in steps:
        level = _level(siblings, statements, statement)
        found.levels.append(level)
        if level.counterpart is None:
            break
        found.counterparts[statement] = level.counterpart
        if statement is crashed:
            break
        block = _same_block(level.counterpart, inner)
        if block is None:
            break
        siblings, statements = inner.statements, block.statements
    return found


def _same_block(statement: ast.stmt, inner: Block) -> Block | None:
    for block in blocks(statement):
        if block.field == inner.field and block.index == inner.index and block.statements:
            return block
    return None


def _level(old: list[ast.stmt], new: list[ast.stmt], statement: ast.stmt) -> Level:
    index = next(i for i, sibling in enumerate(old) if sibling is statement)
    pairs = common([ast.dump(s) for s in old], [ast.dump(s) for s in new])
    exact = next((j for i, j in pairs if i == index), None)
    if exact is not None:
        return Level(old, new, index, new[exact], (exact, exact + 1))
    start = max((j + 1 for i, j in pairs if i < index), default=0)
    end = min((j for i, j in pairs if i > index), default=len(new))
    similar = [new for new in new[start:end] if type(new) is type(statement) and not _wraps(new, statement)]
    best = similar[0] if len(similar) == 1 else max(similar, key=lambda new: _likeness(statement, new), default=None)
    return Level(old, new, index, best, (start, end))


def _wraps(new: ast.stmt, old: ast.stmt) -> bool:
    """Whether `new` is another statement around the old one, which lives on inside it."""
    header = _header(old)
    if _header(new) == header:
        return False
    inside = [node for node in ast.walk(new) if isinstance(node, ast.stmt) and node is not new]
    return any(type(node) is type(old) and _header(node) == header for node in inside)


def _header(statement: ast.stmt) -> str:
    """A compound statement without its blocks."""
    bare = copy.copy(statement)
    for block in {"body", "orelse", "finalbody", "handlers", "cases"} & set(statement._fields):
        setattr(bare, block, [])
    return ast.dump(bare)


def _likeness(old: ast.stmt, new: ast.stmt) -> float:
    """The share of their parts that two statements have in common."""
    parts, others = (Counter(ast.dump(part) for part in _parts(statement)) for statement in (old, new))
    return (parts & others).total() / max(1, (parts | others).total())


def _parts(statement: ast.stmt) -> list[ast.AST]:
    """The simple statements in a compound one; the expressions of a simple one."""
    inner = [inside for block in blocks(statement) for inside in block.statements]
    if not inner:
        return [node for node in ast.walk(statement) if isinstance(node, ast.expr)]
    return [part for inside in inner for part in (_parts(inside) if any(blocks(inside)) else [inside])]

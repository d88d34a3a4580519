"""Where an edit begins: what has run of a unit, laid beside what stands there in the new text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from daifu_ipy.engine.matching import Match, Pair, same
from daifu_ipy.engine.subsequence import common
from daifu_ipy.engine.unit import ITERATIONS, TRIES, WITHS, Unit, blocks


@dataclass(frozen=True)
class Stretch:
    """The statements of one level of the path that have run, and those that stand there in the new text.

    What was put around the path and runs nothing by itself (``try``), and what was taken away from around it, makes no
    level of its own. `ends`: the construct inside which the path goes on; None at the crashed statement.
    """

    old: tuple[ast.stmt, ...]
    new: tuple[ast.stmt, ...]
    ends: Pair | None

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Index pairs of those that were not changed."""
        return common([ast.dump(s) for s in self.old], [ast.dump(s) for s in self.new])

    @cached_property
    def first_edit(self) -> ast.stmt | None:
        """The first that is new or was changed."""
        matched = {j for _, j in self.pairs}
        return next((s for j, s in enumerate(self.new) if j not in matched), None)

    def again(self, start: int) -> Iterator[ast.stmt]:
        """Those that have run and that `new` has again from index `start` on, be it inside something new."""
        kept = {i for i, j in self.pairs if j >= start}
        passed = max((i for i, j in self.pairs if j < start), default=-1)
        changed = set(range(start, len(self.new))) - {j for _, j in self.pairs}
        texts = {ast.dump(node) for j in changed for node in _statements(self.new[j])}
        kinds = {type(node) for j in changed for node in _statements(self.new[j])}
        for i, statement in enumerate(self.old):
            if i in kept or (i > passed and _is_in(statement, texts, kinds)):
                yield statement


def _statements(statement: ast.stmt) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(statement) if isinstance(node, ast.stmt))


def _is_in(statement: ast.stmt, texts: set[str], kinds: set[type[ast.stmt]]) -> bool:
    """Whether a statement, or part of it, is among others; a loop, or another block, may be in another form."""
    is_edited = any(blocks(statement)) and type(statement) in kinds
    return is_edited or any(ast.dump(node) in texts for node in _statements(statement))


class Edits:
    """The edits on the path to the crash, in the order in which they would run."""

    def __init__(self, old: Unit, new: Unit, found: Match, crashed: ast.stmt) -> None:
        self.found = found
        self.crashed = crashed
        self.stretches = list(_stretches(old, new, found, crashed))

    def __iter__(self) -> Iterator[ast.stmt]:
        seen: set[ast.stmt] = set()
        for statement in self._all():
            if statement not in seen:
                seen.add(statement)
                yield statement

    def _all(self) -> Iterator[ast.stmt]:
        for stretch in self.stretches:
            if stretch.first_edit is not None:
                yield stretch.first_edit
            pair = stretch.ends
            if pair is not None and pair.new is not None and (pair.old is None or _header_changed(pair)):
                yield pair.new
        counterpart, gap = self.found.counterpart, self.found.gap
        if counterpart is None and gap.hollow is None and gap.start < len(gap.statements):
            yield gap.statements[gap.start]
        elif counterpart is not None and not same(counterpart, self.crashed):
            yield counterpart


def _stretches(old: Unit, new: Unit, found: Match, crashed: ast.stmt) -> Iterator[Stretch]:
    ours: list[ast.stmt] = []
    theirs: list[ast.stmt] = []
    path = [*(pair.old for pair in found.pairs), crashed]
    for depth, pair in enumerate(found.pairs):
        if pair.old is not None:
            ours += _before(old, pair.old)
        if pair.new is not None:
            theirs += _before(new, pair.new)
        if pair.new is not None and pair.old is not None:
            yield Stretch(tuple(ours), tuple(theirs), pair)
            ours, theirs = [], []
        elif pair.new is not None and not _runs_nothing(pair):
            inner = next(statement for statement in path[depth:] if statement is not None)
            yield Stretch((*ours, *_before(old, inner)), tuple(theirs), pair)
            theirs = []
    if found.counterpart is not None:
        theirs += _before(new, found.counterpart)
    else:
        theirs += found.gap.statements[: found.gap.start - (found.gap.hollow is not None)]
    yield Stretch((*ours, *_before(old, crashed)), tuple(theirs), None)


def _before(unit: Unit, statement: ast.stmt) -> list[ast.stmt]:
    siblings = unit.block_of[statement].statements
    return siblings[: siblings.index(statement)]


def _runs_nothing(pair: Pair) -> bool:
    return isinstance(pair.new, TRIES) and pair.new_block is not None and pair.new_block.field == "body"


def _header_changed(pair: Pair) -> bool:
    """Whether what a construct evaluates before the path goes into it is another thing now."""
    old, new, block = pair.old, pair.new, pair.old_block
    if isinstance(old, ast.If | ast.While) and isinstance(new, ast.If | ast.While):
        return not same(old.test, new.test)
    if isinstance(old, ITERATIONS) and isinstance(new, ITERATIONS):
        return not same(old.iter, new.iter)
    if isinstance(old, WITHS) and isinstance(new, WITHS):
        return not same(old.items[0], new.items[0])
    if isinstance(old, ast.Match) and isinstance(new, ast.Match) and block is not None and pair.new_block is not None:
        return not same(old.subject, new.subject) or _choice(old, block.index) != _choice(new, pair.new_block.index)
    return False


def _choice(statement: ast.Match, index: int) -> list[tuple[str, str]]:
    """What chose the case `index`: its pattern and guard, and those before it."""
    return [
        (ast.dump(case.pattern), "" if case.guard is None else ast.dump(case.guard))
        for case in statement.cases[: index + 1]
    ]


__all__ = ["Edits", "Stretch"]

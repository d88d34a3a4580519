"""Where the run goes on after a surgery, what it leaves behind for that, and where it can't.

A statement of the new text can be reached if every construct around it is open already, or opens without doing
anything. What is open and not around it is left as Python leaves it: a ``with`` is exited, an iterator is dropped. What
could not be left so without a word (a ``finally`` that would be skipped, a pending exception) is a reason not to go
there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from daifu_ipy.engine.crash import CrashFrame
from daifu_ipy.engine.editing import Edits
from daifu_ipy.engine.iterators import items_taken
from daifu_ipy.engine.location import Leaving, Location
from daifu_ipy.engine.matching import Match, Pair, match, same
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.resume import FORCED
from daifu_ipy.engine.scopes import bound_names, mangle
from daifu_ipy.engine.unit import ITERATIONS, LOOPS, TRIES, WITHS, Block, Unit, blocks


@dataclass(frozen=True)
class Left:
    """Something open that a restart location is not in. `lives_on`: the new text has it still."""

    leaving: Leaving | None
    lives_on: bool
    note: str


@dataclass(frozen=True)
class Place:
    """A restart location in the new text, why there, and what is left for it, outermost first."""

    location: Location
    reason: str
    left: tuple[Left, ...] = field(default=(), compare=False)

    @property
    def text(self) -> str:
        """Why there, and what becomes of what was open."""
        return "; ".join([self.reason, *(left.note for left in self.left if left.note)])

    @property
    def abandons(self) -> bool:
        """Something that the new text still has is left half done."""
        return any(left.lives_on for left in self.left)


class Restarts:
    """The restart locations of one surgery."""

    def __init__(self, frame: CrashFrame, new: Unit, shift: int = 0) -> None:
        self.frame = frame
        self.shift = shift  # how many lines stand before the first one that was typed
        self.old = frame.unit
        self.new = new
        self.was = frame.location
        self.found: Match = match(frame.unit, new, frame.location.statement)
        self.edits = Edits(frame.unit, new, self.found, frame.location.statement)

    # the choices

    def chosen(self, restart_at: str | int | None) -> Place:
        """The place that `restart_at` names; `Refusal` if the run can't go on there."""
        if restart_at is None:
            return self.default()
        if isinstance(restart_at, int):
            return self.line(restart_at)
        return self.crash() if restart_at == "crash" else self.edit()

    def edit(self) -> Place:
        """The first changed statement, wherever it is."""
        for statement in self.edits:
            return self._edited(statement, "the first changed statement")
        return self.crash()

    def _edited(self, statement: ast.stmt, reason: str) -> Place:
        if statement is self.found.counterpart and self.was.kind != "statement":
            return self.crash()  # of what was half done, the part that was not done yet
        return self._start(statement, reason)

    def line(self, line: int) -> Place:
        """The statement in a line of the new text."""
        statement = self.statement_in(line + self.shift)
        if statement is None:
            raise Refusal(f"restart_at: no statement of {self.new.qualname} is in line {line} of the new source")
        return self._start(statement, f"line {line}, as chosen")

    def line_of(self, statement: ast.stmt) -> int:
        """Its line in the new text as it was typed."""
        return statement.lineno - self.shift

    def statement_in(self, line: int) -> ast.stmt | None:
        """The outermost statement that begins in this line, or else the innermost that goes over it."""
        begins = [statement for statement in self.new.number if statement.lineno == line]
        over = [s for s in self.new.number if s.lineno <= line <= _last_line(s)]
        return begins[0] if begins else over[-1] if over else None

    def default(self) -> Place:
        """The first edit of the interrupted iteration, if nothing that lives on is abandoned for it; else the crash."""
        try:
            crash: Place | Refusal = self.crash()
        except Refusal as refusal:
            crash = refusal
        kept = ""
        for statement in self.edits:
            try:
                place = self._edited(statement, "the first changed statement of the interrupted iteration")
            except Refusal as refusal:
                kept = kept or f"to go back to the edit in line {self.line_of(statement)} is not possible: {refusal}"
                continue
            if self._goes_back(place):
                return replace(place, reason=f"{place.reason} ({kept})") if kept else place
            kept = kept or f"to go back to the edit in line {self.line_of(statement)} would run what is half done again"
        if isinstance(crash, Place):
            return crash if not kept else Place(crash.location, f"{crash.reason} ({kept})", crash.left)
        return self._instead(crash)

    def _goes_back(self, place: Place) -> bool:
        statement = place.location.statement
        if place.abandons or (isinstance(self.was.statement, ast.While) and statement is not self.found.counterpart):
            return False
        loop = self._iteration
        if loop is not None:
            return any(owner is loop.new and block is loop.new_block for owner, block in self.new.path(statement))
        return not self._reruns_loop(statement)

    def _instead(self, refusal: Refusal) -> Place:
        """Where to go on if not at the crash: at the edit, if all that it abandons is gone from the text."""
        try:
            place = self.edit()
        except Refusal:
            raise refusal from None
        if place.abandons:
            line = self.line_of(place.location.statement)
            raise Refusal(f"{refusal}. restart_at='edit' goes on in line {line}: {place.text}")
        return place

    @cached_property
    def _iteration(self) -> Pair | None:
        """The innermost loop that was interrupted and lives on."""
        loops = (p for p in self.found.living.values() if isinstance(p.old, LOOPS) and _field(p.old_block) == "body")
        return next(reversed(list(loops)), None)

    def _reruns_loop(self, statement: ast.stmt) -> bool:
        """A loop that has ended would run again."""
        siblings = self.new.block_of[statement].statements
        on_path = {pair.new for pair in self.found.pairs} | {self.found.counterpart}
        gap = self.found.gap
        for k in range(siblings.index(statement), len(siblings)):
            if siblings[k] in on_path or (siblings is gap.statements and k == gap.start):
                return False
            if _has_loop(siblings[k]):
                return True
        return False

    @cached_property
    def iteration_start(self) -> ast.stmt | None:
        """The first statement of the interrupted iteration."""
        pair = self._iteration
        return pair.new_block.statements[0] if pair is not None and pair.new_block is not None else None

    # places

    def crash(self) -> Place:
        """The crashed statement, or what has taken its place."""
        old, new = self.was.statement, self.found.counterpart
        if new is None:
            return self._gone()
        if isinstance(old, ITERATIONS) and isinstance(new, ITERATIONS) and self.was.kind in ("next", "unpack"):
            if not same(old.iter, new.iter):
                return self._start(new, "the loop's iterable was changed: the loop starts anew")
            if self.was.kind == "unpack" and isinstance(new.target, ast.Name):
                raise Refusal("the item that could not be unpacked needs a target that unpacks; use an action instead")
        if isinstance(old, WITHS) and isinstance(new, WITHS) and self.was.kind == "target":
            if not same(old.items[0].context_expr, new.items[0].context_expr):
                return self._start(new, "the context manager was changed: it is entered anew")
        if isinstance(old, ast.Match) and isinstance(new, ast.Match) and not same(old.subject, new.subject):
            return self._start(new, "the subject of the match was changed: it is matched anew")
        if self.was.kind == "guard" and not _same_cases(old, new, self.was.index):
            raise Refusal("the cases before the crashed guard were changed: its subject can't be matched again")
        if self.was.kind == "except" and not _same_clauses(old, new, self.was.index):
            raise Refusal("the handlers before the crashed one were changed while their exception was being matched")
        if self.was.kind == "statement":
            return self._start(new, "the crashed statement")
        index = self._waiting(self.was.index, Pair(old, None, new)) if self.was.kind == "exit" else self.was.index
        return self._place(new, "the crashed statement", Location(new, self.was.kind, index))

    def _gone(self) -> Place:
        gap = self.found.gap
        if gap.hollow is not None:
            handler = next((pair for pair in self.found.pairs if _is_running_handler(pair)), None)
            if handler is not None and handler.old is not None:
                raise Refusal(
                    f"no handler of the try in line {self.line_of(gap.hollow)} of the new source takes what the one "
                    f"that is running in line {handler.old.lineno} has taken"
                )
            if isinstance(gap.hollow, TRIES) and gap.hollow.finalbody:
                raise Refusal(f"the finally of the try in line {self.line_of(gap.hollow)} would be skipped")
            return self._place(gap.hollow, "the block of the crash is gone: after it", Location(gap.hollow, "after"))
        if gap.start < len(gap.statements):
            return self._start(gap.statements[gap.start], "what stands where the crashed statement stood")
        last = gap.statements[-1]
        return self._place(last, "the crashed statement is gone: after it", Location(last, "after"))

    def _start(self, statement: ast.stmt, reason: str) -> Place:
        return self._place(statement, reason, Location(statement))

    def _place(self, statement: ast.stmt, reason: str, location: Location) -> Place:
        path = self.new.path(statement)
        pairs = {pair.new: pair for pair in self.found.living.values()}
        pending = []
        for owner, block in path:
            pair = pairs.get(owner)
            if pair is None or pair.new_block is not block:
                self._check_enterable(owner, block)
                pair = None
            if block.field == "finalbody":
                pending.append(self._pending(pair))
        inside = {block for _, block in path}
        left = [*self._left(inside), *self._left_statement(location), *self._unbound(inside)]
        leaving = tuple(one.leaving for one in left if one.leaving is not None)
        there = replace(location, pending=tuple(pending), left=leaving)
        return Place(there, reason, tuple(left))

    def _check_enterable(self, owner: ast.stmt, block: Block) -> None:
        """Only what opens without doing anything can be gone into in its middle."""
        opens = isinstance(owner, ast.If) or block.field in ("orelse", "finalbody")
        opens = opens or (isinstance(owner, ast.Try) and block.field == "body")
        if isinstance(owner, ast.Match):
            opens = not bound_names([owner.cases[block.index].pattern], self.new.class_name)
        if isinstance(owner, ast.TryStar) or not opens:
            raise Refusal(f"the {name_of(owner)} in line {self.line_of(owner)} of the new source has not been entered")

    # what is pending

    def _pending(self, pair: Pair | None) -> int:
        """The completion that waits for a ``finally`` body of the new text."""
        if pair is None:
            return 0
        return self._waiting(self._pending_before(pair), pair)

    def _pending_before(self, pair: Pair) -> int:
        finals = [owner for owner, block in self.old.path(self.was.statement) if block.field == "finalbody"]
        return self.was.pending[finals.index(pair.old)] if pair.old in finals else 0

    def _waiting(self, number: int, pair: Pair) -> int:
        """A pending completion as the new unit numbers it."""
        if number <= 0 or number >= FORCED:
            return number
        jump = next(jump for jump in self.old.jumps.values() if jump.number == number)
        alike = [j for j in self.old.jumps.values() if pair.old in j.pending and same(j.node, jump.node)]
        theirs = [j for j in self.new.jumps.values() if pair.new in j.pending and same(j.node, jump.node)]
        if len(alike) != len(theirs):
            raise Refusal(f"the {name_of(jump.node)} in line {jump.node.lineno} is under way and has no counterpart")
        return theirs[alike.index(jump)].number

    @property
    def jumps(self) -> dict[ast.stmt, ast.stmt]:
        """The jumps that are under way, and their counterparts."""
        numbers = {jump.number: node for node, jump in self.new.jumps.items()}
        ours = {jump.number: node for node, jump in self.old.jumps.items()}
        pairs = [pair for pair in self.found.pairs if pair.new is not None and _field(pair.old_block) == "finalbody"]
        waiting = [(self._pending_before(pair), pair) for pair in pairs]
        if self.was.kind == "exit" and self.found.counterpart is not None:
            waiting.append((self.was.index, Pair(self.was.statement, None, self.found.counterpart)))
        return {ours[n]: numbers[self._waiting(n, pair)] for n, pair in waiting if 0 < n < FORCED}

    # what is left

    def _left(self, inside: set[Block]) -> Iterator[Left]:
        """The open constructs of the path that the new place is not in."""
        for pair in self.found.pairs:
            if pair.old is None or pair.old_block is None or pair.new_block in inside:
                continue
            yield from self._leave(pair.old, pair.old_block, lives_on=pair.new is not None)

    def _leave(self, owner: ast.stmt, block: Block, *, lives_on: bool) -> Iterator[Left]:
        line = owner.lineno
        if isinstance(owner, ITERATIONS) and block.field == "body":
            yield Left(("drop", self.old.slot("i", owner)), lives_on, self._abandoned(owner))
        elif isinstance(owner, ast.While) and block.field == "body":
            yield Left(None, lives_on, self._abandoned(owner))
        elif isinstance(owner, WITHS):
            yield self._exit(owner, lives_on=lives_on)
        elif isinstance(owner, ast.TryStar) and block.field == "handler":
            raise Refusal(f"an except* clause (line {line}) can't be left while it runs")
        elif isinstance(owner, TRIES):
            if block.field == "finalbody":
                if self._pending_before(Pair(owner, block)):
                    raise Refusal(f"what waits for the end of the finally in line {line} would be lost")
            elif owner.finalbody:
                if lives_on:
                    raise Refusal(f"the finally of the try in line {line} would be skipped")
                yield Left(None, False, f"the finally of the try in line {line} is gone and does not run")
            if block.field == "handler":
                name = owner.handlers[block.index].name
                leaving = None if name is None else ("unbind", mangle(name, self.old.class_name))
                yield Left(leaving, lives_on, "")

    def _exit(self, owner: ast.stmt, *, lives_on: bool) -> Left:
        how = "async exit" if isinstance(owner, ast.AsyncWith) else "exit"
        note = f"the with statement in line {owner.lineno} is left first"
        return Left((how, self.old.slot("x", owner)), lives_on, note)

    def _abandoned(self, loop: ast.stmt) -> str:
        taken = items_taken(self.frame.slots.get(self.old.slot("i", loop)))
        after = "" if taken is None else f" after {taken} item{'s' * (taken != 1)}"
        return f"the {name_of(loop)} in line {loop.lineno} is abandoned{after}"

    def _unbound(self, inside: set[Block]) -> Iterator[Left]:
        """New variables of a loop or ``with`` that goes on: the value under way went into the old ones."""
        for pair in self.found.living.values():
            old, new = _target_of(pair.old), _target_of(pair.new)
            if new is None or pair.new is None or pair.new_block not in inside or _field(pair.new_block) != "body":
                continue
            line = self.line_of(pair.new)
            names = _changed_names(old, new, self.new.class_name)
            for name in sorted(names - self.frame.acted_on - self.frame.extras.keys()):
                note = f"{name} is unbound: the value under way in line {line} is not known; an action can bind it"
                yield Left(("unbind", name), False, note)
            if not names and old is not None and not same(old, new):
                yield Left(None, False, f"the value under way in line {line} does not go into {ast.unparse(new)}")

    def _left_statement(self, location: Location) -> Iterator[Left]:
        """What is open of the crashed statement itself, unless it is what goes on."""
        old, kind = self.was.statement, self.was.kind
        if (location.statement is self.found.counterpart and location.kind == kind) or kind in ("statement", "guard"):
            return
        if isinstance(old, ITERATIONS):
            new = self.found.counterpart
            lives_on = isinstance(new, ITERATIONS) and same(old.iter, new.iter)
            yield Left(("drop", self.old.slot("i", old)), lives_on, self._abandoned(old))
        elif kind == "target":
            yield self._exit(old, lives_on=self.found.counterpart is not None)
        elif kind == "exit" and not self.was.index:
            yield Left(None, self.found.counterpart is not None, "")
        else:
            raise Refusal(f"what is under way in the {name_of(old)} in line {old.lineno} would be lost")


def _is_running_handler(pair: Pair) -> bool:
    """Whether the crash is in a handler that the new text has not got."""
    return pair.new is None and isinstance(pair.old, TRIES) and _field(pair.old_block) == "handler"


def _field(block: Block | None) -> str:
    return "" if block is None else block.field


def _target_of(statement: ast.stmt | None) -> ast.expr | None:
    """What a loop, or a ``with``, binds."""
    if isinstance(statement, ITERATIONS):
        return statement.target
    return statement.items[0].optional_vars if isinstance(statement, WITHS) else None


def _changed_names(old: ast.expr | None, new: ast.expr | None, class_name: str | None) -> set[str]:
    """The variables that a new target binds to something else than the old one did."""
    if new is None or (old is not None and same(old, new)):
        return set()
    both = (old, new)
    if all(isinstance(one, ast.Tuple | ast.List) for one in both):
        ours, theirs = old.elts, new.elts  # type: ignore[union-attr, attr-defined]
        if len(ours) == len(theirs) and not any(isinstance(one, ast.Starred) for one in (*ours, *theirs)):
            pairs = zip(ours, theirs, strict=True)
            return set().union(*(_changed_names(a, b, class_name) for a, b in pairs))
    return set(bound_names([new], class_name))


def _last_line(statement: ast.stmt) -> int:
    """Where a statement ends; a compound one, where its header does."""
    inner = [s.lineno for block in blocks(statement) for s in block.statements]
    return min(inner) if inner else statement.end_lineno or statement.lineno


def _has_loop(statement: ast.stmt) -> bool:
    return isinstance(statement, LOOPS) or any(_has_loop(s) for block in blocks(statement) for s in block.statements)


def _same_cases(old: ast.stmt, new: ast.stmt, index: int) -> bool:
    """The cases that did not match are the same; only the crashed one's guard and body, and later ones, may differ."""
    if not (isinstance(old, ast.Match) and isinstance(new, ast.Match) and len(new.cases) > index):
        return False
    before = all(map(same, old.cases[:index], new.cases[:index]))
    return before and same(old.cases[index].pattern, new.cases[index].pattern)


def _same_clauses(old: ast.stmt, new: ast.stmt, index: int) -> bool:
    """The same for handlers whose types did not match."""
    if not (isinstance(old, TRIES) and isinstance(new, TRIES) and len(new.handlers) > index):
        return False
    return all(map(same, old.handlers[:index], new.handlers[:index]))


def name_of(statement: ast.stmt) -> str:
    """What a statement is called."""
    names: dict[type[ast.stmt], str] = {
        ast.For: "for loop",
        ast.AsyncFor: "async for loop",
        ast.While: "while loop",
        ast.AsyncWith: "async with statement",
        ast.TryStar: "try statement",
    }
    return names.get(type(statement), f"{type(statement).__name__.lower()} statement")


__all__ = ["Left", "Place", "Restarts", "name_of"]

"""Unfinished procedures: the code for the rest of a unit from a restart location on.

The path from the unit's body to the location is rebuilt from the inside out. Each block on it contributes what is left
of it; each construct is put around that in the form it has in the middle of its life: a loop continues its live
iterator, a ``with`` is already entered, a handler handles again the exception it was handling, a ``finally`` body ends
with what was pending. Everything off the path is the unit's own vaccinated code, shared with it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from types import CodeType

from daifu_ipy.engine.compiling import bare_function, compile_function, finish, parameters_named
from daifu_ipy.engine.invariants import InternalError
from daifu_ipy.engine.location import RAISING, Location
from daifu_ipy.engine.nodes import STORE, At
from daifu_ipy.engine.scopes import HIDDEN
from daifu_ipy.engine.shapes import STATE, Shapes
from daifu_ipy.engine.unit import (
    ITERATIONS,
    JUMPS,
    LOOPS,
    TRIES,
    WITHS,
    Block,
    FunctionNode,
    TryNode,
    Unit,
    WithNode,
)

VALUE = f"{HIDDEN}value"
"""What a ``return`` that a repair put in place will return."""

FORCED = 1 << 30
"""From here on: pending completions of jumps that a repair put in place; they are not in the unit's AST."""


class Procedure:
    """Builds the unfinished procedure of one unit at one location."""

    def __init__(self, shapes: Shapes, location: Location, names: Iterable[str]) -> None:
        self.slots = frozenset(names)  # the names that arrive
        self.shapes = shapes
        self.unit = shapes.unit
        self.location = location
        self.path = self.unit.path(location.statement)
        self.forced = location.jump is not None or max((location.index, *location.pending)) >= FORCED
        self.pending = iter(reversed(location.pending))
        self.overridden: list[str] = []  # slots that a jump put here leaves behind once it has arrived

    def body(self) -> list[ast.stmt]:
        """The statements from the location to the unit's end."""
        made = [*self._leave(), *self._crashed(), *self._following(self.location.statement)]
        for owner, block in reversed(self.path):
            made = [*self._around(owner, block, made), *self._following(owner)]
        return made

    def _following(self, statement: ast.stmt) -> list[ast.stmt]:
        siblings = self.unit.block_of[statement].statements
        return self.shapes.block(siblings[siblings.index(statement) + 1 :])

    def _leave(self) -> list[ast.stmt]:
        """Leave what a surgery has taken away from around the location, innermost first."""
        at = self.shapes.head(self.location.statement)
        made: list[ast.stmt] = []
        for how, name in reversed(self.location.left):
            if how in ("exit", "async exit"):
                made = self._exit(at, name, made, is_async=how == "async exit")
            else:
                made += [*at.clear([name]), at.delete(name)]  # an ``as`` variable may be unbound
        return made

    def _exit(self, at: At, name: str, body: list[ast.stmt], *, is_async: bool) -> list[ast.stmt]:
        """Exit a block, as Python does after `body`."""
        nothing: list[ast.expr] = [at.constant(None) for _ in range(3)]
        failed: ast.expr = at.apply(at.name(name), at.star(at.call("exc_info")))
        ended: ast.expr = at.apply(at.name(name), *nothing)
        if is_async:
            failed, ended = at.awaited(failed), at.awaited(ended)
        done: list[ast.stmt] = [at.expr(ended)]
        if body:
            done = [at.attempt(body, [at.unless(failed, [at.reraise()])], orelse=done)]
        return [at.attempt(done, finalbody=[at.delete(name)])]

    # the crashed statement

    def _crashed(self) -> list[ast.stmt]:
        node, kind, index, shapes = (
            self.location.statement,
            self.location.kind,
            self.location.index,
            self.shapes,
        )
        if kind == "after":
            return [*shapes.head(node).clear(shapes.direct_slots(node)), *self._complete(index, node)]
        if kind == "statement":
            return shapes.statement(node)
        if kind == "jump":
            return [*shapes.head(node).clear(shapes.direct_slots(node)), *self._jump(self.path)]
        if isinstance(node, ITERATIONS) and kind == "next":
            return [shapes.live_loop(node), *self._close_loop(node)]
        if isinstance(node, ITERATIONS) and kind == "unpack":
            return [
                shapes.once(node, shapes.iteration(node), [shapes.live_loop(node)]),
                *self._close_loop(node),
            ]
        if isinstance(node, WITHS) and kind == "target":
            if self.location.jump is not None:
                inner = self._jump([*self.path, (node, Block(node, "body", 0, node.body))])
                return shapes.inside(node, inner, stored=True, forced=True)
            return shapes.inside(node, shapes.block(node.body))
        if isinstance(node, WITHS) and kind == "exit":
            return [*shapes.leave(node), *self._closed(node), *self._complete(index, node)]
        if isinstance(node, WITHS) and kind == "left with exception":
            at = shapes.head(node)
            left = [*at.clear([shapes.slot("e", node), shapes.slot("x", node)]), at.reraise()]
            return self.reissue(shapes.slot("e", node), at, left, triple=True)
        if isinstance(node, WITHS) and kind == "exit with exception":
            return self.reissue(shapes.slot("e", node), shapes.head(node), shapes.ask_exit(node), triple=True)
        if isinstance(node, ast.Match) and kind == "guard":
            return shapes.cases_of(node, shapes.at(node.subject).name(shapes.slot("m", node)), index)
        if isinstance(node, TRIES) and kind == "except":
            if self.location.jump is None:
                return self._match_again(node, index)
            inner = self._jump([*self.path, (node, Block(node, "handler", index, node.handlers[index].body))])
            return shapes.guarded(node, inner, forced=True)
        raise InternalError(f"no way to resume at {kind} of {type(node).__name__}")

    def _close_loop(self, node: ast.stmt) -> list[ast.stmt]:
        return self.shapes.head(node).clear([self.shapes.slot("i", node), *self.overridden])

    def _arrived(self, node: ast.stmt) -> list[ast.stmt]:
        """A jump put here has left its ``finally`` bodies: nothing waits for their ends any more."""
        return self.shapes.head(node).clear(self.overridden)

    def _closed(self, node: WithNode) -> list[ast.stmt]:
        return self.shapes.head(node).clear([self.shapes.slot("x", node)])

    def _jump(self, path: list[tuple[ast.stmt, Block]]) -> list[ast.stmt]:
        """A jump that a repair puts in place of the crashed statement."""
        jump, at = self.location.jump, self.shapes.head(self.location.statement)
        if jump is None:
            raise InternalError("a jump without its kind")
        return self._forced(FORCED + JUMPS.index(jump), path, at)

    def _forced(self, number: int, path: list[tuple[ast.stmt, Block]], at: At) -> list[ast.stmt]:
        """Do a jump that is not in the unit's AST: say that it is pending to all that it leaves, and go."""
        kind = JUMPS[number - FORCED]
        pending: list[ast.expr] = []
        overriding: list[str] = []
        for owner, block in reversed(path):
            if isinstance(owner, LOOPS) and block.field == "body" and kind is not ast.Return:
                break
            if isinstance(owner, TRIES) and block.field == "finalbody":
                overriding += [self.shapes.slot(letter, owner) for letter in "pk"]
            elif isinstance(owner, WITHS) or (isinstance(owner, TRIES) and owner.finalbody):
                pending.append(at.name(self.shapes.slot("k", owner), STORE))
        said: list[ast.stmt] = at.clear(overriding)
        if pending:  # the finally bodies go on meanwhile
            said = [ast.Assign(pending, at.constant(number), None, **at.position)]
            self.overridden += overriding
        if kind is ast.Return:
            value = None if self.unit.is_async and self.unit.is_generator else at.name(VALUE)
            return [*said, at.returns(value)]
        jump = ast.Break(**at.position) if kind is ast.Break else ast.Continue(**at.position)
        return [*said, jump]

    # constructs on the path

    def _around(self, owner: ast.stmt, block: Block, made: list[ast.stmt]) -> list[ast.stmt]:
        shapes = self.shapes
        if isinstance(owner, ITERATIONS) and block.field == "body":
            live = [*self._arrived(owner), shapes.live_loop(owner)]
            return [shapes.once(owner, made, live), *self._close_loop(owner)]
        if isinstance(owner, ast.While) and block.field == "body":
            rest = [*self._arrived(owner), *shapes.statement(owner)]
            return [shapes.once(owner, made, rest), *self._arrived(owner)]
        if isinstance(owner, WITHS):
            return shapes.inside(owner, made, stored=True, forced=self.forced)
        if isinstance(owner, TRIES):
            return self._around_try(owner, block, made)
        return made  # if, match, and the else of a loop: nothing of them is left but their block

    def _around_try(self, owner: TryNode, block: Block, made: list[ast.stmt]) -> list[ast.stmt]:
        if block.field == "finalbody":
            return self._final(owner, next(self.pending), made)
        if block.field == "body":
            made = self.shapes.clauses(owner, made)
        elif block.field == "handler":
            made = self._handler(owner, block.index, made)
        return self.shapes.guarded(owner, made, forced=self.forced)

    def _final(self, owner: TryNode, pending: int, made: list[ast.stmt]) -> list[ast.stmt]:
        slot, at = self.shapes.slot("p", owner), self.shapes.head(owner)
        if pending == RAISING:
            return self.reissue(slot, at, [*made, *at.clear([slot]), at.reraise()], triple=True)
        return [*made, *self._complete(pending, owner)]

    def _complete(self, number: int, owner: ast.stmt) -> list[ast.stmt]:
        """The jump that was waiting for `owner` to be left."""
        if number == 0:
            return []
        if number >= FORCED:
            return self._forced(number, self.unit.path(owner), self.shapes.head(owner))
        jump = next(jump for jump in self.unit.jumps.values() if jump.number == number)
        inside = {statement for statement, _ in self.unit.path(owner)}
        pending = [statement for statement in jump.pending if statement in inside]
        overriding = [statement for statement in jump.overriding if statement in inside]
        return self.shapes.finish_jump(jump.node, pending, overriding)

    # exceptions handled again

    def _handler(self, owner: TryNode, index: int, made: list[ast.stmt]) -> list[ast.stmt]:
        if isinstance(owner, ast.TryStar):
            return self._star_handler(owner, index, made)
        clause = owner.handlers[index]
        at = self.shapes.head(clause)
        barred = self.shapes.in_handler(owner, index, made)
        value = self.shapes.slot("w", owner, index)
        rebound: list[ast.stmt] = []
        if clause.name is not None:
            if value in self.slots:
                rebound = [at.assign(clause.name, at.name(value)), at.delete(value)]
            barred = [at.attempt(barred, finalbody=self.shapes.unbind(clause))]
        return self.reissue(self.shapes.slot("h", owner, index), at, [*rebound, *barred], clear=True)

    def reissue(
        self, slot: str, at: At, made: list[ast.stmt], *, triple: bool = False, clear: bool = False
    ) -> list[ast.stmt]:
        """Handle again the exception in `slot`, its traceback and context as they were."""
        exception: ast.expr = at.call("exception_of", at.name(slot)) if triple else at.name(slot)
        saved = saved_name(slot)
        handler = [at.expr(at.call("restore", at.name(saved))), *at.clear([saved])]
        final = at.clear([slot]) if clear else None
        if clear:
            handler.append(at.attempt(made, finalbody=final))
        else:
            handler += made
        return [at.assign(saved, at.call("snapshot", exception)), at.attempt([at.raises(exception)], handler)]

    def _match_again(self, owner: TryNode, index: int) -> list[ast.stmt]:
        """The exception in slot c looks for its handler again, from clause `index` on."""
        at, slot = self.shapes.head(owner), self.shapes.slot("c", owner)
        saved = saved_name(slot)
        restored = at.expr(at.call("restore", at.name(saved)))
        if isinstance(owner, ast.TryStar):
            made = self.shapes.star_clauses(owner, [at.raises(at.name(slot))], saved=saved)
        else:
            clauses = self.shapes.clauses(owner, [at.raises(at.name(slot))])
            statement = clauses[0]
            if not isinstance(statement, ast.Try):
                raise InternalError("a try statement without its clauses")
            handlers = statement.handlers[len(statement.handlers) - len(owner.handlers) + index :]
            again = [at.handler(h.type, [restored, *h.body], h.name) for h in handlers]
            if again[-1].type is not None:
                again.append(at.handler(None, [restored, at.reraise()]))
            body: list[ast.stmt] = [at.raises(at.name(slot))]
            made = [ast.Try(body, again, [], [], **at.position)]
        before = at.assign(saved, at.call("snapshot", at.name(slot)))
        return self.shapes.guarded(owner, [before, *made])

    def _star_handler(self, owner: ast.TryStar, index: int, made: list[ast.stmt]) -> list[ast.stmt]:
        """Raise the whole group again; earlier clauses are done, or raise what they raised; this one goes on."""
        at, shapes = self.shapes.head(owner), self.shapes
        bodies: dict[int, list[ast.stmt]] = {index: shapes.star_clause(owner, index, made)}
        for earlier in range(index):
            raised = shapes.slot("d", owner, earlier)
            if raised in self.slots:
                again = at.call("exception_of", at.name(raised))
                kept = saved_name(raised)
                restored = [at.expr(at.call("restore", at.name(kept))), *at.clear([kept]), at.reraise()]
                bodies[earlier] = [
                    at.assign(kept, at.call("snapshot", again)),
                    at.attempt([at.raises(again)], restored),
                ]
            else:
                bodies[earlier] = [at.nothing()]
        slot = shapes.slot("g", owner)
        saved = saved_name(slot)
        group = at.call("exception_of", at.name(slot))
        before = at.assign(saved, at.call("snapshot", group))
        return [before, *shapes.star_clauses(owner, [at.raises(group)], bodies, saved=saved)]


def saved_name(slot: str) -> str:
    """Where the traceback and context of the exception in `slot` wait while it is raised again."""
    return slot.replace(HIDDEN, f"{HIDDEN}saved_")


def synthesise(
    shapes: Shapes, location: Location, names: Sequence[str], flags: int, barriers: dict[str, object]
) -> CodeType:
    """Compile the unfinished procedure at `location` that receives the variables `names` in a list, by a closure cell.

    Parameters
    ----------
    shapes
        The unit's shapes.
    location
        Where it goes on.
    names
        Plain locals and slots that are bound, in the order in which their values will arrive.
    flags
        Compiler flags of the unit.
    barriers
        The barriers of the unit and of the functions in it, by placeholder.
    """
    unit = shapes.unit
    procedure = Procedure(shapes, location, names)
    body = [*_arrival(shapes, names), *procedure.body()]
    statements = [*_declarations(shapes, names), *shapes.barred(body, resumed=True)]
    return _compile(unit, statements, takes_instance(unit), flags, barriers, patched=shapes.options.patched)


def takes_instance(unit: Unit) -> str | None:
    """The first parameter, where ``super()`` must find it in an unfinished procedure."""
    first = unit.first_argument
    return first if first in unit.plain_locals and "__class__" in unit.plain.co_freevars else None


def _arrival(shapes: Shapes, names: Sequence[str]) -> list[ast.stmt]:
    """Take the variables out of the list, and empty it: nobody else may keep them alive."""
    at = shapes.head(shapes.unit.node.body[0])
    empty = at.expr(at.apply(ast.Attribute(at.name(STATE), "clear", ast.Load(), **at.position)))
    made: list[ast.stmt] = []
    instance = takes_instance(shapes.unit)
    arriving = [at.name(name, STORE) for name in names if name != instance]
    if arriving:
        made.append(at.assign(at.tuple(arriving, STORE), at.name(STATE)))
    if instance is not None and instance not in names:
        made.append(at.delete(instance))
    return [*made, empty]


def _declarations(shapes: Shapes, arriving: Sequence[str]) -> list[ast.stmt]:
    """The scopes of all names, whether or not the rest of the unit mentions them."""
    unit = shapes.unit
    at = shapes.head(unit.node.body[0])
    made: list[ast.stmt] = []
    if unit.declared_globals:
        made.append(ast.Global(list(unit.declared_globals), **at.position))
    if unit.cells:
        made.append(ast.Nonlocal(list(unit.cells), **at.position))
    instance = takes_instance(unit)
    zero = at.constant(0)  # one node serves all: annotations of locals are never evaluated
    made += [
        ast.AnnAssign(at.name(name, STORE), zero, None, 1, **at.position)
        for name in unit.plain_locals
        if name != instance and name not in arriving
    ]
    if unit.is_generator:
        made.append(ast.If(at.constant(0), [at.expr(ast.Yield(None, **at.position))], [], **at.position))
    return made


def _compile(
    unit: Unit,
    statements: list[ast.stmt],
    instance: str | None,
    flags: int,
    barriers: dict[str, object],
    *,
    patched: bool,
) -> CodeType:
    at = At.node("", unit.node.body[0])
    parameters = parameters_named([] if instance is None else [instance], at.position)
    args = ast.arguments([], parameters, None, [], [], None, [])
    node = bare_function(as_function(unit, statements), args, statements)
    code = compile_function(node, [*unit.cells, STATE], unit.class_name, unit.plain.co_filename, flags)
    return finish(code, unit.plain, barriers, patched=patched)


def as_function(unit: Unit, statements: list[ast.stmt]) -> FunctionNode:
    """The function node that holds a unit's code; a notebook cell gets one of its own."""
    if not isinstance(unit.node, ast.Module):
        return unit.node
    kind = ast.AsyncFunctionDef if unit.is_async else ast.FunctionDef
    args = ast.arguments([], [], None, [], [], None, [])
    position = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
    made = kind(
        name="cell",
        args=args,
        body=statements,
        decorator_list=[],
        returns=None,
        type_comment=None,
        **position,
    )
    if sys.version_info >= (3, 12):
        made.type_params = []
    return made


__all__ = ["Procedure", "as_function", "synthesise", "takes_instance"]

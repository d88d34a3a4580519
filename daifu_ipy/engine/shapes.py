"""The fast path: which code each statement of a unit becomes so that it can be recovered in situ.

`Shapes` turns statements of a unit into vaccinated statements. The unit's semantics stay; what Python would hold only
on its value stack (live iterators, entered context managers, pending completions, handled exceptions) goes to slots,
and every place where the interpreter would tear down state on an exception gets a crash barrier in front of it. The
same shapes, with other contents, make the unfinished procedures (`resume`).

Slots, all named ``@daifu_<letter><number of the statement>``:

==  ==================================================================================================
i   the live iterator of a ``for``
u   its item, until unpacked into the target
x   the bound ``__exit__`` of an entered ``with``; set exactly while the block is open
y   the same of an ``async with`` whose ``__aenter__`` is still awaited
v   the entered value, until stored into the target
e   ``sys.exc_info()`` of the exception that an ``__exit__`` is being asked about
k   the pending completion of a ``finally`` or ``with``: 0 falls off, n > 0 the n-th jump, -1 an exception,
    None a takeover or an exception that ``__exit__`` was asked about (their ``finally`` code must not run)
p   ``sys.exc_info()`` of the exception that waits for a ``finally`` body to end
r   the value that a pending ``return`` will return
h   the exception that a handler handles, where the user's own variable can't tell
m   the subject of a ``match`` with guards
g   the group that an ``except*`` statement takes apart; d what one of its clauses raised; s None while they stand back
==  ==================================================================================================
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from daifu_ipy.engine.nodes import DELETE, LOAD, STORE, At
from daifu_ipy.engine.scopes import HIDDEN, mangle, own_nodes
from daifu_ipy.engine.unit import (
    FUNCTIONS,
    ITERATIONS,
    JUMPS,
    TRIES,
    WITHS,
    Block,
    FunctionNode,
    JumpNode,
    TryNode,
    Unit,
    WithNode,
    blocks,
)

ONCE = f"{HIDDEN}once"
"""Target of loops that run once; never read."""

BARE_RAISE = f"{HIDDEN}raise"
"""Number of the bare ``raise`` that ran last."""

BOX = f"{HIDDEN}box"
"""Where an unfinished generator or coroutine leaves its takeover: ``close()`` drops return values."""

STATE = f"{HIDDEN}state"
"""The list in which an unfinished procedure receives its variables."""

VIEWS = frozenset({"locals", "vars", "dir", "exec", "eval"})
"""Builtins that look at, or write to, the namespace of the frame that calls them."""

N = TypeVar("N", bound=ast.AST)


@dataclass(frozen=True)
class Options:
    """How the shapes are written.

    `patched`: the compiled code will be patched (`compiling.patch`), else helpers stand in. `explicit_super`: the code
    runs where ``super()`` can't find its arguments. `displayed`: a notebook cell's expressions that are shown.
    `shadowed`: builtins that the module has names of its own for.
    """

    patched: bool = True
    explicit_super: bool = False
    displayed: frozenset[ast.stmt] = frozenset()
    shadowed: frozenset[str] = frozenset()


class Shapes:
    """Vaccinated code of one unit's statements; see the module's text."""

    def __init__(self, unit: Unit, placeholder: str, children: dict[FunctionNode, Shapes], options: Options) -> None:
        self.unit = unit
        self.placeholder = placeholder
        self.children = children
        self.options = options
        self._fast: dict[ast.stmt, list[ast.stmt]] = {}
        self._slots: dict[Block, list[str]] = {}
        self._barrier: list[ast.stmt] = []

    # positions

    def at(self, node: ast.stmt | ast.expr | ast.excepthandler | ast.pattern) -> At:
        """Nodes at the span of `node`."""
        return At.node(self.placeholder, node)

    def head(self, node: ast.stmt | ast.excepthandler) -> At:
        """Nodes at the first character of `node`."""
        return At.head(self.placeholder, node)

    # statements

    def block(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        """The vaccinated statements of a block."""
        made: list[ast.stmt] = []
        for statement in statements:
            made += self.statement(statement)
        return made

    def body(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The same for a block that must not become empty."""
        return self.block(statements) or ([self.at(statements[0]).nothing()] if statements else [])

    def statement(self, statement: ast.stmt) -> list[ast.stmt]:
        """The vaccinated form of one statement, made once."""
        if statement not in self._fast:
            self._fast[statement] = self._make(statement)
        return self._fast[statement]

    def _make(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Return() | ast.Break() | ast.Continue():
                return self.jump(node)
            case ast.For() | ast.AsyncFor():
                return self.loop(node)
            case ast.While(test=test):
                return [_like(node, test=self.expr(test), body=self.body(node.body), orelse=self.block(node.orelse))]
            case ast.If(test=test):
                return [_like(node, test=self.expr(test), body=self.body(node.body), orelse=self.block(node.orelse))]
            case ast.With() | ast.AsyncWith():
                return [*self.enter(node), *self.inside(node, self.block(node.body))]
            case ast.Try() | ast.TryStar():
                return self.attempt(node)
            case ast.Match():
                return self.match(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return [self._definition(node)]
            case ast.Global() | ast.Nonlocal():
                return []  # declared at the top of the function
            case ast.Raise(exc=None):
                at = self.at(node)  # leaves no trace in the traceback: says itself where it was
                return [at.assign(BARE_RAISE, at.constant(self.unit.number[node])), node]
            case ast.AnnAssign() if self.unit.is_notebook_cell:
                return self._module_annotation(node)
            case ast.ImportFrom(names=[first, *_]) if self.unit.is_notebook_cell and (
                first.name == "*" or node.module == "__future__"
            ):
                at = self.at(node)
                return [at.expr(at.call("import_names", at.constant(ast.unparse(node))))]
            case ast.Expr(value=value) if node in self.options.displayed:
                return [self.at(node).expr(self.at(value).call("display", self.expr(value)))]
            case _:
                return [self._simple(node)]

    def _simple(self, node: N) -> N:
        """A statement or clause without blocks, its expressions rewritten where they must be."""
        changed = {
            name: self.expr(value) if isinstance(value, ast.expr) else [self.expr(item) for item in value]
            for name, value in ast.iter_fields(node)
            if isinstance(value, ast.expr) or (isinstance(value, list) and all(isinstance(i, ast.expr) for i in value))
        }
        return _like(node, **changed) if any(changed[k] is not getattr(node, k) for k in changed) else node

    def _definition(self, node: ast.stmt) -> ast.stmt:
        """A function or class statement, with the functions in it vaccinated."""
        return _rebuild(
            node, lambda function: self.children[function].definition() if function in self.children else None
        )

    def definition(self) -> FunctionNode:
        """The unit's own definition with its vaccinated body."""
        node = self.unit.node
        if isinstance(node, ast.Module):
            raise TypeError("a notebook cell has no definition")
        outer = [self.expr(decorator) for decorator in node.decorator_list]
        return _like(node, body=self.function_body(), decorator_list=outer)

    def _module_annotation(self, node: ast.AnnAssign) -> list[ast.stmt]:
        """``x: T = v`` of a notebook cell, whose names can't be annotated where they are declared global."""
        at = self.at(node)
        made: list[ast.stmt] = []
        if node.value is not None:
            made.append(at.assign(node.target, self.expr(node.value)))
        if node.simple and isinstance(node.target, ast.Name):
            made.append(at.expr(at.call("annotate", at.constant(node.target.id), self._annotation(node.annotation))))
        else:
            if node.value is None:  # what such a target is made of is evaluated all the same
                made += [
                    at.expr(self.expr(part)) for part in ast.iter_child_nodes(node.target) if isinstance(part, ast.expr)
                ]
            made.append(at.expr(self._annotation(node.annotation)))
        return made

    def _annotation(self, annotation: ast.expr) -> ast.expr:
        if self.unit.plain.co_flags & 0x1000000:  # from __future__ import annotations
            return self.at(annotation).constant(ast.unparse(annotation))
        return self.expr(annotation)

    # expressions

    def expr(self, node: ast.expr) -> ast.expr:
        """An expression; copied and rewritten only where it calls something that looks at its frame."""
        if not self._may_look_at_frame or not any(self._looks_at_frame(inner) for inner in own_nodes([node])):
            return node
        return _Views(self).visit(copy.deepcopy(node))  # type: ignore[no-any-return]

    @cached_property
    def _may_look_at_frame(self) -> bool:
        names = {*self.unit.plain.co_names, *self.unit.plain.co_varnames, *self.unit.cells}
        return self.options.explicit_super or not names.isdisjoint(VIEWS)

    def _looks_at_frame(self, node: ast.AST) -> bool:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            return False
        if node.func.id == "super":
            return self.options.explicit_super and not node.args and not node.keywords
        return node.func.id in VIEWS

    # jumps

    def jump(self, node: JumpNode) -> list[ast.stmt]:
        """A jump; where something runs on its way, slots say first what is pending."""
        jump = self.unit.jumps[node]
        if not jump.pending and not jump.overriding:
            return [self._simple(node)]
        made: list[ast.stmt] = []
        if isinstance(node, ast.Return) and node.value is not None and self._keeps_value(node):
            made.append(self.at(node).assign(self.slot("r", node), self.expr(node.value)))
        if jump.left_loops:  # their iterators die before anything else runs
            made += self.at(node).clear(self.slot("i", loop) for loop in jump.left_loops)
        return [*made, *self.finish_jump(node, jump.pending, jump.overriding)]

    def _keeps_value(self, node: ast.Return) -> bool:
        jump = self.unit.jumps[node]
        return bool(jump.pending or jump.overriding) and not isinstance(node.value, ast.Constant | None)

    def finish_jump(
        self, node: JumpNode, pending: Sequence[ast.stmt], overriding: Sequence[ast.stmt]
    ) -> list[ast.stmt]:
        """The rest of a jump once its value is in its slot."""
        at = self.at(node)
        made: list[ast.stmt] = []
        if not pending:  # else the finally goes on meanwhile: its statement clears them when it is entered again
            made = at.clear(self.slot(letter, statement) for statement in overriding for letter in "pk")
        else:
            targets: list[ast.expr] = [at.name(self.slot("k", statement), STORE) for statement in pending]
            made.append(ast.Assign(targets, at.constant(self.unit.jumps[node].number), None, **at.position))
        if isinstance(node, ast.Return) and self._keeps_value(node):
            return [*made, at.returns(at.name(self.slot("r", node)))]
        return [*made, node]

    # loops

    def slot(self, letter: str, statement: ast.stmt, index: int | None = None) -> str:
        """The name of a slot."""
        return self.unit.slot(letter, statement, index)

    def loop(self, node: ast.For | ast.AsyncFor) -> list[ast.stmt]:
        """A ``for`` whose iterator is kept in a slot, bound by the one ``__iter__`` call that Python makes."""
        at, slot = self.at(node.iter), self.slot("i", node)
        iterable = self.expr(node.iter)
        if self.options.patched:
            live: ast.expr = at.walrus(slot, iterable)  # GET_ITER is moved in front of the store
        else:
            live = at.call("once", at.walrus(slot, at.call(_iter_of(node), iterable)))
        return [self._loop_over(node, live), *self.head(node).clear([slot])]

    def live_loop(self, node: ast.For | ast.AsyncFor) -> ast.stmt:
        """The rest of an interrupted loop: its live iterator, asked on."""
        at = self.at(node.iter)
        return self._loop_over(node, at.call("once", at.name(self.slot("i", node))))

    def _loop_over(self, node: ast.For | ast.AsyncFor, iterable: ast.expr) -> ast.stmt:
        orelse = self.block(node.orelse)
        if orelse:
            orelse = [*self.head(node).clear([self.slot("i", node)]), *orelse]
        if isinstance(node.target, ast.Name):
            return _like(node, iter=iterable, body=self.body(node.body), orelse=orelse)
        target = self.at(node.target).name(self.slot("u", node), STORE)
        return _like(node, target=target, iter=iterable, body=self.iteration(node), orelse=orelse)

    def iteration(self, node: ast.For | ast.AsyncFor) -> list[ast.stmt]:
        """One iteration from the unpacking of its item on. The slot is deleted at once: no item lives longer for it."""
        return [*self.store(node.target, self.slot("u", node)), *self.block(node.body)]

    def store(self, target: ast.expr, slot: str) -> list[ast.stmt]:
        """``target = slot; del slot``, located at the target."""
        at = self.at(target)
        return [at.assign(self.expr(target), at.name(slot)), at.delete(slot)]

    def once(self, node: ast.stmt, body: list[ast.stmt], orelse: list[ast.stmt]) -> ast.For:
        """The rest of an interrupted iteration: a loop that runs once, and in its ``else`` the iterations after it."""
        at = self.head(node)
        single = at.tuple([at.constant(None)])
        return ast.For(at.name(ONCE, STORE), single, body or [at.nothing()], orelse, None, **at.position)

    # with

    def enter(self, node: WithNode) -> list[ast.stmt]:
        """Enter the block: value and bound ``__exit__`` go to slots, by the interpreter's own entry instruction."""
        item = node.items[0]
        at = self.at(item.context_expr)
        manager = self.expr(item.context_expr)
        is_async = isinstance(node, ast.AsyncWith)
        if isinstance(manager, ast.Tuple | ast.List):
            manager = at.call("same", manager)  # else the compiler unpacks the display itself
        if not self.options.patched:
            manager = at.call("enter_async" if is_async else "enter", manager)
        value, leave = self.slot("v", node), self.slot("x", node)
        direct = isinstance(item.optional_vars, ast.Name) and not is_async
        first = item.optional_vars if direct and item.optional_vars else at.name(value, STORE)
        if not is_async:
            made: list[ast.stmt] = [at.assign(at.tuple([first, at.name(leave, STORE)], STORE), manager)]
        else:
            waiting = self.slot("y", node)
            made = [
                at.assign(at.tuple([first, at.name(waiting, STORE)], STORE), manager),
                at.assign(value, at.awaited(at.name(value))),
                at.assign(leave, at.name(waiting)),
                *at.clear([waiting]),
            ]
        if item.optional_vars is None:
            made.append(at.delete(value))
        return made

    def inside(
        self, node: WithNode, body: list[ast.stmt], *, stored: bool = False, forced: bool = False
    ) -> list[ast.stmt]:
        """The entered block around `body`, with its exit.

        `stored`: the target has its value already. `forced`: a repair put a jump into `body` that leaves the block.
        """
        item = node.items[0]
        at = self.at(item.context_expr)
        if not stored:
            body = [*self._store_entered(node), *body]
        leave, asked = self.slot("x", node), self.slot("e", node)
        crashed: list[ast.stmt] = [
            at.assign(asked, self.guard(at, node, "with")),
            *at.clear(self.slots_in(blocks(node))),
            *self.ask_exit(node),
        ]
        if not forced and node not in self.unit.crossed:
            leaving = [*self.leave(node)]
            return [at.attempt(body, crashed, orelse=leaving), *at.clear([leave])]
        pending = self.slot("k", node)
        return [
            at.assign(pending, at.constant(0)),
            at.attempt(
                body,
                [*at.clear([pending]), *crashed],
                finalbody=[at.when_set(pending, [*self.leave(node), *at.clear([leave]), *self._completed(node, at)])],
            ),
        ]

    def _completed(self, node: ast.stmt, at: At) -> list[ast.stmt]:
        """Only a statement that jumps leave by itself says at its start that none is pending."""
        return [] if node in self.unit.crossed else at.clear([self.slot("k", node)])

    def _store_entered(self, node: WithNode) -> list[ast.stmt]:
        target = node.items[0].optional_vars
        if target is None or (isinstance(target, ast.Name) and isinstance(node, ast.With)):
            return []
        return self.store(target, self.slot("v", node))

    def leave(self, node: WithNode) -> list[ast.stmt]:
        """The exit of a block without an exception."""
        at = self.at(node.items[0].context_expr)
        nothing: list[ast.expr] = [at.constant(None) for _ in range(3)]
        return [at.expr(self._exit_call(node, nothing))]

    def ask_exit(self, node: WithNode) -> list[ast.stmt]:
        """``if not exit(type, exception, traceback): raise``; the block is left either way."""
        at = self.at(node.items[0].context_expr)
        call = self._exit_call(node, [at.star(at.name(self.slot("e", node)))])
        left = at.clear([self.slot("e", node), self.slot("x", node)])
        return [at.unless(call, [*left, at.reraise()]), *left]

    def _exit_call(self, node: WithNode, args: list[ast.expr]) -> ast.expr:
        at = self.at(node.items[0].context_expr)
        call = at.apply(at.name(self.slot("x", node)), *args)
        return at.awaited(call) if isinstance(node, ast.AsyncWith) else call

    # try

    def attempt(self, node: TryNode) -> list[ast.stmt]:
        """A whole ``try`` statement."""
        made = self.guarded(node, self.clauses(node, self.block(node.body)))
        stale = [self.slot(letter, node) for letter in "pk"] if node in self.unit.overridden else []
        return [*self.head(node).clear(stale), *made]

    def clauses(self, node: TryNode, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statement without its ``finally``, around `body`."""
        if not node.handlers:
            return body
        if isinstance(node, ast.TryStar):
            return self.star_clauses(node, body)
        handlers = [self.handler(node, index) for index in range(len(node.handlers))]
        spared = all(self._spares_takeover(handler.type) for handler in node.handlers)
        if any(_raises_takeover(s) for s in node.body) and not spared:
            at = self.head(node)
            handlers.insert(0, at.handler(at.barrier("takeover_type"), [at.reraise()]))
        made = _like(node, body=body or [self.head(node).nothing()], handlers=handlers, finalbody=[])
        made.orelse = self.block(node.orelse)
        return [made]

    def _spares_takeover(self, kind: ast.expr | None) -> bool:
        """A handler of this type can't catch a takeover: builtin subclasses of Exception, by their own names."""
        if isinstance(kind, ast.Tuple):
            return all(map(self._spares_takeover, kind.elts))
        if not isinstance(kind, ast.Name) or kind.id in self.options.shadowed:
            return False
        builtin = getattr(builtins, kind.id, None)
        bound = self.unit.scope.bound | self.unit.scope.globals | set(self.unit.cells)
        return kind.id not in bound and isinstance(builtin, type) and issubclass(builtin, Exception)

    def handler(self, node: TryNode, index: int) -> ast.ExceptHandler:
        """One clause: what its exception left behind is let go, and its body gets a barrier of its own."""
        clause = node.handlers[index]
        at = self.head(clause)
        cleared = at.clear(self.slots_in([next(blocks(node))]))
        kind = None if clause.type is None else self.expr(clause.type)
        body = self.block(clause.body)
        if all(_is_trivial(statement) for statement in clause.body):
            return _like(clause, type=kind, body=[*cleared, *body] or clause.body)
        if self.names_handled(clause):
            return _like(clause, type=kind, body=[*cleared, *self.in_handler(node, index, body)])
        handled = self.slot("h", node, index)
        kind = kind or at.barrier("any_exception")
        if clause.name is None:
            return at.handler(kind, [*cleared, *self.in_handler(node, index, body)], handled)
        unbound = at.attempt(self.in_handler(node, index, body), finalbody=self.unbind(clause))
        return at.handler(kind, [at.assign(clause.name, at.name(handled)), *cleared, unbound], handled)

    def names_handled(self, clause: ast.ExceptHandler) -> bool:
        """Whether the user's own ``as`` variable tells the handled exception throughout the clause."""
        if clause.name is None:
            return False
        name = mangle(clause.name, self.unit.class_name)
        rebound = any(
            (isinstance(node, ast.Name) and node.id == clause.name and not isinstance(node.ctx, ast.Load))
            or (isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name == clause.name)
            for node in own_nodes(clause.body)
        )
        return name in self.unit.plain_locals and not rebound and not _imports(clause.body, clause.name)

    def in_handler(self, node: TryNode, index: int, body: list[ast.stmt]) -> list[ast.stmt]:
        """A handler's body behind its barrier."""
        at = self.head(node.handlers[index])
        return [at.attempt(body, [at.expr(self.guard(at, node, "handler", index)), at.reraise()])]

    def unbind(self, clause: ast.ExceptHandler) -> list[ast.stmt]:
        """What Python does with the ``as`` variable when a handler ends."""
        at = self.head(clause)
        name = clause.name or ""
        return [*at.clear([name]), at.delete(name)] if name else []

    def guarded(self, node: TryNode, inner: list[ast.stmt], *, forced: bool = False) -> list[ast.stmt]:
        """`inner` with the statement's ``finally``.

        Where no jump leaves it, the body is written twice and needs no guard. `forced`: a repair put a jump into
        `inner`.
        """
        if not node.finalbody:
            return inner
        at = self.head(node)
        inside = [block for block in blocks(node) if block.field != "finalbody"]
        caught = at.assign(self.slot("p", node), self.guard(at, node, "try"))
        cleared = at.clear(self.slots_in(inside))
        final = self.body(node.finalbody)
        if not forced and node not in self.unit.crossed:
            crashed = [caught, *cleared, *final, *at.clear([self.slot("p", node)]), at.reraise()]
            return [_like(at.attempt(inner, crashed), **at.position), *final]
        pending = self.slot("k", node)
        crashed = [*at.clear([pending]), caught, at.assign(pending, at.constant(-1)), *cleared, at.reraise()]
        finalbody: list[ast.stmt] = [at.when_set(pending, [*final, *self._completed(node, at)])]
        made = _like(at.attempt(inner, crashed, finalbody=finalbody), **at.position)
        return [at.assign(pending, at.constant(0)), made]

    # except*

    def star_clauses(
        self,
        node: ast.TryStar,
        body: list[ast.stmt],
        clause_bodies: dict[int, list[ast.stmt]] | None = None,
        *,
        saved: str | None = None,
    ) -> list[ast.stmt]:
        """``try``/``except*``. Clauses collect what is raised in them, a takeover too: later ones stand back then.

        `saved`: the group is being raised again; what that changes of it is undone, and there is no ``else``.
        """
        at = self.head(node)
        stand_back, group = self.slot("s", node), self.slot("g", node)
        keep = [
            *at.clear([stand_back]),
            at.assign(group, self.guard(at, node, "star")),
            at.assign(stand_back, at.constant(0)),
            *at.clear(self.slots_in([next(blocks(node))])),
            at.reraise(),
        ]
        if saved is not None:
            keep = [at.expr(at.call("restore", at.name(saved))), *at.clear([saved]), at.reraise()]
        handlers = []
        for index, clause in enumerate(node.handlers):
            inside = (clause_bodies or {}).get(index)
            if inside is None:
                inside = self.star_clause(node, index, self.block(clause.body))
            kind = self.expr(clause.type) if clause.type is not None else None
            told = at.when_unset(stand_back, [at.reraise()])
            handlers.append(_like(clause, type=kind, body=[told, *inside]))
        made = _like(node, body=[at.attempt(body, keep)], handlers=handlers, finalbody=[])
        made.orelse = self.block(node.orelse) if saved is None else []
        return [
            at.assign(stand_back, at.constant(0)),
            at.attempt([made], [at.expr(at.call("pass_takeover")), at.reraise()]),
            *at.clear([group, *(self.slot("d", node, index) for index in range(len(node.handlers)))]),
        ]

    def star_clause(self, node: ast.TryStar, index: int, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body of one ``except*`` clause; it remembers what it raised, for a resumption in a later clause."""
        at = self.head(node.handlers[index])
        stand_back, raised = self.slot("s", node), self.slot("d", node, index)
        crashed = [
            *at.clear([stand_back]),
            at.assign(raised, self.guard(at, node, "handler", index)),
            at.assign(stand_back, at.constant(0)),
            at.reraise(),
        ]
        return [at.attempt(body, crashed)]

    # match

    def match(self, node: ast.Match) -> list[ast.stmt]:
        """A ``match``; with guards its subject is kept until a case is chosen."""
        if not any(case.guard for case in node.cases):
            cases = [_like(case, body=self.body(case.body)) for case in node.cases]
            return [_like(node, subject=self.expr(node.subject), cases=cases)]
        at = self.at(node.subject)
        return self.cases_of(node, at.walrus(self.slot("m", node), self.expr(node.subject)), 0)

    def cases_of(self, node: ast.Match, subject: ast.expr, first: int) -> list[ast.stmt]:
        """The cases from `first` on, of a subject in its slot."""
        at, slot = self.head(node), self.slot("m", node)
        cases = []
        for case in node.cases[first:]:
            guard = None if case.guard is None else self.expr(case.guard)
            cases.append(_like(case, guard=guard, body=[*at.clear([slot]), *self.block(case.body)]))
        return [_like(node, subject=subject, cases=cases), *at.clear([slot])]

    # the unit

    def guard(self, at: At, owner: ast.stmt, part: str, index: int = 0) -> ast.Call:
        """The crash barrier inside a unit: raises a takeover, or returns ``sys.exc_info()`` of what is to go on."""
        return at.call("guard", at.constant(self.unit.barrier_key(owner, part, index)), *self._cells(at))

    def _cells(self, at: At) -> list[ast.expr]:
        return [at.thunk(self.unit.cells)] if self.unit.cells else []

    def function_body(self) -> list[ast.stmt]:
        """The whole unit as the body of a function."""
        statements = self.unit.node.body
        first: list[ast.stmt] = []
        if not self.unit.is_notebook_cell and ast.get_docstring(self.unit.node, clean=False) is not None:
            first, statements = statements[:1], statements[1:]
        body = [*self._module_start(), *self.block(statements)]
        return [*first, *self.declarations(), *self.barred(body, resumed=False)]

    def _module_start(self) -> list[ast.stmt]:
        """What module code does first: ``__doc__`` is its first text, ``__annotations__`` exists if it annotates."""
        if not self.unit.is_notebook_cell:
            return []
        first, at = self.unit.node.body[0], self.head(self.unit.node.body[0])
        made: list[ast.stmt] = []
        if any(isinstance(statement, ast.AnnAssign) for statement in self.unit.number):
            made.append(at.expr(at.call("annotations")))
        if self.unit.has_module_docstring and first not in self.options.displayed:
            made.append(at.assign("__doc__", at.constant(ast.get_docstring(self.unit.node, clean=False))))
        return made

    def barred(self, body: list[ast.stmt], *, resumed: bool) -> list[ast.stmt]:
        """`body` inside the unit's barrier.

        The handler decides and is left before anything resumes; the crashed frame lets go of its variables; then the
        unfinished procedure runs, called by this frame or, if this is one itself, by the trampoline that it returns to.
        """
        at = self.head(self.unit.node.body[0])
        last = self.head(self.unit.node.body[-1])
        slots = self.hidden_slots()
        if not self._barrier:
            leave: list[ast.stmt] = [*at.clear(slots), at.reraise()]
            if self.options.patched:  # becomes RERAISE 1, which puts the frame back to the line that crashed
                leave[-1] = ast.Raise(at.call("place"), at.call("leaving"), **at.position)
            self._barrier = [at.unless(at.call("takeover", *self._cells(at)), leave)]
        made = at.attempt([*body, last.returns(None)], self._barrier)
        # also in an unfinished procedure, which ends at once: a handled exception may keep its frame
        return [made, *at.clear([*self.unit.plain_locals, *slots]), *self._go_on(at, resumed=resumed)]

    def _go_on(self, at: At, *, resumed: bool) -> list[ast.stmt]:
        unit = self.unit
        if resumed:
            box = [at.name(BOX)] if unit.is_generator or unit.is_async else []
            handed_over = at.call("handed_over", *box)
            if unit.is_generator and unit.is_async:  # can't return a value
                return [at.expr(handed_over), at.returns(None)]
            return [at.returns(handed_over)]
        strip: list[ast.stmt] = [at.expr(at.call("strip")), at.reraise()]
        if unit.is_async and unit.is_generator:
            return [at.attempt(_delegation(at), strip)]
        result: ast.expr = at.call("resume")
        if unit.is_generator:
            result = ast.YieldFrom(at.call("resume_generator"), **at.position)
        elif unit.is_async:
            result = at.awaited(at.call("resume_coroutine"))
        return [at.attempt([at.returns(result)], strip)]

    def declarations(self) -> list[ast.stmt]:
        """``global`` and ``nonlocal`` of the whole unit, in front."""
        at = self.head(self.unit.node.body[0])
        made: list[ast.stmt] = []
        if self.unit.declared_globals:
            made.append(ast.Global(list(self.unit.declared_globals), **at.position))
        if self.unit.scope.nonlocals:
            made.append(ast.Nonlocal(sorted(self.unit.scope.nonlocals), **at.position))
        return made

    def hidden_slots(self) -> list[str]:
        """Every slot of the unit that can hold an object."""
        return self.slots_in([self.unit.body])

    def slots_in(self, inside: Iterable[Block]) -> list[str]:
        """The slots of the statements in some blocks that can hold an object there."""
        names: list[str] = []
        for block in inside:
            if block not in self._slots:
                own = [name for statement in block.statements for name in self.own_slots(statement)]
                self._slots[block] = own
            names += self._slots[block]
        return names

    def own_slots(self, statement: ast.stmt) -> list[str]:
        """The slots of a statement and of all statements in it."""
        return self.direct_slots(statement) + self.slots_in(blocks(statement))

    def direct_slots(self, statement: ast.stmt) -> list[str]:
        """The slots of a statement itself."""
        letters = ""
        if isinstance(statement, ITERATIONS):
            letters = "i" if isinstance(statement.target, ast.Name) else "iu"
        elif isinstance(statement, WITHS):
            letters = "xev" if isinstance(statement, ast.With) else "xevy"
            letters += "" if statement in self.unit.crossed else "k"
        elif isinstance(statement, TRIES) and statement.finalbody:
            letters = "p" if statement in self.unit.crossed else "pk"
        elif isinstance(statement, ast.Match) and any(case.guard for case in statement.cases):
            letters = "m"
        elif isinstance(statement, ast.Return) and self._keeps_value(statement):
            letters = "r"
        names = [self.slot(letter, statement) for letter in letters]
        if isinstance(statement, ast.TryStar):
            names += [self.slot("g", statement)]
            names += [self.slot("d", statement, index) for index in range(len(statement.handlers))]
        return names


def _iter_of(node: ast.For | ast.AsyncFor) -> str:
    return "aiter" if isinstance(node, ast.AsyncFor) else "iter"


def _delegation(at: At) -> list[ast.stmt]:
    """Go on in another async generator: what ``yield from`` would do, written out.

    The unfinished procedure may hand over to the next one, in its box; `next_async` then gives that one's generator.
    """
    source = """
b = []
g = B.resume_async(b)
s = g.__anext__()
while True:
    try:
        v = await s
    except B.stop_async_iteration:
        s = None
        g = B.next_async(b)
        if g is None:
            return
        s = g.__anext__()
        continue
    s = None
    try:
        y = yield v
    except B.generator_exit:
        v = None
        await B.close_async(g, b)
        raise
    except B.any_exception as e:
        s = g.athrow(B.thrown(e))
    else:
        s = g.asend(y)
        v = y = None
"""
    names = {short: f"{HIDDEN}delegated_{short}" for short in "bgsvye"}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.excepthandler):
            node.lineno, node.col_offset = at.position["lineno"], at.position["col_offset"]
            node.end_lineno, node.end_col_offset = at.position["end_lineno"], at.position["end_col_offset"]
        if isinstance(node, ast.Name | ast.ExceptHandler):
            attribute = "id" if isinstance(node, ast.Name) else "name"
            setattr(node, attribute, names.get(getattr(node, attribute), getattr(node, attribute)))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "B":
            node.value = at.constant(at.placeholder)
    return tree.body


def _like(node: N, **changes: object) -> N:
    """A shallow copy of `node` with other fields."""
    made = copy.copy(node)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _rebuild(node: ast.stmt, replaced: Callable[[FunctionNode], FunctionNode | None]) -> ast.stmt:
    """`node` with the functions in it (and in class bodies) replaced; what has none is shared."""
    if isinstance(node, FUNCTIONS):
        return replaced(node) or node
    changes: dict[str, object] = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, list) and any(
            isinstance(item, ast.stmt | ast.excepthandler | ast.match_case) for item in value
        ):
            changes[name] = [_rebuild(item, replaced) for item in value]
    return _like(node, **changes) if changes else node


def _is_trivial(statement: ast.stmt) -> bool:
    """Nothing in it can raise."""
    match statement:
        case ast.Pass() | ast.Break() | ast.Continue() | ast.Global() | ast.Nonlocal():
            return True
        case ast.Return(value=None | ast.Constant()) | ast.Expr(value=ast.Constant()):
            return True
        case _:
            return False


def _imports(statements: list[ast.stmt], name: str) -> bool:
    return any(
        isinstance(node, ast.alias) and name in {node.asname or node.name.partition(".")[0]}
        for node in own_nodes(statements)
    ) or any(isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == name for node in own_nodes(statements))


def _raises_takeover(statement: ast.stmt) -> bool:
    """A barrier inside the statement may raise a takeover through it."""
    if isinstance(statement, (*WITHS, ast.TryStar)):
        return True
    if isinstance(statement, ast.Try) and (
        statement.finalbody or any(not all(map(_is_trivial, handler.body)) for handler in statement.handlers)
    ):
        return True
    return any(_raises_takeover(inner) for block in blocks(statement) for inner in block.statements)


class _Views(ast.NodeTransformer):
    """Rewrites calls that look at their frame: hidden names are left out, a notebook cell's namespace is the user's."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not self.shapes._looks_at_frame(node) or not isinstance(node.func, ast.Name):
            return node
        at = self.shapes.at(node)
        name = node.func.id
        if name == "super":
            instance = self.shapes.unit.first_argument
            if instance is None or "__class__" not in self.shapes.unit.cells:
                return node
            return at.call("super", node.func, at.name("__class__"), at.name(instance))
        if name in ("exec", "eval"):
            starred = any(isinstance(arg, ast.Starred) for arg in node.args)
            if self.shapes.unit.is_notebook_cell and node.args and not starred and not node.keywords:
                source, *given = node.args
                node.args = [source, at.star(at.call("namespaces", at.name(name), *given))]
            return node
        return node if node.args or node.keywords else at.call("view", node.func, node)

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _leave


__all__ = ["DELETE", "JUMPS", "LOAD", "ONCE", "STATE", "Options", "Shapes", "replace"]

"""Small factories of AST nodes, so that the shapes read like the code they make.

Every made node lies at the header of the statement it belongs to, never inside another user statement, so that a
position found at run time names the right statement.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

LOAD, STORE, DELETE = ast.Load(), ast.Store(), ast.Del()

_numbers = itertools.count()


def new_placeholder() -> str:
    """A constant that stands for a unit's barrier until its code is compiled (`compiling.finish`)."""
    return f"\0daifu barrier {next(_numbers)}\0"


@dataclass
class At:
    """Makes nodes at one position, in code whose barrier is called `placeholder`."""

    placeholder: str
    position: dict[str, int] = field(default_factory=dict)

    @classmethod
    def node(cls, placeholder: str, node: ast.stmt | ast.expr | ast.excepthandler | ast.pattern) -> At:
        """At the whole span of `node`."""
        return cls(
            placeholder,
            {
                "lineno": node.lineno,
                "col_offset": node.col_offset,
                "end_lineno": node.end_lineno or node.lineno,
                "end_col_offset": node.end_col_offset or node.col_offset,
            },
        )

    @classmethod
    def head(cls, placeholder: str, node: ast.stmt | ast.excepthandler) -> At:
        """At the start of `node`, with no width: inside no statement of its body, and no span that user code has."""
        at = cls.node(placeholder, node)
        at.position |= {"end_lineno": node.lineno, "end_col_offset": node.col_offset}
        return at

    def name(self, name: str, context: ast.expr_context = LOAD) -> ast.Name:
        """A variable."""
        return ast.Name(name, context, **self.position)

    def constant(self, value: str | int | None) -> ast.Constant:
        """A constant."""
        return ast.Constant(value, None, **self.position)

    def barrier(self, attribute: str) -> ast.Attribute:
        """An attribute of the unit's barrier."""
        return ast.Attribute(self.constant(self.placeholder), attribute, LOAD, **self.position)

    def call(self, attribute: str, *args: ast.expr) -> ast.Call:
        """A call of a method of the unit's barrier."""
        return ast.Call(self.barrier(attribute), list(args), [], **self.position)

    def apply(self, function: ast.expr, *args: ast.expr) -> ast.Call:
        """A call of `function`."""
        return ast.Call(function, list(args), [], **self.position)

    def star(self, value: ast.expr) -> ast.Starred:
        """``*value`` among arguments."""
        return ast.Starred(value, LOAD, **self.position)

    def tuple(self, elements: Sequence[ast.expr], context: ast.expr_context = LOAD) -> ast.Tuple:
        """A tuple, or the targets of an unpacking."""
        return ast.Tuple(list(elements), context, **self.position)

    def thunk(self, names: Iterable[str]) -> ast.Lambda:
        """``lambda: (names)``: its closure hands over the variables' cells, and it costs nothing until it is made."""
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.Lambda(nothing, self.tuple([self.name(name) for name in names]), **self.position)

    def walrus(self, name: str, value: ast.expr) -> ast.NamedExpr:
        """``(name := value)``."""
        return ast.NamedExpr(self.name(name, STORE), value, **self.position)

    def awaited(self, value: ast.expr) -> ast.Await:
        """``await value``."""
        return ast.Await(value, **self.position)

    def expr(self, value: ast.expr) -> ast.Expr:
        """An expression as a statement."""
        return ast.Expr(value, **self.position)

    def assign(self, target: str | ast.expr, value: ast.expr) -> ast.Assign:
        """``target = value``."""
        where = self.name(target, STORE) if isinstance(target, str) else target
        return ast.Assign([where], value, None, **self.position)

    def clear(self, names: Iterable[str]) -> list[ast.stmt]:
        """``a = b = None``; nothing for no names."""
        targets: list[ast.expr] = [self.name(name, STORE) for name in names]
        return [ast.Assign(targets, self.constant(None), None, **self.position)] if targets else []

    def delete(self, name: str) -> ast.Delete:
        """``del name``."""
        return ast.Delete([self.name(name, DELETE)], **self.position)

    def reraise(self) -> ast.Raise:
        """A bare ``raise``."""
        return ast.Raise(None, None, **self.position)

    def raises(self, exception: ast.expr) -> ast.Raise:
        """``raise exception``."""
        return ast.Raise(exception, None, **self.position)

    def returns(self, value: ast.expr | None) -> ast.Return:
        """``return value``."""
        return ast.Return(value, **self.position)

    def when_set(self, name: str, body: list[ast.stmt]) -> ast.If:
        """``if name is not None: body``."""
        test = ast.Compare(self.name(name), [ast.IsNot()], [self.constant(None)], **self.position)
        return ast.If(test, body, [], **self.position)

    def when_unset(self, name: str, body: list[ast.stmt]) -> ast.If:
        """``if name is None: body``."""
        test = ast.Compare(self.name(name), [ast.Is()], [self.constant(None)], **self.position)
        return ast.If(test, body, [], **self.position)

    def unless(self, test: ast.expr, body: list[ast.stmt]) -> ast.If:
        """``if not test: body``."""
        return ast.If(ast.UnaryOp(ast.Not(), test, **self.position), body, [], **self.position)

    def attempt(
        self,
        body: list[ast.stmt],
        handler: list[ast.stmt] | None = None,
        *,
        orelse: list[ast.stmt] | None = None,
        finalbody: list[ast.stmt] | None = None,
    ) -> ast.Try:
        """``try: body`` with one bare ``except:``; it lies at its body's first statement (else a NOP remains)."""
        handlers = [] if handler is None else [self.handler(None, handler)]
        made = ast.Try(body or [self.nothing()], handlers, orelse or [], finalbody or [], **self.position)
        return ast.copy_location(made, made.body[0])

    def handler(self, kind: ast.expr | None, body: list[ast.stmt], name: str | None = None) -> ast.ExceptHandler:
        """One ``except`` clause."""
        return ast.ExceptHandler(kind, name, body or [self.nothing()], **self.position)

    def nothing(self) -> ast.Pass:
        """``pass``."""
        return ast.Pass(**self.position)

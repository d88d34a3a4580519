"""Names of one function scope, read off its AST: what it binds, declares and hides."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

HIDDEN = "@daifu_"
"""Prefix of every name that vaccination adds: no user can type it."""

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def mangle(name: str, class_name: str | None) -> str:
    """The name that the compiler really uses for `name` inside ``class class_name`` (private names)."""
    if class_name is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    stripped = class_name.lstrip("_")
    return f"_{stripped}{name}" if stripped else name


def own_nodes(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes that run in the scope of `statements` itself.

    Of a nested function or class only what is evaluated outside it (decorators, defaults, bases) is walked; of a
    comprehension nothing but its first iterable, and the targets of assignment expressions, which bind outside it.
    """
    stack = list(reversed(list(statements)))
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(_children(node))))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from node.decorator_list
        yield from node.args.defaults
        yield from (default for default in node.args.kw_defaults if default is not None)
        args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        yield from (arg.annotation for arg in args if arg is not None and arg.annotation is not None)
        if node.returns is not None:
            yield node.returns
    elif isinstance(node, ast.Lambda):
        yield from node.args.defaults
        yield from (default for default in node.args.kw_defaults if default is not None)
    elif isinstance(node, ast.ClassDef):
        yield from node.decorator_list
        yield from node.bases
        yield from node.keywords
    elif isinstance(node, COMPREHENSIONS):
        yield node.generators[0].iter
        yield from _walrus_targets(node)
    else:
        yield from ast.iter_child_nodes(node)


def _walrus_targets(comprehension: ast.AST) -> Iterator[ast.Name]:
    for child in ast.iter_child_nodes(comprehension):
        if isinstance(child, ast.NamedExpr):
            yield child.target
        if not isinstance(child, (ast.Lambda, ast.FunctionDef)):
            yield from _walrus_targets(child)


@dataclass(frozen=True)
class Scope:
    """The names of one function: `bound` here, declared `globals` and `nonlocals` (all as the compiler spells them)."""

    bound: frozenset[str]
    globals: frozenset[str]
    nonlocals: frozenset[str]


@dataclass
class _Collector:
    class_name: str | None
    bound: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)

    def bind(self, name: str | None) -> None:
        if name is not None:
            self.bound.add(mangle(name, self.class_name))

    def visit(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                self.bind(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self.bind(name)
            case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
                self.bind(name)
            case ast.MatchMapping(rest=name):
                self.bind(name)
            case ast.alias(name=name, asname=asname):
                if name != "*":
                    self.bind(asname or name.partition(".")[0])
            case ast.Global(names=names):
                self.globals.update(mangle(name, self.class_name) for name in names)
            case ast.Nonlocal(names=names):
                self.nonlocals.update(mangle(name, self.class_name) for name in names)


def bound_names(nodes: Iterable[ast.AST], class_name: str | None) -> list[str]:
    """The names that some nodes of one scope bind, in their order."""
    found: dict[str, None] = {}
    for node in nodes:
        names = _Collector(class_name)
        names.visit(node)
        found |= dict.fromkeys(sorted(names.bound))
    return list(found)


def arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The parameter names of a function, in the order of its local variables."""
    args = node.args
    ordered = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return [arg.arg for arg in [*ordered, args.vararg, args.kwarg] if arg is not None]


def scope_of(statements: list[ast.stmt], parameters: Iterable[str] = (), class_name: str | None = None) -> Scope:
    """Collect the names that a function with these `parameters` and this body binds or declares."""
    names = _Collector(class_name)
    for parameter in parameters:
        names.bind(parameter)
    for node in own_nodes(statements):
        names.visit(node)
    declared = names.globals | names.nonlocals
    return Scope(frozenset(names.bound - declared), frozenset(names.globals), frozenset(names.nonlocals))

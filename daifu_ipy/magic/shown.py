"""Which expressions of a cell IPython would show, and what else comes of its running a cell statement by statement."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from daifu_ipy.engine.unit import FUNCTIONS, blocks

ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)


@dataclass(frozen=True)
class Shown:
    """The expressions of a cell whose values are shown: `at_once` when they are evaluated, `kept` for IPython."""

    at_once: tuple[ast.stmt, ...] = ()
    kept: tuple[ast.stmt, ...] = ()
    name: str | None = None

    @classmethod
    def of(cls, tree: ast.Module, interactivity: str) -> Shown:
        """As ``shell.ast_node_interactivity`` says."""
        last = tree.body[-1]
        if interactivity == "all":
            return cls(at_once=tuple(s for statement in tree.body for s in _expressions(statement)))
        if interactivity == "last" and not isinstance(last, ast.Expr):
            return cls(at_once=tuple(_expressions(last)))
        if interactivity == "none":
            return cls()
        if interactivity == "last_expr_or_assign" and isinstance(last, ASSIGNMENTS):
            return cls(name=_target(last))
        return cls(kept=(last,) if isinstance(last, ast.Expr) else ())

    def pieces(self, tree: ast.Module) -> list[tuple[ast.AST, str]]:
        """The cell's statements, each as what `compile` takes, and its mode."""
        made: list[tuple[ast.AST, str]] = []
        for statement in tree.body:
            if isinstance(statement, ast.Expr) and statement in self.kept:
                made.append((ast.Expression(statement.value), "eval"))
            elif any(inner in self.at_once for inner in _expressions(statement)):
                made.append((ast.Interactive([statement]), "single"))
            else:
                made.append((ast.Module([statement], []), "exec"))
        return made


def _target(statement: ast.Assign | ast.AnnAssign | ast.AugAssign) -> str | None:
    """The variable that an assignment binds, if it is one."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    only = targets[0] if len(targets) == 1 else None
    return only.id if isinstance(only, ast.Name) else None


def _expressions(statement: ast.stmt) -> list[ast.stmt]:
    """The expression statements in a statement that interactive code would show."""
    if isinstance(statement, ast.Expr):
        return [statement]
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return []
    return [found for block in blocks(statement) for inner in block.statements for found in _expressions(inner)]


def store_texts(tree: ast.Module, shown: Shown) -> None:
    """A text that is a statement becomes ``__doc__``: IPython runs each statement as a module of its own."""
    for index, statement in enumerate(tree.body[1:], 1):
        match statement:
            case ast.Expr(value=ast.Constant(value=str())) if statement not in (*shown.at_once, *shown.kept):
                target = ast.copy_location(ast.Name("__doc__", ast.Store()), statement)
                stored = ast.Assign([target], statement.value, type_comment=None)
                tree.body[index] = ast.copy_location(stored, statement)

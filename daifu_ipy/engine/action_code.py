"""From an action's text to code that reads and writes a crashed frame's variables as if it stood in the unit.

The text becomes a function nested in a factory whose parameters are all names that it can see, and declares
them ``nonlocal``: so its own statements, and every comprehension, lambda, function and class in it, share
one closure cell per variable. The factory (in a class, where private names are mangled) is compiled and never
run: the function's code is taken out of it, to be run over the crashed frame's own cells.
"""

from __future__ import annotations
import __future__

import ast
import keyword
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from daifu_ipy.engine.scopes import HIDDEN, SCOPES, mangle, own_nodes, scope_of

_FACTORY = f"{HIDDEN}factory"
_FUNCTION = f"{HIDDEN}action"
_AROUND = f"{_FACTORY}.<locals>.{_FUNCTION}.<locals>."

_FUTURES = 0
for _feature in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _feature).compiler_flag

_NO_RETURN = "an action can't use 'return': the ending Return(expression) leaves the unit"
_NO_YIELD = "an action can't use 'yield': it isn't part of the unit's generator"
_NO_AWAIT = "an action can't await: it runs outside the event loop; change variables and let the unit await"


@dataclass(frozen=True)
class ActionScope:
    """What surrounds an action's text: the names it can see, and how the unit spells private ones.

    `names` are all variables in reach (bound or not), `global_names` those that the unit declares global;
    `first_parameter` is the one that ``super()`` without arguments would use; `flags` are the unit's futures.
    """

    names: frozenset[str]
    global_names: frozenset[str]
    class_name: str | None = None
    first_parameter: str | None = None
    flags: int = 0


def only_looks(text: str) -> bool:
    """Whether an action shows a variable, or a part of one, and does nothing else."""
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return False
    effects = (ast.Call, ast.NamedExpr, ast.Await)
    return all(isinstance(s, ast.Expr) and not any(isinstance(n, effects) for n in ast.walk(s)) for s in body)


def parse_action(text: str, filename: str) -> ast.Module:
    """Parse an action's text; a text that is indented as a whole is taken as pasted.

    Raises
    ------
    SyntaxError
        If the text is no Python, or uses ``return``, ``yield`` or ``await`` outside a function of its own.
    """
    tree = ast.parse(textwrap.dedent(text) if text[:1] in (" ", "\t") else text, filename)
    for node in own_nodes(tree.body):
        complaint = _complaint(node)
        if complaint is not None:
            position = (filename, getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1, None)
            raise SyntaxError(complaint, position)
    return tree


def bound_names(tree: ast.Module, scope: ActionScope) -> frozenset[str]:
    """Names that the action's own statements bind, as the compiler spells them."""
    return scope_of(tree.body, class_name=scope.class_name).bound


def compile_action(tree: ast.Module, scope: ActionScope, filename: str) -> CodeType:
    """Compile a parsed action as a function over closure cells; it returns its last expression's value.

    The free variables of the code are to be given a cell each: `scope.names`, and what the action binds.
    """
    declared = scope_of(tree.body, class_name=scope.class_name)
    names = visible(scope.names | declared.bound, scope.class_name)
    if "__class__" in names and scope.first_parameter is not None:
        _fill_super(tree.body, scope.first_parameter)
    body = [_Unannotated().visit(statement) for statement in tree.body]
    global_names = visible(scope.global_names, scope.class_name)
    nonlocal_names = names - global_names - declared.globals
    module = _skeleton(names, global_names, nonlocal_names, scope.class_name)
    function = _find_function(module)
    function.body[-1:] = _returning(body) or [ast.copy_location(ast.Pass(), function)]
    code = _inner_code(compile(module, filename, "exec", flags=scope.flags & _FUTURES, dont_inherit=True))
    return _named_plainly(code.replace(co_name="<action>", co_qualname="<action>"))


def split_last(tree: ast.Module, filename: str, flags: int = 0) -> tuple[CodeType, CodeType | None]:
    """Compile an action for a module's namespace: its statements, and its last expression if there is one."""
    last: CodeType | None = None
    if tree.body and isinstance(expression := tree.body[-1], ast.Expr):
        last = compile(ast.Expression(expression.value), filename, "eval", flags=flags & _FUTURES, dont_inherit=True)
        del tree.body[-1]
    return compile(tree, filename, "exec", flags=flags & _FUTURES, dont_inherit=True), last


def visible(names: Iterable[str], class_name: str | None = None) -> frozenset[str]:
    """Keep the names that a user can type, as the compiler spells them: no hidden one, no ``.0``."""
    typeable = (name for name in names if name.isidentifier() and not keyword.iskeyword(name))
    return frozenset(mangle(name, class_name) for name in typeable)


def _complaint(node: ast.AST) -> str | None:
    if isinstance(node, ast.Return):
        return _NO_RETURN
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
        return _NO_YIELD
    if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
        return _NO_AWAIT
    return None


def _returning(body: list[ast.stmt]) -> list[ast.stmt]:
    if body and isinstance(last := body[-1], ast.Expr):
        return [*body[:-1], ast.copy_location(ast.Return(last.value), last)]
    return body


def _fill_super(body: list[ast.stmt], first_parameter: str) -> None:
    """Give ``super()`` its arguments: the function it would look at is not the method."""
    for node in own_nodes(body):
        match node:
            case ast.Call(func=ast.Name(id="super"), args=[], keywords=[]):
                names = ("__class__", first_parameter)
                node.args = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in names]


def _skeleton(
    names: frozenset[str],
    global_names: frozenset[str],
    nonlocal_names: frozenset[str],
    class_name: str | None,
) -> ast.Module:
    """Make the factory around an empty action, all on line 1: it must leave no trace in positions."""
    lines = [f"def factory({', '.join(sorted(names))}):", " def action():"]
    lines += [f"  global {', '.join(sorted(global_names))}"] * bool(global_names)
    lines += [f"  nonlocal {', '.join(sorted(nonlocal_names))}"] * bool(nonlocal_names)
    lines += ["  pass"]
    if class_name is not None:
        lines = [f"class {class_name}:", *(f" {line}" for line in lines)]
    module = ast.parse("\n".join(lines))
    for node in ast.walk(module):
        if isinstance(node, (ast.stmt, ast.arg)):
            node.lineno = node.end_lineno = 1
            node.col_offset = node.end_col_offset = 0
        if isinstance(node, ast.FunctionDef):
            node.name = _FACTORY if node.name == "factory" else _FUNCTION
    return module


def _named_plainly(code: CodeType) -> CodeType:
    """The code without our names in those of the functions and classes that it makes (a class's is a constant)."""

    def plain(const: Any) -> Any:
        if isinstance(const, CodeType):
            return _named_plainly(const)
        return const.rpartition(_AROUND)[2] if type(const) is str and _AROUND in const else const

    qualname = code.co_qualname.rpartition(_AROUND)[2]
    return code.replace(co_consts=tuple(map(plain, code.co_consts)), co_qualname=qualname)


def _find_function(module: ast.Module) -> ast.FunctionDef:
    functions = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))
    return next(node for node in functions if node.name == _FUNCTION)


def _inner_code(code: CodeType) -> CodeType:
    """The action's code: the only path of hidden names through the constants."""
    while code.co_name != _FUNCTION:
        nested = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        code = nested[-1]
    return code


class _Unannotated(ast.NodeTransformer):
    """Drops annotations of local variables: a function never evaluates them, and a nonlocal may have none."""

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, SCOPES) else super().visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

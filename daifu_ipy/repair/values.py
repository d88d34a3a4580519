"""The values of a statement's variables and plain expressions, read without running any code of the program."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

from daifu_ipy.repair.builtin_values import vars_of
from daifu_ipy.repair.statement import Executing, Span, own_part, segment, span_of

_MAX_NAMES = 12
_MAX_KEYS = 10_000
MISSING = object()
"""Stands for a value that there is none of, or that can't be read without running code."""
_UNINTERESTING = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_MODULE_PARTS = ("_parameters", "_buffers", "_modules")
_INLINED = (ast.ListComp, ast.SetComp, ast.DictComp) if sys.version_info >= (3, 12) else ()
_INNER = tuple({ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp} - {*_INLINED})


def statement_values(
    found: Executing, lines: list[str], variables: Mapping[str, Any], module: Mapping[str, Any], *, inner: bool = False
) -> list[tuple[str, Any]]:
    """Give what a statement names, and the values now.

    Parameters
    ----------
    found
        The statement that executes.
    lines
        The source.
    variables, module
        The variables of the frame, and of its module.
    inner
        The frame is that of a lambda or comprehension in the statement.

    Returns
    -------
    list of (str, object)
        In the order of the source: variables, attributes and items (``self.lr``, ``batch["label"]``), where reading
        them runs nothing: no property, no ``__getattr__``, no ``__getitem__`` but that of built-in types. Modules,
        functions and classes are left out, since they say little.
    """
    values: dict[str, tuple[Span, Any]] = {}
    for node in _expressions(found, inner):
        value = _value(node, variables, module)
        if value is not MISSING and not issubclass(type(value), _UNINTERESTING):  # isinstance may run its code
            values.setdefault(segment(lines, span_of(node)), (span_of(node), value))
        if len(values) == _MAX_NAMES:
            break
    shown = sorted(values.items(), key=lambda item: (item[1][0][0], item[1][0][2], item[1][0][1], item[1][0][3]))
    return [(text, value) for text, (_, value) in shown]


def _expressions(found: Executing, inner: bool) -> Iterator[Any]:
    """Names, attributes and items in the statement; those in the executing node first, since there may be too many."""
    nodes = [node for node in own_part(found.statement) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))]
    bound = set() if inner else _bound_inside(found.statement)
    seen = [node for node in nodes if not any(isinstance(n, ast.Name) and n.id in bound for n in ast.walk(node))]
    first, last, start, end = found.span
    seen.sort(key=lambda node: ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)))
    return iter(sorted(seen, key=lambda n: not (first, start) <= (n.lineno, n.col_offset) < (last, end)))


def _bound_inside(statement: ast.stmt) -> set[str]:
    """Variables of the lambdas and comprehensions in a statement: in the frame the same name is another variable."""
    inside = [node for scope in own_part(statement) if isinstance(scope, _INNER) for node in ast.walk(scope)]
    names = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | {node.arg for node in inside if isinstance(node, ast.arg)}


def _value(node: ast.AST, variables: Mapping[str, Any], module: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(id=name):
            return variables[name] if name in variables else module.get(name, MISSING)
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case ast.Attribute(value=base, attr=name):
            return attribute(_value(base, variables, module), name)
        case ast.Subscript(value=base, slice=index):
            return _item(_value(base, variables, module), _value(index, variables, module))
    return MISSING


def value_of(text: str, variables: Mapping[str, Any], module: Mapping[str, Any]) -> Any:
    """What a name, attribute or item stands for (``self.net``); `MISSING` if reading it would run code."""
    try:
        return _value(ast.parse(text, mode="eval").body, variables, module)
    except (SyntaxError, ValueError):
        return MISSING


def attribute(value: Any, name: str) -> Any:
    """An attribute, read from where it is stored; `MISSING` where that would run code."""
    from pure_eval import CannotEval, getattr_static

    if value is MISSING:
        return MISSING
    try:
        return getattr_static(value, name)  # type: ignore[no-untyped-call]
    except CannotEval:  # a property, or nothing that lies in a dict or a slot
        return _part_of_module(value, name)


def _item(value: Any, key: Any) -> Any:
    """An item of a built-in container. pure_eval gets this step only: whole expressions it would also add and sort."""
    from pure_eval import CannotEval, Evaluator

    if value is MISSING or key is MISSING or (type(value) is dict and len(value) > _MAX_KEYS):
        return MISSING
    step = ast.Subscript(ast.Name("value", ast.Load()), ast.Name("key", ast.Load()), ast.Load())
    try:
        return Evaluator({"value": value, "key": key})[step]
    except CannotEval:
        return MISSING


def _part_of_module(value: Any, name: str) -> Any:
    """A layer or parameter of a torch module, which it keeps beside its attributes."""
    torch = sys.modules.get("torch")
    base = getattr(getattr(torch, "nn", None), "Module", None)
    if not isinstance(base, type) or not issubclass(type(value), base):
        return MISSING
    state = vars_of(value)
    parts = (state.get(part) for part in _MODULE_PARTS)
    return next((dict.__getitem__(part, name) for part in parts if isinstance(part, dict) and name in part), MISSING)

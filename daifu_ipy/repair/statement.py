"""The variables of the executing statement, found in its source and read without running any code."""

from __future__ import annotations

import ast
import functools
import linecache
import types
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

_MAX_SOURCE = 2_000_000
_MAX_NAMES = 12
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_UNINTERESTING = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_MISSING = object()


def statement_values(
    filename: str, position: tuple[int, int], local: Mapping[str, Any], module: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    """Give the variables that a statement names, and their values now.

    Parameters
    ----------
    filename
        The statement's file, as `linecache` knows it.
    position
        A line in the statement and a column in bytes, as instructions have them.
    local, module
        The variables of the frame, and of its module.

    Returns
    -------
    list of (str, object)
        In the order of the source; ``self.lr`` where it is a plain instance attribute. Modules, functions and
        classes are left out, since they say little.
    """
    found: list[tuple[str, Any]] = []
    for name in _names(filename, position):
        value = _value(name, local, module)
        if value is not _MISSING and not issubclass(type(value), _UNINTERESTING):  # isinstance may run its code
            found.append((name, value))
        if len(found) == _MAX_NAMES:
            break
    return found


def _names(filename: str, position: tuple[int, int]) -> Iterable[str]:
    tree = _parsed("".join(linecache.getlines(filename)))
    statement = None if tree is None else _innermost(tree, position)
    return () if statement is None else _names_in(statement)


@functools.lru_cache(maxsize=16)
def _parsed(source: str) -> ast.Module | None:
    if len(source) > _MAX_SOURCE:
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a notebook cell with magics
        return None


def _innermost(tree: ast.Module, position: tuple[int, int]) -> ast.stmt | None:
    found: ast.stmt | None = None
    inside: ast.AST | None = tree
    while inside is not None:
        inside = next((child for child in _blocks(inside) if _covers(child, position)), None)
        if isinstance(inside, ast.stmt):
            found = inside
    return found


def _blocks(node: ast.AST) -> Iterator[ast.AST]:
    """The statements directly inside a node, and its handlers and cases, last first: two may share a line."""
    for field in reversed(_BLOCKS):
        children = getattr(node, field, None)
        if isinstance(children, list):
            yield from reversed(children)


def _covers(node: Any, position: tuple[int, int]) -> bool:
    if isinstance(node, ast.match_case):
        return any(_covers(child, position) for child in node.body)
    return bool((node.lineno, node.col_offset) <= position < (node.end_lineno, node.end_col_offset))


def _names_in(statement: ast.stmt) -> list[str]:
    """Names and attribute chains of a statement; of a compound one, those of its header."""
    chains: dict[tuple[int, int], str] = {}
    for node in _own_part(statement):
        chain = _chain(node)
        if chain is not None and isinstance(node, (ast.Name, ast.Attribute)):
            place = (node.lineno, node.col_offset)
            if len(chain) > len(chains.get(place, "")):
                chains[place] = chain
    names = [chain for _, chain in sorted(chains.items())]
    return list(dict.fromkeys(prefix for chain in names for prefix in _prefixes(chain)))


def _own_part(statement: ast.stmt) -> Iterator[ast.AST]:
    for field, value in ast.iter_fields(statement):
        children = value if isinstance(value, list) else [value]
        if field not in _BLOCKS:
            yield from (node for child in children if isinstance(child, ast.AST) for node in ast.walk(child))


def _chain(node: ast.AST) -> str | None:
    """``a.b.c`` of a name or of attributes of one."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute):
            base = _chain(value)
            return None if base is None else f"{base}.{attribute}"
    return None


def _prefixes(chain: str) -> Iterator[str]:
    parts = chain.split(".")
    yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _value(chain: str, local: Mapping[str, Any], module: Mapping[str, Any]) -> Any:
    name, *attributes = chain.split(".")
    value = local[name] if name in local else module.get(name, _MISSING)
    for attribute in islice(attributes, 4):
        value = _MISSING if value is _MISSING else _plain_attribute(value, attribute)
    return value


def _plain_attribute(value: object, name: str) -> Any:
    """An attribute that lies in the instance's dict and not in its class too: no code of the user's runs."""
    if any(name in base.__dict__ for base in type(value).__mro__):
        return _MISSING
    try:
        return object.__getattribute__(value, "__dict__").get(name, _MISSING)
    except Exception:  # no dict
        return _MISSING

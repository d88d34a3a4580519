"""Puts the text that a surgery brought into the text of the file or notebook cell that it is about.

A surgery may bring one function, a class, several functions, or the whole file. What it brought replaces the
definitions of the same name, comments and layout as typed; the rest of the file stays as it is. New definitions and
imports go in front of the definition that they were typed before.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from daifu_ipy.engine.matching import same
from daifu_ipy.engine.texts import lines_of
from daifu_ipy.engine.unit import FUNCTIONS, blocks, is_constant, start_of
from daifu_ipy.engine.vaccinate import parse

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


class CannotSplice(ValueError):
    """A text can't be put where it belongs; says why."""


@dataclass(frozen=True)
class Edit:
    """New text for definition number `ordinal` of its name; without a name, for the whole."""

    qualname: str
    ordinal: int
    text: str


def definitions(statements: list[ast.stmt], prefix: str = "") -> dict[str, list[Definition]]:
    """All functions and classes among `statements`, by qualified name."""
    found: dict[str, list[Definition]] = {}
    for name, node in _walk(statements, prefix):
        found.setdefault(name, []).append(node)
    return found


def _walk(statements: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Definition]]:
    for statement in statements:
        if isinstance(statement, DEFINITIONS):
            name = f"{prefix}{statement.name}"
            yield name, statement
            yield from _walk(statement.body, f"{name}." if isinstance(statement, ast.ClassDef) else f"{name}.<locals>.")
        for block in blocks(statement):
            yield from _walk(block.statements, prefix)


# which text is new


def edits_of(
    document: str, typed: str, replaced: Mapping[str, int], unit: str, elsewhere: frozenset[str] = frozenset()
) -> list[Edit]:
    """What a typed text changes in a document.

    Parameters
    ----------
    document
        The text of the file or notebook cell.
    typed
        The text of the surgery.
    replaced
        The functions that it replaced there: their qualified names, and which of their namesakes is meant.
    unit
        The qualified name of the crashed unit, which may have been typed by its bare name.
    elsewhere
        Functions that it replaced in other documents.
    """
    old, new = parse(document), parse(typed)
    if unit == "<module>" and unit in replaced:
        return [_whole(document, old, typed, new)]
    if not elsewhere and _covers(new.body, old.body) and not _is_lone(new, unit, replaced):
        return [_whole(document, old, typed, new)]
    return list(_Typed(definitions(old.body), old.body, lines_of(typed), replaced, unit, elsewhere).edits(new.body))


def _is_lone(new: ast.Module, unit: str, replaced: Mapping[str, int]) -> bool:
    """Whether the text is a method, typed without its class."""
    return unit in replaced and "." in unit and unit not in definitions(new.body)


def _covers(new: list[ast.stmt], old: list[ast.stmt]) -> bool:
    """Whether all that stood in the old statements has a counterpart in the new ones."""
    kinds = (
        Counter(s.name if isinstance(s, DEFINITIONS) else type(s) for s in part if not is_constant(s))
        for part in (old, new)
    )
    return not next(kinds) - next(kinds)


def _whole(document: str, old: ast.Module, typed: str, new: ast.Module) -> Edit:
    """The typed text instead of the document, whose first line may be a mere text that was not typed again."""
    text = _indented(typed, new.body[0], "") if new.body else typed
    if old.body and is_constant(old.body[0]) and not (new.body and is_constant(new.body[0])):
        text = "".join(lines_of(document)[: old.body[0].end_lineno]) + text
    return Edit("", 0, text if text.endswith("\n") or not document.endswith("\n") else f"{text}\n")


class _Typed:
    """A typed text, walked statement by statement."""

    def __init__(
        self,
        there: Mapping[str, list[Definition]],
        document: list[ast.stmt],
        lines: list[str],
        replaced: Mapping[str, int],
        unit: str,
        elsewhere: frozenset[str],
    ) -> None:
        self._there, self._lines, self._replaced, self._unit = there, lines, replaced, unit
        self._known = [s for s in document if not isinstance(s, DEFINITIONS)]
        self._elsewhere = elsewhere
        self._there_already: set[int] = set()  # lines of the text that stand elsewhere in the document

    def edits(self, statements: list[ast.stmt], prefix: str = "", first: int = 0) -> Iterator[Edit]:
        """The edits that `statements` of the text come to; its lines from `first` on belong to them."""
        made: list[tuple[str, int, int, int]] = []
        names = [self._name(statement, prefix) for statement in statements]
        for index, statement in enumerate(statements):
            name, end = names[index], statement.end_lineno or statement.lineno
            there = self._there.get(name, [])
            if not there:
                if (
                    name in self._elsewhere
                    or is_constant(statement)
                    or any(same(statement, other) for other in self._known)
                ):
                    self._there_already.update(range(start_of(statement)[0] - 1, end))
                continue
            known = names.count(name) == len(there) or name not in self._replaced
            ordinal = min(names[:index].count(name) if known else self._replaced[name], len(there) - 1)
            if self._is_new(statement, there[ordinal], name):
                made.append((name, ordinal, first, end))
            elif isinstance(statement, ast.ClassDef):
                yield from self.edits(statement.body, f"{name}.", start_of(statement.body[0])[0] - 1)
            first = end
        last = (statements[-1].end_lineno or 0) if prefix else len(self._lines)
        for number, (name, ordinal, start, end) in enumerate(made, 1):
            stop = last if number == len(made) and first == end else end
            lines = [self._lines[line] for line in range(start, stop) if line not in self._there_already]
            yield Edit(name, ordinal, "".join(lines).strip("\n") + "\n")

    def _is_new(self, statement: ast.stmt, old: Definition, name: str) -> bool:
        """Whether a definition is to be replaced as a whole."""
        if not isinstance(statement, ast.ClassDef):
            return name in self._replaced and not same(statement, old)
        touched = any(other.startswith(f"{name}.") for other in self._replaced)
        return touched and isinstance(old, ast.ClassDef) and _covers(statement.body, old.body)

    def _name(self, statement: ast.stmt, prefix: str) -> str:
        if not isinstance(statement, DEFINITIONS):
            return ""
        name = f"{prefix}{statement.name}"
        is_unit = not prefix and name not in self._replaced and self._unit.endswith(f".{name}")
        return self._unit if is_unit and isinstance(statement, FUNCTIONS) else name


# putting it there


def splice(document: str, edits: list[Edit]) -> str:
    """The document with the new texts in it.

    Raises
    ------
    CannotSplice
        A definition is not there.
    """
    for edit in edits:
        document = _put(document, edit) if edit.qualname else edit.text
    return document


def definition_text(document: str, qualname: str, ordinal: int) -> str | None:
    """The text of a definition, decorators included; of ``<module>``, all of it. None if it is not there."""
    if qualname == "<module>":
        return document
    try:
        node = _definition(document, qualname, ordinal)
    except CannotSplice:
        return None
    return "".join(lines_of(document)[start_of(node)[0] - 1 : node.end_lineno])


def _definition(document: str, qualname: str, ordinal: int) -> Definition:
    try:
        return definitions(parse(document).body)[qualname][ordinal]
    except SyntaxError as error:
        raise CannotSplice(f"it does not parse: line {error.lineno}: {error.msg}") from None
    except (KeyError, IndexError):
        raise CannotSplice(f"it has no {qualname} any more") from None


def _put(document: str, edit: Edit) -> str:
    node = _definition(document, edit.qualname, edit.ordinal)
    new = [d for d in parse(edit.text).body if isinstance(d, DEFINITIONS) and d.name == node.name][-1]
    lines, margin = lines_of(document), _margin(lines_of(document)[node.lineno - 1])
    typed = lines_of(_indented(edit.text, new, margin))
    first, last = start_of(node)[0], node.end_lineno or node.lineno
    kept = [] if new.decorator_list else lines[first - 1 : node.lineno - 1]
    if _is_comment(typed[0]):
        while first > 1 and _is_comment(lines[first - 2]) and _margin(lines[first - 2]) == margin:
            first -= 1
    if _is_comment(typed[-1]):
        while last < len(lines) and _is_comment(lines[last]) and len(_margin(lines[last])) > len(margin):
            last += 1
    if not lines[last - 1].endswith("\n"):
        typed[-1] = typed[-1].rstrip("\n")
    head = new.lineno - 1 if kept else 0
    lines[first - 1 : last] = [*typed[:head], *kept, *typed[head:]]
    return "".join(lines)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _indented(text: str, statement: ast.stmt, margin: str) -> str:
    """The text with `statement` indented by `margin`; lines inside strings stay as they are."""
    lines = lines_of(text)
    before = _margin(lines[statement.lineno - 1])
    if before == margin:
        return text
    inside = _inside_strings(parse(text))
    for index, line in enumerate(lines):
        if line.strip() and index + 1 not in inside and line.startswith(before):
            lines[index] = f"{margin}{line.removeprefix(before)}"
    return "".join(lines)


def _inside_strings(tree: ast.Module) -> set[int]:
    """The lines that begin inside a string."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }


__all__ = ["CannotSplice", "Edit", "definition_text", "edits_of", "splice"]

"""The text of a nested function, put into the text around it: that makes new closures, so it has to change as well."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.splicing import CannotSplice, Edit, splice
from daifu_ipy.engine.texts import lines_of
from daifu_ipy.engine.unit import FUNCTIONS, Unit, start_of
from daifu_ipy.engine.vaccinate import all_functions, functions_in_text, parse


@dataclass(frozen=True)
class Text:
    """A new text as it is compiled: `shift` lines stand before the first one that was typed."""

    source: str
    tree: ast.Module
    shift: int = 0


def in_place(unit: Unit, source: str, tree: ast.Module, filename: str) -> Text:
    """The whole text that a typed one stands for; itself, unless it is that of a nested function without its maker.

    Raises
    ------
    Refusal
        Something stands beside it that has no place there.
    """
    typed = [s for s in tree.body if isinstance(s, FUNCTIONS) and s.name == unit.plain.co_name]
    if "<locals>" not in unit.qualname or len(typed) != 1:
        return Text(source, tree)
    every = functions_in_text(unit.source)
    old = [found for found in every if found.qualname == unit.qualname]
    if not old or unit.qualname in {found.qualname for found in all_functions(tree.body)}:
        return Text(source, tree)
    ordinal = next((n for n, found in enumerate(old) if start_of(found.node) == start_of(unit.node)), 0)  # type: ignore[arg-type]
    known = {found.qualname for found in every}
    edits, lines, first = [], lines_of(source), 0
    for statement in tree.body:
        last = statement.end_lineno or statement.lineno
        name = getattr(statement, "name", "")
        if statement is not typed[0] and not (isinstance(statement, FUNCTIONS) and name in known):
            raise Refusal(
                f"line {statement.lineno} can't stand beside the text of the nested function {unit.plain.co_name}: "
                "only functions of the same file can"
            )
        is_unit = statement is typed[0]
        text = "".join(lines[first:last]).strip("\n") + "\n"
        edits.append(Edit(unit.qualname if is_unit else name, ordinal if is_unit else 0, text))
        first = last
    try:
        whole = splice(unit.source, edits)
        made = parse(whole, filename)
    except (CannotSplice, SyntaxError) as error:
        raise Refusal(f"the text of {unit.plain.co_name} can't be put into that around it: {error}") from None
    there = [found.node for found in all_functions(made.body) if found.qualname == unit.qualname][ordinal]
    return Text(whole, made, there.lineno - typed[0].lineno)


__all__ = ["Text", "in_place"]

"""Surgery: new text for the crashed unit, or for functions that it calls, taken over in the middle of the run.

The new unit is vaccinated like any other. Where it goes on is found by matching it with the crashed one (`matching`):
at the first changed statement of the interrupted iteration, or else at the crashed statement. The slots of the open
constructs on the path move over to their counterparts.
"""

from __future__ import annotations

import ast
import itertools
import linecache
from dataclasses import dataclass, replace
from types import CellType, FunctionType
from typing import Any

from daifu_ipy.engine.applying import Plan, arriving, check_loop, procedure
from daifu_ipy.engine.barrier import Barrier
from daifu_ipy.engine.cells import compile_cell
from daifu_ipy.engine.crash import Crash, CrashFrame
from daifu_ipy.engine.location import CannotResume, Location
from daifu_ipy.engine.matching import Match, match, same
from daifu_ipy.engine.repairs import Refusal, Surgery
from daifu_ipy.engine.scopes import HIDDEN
from daifu_ipy.engine.swap import Swap, changed_functions, check_captures
from daifu_ipy.engine.unit import (
    FUNCTIONS,
    ITERATIONS,
    LOOPS,
    TRIES,
    WITHS,
    FunctionNode,
    Unit,
    blocks,
    start_of,
)
from daifu_ipy.engine.vaccinate import (
    CannotVaccinate,
    Vaccinated,
    all_functions,
    class_of_text,
    native,
    parse,
    vaccinated,
    vaccinated_cell,
)

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Preview:
    """What a surgery would do: where the run goes on, why there, and which functions are replaced."""

    line: int
    statement: str
    kind: str
    reason: str
    replaced: tuple[str, ...]


@dataclass(frozen=True)
class Operation:
    """A surgery that was found to be possible; nothing is changed yet."""

    plan: Plan
    swaps: tuple[Swap, ...]
    reason: str
    filename: str


def operate(crash: Crash, index: int, surgery: Surgery) -> Plan:
    """Apply a surgery to frame `index` of a crash; `Refusal` if it can't be, and then nothing was changed."""
    operation = _prepare(_frame(crash, index), surgery, crash)
    text = surgery.source
    linecache.cache[operation.filename] = (len(text), None, text.splitlines(keepends=True), operation.filename)
    class_of_text[operation.filename] = operation.plan.barrier.unit.class_name
    for swap in operation.swaps:
        swap.apply()
    return operation.plan


def _frame(crash: Crash, index: int) -> CrashFrame:
    frame = crash.frame(index)
    if frame is None:
        raise Refusal(f"there is no vaccinated frame {index}, or the crash was decided already")
    return frame


def preview(crash: Crash, source: str) -> Preview:
    """What surgery with `source` would do, for the innermost frame; `Refusal` if it would be refused."""
    operation = _prepare(_frame(crash, 0), Surgery(source), crash)
    plan = operation.plan
    statement = plan.location.statement
    names = tuple(swap.name for swap in operation.swaps)
    return Preview(statement.lineno, plan.barrier.unit.text(statement), plan.location.kind, operation.reason, names)


def _prepare(frame: CrashFrame, surgery: Surgery, crash: Crash) -> Operation:
    if surgery.restart_at not in (None, "crash"):
        raise Refusal("restart_at can't be chosen yet: only the default, or 'crash'")
    text = surgery.source
    filename = f"<daifu surgery {next(_numbers)} of {frame.unit.plain.co_filename.strip('<>')}>"
    try:
        tree = parse(text, filename)
    except SyntaxError as error:
        raise Refusal(f"the new source does not parse: line {error.lineno}: {error.msg}") from None
    try:
        new = _new_unit(frame, tree, text, filename)
        unit = new.barrier.unit if new is not None else None
        swaps = changed_functions(frame, crash, tree, text, filename, skip=unit.node if unit is not None else None)
    except CannotVaccinate as error:
        raise Refusal(f"the new source can't be vaccinated: {error}") from None
    except SyntaxError as error:
        raise Refusal(f"the new source does not compile: line {error.lineno}: {error.msg}") from None
    if new is None or same(_code_of(new.barrier.unit), _code_of(frame.unit)):
        if not swaps and new is None:
            raise Refusal(f"the new source defines neither {frame.unit.qualname} nor a function that exists")
        plan = _unchanged(frame)
        check_loop(plan, surgery, None)
        return Operation(plan, tuple(swaps), "the unit is unchanged: the crashed statement runs again", filename)
    _check_known(new.barrier, tree)
    found = match(frame.unit, new.barrier.unit, frame.location.statement)
    location, reason = _restart(frame, new.barrier.unit, found, at_crash=surgery.restart_at == "crash")
    plan = _moved(frame, new.barrier, location, found)
    own = Swap.unit(frame, new)
    check_loop(plan, surgery, None)
    return Operation(plan, (*own, *swaps), reason, filename)


def _check_known(barrier: Barrier, tree: ast.Module) -> None:
    """A function that is new in the text of a function is not defined by a surgery, which runs no other code."""
    if barrier.unit.is_notebook_cell:
        return
    defined = {statement.name for statement in tree.body if isinstance(statement, FUNCTIONS)}
    unknown = sorted(defined & barrier.unit.read_globals - barrier.namespace.keys())
    if unknown:
        raise Refusal(f"{', '.join(unknown)} does not exist, and a surgery defines nothing new: an action can")


def _code_of(unit: Unit) -> ast.AST:
    node = unit.node
    return node if isinstance(node, ast.Module) else ast.Tuple([node.args, *node.body])  # type: ignore[list-item]


def _unchanged(frame: CrashFrame) -> Plan:
    return Plan(frame, frame.location, dict(frame.slots), frame.barrier)


# the new unit


def _new_unit(frame: CrashFrame, tree: ast.Module, text: str, filename: str) -> Vaccinated | None:
    """The new text of the crashed unit, vaccinated; None if `tree` does not hold it."""
    if frame.unit.is_notebook_cell:
        if all(isinstance(s, (*FUNCTIONS, ast.ClassDef)) for s in tree.body) and not all(
            isinstance(s, (*FUNCTIONS, ast.ClassDef)) for s in frame.unit.node.body
        ):
            return None  # only functions that the cell uses
        plain = compile_cell(tree, filename, frame.unit.plain.co_flags)
        if plain.co_flags & 0x80 != frame.unit.plain.co_flags & 0x80:
            raise Refusal("a top-level await can't be added to, or taken from, a cell that is running")
        options = replace(frame.barrier.shapes.options, displayed=_displayed(frame, tree))
        made = vaccinated_cell(tree, plain, text, frame.barrier.namespace, options, None)
        if "display" in vars(frame.barrier):  # a front end shows values its own way
            vars(made.barrier)["display"] = vars(frame.barrier)["display"]
        return made
    node = find_unit(tree, frame.unit, frame.barrier.namespace)
    if node is None:
        return None
    _check_signature(node, frame.unit)
    plain = native(node, frame.unit.plain, frame.unit.class_name, filename, frame.barrier.flags)
    check_captures(plain, frame.unit.qualname, frame.unit.source)
    for what, flags in (("a generator", 0x220), ("a coroutine", 0x280)):
        if bool(plain.co_flags & flags) != bool(frame.unit.plain.co_flags & flags):
            raise Refusal(f"{frame.unit.qualname} can't become, or stop being, {what} while it is running")
    shared = {*frame.unit.cells}
    return vaccinated(node, plain, text, frame.barrier.namespace, frame.unit.class_name, shared)


def _displayed(frame: CrashFrame, tree: ast.Module) -> frozenset[ast.stmt]:
    """The new cell shows its last expression if the old one would have shown one."""
    last = tree.body[-1] if tree.body else None
    return frozenset([last]) if frame.barrier.shows_last and isinstance(last, ast.Expr) else frozenset()


def find_unit(tree: ast.Module, unit: Unit, namespace: dict[str, Any]) -> FunctionNode | None:
    """The definition of `unit` in a new text: of the unit alone, or of its class, cell or module."""
    exact = [found.node for found in all_functions(tree.body) if found.qualname == unit.qualname]
    if exact:
        old = [found.node for found in all_functions(parse(unit.source).body) if found.qualname == unit.qualname]
        if len(exact) == 1 and len(old) <= 1:
            return exact[0]
        if len(exact) != len(old):
            raise Refusal(
                f"{unit.qualname} is defined {len(exact)} times in the new source, and {len(old)} times in the old"
            )
        starts = [start_of(node) for node in old]
        return exact[starts.index(start_of(unit.node))] if isinstance(unit.node, FUNCTIONS) else None
    name = unit.plain.co_name
    named = [statement for statement in tree.body if isinstance(statement, FUNCTIONS) and statement.name == name]
    known = namespace.get(name)  # another function of this name may be the one that is meant
    is_other = isinstance(known, FunctionType) and known.__code__.co_qualname != unit.qualname
    is_meant = len(tree.body) == 1 or not is_other
    return named[0] if len(named) == 1 and is_meant else None


def _check_signature(node: FunctionNode, unit: Unit) -> None:
    if isinstance(unit.node, ast.Module):
        return
    if not same(node.args, unit.node.args):
        raise Refusal(f"the parameters of {unit.qualname} can't change while it is running (line {node.lineno})")
    if type(node) is not type(unit.node):
        raise Refusal(f"{unit.qualname} can't become a coroutine, or stop being one, while it is running")


# where it goes on


def _restart(frame: CrashFrame, new: Unit, found: Match, *, at_crash: bool) -> tuple[Location, str]:
    """The restart location in the new unit, and why there."""
    path = frame.unit.path(frame.location.statement)
    loops = [depth for depth, (owner, block) in enumerate(path) if isinstance(owner, LOOPS) and block.field == "body"]
    iteration = loops[-1] + 1 if loops else 0
    if len(found.levels) <= iteration - 1 or any(owner not in found.counterparts for owner, _ in path[:iteration]):
        lost = next(owner for owner, _ in path if owner not in found.counterparts)
        raise Refusal(f"the {_name(lost)} in line {lost.lineno} is running and has no counterpart in the new source")
    if not at_crash and not _is_half_done(frame.location, found):
        for depth in range(iteration, len(found.levels)):
            edited = _edited(frame, found, depth)
            if (
                edited is not None
                and not _holds_open(path[depth:])
                and not (iteration == 0 and _reruns_loop(found, depth, edited))
            ):
                return _at(new, frame, found, edited), "the first changed statement of the interrupted iteration"
    return _at_crash(frame, new, found)


def _is_half_done(location: Location, found: Match) -> bool:
    """Going back before the crashed statement would abandon what is open in it: a live iterator, a block."""
    old, new = location.statement, found.counterparts.get(location.statement)
    if isinstance(old, ITERATIONS) and isinstance(new, ITERATIONS) and not same(old.iter, new.iter):
        return False  # its loop starts anew in any case
    return location.kind not in ("statement", "guard") or isinstance(old, ast.While)


def _edited(frame: CrashFrame, found: Match, depth: int) -> ast.stmt | None:
    """The first changed statement in one block of the path, before the statement on the path or this itself."""
    level = found.levels[depth]
    if level.first_edit is not None:
        return level.new[level.first_edit]
    on_path = level.old[level.index]
    if level.counterpart is None:
        return level.new[level.gap[0]] if level.gap[0] < level.gap[1] else None
    if (
        isinstance(on_path, ast.If)
        and isinstance(level.counterpart, ast.If)
        and on_path is not frame.location.statement
    ):
        return None if same(on_path.test, level.counterpart.test) else level.counterpart
    return None


def _holds_open(path: list[Any]) -> bool:
    """Going back to the start of this part of the path would leave something open that Python would close."""
    return any(
        isinstance(owner, WITHS) or (isinstance(owner, TRIES) and block.field != "body") for owner, block in path
    )


def _reruns_loop(found: Match, depth: int, edited: ast.stmt) -> bool:
    """A finished loop would run again."""
    level = found.levels[depth]
    end = level.new.index(level.counterpart) if level.counterpart is not None else level.gap[1]
    return any(_has_loop(statement) for statement in level.new[level.new.index(edited) : end])


def _has_loop(statement: ast.stmt) -> bool:
    return isinstance(statement, LOOPS) or any(_has_loop(s) for block in blocks(statement) for s in block.statements)


def _at(new: Unit, frame: CrashFrame, found: Match, statement: ast.stmt) -> Location:
    return Location(statement, "statement", 0, _pending(frame, found, new, statement))


def _pending(frame: CrashFrame, found: Match, new: Unit, statement: ast.stmt) -> tuple[int, ...]:
    """The completions that wait for ``finally`` bodies around the new place; jumps are numbered anew."""
    kept = frame.location.pending[: sum(block.field == "finalbody" for _, block in new.path(statement))]
    if any(number > 0 for number in kept):
        raise Refusal("a finally body that a return, break or continue is waiting for can't be edited while it runs")
    return kept


def _at_crash(frame: CrashFrame, new: Unit, found: Match) -> tuple[Location, str]:
    old = frame.location.statement
    level = found.levels[-1]
    counterpart = found.counterparts.get(old)
    if counterpart is None:
        if level.old[level.index] is not old:
            lost = level.old[level.index]
            if isinstance(lost, (*LOOPS, *WITHS)):
                raise Refusal(
                    f"the {_name(lost)} in line {lost.lineno} is open and has no counterpart in the new source"
                )
        return _gone(frame, new, found)
    kind, index = frame.location.kind, frame.location.index
    if kind == "exit" and index != 0:
        raise Refusal("a with statement that is being left by a jump can't be edited")
    if isinstance(old, ITERATIONS) and isinstance(counterpart, ITERATIONS) and kind in ("next", "unpack"):
        if not same(old.iter, counterpart.iter):
            return _at(new, frame, found, counterpart), "the loop's iterable was changed: the loop starts anew"
        if kind == "unpack" and isinstance(counterpart.target, ast.Name):
            raise Refusal("the item that could not be unpacked needs a target that unpacks; use an action instead")
    if isinstance(old, ast.Match) and isinstance(counterpart, ast.Match) and not same(old.subject, counterpart.subject):
        return _at(new, frame, found, counterpart), "the subject of the match was changed: it is matched anew"
    if kind == "guard" and not _same_cases(old, counterpart, index):
        raise Refusal("the cases before the crashed guard were changed: its subject can't be matched again")
    if kind == "except" and not _same_clauses(old, counterpart, index):
        raise Refusal("the handlers before the crashed one were changed while their exception was being matched")
    pending = _pending(frame, found, new, counterpart)
    return Location(counterpart, kind, index, pending), "the crashed statement"


def _same_cases(old: ast.stmt, new: ast.stmt, index: int) -> bool:
    """The cases that did not match are the same; only the crashed one's guard and body, and later ones, may differ."""
    if not (isinstance(old, ast.Match) and isinstance(new, ast.Match) and len(new.cases) > index):
        return False
    before = all(map(same, old.cases[:index], new.cases[:index]))
    return before and same(old.cases[index].pattern, new.cases[index].pattern)


def _same_clauses(old: ast.stmt, new: ast.stmt, index: int) -> bool:
    """The same for handlers whose types did not match."""
    if not (isinstance(old, TRIES) and isinstance(new, TRIES) and len(new.handlers) > index):
        return False
    return all(map(same, old.handlers[:index], new.handlers[:index]))


def _gone(frame: CrashFrame, new: Unit, found: Match) -> tuple[Location, str]:
    """The crashed statement was replaced by others, or left out."""
    level = found.levels[-1]
    start = level.gap[0]
    if start < len(level.new):
        return _at(new, frame, found, level.new[start]), "what stands where the crashed statement stood"
    last = level.new[-1]
    return Location(last, "after", 0, _pending(frame, found, new, last)), "the crashed statement is gone: after it"


def _name(statement: ast.stmt) -> str:
    return {ast.For: "for loop", ast.AsyncFor: "for loop", ast.While: "while loop"}.get(
        type(statement), f"{type(statement).__name__.lower()} statement"
    )


# what moves over


def _moved(frame: CrashFrame, barrier: Barrier, location: Location, found: Match) -> Plan:
    """The crashed frame's variables and slots as the new unit knows them."""
    old, new = frame.unit, barrier.unit
    inside = {owner for owner, _ in new.path(location.statement)} | {location.statement}
    numbers = {str(old.number[was]): str(new.number[now]) for was, now in found.counterparts.items() if now in inside}
    slots = {new_name: value for name, value in frame.slots.items() if (new_name := _renamed(name, numbers))}
    if location.kind == "statement":  # the statement starts anew: nothing of it is open
        number = str(new.number[location.statement])
        slots = {name: value for name, value in slots.items() if _number(name) != number}
    values = {**frame.extras, **frame.variables}
    variables = {name: value for name, value in values.items() if name in new.plain_locals}
    cells = dict(frame.cells)
    for name in new.cells:
        if name not in cells:
            cells[name] = CellType(values[name]) if name in values else CellType()
    moved = CrashFrame(barrier, frame.frame, location, frame.position, variables, slots, cells)
    plan = Plan(moved, location, slots, barrier)
    try:
        procedure(barrier, location, arriving(moved, slots))
    except CannotResume as error:
        raise Refusal(str(error)) from None
    return plan


def _renamed(name: str, numbers: dict[str, str]) -> str | None:
    """A slot's name in the new unit; None if its statement is not on the path any more."""
    letter, (_, separator, index) = name[len(HIDDEN)], name.partition("_")[2].partition("_")
    number = _number(name)
    return f"{HIDDEN}{letter}{numbers[number]}{separator}{index}" if number in numbers else None


def _number(name: str) -> str:
    """The number of the statement that a slot belongs to; no digits for other hidden names."""
    return name[len(HIDDEN) + 1 :].partition("_")[0]


__all__ = ["Operation", "Preview", "find_unit", "operate", "preview"]

"""Surgery: new text for the crashed unit, or for functions that it calls, taken over in the middle of the run.

The new unit is vaccinated like any other. Where it goes on is found by matching it with the crashed one (`matching`):
at the first changed statement of the interrupted iteration, or else at the crashed statement. The slots of the open
constructs on the path move over to their counterparts.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

from daifu_ipy.engine import versions
from daifu_ipy.engine.additions import Addition, add_all, bind_globals, check_known, not_run
from daifu_ipy.engine.applying import Plan, check_loop
from daifu_ipy.engine.cells import compile_cell
from daifu_ipy.engine.changed import changed_functions, check_header
from daifu_ipy.engine.choices import Choice, Preview, choices
from daifu_ipy.engine.closures import check_captures
from daifu_ipy.engine.crash import Crash, CrashFrame
from daifu_ipy.engine.functions import Functions
from daifu_ipy.engine.home import Home, home_of, stack_of
from daifu_ipy.engine.in_place import in_place
from daifu_ipy.engine.lineage import brought_back, is_newest, newest
from daifu_ipy.engine.matching import same
from daifu_ipy.engine.moving import moved
from daifu_ipy.engine.new_arguments import check_arguments, settle
from daifu_ipy.engine.repairs import Refusal, Surgery
from daifu_ipy.engine.restarting import Place, Restarts
from daifu_ipy.engine.swap import Swap, prepare_all
from daifu_ipy.engine.texts import keep
from daifu_ipy.engine.unit import (
    FUNCTIONS,
    FunctionNode,
    NestedFunction,
    Unit,
    start_of,
)
from daifu_ipy.engine.vaccinate import (
    CannotVaccinate,
    Vaccinated,
    all_functions,
    find_function,
    functions_in_text,
    native,
    parse,
    vaccinated,
    vaccinated_cell,
)


@dataclass(frozen=True)
class Operation:
    """A surgery that was found to be possible; nothing is changed yet."""

    plan: Plan
    swaps: tuple[Swap, ...]
    reason: str
    filename: str
    source: str  # the text that `filename` stands for
    shift: int = 0  # how many lines of it stand before the first one that was typed
    restarts: Restarts | None = None
    place: Place | None = None


def operate(crash: Crash, index: int, surgery: Surgery) -> Plan:
    """Apply a surgery to frame `index` of a crash; `Refusal` if it can't be, and then nothing was changed."""
    with versions.lock:
        frame = _frame(crash, index)
        operation = _prepare(frame, surgery, crash)
        plan, swaps = operation.plan, operation.swaps
        added = [swap for swap in swaps if isinstance(swap, Addition)]
        prepared = prepare_all(swap for swap in swaps if swap not in added)
        add_all(added)
        keep(operation.filename, operation.source)
        went_on = plan.location, plan.barrier.unit
        versions.record(frame.unit, swaps, surgery.source, operation.filename, went_on)
        for give in prepared:
            give()
        settle(plan.frame, swaps)
        bind_globals(frame, plan.barrier.unit, swaps)
        return plan


def _frame(crash: Crash, index: int) -> CrashFrame:
    frame = crash.frame(index)
    if frame is None:
        raise Refusal(f"there is no vaccinated frame {index}, or the crash was decided already")
    return frame


def preview(crash: Crash, source: str, restart_at: str | int | None = None, frame: int = 0) -> Preview:
    """What surgery of frame `frame` with `source` would do; `Refusal` if it would be refused."""
    crashed = _frame(crash, frame)
    operation = _prepare(crashed, Surgery(source, restart_at), crash)
    location, unit = operation.plan.location, operation.plan.barrier.unit
    names = tuple(swap.name for swap in operation.swaps)
    line, text = location.statement.lineno - operation.shift, unit.text(location.statement)
    offered: tuple[Choice, ...] = (Choice("crash", line, text, location.kind, operation.reason, crashed.repeats),)
    if operation.restarts is not None:
        offered = choices(operation.restarts, operation.place)
    return Preview(line, text, location.kind, operation.reason, names, offered)


def _prepare(frame: CrashFrame, surgery: Surgery, crash: Crash) -> Operation:
    text = surgery.source
    filename = versions.new_filename(frame.unit.plain.co_filename)
    try:
        tree = parse(text, filename)
    except SyntaxError as error:
        raise Refusal(f"the new source does not parse: line {error.lineno}: {error.msg}") from None
    whole = in_place(frame.unit, text, tree, filename)
    text, tree = whole.source, _as_it_runs(whole.tree, frame.unit)
    try:
        known = Functions(frame.barrier.namespace)
        stack = stack_of(crash, frame)
        home = home_of(frame, stack, tree, known)
        new = _new_unit(frame, tree, text, filename) if home.namespace is frame.barrier.namespace else None
        unit = new.barrier.unit if new is not None else None
        skip = unit.node if unit is not None else None
        swaps = changed_functions(frame, stack, tree, text, filename, skip, known, home)
    except CannotVaccinate as error:
        raise Refusal(f"the new source can't be vaccinated: {error}") from None
    except SyntaxError as error:
        raise Refusal(f"the new source does not compile: line {error.lineno}: {error.msg}") from None
    at_line = isinstance(surgery.restart_at, int)
    if new is None or (not at_line and same(_code_of(new.barrier.unit), _code_of(frame.unit))):
        if not swaps and new is None:
            raise Refusal(f"the new source defines neither {frame.unit.qualname} nor a function that exists")
        if at_line:
            raise Refusal(f"restart_at names a line of {frame.unit.qualname}, which the new source does not define")
        plan = _unchanged(frame)
        check_loop(plan, surgery, None)
        reason = _with_note("the unit is unchanged: the crashed statement runs again", frame, tree, home)
        return Operation(plan, tuple(swaps), reason, filename, text, whole.shift)
    if not frame.unit.is_notebook_cell:
        check_known(new.plain, tree, frame.barrier.namespace, swaps, frame)
    restarts = Restarts(frame, new.barrier.unit, whole.shift)
    place = restarts.chosen(surgery.restart_at)
    plan = moved(frame, new.barrier, restarts, place)
    every = (*Swap.unit(frame, new, known), *swaps)
    check_arguments(plan.frame, every)
    check_loop(plan, surgery, None)
    reason = _with_note(place.text, frame, tree, home)
    return Operation(plan, every, reason, filename, text, whole.shift, restarts, place)


def _as_it_runs(tree: ast.Module, unit: Unit) -> ast.Module:
    """A notebook cell without what its front end runs by itself: the line of the cell magic, ``from __future__``."""
    if not unit.is_notebook_cell:
        return tree
    ran = {start_of(statement) for statement in unit.node.body}
    apart = [statement for statement in parse(unit.source).body if start_of(statement) not in ran]
    is_titled = bool(apart) and _is_text(apart[0]) and _is_text(next(iter(tree.body), None))
    body = [one for one in tree.body[is_titled:] if not any(same(one, other) for other in apart)]
    return ast.Module(body, tree.type_ignores)


def _is_text(statement: ast.stmt | None) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _with_note(reason: str, frame: CrashFrame, tree: ast.Module, home: Home) -> str:
    is_cell = frame.unit.is_notebook_cell and home.namespace is frame.barrier.namespace
    note = "" if is_cell else not_run(tree, home.source)
    return f"{reason}; {note}" if note else reason


def _code_of(unit: Unit) -> ast.AST:
    node = unit.node
    if isinstance(node, ast.Module):
        return node
    return ast.Tuple([node.args, *node.body, node.returns or ast.Pass()])  # type: ignore[list-item]


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
    _check_definition(node, frame.unit)
    plain = native(node, frame.unit.plain, frame.unit.class_name, filename, frame.barrier.flags)
    check_captures(plain, frame.unit.qualname, frame.unit.source, text)
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
        old = [found.node for found in functions_in_text(unit.source) if found.qualname == unit.qualname]
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


def _check_definition(node: FunctionNode, unit: Unit) -> None:
    if not isinstance(unit.node, FUNCTIONS):
        return
    if type(node) is not type(unit.node):
        raise Refusal(f"{unit.qualname} can't become a coroutine, or stop being one, while it is running")
    check_header(unit.node, NestedFunction(node, unit.qualname, unit.class_name))
    if not is_newest(unit.plain):
        again = brought_back(unit.node, find_function(newest(unit.plain)).node, node)
        if again is not None:
            raise Refusal(
                f"{unit.qualname} was changed by a surgery since this call of it began, and this text is of before: "
                f"later calls would lose `{again}` again. Edit the newest text"
            )


__all__ = ["Operation", "Preview", "find_unit", "operate", "preview"]

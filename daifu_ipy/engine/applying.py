"""From a repair to a takeover: where the unit goes on for each ending, and what arrives there."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import CellType, GeneratorType, TracebackType
from typing import Any

from daifu_ipy.engine.action import run_action
from daifu_ipy.engine.barrier import Barrier, Cells, Takeover
from daifu_ipy.engine.crash import Crash, CrashFrame, closure_cells, own_part
from daifu_ipy.engine.iterators import finished_generator, lost_item
from daifu_ipy.engine.location import CannotResume, JumpKind, Location, jump_target, leaves_group_handler
from daifu_ipy.engine.repairs import Break, Continue, Ending, Pass, Refusal, Return, Skip, Surgery
from daifu_ipy.engine.resume import VALUE, synthesise, takes_instance
from daifu_ipy.engine.scopes import mangle
from daifu_ipy.engine.shapes import BOX, ONCE, Shapes
from daifu_ipy.engine.unit import ITERATIONS, TRIES, WITHS


@dataclass(frozen=True)
class Plan:
    """What a repair comes to: in which frame, from which location, with which slots the unit goes on."""

    frame: CrashFrame
    location: Location
    slots: dict[str, Any]
    barrier: Barrier

    def takeover(self, cells: Cells | None = None) -> Takeover:
        """Make the takeover; `cells` gives the closure cells of a frame that still waited when it was captured."""
        if cells is not None:
            self._arrive(closure_cells(cells))
        return resume_at(self.barrier, self.frame, self.location, self.slots)

    def _arrive(self, cells: dict[str, CellType]) -> None:
        """An outer frame is being left now: take its variables as they are, and its cells."""
        frame = self.frame
        frame.look_again()
        for name in self.barrier.unit.cells:
            if name in cells:
                frame.cells[name] = cells[name]
                if name in frame.deleted:
                    del cells[name].cell_contents
            elif name not in frame.cells:
                frame.cells[name] = CellType(frame.variables[name]) if name in frame.variables else CellType()


def plan_for(crash: Crash, index: int, ending: Ending) -> Plan:
    """Plan how to carry out `ending` in frame `index` of a crash.

    Raises
    ------
    Refusal
        The ending can't be applied there; nothing was changed.
    """
    frame = crash.frame(index)
    if frame is None:
        raise Refusal(f"there is no vaccinated frame {index}")
    try:
        if isinstance(ending, Surgery):
            from daifu_ipy.engine.surgery import operate

            return operate(crash, index, ending)
        slots = dict(frame.slots)
        location = location_after(frame, ending)
        if isinstance(ending, Return):
            slots[VALUE] = _returned(frame, ending)
        plan = Plan(frame, location, slots, frame.barrier)
        check_loop(plan, ending, crash.traceback if index == 0 else None)
        procedure(plan.barrier, plan.location, arriving(frame, slots))  # compiles, or says now why not
        return plan
    except CannotResume as error:
        raise Refusal(str(error)) from None


def location_after(frame: CrashFrame, ending: Ending) -> Location:
    """Where a unit goes on."""
    location = frame.location
    match ending:
        case Pass():
            return location
        case Skip():
            return _skipped(frame, location)
        case Continue() | Break():
            return _jumped(frame, location, ending)
        case Return():
            if frame.unit.is_notebook_cell:
                raise Refusal("a notebook cell can't return: use Skip() or Break()")
            return _jump_at(frame, location, ast.Return)
        case _:
            raise Refusal(f"{type(ending).__name__} is not an ending that resumes")


def _skipped(frame: CrashFrame, location: Location) -> Location:
    statement, kind = location.statement, location.kind
    if isinstance(statement, ITERATIONS) and kind in ("next", "unpack"):
        return location.at("next")
    if isinstance(statement, WITHS) and kind == "exit":
        return replace(location, kind="after")
    if kind == "exit with exception":
        return location.at("left with exception")
    if kind == "target":
        return location.at("exit")
    if isinstance(statement, ast.While | ast.If) or kind in ("guard", "except") or isinstance(statement, ast.Match):
        what = {"guard": "a case's guard", "except": "a handler's type"}.get(kind, "a test")
        if isinstance(statement, ast.Match) and kind == "statement":
            what = "the subject of a match"
        raise Refusal(f"{what} can't be skipped: an action or an edit has to say what it should be")
    return location.at("after")


def check_iterator(
    frame: CrashFrame, location: Location, iterator: Any, traceback: TracebackType | None, *, dropped: bool
) -> None:
    """Refuse to ask an iterator that would go on without a word although something is missing.

    `dropped`: the ending leaves the item out, so that it is no surprise that it is gone.
    """
    line = location.statement.lineno
    finished = finished_generator(iterator)
    if finished is not None:
        raise Refusal(
            f"the generator {finished} has ended with this exception: asked again, it would end the loop "
            f"in line {line} as if there were no more items. Break() ends the loop; Surgery of the loop's header makes "
            "a new iterator"
        )
    lost = None if dropped else lost_item(iterator, traceback)
    if lost is not None:
        raise Refusal(
            f"the {lost} of the loop in line {line} has taken the item that its function failed on: asked again, it "
            "goes on with the next one. Skip() does that; Surgery of the loop's header makes a new iterator"
        )


def check_loop(plan: Plan, ending: Ending, traceback: TracebackType | None) -> None:
    """The same for a plan that asks a live iterator at once, or runs a statement with a finished generator again."""
    location, unit = plan.location, plan.barrier.unit
    if isinstance(location.statement, ITERATIONS) and location.kind == "next":
        iterator = plan.slots.get(unit.slot("i", location.statement))
        dropped = isinstance(ending, Skip | Continue)
        check_iterator(plan.frame, location, iterator, traceback, dropped=dropped)
    if location.kind != "statement" or not isinstance(ending, Pass):
        return
    died = set()
    while traceback is not None:
        died |= {traceback.tb_frame.f_code} if traceback.tb_frame.f_code.co_flags & inspect.CO_GENERATOR else set()
        traceback = traceback.tb_next
    if died:
        bound = plan.frame.view() if not unit.is_notebook_cell else plan.barrier.namespace
        for node in own_part(location.statement):
            value = bound.get(node.id) if isinstance(node, ast.Name) else None
            if isinstance(value, GeneratorType) and value.gi_code in died and value.gi_frame is None:
                raise Refusal(
                    f"the generator {ast.unparse(node)} has ended with this exception: asked again, it has no more "
                    "items. An action can make a new one"
                )


def _jumped(frame: CrashFrame, location: Location, ending: Continue | Break) -> Location:
    loop = jump_target(frame.unit, location)
    if loop is location.statement:
        if isinstance(ending, Break):
            return location.at("after")
        return location if isinstance(loop, ast.While) else location.at("next")
    return _jump_at(frame, location, ast.Continue if isinstance(ending, Continue) else ast.Break)


def _jump_at(frame: CrashFrame, location: Location, jump: JumpKind) -> Location:
    """A jump in place of the crashed statement, inside what is open there."""
    if leaves_group_handler(frame.unit, location, jump):
        raise Refusal("Python does not let a jump leave an except* clause")
    if location.kind in ("target", "except"):
        return replace(location, jump=jump)
    return replace(location, kind="jump", index=0, jump=jump)


def _returned(frame: CrashFrame, ending: Return) -> Any:
    if frame.unit.is_generator and frame.unit.is_async and ending.expression.strip() != "None":
        raise Refusal("an async generator can't return a value")
    try:
        ast.parse(ending.expression.strip(), mode="eval")
    except SyntaxError as error:
        raise Refusal(f"the value to return is no expression: {error.msg}") from None
    namespace = frame.namespace()
    result = run_action(f"{VALUE_NAME} = (\n{ending.expression.strip()}\n)", namespace)
    if result.error is not None:
        raise Refusal(f"the value to return can't be computed: {result.error}")
    return namespace.extras.pop(VALUE_NAME)


VALUE_NAME = "_daifu_value_"
"""Where an action leaves the value of a ``Return`` (actions can't write hidden names)."""


def arriving(frame: CrashFrame, slots: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables that an unfinished procedure receives; those that other functions share live on in their cells."""
    names = {name for name in frame.variables if name not in frame.unit.cells} | set(slots)
    if frame.unit.is_generator or frame.unit.is_async:
        names.add(BOX)
    if len(names) == 2:
        names.add(ONCE)  # two targets would look like a ``with`` being entered (`compiling.patch`)
    return tuple(sorted(names))


def resume_at(barrier: Barrier, frame: CrashFrame, location: Location, slots: Mapping[str, Any]) -> Takeover:
    """The takeover of a frame's variables by the unfinished procedure at `location`."""
    names = arriving(frame, slots)
    values = {**frame.variables, **slots, BOX: None, ONCE: None}
    code = procedure(barrier, location, names)
    instance = takes_instance(barrier.unit)
    given = [name for name in names if name != instance]
    return Takeover(
        code,
        barrier.namespace,
        frame.cells,
        [values[name] for name in given],
        [values.get(instance)] if instance is not None else [],
        given.index(BOX) if BOX in given else None,
    )


def procedure(barrier: Barrier, location: Location, names: tuple[str, ...]) -> Any:
    """The unfinished procedure at `location`, made once."""
    key = (location, names)
    if key not in barrier.procedures:
        try:
            barrier.procedures[key] = _synthesise(barrier, location, names)
        except (SyntaxError, RecursionError) as error:
            what = error.msg if isinstance(error, SyntaxError) else "it is nested too deeply"
            raise CannotResume(f"the rest of {barrier.unit.qualname} can't be compiled: {what}") from None
    return barrier.procedures[key]


def _synthesise(barrier: Barrier, location: Location, names: tuple[str, ...]) -> Any:
    return synthesise(_resumed_shapes(barrier), location, names, barrier.flags, dict(barrier.barriers))


def _resumed_shapes(barrier: Barrier) -> Shapes:
    """``super()`` finds no instance in a procedure where that is a closure variable: its arguments are written out."""
    unit, shapes = barrier.unit, barrier.shapes
    if "__class__" not in unit.plain.co_freevars or unit.first_argument not in unit.cells:
        return shapes
    if barrier.resumed_shapes is None:
        options = replace(shapes.options, explicit_super=True)
        barrier.resumed_shapes = Shapes(unit, shapes.placeholder, shapes.children, options)
    return barrier.resumed_shapes


def complete_slots(frame: CrashFrame, exception: BaseException | None) -> None:
    """Find what the location needs and the fast path left in the user's own variables.

    Raises
    ------
    CannotResume
        It can't be known.
    """
    unit, slots = frame.unit, frame.slots
    for owner, block in unit.path(frame.location.statement):
        if not isinstance(owner, TRIES) or block.field != "handler":
            continue
        if isinstance(owner, ast.TryStar):
            _require(slots, unit.slot("g", owner), owner)
            continue
        clause = owner.handlers[block.index]
        name = mangle(clause.name, unit.class_name) if clause.name else None
        handled = unit.slot("h", owner, block.index)
        if handled not in slots and name is not None and isinstance(frame.variables.get(name), BaseException):
            slots[handled] = frame.variables[name]
        _require(slots, handled, owner)
        if name is not None and name not in unit.plain_locals:
            shared = frame.barrier.namespace if name not in unit.cells else frame.view()
            if name in shared:
                slots[unit.slot("w", owner, block.index)] = shared[name]
    if frame.location.kind == "except":
        slots[unit.slot("c", frame.location.statement)] = _being_matched(frame, exception)


def _require(slots: dict[str, Any], name: str, owner: ast.stmt) -> None:
    if name not in slots:
        raise CannotResume(f"the exception handled in line {owner.lineno} is not known")


def _being_matched(frame: CrashFrame, exception: BaseException | None) -> BaseException:
    """The exception that looked for its handler: among the contexts, the one that was raised through the frame."""
    found = exception.__context__ if exception is not None else None
    while found is not None:
        if found.__traceback__ is not None and found.__traceback__.tb_frame is frame.frame:
            return found
        found = found.__context__
    raise CannotResume("the exception that looked for its handler is not known")


__all__ = ["Plan", "complete_slots", "location_after", "plan_for", "procedure", "resume_at"]

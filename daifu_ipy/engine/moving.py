"""What moves over to the new text with a surgery: the crashed frame's variables, and what is open in it."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import CellType
from typing import Any

from daifu_ipy.engine.applying import Plan, arriving, procedure
from daifu_ipy.engine.barrier import Barrier
from daifu_ipy.engine.crash import CrashFrame
from daifu_ipy.engine.location import CannotResume, Leaving, Location
from daifu_ipy.engine.matching import Pair
from daifu_ipy.engine.new_arguments import new_arguments
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.restarting import Place, Restarts
from daifu_ipy.engine.resume import FORCED, VALUE
from daifu_ipy.engine.scopes import HIDDEN, mangle
from daifu_ipy.engine.unit import Unit


def moved(frame: CrashFrame, barrier: Barrier, restarts: Restarts, place: Place) -> Plan:
    """The plan to go on at `place` with what the crashed frame has, as the new unit knows it.

    Raises
    ------
    Refusal
        The rest of the new unit can't be compiled there.
    """
    new = barrier.unit
    inside = {block for _, block in new.path(place.location.statement)}
    living = [pair for pair in restarts.found.living.values() if pair.new_block in inside]
    slots = _slots(frame, restarts, living, place.location)
    values = {**new_arguments(frame, new), **frame.extras, **frame.variables}
    _rename_handled(frame, new, living, values, slots)
    left = tuple(_left(frame, new, place.location, values, slots))
    location = replace(place.location, left=left)
    variables = {name: value for name, value in values.items() if name in new.plain_locals}
    cells = dict(frame.cells)
    for name in new.cells:
        if name not in cells:
            cells[name] = CellType(values[name]) if name in values else CellType()
    arrived = CrashFrame(barrier, frame.frame, location, frame.position, variables, slots, cells)
    arrived.written |= {name: value for name, value in variables.items() if name not in frame.variables}
    try:
        procedure(barrier, location, arriving(arrived, slots))
    except CannotResume as error:
        raise Refusal(str(error)) from None
    return Plan(arrived, location, slots, barrier)


def _slots(frame: CrashFrame, restarts: Restarts, living: list[Pair], location: Location) -> dict[str, Any]:
    """What is open around the new location, and what waits there, under the new unit's names."""
    old, new = frame.unit, restarts.new
    pairs = [(pair.old, pair.new) for pair in living]
    if location.kind == restarts.was.kind != "statement":
        pairs.append((restarts.was.statement, location.statement))
    jumps = restarts.jumps
    numbers = {old.number[was]: new.number[now] for was, now in [*pairs, *jumps.items()] if was and now}
    clauses = {
        (old.number[pair.old], pair.old_block.index): pair.new_block.index
        for pair in living
        if pair.old is not None and pair.old_block is not None and pair.new_block is not None
    }
    pending = {old.jumps[was].number: new.jumps[now].number for was, now in jumps.items()}
    slots: dict[str, Any] = {}
    for name, value in frame.slots.items():
        letter, number, index = _parts(name)
        if name == VALUE:
            slots[name] = value
        elif number in numbers:
            if letter in "hw" and index is not None:
                index = clauses.get((number, index), index)
            if letter == "k" and type(value) is int and 0 < value < FORCED:
                value = pending.get(value, 0)
            suffix = "" if index is None else f"_{index}"
            slots[f"{HIDDEN}{letter}{numbers[number]}{suffix}"] = value
    return slots


def _parts(name: str) -> tuple[str, int | None, int | None]:
    """Letter, number of the statement, and number of the clause of a slot's name; no numbers for others."""
    number, _, index = name[len(HIDDEN) + 1 :].partition("_")
    return name[len(HIDDEN)], int(number) if number.isdigit() else None, int(index) if index.isdigit() else None


def _rename_handled(
    frame: CrashFrame, new: Unit, living: list[Pair], values: dict[str, Any], slots: dict[str, Any]
) -> None:
    """A handler that is running has its exception under another name now, or under one at all."""
    for pair in living:
        if not (isinstance(pair.old, ast.Try) and isinstance(pair.new, ast.Try) and pair.old_block and pair.new_block):
            continue
        if pair.old_block.field != "handler":
            continue
        was, now = pair.old.handlers[pair.old_block.index].name, pair.new.handlers[pair.new_block.index].name
        handled = new.slot("h", pair.new, pair.new_block.index)
        if was == now or handled not in slots:
            continue
        if was is not None:
            values.pop(mangle(was, frame.unit.class_name), None)
        if now is not None:
            name = mangle(now, new.class_name)
            if name in new.plain_locals:
                values[name] = slots[handled]
            else:
                slots[new.slot("w", pair.new, pair.new_block.index)] = slots[handled]


def _left(
    frame: CrashFrame, new: Unit, location: Location, values: dict[str, Any], slots: dict[str, Any]
) -> list[Leaving]:
    """What is left first, under names that the new unit has no other use for."""
    made: list[Leaving] = []
    for how, name in location.left:
        if how != "unbind":
            kept = f"{HIDDEN}left{len(made)}"
            slots[kept] = frame.slots[name]
            made.append((how, kept))
        elif name in new.plain_locals:
            values.pop(name, None)
        elif name in new.cells or name in new.declared_globals:
            made.append((how, name))
    return made


__all__ = ["moved"]

"""Has a statement that a repair ran again failed again, or has it succeeded since?"""

from __future__ import annotations

import ast
import dis
from types import CodeType, TracebackType

from daifu_ipy.engine.crash import CrashFrame
from daifu_ipy.engine.shapes import ONCE
from daifu_ipy.engine.unit import ITERATIONS, LOOPS


def failed_again(frame: CrashFrame, entry: TracebackType | None) -> bool | None:
    """Whether the statement that a repair ran again has failed again, without any success in between.

    None where it can't be told: the header of a loop runs from the same instructions each time. `entry` is the frame's
    entry of the traceback; a frame that still waits has none.
    """
    running = frame.frame
    if running is None:
        return None
    resumed = [key for key, code in frame.barrier.procedures.items() if code is running.f_code]
    if not any(isinstance(key, tuple) and key[0] == frame.location for key in resumed):
        return False
    if not _has_own_instructions(frame):
        return None
    rest = _rest_of_iteration(running.f_code)
    return rest is None or (running.f_lasti if entry is None else entry.tb_lasti) in rest


def _has_own_instructions(frame: CrashFrame) -> bool:
    """Whether the retried statement has instructions apart from those for later iterations, in the code's order."""
    location, path = frame.location, frame.unit.path(frame.location.statement)
    if isinstance(location.statement, ast.While) or (
        isinstance(location.statement, ITERATIONS) and location.kind == "next"
    ):
        return False
    if not any(isinstance(owner, LOOPS) and block.field == "body" for owner, block in path):
        return True
    if any(block.field in ("handler", "finalbody") for _, block in path):
        return False  # the compiler moves those to the end
    return location.kind in ("statement", "unpack", "target", "guard")


def _rest_of_iteration(code: CodeType) -> range | None:
    """The instructions of a procedure for the rest of the innermost interrupted iteration (`Shapes.once`)."""
    rest, before = None, None
    for instruction in dis.get_instructions(code):
        is_once = instruction.opname.startswith("STORE_") and instruction.argval == ONCE
        if is_once and before is not None and before.opname == "FOR_ITER":
            rest = range(instruction.offset, before.argval)
        before = instruction
    return rest


__all__ = ["failed_again"]

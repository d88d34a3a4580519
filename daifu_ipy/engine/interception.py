"""Interception: is this exception a crash, who decides, and what becomes of the decision."""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from daifu_ipy.engine.applying import Plan, complete_slots, plan_for
from daifu_ipy.engine.barrier import Barrier, Cells, Takeover
from daifu_ipy.engine.crash import Crash, CrashFrame, frame_of, position_of
from daifu_ipy.engine.frames import entry_of, forget, look
from daifu_ipy.engine.handled import SKIP, Place, is_stop, protocol_exception, thrown_in, would_handle
from daifu_ipy.engine.location import CannotResume, Location, barrier_of
from daifu_ipy.engine.managers import Manager, current_manager, manager_by_api, rehearsing, settings
from daifu_ipy.engine.native import barrier_in, is_injected, stands_aside, vaccinated_callers
from daifu_ipy.engine.repairs import Abort, Refusal, Repair
from daifu_ipy.engine.shapes import BARE_RAISE
from daifu_ipy.engine.undecided import Undecided
from daifu_ipy.engine.unit import TRIES, WITHS, Span, Unit, WithNode, end_of

FORWARDED, ABORTED = "@daifu_forwarded", "@daifu_aborted"
"""Marks on an exception under way: to the frame that a repair named; out of all units. They go when it arrives."""

SUSPENDED = 0x20 | 0x80 | 0x200  # generators, coroutines, async generators


SUSPENSIONS = frozenset({"YIELD_VALUE", "RESUME", "SEND", "JUMP_BACKWARD_NO_INTERRUPT", "RETURN_GENERATOR", "POP_TOP"})
"""Where a generator or coroutine rests, on one version of Python or another."""


class _Thread(threading.local):
    """What interception remembers of one thread."""

    repairing = False


_thread = _Thread()


@contextlib.contextmanager
def part_of_a_repair() -> Iterator[None]:
    """What this block runs on this thread belongs to a repair, as the repr of a variable does: it can't crash."""
    before, _thread.repairing = _thread.repairing, True
    try:
        yield
    finally:
        _thread.repairing = before


def intercept(
    barrier: Barrier, frame: FrameType, exception: BaseException, key: str | None, cells: Cells | None
) -> Takeover | None:
    """Decide about an exception that arrives at a barrier: a takeover, or None to let it go on.

    Parameters
    ----------
    barrier
        The unit's barrier.
    frame
        The frame that the exception is about to leave, or a part of it.
    exception
        The exception.
    key
        Which barrier inside the unit asks; None for the unit's own.
    cells
        Gives the frame's closure cells.
    """
    if _thread.repairing:
        return None
    marks = vars(exception)
    if FORWARDED in marks:
        return _arrived(frame, exception, cells)
    if ABORTED in marks:
        last = key is None and not any(vaccinated_callers(frame)) and not _is_carried(frame)
        under_way = _is_under_way(marks[ABORTED], frame, exception)
        if last or not under_way:
            del marks[ABORTED]
        if under_way:
            return None
    manager = current_manager()
    if manager is None or not _may_ask(barrier, frame, exception, key):
        return None
    if not _is_crash(barrier, frame, exception, key):
        return None
    try:
        captured = _capture(barrier, frame, exception, key, cells)
    except CannotResume as reason:
        forget(frame)
        exception.add_note(f"daifu_ipy: not intercepted: {reason}")
        return None
    if captured is None:
        forget(frame)
        return None
    crash = Crash(exception, captured, functools.partial(_outer_frames, frame), entry_of(exception, frame))
    return _decide(crash, exception, frame, key, manager)


# is it a crash


def _may_ask(barrier: Barrier, frame: FrameType, exception: BaseException, key: str | None) -> bool:
    """Whether the barrier may be the innermost around the place, as far as the position alone tells."""
    entry = entry_of(exception, frame)
    if entry is None or (key is not None and key.startswith("handler")):
        return True
    line, _, column, _ = position_of(frame.f_code, entry.tb_lasti)
    statement = barrier.unit.statement_at((line, column))
    if statement is None or isinstance(statement, (*WITHS, *TRIES)):
        return True
    return barrier.unit.innermost_barrier(barrier.unit.path(statement)) == key


def _is_crash(barrier: Barrier, frame: FrameType, exception: BaseException, key: str | None) -> bool:
    if isinstance(exception, KeyboardInterrupt) and manager_by_api() is None:
        return False
    if settings.intercept == "all":
        return True
    if _is_thrown_in(frame, exception) or protocol_exception(exception, frame) is not None:
        return False

    def locate(asked: FrameType) -> Place | None:
        return _own_place(barrier, frame, exception, key) if asked is frame else _place(asked)

    verdict = would_handle(exception, frame, locate=locate)
    if verdict.handled is None and settings.intercept != "unhandled":
        unit = barrier.unit
        settings.undecided.add(Undecided(type(exception).__name__, unit.qualname, unit.plain.co_filename, verdict.by))
        return False
    return verdict.handled is not True


def _is_thrown_in(frame: FrameType, exception: BaseException) -> bool:
    """Whether a consumer threw the exception into this generator or coroutine; what leaves the consumer is its own."""
    entry = entry_of(exception, frame)
    if not frame.f_code.co_flags & SUSPENDED or entry is None:
        return False
    return _opname(frame.f_code, entry.tb_lasti) in SUSPENSIONS and thrown_in(exception)


def _own_place(barrier: Barrier, frame: FrameType, exception: BaseException, key: str | None) -> Place | None:
    """Where the crashed unit is in its native code."""
    entry = entry_of(exception, frame)
    span = position_of(frame.f_code, entry.tb_lasti) if entry is not None else None
    if key is not None and key.startswith("handler"):
        raised = _bare_raise(barrier.unit, {BARE_RAISE: look(frame, BARE_RAISE)})
        inside = span is not None and _is_in_handler(barrier.unit, barrier.unit.statement_at((span[0], span[2])), key)
        if raised is not None and not inside:
            span = (raised.lineno, *end_of(raised)[:1], raised.col_offset, end_of(raised)[1])
    return None if span is None else _plain_place(barrier, frame, span)


def _place(frame: FrameType) -> Place | None:
    """What stands for a caller: of a vaccinated one its native code, of the tool's own nothing."""
    if frame.f_code.co_filename == __file__ or stands_aside(frame):
        return SKIP
    barrier = barrier_in(frame.f_code)
    return None if barrier is None else _plain_place(barrier, frame, position_of(frame.f_code, frame.f_lasti))


def _plain_place(barrier: Barrier, frame: FrameType, span: Span) -> Place | None:
    unit = barrier.unit
    offset = unit.plain_offset(span)

    around = unit.open_withs((span[0], span[2]))
    asked: dict[int, object | None] = {}

    def managing(at: int) -> object | None:
        """The manager of a ``with`` on the way out: items of one statement may share a position, and come in order."""
        line, _, column, _ = position_of(unit.plain, at)
        if at not in asked:
            for index, (statement, first) in enumerate(around):
                if (line, column) in (
                    first,
                    (statement.lineno, statement.col_offset),
                    _expression_start(statement),
                ):
                    del around[index]
                    manager = getattr(look(frame, unit.slot("x", statement)), "__self__", None)
                    asked[at] = manager if hasattr(type(manager), "__exit__") else None
                    break
        return asked.get(at)

    return None if offset is None else Place(unit.plain, offset, frame, managing)


def _expression_start(statement: WithNode) -> tuple[int, int]:
    expression = statement.items[0].context_expr
    return expression.lineno, expression.col_offset


def _capture(
    barrier: Barrier, frame: FrameType, exception: BaseException, key: str | None, cells: Cells | None
) -> CrashFrame | None:
    """Capture the crashed frame; None if an inner barrier has been asked about this place already."""

    def relocate(unit: Unit, location: Location, slots: Mapping[str, Any]) -> Location:
        return _raised_again(unit, location, key, slots)

    entry = entry_of(exception, frame)
    if entry is None:
        if key is None or not key.startswith("handler"):
            return None  # raised again from a place that another frame has left
        lasti = frame.f_lasti
    else:
        lasti = entry.tb_lasti
        if is_injected(position_of(frame.f_code, lasti)):
            return None  # raised again by our own code
    captured = frame_of(barrier, frame, lasti, cells, relocate)
    if barrier_of(barrier.unit, captured.location) != key:
        return None
    complete_slots(captured, exception)
    return captured


def _raised_again(unit: Unit, location: Location, key: str | None, slots: Mapping[str, Any]) -> Location:
    """A bare ``raise`` adds no traceback entry: what arrives at a handler's barrier from outside it came from there."""
    if key is None or not key.startswith("handler") or _is_in_handler(unit, location.statement, key):
        return location
    raised = _bare_raise(unit, slots)
    if raised is None:
        raise CannotResume("the exception was raised again where it was handled")
    return Location(raised, "statement", 0, location.pending)


def _bare_raise(unit: Unit, slots: Mapping[str, Any]) -> ast.stmt | None:
    number = slots.get(BARE_RAISE)
    return next((s for s, n in unit.number.items() if n == number and isinstance(s, ast.Raise)), None)


def _is_in_handler(unit: Unit, statement: ast.stmt | None, key: str) -> bool:
    """Whether `statement` stands in the handler whose barrier is called `key`."""
    if statement is None:
        return False
    return any(
        block.field == "handler" and unit.barrier_key(owner, "handler", block.index) == key
        for owner, block in unit.path(statement)
    )


def _outer_frames(frame: FrameType) -> Iterator[CrashFrame]:
    """The vaccinated frames further out, at the calls that they wait for."""
    for outer, barrier in vaccinated_callers(frame):
        if not stands_aside(outer):
            try:
                captured = frame_of(barrier, outer, outer.f_lasti, None, is_outer=True)
                complete_slots(captured, None)
            except CannotResume:
                forget(outer)  # it can't be repaired there; further out perhaps
                continue
            yield captured


# decisions


def _decide(
    crash: Crash, exception: BaseException, frame: FrameType, key: str | None, manager: Manager
) -> Takeover | None:
    started = time.perf_counter()
    decision = Decision()
    try:
        _thread.repairing = True
        with settings.lock:
            settings.pending.append(crash)
        decision = _ask(crash, manager)
    except Exception as error:
        decision.reason = f"the repair failed: {type(error).__name__}: {error}"
    except BaseException as error:
        decision.reason = f"the repair manager was stopped by {type(error).__name__}"
    finally:
        _thread.repairing = False
        with settings.lock:
            settings.pending[:] = [other for other in settings.pending if other is not crash]
    seconds = time.perf_counter() - started
    if decision.plan is None:
        if decision.reason is not None:
            exception.add_note(f"daifu_ipy: aborted: {decision.reason}")
        _close(crash, decision.repair, seconds, "aborted")
        forget(frame)
        outer = [id(caller) for caller, _ in vaccinated_callers(frame)]
        if key is not None or outer or _is_carried(frame):
            vars(exception)[ABORTED] = (id(frame), frozenset([id(frame), *outer]))
        return None
    target = decision.plan.frame.frame
    if target is not frame and target is not None:
        vars(exception)[FORWARDED] = (target, decision.plan)
        _close(crash, decision.repair, seconds, "recovered", keep=decision.plan.frame)
        return None
    keeps = _refers_to(decision.plan.frame, exception)
    takeover = decision.plan.takeover()
    _close(crash, decision.repair, seconds, "recovered")
    _release(exception, frame, keeps=keeps)
    return takeover


@dataclass
class Decision:
    """What a manager's answers came to; without a plan the crash is aborted, with a `reason` if nobody wished it."""

    repair: Repair | None = None
    plan: Plan | None = None
    reason: str | None = None


def _ask(crash: Crash, manager: Manager) -> Decision:
    """Ask until a repair can be applied; the same refused repair twice aborts."""
    refused: Repair | None = None
    while True:
        answer = crash.decision or manager(crash)
        answer = crash.decision or answer  # the first decision wins
        if answer is None:
            return Decision(reason=crash.refusal or "the repair manager gave no repair")
        repair = Repair.of(answer)
        if not crash.decide(repair):
            repair = crash.decision or repair
        try:
            return Decision(repair, _apply(crash, repair))
        except (Exception, KeyboardInterrupt) as error:
            reason = _why(error)
        if repair == refused:
            return Decision(repair, reason=f"refused twice: {reason}")
        refused = repair
        crash.reopen(reason, repair)


def _why(error: BaseException) -> str:
    """Why a repair could not be applied: also where that shows in a fault of Python's, or of ours."""
    if isinstance(error, Refusal):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return "it was stopped"
    return f"the repair failed: {type(error).__name__}: {str(error)[:500]}"


def _apply(crash: Crash, repair: Repair) -> Plan | None:
    actions = list(repair.each_action())
    for index in (repair.frame, *(action.frame for action in actions)):
        if crash.frame(index) is None:
            raise Refusal(f"there is no vaccinated frame {index}: the stack has {len(crash.frames)}")
    before = crash.acted
    for number, action in enumerate(actions, 1):
        result = crash.action(action.code, action.frame)
        if result.error is not None:
            raise Refusal(f"action {number} failed: {result.error}")
    plan = None if isinstance(repair.then, Abort) else plan_for(crash, repair.frame, repair.then)
    crash.acted = before  # they are part of the repair; of a refused one, they are done and belong to the next
    return plan


def _is_carrier(frame: FrameType) -> bool:
    """Whether a frame is of the machinery that hands an exception from one task or thread to another."""
    return str(frame.f_globals.get("__name__")).startswith(("asyncio.", "concurrent.futures."))


def _is_carried(frame: FrameType) -> bool:
    """Whether what leaves this stack goes on elsewhere: to who awaits the task, or asks the future."""
    outer = frame.f_back
    while outer is not None and not is_stop(outer):
        outer = outer.f_back
    return outer is not None and _is_carrier(outer)


def _is_under_way(mark: tuple[int, frozenset[int]], frame: FrameType, exception: BaseException) -> bool:
    """Whether an aborted exception is still on its way out, and not raised again by somebody who had kept it."""
    aborted, frames = mark
    entry = exception.__traceback__
    if entry is None:
        return False
    while entry is not None and id(entry.tb_frame) != aborted:
        again = _opname(entry.tb_frame.f_code, entry.tb_lasti) == "RAISE_VARARGS"
        if again and not _is_carrier(entry.tb_frame):
            return False  # further out nobody has raised it yet
        entry = entry.tb_next
    if entry is None:
        return id(frame) in frames
    return entry.tb_next is None or entry.tb_next.tb_frame is not entry.tb_frame


def _opname(code: CodeType, lasti: int) -> str:
    return dis.opname[code.co_code[lasti]]


def _close(crash: Crash, repair: Repair | None, seconds: float, outcome: str, keep: CrashFrame | None = None) -> None:
    for tell in () if rehearsing.get() else tuple(settings.on_closed):
        with contextlib.suppress(Exception, KeyboardInterrupt):  # what was decided stands, whoever fails to hear of it
            tell(crash, repair, seconds, outcome)
    crash.close(outcome, keep)


def _arrived(frame: FrameType, exception: BaseException, cells: Cells | None) -> Takeover | None:
    """An exception on its way to the frame that its repair named."""
    target, plan = vars(exception)[FORWARDED]
    if target is not frame:
        return None
    del vars(exception)[FORWARDED]
    keeps = _refers_to(plan.frame, exception)
    takeover: Takeover = plan.takeover(cells if cells is not None else lambda: None)
    plan.frame.let_go()
    _release(exception, frame, keeps=keeps)
    return takeover


def _refers_to(frame: CrashFrame, exception: BaseException) -> bool:
    """Whether the unit goes on with the exception itself: handles it, or holds it in a variable."""
    kept = [value[1] if type(value) is tuple and len(value) == 3 else value for value in frame.slots.values()]
    return any(value is exception for value in (*frame.variables.values(), *kept))


def _release(exception: BaseException, frame: FrameType, *, keeps: bool) -> None:
    """Free what the failed call left behind, also where it has made a cycle with its exception."""
    for tell in settings.on_release:
        tell(exception)
    if exception is getattr(sys, "last_value", None) or exception is getattr(sys, "last_exc", None):
        for name in ("last_exc", "last_value", "last_type", "last_traceback"):
            sys.__dict__.pop(name, None)
    if keeps:
        return
    entry = entry_of(exception, frame)
    inner = entry.tb_next if entry is not None else None
    while inner is not None:
        dead = inner.tb_frame
        if not dead.f_code.co_flags & SUSPENDED and dead is not frame:
            try:
                dead.clear()
                forget(dead)
            except RuntimeError:
                pass  # it is executing: the exception was raised again further out
        inner = inner.tb_next
    exception.__traceback__ = None


__all__ = ["barrier_in", "intercept"]

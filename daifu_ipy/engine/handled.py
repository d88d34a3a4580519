"""Would the program itself handle this exception? No source is read, and no code of the user is run.

The callers are walked outward. In each, the innermost exception-table entry that covers the executing
instruction leads to handler code. A `Passage` follows that code without running it. Its state is the
exceptions being handled and the one that waits on the value stack; what it collects are *fates*: the
exception is swallowed (True), it or another one leaves the code (a `Flight`), or nobody can tell (None). A
handler handles only if it can end without raising; calls in it are taken to return, except for `sys.exit` and
its like.

Between a frame and its caller may lie C code that takes an exception as an answer (`for` swallows
`StopIteration`, `hasattr` swallows `AttributeError`): the instruction that the caller executes tells.

Not seen: who asks a future for its exception later, weakref callbacks, what C extensions swallow, and
handlers that call a function which always raises.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Final

from daifu_ipy.engine.bytecode import IS_GENERATOR, Code, Memory, Refs, Scope, code_of, refs_to
from daifu_ipy.engine.passage import Fate, Fates, Flight, Passage, agreed
from daifu_ipy.engine.protocols import PROTOCOL_TYPES, protocol_exception, swallowed_by_caller, thrown_in
from daifu_ipy.engine.with_blocks import suspension, with_fate

__all__ = ["SKIP", "Place", "Verdict", "protocol_exception", "thrown_in", "would_handle"]

_MOST_FORKS: Final = 50  # of one question: what takes more is undecidable
_MOST_KEPT: Final = 100  # memories of one code object


@dataclass(frozen=True)
class Verdict:
    """Whether an exception would be handled further out.

    Attributes
    ----------
    handled
        True: a handler will swallow it. False: nobody will. None: undecidable, and the caller declines.
    by
        The handler, for humans: ``except ValueError in train (nb.py:12)``.
    """

    handled: bool | None
    by: str = ""


@dataclass(frozen=True)
class Place:
    """A code position that an exception is passing.

    Attributes
    ----------
    code, lasti
        Plain code, and the offset of the executing instruction in it.
    frame
        Where names are looked up.
    manager
        From the offset of a ``WITH_EXCEPT_START`` to that block's context manager; None where not known.
    """

    code: CodeType
    lasti: int
    frame: FrameType
    manager: Callable[[int], object | None] | None = None


SKIP: Final[Place] = object.__new__(Place)
"""What `locate` answers for a frame of the tool itself, to pass it over. It is known by identity."""


def would_handle(exc: BaseException, frame: FrameType, *, locate: Callable[[FrameType], Place | None]) -> Verdict:
    """Tell whether `frame`, or a frame further out, would handle an exception that is leaving it.

    Parameters
    ----------
    exc
        The exception. Neither it nor the frames are changed or kept.
    frame
        The frame that the exception is about to leave at its current position.
    locate
        What stands for a frame: a `Place` for rewritten code, `SKIP` for the tool's own, None for itself.
    """
    return _Judge(locate).outward(Flight(type(exc), exc), frame)


# The runners: they catch everything, but are not the program's handlers. By module; () stands for all of it.
_STOPS: Final[dict[str, tuple[str, ...]]] = {
    "IPython.core.interactiveshell": (),
    "IPython.core.magics.execution": (),
    "_pytest.python": ("pytest_pyfunc_call",),
    "_pytest.runner": (),
    "asyncio.events": ("_run",),
    "asyncio.tasks": ("__step", "__step_run_and_handle_result", "__wakeup"),
    "bdb": ("run", "runctx", "runeval", "runcall"),
    "code": ("runcode",),
    "concurrent.futures.process": ("_process_worker",),
    "concurrent.futures.thread": ("run", "_worker"),
    "daifu_ipy.testing": ("_run",),
    "doctest": ("__run",),
    "multiprocessing.pool": ("worker",),
    "multiprocessing.process": ("_bootstrap",),
    "pdb": ("_run", "_runmodule", "_runscript", "main"),
    "pluggy._callers": (),
    "runpy": (),
    "threading": ("run", "_bootstrap", "_bootstrap_inner"),
    "unittest.case": ("run", "_callTestMethod", "_callSetUp", "_callTearDown", "_callCleanup"),
}


def is_stop(frame: FrameType) -> bool:
    """Whether a frame is a runner's own: behind it nothing of the program is waiting, except for a task."""
    names = _STOPS.get(frame.f_globals.get("__name__", ""))
    return names is not None and (not names or frame.f_code.co_name in names)


class _Judge:
    """Answers one question: it carries an exception outward, frame by frame."""

    def __init__(self, locate: Callable[[FrameType], Place | None]) -> None:
        self.locate = locate
        self.forks = 0
        self.anything = Flight(None)
        self._of_class: dict[type[BaseException], Flight] = {}

    def of_class(self, cls: Any) -> Flight:
        """What `raise cls` raises: one flight for each class, so that states can be compared."""
        if issubclass(type(cls), type) and issubclass(cls, BaseException):
            return self._of_class.setdefault(cls, Flight(cls))
        return self.anything

    def with_fate(self, passage: Passage, at: int, flight: Flight) -> Fate:
        return with_fate(passage, at, flight)

    def outward(self, flight: Flight, frame: FrameType | None) -> Verdict:
        """The verdict on an exception at the current position of `frame`."""
        while frame is not None:
            place = self.locate(frame)
            if place is not SKIP:
                if is_stop(frame):
                    return self._beyond(flight, frame)
                plain, lasti = (place.code, place.lasti) if place else (frame.f_code, frame.f_lasti)
                if plain.co_exceptiontable and (target := (code := code_of(plain)).target(lasti)) >= 0:
                    fates = self._pass(code, target, flight, place.frame if place else frame, place)
                    (fate, *others) = fates
                    if others or not isinstance(fate, Flight):
                        self.forks += bool(others)
                        return _settled(self._after(fate, by, frame) for fate, by in fates.items())
                    flight = fate
                after = self._leave(flight, frame)
                if isinstance(after, Verdict):
                    return after
                flight = after
            frame = frame.f_back
        return Verdict(False)

    def _after(self, fate: Fate, by: str, frame: FrameType) -> Verdict:
        """The verdict on one of several fates in `frame`."""
        if not isinstance(fate, Flight):
            return Verdict(fate, by)
        if self.forks > _MOST_FORKS:
            return Verdict(None, "too many mixed handlers")
        left = self._leave(fate, frame)
        return left if isinstance(left, Verdict) else self.outward(left, frame.f_back)

    def _pass(self, code: Code, target: int, flight: Flight, frame: FrameType, place: Place | None) -> Fates:
        """What the handler at offset `target` makes of it; remembered with the values that this rests on."""
        key, scope = (target, id(flight.cls)), Scope(frame)
        known = code.memory.get(key) if flight.exc is not None else None
        if known is not None and known.cls() is flight.cls and known.holds(scope):
            return {self._recalled(fate, flight): by for fate, by in known.fates}
        passage = Passage(self, code, scope, place)
        fates = passage.run(target, flight)
        if passage.is_lasting and flight.cls and flight.exc is not None and not flight.is_group:
            with contextlib.suppress(TypeError):  # what can't be referred to weakly is not remembered
                facts = [(tree, refs_to(value)) for tree, value in passage.facts]
                kept = [(_remembered(fate, flight), by) for fate, by in fates.items()]
                if len(code.memory) > _MOST_KEPT:
                    code.memory.clear()
                code.memory[key] = Memory(weakref.ref(flight.cls), facts, kept)
        return fates

    def _recalled(self, fate: Refs | bool | None, flight: Flight) -> Fate:
        if isinstance(fate, tuple):
            return self.of_class(fate[0]()) if fate else flight
        return fate

    def through(self, frame: FrameType, flight: Flight) -> Fates:
        """What becomes of an exception that is thrown into a suspended frame."""
        place = self.locate(frame)
        if place is None or place is SKIP:
            place = Place(frame.f_code, frame.f_lasti, frame)
        code = code_of(place.code)
        at = code.index(place.lasti)
        at -= code.ops[at].name == "RESUME"  # 3.13 rests there, but the exception comes out of the yield before
        target = code.target(code.offsets[at])
        return {flight: ""} if target < 0 else self._pass(code, target, flight, place.frame, place)

    def _leave(self, flight: Flight, frame: FrameType) -> Flight | Verdict:
        """What comes out of `frame`; a verdict where C code between it and its caller decides."""
        cls, code = flight.cls, frame.f_code
        if code.co_name == "__del__":
            return Verdict(True, "__del__")
        if cls is None or not issubclass(cls, PROTOCOL_TYPES):
            return flight
        stops = (StopIteration, StopAsyncIteration) if code.co_flags & inspect.CO_ASYNC_GENERATOR else StopIteration
        if code.co_flags & IS_GENERATOR and issubclass(cls, stops):
            return self.of_class(RuntimeError)
        swallowed = swallowed_by_caller(cls, frame)
        if swallowed is False:
            return flight
        caller = f" in {frame.f_back.f_code.co_name}" if frame.f_back else ""
        return Verdict(swallowed, f"the caller of {code.co_name}{caller}, as the answer to a protocol")

    def _beyond(self, flight: Flight, frame: FrameType) -> Verdict:
        """Beyond a runner: only what ends a task goes anywhere, to who awaits the task."""
        if not frame.f_globals["__name__"].startswith("asyncio."):
            return Verdict(False)
        try:
            task = sys.modules["asyncio"].current_task()
        except RuntimeError:
            task = None
        return Verdict(False) if task is None else self._future(flight, task, frame)

    def _future(self, flight: Flight, future: Any, frame: FrameType) -> Verdict:
        """The verdict on the exception that a future ends with. `frame` is the event loop's."""
        tasks = sys.modules["asyncio"].all_tasks()
        verdicts = [self._waiter(flight, task, frame) for task in tasks if task._fut_waiter is future]
        for callback, _ in future._callbacks or ():
            verdicts.extend(self._called_back(flight, callback, frame))
        return _settled(verdicts or [Verdict(False)])

    def _waiter(self, flight: Flight, task: Any, frame: FrameType) -> Verdict:
        """The verdict on what is thrown into a suspended task: the innermost of its frames gets it first."""
        frames, step = list[FrameType](), task.get_coro()
        while suspended := suspension(step):
            frames.append(suspended[0])
            step = suspended[1]
        if step is not None and type(step).__name__ != "FutureIter":
            return Verdict(None, f"an await of {type(step).__name__}")
        for inner in reversed(frames):
            if is_stop(inner):
                return Verdict(False)
            if self.locate(inner) is SKIP:
                continue
            fates = self.through(inner, flight)
            left = _only(fates)
            if left is None:
                return _settled(Verdict(None if isinstance(fate, Flight) else fate, by) for fate, by in fates.items())
            flight = left
        return self._future(flight, task, frame)

    def _called_back(self, flight: Flight, callback: Any, frame: FrameType | None) -> Iterator[Verdict]:
        """The verdict on a future's exception in its done callback; none for one that only wakes a waiter."""
        name = getattr(callback, "__qualname__", type(callback).__name__)
        if name == "_run_until_complete_cb":
            while frame is not None and frame.f_code.co_name != "run_until_complete":
                frame = frame.f_back
            yield self.outward(flight, frame and frame.f_back)
        elif name == "gather.<locals>._done_callback" and frame is not None:
            cells = dict(zip(callback.__code__.co_freevars, callback.__closure__, strict=True))
            if cells["return_exceptions"].cell_contents:
                yield Verdict(True, "gather(return_exceptions=True)")
            else:
                yield self._future(flight, cells["outer"].cell_contents, frame)
        elif type(callback) is not types.BuiltinFunctionType and not name.endswith("__wakeup"):
            yield Verdict(None, f"the done callback {name}")


def _remembered(fate: Fate, flight: Flight) -> Refs | bool | None:
    """A fate without the exception: () for the one that came, a reference to the class for another one."""
    if not isinstance(fate, Flight):
        return fate
    return () if fate is flight else refs_to(fate.cls if fate.exc is None else None)


def _only(fates: Fates) -> Flight | None:
    """The exception that comes out, if nothing else may happen."""
    fate = agreed(fates)
    return fate if isinstance(fate, Flight) else None


def _settled(verdicts: Iterable[Verdict]) -> Verdict:
    """What several ways lead to: decided only if they all lead to the same."""
    every = list(verdicts)
    if len({verdict.handled for verdict in every}) == 1:
        return every[0]
    return Verdict(None, "perhaps " + next((verdict.by for verdict in every if verdict.by), "handled"))

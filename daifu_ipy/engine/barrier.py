"""Run time of vaccinated code: crash barriers, takeovers, and the trampoline that runs unfinished procedures.

Every unit has one `Barrier`; its code holds it as a constant and calls its methods, nearly all of them only after an
exception. A takeover is parked by the frame that it will leave, travels through the frame as an exception that no user
code may see, and ends at the unit's own barrier. There the handler is left, the frame drops its variables, and the
trampoline calls the unfinished procedure: one that crashes again returns its takeover to the same trampoline, so that a
thousand recoveries in one call need no deeper stack.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping
from types import CellType, CodeType, FrameType, TracebackType
from typing import Any

from daifu_ipy.engine.compiling import function_from
from daifu_ipy.engine.frames import entry_of, forget
from daifu_ipy.engine.invariants import InternalError
from daifu_ipy.engine.scopes import HIDDEN
from daifu_ipy.engine.shapes import STATE, Shapes
from daifu_ipy.engine.unit import Unit

HERE = __file__

Cells = Callable[[], object]


class Takeover(BaseException):
    """Control passes from a crashed frame to an unfinished procedure. Never leaves the frame that it was made for."""

    def __init__(
        self,
        code: CodeType,
        namespace: dict[str, Any],
        closure: Mapping[str, CellType],
        state: list[Any],
        instance: list[Any],
        box_at: int | None,
    ) -> None:
        super().__init__()
        self.function = function_from(code, namespace, {**closure, STATE: CellType(state)})
        self.state = state
        self.instance = instance
        self.box_at = box_at

    def call(self, box: list[Takeover] | None = None) -> Any:
        """Call the unfinished procedure, which empties the state."""
        if box is not None and self.box_at is not None:
            self.state[self.box_at] = box
        self.state = []
        return self.function(self.instance.pop()) if self.instance else self.function()


_parked: dict[FrameType, Takeover] = {}


class Once:
    """Makes a ``for`` go on with a live iterator, without a second ``__iter__`` call of that iterator."""

    __slots__ = ("iterator",)

    def __init__(self, iterator: Any) -> None:
        if not hasattr(type(iterator), "__next__") and not hasattr(type(iterator), "__anext__"):
            raise InternalError(f"a live iterator was expected in a loop's slot, not {type(iterator).__name__}")
        self.iterator = iterator

    def __iter__(self) -> Iterator[Any]:
        return self.iterator  # type: ignore[no-any-return]

    def __aiter__(self) -> Any:
        return self.iterator


def _note(exception: BaseException, text: str) -> None:
    try:
        BaseException.add_note(exception, text)
    except Exception:  # noqa: S110 - an exception that takes no notes goes on without
        pass


class Barrier:
    """What the vaccinated code of one unit calls; see the module's text.

    Attributes
    ----------
    unit, shapes
        The unit and its vaccinated form.
    namespace
        The globals of its code.
    barriers
        This barrier and those of the functions in the unit, by placeholder.
    procedures
        The unfinished procedures made so far, by restart location and arriving names.
    """

    takeover_type = Takeover
    any_exception = BaseException
    generator_exit = GeneratorExit
    stop_async_iteration = StopAsyncIteration
    iter = staticmethod(iter)
    aiter = staticmethod(aiter)
    exc_info = staticmethod(sys.exc_info)
    once = Once

    def __init__(self, unit: Unit, shapes: Shapes, namespace: dict[str, Any], flags: int) -> None:
        self.unit = unit
        self.shapes = shapes
        self.namespace = namespace
        self.flags = flags
        self.barriers: dict[str, Barrier] = {}
        self.procedures: dict[object, CodeType] = {}
        self.repeats: dict[object, tuple[str, ...]] = {}
        self.resumed_shapes: Shapes | None = None
        self.code: CodeType | None = None
        self.shows_last = bool(shapes.options.displayed)
        self.is_active = True
        self.process = os.getpid()

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        return Inert, ()  # code that is sent elsewhere (cloudpickle, dill) runs plainly there

    # barriers

    def guard(self, key: str, cells: Cells | None = None) -> tuple[Any, Any, Any]:
        """Barrier inside the unit: raise a takeover, or return ``sys.exc_info()`` of the exception that goes on."""
        frame = sys._getframe(1)
        takeover = _parked.get(frame) or self._intercept(frame, key, cells)
        if takeover is None:
            return sys.exc_info()
        _parked[frame] = takeover
        raise takeover

    def takeover(self, cells: Cells | None = None) -> bool:
        """The unit's own barrier: whether a takeover is parked for its frame now."""
        frame = sys._getframe(1)
        takeover = _parked.get(frame) or self._intercept(frame, None, cells)
        if takeover is None:
            return False
        takeover.__context__ = takeover.__traceback__ = None
        _parked[frame] = takeover
        return True

    def place(self) -> int:
        """Where the frame was when the exception that leaves it was raised, in instructions."""
        frame, exception = sys._getframe(1), sys.exception()
        entry = entry_of(exception, frame) if exception is not None else None
        return (frame.f_lasti if entry is None else entry.tb_lasti) // 2

    def leaving(self) -> BaseException | None:
        """The exception that leaves the frame."""
        return sys.exception()

    def pass_takeover(self) -> None:
        """Raise the takeover that an ``except*`` statement has wrapped into a group."""
        takeover = _parked.get(sys._getframe(1))
        if takeover is not None:
            raise takeover

    def _intercept(self, frame: FrameType, key: str | None, cells: Cells | None) -> Takeover | None:
        exception = sys.exception()
        if exception is None or isinstance(exception, SystemExit | GeneratorExit | Takeover):
            return None
        if not self.is_active or os.getpid() != self.process:
            return None  # a forked worker has nobody to ask
        from daifu_ipy.engine.interception import intercept

        try:
            return intercept(self, frame, exception, key, cells)
        except BaseException as error:  # the user's exception is never lost behind ours, nor behind Ctrl-C
            if not isinstance(error, RecursionError):
                _note(exception, f"daifu_ipy: internal error, not intercepted: {type(error).__name__}: {error}")
            if INTERNAL_ERRORS is not None:
                INTERNAL_ERRORS.append(error)
            return None

    # trampolines

    def resume(self) -> Any:
        """Run unfinished procedures until one returns the unit's result."""
        frame = sys._getframe(1)
        takeover = _parked.pop(frame)
        forget(frame)
        result = takeover.call()
        while type(result) is Takeover:
            takeover = result
            result = takeover.call()
        return result

    def resume_generator(self) -> Generator[Any, Any, Any]:
        """The same for generators. ``close()`` drops what they return: they leave a takeover in a box as well."""
        frame = sys._getframe(1)
        takeover: Takeover | None = _parked.pop(frame)
        forget(frame)
        del frame
        box: list[Takeover] = []
        result = None
        while takeover is not None:
            try:
                result = yield from takeover.call(box)
            except GeneratorExit:
                if not box:
                    raise
            takeover = box.pop() if box else None
        return result

    async def resume_coroutine(self) -> Any:
        """The same for coroutines."""
        frame = sys._getframe(1)
        takeover: Takeover | None = _parked.pop(frame)
        forget(frame)
        del frame
        box: list[Takeover] = []
        result = None
        while takeover is not None:
            try:
                result = await takeover.call(box)
            except GeneratorExit:
                if not box:
                    raise
            takeover = box.pop() if box else None
        return result

    def resume_async(self, box: list[Takeover]) -> AsyncGenerator[Any, Any]:
        """The first unfinished procedure of an async generator."""
        frame = sys._getframe(1)
        takeover = _parked.pop(frame)
        forget(frame)
        return takeover.call(box)  # type: ignore[no-any-return]

    def next_async(self, box: list[Takeover]) -> AsyncGenerator[Any, Any] | None:
        """The next one, where the last one ended with a takeover."""
        return box.pop().call(box) if box else None

    async def close_async(self, generator: AsyncGenerator[Any, Any], box: list[Takeover]) -> None:
        """Close an async generator, and run what is left of it should it crash again meanwhile."""
        await generator.aclose()
        while box:
            rest = box.pop().call(box)
            try:
                await rest.__anext__()
            except (GeneratorExit, StopAsyncIteration):
                continue
            raise RuntimeError("async generator ignored GeneratorExit")

    def thrown(self, exception: BaseException) -> BaseException:
        """What the consumer throws into an async generator, without the entry of the frame that passes it on."""
        if exception.__traceback__ is not None:
            exception.__traceback__ = exception.__traceback__.tb_next
        return exception

    def handed_over(self, box: list[Takeover] | None = None) -> Takeover:
        """The takeover of an unfinished procedure that crashed again, for the trampoline."""
        frame = sys._getframe(1)
        takeover = _parked.pop(frame)
        forget(frame)
        if box is not None:
            box.append(takeover)
        return takeover

    def strip(self) -> None:
        """Take the frames between the user's caller and the unfinished procedure out of the traceback."""
        exception = sys.exception()
        if exception is None:
            return
        entry = exception.__traceback__
        inner = entry.tb_next if entry is not None else None
        while inner is not None and inner.tb_frame.f_code.co_filename == HERE:
            inner = inner.tb_next
        exception.__traceback__ = inner  # None: raised by the machinery, natively in the consumer

    # exceptions handled again

    def exception_of(self, info: tuple[Any, BaseException, Any]) -> BaseException:
        """The exception of ``sys.exc_info()``."""
        return info[1]

    def snapshot(
        self, exception: BaseException
    ) -> tuple[BaseException, TracebackType | None, BaseException | None, bool]:
        """What raising an exception again will change of it."""
        return exception, exception.__traceback__, exception.__context__, exception.__suppress_context__

    def restore(self, saved: tuple[BaseException, TracebackType | None, BaseException | None, bool]) -> None:
        """Undo that change."""
        exception, traceback, context, suppressed = saved
        exception.__traceback__ = traceback
        exception.__context__ = context
        exception.__suppress_context__ = suppressed

    # views of the frame

    def view(self, function: Any, result: Any) -> Any:
        """``locals()``, ``vars()`` and ``dir()`` as the user's code expects them."""
        if function not in (builtins.locals, builtins.vars, builtins.dir):
            return result
        if self.unit.is_notebook_cell:
            return sorted(self.namespace) if function is builtins.dir else self.namespace
        if function is builtins.dir:
            return [name for name in result if not name.startswith(HIDDEN)]
        for name in [name for name in result if name.startswith(HIDDEN)]:
            del result[name]  # of a copy: until 3.12 the one that the frame keeps, which `exec` may write to
        return result

    def namespaces(self, function: Any, *given: Any) -> tuple[Any, ...]:
        """The arguments of ``exec`` or ``eval`` in a notebook cell, whose variables are the user's namespace."""
        if function not in (builtins.exec, builtins.eval) or (given and given[0] is not None):
            return given
        return (self.namespace, *given[1:])

    def super(self, function: Any, owner: Any, instance: Any) -> Any:
        """``super()`` where the interpreter would not find its arguments."""
        return builtins.super(owner, instance) if function is builtins.super else function()

    def annotations(self) -> dict[str, Any]:
        """The annotations of a notebook cell's namespace."""
        return self.namespace.setdefault("__annotations__", {})  # type: ignore[no-any-return]

    def annotate(self, name: str, annotation: Any) -> None:
        """Store the annotation of a notebook cell's variable."""
        self.annotations()[name] = annotation

    def import_names(self, statement: str) -> None:
        """``from m import *``, or from ``__future__``, of a notebook cell."""
        try:
            exec(compile(statement, self.unit.plain.co_filename, "exec", dont_inherit=True), self.namespace)
        except BaseException as error:  # neither this frame nor the one of that text shows
            error.__traceback__ = _inner(_inner(error.__traceback__))
            raise

    def display(self, value: Any) -> None:
        """Show the value of a notebook cell's expression."""
        sys.displayhook(value)

    # stand-ins for patched instructions

    @staticmethod
    def same(value: Any) -> Any:
        """Its argument."""
        return value

    @staticmethod
    def enter(manager: Any) -> tuple[Any, Any]:
        """Enter a context manager as the interpreter does: value and bound ``__exit__``."""
        enter = _special(manager, "__enter__", "the context manager protocol")
        leave = _special(manager, "__exit__", "the context manager protocol", " (missed __exit__ method)")
        return enter(), leave

    @staticmethod
    def enter_async(manager: Any) -> tuple[Awaitable[Any], Any]:
        """The same for an asynchronous context manager."""
        protocol = "the asynchronous context manager protocol"
        enter = _special(manager, "__aenter__", protocol)
        leave = _special(manager, "__aexit__", protocol, " (missed __aexit__ method)")
        return enter(), leave


def _inner(entry: TracebackType | None) -> TracebackType | None:
    return None if entry is None else entry.tb_next


def _special(manager: Any, name: str, protocol: str, missed: str = "") -> Any:
    kind = type(manager)
    for base in kind.__mro__:
        if name in base.__dict__:
            found = base.__dict__[name]
            bind = getattr(type(found), "__get__", None)
            return found if bind is None else bind(found, manager, kind)
    raise TypeError(f"{kind.__qualname__!r} object does not support {protocol}{missed}")


class Inert(Barrier):
    """The barrier of code that was sent to another process: it never intercepts."""

    def __init__(self) -> None:
        """It knows no unit."""

    def guard(self, key: str, cells: Cells | None = None) -> tuple[Any, Any, Any]:
        """Never a takeover."""
        return sys.exc_info()

    def takeover(self, cells: Cells | None = None) -> bool:
        """Never a takeover."""
        return False

    def view(self, function: Any, result: Any) -> Any:
        """The same without hidden names."""
        if function is builtins.dir:
            return [name for name in result if not name.startswith(HIDDEN)]
        if function in (builtins.locals, builtins.vars):
            return {name: value for name, value in result.items() if not name.startswith(HIDDEN)}
        return result


INTERNAL_ERRORS: list[BaseException] | None = None
"""Where tests collect internal errors; None: they are only noted on the user's exception."""

__all__ = ["Barrier", "Inert", "InternalError", "Takeover"]

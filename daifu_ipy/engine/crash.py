"""A crash: an intercepted exception, the frames it left behind, and what may be done about them."""

from __future__ import annotations

import ast
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CellType, CodeType, FrameType, TracebackType, WrapperDescriptorType
from typing import TYPE_CHECKING, Any

from daifu_ipy.engine.action import ActionResult, Namespace, run_action
from daifu_ipy.engine.action_code import only_looks
from daifu_ipy.engine.barrier import Barrier
from daifu_ipy.engine.frames import forget, write
from daifu_ipy.engine.invariants import check
from daifu_ipy.engine.location import CannotResume, Location, locate
from daifu_ipy.engine.repairs import Action, Ending, Repair
from daifu_ipy.engine.scopes import COMPREHENSIONS, HIDDEN, bound_names, own_nodes
from daifu_ipy.engine.shapes import BOX, ONCE, STATE
from daifu_ipy.engine.unit import ITERATIONS, LOOPS, Unit, blocks

if TYPE_CHECKING:
    from daifu_ipy.engine.choices import Preview

OPEN_SLOTS = frozenset("ixyepghds")
"""Slots that hold something only while they are not None (`shapes`)."""

REPEATED = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
"""Expressions whose effects a retried statement has again."""


@dataclass(frozen=True)
class Restart:
    """Where a unit will go on: `line`, the `statement`'s text, and the `kind` of location (`location.Kind`)."""

    line: int
    statement: str
    kind: str
    filename: str = ""
    unit: str = ""


@dataclass(frozen=True)
class LoopState:
    """Where a loop around the crash stands: its line and header, and the values of its target."""

    line: int
    header: str
    target: Mapping[str, Any]


@dataclass(eq=False)
class CrashFrame:
    """One vaccinated frame of a crash, as it was when the exception left it.

    `variables`: its plain locals; `slots`: its hidden ones; `cells`: the variables that it shares with other functions.
    An outer frame still waits: its shared variables are in `variables` too, actions write to the frame itself, and what
    they delete is in `deleted` until it is left.
    """

    barrier: Barrier
    frame: FrameType | None
    location: Location
    position: tuple[int, int, int, int]
    variables: dict[str, Any]
    slots: dict[str, Any]
    cells: dict[str, CellType]
    is_outer: bool = False
    deleted: set[str] = field(default_factory=set)
    written: dict[str, Any] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)
    shared: dict[str, CellType] = field(default_factory=dict)
    acted_on: set[str] = field(default_factory=set)  # what actions have bound

    @property
    def unit(self) -> Unit:
        """The frame's unit."""
        return self.barrier.unit

    @property
    def restart(self) -> Restart:
        """Its restart location in words."""
        statement = self.location.statement
        return Restart(
            statement.lineno,
            self.unit.text(statement),
            self.location.kind,
            self.unit.plain.co_filename,
            self.unit.qualname,
        )

    @property
    def progress(self) -> tuple[LoopState, ...]:
        """Where every loop around its statement stands, outermost first."""
        return _progress(self)

    @property
    def repeats(self) -> tuple[str, ...]:
        """The calls and assignment expressions that had begun: a retry runs them again."""
        return _repeats(self)

    @property
    def stale(self) -> tuple[str, ...]:
        """Names that its statement would have bound and that still hold an older value."""
        return _stale(self)

    def namespace(self) -> Namespace:
        """Its variables for an action."""
        unit = self.unit
        return Namespace(
            variables=self.variables,
            cells=self.cells,
            globals=self.barrier.namespace,
            local_names=frozenset({*unit.plain_locals, *unit.cells}),
            global_names=frozenset(unit.declared_globals) | unit.read_globals,
            class_name=unit.class_name,
            module_level=unit.is_notebook_cell,
            extras=self.extras,
            first_parameter=unit.first_argument,
            flags=unit.plain.co_flags,
            shared=self.shared,
        )

    def run(self, code: str) -> ActionResult:
        """Run an action in its namespace."""
        waits = self.is_outer and self.frame is not None
        if waits:
            self.look_again()
        before = dict(self.variables)
        result = run_action(code, self.namespace())
        changes = {n: v for n, v in self.variables.items() if n not in before or before[n] is not v}
        self.acted_on |= changes.keys()
        if not waits or self.frame is None:
            return result
        gone = before.keys() - self.variables.keys()
        self.deleted = (self.deleted | gone) - self.variables.keys()
        self.written = {n: v for n, v in {**self.written, **changes}.items() if n not in gone}
        write(self.frame, changes)
        return result

    def look_again(self) -> None:
        """Read the variables of a frame that still waits."""
        if self.frame is None:
            return
        names = {*self.unit.plain_locals, *self.unit.cells} - self.deleted
        self.variables.clear()
        self.variables |= {name: value for name, value in dict(self.frame.f_locals).items() if name in names}
        # where a comprehension of the same variable runs, the frame shows that one
        self.variables |= {name: value for name, value in self.written.items() if name in self.unit.plain_locals}

    def let_go(self) -> None:
        """Drop the frame and its variables."""
        if self.frame is not None:
            forget(self.frame)
        self.frame = None
        for held in (self.variables, self.slots, self.cells, self.written, self.extras, self.shared):
            held.clear()

    def view(self) -> dict[str, Any]:
        """All bound variables by name."""
        shared = {name: cell.cell_contents for name, cell in self.cells.items() if not _is_empty(cell)}
        return {**self.variables, **shared, **self.extras}


def _is_empty(cell: CellType) -> bool:
    try:
        return cell.cell_contents is cell
    except ValueError:
        return True


_spans: dict[int, tuple[weakref.ref[CodeType], dict[int, tuple[int | None, ...]]]] = {}
"""Positions found before, by code (whose own hash would read all of it) and instruction."""


def position_of(code: CodeType, lasti: int) -> tuple[int, int, int, int]:
    """Source span of the instruction at `lasti`, which may point into an instruction's inline cache."""
    key = id(code)
    kept = _spans.get(key)
    if kept is None or kept[0]() is not code:
        kept = _spans[key] = (weakref.ref(code, lambda _: _spans.pop(key, None)), {})
    if lasti not in kept[1]:
        kept[1][lasti] = next(itertools.islice(code.co_positions(), lasti // 2, None))
    line, end_line, column, end_column = kept[1][lasti]
    if line is None or end_line is None or column is None or end_column is None:
        raise CannotResume("the code was compiled without columns (-X no_debug_ranges): statements can't be told apart")
    return line, end_line, column, end_column


def split(bound: Mapping[str, Any], unit: Unit) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide a frame's variables into plain locals and slots; slots that were cleared are left out."""
    variables = {name: bound[name] for name in unit.plain_locals if name in bound}
    lost = {name for name in unit.plain.co_varnames if name in bound} - variables.keys() - set(unit.cells)
    check(
        not lost or lost <= unit.inlined,
        lambda: f"variables of {unit.qualname} that its text does not bind: {sorted(lost)}",
    )
    slots = {
        name: value
        for name, value in bound.items()
        if name.startswith(HIDDEN)
        and name not in (STATE, ONCE, BOX)
        and not (value is None and name[len(HIDDEN)] in OPEN_SLOTS)
    }
    return variables, slots


def closure_cells(thunk: Callable[[], object]) -> dict[str, CellType]:
    """The cells of the variables that a barrier's thunk names."""
    return dict(zip(thunk.__code__.co_freevars, thunk.__closure__ or (), strict=True))


def frame_of(
    barrier: Barrier,
    frame: FrameType,
    lasti: int,
    cells: Callable[[], object] | None,
    relocate: Callable[[Unit, Location, Mapping[str, Any]], Location] | None = None,
    *,
    is_outer: bool = False,
) -> CrashFrame:
    """Capture a vaccinated frame that executes the instruction at `lasti`.

    Raises
    ------
    CannotResume
        It can't go on at this place.
    """
    position = position_of(frame.f_code, lasti)
    bound = dict(frame.f_locals)
    variables, slots = split(bound, barrier.unit)
    location = locate(barrier.unit, (position[0], position[2]), slots)
    if relocate is not None:
        location = relocate(barrier.unit, location, slots)
    shared = {}
    if cells is not None:
        shared = closure_cells(cells)
    elif barrier.unit.cells:
        variables |= {name: bound[name] for name in barrier.unit.cells if name in bound}
    return CrashFrame(barrier, frame, location, position, variables, slots, shared, is_outer=cells is None and is_outer)


class Crash:
    """An intercepted exception that waits for a repair.

    Attributes
    ----------
    exception
        The exception; None once the crash is closed.
    refusal
        Why the last repair could not be applied, or None.
    refused
        That repair.
    acted
        The actions that ran before the repair was decided, and ended well; those that only look are left out.
    """

    def __init__(
        self,
        exception: BaseException,
        innermost: CrashFrame,
        outer: Callable[[], Iterable[CrashFrame]],
        traceback: TracebackType | None,
    ) -> None:
        self.exception: BaseException | None = exception
        self.innermost: CrashFrame | None = innermost
        self._outer = outer
        self._frames = [innermost]
        self._waiting: Iterator[CrashFrame] | None = None
        self._capturing = threading.RLock()
        self.refusal: str | None = None
        self.refused: Repair | None = None
        self.acted: tuple[Action, ...] = ()
        self.summary = f"{type(exception).__name__}: {_one_line(exception)}"
        self.restart = innermost.restart
        self.traceback = traceback
        self.thread = threading.current_thread()
        self.outcome: str | None = None
        self._decision: Repair | None = None
        self._decided = threading.Event()

    @property
    def frames(self) -> tuple[CrashFrame, ...]:
        """The vaccinated frames on the stack, innermost first. The outer ones are only looked at when asked for."""
        return tuple(self._captured(None))

    def _captured(self, count: int | None) -> list[CrashFrame]:
        """The vaccinated frames up to the one with this number, if there is one; without a number, all."""
        with self._capturing:  # from several threads, as that of a console
            if self._waiting is None:
                self._waiting = iter(self._outer())
            while count is None or len(self._frames) <= count:
                frame = next(self._waiting, None)
                if frame is None:
                    break
                self._frames.append(frame)
            return self._frames

    @property
    def barriers(self) -> tuple[Barrier, ...]:
        """Those of the vaccinated frames, innermost first. No frame is captured for it."""
        from daifu_ipy.engine.native import stands_aside, vaccinated_callers

        innermost = self.innermost
        if innermost is None or innermost.frame is None:
            return ()
        outer = vaccinated_callers(innermost.frame)
        return (innermost.barrier, *(barrier for frame, barrier in outer if not stands_aside(frame)))

    def frame(self, index: int) -> CrashFrame | None:
        """Frame `index`, innermost first; None if there is none."""
        if index == 0:
            return self.innermost
        frames = self._captured(index) if index > 0 else []
        return frames[index] if 0 < index < len(frames) else None

    @property
    def stack(self) -> TracebackType | None:
        """The traceback from the crashed unit inwards; None once the crash is closed."""
        return self.traceback

    @property
    def namespace(self) -> dict[str, Any]:
        """The crashed unit's variables by name (a copy)."""
        innermost = self.innermost
        if innermost is None:
            return {}
        if innermost.unit.is_notebook_cell:
            return dict(innermost.barrier.namespace)
        return innermost.view()

    @property
    def source(self) -> str:
        """The text of the crashed unit."""
        return self.innermost.unit.own_text if self.innermost else ""

    @property
    def repeats(self) -> tuple[str, ...]:
        """The calls and assignment expressions that had begun: a retry runs them again."""
        return self.innermost.repeats if self.innermost else ()

    @property
    def stale(self) -> tuple[str, ...]:
        """Names that the crashed statement would have bound and that still hold an older value."""
        return self.innermost.stale if self.innermost else ()

    @property
    def progress(self) -> tuple[LoopState, ...]:
        """Where every loop around the crash stands, outermost first."""
        return self.innermost.progress if self.innermost else ()

    def failed_again(self, frame: int = 0) -> bool | None:
        """Whether a frame's statement, run again by a repair, has failed again with no success in between.

        None where it can't be told, as at the header of a loop.
        """
        from daifu_ipy.engine.again import failed_again

        chosen = self.frame(frame)
        return None if chosen is None else failed_again(chosen, self.traceback if frame == 0 else None)

    def action(self, code: str, frame: int = 0) -> ActionResult:
        """Run `code` in the crashed namespace of one frame; the crash stays pending."""
        chosen = self.frame(frame)
        if chosen is None:
            return ActionResult("", None, f"there is no vaccinated frame {frame}; there are {len(self.frames)}")
        result = chosen.run(transform_action(code))
        if result.ok and not only_looks(code):
            self.acted += (Action(code, frame),)
        return result

    def preview(self, source: str, restart_at: str | int | None = None, frame: int = 0) -> Preview:
        """What surgery with `source` would do: where the run goes on, and where it could; `Refusal` if nowhere."""
        from daifu_ipy.engine.surgery import preview

        return preview(self, source, restart_at, frame)

    def decide(self, repair: Repair | Ending) -> bool:
        """Decide this crash from any thread. The first decision wins; False means that another was first."""
        with _lock:
            if self._decided.is_set() or self.outcome is not None:
                return False
            self._decision = Repair.of(repair)
            self._decided.set()
            return True

    def wait(self, timeout: float | None = None) -> Repair | None:
        """Wait until somebody calls `decide`; what a manager that does not answer by itself does."""
        self._decided.wait(timeout)
        return self._decision

    @property
    def decision(self) -> Repair | None:
        """What `decide` was called with."""
        return self._decision

    def reopen(self, refusal: str, repair: Repair) -> None:
        """Ask again after this repair was refused."""
        with _lock:
            self.refusal, self.refused = refusal, repair
            self._decision = None
            self._decided.clear()

    def close(self, outcome: str, keep: CrashFrame | None = None) -> None:
        """Let go of what the failed attempt left behind (but one frame that is still needed); text remains."""
        self.outcome = outcome
        self._decided.set()
        self.exception = self.traceback = None
        with self._capturing:
            for frame in self._frames:
                if frame is not keep:
                    frame.let_go()
            self.innermost, self._frames, self._waiting = None, [], iter(())
            self._outer = tuple

    def __repr__(self) -> str:
        return f"<Crash {self.summary} at {self.restart.unit}:{self.restart.line}>"


_lock = threading.Lock()

_action_transform: list[Callable[[str], str]] = []


def transform_action(code: str) -> str:
    """The action's text in plain Python (a front end may add its own syntax, such as ``!`` and ``%``)."""
    for transform in _action_transform:
        code = transform(code)
    return code


def set_action_transform(transform: Callable[[str], str] | None) -> None:
    """Let a front end translate the text of actions."""
    _action_transform[:] = [] if transform is None else [transform]


_PLAIN = (str, int, float, bool, type(None))


def _one_line(exception: BaseException) -> str:
    """The message, where showing it runs no code but Python's own: nobody has asked for more yet."""
    arguments = exception.args
    if type(type(exception).__str__) is WrapperDescriptorType and all(type(a) in _PLAIN for a in arguments):
        return " ".join(str(exception).split())[:500]
    shown = (str(a) if type(a) in _PLAIN else f"<{type(a).__name__}>" for a in arguments)
    return " ".join(", ".join(shown).split())[:500]


def own_part(statement: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement that run in its own part: of a compound statement, its header."""
    inside = {id(node) for block in blocks(statement) for body in block.statements for node in ast.walk(body)}
    return [node for node in own_nodes([statement]) if id(node) not in inside]


def _repeats(frame: CrashFrame) -> tuple[str, ...]:
    if frame.location.kind not in ("statement", "guard", "except"):
        return ()
    key = (frame.location.statement, frame.position)
    if key not in frame.barrier.repeats:
        frame.barrier.repeats[key] = _find_repeats(frame)
    return frame.barrier.repeats[key]


def _find_repeats(frame: CrashFrame) -> tuple[str, ...]:
    line, end_line, column, end_column = frame.position
    begun = {
        (node.lineno, node.col_offset): frame.unit.segment(node)
        for part in own_part(frame.location.statement)
        for node in (ast.walk(part) if isinstance(part, COMPREHENSIONS) else [part])
        if isinstance(node, REPEATED)
        and (
            (node.end_lineno or 0, node.end_col_offset or 0) <= (end_line, end_column)
            or (node.lineno, node.col_offset) == (line, column)
        )
    }
    return tuple(dict.fromkeys(text for _, text in sorted(begun.items())))


def _stale(frame: CrashFrame) -> tuple[str, ...]:
    bound = frame.view() if not frame.unit.is_notebook_cell else frame.barrier.namespace
    return tuple(
        name for name in bound_names(own_part(frame.location.statement), frame.unit.class_name) if name in bound
    )


def _progress(frame: CrashFrame) -> tuple[LoopState, ...]:
    bound = frame.view() if not frame.unit.is_notebook_cell else frame.barrier.namespace
    path, statement = frame.unit.path(frame.location.statement), frame.location.statement
    loops = [owner for owner, block in path if isinstance(owner, LOOPS) and block.field == "body"]
    if isinstance(statement, ITERATIONS) and frame.location.kind in ("next", "unpack"):
        loops.append(statement)
    unit = frame.unit
    return tuple(
        LoopState(loop.lineno, unit.text(loop), {name: bound[name] for name in unit.targets(loop) if name in bound})
        for loop in loops
    )

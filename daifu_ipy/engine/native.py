"""What vaccinated code stands for: its native code, and the callers that a frame would have natively."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import CodeType, FrameType

from daifu_ipy.engine import barrier as barrier_module
from daifu_ipy.engine.barrier import Barrier
from daifu_ipy.engine.crash import position_of
from daifu_ipy.engine.location import CannotResume
from daifu_ipy.engine.unit import Span

_FEW = 64

_indices: dict[int, tuple[weakref.ref[CodeType], int]] = {}
"""Where the barrier is among many constants (-1: nowhere), by code, whose own hash would read all of it."""


def barrier_in(code: CodeType) -> Barrier | None:
    """The barrier of vaccinated code."""
    if len(code.co_consts) <= _FEW:
        index = _index_in(code)
    else:
        kept = _indices.get(id(code))
        if kept is None or kept[0]() is not code:
            key = id(code)
            kept = _indices[key] = weakref.ref(code, lambda _: _indices.pop(key, None)), _index_in(code)
        index = kept[1]
    return code.co_consts[index] if index >= 0 else None


def _index_in(code: CodeType) -> int:
    for index, const in enumerate(code.co_consts):
        if type(const) is Barrier:
            return index
    return -1


def vaccinated_callers(frame: FrameType) -> Iterator[tuple[FrameType, Barrier]]:
    """The vaccinated frames further out, innermost first."""
    outer = frame.f_back
    while outer is not None:
        barrier = barrier_in(outer.f_code)
        if barrier is not None:
            yield outer, barrier
        outer = outer.f_back


def native_code(code: CodeType) -> CodeType:
    """The native code that vaccinated code, or an unfinished procedure, stands for; other code itself."""
    barrier = barrier_in(code)
    return code if barrier is None else barrier.unit.plain


def is_injected(span: Span) -> bool:
    """Code of ours has no width."""
    return span[0] == span[1] and span[2] == span[3]


def stands_aside(frame: FrameType) -> bool:
    """Whether a frame is the tool's own, or only waits for its unfinished procedure."""
    if frame.f_code.co_filename == barrier_module.__file__:
        return True
    if barrier_in(frame.f_code) is None:
        return False
    try:
        return is_injected(position_of(frame.f_code, frame.f_lasti))
    except CannotResume:
        return False


def caller(frame: FrameType) -> FrameType | None:
    """The frame that natively would be the caller."""
    outer = frame.f_back
    while outer is not None and stands_aside(outer):
        outer = outer.f_back
    return outer

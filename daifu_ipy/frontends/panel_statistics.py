"""Statistics of a tensor or array, when they are asked for: read in pieces where the data is, for a bounded time.

What would have to be computed first, or has no data, has none: lazy, fake and meta tensors, arrays of objects.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from daifu_ipy.repair.builtin_values import class_vars, mro_of
from daifu_ipy.repair.largest import storage_of
from daifu_ipy.repair.summary import error_text

SECONDS = 2.0
"""The most time that is spent on reading."""

_PIECE, _PIECE_ON_DEVICE = 2**20, 2**22  # elements; what is made of a piece takes memory too
_DEVICES = frozenset({"cpu", "cuda", "mps", "xpu"})
_POLL = 0.005


@dataclass
class Moments:
    """What is known of the values that were read; `mean` to `greatest` are of the finite ones only."""

    read: int = 0
    finite: int = 0
    mean: float = 0.0
    squares: float = 0.0  # sum of squared distances from the mean
    least: Any = None
    greatest: Any = None
    nan: int = 0
    zeros: int = 0

    def add(self, other: Moments) -> None:
        """Take those of other values in (Chan, Golub and LeVeque 1983)."""
        self.read, self.nan, self.zeros = self.read + other.read, self.nan + other.nan, self.zeros + other.zeros
        if not other.finite:
            return
        count, apart = self.finite + other.finite, other.mean - self.mean
        self.squares += other.squares + apart**2 * self.finite * other.finite / count
        self.mean += apart * other.finite / count
        self.least = other.least if self.least is None else min(self.least, other.least)
        self.greatest = other.greatest if self.greatest is None else max(self.greatest, other.greatest)
        self.finite = count

    def text(self, total: int, correction: int, complex_values: bool) -> str:
        """In a few lines; `correction` is what the library's own standard deviation takes off the count."""
        degrees = self.finite - correction
        numbers = [("min", self.least), ("max", self.greatest), ("mean", self.mean if self.finite else None)]
        numbers.append(("std", math.sqrt(self.squares / degrees) if degrees > 0 else None))
        shown = ", ".join(f"{name} {_number(value)}" for name, value in numbers if value is not None)
        some = "of the finite values: " if self.finite < self.read else ""
        lines = [f"{'absolute values: ' * complex_values}{some}{shown}"] if shown else []
        infinite = self.read - self.nan - self.finite
        lines.append(f"{self.nan:,} NaN, {infinite:,} infinite, {self.zeros:,} zeros, of {self.read:,} values")
        if self.read < total:
            lines.append(f"only a part was read, in {SECONDS:g} s: {self.read:,} of {total:,} values")
        return "\n".join(lines)


def _number(value: Any) -> str:
    return str(value) if type(value) is int else f"{value:.6g}"


def has_statistics(value: Any) -> bool:
    """Whether there is data to read: no data is read, and nothing computed, to tell."""
    return _reader(value) is not None


def statistics(value: Any) -> str:
    """Least, greatest, mean, standard deviation; NaN, infinite and zero values: or why they can't be had.

    Raises
    ------
    ValueError
        It is no tensor or array with data.
    """
    reader = _reader(value)
    if reader is None:
        raise ValueError("statistics are of tensors and arrays of numbers that have data")
    try:
        return reader(value, time.monotonic() + SECONDS)
    except Exception as error:  # of the library or the device
        return f"its data can't be read: {error_text(error)}"


def _reader(value: Any) -> Callable[[Any, float], str] | None:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    kind = type(value)
    if isinstance(getattr(torch, "Tensor", None), type) and issubclass(kind, torch.Tensor):  # type: ignore[union-attr]
        return _of_tensor if _has_data(value, torch) else None
    if isinstance(getattr(numpy, "ndarray", None), type) and kind in (numpy.ndarray, numpy.memmap):  # type: ignore[union-attr]
        return _of_array if value.dtype.kind in "biufc" else None
    return None


def pieces(array: Any, most: int) -> Iterator[Any]:
    """Views that make up an array or tensor, in order, of at most so many elements each; nothing is copied."""
    shape = tuple(array.shape)
    if math.prod(shape) <= most:
        yield array
        return
    axis = max(range(len(shape)), key=shape.__getitem__)
    half = shape[axis] // 2
    before = (slice(None),) * axis
    yield from pieces(array[(*before, slice(None, half))], most)
    yield from pieces(array[(*before, slice(half, None))], most)


def _moments(array: Any, most: int, deadline: float, of: Callable[[Any], Moments]) -> Moments:
    found = Moments()
    for piece in pieces(array, most):
        found.add(of(piece))
        if time.monotonic() > deadline:
            break
    return found


# numpy


def _of_array(value: Any, deadline: float) -> str:
    numpy: Any = sys.modules["numpy"]
    plain = value.view(numpy.ndarray)
    with numpy.errstate(all="ignore"):
        found = _moments(plain, _PIECE, deadline, _of_array_piece)
    return found.text(plain.size, 0, plain.dtype.kind == "c")


def _of_array_piece(piece: Any) -> Moments:
    numpy: Any = sys.modules["numpy"]
    piece = numpy.abs(piece) if piece.dtype.kind == "c" else piece
    kept = piece[numpy.isfinite(piece)]
    values = kept.astype(numpy.float64)
    mean = float(values.mean()) if kept.size else 0.0
    return Moments(
        read=piece.size,
        finite=kept.size,
        mean=mean,
        squares=float(numpy.square(values - mean).sum()),
        least=_plain(kept.min()) if kept.size else None,
        greatest=_plain(kept.max()) if kept.size else None,
        nan=int(numpy.isnan(piece).sum()),
        zeros=int((piece == 0).sum()),
    )


def _plain(number: Any) -> Any:
    """Python's own number; a truth value counts as 0 or 1."""
    number = number.item()
    return int(number) if type(number) is bool else number


# torch


def _has_data(value: Any, torch: Any) -> bool:
    own = mro_of(type(value))
    own = own[: own.index(torch.Tensor)]
    if any("__torch_dispatch__" in class_vars(base) for base in own):  # it computes, or holds, something else
        return False
    lazy: Any = getattr(torch.nn.parameter, "UninitializedTensorMixin", ())
    is_wrapped = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", lambda tensor: False)
    with _aside(torch):
        return bool(
            not issubclass(type(value), lazy)
            and not is_wrapped(value)
            and value.device.type in _DEVICES
            and not value.is_nested
            and not value.is_quantized
            and value.layout is torch.strided
            and value.dtype is not getattr(torch, "uint64", None)
        )


@contextlib.contextmanager
def _aside(torch: Any) -> Iterator[None]:
    """No class, mode or gradient of the program's takes part."""
    with torch._C.DisableTorchFunction(), torch.no_grad(), _no_modes():
        yield


def _no_modes() -> AbstractContextManager[Any]:
    modes = sys.modules.get("torch.utils._python_dispatch")
    disable: Callable[[], AbstractContextManager[Any]] = getattr(
        modes, "_disable_current_modes", contextlib.nullcontext
    )
    return disable()


def _of_tensor(value: Any, deadline: float) -> str:
    torch: Any = sys.modules["torch"]
    with _aside(torch):
        problem = _is_unreadable(value, torch, deadline)
        if problem:
            return f"its data can't be read: {problem}"
        most = _PIECE if value.device.type == "cpu" else _PIECE_ON_DEVICE
        found = _moments(value.detach(), most, deadline, _of_tensor_piece)
        return found.text(value.numel(), 1, value.is_complex())


def _is_unreadable(value: Any, torch: Any, deadline: float) -> str:
    """Why reading would fail, or take longer than anybody wants to wait; "" if it would not."""
    last = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    needed = (value.storage_offset() + last + 1) * value.element_size() if value.numel() else 0
    if (storage_of(value) or (0, 0))[1] < needed:
        return "its memory was given back (as sharded training does)"
    if value.device.type != "cuda":
        return ""
    if torch.cuda.is_current_stream_capturing():
        return "a CUDA graph is being captured"
    stream = torch.cuda.current_stream(value.device)
    while not stream.query():
        if time.monotonic() > deadline:
            return "the device is still busy with what was asked of it before"
        time.sleep(_POLL)
    return ""


def _of_tensor_piece(piece: Any) -> Moments:
    torch: Any = sys.modules["torch"]
    wide = torch.float32 if piece.device.type == "mps" else torch.float64
    count = piece.numel()
    piece = _computable(piece, torch)
    kept = piece[torch.isfinite(piece)] if piece.is_floating_point() else piece
    values = kept.to(wide)
    mean = values.mean() if kept.numel() else values.new_zeros(())
    return Moments(
        read=count,
        finite=kept.numel(),
        mean=mean.item(),
        squares=(values - mean).square_().sum().item(),
        least=kept.min().item() if kept.numel() else None,
        greatest=kept.max().item() if kept.numel() else None,
        nan=int(torch.isnan(piece).sum()),
        zeros=int((piece == 0).sum()),
    )


def _computable(piece: Any, torch: Any) -> Any:
    """The same values in a type that all of this can be computed in."""
    if piece.is_complex():
        return piece.abs()
    if piece.is_floating_point():
        return piece if piece.dtype in (torch.float32, torch.float64) else piece.to(torch.float32)
    return piece.to(torch.uint8) if piece.dtype is torch.bool else piece.to(torch.int64)


__all__ = ["Moments", "has_statistics", "pieces", "statistics"]

"""Arrays, tables and models in a few words, known by the names of their classes: no library is imported for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from daifu_ipy.repair.builtin_values import Part, listed, vars_of
from daifu_ipy.repair.deadline import ask

LIBRARIES = frozenset({"torch", "numpy", "cupy", "jax", "jaxlib", "tensorflow", "pandas", "polars", "pyarrow"})
ARRAYS = frozenset({"Tensor", "EagerTensor", "Variable", "ndarray", "Array", "ArrayImpl", "FakeTensor"})
TABLES = frozenset({"DataFrame", "Series", "Index", "LazyFrame", "Table"})
_COLUMNS = 6


def library_text(value: object, item: Part) -> str | None:
    """Describe a value of a known library; None for others. Of arrays only what is known without their data."""
    base = library_base(value)
    return None if base is None else _described(_BY_NAME[base], value, item)


def library_base(value: object) -> str | None:
    """The name of the class of a known library that a value's class is, or derives from."""
    found = (base.__name__ for base in type(value).__mro__ if is_of_library(base) and base.__name__ in _BY_NAME)
    return next(found, None)


def is_of_library(kind: type) -> bool:
    """Whether a class is a known library's own."""
    return str(kind.__module__).partition(".")[0] in LIBRARIES


def _described(describe: Callable[[Any, Part], str], value: object, item: Part) -> str:
    """A class that derives from a library's may have attributes of its own making: foreign code."""
    kind = type(value)
    return describe(value, item) if is_of_library(kind) else ask(kind, lambda: describe(value, item))


def array_text(value: Any, item: Part = str) -> str:
    """Shape, dtype, device; what is as usual is left out."""
    parts = [f"shape={_shape(value)}", str(getattr(value, "dtype", "?")).removeprefix("torch.")]
    layout = str(getattr(value, "layout", "torch.strided"))
    device = str(getattr(value, "device", "cpu"))
    parts += [layout.removeprefix("torch.")] * (layout.startswith("torch.") and layout != "torch.strided")
    parts += [device] * (device != "cpu")
    parts += ["requires_grad"] * (getattr(value, "requires_grad", False) is True)
    return f"{type(value).__name__}({', '.join(parts)})"


def _shape(value: Any) -> str:
    try:
        return str(tuple(value.shape))
    except Exception:  # a nested tensor, a lazy table: there is no one shape
        return "?"


def _table(value: Any, item: Part) -> str:
    shape, columns = _shape(value), _columns(value, item)
    return f"{type(value).__name__}(shape={shape}{f', columns={columns}' if columns else ''})"


def _columns(value: Any, item: Part) -> str:
    """The first names of a table's columns; a lazy table would have to work for them."""
    if type(value).__name__ == "LazyFrame":
        return ""
    with contextlib.suppress(Exception):
        return f"[{listed(map(item, islice(value.columns, _COLUMNS)), len(value.columns))}]"
    return ""


def _module(value: Any, item: Part) -> str:
    """A torch module: of those of the library, also their sizes."""
    kind = type(value)
    mode = "training" if vars_of(value).get("training") is True else "eval"
    extra = ""
    if str(kind.__module__).startswith("torch.nn."):
        with contextlib.suppress(Exception):  # a module that is not complete yet
            extra = str(kind.extra_repr(value))
    return f"<{kind.__name__}({extra}), {mode}>" if extra else f"<{kind.__name__} module, {mode}>"


def _optimizer(value: Any, item: Part) -> str:
    groups = vars_of(value).get("param_groups", ())
    rates = _distinct(item(group.get("lr")) for group in groups)
    count = f"{len(groups)} groups" if len(groups) != 1 else "1 group"
    return f"<{type(value).__name__}, {count}, lr={rates}>"


def _scheduler(value: Any, item: Part) -> str:
    state = vars_of(value)
    rates = _distinct(item(rate) for rate in state.get("_last_lr", ()))
    return f"<{type(value).__name__}, step {state.get('last_epoch', '?')}, lr={rates or '?'}>"


def _distinct(texts: Iterable[str]) -> str:
    return ", ".join(islice(dict.fromkeys(texts), 3))


def _loader(value: Any, item: Part) -> str:
    """A DataLoader, which is not iterated; its dataset is asked how long it is."""
    state = vars_of(value)
    size, workers = state.get("batch_size"), state.get("num_workers", 0)
    dataset: Any = state.get("dataset")
    parts = [type(value).__name__] + [f"batch size {size}"] * (size is not None)
    length = ask(type(dataset), lambda: str(len(dataset)), "length") if hasattr(type(dataset), "__len__") else ""
    parts += [f"{length} samples"] * length.isdigit()
    return f"<{', '.join([*parts, *([f'{workers} workers'] * bool(workers))])}>"


_BY_NAME: dict[str, Callable[[Any, Part], str]] = {
    **dict.fromkeys(ARRAYS, array_text),
    **dict.fromkeys(TABLES, _table),
    "Module": _module,
    "Optimizer": _optimizer,
    "LRScheduler": _scheduler,
    "DataLoader": _loader,
}

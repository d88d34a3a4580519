"""What can be known of a live iterator: has its exception finished it, or cost it an item?"""

from __future__ import annotations

import gc
import itertools
from types import AsyncGeneratorType, CodeType, FunctionType, GeneratorType, MethodType, TracebackType
from typing import Any

APPLYING = (map, filter, itertools.starmap, itertools.accumulate, itertools.takewhile, itertools.dropwhile)
"""Iterators that take an item first and call a function with it then: if that raises, the item is gone."""

WRAPPERS = (
    *APPLYING,
    enumerate,
    zip,
    reversed,
    itertools.chain,
    itertools.islice,
    itertools.filterfalse,
    itertools.compress,
    itertools.zip_longest,
    itertools.pairwise,
)
"""Iterators of the standard library that ask other iterators, and end when these end."""


def finished_generator(iterator: Any) -> str | None:
    """The name of the finished generator that `iterator` is, or asks; None if there is none.

    A generator that has raised is finished: asked again, it ends its loop as if there were no more items. One that is
    running has the exception still before it.
    """
    if isinstance(iterator, GeneratorType):
        return iterator.__qualname__ if iterator.gi_frame is None or iterator.gi_running else None
    if isinstance(iterator, AsyncGeneratorType):
        return iterator.__qualname__ if iterator.ag_frame is None else None
    if isinstance(iterator, WRAPPERS):
        for asked in _asked(iterator):
            found = finished_generator(asked)
            if found is not None:
                return found
    return None


def _asked(iterator: Any) -> list[Any]:
    inner = gc.get_referents(iterator)
    return [asked for one in inner for asked in (one if type(one) is tuple else (one,))]


def lost_item(iterator: Any, traceback: TracebackType | None) -> str | None:
    """The kind of iterator that had taken an item when the function that it calls raised; None if none had."""
    if traceback is None or not isinstance(iterator, WRAPPERS):
        return None
    below = traceback.tb_next.tb_frame.f_code if traceback.tb_next is not None else None
    asked = _asked(iterator)
    if isinstance(iterator, APPLYING) and any(_runs(function, below) for function in asked):
        return type(iterator).__name__
    return next((lost for inner in asked if (lost := lost_item(inner, traceback)) is not None), None)


def _runs(function: Any, code: CodeType | None) -> bool:
    """Whether `function` is what raised: its code is the next on the traceback, or it has none."""
    if isinstance(function, MethodType):
        function = function.__func__
    if isinstance(function, FunctionType):
        return function.__code__ is code
    return code is None and callable(function) and not hasattr(type(function), "__next__")


def items_taken(iterator: Any) -> int | None:
    """How many items a loop has taken from its iterator; None if that can't be known without asking it."""
    if type(iterator) in (enumerate, type(iter([])), type(iter(()))):
        _, arguments, *index = iterator.__reduce__()
        return items_taken(arguments[0]) if type(iterator) is enumerate else (index[0] if index else None)
    return None

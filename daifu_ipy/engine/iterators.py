"""What can be known of a live iterator: whether the exception that it raised has finished it."""

from __future__ import annotations

import gc
import itertools
from types import AsyncGeneratorType, GeneratorType
from typing import Any

WRAPPERS = (
    enumerate,
    zip,
    map,
    filter,
    reversed,
    itertools.chain,
    itertools.islice,
    itertools.takewhile,
    itertools.dropwhile,
    itertools.filterfalse,
    itertools.starmap,
    itertools.accumulate,
    itertools.compress,
    itertools.zip_longest,
    itertools.pairwise,
)
"""Iterators of the standard library that ask other iterators, and end when these end."""


def finished_generator(iterator: Any) -> str | None:
    """The name of the finished generator that `iterator` is, or asks; None if there is none.

    A generator that has raised is finished: asked again, it ends its loop as if there were no more items.
    """
    if isinstance(iterator, GeneratorType):
        return iterator.__qualname__ if iterator.gi_frame is None else None
    if isinstance(iterator, AsyncGeneratorType):
        return iterator.__qualname__ if iterator.ag_frame is None else None
    if isinstance(iterator, WRAPPERS):
        for inner in gc.get_referents(iterator):
            for asked in inner if type(inner) is tuple else (inner,):
                found = finished_generator(asked)
                if found is not None:
                    return found
    return None

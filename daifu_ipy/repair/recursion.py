"""A recursion is shown by its first and its last round."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

_MAX_CYCLE = 4
_MIN_TIMES = 4


def kept_of(places: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Which places of a stack to show: the index of each, and how many that are the same are left out before it.

    Of up to four places that follow each other again and again, the first and the last round are kept.
    """
    kept: list[tuple[int, int]] = []
    index = 0
    while index < len(places):
        size, times = _cycle(places, index)
        kept += [(number, 0) for number in range(index, index + size)]
        index += size * times
        if times > 1:
            kept += [(number, 0) for number in range(index - size, index)]
            kept[-size] = (index - size, size * (times - 2))
    return kept


def _cycle(places: Sequence[Hashable], index: int) -> tuple[int, int]:
    """How many places from `index` on come again at once, and how often they are there."""
    for size in range(1, _MAX_CYCLE + 1):
        times, first = 1, places[index : index + size]
        while places[index + times * size : index + (times + 1) * size] == first:
            times += 1
        if times >= _MIN_TIMES:
            return size, times
    return 1, 1

"""What two lists have in common, in order: the longest common subsequence, or a good one where that takes too long."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

MOST = 250_000
"""Comparisons that the exact method may take; beyond them only what occurs once on both sides is an anchor."""

Pairs = list[tuple[int, int]]


def common(old: Sequence[str], new: Sequence[str]) -> Pairs:
    """Index pairs of equal elements, rising on both sides."""
    numbers: dict[str, int] = {}
    a, b = ([numbers.setdefault(text, len(numbers)) for text in texts] for texts in (old, new))
    return _common(a, b, list(range(len(a))), list(range(len(b))))


def _common(a: list[int], b: list[int], i: list[int], j: list[int]) -> Pairs:
    """The same for the elements `i` of `a` and `j` of `b`."""
    start = 0
    while start < min(len(i), len(j)) and a[i[start]] == b[j[start]]:
        start += 1
    end = 0
    while end < min(len(i), len(j)) - start and a[i[-1 - end]] == b[j[-1 - end]]:
        end += 1
    head = list(zip(i[:start], j[:start], strict=True))
    tail = list(zip(i[len(i) - end :], j[len(j) - end :], strict=True))
    return [*head, *_between(a, b, i[start : len(i) - end], j[start : len(j) - end]), *tail]


def _between(a: list[int], b: list[int], i: list[int], j: list[int]) -> Pairs:
    """The same where neither the first nor the last elements are equal."""
    ours, theirs = Counter(a[k] for k in i), Counter(b[k] for k in j)
    i, j = [k for k in i if a[k] in theirs], [k for k in j if b[k] in ours]
    if len(i) * len(j) <= MOST:
        return _exact(a, b, i, j)
    places = {b[k]: k for k in j}
    once = [(k, places[a[k]]) for k in i if ours[a[k]] == theirs[a[k]] == 1]
    anchors = _rising(once)
    if not anchors:
        return [(p, q) for p, q in zip(i, j, strict=False) if a[p] == b[q]]
    made: Pairs = []
    for p, q in [*anchors, (len(a), len(b))]:
        before, ahead = bisect_left(i, p), bisect_left(j, q)
        made += _common(a, b, i[:before], j[:ahead])
        made += [(p, q)] * (p < len(a))
        i, j = i[before + 1 :], j[ahead + 1 :]
    return made


def _rising(pairs: Pairs) -> Pairs:
    """The longest subsequence of pairs whose second numbers rise, as their first ones do."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, q) in enumerate(pairs):
        length = bisect_left(tops, q)
        before.append(ends[length - 1] if length else -1)
        tops[length : length + 1], ends[length : length + 1] = [q], [index]
    made: Pairs = []
    index = ends[-1] if ends else -1
    while index >= 0:
        made.append(pairs[index])
        index = before[index]
    return made[::-1]


def _exact(a: list[int], b: list[int], i: list[int], j: list[int]) -> Pairs:
    rows = [[0] * (len(j) + 1) for _ in range(len(i) + 1)]
    for p in range(len(i) - 1, -1, -1):
        row, below, ours = rows[p], rows[p + 1], a[i[p]]
        for q in range(len(j) - 1, -1, -1):
            row[q] = below[q + 1] + 1 if ours == b[j[q]] else max(below[q], row[q + 1])
    made, p, q = [], 0, 0
    while p < len(i) and q < len(j):
        if a[i[p]] == b[j[q]]:
            made.append((i[p], j[q]))
            p, q = p + 1, q + 1
        elif rows[p + 1][q] >= rows[p][q + 1]:
            p += 1
        else:
            q += 1
    return made


__all__ = ["common"]

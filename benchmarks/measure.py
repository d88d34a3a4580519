"""What the benchmarks share: interleaved timing of native and vaccinated code, tables, verdicts.

A row is measured in blocks. Each block makes the native program twice and the vaccinated one once, all from the same
source but compiled separately, so that the luck of memory addresses averages out; it then runs native, vaccinated,
native again, round after round with the order of the natives alternating. The vaccinated run stands between the two, so
that a slow change of the machine's speed cancels. The ratio is the median of vaccinated against each native; A/A is the
median of native against native, and its half-width is how far the 98 % interval of that median (the second smallest to
the second largest of ten blocks) reaches from 1. A row whose half-width is above 2 % is void and measured again.
"""

from __future__ import annotations

import gc
import linecache
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import daifu_ipy
from daifu_ipy.engine.selftest import patches_work

BLOCKS = 10
ROUNDS = 40
RUN_SECONDS = 0.0005
"""How long one run takes: short, so that few runs are interrupted."""
SLOWEST = 10
"""How many times longer a vaccinated run may take; programs that are slower than that get smaller."""
WIDEST = 0.02
"""The half-width above which a row is void."""

Timed = Callable[[int], float]
"""Runs a program of size n and returns its seconds."""


@dataclass(frozen=True)
class Ratio:
    """Two programs compared.

    `ratio` of their times; `same`: what native against native gives, and by how much (`half_width`) that may differ
    from 1; `added`: the seconds that the second program takes longer, for a size of 1.
    """

    ratio: float
    same: float
    half_width: float
    added: float

    @property
    def is_void(self) -> bool:
        """Too noisy to say anything."""
        return self.half_width > WIDEST


@dataclass(frozen=True)
class Figure:
    """A measured figure and the most that it may be (None: it is only shown).

    `in_noise`: it can't be told from a perfect one. `void`: it says nothing, and meets no goal.
    """

    name: str
    value: float
    goal: float | None
    unit: str = ""
    digits: int = 3
    in_noise: bool = False
    void: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the goal is met."""
        return self.goal is None or (not self.void and (self.in_noise or self.value <= self.goal))

    @property
    def verdict(self) -> str:
        """The same in a word."""
        if self.void:
            return "noisy"
        if self.goal is None:
            return "-"
        if self.value <= self.goal:
            return "ok"
        return "in noise" if self.in_noise else "MISSED"

    def __str__(self) -> str:
        return f"{self.value:.{self.digits}f}{self.unit}"


def compare(native: Callable[[], Timed], other: Callable[[], Timed]) -> Ratio:
    """Measure a program against another, given what makes a new copy of each."""
    size = min(_size_for(native(), RUN_SECONDS), _size_for(other(), RUN_SECONDS * SLOWEST))
    ratios: list[float] = []
    added: list[float] = []
    same: list[list[float]] = []
    for _ in range(BLOCKS):
        first, second, third = native(), other(), native()
        for timed in (first, second, third) * 2:
            timed(size)  # warms the adaptive interpreter up
        block: list[float] = []
        with collector_off():
            for number in range(ROUNDS):
                if number % 2:
                    a, b, c = first(size), second(size), third(size)
                else:
                    c, b, a = third(size), second(size), first(size)
                ratios += [b / a, b / c]
                added += [b - a, b - c]
                block.append(c / a)
        same.append(block)
    by_block = sorted(median(block) for block in same)
    half_width = max(abs(by_block[1] - 1), abs(by_block[-2] - 1))
    together = median([ratio for block in same for ratio in block])
    return Ratio(median(ratios), together, half_width, median(added) / size)


def _size_for(timed: Timed, seconds: float) -> int:
    """The size at which a program takes so long."""
    size = 4
    timed(size)
    while (taken := min(timed(size) for _ in range(3))) < seconds / 4:
        size *= 2
    return max(1, round(size * seconds / taken))


@contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection in this block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def timed(run: Callable[[int], Any]) -> Timed:
    """The seconds of a call of `run`."""

    def seconds(size: int) -> float:
        start = perf_counter()
        run(size)
        return perf_counter() - start

    return seconds


# programs

_counts: dict[str, int] = {}


def program(source: str, name: str, **given: Any) -> dict[str, Any]:
    """Run a module's text in a new namespace; its lines can be looked up, as those of a file."""
    filename = new_filename(name)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "benchmark", **given}
    exec(compile(source, filename, "exec", dont_inherit=True), namespace)
    return namespace


def new_filename(name: str) -> str:
    """A file name that no other program has."""
    _counts[name] = _counts.get(name, 0) + 1
    return f"<benchmark {name} {_counts[name]}>"


def protect(namespace: dict[str, Any], targets: Sequence[str]) -> None:
    """Vaccinate functions of a program."""
    for target in targets:
        daifu_ipy.vaccinate(eval(target, namespace), strict=True)


# the machine and the tables


def pin() -> str:
    """Keep this process on one core, where that is possible."""
    if not hasattr(os, "sched_setaffinity"):
        return "not pinned"
    core = max(os.sched_getaffinity(0))
    try:
        os.sched_setaffinity(0, {core})
    except OSError:
        return "not pinned"
    return f"pinned to core {core}"


def setting() -> str:
    """The machine, the Python and how code is vaccinated on it, in one line; pins the process."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    patched = "instructions patched" if patches_work() else "instructions NOT patched"
    return f"{python} ({patched}) on {_processor()}, {os.cpu_count()} cores, {platform.system()}{load}, {pin()}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def line(widths: Sequence[int], *cells: str) -> None:
    """One line of a table, the first column to the left, shown at once."""
    first, *rest = cells
    texts = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
    print(first.ljust(widths[0]), *texts, sep="  ", flush=True)


def conclude(figures: Sequence[Figure]) -> int:
    """Print what was missed and, last, the deciding figure; returns the exit status."""
    judged = [figure for figure in figures if figure.goal is not None]
    missed = [figure for figure in judged if not figure.is_met]
    print()
    if not judged:
        print("deciding: none of these has a goal")
        return 1
    for figure in missed:
        print(f"missed: {_spelled(figure)}" + (", too noisy to tell" if figure.void else ""))
    decides = max(missed or judged, key=lambda figure: figure.value / (figure.goal or 1))
    verdict = f"{len(missed)} of {len(judged)} goals missed" if missed else f"all {len(judged)} goals met"
    print(f"deciding: {_spelled(decides)}: {verdict}")
    return 1 if missed else 0


def _spelled(figure: Figure) -> str:
    return f"{figure.name}: {figure}, goal at most {figure.goal:g}{figure.unit}"

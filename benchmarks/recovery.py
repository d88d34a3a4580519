"""From the exception to the retried statement, decided automatically: `recovery.py [--profile]`.

The clock is read where the exception is raised, and again in the first thing that the retried statement calls. The
garbage collector stays on, as it is in a user's program.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import itertools
import pstats
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from types import FrameType
from typing import Any

from measure import Figure, conclude, line, program, protect, setting

import daifu_ipy

WIDTHS = (44, 10, 8, 8, 8, 8)
SMALL, LARGE = 30, 200
"""Lines of the units."""
UNITS = 100
"""How many units crash for the first time."""
RECOVERIES = 1000
"""How many recoveries one call takes."""
OBJECTS, BYTES = 10, 16 * RECOVERIES
"""What the last nine tenths of them may add: much less than one small object each: measuring is not steadier."""


class Crashed(Exception):
    """What the probe raises."""


@dataclass
class Probe:
    """A function that units call: it crashes when `armed` comes to 0, or every time, and notes when it is retried."""

    armed: int = -1
    every: bool = False
    on_raise: Callable[[], object] | None = None
    on_retry: Callable[[], object] | None = None
    seconds: list[float] = field(default_factory=list)
    raised_at: float = 0.0
    waiting: bool = False

    def __call__(self, value: int = 0) -> int:
        """Return the value, or crash."""
        now = perf_counter()
        if self.waiting:
            self.waiting = False
            if self.on_retry is not None:
                self.on_retry()
            self.seconds.append(now - self.raised_at)
        elif self.armed == 0 or self.every:
            self.waiting, self.armed = True, -1
            if self.on_raise is not None:
                self.on_raise()
            self.raised_at = perf_counter()
            raise Crashed("crash")
        elif self.armed > 0:
            self.armed -= 1
        return value


# units

FILLING = [
    "if total > {k}:\n    total -= {k}\nelse:\n    total += len(items) + {k}",
    "values = [item + {k} for item in items]",
    "total += sum(values) & {k}",
    "for item in items:\n    total ^= item * {k}",
    "name = f'step {{total}} of {k}'",
    "while total > 10_000_000_{k}:\n    total //= 2",
    "totals['{k}'] = total",
]

LOOPS = """
for epoch in range({epochs}):
    for batch in range({batches}):
        total += batch * {number}
        total += probe(epoch)
        totals[batch] = probe(total) + probe()
        if batch & 1:
            total -= probe(batch)
        total ^= epoch
    totals[epoch] = total
"""

MANY = """
def run(probe, times):
    total = 0
    for i in range(times):
        total += probe(i)
    return total
"""


def unit(lines: int, number: int) -> str:
    """A function of so many lines, with probes two loops deep in its middle; `number` makes it unlike any other."""
    loops = LOOPS.format(epochs=2 + number % 3, batches=3 + number % 5, number=number).strip().split("\n")
    start, end = ["total, totals, items = 0, {}, [1, 2, 3]", "values = items"], ["return total, totals"]
    rest = lines - len(loops) - len(start) - len(end) - 1
    before, after = filling(rest // 2, 1000 * number), filling(rest - rest // 2, 1000 * number + 500)
    body = [*start, *before, *loops, *after, *end]
    return "\n".join(["def run(probe):", *(f"    {text}" for text in body)]) + "\n"


def filling(count: int, first: int) -> list[str]:
    """So many lines of statements."""
    made: list[str] = []
    for k in itertools.count(first):
        lines = FILLING[k % len(FILLING)].format(k=k).split("\n")
        if len(made) + len(lines) > count:
            break
        made += lines
    return made + ["total += 1"] * (count - len(made))


def vaccinated(source: str, name: str) -> Callable[..., Any]:
    """A new function of this text."""
    namespace = program(source, name)
    protect(namespace, ["run"])
    run: Callable[..., Any] = namespace["run"]
    return run


# what is measured


def first_time(lines: int, probe: Probe, units: int = UNITS) -> None:
    """Recover once in each of many new units, at different statements of their inner loops."""
    for number in range(units):
        run = vaccinated(unit(lines, number), f"unit of {lines} lines")
        probe.armed = number % 4  # the first, second, ... call
        run(probe)


def other_location(lines: int, probe: Probe, units: int = UNITS) -> None:
    """Recover in units that have recovered at another location before."""
    for number in range(units):
        run = vaccinated(unit(lines, number), f"unit of {lines} lines")
        run(Probe(armed=0))
        probe.armed = 1
        run(probe)


def known_location(lines: int, probe: Probe, times: int = 10 * UNITS) -> None:
    """Recover where the unit was resumed before, each time in a new call."""
    run = vaccinated(unit(lines, 1), f"unit of {lines} lines")
    run(Probe(armed=4))
    for _ in range(times):
        probe.armed = 4
        run(probe)


def many(probe: Probe, times: int = RECOVERIES) -> Any:
    """Recover in every iteration of one call."""
    probe.every = True
    return vaccinated(MANY, "many recoveries")(probe, times)


def slowdown(times: int = RECOVERIES) -> float:
    """The time of the last tenth of many recoveries in one call against the first tenth, after one to warm up."""
    probe = Probe()
    many(probe, times + 1)
    seconds, tenth = probe.seconds[1:], times // 10
    return median(seconds[-tenth:]) / median(seconds[:tenth])


def steadiness(times: int = RECOVERIES) -> tuple[int, int, int]:
    """By how much the stack deepens, and how many objects and bytes there are more, from the first tenth to the end."""
    depths, objects, memory = [0] * times, [0] * times, [0] * times
    numbers = itertools.count()
    looked_at = (times // 10, times - 1)

    def note() -> None:
        number = next(numbers)
        depths[number] = depth()
        if number in looked_at:
            gc.collect()
            objects[number] = len(gc.get_objects())
            memory[number] = tracemalloc.get_traced_memory()[0]

    probe = Probe(on_retry=note, seconds=Forgetful())
    tracemalloc.start()
    try:
        many(Probe(), RECOVERIES)  # makes what is made once, and fills the history, which forgets its oldest events
        many(probe, times)
    finally:
        tracemalloc.stop()
    early, late = looked_at
    return max(depths) - min(depths), objects[late] - objects[early], memory[late] - memory[early]


class Forgetful(list[float]):
    """Keeps nothing: only the engine's memory is of interest."""

    def append(self, seconds: float) -> None:
        """Drop it."""


def depth() -> int:
    """How many frames are on the stack."""
    frame: FrameType | None = sys._getframe()
    count = 0
    while frame is not None:
        count, frame = count + 1, frame.f_back
    return count


def passes(crash: daifu_ipy.Crash) -> daifu_ipy.Pass:
    """The automatic manager."""
    if not isinstance(crash.exception, Crashed):
        raise SystemExit(f"a false alarm: {crash.summary} at {crash.restart}")
    return daifu_ipy.Pass()


# tables


def latency(name: str, goal: float | None, measure: Callable[[Probe], Any]) -> Figure:
    """Measure one row and print it."""
    probe = Probe()
    gc.collect()
    measure(probe)
    times = sorted(1000 * seconds for seconds in probe.seconds)
    low, high = times[len(times) // 10], times[len(times) * 9 // 10]
    return shown(Figure(name, median(times), goal, " ms"), f"{low:.3f}", f"{high:.3f}")


def shown(figure: Figure, low: str = "", high: str = "") -> Figure:
    """Print one row."""
    goal = "-" if figure.goal is None else f"{figure.goal:g}{figure.unit}"
    line(WIDTHS, figure.name, str(figure), low, high, goal, figure.verdict)
    return figure


def figures() -> list[Figure]:
    """All rows."""
    first_time(SMALL, Probe(), 3)  # imports what the first crash imports
    made = [
        latency(f"{SMALL} lines, first time", 1.0, lambda probe: first_time(SMALL, probe)),
        latency(f"{LARGE} lines, first time", 5.0, lambda probe: first_time(LARGE, probe)),
        latency(f"{SMALL} lines, another location", None, lambda probe: other_location(SMALL, probe)),
        latency(f"{LARGE} lines, another location", None, lambda probe: other_location(LARGE, probe)),
        latency(f"{SMALL} lines, known location", 0.2, lambda probe: known_location(SMALL, probe)),
        latency(f"{LARGE} lines, known location", 0.2, lambda probe: known_location(LARGE, probe)),
        shown(Figure(f"{RECOVERIES} in one call: last hundred / first", slowdown(), 1.2)),
    ]
    deeper, objects, memory = steadiness()
    return [
        *made,
        shown(Figure(f"{RECOVERIES} in one call: frames deeper", deeper, 0, digits=0)),
        shown(Figure(f"{RECOVERIES} in one call: objects more", objects, OBJECTS, digits=0)),
        shown(Figure(f"{RECOVERIES} in one call: bytes more", memory, BYTES, digits=0)),
    ]


def profile() -> None:
    """Where the time goes from the raise to the retried statement."""
    rows: list[tuple[str, Callable[[Probe], Any]]] = [
        (f"{SMALL} lines, first time", lambda probe: first_time(SMALL, probe)),
        (f"{LARGE} lines, first time", lambda probe: first_time(LARGE, probe)),
        (f"{SMALL} lines, known location", lambda probe: known_location(SMALL, probe)),
        (f"{LARGE} lines, known location", lambda probe: known_location(LARGE, probe)),
    ]
    first_time(SMALL, Probe(), 3)
    for name, measure in rows:
        profiler = cProfile.Profile()
        probe = Probe(on_raise=profiler.enable, on_retry=profiler.disable)
        measure(probe)
        print(f"\n== {name}: {len(probe.seconds)} recoveries, times with the profiler's own\n")
        stats = pstats.Stats(profiler).strip_dirs()
        stats.sort_stats("cumulative").print_stats(30)
        stats.sort_stats("tottime").print_stats(20)


def main(args: Sequence[str]) -> int:
    """Measure, or profile."""
    parser = argparse.ArgumentParser(description="From the exception to the retried statement, decided automatically.")
    parser.add_argument("--profile", action="store_true", help="show which functions take the time instead")
    options = parser.parse_args(args)
    print(setting())
    with daifu_ipy.repair_with(passes):
        if options.profile:
            profile()
            return 0
        line(WIDTHS, "raised to retried", "median", "10 %", "90 %", "goal", "")
        return conclude(figures())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

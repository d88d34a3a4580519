"""Vaccinated against native code while nothing crashes: `overhead.py [--rows TEXT] [--attempts N] [--dis]`.

A repair manager is set, as it is under ``%%daifu``; asking it would end the benchmark. The rows "after a recovery"
compare a vaccinated loop that was recovered in its first iteration with the same loop that did not crash, both from
some iterations later on, when the processor's caches are the loop's again.
"""

from __future__ import annotations

import argparse
import ast
import dis
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any

from measure import Figure, Timed, compare, conclude, line, new_filename, program, protect, setting, timed

import daifu_ipy
from daifu_ipy.engine.cells import cell_function, compile_cell
from daifu_ipy.engine.shapes import Options
from daifu_ipy.engine.vaccinate import vaccinated_cell

WIDTHS = (40, 7, 7, 10, 6, 8)
SPEED, SHORT_LOOP, HELD = 1.01, 1.05, 1.06
"""The goals: in general; of a loop of five items; where something is kept that Python would lose."""


@dataclass(frozen=True)
class Row:
    """A program that defines ``run(n)``, what of it is vaccinated, and how many exceptions it raises for each of n."""

    name: str
    source: str
    goal: float | None = SPEED
    protected: Sequence[str] = ("run",)
    kind: str = "function"
    exceptions: int = 0

    def make(self, vaccinated: bool) -> Callable[[int], Any]:
        """A new copy of the program."""
        if self.kind == "notebook cell":
            return notebook_cell(self.source, vaccinated)
        namespace = program(self.source, self.name, perf_counter=perf_counter)
        if vaccinated or self.kind == "recovery":
            protect(namespace, self.protected)
        if self.kind == "recovery":
            return recovering(namespace, vaccinated)
        run: Callable[[int], Any] = namespace["run"]
        return run

    def timed(self, vaccinated: bool) -> Timed:
        """The same, timed."""
        run = self.make(vaccinated)
        return (lambda size: float(run(size)[0])) if self.kind == "recovery" else timed(run)

    def result(self, vaccinated: bool, size: int) -> Any:
        """What the program computes."""
        result = self.make(vaccinated)(size)
        return result[1:] if self.kind == "recovery" else result


def notebook_cell(source: str, vaccinated: bool) -> Callable[[int], Any]:
    """Top-level code that reads ``n`` and leaves its result in ``total``."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    native, cell = notebook_code(source, namespace)

    def run(size: int) -> Any:
        namespace["n"] = size
        if vaccinated:
            cell()
        else:
            exec(native, namespace)
        return namespace["total"]

    return run


def notebook_code(source: str, namespace: dict[str, Any]) -> tuple[CodeType, FunctionType]:
    """A cell's native code, and its vaccinated code as a function."""
    filename = new_filename("notebook cell")
    tree = ast.parse(source, filename)
    native = compile_cell(tree, filename)
    return native, cell_function(vaccinated_cell(tree, native, source, namespace, Options(), None), namespace)


def recovering(namespace: dict[str, Any], crashes: bool) -> Callable[[int], Any]:
    """The seconds of a loop from some iterations on; with `crashes` it was recovered in the first."""

    def run(size: int) -> Any:
        namespace["armed"][:] = [True] if crashes else []
        return namespace["run"](size)

    return run


RECOVERY = """
from itertools import chain

armed = []
started = 0.0

def crash():
    if armed:
        armed.clear()
        raise RuntimeError("crash")

def stamp():
    global started
    started = perf_counter()

def warm(first, n):
    return chain(range(first), iter(stamp, None), range(first, n + first))
"""

PARSER = """
def parse(text):
    if text[0] == "#":
        raise ValueError(text)
    return len(text)

texts = [{texts}]

def run(n):
    total = bad = 0
    for i in range(n):
        for text in texts:
            try:
                total += parse(text)
            except ValueError as error:
                bad += len(error.args)
    return total, bad
"""

ROWS = [
    Row("tight loop", "def run(n):\n    t = 0\n    for i in range(n):\n        t += i & 3\n    return t"),
    Row(
        "nested loops",
        """
def run(n):
    t = 0
    for i in range(n):
        for j in range(100):
            t += i & j
    return t
""",
    ),
    Row(
        "while",
        """
def run(n):
    t = i = 0
    while i < n:
        t += i & 3
        i += 1
    return t
""",
    ),
    Row(
        "inner loop of 5 items",
        """
items = [1, 2, 3, 4, 5]

def run(n):
    t = 0
    for i in range(n):
        for j in items:
            t += j & i
    return t
""",
        SHORT_LOOP,
    ),
    Row(
        "unpacking loop",
        """
xs, ys = list(range(1000)), list(range(1000, 2000))

def run(n):
    t = 0
    for i in range(n):
        for x, y in zip(xs, ys):
            t += x * y + i
    return t
""",
        HELD,
    ),
    Row(
        "unpacking loop, least body",
        """
xs, ys = list(range(1000)), list(range(1000, 2000))

def run(n):
    t = 0
    for i in range(n):
        for x, y in zip(xs, ys):
            t += x
    return t
""",
        None,
    ),
    Row(
        "try/finally, no jump leaves",
        """
def run(n):
    t = k = 0
    for i in range(n):
        try:
            t += i & 3
        finally:
            k += 1
    return t, k
""",
    ),
    Row(
        "try/finally, left by continue",
        """
def run(n):
    t = k = 0
    for i in range(n):
        try:
            if i & 1:
                continue
            t += i & 3
        finally:
            k += 1
    return t, k
""",
        HELD,
    ),
    Row(
        "try/finally, left by return",
        """
done = []

def one(i):
    try:
        return i & 3
    finally:
        done.append(i)

def run(n):
    t = 0
    for i in range(n):
        t += one(i)
    done.clear()
    return t
""",
        HELD,
        ("run", "one"),
    ),
    Row(
        "raise and handle: pass",
        """
def run(n):
    t = 0
    for i in range(n):
        try:
            raise ValueError(i)
        except ValueError:
            pass
        t += i & 3
    return t
""",
        HELD,
    ),
    Row(
        "raise and handle: handler, named",
        """
def run(n):
    t = 0
    for i in range(n):
        try:
            raise ValueError(i)
        except ValueError as error:
            t += error.args[0] & 3
    return t
""",
        HELD,
    ),
    Row(
        "raise and handle: handler, unnamed",
        """
def run(n):
    t = 0
    for i in range(n):
        try:
            raise ValueError(i)
        except ValueError:
            t += i & 3
    return t
""",
        HELD,
    ),
    Row(
        "across frames: every record raises",
        PARSER.format(texts='"#a", "#bc", "#def"'),
        None,
        ("run", "parse"),
        exceptions=3,
    ),
    Row(
        "across frames: 1 of 20 raises",
        PARSER.format(texts='"#abc", ' + '"abc", ' * 19),
        None,
        ("run", "parse"),
        exceptions=1,
    ),
    Row(
        "with: a lock (C)",
        """
import threading

lock = threading.Lock()

def run(n):
    t = 0
    for i in range(n):
        with lock:
            t += i & 3
    return t
""",
    ),
    Row(
        "with: nullcontext",
        """
from contextlib import nullcontext

manager = nullcontext(3)

def run(n):
    t = 0
    for i in range(n):
        with manager as m:
            t += i & m
    return t
""",
    ),
    Row(
        "with: Python manager",
        """
class Manager:
    def __init__(self):
        self.depth = 0

    def __enter__(self):
        self.depth += 1
        return self

    def __exit__(self, kind, exception, traceback):
        self.depth -= 1

manager = Manager()

def run(n):
    t = 0
    for i in range(n):
        with manager as m:
            t += i & m.depth
    return t
""",
    ),
    Row(
        "with: Python manager, left by continue",
        """
class Manager:
    def __init__(self):
        self.depth = 0

    def __enter__(self):
        self.depth += 1
        return self

    def __exit__(self, kind, exception, traceback):
        self.depth -= 1

manager = Manager()

def run(n):
    t = 0
    for i in range(n):
        with manager as m:
            if i & 1:
                continue
            t += i & m.depth
    return t
""",
    ),
    Row(
        "small function in a loop",
        """
def small(a, b):
    return a + b

def run(n):
    t = 0
    for i in range(n):
        t = small(t, i) & 255
    return t
""",
        protected=("run", "small"),
    ),
    Row(
        "method in a loop",
        """
class Counter:
    def __init__(self):
        self.total = 0

    def add(self, x):
        self.total += x & 3

def run(n):
    counter = Counter()
    for i in range(n):
        counter.add(i)
    return counter.total
""",
        protected=("run", "Counter"),
    ),
    Row(
        "generator",
        """
from collections import deque

def numbers(n):
    for i in range(n):
        yield i & 3

def run(n):
    return deque(numbers(n), 3)
""",
        protected=("run", "numbers"),
    ),
    Row(
        "coroutine",
        """
async def small(a, b):
    return a + b

async def main(n):
    t = 0
    for i in range(n):
        t = await small(t, i) & 255
    return t

def run(n):
    try:
        main(n).send(None)
    except StopIteration as stop:
        return stop.value
""",
        protected=("main", "small"),
    ),
    Row(
        "notebook cell",
        """
total = 0
for i in range(n):
    total += i & 3
""",
        kind="notebook cell",
    ),
    Row(
        "loop after a recovery",
        RECOVERY
        + """
def run(n):
    t = 0
    for i in warm(500, n):
        if i == 0:
            crash()
        t += i & 3
    return perf_counter() - started, t
""",
        kind="recovery",
    ),
    Row(
        "nested loops after a recovery",
        RECOVERY
        + """
def run(n):
    t = 0
    for i in warm(5, n):
        for j in range(100):
            if i == j == 0:
                crash()
            t += i & j
    return perf_counter() - started, t
""",
        kind="recovery",
    ),
]


def asked(crash: daifu_ipy.Crash) -> daifu_ipy.Pass:
    """The manager: only the crashes of the rows about recovery may reach it."""
    if crash.exception is None or crash.exception.args != ("crash",):
        raise SystemExit(f"a false alarm: {crash.summary} at {crash.restart}")
    return daifu_ipy.Pass()


def measured(row: Row, attempts: int) -> Figure:
    """Measure a row, again while it is void, and print it."""
    goal = "-" if row.goal is None else f"{row.goal:.2f}"
    for left in reversed(range(attempts)):
        found = compare(lambda: row.timed(False), lambda: row.timed(True))
        in_noise = found.ratio - 1 <= found.half_width
        figure = Figure(row.name, found.ratio, row.goal, in_noise=in_noise, void=found.is_void)
        verdict = "again" if found.is_void and left else figure.verdict
        line(WIDTHS, row.name, str(figure), f"{found.same:.3f}", f"± {found.half_width:.3f}", goal, verdict)
        if not found.is_void:
            break
    if row.exceptions:
        print(f"    {1e6 * found.added / row.exceptions:.1f} us more for each exception")
    return figure


def show_code(row: Row) -> None:
    """The native and the vaccinated instructions of what a row protects."""
    if row.kind == "notebook cell":
        shown = [("cell", code) for code in notebook_code(row.source, {})]
    else:
        spaces = [program(row.source, row.name, perf_counter=perf_counter) for _ in range(2)]
        protect(spaces[1], row.protected)
        shown = [(target, eval(target, space)) for target in row.protected for space in spaces]
    for number, (target, code) in enumerate(shown):
        print(f"\n{row.name}: {target}, {'vaccinated' if number % 2 else 'native'}")
        dis.dis(code)


def main(args: Sequence[str]) -> int:
    """Measure the rows."""
    parser = argparse.ArgumentParser(description="Vaccinated against native code while nothing crashes.")
    parser.add_argument("--rows", default="", metavar="TEXT", help="only the rows whose names contain this")
    parser.add_argument("--attempts", type=int, default=5, metavar="N", help="how often a noisy row is measured (5)")
    parser.add_argument("--dis", action="store_true", help="show the rows' instructions instead")
    options = parser.parse_args(args)
    rows = [row for row in ROWS if options.rows in row.name]
    if options.dis:
        for row in rows:
            show_code(row)
        return 0
    print(setting())
    line(WIDTHS, "vaccinated / native", "ratio", "A/A", "half-width", "goal", "")
    with daifu_ipy.repair_with(asked):
        return conclude([measured(row, max(1, options.attempts)) for row in rows])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Has a retried statement failed again? Told by the code alone; compared with what the failing call itself noted."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from daifu_ipy import Pass, Repair, repair_with, run_cell, vaccinate

pytestmark = pytest.mark.slow

PATTERNS = ["f", "fff", ".ff..fff.f", "f.f.ff.f"]

PROGRAMS = {
    "once": "call()\ncall()",
    "for": "for i in range(6):\n    call()",
    "while": "n = 0\nwhile n < 6:\n    call()\n    n += 1",
    "first in while": "while not enough():\n    call()",
    "nested": "for i in range(3):\n    for j in range(2):\n        call()\n    k = i",
    "while in for": "for i in range(2):\n    n = 0\n    while n < 3:\n        call()\n        n += 1",
    "with": "for i in range(6):\n    with still():\n        call()",
    "enter": "for i in range(6):\n    with call() or still():\n        pass",
    "try": "for i in range(6):\n    try:\n        call()\n    except KeyError:\n        pass",
    "else": "for i in range(6):\n    try:\n        pass\n    except KeyError:\n        pass\n    else:\n        call()",
    "if": "for i in range(6):\n    if call() is None:\n        pass",
    "unpack": "for i in range(6):\n    for a, b in [Pair()]:\n        pass",
    "attribute": "for i in range(6):\n    x = still()\n    x.value = call()",
    "comprehension": "for i in range(6):\n    x = [call() for _ in [1]]",
    "two on a line": "for i in range(6):\n    i; call(); i",
    "guard": "for i in range(6):\n    match i:\n        case int() if call() is None:\n            pass",
}

HEADERS = {
    "test": "while call() or not enough():\n    pass",
    "next": "for x in Items():\n    pass",
    "next in for": "for i in range(2):\n    for x in Items():\n        pass",
    "handler": "for i in range(6):\n    try:\n        1 / 0\n    except ZeroDivisionError:\n        call()",
    "finally": "for i in range(6):\n    try:\n        pass\n    finally:\n        call()",
}


class Calls:
    """What programs call: fails as the pattern says, and notes it."""

    def __init__(self, pattern):
        self.pattern = iter(pattern)
        self.before = self.last = "."

    def call(self):
        self.before, self.last = self.last, next(self.pattern, ".")
        if self.last == "f":
            raise OSError

    def namespace(self):
        calls, left = self, itertools.count()

        class Still:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                return None

        class Pair:
            def __iter__(self):
                calls.call()
                return iter((1, 2))

        class Items:
            def __init__(self):
                self.left = 4

            def __iter__(self):
                return self

            def __next__(self):
                calls.call()
                self.left -= 1
                if self.left < 0:
                    raise StopIteration
                return self.left

        return {
            "call": self.call,
            "enough": lambda: next(left) > 5,
            "still": Still,
            "Pair": Pair,
            "Items": Items,
        }


def told(calls, run):
    """Pairs of what was told and what was so, for each crash."""
    found = []

    def manager(crash):
        found.append((crash.failed_again(), calls.before == "f"))
        return Pass()

    with repair_with(manager):
        run()
    return found


def indented(program):
    return program.replace("\n", "\n    ")


def function(program, calls, head="def unit():"):
    namespace = calls.namespace()
    run_cell(f"{head}\n    {indented(program)}", namespace)
    return namespace["unit"]


def as_function(program, calls):
    return function(program, calls)


def as_cell(program, calls):
    return lambda: run_cell(program, calls.namespace())


def as_generator(program, calls):
    unit = function(f"{program}\nyield", calls)
    return lambda: list(unit())


def as_coroutine(program, calls):
    unit = function(program, calls, "async def unit():")
    return lambda: asyncio.run(unit())


KINDS = [as_function, as_cell, as_generator, as_coroutine]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_told_exactly(name, kind, pattern):
    calls = Calls(pattern)
    found = told(calls, kind(PROGRAMS[name], calls))
    assert found
    assert [said for said, _ in found] == [so for _, so in found]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HEADERS)
def test_where_it_can_not_be_told_nothing_wrong_is_said(name, kind, pattern):
    calls = Calls(pattern)
    found = told(calls, kind(HEADERS[name], calls))
    assert found
    assert all(said in (None, so) for said, so in found)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_call_of_a_function_is_new(pattern):
    calls = Calls(pattern)
    namespace = calls.namespace()
    run_cell("def inner():\n    call()\ndef unit():\n    for i in range(6):\n        inner()", namespace)
    found = told(calls, namespace["unit"])
    assert [said for said, _ in found] == [so for _, so in found]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_outer_frame_that_is_repaired(pattern):
    calls = Calls(pattern)
    namespace = calls.namespace()
    run_cell("def inner():\n    call()\ndef unit():\n    for i in range(6):\n        inner()", namespace)
    found = []

    def manager(crash):
        found.append((crash.failed_again(1), calls.before == "f"))
        return Repair(then=Pass(), frame=1)

    with repair_with(manager):
        namespace["unit"]()
    assert [said for said, _ in found] == [so for _, so in found]


def test_an_action_before_makes_no_difference():
    found = []

    @vaccinate
    def unit():
        x = 0
        for _ in range(2):
            6 / x
            x = 0

    def manager(crash):
        found.append(crash.failed_again())
        return Repair(("x = 1",) if len(found) % 2 == 0 else (), Pass())

    with repair_with(manager):
        unit()
    assert found == [False, True, False, True]

"""A small crash and its recovery, in a thread and a namespace of their own: does recovery work in this process?"""

from __future__ import annotations

import linecache
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType
from typing import Any

from daifu_ipy.engine.managers import rehearsing, repair_with
from daifu_ipy.engine.repairs import Pass, Repair
from daifu_ipy.engine.texts import keep
from daifu_ipy.engine.vaccinate import vaccinated_function

FILENAME = "<daifu rehearsal>"
SOURCE = """\
class Block:
    def __init__(self, events):
        self.events = events

    def __enter__(self):
        self.events.append("in")

    def __exit__(self, *info):
        self.events.append("out")


def rehearsed(numbers):
    events = []
    for number in numbers:
        with Block(events):
            events.append(10 // number)
    return events
"""


def rehearse() -> str | None:
    """Crash, recover and compare with a run that never crashed; what went wrong, or None. Nobody is told of it."""
    with ThreadPoolExecutor(1) as pool:  # its frames end the search for handlers, and the context is its own
        crashed = pool.submit(_recovered, [5, 0, 10])
        error = crashed.exception()
    if error is not None:
        return f"{type(error).__name__}: {error}"[:200]
    expected, found = _function()([5, 5, 10]), crashed.result()
    return None if found == expected else f"the recovered run gave {found}, and not {expected}"


def _recovered(numbers: list[int]) -> Any:
    rehearsing.set(True)
    keep(FILENAME, SOURCE)
    function = _function()
    function.__code__ = vaccinated_function(function).code
    del linecache.cache[FILENAME]
    with repair_with(lambda crash: Repair(("number = 5",), Pass())):
        return function(numbers)


def _function() -> FunctionType:
    namespace: dict[str, Any] = {}
    exec(compile(SOURCE, FILENAME, "exec", dont_inherit=True), namespace)
    made: FunctionType = namespace["rehearsed"]
    return made

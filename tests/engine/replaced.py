"""A repair that leaves a statement out, compared with the program in which its text is replaced.

In a program for `expect_replaced`, each ``bad(x)`` crashes whenever it is reached and is answered by the repair; its
plain run has other text there: `Skip` nothing, `Break` a ``break``. Crashes at all points of the code that was resumed
after the first repair are passed, one in each run.
"""

from __future__ import annotations

import functools
import re
from unittest import mock

import daifu_ipy
from daifu_ipy import testing
from daifu_ipy.crash_points import World
from daifu_ipy.testing import InjectedCrash

TEXTS = {"Skip": "pass", "Continue": "continue", "Break": "break", "Return": "return {0.expression}"}


class MarkedWorld(World):
    """``bad(x)`` always crashes; x may have effects. So do some methods of the classes below."""

    def __init__(self, crashes):
        super().__init__(crashes)
        self.helpers |= {"bad": self.bad, "ok": lambda x=None: x}
        for class_ in (Iters, Nexts, Target, Enters, Exits):
            self.helpers[class_.__name__] = type(class_.__name__, (class_,), {"bad": self.bad})

    def bad(self, x=None):
        self.trail.append("bad")
        raise InjectedCrash("bad")


class Iters:
    """What can't be iterated over or unpacked."""

    def __iter__(self):
        self.bad()

    __aiter__ = __iter__


class Nexts:
    """An iterator; each item that is None fails, when it has been taken."""

    def __init__(self, items):
        self.items = list(items)

    def __iter__(self):
        return self

    __aiter__ = __iter__

    def __next__(self):
        if not self.items:
            raise StopIteration
        item = self.items.pop(0)
        return self.bad() if item is None else item

    async def __anext__(self):
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None


class Target:
    """What nothing can be stored in."""

    def __setattr__(self, name, value):
        self.bad()

    def __setitem__(self, name, value):
        self.bad()


class Enters:
    """A context manager that can't be entered."""

    def __enter__(self):
        self.bad()

    async def __aenter__(self):
        self.bad()

    def __exit__(self, *error):
        pass

    async def __aexit__(self, *error):
        pass


class Exits(Enters):
    """A context manager that can't be left."""

    def __enter__(self):
        return self

    async def __aenter__(self):
        return self

    def __exit__(self, *error):
        self.bad()

    async def __aexit__(self, *error):
        self.bad()


def answer(repairs, run, _, crash):
    """Repair what is marked, pass what was injected, abort what the program raised."""
    error = crash.exception
    if isinstance(error, InjectedCrash) and error.args == ("bad",):
        if crash.refusal is None:
            run.interceptions.append(f"{crash.restart}")
        return repairs(crash)
    return testing_answer(run, daifu_ipy.Pass(), crash)


testing_answer = testing._answer


def replacement(ending):
    """The text that stands for an ending."""
    return TEXTS[type(ending).__name__].format(ending)


def expect_replaced(source, repair, like=None, *, crashes=True, marks=None, **unit):
    """Check that `source`, its marked statement repaired, can't be told from `like`.

    `like` is by default `source` with each ``bad(...)`` replaced by what the ending stands for. `crashes`: also with
    a second crash, at each point after the first mark. `marks`: how often the mark is reached (default: at least once).
    """
    repairs = repair if callable(repair) else lambda crash: repair
    if like is None:
        like = re.sub(r"bad\([^()\n]*\)", replacement(getattr(repair, "then", repair)), source)
    program, example = testing._Program(source, **unit), testing._Program(like, **unit)
    call = f"expect_replaced({source!r}, {repair!r}, {like!r}{', ' * bool(unit)}{unit or ''})"
    with (
        mock.patch.object(testing, "World", MarkedWorld),
        mock.patch.object(testing, "_answer", functools.partial(answer, repairs)),
    ):
        plain = testing._run(example)

        def check(*injected):
            run = testing._run(program, injected, repair=daifu_ipy.Pass())
            testing._compare(call, program, injected, plain, run, run.trail.count("bad") + len(injected))
            return run

        first = check()
        reached = first.trail.count("bad")
        assert reached >= 1 if marks is None else reached == marks, f"the mark was reached {reached} times"
        for number, name in enumerate(first.trail, 1):
            if crashes and name != "bad" and "bad" in first.trail[:number]:
                check(number)


def expect_refused(source, repair, reason, **unit):
    """Check that `repair` is refused for `reason` at each mark, and has changed nothing then: a good one follows."""
    refusals = []

    def manager(crash):
        if crash.refusal is None:
            return repair
        refusals.append(crash.refusal)
        return daifu_ipy.Repair(actions=("global bad; bad = ok",))

    expect_replaced(source, manager, source.replace("bad(", "ok("), crashes=False, **unit)
    assert len(refusals) == 1
    assert re.search(reason, refusals[0]), refusals[0]

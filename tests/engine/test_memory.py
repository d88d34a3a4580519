"""After Pass nothing of the failed attempt is alive, and the resumed run does not see that it was one."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import ClassVar

import pytest

from daifu_ipy import Pass, repair_with, run_cell, unvaccinate, vaccinate
from daifu_ipy.engine.managers import settings

FAILS: list[BaseException] = []
"""What the next calls of `fail_once` raise."""
SEEN: list[object] = []


class Big:
    """Stands for a tensor: all that are alive are in `alive`."""

    alive: ClassVar[weakref.WeakSet[Big]] = weakref.WeakSet()

    def __init__(self):
        self.alive.add(self)


class OutOfMemory(Exception):
    pass


@pytest.fixture(autouse=True)
def by_reference_counting_alone():
    """An out-of-memory retry can't wait for a collection."""
    FAILS[:] = [OutOfMemory()]
    SEEN.clear()
    Big.alive = weakref.WeakSet()
    told, settings.on_closed = settings.on_closed, []  # the history grows up to its bound (tests/repair)
    gc.disable()
    gc.freeze()  # what is there before the test need not be looked at
    yield
    gc.unfreeze()
    gc.enable()
    settings.on_closed = told
    assert not FAILS


def fail_once():
    activation = Big()
    if FAILS:
        raise FAILS.pop()
    return activation


def fail_in_a_cycle():
    activation = Big()
    if FAILS:
        try:
            raise FAILS.pop()
        except OutOfMemory as error:
            kept = error
            raise kept
    return activation


def fail_with_context():
    activation = Big()
    if FAILS:
        try:
            raise KeyError(activation)
        except KeyError as error:
            raise FAILS.pop() from error
    return activation


def alive():
    return len(Big.alive)


def note_alive(expected):
    SEEN.append((alive(), expected))


def note_state():
    """What a plain run sees: no exception is being handled, and a new one has no context."""
    SEEN.append(sys.exc_info())
    try:
        raise ValueError
    except ValueError as error:
        SEEN.append(error.__context__)


def passes(run):
    """Call `run`; its one crash is passed."""
    crashes = []

    def manager(crash):
        crashes.append(crash)
        return Pass()

    with repair_with(manager):
        result = run()
    assert len(crashes) == 1
    return result


# -- the failed call


def retried_in_function(fail):
    note_alive(0)
    x = fail()
    note_alive(1)
    del x
    note_alive(0)


def retried_in_loop(fail):
    for _ in range(2):
        with memoryview(b""):
            x = fail()
        note_alive(1)
        x = None
        note_alive(0)
    return x


def retried_in_try(fail):
    try:
        x = fail()
        note_alive(1)
    except ValueError:
        SEEN.append("never")
    finally:
        x = None
        note_alive(0)
    return x


def retried_in_handler(fail):
    try:
        raise ValueError
    except ValueError:
        x = fail()
        note_alive(1)
    del x
    note_alive(0)


def retried_in_finally(fail):
    try:
        SEEN.append((0, 0))
    finally:
        x = fail()
        note_alive(1)
    del x
    note_alive(0)


def retried_in_generator(fail):
    x = fail()
    note_alive(1)
    del x
    yield
    note_alive(0)


async def retried_in_coroutine(fail):
    x = fail()
    note_alive(1)
    del x
    note_alive(0)


async def retried_in_async_generator(fail):
    x = fail()
    note_alive(1)
    del x
    yield
    note_alive(0)


def finish(made):
    if hasattr(made, "__aiter__"):
        made = drain(made)
    if hasattr(made, "send"):
        try:
            while True:
                made.send(None)
        except StopIteration:
            pass


async def drain(generator):
    async for _ in generator:
        pass


FUNCTIONS = [
    retried_in_function,
    retried_in_loop,
    retried_in_try,
    retried_in_handler,
    retried_in_finally,
    retried_in_generator,
    retried_in_coroutine,
    retried_in_async_generator,
]
KINDS_OF_FAILURE = [fail_once, fail_in_a_cycle, fail_with_context]


def name(value):
    return getattr(value, "__name__", None)


@pytest.mark.parametrize("function", FUNCTIONS, ids=name)
@pytest.mark.parametrize("fail", KINDS_OF_FAILURE, ids=name)
def test_nothing_of_the_failed_call_is_alive(function, fail):
    passes(lambda: finish(vaccinate(function, strict=True)(fail)))
    assert SEEN
    assert all(found == expected for found, expected in SEEN), SEEN
    assert not alive()


def test_nothing_of_the_failed_call_is_alive_in_a_notebook_cell():
    namespace = {"fail": fail_once, "note_alive": note_alive}
    passes(lambda: run_cell("x = fail()\nnote_alive(1)\ndel x\nnote_alive(0)", namespace))
    assert SEEN == [(1, 1), (0, 0)]


def test_the_exception_dies():
    class Tracked(Exception):
        pass

    FAILS[:] = [Tracked()]
    died = weakref.ref(FAILS[0], lambda _: SEEN.append("dead"))

    @vaccinate
    def f():
        fail_once()
        SEEN.append("resumed")

    passes(f)
    assert SEEN == ["dead", "resumed"]
    assert died() is None


def test_a_crash_that_is_kept_keeps_nothing():
    @vaccinate
    def f():
        x = Big()
        fail_once()
        x = None
        note_alive(0)
        return x

    kept = []
    with repair_with(lambda crash: kept.append(crash) or Pass()):
        f()
    assert SEEN == [(0, 0)]
    assert len(kept) == 1


def test_a_manager_that_looks_at_everything_keeps_nothing():
    @vaccinate
    def f(x):
        for _ in [1]:
            fail_once()
        x = None
        note_alive(0)
        return x

    def manager(crash):
        looked_at = (
            crash.namespace["x"],
            crash.stack,
            crash.source,
            crash.progress,
            crash.repeats,
            crash.stale,
        )
        SEEN.append(len(looked_at))
        crash.action("y = x")
        crash.action("del y")
        return Pass()

    with repair_with(manager):
        f(Big())
    assert SEEN == [6, (0, 0)]


# -- what the crashed frame held


def local_is_rebound():
    x = Big()
    fail_once()
    note_alive(1)
    x = None
    note_alive(0)
    return x


def argument_is_rebound(x):
    fail_once()
    x = None
    note_alive(0)
    return x


def captured_is_rebound():
    x = Big()

    def g():
        return x

    fail_once()
    x = None
    note_alive(0)
    return g


def local_of_an_outer_unit_is_rebound():
    def g():
        fail_once()

    x = Big()
    g()
    note_alive(1)
    x = None
    note_alive(0)
    return x


def fail_once_more():
    fail_once()


def item_is_rebound():
    for x in iter([Big(), Big()].pop, None):
        fail_once()
        x = None
        note_alive(1)
        break
    note_alive(0)
    return x


def unpacked_item_is_rebound():
    xs = [None, (1, Big()), (2, Big())]
    for n, x in iter(xs.pop, None):
        fail_once()
        n = x = None
        note_alive(len(xs) - 1)
    return n, x


def handled_exception_is_left():
    try:
        raise ValueError(Big())
    except ValueError:
        fail_once()
    note_alive(0)


def manager_is_left():
    class Manager:
        def __enter__(self):
            self.big = Big()

        def __exit__(self, *_):
            pass

    with Manager():
        fail_once()
        note_alive(1)
    note_alive(0)


def subject_is_left():
    match Big():
        case Big() if fail_once():
            pass
    note_alive(0)


def iterator_is_left():
    def gen():
        big = Big()
        yield
        yield big

    for _ in gen():
        fail_once()
        break
    note_alive(0)


def iterator_is_left_for_a_handler():
    def gen():
        big = Big()
        yield
        yield big

    try:
        for _ in gen():
            fail_once()
            raise ValueError
    except ValueError:
        note_alive(0)


HOLDERS = [
    local_is_rebound,
    captured_is_rebound,
    local_of_an_outer_unit_is_rebound,
    item_is_rebound,
    unpacked_item_is_rebound,
    handled_exception_is_left,
    manager_is_left,
    subject_is_left,
    iterator_is_left,
    iterator_is_left_for_a_handler,
]


@pytest.mark.parametrize("function", HOLDERS, ids=name)
def test_the_crashed_frame_pins_nothing(function):
    passes(vaccinate(function, strict=True))
    assert SEEN
    assert all(found == expected for found, expected in SEEN), SEEN


@pytest.mark.parametrize("function", [*FUNCTIONS, *HOLDERS], ids=name)
def test_the_plain_run_is_as_these_tests_expect(function):
    unvaccinate(function)
    FAILS.clear()
    finish(function(fail_once) if function in FUNCTIONS else function())
    assert SEEN
    assert all(found == expected for found, expected in SEEN), SEEN


def test_the_crashed_frame_pins_no_argument():
    passes(lambda: vaccinate(argument_is_rebound)(Big()))
    assert SEEN == [(0, 0)]


# -- the state of the interpreter


def plain_state():
    fail_once()
    note_state()


def state_in_loops():
    for _ in [1]:
        while True:
            fail_once()
            note_state()
            break


def state_in_with():
    with memoryview(b""):
        fail_once()
        note_state()
    note_state()


def state_in_try():
    try:
        fail_once()
        note_state()
    finally:
        note_state()


def state_in_finally():
    try:
        pass
    finally:
        fail_once()
        note_state()
    note_state()


def state_in_match():
    match 1:
        case 1 if fail_once():
            note_state()
    note_state()


def state_in_generator():
    fail_once()
    note_state()
    yield
    note_state()


async def state_in_coroutine():
    fail_once()
    note_state()


STATES = [
    plain_state,
    state_in_loops,
    state_in_with,
    state_in_try,
    state_in_finally,
    state_in_match,
    state_in_generator,
    state_in_coroutine,
]


@pytest.mark.parametrize("function", STATES, ids=name)
def test_no_exception_is_being_handled(function):
    passes(lambda: finish(vaccinate(function, strict=True)()))
    assert SEEN
    assert set(SEEN) == {None, (None, None, None)}


def test_the_caller_s_exception_is_the_one_being_handled():
    @vaccinate
    def f():
        fail_once()
        SEEN.append(sys.exception())

    def run():
        try:
            raise KeyError(1)
        except KeyError as error:
            f()
            return SEEN.pop() is error

    assert passes(run)


def test_nothing_is_left_for_post_mortem_debuggers():
    @vaccinate
    def f():
        fail_once()

    before = {n: getattr(sys, n, None) for n in ("last_exc", "last_value", "last_type", "last_traceback")}
    passes(f)
    assert {n: getattr(sys, n, None) for n in before} == before


# -- many recoveries


class Flaky:
    """Fails at every call, but for the one that retries it."""

    def __init__(self):
        self.failed = False
        self.depths: list[int] = []
        self.blocks: list[int] = []
        self.objects: list[int] = []

    def __call__(self):
        self.failed = not self.failed
        if self.failed:
            raise OutOfMemory
        depth, frame = 0, sys._getframe()
        while frame is not None:
            depth, frame = depth + 1, frame.f_back
        self.depths.append(depth)
        if len(self.depths) % 250 == 0:
            gc.collect()
            self.objects.append(len(gc.get_objects()))
            self.blocks.append(sys.getallocatedblocks())


def many_in_loop(flaky, n):
    for i in range(n):
        with memoryview(b""):
            flaky()
    return i


def many_in_while(flaky, n):
    while n:
        flaky()
        n -= 1


def many_in_try(flaky, n):
    for _ in range(n):
        try:
            flaky()
        finally:
            pass


def many_in_generator(flaky, n):
    for _ in range(n):
        flaky()
        yield


async def many_in_coroutine(flaky, n):
    for _ in range(n):
        flaky()


async def many_in_async_generator(flaky, n):
    for _ in range(n):
        flaky()
        yield


MANY = [
    many_in_loop,
    many_in_while,
    many_in_try,
    many_in_generator,
    many_in_coroutine,
    many_in_async_generator,
]


@pytest.mark.parametrize("function", MANY, ids=name)
def test_a_thousand_recoveries_neither_deepen_the_stack_nor_grow(function):
    FAILS.clear()
    flaky, crashes = Flaky(), 0

    def manager(crash):
        nonlocal crashes
        crashes += 1
        return Pass()

    with repair_with(manager):
        finish(vaccinate(function, strict=True)(flaky, 1000))
    assert crashes == len(flaky.depths) == 1000
    assert len(set(flaky.depths)) == 1, sorted(set(flaky.depths))
    assert flaky.objects[-1] - flaky.objects[0] < 100, flaky.objects
    assert flaky.blocks[-1] - flaky.blocks[0] < 1000, flaky.blocks


def test_the_caller_s_variables_are_not_pinned():
    """A frame that is only looked at, on the way out, does not keep what it drops later."""
    inner = vaccinate(fail_once_more)

    def caller():
        x = Big()
        inner()
        x = None
        note_alive(0)
        return x

    passes(caller)
    assert SEEN == [(0, 0)]


def test_a_thousand_recoveries_in_a_notebook_cell():
    FAILS.clear()
    flaky = Flaky()
    with repair_with(lambda crash: Pass()):
        run_cell("for i in range(1000):\n    flaky()", {"flaky": flaky})
    assert len(set(flaky.depths)) == 1
    assert flaky.objects[-1] - flaky.objects[0] < 100, flaky.objects

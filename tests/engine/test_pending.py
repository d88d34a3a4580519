"""Crashes that wait: `pending`, decisions from other threads, and what a closed crash still knows."""

from __future__ import annotations

import contextvars
import gc
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import daifu_ipy
from daifu_ipy import Abort, Pass, Repair, Return, Skip, Surgery, pending
from daifu_ipy.engine.managers import settings
from tests.engine.modules import Answers, Fault, Module, raised, run

LONG = 30
"""Seconds; only a failing test waits so long."""


class Waiting:
    """A manager that waits until somebody decides; `ready` tells that a crash is there."""

    def __init__(self):
        self.ready = threading.Semaphore(0)
        self.crashes = []

    def __call__(self, crash):
        self.crashes.append(crash)
        self.ready.release()
        return crash.wait(LONG)

    def next(self):
        """The next crash that waits."""
        assert self.ready.acquire(timeout=LONG)
        return self.crashes[-1]


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as made:
        yield made


def start(pool, module, manager, call="main()"):
    """Run in another thread; a future."""

    def work():
        return run(module, manager, call)

    return pool.submit(work)


SOURCE = "def main():\n x = 3\n x = bad(x)\n log('after')\n return x\n"


def test_nothing_is_pending():
    assert pending() == []


def test_a_crash_is_pending_until_it_is_decided(pool):
    module, manager = Module(SOURCE), Waiting()
    result = start(pool, module, manager)
    crash = manager.next()
    assert pending() == [crash]
    assert crash.thread is not threading.current_thread()
    assert type(crash.exception) is Fault
    assert crash.namespace == {"x": 3}
    assert crash.decide(Skip()) is True
    assert result.result(LONG) == 3
    assert pending() == []
    assert module.lines == ["after"]


def test_pending_gives_a_list_of_its_own(pool):
    module, manager = Module(SOURCE), Waiting()
    result = start(pool, module, manager)
    crash = manager.next()
    pending().clear()
    assert pending() == [crash]
    crash.decide(Skip())
    result.result(LONG)


def test_the_first_decision_wins(pool):
    module, manager = Module(SOURCE), Waiting()
    result = start(pool, module, manager)
    crash = manager.next()
    barrier, told = threading.Barrier(6), []

    def decide(number):
        barrier.wait(LONG)
        told.append((crash.decide(Return(str(number))), number))

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    winners = [number for won, number in told if won]
    assert len(winners) == 1
    assert result.result(LONG) == winners[0]
    assert crash.decide(Pass()) is False


def test_a_decision_from_elsewhere_wins_over_the_managers_answer():
    module = Module(SOURCE)
    decided = []

    def manager(crash):
        thread = threading.Thread(target=lambda: decided.append(crash.decide(Return("8"))))
        thread.start()
        thread.join(LONG)
        return Return("9")

    assert run(module, manager) == 8
    assert decided == [True]


def test_a_manager_may_decide_itself():
    def manager(crash):
        assert crash.decide(Return("8"))
        assert not crash.decide(Return("9"))

    assert run(Module(SOURCE), manager) == 8


def test_a_manager_that_answers_tells_late_ones_no(pool):
    crashes = []

    def manager(crash):
        crashes.append(crash)
        return Return("8")

    assert run(Module(SOURCE), manager) == 8
    assert crashes[0].decide(Pass()) is False
    assert crashes[0].outcome == "recovered"


def test_wait_gives_the_decision(pool):
    module, manager = Module(SOURCE), Waiting()
    result = start(pool, module, manager)
    crash = manager.next()
    waiters = [pool.submit(crash.wait, LONG) for _ in range(3)]
    repair = Repair(("x = 5",), Skip())
    assert crash.decide(repair)
    assert result.result(LONG) == 5
    assert [waiter.result(LONG) for waiter in waiters] == [repair] * 3


def test_wait_with_a_timeout():
    module, answers = Module(SOURCE), []

    def manager(crash):
        answers.append(crash.wait(0))
        return Skip()

    run(module, manager)
    assert answers == [None]


def test_a_wait_that_runs_out_aborts():
    error = raised(Module(SOURCE), lambda crash: crash.wait(0))
    assert type(error) is Fault
    assert "gave no repair" in error.__notes__[0]


def test_a_bare_ending_decides(pool):
    module, manager = Module(SOURCE), Waiting()
    result = start(pool, module, manager)
    crash = manager.next()
    with pytest.raises(TypeError, match="Repair"):
        crash.decide("pass")
    assert pending() == [crash]
    assert crash.decide(Skip)
    assert result.result(LONG) == 3
    assert crash.decision == Repair(then=Skip())


def test_a_refused_decision_makes_it_pending_again(pool):
    module, manager = Module(SOURCE), Waiting()
    result = start(pool, module, manager)
    crash = manager.next()
    assert crash.refusal is None
    assert crash.decide(Surgery("def ("))
    assert manager.next() is crash
    assert "does not parse" in crash.refusal
    assert crash.decision is None
    assert pending() == [crash]
    assert crash.decide(Skip())
    assert result.result(LONG) == 3
    assert crash.decide(Skip()) is False


def test_an_abort_from_another_thread(pool):
    module, manager = Module(SOURCE), Waiting()
    result = start(pool, module, manager)
    crash = manager.next()
    crash.decide(Abort())
    assert type(result.exception(LONG)) is Fault
    assert crash.outcome == "aborted"
    assert pending() == []


def test_an_action_from_another_thread(pool):
    module, manager = Module(SOURCE), Waiting()
    result = start(pool, module, manager)
    crash = manager.next()
    shown = crash.action("print(x)\nx = 7\nx + 1")
    assert (shown.stdout, shown.value, shown.error) == ("3\n", "8", None)
    assert crash.namespace == {"x": 7}
    crash.decide(Pass())
    assert result.result(LONG) == 7


def test_an_action_from_another_thread_that_fails_in_vaccinated_code(pool):
    """The action's error is its result, there too: it must not ask, and not hang."""
    module = Module("def helper():\n bad(1)\n return 4\n" + SOURCE, faults=2)
    manager = Waiting()
    with_default = Answers()
    result = start(pool, module, manager)
    crash = manager.next()
    with daifu_ipy.repair_with(with_default):
        shown = crash.action("helper()")
    assert shown.error is not None
    assert with_default.asked == []
    crash.decide(Skip())
    assert result.result(LONG) == 3


def test_several_threads(pool):
    module, manager = Module(SOURCE, faults=4), Waiting()
    results = [start(pool, module, manager) for _ in range(4)]
    for _ in results:
        manager.next()
    assert pending() == manager.crashes
    assert len({crash.thread for crash in pending()}) == 4
    by_thread = {}
    for number, crash in enumerate(reversed(pending())):
        by_thread[crash.thread] = number
        assert crash.decide(Repair((f"x = {number}",), Skip()))
        assert crash not in pending() or True
    assert sorted(result.result(LONG) for result in results) == [0, 1, 2, 3]
    assert pending() == []


def test_a_thread_goes_on_while_another_waits(pool):
    module, manager = Module(SOURCE, faults=1), Waiting()
    waiting = start(pool, module, manager)
    crash = manager.next()
    assert start(pool, module, Answers()).result(LONG) == 3
    module.faults = 1
    assert start(pool, module, Answers(Return("5"))).result(LONG) == 5
    assert pending() == [crash]
    crash.decide(Skip())
    assert waiting.result(LONG) == 3


def test_two_threads_in_one_unit_keep_their_variables(pool):
    source = "def main(n):\n total = 0\n for i in range(3):\n  total += n\n  bad(i)\n return total\n"
    module, manager = Module(source, faults=2), Waiting()
    results = [start(pool, module, manager, f"main({n})") for n in (1, 10)]
    manager.next()
    manager.next()
    assert sorted(crash.namespace["n"] for crash in pending()) == [1, 10]
    for crash in pending():
        crash.decide(Pass())
    assert [result.result(LONG) for result in results] == [3, 30]


def test_surgery_while_another_thread_waits_in_the_same_unit(pool):
    source = "def main(n):\n total = 0\n for i in range(3):\n  total += n\n  bad(i)\n return total\n"
    module, manager = Module(source, faults=2), Waiting()
    results = [start(pool, module, manager, f"main({n})") for n in (1, 10)]
    manager.next()
    manager.next()
    first, second = sorted(pending(), key=lambda crash: crash.namespace["n"])
    first.decide(Surgery(source.replace("total += n", "total += 2 * n").replace("bad(i)", "pass")))
    assert results[0].result(LONG) == 2 + 1 + 2 + 2
    second.decide(Pass())
    assert results[1].result(LONG) == 30  # it goes on with the text that it has
    assert module.main(1) == 6


def test_a_manager_sees_its_crash_in_pending():
    seen = []

    def manager(crash):
        seen.append(pending() == [crash])
        return Skip()

    run(Module(SOURCE), manager)
    assert seen == [True]


def test_who_is_asked_in_which_thread_is_context_local(pool):
    module, here, there = Module(SOURCE, faults=2), Answers(Skip()), Answers(Skip())
    with daifu_ipy.repair_with(there):
        context = contextvars.copy_context()
    with daifu_ipy.repair_with(here):
        assert pool.submit(context.run, module.main).result(LONG) == 3
    assert (len(here.asked), len(there.asked)) == (0, 1)


# -- closed


class Thing:
    """Something that can be referred to weakly."""


CLOSED = """
def helper(thing):
    here = thing
    bad(1)
def main(make):
    thing = make()
    for i in range(2):
        shared = thing
        get = lambda: shared
        helper(thing)
        thing = shared = get = None
    log("end")
"""

ENDINGS = {
    "pass": Pass(),
    "skip": Skip(),
    "abort": Abort(),
    "return": Return(),
    "none": None,
    "action": Repair(("x = 1",), Skip()),
}


def look_at(crash):
    """Use all that a front end may look at."""
    assert crash.frames
    assert crash.stack is not None
    crash.action("i + 1")
    return crash.namespace, crash.source, crash.repeats, crash.stale, crash.progress


@pytest.mark.parametrize("looked", [False, True], ids=["unseen", "looked-at"])
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize("vaccinated", ["main", "helper"])
def test_a_closed_crash_holds_nothing(ending, looked, vaccinated):
    module = Module(CLOSED, plain=["helper"] if vaccinated == "main" else [])
    crashes, things, errors = [], [], []

    def make():
        thing = Thing()
        things.append(weakref.ref(thing))
        return thing

    def manager(crash):
        crashes.append(crash)
        errors.append(weakref.ref(crash.exception))
        if looked:
            look_at(crash)
        return ending

    vars(module).update(make=make)
    gc.freeze()  # what is there before the test need not be looked at
    gc.disable()
    try:
        error = raised(module, manager, "main(make)")
        assert type(error) is (Fault if ending in (None, Abort()) else type(None))
        del error
        if ending in (None, Abort()):
            gc.collect()  # a traceback is a cycle, natively too
        assert [thing() for thing in things] == [None]
        assert [error() for error in errors] == [None]
    finally:
        gc.unfreeze()
        gc.enable()
    (crash,) = crashes
    assert crash.exception is None
    assert crash.stack is None
    assert crash.frames == ()
    assert crash.namespace == {}
    assert crash.source == ""
    assert crash.frame(0) is None
    assert crash.frame(1) is None
    # its text stays
    assert crash.summary == "Fault: 1"
    assert crash.restart.unit == vaccinated
    assert crash.restart.statement.strip() == ("helper(thing)" if vaccinated == "main" else "bad(1)")
    assert repr(crash) == f"<Crash Fault: 1 at {vaccinated}:{crash.restart.line}>"
    assert crash.outcome == ("aborted" if ending in (None, Abort()) else "recovered")
    assert crash.repeats == crash.stale == crash.progress == ()
    # and nothing can be done to it any more
    assert crash.decide(Pass()) is False
    assert crash.action("1").error is not None
    with pytest.raises(daifu_ipy.engine.repairs.Refusal, match="decided"):
        crash.preview("def main(make): pass")
    assert not any(type(held).__name__ in ("frame", "traceback", "Fault") for held in gc.get_referents(vars(crash)))


def test_a_crash_that_is_closed_from_an_outer_frame():
    module = Module(CLOSED)
    crashes = []

    def manager(crash):
        crashes.append(crash)
        return Repair(then=Skip(), frame=1)

    vars(module).update(make=Thing)
    assert raised(module, manager, "main(make)") is None
    (crash,) = crashes
    assert (crash.exception, crash.stack, crash.frames, crash.namespace) == (None, None, (), {})


def test_what_the_history_is_told():
    told = []
    module = Module(SOURCE, faults=2)
    settings.on_closed.append(lambda crash, repair, seconds, outcome: told.append((crash.summary, repair, outcome)))
    try:
        run(module, Answers(Skip()))
        raised(module, Answers(None))
    finally:
        settings.on_closed.pop()
    assert told == [("Fault: 3", Repair(then=Skip()), "recovered"), ("Fault: 3", None, "aborted")]


def test_a_waiting_crash_is_not_lost_by_a_collection(pool):
    module, manager = Module(SOURCE), Waiting()
    result = start(pool, module, manager)
    manager.next()
    manager.crashes.clear()
    gc.collect()
    (crash,) = pending()
    crash.decide(Skip())
    assert result.result(LONG) == 3


def test_last_exception_is_forgotten():
    module = Module(SOURCE)

    def manager(crash):
        sys.last_value = sys.last_exc = crash.exception
        return Skip()

    run(module, manager)
    assert not hasattr(sys, "last_value")
    assert not hasattr(sys, "last_exc")

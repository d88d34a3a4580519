"""What is a crash and who is asked, in the order of the design's section 3.2; what is not repaired arrives as it was."""

from __future__ import annotations

import asyncio
import contextvars
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest

import daifu_ipy
from daifu_ipy import Abort, Pass, Repair, Skip, Surgery
from daifu_ipy.engine import barrier, interception
from daifu_ipy.engine.managers import settings
from tests.engine.modules import Answers, Fault, Module, escaping, raised, run


@pytest.fixture(autouse=True)
def nothing_internal_fails():
    """No internal error hides behind a note."""
    with mock.patch.object(barrier, "INTERNAL_ERRORS", []):
        yield
        assert barrier.INTERNAL_ERRORS == []


def notes(error):
    return getattr(error, "__notes__", [])


def asked(source, *answers, call="main()", faults=1, plain=(), **names):
    """Who was asked for a repair, and what came out."""
    module, manager = Module(source, faults=faults, plain=plain, **names), Answers(*answers)
    error = raised(module, manager, call)
    return [unit for _, unit, _ in manager.asked], error, module


# -- what is never a crash


def test_a_forked_child_declines():
    module = Module("def main():\n log('start')\n bad(7)\n log('repaired')\n")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        manager = Answers(Skip())
        error = raised(module, manager)
        os.write(writing, pickle.dumps((type(error).__name__, notes(error), manager.asked)))
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pickle.load(pipe) == ("Fault", [], [])
    assert raised(module, Answers(Skip())) is None
    assert module.lines == ["start", "repaired"]


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit])
@pytest.mark.parametrize("intercept", ["auto", "unhandled", "all"])
def test_never_a_crash(kind, intercept):
    with mock.patch.object(settings, "intercept", intercept):
        units, error, _ = asked("def main():\n with cm('a'): raise kind(3)\n", Skip(), kind=kind)
    assert units == []
    assert type(error) is kind
    assert notes(error) == []


def test_keyboard_interrupt_is_a_crash_for_a_manager_set_by_api():
    source = "def main():\n for x in (1, 2):\n  if x == 1: raise KeyboardInterrupt\n  log(x)\n"
    units, error, module = asked(source, Skip())
    assert (units, error, module.lines) == (["main"], None, [1, 2])


def test_keyboard_interrupt_is_no_crash_for_the_default_manager():
    module, manager = Module("def main(): raise KeyboardInterrupt\n"), Answers(Skip())
    with mock.patch.object(settings, "default", manager):
        error = escaping(module.main)
        assert type(error) is KeyboardInterrupt
        assert manager.asked == []
        module = Module("def main(): bad(1)\n")
        assert escaping(module.main) is None
        assert len(manager.asked) == 1


def test_the_global_manager_is_one_set_by_api():
    module, manager = Module("def main(): raise KeyboardInterrupt\n"), Answers(Skip())
    daifu_ipy.set_repair_manager(manager)
    try:
        assert escaping(module.main) is None
    finally:
        daifu_ipy.set_repair_manager(None)
    assert len(manager.asked) == 1


def test_without_a_manager_nothing_is_asked():
    module = Module("def main(): bad(1)\n")
    with mock.patch.object(settings, "default", None):
        error = escaping(module.main)
    assert type(error) is Fault
    assert notes(error) == []


def test_a_local_manager_goes_before_the_global_one():
    module, first, second = Module("def main(): bad(1)\n", faults=2), Answers(Skip()), Answers(Skip())
    with mock.patch.object(settings, "manager", second):
        assert raised(module, first) is None
        assert (len(first.asked), len(second.asked)) == (1, 0)
        assert escaping(module.main) is None
        assert (len(first.asked), len(second.asked)) == (1, 1)


# -- while a repair is being made


HELPER = "def helper(x):\n with cm('helper'):\n  bad(x)\n  return 5\n"


def test_an_error_inside_an_action_is_its_result():
    results = []

    def act(crash):
        results.append(crash.action("y = helper(1)"))
        results.append(crash.action("y = helper(1)"))
        return Skip()

    units, error, module = asked(HELPER + "def main():\n y = 0\n bad(0)\n return y\n", act, faults=2)
    assert (units, error) == (["main"], None)
    assert results[0].error is not None
    assert "Fault" in results[0].error
    assert results[1].error is None
    assert module.lines == ["enter helper", "exit helper Fault", "enter helper", "exit helper None"]


def test_an_error_inside_a_manager_is_not_intercepted():
    module = Module(HELPER + "def main():\n bad(0)\n return 3\n", faults=2)
    count = []

    def manager(crash):
        count.append(crash)
        try:
            module.helper(1)
        except Fault:
            return Skip()

    error = raised(module, manager)
    assert (error, len(count)) == (None, 1)
    assert module.lines == ["enter helper", "exit helper Fault"]


def test_interception_works_again_after_a_manager_has_failed():
    module = Module("def main():\n bad(0)\n return 3\n", faults=2)

    def broken(crash):
        raise OSError("no front end")

    assert type(raised(module, broken)) is Fault
    manager = Answers(Skip())
    assert raised(module, manager) is None
    assert len(manager.asked) == 1


# -- aborts, with a note that says why


def broken(crash):
    raise OSError("no front end")


def stopped(crash):
    raise KeyboardInterrupt


def leaves(crash):
    raise SystemExit(1)


ABORTS = {
    "none": ([None], "the repair manager gave no repair"),
    "raises": ([broken], "OSError: no front end"),
    "is-stopped": ([stopped], "stopped by KeyboardInterrupt"),
    "exits": ([leaves], "stopped by SystemExit"),
    "wrong-type": (["pass"], "a repair manager's answer must be a Repair"),
    "wrong-number": ([3], "not int"),
    "false": ([False], "not bool"),
    "class-surgery": ([Surgery], "Surgery needs the new source"),
    "refused-twice": ([Surgery("def ("), Surgery("def (")], "refused twice: the new source does not parse"),
    "refused-then-none": ([Surgery("def ("), None], "does not parse"),
    "refused-action-twice": (
        [Repair(("1 / 0",)), Repair(("1 / 0",))],
        "refused twice: action 1 failed: ZeroDivisionError",
    ),
    "no-such-frame": ([Repair(frame=4), Repair(frame=4)], "no vaccinated frame 4"),
}


@pytest.mark.parametrize(("answers", "why"), ABORTS.values(), ids=ABORTS)
def test_aborts_with_a_note(answers, why):
    module, manager = Module("def main():\n with cm('a'): bad(7)\n"), Answers(*answers)
    error = raised(module, manager)
    assert type(error) is Fault
    assert error.args == (7,)
    assert error.__context__ is None
    assert len(notes(error)) == 1
    assert why in notes(error)[0]
    assert notes(error)[0].startswith("daifu_ipy: aborted: ")
    assert module.lines == ["enter a", "exit a Fault"]
    assert len(manager.asked) == len(answers)


def test_an_abort_that_was_wished_has_no_note():
    _, error, _ = asked("def main(): bad(7)\n", Abort())
    assert notes(error) == []
    assert vars(error) == {}


@pytest.mark.parametrize("first", [Surgery("def ("), Repair(("1 / 0",)), Repair(frame=4)], ids=repr)
def test_another_repair_after_a_refusal(first):
    module, manager = Module("def main():\n bad(7)\n log(1)\n"), Answers(first, Skip())
    assert raised(module, manager) is None
    assert module.lines == [1]
    assert len(manager.refusals) == 1


def test_the_same_repair_may_come_again_in_between():
    wrong, other = Surgery("def ("), Surgery("def )")
    module, manager = Module("def main():\n bad(7)\n log(1)\n"), Answers(wrong, other, wrong, Skip())
    assert raised(module, manager) is None
    assert len(manager.refusals) == 3


# -- an aborted exception goes out unasked


NESTED = """
def inner():
    with cm("inner"):
        try: bad(1)
        finally: log("finally")
def middle():
    for i in range(2):
        try: inner()
        except KeyError: log("no")
def outer():
    with cm("outer"): middle()
def main(): outer()
"""


@pytest.mark.parametrize("answer", [Abort(), None, broken], ids=["abort", "none", "raises"])
@pytest.mark.parametrize("intercept", ["auto", "unhandled", "all"])
def test_an_aborted_exception_passes_all_units(answer, intercept):
    with mock.patch.object(settings, "intercept", intercept):
        units, error, module = asked(NESTED, answer)
    assert units == ["inner"]
    assert type(error) is Fault
    assert module.lines == ["enter outer", "enter inner", "finally", "exit inner Fault", "exit outer Fault"]
    assert vars(error).keys() <= {"__notes__"}


SWALLOWED = """
def inner():
    with cm("inner"): bad(1)
def plain():
    try: inner()
    except Fault as e: return e
def main():
    kept = plain()
    log("kept")
    raise kept
"""
# (who is asked; each is answered by Abort)
AGAIN = {
    "raised-again-by-the-caller": (SWALLOWED, "all", ["inner", "main"]),
    "raised-again-elsewhere": (
        SWALLOWED.replace("raise kept", "other(kept)") + "def other(e):\n with cm('other'): raise e\n",
        "all",
        ["inner", "other"],
    ),
    "raised-again-by-the-same-unit": (
        "def inner(e=None):\n if e: raise e\n bad(1)\ndef plain():\n try: inner()\n except Fault as e: return e\ndef main():\n e = plain()\n inner(e)\n",
        "all",
        ["inner", "inner"],
    ),
    "raised-again-by-plain-code": (
        SWALLOWED.replace("raise kept", "again(kept)") + "def again(e): raise e\n",
        "all",
        ["inner", "main"],
    ),
    "swallowed-in-the-unit": (
        "def main():\n try: inner()\n except Fault as e: kept = e\n log('kept')\n raise kept\ndef inner(): bad(1)\n",
        "all",
        ["inner", "main"],
    ),
    "swallowed-in-the-unit-itself": (
        "def main():\n try: bad(1)\n except Fault as e: kept = e\n log('kept')\n raise kept\n",
        "auto",
        ["main"],
    ),
    "swallowed-by-suppress": (
        "import contextlib\nkept = []\ndef inner():\n try: bad(1)\n except Fault as e:\n  kept.append(e)\n  raise\ndef main():\n with contextlib.suppress(Fault): inner()\n log('kept')\n raise kept[0]\n",
        "all",
        ["inner", "main"],
    ),
    "handled-then-raised-twice": (
        "def main():\n try: {}['k']\n except KeyError as e: kept = e\n try: raise kept\n except KeyError: log('again')\n raise kept\n",
        "auto",
        ["main"],
    ),
    "in-a-loop": (
        "def inner(e): raise e\ndef plain(e):\n try: inner(e)\n except Fault: log('swallowed')\ndef main():\n e = Fault()\n for _ in range(3): plain(e)\n",
        "all",
        ["inner", "inner", "inner"],
    ),
    "reraised-in-handler-of-a-caller": (
        "def inner(): bad(1)\ndef main():\n try: inner()\n except Fault:\n  log('seen')\n  raise\n",
        "all",
        ["inner"],
    ),
    "reraised-by-name-in-handler-of-a-caller": (
        "def inner(): bad(1)\ndef main():\n try: inner()\n except Fault as e:\n  log('seen')\n  raise e\n",
        "all",
        ["inner", "main"],
    ),
    "converted-in-handler-of-a-caller": (
        "def inner(): bad(1)\ndef main():\n try: inner()\n except Fault as e: raise KeyError('k') from e\n",
        "all",
        ["inner", "main"],
    ),
}


@pytest.mark.parametrize(("source", "intercept", "units"), AGAIN.values(), ids=AGAIN)
def test_raised_again(source, intercept, units):
    with mock.patch.object(settings, "intercept", intercept):
        found, _, _ = asked(source, *[Abort()] * 5, plain=["plain", "again"])
    assert found == units


def test_a_mark_does_not_outlive_the_way_out():
    module = Module("def inner(): bad(1)\ndef main(): inner()\n")
    error = raised(module, Answers(Abort()))
    assert vars(error) == {}
    again = Module("def main(e): raise e\n", e=error)
    manager = Answers(Skip())
    assert raised(again, manager, "main(e)") is None
    assert len(manager.asked) == 1


def test_an_aborted_exception_raised_in_another_thread_is_asked_again():
    module = Module(SWALLOWED, plain=["plain"])
    with mock.patch.object(settings, "intercept", "all"):
        kept = run(module, Answers(Abort()), "plain()")
        other = Module("def main(e): raise e\n", e=kept)
        second = Answers(Skip())
        assert raised(other, second, "main(e)") is None
    assert len(second.asked) == 1


# -- settings


SETTINGS = {
    "handled-in-the-unit": (
        "def main():\n try: bad(1)\n except Fault: log('handled')\n",
        {"auto": 0, "unhandled": 0, "all": 0},
    ),
    "handled": (
        "def inner(): bad(1)\ndef main():\n try: inner()\n except Fault: log('handled')\n",
        {"auto": 0, "unhandled": 0, "all": 1},
    ),
    "undecidable": (
        "def main():\n try: bad(1)\n except kinds(): log('handled')\ndef kinds(): return KeyError\n",
        {"auto": 0, "unhandled": 1, "all": 1},
    ),
    "undecidable-and-handled": (
        "def inner(): bad(1)\ndef main():\n try: inner()\n except kinds(): log('handled')\ndef kinds(): return Fault\n",
        {"auto": 0, "unhandled": 1, "all": 1},
    ),
    "unhandled": (
        "def main():\n try: bad(1)\n except KeyError: log('handled')\n",
        {"auto": 1, "unhandled": 1, "all": 1},
    ),
    "protocol": (
        "def __getattr__(name): raise AttributeError(name)\nclass C:\n def __getattr__(self, name): raise AttributeError(name)\ndef main(): log(hasattr(C(), 'x'))\n",
        {"auto": 0, "unhandled": 0, "all": 1},
    ),
    "thrown-in": (
        "def gen(): yield 1\ndef main():\n g = gen()\n next(g)\n g.throw(Fault)\n",
        {"auto": 1, "unhandled": 1, "all": 1},
    ),
}


@pytest.mark.parametrize("intercept", ["auto", "unhandled", "all"])
@pytest.mark.parametrize(("source", "times"), SETTINGS.values(), ids=SETTINGS)
def test_settings(source, times, intercept):
    with mock.patch.object(settings, "intercept", intercept):
        units, _, _ = asked(source, *[Abort()] * 4, Fault=Fault)
    assert len(units) == times[intercept], units


# -- protocols


PROTOCOLS = {
    "next": "class C:\n def __iter__(self): return self\n def __next__(self): raise StopIteration\ndef main(): return list(C())\n",
    "next-with-default": "class C:\n def __next__(self): raise StopIteration\ndef main(): return next(C(), 3)\n",
    "map": "def f(x): raise StopIteration\ndef main(): return list(map(f, [1]))\n",
    "iter-with-sentinel": "def f(): raise StopIteration\ndef main(): return list(iter(f, 3))\n",
    "getattr": "class C:\n def __getattr__(self, name): raise AttributeError(name)\ndef main(): return getattr(C(), 'x', 3)\n",
    "hasattr-property": "class C:\n @property\n def x(self): raise AttributeError('x')\ndef main(): return hasattr(C(), 'x')\n",
    "getitem-iteration": "class C:\n def __len__(self): return 2\n def __getitem__(self, i):\n  if i >= 2: raise IndexError(i)\n  return i\ndef main(): return list(C())\n",
    "mapping": "from collections.abc import Mapping\nclass C(Mapping):\n def __iter__(self): return iter(())\n def __len__(self): return 0\n def __getitem__(self, k): raise KeyError(k)\ndef main(): return C().get(1, 3), 1 in C()\n",
    "del": "class C:\n def __del__(self): raise Fault\ndef main():\n c = C()\n del c\n return 3\n",
    "generator-stop": "def gen():\n yield 1\n return 2\ndef main(): return list(gen())\n",
    "missing": "class C(dict):\n def __missing__(self, k): raise KeyError(k)\ndef main(): return C().get(1, 3)\n",
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("source", PROTOCOLS.values(), ids=PROTOCOLS)
def test_answers_to_protocols_are_no_crashes(source):
    with mock.patch.object(sys, "unraisablehook", print):
        plain = Module(source, vaccinated=False).main()
        module, manager = Module(source), Answers(Skip())
        assert run(module, manager) == plain
    assert manager.asked == []


CRASHES = {
    "dataset": "class C:\n def __len__(self): return 2\n def __getitem__(self, i):\n  bad(i)\n  return i\ndef main(): return [C()[i] for i in range(2)]\n",
    "dataset-index-error": "class C:\n def __len__(self): return 2\n def __getitem__(self, i):\n  return [5, 6][i + faulty()]\ndef main(): return C()[0], C()[1]\n",
    "next": "class C:\n n = 0\n def __iter__(self): return self\n def __next__(self):\n  bad(1)\n  self.n += 1\n  if self.n > 2: raise StopIteration\n  return self.n\ndef main(): return list(C())\n",
    "property": "class C:\n @property\n def x(self):\n  bad(1)\n  return 4\ndef main(): return C().x\n",
    "getattr": "class C:\n def __getattr__(self, name):\n  bad(1)\n  return 4\ndef main(): return C().x\n",
    "key": "def key(x):\n bad(x)\n return -x\ndef main(): return sorted([1, 2, 3], key=key)\n",
    "map": "def f(x):\n bad(x)\n return -x\ndef main(): return list(map(f, [1, 2, 3]))\n",
    "generator": "def gen():\n yield 1\n bad(1)\n yield 2\ndef main(): return list(gen())\n",
    "eq": "class C:\n def __eq__(self, other):\n  bad(1)\n  return True\n __hash__ = None\ndef main(): return C() in [1]\n",
    "init": "class C:\n def __init__(self):\n  bad(1)\n  self.x = 3\ndef main(): return C().x\n",
    "bool": "class C:\n def __bool__(self):\n  bad(1)\n  return False\ndef main(): return 3 if C() else 4\n",
    "enter": "class C:\n def __enter__(self):\n  bad(1)\n  return 5\n def __exit__(self, *a): log('exit')\ndef main():\n with C() as c: return c\n",
    "exit": "class C:\n def __enter__(self): return 5\n def __exit__(self, *a):\n  bad(1)\n  log('exit')\ndef main():\n with C() as c: return c\n",
}


@pytest.mark.parametrize("source", CRASHES.values(), ids=CRASHES)
def test_other_errors_in_protocols_are_crashes(source):
    example = Module(source, faults=0, vaccinated=False, faulty=lambda: 0)
    module, manager, offsets = Module(source, faulty=lambda: offsets.pop()), Answers(Pass()), [0, 0, 9]
    assert run(module, manager) == example.main()
    assert len(manager.asked) == 1
    assert module.lines == example.lines


# -- thrown in


THROWN = {
    "generator": "def gen():\n try: yield 1\n finally: log('finally')\ndef main():\n g = gen()\n next(g)\n g.throw(KeyError('k'))\n",
    "generator-from": "def sub():\n with cm('sub'): yield 1\ndef gen():\n with cm('gen'): yield from sub()\ndef main():\n g = gen()\n next(g)\n g.throw(KeyError('k'))\n",
    "unstarted": "def gen(): yield 1\ndef main():\n g = gen()\n g.throw(KeyError('k'))\n",
    "contextmanager": "import contextlib\n@contextlib.contextmanager\ndef manager():\n try: yield 1\n finally: log('finally')\ndef main():\n with manager(): {}['k']\n",
}


@pytest.mark.parametrize("source", THROWN.values(), ids=THROWN)
def test_what_a_consumer_throws_in_is_its_own_crash(source):
    units, error, module = asked(source, Abort(), Abort())
    example = Module(source, vaccinated=False)
    assert type(escaping(example.main)) is KeyError is type(error)
    assert units == ["main"]
    assert module.lines == example.lines


def test_an_error_of_its_own_after_a_throw_is_a_crash():
    source = "def gen():\n try: yield 1\n except KeyError:\n  bad(2)\n  yield 3\ndef main():\n g = gen()\n next(g)\n return g.throw(KeyError('k'))\n"
    module, manager = Module(source), Answers(Pass())
    assert run(module, manager) == 3
    assert [unit for _, unit, _ in manager.asked] == ["gen"]


def test_close_is_no_crash():
    source = "def gen():\n with cm('gen'): yield 1\ndef main():\n g = gen()\n next(g)\n g.close()\n"
    units, error, module = asked(source, Skip())
    assert (units, error) == ([], None)
    assert module.lines == ["enter gen", "exit gen GeneratorExit"]


def test_cancelling_a_task_is_no_crash():
    source = """
async def work():
    try: await asyncio.sleep(9)
    finally: log("finally")
async def main():
    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    task.cancel()
    try: await task
    except asyncio.CancelledError: log("cancelled")
    bad(1)
    log("end")
"""
    module, manager = Module(source, asyncio=asyncio), Answers(Skip())
    with daifu_ipy.repair_with(manager):
        asyncio.run(module.main())
    assert [unit for _, unit, _ in manager.asked] == ["main"]
    assert module.lines == ["finally", "cancelled", "end"]


def test_a_task_whose_waiter_handles_it_is_no_crash():
    source = """
async def work(): bad(1)
async def main():
    try: await asyncio.ensure_future(work())
    except Fault: log("handled")
"""
    module, manager = Module(source, asyncio=asyncio), Answers(Skip())
    with daifu_ipy.repair_with(manager):
        asyncio.run(module.main())
    assert (manager.asked, module.lines) == ([], ["handled"])


def test_an_aborted_exception_passes_who_awaits_the_task():
    source = """
async def work(): bad(1)
async def main():
    task = asyncio.ensure_future(work())
    log("waiting")
    await task
"""
    module, manager = Module(source, asyncio=asyncio), Answers(Abort(), Abort())
    with daifu_ipy.repair_with(manager):
        error = escaping_in_context(lambda: asyncio.run(module.main()))
    assert type(error) is Fault
    assert [unit for _, unit, _ in manager.asked] == ["work"]


def escaping_in_context(call):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, call).exception()


def test_an_aborted_exception_passes_who_waits_for_the_thread():
    source = """
def work(): bad(1)
def main():
    with ThreadPoolExecutor(1) as pool: pool.submit(work).result()
"""
    module, manager = Module(source, ThreadPoolExecutor=ThreadPoolExecutor), Answers(Abort(), Abort())
    with mock.patch.object(settings, "manager", manager):
        error = escaping(module.main)
    assert type(error) is Fault
    assert [unit for _, unit, _ in manager.asked] == ["work"]


# -- the innermost


def test_the_innermost_unit_is_asked():
    units, error, _ = asked(NESTED, Skip(), Skip(), faults=1)
    assert (units, error) == (["inner"], None)


def test_a_plain_function_belongs_to_the_unit_that_called_it():
    units, error, module = asked("def helper(): bad(1)\ndef main():\n helper()\n log(2)\n", Skip(), plain=["helper"])
    assert (units, error, module.lines) == (["main"], None, [2])


# -- internal errors


def explode(*args, **kwargs):
    raise RuntimeError("a fault of ours")


SITES = {
    "is-it-a-crash": (interception, "_is_crash"),
    "would-handle": (interception, "would_handle"),
    "capture": (interception, "frame_of"),
    "complete": (interception, "complete_slots"),
    "decide": (interception, "_decide"),
    "plan": (interception, "plan_for"),
    "close": (interception, "_close"),
    "release": (interception, "_release"),
    "manager": (interception, "current_manager"),
    "takeover": (interception.Plan, "takeover"),
}


@pytest.mark.parametrize(("where", "name"), SITES.values(), ids=SITES)
@pytest.mark.parametrize("wrapped", [False, True], ids=["unit", "with"])
def test_an_internal_error_never_replaces_the_users_exception(where, name, wrapped):
    body = "with cm('a'):\n  log(1)\n  bad(7)" if wrapped else "log(1)\n bad(7)"
    module, manager = Module(f"def inner():\n {body}\ndef main(): inner()\n"), Answers(*[Skip()] * 3)
    with mock.patch.object(where, name, explode):
        error = raised(module, manager)
    barrier.INTERNAL_ERRORS.clear()
    assert type(error) is Fault
    assert error.args == (7,)
    assert error.__context__ is None
    assert any("a fault of ours" in note for note in notes(error))
    assert module.lines == (["enter a", 1, "exit a Fault"] if wrapped else [1])
    assert daifu_ipy.pending() == []
    # and the next crash is intercepted
    module.faults, manager = 1, Answers(Skip())
    assert raised(module, manager) is None
    assert len(manager.asked) == 1


def test_an_observer_that_fails():
    module, manager = Module("def main():\n bad(7)\n log(1)\n"), Answers(Skip())
    with mock.patch.object(settings, "on_closed", [explode]):
        error = raised(module, manager)
    barrier.INTERNAL_ERRORS.clear()
    assert error is None or (type(error) is Fault and notes(error))
    assert daifu_ipy.pending() == []


OPTIMISED = """
import daifu_ipy
from daifu_ipy.engine import invariants, cells
from daifu_ipy.engine.invariants import InternalError, check
assert False, "asserts are off"
try: check(False, lambda: "kept")
except InternalError as error: print("check", error)
seen = []
def manager(crash):
    seen.append(crash.refusal)
    return daifu_ipy.Surgery("def (") if len(seen) == 1 else daifu_ipy.Skip()
namespace = {}
with daifu_ipy.repair_with(manager):
    daifu_ipy.run_cell("def f(x):\\n if x: raise ValueError\\n return x\\ny = 1\\nz = f(y)\\nw = 2\\n", namespace)
print("z", namespace["z"], "w", namespace["w"], len(seen), "parse" in seen[1])
"""


def test_checks_are_kept_by_python_O():
    out = subprocess.run(
        [sys.executable, "-O", "-c", OPTIMISED], capture_output=True, text=True, timeout=50, check=False
    )
    assert out.stderr == ""
    assert out.stdout.splitlines() == ["check kept", "z 1 w 2 2 True"]

"""Repairs of outer frames: what lies between is left natively, and the named unit goes on from its call.

The reference catches the same exception natively, around that call.
"""

from __future__ import annotations

import gc
import weakref

import pytest

from daifu_ipy import Abort, Break, Continue, Pass, Repair, Return, Skip, Surgery
from daifu_ipy.engine.managers import settings
from tests.engine.modules import Answers, Fault, Module, expect_repaired, raised, run


def at_1(then=Pass(), *actions):
    return Repair(actions, then, frame=1)


def at_2(then=Pass(), *actions):
    return Repair(actions, then, frame=2)


INNER = """
def inner(x):
    with cm("inner"):
        try:
            log(x)
            bad(x)
            log("done")
        finally:
            log("finally")
    return x + 1
"""

# (the outer unit, how it is repaired, what it does natively)
OUTER = {
    "pass": ("y = inner(5)\n    log(y)", at_1(), "try: y = inner(5)\n    except Fault: y = inner(5)\n    log(y)"),
    "skip": (
        "y = 0\n    y = inner(5)\n    log(y)",
        at_1(Skip()),
        "y = 0\n    try: y = inner(5)\n    except Fault: pass\n    log(y)",
    ),
    "return": (
        "y = 8\n    y = inner(5)\n    log(y)",
        at_1(Return("y + 1")),
        "y = 8\n    try: y = inner(5)\n    except Fault: return y + 1",
    ),
    "return-call": ("return inner(5)", at_1(), "try: return inner(5)\n    except Fault: return inner(5)"),
    "continue": (
        "for i in range(3):\n        inner(i)\n        log('end')",
        at_1(Continue()),
        "for i in range(3):\n        try: inner(i)\n        except Fault: continue\n        log('end')",
    ),
    "break": (
        "for i in range(3):\n        inner(i)\n        log('end')\n    else: log('else')",
        at_1(Break()),
        "for i in range(3):\n        try: inner(i)\n        except Fault: break\n        log('end')\n    else: log('else')",
    ),
    "action": (
        "x = 5\n    y = inner(x)\n    log(y)",
        at_1(Pass(), "x = 7"),
        "x = 5\n    try: y = inner(x)\n    except Fault: x = 7; y = inner(x)\n    log(y)",
    ),
    "action-skip": (
        "x = y = 5\n    y = inner(x)\n    log((x, y))",
        at_1(Skip(), "y = 7", "x = y"),
        "x = y = 5\n    try: y = inner(x)\n    except Fault: y = 7; x = y\n    log((x, y))",
    ),
    "with": (
        "with cm('outer'):\n        y = inner(5)\n        log(y)",
        at_1(),
        "with cm('outer'):\n        try: y = inner(5)\n        except Fault: y = inner(5)\n        log(y)",
    ),
    "with-return": (
        "with cm('outer'):\n        return inner(5)",
        at_1(),
        "with cm('outer'):\n        try: return inner(5)\n        except Fault: return inner(5)",
    ),
    "with-skip": (
        "with cm('outer'):\n        inner(5)\n        log(1)",
        at_1(Skip()),
        "with cm('outer'):\n        try: inner(5)\n        except Fault: pass\n        log(1)",
    ),
    "with-leave": (
        "with cm('outer'):\n        inner(5)\n        log(1)",
        at_1(Return("3")),
        "with cm('outer'):\n        try: inner(5)\n        except Fault: return 3",
    ),
    "loop": (
        "for i in range(3):\n        log(inner(i))",
        at_1(),
        "for i in range(3):\n        try: y = inner(i)\n        except Fault: y = inner(i)\n        log(y)",
    ),
    "while": (
        "n = 3\n    while n:\n        n -= 1\n        log(inner(n))",
        at_1(),
        "n = 3\n    while n:\n        n -= 1\n        try: y = inner(n)\n        except Fault: y = inner(n)\n        log(y)",
    ),
    "while-test": (
        "n = 0\n    while inner(n) < 3:\n        n += 1",
        at_1(),
        "n = 0\n    try: y = inner(n)\n    except Fault: y = inner(n)\n    while y < 3:\n        n += 1\n        y = inner(n)",
    ),
    "if-test": (
        "if inner(1):\n        log('yes')",
        at_1(),
        "try: y = inner(1)\n    except Fault: y = inner(1)\n    if y: log('yes')",
    ),
    "iter": (
        "for i in [inner(1)]:\n        log(i)",
        at_1(),
        "try: y = inner(1)\n    except Fault: y = inner(1)\n    log(y)",
    ),
    "iter-skip": (
        "for i in [inner(1)]:\n        log(i)\n    log('after')",
        at_1(Skip()),
        "try: inner(1)\n    except Fault: pass\n    log('after')",
    ),
    "finally": (
        "try:\n        y = inner(5)\n        log(y)\n    finally:\n        log('outer finally')",
        at_1(),
        "try:\n        try: y = inner(5)\n        except Fault: y = inner(5)\n        log(y)\n    finally:\n        log('outer finally')",
    ),
    "finally-return": (
        "try:\n        return inner(5)\n    finally:\n        log('outer finally')",
        at_1(),
        "try:\n        try: return inner(5)\n        except Fault: return inner(5)\n    finally:\n        log('outer finally')",
    ),
    "in-finally": (
        "try:\n        return log(4)\n    finally:\n        inner(5)\n        log('outer finally')",
        at_1(),
        "try:\n        return log(4)\n    finally:\n        try: inner(5)\n        except Fault: inner(5)\n        log('outer finally')",
    ),
    "handler": (
        "try:\n        {}['k']\n    except KeyError as e:\n        inner(5)\n        log(e.args)",
        at_1(),
        "try:\n        {}['k']\n    except KeyError as e:\n        try: inner(5)\n        except Fault: inner(5)\n        log(e.args)",
    ),
    "handler-no-name": (
        "try:\n        {}['k']\n    except KeyError:\n        inner(5)\n        import sys\n        log(type(sys.exception()))",
        at_1(),
        "try:\n        {}['k']\n    except KeyError:\n        try: inner(5)\n        except Fault: inner(5)\n        import sys\n        log(type(sys.exception()))",
    ),
    "other-handler": (
        "try:\n        inner(5)\n    except KeyError:\n        log('no')\n    else:\n        log('else')",
        at_1(),
        "try:\n        try: inner(5)\n        except Fault: inner(5)\n    except KeyError:\n        log('no')\n    else:\n        log('else')",
    ),
    "match-guard": (
        "match 1:\n        case 1 if inner(1) == 2: log('two')",
        at_1(),
        "try: y = inner(1)\n    except Fault: y = inner(1)\n    if y == 2: log('two')",
    ),
    "captured": (
        "x = 5\n    g = lambda: x\n    y = inner(x)\n    log((y, g()))",
        at_1(Pass(), "x = 7"),
        "x = 5\n    g = lambda: x\n    try: y = inner(x)\n    except Fault: x = 7; y = inner(x)\n    log((y, g()))",
    ),
    "captured-unbound": (
        "g = lambda: x\n    x = inner(5)\n    log((x, g()))",
        at_1(),
        "g = lambda: x\n    try: x = inner(5)\n    except Fault: x = inner(5)\n    log((x, g()))",
    ),
    "captured-deleted": (
        "x = 5\n    g = lambda: x\n    inner(5)\n    try: g()\n    except NameError: log('unbound')",
        at_1(Skip(), "del x"),
        "x = 5\n    g = lambda: x\n    try: inner(5)\n    except Fault: del x\n    try: g()\n    except NameError: log('unbound')",
    ),
    "captured-written-inside": (
        "x = 5\n    def g():\n        nonlocal x\n        x += 1\n    g()\n    inner(5)\n    g()\n    log(x)",
        at_1(Pass(), "g()", "x *= 10"),
        "x = 5\n    def g():\n        nonlocal x\n        x += 1\n    g()\n    try: inner(5)\n    except Fault: g(); x *= 10; inner(5)\n    g()\n    log(x)",
    ),
    "unit-is-called-with-captured": (
        "x = 5\n    def g():\n        log(x)\n        return inner(x)\n    log(g())",
        at_2(Pass(), "x = 7"),
        "x = 5\n    def g():\n        log(x)\n        return inner(x)\n    try: y = g()\n    except Fault: x = 7; y = g()\n    log(y)",
    ),
    "nested-function-writes": (
        "x = 5\n    def g():\n        nonlocal x\n        x = 6\n        inner(x)\n    g()\n    log(x)",
        at_2(Skip()),
        "x = 5\n    def g():\n        nonlocal x\n        x = 6\n        inner(x)\n    try: g()\n    except Fault: pass\n    log(x)",
    ),
    "delete": (
        "x = 5\n    y = inner(x)\n    try: log(x)\n    except UnboundLocalError: log('unbound')",
        at_1(Skip(), "del x"),
        "x = 5\n    try: inner(5)\n    except Fault: del x\n    try: log(x)\n    except UnboundLocalError: log('unbound')",
    ),
}


@pytest.mark.parametrize(("outer", "repair", "like"), OUTER.values(), ids=OUTER)
def test_outer_frame(outer, repair, like):
    call = INNER + "\ndef main():\n    "
    expect_repaired(call + outer + "\n", repair, like=call + like + "\n")


MIDDLE = (
    INNER
    + """
def middle(x):
    with cm("middle"):
        try:
            y = inner(x)
        finally:
            log("middle finally")
        return y + 1
"""
)


@pytest.mark.parametrize("frame", [0, 1, 2])
@pytest.mark.parametrize("ending", [Pass(), Skip()], ids=repr)
def test_three_deep(frame, ending):
    source = (
        MIDDLE + "\ndef main():\n    y = 0\n    for x in (1, 2):\n        y = middle(x)\n        log(y)\n    return y\n"
    )
    original = ("            bad(x)", "            y = inner(x)", "        y = middle(x)")[frame]
    again = original.strip() if ending == Pass() else ("pass", "y = 0", "pass")[frame]
    space = original[: len(original) - len(original.lstrip())]
    like = source.replace(original, f"{space}try: {original.strip()}\n{space}except Fault: {again}")
    actions = ("y = 0",) if frame == 1 and ending == Skip() else ()
    expect_repaired(source, Repair(actions, ending, frame), like=like)


def test_plain_functions_in_between_have_no_number():
    source = MIDDLE + "\ndef main():\n    return middle(1)\n"
    like = source.replace("return middle(1)", "try: return middle(1)\n    except Fault: return middle(1)")
    expect_repaired(source, at_1(), like=like, plain=["middle"])


def test_a_plain_innermost_function_is_in_no_frame():
    source = "def inner(): return bad(3)\ndef main():\n    return inner() + 1\n"
    module, _ = expect_repaired(source, Pass(), like="def main(): return 4", faults=1, plain=["inner"])
    assert module.faults == 0


def test_recursion():
    source = """
def down(n):
    with cm(n):
        if n == 0:
            return bad(0)
        x = down(n - 1)
        log((n, x))
        return x + 1
def main(): return down(3)
"""
    again = (
        "try: x = down(n - 1)\n        except Fault:\n            if n == {}: x = down(n - 1)\n            else: raise"
    )
    for frame in (1, 2, 3):
        like = source.replace("x = down(n - 1)", again.format(frame))
        expect_repaired(source, Repair(frame=frame), like=like)


def test_every_frame_in_turn():
    source = """
def down(n):
    with cm(n):
        if n == 0:
            return bad(0)
        x = down(n - 1)
        log((n, x))
        return x + 1
def main(): return down(2)
"""
    module, manager = Module(source, faults=3), Answers(Repair(frame=1), Repair(frame=2), Pass())
    assert run(module, manager) == 2
    assert module.lines == [
        "enter 2", "enter 1", "enter 0", "exit 0 Fault",  # frame 1 is down(1): its call runs again
        "enter 0", "exit 0 Fault", "exit 1 Fault",  # frame 2 is down(2)
        "enter 1", "enter 0", "exit 0 None", (1, 0), "exit 1 None", (2, 1), "exit 2 None",
    ]  # fmt: skip


def test_two_crashes_at_the_same_outer_frame():
    source = INNER + "\ndef main():\n    for i in range(2):\n        log(inner(i))\n"
    again = "    for n in range(3):\n            try: y = inner(i)\n            except Fault: continue\n            log(y); break"
    like = source.replace("    log(inner(i))", again)
    expect_repaired(source, at_1(), at_1(), like=like, faults=2)


def test_outer_then_inner():
    source = INNER + "\ndef main():\n    log(inner(1))\n    log(inner(2))\n"
    module, manager = Module(source, faults=2), Answers(at_1(), Pass())
    run(module, manager)
    assert module.lines == [
        "enter inner", 1, "finally", "exit inner Fault", "enter inner", 1, "done", "finally", "exit inner None", 2,
        "enter inner", 2, "done", "finally", "exit inner None", 3,
    ]  # fmt: skip


GENERATORS = {
    "consumer-break": (
        "def gen():\n    try:\n        yield 1\n        bad()\n        yield 2\n    finally: log('closed')\n",
        "def main():\n    for x in gen():\n        log(x)\n    else: log('else')\n    log('after')\n",
        at_1(Break()),
        "def main():\n    try:\n        for x in gen(): log(x)\n        else: log('else')\n    except Fault: pass\n    log('after')\n",
    ),
    "delegating": (
        "def gen():\n    with cm('gen'):\n        yield 1\n        bad()\n        yield 2\n",
        "def main():\n    log('start')\n    yield from gen()\n    log('end')\n    yield 3\n",
        at_1(Skip()),
        "def main():\n    log('start')\n    try: yield from gen()\n    except Fault: pass\n    log('end')\n    yield 3\n",
    ),
    "delegating-pass": (
        "def gen():\n    with cm('gen'):\n        yield 1\n        bad()\n        yield 2\n",
        "def main():\n    log('start')\n    yield from gen()\n    log('end')\n    yield 3\n",
        at_1(),
        "def main():\n    log('start')\n    try: yield from gen()\n    except Fault: yield from gen()\n    log('end')\n    yield 3\n",
    ),
    "coroutine": (
        "async def work():\n    async with cm('work'):\n        return bad(4)\n",
        "async def main():\n    async with cm('main'):\n        x = await work()\n    return x\n",
        at_1(),
        "async def main():\n    async with cm('main'):\n        try: x = await work()\n        except Fault: x = await work()\n    return x\n",
    ),
    "coroutine-skip": (
        "async def work():\n    async with cm('work'):\n        return bad(4)\n",
        "async def main():\n    x = 0\n    async with cm('main'):\n        x = await work()\n    return x\n",
        at_1(Skip(), "x = 3"),
        "async def main():\n    x = 0\n    async with cm('main'):\n        try: x = await work()\n        except Fault: x = 3\n    return x\n",
    ),
    "async-generator": (
        "async def gen():\n    async with cm('gen'):\n        yield 1\n        bad()\n        yield 2\n",
        "async def main():\n    async for x in gen(): log(x)\n    log('after')\n",
        at_1(Break()),
        "async def main():\n    try:\n        async for x in gen(): log(x)\n    except Fault: pass\n    log('after')\n",
    ),
    "class": (
        "class C:\n    def m(self):\n        with cm('m'): return bad(4)\n    def __len__(self): return self.m()\n",
        "def main():\n    return len(C()) + 1\n",
        at_2(),
        "def main():\n    try: x = len(C())\n    except Fault: x = len(C())\n    return x + 1\n",
    ),
}


@pytest.mark.parametrize(("inner", "outer", "repair", "like"), GENERATORS.values(), ids=GENERATORS)
def test_other_units(inner, outer, repair, like):
    expect_repaired(inner + outer, repair, like=inner + like)


def test_surgery_on_an_outer_frame():
    source = INNER + "\ndef main():\n    y = inner(5)\n    log(y)\n"
    new = "def main():\n    y = inner(6)\n    log(y)\n    log('new')\n"
    like = INNER + "\ndef main():\n    try: y = inner(5)\n    except Fault: y = inner(6)\n    log(y)\n    log('new')\n"
    module, _ = expect_repaired(source, at_1(Surgery(new)), like=like)
    module.lines.clear()
    assert module.main() is None
    assert module.lines[-1] == "new"


def test_surgery_on_an_outer_frame_drops_the_call():
    source = INNER + "\ndef main():\n    y = inner(5)\n    log(y)\n"
    new = "def main():\n    y = 9\n    log(y)\n"
    like = INNER + "\ndef main():\n    try: y = inner(5)\n    except Fault: y = 9\n    log(y)\n"
    expect_repaired(source, at_1(Surgery(new)), like=like)


def test_surgery_on_an_outer_frame_with_captured_variables():
    source = INNER + "\ndef main():\n    n = 1\n    g = lambda: n\n    y = inner(5)\n    return y, g()\n"
    new = "def main():\n    n = 1\n    g = lambda: n\n    n = 4\n    y = inner(n)\n    return y, g()\n"
    like = (
        INNER
        + "\ndef main():\n    n = 1\n    g = lambda: n\n    try: y = inner(5)\n    except Fault: n = 4; y = inner(n)\n    return y, g()\n"
    )
    expect_repaired(source, at_1(Surgery(new)), like=like)


def test_surgery_of_the_inner_function_named_in_the_outer_frame():
    source = "def inner(x): return bad(x)\ndef main():\n    return inner(5)\n"
    new = source.replace("return bad(x)", "return x * 2")
    module, _ = expect_repaired(source, at_1(Surgery(new)), like="def main(): return 10")
    assert module.inner(4) == 8


# what is on the way out


def test_a_generator_that_will_be_finished_is_not_asked_again():
    source = "def gen():\n    yield 1\n    bad()\ndef main():\n    for x in gen():\n        log(x)\n    log('after')\n"
    module, manager = Module(source), Answers(at_1(), at_1(Break()))
    run(module, manager)
    assert module.lines == [1, "after"]
    assert not manager.left
    assert "has ended" in manager.refusals[0]


def test_what_a_handler_in_between_turns_it_into_is_asked_about_anew():
    source = (
        INNER
        + "\ndef middle():\n    try: inner(1)\n    except Fault as e: raise KeyError('from middle') from e\ndef main():\n    middle()\n    log('after')\n"
    )
    module, manager = Module(source, plain=["middle"]), Answers(at_1(), Skip())
    run(module, manager)
    assert manager.asked == [("Fault", "inner", "bad(x)"), ("KeyError", "main", "middle()")]
    assert module.lines[-1] == "after"


def test_a_handler_in_between_that_swallows_it_wins():
    source = (
        INNER
        + "\ndef middle():\n    try: return inner(1)\n    except Fault: return log('swallowed')\ndef main():\n    log(middle())\n    log(inner(2))\n"
    )
    module, manager = Module(source, faults=1, plain=["middle"]), Answers(at_1(), Pass())
    settings.intercept = "all"
    try:
        run(module, manager)
    finally:
        settings.intercept = "auto"
    assert module.lines[:6] == ["enter inner", 1, "finally", "exit inner Fault", "swallowed", "swallowed"]
    assert module.lines[-1] == 3


class Big:
    pass


@pytest.mark.parametrize("middle", ["return log('swallowed')", "raise KeyError from None"])
def test_what_was_on_its_way_and_never_arrived_is_let_go(middle):
    """The frame that a repair named is not kept alive by a plan that came to nothing."""
    source = f"def inner(big): bad()\ndef middle(big):\n    try: inner(big)\n    except Fault: {middle}\ndef main():\n    big = Big()\n    note(big)\n    middle(big)\n"
    alive = []
    module = Module(source, faults=1, plain=["middle"], Big=Big, note=lambda big: alive.append(weakref.ref(big)))
    settings.intercept = "all"
    try:
        run(module, Answers(at_1(), Abort()))
    except KeyError:
        pass
    finally:
        settings.intercept = "auto"
    gc.collect()
    assert alive[0]() is None


def test_a_crash_on_the_way_out_is_asked_about_and_the_plan_stands():
    """The `finally` of the inner unit crashes while the exception is on its way to frame 1."""
    source = "def inner():\n    try: bad(1)\n    finally: bad(2); log('finally')\ndef main():\n    inner()\n    log('after')\n"
    module, manager = Module(source, faults=2), Answers(at_1(Skip()), Pass())
    run(module, manager)
    assert [row[2] for row in manager.asked] == ["bad(1)", "bad(2)"]
    assert module.lines == ["finally", "after"]


def test_a_crash_on_the_way_out_that_is_aborted_arrives_as_itself():
    source = "def inner():\n    try: bad(1)\n    finally: bad(2); log('finally')\ndef main():\n    inner()\n    log('after')\n"
    module, manager = Module(source, faults=2), Answers(at_1(Skip()), Abort())
    error = raised(module, manager)
    assert isinstance(error, Fault)
    assert error.args == (2,)
    assert module.lines == []


def test_a_handled_exception_on_the_way_out_is_no_crash():
    source = "def inner():\n    try: bad(1)\n    finally:\n        try: {}['k']\n        except KeyError: log('handled')\ndef main():\n    inner()\n    log('after')\n"
    module, manager = Module(source), Answers(at_1(Skip()))
    run(module, manager)
    assert module.lines == ["handled", "after"]


def test_an_exit_on_the_way_out_that_calls_vaccinated_code():
    source = (
        INNER
        + "\nclass M:\n    def __enter__(self): pass\n    def __exit__(self, *e):\n        log(inner(3))\ndef middle():\n    with M(): inner(1)\ndef main():\n    middle()\n    log('after')\n"
    )
    module, manager = Module(source, faults=1), Answers(at_2(Skip()))
    run(module, manager)
    assert module.lines[-3:] == ["exit inner None", 4, "after"]


# what is seen


def look(crash):
    crash.seen = crash.frames
    LOOKED.append(
        [(f.unit.qualname, f.restart.line, f.restart.statement.strip(), f.restart.kind) for f in crash.frames]
    )
    LOOKED.append(crash.namespace)
    return Pass()


LOOKED: list = []


@pytest.fixture(autouse=True)
def clean():
    LOOKED.clear()
    yield
    assert settings.pending == []
    assert settings.intercept == "auto"


def test_frames_innermost_first():
    source = "def inner(x):\n    y = x\n    return bad(x)\nclass C:\n    def m(self):\n        with cm(1):\n            z = inner(3)\n        return z\ndef main():\n    for i in [1]:\n        return C().m()\n"
    run(Module(source), Answers(look))
    assert LOOKED[0] == [
        ("inner", 3, "return bad(x)", "statement"),
        ("C.m", 7, "z = inner(3)", "statement"),
        ("main", 11, "return C().m()", "statement"),
    ]
    assert LOOKED[1] == {"x": 3, "y": 3}


def test_one_unit_in_a_row_of_plain_ones():
    run(Module("def main():\n    return bad(3)\n"), Answers(look))
    assert [row[0] for row in LOOKED[0]] == ["main"]


def test_the_namespace_is_a_copy():
    def manager(crash):
        crash.namespace["x"] = 5
        return Pass()

    assert run(Module("def main():\n    x = 1\n    bad()\n    return x\n"), Answers(manager)) == 1


def test_the_namespace_has_captured_and_no_hidden_names():
    source = "def main():\n    a, b = 1, 2\n    g = lambda: b\n    for i in [7]:\n        with cm(1) as c:\n            try: bad()\n            finally: d = 5\n    return g()\n"

    def manager(crash):
        LOOKED.append({name: value for name, value in crash.namespace.items() if name != "g"})
        return Pass()

    run(Module(source), Answers(manager))
    assert LOOKED == [{"a": 1, "b": 2, "i": 7, "c": 1}]


def seen(source, *names, call="main()", **options):
    """What a manager sees of the first crash, by the names of the crash's attributes."""

    def manager(crash):
        LOOKED.append([getattr(crash, name) for name in names])
        return Abort()

    raised(Module(source, **options), Answers(manager), call)
    return LOOKED.pop()


@pytest.mark.parametrize(
    ("statement", "repeats"),
    [
        ("x = bad()", ["bad()"]),
        ("x = log(1) + bad()", ["log(1)", "bad()"]),
        ("x = bad() + log(1)", ["bad()"]),
        ("x = log(log(1)) and bad()", ["log(log(1))", "log(1)", "bad()"]),
        ("x = bad(log(1))", ["bad(log(1))", "log(1)"]),
        ("x = (y := log(2)) + bad()", ["y := log(2)", "log(2)", "bad()"]),
        ("x = [bad(i) for i in (1, 2)]", ["bad(i)"]),
        ("x = 1 / 0", []),
        ("x = log(1) / 0", ["log(1)"]),
        ("if log(1) and bad(): log(2)", ["log(1)", "bad()"]),
        ("for i in bad(): log(i)", ["bad()"]),
        ("while log(1) and bad(): log(2)", ["log(1)", "bad()"]),
        ("with bad(): log(2)", ["bad()"]),
    ],
)
def test_repeats(statement, repeats):
    assert set(seen(f"def main():\n    {statement}\n", "repeats")[0]) == set(repeats)


@pytest.mark.parametrize(
    ("statements", "stale"),
    [
        ("x = bad()", []),
        ("x = 1\n    x = bad()", ["x"]),
        ("x = 1\n    x, y = bad()", ["x"]),
        ("x = 1\n    x += bad()", ["x"]),
        ("x = 1\n    x[bad()] = 1", []),
        ("x = 1\n    for x in bad(): y = 1", ["x"]),
        ("x = y = 1\n    if bad(): y = 1", []),
        ("x = 1\n    with bad() as x: y = 1", ["x"]),
        ("x = 1\n    g = lambda: x\n    x = bad()", ["x"]),
        ("x = 1\n    log(x := bad())", ["x"]),
        ("x = 1\n    y = [x for x in bad()]", []),
        ("import os\n    import os, no_such_module_xyz", ["os"]),
        ("def g(): pass\n    def g(a=bad()): pass", ["g"]),
        ("class C: pass\n    class C(bad()): pass", ["C"]),
        ("x = 1\n    match bad():\n        case x: pass", ["x"]),
    ],
)
def test_stale(statements, stale):
    assert list(seen(f"def main():\n    {statements}\n", "stale")[0]) == stale


def test_progress():
    source = "def main():\n    n = 2\n    for i, (a, b) in enumerate([(1, 2)]):\n        while n:\n            n -= 1\n            for x in 'abc':\n                if x == 'b': bad()\n"
    (progress,) = seen(source, "progress")
    assert [(loop.line, loop.header, dict(loop.target)) for loop in progress] == [
        (3, "for i, (a, b) in enumerate([(1, 2)]):", {"i": 0, "a": 1, "b": 2}),
        (4, "while n:", {}),
        (6, "for x in 'abc':", {"x": "b"}),
    ]


def test_progress_at_the_loop_itself():
    """A loop whose `next()` crashed is under way."""
    source = "def gen():\n    yield 1\n    bad()\ndef main():\n    for x in gen(): log(x)\n"
    (progress,) = seen(source, "progress", plain=["gen"])
    assert [(loop.line, dict(loop.target)) for loop in progress] == [(5, {"x": 1})]


def test_progress_outside_loops():
    assert seen("def main():\n    for x in 'ab': pass\n    bad()\n", "progress") == [()]
    assert seen("def main():\n    for x in 'ab': pass\n    else: bad()\n", "progress") == [()]


def test_source_exception_and_restart():
    source = "x = 1\n\ndef main():\n    # a comment\n    return bad(\n        2)\n"
    error, text, restart, refusal = seen(source, "exception", "source", "restart", "refusal")
    assert isinstance(error, Fault)
    assert error.args == (2,)
    assert text == source[source.index("def main") :].rstrip()
    assert (restart.line, restart.statement, restart.kind, restart.unit) == (
        5,
        "return bad(\n        2)",
        "statement",
        "main",
    )
    assert refusal is None


def test_actions_in_frames():
    source = "def inner(x):\n    return bad(x)\ndef main():\n    x, y = 1, 2\n    z = inner(y)\n    return x, y, z\n"

    def manager(crash):
        LOOKED.append(crash.action("x"))
        LOOKED.append(crash.action("x", 1))
        LOOKED.append(crash.action("print(y); x = 8; x", frame=1))
        LOOKED.append(crash.action("x", frame=2))
        LOOKED.append(crash.action("no_such", frame=1))
        return Repair(frame=1)

    module = Module(source)
    assert run(module, Answers(manager)) == (8, 2, 2)
    assert [(r.stdout, r.value, r.ok) for r in LOOKED] == [
        ("", "2", True), ("", "1", True), ("2\n", "8", True), ("", None, False), ("", None, False),
    ]  # fmt: skip
    assert "no vaccinated frame 2" in LOOKED[3].error
    assert "NameError" in LOOKED[4].error


def test_an_action_in_an_outer_frame_and_an_ending_in_the_inner_one():
    source = "def inner(x):\n    return bad(x)\ndef main():\n    x, y = 1, 2\n    g = lambda: y\n    z = inner(y)\n    return x, y, g(), z\n"

    def manager(crash):
        crash.action("x = 8; y = 9", frame=1)
        return Pass()

    assert run(Module(source), Answers(manager)) == (8, 9, 9, 2)

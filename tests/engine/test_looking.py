"""Looking at a crash costs no more than what is looked at: outer frames are captured one after the other."""

from __future__ import annotations

import ast

import pytest

from daifu_ipy import Return, repair_with, vaccinate
from daifu_ipy.engine import interception
from daifu_ipy.engine.action import value_shown
from daifu_ipy.engine.native import barrier_in
from daifu_ipy.engine.vaccinate import parse


@vaccinate
def inner(x):
    return 1 / x


@vaccinate
def middle(x):
    return inner(x)


@vaccinate
def outer(x):
    return middle(x)


def looked(look):
    """What a look at a crash gives, and how many outer frames were captured for it."""
    seen, captured = [], []
    frame_of = interception.frame_of

    def counted(*args, **options):
        captured.append(options.get("is_outer", False))
        return frame_of(*args, **options)

    def manager(crash):
        seen.append(look(crash))
        return Return("0")

    interception.frame_of = counted
    with repair_with(manager):
        outer(0)
    interception.frame_of = frame_of
    return seen[0], sum(captured)


def names(frames):
    return [frame.unit.qualname for frame in frames]


@pytest.mark.parametrize(("index", "captured"), [(0, 0), (1, 1), (2, 2), (3, 2)])
def test_frames_are_captured_as_far_out_as_is_asked(index, captured):
    name = ["inner", "middle", "outer", None][index]
    assert looked(lambda crash: getattr(getattr(crash.frame(index), "unit", None), "qualname", None)) == (
        name,
        captured,
    )


def test_all_frames_are_what_they_are_one_by_one():
    def look(crash):
        first = crash.frame(1)
        every = crash.frames
        return names(every), every[1] is first, crash.frames[2] is every[2], crash.frame(-1)

    assert looked(look) == ((["inner", "middle", "outer"], True, True, None), 2)


def test_barriers_are_known_without_capturing():
    assert looked(lambda crash: names(crash.barriers)) == (["inner", "middle", "outer"], 0)


def test_a_closed_crash_has_no_frames():
    kept = looked(lambda crash: (crash.frame(1), crash)[1])[0]
    assert (kept.frames, kept.barriers, kept.frame(0), kept.frame(1)) == ((), (), None, None)


def test_the_barrier_is_found_among_many_constants():
    space = {}
    text = "def many():\n" + "".join(f"    x = {number}.5\n" for number in range(200)) + "    return x\n"
    exec(compile(text, "<many>", "exec"), space)
    assert barrier_in(space["many"].__code__) is None
    assert barrier_in(space["many"].__code__) is None
    import linecache

    linecache.cache["<many>"] = (len(text), None, text.splitlines(True), "<many>")
    vaccinate(space["many"])
    found = barrier_in(space["many"].__code__)
    assert found is barrier_in(space["many"].__code__)
    assert found.unit.qualname == "many"


def test_a_front_end_may_show_an_action_s_value_its_own_way():
    shown = []

    def look(crash):
        token = value_shown.set(lambda value: shown.append(value) or "my own")
        result = crash.action("x + 1")
        value_shown.reset(token)
        return result.value, crash.action("x + 1").value, crash.action("x = 1").value

    assert looked(look)[0] == ("my own", "1", None)
    assert shown == [1]


TEXTS = ["a = (1\nb", "for x in y:\npass", "x = (1]", "  bad indent\n    x", "a b"]


@pytest.mark.parametrize("text", TEXTS)
def test_errors_of_an_indented_text_are_in_its_own_lines(text):
    function = "def f():\n" + "".join(f"    {line}\n" for line in text.splitlines()) + "    return 1\n"
    indented = "".join(f"    {line}\n" for line in function.splitlines())
    with pytest.raises(SyntaxError) as plain:
        ast.parse(function)
    with pytest.raises(SyntaxError) as moved:
        parse(indented)
    assert (moved.value.lineno, moved.value.msg) == (plain.value.lineno, plain.value.msg)


NAMED = """
class Outer:
    class Inner:
        def method(self): return (lambda: 0)
    text = "kept"
def function(): return Outer
names = [one.__qualname__ for one in (Outer, Outer.Inner, Outer.Inner.method, Outer.Inner().method(), function)]
"""


def test_what_an_action_makes_bears_no_name_of_ours():
    plain = {}
    exec(NAMED, plain)
    assert looked(lambda crash: (crash.action(NAMED), crash.action("names").value)[1])[0] == repr(plain["names"])

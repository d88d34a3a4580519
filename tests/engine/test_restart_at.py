"""Where a surgery goes on: the places it offers, what it leaves for them, and where it will not go."""

from __future__ import annotations

import itertools

import pytest

from daifu_ipy import Pass, Repair, Surgery
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.subsequence import common
from tests.engine.modules import Answers, Module
from tests.engine.modules import run as run_module
from tests.engine.test_surgery import Patient, expect_operated, few_objects, unit  # noqa: F401

pytestmark = pytest.mark.slow


def offered(old, new, **options):
    """What a surgery of `old` would offer, at its first crash; or the reason of its refusal."""
    seen = []

    def look(crash):
        try:
            seen.append(crash.preview(unit(new), **options))
        except Refusal as refusal:
            seen.append(str(refusal))
        return Pass()

    run_module(Patient(unit(old)), Answers(look))
    return seen[0]


# fmt: off
# (the body, its new text, restart_at, the plain program)
PLACES = {
    "edit-before-the-loop": (
        "log('a')\nfor i in range(3):\n log(i)\n bad1(i)", "log('b')\nfor i in range(3):\n log(i)\n bad1(i)", "edit",
        "log('a'); log(0); log(1); log('b')\nfor i in range(3): log(i)",
    ),
    "edit-before-the-loop-by-line": (
        "log('a')\nfor i in range(3):\n log(i)\n bad1(i)", "log('b')\nfor i in range(3):\n log(i)\n bad1(i)", 2,
        "log('a'); log(0); log(1); log('b')\nfor i in range(3): log(i)",
    ),
    "edit-of-the-header": (
        "for i in range(3):\n log(i)\n bad1(i)", "for i in range(5, 7):\n log(i)\n bad1(i)", "edit",
        "log(0); log(1); log(5); log(6)",
    ),
    "the-iteration-anew": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')", "for i in range(3):\n log(i)\n bad1(i)\n log('END')", 3,
        "log(0); log('end'); log(1); log(1); log('END'); log(2); log('END')",
    ),
    "forward": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('mid')\n log('end')", "for i in range(3):\n log(i)\n bad1(i)\n log('MID')\n log('END')", 6,
        "log(0); log('mid'); log('end'); log(1); log('END'); log(2); log('MID'); log('END')",
    ),
    "forward-behind-the-loop": (
        "with cm('a'):\n for i in range(3):\n  bad1(i)\n  log(i)\nlog('after')", "with cm('a'):\n for i in range(3):\n  bad1(i)\n  log(i)\nlog('AFTER')", 6,
        "log('enter a'); log(0); log('exit a None'); log('AFTER')",
    ),
    "back-out-of-a-with": (
        "for i in range(2):\n log('a')\n with cm(i):\n  bad1(i)\n  log(i)", "for i in range(2):\n log('b')\n with cm(i):\n  bad1(i)\n  log(i)", "edit",
        "log('a')\nwith cm(0): log(0)\nlog('a')\nwith cm(1): pass\nlog('b')\nwith cm(1): log(1)",
    ),
    "back-out-of-two": (
        "log('a')\nwith cm('x'):\n for i in range(2):\n  with cm(i):\n   bad1(i)", "log('b')\nwith cm('x'):\n for i in range(2):\n  with cm(i):\n   bad1(i)", "edit",
        "log('a')\nwith cm('x'):\n for i in range(2):\n  with cm(i): 0\nlog('b')\nwith cm('x'):\n for i in range(2):\n  with cm(i): 0",
    ),
    "into-the-other-branch": (
        "x = 1\nif x:\n log('if')\n bad(1)\nelse:\n log('else')", "x = 1\nif x:\n log('if')\n bad(1)\nelse:\n log('ELSE')", 7,
        "log('if'); log('ELSE')",
    ),
    "out-of-a-handler": (
        "e = 0\nlog('a')\ntry: {}[1]\nexcept KeyError as e:\n bad(1)\n log(e.args)", "e = 0\nlog('b')\ntry: {}[1]\nexcept KeyError as e:\n log(e.args)", 3,
        "log('a'); log('b'); log((1,))",
    ),
    "while-anew": (
        "n = 3\nwhile n:\n n -= 1\n log(n)\n bad(n)", "n = 5\nwhile n:\n n -= 2\n log(n)\n if n < 2: break", 3,
        "log(2); log(0)",
    ),
}
# fmt: on


@pytest.mark.parametrize(("old", "new", "restart_at", "like"), PLACES.values(), ids=PLACES)
def test_places(old, new, restart_at, like):
    surgery = Surgery(unit(new), restart_at)
    if "with cm" not in old:
        expect_operated(unit(old), unit(new), unit(like), repair=Repair(then=surgery))
        return
    example, module = Patient(unit(like), faults=0, vaccinated=False), Patient(unit(old))
    assert run_module(module, Answers(surgery)) == run_module(example, Answers())
    assert module.lines == example.lines


# fmt: off
# (the body, its new text, restart_at, why not)
NOWHERE = {
    "finally-would-be-skipped": (
        "log('a')\ntry:\n bad(1)\nfinally: log('f')", "log('b')\ntry:\n bad(1)\nfinally: log('f')", "edit", "finally of the try in line 3 would be skipped",
    ),
    "a-finally-that-an-exception-waits-for": (
        "try:\n log('a')\n try: {}[1]\n finally:\n  bad(1)\nexcept KeyError: log('key')", "try:\n log('b')\n try: {}[1]\n finally:\n  bad(1)\nexcept KeyError: log('key')", "edit", "what waits for the end of the finally in line 4 would be lost",
    ),
    "into-a-loop": ("bad(1)\nfor i in range(2):\n log(i)", "bad(1)\nfor i in range(2):\n log(-i)", 4, "for loop in line 3 of the new source has not been entered"),
    "into-a-while": ("bad(1)\nn = 1\nwhile n:\n n = 0", "bad(1)\nn = 1\nwhile n:\n n = log(0)", 5, "while loop in line 4"),
    "into-a-with": ("bad(1)\nwith cm('a'):\n log(1)", "bad(1)\nwith cm('a'):\n log(2)", 4, "with statement in line 3"),
    "into-a-handler": ("bad(1)\ntry: log(1)\nexcept KeyError:\n log(2)", "bad(1)\ntry: log(1)\nexcept KeyError:\n log(3)", 5, "try statement in line 3"),
    "into-a-case-that-binds": ("bad(1)\nmatch 1:\n case x:\n  log(x)", "bad(1)\nmatch 1:\n case x:\n  log(-x)", 5, "match statement in line 3"),
    "an-exit-with-an-exception": (
        "log(1)\ntry:\n with exits():\n  {}[1]\nexcept KeyError: log('key')", "log(2)\ntry:\n with exits():\n  {}[1]\nexcept KeyError: log('key')", "edit", "would be lost",
    ),
}
# fmt: on


@pytest.mark.parametrize(("old", "new", "restart_at", "reason"), NOWHERE.values(), ids=NOWHERE)
def test_where_the_run_can_not_go_on(old, new, restart_at, reason):
    assert reason in offered(old, new, restart_at=restart_at)


def test_the_choices_and_what_they_repeat():
    old = "log('a')\nxs = [1, 2, 3]\nfor x in xs:\n log(x)\n y = log(-x)\n bad1(x)\n log('end')"
    preview = offered(old, old.replace("'a'", "'b'"))
    assert [(choice.restart_at, choice.line, choice.repeats) for choice in preview.choices] == [
        ("crash", 7, ("bad1(x)",)),
        ("edit", 2, ("xs = [1, 2, 3]", "for x in xs: starts anew")),
        (5, 5, ("log(x)", "y = log(-x)", "bad1(x)")),
    ]
    assert "line 2" in preview.choices[0].reason
    assert "abandoned after 1 item" in preview.choices[1].reason
    assert preview.choices[0].statement.strip() == preview.statement.strip() == "bad1(x)"


def test_the_default_comes_first_and_every_choice_can_be_chosen():
    old = "for i in range(3):\n log(i)\n log('a')\n bad1(i)\n log('end')"
    new = old.replace("'a'", "'b'")
    preview = offered(old, new)
    assert preview.choices[0].line == preview.line == 4
    for choice in preview.choices:
        again = offered(old, new, restart_at=choice.restart_at)
        assert (again.line, again.kind, again.statement) == (choice.line, choice.kind, choice.statement)


def test_an_outer_frame():
    source = "def inner():\n bad(1)\ndef main():\n log('a')\n inner()\n log('end')\n"
    module, seen = Module(source), []

    def look(crash):
        seen.append(crash.preview("def main():\n log('b')\n inner()\n log('end')\n", "edit", frame=1))
        return Repair(then=Surgery("def main():\n log('b')\n inner()\n log('end')\n", "edit"), frame=1)

    run_module(module, Answers(look))
    assert module.lines == ["a", "b", "end"]
    assert (seen[0].line, seen[0].statement.strip()) == (2, "log('b')")


def test_long_units_are_matched_in_no_time():
    """No more than so many comparisons, whatever the texts are; still in order, and equal."""
    for old, new in [
        (["a"] * 3000, ["a"] * 2900 + ["b"] + ["a"] * 50),
        ([f"{i}" for i in range(3000)], [f"{i % 1500}" for i in range(3000)]),
        ([f"{i % 7}" for i in range(3000)], [f"{i % 5}" for i in range(3000)]),
        ([f"{i}" for i in range(3000)], [f"{i}" for i in range(3000, 0, -1)]),
    ]:
        pairs = common(old, new)
        assert all(old[i] == new[j] for i, j in pairs)
        assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(pairs))

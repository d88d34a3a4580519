"""Surgeries that could go on with a wrong value, or leave something behind, without a word."""

from __future__ import annotations

import contextlib
import textwrap
import warnings
from unittest import mock

import pytest

from daifu_ipy import Abort, Repair, Return, Surgery
from daifu_ipy.engine import versions
from daifu_ipy.engine.compiling import quietly
from tests.engine.modules import Answers, Module
from tests.engine.modules import run as run_module

pytestmark = pytest.mark.slow


def unit(body, header="def main():"):
    return f"{header}\n{textwrap.indent(body, ' ')}\n"


def operated(old, new):
    """The result of a run of `old` that crashes and is operated on, the lines it logged, and the preview."""
    seen = []

    def look(crash):
        seen.append(crash.preview(unit(new)))
        return Surgery(unit(new))

    module = Module(unit(old))
    return run_module(module, Answers(look)), module.lines, seen[0]


def test_a_name_that_has_every_attribute_is_no_wrapper():
    module = Module("def main(): return 1 // 0\n", call=mock.call)
    assert run_module(module, Answers(Surgery("def main(): return 2\n"))) == 2


def test_a_local_that_becomes_global_takes_its_value_along():
    old = "total = 5\nfor x in [0, 2]:\n total += 1\n y = 1 // x\nreturn total"
    module = Module(unit(old), total=1000)
    new = unit(f"global total\n{old.replace('1 // x', '1 // (x or 1)')}")
    assert run_module(module, Answers(Surgery(new, "crash"))) == 7
    assert module.total == 7


LOOP = "y = 7\nfor x in [0, 2]:\n log(1 // x)\nreturn y"
TARGETS = {
    "loop": (LOOP, LOOP.replace("for x in", "for y in").replace("1 // x", "y"), "y"),
    "loop-in-a-tuple": (
        "a = b = 7\nfor a, x in [(1, 0), (1, 2)]:\n log(1 // x)",
        "a = b = 7\nfor a, b in [(1, 0), (1, 2)]:\n log(b)",
        "b",
    ),
    "loop-swapped": (
        "for a, b in [(0, 1), (2, 1)]:\n log(b // a)",
        "for b, a in [(0, 1), (2, 1)]:\n log(b)",
        "b",
    ),
    "with": (
        "h = 7\nwith contextlib.nullcontext(0) as g:\n log(1 // g)",
        "h = 7\nwith contextlib.nullcontext(0) as h:\n log(h)",
        "h",
    ),
}


@pytest.mark.parametrize(("old", "new", "name"), TARGETS.values(), ids=TARGETS)
def test_a_new_target_has_no_older_value(old, new, name):
    """What was under way went into the old one: the new one is unbound, so that using it asks again."""
    module = Module(unit(old), contextlib=contextlib)
    seen = []

    def look(crash):
        seen.append(crash.preview(unit(new)).reason)
        return Surgery(unit(new))

    def bind(crash):
        seen.append(crash.summary)
        return Repair((f"{name} = 1",)) if "UnboundLocalError" in crash.summary else Abort()

    run_module(module, Answers(look, bind, bind))
    assert f"{name} is unbound" in seen[0]
    assert "UnboundLocalError" in seen[1]


def test_a_new_target_that_an_action_has_bound_keeps_that():
    new = unit(LOOP.replace("for x in", "for y in").replace("1 // x", "y"))
    module = Module(unit(LOOP))
    assert run_module(module, Answers(Repair(("y = 'typed'",), Surgery(new)))) == 2
    assert module.lines == ["typed", 2]


def test_an_edit_that_is_left_out_is_said():
    old = "lr = 1\nfor x in [0, 2]:\n log(1 // x)\nreturn lr"
    new = "lr = 100\nfor x in [0, 2]:\n log(lr)\nreturn lr"
    result, lines, preview = operated(old, new)
    assert (result, lines) == (1, [1, 1])
    assert "to go back to the edit in line 2" in preview.reason


def test_a_loop_of_the_same_variable_lives_on_with_another_iterable():
    old = "for x in [4, 2, 0, 1]:\n log(8 // x)"
    new = "for x in list([4, 2, 0, 1]):\n log(8 // (x or 1))"
    _, lines, _ = operated(old, new)
    assert lines == [2, 4, 8, 8]


def test_a_with_whose_value_does_not_fit_is_entered_anew():
    old = "with contextlib.nullcontext(1) as (a, b):\n log(a)"
    new = old.replace("nullcontext(1)", "nullcontext((1, 2))")
    module = Module(unit(old), contextlib=contextlib)
    run_module(module, Answers(Surgery(unit(new))))
    assert module.lines == [1]


HANDLER = "try:\n {}['k']\nexcept KeyError:\n return 1 // 0\nreturn 'after'"


@pytest.mark.parametrize(
    ("clause", "value"),
    [
        ("except KeyError", "mended"),
        ("except LookupError", "mended"),
        ("except (ValueError, KeyError)", "mended"),
        ("except Exception", "mended"),
        ("except", "mended"),
        ("except ValueError", None),
        ("except (ValueError, OSError)", None),
        ("except Own", None),
    ],
)
def test_a_handler_goes_on_only_where_it_takes_what_the_old_one_did(clause, value):
    new = HANDLER.replace("except KeyError", clause).replace("1 // 0", "'mended'")
    module = Module(unit(HANDLER), Own=type("Own", (Exception,), {}))
    answers = Answers(Surgery(unit(new)), Return("'refused'"))
    assert run_module(module, answers) == (value or "refused")


class Locked(type):
    """A class that takes no new attributes."""

    def __setattr__(cls, name, value):
        raise AttributeError(f"no {name}")


def test_a_class_that_takes_no_new_method_is_left_as_it_was():
    source = "class A(metaclass=Locked):\n def m(self): return 1 // 0\n{}def main(): return A().m()\n"
    module = Module(source.format(""), Locked=Locked)
    before, plain = versions.all(), module.A.m.__code__
    new = source.replace("1 // 0", "self.h() + new()").format(" def h(self): return 1\n") + "def new(): return 2\n"
    refusals = []

    def after(crash):
        refusals.append(crash.refusal)
        return Return("'refused'")

    assert run_module(module, Answers(Surgery(new), after)) == "refused"
    assert "A.h can't be added: AttributeError: no h" in refusals[0]
    assert (module.A.m.__code__, versions.all()) == (plain, before)
    assert not hasattr(module, "new")


def test_a_new_decorated_method_is_said_not_to_be_defined():
    source = "class A:\n def m(self): return 1 // 0\n{}def main(): return A().m()\n"
    new = source.replace("1 // 0", "self.h()").format(" @staticmethod\n def h(): return 1\n")
    module, reasons = Module(source.format("")), []

    def look(crash):
        reasons.append(crash.preview(new).reason)
        return Return("1")

    run_module(module, Answers(look))
    assert "top-level code is not run (line 3)" in reasons[0] or "(line 4)" in reasons[0]


def test_what_is_left_out_is_not_said_to_run_again():
    _, lines, preview = operated("log(1)\nlog(2)\nlog(1 // 0)", "log(1)\nlog(2)")
    assert lines == [1, 2]
    assert preview.choices[0].repeats == ()


def test_who_saved_the_hook_meanwhile_may_put_it_back():
    shown = []
    with (
        warnings.catch_warnings(),
        mock.patch.object(warnings, "showwarning", lambda *args, **named: shown.append(args[0])),
    ):
        warnings.simplefilter("always")
        with quietly():
            saved = warnings.showwarning
        warnings.showwarning = saved
        warnings.warn_explicit("said", UserWarning, "file", 1)
    assert [str(one) for one in shown] == ["said"]

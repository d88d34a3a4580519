"""Surgery: the edited text runs from the right place on, now and in later calls; what can't be done changes nothing.

The reference is a plain program that does by itself what the crashed and edited one has to do.
"""

from __future__ import annotations

import functools
import gc
import inspect
import linecache
import re
import textwrap
import traceback
import types
from unittest import mock

import pytest

import daifu_ipy
from daifu_ipy import Abort, Pass, Repair, Skip, Surgery
from daifu_ipy.engine import surgery
from daifu_ipy.engine.vaccinate import is_vaccinated
from tests.engine.modules import Answers, Fault, Module, escaping, finish, raised, run


@pytest.fixture(autouse=True, scope="module")
def few_objects():
    """The engine looks for functions among all objects: leave out those of the tests before."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Items:
    """An iterator over `items`; asked for its item number 1, it crashes once."""

    def __init__(self, bad, items):
        self.bad, self.items, self.taken = bad, list(items), 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.taken == 1:
            self.bad()
        self.taken += 1
        if not self.items:
            raise StopIteration
        return self.items.pop(0)


class Exits:
    """A context manager that fails once to be left."""

    def __init__(self, module):
        self.module = module

    def __enter__(self):
        return self.module.log("enter")

    def __exit__(self, *error):
        self.module.bad("exit")
        self.module.log("exit")


@types.coroutine
def tick(x):
    """Suspend once."""
    yield
    return x


class Patient(Module):
    """``bad1(i)`` is `bad`, but for i == 1 only. ``log`` raises before its call number `crash_at`, once."""

    def __init__(self, source, *, crash_at=None, **options):
        self.crash_at, self.calls, self.operated_at = crash_at, 0, None
        super().__init__(
            source,
            bad1=self.bad1,
            items=lambda xs: Items(self.bad, xs),
            tick=tick,
            exits=lambda: Exits(self),
            **options,
        )

    def bad1(self, i):
        return self.bad(i) if i == 1 else i

    def log(self, x):
        self.calls += 1
        if self.calls == self.crash_at:
            raise Fault("log")
        return super().log(x)

    def codes(self):
        """The code of every function of this module, nested ones too, by identity."""
        functions = [f for f in gc.get_referrers(vars(self)) if isinstance(f, types.FunctionType)]
        return {f: f.__code__ for f in functions if f.__globals__ is vars(self)}


class Surgeon:
    """A manager that answers the first crash by surgery, all others by `Pass`; it checks what `preview` says."""

    def __init__(self, module, repair, previews):
        self.module, self.repair, self.previews = module, repair, previews
        self.refusals = []
        self.operations = 0

    def __call__(self, crash):
        self.refusals += [crash.refusal] * (crash.refusal is not None)
        if self.operations or crash.refusal:
            return Pass()
        self.operations += 1
        self.module.operated_at = self.module.calls
        then = self.repair.then
        if self.previews and self.repair.frame == 0 and then.restart_at is None:
            before = self.module.codes()
            self.preview, self.codes = crash.preview(then.source), self.module.codes()
            assert self.codes == before
        return self.repair


def unit(body, header="def main():"):
    return f"{header}\n{textwrap.indent(body, ' ')}\n"


def start(module, manager, call):
    """Run, and compare the surgery with its preview."""
    plans = []
    operate = surgery.operate

    def spy(crash, index, ending):
        plans.append(operate(crash, index, ending))
        if hasattr(manager, "preview"):
            after = module.codes()
            changed = {f.__qualname__ for f, code in manager.codes.items() if after[f] is not code}
            plan, shown = plans[0], manager.preview
            assert shown.line == plan.location.statement.lineno
            assert shown.kind == plan.location.kind
            assert shown.statement == plan.barrier.unit.text(plan.location.statement)
            assert changed <= set(shown.replaced)
            assert not set(shown.replaced) - changed & {f.__qualname__ for f in manager.codes}
        return plans[-1]

    with mock.patch.object(surgery, "operate", spy):
        result = run(module, manager, call)
    assert manager.operations == 1
    assert not manager.refusals
    return result


def expect_operated(
    old, new, like=None, *, faults=1, like_faults=0, call="main()", repair=None, later=None, source=None
):
    """Check that `old`, edited to `new` at its first crash, does what `like` (default: `new`) does plainly.

    Afterwards a call of it is a call of `new`; and a crash at any later ``log``, passed, leaves no trace. `source`:
    what the surgery is given (default: `new`); `later`: the plain program whose call a later call is.
    """
    like = new if like is None else like
    repair = repair or Repair(then=Surgery(new if source is None else source))
    example = Patient(like, faults=like_faults, vaccinated=False)
    expected = run(example, lambda crash: None, call), example.lines

    def once(crash_at=None):
        module = Patient(old, faults=faults, crash_at=crash_at)
        manager = Surgeon(module, repair, previews=crash_at is None)
        result = start(module, manager, call)
        assert (result, module.lines) == expected
        return module, manager

    module, manager = once()
    for crash_at in range(module.operated_at + 1, module.calls + 1):
        once(crash_at)
    again = Patient(new if later is None else later, faults=0, vaccinated=False)
    module.lines.clear()
    assert finish(eval(call, vars(module))) == finish(eval(call, vars(again)))
    assert module.lines == again.lines
    return module, manager


# fmt: off
# (the body, its new text, what the run is like)
KINDS = {
    "replace": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n log(-i)\n log('end')",
        "for i in range(3):\n log(i)\n if i: log(-i)\n log('end')",
    ),
    "replace-by-two": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n log(-i)\n log('two')\n log('end')",
        "for i in range(3):\n log(i)\n if i: log(-i); log('two')\n log('end')",
    ),
    "replace-first": (
        "bad(1)\nlog(2)", "log(1)\nlog(2)", "log(1); log(2)",
    ),
    "replace-last": (
        "log(1)\nbad(2)", "log(1)\nlog(2)", "log(1); log(2)",
    ),
    "replace-only": (
        "bad(2)", "log(2)", "log(2)",
    ),
    "replace-return": (
        "log(1)\nreturn bad(2)", "log(1)\nreturn log(2) + 3", "log(1)\nreturn log(2) + 3",
    ),
    "correct": (
        "for i in range(3):\n x = log(i) + bad1(i)\n log(x)",
        "for i in range(3):\n x = log(i) * 10\n log(x)",
        "for i in range(3):\n if i == 1: log(i)\n x = 2 * log(i) if i == 0 else 10 * log(i)\n log(x)",
    ),
    "insert-before": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n i = -i\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n if i: log(-i)\n log('end')",
    ),
    "new-local": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n y = i * 10\n log(y)\n log('end')",
        "for i in range(3):\n log(i)\n if i: log(i * 10)\n log('end')",
    ),
    "continue-guard": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n if i == 1: continue\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n if i == 1: continue\n log('end')",
    ),
    "break": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')\nelse: log('else')\nlog('after')",
        "for i in range(3):\n log(i)\n if i == 1: break\n bad1(i)\n log('end')\nelse: log('else')\nlog('after')",
        "for i in range(3):\n log(i)\n if i == 1: break\n log('end')\nelse: log('else')\nlog('after')",
    ),
    "return": (
        "with cm('a'):\n for i in range(3):\n  log(i)\n  bad1(i)\n  log('end')\nlog('after')",
        "with cm('a'):\n for i in range(3):\n  log(i)\n  return log('out')\n  log('end')\nlog('after')",
        "with cm('a'):\n for i in range(3):\n  log(i)\n  if i: return log('out')\n  log('end')\nlog('after')",
    ),
    "earlier-line": (
        "for i in range(3):\n log(i)\n a = i\n log(a)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n a = i * 10\n log(a)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n if i < 2: log(i)\n if i: log(i * 10)\n log('end')",
    ),
    "earlier-line-and-crashed": (
        "for i in range(3):\n log(i)\n log('a')\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n log('b')\n log(-i)\n log('end')",
        "for i in range(3):\n log(i)\n if i < 2: log('a')\n if i: log('b'); log(-i)\n log('end')",
    ),
    "earlier-line-gone": (
        "for i in range(3):\n log(i)\n log('a')\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n if i < 2: log('a')\n log('end')",
    ),
    "two-earlier-lines": (
        "for i in range(3):\n log('a')\n log('b')\n log('c')\n bad1(i)",
        "for i in range(3):\n log('a')\n log('B')\n log('C')\n bad1(i)",
        "for i in range(3):\n log('a')\n if i < 2: log('b'); log('c')\n if i: log('B'); log('C')",
    ),
    "delete": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n log('end')",
        "for i in range(3):\n log(i)\n log('end')",
    ),
    "delete-last": (
        "for i in range(3):\n log(i)\n bad1(i)\nlog('after')",
        "for i in range(3):\n log(i)\nlog('after')",
        "for i in range(3): log(i)\nlog('after')",
    ),
    "delete-last-of-unit": (
        "log(1)\nbad(2)", "log(1)", "log(1)",
    ),
    "delete-only": (
        "for i in range(3):\n bad1(i)\nlog('after')",
        "for i in range(3):\n pass\nlog('after')",
        "log('after')",
    ),
    "delete-in-with": (
        "for i in range(2):\n with cm(i):\n  log(i)\n  bad1(i)\nlog('after')",
        "for i in range(2):\n with cm(i):\n  log(i)\nlog('after')",
        "for i in range(2):\n with cm(i): log(i)\nlog('after')",
    ),
    "delete-if-around": (
        "for i in range(3):\n log(i)\n if i == 1:\n  log('if')\n  bad(i)\n log('end')",
        "for i in range(3):\n log(i)\n log('end')",
        "for i in range(3):\n log(i)\n if i == 1: log('if')\n log('end')",
    ),
    "later-lines": (
        "for i in range(3):\n bad1(i)\n log('end')\nlog('after')",
        "for i in range(3):\n bad1(i)\n log('END')\nlog('AFTER')\nreturn 5",
        "for i in range(3): log('END' if i else 'end')\nlog('AFTER')\nreturn 5",
    ),
    "lines-before-the-loop": (
        "log(1)\nfor i in range(3):\n log(i)\n bad1(i)",
        "log(2)\nx = 5\nfor i in range(3):\n log(i)\n bad1(i)",
        "log(1)\nfor i in range(3): log(i)",
    ),
    "lines-before-the-loop-and-crashed": (
        "log(1)\nfor i in range(3):\n log(i)\n bad1(i)",
        "log(2)\nfor i in range(3):\n log(i)\n log(-i)",
        "log(1)\nfor i in range(3):\n log(i)\n if i: log(-i)",
    ),
    "no-loop-edit-first": (
        "log(1)\nlog(2)\nbad(3)\nlog(4)", "log(1)\nlog(-2)\nbad(3)\nlog(4)", "for i in (1, 2, -2, 4): log(i)",
    ),
    "no-loop-insert-first": (
        "log(1)\nbad(3)\nlog(4)", "log(0)\nlog(1)\nbad(3)\nlog(4)", "for i in (1, 0, 1, 4): log(i)",
    ),
    "finished-loop": (
        "for i in range(2): log(i)\nbad(3)\nlog(4)",
        "for i in range(2): log(-i)\nbad(3)\nlog(4)",
        "for i in (0, 1, 4): log(i)",
    ),
    "before-finished-loop": (
        "n = 2\nfor i in range(n): log(i)\nbad(3)\nlog(n)",
        "n = 1\nfor i in range(n): log(i)\nbad(3)\nlog(n)",
        "for i in (0, 1, 2): log(i)",
    ),
    "finished-inner-loop": (
        "for i in range(3):\n for j in range(2): log(j)\n bad1(i)\n log('end')",
        "for i in range(3):\n for j in range(2): log(-j)\n bad1(i)\n log('end')",
        "for i in range(3):\n if i < 2: log(0); log(1)\n if i: log(0); log(-1)\n log('end')",
    ),
    "inner-loop-added": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n for j in range(2): log((i, j))\n log('end')",
        "for i in range(3):\n log(i)\n if i:\n  for j in range(2): log((i, j))\n log('end')",
    ),
    "loop-around-crashed": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n for j in range(2):\n  bad1(i)\n  log(j)\n log('end')",
        "for i in range(3):\n log(i)\n if i: log(0); log(1)\n log('end')",
    ),
    "if-around-crashed": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n if i > 1:\n  bad1(i)\n  log(-i)\n log('end')",
        "for i in range(3):\n log(i)\n if i > 1: log(-i)\n log('end')",
    ),
    "with-around-crashed": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n with cm(i):\n  bad1(i)\n log('end')",
        "for i in range(3):\n log(i)\n if i: log(f'enter {i}'); log(f'exit {i} None')\n log('end')",
    ),
    "if-test": (
        "for i in range(3):\n if i == 1:\n  bad(i)\n  log('if')\n else: log('else')\n log('end')",
        "for i in range(3):\n if i == 2:\n  bad(i)\n  log('if')\n else: log('else')\n log('end')",
        "for i in range(3):\n log('if' if i == 2 else 'else')\n log('end')",
    ),
    "if-test-no-loop": (
        "x = 1\nif x:\n log('if')\n bad(1)\nelse: log('else')\nlog('end')",
        "x = 1\nif not x:\n log('if')\n bad(1)\nelse: log('else')\nlog('end')",
        "log('if'); log('else'); log('end')",
    ),
    "if-test-crashed": (
        "for i in range(3):\n if bad1(i) == 1: log('if')\n else: log('else')",
        "for i in range(3):\n if i == 2: log('if')\n else: log('else')",
        "for i in range(3):\n if i == 2: log('if')\n else: log('else')",
    ),
    "if-to-elif": (
        "for i in range(3):\n if i == 1:\n  bad(i)\n else: log('else')",
        "for i in range(3):\n if i == 0:\n  log('if')\n elif i == 1: log('elif')\n else: log('else')",
        "for i in range(3):\n if i == 1: log('elif')\n else: log('else')",
    ),
    "else-of-if": (
        "for i in range(3):\n if i != 1: log('if')\n else:\n  log('else')\n  bad(i)",
        "for i in range(3):\n if i != 1: log('if')\n else:\n  log('else')\n  log(-i)",
        "for i in range(3):\n if i != 1: log('if')\n else: log('else'); log(-i)",
    ),
    "body-of-if-while-in-else": (
        "for i in range(3):\n if i != 1: log('if')\n else:\n  bad(i)",
        "for i in range(3):\n if i != 1: log('IF')\n else:\n  bad(i)",
        "for i in range(3):\n if i != 1: log('IF' if i else 'if')",
    ),
    "handler-of-enclosing-try": (
        "for i in range(3):\n try:\n  log(i)\n  bad1(i)\n  {}[i]\n except KeyError: log('handler')",
        "for i in range(3):\n try:\n  log(i)\n  bad1(i)\n  {}[i]\n except KeyError as e: log(e.args)",
        "for i in range(3):\n log(i)\n log((i,) if i else 'handler')",
    ),
    "handler-added": (
        "for i in range(3):\n try:\n  log(i)\n  bad1(i)\n  if i: [][i]\n except KeyError: log('handler')",
        "for i in range(3):\n try:\n  log(i)\n  bad1(i)\n  if i: [][i]\n except KeyError: log('handler')\n except IndexError: log('index')",
        "for i in range(3):\n log(i)\n if i: log('index')",
    ),
    "finally-edited": (
        "for i in range(3):\n try:\n  log(i)\n  bad1(i)\n finally: log('finally')",
        "for i in range(3):\n try:\n  log(i)\n  bad1(i)\n finally: log('FINALLY')",
        "for i in range(3):\n log(i)\n log('FINALLY' if i else 'finally')",
    ),
    "finally-added": (
        "for i in range(3):\n try:\n  log(i)\n  bad1(i)\n  {}[i]\n except KeyError: log('key')",
        "for i in range(3):\n try:\n  log(i)\n  bad1(i)\n  {}[i]\n except KeyError: log('key')\n finally: log('finally')",
        "for i in range(3):\n log(i)\n log('key')\n if i: log('finally')",
    ),
    "in-handler": (
        "for i in range(3):\n try: {}[i]\n except KeyError as e:\n  log(e.args)\n  bad1(i)\n  log('end')",
        "for i in range(3):\n try: {}[i]\n except KeyError as e:\n  log(e.args)\n  log((e.args, -i))\n  log('end')",
        "for i in range(3):\n log((i,))\n if i: log(((i,), -i))\n log('end')",
    ),
    "in-handler-earlier": (
        "for i in range(3):\n try: {}[i]\n except KeyError as e:\n  log('a')\n  bad1(i)\n  log(e.args)",
        "for i in range(3):\n try: {}[i]\n except KeyError as e:\n  log('b')\n  bad1(i)\n  log(e.args)",
        "for i in range(3):\n if i < 2: log('a')\n if i: log('b')\n log((i,))",
    ),
    "in-finally": (
        "for i in range(3):\n try: log(i)\n finally:\n  bad1(i)\n  log('end')",
        "for i in range(3):\n try: log(i)\n finally:\n  log(-i)\n  log('end')",
        "for i in range(3):\n log(i)\n if i: log(-i)\n log('end')",
    ),
    "in-finally-exception": (
        "try:\n try: {}[1]\n finally:\n  bad(1)\n  log('end')\nexcept KeyError as e: log(e.args)",
        "try:\n try: {}[1]\n finally:\n  log('new')\n  log('end')\nexcept KeyError as e: log(e.args)",
        "log('new'); log('end'); log((1,))",
    ),
    "in-else": (
        "for i in range(2):\n try: log(i)\n except KeyError: pass\n else:\n  bad1(i)\n  log('else')",
        "for i in range(2):\n try: log(i)\n except KeyError: pass\n else:\n  log(-i)\n  log('else')",
        "for i in range(2):\n log(i)\n if i: log(-i)\n log('else')",
    ),
    "loop-else": (
        "for i in range(2): log(i)\nelse:\n log('else')\n bad(1)\n log('end')",
        "for i in range(2): log(i)\nelse:\n log('else')\n log('new')\n log('end')",
        "log(0); log(1); log('else'); log('new'); log('end')",
    ),
    "in-with": (
        "for i in range(2):\n with cm(i) as a, cm(-i) as b:\n  bad1(i)\n  log((a, b))",
        "for i in range(2):\n with cm(i) as a, cm(-i) as b:\n  log('new')\n  log((a, b))",
        "for i in range(2):\n with cm(i) as a, cm(-i) as b:\n  if i: log('new')\n  log((a, b))",
    ),
    "in-with-earlier": (
        "for i in range(2):\n with cm(i):\n  log('a')\n  bad1(i)\n  log(i)",
        "for i in range(2):\n with cm(i):\n  log('b')\n  bad1(i)\n  log(i)",
        "for i in range(2):\n with cm(i):\n  log('a')\n  if i: log('b')\n  log(i)",
    ),
    "before-open-with": (
        "for i in range(2):\n log('a')\n with cm(i):\n  bad1(i)\n  log(i)",
        "for i in range(2):\n log('b')\n with cm(i):\n  bad1(i)\n  log(i)",
        "for i in range(2):\n log('a')\n with cm(i): log(i)",
    ),
    "item-of-open-with": (
        "for i in range(3):\n with cm(i):\n  bad1(i)\n  log(i)",
        "for i in range(3):\n with cm(-i):\n  bad1(i)\n  log(i)",
        "for i in range(3):\n with cm(-i if i > 1 else i): log(i)",
    ),
    "match-case": (
        "for i in range(3):\n match i:\n  case 1:\n   bad(i)\n   log('one')\n  case _: log('other')",
        "for i in range(3):\n match i:\n  case 1:\n   log(-i)\n   log('one')\n  case _: log('OTHER')",
        "for i in range(3):\n match i:\n  case 0: log('other')\n  case 1: log(-1); log('one')\n  case 2: log('OTHER')",
    ),
    "match-guard": (
        "for i in range(3):\n match log(i):\n  case 1 if bad(i): log('one')\n  case _: log('other')",
        "for i in range(3):\n match log(i):\n  case 1 if log('new'): log('one')\n  case _: log('other')",
        "for i in range(3):\n log(i)\n if i == 1: log('new'); log('one')\n else: log('other')",
    ),
    "while-test-enclosing": (
        "n = 0\nwhile n < 5:\n log(n)\n bad1(n)\n n += 1\nelse: log('else')",
        "n = 0\nwhile n < 3:\n log(n)\n bad1(n)\n n += 1\nelse: log('else')",
        "for n in range(3): log(n)\nlog('else')",
    ),
    "while-test-crashed": (
        "n = 0\nwhile bad1(n) < 5:\n log(n)\n n += 1\nelse: log('else')",
        "n = 0\nwhile n < 3:\n log(n)\n n += 1\nelse: log('else')",
        "for n in range(3): log(n)\nlog('else')",
    ),
    "for-header-enclosing": (
        "for i in range(3):\n log(i)\n bad1(i)",
        "for i in range(9):\n log(i)\n bad1(i)",
        "for i in range(3): log(i)",
    ),
    "for-header-enclosing-and-crashed": (
        "for i in range(3):\n log(i)\n bad1(i)",
        "for i in range(9):\n log(i)\n log(-i)",
        "for i in range(3):\n log(i)\n if i: log(-i)",
    ),
    "outer-header": (
        "for i in range(2):\n for j in range(3):\n  log((i, j))\n  bad1(i)",
        "for i in range(5):\n for j in range(1):\n  log((i, j))\n  bad1(i)",
        "for i in range(2):\n for j in range(3): log((i, j))",
    ),
    "two-loops": (
        "for i in range(2):\n log('outer')\n for j in range(3):\n  log((i, j))\n  bad1(j)\n  log('end')",
        "for i in range(2):\n log('OUTER')\n for j in range(3):\n  log((i, j))\n  log(-j)\n  log('end')\n log('new')",
        "for i in range(2):\n log('OUTER' if i else 'outer')\n for j in range(3):\n  log((i, j))\n  if i or j: log(-j)\n  log('end')\n log('new')",
    ),
}
# fmt: on


@pytest.mark.parametrize(("old", "new", "like"), KINDS.values(), ids=KINDS)
def test_kinds_of_edit(old, new, like):
    expect_operated(unit(old), unit(new), unit(like))


# fmt: off
HEADERS = {
    "iterable": (
        "n = 0\nfor i in items(range(3)):\n n += 1\n log(i)\nlog(n)",
        "n = 0\nfor i in range(5, 7):\n n += 1\n log(i)\nlog(n)",
        "for i in (0, 5, 6, 3): log(i)",
    ),
    "iterable-and-target": (
        "for i in items(range(3)):\n log(i)",
        "for k in range(5, 7):\n log(k)",
        "for i in (0, 5, 6): log(i)",
    ),
    "iterable-needs-locals": (
        "xs = [1, 2, 3]\nfor i in items(xs):\n xs.append(i)\n log(i)\n if i > 1: break",
        "xs = [1, 2, 3]\nfor i in sorted(xs):\n log(i)",
        "for i in (1, 1, 1, 2, 3): log(i)",
    ),
    "target": (
        "for i in items(range(3)):\n log(i)",
        "for k in items(range(3)):\n log(-k)",
        "for i in range(3): log(-i)",
    ),
    "target-unpacks": (
        "for i in items(['ab', 'cd', 'ef']):\n log(i)",
        "for a, b in items(['ab', 'cd', 'ef']):\n log(a)\n log(b)",
        "for i in ('ab', 'c', 'd', 'e', 'f'): log(i)",
    ),
    "target-unpacked-before": (
        "for a, b in items(['ab', 'cd', 'ef']):\n log(a + b)",
        "for s in items(['ab', 'cd', 'ef']):\n log(s[0])",
        "for i in ('ab', 'c', 'e'): log(i)",
    ),
    "body": (
        "for i in items(range(3)):\n log(i)\nelse: log('else')",
        "for i in items(range(3)):\n log('new')\n log(-i)\nelse: log('ELSE')",
        "for i in (0, 'new', -1, 'new', -2, 'ELSE'): log(i)",
    ),
    "unpacking": (
        "for a, b in [(1, 2), (3, 4, 5), (6, 7)]:\n log((a, b))",
        "for a, *b in [(1, 2), (3, 4, 5), (6, 7)]:\n log((a, b))",
        "for i in ((1, 2), (3, [4, 5]), (6, [7])): log(i)",
    ),
    "unpacking-body": (
        "for a, b in [(1, 2), (3, 4, 5), (6, 7)]:\n log((a, b))",
        "for a, *b in [(1, 2), (3, 4, 5), (6, 7)]:\n log(a)",
        "for i in ((1, 2), 3, 6): log(i)",
    ),
    "unpacking-iterable": (
        "for a, b in [(1, 2), (3, 4, 5), (6, 7)]:\n log((a, b))",
        "for a, b in [(8, 9)]:\n log((a, b))",
        "for i in ((1, 2), (8, 9)): log(i)",
    ),
    "iter": (
        "for i in bad(3):\n log(i)\nlog('after')",
        "for i in range(2):\n log(i)\nlog('after')",
        "for i in range(2): log(i)\nlog('after')",
    ),
    "iter-of-what-has-none": (
        "for i in 3:\n log(i)\nlog('after')",
        "for i in range(3):\n log(i)\nlog('after')",
        "for i in range(3): log(i)\nlog('after')",
    ),
    "removed": (
        "for i in items(range(3)):\n log(i)\nlog('after')",
        "log('instead')\nlog('after')",
        "log(0); log('instead'); log('after')",
    ),
    "for-to-while": (
        "i = 0\nfor i in items(range(3)):\n log(i)\nlog('after')",
        "i = 0\nwhile i < 2:\n log(i)\n i += 1\nlog('after')",
        "log(0); log(0); log(1); log('after')",
    ),
    "inner": (
        "for j in range(2):\n for i in items(range(2)):\n  log((j, i))",
        "for j in range(2):\n for i in range(5, 7):\n  log((j, i))",
        "for i in ((0, 0), (0, 5), (0, 6), (1, 5), (1, 6)): log(i)",
    ),
    "inner-and-earlier": (
        "for j in range(2):\n log('a')\n for i in items(range(2)):\n  log((j, i))",
        "for j in range(2):\n log('b')\n for i in range(5, 7):\n  log((j, i))",
        "for i in ('a', (0, 0), 'b', (0, 5), (0, 6), 'b', (1, 5), (1, 6)): log(i)",
    ),
    "slots-of-others": (
        "with cm('a'):\n for i in items(range(2)):\n  with cm(i): log(i)",
        "with cm('a'):\n for i in range(5, 7):\n  log(i)",
        "with cm('a'):\n with cm(0): log(0)\n log(5); log(6)",
    ),
    "with-expression": (
        "with bad('x') as a:\n log(a)\nlog('after')",
        "with cm('x') as a:\n log(a)\nlog('after')",
        "with cm('x') as a: log(a)\nlog('after')",
    ),
    "second-with-item": (
        "with cm('a') as a, bad('b') as b:\n log((a, b))\nlog('after')",
        "with cm('a') as a, cm('b') as b:\n log((a, b))\nlog('after')",
        "with cm('a') as a, cm('b') as b: log((a, b))\nlog('after')",
    ),
    "with-target": (
        "with cm('ab') as (a, b, c):\n log(a)\nlog('after')",
        "with cm('ab') as (a, b):\n log(a)\nlog('after')",
        "with cm('ab') as (a, b): log(a)\nlog('after')",
    ),
    "except-type": (
        "try: {}[1]\nexcept bad(KeyError): log('handler')\nlog('after')",
        "try: {}[1]\nexcept KeyError as e: log(e.args)\nlog('after')",
        "log((1,)); log('after')",
    ),
    "match-subject": (
        "match bad(1):\n case 1: log('one')\nlog('after')",
        "match 2:\n case 1: log('one')\n case 2: log('two')\nlog('after')",
        "log('two'); log('after')",
    ),
    "def-default": (
        "def g(x=bad(1)): return x\nlog(g())",
        "def g(x=2): return x\nlog(g())",
        "log(2)",
    ),
    "decorator": (
        "@bad\ndef g(x=2): return x\nlog(g())",
        "def g(x=2): return x\nlog(g())",
        "log(2)",
    ),
    "class-body": (
        "class C:\n x = bad(1)\n def m(self): return self.x\nlog(C().m())",
        "class C:\n x = 2\n def m(self): return self.x + 1\nlog(C().m())",
        "log(3)",
    ),
}
# fmt: on


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "like"), HEADERS.values(), ids=HEADERS)
def test_headers(old, new, like):
    expect_operated(unit(old), unit(new), unit(like))


# fmt: off
# (the module, its new text, what the run is like)
UNITS = {
    "generator": (
        "def main():\n with cm('g'):\n  for i in range(3):\n   yield log(i)\n   bad1(i)\n   yield log('end')\n return 4\n",
        "def main():\n with cm('g'):\n  for i in range(3):\n   yield log(i)\n   yield log(-i)\n   yield log('end')\n return 5\n",
        "def main():\n with cm('g'):\n  for i in range(3):\n   yield log(i)\n   if i: yield log(-i)\n   yield log('end')\n return 5\n",
    ),
    "generator-earlier": (
        "def main():\n for i in range(3):\n  yield log(i)\n  log('a')\n  bad1(i)\n",
        "def main():\n for i in range(3):\n  yield log(i)\n  log('b')\n  bad1(i)\n",
        "def main():\n for i in range(3):\n  yield log(i)\n  if i < 2: log('a')\n  if i: log('b')\n",
    ),
    "yield-from": (
        "def main():\n x = yield from sub()\n bad(x)\n yield log(x)\ndef sub():\n yield 1\n return 2\n",
        "def main():\n x = yield from sub()\n x = x * 10\n yield log(x)\ndef sub():\n yield 1\n return 2\n",
        "def main():\n yield 1\n yield log(20)\n",
    ),
    "generator-consumed-by-a-unit": (
        "def gen():\n for i in range(3):\n  bad1(i)\n  yield i\ndef main():\n for x in gen(): log(x)\n",
        "def gen():\n for i in range(3):\n  yield -i\ndef main():\n for x in gen(): log(x)\n",
        "def main():\n for x in (0, -1, -2): log(x)\n",
    ),
    "coroutine": (
        "async def main():\n async with cm('c') as c:\n  for i in range(3):\n   log(await tick(i))\n   bad1(i)\n   log('end')\n return c\n",
        "async def main():\n async with cm('c') as c:\n  for i in range(3):\n   log(await tick(i))\n   log(await tick(-i))\n   log('end')\n return c\n",
        "def main():\n with cm('c') as c:\n  for i in range(3):\n   log(i)\n   if i: log(-i)\n   log('end')\n return c\n",
    ),
    "async-generator": (
        "async def gen():\n async with cm('g'):\n  for i in range(3):\n   yield i\n   bad1(i)\nasync def main():\n async for x in gen(): log(x)\n",
        "async def gen():\n async with cm('g'):\n  for i in range(3):\n   yield i\n   yield -i\nasync def main():\n async for x in gen(): log(x)\n",
        "def main():\n with cm('g'):\n  for i in (0, 1, -1, 2, -2): log(i)\n",
    ),
    "async-for-target": (
        "async def gen():\n for i in ('ab', 'cde'): yield i\nasync def main():\n async for a, b in gen(): log(a)\n",
        "async def gen():\n for i in ('ab', 'cde'): yield i\nasync def main():\n async for a, b, *c in gen(): log(c or a)\n",
        "def main(): log('a'); log(['e'])\n",
    ),
    "method": (
        "class A:\n def f(self, x): return log(x)\nclass B(A):\n def f(self, x):\n  for i in range(3):\n   super().f(i)\n   bad1(i)\n  return super().f(x)\ndef main(): return B().f(7)\n",
        "class A:\n def f(self, x): return log(x)\nclass B(A):\n def f(self, x):\n  for i in range(3):\n   super().f(i)\n   super().f(-i)\n  return super().f(x) + 1\ndef main(): return B().f(7)\n",
        "def main():\n for i in range(3):\n  log(i)\n  if i: log(-i)\n log(7)\n return 8\n",
    ),
    "method-super-is-new": (
        "class A:\n def f(self, x): return log(x)\nclass B(A):\n def f(self, x):\n  __class__\n  bad(x)\n  return x\ndef main(): return B().f(7)\n",
        "class A:\n def f(self, x): return log(x)\nclass B(A):\n def f(self, x):\n  __class__\n  return super().f(x)\ndef main(): return B().f(7)\n",
        "def main(): return log(7)\n",
    ),
    "method-self-is-captured": (
        "class A:\n def f(self, x): return log(x)\nclass B(A):\n def f(self, x):\n  g = lambda: self\n  bad(x)\n  return super().f(x)\ndef main(): return B().f(7)\n",
        "class A:\n def f(self, x): return log(x)\nclass B(A):\n def f(self, x):\n  g = lambda: self\n  log(g() is self)\n  return super().f(x)\ndef main(): return B().f(7)\n",
        "def main(): log(True); return log(7)\n",
    ),
    "private-names": (
        "class B:\n def __init__(self): self.__x = 3\n def f(self):\n  __y = 4\n  bad(__y)\n  return self.__x\ndef main(): return B().f()\n",
        "class B:\n def __init__(self): self.__x = 3\n def f(self):\n  __y = 4\n  __z = __y + self.__x\n  log(__z)\n  return self.__x\ndef main(): return B().f()\n",
        "def main(): log(7); return 3\n",
    ),
    "static-and-class-methods": (
        "class B:\n k = 3\n @classmethod\n def c(cls):\n  bad(1)\n  return cls.k\n @staticmethod\n def s(x): return x\ndef main(): return B.c() + B.s(1)\n",
        "class B:\n k = 3\n @classmethod\n def c(cls):\n  log('new')\n  return cls.k + B.s(2)\n @staticmethod\n def s(x): return x * 10\ndef main(): return B.c() + B.s(1)\n",
        "def main(): log('new'); return 23 + 10\n",
    ),
    "property": (
        "class B:\n @property\n def p(self):\n  bad(1)\n  return 4\ndef main(): return B().p\n",
        "class B:\n @property\n def p(self):\n  log(1)\n  return 5\ndef main(): return B().p\n",
        "def main(): log(1); return 5\n",
    ),
    "nonlocal": (
        "def main():\n n = 0\n def add(x):\n  nonlocal n\n  n += x\n  bad1(n)\n  return n\n add(1)\n add(2)\n return n\n",
        "def main():\n n = 0\n def add(x):\n  nonlocal n\n  n += x\n  n *= 10\n  return n\n add(1)\n add(2)\n return n\n",
        "def main(): return 120\n",
    ),
    "nested-crashes-outer-edited-too": (
        "def main():\n n = 1\n def inner(x):\n  bad(x)\n  return n\n y = inner(1)\n log(y)\n return y\n",
        "def main():\n n = 1\n def inner(x):\n  log(-x)\n  return n\n y = inner(1)\n log(y * 2)\n return y\n",
        "def main(): log(-1); log(1); return 1\n",
    ),
    "captured-by-a-nested-function": (
        "def main():\n n = 1\n def get(): return n\n bad(1)\n return get()\n",
        "def main():\n n = 1\n def get(): return n\n n = 5\n return get()\n",
        "def main(): return 5\n",
    ),
    "newly-captured": (
        "def main():\n n = 1\n bad(1)\n return n\n",
        "def main():\n n = 1\n def get(): return n\n n = 5\n return get()\n",
        "def main(): return 5\n",
    ),
    "newly-captured-in-a-loop": (
        "def main():\n total = 0\n for i in range(3):\n  bad1(i)\n  total += i\n return total\n",
        "def main():\n total = 0\n for i in range(3):\n  def add():\n   nonlocal total\n   total += 10 * i\n  add()\n return total\n",
        "def main(): return 30\n",
    ),
    "newly-captured-comprehension": (
        "def main():\n n = 2\n x = bad(1)\n return x\n",
        "def main():\n n = 2\n x = [n * i for i in range(3)]\n return x\n",
        "def main(): return [0, 2, 4]\n",
    ),
    "captured-no-more": (
        "def main():\n n = 1\n gs = [lambda: n]\n bad(1)\n n += 1\n return gs[0]()\n",
        "def main():\n n = 1\n gs = []\n log(n)\n n += 1\n return len(gs)\n",
        "def main(): log(1); return 0\n",
    ),
    "global": (
        "def main():\n global count\n count = 1\n bad(1)\n return count\n",
        "def main():\n global count\n count = 1\n count *= 10\n return count\n",
        "def main(): return 10\n",
    ),
    "global-is-new": (
        "count = 3\ndef main():\n bad(1)\n return count\n",
        "count = 3\ndef main():\n global count\n count = 4\n return count\n",
        "def main(): return 4\n",
    ),
    "decorated": (
        "import functools\ndef twice(f):\n @functools.wraps(f)\n def g(*a): return f(*a) * 2\n return g\n@twice\ndef main():\n bad(1)\n return 3\n",
        "import functools\ndef twice(f):\n @functools.wraps(f)\n def g(*a): return f(*a) * 2\n return g\n@twice\ndef main():\n log(1)\n return 4\n",
        "def main(): log(1); return 8\n",
    ),
    "all-parameters": (
        "def f(a, /, b=2, *c, d=4, **e):\n bad(1)\n return a, b, c, d, e\ndef main(): return f(1, 2, 3, x=5)\n",
        "def f(a, /, b=2, *c, d=4, **e):\n log(1)\n a = -a\n return a, b, c, d, e\ndef main(): return f(1, 2, 3, x=5)\n",
        "def main(): log(1); return -1, 2, (3,), 4, {'x': 5}\n",
    ),
    "docstring-and-comments": (
        "def main():\n 'old'\n bad(1)  # here\n return main.__doc__\n",
        "def main():\n 'old'\n # better\n log(1)\n return main.__doc__\n",
        "def main(): log(1); return 'old'\n",
    ),
    "callee": (
        "def helper(x):\n return bad(x)\ndef main():\n for i in range(3):\n  log(helper(i))\n",
        "def helper(x):\n return -x\ndef main():\n for i in range(3):\n  log(helper(i))\n",
        "def main():\n for i in range(3): log(-i)\n",
    ),
    "callee-and-caller": (
        "def helper(x):\n return bad1(x)\ndef main():\n for i in range(3):\n  log(helper(i))\n",
        "def helper(x):\n return -x\ndef main():\n for i in range(3):\n  log(helper(i))\n  log('new')\n",
        "def main():\n for i in (0, -1, -2): log(i)\n",
    ),
    "callee-that-has-returned": (
        "def helper(x):\n return x\ndef main():\n for i in range(3):\n  log(helper(i))\n  bad1(i)\n",
        "def helper(x):\n return -x\ndef main():\n for i in range(3):\n  log(helper(i))\n  bad1(i)\n",
        "def main():\n for i in (0, 1, -2): log(i)\n",
    ),
    "unit-and-another": (
        "def helper(x):\n return x\ndef main():\n for i in range(3):\n  log(helper(i))\n  bad1(i)\n",
        "def helper(x):\n return -x\ndef main():\n for i in range(3):\n  log(helper(i))\n  log(helper(5))\n",
        "def main():\n for i in (0, 1, -5, -2, -5): log(i)\n",
    ),
    "method-that-is-called": (
        "class C:\n def m(self, x): return bad1(x)\ndef main():\n c = C()\n for i in range(3):\n  log(c.m(i))\n",
        "class C:\n def m(self, x): return -x\ndef main():\n c = C()\n for i in range(3):\n  log(c.m(i))\n",
        "def main():\n for i in range(3): log(-i)\n",
    ),
    "nested-class": (
        "class C:\n class D:\n  def m(self): return bad(1)\ndef main(): return C.D().m()\n",
        "class C:\n class D:\n  def m(self): return 5\ndef main(): return C.D().m()\n",
        "def main(): return 5\n",
    ),
    "same-name-twice": (
        "class C:\n def f(self): return bad(1)\ndef f(): return 2\ndef main(): return C().f() + f()\n",
        "class C:\n def f(self): return 10\ndef f(): return 2\ndef main(): return C().f() + f()\n",
        "def main(): return 12\n",
    ),
}
# fmt: on


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "like"), UNITS.values(), ids=UNITS)
def test_units(old, new, like):
    expect_operated(old, new, like)


# -- the crashed statement is half done


# fmt: off
OPEN = {
    "iterator": (
        "log('a')\nfor i in items(range(3)):\n log(i)", "log('b')\nfor i in items(range(3)):\n log(i)",
        ("a", 0, 1, 2),
    ),
    "iterator-in-a-loop": (
        "for k in range(2):\n log('a')\n for i in items(range(3)):\n  log(i)",
        "for k in range(2):\n log('b')\n for i in items(range(3)):\n  log(i)",
        ("a", 0, 1, 2, "b", 0, 1, 2),
    ),
    "item": (
        "log('a')\nfor i, j in [(1, 2), (3,), (5, 6)]:\n log(i)", "log('b')\nfor i, *j in [(1, 2), (3,), (5, 6)]:\n log(i)",
        ("a", 1, 3, 5),
    ),
    "while": (
        "n = 0\nwhile bad1(n) < 3:\n log(n)\n n += 1", "n = -9\nwhile bad1(n) < 3:\n log(n)\n n += 1",
        (0, 1, 2),
    ),
    "while-in-a-loop": (
        "for k in range(2):\n n = 0\n log('a')\n while bad1(n) < 3:\n  log(n)\n  n += 1",
        "for k in range(2):\n n = 0\n log('b')\n while bad1(n) < 3:\n  log(n)\n  n += 1",
        ("a", 0, 1, 2, "b", 0, 1, 2),
    ),
    "exit": (
        "log('a')\nwith exits():\n log(1)\nlog('after')", "log('b')\nwith exits():\n log(1)\nlog('AFTER')",
        ("a", "enter", 1, "exit", "AFTER"),
    ),
    "exit-body": (
        "with exits():\n log(1)\nlog('after')", "with exits():\n log(2)\nlog('after')", ("enter", 1, "exit", "after"),
    ),
    "exit-gone": (
        "with exits():\n log(1)\nlog('after')", "log(2)\nlog('after')", ("enter", 1, 2, "after"),
    ),
    "exit-with-exception": (
        "try:\n log('a')\n with exits():\n  {}[1]\nexcept KeyError: log('key')\nlog('after')",
        "try:\n log('b')\n with exits():\n  {}[1]\nexcept KeyError: log('KEY')\nlog('after')",
        ("a", "enter", "exit", "KEY", "after"),
    ),
    "with-target": (
        "log('a')\nwith cm('ab') as (a, b, c):\n log(a)", "log('b')\nwith cm('ab') as (a, b):\n log(a)",
        ("a", "enter ab", "a", "exit ab None"),
    ),
    "except": (
        "log('a')\ntry:\n log(1)\n {}[1]\nexcept bad(KeyError): log('key')", "log('b')\ntry:\n log(1)\n {}[1]\nexcept bad(KeyError): log('KEY')",
        ("a", 1, "KEY"),
    ),
    "except-body": (
        "try:\n log(1)\n {}[1]\nexcept bad(KeyError): log('key')", "try:\n log(2)\n {}[1]\nexcept bad(KeyError): log('key')",
        (1, "key"),
    ),
    "guard-earlier": (
        "log('a')\nmatch log(1):\n case 1 if bad(1): log('one')", "log('b')\nmatch log(1):\n case 1 if bad(1): log('one')",
        ("a", 1, "b", 1, "one"),
    ),
    "guard-subject": (
        "match log(1):\n case 1 if bad(1): log('one')\n case _: log('other')", "match log(2):\n case 1 if bad(1): log('one')\n case _: log('other')",
        (1, 2, "other"),
    ),
    "guard-removed": (
        "match log(1):\n case 0: log('zero')\n case 1 if bad(1): log('one')", "match log(1):\n case 0: log('zero')\n case 1: log('one')",
        (1, "one"),
    ),
}
# fmt: on


@pytest.mark.parametrize(("old", "new", "log"), OPEN.values(), ids=OPEN)
def test_a_half_done_statement_is_not_abandoned(old, new, log):
    expect_operated(unit(old), unit(new), unit(f"for x in {log}: log(x)"))


# fmt: off
ALIKE = {
    "equal-statements": (
        "for i in range(2):\n log(i)\n bad1(i)\n log(i)\n bad1(i)\n log('end')",
        "for i in range(2):\n log(i)\n bad1(i)\n log(i)\n bad1(i)\n log('END')",
        (0, 0, "end", 1, 1, "END"),
    ),
    "second-of-two": (
        "k = 0\nlog(1)\nbad1(k)\nk = 1\nlog(1)\nbad1(k)\nlog('end')", "k = 0\nlog(1)\nbad1(k)\nk = 1\nlog(1)\nbad1(k)\nlog('END')",
        (1, 1, "END"),
    ),
    "first-of-two-goes": ("log(1)\nbad(0)\nlog(2)\nbad(0)\nlog(3)", "log(1)\nlog(2)\nbad(0)\nlog(3)", (1, 2, 3)),
    "second-of-three-goes": (
        "bad1(0)\nlog(2)\nbad1(1)\nlog(3)\nbad1(0)\nlog(4)", "bad1(0)\nlog(2)\nlog(3)\nbad1(0)\nlog(4)", (2, 3, 4),
    ),
    "first-loop-goes": (
        "for i in range(2):\n log(i)\nfor i in range(2):\n log(i)\n bad1(i)", "for i in range(2):\n log(i)\n bad1(i)", (0, 1, 0, 1),
    ),
    "moved": (
        "for i in range(3):\n log('a')\n log('b')\n bad1(i)\n log('c')", "for i in range(3):\n bad1(i)\n log('a')\n log('b')\n log('c')",
        ("a", "b", "c", "a", "b", "a", "b", "c", "a", "b", "c"),
    ),
    "unwrapped": (
        "for i in range(3):\n if i < 5:\n  log(i)\n  bad1(i)\n  log('end')", "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        (0, "end", 1, "end", 2, "end"),
    ),
}
# fmt: on


@pytest.mark.parametrize(("old", "new", "log"), ALIKE.values(), ids=ALIKE)
def test_statements_that_are_alike(old, new, log):
    expect_operated(unit(old), unit(new), unit(f"for x in {log}: log(x)"))


# -- restart_at


@pytest.mark.parametrize(
    "name", ["earlier-line", "two-earlier-lines", "in-with-earlier", "no-loop-edit-first", "if-test"]
)
def test_restart_at_the_crash(name):
    old, new, _ = KINDS[name]
    crashed = next(line.strip() for line in old.splitlines() if "bad" in line)
    like = {
        "earlier-line": "for i in range(3):\n log(i)\n log(i if i < 2 else 20)\n log('end')",
        "two-earlier-lines": "for i in range(3):\n log('a')\n for s in 'BC' if i > 1 else 'bc': log(s)",
        "in-with-earlier": "for i in range(2):\n with cm(i):\n  log('a')\n  log(i)",
        "no-loop-edit-first": "for i in (1, 2, 4): log(i)",
        "if-test": "for i in range(3):\n if i == 1: log('if')\n elif i == 2: log('if')\n else: log('else')\n log('end')",
    }[name]
    assert crashed
    expect_operated(unit(old), unit(new), unit(like), repair=Repair(then=Surgery(unit(new), restart_at="crash")))


# -- later calls, and everything that refers to the function


def test_every_reference_runs_the_new_text():
    source = """
class C:
    def m(self, x=1):
        bad(x)
        return "old"
class D(C):
    def m(self): return "D " + super().m()
def main(): return C().m()
"""
    new = source.replace("bad(x)", "log(x)").replace('return "old"', 'return "new"')
    module = Module(source)
    c = module.C()
    bound, listed, partial, unbound = c.m, [module.C.m], functools.partial(c.m, 2), module.C.m
    assert run(module, Answers(Surgery(new))) == "new"
    assert bound() == listed[0](c) == partial() == unbound(c) == "new"
    assert module.D().m() == "D new"
    assert module.lines == [1, 1, 1, 2, 1, 1]


COUNTERS = """
def make(n):
    def count(x):
        nonlocal n
        n += x
        bad(n)
        return n
    return count
def main(): return make(1)(1)
"""
COUNT = "def count(x):\n    nonlocal n\n    n += x\n    n *= 2\n    return -n\n"


@pytest.mark.parametrize("whole", [True, False], ids=["module", "unit"])
def test_closures_of_one_maker_run_the_new_text(whole):
    module = Module(COUNTERS)
    first, second = module.make(1), module.make(100)
    module.first = first
    new = COUNTERS.replace("bad(n)", "n *= 2").replace("return n\n", "return -n\n", 1) if whole else COUNT
    assert run(module, Answers(Surgery(new)), "first(1)") == -4
    assert (first(1), second(1)) == (-10, -202)
    assert module.make(5)(1) == -12, "a closure that is made later"


def test_closures_that_were_vaccinated_one_by_one_run_the_new_text():
    module = Module(COUNTERS, plain=["make"])
    module.first, second = (daifu_ipy.vaccinate(module.make(n), strict=True) for n in (1, 100))
    assert run(module, Answers(Surgery(COUNT)), "first(1)") == -4
    assert second(1) == -202


def test_a_nested_function_defined_again_by_a_running_frame():
    """The old frame makes it from its old text, and finishes so; a call from anew has the new one."""
    source = "def main():\n for i in range(2):\n  def step():\n   bad(i)\n   return 'old', i\n  log(step())\n"
    for new in (source.replace("'old'", "'new'"), "def step():\n bad(i)\n return 'new', i\n"):
        module = Module(source)
        run(module, Answers(Surgery(new)))
        assert module.lines == [("new", 0), ("old", 1)]
        module.lines.clear()
        module.main()
        assert module.lines == [("new", 0), ("new", 1)]


def test_old_frames_of_a_recursion_finish_with_the_old_text():
    source = """
def main(n=3):
    log(("in", n))
    if n == 0:
        bad(0)
    else:
        main(n - 1)
    log(("old", n))
"""
    new = source.replace("bad(0)", "log('repaired')").replace('"old"', '"new"')
    module = Module(source)
    run(module, Answers(Surgery(new)))
    assert module.lines == [
        ("in", 3),
        ("in", 2),
        ("in", 1),
        ("in", 0),
        "repaired",
        ("new", 0),
        ("old", 1),
        ("old", 2),
        ("old", 3),
    ]
    module.lines.clear()
    module.main(1)
    assert module.lines == [("in", 1), ("in", 0), "repaired", ("new", 0), ("new", 1)]


RECURSION = "def main(n=1):\n if n: main(0)\n bad(n)\n log(('a', n))\n return n\n"
REPAIRED = RECURSION.replace("bad(n)", "n and bad(n)")


def test_a_crash_in_an_old_frame_is_repaired_in_the_old_text():
    module, manager = Module(RECURSION, faults=2), Answers(Surgery(REPAIRED.replace("'a'", "'b'")), Pass())
    assert run(module, manager) == 1
    assert module.lines == [("b", 0), ("a", 1)]


def test_surgery_in_an_old_frame_after_another_surgery():
    second, third = REPAIRED.replace("'a'", "'b'"), REPAIRED.replace("'a'", "'c'")
    module, manager = Module(RECURSION, faults=2), Answers(Surgery(second), Surgery(third))
    assert run(module, manager) == 1
    assert module.lines == [("b", 0), ("c", 1)]
    module.lines.clear()
    module.main()
    assert module.lines == [("c", 0), ("c", 1)], "the last surgery's text"


def test_generators_that_are_running_keep_their_text():
    source = "def gen(n):\n yield n\n bad(n)\n yield 'old'\ndef main():\n a, b = gen(1), gen(2)\n next(b)\n return [*a, *b, *gen(3)]\n"
    new = source.replace("bad(n)", "yield 'repaired'").replace("'old'", "'new'")
    assert run(Module(source), Answers(Surgery(new))) == [1, "repaired", "new", "old", 3, "repaired", "new"]


def test_two_surgeries_in_a_row():
    source = "def main():\n for i in range(4):\n  log(i)\n  bad(i)\n  log('end')\n"
    second = source.replace("bad(i)", "bad(-i)\n  log('second')")
    third = second.replace("bad(-i)", "log('third')").replace("'end'", "'END'")
    module, manager = Module(source, faults=2), Answers(Surgery(second), Surgery(third))
    run(module, manager)
    every = [1, "third", "second", "END", 2, "third", "second", "END", 3, "third", "second", "END"]
    assert module.lines == [0, "third", "second", "END", *every]
    module.lines.clear()
    module.main()
    assert module.lines == [0, "third", "second", "END", *every]


def test_surgery_after_a_recovery_and_recovery_after_surgery():
    source = "def main():\n for i in range(3):\n  with cm(i):\n   bad(i)\n   log('end')\n"
    module, manager = (
        Module(source, faults=4),
        Answers(Pass(), Pass(), Surgery(source.replace("'end'", "'END'")), Pass()),
    )
    run(module, manager)
    assert module.lines == [
        "enter 0",
        "END",
        "exit 0 None",
        "enter 1",
        "END",
        "exit 1 None",
        "enter 2",
        "END",
        "exit 2 None",
    ]


def test_back_to_the_first_text():
    source = "def main():\n for i in range(3):\n  bad(i)\n  log('end')\n"
    other = source.replace("'end'", "'END'")
    module, manager = Module(source, faults=2), Answers(Surgery(other), Surgery(source))
    run(module, manager)
    assert module.lines == ["end"] * 3


def test_unvaccinate_after_surgery():
    source = "def main(x=2):\n bad(1)\n return x\n"
    new = "def main(x=2):\n log(1)\n return x * 10\n"
    module = Module(source)
    function = module.main
    assert run(module, Answers(Surgery(new))) == 20
    assert is_vaccinated(function)
    assert daifu_ipy.unvaccinate(function) is function
    assert not is_vaccinated(function)
    assert function() == 20, "the new text, plainly"
    daifu_ipy.vaccinate(function, strict=True)
    assert is_vaccinated(function)
    assert function() == 20


def test_the_names_of_the_function_stay():
    source = "def main(x: int = 2, *, y=3) -> int:\n 'doc'\n bad(1)\n return x\nmain.mark = 5\n"
    module = Module(source)
    before = {
        name: getattr(module.main, name)
        for name in (
            "__name__",
            "__qualname__",
            "__defaults__",
            "__kwdefaults__",
            "__annotations__",
            "__module__",
            "__doc__",
            "mark",
        )
    }
    run(module, Answers(Surgery(source.replace("bad(1)", "log(1)"))))
    assert {name: getattr(module.main, name) for name in before} == before
    assert str(inspect.signature(module.main)) == "(x: int = 2, *, y=3) -> int"


# -- tracebacks and sources


def lines_of(error):
    return [(entry.name, entry.line) for entry in traceback.extract_tb(error.__traceback__) if entry.filename[0] == "<"]


def test_tracebacks_show_the_new_text():
    source = "def main():\n for i in range(3):\n  bad(i)\n  log('end')\n"
    new = "def main():\n # a comment\n for i in range(3):\n  log(-i)\n  if i: raise KeyError(i)\n"
    module = Module(source)
    error = raised(module, Answers(Surgery(new), Abort()))
    assert type(error) is KeyError
    shown = [("<module>", ""), ("main", "if i: raise KeyError(i)")]
    assert lines_of(error) == shown
    assert lines_of(raised(module, Answers(Abort()))) == shown


def test_getsource_shows_the_new_text():
    source = "x = 1\ndef main():\n bad(1)\n return 3\ndef other(): pass\n"
    new = source.replace("bad(1)", "log(1)  # better")
    module = Module(source)
    run(module, Answers(Surgery(new)))
    assert inspect.getsource(module.main) == "def main():\n log(1)  # better\n return 3\n"
    daifu_ipy.unvaccinate(module.main)
    assert inspect.getsource(module.main) == "def main():\n log(1)  # better\n return 3\n"


def test_getsource_of_a_helper_that_was_replaced():
    source = "def helper():\n return bad(1)\ndef main(): return helper()\n"
    module = Module(source, plain=["helper"])
    assert run(module, Answers(Surgery("def helper():\n return 5  # new\n"))) == 5
    assert inspect.getsource(module.helper) == "def helper():\n return 5  # new\n"


def test_texts_of_refused_surgeries_are_not_kept():
    source = "def main():\n bad(1)\n return 3\n"
    module = Module(source)

    def look(crash):
        with pytest.raises(surgery.Refusal):
            crash.preview("def main(x):\n pass\n")
        for _ in range(3):
            crash.preview(source.replace("3", "4"))
        return Skip()

    before = {name for name in linecache.cache if "surgery" in name}
    run(module, Answers(look))
    assert {name for name in linecache.cache if "surgery" in name} == before


# -- what the source may be


SOURCES = {
    "unit": lambda crash, old, new: crash.source.replace(old, new),
    "dedented": lambda crash, old, new: textwrap.dedent(crash.source).replace(old, new),
    "blank-lines": lambda crash, old, new: "\n\n" + crash.source.replace(old, new) + "\n\n",
    "no-newline": lambda crash, old, new: crash.source.replace(old, new).rstrip(),
    "file": lambda crash, old, new: crash.frames[0].unit.source.replace(old, new),
    "windows": lambda crash, old, new: crash.source.replace(old, new).replace("\n", "\r\n"),
}
PLACES = {
    "function": "def main():\n    log('start')\n    bad('here')\n    return 3\n",
    "function-at-the-end": "x = 1\ndef other(): pass\ndef main():\n    log('start')\n    bad('here')\n    return 3",
    "method": "class B:\n    def g(self): return 4\nclass C(B):\n    @property\n    def p(self): return 1\n    def g(self):\n        log('start')\n        bad('here')\n        return super().g()\ndef main(): return C().g()\n",
    "private-method": "class C:\n    def __g(self):\n        log('start')\n        bad('here')\n        return self.__class__.__name__\n    def g(self): return self.__g()\ndef main(): return C().g()\n",
    "decorated-method": "class C:\n    @staticmethod\n    def g():\n        log('start')\n        bad('here')\n        return 4\ndef main(): return C.g()\n",
    "nested": "def main():\n    n = 3\n    def g():\n        nonlocal n\n        n += 1\n        log('start')\n        bad('here')\n        return n\n    return g()\n",
    "in-an-if": "if True:\n    def main():\n        log('start')\n        bad('here')\n        return 3\n",
    "text-with-indentation": "class C:\n    def g(self):\n        log('start')\n        bad('here')\n        return '''\n  two\n      six'''\ndef main(): return C().g()\n",
    "text-with-deep-lines": "class C:\n    def g(self):\n        log('start')\n        bad('here')\n        return '''\n      two\n            six'''\ndef main(): return C().g()\n",
    "comment-first": "class C:\n    # about g\n    def g(self):  # g\n        # start\n        log('start')\n        bad('here')\n        return 4\n        # end\ndef main(): return C().g()\n",
    "one-line": "def main(): log('start'); bad('here'); return 3\n",
    "coroutine": "async def main():\n    log('start')\n    bad('here')\n    return await tick(3)\n",
    "unicode": "def main():\n    é = 'ü'\n    log('start')\n    bad('here'); log(é)\n    return é\n",
}


FORMS = [
    pytest.param(place, form, id=f"{name}-{kind}")
    for name, place in PLACES.items()
    for kind, form in SOURCES.items()
    if kind != "dedented" or not name.startswith("text-with")  # to dedent those would change what they say
]


@pytest.mark.slow
@pytest.mark.parametrize(("place", "form"), FORMS)
def test_forms_of_the_source(place, form):
    expected = Patient(place.replace("bad('here')", "log('repaired')"), vaccinated=False)
    result = finish(expected.main())
    module = Patient(place)
    shown = []

    def manager(crash):
        text = form(crash, "bad('here')", "log('repaired')")
        shown.append(crash.preview(text))
        return Surgery(text)

    assert run(module, Answers(manager)) == result
    assert module.lines == expected.lines
    assert shown[0].statement.strip() == "log('repaired')"
    assert finish(module.main()) == result


# -- notebook cells


def cell(source, *answers, **names):
    """Run a notebook cell; its namespace, what it displayed and its log."""
    lines, left = [], [1]

    def bad(x=None):
        if left:
            left.pop()
            raise Fault(x)
        return x

    def log(x):
        lines.append(x)
        return x

    namespace, manager = {"log": log, "bad": bad, **names}, Answers(*answers)

    def start():
        with daifu_ipy.repair_with(manager):
            finish(daifu_ipy.run_cell(source, namespace))

    error = escaping(start)
    return namespace, lines, manager, error


CELLS = {
    "replace": ("x = 1\nbad(x)\ny = x", "x = 1\nlog(x)\ny = x", [1]),
    "loop": (
        "for i in range(3):\n log(i)\n if i: bad(i)\n",
        "for i in range(3):\n log(i)\n if i: log(-i)\n",
        [0, 1, -1, 2, -2],
    ),
    "earlier": ("x = 1\nlog(x)\nbad(x)\n", "x = 2\nlog(x)\nbad(x)\n", [1, 2]),
    "def": ("def f(x): return bad(x)\nlog(f(1))\n", "def f(x): return -x\nlog(f(1))\n", [-1]),
    "only-a-def": ("def f(x): return bad(x)\nlog(f(1))\n", "def f(x): return -x\n", [-1]),
    "def-and-later": ("def f(x): return bad(x)\nlog(f(1))\n", "def f(x): return -x\nlog(f(2))\n", [-1]),
    "new-def": ("bad(1)\nlog(2)\n", "def f(x): return -x\nlog(f(1))\nlog(2)\n", [-1, 2]),
    "class": ("class C:\n x = bad(1)\nlog(C.x)\n", "class C:\n x = 2\nlog(C.x)\n", [2]),
    "import": ("bad(1)\n", "import math\nlog(math.floor(2.5))\n", [2]),
    "delete": ("x = 1\nbad(x)\n", "x = 1\n", []),
    "annotated": ("x: int = 1\nbad(x)\n", "x: int = 1\ny: str = 'a'\nlog(y)\n", ["a"]),
    "comprehension": ("x = 2\nbad(x)\n", "x = 2\nlog([x * i for i in range(2)])\n", [[0, 2]]),
    "with": (
        "import contextlib\nwith contextlib.nullcontext(3) as c:\n bad(c)\nlog('end')",
        "import contextlib\nwith contextlib.nullcontext(3) as c:\n log(c)\nlog('end')",
        [3, "end"],
    ),
}


@pytest.mark.parametrize(("old", "new", "log"), CELLS.values(), ids=CELLS)
def test_notebook_cells(old, new, log):
    namespace, lines, manager, error = cell(old, Surgery(new))
    assert error is None
    assert lines == log
    assert not manager.refusals
    assert not [name for name in namespace if name.startswith("@")]


def test_a_method_defined_in_the_cell():
    source = "class C:\n def m(self): return bad(1)\nc = C()\nlog(c.m())\n"
    for new in (source.replace("bad(1)", "5"), "class C:\n def m(self): return 5\n", "def m(self): return 5\n"):
        namespace, lines, manager, error = cell(source, Surgery(new))
        assert (error, lines, manager.refusals) == (None, [5], [])
        assert isinstance(namespace["c"], namespace["C"])


def test_a_function_of_an_earlier_cell():
    namespace, _, _, _ = cell("def f(x):\n return bad(x)\n")
    _, lines, manager, error = cell(
        "for i in range(2): log(f(i))\n", Surgery("def f(x):\n return x + 10\n"), f=namespace["f"]
    )
    assert (error, lines, manager.refusals) == (None, [10, 11], [])


def test_the_cell_of_a_function_that_crashed():
    """`crash.source` is the function's text; the whole cell's may be given as well, and runs nothing else again."""
    source = "log('cell')\ndef f(x):\n return bad(x)\nlog(f(1))\nlog('end')\n"
    _, lines, manager, error = cell(source, Surgery(source.replace("bad(x)", "-x").replace("'end'", "'END'")))
    assert (error, manager.refusals) == (None, [])
    assert lines[:2] == ["cell", -1]


# -- refusals change nothing


def state(crash, module):
    return (
        module.codes(), dict(crash.namespace), crash.restart, dict(crash.innermost.slots), dict(crash.innermost.variables),
        {name: id(held) for name, held in crash.innermost.cells.items()}, list(module.lines), sorted(vars(module)),
    )  # fmt: skip


REFUSED = """
class C:
    def m(self, x):
        return x
def helper(x):
    return bad(x)
def make(n):
    def main(a, b=2, *c, d=4, **e):
        total = 0
        with cm("w"):
            for i in range(3):
                total += n
                helper(i)
                log(i)
        return total
    return main
main = make(5)
"""
UNIT = textwrap.dedent(REFUSED[REFUSED.index("    def main") : REFUSED.index("    return main\n")])
# fmt: off
REFUSALS = {
    "syntax": ("def main(:\n", "does not parse: line 1"),
    "syntax-later": (UNIT.replace("log(i)", "log(i"), "does not parse"),
    "indentation": (UNIT.replace("    with", "   with"), "does not parse"),
    "null": ("def main():\n \0\n", "null bytes"),
    "empty": ("", "defines neither"),
    "comment": ("# nothing\n", "defines neither"),
    "dropped": ("x = 1\n", "defines neither"),
    "renamed": (UNIT.replace("main", "other"), "defines neither"),
    "other-unknown-function": ("def unknown(): pass\n", "defines neither"),
    "parameter-added": (UNIT.replace("a, b=2", "a, z, b=2"), "z is a new parameter without a default"),
    "parameter-renamed": (UNIT.replace("(a, b=2", "(z, b=2"), "parameter a of .*main is gone and z is new"),
    "parameter-to-star": (UNIT.replace("*c", "c=1, *f"), "c can't become another kind"),
    "decorated": ("@log\n" + UNIT, "decorators of .*main"),
    "async": ("async " + UNIT, "can't become a coroutine"),
    "generator": (UNIT.replace("log(i)", "yield i"), "can't become, or stop being, a generator"),
    "lambda": ("main = lambda a: a\n", "defines neither"),
    "class": ("class main: pass\n", "defines neither"),
    "nonlocal-unknown": (UNIT.replace("total = 0", "nonlocal unknown\n    total = 0"), "no binding for nonlocal"),
    "break-outside": (UNIT.replace("total = 0", "break"), "outside loop"),
    "global-after-use": (UNIT.replace("log(i)", "global total"), "before global declaration"),
    "duplicate-argument": (UNIT.replace("*c", "*b"), "duplicate argument|parameters"),
    "await": (UNIT.replace("log(i)", "await i"), "await"),
    "too-deep": (UNIT.replace("log(i)", "\n".join([" " * k + "    " * 3 + f"with cm({k}):" for k in range(25)]).lstrip() + "\n" + " " * 60 + "pass"), "nested"),
}
# fmt: on
REFUSALS["helper-decorated"] = ("@log\ndef helper(x): return x\n", "decorators of helper")
REFUSALS["helper-captures"] = ("def helper(x):\n    nonlocal y\n    return x\n", "no binding for nonlocal|can't")
REFUSALS["unit-good-helper-bad"] = (
    "@log\ndef helper(x): return x\n" + UNIT.replace("log(i)", "log(-i)"),
    "decorators of helper",
)
REFUSALS["helper-good-unit-bad"] = (
    "def helper(x): return -x\n" + UNIT.replace("a, b=2", "a, z, b=2"),
    "z is a new parameter without a default",
)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_refused_and_nothing_has_changed(text, reason):
    module, seen = Patient(REFUSED, plain=["helper"]), []

    def first(crash):
        seen.append(state(crash, module))
        with pytest.raises(surgery.Refusal, match=reason):
            crash.preview(text)
        assert state(crash, module) == seen[0]
        return Surgery(text)

    def second(crash):
        assert state(crash, module) == seen[0]
        return Surgery(UNIT.replace("log(i)", "log(-i)"))

    manager = Answers(first, second)
    assert run(module, manager, "main(1)") == 15
    assert len(manager.refusals) == 1
    assert re.search(reason, manager.refusals[0])
    assert module.lines == ["enter w", 0, -1, -2, "exit w None"]


def test_what_is_captured_no_more():
    module, manager = (
        Patient(REFUSED, plain=["helper"]),
        Answers(Surgery(UNIT.replace("total += n", "total += 10 * i"))),
    )
    assert run(module, manager, "main(1)") == 5 + 0 + 10 + 20
    assert module.main(1) == 30


ENCLOSING = """
def make():
    k, n = 7, 1
    def inner():
        bad(n)
        return n
    return inner(), k
def main(): return make()
"""


@pytest.mark.parametrize("whole", [True, False], ids=["module", "unit"])
def test_a_variable_that_would_have_to_be_captured(whole):
    """It must not be taken for a global: that would be a wrong result, or a NameError where Python has none."""
    new = ENCLOSING.replace("return n\n", "return n + k\n") if whole else "def inner():\n    bad(n)\n    return n + k\n"
    module, manager = Module(ENCLOSING), Answers(Surgery(new), Pass())
    vars(module)["k"] = 100
    assert run(module, manager) == (1, 7)
    assert len(manager.refusals) == 1
    assert re.search("captures .*'k'", manager.refusals[0])


METHOD = "def helper(): return 'old helper'\nclass C:\n def m(self):\n  bad(1)\n  return helper()\ndef main(): return C().m()\n"
EDITED = "def m(self):\n log(2)\n return helper()\n"


@pytest.mark.parametrize(
    "text", [EDITED + "def helper(): return 'new helper'\n", "def helper(): return 'new helper'\n" + EDITED]
)
def test_the_units_own_text_beside_that_of_a_helper(text):
    module, manager = Module(METHOD), Answers(Surgery(text), Pass())
    assert run(module, manager) == "new helper"
    assert (module.lines, manager.refusals) == ([2], [])


def test_vaccinate_again_after_surgery_with_the_text_of_a_method():
    source = "class C:\n def __init__(self): self.__x = 3\n def m(self):\n  bad(1)\n  return self.__x\ndef main(): return C().m()\n"
    module = Module(source)
    assert run(module, Answers(Surgery("def m(self):\n return self.__x + 1\n"))) == 4
    daifu_ipy.unvaccinate(module.C.m)
    assert module.main() == 4
    daifu_ipy.vaccinate(module.C.m, strict=True)
    assert module.main() == 4


@pytest.mark.parametrize("restart_at", [1, 99])
def test_a_line_without_a_statement_is_refused(restart_at):
    module, manager = (
        Patient(REFUSED, plain=["helper"]),
        Answers(Surgery(UNIT.replace("log(i)", "log(-i)"), restart_at=restart_at), Pass()),
    )
    assert run(module, manager, "main(1)") == 15
    assert "restart_at" in manager.refusals[0]
    assert module.lines == ["enter w", 0, 1, 2, "exit w None"]


def test_a_cell_that_would_await():
    old = "log(1)\nbad(1)\n"
    _, lines, manager, error = cell(old, Surgery("log(1)\nawait x\n"), Skip())
    assert error is None
    assert "await" in manager.refusals[0]
    assert lines == [1]


def test_an_unchanged_text_retries():
    module, manager = Patient(REFUSED, plain=["helper"]), Answers(Surgery(UNIT))
    assert run(module, manager, "main(1)") == 15
    module, manager = Patient(REFUSED, plain=["helper"]), Answers(Surgery(UNIT.replace("log(i)", "log(i)  # fine")))
    assert run(module, manager, "main(1)") == 15


# -- wrapping what is open


# fmt: off
WRAPPED = {
    "loop-in-loop": ("for i in range(3):\n log(i)\n bad1(i)", "for k in range(2):\n for i in range(3):\n  log(i)\n  bad1(i)"),
    "while-in-while": ("n = 0\nwhile n < 3:\n log(n)\n bad1(n)\n n += 1", "n = 0\nwhile n < 3 and True:\n while n < 3:\n  log(n)\n  bad1(n)\n  n += 1"),
    "with-in-with": ("with cm('a'):\n log(1)\n bad(1)", "with cm('z'):\n with cm('a'):\n  log(1)\n  bad(1)"),
    "second-with": ("with cm('a'):\n log(1)\n bad(1)", "with cm('z'), cm('a'):\n log(1)\n bad(1)"),
    "loop-in-with": ("for i in range(3):\n log(i)\n bad1(i)", "with cm('z'):\n for i in range(3):\n  log(i)\n  bad1(i)"),
}
# fmt: on


@pytest.mark.parametrize(("old", "new"), WRAPPED.values(), ids=WRAPPED)
def test_what_is_open_is_not_wrapped_unasked(old, new):
    """What stands around an open block must not take its iterator, or its context manager; nor is it abandoned."""
    module, manager = Patient(unit(old)), Answers(Surgery(unit(new)), Pass())
    run(module, manager)
    assert len(manager.refusals) == 1
    assert "has not been entered" in manager.refusals[0]
    example = Patient(unit(old), faults=0, vaccinated=False)
    example.main()
    assert module.lines == example.lines

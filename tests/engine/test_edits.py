"""Edits of every construct around a crash: put around it, taken away, turned into another; and edits made by chance."""

from __future__ import annotations

import zlib

import pytest

from daifu_ipy import Surgery
from tests.engine import edited, programs
from tests.engine.modules import Answers
from tests.engine.modules import run as run_module
from tests.engine.test_surgery import Patient, expect_operated, few_objects, unit  # noqa: F401

pytestmark = pytest.mark.slow

# fmt: off
# (the body, its new text, the plain program)
AROUND = {
    "try-around-crashed": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')", "for i in range(3):\n log(i)\n try: {}[bad1(i)]\n except KeyError as e: log(e.args)\n log('end')",
        "for i in range(3):\n log(i)\n if i: log((i,))\n log('end')",
    ),
    "try-around-the-iteration": (
        "for i in range(3):\n log(i)\n bad1(i)\n log('end')", "for i in range(3):\n try:\n  log(i)\n  bad1(i)\n  log('end')\n  if i: {}[i]\n except KeyError as e: log(e.args)",
        "for i in range(3):\n log(i)\n log('end')\n if i: log((i,))",
    ),
    "try-around-the-loop": (
        "for i in range(3):\n log(i)\n bad1(i)\nlog('end')", "try:\n for i in range(3):\n  log(i)\n  bad1(i)\n {}[i]\nexcept KeyError as e: log(e.args)\nfinally: log('f')\nlog('end')",
        "for i in range(3): log(i)\nlog((2,)); log('f'); log('end')",
    ),
    "try-taken-away": (
        "for i in range(3):\n try:\n  log(i)\n  bad1(i)\n except KeyError: log('key')\n log('end')", "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "for i in range(3): log(i); log('end')",
    ),
    "finally-taken-away": (
        "for i in range(3):\n try:\n  log(i)\n  bad1(i)\n finally: log('f')", "for i in range(3):\n log(i)\n bad1(i)",
        "log(0); log('f'); log(1); log(2)",
    ),
    "with-taken-away": (
        "for i in range(3):\n with cm(i):\n  log(i)\n  bad1(i)\n log('end')", "for i in range(3):\n log(i)\n bad1(i)\n log('end')",
        "with cm(0): log(0)\nlog('end')\nwith cm(1): log(1)\nlog('end'); log(2); log('end')",
    ),
    "with-taken-away-around-the-loop": (
        "with cm('a'):\n for i in range(3):\n  log(i)\n  bad1(i)\nlog('end')", "for i in range(3):\n log(i)\n bad1(i)\nlog('end')",
        "with cm('a'): log(0); log(1)\nlog(2); log('end')",
    ),
    "two-withs-taken-away": (
        "with cm('a'), cm('b'):\n log(1)\n bad(1)\nlog('end')", "log(1)\nbad(1)\nlog('end')", "with cm('a'), cm('b'): log(1)\nlog('end')",
    ),
    "with-to-try": (
        "with cm('a'):\n log(1)\n bad(1)\nlog('end')", "try:\n log(1)\n bad(1)\nfinally: log('f')\nlog('end')", "with cm('a'): log(1)\nlog('f'); log('end')",
    ),
    "loop-taken-away": (
        "i = 0\nfor i in range(3):\n log(i)\n bad1(i)\n log('mid')\nlog('end')", "i = 0\nlog(i)\nbad1(i)\nlog('mid')\nlog('end')", "log(0); log('mid'); log(1); log('mid'); log('end')",
    ),
    "loop-to-if": (
        "i = 1\nfor i in range(3):\n log(i)\n bad1(i)\nlog('end')", "i = 1\nif i == 1:\n log(-i)\n bad1(i)\nlog('end')", "log(0); log(1); log(-1); log('end')",
    ),
    "for-to-while": (
        "for i in range(3):\n log(i)\n bad1(i)\nlog('end')", "i = 5\nwhile i < 7:\n log(i)\n i += 1\nlog('end')", "log(0); log(1); log(5); log(6); log('end')",
    ),
    "while-to-for": (
        "n = 0\nwhile n < 3:\n log(n)\n bad1(n)\n n += 1\nlog('end')", "n = 0\nfor k in range(2):\n log(-k)\nlog('end')", "log(0); log(1); log(0); log(-1); log('end')",
    ),
    "if-taken-away": (
        "for i in range(3):\n if i < 5:\n  log(i)\n  bad1(i)\n log('end')", "for i in range(3):\n log(i)\n bad1(i)\n log('end')", "for i in range(3): log(i); log('end')",
    ),
    "else-taken-away": (
        "for i in range(3):\n if i != 1: log('if')\n else:\n  bad(i)\n log('end')", "for i in range(3):\n if i != 1: log('if')\n log('end')",
        "for i in range(3):\n if i != 1: log('if')\n log('end')",
    ),
    "handler-taken-away": (
        "for i in range(3):\n try: {}[i]\n except KeyError as e:\n  log(e.args)\n  bad1(i)\n log('end')", "for i in range(3):\n log(i)\n log('end')",
        "log((0,)); log('end'); log((1,)); log(1); log('end'); log(2); log('end')",
    ),
    "handler-before": (
        "for i in range(3):\n try: {}[i]\n except KeyError as e:\n  bad1(i)\n  log(e.args)", "for i in range(3):\n try: {}[i]\n except IndexError: log('index')\n except KeyError as e:\n  log(-i)\n  log(e.args)",
        "for i in range(3):\n if i: log(-i)\n log((i,))",
    ),
    "handler-gets-a-name": (
        "for i in range(3):\n try: {}[i]\n except KeyError:\n  bad1(i)\n  log('key')", "for i in range(3):\n try: {}[i]\n except KeyError as e:\n  bad1(i)\n  log(e.args)",
        "for i in range(3): log((i,) if i else 'key')",
    ),
    "handler-changes-its-name": (
        "for i in range(3):\n try: {}[i]\n except KeyError as e:\n  bad1(i)\n  log(e.args)", "for i in range(3):\n try: {}[i]\n except KeyError as k:\n  bad1(i)\n  log(k.args)\n try: e\n except NameError: log('unbound')",
        "for i in range(3):\n log((i,))\n if i: log('unbound')",
    ),
    "case-before": (
        "for i in range(3):\n match i:\n  case 1:\n   bad(i)\n   log('one')\n  case _: log('other')", "for i in range(3):\n match i:\n  case 2: log('two')\n  case 1:\n   log('new')\n   log('one')\n  case _: log('other')",
        "log('other'); log('new'); log('one'); log('two')",
    ),
    "finally-that-a-return-waits-for": (
        "for i in range(2):\n try:\n  if i: return log('value')\n finally:\n  bad1(i)\n  log('f')", "for i in range(2):\n try:\n  log('new')\n  if i: return log('value')\n finally:\n  log('repaired')\n  log('f')",
        "log('f'); log('value'); log('repaired'); log('f'); return 'value'",
    ),
    "finally-that-a-break-waits-for": (
        "for i in range(3):\n with cm(i):\n  try:\n   if i: break\n  finally:\n   bad1(i)\nelse: log('else')", "for i in range(3):\n with cm(i):\n  try:\n   if i: break\n  finally:\n   log('repaired')\nelse: log('else')",
        "with cm(0): 0\nwith cm(1): log('repaired')",
    ),
    "moved-block": (
        "for i in range(3):\n if i < 5:\n  log('a')\n  bad1(i)\n log('b')\n log('c')", "for i in range(3):\n log('b')\n if i < 5:\n  log('a')\n  bad1(i)\n log('c')",
        "log('a'); log('b'); log('c'); log('a'); log('b'); log('a'); log('c'); log('b'); log('a'); log('c')",
    ),
    "all-is-new": (
        "for i in range(3):\n log(i)\n bad1(i)", "x = 1\nlog(x)\nreturn x", "log(0); log(1); log(1); return 1",
    ),
    "shared-by-two-blocks": (
        "for i in range(2):\n for j in range(2):\n  log((i, j))\n  bad1(j)\n log('end')", "for i in range(2):\n for j in range(2):\n  log((i, j))\n  total = i + j\n  bad1(j)\n log(total)",
        "log((0, 0)); log((0, 1)); log(1); log((1, 0)); log((1, 1)); log(2)",
    ),
}
UNITS = {
    "async-with-taken-away": (
        "async def main():\n async with cm('a'):\n  log(await tick(1))\n  bad(1)\n log('end')\n", "async def main():\n log(await tick(1))\n bad(1)\n log('end')\n",
        "def main():\n with cm('a'): log(1)\n log('end')\n",
    ),
    "generator-with-taken-away": (
        "def main():\n with cm('a'):\n  yield 1\n  bad(1)\n  yield 2\n", "def main():\n yield 1\n bad(1)\n yield 2\n", "def main():\n with cm('a'): yield 1\n yield 2\n",
    ),
    "async-loop-in-try": (
        "async def gen():\n for i in range(3): yield i\nasync def main():\n async for i in gen():\n  log(i)\n  bad1(i)\n",
        "async def gen():\n for i in range(3): yield i\nasync def main():\n try:\n  async for i in gen():\n   log(i)\n   bad1(i)\n finally: log('f')\n",
        "def main():\n for i in range(3): log(i)\n log('f')\n",
    ),
}
# fmt: on


def expect_operated_once(old, new, like):
    """`expect_operated` without further crashes: one in an ``__exit__`` that a surgery calls goes out natively."""
    example, module = Patient(like, faults=0, vaccinated=False), Patient(old)
    expected = run_module(example, Answers())
    manager = Answers(Surgery(new))
    assert run_module(module, manager) == expected
    assert (module.lines, manager.refusals) == (example.lines, [])


@pytest.mark.parametrize(("old", "new", "like"), AROUND.values(), ids=AROUND)
def test_what_is_around_the_crash(request, old, new, like):
    leaves = any(name in request.node.name for name in ("with-taken", "withs-taken", "with-to"))
    (expect_operated_once if leaves else expect_operated)(unit(old), unit(new), unit(like))


@pytest.mark.parametrize(("old", "new", "like"), UNITS.values(), ids=UNITS)
def test_units(request, old, new, like):
    (expect_operated_once if "with-taken" in request.node.name else expect_operated)(old, new, like)


BODIES = programs.LARGER | programs.JUMPS | programs.SMALL


@pytest.mark.parametrize(
    "name", [name for name in BODIES if name.startswith(("for", "while", "with", "try", "match", "if"))]
)
def test_edits_by_chance(name):
    for edit, place, crash, seed in edited.sample(BODIES[name], zlib.crc32(name.encode()), 1):
        edited.expect_edited(BODIES[name], edit, place, crash, seed)

"""Skip, Continue, Break and Return from every place: as if the text of the crashed statement had been another."""

from __future__ import annotations

import pytest

from daifu_ipy import Abort, Break, Continue, Pass, Repair, Return, Skip
from daifu_ipy.testing import expect_recovers
from tests.engine.replaced import expect_refused, expect_replaced

ENDINGS = {"S": Skip(), "C": Continue(), "B": Break(), "R": Return("(x, 7)")}
"""By the letters of the tables: Skip, Continue, Break, Return. Every program binds x before its mark."""

# fmt: off

IN_LOOPS = {
    "for": "for x in it([1, 2, 3]):\n log(x)\n bad()\n log('end')\nlog('after')",
    "for-else": "for x in it([1, 2]):\n log(x)\n bad()\nelse:\n log('else')\nlog('after')",
    "for-once": "for x in it([1, 2, 3]):\n if x == 2:\n  bad()\n log('end')\nelse:\n log('else')",
    "for-first-statement": "for x in it([1, 2]):\n bad()\n log('end')",
    "for-only-statement": "for x in it([1, 2]):\n bad()\nlog(x)",
    "for-one-line": "for x in it([1, 2]): bad(); log('end')",
    "for-unpack": "for x, y in it([(1, 2), (3, 4)]):\n bad()\n log(y)\nelse:\n log('else')",
    "for-nested": "for x in it([1, 2], 'a'):\n for y in it([3, 4], 'b'):\n  log((x, y))\n  bad()\n  log('end')\n else:\n  log('inner else')\n log(x)\nelse:\n log('else')",
    "for-nested-outer": "for x in it([1, 2], 'a'):\n for y in it([3, 4], 'b'):\n  log((x, y))\n bad()\n log(x)\nelse:\n log('else')",
    "for-in-else": "for x in it([1, 2], 'a'):\n for y in it([3], 'b'):\n  log(y)\n else:\n  bad()\n  log('no')\n log(x)\nelse:\n log('else')",
    "for-three": "for x in it([1, 2], 'a'):\n for y in it([3, 4], 'b'):\n  for z in it([5, 6], 'c'):\n   if y == 3: bad()\n   log((x, y, z))\n  else:\n   log('c else')\n else:\n  log('b else')",
    "while": "x = 3\nwhile t(x):\n x -= 1\n bad()\n log(x)\nlog('after')",
    "while-else": "x = 2\nwhile x:\n x -= 1\n bad()\n log(x)\nelse:\n log('else')",
    "while-true": "x = 3\nwhile True:\n x -= 1\n if not x: break\n bad()\n log(x)\nelse:\n log('no')",
    "while-in-for": "for x in it([1, 2]):\n n = x\n while n:\n  n -= 1\n  bad()\n  log(n)\n else:\n  log('else')\n log(x)",
    "if": "for x in it([1, 2]):\n if t(x):\n  bad()\n  log(1)\n else:\n  log(2)\n log(3)",
    "else": "for x in it([1, 2]):\n if t(0):\n  log(1)\n elif t(0):\n  log(2)\n else:\n  bad()\n  log(3)\n log(4)",
    "match": "for x in it([1, 2]):\n match t(x):\n  case 1: log(1)\n  case y if t(y):\n   bad()\n   log(y)\n log(3)",
    # with
    "with": "for x in it([1, 2]):\n with cm(x):\n  log(x)\n  bad()\n  log('end')\n log('left')\nelse:\n log('else')",
    "with-only": "for x in it([1, 2]):\n with cm(x): bad()\nelse:\n log('else')",
    "with-as": "for x in it([1, 2]):\n with cm(x, gives=5) as y:\n  bad()\n log(y)",
    "with-two": "for x in it([1, 2]):\n with cm('a') as a, cm('b') as b:\n  bad()\n  log(x)\n log('left')",
    "with-jumps": "for x in it([1, 2]):\n with cm(x):\n  bad()\n  if x == 1: continue\n  log('end')\n log('left')",
    "with-outside": "x = 0\nwith cm('a'):\n for x in it([1, 2]):\n  bad()\n  log(x)\n log('end')\nlog('after')",
    "with-in-with": "for x in it([1, 2]):\n with cm('a'):\n  with cm('b'):\n   bad()\n   log(x)\n  log('b left')\n log('a left')",
    # try
    "try-body": "for x in it([1, 2]):\n try:\n  bad()\n  log(x)\n except ValueError:\n  log('no')\n log('after')",
    "try-only": "for x in it([1, 2]):\n try: bad()\n except ValueError: log('no')\n log('after')",
    "try-else": "for x in it([1, 2]):\n try:\n  log(x)\n except ValueError:\n  log('no')\n else:\n  bad()\n  log('else')\n log('after')",
    "try-body-with-else": "for x in it([1, 2]):\n try:\n  bad()\n except ValueError:\n  log('no')\n else:\n  log('else')\n log('after')",
    "handler": "for x in it([1, 2]):\n try:\n  boom(ValueError(x))\n except ValueError:\n  log('handler')\n  bad()\n  log('end')\n log('after')",
    "handler-as": "for x in it([1, 2]):\n try:\n  boom(ValueError(x))\n except ValueError as e:\n  log(e.args)\n  bad()\n  log(e)\n log('after')",
    "handler-reraises": "try:\n for x in it([1, 2]):\n  try:\n   boom(ValueError(x))\n  except ValueError:\n   bad()\n   raise\n  log('after')\nexcept ValueError as e:\n log(e)",
    "handler-in-handler": "for x in it([1, 2]):\n try:\n  boom(ValueError(x))\n except ValueError as e:\n  try:\n   boom(KeyError(x))\n  except KeyError as f:\n   bad()\n   log(f)\n  log(e)\n log('after')",
    "finally-f1": "for x in it([1, 2]):\n try:\n  bad()\n  log(x)\n finally:\n  log('finally')\n log('after')",
    "finally-jumps": "for x in it([1, 2]):\n try:\n  bad()\n  if x == 1: continue\n  log(x)\n finally:\n  log('finally')\n log('after')",
    "finally-returns": "for x in it([1, 2]):\n try:\n  bad()\n  if x == 2: return log('value')\n finally:\n  log('finally')\n log('after')",
    "finally-only": "for x in it([1, 2]):\n try: bad()\n finally: log('finally')\n log('after')",
    "finally-two": "for x in it([1, 2]):\n try:\n  try:\n   bad()\n   log(x)\n  finally:\n   log('inner')\n finally:\n  log('outer')\n log('after')",
    "finally-around-loop": "try:\n for x in it([1, 2]):\n  bad()\n  log(x)\nfinally:\n log('finally')\nlog('after')",
    "finally-with": "for x in it([1, 2]):\n try:\n  with cm(x):\n   bad()\n   log(x)\n finally:\n  log('finally')\n log('after')",
    "with-finally": "for x in it([1, 2]):\n with cm(x):\n  try:\n   bad()\n   log(x)\n  finally:\n   log('finally')\n log('after')",
    "finally-with-except": "for x in it([1, 2]):\n try:\n  boom(ValueError(x))\n except ValueError:\n  bad()\n  log('handler')\n finally:\n  log('finally')\n log('after')",
    "finally-with-else": "for x in it([1, 2]):\n try:\n  log(x)\n except ValueError:\n  log('no')\n else:\n  bad()\n  log('else')\n finally:\n  log('finally')\n log('after')",
    # in a finally body, by what is pending
    "in-finally": "for x in it([1, 2]):\n try:\n  log(x)\n finally:\n  log('finally')\n  bad()\n  log('end')\n log('after')",
    "in-finally-exception": "try:\n for x in it([1, 2]):\n  try:\n   boom(ValueError(x))\n  finally:\n   log('finally')\n   bad()\n   log('end')\n  log('after')\nexcept ValueError as e:\n log(e)",
    "in-finally-return": "for x in it([1, 2]):\n try:\n  return log('value')\n finally:\n  bad()\n  log('end')",
    "in-finally-return-constant": "for x in it([1, 2]):\n try:\n  return 5\n finally:\n  bad()\n  log('end')",
    "in-finally-break": "for x in it([1, 2]):\n try:\n  break\n finally:\n  bad()\n  log('end')\nelse:\n log('else')\nlog('after')",
    "in-finally-continue": "for x in it([1, 2]):\n try:\n  continue\n finally:\n  bad()\n  log('end')\nelse:\n log('else')\nlog('after')",
    "in-finally-of-finally": "for x in it([1, 2]):\n try:\n  try:\n   log(x)\n  finally:\n   bad()\n   log('inner')\n finally:\n  log('outer')\n log('after')",
    "in-finally-in-finally": "for x in it([1, 2]):\n try:\n  return log('value')\n finally:\n  try:\n   log('inner')\n  finally:\n   bad()\n   log('end')\n  log('outer')",
    "in-finally-loop": "x = 0\ntry:\n log('body')\nfinally:\n for x in it([1, 2]):\n  bad()\n  log(x)\n log('finally')\nlog('after')",
    "in-finally-loop-return": "x = 0\ntry:\n return log('value')\nfinally:\n for x in it([1, 2]):\n  bad()\n  log(x)\n log('finally')",
    "in-finally-loop-exception": "x = 0\ntry:\n try:\n  boom(ValueError(1))\n finally:\n  for x in it([1, 2]):\n   bad()\n   log(x)\n  log('finally')\nexcept ValueError as e:\n log(e)",
    "in-finally-inner-finally": "for x in it([1, 2]):\n try:\n  return log('value')\n finally:\n  try:\n   bad()\n  finally:\n   log('inner')\n  log('outer')\n log('after')",
    "in-finally-inner-finally-exception": "try:\n for x in it([1, 2]):\n  try:\n   boom(ValueError(x))\n  finally:\n   try:\n    bad()\n   finally:\n    log('inner')\n   log('outer')\nexcept ValueError as e:\n log(e)",
    "in-finally-with-exception": "try:\n for x in it([1, 2]):\n  try:\n   boom(ValueError(x))\n  finally:\n   with cm('a'):\n    bad()\n   log('outer')\nexcept ValueError as e:\n log(e)",
    "in-finally-handler": "for x in it([1, 2]):\n try:\n  return log('value')\n finally:\n  try:\n   boom(ValueError(x))\n  except ValueError:\n   bad()\n   log('handler')\n  log('outer')",
    "in-handler-with": "for x in it([1, 2]):\n try:\n  boom(ValueError(x))\n except ValueError:\n  with cm('a'):\n   bad()\n   log('in')\n  log('handler')\n log('after')",
    "in-handler-finally": "for x in it([1, 2]):\n try:\n  boom(ValueError(x))\n except ValueError as e:\n  try:\n   bad()\n   log('in')\n  finally:\n   log('finally')\n  log(e)\n log('after')",
    "in-handler-loop": "x = 0\ntry:\n boom(ValueError(x))\nexcept ValueError as e:\n for x in it([1, 2]):\n  with cm(x):\n   bad()\n   log('in')\n log(e)",
    "in-finally-with": "for x in it([1, 2]):\n try:\n  return log('value')\n finally:\n  with cm('a'):\n   bad()\n   log('in')\n  log('end')",
    "finally-before-with": "for x in it([1, 2]):\n with cm('a'):\n  try:\n   return log('value')\n  finally:\n   bad()\n   log('end')\n log('left')",
}
"""Bodies of a function with a loop around the mark."""

ANYWHERE = {
    "last": "x = 1\nlog(x)\nbad()",
    "first": "x = 1\nbad()\nlog(x)",
    "only": "x = 1\nif x:\n bad()",
    "if": "x = 1\nif t(x):\n bad()\n log(1)\nelse:\n log(2)\nlog(3)",
    "for-else": "x = 0\nfor x in it([1]):\n log(x)\nelse:\n bad()\n log('else')\nlog('after')",
    "while-else": "x = 1\nwhile x:\n x -= 1\nelse:\n bad()\n log('else')\nlog('after')",
    "with": "x = 1\nwith cm('a'):\n bad()\n log(x)\nlog('after')",
    "with-return": "x = 1\nwith cm('a'):\n bad()\n return log(x)",
    "finally-f1": "x = 1\ntry:\n bad()\n log(x)\nfinally:\n log('finally')\nlog('after')",
    "finally-return": "x = 1\ntry:\n bad()\n return log(x)\nfinally:\n log('finally')",
    "in-finally-return": "x = 1\ntry:\n return log('value')\nfinally:\n bad()\n log('finally')",
    "handler-finally": "x = 1\ntry:\n boom(ValueError(x))\nexcept ValueError:\n bad()\n log('handler')\nfinally:\n log('finally')\nlog('after')",
    "match": "x = 1\nmatch t(x):\n case 1 if t(x):\n  bad()\n  log(x)\n case _: log('no')\nlog('after')",
    "match-no-guard": "x = 1\nmatch t(x):\n case 1:\n  bad()\n  log(x)\nlog('after')",
    "captured": "x = 1\ny = lambda: x\nbad()\nlog(y())",
    "captured-in-with": "x = 1\ny = lambda: x\nwith cm(y()):\n bad()\n log(y())\nx = 2\nlog(y())",
    "nested-function": "x = 1\ndef g():\n bad()\n log(x)\n return 8\ny = g()\nlog(y)",
    "objects": "x = 1\ny = obj('y')\nwith cm(1):\n z = obj('z')\n bad()\n del z\nlog('after')",
    "objects-in-loop": "x = 1\nfor y in it([1, 2]):\n z = obj(f'z{y}')\n if y == 2: bad()\nlog('after')",
}
"""Bodies of a function that need no loop: Skip and Return."""

ALL = {
    "with-swallower": "for x in it([1, 2]):\n with cm(x, swallow=KeyError):\n  bad()\n  boom(KeyError(x))\n log('left')",
    "finally-that-returns": "x = 1\ntry:\n bad()\n log(x)\nfinally:\n return log('finally')",
    "in-finally-that-returns": "x = 1\ntry:\n log(x)\nfinally:\n bad()\n return log('finally')",
}
"""The same where the program would handle the crash, or nobody can know: everything is intercepted."""

STATEMENTS = {
    "assign": ("y = bad()\nlog('after')", "pass\nlog('after')"),
    "assign-keeps-older": ("y = 1\ny = bad()\nlog(y)", "y = 1\npass\nlog(y)"),
    "assign-unpack": ("a, b = bad()\nlog('after')", "pass\nlog('after')"),
    "augmented": ("y = 1\ny += bad()\nlog(y)", "y = 1\npass\nlog(y)"),
    "annotated": ("y: int = bad()\nlog('after')", "pass\nlog('after')"),
    "attribute": ("b = box('b')\nb.x = bad()\nlog('after')", "b = box('b')\npass\nlog('after')"),
    "del": ("b = {}\ndel b[bad()]\nlog(b)", "b = {}\npass\nlog(b)"),
    "assert": ("assert bad()\nlog('after')", "pass\nlog('after')"),
    "raise": ("raise bad()\nlog('after')", "pass\nlog('after')"),
    "return": ("log(1)\nreturn bad()", "log(1)\npass"),
    "return-in-loop": ("for i in it([1, 2]):\n log(i)\n return bad()\nlog('after')", "for i in it([1, 2]):\n log(i)\n pass\nlog('after')"),
    "return-in-with": ("with cm('a'):\n return bad()\nlog('after')", "with cm('a'):\n pass\nlog('after')"),
    "return-in-finally": ("try:\n return bad()\nfinally:\n log('finally')\nlog('after')", "try:\n pass\nfinally:\n log('finally')\nlog('after')"),
    "import": ("from os import path, sep\nlog(bad())\nlog('after')", "from os import path, sep\npass\nlog('after')"),
    "def-default": ("def g(a=bad()): pass\nlog('after')", "pass\nlog('after')"),
    "decorator": ("@bad\ndef g(a): pass\nlog('after')", "pass\n\nlog('after')"),
    "decorator-call": ("@log\n@bad()\ndef g(a): pass\nlog('after')", "pass\n\n\nlog('after')"),
    "class": ("class C:\n a = log(1)\n b = bad()\nlog('after')", "log(1)\n\n\nlog('after')"),
    "class-bases": ("class C(bad()): pass\nlog('after')", "pass\nlog('after')"),
    "if-body": ("if t(1): bad()\nlog('after')", "if t(1): pass\nlog('after')"),
    "comprehension": ("y = [bad() for i in range(2)]\nlog('after')", "pass\nlog('after')"),
    "lambda": ("y = lambda: bad()\nlog(0) or y()\nlog('after')", "y = lambda: bad()\nlog(0)\nlog('after')"),
    "walrus-stays": ("y = 1\nlog(y := 2) and bad()\nlog(y)", "y = 1\nlog(y := 2)\nlog(y)"),
    "nested-call-is-one-statement": ("log(1); log(bad(2)); log(3)", "log(1); pass; log(3)"),
}
"""Skip of each kind of statement, and the program without it."""

PARTS = {
    # for
    "iter": ("for i in it([1, 2]) if 0 else bad():\n log(i)\nlog('after')", "pass\n\nlog('after')"),
    "iter-call": ("for i in bad() or []:\n log(i)\nelse:\n log('no')\nlog('after')", "pass\n\n\n\nlog('after')"),
    "iter-not-iterable": ("for i in Iters():\n log(i)\nelse:\n log('no')\nlog('after')", "pass\n\n\n\nlog('after')"),
    "iter-in-loop": ("for j in it([1, 2]):\n for i in Iters():\n  log(i)\n log(j)", "for j in it([1, 2]):\n pass\n\n log(j)"),
    "iter-in-finally": ("try:\n return log('value')\nfinally:\n for i in Iters():\n  log(i)\n log('finally')", "try:\n return log('value')\nfinally:\n pass\n\n log('finally')"),
    "next": ("for i in Nexts([1, None, 3]):\n log(i)\nelse:\n log('else')\nlog('after')", "for i in Nexts([1, 3]):\n log(i)\nelse:\n log('else')\nlog('after')"),
    "next-first": ("for i in Nexts([None, 2]):\n log(i)\nelse:\n log('else')", "for i in Nexts([2]):\n log(i)\nelse:\n log('else')"),
    "next-last": ("for i in Nexts([1, None]):\n log(i)\nelse:\n log('else')", "for i in Nexts([1]):\n log(i)\nelse:\n log('else')"),
    "next-all": ("for i in Nexts([None, None]):\n log(i)\nelse:\n log('else')", "for i in Nexts([]):\n log(i)\nelse:\n log('else')"),
    "next-inner": ("for j in it([1, 2]):\n for i in Nexts([1, None, 3]):\n  log((i, j))\n log(j)", "for j in it([1, 2]):\n for i in Nexts([1, 3]):\n  log((i, j))\n log(j)"),
    "next-unpacking": ("for i, j in Nexts([(1, 2), None, (3, 4)]):\n log((i, j))", "for i, j in Nexts([(1, 2), (3, 4)]):\n log((i, j))"),
    "unpack": ("for a, b in [(1, 2), Iters(), (3, 4)]:\n log((a, b))\nelse:\n log('else')\nlog('after')", "for a, b in [(1, 2), (3, 4)]:\n log((a, b))\nelse:\n log('else')\nlog('after')"),
    "unpack-last": ("for a, b in [(1, 2), Iters()]:\n log((a, b))\nelse:\n log('else')", "for a, b in [(1, 2)]:\n log((a, b))\nelse:\n log('else')"),
    "unpack-nested": ("for a, (b, c) in [(1, (2, 3)), (4, Iters())]:\n log((a, b))\nlog('after')", "for a, (b, c) in [(1, (2, 3))]:\n log((a, b))\na = 4; log('after')"),
    "unpack-attribute": ("b = Target()\nfor b.x in [1, 2]:\n log(b)\nlog('after')", "b = Target()\nfor _ in []:\n log(b)\nlog('after')"),
    # with
    "with-expression": ("with bad():\n log('no')\nlog('after')", "pass\n\nlog('after')"),
    "with-expression-second": ("with cm('a'), bad():\n log('no')\nlog('after')", "with cm('a'):\n pass\nlog('after')"),
    "enter": ("with Enters():\n log('no')\nlog('after')", "pass\n\nlog('after')"),
    "enter-second": ("with cm('a'), Enters():\n log('no')\nlog('after')", "with cm('a'):\n pass\nlog('after')"),
    "enter-in-loop": ("for i in it([1, 2]):\n with Enters():\n  continue\n log(i)", "for i in it([1, 2]):\n pass\n\n log(i)"),
    "target-unpack": ("with cm('a', gives=Iters()) as (a, b):\n log('no')\nlog('after')", "with cm('a', gives=1):\n pass\nlog('after')"),
    "target-attribute": ("b = Target()\nwith cm('a', gives=1) as b.x:\n log('no')\nlog('after')", "b = Target()\nwith cm('a', gives=1):\n pass\nlog('after')"),
    "exit": ("with Exits():\n log(1)\nlog('after')", "if 1:\n log(1)\nlog('after')"),
    "exit-second": ("with cm('a'), Exits():\n log(1)\nlog('after')", "with cm('a'):\n log(1)\nlog('after')"),
    "exit-last": ("with Exits():\n log(1)", "if 1:\n log(1)"),
    "exit-return": ("with Exits():\n return log(1)\nlog('no')", "if 1:\n return log(1)\nlog('no')"),
    "exit-return-constant": ("with Exits():\n return 5\nlog('no')", "if 1:\n return 5\nlog('no')"),
    "exit-return-through-finally": ("try:\n with Exits():\n  return log(1)\nfinally:\n log('finally')", "try:\n if 1:\n  return log(1)\nfinally:\n log('finally')"),
    "exit-return-through-with": ("with cm('a'):\n with Exits():\n  return log(1)", "with cm('a'):\n if 1:\n  return log(1)"),
    "exit-break": ("for i in it([1, 2]):\n with Exits():\n  break\nelse:\n log('no')\nlog('after')", "for i in it([1, 2]):\n if 1:\n  break\nelse:\n log('no')\nlog('after')"),
    "exit-continue": ("for i in it([1, 2]):\n with Exits():\n  if i == 1: continue\n  log(i)\n log('left')\nelse:\n log('else')", "for i in it([1, 2]):\n if 1:\n  if i == 1: continue\n  log(i)\n log('left')\nelse:\n log('else')"),
    "exit-in-finally-return": ("try:\n return log(1)\nfinally:\n with Exits():\n  log(2)\n log(3)", "try:\n return log(1)\nfinally:\n if 1:\n  log(2)\n log(3)"),
    "exit-exception": ("try:\n with Exits():\n  boom(ValueError(1))\n log('no')\nexcept ValueError as e:\n log(e)\nlog('after')", "try:\n if 1:\n  boom(ValueError(1))\n log('no')\nexcept ValueError as e:\n log(e)\nlog('after')"),
    "exit-exception-second": ("try:\n with cm('a'), Exits():\n  boom(ValueError(1))\nexcept ValueError as e:\n log(e)", "try:\n with cm('a'):\n  boom(ValueError(1))\nexcept ValueError as e:\n log(e)"),
    "exit-exception-finally": ("try:\n try:\n  with Exits():\n   boom(ValueError(1))\n finally:\n  log('finally')\nexcept ValueError as e:\n log(e)", "try:\n try:\n  if 1:\n   boom(ValueError(1))\n finally:\n  log('finally')\nexcept ValueError as e:\n log(e)"),
}
"""Skip of a part of a compound statement."""

UNDECIDED = {
    "return-pending": ("try:\n return log(1)\nfinally:\n try:\n  return bad()\n finally:\n  log('inner')", "try:\n return log(1)\nfinally:\n try:\n  pass\n finally:\n  log('inner')"),
    "exit-exception-swallowed-outside": ("with cm('a', swallow=ValueError):\n with Exits():\n  boom(ValueError(1))\n log('no')\nlog('after')", "with cm('a', swallow=ValueError):\n if 1:\n  boom(ValueError(1))\n log('no')\nlog('after')"),
}
"""Skip where nobody can know beforehand whether the program handles the crash."""

JUMPED = {
    "next-C": (Continue(), "for i in Nexts([1, None, 3]):\n log(i)\nelse:\n log('else')", "for i in Nexts([1, 3]):\n log(i)\nelse:\n log('else')"),
    "next-B": (Break(), "for i in Nexts([1, None, 3]):\n log(i)\nelse:\n log('no')\nlog('after')", "for i in Nexts([1]):\n log(i)\nlog('after')"),
    "next-R": (Return("i"), "for i in Nexts([1, None, 3]):\n log(i)\nelse:\n log('no')", "for i in Nexts([1]):\n log(i)\nreturn i"),
    "next-inner-B": (Break(), "for j in it([1, 2]):\n for i in Nexts([1, None, 3]):\n  log(i)\n else:\n  log('no')\n log(j)", "for j in it([1, 2]):\n for i in Nexts([1]):\n  log(i)\n log(j)"),
    "iter-inner-C": (Continue(), "for j in it([1, 2]):\n for i in Iters():\n  log(i)\n log(j)", "for j in it([1, 2]):\n continue\n\n log(j)"),
    "iter-inner-B": (Break(), "for j in it([1, 2]):\n for i in Iters():\n  log(i)\n log(j)", "for j in it([1, 2]):\n break\n\n log(j)"),
    "iter-R": (Return("5"), "for i in Iters():\n log(i)", "return 5"),
    "unpack-C": (Continue(), "for a, b in [(1, 2), Iters(), (3, 4)]:\n log(a)", "for a, b in [(1, 2), (3, 4)]:\n log(a)"),
    "unpack-B": (Break(), "for a, b in [(1, 2), Iters(), (3, 4)]:\n log(a)\nelse:\n log('no')", "for a, b in [(1, 2)]:\n log(a)"),
    "unpack-R": (Return("a"), "for a, b in [(1, 2), Iters(), (3, 4)]:\n log(a)\nelse:\n log('no')", "for a, b in [(1, 2)]:\n log(a)\nreturn a"),
    "while-test-B": (Break(), "while bad():\n log('no')\nelse:\n log('no')\nlog('after')", "pass\n\n\n\nlog('after')"),
    "while-test-R": (Return("3"), "while bad():\n log('no')", "return 3"),
    "while-test-inner-B": (Break(), "for j in it([1, 2]):\n while bad():\n  log('no')\n else:\n  log('no')\n log(j)", "for j in it([1, 2]):\n pass\n\n\n\n log(j)"),
    "if-test-C": (Continue(), "for i in it([1, 2]):\n if bad():\n  log('no')\n log(i)", "for i in it([1, 2]):\n continue\n\n log(i)"),
    "if-test-B": (Break(), "for i in it([1, 2]):\n if bad():\n  log('no')\n log(i)", "for i in it([1, 2]):\n break\n\n log(i)"),
    "elif-test-R": (Return("i"), "for i in it([1, 2]):\n if t(0):\n  log('no')\n elif bad():\n  log('no')\n log(i)", "for i in it([1, 2]):\n if t(0):\n  log('no')\n else: return i\n"),
    "guard-C": (Continue(), "for i in it([1, 2]):\n match i:\n  case 1: log(1)\n  case 2 if bad(): log('no')\n log(i)", "for i in it([1, 2]):\n match i:\n  case 1: log(1)\n  case 2: continue\n log(i)"),
    "guard-R": (Return("5"), "match t(1):\n case 1 if bad(): log('no')\nlog('no')", "match t(1):\n case 1: return 5\nlog('no')"),
    "subject-R": (Return("5"), "match bad():\n case 1: log('no')\nlog('no')", "return 5"),
    "with-expression-C": (Continue(), "for i in it([1, 2]):\n with bad():\n  log('no')\n log(i)", "for i in it([1, 2]):\n continue\n\n log(i)"),
    "with-second-expression-B": (Break(), "for i in it([1, 2]):\n with cm('a'), bad():\n  log('no')\n log(i)", "for i in it([1, 2]):\n with cm('a'):\n  break\n log(i)"),
    "with-second-expression-R": (Return("i"), "for i in it([1, 2]):\n with cm('a'), bad():\n  log('no')\n log(i)", "for i in it([1, 2]):\n with cm('a'):\n  return i\n log(i)"),
    "target-R": (Return("5"), "with cm('a', gives=Iters()) as (a, b):\n log('no')\nlog('after')", "with cm('a', gives=1):\n return 5\nlog('after')"),
    "target-C": (Continue(), "for i in it([1, 2]):\n with cm('a', gives=Iters()) as (a, b):\n  log('no')\n log('after')", "for i in it([1, 2]):\n with cm('a', gives=1):\n  continue\n log('after')"),
    "exit-R": (Return("5"), "with Exits():\n log(1)\nlog('no')", "if 1:\n log(1)\nreturn 5"),
    "exit-C": (Continue(), "for i in it([1, 2]):\n with Exits():\n  log(1)\n log('no')\nelse:\n log('else')", "for i in it([1, 2]):\n if 1:\n  log(1)\n continue\nelse:\n log('else')"),
    "exit-B": (Break(), "for i in it([1, 2]):\n with Exits():\n  log(1)\n log('no')\nelse:\n log('no')", "for i in it([1, 2]):\n if 1:\n  log(1)\n break\nelse:\n log('no')"),
    "exit-pending-return-R": (Return("6"), "with Exits():\n return log(5)\nlog('no')", "if 1:\n log(5)\n return 6"),
    "exit-pending-return-C": (Continue(), "for i in it([1, 2]):\n with Exits():\n  return log(5)\n log('no')\nlog('after')", "for i in it([1, 2]):\n if 1:\n  log(5)\n continue\nlog('after')"),
    "exit-exception-R": (Return("6"), "try:\n with Exits():\n  boom(ValueError(1))\n log('no')\nexcept ValueError: log('no')", "try:\n boom(ValueError(1))\nexcept ValueError: return 6"),
    "exit-exception-outer-with-R": (Return("6"), "try:\n with cm('a'):\n  with Exits():\n   boom(ValueError(1))\n log('no')\nexcept ValueError: log('no')", "with cm('a'):\n try:\n\n   boom(ValueError(1))\n except ValueError: return 6"),
    "exit-exception-C": (Continue(), "for i in it([1, 2]):\n try:\n  with Exits():\n   boom(ValueError(1))\n  log('no')\n except ValueError: log('no')\nlog('after')", "for i in it([1, 2]):\n try:\n\n   boom(ValueError(1))\n except ValueError: continue\nlog('after')"),
    "return-C": (Continue(), "for i in it([1, 2]):\n with cm(i):\n  return bad()\nelse:\n log('else')", "for i in it([1, 2]):\n with cm(i):\n  continue\nelse:\n log('else')"),
    "raise-B": (Break(), "for i in it([1, 2]):\n try:\n  raise bad()\n finally:\n  log(i)\nelse:\n log('no')", "for i in it([1, 2]):\n try:\n  break\n finally:\n  log(i)\nelse:\n log('no')"),
    "in-group-R": (Return("5"), "try:\n bad()\nexcept* ValueError:\n log('no')\nlog('no')", "try:\n return 5\nexcept* ValueError:\n log('no')\nlog('no')"),
    "in-group-loop-C": (Continue(), "for i in it([1, 2]):\n try:\n  bad()\n except* ValueError:\n  log('no')\n log('no')", "for i in it([1, 2]):\n try:\n  continue\n except* ValueError:\n  log('no')\n log('no')"),
    "group-handler-S": (Skip(), "try:\n boom(ExceptionGroup('g', [ValueError(1), KeyError(2)]))\nexcept* ValueError as g:\n bad()\n log(g)\nexcept* KeyError:\n log('key')\nlog('after')", None),
    "return-expression-scope": (Return("[x + y for x in (1, 2)]"), "y = 10\nbad()", None),
    "return-lambda": (Return("(lambda: y + 1)()"), "y = 10\nbad()", None),
    "return-none": (Return(), "y = 10\nbad()", None),
    "return-lines": (Return("(y +\n 1)"), "y = 10\nbad()", "y = 10\nreturn y + 1"),
    "return-spaces": (Return("  y "), "y = 10\nbad()", "y = 10\nreturn y"),
    "return-walrus": (Return("(y := 3)"), "y = 10\ntry: bad()\nfinally: log(y)", "y = 10\ntry: return (y := 3)\nfinally: log(y)"),
    "actions-first": (Repair(("y = 3",), Return("y")), "y = 10\ntry: bad()\nfinally: log(y)", "y = 10\ntry: y = 3; return y\nfinally: log(y)"),
    "actions-then-skip": (Repair(("y = 3", "y += 1"), Skip()), "y = 10\nbad()\nlog(y)", "y = 10\ny = 4\nlog(y)"),
    "actions-then-break": (Repair(("i = 8",), Break()), "for i in it([1, 2]):\n bad()\nelse:\n log('no')\nlog(i)", "for i in it([1, 2]):\n i = 8; break\nelse:\n log('no')\nlog(i)"),
    "action-unbinds": (Repair(("del y",), Skip()), "y = 10\nbad()\ntry: y\nexcept UnboundLocalError: log('unbound')", "y = 10\ndel y\ntry: y\nexcept UnboundLocalError: log('unbound')"),
    "handler-type-R": (Return("6"), "try:\n boom(ValueError(1))\nexcept bad():\n log('no')\nlog('no')", "try:\n boom(ValueError(1))\nexcept ValueError:\n return 6\nlog('no')"),
    "handler-type-C": (Continue(), "for i in it([1, 2]):\n try:\n  boom(ValueError(1))\n except bad():\n  log('no')\n log('no')\nlog('after')", "for i in it([1, 2]):\n try:\n  boom(ValueError(1))\n except ValueError:\n  continue\n log('no')\nlog('after')"),
    "handler-type-finally-R": (Return("6"), "try:\n boom(ValueError(1))\nexcept bad():\n log('no')\nfinally:\n log('finally')\nlog('no')", "try:\n boom(ValueError(1))\nexcept ValueError:\n return 6\nfinally:\n log('finally')\nlog('no')"),
}
"""Jumps from a part of a compound statement, and what needs a text of its own."""

LONE = {
    "C-none": (Continue(), "bad()", "no loop"),
    "B-none": (Break(), "log(1)\nbad()", "no loop"),
    "B-else": (Break(), "for i in it([1]):\n pass\nelse:\n bad()", "no loop"),
    "C-while-else": (Continue(), "while t(0):\n pass\nelse:\n bad()", "no loop"),
    "B-nested-function": (Break(), "for i in it([1]):\n def g():\n  bad()\n g()", "no loop"),
    "B-in-with": (Break(), "with cm('a'):\n bad()", "no loop"),
    "B-iter": (Break(), "for i in bad([1, 2]):\n log(i)", "no loop"),
    "C-iter": (Continue(), "for i in bad([1, 2]):\n log(i)", "no loop"),
    "S-while": (Skip(), "n = 1\nwhile bad(n):\n n -= 1", "test can't be skipped"),
    "S-if": (Skip(), "if bad(1):\n log(1)", "test can't be skipped"),
    "S-elif": (Skip(), "if t(0):\n log(1)\nelif bad(1):\n log(2)", "test can't be skipped"),
    "S-if-in-loop": (Skip(), "for i in it([1]):\n if bad(1):\n  log(1)", "test can't be skipped"),
    "S-guard": (Skip(), "match t(1):\n case 1 if bad(1):\n  log(1)", "guard can't be skipped"),
    "S-subject": (Skip(), "match bad(1):\n case 1:\n  log(1)", "subject of a match can't be skipped"),
    "S-subject-guards": (Skip(), "match bad(1):\n case 1 if t(1):\n  log(1)", "subject of a match can't be skipped"),
    "S-handler-type": (Skip(), "try:\n boom(ValueError(1))\nexcept bad(ValueError):\n log(1)", "handler's type can't be skipped"),
    "R-syntax": (Return("1 +"), "bad()", "no expression"),
    "R-statement": (Return("x = 1"), "bad()", "no expression"),
    "R-return": (Return("return 1"), "bad()", "no expression"),
    "R-empty": (Return(""), "bad()", "no expression"),
    "R-two": (Return("1; 2"), "bad()", "no expression"),
    "R-name": (Return("no_such_name"), "bad()", "NameError"),
    "R-raises": (Return("1 / 0"), "bad()", "ZeroDivisionError"),
    "R-unbound": (Return("x"), "bad()\nx = 1", "x"),
    "R-await": (Return("await t(1)"), "bad()", "await"),
    "R-yield": (Return("(yield 1)"), "bad()", "yield"),
    "R-group-handler": (Return("1"), "try:\n boom(ExceptionGroup('g', [ValueError(1)]))\nexcept* ValueError:\n bad()", r"except\*"),
    "B-group-handler": (Break(), "for i in it([1]):\n try:\n  boom(ExceptionGroup('g', [ValueError(1)]))\n except* ValueError:\n  bad()", r"except\*"),
    "C-group-handler": (Continue(), "for i in it([1]):\n try:\n  boom(ExceptionGroup('g', [ValueError(1)]))\n except* ValueError:\n  bad()", r"except\*"),
    "action-fails": (Repair(("1 / 0",), Skip()), "bad()", "action 1 failed: ZeroDivisionError"),
    "action-second-fails": (Repair(("1", "no_such"), Skip()), "bad()", "action 2 failed: NameError"),
    "action-does-not-parse": (Repair(("x = ",), Skip()), "bad()", "action 1 failed: SyntaxError"),
    "action-exits": (Repair(("raise SystemExit",), Skip()), "bad()", "action 1 failed: SystemExit"),
    "action-then-abort": (Repair(("1 / 0",), Abort()), "bad()", "action 1 failed"),
    "frame": (Repair(then=Skip(), frame=1), "bad()", "no vaccinated frame 1"),
    "frame-far": (Repair(then=Pass(), frame=7), "bad()", "no vaccinated frame 7"),
    "frame-action": (Repair(("x = 1",), frame=1), "bad()", "no vaccinated frame 1"),
}
"""Refused; nothing is changed by it. (In ``except*`` the language allows no jumps.)"""

OWN_JUMPS = {
    "continue-in-finally-with": "for x in it([1, 2]):\n try:\n  return log('value')\n finally:\n  with cm('a'):\n   continue",
    "break-in-finally-with": "for x in it([1, 2]):\n try:\n  continue\n finally:\n  with cm('a'):\n   break\nelse:\n log('no')",
    "continue-in-finally-finally": "for x in it([1, 2]):\n try:\n  return log('value')\n finally:\n  try:\n   continue\n  finally:\n   log('inner')",
    "return-in-finally-finally": "for x in it([1, 2]):\n try:\n  log(x)\n finally:\n  try:\n   return log('value')\n  finally:\n   log('inner')",
    "return-in-finally-with": "for x in it([1, 2]):\n try:\n  continue\n finally:\n  with cm('a'):\n   return log('value')",
}
"""A jump of the program leaves a ``finally`` body and runs code on its way; that crashes."""

CELL_ONLY = {
    "R-cell": (Return("1"), "bad()\nlog(1)", "notebook cell can't return"),
    "B-cell": (Break(), "bad()\nlog(1)", "no loop"),
}

# fmt: on


def lettered(table, letters):
    return [
        pytest.param(source, ENDINGS[letter], id=f"{name}-{letter}")
        for name, source in table.items()
        for letter in letters
    ]


def rows(table):
    return [pytest.param(*row, id=name) for name, row in table.items()]


@pytest.mark.parametrize(("source", "ending"), [*lettered(IN_LOOPS, "SCBR"), *lettered(ANYWHERE, "SR")])
def test_function(source, ending):
    expect_replaced(source, ending)


@pytest.mark.parametrize(("source", "like"), rows(UNDECIDED))
def test_skip_where_the_program_may_handle_it(source, like):
    expect_replaced(source, Skip(), like, intercept="unhandled", crashes=False)


@pytest.mark.parametrize(("source", "ending"), lettered(ALL, "SR"))
def test_everything_is_intercepted(source, ending):
    expect_replaced(source, ending, intercept="all")


OTHER_LOOPS = (
    "for-nested", "while-else", "match", "with", "with-outside", "try-else", "handler-as", "handler-in-handler",
    "finally-f1", "finally-jumps", "with-finally", "finally-with-except", "in-finally-exception", "in-finally-break",
    "in-finally-continue", "in-finally-in-finally", "in-finally-return", "in-finally-loop-return", "finally-before-with",
)  # fmt: skip
OTHERS = ("for-else", "with-return", "finally-f1", "handler-finally", "captured-in-with", "objects")
KINDS = {
    "generator": ("yield 0\n", "SCBR"),
    "coroutine": ("await tick(0)\n", "SCBR"),
    "async generator": ("yield 0\n", "SCB"),
    "notebook cell": ("", "SCB"),
    "method": ("", "SCBR"),
}


def in_other_units():
    for kind, (start, letters) in KINDS.items():
        for table, names in ((IN_LOOPS, OTHER_LOOPS), (ANYWHERE, OTHERS)):
            for name in names:
                if kind in ("notebook cell", "async generator") and "return " in table[name]:
                    continue
                for letter in letters if table is IN_LOOPS else letters.translate({66: None, 67: None}):
                    yield pytest.param(kind, start + table[name], ENDINGS[letter], id=f"{kind}-{name}-{letter}")


@pytest.mark.parametrize(("kind", "source", "ending"), [*in_other_units()])
def test_in_other_units(kind, source, ending):
    expect_replaced(source, ending, kind=kind, crashes=False)


def asynchronous(source):
    return (
        source.replace("for x in it(", "async for x in it(")
        .replace("for y in it(", "async for y in it(")
        .replace("with cm(", "async with cm(")
    )


@pytest.mark.parametrize(("source", "ending"), lettered({name: IN_LOOPS[name] for name in OTHER_LOOPS}, "SCBR"))
def test_async_statements(source, ending):
    expect_replaced(asynchronous(source), ending, kind="coroutine", crashes=False)


@pytest.mark.parametrize(("source", "like"), rows(STATEMENTS | PARTS))
def test_skip(source, like):
    expect_replaced(source, Skip(), like)


@pytest.mark.parametrize(("ending", "source", "like"), rows(JUMPED))
def test_jump(ending, source, like):
    # the type of ``except bad():`` could be anything, so that no other crash is intercepted in its ``try``
    expect_replaced(source, ending, like, crashes="except bad()" not in source)


@pytest.mark.parametrize(("ending", "source", "reason"), rows(LONE))
def test_refused(ending, source, reason):
    expect_refused(source, ending, reason)


@pytest.mark.parametrize(("ending", "source", "reason"), rows(CELL_ONLY))
def test_refused_in_a_cell(ending, source, reason):
    expect_refused(source, ending, reason, kind="notebook cell")


@pytest.mark.parametrize("ending", [Return("1"), Return("x")])
def test_an_async_generator_returns_no_value(ending):
    expect_refused("x = 1\nyield 0\nbad()", ending, "async generator can't return a value", kind="async generator")


@pytest.mark.parametrize("source", OWN_JUMPS.values(), ids=OWN_JUMPS)
def test_jumps_of_the_program_out_of_a_finally(source):
    expect_recovers(source, pairs=True, intercept="all")


def test_an_async_generator_may_return_nothing():
    expect_replaced(
        "yield 0\nwith cm('a'):\n bad()\nlog(1)",
        Return(),
        "yield 0\nwith cm('a'):\n return\nlog(1)",
        kind="async generator",
    )

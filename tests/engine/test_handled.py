"""Would the program handle it? CPython is the reference: each program runs, and the verdict must be what then happened."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import gc
import io
import os
import sys
import threading
import unittest
import unittest.mock as mock
import warnings
import weakref

import pytest

from daifu_ipy.engine import bytecode
from daifu_ipy.engine.bytecode import code_of
from daifu_ipy.engine.handled import SKIP, Place, Verdict, protocol_exception, thrown_in, would_handle


class Error(Exception):
    """What the programs convert to."""


class Managers:
    """Context managers for the programs."""

    class Quiet:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, trace):
            self.left = value

    class Swallowing(Quiet):
        def __exit__(self, kind, value, trace):
            return kind is not None

    class Commits(Quiet):
        def __exit__(self, kind, value, trace):
            return kind is None

    class Negates(Quiet):
        def __exit__(self, kind, *rest):
            return not kind

    class Inherits(Quiet):
        def __exit__(self, *error):
            return super().__exit__(*error)

    class Raising(Quiet):
        def __exit__(self, kind, value, trace):
            raise Error

    class AsyncQuiet:
        async def __aenter__(self):
            return self

        async def __aexit__(self, kind, value, trace):
            await asyncio.sleep(0)

    @contextlib.contextmanager
    def plain():
        yield

    @contextlib.contextmanager
    def cleans():
        try:
            yield
        finally:
            len("")

    @contextlib.contextmanager
    def swallows():
        try:
            yield
        except ValueError:
            pass

    @contextlib.contextmanager
    def swallows_the_wrong():
        try:
            yield
        except KeyError:
            pass

    @contextlib.contextmanager
    def reraises():
        try:
            yield
        except ValueError:
            raise

    @contextlib.contextmanager
    def converts():
        try:
            yield
        except ValueError as error:
            raise Error from error

    @contextlib.contextmanager
    def nested():
        with contextlib.suppress(ValueError):
            yield

    @contextlib.asynccontextmanager
    async def async_plain():
        yield

    @contextlib.asynccontextmanager
    async def async_swallows():
        try:
            yield
        except ValueError:
            pass

    def made(*kinds):
        return contextlib.suppress(ValueError)

    class Slots:
        __slots__ = ("manager",)

        def __init__(self):
            self.manager = contextlib.suppress(ValueError)


HELPERS = {
    "asyncio": asyncio,
    "collections": collections,
    "contextlib": contextlib,
    "suppress": contextlib.suppress,
    "ExitStack": contextlib.ExitStack,
    "AsyncExitStack": contextlib.AsyncExitStack,
    "functools": functools,
    "io": io,
    "mock": mock,
    "os": os,
    "sys": sys,
    "threading": threading,
    "warnings": warnings,
    "raises": pytest.raises,
    "pytest": pytest,
    "case": unittest.TestCase(),
    "Error": Error,
    **{name: item for name, item in vars(Managers).items() if not name.startswith("__")},
}


def harness(frame):
    """The test's own frames are no part of a program."""
    return SKIP if frame.f_globals is globals() else None


def ask(exc, frame=None):
    return would_handle(exc, frame or sys._getframe(1), locate=harness)


def play(program, error=ValueError):
    """The verdict at the first `boom()` of a program, and whether its exception came out at the end."""
    verdicts = []
    names = {**HELPERS, "__name__": "program", "verdicts": verdicts, "ask": ask, "error": error}
    text = "def run():\n" + "".join(f"    {line}\n" for line in program.splitlines())
    exec(BOOM, names)
    exec(compile(text, "<program>", "exec", dont_inherit=True), names)
    run = names["run"]
    try:
        run()
    except BaseException:
        return verdicts[0], True
    return verdicts[0], False


BOOM = """
import sys
def boom(*args, **kwargs):
    exc = error() if isinstance(error, type) else error
    verdicts.append(ask(exc, sys._getframe()))
    raise exc
class Errors:
    value = ValueError
    both = (KeyError, ValueError)
    def __getattr__(self, name):
        raise SystemError("must not be run")
    @property
    def prop(self):
        raise SystemError("must not be run")
class Dynamic:
    def __getattr__(self, name):
        return ValueError
"""

PROGRAMS = [
    "boom()",
    # the type
    "try: boom()\nexcept ValueError: pass",
    "try: boom()\nexcept KeyError: pass",
    "try: boom()\nexcept Exception: pass",
    "try: boom()\nexcept (KeyError, ValueError): pass",
    "try: boom()\nexcept (KeyError, OSError): pass",
    "try: boom()\nexcept asyncio.CancelledError: pass",
    "try: boom()\nexcept Errors.value: pass",
    "try: boom()\nexcept Errors.both: pass",
    "kind = ValueError\ntry: boom()\nexcept kind: pass",
    "kind = KeyError\ndef inner():\n  try: boom()\n  except kind: pass\ninner()",
    "kind = ValueError\ndef inner():\n  try: boom()\n  except kind: pass\ninner()",
    "x = 1\nclass A:\n  kind = ValueError\n  try: boom()\n  except kind: x = 2",
    "try: boom()\nexcept KeyError: pass\nexcept ValueError: pass",
    "try: boom()\nexcept KeyError: pass\nexcept OSError: pass",
    "try: boom()\nexcept: pass",
    "try: boom()\nexcept BaseException: pass",
    # how the handler ends
    "try: boom()\nexcept ValueError as e: e = 1",
    "try: boom()\nexcept ValueError: raise",
    "try: boom()\nexcept ValueError as e: raise e",
    "try: boom()\nexcept ValueError as e: raise e from None",
    "try: boom()\nexcept ValueError as e: raise e.with_traceback(None)",
    "try:\n  try: boom()\n  except ValueError as e: raise e\nexcept ValueError: pass",
    "try:\n  try: boom()\n  except ValueError as e: raise\nexcept KeyError: pass",
    "try: boom()\nexcept ValueError as e: raise KeyError('x') from e",
    "try: boom()\nexcept ValueError as e: raise KeyError(f'x {e!r}', *[1], a if e else 0) from e",
    "try:\n  try: boom()\n  except ValueError as e: raise KeyError('x') from e\nexcept KeyError: pass",
    "try:\n  try: boom()\n  except ValueError as e: raise KeyError('x') from e\nexcept ValueError: pass",
    "try:\n  try: boom()\n  except ValueError as e: raise KeyError\nexcept LookupError: pass",
    "try:\n  try: boom()\n  except ValueError as e: raise KeyError('%s' % e, len(str(e)))\nexcept LookupError: pass",
    "try:\n  try: boom()\n  except ValueError as e: raise type(e)('x') from e\nexcept ValueError: pass",
    "try:\n  try: boom()\n  except ValueError as e: raise e.__class__('x')\nexcept KeyError: pass",
    "make = lambda: Error()\ntry:\n  try: boom()\n  except ValueError as e: raise make() from e\nexcept Exception: pass",
    "make = lambda: Error()\ntry: boom()\nexcept ValueError as e: raise make() from e",
    "try:\n  try: boom()\n  except ValueError as e:\n    last = e\n    raise e\nexcept ValueError: pass",
    "try:\n  try: boom()\n  except ValueError as outer:\n    try: raise KeyError\n    except KeyError: raise outer\nexcept ValueError: pass",
    "try: boom()\nexcept Exception:\n  for k in range(3):\n    try:\n      if k: raise Error('hook')\n    except Exception as e:\n      print\n      continue\n  raise",
    "try: boom()\nexcept Exception:\n  for k in range(3):\n    try: raise Error('hook')\n    except Exception as e: break\n  len('')",
    "try: boom()\nexcept ValueError:\n  while len('x'): break",
    "try: boom()\nexcept ValueError:\n  with Quiet(): pass",
    "try: boom()\nexcept ValueError:\n  with Quiet(): raise",
    "try: boom()\nexcept ValueError: return 1",
    "for i in range(2):\n  try: boom()\n  except ValueError: continue",
    "for i in range(2):\n  try: boom()\n  except ValueError: break",
    "for i in range(2):\n  try: boom()\n  except ValueError: raise",
    "try: boom()\nexcept ValueError: sys.exit(1)",
    "try: boom()\nexcept ValueError:\n  sys.stderr\n  exit = len\n  exit('')",
    "try:\n  try: boom()\n  except ValueError: sys.exit(1)\nexcept SystemExit: pass",
    # finally, else, nesting
    "try: boom()\nfinally: len('')",
    "try: boom()\nfinally: return 1",
    "for i in range(2):\n  try: boom()\n  finally: continue",
    "for i in range(2):\n  try: boom()\n  finally: break",
    "try: boom()\nfinally: raise KeyError",
    "try:\n  try: boom()\n  finally: raise KeyError\nexcept KeyError: pass",
    "try: boom()\nexcept ValueError: len('')\nfinally: len('')",
    "try: boom()\nexcept KeyError: len('')\nfinally: len('')",
    "try: boom()\nexcept ValueError: raise\nfinally: return 1",
    "try: boom()\nfinally:\n  try: len('')\n  except ValueError: pass",
    "try: len('')\nexcept ValueError: pass\nelse: boom()",
    "try:\n  try: len('')\n  except KeyError: pass\n  else: boom()\nexcept ValueError: pass",
    "try: len('')\nfinally: boom()",
    "try: raise KeyError\nexcept KeyError: boom()",
    "try: raise KeyError\nexcept KeyError as k: boom()",
    "try: raise KeyError\nexcept KeyError as k:\n  try: boom()\n  except ValueError: raise k",
    "try:\n  try: raise KeyError\n  except KeyError as k: boom()\nexcept ValueError: pass",
    "try: raise KeyError\nexcept KeyError as k:\n  try: boom()\n  except ValueError: pass",
    "try: raise KeyError\nexcept KeyError: boom()\nexcept ValueError: pass",
    "try: raise KeyError\nexcept KeyError: boom()\nfinally: return 1",
    "try:\n  try: boom()\n  except KeyError: pass\nexcept ValueError: pass",
    "try:\n  try: boom()\n  except ValueError: raise\nexcept ValueError: pass",
    "try:\n  try: boom()\n  finally: len('')\nexcept ValueError: pass",
    "try: boom(boom)\nexcept (ValueError if boom else KeyError) as e: raise",
    # other frames
    "def f(): boom()\ntry: f()\nexcept ValueError: pass",
    "def f():\n  try: boom()\n  finally: len('')\ntry: f()\nexcept KeyError: pass",
    "f = lambda: boom()\ntry: f()\nexcept ValueError: pass",
    "try: [boom() for i in range(2)]\nexcept ValueError: pass",
    "[boom() for i in range(2)]",
    "try: {i: boom() for i in range(2)}\nexcept ValueError: pass",
    "try: list(boom() for i in range(2))\nexcept ValueError: pass",
    "list(boom() for i in range(2))",
    "def g():\n  yield 1\n  boom()\ntry:\n  for x in g(): pass\nexcept ValueError: pass",
    "def g():\n  try:\n    yield 1\n    boom()\n  except ValueError: yield 2\nlist(g())",
    "def g():\n  try: yield 1\n  finally: boom()\nfor x in g(): pass",
    "def g(): yield from h()\ndef h(): yield boom()\ntry: list(g())\nexcept ValueError: pass",
    "def f(n):\n  if not n: boom()\n  f(n - 1)\ntry: f(50)\nexcept ValueError: pass",
    "def f(n):\n  try:\n    if not n: boom()\n    f(n - 1)\n  except ValueError: raise\nf(50)",
    "try: exec('boom()', globals())\nexcept ValueError: pass",
    "exec('try: boom()\\nexcept ValueError as e: pass', globals())",
    "try: sorted([1, 2], key=boom)\nexcept ValueError: pass",
    "sorted([1, 2], key=boom)",
    "functools.reduce(boom, [1, 2, 3])",
    "class A:\n  def __eq__(self, other): boom()\nA() in [A()]",
    "class A:\n  def __bool__(self): boom()\nif A(): pass",
    "class A:\n  def __init__(self): boom()\ntry: A()\nexcept ValueError: pass",
    "class A:\n  def __del__(self): boom()\nsys.unraisablehook, old = len, sys.unraisablehook\nA()\nsys.unraisablehook = old",
    # with
    "with Quiet(): boom()",
    "with Quiet() as q: boom()",
    "q = Quiet()\nwith q: boom()",
    "with Commits(): boom()",
    "with Negates(): boom()",
    "with Inherits(): boom()",
    "with suppress(ValueError): boom()",
    "with suppress(KeyError): boom()",
    "with suppress(): boom()",
    "with contextlib.suppress(KeyError, ValueError): boom()",
    "s = suppress(ValueError)\nwith s: boom()",
    "s = suppress(KeyError)\nwith s as t: boom()",
    "x = Slots()\nwith x.manager: boom()",
    "with Quiet(), suppress(ValueError): boom()",
    "with suppress(ValueError), Quiet(): boom()",
    "with suppress(KeyError), Quiet():\n  with Quiet(): boom()",
    "with Quiet():\n  try: boom()\n  except ValueError: pass",
    "try:\n  with Quiet() as q: boom()\nexcept ValueError: pass",
    "with plain(): boom()",
    "with cleans(): boom()",
    "with swallows(): boom()",
    "with swallows() as s: boom()",
    "with swallows_the_wrong(): boom()",
    "with reraises(): boom()",
    "with converts(): boom()",
    "try:\n  with converts(): boom()\nexcept Error: pass",
    "try:\n  with converts(): boom()\nexcept ValueError: pass",
    "with nested(): boom()",
    "m = swallows()\nwith m: boom()",
    "m = nested()\nwith m: boom()",
    "m = converts()\nwith m: boom()",
    "with made(): boom()",
    "with open(os.devnull) as f: boom()",
    "with open(os.devnull): boom()",
    "f = open(os.devnull)\nwith f: boom()",
    "with threading.Lock(): boom()",
    "lock = threading.RLock()\nwith lock: boom()",
    "with io.StringIO() as f: boom()",
    "with contextlib.nullcontext(): boom()",
    "with contextlib.closing(io.StringIO()): boom()",
    "with contextlib.redirect_stdout(io.StringIO()): boom()",
    "with warnings.catch_warnings(): boom()",
    "with warnings.catch_warnings(record=True) as w: boom()",
    "with raises(ValueError): boom()",
    "with raises((KeyError, ValueError)) as info: boom()",
    "with pytest.raises(KeyError): boom()",
    "r = raises(ValueError)\nwith r: boom()",
    "raises(ValueError, boom)",
    "with case.assertRaises(ValueError): boom()",
    "with case.assertRaises(KeyError): boom()",
    "case.assertRaises(ValueError, boom)",
    "with ExitStack() as s:\n  s.enter_context(suppress(ValueError))\n  boom()",
    "with ExitStack() as s:\n  s.enter_context(Quiet())\n  s.callback(len, '')\n  boom()",
    "with ExitStack() as s:\n  s.enter_context(swallows())\n  s.enter_context(Quiet())\n  boom()",
    "with ExitStack() as s:\n  s.push(lambda *e: None)\n  boom()",
    "with ExitStack() as s:\n  s.enter_context(suppress(Error))\n  s.enter_context(converts())\n  boom()",
    "s = ExitStack()\ns.enter_context(suppress(ValueError))\nwith s: boom()",
    "for i in range(2):\n  with Quiet():\n    if i: boom()\n    continue",
    "def f():\n  with Quiet(): return boom()\nf()",
    "def g():\n  with suppress(ValueError): yield boom()\nlist(g())",
    # except*
    "try: boom()\nexcept* ValueError: pass",
    "try: boom()\nexcept* ValueError as g: pass",
    "try: boom()\nexcept* KeyError: pass",
    "try: boom()\nexcept* (KeyError, ValueError): pass",
    "try: boom()\nexcept* ValueError: raise",
    "try: boom()\nexcept* ValueError as g: raise g",
    "try:\n  try: boom()\n  except* ValueError: raise\nexcept ExceptionGroup: pass",
    "try:\n  try: boom()\n  except* ValueError: raise\nexcept ValueError: pass",
    "try: boom()\nexcept* ValueError: raise KeyError('x')",
    "try: boom()\nexcept* KeyError: pass\nexcept* ValueError: pass",
    "try:\n  try: boom()\n  except* ValueError: raise KeyError('x')\nexcept KeyError: pass",
    "try:\n  try: boom()\n  except* ValueError: raise KeyError('x')\nexcept ExceptionGroup: pass",
    "try:\n  try: boom()\n  except* ValueError: raise KeyError('x')\nexcept Exception: pass",
    "try:\n  try: boom()\n  except* KeyError: pass\nexcept ValueError: pass",
    "try: raise KeyError\nexcept* KeyError: boom()",
    "try: raise KeyError\nexcept* KeyError as g: boom()\nexcept* ValueError: pass",
    "try:\n  try: raise KeyError\n  except* KeyError: boom()\nexcept Exception: pass",
    # asynchronous
    "async def main(): boom()\nasyncio.run(main())",
    "async def main():\n  try: boom()\n  except ValueError: pass\nasyncio.run(main())",
    "async def main(): boom()\ntry: asyncio.run(main())\nexcept ValueError: pass",
    "async def main(): boom()\ntry: asyncio.run(main())\nexcept KeyError: pass",
    "async def f(): boom()\nasync def main():\n  try: await f()\n  except ValueError: pass\nasyncio.run(main())",
    "async def f():\n  await asyncio.sleep(0)\n  boom()\nasync def main():\n  try: await f()\n  except ValueError: pass\nasyncio.run(main())",
    "async def f(): boom()\nasync def main():\n  try: await asyncio.create_task(f())\n  except ValueError: pass\nasyncio.run(main())",
    "async def f(): boom()\nasync def main():\n  try: await asyncio.create_task(f())\n  except KeyError: pass\nasyncio.run(main())",
    "async def f(): boom()\nasync def g():\n  await asyncio.create_task(f())\nasync def main():\n  try: await asyncio.create_task(g())\n  except ValueError: pass\nasyncio.run(main())",
    "async def f(): boom()\nasync def g():\n  await asyncio.create_task(f())\nasync def main():\n  await g()\ntry: asyncio.run(main())\nexcept ValueError: pass",
    "async def f(): boom()\nasync def main():\n  with suppress(ValueError): await asyncio.create_task(f())\nasyncio.run(main())",
    "async def f(): boom()\nasync def main(): await asyncio.gather(f(), return_exceptions=True)\nasyncio.run(main())",
    "async def f(): boom()\nasync def main(): await asyncio.gather(f())\nasyncio.run(main())",
    "async def f(): boom()\nasync def main():\n  try: await asyncio.gather(f())\n  except ValueError: pass\nasyncio.run(main())",
    "async def main():\n  async with AsyncQuiet(): boom()\nasyncio.run(main())",
    "async def main():\n  async with AsyncQuiet() as a: boom()\nasyncio.run(main())",
    "async def main():\n  async with async_plain(): boom()\nasyncio.run(main())",
    "async def main():\n  async with async_swallows(): boom()\nasyncio.run(main())",
    "async def main():\n  m = async_swallows()\n  async with m as n: boom()\nasyncio.run(main())",
    "async def main():\n  async with asyncio.Lock(): boom()\nasyncio.run(main())",
    "async def main():\n  async with AsyncExitStack() as s:\n    await s.enter_async_context(async_swallows())\n    boom()\nasyncio.run(main())",
    "async def g():\n  yield 1\n  boom()\nasync def main():\n  try:\n    async for x in g(): pass\n  except ValueError: pass\nasyncio.run(main())",
    "async def g():\n  yield 1\n  boom()\nasync def main():\n  async for x in g(): pass\nasyncio.run(main())",
    "async def main():\n  [boom() async for x in g()]\nasync def g(): yield 1\nasyncio.run(main())",
    "async def main():\n  async with asyncio.timeout(9): boom()\nasyncio.run(main())",
    "async def main():\n  async with asyncio.TaskGroup(): boom()\nasyncio.run(main())",
    "async def main():\n  async with asyncio.TaskGroup(): boom()\ntry: asyncio.run(main())\nexcept ValueError: pass",
    "async def main():\n  async with asyncio.TaskGroup(): boom()\ntry: asyncio.run(main())\nexcept* ValueError: pass",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_verdict_is_what_happens(program):
    verdict, escaped = play(program)
    assert verdict.handled == (not escaped)
    assert bool(verdict.by) is verdict.handled


It = "class It:\n  def __iter__(self): return self\n  def __next__(self): boom()\n"
Seq = "class Seq:\n  def __getitem__(self, i): boom()\n"
Prop = "class A:\n  @property\n  def p(self): boom()\n"
Attr = "class A:\n  def __getattr__(self, name): boom()\n"
GROUP = ExceptionGroup("g", [ValueError(), ExceptionGroup("h", [KeyError(), ValueError()])])

PROTOCOLS = [
    # the iteration ends
    (StopIteration, It + "for x in It(): pass"),
    (StopIteration, It + "list(It())"),
    (StopIteration, It + "next(It())"),
    (StopIteration, It + "next(It(), 0)"),
    (StopIteration, It + "It().__next__()"),
    (StopIteration, It + "[*It()]"),
    (StopIteration, It + "*a, = It()"),
    (StopIteration, It + "1 in It()"),
    (StopIteration, It + "sum(It())"),
    (StopIteration, It + "def g(): yield from It()\nlist(g())"),
    (StopIteration, It + "try: next(It())\nexcept StopIteration: pass"),
    (ValueError, It + "for x in It(): pass"),
    (StopIteration, "list(map(boom, [1]))"),
    (StopIteration, "for x in map(boom, [1]): pass"),
    (StopIteration, "for x in filter(boom, [1]): pass"),
    (StopIteration, "for x in iter(boom, 1): pass"),
    (StopIteration, "def f(): boom()\nfor x in map(lambda x: f(), [1]): pass"),
    (StopIteration, "def f(): boom()\nf()"),
    (StopIteration, "class A:\n  def __init__(self): boom()\nA()"),
    (StopIteration, "class A:\n  def __call__(self): boom()\na = A()\na()"),
    (StopIteration, "class A:\n  def __iter__(self): boom()\nfor x in A(): pass"),
    (StopIteration, "class A:\n  def __contains__(self, x): boom()\n1 in A()"),
    (StopIteration, "def g(): yield boom()\nlist(g())"),
    (StopIteration, "def g(): yield boom()\ntry: list(g())\nexcept RuntimeError: pass"),
    (StopIteration, "def g(): yield boom()\ntry: list(g())\nexcept StopIteration: pass"),
    (StopIteration, "async def main(): boom()\ntry: asyncio.run(main())\nexcept RuntimeError: pass"),
    (StopIteration, "with plain(): boom()"),
    (
        StopAsyncIteration,
        "class A:\n  def __aiter__(self): return self\n  async def __anext__(self): boom()\n"
        "async def main():\n  async for x in A(): pass\nasyncio.run(main())",
    ),
    (StopAsyncIteration, "async def f(): boom()\nasync def main(): await f()\nasyncio.run(main())"),
    (IndexError, Seq + "for x in Seq(): pass"),
    (IndexError, Seq + "list(Seq())"),
    (IndexError, Seq + "1 in Seq()"),
    (IndexError, Seq + "Seq()[1]"),
    (KeyError, Seq + "for x in Seq(): pass"),
    (
        TypeError,
        "class A:\n  def __length_hint__(self): boom()\n  def __iter__(self): return iter([1])\nlist(A())",
    ),
    (
        ValueError,
        "class A:\n  def __length_hint__(self): boom()\n  def __iter__(self): return iter([1])\nlist(A())",
    ),
    # the attribute is not there
    (AttributeError, Prop + "hasattr(A(), 'p')"),
    (AttributeError, Prop + "getattr(A(), 'p', 1)"),
    (AttributeError, Prop + "getattr(A(), 'p')"),
    (AttributeError, Prop + "A().p"),
    (AttributeError, Prop + "try: A().p\nexcept AttributeError: pass"),
    (AttributeError, Prop + "match A():\n  case A(p=1): pass"),
    (AttributeError, Attr + "hasattr(A(), 'p')"),
    (AttributeError, Attr + "A().p"),
    (AttributeError, "class A:\n  @functools.cached_property\n  def p(self): boom()\nhasattr(A(), 'p')"),
    (AttributeError, "class A:\n  @functools.cached_property\n  def p(self): boom()\nA().p"),
    (AttributeError, "def f(): boom()\nf()"),
    (ValueError, Prop + "hasattr(A(), 'p')"),
    (KeyError, "class M(dict):\n  def __missing__(self, key): boom()\nM()[1]"),
    (
        KeyError,
        "class M(collections.abc.Mapping):\n  __iter__ = __len__ = None\n"
        "  def __getitem__(self, key): boom()\nM().get(1)",
    ),
    # groups, and classes known only by what raises them
    (GROUP, "try: boom()\nexcept ExceptionGroup: pass"),
    (GROUP, "try: boom()\nexcept ValueError: pass"),
    (GROUP, "try: boom()\nexcept* ValueError: pass"),
    (GROUP, "try: boom()\nexcept* (KeyError, ValueError): pass"),
    (GROUP, "try: boom()\nexcept* KeyError: pass\nexcept* ValueError: pass"),
    (GROUP, "try: boom()\nexcept* KeyError: pass\nexcept* ValueError: raise"),
    (GROUP, "try:\n  try: boom()\n  except* KeyError: pass\nexcept* ValueError: pass"),
    (GROUP, "try:\n  try: boom()\n  except* KeyError: raise\nexcept* ValueError: pass"),
    (GROUP, "try:\n  try: boom()\n  except* KeyError as g: raise g\nexcept* (ValueError, KeyError): pass"),
    (GROUP, "def f():\n  try: boom()\n  except* KeyError: pass\ntry: f()\nexcept* ValueError: pass"),
    (GROUP, "with suppress(KeyError, ValueError): boom()"),
    (GROUP, "with suppress(KeyError): boom()"),
    (GROUP, "try:\n  with suppress(KeyError): boom()\nexcept* ValueError: pass"),
    (FileNotFoundError, "try: boom()\nexcept OSError: pass"),
    (KeyboardInterrupt, "try: boom()\nexcept Exception: pass"),
    (asyncio.CancelledError, "try: boom()\nexcept Exception: pass"),
    (SystemExit, "try: boom()\nexcept BaseException: pass"),
]


@pytest.mark.parametrize(("error", "program"), PROTOCOLS)
def test_verdict_on_other_errors_is_what_happens(error, program):
    verdict, escaped = play(program, error)
    assert verdict.handled == (not escaped)


UNDECIDABLE = [
    "try: boom()\nexcept OSError: pass\nexcept ValueError as e:\n  if e.args: raise",
    "try: boom()\nexcept ValueError:\n  if len('x'): raise KeyError",
    "try: boom()\nexcept ValueError:\n  assert len('x')",
    "for i in range(2):\n  try: boom()\n  finally:\n    if i: break",
    "try:\n  try: raise KeyError\n  except* KeyError: boom()\nexcept ValueError: pass",
    # types that would have to be computed
    "try: boom()\nexcept Dynamic().kind: pass",
    "kinds = [ValueError]\ntry: boom()\nexcept kinds[0]: pass",
    "try: boom()\nexcept (ValueError if boom else KeyError): pass",
    "d = Dynamic()\ntry: boom()\nexcept d.kind: pass",
    "try: boom()\nexcept* (ValueError if boom else KeyError): pass",
    "make = lambda: Error()\ntry:\n  try: boom()\n  except ValueError: raise make()\nexcept Error: pass",
    "try:\n  try: boom()\n  except ValueError as e:\n    e = Error()\n    raise e\nexcept Error: pass",
    "try:\n  try: boom()\n  except ValueError: raise OSError(2, 'x')\nexcept FileNotFoundError: pass",
    # managers
    "with Swallowing(): boom()",
    "with Raising(): boom()",
    "with suppress(*[ValueError]): boom()",
    "with [Quiet()][0]: boom()",
    "with suppress(KeyError if boom else ValueError): boom()",
    "with mock.MagicMock(): boom()",
    "stack = ExitStack()\nwith stack:\n  stack.enter_context(Swallowing())\n  boom()",
    # tasks
    "async def f(): boom()\nasync def main():\n  async with asyncio.TaskGroup() as g: g.create_task(f())\nasyncio.run(main())",
    "async def f(): boom()\nasync def main(): await asyncio.wait([asyncio.create_task(f())])\nasyncio.run(main())",
    "async def f(): boom()\nasync def main(): await asyncio.shield(f())\nasyncio.run(main())",
]
UNDECIDABLE_PROTOCOLS = [
    (StopIteration, "f = [boom]\nf[0]()"),
    (StopIteration, "sorted([1, 2], key=boom)"),
    (AttributeError, Prop + "  def __getattr__(self, name): return 1\nA().p"),
    (AttributeError, Prop + "f = [hasattr]\nf[0](A(), 'p')"),
    (IndexError, Seq + "iterate = [list]\niterate[0](Seq())"),
]


@pytest.mark.parametrize(
    ("error", "program"), [*((ValueError, program) for program in UNDECIDABLE), *UNDECIDABLE_PROTOCOLS]
)
def test_undecidable(error, program):
    verdict, _ = play(program, error)
    assert verdict.handled is None
    assert verdict.by


RUNNERS = [
    "threading.excepthook, old = (lambda args: None), threading.excepthook\n"
    "t = threading.Thread(target=boom)\nt.start()\nt.join()\nthreading.excepthook = old",
    "from concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor(1) as pool: pool.submit(boom).exception()",
    "from multiprocessing.pool import ThreadPool\nwith ThreadPool(1) as pool:\n"
    "  try: pool.apply(boom)\n  except ValueError: pass",
    "async def f(): boom()\nasync def main():\n  t = asyncio.create_task(f())\n  await asyncio.sleep(0)\n"
    "  t.exception()\nasyncio.run(main())",
    "async def main():\n  loop = asyncio.get_running_loop()\n  loop.set_exception_handler(lambda *a: None)\n"
    "  loop.call_soon(boom)\n  await asyncio.sleep(0)\nasyncio.run(main())",
    "class T(type(case)):\n  def test(self): boom()\nT('test').run()",
    "class T(type(case)):\n  def setUp(self): boom()\n  def test(self): pass\nT('test').run()",
    "import code, contextlib, io\nwith contextlib.redirect_stderr(io.StringIO()):\n"
    "  code.InteractiveInterpreter(globals()).runcode(compile('boom()', '', 'exec'))",
    "names = {'__name__': 'IPython.core.interactiveshell', 'boom': boom}\n"
    "exec('async def run_code():\\n  try: boom()\\n  except: pass', names)\n"
    "try: names['run_code']().send(None)\nexcept StopIteration: pass",
    "names = {'__name__': 'IPython.core.interactiveshell', 'boom': boom}\n"
    "exec('async def run_code(task):\\n  try: await task\\n  except: pass', names)\n"
    "async def f(): boom()\nasync def main(): await names['run_code'](asyncio.create_task(f()))\n"
    "asyncio.run(main())",
]


@pytest.mark.parametrize("program", RUNNERS)
def test_runner_is_not_a_handler(program):
    verdict, escaped = play(program)
    assert (verdict, escaped) == (Verdict(False), False)


@pytest.mark.parametrize(
    ("program", "by"),
    [
        ("try: boom()\nexcept ValueError: pass", "except ValueError in run (<program>:3)"),
        ("try: boom()\nexcept (KeyError, asyncio.CancelledError, ValueError): pass",
         "except (KeyError, asyncio.CancelledError, ValueError) in run (<program>:3)"),
        ("try: boom()\nexcept* Exception: pass", "except* Exception in run (<program>:3)"),
        ("try: boom()\nfinally: return", "bare except or finally in run (<program>:3)"),
        ("with suppress(ValueError): boom()", "with suppress(ValueError) in run (<program>:2)"),
        ("with suppress(*[ValueError]): boom()", "perhaps with suppress(...) in run (<program>:2)"),
        ("boom()", ""),
    ],
)  # fmt: skip
def test_names_the_handler(program, by):
    assert play(program)[0].by.startswith(by)


# --- what the caller says about frames


def crash(exc, locate=lambda frame: None):
    return would_handle(exc, sys._getframe(1), locate=locate)


def entered(manager):
    manager.__enter__()
    return manager


def test_skipped_frame_is_no_handler():
    try:
        verdict = crash(ValueError(), harness)
        raise ValueError
    except ValueError:
        assert verdict == Verdict(False)


def test_own_handler_counts_at_the_current_position():
    try:
        verdict = crash(ValueError())
    except ValueError:
        raise
    try:
        inside = crash(ValueError())
    except ValueError:
        pass
    assert (verdict.handled, inside.handled) == (False, True)


def test_place_stands_for_a_frame():
    def plain():
        try:
            len("")
        except ValueError:
            pass

    inside = next(entry.start for entry in code_of(plain.__code__).entries)

    def locate(frame):
        return Place(plain.__code__, inside, frame) if frame is here else harness(frame)

    here = sys._getframe()
    assert would_handle(ValueError(), here, locate=locate).by.startswith("except ValueError in plain")
    assert would_handle(KeyError(), here, locate=locate) == Verdict(False)


@pytest.mark.parametrize(
    ("manager", "verdict"),
    [
        (contextlib.suppress(ValueError), True),
        (contextlib.suppress(KeyError), False),
        (None, None),
        (entered(Managers.swallows()), True),
        (entered(Managers.cleans()), False),
    ],
)
def test_place_knows_managers(manager, verdict):
    def plain(managers):
        with managers[0]:
            len("")

    code = code_of(plain.__code__)
    inside = code.entries[0].start
    exits = next(op.offset for op in code.ops if op.name == "WITH_EXCEPT_START")
    here = sys._getframe()

    def locate(frame):
        place = Place(plain.__code__, inside, here, {exits: manager}.get)
        return place if frame is here else harness(frame)

    assert would_handle(ValueError(), here, locate=locate).handled is verdict


def test_locate_stands_for_the_frame_of_a_suspended_generator():
    def other():
        try:
            yield
        except KeyError:
            pass

    manager = Managers.swallows()
    with manager:
        frame = manager.gen.gi_frame
        plain = other.__code__
        inside = next(op.offset for op in code_of(plain).ops if op.name == "YIELD_VALUE")

        def locate(asked):
            return Place(plain, inside, asked) if asked is frame else None

        assert [crash(error, locate).handled for error in (KeyError(), ValueError())] == [True, False]


# --- what it leaves behind: nothing


def test_locals_of_callers_are_not_kept():
    class Big:
        pass

    def program():
        kind, big = ValueError, Big()
        watch = weakref.ref(big)
        try:
            verdict = crash(KeyError())
        except kind:
            pass
        del big
        return verdict, watch()

    assert program() == (Verdict(False), None)


def test_locals_that_the_program_took_stay():
    def program():
        kind = ValueError
        taken = locals()
        try:
            crash(KeyError())
        except kind:
            pass
        return taken

    assert program()["kind"] is ValueError


def test_code_is_not_kept():
    names = {"crash": crash}
    exec("def f():\n  try: crash(ValueError())\n  except ValueError: pass", names)
    names["f"]()
    watch = weakref.ref(names.pop("f").__code__)
    gc.collect()
    assert watch() is None
    assert all(code.ref() is not None for code in bytecode._CODES.values())


def test_exception_is_as_before():
    error = ExceptionGroup("g", [ValueError("x")])
    before = error.__traceback__, error.__context__, dict(vars(error)), error.args
    try:
        crash(error)
    except* KeyError:
        pass
    assert (error.__traceback__, error.__context__, vars(error), error.args) == before


def test_remembers_only_what_still_holds():
    names = {"crash": crash, "kind": KeyError}
    exec("def f(error):\n  try: return crash(error)\n  except kind: pass", names)
    kinds = [KeyError, ValueError, ValueError, (KeyError, ValueError), KeyError]
    verdicts = []
    for names["kind"] in kinds:
        verdicts.append(names["f"](ValueError()).handled)
    assert verdicts == [False, True, True, True, False]


def test_classes_are_not_kept():
    def program():
        class Local(Exception):
            pass

        try:
            crash(Local())
        except Local:
            pass
        return weakref.ref(Local)

    watch = program()
    gc.collect()
    assert watch() is None


def test_deep_mixed_handlers_end():
    program = "def f(n):\n  try:\n    if n: f(n - 1)\n    boom()\n  except ValueError as e:\n    if n: raise KeyError\n    raise\nf(200)"
    assert play(program)[0].handled in {None, False}


# --- protocol exceptions


def leaving(error, program):
    """The reason that a program's frame at the raise gives."""
    names = {**HELPERS, "reasons": [], "protocol_exception": protocol_exception, "error": error}
    text = (
        "import sys\ndef out():\n  exc = error()\n"
        "  reasons.append(protocol_exception(exc, sys._getframe(1)))\n  raise exc\n"
    )
    with contextlib.suppress(error):
        exec(compile(text + program, "<program>", "exec"), names)
    return names["reasons"][0]


@pytest.mark.parametrize(
    ("error", "program"),
    [
        (StopIteration, "class A:\n  def __next__(self): out()\nA().__next__()"),
        (StopIteration, "for x in map(lambda x: out(), [1]): pass"),
        (StopIteration, "list(filter(lambda x: out(), [1]))"),
        (StopIteration, "for x in iter(lambda: out(), 1): pass"),
        (StopAsyncIteration, "class A:\n  async def __anext__(self): out()\nA().__anext__().send(None)"),
        (AttributeError, "class A:\n  def __getattr__(self, name): out()\nA().x"),
        (AttributeError, "class A:\n  def __getattribute__(self, name): out()\nA().x"),
        (AttributeError, "class A:\n  @property\n  def x(self): out()\nA().x"),
        (AttributeError, "class A:\n  def get(self): out()\n  x = property(get)\nA().x"),
        (AttributeError, "class A:\n  @functools.cached_property\n  def x(self): out()\nclass B(A): pass\nB().x"),
        (ValueError, "sys.unraisablehook, old = len, sys.unraisablehook\n"
         "class A:\n  def __del__(self): out()\nA()\nsys.unraisablehook = old"),
        (IndexError, "class A:\n  def __len__(self): return 2\n  def __getitem__(self, i):\n    if i == 2: out()\nlist(A())"),
        (IndexError, "class A:\n  def __getitem__(self, i): out()\nfor x in A(): pass"),
        (KeyError, "class A(dict):\n  def __missing__(self, key): out()\nA()[1]"),
        (KeyError, "class A(collections.abc.Mapping):\n  __iter__ = __len__ = None\n  def __getitem__(self, key): out()\nA()[1]"),
        (TypeError, "class A:\n  def __length_hint__(self): out()\n  def __iter__(self): return iter([])\nlist(A())"),
    ],
)  # fmt: skip
def test_protocol_exception(error, program):
    assert error.__name__ in leaving(error, program) or "__del__" in leaving(error, program)


@pytest.mark.parametrize(
    ("error", "program"),
    [
        (ValueError, "def f(): out()\nf()"),
        (StopIteration, "def f(): out()\nf()"),
        (StopIteration, "def f(): out()\nnext(iter([f()]))"),
        (ValueError, "class A:\n  def __next__(self): out()\nA().__next__()"),
        (AttributeError, "class A:\n  def x(self): out()\nA().x()"),
        (AttributeError, "def f(x=1): out()\nf()"),
        (ValueError, "class A:\n  @property\n  def x(self): out()\nA().x"),
        (KeyError, "class Dataset:\n  def __getitem__(self, i): out()\nDataset()[1]"),
        (KeyError, "class Dataset:\n  def __getitem__(self, i): out()\nlist(Dataset())"),
        (IndexError, "class A:\n  def __len__(self): return 2\n  def __getitem__(self, i): out()\nlist(A())"),
        (IndexError, "class A:\n  def __len__(self): return 2\n  def __getitem__(self, i): out()\nA()[9]"),
        (IndexError, "class A:\n  def __getitem__(self, i): out()\nA().__getitem__(9)"),
        (TypeError, "class A:\n  def __index__(self): out()\n[1][A()]"),
    ],
)  # fmt: skip
def test_crash_is_no_protocol_exception(error, program):
    assert leaving(error, program) is None


# --- thrown in


def caught(call):
    try:
        call()
    except BaseException as error:
        return error


def throwing(generator, error=ValueError, started=True):
    if started:
        next(generator)
    return lambda: generator.throw(error)


def inner():
    yield 1
    yield 2


def outer():
    yield from inner()


def finishing():
    try:
        yield 1
    except KeyError:
        pass
    raise ValueError


async def awaiting():
    await asyncio.sleep(9)


async def cancelled():
    task = asyncio.create_task(awaiting())
    await asyncio.sleep(0)
    task.cancel()
    await task


class Awaitable:
    def __await__(self):
        yield 1


async def coroutine():
    await Awaitable()


async def failing():
    await asyncio.sleep(0)
    raise ValueError


async def awaits_failing():
    await asyncio.create_task(failing())


def raising():
    raise ValueError
    yield


THROWN = {
    "at a yield": throwing(inner()),
    "at a yield from": throwing(outer()),
    "unstarted": throwing(inner(), started=False),
    "unstarted, delegating": throwing(outer(), started=False),
    "into a coroutine": lambda: throwing(coroutine().__await__())(),
    "cancelled": lambda: asyncio.run(cancelled()),
    "exit": lambda: throwing(inner(), GeneratorExit)(),
}
OWN = {
    "own": lambda: next(raising()),
    "own, after a throw": throwing(finishing(), KeyError),
    "no generator": lambda: [][1],
    "from a function": lambda: next(int(x) for x in "x"),
    "of an awaited task": lambda: asyncio.run(awaits_failing()),
}


@pytest.mark.parametrize("call", THROWN.values(), ids=THROWN)
def test_thrown_in(call):
    assert thrown_in(caught(call))


@pytest.mark.parametrize("call", OWN.values(), ids=OWN)
def test_not_thrown_in(call):
    assert not thrown_in(caught(call))


def test_never_raised_is_not_thrown_in():
    assert not thrown_in(ValueError())

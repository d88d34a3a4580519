"""Which functions of the notebook a %%daifu cell protects, and what it says about it."""

from __future__ import annotations

import ast
import functools
import sys
import textwrap

import pytest

from daifu_ipy.engine.vaccinate import is_vaccinated
from daifu_ipy.magic.protect import MOST_ITEMS, functions_used, grouped, is_wanted, listed
from tests.magic.notebook import Notebook

# An earlier cell, what the protected cell is, and which functions are protected then.
FOUND = {
    "called": ("def f(): pass\ndef g(): pass", "f()", ["f"]),
    "named only": ("def f(): pass", "x = [f]", ["f"]),
    "in a function of the cell": ("def f(): pass", "def h():\n    return f()", ["f"]),
    "through another": ("def f(): return g()\ndef g(): return h\ndef h(): pass\ndef z(): pass", "f", ["f", "g", "h"]),
    "recursive": ("def f(): return g()\ndef g(): return f()", "f", ["f", "g"]),
    "nested code": ("def f():\n    def inner():\n        return [g() for _ in '']\n    return inner\ndef g(): pass", "f", ["f", "g"]),
    "class": ("class C:\n    def a(self): pass\n    @staticmethod\n    def b(): pass\n    @classmethod\n    def c(cls): pass\n    @property\n    def d(self): pass", "C", ["C.a", "C.b", "C.c", "C.d"]),
    "base class": ("class A:\n    def a(self): pass\nclass B(A):\n    def b(self): pass", "B", ["A.a", "B.b"]),
    "nested class": ("class A:\n    class B:\n        def b(self): pass", "A", ["A.B.b"]),
    "object": ("class C:\n    def a(self): return g()\ndef g(): pass\nc = C()", "c.a()", ["C.a", "g"]),
    "object in an object": ("class Data:\n    def __getitem__(self, i): return i\nclass Loader:\n    def __init__(self, d): self.d = [d]\nloader = Loader(Data())", "loader", ["Data.__getitem__", "Loader.__init__"]),
    "object in a library's object": ("from types import SimpleNamespace\nclass C:\n    def a(self): pass\nx = SimpleNamespace(y={'k': C()})", "x.y", ["C.a"]),
    "method": ("class C:\n    def a(self): pass\nm = C().a", "m()", ["C.a"]),
    "partial": ("import functools\ndef f(x): pass\np = functools.partial(f, 1)", "p()", ["f"]),
    "decorated": ("import functools\ndef deco(g):\n    @functools.wraps(g)\n    def w(*a):\n        return g(*a)\n    return w\n@deco\ndef f(): pass", "f()", ["f", "f"]),
    "decorated by a library": ("import contextlib\n@contextlib.contextmanager\ndef f(): yield", "f", ["f"]),
    "cached": ("import functools\n@functools.lru_cache\ndef f(): pass\nclass C:\n    @functools.cached_property\n    def p(self): pass", "f, C", ["C.p", "f"]),
    "closure": ("def f(): pass\ndef make(g):\n    return lambda: g()\nh = make(f)", "h()", ["f"]),
    "default": ("def f(): pass\ndef g(x=f): pass", "g", ["f", "g"]),
    "generator and coroutine": ("def f(): yield\nasync def g(): pass\nasync def h(): yield", "f, g, h", ["f", "g", "h"]),
    "slots": ("class C:\n    __slots__ = ('x',)\n    def a(self): pass\nc = C()", "c", ["C.a"]),
    "dataclass": ("from dataclasses import dataclass\n@dataclass\nclass C:\n    x: int = 1\n    def a(self): pass", "C", ["C.a"]),
    "attribute of the same name": ("def f(): pass", "x = 'a'\nx.f if 0 else 0", []),
    "shadowed in a string": ("def f(): pass", "'f'", []),
    "library": ("import json", "json.dumps(1)", []),
    "defined anew": ("def f(): pass\ndef g(): pass", "def f(): g()\nf()", ["g"]),
    "named, then defined anew": ("def f(): pass", "old = f\ndef f(): old()", ["f"]),
    "decorated by its old self": ("def f(x): return x", "@f\ndef f(): pass", []),
    "get_ipython": ("def f(): pass", "get_ipython()", []),
    "magic": ("def f(): pass", "%who_ls", []),
    "Out": ("def f(): pass\nf", "1", []),
    "not hashable": ("class C:\n    __hash__ = None\n    def a(self): pass\nc = C()", "c", ["C.a"]),
    "lies about its class": ("class C:\n    def a(self): pass\n    @property\n    def __class__(self): raise ValueError\nc = C()", "c", ["C.__class__", "C.a"]),
    "answers to every name": ("class C:\n    def __getattr__(self, name): raise RuntimeError(name)\nc = C()", "c", ["C.__getattr__"]),
}  # fmt: skip


def everything(notebook):
    """All functions that a notebook's objects lead to."""
    names = " ".join(name for name in notebook.shell.user_ns if name.isidentifier() and not name.startswith("_"))
    tree = ast.parse("\n".join(names.split()))
    own = notebook.shell.compile.format_code_name
    return functions_used(
        tree, notebook.shell.user_ns, lambda code: own(code.co_filename) is not None, [notebook.shell]
    )


@pytest.mark.parametrize(("earlier", "cell", "names"), FOUND.values(), ids=FOUND.keys())
def test_what_is_found(earlier, cell, names):
    with Notebook() as notebook:
        assert notebook.run(earlier).error == ""
        seen = notebook.run(f"%%daifu\n{cell}")
        assert seen.error == ""
        protected = [f for f in everything(notebook) if is_vaccinated(f)]
        earlier_ones = [f.__qualname__ for f in protected if f.__code__.co_filename.startswith("<ipython-input-1-")]
        assert sorted(earlier_ones) == names
        assert ("daifu: protecting this cell" in seen.stdout) == bool(names)


def test_functions_of_modules_and_files_stay_as_they_are(tmp_path, monkeypatch):
    (tmp_path / "daifu_test_helper.py").write_text("def f(): return g()\ndef g(): return 1\n")
    (tmp_path / "script.py").write_text("def s(): return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with Notebook() as notebook:
        notebook.runs("from daifu_test_helper import f", f"%run {tmp_path / 'script.py'}")
        assert notebook.run("%%daifu\nf(), s()").result == "(1, 1)"
        assert not is_vaccinated(notebook["f"])
        assert not is_vaccinated(notebook["s"])


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (["def f(): pass", "%%daifu\nf()"], "daifu: protecting this cell and f"),
        (["def f(): g()\ndef g(): pass", "%%daifu\nf()"], "daifu: protecting this cell, f and g"),
        (["class Net:\n    def a(self): pass\n    def b(self): pass", "%%daifu\nNet"], "daifu: protecting this cell and Net (2 methods)"),
        (["%%daifu\ndef f(): pass", "%%daifu\nf()"], "daifu: protecting this cell and f"),
        (["%%daifu\ndef f(): pass\nf()"], ""),
        (["%%daifu --only f\ndef f(): pass\nf()"], "daifu: protecting f"),
        (["def f(): pass\ndef g(): pass", "%%daifu --only g\nf(), g()"], "daifu: protecting g"),
        (["%%daifu --only f\n1"], "daifu: --only f: this cell neither defines nor uses such a function"),
        (["\n".join(f"def f{i}(): pass" for i in range(12)), "%%daifu\n" + "\n".join(f"f{i}()" for i in range(12))], "daifu: protecting this cell, f0, f1, f2, f3, f4, f5 and 6 more"),
        (["f = lambda: 1", "%%daifu\nf()"], ""),
    ],
)  # fmt: skip
def test_one_line_says_what_is_protected(cells, line):
    with Notebook() as notebook:
        *_, last = notebook.runs(*cells)
        shown = [text for text in last.stdout.splitlines() if text.startswith("daifu")]
        assert "\n".join(shown) == line


MOST = 19 if sys.version_info < (3, 13) else 20  # nested blocks: one more than vaccinated code can have
DEEP = "".join("    " * n + "try:\n" for n in range(1, MOST + 1)) + "    " * (MOST + 1) + "pass\n"
DEEP += "".join("    " * n + "finally: pass\n" for n in range(MOST, 0, -1))


def test_what_cannot_be_protected_is_named_with_the_reason():
    with Notebook() as notebook:
        assert notebook.run(f"def deep():\n{DEEP}").error == ""
        seen = notebook.run("%%daifu\ndeep()")
        assert "daifu: deep runs plainly: blocks are nested too deeply around line" in seen.stdout
        assert not is_vaccinated(notebook["deep"])
        assert "runs plainly    deep: blocks are nested" in notebook.run("%daifu status").stdout


def test_a_cell_that_cannot_be_protected_runs_plainly_and_says_so():
    body = textwrap.dedent(DEEP)
    with Notebook() as notebook:
        seen = notebook.run(f"%%daifu\n{body}x = 3\nx")
        assert seen.stdout.startswith("daifu: this cell runs plainly: blocks are nested too deeply around line")
        assert seen.result == "3"
        seen = notebook.run(f"%%daifu --strict\n{body}x = 4\nx")
        assert seen.stderr.startswith("UsageError: %%daifu: blocks are nested too deeply")
        assert notebook["x"] == 3
        seen = notebook.run(f"%%daifu\n{body}x = 3\n1 / 0")
        assert seen.lines == [("<module>", 2 * MOST + 4)]
        assert "daifu_ipy" not in seen.stdout


def test_a_plain_cell_with_await():
    body = textwrap.dedent(DEEP)
    with Notebook() as notebook:
        seen = notebook.run(f"%%daifu\n{body}async def f(): return 3\nx = await f()\nawait f() + x")
        assert (seen.result, seen.error) == ("6", "")


def test_local_variables_beside_the_modules():
    with Notebook() as notebook:
        local = dict(notebook.shell.user_ns)
        notebook.shell.user_ns = local
        seen = notebook.run("%%daifu\nx = 3\nx")
        assert seen.stdout.startswith("daifu: this cell runs plainly: this shell has local variables of its own")
        assert (seen.result, local["x"]) == ("3", 3)
        assert "x" not in notebook.shell.user_module.__dict__


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("%%timeit -n1 -r1\n%%daifu\nx = 1", "%%timeit measures it inside a function of its own"),
        ("%%daifu\n%%timeit -n1 -r1\nx = 1", "%%timeit runs it"),
        ("%%prun -q\n%%daifu\nx = 1", "%%prun runs it"),
        ("%%daifu\n%%script true\nx = 1", "%%script runs it"),
        ("%%daifu\nx = 1\nfrom __future__ import annotations", "line 3: from __future__ imports must occur at the beginning of the file"),
    ],
)  # fmt: skip
def test_where_it_runs_plainly_it_says_so(cell, text):
    with Notebook() as notebook:
        seen = notebook.run(cell)
        assert seen.error == ""
        assert seen.stdout.startswith(f"daifu: this cell runs plainly: {text}\n")


def test_a_function_that_was_defined_anew_is_protected_again():
    with Notebook() as notebook:
        for number in range(3):
            notebook.run(f"def f(): return {number}")
            assert notebook.run("%%daifu\nf()").result == str(number)
            assert is_vaccinated(notebook["f"])


def test_every_reference_is_protected():
    with Notebook() as notebook:
        notebook.runs("def f(): return 1 / 0\ng = [f]", "%%daifu\nf")
        assert notebook.run("%%daifu --rules '* -> return \"5\"'\ng[0]()").result == "5"


def test_it_looks_at_a_bounded_number_of_objects():
    def f():
        pass

    values = {"many": [[object()] for _ in range(10**5)], "deep": functools.reduce(lambda a, _: [a], range(10**5), f)}
    assert list(functions_used(ast.parse("many, deep"), values, lambda code: True)) == []
    last = [None] * (MOST_ITEMS - 1) + [f, f]
    assert list(functions_used(ast.parse("last"), {"last": last}, lambda code: True)) == [f]


def test_texts():
    assert grouped(["f", "C.a", "C.b", "g.<locals>.h", "D.a"]) == ["f", "C (2 methods)", "g", "D (1 method)"]
    assert [listed(names) for names in ([], ["a"], ["a", "b"], list("abcdefghij"))] == [
        "",
        "a",
        "a and b",
        "a, b, c, d, e, f, g and 3 more",
    ]
    only = frozenset({"f", "C.a"})
    assert [n for n in ("f", "g", "C.a", "C.b", "f.<locals>.x", "fa") if is_wanted(n, only)] == [
        "f",
        "C.a",
        "f.<locals>.x",
    ]

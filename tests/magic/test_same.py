"""A cell under %%daifu is the cell without it: output, Out, variables, exceptions and their lines, everything."""

from __future__ import annotations

import pytest

from daifu_ipy import Abort, repair_with
from tests.magic.notebook import MARKER, PLAIN, Notebook, normal, without_report

# Cells of a notebook, separated by ---. The first line of each protected cell is where %%daifu stands: a row marks
# it by @; the plain notebook has a comment there.
ROWS = {
    "value": "@\n1 + 1\n---\n_, __, Out",
    "value-none": "@\nNone\n---\nOut",
    "value-in-the-middle": "@\n1\n2\n3",
    "semicolon": "@\nx = 3\nx;",
    "semicolon-comment": "@\nx = 3\nx;  # no output",
    "semicolons": "@\nx = 1; y = 2; x + y",
    "assignment-last": "@\nx = 3",
    "for-last": "@\nfor i in range(3):\n    i",
    "print-and-value": "@\nprint('a')\n'b'",
    "underscore": "@\n5\n---\n@\n_ + 1\n---\n@\n_ + __\n---\n_2, _3, sorted(Out)",
    "own-underscore": "@\n_ = 7\n8\n---\n_",
    "value-mutates": "@\nx = []\nx.append(1) or x",
    "repr-raises": "@\nclass C:\n    def __repr__(self): raise ValueError('no')\nC()",
    "repr-html": "@\nclass C:\n    def _repr_html_(self): return '<b>'\nC()",
    "display": "@\nfrom IPython.display import display\ndisplay(1)\ndisplay('a')\n2",
    "displayhook": "@\nimport sys\nsys.displayhook(3)\n4",
    "named-expression": "@\n(n := 3)",
    "if-else": "@\nif 1:\n    'a'\nelse:\n    'b'",
    "comments-only": "@\n# nothing",
    "comment-first": "@\n# a comment\n\n\n1",
    "blank-lines": "@\n\n\n\nx = 1\n\nx",
    "unicode": "@\nα = 'é — ö'\nα",
    "tabs": "@\nif 1:\n\tx = 'a\tb'\nx",
    "continuation": "@\nx = 1 + \\\n    2\nx",
    "triple-quotes": "@\nx = '''\n%%daifu\n!ls\n'''\nx",
    "docstring": "@\n'''the doc'''\nx = 1\n---\n__doc__",
    "docstring-only": "@\n'the doc'\n---\n__doc__ == 'the doc'",
    "texts-as-comments": "@\nx = 1\n'''one'''\nx = 2\n'''two'''\nx = 3\n---\n__doc__",
    "text-last": "@\nx = 1\n'text'\n---\n__doc__ == 'text'",
    "annotations": "@\nx: int = 3\ny: 'str'\n(z): float = 1.0\n---\n__annotations__, x, 'y' in globals()",
    "annotations-later": "x: int = 3\n---\n@\ny: str = 'a'\n---\n__annotations__",
    "locals": "@\na = 1\nlocals() is globals(), 'a' in locals(), [n for n in locals() if '@' in n or 'daifu' in n]",
    "vars-dir": "@\na = 1\nvars() is globals(), 'a' in dir(), [n for n in dir() if '@' in n or 'daifu' in n]",
    "exec-eval": "@\nexec('q = 2')\neval('q + 1')\n---\nq",
    "globals-in-function": "@\ndef f():\n    global g\n    g = 3\nf()\ng",
    "del": "@\nx = 1\ndel x\n---\n'x' in globals()",
    "star-import": "@\nfrom string import *\nascii_lowercase",
    "import": "@\nimport os.path as p, json\nfrom math import pi\np.__name__, json.__name__, pi",
    "comprehension": "@\nx = 3\n[x for x in range(x)], {y: x for y in 'ab'}, x",
    "lambda-closure": "@\nf = lambda: n\nn = 3\nf()",
    "class": "@\nclass A:\n    'doc'\n    x = 1\n    def f(self): return self.x\nA().f(), A.__module__, A.__qualname__, A.__doc__",
    "dataclass": "@\nfrom dataclasses import dataclass\n@dataclass(order=True)\nclass P:\n    x: int\n    y: float = 1.0\nP(1), P(1) < P(2), P.__annotations__",
    "dataclass-later": "@\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n---\n@\np = P(3)\ntype(p) is P, p",
    "function-attributes": "@\ndef f(a: int, b=2, *c, d: str = 'x', **e) -> float:\n    'doc'\n    return a\nimport inspect\nstr(inspect.signature(f)), f.__doc__, f.__module__, f.__qualname__, f.__defaults__, f.__kwdefaults__, f.__annotations__",
    "getsource": "@\ndef f(a):\n    # a comment\n    return a\n---\nimport inspect\ninspect.getsource(f), f.__code__.co_firstlineno",
    "getsource-class": "@\nclass C:\n    def f(self):\n        return 1\n---\nimport inspect\ninspect.getsource(C.f)",
    "pickle-function": "@\nimport pickle\ndef f(x): return x + 1\npickle.loads(pickle.dumps(f))(2), pickle.loads(pickle.dumps(f)) is f",
    "pickle-object": "@\nimport pickle\nclass C:\n    def __init__(self): self.x = 1\n---\n@\npickle.loads(pickle.dumps(C())).x, type(pickle.loads(pickle.dumps(C()))) is C",
    "redefinition": "@\ndef f(): return 1\nf()\n---\ndef f(): return 2\n---\n@\nf()\n---\n@\ndef f(): return 3\nf()\n---\nf()",
    "decorator": "@\nimport functools\ndef twice(f):\n    @functools.wraps(f)\n    def g(*a):\n        return f(f(*a))\n    return g\n@twice\ndef inc(x): return x + 1\ninc(1), inc.__name__",
    "generator": "@\ndef gen():\n    yield 1\n    yield 2\nlist(gen())",
    "match": "@\nmatch (1, 2):\n    case (a, b) if b > 1:\n        print(a, b)\n    case _:\n        print('no')",
    "with-try": "@\nimport contextlib\nwith contextlib.suppress(ValueError):\n    raise ValueError\ntry:\n    1 / 0\nexcept ZeroDivisionError as e:\n    print('caught', e)\nfinally:\n    print('finally')\n'end'",
    "exc-info": "@\nimport sys\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    pass\nsys.exc_info()",
    "future-annotations": "@\nfrom __future__ import annotations\ndef f(x: undefined): ...\nf.__annotations__\n---\ndef g(x: also_undefined): ...\n---\n@\ndef h(x: undefined_too): ...\nh.__annotations__",
    "future-and-doc": "@\n'doc'\nfrom __future__ import annotations\nx: undefined = 1\n---\n__annotations__",
    "await": "@\nimport asyncio\nawait asyncio.sleep(0)\nasync def f(): return 5\nx = await f()\nx\n---\nx",
    "await-only": "@\nasync def f(): return 5\nawait f()",
    "async-for": "@\nasync def gen():\n    yield 1\n    yield 2\nasync for x in gen():\n    print(x)\n[x async for x in gen()]",
    "async-with": "@\nclass A:\n    async def __aenter__(self): return 1\n    async def __aexit__(self, *a): print('exit')\nasync with A() as a:\n    print(a)",
    "await-raises": "@\nasync def f():\n    raise ValueError('no')\nawait f()",
    "magic-line": "@\n%who_ls int\nx = 1\n%who_ls int",
    "magic-assign": "@\nx = %who_ls str\nx",
    "magic-in-loop": "@\nfor i in range(2):\n    %matplotlib --list\n    print(i)",
    "time-line": "@\n%time x = 3\nx",
    "time-line-in-loop": "@\nfor i in range(2):\n    %time x = i\n    print(x)\nx",
    "time-line-value": "@\nx = %time 1 + 1\n%time x",
    "time-line-in-function": "@\ndef f():\n    y = 1\n    %time z = y\nf()\n'z' in globals()",
    "timeit-line": "@\nx = [2]\n%timeit -n1 -r1 -q x.append(1)\nx",
    "prun-line": "@\n%prun -q x = 3\nx",
    "env": "@\nfor name in ('a', 'b'):\n    %env DAIFU_TEST=$name\n    print(name)",
    "alias": "@\n%alias say echo %s\n%alias_magic t time\n%t x = 4\nx",
    "shell-assign": "@\nx = !echo a\nx",
    "shell-expands": "@\nword = 'b'\nx = !echo {word} $word\nx.n",
    "help": "@\nx = 1\nprint('before')",
    "capture": "%%capture out\n@\nprint('a')\n5\n---\nout.stdout, out.outputs",
    "time": "%%time\n@\nx = [1]\nprint(x)\nx",
    "time-semicolon": "%%time\n@\nx = [1]\nx;",
    "time-statement": "%%time\n@\nx = [1]",
    "time-def": "%%time\n@\ndef f():\n    return 4\n---\nf()",
    "time-time": "%%time\n%%time\n@\n3",
    "syntax-error": "@\nx = = 1",
    "syntax-error-later": "@\nx = 1\nfor i in x\n    pass",
    "indentation-error": "@\nx = 1\n  y = 2",
    "return-outside": "@\nprint('before')\nreturn 3\nprint('after')",
    "await-in-def": "@\ndef f():\n    await g()\n",
    "break-outside": "@\nx = 1\nbreak",
    "duplicate-argument": "@\nprint('ran')\ndef f(a, a): pass",
    "global-annotated": "@\ndef f():\n    global x\n    x: int = 1",
    "incomplete": "@\nx = (1,\n",
    "bad-magic": "@\nx = 1\n%no_such_magic\n",
    "syntax-warning": "@\nx = 1\nx is 1",
    "warning": "@\nimport warnings\nwarnings.warn('careful')\n---\n@\nx = 1",
    "error": "@\nx = 1\nx / 0\nx = 2",
    "error-in-function": "@\ndef f(x):\n    return 1 / x\n\ndef g():\n    return f(0)\ng()",
    "error-earlier-function": "def f(x):\n    y = 3\n    return y / x\n---\n@\nf(1)\nf(0)",
    "error-in-class-body": "@\nclass A:\n    x = 1 / 0",
    "error-in-comprehension": "@\n[1 / x\n for x in (1, 0)]",
    "error-long-statement": "@\nx = max(\n    1,\n    undefined,\n)",
    "error-one-line": "@\nx = 1; y = undefined; z = 3",
    "error-in-with": "@\nclass M:\n    def __enter__(self): return self\n    def __exit__(self, *a): print('exit', a[0])\nwith M() as m:\n    1 / 0",
    "error-in-finally": "@\ntry:\n    1 / 0\nfinally:\n    print('finally')",
    "error-in-handler": "@\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    undefined",
    "error-from": "@\ntry:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e",
    "error-in-loop": "@\nfor i in range(3):\n    print(i)\n    if i == 1:\n        raise ValueError(i)",
    "error-in-library": "@\nimport json\njson.loads('{')",
    "error-group": "@\nraise ExceptionGroup('g', [ValueError(1)])",
    "error-in-nested": "@\ndef outer():\n    def inner():\n        raise ValueError('x')\n    return inner\nouter()()",
    "error-in-generator": "@\ndef gen():\n    yield 1\n    raise ValueError('x')\nlist(gen())",
    "error-time": "%%time\n@\nx = 1\nprint(x)",
    "error-with-notes": "@\ne = ValueError('x')\ne.add_note('a note')\nraise e",
    "stop-iteration": "@\nnext(iter([]))",
    "system-exit": "@\nraise SystemExit(2)",
    "keyboard-interrupt": "@\nraise KeyboardInterrupt",
    "usage-error": "@\nfrom IPython.core.error import UsageError\nraise UsageError('wrong')",
    "render-traceback": "@\nclass E(Exception):\n    def _render_traceback_(self): return ['mine']\nraise E",
    "handled-then-fine": "@\ntry:\n    undefined\nexcept NameError as e:\n    err = e\nprint(repr(err), err.__traceback__.tb_lineno, err.__context__)",
    "input-transformer-text": "@\nprint('%%daifu')",
    "nested-run-cell": "@\nget_ipython().run_cell('y = 5').success\n---\ny",
    "nested-run-cell-error": "@\nget_ipython().run_cell('1/0').success",
    "run-line-magic": "@\nget_ipython().run_line_magic('who_ls', 'int')",
    "whole-in-brackets": "@\n(\n 1 +\n 2\n)",
    "many-statements": "@\n" + "\n".join(f"x{i} = {i}" for i in range(300)) + "\nx299",
    "deep-nesting": "@\n" + "\n".join("    " * i + "if 1:" for i in range(18)) + "\n" + "    " * 18 + "x = 1",
}  # fmt: skip


def cells_of(row: str, first: str) -> list[str]:
    return [("\n" + cell).replace("\n@", f"\n{first}", 1)[1:] for cell in row.split("\n---\n")]


def played(row: str, *, protected: bool) -> tuple[list[object], dict[str, object], list[str]]:
    seen: list[object] = []
    with Notebook(loaded=protected) as notebook, repair_with(lambda crash: Abort()):
        for cell in cells_of(row, MARKER if protected else PLAIN):
            one = notebook.run(cell)
            one.stdout = without_report(one.stdout)
            seen.append(one)
        return seen, notebook.names, [normal(cell) for cell in notebook.shell.user_ns["In"]]


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_it_is_the_plain_cell(row):
    plain, protected = played(row, protected=False), played(row, protected=True)
    for mine, theirs in zip(protected[0], plain[0], strict=True):
        assert mine == theirs
    assert protected[1] == plain[1]
    assert protected[2] == plain[2]


INTERACTIVITY = {
    "expressions": "@\n1\nx = 2\nx\nif 1:\n    'in if'\nfor i in range(2):\n    i\n'last'",
    "no-expression": "@\n1\nx = 2",
    "compound-last": "@\n1\nfor i in range(2):\n    i\n    def f():\n        i\n    class C:\n        i",
    "assignment": "@\n3\nx = 2",
    "two-targets": "@\n3\nx = y = 2",
    "augmented": "@\nx = 2\nx += 1",
    "annotated": "@\nx: int = 2",
    "unpacked": "@\nx, y = 1, 2",
    "none": "@\n1\nNone",
    "texts": "@\n'a'\nx = 1\n'b'\n---\n__doc__",
    "error": "@\n1\nfor i in (1, 0):\n    1 / i\n2",
    "await": "@\nasync def f(): return 5\nawait f()\nx = await f()\n'a'",
    "time": "%%time\n@\n1\n'a'\nx = 2",
    "time-value": "%%time\n@\nx = 2\n1\nx",
}  # fmt: skip


@pytest.mark.parametrize("mode", ["all", "last", "last_expr", "none", "last_expr_or_assign"])
@pytest.mark.parametrize("row", INTERACTIVITY.values(), ids=INTERACTIVITY.keys())
def test_what_is_displayed(row, mode, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setattr(InteractiveShell, "ast_node_interactivity", mode)
    test_it_is_the_plain_cell(row)


@pytest.mark.parametrize("row", ["@\n1", "@\nx = 1\nx", "@\n'text'\n---\n__doc__", "@\nfor i in (1, 2):\n    i\ni"])
def test_silent_cells(row):
    made = []
    for protected in (False, True):
        with Notebook(loaded=protected) as notebook:
            for cell in cells_of(row, MARKER if protected else PLAIN):
                made.append((protected, notebook.run(cell, silent=True, store_history=False)))
            made.append((protected, notebook.names))
    assert [m for p, m in made if p] == [m for p, m in made if not p]

"""A protected cell in a real kernel: its messages are those of the plain cell, one by one.

Three kernels run the same notebook: a plain one, one in which cells have ``%%daifu`` on top, one with ``%daifu auto``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.magic.kernel import ABORTING, Kernel
from tests.magic.notebook import MARKER, PLAIN, without_report

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

# Cells of a notebook, separated by ---; @ is the line where %%daifu stands, and in the other kernels a comment.
SAME = {
    "value": "@\nx = 1\nprint('a')\nx + 1",
    "out": "@\n41\n---\n@\n_ + 1\n---\n@\n_, __, ___, sorted(Out)[-2:], _oh is Out",
    "in": "@\nx = 1\n---\n@\nIn[-2].splitlines()[1:], _i.splitlines()[1:], _ii.splitlines()[1:], len(In) == get_ipython().execution_count",
    "semicolon": "@\nx = 1\nx;",
    "display": "@\nfrom IPython.display import HTML, display\ndisplay(HTML('<b>b</b>'))\nHTML('<i>i</i>')",
    "rich": "@\nclass R:\n    def _repr_html_(self): return '<b>'\n    def _repr_latex_(self): return '$x$'\n    def _repr_mimebundle_(self, **k): return {'x/y': 'z'}\nR()",
    "ipython-display": "@\nclass R:\n    def _ipython_display_(self): print('mine')\nR()",
    "repr-raises": "@\nclass R:\n    def __repr__(self): raise ValueError('no')\nR()",
    "stderr": "@\nimport sys\nprint('e', file=sys.stderr)\nprint('o')",
    "await": "@\nimport asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 3\nprint(await f())\nawait f()",
    "task": "@\nimport asyncio\nasync def f():\n    return 3\nawait asyncio.gather(asyncio.create_task(f()), f())",
    "task-outlives": "@\nimport asyncio\nasync def later():\n    await asyncio.sleep(0)\n    return 'late'\ntask = asyncio.create_task(later())\n---\n@\nawait task",
    "task-fails": "@\nimport asyncio\nasync def fails():\n    raise ValueError('late')\ntask = asyncio.create_task(fails())\n---\n@\nawait task",
    "async-for": "@\nasync def agen():\n    yield 1\n    yield 2\nasync for i in agen():\n    print(i)\n[i async for i in agen()]",
    "async-with": "@\nfrom contextlib import asynccontextmanager\n@asynccontextmanager\nasync def m():\n    yield 1\n    print('left')\nasync with m() as v:\n    print(v)",
    "no-autoawait": "%autoawait False\n---\n@\nx = 1\nawait x\n---\n%autoawait True",
    "shell": "@\n!echo a\nx = !echo b\nx",
    "shell-in-loop": "@\nfor i in range(2):\n    !echo {i} $i\nx",
    "shell-fails": "@\n!exit 3\n_exit_code",
    "magic": "@\n%who_ls no_such_type\n%pinfo len",
    "magic-value": "@\nx = %pwd\nx == get_ipython().run_line_magic('pwd', '')",
    "help": "@\nlen?",
    "help-source": "@\ndef helped(a, b=1):\n    'What it does.'\n    # a comment\n    return a\n---\n@\nhelped??\nhelped?\nhelp(helped)",
    "help-class": "@\nclass Helped:\n    'A class.'\n    def m(self, x: int) -> str:\n        'A method.'\n---\n@\nHelped??\nHelped.m?\nhelp(Helped)",
    "help-pattern": "@\nhelp*?",
    "automagic": "@\npwd = 3\npwd",
    "automagic-line": "who_ls no_such_type",
    "autocall": "%autocall 1\n---\n@\nx = 1\nlen 'abc'\n---\nlen 'abc'\n---\n%autocall 0",
    "time": "%%time\n@\nprint('a')\n3",
    "time-line": "@\n%time x = 3\n%time x + 1",
    "capture": "%%capture out\n@\nprint('a')\n3\n---\nout.stdout, out.outputs[0].data",
    "capture-inside": "@\nfrom IPython.utils.capture import capture_output\nwith capture_output() as c:\n    print('a')\nc.stdout",
    "timeit": "@\nran = []\n%timeit -n2 -r1 -q ran.append(1)\nlen(ran)",
    "timeit-cell": "ran = []\n---\n%%timeit -n2 -r1 -q\nran.append(1)\n---\nlen(ran)",
    "timeit-setup": "%%timeit -n1 -r1 -q n = 3\nran.append(n)\n---\nran[-1]",
    "timeit-object": "@\nr = %timeit -n1 -r1 -q -o 1 + 1\ntype(r).__name__",
    "prun": "@\ndef pr(): return 1\n%prun -q pr()",
    "prun-cell": "%%prun -q\nx = 77\n---\nx",
    "bash-cell": "%%bash\necho hello",
    "sh-fails": "%%bash\necho hello\nexit 3",
    "script-cell": "%%script cat\nsome text",
    "html-cell": "%%html\n<b>b</b>",
    "writefile": "%%writefile {FOLDER}/written.py\ny = 5\ndef w():\n    return y\nif __name__ == '__main__':\n    print('main', __file__[-10:])\n---\n%run {FOLDER}/written.py\n---\n@\n%run -i {FOLDER}/written.py\nw()\n---\n@\n%run -n {FOLDER}/written.py",
    "run-fails": "%%writefile {FOLDER}/fails.py\ndef w(x):\n    return 1 / x\nw(0)\n---\n@\n%run {FOLDER}/fails.py\nprint('after')",
    "run-exits": "%%writefile {FOLDER}/exits.py\nimport sys\nsys.exit(2)\n---\n@\n%run {FOLDER}/exits.py",
    "import-file": "@\nimport sys\nsys.path.insert(0, '{FOLDER}')\nimport written\nwritten.w()\n---\n@\nsys.path.remove('{FOLDER}')",
    "own-cell-magic": "@\nfrom IPython.core.magic import register_cell_magic\n@register_cell_magic\ndef shout(line, cell):\n    print(line, cell.upper())\n    return 4\n---\n%%shout now\nx = 1",
    "own-cell-magic-runs": "@\n@register_cell_magic\ndef again(line, cell):\n    get_ipython().run_cell(cell)\n    get_ipython().run_cell(cell)\n---\n%%again\nx = 1\nx",
    "own-cell-magic-ex": "@\n@register_cell_magic\ndef ex(line, cell):\n    get_ipython().ex(cell)\n---\n%%ex\nx = 15\n1 / (x - 15)",
    "own-line-magic": "@\nfrom IPython.core.magic import register_line_magic, needs_local_scope\n@register_line_magic\n@needs_local_scope\ndef here(line, local_ns=None):\n    return sorted(n for n in local_ns if 'daifu' in n), local_ns is globals()\n---\n@\nz = %here\nz",
    "nested-run-cell": "@\nr = get_ipython().run_cell('nested = 5\\nnested', store_history=True)\nr.result, r.success",
    "nested-fails": "@\nr = get_ipython().run_cell('1 / 0')\nr.success",
    "history": "@\nx = 'seen'\n---\n%history -l 2\n---\n@\n%history -n -l 1",
    "recall": "@\nx = 123\n---\n%rerun\n---\n%recall",
    "macro": "@\nmacro_ran = 1\nprint('in macro')\n---\n%macro mac -q {COUNT}\n---\nmac",
    "who": "%reset -f\n---\n@\na_name = 1\ndef b_name(): pass\n---\n%who\n---\n@\n%whos",
    "reset": "@\nx = 1\n%reset -f\n'x' in globals()",
    "reset-out": "@\n5\n---\n@\n%reset -f out\nlen(Out)",
    "xdel": "@\nx = []\n%xdel x\n'x' in globals()",
    "cd": "@\nimport os\nbefore = os.getcwd()\n%cd -q /\nos.getcwd()\n---\n@\n%cd $before\nos.getcwd() == before",
    "env": "@\n%env NO_SUCH_NAME_1=3\nimport os\nos.environ['NO_SUCH_NAME_1']",
    "alias": "@\n%alias sayit echo %s\n%sayit 3",
    "clear": "@\nfrom IPython.display import clear_output\nprint('a')\nclear_output()\nprint('b')",
    "progress": "@\nfrom IPython.display import display\nh = display('a', display_id='id')\nh.update('b')",
    "displayhook": "@\nimport sys\nsys.displayhook(3)\n4",
    "own-displayhook": "@\nimport sys\nhook = sys.displayhook\nsys.displayhook = lambda v: print('hook', v)\n5\n---\n@\nsys.displayhook is hook",
    "syntax-error": "@\nx = 1\nfor i in x\n    pass",
    "indentation-error": "@\nif 1:\nx = 2",
    "unexpected-indent": "@\nx = 1\n   y = 2",
    "tab-error": "@\nif 1:\n        x = 1\n\ty = 2",
    "return-outside": "@\nx = 1\nreturn x",
    "unclosed": "@\nx = 'abc",
    "bad-magic": "@\nx = 1\n%no_such_magic\nx = 2",
    "bad-cell-magic": "%%no_such_magic\nx = 2",
    "null-byte": "@\nx = '\0'",
    "leading-indent": "@\n    x = 1\n    x",
    "prompts": "@\n>>> x = 4\n>>> x",
    "ipython-prompts": "@\nIn [1]: x = 4\n\nIn [2]: x",
    "error": "@\ndef f(x):\n    return [\n        1,\n        1 / x]\n\nfor i in (1, 0):\n    f(i)",
    "error-await": "@\nasync def f(x):\n    return 1 / x\n\nawait f(0)",
    "error-chained": "@\ntry:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError('v') from e",
    "error-context": "@\ndef a():\n    try:\n        {}['k']\n    finally:\n        undefined_name\na()",
    "error-group": "@\ndef g():\n    raise ExceptionGroup('g', [ValueError(1), TypeError('t')])\ng()",
    "error-notes": "@\ndef n():\n    e = ValueError('x')\n    e.add_note('a note')\n    raise e\nn()",
    "error-in-library": "@\nimport json\njson.loads('{')",
    "error-recursion": "@\nimport sys\ndef rec(n): return rec(n + 1)\nlimit = sys.getrecursionlimit()\ntry:\n    rec(0)\nexcept RecursionError as e:\n    print(e)",
    "error-recursion-shown": "@\nsys.setrecursionlimit(200)\nrec(0)\n---\n@\nsys.setrecursionlimit(limit)",
    "error-in-old-function": "@\ndef old(x):\n    y = 3\n    return y / x\n---\n@\nx = 1\nold(0)",
    "error-redefined": "@\ndef re(x):\n    return 1 / x\nfirst = re\n---\n@\ndef re(x):\n    return 2 / x\n---\n@\nfirst(0)\n---\n@\nre(0)",
    "error-name": "@\nundefined_nam = 1\nundefined_name",
    "error-attribute": "@\nimport os\nos.getcw()",
    "error-import": "@\nfrom os import getcw",
    "error-own-str": "@\nclass E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    "error-lambda": "@\n(lambda x: 1 / x)(0)",
    "error-exec": "@\nexec('1 / 0')",
    "error-eval": "@\neval('1 / 0')",
    "error-compile": "@\ncompile('x = = 1', '<mine>', 'exec')",
    "error-exec-function": "@\nexec('def made(x):\\n    return 1 / x')\nmade(0)",
    "error-generator": "@\ndef gen():\n    yield 1\n    raise ValueError('g')\nlist(gen())",
    "error-class": "@\nclass A:\n    x = 1\n    y = 1 / 0",
    "error-decorator": "@\ndef deco(f): return 1 / 0\n@deco\ndef decorated(): pass",
    "error-with": "@\nimport contextlib\n@contextlib.contextmanager\ndef cm():\n    try:\n        yield\n    finally:\n        print('out')\nwith cm():\n    1 / 0",
    "error-assert": "@\nx = [1]\nassert x == [2], 'not two'",
    "error-comprehension": "@\n[1 / i for i in (1, 0)]",
    "error-thread": "@\nimport threading\ndef in_thread(): 1 / 0\ndef show(args): print(args.exc_type.__name__, args.exc_traceback.tb_next.tb_lineno if args.exc_traceback.tb_next else None)\nbefore, threading.excepthook = threading.excepthook, show\nt = threading.Thread(target=in_thread)\nt.start()\nt.join()\nthreading.excepthook = before",
    "error-pool": "@\nfrom concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(1) as pool:\n    future = pool.submit(in_thread)\nfuture.result()",
    "print-exc": "@\nimport traceback\ndef pe():\n    try:\n        1 / 0\n    except ZeroDivisionError:\n        traceback.print_exc()\npe()\ntraceback.print_stack(limit=1)",
    "format-stack": "@\nimport traceback\ndef fs(): return [(s.name, s.line) for s in traceback.extract_stack()[-2:]]\nfs()",
    "code-flags": "@\ndef flags(c): return [c.co_flags, *(flags(k) for k in c.co_consts if hasattr(k, 'co_flags'))]\nclass CF:\n    def m(self):\n        class I:\n            def n(self): pass\n        return lambda: [i for i in ()]\ndef cf():\n    def g(): yield\n    async def h(): pass\nflags(CF.m.__code__), flags(cf.__code__), (lambda: 0).__code__.co_flags",
    "last": "@\n1 / 0\n---\n@\nsys.last_type, sys.last_value, sys.last_traceback.tb_lineno\n---\n@\ntb = sys.last_traceback\nout = []\nwhile tb:\n    out.append((tb.tb_frame.f_code.co_name, tb.tb_lineno))\n    tb = tb.tb_next\nout[-1]",
    "tb-magic": "@\ndef t(): 1 / 0\nt()\n---\n%tb\n---\n@\n%tb",
    "xmode-plain": "%xmode Plain\n---\n@\ndef f(x):\n    y = x\n    return 1 / x\nf(0)",
    "xmode-minimal": "%xmode Minimal\n---\n@\nf(0)",
    "xmode-verbose": "%xmode Verbose\n---\n@\nglob = 3\ndef f(x):\n    y = x + glob\n    return 1 / x\nf(0)",
    "xmode-docs": "%xmode Docs\n---\n@\nf(0)",
    "xmode-context": "%xmode Context\n---\n@\nf(0)",
    "xmode-later": "@\nf(0)\n---\n%xmode Verbose\n---\n%tb\n---\n%xmode Context",
    "exit-code": "@\nraise SystemExit",
    "sys-exit": "@\nimport sys\nsys.exit('bye')",
    "sys-exit-function": "@\ndef leave():\n    sys.exit(3)\ntry:\n    leave()\nfinally:\n    print('finally')",
    "exit-name": "@\nexit\nexit.__class__.__name__",
    "keyboard-interrupt": "@\ndef ki(): raise KeyboardInterrupt\nki()",
    "usage-error": "@\n%cd /no/such/folder/xyz\n%no_such_magic",
    "syntax-warning": "@\nx = 1\nx is 1",
    "warning": "@\nimport warnings\nwarnings.warn('careful')\nfor i in range(3):\n    warnings.warn('once', stacklevel=1)",
    "warning-function": "@\ndef wf():\n    warnings.warn('in a function', stacklevel=2)\nwf()\nfor i in range(2): wf()",
    "warning-deprecated": "@\nwarnings.warn('old', DeprecationWarning)\ndef wd():\n    warnings.warn('old', DeprecationWarning, stacklevel=2)\nwd()",
    "warning-error": "@\nwith warnings.catch_warnings():\n    warnings.simplefilter('error')\n    warnings.warn('now')",
    "warning-once": "@\ndef wo(): warnings.warn('shown once', UserWarning)\nwo()\n---\n@\nwo()\n---\n@\nwo()",
    "syntax-warning-function": "@\ndef sw(x): return x is 1\n---\n@\nsw(1)",
    "warning-registry": "@\n__warningregistry__.__class__, 'version' in __warningregistry__",
    "invalid-escape": "@\nx = '\\d'\nx",
    "classes": "@\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int = 1\nimport pickle\npickle.loads(pickle.dumps(P())) == P()",
    "pickle": "@\nimport copy\ndef pf(x): return x + 1\nclass PC:\n    def m(self): return 3\n---\n@\npickle.loads(pickle.dumps(pf))(1), copy.deepcopy(pf) is pf, type(copy.copy(PC())) is PC, pickle.loads(pickle.dumps(PC().m))()",
    "cloudpickle": "@\nimport cloudpickle\ndef cp(x):\n    with open('/dev/null'):\n        return [i + x for i in range(2)]\npickle.loads(cloudpickle.dumps(cp))(1)",
    "cloudpickle-class": "@\nclass CPC:\n    def m(self, x):\n        for i in range(x):\n            if i: return i\npickle.loads(cloudpickle.dumps(CPC))().m(3)",
    "inspect": "@\nimport inspect\ndef si(a, /, b: int = 1, *c, d, **e) -> 'x':\n    # comment\n    return a\n---\n@\nprint(inspect.getsource(si))\ninspect.signature(si), inspect.getsourcelines(si)[1], inspect.getdoc(si), inspect.isfunction(si), inspect.getfullargspec(si)",
    "inspect-class": "@\nclass SC:\n    x = 1\n    def m(self):\n        return 1\n---\n@\nprint(inspect.getsource(SC.m))\nprint(inspect.getsource(SC))",
    "code-attributes": "@\ndef ca(a, b):\n    c = a\n    return lambda: c\nk = ca.__code__\nk.co_name, k.co_argcount, k.co_varnames, k.co_freevars, k.co_cellvars, k.co_firstlineno, k.co_qualname, k.co_flags",
    "bytecode-names": "@\ndef bn():\n    x = 1\n    return sorted(locals()), sorted(vars()), dir()\nbn()",
    "doctest": "@\ndef dt(x):\n    '''\n    >>> dt(1)\n    3\n    '''\n    return x + 1\nimport doctest\ndoctest.run_docstring_examples(dt, globals(), name='dt')",
    "doctest-testmod": "@\nimport io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()):\n    result = doctest.testmod()\nresult.failed",
    "redefined-class": "@\nclass RC:\n    def m(self): return 1\nrc = RC()\n---\n@\nclass RC:\n    def m(self): return 2\nrc.m(), RC().m(), isinstance(rc, RC)",
    "super": "@\nclass S1:\n    def m(self): return [1]\nclass S2(S1):\n    def m(self): return super().m() + [__class__.__name__]\nS2().m()",
    "enum": "@\nfrom enum import Enum, auto\nclass Color(Enum):\n    RED = auto()\n    def low(self): return self.name.lower()\nColor.RED, Color.RED.low(), pickle.loads(pickle.dumps(Color.RED)) is Color.RED",
    "namedtuple": "@\nfrom typing import NamedTuple\nclass NT(NamedTuple):\n    x: int\n    y: str = 'a'\nNT(1), pickle.loads(pickle.dumps(NT(1)))",
    "abc": "@\nfrom abc import ABC, abstractmethod\nclass AB(ABC):\n    @abstractmethod\n    def m(self): ...\nAB()",
    "typed-dict-protocol": "@\nfrom typing import TypedDict, Protocol, get_type_hints\nclass TD(TypedDict):\n    x: int\nclass PR(Protocol):\n    def m(self) -> int: ...\nget_type_hints(TD), TD(x=1)",
    "slots-property": "@\nclass SP:\n    __slots__ = ('__v',)\n    def __init__(self): self.__v = 1\n    @property\n    def v(self): return self.__v\n    @staticmethod\n    def s(): return 's'\n    @classmethod\n    def c(cls): return cls.__name__\nSP().v, SP.s(), SP.c()",
    "metaclass": "@\nclass Meta(type):\n    def __new__(m, n, b, d): return super().__new__(m, n, b, {k: v for k, v in d.items()} | {'names': sorted(k for k in d if 'daifu' in k)})\nclass WithMeta(metaclass=Meta):\n    x = 1\nWithMeta.names",
    "decorators": "@\nfrom functools import wraps, lru_cache, singledispatch, partial\n@lru_cache\ndef lc(x): return x\nlc(1), lc(1), lc.cache_info()",
    "singledispatch": "@\n@singledispatch\ndef sd(x): return 'any'\n@sd.register\ndef _(x: int): return 'int'\nsd(1), sd('')",
    "exec-names": "@\nexec('ex1 = 1')\neval('ex1 + 1'), [n for n in globals() if 'daifu' in n or '@' in n]",
    "exec-in-function": "@\ndef ef():\n    y = 2\n    exec('z = y')\n    return eval('y'), sorted(locals())\nef()",
    "locals-globals": "@\nlocals() is globals(), vars() is globals(), __name__, '__file__' in globals(), sorted(dir()) == sorted(globals())",
    "main": "@\nif __name__ == '__main__':\n    print('main')\nimport __main__\n__main__.__dict__ is globals(), __main__ is sys.modules['__main__'], get_ipython().user_ns is globals()",
    "file": "@\n__file__",
    "del": "@\nx = 1\ndel x\nx",
    "del-twice": "@\ndel no_such_name_ever",
    "global": "@\ndef sg():\n    global made_global\n    made_global = 1\nsg()\nmade_global",
    "global-top": "@\nglobal gt\ngt = 3\ngt",
    "star": "@\nfrom string import *\nascii_lowercase",
    "frames": "@\nimport sys\nsys._getframe().f_globals is globals(), sys._getframe().f_code.co_name, sys._getframe().f_lineno",
    "frame-file": "@\nsys._getframe().f_code.co_filename == inspect.currentframe().f_code.co_filename, inspect.getframeinfo(sys._getframe()).code_context",
    "frame-caller": "@\ndef caller():\n    f = sys._getframe(1)\n    return f.f_code.co_name, f.f_lineno, f.f_globals is globals()\nx = caller()\nx",
    "stack": "@\ninspect.stack()[0].function, inspect.stack()[0].lineno, inspect.stack()[0].code_context",
    "stack-function": "@\ndef sf(): return [s.function for s in inspect.stack()[:2]]\nsf()",
    "input": "@\nprint(input('? '))",
    "getpass": "@\nimport getpass\nlen(getpass.getpass('?? '))",
    "fork": "@\nimport multiprocessing as mp\ndef square(x): return x * x\nctx = mp.get_context('fork')\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    with ctx.Pool(1) as pool:\n        r = pool.map(square, [1, 2])\nr",
    "fork-fails": "@\ndef inverse(x): return 1 / x\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    with ctx.Pool(1) as pool:\n        try:\n            pool.map(inverse, [0])\n        except ZeroDivisionError as e:\n            print(repr(e), 'daifu' in str(e.__cause__), str(e.__cause__).count('inverse'))",
    "process-pool": "@\nfrom concurrent.futures import ProcessPoolExecutor\nwith ProcessPoolExecutor(1, mp_context=ctx) as pool:\n    r = pool.submit(square, 3).result()\nr",
    "threads": "@\nimport threading\nseen = []\ndef th(n):\n    for i in range(n): seen.append(i)\nts = [threading.Thread(target=th, args=(3,)) for _ in range(2)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nlen(seen)",
    "contextvars": "@\nimport contextvars\ncv = contextvars.ContextVar('cv', default=0)\ncv.set(5);\n---\n@\ncv.get()",
    "contextvars-await": "@\nimport asyncio\ncv.set(6)\nawait asyncio.sleep(0)\ncv.get()\n---\n@\ncv.get()",
    "generators": "@\ndef counting():\n    n = 0\n    while True:\n        n += (yield n) or 1\ng = counting()\nnext(g)\n---\n@\nnext(g), g.send(5)\n---\n@\ng.close()\nnext(g, 'closed')",
    "generator-expression": "@\nge = (i * i for i in range(3))\nnext(ge)\n---\n@\nlist(ge)",
    "loop-iterator-dies": "@\nimport weakref\nclass It:\n    def __iter__(self): return iter([1])\nit = It()\nw = weakref.ref(it)\nfor i in it: pass\ndel it\nw() is None",
    "refcount": "@\nobj = object()\nsys.getrefcount(obj)",
    "refcount-function": "@\ndef rcf(): pass\nsys.getrefcount(rcf)",
    "gc": "@\nimport gc\nclass Node: pass\nn = Node()\nwn = weakref.ref(n)\ndel n\nwn() is None",
    "gc-after-error": "@\nn = Node()\nwn = weakref.ref(n)\ndef keeps(n): 1 / 0\nkeeps(n)\n---\n@\ndel n\n1\n---\nwn() is None",
    "events": "@\nlog = []\npre, post = (lambda info: log.append(('pre', info.raw_cell.splitlines()[1:]))), (lambda r: log.append(('post', r.result, r.success)))\nget_ipython().events.register('pre_run_cell', pre)\nget_ipython().events.register('post_run_cell', post)\n---\n@\n1 + 1\n---\n@\n1 / 0\n---\nget_ipython().events.unregister('pre_run_cell', pre)\nget_ipython().events.unregister('post_run_cell', post)\nlog",
    "interactivity-all": "get_ipython().ast_node_interactivity = 'all'\n---\n@\n1\nx = 2\nx\nfor i in range(2):\n    i\nif 1: 'if'\n'last'\n---\nget_ipython().ast_node_interactivity = 'last_expr'",
    "interactivity-last": "get_ipython().ast_node_interactivity = 'last'\n---\n@\n1\nfor i in range(2):\n    i\n---\nget_ipython().ast_node_interactivity = 'last_expr'",
    "interactivity-assign": "get_ipython().ast_node_interactivity = 'last_expr_or_assign'\n---\n@\n1\nx = 2\n---\n@\nx += 1\n---\nget_ipython().ast_node_interactivity = 'last_expr'",
    "interactivity-none": "get_ipython().ast_node_interactivity = 'none'\n---\n@\n1\n2\n---\nget_ipython().ast_node_interactivity = 'last_expr'",
    "ast-transformer": "@\nimport ast\nclass Negate(ast.NodeTransformer):\n    def visit_Constant(self, node):\n        return ast.copy_location(ast.Constant(-node.value), node) if isinstance(node.value, int) else node\nnegate = Negate()\nget_ipython().ast_transformers.append(negate)\n---\n@\n5\n---\n@\nget_ipython().ast_transformers.remove(negate)\n---\n5",
    "ast-transformer-raises": "@\nclass Bad(ast.NodeTransformer):\n    def visit(self, node): raise ValueError('bad')\nget_ipython().ast_transformers.append(Bad())\n---\n@\n6\n---\n@\nlen([t for t in get_ipython().ast_transformers if type(t).__name__ == 'Bad'])",
    "ast-transformer-rejects": "@\nfrom IPython.core.error import InputRejected\nclass Rejects(ast.NodeTransformer):\n    def visit(self, node):\n        if any(isinstance(n, ast.Name) and n.id == 'forbidden' for n in ast.walk(node)): raise InputRejected('no')\n        return node\nrejects = Rejects()\nget_ipython().ast_transformers.append(rejects)\n---\n@\nforbidden = 1\n---\nget_ipython().ast_transformers.remove(rejects)",
    "input-transformer": "@\ndef shouted(lines): return [line.replace('§', '42') for line in lines]\nget_ipython().input_transformers_cleanup.append(shouted)\n---\n@\n§\n---\nget_ipython().input_transformers_cleanup.remove(shouted)",
    "input-transformer-post": "get_ipython().input_transformers_post.append(shouted)\n---\n@\nx = '§'\nx\n---\nget_ipython().input_transformers_post.remove(shouted)",
    "custom-exc": "@\ndef handler(self, etype, value, tb, tb_offset=None):\n    print('custom', etype.__name__, tb.tb_next is not None)\nget_ipython().set_custom_exc((KeyError,), handler)\n---\n@\n{}['k']\n---\nget_ipython().set_custom_exc((), None)",
    "settrace": "@\ntraced = []\ndef tracer(frame, event, arg):\n    if frame.f_code.co_name == 'to_trace':\n        traced.append((event, frame.f_lineno))\n        return tracer\ndef to_trace(x):\n    y = x\n    for i in range(2):\n        y += i\n    return y\nsys.settrace(tracer)\nto_trace(1)\nsys.settrace(None)\ntraced",
    "settrace-exception": "@\ntraced = []\ndef to_trace(x):\n    try:\n        1 / x\n    except ZeroDivisionError:\n        return 'caught'\nsys.settrace(tracer)\nto_trace(0)\nsys.settrace(None)\ntraced",
    "setprofile": "@\nprofiled = []\ndef to_profile(): return 1\nsys.setprofile(lambda f, e, a: profiled.append(e) if f.f_code.co_name == 'to_profile' else None)\nto_profile()\nsys.setprofile(None)\nprofiled",
    "cprofile": "@\nimport cProfile, pstats\npr = cProfile.Profile()\npr.enable()\nto_profile()\npr.disable()\nsorted(k[2] for k in pr.getstats() and pstats.Stats(pr).stats if k[2] == 'to_profile')",
    "logging": "@\nimport logging\nlogger = logging.getLogger('daifu-test')\nrecords = []\nclass H(logging.Handler):\n    def emit(self, r): records.append((r.funcName, r.lineno))\nlogger.addHandler(H())\nlogger.propagate = False\nlogger.warning('x')\ndef lf(): logger.warning('y')\nlf()\nrecords",
    "logging-exception": "@\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    logger.exception('z')\nrecords[-1]",
    "doc": "@\n'the doc'\nx = 1\n---\n@\n__doc__",
    "annotations": "@\nax: int = 3\n---\n@\nay: 'str' = 'a'\n---\n@\n{k: __annotations__[k] for k in ('ax', 'ay')}",
    "future": "@\nfrom __future__ import annotations\ndef fut(x: undefined): ...\nfut.__annotations__\n---\n@\ndef fut2(x: also): ...\nfut2.__annotations__",
    "builtins": "@\nget_ipython, display, __builtins__.__class__, '__IPYTHON__' in dir(__builtins__)",
    "underscore-own": "@\n_ = 7\n---\n@\n_\n---\n@\ndel _",
    "no-output-none": "@\nNone",
    "long": "@\nlist(range(2000))",
    "unicode": "@\nα = 'é — ö 🎉'\nprint(α)\nα",
    "big-cell": "@\n" + "\n".join(f"b{i} = {i}" for i in range(500)) + "\nb499",
    "comments-only": "@\n# nothing",
    "empty": "",
    "match": "@\nmatch (1, 2):\n    case (a, b) if b > 1:\n        print(a, b)",
    "type-params": "@\nfrom typing import Generic, TypeVar\nT = TypeVar('T')\nclass GT(Generic[T]): pass\nGT[int]",
    "pdb-off": "%pdb off\n---\n@\ndef pd(x):\n    return 1 / x\npd(0)",
    "pdb-on": "%pdb on\n---\n@\ndef pd(x):\n    y = 5\n    return y / x\npd(0)\n---\n%pdb off",
    "debug": "@\nout = 3\ndef de(x):\n    y = 5\n    return y / x\n\nde(0)\n---\n%debug",
    "debug-in-cell": "@\n%debug",
    "breakpoint": "@\nimport pdb\ndef bp():\n    y = 5\n    pdb.set_trace()\n    return y\nbp()",
    "debug-assign": "@\nx = 3\ndef da(): 1 / 0\nda()\n---\n%debug\n---\n@\nx",
    "breakpoint-assign": "@\nimport pdb\nx = 3\ndef stops():\n    pdb.set_trace()\n    return 1\ny = stops()\nx, y\n---\n@\nx, new_name",
    "debug-statement": "@\n%debug de(1)",
    "run-debug": "%%debug\nx = 1",
}  # fmt: skip

TYPED = {
    "input": ["typed"],
    "getpass": ["secret"],
    "pdb-on": ["p y, x", "up", "p sorted(n for n in locals() if 'daifu' in n)", "l", "w", "q"],
    "debug": ["p y, x", "w", "u", "p out", "l", "a", "d", "a", "ll", "q"],
    "debug-in-cell": ["p y", "q"],
    "breakpoint": ["p y", "a", "n", "c"],
    "debug-assign": ["up", "x = 7", "p x", "q"],
    "breakpoint-assign": ["up", "x = 7", "new_name = 1", "p x, new_name", "for i in range(2): new_name += i", "c"],
    "debug-statement": ["s", "s", "p x", "c"],
    "run-debug": ["c"],
}


@pytest.fixture(scope="module")
def kernels() -> Iterator[dict[str, Kernel]]:
    load = ("%load_ext daifu_ipy", ABORTING)
    made = {"plain": Kernel(), "marked": Kernel(*load), "auto": Kernel(*load, "%daifu auto on")}
    yield made
    for kernel in made.values():
        kernel.stop()


def played(kernel: Kernel, row: str, first: str, typed: list[str] | None, folder: str) -> list[dict[str, Any]]:
    sent = []
    for cell in row.replace("{FOLDER}", folder).split("\n---\n"):
        code = f"\n{cell}".replace("\n@", f"\n{first}", 1)[1:]
        asks = typed is not None and re.search(r"input|getpass|set_trace|%debug|pd\(0\)", cell)
        sent += kernel.run(code, typed=typed if asks else None)
    return [message for message in map(without, json.loads(json.dumps(sent).replace(folder, "FOLDER"))) if message]


def without(message: dict[str, Any]) -> dict[str, Any]:
    """A message without the marks by which the notebooks differ."""
    if message["type"] != "stream":
        return message
    text = without_report(message["text"]).replace(f"{MARKER}\n", f"{PLAIN}\n")
    return message | {"text": text} if text else {}


DIFFERENT = {
    "error-recursion": "where the stack is full, the barrier's own calls fail",
    "error-recursion-shown": "where the stack is full, the barrier's own calls fail",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(reason=DIFFERENT[name])) if name in DIFFERENT else name
        for name in SAME
    ],
)
def test_the_messages_are_those_of_the_plain_cell(kernels, name, tmp_path):
    """With a manager that always aborts, so that nothing of ours is printed."""
    seen = {}
    for kind, kernel in kernels.items():
        folder = tmp_path / kind
        folder.mkdir()
        first = MARKER if kind == "marked" else PLAIN
        seen[kind] = played(kernel, SAME[name], first, TYPED.get(name), str(folder))
    assert seen["auto"] == seen["plain"]
    assert seen["marked"] == seen["plain"]

"""Functions swapped in place: after a surgery every reference does what the same text, defined anew, does."""

from __future__ import annotations

import inspect
import linecache
import sys
import textwrap

import pytest

from daifu_ipy import Pass, Repair, Surgery
from tests.engine.modules import Answers, Module, run

pytestmark = pytest.mark.slow

# -- kinds of callables: held before the surgery, called after it

# Each row: the definitions, the edit, and expressions of callables without parameters that refer to the old objects.
# fmt: off
HEADER = "import abc, contextlib, dataclasses, enum, functools, typing\n"
KINDS = {
    "function": ("def f(): return bad('old')\n", "f", "[f, functools.partial(f), lambda: f()]"),
    "in-containers": ("def f(): return bad('old')\ntable = {'f': [f]}\ndef g(f=f): return f()\n", "f", "[table['f'][0], g]"),
    "alias": ("def f(): return bad('old')\nh = f\ndel f\n", "f", "[h]"),
    "method": ("class C:\n def f(self): return bad('old')\nc = C()\n", "C.f", "[c.f, C().f, functools.partial(C.f, c), lambda: C.f(c)]"),
    "inherited": ("class B:\n def f(self): return bad('old')\nclass C(B):\n def f(self): return super().f(), 1\nclass D(B): pass\n", "B.f", "[C().f, D().f]"),
    "attribute": ("def f(self): return bad('old')\nclass C:\n g = f\nc = C()\n", "f", "[c.g]"),
    "static": ("class C:\n @staticmethod\n def f(): return bad('old')\nc = C()\n", "C.f", "[c.f, C.f, C.__dict__['f']]"),
    "class-method": ("class C:\n @classmethod\n def f(cls): return bad('old'), cls.__name__\nclass D(C): pass\n", "C.f", "[C.f, D().f, D.f]"),
    "property": ("class C:\n @property\n def f(self): return bad('old')\nc = C()\n", "C.f", "[lambda: c.f]"),
    "setter": ("class C:\n x = 0\n @property\n def f(self): return self.x\n @f.setter\n def f(self, x): self.x = bad('old'), x\nc = C()\n", "C.f", "[lambda: (setattr(c, 'f', 1), c.x)]"),
    "cached-property": ("class C:\n @functools.cached_property\n def f(self): return bad('old')\n", "C.f", "[lambda: C().f]"),
    "partial-method": ("class C:\n def f(self, x): return bad('old'), x\n g = functools.partialmethod(f, 1)\n", "C.f", "[C().g]"),
    "wrapped": ("def deco(g):\n @functools.wraps(g)\n def inner(): return 'w', g()\n return inner\n@deco\ndef f(): return bad('old')\n", "f", "[f, f.__wrapped__]"),
    "wrapped-and-hidden": ("def deco(g):\n def inner(): return 'w', g()\n return inner\n@deco\ndef f(): return bad('old')\n", "f", "[f]"),
    "wrapper": ("def deco(g):\n def inner(): return bad('old'), g()\n return inner\n@deco\ndef f(): return 1\n", "deco", "[f, deco(f)]"),
    "cached": ("@functools.lru_cache\ndef f(): return bad('old')\n", "f", "[f]"),
    "single-dispatch": ("@functools.singledispatch\ndef f(x): return bad('old')\n@f.register\ndef _(x: int): return 'int'\n", "f", "[lambda: f(''), lambda: f(1)]"),
    "context-manager": ("@contextlib.contextmanager\ndef f(): yield bad('old')\n", "f", "[lambda: f().__enter__()]"),
    "registered": ("table = []\ndef keep(g): table.append(g)\n@keep\ndef f(): return bad('old')\n", "f", "[table[0]]"),
    "dataclass": ("@dataclasses.dataclass\nclass C:\n x: int = 1\n def f(self): return bad('old'), self.x\n", "C.f", "[C(2).f]"),
    "slots": ("@dataclasses.dataclass(slots=True)\nclass C:\n x: int = 1\n def f(self): return bad('old'), self.x\n", "C.f", "[C(2).f]"),
    "nested-class": ("class A:\n class C:\n  def __g(self): return bad('old')\n  def f(self): return self.__g()\n", "A.C._C__g", "[A.C().f]"),
    "abstract": ("class A(abc.ABC):\n @abc.abstractmethod\n def f(self): return bad('old')\nclass C(A):\n def f(self): return super().f()\n", "A.f", "[C().f]"),
    "enum": ("class E(enum.Enum):\n A = 1\n def f(self): return bad('old'), self.value\n", "E.f", "[E.A.f]"),
    "new": ("class C:\n def __new__(cls):\n  self = super().__new__(cls)\n  self.x = bad('old')\n  return self\n", "C.__new__", "[lambda: C().x]"),
    "init-subclass": ("class C:\n def __init_subclass__(cls): cls.x = bad('old')\n", "C.__init_subclass__", "[lambda: type('D', (C,), {}).x]"),
    "get-item": ("class C:\n def __getitem__(self, i): return bad('old'), i\nc = C()\n", "C.__getitem__", "[lambda: c[1]]"),
    "call": ("class C:\n def __call__(self): return bad('old')\nc = C()\n", "C.__call__", "[c]"),
    "generator": ("def f():\n yield 0\n yield bad('old')\n", "f", "[lambda: list(f())]"),
    "closures": ("def make(n):\n def f(): return bad('old'), n\n return f\na, b = make(1), make(2)\n", "make", "[a, b, make(3)]"),
    "class-in-function": ("def make(n):\n class C:\n  def f(self): return bad('old'), n\n return C\na = make(1)\n", "make", "[a().f, make(2)().f]"),
    "conditional": ("if 1:\n def f(): return bad('old')\nelse:\n def f(): return 'other'\n", "f", "[f]"),
    "twice": ("def f(): return 'first'\ng = f\ndef f(): return bad('old')\n", "f", "[f, g]"),
    "overload": ("@typing.overload\ndef f(x: int) -> int: ...\n@typing.overload\ndef f(x: str) -> str: ...\ndef f(x=0): return bad('old'), x\n", "f", "[f]"),
    "type-checking": ("if typing.TYPE_CHECKING:\n def f(): return 'never'\nelse:\n def f(): return bad('old')\n", "f", "[f]"),
}
if sys.version_info >= (3, 12):
    KINDS["generic"] = ("def f[T](x: T = 1) -> T: return bad('old'), x, T.__name__\n", "f", "[f, lambda: f(2)]")
    KINDS["generic-class"] = ("class C[T]:\n def f(self, x: T = 1) -> T: return bad('old'), x, T.__name__\n", "C.f", "[C().f, lambda: C[int]().f(2)]")
# fmt: on


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "vaccinated"])
@pytest.mark.parametrize(("source", "name", "held"), KINDS.values(), ids=KINDS)
def test_every_reference(source, name, held, plain):
    source = f"{HEADER}{source}def main(): return [call() for call in held]\n"
    new = source.replace("bad('old')", "'new'")
    example = Module(new, vaccinated=False)
    example.held = eval(held, vars(example))
    module = Module(source, vaccinated=False)
    module.held = eval(held, vars(module))
    names = ["main"] if plain else [key for key in vars(module) if key not in ("held", "log", "bad", "cm")]
    protect(module, names)
    manager = Answers(Surgery(new))
    assert run(module, manager) == example.main()
    assert (manager.left, manager.refusals) == ([], [])
    assert [call() for call in eval(held, vars(module))] == example.main()


def protect(module, names):
    import daifu_ipy

    for name in names:
        value = vars(module)[name]
        if getattr(value, "__module__", None) == module.__name__:
            try:
                daifu_ipy.vaccinate(value, strict=True)
            except (TypeError, daifu_ipy.CannotVaccinate):
                continue


# -- the header: defaults, annotations, docstring

# fmt: off
HEADERS = {
    "default-added": ("f(x)", "f(x, y=2)", "return x, y", ["f(1)", "f(1, 3)"]),
    "default-changed": ("f(x, y=1)", "f(x, y=2)", "return x, y", ["f(1)", "f(1, 3)"]),
    "expression": ("f(x, y=1)", "f(x, y=[SIZE, *range(2)])", "return x, y", ["f(1)"]),
    "keyword-only": ("f(x, y=1)", "f(x, *, y=1)", "return x, y", ["f(1)", "f(1, y=3)"]),
    "keyword-default": ("f(x, *, y=1)", "f(x, *, y=2)", "return x, y", ["f(1)", "f(1, y=3)"]),
    "positional-only": ("f(x, y=1)", "f(x, /, y=1)", "return x, y", ["f(1)", "f(1, y=3)"]),
    "removed": ("f(x, y=1, z=3)", "f(x, z=3)", "return x, z", ["f(1)", "f(1, 3)"]),
    "reordered": ("f(x, y=1, z=3)", "f(x, z=3, y=1)", "return x, y, z", ["f(1)", "f(1, 5)"]),
    "stars": ("f(x)", "f(x, *a, **k)", "return x, a, k", ["f(1)", "f(1, 5, z=3)"]),
    "annotations": ("f(x: int, y: str = 'a')", "f(x: float, y: str = 'a') -> list[SIZE]", "return x, y", ["f(1)"]),
    "docstring": ("f(x)", "f(x)", "'''New.'''\n    return x", ["f(1)"]),
}
# fmt: on


def header_of(function):
    return (
        str(inspect.signature(function)),
        function.__defaults__,
        function.__kwdefaults__,
        function.__annotations__,
        function.__doc__,
        function.__name__,
        function.__qualname__,
    )


@pytest.mark.parametrize("unit", [True, False], ids=["unit", "helper"])
@pytest.mark.parametrize(("before", "after", "body", "calls"), HEADERS.values(), ids=HEADERS)
def test_headers(before, after, body, calls, unit):
    module_of = "SIZE = 5\ndef {}:\n    {}\ndef main(): return f(1)\n".format
    doc = "" if body.startswith("'''") else "'''Old.'''\n    "
    source, new = module_of(before, "'''Old.'''\n    bad(x)\n    return x"), module_of(after, doc + body)
    example, module = Module(new, vaccinated=False), Module(source, plain=() if unit else ("f",))
    kept, text = module.f, new if unit else new[new.index("def f") : new.index("def main")]
    manager = Answers(Surgery(text))
    result = run(module, manager)
    if not unit:  # the call that runs keeps what it was called with
        assert result == example.main()
    assert manager.refusals == []
    assert header_of(kept) == header_of(example.f)
    for call in calls:
        assert eval(call, vars(module)) == eval(call, vars(example))


def test_an_unchanged_default_keeps_its_value():
    """It may have been filled since, and evaluating it may have effects."""
    source = (
        "def f(x, seen=[], key=log('key')):\n    seen.append(x)\n    bad(x)\n    return seen\ndef main(): return f(1)\n"
    )
    module = Module(source)
    new = source.replace("bad(x)", "log(x)").replace("(x, seen", "(x, *, more={}, seen")
    assert run(module, Answers(Surgery(new))) == [1]
    assert module.f(2) == [1, 2]
    assert module.lines == ["key", 1, 2]


def test_a_new_default_is_evaluated_once_and_shared_with_the_running_call():
    source = "def f(x):\n    bad(x)\n    return x\ndef main(): return f(1)\n"
    new = (
        source.replace("f(x)", "f(x, seen=log([]))", 1)
        .replace("bad(x)", "seen.append(x)")
        .replace("x\ndef", "seen\ndef")
    )
    module = Module(source)

    def look(crash):
        crash.preview(new)
        assert module.lines == []
        return Surgery(new)

    first = run(module, Answers(look))
    assert first == [1]
    assert module.f(2) is first
    assert first == [1, 2]


def test_each_closure_has_its_own_default():
    source = "def make(n):\n    def f(x=0):\n        bad(x)\n        return n, x\n    return f\na, b = make(1), make(2)\ndef main(): return a()\n"
    module = Module(source)
    new = source.replace("bad(x)", "log(x)").replace("x=0", "x=0, y=[]").replace("return n, x", "y.append(n); return y")
    assert run(module, Answers(Surgery(new))) == [1]
    assert (module.a(), module.b(), module.make(3)()) == ([1, 1], [2], [3])


METHOD = """
class C:
    SIZE = 7
    __private = 8
    def f(self, x=1):
        bad(x)
        return x
def main(): return C().f()
"""


@pytest.mark.parametrize("default", ["SIZE", "__private"])
def test_a_default_that_reads_its_class(default):
    new = METHOD.replace("x=1", f"y={default}, x=1").replace("bad(x)", "log(x)").replace("return x", "return x, y")
    module, example = Module(METHOD), Module(new, vaccinated=False)
    text = textwrap.dedent(new[new.index("    def f") : new.index("def main")])
    for given in (new, text):
        module = Module(METHOD)
        assert run(module, Answers(Surgery(given))) == example.main()
        assert header_of(module.C.f) == header_of(example.C.f)


def test_annotations_of_postponed_evaluation():
    source = "from __future__ import annotations\ndef f(x: int):\n    bad(x)\n    return x\ndef main(): return f(1)\n"
    new = source.replace("x: int", "x: int, y: Unknown[str] = 3").replace("bad(x)", "log(x)")
    module, example = Module(source), Module(new, vaccinated=False)
    assert run(module, Answers(Surgery(new))) == 1
    assert module.f.__annotations__ == example.f.__annotations__


# fmt: off
ARGUMENTS = {
    "default": ("f(x)", "f(x, y=2)", "return x, y", (), (1, 2)),
    "stars": ("f(x)", "f(x, *a, **k)", "return x, a, k", (), (1, (), {})),
    "removed": ("f(x, y=1)", "f(x)", "return x", (), 1),
    "reordered": ("f(x, y=1)", "f(y=1, x=3)", "return x, y", (), (1, 1)),
    "bound-by-an-action": ("f(x)", "f(x, y)", "return x, y", ("y = 5",), (1, 5)),
    "renamed-by-an-action": ("f(x, y=1)", "f(x, z=2)", "return x, z", ("z = y + 6",), (1, 7)),
    "a-variable": ("f(x)", "f(x, v)", "return x, v", (), (1, 9)),
    "captured": ("f(x)", "f(x, y=2)", "return x, (lambda: y)()", (), (1, 2)),
    "captured-already": ("f(x)", "f(x, y=2)", "y += 1\n    return g(), x, (lambda: y)()", (), (1, 1, 3)),
}
REFUSED = {
    "no-value": ("f(x)", "f(x, y)", "y is a new parameter without a default"),
    "renamed": ("f(x, y=1)", "f(x, z=2)", "parameter y of f is gone and z is new"),
    "kind": ("f(x, y=1)", "f(x, *y)", "y can't become another kind"),
    "unknown-name": ("f(x)", "f(x, y=unknown)", "header of f in line 1 can't be evaluated: NameError"),
    "raises": ("f(x)", "f(x, y=1/0)", "ZeroDivisionError"),
    "yields": ("f(x)", "f(x, y=(yield))", "."),
    "decorated": ("f(x)", "f(x)@", "decorators of f"),
}
# fmt: on
CALLED = "def {}:\n    v = 9\n    g = lambda: x\n    {}\ndef main(): return f(1)\n"


@pytest.mark.parametrize(("before", "after", "body", "actions", "result"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_of_the_running_call(before, after, body, actions, result):
    module = Module(CALLED.format(before, "bad(x)"))
    manager = Answers(Repair(actions, Surgery(CALLED.format(after, body))))
    assert run(module, manager) == result
    assert manager.refusals == []


@pytest.mark.parametrize(("before", "after", "reason"), REFUSED.values(), ids=REFUSED)
def test_arguments_that_can_not_be_known(before, after, reason):
    source = CALLED.format(before, "bad(x)\n    return x")
    new = CALLED.format(after.rstrip("@"), "return -x")
    module, manager = Module(source), Answers(Surgery("@log\n" + new if after.endswith("@") else new), Pass())
    before = header_of(module.f), module.f.__code__
    assert run(module, manager) == 1
    assert len(manager.refusals) == 1
    assert pytest.importorskip("re").search(reason, manager.refusals[0])
    assert (header_of(module.f), module.f.__code__) == before


def test_a_default_of_the_function_around_it_is_gone():
    source = "def make(k):\n    def f(x=1):\n        bad(x)\n        return x\n    return f\nf = make(3)\ndef main(): return f()\n"
    module, manager = Module(source), Answers(Surgery(source.replace("x=1", "x=1, y=k")), Pass())
    vars(module)["k"] = "not this one"
    assert run(module, manager) == 1
    assert "k of the function around it" in manager.refusals[0]


def test_a_default_of_the_function_around_it_that_waits():
    source = "def main(k=3):\n    def f(x=1):\n        bad(x)\n        return x\n    return f(), f()\n"
    module = Module(source)
    assert run(module, Answers(Surgery("def f(x=1, y=k):\n    log(x)\n    return x, y\n"))) == ((1, 3), (1, 3))
    assert module.main(5) == ((1, 5), (1, 5))


OUTER = "def inner(x): return bad(x)\ndef main(n=2):\n    y = inner(n)\n    return y\n"


@pytest.mark.parametrize(
    ("header", "actions", "result"),
    [("main(n=2, scale=3)", (), 6), ("main(n=2, *, scale)", ("scale = 7",), 14), ("main(n=2, *scale)", (), ())],
)
def test_arguments_of_a_call_that_waits(header, actions, result):
    new = OUTER.replace("main(n=2)", header).replace("inner(n)", "n * scale")
    module, manager = Module(OUTER), Answers(Repair(actions, Surgery(new), frame=1))
    assert run(module, manager) == result
    assert manager.refusals == []


# -- nested functions


def test_the_text_of_a_nested_function_changes_the_text_around_it():
    source = "def make(n):\n    # about f\n    def f():\n        bad(n)  # here\n        return n\n\n    return f\nf = make(1)\ndef main(): return f()\n"
    typed = "def f():\n    # mended\n    return -n\n"
    module = Module(source)
    shown = []

    def look(crash):
        shown.append(crash.preview(typed))
        return Surgery(typed)

    assert run(module, Answers(look)) == -1
    assert (shown[0].line, shown[0].statement) == (3, "return -n")
    assert (module.f(), module.make(2)()) == (-1, -2)
    whole = "def make(n):\n    # about f\n    def f():\n        # mended\n        return -n\n\n    return f\n"
    assert inspect.getsource(module.make) == whole
    assert (
        inspect.getsource(module.f)
        == inspect.getsource(module.make(2))
        == "    def f():\n        # mended\n        return -n\n"
    )


def test_closures_of_several_surgeries():
    """Whichever maker made it, and before which surgery: all run the newest text."""
    source = "def make(n):\n    def f():\n        bad(n)\n        return 'first', n\n    return f\na = make(1)\ndef main(f): return f()\n"
    module = Module(source, faults=0)
    for number, text in enumerate(["second", "third", "fourth"]):
        module.faults = 1
        made = module.make(10 + number)
        setattr(module, text, made)
        called = [module.a, made, module.make(20)][number]
        answer = f"def f():\n    bad(n)\n    return {text!r}, n\n"
        module.now = called
        manager = Answers(Surgery(answer), Pass())
        assert run(module, manager, "main(now)")[0] == text
        for function in (module.a, module.second, made, module.make(5)):
            assert function()[0] == text


def test_what_is_captured_no_more_by_a_plain_function():
    source = "def make(n):\n    def f(): return bad(n)\n    return f\nf = make(1)\ndef main(): return f()\n"
    module = Module(source, plain=("make", "f"))
    assert run(module, Answers(Surgery(source.replace("bad(n)", "'new'")))) == "new"
    assert (module.f(), module.make(2)()) == ("new", "new")


@pytest.mark.parametrize("plain", [("make", "f"), ()], ids=["plain", "vaccinated"])
def test_what_no_closure_has(plain):
    source = "def make(n, k):\n    def f(): return bad(n)\n    return f\nf = make(1, 2)\ndef main(): return f()\n"
    module, manager = Module(source, plain=plain), Answers(Surgery(source.replace("bad(n)", "n + k")), Pass())
    vars(module)["k"] = "not this one"
    assert run(module, manager) == 1
    assert "captures ['k'" in manager.refusals[0]


# -- several live frames


RECURSION = "def main(n=1):\n    if n: main(0)\n    bad(n)\n    log(('a', n))\n    return n\n"


def test_the_text_of_an_old_frame_does_not_come_back():
    """The outer call still shows the first text: edited, it would undo the inner call's surgery."""
    second = RECURSION.replace("bad(n)", "n and bad(n)")
    module = Module(RECURSION, faults=2)
    seen = []

    def old(crash):
        seen.append(crash.source)
        return Surgery(RECURSION.replace("'a'", "'c'"))

    manager = Answers(Surgery(second), old, Surgery(second.replace("'a'", "'c'")))
    assert run(module, manager) == 1
    assert seen == [RECURSION.rstrip()]
    assert "would lose" in manager.refusals[0]
    assert "bad(n)" in manager.refusals[0]
    module.lines.clear()
    module.main()
    assert module.lines == [("c", 0), ("c", 1)]


def test_what_a_surgery_has_added_is_not_lost():
    mended = RECURSION.replace("bad(n)", "n and bad(n)")
    second = mended.replace("    log", "    log('more')\n    log")
    module = Module(RECURSION, faults=2)
    manager = Answers(Surgery(second), Surgery(mended.replace("'a'", "'c'")), Pass())
    assert run(module, manager) == 1
    assert "log('more')" in manager.refusals[0]


# -- sources


def test_texts_stay_in_linecache():
    source = "def f():\n    bad(1)\n    return 3\ndef main(): return f()\n"
    module = Module(source)
    run(module, Answers(Surgery("# top\ndef f():\n    # new\n    return 4\n")))
    linecache.checkcache()
    assert inspect.getsource(module.f) == "def f():\n    # new\n    return 4\n"
    assert inspect.getsourcelines(module.f)[1] == 2
    assert module.f.__code__.co_filename.count("surgery") == 1

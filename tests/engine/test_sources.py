"""What the text of a surgery may hold: a function, a method, a class, a file, of the crashed module or of another."""

from __future__ import annotations

import inspect
import linecache
import re
import traceback
import warnings

import pytest

import daifu_ipy
from daifu_ipy import Pass, Surgery
from tests.engine.modules import Answers, Fault, Module, escaping, raised, run

pytestmark = pytest.mark.slow

# -- functions of another module

LIBRARY = """
SIZE = 3
def step(x):
    # the step
    return other.bad(x) + SIZE

class Base:
    def __len__(self): return 2

class Data(Base):
    __scale = 10

    def __getitem__(self, i):
        if i >= len(self):
            raise IndexError(i)
        return self.__scaled(other.bad(i))

    def __scaled(self, x):
        return x * self.__scale

def main():
    return "the library's"
"""
MAIN = "def main():\n    return [x for x in data], step(1)\n"


def modules():
    """A module, and the library that it uses, as one imported from a file: nothing of that is vaccinated."""
    main = Module("def nothing(): pass\n", faults=0)
    library = Module(LIBRARY, faults=0, vaccinated=False, other=main)
    main = Module(MAIN, faults=0, data=library.Data(), step=library.step)
    library.other = main
    return main, library


def edited(text):
    return text.replace("other.bad(x) + SIZE", "x + SIZE + 100")


def part(text, first, last=None):
    return text[text.index(first) : text.index(last) if last else None]


# fmt: off
LIBRARY_TEXTS = {
    "function": (edited(part(LIBRARY, "def step", "class Base")), "step(1)", [0, 10], 104),
    "file": (edited(LIBRARY), "step(1)", [0, 10], 104),
    "method": (part(LIBRARY, "    def __getitem__", "    def __scaled").replace("other.bad(i)", "i + 1"), "x", [10, 20], 4),
    "dedented-method": ("def __getitem__(self, i):\n    if i >= len(self): raise IndexError(i)\n    return self.__scaled(i + 1)\n", "x", [10, 20], 4),
    "class": (part(LIBRARY, "class Data", "def main").replace("other.bad(i)", "i + 1"), "x", [10, 20], 4),
    "file-with-a-method": (LIBRARY.replace("other.bad(i)", "i + 1"), "x", [10, 20], 4),
    "file-with-another-function": (LIBRARY.replace("x * self.__scale", "x * self.__scale + 1"), "x", [1, 11], 4),
}
# fmt: on


@pytest.mark.parametrize(("text", "crash", "items", "step"), LIBRARY_TEXTS.values(), ids=LIBRARY_TEXTS)
def test_functions_of_another_module(text, crash, items, step):
    main, library = modules()
    real, left = main.bad, [1]

    def bad(x=None):  # crashes in the first item, or in the step
        if left and (
            crash == "x"
            or (x == 1 and not isinstance(inspect.currentframe().f_back.f_locals.get("self"), library.Data))
        ):
            left.pop()
            main.faults = 1
        return real(x)

    main.bad = bad
    manager = Answers(Surgery(text))
    assert run(main, manager) == (items, step)
    assert manager.refusals == []
    assert not left
    assert library.main() == "the library's"
    assert run(main, Answers()) == (items, step)


def test_the_file_of_another_module_does_not_replace_namesakes():
    """Its ``main`` is not the main that crashed, nor its ``step`` a step of ours."""
    library = Module(
        "def step(x):\n    return other.bad(x)\ndef main():\n    return 'library'\ndef more(): pass\n", vaccinated=False
    )
    module = Module("def more():\n    return 'ours'\ndef main():\n    return lib.step(1), more()\n", lib=library)
    library.other = module
    new = "def step(x):\n    return x * 2\ndef main():\n    return 'LIBRARY'\ndef more():\n    return 'MORE'\n"
    assert run(module, Answers(Surgery(new))) == (2, "ours")
    assert (library.main(), library.more()) == ("LIBRARY", "MORE")


def test_a_library_function_of_the_same_name_is_left_alone():
    library = Module("def step(x):\n    return f(x)\n", vaccinated=False)
    module = Module(
        "def step(x):\n    return 'ours'\ndef main():\n    return lib(bad, 1), step(2)\n", lib=library.step, f=None
    )
    library.f = module.bad
    module.lib = lambda f, x: library.step(x)
    run(module, Answers(Surgery("def main():\n    return step(3)\ndef step(x):\n    return x\n")))
    assert library.step(1) == 1
    assert module.step(1) == 1


def test_several_methods_of_one_name_on_the_stack():
    source = (
        "class A:\n def f(self): return B().f()\nclass B:\n def f(self): return bad(1)\ndef main(): return A().f()\n"
    )
    module, manager = Module(source, plain=("A", "B")), Answers(Surgery("def f(self): return 2\n"), Pass())
    assert run(module, manager) == 1
    assert "give the text with its class" in manager.refusals[0]


# -- new functions

# fmt: off
NEW = {
    "beside-the-unit": ("def f():\n return bad(1)\ndef main(): return f()\n", "def f():\n return g(1)\ndef g(x, y=SIZE): return x + y\n", None),
    "before-the-unit": ("def f():\n return bad(1)\ndef main(): return f()\n", "def g(x, y=SIZE): return x + y\ndef f():\n return g(1)\n", None),
    "that-crashes-not": ("def f():\n return bad(1)\ndef main(): return f()\n", "def g(x, *, y=SIZE): return h(x) + y\ndef h(x): return x\ndef f():\n return g(1)\n", None),
    "method": ("class C:\n def f(self): return bad(1)\ndef main(): return C().f()\n", "class C:\n def f(self): return self.__g(1)\n def __g(self, x, y=4): return x + y\n", None),
    "method-with-super": ("class B:\n def g(self): return 1\nclass C(B):\n def f(self): return bad(1)\ndef main(): return C().f()\n", "class C(B):\n def f(self): return self.g()\n def g(self): return super().g() + 1\n", "class B:\n def g(self): return 1\n"),
    "annotated": ("def f():\n return bad(1)\ndef main(): return f()\n", "def f():\n return g(1)\ndef g(x: int) -> int:\n 'doc'\n return x + SIZE\n", None),
    "beside-a-helper": ("def f():\n return bad(1)\ndef main(): return f()\n", "def f():\n return g(1)\ndef g(x): return x + SIZE\n", None),
}
NOT_NEW = {
    "decorated": ("def f():\n return g()\n@log\ndef g(): return 1\n", "g does not exist"),
    "class": ("def f():\n return G()\nclass G: pass\n", "G does not exist"),
    "constant": ("SOME = 1\ndef f():\n return SOME\n", "SOME does not exist"),
    "import": ("import math, os.path as p\ndef f():\n return p.join(math)\n", "math, p does not exist"),
    "from-import": ("if 1:\n from math import floor as g\ndef f():\n return g(2)\n", "g does not exist"),
    "in-an-if": ("def f():\n return g()\nif 1:\n def g(): return 1\n", "g does not exist"),
    "taken": ("def f():\n return bad()\ndef taken(): return 1\n", "taken is no function"),
    "header": ("def f():\n return g()\ndef g(x=unknown): return 1\n", "NameError"),
}
# fmt: on


@pytest.mark.parametrize("plain", [("f", "C"), ()], ids=["plain", "vaccinated"])
@pytest.mark.parametrize(("source", "new", "before"), NEW.values(), ids=NEW)
def test_new_functions_are_defined(source, new, before, plain):
    example = Module((before or "") + new + part(source, "def main"), vaccinated=False, SIZE=2)
    module, manager = Module(source, plain=plain, SIZE=2), Answers(Surgery(new))
    assert run(module, manager) == example.main()
    assert manager.refusals == []
    assert module.main() == example.main()
    for name in ("g", "h"):
        if name in vars(example):
            ours, theirs = vars(module)[name], vars(example)[name]
            assert (ours.__module__, ours.__qualname__, ours.__doc__) == (module.__name__, name, theirs.__doc__)
            assert (inspect.signature(ours), ours.__annotations__) == (
                inspect.signature(theirs),
                theirs.__annotations__,
            )
            assert inspect.getsource(ours) == inspect.getsource(theirs)


@pytest.mark.parametrize("plain", [("f",), ()], ids=["plain", "vaccinated"])
@pytest.mark.parametrize(("new", "reason"), NOT_NEW.values(), ids=NOT_NEW)
def test_what_top_level_code_would_make(new, reason, plain):
    source = "taken = 3\ndef f():\n return bad(1)\ndef main(): return f()\n"
    module, manager = Module(source, plain=plain), Answers(Surgery(new), Pass())
    names = set(vars(module))
    assert run(module, manager) == 1
    assert re.search(reason, manager.refusals[0])
    assert set(vars(module)) == names


def test_an_action_makes_what_the_text_reads():
    source = "def f():\n return bad(1)\ndef main(): return f()\n"
    new = "import math\ndef f():\n return math.floor(2.5)\ndef main(): return f()\n"
    module, manager = Module(source), Answers(daifu_ipy.Repair(("import math",), Surgery(new)))
    assert run(module, manager) == 2
    assert manager.refusals == []


TOP_LEVEL = """
RATE = 1
class C:
    size = 2
    def f(self):
        return bad(RATE)
def main(): return C().f()
"""
EDITS = {
    "constant": ("RATE = 1", "RATE = 2", 2),
    "class-attribute": ("size = 2", "size = 3", 4),
    "base": ("class C:", "class C(dict):", 3),
    "new-class": ("def main", "class D:\n    def f(self): pass\ndef main", 7),
    "import": ("RATE = 1", "RATE = 1; import math", 2),
}


@pytest.mark.parametrize(("old", "new", "line"), EDITS.values(), ids=EDITS)
def test_top_level_code_is_said_not_to_run(old, new, line):
    module, reasons = Module(TOP_LEVEL), []

    def look(crash):
        for source in (TOP_LEVEL, TOP_LEVEL.replace(old, new)):
            reasons.append(crash.preview(source.replace("bad(RATE)", "RATE")).reason)
        return Surgery(TOP_LEVEL.replace(old, new).replace("bad(RATE)", "RATE"))

    assert run(module, Answers(look)) == 1
    assert "not run" not in reasons[0]
    assert f"top-level code is not run (line {line})" in reasons[1]
    assert (module.RATE, module.C.size) == (1, 2)


# -- notebook cells


def session(*cells, answer):
    """The log of some notebook cells, of which the second call of ``bad`` crashes, and the manager."""
    lines, calls = [], []

    def bad(x):
        calls.append(x)
        if len(calls) == 2:
            raise Fault(x)
        return x

    namespace, manager = {"bad": bad, "log": lines.append}, Answers(answer, Pass())

    def start():
        with daifu_ipy.repair_with(manager):
            for cell in cells:
                daifu_ipy.run_cell(cell, namespace)

    assert escaping(start) is None
    return lines, manager


NET = """RATE = 1
class Net:
    def __init__(self):
        self.n = 0
    def step(self, x):
        self.n += bad(x)
        return self.n
log("cell")
"""
LOOP = "net = Net()\nfor i in range(3):\n    log(net.step(i))\n"
MENDED = NET.replace("bad(x)", "10 * x")


@pytest.mark.parametrize(
    "text",
    [
        MENDED,
        part(MENDED, "class Net", "log("),
        part(MENDED, "    def step", "log("),
        MENDED.replace("RATE = 1", "RATE = 2"),
    ],
    ids=["cell", "class", "method", "cell-with-another-constant"],
)
def test_the_cell_that_defined_it(text):
    lines, manager = session(NET, LOOP, answer=Surgery(text))
    assert lines == ["cell", 0, 10, 30]
    assert manager.refusals == []


def test_a_cell_that_was_run_twice():
    """Objects of the class that the first run made, and of the second, run the new text."""
    lines, _ = session(NET, "old = Net()", NET, LOOP + "log(old.step(5))", answer=Surgery(MENDED))
    assert lines == ["cell", "cell", 0, 10, 30, 50]
    lines, _ = session(
        NET, "old = Net()", NET, LOOP.replace("Net()", "old") + "log(Net().step(5))", answer=Surgery(MENDED)
    )
    assert lines == ["cell", "cell", 0, 10, 30, 50]


def test_a_function_that_a_later_cell_has_defined_anew_is_another_one():
    first, second = "def f(x): return bad(x)\nkeep = f\n", "def f(x): return 'later'\n"
    lines, _ = session(first, second, "log(keep(0))\nlog(keep(1))\nlog(f(2))", answer=Surgery("def f(x): return -x\n"))
    assert lines == [0, -1, "later"]
    lines, _ = session(
        first, second, "bad(0)\nlog(bad(1))\nlog(keep(3))\nlog(f(2))", answer=Surgery("def f(x): return -x\n")
    )
    assert lines == [1, 3, -2]


def test_a_function_that_the_running_cell_has_still_to_define():
    """It would be defined by the old text: that is no silent wrong result."""
    cell = "def f(x): return bad(x)\nlog(f(0))\nlog(f(1))\ndef g(): return 'old'\nlog(g())\n"
    both = cell.replace("bad(x)", "-x").replace("'old'", "'new'")
    lines, manager = session(cell, answer=Surgery(both))
    assert lines == [0, 1, "old"]
    assert "g is not defined yet" in manager.refusals[0]


# -- headers that a surgery can't give


DECORATED = "class C:\n @property\n def f(self): return bad(1)\ndef main(): return C().f\n"


@pytest.mark.parametrize("plain", [("C",), ()], ids=["plain", "vaccinated"])
@pytest.mark.parametrize(
    "new",
    [DECORATED.replace(" @property\n", ""), DECORATED.replace("@property", "@staticmethod"), "def f(self): return 2\n"],
    ids=["dropped", "other", "method-alone"],
)
def test_decorators_are_not_run(new, plain):
    module, manager = Module(DECORATED, plain=plain), Answers(Surgery(new), Pass())
    assert run(module, manager) == 1
    assert "decorators of C.f" in manager.refusals[0]


# -- texts that are shown


def test_warnings_tracebacks_and_sources_name_the_new_text():
    source = "import warnings\ndef f():\n    return bad(1)\ndef main(): return f()\n"
    module = Module(source)
    first = "def f():\n    # one\n    warnings.warn('w')\n    return bad(2)\n"
    second = first.replace("# one", "# two\n    # more").replace("bad(2)", "1 / 0")
    module.faults = 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = raised(module, Answers(Surgery(first), Surgery(second), daifu_ipy.Abort()))
    assert type(error) is ZeroDivisionError
    linecache.checkcache()
    entry = traceback.extract_tb(error.__traceback__)[-1]
    assert (entry.lineno, entry.line) == (5, "return 1 / 0")
    names = [entry.filename, caught[-1].filename, inspect.getfile(module.f)]
    assert re.fullmatch(r"<daifu surgery \d+ of module_\d+>", names[0])
    assert linecache.getline(names[1], caught[-1].lineno) == "    warnings.warn('w')\n"
    assert inspect.getsource(module.f) == second
    assert inspect.getsourcelines(module.f)[1] == 1


@pytest.mark.parametrize("end", ["\f", "\x1c", "\u2028"])
def test_lines_are_those_that_the_compiler_counts(end):
    """`str.splitlines` ends a line where Python does not."""
    text = f"def main():\n    a = '{end}'\n    b = 1 / 0\n"
    seen = []

    def manager(crash):
        seen.append((crash.restart.line, crash.restart.statement, crash.source))
        return daifu_ipy.Return("3")

    with daifu_ipy.repair_with(manager):
        daifu_ipy.run_cell(f"{text}value = main()", namespace := {}, filename="<lines>")
    assert namespace["value"] == 3
    assert seen == [(3, "b = 1 / 0", text.rstrip("\n"))]
    assert linecache.getline("<lines>", 3) == "    b = 1 / 0\n"

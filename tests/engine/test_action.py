"""Actions: code run in a crashed namespace does what it would do if it stood in the unit.

The reference is CPython: the action's text is put at the end of a plain function and that function is run.
"""

from __future__ import annotations
import __future__

import gc
import linecache
import sys
import textwrap
import threading
import weakref
from types import CellType

import pytest

from daifu_ipy.engine.action import ActionResult, Namespace, run_action
from daifu_ipy.engine.action_code import compile_action


def define(setup: str, ending: str, module: dict, class_name: str | None):
    """Run ``def unit():`` with this body, in a class if one is named, and call it."""
    source = f"def unit():\n{textwrap.indent(setup, '    ')}\n{textwrap.indent(ending, '    ')}\n"
    if class_name is not None:
        source = f"class {class_name}:\n{textwrap.indent(source, '    ')}\nunit = {class_name}.unit\n"
    exec(compile(source, "<unit>", "exec", dont_inherit=True), module)
    return module["unit"]


def native(setup: str, action: str, module: dict, class_name: str | None = None) -> dict:
    """The locals of a plain function whose body is `setup` and then `action`."""
    return define(setup, f"{action}\nreturn locals()", module, class_name)()


def crashed(setup: str, module: dict, class_name: str | None = None, **more) -> Namespace:
    """The namespace of a function that was left after `setup`."""
    unit = define(setup, "return locals(), {}", module, class_name)
    code = unit.__code__
    names = ", ".join(code.co_cellvars)
    if names:
        unit = define(setup, f"return locals(), (lambda: ({names},))", module, class_name)
    bound, holder = unit()
    cells = dict(zip(holder.__code__.co_freevars, holder.__closure__, strict=True)) if names else {}
    plain = {name: value for name, value in bound.items() if name not in cells}
    local_names = frozenset(code.co_varnames + code.co_cellvars)
    return Namespace(plain, cells, module, local_names, class_name=class_name, **more)


def plain_values(values: dict) -> dict:
    """What can be compared: two runs make two functions and classes of the same name."""
    return {name: value for name, value in values.items() if not callable(value)}


SETUP = """\
words, vocab, n, total = ["the", "cat", "sat"], {"the": 0}, 3, 10
if not words:
    unbound = 1
"""

PLAIN = {
    "assign": "total = 5",
    "augmented": "total += n",
    "new name": "fresh = total * 2",
    "delete": "del total",
    "delete and bind": "del total\ntotal = n",
    "bind an unbound local": "unbound = 4",
    "unpack": "first, *rest = words",
    "chained": "a = b = total",
    "walrus": "(a := n + 1)\nb = a",
    "walrus in a comprehension": "c = [last := w for w in words]",
    "walrus of a unit's name in a comprehension": "c = [total := w for w in words]",
    "nested comprehension": (
        "new = {w: len(vocab)+n for n, w in enumerate(sorted(w for w in words if w not in vocab))}\nvocab.update(new)"
    ),
    "comprehension variable of the same name": "c = [n for n in range(2)]\nd = n",
    "comprehension variable only": "[w for w in words]",
    "comprehension in a comprehension": "c = [[total + i + j for i in range(2)] for j in range(2)]",
    "generator expression": "s = sum(total for _ in words)",
    "lambda": "f = lambda k: k + total\ntotal = 20\nv = f(1)",
    "lambda default": "fs = [lambda w=w: w for w in words]\nv = [f() for f in fs]\ndel fs",
    "nested function reads": "def f():\n    return total\ntotal = 1\nv = f()",
    "nested function writes": "def f():\n    nonlocal total\n    total = 7\nf()\nv = total",
    "nested function's own": "def f():\n    total = 7\n    return total\nv = f()",
    "nested function deletes": "def f():\n    nonlocal total\n    del total\nf()",
    "recursive function": "def fact(k):\n    return 1 if k == 0 else k * fact(k - 1)\nv = fact(n)",
    "class body": "class C:\n    t = total + 1\n    n = 9\nv = C.t, C.n, n",
    "class body annotations": "class C:\n    a: int = total\nv = C.__annotations__",
    "class body of the same name": "try:\n    class C:\n        total = total\nexcept NameError:\n    v = 1",
    "for": "for i, total in enumerate(words):\n    pass",
    "for else": "for i in []:\n    pass\nelse:\n    z = 1",
    "while": "while n:\n    n -= 1",
    "with": "import contextlib\nwith contextlib.nullcontext(5) as total:\n    v = total",
    "try": "try:\n    1 / 0\nexcept ZeroDivisionError as total:\n    v = str(total)",
    "try with a new name": "try:\n    1 / 0\nexcept ZeroDivisionError as problem:\n    v = 1",
    "match": "match {'a': 1, 'b': 2}:\n    case {'a': total, **rest}:\n        v = total",
    "match sequence": "match words:\n    case [first, *others]:\n        pass",
    "annotated": "total: int = 4\nfresh: str = 'a'\nbare: int",
    "annotated attribute": "class C: pass\nc = C()\nc.x: int = 4\nv = c.x\ndel c",
    "annotation is not evaluated": "total: no_such_name = 4",
    "import": "import os.path, math as total\nfrom math import pi as p\nv = p > 3",
    "global new": "global brand_new\nbrand_new = 1",
    "global in a nested function": "def f():\n    global RATE\n    RATE = 5\nf()\nv = RATE",
    "reads a global": "v = RATE + total",
    "locals": "v = sorted(locals())",
    "dir and vars": "v = dir(), sorted(vars())",
    "eval": "v = eval('total + 1')",
    "eval in a comprehension": "v = [eval('RATE') for _ in words]",
    "docstring": "'text'\nv = 1",
    "semicolons": "a = 1; b = 2; del a",
    "decorator": "@str\ndef f(): pass\nv = isinstance(f, str)\ndel f",
    "async function": "async def f():\n    return [total async for _ in g()]\nv = f.__code__.co_freevars",
    "generator function": "def f():\n    got = yield total\n    return got\nv = list(f())",
    "empty": "",
    "only a comment": "# nothing",
    "unicode name": "ﬁ = 1\nv = fi",
}


@pytest.mark.parametrize("action", PLAIN.values(), ids=PLAIN)
def test_an_action_does_what_its_text_would_do_in_the_unit(action):
    plain_module, module = {"RATE": 2}, {"RATE": 2}
    expected = native(SETUP, action, plain_module)
    namespace = crashed(SETUP, module)
    result = run_action(action, namespace)
    assert result.error is None
    assert plain_values(namespace.visible()) == plain_values(expected)
    assert {k: module.get(k) for k in ("RATE", "total", "brand_new")} == {
        k: plain_module.get(k) for k in ("RATE", "total", "brand_new")
    }


CAPTURING = """\
best, callbacks, total = 10.0, [], 1
def note(x):
    nonlocal best
    best = min(best, x)
    return best
callbacks.append(lambda: best)
callbacks.append(lambda k=total: k)
def forget():
    nonlocal best
    del best
"""

CAPTURED = {
    "write": "best = 4.0",
    "write by an old closure": "note(2.0)\nv = best",
    "write, then an old closure reads": "best = 4.0\nv = [f() for f in callbacks]",
    "write from a comprehension": "[best := i for i in range(3)]\nv = callbacks[0]()",
    "write by a new closure": "def f():\n    nonlocal best\n    best = 0\nf()\nv = callbacks[0]()",
    "delete": "del best\ntry:\n    note(1)\nexcept NameError as e:\n    v = str(e)",
    "delete by an old closure": "forget()\ntry:\n    best\nexcept NameError:\n    v = 1",
    "new closure over old cell": "callbacks.append(lambda: best + total)\nbest = 3\nv = callbacks[-1]()",
    "locals": "v = sorted(locals())",
}


@pytest.mark.parametrize("action", CAPTURED.values(), ids=CAPTURED)
def test_captured_variables_are_written_through(action):
    expected = native(CAPTURING, action, {})
    namespace = crashed(CAPTURING, {})
    assert run_action(action, namespace).error is None
    observed = namespace.visible()
    assert plain_values({**observed, "callbacks": 0}) == plain_values({**expected, "callbacks": 0})
    if "best" in expected:
        assert observed["callbacks"][0]() == expected["callbacks"][0]()


PRIVATE = "self_, __x, _Deep__y = 1, 2, 3"


@pytest.mark.parametrize("class_name", ["Net", "_Net", "__"])
@pytest.mark.parametrize(
    "action",
    [
        "__x = 5",
        "v = __x",
        "__new = __x + 1",
        "__new: int = 1",
        "v = [__x for _ in range(2)]",
        "class C:\n    pass\nC.__z = 4\nv = sorted(k for k in vars(C) if 'z' in k)",
        "del __x",
        "global __g\n__g = 4",
    ],
)
def test_private_names_are_mangled_as_in_the_class(action, class_name):
    plain_module, module = {}, {}
    expected = native(PRIVATE, action, plain_module, class_name)
    namespace = crashed(PRIVATE, module, class_name)
    assert run_action(action, namespace).error is None
    assert plain_values(namespace.visible()) == plain_values(expected)
    assert {k for k in module if "g" in k.lower()} == {k for k in plain_module if "g" in k.lower()}


def test_private_names_may_be_given_as_they_are_written():
    namespace = Namespace({"_Net__x": 1}, local_names=frozenset({"__x", "__y"}), class_name="Net")
    assert run_action("__y = __x + 1", namespace).ok
    assert namespace.variables == {"_Net__x": 1, "_Net__y": 2}


def test_names_declared_global_in_the_unit_go_to_the_module():
    module = {"RATE": 0}
    namespace = Namespace(globals=module, local_names=frozenset({"x"}), global_names=frozenset({"RATE", "NEW"}))
    assert run_action("RATE = 2; NEW: int = [RATE for _ in (1,)][0]; x = RATE", namespace) == ActionResult()
    assert (module["RATE"], module["NEW"], namespace.variables, namespace.extras) == (2, 2, {"x": 2}, {})


def test_a_notebook_cell_is_its_module():
    module = {"total": 1}
    namespace = Namespace(globals=module, module_level=True)
    action = "fresh: int = total + 1\ndef f():\n    return fresh\n[f() for _ in range(2)]"
    assert run_action(action, namespace).value == "[2, 2]"
    assert run_action("del total", namespace) == ActionResult()
    assert (module["fresh"], "total" in module, module["__annotations__"]) == (2, False, {"fresh": int})
    assert namespace.visible()["fresh"] == 2


def test_super_and_class_work_where_the_unit_has_them():
    class Base:
        def name(self):
            return "base"

    class Net(Base):
        def name(self):
            return "net"

        def fit(self):
            return __class__

    cells = dict(zip(Net.fit.__code__.co_freevars, Net.fit.__closure__, strict=True))
    namespace = Namespace(
        {"self": Net()}, cells, class_name="Net", local_names=frozenset({"self"}), first_parameter="self"
    )
    assert run_action("super().name(), self.name(), __class__.__name__", namespace).value == "('base', 'net', 'Net')"
    assert run_action("[super().name() for _ in (1,)]", Namespace(class_name="Net")).error is not None
    assert run_action("super()", Namespace({"self": 1}, class_name="Net")).error.startswith("RuntimeError: super()")


@pytest.mark.parametrize(
    ("action", "value"),
    [
        ("total", "10"),
        ("x = 1", None),
        ("None", None),
        ("a = 1\n(a,\n 2)", "(1, 2)"),
        ("'text'", "'text'"),
        ("total if total else 0;", "10"),
        ("for i in (1,):\n    i", None),
        ("print('shown')", None),
    ],
)
def test_the_last_expression_is_the_value(action, value):
    assert run_action(action, Namespace({"total": 10})).value == value


class Evil:
    def __repr__(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Evil(), "<repr failed: KeyboardInterrupt>"),
        ([1] * 10**6, "[1, 1, 1, 1, 1"),
        ("x" * 10**7, "'xxxx"),
        (type("Big", (), {"__repr__": lambda self: "y" * 10**6})(), "yyyy"),
        (10**6000, "<"),
    ],
    ids=["raises", "list", "str", "long repr", "int"],
)
def test_the_value_is_bounded_whatever_it_is(value, shown):
    text = run_action("value", Namespace({"value": value})).value
    assert text.startswith(shown)
    assert len(text) <= 4000


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("x = 1\ny = vocab['z']", "KeyError: 'z'\n  line 2: y = vocab['z']"),
        ("1 / 0", "ZeroDivisionError: division by zero\n  line 1: 1 / 0"),
        ("def f():\n    raise OSError('gone')\nf()", "OSError: gone\n  line 2: raise OSError('gone')"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt\n  line 1: raise KeyboardInterrupt"),
        ("import sys\nsys.exit(3)", "SystemExit: 3\n  line 2: sys.exit(3)"),
        ("x = (", "SyntaxError: '(' was never closed\n  line 1: x = ("),
        ("a = 1\nreturn a", "SyntaxError: an action can't use 'return'"),
        ("if a:\n    return a", "SyntaxError: an action can't use 'return'"),
        ("x = yield 1", "SyntaxError: an action can't use 'yield'"),
        ("def f(a=(yield)): pass", "SyntaxError: an action can't use 'yield'"),
        ("yield from []", "SyntaxError: an action can't use 'yield'"),
        ("await f()", "SyntaxError: an action can't await"),
        ("async with f(): pass", "SyntaxError: an action can't await"),
        ("async for x in f(): pass", "SyntaxError: an action can't await"),
        ("[await x for x in y]", "SyntaxError: "),
        ("break", "SyntaxError: 'break' outside loop"),
        ("x\0", "SyntaxError: source code string cannot contain null bytes"),
        (
            "raise type('E', (Exception,), {'__str__': lambda s: 1/0})",
            "E: <message failed: ZeroDivisionError>",
        ),
        ("raise ValueError('m' * 10**6)", "ValueError: mmmm"),
        ("@daifu_i1 = 1", "SyntaxError: "),
    ],
)
@pytest.mark.parametrize("module_level", [False, True])
def test_an_error_is_in_the_result_with_its_line(action, error, module_level):
    namespace = Namespace({}, globals={"vocab": {}}, module_level=module_level)
    result = run_action(action, namespace)
    assert result.error.startswith(error)
    assert not result.ok
    assert len(result.error) < 1300


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("nonlocal nobody\nnobody = 1", "SyntaxError: no binding for nonlocal 'nobody' found"),
        ("from math import *", "SyntaxError: import * only allowed at module level"),
        ("unbound", "NameError: cannot access free variable 'unbound'"),
        ("nobody", "NameError: name 'nobody' is not defined"),
    ],
)
def test_errors_of_an_action_in_a_function(action, error):
    assert run_action(action, Namespace(local_names=frozenset({"unbound"}))).error.startswith(error)


def test_what_was_assigned_before_an_error_sticks():
    namespace = Namespace({"a": 1, "b": 2}, local_names=frozenset({"a", "b", "c"}))
    assert not run_action("a = 5; del b; c = 6; d = 7\nraise ValueError", namespace).ok
    assert (namespace.variables, namespace.extras) == ({"a": 5, "c": 6}, {"d": 7})


def test_extras_are_seen_by_later_actions_and_not_by_the_unit():
    namespace = Namespace({"a": 1}, local_names=frozenset({"a"}))
    run_action("helper = 4\nother = 1", namespace)
    assert run_action("a = [helper + a for _ in (1,)][0]\ndel other", namespace).ok
    assert (namespace.variables, namespace.extras) == ({"a": 5}, {"helper": 4})


def test_a_function_made_by_an_action_shares_its_variables_with_later_actions():
    namespace = Namespace({"a": 1}, local_names=frozenset({"a"}))
    run_action("k = 1\ndef get():\n    return a, k", namespace)
    assert sorted(namespace.shared) == ["a", "k"]
    assert run_action("a = 2; k = 3\nget()", namespace).value == "(2, 3)"
    namespace.variables["a"] = 9  # the run went on
    assert run_action("get()", namespace).value == "(9, 3)"
    run_action("del get, k", namespace)
    run_action("0", namespace)
    assert namespace.shared == {}


def test_a_new_name_that_hides_a_module_variable_is_said():
    namespace = Namespace(globals={"RATE": 0, "math": sys.modules["math"] if "math" in sys.modules else 0})
    assert (
        run_action("RATE = 2", namespace).note == "RATE: new, and hides the module's; to change that one: global RATE"
    )
    assert run_action("RATE = 3", namespace).note is None
    fresh = Namespace(globals={"RATE": 1})
    assert "global RATE" in run_action("RATE *= 2", fresh).note
    assert run_action("global RATE; RATE *= 2", fresh) == ActionResult()
    assert fresh.globals["RATE"] == 2


@pytest.mark.parametrize("module_level", [False, True])
def test_an_action_has_the_futures_of_its_unit(module_level):
    flags = 0b11 | __future__.annotations.compiler_flag
    namespace = Namespace(globals={}, module_level=module_level, flags=flags)
    assert run_action("def f(a: int): pass\nf.__annotations__", namespace).value == "{'a': 'int'}"


def test_importing_what_the_module_has_is_no_news():
    import math

    assert run_action("import math", Namespace(globals={"math": math})).note is None


HIDDEN = {"@daifu_i1": iter([1]), ".0": iter([2])}


@pytest.mark.parametrize("action", ["locals()", "vars()", "dir()", "list(eval('locals()'))"])
def test_hidden_names_are_neither_seen_nor_changed(action):
    namespace = Namespace(
        {**HIDDEN, "a": 1},
        {"@daifu_c": CellType(1)},
        local_names=frozenset({*HIDDEN, "a"}),
        extras={"@daifu_e": 1},
    )
    value = run_action(action, namespace).value
    assert "a" in value
    assert "@" not in value
    assert namespace.variables == {**HIDDEN, "a": 1}
    assert namespace.visible() == {"a": 1}


def test_output_is_kept_and_still_shown(capsys):
    result = run_action("print('one')\nprint('two', end='')\n3", Namespace())
    assert (result.stdout, result.value) == ("one\ntwo", "3")
    assert capsys.readouterr().out == "one\ntwo"
    assert run_action("print('x' * 100_000)", Namespace()).stdout.endswith("\n... (cut)\n")


def test_output_of_other_threads_is_shown_but_not_kept(capsys):
    def start():
        other = threading.Thread(target=print, args=("other",))
        other.start()
        other.join()

    assert run_action("start()\nprint('mine')", Namespace({"start": start})).stdout == "mine\n"
    assert capsys.readouterr().out == "other\nmine\n"


def test_output_works_without_a_stdout(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert run_action("print('one')", Namespace()).stdout == "one\n"


def test_the_source_is_found_by_tracebacks_and_a_repeated_text_keeps_its_name():
    text = "def f():\n    return 1  # found\nfilename = f.__code__.co_filename"
    first, second = Namespace(), Namespace()
    run_action(text, first)
    run_action(text, second)
    filename = first.extras["filename"]
    assert filename == second.extras["filename"]
    assert filename.startswith("<daifu action ")
    linecache.checkcache()
    assert linecache.getline(filename, 2) == "    return 1  # found\n"


def test_old_texts_are_forgotten():
    names = []
    for number in range(400):
        namespace = Namespace()
        run_action(f"name = (lambda: {number}).__code__.co_filename", namespace)
        names.append(namespace.extras["name"])
    assert sum(name in linecache.cache for name in names) <= 256
    assert names[-1] in linecache.cache


def test_a_repeated_text_is_compiled_once_for_the_same_names(monkeypatch):
    compiled = []
    monkeypatch.setattr("daifu_ipy.engine.action.compile_action", lambda *_: compiled.append(1) or compile_action(*_))
    for value in (1, 2):
        namespace = Namespace({"a": value}, local_names=frozenset({"a"}))
        assert run_action("a = a + 1  # once", namespace).ok
        assert namespace.variables == {"a": value + 1}
    run_action("a = a + 1  # once", Namespace({"a": 1, "b": 2}))
    assert len(compiled) == 2


def test_an_indented_paste_runs():
    namespace = Namespace()
    assert run_action("    a = 1\n    if a:\n        b = 2\n", namespace).ok
    assert namespace.extras == {"a": 1, "b": 2}


class Tensor:
    pass


@pytest.mark.parametrize("action", ["b = a", "1 / 0", "[a for _ in (1,)]", "print(a)\na", "f = lambda: a\ndel f"])
@pytest.mark.parametrize("module_level", [False, True])
def test_nothing_keeps_a_value_alive_that_the_namespace_dropped(action, module_level):
    module: dict = {}
    namespace = Namespace({}, globals=module, module_level=module_level)
    values = module if module_level else namespace.variables
    values["a"] = Tensor()
    alive = weakref.ref(values["a"])
    gc.disable()
    try:
        run_action(action, namespace)
        for mapping in (namespace.variables, namespace.extras, module):
            mapping.clear()
        assert alive() is None
    finally:
        gc.enable()


def test_many_variables():
    values = {f"v{i}": i for i in range(400)}
    namespace = Namespace(dict(values), local_names=frozenset(values))
    assert run_action("v399 = [v0 + v1 for _ in (1,)][0]", namespace).ok
    assert namespace.variables == {**values, "v399": 1}


def test_a_global_statement_of_the_action_reaches_past_the_units_local():
    namespace = Namespace({"total": 1}, globals={"total": 2}, local_names=frozenset({"total"}))
    assert run_action("global total\ntotal += 1\ntotal", namespace).value == "3"
    assert (namespace.variables, namespace.globals["total"]) == ({"total": 1}, 3)


def test_strings_over_lines_are_kept():
    namespace = Namespace()
    run_action('s = """a\n  b"""\n', namespace)
    assert namespace.extras == {"s": "a\n  b"}


def test_names_of_our_own_functions_are_not_in_the_way():
    namespace = Namespace({"factory": 1}, globals={"action": 2})
    assert run_action("factory, action", namespace).value == "(1, 2)"

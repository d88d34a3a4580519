"""Modules that are loaded again: what was protected is protected again, from the text that the file has now."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
import types

import pytest

import daifu_ipy
from daifu_ipy import Pass, Repair, Surgery, repair_with
from daifu_ipy.engine import versions
from daifu_ipy.engine.vaccinate import is_vaccinated
from tests.magic.notebook import Notebook

FIRST = """
    def f(x):
        return 10 / x


    def kept(x):
        return 5 / x


    class Net:
        scale = 1

        def fit(self, x):
            return self.scale / x

        @property
        def size(self):
            return self.scale

        @staticmethod
        def loss(x):
            return 3 / x
"""
SECOND = """
    import math


    def f(x):
        for y in (x,):
            return 20 / (
                y  # in a line of its own
            )


    def kept(x):
        return 5 / x


    class Net:
        scale = 2

        def fit(self, x):
            '''Fits.'''
            self.__seen = x
            return self.scale / self.__seen

        @property
        def size(self):
            return math.floor(self.scale)

        @staticmethod
        def loss(x):
            return 4 / x
"""
THIRD = SECOND.replace("20 / (", "30 / (").replace("4 / x", "6 / x")
CALLS = "f(4), helpers.f(4), net.fit(4), Net().fit(4), helpers.Net().fit(4), helpers.kept(4), Net.loss(4), net.size"
NAMES = ("f", "kept", "Net.fit", "Net.loss")


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module; each text is newer than the one before."""
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "helpers.py"
    clock = iter(range(2_000_000_000, 2_100_000_000, 100))

    def write(text: str) -> None:
        path.write_text(textwrap.dedent(text))
        now = next(clock)
        os.utime(path, (now, now))

    yield write
    sys.modules.pop("helpers", None)
    versions.clear()


MODES = {
    "explicit": (["%load_ext autoreload", "%autoreload 1", "%aimport helpers"], ""),
    "all": (["%load_ext autoreload", "%autoreload 2"], ""),
    "all in full": (["%load_ext autoreload", "%autoreload 2-"], ""),
    "complete": (["%load_ext autoreload", "%autoreload 3"], ""),
    "now": (["%load_ext autoreload"], "%autoreload now"),
    "now in full": (["%load_ext autoreload"], "%autoreload now --full"),
    "importlib": ([], "import importlib; importlib.reload(helpers)"),
    "importlib's own": (["from importlib import reload"], "reload(helpers)"),
}


def run(module, mode, *, loaded, protect=()):
    """The results of the calls, and of the text printed, with each text of the module."""
    sys.modules.pop("helpers", None)
    before, reload = MODES[mode]
    results = []
    module(FIRST)
    with Notebook(loaded=loaded) as notebook:
        notebook.runs(*before, "import helpers\nfrom helpers import f, Net\nnet = Net()", *protect)
        for text in ("", SECOND, THIRD):
            if text:
                module(text)
            said = notebook.run(reload).stdout if text and reload else ""
            seen = notebook.run(CALLS)
            assert seen.error == ""
            results.append((seen.result, said + seen.stdout, [state(notebook, name) for name in NAMES]))
            if loaded:
                assert crashing(notebook) == [seen.result] * 2
    return results


def state(notebook, name):
    """Whether a function is protected: as its module has it, and as the notebook does."""
    first, _, rest = name.partition(".")
    here = notebook.shell.user_ns.get(first, vars(sys.modules["helpers"])[first])
    values = [vars(sys.modules["helpers"])[first], here]
    return [is_vaccinated(getattr(value, rest) if rest else value) for value in values]


def crashing(notebook):
    """The calls again, with an argument that crashes each of them, and a repair that gives it the right value."""
    mending = "x = y = 4\ntry:\n    self._Net__seen = 4\nexcept NameError:\n    pass"
    with repair_with(lambda crash: Repair((mending,), Pass())):
        zero = CALLS.replace("(4)", "(0)").replace("net.fit(0), Net().fit(0), helpers.Net().fit(0)", "*fits")
        fits = notebook.run("fits = net.fit(4), Net().fit(4), helpers.Net().fit(4)")
        seen = notebook.run(zero)
        assert (fits.error, seen.error) == ("", "")
        return [seen.result, notebook.run(CALLS).result]


@pytest.mark.parametrize("mode", MODES)
def test_a_reload_gives_what_it_gives_without_protection_and_protects_again(module, mode):
    plain = run(module, mode, loaded=False)
    protected = run(module, mode, loaded=True, protect=["%daifu vaccinate helpers.f helpers.kept Net"])
    assert [result for result, _, _ in protected] == [result for result, _, _ in plain]
    for _, _, states in protected:
        current = [now for now, _ in states]
        assert current == [True] * len(NAMES)
    assert all("daifu: helpers was loaded again: protecting " in said for _, said, _ in protected[1:])


def load(notebook, module, text, *, protect="helpers", auto=True):
    """A notebook that has imported and protected a module."""
    module(text)
    notebook.runs(
        *(["%load_ext autoreload", "%autoreload 2"] if auto else []), "import helpers", "from helpers import *"
    )
    return notebook.run(f"%daifu vaccinate {protect}")


def test_autoreload_that_was_there_first(module):
    with Notebook(loaded=False) as notebook:
        notebook.runs("%load_ext autoreload", "%autoreload 2", "%load_ext daifu_ipy")
        load(notebook, module, FIRST, auto=False)
        module(SECOND)
        assert "protecting f and Net (3 methods) again" in notebook.run("helpers.f(1)").stdout
        assert state(notebook, "f") == [True, True]


def test_what_is_new_in_a_module_or_class_that_was_asked_for(module):
    with Notebook() as notebook:
        load(notebook, module, "class C:\n    def a(self): return 1\n\ndef f(): return 2\n\ndef other(): return 3")
        module(
            "class C:\n    def a(self): return 1\n    def b(self): return 4\n\ndef g(): return 5\n\ndef f(): return 2"
        )
        seen = notebook.run("helpers.C().b(), helpers.g()")
        assert (seen.result, seen.error) == ("(4, 5)", "")
        assert is_vaccinated(sys.modules["helpers"].g)
        assert is_vaccinated(sys.modules["helpers"].C.b)
        assert "daifu" not in notebook.run("1").stdout


def test_a_function_that_is_gone(module):
    with Notebook() as notebook:
        load(notebook, module, "def f(): return 1\n\ndef g(): return 2")
        module("def g(): return 3")
        assert notebook.run("f(), helpers.g(), hasattr(helpers, 'f')").result in ("(1, 3, False)", "(1, 3, True)")
        module("def g(): return 3\nf = 4")
        assert notebook.run("helpers.g(), helpers.f").result == "(3, 4)"
        assert is_vaccinated(sys.modules["helpers"].g)


@pytest.mark.parametrize("text", ["def f(:", "1 / 0\ndef f(): return 2", "import no_such_module\ndef f(): return 2"])
def test_a_module_that_can_not_be_loaded(module, text):
    with Notebook() as notebook:
        load(notebook, module, "def f(): return 1")
        module(text)
        seen = notebook.run("helpers.f(), f()")
        assert (seen.result, is_vaccinated(sys.modules["helpers"].f)) == ("(1, 1)", True)
        assert "autoreload of helpers failed" in seen.stderr
        module("def f(): return 3")
        assert notebook.run("helpers.f(), f()").result == "(3, 3)"
        assert state(notebook, "f") == [True, True]


def test_a_run_of_the_old_code_is_recovered_with_its_own_text(module):
    old = "def f(xs):\n    for x in xs:\n        yield 10 / x  # the old text\n    yield 'end'"
    with Notebook() as notebook:
        load(notebook, module, old, protect="helpers.f")
        notebook.runs("g = f([5, 0, 2])", "first = next(g)")
        module("import math\n\n\n\ndef f(xs):\n    return [math.nan]")
        assert notebook.run("f([])").result == "[nan]"
        seen = []

        def manager(crash):
            seen.append((crash.restart.statement, "# the old text" in crash.source))
            return Repair(("x = 10",), Pass())

        with repair_with(manager):
            assert notebook.run("first, *g").result == "(2.0, 1.0, 5.0, 'end')"
        assert seen == [("yield 10 / x", True)]
        assert state(notebook, "f") == [True, True]


@pytest.mark.parametrize("mode", ["%autoreload 2", "%autoreload 2-", "importlib"])
def test_a_module_that_vaccinates_its_functions_itself(module, mode):
    text = "from daifu_ipy import vaccinate\n\n@vaccinate\ndef f(x):\n    return 1 / x\n"
    with Notebook() as notebook:
        module(text)
        notebook.runs(*([] if mode == "importlib" else ["%load_ext autoreload", mode]), "import helpers")
        assert is_vaccinated(sys.modules["helpers"].f)
        module("import os\n" + text.replace("1 / x", "(2\n        / x)"))
        seen = notebook.run(
            f"{'import importlib; importlib.reload(helpers)' if mode == 'importlib' else '0'}\nhelpers.f(1)"
        )
        assert (seen.result, seen.stderr) == ("2.0", "")
        assert is_vaccinated(sys.modules["helpers"].f)


@pytest.mark.parametrize("mode", ["%autoreload 2", "%autoreload 2-", "importlib"])
def test_the_text_of_the_file_wins_over_a_surgery_and_that_is_said_once(module, mode):
    with Notebook() as notebook:
        load(notebook, module, "def f(x):\n    return 1 / x\n", auto=False)
        notebook.runs(*([] if mode == "importlib" else ["%load_ext autoreload", mode]))
        fix = "def f(x):\n    return 1 / (x or 5)\n"
        with repair_with(lambda crash: Surgery(fix)):
            assert notebook.run("f(0)").result == "0.2"
        module("def f(x):\n    y = x\n    return 1 / y\n")
        reload = "import importlib; importlib.reload(helpers)\n" if mode == "importlib" else ""
        seen = notebook.run(f"{reload}helpers.f(2)")
        line = (
            "daifu: helpers was loaded again: f runs the text of the file, without surgery 1 (%daifu diff 1 shows it)\n"
        )
        assert (seen.result, line in seen.stdout) == ("0.5", True)
        assert is_vaccinated(sys.modules["helpers"].f)
        assert "surgery" not in notebook.run("helpers.f(2)").stdout


class Walked(dict):
    """Modules that count how often they are gone through."""

    walks = 0

    def items(self):
        self.walks += 1
        return super().items()


def test_however_many_surgeries_the_modules_are_gone_through_once(module, monkeypatch):
    modules = Walked(sys.modules)
    monkeypatch.setattr("daifu_ipy.magic.reloading.sys", types.SimpleNamespace(modules=modules))
    with Notebook() as notebook:
        for name in ("a", "b"):
            notebook.run(f"def {name}(x):\n    return 1 / x")
            with repair_with(lambda crash, name=name: Surgery(f"def {name}(x):\n    return 1 / (x or 5)")):
                assert notebook.run(f"%%daifu\n{name}(0)").result == "0.2"
        assert modules.walks == 0
        load(notebook, module, "def f(x):\n    return 1 / x\n\ndef g(x):\n    return 1 / x\n")
        modules.update(sys.modules)
        for name in ("f", "g"):
            with repair_with(lambda crash, name=name: Surgery(f"def {name}(x):\n    return 1 / (x or 5)")):
                assert notebook.run(f"helpers.{name}(0)").result == "0.2"
        before = modules.walks
        notebook.run("1")
        assert modules.walks == before + 1


def test_a_file_that_has_the_text_of_the_surgery(module):
    fix = "def f(x):\n    return 1 / (x or 5)\n"
    with Notebook() as notebook:
        load(notebook, module, "def f(x):\n    return 1 / x\n")
        with repair_with(lambda crash: Surgery(fix)):
            assert notebook.run("f(0)").result == "0.2"
        module(f"\n{fix}")
        seen = notebook.run("helpers.f(0)")
        assert (seen.result, "surgery" in seen.stdout) == ("0.2", False)


def test_what_can_no_longer_be_protected_is_named_once(module):
    deep = "def f():\n" + "".join("    " * n + "try:\n" for n in range(1, 20)) + "    " * 20 + "return 2\n"
    deep += "".join("    " * n + "finally: pass\n" for n in range(19, 0, -1))
    with Notebook() as notebook:
        load(notebook, module, "def f(): return 1")
        module(deep)
        seen = notebook.run("helpers.f()")
        assert seen.result == "2"
        said = "daifu: helpers was loaded again: f runs plainly now: blocks are nested too deeply"
        assert seen.stdout.count(said) == 1
        assert "f: blocks are nested too deeply" in notebook.run("%daifu status").stdout
        assert "daifu" not in notebook.run("helpers.f()").stdout
        module("def f(): return 3")
        assert "protecting f again" in notebook.run("helpers.f()").stdout
        assert "too deeply" not in notebook.run("%daifu status").stdout


def test_what_was_left_out_stays_plain(module):
    with Notebook() as notebook:
        load(notebook, module, "class C:\n    def a(self): return 1\n    def b(self): return 2")
        notebook.run("%daifu unvaccinate helpers.C.b")
        module("class C:\n    def a(self): return 3\n    def b(self): return 4")
        assert notebook.run("C().a(), C().b()").result == "(3, 4)"
        assert [is_vaccinated(getattr(notebook["C"], name)) for name in "ab"] == [True, False]
        notebook.run("%daifu unvaccinate helpers")
        module("class C:\n    def a(self): return 5\n    def b(self): return 6")
        assert "daifu" not in notebook.run("C().a(), C().b()").stdout
        assert not is_vaccinated(notebook["C"].a)


def test_code_that_is_exchanged_by_something_else(module):
    with Notebook() as notebook:
        load(notebook, module, "def f(): return 1\n\ndef other(): return 2", protect="helpers.f", auto=False)
        notebook.run("helpers.f.__code__ = helpers.other.__code__")
        assert notebook.run("f()").result == "2"


def test_unloading_ends_it(module):
    own = importlib.reload
    with Notebook(loaded=False) as notebook:
        notebook.run("%load_ext daifu_ipy")
        assert importlib.reload is not own
        load(notebook, module, "def f(): return 1")
        notebook.run("from importlib import reload as kept")
        module("def f(): return 2")
        notebook.run("%unload_ext daifu_ipy")
        assert importlib.reload is own
        seen = notebook.run("kept(helpers)\nf()")
        assert ("daifu" in seen.stdout, is_vaccinated(sys.modules["helpers"].f)) == (False, False)
        hooks = [hook for hooks in notebook.shell.events.callbacks.values() for hook in hooks]
        assert not any("daifu" in type(getattr(hook, "__self__", hook)).__module__ for hook in hooks)


def test_functions_that_the_unloaded_extension_protected_again_are_plain(module):
    with Notebook(loaded=False) as notebook:
        notebook.run("%load_ext daifu_ipy")
        load(notebook, module, "def f(): return 1")
        module("def f(): return 2")
        notebook.run("1")
        assert is_vaccinated(sys.modules["helpers"].f)
        notebook.run("%unload_ext daifu_ipy")
        assert not is_vaccinated(sys.modules["helpers"].f)


def test_a_deep_reload(module):
    with Notebook() as notebook:
        load(notebook, module, "def f(): return 1", auto=False)
        notebook.run("import builtins, sys\nfrom IPython.lib.deepreload import reload as deep")
        module("def f(): return 2")
        notebook.run("x = deep(helpers, exclude=(*sys.builtin_module_names, *sys.stdlib_module_names, 'daifu_ipy'))")
        assert notebook.run("import helpers\nhelpers.f()").result == "2"
        assert is_vaccinated(sys.modules["helpers"].f)


def test_functions_vaccinated_by_a_program_are_protected_again(module):
    module("def f(): return 1")
    daifu_ipy.vaccinate(importlib.import_module("helpers").f)
    with Notebook() as notebook:
        notebook.runs("%load_ext autoreload", "%autoreload 2", "import helpers")
        module("def f(): return 2")
        assert notebook.run("helpers.f()").result == "2"
        assert is_vaccinated(sys.modules["helpers"].f)
        daifu_ipy.unvaccinate(sys.modules["helpers"].f)
        module("def f(): return 3")
        assert (notebook.run("helpers.f()").result, is_vaccinated(sys.modules["helpers"].f)) == ("3", False)

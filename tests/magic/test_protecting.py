"""``%daifu vaccinate NAME``: what a name may stand for, and what is said where it stands for nothing."""

from __future__ import annotations

import sys

import pytest

from daifu_ipy.engine.vaccinate import is_vaccinated
from tests.magic.notebook import Notebook

MODULE = """
import functools
import json
from os.path import join

def f(x):
    return 1 / x

def decorated(g):
    @functools.wraps(g)
    def wrapper(*args):
        return g(*args)
    return wrapper

@decorated
def wrapped(x):
    return 1 / x

class Base:
    def base(self, x):
        return 1 / x

class Net(Base, json.JSONDecoder):
    def fit(self, x):
        return 1 / x

    @staticmethod
    def loss(x):
        return 1 / x

    @classmethod
    def make(cls, x):
        return 1 / x

    @property
    def size(self):
        return 1

    short = lambda self: 1

net = Net()
bound = net.fit
partial = functools.partial(f, 1)
number = 3
"""
CELL = MODULE.replace("from os.path import join\n", "")


@pytest.fixture(params=["notebook", "module"])
def notebook(request, tmp_path, monkeypatch):
    """The same names, in the notebook and in a module of its own."""
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    with Notebook() as made:
        made.prefix = "" if request.param == "notebook" else "mine."
        made.run(CELL if request.param == "notebook" else "import mine")
        yield made
    sys.modules.pop("mine", None)


METHODS = "protecting Net (4 methods) and Base (1 method)"
NAMES = {
    "f": "protecting f",
    "wrapped": "protecting wrapped",
    "partial": "protecting f",
    "Net": METHODS,
    "net": METHODS,
    "Net.fit": "protecting Net (1 method)",
    "Net.base": "protecting Base (1 method)",
    "Net.loss": "protecting Net (1 method)",
    "Net.make": "protecting Net (1 method)",
    "Net.size": "protecting Net (1 method)",
    "net.fit": "protecting Net (1 method)",
    "bound": "protecting Net (1 method)",
}


@pytest.mark.parametrize(("name", "said"), NAMES.items())
def test_a_name_protects_and_unprotects(notebook, name, said):
    seen = notebook.run(f"%daifu vaccinate {notebook.prefix}{name}")
    assert (seen.stdout, seen.stderr) == (f"daifu: {said}\n", "")
    seen = notebook.run(f"%daifu unvaccinate {notebook.prefix}{name}")
    assert seen.stdout.endswith("no longer protected\n")
    assert notebook.run(f"%daifu unvaccinate {notebook.prefix}{name}").stdout.endswith("was not protected\n")


def test_methods_of_libraries_stay_as_they_are(notebook):
    import json

    notebook.run(f"%daifu vaccinate {notebook.prefix}Net")
    assert not is_vaccinated(json.JSONDecoder.decode)


def test_a_protected_function_recovers(notebook):
    notebook.runs(
        f"%daifu vaccinate {notebook.prefix}wrapped", "%config Daifu.rules = '* -> action \"x = 4\" then pass'"
    )
    assert notebook.run(f"{notebook.prefix}wrapped(0)").result == "0.25"


REFUSED = {
    "nope": "there is no ",
    "Net.nope": "there is no ",
    "number": "is no function, method or class of Python code, but a int",
}


@pytest.mark.parametrize(("name", "message"), REFUSED.items())
def test_what_is_no_function(notebook, name, message):
    seen = notebook.run(f"%daifu vaccinate {notebook.prefix}{name}")
    assert seen.stderr.startswith("UsageError: %daifu: ")
    assert message in seen.stderr


def test_a_lambda(notebook):
    seen = notebook.run(f"%daifu vaccinate {notebook.prefix}Net.short")
    assert seen.stdout == f"daifu: {notebook.prefix}Net.short: a lambda is left as it is; write a def\n"


@pytest.mark.parametrize("name", ["math.sin", "str.join", "length"])
def test_what_is_written_in_c(name):
    with Notebook() as notebook:
        notebook.run("import math\nstr = str\nlength = len")
        seen = notebook.run(f"%daifu vaccinate {name}")
        assert seen.stderr == f"UsageError: %daifu: {name} is written in C: there is no Python code in it to protect\n"


def test_a_module():
    with Notebook() as notebook:
        notebook.run("import tests.magic.notebook as helpers")
        helpers = notebook["helpers"]
        try:
            seen = notebook.run("%daifu vaccinate helpers")
            assert "Notebook (" in seen.stdout
            assert is_vaccinated(helpers.normal)
            assert not is_vaccinated(helpers.re.fullmatch)
        finally:
            notebook.run("%daifu unvaccinate helpers")
        assert not is_vaccinated(helpers.normal)


def test_a_function_of_a_library_is_protected_and_that_is_said():
    with Notebook() as notebook:
        notebook.run("import json")
        seen = notebook.run("%daifu vaccinate json.JSONDecoder.decode")
        assert seen.stdout == (
            "daifu: json.decoder.JSONDecoder.decode is a library's: it is protected for all who call it, "
            "the library included\ndaifu: protecting JSONDecoder (1 method)\n"
        )
        notebook.run("%daifu unvaccinate json.JSONDecoder.decode")


def test_an_object_of_a_library():
    with Notebook() as notebook:
        notebook.run("import json\ndecoder = json.JSONDecoder()")
        seen = notebook.run("%daifu vaccinate decoder")
        assert seen.stderr == (
            "UsageError: %daifu: decoder is a json.decoder.JSONDecoder, of a library; name a method of it, or the class, "
            "to protect it\n"
        )

"""``%%daifu --show`` and ``%daifu show``: the vaccinated source, with the user's own lines numbered."""

from __future__ import annotations

import ast
import re

import pytest

from daifu_ipy.engine.native import barrier_in
from daifu_ipy.magic import showing
from daifu_ipy.magic.showing import vaccinated_source
from tests.magic.notebook import Notebook

CELL = """\
import contextlib
total = 0
def f(xs):
    'Doc.'
    for a, b in xs:
        with contextlib.suppress(KeyError) as c:
            try:
                total = a / b
                if a:
                    continue
            except (ValueError, TypeError) as error:
                raise
            finally:
                print('done')
    match xs:
        case [x] if x:
            return x
        case _:
            pass
    while xs:
        break
    else:
        del xs
class Net:
    @property
    def size(self):
        return [x for x in (1, 2)]
async def g():
    async with lock:
        yield 1
f([(1, 2)])
lines = 3
lines"""


def numbered(text):
    """The numbered lines of a shown source."""
    found = (re.fullmatch(r" *(\d+)  (.*)", line) for line in text.splitlines())
    return {int(match[1]): match[2].strip() for match in found if match}


def first_lines(source):
    """The lines on which statements begin; a `global`, `try` and `except` has no line of its own in the shown text."""
    nodes = ast.walk(ast.parse(source))
    decorated = {n.decorator_list[0].lineno: n for n in nodes if getattr(n, "decorator_list", [])}
    statements = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.stmt) and not isinstance(n, ast.Try)]
    return {n.lineno for n in statements if n not in decorated.values()} | decorated.keys()


def test_a_cell_is_shown_before_it_runs_and_runs_as_ever():
    with Notebook() as notebook:
        plain = notebook.run(CELL)
    with Notebook() as notebook:
        seen = notebook.run(f"%%daifu --show\n{CELL}")
    assert (seen.result, seen.error) == (plain.result, plain.error) == ("3", "")
    assert seen.stdout.index("daifu.takeover()") < seen.stdout.rindex("\ndone\n")
    shown = numbered(seen.stdout)
    expected = {line + 1 for line in first_lines(CELL)}  # %%daifu is the first line
    decorated = {line + 1 for line in expected if "@property" in f"%%daifu\n{CELL}".splitlines()[line - 1]}
    assert expected <= shown.keys() | decorated
    typed = f"%%daifu --show\n{CELL}".splitlines()
    for number, line in shown.items():
        if re.match(r"\s*(total|if|return|raise|print|del|class|import|while|case|break)\b", typed[number - 1]):
            assert typed[number - 1].strip() == line
    for slot in ("@iterator_", "@item_", "@exit_", "@subject_", "@pending_"):
        assert slot in seen.stdout
    assert "@daifu_" not in seen.stdout
    assert "\0" not in seen.stdout


def test_a_function_is_shown_by_name():
    with Notebook() as notebook:
        notebook.runs(
            "def f(x):\n    return 1 / x\nclass C:\n    def a(self):\n        pass\n    def b(self):\n        pass",
            "%%daifu\nf",
        )
        seen = notebook.run("%daifu show f")
        assert numbered(seen.stdout) == {1: "def f(x):", 2: "return 1 / x"}
        assert notebook.run("%daifu show C").stderr == (
            "UsageError: %daifu show: C is not protected; %daifu vaccinate C protects it\n"
        )
        notebook.run("%daifu vaccinate C")
        assert numbered(notebook.run("%daifu show C").stdout) == {
            4: "def a(self):",
            5: "pass",
            6: "def b(self):",
            7: "pass",
        }
        assert "there is no nope in this notebook" in notebook.run("%daifu show nope").stderr


def test_what_is_shown_is_bounded(monkeypatch):
    monkeypatch.setattr(showing, "MOST_LINES", 20)
    with Notebook() as notebook:
        seen = notebook.run("%%daifu --show\n" + "\n".join(f"x{n} = {n}" for n in range(100)) + "\nx99")
        assert seen.result == "99"
        assert re.search(r"\n# \d+ more lines\n", seen.stdout)
        assert len(seen.stdout.splitlines()) < 30


@pytest.mark.parametrize("number", range(2))
def test_showing_changes_nothing(number):
    """The shapes are shared with the unfinished procedures that are made later."""
    with Notebook() as notebook:
        notebook.runs(
            "from contextlib import suppress\ndef f(xs):\n    for x in xs:\n"
            "        with suppress(KeyError): y = 1 / x\n    return y",
            "%config Daifu.rules = '* -> action \"x = 2\" then pass, limit=9'",
            "%%daifu\nf",
        )
        barrier = barrier_in(notebook["f"].__code__)
        shown = [vaccinated_source(barrier) for _ in range(number)]
        assert notebook.run("f([1, 0, 4])").result == "0.25"
        assert notebook.run("f([1, 0])").result == "0.5"
        assert all(text == vaccinated_source(barrier) for text in shown)

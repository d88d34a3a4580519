"""The line %%daifu ..., %daifu and its commands, the traits, loading and unloading."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import daifu_ipy
from daifu_ipy import history, repair_with
from daifu_ipy.engine.crash import transform_action
from daifu_ipy.engine.managers import settings
from daifu_ipy.engine.vaccinate import is_vaccinated
from daifu_ipy.magic.commands import COMMANDS
from daifu_ipy.magic.options import CellOptions, read_cell_options
from daifu_ipy.magic.transformers import is_marked
from daifu_ipy.repair.rules import Rule
from tests.magic.notebook import Notebook, normal

KEY = Rule("KeyError")
VALUE = Rule("ValueError")


@pytest.fixture
def notebook():
    history.clear()
    with Notebook() as made:
        yield made


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("", CellOptions()),
        (" --only train", CellOptions(only=frozenset({"train"}))),
        (" --only train,Net.fit --only x", CellOptions(only=frozenset({"train", "Net.fit", "x"}))),
        (" --rules 'KeyError -> pass'", CellOptions(rules=(KEY,))),
        (' --rules "KeyError -> pass"', CellOptions(rules=(KEY,))),
        (" --rules 'KeyError -> pass; ValueError -> pass'", CellOptions(rules=(KEY, VALUE))),
        (" --rules 'KeyError -> pass' --rules 'ValueError -> pass'", CellOptions(rules=(KEY, VALUE))),
        (" --rules KeyError->pass", CellOptions(rules=(KEY,))),
        (" --rules mine", CellOptions(rules=(KEY, VALUE))),
        (" --rules several --on-crash abort", CellOptions(rules=(KEY, VALUE, KEY), on_crash="abort")),
        (" --strict", CellOptions(strict=True)),
        (" --on-crash prompt", CellOptions(on_crash="prompt")),
        (r""" --rules 'ValueError ~ "\d+ \"x\"" -> pass'""", CellOptions(rules=(Rule("ValueError", r'\d+ "x"'),))),
    ],
)  # fmt: skip
def test_the_line(line, options):
    namespace = {
        "mine": "KeyError -> pass\nValueError -> pass",
        "several": ["KeyError -> pass; ValueError -> pass", KEY],
    }
    assert read_cell_options(line, namespace) == options


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--nonsense", "%%daifu: unrecognized arguments: --nonsense"),
        ("train", "%%daifu: unrecognized arguments: train"),
        ("--rules KeyError -> pass", "%%daifu: unrecognized arguments: -> pass; rules stand in quotes"),
        ("--rules 'KeyError'", "%%daifu: rules: expected '->', '~', '@' or '|', got the end of the rule"),
        ("--rules 'KeyError", "%%daifu: no closing quotation"),
        ("--rules", "%%daifu: argument --rules: expected one argument"),
        ("--rules number", "%%daifu: rules must be text, a dict, or a list of these, not int"),
        ("--on-crash ask", "%%daifu: argument --on-crash: invalid choice: 'ask' (choose from"),
    ],
)  # fmt: skip
def test_a_line_that_is_wrong_is_refused_and_the_cell_does_not_run(notebook, line, message):
    notebook.shell.user_ns["number"] = 3
    seen = notebook.run(f"%%daifu {line}\nran = True")
    assert seen.stderr.startswith(f"UsageError: {message}")
    assert seen.error.startswith("UsageError")
    assert seen.stdout == ""
    assert "ran" not in notebook.shell.user_ns


@pytest.mark.parametrize(
    ("line", "marked"),
    [
        ("%%daifu\n", True),
        ("%%daifu --only x\r\n", True),
        ("%%daifu\t--strict", True),
        ("%%daifu?\n", False),
        ("%%daifux\n", False),
        ("%daifu\n", False),
        (" %%daifu\n", False),
    ],
)
def test_which_lines_are_meant(line, marked):
    assert is_marked(line) is marked


def test_an_empty_cell(notebook):
    assert notebook.run("%%daifu").stderr.startswith("UsageError: %%daifu is a cell magic, but the cell body is empty.")
    assert notebook.run("%%daifu\n  \n").stderr.startswith("UsageError: %%daifu")


def test_help(notebook):
    shown = []
    notebook.shell.show_usage = notebook.shell.hooks.show_in_pager = lambda text, *_: shown.append(text)
    import IPython.core.page

    original, IPython.core.page.page = IPython.core.page.page, lambda text, *_, **__: shown.append(text)
    try:
        notebook.runs("%%daifu?", "%daifu?")
    finally:
        IPython.core.page.page = original
    for help_text in map(str, shown):
        for word in ("--only", "--rules", "--on-crash", "--strict", "%daifu status", "transient-"):
            assert word in help_text
    assert len(shown) == 2


def test_the_magic_called_by_a_program(notebook):
    seen = notebook.run("get_ipython().run_cell_magic('daifu', '--rules \"* -> skip\"', '1 / 0\\nx = 3\\n')")
    assert (seen.error, notebook["x"]) == ("", 3)


def test_commands_are_listed(notebook):
    seen = notebook.run("%daifu")
    for word in (
        "%daifu status ",
        "%daifu vaccinate NAME ...",
        "%daifu show NAME",
        "%daifu history [N] [--json]",
        "%daifu doctor",
    ):
        assert word in seen.stdout
    seen = notebook.run("%daifu frobnicate")
    assert seen.stderr.startswith("UsageError: %daifu has no 'frobnicate'. It has:\n%daifu status")
    assert "UsageError: unrecognized arguments: now" in notebook.run("%daifu status now").stderr


@pytest.mark.parametrize("flag", ["-h", "--help", "?"])
@pytest.mark.parametrize("word", COMMANDS)
def test_every_command_has_help(notebook, word, flag):
    seen = notebook.run(f"%daifu {word} {flag}")
    usage, _, *description = seen.stdout.splitlines()
    assert usage.startswith(f"%daifu {word}")
    assert COMMANDS[word].help in description
    assert (seen.stderr, seen.error) == ("", "")


def test_vaccinate_and_unvaccinate(notebook):
    notebook.run("def f(): return 1 / 0\nclass C:\n    def a(self): pass\n    def b(self): pass\nx = 3\nc = C()")
    assert notebook.run("%daifu vaccinate f C").stdout == "daifu: protecting f\ndaifu: protecting C (2 methods)\n"
    assert is_vaccinated(notebook["f"])
    assert notebook.run("%daifu unvaccinate C.a").stdout == "daifu: C.a no longer protected\n"
    assert is_vaccinated(notebook["C"].b)
    assert not is_vaccinated(notebook["C"].a)
    assert notebook.run("%daifu unvaccinate C.a").stdout == "daifu: C.a was not protected\n"
    assert notebook.run("%daifu unvaccinate C f").stdout == (
        "daifu: C.b no longer protected\ndaifu: f no longer protected\n"
    )
    assert notebook.run("%daifu vaccinate c.a").stdout == "daifu: protecting C (1 method)\n"
    for name, message in {
        "nope": "there is no nope in this notebook",
        "C.nope": "there is no C.nope",
        "x": "x is no function, method or class of Python code, but a int",
    }.items():
        assert notebook.run(f"%daifu vaccinate {name}").stderr == f"UsageError: %daifu: {message}\n"
    assert "the following arguments are required" in notebook.run("%daifu vaccinate").stderr


def test_a_function_of_a_protected_cell_can_be_unvaccinated(notebook):
    notebook.run(
        "%%daifu\ndef f(x):\n    return 1 / x\ndef counter():\n    n = 0\n    def inc():\n        nonlocal n\n        n += 1\n        return n\n    return inc\ninc = counter()\ninc()"
    )
    assert is_vaccinated(notebook["f"])
    assert is_vaccinated(notebook["inc"])
    notebook.run("%daifu unvaccinate f inc counter")
    assert not any(is_vaccinated(notebook[name]) for name in ("f", "inc", "counter"))
    assert notebook.run("f(2), inc(), counter()()").result == "(0.5, 2, 1)"


@pytest.mark.parametrize("first", ["%%daifu\n", "%%time\n%%daifu\n", ""])
def test_unvaccinated_and_protected_again(notebook, first):
    notebook.runs(f"{first}def f(x):\n    def g():\n        return 1 / x\n    return g()", "%daifu unvaccinate f")
    assert not is_vaccinated(notebook["f"])
    assert notebook.run("%%daifu --rules '* -> return \"7\"'\nf(0)").result == "7"
    assert is_vaccinated(notebook["f"])


def test_status(notebook, monkeypatch):
    shown = notebook.run("%daifu status").stdout
    assert "protected       no function yet; %%daifu above a cell protects it\n" in shown
    assert "a crash now     is aborted: nobody can be asked here\n" in shown
    notebook.runs("def f(): pass", "%%daifu\nf()", "%config Daifu.rules = 'KeyError -> pass; ValueError -> skip'")
    shown = notebook.run("%daifu status").stdout
    assert "protected       f\n" in shown
    assert "a crash now     is tried by 2 rules, then is aborted: nobody can be asked here\n" in shown
    with repair_with(lambda crash: None):
        assert "goes to the repair manager that the program has set" in notebook.run("%daifu status").stdout
    notebook.run("%config Daifu.answer = 'rules'")
    assert "is tried by 2 rules, then is aborted\n" in notebook.run("%daifu status").stdout
    notebook.run("%config Daifu.answer = 'auto'")
    monkeypatch.setattr("daifu_ipy.frontends.choose._has_terminal", lambda: True)
    monkeypatch.setattr("daifu_ipy.frontends.choose._kernel", lambda: None)
    assert "is tried by 2 rules, then is asked about at the prompt\n" in notebook.run("%daifu status").stdout


def test_history(notebook):
    assert notebook.run("%daifu history").stdout == "nothing has crashed\n"
    notebook.run(
        "%%daifu --rules 'ZeroDivisionError -> action \"x = 1\" then pass; KeyError -> skip'\nx = 0\n1 / x\n{}['a']\nundefined"
    )
    lines = notebook.run("%daifu history").stdout.splitlines()
    assert [line[15:] for line in lines] == [
        "Cell In[2], line 3: ZeroDivisionError: division by zero -> 1 action, then pass",
        "Cell In[2], line 4: KeyError: 'a' -> skip",
        "Cell In[2], line 5: NameError: name 'undefined' is not defined -> aborted",
    ]
    assert json.loads(notebook.run("%daifu history --json").stdout) == json.loads(normal(json.dumps(history.to_json())))
    assert daifu_ipy.history is history


def test_traits_from_the_configuration():
    with Notebook(config={"Daifu": {"rules": "ZeroDivisionError -> skip", "intercept": "all"}}) as notebook:
        assert settings.intercept == "all"
        assert notebook.run("%%daifu\n1 / 0\n5").result == "5"


def test_traits_that_are_wrong(notebook):
    from traitlets import TraitError

    daifu = next(c for c in notebook.shell.configurables if type(c).__name__ == "Daifu")
    for name, value in {"rules": "KeyError", "answer": "nobody", "intercept": "some"}.items():
        with pytest.raises(TraitError):
            setattr(daifu, name, value)
    with pytest.raises(TraitError, match="rules: expected '->'"):
        daifu.rules = ["KeyError"]
    assert (daifu.rules, daifu.answer, daifu.intercept) == (None, "auto", "auto")


def registered(shell):
    manager = shell.input_transformer_manager
    return (
        [*manager.line_transforms, *manager.cleanup_transforms, *shell.input_transformers_post],
        list(shell.ast_transformers),
        sorted(shell.magics_manager.magics["line"]) + sorted(shell.magics_manager.magics["cell"]),
        [
            name for c in shell.configurables if "Daifu" in (name := type(c).__name__)
        ],  # IPython's own come when asked for
        [name for name in shell.magics_manager.registry if "Daifu" in name],
        vars(settings) | {"lock": None, "on_closed": list(settings.on_closed), "on_release": list(settings.on_release)},
        transform_action("!x"),
        "get_local_scope" in vars(shell),
    )


def test_unloading_undoes_all():
    with Notebook(loaded=False) as notebook:
        before = registered(notebook.shell)
        notebook.run("%load_ext daifu_ipy")
        assert registered(notebook.shell) != before
        notebook.run("%config Daifu.intercept = 'all'")
        notebook.runs("def f(): return 1 / 0", "%%daifu\nf\ndef g(): return 1 / 0", "%daifu vaccinate f")
        notebook.runs("import daifu_ipy\n@daifu_ipy.vaccinate\ndef mine(): return 1", "%%daifu\nmine()")
        assert is_vaccinated(notebook["g"])
        notebook.run("%unload_ext daifu_ipy")
        assert registered(notebook.shell) == before
        assert not is_vaccinated(notebook["f"])
        assert not is_vaccinated(notebook["g"])
        assert is_vaccinated(notebook["mine"])  # which the user has asked for
        assert "`%%daifu` not found" in notebook.run("%%daifu\n1").stderr
        assert notebook.run("1 + 1").result == "2"


def test_loading_twice_and_reloading():
    with Notebook() as notebook:
        before = registered(notebook.shell)
        daifu_ipy.load_ipython_extension(notebook.shell)
        assert registered(notebook.shell) == before
        count = len(notebook.shell.ast_transformers)
        notebook.run("%reload_ext daifu_ipy")
        assert len(notebook.shell.ast_transformers) == count
        assert notebook.run("%%daifu --rules '* -> skip'\n1 / 0\n3").result == "3"
        daifu_ipy.unload_ipython_extension(notebook.shell)
        daifu_ipy.unload_ipython_extension(notebook.shell)
        daifu_ipy.load_ipython_extension(notebook.shell)


def test_other_transformers_see_the_cell(notebook):
    import ast

    class Double(ast.NodeTransformer):
        def visit_Constant(self, node):
            return ast.copy_location(ast.Constant(node.value * 2), node) if type(node.value) is int else node

    notebook.shell.ast_transformers.append(Double())
    assert notebook.run("%%daifu\nx = 4\nx + 1").result == "10"
    assert notebook.run("4").result == "8"
    assert notebook.run("%%time\n%%daifu\nx = 4\nx + 1").result == "10"


def test_an_internal_error_leaves_the_cell_to_ipython(notebook, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("broken")

    count = len(notebook.shell.ast_transformers)
    for name in ("vaccinated_cell", "protect"):
        with monkeypatch.context() as patched:
            patched.setattr(f"daifu_ipy.magic.running.{name}", broken)
            seen = notebook.run("%%daifu\nx = 3\nx + 1")
            assert (seen.result, seen.error) == ("4", "")
            assert "internal error: RuntimeError('broken')" in seen.stdout
    monkeypatch.setattr("daifu_ipy.magic.transformers._standing_for", broken)
    seen = notebook.run("%%daifu\nx = 3\nx + 1")
    assert (seen.result, seen.error) == ("4", "")
    assert seen.stdout.startswith("daifu: this cell runs plainly: internal error: RuntimeError: broken\n")
    assert len(notebook.shell.ast_transformers) == count


def test_nothing_is_kept_of_cells_that_have_run(notebook):
    from daifu_ipy.magic import running

    for cell in ("1", "x = 1", "1 / 0", "await 3", "raise SystemExit"):
        notebook.run(f"%%daifu\n{cell}")
        notebook.run(f"%%time\n%%daifu\n{cell}")
    assert (running._values, running._outer, len(running._expected) <= 2) == ({}, {}, True)
    assert running.running.get() is None


def test_importing_the_package_loads_no_ipython():
    code = "import sys, daifu_ipy; daifu_ipy.history; print(sorted({'IPython', 'torch', 'traitlets'} & sys.modules.keys()))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_check_complete_takes_it_for_a_cell_magic(notebook):
    status = notebook.shell.input_transformer_manager.check_complete
    assert status("%%daifu\nx = 1")[0] == "incomplete"
    assert status("%%daifu\nx = 1\n\n")[0] == "complete"

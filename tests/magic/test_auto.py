"""``%daifu auto``: which cells it protects, what it says, and that it goes without a trace."""

from __future__ import annotations

import ast
import pdb
import warnings

import pytest

from daifu_ipy.engine.vaccinate import is_vaccinated
from tests.magic.kernel import Kernel, text
from tests.magic.notebook import Notebook
from tests.magic.test_protect import DEEP

RULES = {
    "Daifu": {"rules": '* -> return "5", limit=none\n* -> skip, limit=none'}
}  # a crash of a function, and of a cell
AUTO = {"Daifu": RULES["Daifu"] | {"auto": True}}
CRASHES = "print('before')\n1 / 0\nprint('after')"


@pytest.fixture
def notebook():
    with Notebook(config=AUTO) as made:
        yield made


def is_protected(notebook, cell, **options):
    seen = notebook.run(cell, **options)
    assert "before" in seen.stdout
    return "after" in seen.stdout.splitlines()


@pytest.mark.parametrize(
    ("cell", "protected"),
    [
        (CRASHES, True),
        ("# a comment\n\n" + CRASHES, True),
        ("import asyncio\nawait asyncio.sleep(0)\n" + CRASHES, True),
        ("%matplotlib --list\n" + CRASHES, True),
        (f"%%daifu\n{CRASHES}", True),
        (f"%%daifu off\n{CRASHES}", False),
        (f"%%time\n{CRASHES}", True),
        (f"%%time\n%%time\n{CRASHES}", True),
        (f"%%daifu\n%%time\n{CRASHES}", True),
        (f"%%time\n%%daifu\n{CRASHES}", True),
        (f"%%daifu off\n%%time\n{CRASHES}", False),
        (f"%%time\n%%daifu off\n{CRASHES}", False),
        (f"%%timeit -n1 -r1\n{CRASHES}", False),
        (f"%%prun -q\n{CRASHES}", False),
        (f"get_ipython().run_cell({CRASHES!r})", False),
        (f"get_ipython().run_cell({CRASHES!r}, store_history=True)", False),
        (f"get_ipython().run_cell_magic('time', '', {CRASHES!r})\n1", False),
        (f"get_ipython().ex({CRASHES!r})", False),
    ],
)
def test_which_cells(notebook, cell, protected):
    assert is_protected(notebook, cell) == protected


def test_capture(notebook):
    notebook.run(f"%%capture out\n{CRASHES}")
    assert "after" in notebook["out"].stdout
    notebook.run(f"%%capture out\n%%daifu off\n{CRASHES}")
    assert "after" not in notebook["out"].stdout.splitlines()


def test_a_text_that_a_magic_was_given_is_forgotten(notebook):
    """The next cell asks for the same text by itself."""
    notebook.run(f"%%capture --nonsense\n{CRASHES}")
    assert not is_protected(notebook, f"get_ipython().run_cell({CRASHES!r})")


@pytest.mark.parametrize("options", [{"silent": True}, {"store_history": False}])
def test_requests_without_a_trace(notebook, options):
    assert not is_protected(notebook, CRASHES, **options)
    assert is_protected(notebook, CRASHES)


@pytest.mark.parametrize("magic", ["%rerun", "%recall\n1", "%run {file}", "%run -i {file}", "mine"])
def test_what_magics_run(notebook, magic, tmp_path):
    (tmp_path / "script.py").write_text(CRASHES)
    notebook.run(f"%%daifu off\n{CRASHES}")
    notebook.run("%macro -q mine 1")
    assert "after" not in notebook.run(magic.replace("{file}", str(tmp_path / "script.py"))).stdout.splitlines()


def test_the_cell_magic_of_a_user(notebook):
    notebook.run(
        "from IPython.core.magic import register_cell_magic\n@register_cell_magic\n"
        "def mine(line, cell):\n    get_ipython().run_cell(cell)"
    )
    assert not is_protected(notebook, f"%%mine\n{CRASHES}")


def test_the_options_of_a_cell_win(notebook):
    assert "Out[1]: 7" in notebook.run("%%daifu --rules '* -> action \"x = 7\" then skip'\n1 / 0\nx").stdout
    assert not is_protected(notebook, f"%%daifu --only f\n{CRASHES}")


def test_it_protects_functions_of_earlier_cells():
    with Notebook(config=RULES) as notebook:
        notebook.runs("def f(x): return 6 / x", "%daifu auto on")
        assert not is_vaccinated(notebook["f"])
        assert notebook.run("f(0)").result == "5"
        assert is_vaccinated(notebook["f"])


def test_the_switch():
    with Notebook(config=RULES) as notebook:
        said = {
            True: "daifu: every cell is protected from now on; %%daifu off above one leaves it alone\n",
            False: "daifu: only cells with %%daifu on top are protected\n",
        }
        assert not is_protected(notebook, CRASHES)
        for line, is_on in (
            ("%daifu auto", False),
            ("%daifu auto on", True),
            ("%daifu auto", True),
            ("%daifu auto off", False),
            ("%config Daifu.auto = True", True),
        ):
            assert notebook.run(line).stdout in (said[is_on], "")
            assert is_protected(notebook, CRASHES) == is_on
        assert "invalid choice: 'perhaps'" in notebook.run("%daifu auto perhaps").stderr


def test_off_without_auto_changes_nothing():
    with Notebook(config=RULES) as notebook:
        assert not is_protected(notebook, f"%%daifu off\n{CRASHES}")
        assert notebook.run("%%daifu off\n'the doc'\nx = 1\nx").result == "1"
        assert notebook.run("%%daifu\ndef f(): 1 / 0\nf()").result == "5"
        assert notebook.run("%%daifu off\nf()").result == notebook.run("f()").result == "5"


def test_a_mistyped_magic_is_no_crash(notebook):
    assert notebook.run("%daifu nonsense").error.startswith("UsageError: %daifu has no 'nonsense'")
    assert notebook.run("%no_such_magic\n%matplotlib --list").stdout == ""


def test_it_is_quiet(notebook):
    cells = (
        "import os",
        "%who_ls",
        "x = 1",
        "def f(): return 1",
        "f()",
        "",
        "# nothing",
        "%%script true\nx",
        "x = = 1",
    )
    assert "daifu" not in "".join(seen.stdout for seen in notebook.runs(*cells))
    assert notebook.run("%%daifu\nf()").stdout.startswith("daifu: protecting this cell and f")


def test_what_runs_plainly_is_said_once(notebook):
    notebook.run(f"def deep():\n{DEEP}")
    assert [notebook.run("deep()").stdout.count("daifu: deep runs plainly") for _ in range(3)] == [1, 0, 0]
    assert notebook.run("%%daifu\ndeep()").stdout.count("daifu: deep runs plainly") == 1
    late = "x = 1\nfrom __future__ import annotations"
    assert [notebook.run(late).stdout.count("this cell runs plainly") for _ in range(3)] == [1, 0, 0]


def test_unloading_undoes_all():
    def state(shell):
        return (
            len(shell.ast_transformers),
            len(shell.input_transformers_post),
            len(shell.input_transformer_manager.line_transforms),
            len(shell.configurables),
            "get_local_scope" in vars(shell),
            "curframe_locals" in vars(pdb.Pdb),
        )

    with Notebook(loaded=False, config=AUTO) as notebook:
        notebook.run("%load_ext no_such_extension")  # IPython registers this magic when it is first used
        before = state(notebook.shell)
        for _ in range(2):
            notebook.run("%load_ext daifu_ipy")
            notebook.run("%load_ext daifu_ipy")
            notebook.run("def f(): return 1 / 0\nheld = [lambda: f]\nclass C:\n    def m(self): pass")
            notebook.run("import types\nhidden = types.MappingProxyType({'f': f})\ndel f")
            notebook.run("def f(): return hidden['f']()")
            assert notebook.run("f()").result == "5"
            notebook.run("%reload_ext daifu_ipy")
            notebook.run("%unload_ext daifu_ipy")
            assert state(notebook.shell) == before
            found = [notebook["f"], notebook["hidden"]["f"], notebook["C"].m, notebook["held"][0]]
            assert [f for f in found if is_vaccinated(f)] == []
            assert notebook.run("f()").error == "ZeroDivisionError: division by zero"
            assert not is_protected(notebook, CRASHES)


def test_reloading(notebook):
    notebook.run("def f(): 1 / 0")
    assert notebook.run("%reload_ext daifu_ipy").error == ""
    assert notebook.run("f()").result == "5"
    assert is_protected(notebook, CRASHES)


def test_warnings_that_were_shown_are_not_shown_again(notebook):
    """`warnings.catch_warnings` would reset every module's registry."""
    registry = {}
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("default")
        warnings.warn_explicit("once", UserWarning, "file.py", 1, registry=registry)
        notebook.shell.run_cell("y = 2\ndef g(): return y\ng()", store_history=True)
        notebook.shell.run_cell("g()", store_history=True)
        warnings.warn_explicit("once", UserWarning, "file.py", 1, registry=registry)
    assert [str(warning.message) for warning in log] == ["once"]


NOTEBOOK = (
    "%load_ext daifu_ipy\n%daifu auto on",
    "def f(x):\n    return 6 / x",
    "f(3)",
    "x = 0\nf(x)",
    "'not reached'",
)


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("by", ["nbclient", "papermill"])
def test_a_notebook_that_nobody_watches(by, tmp_path):
    """It asks nothing: the annotated stack stands in the notebook, and the run ends with the error."""
    nbformat, nbclient, papermill = (pytest.importorskip(name) for name in ("nbformat", "nbclient", "papermill"))
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in NOTEBOOK])
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = tmp_path / "made.ipynb"
    nbformat.write(made, path)
    with pytest.raises((nbclient.exceptions.CellExecutionError, papermill.exceptions.PapermillExecutionError)):
        if by == "papermill":
            papermill.execute_notebook(str(path), str(path), progress_bar=False)
        else:
            nbclient.NotebookClient(made, timeout=60).execute()
    ran = made if by == "nbclient" else nbformat.read(path, 4)
    cells = [cell for cell in ran.cells if cell.source in NOTEBOOK]
    outputs = cells[2].outputs
    assert [output.data["text/plain"] for output in outputs] == ["2.0"]
    stream = "".join(output.text for output in cells[3].outputs if output.output_type == "stream")
    assert "x = 0" in stream
    assert "nobody can be asked here" in stream
    assert [output.ename for output in cells[3].outputs if output.output_type == "error"] == ["ZeroDivisionError"]
    assert cells[4].outputs == []


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
class TestKernel:
    @pytest.fixture(scope="class")
    def kernel(self):
        made = Kernel("%load_ext daifu_ipy", "%daifu auto on", "%config Daifu.rules = '* -> skip, limit=none'")
        yield made
        made.stop()

    def test_requests(self, kernel):
        assert "after" in text(kernel.run(CRASHES))
        silent = kernel.run(CRASHES, silent=True)
        assert silent[-1]["ename"] == "ZeroDivisionError"
        without_trace = kernel.run(CRASHES, store_history=False)
        assert without_trace[-1]["ename"] == "ZeroDivisionError"
        *_, reply = kernel.run("x = 1", user_expressions={"y": "1 / 0"})
        assert reply["user_expressions"]["y"]["ename"] == "ZeroDivisionError"

    def test_completions_and_help(self, kernel):
        kernel.run("def some_name(a): 'Its doc.'")
        client = kernel.client
        completed = client.complete("some_na", reply=True, timeout=30)["content"]
        assert completed["matches"] == ["some_name"]
        told = client.inspect("some_name", reply=True, timeout=30)["content"]
        assert "Its doc." in told["data"]["text/plain"]
        assert kernel.run("some_name?")[-1]["payload"][0]["source"] == "page"


@pytest.mark.parametrize(("magic", "times"), [("%%daifu", 0), ("%%daifu\n%%time", 1)])
def test_a_cell_is_parsed_again_only_where_ipython_keeps_no_text(notebook, monkeypatch, magic, times):
    parsed, parse = [], ast.parse
    monkeypatch.setattr("ast.parse", lambda text, *rest, **more: parsed.append(text) or parse(text, *rest, **more))
    notebook.run(f"{magic}\nx = 71717")
    assert sum("71717" in str(text) for text in parsed) == times

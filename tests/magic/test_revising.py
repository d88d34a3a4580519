"""%daifu versions, diff, fix, write and revert; and the cell that is run again with the text that crashed."""

from __future__ import annotations

import importlib
import os
import stat
import subprocess
import sys

import pytest

from daifu_ipy import Surgery, history, repair_with
from daifu_ipy.engine import versions
from daifu_ipy.engine.documents import readers
from daifu_ipy.repair.stack import format_stack
from daifu_ipy.repair.writing import NotWritten, write
from tests.engine.modules import escaping
from tests.magic.notebook import Notebook

HALF = "def half(x):\n    # halves\n    return x / 0\n\ndef other():\n    return 1"
LOOP = "%%daifu\nfor x in (2, 4):\n    !true\n    y = half(x)\ny"
OWN = "%%daifu\nx = 0\n!true\nz = 1 / x\nz"
REMINDER = "still has the text that crashed"


@pytest.fixture
def notebook():
    history.clear()
    versions.clear()
    with Notebook() as made:
        made.new_cells = []
        made.shell.set_next_input = lambda text, replace=False: made.new_cells.append((text, replace))
        yield made
    versions.clear()


def operate(notebook, cell, old, new):
    """Run a cell whose crash is operated: `old` in the crashed unit becomes `new`."""
    with repair_with(lambda crash: Surgery(crash.source.replace(old, new))):
        seen = notebook.run(cell)
    assert seen.error == ""
    return seen


@pytest.fixture
def halved(notebook):
    notebook.run(HALF)
    assert operate(notebook, LOOP, "/ 0", "/ 2").result == "2.0"
    return notebook


# what a user sees


def test_nothing_yet(notebook):
    assert notebook.run("%daifu versions").stdout == "no surgery was made\n"
    for word in ("diff", "fix", "write", "revert"):
        assert notebook.run(f"%daifu {word}").error == "UsageError: %daifu: no surgery was made"
        assert notebook.run(f"%daifu {word} 3").error == "UsageError: %daifu: there is no surgery 3"


def test_the_list(halved):
    operate(halved, OWN, "1 / x", "1 / 4")
    first, second = halved.run("%daifu versions").stdout.splitlines()
    assert first.startswith("  1  ")
    assert first.endswith("  half, Cell In[1]: replaced half; went on in line 3: return x / 2")
    assert second.endswith("  Cell In[3]: replaced its own code; went on in line 4: z = 1 / 4")
    halved.run("%daifu revert 1")
    assert halved.run("%daifu versions").stdout.splitlines()[0].endswith("return x / 2 (reverted)")


def test_the_diff_of_a_cell_names_it_as_the_user_does(halved):
    assert halved.run("%daifu diff").stdout == (
        "--- Cell In[1]\tnow\n+++ Cell In[1]\tsurgery 1\n@@ -1,6 +1,6 @@\n def half(x):\n     # halves\n"
        "-    return x / 0\n+    return x / 2\n \n def other():\n     return 1\n"
        "daifu: %daifu fix puts it into a new cell, for Cell In[1]\n"
    )


def test_the_diff_of_a_cells_own_code_is_of_what_was_typed(notebook):
    operate(notebook, OWN, "1 / x", "1 / 4  # mended")
    assert "\n %%daifu\n x = 0\n !true\n-z = 1 / x\n+z = 1 / 4  # mended\n z\n" in notebook.run("%daifu diff 1").stdout


def test_fix_gives_the_cell_with_only_the_changed_part_replaced(halved):
    halved.run("%daifu fix")
    assert halved.new_cells == [(HALF.replace("/ 0", "/ 2"), False)]


def test_fix_keeps_the_magics_of_a_cell_as_they_were_typed(notebook):
    operate(notebook, OWN, "1 / x", "1 / 4")
    notebook.run("%daifu fix 1")
    assert notebook.new_cells == [(OWN.replace("1 / x", "1 / 4"), False)]


def test_fix_asks_which_cell_is_meant(halved):
    operate(halved, OWN, "1 / x", "1 / 4")
    assert halved.run("%daifu fix").error == (
        "UsageError: %daifu fix: Cell In[1] and Cell In[3] were changed: say which, with --cell"
    )
    halved.runs("%daifu fix --cell 3", "%daifu fix 1")
    assert [text for text, _ in halved.new_cells] == [OWN.replace("1 / x", "1 / 4"), HALF.replace("/ 0", "/ 2")]
    assert halved.run("%daifu fix --cell 2").error == "UsageError: %daifu fix: no surgery has changed that cell"


def test_revert(halved):
    assert halved.run("half(4)").result == "2.0"
    assert halved.run("%daifu revert").stdout == "daifu: surgery 1 is reverted: half as before it\n"
    assert isinstance(escaping(lambda: halved["half"](4)), ZeroDivisionError)
    assert halved.run("%daifu revert 1").error == "UsageError: %daifu: surgery 1 was reverted already"


def test_revert_of_a_function_that_was_defined_anew(halved):
    halved.run("def half(x):\n    return x / 4")
    assert halved.run("%daifu revert").stdout == (
        "daifu: surgery 1 is reverted: no function runs it\ndaifu: left as it is: half: it does not exist any more\n"
    )
    assert halved.run("half(4)").result == "1.0"


def test_revert_of_a_cells_own_code(notebook):
    operate(notebook, OWN, "1 / x", "1 / 4")
    assert notebook.run("%daifu revert").stdout == (
        "daifu: surgery 1 is reverted: no function runs it\n"
        "daifu: left as it is: the notebook cell's own code: it runs once, and is not called again\n"
    )
    assert REMINDER not in notebook.run(OWN.replace("x = 0", "x = 0 or 1")).text


def test_the_report_and_the_stack_name_the_surgery(notebook):
    stacks = []

    def twice(crash):
        """First to what crashes again, then to what does not."""
        stacks.append(format_stack(crash))
        text = crash.source
        return Surgery(text.replace("/ x", "/ None") if "/ x" in text else text.replace("/ None", "/ 4"))

    with repair_with(twice):
        of_cell = notebook.run(OWN)
        of_function = notebook.run("%%daifu\ndef f(x):\n    return 1 / x\nf(0)")
    assert "in Cell In[1], line 4: surgery" in of_cell.stdout
    assert "in surgery 1 of Cell In[1], line 4: surgery" in of_cell.stdout
    assert "in f (surgery 3), line 2: surgery" in of_function.stdout
    assert "surgery 1 of Cell In[1], line 4\n" in stacks[1]
    assert "f, surgery 3 of Cell In[2], line 2\n" in stacks[3]


# the cell that still holds the text that crashed


def test_a_cell_that_defines_the_function_as_it_was(halved):
    for cell in (HALF, "%%daifu\n" + HALF, HALF.replace("# halves", "# other words"), "k = 1\n" + HALF):
        assert halved.run(cell).stdout.splitlines()[0] == (
            f"daifu: half in this cell {REMINDER}, which runs now; surgery 1 had replaced it: "
            "%daifu diff 1 shows how, %daifu fix 1 gives a cell with it"
        )
        assert isinstance(escaping(lambda: halved["half"](4)), ZeroDivisionError)  # their text is the truth


@pytest.mark.parametrize(
    "cell",
    [
        HALF.replace("/ 0", "/ 2"),
        HALF.replace("/ 0", "/ 3"),
        "def other():\n    return 1",
        "half(1)",
        "1",
        "",
        "def half(:",
    ],
)
def test_other_cells_say_nothing(halved, cell):
    assert REMINDER not in halved.run(cell).text


def test_a_cells_own_code(notebook):
    operate(notebook, OWN, "1 / x", "1 / 4")
    assert f"daifu: this cell {REMINDER}, which runs now; surgery 1" in notebook.run(OWN + " # again").stdout
    assert REMINDER in notebook.run(OWN.removeprefix("%%daifu\n")).stdout
    assert REMINDER not in notebook.run(OWN.replace("1 / x", "1 / 4")).stdout


def test_a_reverted_surgery_is_not_spoken_of(halved):
    halved.run("%daifu revert")
    assert REMINDER not in halved.run(HALF).text


def test_unloading_takes_the_reminder_back(halved):
    before = len(readers)
    halved.run("%unload_ext daifu_ipy")
    assert len(readers) == before - 1
    assert REMINDER not in halved.run(HALF).text
    halved.run("%load_ext daifu_ipy")
    assert len(readers) == before


# files of modules


MODULE = "# -*- coding: latin-1 -*-\r\nNAME = 'M\xfcller'\r\n\r\ndef half(x):\r\n\treturn x / 0 # \xfc\r\n\r\ndef other():\n\treturn 1"
FIXED = MODULE.replace("x / 0", "x / 2")


@pytest.fixture
def module(notebook, tmp_path, monkeypatch):
    """A module of odd encoding, line ends and indentation, whose function was operated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_module", raising=False)
    path = tmp_path / "odd_module.py"
    path.write_bytes(MODULE.encode("latin-1"))
    path.chmod(0o640)
    importlib.invalidate_caches()
    notebook.runs("import odd_module", "%daifu vaccinate odd_module.half")
    assert operate(notebook, "%%daifu\nodd_module.half(4)", "/ 0", "/ 2").result == "2.0"
    return path


def test_a_file_is_written_on_request_and_else_stays_byte_for_byte(notebook, module):
    seen = notebook.run("%daifu write")
    assert module.read_bytes() == FIXED.encode("latin-1")
    assert stat.S_IMODE(module.stat().st_mode) == 0o640
    assert seen.stdout.startswith("--- odd_module.py\tnow\n+++ odd_module.py\tsurgery 1\n@@ ")
    command = seen.stdout.splitlines()[-1].rpartition("to undo it: ")[2]
    assert notebook.run("%daifu write").stdout == "daifu: the files have that text already\n"
    subprocess.run(command, shell=True, check=True)
    assert module.read_bytes() == MODULE.encode("latin-1")
    assert os.listdir(module.parent).count("odd_module.py") == 1
    assert not [name for name in os.listdir(module.parent) if name.startswith(".odd")]


def test_nothing_is_written_without_the_request(notebook, module):
    notebook.runs("%daifu diff", "%daifu diff 1", "%daifu versions", "%daifu revert")
    assert module.read_bytes() == MODULE.encode("latin-1")


def test_a_file_that_was_edited_elsewhere_keeps_that(notebook, module):
    text = MODULE.replace("NAME =", "import os\r\nNAME =").replace("return 1", "return 2\r\n")
    module.write_bytes(text.encode("latin-1"))
    notebook.run("%daifu write 1")
    assert module.read_bytes() == text.replace("x / 0", "x / 2").encode("latin-1")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("x / 0 #", "x / 3 #", "half was changed there since the crash"),
        ("\treturn x", "\tx += 1\r\n\treturn x", "half was changed there since the crash"),
        ("def half", "def halve", "half was changed there since the crash"),
        ("def half", "def half(", "half was changed there since the crash"),
    ],
)
def test_a_function_that_was_edited_is_not_overwritten(notebook, module, old, new, reason):
    text = MODULE.replace(old, new).encode("latin-1")
    module.write_bytes(text)
    seen = notebook.run("%daifu write 1")
    assert seen.error == f"UsageError: %daifu: odd_module.py was left as it is: {reason}"
    assert module.read_bytes() == text
    with pytest.raises(NotWritten):
        write()


def test_a_link_stays_a_link_and_backups_are_not_overwritten(notebook, module):
    real = module.with_name("real.py")
    module.rename(real)
    module.symlink_to(real)
    for backup in ("odd_module.py.before-surgery-1", "odd_module.py.before-surgery-1-1"):
        notebook.run("%daifu write")
        assert module.is_symlink()
        assert real.read_bytes() == FIXED.encode("latin-1")
        assert module.with_name(backup).read_bytes() == MODULE.encode("latin-1")
        real.write_bytes(MODULE.encode("latin-1"))


def test_a_cell_is_not_written(halved):
    assert halved.run("%daifu write").stdout == "daifu: Cell In[1]: %daifu fix puts it into a new cell\n"


@pytest.mark.parametrize("first", ["%%daifu\n", "%%daifu\nfrom __future__ import annotations\n", "%%daifu\n'a text'\n"])
@pytest.mark.parametrize("typed", [True, False])
def test_the_line_of_the_magic_is_no_statement_that_a_surgery_adds(notebook, first, typed):
    cell = first + "n = globals().get('n', 0) + 1\nx = 0\nz = 1 / x\nn, z"
    title = repr(first.splitlines()[0]) + "\n"

    def repair(crash):
        text = crash.source.replace("1 / x", "1 / 4")
        return Surgery(text if typed else text.replace(title, "").replace("'#%%daifu#'\n", ""))

    with repair_with(repair):
        assert notebook.run(cell).result == "(1, 0.25)"

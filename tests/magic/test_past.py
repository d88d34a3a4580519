"""``%daifu history`` and ``%daifu replay``."""

from __future__ import annotations

import re

import pytest

from daifu_ipy.repair.history import history
from tests.magic.notebook import Notebook

BAD = "%%daifu --rules \"ValueError -> action 'fixed.append(i)' then skip, limit=2; ZeroDivisionError -> return '7'\"\n"
CELL = "fixed = []\nfor i in range(4):\n    if i % 2: raise ValueError(f'no {i}')\nresult = part(0)\n(fixed, result)"
PART = "def part(n):\n    return 1 / n"


@pytest.fixture(autouse=True)
def _nothing_before():
    history.clear()
    yield
    history.clear()


def said(notebook, line):
    seen = notebook.run(line)
    return seen.stdout + seen.error


def test_it_lists_what_happened():
    with Notebook() as notebook:
        assert said(notebook, "%daifu history") == "nothing has crashed\n"
        notebook.run(PART)
        assert notebook.run(BAD + CELL).result == "([1, 3], 7)"
        lines = said(notebook, "%daifu history").splitlines()
    assert len(lines) == 3
    assert re.match(r"  1  \d\d:\d\d:\d\d  Cell In\[3\], line 4: ValueError: no 1 -> 1 action, then skip$", lines[0])
    assert lines[2].endswith("  part, line 2: ZeroDivisionError: division by zero -> return")


def test_one_of_them_whole():
    with Notebook() as notebook:
        notebook.run(PART)
        notebook.run(BAD + CELL)
        text = said(notebook, "%daifu history 2")
        assert "there is no crash 9: they are numbered 1 to 3" in said(notebook, "%daifu history 9")
    assert "raise ValueError(f'no {i}')\n" in text
    assert re.search(r"^action +fixed.append\(i\)$", text, re.M)
    assert re.search(r"^loops at +i=3$", text, re.M)


def test_the_surgery_of_an_event_is_shown():
    with Notebook() as notebook:
        notebook.run(PART)
        notebook.run("import daifu_ipy\ntext = 'def part(n):\\n    return 1 / (n or 4)\\n'")
        made = notebook.run(
            "%%daifu\nwith daifu_ipy.repair_with(lambda crash: daifu_ipy.Surgery(text)):\n    print(part(0))"
        )
        assert made.stdout.splitlines()[-1] == "0.25"
        text = said(notebook, "%daifu history 1")
    assert "-    return 1 / n\n" in text
    assert "+    return 1 / (n or 4)\n" in text


@pytest.mark.parametrize("form", ["--script", "--json"])
def test_a_fresh_notebook_is_repaired_as_the_first_one_was(form, tmp_path):
    file = tmp_path / ("repairs.py" if form == "--script" else "repairs.json")
    with Notebook() as notebook:
        notebook.run(PART)
        first = notebook.run(BAD + CELL)
        assert f"3 repairs in {file}" in said(notebook, f"%daifu history {form} --to {file}")
        assert "exists already; nothing was written" in said(notebook, f"%daifu history {form} --to {file}")
    with Notebook() as notebook:
        assert said(notebook, "%daifu replay") == "daifu: nothing is replayed\n"
        assert "3 answers of an earlier run left" in said(notebook, f"%daifu replay {file}")
        notebook.run("# another cell, so that the numbers of cells differ")
        notebook.run(PART)
        again = notebook.run("%%daifu --on-crash abort\n# a line more\n" + CELL)
        assert (again.result, again.error) == (first.result, "")
        assert "0 answers" in said(notebook, "%daifu replay")
        assert "ValueError: no 1" in notebook.run("%%daifu --on-crash abort\n" + CELL).error


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("none.py", None, "can't read"),
        ("bad.json", "{", "not the JSON of a history"),
        ("bad.py", "manager = 3", "was not made by"),
        ("worse.py", "def", "can't read"),
        ("failing.py", "import nonexisting_mod", "failing.py: ModuleNotFoundError: No module named"),
    ],
)
def test_what_is_no_export_is_refused(name, text, complaint, tmp_path):
    if text is not None:
        (tmp_path / name).write_text(text, "utf-8")
    with Notebook() as notebook:
        assert complaint in said(notebook, f"%daifu replay {tmp_path / name}")


@pytest.mark.parametrize("name", ["repairs.py", "repairs.json", "repairs"])
def test_a_file_alone_is_written_as_it_is_read(name, tmp_path):
    with Notebook() as notebook:
        notebook.run(PART)
        notebook.run(BAD + CELL)
        assert "3 repairs in" in said(notebook, f"%daifu history --to {tmp_path / name}")
        assert "3 answers of an earlier run left" in said(notebook, f"%daifu replay {tmp_path / name}")


@pytest.mark.parametrize("line", ["1 --json --to F", "1 --script", "--json --script", "--json --to F.py", "--script --to F"])  # fmt: skip
def test_what_does_not_go_together_writes_nothing(line, tmp_path):
    with Notebook() as notebook:
        notebook.run(PART)
        notebook.run(BAD + CELL)
        assert "UsageError: %daifu history: " in said(notebook, f"%daifu history {line}".replace("F", f"{tmp_path}/F"))
    assert list(tmp_path.iterdir()) == []


def test_the_numbers_that_there_are(monkeypatch):
    monkeypatch.setattr(history, "_forgotten", 5)
    with Notebook() as notebook:
        notebook.run("%%daifu --rules 'ZeroDivisionError -> skip'\n1 / 0\n2 / 0")
        assert "there is no crash 1: they are numbered 6 to 7" in said(notebook, "%daifu history 1")

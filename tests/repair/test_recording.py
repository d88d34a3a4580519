"""Records of frames: the executing node, also of protected code, is the one that Python itself names."""

from __future__ import annotations

import json
import linecache
import subprocess
import sys
import traceback
import warnings

import pytest

import daifu_ipy
from daifu_ipy import testing
from daifu_ipy.crash_points import World
from daifu_ipy.engine.managers import settings
from daifu_ipy.repair.recording import record_frames
from daifu_ipy.repair.stack import format_stack
from tests.engine import programs
from tests.repair.test_stack import raised

SAMPLE = dict(sorted(programs.SMALL.items())[::6]) | dict(sorted(programs.LARGER.items())[::6])


def records(source: str, crash: int, *, vaccinated: bool) -> list[tuple[object, ...]]:
    """The frames of a program that is crashed at a point, from its unit on."""
    program, world = testing._Program(source, file="<same>"), World((crash,))
    namespace, seen = {"__name__": "program", **world.helpers}, []
    linecache.cache[program.file] = (len(program.text), None, program.text.splitlines(True), program.file)

    def look(error, stack):
        if isinstance(error, testing.InjectedCrash) and not seen:
            seen.extend(record_frames(stack))

    def manager(crash):
        look(crash.exception, crash.stack)
        return daifu_ipy.Abort()

    try:
        with daifu_ipy.repair_with(manager):
            testing._drive(program.start(namespace, vaccinated=vaccinated), None, world)
    except BaseException as error:
        if not vaccinated:
            look(error, error.__traceback__)
    own = [record for record in seen if record.filename == program.file]
    return [(r.function, r.line, r.executing, r.context, r.marks, dict(r.variables)) for r in own]


@pytest.mark.parametrize("source", SAMPLE.values(), ids=list(SAMPLE))
def test_protected_code_shows_what_native_code_shows(source, monkeypatch):
    monkeypatch.setattr(settings, "intercept", "all")
    compared = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points = len(testing._run(testing._Program(source)).trail)
        for crash in range(1, points + 1):
            native = records(source, crash, vaccinated=False)
            protected = records(source, crash, vaccinated=True)
            if native and protected:
                compared += 1
                for plain, own in zip(native[-len(protected) :], protected, strict=True):
                    whole = plain[2].startswith("with ")  # up to 3.12 Python blames all items of a `with` at once
                    assert own[: 2 if whole else 5] == plain[: 2 if whole else 5]
                    assert own[5].items() >= plain[5].items()  # natively a handler's variable is gone by then
    assert compared > 0


@pytest.mark.parametrize(
    "statement",
    [
        "x = 1 + fail(2)",
        "x = [1, fail(\n    2), 3]",
        "x = 'äöü€', fail(2)",
        "\tx = 'a\tb', fail(2)".lstrip(),
        "x = fail(1) + fail(2)",
        "for x in fail(1): pass",
        "x = '漢字', fail(2)",
    ],
)
def test_the_marked_text_is_the_node(statement):
    error = raised(statement, fail=lambda *_: [][0])
    record = record_frames(error.__traceback__)[0]
    lines = dict(record.context)
    marked = " ".join(lines[line][start:end] for line, start, end in record.marks)
    assert " ".join(marked.split()) == record.executing
    assert record.executing.replace("( ", "(") in ("fail(2)", "fail(1)")


def test_carets_stand_where_python_puts_them():
    error = raised("x = {'a': 1}\ny = x['a'], x['b']\n")
    ours = next(line for line in format_stack(error).splitlines() if "^" in line)
    theirs = next(line for line in "".join(traceback.format_exception(error)).splitlines() if "^" in line)
    assert ours.index("^") - len("->    2 | ") == theirs.index("^") - 4 if "~" not in theirs else ours.count("^") == 6


def test_a_long_line_is_cut_around_the_node():
    error = raised(f"x = [{'1, ' * 200} fail(2), {'3, ' * 200}]", fail=lambda *_: [][0])
    text = format_stack(error, width=80)
    assert max(map(len, text.splitlines())) <= 80
    mark = next(line for line in text.splitlines() if "^" in line)
    above = text.splitlines()[text.splitlines().index(mark) - 1]
    assert above[mark.index("^") : mark.rindex("^") + 1] == "fail(2)"


def test_a_long_statement_is_trimmed():
    inside = "\n".join(f"    {i}," for i in range(100))
    error = raised(f"x = (fail(\n{inside}\n), 2)", fail=lambda *_: [][0])
    assert len(record_frames(error.__traceback__)[0].context) <= 8


def test_only_lines_of_the_function_are_shown():
    error = raised("a = 1\ndef f(x):\n    return x / 0\nb = 2\nf(1)")
    assert [number for number, _ in record_frames(error.__traceback__)[-1].context] == [2, 3]


def test_records_go_through_json():
    record = record_frames(raised("def f(x):\n    return [x / 0]\nf(1)").__traceback__)[-1]
    assert json.loads(json.dumps(record.to_json()))["executing"] == "x / 0"


def test_without_columns_there_is_a_line_and_its_values():
    program = (
        "import linecache\nfrom daifu_ipy.repair.stack import format_stack\ntext = 'a = 1\\nb = [a / 0]\\n'\n"
        "linecache.cache['<t>'] = (1, None, text.splitlines(True), '<t>')\n"
        "try: exec(compile(text, '<t>', 'exec'), {})\nexcept ZeroDivisionError as e: print(format_stack(e.__traceback__.tb_next))"
    )
    shown = subprocess.run([sys.executable, "-X", "no_debug_ranges", "-c", program], capture_output=True, text=True)
    assert shown.stdout.splitlines()[1:5] == ["      1 | a = 1", "->    2 | b = [a / 0]", "          a = 1", ""], shown


def test_text_that_nobody_knows():
    error = raised("exec(compile('def f(x): return x / 0\\nf(1)', '<nowhere>', 'exec'))")
    assert format_stack(error).splitlines()[-3:] == [
        "<module>, <nowhere>:2",
        "f, <nowhere>:1",
        "ZeroDivisionError: division by zero",
    ]


def test_a_huge_source_is_shown_but_not_parsed():
    text = "x = 1\n" * 100_000 + "y = [x / 0]\n"
    record = record_frames(raised(text).__traceback__)[0]
    assert (record.context[-1], record.executing, record.variables) == ((100_001, "y = [x / 0]"), "", ())


def test_source_too_deep_to_parse():
    error = raised("x = 1\ny = x / 0")
    name = error.__traceback__.tb_frame.f_code.co_filename
    text = f"x = {'(' * 150}1{')' * 150}\ny = x / 0"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    assert "->    2 | y = x / 0" in format_stack(error)


def test_callers_and_loops_of_a_crash(monkeypatch):
    monkeypatch.setattr(settings, "intercept", "all")
    seen = []

    def manager(crash):
        seen.append(format_stack(crash))
        return daifu_ipy.Abort()

    source = (
        "def inner(x):\n    return x / 0\ndef outer():\n    for epoch in range(3):\n"
        "        for step in [7]:\n            inner(epoch)\nouter()\n"
    )
    with pytest.raises(ZeroDivisionError), daifu_ipy.repair_with(manager):
        daifu_ipy.run_cell(source, {"__name__": "program"}, filename="<loops>")
    assert seen[0].splitlines() == [
        "<module>, <loops>:7",
        "->    7 | outer()",
        "outer, <loops>:6",
        "->    6 | inner(epoch)",
        "          epoch = 0",
        "          step = 7",
        "inner, <loops>:2",
        "      1 | def inner(x):",
        "->    2 |     return x / 0",
        "                     ^^^^^",
        "          x = 0",
        "ZeroDivisionError: division by zero",
    ]

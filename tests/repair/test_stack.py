"""The annotated stack: which frames, which values, and that it stays small whatever is on the stack."""

from __future__ import annotations

import gc
import json
import linecache
import sys
import textwrap
import weakref
from types import SimpleNamespace

import pytest

from daifu_ipy.engine.action import Namespace, run_action
from daifu_ipy.repair.stack import FrameRecord, format_stack, record_frames

INLINED = sys.version_info >= (3, 12)  # list comprehensions have no frame of their own
NUMBERS = iter(range(10_000))


def raised(source: str, **names) -> BaseException:
    """The exception that a program raises; `linecache` knows its text."""
    text = textwrap.dedent(source)
    filename = f"<program {next(NUMBERS)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    with pytest.raises(BaseException) as caught:
        exec(compile(text, filename, "exec", dont_inherit=True), {"__name__": "program", **names})
    error = caught.value
    error.__traceback__ = error.__traceback__.tb_next  # without this test's own frame
    return error


TRAIN = """\
import json

def load(text):
    return json.loads(text)

def train(texts):
    total = 0
    for number, text in enumerate(texts):
        # the next one raises
        total += load(text)["loss"]
    return total

train(['{"loss": 1}', '{"loss"'])
"""

EXPECTED = """\
<module>, <program N>:13
     11 |     return total
     12 |
->   13 | train(['{"loss": 1}', '{"loss"'])
train, <program N>:10
      8 | for number, text in enumerate(texts):
      9 |     # the next one raises
->   10 |     total += load(text)["loss"]
                       ^^^^^^^^^^
     11 | return total
          total = 1
          text = '{"loss"'
load, <program N>:4
      3 | def load(text):
->    4 |     return json.loads(text)
                     ^^^^^^^^^^^^^^^^
          text = '{"loss"'
    ... 3 library frames, the last: JSONDecoder.raw_decode, json/decoder.py:LINE
          obj, end = self.scan_once(s, idx)
json.decoder.JSONDecodeError: Expecting ':' delimiter: line 1 column 8 (char 7)"""


def test_the_whole_text():
    error = raised(TRAIN)
    text = format_stack(error).replace(error.__traceback__.tb_frame.f_code.co_filename, "<program N>")
    library = [record for record in record_frames(error.__traceback__) if record.library]
    assert text == EXPECTED.replace("LINE", str(library[-1].line))


def values(source: str, **names) -> dict[str, str]:
    return dict(record_frames(raised(source, **names).__traceback__)[-1].variables)


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("x = a + fail(b)", {"a": "1", "b": "2"}),
        ("c = 3; x = fail(a)\nz = b", {"a": "1"}),
        ("x = fail(a); y = b", {"a": "1"}),
        ("x = (a,\n     fail(b),\n     c)", {"a": "1", "b": "2", "c": "[3]"}),
        ("for a in fail(b):\n    c", {"a": "1", "b": "2"}),
        ("for d in c:\n    fail(a)", {"a": "1"}),
        ("while fail(a):\n    b", {"a": "1"}),
        ("if not a:\n    pass\nelif fail(b):\n    c", {"b": "2"}),
        ("with fail(a) as d:\n    b", {"a": "1"}),
        ("try:\n    fail(a)\nfinally:\n    b", {"a": "1"}),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    fail(b)", {"b": "2"}),
        ("match a:\n    case 1:\n        fail(b)", {"b": "2"}),
        ("match fail(a):\n    case 1:\n        b", {"a": "1"}),
        ("x = [fail(a) for _ in c]", {"c": "[3]", "a": "1"} if INLINED else {"_": "3", "a": "1"}),
        ("o.lr = 3; fail(o.lr, o.deep.x)", {"o": "O", "o.lr": "3", "o.deep": "None"}),
        ("fail(o.prop, o.__dict__, o.slot)", {"o": "O"}),
        ("unbound = fail(a)", {"a": "1"}),
        ("a = fail(b)", {"a": "1", "b": "2"}),
        ("fail(G, len, json, O)", {"G": "'global'"}),
        ("def f(d=fail(a)):\n    return b", {"a": "1"}),
        ("x: a = fail(b)", {"a": "1", "b": "2"}),
        ("del c[fail(a)]", {"c": "[3]", "a": "1"}),
    ],
)
def test_the_values_of_the_executing_statement(statement, shown):
    source = (
        "import json\nG = 'global'\nclass O:\n    @property\n    def prop(self):\n        global asked\n"
        "        asked = 1\n    def __repr__(self):\n        return 'O'\n    deep = None\n"
        "def program(a, b, c, o):\n" + textwrap.indent(statement, "    ") + "\nprogram(1, 2, [3], O())\n"
    )
    error = raised(source, fail=lambda *_: [][0])
    record = next(r for r in reversed(record_frames(error.__traceback__)) if r.function.startswith("program"))
    assert dict(record.variables) == shown


def test_hidden_names_and_our_own_frames_are_left_out():
    namespace = Namespace({"@daifu_i1": 1, "a": 2})
    error = raised(
        "def f():\n    a = 1\n    action('a', space)\n    raise ValueError(a)\nf()",
        action=run_action,
        space=namespace,
    )
    assert "@daifu" not in format_stack(error)
    inside = raised("action('1 / 0', 3)", action=run_action)  # an error in our own code
    assert "action.py" not in format_stack(inside)


def test_a_crash_shows_its_namespace_after_actions():
    error = raised("def f(a):\n    return a / 0\nf(1)")
    crash = SimpleNamespace(exception=error, stack=error.__traceback__.tb_next, namespace={"a": 7})
    assert "a = 7" in format_stack(crash)


def test_a_closed_crash_is_shown_from_its_records():
    record = FrameRecord("train.py", 3, "train", "loss = f(x)", (("x", "1"), ("@daifu_i", "2")))
    crash = SimpleNamespace(exception=None, stack=[record], namespace={}, summary="ValueError: bad")
    assert format_stack(crash) == "train, train.py:3\n->    3 | loss = f(x)\n          x = 1\nValueError: bad"
    assert format_stack(SimpleNamespace(exception=None, stack=None, summary="ValueError: bad")) == "ValueError: bad"


def test_an_exception_without_traceback():
    assert format_stack(ValueError("x")) == "ValueError: x"


def test_causes_contexts_and_notes():
    error = raised(
        """
        try:
            try:
                1 / 0
            except ZeroDivisionError:
                [][0]
        except IndexError as problem:
            new = ValueError("bad")
            new.add_note("a\\nnote")
            raise new from problem
        """
    )
    lines = format_stack(error).splitlines()[-4:]
    name = error.__traceback__.tb_frame.f_code.co_filename
    assert lines == [
        "ValueError: bad",
        "  a note",
        f"  caused by IndexError: list index out of range (<module>, {name}:6)",
        f"  while handling ZeroDivisionError: division by zero (<module>, {name}:4)",
    ]
    assert "while handling" not in format_stack(raised("try:\n    1/0\nexcept Exception:\n    raise OSError from None"))


def test_an_exception_is_asked_for_nothing_of_a_crash():
    class Wrapper(Exception):
        frames, progress = [1, 2], 0.5

        def __getattr__(self, name):
            return getattr(self.inner, name)

    assert format_stack(Wrapper("x")) == f"{Wrapper.__module__}.{Wrapper.__qualname__}: x"


class Tee:
    """As a script's logger puts it in the place of its output."""

    def write(self, text):
        return len(text)

    def flush(self):
        pass


@pytest.mark.parametrize("stdout", [Tee(), None])
def test_an_output_that_cannot_say_whether_it_is_a_terminal(stdout, monkeypatch):
    monkeypatch.setattr(sys, "stdout", stdout)
    assert format_stack(ValueError("x")) == "ValueError: x"


def test_a_recursion_is_shown_by_its_first_and_last_round():
    error = raised("def f(n):\n    return f(n + 1) if n < 50 else n / 0\nf(0)")
    records = record_frames(error.__traceback__)
    assert [(r.line, r.left_out, r.recursion) for r in records] == [(3, 0, False), (2, 0, False), (2, 49, True)]
    assert "    ... the same 49 frames more" in format_stack(error)


def test_frames_that_call_each_other_are_one_recursion():
    error = raised("def f(n):\n    return g(n - 1) if n else n / 0\ndef g(n):\n    return f(n)\nf(20)")
    records = record_frames(error.__traceback__)
    assert [(r.function, r.left_out) for r in records] == [
        ("<module>", 0), ("f", 0), ("g", 0), ("f", 36), ("g", 0), ("f", 0)
    ]  # fmt: skip


def test_a_deep_stack_is_cut_in_the_middle():
    functions = "\n".join(f"def f{i}(n):\n    return f{i + 1}(n)" for i in range(100))
    error = raised(f"{functions}\ndef f100(n):\n    return n / 0\nf0(1)")
    assert sum(1 + record.left_out for record in record_frames(error.__traceback__, most=30)) == 102
    text = format_stack(error)
    assert text.count("return f") < 12
    assert "frames left out" in text


class Hostile:
    def __repr__(self):
        raise MemoryError

    def __getattribute__(self, name):
        raise KeyboardInterrupt


def test_it_is_small_whatever_the_values_are():
    names = ", ".join(f"v{i}" for i in range(300))
    source = f"def f({names}):\n    return [{names}][999]\nf(*things)\n"
    things = [
        Hostile(),
        "x" * 10**7,
        [[0] * 1000] * 1000,
        type("R", (), {"__repr__": lambda s: "y" * 10**6})(),
    ]
    error = raised(source, things=(things * 75))
    text = format_stack(error)
    assert "v0 = <repr failed: MemoryError>" in text
    assert max(map(len, text.splitlines())) < 250
    assert len(text) <= 8_000
    assert len(format_stack(error, limit=500)) <= 500
    assert "(cut)" in format_stack(error, limit=500)


def test_escapes_in_source_and_names_do_not_reach_the_terminal():
    error = raised("x = '\x1b[2J'; 1 / 0")
    assert format_stack(error).isascii()
    assert "\x1b" not in format_stack(error)


def test_source_that_is_not_there_or_no_python():
    exec_error = raised("1 / 0")
    linecache.cache.clear()
    assert format_stack(exec_error).splitlines()[-1] == "ZeroDivisionError: division by zero"
    error = raised("def f(a):\n    return a / 0\nf(1)")
    filename = error.__traceback__.tb_frame.f_code.co_filename
    linecache.cache[filename] = (1, None, ["!ls\n", "%magic (\n", "x\n"], filename)
    assert "->    2 | %magic (" in format_stack(error)


def test_records_keep_nothing_alive():
    class Big:
        pass

    big = Big()
    error = raised("def f(b):\n    raise ValueError(b)\nf(big)", big=big)
    records, alive = record_frames(error.__traceback__), weakref.ref(big)
    assert records
    del big, error
    gc.collect()
    assert alive() is None


def test_a_library_unit_that_crashed_is_shown_in_full():
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{")
    traceback = caught.value.__traceback__.tb_next
    records = record_frames(traceback)
    assert [record.library for record in records[:2]] == [False, True]

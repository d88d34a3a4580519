"""Every surgery is a version: its text, its diff against what the user has, and the way back.

The reference for a diff is the program `patch`, or the text that the user would have written; for a way back, the
function as it was before.
"""

from __future__ import annotations

import gc
import importlib
import linecache
import shutil
import subprocess
import sys
import textwrap
import weakref
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest

import daifu_ipy
from daifu_ipy import Repair, Surgery
from daifu_ipy.engine import versions
from daifu_ipy.engine.differences import Conflict, carried_over, unified
from daifu_ipy.engine.splicing import edits_of, splice
from daifu_ipy.engine.vaccinate import is_vaccinated
from tests.engine.modules import Answers, Fault, Module, run

pytestmark = pytest.mark.slow

NO_PATCH = pytest.mark.skipif(shutil.which("patch") is None, reason="there is no program patch")


@pytest.fixture(autouse=True)
def fresh():
    versions.clear()
    yield
    versions.clear()


def operated(source, *texts, call="main()", **options):
    """A module whose crashes, one for each text, were operated."""
    module = Module(textwrap.dedent(source), faults=len(texts), **options)
    answers = Answers(*(Surgery(textwrap.dedent(text)) for text in texts))
    run(module, answers, call)
    assert not answers.left
    assert answers.refusals == []
    return module


MAIN = """\
    def main():
        x = 1
        bad()
        return x
    """
FIXED = """\
    def main():
        x = 1
        x = 2  # fixed
        return x
    """


# which versions there are


def test_a_surgery_is_a_version():
    module = operated(MAIN, FIXED)
    (version,) = versions.all()
    assert (version.number, version.unit, version.replaced) == (1, "main", ("main",))
    assert (version.file, version.files) == (module.file, (module.file,))
    assert (version.line, version.statement) == (3, "x = 2")
    assert version.source == textwrap.dedent(FIXED)
    assert "".join(linecache.getlines(version.filename)) == version.source
    assert versions.version_of(module.main.__code__.co_filename) is version
    assert versions.version_of(module.file) is None


def test_numbers_count_what_was_applied():
    module = Module(textwrap.dedent(MAIN))
    answers = Answers(
        lambda crash: crash.preview(textwrap.dedent(FIXED)) and Surgery("def main(:"),
        Surgery("def main(]"),
        Surgery(textwrap.dedent(FIXED)),
    )
    run(module, answers)
    assert len(answers.refusals) == 2
    assert [version.number for version in versions.all()] == [1]
    assert versions.all()[0].filename == f"<daifu surgery 1 of {module.file.strip('<>')}>"


def test_a_surgery_of_operated_code_is_one_of_the_same_file():
    module = operated(MAIN, MAIN.replace("x = 1", "x = 3"), FIXED)
    first, second = versions.all()
    assert first.file == second.file == module.file
    assert second.filename == f"<daifu surgery 2 of {module.file.strip('<>')}>"


def test_helpers_in_the_text_are_replaced_too():
    source = "def helper():\n    return bad()\n\ndef main():\n    return helper()\n"
    operated(source, "def helper():\n    return 5\n\ndef main():\n    return helper() + 1\n")
    assert set(versions.all()[0].replaced) == {"helper", "main"}


def test_nothing_of_the_run_is_kept_alive():
    class Value:
        pass

    module = Module(
        "def main(x, default=None):\n    def inner(): return x\n    y = x\n    bad()\n    return inner() is y\n",
        Value=Value,
    )
    value, default = Value(), Value()
    seen = [weakref.ref(value), weakref.ref(default), weakref.ref(module.main)]
    module.main.__defaults__ = (default,)
    module.value = value

    def operate(crash):
        seen.append(weakref.ref(crash.exception))
        seen.append(weakref.ref(crash.innermost))
        return Surgery("def main(x, default=None):\n    def inner(): return x\n    y = x\n    return inner() is y\n")

    assert run(module, Answers(operate), "main(value)") is True
    value = default = None
    del module.value, module.main, module, operate
    gc.collect()
    assert [ref() for ref in seen[:2] + seen[3:]] == [None] * 4
    assert len(versions.all()) == 1
    assert versions.revert().left == ("main: it does not exist any more",)


# putting texts where they belong

CELL = '''\
import math
LIMIT = 3


# trains
@decorated
def train(n):
    """It trains.

    And more.
    """
    for i in range(n):
        step(i)
    # the end


class Net:
    size = 1

    def forward(self, x):
        return x

    @property
    def name(self):
        return "a"

    @name.setter
    def name(self, value):
        self._name = value


train(LIMIT)
'''


@pytest.mark.parametrize(
    ("typed", "replaced", "unit", "expected"),
    [
        pytest.param(
            "def train(n):\n    return n\n",
            {"train": 0},
            "train",
            CELL.replace(CELL[CELL.index("def train") : CELL.index("    # the end")], "def train(n):\n    return n\n"),
            id="a function without its decorator",
        ),
        pytest.param(
            "# learns\n@decorated\ndef train(n):\n    return n\n    # done\n",
            {"train": 0},
            "train",
            CELL.replace(
                CELL[CELL.index("# trains") : CELL.index("\n\nclass")],
                "# learns\n@decorated\ndef train(n):\n    return n\n    # done\n",
            ),
            id="comments around it",
        ),
        pytest.param(
            "def forward(self, x):\n    text = '''a\nb'''\n    return text\n",
            {"Net.forward": 0},
            "Net.forward",
            CELL.replace("        return x\n", "        text = '''a\nb'''\n        return text\n"),
            id="a method alone, with text over several lines",
        ),
        pytest.param(
            "    def forward(self, x):\n        return x + 1  # more\n",
            {"Net.forward": 0},
            "Net.forward",
            CELL.replace("        return x\n", "        return x + 1  # more\n"),
            id="a method as it is indented",
        ),
        pytest.param(
            "@name.setter\ndef name(self, value):\n    self._name = value.strip()\n",
            {"Net.name": 1},
            "Net.name",
            CELL.replace("value\n\n\ntrain", "value.strip()\n\n\ntrain"),
            id="the second of a name",
        ),
        pytest.param(
            "import os\nimport math\n\ndef helper():\n    return 1\n\n\ndef train(n):\n    return helper()\n",
            {"train": 0},
            "train",
            CELL.replace(
                CELL[CELL.index("@decorated") : CELL.index("    # the end")],
                "import os\n\ndef helper():\n    return 1\n\n\n@decorated\ndef train(n):\n    return helper()\n",
            ),
            id="a new import and a new function in front",
        ),
        pytest.param(
            "class Net:\n    def forward(self, x):\n        return -x\n",
            {"Net.forward": 0},
            "Net.forward",
            CELL.replace("return x\n", "return -x\n"),
            id="a class, in part",
        ),
        pytest.param(
            CELL.replace("size = 1", "size = 2  # bigger").replace("return x\n", "return -x\n").replace("LIMIT = 3", "LIMIT = 4"),
            {"Net.forward": 0},
            "Net.forward",
            CELL.replace("size = 1", "size = 2  # bigger").replace("return x\n", "return -x\n").replace("LIMIT = 3", "LIMIT = 4"),
            id="everything, with other changes",
        ),
        pytest.param("a = 1\n", {"<module>": 0}, "<module>", "a = 1\n", id="the cell itself"),
    ],
)  # fmt: skip
def test_a_text_is_put_where_it_belongs(typed, replaced, unit, expected):
    assert splice(CELL, edits_of(CELL, typed, replaced, unit)) == expected


# the diff


def file_module(tmp_path, monkeypatch, source, name):
    """A module of a real file, in the present folder."""
    (tmp_path / f"{name}.py").write_bytes(source if isinstance(source, bytes) else textwrap.dedent(source).encode())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop(name, None)
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    for value in list(vars(module).values()):
        if getattr(value, "__module__", None) == name:
            daifu_ipy.vaccinate(value, strict=True)
    return module


FILE = """\
    import math

    class Trainer:
        def fit(self, items):
            done = []
            for item in items:
                done.append(1 / item)
            return done

        def other(self):
            return math.pi

    def train(items):
        return Trainer().fit(items)
    """
METHOD = """\
def fit(self, items):
    done = []
    for item in items:
        if not item:  # divides by it
            continue
        done.append(1 / item)
    return done
"""
FIXED_FILE = textwrap.dedent(FILE).replace(
    "            done.append",
    "            if not item:  # divides by it\n                continue\n            done.append",
)


def repaired(tmp_path, monkeypatch, name, text=METHOD):
    module = file_module(tmp_path, monkeypatch, FILE, name)
    assert run(module, Answers(Surgery(text)), "train([1, 0, 2])") == [1, 0.5]
    return module


@NO_PATCH
@pytest.mark.parametrize(
    "text", [METHOD, textwrap.indent(METHOD, "    "), FIXED_FILE], ids=["alone", "indented", "all"]
)
def test_the_diff_is_one_that_patch_takes(tmp_path, monkeypatch, text):
    repaired(tmp_path, monkeypatch, "versions_patch", text)
    diff = versions.diff()
    assert diff.startswith("--- versions_patch.py\tnow\n+++ versions_patch.py\tsurgery 1\n@@ -4,6 +4,8 @@\n")
    subprocess.run(["patch", "-p0"], input=diff.encode(), check=True, stdout=subprocess.PIPE)
    assert (tmp_path / "versions_patch.py").read_text() == FIXED_FILE
    assert versions.diff() == ""


@NO_PATCH
def test_the_diff_is_of_the_file_as_it_is_now(tmp_path, monkeypatch):
    repaired(tmp_path, monkeypatch, "versions_now")
    path = tmp_path / "versions_now.py"
    path.write_text("# a comment above\n" + path.read_text() + "\n\n# and one below\n")
    subprocess.run(["patch", "-p0"], input=versions.diff().encode(), check=True, stdout=subprocess.PIPE)
    assert path.read_text() == f"# a comment above\n{FIXED_FILE}\n\n# and one below\n"


def test_a_function_that_was_edited_since_is_shown_as_it_crashed(tmp_path, monkeypatch):
    repaired(tmp_path, monkeypatch, "versions_edited")
    path = tmp_path / "versions_edited.py"
    mine = path.read_text().replace("done.append(1 / item)", "done.append(2 / item)")
    path.write_text(mine)
    assert "\n+            if not item:  # divides by it" in versions.diff()  # beside it: both can be had
    assert "\n             done.append(2 / item)" in versions.diff()
    path.write_text(mine.replace("for item in items", "for item in reversed(items)"))
    assert versions.diff().startswith("--- versions_edited.py\twhen it crashed; it was changed since\n")
    assert "\n+            if not item:  # divides by it" in versions.diff()
    assert "\n             done.append(1 / item)" in versions.diff()


def test_without_a_number_the_diff_goes_from_the_original_to_the_newest():
    module = operated(MAIN, MAIN.replace("x = 1", "x = 3"), FIXED)
    first, second = ([line for line in versions.diff(n).splitlines() if line[0] in "+-"][2:] for n in (1, 2))
    assert first == ["-    x = 1", "+    x = 3"]
    assert second == ["-    bad()", "+    x = 2  # fixed"]
    assert versions.diff() == versions.diff(2)
    assert versions.diff(2).startswith(f"--- {module.file}\tnow\n+++ {module.file}\tsurgery 2\n@@ -1,4 +1,4 @@\n")


def test_two_files_make_one_diff(tmp_path, monkeypatch):
    library = file_module(tmp_path, monkeypatch, "def half(x):\n    return x / 0\n", "versions_library")
    module = Module("def main():\n    return half(4)\n", half=library.half)
    daifu_ipy.unvaccinate(library.half)
    text = "def half(x):\n    return x / 2\n\ndef main():\n    return half(4) + 1\n"
    assert run(module, Answers(Surgery(text)), "main()") == 3
    assert set(versions.all()[0].files) == {str(tmp_path / "versions_library.py"), module.file}
    changed = [line for line in versions.diff().splitlines() if line[0] in "+-" and line[:3] not in ("+++", "---")]
    assert sorted(changed) == [
        "+    return half(4) + 1",
        "+    return x / 2",
        "-    return half(4)",
        "-    return x / 0",
    ]
    assert set(versions.revert().functions) == {"half", "main"}
    assert library.half.__code__.co_filename == str(tmp_path / "versions_library.py")


@pytest.mark.parametrize(
    ("original", "version", "present", "expected"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", "a\nb\nc\n", "a\nB\nc\n"),
        ("a\nb\nc\n", "a\nB\nc\n", "0\na\nb\nc\n", "0\na\nB\nc\n"),
        ("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n", "a\nB\nc\nd\n"),
        ("a\nb\nc\n", "a\nb\nb2\nc\n", "a\nb\nc2\n", "a\nb\nb2\nc2\n"),
        ("a\nb\n", "a\n", "b\na\nb\n", "b\na\n"),
        ("a\nb", "a\nB", "a\nb", "a\nB"),
        ("a\nb\nc\n", "a\nB\nc\n", "a\nx\nc\n", Conflict),
        ("a\nb\nc\n", "a\nb\nb2\nc\n", "a\nb\nx\nc\n", Conflict),
        ("a\n", "b\n", "", Conflict),
    ],
)
def test_a_change_carried_over(original, version, present, expected):
    if expected is Conflict:
        with pytest.raises(Conflict):
            carried_over(original, version, present)
    else:
        assert carried_over(original, version, present) == expected


@NO_PATCH
@pytest.mark.parametrize(("old", "new"), [("a", "b"), ("a\nb", "a\nc\n"), ("a\n", "a\nb")])
def test_texts_that_do_not_end_in_a_line_feed(tmp_path, old, new):
    (tmp_path / "f").write_text(old)
    subprocess.run(["patch", "-p0"], input=unified(old, new, "f", "f", "", "").encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "f").read_text() == new


def test_what_there_is_not():
    for call in (versions.diff, versions.revert):
        with pytest.raises(versions.VersionError, match="no surgery was made"):
            call()
        with pytest.raises(versions.VersionError, match="there is no surgery 4"):
            call(4)


# the way back


def crashes(module, call="main()"):
    module.faults = 1
    with pytest.raises(Fault):
        run(module, Answers(), call)
    module.faults = 0
    return True


def test_revert_goes_back_to_the_original_which_stays_vaccinated():
    module = operated(MAIN, FIXED)
    reference = module.main
    assert reference() == 2
    done = versions.revert()
    assert (done.functions, done.left, done.version.reverted) == (("main",), (), True)
    assert crashes(module)
    assert reference() == 1
    assert is_vaccinated(reference)
    assert reference.__code__.co_filename == module.file
    module.faults = 1
    assert run(module, Answers(Surgery(textwrap.dedent(FIXED)))) == 2
    assert [v.number for v in versions.all()] == [1, 2]


def test_revert_goes_back_step_by_step():
    module = operated(MAIN, MAIN.replace("x = 1", "x = 3"), FIXED)
    with pytest.raises(versions.VersionError, match="surgery 2 has replaced main since: revert that one first"):
        versions.revert(1)
    assert versions.revert().version.number == 2
    assert module.main() == 3
    assert versions.revert().version.number == 1
    assert module.main() == 1
    with pytest.raises(versions.VersionError, match="no surgery was made"):
        versions.revert()
    with pytest.raises(versions.VersionError, match="surgery 2 was reverted already"):
        versions.revert(2)


HELPED = "def helper():\n    return bad(1)\n\ndef main():\n    return helper()\n"


def test_a_plain_helper_goes_back_to_its_plain_code():
    module = operated(HELPED, "def helper():\n    return 5\n", plain=("helper",))
    code = module.helper.__code__
    assert module.main() == 5
    assert versions.revert().functions == ("helper",)
    assert module.main() == 1
    assert not is_vaccinated(module.helper)
    assert module.helper.__code__.co_filename == module.file != code.co_filename


def test_one_of_two_surgeries_of_a_file_is_reverted():
    source = "def a():\n    return bad(1)\n\ndef b():\n    return bad(1)\n"
    module = Module(source)
    run(module, Answers(Surgery("def a():\n    return 5\n")), "a()")
    module.faults = 1
    run(module, Answers(Surgery("def b():\n    return 6\n")), "b()")
    assert versions.diff().count("\n+    return") == 2
    versions.revert(1)
    assert (module.a(), module.b()) == (1, 6)
    assert versions.diff().count("\n+    return") == 1


def test_closures_made_before_and_after_go_back():
    source = "def make(x):\n    def inner():\n        return x\n    bad()\n    return inner\n"
    module = Module(source, faults=0)
    before = module.make(1)
    module.faults = 1
    text = source.replace("return x", "return -x").replace("    bad()\n", "")
    middle = run(module, Answers(Surgery(text)), "make(2)")
    after = module.make(3)
    assert after() == -3
    versions.revert()
    assert (before(), middle(), after(), module.make(4)()) == (1, 2, 3, 4)


def test_a_running_frame_ends_with_what_it_has():
    source = "def main():\n    yield bad()\n    yield 1\n"
    module = Module(source)
    generator = module.main()
    with daifu_ipy.repair_with(Answers(Surgery("def main():\n    yield 0\n    yield 2\n"))):
        assert next(generator) == 0
    versions.revert()
    assert list(generator) == [2]
    assert list(module.main()) == [None, 1]


def test_a_function_that_runs_something_else_by_now_is_left():
    module = operated(MAIN, FIXED)
    module.main.__code__ = (lambda: 7).__code__
    assert versions.revert().left == ("main: it runs other code by now",)
    assert module.main() == 7


def test_what_was_unvaccinated_since_goes_back_to_plain_code():
    module = operated(MAIN, FIXED)
    daifu_ipy.unvaccinate(module.main)
    versions.revert()
    assert module.main() == 1
    assert not is_vaccinated(module.main)


def test_methods_of_all_kinds_go_back():
    source = """\
    class C:
        @property
        def p(self): return bad(1)
        @classmethod
        def c(cls): return (cls.__name__, 1)
        @staticmethod
        def s(): return 1
    def main(): return C().p
    """
    module = Module(textwrap.dedent(source), plain=("C",))
    text = textwrap.dedent(source).replace("1", "2")
    run(module, Answers(Surgery(text)))
    assert (module.C().p, module.C.c(), module.C.s()) == (2, ("C", 2), 2)
    assert set(versions.revert().functions) >= {"C.p", "C.c", "C.s"}
    assert (module.C().p, module.C.c(), module.C.s()) == (1, ("C", 1), 1)


NESTED = """\
def make(x):
    def inner():
        return bad(x)
    return inner
def main():
    return make(1)()
"""


def test_a_nested_function_operated_by_its_own_text():
    module = Module(NESTED)
    old = module.make(3)
    assert run(module, Answers(Surgery("def inner():\n    return -x\n"))) == -1
    assert (old(), module.make(3)()) == (-3, -3)
    assert [line for line in versions.diff().splitlines()[2:] if line[0] in "+-"] == [
        "-        return bad(x)",
        "+        return -x",
    ]
    versions.revert()
    assert (old(), module.make(3)(), module.main()) == (3, 3, 1)


def test_a_changed_default_goes_back():
    source = "def main(a=1, *, b=[]):\n    bad()\n    return a, b\n"
    module = Module(source)
    kept = module.main.__kwdefaults__["b"]
    assert run(module, Answers(Surgery("def main(a=5, *, b=[]):\n    return a, b\n"))) == (1, [])
    assert module.main() == (5, [])
    versions.revert()
    assert module.main() == (1, [])
    assert module.main()[1] is kept


def test_a_new_function_is_in_the_diff():
    module = Module("import os\n\ndef main():\n    return bad(1)\n\nx = main\n")
    text = "def helper():\n    return 5\n\n\ndef main():\n    return helper()\n"
    assert run(module, Answers(Surgery(text))) == 5
    document = versions.documents()[0]
    assert document.repaired({1}) == f"import os\n\n{text}\nx = main\n"


def test_an_outer_frame_that_is_operated():
    source = "def inner():\n    return bad(1)\n\ndef main():\n    return inner()\n"
    module = Module(source)
    run(module, Answers(Repair(then=Surgery("def main():\n    return 7\n"), frame=1)))
    assert (versions.all()[0].unit, versions.all()[0].replaced) == ("main", ("main",))
    versions.revert()
    assert module.main() == 1


def test_a_text_that_can_not_be_put_into_the_file_is_no_hindrance(monkeypatch):
    monkeypatch.setattr(versions, "edits_of", mock.Mock(side_effect=RecursionError("deep")))
    module = operated(MAIN, FIXED)
    assert module.main() == 2
    assert versions.all()[0].note == f"{module.file}: the new text can't be put there: deep"
    assert versions.diff() == ""


def test_surgeries_of_two_threads_have_numbers_of_their_own():
    source = "".join(f"def f{n}():\n    return bad({n})\n\n" for n in range(8))
    module = Module(source, faults=8)

    def work(number):
        text = f"def f{number}():\n    return {number + 10}\n"
        return run(module, Answers(Surgery(text)), f"f{number}()")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == list(range(10, 18))
    assert [v.number for v in versions.all()] == list(range(1, 9))
    for version in versions.all():
        assert version.filename.startswith(f"<daifu surgery {version.number} of ")
        assert "".join(linecache.getlines(version.filename)) == version.source
    assert versions.documents()[0].repaired(set(range(1, 9))) == "".join(
        f"def f{n}():\n    return {n + 10}\n\n" for n in range(8)
    )

"""What the panel shows of a crash: the overview, frames, texts, and variables in order."""

from __future__ import annotations

import functools
import gc
import json
import re
import threading
import weakref
from pathlib import Path

import pytest

from daifu_ipy import Pass, Return, repair_with, run_cell, vaccinate
from daifu_ipy.engine import interception
from daifu_ipy.engine.scopes import HIDDEN
from daifu_ipy.frontends import panel_detail, panel_frames, panel_values
from daifu_ipy.frontends.panel_state import PanelState
from tests.panel.asking import asked, asked_in_cell, complaint, crashed, named, rows


def helper(batch, lr):
    scale = 2
    return scale * lr / batch


@vaccinate
def train(batches, lr=1.0):
    losses, loss = [], None
    for batch in batches:
        loss = helper(batch, lr)
        losses.append(loss)
    return losses


@vaccinate
def fit(epochs):
    for epoch in range(epochs):
        result = train([1, epoch - 1])
    return result


class Trainer:
    def __init__(self):
        self.steps = 0

    @vaccinate
    def step(self, größe="ä"):
        return größe + self.steps


def overview(state):
    return state.overview()


def everything(state):
    """All that the state gives without being asked to change anything, as text."""
    shown = [state.overview(), state.functions(), state.complete(0, "")]
    for level in range(len(state._levels.all)):
        shown += [state.frame(level), state.complete(level, "")]
        shown += [state.expand(level, row["path"]) for row in shown[-2]["variables"]]
    return json.dumps(shown)


# the overview


def test_what_happened():
    shown = asked(lambda: train([1, 0]), overview)
    crash = shown["crash"]
    assert crash["type"] == "ZeroDivisionError"
    assert crash["message"] == "float division by zero"
    assert crash["unit"] == "train"
    assert crash["place"].endswith("test_panel_state.py")
    assert crash["line"] == train.__code__.co_firstlineno + 4
    assert crash["statement"] == "loss = helper(batch, lr)"
    assert crash["thread"] is None
    assert crash["in_a_row"] == 1
    assert crash["remarks"] == []  # what a retry does twice is said at its button
    assert json.loads(json.dumps(shown)) == shown


def test_a_message_keeps_its_lines_and_a_type_its_module():
    shown = asked_in_cell("raise json.JSONDecodeError('first\\nsecond', 'x', 0)", overview, json=json)["crash"]
    assert shown["type"] == "json.decoder.JSONDecodeError"
    assert shown["message"].splitlines()[:2] == ["first", "second: line 1 column 1 (char 0)"]


def test_a_notebook_cell_is_named_by_its_file():
    shown = asked_in_cell("x = 1\n1 / 0", overview)
    assert shown["crash"]["unit"] == shown["crash"]["place"]
    item = next(item for item in shown["frames"] if item["crashed"])
    assert (item["level"], item["function"]) == (shown["selected"], "top level")


def test_the_loops_of_outer_functions_come_first():
    assert [(loop["header"], loop["at"]) for loop in asked(lambda: fit(3), overview)["progress"]] == [
        ("for epoch in range(epochs)", [["epoch", "1"]]),
        ("for batch in batches", [["batch", "0"]]),
    ]


def test_frames_outermost_first():
    shown = asked(lambda: fit(3), overview)
    own = [frame for frame in shown["frames"] if frame["function"] in ("fit", "train", "helper")]
    assert [(f["function"], f["vaccinated"], f["crashed"], f["source"]) for f in own] == [
        ("fit", True, False, "result = train([1, epoch - 1])"),
        ("train", True, True, "loss = helper(batch, lr)"),
        ("helper", False, False, "return scale * lr / batch"),
    ]
    assert shown["selected"] == own[1]["level"]


def test_frames_of_libraries_are_folded():
    cell = "import json\ndef hook(d):\n    return d['b']\njson.loads('{\"a\": 1}', object_hook=hook)"
    shown = asked_in_cell(cell, overview)["frames"]
    at = next(number for number, item in enumerate(shown) if item["crashed"])
    folded, inner = shown[at - 1], shown[at]
    assert folded["kind"] == "folded"
    assert [frame["function"] for frame in folded["frames"]] == [
        "loads",
        "JSONDecoder.decode",
        "JSONDecoder.raw_decode",
    ]
    assert folded["count"] == 3
    assert all(frame["kind"] == "library" for frame in folded["frames"])
    assert (inner["kind"], inner["function"]) == ("user", "hook")


@pytest.mark.parametrize("vaccinated", [True, False])
def test_a_deep_recursion_is_short(vaccinated):
    def down(level):
        return down(level - 1) if level else 1 / level

    if vaccinated:
        vaccinate(down)
    top = vaccinate(lambda_free_call(down))
    shown = asked(lambda: top(150), overview)
    own = [item for item in shown["frames"] if item["function"].endswith("down")]
    assert len(own) <= 4
    assert any("left out (the same again and again)" in item.get("note", "") for item in own)
    assert any(item["level"] == shown["selected"] and item["crashed"] for item in shown["frames"])


def lambda_free_call(function):
    def top(level):
        return function(level)

    return top


def test_a_crash_in_a_thread_names_it():
    names = []
    thread = threading.Thread(
        target=lambda: names.append(asked(lambda: train([0]), overview)["crash"]["thread"]), name="loader 3"
    )
    thread.start()
    thread.join()
    assert names == ["loader 3"]


# one frame


def marked(detail):
    """The text of the executing node, cut out of the text in the editor."""
    mark = detail["mark"]
    line = detail["text"].splitlines()[mark["line"] - detail["first_line"]]
    return line[mark["start"] : mark["end"]]


def test_the_executing_node_is_marked_in_the_text():
    detail = asked(lambda: train([0]), crashed)
    assert marked(detail) == "helper(batch, lr)"
    assert detail["first_line"] == train.__code__.co_firstlineno
    assert detail["text"].startswith("@vaccinate\ndef train")


def test_a_method_is_shown_as_it_is_indented_in_its_file():
    detail = asked(lambda: Trainer().step(), crashed)
    assert marked(detail) == "größe + self.steps"
    assert detail["text"].startswith("    @vaccinate\n    def step")
    assert detail["values"] == [["größe", "'ä'"], ["self.steps", "0"]]


def test_a_node_over_several_lines_is_marked_to_the_end_of_its_first():
    detail = asked_in_cell("x = dict(a=\n  1 / 0)\n", crashed)
    assert marked(detail) == "1 / 0"
    detail = asked_in_cell("x = (1 /\n  0)\n", crashed)
    assert marked(detail) == "1 /"


def test_inner_and_outer_frames_have_their_own_text_and_values():
    level = asked(lambda: fit(3), overview)["selected"]
    outer, inner = asked(lambda: fit(3), lambda s: s.frame(level - 1), lambda s: s.frame(level + 1))
    assert marked(outer) == "train([1, epoch - 1])"
    assert rows(outer)["epoch"] == "1"
    assert (marked(inner), inner["vaccinated"]) == ("scale * lr / batch", False)
    assert rows(inner) == {"scale": "2", "lr": "1.0", "batch": "0"}
    assert inner["text"].startswith("def helper")


def test_the_key_is_that_of_the_code():
    def keys(state):
        level = state.overview()["selected"]
        return [state.frame(level)["key"], state.frame(level + 1)["key"], state.function("helper")["key"]]

    first, second = asked(lambda: train([0]), keys), asked(lambda: train([2, 0]), keys)
    assert first == second
    assert first[1] == first[2] != first[0]


def test_a_changed_file_can_not_be_edited(tmp_path, monkeypatch):
    file = tmp_path / "changing.py"
    file.write_text("def inner():\n    return 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    import changing

    file.write_text("# another first line\nclass Inner:\n    def other(self): pass\n")

    @vaccinate
    def call():
        return changing.inner()

    detail = asked(call, lambda s: s.frame(s.overview()["selected"] + 1))
    assert (detail["can_edit"], detail["why_not"]) == (False, "its file was changed since it was imported")
    assert not detail["endings"]["surgery"]["enabled"]


def test_a_frame_without_source_is_shown_without():
    space = {"run": lambda: None}
    exec("def hidden():\n    secret = 3\n    return 1 / 0", space)

    @vaccinate
    def call():
        return space["hidden"]()

    detail = asked(call, lambda s: s.frame(s.overview()["selected"] + 1))
    assert (detail["text"], detail["can_edit"], detail["mark"]) == ("", False, {"line": 3})
    assert rows(detail) == {"secret": "3"}


def test_there_is_no_other_frame():
    said = asked(lambda: train([0]), complaint(lambda s: s.frame(999)), complaint(lambda s: s.variables(-1)))
    assert said == ["there is no frame 999", "there is no frame -1"]


# variables


def test_what_the_statement_names_comes_first_then_the_function_s_own():
    def make(shared):
        other = 1

        @vaccinate
        def unit(a, z):
            b = 2
            y = shared + z
            return other, a, b, y

        return unit

    assert named(asked(lambda: make("")("a", 1), crashed)) == ["shared", "z", "a", "b", "other"]


CELL = """
import json
def function(): pass
class Class: pass
first = 1
second = 2
third = second / 0
"""
OTHERS = {
    "older": 0,
    "_private": 5,
    "In": [""],
    "Out": {},
    "_": 3,
    "__": 2,
    "_i": "x",
    "_i12": "x",
    "_12": 3,
    "_dh": [],
}


def test_in_a_cell_the_user_s_own_names_come_first_and_the_shell_s_not_at_all(monkeypatch):
    class Shell:
        user_ns_hidden = {"In": OTHERS["In"], "Out": OTHERS["Out"], "first": object()}

    monkeypatch.setattr(panel_detail, "running_shell", Shell)
    shown = named(asked_in_cell(CELL, crashed, **OTHERS))
    assert shown == ["second", "first", "older", "_private", "json", "function", "Class"]


def test_variables_come_in_pages_and_by_name():
    def run():
        cell = "\n".join([*(f"v{number} = {number}" for number in range(250)), "1 / 0"])
        return asked_in_cell(
            cell,
            crashed,
            lambda s: s.variables(s.overview()["selected"], 200),
            lambda s: s.variables(s.overview()["selected"], 0, "V12"),
        )

    first, last, filtered = run()
    assert (len(first["variables"]), first["total"]) == (100, 250)
    assert named(first) + named(last) == [f"v{n}" for n in (*range(100), *range(200, 250))]
    assert named(filtered) == ["v12", *(f"v12{n}" for n in range(10))]
    assert filtered["total"] == 11


CONSTRUCTS = """
import contextlib, warnings
def unit(items):
    with contextlib.nullcontext(items) as got, contextlib.nullcontext():
        for first, second in got:
            try:
                try:
                    raise KeyError(first)
                except KeyError as caught:
                    for inner in [1]:
                        here, there = locals(), vars()
                        value = (lambda: second)() / 0
            finally:
                done = 1
unit([(1, 2)])
for outer in [1]:
    with contextlib.nullcontext() as nothing:
        1 / 0
"""


def test_hidden_names_are_never_shown():
    shown = asked_in_cell(CONSTRUCTS, everything)
    assert '"caught"' in shown
    assert re.findall(rf".{{,40}}{HIDDEN}\w", shown) == []


# functions by name


def logged(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@logged
def wrapped(x):
    return x


@functools.cache
def cached(x):
    return x


class Shapes:
    @staticmethod
    def of(x):
        return x

    @property
    def area(self):
        return 1

    class Inner:
        pass


def test_functions_can_be_opened_by_name():
    names = asked(lambda: train([0]), lambda s: s.functions())
    assert names[:2] == ["helper", "train"]
    assert {"fit", "Trainer.step", "Trainer.__init__", "wrapped", "cached", "Shapes.of", "Shapes.area"} <= {*names}
    assert not {name for name in names if name.startswith(("repair_with", "PanelState", "asked.<", "<"))} - {
        "asked.<locals>.manager"
    }
    assert asked(lambda: train([0]), lambda s: s.functions("TRAIN")) == ["train", "Trainer.__init__", "Trainer.step"]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("wrapped", "@logged\ndef wrapped"),
        ("Shapes.area", "    @property\n    def area"),
        ("cached", "@functools.cache"),
    ],
)
def test_a_function_s_text(name, start):
    found = asked(lambda: train([0]), lambda s: s.function(name))
    assert found["text"].startswith(start)
    lines = Path(__file__).read_text("utf-8").splitlines()
    assert lines[found["first_line"] - 1] == found["text"].splitlines()[0]


def test_a_function_of_an_imported_file_and_one_of_the_same_name(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def helper():\n    return 2\ndef inner():\n    return helper()\n")
    monkeypatch.syspath_prepend(tmp_path)
    cell = "import mine\ndef helper():\n    return 1\n1 / 0"
    names, text = asked_in_cell(cell, lambda s: s.functions(), lambda s: s.function(s.functions("helper (")[0]))
    assert "inner" in names
    helpers = [name for name in names if name.startswith("helper")]
    assert helpers[0] == "helper"
    assert len(helpers) == 3
    assert text["text"].startswith("def helper")


def test_a_function_that_there_is_not():
    said = asked(lambda: train([0]), complaint(lambda s: s.function("nothing")))
    assert said == "there is no function nothing here"


# memory


class Big:
    pass


def test_nothing_is_held_when_it_is_over():
    kept = []

    @vaccinate
    def holds():
        big = Big()
        kept.append(weakref.ref(big))
        return helper(0, 1) and big

    states = []

    def manager(crash):
        state = PanelState(crash)
        state.overview(), crashed(state), state.act(state.overview()["selected"], "big")
        state.frame(state.overview()["selected"] + 1)
        state.let_go()
        states.append(state)
        return Return("None")

    with repair_with(manager):
        holds()
    gc.collect()
    assert kept[0]() is None


# crashes in a row


def test_the_third_crash_in_a_row_is_remarked():
    counts, remarks = [], []

    def manager(crash):
        state = PanelState(crash)
        shown = state.overview()["crash"]
        counts.append((shown["in_a_row"], PanelState(crash).overview()["crash"]["in_a_row"]))
        remarks.append(shown["remarks"])
        if len(counts) == 4:
            state.act(state.overview()["selected"], "batch = 1")
        return Pass()

    with repair_with(manager):
        run_cell("def f(batches):\n    for batch in batches:\n        x = 1 / batch\nf([0, 5])", {})
    assert counts == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert remarks[:2] == [[], []]
    assert remarks[2] == ["crash 3 in a row at this statement: retried so far in vain"]


def test_a_success_in_between_begins_anew():
    counts = []

    def manager(crash):
        state = PanelState(crash)
        counts.append(state.overview()["crash"]["in_a_row"])
        state.act(state.overview()["selected"], "batch = 1")
        return Pass()

    with repair_with(manager):
        run_cell("def f(batches):\n    for batch in batches:\n        x = 1 / batch\nf([0, 5, 0, 0])", {})
    assert counts == [1, 1, 1]


# what it costs


def test_a_deep_stack_and_many_variables_cost_no_more_than_what_is_shown(monkeypatch):
    captured, summaries = [], []
    count(monkeypatch, interception, "frame_of", captured)
    count(monkeypatch, panel_frames, "frame_of", captured)
    count(monkeypatch, panel_values, "summarise", summaries)
    assignments = "".join(f"    v{number} = [{number}]\n" for number in range(1000))
    cell = f"def deep(level):\n    if level:\n        return deep(level - 1)\n{assignments}    1 / 0\ndeep(150)\n"
    frame = asked_in_cell(cell, crashed)
    assert (len(frame["variables"]), frame["total"]) == (100, 1001)
    assert len(captured) <= 2
    assert len(summaries) <= 150


def count(monkeypatch, module, name, calls):
    call = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args, **options: calls.append(name) or call(*args, **options))

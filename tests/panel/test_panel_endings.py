"""What the buttons say is what the engine does: enabled where it is taken, disabled where it is refused."""

from __future__ import annotations

import pytest

from daifu_ipy import Abort, Break, Continue, Pass, Repair, Return, Skip, Surgery, repair_with, run_cell, vaccinate
from daifu_ipy.engine import versions
from daifu_ipy.frontends.panel_state import PanelState
from tests.panel.asking import asked, asked_in_cell, complaint, crashed
from tests.panel.test_panel_state import fit, train


@pytest.fixture(autouse=True)
def _no_versions_stay():
    yield
    versions.clear()


RESUMING = {"pass": Pass(), "skip": Skip(), "continue": Continue(), "break": Break(), "return": Return("None")}

PROGRAMS = {
    "in a loop": "def f():\n  for x in [0, 1]:\n    y = 1 / x\nf()",
    "no loop": "def f(x):\n  y = 1 / x\nf(0)",
    "cell": "x = 0\n1 / x",
    "cell in a loop": "for x in [0]:\n  1 / x",
    "while test": "def f(x):\n  while 1 / x:\n    x -= 1\nf(0)",
    "if test": "def f(x):\n  for i in [1]:\n    if 1 / x: pass\nf(0)",
    "finished generator": "def g():\n  yield 1\n  raise ValueError\ndef f():\n  for x in g(): pass\nf()",
    "map": "def g(x):\n  return 1 / x\ndef f():\n  for x in map(g, [1, 0, 2]): pass\nf()",
    "iter": "def f():\n  for x in 5: pass\nf()",
    "match subject": "def f(x):\n  match 1 / x:\n    case 1: pass\nf(0)",
    "unpacking": "def f():\n  for a, b in [(1, 2), 3]: pass\nf()",
    "except type": "def f():\n  try: int('x')\n  except nothing: pass\nf()",
    "with entry": "def f():\n  for i in [1]:\n    with open('/nowhere/at/all') as a: pass\nf()",
    "except*": "def f():\n  for i in [1]:\n    try: raise ExceptionGroup('', [KeyError()])\n    except* KeyError: 1 / 0\nf()",
    "dead generator in an action": "def g():\n  yield 1\n  raise ValueError\ndef f(items):\n  return list(items)\nf(g())",
}


def taken(source, ending, only):
    """Whether the engine takes an ending of the first crash."""
    refused = []

    def manager(crash):
        if crash.refusal is not None or manager.asked:
            refused.append(crash.refusal)
            return Abort()
        manager.asked = True
        return ending

    manager.asked = False
    error = None

    def run():
        with repair_with(manager):
            run_cell(source, {"__name__": "__main__"}, only=only)

    # no `try` around the run: it would be the program's handler
    from threading import Thread

    thread = Thread(target=run)
    thread.start()
    thread.join()
    assert manager.asked, error
    return [reason for reason in refused if reason is not None]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("word", RESUMING)
@pytest.mark.parametrize("name", PROGRAMS)
def test_enabled_is_what_the_engine_takes(name, word):
    source, only = PROGRAMS[name], ("f",) if "generator" in name or name == "map" else None
    refusals = taken(source, RESUMING[word], only)
    shown = {}

    def look(crash):
        state = PanelState(crash)
        shown.update(crashed(state)["endings"][word])
        state.let_go()
        return Abort()

    def run():
        with repair_with(look):
            run_cell(source, {"__name__": "__main__"}, only=only)

    from threading import Thread

    thread = Thread(target=run)
    thread.start()
    thread.join()
    assert shown["enabled"] == (refusals == [])
    assert shown["why_not"] == (refusals[0] if refusals else "")
    assert bool(shown["says"]) == shown["enabled"]


def says(state, offset=0):
    return state.frame(state.overview()["selected"] + offset)["endings"]


def test_what_runs_again_and_what_is_stale_is_said():
    shown = asked(lambda: train([1, 0]), says)
    assert "line 28 runs again: loss = helper(batch, lr)" in shown["pass"]["says"].replace(
        str(train.__code__.co_firstlineno + 4), "28"
    )
    assert shown["pass"]["says"].endswith("(had begun, and runs twice: helper(batch, lr))")
    assert shown["skip"]["says"].endswith("an older value stays in loss")
    assert "for batch in batches" in shown["continue"]["says"]
    assert [name for name, ending in shown.items() if ending["ask"]] == ["abort"]


def test_an_outer_frame_says_what_is_left_and_asks():
    shown = asked(lambda: fit(3), lambda s: says(s, -1))
    assert all("train and what it has not finished are left" in shown[word]["says"] for word in RESUMING)
    assert all(shown[word]["ask"] for word in RESUMING)
    assert "for epoch in range(epochs)" in shown["break"]["says"]
    assert "an older value stays in result" in shown["skip"]["says"]


def test_a_frame_that_is_not_vaccinated_says_who_goes_on_instead():
    shown = asked(lambda: train([1, 0]), lambda s: says(s, 1))
    assert all("helper is not vaccinated" in shown[word]["says"] for word in RESUMING)
    assert [word for word in RESUMING if not shown[word]["ask"]] == ["pass"]
    assert "later calls of helper" in shown["surgery"]["says"]


def repairs(state, *asked_for, offset=0):
    level = state.overview()["selected"] + offset
    return [state.repair(level, word, **fields) for word, fields in asked_for]


ALL = [*((word, {}) for word in RESUMING), ("abort", {}), ("surgery", {"source": "x", "restart_at": 3, "key": "k"})]
MADE = [*RESUMING.values(), Abort(), Surgery("x", 3)]


@pytest.mark.parametrize(("offset", "frame"), [(0, 0), (-1, 1), (1, 0), (-2, 0)])
def test_a_button_s_repair_is_of_the_selected_frame_or_the_crashed_one(offset, frame):
    made = asked(lambda: fit(3), lambda s: repairs(s, *ALL, offset=offset))
    assert made == [Repair(then=then, frame=0 if then == Abort() else frame) for then in MADE]


def test_what_is_no_repair_is_said():
    bad = [("jump", {}), ("return", {"expression": "1 +"}), ("surgery", {"source": 3}), ("surgery", {"source": "x", "restart_at": "there"})]  # fmt: skip
    said = asked(lambda: train([0]), *(complaint(lambda s, one=one: repairs(s, one)) for one in bad))
    assert "there is no ending 'jump'" in said[0]
    assert said[1].startswith("the value to return must be an expression: ")
    assert "must be Python text" in said[2]
    assert "restart_at must be" in said[3]


def test_a_value_to_return():
    assert asked(lambda: train([0]), lambda s: repairs(s, ("return", {"expression": " losses "}))) == [
        Repair(then=Return(" losses "))
    ]


# actions


def acted(state, *codes, offset=0):
    level = state.overview()["selected"] + offset
    return [state.act(level, code) for code in codes], state.frame(level)["variables"]


def test_an_action_prints_gives_raises_and_sticks(capsys):
    (first, second, third), variables = asked(lambda: train([0]), lambda s: acted(s, "print(batch)", "batch = 5; lr + 1", "nothing"))  # fmt: skip
    assert (first["stdout"], first["value"], first["error"]) == ("0\n", None, None)
    assert (second["value"], second["code"]) == ("2.0", "batch = 5; lr + 1")
    assert third["error"].startswith("NameError")
    assert next(row["text"] for row in variables if row["name"] == "batch") == "5"
    assert capsys.readouterr().out == "0\n"


def test_an_action_in_an_outer_frame_and_in_one_that_is_not_vaccinated():
    (outer,), variables = asked(lambda: fit(3), lambda s: acted(s, "epochs = 1", offset=-1))
    assert outer["error"] is None
    assert next(row["text"] for row in variables if row["name"] == "epochs") == "1"
    (looks, binds), _ = asked(lambda: fit(3), lambda s: acted(s, "scale", "scale = 5", offset=1))
    assert looks["value"] == "2"
    assert "would not stick there" in binds["error"]


class Shell:
    """Shows numbers above 9 as HTML, and fails at texts."""

    class display_formatter:
        @staticmethod
        def format(value):
            if isinstance(value, str):
                raise RuntimeError
            return {"text/plain": repr(value)} | ({"text/html": f"<b>{value}</b>"} if value > 9 else {}), {}


def test_the_value_is_shown_as_the_notebook_would(monkeypatch):
    monkeypatch.setattr("daifu_ipy.frontends.panel_state.running_shell", Shell)
    shown, _ = asked(lambda: train([0]), lambda s: acted(s, "10", "5", "'text'"))
    assert [entry["value"] for entry in shown] == ["10", "5", "'text'"]
    assert [entry["error"] for entry in shown] == [None] * 3
    assert [entry["rich"] for entry in shown] == [[{"text/plain": "10", "text/html": "<b>10</b>"}], [], []]


# surgery


@vaccinate
def scaled(items):
    total = 0
    for item in items:
        total += 1 / item
    return total


FIRST = scaled.__code__.co_firstlineno


def previewed(state, old, new, restart_at=None, offset=0):
    detail = state.frame(state.overview()["selected"] + offset)
    text = detail["text"].replace(old, new)
    return state.preview(detail["level"], text, restart_at, detail["key"]), text


def test_lines_are_counted_as_in_the_file():
    answer, _ = asked(lambda: scaled([0]), lambda s: previewed(s, "1 / item", "1 / (item or 1)"))
    preview = answer["preview"]
    assert (preview["line"], preview["statement"]) == (FIRST + 4, "total += 1 / (item or 1)")
    assert preview["choices"][0]["line"] == FIRST + 4
    assert "-        total += 1 / item" in answer["diff"]
    assert "+        total += 1 / (item or 1)" in answer["diff"]


def test_a_choice_s_own_name_is_what_a_surgery_takes():
    def choose(state):
        level = state.overview()["selected"]
        answer, text = previewed(state, "total = 0", "total = 10")
        start = next(c for c in answer["preview"]["choices"] if c["statement"].startswith("part ="))
        again = state.preview(level, text, start["restart_at"], None)["preview"]
        return start, again

    def run(items):
        total = 0
        for item in items:
            part = item
            total += 1 / part
        return total

    first = run.__code__.co_firstlineno
    start, again = asked(lambda: vaccinate(run)([1, 0]), choose)
    assert start["line"] == again["line"] == first + 3
    assert start["restart_at"] == 4
    assert again["reason"].startswith(f"line {first + 3}, as chosen")


def test_a_refusal_names_its_line_in_the_file():
    answer, _ = asked(lambda: scaled([0]), lambda s: previewed(s, "for item in items:", "for item in items"))
    assert answer["refusal"]["line"] == FIRST + 3
    assert f"line {FIRST + 3}: " in answer["refusal"]["text"]
    assert answer["refusal"]["key"].startswith("scaled, ")


def test_each_line_that_a_syntax_error_names_is_of_the_file():
    answer, _ = asked(lambda: scaled([0]), lambda s: previewed(s, "        total +=", "    total +="))
    assert f"line {FIRST + 4}: expected an indented block" in answer["refusal"]["text"]
    assert answer["refusal"]["text"].endswith(f"'for' statement on line {FIRST + 3}")


def test_lines_of_the_old_code_stay_what_they_are():
    answer, _ = asked(lambda: scaled([0]), lambda s: previewed(s, "return total", "return total, unknown("))
    assert answer["refusal"]["line"] == FIRST + 5
    answer, _ = asked(lambda: scaled([0]), lambda s: previewed(s, "for item in items:", "if items:"))
    assert "refusal" in answer or str(FIRST + 3) in answer["preview"]["choices"][-1]["reason"]


def test_a_text_without_a_change_is_no_surgery():
    answer, _ = asked(lambda: scaled([0]), lambda s: previewed(s, "total", "total"))
    assert answer["refusal"]["text"] == "the text is as it was: nothing would change"


def test_an_applied_surgery_runs_and_a_refused_one_says_why():
    seen = []

    def manager(crash):
        state = states[0] if states else PanelState(crash)
        states[:] = [state]
        seen.append(state.refusal())
        level = state.overview()["selected"]
        detail = state.frame(level)
        new = "1 / (item or 1)" if len(seen) > 1 else "1 / (item or 1"
        return state.repair(level, "surgery", source=detail["text"].replace("1 / item", new), key=detail["key"])

    states = []

    def unit(items):
        total = 0
        for item in items:
            total += 1 / item
        return total

    first = unit.__code__.co_firstlineno
    with repair_with(manager):
        assert vaccinate(unit)([1, 0, 2]) == 2.5
    assert seen[0] is None
    assert seen[1]["line"] == first + 3
    assert "does not parse" in seen[1]["text"]
    assert seen[1]["key"].startswith("test_an_applied_surgery")


def factor(x):
    return 1 / x


def test_a_function_opened_by_name_is_replaced():
    def operate(state):
        level = state.overview()["selected"]
        opened = state.function("factor")
        text = opened["text"].replace("1 / x", "1 / (x or 1)")
        preview = state.preview(level, text, None, opened["key"])["preview"]
        return preview["replaced"], state.repair(level, "surgery", source=text, key=opened["key"])

    def unit(x):
        return factor(x)

    answers = []

    def manager(crash):
        state = PanelState(crash)
        answers.append(operate(state))
        state.let_go()
        return answers[0][1]

    before = factor.__code__
    with repair_with(manager):
        assert vaccinate(unit)(0) == 1
    factor.__code__ = before
    assert answers[0][0] == ["factor"] or answers[0][0] == ("factor",)


def test_a_cell_s_whole_text_is_edited():
    answer, text = asked_in_cell("x = 0\ny = 1 / x\n", lambda s: previewed(s, "1 / x", "1 / (x or 1)"))
    assert answer["preview"]["line"] == 2
    assert text.startswith("x = 0")

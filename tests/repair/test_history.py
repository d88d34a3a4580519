"""The history: plain data, bounded, and enough to repair the same crashes again."""

from __future__ import annotations

import gc
import json
import threading
import weakref

import pytest

from daifu_ipy.engine.repairs import Abort, Action, Pass, Repair, Skip, Surgery
from daifu_ipy.repair.event import Event
from daifu_ipy.repair.history import History
from daifu_ipy.repair.replay import Replay, replay
from tests.fakes import FakeCrash

SOURCE = 'def train():\n    \'\'\'it\\\'s "quoted"\'\'\'\n    return """a\n"""\n'
ODD = Repair(("labels = 'a\\n'\nprint('''x''')", "é = '{}'"), Surgery(SOURCE, "edit"), 1)


def event(crash=None, repair=Repair(), outcome="recovered") -> Event:
    return Event.of(crash or FakeCrash(), repair, latency_seconds=0.5, outcome=outcome)


def filled() -> History:
    history = History()
    history.add(event(repair=Repair(then=Skip())))
    history.add(event(FakeCrash(statement="x = 1"), ODD))
    history.add(event(FakeCrash(exception=OSError("a'''\n\"\"\"b"), unit="Net.fit", repeats=("f(x)",))))
    history.add(event(repair=Repair(then=Abort()), outcome="aborted"))
    return history


CRASHES = [
    FakeCrash(),
    FakeCrash(exception=OSError("other message"), unit="Net.fit"),
    FakeCrash(statement="x = 1", line=2),
    FakeCrash(line=99),
    FakeCrash(),
    FakeCrash(statement="x = 2"),
    FakeCrash(exception=KeyError("x")),
]
ANSWERS = [Repair(then=Skip()), Repair(then=Pass()), ODD, Repair(then=Abort()), None, None, None]


def test_an_event_is_what_happened():
    crash = FakeCrash(exception=ValueError("bad\nlabel"), repeats=("f(batch)",))
    made = event(crash, Repair(then=Skip()))
    assert (made.unit, made.file, made.line, made.statement) == ("train", "train.py", 15, "loss = f(batch)")
    assert (made.error, made.message, made.repeats) == ("ValueError", "bad label", ("f(batch)",))
    assert (made.latency_seconds, made.outcome) == (0.5, "recovered")
    assert made.repair == Repair(then=Skip()).to_json()
    assert "T" in made.time
    assert made.time[-6] in "+-"


def test_actions_that_ran_before_the_decision_are_part_of_the_repair():
    ran = [Action("a = 1"), Action("c = 3", 1)]
    made = Event.of(FakeCrash(), Repair(("b = 2",), Skip(), 1), latency_seconds=0, outcome="recovered", actions=ran)
    assert Repair.from_json(made.repair) == Repair((Action("a = 1", 0), "c = 3", "b = 2"), Skip(), 1)


def test_json_gives_the_same_history_back():
    history = filled()
    assert History.from_json(json.loads(json.dumps(history.to_json()))).events == history.events


def exported(history, tmp_path):
    names: dict = {}
    exec(compile(history.export_script(), "replay.py", "exec", dont_inherit=True), names)
    return names["manager"]


def from_file(history, tmp_path):
    path = tmp_path / "history.json"
    path.write_text(json.dumps(history.to_json()), "utf-8")
    return replay(path)


@pytest.mark.parametrize(
    "make",
    [
        exported,
        from_file,
        lambda history, _: replay(history),
        lambda history, _: replay(history.to_json()),
        lambda history, _: replay(json.dumps(history.to_json())),
        lambda history, tmp_path: from_file(history, tmp_path) and replay(str(tmp_path / "history.json")),
    ],
)
def test_a_replay_answers_the_same_crashes_in_order(make, tmp_path):
    manager = make(filled(), tmp_path)
    assert [manager(crash) for crash in CRASHES] == ANSWERS
    assert manager.left == 0


def test_a_replay_has_no_second_answer_for_a_refused_one():
    manager = Replay([(event().key, Repair())] * 2)
    assert manager(FakeCrash(refusal="no loop")) is None
    assert manager.left == 2


def test_an_empty_history_exports_a_script():
    exec(History().export_script(), {})


def test_the_script_shows_what_happened():
    script = filled().export_script()
    assert "line 15, recovered: ValueError: bad label\n" in script
    assert "('train', 'loss = f(batch)', 'ValueError')" in script


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "not a history"),
        ({}, "expected a dict with 'daifu_history': 1"),
        ({"daifu_history": 1}, "'events' must be a list"),
        ({"daifu_history": 1, "events": [{}]}, "not an event"),
        ({"daifu_history": 1, "events": [{**filled().to_json()["events"][0], "new": 1}]}, "not an event"),
        ({"daifu_history": 1, "events": [{**filled().to_json()["events"][0], "repair": {}}]}, "daifu_repair"),
        ({"daifu_history": 1, "events": [{**filled().to_json()["events"][0], "repeats": 3}]}, "'repeats' can't be 3"),
        ({"daifu_history": 1, "events": [{**filled().to_json()["events"][0], "stale": [3]}]}, "'stale' can't be"),
        ({"daifu_history": 1, "events": [{**filled().to_json()["events"][0], "time": None}]}, "'time' can't be None"),
    ],
)
def test_damaged_data_is_refused(data, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        History.from_json(data)
    path = tmp_path / "history.json"
    path.write_text("{", "utf-8")
    with pytest.raises(ValueError, match="not the JSON of a history"):
        replay(path)
    path.write_text("5", "utf-8")
    with pytest.raises(ValueError, match="not the answers"):
        replay(path)


def test_it_is_bounded():
    history = History(limit=3)
    for line in range(10):
        history.add(event(FakeCrash(line=line)))
    assert [kept.line for kept in history] == [7, 8, 9]
    assert len(history) == 3
    huge = event(FakeCrash(exception=ValueError("x" * 10**6), statement="y" * 10**6, repeats=("z" * 10**6,)))
    assert len(json.dumps(history.to_json() | {"huge": str(huge)})) < 5_000
    history.clear()
    assert len(history) == 0


class Big:
    pass


class BigError(Exception):
    pass


def test_nothing_of_the_run_is_kept_alive():
    def fail(big):
        raise BigError(big)

    history, big = History(), Big()
    with pytest.raises(BigError) as caught:
        fail(big)
    crash = FakeCrash(exception=caught.value, variables={"big": big}, stack=caught.value.__traceback__)
    alive = [weakref.ref(thing) for thing in (big, caught.value, crash)]
    history.add(event(crash))
    del big, caught, crash
    gc.collect()
    assert [ref() for ref in alive] == [None, None, None]
    assert len(history) == 1


def test_threads_may_add_while_others_read():
    history, failures = History(limit=50), []

    def add():
        try:
            for _ in range(200):
                history.add(event())
                json.dumps(history.to_json())
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(history) == 50

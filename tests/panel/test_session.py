"""What a page asks of a crash and what it is answered, without any kernel: messages in, messages out."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.managers import repair_with
from daifu_ipy.engine.repairs import Abort, Pass, Repair, Skip, Surgery
from daifu_ipy.engine.texts import keep
from daifu_ipy.engine.vaccinate import vaccinate
from daifu_ipy.frontends.held import Request
from daifu_ipy.frontends.panel_end import End
from daifu_ipy.frontends.panel_rerun import Cell
from daifu_ipy.frontends.panel_session import PanelSession
from daifu_ipy.frontends.patience import Patience
from daifu_ipy.frontends.sections import SECTIONS, Section, register_section
from daifu_ipy.repair.rules import SameHere

Message = dict[str, Any]


TRAIN = """def train(texts):
    seen = []
    for text in texts:
        seen.append(int(text))
    return seen
"""


class Sent(list[Message]):
    """All that was sent to pages."""

    def reply(self) -> Message:
        return next(m for m in reversed(self) if m["kind"] == "reply")

    def state(self) -> Message:
        state: Message = next(m["state"] for m in reversed(self) if m["kind"] == "state")
        return state


class Talk:
    """A session and what it sends."""

    def __init__(self, crash: Crash, **options: Any) -> None:
        self.crash, self.sent = crash, Sent()
        self.session = PanelSession(crash, self.sent.append, **options)
        self.level = self.ask("state")["state"]["selected"]
        self.answer: Repair | SameHere | None = None

    def ask(self, kind: str, **fields: Any) -> Message:
        """Send a message; the reply. An answer to the crash is kept."""
        self.answer = self.session.obey({"id": "1", "kind": kind, **fields})
        return self.sent.reply()

    def decide(self, word: str, **fields: Any) -> Message:
        options = {name: fields.pop(name) for name in ("times", "sure") if name in fields}
        return self.ask("decide", level=self.level, repair={"word": word, **fields}, **options)


def played(*scripts: Callable[[Talk], object], texts: Iterable[Any] = ("1", "one", "3"), **options: Any) -> Any:
    """Run `train`; each script is one question of the engine about its crash. Give its result, or its exception."""
    talks: list[Talk] = []
    left, wrong, results = list(scripts), [], []

    def manager(crash: Crash) -> Repair:
        try:
            if not talks or talks[-1].crash is not crash:
                talks.append(Talk(crash, **options))
            else:
                talks[-1].session.refused()
            left.pop(0)(talks[-1])
            answer = talks[-1].answer
            assert answer is not None
            talks[-1].session.answered(answer)
            return answer.repair if isinstance(answer, SameHere) else answer
        except BaseException as error:  # of the test itself
            wrong.append(error)
            raise

    def run() -> None:
        with repair_with(manager):
            results.append(train()(texts))

    failed = in_thread(run)
    if wrong:
        raise wrong[0]
    assert not left
    return failed or results[0]


def in_thread(run: Callable[[], None]) -> BaseException | None:
    """What a thread fails with. (A test's own `try` would be a handler of the program's.)"""
    failed: list[Any] = [None]
    hook, threading.excepthook = threading.excepthook, lambda info: failed.append(info.exc_value)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.excepthook = hook
    error: BaseException | None = failed[-1]
    return error


numbers = itertools.count()


def train() -> Callable[[Iterable[Any]], list[int]]:
    """A function of its own for each test: surgery replaces every one of the same definition."""
    filename = f"<train {next(numbers)}>"
    keep(filename, TRAIN)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(TRAIN, filename, "exec"), namespace)
    made: Callable[[Iterable[Any]], list[int]] = vaccinate(namespace["train"])
    return made


# decisions


def test_an_action_and_a_pass():
    def script(talk: Talk) -> None:
        entry = talk.ask("action", level=talk.level, code="text = '2'; print('hi'); text")["entry"]
        assert (entry["stdout"], entry["value"], entry["error"]) == ("hi\n", "'2'", None)
        assert [m["state"]["phase"] for m in talk.sent if m["kind"] == "state"] == ["working", "waiting"]
        assert talk.decide("pass") == {"kind": "reply", "id": "1", "ok": True}
        assert talk.answer == Repair(then=Pass())
        assert talk.sent.state()["phase"] == "working"

    assert played(script) == [1, 2, 3]


def test_only_a_decision_is_an_answer():
    def script(talk: Talk) -> None:
        for kind in ("state", "ping", "functions", "versions", "save"):
            assert talk.ask(kind)["ok"], kind
            assert talk.answer is None
        for told in ({"kind": "sigint"}, {"kind": "refresh"}, {"kind": "hello"}, {}, {"id": None}):
            assert talk.session.obey(told) is None
        talk.decide("skip")

    assert played(script) == [1, 3]


def test_the_same_here():
    def script(talk: Talk) -> None:
        talk.decide("skip", times=3)
        assert talk.answer == SameHere(Repair(then=Skip()), 3)

    assert played(script) == [1, 3]


def test_a_repair_in_its_json_form():
    def script(talk: Talk) -> None:
        repair = Repair(actions=("text = '2'",))
        assert talk.ask("decide", repair=repair.to_json())["ok"]
        assert talk.answer == repair

    assert played(script) == [1, 2, 3]


@pytest.mark.parametrize("repair", [{"word": "dance"}, {"daifu_repair": 99}, {"word": "return", "expression": "1 +"}])
def test_what_is_no_repair(repair):
    def script(talk: Talk) -> None:
        reply = talk.ask("decide", level=talk.level, repair=repair)
        assert reply["error"]
        assert talk.answer is None
        assert talk.session.state()["phase"] == "waiting"
        talk.decide("skip")

    assert played(script) == [1, 3]


# refusals


def test_a_refusal_loses_nothing_and_the_same_again_is_asked_about():
    def first(talk: Talk) -> None:
        talk.ask("draft", key="k", text="def train(")
        talk.ask("action", level=talk.level, code="text")
        talk.decide("surgery", source="def train(")

    def second(talk: Talk) -> None:
        state = talk.sent.state()
        assert (state["phase"], state["drafts"], len(state["console"])) == ("waiting", {"k": "def train("}, 1)
        assert state["refusal"]["text"]
        assert "Refused again" in talk.decide("surgery", source="def train(")["ask"]
        assert talk.answer is None
        assert "ask" not in talk.decide("surgery", source="def train(:")  # another one
        assert talk.answer == Repair(then=Surgery("def train(:"))

    assert played(first, second, lambda talk: talk.decide("skip")) == [1, 3]


def test_refused_twice_is_the_engines_abort():
    def again(talk: Talk) -> None:
        assert "ask" not in talk.decide("surgery", source="def train(", sure=True)

    failed = played(lambda talk: talk.decide("surgery", source="def train("), again)
    assert isinstance(failed, ValueError)


def test_abort_is_not_asked_about():
    def again(talk: Talk) -> None:
        assert "ask" not in talk.decide("abort")
        assert talk.answer == Repair(then=Abort())

    assert isinstance(played(lambda talk: talk.decide("surgery", source="x("), again), ValueError)


def test_a_repair_refused_before_the_panel_was_there():
    """As by a rule: it is known which one must not come again, and any other may."""
    calls = []

    def manager(crash: Crash) -> Repair:
        calls.append(crash.refusal)
        if len(calls) == 1:
            return Repair(then=Surgery("def train("))
        talk = Talk(crash)
        assert "ask" in talk.decide("surgery", source="def train(")
        assert talk.answer is None
        assert "ask" not in talk.decide("skip")
        assert isinstance(talk.answer, Repair)
        return talk.answer

    with repair_with(manager):
        assert train()(["1", "one"]) == [1]


# faults of our own


def test_a_fault_is_shown_and_decides_nothing(caplog, monkeypatch):
    from daifu_ipy.frontends.panel_state import PanelState

    def broken(self: PanelState, level: int) -> Message:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(PanelState, "frame", broken)

    def script(talk: Talk) -> None:
        reply = talk.ask("frame", level=talk.level)
        assert "ZeroDivisionError: a fault" in reply["error"]
        assert "a fault" in talk.sent.state()["console"][-1]["error"]
        talk.decide("skip")

    assert played(script) == [1, 3]
    caplog.clear()


def test_a_page_that_can_not_be_reached_decides_nothing(caplog):
    def script(talk: Talk) -> None:
        def gone(message: Message) -> None:
            raise OSError("no socket")

        talk.session._send = gone
        for message in ({"id": "1", "kind": "state"}, {"id": "2", "kind": "action", "level": talk.level, "code": "1"}):
            assert talk.session.obey(message) is None
        talk.answer = talk.session.obey({"id": "3", "kind": "decide", "level": talk.level, "repair": {"word": "skip"}})

    assert played(script) == [1, 3]
    caplog.clear()


def test_malformed_messages():
    def script(talk: Talk) -> None:
        for fields in (
            {"kind": "frame"},
            {"kind": "frame", "level": "0"},
            {"kind": "frame", "level": 10_000},
            {"kind": "expand", "level": talk.level},
            {"kind": "decide"},
            {"kind": "decide", "repair": None},
            {"kind": "decide", "level": talk.level, "repair": {"word": "skip"}, "times": "many"},
            {"kind": "versions", "diff": {}},
            {"kind": "versions", "revert": {"number": 10_000}},
            {"kind": "section", "name": "none", "command": "none"},
            {"kind": "rerun"},
            {"kind": None},
        ):
            assert not talk.ask(**fields)["ok"], fields
            assert talk.answer is None
        talk.decide("skip")

    assert played(script) == [1, 3]


# the rest


def test_the_console_is_bounded():
    def script(talk: Talk) -> None:
        for number in range(120):
            talk.ask("action", level=talk.level, code=str(number))
        console = talk.session.state()["console"]
        assert [entry["value"] for entry in console] == [str(number) for number in range(20, 120)]
        talk.decide("skip")

    assert played(script) == [1, 3]


def test_sections():
    register_section(
        Section(
            "counter",
            "Counter",
            lambda crash: [{"field": "by", "label": "by", "value": "1"}, {"button": "Add", "command": "add"}],
            {"add": lambda crash, values: f"added {values['by']}", "fail": lambda crash, values: 1 / 0},
        )
    )

    def script(talk: Talk) -> None:
        (section,) = talk.session.state()["sections"]
        assert section["title"] == "Counter"
        assert talk.ask("section", name="counter", command="add", values={"by": "2"})["text"] == "added 2"
        assert not talk.ask("section", name="counter", command="fail", values={})["ok"]
        talk.decide("skip")

    try:
        assert played(script) == [1, 3]
    finally:
        SECTIONS.clear()


def test_versions():
    source = (
        "def train(texts):\n    seen = []\n    for text in texts:\n        seen.append(len(text))\n    return seen\n"
    )

    def first(talk: Talk) -> None:
        assert talk.ask("versions")["versions"] == []
        talk.decide("surgery", source=source)

    assert played(first) == [1, 3, 1]

    def second(talk: Talk) -> None:
        (version,) = talk.ask("versions")["versions"]
        assert (version["current"], version["unit"]) == (True, "train")
        assert any("len(text)" in line for line in talk.ask("versions", diff={"number": version["number"]})["diff"])
        talk.ask("versions", revert={"number": version["number"]})
        assert not talk.ask("versions")["versions"][0]["current"]
        talk.decide("skip")

    from daifu_ipy.engine import versions

    assert played(second) == [1, 3]
    versions.clear()


def test_a_rerun_without_a_frame_of_the_cell():
    cell = Cell(Request("1", "a", "train(['one'])"), started=0.0)

    class Held:
        requests = [Request("2", "a", "train(['2'])", "page"), Request("3", "b", "other()")]
        adopted: list[str] = []

        def busy(self) -> None:
            """A page has been served."""

        def adopt(self, msg_id: str) -> None:
            self.adopted.append(msg_id)
            self.requests = [request for request in self.requests if request.msg_id != msg_id]

    shown = []

    def script(talk: Talk) -> None:
        held = Held()
        talk.session.tick(held)  # type: ignore[arg-type]
        assert (held.adopted, shown) == (["2"], [1])
        state = talk.sent.state()
        assert (state["queued"], state["rerun"]["msg_id"], state["rerun"]["changed"]) == (1, "2", True)
        assert "not protected" in state["rerun"]["refusal"]["text"]
        assert "not protected" in talk.ask("rerun", msg_id="2", answer="apply")["error"]
        assert talk.ask("rerun", msg_id="2", answer="forget")["ok"]
        assert talk.sent.state()["rerun"] is None
        assert talk.session.client == "page"
        talk.decide("skip")

    assert played(script, cell=cell, shown_again=lambda: shown.append(1)) == [1, 3]


def held_requests(*requests: Request) -> Any:
    """Requests that wait for a blocked cell."""

    class Held:
        def __init__(self) -> None:
            self.requests, self.adopted = list(requests), []

        def busy(self) -> None:
            """A page has been served."""

        def adopt(self, msg_id: str) -> None:
            self.adopted.append(msg_id)
            self.requests = [request for request in self.requests if request.msg_id != msg_id]

    return Held()


def test_a_rerun_that_an_input_transformer_rejects_is_shown_and_refused():
    def translate(text: str) -> str:
        if "!" in text:
            raise SyntaxError("no such magic")
        return text

    cell = Cell(Request("1", "a", "train(['one'])"), started=0.0, translate=translate)
    shown = []

    def script(talk: Talk) -> None:
        talk.session.tick(held_requests(Request("2", "a", "!")))
        assert shown == [1]
        assert "no such magic" in talk.sent.state()["rerun"]["refusal"]["text"]
        assert "no such magic" in talk.ask("rerun", msg_id="2", answer="apply")["error"]
        assert talk.session.left_out
        talk.decide("skip")

    assert played(script, cell=cell, shown_again=lambda: shown.append(1)) == [1, 3]


def test_patience_begins_anew_after_each_message_of_a_person():
    made: list[str] = []

    class Timer:
        def __init__(self, seconds: float, function: Callable[[], object]) -> None:
            assert seconds == 7200

        def start(self) -> None:
            made.append("start")

        def cancel(self) -> None:
            made.append("cancel")

    def script(talk: Talk) -> None:
        with Patience(7200, timer=Timer).with_(talk.crash, print):
            for kind in ("ping", "state"):
                talk.ask(kind)
            assert made == ["start"]
            talk.ask("draft", key="k", text="half")
            assert made == ["start", "cancel", "start"]
            talk.session.refused()
            assert "after 2 h 0 min without an answer: abort" in talk.sent.state()["crash"]["remarks"]
        assert made[-1] == "cancel"
        talk.decide("skip")

    assert played(script) == [1, 3]


# the end


def test_the_end_holds_nothing():
    class Batch:
        """Something large."""

        def __int__(self) -> int:
            raise ValueError("no number")

    held = []

    def script(talk: Talk) -> None:
        talk.ask("frame", level=talk.level)
        talk.ask("expand", level=talk.level, path=["batch"])
        talk.ask("action", level=talk.level, code="batch")
        talk.decide("skip")
        end = End.of(talk.crash, Repair(then=Skip()), "recovered", 0.004)
        final = talk.session.end(end)
        assert (final["phase"], final["end"]["text"]) == ("recovered", end.text)
        assert "Batch" not in str(final["crash"])
        held.append(talk.session)

    made = []

    def texts() -> Iterable[Any]:
        batch = Batch()
        made.append(weakref.ref(batch))
        yield "1"
        yield batch

    assert played(script, texts=texts()) == [1]
    gc.collect()
    assert made[0]() is None
    assert held


def test_the_line_that_stays():
    def script(talk: Talk) -> None:
        error, talk.crash.exception = talk.crash.exception, ValueError("<b>bold</b> & \n more")
        end = End.of(talk.crash, Repair(then=Skip()), "recovered", 0.0041, talk.session.progress)
        assert end.text.startswith("Recovered ValueError at line ")
        assert " of train by skip, resumed in 4 ms" in end.text  # the loop's text is no counter
        talk.ask("action", level=talk.level, code="text = '5'")
        end = End.of(talk.crash, Repair(then=Pass()), "recovered", 0.0041)
        assert " by 1 action, then pass, resumed" in end.text
        assert "&lt;b&gt;bold&lt;/b&gt; &amp; more" in end.bundle["text/html"]
        assert "one" not in end.bundle["text/html"]
        assert End.of(talk.crash, None, "aborted", 9.0).text.startswith("Aborted ValueError at line ")
        talk.crash.exception = error
        talk.decide("skip")

    assert played(script) == [1, 3]


def test_the_counters_of_all_functions_on_the_stack():
    run = train()
    ends = []

    def manager(crash: Crash) -> Repair:
        progress = PanelSession(crash, print).progress
        ends.append(End.of(crash, Repair(then=Skip()), "recovered", 0.0, progress).text)
        return Repair(then=Skip())

    source = """def main(run):
    for epoch in range(1):
        for text in ["a"]:
            for fold, step, late, more in [(1, 2, 3, 4)]:
                run([text])
"""
    filename = "<main>"
    keep(filename, source)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, filename, "exec"), namespace)
    with repair_with(manager):
        vaccinate(namespace["main"])(run)
    assert [text.partition(", ")[2] for text in ends] == ["epoch 0, fold 1, step 2, late 3, resumed in 0 ms"]

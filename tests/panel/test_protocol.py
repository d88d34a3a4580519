"""The panel by its messages alone: a real kernel, and a client that acts as a page. No browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.panel.page import Page

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

CELL = """%%daifu
seen = []
for epoch in range(4):
    seen.append(int("7" if epoch != 2 or mended else "seven"))
print("seen", seen)
"""
WHOLE = "seen [7, 7, 7, 7]\n"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    made = Page()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def fresh(page):
    page.run("mended = False")
    page.shown.clear()
    page.replies.clear()


def printed(page: Page, request: str) -> str:
    """What the program printed."""
    return "".join(line for line in page.text(request).splitlines(keepends=True) if not line.startswith("daifu: "))


def shown(page: Page, kind: str) -> list[dict[str, str]]:
    return [m["content"]["data"] for m in page.shown if m["msg_type"] == kind]


# one crash


def test_action_then_pass(page):
    cell = page.crash(CELL)
    state = page.state()
    assert (state["phase"], state["crash"]["type"], state["crash"]["line"]) == ("waiting", "ValueError", 4)
    entry = page.act("mended = True; print('typed'); seen")
    assert (entry["stdout"], entry["value"]) == ("typed\n", "[7, 7]")
    assert page.state()["console"] == [entry]
    assert page.decide("pass")["ok"]
    assert page.reply(cell)["status"] == "ok"
    assert printed(page, cell) == WHOLE  # and nothing of the action
    assert page.ended()["text"].startswith(
        "Recovered ValueError at line 4 by 1 action, then pass, epoch 2, resumed in "
    )


def test_what_is_displayed(page):
    cell = page.crash(CELL)
    (waits,) = page.until(lambda: shown(page, "display_data"))
    assert waits["text/plain"].startswith("ValueError: invalid literal")
    assert "at line 4" in waits["text/plain"]
    assert "waits" in waits["text/plain"]
    assert waits["application/vnd.jupyter.widget-view+json"]["model_id"] == page.panels[-1]
    page.decide("skip")
    page.reply(cell)
    (ended,) = shown(page, "update_display_data")
    assert ended.keys() == {"text/plain", "text/html"}
    assert all("Recovered ValueError at line 4 by skip, epoch 2" in text for text in ended.values())
    begun, over = (m for m in page.shown if "display_data" in m["msg_type"])
    assert begun["content"]["transient"] == over["content"]["transient"]
    assert over["parent_header"]["msg_id"] == cell
    assert printed(page, cell) == "seen [7, 7, 7]\n"


def test_nothing_of_the_program_is_in_a_trait(page):
    page.run("secret = '<script>alert(1)</script>'")
    cell = page.crash("%%daifu\nraise ValueError(secret * 2)")
    opened = [m["content"]["data"]["state"] for m in page.shown if m["msg_type"] == "comm_open"]
    assert not any("script" in str(state) for state in opened)
    page.decide("abort")
    assert page.reply(cell)["status"] == "error"
    assert "<script>" not in shown(page, "update_display_data")[-1]["text/html"]


def test_surgery(page):
    cell = page.crash(CELL)
    assert page.decide("surgery", source=CELL.replace('"seven"', '"77"').replace("%%daifu", ""))["ok"]
    assert page.reply(cell)["status"] == "ok"
    assert printed(page, cell) == "seen [7, 7, 77, 7]\n"
    assert "by surgery" in page.ended()["text"]


def test_the_editor_has_the_cells_own_text(page):
    """With its magics as they were typed; what is typed there is translated as a cell is."""
    text = CELL.replace("seen = []", "seen = []\nhere = %pwd").replace("!= 2", "not in (1, 2)")
    cell = page.crash(text)
    detail = page.ask("frame", level=page.state()["selected"])["frame"]
    assert (detail["text"], detail["mark"]["line"]) == (text, 5)
    previewed = page.ask("preview", level=detail["level"], source=text.replace("seven", "77"), key=detail["key"])
    assert previewed["preview"]["line"] == 5
    assert not any("get_ipython" in line for line in previewed["diff"])
    new = text.replace("print(", "there = %pwd\nprint(there == here, ").replace("not in (1, 2)", "!= 2")
    page.decide("surgery", source=new, key=detail["key"])
    page.until(lambda: len(page.panels) == 2)
    assert page.ask("frame", level=page.state()["selected"])["frame"]["text"].startswith("%%daifu\nseen = []\n")
    page.decide("skip")
    assert page.reply(cell)["status"] == "ok"
    assert printed(page, cell) == "True seen [7, 7, 7]\n"


def test_abort_aborts_what_waits(page):
    cell = page.crash(CELL)
    later = page.cell("print('later')", cell_id="cell-2")
    page.until(lambda: page.state()["queued"] == 1)
    assert page.decide("abort")["ok"]
    assert page.reply(cell)["ename"] == "ValueError"
    assert page.reply(later)["status"] == "aborted"
    assert page.ended()["text"].startswith("Aborted ValueError at line 4, epoch 2")
    assert len(page.of(cell, "error")) == 1


def test_cells_that_wait_run_after_recovery(page):
    cell = page.crash(CELL)
    later = [page.cell(f"print('later', {n})", cell_id=f"later-{n}") for n in range(3)]
    page.until(lambda: page.state()["queued"] == 3)
    page.decide("skip")
    assert [page.reply(request)["status"] for request in (cell, *later)] == ["ok"] * 4
    assert [page.text(request) for request in later] == [f"later {n}\n" for n in range(3)]


def test_a_refusal_keeps_everything(page):
    cell = page.crash(CELL)
    panel = page.panels[-1]
    page.act("mended = 'typed'")
    key = page.ask("frame", level=page.state()["selected"])["frame"]["key"]
    page.ask("draft", key=key, text="half typed")
    assert page.decide("surgery", source="for epoch in", key=key)["ok"]
    refused = page.until(lambda: (s := page.state())["refusal"] and s)
    assert refused["phase"] == "waiting"
    assert "parse" in refused["refusal"]["text"]
    assert refused["refusal"]["key"] == key
    assert refused["drafts"][key] == "half typed"
    assert len(refused["console"]) == 1
    assert page.panels[-1] == panel
    page.decide("pass")
    assert page.reply(cell)["status"] == "ok"


def test_the_same_refused_repair_is_asked_about(page):
    cell = page.crash(CELL)
    page.decide("surgery", source="for epoch in")
    page.until(lambda: page.state()["refusal"])
    assert "ask" in page.decide("surgery", source="for epoch in")
    assert page.state()["phase"] == "waiting"
    assert "ask" not in page.decide("surgery", source="for epoch in", sure=True)
    assert page.reply(cell)["status"] == "error"
    assert page.ended()["outcome"] == "aborted"


def test_the_same_here(page):
    cell = page.crash(CELL.replace("!= 2", "not in (1, 2, 3)"))
    page.decide("skip", times=2)
    page.until(lambda: len(page.panels) == 2)  # the second was answered, the third is asked about
    assert page.state()["crash"]["type"] == "ValueError"
    page.decide("skip")
    assert page.reply(cell)["status"] == "ok"
    assert printed(page, cell) == "seen [7]\n"


def test_what_can_not_be_done_is_said(page):
    cell = page.crash(CELL)
    for wrong in (
        {"kind": "no such kind"},
        {"kind": "decide", "level": 99, "repair": {"word": "pass"}},
        {"kind": "decide", "level": page.state()["selected"], "repair": {"word": "dance"}},
        {"kind": "decide", "level": page.state()["selected"], "repair": {"word": "pass"}, "times": -1},
        {"kind": "frame"},
        {"kind": "rerun", "answer": "apply", "msg_id": "none"},
        {"kind": "expand", "level": 0},
    ):
        reply = page.ask(**wrong)
        assert reply["error"], wrong
    assert page.state()["phase"] == "waiting"
    page.decide("skip")
    assert page.reply(cell)["status"] == "ok"


FIGURES = """
import sys, types
class Figure:
    def _repr_html_(self): return "<i>a plot</i>"
def figure(number): helpers.Gcf.figs[number] = types.SimpleNamespace(canvas=types.SimpleNamespace(figure=Figure()))
helpers = types.ModuleType("matplotlib._pylab_helpers")
helpers.Gcf = types.SimpleNamespace(figs={}, destroy=lambda number: helpers.Gcf.figs.pop(number))
sys.modules["matplotlib._pylab_helpers"] = helpers
"""


def test_what_an_action_shows_is_shown_in_the_panel_only(page):
    page.run(FIGURES + "figure(1)")
    cell = page.crash(CELL)
    code = "import warnings; warnings.warn('careful'); display(Figure()); figure(2); Figure()"
    entry = page.act("from IPython.display import display\n" + code)
    assert [shown["text/html"] for shown in entry["rich"]] == ["<i>a plot</i>"] * 3
    assert "careful" in entry["stdout"]
    page.decide("skip")
    page.reply(cell)
    assert len(shown(page, "display_data")) == 1  # the panel
    assert printed(page, cell) == "seen [7, 7, 7]\n"
    assert page.value("list(helpers.Gcf.figs)") == [1]  # the program's own stays
    page.run("del sys.modules['matplotlib._pylab_helpers']")


# decided elsewhere, stopped


def test_the_stop_button_decides_nothing(page):
    cell = page.crash(CELL)
    page.state()
    page.manager.interrupt_kernel()
    entry = page.until(lambda: (s := page.state())["console"] and s["console"][-1])
    assert "stop" in entry["note"].lower()
    page.decide("skip")
    assert page.reply(cell)["status"] == "ok"


def test_the_stop_button_stops_an_action(page):
    cell = page.crash(CELL)
    level = page.state()["selected"]
    page.post(page.panels[-1], {"id": "endless", "kind": "action", "level": level, "code": "while True: pass"})
    page.until(lambda: any(m.get("state", {}).get("phase") == "working" for m in page.messages()))

    def stopped():
        page.manager.interrupt_kernel()  # again, if it came before the action began
        return next((m for m in page.messages() if m.get("id") == "endless"), None)

    reply = page.until(stopped)
    assert reply["entry"]["error"].startswith(("KeyboardInterrupt", "it was stopped"))  # in the code, or just before
    assert page.state()["phase"] == "waiting"
    page.decide("skip")
    assert page.reply(cell)["status"] == "ok"


def test_a_decision_from_elsewhere_closes_it(page):
    page.run(
        "import threading, daifu_ipy\n"
        "def decide():\n"
        "    while not go.is_set() or not daifu_ipy.pending(): go.wait()\n"
        "    daifu_ipy.pending()[0].decide(daifu_ipy.Skip())\n"
        "go = threading.Event(); threading.Thread(target=decide, daemon=True).start()"
    )
    cell = page.crash(CELL)
    page.act("go.set()")
    assert page.reply(cell)["status"] == "ok"
    assert "by 1 action, then skip" in page.ended()["text"]
    assert "outside of the panel" in page.ended()["text"]


def test_patience(page):
    page.run("%config Daifu.patience = '0.3s'\n%config Daifu.fallback = 'skip'")
    try:
        cell = page.crash(CELL)
        assert page.reply(cell)["status"] == "ok"
        assert "by skip" in page.ended()["text"]
    finally:
        page.run("%config Daifu.patience = None\n%config Daifu.fallback = 'abort'")


# the cell is run again


AGAIN = CELL.replace('"seven"', '"77"')


def rerun(page: Page, text: str) -> tuple[str, str, dict]:
    """Run a cell that crashes, and run it again with a text: both requests, and what is asked."""
    cell = page.crash(CELL)
    again = page.cell(text)
    asked = page.until(lambda: page.state()["rerun"])
    assert asked["msg_id"] == again
    assert page.until(lambda: page.of(again, "display_data"))  # the panel stands in the new output area
    return cell, again, asked


def test_a_rerun_decides_nothing_and_can_be_forgotten(page):
    cell, again, asked = rerun(page, CELL)
    assert not asked["changed"]
    assert page.ask("rerun", msg_id=again, answer="forget")["ok"]
    assert page.state()["rerun"] is None
    page.decide("skip")
    assert [page.reply(request)["status"] for request in (cell, again)] == ["ok", "ok"]
    assert (printed(page, cell), printed(page, again)) == ("", "seen [7, 7, 7]\n")


def test_a_rerun_goes_on_with_the_new_text(page):
    cell, again, asked = rerun(page, AGAIN)
    assert asked["changed"]
    assert any("77" in line for line in asked["diff"])
    assert asked["preview"]["line"] == 4
    assert page.ask("rerun", msg_id=again, answer="apply")["ok"]
    assert [page.reply(request)["status"] for request in (cell, again)] == ["ok", "ok"]
    assert (printed(page, cell), printed(page, again)) == ("", "seen [7, 7, 77, 7]\n")


def test_a_rerun_restarts_from_scratch(page):
    cell, again, _ = rerun(page, AGAIN.replace("range(4)", "range(3)"))
    assert "Give up" in page.ask("rerun", msg_id=again, answer="restart")["ask"]
    assert page.state()["phase"] == "waiting"
    assert page.ask("rerun", msg_id=again, answer="restart", sure=True)["ok"]
    assert page.reply(cell)["status"] == "error"
    assert page.reply(again)["status"] == "ok"
    assert printed(page, again) == "seen [7, 7, 77]\n"
    assert page.states(again)[-2:] == ["busy", "idle"]


def test_a_restart_aborts_the_cells_between(page):
    cell = page.crash(CELL)
    between = page.cell("print('between')", cell_id="cell-2")
    again = page.cell(AGAIN)
    after = page.cell("print('after')", cell_id="cell-2")
    page.until(lambda: page.state()["rerun"])
    page.ask("rerun", msg_id=again, answer="restart", sure=True)
    replies = [page.reply(request)["status"] for request in (cell, between, again, after)]
    assert replies == ["error", "aborted", "ok", "ok"]


def test_a_rerun_whose_text_can_not_be_taken(page):
    cell, again, asked = rerun(page, "%%daifu\nfor epoch in")
    assert asked["preview"] is None
    assert asked["refusal"]["text"]
    assert "parse" in page.ask("rerun", msg_id=again, answer="apply")["error"]
    page.decide("surgery", source="for epoch in")
    page.until(lambda: page.state()["refusal"])
    assert page.state()["rerun"]["msg_id"] == again  # a refusal leaves it as it was
    assert page.ask("rerun", msg_id=again, answer="restart", sure=True)["ok"]
    assert page.reply(cell)["status"] == "error"
    assert page.reply(again)["status"] == "error"  # it really ran: a SyntaxError
    assert [m["content"]["ename"] for m in page.of(again, "error")] == ["SyntaxError"]


def test_the_work_that_would_be_lost_is_that_of_the_running_cell(page):
    """Also of a plain one that calls a protected function, and where it runs another cell in between."""
    back = "from daifu_ipy.frontends.choose import ASKERS\nASKERS[0].ask._running.started -= 7200\n"
    page.run(f"{back}import daifu_ipy\ndef work(): return int('q')\ndaifu_ipy.vaccinate(work)")
    for text, wanted in (("work()", False), (f"{back}get_ipython().run_cell('1')\nwork()", True)):
        page.shown.clear()
        cell = page.crash(text)
        again = page.cell(text)
        asked = page.until(lambda: page.state()["rerun"])
        assert (" h " in asked["hours"]) is wanted
        page.decide("return", expression="1")
        assert [page.reply(request)["status"] for request in (cell, again)] == ["ok", "ok"]


def test_two_reruns(page):
    cell, first, _ = rerun(page, CELL)
    second = page.cell(AGAIN)
    asked = page.until(lambda: (s := page.state()["rerun"]) and s["msg_id"] == second and s)
    assert asked["changed"]
    assert not page.ask("rerun", msg_id=first, answer="forget")["ok"]
    page.ask("rerun", msg_id=second, answer="apply")
    assert [page.reply(request)["status"] for request in (cell, first, second)] == ["ok"] * 3
    assert printed(page, second) == "seen [7, 7, 77, 7]\n"


def test_what_was_forgotten_is_another_text_still(page):
    """Also for the cell's next crash: the text that runs is the one it is compared with."""
    twice = CELL.replace("!= 2", "not in (1, 2)")
    changed = twice.replace('"seven"', '"77"')
    cell = page.crash(twice)
    again = page.cell(changed)
    page.until(lambda: page.state()["rerun"])
    page.ask("rerun", msg_id=again, answer="forget")
    page.decide("skip")
    page.until(lambda: len(page.panels) == 2)
    third = page.cell(changed)
    asked = page.until(lambda: page.state()["rerun"])
    assert asked["changed"]
    page.ask("rerun", msg_id=third, answer="apply")
    assert [page.reply(request)["status"] for request in (cell, again, third)] == ["ok"] * 3
    assert printed(page, third) == "seen [7, 77, 7]\n"


def test_a_rerun_that_is_not_heeded_is_told(page):
    cell, again, _ = rerun(page, AGAIN)
    page.decide("skip")
    assert [page.reply(request)["status"] for request in (cell, again)] == ["ok", "ok"]
    assert "the changed cell was not run" in page.ended()["text"]
    page.shown.clear()
    page.replies.clear()
    cell, again, _ = rerun(page, CELL)
    page.decide("skip")
    page.reply(again)
    assert "not run" not in page.ended()["text"]


# pages that come late


def test_a_page_that_lost_the_output_gets_it_from_the_panel(page):
    cell = page.crash(CELL)
    session, page.client.session.session = page.client.session.session, "a page that was loaded again"
    try:
        page.decide("skip")
        page.until(lambda: cell in page.replies or page.text(cell))
        late = page.until(lambda: (s := page.state())["end"] and s["output"]["items"] and s)
        assert late["output"]["lost"]
        assert "".join(item.get("text", "") for item in late["output"]["items"]).endswith("seen [7, 7, 7]\n")
    finally:
        page.client.session.session = session
    assert page.state()["output"] == {"lost": False, "items": []}


def test_an_ended_panel_is_closed_by_the_next(page):
    cell = page.crash(CELL)
    page.decide("skip")
    page.reply(cell)
    first = page.panels[-1]
    assert page.ask("ping")["phase"] == "recovered"
    cell = page.crash(CELL)
    closed = page.until(lambda: [m["content"]["comm_id"] for m in page.shown if m["msg_type"] == "comm_close"])
    assert first in closed
    page.decide("skip")
    page.reply(cell)


def test_another_takes_the_place_of_a_panel_that_is_closed(page):
    """By an action, or by a page."""
    cell = page.crash(CELL)
    level = page.state()["selected"]
    close = "import ipywidgets; ipywidgets.Widget.close_all()"
    page.post(page.panels[-1], {"id": "closes", "kind": "action", "level": level, "code": close})
    page.until(lambda: len(page.panels) == 2)
    assert page.state()["console"][-1]["code"] == close
    page.send("comm_close", comm_id=page.panels[-1], data={})
    page.until(lambda: len(page.panels) == 3)
    page.until(lambda: len(shown(page, "update_display_data")) == 2)
    views = [data["application/vnd.jupyter.widget-view+json"] for data in shown(page, "update_display_data")]
    assert [view["model_id"] for view in views] == page.panels[1:]
    page.decide("skip")
    assert page.reply(cell)["status"] == "ok"
    assert "then skip" in page.ended()["text"]


# where it runs


def test_under_auto(page):
    page.run("%daifu auto on")
    try:
        cell = page.crash(CELL.removeprefix("%%daifu\n"))
        page.decide("skip")
        assert page.reply(cell)["status"] == "ok"
    finally:
        page.run("%daifu auto off")


def test_vs_code(page):
    """Its protocol: its form of a cell's id, and no key for a subshell in a header."""
    cell_id = "vscode-notebook-cell:/home/me/train.ipynb#W4sZmlsZQ%3D%3D"
    cell = page.crash(CELL, cell_id=cell_id)
    assert "subshell_id" not in page.client.session.msg_header("comm_msg")
    page.act("mended = True")
    again = page.cell(CELL, cell_id=cell_id)
    asked = page.until(lambda: page.state()["rerun"])
    assert page.ask("rerun", msg_id=asked["msg_id"], answer="forget")["ok"]
    assert page.decide("pass")["ok"]
    assert [page.reply(request)["status"] for request in (cell, again)] == ["ok", "ok"]
    assert printed(page, again) == WHOLE


def test_a_cell_with_a_top_level_await(page):
    cell = page.crash(CELL + "import asyncio\nawait asyncio.sleep(0)\nprint('awaited')\n")
    page.decide("skip")
    assert page.reply(cell)["status"] == "ok"
    assert printed(page, cell).endswith("awaited\n")


def test_figures_of_the_program_stay_its_own(page):
    """A message to a widget is no end of a cell: matplotlib would show its figures, and close them."""
    page.run("events = []\nget_ipython().events.register('post_execute', lambda: events.append(1))")
    cell = page.crash("%%daifu\nevents.clear()\n" + CELL.removeprefix("%%daifu\n") + "print(events)\n")
    page.ask("ping")
    page.send("comm_open", comm_id="control", target_name="jupyter.widget.control", data={})
    page.send("comm_msg", comm_id="control", data={"method": "request_states"})
    page.until(lambda: [m for m in page.shown if m["content"].get("comm_id") == "control"])
    page.decide("skip")
    page.reply(cell)
    assert printed(page, cell).endswith("[]\n")
    assert page.value("len(events)") > 0  # at the cell's end they came


# several crashes, and what is left of them

HOLDING = """%%daifu
import gc, weakref
gc.disable()

class Batch: pass

kept = []

def attempt(text):
    batch = Batch()
    kept.append(weakref.ref(batch))
    return int(text)

def train():
    for text in ("1", "one"):
        value = attempt(text)
    return [ref() is None for ref in kept]

print(train())
"""


def test_nothing_of_the_failed_attempt_is_held(page):
    """Not even until the garbage collector comes: memory that was short is free when the run goes on."""
    cell = page.crash(HOLDING)
    for item in page.state()["frames"]:
        page.ask("frame", level=item["level"])
        page.ask("expand", level=item["level"], path=["kept"])
    page.act("error = 1 / 0")
    page.act("kept[-1]()")
    page.decide("surgery", source="for")
    page.until(lambda: page.state()["refusal"])
    page.decide("skip")
    page.reply(cell)
    assert printed(page, cell) == "[True, True]\n"
    page.run("import gc; gc.enable(); gc.collect(); objects = gc.get_objects()")
    assert page.value("[o for o in objects if type(o).__name__ in ('PanelState', 'Levels', 'CrashFrame')]") == []
    assert page.value("[o for o in objects if type(o).__name__ == 'Crash' and o.exception is not None]") == []


THREADS = """%%daifu
import threading
results = {}

def work(name):
    results[name] = int(name)

def start(names):
    threads = [threading.Thread(target=work, args=(name,), name=name, daemon=True) for name in names]
    for thread in threads: thread.start()
    return threads

threads = start(["7", "one", "two"])
"""


def test_crashes_in_threads_have_a_panel_each(page):
    page.cell(THREADS)
    page.until(lambda: len(page.panels) == 2)
    states = {p: page.ask("state", p)["state"] for p in page.panels}
    assert {s["crash"]["thread"] for s in states.values()} == {"one", "two"}
    page.until(lambda: all(len(page.ask("state", p)["state"]["others"]) == 1 for p in page.panels))
    one, two = sorted(page.panels, key=lambda p: states[p]["crash"]["thread"])
    level = states[two]["selected"]
    assert page.ask("action", two, level=level, code="name = '2'")["ok"]
    assert page.ask("decide", two, level=level, repair={"word": "pass"})["ok"]
    page.until(lambda: page.ask("ping", two)["phase"] == "recovered")
    assert page.ask("ping", one)["phase"] == "waiting"
    page.until(lambda: page.ask("state", one)["state"]["others"] == [])
    page.ask("decide", one, level=level, repair={"word": "skip"})
    page.until(lambda: page.ask("ping", one)["phase"] == "recovered")
    page.run("for thread in threads: thread.join()")
    assert page.value("results") == {"7": 7, "2": 2}


def test_a_crash_in_a_thread_while_a_cell_runs(page):
    """Its messages come by the main thread's own crash, which is asked about at the same time."""
    page.cell(THREADS.replace('"one", "two"', '"one"'))
    page.until(lambda: page.panels)
    cell = page.crash(CELL)
    thread, main = page.panels
    for panel in (thread, main):
        level = page.ask("state", panel)["state"]["selected"]
        assert page.ask("decide", panel, level=level, repair={"word": "skip"})["ok"]
    assert page.reply(cell)["status"] == "ok"


def test_a_crash_in_a_thread_while_an_action_runs_is_displayed(page):
    page.run("import daifu_ipy, threading\ndef work(): return int('q')\ndaifu_ipy.vaccinate(work)")
    cell = page.crash(CELL)
    main = page.panels[0]
    level = page.state()["selected"]
    code = """from daifu_ipy.frontends.choose import ASKERS
import time
thread = threading.Thread(target=work, daemon=True)
thread.start()
while not any(crash.thread is thread for crash in list(ASKERS[0].ask._open)): time.sleep(0.01)"""
    assert page.ask("action", main, level=level, code=code)["entry"]["rich"] == []
    page.until(lambda: len(page.panels) == 2)
    views = [data.get("application/vnd.jupyter.widget-view+json", {}) for data in shown(page, "display_data")]
    assert [view.get("model_id") for view in views] == page.panels
    for panel in reversed(page.panels):
        page.ask("decide", panel, level=0, repair={"word": "abort"})
    page.reply(cell)


def test_unloaded_while_a_panel_is_open(page):
    cell = page.crash(CELL)
    page.act("%unload_ext daifu_ipy")
    assert page.state()["phase"] == "waiting"
    page.decide("skip")
    assert page.reply(cell)["status"] == "ok"
    assert "then skip" in page.ended()["text"]
    page.run("objects = None; import gc; gc.collect(); objects = gc.get_objects()")
    held = "[type(o).__name__ for o in objects if type(o).__name__ in ('PanelState', 'OpenPanel', 'CrashFrame')]"
    assert page.value(held) == []
    assert page.value("'send' in vars(get_ipython().kernel.session)") is False
    page.run("objects = None\n%load_ext daifu_ipy")


def test_one_crash_after_the_other(page):
    cell = page.crash(CELL.replace("!= 2", "!= 2 and epoch != 3"))
    page.decide("skip")
    page.until(lambda: len(page.panels) == 2)
    page.decide("skip")
    assert page.reply(cell)["status"] == "ok"
    assert printed(page, cell) == "seen [7, 7]\n"

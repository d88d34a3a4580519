"""Who is asked where no page shows widgets, and what is said about it; on every version of ipykernel the panel works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.panel.blocked import VERSIONS
from tests.panel.page import Page
from tests.panel.test_protocol import AGAIN, CELL, printed

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def plain() -> Iterator[Page]:
    """A front end that shows no widgets."""
    made = Page(shows_widgets=False)
    made.run("mended = False\nfrom daifu_ipy.frontends import hello\nhello.PATIENCE = 0.2")
    yield made
    made.stop()


def greetings(page: Page) -> list[str]:
    opened = [m["content"] for m in page.shown if m["msg_type"] == "comm_open"]
    return [c["comm_id"] for c in opened if "hello" in c["data"].get("state", {}).get("_esm", "")]


def answer(page: Page, line: str) -> None:
    """Type a line at the prompt."""
    page.client.get_stdin_msg(timeout=30)
    page.client.input(line)


def test_where_nobody_can_answer_nothing_is_asked(plain):
    plain.shown.clear()
    cell = plain.cell(CELL, allow_stdin=False)
    assert plain.reply(cell)["status"] == "error"
    assert not [m for m in plain.shown if m["msg_type"].startswith("comm_")]
    assert plain.value("'anywidget' in __import__('sys').modules") is False


def test_a_manager_of_the_program_needs_no_page(plain):
    plain.shown.clear()
    plain.run("import daifu_ipy; daifu_ipy.set_repair_manager(lambda crash: daifu_ipy.Skip())")
    cell = plain.cell(CELL)
    assert plain.reply(cell)["status"] == "ok"
    plain.run("daifu_ipy.set_repair_manager(None)")
    assert not greetings(plain)


def test_without_widgets_the_prompt_asks_and_says_why(plain):
    plain.shown.clear()
    cell = plain.cell(CELL)
    answer(plain, "skip")
    assert plain.reply(cell)["status"] == "ok"
    assert len(greetings(plain)) == 1
    assert "pip install anywidget" in plain.text(cell)
    assert not plain.panels
    cell = plain.cell(CELL)
    answer(plain, "skip")
    assert plain.reply(cell)["status"] == "ok"
    assert "anywidget" not in plain.text(cell)  # it is said once, and waited for once
    doctor = plain.execute("%daifu doctor")
    plain.reply(doctor)
    assert "TO DO: no page has shown" in plain.text(doctor)


def test_the_panel_can_be_switched_off(plain):
    plain.shown.clear()
    cell = plain.cell(CELL.replace("%%daifu", "%%daifu --on-crash prompt"))
    answer(plain, "skip")
    assert plain.reply(cell)["status"] == "ok"
    assert not greetings(plain)


def test_a_page_that_comes_later_gets_the_panel(plain):
    plain.shown.clear()
    plain.reply(plain.cell("%%daifu\nmended"))
    plain.shows_widgets = True
    plain.run("hello.hello._asked_at = -1000")  # long ago
    cell = plain.crash("%%daifu\nimport time\n" + CELL.removeprefix("%%daifu\n"))
    plain.decide("skip")
    assert plain.reply(cell)["status"] == "ok"
    doctor = plain.execute("%daifu doctor")
    plain.reply(doctor)
    assert "a page has shown that it can show it" in plain.text(doctor)


def test_what_can_not_be_shown_is_asked_about_at_the_prompt(plain):
    plain.run("from daifu_ipy.frontends import panel_widget\nkept = panel_widget.SCRIPT")
    plain.run("import pathlib; panel_widget.SCRIPT = pathlib.Path('/nowhere')")
    cell = plain.cell(CELL)
    answer(plain, "skip")
    assert plain.reply(cell)["status"] == "ok"
    assert "the panel can't be shown: FileNotFoundError" in plain.text(cell)
    plain.run("panel_widget.SCRIPT = kept")


def test_a_kernel_that_can_not_be_read_while_a_page_is_asked(plain):
    plain.run("hello.hello.answered = False; hello.hello._close()\nfrom daifu_ipy.frontends.held import Held")
    plain.run("kept = Held.pump\ndef broken(*_): raise OSError('no socket')\nHeld.pump = broken")
    plain.shows_widgets = False
    cell = plain.cell(CELL)
    answer(plain, "skip")
    assert plain.reply(cell)["status"] == "ok"
    plain.run("Held.pump = kept; hello.hello._asked_at = -1000")
    assert plain.value("hello.hello._waiting") == []
    plain.shows_widgets = True


def test_unloading_gives_everything_back(plain):
    plain.run("%unload_ext daifu_ipy")
    left = "[a.name for a in __import__('daifu_ipy.frontends.choose', fromlist=['x']).ASKERS]"
    assert plain.value(left) == ["prompt"]
    plain.run("%load_ext daifu_ipy")
    assert plain.value(left) == ["panel", "prompt"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_ipykernel(version):
    page = Page(version)
    try:
        page.run("mended = False")
        cell = page.crash(CELL)
        later = page.cell("print('later')", "cell-2")
        assert page.act("seen")["value"] == "[7, 7]"
        again = page.cell(AGAIN)
        page.until(lambda: page.state()["rerun"])
        assert page.ask("rerun", msg_id=again, answer="apply")["ok"]
        assert [page.reply(request)["status"] for request in (cell, later, again)] == ["ok"] * 3
        assert printed(page, again) == "seen [7, 7, 77, 7]\n"
        assert "by surgery" in page.ended()["text"]
    finally:
        page.stop()

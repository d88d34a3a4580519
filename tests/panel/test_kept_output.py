"""What is kept of a resumed cell's output for pages that have lost it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from daifu_ipy.frontends.kept_output import KeptOutput


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"msg_type": "stream", "content": {"name": name, "text": text}}


def display(text: str, name: str | None = None, kind: str = "display_data", **more: str) -> dict[str, Any]:
    return {"msg_type": kind, "content": {"data": {"text/plain": text, **more}, "transient": {"display_id": name}}}


def clear(*, wait: bool) -> dict[str, Any]:
    return {"msg_type": "clear_output", "content": {"wait": wait}}


def kept(*messages: dict[str, Any], limit: int = 1000) -> list[dict[str, Any]]:
    output = KeptOutput(limit)
    for message in messages:
        output.add(message)
    return output.items


def text_of(items: list[dict[str, Any]]) -> str:
    return "".join(item["text"] for item in items)


def test_everything_in_order():
    error = {"msg_type": "error", "content": {"traceback": ["\x1b[31mValueError\x1b[0m: x"]}}
    items = kept(stream("a\n"), stream("b\n"), stream("c\n", "stderr"), display("d"), error)
    assert items == [
        {"stream": "stdout", "text": "a\nb\n"},
        {"stream": "stderr", "text": "c\n"},
        {"data": {"text/plain": "d"}},
        {"error": "ValueError: x"},
    ]


def test_only_what_a_panel_shows():
    assert kept(display("d", **{"application/javascript": "alert(1)", "text/html": "<b>"})) == [
        {"data": {"text/html": "<b>", "text/plain": "d"}}
    ]
    assert kept({"msg_type": "display_data", "content": {"data": {"application/javascript": "alert(1)"}}}) == []


@pytest.mark.parametrize("piece", [1, 2, 3, 7])
def test_a_progress_bar_is_its_last_state_however_it_is_cut(piece):
    text = "begin\r\n" + "".join(f"\r{n:>3} of 100" for n in range(1, 101)) + "\r\nend\n"
    pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
    assert text_of(kept(*map(stream, pieces))).replace("\r\n", "\n") == "begin\n100 of 100\nend\n"


def test_an_update_replaces():
    items = kept(display("a", "x"), display("b", "y"), display("c", "x", "update_display_data"))
    assert [item["data"]["text/plain"] for item in items] == ["c", "b"]


def test_clear_output():
    assert kept(stream("a"), clear(wait=False)) == []
    assert text_of(kept(stream("a"), clear(wait=True))) == "a"
    assert text_of(kept(stream("a"), clear(wait=True), stream("b"), stream("c"))) == "bc"


@pytest.mark.parametrize("count", [10, 200, 5000])
def test_a_long_one_keeps_its_beginning_and_its_end(count):
    messages = [stream(f"{number}\n", ("stdout", "stderr")[number % 2]) for number in range(count)]
    items = kept(*messages, limit=300)
    lines = [int(line) for line in text_of(items).splitlines() if line.isdecimal()]
    assert lines[0] == 0
    assert lines[-1] == count - 1
    if count == 10:
        assert lines == list(range(10))
        return
    assert "not kept: " in text_of(items)
    gap = next(at for at, (a, b) in enumerate(itertools.pairwise(lines)) if b != a + 1)
    assert lines == [*range(gap + 1), *range(lines[gap + 1], count)]
    assert len(text_of(items)) < 300 + 100


def test_one_that_is_too_large_is_not_kept():
    items = kept(display("a"), display("b" * 5000), display("c"), limit=1000)
    assert [item.get("data", {}).get("text/plain") for item in items] == ["a", None, "c"]
    assert "not kept: 1 pieces" in items[1]["text"]


def test_updates_that_grow_stay_within_the_bound():
    """As of a picture that is drawn again and again, also where it is among the first."""
    for before in (0, 50):
        many = [display("m" * 10) for _ in range(before)]
        output = KeptOutput(400)
        for message in [*many, display("a", "x"), *(display("b" * n, "x", "update_display_data") for n in (100, 5000))]:
            output.add(message)
        assert sum(len(item["data"]["text/plain"]) for item in output.items if "data" in item) < 400 + 20
        assert {"data": {"text/plain": "(no longer kept)"}} in output.items
        output.add(display("short", "x", "update_display_data"))
        assert {"data": {"text/plain": "short"}} in output.items

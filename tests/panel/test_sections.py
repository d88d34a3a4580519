"""Sections: what other features add to the panel; none can break it."""

from __future__ import annotations

import pytest

from daifu_ipy.frontends import sections
from daifu_ipy.frontends.sections import Section, register_section, sections_of


@pytest.fixture(autouse=True)
def _none_before(monkeypatch):
    monkeypatch.setattr(sections, "SECTIONS", [])


class Crash:
    line = 7


def test_a_section_is_made_for_each_crash():
    register_section(Section("one", "One", lambda crash: [{"text": f"line {crash.line}"}], open=True))
    assert sections_of(Crash()) == [{"name": "one", "title": "One", "open": True, "blocks": [{"text": "line 7"}]}]


def test_one_that_has_nothing_to_say_is_not_shown():
    register_section(Section("none", "None", lambda crash: None))
    register_section(Section("empty", "Empty", lambda crash: []))
    assert [section["name"] for section in sections_of(Crash())] == ["empty"]


def test_a_section_takes_the_place_of_its_namesake():
    for name, title in (("one", "One"), ("two", "Two"), ("one", "Anew")):
        register_section(Section(name, title, lambda crash: []))
    assert [section["title"] for section in sections_of(Crash())] == ["Anew", "Two"]


class Unshown(Exception):
    def __str__(self):
        raise KeyError


def raises(error):
    def build(crash):
        raise error

    return build


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (raises(ValueError("broken")), "ValueError: broken"),
        (raises(Unshown()), "<message failed: KeyError>"),
        (lambda crash: [{"text": object()}], "TypeError"),
        (lambda crash: ["text"], "ValueError"),
        (lambda crash: 5, "TypeError"),
    ],
)
def test_one_that_fails_shows_why_and_the_others_stay(build, said):
    register_section(Section("bad", "Bad", build))
    register_section(Section("good", "Good", lambda crash: [{"text": "fine"}]))
    bad, good = sections_of(Crash())
    assert bad["blocks"][0]["text"].startswith("this section failed: ")
    assert said in bad["blocks"][0]["text"]
    assert good["blocks"] == [{"text": "fine"}]


def test_what_a_section_gives_is_kept_as_it_was():
    blocks = [{"rows": [[1, "a"]], "head": ["n", "s"]}]
    register_section(Section("rows", "Rows", lambda crash: blocks))
    shown = sections_of(Crash())
    blocks[0]["rows"].append([2, "b"])
    assert shown[0]["blocks"] == [{"rows": [[1, "a"]], "head": ["n", "s"]}]

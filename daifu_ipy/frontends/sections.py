"""Sections of the panel: what other features add to it. It knows none of them, and none can break it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from daifu_ipy.engine.crash import Crash
from daifu_ipy.repair.summary import error_text

Block: TypeAlias = Mapping[str, Any]
"""One of ``{"text"}``, ``{"code"}``, ``{"rows", "head"}``, ``{"field", "label", "value"}``,
``{"button", "command", "enabled", "why_not"}``. All text is shown as it is, never as HTML."""

Command: TypeAlias = Callable[[Crash, dict[str, Any]], str | None]
"""What a button does: gets the crash, and what stands in the section's fields; may give a text to show."""


@dataclass(frozen=True)
class Section:
    """A part of the panel that another feature makes.

    Parameters
    ----------
    name
        What it is known by; a section of the same name takes its place.
    title
        Its heading.
    build
        Gives its blocks, or None if it has nothing to say about this crash. Called often: it must be quick.
    commands
        What its buttons do, by the name in their ``command``.
    open
        Whether it is unfolded at first.
    """

    name: str
    title: str
    build: Callable[[Crash], Sequence[Block] | None]
    commands: Mapping[str, Command] = field(default_factory=dict)
    open: bool = False


SECTIONS: list[Section] = []
"""All sections, in the order in which they are shown."""


def register_section(section: Section) -> None:
    """Add a section, or put it in the place of the one of its name."""
    for index, other in enumerate(SECTIONS):
        if other.name == section.name:
            SECTIONS[index] = section
            return
    SECTIONS.append(section)


def sections_of(crash: Crash) -> list[dict[str, Any]]:
    """The sections of a crash as JSON; one that fails shows why."""
    return [made for section in list(SECTIONS) if (made := _made(section, crash)) is not None]


def _made(section: Section, crash: Crash) -> dict[str, Any] | None:
    try:
        blocks = section.build(crash)
        if blocks is None:
            return None
        shown = json.loads(json.dumps([dict(block) for block in blocks]))
    except Exception as error:  # of another feature: the panel must stay
        shown = [{"text": f"this section failed: {error_text(error)}"}]
    return {"name": section.name, "title": section.title, "open": section.open, "blocks": shown}

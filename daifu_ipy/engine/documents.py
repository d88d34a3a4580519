"""The texts that surgeries are about: files and notebook cells, as they were, as they are, and with the new texts."""

from __future__ import annotations

import ast
import itertools
import os
import tokenize
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from daifu_ipy.engine.differences import Conflict, carried_over, unified
from daifu_ipy.engine.splicing import Edit, definition_text, definitions, splice
from daifu_ipy.engine.unit import is_constant
from daifu_ipy.engine.vaccinate import parse

namers: list[Callable[[str], str | None]] = []
"""Front ends add here what they call a file; None for files that are not theirs."""

readers: list[Callable[[str], str | None]] = []
"""Front ends add here how to get the text that the user has under a file name; None for files that are not theirs."""


@dataclass(eq=False)
class Document:
    """The text that a file or notebook cell had when it was first operated on, and what each surgery changed in it."""

    file: str
    original: str
    edits: dict[int, list[Edit]] = field(default_factory=dict)
    replaced: dict[int, list[tuple[str, int]]] = field(default_factory=dict)  # names, and which of their namesakes

    @property
    def name(self) -> str:
        """What a user calls it."""
        return name_of(self.file)

    def text(self, numbers: Container[int]) -> str:
        """The text with what these surgeries have changed."""
        made = self.original
        for number, edits in self.edits.items():
            if number in numbers:
                made = splice(made, edits)
        return made

    def present(self) -> str:
        """What the user has now; the text that ran, if that can't be read."""
        text = self.read()
        return self.original if text is None else text

    def read(self) -> str | None:
        """The file on disk, or the notebook cell as it was typed."""
        found = next((text for call in readers if (text := call(self.file)) is not None), None)
        if found is not None or not self.is_file:
            return found
        try:
            with tokenize.open(self.file) as file:
                return file.read()
        except (OSError, SyntaxError, UnicodeDecodeError):
            return None

    @property
    def is_file(self) -> bool:
        """Whether it is a file on disk; a debugger may have written a notebook cell there, under its file name."""
        return all(call(self.file) is None for call in namers) and os.path.isfile(self.file)

    def repaired(self, numbers: Container[int]) -> str:
        """What the user has now, with what these surgeries have changed.

        Raises
        ------
        Conflict
            What they changed was changed since by somebody else.
        """
        return carried_over(self.original, self.text(numbers), self.present())

    def diff(self, numbers: Container[int]) -> str:
        """A unified diff from what the user has now; from the text that crashed, if that was changed since."""
        newest = f"surgery {max(number for number in self.edits if number in numbers)}"
        try:
            return unified(self.present(), self.repaired(numbers), self.name, self.name, "now", newest)
        except Conflict:
            since = "when it crashed; it was changed since"
            return unified(self.original, self.text(numbers), self.name, self.name, since, newest)

    def changed_since(self, numbers: Container[int]) -> list[str]:
        """The replaced functions that the user has in a form that is neither the crashed nor the new one."""
        texts = self.original, self.text(numbers), self.present()
        places = dict.fromkeys(place for number, every in self.replaced.items() if number in numbers for place in every)
        found = {place: [definition_text(text, *place) for text in texts] for place in places}
        return [name for (name, _), (*known, now) in found.items() if now not in known]

    def crashing_in(self, statements: list[ast.stmt], numbers: Container[int]) -> dict[str, int]:
        """The replaced functions of which `statements` hold the text that crashed, each with its newest surgery."""
        text = self.text(numbers)
        return {
            name: number
            for number, every in self.replaced.items()
            if number in numbers
            for name, ordinal in every
            if holds(statements, name, ordinal, self.original) and not holds(statements, name, ordinal, text)
        }


def holds(statements: list[ast.stmt], name: str, ordinal: int, text: str) -> bool:
    """Whether statements define a function as a text does; whether they say what it says, if it is ``<module>``."""
    try:
        tree = parse(text)
    except SyntaxError:
        return False
    if name == "<module>":
        return says(statements) == says(tree.body)
    ours, theirs = (definitions(body).get(name, [])[ordinal : ordinal + 1] for body in (statements, tree.body))
    return bool(ours) and says(ours) == says(theirs)


def says(statements: Sequence[ast.stmt]) -> list[str]:
    """What statements say; texts in front of them, such as the line of a cell magic, are left out."""
    return [ast.dump(statement) for statement in itertools.dropwhile(is_constant, statements)]


def name_of(file: str) -> str:
    """What a user calls a file."""
    found = next((name for call in namers if (name := call(file)) is not None), None)
    return found or file.removeprefix(os.getcwd() + os.sep)


__all__ = ["Document", "name_of", "namers", "readers"]

"""The repair panel as a user sees and uses it. `part` names are listed in labextension/README.md."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Locator, expect


@dataclass
class Panel:
    """A panel in a page: that of a cell, or the dock; `area`: where it says at last what was done."""

    root: Locator
    area: Locator

    def part(self, name: str) -> Locator:
        return self.root.locator(f"[data-daifu='{name}']")

    def waits(self, message: str = "") -> Panel:
        """Wait until it shows this crash and can be used."""
        expect(self.root).to_have_attribute("data-phase", "waiting")
        expect(self.part("title")).to_contain_text(message)
        expect(self.part("button-pass")).to_be_visible()
        return self

    def choose(self, ending: str) -> None:
        """Press the button of an ending."""
        self.part(f"button-{ending}").click()

    def act(self, code: str) -> Locator:
        """Type an action and run it; its entry."""
        before = self.entries.count()
        self.start(code)
        expect(self.entries).to_have_count(before + 1)
        return self.entries.last

    def start(self, code: str) -> None:
        """Type an action and run it."""
        self.type_action(code)
        self.keys.press("Shift+Enter")

    def type_action(self, code: str) -> None:
        """Type over what stands there."""
        self.part("console-input").locator(".cm-content").click()
        self.keys.press("Control+A")
        self.keys.insert_text(code)

    @property
    def entries(self) -> Locator:
        """The actions done, each with what came of it."""
        return self.part("console-entry")

    def confirm(self) -> None:
        """Say yes to the question that is asked."""
        self.part("ask-yes").click()

    def focus(self, name: str) -> None:
        """Put the focus on a part, or on the editor in it."""
        part = self.part(name).first
        (part.locator(".cm-content") if name in ("editor", "console-input") else part).focus()

    def replace(self, old: str, new: str) -> None:
        """Change the text in the editor: find `old` by the keyboard and type over it."""
        editor = self.part("editor").locator(".cm-content").first
        expect(editor).to_contain_text(old)
        lines = editor.locator(".cm-line").all_inner_texts()
        text = "\n".join("" if line == "\n" else line for line in lines)
        assert text.count(old) == 1, text
        editor.click()
        self.keys.press("Control+A")
        self.keys.insert_text(text.replace(old, new))

    def operate(self) -> None:
        """Preview what stands in the editor, and apply it."""
        self.choose("surgery")
        self.part("apply").click()

    @property
    def keys(self):
        return self.root.page.keyboard

    def ends(self, text: str) -> None:
        """Wait until it is over and its one line says this."""
        expect(self.area).to_contain_text(text)

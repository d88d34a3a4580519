"""What was typed into a crash's panel and what came of it: bounded, so that it can be sent with every state."""

from __future__ import annotations

from typing import Any

from daifu_ipy.frontends.kept_output import NOT_KEPT

MOST_ENTRIES = 100
MOST_RICH = 2_000_000
"""Characters of pictures and the like."""

Entry = dict[str, Any]
NOTHING: Entry = {"level": None, "code": "", "stdout": "", "value": None, "error": None, "note": None, "rich": []}


class Console:
    """The entries, oldest first, as the panel's state has them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, **fields: Any) -> Entry:
        """Add an entry; what is not given is empty."""
        entry = {**NOTHING, **fields}
        self.entries = [*self.entries, entry][-MOST_ENTRIES:]
        size = 0
        for one in reversed(self.entries):
            size += sum(len(text) for bundle in one["rich"] for text in bundle.values())
            if size > MOST_RICH and one is not entry:
                one["rich"] = [{"text/plain": NOT_KEPT}]
        return entry

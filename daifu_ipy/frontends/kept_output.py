"""What the resumed cell prints and shows: kept for pages that have lost its output area, as by a reload."""

from __future__ import annotations

import re
from collections import deque
from typing import Any

MAX_SIZE = 1_000_000
"""Characters that are kept."""

NOT_KEPT = "(no longer kept)"

SHOWN = ("image/png", "image/jpeg", "image/svg+xml", "text/html", "text/plain")
"""The representations that a panel shows."""

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n|\Z)")
_MAX_JOINED = 10_000


class KeptOutput:
    """A bounded record of a cell's output: of a long one the beginning and the end.

    Parameters
    ----------
    limit
        The most characters.
    """

    def __init__(self, limit: int = MAX_SIZE) -> None:
        self._half = limit // 2
        self._first: list[dict[str, Any]] = []
        self._last: deque[dict[str, Any]] = deque()
        self._size = self._last_size = 0
        self._dropped = 0
        self._clears = False
        self.count = 0

    def add(self, message: dict[str, Any]) -> None:
        """Keep an output message of a kernel."""
        kind, content = message["msg_type"], message["content"]
        self.count += 1
        if kind == "clear_output":
            self._clears = bool(content.get("wait"))
            self._clear() if not self._clears else None
            return
        if self._clears:
            self._clear()
        item = _item(kind, content)
        if kind == "update_display_data" and self._replaced(item):
            return
        if item and not self._joined(item):
            self._keep(item)

    @property
    def items(self) -> list[dict[str, Any]]:
        """What is kept, oldest first; where something was dropped, that is said."""
        gap = {"stream": "stderr", "text": f"\n... not kept: {self._dropped} pieces of output ...\n"}
        items = [*self._first, *([gap] if self._dropped else []), *self._last]
        return [{name: value for name, value in item.items() if name != "id"} for item in items]

    @property
    def _is_full(self) -> bool:
        """Whether the first half is."""
        return bool(self._last) or self._dropped > 0

    def _clear(self) -> None:
        self._first, self._last = [], deque()
        self._size = self._last_size = self._dropped = 0
        self._clears = False

    def _keep(self, item: dict[str, Any]) -> None:
        size = _size(item)
        if not self._is_full and self._size + size <= self._half:
            self._first.append(item)
            self._size += size
            return
        self._last.append(item)
        self._last_size += size
        while self._last_size > self._half and (len(self._last) > 1 or self._last_size > 2 * self._half):
            self._last_size -= _size(self._last.popleft())
            self._dropped += 1

    def _joined(self, item: dict[str, Any]) -> bool:
        """Whether it only went on with a text: progress bars overwrite their line again and again."""
        known = self._last if self._is_full else self._first
        last = known[-1] if known else {}
        if "stream" not in item or last.get("stream") != item["stream"] or len(last["text"]) > _MAX_JOINED:
            return False
        before = len(last["text"])
        last["text"] = _OVERWRITTEN.sub("", last["text"] + item["text"])
        grown = len(last["text"]) - before
        if self._is_full:
            self._last_size += grown
        else:
            self._size += grown
        return True

    def _replaced(self, item: dict[str, Any]) -> bool:
        for known in (*self._first, *self._last):
            if item and known.get("id") == item["id"]:
                self._change(known, item["data"])
                return True
        return False

    def _change(self, known: dict[str, Any], data: dict[str, Any]) -> None:
        """Replace its data, unless they are too large beside the rest of its half."""
        is_first = any(one is known for one in self._first)
        size = (self._size if is_first else self._last_size) - _size(known)
        known["data"] = data
        if size + _size(known) > self._half:
            known["data"] = {"text/plain": NOT_KEPT}
        if is_first:
            self._size = size + _size(known)
        else:
            self._last_size = size + _size(known)


def _item(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """A message's content, in the form of a panel's state; nothing where there is nothing to show."""
    if kind == "stream":
        return {"stream": content["name"], "text": _ANSI.sub("", content["text"])[-MAX_SIZE:]}
    if kind == "error":
        return {"error": _ANSI.sub("", "\n".join(content.get("traceback", ())))}
    data = {mime: value for mime, value in content.get("data", {}).items() if mime in SHOWN}
    return {"data": data, "id": content.get("transient", {}).get("display_id")} if data else {}


def _size(item: dict[str, Any]) -> int:
    return sum(len(value) for value in (item.get("text"), item.get("error"), *item.get("data", {}).values()) if value)

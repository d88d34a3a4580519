"""A page, as a notebook's front end is one for the kernel: it answers the hello, and asks the panel of a crash."""

from __future__ import annotations

from typing import Any

from tests.panel.blocked import INSTALLED, Blocked

SETUP = """
%load_ext daifu_ipy
import pathlib, tempfile
from comm import get_comm_manager
from daifu_ipy.frontends import panel
get_comm_manager().register_target("page", lambda comm, message: None)
panel.SCRIPT = pathlib.Path(tempfile.mkdtemp(), "panel.js")  # no browser runs it here
for suffix in (".js", ".css"):
    panel.SCRIPT.with_suffix(suffix).write_text("")
"""


class Page(Blocked):
    """One page. `shows_widgets`: its front end has anywidget."""

    def __init__(self, version: str = INSTALLED, shows_widgets: bool = True) -> None:
        self.shows_widgets = shows_widgets
        self.asked_panels = 0
        super().__init__(version, SETUP)

    def cell(self, code: str, cell_id: str | None = "cell-1", **content: Any) -> str:
        """Run a cell of the notebook: the request's id."""
        metadata = {"cellId": cell_id} if cell_id else {}
        return self.execute(code, metadata, **{"allow_stdin": True, **content})

    def receive(self) -> None:
        """As ever; the page's part of a widget begins to run as soon as it is there."""
        known = len(self.shown)
        super().receive()
        for message in self.shown[known:]:
            if message["msg_type"] == "comm_open" and self.shows_widgets:
                if "hello" in message["content"]["data"].get("state", {}).get("_esm", ""):
                    self.post(message["content"]["comm_id"], {"kind": "hello"})

    def post(self, comm: str, content: dict[str, Any]) -> None:
        """Send a custom message to a widget."""
        self.send("comm_msg", comm_id=comm, data={"method": "custom", "content": content})

    # panels

    @property
    def panels(self) -> list[str]:
        """The panels that were opened so far, oldest first: their comms."""
        opened = [m["content"] for m in self.shown if m["msg_type"] == "comm_open"]
        return [c["comm_id"] for c in opened if "crash_id" in c["data"].get("state", {})]

    def crash(self, code: str, **options: Any) -> str:
        """Run a cell that crashes; its panel is there when this returns. The request's id."""
        before = len(self.panels)
        request = self.cell(code, **options)
        self.until(lambda: len(self.panels) > before)
        return request

    def ask(self, kind: str, panel: str = "", **fields: Any) -> dict[str, Any]:
        """Ask a panel, by default the newest: its reply."""
        self.asked_panels += 1
        name = f"request-{self.asked_panels}"
        self.post(panel or self.panels[-1], {"id": name, "kind": kind, **fields})
        return self.until(lambda: next((m for m in self.messages() if m.get("id") == name), None))

    def messages(self) -> list[dict[str, Any]]:
        """What panels have sent."""
        data = [m["content"]["data"] for m in self.shown if m["msg_type"] == "comm_msg"]
        return [one["content"] for one in data if one.get("method") == "custom"]

    def state(self) -> dict[str, Any]:
        """The panel's state, when it is asked for."""
        reply = self.ask("state")
        assert reply["ok"], reply
        state: dict[str, Any] = reply["state"]
        return state

    def decide(self, word: str, **fields: Any) -> dict[str, Any]:
        """Answer the crash in its own frame."""
        level = self.state()["selected"]
        known = {name: fields.pop(name) for name in ("times", "sure", "key") if name in fields}
        return self.ask("decide", level=level, repair={"word": word, **fields}, **known)

    def act(self, code: str) -> dict[str, Any]:
        """Run an action in the crashed frame: its entry."""
        reply = self.ask("action", level=self.state()["selected"], code=code)
        assert reply["ok"], reply
        entry: dict[str, Any] = reply["entry"]
        return entry

    def ended(self) -> dict[str, Any]:
        """The end that the panel has told."""
        states = [m["state"] for m in self.messages() if m["kind"] == "state"]
        return self.until(lambda: next((s["end"] for s in states if s["end"]), None))

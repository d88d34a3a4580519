"""A notebook in JupyterLab as a user sees it: cells by number, their prompts and outputs, the panel."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.panel import Panel
from tests.browser.server import Server

IDLE = """async path => {
  const panel = await jupyterapp.commands.execute('docmanager:open', {path});
  await panel.context.ready;
  await panel.sessionContext.ready;
  const kernel = panel.sessionContext.session.kernel;
  await kernel.info;
  if (kernel.status !== 'idle') await new Promise(idle => kernel.statusChanged.connect(() => kernel.status === 'idle' && idle()));
}"""
SAVE = "async () => { await jupyterapp.commands.execute('docmanager:save'); }"


@dataclass
class Lab:
    """Opens notebooks in pages of a new browser profile."""

    server: Server
    context: BrowserContext
    pictures: Path
    name: str
    errors: list[str] = field(default_factory=list)
    kernel: str = "python3"

    def open(self, *cells: str) -> Notebook:
        """A new notebook, its kernel idle."""
        path = f"{self.name}-{uuid.uuid4().hex[:6]}.ipynb"
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell.strip("\n")) for cell in cells],
            metadata={"kernelspec": {"name": self.kernel, "display_name": self.kernel, "language": "python"}},
        )
        nbformat.write(notebook, self.server.root / path)
        page = self.page(path)
        page.evaluate(IDLE, path)
        return Notebook(self, page, path)

    def page(self, path: str) -> Page:
        """A page on a notebook that is there."""
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: dialog.accept())  # leave the page, saved or not
        workspace = uuid.uuid4().hex[:8]
        page.goto(f"{self.server.url}/lab/workspaces/{workspace}/tree/{path}?token={self.server.token}")
        expect(page.locator(".jp-NotebookPanel .jp-Cell").first).to_be_visible()
        return page


@dataclass
class Notebook:
    """An open notebook."""

    lab: Lab
    page: Page
    path: str

    def cell(self, number: int) -> Locator:
        return self.page.locator(f".jp-NotebookPanel .jp-Cell[data-windowed-list-index='{number}']")

    def prompt(self, number: int) -> Locator:
        return self.cell(number).locator(".jp-InputPrompt")

    def output(self, number: int) -> Locator:
        return self.cell(number).locator(".jp-Cell-outputArea")

    def panel(self, number: int) -> Panel:
        """The panel under a cell: its newest."""
        return Panel(self.output(number).locator("[data-daifu='root']").last, self.output(number))

    def dock(self) -> Panel:
        """The panel that stands at the bottom of the page, where no cell shows it."""
        dock = self.page.locator("[data-daifu='dock']")
        return Panel(dock.locator("[data-daifu='root']"), dock)

    def any_panel(self) -> Panel:
        """The one that is visible: of a cell, or the dock's."""
        return Panel(self.page.locator("[data-daifu='root']:visible").last, self.page.locator("body"))

    def kernel_status(self) -> str:
        """As the server knows it: an idle kernel may be ended by it."""
        sessions = self.lab.server.ask("GET", "api/sessions")
        return next(session["kernel"]["execution_state"] for session in sessions if session["path"] == self.path)

    def run(self, number: int) -> None:
        """As by a click beside the cell and Ctrl-Enter."""
        self.prompt(number).click()
        self.page.keyboard.press("Control+Enter")

    def edit(self, number: int, text: str) -> None:
        """Type another text into the cell."""
        editor = self.cell(number).locator(".jp-InputArea-editor .cm-content")
        editor.click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text.strip("\n"))
        expect(editor).to_contain_text(text.strip().splitlines()[-1].strip())

    def run_all(self) -> None:
        self.command("notebook:run-all-cells", wait=False)

    def command(self, name: str, wait: bool = True, **arguments: Any) -> None:
        """A command of JupyterLab, as from its menu."""
        call = f"jupyterapp.commands.execute({name!r}, {json.dumps(arguments)})"
        self.page.evaluate(f"async () => {{ await {call}; }}" if wait else f"() => {{ void {call}; }}")

    def ran(self, number: int, count: int | None = None) -> None:
        """Wait until the cell has run."""
        text = f"[{count}]:" if count else None
        expect(self.prompt(number)).to_have_text(text) if text else expect(self.prompt(number)).not_to_have_text("[*]:")

    def saved(self) -> dict[str, Any]:
        """Save it; what stands in the file."""
        self.page.evaluate(SAVE)
        file: dict[str, Any] = json.loads((self.lab.server.root / self.path).read_text("utf-8"))
        return file

    def restart_kernel(self) -> None:
        self.command("kernelmenu:restart", wait=False)
        self.page.locator(".jp-Dialog .jp-mod-accept").click()

    def end_kernel(self) -> None:
        self.lab.server.end_kernels()

    def close(self) -> None:
        """Close the notebook's tab, without saving."""
        self.command("application:close", wait=False)
        self.page.locator(".jp-Dialog").get_by_text("Discard").click()
        expect(self.page.locator(".jp-NotebookPanel")).to_have_count(0)

    def open_again(self) -> None:
        self.command("docmanager:open", wait=False, path=self.path)
        expect(self.page.locator(".jp-NotebookPanel .jp-Cell").first).to_be_visible()

    def reload(self) -> None:
        """The page again, with what is in the file."""
        self.page.reload()
        expect(self.page.locator(".jp-NotebookPanel .jp-Cell").first).to_be_visible()

    def second_tab(self) -> Notebook:
        return Notebook(self.lab, self.lab.page(self.path), self.path)

    def screenshot(self, name: str) -> None:
        """A picture of the page, among the artefacts."""
        self.page.screenshot(path=self.lab.pictures / f"{name}.png")

"""Server and kernel in two environments, as under JupyterHub: the server's must show widgets, only the kernel's crashes."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.environments import kernel_environment, server_environment
from tests.browser.lab import Lab, Notebook
from tests.browser.server import running
from tests.browser.test_waiting import CELL, COUNT, COUNTED, MEND, MESSAGE


@pytest.fixture(scope="module")
def renderer(request):
    """Whether the server's environment has anywidget."""
    return request.param


@pytest.fixture(scope="module")
def server(chromium, tmp_path_factory, renderer):
    folder = tmp_path_factory.mktemp("two")
    kernel = kernel_environment(folder / "kernel")
    python = server_environment(folder / "server", renderer=renderer)
    with running(folder / "lab", python, {"other": [kernel]}) as server:
        yield server


@pytest.fixture
def notebook(lab: Lab):
    lab.kernel = "other"
    notebook = lab.open("import sys; print('kernel of', sys.prefix)", COUNT, CELL, "%daifu doctor")
    notebook.run(0)
    expect(notebook.output(0)).to_contain_text("/kernel")
    notebook.run(1)
    notebook.run(2)
    return notebook


@pytest.mark.parametrize("renderer", [True], ids=["with-anywidget"], indirect=True)
def test_the_panel_needs_anywidget_in_the_servers_environment(notebook: Notebook):
    panel = notebook.panel(2).waits(MESSAGE)
    panel.act(MEND)
    panel.choose("pass")
    expect(notebook.output(2)).to_contain_text(COUNTED)


@pytest.mark.parametrize("renderer", [False], ids=["without"], indirect=True)
def test_where_it_is_missing_the_prompt_and_the_doctor_say_what_to_install_where(notebook: Notebook):
    answer = notebook.output(2).locator(".jp-Stdin-input").last
    answer.fill(MEND)
    expect(notebook.output(2)).to_contain_text("anywidget")
    expect(notebook.output(2)).to_contain_text("server")
    notebook.screenshot("no-anywidget")
    answer.press("Enter")
    expect(answer).to_have_value("")  # the next one
    answer.fill("pass")
    answer.press("Enter")
    expect(notebook.output(2)).to_contain_text(COUNTED)
    notebook.run(3)
    expect(notebook.output(3)).to_contain_text("anywidget")
    notebook.screenshot("doctor-no-anywidget")

"""One JupyterLab for each worker, one Chromium for each module, one new browser profile for each test."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import TIMEOUT, NoChromium, launched, path
from tests.browser.lab import Lab
from tests.browser.server import Server, running

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(120))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test leaves a picture of each of its pages."""
    report = yield
    lab = getattr(item, "funcargs", {}).get("lab")
    if report.when == "call" and report.failed and isinstance(lab, Lab):
        for number, page in enumerate(lab.context.pages):
            page.screenshot(path=lab.pictures / f"FAILED-{lab.name}-{number}.png")
    return report


@pytest.fixture(scope="session")
def chromium() -> str:
    """Its path. Where there is none, CI fails and others leave these tests out."""
    try:
        return path()
    except NoChromium as problem:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(problem))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go."""
    folder = Path(os.environ.get("DAIFU_SCREENSHOTS") or tmp_path_factory.getbasetemp() / "screenshots").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def lab(server: Server, browser: Browser, pictures: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(TIMEOUT)
    lab = Lab(server, context, pictures, re.sub(r"\W+", "-", request.node.name.removeprefix("test_")).strip("-"))
    yield lab
    context.close()
    server.end_kernels()
    assert lab.errors == []

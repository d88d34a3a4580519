"""Chromium, found or installed by scripts/get-chromium, and started under Playwright."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

GET = Path(__file__).parents[2] / "scripts/get-chromium"
QUIET = ("background-networking", "component-update", "gpu", "quic", "sync")
ARGUMENTS = ["--no-sandbox", "--no-first-run", *(f"--disable-{feature}" for feature in QUIET)]
TIMEOUT = 20_000
"""Milliseconds that a test waits for what must come."""


class NoChromium(Exception):
    """There is none; says what to do."""


def path() -> str:
    """Where it is."""
    found = subprocess.run([GET], capture_output=True, text=True)
    if found.returncode:
        raise NoChromium("\n".join(found.stderr.strip().splitlines()[-4:]))
    return found.stdout.strip()


@contextmanager
def launched() -> Iterator[Browser]:
    """A running one. Until it ends, Playwright's event loop is that of this thread."""
    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path(), args=ARGUMENTS)
        yield browser
        browser.close()

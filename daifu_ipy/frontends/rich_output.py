"""What an action prints and shows: collected for the panel. Shown in the cell, it would be saved in the notebook."""

from __future__ import annotations

import base64
import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from daifu_ipy.frontends.kept_output import SHOWN
from daifu_ipy.frontends.prompt import running_shell

MAX_SIZE = 2_000_000
"""Characters of one representation that are sent to a page."""
MAX_ERRORS = 10_000


@dataclass
class Shown:
    """What a block has shown: representations by their types, and what went to stderr. (What it printed, it knows.)"""

    rich: list[dict[str, Any]] = field(default_factory=list)
    errors: str = ""


@contextlib.contextmanager
def captured() -> Iterator[Shown]:
    """Collect what is shown in this block, and the figures that it makes; the program's own figures are let be."""
    shown = Shown()
    if running_shell() is None or threading.current_thread() is not threading.main_thread():
        yield shown  # what the whole process shows is not this thread's
        return
    from IPython.utils.capture import capture_output

    before = _figures()
    with capture_output() as output:
        try:
            yield shown
        finally:
            for number, figure in _figures().items():
                if number not in before:
                    _show(figure, number)
    shown.rich += [bundle for one in output.outputs if (bundle := shown_part(one.data))]
    shown.errors = output.stderr[-MAX_ERRORS:]


def shown_part(data: dict[str, Any]) -> dict[str, str]:
    """What a panel shows of an object's representations."""
    texts = {mime: _text(data[mime]) for mime in SHOWN if mime in data}
    return {mime: text for mime, text in texts.items() if 0 < len(text) <= MAX_SIZE}


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, str) else ""


def _figures() -> dict[int, Any]:
    """The figures that pyplot has, by number."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return {} if helpers is None else dict(helpers.Gcf.figs)


def _show(manager: Any, number: int) -> None:
    """Show a new figure, as a cell does at its end."""
    from IPython.display import display

    with contextlib.suppress(Exception):
        display(manager.canvas.figure)
        sys.modules["matplotlib._pylab_helpers"].Gcf.destroy(number)

"""A notebook in this process: runs cells in a shell of its own, and records everything that a user could see."""

from __future__ import annotations

import builtins
import contextlib
import io
import re
import sys
import warnings
from dataclasses import dataclass, field
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

MARKER = "%%daifu"
PLAIN = "#%%daifu#"  # a comment, as long as the text that stands for %%daifu, so that lines and columns are the same


@dataclass
class Seen:
    """What one cell did."""

    stdout: str
    stderr: str
    result: str
    error: str
    lines: list[tuple[str, int | None]]  # the traceback: code names and lines, from the cell inwards

    @property
    def text(self) -> str:
        return self.stdout + self.stderr


@dataclass
class Notebook:
    """A shell; with `loaded`, the extension is in it."""

    loaded: bool = True
    config: dict[str, Any] = field(default_factory=dict)
    shell: Any = None

    def __enter__(self) -> Notebook:
        config = Config(self.config)
        config.HistoryManager.enabled = False
        config.HistoryManager.hist_file = ":memory:"
        self._before = sys.modules["__main__"], builtins.__dict__.copy(), sys.excepthook, sys.displayhook
        self.shell = InteractiveShell(config=config, colors="nocolor")
        if self.loaded:
            assert self.shell.extension_manager.load_extension("daifu_ipy") is None
        return self

    def __exit__(self, *_: object) -> None:
        if "daifu_ipy" in self.shell.extension_manager.loaded:
            self.shell.extension_manager.unload_extension("daifu_ipy")
        self.shell.restore_sys_module_state()
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            sys.__dict__.pop(name, None)
        sys.modules["__main__"], names, sys.excepthook, sys.displayhook = self._before
        for name in builtins.__dict__.keys() - names.keys():
            del builtins.__dict__[name]

    def run(self, cell: str, **options: Any) -> Seen:
        """Run a cell."""
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(record=True) as log,
        ):
            warnings.simplefilter("default")
            result = self.shell.run_cell(cell, **{"store_history": True} | options)
        error = result.error_before_exec or result.error_in_exec
        return Seen(
            normal(out.getvalue()),
            normal(err.getvalue()) + "".join(f"{w.category.__name__}: {w.message} ({w.lineno})\n" for w in log),
            safe_repr(result.result),
            normal(f"{type(error).__name__}: {error}") if error is not None else "",
            lines_of(error),
        )

    def runs(self, *cells: str) -> list[Seen]:
        """Run cells, one after the other."""
        return [self.run(cell) for cell in cells]

    @property
    def names(self) -> dict[str, Any]:
        """The user's variables, as they may be compared."""
        hidden = {"get_ipython", "exit", "quit", "open", "_dh", "__builtins__", "__builtin__", "In", "_ih"}
        return {
            name: safe_repr(value)
            for name, value in self.shell.user_ns.items()
            if name not in hidden and not re.fullmatch(r"_i+|_i\d+", name)
        }

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]


def safe_repr(value: object) -> str:
    try:
        return normal(repr(value))
    except Exception as error:
        return f"<{error}>"


def normal(text: str) -> str:
    """Without what is different each time."""
    text = re.sub(r"0x[0-9a-f]{6,}", "0x", text)
    text = re.sub(r"<ipython-input-(\d+)-[0-9a-f]+>", r"<ipython-input-\1>", text)
    text = re.sub(r"(?m)^Compiler *: .*\n", "", text)  # said where it took long
    text = re.sub(r"(CPU times|Wall time): .*", r"\1", text)
    return re.sub(rf"'{MARKER}'|(?<!#){MARKER}(?=\\n)", PLAIN, text)


def lines_of(error: BaseException | None) -> list[tuple[str, int | None]]:
    found = []
    entry = error.__traceback__ if error is not None else None
    while entry is not None:
        code = entry.tb_frame.f_code
        if "IPython" not in code.co_filename:
            found.append((code.co_qualname, entry.tb_lineno))
        entry = entry.tb_next
    return found


def without_report(text: str) -> str:
    """Without the line that names what is protected."""
    return re.sub(r"daifu: protecting .*\n", "", text)

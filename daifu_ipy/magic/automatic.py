"""``%daifu auto``: which cells it protects, and the command.

Protected is what the user runs as a cell, and what ``%%time`` or ``%%capture`` on top of it runs as one. All else that
IPython compiles is left as it is: what programs and magics run, and requests that leave no trace in the history. So are
cells of magics alone: a mistyped ``%magic`` is no crash.
"""

from __future__ import annotations

import ast
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any

from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

if TYPE_CHECKING:
    from daifu_ipy.magic.options import Daifu
    from daifu_ipy.magic.running import Runner

AROUND = ("time", "capture")
"""Cell magics that run the text below them as a cell."""


@magic_arguments("daifu auto")
@argument("switch", choices=["on", "off"], nargs="?", help="Without it: what holds now.")
def auto(runner: Runner, line: str) -> None:
    """Protect every cell from now on; `%%daifu off` above one leaves it alone."""
    switch = parse_argstring(auto, line).switch
    if switch is not None:
        runner.daifu.auto = switch == "on"
    print(STATES[runner.daifu.auto])


STATES = {
    True: "daifu: every cell is protected from now on; %%daifu off above one leaves it alone",
    False: "daifu: only cells with %%daifu on top are protected",
}


class Automatic:
    """Recognises the trees that are the user's cells.

    Parameters
    ----------
    daifu
        Its trait `auto` says whether it is on.
    """

    def __init__(self, daifu: Daifu) -> None:
        self._daifu = daifu
        self._inside = threading.local()  # the text that a cell magic of `AROUND` is about to run

    def takes(self, tree: ast.Module) -> bool:
        """Whether the tree that IPython transforms now is a cell to protect."""
        if not self._daifu.auto:
            return False
        expected, self._inside.text = getattr(self._inside, "text", None), None
        caller = _who_transforms()
        if not (_is_cell_of_the_user(caller) or (expected is not None and _text_run_by(caller) == expected)):
            return False
        name, text = magic_of(tree)
        self._inside.text = text if name in AROUND else None
        return name is None and not all(_is_line_magic(statement) for statement in tree.body)


def magic_of(tree: ast.Module) -> tuple[str | None, str | None]:
    """The cell magic that a cell consists of, and the text that it is given."""
    match tree.body:
        case [
            ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="run_cell_magic"),
                    args=[ast.Constant(value=str(name)), _, ast.Constant(value=str(text))],
                )
            )
        ]:
            return name, text
        case _:
            return None, None


def _is_line_magic(statement: ast.stmt) -> bool:
    """Whether a statement is a magic alone, in which nothing could be resumed."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name("get_ipython")), attr=name))):
            return name == "run_line_magic"
        case _:
            return False


def _who_transforms() -> FrameType | None:
    """The frame that calls ``shell.transform_ast``."""
    return _outward(sys._getframe(1), "transform_ast")


def _outward(frame: FrameType | None, name: str) -> FrameType | None:
    """What called the nearest function of that name."""
    while frame is not None and frame.f_code.co_name != name:
        frame = frame.f_back
    return frame.f_back if frame is not None else None


def _is_cell_of_the_user(caller: FrameType | None) -> bool:
    info = _info(caller)
    if caller is None or info is None or info.silent or not info.store_history:
        return False
    return _outward(caller.f_back, "run_cell_async") is None  # else a cell runs, and runs this one


def _text_run_by(caller: FrameType | None) -> str | None:
    """The text that ``%%time`` or ``%%capture`` runs."""
    info = _info(caller)
    if info is not None:
        return str(info.raw_cell)
    return caller.f_locals.get("cell") if caller is not None and caller.f_code.co_name == "time" else None


def _info(caller: FrameType | None) -> Any:
    """What IPython knows of the run of a cell; of the request itself, where it has changed its mind since."""
    if caller is None or caller.f_code.co_name != "run_cell_async":
        return None
    return caller.f_locals.get("info")

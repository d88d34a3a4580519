"""``%daifu versions``, ``diff``, ``fix``, ``write`` and ``revert``: what surgeries have changed, and how to keep it.

A cell that is run again with the text that crashed says so in one line, and runs as the user typed it.
"""

from __future__ import annotations

import ast
import linecache
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from daifu_ipy.engine import versions as engine
from daifu_ipy.engine.differences import Conflict
from daifu_ipy.engine.documents import Document, name_of, readers
from daifu_ipy.engine.versions import Version, VersionError
from daifu_ipy.magic.protect import listed
from daifu_ipy.repair.summary import one_line
from daifu_ipy.repair.writing import NotWritten, write

if TYPE_CHECKING:
    from daifu_ipy.magic.running import Runner

NUMBER = argument("number", metavar="N", nargs="?", type=int, help="Of which surgery; the newest text, without it.")


@magic_arguments("daifu versions")
def versions(runner: Runner, line: str) -> None:
    """List the surgeries: what each has replaced, and where the run went on."""
    parse_argstring(versions, line)
    print("\n".join(map(described, engine.all())) or "no surgery was made")


def described(version: Version) -> str:
    """A version in one line."""
    names = ["its own code" if name == "<module>" else name for name in version.replaced]
    place = f"{'' if version.unit == '<module>' else f'{version.unit}, '}{name_of(version.file)}"
    went_on = one_line(f"went on in line {version.line}: {version.statement}", 80) + " (reverted)" * version.reverted
    note = f"\n     {one_line(version.note, 120)}" * bool(version.note)
    return (
        f"{version.number:>3}  {version.time[11:19]}  {place}: replaced {listed(names) or 'nothing'}; {went_on}{note}"
    )


@magic_arguments("daifu diff")
@NUMBER
def diff(runner: Runner, line: str) -> None:
    """Show what surgeries have changed, as a diff of the cells and files as they are now."""
    number = parse_argstring(diff, line).number
    shown = _asked(lambda: engine.diff(number))
    print(shown.rstrip("\n") or "the notebook and the files have that text already")
    documents = engine.documents(number) if shown else []
    asked = "" if number is None else f" {number}"
    for document in documents:
        what = f"write{asked} writes it into" if document.is_file else f"fix{asked} puts it into a new cell, for"
        print(f"daifu: %daifu {what} {document.name}")


@magic_arguments("daifu fix")
@NUMBER
@argument("--cell", metavar="K", type=int, help="Of In[K], where surgeries have changed several cells.")
def fix(runner: Runner, line: str) -> None:
    """Make a new cell: the one that crashed, with what surgeries have changed in it."""
    chosen = parse_argstring(fix, line)
    held = _asked(lambda: engine.holding(chosen.number))
    cells = {d.name: d for d in engine.documents(chosen.number) if not d.is_file}
    wanted = list(cells) if chosen.cell is None else [name for name in cells if name.endswith(f"[{chosen.cell}]")]
    if not wanted:
        raise UsageError("%daifu fix: no surgery has changed that cell" if cells else "%daifu fix: no cell was changed")
    if len(wanted) > 1:
        raise UsageError(f"%daifu fix: {listed(wanted)} were changed: say which, with --cell")
    runner.shell.set_next_input(_fixed(cells[wanted[0]], held), replace=False)
    print(f"daifu: the new cell is {wanted[0]} with what surgery has changed in it")


def _fixed(document: Document, held: set[int]) -> str:
    try:
        return document.repaired(held).rstrip("\n")
    except Conflict:
        return document.text(held).rstrip("\n")


@magic_arguments("daifu write")
@NUMBER
def write_files(runner: Runner, line: str) -> None:
    """Write what surgeries have changed into the files of modules; the former text is kept beside."""
    number = parse_argstring(write_files, line).number
    written = _asked(lambda: write(number))
    for one in written:
        print(f"{one.diff}daifu: {one.path} is written; to undo it: mv {one.backup} {one.path}")
    left = [document.name for document in engine.documents(number) if not document.is_file]
    if left:
        print(f"daifu: {listed(left)}: %daifu fix puts it into a new cell")
    elif not written:
        print("daifu: the files have that text already")


@magic_arguments("daifu revert")
@NUMBER
def revert(runner: Runner, line: str) -> None:
    """Give functions the code back that they had before a surgery, for later calls."""
    number = parse_argstring(revert, line).number
    done = _asked(lambda: engine.revert(number))
    now = f"{listed(list(done.functions))} as before it" if done.functions else "no function runs it"
    print(f"daifu: surgery {done.version.number} is reverted: {now}")
    for reason in done.left:
        print(f"daifu: left as it is: {reason}")


def _asked(call: Any) -> Any:
    try:
        return call()
    except (VersionError, NotWritten) as error:
        raise UsageError(f"%daifu: {error}") from None


class Reminder:
    """Says when a cell that is about to run holds a text that crashed; knows what was typed into the cells.

    An entry of ``shell.ast_transformers``: so it sees each cell as Python, just before it runs.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def install(self) -> None:
        """Begin."""
        self._shell.ast_transformers.insert(0, self)
        readers.append(self.typed)

    def remove(self) -> None:
        """End."""
        if self in self._shell.ast_transformers:
            self._shell.ast_transformers.remove(self)
        if self.typed in readers:
            readers.remove(self.typed)

    def visit(self, node: ast.AST) -> ast.AST:
        """Look at a cell; changes nothing."""
        if isinstance(node, ast.Module) and engine.all():
            for number, names in _crashing(node.body).items():
                what = "this cell" if names == ["<module>"] else f"{listed(names)} in this cell"
                verb = "has" if len(names) == 1 else "have"
                print(
                    f"daifu: {what} still {verb} the text that crashed, which runs now; surgery {number} had replaced "
                    f"it: %daifu diff {number} shows how, %daifu fix {number} gives a cell with it"
                )
        return node

    def typed(self, filename: str) -> str | None:
        """A cell as it was typed, with its magics."""
        if self._shell.compile.format_code_name(filename) is None:
            return None
        history, text = self._shell.history_manager, "".join(linecache.getlines(filename)).rstrip("\n")
        cells = zip(reversed(history.input_hist_parsed), reversed(history.input_hist_raw), strict=False)
        return next((f"{raw}\n" for parsed, raw in cells if parsed.rstrip("\n") == text), None)


def _crashing(statements: list[ast.stmt]) -> dict[int, list[str]]:
    """The functions that these statements define as they were when they crashed, by the surgery that replaced them."""
    held = {version.number for version in engine.all() if not version.reverted}
    found: dict[int, list[str]] = {}
    for document in engine.documents():
        for name, number in document.crashing_in(statements, held).items() if not document.is_file else ():
            found.setdefault(number, []).append(name)
    return found


__all__ = ["Reminder", "described", "diff", "fix", "revert", "versions", "write_files"]

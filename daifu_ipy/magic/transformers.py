"""From the text of a ``%%daifu`` cell to the few statements that IPython runs in its place.

Two steps, both on roads that IPython has for it, so that everything around the cell stays as it is:

1. An input transformer turns the line ``%%daifu ...`` into a statement that is only a text. The lines below keep
   their numbers; magics and ``!`` in them are translated as ever.
2. An entry in ``shell.ast_transformers`` recognises that statement, or that ``%daifu auto`` takes the cell. It keeps
   the tree of the cell, and gives IPython::

       try:
           RUNNER.start(n)()       # the vaccinated cell (with a top-level await: await RUNNER.start(n)())
       except:
           RUNNER.strip(n)         # takes this frame out of the traceback
           raise
       finally:
           RUNNER.end(n)
       RUNNER.take(n)              # the value of the cell's last expression, for IPython to show

   IPython (or ``%%time``) compiles and runs that under the name that it has for the cell.
"""

from __future__ import annotations

import ast
import functools
import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import cell_magic

from daifu_ipy.engine.compiling import FUTURE_FLAGS, quietly
from daifu_ipy.magic.automatic import AROUND, Automatic, magic_of
from daifu_ipy.magic.options import CellOptions, read_cell_options
from daifu_ipy.magic.shown import ASSIGNMENTS

if TYPE_CHECKING:
    from daifu_ipy.magic.running import Runner

Place: TypeAlias = tuple[int, int, int | None, int | None]

MAGIC = "%%daifu"
RUNNER = "__import__('daifu_ipy.magic.running', None, None, ['start'])"


def is_marked(line: str) -> bool:
    """Whether a cell's first line is ``%%daifu`` with or without options (and not ``%%daifu?``)."""
    return line.startswith(MAGIC) and not line[len(MAGIC) :].rstrip("\r\n")[:1].strip()


class InputTransformer:
    """The first step, and a memory of the texts that went through it, for a cell that IPython keeps no text of.

    Parameters
    ----------
    coming
        Called when a text arrives, which may become a cell to protect.
    """

    def __init__(self, coming: Callable[[], object]) -> None:
        self._coming = coming
        self._recent = threading.local()

    def mark(self, lines: list[str]) -> list[str]:
        """Turn the ``%%daifu`` line into a text; registered in front of IPython's own line transformers."""
        self._coming()
        if not lines or not is_marked(lines[0]) or not "".join(lines[1:]).strip():
            return lines  # an empty cell: the magic function says so
        below = lines[1:]
        if below[0].startswith("%%"):
            name = below[0][2:].split()[:1]
            if name and name[0] in AROUND:  # above them means what it means below them
                return [*cell_magic([below[0], lines[0], *below[1:]])]
            below = cell_magic(below)
        return [f"{lines[0].rstrip()!r}\n", *below]

    def keep(self, lines: list[str]) -> list[str]:
        """Remember a text as it is after all translations; changes nothing."""
        self._recent.text = "".join(lines)
        if lines and MAGIC in lines[0] and _magic_around() == "prun":  # which takes the text without the second step
            print("daifu: this cell runs plainly: %%prun runs it")
        return lines

    def text_of(self, tree: ast.Module) -> Callable[[], str]:
        """What gives the text that was parsed to `tree`, if that is the one that went through last; else nothing.

        To find out takes work, and few cells need it.
        """
        return functools.partial(_if_parsed_to, _places(tree), getattr(self._recent, "text", ""))


def _if_parsed_to(places: list[Place], text: str) -> str:
    try:
        with quietly():
            return text if _places(ast.parse(text)) == places else ""
    except SyntaxError:
        return ""


def _places(tree: ast.Module) -> list[Place]:
    return [(s.lineno, s.col_offset, s.end_lineno, s.end_col_offset) for s in tree.body]


class CellTransformer:
    """The second step; see the module's text."""

    def __init__(self, runner: Runner, texts: InputTransformer) -> None:
        self._runner, self._texts = runner, texts
        self._automatic = Automatic(runner.daifu)

    def visit(self, node: ast.AST) -> ast.AST:
        """What IPython runs instead of `node`; itself if it is no cell to protect."""
        if not isinstance(node, ast.Module):
            return node
        line = marker_of(node)
        native = node if line is None else ast.Module(node.body[1:], node.type_ignores)
        if not native.body:
            return native
        try:
            options = self._options(line, native)
            return native if options is None or options.off else self._protected(native, node, options)
        except UsageError as error:
            return _raising(str(error), node.body[0])
        except Exception as error:
            print(f"daifu: this cell runs plainly: internal error: {type(error).__name__}: {error}")
            return native

    def _options(self, line: str | None, native: ast.Module) -> CellOptions | None:
        """What holds for a cell; None: it is not protected."""
        taken = self._automatic.takes(native)
        if line is not None:
            return read_cell_options(line.removeprefix(MAGIC), self._runner.shell.user_ns)
        return CellOptions(quiet=True) if taken else None

    def _protected(self, native: ast.Module, marked: ast.Module, options: CellOptions) -> ast.Module:
        shell = self._runner.shell
        awaits = is_coroutine(native, shell)
        why_not = _unusable(native, shell, compiles=awaits is not None)
        if why_not is not None:
            if why_not and options.strict:
                raise UsageError(f"%%daifu: {why_not}")
            if why_not:
                self._runner.say_plain("this cell", why_not, options)
            return native
        text = self._texts.text_of(marked)
        futures, rest = _split_futures(native)
        if not rest.body:
            return native
        number = self._runner.number()
        assigns = shell.ast_node_interactivity == "last_expr_or_assign"
        made = _standing_for(rest, number, awaits=bool(awaits), shows_assignment=assigns)
        self._runner.expect(number, rest, options, text)
        made.body[:0] = futures
        return made


def marker_of(node: ast.AST) -> str | None:
    """The ``%%daifu`` line of a marked cell."""
    match node:
        case ast.Module(body=[ast.Expr(value=ast.Constant(value=str(line))), *_]) if is_marked(line):
            return line
        case _:
            return None


def _unusable(tree: ast.Module, shell: Any, *, compiles: bool) -> str | None:
    """Why a cell is left to IPython: a text for the user; "" if IPython's own message will say it; else None."""
    if _magic_around() == "timeit":
        return "%%timeit measures it inside a function of its own"
    name, _ = magic_of(tree)
    if name is not None:
        return f"%%{name} runs it"
    if compiles:
        return None
    for statement in tree.body:
        if is_coroutine(ast.Module([statement], []), shell) is None:
            return ""
    try:  # IPython compiles statement by statement, and so takes what the whole is no program for
        compile(tree, "<cell>", "exec", flags=_flags(shell), dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    return ""


def _magic_around() -> str | None:
    """The magic that is running this text, if it does so in a way of its own."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name not in ("run_code", "run_cell_async"):
        name = frame.f_code.co_name
        if name in ("timeit", "prun") and frame.f_globals.get("__name__") == "IPython.core.magics.execution":
            return name
        frame = frame.f_back
    return None


def _flags(shell: Any) -> int:
    allowed = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if shell.autoawait else 0
    return int(shell.compile.flags & FUTURE_FLAGS) | allowed


def is_coroutine(tree: ast.Module, shell: Any) -> bool | None:
    """Whether a cell has a top-level await; None if it does not compile. What it warns of is said when it runs."""
    try:
        with quietly():
            code = compile(tree, "<cell>", "exec", flags=_flags(shell), dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return None
    return bool(code.co_flags & inspect.CO_COROUTINE)


def _split_futures(tree: ast.Module) -> tuple[list[ast.stmt], ast.Module]:
    """A cell's ``from __future__`` statements, which IPython runs itself so that its compiler learns of them."""
    futures: list[ast.stmt] = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    return futures, ast.Module([s for s in tree.body if s not in futures], tree.type_ignores)


def _standing_for(cell: ast.Module, number: int, *, awaits: bool, shows_assignment: bool) -> ast.Module:
    """The statements that IPython runs."""
    call = f"{'await ' if awaits else ''}{RUNNER}.start({number})()"
    ending = f"except:\n {RUNNER}.strip({number})\n raise\nfinally:\n {RUNNER}.end({number})"
    made = _parsed(f"try:\n {call}\n{ending}", 1)
    last = cell.body[-1]
    if isinstance(last, ast.Expr) or (shows_assignment and isinstance(last, ASSIGNMENTS)):
        made.body += _parsed(f"{RUNNER}.take({number})", last.lineno).body
    return made


def _raising(message: str, at: ast.stmt) -> ast.Module:
    return _parsed(f"{RUNNER}.refuse({message!r})", at.lineno)


def _parsed(text: str, line: int) -> ast.Module:
    made = ast.parse(text)
    for node in ast.walk(made):
        if isinstance(node, (ast.stmt, ast.expr, ast.excepthandler)):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    return made


def move_last(transformers: list[Any], mine: object) -> None:
    """Put an AST transformer behind those of others, which are to see the cell's own tree."""
    if transformers and transformers[-1] is not mine and mine in transformers:
        transformers.remove(mine)
        transformers.append(mine)


__all__ = ["MAGIC", "CellTransformer", "InputTransformer", "is_coroutine", "is_marked", "marker_of", "move_last"]

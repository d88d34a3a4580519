"""What a line typed at the prompt is: a command, Python, or something for IPython."""

from __future__ import annotations

import ast
import builtins
import codeop
import difflib
import re
from collections.abc import Collection, Iterable

_WORD = re.compile(r"\s*([^\W\d]\w*)(.*)", re.DOTALL)
_ASSIGNS = re.compile(r"\s*(=(?!=)|(\*\*|//|>>|<<|[-+*/%@&|^])=|:(?!=)\s*[^=\s]+\s*=|,)")
_ATTACHED = ("(", "[", ".")
_SIGN = r"(\*\*|//|<<|>>|[<>=!]=|[-+*/%@<>&|^])"
_OPERATES = re.compile(rf"{_SIGN}|\s+({_SIGN}|(is|in|not\s+in|and|or|if)\b)\s")
"""What goes on with a value; `` -x`` is the argument of a command."""


def first_word(line: str) -> str:
    """The name that a line starts with, or nothing."""
    found = _WORD.match(line)
    return found[1] if found else ""


def is_python(line: str, known: Collection[str]) -> bool:
    """Whether a line that starts with a command's name is Python all the same: ``skip = 3``, ``vars(x)``, ``n + 1``.

    `known` are the names that exist in the selected frame; those of the builtins count too.
    """
    found = _WORD.match(line)
    if found is None:
        return False
    word, rest = found.groups()
    if rest.startswith(_ATTACHED):
        return word in known or hasattr(builtins, word)
    return bool(_ASSIGNS.match(rest) or (word in known and _OPERATES.match(rest)))


def is_about(code: str, known: Collection[str]) -> bool:
    """Whether code is Python about the run: what it reads exists there, or it binds something.

    ``!c = 3`` and ``!n`` (a variable) are Pdb's way to say Python; ``!ls -l`` is IPython's way to call the shell.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    if not all(isinstance(statement, ast.Expr) for statement in tree.body):
        return True
    read = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return any(name in known for name in read) and all(name in known or hasattr(builtins, name) for name in read)


def is_incomplete(code: str) -> bool:
    """Whether more lines are to come: an open bracket, or a block that no blank line has ended."""
    try:
        return bool(code.strip()) and codeop.compile_command(code, "<prompt>", "single") is None
    except (SyntaxError, ValueError, OverflowError):
        return False


def problem_of(code: str, mode: str = "exec") -> str | None:
    """Why a text is no Python; None if it is."""
    try:
        ast.parse(code, mode=mode)
    except (SyntaxError, ValueError) as error:
        return error.msg if isinstance(error, SyntaxError) else str(error)
    return None


def assigns_inside(expression: str) -> bool:
    """Whether an expression binds a name on the way (``:=``)."""
    try:
        return any(isinstance(node, ast.NamedExpr) for node in ast.walk(ast.parse(expression.strip(), mode="eval")))
    except (SyntaxError, ValueError):
        return False


def nearest(word: str, commands: Iterable[str]) -> str | None:
    """The command that was probably meant."""
    found = difflib.get_close_matches(word.lower(), list(commands), n=1, cutoff=0.7)
    return found[0] if found else None

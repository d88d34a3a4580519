"""One bounded line about any value: no tensor's data, no whole container, no error, and no long wait."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any

from daifu_ipy.repair.builtin_values import BY_TYPE, SCALARS, SELF_NAMED, Part, dataclass_text, exception_parts
from daifu_ipy.repair.deadline import ask, one_budget
from daifu_ipy.repair.library_values import library_text

_MAX_DEPTH = 3
_ITEM_LIMIT = 60
_PLAIN_TEXTS: frozenset[Any] = frozenset({BaseException.__str__, KeyError.__str__})
_OTHER_TEXTS: frozenset[Any] = frozenset(
    kind.__str__
    for kind in (OSError, ImportError, SyntaxError, UnicodeDecodeError, UnicodeEncodeError, BaseExceptionGroup)
)


def summarise(value: object, limit: int = 120) -> str:
    """Describe a value in one printable line.

    Built-in types are shown by their first items; arrays and tensors (of torch, numpy, jax, ...) by shape,
    dtype and device, without reading their data or waiting for a device; tables by shape and columns; models,
    optimizers and loaders by what they are; dataclasses by their fields; anything else by its own ``repr``, cut off.

    Parameters
    ----------
    value
        Any object.
    limit
        The most characters of the result.

    Returns
    -------
    str
        At most `limit` characters, all printable, in one line.

    Notes
    -----
    An object's own ``repr`` is code of its author. It runs on another thread and has 0.2 seconds (all values of a
    stack together: 1 second), and meanwhile tensors are shown by their shapes there too. What becomes of it is shown:
    ``<repr failed: TypeError>``, ``<repr took too long>``.
    """
    with one_budget():
        return one_line(_guarded(lambda: _summary(value, limit, 0)), limit)


def error_text(error: BaseException | None, limit: int = 300) -> str:
    """Type and message of an exception in one bounded line, as at the end of a traceback."""
    if error is None:
        return "no exception"
    kind, message = type_name(type(error)), error_message(error, limit)
    return one_line(f"{kind}: {message}" if message else kind, limit)


def error_message(error: BaseException, limit: int = 300) -> str:
    """An exception's message in one bounded line."""
    return one_line(raw_message(error, limit), limit)


def raw_message(error: BaseException, limit: int) -> str:
    """An exception's message, lines and all; what it was given that is no text, such as a tensor, is summarised."""
    kind = type(error)
    if kind.__str__ in _PLAIN_TEXTS:
        return _guarded(lambda: exception_parts(error, lambda part: _summary(part, limit, 0)), "message")
    if kind.__str__ in _OTHER_TEXTS:
        return _guarded(lambda: str(error), "message")
    return ask(kind, lambda: str(error), "message")


def type_name(kind: type) -> str:
    """The qualified name of a class, with its module unless that is ``builtins`` or ``__main__``."""
    module, name = str(kind.__module__), kind.__qualname__
    return name if module in ("builtins", "__main__") else f"{module}.{name}"


def one_line(text: str, limit: int) -> str:
    """The text in one line of printable characters; a long one ends in ``...``."""
    if len(text) <= limit and text.isprintable():  # as nearly all are
        return text.strip()
    head = text[: 4 * limit + 4]
    line = printable(re.sub(r"\s*[\n\r]\s*", " ", head).replace("\t", " ").strip())
    return line if len(line) <= limit and len(head) == len(text) else f"{line[: max(limit - 3, 0)]}..."


def printable(line: str) -> str:
    """The line without what steers a terminal or turns the direction of writing."""
    return line if line.isprintable() else "".join(c if c.isprintable() else "?" for c in line)


def _guarded(describe: Callable[[], str], what: str = "repr") -> str:
    try:
        return describe()
    except BaseException as error:  # code of the object's author; Ctrl-C
        return f"<{what} failed: {type(error).__name__}>"


def _summary(value: object, limit: int, depth: int) -> str:
    kind: Any = type(value)

    def part(inner: object, room: int = _ITEM_LIMIT) -> str:
        return one_line(_guarded(lambda: _summary(inner, room, depth + 1)), room)

    for base in kind.__mro__:
        if base in SCALARS and kind.__repr__ is not base.__repr__:
            break  # an enum, a numpy scalar: small, and its own repr says more
        describe = BY_TYPE.get(base)
        if describe is not None:
            text = describe(value, limit, part if depth < _MAX_DEPTH else None)
            return text if kind is base or base in SELF_NAMED else f"{kind.__name__}({text})"
    inside = part if depth < _MAX_DEPTH else None
    found = library_text(value, part) or dataclass_text(value, inside) or _by_name(value, inside)
    return ask(kind, lambda: repr(value)) if found is None else found


def _by_name(value: object, part: Part | None) -> str | None:
    """An object without a repr of its own, and argparse's namespace: no need to import that."""
    kind: Any = type(value)
    if (kind.__module__, kind.__name__) == ("argparse", "Namespace"):
        return BY_TYPE[types.SimpleNamespace](value, 0, part)
    return f"<{kind.__qualname__} object>" if kind.__repr__ is object.__repr__ else None

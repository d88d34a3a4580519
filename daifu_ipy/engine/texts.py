"""Source texts: their lines as the compiler counts them, and their names in `linecache`."""

from __future__ import annotations

import io
import linecache


def lines_of(text: str) -> list[str]:
    """The lines, each ending in a line feed but perhaps the last; `str.splitlines` knows more ends of lines."""
    return io.StringIO(text, newline=None).readlines()


def bare_lines(text: str) -> list[str]:
    """The same without the line feeds."""
    return [line.removesuffix("\n") for line in lines_of(text)]


def text_of(filename: str) -> str:
    """The text under a name; "" if there is none."""
    return "".join(linecache.getlines(filename))


def keep(filename: str, text: str) -> None:
    """Keep a text where tracebacks, `inspect` and pdb look for it."""
    linecache.cache[filename] = (len(text), None, lines_of(text), filename)

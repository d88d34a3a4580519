"""Finds the text of code that its module was given when it was loaded again."""

from __future__ import annotations

import ast
import linecache
import sys
from types import CodeType, FunctionType

from daifu_ipy.engine.texts import text_of
from daifu_ipy.engine.unit import CannotVaccinate, start_of
from daifu_ipy.engine.vaccinate import NO_FILE, FoundFunction, all_functions, find_function, native, parse, says_same

STAND_IN = "__autoreload_class__"
"""The class in which IPython's ``%autoreload`` compiles a method that has changed."""


def find_again(function: FunctionType, reason: CannotVaccinate) -> tuple[FoundFunction, CodeType]:
    """The definition of a function in its file as that is now, and native code with the positions that it has there.

    ``%autoreload`` compiles a changed function apart from its file: its lines begin at 1, and only its name and its
    instructions tell where its text is.

    Raises
    ------
    CannotVaccinate
        `reason`, if what runs is not in the file.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    try:
        return find_function(code), code
    except CannotVaccinate:
        filenames = _files_of(function)
    for filename in filenames:
        found = [one for one in _definitions(function, filename) if _runs(one, code)]
        plain = _in_place(found[0], code, filename) if len(found) == 1 else None
        if plain is not None and plain.co_freevars == code.co_freevars:
            return found[0], plain
    raise reason


def _files_of(function: FunctionType) -> list[str]:
    """Where its text may be: in the file of its module, whatever the code says, or where the code says."""
    module = sys.modules.get(function.__module__)
    filename = vars(module).get("__file__") if module is not None else None
    return list(dict.fromkeys([*([filename] if isinstance(filename, str) else []), function.__code__.co_filename]))


def _definitions(function: FunctionType, filename: str) -> list[FoundFunction]:
    """The definitions of its name; of one that was compiled outside its class, in any class."""
    code, qualname = function.__code__, function.__qualname__
    linecache.checkcache(filename)
    source = text_of(filename)
    try:
        every = list(all_functions(parse(source, filename).body))
    except SyntaxError:
        return []
    apart = code.co_filename == NO_FILE and "." not in qualname
    named = [one for one in every if one.node.name == code.co_name and (apart or one.qualname == qualname)]
    return [
        FoundFunction(one.node, source, one.class_name, one.qualname, ordinal, len(named))
        for ordinal, one in enumerate(named)
        if isinstance(one.node, ast.AsyncFunctionDef) == bool(code.co_flags & 0x280)
    ]


def _runs(found: FoundFunction, code: CodeType) -> bool:
    """Whether a definition, compiled where it stands or where ``%autoreload`` does, is what runs."""
    classes = [None] if found.class_name is None else [found.class_name, STAND_IN, None]
    return any(says_same(native(found.node, code, name, code.co_filename, code.co_flags), code) for name in classes)


def _in_place(found: FoundFunction, code: CodeType, filename: str) -> CodeType:
    like = code.replace(co_qualname=found.qualname, co_firstlineno=start_of(found.node)[0])
    return native(found.node, like, found.class_name, filename, code.co_flags)

"""The user's functions by name, for the editor: those of the crashed stack, and those of the modules around it."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping
from functools import cached_property, partial, partialmethod
from itertools import islice
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from daifu_ipy.engine.native import native_code
from daifu_ipy.engine.scopes import HIDDEN
from daifu_ipy.frontends.levels import OURS, Levels
from daifu_ipy.repair.builtin_values import class_vars, vars_of
from daifu_ipy.repair.frame_record import FrameRecord, is_library
from daifu_ipy.repair.places import label

_MOST = 2_000
_WRAPPED = 5


def functions(levels: Levels) -> dict[str, CodeType]:
    """The code of each function by its qualified name; of two of one name, the later one says where it is, too."""
    found: dict[str, CodeType] = {}
    seen: set[int] = set()
    for code in islice(_codes(levels), _MOST):
        plain = native_code(code)
        if id(plain) not in seen and _is_users(plain):
            seen.add(id(plain))
            found[_free(plain, found)] = code
    return found


def _free(plain: CodeType, taken: Mapping[str, CodeType]) -> str:
    name = plain.co_qualname
    if name in taken:
        file = label(plain.co_filename) or FrameRecord(plain.co_filename, 0, name).short_filename
        name = f"{name} ({file})" if f"{name} ({file})" not in taken else f"{name} ({file}:{plain.co_firstlineno})"
    return name


def _is_users(plain: CodeType) -> bool:
    """Whether a function is the program's, and has a text: one that was generated, as of a dataclass, has none."""
    name, file = plain.co_name, plain.co_filename
    is_other = name.startswith(("<", HIDDEN)) or is_library(file) or file.startswith(OURS)
    return not is_other and bool(linecache.getlines(file))


def _codes(levels: Levels) -> Iterator[CodeType]:
    """The innermost frame's first, then those of the modules of the program's frames, in the order of their text."""
    for level in reversed(levels.all):
        yield level.frame.f_code
    own = [level.frame for level in reversed(levels.all) if not is_library(level.frame.f_code.co_filename)]
    for space in {id(frame.f_globals): frame.f_globals for frame in own}.values():
        yield from _in_namespace(space, modules=True)


def _in_namespace(space: Mapping[str, Any], *, modules: bool) -> Iterator[CodeType]:
    for value in list(space.values()):
        if issubclass(type(value), ModuleType):
            yield from _in_module(value) if modules else ()
        else:
            yield from codes_of(value)


def _in_module(module: ModuleType) -> Iterator[CodeType]:
    """The functions of a module of the program's own, that it imports."""
    state = vars_of(module)
    file = state.get("__file__")
    if type(file) is str and not is_library(file):
        yield from _in_namespace(state, modules=False)


def codes_of(value: Any, wraps: int = _WRAPPED) -> Iterator[CodeType]:
    """The code of the functions that a value stands for, read from where it lies: wrappers, methods, a class."""
    kind = type(value)
    if kind is FunctionType:
        inner = vars_of(value).get("__wrapped__")
        yield from codes_of(inner, wraps - 1) if inner is not None and wraps else (value.__code__,)
    elif issubclass(kind, type):
        for member in list(class_vars(value).values()):
            yield from codes_of(member, wraps) if not issubclass(type(member), type) else ()
    elif kind in (staticmethod, classmethod, MethodType):
        yield from codes_of(value.__func__, wraps)
    elif kind is property:
        for accessor in (value.fget, value.fset, value.fdel):
            yield from codes_of(accessor, wraps)
    elif kind in (partial, cached_property, partialmethod):
        yield from codes_of(value.func, wraps)
    elif wraps and "__wrapped__" in vars_of(value):  # as of a cached function
        yield from codes_of(vars_of(value)["__wrapped__"], wraps - 1)

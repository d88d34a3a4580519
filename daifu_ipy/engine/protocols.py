"""Exceptions that the C code between a frame and its caller takes as an answer, and those that a consumer throws in."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType
from typing import Any, Final

from daifu_ipy.engine.bytecode import (
    CALLS,
    IS_GENERATOR,
    PYTHON,
    UNKNOWN,
    Scope,
    class_attribute,
    code_of,
    last_name,
)
from daifu_ipy.engine.native import caller, native_code

PROTOCOL_TYPES: Final = (StopIteration, StopAsyncIteration, AttributeError, IndexError, TypeError)
_ITERATING: Final = {"FOR_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND", "SET_UPDATE", "CONTAINS_OP", "SEND"}
_ITERATORS: Final = [list, tuple, set, frozenset, dict, bytes, bytearray, sum, any, all, min, max, sorted]
_ATTRIBUTE_HOOKS: Final = {"__getattr__", "__getattribute__", "__get__"}


def _driver(frame: FrameType) -> str:
    """What the caller does to run `frame`: "iterates", "asks" for or "gets" an attribute, "calls", or "?"."""
    outer, name = caller(frame), frame.f_code.co_name
    if outer is None:
        return "calls"
    code = code_of(outer.f_code)
    at = code.index(outer.f_lasti)
    op = code.ops[at].name
    if op in CALLS:
        tree = code.tree(at)
        return _callee_driver(Scope(outer).value(tree[1]), tree, name) if tree else "?"
    if op in _ITERATING and name not in {"__iter__", "__contains__"}:
        return "iterates"
    return {"MATCH_CLASS": "asks", "LOAD_ATTR": "gets", "LOAD_METHOD": "gets"}.get(op, "calls")


def _callee_driver(callee: Any, tree: tuple[Any, ...], name: str) -> str:
    """The same where the caller executes the call `tree`: of the frame's function, or of C code that does."""
    count = len(tree[2]) if tree[2] is not None else -1  # -1: keywords, which may be `key` or `default`
    if callee is hasattr or callee is getattr:
        return "asks" if callee is hasattr or count == 3 else "gets" if count == 2 else "?"
    if (callee is next and count == 2) or (count >= 0 and any(callee is known for known in _ITERATORS)):
        return "iterates"
    if callee is next or type(callee) in {FunctionType, types.MethodType}:
        return "calls"
    if callee is UNKNOWN:
        return "calls" if last_name(tree[1]) == name else "?"
    cls = callee if issubclass(type(callee), type) else type(callee)
    hooks = ("__init__", "__new__") if cls is callee else ("__call__",)
    return "calls" if any(type(class_attribute(cls, hook)) is FunctionType for hook in hooks) else "?"


def swallowed_by_caller(cls: type[BaseException], frame: FrameType) -> bool | None:
    """Whether what the caller executes swallows a protocol exception that leaves `frame`."""
    name = frame.f_code.co_name
    if issubclass(cls, TypeError):
        return name == "__length_hint__"
    if issubclass(cls, StopAsyncIteration) or (issubclass(cls, IndexError) and name != "__getitem__"):
        return False
    driver = _driver(frame)
    if not issubclass(cls, AttributeError):
        return {"iterates": True, "?": None}.get(driver, False)
    if driver in {"asks", "calls"}:
        return driver == "asks"
    is_hook = name in _ATTRIBUTE_HOOKS or _is_getter(frame)
    # a getter's AttributeError makes Python ask `__getattr__`, where the class has one
    falls_back = name != "__getattr__" and class_attribute(type(_argument(frame, 0)), "__getattr__") is not UNKNOWN
    return None if is_hook and (driver == "?" or falls_back) else False


def _is_getter(frame: FrameType) -> bool:
    """Whether `frame` runs the getter of a property of its first argument's class."""
    this = frame.f_code
    for base in type(_argument(frame, 0)).__mro__:
        for found in vars(base).values():
            getter = found.fget if type(found) is property else None
            getter = found.func if type(found) is functools.cached_property else getter
            # by name, since the frame may run a resumed version of the getter
            if type(getter) is FunctionType and getter.__code__.co_qualname == this.co_qualname:
                return getter.__code__.co_filename == this.co_filename
    return False


def _argument(frame: FrameType, position: int) -> Any:
    code = native_code(frame.f_code)
    return Scope(frame).local(code.co_varnames[position]) if position < code.co_argcount else UNKNOWN


def _is_beyond_end(frame: FrameType) -> bool:
    """Whether `frame` runs `__getitem__` with an index that is not below `len(self)`."""
    owner, index = _argument(frame, 0), _argument(frame, 1)
    try:
        return bool(index >= len(owner))
    except Exception:
        return class_attribute(type(owner), "__len__") is UNKNOWN


def protocol_exception(exc: BaseException, frame: FrameType) -> str | None:
    """Tell why an exception that leaves `frame` is an answer to a protocol and not a crash.

    Parameters
    ----------
    exc
        The exception.
    frame
        The frame of the function that it leaves.

    Returns
    -------
    str or None
        Why, for humans; None for an exception that is no such answer.
    """
    name = frame.f_code.co_name
    if name == "__del__":
        return "what __del__ raises is ignored"
    rules: tuple[tuple[type[BaseException], Callable[[], bool]], ...] = (
        (StopIteration, lambda: name == "__next__" or _driver(frame) == "iterates"),
        (StopAsyncIteration, lambda: name == "__anext__"),
        (AttributeError, lambda: name in _ATTRIBUTE_HOOKS or _is_getter(frame)),
        (KeyError, lambda: name in {"__getitem__", "__missing__"} and issubclass(type(_argument(frame, 0)), Mapping)),
        (IndexError, lambda: name == "__getitem__" and _driver(frame) in {"iterates", "?"} and _is_beyond_end(frame)),
        (TypeError, lambda: name == "__length_hint__"),
    )
    if any(isinstance(exc, cls) and holds() for cls, holds in rules):
        return f"{type(exc).__name__} out of {name} is an answer to its caller"
    return None


def thrown_in(exc: BaseException) -> bool:
    """Tell whether the consumer of a generator or coroutine threw the exception in, at a `yield` or `await`.

    Such an exception, `GeneratorExit` and the cancellation of a task are the consumer's business: no crash.
    """
    if isinstance(exc, GeneratorExit) or exc.__traceback__ is None:
        return isinstance(exc, GeneratorExit)
    trace = exc.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    if not trace.tb_frame.f_code.co_flags & IS_GENERATOR:
        return False
    code = code_of(trace.tb_frame.f_code)
    at = code.index(trace.tb_lasti)
    name = code.ops[at].name
    if PYTHON < (3, 13):
        # the jump: thrown into C code that is awaited, on 3.11
        return name in {"YIELD_VALUE", "RETURN_GENERATOR", "JUMP_BACKWARD_NO_INTERRUPT"}
    if name == "RESUME":
        return not isinstance(exc, KeyboardInterrupt)  # signals are served there too
    return name == "POP_TOP" and code.ops[at - 1].name == "RETURN_GENERATOR"

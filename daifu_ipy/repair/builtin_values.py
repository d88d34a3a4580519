"""Values of built-in types and dataclasses in a few words: their first items, read by the built-in methods only."""

from __future__ import annotations

import array
import dataclasses
import functools
import reprlib
import types
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import getattr_static
from itertools import islice
from typing import Any, TypeAlias

_MAX_ITEMS = 6
_MAX_BITS = 512
_STORED = (types.GetSetDescriptorType, types.MemberDescriptorType)

_GENERATED = frozenset({dataclasses.__file__, reprlib.__file__})  # where the wrapper of a dataclass's repr is made

Part: TypeAlias = Callable[[Any], str]
"""Describes an item or field."""

Describe: TypeAlias = Callable[[Any, int, Part | None], str]
"""Gets a value, the most characters wanted (the text may be longer, and is cut later), and what describes its parts:
None below the greatest depth, where no parts are shown."""


def listed(parts: Iterable[str], count: int) -> str:
    """The parts, and how many more there are of `count`."""
    shown = list(parts)
    more = [f"... {count - len(shown)} more"] if count > len(shown) else []
    return ", ".join([*shown, *more])


def _first(items: Iterable[Any], part: Part | None) -> Iterator[str]:
    return iter(()) if part is None else map(part, islice(items, _MAX_ITEMS))


def _string(value: str | bytes | bytearray, limit: int, part: Part | None) -> str:
    base: Any = next(base for base in (str, bytes, bytearray) if issubclass(type(value), base))
    count, room = base.__len__(value), max(limit - 30, 10)
    if count <= limit:
        return str(base.__repr__(value))
    unit = "characters" if base is str else "bytes"
    return f"{base.__repr__(base.__getitem__(value, slice(room)))}... ({count} {unit})"


def _integer(value: int, limit: int, part: Part | None) -> str:
    bits = int.bit_length(value)
    return int.__repr__(value) if bits <= _MAX_BITS else f"<int of {bits} bits>"


def _plain(value: object, limit: int, part: Part | None) -> str:
    return repr(value)


def _sequence(base: Any, opening: str, closing: str) -> Describe:
    def describe(value: Any, limit: int, part: Part | None) -> str:
        inside = listed(_first(base.__iter__(value), part), base.__len__(value))
        return f"{opening}{inside}{closing}"

    return describe


def _tuple(value: tuple[Any, ...], limit: int, part: Part | None) -> str:
    count = tuple.__len__(value)
    parts = list(_first(tuple.__iter__(value), part))
    names = getattr(type(value), "_fields", None)
    if isinstance(names, tuple) and len(names) == count:
        parts = [f"{name}={text}" for name, text in zip(names, parts, strict=False)]
        return f"{type(value).__name__}({listed(parts, count)})"
    comma = "," if count == 1 and parts else ""
    prefix = "" if type(value) is tuple else type(value).__name__
    return f"{prefix}({listed(parts, count)}{comma})"


def _set(value: set[Any], limit: int, part: Part | None) -> str:
    inside = listed(_first(set.__iter__(value), part), set.__len__(value))
    return f"{{{inside}}}" if inside else "set()"


def _frozenset(value: frozenset[Any], limit: int, part: Part | None) -> str:
    inside = listed(_first(frozenset.__iter__(value), part), frozenset.__len__(value))
    return f"{type(value).__name__}({f'{{{inside}}}' if inside else ''})"


def _dict(value: dict[Any, Any], limit: int, part: Part | None) -> str:
    shown = [] if part is None else [f"{part(k)}: {part(v)}" for k, v in islice(dict.items(value), _MAX_ITEMS)]
    return f"{{{listed(shown, dict.__len__(value))}}}"


def _view(value: Any, limit: int, part: Part | None) -> str:
    return f"{type(value).__name__}([{listed(_first(iter(value), part), len(value))}])"


def _data(value: object, limit: int, part: Part | None) -> str:
    kept = vars_of(value).get("data", ())
    return f"{type(value).__name__}({listed(_first([kept], part), 1)})"


def _maps(value: object, limit: int, part: Part | None) -> str:
    kept = vars_of(value).get("maps", ())
    return f"ChainMap({listed(_first(kept, part), len(kept))})"


def _numbers(value: array.array[Any], limit: int, part: Part | None) -> str:
    inside = listed(_first(value, part), len(value))
    return f"array({value.typecode!r}, [{inside}])"


def _fields(name: str, fields: Iterable[tuple[str, Any]], count: int, part: Part | None) -> str:
    shown = [] if part is None else [f"{field}={part(value)}" for field, value in islice(fields, _MAX_ITEMS)]
    return f"{name}({listed(shown, count)})"


def _namespace(value: object, limit: int, part: Part | None) -> str:
    state = vars_of(value)
    return _fields(type(value).__name__, state.items(), len(state), part)


def _class(value: type, limit: int, part: Part | None) -> str:
    module, name = value.__module__, value.__qualname__
    return f"<class {name}>" if module in ("builtins", "__main__") else f"<class {module}.{name}>"


def _function(value: types.FunctionType, limit: int, part: Part | None) -> str:
    return f"<function {value.__qualname__}>"


def _method(value: types.MethodType, limit: int, part: Part | None) -> str:
    name = getattr(value.__func__, "__qualname__", "?")
    return f"<bound method {name} of {type(value.__self__).__name__}>"


def _partial(value: functools.partial[Any], limit: int, part: Part | None) -> str:
    arguments = list(_first(value.args, part))
    named = [
        f"{name}={text}" for name, text in zip(value.keywords, _first(value.keywords.values(), part), strict=False)
    ]
    inside = listed([*arguments, *named], len(value.args) + len(value.keywords))
    function = part(value.func) if part is not None else "..."
    return f"partial({function}{', ' * bool(inside)}{inside})"


def _exception(value: BaseException, limit: int, part: Part | None) -> str:
    args = arguments_of(value)
    return f"{type(value).__name__}({listed(_first(args, part), len(args))})"


def _module(value: types.ModuleType, limit: int, part: Part | None) -> str:
    return f"<module {vars_of(value).get('__name__', '?')}>"


def mro_of(kind: type) -> tuple[type, ...]:
    """A class and those that it derives from, whatever its metaclass makes of that."""
    bases: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return bases


def class_vars(kind: type) -> Mapping[str, Any]:
    """A class's own attributes, as they lie there."""
    members: Mapping[str, Any] = type.__dict__["__dict__"].__get__(kind)
    return members


def vars_of(value: object) -> dict[str, Any]:
    """An instance's own attributes, whatever its class makes of that; without a plain dict, none."""
    for base in mro_of(type(value)):
        found = class_vars(base).get("__dict__")
        if found is not None:  # a property of that name is code of the class's author
            state = found.__get__(value) if type(found) in _STORED else None
            return state if type(state) is dict else {}
    return {}


def arguments_of(error: BaseException) -> tuple[Any, ...]:
    """What an exception was made with, whatever its class makes of that."""
    made_with: tuple[Any, ...] = BaseException.args.__get__(error)  # type: ignore[attr-defined]
    return made_with


def exception_parts(error: BaseException, describe: Part) -> str:
    """The message that `BaseException` itself makes of an exception's arguments, these described by `describe`."""
    args = arguments_of(error)
    if len(args) == 1 and isinstance(args[0], str) and type(error).__str__ is not KeyError.__str__:
        return str.__str__(args[0])
    return describe(args[0]) if len(args) == 1 else describe(args) if args else ""


def dataclass_text(value: Any, part: Part | None) -> str | None:
    """A dataclass with the repr that was made for it, field by field: a long field is not read whole."""
    kind = type(value)
    code = getattr(kind.__repr__, "__code__", None)
    if not dataclasses.is_dataclass(kind) or code is None or code.co_filename not in _GENERATED:
        return None
    names = [field.name for field in dataclasses.fields(kind) if field.repr]
    return _fields(kind.__name__, ((name, _stored(value, name)) for name in names), len(names), part)


def _stored(value: object, name: str) -> Any:
    """A field's value, from the instance's dict, its slot, or the default in its class."""
    found = getattr_static(value, name, None)
    return found.__get__(value) if type(found) is types.MemberDescriptorType else found


SCALARS: frozenset[type] = frozenset({str, bytes, bytearray, int, float, complex, BaseException})
"""Types that are shown by their own repr, if they have one."""

SELF_NAMED: frozenset[type] = frozenset(
    {tuple, frozenset, UserDict, UserList, types.SimpleNamespace, functools.partial, BaseException}
    | {type, types.FunctionType, types.ModuleType}
)
"""Types whose description holds the name of the value's own class."""

BY_TYPE: dict[type, Describe] = {
    str: _string,
    bytes: _string,
    bytearray: _string,
    bool: _plain,
    int: _integer,
    float: _plain,
    complex: _plain,
    type(None): _plain,
    list: _sequence(list, "[", "]"),
    deque: _sequence(deque, "deque([", "])"),
    tuple: _tuple,
    set: _set,
    frozenset: _frozenset,
    dict: _dict,
    type({}.keys()): _view,
    type({}.values()): _view,
    type({}.items()): _view,
    range: _plain,
    array.array: _numbers,
    ChainMap: _maps,
    UserDict: _data,
    UserList: _data,
    types.SimpleNamespace: _namespace,
    type: _class,
    types.FunctionType: _function,
    types.BuiltinFunctionType: _plain,
    types.MethodType: _method,
    types.ModuleType: _module,
    functools.partial: _partial,
    BaseException: _exception,
}
"""How values of these types, and of classes that derive from them, are described."""

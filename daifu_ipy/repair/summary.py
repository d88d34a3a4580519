"""One bounded line about any value: never a tensor's data, never a whole container, never an error."""

from __future__ import annotations

import dataclasses
import functools
import re
import reprlib
import types
from collections import UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

_MAX_ITEMS = 6
_MAX_DEPTH = 3
_MAX_BITS = 512
_ITEM_LIMIT = 60

_LIBRARIES = frozenset({"torch", "numpy", "cupy", "jax", "jaxlib", "tensorflow", "pandas", "polars", "pyarrow"})
_ARRAYS = frozenset({"Tensor", "EagerTensor", "Variable", "ndarray", "Array", "ArrayImpl", "FakeTensor"})
_TABLES = frozenset({"DataFrame", "Series", "Index", "LazyFrame", "Table"})
_GENERATED = frozenset({dataclasses.__file__, reprlib.__file__})  # where the wrapper of a dataclass's repr is made

Describe: TypeAlias = Callable[[Any, int, int], str]
"""Gets a value, the most characters wanted and how deep it lies; the text may be longer and is cut later."""


def summarise(value: object, limit: int = 120) -> str:
    """Describe a value in one printable line.

    Built-in types are shown by their first items; arrays and tensors (of torch, numpy, jax, ...) by shape,
    dtype and device, without reading their data or waiting for a device; tables by shape; dataclasses by
    their fields; anything else by its own ``repr``, cut off.

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
    An object's own ``repr`` is code of its author: an error in it is shown as ``<repr failed: TypeError>``,
    but one that never ends can't be ended from here. Ctrl-C ends it, and is shown in the same way.
    """
    return one_line(_guarded(lambda: _summary(value, limit, 0)), limit)


def error_text(error: BaseException | None, limit: int = 300) -> str:
    """Type and message of an exception in one bounded line, as at the end of a traceback."""
    if error is None:
        return "no exception"
    kind, message = type_name(type(error)), error_message(error, limit)
    return one_line(f"{kind}: {message}" if message else kind, limit)


def error_message(error: BaseException, limit: int = 300) -> str:
    """An exception's message in one bounded line."""
    return one_line(_guarded(lambda: str.__str__(str(error)), "message"), limit)


def type_name(kind: type) -> str:
    """The qualified name of a class, with its module unless that is ``builtins`` or ``__main__``."""
    module, name = str(kind.__module__), kind.__qualname__
    return name if module in ("builtins", "__main__") else f"{module}.{name}"


def one_line(text: str, limit: int) -> str:
    """The text in one line of printable characters; a long one ends in ``...``."""
    head = text[: 4 * limit + 4]
    line = re.sub(r"\s*[\n\r]\s*", " ", head).replace("\t", " ").strip()
    if not line.isprintable():
        line = "".join(character if character.isprintable() else "?" for character in line)
    return line if len(line) <= limit and len(head) == len(text) else f"{line[: max(limit - 3, 0)]}..."


def _guarded(describe: Callable[[], str], what: str = "repr") -> str:
    try:
        return describe()
    except BaseException as error:  # code of the object's author; Ctrl-C is the way out of one that hangs
        return f"<{what} failed: {type(error).__name__}>"


def _summary(value: object, limit: int, depth: int) -> str:
    kind: Any = type(value)
    for base in kind.__mro__:
        if base in _SCALARS and kind.__repr__ is not base.__repr__:
            break  # an enum, a numpy scalar: small, and its own repr says more
        describe = _BY_TYPE.get(base)
        if describe is not None:
            text = describe(value, limit, depth)
            return text if kind is base or base in _SELF_NAMED else f"{kind.__name__}({text})"
    found = _library_object(value, depth) or _dataclass(value, depth)
    return str.__str__(repr(value)) if found is None else found


def _item(value: object, depth: int, limit: int = _ITEM_LIMIT) -> str:
    return one_line(_guarded(lambda: _summary(value, limit, depth + 1)), limit)


def _listed(parts: Iterable[str], count: int) -> str:
    shown = list(parts)
    more = [f"... {count - len(shown)} more"] if count > len(shown) else []
    return ", ".join([*shown, *more])


def _first(items: Iterator[Any], depth: int) -> Iterator[str]:
    """The first items; below the greatest depth, none."""
    return (_item(item, depth) for item in islice(items, _MAX_ITEMS if depth < _MAX_DEPTH else 0))


def _string(value: str | bytes | bytearray, limit: int, depth: int) -> str:
    base: Any = next(base for base in (str, bytes, bytearray) if issubclass(type(value), base))
    count, room = base.__len__(value), max(limit - 30, 10)
    if count <= limit:
        return str(base.__repr__(value))
    unit = "characters" if base is str else "bytes"
    return f"{base.__repr__(base.__getitem__(value, slice(room)))}... ({count} {unit})"


def _integer(value: int, limit: int, depth: int) -> str:
    bits = int.bit_length(value)
    return int.__repr__(value) if bits <= _MAX_BITS else f"<int of {bits} bits>"


def _plain(value: object, limit: int, depth: int) -> str:
    return repr(value)


def _sequence(base: Any, opening: str, closing: str) -> Describe:
    def describe(value: Any, limit: int, depth: int) -> str:
        listed = _listed(_first(base.__iter__(value), depth), base.__len__(value))
        return f"{opening}{listed}{closing}"

    return describe


def _tuple(value: tuple[Any, ...], limit: int, depth: int) -> str:
    count = tuple.__len__(value)
    parts = list(_first(tuple.__iter__(value), depth))
    names = getattr(type(value), "_fields", None)
    if isinstance(names, tuple) and len(names) == count:
        parts = [f"{name}={part}" for name, part in zip(names, parts, strict=False)]
        return f"{type(value).__name__}({_listed(parts, count)})"
    comma = "," if count == 1 and parts else ""
    prefix = "" if type(value) is tuple else type(value).__name__
    return f"{prefix}({_listed(parts, count)}{comma})"


def _set(value: set[Any], limit: int, depth: int) -> str:
    inside = _listed(_first(set.__iter__(value), depth), set.__len__(value))
    return f"{{{inside}}}" if inside else "set()"


def _frozenset(value: frozenset[Any], limit: int, depth: int) -> str:
    inside = _listed(_first(frozenset.__iter__(value), depth), frozenset.__len__(value))
    return f"{type(value).__name__}({f'{{{inside}}}' if inside else ''})"


def _dict(value: dict[Any, Any], limit: int, depth: int) -> str:
    items = islice(dict.items(value), _MAX_ITEMS if depth < _MAX_DEPTH else 0)
    parts = (f"{_item(key, depth)}: {_item(item, depth)}" for key, item in items)
    return f"{{{_listed(parts, dict.__len__(value))}}}"


def _view(value: Any, limit: int, depth: int) -> str:
    return f"{type(value).__name__}([{_listed(_first(iter(value), depth), len(value))}])"


def _data(value: UserDict[Any, Any] | UserList[Any], limit: int, depth: int) -> str:
    return f"{type(value).__name__}({_item(value.data, depth, limit)})"


def _fields(name: str, fields: Iterable[tuple[str, Any]], count: int, depth: int) -> str:
    shown = islice(fields, _MAX_ITEMS if depth < _MAX_DEPTH else 0)
    return f"{name}({_listed((f'{field}={_item(value, depth)}' for field, value in shown), count)})"


def _namespace(value: Any, limit: int, depth: int) -> str:
    state = vars(value)
    return _fields(type(value).__name__, state.items(), len(state), depth)


def _class(value: type, limit: int, depth: int) -> str:
    return f"<class {type_name(value)}>"


def _function(value: types.FunctionType, limit: int, depth: int) -> str:
    return f"<function {value.__qualname__}>"


def _method(value: types.MethodType, limit: int, depth: int) -> str:
    name = getattr(value.__func__, "__qualname__", "?")
    return f"<bound method {name} of {type(value.__self__).__name__}>"


def _partial(value: functools.partial[Any], limit: int, depth: int) -> str:
    arguments = [_item(argument, depth) for argument in islice(value.args, _MAX_ITEMS)]
    named = [f"{name}={_item(item, depth)}" for name, item in islice(value.keywords.items(), _MAX_ITEMS)]
    listed = _listed([*arguments, *named], len(value.args) + len(value.keywords))
    return f"partial({_item(value.func, depth)}{', ' * bool(listed)}{listed})"


def _exception(value: BaseException, limit: int, depth: int) -> str:
    return f"{type(value).__name__}({_listed(_first(iter(value.args), depth), len(value.args))})"


def _module(value: types.ModuleType, limit: int, depth: int) -> str:
    return f"<module {value.__name__}>"


def _library_object(value: object, depth: int) -> str | None:
    """Arrays, tables and models, known by the name and library of a class, so that none is imported."""
    kind = type(value)
    for base in kind.__mro__:
        if (base.__module__, base.__name__) == ("argparse", "Namespace"):
            return _namespace(value, _ITEM_LIMIT, depth)
        if str(base.__module__).partition(".")[0] not in _LIBRARIES:
            continue
        if base.__name__ in _ARRAYS:
            return _array(value)
        if base.__name__ in _TABLES:
            return f"{kind.__name__}(shape={_shape(value)})"
        if base.__name__ == "Module":
            return f"<{kind.__name__} module, {'training' if getattr(value, 'training', False) else 'eval'}>"
    return None


def _array(value: Any) -> str:
    parts = [f"shape={_shape(value)}", str(getattr(value, "dtype", "?")).removeprefix("torch.")]
    device = str(getattr(value, "device", "cpu"))
    parts += [device] * (device != "cpu")
    parts += ["requires_grad"] * (getattr(value, "requires_grad", False) is True)
    return f"{type(value).__name__}({', '.join(parts)})"


def _shape(value: Any) -> str:
    try:
        return str(tuple(value.shape))
    except Exception:  # a nested tensor, a lazy table: there is no one shape
        return "?"


def _dataclass(value: Any, depth: int) -> str | None:
    """A dataclass with the repr that was made for it, field by field: a long field is not read whole."""
    code = getattr(type(value).__repr__, "__code__", None)
    if not dataclasses.is_dataclass(type(value)) or code is None or code.co_filename not in _GENERATED:
        return None
    names = [field.name for field in dataclasses.fields(type(value)) if field.repr]
    return _fields(type(value).__name__, ((name, getattr(value, name)) for name in names), len(names), depth)


_SCALARS: frozenset[type] = frozenset({str, bytes, bytearray, int, float, complex, BaseException})
_SELF_NAMED: frozenset[type] = frozenset(
    {tuple, frozenset, UserDict, UserList, types.SimpleNamespace, functools.partial, BaseException}
    | {type, types.FunctionType, types.ModuleType}
)
"""Types whose description holds the name of the value's own class."""

_BY_TYPE: dict[type, Describe] = {
    str: _string,
    bytes: _string,
    bytearray: _string,
    bool: _plain,
    int: _integer,
    float: _plain,
    complex: _plain,
    list: _sequence(list, "[", "]"),
    deque: _sequence(deque, "deque([", "])"),
    tuple: _tuple,
    set: _set,
    frozenset: _frozenset,
    dict: _dict,
    type({}.keys()): _view,
    type({}.values()): _view,
    type({}.items()): _view,
    UserDict: _data,
    UserList: _data,
    types.SimpleNamespace: _namespace,
    type: _class,
    types.FunctionType: _function,
    types.MethodType: _method,
    types.ModuleType: _module,
    functools.partial: _partial,
    BaseException: _exception,
}

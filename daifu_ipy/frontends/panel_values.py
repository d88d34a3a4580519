"""Variables as the panel lists them, and what lies in them, page by page; no code of the program runs for it but repr.

A place in a value is a path: the variable's name, then for each step the number of an item, or an attribute's name.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any, TypeAlias

from daifu_ipy.engine.scopes import HIDDEN
from daifu_ipy.frontends.panel_statistics import has_statistics
from daifu_ipy.repair.builtin_values import class_vars, mro_of, vars_of
from daifu_ipy.repair.deadline import one_budget
from daifu_ipy.repair.library_values import ARRAYS, TABLES, is_of_library, library_base
from daifu_ipy.repair.summary import one_line, summarise

Step: TypeAlias = str | int
Page: TypeAlias = dict[str, Any]

PAGE = 100
"""How many variables, items or attributes are sent at a time."""

_MAX_TEXT = 160
_MAX_LABEL = 60
_MOST_LOCALS = 5_000
_CONTAINERS = (dict, list, tuple, set, frozenset, deque)
_CLOSED = (str, bytes, bytearray, type, ModuleType, FunctionType, BuiltinFunctionType, range)
_MODULE_PARTS = ("_modules", "_parameters", "_buffers")


@dataclass(frozen=True)
class Part:
    """One thing in a value: what it is called there, the step that leads to it, and the thing; `note` says more."""

    label: str
    step: Step
    value: Any
    note: str = ""


@dataclass(frozen=True)
class Inside:
    """What lies in a value: how many items, a way to the items from one on, and the attributes by name."""

    count: int = 0
    items: Callable[[int], Iterator[Part]] = lambda start: iter(())
    attributes: Sequence[Part] = ()

    def parts(self, start: int) -> Iterator[Part]:
        """The parts from number `start` on: items first."""
        if start < self.count:
            yield from self.items(start)
        yield from self.attributes[max(start - self.count, 0) :]

    def __len__(self) -> int:
        return self.count + len(self.attributes)

    def at(self, step: Step) -> Any:
        """What a step leads to; `KeyError` if there is nothing."""
        if isinstance(step, int):
            found = next(self.items(step), None) if 0 <= step < self.count else None
        else:
            found = next((part for part in self.attributes if part.step == step), None)
        if found is None:
            raise KeyError(step)
        return found.value


def inside(value: Any) -> Inside:
    """What lies in a value, read from where it is stored."""
    kind = type(value)
    if issubclass(kind, _CLOSED):
        return Inside()
    base = library_base(value)
    if base in TABLES and is_of_library(kind):
        return _columns(value)
    if base in ARRAYS:
        return Inside()
    container = next((one for one in _CONTAINERS if issubclass(kind, one)), None)
    value = _shown(value)
    count = 0 if container is None else container.__len__(value)
    own = _module_parts(value) if base == "Module" else _attributes(value)
    return Inside(count, functools.partial(_items, value, container), own)


def _shown(value: Any) -> Any:
    """A dict without hidden names, as what ``locals()`` gave: looking at its frame has put them into it."""
    if type(value) is not dict or len(value) > _MOST_LOCALS:
        return value
    has_hidden = any(map(_is_hidden, list(value)))
    return {name: item for name, item in value.items() if not _is_hidden(name)} if has_hidden else value


def _is_hidden(name: Any) -> bool:
    return type(name) is str and name.startswith(HIDDEN)


def _items(value: Any, base: Any, start: int) -> Iterator[Part]:
    if base is dict:
        for number, (key, item) in enumerate(islice(dict.items(value), start, None), start):
            yield Part(f"[{summarise(key, _MAX_LABEL)}]", number, item)
        return
    names = class_fields(value) if base is tuple else ()
    for number, item in enumerate(_sliced(value, base, start), start):
        label = names[number] if number < len(names) else f"[{number}]"
        yield Part(f"item {number}" if base in (set, frozenset) else label, number, item)


def _sliced(value: Any, base: Any, start: int) -> Iterable[Any]:
    if base in (list, tuple):
        return iter(base.__getitem__(value, slice(start, start + PAGE)))  # type: ignore[no-any-return]
    return islice(base.__iter__(value), start, None)


def class_fields(value: Any) -> tuple[str, ...]:
    """The names that a named tuple's class gives to its items."""
    for base in mro_of(type(value)):
        names = class_vars(base).get("_fields")
        if type(names) is tuple and all(type(name) is str for name in names):
            return names
    return ()


def _attributes(value: Any) -> list[Part]:
    """An object's own attributes: those in its dict, then those in slots."""
    found = {name: item for name, item in list(vars_of(value).items()) if type(name) is str}
    for base in mro_of(type(value)):
        members = class_vars(base)
        for name, member in members.items() if "__slots__" in members else ():
            if type(member) is MemberDescriptorType and name not in found:
                try:
                    found[name] = member.__get__(value)
                except AttributeError:  # it was never assigned
                    continue
    return [Part(name, name, item) for name, item in found.items() if not name.startswith(HIDDEN)]


def _module_parts(value: Any) -> list[Part]:
    """A torch module's layers, parameters and buffers, then what its author has put there."""
    state = vars_of(value)
    kept = [state.get(name) for name in _MODULE_PARTS]
    parts = [Part(name, name, item) for held in kept if isinstance(held, dict) for name, item in dict.items(held)]
    return parts + [part for part in _attributes(value) if part.step not in _machinery()]


@functools.cache
def _machinery() -> frozenset[str]:
    """The attributes that every torch module has."""
    torch = sys.modules.get("torch")
    return frozenset() if torch is None else frozenset({*vars(torch.nn.Module())} - {"training"})


def _columns(table: Any) -> Inside:
    """A table's columns, each without its data; a table that would have to compute them shows none."""
    kind = type(table).__name__
    if kind == "LazyFrame" or not hasattr(table, "columns"):
        return Inside()
    names = list(table.column_names if kind == "Table" else table.columns)

    def items(start: int) -> Iterator[Part]:
        for number in range(start, len(names)):
            column = _column(table, kind, number)
            note = str(getattr(column, "dtype", getattr(column, "type", "")))
            yield Part(f"[{summarise(names[number], _MAX_LABEL)}]", number, column, note)

    return Inside(len(names), items)


def _column(table: Any, kind: str, number: int) -> Any:
    if kind == "Table":
        return table.column(number)
    return table.iloc[:, number] if hasattr(table, "iloc") else table.to_series(number)


# what is sent


def page(parts: Iterable[Part], total: int, start: int, path: Sequence[Step] = ()) -> Page:
    """One page of parts: each with type, summary, and whether there is more to see."""
    with one_budget():
        shown = [_row(part, [*path, part.step]) for part in islice(parts, PAGE)]
    return {"variables": shown, "total": total, "start": start}


def expand(variables: dict[str, Any], path: Sequence[Step], start: int = 0) -> Page:
    """What lies in the value at a path.

    Raises
    ------
    ValueError
        It is not there any more, or changes while it is read.
    """
    found = inside(value_at(variables, path))
    try:
        return page(found.parts(start), len(found), start, path)
    except RuntimeError as error:  # another thread has changed its size
        raise ValueError(f"it changes while it is read ({error}): try again") from None


def value_at(variables: dict[str, Any], path: Sequence[Step]) -> Any:
    """The value that a path leads to; `ValueError` if it leads nowhere."""
    try:
        value = variables[str(path[0])]
        for step in path[1:]:
            value = inside(value).at(step)
    except (LookupError, RuntimeError):
        raise ValueError(f"{one_line('.'.join(map(str, path)), _MAX_LABEL)} is not there any more") from None
    return value


def _row(part: Part, path: list[Step]) -> dict[str, Any]:
    value, kind = _shown(part.value), type(part.value)
    return {
        "name": one_line(part.label, _MAX_LABEL + 2),
        "type": one_line(class_name(kind), _MAX_LABEL),
        "text": f"{part.note}, {summarise(value, _MAX_TEXT)}" if part.note else summarise(value, _MAX_TEXT),
        "path": path,
        "more": has_parts(value),
        "stats": has_statistics(value),
    }


def has_parts(value: Any) -> bool:
    """Whether there is something to see in it."""
    try:
        return len(inside(value)) > 0
    except Exception:  # of a library
        return False


def class_name(kind: type) -> str:
    """What a class calls itself, whatever its metaclass makes of that."""
    name: str = type.__dict__["__qualname__"].__get__(kind)
    return name


__all__ = ["PAGE", "Inside", "Page", "Part", "Step", "class_name", "expand", "page", "value_at"]

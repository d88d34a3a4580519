"""What a running call has for the parameters of a new text, which it was not called with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

from daifu_ipy.engine.function_state import defaults_of, parameters
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.scopes import mangle
from daifu_ipy.engine.swap import Swap
from daifu_ipy.engine.unit import FUNCTIONS, FunctionNode, Unit

if TYPE_CHECKING:
    from daifu_ipy.engine.crash import CrashFrame


@dataclass(frozen=True)
class ByDefault:
    """Stands for the default of a parameter until the surgery is applied, when that is evaluated."""

    name: str


def new_arguments(frame: CrashFrame, new: Unit) -> dict[str, Any]:
    """The values of parameters that are new: defaults, and empty ``*args`` and ``**kwargs``.

    Raises
    ------
    Refusal
        A parameter has no value, or may be an old one under a new name.
    """
    if not isinstance(new.node, FUNCTIONS) or not isinstance(frame.unit.node, FUNCTIONS):
        return {}
    ours, theirs = (
        _kinds(unit.node, unit.class_name) for unit in (frame.unit, new) if isinstance(unit.node, FUNCTIONS)
    )
    changed = sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])
    if changed:
        raise Refusal(f"{changed[0]} can't become another kind of parameter while {new.qualname} is running")
    bound = frame.view()
    added = {name: kind for name, kind in theirs.items() if name not in ours and name not in bound}
    _check_renamed(
        [name for name, kind in added.items() if not kind], [n for n in ours if n not in theirs and not ours[n]], new
    )
    defaults = {mangle(name, new.class_name): text for name, text in parameters(new.node.args).items()}
    for name, kind in added.items():
        if not kind and defaults[name] is None:
            raise Refusal(
                f"{name} is a new parameter without a default, and the call of {new.qualname} that is running has no "
                "value for it: an action can bind it first"
            )
    empty: dict[str, Any] = {"*": (), "**": {}}
    return {name: empty[kind] if kind else ByDefault(name) for name, kind in added.items()}


def _kinds(node: FunctionNode, class_name: str | None) -> dict[str, str]:
    """The parameters, those that take several arguments by their stars."""
    rest = {arg.arg: stars for arg, stars in ((node.args.vararg, "*"), (node.args.kwarg, "**")) if arg is not None}
    return {mangle(name, class_name): rest.get(name, "") for name in parameters(node.args)}


def _check_renamed(added: list[str], removed: list[str], new: Unit) -> None:
    if added and removed:
        raise Refusal(
            f"the parameter {removed[0]} of {new.qualname} is gone and {added[0]} is new: whether it is the same one "
            f"can't be told. An action that binds {added[0]} says what the call that is running is to have"
        )


def check_arguments(frame: CrashFrame, swaps: Iterable[Swap]) -> None:
    """Refuse where no function is left that could say what a default is."""
    waiting = [value.name for value in frame.view().values() if isinstance(value, ByDefault)]
    if waiting and _function_of(frame, swaps) is None:
        raise Refusal(f"there is no function {frame.unit.qualname} any more: an action has to bind {waiting[0]} first")


def settle(frame: CrashFrame, swaps: Iterable[Swap]) -> None:
    """Give the running call the defaults that its function has got."""
    function = _function_of(frame, swaps)
    if function is None:
        return
    defaults = defaults_of(function)
    for name, value in frame.variables.items():
        if isinstance(value, ByDefault):
            frame.variables[name] = frame.written[name] = defaults[name]
    for name, value in frame.view().items():
        if isinstance(value, ByDefault):
            frame.cells[name].cell_contents = defaults[name]


def _function_of(frame: CrashFrame, swaps: Iterable[Swap]) -> FunctionType | None:
    """The function whose call is running; of several closures, the one over the frame's variables."""
    functions = [f for swap in swaps if swap.name == frame.unit.qualname for f in swap.functions]
    for function in functions:
        names, cells = function.__code__.co_freevars, function.__closure__ or ()
        if all(frame.cells.get(name) is cell for name, cell in zip(names, cells, strict=True)):
            return function
    return functions[0] if functions else None


__all__ = ["check_arguments", "new_arguments", "settle"]

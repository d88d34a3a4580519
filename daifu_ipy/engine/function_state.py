"""What a definition gives its function object beside the code: defaults, annotations, docstring.

A swap gives a function object the new text's. What the text leaves as it was keeps its value (a default may have been
filled since); what is new or was changed is evaluated, where the definition itself would be.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

from daifu_ipy.engine.compiling import bare_function, compile_function, function_from
from daifu_ipy.engine.matching import same
from daifu_ipy.engine.nodes import LOAD
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.scopes import HIDDEN, mangle
from daifu_ipy.engine.unit import FunctionNode, NestedFunction

STUB = f"{HIDDEN}stub"


@dataclass(frozen=True)
class State:
    """All that a swap exchanges of a function object."""

    code: CodeType
    defaults: tuple[Any, ...] | None
    kwdefaults: dict[str, Any] | None
    annotations: dict[str, Any]
    doc: str | None

    @classmethod
    def of(cls, function: FunctionType, code: CodeType | None = None) -> State:
        """What a function has now, or would have with other `code`."""
        return cls(
            code or function.__code__,
            function.__defaults__,
            function.__kwdefaults__,
            function.__annotations__,
            function.__doc__,
        )

    def give(self, function: FunctionType) -> None:
        """Let a function have it."""
        function.__code__ = self.code
        function.__defaults__ = self.defaults
        function.__kwdefaults__ = self.kwdefaults
        function.__annotations__ = self.annotations
        function.__doc__ = self.doc


@dataclass(frozen=True)
class Surroundings:
    """What can be read where a function is defined: `values` of the scopes around it; `unknown` ones are lost."""

    values: Mapping[str, Any]
    unknown: frozenset[str] = frozenset()


NOWHERE = Surroundings({})


def parameters(args: ast.arguments) -> dict[str, ast.expr | None]:
    """All parameters, each with its default."""
    positional = [*args.posonlyargs, *args.args]
    defaults = [*[None] * (len(positional) - len(args.defaults)), *args.defaults, *args.kw_defaults]
    named = [arg.arg for arg in [*positional, *args.kwonlyargs]]
    rest = {arg.arg: None for arg in (args.vararg, args.kwarg) if arg is not None}
    return {**dict(zip(named, defaults, strict=True)), **rest}


def annotations_of(node: FunctionNode) -> dict[str, ast.expr]:
    """All annotations by parameter, and that of the result."""
    args = node.args
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    found = {arg.arg: arg.annotation for arg in every if arg is not None and arg.annotation is not None}
    return {**found, **({"return": node.returns} if node.returns is not None else {})}


def defaults_of(function: FunctionType) -> dict[str, Any]:
    """The default values that a function object has, by parameter."""
    code, positional = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return {
        **dict(zip(names[len(names) - len(positional) :], positional, strict=False)),
        **(function.__kwdefaults__ or {}),
    }


def state_for(
    function: FunctionType, code: CodeType, old: FunctionNode | None, new: NestedFunction, around: Surroundings
) -> State:
    """What `function` is to have when it runs `code`, the `new` text of its definition.

    Raises
    ------
    Refusal
        A default or an annotation that is new can't be evaluated.
    """
    texts = parameters(new.node.args)
    spelled = {name: mangle(name, new.class_name) for name in texts}
    kept = _unchanged(parameters(old.args), texts) if old is not None else set()
    noted = _unchanged(annotations_of(old), annotations_of(new.node)) if old is not None else set()
    present = defaults_of(function)
    fresh = {
        name for name, text in texts.items() if text is not None and (name not in kept or spelled[name] not in present)
    }
    stub = _evaluated(function, new, fresh, set(annotations_of(new.node)) - noted, around)
    values = {spelled[name]: present[spelled[name]] for name in kept} | (stub.__kwdefaults__ or {})
    args = new.node.args
    positional = [spelled[arg.arg] for arg in [*args.posonlyargs, *args.args]]
    defaults = tuple(values[name] for name in positional if name in values)
    keyword = {spelled[arg.arg]: values[spelled[arg.arg]] for arg in args.kwonlyargs if spelled[arg.arg] in values}
    is_noted = old is None or bool(set(annotations_of(old)) - noted or stub.__annotations__)
    notes = _annotated(function, stub, new) if is_noted else function.__annotations__
    return State(code, defaults or None, keyword or None, notes, _documented(function, old, new))


def _unchanged(old: Mapping[str, ast.expr | None], new: Mapping[str, ast.expr | None]) -> set[str]:
    return {
        name
        for name, text in new.items()
        if text is not None and (before := old.get(name)) is not None and same(before, text)
    }


def _annotated(function: FunctionType, stub: FunctionType, new: NestedFunction) -> dict[str, Any]:
    names = [name if name == "return" else mangle(name, new.class_name) for name in annotations_of(new.node)]
    values = {**function.__annotations__, **stub.__annotations__}
    return {name: values[name] for name in names if name in values}


def _documented(function: FunctionType, old: FunctionNode | None, new: NestedFunction) -> str | None:
    text = ast.get_docstring(new.node, clean=False)
    if old is not None and ast.get_docstring(old, clean=False) == text:
        return function.__doc__
    return text


def _evaluated(
    function: FunctionType, new: NestedFunction, fresh: set[str], noted: set[str], around: Surroundings
) -> FunctionType:
    """A function with the `fresh` defaults and `noted` annotations, defined where `function` was."""
    stub = _stub(new.node, fresh, noted)
    cells = {name: CellType(value) for name, value in around.values.items()}
    cells |= {parameter.__name__: CellType(parameter) for parameter in getattr(function, "__type_params__", ())}
    cells |= dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    header = [*stub.args.kw_defaults, *annotations_of(stub).values()]
    read = {mangle(n.id, new.class_name) for part in header if part for n in ast.walk(part) if isinstance(n, ast.Name)}
    lost = sorted(read & around.unknown - cells.keys())
    if lost:
        raise Refusal(
            f"the new header of {new.qualname} reads {', '.join(lost)} of the function around it: that is gone"
        )
    code = function.__code__
    try:
        outer = bare_function(stub, _no_arguments(), [stub, _returned(stub)])
        made = compile_function(
            ast.fix_missing_locations(outer), sorted(cells), new.class_name, code.co_filename, code.co_flags
        )
        result = function_from(made, function.__globals__, cells)()
    except Exception as error:
        raise Refusal(
            f"the new header of {new.qualname} in line {new.node.lineno} can't be evaluated: "
            f"{type(error).__name__}: {error}"
        ) from None
    if not isinstance(result, FunctionType):
        raise Refusal(f"the new header of {new.qualname} in line {new.node.lineno} yields or awaits")
    return result


def _stub(node: FunctionNode, fresh: set[str], noted: set[str]) -> ast.FunctionDef:
    """A definition that takes by keyword what is to be evaluated, and does nothing."""
    texts, defaults = annotations_of(node), parameters(node.args)
    names = [name for name in defaults if name in fresh or name in noted]
    args = _no_arguments()
    args.kwonlyargs = [ast.arg(name, texts[name] if name in noted else None) for name in names]
    args.kw_defaults = [defaults[name] if name in fresh else None for name in names]
    stub = bare_function(ast.FunctionDef(STUB, args, [], [], lineno=node.lineno), args, [ast.Pass()])
    stub.name, stub.returns = STUB, texts["return"] if "return" in noted else None
    return stub  # type: ignore[return-value]


def _no_arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])


def _returned(stub: ast.FunctionDef) -> ast.stmt:
    return ast.Return(ast.Name(stub.name, LOAD))


__all__ = ["NOWHERE", "State", "Surroundings", "defaults_of", "parameters", "state_for"]

"""Functions that are new in a text, and what else at its top level is new: that is not run."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CellType, CodeType
from typing import TYPE_CHECKING, Any

from daifu_ipy.engine.closures import globals_read
from daifu_ipy.engine.compiling import function_from
from daifu_ipy.engine.function_state import Surroundings, state_for
from daifu_ipy.engine.invariants import InternalError
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.scopes import bound_names, mangle, own_nodes
from daifu_ipy.engine.swap import Swap
from daifu_ipy.engine.unit import FUNCTIONS, NestedFunction, Unit, is_constant
from daifu_ipy.engine.vaccinate import CannotVaccinate, native, parse, vaccinated

if TYPE_CHECKING:
    from daifu_ipy.engine.crash import CrashFrame


@dataclass(frozen=True)
class Addition(Swap):
    """A function that a new text adds to a module or a class; `functions` holds it already, nobody knows it yet."""

    place: Any = None

    @property
    def definition(self) -> NestedFunction:
        """Its text."""
        if self.new is None:
            raise InternalError(f"no text of {self.name}")
        return self.new

    @property
    def key(self) -> str:
        """What it is called in its place."""
        return mangle(self.definition.node.name, self.definition.class_name)

    def prepare(self) -> Callable[[], None]:
        """Evaluate its header; what is returned puts it into its place."""
        (function,) = self.functions
        state = state_for(function, self.code, None, self.definition, self.around)

        def give() -> None:
            state.give(function)
            if isinstance(self.place, type):
                setattr(self.place, self.key, function)
            else:
                self.place[self.key] = function

        return give

    def take_back(self) -> None:
        """Take it out of its place again."""
        if isinstance(self.place, type):
            delattr(self.place, self.key)
        else:
            del self.place[self.key]


def add_all(additions: Iterable[Addition]) -> None:
    """Put new functions into their places: all of them, or none.

    Raises
    ------
    Refusal
        A header can't be evaluated, or a class does not take a new method.
    """
    done: list[Addition] = []
    prepared = [(one, one.prepare()) for one in additions]
    for one, give in prepared:
        try:
            give()
        except Exception as error:  # of a metaclass
            for other in done:
                other.take_back()
            raise Refusal(f"{one.name} can't be added: {type(error).__name__}: {error}") from None
        done.append(one)


def addition(
    new: NestedFunction,
    place: dict[str, Any] | type,
    namespace: dict[str, Any],
    text: str,
    filename: str,
    flags: int,
) -> Addition:
    """A new function of a module, whose names are `namespace`, or of a class in it."""
    owner = place if isinstance(place, type) else None
    free = ("__class__",) if owner is not None and _uses_class(new.node) else ()
    plain = native(new.node, _named(new, free), new.class_name, filename, flags)
    try:
        code = vaccinated(new.node, plain, text, namespace, new.class_name).code
    except CannotVaccinate:
        code = plain
    function = function_from(code, namespace, {"__class__": CellType(owner)})
    around = Surroundings(dict(vars(owner)) if owner is not None else {})
    return Addition(new.qualname, (function,), code, None, new, around, (), place)


def _uses_class(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Name) and n.id in ("super", "__class__") for n in ast.walk(node))


def _named(new: NestedFunction, free: tuple[str, ...]) -> CodeType:
    """A code that only says how that of a function is called, and which variables are free in it."""
    blank: CodeType = compile("0", "", "eval")
    return blank.replace(co_freevars=free, co_name=new.node.name, co_qualname=new.qualname)


# top-level code


def check_known(
    code: CodeType, tree: ast.Module, namespace: Mapping[str, Any], swaps: list[Swap], frame: CrashFrame
) -> None:
    """Refuse code that reads what only top-level code of the new text would make: that is not run."""
    made = {swap.name for swap in swaps if isinstance(swap, Addition)}
    bound = frame.extras.keys() if namespace is frame.barrier.namespace else set()
    missing = set(globals_read(code)) - namespace.keys() - vars(builtins).keys() - made - bound
    for statement in tree.body:
        wanted = sorted(missing.intersection(bound_names(own_nodes([statement]), None))) if missing else []
        if wanted:
            raise Refusal(
                f"{', '.join(wanted)} does not exist, and a surgery runs no top-level code "
                f"(line {statement.lineno}): an action can"
            )


def bind_globals(frame: CrashFrame, new: Unit, swaps: Iterable[Swap]) -> None:
    """Put into the module what only the new text has there: its own variables, and what an action has bound."""
    namespace, view = frame.barrier.namespace, frame.view()
    declared = set(new.declared_globals) - set(frame.unit.declared_globals)
    namespace.update({name: view[name] for name in declared & view.keys()})
    for swap in swaps:
        if not swap.functions or swap.functions[0].__globals__ is namespace:
            namespace.update({name: frame.extras[name] for name in globals_read(swap.code) if name in frame.extras})


def not_run(tree: ast.Module, source: str) -> str:
    """Says which top-level code of a new text was not in the old one, functions left out; "" if there is none."""
    try:
        known = {text for text, _ in _top_level(parse(source).body)}
    except SyntaxError:
        known = set()
    lines = ", ".join(str(line) for text, line in _top_level(tree.body) if text not in known)
    return f"top-level code is not run (line {lines})" if lines else ""


def _top_level(statements: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, int]]:
    """What runs when a text is run, each with its line: what makes no function, or decorates one, in classes too."""
    for statement in statements:
        if isinstance(statement, ast.ClassDef):
            name = f"{prefix}{statement.name}."
            header = [*statement.decorator_list, *statement.bases, *statement.keywords]
            yield f"class {name} {[ast.dump(part) for part in header]}", statement.lineno
            yield from _top_level(statement.body, name)
        elif isinstance(statement, FUNCTIONS) and statement.decorator_list:
            yield f"{prefix} def {statement.name}", statement.lineno
        elif not isinstance(statement, (*FUNCTIONS, ast.Pass)) and not is_constant(statement):
            yield f"{prefix} {ast.dump(statement)}", statement.lineno


__all__ = ["Addition", "add_all", "addition", "bind_globals", "check_known", "not_run"]

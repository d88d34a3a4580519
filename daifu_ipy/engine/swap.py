"""Swapping code in place: every function object that ran the old text runs the new one from its next call on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from daifu_ipy.engine.closures import check_closure, code_for, surroundings, variables_around
from daifu_ipy.engine.function_state import NOWHERE, State, Surroundings, state_for
from daifu_ipy.engine.functions import Functions
from daifu_ipy.engine.lineage import succeed
from daifu_ipy.engine.matching import same
from daifu_ipy.engine.native import native_code
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.unit import FUNCTIONS, FunctionNode, NestedFunction, Unit, nest_with_items, nested_functions
from daifu_ipy.engine.vaccinate import Vaccinated, code_of, is_vaccinated

if TYPE_CHECKING:
    from daifu_ipy.engine.crash import CrashFrame


Around: TypeAlias = Callable[[NestedFunction], Surroundings]


@dataclass(frozen=True)
class Swap:
    """New code for some function objects, checked and not yet given to them.

    `old` and `new` are the definition's texts (without them nothing but the code is exchanged), `around` is where they
    are evaluated. `successions`: native codes, each with the one that stands for it from now on.
    """

    name: str
    functions: tuple[FunctionType, ...]
    code: CodeType
    old: FunctionNode | None = None
    new: NestedFunction | None = None
    around: Surroundings = NOWHERE
    successions: tuple[tuple[CodeType, CodeType], ...] = ()

    def prepare(self) -> Callable[[], None]:
        """Evaluate what the new text gives the functions; what is returned gives it to them.

        Raises
        ------
        Refusal
            It can't be evaluated; nothing was changed.
        """
        states = [(function, self._state(function)) for function in self.functions]

        def give() -> None:
            for function, state in states:
                succeed(native_code(function.__code__), native_code(state.code))
                state.give(function)
            for old, new in self.successions:
                succeed(old, new)

        return give

    def _state(self, function: FunctionType) -> State:
        if self.new is None:
            return State.of(function, self.code)
        return state_for(function, self.code, self.old, self.new, self.around)

    def apply(self) -> None:
        """Exchange the code, and what goes with it."""
        self.prepare()()

    @classmethod
    def unit(cls, frame: CrashFrame, new: Vaccinated, known: Functions) -> tuple[Swap, ...]:
        """The swaps of a crashed unit and of the functions in it."""
        old, unit = frame.unit, new.barrier.unit
        values = frame.view()
        inner = Family(list(members(old)), list(members(unit)), codes_of(new), unit.source)

        def around(definition: NestedFunction) -> Surroundings:
            if old.is_notebook_cell:
                return surroundings(definition, unit.source, frame.barrier.namespace)
            return Surroundings(values, unit.scope.bound - values.keys())

        namespace = frame.barrier.namespace
        own = _own_swap(frame, new, known, inner.successions(known, namespace))
        return (*own, *inner.swaps(known, namespace, around))


def _own_swap(
    frame: CrashFrame, new: Vaccinated, known: Functions, inner: tuple[tuple[CodeType, CodeType], ...]
) -> list[Swap]:
    """The swap of the crashed unit itself; it is there though no function object is left."""
    old, unit = frame.unit, new.barrier.unit
    if not isinstance(old.node, FUNCTIONS) or not isinstance(unit.node, FUNCTIONS):
        return []
    functions = known.running(old.plain, frame.barrier.namespace)
    protected, others = by_protection(functions)
    check_closure(protected, new.code, old.qualname)
    definition = NestedFunction(unit.node, old.qualname, old.class_name)
    values = variables_around(functions[0], frame.frame) if len(functions) == 1 else None
    around = surroundings(definition, unit.source, frame.barrier.namespace, values)
    made = [Swap(old.qualname, protected, new.code, old.node, definition, around, ((old.plain, unit.plain), *inner))]
    if others:
        plain = code_for(others, definition, new.plain, unit.source)
        made.append(Swap(old.qualname, others, plain, old.node, definition, around))
    return made


def prepare_all(swaps: Iterable[Swap]) -> list[Callable[[], None]]:
    """Prepare swaps; calling all that is returned applies them.

    Raises
    ------
    Refusal
        Something that the new text gives a function can't be evaluated; nothing was changed.
    """
    return [swap.prepare() for swap in swaps]


# a function and those in it


@dataclass(frozen=True)
class Member:
    """A function in another one, or in a notebook cell, with its native code."""

    definition: NestedFunction
    plain: CodeType


def members(unit: Unit) -> Iterator[Member]:
    """The functions in a unit."""
    prefix = "" if unit.is_notebook_cell else f"{unit.plain.co_qualname}.<locals>."
    return members_in(unit.node.body, prefix, unit.class_name, unit.plain)


def members_in(statements: list[ast.stmt], prefix: str, class_name: str | None, plain: CodeType) -> Iterator[Member]:
    """The functions among `statements` of `plain`, nested ones after the one that they are in."""
    for nested in nested_functions(statements, prefix, class_name):
        code = code_of(nested, plain)
        if code is not None:
            yield Member(nested, code)
            yield from members_in(nested.node.body, f"{nested.qualname}.<locals>.", nested.class_name, code)


def codes_of(made: Vaccinated) -> dict[int, CodeType]:
    """The vaccinated codes of a unit and of those in it, by the identity of the native ones."""
    barriers = made.barrier.barriers.values()
    return {id(barrier.unit.plain): barrier.code for barrier in barriers if barrier.code is not None}


@dataclass(frozen=True)
class Family:
    """The functions in an old and in a new text of a function; `made` are their new vaccinated codes."""

    old: list[Member]
    new: list[Member]
    made: Mapping[int, CodeType]
    source: str
    left_out: frozenset[ast.AST] = field(default_factory=frozenset)

    def pairs(self, known: Functions, namespace: Mapping[str, Any]) -> Iterator[tuple[Member, Member]]:
        """Members of the old text with those of the new one that stand for them."""
        ours, theirs = _by_name(self.old), _by_name(self.new)
        for name, namesakes in ours.items():
            counterparts = theirs.get(name, [])
            exist = any(known.running(member.plain, namespace) for member in namesakes)
            if counterparts and len(counterparts) != len(namesakes) and exist:
                raise Refusal(f"{name} is defined {len(counterparts)} times now, and was {len(namesakes)} times before")
            yield from zip(namesakes, counterparts, strict=False)

    def successions(self, known: Functions, namespace: Mapping[str, Any]) -> tuple[tuple[CodeType, CodeType], ...]:
        """What stands for what from now on, changed or not."""
        return tuple((old.plain, new.plain) for old, new in self.pairs(known, namespace))

    def swaps(self, known: Functions, namespace: Mapping[str, Any], around: Around) -> Iterator[Swap]:
        """The swaps of the functions of the old text that exist and have changed."""
        for old, new in self.pairs(known, namespace):
            if new.definition.node not in self.left_out and not says_the_same(old.definition.node, new.definition.node):
                yield from self._swap(old, new, known.running(old.plain, namespace), around)

    def _swap(self, old: Member, new: Member, functions: tuple[FunctionType, ...], around: Around) -> Iterator[Swap]:
        definition, name = new.definition, new.definition.qualname
        protected, others = by_protection(functions)
        codes = ((protected, self.made.get(id(new.plain), new.plain)), (others, new.plain))
        for some, made in codes:
            if some:
                code = code_for(some, definition, made, self.source)
                yield Swap(name, some, code, old.definition.node, definition, around(definition))


def by_protection(functions: Iterable[FunctionType]) -> tuple[tuple[FunctionType, ...], tuple[FunctionType, ...]]:
    """Those that are vaccinated, and those that are not."""
    every = [(function, is_vaccinated(function)) for function in functions]
    protected, others = (tuple(f for f, is_one in every if is_one is wanted) for wanted in (True, False))
    return protected, others


def _by_name(found: list[Member]) -> dict[str, list[Member]]:
    names: dict[str, list[Member]] = {}
    for member in found:
        names.setdefault(member.definition.qualname, []).append(member)
    return names


def says_the_same(old: FunctionNode, new: FunctionNode) -> bool:
    """Whether two definitions are the same, header and all."""
    for node in (old, new):
        nest_with_items(node.body)  # what a unit has done to one of them
    return same(old, new)


__all__ = ["Family", "Member", "Swap", "codes_of", "members_in", "prepare_all", "says_the_same", "surroundings"]

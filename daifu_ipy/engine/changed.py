"""Which functions a new text is about: those that exist and whose text has changed, and those that are new.

A text may hold one function, a class, a notebook cell or a whole file. The module that it belongs to is the one that
has most of its definitions (`home_of`). A definition stands for the function objects of that name there: those that
the module, a class in it, or the stack of the crash leads to, through whatever wraps them. Other top-level code is not
run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from daifu_ipy.engine.additions import Addition, addition, check_known
from daifu_ipy.engine.closures import check_captures, code_for, surroundings
from daifu_ipy.engine.compiling import FUTURE_FLAGS
from daifu_ipy.engine.functions import Functions, resolve
from daifu_ipy.engine.home import Home, Stack, behind, roots
from daifu_ipy.engine.native import native_code
from daifu_ipy.engine.repairs import Refusal
from daifu_ipy.engine.scopes import mangle
from daifu_ipy.engine.swap import Family, Member, Swap, by_protection, codes_of, members_in, says_the_same
from daifu_ipy.engine.unit import NestedFunction
from daifu_ipy.engine.vaccinate import (
    CannotVaccinate,
    FoundFunction,
    find_function,
    native,
    parse,
    vaccinated,
)

if TYPE_CHECKING:
    from daifu_ipy.engine.crash import CrashFrame


def changed_functions(
    frame: CrashFrame,
    stack: Stack,
    tree: ast.Module,
    text: str,
    filename: str,
    skip: ast.AST | None,
    known: Functions,
    home: Home,
) -> list[Swap]:
    """The functions of a new text that have changed or are new, the crashed unit (`skip`) left out."""
    if isinstance(skip, ast.Module):
        return []  # a notebook cell defines its functions itself
    return list(
        _Text(frame, stack, tree, text, filename, frozenset(ast.walk(skip) if skip else ()), known, home).swaps()
    )


# the new text


class _Text:
    """A new text on its way to the functions that it is about."""

    def __init__(
        self,
        frame: CrashFrame,
        stack: Stack,
        tree: ast.Module,
        text: str,
        filename: str,
        left_out: frozenset[ast.AST],
        known: Functions,
        home: Home,
    ) -> None:
        self.frame, self.tree, self.text, self.filename, self.left_out = frame, tree, text, filename, left_out
        self.known = known
        self.home = home.namespace
        self.stack = stack
        self.before = roots(parse(home.source))

    def swaps(self) -> Iterator[Swap]:
        """The swaps of all definitions."""
        made: list[Swap] = []
        for name, definitions in roots(self.tree).items():
            wanted = [one for one in definitions if one.node not in self.left_out]
            groups = self._existing(name) if wanted else []
            for functions in groups:
                made += self._change(functions, definitions)
            if wanted and not groups:
                made += self._addition(wanted)
        if not self.left_out:  # the crashed unit is not in the text: a new name alone may be a new name of it
            read = {name for swap in made for name in _names_in(swap.code)}
            made = [swap for swap in made if not isinstance(swap, Addition) or swap.key in read]
        for swap in made:
            check_known(swap.code, self.tree, self._namespace_of(swap), made, self.frame)
        yield from made

    def _namespace_of(self, swap: Swap) -> Mapping[str, Any]:
        return swap.functions[0].__globals__ if swap.functions else self.home

    # the functions that there are

    def _existing(self, name: str) -> list[tuple[FunctionType, ...]]:
        """The function objects that a qualified name stands for, by definition."""
        here = [f for f in self.known.called(name) if f.__globals__ is self.home]
        current = [*self._named(name), *self._running(name, self.home)]
        if not here:
            here = current = self._elsewhere(name)
        codes = {id(native_code(f.__code__)): f for f in here}
        meant = {id(native_code(f.__code__)) for f in current} & codes.keys()
        if not meant and len(codes) > 1:
            raise Refusal(f"there are several functions {name}, and which one is meant can't be told")
        chosen = [f for key, f in codes.items() if key in meant or not meant]
        unit = self.frame.unit.plain
        groups = [self.known.running(native_code(f.__code__), f.__globals__) for f in chosen]
        return [group for group in groups if not any(native_code(f.__code__) is unit for f in group)]

    def _named(self, name: str) -> list[FunctionType]:
        """Those that the module, or a class in it, has under a name."""
        found = behind(resolve(name, self.home))
        return [f for f in found if native_code(f.__code__).co_qualname == name]

    def _running(self, name: str, namespace: Mapping[str, Any] | None) -> list[FunctionType]:
        """Those on the stack of the crash, the innermost first."""
        frames = [(code, space) for code, space in self.stack if namespace is None or space is namespace]
        codes = [(code, space) for code, space in frames if code.co_qualname == name]
        return [f for code, space in codes for f in self.known.running(code, space)]

    def _elsewhere(self, name: str) -> list[FunctionType]:
        """Those of other modules: imported by this one, or on the stack, where a method may be given alone."""
        imported = self._named(name) or self._running(name, None)
        if imported or "." in name:
            return imported
        methods = {code.co_qualname for code, _ in self.stack if code.co_name == name and "." in code.co_qualname}
        unit = self.frame.unit.qualname
        if len(methods - {unit}) > 1:
            raise Refusal(f"there are {', '.join(sorted(methods))} on the stack: give the text with its class")
        return [f for qualname in methods - {unit} for f in self._running(qualname, None)]

    # what becomes of them

    def _change(self, functions: tuple[FunctionType, ...], definitions: list[NestedFunction]) -> list[Swap]:
        """The swaps of one function, and of those in it."""
        code = native_code(functions[0].__code__)
        old, new = _old_text(code), definitions[0]
        if old is None and len(definitions) > 1:
            raise Refusal(f"{new.qualname} is defined several times, and which one is meant can't be told")
        if old is not None:
            if old.namesakes != len(definitions):
                raise Refusal(
                    f"{old.qualname} is defined {len(definitions)} times in the new source, "
                    f"and {old.namesakes} times before"
                )
            new = definitions[old.ordinal]
        definition = NestedFunction(new.node, code.co_qualname, new.class_name or (old.class_name if old else None))
        if old is not None:
            if new.node in self.left_out or says_the_same(old.node, new.node):
                return []
            check_header(old.node, definition)
        plain = native(new.node, code, definition.class_name, self.filename, code.co_flags & FUTURE_FLAGS)
        check_captures(plain, code.co_qualname, *([old.source] if old else []), self.text)
        return list(self._swaps(functions, old, Member(definition, plain)))

    def _swaps(self, functions: tuple[FunctionType, ...], old: FoundFunction | None, new: Member) -> Iterator[Swap]:
        definition, plain, name = new.definition, new.plain, new.definition.qualname
        namespace, former = functions[0].__globals__, native_code(functions[0].__code__)
        around = surroundings(definition, self.text, namespace)
        made: dict[int, CodeType] = {}
        protected, others = by_protection(functions)
        codes = [(others, plain)]
        if protected:
            free = protected[0].__code__.co_freevars
            whole = vaccinated(definition.node, plain, self.text, namespace, definition.class_name, shared=free)
            made = codes_of(whole)
            codes.append((protected, whole.code))
        inner = self._family(former, old, new, made)
        pairs = ((former, plain), *inner.successions(self.known, namespace))
        for some, code in codes:
            if some:
                chosen = code_for(some, definition, code, self.text)
                yield Swap(name, some, chosen, old.node if old else None, definition, around, pairs)
        yield from inner.swaps(self.known, namespace, lambda one: surroundings(one, self.text, namespace))

    def _family(self, former: CodeType, old: FoundFunction | None, new: Member, made: Mapping[int, CodeType]) -> Family:
        """The functions in a function, before and after."""
        node, prefix = new.definition.node, f"{new.definition.qualname}.<locals>."
        before = members_in(old.node.body, prefix, old.class_name, former) if old is not None else ()
        after = members_in(node.body, prefix, new.definition.class_name, new.plain)
        return Family(list(before), list(after), made, self.text, self.left_out)

    def _addition(self, definitions: list[NestedFunction]) -> list[Swap]:
        """A function that is new in a module or a class; none, where it is the old text that will define it."""
        new = definitions[-1]
        owner, name = new.qualname.rpartition(".")[0], mangle(new.node.name, new.class_name)
        place = resolve(owner, self.home) if owner else self.home
        direct = new.node in self.tree.body or owner
        if new.qualname in self.before:
            self._check_defined(definitions)
            return []
        if not direct or not isinstance(place, dict | type):
            return []
        if len(definitions) > 1 or new.node.decorator_list:
            return []  # decorators are top-level code
        taken = name in (vars(place) if isinstance(place, type) else place)
        if taken:
            raise Refusal(f"{new.qualname} is no function that a def has made: it can't be replaced")
        flags = self.frame.barrier.flags & FUTURE_FLAGS
        return [addition(new, place, self.home, self.text, self.filename, flags)]

    def _check_defined(self, definitions: list[NestedFunction]) -> None:
        """Refuse new text for what the module's code, which is running, will define by its old text."""
        name = definitions[0].qualname
        old, file = self.before[name], self.frame.unit.plain.co_filename
        is_running = any(code.co_name == "<module>" and code.co_filename == file for code, _ in self.stack)
        texts = [[ast.dump(one.node) for one in some] for some in (old, definitions)]
        if is_running and texts[0] != texts[1]:
            raise Refusal(
                f"{name} is not defined yet: the top-level code that is running will define it by its old text, where "
                "this surgery can't reach"
            )


def check_header(old: ast.FunctionDef | ast.AsyncFunctionDef, new: NestedFunction) -> None:
    """Refuse what no function object can be given: other decorators, other type parameters."""
    node = new.node
    if [ast.dump(d) for d in old.decorator_list] != [ast.dump(d) for d in node.decorator_list]:
        raise Refusal(
            f"the decorators of {new.qualname} in line {node.lineno} are not those that it was made with, and a "
            "surgery runs none: keep them as they were; an action can decorate it anew"
        )
    if [ast.dump(p) for p in getattr(old, "type_params", [])] != [
        ast.dump(p) for p in getattr(node, "type_params", [])
    ]:
        raise Refusal(f"the type parameters of {new.qualname} can't change (line {node.lineno})")


def _old_text(code: CodeType) -> FoundFunction | None:
    try:
        return find_function(code)
    except CannotVaccinate:
        return None


def _names_in(code: CodeType) -> set[str]:
    """The globals and attributes that code, and that in it, names."""
    inner = [_names_in(const) for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*inner)


__all__ = ["changed_functions", "check_header"]

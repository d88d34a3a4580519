"""``%daifu vaccinate`` and ``%daifu unvaccinate``: functions, methods, classes, objects and modules, by name."""

from __future__ import annotations

import inspect
import types
from types import FunctionType
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from daifu_ipy.engine.vaccinate import functions_in, is_vaccinated
from daifu_ipy.engine.vaccinate import unvaccinate as make_plain
from daifu_ipy.magic.protect import grouped, listed, protect_all, say
from daifu_ipy.repair.frame_record import is_library

if TYPE_CHECKING:
    from daifu_ipy.magic.running import Runner

NAMES = argument(
    "names",
    metavar="NAME",
    nargs="+",
    help="A function (train), a method (Trainer.fit), a class or an object of one (all its methods, inherited ones of "
    "your own classes too), a module (all that it defines), or a part of one (mymodule.train).",
)


@magic_arguments("daifu vaccinate")
@NAMES
def vaccinate(runner: Runner, line: str) -> None:
    """Protect functions, wherever they are called.

    A cell with `%%daifu` on top protects the notebook's own functions that it uses; functions of modules are
    protected by name:

        %daifu vaccinate train Trainer.fit mymodule mymodule.load
    """
    for name in parse_argstring(vaccinate, line).names:
        asked_for = _named(runner, name)
        made = protect_all(_functions_of(asked_for, name))
        runner.remembered.add(asked_for, made.functions)
        runner.note(made)
        for function in made.fresh:
            _say_what_it_means(function)
        say(made)
        if not made.functions and not made.reasons:
            print(f"daifu: {name}: {_nothing(asked_for)}")


@magic_arguments("daifu unvaccinate")
@NAMES
def unvaccinate(runner: Runner, line: str) -> None:
    """Give functions their native code back; calls that run now end with what they have."""
    for name in parse_argstring(unvaccinate, line).names:
        asked_for = _named(runner, name)
        functions = _functions_of(asked_for, name)
        done = [f for f in functions if is_vaccinated(f)]
        for function in functions:
            make_plain(function)
        runner.remembered.discard(asked_for, functions)
        text = listed([f.__qualname__ for f in done]) + " no longer protected" if done else f"{name} was not protected"
        print(f"daifu: {text}")


def functions_named(runner: Runner, name: str) -> list[FunctionType]:
    """The functions that a name in the notebook stands for.

    Raises
    ------
    UsageError
        It stands for none.
    """
    return _functions_of(_named(runner, name), name)


def _named(runner: Runner, name: str) -> Any:
    first, *rest = name.split(".")
    try:
        value: Any = runner.shell.user_ns[first]
        for part in rest:
            value = inspect.getattr_static(value, part) if isinstance(value, type) else getattr(value, part)
    except KeyError:
        raise UsageError(f"%daifu: there is no {first} in this notebook") from None
    except AttributeError:
        raise UsageError(f"%daifu: there is no {name}") from None
    return value


def _functions_of(value: Any, name: str) -> list[FunctionType]:
    if isinstance(value, type):
        return _methods(value)
    try:
        return list(functions_in(value))
    except TypeError:
        pass
    kind = type(value)
    if callable(value) and isinstance(value, types.BuiltinFunctionType | types.MethodDescriptorType):
        raise UsageError(f"%daifu: {name} is written in C: there is no Python code in it to protect")
    methods = _methods(kind)
    if not methods:
        raise UsageError(f"%daifu: {name} is no function, method or class of Python code, but a {kind.__name__}")
    if _is_of_library(kind):
        where = f"{kind.__module__}.{kind.__qualname__}"
        raise UsageError(f"%daifu: {name} is a {where}, of a library; name a method of it, or the class, to protect it")
    return methods


def _methods(cls: type) -> list[FunctionType]:
    """The methods of a class: its own, and those that it inherits from classes that are no library's."""
    own = [base for base in cls.__mro__ if base is cls or not _is_of_library(base)]
    return list(dict.fromkeys(function for base in own for function in functions_in(base)))


def _is_of_library(cls: type) -> bool:
    functions = [member for member in vars(cls).values() if isinstance(member, FunctionType)]
    return cls.__module__ == "builtins" or any(is_library(f.__code__.co_filename) for f in functions[:1])


def _say_what_it_means(function: FunctionType) -> None:
    """What is surprising about protecting it."""
    plain = function.__code__
    if is_library(plain.co_filename):
        where = f"{function.__module__}.{function.__qualname__}"
        print(f"daifu: {where} is a library's: it is protected for all who call it, the library included")


def _nothing(value: Any) -> str:
    """Why nothing is protected."""
    if isinstance(value, FunctionType):
        return "a lambda is left as it is; write a def"
    return f"there is no function with Python text of its own in {grouped([getattr(value, '__name__', 'it')])[0]}"

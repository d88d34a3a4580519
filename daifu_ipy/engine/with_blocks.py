"""Would the context manager of a `with` block swallow an exception?"""

from __future__ import annotations

import contextlib
import inspect
import types
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from daifu_ipy.engine.bytecode import LOADS, PYTHON, SUPER, UNKNOWN, Scope, Tree, class_attribute, code_of
from daifu_ipy.engine.native import native_code
from daifu_ipy.engine.passage import Fate, Fates, Flight, Passage, agreed, grouped

if TYPE_CHECKING:
    from daifu_ipy.engine.handled import _Judge

_MAKERS: Final[list[Any]] = [contextlib.contextmanager, contextlib.asynccontextmanager]
_HELPERS: Final = [make(len).__code__ for make in _MAKERS]  # the code of all that these decorate
_STACKS: Final = [contextlib.ExitStack.__exit__, contextlib.AsyncExitStack.__aexit__]
_GENERATORS: Final = [contextlib._GeneratorContextManager.__exit__, contextlib._AsyncGeneratorContextManager.__aexit__]
_C_METHODS: Final = {types.MethodDescriptorType, types.WrapperDescriptorType, types.BuiltinFunctionType}
_EXPECTING: Final = {"RaisesContext", "RaisesExc", "_AssertRaisesContext"}
_RAISERS: Final = {"raises", "assertRaises", "assertRaisesRegex"}
# their managers swallow nothing, though their code does not show it
_PLAIN: Final = {
    *(("_io", "open"), ("io", "open"), ("posix", "scandir"), ("nt", "scandir"), ("gzip", "open"), ("bz2", "open")),
    *(("tempfile", "NamedTemporaryFile"), ("_thread", "allocate_lock"), ("_thread", "RLock"), ("_thread", "lock")),
    *(("sqlite3", "connect"), ("_sqlite3", "connect"), ("decimal", "localcontext"), ("asyncio.timeouts", "timeout")),
    *(("unittest.mock", "_patch"), ("wandb.sdk.wandb_run", "Run"), ("urllib.request", "urlopen")),
}


def with_fate(passage: Passage, at: int, flight: Flight) -> Fate:
    """What becomes of the exception in the `with` whose WITH_EXCEPT_START is at index `at`."""
    code, place, scope = passage.code, passage.place, passage.scope
    dunder = "__aexit__" if code.ops[at + 1].name == "GET_AWAITABLE" else "__exit__"
    manager = place.manager(code.offsets[at]) if place and place.manager else None
    if manager is not None:
        passage.is_lasting = False
        return _entered(passage.judge, manager, dunder, flight)
    before, first = code.header(at)
    tree, target = code.operand(before) if before > 0 else None, code.ops[first]
    if tree and tree[0] == "call":
        maker = passage.value(tree[1])  # a fact: what is remembered holds while it is the same class
        is_special = issubclass(type(maker), type) and (maker.__name__ in _EXPECTING or maker is contextlib.suppress)
        if issubclass(type(maker), type) and not is_special and _class_fate(maker, dunder, flight) is False:
            return False
    passage.is_lasting = False
    fate = _made(passage.judge, tree, scope, dunder, flight)
    if fate is None and tree and tree[0] == "call" and target.name.startswith("STORE_"):
        # `with ExitStack() as stack`: a target that is an instance of the class called is the manager itself
        manager = scope.value((LOADS["LOAD" + target.name[5:]], target.value))
        if type(manager) is scope.value(tree[1]):
            return _entered(passage.judge, manager, dunder, flight)
    return fate


def _entered(judge: _Judge, manager: Any, dunder: str, flight: Flight) -> Fate:
    """What becomes of it in the block of this manager."""
    cls, method = type(manager), class_attribute(type(manager), dunder)
    if method is contextlib.suppress.__exit__:
        return _suppressed(flight, manager._exceptions)
    if method in _STACKS:
        return _stacked(judge, manager, flight)
    if method in _GENERATORS:
        suspended = suspension(manager.gen)
        return _sole(judge.through(suspended[0], flight), flight) if suspended else None
    if cls.__name__ in _EXPECTING and _is_test_tool(cls):
        names = ("expected_exceptions", "expected_exception", "expected")
        kinds = next((vars(manager)[name] for name in names if name in vars(manager)), ())
        return flight.matches(kinds) if kinds else None
    return _class_fate(cls, dunder, flight)


def _made(judge: _Judge, tree: Tree, scope: Scope, dunder: str, flight: Flight, depth: int = 0) -> Fate:
    """What becomes of it in the block of a manager of which only the expression is known."""
    if tree is None or depth > 4:
        return None
    if tree[0] != "call":
        manager = scope.value(tree)
        return None if manager is UNKNOWN else _entered(judge, manager, dunder, flight)
    maker, args = scope.value(tree[1]), (None,) if tree[2] is None else tree[2]
    if maker is contextlib.suppress:
        return _suppressed(flight, tuple(map(scope.value, args)))
    if _is_plain(maker):
        return False
    if issubclass(type(maker), type):
        is_raiser = maker.__name__ in _EXPECTING and _is_test_tool(maker)
        return flight.matches(scope.value(args[0])) if is_raiser and args else _class_fate(maker, dunder, flight)
    if type(maker) not in {FunctionType, types.MethodType}:
        return None
    if maker.__name__ in _RAISERS and _is_test_tool(maker):
        return flight.matches(scope.value(args[0])) if args else None
    if any(maker.__code__ is helper for helper in _HELPERS):
        return _yielded(judge, maker.__wrapped__, flight)
    inner, returned = Scope(None, maker), code_of(native_code(maker.__code__)).returned
    return agreed(_made(judge, tree, inner, dunder, flight, depth + 1) for tree in returned)


def _is_plain(maker: Any) -> bool:
    """Whether it makes managers that are known to swallow nothing."""
    kinds = {FunctionType, types.MethodType, types.BuiltinFunctionType, type}
    return type(maker) in kinds and (maker.__module__, maker.__qualname__) in _PLAIN


def _is_test_tool(maker: Any) -> bool:
    return str(maker.__module__).startswith(("_pytest.", "unittest.case"))


def _suppressed(flight: Flight, kinds: Any) -> Fate:
    """What `contextlib.suppress` makes of it; since 3.12 it splits groups."""
    found = flight.matches(kinds)
    if found is not False or not flight.is_group or PYTHON < (3, 12):
        return found
    parts = flight.split(kinds)
    if parts is None or parts[0] is None:
        return None if parts is None else False
    return True if parts[1] is None else parts[1]


def _stacked(judge: _Judge, stack: Any, flight: Flight) -> Fate:
    """An exit stack: its callbacks, the last first."""
    now = flight
    for is_sync, callback in reversed(stack._exit_callbacks):
        dunder = "__exit__" if is_sync else "__aexit__"
        fate: Fate = None
        if type(callback) is types.MethodType:
            fate = _entered(judge, callback.__self__, dunder, now)
        elif type(callback) is FunctionType:  # what `stack.callback` wraps can't swallow
            fate = False if "__wrapped__" in vars(callback) else _never_true(callback, (), dunder)
        if fate is True or fate is None:
            return fate
        now = fate or now
    return False if now is flight else now


def _yielded(judge: _Judge, function: FunctionType, flight: Flight) -> Fate:
    """What a generator function makes of it, thrown in at any of its yields."""
    code, scope = code_of(native_code(function.__code__)), Scope(None, function)
    ops = zip(code.ops, code.ops[1:], strict=False)
    yields = [op.offset for before, op in ops if op.name == "YIELD_VALUE" and before.name != "SEND"]
    targets = map(code.target, yields)
    return agreed(
        False if target < 0 else _sole(Passage(judge, code, scope).run(target, flight), flight) for target in targets
    )


def _sole(fates: Fates, flight: Flight) -> Fate:
    fate = agreed(fates)
    return False if fate is flight else fate


def _class_fate(cls: type, dunder: str, flight: Flight) -> Fate:
    """What becomes of it in the block of a manager of this class."""
    if (cls.__module__, cls.__qualname__) == ("asyncio.taskgroups", "TaskGroup"):
        return grouped([flight])
    return _exit_fate(cls.__mro__, dunder)


def _exit_fate(mro: tuple[type, ...], dunder: str) -> bool | None:
    """False where the exit method of a class with this MRO is seen never to return a true value."""
    owner = next((n for n, base in enumerate(mro) if dunder in vars(base)), None)
    if owner is None:
        return None
    method = vars(mro[owner])[dunder]
    if type(method).__name__ == "instancemethod":  # made by pybind11
        method = method.__func__
    if type(method) in _C_METHODS or _is_plain(mro[owner]):
        return False
    return _never_true(method, mro[owner + 1 :], dunder) if type(method) is FunctionType else None


def _never_true(function: FunctionType, bases: tuple[type, ...], dunder: str) -> bool | None:
    """False where an exit function, given an exception, returns false or nothing, whichever way it goes."""
    plain = native_code(function.__code__)
    is_async = bool(plain.co_flags & inspect.CO_COROUTINE)
    if plain.co_flags & inspect.CO_GENERATOR or is_async != (dunder == "__aexit__"):
        return None
    code = code_of(plain)
    given = {*plain.co_varnames[: plain.co_argcount][-3:]} - code.rebound  # none of the three is None

    def is_false(tree: Tree) -> bool:
        match tree:
            case ("const", value):
                return not value
            case ("UNARY_NOT", ("local", name), _) | ("IS_OP", ("local", name), ("const", None), 0):
                return name in given
            case ("call", ("attr", inner, name), _) if inner == SUPER and name == dunder:
                return _exit_fate(bases, dunder) is False
        return False

    return False if code.returned and all(map(is_false, code.returned)) else None


def suspension(step: Any) -> tuple[FrameType, Any] | None:
    """The frame of a suspended coroutine or generator, and what it awaits."""
    kinds = {types.CoroutineType: "cr_await", types.GeneratorType: "gi_yieldfrom", types.AsyncGeneratorType: "ag_await"}
    onward = kinds.get(type(step), "")
    frame = getattr(step, onward[:3] + "frame") if onward else None
    return None if frame is None else (frame, getattr(step, onward))

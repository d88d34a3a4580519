"""What is done about a crash: actions, then one ending; frozen, and plain JSON on request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, TypeGuard

REPAIR_VERSION = 1
"""The value of ``daifu_repair`` in the JSON form; it grows when an old reader would misread a new repair."""

_TAG = "daifu_repair"
_RESTART_WORDS = ("crash", "edit")


def _expect_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be Python text (str), not {_kind(value)}")


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


class Refusal(Exception):
    """A repair can't be applied: says why; the crash stays as it was and the manager is asked again.

    Raised by the engine; a manager finds it as ``crash.refusal``.
    """

    @property
    def reason(self) -> str:
        """Why the repair can't be applied."""
        return str(self)


@dataclass(frozen=True)
class Pass:
    """The crashed statement runs again."""


@dataclass(frozen=True)
class Skip:
    """The crashed statement is left out; the run goes on after it."""


@dataclass(frozen=True)
class Continue:
    """The run goes on with the next iteration of the innermost loop."""


@dataclass(frozen=True)
class Break:
    """The run goes on after the innermost loop."""


@dataclass(frozen=True)
class Abort:
    """The original exception goes on as if it had never been intercepted."""


@dataclass(frozen=True)
class Return:
    """The unit returns the value of an expression.

    Parameters
    ----------
    expression
        Python text, evaluated in the crashed namespace.
    """

    expression: str = "None"

    def __post_init__(self) -> None:
        """Check what came over the border."""
        _expect_text(self.expression, "Return(expression)")


@dataclass(frozen=True)
class Surgery:
    """Code is replaced, for this run and for every later call; the run goes on in the new code.

    Parameters
    ----------
    source
        New text of the unit, or of the class, notebook cell or module that holds it.
    restart_at
        ``"crash"`` (the crashed statement), ``"edit"`` (the first changed statement), a line of `source`, or
        None for the default, which `crash.preview(source)` names.
    """

    source: str
    restart_at: str | int | None = None

    def __post_init__(self) -> None:
        """Check what came over the border."""
        _expect_text(self.source, "Surgery(source)")
        _check_restart_at(self.restart_at)


Ending: TypeAlias = Pass | Skip | Continue | Break | Abort | Return | Surgery

ENDINGS: dict[str, type[Ending]] = {
    "pass": Pass,
    "skip": Skip,
    "continue": Continue,
    "break": Break,
    "return": Return,
    "surgery": Surgery,
    "abort": Abort,
}
"""The word for each ending, as a rule, the prompt and the JSON form spell it."""

_WORDS: dict[type[Ending], str] = {ending: word for word, ending in ENDINGS.items()}
_BARE: dict[type, Ending] = {made: made() for made in (Pass, Skip, Continue, Break, Return, Abort)}


@dataclass(frozen=True)
class Action:
    """Code that runs in the crashed namespace of one frame.

    Parameters
    ----------
    code
        Python text.
    frame
        Which vaccinated frame on the stack: 0 is the innermost.
    """

    code: str
    frame: int = 0

    def __post_init__(self) -> None:
        """Check what came over the border."""
        _expect_text(self.code, "an action")
        _check_frame(self.frame)


@dataclass(frozen=True)
class Repair:
    """The one object that managers, rules, the history and ranks speak.

    Parameters
    ----------
    actions
        Python texts that run, in order, in the crashed namespace; an `Action` says in that of another frame.
    then
        The ending; a class without required fields (``Pass``) stands for its instance.
    frame
        Which vaccinated frame on the stack is repaired: 0 is the innermost.

    Raises
    ------
    TypeError
        If a part has the wrong type; the message says what to write.
    ValueError
        If `frame` is negative.
    """

    actions: tuple[str | Action, ...] = ()
    then: Ending = Pass()
    frame: int = 0

    def __post_init__(self) -> None:
        """Check what came over the border; take a list of actions and a bare ending class too."""
        object.__setattr__(self, "actions", _checked_actions(self.actions))
        object.__setattr__(self, "then", _checked_ending(self.then, "then"))
        _check_frame(self.frame)

    @classmethod
    def of(cls, value: object) -> Repair:
        """Give the repair that a manager's answer stands for.

        Parameters
        ----------
        value
            A `Repair`, or an ending (instance, or class such as `Pass`): a repair without actions.

        Raises
        ------
        TypeError
            If `value` is neither; the message says what a manager may return.
        """
        if isinstance(value, Repair):
            return value
        return cls(then=_checked_ending(value, "a repair manager's answer", "a Repair(...) or "))

    @property
    def word(self) -> str:
        """The ending's word: ``"pass"``, ``"skip"``, ..."""
        return _WORDS[type(self.then)]

    @property
    def in_words(self) -> str:
        """What is done, shortly: ``2 actions, then skip``."""
        count = len(self.actions)
        return f"{count} action{'s' * (count > 1)}, then " * bool(count) + self.word

    def each_action(self) -> Iterator[Action]:
        """The actions, each with its frame."""
        return (a if isinstance(a, Action) else Action(a, self.frame) for a in self.actions)

    def to_json(self) -> dict[str, Any]:
        """Give this repair as a plain dict that `from_json` reads."""
        then = {"kind": self.word} | vars(self.then)
        actions = [dict(vars(a)) if isinstance(a, Action) else a for a in self.actions]
        return {_TAG: REPAIR_VERSION, "actions": actions, "then": then, "frame": self.frame}

    @classmethod
    def from_json(cls, data: object) -> Repair:
        """Read what `to_json` gave.

        Raises
        ------
        ValueError
            If `data` is no repair, is of another version, or has a key that is not known.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"not a repair: expected a dict, got {_kind(data)}")
        if data.get(_TAG) != REPAIR_VERSION:
            version = f"expected {_TAG!r}: {REPAIR_VERSION}, got {data.get(_TAG)!r}"
            raise ValueError(f"not a repair that this version reads: {version}")
        _refuse_unknown(data, {_TAG, "actions", "then", "frame"}, "a repair")
        try:
            ending = _ending_from_json(data.get("then", {"kind": "pass"}))
            return cls(_actions_from_json(data.get("actions", ())), ending, data.get("frame", 0))
        except TypeError as error:
            raise ValueError(f"not a repair: {error}") from None


def _actions_from_json(data: Any) -> Any:
    if not isinstance(data, list | tuple):
        return data
    for action in data:
        if isinstance(action, Mapping):
            _refuse_unknown(action, {"code", "frame"}, "an action")
    return [Action(a.get("code", ""), a.get("frame", 0)) if isinstance(a, Mapping) else a for a in data]


def _ending_from_json(data: object) -> Ending:
    if not isinstance(data, Mapping):
        raise ValueError(f"a repair's 'then' must be a dict such as {{'kind': 'pass'}}, not {_kind(data)}")
    kind = data.get("kind")
    ending = ENDINGS.get(kind) if isinstance(kind, str) else None
    if ending is None:
        raise ValueError(f"unknown ending {kind!r}: one of {', '.join(ENDINGS)}")
    _refuse_unknown(data, {"kind", *(field.name for field in fields(ending))}, f"the ending {kind!r}")
    return ending(**{key: value for key, value in data.items() if key != "kind"})


def _refuse_unknown(data: Mapping[Any, Any], known: set[str], what: str) -> None:
    unknown = [repr(key) for key in data if key not in known]
    if unknown:
        raise ValueError(f"{what} has no {', '.join(unknown)}: it may have {', '.join(sorted(known))}")


def _checked_ending(value: object, where: str, also: str = "") -> Ending:
    if isinstance(value, Ending):
        return value
    if value is Surgery:
        raise TypeError(f"{where}: Surgery needs the new source: Surgery(source)")
    if isinstance(value, type) and value in _BARE:
        return _BARE[value]
    raise TypeError(
        f"{where} must be {also}an ending (Pass(), Skip(), Continue(), Break(), Return('expression'), "
        f"Surgery(source), Abort()), not {_kind(value)}"
    )


def _check_frame(value: object) -> None:
    if not _is_int(value):
        raise TypeError(f"frame must be an int (0: the innermost unit), not {_kind(value)}")
    if value < 0:
        raise ValueError(f"frame must not be negative, but is {value}")


def _checked_actions(value: object) -> tuple[str | Action, ...]:
    if isinstance(value, str | Action):
        raise TypeError("actions must be a tuple of Python texts: write actions=(code,)")
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"actions must be a tuple of Python texts, not {_kind(value)}")
    for action in value:
        if not isinstance(action, Action):
            _expect_text(action, "an action")
    return tuple(value)


def _check_restart_at(value: object) -> None:
    allowed = "'crash', 'edit', a line of the new source, or None"
    if isinstance(value, str) and value not in _RESTART_WORDS:
        raise ValueError(f"restart_at must be {allowed}, not {value!r}")
    if _is_int(value) and value < 1:
        raise ValueError(f"restart_at counts lines from 1, so it can't be {value}")
    if not (value is None or isinstance(value, str) or _is_int(value)):
        raise TypeError(f"restart_at must be {allowed}, not {_kind(value)}")

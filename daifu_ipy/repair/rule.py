"""One rule: which crashes it is for, and what is done about them."""

from __future__ import annotations

import builtins
import fnmatch
import functools
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from daifu_ipy.engine.repairs import Pass, Repair
from daifu_ipy.repair.view import CrashView

_MAX_MESSAGE = 10_000


@dataclass(frozen=True)
class Rule:
    r"""A pattern for crashes, and the repair for those that match all parts of it.

    Parameters
    ----------
    error
        The exception's class, or its name: ``"ValueError"``, ``"json.JSONDecodeError"``,
        ``"OSError | EOFError"``. Subclasses match. ``"*"`` is any `Exception`.
    message
        Regular expression that is searched for in the exception's message.
    unit
        Glob for the unit's qualified name, or its last part: ``"train"``, ``"Trainer.*"``.
    line
        First line of the crashed statement, as tracebacks number it.
    repair
        What is done; a bare ending stands for a repair without actions.
    limit
        How often the rule is used in all; None for any number of times.
    wait
        Seconds before the repair.

    Raises
    ------
    TypeError, ValueError
        If a part is not of this form; the message says what to write.
    """

    error: str | type[BaseException] = "*"
    message: str | None = None
    unit: str | None = None
    line: int | None = None
    repair: Repair = field(default_factory=lambda: Repair(then=Pass()))
    limit: int | None = 1
    wait: float = 0.0

    def __post_init__(self) -> None:
        """Check what came over the border."""
        _check_error(self.error)
        _check_text(self.message, "message (a regular expression)")
        _check_text(self.unit, "unit (a glob for the qualified name)")
        _check_count(self.line, "line")
        _check_count(self.limit, "limit")
        object.__setattr__(self, "repair", Repair.of(self.repair))
        if isinstance(self.wait, bool) or not isinstance(self.wait, (int, float)):
            raise TypeError(f"wait must be seconds, not {type(self.wait).__name__}")
        if not 0 <= self.wait < math.inf:
            raise ValueError(f"wait must be seconds from 0 on, but is {self.wait}")
        if self.message is not None:
            _compiled(self.message)

    def matches(self, crash: CrashView) -> bool:
        """Whether the crash has all parts of the pattern."""
        error, restart = crash.exception, crash.restart
        return (
            error is not None
            and _is_a(type(error), self.error)
            and (self.line is None or restart.line == self.line)
            and (self.unit is None or _has_name(restart.unit, self.unit))
            and (self.message is None or _compiled(self.message).search(_message(error)) is not None)
        )

    def to_json(self) -> dict[str, Any]:
        """Give this rule as a plain dict that `from_json` reads."""
        error = self.error if isinstance(self.error, str) else f"{self.error.__module__}.{self.error.__qualname__}"
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        return parts | {"error": error, "repair": self.repair.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rule:
        """Read what `to_json` gave; parts may be missing.

        Raises
        ------
        TypeError, ValueError
            If a key is not known, or a value is not of its form.
        """
        known = [part.name for part in fields(cls)]
        unknown = [str(key) for key in data if key not in known]
        if unknown:
            raise ValueError(f"a rule has no {', '.join(unknown)}: it may have {', '.join(known)}")
        repair = data.get("repair", Repair())
        return cls(**{**data, "repair": Repair.from_json(repair) if isinstance(repair, Mapping) else repair})


def _is_a(kind: type, error: str | type[BaseException]) -> bool:
    if isinstance(error, type):
        return issubclass(kind, error)
    return any(_has_base(kind, name.strip()) for name in error.split("|"))


def _has_base(kind: type, name: str) -> bool:
    """Whether a class or a base of it has this name; found without importing anything."""
    if name == "*":
        return issubclass(kind, Exception)
    named = _find_class(name)
    return any(base is named or _has_name(f"{base.__module__}.{base.__qualname__}", name) for base in kind.__mro__)


def _find_class(name: str) -> object:
    """What a dotted name means now: it need not be the class's own (``torch.cuda.OutOfMemoryError``)."""
    module, _, attribute = name.rpartition(".")
    found = sys.modules.get(module) if module else builtins
    return None if found is None else vars(found).get(attribute)


def _has_name(qualified: str, pattern: str) -> bool:
    """Whether the glob fits a dotted name from its beginning or from after any dot."""
    parts = qualified.split(".")
    return any(fnmatch.fnmatchcase(".".join(parts[start:]), pattern) for start in range(len(parts)))


def _message(error: BaseException) -> str:
    try:
        return str(error)[:_MAX_MESSAGE]
    except Exception:  # the user's own __str__
        return ""


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"message {pattern!r} is no regular expression: {error}") from None


def _check_error(error: object) -> None:
    if isinstance(error, type) and issubclass(error, BaseException):
        return
    if not isinstance(error, str):
        raise TypeError(f"error must be an exception class or its name, not {error!r}")
    for name in error.split("|"):
        if name.strip() != "*" and not all(part.isidentifier() for part in name.strip().split(".")):
            raise ValueError(f"error must be a class's name ('OSError', 'json.JSONDecodeError', '*'), not {name!r}")


def _check_text(value: object, what: str) -> None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{what} must be text, not {type(value).__name__}")


def _check_count(value: object, what: str) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} must be a number from 1 on, or None, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{what} must be a number from 1 on, but is {value}")

"""One rule: which crashes it is for, and what is done about them."""

from __future__ import annotations

import builtins
import fnmatch
import functools
import glob
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import WrapperDescriptorType
from typing import Any

from daifu_ipy.engine.repairs import Ending, Pass, Repair
from daifu_ipy.repair.builtin_values import arguments_of
from daifu_ipy.repair.deadline import ask
from daifu_ipy.repair.view import CrashView

_MAX_MESSAGE = 10_000
_PLAIN = (str, int, float, bool, type(None))

IN_A_ROW = 10
"""How often a rule without any limit runs one statement again that fails each time."""


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
        How often the rule is used in all, in one run of a cell; None for any number of times.
    wait
        Seconds before the repair.
    file
        Glob for the file that the unit is in, or the last parts of its path.
    in_a_row
        How often the rule runs one statement again that fails each time; a success starts anew. None: as `limit`
        says, and `IN_A_ROW` where that is None, so that no rule retries for ever what can't succeed.
    backoff
        Each further use in a row waits so many times longer.
    max_wait
        The longest wait in seconds.
    in_loop
        The repair is for the innermost vaccinated frame on the stack that is in a loop, and not for its own `frame`:
        ``Continue()`` leaves that loop's item out, wherever the work on it failed. The rule leaves a crash inside
        a comprehension to others: which loop's item that is, is not known.
    name
        What reports call the rule.

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
    file: str | None = None
    in_a_row: int | None = None
    backoff: float = 1.0
    max_wait: float = 60.0
    in_loop: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        """Check what came over the border."""
        _check_error(self.error)
        _check_text(self.message, "message (a regular expression)")
        _check_text(self.unit, "unit (a glob for the qualified name)")
        _check_count(self.line, "line")
        _check_count(self.limit, "limit")
        _check_count(self.in_a_row, "in_a_row")
        _check_text(self.file, "file (a glob for its path)")
        object.__setattr__(self, "repair", Repair.of(self.repair))
        _check_number(self.wait, "wait must be seconds", 0)
        _check_number(self.max_wait, "max_wait must be seconds", 0)
        _check_number(self.backoff, "backoff must be a factor", 1)
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
            and (self.file is None or _is_file(restart.filename, self.file))
            and (self.message is None or _says(error, self.message))
        )

    @classmethod
    def here(cls, crash: CrashView, repair: Repair | Ending, limit: int | None = 1) -> Rule:
        """Make the rule that repairs crashes of this type at this place alike."""
        restart, error = crash.restart, crash.exception
        kind: str | type[BaseException] = "*" if error is None else type(error)
        made = Repair.of(repair)
        file = glob.escape(restart.filename)
        return cls(
            kind,
            unit=glob.escape(restart.unit),
            line=restart.line,
            repair=made,
            limit=limit,
            file=file,
            name="same here",
        )

    @property
    def most_in_a_row(self) -> int | None:
        """How often it runs one statement again that fails each time; None: only `limit` counts."""
        return IN_A_ROW if self.in_a_row is None and self.limit is None else self.in_a_row

    def wait_before(self, in_a_row: int) -> float:
        """Seconds to wait before the n-th use in a row."""
        longest = max(self.wait, self.max_wait)
        try:
            return min(self.wait * self.backoff ** (in_a_row - 1), longest)
        except OverflowError:
            return longest

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


def is_like(error: BaseException, kind: str | type[BaseException], message: str | None) -> bool:
    """Whether an exception is of this kind, and says this, as a rule means it."""
    return _is_a(type(error), kind) and (message is None or _says(error, message))


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


def _is_file(filename: str, pattern: str) -> bool:
    """Whether the glob fits a path, or its last parts."""
    parts = filename.replace("\\", "/").split("/")
    wanted = pattern.replace("\\", "/")
    return any(fnmatch.fnmatchcase("/".join(parts[start:]), wanted) for start in range(len(parts)))


def _says(error: BaseException, pattern: str) -> bool:
    return _compiled(pattern).search(_message(error)) is not None


def _message(error: BaseException) -> str:
    """What `str` gives; nothing, where that is foreign code and fails or is late: our words for that must not match."""
    if type(type(error).__str__) is WrapperDescriptorType and all(type(a) in _PLAIN for a in arguments_of(error)):
        return str(error)[:_MAX_MESSAGE]
    said = ""

    def say() -> str:
        nonlocal said
        said = str(error)
        return said

    ask(type(error), say, "message")
    return said[:_MAX_MESSAGE]


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


def _check_number(value: object, what: str, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what}, not {type(value).__name__}")
    if not least <= value < math.inf:
        raise ValueError(f"{what} from {least} on, but is {value}")

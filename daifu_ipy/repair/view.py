"""What rules, views and front ends use of a crash: structural types that the engine's crash fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from daifu_ipy.engine.action import ActionResult
from daifu_ipy.engine.repairs import Repair


class RestartView(Protocol):
    """Where the run would go on."""

    @property
    def line(self) -> int:
        """First line of the crashed statement, in its file or notebook cell."""
        ...

    @property
    def statement(self) -> str:
        """The statement's text."""
        ...

    @property
    def kind(self) -> str:
        """Which part of the statement was executing."""
        ...

    @property
    def filename(self) -> str:
        """The file of the unit."""
        ...

    @property
    def unit(self) -> str:
        """The unit's qualified name."""
        ...


class CrashView(Protocol):
    """A crash that waits for a repair."""

    @property
    def exception(self) -> BaseException | None:
        """The exception; None once the crash is closed."""
        ...

    @property
    def refusal(self) -> str | None:
        """Why the last repair could not be applied."""
        ...

    @property
    def restart(self) -> RestartView:
        """Where the run would go on."""
        ...

    @property
    def stack(self) -> Any:
        """The traceback from the crashed unit inwards, or records of its frames."""
        ...

    @property
    def namespace(self) -> Mapping[str, Any]:
        """The crashed unit's variables by name."""
        ...

    @property
    def repeats(self) -> Sequence[str]:
        """What has begun already and would run again in a retry."""
        ...

    @property
    def stale(self) -> Sequence[str]:
        """Names that the statement would have bound and that hold an older value."""
        ...

    @property
    def progress(self) -> Sequence[Any]:
        """Where each loop around the crash stands, outermost first: ``line``, ``header``, ``target``."""
        ...

    @property
    def frames(self) -> Sequence[Any]:
        """The vaccinated frames on the stack, innermost first."""
        ...

    def decide(self, repair: Repair) -> bool:
        """Decide it, from any thread; False if somebody was first."""
        ...

    def failed_again(self, frame: int = 0) -> bool | None:
        """Whether a statement that was run again has failed again, with no success in between; None if unknown."""
        ...

    def action(self, code: str, frame: int = 0) -> ActionResult:
        """Run code in the crashed namespace."""
        ...


Answer: TypeAlias = Callable[[CrashView], Repair | None]
"""Something that may answer a crash: None leaves it to whoever comes next."""

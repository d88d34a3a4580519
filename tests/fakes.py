"""A crash as rules, views and front ends see it, without an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from daifu_ipy.engine.action import ActionResult, Namespace, run_action


@dataclass
class FakeCrash:
    """Takes actions on `variables`; everything else is as it is set."""

    exception: BaseException | None = field(default_factory=lambda: ValueError("bad label"))
    unit: str = "train"
    line: int = 15
    statement: str = "loss = f(batch)"
    refusal: str | None = None
    repeats: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    variables: dict[str, Any] = field(default_factory=dict)
    stack: Any = None
    again: bool | None = False
    progress: tuple[Any, ...] = ()
    frames: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        self.space = Namespace(self.variables, local_names=frozenset(self.variables))
        self.done: list[str] = []

    @property
    def restart(self) -> Any:
        return SimpleNamespace(
            unit=self.unit, line=self.line, statement=self.statement, kind="statement", filename="train.py"
        )

    @property
    def namespace(self) -> dict[str, Any]:
        return self.space.visible()

    def failed_again(self, frame: int = 0) -> bool | None:
        return self.again

    def decide(self, repair: Any) -> bool:
        first = not hasattr(self, "decision")
        if first:
            self.decision = repair
        return first

    def action(self, code: str, frame: int = 0) -> ActionResult:
        self.done.append(code)
        return run_action(code, self.space)

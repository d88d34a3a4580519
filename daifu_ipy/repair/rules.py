"""Rules that answer crashes without a person: the first that matches, a bounded number of times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from daifu_ipy.engine.repairs import Repair
from daifu_ipy.repair import places
from daifu_ipy.repair.rule import Rule
from daifu_ipy.repair.rule_text import RuleError, parse_repair, parse_rules
from daifu_ipy.repair.summary import error_text
from daifu_ipy.repair.view import CrashView

__all__ = ["Rule", "RuleError", "Rules", "read_rules"]

RuleSource: TypeAlias = Rule | str | Mapping[str, Any] | Iterable["RuleSource"] | None
"""A rule, rules in text form, a rule in JSON form, or several of these."""


@dataclass
class _Asked:
    """What one thread's present crash was answered: by which rule last, and by which in vain."""

    last: int | None = None
    refused: set[int] = field(default_factory=set)


class Rules:
    """A repair manager: the first rule that matches and is not used up answers.

    Parameters
    ----------
    rules
        Asked in this order. See `read_rules` for their text and JSON forms.
    sleep
        Called with a rule's `wait`.
    show
        Called with one line about each answer.
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        *,
        sleep: Callable[[float], object] = time.sleep,
        show: Callable[[str], object] = print,
    ) -> None:
        self.rules = tuple(rules)
        self._sleep, self._show = sleep, show
        self._uses = [0] * len(self.rules)
        self._asked: dict[int, _Asked] = {}  # by thread
        self._lock = threading.Lock()

    @property
    def uses(self) -> tuple[int, ...]:
        """How often each rule was used."""
        return tuple(self._uses)

    def __call__(self, crash: CrashView) -> Repair | None:
        """Give the first matching rule's repair, after its wait; None if there is no such rule.

        A rule whose repair was refused is not asked again about the same crash, and the use is not counted.
        """
        matching = [index for index, rule in enumerate(self.rules) if rule.matches(crash)]
        chosen = self._choose(matching, refused=crash.refusal is not None)
        if chosen is None:
            return None
        rule = self.rules[chosen]
        self._show(self._line(crash, chosen))
        if rule.wait > 0:
            self._sleep(rule.wait)
        return rule.repair

    def _choose(self, matching: list[int], *, refused: bool) -> int | None:
        with self._lock:
            asked = self._asked.setdefault(threading.get_ident(), _Asked())
            if not refused:
                asked.refused.clear()
            elif asked.last is not None:
                asked.refused.add(asked.last)
                self._uses[asked.last] -= 1
            asked.last = next((index for index in matching if self._may(index, asked.refused)), None)
            if asked.last is not None:
                self._uses[asked.last] += 1
            return asked.last

    def _may(self, index: int, refused: set[int]) -> bool:
        limit = self.rules[index].limit
        return index not in refused and (limit is None or self._uses[index] < limit)

    def _line(self, crash: CrashView, index: int) -> str:
        rule, restart = self.rules[index], crash.restart
        actions = f"{len(rule.repair.actions)} action{'s' * (len(rule.repair.actions) > 1)}, then "
        done = f"{actions * bool(rule.repair.actions)}{rule.repair.word}"
        after = f" after {rule.wait:g} s" * (rule.wait > 0)
        use = f"{self._uses[index]}" + (f" of {rule.limit}" if rule.limit is not None else "")
        error = error_text(crash.exception, 100)
        place = f"in {places.place(restart)}"
        return f"daifu: {error}, {place}: {done}{after} (rule {index + 1}, use {use})"


def read_rules(source: RuleSource) -> list[Rule]:
    """Read rules from any of their forms, as ``c.Daifu.rules`` takes them.

    Parameters
    ----------
    source
        Text (see `rule_text`), a dict with the fields of `Rule` (its ``repair`` in JSON form, or in the text
        form of what stands right of the arrow), a rule, or a list of these.

    Raises
    ------
    RuleError
        If a text can't be read.
    TypeError, ValueError
        If a field of a dict is not of its form.
    """
    if source is None:
        return []
    if isinstance(source, Rule):
        return [source]
    if isinstance(source, str):
        return parse_rules(source)
    if isinstance(source, Mapping):
        repair = source.get("repair")
        return [Rule.from_json({**source, "repair": parse_repair(repair)} if isinstance(repair, str) else source)]
    if isinstance(source, Iterable):
        return [rule for part in source for rule in read_rules(part)]
    raise TypeError(f"rules must be text, a dict, or a list of these, not {type(source).__name__}")

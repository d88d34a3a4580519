"""Rules that answer crashes without a person: the first that matches, a bounded number of times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from daifu_ipy.engine.repairs import Repair
from daifu_ipy.repair import places
from daifu_ipy.repair.deadline import one_budget
from daifu_ipy.repair.in_a_row import Place, Row, next_row, place_of
from daifu_ipy.repair.items import frame_in_loop
from daifu_ipy.repair.rule import Rule
from daifu_ipy.repair.rule_text import RuleError, parse_repair, parse_rules
from daifu_ipy.repair.summary import error_text
from daifu_ipy.repair.view import CrashView

__all__ = ["Report", "Rule", "RuleError", "Rules", "SameHere", "read_rules"]

RuleSource: TypeAlias = Rule | str | Mapping[str, Any] | Iterable["RuleSource"] | None
"""A rule, rules in text form, a rule in JSON form, or several of these."""


@dataclass(frozen=True)
class SameHere:
    """A front end's answer: this repair, and the same for crashes of this type at this place, `times` in all."""

    repair: Repair
    times: int | None = 1

    def __post_init__(self) -> None:
        """Check what came over the border."""
        Rule(repair=self.repair, limit=self.times)


@dataclass(frozen=True)
class Report:
    """What one use of a rule is reported as; `rule` tells whose line it is, and `use` counts on."""

    text: str
    rule: int
    use: int
    limit: int | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def is_milestone(self) -> bool:
        """Whether it is worth a line of its own in a log: the first ones, then ever fewer, and the last."""
        return self.use <= 3 or self.use & (self.use - 1) == 0 or self.use == self.limit


def print_milestones(report: Report, show: Callable[[Report], object] = print) -> None:
    """Report in a log: a rule that is used a thousand times gives a dozen lines."""
    if report.is_milestone:
        show(report)


@dataclass(eq=False)
class _Use:
    """One rule, and what became of it; `on_trial`: added with an answer that may be refused yet."""

    rule: Rule
    number: int
    count: int = 0
    rows: dict[Place, Row] = field(default_factory=dict)
    on_trial: bool = False


@dataclass
class _Asked:
    """What one thread's present crash was answered: by which rule last, and by which in vain."""

    last: _Use | None = None
    refused: set[_Use] = field(default_factory=set)


class Rules:
    """A repair manager: the first rule that matches and is not used up answers.

    Parameters
    ----------
    rules
        Asked in this order. See `read_rules` for their text and JSON forms.
    sleep
        Called with a rule's wait.
    show
        Called with a `Report` for each answer; by default the telling ones are printed.
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        *,
        sleep: Callable[[float], object] = time.sleep,
        show: Callable[[Report], object] = print_milestones,
    ) -> None:
        self._uses = [_Use(rule, number) for number, rule in enumerate(rules, 1)]
        self._sleep, self._show = sleep, show
        self._asked: dict[int, _Asked] = {}  # by thread
        self._lock = threading.Lock()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules, in the order in which they are asked."""
        return tuple(use.rule for use in self._uses)

    @property
    def uses(self) -> tuple[int, ...]:
        """How often each rule was used."""
        return tuple(use.count for use in self._uses)

    @property
    def answered(self) -> str | None:
        """Which rule answered this thread's present crash, and which use of it that was; None if none did."""
        asked = self._asked.get(threading.get_ident())
        if asked is None or asked.last is None or asked.last.on_trial:
            return None
        return _named(asked.last)

    def add(self, rule: Rule, *, used: bool = False) -> None:
        """Put a rule before the others; `used`: its repair answers this thread's present crash already."""
        with self._lock:
            added = _Use(rule, len(self._uses) + 1, count=int(used), on_trial=used)
            self._uses.insert(0, added)
            if used:
                self._asked.setdefault(threading.get_ident(), _Asked()).last = added

    def __call__(self, crash: CrashView) -> Repair | None:
        """Give the first matching rule's repair, after its wait; None if there is no such rule.

        A rule whose repair was refused is not asked again about the same crash, and the use is not counted.
        """
        with one_budget():
            chosen = self._choose(crash, self._settled(refused=crash.refusal is not None))
            if chosen is None:
                return None
            use, repair, in_a_row = chosen
            wait = use.rule.wait_before(in_a_row)
            report = _report(crash, use, repair, wait, in_a_row)
        self._show(report)
        if wait > 0:
            self._sleep(wait)
        return repair

    def _settled(self, *, refused: bool) -> _Asked:
        """What this thread was answered: for good, unless it was refused."""
        with self._lock:
            asked = self._asked.setdefault(threading.get_ident(), _Asked())
            if not refused:
                asked.refused.clear()
                if asked.last is not None:
                    asked.last.on_trial = False
            elif asked.last is not None:
                self._take_back(asked.last)
                asked.refused.add(asked.last)
            asked.last = None
            return asked

    def _choose(self, crash: CrashView, asked: _Asked) -> tuple[_Use, Repair, int] | None:
        """The first rule that may answer, what it answers, and the how manieth time in a row."""
        place = place_of(crash)
        for use in tuple(self._uses):
            if use in asked.refused or not use.rule.matches(crash):
                continue
            repair = _repair(use.rule, crash)
            if repair is None:
                continue
            row = next_row(use.rows.get(place), crash, repair.frame)
            with self._lock:  # not while rules are matched: that may run the program's code
                if _may(use, row):
                    use.count += 1
                    use.rows[place] = row
                    asked.last = use
                    return use, repair, row.count
        return None

    def _take_back(self, use: _Use) -> None:
        use.count -= 1
        if use.on_trial:
            self._uses.remove(use)


def _may(use: _Use, row: Row) -> bool:
    limit, most = use.rule.limit, use.rule.most_in_a_row
    return (limit is None or use.count < limit) and (most is None or row.count <= most)


def _repair(rule: Rule, crash: CrashView) -> Repair | None:
    """The rule's repair for this crash; None if it has none."""
    if not rule.in_loop:
        return rule.repair
    frame = frame_in_loop(crash)
    return None if frame is None else replace(rule.repair, frame=frame)


def _named(use: _Use) -> str:
    limit = f" of {use.rule.limit}" if use.rule.limit is not None else ""
    return f"{use.rule.name or f'rule {use.number}'}, use {use.count}{limit}"


def _report(crash: CrashView, use: _Use, repair: Repair, wait: float, in_a_row: int) -> Report:
    done = repair.in_words + f" in frame {repair.frame}" * bool(repair.frame)
    after = f" after {wait:g} s" * (wait > 0)
    error, place = error_text(crash.exception, 100), f"in {places.place(crash.restart)}"
    row = f", {in_a_row} in a row" * (in_a_row > 1)
    text = f"daifu: {error}, {place}: {done}{after} ({_named(use)}{row})"
    return Report(text, use.number, use.count, use.rule.limit)


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

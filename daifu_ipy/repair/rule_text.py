"""The text form of rules, for ``%%daifu --rules "..."``.

::

    OSError | TimeoutError -> pass, limit=5, wait=0.5
    ValueError ~ 'only one class' @ train:15 -> skip, limit=none
    KeyError @ Trainer.* -> action "vocab.update(new(words))" then pass
    * -> return "None"; transient-io, in_a_row=8; skip-item @ train
    OSError -> pass, limit=none, in_a_row=5, wait=1, backoff=2, max_wait=60
    ValueError -> continue, frame=loop, limit=100

A name of `rule_sets.SETS` stands for the rules of that set; ``@``, an arrow and options change them all (an arrow where
a set leaves an item out: it does this instead).

Rules are separated by ``;`` or a new line; ``#`` starts a comment. What stands in quotes is taken as it is
(only the backslash before such a quote is dropped), so that patterns and code need no doubling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from daifu_ipy.engine.repairs import ENDINGS, Ending, Pass, Repair, Return
from daifu_ipy.repair.rule import Rule
from daifu_ipy.repair.rule_sets import SETS

SYNTAX = "ERROR [| ERROR] [~ 'regex'] [@ unit[:line]] -> [action \"code\" then] ENDING [, OPTION=VALUE ...]"
"""The form of a rule, as error messages and help show it."""

OPTIONS = "limit=N, limit=none, in_a_row=N, wait=SECONDS, backoff=FACTOR, max_wait=SECONDS, file='GLOB', frame=N, \
frame=loop"
"""The options of a rule."""

ENDING_WORDS = tuple(word for word in ENDINGS if word != "surgery")

_TOKEN = re.compile(
    r"""(?P<space>[^\S\n]+|\#[^\n]*)
    | (?P<end>[;\n])
    | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<number>\d+(?:\.\d+)?(?![\w.]))
    | (?P<word>[A-Za-z_*?<][\w.*?<>]*(?:-(?!>)[\w.*?<>]+)*)
    | (?P<sign>->|[~@:,=|])""",
    re.VERBOSE | re.DOTALL,
)


class RuleError(ValueError):
    """The text of a rule can't be read: shows the place and what may stand there."""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int


def parse_rules(text: str) -> list[Rule]:
    """Read rules.

    Raises
    ------
    RuleError
        If the text is not of the form above.
    """
    parser = _Parser(text)
    rules: list[Rule] = []
    while parser.skip_ends():
        rules += parser.rule()
    return rules


def parse_repair(text: str) -> Repair:
    """Read what stands right of the arrow, without options.

    Raises
    ------
    RuleError
        If the text is not of this form.
    """
    parser = _Parser(text)
    repair = parser.repair()
    if parser.skip_ends():
        parser.fail("nothing more")
    return repair


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._scan())
        self._at = 0

    def _scan(self) -> Iterator[_Token]:
        start = 0
        while start < len(self._text):
            found = _TOKEN.match(self._text, start)
            if found is None:
                quote = self._text[start] in "'\""
                self._fail_at(start, "the closing quote is missing" if quote else f"can't read {self._text[start]!r}")
            if found.lastgroup != "space":
                yield _Token(str(found.lastgroup), found.group(), start)
            start = found.end()
        yield _Token("end", "", len(self._text))

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _is(self, *texts: str) -> bool:
        return self._next.kind in ("word", "sign") and self._next.text in texts

    def _take(self, kind: str, expected: str) -> str:
        if self._next.kind != kind:
            self.fail(expected)
        self._at += 1
        return self._tokens[self._at - 1].text

    def _accept(self, text: str) -> bool:
        found = self._is(text)
        self._at += found
        return found

    def skip_ends(self) -> bool:
        """Go to the next rule; False if there is none."""
        while self._next.kind == "end" and self._at < len(self._tokens) - 1:
            self._at += 1
        return self._next.kind != "end"

    def rule(self) -> list[Rule]:
        """One rule, or the rules of a named set."""
        start = self._next
        made = self._set() if start.text in SETS and start.kind == "word" else [self._own_rule()]
        changes = dict(self._option() for _ in iter(lambda: self._accept(","), False))
        if self._next.kind != "end":
            self.fail("',' and an option, or ';' and the next rule")
        frame = changes.pop("frame", None)
        try:
            made = [replace(rule, **changes) for rule in made]
        except ValueError as error:
            self._fail_at(start.start, str(error))
        return made if frame is None else [_in_frame(rule, frame) for rule in made]

    def _set(self) -> list[Rule]:
        made = SETS[self._take("word", "the name of a set")]
        if self._accept("@"):
            unit, line = self._place()
            made = tuple(replace(rule, unit=unit, line=line) for rule in made)
        if self._accept("->"):
            repair, has_items = self.repair(), any(rule.in_loop for rule in made)
            made = tuple(_instead(rule, repair) if rule.in_loop or not has_items else rule for rule in made)
        return list(made)

    def _own_rule(self) -> Rule:
        start = self._next.start
        errors = [self._take("word", "the name of an exception, '*', or a set: " + ", ".join(SETS))]
        while self._accept("|"):
            errors.append(self._take("word", "the name of an exception"))
        message = self._string("a regular expression in quotes") if self._accept("~") else None
        unit, line = self._place() if self._accept("@") else (None, None)
        if not self._accept("->"):
            self.fail("'->' and what is done" if message or unit or line else "'->', '~', '@' or '|'")
        try:
            return Rule(" | ".join(errors), message, unit, line, self.repair())
        except RuleError:
            raise
        except ValueError as error:
            self._fail_at(start, str(error))

    def _place(self) -> tuple[str | None, int | None]:
        unit = None if self._is(":") else self._take("word", "a unit's name, as in train:15, or :15")
        return unit, (self._whole("a line number") if self._accept(":") else None)

    def repair(self) -> Repair:
        """Actions, and an ending; without one, the statement runs again."""
        actions: list[str] = []
        while self._accept("action"):
            actions.append(self._string("code in quotes"))
            if not self._accept("then"):
                return Repair(tuple(actions), Pass())
        return Repair(tuple(actions), self._ending())

    def _ending(self) -> Ending:
        if self._next.text not in ENDING_WORDS:
            self.fail("one of " + ", ".join([*ENDING_WORDS, 'action "code"']))
        word = self._take("word", "an ending")
        if word == "return":
            return Return(self._string("")) if self._next.kind == "string" else Return()
        return Repair.of(ENDINGS[word]).then

    def _option(self) -> tuple[str, Any]:
        if not self._is(*_OPTIONS):
            self.fail(OPTIONS)
        name = self._take("word", "an option")
        if not self._accept("="):
            self.fail("'='")
        return name, _OPTIONS[name](self)

    def _limit(self) -> int | None:
        return None if self._accept("none") else self._whole("a number, as in limit=3")

    def _frame(self) -> int | str:
        return "loop" if self._accept("loop") else self._whole("a number, as in frame=1, or loop", 0)

    def _number(self, expected: str) -> float:
        return float(self._take("number", expected))

    def _string(self, expected: str) -> str:
        quoted = self._take("string", expected)
        return quoted[1:-1].replace(f"\\{quoted[0]}", quoted[0])

    def _whole(self, expected: str, least: int = 1) -> int:
        if "." in self._next.text or (self._next.text.isdigit() and int(self._next.text) < least):
            self.fail(f"{expected}, a whole number from {least} on")
        return int(self._take("number", expected))

    def fail(self, expected: str) -> NoReturn:
        """Raise an error at the next token."""
        got = repr(self._next.text) if self._next.text.strip() else "the end of the rule"
        self._fail_at(self._next.start, f"expected {expected}, got {got}")

    def _fail_at(self, start: int, problem: str) -> NoReturn:
        begin = self._text.rfind("\n", 0, start) + 1
        line = self._text[begin:].partition("\n")[0]
        raise RuleError(f"rules: {problem}\n    {line}\n    {' ' * (start - begin)}^\na rule is: {SYNTAX}")


_OPTIONS: dict[str, Callable[[_Parser], Any]] = {
    "limit": _Parser._limit,
    "in_a_row": lambda parser: parser._whole("a number, as in in_a_row=5"),
    "wait": lambda parser: parser._number("seconds, as in wait=0.5"),
    "backoff": lambda parser: parser._number("a factor, as in backoff=2"),
    "max_wait": lambda parser: parser._number("seconds, as in max_wait=60"),
    "file": lambda parser: parser._string("a glob in quotes, as in file='data.py'"),
    "frame": _Parser._frame,
}


def _in_frame(rule: Rule, frame: int | str) -> Rule:
    if isinstance(frame, str):
        return replace(rule, in_loop=True)
    return replace(rule, in_loop=False, repair=replace(rule.repair, frame=frame))


def _instead(rule: Rule, repair: Repair) -> Rule:
    """The rule with another ending; what it does before stays."""
    return replace(rule, in_loop=False, repair=replace(repair, actions=(*rule.repair.actions, *repair.actions)))

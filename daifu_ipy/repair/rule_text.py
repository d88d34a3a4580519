"""The text form of rules, for ``%%daifu --rules "..."``.

::

    OSError | TimeoutError -> pass, limit=5, wait=0.5
    ValueError ~ 'only one class' @ train:15 -> skip, limit=none
    KeyError @ Trainer.* -> action "vocab.update(new(words))" then pass
    * -> return "None"; transient-io

Rules are separated by ``;`` or a new line; ``#`` starts a comment. What stands in quotes is taken as it is
(only the backslash before such a quote is dropped), so that patterns and code need no doubling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

from daifu_ipy.engine.repairs import ENDINGS, Ending, Pass, Repair, Return
from daifu_ipy.repair.rule import Rule

SYNTAX = "ERROR [| ERROR] [~ 'regex'] [@ unit[:line]] -> [action \"code\" then] ENDING [, limit=N] [, wait=S]"
"""The form of a rule, as error messages and help show it."""

ENDING_WORDS = tuple(word for word in ENDINGS if word != "surgery")

SETS: dict[str, tuple[Rule, ...]] = {
    "transient-io": (
        Rule(
            "OSError | TimeoutError | http.client.HTTPException | urllib3.exceptions.HTTPError",
            limit=5,
            wait=1.0,
        ),
    ),
}
"""Rules with a name: the name alone, with options if wanted, stands for them."""

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
        if start.text in SETS and start.kind == "word":
            self._at += 1
            made = list(SETS[start.text])
        else:
            made = [self._own_rule()]
        changes = dict(self._option() for _ in iter(lambda: self._accept(","), False))
        if self._next.kind != "end":
            self.fail("',' and an option, or ';' and the next rule")
        frame = changes.pop("frame", None)
        made = [replace(rule, **changes) for rule in made]  # type: ignore[arg-type]
        return made if frame is None else [replace(r, repair=replace(r.repair, frame=int(frame))) for r in made]

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
        return Repair.from_json({"daifu_repair": 1, "then": {"kind": word}}).then

    def _option(self) -> tuple[str, float | None]:
        if not self._is("limit", "wait", "frame"):
            self.fail("limit=N, limit=none, wait=SECONDS or frame=N")
        name = self._take("word", "an option")
        if not self._accept("="):
            self.fail("'='")
        if name == "limit" and self._accept("none"):
            return name, None
        if name == "wait":
            return name, float(self._take("number", "seconds, as in wait=0.5"))
        return name, self._whole("a number, as in limit=3", 0 if name == "frame" else 1)

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

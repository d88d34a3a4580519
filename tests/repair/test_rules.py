"""Rules: what matches, how often, how long they wait, and how they are written. Nothing here sleeps."""

from __future__ import annotations

import json
import threading

import pytest

from daifu_ipy.engine.repairs import Abort, Break, Continue, Pass, Repair, Return, Skip, Surgery
from daifu_ipy.repair.rule_text import SETS, parse_repair
from daifu_ipy.repair.rules import Rule, RuleError, Rules, read_rules
from tests.fakes import FakeCrash

SKIP = Repair(then=Skip())


class Answers(Rules):
    """Rules that note instead of waiting and printing."""

    def __init__(self, source):
        self.waits, self.lines = [], []
        super().__init__(read_rules(source), sleep=self.waits.append, show=self.lines.append)


class Quiet(Exception):
    def __str__(self):
        raise ValueError


class Outer:
    class Inner(KeyError):
        pass


@pytest.mark.parametrize(
    ("pattern", "error", "matches"),
    [
        ({"error": "ValueError"}, ValueError("x"), True),
        ({"error": "ValueError"}, UnicodeError("x"), True),
        ({"error": "UnicodeError"}, ValueError("x"), False),
        ({"error": "Exception"}, ValueError("x"), True),
        ({"error": "*"}, ValueError("x"), True),
        ({}, ValueError("x"), True),
        ({"error": "*"}, KeyboardInterrupt(), False),
        ({"error": "BaseException"}, KeyboardInterrupt(), True),
        ({"error": ValueError}, UnicodeError("x"), True),
        ({"error": ValueError}, KeyError("x"), False),
        ({"error": "OSError | ValueError"}, ValueError("x"), True),
        ({"error": "OSError|KeyError"}, ValueError("x"), False),
        ({"error": "IOError"}, OSError("x"), True),
        ({"error": "builtins.ValueError"}, ValueError("x"), True),
        ({"error": "json.JSONDecodeError"}, json.JSONDecodeError("m", "d", 0), True),
        ({"error": "json.decoder.JSONDecodeError"}, json.JSONDecodeError("m", "d", 0), True),
        ({"error": "JSONDecodeError"}, json.JSONDecodeError("m", "d", 0), True),
        ({"error": "Outer.Inner"}, Outer.Inner("x"), True),
        ({"error": "Inner"}, Outer.Inner("x"), True),
        ({"error": "nowhere.ValueError"}, ValueError("x"), False),
        ({"message": "only one"}, ValueError("has only one class"), True),
        ({"message": "^only"}, ValueError("has only one class"), False),
        ({"message": r"\d+ MiB"}, RuntimeError("Tried to allocate 20 MiB"), True),
        ({"message": ""}, Quiet(), True),
        ({"message": "x"}, Quiet(), False),
        ({"unit": "train"}, ValueError("x"), True),
        ({"unit": "tr*n"}, ValueError("x"), True),
        ({"unit": "rain"}, ValueError("x"), False),
        ({"line": 15}, ValueError("x"), True),
        ({"line": 16}, ValueError("x"), False),
        ({"error": "ValueError", "message": "x", "unit": "train", "line": 16}, ValueError("x"), False),
    ],
)
def test_what_a_rule_matches(pattern, error, matches):
    assert Rule(**pattern).matches(FakeCrash(exception=error)) is matches


@pytest.mark.parametrize(
    ("unit", "pattern", "matches"),
    [
        ("Trainer.fit", "Trainer.fit", True),
        ("Trainer.fit", "fit", True),
        ("Trainer.fit", "Trainer.*", True),
        ("Trainer.fit", "Trainer", False),
        ("main.<locals>.train", "train", True),
        ("main.<locals>.train", "main.<locals>.train", True),
        ("train", "Train", False),
    ],
)
def test_units_are_matched_by_the_end_of_their_qualified_name(unit, pattern, matches):
    assert Rule(unit=pattern).matches(FakeCrash(unit=unit)) is matches


def test_a_closed_crash_matches_nothing():
    assert not Rule().matches(FakeCrash(exception=None))


def test_the_first_rule_that_is_not_used_up_answers():
    rules = Answers("ValueError -> skip, limit=2; ValueError -> break; * -> abort, limit=none; * -> pass")
    answers = [rules(FakeCrash()) for _ in range(5)]
    assert [answer.then for answer in answers] == [Skip(), Skip(), Break(), Abort(), Abort()]
    assert rules.uses == (2, 1, 2, 0)


def test_without_a_match_the_table_goes_on():
    rules = Answers("KeyError -> pass")
    assert rules(FakeCrash()) is None
    assert rules.lines == []
    assert Answers(None)(FakeCrash()) is None


def test_it_says_what_it_did_and_waits():
    rules = Answers("ValueError -> action 'a' then action 'b' then skip, limit=3, wait=0.5; * -> pass, limit=none")
    rules(FakeCrash())
    rules(FakeCrash())
    rules(FakeCrash(exception=OSError("gone\n" * 1000)))
    assert rules.waits == [0.5, 0.5]
    assert rules.lines[1] == (
        "daifu: ValueError: bad label, in train, line 15: 2 actions, then skip after 0.5 s (rule 1, use 2 of 3)"
    )
    assert rules.lines[2].endswith("...: pass (rule 2, use 1)") or "pass (rule 2, use 1)" in rules.lines[2]
    assert max(map(len, rules.lines)) < 200


def test_it_prints_by_default(capsys):
    Rules(read_rules("* -> skip"))(FakeCrash())
    assert capsys.readouterr().out.startswith("daifu: ValueError: bad label")


def test_a_refused_rule_makes_way_for_the_next_and_is_not_counted():
    rules = Answers("* -> continue, limit=5; * -> break; * -> abort")
    assert rules(FakeCrash()).then == Continue()
    assert rules(FakeCrash(refusal="no loop")).then == Break()
    assert rules(FakeCrash(refusal="no loop")).then == Abort()
    assert rules(FakeCrash(refusal="no loop")) is None
    assert rules(FakeCrash(refusal="somebody else's was refused")) is None
    assert rules.uses == (0, 0, 0)
    assert rules(FakeCrash()).then == Continue()


def test_somebody_elses_refused_repair_does_not_count():
    rules = Answers("KeyError -> pass")
    rules(FakeCrash(exception=KeyError()))
    rules(FakeCrash())
    rules(FakeCrash(refusal="no"))
    assert rules.uses == (1,)


def test_a_limit_holds_over_threads():
    rules = Answers("* -> pass, limit=100")
    answers = []

    def ask():
        for _ in range(50):
            answers.append(rules(FakeCrash()))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (answers.count(Repair()), answers.count(None)) == (100, 100)


def test_a_rule_reads_no_message_of_other_errors():
    assert not Rule("KeyError", message="x").matches(FakeCrash(exception=Quiet()))


TEXTS = {
    "ValueError -> skip": [Rule("ValueError", repair=SKIP)],
    "*->pass": [Rule("*")],
    "ValueError ~ 'only one class' @ train:15 -> skip, limit=3, wait=0.5": [
        Rule("ValueError", "only one class", "train", 15, SKIP, 3, 0.5)
    ],
    'A | b.C ~ "x" -> continue': [Rule("A | b.C", "x", repair=Repair(then=Continue()))],
    "* @ :15 -> break": [Rule(line=15, repair=Repair(then=Break()))],
    "* @ Trainer.* -> abort, limit=none": [Rule(unit="Trainer.*", repair=Repair(then=Abort()), limit=None)],
    "* @ main.<locals>.train:3 -> pass": [Rule(unit="main.<locals>.train", line=3)],
    "* -> return": [Rule(repair=Repair(then=Return()))],
    "* -> return 'total / n', wait=2": [Rule(repair=Repair(then=Return("total / n")), wait=2)],
    "* -> action 'a = 1'": [Rule(repair=Repair(("a = 1",)))],
    "* -> action 'a = 1' then pass": [Rule(repair=Repair(("a = 1",)))],
    "* -> action 'a = 1; b = [\"x\"]' then action \"c = 'y'\" then skip": [
        Rule(repair=Repair(('a = 1; b = ["x"]', "c = 'y'"), Skip()))
    ],
    "* -> action 'if a:\n    b = 1' then skip": [Rule(repair=Repair(("if a:\n    b = 1",), Skip()))],
    "* -> skip, frame=1": [Rule(repair=Repair(then=Skip(), frame=1))],
    r"* ~ '\d+ \'x\' \\' -> pass": [Rule(message=r"\d+ 'x' \\")],
    "OSError -> pass; ; ValueError -> skip;": [Rule("OSError"), Rule("ValueError", repair=SKIP)],
    "\n# comment; with -> anything\nOSError -> pass # retry\n\nValueError -> skip\n": [
        Rule("OSError"),
        Rule("ValueError", repair=SKIP),
    ],
    "": [],
    " ; \n": [],
    "transient-io": list(SETS["transient-io"]),
    "transient-io, limit=2, wait=0; * -> skip": [
        Rule(SETS["transient-io"][0].error, limit=2, wait=0),
        Rule(repair=SKIP),
    ],
}


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_form(text):
    assert read_rules(text) == TEXTS[text]


@pytest.mark.parametrize(
    ("text", "problem", "caret"),
    [
        ("ValueError skip", "expected '->', '~', '@' or '|', got 'skip'", 11),
        ("ValueError", "got the end of the rule", 10),
        ("-> skip", "expected the name of an exception, '*', or a set: transient-io, got '->'", 0),
        ("ValueError -> retry", "expected one of pass, skip, continue, break, return, abort, action", 14),
        ("ValueError -> surgery", "expected one of pass", 14),
        ("ValueError ->", "expected one of pass", 13),
        ("ValueError -> skip pass", "expected ',' and an option, or ';' and the next rule, got 'pass'", 19),
        (
            "ValueError -> skip, often",
            "expected limit=N, limit=none, wait=SECONDS or frame=N, got 'often'",
            20,
        ),
        ("ValueError -> skip, limit 3", "expected '=', got '3'", 26),
        ("ValueError -> skip, limit=0", "a whole number from 1 on, got '0'", 26),
        ("ValueError -> skip, limit=1.5", "a whole number from 1 on, got '1.5'", 26),
        ("ValueError -> skip, wait=soon", "expected seconds, as in wait=0.5, got 'soon'", 25),
        ("ValueError ~ only -> skip", "expected a regular expression in quotes, got 'only'", 13),
        ("ValueError ~ '(' -> skip", "message '(' is no regular expression", 0),
        ("ValueError ~ 'a -> skip", "the closing quote is missing", 13),
        ("ValueError @ -> skip", "expected a unit's name, as in train:15, or :15, got '->'", 13),
        ("ValueError @ 15 -> skip", "expected a unit's name, as in train:15, or :15, got '15'", 13),
        ("ValueError @ train:x -> skip", "expected a line number, got 'x'", 19),
        ("ValueError @ train:15", "expected '->' and what is done", 21),
        ("Value* -> skip", "error must be a class's name", 0),
        ("ValueError -> action x", "expected code in quotes, got 'x'", 21),
        ("ValueError -> action 'x' then", "expected one of pass", 29),
        ("OSError -> pass; ValueError $ skip", "can't read '$'", 28),
        ("transient-io -> pass", "expected ',' and an option", 13),
    ],
)
def test_a_text_that_cannot_be_read_shows_the_place_and_what_may_stand_there(text, problem, caret):
    with pytest.raises(RuleError) as caught:
        read_rules(text)
    lines = str(caught.value).splitlines()
    assert problem in lines[0]
    assert lines[1:3] == [f"    {text}", "    " + " " * caret + "^"]
    assert lines[3].startswith("a rule is: ERROR")


def test_an_error_in_a_later_line_shows_that_line():
    with pytest.raises(RuleError, match=r"\n    KeyError skip\n             \^\n"):
        read_rules("OSError -> pass\nKeyError skip\n")


def test_the_text_form_of_a_repair():
    assert parse_repair(" action 'x' then skip ") == Repair(("x",), Skip())
    with pytest.raises(RuleError, match="nothing more"):
        parse_repair("skip; pass")


RULE = Rule("ValueError", "x", "train", 15, Repair(("a = 1",), Surgery("def train(): pass\n")), None, 0.5)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (None, []),
        (RULE, [RULE]),
        (RULE.to_json(), [RULE]),
        (json.loads(json.dumps([RULE.to_json()])), [RULE]),
        ({"error": "ValueError", "repair": "skip"}, [Rule("ValueError", repair=SKIP)]),
        (
            {"error": "ValueError", "repair": "action 'x' then skip", "limit": 3},
            [Rule("ValueError", repair=Repair(("x",), Skip()), limit=3)],
        ),
        ({"error": "OSError"}, [Rule("OSError")]),
        ({"repair": Skip()}, [Rule(repair=SKIP)]),
        (
            ["* -> skip; * -> pass", {"error": "OSError"}, [RULE]],
            [Rule(repair=SKIP), Rule(), Rule("OSError"), RULE],
        ),
    ],
)
def test_the_other_forms(source, expected):
    assert read_rules(source) == expected


def test_a_class_is_written_as_its_name():
    assert Rule(json.JSONDecodeError).to_json()["error"] == "json.decoder.JSONDecodeError"


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ({"when": 1}, ValueError, "a rule has no when: it may have error, message, unit, line"),
        ({"error": 5}, TypeError, "error must be an exception class or its name, not 5"),
        ({"error": int}, TypeError, "error must be an exception class"),
        ({"error": "not a name"}, ValueError, "error must be a class's name"),
        ({"message": 5}, TypeError, "message .* must be text"),
        ({"message": "("}, ValueError, "no regular expression"),
        ({"unit": 5}, TypeError, "unit .* must be text"),
        ({"line": "15"}, TypeError, "line must be a number"),
        ({"limit": 0}, ValueError, "limit must be a number from 1 on, but is 0"),
        ({"limit": True}, TypeError, "limit must be a number"),
        ({"wait": -1}, ValueError, "wait must be seconds"),
        ({"wait": float("nan")}, ValueError, "wait must be seconds"),
        ({"wait": "1"}, TypeError, "wait must be seconds"),
        ({"repair": "retry"}, RuleError, "expected one of pass"),
        ({"repair": 5}, TypeError, "must be a Repair"),
        ({"repair": {"daifu_repair": 2}}, ValueError, "daifu_repair"),
        (5, TypeError, "rules must be text, a dict, or a list"),
        ([5], TypeError, "rules must be text"),
    ],
)
def test_wrong_forms_are_refused(source, error, message):
    with pytest.raises(error, match=message):
        read_rules(source)


def test_the_built_in_set_retries_what_may_pass():
    rules = Answers("transient-io")
    import http.client

    for error in (
        ConnectionResetError(),
        TimeoutError(),
        OSError(5, "I/O error"),
        http.client.IncompleteRead(b""),
    ):
        assert rules(FakeCrash(exception=error)) == Repair(then=Pass())
    assert rules(FakeCrash()) is None
    assert rules.waits == [1.0] * 4

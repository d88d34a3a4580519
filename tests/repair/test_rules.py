"""Rules: what matches, how often, how long they wait, and how they are written. Nothing here sleeps."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from daifu_ipy.engine.repairs import Abort, Break, Continue, Pass, Repair, Return, Skip, Surgery
from daifu_ipy.repair.rule_sets import SETS
from daifu_ipy.repair.rule_text import parse_repair
from daifu_ipy.repair.rules import Rule, RuleError, Rules, SameHere, read_rules
from tests.fakes import FakeCrash

SKIP = Repair(then=Skip())


class Answers(Rules):
    """Rules that note instead of waiting and printing."""

    def __init__(self, source):
        self.waits, self.lines = [], []
        super().__init__(
            read_rules(source), sleep=self.waits.append, show=lambda report: self.lines.append(str(report))
        )


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


class Late(Exception):
    def __str__(self):
        while True:
            pass


class Exits(Exception):
    def __str__(self):
        raise SystemExit


@pytest.mark.parametrize("error", [Late(), Exits(), ValueError(Late()), ValueError(Exits())])
def test_the_code_of_a_message_is_run_with_a_deadline_and_what_we_say_of_it_matches_nothing(error):
    rules = Answers("* ~ '(?i)late|took|fail|exit|message' -> pass; * -> skip")
    assert rules(FakeCrash(exception=error)) == SKIP


def test_messages_are_late_together():
    asked = []

    class Each(Exception):
        def __str__(self):
            asked.append(1)
            while True:
                pass

    rules = Answers("; ".join(["* ~ 'x' -> pass"] * 20))
    assert rules(FakeCrash(exception=Each())) is None
    assert len(asked) == 1


def test_only_what_is_needed_for_the_first_answer_is_asked():
    def looked_for():
        raise AssertionError("looking for the callers takes time")
        yield

    assert Answers("* -> pass; skip-item")(FakeCrash(frames=looked_for())) == Repair()


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
        *(replace(rule, limit=2, wait=0) for rule in SETS["transient-io"]),
        Rule(repair=SKIP),
    ],
    "skip-item @ train:15, limit=3": [replace(SETS["skip-item"][0], unit="train", line=15, limit=3)],
    "transient-io -> skip": [replace(rule, repair=SKIP) for rule in SETS["transient-io"]],
    "skip-item -> action 'a' then break": [
        replace(SETS["skip-item"][0], in_loop=False, repair=Repair(("a",), Break()))
    ],
    "* -> pass, limit=none, in_a_row=4, wait=1, backoff=2.5, max_wait=60, file='*.py'": [
        Rule(limit=None, in_a_row=4, wait=1, backoff=2.5, max_wait=60, file="*.py")
    ],
    "* -> continue, frame=loop": [Rule(repair=Repair(then=Continue()), in_loop=True)],
}


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_form(text):
    assert read_rules(text) == TEXTS[text]


@pytest.mark.parametrize(
    ("text", "problem", "caret"),
    [
        ("ValueError skip", "expected '->', '~', '@' or '|', got 'skip'", 11),
        ("ValueError", "got the end of the rule", 10),
        (
            "-> skip",
            "expected the name of an exception, '*', or a set: transient-io, skip-item, out-of-memory, got '->'",
            0,
        ),
        ("ValueError -> retry", "expected one of pass, skip, continue, break, return, abort, action", 14),
        ("ValueError -> surgery", "expected one of pass", 14),
        ("ValueError ->", "expected one of pass", 13),
        ("ValueError -> skip pass", "expected ',' and an option, or ';' and the next rule, got 'pass'", 19),
        (
            "ValueError -> skip, often",
            "expected limit=N, limit=none, in_a_row=N, wait=SECONDS, backoff=FACTOR, max_wait=SECONDS, "
            "file='GLOB', frame=N, frame=loop, got 'often'",
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
        ("transient-io pass", "expected ',' and an option", 13),
        ("transient-io -> retry", "expected one of pass", 16),
        ("* -> pass, backoff=0.5", "backoff must be a factor from 1 on, but is 0.5", 0),
        ("* -> pass, in_a_row=none", "expected a number, as in in_a_row=5", 20),
        ("* -> pass, frame=one", "expected a number, as in frame=1, or loop", 17),
        ("* -> pass, file=data.py", "expected a glob in quotes", 16),
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


def test_files_are_matched_by_the_end_of_their_path():
    crash = FakeCrash()
    for pattern, matches in {"train.py": True, "*.py": True, "a/train.py": False, "rain.py": False}.items():
        assert Rule(file=pattern).matches(crash) is matches


# in a row


def test_a_success_starts_the_count_anew():
    rules = Answers("* -> pass, limit=none, in_a_row=3")
    again = [False, True, True, False, True, True, True, True, False]
    answers = [rules(FakeCrash(again=failed)) is not None for failed in again]
    assert answers == [True] * 6 + [False, False, True]
    assert rules.uses == (7,)


def test_a_rule_without_any_limit_does_not_retry_for_ever():
    rules = Answers("* -> pass, limit=none")
    rules(FakeCrash())
    assert [rules(FakeCrash(again=True)) is not None for _ in range(20)].count(True) == 9


def test_a_limit_of_its_own_is_the_only_one():
    rules = Answers("* -> pass, limit=20")
    assert [rules(FakeCrash(again=True)) is not None for _ in range(30)].count(True) == 20


def test_rows_are_counted_by_place_and_thread():
    rules = Answers("* -> pass, limit=none, in_a_row=2")
    for _ in range(2):
        for line in (1, 2):
            assert rules(FakeCrash(line=line, again=True)) is not None
    assert rules(FakeCrash(line=1, again=True)) is None
    answers = []
    thread = threading.Thread(target=lambda: answers.append(rules(FakeCrash(line=1, again=True))))
    thread.start()
    thread.join()
    assert answers == [Repair()]


def loop(**target):
    return SimpleNamespace(line=3, header="for ...", target=target)


def test_where_it_is_not_known_whether_it_succeeded_the_loops_tell():
    rules = Answers("* -> pass, limit=none, in_a_row=2")
    batches = [object(), object()]
    known = [FakeCrash(again=None, progress=(loop(i=i, batch=batches[i % 2]),)) for i in range(5)]
    assert all(rules(crash) for crash in known)
    assert rules(known[-1]) is not None
    assert rules(known[-1]) is None


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ("wait=1, backoff=2", [1, 2, 4, 8, 16]),
        ("wait=1, backoff=2, max_wait=5", [1, 2, 4, 5, 5]),
        ("wait=90, backoff=2", [90, 90, 90, 90, 90]),
        ("wait=2", [2, 2, 2, 2, 2]),
        ("wait=0, backoff=2", []),
    ],
)
def test_each_use_in_a_row_waits_longer(text, waits):
    rules = Answers(f"* -> pass, limit=none, {text}")
    for turn in range(5):
        rules(FakeCrash(again=turn > 0))
    assert rules.waits == waits
    rules(FakeCrash())
    assert rules.waits[len(waits) :] == waits[:1]


def test_the_longest_row_waits_no_longer_than_the_cap():
    assert Rule(wait=1, backoff=10, limit=None).wait_before(10_000) == 60


def test_the_report_says_how_many_in_a_row():
    rules = Answers("transient-io")
    for turn in range(3):
        rules(FakeCrash(exception=TimeoutError("slow"), again=turn > 0))
    assert rules.lines == [
        "daifu: TimeoutError: slow, in train, line 15: pass after 1 s (transient-io, use 1)",
        "daifu: TimeoutError: slow, in train, line 15: pass after 2 s (transient-io, use 2, 2 in a row)",
        "daifu: TimeoutError: slow, in train, line 15: pass after 4 s (transient-io, use 3, 3 in a row)",
    ]


def test_by_default_the_telling_uses_are_printed(capsys):
    rules = Rules(read_rules("* -> skip, limit=40"))
    for _ in range(41):
        rules(FakeCrash())
    uses = [int(line.split("use ")[1].split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert uses == [1, 2, 3, 4, 8, 16, 32, 40]


# the same here


def test_the_same_here_matches_this_type_at_this_place():
    rule = Rule.here(FakeCrash(), Skip(), 5)
    assert (rule.limit, rule.repair) == (5, SKIP)
    assert rule.matches(FakeCrash())
    assert rule.matches(FakeCrash(exception=UnicodeError("another message")))
    for other in (FakeCrash(line=16), FakeCrash(unit="test"), FakeCrash(exception=KeyError())):
        assert not rule.matches(other)


def test_odd_names_are_taken_as_they_are():
    crash = FakeCrash(unit="f[0]*")
    assert Rule.here(crash, Pass()).matches(crash)
    assert not Rule.here(crash, Pass()).matches(FakeCrash(unit="f0x"))


@pytest.mark.parametrize("times", [0, -1, True, "5"])
def test_times_are_checked(times):
    with pytest.raises((TypeError, ValueError)):
        SameHere(SKIP, times)


def test_an_added_rule_comes_first_and_counts_the_answer_that_it_was_made_of():
    rules = Answers("* -> pass, limit=none")
    rules(FakeCrash(exception=KeyError()))
    rules.add(Rule.here(FakeCrash(), SKIP, 3), used=True)
    assert rules.answered is None
    assert [rules(FakeCrash()) for _ in range(3)] == [SKIP, SKIP, Repair()]
    assert rules.answered == "rule 1, use 2"
    assert rules.lines[1] == "daifu: ValueError: bad label, in train, line 15: skip (same here, use 2 of 3)"


def test_an_added_rule_whose_first_answer_is_refused_goes_away():
    rules = Answers("")
    rules.add(Rule.here(FakeCrash(), Break(), 3), used=True)
    assert rules(FakeCrash(refusal="no loop")) is None
    assert rules.rules == ()


def test_an_added_rule_may_be_refused_later():
    rules = Answers("")
    rules.add(Rule.here(FakeCrash(), Break(), 3), used=True)
    assert rules(FakeCrash()).then == Break()
    assert rules(FakeCrash(refusal="no loop")) is None
    assert rules.uses == (1,)

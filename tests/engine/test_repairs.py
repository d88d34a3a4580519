"""Repairs: what a manager may answer, and the JSON that rules, the history and ranks exchange."""

from __future__ import annotations

import dataclasses
import json
import pickle

import pytest

from daifu_ipy.engine.repairs import (
    ENDINGS,
    Abort,
    Break,
    Continue,
    Pass,
    Refusal,
    Repair,
    Return,
    Skip,
    Surgery,
)

REPAIRS = [
    Repair(),
    Repair(("x = 1", "y = 2"), Skip(), 1),
    Repair(then=Continue()),
    Repair(then=Break()),
    Repair(then=Abort()),
    Repair(then=Return("a + 1")),
    Repair(then=Surgery("def f():\n    pass\n")),
    Repair(("x = 1",), Surgery("x = 1", restart_at="edit")),
    Repair(then=Surgery("x = 1", restart_at=3)),
]


@pytest.mark.parametrize("repair", REPAIRS, ids=repr)
def test_json_and_pickle_give_the_same_repair_back(repair):
    assert Repair.from_json(json.loads(json.dumps(repair.to_json()))) == repair
    assert pickle.loads(pickle.dumps(repair)) == repair


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Pass(), Repair()),
        (Pass, Repair()),
        (Return, Repair(then=Return("None"))),
        (Abort, Repair(then=Abort())),
        (Repair(("x = 1",)), Repair(("x = 1",))),
        (Surgery("x"), Repair(then=Surgery("x"))),
    ],
)
def test_an_ending_stands_for_a_repair_without_actions(answer, expected):
    assert Repair.of(answer) == expected


@pytest.mark.parametrize("answer", [None, "pass", 1, object, Repair, {"then": "pass"}, [Pass()]])
def test_any_other_answer_is_told_what_to_return(answer):
    with pytest.raises(TypeError, match=r"a repair manager's answer must be a Repair\(\.\.\.\) or an ending"):
        Repair.of(answer)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Repair("x = 1"), TypeError, r"write actions=\(code,\)"),
        (lambda: Repair((1,)), TypeError, "an action must be Python text"),
        (lambda: Repair({"x = 1"}), TypeError, "tuple of Python texts, not set"),
        (lambda: Repair(then="skip"), TypeError, "then must be an ending"),
        (lambda: Repair(then=Surgery), TypeError, "Surgery needs the new source"),
        (lambda: Repair.of(Surgery), TypeError, "Surgery needs the new source"),
        (lambda: Repair(frame="0"), TypeError, "frame must be an int"),
        (lambda: Repair(frame=True), TypeError, "frame must be an int"),
        (lambda: Repair(frame=-1), ValueError, "negative"),
        (lambda: Return(3), TypeError, r"Return\(expression\)"),
        (lambda: Surgery(b"x"), TypeError, r"Surgery\(source\)"),
        (lambda: Surgery("x", "start"), ValueError, "'crash', 'edit'"),
        (lambda: Surgery("x", 0), ValueError, "counts lines from 1"),
        (lambda: Surgery("x", True), TypeError, "restart_at"),
        (lambda: Surgery("x", 1.5), TypeError, "restart_at"),
    ],
)
def test_wrong_fields_are_refused_with_what_to_write(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_list_of_actions_and_an_ending_class_are_taken():
    assert Repair(["x = 1"], Skip) == Repair(("x = 1",), Skip())


TAGGED = {"daifu_repair": 1}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "expected a dict, got NoneType"),
        ({}, "expected 'daifu_repair': 1, got None"),
        ({"daifu_repair": 2}, "got 2"),
        ({**TAGGED, "when": 1}, "a repair has no 'when': it may have actions"),
        ({**TAGGED, "then": "pass"}, "must be a dict"),
        ({**TAGGED, "then": {"kind": "retry"}}, "unknown ending 'retry': one of pass, skip"),
        ({**TAGGED, "then": {"kind": ["pass"]}}, "unknown ending"),
        ({**TAGGED, "then": {"kind": "pass", "wait": 1}}, "the ending 'pass' has no 'wait'"),
        ({**TAGGED, "then": {"kind": "surgery"}}, "source"),
        ({**TAGGED, "actions": [1]}, "an action must be Python text"),
        ({**TAGGED, "frame": -1}, "negative"),
    ],
)
def test_damaged_json_is_refused_with_the_reason(data, message):
    with pytest.raises(ValueError, match=message):
        Repair.from_json(data)


def test_repairs_are_frozen_and_endings_have_words():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Repair().frame = 1
    assert {word: ending.__name__.lower() for word, ending in ENDINGS.items()} == {w: w for w in ENDINGS}
    assert Repair(then=Return("1")).word == "return"


def test_a_refusal_says_why():
    assert Refusal("no loop to leave").reason == "no loop to leave"

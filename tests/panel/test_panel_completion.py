"""Names that may follow what is typed, found without running anything."""

from __future__ import annotations

import collections
import sys

import pytest
import torch

from daifu_ipy.frontends.panel_completion import MOST, completions

ran = []


class Thing:
    kind = 1

    def __init__(self):
        self.size, self._hidden, self.other = 3, 4, {"k": torch.nn.Linear(1, 1)}

    def method(self):
        pass

    @property
    def computed(self):
        ran.append("computed")
        return self

    def __getattr__(self, name):
        ran.append(name)
        raise AttributeError(name)

    def __dir__(self):
        ran.append("dir")
        return []


VARIABLES = {"thing": Thing(), "items": [Thing()], "table": {"k": Thing()}, "thin": 1, "@daifu_i": 2, "net": torch.nn.Linear(1, 1), "Thing": Thing, "größe": 1, "deque": collections.deque()}  # fmt: skip
MODULE = {"thirst": 1, "sys": sys}

FOUND = [
    ("thi", 0, {"thing": "Thing", "thin": "int", "thirst": "int"}),
    ("x = thing.s", 10, {"size": "int"}),
    ("thing.", 6, {"size": "int", "method": "function", "computed": "property", "kind": "int", "other": "dict"}),
    ("f(thing.other['k'].wei", 19, {"weight": "Parameter"}),
    ("items[0].si", 9, {"size": "int"}),
    ('table["k"].si', 11, {"size": "int"}),
    ("net.wei", 4, {"weight": "Parameter"}),
    ("Thing.meth", 6, {"method": "function"}),
    ("sys.versi", 4, {"version": "str"}),
    ("for x in ite", 9, {"items": "list"}),
    ("größ", 0, {"größe": "int"}),
    ("whi", 0, {"while": "keyword"}),
    ("pri", 0, {"print": "function"}),
    ("Valu", 0, {"ValueError": "class"}),
    ("deque.app", 6, {"append": "method_descriptor"}),
    ("", 0, {"thing": "Thing", "print": "function"}),
]


@pytest.mark.parametrize(("text", "start", "names"), FOUND)
def test_what_may_follow(text, start, names):
    answer = completions(text, VARIABLES, MODULE)
    found = {name["name"]: name["kind"] for name in answer["names"]}
    assert answer["from"] == start
    if text:
        assert names.items() <= found.items()
    assert all(name.startswith(text[start:]) for name in found)
    assert len(found) <= MOST
    assert ran == []


NOTHING = ["thing.computed.si", "thing.method().si", "10.", "1e5", "thing.missing.a", "items[5].si", "thing.other['x'].si", "nothing.si", "'abc'.up", ").x"]  # fmt: skip


@pytest.mark.parametrize("text", NOTHING)
def test_nothing_is_said_of_what_would_have_to_run(text):
    assert completions(text, VARIABLES, MODULE)["names"] == []
    assert ran == []


def test_hidden_names_are_left_out_and_private_ones_come_last():
    names = [name["name"] for name in completions("", VARIABLES, {})["names"]]
    assert not [name for name in names if "@" in name]
    own = [name["name"] for name in completions("thing.", VARIABLES, {})["names"]]
    assert own.index("size") < own.index("_hidden") < own.index("__init__")

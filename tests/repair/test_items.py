"""skip-item with real crashes: the result is that of the run without the bad items; the history says which."""

from __future__ import annotations

import pytest

import daifu_ipy
from daifu_ipy import repair_with, run_cell
from daifu_ipy.engine.managers import settings
from daifu_ipy.repair.rules import Rules, read_rules

BAD = (2, 5)


@pytest.fixture
def everything(monkeypatch):
    """What a test expects by ``pytest.raises`` counts as handled otherwise."""
    monkeypatch.setattr(settings, "intercept", "all")


PROGRAMS = {
    "body": "def run(items):\n    for x in items:\n        done.append(parse(x))",
    "nested": "def run(items):\n    for epoch in range(1):\n        for x in items:\n            y = parse(x)\n            done.append(y)",
    "helper": "def load(x):\n    return parse(x)\ndef run(items):\n    for x in items:\n        done.append(load(x))",
    "helper's helper": "def load(x):\n    return parse(x)\ndef both(x):\n    return load(x)\n"
    "def run(items):\n    for x in items:\n        done.append(both(x))",
    "next": "class Loader:\n    def __init__(self, items):\n        self.left = iter(items)\n    def __iter__(self):\n"
    "        return self\n    def __next__(self):\n        return parse(next(self.left))\n"
    "def run(items):\n    for x in Loader(items):\n        done.append(x)",
    "generator": "def read(items):\n    for x in items:\n        yield parse(x)\n"
    "def run(items):\n    for x in read(items):\n        done.append(x)",
    "with": "import contextlib\ndef run(items):\n    for x in items:\n        with contextlib.nullcontext():\n"
    "            done.append(parse(x))",
    "while": "def run(items):\n    left = list(items)\n    while left:\n        done.append(parse(left.pop(0)))",
}


def parse(x):
    if x in BAD:
        raise ValueError(x)
    return x


def run(program, rules):
    namespace = {"parse": parse, "done": []}
    run_cell(program, namespace)
    with repair_with(rules):
        namespace["run"](range(8))
    return namespace["done"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_the_bad_items_are_missing(name):
    rules = Rules(read_rules("skip-item"), show=lambda report: None)
    assert run(PROGRAMS[name], rules) == [x for x in range(8) if x not in BAD]
    assert rules.uses == (2,)


@pytest.mark.parametrize(
    "program",
    [
        "def run(items):\n    done.extend([parse(x) for x in items])",
        "def run(items):\n    for epoch in range(2):\n        done.extend([parse(x) for x in items])",
    ],
)
def test_in_a_comprehension_nothing_is_left_out(program, everything):
    with pytest.raises(ValueError, match="2"):
        run(program, Rules(read_rules("skip-item"), show=lambda report: None))


def test_more_than_the_limit_is_no_matter_of_items(everything):
    with pytest.raises(ValueError, match="5"):
        run(PROGRAMS["body"], Rules(read_rules("skip-item, limit=1"), show=lambda report: None))


def test_the_history_says_what_was_left_out():
    daifu_ipy.history.clear()
    run(PROGRAMS["nested"], Rules(read_rules("skip-item"), show=lambda report: None))
    assert [event.progress for event in daifu_ipy.history] == [("epoch=0", "x=2"), ("epoch=0", "x=5")]
    daifu_ipy.history.clear()


def test_the_history_says_so_of_the_frame_that_was_repaired():
    daifu_ipy.history.clear()
    program = "def load(x):\n    return parse(x)\ndef run(items):\n    for x in items:\n        got = load(x)\n        done.append(got)"
    run(program, Rules(read_rules("skip-item"), show=lambda report: None))
    assert [(event.progress, event.stale) for event in daifu_ipy.history] == [
        (("x=2",), ("got",)),
        (("x=5",), ("got",)),
    ]
    daifu_ipy.history.clear()


def test_a_hiccup_now_and_then_does_not_end_a_long_run():
    failing = {(item, attempt) for item in range(0, 200, 3) for attempt in range(3)}
    attempts: dict[int, int] = {}

    def fetch(item):
        attempt = attempts[item] = attempts.get(item, -1) + 1
        if (item, attempt) in failing:
            raise ConnectionResetError
        return item

    waits = []
    namespace = {"fetch": fetch, "done": []}
    run_cell("def run():\n    n = 0\n    while n < 200:\n        done.append(fetch(n))\n        n += 1", namespace)
    with repair_with(Rules(read_rules("transient-io"), sleep=waits.append, show=lambda report: None)):
        namespace["run"]()
    assert namespace["done"] == list(range(200))
    assert waits == [1, 2, 4] * 67


def test_what_does_not_pass_is_given_up(everything):
    waits = []
    namespace = {"n": 0}
    run_cell("def run():\n    while True:\n        raise TimeoutError", namespace)
    rules = Rules(read_rules("transient-io"), sleep=waits.append, show=lambda report: None)
    with repair_with(rules), pytest.raises(TimeoutError):
        namespace["run"]()
    assert waits == [1, 2, 4, 8, 16]


@pytest.mark.parametrize("header", ["for x in Items():\n        pass", "while fails():\n        pass"])
def test_a_header_that_never_passes_is_given_up(header, everything):
    def fails():
        raise TimeoutError

    class Items:
        def __iter__(self):
            return self

        def __next__(self):
            raise TimeoutError

    waits = []
    namespace = {"fails": fails, "Items": Items}
    run_cell(f"def run():\n    {header}", namespace)
    rules = Rules(read_rules("transient-io"), sleep=waits.append, show=lambda report: None)
    with repair_with(rules), pytest.raises(TimeoutError):
        namespace["run"]()
    assert waits == [1, 2, 4, 8, 16]


class Fresh:
    """Made for one round; a later one may lie where it has been."""

    def __eq__(self, other):
        raise AssertionError("code of the program")

    __hash__ = None


def test_a_new_object_where_a_dead_one_lay_is_another():
    class Source:
        count, failed = 0, False

        def __iter__(self):
            return self

        def __next__(self):
            if self.count == 40:
                raise StopIteration
            if self.count % 2 == 0 and not self.failed:
                self.failed = True
                raise TimeoutError
            self.failed = False
            self.count += 1
            return Fresh()

    namespace = {"done": []}
    run_cell("def run(source):\n    for item in source:\n        done.append(1)", namespace)
    with repair_with(Rules(read_rules("TimeoutError -> pass, limit=none, in_a_row=3"), show=lambda report: None)):
        namespace["run"](Source())
    assert len(namespace["done"]) == 40

"""Summaries of values: bounded, printable, and without reading what is big, whatever the object does."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import enum
import functools
import types
from typing import Any, NamedTuple

import pytest

from daifu_ipy.repair.summary import error_text, one_line, summarise


class Plain:
    pass


class Point(NamedTuple):
    x: int
    y: object


@dataclasses.dataclass
class Batch:
    rows: list[int]
    label: str = "a"
    hidden: int = dataclasses.field(default=3, repr=False)


@dataclasses.dataclass
class OwnRepr:
    rows: list[int]

    def __repr__(self):
        return "mine"


class Color(enum.IntEnum):
    RED = 1


class Tokens(list[int]):
    def __repr__(self):
        raise AssertionError("asked a big thing for its repr")


class Method:
    def run(self):
        pass

    def __repr__(self):
        raise AssertionError("asked for the repr of a method's object")


def make(text: str):
    return type("Made", (), {"__repr__": lambda self: text})()


def fails(error: BaseException):
    def __repr__(self):
        raise error

    return type("Fails", (), {"__repr__": __repr__})()


TABLE: list[tuple[Any, str]] = [
    (1, "1"),
    (True, "True"),
    (None, "None"),
    (1.5, "1.5"),
    (2j, "2j"),
    (10**6000, "<int of 19932 bits>"),
    ("a\nb  c", r"'a\nb  c'"),
    ("x" * 10**6, f"'{'x' * 90}'... (1000000 characters)"),
    (b"x" * 10**6, f"b'{'x' * 90}'... (1000000 bytes)"),
    (bytearray(b"ab"), "bytearray(b'ab')"),
    ([], "[]"),
    ([1, "a", None], "[1, 'a', None]"),
    (list(range(1000)), "[0, 1, 2, 3, 4, 5, ... 994 more]"),
    ((), "()"),
    ((1,), "(1,)"),
    ((1, (2, 3)), "(1, (2, 3))"),
    (set(), "set()"),
    ({1}, "{1}"),
    (frozenset(), "frozenset()"),
    (frozenset({1}), "frozenset({1})"),
    ({"a": 1, "b": [1, 2]}, "{'a': 1, 'b': [1, 2]}"),
    ({i: i for i in range(100)}, "{0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, ... 94 more}"),
    ({"a": 1}.keys(), "dict_keys(['a'])"),
    ({"a": 1}.items(), "dict_items([('a', 1)])"),
    ([[[[[1]]]]], "[[[[... 1 more]]]]"),
    (collections.deque([1, 2]), "deque([1, 2])"),
    (collections.OrderedDict(a=1), "OrderedDict({'a': 1})"),
    (collections.Counter("aab"), "Counter({'a': 2, 'b': 1})"),
    (collections.UserDict(a=1), "UserDict({'a': 1})"),
    (Point(1, "a"), "Point(x=1, y='a')"),
    (Tokens([1, 2]), "Tokens([1, 2])"),
    (range(10**9), "range(0, 1000000000)"),
    (Color.RED, "<Color.RED: 1>"),
    (Batch([1] * 1000), "Batch(rows=[1, 1, 1, 1, 1, 1, ... 994 more], label='a')"),
    (OwnRepr([1]), "mine"),
    (types.SimpleNamespace(a=1), "SimpleNamespace(a=1)"),
    (argparse.Namespace(lr=0.1, rows=[1] * 9), "Namespace(lr=0.1, rows=[1, 1, 1, 1, 1, 1, ... 3 more])"),
    (Method().run, "<bound method Method.run of Method>"),
    (
        functools.partial(make, [1] * 9, text="a"),
        "partial(<function make>, [1, 1, 1, 1, 1, 1, ... 3 more], text='a')",
    ),
    (ValueError("a", [1] * 100), "ValueError('a', [1, 1, 1, 1, 1, 1, ... 94 more])"),
    (int, "<class int>"),
    (collections.deque, "<class collections.deque>"),
    (make, "<function make>"),
    (collections, "<module collections>"),
    (len, "<built-in function len>"),
    (make("a\n   b"), "a b"),
    (make("\x1b[31mred\x07 \ud800"), "?[31mred? ?"),
    (make("y" * 10**6), "y" * 117 + "..."),
    (make(""), ""),
    (make(5), "<repr failed: TypeError>"),
    (fails(ValueError("x")), "<repr failed: ValueError>"),
    (fails(KeyboardInterrupt()), "<repr failed: KeyboardInterrupt>"),
    (fails(SystemExit()), "<repr failed: SystemExit>"),
    ([1, fails(ValueError("x")), 2], "[1, <repr failed: ValueError>, 2]"),
    ({"a": fails(RecursionError())}, "{'a': <repr failed: RecursionError>}"),
]


@pytest.mark.parametrize(("value", "text"), TABLE, ids=[text[:40] for _, text in TABLE])
def test_a_value_in_one_line(value, text):
    assert summarise(value).replace(f"{__name__}.", "").replace("test_summary.", "") == text


@pytest.mark.parametrize("limit", [10, 40, 200])
@pytest.mark.parametrize("value", [value for value, _ in TABLE], ids=range(len(TABLE)))
def test_the_limit_holds(value, limit):
    text = summarise(value, limit)
    assert len(text) <= limit
    assert text.isprintable()


def test_a_container_that_holds_itself():
    loop: list[object] = []
    loop.append(loop)
    assert summarise(loop) == "[[[[... 1 more]]]]"


def test_an_object_without_a_repr_of_its_own():
    assert summarise(Plain()) == "<Plain object>"


class CountingDict(dict[int, int]):
    touched = 0

    def __len__(self):
        type(self).touched += 1
        return 1

    __iter__ = items = keys = __len__


def test_a_subclass_of_a_container_is_read_by_the_builtin_methods():
    assert summarise(CountingDict({1: 2})) == "CountingDict({1: 2})"
    assert CountingDict.touched == 0


def test_only_the_first_items_are_asked():
    asked = []

    class Item:
        def __init__(self, number):
            self.number = number

        def __repr__(self):
            asked.append(self.number)
            return "i"

    assert summarise([[Item(i) for i in range(1000)] for _ in range(1000)]).endswith("...")
    assert len(asked) == 36


class Unreadable:
    """Fails the test when any of its data is read."""

    shape = (2, 3)
    dtype = "torch.float32"
    device = "cuda:0"
    requires_grad = True

    def __repr__(self):
        raise AssertionError("read the data")

    __len__ = __iter__ = __getitem__ = item = tolist = __bool__ = __eq__ = __repr__


def lookalike(module: str, name: str, **attributes):
    base = type(name, (Unreadable,), {"__module__": module, **attributes})
    return type("Sub", (base,), {"__module__": "__main__"})() if attributes.pop("sub", False) else base()


def test_arrays_and_tables_are_never_read():
    assert summarise(lookalike("torch", "Tensor")) == "Tensor(shape=(2, 3), float32, cuda:0, requires_grad)"
    assert summarise(lookalike("torch", "Tensor", sub=True)).startswith("Sub(shape=(2, 3), float32")
    assert summarise(lookalike("numpy", "ndarray", device="cpu", dtype="int8", requires_grad=0)) == (
        "ndarray(shape=(2, 3), int8)"
    )
    assert summarise(lookalike("pandas.core.frame", "DataFrame")) == "DataFrame(shape=(2, 3))"
    assert summarise(lookalike("polars", "LazyFrame", shape=None)) == "LazyFrame(shape=?)"
    assert summarise([lookalike("torch", "Tensor")] * 9, 400).count("Tensor(shape=(2, 3)") == 6


def test_real_tensors():
    torch = pytest.importorskip("torch")
    assert summarise(torch.zeros(2, 3)) == "Tensor(shape=(2, 3), float32)"
    assert summarise(torch.nn.Parameter(torch.zeros(2))) == "Parameter(shape=(2,), float32, requires_grad)"
    assert summarise(torch.nn.Linear(2, 3)) == "<Linear(in_features=2, out_features=3, bias=True), training>"
    assert summarise(type("Net", (torch.nn.Module,), {})().eval()) == "<Net module, eval>"
    assert summarise(torch.zeros(2, 3).shape) == "Size(2, 3)"


def test_real_arrays():
    numpy = pytest.importorskip("numpy")
    assert summarise(numpy.zeros((2, 3))) == "ndarray(shape=(2, 3), float64)"
    assert summarise(numpy.float64(0.5)) in ("np.float64(0.5)", "0.5")


class Silent(Exception):
    def __str__(self):
        raise ValueError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("a\nb"), "ValueError: a b"),
        (KeyError("k"), "KeyError: 'k'"),
        (ValueError(), "ValueError"),
        (Silent(), "Silent: <message failed: ValueError>"),
        (None, "no exception"),
    ],
    ids=repr,
)
def test_an_error_in_one_line(error, text):
    assert error_text(error).rpartition("test_summary.")[2] == text
    assert len(error_text(ValueError("m" * 10**6))) == 300


def test_one_line():
    assert one_line("  a \n  b\tc ", 20) == "a b c"
    assert one_line("abcdef", 5) == "ab..."
    assert one_line("a" + "\n" * 1000, 5) == "a..."

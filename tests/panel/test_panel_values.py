"""What lies in a variable, page by page, and that no code of the program runs to show it."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import enum
import json
import types

import pytest
import torch

from daifu_ipy import vaccinate
from daifu_ipy.frontends.panel_values import expand
from tests.panel.asking import asked, named, rows

Point = collections.namedtuple("Point", "x y")


class Plain:
    def __init__(self):
        self.one, self.two = 1, [2]


class Slotted:
    __slots__ = ("never", "one", "two")

    def __init__(self):
        self.one, self.two = 1, 2


class Derived(Slotted):
    def __init__(self):
        super().__init__()
        self.three = 3


@dataclasses.dataclass(slots=True)
class Record:
    size: int = 3
    name: str = "n"


class Items(list):
    def __init__(self, *args):
        super().__init__(*args)
        self.note = "kept"

    def __len__(self):
        raise AssertionError

    def __iter__(self):
        raise AssertionError

    __getitem__ = __iter__


EXPANDED = [
    ([1, "a"], {"[0]": "1", "[1]": "'a'"}),
    ((1, 2), {"[0]": "1", "[1]": "2"}),
    (Point(1, 2), {"x": "1", "y": "2"}),
    ({"k": 1, 2: "v"}, {"['k']": "1", "[2]": "'v'"}),
    (collections.OrderedDict(a=1), {"['a']": "1"}),
    (collections.defaultdict(int, a=1), {"['a']": "1"}),
    ({5}, {"item 0": "5"}),
    (frozenset({5}), {"item 0": "5"}),
    (collections.deque([7, 8]), {"[0]": "7", "[1]": "8"}),
    (Plain(), {"one": "1", "two": "[2]"}),
    (Slotted(), {"one": "1", "two": "2"}),
    (Derived(), {"three": "3", "one": "1", "two": "2"}),
    (Record(), {"size": "3", "name": "'n'"}),
    (types.SimpleNamespace(a=1), {"a": "1"}),
    (Items([1]), {"[0]": "1", "note": "'kept'"}),
]


@pytest.mark.parametrize(("value", "parts"), EXPANDED, ids=lambda value: type(value).__name__)
def test_what_lies_in_a_value(value, parts):
    page = expand({"v": value}, ["v"])
    assert rows(page) == parts
    assert page["total"] == len(parts)
    assert json.loads(json.dumps(page)) == page


@pytest.mark.parametrize(
    "value",
    [
        1,
        1.5,
        None,
        True,
        "text",
        b"x",
        range(9),
        len,
        int,
        json,
        [],
        {},
        (),
        object(),
        array.array("i", [1]),
        enum.Enum,
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_can_not_be_expanded(value):
    page = expand({"v": [value]}, ["v"])
    assert page["variables"][0]["more"] is False


def test_each_row_leads_to_its_own_parts():
    value = {"a": [Plain(), {"b": Point(5, (6, 7))}]}

    def walk(path):
        for row in expand({"v": value}, path)["variables"]:
            yield ".".join(map(str, row["path"])), row["text"]
            yield from walk(json.loads(json.dumps(row["path"]))) if row["more"] else ()

    found = dict(walk(["v"]))
    assert found["v.0.0.two.0"] == "2"
    assert found["v.0.1.0.1.1"] == "7"


@pytest.mark.parametrize("kind", [list, tuple, set, collections.deque, dict.fromkeys], ids=lambda kind: kind.__name__)
def test_many_items_come_in_pages(kind):
    value = kind(range(250))
    pages = [expand({"v": value}, ["v"], start) for start in (0, 100, 200, 300)]
    assert [len(page["variables"]) for page in pages] == [100, 100, 50, 0]
    assert [page["total"] for page in pages] == [250] * 4
    steps = [row["path"][-1] for page in pages for row in page["variables"]]
    assert steps == list(range(250))


def test_attributes_come_after_items_also_on_later_pages():
    value = Items(range(150))
    assert named(expand({"v": value}, ["v"], 100))[-2:] == ["[149]", "note"]
    assert named(expand({"v": value}, ["v"], 150)) == ["note"]


@pytest.mark.parametrize("path", [["gone"], ["v", 7], ["v", -1], ["v", "name"], ["v", 0, 0], ["v", True, "x"]])
def test_what_is_not_there_any_more(path):
    with pytest.raises(ValueError, match="is not there any more"):
        expand({"v": [1]}, path)


def test_what_changes_while_it_is_read():
    class Growing:
        def __repr__(self):
            value[len(value)] = 0
            return "growing"

    value = {0: Growing(), 1: Growing()}
    with pytest.raises(ValueError, match="changes while it is read"):
        expand({"v": value}, ["v"])


# torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 3)
        self.register_buffer("seen", torch.zeros(4))
        self.scale = torch.nn.Parameter(torch.ones(1))
        self.width = 7


def test_a_module_shows_layers_parameters_buffers_and_what_is_its_own():
    page = expand({"net": Net()}, ["net"])
    assert named(page) == ["layer", "scale", "seen", "training", "width"]
    assert [row["stats"] for row in page["variables"]] == [False, True, True, False, False]
    assert named(expand({"net": Net()}, ["net", "layer"]))[:2] == ["weight", "bias"]


def test_a_sequence_of_modules_shows_each():
    page = expand({"net": torch.nn.Sequential(torch.nn.ReLU(), Net())}, ["net"])
    assert named(page)[:2] == ["0", "1"]
    nested = expand({"net": torch.nn.Sequential(torch.nn.ReLU(), Net())}, ["net", "1", "layer"])
    assert "weight" in named(nested)


def test_optimizers_and_loaders_are_objects():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    page = expand({"o": optimizer}, ["o"])
    assert "param_groups" in named(page)
    loader = torch.utils.data.DataLoader([1, 2, 3], batch_size=2)
    assert rows(expand({"l": loader}, ["l"]))["batch_size"] == "2"


def test_a_tensor_has_no_parts_and_is_not_read():
    row = expand({"v": [torch.empty(2**31, dtype=torch.uint8)]}, ["v"])["variables"][0]
    assert (row["more"], row["stats"]) == (False, True)
    assert row["text"] == "Tensor(shape=(2147483648,), uint8)"


# tables, as pandas and polars make them


class Series:
    def __init__(self, dtype):
        self.dtype, self.shape = dtype, (3,)


class DataFrame:
    shape, columns = (3, 2), ["a", 5]

    class _At:
        def __getitem__(self, key):
            return Series(["int64", "float64"][key[1]])

    iloc = _At()


for made in (Series, DataFrame):
    made.__module__ = "pandas.core.frame"


def test_a_table_shows_its_columns():
    page = expand({"t": DataFrame()}, ["t"])
    assert named(page) == ["['a']", "[5]"]
    assert [row["text"].partition(",")[0] for row in page["variables"]] == ["int64", "float64"]
    assert [row["path"] for row in page["variables"]] == [["t", 0], ["t", 1]]


def test_a_class_made_of_a_table_is_an_object_like_others():
    class Mine(DataFrame):
        @property
        def columns(self):
            raise AssertionError

    mine = Mine()
    mine.own = 1
    assert rows(expand({"t": mine}, ["t"])) == {"own": "1"}


# nothing of the program runs


class Strict(type):
    """A class of this kind answers nothing itself."""

    def __instancecheck__(cls, instance):
        raise AssertionError

    def __subclasscheck__(cls, subclass):
        raise AssertionError


ran = []


def forbidden(name):
    def method(self, *args):
        ran.append(name)
        return object.__getattribute__(self, args[0]) if name == "__getattribute__" else NotImplemented

    return method


NAMES = ["__getattr__", "__getattribute__", "__len__", "__iter__", "__eq__", "__hash__", "__bool__", "__contains__", "__getitem__", "__dir__", "__index__", "__int__", "__str__", "__format__", "__del__", "__call__", "_repr_html_", "__sizeof__", "__reduce__"]  # fmt: skip
MEMBERS = {name: forbidden(name) for name in NAMES}
PROPERTIES = {name: property(forbidden(name)) for name in ("__dict__", "__class__", "shape", "dtype", "columns", "_fields", "__wrapped__", "own")}  # fmt: skip
Strange = Strict("Strange", (), {**MEMBERS, **PROPERTIES, "__repr__": lambda self: "strange"})
StrangeDict = Strict("StrangeDict", (dict,), {**MEMBERS, "__repr__": lambda self: "strange dict"})
StrangeList = Strict("StrangeList", (list,), {**MEMBERS, "__repr__": lambda self: "strange list"})


class Proxy:
    """As werkzeug's: even its ``__dict__`` is asked for."""

    @property
    def __dict__(self):
        ran.append("__dict__")
        return {"secret": 1}

    def __getattr__(self, name):
        ran.append(name)
        return self


@vaccinate
def unit(strange, mapping, sequence, proxy):
    return 1 / 0, strange, mapping, sequence, proxy


def test_no_code_of_the_program_runs_but_repr():
    def run():
        return unit(Strange(), StrangeDict(k=1), StrangeList([1]), Proxy())

    def all_of_it(state):
        level = state.overview()["selected"]
        frame = state.frame(level)
        before = list(ran)
        for row in frame["variables"]:
            state.expand(level, row["path"])
            state.complete(level, f"{row['name']}.")
        state.complete(level, ""), state.functions(), state.variables(level, 0, "s")
        return frame, before + ran

    frame, happened = asked(run, all_of_it)
    assert happened == []
    assert rows(frame)["strange"] == "strange"
    assert {row["name"]: row["more"] for row in frame["variables"]} == {
        "strange": False,
        "mapping": True,
        "sequence": True,
        "proxy": False,
    }


def test_a_repr_that_fails_or_hangs_is_only_a_text():
    class Failing:
        def __repr__(self):
            raise KeyboardInterrupt

    page = expand({"v": [Failing(), datetime.date(2024, 1, 2)]}, ["v"])
    assert list(rows(page).values()) == ["<repr failed: KeyboardInterrupt>", "datetime.date(2024, 1, 2)"]

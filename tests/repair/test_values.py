"""Values of a statement's expressions: nothing of the program runs, and nothing large is copied."""

from __future__ import annotations

import linecache
import textwrap
from collections import UserDict

import pytest

from daifu_ipy.repair.recording import record_frames
from tests.repair.test_stack import raised


def values(statement: str, **names) -> dict[str, str]:
    source = f"def program({', '.join(names)}):\n{textwrap.indent(statement, '    ')}\nprogram(**names)\n"
    return dict(record_frames(raised(source, names=names, fail=lambda *_: [][0]).__traceback__)[1].variables)


class Touchy:
    """Every access that the program itself could see fails the test."""

    __slots__ = ("__dict__", "slot")

    def __init__(self):
        object.__setattr__(self, "plain", 1)
        self.slot = 2

    def touched(self, *_):
        raise AssertionError("code of the program ran")

    __getattribute__ = __getattr__ = __getitem__ = __len__ = __iter__ = __eq__ = __bool__ = __contains__ = touched
    __hash__ = object.__hash__
    prop = property(touched)


class Missing(dict):
    def __missing__(self, key):
        raise AssertionError("code of the program ran")


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("fail(o.plain, o.slot, o.prop, o.absent)", {"o.plain": "1", "o.slot": "2"}),
        ("fail(o[0], o[o], o.plain[0])", {"o.plain": "1"}),
        ('fail(d["a"], d["b"], d[k])', {"d": "{'a': 1}", 'd["a"]': "1", "k": "'a'", "d[k]": "1"}),
        ("fail(l[0], l[-1], l[9], l[i])", {"l": "[5, 6]", "l[0]": "5", "l[-1]": "6", "i": "1", "l[i]": "6"}),
        ("fail(l[0:1], l + l, sorted(l), l * 1000)", {"l": "[5, 6]"}),
        ("fail(m['x'])", {"m": "Missing({})"}),
        ("fail(u['x'])", {"u": "UserDict({'x': 1})"}),
        ("fail(t['x'])", {"t": "{<Touchy object>: 1, 'x': 2}"}),
        ("fail([i for i in l])", {"l": "[5, 6]"}),
        ("fail(lambda i: i, l)", {"l": "[5, 6]"}),
    ],
)
def test_nothing_of_the_program_runs(statement, shown):
    names = {
        "o": Touchy(), "d": {"a": 1}, "k": "a", "l": [5, 6], "i": 1, "m": Missing(), "u": UserDict(x=1), "n": 3,
        "t": {Touchy(): 1, "x": 2},
    }  # fmt: skip
    found = values(statement, **names)
    if statement.startswith("fail([i"):  # the comprehension is over: `i` is the function's own
        found.pop("i", None)
    assert {name: text for name, text in found.items() if name != "o"} == shown


def test_a_large_dict_is_not_looked_into():
    assert values("fail(d['x'])", d=dict.fromkeys(range(100_000))).keys() == {"d"}


def test_arrays_are_not_indexed():
    numpy = pytest.importorskip("numpy")
    assert values("fail(a[0], a[1:])", a=numpy.zeros(3)) == {"a": "ndarray(shape=(3,), float64)"}


def test_layers_and_parameters_of_modules():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(2, 3)

        def __getattr__(self, name):
            raise AssertionError("code of the program ran")

    assert values("fail(net.fc.weight, net.nothing)", net=Net()) == {
        "net.fc": "<Linear(in_features=2, out_features=3, bias=True), training>",
        "net.fc.weight": "Parameter(shape=(3, 2), float32, requires_grad)",
    }


def test_names_in_the_executing_node_come_before_others():
    names = {f"v{i}": i for i in range(30)}
    assert "v29" in values(f"x = [{', '.join(list(names)[:-1])}, fail(v29)]", **names)


def test_source_of_another_function_is_not_shown():
    error = raised("def f(a):\n    return a / 0\nf(1)")
    name = error.__traceback__.tb_frame.f_code.co_filename
    text = "import os\ndef g(a):\n    return a / 1\n\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    record = record_frames(error.__traceback__)[-1]
    assert (record.note, record.variables, record.context) == ("its source has changed since", (), ())

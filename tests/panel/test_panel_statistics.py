"""Statistics against those of numpy and torch themselves, and what has none."""

from __future__ import annotations

import json
import math
import re

import numpy
import pytest
import torch
from torch.overrides import TorchFunctionMode

from daifu_ipy.frontends import panel_statistics
from daifu_ipy.frontends.panel_statistics import has_statistics, pieces, statistics
from tests.panel.asking import asked_in_cell

GENERATOR = numpy.random.default_rng(0)


def numbers(text):
    """What a text of statistics says, by name."""
    found = {name: float(value) for name, value in re.findall(r"(min|max|mean|std) (\S+?)(?:,|$|\n)", text)}
    return found | {name: int(count.replace(",", "")) for count, name in re.findall(r"([\d,]+) (NaN|infinite|zeros|values$)", text, re.M)}  # fmt: skip


def reference(array, correction):
    """The same, as numpy computes it."""
    array = numpy.abs(array) if array.dtype.kind == "c" else array
    finite = array[numpy.isfinite(array)].astype(numpy.float64)
    found = {
        "NaN": int(numpy.isnan(array).sum()),
        "infinite": int(numpy.isinf(array).sum()),
        "zeros": int((array == 0).sum()),
        "values": array.size,
    }
    if finite.size:
        found |= {"min": finite.min(), "max": finite.max(), "mean": finite.mean()}
    if finite.size > correction:
        found["std"] = finite.std(ddof=correction)
    return found


def same(shown, expected):
    assert shown.keys() == expected.keys()
    assert all(math.isclose(shown[name], expected[name], rel_tol=2e-5, abs_tol=1e-9) for name in expected), (shown, expected)  # fmt: skip


SPECIAL = numpy.array([[1.5, -2, numpy.nan, 0], [numpy.inf, -numpy.inf, -0.0, 4]])
ARRAYS = [
    numpy.arange(12.0).reshape(3, 4),
    numpy.arange(12.0).reshape(3, 4).T[::-1, ::2],
    SPECIAL,
    SPECIAL.astype(numpy.float32),
    SPECIAL.astype(numpy.float16),
    numpy.array([1 + 1j, complex("nan"), complex("inf"), 0, -3j]),
    numpy.array([True, False, True]),
    numpy.array([2**62, -(2**62), 3], dtype=numpy.int64),
    numpy.array([0, 255], dtype=numpy.uint8),
    numpy.array(7),
    numpy.array([]),
    numpy.array([numpy.nan]),
    GENERATOR.normal(1e6, 1e-2, size=(40, 50)),
    GENERATOR.integers(0, 9, size=(7, 5, 3)),
    numpy.broadcast_to(numpy.arange(3.0), (1000, 3)),
]


@pytest.fixture(params=[2**20, 4], ids=["at once", "in pieces"])
def most(request, monkeypatch):
    monkeypatch.setattr(panel_statistics, "_PIECE", request.param)


@pytest.mark.usefixtures("most")
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays(array):
    same(numbers(statistics(array)), reference(array, 0))


@pytest.mark.usefixtures("most")
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_tensors(array):
    tensor = torch.from_numpy(array.copy() if any(step < 0 for step in array.strides) else array)
    same(numbers(statistics(tensor)), reference(array, 1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.uint16, torch.uint32, torch.int8])
def test_types_that_numpy_does_not_have_or_torch_computes_little_with(dtype):
    tensor = torch.tensor([0, 1, 2, 8]).to(dtype)
    same(numbers(statistics(tensor)), reference(numpy.array([0.0, 1, 2, 8]), 1))


def test_strides_are_respected_without_a_copy():
    tensor = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)[::2]
    same(numbers(statistics(tensor)), reference(tensor.numpy(), 1))
    parts = list(pieces(tensor, 2))
    assert torch.equal(torch.cat([part.flatten() for part in parts]).sort()[0], tensor.flatten().sort()[0])
    assert {part.untyped_storage().data_ptr() for part in parts} == {tensor.untyped_storage().data_ptr()}


def test_a_parameter_and_a_tensor_that_takes_part_in_a_graph():
    parameter = torch.nn.Parameter(torch.tensor([1.0, 3.0]))
    assert numbers(statistics(parameter))["mean"] == 2
    made = parameter * 2
    assert numbers(statistics(made))["mean"] == 4
    assert made.requires_grad
    assert torch.is_grad_enabled()
    made.sum().backward()
    assert parameter.grad.tolist() == [2, 2]


def test_the_random_state_stays():
    before = torch.get_rng_state()
    statistics(torch.ones(3))
    assert torch.equal(torch.get_rng_state(), before)


def test_no_mode_and_no_class_of_the_program_sees_it():
    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    mine = torch.tensor([1.0, 5.0]).as_subclass(Mine)
    plain = torch.tensor([1.0, 5.0])
    seen.clear()
    with Mode():
        assert has_statistics(mine)
        texts = [statistics(mine), statistics(plain)]
    assert [numbers(text)["mean"] for text in texts] == [3, 3]
    assert seen == []


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError


def fake():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(3)


NONE = {
    "meta": lambda: torch.empty(3, device="meta"),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "fake": fake,
    "wrapper": lambda: Wrapper(torch.ones(2)),
    "uninitialised": lambda: torch.nn.LazyLinear(2).weight,
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
    "objects": lambda: numpy.array([object()]),
    "texts": lambda: numpy.array(["a"]),
    "times": lambda: numpy.array(["2024-01-01"], dtype="datetime64[D]"),
    "masked": lambda: numpy.ma.masked_array([1, 2], [True, False]),
    "list": lambda: [1, 2],
    "number": lambda: 3,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", NONE.values(), ids=NONE)
def test_what_has_none(make):
    value = make()
    assert not has_statistics(value)
    with pytest.raises(ValueError, match="statistics are of tensors and arrays"):
        statistics(value)


def test_a_transformed_tensor_has_none():
    seen = []

    def look(x):
        seen.append(has_statistics(x))
        return x * 2

    torch.vmap(look)(torch.ones(3, 2))
    assert seen == [False]


def test_memory_that_was_given_back_is_not_read():
    tensor = torch.ones(1000)
    tensor.untyped_storage().resize_(0)
    assert statistics(tensor) == "its data can't be read: its memory was given back (as sharded training does)"


def test_a_memory_map_is_read(tmp_path):
    mapped = numpy.memmap(tmp_path / "data", dtype="float32", mode="w+", shape=(5,))
    mapped[:] = 3
    assert numbers(statistics(mapped))["mean"] == 3


def test_reading_ends_after_its_time(monkeypatch):
    monkeypatch.setattr(panel_statistics, "SECONDS", 0)
    monkeypatch.setattr(panel_statistics, "_PIECE", 100)
    text = statistics(torch.ones(1000))
    assert "only a part was read, in 0 s: 62 of 1,000 values" in text


def test_in_a_crash_by_path():
    cell = "import torch\nclass Net(torch.nn.Linear): pass\nnet = Net(1, 1)\n1 / 0"
    text = asked_in_cell(cell, lambda s: s.statistics(s.overview()["selected"], ["net", "weight"]))
    assert numbers(text)["values"] == 1
    assert json.dumps(text)

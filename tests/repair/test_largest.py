"""Where the memory went: sizes only, each storage once, by the names of the variables."""

from __future__ import annotations

import re

import pytest

from daifu_ipy.repair.largest import is_out_of_memory, largest_tensors
from daifu_ipy.repair.stack import format_stack
from tests.repair.test_stack import raised

MIB = 2**20


def sizes(*namespaces) -> dict[str, int]:
    lines = largest_tensors(namespaces)
    return {m[2]: int(m[1]) for line in lines if (m := re.match(r" *(\d+) MiB  (\w+):", line))}


@pytest.mark.parametrize(
    ("error", "is_so"),
    [
        (MemoryError(), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("std::bad_alloc"), True),
        (type("XlaRuntimeError", (RuntimeError,), {})("RESOURCE_EXHAUSTED: Out of memory"), True),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), True),
        (RuntimeError("shape"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_what_counts_as_out_of_memory(error, is_so):
    assert is_out_of_memory(error) is is_so


def test_sizes_by_name_largest_first():
    torch = pytest.importorskip("torch")
    small, big = torch.zeros(MIB // 4), torch.zeros(MIB)
    found = sizes({"small": small, "big": big, "again": big, "view": big[10:], "log": [torch.zeros(MIB // 2)] * 3})
    assert list(found.items()) == [("big", 4), ("log", 2), ("small", 1)]
    assert largest_tensors([{"big": big}])[1] == "        4 MiB  big: Tensor(shape=(1048576,), float32)"


def test_a_view_counts_what_it_keeps_alive_and_an_expanded_one_little():
    torch = pytest.importorskip("torch")
    assert sizes({"v": torch.zeros(MIB)[:1], "e": torch.zeros(1).expand(MIB, MIB)}) == {"v": 4}


def test_modules_their_gradients_and_optimizers():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(1024, 1024, bias=False)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.zeros(1, 1024)).sum().backward()
    optimizer.step()
    lines = largest_tensors([{"optimizer": optimizer, "model": model}])
    assert sizes({"optimizer": optimizer, "model": model}) == {"model": 8, "optimizer": 8}
    assert any("4 MiB of it gradients" in line for line in lines)


def test_sparse_and_fake_tensors_do_no_harm():
    torch = pytest.importorskip("torch")
    nested = torch.sparse_coo_tensor([[0], [1]], [1.0], (3, 3), check_invariants=True)
    assert largest_tensors([{"s": nested, "m": torch.empty(1, device="meta")}]) == []


def test_tensors_of_own_classes_answer_as_plain_ones():
    torch = pytest.importorskip("torch")

    class Broken(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("mine")

    leaf = torch.zeros(MIB, requires_grad=True)
    leaf.sum().backward()
    assert sizes({"own": torch.zeros(MIB).as_subclass(Broken), "leaf": leaf}) == {"own": 4, "leaf": 8}


def test_an_object_with_a_gradient_of_its_own_is_not_asked():
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")

    class Own(numpy.ndarray):
        is_leaf = requires_grad = True

        @property
        def grad(self):
            raise AssertionError("code of the program")

    assert torch
    assert sizes({"own": numpy.zeros(MIB).view(Own)}) == {"own": 8}


def test_arrays_by_what_owns_them():
    numpy = pytest.importorskip("numpy")
    whole = numpy.zeros(MIB)
    assert sizes({"part": whole[5:], "whole": whole}) == {"part": 8}


def test_others_are_summed():
    torch = pytest.importorskip("torch")
    lines = largest_tensors([{f"t{i}": torch.zeros(MIB) for i in range(15)}])
    assert len(lines) == 12
    assert lines[-1] == "       20 MiB  in 5 others"


def test_the_stack_lists_them_for_such_an_error_only():
    torch = pytest.importorskip("torch")
    source = "def f(error):\n    act = torch.zeros(2**20)\n    raise error\nf(error)"
    text = format_stack(raised(source, torch=torch, error=RuntimeError("out of memory")))
    assert text.splitlines()[-3:] == [
        "largest tensors here:",
        "        4 MiB  act: Tensor(shape=(1048576,), float32)",
        "RuntimeError: out of memory",
    ]
    assert "largest" not in format_stack(raised(source, torch=torch, error=RuntimeError("other")))

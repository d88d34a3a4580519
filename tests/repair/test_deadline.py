"""Foreign reprs: they may hang, touch devices or crash, and the run that is shown by them goes on."""

from __future__ import annotations

import os
import signal
import threading
import weakref

import pytest

import daifu_ipy
from daifu_ipy.repair.deadline import one_budget
from daifu_ipy.repair.summary import error_text, summarise

LATE = "<repr took too long>"


def foreign(body):
    return type("Foreign", (), {"__repr__": lambda self: body()})()


def endless():
    while True:
        pass


def test_an_endless_loop_is_left_and_ended():
    before = set(threading.enumerate())
    assert summarise(foreign(endless)) == LATE
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()


def test_a_lock_that_the_crash_holds():
    lock = threading.Lock()

    def takes():
        with lock:
            return "free"

    with lock:
        assert summarise([1, foreign(takes), 2]) == f"[1, {LATE}, 2]"
    assert summarise(foreign(takes)) == "free"


@pytest.mark.parametrize("with_block", [True, False])
def test_a_lock_that_is_waited_for_is_let_go_again(with_block):
    lock = threading.Lock()

    def with_lock():
        with lock:
            return "free"

    def acquire_and_release():
        lock.acquire()
        try:
            return "free"
        finally:
            lock.release()

    before = set(threading.enumerate())
    with lock:
        assert summarise(foreign(with_lock if with_block else acquire_and_release)) == LATE
        waiting = set(threading.enumerate()) - before
    for thread in waiting:
        thread.join(30)
    assert lock.acquire(timeout=30)


def test_a_type_that_was_late_is_not_asked_again_for_the_same_stack():
    asked = []

    class Slow:
        def __repr__(self):
            asked.append(1)
            endless()

    with one_budget():
        assert [summarise(Slow()) for _ in range(3)] == [LATE] * 3
    assert len(asked) == 1
    assert summarise(Slow()) == LATE
    assert len(asked) == 2


def test_all_values_of_a_stack_have_one_budget():
    asked = []

    def hang():
        asked.append(1)
        endless()

    with one_budget():
        assert [summarise(foreign(hang)) for _ in range(12)] == [LATE] * 12
    assert len(asked) < 12


def test_the_message_of_an_exception_has_a_deadline_too():
    error = type("E", (Exception,), {"__module__": "__main__", "__str__": lambda self: endless()})()
    assert error_text(error) == "E: <message took too long>"


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_the_wait():
    def interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        endless()

    assert summarise(foreign(interrupts)) == "<repr failed: KeyboardInterrupt>"


def test_the_value_is_let_go():
    value = foreign(lambda: "text")
    alive = weakref.ref(value)
    assert summarise(value) == "text"
    del value
    assert alive() is None


def test_an_error_in_a_protected_repr_is_no_crash_of_its_own():
    asked = []

    class Broken:
        @daifu_ipy.vaccinate
        def __repr__(self):
            return 1 / 0

    with daifu_ipy.repair_with(lambda crash: asked.append(crash)):
        assert summarise(Broken()) == "<repr failed: ZeroDivisionError>"
    assert asked == []


def test_a_repr_may_show_tensors_but_not_compute_on_a_device():
    torch = pytest.importorskip("torch")
    there, here = torch.ones(3, device="meta"), torch.ones(3)
    assert summarise(foreign(lambda: f"B({there}, {there!r}, {here.sum().item()})")) == (
        "B(Tensor(shape=(3,), float32, meta), Tensor(shape=(3,), float32, meta), 3.0)"
    )
    assert summarise(foreign(lambda: f"{there + 1}")) == "<repr failed: TouchesDevice>"
    assert summarise(foreign(lambda: f"{torch.zeros(3, device='cuda')}")) == "<repr failed: TouchesDevice>"
    assert summarise(foreign(lambda: f"{there.shape} {len(there)}")) == "torch.Size([3]) 3"


def test_a_message_with_a_tensor_does_not_read_it():
    torch = pytest.importorskip("torch")
    there = torch.ones(3, device="meta")
    assert error_text(ValueError("bad", there)) == "ValueError: ('bad', Tensor(shape=(3,), float32, meta))"
    assert error_text(KeyError(there)) == "KeyError: Tensor(shape=(3,), float32, meta)"

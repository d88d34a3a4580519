"""Save first: what is found and saved, that plain torch loads it, and that one failure stops nothing."""

from __future__ import annotations

import collections
import os
import random
from dataclasses import dataclass

import pytest

from daifu_ipy import Skip, repair_with, run_cell, vaccinate
from daifu_ipy.repair.saving import Saved, save_first, savers
from tests.fakes import FakeCrash

torch = pytest.importorskip("torch")
nn, optim = torch.nn, torch.optim


def saved_of(run, path=None):
    """What `save_first` says at the crash of a run; its file's contents."""
    found = []

    def manager(crash):
        found.append(save_first(crash, path))
        return Skip()

    with repair_with(manager):
        run()
    (saved,) = found
    return saved, (torch.load(saved.path, weights_only=True) if saved.path else None)


@pytest.fixture(autouse=True)
def in_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)


def trained():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    model(torch.randn(3, 4)).sum().backward()
    optimizer.step()
    return model, optimizer


@vaccinate
def train(model, optimizer, *others):
    best = 0.5
    for epoch in range(3):
        for name in "ab":
            if epoch == 1 and name == "b":
                raise ValueError("boom")
    return best


def test_a_run_goes_on_from_the_file_as_from_memory():
    model, optimizer = trained()
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)
    scaler = torch.amp.GradScaler("cpu")
    saved, contents = saved_of(lambda: train(model, optimizer, scheduler, scaler))
    assert saved.failed == ()
    assert set(contents["state"]) == {"model", "optimizer", "others[0]", "others[1]"}
    torch.manual_seed(5)
    other = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    again = optim.AdamW(other.parameters(), lr=1)
    other.load_state_dict(contents["state"]["model"])
    again.load_state_dict(contents["state"]["optimizer"])
    schedule = optim.lr_scheduler.OneCycleLR(again, 0.1, total_steps=10)
    schedule.load_state_dict(contents["state"]["others[0]"])
    results = []
    for one, opt, sched in [(model, optimizer, scheduler), (other, again, schedule)]:
        torch.set_rng_state(contents["rng"]["torch"])
        opt.zero_grad()
        one(torch.randn(3, 4)).sum().backward()
        opt.step()
        sched.step()
        results.append([p.clone() for p in one.state_dict().values()])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_counters_and_generators():
    model, optimizer = trained()
    random.seed(3)
    _, contents = saved_of(lambda: train(model, optimizer))
    counters = {name.rpartition(": ")[2]: value for name, value in contents["counters"].items()}
    assert (counters["epoch"], counters["name"], counters["best"]) == (1, "b", 0.5)
    expected = random.random()
    random.setstate(contents["rng"]["python"])
    assert random.random() == expected
    assert contents["crash"].startswith("ValueError: boom, in train")


@dataclass
class Config:
    inner: object


@dataclass(slots=True)
class Slots:
    ema: object


class Trainer:
    def __init__(self, **parts):
        vars(self).update(parts)

    @property
    def trap(self):
        raise AssertionError("a property was run")


def test_it_looks_into_containers_and_attributes():
    models = [nn.Linear(1, 1) for _ in range(5)]
    trainer = Trainer(model=models[0], state=Slots(models[1]))
    things = {"heads": [models[2]], "config": Config(models[3]), 7: models[4]}

    @vaccinate
    def run(trainer, things):
        1 / 0

    _, contents = saved_of(lambda: run(trainer, things))
    expected = {"trainer.model", "trainer.state.ema", "things['heads'][0]", "things['config'].inner", "things[7]"}
    assert set(contents["state"]) == expected


def test_parts_of_a_model_are_saved_with_it_and_nothing_twice():
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))

    @vaccinate
    def run(encoder, model, same):
        1 / 0

    _, contents = saved_of(lambda: run(model[0], model, model))
    assert set(contents["state"]) == {"model"}


def test_the_notebook_and_outer_functions_are_looked_at():
    namespace = {"net": nn.Linear(1, 1), "made": nn.Linear(1, 1)}
    text = "def inner(model):\n    1 / 0\ndef outer(made):\n    inner(made)\n    return 1"
    run_cell(text, namespace)
    other = nn.Linear(2, 2)
    _, contents = saved_of(lambda: namespace["outer"](other))
    assert list(contents["state"]) == ["model", "net", "made"]
    assert contents["state"]["model"]["weight"].shape == (2, 2)
    _, contents = saved_of(lambda: run_cell("1 / 0", namespace))
    assert set(contents["state"]) == {"net", "made"}


class Bad:
    def state_dict(self):
        raise RuntimeError("not now")


class Odd:
    def state_dict(self):
        return {"step": 3, "words": collections.Counter("aab"), "hook": print, "tensor": torch.ones(2)}


class FullyShardedDataParallel(nn.Module):  # known by its name
    def state_dict(self, *args, **kwargs):
        raise AssertionError("would wait for other ranks")


class Sharded(torch.Tensor):
    pass


class WithOwnTensor:
    def state_dict(self):
        return {"weight": torch.ones(2).as_subclass(Sharded)}


def test_what_fails_is_named_and_the_rest_is_saved():
    model, _ = trained()

    @vaccinate
    def run(bad, model, odd, wrapped, meta, own):
        1 / 0

    parts = Bad(), model, Odd(), nn.Sequential(FullyShardedDataParallel()), nn.Linear(1, 1, device="meta")
    saved, contents = saved_of(lambda: run(*parts, WithOwnTensor()))
    assert set(contents["state"]) == {"model", "odd"}
    assert contents["state"]["odd"]["words"] == {"a": 2, "b": 1}
    assert dict(saved.failed) == {
        "bad": "RuntimeError: not now",
        "wrapped": "FullyShardedDataParallel: all ranks would have to take part",
        "meta": "a tensor on the meta device has no data",
        "own": f"a {Sharded.__module__}.Sharded may need other ranks, or its library, to be saved",
        "odd['hook']": "a builtin_function_or_method is no plain value",
    }
    for name in ("bad: RuntimeError", "wrapped: Fully", "weights_only=True", "model: torch.nn"):
        assert name in str(saved)


class HalfMade(nn.Module):
    def __init__(self):
        self.size = 1


class Registry(type):
    def __getattr__(cls, name):
        raise RuntimeError("not ready")


class Registered(metaclass=Registry):
    pass


def test_no_odd_object_costs_the_others():
    model, _ = trained()

    @vaccinate
    def run(model, half, registered):
        1 / 0

    saved, contents = saved_of(lambda: run(model, HalfMade(), Registered()))
    assert set(contents["state"]) == {"model"}
    assert [name for name, _ in saved.failed] == ["half"]


def test_a_numpy_generator_of_another_kind_costs_nothing():
    numpy = pytest.importorskip("numpy")
    usual = numpy.random.get_bit_generator()
    numpy.random.set_bit_generator(numpy.random.PCG64(1))
    try:
        _, contents = saved_of(lambda: train(*trained()))
    finally:
        numpy.random.set_bit_generator(usual)
    assert "numpy" not in contents["rng"]
    assert {"python", "torch"} <= contents["rng"].keys()


def test_no_file_is_ever_overwritten(tmp_path):
    model, optimizer = trained()
    there = tmp_path / "mine.pt"
    there.write_text("mine")
    saved, _ = saved_of(lambda: train(model, optimizer), there)
    assert (saved.path, there.read_text()) == (None, "mine")
    assert "exists: choose another name" in str(saved)
    paths = {saved_of(lambda: train(model, optimizer))[0].path for _ in range(3)}
    assert len(paths) == 3
    assert saved_of(lambda: train(model, optimizer), tmp_path / "new.pt")[0].path == str(tmp_path / "new.pt")
    assert sorted(name for name in os.listdir(tmp_path) if name.endswith(".part")) == []


def test_a_disk_without_room_is_not_filled(monkeypatch, tmp_path):
    model, optimizer = trained()
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 100}))
    saved, _ = saved_of(lambda: train(model, optimizer))
    assert saved.path is None
    assert "MiB are needed" in str(saved)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_error_while_writing_leaves_no_half_file(error, monkeypatch, tmp_path):
    model, optimizer = trained()
    real = torch.save

    def fail(document, file):
        real(document, file)
        raise error

    monkeypatch.setattr(torch, "save", fail)
    if isinstance(error, OSError):
        saved, _ = saved_of(lambda: train(model, optimizer))
        assert "No space left" in str(saved)
    else:
        with pytest.raises(ValueError, match="boom"):
            saved_of(lambda: train(model, optimizer))
    assert os.listdir(tmp_path) == []


def test_a_directory_that_is_not_there(tmp_path):
    model, optimizer = trained()
    saved, _ = saved_of(lambda: train(model, optimizer), tmp_path / "no" / "file.pt")
    assert saved.path is None
    assert "FileNotFoundError" in str(saved)


def test_a_device_that_does_not_answer_costs_only_what_is_on_it(monkeypatch):
    from daifu_ipy.libraries import torch_state

    monkeypatch.setattr(
        torch_state, "_trouble", lambda torch, device: "device-side assert" if device == "cpu" else None
    )
    model, optimizer = trained()
    saved, _ = saved_of(lambda: train(model, optimizer))
    assert saved.path is None
    assert dict(saved.failed)["model"] == "cpu does not answer: device-side assert"


def test_a_crash_inside_a_step_is_said():
    model, optimizer = trained()
    model[0].weight.grad = torch.ones(4, 4).to_sparse()

    @vaccinate
    def run(model, optimizer):
        optimizer.step()

    saved, _ = saved_of(lambda: run(model, optimizer))
    assert "inside an optimizer's step" in str(saved)


def test_without_anything_to_save():
    saved = save_first(FakeCrash(frames=()))
    assert str(saved) == (
        "nothing was saved\nno model, optimizer or the like was found in the crashed functions and their modules"
    )


def test_a_saver_that_fails_is_reported(monkeypatch):
    def fail(crash, path):
        raise RuntimeError("no")

    monkeypatch.setattr("daifu_ipy.repair.saving.savers", [fail])
    assert "RuntimeError: no" in str(save_first(FakeCrash()))
    monkeypatch.setattr("daifu_ipy.repair.saving.savers", [lambda crash, path: Saved("x")])
    assert save_first(FakeCrash()).path == "x"
    assert savers


def test_tensors_are_not_copied_by_looking():
    model, optimizer = trained()
    before = {name: value.data_ptr() for name, value in model.state_dict().items()}
    saved_of(lambda: train(model, optimizer))
    assert {name: value.data_ptr() for name, value in model.state_dict().items()} == before
    assert model.training

"""A real training run that crashes, and the runs that it is compared with."""

from __future__ import annotations

SETUP = """
%load_ext daifu_ipy
import torch
from sklearn.datasets import load_digits
from torch import nn

digits = load_digits()
images, labels = torch.tensor(digits.data).float() / 16, torch.tensor(digits.target)
damaged = labels.clone()
damaged[1000] = 12  # there are ten digits


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
"""

TRAIN = """
def train(data):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    curve = []
    for epoch, answers in enumerate(data):
        total = 0.0
        for start in range(0, len(images), 300):
            inputs, targets = images[start : start + 300], answers[start : start + 300]
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        curve.append(round(total, 6))
        print(f"epoch {epoch} loss {curve[-1]}")
    return curve


"""
CRASHING = "curve = train([labels, damaged, labels])\n"
"""Crashes in the second epoch, at the fourth batch, with `Target 12 is out of bounds.`"""

CELL = "%%daifu\n" + TRAIN + CRASHING
CRASH = "IndexError"
MESSAGE = "Target 12 is out of bounds."
STATEMENT = "loss = nn.functional.cross_entropy(model(inputs), targets)"
LINE = CELL.splitlines().index(f"            {STATEMENT}") + 1

MENDED = "targets[100] = labels[1000]"
"""The action that mends the batch; `targets` is a view of `damaged`."""


def same_as(data: str = "[labels, labels, labels]", old: str = "", new: str = "") -> str:
    """A cell that says whether the repaired run gave what this run without a crash gives."""
    assert old in TRAIN
    reference = TRAIN.replace(old, new) if old else TRAIN
    return (
        reference.replace("        print(f", "        (f")
        + f"reference = train({data})\nprint('same', curve == reference)\n"
    )

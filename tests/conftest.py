"""The engine's settings are global: what one test leaves in them must not reach the next."""

from __future__ import annotations

import copy

import pytest

from daifu_ipy.engine.managers import settings
from daifu_ipy.engine.remembered import Remembered
from daifu_ipy.engine.undecided import Log


@pytest.fixture(autouse=True)
def settings_stay():
    before = copy.copy(vars(settings))
    settings.remembered, settings.undecided = Remembered(), Log()
    lists = {name: list(value) for name, value in before.items() if isinstance(value, list)}
    yield
    vars(settings).update(before)
    for name, value in lists.items():
        getattr(settings, name)[:] = value

"""Recovery cases from public crash reports: every file ``NN_*.py`` of DAIFU_CASES (default: cases/)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.scenarios.player import Case, play

FOLDER = Path(os.environ.get("DAIFU_CASES") or Path(__file__).parent / "cases")
FILES = sorted(path for path in FOLDER.glob("*.py") if re.match(r"\d\d_", path.name))


def test_there_are_cases() -> None:
    assert FILES, f"no file NN_*.py in {FOLDER}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    problems = play(Case.load(path))
    assert not problems, "\n".join(problems)

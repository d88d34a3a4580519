"""The house: imports run one way, importing the package stays light, and checks survive `python -O`."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "daifu_ipy"
NAMES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))

# Which parts of the package a part may import, besides itself. `magic` and the files beside the parts
# (`__init__`, `testing`) put the whole together: they may import any, and no part imports them.
MAY_IMPORT = {
    "engine": set(),
    "repair": {"engine"},
    "frontends": {"engine", "repair"},
    "libraries": {"engine", "repair"},
    "distributed": {"engine", "repair"},
    "diagnose": {"engine", "repair"},
}


def imported(source: str, name: str) -> Iterator[str]:
    """The dotted names that a file of the package imports, anywhere in it, also for type checkers only."""
    package = ["daifu_ipy", *name.split("/")[:-1]]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) - level + 1] if level else []
                base = ".".join([*base, *([module] if module else [])])
                yield from (f"{base}.{alias.name}" for alias in names)
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield module


def offences(source: str, name: str) -> list[str]:
    """What a file imports that its part of the house must not."""
    part = name.split("/")[0]
    if part in {"magic", name}:
        return []
    if part not in MAY_IMPORT:
        return [f"{part} has no line in MAY_IMPORT"]
    allowed = MAY_IMPORT[part] | {part}
    return [module for module in imported(source, name) if not _is_allowed(module.split("."), part, allowed)]


def _is_allowed(module: list[str], part: str, allowed: set[str]) -> bool:
    if module[0] == "daifu_ipy":
        return len(module) > 1 and module[1] in allowed
    return part != "engine" or module[0] in sys.stdlib_module_names


@pytest.mark.parametrize("name", NAMES)
def test_imports_run_one_way(name):
    assert offences((PACKAGE / name).read_text("utf-8"), name) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("engine/barrier.py", "import torch"),
        ("engine/barrier.py", "def f():\n    from IPython.core import ultratb"),
        ("engine/barrier.py", "import stack_data"),
        ("engine/barrier.py", "import daifu_ipy"),
        ("engine/barrier.py", "from daifu_ipy import history"),
        ("engine/barrier.py", "from daifu_ipy.repair import rules"),
        ("engine/barrier.py", "from ..repair.rules import Rule"),
        ("engine/barrier.py", "from .. import repair"),
        ("engine/barrier.py", "import importlib\nimportlib.import_module('torch')"),
        ("engine/barrier.py", "__import__('IPython')"),
        ("engine/barrier.py", "if TYPE_CHECKING:\n    from daifu_ipy.frontends.prompt import Prompt"),
        ("repair/rules.py", "from daifu_ipy.frontends.choose import choose"),
        ("repair/rules.py", "from ..magic import commands"),
        ("frontends/prompt.py", "import daifu_ipy.magic.commands"),
        ("frontends/prompt.py", "from daifu_ipy.libraries import lightning"),
        ("libraries/lightning.py", "from daifu_ipy.frontends import panel"),
        ("novel/part.py", "import ast"),
    ],
)
def test_an_import_the_wrong_way_is_found(name, source):
    assert len(offences(source, name)) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        (
            "engine/barrier.py",
            "import ast, collections.abc\nfrom daifu_ipy.engine import unit\nfrom . import crash",
        ),
        ("engine/barrier.py", "from .crash import Crash\nfrom daifu_ipy.engine.invariants import check"),
        (
            "repair/stack.py",
            "import stack_data\nfrom daifu_ipy.engine.crash import Crash\nfrom ..engine import unit",
        ),
        ("frontends/prompt.py", "from IPython.core.debugger import Pdb\nfrom daifu_ipy.repair import stack"),
        ("magic/commands.py", "from daifu_ipy.distributed import ranks\nimport daifu_ipy"),
        ("testing.py", "import daifu_ipy"),
    ],
)
def test_an_import_the_right_way_is_not(name, source):
    assert offences(source, name) == []


@pytest.mark.parametrize("module", ["daifu_ipy", "daifu_ipy.engine", "daifu_ipy.testing"])
def test_import_is_light(module):
    heavy = "{'torch', 'numpy', 'IPython', 'ipywidgets', 'anywidget'}"
    shown = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys, {module}; print(sorted({heavy} & sys.modules.keys()), '{module}' in sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "[] True\n"


def bare_asserts(source: str) -> list[int]:
    """The lines of `assert` statements: `python -O` leaves those out."""
    return [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]


@pytest.mark.parametrize("name", NAMES)
def test_no_bare_assert(name):
    assert bare_asserts((PACKAGE / name).read_text("utf-8")) == []


def test_a_bare_assert_is_found():
    assert bare_asserts("def f(x):\n    if x:\n        assert x > 0\n") == [3]

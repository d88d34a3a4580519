"""Vaccinates again what a module has brought anew: ``%autoreload`` and `importlib.reload` know nothing of vaccination.

Looked for before each cell, behind ``%autoreload`` (whose own hook is called at the same moment), and after each call
of `importlib.reload`.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

from daifu_ipy.engine import versions
from daifu_ipy.engine.managers import settings
from daifu_ipy.engine.native import native_code
from daifu_ipy.engine.remembered import Remembered, functions_now
from daifu_ipy.engine.unit import FunctionNode
from daifu_ipy.engine.vaccinate import CannotVaccinate, all_functions, find_function, parse, vaccinated_function
from daifu_ipy.engine.versions import Version
from daifu_ipy.magic.protect import grouped, listed
from daifu_ipy.magic.running import Runner
from daifu_ipy.magic.transformers import move_last


class Reloading:
    """Watches over what was vaccinated in modules, while the extension is loaded."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._said: set[int] = set()  # the surgeries that are known to be gone
        self._hooks = {"pre_run_cell": self._before_a_cell, "post_run_cell": self._after_a_cell}
        self._reload = importlib.reload
        self._is_installed = False

    def install(self) -> None:
        """Begin to watch."""
        for event, hook in self._hooks.items():
            self._runner.shell.events.register(event, hook)
        self._reload, importlib.reload = importlib.reload, self.reload
        self._is_installed = True

    def remove(self) -> None:
        """End it."""
        self._is_installed = False
        for event, hook in self._hooks.items():
            self._runner.shell.events.unregister(event, hook)
        if importlib.reload == self.reload:
            importlib.reload = self._reload

    def _before_a_cell(self, info: object) -> None:
        self.check()

    def _after_a_cell(self, result: object) -> None:
        """What the cell has loaded may have hooks of its own: the next check is to come behind them."""
        move_last(self._runner.shell.events.callbacks["pre_run_cell"], self._hooks["pre_run_cell"])

    def reload(self, module: ModuleType) -> ModuleType:
        """`importlib.reload`, and the functions of the module that were protected are protected again."""
        made = self._reload(module)
        if self._is_installed and not _is_deep():
            self.check()
        return made

    def check(self) -> None:
        """Vaccinate again what is plain and should not be; whatever happens here, the user's code runs."""
        try:
            for remembered in (settings.remembered, self._runner.remembered):
                for module, functions in _by_module(remembered.lost()).items():
                    self._restore(module, functions, remembered)
            self._say_what_is_gone()
        except Exception as error:
            print(f"daifu: internal error after a reload: {type(error).__name__}: {error}"[:300])

    def _restore(self, module: str, functions: list[FunctionType], remembered: Remembered) -> None:
        done: list[FunctionType] = []
        made: dict[CodeType, CodeType | None] = {}  # an old function and its successor share their code
        for function in functions:
            plain = function.__code__
            if plain not in made:
                made[plain] = self._vaccinated(function)
            code = made[plain]
            if code is None:
                remembered.give_up(function)
                continue
            function.__code__ = code
            done.append(function)
        remembered.add(None, done)
        if remembered is self._runner.remembered:
            self._runner.swapped.update(done)
        if done:
            names = grouped(dict.fromkeys(function.__qualname__ for function in done))
            print(f"daifu: {module} was loaded again: protecting {listed(names)} again")

    def _vaccinated(self, function: FunctionType) -> CodeType | None:
        try:
            code = vaccinated_function(function).code
        except CannotVaccinate as reason:
            self._runner.plain[function.__qualname__] = str(reason)
            print(f"daifu: {function.__module__} was loaded again: {function.__qualname__} runs plainly now: {reason}")
            return None
        self._runner.plain.pop(function.__qualname__, None)
        return code

    def _say_what_is_gone(self) -> None:
        holding = [one for one in versions.all() if not one.reverted and one.number not in self._said]
        modules = _modules_of({file for version in holding for file in version.files})
        for version in holding:
            self._say_if_gone(version, [name for file in version.files for name in modules.get(file, ())])

    def _say_if_gone(self, version: Version, modules: list[str]) -> None:
        for function in _overwritten(version, modules):
            self._said.add(version.number)
            name, number = function.__qualname__, version.number
            print(
                f"daifu: {function.__module__} was loaded again: {name} runs the text of the file, "
                f"without surgery {number} (%daifu diff {number} shows it)"
            )


def _is_deep() -> bool:
    """Whether IPython's deep reload is under way: it would load anew what is imported now, our own modules too."""
    return not isinstance(builtins.__import__, BuiltinFunctionType)


def _by_module(functions: Iterable[FunctionType]) -> dict[str, list[FunctionType]]:
    found: dict[str, list[FunctionType]] = {}
    for function in functions:
        found.setdefault(function.__module__, []).append(function)
    return found


def _modules_of(files: set[str]) -> dict[str, list[str]]:
    """The names of the modules that were loaded from files; a notebook cell is in none."""
    files = {file for file in files if os.path.exists(file)}
    found: dict[str, list[str]] = {}
    for name, module in list(sys.modules.items()) if files else ():
        file = vars(module).get("__file__") if type(module) is ModuleType else None
        if isinstance(file, str) and file in files:
            found.setdefault(file, []).append(name)
    return found


def _overwritten(version: Version, modules: list[str]) -> Iterator[FunctionType]:
    """The functions of a surgery that their modules have brought anew, with another text."""
    for function in (f for name in modules for qualname in version.replaced for f in functions_now(name, qualname)):
        plain = native_code(function.__code__)
        if plain.co_filename in version.files and not _says(version, plain):
            yield function


def _says(version: Version, plain: CodeType) -> bool:
    """Whether the text of a surgery has the function as it runs now."""
    try:
        now = find_function(plain).node
        texts = [one.node for one in all_functions(parse(version.source).body)]
    except (CannotVaccinate, SyntaxError):
        return False
    return any(text.name == now.name and _body(text) == _body(now) for text in texts)


def _body(node: FunctionNode) -> str:
    return ast.dump(ast.Module(node.body, []))

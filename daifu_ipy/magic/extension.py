"""The IPython extension: hands the engine and IPython what they call, and takes all of it back."""

from __future__ import annotations

from types import FrameType, TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from daifu_ipy.engine.crash import set_action_transform
from daifu_ipy.engine.managers import manager_by_api, settings
from daifu_ipy.engine.vaccinate import unvaccinate
from daifu_ipy.frontends.choose import ASKERS, ON_CRASH, Asker, Environment
from daifu_ipy.frontends.hello import hello
from daifu_ipy.frontends.panel import Panel
from daifu_ipy.magic.commands import overview, run_command
from daifu_ipy.magic.manager import CellSettings, CrashManager
from daifu_ipy.magic.namespaces import forget_pdb, local_scope, teach_pdb
from daifu_ipy.magic.options import Daifu, cell_options
from daifu_ipy.magic.reloading import Reloading
from daifu_ipy.magic.revising import Reminder
from daifu_ipy.magic.running import Runner
from daifu_ipy.magic.transformers import CellTransformer, InputTransformer, move_last
from daifu_ipy.repair.places import labels

_loaded: WeakKeyDictionary[Any, Extension] = WeakKeyDictionary()


def load(shell: Any) -> None:
    """``%load_ext daifu_ipy``."""
    if shell not in _loaded:
        _loaded[shell] = Extension(shell)
        _loaded[shell].install()


def unload(shell: Any) -> None:
    """``%unload_ext daifu_ipy``: everything is as before; the notebook's functions have their native code."""
    extension = _loaded.pop(shell, None)
    if extension is not None:
        extension.remove()


class Extension:
    """What was registered with one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.daifu = Daifu(parent=shell)
        self.panel = Panel(hello, self.translate_cell, lambda: shell.display_pub)
        self.asker = Asker("panel", lambda environment: environment.has_panel, self.panel, yields=True)
        self.manager = CrashManager(self.daifu, shell, self.panel.has_shown)
        self.runner = Runner(shell, self.daifu, self.manager)
        self.magics = DaifuMagics(shell, self.runner)
        self.reloading = Reloading(self.runner)
        self.reminder = Reminder(shell)
        self.texts = InputTransformer(self._coming)
        self.cells = CellTransformer(self.runner, self.texts)
        self._default = settings.default
        self._intercept = settings.intercept

    def label(self, filename: str) -> str | None:
        """What IPython calls the cell with this file name."""
        name = self.shell.compile.format_code_name(filename)
        return None if name is None else " ".join(name)

    def _coming(self) -> None:
        move_last(self.shell.ast_transformers, self.cells)

    def _starts(self, cell: CellSettings) -> None:
        """A page is asked whether it can show the panel, where a crash may be asked about there."""
        asks = manager_by_api() is None and "panel" in ON_CRASH[cell.on_crash]
        if asks and Environment.detect().allows_stdin:
            self.panel.cell_starts()

    def translate_cell(self, text: str) -> str:
        """A cell's text as IPython runs it."""
        return str(self.shell.transform_cell(text))

    def install(self) -> None:
        """Register everything."""
        shell = self.shell
        shell.input_transformer_manager.line_transforms.insert(0, self.texts.mark)
        shell.input_transformers_post.append(self.texts.keep)
        shell.ast_transformers.append(self.cells)
        shell.register_magics(self.magics)
        shell.configurables.append(self.daifu)
        settings.default = self.manager
        settings.intercept = self.daifu.intercept
        settings.on_closed.insert(0, self.manager.report)
        settings.on_release.append(self.release)
        labels.append(self.label)
        set_action_transform(self.translate)
        shell.get_local_scope = local_scope
        teach_pdb()
        if getattr(shell, "kernel", None) is not None:
            ASKERS.insert(0, self.asker)
            settings.on_closed.append(self.panel.finished)
            self.runner.on_start.append(self._starts)
            shell.events.register("pre_run_cell", self.panel.cell_runs)
        self.reloading.install()
        self.reminder.install()
        self.daifu.observe(lambda _: self.manager.forget_plain(), ["rules", "answer"])

    def remove(self) -> None:
        """Take everything back."""
        shell = self.shell
        _drop(shell.input_transformer_manager.line_transforms, self.texts.mark)
        _drop(shell.input_transformers_post, self.texts.keep)
        _drop(shell.ast_transformers, self.cells)
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop("daifu", None)
        shell.magics_manager.registry.pop("DaifuMagics", None)
        for configurable in (self.daifu, self.magics):
            _drop(shell.configurables, configurable)
        settings.default = self._default
        settings.intercept = self._intercept
        _drop(settings.on_closed, self.manager.report)
        if self.asker in ASKERS:
            ASKERS.remove(self.asker)
            shell.events.unregister("pre_run_cell", self.panel.cell_runs)
        self.panel.close()
        _drop(settings.on_release, self.release)
        set_action_transform(None)
        self.reloading.remove()
        self.reminder.remove()
        del shell.get_local_scope
        if not len(_loaded):
            forget_pdb()
        for function in self.runner.vaccinated_here():
            unvaccinate(function)

    def translate(self, code: str) -> str:
        """An action's ``!``, ``%`` and ``?`` as Python.

        Only these: a bare word stays a variable of the crashed unit, though IPython's own prompt would take some for
        magics (``time``, ``history``).
        """
        try:
            translated = self.shell.input_transformer_manager.transform_cell(code)
        except SyntaxError:
            return code
        return code if translated == f"{code}\n" else str(translated)

    def release(self, exception: BaseException) -> None:
        """Let go of what IPython and its debugger keep of an exception and its frames."""
        entries = list(_entries(exception))
        formatter = self.shell.InteractiveTB
        if getattr(formatter, "tb", None) in entries:
            formatter.tb = None
        pdb = getattr(formatter, "pdb", None)
        frames: list[FrameType] = [entry.tb_frame for entry in entries]
        if pdb is not None and getattr(pdb, "curframe", None) in frames:
            pdb.forget()
            pdb.botframe = None


def _entries(exception: BaseException) -> list[TracebackType]:
    found, entry = [], exception.__traceback__
    while entry is not None:
        found.append(entry)
        entry = entry.tb_next
    return found


def _drop(items: list[Any], item: object) -> None:
    if item in items:
        items.remove(item)


@magics_class
class DaifuMagics(Magics):
    """``%daifu`` and ``%%daifu``."""

    def __init__(self, shell: Any, runner: Runner) -> None:
        super().__init__(shell)
        self.runner = runner

    @line_cell_magic
    def daifu(self, line: str, cell: str | None = None) -> None:
        """Replaced below."""
        if cell is None:
            run_command(self.runner, line)
        elif not cell.strip():
            raise UsageError("%%daifu: the cell is empty; %daifu (single %) takes commands")
        else:  # called by another magic or by a program
            self.runner.shell.run_cell(f"%%daifu {line}\n{cell}")


DaifuMagics.daifu.__doc__ = f"{cell_options.__doc__}\nCommands (`%daifu WORD -h` says more of one):\n\n{overview()}\n"

__all__ = ["Extension", "load", "unload"]

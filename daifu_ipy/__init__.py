"""In-situ crash recovery for notebooks: repair the crashed statement, keep the state, go on.

The public face. Importing it in a script imports neither IPython nor torch nor widgets.
"""

from __future__ import annotations

from typing import Any

from daifu_ipy.engine import versions
from daifu_ipy.engine.cells import run_cell
from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.managers import pending, repair_with, set_repair_manager, settings
from daifu_ipy.engine.repairs import Abort, Break, Continue, Pass, Repair, Return, Skip, Surgery
from daifu_ipy.engine.vaccinate import CannotVaccinate, NotVaccinated, unvaccinate, vaccinate
from daifu_ipy.libraries import save_torch_state
from daifu_ipy.magic.answers import answer, remember
from daifu_ipy.repair.history import history
from daifu_ipy.repair.saving import savers

__version__ = "0.1.0.dev0"

__all__ = [
    "Abort",
    "Break",
    "CannotVaccinate",
    "Continue",
    "Crash",
    "NotVaccinated",
    "Pass",
    "Repair",
    "Return",
    "Skip",
    "Surgery",
    "history",
    "load_ipython_extension",
    "pending",
    "repair_with",
    "run_cell",
    "set_repair_manager",
    "unload_ipython_extension",
    "unvaccinate",
    "vaccinate",
    "versions",
]

settings.default = settings.default or answer
if remember not in settings.on_closed:  # %reload_ext runs this file again
    settings.on_closed.append(remember)
if save_torch_state not in savers:
    savers.append(save_torch_state)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext daifu_ipy``: the magics ``%%daifu`` and ``%daifu``."""
    from daifu_ipy.magic.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext daifu_ipy``: undoes all of that."""
    from daifu_ipy.magic.extension import unload

    unload(shell)

"""In-situ crash recovery for notebooks: repair the crashed statement, keep the state, go on.

The public face. Importing it in a script imports neither IPython nor torch nor widgets.
"""

from __future__ import annotations

from daifu_ipy.engine.cells import run_cell
from daifu_ipy.engine.crash import Crash
from daifu_ipy.engine.managers import pending, repair_with, set_repair_manager
from daifu_ipy.engine.repairs import Abort, Break, Continue, Pass, Repair, Return, Skip, Surgery
from daifu_ipy.engine.vaccinate import CannotVaccinate, NotVaccinated, unvaccinate, vaccinate

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
    "pending",
    "repair_with",
    "run_cell",
    "set_repair_manager",
    "unvaccinate",
    "vaccinate",
]

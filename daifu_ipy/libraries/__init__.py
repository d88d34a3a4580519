"""What is known of libraries; none of them is imported unless the user's program has done so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from daifu_ipy.repair.saving import Saved
    from daifu_ipy.repair.view import CrashView


def save_torch_state(crash: CrashView, path: Path) -> Saved | None:
    """Save what torch can load again (`torch_state`, which is loaded when it is wanted)."""
    from daifu_ipy.libraries.torch_state import save

    return save(crash, path)

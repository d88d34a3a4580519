"""Builds the panel's page for wheels and sdists, where it is not built yet. An editable install needs no Node.js."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PanelPage(BuildHookInterface[Any]):
    """labextension/ to daifu_ipy/static, by npm."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what the package ships; an sdist has it already."""
        root = Path(self.root)
        if version == "editable" or (root / "daifu_ipy/static/panel.js").is_file():
            return
        if (npm := shutil.which("npm")) is None:
            raise RuntimeError(
                "The repair panel is built by npm, which comes with Node.js 20 or newer: https://nodejs.org"
            )
        for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
            subprocess.run([npm, *arguments], cwd=root / "labextension", check=True)

"""Two environments, as under JupyterHub: one has the server and no daifu_ipy, the other the kernel and no server.

Each is a virtual environment of its own whose packages are links to those of this one, without what the other has.
"""

from __future__ import annotations

import fnmatch
import subprocess
import sys
import sysconfig
from pathlib import Path

SERVER_ONLY = (
    "jupyterlab",
    "jupyterlab-*",
    "jupyterlab_*",
    "jupyter_server*",
    "jupyter_lsp*",
    "notebook_shim*",
    "widgetsnbextension*",
)
KERNEL_ONLY = ("daifu_ipy*", "_editable_impl_daifu*", "torch*", "sklearn", "scikit_learn*", "pure_eval*")
RENDERER = ("anywidget*",)


def kernel_environment(folder: Path) -> str:
    """Make one with a kernel and daifu_ipy; its Python."""
    return _environment(folder, SERVER_ONLY)


def server_environment(folder: Path, *, renderer: bool) -> str:
    """Make one with JupyterLab, and with anywidget's part that shows widgets if `renderer`; its Python."""
    left_out = KERNEL_ONLY if renderer else KERNEL_ONLY + RENDERER
    python = _environment(folder, left_out)
    for shared in ("share/jupyter", "etc/jupyter"):
        _link(Path(sys.prefix) / shared, folder / shared, left_out=("labextensions", "kernels"))
    _link(Path(sys.prefix) / "share/jupyter/labextensions", folder / "share/jupyter/labextensions", left_out)
    return python


def _environment(folder: Path, left_out: tuple[str, ...]) -> str:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    there = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    _link(Path(sysconfig.get_path("purelib")), there, left_out)
    return str(folder / "bin/python")


def _link(source: Path, target: Path, left_out: tuple[str, ...]) -> None:
    """Fill a folder with links to what is in another."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        if not any(fnmatch.fnmatch(entry.name.lower(), pattern) for pattern in left_out):
            (target / entry.name).symlink_to(entry)

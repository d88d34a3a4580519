"""A JupyterLab server of the tests' own: nothing of the user's configuration reaches it, and nothing of it stays."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/completer-extension/manager": {"autoCompletion": False},
}


@dataclass(frozen=True)
class Server:
    """A running server: its address, its token, the folder of its notebooks, what a kernel of it starts with."""

    url: str
    token: str
    root: Path
    home: Path

    def ask(self, method: str, path: str, content: Any = None) -> Any:
        """Speak its REST protocol."""
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(
            f"{self.url}/{path}", data, {"Authorization": f"token {self.token}"}, method=method
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def set(self, plugin: str, **values: Any) -> None:
        """A user's setting, for pages that are opened from now on."""
        self.ask("PUT", f"lab/api/settings/{plugin}", {"raw": json.dumps(values)})

    def end_kernels(self) -> None:
        for session in self.ask("GET", "api/sessions"):
            self.ask("DELETE", f"api/sessions/{session['id']}")


@contextmanager
def running(
    folder: Path, python: str = sys.executable, kernels: dict[str, list[str]] | None = None
) -> Iterator[Server]:
    """A server in `folder`; `kernels`: further kernels by name, with the command that starts each."""
    for name in ("notebooks", "home/settings", "home/data/kernels"):
        (folder / name).mkdir(parents=True)
    for plugin, values in SETTINGS.items():
        file = folder / "home/settings" / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    for name, command in (kernels or {}).items():
        spec = {
            "argv": [*command, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": name,
            "language": "python",
        }
        (folder / "home/data/kernels" / name).mkdir()
        (folder / "home/data/kernels" / name / "kernel.json").write_text(json.dumps(spec))
    token = secrets.token_hex(16)
    with (
        open(folder / "server.log", "w") as log,
        subprocess.Popen(
            [python, "-P", str(Path(__file__).with_name("serve.py")), str(folder / "notebooks"), token],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            env=_environment(folder / "home"),
        ) as process,
    ):
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, (folder / "server.log").read_text()
        server = Server(url, token, folder / "notebooks", folder / "home")
        try:
            yield server
            server.end_kernels()
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
    shutil.rmtree(folder / "home", ignore_errors=True)


def _environment(home: Path) -> dict[str, str]:
    """Jupyter's and IPython's own folders, all in `home`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "JPY", "IPYTHON", "PYTEST"))
    }
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    return kept | {name: str(home / folder) for name, folder in folders.items()} | {"OMP_NUM_THREADS": "1"}

"""Opens JupyterLab on a notebook of this project: `demo.py NOTEBOOK [--no-browser]`.

The server listens on loopback only and logs errors only, so that its address is what one sees.
"""

import os
import secrets
import sys
from pathlib import Path
from urllib.parse import quote

from jupyterlab.labapp import LabApp

PROJECT = Path(__file__).parents[1]

notebook, *options = sys.argv[1:]
if not (PROJECT / notebook).is_file():
    sys.exit(f"{notebook}: no such notebook")

if hasattr(os, "geteuid") and os.geteuid() == 0:
    options.append("--allow-root")
page = f"/lab/tree/{quote(notebook)}"
token = secrets.token_urlsafe(24)
server = LabApp.initialize_server(
    argv=[
        "--ip=127.0.0.1",
        f"--ServerApp.root_dir={PROJECT}",
        f"--LabApp.default_url={page}",
        f"--IdentityProvider.token={token}",  # one that it generated would come with a banner
        "--ServerApp.answer_yes=True",  # Ctrl-C ends it without a question
        "--ServerApp.log_level=ERROR",
        "--LabApp.log_level=ERROR",
        *options,
    ]
)
print(f"http://127.0.0.1:{server.port}{server.base_url.rstrip('/')}{page}?token={token}", flush=True)
server.start()

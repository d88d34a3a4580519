"""A JupyterLab on a free loopback port: `serve.py FOLDER TOKEN`; it prints its address, and ends with its standard input.

Run by the Python of the server's environment, which need not have daifu_ipy.
"""

import os
import signal
import socket
import sys
import threading

from jupyterlab.labapp import LabApp

folder, token = sys.argv[1:]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]

server = LabApp.initialize_server(
    argv=[
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
        f"--ServerApp.root_dir={folder}",
        f"--IdentityProvider.token={token}",
        "--ServerApp.answer_yes=True",
        "--LabApp.expose_app_in_browser=True",  # `window.jupyterapp`, by which tests run commands and ask for the status
    ]
)


def end_with_the_tests() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


threading.Thread(target=end_with_the_tests, daemon=True).start()
print(f"http://127.0.0.1:{server.port}", flush=True)
server.start()

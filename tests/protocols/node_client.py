"""Third-party clients on Node, unmodified, with locked packages."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.node_packages import CLIENTS, node_command

TIMEOUT = 110.0  # seconds that a script may take on a loaded machine


def start_node_client(script: Path, folder: Path, job: dict[str, Any]) -> subprocess.Popen[str]:
    """Node looks for packages beside the script: a copy of it lies beside a link to them. The job is its argument."""
    home = folder / "client"
    home.mkdir(exist_ok=True)
    if not (home / "node_modules").exists():
        (home / "node_modules").symlink_to(CLIENTS.modules)
    copy = shutil.copy(script, home)
    command = node_command(copy, json.dumps(job))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True)

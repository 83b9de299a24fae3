"""The MCP conformance suite and the servers that run on Node.

`python -m tests.mcp_packages` installs them beside the environment's other parts, as they are locked; it does nothing
where they stand already. Without them their tests are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.provider import TOP, find_node

LOCKED = TOP / "requirements" / "mcp"
FOLDER = Path(sys.prefix) / "mcp"
SCOPE = FOLDER / "node_modules" / "@modelcontextprotocol"
STAMP = FOLDER / "installed.json"
MISSING = "The MCP packages for Node could not be installed: python -m tests.mcp_packages"


def install() -> bool:
    """By npm, as it is locked; the stamp is a copy of the lock and is written last."""
    node = find_node()
    if node is None:
        return False
    if is_installed():
        return True
    shutil.copytree(LOCKED, FOLDER, dirs_exist_ok=True)
    npm = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node), str(npm), "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    if subprocess.run([*command, "--prefix", str(FOLDER)], capture_output=True, check=False).returncode != 0:
        return False
    shutil.copy(LOCKED / "package-lock.json", STAMP)
    return True


def is_installed() -> bool:
    locked = (LOCKED / "package-lock.json").read_bytes()
    return find_node() is not None and STAMP.is_file() and STAMP.read_bytes() == locked


def command(script: str, *options: str) -> list[str]:
    """A program of one of the packages, such as `server-memory/dist/index.js`, on Node."""
    return [str(find_node()), str(SCOPE / script), *options]


if __name__ == "__main__":
    if not install():
        print(MISSING, file=sys.stderr)

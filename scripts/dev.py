"""Runs a command, and runs it again whenever a file under src/ changes: `python -m scripts.dev COMMAND…`.

Beside it the page is served from its sources, with reload. Both end with this.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

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
        seen, process = modification_times(), subprocess.Popen(command)
        try:
            while modification_times() == seen:
                time.sleep(POLL_SECONDS)
            print("A file changed: starting again.", flush=True)
        finally:
            end(process)


def modification_times() -> dict[Path, int]:
    found = {}
    for path in SOURCE.rglob("*"):
        if path.suffix in KINDS:
            try:
                found[path] = path.stat().st_mtime_ns
            except FileNotFoundError:  # between the list and the look
                continue
    return found


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

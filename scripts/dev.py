"""Runs a command, and runs it again whenever a file under src/ changes: `python -m scripts.dev COMMAND…`."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
EVERY = 0.5  # seconds
KINDS = {".py", ".sql", ".html", ".css", ".js", ".svg"}


def main(command: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        seen, process = stamps(), subprocess.Popen(command)
        try:
            while stamps() == seen:
                time.sleep(EVERY)
        except (KeyboardInterrupt, SystemExit):
            return end(process)
        print("A file changed: starting again.", flush=True)
        end(process)


def stamps() -> dict[Path, int]:
    found = {}
    for path in SOURCE.rglob("*"):
        if path.suffix in KINDS:
            try:
                found[path] = path.stat().st_mtime_ns
            except FileNotFoundError:  # between the list and the look
                continue
    return found


def end(process: subprocess.Popen[bytes]) -> int:
    """In order; a command that has ended already, by a mistake in a file, waits for the next change."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Stands before a child process and writes down what both say: `python -m tests.tools.tee FILE COMMAND…`."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import IO


def copy(source: IO[bytes], sink: IO[bytes], mark: bytes, log: IO[bytes]) -> None:
    for line in iter(source.readline, b""):
        log.write(mark + line)
        log.flush()
        sink.write(line)
        sink.flush()
    sink.close()


def main() -> None:
    child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin
    assert child.stdout
    with open(sys.argv[1], "ab", buffering=0) as log:
        there = threading.Thread(target=copy, args=(sys.stdin.buffer, child.stdin, b">", log), daemon=True)
        there.start()
        copy(child.stdout, sys.stdout.buffer, b"<", log)
        child.wait()


if __name__ == "__main__":
    main()

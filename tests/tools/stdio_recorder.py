"""A proxy of a child process that records both directions.

`--stern` ends over anything that comes before `initialize`, as some servers do.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import IO


def copy(source: IO[bytes], sink: IO[bytes], mark: bytes, log: IO[bytes], first: bytes = b"") -> None:
    for number, line in enumerate(iter(source.readline, b"")):
        if number == 0 and first not in line:
            print("expected initialize", file=sys.stderr, flush=True)
            os._exit(1)
        log.write(mark + line)
        log.flush()
        sink.write(line)
        sink.flush()
    sink.close()


def main() -> None:
    stern = sys.argv[2] == "--stern"
    child = subprocess.Popen(sys.argv[2 + stern :], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin
    assert child.stdout
    first = b'"initialize"' if stern else b""
    with open(sys.argv[1], "ab", buffering=0) as log:
        fake = threading.Thread(target=copy, args=(sys.stdin.buffer, child.stdin, b">", log, first), daemon=True)
        fake.start()
        copy(child.stdout, sys.stdout.buffer, b"<", log)
        child.wait()


if __name__ == "__main__":
    main()

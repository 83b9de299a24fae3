"""Restarts a PostgreSQL the hard way while programs propose, decide, start and finish. Run as a program of its own:

    python -m tests.faults.restarts [--restarts N] [--programs N] [--broken no-fsync]

Everything that the programs were told has to be there afterwards, and none of them may hear of an error. Prints one
JSON line.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.databases import migrated_template
from tests.faults.load_runner import check_load, run_load
from tests.postgres import Server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--programs", type=int, default=2)
    parser.add_argument("--broken", nargs="?", const="no-fsync", default="")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Server(settings={"wal_writer_delay": "10s"}) as server:
        server.create_database("restarts", migrated_template(server))
        result = run(server, Path(folder), options)
    print(json.dumps({**result, "seconds": round(time.monotonic() - began, 1)}))


def run(server: Server, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    url, broken = server.url("restarts"), ["--broken", options.broken] if options.broken else []
    with run_load(url, folder, options.programs, *broken) as made:
        for _ in range(options.restarts):
            made.wait_for_lines()  # so that each restart meets work
            server.restart("immediate")
        made.wait_for_lines()
    return {"suite": "restarts", "database": "postgresql", "faults": options.restarts, **check_load(url, made)}


if __name__ == "__main__":
    main()

"""All figures of the server, both databases in turn.

python -m benchmarks.http.figures [--into FILE]        takes these alone, and puts them beside those that a run kept
"""

from __future__ import annotations

import argparse
import json
import resource
from pathlib import Path
from typing import Any

from benchmarks.http import streams
from benchmarks.http.servers import DATABASES, make_database, run_load, start_child
from tests.postgres import Server

DECISIONS = 60  # of one round


def figures(server: Server, rounds: int, seconds: float) -> dict[str, Any]:
    """Within a round both databases have their turn; `whole` is with the whole approval in each answer."""
    allow_many_files()
    found: dict[str, Any] = {name: {"cycles": [], "whole": [], "to_tool_ms": []} for name in DATABASES}
    for number in range(rounds):
        for name in DATABASES:
            with make_database(server, name, number) as (served, keys):
                taken = found[name]
                taken["cycles"].append(start_child("cycles", *run_load(served, keys, seconds))["cycles_per_second"])
                whole = start_child("cycles", *run_load(served, keys, seconds / 2, "--whole"))
                taken["whole"].append(whole["cycles_per_second"])
                decided = (served.url, keys["agent"], keys["reviewer"], "--rounds", str(DECISIONS))
                taken["to_tool_ms"].append(start_child("decision_to_tool", *decided)["p50_ms"])
    for name in DATABASES:
        found[name]["beside_streams"] = streams.measure_decisions(server, name, rounds, seconds)["left"]
    found["stream"] = streams.measure_memory(server)
    return found


def allow_many_files() -> None:
    """Every stream is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, help="a file that `python -m benchmarks --json` made")
    given = parser.parse_args()
    with Server() as server:
        found = {"apart": True, **figures(server, 3, 3.0)}
    print(json.dumps(found, indent=2))
    if given.into:
        given.into.write_text(json.dumps({**json.loads(given.into.read_text()), "http": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()

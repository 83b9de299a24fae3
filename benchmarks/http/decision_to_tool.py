"""The time from a decision over HTTP to the start of the tool in another process.

python -m benchmarks.http.decision_to_tool [URL AGENT REVIEWER]

Without them it takes the figure on both databases, with a server of its own for each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from benchmarks.http.servers import DATABASES, make_database, start_child
from tests.postgres import Server

PROGRAM = """
import asyncio, sys, time
from interlock import Interlock

lock = Interlock(sys.argv[1], key=sys.argv[2], agent="measured")

@lock.tool(effect="write")
async def create_issue(title: str) -> int:
    return time.monotonic_ns()

async def main():
    for number in range(int(sys.argv[3])):
        print(await create_issue(f"Fix login {number}"), flush=True)

asyncio.run(main())
lock.close()
"""
SETTLE = 0.02  # seconds after a proposal: the agent is back and waits


def measure(url: str, agent: str, reviewer: str, rounds: int) -> dict[str, float]:
    """The clock is one for all processes of a machine; it starts when the decision is sent."""
    command = [sys.executable, "-c", PROGRAM, url, agent, str(rounds)]
    person, spent = HttpReviewer(url, reviewer), []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        for _ in range(rounds):
            waiting = person.pending()
            time.sleep(SETTLE)
            sent = time.monotonic_ns()
            said = {"kind": "approve", "args_sha256": waiting["args_sha256"]}
            person.request("POST", f"/api/approvals/{waiting['id']}/decision", said)
            spent.append((int(program.stdout.readline()) - sent) / 1e6)
    usual = spent[min(5, rounds - 1) :]  # the first ones open connections
    return {"p50_ms": statistics.median(usual), "p90_ms": statistics.quantiles(usual, n=10)[-1], "rounds": len(usual)}


class HttpReviewer:
    """Somebody with a key and a connection, who takes little time to speak."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(parts.hostname or "", parts.port)
        self._headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}

    def pending(self) -> dict[str, Any]:
        while not (items := self.request("GET", "/api/approvals/pending")["items"]):
            time.sleep(0.002)
        return dict(items[0])

    def request(self, method: str, path: str, body: object = None) -> Any:
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        result = answer.read()
        assert answer.status == 200, result
        return json.loads(result)


def measure_both(rounds: int) -> dict[str, Any]:
    found = {}
    with Server() as server:
        for name in DATABASES:
            with make_database(server, name, 0) as (served, keys):
                options = (served.url, keys["agent"], keys["reviewer"], "--rounds", str(rounds))
                found[name] = start_child("decision_to_tool", *options)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("where", nargs="*", help="URL AGENT REVIEWER: a server's address and two keys")
    parser.add_argument("--rounds", type=int, default=100)
    given = parser.parse_args()
    if not given.where:
        print(json.dumps(measure_both(given.rounds)))
        return
    url, agent, reviewer = given.where
    print(json.dumps(measure(url, agent, reviewer, given.rounds)))


if __name__ == "__main__":
    main()

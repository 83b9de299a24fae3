"""Creates and decides over HTTP for a fixed time: python -m benchmarks.http.cycles URL AGENT REVIEWER."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time

import uvloop

from benchmarks.http.client import HttpConnection, connect, post

MINIMAL = "Prefer: return=minimal\r\n"


async def load(url: str, keys: tuple[str, str, str], connections: int, seconds: float) -> dict[str, float]:
    open_ = [await connect(url) for _ in range(connections)]
    until = time.perf_counter() + seconds
    start_time = time.perf_counter()
    spent: list[float] = []
    work = (_cycles(each, url, keys, f"{number}", until, spent) for number, each in enumerate(open_))
    done = sum(await asyncio.gather(*work))
    took = time.perf_counter() - start_time
    for each in open_:
        each.close()
    return {"cycles_per_second": done / took, "decide_p50_ms": statistics.median(spent) * 1000}


async def _cycles(
    connection: HttpConnection, url: str, keys: tuple[str, str, str], name: str, until: float, spent: list[float]
) -> int:
    agent, reviewer, prefer = keys
    run, count = f"{name}-{time.time_ns()}", 0
    while time.perf_counter() < until:
        body = {"tool": "create_issue", "args": {"title": "Fix login", "number": count}, "effect": "write"}
        call = json.dumps({**body, "run_id": run, "call_id": str(count)}).encode()
        status, answer = await connection.request(post(url, agent, "/api/calls", call))
        assert status == 200, answer
        result = json.loads(answer)
        said = b'{"kind":"approve","args_sha256":"%b"}' % result["args_sha256"].encode()
        start_time = time.perf_counter()
        path = f"/api/approvals/{result['approval_id']}/decision"
        status, answer = await connection.request(post(url, reviewer, path, said, prefer))
        spent.append(time.perf_counter() - start_time)
        assert status == 200, answer
        count += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("agent", help="an agent's key")
    parser.add_argument("reviewer", help="a reviewer's key")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--whole", action="store_true", help="ask for the whole approval in return")
    given = parser.parse_args()
    keys = (given.agent, given.reviewer, "" if given.whole else MINIMAL)
    print(json.dumps(uvloop.run(load(given.url, keys, given.connections, given.seconds))))


if __name__ == "__main__":
    main()

"""Everybody decides one approval at the same moment, over HTTP, against real servers. Run as a program of its own:

    python -m tests.faults.http_races [--database sqlite|postgresql] [--clients N] [--duplicates N] [--servers N]

First, N people with keys and connections of their own approve or reject one approval at once: one wins, all others get
its decision. Then one person's one decision is sent N times, half of them under one Idempotency-Key: one change.
With several servers, the clients are spread over them. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from benchmarks.http.client import HttpConnection, connect, post
from interlock.app.bootstrap import AppServices, build_services
from tests.faults import http_server
from tests.faults.storm import open_database
from tests.interlock_server import run_server

AT_ONCE = 200  # connections over which duplicates are sent
PEOPLE_AT_ONCE = 100
NOTICED = " won: "  # several winners of one race


class Reply(NamedTuple):
    status: int
    body: dict[str, Any]
    sent: str  # the kind of decision, and its author
    spent: float


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--duplicates", type=int, default=10_000)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--broken", choices=sorted(http_server.CONTROLS), default="")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with (
        tempfile.TemporaryDirectory() as folder,
        open_database(options.database, Path(folder)) as (url, _),
        ExitStack() as up,
    ):
        keys = uvloop.run(add_people(url, options.clients))
        program, environ = http_server.program(options.broken)
        servers = [
            up.enter_context(run_server(url, Path(folder), program=program, environ=environ)).url
            for _ in range(options.servers)
        ]
        print(json.dumps(uvloop.run(run(url, servers, keys, options))))


async def add_people(url: str, count: int) -> list[str]:
    """The agent's key, then one for each of so many reviewers."""
    services = await open_store(url)
    await services.store.secret_key("default")
    accounts = services.accounts
    keys = [(await accounts.create_key("default", "bot", "agent", "test"))[1]]
    for begin in range(0, count, PEOPLE_AT_ONCE):
        names = [f"person{n}" for n in range(begin, min(count, begin + PEOPLE_AT_ONCE))]
        made = await asyncio.gather(*(accounts.create_key("default", name, "reviewer", "test") for name in names))
        keys += [secret for _, secret in made]
    await services.store.close()
    return keys


async def open_store(url: str) -> AppServices:
    services = build_services(url)
    await services.store.open()
    return services


async def run(url: str, servers: Sequence[str], keys: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    raced, crowd = await race(servers, keys)
    repeated, copies = await repeat(servers, keys, options.duplicates)
    wrong = check_race(crowd) + check_copies(copies)
    for approval_id in (raced, repeated):
        wrong += await check_ledger(url, approval_id)
    spent = sorted(reply.spent for reply in crowd)
    return {
        "suite": "http-races",
        "database": options.database,
        "operations": len(crowd) + len(copies),
        "succeeded": sum(1 for reply in (*crowd, *copies) if reply.status in (200, 409)),
        "faults": 0,
        "wrong": wrong[:10],
        "seconds": round(time.monotonic() - began, 1),
        "servers": len(servers),
        "crowd": {"clients": len(crowd), **answers(crowd), "slowest_ms": round(spent[-1] * 1000)},
        "duplicates": {"sent": len(copies), **answers(copies)},
    }


async def race(servers: Sequence[str], keys: Sequence[str]) -> tuple[str, list[Reply]]:
    """All are connected and known before the moment comes."""
    answers = await propose_call(servers[0], keys[0], "raced")
    connections = [await connect(servers[n % len(servers)]) for n in range(len(keys) - 1)]
    moment = asyncio.Event()

    async def decide(number: int, connection: HttpConnection) -> Reply:
        kind = ("approve", "reject")[number % 2]
        request = decision_request(servers[number % len(servers)], keys[number + 1], answers, kind)
        await moment.wait()
        return await send_request(connection, request, f"{kind} person{number}")

    racing = [asyncio.create_task(decide(number, each)) for number, each in enumerate(connections)]
    await asyncio.sleep(0)
    moment.set()
    replies = await asyncio.gather(*racing)
    for each in connections:
        each.close()
    return answers["approval_id"], replies


async def repeat(servers: Sequence[str], keys: Sequence[str], count: int) -> tuple[str, list[Reply]]:
    answers = await propose_call(servers[0], keys[0], "repeated")
    connections = [await connect(servers[n % len(servers)]) for n in range(AT_ONCE)]
    left = iter(range(count))
    replies: list[Reply] = []

    async def send(place: int, connection: HttpConnection) -> None:
        server = servers[place % len(servers)]
        for number in left:
            more = "Idempotency-Key: one\r\n" if number % 2 else ""
            request = decision_request(server, keys[1], answers, "approve", more)
            replies.append(await send_request(connection, request, "approve person0"))

    await asyncio.gather(*(send(place, each) for place, each in enumerate(connections)))
    for each in connections:
        each.close()
    return answers["approval_id"], replies


async def propose_call(server: str, key: str, name: str) -> dict[str, Any]:
    connection = await connect(server)
    call = {"tool": "send", "args": {"to": name}, "run_id": "race", "call_id": name, "effect": "write"}
    status, body = await connection.request(post(server, key, "/api/calls", json.dumps(call).encode()))
    connection.close()
    assert status == 200, body
    answers: dict[str, Any] = json.loads(body)
    return answers


def decision_request(server: str, key: str, answers: dict[str, Any], kind: str, more: str = "") -> bytes:
    said = json.dumps({"kind": kind, "args_sha256": answers["args_sha256"], "reason": "A race."}).encode()
    return post(server, key, f"/api/approvals/{answers['approval_id']}/decision", said, more)


async def send_request(connection: HttpConnection, request: bytes, what: str) -> Reply:
    begun = time.perf_counter()
    try:
        status, body = await connection.request(request)
        return Reply(status, json.loads(body), what, time.perf_counter() - begun)
    except (OSError, ValueError) as error:
        return Reply(0, {"error": type(error).__name__}, what, time.perf_counter() - begun)


def check_race(replies: Sequence[Reply]) -> list[str]:
    """One winner, and all others get exactly its decision."""
    winners = [reply for reply in replies if reply.status == 200]
    others = [reply for reply in replies if reply.status != 200]
    wrong = [f"{reply.sent}: {reply.status} {reply.body}"[:300] for reply in others if not decided_status(reply)]
    if len(winners) != 1:
        return [*wrong, f"{len(winners)} won: {[reply.sent for reply in winners][:5]}"]
    kind, name = winners[0].sent.split()
    record = winners[0].body["decision"] or {}
    if (record.get("kind"), record.get("by")) != (kind, name):
        wrong.append(f"{winners[0].sent} won, and what stands is {record}")
    answers = {json.dumps(reply.body.get("decision"), sort_keys=True) for reply in others}
    if len(answers) > 1 or any(json.loads(each)["by"] != name for each in answers if each != "null"):
        wrong.append(f"{winners[0].sent} won, and others were told {sorted(answers)[:3]}")
    return wrong


def check_copies(replies: Sequence[Reply]) -> list[str]:
    """Each copy is told that it is approved, by this person: as the first time, or that it stands already.

    A copy under the key that another server works on at this moment may be told to come again.
    """
    waiting = [reply for reply in replies if reply.status == 409 and reply.body.get("error") == "in_progress"]
    answers = [reply for reply in replies if reply not in waiting]
    wrong = [
        f"copy: {reply.status} {reply.body}"[:300]
        for reply in answers
        if reply.status != 200 and not decided_status(reply)
    ]
    records = {
        tuple((reply.body.get("decision") or {}).get(name) for name in ("kind", "by", "at")) for reply in answers
    }
    if len(records) != 1 or min(records)[:2] != ("approve", "person0"):
        wrong.append(f"copies were told {sorted(map(str, records))[:3]}")
    if not any(reply.status == 200 for reply in replies) or len(waiting) * 2 > len(replies):
        wrong.append(f"of the copies, {len(waiting)} were told to come again, and none was taken")
    return wrong


def decided_status(reply: Reply) -> bool:
    return reply.status == 409 and reply.body.get("error") == "already_decided" and "decision" in reply.body


async def check_ledger(url: str, approval_id: str) -> list[str]:
    """The proposal and one decision: nothing else has happened to it, and some who came too late are noted."""
    services = await open_store(url)
    entries = [entry async for chunk in services.store.entries("default") for entry in chunk]
    version = (await services.store.get("default", approval_id)).approval.version
    await services.store.close()
    answers = [entry.kind for entry in entries if entry.approval_id == approval_id]
    kinds = [*answers[:2], *(kind for kind in answers[2:] if kind != "decision_refused")]
    return [] if len(kinds) == version == 2 else [f"{approval_id} has version {version} and events {kinds}"]


def answers(replies: Sequence[Reply]) -> dict[str, int]:
    return dict(Counter(f"{reply.status} {reply.body.get('error', 'ok')}" for reply in replies))


if __name__ == "__main__":
    main()

"""The agent's own share: whole turns per second, and from a decision to the start of the tool.

    python -m benchmarks.chat [--database sqlite|postgresql] [--threads N] [--decisions N]

The model answers at once and the tools do nothing, so that what is measured is the loop, the gate and the database.
Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.ports import ApprovalQuery
from tests.faults.chat_agent import ANN, POLICY, Chat, Outside, chat_of, person
from tests.places import migrated
from tests.postgres import Server

WORKSPACE = "default"
BOB = Reviewer("bob", "admin", via="test")
LEASE = 60_000  # milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--threads", type=int, default=1_000)
    parser.add_argument("--decisions", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, opened(options.database, Path(folder)) as url:
        figures = asyncio.run(measured(url, Path(folder), options.threads, options.decisions))
    print(json.dumps({"database": options.database, **figures}))


@contextmanager
def opened(database: str, folder: Path) -> Iterator[str]:
    if database == "sqlite":
        yield f"sqlite:///{folder}/chat.db"
        return
    with Server() as server:
        yield server.create_database("chat", migrated(server))


async def measured(url: str, folder: Path, threads: int, decisions: int) -> dict[str, float]:
    parts, reached = build_services(url), Reached()
    await parts.store.open()
    await parts.put_policy(WORKSPACE, POLICY, "ada", {})
    await parts.store.put_user(WORKSPACE, ANN, "ada")
    chat, stop = chat_of(parts.store, Outside(folder, reached), LEASE), asyncio.Event()
    looping = asyncio.create_task(chat.loop.run(stop))
    per_second = await turns(parts, chat, threads)
    took = sorted([await decision(parts, chat, reached, number) for number in range(decisions)])
    stop.set()
    await looping
    await parts.store.close()
    return {
        "turns_per_second": round(per_second, 1),
        "decision_to_tool_ms_p50": round(took[len(took) // 2] * 1000, 2),
        "decision_to_tool_ms_p99": round(took[len(took) * 99 // 100] * 1000, 2),
    }


class Reached:
    """When the tool was reached."""

    def __init__(self) -> None:
        self.tool = asyncio.Event()
        self.at = 0.0

    def __call__(self, point: str) -> None:
        if point == "before the tool":
            self.at = time.perf_counter()
            self.tool.set()


async def turns(parts: AppServices, chat: Chat, number: int) -> float:
    """Threads of one message and one answer, from the first that is said to the last that is done."""
    doors, who = await chat.workspaces.doors(WORKSPACE), person(WORKSPACE)
    began = time.perf_counter()
    await asyncio.gather(*(chat.threads.say(doors, who, f"# {n}") for n in range(number)))
    async with parts.store.watch(WORKSPACE) as watch:
        while await parts.store.threads.next_due() is not None:
            await watch.changed(0.05)
    return number / (time.perf_counter() - began)


async def decision(parts: AppServices, chat: Chat, reached: Reached, number: int) -> float:
    """Seconds from the moment at which a person says yes, its commit included."""
    doors, who = await chat.workspaces.doors(WORKSPACE), person(WORKSPACE)
    reached.tool.clear()
    thread = await chat.threads.say(doors, who, f'send {{"to":"{number}"}}')
    async with parts.store.watch(WORKSPACE) as watch:
        while (await chat.threads.see(who, thread.id)).status != "waiting":
            await watch.changed(0.05)
    page = await parts.store.list(WORKSPACE, ApprovalQuery(statuses=("pending",), thread_id=thread.id))
    approval = page.items[0].approval
    began = time.perf_counter()
    await parts.inbox.decide(WORKSPACE, approval.id, Approve(Acknowledgement(approval.args_sha256)), BOB)
    await reached.tool.wait()
    return reached.at - began


if __name__ == "__main__":
    main()

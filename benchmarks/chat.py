"""The chat loop: turns per second, and the time from a decision to the start of the tool.

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
from tests.databases import migrated_template
from tests.faults.chat_agent import ANN, POLICY, Chat, ExternalLog, build_chat, person
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
    with tempfile.TemporaryDirectory() as folder, open_database(options.database, Path(folder)) as url:
        figures = asyncio.run(measure(url, Path(folder), options.threads, options.decisions))
    print(json.dumps({"database": options.database, **figures}))


@contextmanager
def open_database(database: str, folder: Path) -> Iterator[str]:
    if database == "sqlite":
        yield f"sqlite:///{folder}/chat.db"
        return
    with Server() as server:
        yield server.create_database("chat", migrated_template(server))


async def measure(url: str, folder: Path, threads: int, decisions: int) -> dict[str, float]:
    app_services, reached = build_services(url), ReachedTool()
    await app_services.store.open()
    await app_services.put_policy(WORKSPACE, POLICY, "ada", {})
    await app_services.store.put_user(WORKSPACE, ANN, "ada")
    chat, stop = build_chat(app_services.store, ExternalLog(folder, reached), LEASE), asyncio.Event()
    looping = asyncio.create_task(chat.loop.run(stop))
    per_second = await measure_turns(app_services, chat, threads)
    took = sorted([await measure_decision(app_services, chat, reached, number) for number in range(decisions)])
    stop.set()
    await looping
    await app_services.store.close()
    return {
        "turns_per_second": round(per_second, 1),
        "decision_to_tool_ms_p50": round(took[len(took) // 2] * 1000, 2),
        "decision_to_tool_ms_p99": round(took[len(took) * 99 // 100] * 1000, 2),
    }


class ReachedTool:
    """When the tool was reached."""

    def __init__(self) -> None:
        self.tool = asyncio.Event()
        self.at = 0.0

    def __call__(self, point: str) -> None:
        if point == "before the tool":
            self.at = time.perf_counter()
            self.tool.set()


async def measure_turns(app_services: AppServices, chat: Chat, number: int) -> float:
    """Threads of one message and one answer, from the first that is said to the last that is done."""
    services, principal = await chat.workspaces.services(WORKSPACE), person(WORKSPACE)
    began = time.perf_counter()
    await asyncio.gather(*(chat.threads.say(services, principal, f"# {n}") for n in range(number)))
    async with app_services.store.watch(WORKSPACE) as watch:
        while await app_services.store.threads.next_due() is not None:
            await watch.wait(0.05)
    return number / (time.perf_counter() - began)


async def measure_decision(app_services: AppServices, chat: Chat, reached: ReachedTool, number: int) -> float:
    """Seconds from the moment at which a person says yes, its commit included."""
    services, principal = await chat.workspaces.services(WORKSPACE), person(WORKSPACE)
    reached.tool.clear()
    thread = await chat.threads.say(services, principal, f'send {{"to":"{number}"}}')
    async with app_services.store.watch(WORKSPACE) as watch:
        while (await chat.threads.get(principal, thread.id)).status != "waiting":
            await watch.wait(0.05)
    page = await app_services.store.list(WORKSPACE, ApprovalQuery(statuses=("pending",), thread_id=thread.id))
    approval = page.items[0].approval
    began = time.perf_counter()
    await app_services.inbox.decide(WORKSPACE, approval.id, Approve(Acknowledgement(approval.args_sha256)), BOB)
    await reached.tool.wait()
    return reached.at - began


if __name__ == "__main__":
    main()

"""Shared by programs that run several scenarios in one process, each in its own run."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from interlock import Interlock

POLICY = "version: 1\ndefaults: {undo_window: 0s}\nrules: []\n"


class ScenarioContext:
    """The interlock, what tools did, and people who decide."""

    def __init__(self, lock: Interlock, folder: Path) -> None:
        self.lock, self.folder = lock, folder
        self.calls: list[str] = []

    def send_mail(self, to: str) -> str:
        """Sends a mail."""
        self.calls.append(f"mail to {to}")
        return f"sent to {to}"

    def look_up(self, order: str) -> str:
        """Looks an order up."""
        self.calls.append(f"look up {order}")
        return f"{order} is paid"

    def approvals(self, thread: str) -> list[dict[str, Any]]:
        """The approvals of a conversation."""
        with sqlite3.connect(self.folder / "approvals.db") as database:
            found = database.execute(
                "select id, tool, agent_path, status from approvals where thread_id = ? order by id", (thread,)
            )
            return [{"id": row[0], "tool": row[1], "path": json.loads(row[2]), "status": row[3]} for row in found]

    def pending_approvals(self) -> list[dict[str, Any]]:
        """All that wait for people, with their conversation."""
        with sqlite3.connect(self.folder / "approvals.db") as database:
            found = database.execute("select id, thread_id from approvals where status = 'pending' order by id")
            return [{"id": row[0], "thread": row[1]} for row in found]

    def statuses(self, thread: str) -> list[str]:
        return [row["status"] for row in self.approvals(thread)]

    async def decide(self, thread: str, *decisions: Any) -> None:
        """On those that wait, the oldest first, once there are as many."""
        while len(waiting := [row for row in self.approvals(thread) if row["status"] == "pending"]) < len(decisions):  # noqa: ASYNC110  another program
            await asyncio.sleep(0.01)
        for row, decision in zip(waiting, decisions, strict=False):
            await self.lock.decide(row["id"], decision, "ada")


def run_scenarios(*scenes: Callable[[ScenarioContext], Awaitable[Any]]) -> None:
    """Prints what was seen in each, as JSON. The folder for the database is the first word."""
    folder = Path(sys.argv[1])

    async def played() -> dict[str, Any]:
        seen: dict[str, Any] = {}
        with Interlock(f"sqlite:///{folder / 'approvals.db'}", agent="clerk", user="eve", policy=POLICY) as lock:
            for scene in scenes:
                seen[scene.__name__] = await scene(ScenarioContext(lock, folder))
        return seen

    print(json.dumps(asyncio.run(played())), flush=True)

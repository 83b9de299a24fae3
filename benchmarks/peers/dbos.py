"""DBOS: a durable workflow that waits for a message."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

from dbos import DBOS, SetWorkflowID

from benchmarks.durability import PRAGMAS, SETTINGS, sqlite_durability
from benchmarks.peers import TOOL, PeerDatabase, Tool, UnfitPeer, arguments

TITLE = "DBOS"
DATABASES = ("postgresql", "sqlite")
PACKAGES = ("dbos",)
ENVIRONMENT = ".venv-frameworks/engines"
SQLITE_NEEDED = (3, 42)  # the tables have unixepoch('subsec') as a default
TOPIC = "approval"
A_DAY = 86_400


class Peer:
    async def open(self, place: PeerDatabase, tool: Tool) -> str:
        if place.database == "sqlite" and sqlite3.sqlite_version_info < SQLITE_NEEDED:
            raise UnfitPeer(f"needs SQLite 3.42, this is {sqlite3.sqlite_version}")
        self._waits: dict[str, asyncio.Event] = {}
        url = f"sqlite:///{place.folder / 'dbos.db'}" if place.database == "sqlite" else place.url
        config = {"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False}
        program: Any = DBOS(config=config)
        self._workflow = self._registered(tool)
        DBOS.launch()
        with program._sys_db.engine.connect() as connection:
            if place.database == "sqlite":
                found = sqlite_durability(*(connection.exec_driver_sql(f"pragma {name}").scalar() for name in PRAGMAS))
                return f"{found}, SQLite {sqlite3.sqlite_version}"
            return ", ".join(f"{name}={connection.exec_driver_sql(f'show {name}').scalar()}" for name in SETTINGS)

    async def propose(self, key: str) -> Any:
        reached = self._waits[key] = asyncio.Event()
        with SetWorkflowID(key):
            handle = await DBOS.start_workflow_async(self._workflow, key)
        await reached.wait()
        del self._waits[key]
        return handle

    async def decide(self, key: str, paused: Any) -> None:
        await DBOS.send_async(key, "approve", TOPIC)
        await paused.get_result()

    async def listed(self) -> int:
        return len(await DBOS.list_workflows_async(status="PENDING"))

    async def close(self) -> None:
        DBOS.destroy()

    def _registered(self, tool: Tool) -> Any:
        @DBOS.step()
        async def model(key: str) -> dict[str, Any]:
            return {"tool": TOOL, "args": arguments(key)}

        @DBOS.step()
        async def run_tool(args: dict[str, str]) -> str:
            return tool.run(args["key"])

        @DBOS.workflow()
        async def ask_and_run(key: str) -> str:
            call = await model(key)
            self._waits[key].set()  # what the model wants is on the disk
            decision = await DBOS.recv_async(TOPIC, timeout_seconds=A_DAY)
            return await run_tool(call["args"]) if decision == "approve" else "refused"

        return ask_and_run

"""What every route can reach: the doors of each workspace, who people are, and whether the server is about to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field

from interlock.accounts.accounts import Accounts
from interlock.app.workspaces import Workspaces
from interlock.chat.assistant import Assistant
from interlock.chat.tool_registry import RegisteredTools
from interlock.config.models import ActionSettings, Settings
from interlock.core.ports import Clock
from interlock.core.rate_limit import AttemptLimiter
from interlock.notify.service import NotificationService
from interlock.server.counters import ServerCounters
from interlock.server.logs import JsonLogger
from interlock.server.quotas import QuotaEnforcer
from interlock.storage.store import SqlStore

CODES_PER_MINUTE = 20  # codes that one address may ask for within a minute


class BackgroundTaskGroup:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Waits for all that was begun."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass
class ServerState:
    settings: Settings
    store: SqlStore
    accounts: Accounts
    workspaces: Workspaces
    clock: Clock
    log: JsonLogger
    assistant: Assistant
    reach: NotificationService
    code_asks: AttemptLimiter = field(default_factory=lambda: AttemptLimiter(CODES_PER_MINUTE))  # by address
    quotas: QuotaEnforcer = field(init=False)
    registered: RegisteredTools = field(init=False)
    aside: BackgroundTaskGroup = field(default_factory=BackgroundTaskGroup)
    meters: ServerCounters = field(default_factory=ServerCounters)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    rehearsing: asyncio.Lock = field(default_factory=asyncio.Lock)  # one at a time: it reads a lot

    def __post_init__(self) -> None:
        self.registered = RegisteredTools(self.settings.actions, self.assistant.toolbox)
        self.quotas = QuotaEnforcer(self.settings.server.quotas, self.store, self.clock)

    def action(self, name: str) -> ActionSettings | None:
        return self.registered.action(name)

    @property
    def public_url(self) -> str:
        server = self.settings.server
        return server.public_url.rstrip("/") or f"http://{server.host}:{server.port}"

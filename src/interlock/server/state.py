"""State that every route can use: settings, store, services of each workspace, accounts, counters, shutdown flag."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
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
from interlock.server.auth import Auth
from interlock.server.logs import JsonLogger
from interlock.server.quotas import QuotaEnforcer
from interlock.server.streams.thread_stream import ThreadStreams
from interlock.storage.store import SqlStore

LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
OTHER_ROUTE = "other"  # requests without a route of ours: a made-up path must not become a label
RouteKey = tuple[str, str, int]  # method, template, status


class LatencyHistogram:
    """Latencies of a route: their total, and counts by bucket; the last bucket is beyond all bounds."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(LATENCY_BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(LATENCY_BUCKETS, seconds)] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        return sum(self.buckets)


@dataclass
class ServerCounters:
    """`lag` is the time of the newest event from the ledger to the streams, in seconds."""

    requests: dict[RouteKey, LatencyHistogram] = field(default_factory=dict)
    streams: int = 0
    waiting: int = 0
    failures: int = 0
    lag: float = 0.0

    def record_request(self, route: RouteKey, seconds: float) -> None:
        timing = self.requests.get(route)
        if timing is None:
            timing = self.requests[route] = LatencyHistogram()
        timing.add(seconds)


CODES_PER_MINUTE = 20  # sign-in codes that one address may request within a minute


class BackgroundTaskGroup:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Wait for all tasks."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass(kw_only=True)
class ServerState:
    settings: Settings
    store: SqlStore
    accounts: Accounts
    workspaces: Workspaces
    clock: Clock
    log: JsonLogger
    assistant: Assistant
    notifications: NotificationService
    code_rate_limiter: AttemptLimiter = field(default_factory=lambda: AttemptLimiter(CODES_PER_MINUTE))  # by address
    auth: Auth = field(init=False)
    quotas: QuotaEnforcer = field(init=False)
    thread_streams: ThreadStreams = field(init=False)
    registered: RegisteredTools = field(init=False)
    background_tasks: BackgroundTaskGroup = field(default_factory=BackgroundTaskGroup)
    counters: ServerCounters = field(default_factory=ServerCounters)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    rehearsal_lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # one at a time: a rehearsal reads a lot

    def __post_init__(self) -> None:
        self.auth = Auth(self.accounts, self.settings.server.public_url)
        self.registered = RegisteredTools(self.settings.actions, self.assistant.tool_registry)
        self.thread_streams = ThreadStreams(self.store, self.auth, self.log, self.stopping)
        self.quotas = QuotaEnforcer(self.settings.server.quotas, self.store, self.clock)

    def action(self, name: str) -> ActionSettings | None:
        return self.registered.action(name)

    @property
    def public_url(self) -> str:
        server = self.settings.server
        return server.public_url.rstrip("/") or f"http://{server.host}:{server.port}"

"""Operations: liveness, readiness, information about the server, and Prometheus metrics.

The metrics are of the caller's workspace and of the process. No label is ever a person's name, an id or an argument;
names of channels are those of the configuration.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from pydantic import BaseModel

from interlock import __version__
from interlock.core.errors import Error, StoreUnavailable
from interlock.core.notify.routing import DASHBOARD
from interlock.notify.status import ChannelState, read_channel_states
from interlock.server.dependencies import VIEWERS, PrincipalDep, StateDep, documented_errors, require_roles
from interlock.server.state import LATENCY_BUCKETS, LatencyHistogram, RouteKey, ServerState

READY_TIMEOUT = 5.0  # seconds that a database may take to answer and still count as available
DECISION_KINDS = ("approved", "rejected", "responded")
WAIT_BUCKETS = (1, 5, 15, 30, 60, 120, 300, 900, 1_800, 3_600, 14_400, 86_400)  # seconds until a decision
BATCH_SIZE = 2_000  # ledger entries in one read
MAX_ENTRIES = 100_000  # in one response; the rest is counted by the next
DELIVERY_RESULTS = {"delivered": "sent", "delivery_parked": "parked"}
SIGN_IN_ROUTES = ("/api/session", "/api/session/link", "/auth/oidc/callback")

router = APIRouter(tags=["operations"])


@dataclass
class LedgerCounts:
    """Counts of ledger entries in a workspace since this process was first asked for them."""

    seq: int
    kinds: Counter[str] = field(default_factory=Counter)
    deliveries: Counter[tuple[str, str]] = field(default_factory=Counter)  # by channel and result
    wait_buckets: list[int] = field(default_factory=lambda: [0] * (len(WAIT_BUCKETS) + 1))
    wait_seconds: float = 0.0


class MetricsExporter:
    """Workspace counters come from the ledger, so that events of other processes and of commands count too."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._process = CollectorRegistry(auto_describe=False)
        self._counts: dict[str, LedgerCounts] = {}
        self._lock = asyncio.Lock()
        ProcessCollector(registry=self._process)

    async def text(self, workspace: str) -> bytes:
        async with self._lock:
            counts = await self._update_counts(workspace)
        stats = await self._state.store.stats(workspace)
        oldest = await self._state.store.metrics.oldest_pending(workspace)
        age = 0.0 if oldest is None else max(0, self._state.clock() - oldest) / 1000
        channels = [
            each
            for each in await read_channel_states(self._state.notifications.for_workspace(workspace))
            if each.name != DASHBOARD
        ]
        registry = CollectorRegistry(auto_describe=False)
        own = _workspace_metrics(workspace, counts, stats.by_status, age)
        paused, since = await self._state.store.pauses.count(workspace)
        still = _pause_metrics(workspace, paused, 0 if since is None else max(0, self._state.clock() - since) / 1000)
        on = sum(each.is_on for each in await self._state.store.open_freezes(workspace))
        frozen = _gauge("interlock_freezes", "Freezes that are on.", on, workspace)
        channel_metrics = _channel_metrics(workspace, channels, counts.deliveries, self._state.clock())
        registry.register(StaticCollector([*own, frozen, *still, *channel_metrics, *_process_metrics(self._state)]))
        return generate_latest(registry) + generate_latest(self._process)

    async def _update_counts(self, workspace: str) -> LedgerCounts:
        counts = self._counts.get(workspace)
        if counts is None:
            counts = self._counts[workspace] = LedgerCounts((await self._state.store.head(workspace)).seq)
        for _ in range(MAX_ENTRIES // BATCH_SIZE):
            lot = await self._state.store.metrics.event_metrics(workspace, counts.seq, BATCH_SIZE)
            for seq, kind, waited, data in lot:
                counts.seq = seq
                counts.kinds[kind] += 1
                if data is not None:
                    counts.deliveries[json.loads(data)["channel"], DELIVERY_RESULTS[kind]] += 1
                if waited is not None:
                    counts.wait_buckets[bisect_left(WAIT_BUCKETS, waited / 1000)] += 1
                    counts.wait_seconds += waited / 1000
            if len(lot) < BATCH_SIZE:
                break
            await asyncio.sleep(0)  # let other tasks run
        return counts


async def metrics_exporter(request: Request) -> MetricsExporter:
    metrics: MetricsExporter = request.app.state.metrics
    return metrics


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Liveness: the process answers."""
    return {"status": "ok"}


@router.get("/readyz", responses=documented_errors(503))
async def readyz(state: StateDep) -> dict[str, str]:
    """Readiness: the database is available and up to date; a server that is about to stop is not ready."""
    if state.stopping.is_set():
        raise NotReady("The server is about to stop. Ask another, or wait until it is started again.")
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            state.store.check_same_database()
            await state.store.migrations()
    except TimeoutError:
        raise StoreUnavailable(f"The database did not answer within {READY_TIMEOUT:.0f} seconds.") from None
    return {"status": "ready"}


@router.get(
    "/metrics",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **documented_errors()},
    response_class=Response,
    **require_roles(VIEWERS),
)
async def metrics(principal: PrincipalDep, every: Annotated[MetricsExporter, Depends(metrics_exporter)]) -> Response:
    """Prometheus metrics of the key's workspace, and of the process."""
    return Response(await every.text(principal.workspace), media_type=CONTENT_TYPE_LATEST)


class NotReady(Error):
    code, status = "not_ready", 503


class About(BaseModel):
    """`retention` is the time for which the contents of ended calls are kept; `provider` is for OpenID Connect."""

    version: str
    database: str
    retention: str
    provider: bool
    workspace: str


@router.get("/api/about", responses=documented_errors(), **require_roles(VIEWERS))
async def about(state: StateDep, principal: PrincipalDep) -> About:
    """The version of the server, its database and its settings."""
    return About(
        version=__version__,
        database="PostgreSQL" if state.settings.storage.url.startswith("postgres") else "SQLite",
        retention=state.settings.storage.retention_text,
        provider=state.settings.server.oidc is not None,
        workspace=principal.workspace,
    )


# Metrics


class StaticCollector:
    """A collector of metrics that are computed already."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterator[Metric]:
        return iter(self._metrics)


def _workspace_metrics(name: str, counts: LedgerCounts, statuses: Mapping[str, int], age: float) -> Iterator[Metric]:
    kinds = counts.kinds
    approvals = GaugeMetricFamily("interlock_approvals", "Approvals by status.", labels=["workspace", "status"])
    for status, n in statuses.items():
        approvals.add_metric([name, status], n)
    yield approvals
    yield _gauge("interlock_pending", "Calls that wait on people.", statuses.get("pending", 0), name)
    yield _gauge("interlock_oldest_pending_seconds", "Age of the oldest call that waits.", age, name)
    decisions = CounterMetricFamily("interlock_decisions", "What was decided.", labels=["workspace", "kind"])
    for kind in DECISION_KINDS:
        decisions.add_metric([name, kind], kinds[kind])
    yield decisions
    yield _counter("interlock_expired", "Calls that nobody decided, or started, in time.", kinds["expired"], name)
    yield _counter("interlock_sign_in_failed", "Sign-ins that failed, as noted.", kinds["sign_in_failed"], name)
    events = CounterMetricFamily("interlock_events", "Lines of the ledger.", labels=["workspace", "kind"])
    for kind, n in sorted(kinds.items()):
        events.add_metric([name, kind], n)
    yield events
    took = HistogramMetricFamily("interlock_time_to_decide_seconds", "From the proposal.", labels=["workspace"])
    took.add_metric([name], _buckets(WAIT_BUCKETS, counts.wait_buckets), counts.wait_seconds)
    yield took


def _pause_metrics(name: str, paused: int, age: float) -> Iterator[Metric]:
    yield _gauge("interlock_paused_runs", "Paused runs; up to 10,000.", paused, name)
    yield _gauge("interlock_oldest_paused_seconds", "Age of the oldest paused run.", age, name)


def _process_metrics(state: ServerState) -> Iterator[Metric]:
    counters, tally = state.counters, state.store.writer_stats
    info = GaugeMetricFamily("interlock_info", "Which version runs.", labels=["version"])
    info.add_metric([__version__], 1)
    yield info
    yield _gauge("interlock_ready", "1 until the server is about to stop.", 0 if state.stopping.is_set() else 1)
    yield _gauge("interlock_open_streams", "Readers of live events.", counters.streams)
    yield _gauge("interlock_waiting_agents", "Long polls that are held back.", counters.waiting)
    yield _gauge("interlock_event_lag_seconds", "From the ledger to the streams, of the newest event.", counters.lag)
    yield _counter("interlock_failures", "Requests that failed by a fault of the server.", counters.failures)
    batches = HistogramMetricFamily("interlock_batch_size", "Changes that share one commit.")
    bounds = [2**bit - 1 for bit in range(len(tally.sizes) - 1)]
    batches.add_metric([], _buckets(bounds[1:], tally.sizes[1:]), tally.items)
    yield batches
    errors = CounterMetricFamily("interlock_database_errors", "Trouble with the database.", labels=["during"])
    errors.add_metric(["write"], tally.failed)
    errors.add_metric(["request"], sum(t.count for (_, _, status), t in counters.requests.items() if status == 503))
    yield errors
    failed = [
        t.count
        for (_, route, status), t in counters.requests.items()
        if route in SIGN_IN_ROUTES and status in (401, 429)
    ]
    yield _counter("interlock_sign_ins_refused", "Sign-ins that this process refused.", sum(failed))
    yield _request_metric(counters.requests)


def _channel_metrics(
    workspace: str, channels: Sequence[ChannelState], delivery_counts: Mapping[tuple[str, str], int], now: int
) -> Iterator[Metric]:
    """Metrics of channels: a few look-ups for each, at the same cost however many messages are due."""
    sent = CounterMetricFamily("interlock_deliveries", "Messages to people.", labels=["workspace", "channel", "result"])
    none = {(each.name, result): 0 for each in channels for result in DELIVERY_RESULTS.values()}
    for (channel, result), n in sorted({**none, **delivery_counts}.items()):
        sent.add_metric([workspace, channel, result], n)
    yield sent
    figures: dict[tuple[str, str], Callable[[ChannelState], float]] = {
        ("due", "Messages that wait; up to 1,000."): lambda each: each.due,
        ("parked", "Dead letters, of the newest 1,000 deliveries."): lambda each: each.parked,
        ("off", "1 if its other side wants nothing more."): lambda each: int(each.off is not None),
        ("oldest_due_seconds", "Age of the oldest message that could not be said yet."): lambda each: (
            0 if each.due_since is None else max(0, now - each.due_since) / 1000
        ),
    }
    for (name, text), figure in figures.items():
        metric = GaugeMetricFamily(f"interlock_deliveries_{name}", text, labels=["workspace", "channel"])
        for each in channels:
            metric.add_metric([workspace, each.name], figure(each))
        yield metric


def _request_metric(timings: Mapping[RouteKey, LatencyHistogram]) -> Metric:
    metric = HistogramMetricFamily("interlock_request_seconds", "Answers.", labels=["method", "route", "status"])
    for (method, route, status), timing in sorted(timings.items()):
        metric.add_metric([method, route, str(status)], _buckets(LATENCY_BUCKETS, timing.buckets), timing.total)
    return metric


def _gauge(name: str, text: str, value: float, workspace: str = "") -> Metric:
    metric = GaugeMetricFamily(name, text, labels=["workspace"] if workspace else [])
    metric.add_metric([workspace] if workspace else [], value)
    return metric


def _counter(name: str, text: str, value: float, workspace: str = "") -> Metric:
    metric = CounterMetricFamily(name, text, labels=["workspace"] if workspace else [])
    metric.add_metric([workspace] if workspace else [], value)
    return metric


def _buckets(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Cumulative buckets, as in Prometheus; `counts` has one entry more than `bounds`, for values above the last."""
    total, found = 0, []
    for bound, n in zip([*map(float, bounds), float("inf")], counts, strict=True):
        total += n
        found.append(("+Inf" if bound == float("inf") else str(bound), float(total)))
    return found

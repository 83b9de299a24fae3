"""What a process counts while it answers: plain numbers, so that counting costs next to nothing."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
OTHER_ROUTE = "other"  # whatever no route of ours answers: a made-up path must not become a label
RouteKey = tuple[str, str, int]  # method, template, status


class LatencyHistogram:
    """How often, how long in all, and how many within each bound; the last bucket is beyond all bounds."""

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
    """`lag` is how long the newest event took from the ledger to the streams, in seconds."""

    requests: dict[RouteKey, LatencyHistogram] = field(default_factory=dict)
    streams: int = 0
    waiting: int = 0
    failures: int = 0
    lag: float = 0.0

    def answered(self, route: RouteKey, seconds: float) -> None:
        timing = self.requests.get(route)
        if timing is None:
            timing = self.requests[route] = LatencyHistogram()
        timing.add(seconds)

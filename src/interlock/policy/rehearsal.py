"""Policy rehearsal (dry run) over the recorded calls of a store, and activity of rules and shadow rules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from interlock.core.ledger.chain import Entry
from interlock.core.policy.analysis import (
    Rehearsal,
    RehearsalReport,
    RuleUsage,
    RuleUsageCounter,
    ShadowReport,
    ShadowRuleCounter,
)
from interlock.core.policy.policy import Policy
from interlock.core.ports import LedgerReader

ReportProgress = Callable[[int, int], object]  # progress so far, and its end


@dataclass(frozen=True, slots=True)
class RehearsalResult:
    """The report, and what it leaves out: calls without stored arguments, allowed reads, and `left_out` ones."""

    report: RehearsalReport
    erased: int
    allowed_reads: int
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class RuleActivity:
    """What rules did and shadow rules would have done; not `complete` if there was more than was read."""

    matched: tuple[RuleUsage, ...]
    shadows: ShadowReport
    complete: bool


async def run_rehearsal(
    store: LedgerReader,
    workspace: str,
    policies: tuple[Policy, Policy],
    since: int,
    keep: int,
    report_progress: ReportProgress,
) -> RehearsalResult:
    """Rehearse with `policies`, the one in force and the draft. A False from `report_progress` stops it."""
    total, erased = await store.count_recorded_calls(workspace, since)
    rehearsal, done = Rehearsal(*policies, keep), 0
    async for page in store.recorded_calls(workspace, since):
        await asyncio.to_thread(rehearsal.feed, page)  # keeps the event loop free
        done += len(page)
        if report_progress(done, max(done, total)) is False:
            break
    reads = (await store.stats(workspace)).allowed_reads
    return RehearsalResult(rehearsal.report(), erased, reads, max(0, total - done))


async def shadow_report(
    store: LedgerReader, workspace: str, since: int, report_progress: ReportProgress
) -> ShadowReport:
    end = (await store.head(workspace)).seq
    shadowing = ShadowRuleCounter(since)
    async for page in store.entries(workspace):
        shadowing.feed(page)
        report_progress(page[-1].seq, max(page[-1].seq, end))
    return shadowing.report()


async def rule_activity(
    store: LedgerReader, workspace: str, since: int, max_entries: int, report_progress: ReportProgress
) -> RuleActivity:
    """Read the newest `max_entries` entries of the ledger. A False from `report_progress` stops it."""
    end = (await store.head(workspace)).seq
    after = max(0, end - max_entries)
    matching, shadowing = RuleUsageCounter(since), ShadowRuleCounter(since)
    complete, first = True, 0
    async for page in store.entries(workspace, after):
        first = first or page[0].at
        await asyncio.to_thread(_feed_counters, matching, shadowing, page)
        if report_progress(page[-1].seq - after, end - after) is False:
            complete = page[-1].seq >= end
            break
    return RuleActivity(matching.report(), shadowing.report(), complete and (after == 0 or first < since))


def _feed_counters(matching: RuleUsageCounter, shadowing: ShadowRuleCounter, page: Sequence[Entry]) -> None:
    matching.feed(page)
    shadowing.feed(page)

"""Checks of the final state after a storm: effects, rows, ledger and histories have to agree."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from interlock.app.audit import verify
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.approval.approval import FINAL_STATUSES
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from tests.faults import histories
from tests.faults.clients import RESULT, terms_for, tool_name
from tests.faults.linearizability import NEVER, ApprovalContext, RecordedOperation, find_order
from tests.models.model import ModelAnswer, Operation

RESTING_STATUSES = FINAL_STATUSES | {"rejected", "unknown"}  # statuses that change only by a person
STUCK_AFTER = 12.0  # seconds without a change, far beyond every deadline of a storm
SAMPLES = 4  # of each kind of what is wrong
WORKERS = 2


class FinalRow(NamedTuple):
    """How an approval ended; `reported_done` means that a runner reported success."""

    answer: ModelAnswer
    args_sha256: str
    reported_done: bool


@dataclass
class FinalState:
    violations: list[str] = field(default_factory=list)
    operations: int = 0
    succeeded: int = 0
    lost: int = 0
    approvals: int = 0
    effects: int = 0
    linearizable: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)

    def samples(self) -> list[str]:
        """Some of each kind."""
        kinds: dict[str, list[str]] = defaultdict(list)
        for each in self.violations:
            kinds[each.partition(":")[0]].append(each)
        return [each for found in kinds.values() for each in found[:SAMPLES]]


class HistoryCheck(NamedTuple):
    violations: list[str]
    counts: Counter[str]
    linearizable: int  # operations in histories that have an explanation


def check_final_state(url: str, folder: Path, killed: Mapping[str, int]) -> FinalState:
    verdict = FinalState()
    rows = asyncio.run(wait_and_verify(url, verdict))
    verdict.approvals = len(rows)
    verdict.statuses = Counter(row.answer.status or "" for row in rows.values())
    count_effects(folder, rows, verdict)
    shards = [(folder / f"history-{n}", rows_in_shard(rows, n), dict(killed)) for n in range(histories.SHARDS)]
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        for checked in pool.starmap(check_history, shards, chunksize=1):
            verdict.violations += checked.violations
            verdict.counts += checked.counts
            verdict.linearizable += checked.linearizable
    verdict.operations = verdict.counts.total()
    verdict.succeeded = sum(n for name, n in verdict.counts.items() if name.endswith(" ok"))
    verdict.lost = sum(n for name, n in verdict.counts.items() if name.endswith(" lost"))
    return verdict


async def wait_and_verify(url: str, verdict: FinalState) -> dict[int, FinalRow]:
    """Waits until all timers have fired, then verifies the ledger and every row."""
    services = build_services(url)
    await services.store.open()
    try:
        moving, since = await unfinished_by_status(services), time.monotonic()
        while moving:
            before, moving = moving, await unfinished_by_status(services)
            since = since if moving == before else time.monotonic()
            if time.monotonic() - since > STUCK_AFTER:
                verdict.violations.append(f"stuck: {moving}")
                break
            await services.worker.sweep()
            await asyncio.sleep(0.05)
        report = await verify(services.store, "default")
        verdict.violations += [f"ledger: {fault.seq} {fault.message}" for fault in report.violations]
        return await read_rows(services)
    finally:
        await services.store.close()


async def unfinished_by_status(services: AppServices) -> dict[str, int]:
    counted = (await services.store.stats("default")).by_status
    return {status: n for status, n in counted.items() if n and status not in RESTING_STATUSES}


async def read_rows(services: AppServices) -> dict[int, FinalRow]:
    rows: dict[int, FinalRow] = {}
    cursor: str | None = ""
    while cursor is not None:
        page = await services.store.list("default", ApprovalQuery(limit=500, cursor=cursor, payload="whole"))
        rows.update((int(stored.approval.subject.call_id[1:]), make_row(stored)) for stored in page.items)
        cursor = page.next
    return rows


def make_row(stored: Stored) -> FinalRow:
    approval = stored.approval
    return FinalRow(histories.answer_from_approval(approval), approval.args_sha256, stored.payload.result == RESULT)


def rows_in_shard(rows: Mapping[int, FinalRow], shard: int) -> dict[int, FinalRow]:
    return {number: row for number, row in rows.items() if number % histories.SHARDS == shard}


def count_effects(folder: Path, rows: Mapping[int, FinalRow], verdict: FinalState) -> None:
    """The promise itself: never without an approval, never twice, never with other arguments."""
    effects: dict[int, list[tuple[str, str, str]]] = defaultdict(list)
    with (folder / "effects").open() as lines:
        for line in lines:
            number, args, key, fence = line.split()
            effects[int(number)].append((args, key, fence))
    verdict.effects = sum(map(len, effects.values()))
    for number, each in effects.items():
        verdict.violations += [f"effect: approval {number} {problem}" for problem in problems(number, each, rows)]
    for number, row in rows.items():
        if row.reported_done and number not in effects:
            verdict.violations.append(f"effect: approval {number} is recorded as done, and was not")


def problems(number: int, effects: list[tuple[str, str, str]], rows: Mapping[int, FinalRow]) -> list[str]:
    row = rows.get(number)
    if row is None:
        return ["ran and is not there"]
    found = [] if row.answer.status in ("succeeded", "failed", "unknown") else [f"ran and is {row.answer.status}"]
    if tool_name(number) != "put" and len(effects) > 1:
        found.append(f"ran {len(effects)} times")
    if len({key for _, key, _ in effects}) > 1 or len({fence for *_, fence in effects}) < len(effects):
        found.append("ran under two keys, or twice under one fence")
    if {args for args, *_ in effects} != {row.args_sha256}:
        found.append("ran with other arguments than were approved")
    return found


def check_history(path: Path, rows: Mapping[int, FinalRow], killed: Mapping[str, int]) -> HistoryCheck:
    """One file of histories; how the row ended is the last look at each."""
    found = histories.read_histories(path)
    checked = HistoryCheck([], histories.count_answers(found), 0)
    explained = 0
    for number, history in found.items():
        last = RecordedOperation(Operation("look"), NEVER - 2, NEVER - 2, NEVER - 1, NEVER - 1)
        row = rows.get(number)
        whole = [*histories.split_reads(history), last._replace(answer=row.answer if row else ModelAnswer("not_found"))]
        problem = find_order(whole, ApprovalContext(terms_for(number), killed))
        explained += 0 if problem else len(history)
        if problem:
            checked.violations.append(f"history: approval {number} ({tool_name(number)}): {problem}")
    return checked._replace(linearizable=explained)

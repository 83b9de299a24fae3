"""What is left when a storm is over: the effects outside, the rows, the ledger and the histories, held side by side."""

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
from tests.faults.clients import DID, terms_of, tool_of
from tests.faults.linearizability import NEVER, Life, Recorded, explain
from tests.models.model import Answer, Op

RESTS = FINAL_STATUSES | {"rejected", "unknown"}  # where nothing happens any more unless a person wants it to
STUCK = 12.0  # seconds without a change, far beyond every deadline of a storm
SAMPLES = 4  # of each kind of what is wrong
WORKERS = 2


class Row(NamedTuple):
    """How an approval ended; `did` is that a runner said that it was done."""

    answer: Answer
    args_sha256: str
    did: bool


@dataclass
class Verdict:
    wrong: list[str] = field(default_factory=list)
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
        for each in self.wrong:
            kinds[each.partition(":")[0]].append(each)
        return [each for found in kinds.values() for each in found[:SAMPLES]]


class Checked(NamedTuple):
    wrong: list[str]
    counts: Counter[str]
    linearizable: int  # operations in histories that have an explanation


def judge(url: str, folder: Path, killed: Mapping[str, int]) -> Verdict:
    verdict = Verdict()
    rows = asyncio.run(rest(url, verdict))
    verdict.approvals = len(rows)
    verdict.statuses = Counter(row.answer.status or "" for row in rows.values())
    count_effects(folder, rows, verdict)
    shards = [(folder / f"history-{n}", rows_of(rows, n), dict(killed)) for n in range(histories.SHARDS)]
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        for checked in pool.starmap(check, shards, chunksize=1):
            verdict.wrong += checked.wrong
            verdict.counts += checked.counts
            verdict.linearizable += checked.linearizable
    verdict.operations = verdict.counts.total()
    verdict.succeeded = sum(n for name, n in verdict.counts.items() if name.endswith(" ok"))
    verdict.lost = sum(n for name, n in verdict.counts.items() if name.endswith(" lost"))
    return verdict


async def rest(url: str, verdict: Verdict) -> dict[int, Row]:
    """Waits until time has done its part, then verifies the ledger and every row beside it."""
    parts = build_services(url)
    await parts.store.open()
    try:
        moving, since = await unrested(parts), time.monotonic()
        while moving:
            before, moving = moving, await unrested(parts)
            since = since if moving == before else time.monotonic()
            if time.monotonic() - since > STUCK:
                verdict.wrong.append(f"stuck: {moving}")
                break
            await parts.worker.sweep()
            await asyncio.sleep(0.05)
        report = await verify(parts.store, "default")
        verdict.wrong += [f"ledger: {fault.seq} {fault.message}" for fault in report.violations]
        return await ended(parts)
    finally:
        await parts.store.close()


async def unrested(parts: AppServices) -> dict[str, int]:
    counted = (await parts.store.stats("default")).by_status
    return {status: n for status, n in counted.items() if n and status not in RESTS}


async def ended(parts: AppServices) -> dict[int, Row]:
    rows: dict[int, Row] = {}
    cursor: str | None = ""
    while cursor is not None:
        page = await parts.store.list("default", ApprovalQuery(limit=500, cursor=cursor, payload="whole"))
        rows.update((int(stored.approval.subject.call_id[1:]), row_of(stored)) for stored in page.items)
        cursor = page.next
    return rows


def row_of(stored: Stored) -> Row:
    approval = stored.approval
    return Row(histories.of_approval(approval), approval.args_sha256, stored.payload.result == DID)


def rows_of(rows: Mapping[int, Row], shard: int) -> dict[int, Row]:
    return {number: row for number, row in rows.items() if number % histories.SHARDS == shard}


def count_effects(folder: Path, rows: Mapping[int, Row], verdict: Verdict) -> None:
    """The promise itself: never without an approval, never twice, never with other arguments."""
    effects: dict[int, list[tuple[str, str, str]]] = defaultdict(list)
    with (folder / "effects").open() as lines:
        for line in lines:
            number, args, key, fence = line.split()
            effects[int(number)].append((args, key, fence))
    verdict.effects = sum(map(len, effects.values()))
    for number, each in effects.items():
        verdict.wrong += [f"effect: approval {number} {problem}" for problem in problems(number, each, rows)]
    for number, row in rows.items():
        if row.did and number not in effects:
            verdict.wrong.append(f"effect: approval {number} is recorded as done, and was not")


def problems(number: int, effects: list[tuple[str, str, str]], rows: Mapping[int, Row]) -> list[str]:
    row = rows.get(number)
    if row is None:
        return ["ran and is not there"]
    found = [] if row.answer.status in ("succeeded", "failed", "unknown") else [f"ran and is {row.answer.status}"]
    if tool_of(number) != "put" and len(effects) > 1:
        found.append(f"ran {len(effects)} times")
    if len({key for _, key, _ in effects}) > 1 or len({fence for *_, fence in effects}) < len(effects):
        found.append("ran under two keys, or twice under one fence")
    if {args for args, *_ in effects} != {row.args_sha256}:
        found.append("ran with other arguments than were approved")
    return found


def check(path: Path, rows: Mapping[int, Row], killed: Mapping[str, int]) -> Checked:
    """One file of histories; how the row ended is the last look at each."""
    found = histories.read(path)
    checked = Checked([], histories.counts(found), 0)
    explained = 0
    for number, history in found.items():
        last = Recorded(Op("look"), NEVER - 2, NEVER - 2, NEVER - 1, NEVER - 1)
        row = rows.get(number)
        whole = [*histories.taken_apart(history), last._replace(answer=row.answer if row else Answer("not_found"))]
        problem = explain(whole, Life(terms_of(number), killed))
        explained += 0 if problem else len(history)
        if problem:
            checked.wrong.append(f"history: approval {number} ({tool_of(number)}): {problem}")
    return checked._replace(linearizable=explained)

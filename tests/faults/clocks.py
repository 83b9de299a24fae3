"""Walks the clock of a database forward and back, by milliseconds and by years, while calls are made and decided:

    python -m tests.faults.clocks [--database sqlite|postgresql] [--walks N] [--seed N]
                                  [--broken callers-clock|not-behind]

Each walk has a ledger of its own. Before each operation it is known what has to come out, to the millisecond: the time
that counts is the later one of the database's clock and the ledger's last entry, and while the clock is the earlier
one nothing is approved or started. Every other program of PostgreSQL believes in a clock of its own, which must not
matter. Some decisions wait for a lock while their time runs out. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from interlock.app.audit import verify
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.approval.approval import Approval
from interlock.core.call import ToolSpec
from interlock.core.decision import Acknowledgement, Approve, Reject
from interlock.core.errors import Error
from tests.databases import Database, ServerDatabase, SqliteFile, migrated_template
from tests.faults import database_controls
from tests.postgres import Server
from tests.support import BOB, OK, START, WRITE, Clock, call

SECOND, HOUR, YEAR = 1_000, 3_600_000, 31_536_000_000
LEASE = 30 * SECOND
RUSH_CALLS = 12  # decisions at once
ROUNDS_AFTER_JUMP = ToolSpec("put_file", "write", idempotent=True)
CLOCK_JUMPS = (1, 10, SECOND, 20 * SECOND, 60 * SECOND, HOUR, 24 * HOUR, YEAR, 10 * YEAR)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--walks", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", default="")
    options = parser.parse_args()
    if options.broken:
        database_controls.apply_control(options.broken)
    began = time.monotonic()
    with make_place(options.database) as place:
        tally = asyncio.run(run_walks(place, options.walks, options.seed))
    shape = {"suite": "clocks", "database": options.database}
    print(json.dumps({**shape, **vars(tally), "seconds": round(time.monotonic() - began, 1)}))


@contextmanager
def make_place(database: str) -> Iterator[Database]:
    if database == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield SqliteFile(Path(folder) / "interlock.db")
        return
    with Server(durable=False, in_memory=True) as server:
        server.create_database("clocks", migrated_template(server))
        yield ServerDatabase(server, "clocks")


@dataclass
class WalkCounts:
    operations: int = 0
    succeeded: int = 0
    faults: int = 0  # leaps of the clock
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


async def run_walks(database: Database, count: int, seed: int) -> WalkCounts:
    clock, tally = Clock(), WalkCounts()
    clock.drive(database)
    async with open_services(database, clock) as services:
        for number in range(count):
            clock.now = START
            await ClockWalk(
                services, database, clock, f"walk{number}", random.Random(seed * 1_000_003 + number), tally
            ).run()
    return tally


@asynccontextmanager
async def open_services(database: Database, clock: Clock) -> AsyncIterator[list[AppServices]]:
    """Two programs. SQLite has no clock but the program's, so there both have the true one."""
    other = clock if database.kind == "sqlite" else Clock(START - YEAR)
    made = [build_services(database.url, clock), build_services(database.url, other)]
    for services in made:
        await services.store.open()
    try:
        yield made
    finally:
        for services in made:
            await services.store.close()


@dataclass
class ClockWalk:
    parts: list[AppServices]
    place: Database
    clock: Clock
    workspace: str
    chance: random.Random
    tally: WalkCounts
    ids: list[str] = field(default_factory=list)

    async def run(self) -> None:
        for _ in range(12):
            for _ in range(self.chance.randint(1, 3)):
                await self.propose()
            await self.leap()
            for approval_id in await self.chosen():
                await self.operate(approval_id)
            await self.sweep()
        await self.rush()
        report = await verify(self.parts[0].store, self.workspace)
        self.tally.wrong += [f"{self.workspace}: {fault.message}" for fault in report.violations]

    async def chosen(self) -> list[str]:
        """Some that are open, and one that may not be."""
        now = [await self.approval(each) for each in self.ids]
        live = [each.id for each in now if each.status in VERBS]
        return [*self.chance.sample(live, min(6, len(live))), self.chance.choice(self.ids)]

    @property
    def door(self) -> AppServices:
        return self.chance.choice(self.parts)

    async def moment(self) -> tuple[int, bool]:
        """The time that counts, and whether the clock is behind it."""
        last = (await self.parts[0].store.head(self.workspace)).at
        return max(self.clock.now, last), self.clock.now < last

    async def approval(self, approval_id: str) -> Approval:
        return (await self.parts[0].store.get(self.workspace, approval_id)).approval

    async def propose(self) -> None:
        spec = self.chance.choice([WRITE, ROUNDS_AFTER_JUMP])
        window = self.chance.choice([SECOND, 60 * SECOND, 24 * HOUR, 6 * YEAR])
        made = call(len(self.ids), tool=spec.name, workspace=self.workspace, expires_in=window)
        now, _ = await self.moment()
        outcome = await self.door.gate.check(made, spec)
        self.ids.append(outcome.approval_id)  # type: ignore[union-attr]
        made_at = (await self.approval(self.ids[-1])).created_at
        self.note("propose", "ok" if made_at == now else f"at {made_at}", "ok")

    async def leap(self) -> None:
        """To just before, at or just after a moment at which something ends; or anywhere; and home again."""
        self.tally.faults += 1
        now, behind = await self.moment()
        if behind and self.chance.random() < 0.6:
            self.clock.now = now
        elif self.chance.random() < 0.4:
            marks = [mark for each in self.ids for mark in end_times(await self.approval(each)) if mark > now]
            if marks:
                self.clock.now = min(marks) + self.chance.choice([-1, -1, 0, 1])
        elif self.chance.random() < 0.5:
            self.clock.advance(self.chance.choice(CLOCK_JUMPS[:5]))
        else:
            self.clock.advance(self.chance.choice(CLOCK_JUMPS) * self.chance.choice([-1, 1]))

    async def operate(self, approval_id: str) -> None:
        before = await self.approval(approval_id)
        verb = self.chance.choice(VERBS[before.status]) if before.status in VERBS else "approve"
        now, behind = await self.moment()
        if verb == "wait" and behind:
            verb = "approve"  # to wait across a deadline, time has to pass
        if verb == "wait":
            now, work = self.later(before, now), self.wait(before)
        else:
            work = getattr(self, verb)(before)
        try:
            said = await work
        except Error as error:
            said = error.code
        self.note(f"{verb} {before.status}", said, expected_error(verb, before, now, behind=behind))

    # The operations: each gives the new status, or raises

    async def approve(self, approval: Approval) -> str:
        return (await self.decide(approval)).status

    async def reject(self, approval: Approval) -> str:
        decision = Reject("", Acknowledgement(approval.args_sha256))
        return (await self.door.inbox.decide(self.workspace, approval.id, decision, BOB)).status

    async def wait(self, approval: Approval) -> str:
        """Decided in time, and kept waiting for a lock until the time is over."""
        with self.place.hold_lock():
            decision = asyncio.create_task(self.decide(approval))
            await asyncio.sleep(0)  # it is on its way
            self.clock.now = self.later(approval, self.clock.now)
        return (await decision).status

    async def start(self, approval: Approval) -> str:
        now, _ = await self.moment()
        execution = await self.door.gate.start(self.workspace, approval.id, "r", LEASE)
        return "running" if execution.lease_until == now + LEASE else f"leased until {execution.lease_until}"

    async def renew(self, approval: Approval) -> str:
        return (await self.door.gate.renew(self.workspace, approval.id, approval.lease.fence, LEASE)).status

    async def finish(self, approval: Approval) -> str:
        done = await self.door.gate.finish(self.workspace, approval.id, approval.lease.fence, ok=True, payload=OK)
        return done.status

    def decide(self, approval: Approval) -> Awaitable[Approval]:
        return self.door.inbox.decide(self.workspace, approval.id, Approve(Acknowledgement(approval.args_sha256)), BOB)

    def later(self, approval: Approval, now: int) -> int:
        return max(now, approval.deadlines.expires_at)

    async def sweep(self) -> None:
        """Time ends nothing before its time."""
        before = [await self.approval(each) for each in self.ids]
        await self.parts[0].worker.sweep()
        now, _ = await self.moment()
        after = [await self.approval(each) for each in self.ids]
        early = [
            old.id
            for old, new in zip(before, after, strict=True)
            if new.status != old.status and not any(mark <= now for mark in end_times(old))
        ]
        self.note("sweep", f"early: {early}" if early else "ok", "ok")

    async def rush(self) -> None:
        """Many decisions at once, while the clock runs over their deadlines: what counts is what the ledger says."""
        self.tally.faults += 1
        self.clock.now = (await self.moment())[0]
        for _ in range(RUSH_CALLS):
            await self.propose()
        waiting = [await self.approval(each) for each in self.ids[-RUSH_CALLS:]]
        decisions = [asyncio.create_task(self.approve(each)) for each in waiting]
        while not all(each.done() for each in decisions):
            self.clock.advance(self.chance.choice([1, 100, SECOND, 60 * SECOND]))
            await asyncio.sleep(0.0005)
        for old, decision in zip(waiting, decisions, strict=True):
            said = decision.exception() or decision.result()
            new = await self.approval(old.id)
            at = new.decision.at if new.decision else 0
            due = "approved" if at < old.deadlines.expires_at else "expired"
            self.note("rush", getattr(said, "code", said), due)  # type: ignore[arg-type]

    def note(self, what: str, said: str, wanted: str) -> None:
        self.tally.operations += 1
        self.tally.succeeded += said in ("ok", "approved", "rejected", "running", "succeeded")
        self.tally.outcomes[f"{what}: {said}"] += 1
        if said != wanted:
            self.tally.wrong.append(f"{self.workspace}: {what} gave {said} and not {wanted}")


VERBS = {
    "pending": ["approve", "approve", "approve", "reject", "wait", "start"],
    "approved": ["start", "start", "start", "approve"],
    "running": ["finish", "finish", "renew", "start"],
}


def end_times(approval: Approval) -> list[int]:
    """When time alone changes it."""
    marks = {
        "pending": approval.deadlines.expires_at,
        "approved": approval.deadlines.start_by,
        "running": approval.lease.until,
    }
    return [mark for mark in [marks.get(approval.status)] if mark is not None]


def expected_error(verb: str, approval: Approval, now: int, *, behind: bool) -> str:
    """The rules of deadlines, written independently of the tested code."""
    over = any(mark <= now for mark in end_times(approval))
    match verb, approval.status:
        case "approve" | "wait" | "reject", "pending" if over:
            return "expired"
        case "approve" | "wait", "pending":
            return "clock_behind" if behind else "approved"
        case "reject", "pending":
            return "rejected"
        case "start", "pending":
            return "not_approved"
        case "start", "approved":
            return "expired" if over else "clock_behind" if behind else "running"
        case "start", "running":
            again = approval.subject.idempotent and over and now < (approval.deadlines.start_by or 0)
            return "already_started" if not again else "clock_behind" if behind else "running"
        case (("finish" | "renew"), "running"):
            return "lease_lost" if over else {"finish": "succeeded", "renew": "running"}[verb]
        case _:
            return "expired" if approval.status == "expired" else "already_decided"


if __name__ == "__main__":
    main()

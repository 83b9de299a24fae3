"""The same random scenarios on SQLite and on PostgreSQL: outcomes, errors, rows and the ledger, hashes included.

    python -m tests.faults.parity [--scenarios N] [--seed S] [--broken]

Starts a PostgreSQL of its own. Chance is taken out of both sides (ids, salts), so that everything can be compared
as it is. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from interlock.app.bootstrap import AppServices, build_services
from interlock.core.call import ToolSpec, propose
from interlock.core.decision import Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.errors import Error, NotFound
from interlock.core.grant import Grant
from interlock.core.ledger.event import Payload
from interlock.core.policy.policy import People
from interlock.core.ports import ApprovalQuery, User
from interlock.storage.engine.writer import EMPTY_ITEM, BatchItem
from tests.databases import migrated_template
from tests.postgres import Server
from tests.support import START, Clock

POLICIES = (
    "version: 1\n",
    "version: 1\ndefaults: {expires_in: 90s, undo_window: 5s, start_within: 60s}\nrules:\n"
    "  - {name: free, tools: [note], then: allow}\n"
    "  - {name: two, tools: [pay], when: args.amount > 100, then: ask, approvers: {teams: [finance]}, quorum: 2,"
    " exclude: [requester], expires_in: 5m, escalate: [{after: 2m, to: {users: [ada]}}]}\n"
    "  - {name: never, tools: [wipe], then: deny, reason: Not that.}\n"
    "  - {name: shy, tools: [pay], then: deny, mode: shadow}\n",
    "version: 1\nrules:\n  - {name: steps, tools: ['*'], then: ask, stages: [{approvers: {teams: [finance]}},"
    " {approvers: {teams: [legal]}, quorum: 2}], on_expiry: approve, expires_in: 3m}\n",
)
SPECS = (
    ToolSpec(
        "pay",
        "write",
        schema={"type": "object", "properties": {"amount": {"type": "number"}}},
        describe="Pay {amount} to {to}",
    ),
    ToolSpec("note", "write", describe="Note {text}", secret=("text",)),
    ToolSpec("put", "write", idempotent=True),
    ToolSpec("look", "read"),
    ToolSpec("wipe", "destructive"),
    ToolSpec("guess", ""),
)
PEOPLE = (
    Reviewer("ann", "reviewer", teams=frozenset({"finance"}), via="web"),
    Reviewer("bob", "reviewer", teams=frozenset({"finance", "legal"}), via="slack"),
    Reviewer("cid", "reviewer", teams=frozenset({"legal"}), via="web"),
    Reviewer("ada", "admin", teams=frozenset(), via="cli"),
    Reviewer("vic", "viewer"),
    Reviewer("bot", "agent"),
)
TEXTS = ("", "fine", "größer 🙂", "a\x00b", "half \ud800", "'; drop table approvals; --", '\\x41 \\ " {a,b}', "x" * 400)
NUMBERS = (0, 5, 100, 101, -3, 2**53 + 1, 10**39, 0.1, 1e300, 5.0)
STEPS = {
    "propose": 6, "decide": 6, "start": 3, "finish": 3, "wait": 3, "sweep": 2, "undo": 1, "cancel": 1, "renew": 1,
    "delegate": 1, "resolve": 1, "ask": 1, "grant": 1, "revoke": 1, "list": 1, "look": 1, "together": 2, "policy": 1,
    "replay": 1, "abandon": 1, "back": 1, "user": 1, "live": 4, "search": 2,
}  # fmt: skip
NOTICED = "robert"  # whom a broken PostgreSQL takes bob for
DONE = ("Approval(", "Execution(")  # a scenario in which everything was refused proves nothing


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenarios", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", action="store_true", help="PostgreSQL forgets one thing: the red control")
    options = parser.parse_args()
    fix_random()
    with tempfile.TemporaryDirectory() as folder, Server(durable=False) as server:
        server.create_database("parity", migrated_template(server))
        began = time.monotonic()
        result = asyncio.run(compare_databases(Path(folder) / "parity.db", server.url("parity"), options))
    figures = {"operations": options.scenarios, "succeeded": result.pop("succeeded"), "faults": 0}
    shape = {"suite": "parity", "database": "both", **figures, "wrong": result["different"]}
    print(json.dumps({**shape, "seconds": time.monotonic() - began, **result}))


def fix_random() -> None:
    """Ids come from a generator that every scenario resets; salts are all the same."""
    os.urandom = bytes  # type: ignore[assignment]
    secrets.token_hex = lambda n=32: RANDOM_SOURCES.randbytes(n).hex()  # type: ignore[assignment]
    secrets.token_bytes = lambda n=32: bytes(range(n))  # type: ignore[assignment]


RANDOM_SOURCES = random.Random(0)


async def compare_databases(path: Path, url: str, options: argparse.Namespace) -> dict[str, Any]:
    clock = Clock()
    with psycopg.connect(url, autocommit=True) as side:
        follow_clock(clock, side)
        one, two = build_services(f"sqlite:///{path}", clock), build_services(url, clock)
        await asyncio.gather(one.store.open(), two.store.open())
        seen: Counter[str] = Counter()
        succeeded = 0
        different: list[dict[str, Any]] = []
        for number in range(options.seed * 1_000_000, options.seed * 1_000_000 + options.scenarios):
            left = await Scenario(one, clock, number).play()
            right = await Scenario(two, clock, number).play()
            if options.broken:
                right = [line.replace("bob", NOTICED) for line in right]
            seen.update(line[2:].split("(")[0].split(":")[0] for line in left if line.startswith(">"))
            succeeded += any(line.split(" ")[2].startswith(DONE) for line in left if line.startswith(">"))
            if left != right:
                place = next(
                    n for n, pair in enumerate(zip([*left, ""], [*right, ""], strict=False)) if pair[0] != pair[1]
                )
                different.append(
                    {"scenario": number, "sqlite": left[place : place + 2], "postgres": right[place : place + 2]}
                )
        await asyncio.gather(one.store.close(), two.store.close())
    counts = {"scenarios": options.scenarios, "succeeded": succeeded, "count": len(different)}
    return {**counts, "different": different[:5], "seen": dict(seen)}


def follow_clock(clock: Clock, side: psycopg.Connection[Any]) -> None:
    """The server's clock is the test's."""
    side.execute("create table clock_for_tests (now bigint)")
    side.execute("insert into clock_for_tests values (0)")
    side.execute(
        "create or replace function interlock_now() returns bigint language plpgsql as "
        "'begin return (select now from clock_for_tests); end'"
    )

    class Follower:
        url = "parity"

        def set_clock(self, now: int) -> None:
            side.execute("update clock_for_tests set now = %s", (now,))

    clock.drive(Follower())  # type: ignore[arg-type]


class ConcurrentSteps:
    """Operations that are submitted at once, in the order in which they are given, whatever each has to read before.

    A read takes longer on one database than on the other. So what is to be written waits until every operation that
    is not done yet has something to write, and then all of it goes into one batch.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._undone: set[int] = set()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._place: ContextVar[int] = ContextVar("place")

    async def done(self, works: list[Callable[[], Awaitable[object]]]) -> list[object]:
        submit, self._undone = self._writer.submit, set(range(len(works)))

        async def in_turn(work: BatchItem) -> object:
            turn = self._waiting[self._place.get()] = asyncio.get_running_loop().create_future()
            self._let_go()
            await turn
            return await submit(work)

        self._writer.submit = in_turn
        try:
            return await asyncio.gather(*map(self._do, range(len(works)), works), return_exceptions=True)
        finally:
            del self._writer.submit

    async def _do(self, place: int, work: Callable[[], Awaitable[object]]) -> object:
        self._place.set(place)
        try:
            return await work()
        finally:
            self._undone.remove(place)
            self._let_go()

    def _let_go(self) -> None:
        if self._waiting.keys() == self._undone:
            for _, turn in sorted(self._waiting.items()):
                turn.get_loop().call_soon(turn.set_result, None)  # not at once: the last to come would go first
            self._waiting.clear()


class Scenario:
    """One workspace, some thirty steps, everything that came of them as lines of text."""

    def __init__(self, services: AppServices, clock: Clock, number: int) -> None:
        self.parts, self.clock, self.number = services, clock, number
        self.chance = random.Random(number)
        self.workspace = f"w{number}"
        self.ids: list[str] = []
        self.calls: list[tuple[Any, ToolSpec]] = []
        self.grants: list[str] = []
        self.lines: list[str] = []
        self.fences: dict[str, int] = {}

    async def play(self) -> list[str]:
        RANDOM_SOURCES.seed(self.number)
        self.clock.now = START
        await self.parts.put_policy(self.workspace, self.chance.choice(POLICIES), "ada", {})
        steps = self.chance.choices(list(STEPS), list(STEPS.values()), k=self.chance.randint(8, 30))
        for step in ["propose"] * 3 + steps:
            await self.note(step, getattr(self, f"do_{step}"))
        return [*self.lines, *await self.rest()]

    async def note(self, step: str, work: Callable[[], Awaitable[object]]) -> None:
        try:
            answers = await work()
        except Error as error:
            answers = f"{type(error).__name__}: {error.message} {sorted(error.ids.items(), key=str)!r}"
        except (ValueError, TypeError) as error:
            answers = type(error).__name__
        self.lines.append(f"> {step} {answers!r}")

    async def rest(self) -> list[str]:
        """All that is stored, at the end."""
        store = self.parts.store
        await store._database.write(EMPTY_ITEM)  # reads that were counted go with the next batch
        page = await store.list(self.workspace, ApprovalQuery(limit=500, payload="whole"))
        entries = [entry async for chunk in store.entries(self.workspace) for entry in chunk]
        others = [
            await store.stats(self.workspace),
            await store.grants(self.workspace),
            await store.users(self.workspace),
        ]
        return [repr(each) for each in (*page.items, *entries, await store.head(self.workspace), *others)]

    # Steps

    async def do_propose(self) -> object:
        spec, chance = self.chance.choice(SPECS), self.chance
        args = {"amount": chance.choice(NUMBERS), "to": self.text(), "text": self.text()}
        wanted = {"agent": chance.choice(("", "helper", "größe")), "requester": chance.choice(("ann", "rita"))}
        if chance.random() < 0.2:
            wanted |= {"priority": "high", "thread_id": "t1", "agent_path": ("boss", "helper"), "agent_says": "please"}
        if chance.random() < 0.2:
            wanted["expires_in"] = chance.choice((0, 1, 30_000, 10**15))
        call = propose(
            spec.name, args, f"run{chance.randint(1, 2)}", f"c{len(self.calls)}", workspace=self.workspace, **wanted
        )
        self.calls.append((call, spec))
        return self.known(await self.parts.gate.check(call, spec))

    async def do_replay(self) -> object:
        if not self.calls:
            return "nothing"
        call, spec = self.chance.choice(self.calls)
        if self.chance.random() < 0.3:
            call = propose(spec.name, {"other": 1}, call.run_id, call.call_id, workspace=self.workspace)
        return await self.parts.gate.check(call, spec)

    async def do_ask(self) -> object:
        args = {"question": "Which?", "choices": ["a", "b"]}
        call = propose("request_human_input", args, "run1", f"q{len(self.lines)}", workspace=self.workspace)
        return self.known(await self.parts.gate.ask(call, ToolSpec("request_human_input", "write")))

    async def do_decide(self) -> object:
        approval_id = self.choose_one()
        stored = await self.parts.store.get(self.workspace, approval_id)
        decision = self.decision(stored.approval.args_sha256)
        return await self.parts.inbox.decide(self.workspace, approval_id, decision, self.person())

    def decision(self, digest: str) -> Decision:
        chance = self.chance
        digest = chance.choice((digest, digest, digest, None, "0" * 64))
        seen = Acknowledgement(digest, ("alarm",) if chance.random() < 0.1 else (), self.text(), self.text())
        match chance.randint(0, 9):
            case 0:
                return Reject(self.text(), seen)
            case 1:
                return Edit({"amount": chance.choice(NUMBERS), "to": self.text()}, seen)
            case 2:
                return Respond(self.text(), chance.choice((None, "a", {"x": [1]})), seen)
            case _:
                return Approve(seen)

    async def do_live(self) -> object:
        """All steps of one call, as far as they go."""
        approval_id = self.choose_one()
        stored = await self.parts.store.get(self.workspace, approval_id)
        seen = Acknowledgement(stored.approval.args_sha256, stored.approval.findings.alarms)
        for person in PEOPLE[:4]:
            await self.note(
                "vote", lambda p=person: self.parts.inbox.decide(self.workspace, approval_id, Approve(seen), p)
            )
        started = await self.parts.gate.start(self.workspace, approval_id, "runner")
        self.fences[approval_id] = started.fence
        if self.chance.random() < 0.3:
            return started
        payload = Payload(result=b'{"done":true}')
        return await self.parts.gate.finish(self.workspace, approval_id, started.fence, ok=True, payload=payload)

    async def do_start(self) -> object:
        approval_id = self.choose_one()
        started = await self.parts.gate.start(
            self.workspace, approval_id, "runner", self.chance.choice((1_000, 60_000))
        )
        self.fences[approval_id] = started.fence
        return started

    async def do_finish(self) -> object:
        approval_id, ok = self.choose_one(), self.chance.random() < 0.7
        fence = self.fences.get(approval_id, 1) + self.chance.choice((0, 0, 0, 1, -1))
        payload = Payload(result=b'{"done":true}') if ok else Payload(error=self.chance.choice(("no", "größer")))
        return await self.parts.gate.finish(self.workspace, approval_id, fence, ok=ok, payload=payload)

    async def do_renew(self) -> object:
        approval_id = self.choose_one()
        return await self.parts.gate.renew(self.workspace, approval_id, self.fences.get(approval_id, 1))

    async def do_abandon(self) -> object:
        approval_id = self.choose_one()
        return await self.parts.gate.abandon(self.workspace, approval_id, self.fences.get(approval_id, 1))

    async def do_undo(self) -> object:
        return await self.parts.inbox.undo(self.workspace, self.choose_one(), self.person())

    async def do_cancel(self) -> object:
        return await self.parts.gate.cancel(self.workspace, self.choose_one(), "agent", self.text())

    async def do_delegate(self) -> object:
        to = People(frozenset({"ada"}), frozenset({"legal"}))
        return await self.parts.inbox.delegate(self.workspace, self.choose_one(), to, self.person())

    async def do_resolve(self) -> object:
        return await self.parts.inbox.resolve_unknown(
            self.workspace, self.choose_one(), self.person(), ok=True, note="seen"
        )

    async def do_grant(self) -> object:
        spec = self.chance.choice(SPECS)
        grant_id = f"g{len(self.lines)}"
        until = self.clock() + self.chance.choice((-1, 60_000, 3_600_000))
        when = self.chance.choice(("", "args.amount < 50", "args.nothing > 1"))
        draft = Grant(
            id=grant_id,
            workspace=self.workspace,
            tool=spec.name,
            spec_sha256=spec.sha256,
            created_by="",
            teams=frozenset(),
            role="",
            created_at=0,
            expires_at=until,
            when=when,
            max_uses=2,
        )
        made = await self.parts.inbox.grant(draft, self.person())
        self.grants.append(grant_id)
        return made

    async def do_revoke(self) -> object:
        grant_id = self.chance.choice(self.grants) if self.grants else "none"
        return await self.parts.inbox.revoke(self.workspace, grant_id, self.person())

    async def do_list(self) -> object:
        chance = self.chance
        statuses = chance.choice(((), ("pending",), ("approved", "running"), ("failed",), ("expired", "rejected")))
        query = ApprovalQuery(statuses, agent=chance.choice(("", "helper")), limit=chance.randint(1, 3))
        page = await self.parts.store.list(self.workspace, query)
        rest = replace(query, cursor=page.next or "", limit=50)
        return page, await self.parts.store.list(self.workspace, rest) if page.next else None

    async def do_search(self) -> object:
        chance = self.chance
        words = chance.choice(("", "pay", "fin", "größer", "5", "note", "drop table", "to", self.text()))
        names = {"tool": "pay", "person": "ann", "thread_id": "t1", "agent": "boss", "priority": "high"}
        some = {name: value for name, value in names.items() if chance.random() < 0.2}
        arguments = (("amount", chance.choice(NUMBERS)),) if chance.random() < 0.3 else ()
        statuses = chance.choice(
            ((), (), ("pending",), ("pending", "approved"), ("succeeded",), ("rejected", "expired"))
        )
        since, until = START + chance.choice((0, 5_000)), chance.choice((None, self.clock()))
        query = ApprovalQuery(statuses, text=words, arguments=arguments, since=since, until=until, limit=2, **some)
        page = await self.parts.store.list(self.workspace, query)
        rest = replace(query, cursor=page.next or "", limit=50, payload="whole")
        return page, await self.parts.store.list(self.workspace, rest) if page.next else None

    async def do_look(self) -> object:
        view = await self.parts.inbox.show(self.workspace, self.choose_one())
        return view, await self.parts.gate.get_outcome(self.workspace, view.stored.approval.id)

    async def do_together(self) -> object:
        """Submitted at once: they share a batch. Late reports are left out: they wait for each other."""
        person, chance, done = self.person(), self.chance, Payload(result=b"1")
        works: list[Callable[[], Awaitable[object]]] = []
        for _ in range(chance.randint(2, 5)):
            approval_id = self.choose_one()
            verbs: list[Callable[[], Awaitable[object]]] = [
                lambda i=approval_id: self.parts.inbox.decide(self.workspace, i, Approve(), person),
                lambda i=approval_id: self.parts.gate.start(self.workspace, i, "runner"),
                lambda i=approval_id: self.parts.gate.cancel(self.workspace, i, "agent"),
                lambda i=approval_id: self.parts.inbox.undo(self.workspace, i, person),
            ]
            if not await self.would_be_late(approval_id):
                verbs.append(lambda i=approval_id: self.parts.gate.finish(self.workspace, i, 1, ok=True, payload=done))
            works.append(chance.choice(verbs))
        return [to_plain(each) for each in await ConcurrentSteps(self.parts.store._database._writer).done(works)]

    async def would_be_late(self, approval_id: str) -> bool:
        try:
            approval = (await self.parts.store.get(self.workspace, approval_id)).approval
        except NotFound:
            return False
        return approval.status == "unknown" or (approval.lease.until or self.clock() + 1) <= self.clock()

    async def do_wait(self) -> object:
        self.clock.advance(self.chance.choice((0, 1, 999, 5_000, 8_000, 30_000, 60_000, 200_000)))
        return self.clock()

    async def do_back(self) -> object:
        self.clock.advance(-self.chance.choice((1, 10_000)))
        return self.clock()

    async def do_sweep(self) -> object:
        """Only what is due here: workers look at all workspaces."""
        due = sorted(self.ids, key=str)
        return [to_plain(await self.parts.worker._tick(self.workspace, approval_id)) for approval_id in due]

    async def do_policy(self) -> object:
        loaded = await self.parts.put_policy(self.workspace, self.chance.choice(POLICIES), "ada", {}, "a reason")
        return loaded.policy.sha256

    async def do_user(self) -> object:
        user = User(self.chance.choice(("ann", "größe")), "reviewer", teams=frozenset({"finance"}))
        return await self.parts.store.put_user(self.workspace, user, "ada")

    def known(self, outcome: Any) -> Any:
        if getattr(outcome, "approval_id", ""):
            self.ids.append(outcome.approval_id)
        return outcome

    def choose_one(self) -> str:
        return self.chance.choice(self.ids) if self.ids and self.chance.random() < 0.97 else "no-such-id"

    def person(self) -> Reviewer:
        return self.chance.choices(PEOPLE, (6, 6, 3, 6, 1, 1))[0]

    def text(self) -> str:
        return self.chance.choice(TEXTS) if self.chance.random() < 0.15 else "fine"


def to_plain(each: object) -> object:
    return f"{type(each).__name__}: {each}" if isinstance(each, Exception) else each


if __name__ == "__main__":
    main()

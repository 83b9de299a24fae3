"""What the clients of a storm do: agents, people and runners in one, mostly sensible, at the same approvals at once."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from interlock.app.bootstrap import AppServices
from interlock.app.gate import Execution
from interlock.core.call import ToolCall, ToolSpec, propose
from interlock.core.canonical import canonical, digest
from interlock.core.decision import Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.errors import Error
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Refused
from tests.faults.histories import LOST, Recorder, of_approval, of_outcome, short
from tests.models.model import Answer, Op, Terms

POLICY = """
version: 1
defaults: {remind: [], expires_in: 3s, undo_window: 2s, start_within: 3s}
rules:
  - {name: two, tools: [pay], then: ask, quorum: 2}
  - {name: free, tools: [note], then: allow}
  - {name: silent, tools: [post], then: ask, expires_in: 150ms, on_expiry: approve}
  - {name: hasty, tools: [rush], then: ask, expires_in: 100ms, start_within: 80ms}
  - {name: never, tools: [wipe], then: deny, reason: Not that.}
"""
TOOLS = ("send", "send", "send", "pay", "pay", "put", "put", "note", "post", "rush")
SPECS = {name: ToolSpec(name, "write", idempotent=name == "put") for name in (*TOOLS, "wipe")}
PEOPLE = (*map(Reviewer, ("ann", "bob", "cid", "dan")), Reviewer("ada", "admin"))
VIEWER = Reviewer("vic", "viewer")
CROWD = tuple(f"person{p}.{n}" for p in range(20) for n in range(50))  # reviewers as well
NAMES = frozenset((*(person.name for person in PEOPLE), *CROWD))
LEASES = (20, 2_000, 2_000, 2_000)  # milliseconds
DID = b'"did"'
LINGER = 10  # operations of one client at one approval

# What is done next, by what was seen last; the numbers are weights.
CHOICES: dict[str, dict[str, int]] = {
    "pending": {
        "approve": 60, "edit": 9, "respond": 4, "reject": 9, "cancel": 3, "look": 8, "start": 2, "undo": 1,
        "intrude": 2, "blind": 2, "stale": 2, "other": 2, "again": 2,
    },
    "approved": {"start": 75, "cancel": 4, "look": 12, "approve": 4, "again": 4, "renew": 1},
    "running": {"look": 40, "again": 20, "leave": 20, "start": 8, "finish": 3, "renew": 3, "cancel": 3, "reject": 3},
    "mine": {"finish": 78, "renew": 10, "fail": 5, "leave": 3, "abandon": 2, "misfinish": 2},
    "rejected": {"undo": 55, "look": 25, "again": 10, "approve": 10},
    "unknown": {"resolve": 60, "look": 20, "finish": 10, "start": 10},
    "in doubt": {"look": 1},
    "ended": {"look": 70, "again": 22, "finish": 2, "start": 2, "approve": 2, "undo": 1, "resolve": 1},
}  # fmt: skip


def tool_of(number: int) -> str:
    """The same in every process."""
    return TOOLS[number * 7919 % 1009 % len(TOOLS)]


def terms_of(number: int) -> Terms:
    tool = tool_of(number)
    return Terms(
        quorum=2 if tool == "pay" else 1,
        born="approved" if tool == "note" else "pending",
        by="policy" if tool == "note" else "",
        idempotent=tool == "put",
        consent=tool == "post",
        deciders=NAMES,
        admins=frozenset({"ada"}),
    )


def call_of(number: int, args: object = None, tool: str = "") -> ToolCall:
    return propose(tool or tool_of(number), args or {"n": number}, "storm", f"c{number}", requester="rita")


@dataclass
class Life:
    """An approval as one client knows it; `digest` is what a person would have on the screen."""

    number: int
    id: str = ""
    status: str = ""
    digest: str = ""
    fence: int = 0
    mine: Execution | None = None
    done: bool = False


class Client:
    """One of many; `effects` is the world outside, which counts what was really done to it."""

    def __init__(self, parts: AppServices, recorder: Recorder, folder: Path, runner: str, seed: int) -> None:
        self.parts, self.recorder, self.runner = parts, recorder, runner
        self.chance = random.Random(seed)
        self.operations = 0
        self.people, self.leases = PEOPLE, LEASES
        self._effects = os.open(folder / "effects", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def play(self, number: int, current: Callable[[], int]) -> None:
        """Until it has ended, or others have gone on to the next one; some linger."""
        life = Life(number)
        for step in range(LINGER):
            if step and current() != number and self.chance.random() < 0.6:
                return
            await (self.do_again(life) if not life.id else self.step(life))
            if life.done:
                return

    async def step(self, life: Life) -> None:
        known = "mine" if life.mine else life.status
        if known not in CHOICES:
            known, life.done = "ended", self.chance.random() < 0.5
        if known == "pending" and not life.digest:
            known = "in doubt"
        choices = CHOICES[known]
        await self.do(self.chance.choices(list(choices), list(choices.values()))[0], life)

    async def do(self, name: str, life: Life) -> None:
        await getattr(self, f"do_{name}", self.do_decide(name))(life)

    async def record(self, life: Life, op: Op, work: Callable[[], Awaitable[Answer]]) -> Answer:
        self.operations += 1
        answer = await self.recorder.record(life.number, op, work)
        life.status = (answer.status or "") if answer.code == "ok" else "in doubt"
        return answer

    # What agents do

    async def do_again(self, life: Life) -> None:
        """Proposes: the first time, or once more, as after a restart."""
        await self.propose(life, {"n": life.number})

    async def do_other(self, life: Life) -> None:
        await self.propose(life, {"n": -life.number - 1})

    async def propose(self, life: Life, args: object) -> None:
        call = call_of(life.number, args)

        async def work() -> Answer:
            outcome = await self.parts.gate.check(call, SPECS[call.tool])
            life.id = getattr(outcome, "approval_id", "")
            return of_outcome(outcome)

        answer = await self.record(life, Op("propose", args=short(digest(call.args))), work)
        life.done = answer is LOST

    async def do_look(self, life: Life) -> None:
        async def work() -> Answer:
            stored = await self.parts.store.get("default", life.id)
            life.digest, life.fence = stored.approval.args_sha256, stored.approval.lease.fence
            return of_approval(stored.approval)

        await self.record(life, Op("look"), work)

    async def do_cancel(self, life: Life) -> None:
        async def work() -> Answer:
            return of_approval(await self.parts.gate.cancel("default", life.id, "agent"))

        await self.record(life, Op("cancel", "agent"), work)

    # What runners do

    async def do_start(self, life: Life) -> None:
        lease = self.chance.choice(self.leases)

        async def work() -> Answer:
            life.mine = started = await self.parts.gate.start("default", life.id, self.runner, lease)
            life.fence = started.fence
            self.effect(life, started)
            return Answer("ok", None, None, short(digest(started.args)), None, started.fence, None, started.lease_until)

        life.mine = None
        await self.record(life, Op("start", self.recorder.name), work)

    def effect(self, life: Life, started: Execution) -> None:
        """One line for each time that the tool ran: with which arguments, under which key."""
        self.append(f"{life.number} {digest(started.args)} {started.idempotency_key} {started.fence}\n")

    def append(self, line: str) -> None:
        os.write(self._effects, line.encode())

    async def do_renew(self, life: Life) -> None:
        async def work() -> Answer:
            return of_approval(await self.parts.gate.renew("default", life.id, life.fence, 2_000))

        await self.record(life, Op("renew", fence=life.fence), work)

    async def do_finish(self, life: Life) -> None:
        await self.finish(life, life.fence, Payload(result=DID))

    async def do_fail(self, life: Life) -> None:
        await self.finish(life, life.fence, Payload(error="no"))

    async def do_misfinish(self, life: Life) -> None:
        await self.finish(life, life.fence + self.chance.choice((-1, 1)), Payload(result=DID))

    async def finish(self, life: Life, fence: int, payload: Payload) -> None:
        if life.mine is None:  # nobody else says that it was done: only whoever did it knows
            payload = Payload(error="somebody else says so")
        ok = payload.error is None

        async def work() -> Answer:
            return of_approval(await self.parts.gate.finish("default", life.id, fence, ok=ok, payload=payload))

        answer = await self.record(life, Op("finish", fence=fence, ok=ok), work)
        life.mine = None if answer.code == "ok" else life.mine

    async def do_abandon(self, life: Life) -> None:
        async def work() -> Answer:
            return of_approval(await self.parts.gate.abandon("default", life.id, life.fence))

        await self.record(life, Op("abandon", fence=life.fence), work)
        life.mine = None

    async def do_leave(self, life: Life) -> None:
        """As a runner that hangs: it is never heard of again."""
        life.done = True
        await asyncio.sleep(0)

    # What people do

    def do_decide(self, name: str) -> Callable[[Life], Awaitable[None]]:
        async def decide(life: Life) -> None:
            person = VIEWER if name == "intrude" else self.chance.choice(self.people)
            seen = {"blind": None, "stale": "0" * 64}.get(name, life.digest or None)
            kind = name if name in ("edit", "respond", "reject") else "approve"
            args = {"n": life.number, "by": person.name, "at": self.chance.getrandbits(40)}
            op = Op(kind, person.name, seen and short(seen), short(digest(canonical(args))) if kind == "edit" else "")
            if kind == "edit":
                op = op._replace(quorum=terms_of(life.number).quorum)  # the policy never changes here
            decision = decision_of(kind, args, Acknowledgement(seen))

            async def work() -> Answer:
                approval = await self.parts.inbox.decide("default", life.id, decision, person)
                life.digest = approval.args_sha256
                return of_approval(approval)

            await self.record(life, op, work)

        return decide

    async def do_undo(self, life: Life) -> None:
        person = self.chance.choice((PEOPLE[-1], self.chance.choice(self.people)))

        async def work() -> Answer:
            return of_approval(await self.parts.inbox.undo("default", life.id, person))

        await self.record(life, Op("undo", person.name), work)

    async def do_resolve(self, life: Life) -> None:
        person, ok = self.chance.choice((*PEOPLE, VIEWER)), self.chance.random() < 0.5

        async def work() -> Answer:
            return of_approval(await self.parts.inbox.resolve_unknown("default", life.id, person, ok=ok, note="seen"))

        await self.record(life, Op("resolve", person.name, ok=ok), work)


def decision_of(kind: str, args: dict[str, object], seen: Acknowledgement) -> Decision:
    match kind:
        case "edit":
            return Edit(args, seen)
        case "respond":
            return Respond("Ask me tomorrow.", None, seen)
        case "reject":
            return Reject("No.", seen)
    return Approve(seen)


async def forbidden(parts: AppServices, number: int) -> bool:
    """Whether a call that the policy denies is refused."""
    call = call_of(number, {"n": number}, "wipe").with_call_id(f"w{number}")
    try:
        return isinstance(await parts.gate.check(call, SPECS["wipe"]), Refused)
    except Error:
        return True

"""Clients of a storm: agents, people and runners in one, at the same approvals at once."""

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
from tests.faults.histories import LOST, Recorder, answer_from_approval, answer_from_outcome, short_digest
from tests.models.model import ModelAnswer, Operation, Terms

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
MANY_PEOPLE = tuple(f"person{p}.{n}" for p in range(20) for n in range(50))  # reviewers as well
NAMES = frozenset((*(person.name for person in PEOPLE), *MANY_PEOPLE))
LEASES = (20, 2_000, 2_000, 2_000)  # milliseconds
RESULT = b'"did"'
RUN_TIME = 10  # operations of one client at one approval

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


def tool_name(number: int) -> str:
    """The same in every process."""
    return TOOLS[number * 7919 % 1009 % len(TOOLS)]


def terms_for(number: int) -> Terms:
    tool = tool_name(number)
    return Terms(
        quorum=2 if tool == "pay" else 1,
        first_status="approved" if tool == "note" else "pending",
        by="policy" if tool == "note" else "",
        idempotent=tool == "put",
        approves_by_silence=tool == "post",
        deciders=NAMES,
        admins=frozenset({"ada"}),
    )


def call_for(number: int, args: object = None, tool: str = "") -> ToolCall:
    return propose(tool or tool_name(number), args or {"n": number}, "storm", f"c{number}", requester="rita")


@dataclass
class ApprovalProgress:
    """An approval as one client knows it; `digest` is what a person would have on the screen."""

    number: int
    id: str = ""
    status: str = ""
    digest: str = ""
    fence: int = 0
    own_fence: Execution | None = None
    done: bool = False


class Client:
    """One of many; `effects` is the world outside, which counts what was really done to it."""

    def __init__(self, services: AppServices, recorder: Recorder, folder: Path, runner: str, seed: int) -> None:
        self.parts, self.recorder, self.runner = services, recorder, runner
        self.chance = random.Random(seed)
        self.operations = 0
        self.people, self.leases = PEOPLE, LEASES
        self._effects = os.open(folder / "effects", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def play(self, number: int, current: Callable[[], int]) -> None:
        """Until it has ended, or others have gone on to the next one; some linger."""
        progress = ApprovalProgress(number)
        for step in range(RUN_TIME):
            if step and current() != number and self.chance.random() < 0.6:
                return
            await (self.do_again(progress) if not progress.id else self.step(progress))
            if progress.done:
                return

    async def step(self, progress: ApprovalProgress) -> None:
        known = "mine" if progress.own_fence else progress.status
        if known not in CHOICES:
            known, progress.done = "ended", self.chance.random() < 0.5
        if known == "pending" and not progress.digest:
            known = "in doubt"
        choices = CHOICES[known]
        await self.do(self.chance.choices(list(choices), list(choices.values()))[0], progress)

    async def do(self, name: str, progress: ApprovalProgress) -> None:
        await getattr(self, f"do_{name}", self.do_decide(name))(progress)

    async def record(
        self, progress: ApprovalProgress, op: Operation, work: Callable[[], Awaitable[ModelAnswer]]
    ) -> ModelAnswer:
        self.operations += 1
        answer = await self.recorder.record(progress.number, op, work)
        progress.status = (answer.status or "") if answer.code == "ok" else "in doubt"
        return answer

    # What agents do

    async def do_again(self, progress: ApprovalProgress) -> None:
        """Proposes: the first time, or once more, as after a restart."""
        await self.propose(progress, {"n": progress.number})

    async def do_other(self, progress: ApprovalProgress) -> None:
        await self.propose(progress, {"n": -progress.number - 1})

    async def propose(self, progress: ApprovalProgress, args: object) -> None:
        call = call_for(progress.number, args)

        async def work() -> ModelAnswer:
            outcome = await self.parts.gate.check(call, SPECS[call.tool])
            progress.id = getattr(outcome, "approval_id", "")
            return answer_from_outcome(outcome)

        answer = await self.record(progress, Operation("propose", args=short_digest(digest(call.args))), work)
        progress.done = answer is LOST

    async def do_look(self, progress: ApprovalProgress) -> None:
        async def work() -> ModelAnswer:
            stored = await self.parts.store.get("default", progress.id)
            progress.digest, progress.fence = stored.approval.args_sha256, stored.approval.lease.fence
            return answer_from_approval(stored.approval)

        await self.record(progress, Operation("look"), work)

    async def do_cancel(self, progress: ApprovalProgress) -> None:
        async def work() -> ModelAnswer:
            return answer_from_approval(await self.parts.gate.cancel("default", progress.id, "agent"))

        await self.record(progress, Operation("cancel", "agent"), work)

    # What runners do

    async def do_start(self, progress: ApprovalProgress) -> None:
        lease = self.chance.choice(self.leases)

        async def work() -> ModelAnswer:
            progress.own_fence = started = await self.parts.gate.start("default", progress.id, self.runner, lease)
            progress.fence = started.fence
            self.effect(progress, started)
            return ModelAnswer(
                "ok", None, None, short_digest(digest(started.args)), None, started.fence, None, started.lease_until
            )

        progress.own_fence = None
        await self.record(progress, Operation("start", self.recorder.name), work)

    def effect(self, progress: ApprovalProgress, started: Execution) -> None:
        """One line for each time that the tool ran: with which arguments, under which key."""
        self.append(f"{progress.number} {digest(started.args)} {started.idempotency_key} {started.fence}\n")

    def append(self, line: str) -> None:
        os.write(self._effects, line.encode())

    async def do_renew(self, progress: ApprovalProgress) -> None:
        async def work() -> ModelAnswer:
            return answer_from_approval(await self.parts.gate.renew("default", progress.id, progress.fence, 2_000))

        await self.record(progress, Operation("renew", fence=progress.fence), work)

    async def do_finish(self, progress: ApprovalProgress) -> None:
        await self.finish(progress, progress.fence, Payload(result=RESULT))

    async def do_fail(self, progress: ApprovalProgress) -> None:
        await self.finish(progress, progress.fence, Payload(error="no"))

    async def do_misfinish(self, progress: ApprovalProgress) -> None:
        await self.finish(progress, progress.fence + self.chance.choice((-1, 1)), Payload(result=RESULT))

    async def finish(self, progress: ApprovalProgress, fence: int, payload: Payload) -> None:
        if progress.own_fence is None:  # only the runner that did it reports it as done
            payload = Payload(error="somebody else says so")
        ok = payload.error is None

        async def work() -> ModelAnswer:
            return answer_from_approval(
                await self.parts.gate.finish("default", progress.id, fence, ok=ok, payload=payload)
            )

        answer = await self.record(progress, Operation("finish", fence=fence, ok=ok), work)
        progress.own_fence = None if answer.code == "ok" else progress.own_fence

    async def do_abandon(self, progress: ApprovalProgress) -> None:
        async def work() -> ModelAnswer:
            return answer_from_approval(await self.parts.gate.abandon("default", progress.id, progress.fence))

        await self.record(progress, Operation("abandon", fence=progress.fence), work)
        progress.own_fence = None

    async def do_leave(self, progress: ApprovalProgress) -> None:
        """As a runner that hangs: it is never heard of again."""
        progress.done = True
        await asyncio.sleep(0)

    # What people do

    def do_decide(self, name: str) -> Callable[[ApprovalProgress], Awaitable[None]]:
        async def decide(progress: ApprovalProgress) -> None:
            person = VIEWER if name == "intrude" else self.chance.choice(self.people)
            seen = {"blind": None, "stale": "0" * 64}.get(name, progress.digest or None)
            kind = name if name in ("edit", "respond", "reject") else "approve"
            args = {"n": progress.number, "by": person.name, "at": self.chance.getrandbits(40)}
            op = Operation(
                kind,
                person.name,
                seen and short_digest(seen),
                short_digest(digest(canonical(args))) if kind == "edit" else "",
            )
            if kind == "edit":
                op = op._replace(quorum=terms_for(progress.number).quorum)  # the policy never changes here
            decision = decision_for(kind, args, Acknowledgement(seen))

            async def work() -> ModelAnswer:
                approval = await self.parts.inbox.decide("default", progress.id, decision, person)
                progress.digest = approval.args_sha256
                return answer_from_approval(approval)

            await self.record(progress, op, work)

        return decide

    async def do_undo(self, progress: ApprovalProgress) -> None:
        person = self.chance.choice((PEOPLE[-1], self.chance.choice(self.people)))

        async def work() -> ModelAnswer:
            return answer_from_approval(await self.parts.inbox.undo("default", progress.id, person))

        await self.record(progress, Operation("undo", person.name), work)

    async def do_resolve(self, progress: ApprovalProgress) -> None:
        person, ok = self.chance.choice((*PEOPLE, VIEWER)), self.chance.random() < 0.5

        async def work() -> ModelAnswer:
            return answer_from_approval(
                await self.parts.inbox.resolve_unknown("default", progress.id, person, ok=ok, note="seen")
            )

        await self.record(progress, Operation("resolve", person.name, ok=ok), work)


def decision_for(kind: str, args: dict[str, object], seen: Acknowledgement) -> Decision:
    match kind:
        case "edit":
            return Edit(args, seen)
        case "respond":
            return Respond("Ask me tomorrow.", None, seen)
        case "reject":
            return Reject("No.", seen)
    return Approve(seen)


async def forbidden_transitions(services: AppServices, number: int) -> bool:
    """Whether a call that the policy denies is refused."""
    call = call_for(number, {"n": number}, "wipe").with_call_id(f"w{number}")
    try:
        return isinstance(await services.gate.check(call, SPECS["wipe"]), Refused)
    except Error:
        return True

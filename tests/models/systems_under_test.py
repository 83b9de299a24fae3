"""What the model is compared with: the pure core, the store, and the doors. Each takes an operation and says an answer.

All three hold the same scene: one workspace, a handful of calls, people who may decide and one who may not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from interlock.app.audit import verify
from interlock.app.bootstrap import AppServices, PolicyChannelSettings, build_services, known_names
from interlock.core.approval import approval as approvals
from interlock.core.approval import execute
from interlock.core.approval import propose as request
from interlock.core.approval.approval import Approval, PreparedEdit
from interlock.core.approval.propose import Proposal
from interlock.core.approval.timers import fire_next_timer
from interlock.core.call import ToolCall, ToolSpec, propose, redact
from interlock.core.canonical import digest
from interlock.core.decision import Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.errors import Error, NotFound
from interlock.core.grant import Grant, covers, make, revoke
from interlock.core.ledger.chain import Entry, Head, Verifier, make_entry
from interlock.core.ledger.event import Change, Moment, Payload, Stored
from interlock.core.outcome import approval_outcome
from interlock.core.policy.policy import Allow, Ask, Deny, People, Policy
from interlock.core.ports import ApprovalQuery, ApprovalStep, StoredStep
from interlock.policy.conditions import compile_condition
from interlock.policy.file import load_policy
from tests.faults.histories import of_approval, of_error, of_outcome, short
from tests.models.model import Answer, Op
from tests.support import Clock

TOOLS = ("send", "pay", "put", "note", "post", "wipe")
SPECS = {name: ToolSpec(name, "write", idempotent=name == "put") for name in TOOLS}
PEOPLE = {each.name: each for each in (Reviewer("ann"), Reviewer("bob"), Reviewer("ada", "admin"))}
VIEWER = Reviewer("vic", "viewer")
LEASE = 10_000


class Situation(NamedTuple):
    """What is looked at after every step: who waits, and how many have which status."""

    pending: frozenset[int]
    counts: Mapping[str, int]


class Subject(Protocol):
    def policy(self, text: str) -> None: ...
    def perform(self, number: int, op: Op) -> Answer: ...
    def sweep(self) -> None: ...
    def grant(self, grant: Grant, maker: str) -> None: ...
    def revoke(self, grant_id: str) -> None: ...
    def restart(self) -> None: ...
    def situation(self) -> Situation: ...
    def faults(self) -> list[str]: ...
    def close(self) -> None: ...


def spec_of(number: int) -> ToolSpec:
    return SPECS[TOOLS[number % len(TOOLS)]]


def call_of(workspace: str, number: int, args: str) -> ToolCall:
    return propose(spec_of(number).name, {"path": args}, "run", f"c{number}", workspace=workspace, requester="rita")


def sha256_of(args: str) -> str:
    """The digest of arguments that the model knows by name."""
    return digest(propose("t", {"path": args}, "r", "c").args)


def person(name: str) -> Reviewer:
    return PEOPLE.get(name, VIEWER)


def decision_of(op: Op) -> Decision:
    seen = Acknowledgement(None if op.seen is None else sha256_of(op.seen))
    match op.name:
        case "approve":
            return Approve(seen)
        case "edit":
            return Edit({"path": op.args}, seen)
        case "respond":
            return Respond("Later.", None, seen)
    return Reject("No.", seen)


def payload_of(op: Op) -> Payload:
    return Payload(result=b"1") if op.ok else Payload(error="no")


def handed_out(stored: Stored) -> Answer:
    """What a runner gets: the bytes that it is to run, and its fence."""
    return Answer("ok", args=short(digest(stored.payload.args or b"")), fence=stored.approval.lease.fence)


class Doors:
    """Gate, inbox and worker over a real database, whose clock the test moves."""

    def __init__(self, url: str, clock: Clock, workspace: str, runner: asyncio.Runner) -> None:
        self.url, self.clock, self.workspace, self.runner = url, clock, workspace, runner
        self.ids: dict[int, str] = {}
        self.parts: AppServices
        self._open()

    def _open(self) -> None:
        self.parts = build_services(self.url, self.clock)
        self.runner.run(self.parts.store.open())

    def policy(self, text: str) -> None:
        self.runner.run(self.parts.put_policy(self.workspace, text, "ada", {}))

    def perform(self, number: int, op: Op) -> Answer:
        try:
            return self.runner.run(self._perform(number, op))
        except Error as error:
            return of_error(error)

    async def _perform(self, number: int, op: Op) -> Answer:
        approval_id = self.ids.get(number, "nobody-knows")
        match op.name:
            case "propose":
                outcome = await self.parts.gate.check(call_of(self.workspace, number, op.args), spec_of(number))
                self.ids[number] = getattr(outcome, "approval_id", "") or approval_id
                return of_outcome(outcome)
            case "look":
                return of_approval((await self.parts.store.get(self.workspace, approval_id)).approval)
            case "start":
                return handed_out(await self.start(approval_id, op))
        return of_approval(await self.change(approval_id, op))

    async def start(self, approval_id: str, op: Op) -> Stored:
        started = await self.parts.gate.start(self.workspace, approval_id, op.who, LEASE)
        stored = await self.parts.store.get(self.workspace, approval_id)
        return Stored(
            replace(stored.approval, lease=stored.approval.lease._replace(fence=started.fence)),
            Payload(args=started.args),
        )

    async def change(self, approval_id: str, op: Op) -> Approval:
        gate, inbox, place = self.parts.gate, self.parts.inbox, (self.workspace, approval_id)
        match op.name:
            case "undo":
                return await inbox.undo(*place, person(op.who))
            case "cancel":
                return await gate.cancel(*place, op.who)
            case "renew":
                return await gate.renew(*place, op.fence, LEASE)
            case "finish":
                return await gate.finish(*place, op.fence, ok=op.ok, payload=payload_of(op))
            case "abandon":
                return await gate.abandon(*place, op.fence)
            case "resolve":
                return await inbox.resolve_unknown(*place, person(op.who), ok=op.ok, note="I looked.")
            case "delegate":
                return await inbox.delegate(*place, People(frozenset({"vic"})), person(op.who))
        return await inbox.decide(*place, decision_of(op), person(op.who))

    def sweep(self) -> None:
        self.runner.run(self.parts.worker.sweep())

    def grant(self, grant: Grant, maker: str) -> None:
        self.runner.run(self.parts.inbox.grant(replace(grant, workspace=self.workspace), person(maker)))

    def revoke(self, grant_id: str) -> None:
        self.runner.run(self.parts.inbox.revoke(self.workspace, grant_id, person("ada")))

    def restart(self) -> None:
        """Another process: it knows what is stored, and nothing else."""
        self.close()
        self._open()
        self.runner.run(self.parts.put_policy(self.workspace, None, "", {}))

    def situation(self) -> Situation:
        page = self.runner.run(self.parts.inbox.list(self.workspace, ApprovalQuery(statuses=("pending",), limit=500)))
        counts = self.runner.run(self.parts.store.stats(self.workspace)).by_status
        waiting = frozenset(int(stored.approval.subject.call_id[1:]) for stored in page.items)
        return Situation(waiting, {status: n for status, n in counts.items() if n})

    def faults(self) -> list[str]:
        report = self.runner.run(verify(self.parts.store, self.workspace))
        return [fault.message for fault in report.violations]

    def close(self) -> None:
        self.runner.run(self.parts.store.close())


class Port(Doors):
    """The store alone: every change is a step of the core that it is given, without a door in between."""

    async def start(self, approval_id: str, op: Op) -> Stored:
        return await self.parts.store.transition_stored(self.workspace, approval_id, start_step(op))

    async def change(self, approval_id: str, op: Op) -> Approval:
        step = step_of(op, self.parts.gate.policy)
        return await self.parts.store.transition(self.workspace, approval_id, step)


def start_step(op: Op) -> StoredStep:
    return lambda stored, moment, _=(): execute.start(stored, op.who, LEASE, "", moment, runner_is_dead=False)


def step_of(op: Op, policy: Policy) -> ApprovalStep:
    who, payload = person(op.who), payload_of(op)
    steps: dict[str, ApprovalStep] = {
        "undo": lambda a, m: approvals.undo(a, who, m),
        "cancel": lambda a, m: approvals.cancel(a, op.who, "", m),
        "renew": lambda a, m: execute.renew(a, op.fence, LEASE, m),
        "finish": lambda a, m: execute.finish(a, op.fence, payload, m, ok=op.ok),
        "abandon": lambda a, m: execute.abandon(a, op.fence, m),
        "resolve": lambda a, m: approvals.resolve_unknown(a, "I looked.", who, None, m, ok=op.ok),
        "delegate": lambda a, m: approvals.delegate(a, People(frozenset({"vic"})), who, m),
    }
    decide: ApprovalStep = lambda a, m: approvals.decide(a, decision_of(op), who, m, prepared(a, op, policy))  # noqa: E731
    return steps.get(op.name, decide)


def prepared(approval: Approval, op: Op, policy: Policy) -> PreparedEdit | None:
    """As the inbox does it: the edited call is judged by the policy of now."""
    if op.name != "edit":
        return None
    call = call_of(approval.subject.workspace, TOOLS.index(approval.subject.tool), op.args)
    verdict = policy.judge(call, SPECS[call.tool])
    terms = verdict if isinstance(verdict, Ask) else approval.terms
    return PreparedEdit(
        replaces=approval.args_sha256,
        args=call.args,
        shown=None,
        args_sha256=digest(call.args),
        sentence="",
        alarms=(),
        terms=terms,
    )


class Core:
    """The rules alone, over rows in a dictionary and a ledger in a list."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.judge = clock, Policy()
        self.rows: dict[int, Stored] = {}
        self.grants: dict[str, Grant] = {}
        self.entries: list[Entry] = []
        self.head = Head("default")

    def policy(self, text: str) -> None:
        self.judge = load_policy(text, compile_condition, known_names((), PolicyChannelSettings()), {}).policy

    def perform(self, number: int, op: Op) -> Answer:
        try:
            return self._propose(number, op) if op.name == "propose" else self._perform(number, op)
        except Error as error:
            return of_error(error)

    def _perform(self, number: int, op: Op) -> Answer:
        stored = self.rows.get(number)
        if stored is None:
            raise NotFound("There is no such approval.")
        if op.name == "start":
            self._keep(number, start_step(op)(stored, Moment(self.clock())))
            return handed_out(self.rows[number])
        if op.name != "look":
            self._keep(number, step_of(op, self.judge)(stored.approval, Moment(self.clock())))
        return of_approval(self.rows[number].approval)

    def _propose(self, number: int, op: Op) -> Answer:
        call, moment = call_of("default", number, op.args), Moment(self.clock())
        spec = SPECS[call.tool]
        if number in self.rows:
            request.check_same_call(self.rows[number].approval, call)
            self._tick(number, lambda approval: approval.status == "pending")
        else:
            verdict = self.judge.judge(call, spec)
            shown = redact(call.args, spec, b"key")
            proposal = Proposal(f"id{number}", "nonce", call, spec, shown, spec.sentence(shown.value))
            if isinstance(verdict, Deny):
                return Answer("ok", "denied")
            self._born(number, proposal, verdict, moment)
        stored = self.rows[number]
        return of_outcome(approval_outcome(stored.approval, stored.payload, moment.now))

    def _born(self, number: int, proposal: Proposal, verdict: Allow | Ask, moment: Moment) -> None:
        if isinstance(verdict, Allow):
            change = request.allow(proposal, verdict, moment)
        else:
            change = self._asked(proposal, verdict, moment)
        self._tell(change)
        self.rows[number] = Stored(change.state, change.payload or Payload())

    def _asked(self, proposal: Proposal, terms: Ask, moment: Moment) -> Change[Approval]:
        for grant in self.grants.values():
            if covers(grant, proposal.call, proposal.spec, terms, compile_condition, moment.now):
                change = request.allow_by_grant(proposal, terms, grant, moment)
                self.grants[grant.id] = change.grant or grant
                return change
        return request.request_approval(proposal, terms, moment)

    def _keep(self, number: int, change: Change[Approval]) -> None:
        self._tell(change)
        kept, new = self.rows[number].payload, change.payload
        if new is not None:
            kept = Payload(new.args or kept.args, result=new.result, error=new.error)
        self.rows[number] = Stored(change.state, kept)
        if change.error is not None:
            raise change.error

    def _tell(self, change: Change[Any]) -> None:
        for event in change.events:
            entry = make_entry(event, self.head, self.clock(), b"salt")
            self.head = Head("default", entry.seq, entry.link, entry.at)
            self.entries.append(entry)

    def _tick(self, number: int, wanted: Callable[[Approval], bool]) -> None:
        while wanted(self.rows[number].approval):
            change = fire_next_timer(self.rows[number].approval, Moment(self.clock()))
            if not change.events:
                return
            self._keep(number, change)

    def sweep(self) -> None:
        for number in self.rows:
            self._tick(number, lambda _: True)

    def grant(self, grant: Grant, maker: str) -> None:
        change = make(grant, person(maker), Moment(self.clock()))
        self._tell(change)
        self.grants[grant.id] = change.state

    def revoke(self, grant_id: str) -> None:
        change = revoke(self.grants[grant_id], person("ada"), Moment(self.clock()))
        self._tell(change)
        self.grants[grant_id] = change.state

    def restart(self) -> None:
        """It has nothing to lose."""

    def situation(self) -> Situation:
        statuses = {number: stored.approval.status for number, stored in self.rows.items()}
        counts = {status: list(statuses.values()).count(status) for status in statuses.values()}
        return Situation(frozenset(n for n, status in statuses.items() if status == "pending"), counts)

    def faults(self) -> list[str]:
        verifier = Verifier("default", self.head)
        verifier.feed(self.entries)
        verifier.finish(self.head)
        return [fault.message for fault in verifier.violations]

    def close(self) -> None:
        """It has nothing open."""

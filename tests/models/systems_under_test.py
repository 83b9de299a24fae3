"""Systems that the model is compared with: the core, the store and the services.

All three hold the same data: one workspace, a few calls, people who may decide and one who may not.
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
from tests.faults.histories import answer_from_approval, answer_from_error, answer_from_outcome, short_digest
from tests.models.model import ModelAnswer, Operation
from tests.support import Clock

TOOLS = ("send", "pay", "put", "note", "post", "wipe")
SPECS = {name: ToolSpec(name, "write", idempotent=name == "put") for name in TOOLS}
PEOPLE = {each.name: each for each in (Reviewer("ann"), Reviewer("bob"), Reviewer("ada", "admin"))}
VIEWER = Reviewer("vic", "viewer")
LEASE = 10_000


class Snapshot(NamedTuple):
    """What is looked at after every step: who waits, and how many have which status."""

    pending: frozenset[int]
    counts: Mapping[str, int]


class SystemUnderTest(Protocol):
    def policy(self, text: str) -> None: ...
    def perform(self, number: int, op: Operation) -> ModelAnswer: ...
    def sweep(self) -> None: ...
    def grant(self, grant: Grant, maker: str) -> None: ...
    def revoke(self, grant_id: str) -> None: ...
    def restart(self) -> None: ...
    def snapshot(self) -> Snapshot: ...
    def violations(self) -> list[str]: ...
    def close(self) -> None: ...


def spec_for(number: int) -> ToolSpec:
    return SPECS[TOOLS[number % len(TOOLS)]]


def call_for(workspace: str, number: int, args: str) -> ToolCall:
    return propose(spec_for(number).name, {"path": args}, "run", f"c{number}", workspace=workspace, requester="rita")


def args_digest(args: str) -> str:
    """The digest of arguments that the model knows by name."""
    return digest(propose("t", {"path": args}, "r", "c").args)


def person(name: str) -> Reviewer:
    return PEOPLE.get(name, VIEWER)


def decision_for(op: Operation) -> Decision:
    seen = Acknowledgement(None if op.acknowledged_args is None else args_digest(op.acknowledged_args))
    match op.name:
        case "approve":
            return Approve(seen)
        case "edit":
            return Edit({"path": op.args}, seen)
        case "respond":
            return Respond("Later.", None, seen)
    return Reject("No.", seen)


def payload_for(op: Operation) -> Payload:
    return Payload(result=b"1") if op.ok else Payload(error="no")


def execution_answer(stored: Stored) -> ModelAnswer:
    """What a runner gets: the bytes that it is to run, and its fence."""
    return ModelAnswer("ok", args=short_digest(digest(stored.payload.args or b"")), fence=stored.approval.lease.fence)


class ServicesSystem:
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

    def perform(self, number: int, op: Operation) -> ModelAnswer:
        try:
            return self.runner.run(self._perform(number, op))
        except Error as error:
            return answer_from_error(error)

    async def _perform(self, number: int, op: Operation) -> ModelAnswer:
        approval_id = self.ids.get(number, "nobody-knows")
        match op.name:
            case "propose":
                outcome = await self.parts.gate.check(call_for(self.workspace, number, op.args), spec_for(number))
                self.ids[number] = getattr(outcome, "approval_id", "") or approval_id
                return answer_from_outcome(outcome)
            case "look":
                return answer_from_approval((await self.parts.store.get(self.workspace, approval_id)).approval)
            case "start":
                return execution_answer(await self.start(approval_id, op))
        return answer_from_approval(await self.change(approval_id, op))

    async def start(self, approval_id: str, op: Operation) -> Stored:
        started = await self.parts.gate.start(self.workspace, approval_id, op.actor, LEASE)
        stored = await self.parts.store.get(self.workspace, approval_id)
        return Stored(
            replace(stored.approval, lease=stored.approval.lease._replace(fence=started.fence)),
            Payload(args=started.args),
        )

    async def change(self, approval_id: str, op: Operation) -> Approval:
        gate, inbox, place = self.parts.gate, self.parts.inbox, (self.workspace, approval_id)
        match op.name:
            case "undo":
                return await inbox.undo(*place, person(op.actor))
            case "cancel":
                return await gate.cancel(*place, op.actor)
            case "renew":
                return await gate.renew(*place, op.fence, LEASE)
            case "finish":
                return await gate.finish(*place, op.fence, ok=op.ok, payload=payload_for(op))
            case "abandon":
                return await gate.abandon(*place, op.fence)
            case "resolve":
                return await inbox.resolve_unknown(*place, person(op.actor), ok=op.ok, note="I looked.")
            case "delegate":
                return await inbox.delegate(*place, People(frozenset({"vic"})), person(op.actor))
        return await inbox.decide(*place, decision_for(op), person(op.actor))

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

    def snapshot(self) -> Snapshot:
        page = self.runner.run(self.parts.inbox.list(self.workspace, ApprovalQuery(statuses=("pending",), limit=500)))
        counts = self.runner.run(self.parts.store.stats(self.workspace)).by_status
        waiting = frozenset(int(stored.approval.subject.call_id[1:]) for stored in page.items)
        return Snapshot(waiting, {status: n for status, n in counts.items() if n})

    def violations(self) -> list[str]:
        report = self.runner.run(verify(self.parts.store, self.workspace))
        return [fault.message for fault in report.violations]

    def close(self) -> None:
        self.runner.run(self.parts.store.close())


class StoreSystem(ServicesSystem):
    """The store alone: every change is a step of the core, without a service in between."""

    async def start(self, approval_id: str, op: Operation) -> Stored:
        return await self.parts.store.transition_stored(self.workspace, approval_id, start_step(op))

    async def change(self, approval_id: str, op: Operation) -> Approval:
        step = approval_step(op, self.parts.gate.policy)
        return await self.parts.store.transition(self.workspace, approval_id, step)


def start_step(op: Operation) -> StoredStep:
    return lambda stored, moment, _=(): execute.start(stored, op.actor, LEASE, "", moment, runner_is_dead=False)


def approval_step(op: Operation, policy: Policy) -> ApprovalStep:
    who, payload = person(op.actor), payload_for(op)
    steps: dict[str, ApprovalStep] = {
        "undo": lambda a, m: approvals.undo(a, who, m),
        "cancel": lambda a, m: approvals.cancel(a, op.actor, "", m),
        "renew": lambda a, m: execute.renew(a, op.fence, LEASE, m),
        "finish": lambda a, m: execute.finish(a, op.fence, payload, m, ok=op.ok),
        "abandon": lambda a, m: execute.abandon(a, op.fence, m),
        "resolve": lambda a, m: approvals.resolve_unknown(a, "I looked.", who, None, m, ok=op.ok),
        "delegate": lambda a, m: approvals.delegate(a, People(frozenset({"vic"})), who, m),
    }
    decide: ApprovalStep = lambda a, m: approvals.decide(a, decision_for(op), who, m, prepare_edit(a, op, policy))  # noqa: E731
    return steps.get(op.name, decide)


def prepare_edit(approval: Approval, op: Operation, policy: Policy) -> PreparedEdit | None:
    """As the inbox does it: the current policy judges the edited call."""
    if op.name != "edit":
        return None
    call = call_for(approval.subject.workspace, TOOLS.index(approval.subject.tool), op.args)
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


class CoreSystem:
    """The rules alone, over rows in a dictionary and a ledger in a list."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.judge = clock, Policy()
        self.rows: dict[int, Stored] = {}
        self.grants: dict[str, Grant] = {}
        self.entries: list[Entry] = []
        self.head = Head("default")

    def policy(self, text: str) -> None:
        self.judge = load_policy(text, compile_condition, known_names((), PolicyChannelSettings()), {}).policy

    def perform(self, number: int, op: Operation) -> ModelAnswer:
        try:
            return self._propose(number, op) if op.name == "propose" else self._perform(number, op)
        except Error as error:
            return answer_from_error(error)

    def _perform(self, number: int, op: Operation) -> ModelAnswer:
        stored = self.rows.get(number)
        if stored is None:
            raise NotFound("There is no such approval.")
        if op.name == "start":
            self._keep(number, start_step(op)(stored, Moment(self.clock())))
            return execution_answer(self.rows[number])
        if op.name != "look":
            self._keep(number, approval_step(op, self.judge)(stored.approval, Moment(self.clock())))
        return answer_from_approval(self.rows[number].approval)

    def _propose(self, number: int, op: Operation) -> ModelAnswer:
        call, moment = call_for("default", number, op.args), Moment(self.clock())
        spec = SPECS[call.tool]
        if number in self.rows:
            request.check_same_call(self.rows[number].approval, call)
            self._tick(number, lambda approval: approval.status == "pending")
        else:
            verdict = self.judge.judge(call, spec)
            shown = redact(call.args, spec, b"key")
            proposal = Proposal(f"id{number}", "nonce", call, spec, shown, spec.sentence(shown.value))
            if isinstance(verdict, Deny):
                return ModelAnswer("ok", "denied")
            self._born(number, proposal, verdict, moment)
        stored = self.rows[number]
        return answer_from_outcome(approval_outcome(stored.approval, stored.payload, moment.now))

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

    def snapshot(self) -> Snapshot:
        statuses = {number: stored.approval.status for number, stored in self.rows.items()}
        counts = {status: list(statuses.values()).count(status) for status in statuses.values()}
        return Snapshot(frozenset(n for n, status in statuses.items() if status == "pending"), counts)

    def violations(self) -> list[str]:
        verifier = Verifier("default", self.head)
        verifier.feed(self.entries)
        verifier.finish(self.head)
        return [fault.message for fault in verifier.violations]

    def close(self) -> None:
        """It has nothing open."""

"""Batch items for approvals, runs, grants, policies, agents and pins: read, run a step, write what changed.

Those of a call's way from its proposal to its end are partial functions, not closures: hundreds of them wait at a time,
and a closure has a cell for each name, which is made and looked through by the garbage collector.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from functools import lru_cache, partial
from typing import NamedTuple

from interlock.core import freeze
from interlock.core.approval.approval import Approval, cancel
from interlock.core.approval.propose import check_same_call, id_taken_error
from interlock.core.approval.timers import next_timer_at
from interlock.core.call import ToolSpec
from interlock.core.canonical import digest
from interlock.core.card import escape_invisible
from interlock.core.chat.thread import is_thread_id
from interlock.core.decision import Reviewer
from interlock.core.errors import Conflict, NotFound, Stale
from interlock.core.freeze import Freeze
from interlock.core.grant import Grant
from interlock.core.identity import lesser_role
from interlock.core.ledger.event import SYSTEM_ACTOR, Change, Event, Moment, Payload, Stored
from interlock.core.ledger.expected_tables import user_changed_event
from interlock.core.pins import Pin, Pins, check_pin_limit, check_pin_name
from interlock.core.ports import (
    AGENT_DELETED_REASON,
    DELETED_AGENT_BODY,
    RESTORED_AGENT_BODY,
    AgentDeletion,
    AgentsChanged,
    AgentVersion,
    ApprovalStep,
    GrantFactory,
    GrantStep,
    PolicySource,
    PolicyVersion,
    ProposalTransaction,
    ReviewerStep,
    RunStep,
    StartConditions,
    StoredStep,
    Trace,
    User,
)
from interlock.core.removal import UpdatedMember, withdraw_participation
from interlock.core.run import Run
from interlock.runtime.durations import MINUTE
from interlock.storage.engine import rows
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import BatchItem, NamedRead
from interlock.storage.tables.threads import check_lease

SNOOZE_DELAY = 10 * MINUTE  # until the timer of a frozen approval is checked again; releasing the freeze checks at once


class NewPolicy(NamedTuple):
    sha256: str
    body: str
    author: str
    reason: str
    source: PolicySource = "person"
    trace: Trace | None = None


def begin(transaction: ProposalTransaction, now: int) -> BatchItem:
    """Propose a call. `now` need not be exact: it only keeps grants that ended long ago out of the look-up."""
    proposal, call, workspace = transaction.proposal, transaction.proposal.call, transaction.proposal.call.workspace
    grants = _grants_read(workspace, call.tool, _previous_minute(now))
    by_call = ("approval_by_call", workspace, call.run_id, call.call_id)
    by_id = (("approval", workspace, proposal.id),) if proposal.has_caller_id else ()
    thread = (("thread", workspace, call.run_id),) if transaction.fence is not None else ()
    reads = (by_call, grants, *_start_reads(workspace), *by_id, *thread)
    return BatchItem(partial(_begin, transaction, grants), workspace, reads)


def _begin(transaction: ProposalTransaction, grants: NamedRead, tx: Transaction) -> Stored:
    proposal, call, workspace = transaction.proposal, transaction.proposal.call, transaction.proposal.call.workspace
    given = proposal.id if proposal.has_caller_id else ""
    known = tx.find_by_call(workspace, call.run_id, call.call_id)
    if known is not None:
        check_same_call(known.approval, call, given)
        return known
    if given and tx.has_approval(workspace, given):
        raise id_taken_error()
    if transaction.fence is not None:
        check_lease(tx, workspace, call.run_id, transaction.fence)
    change = transaction.step(tx.moment(workspace), partial(tx.grants, *grants[1:]))
    tx.cache_start_conditions(workspace)
    tx.insert(change, proposal.spec)
    return Stored(change.state, change.payload or Payload())


def deny(workspace: str, events: Sequence[Event], spec: ToolSpec) -> BatchItem:
    def run(tx: Transaction) -> None:
        tx.store_spec(spec)
        tx.append_events(workspace, events)

    return BatchItem(run, workspace)


def transition(workspace: str, approval_id: str, step: ApprovalStep) -> BatchItem:
    """Run a step. If a freeze defers a deadline, the step sees the new one, which is only written with a change."""
    reads = (("approval", workspace, approval_id), _freezes_read(workspace))
    return BatchItem(partial(_transition, workspace, approval_id, step), workspace, reads)


def _transition(workspace: str, approval_id: str, step: ApprovalStep, tx: Transaction) -> object:
    approval, moment = tx.approval(workspace, approval_id), tx.moment(workspace)
    freezes = tx.freezes(workspace)
    seen = _defer_deadlines(approval, freezes, moment) if freezes else None
    change = step(approval if seen is None else seen.state, moment)
    _write_change(tx, approval, seen, change)
    return change.error or change.state


def transition_by(workspace: str, approval_id: str, by: Reviewer, step: ReviewerStep) -> BatchItem:
    reads = (("approval", workspace, approval_id), _freezes_read(workspace), ("user", workspace, by.name))
    return BatchItem(partial(_transition_by, workspace, approval_id, by, step), workspace, reads)


def _transition_by(workspace: str, approval_id: str, by: Reviewer, step: ReviewerStep, tx: Transaction) -> object:
    approval, moment = tx.approval(workspace, approval_id), tx.moment(workspace)
    freezes = tx.freezes(workspace)
    seen = _defer_deadlines(approval, freezes, moment) if freezes else None
    change = step(approval if seen is None else seen.state, moment, current_reviewer(tx, workspace, by))
    if approval.status == "rejected" and change.state.status == "pending":
        change = _withdraw_lost_rights(tx, workspace, change)
    _write_change(tx, approval, seen, change)
    return change.error or change.state


def _withdraw_lost_rights(tx: Transaction, workspace: str, change: Change[Approval]) -> Change[Approval]:
    """After an undo, remove votes and delegations of people who lost the right to them in the meantime."""
    state = change.state
    names = {name for vote in state.votes for name in (vote.by, vote.on_behalf_of)} | {state.discussion.claimed_by} - {
        ""
    }
    for delegation in state.delegations:
        names |= {delegation.by, *delegation.to.users}
    for name in sorted(names):
        member = _updated_member(name, tx.user(workspace, name))
        withdrawn = None if member is None else withdraw_participation(change.state, member, SYSTEM_ACTOR)
        if withdrawn is not None:
            state = replace(withdrawn.state, version=change.state.version)  # one write, one version
            change = change._replace(state=state, events=change.events + withdrawn.events)
    return change


def current_reviewer(tx: Transaction, workspace: str, reviewer: Reviewer) -> Reviewer:
    """Return the reviewer's rights as of this transaction; somebody removed meanwhile can only view.

    A reviewer with a credential has at most their current role and teams; a program with direct database access is
    trusted.
    """
    user = tx.user(workspace, reviewer.name)
    covers = reviewer.delegations_to_me and tuple(
        each for each in reviewer.delegations_to_me if not _is_gone(tx.user(workspace, each.by))
    )
    if user is None:
        return reviewer if covers == reviewer.delegations_to_me else replace(reviewer, delegations_to_me=covers)
    if user.removed_at is not None:
        return replace(reviewer, role=lesser_role(reviewer.role, "viewer"), teams=frozenset(), delegations_to_me=())
    if not reviewer.credential:
        return reviewer if covers == reviewer.delegations_to_me else replace(reviewer, delegations_to_me=covers)
    role, teams = lesser_role(reviewer.role, user.role), reviewer.teams & user.teams
    return replace(reviewer, role=role, teams=teams, delegations_to_me=covers)


def transition_stored(workspace: str, approval_id: str, step: StoredStep) -> BatchItem:
    """Run a step as in `transition`; it also gets what can stop a start, read after the lock under which it changes."""
    reads = (("stored", workspace, approval_id), *_start_reads(workspace))
    return BatchItem(partial(_transition_stored, workspace, approval_id, step), workspace, reads)


def _transition_stored(workspace: str, approval_id: str, step: StoredStep, tx: Transaction) -> object:
    stored, moment = tx.stored(workspace, approval_id), tx.moment(workspace)
    conditions = _read_start_conditions(tx, workspace)
    seen = _defer_deadlines(stored.approval, conditions.freezes, moment) if conditions.freezes else None
    change = step(stored if seen is None else Stored(seen.state, stored.payload), moment, conditions)
    _write_change(tx, stored.approval, seen, change)
    return change.error or Stored(change.state, stored.payload)


def _read_start_conditions(tx: Transaction, workspace: str) -> StartConditions:
    """Read what can stop a start."""
    return StartConditions(tx.freezes(workspace), tx.policy_revision(workspace))


# Look-ups that most calls of a workspace share.


@lru_cache(maxsize=1_000)
def _start_reads(workspace: str) -> tuple[NamedRead, NamedRead]:
    return _freezes_read(workspace), ("policy_revision", workspace, workspace)


@lru_cache(maxsize=1_000)
def _freezes_read(workspace: str) -> NamedRead:
    return ("freezes", workspace)


@lru_cache(maxsize=1_000)
def _grants_read(workspace: str, tool: str, since: str) -> NamedRead:
    return ("usable_grants_of_tool", workspace, tool, since)


def _defer_deadlines(approval: Approval, freezes: Sequence[Freeze], moment: Moment) -> Change[Approval] | None:
    """Return the approval with deferred deadlines, or None if no freeze defers them."""
    deferred = freeze.defer_deadlines(approval, freezes, moment)
    return deferred if deferred.events else None


def _write_change(
    tx: Transaction, approval: Approval, deferred: Change[Approval] | None, change: Change[Approval]
) -> None:
    """Write a deferred deadline together with a change; without a change, snooze the timer of a frozen approval."""
    if deferred is None:
        tx.update(approval, change)
    elif change.state is not deferred.state:
        tx.update(approval, deferred)
        tx.update(deferred.state, change)
    else:
        tx.update(approval, change._replace(state=approval))
        workspace, now = approval.subject.workspace, tx.moment(approval.subject.workspace).now
        if (next_timer_at(approval) or now + 1) <= now:
            tx.write("snooze_approval", now + SNOOZE_DELAY, workspace, approval.id)


def add_run(workspace: str, new: Callable[[Moment], Change[Run]]) -> BatchItem:
    return BatchItem(lambda tx: _save_run(tx, workspace, new(tx.moment(workspace))), workspace)


def step_run(workspace: str, run_id: str, step: RunStep) -> BatchItem:
    def run(tx: Transaction) -> Run:
        return _save_run(tx, workspace, step(tx.run(workspace, run_id), tx.moment(workspace)))

    return BatchItem(run, workspace, (("run", workspace, run_id),))


def add_grant(workspace: str, maker: Reviewer, new: GrantFactory) -> BatchItem:
    def run(tx: Transaction) -> Grant:
        change = new(tx.moment(workspace), current_reviewer(tx, workspace, maker))
        if tx.has_grant(workspace, change.state.id):  # writing it again would revive a revoked one
            raise Conflict("A grant with this id already exists. Use another id.", grant_id=change.state.id)
        return _save_grant(tx, workspace, change)

    return BatchItem(run, workspace)


def step_grant(workspace: str, grant_id: str, step: GrantStep) -> BatchItem:
    def run(tx: Transaction) -> Grant:
        return _save_grant(tx, workspace, step(tx.grant(workspace, grant_id), tx.moment(workspace)))

    return BatchItem(run, workspace, (("grant", workspace, grant_id),))


def put_policy(
    workspace: str, new_policy: NewPolicy, expected_version: int | None = None, *, reapply: bool = True
) -> BatchItem:
    """Put a policy in force. Without `reapply`, a policy that was in force before changes nothing."""

    def run(tx: Transaction) -> PolicyVersion:
        tx.require_own_batch(f"policy of {workspace}")
        found = tx.fetch("policy", workspace)
        last = rows.read_policy(found[0]) if found else None
        _check_version(last.version if last else 0, expected_version)
        if last is not None and (
            last.sha256 == new_policy.sha256 or not (reapply or _is_new_policy(tx, workspace, new_policy))
        ):
            return last
        number = last.version + 1 if last else 1
        now = tx.moment(workspace).now
        version = PolicyVersion(
            number,
            sha256=new_policy.sha256,
            body=new_policy.body,
            author=new_policy.author,
            at=now,
            reason=new_policy.reason,
            source=new_policy.source,
        )
        tx.set_policy_revision(workspace, tx.policy_revision(workspace)._replace(policy=number))
        tx.write("insert_policy", workspace, *astuple(version))
        content = {**({"reason": new_policy.reason} if new_policy.reason else {}), **(new_policy.trace or {})} or None
        data = {
            "version": number,
            "policy": new_policy.sha256,
            **({"source": new_policy.source} if new_policy.source == "file" else {}),
        }
        tx.append_events(workspace, [Event("policy_changed", new_policy.author, data, "", content)])
        return version

    return BatchItem(run, workspace)


def _is_new_policy(tx: Transaction, workspace: str, new_policy: NewPolicy) -> bool:
    return not tx.fetch("known_policy", workspace, new_policy.sha256)


class ExpectedAgents(NamedTuple):
    """What a change of an agent was checked against: the agent's version, and the revision of all; None is any."""

    version: int | None = None
    revision: int | None = None


def put_agent(workspace: str, name: str, body: str, author: str, reason: str, expected: ExpectedAgents) -> BatchItem:
    def run(tx: Transaction) -> AgentVersion:
        tx.require_own_batch(f"agents of {workspace}")
        found = tx.fetch("agent", workspace, name)
        last = AgentVersion(*found[0]) if found else None
        _check_agents(tx, workspace, last.version if last and last.has_settings else 0, expected)
        if last is not None and last.body == body:
            return last
        new = AgentVersion(name, last.version + 1 if last else 1, body, author, tx.moment(workspace).now)
        content = {"body": json.loads(body), **({"reason": reason} if reason else {})}
        _write_agent(tx, workspace, new, Event("agent_changed", author, {}, "", content))
        return new

    return BatchItem(run, workspace)


def delete_agent(
    workspace: str, name: str, effect: AgentDeletion, author: str, reason: str, expected: ExpectedAgents
) -> BatchItem:
    """Delete the stored settings, and cancel calls that have not started, if the agent leaves the chat."""

    def run(tx: Transaction) -> list[str]:
        tx.require_own_batch(f"agents of {workspace}")
        last = next((AgentVersion(*row) for row in tx.fetch("agent", workspace, name)), None)
        if last is None or not last.has_settings:
            raise NotFound("No settings of this agent are stored.", agent=name)
        _check_agents(tx, workspace, last.version, expected)
        now = tx.moment(workspace)
        open_calls = _open_thread_calls(tx, workspace, name) if effect.withdraws_calls else []
        changes = [
            (each, cancel(each, author, AGENT_DELETED_REASON, now)) for each in open_calls
        ]  # may raise: before writes
        body = RESTORED_AGENT_BODY if effect.remains else DELETED_AGENT_BODY
        new = AgentVersion(name, last.version + 1, body, author, now.now)
        content = {"reason": reason} if reason else None
        restored = {"restored": True} if effect.remains else {}
        _write_agent(tx, workspace, new, Event("agent_deleted", author, restored, "", content))
        for approval, change in changes:
            tx.update(approval, change)
        return [approval.id for approval, _ in changes]

    return BatchItem(run, workspace, is_short=False)


def _check_agents(tx: Transaction, workspace: str, version: int, expected: ExpectedAgents) -> None:
    _check_version(version, expected.version)
    if expected.revision not in (None, tx.policy_revision(workspace).agents):
        raise AgentsChanged("Other agents were changed at the same time. Try again.")


def _write_agent(tx: Transaction, workspace: str, new: AgentVersion, event: Event) -> None:
    revision = tx.policy_revision(workspace)
    tx.set_policy_revision(workspace, revision._replace(agents=revision.agents + 1))
    tx.write("write_agent", workspace, *astuple(new))
    data = {"agent": new.name, "version": new.version, "body": digest(new.body.encode()), **event.data}
    tx.append_events(workspace, [event._replace(data=data)])


def _open_thread_calls(tx: Transaction, workspace: str, agent: str) -> list[Approval]:
    """Return calls of chat threads that have not started, of this agent or of a sub-agent that it called."""
    ids = [row[0] for row in tx.fetch("open_thread_approvals", workspace, workspace) if is_of_agent(row, agent)]
    found = [tx.approval(workspace, approval_id) for approval_id in ids]
    return [approval for approval in found if approval.status in ("pending", "approved")]


def is_of_agent(row: rows.Row, agent: str) -> bool:
    """Whether a row of `open_thread_approvals` is of a chat thread of this agent, or of one that it called."""
    _, run_id, own, path = row
    return is_thread_id(run_id) and (agent == own or (bool(path) and agent in json.loads(path)))


def pin_tools(workspace: str, specs: Sequence[ToolSpec], agent: str, author: str) -> BatchItem:
    """Pin all tools or none. One that is pinned with the same definition is left unchanged."""

    def run(tx: Transaction) -> list[Pin]:
        tx.require_own_batch(f"pins of {workspace}")
        now, pins = tx.moment(workspace).now, Pins(tuple(map(rows.read_pin, tx.fetch("pins", workspace))))
        check_pin_limit(pins, len({spec.name for spec in specs} - pins.by_name.keys()))
        wanted = pins
        for spec in specs:  # before anything is buffered: a step that raises must leave no trace
            check_pin_name(wanted, spec.name)
            wanted = Pins((*wanted.items, Pin(spec.name, spec.definition, agent, author, now)))
        made = []
        for spec in specs:
            known = pins.by_name.get(spec.name)
            if known is not None and known.definition == spec.definition:
                made.append(known)
                continue
            pin = Pin(spec.name, spec.definition, agent, author, now)
            tx.store_spec(spec)
            tx.write("write_pin", workspace, *astuple(pin))
            data = {
                "tool": escape_invisible(spec.name),
                "effect": spec.effect,
                "spec": spec.sha256,
                "agent": escape_invisible(agent),
            }
            tx.append_events(workspace, [Event("tool_pinned", author, data)])
            made.append(pin)
        return made

    return BatchItem(run, workspace)


def unpin_tool(workspace: str, tool: str, author: str) -> BatchItem:
    def run(tx: Transaction) -> Pin:
        tx.require_own_batch(f"pins of {workspace}")
        pin = next((pin for pin in map(rows.read_pin, tx.fetch("pins", workspace)) if pin.tool == tool), None)
        if pin is None:
            raise NotFound("No tool of this name is pinned.", tool=tool)
        tx.write("drop_pin", workspace, tool)
        data = {"tool": escape_invisible(tool), "spec": pin.spec.sha256}
        tx.append_events(workspace, [Event("tool_unpinned", author, data)])
        return pin

    return BatchItem(run, workspace)


def put_user(workspace: str, user: User, author: str) -> BatchItem:
    def run(tx: Transaction) -> User:
        tx.require_own_batch(f"people of {workspace}")
        tx.save_user(workspace, user)
        tx.append_events(workspace, [user_changed_event(user, author)])
        return user

    return BatchItem(run, workspace)


def add_workspace(workspace: str, key: bytes, at: int) -> BatchItem:
    return BatchItem(lambda tx: tx.write("insert_workspace", workspace, key, at), workspace)


def _updated_member(name: str, user: User | None) -> UpdatedMember | None:
    """Return a member's current rights; None without an account, for a name that a program with the database used."""
    if user is None:
        return None
    return UpdatedMember(name) if _is_gone(user) else UpdatedMember(name, user.role, user.teams)


def _is_gone(user: User | None) -> bool:
    return user is not None and user.removed_at is not None


def _check_version(version: int, expected: int | None) -> None:
    if expected is not None and expected != version:
        raise Stale("It was changed in the meantime. Reload it, then change the current version.", version=version)


def _previous_minute(now: int) -> str:
    """Return the start of the previous minute: rounded, so that the look-ups of a batch are the same."""
    return str((now // MINUTE - 1) * MINUTE)


def _save_run(tx: Transaction, workspace: str, change: Change[Run]) -> Run:
    tx.save_run(workspace, change)
    return change.state


def _save_grant(tx: Transaction, workspace: str, change: Change[Grant]) -> Grant:
    tx.save_grant(workspace, change)
    return change.state

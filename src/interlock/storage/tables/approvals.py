"""The pieces of work that the store hands to a transaction: read, step, write what changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from typing import NamedTuple

from interlock.core import freeze
from interlock.core.approval.approval import Approval
from interlock.core.approval.propose import id_taken, same_call
from interlock.core.approval.timers import due_at
from interlock.core.call import ToolSpec
from interlock.core.canonical import digest
from interlock.core.card import visible
from interlock.core.decision import Reviewer
from interlock.core.errors import Conflict, NotFound, Stale
from interlock.core.freeze import Freeze
from interlock.core.grant import Grant
from interlock.core.identity import lesser
from interlock.core.ledger.event import TIME, Change, Event, Moment, Payload, Stored
from interlock.core.ledger.expected_tables import user_changed
from interlock.core.pins import Pin, Pins, check_name, check_room
from interlock.core.ports import (
    AgentVersion,
    Begin,
    GrantMaking,
    GrantStep,
    PolicySource,
    PolicyVersion,
    ReviewerStep,
    RunStep,
    Step,
    StoredStep,
    Trace,
    User,
)
from interlock.core.removal import Standing, withdraw
from interlock.core.run import Run
from interlock.storage.engine import rows
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import Work
from interlock.storage.tables.threads import check_held

MINUTE = 60_000
SNOOZE = 10 * MINUTE  # until time looks again at what a freeze holds up; its release looks at once


class NewPolicy(NamedTuple):
    sha256: str
    body: str
    author: str
    reason: str
    source: PolicySource = "person"
    trace: Trace | None = None


def begin(begin: Begin, now: int) -> Work:
    """`now` need not be exact: it only keeps grants that ended long ago out of the look-up."""
    proposal, call = begin.proposal, begin.proposal.call
    given = proposal.id if proposal.given else ""
    grants = ("usable_grants_of_tool", call.workspace, call.tool, _a_while_before(now))

    def run(tx: Transaction) -> Stored:
        known = tx.by_call(call.workspace, call.run_id, call.call_id)
        if known is not None:
            same_call(known.approval, call, given)
            return known
        if given and tx.has_approval(call.workspace, given):
            raise id_taken()
        if begin.fence is not None:
            check_held(tx, call.workspace, call.run_id, begin.fence)
        change = begin.step(tx.moment(call.workspace), lambda: tx.grants(*grants[1:]))
        tx.freezes(call.workspace)
        tx.insert(change, proposal.spec)
        return Stored(change.state, change.payload or Payload())

    by_call = ("approval_by_call", call.workspace, call.run_id, call.call_id)
    by_id = (("approval", call.workspace, given),) if given else ()
    freezes = ("freezes", call.workspace)  # known from then on, so that a start need not ask
    thread = (("thread", call.workspace, call.run_id),) if begin.fence is not None else ()
    return Work(run, call.workspace, (by_call, grants, freezes, *by_id, *thread))


def deny(workspace: str, events: Sequence[Event], spec: ToolSpec) -> Work:
    def run(tx: Transaction) -> None:
        tx.keep_spec(spec)
        tx.tell(workspace, events)

    return Work(run, workspace)


def transition(workspace: str, approval_id: str, step: Step) -> Work:
    """While a freeze holds up a deadline, the step sees it moved; what the step leaves as it is, is not written."""

    def run(tx: Transaction) -> object:
        approval, moment = tx.approval(workspace, approval_id), tx.moment(workspace)
        freezes = tx.freezes(workspace)
        seen = _deferred(approval, freezes, moment) if freezes else None
        change = step(approval if seen is None else seen.state, moment)
        _write(tx, approval, seen, change)
        return change.error or change.state

    return Work(run, workspace, (("approval", workspace, approval_id), ("freezes", workspace)))


def transition_by(workspace: str, approval_id: str, by: Reviewer, step: ReviewerStep) -> Work:
    def run(tx: Transaction) -> object:
        approval, moment = tx.approval(workspace, approval_id), tx.moment(workspace)
        freezes = tx.freezes(workspace)
        seen = _deferred(approval, freezes, moment) if freezes else None
        change = step(approval if seen is None else seen.state, moment, reviewer_now(tx, workspace, by))
        if approval.status == "rejected" and change.state.status == "pending":
            change = _without_leavers(tx, workspace, change)
        _write(tx, approval, seen, change)
        return change.error or change.state

    reads = (("approval", workspace, approval_id), ("freezes", workspace), ("user", workspace, by.name))
    return Work(run, workspace, reads)


def _without_leavers(tx: Transaction, workspace: str, change: Change[Approval]) -> Change[Approval]:
    """What a rejection is taken back to: nobody has more in it than they may now, as if it had been pending."""
    state = change.state
    names = {name for vote in state.votes for name in (vote.by, vote.seat)} | {state.claimed_by} - {""}
    for delegation in state.delegations:
        names |= {delegation.by, *delegation.to.users}
    for name in sorted(names):
        standing = _standing(name, tx.user(workspace, name))
        fewer = None if standing is None else withdraw(change.state, standing, TIME)
        if fewer is not None:
            state = replace(fewer.state, version=change.state.version)  # one write, one version
            change = change._replace(state=state, events=change.events + fewer.events)
    return change


def reviewer_now(tx: Transaction, workspace: str, reviewer: Reviewer) -> Reviewer:
    """As they are inside the transaction: somebody who was removed since they came may look, and no more.

    Those who proved who they are have the role and the teams of now at most; a program with the database says itself.
    """
    user = tx.user(workspace, reviewer.name)
    covers = reviewer.covers and tuple(each for each in reviewer.covers if not _is_gone(tx.user(workspace, each.by)))
    if user is None:
        return reviewer if covers == reviewer.covers else replace(reviewer, covers=covers)
    if user.removed_at is not None:
        return replace(reviewer, role=lesser(reviewer.role, "viewer"), teams=frozenset(), covers=())
    if not reviewer.credential:
        return reviewer if covers == reviewer.covers else replace(reviewer, covers=covers)
    role, teams = lesser(reviewer.role, user.role), reviewer.teams & user.teams
    return replace(reviewer, role=role, teams=teams, covers=covers)


def transition_stored(workspace: str, approval_id: str, step: StoredStep) -> Work:
    """As `transition`; the step also gets the freezes, read after the lock under which they are made."""

    def run(tx: Transaction) -> object:
        stored, moment, freezes = tx.stored(workspace, approval_id), tx.moment(workspace), tx.freezes(workspace)
        seen = _deferred(stored.approval, freezes, moment) if freezes else None
        change = step(stored if seen is None else Stored(seen.state, stored.payload), moment, freezes)
        _write(tx, stored.approval, seen, change)
        return change.error or Stored(change.state, stored.payload)

    return Work(run, workspace, (("stored", workspace, approval_id), ("freezes", workspace)))


def _deferred(approval: Approval, freezes: Sequence[Freeze], moment: Moment) -> Change[Approval] | None:
    """None if no freeze holds up its deadlines."""
    seen = freeze.defer(approval, freezes, moment)
    return seen if seen.events else None


def _write(tx: Transaction, approval: Approval, seen: Change[Approval] | None, change: Change[Approval]) -> None:
    """A deadline that moved is written with what else changed; what only looks due is looked at again later."""
    if seen is None:
        tx.update(approval, change)
    elif change.state is not seen.state:
        tx.update(approval, seen)
        tx.update(seen.state, change)
    else:
        tx.update(approval, change._replace(state=approval))
        workspace, now = approval.subject.workspace, tx.moment(approval.subject.workspace).now
        if (due_at(approval) or now + 1) <= now:
            tx.write("snooze_approval", now + SNOOZE, workspace, approval.id)


def add_run(workspace: str, new: Callable[[Moment], Change[Run]]) -> Work:
    return Work(lambda tx: _save_run(tx, workspace, new(tx.moment(workspace))), workspace)


def step_run(workspace: str, run_id: str, step: RunStep) -> Work:
    def run(tx: Transaction) -> Run:
        return _save_run(tx, workspace, step(tx.run(workspace, run_id), tx.moment(workspace)))

    return Work(run, workspace, (("run", workspace, run_id),))


def add_grant(workspace: str, maker: Reviewer, new: GrantMaking) -> Work:
    def run(tx: Transaction) -> Grant:
        change = new(tx.moment(workspace), reviewer_now(tx, workspace, maker))
        if tx.has_grant(workspace, change.state.id):  # writing it again would revive one that was revoked
            raise Conflict("There is a grant with this id already. Give the new one another.", grant_id=change.state.id)
        return _save_grant(tx, workspace, change)

    return Work(run, workspace)


def step_grant(workspace: str, grant_id: str, step: GrantStep) -> Work:
    def run(tx: Transaction) -> Grant:
        return _save_grant(tx, workspace, step(tx.grant(workspace, grant_id), tx.moment(workspace)))

    return Work(run, workspace, (("grant", workspace, grant_id),))


def put_policy(workspace: str, put: NewPolicy, seen: int | None = None, *, again: bool = True) -> Work:
    """Without `again`, a text that was in force before changes nothing."""

    def run(tx: Transaction) -> PolicyVersion:
        tx.alone(f"policy of {workspace}")
        found = tx.fetch("policy", workspace)
        last = rows.policy_of(found[0]) if found else None
        _check_seen(last.version if last else 0, seen)
        if last is not None and (last.sha256 == put.sha256 or not (again or _is_new(tx, workspace, put))):
            return last
        number = last.version + 1 if last else 1
        now = tx.moment(workspace).now
        version = PolicyVersion(number, put.sha256, put.body, put.author, now, put.reason, put.source)
        tx.write("insert_policy", workspace, *astuple(version))
        content = {**({"reason": put.reason} if put.reason else {}), **(put.trace or {})} or None
        data = {"version": number, "policy": put.sha256, **({"source": put.source} if put.source == "file" else {})}
        tx.tell(workspace, [Event("policy_changed", put.author, data, "", content)])
        return version

    return Work(run, workspace)


def _is_new(tx: Transaction, workspace: str, put: NewPolicy) -> bool:
    return not tx.fetch("known_policy", workspace, put.sha256)


def put_agent(workspace: str, name: str, body: str, author: str, reason: str, seen: int | None = None) -> Work:
    def run(tx: Transaction) -> AgentVersion:
        tx.alone(f"agents of {workspace}")
        found = tx.fetch("agent", workspace, name)
        last = AgentVersion(*found[0]) if found else None
        _check_seen(last.version if last else 0, seen)
        if last is not None and last.body == body:
            return last
        new = AgentVersion(name, last.version + 1 if last else 1, body, author, tx.moment(workspace).now)
        tx.write("write_agent", workspace, *astuple(new))
        content = {"body": json.loads(body), **({"reason": reason} if reason else {})}
        data = {"agent": name, "version": new.version, "body": digest(body.encode())}
        tx.tell(workspace, [Event("agent_changed", author, data, "", content)])
        return new

    return Work(run, workspace)


def pin_tools(workspace: str, specs: Sequence[ToolSpec], agent: str, author: str) -> Work:
    """All of them, or none. One that is pinned just so stays as it is."""

    def run(tx: Transaction) -> list[Pin]:
        tx.alone(f"pins of {workspace}")
        now, pins = tx.moment(workspace).now, Pins(tuple(map(rows.pin_of, tx.fetch("pins", workspace))))
        check_room(pins, len({spec.name for spec in specs} - pins.by_name.keys()))
        wanted = pins
        for spec in specs:  # before anything is buffered: what raises must leave no trace
            check_name(wanted, spec.name)
            wanted = Pins((*wanted.items, Pin(spec.name, spec.definition, agent, author, now)))
        made = []
        for spec in specs:
            known = pins.by_name.get(spec.name)
            if known is not None and known.definition == spec.definition:
                made.append(known)
                continue
            pin = Pin(spec.name, spec.definition, agent, author, now)
            tx.keep_spec(spec)
            tx.write("write_pin", workspace, *astuple(pin))
            data = {"tool": visible(spec.name), "effect": spec.effect, "spec": spec.sha256, "agent": visible(agent)}
            tx.tell(workspace, [Event("tool_pinned", author, data)])
            made.append(pin)
        return made

    return Work(run, workspace)


def unpin_tool(workspace: str, tool: str, author: str) -> Work:
    def run(tx: Transaction) -> Pin:
        tx.alone(f"pins of {workspace}")
        pin = next((pin for pin in map(rows.pin_of, tx.fetch("pins", workspace)) if pin.tool == tool), None)
        if pin is None:
            raise NotFound("No tool of this name is pinned.", tool=tool)
        tx.write("drop_pin", workspace, tool)
        data = {"tool": visible(tool), "spec": pin.spec.sha256}
        tx.tell(workspace, [Event("tool_unpinned", author, data)])
        return pin

    return Work(run, workspace)


def put_user(workspace: str, user: User, author: str) -> Work:
    def run(tx: Transaction) -> User:
        tx.alone(f"people of {workspace}")
        tx.save_user(workspace, user)
        tx.tell(workspace, [user_changed(user, author)])
        return user

    return Work(run, workspace)


def add_workspace(workspace: str, key: bytes, at: int) -> Work:
    return Work(lambda tx: tx.write("insert_workspace", workspace, key, at), workspace)


def _standing(name: str, user: User | None) -> Standing | None:
    """As they are now; None of somebody whom only a program with the database knows."""
    if user is None:
        return None
    return Standing(name) if _is_gone(user) else Standing(name, user.role, user.teams)


def _is_gone(user: User | None) -> bool:
    return user is not None and user.removed_at is not None


def _check_seen(version: int, seen: int | None) -> None:
    if seen is not None and seen != version:
        raise Stale("It was changed meanwhile. Look again, then change what is there now.", version=version)


def _a_while_before(now: int) -> str:
    """The same for a whole minute, so that the look-ups of a batch are one."""
    return str((now // MINUTE - 1) * MINUTE)


def _save_run(tx: Transaction, workspace: str, change: Change[Run]) -> Run:
    tx.save_run(workspace, change)
    return change.state


def _save_grant(tx: Transaction, workspace: str, change: Change[Grant]) -> Grant:
    tx.save_grant(workspace, change)
    return change.state

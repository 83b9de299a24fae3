"""Conversion between rows and values, shared by all databases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import fields
from typing import Any, cast

from interlock.core.approval.approval import (
    NO_DISCUSSION,
    NO_TIMERS,
    Approval,
    ApprovalDeadlines,
    DecisionRecord,
    Discussion,
    ErasureRecord,
    Findings,
    Lease,
    TimerProgress,
)
from interlock.core.approval.timers import next_timer_at
from interlock.core.approval.vote import Delegation, Vote
from interlock.core.call import Subject
from interlock.core.canonical import plain_json
from interlock.core.confusables import fold_confusables
from interlock.core.errors import Problem
from interlock.core.fast_dataclasses import fast_construct
from interlock.core.freeze import Freeze
from interlock.core.grant import Grant
from interlock.core.identity import AGENT, ANY_REQUESTER, NO_REQUESTER, ApiKey
from interlock.core.ledger.chain import Entry
from interlock.core.ledger.event import Payload
from interlock.core.pins import Pin
from interlock.core.policy.policy import Ask, People
from interlock.core.ports import PolicyVersion, User
from interlock.core.run import Run

Row = Sequence[Any]
_GRANT_COLUMNS = ("workspace", "id", *(each.name for each in fields(Grant)[2:]))
_KEY_COLUMNS = tuple(each.name for each in fields(ApiKey))
APPROVAL_COLUMN_COUNT = 32  # columns of an approval in a row; the payload's follow
PAYLOAD_COLUMN_COUNT = 8
TERMS_COLUMN = 17  # the column with the digest of its terms


def insert_values(approval: Approval) -> tuple[object, ...]:
    s = approval.subject
    *state, due = _state_values(approval)
    return (
        s.workspace,
        approval.id,
        s.run_id,
        s.call_id,
        s.tool,
        s.effect,
        s.agent,
        json.dumps(s.agent_path) if s.agent_path else "",
        s.thread_id,
        s.requester,
        s.priority,
        int(s.idempotent),
        s.spec_sha256,
        s.nonce,
        s.proposed,
        approval.created_at,
        approval.deadlines.expires_at,
        *state,
        approval.grant_id,
        due,
        s.owner,
        s.known,
    )


def update_values(approval: Approval, old_version: int) -> tuple[object, ...]:
    return (
        *_state_values(approval),
        approval.deadlines.expires_at,
        approval.subject.workspace,
        approval.id,
        old_version,
    )


def advance_values(a: Approval, old_version: int) -> tuple[object, ...]:
    state = (a.status, a.version, *a.lease, next_timer_at(a))
    return (*state, a.subject.workspace, a.id, old_version)


def erase_values(a: Approval, old_version: int) -> tuple[object, ...]:
    decision = None if a.decision is None else _decision_json(a.decision)
    taken = (a.args_sha256, a.subject.nonce, decision, _progress_json(a), a.version)
    return (*taken, a.subject.workspace, a.id, old_version)


DECISION_FIELDS = frozenset(
    {"decision", "votes", "terms", "binding", "findings", "editors", "delegations", "discussion", "timers", "deadlines"}
)


def only_advances(old: Approval, new: Approval, changed: Set[str]) -> bool:
    """Return whether a change was made by the runner or a timer, so that no decision columns need to be written.

    `changed` are the attributes that are not the same objects; they may still be equal.
    """
    if not (decided := changed & DECISION_FIELDS):
        return True
    return all(getattr(new, name) == getattr(old, name) for name in decided)


def _state_values(a: Approval) -> tuple[object, ...]:
    return (
        a.terms.sha256,
        a.args_sha256,
        a.binding,
        a.status,
        a.version,
        _progress_json(a),
        None if a.decision is None else _decision_json(a.decision),
        a.deadlines.release_at,
        a.deadlines.start_by,
        *a.lease,
        next_timer_at(a),
    )


def read_approval(row: Row, terms: Callable[[str], Ask]) -> Approval:
    workspace, approval_id, run_id, call_id, tool, effect, agent, path, thread_id, requester = row[:10]
    priority, idempotent, spec_sha, nonce, proposed, created, expires, terms_sha, args_sha, binding = row[10:20]
    status, version, progress, decision, release_at, start_by, fence, lease_until, runner, grant_id = row[20:30]
    owner, caller = row[30:32]
    agents = tuple(json.loads(path)) if path else ()
    known = (workspace, run_id, call_id, tool, effect, agent, agents, thread_id, requester, priority)
    subject = Subject(*known, bool(idempotent), spec_sha, nonce, proposed, owner, caller)
    body = {} if progress is None else cast(dict[str, Any], json.loads(progress))
    return fast_construct(
        Approval,
        id=approval_id,
        subject=subject,
        terms=terms(terms_sha),
        args_sha256=args_sha,
        binding=binding,
        status=status,
        created_at=created,
        deadlines=ApprovalDeadlines(expires, release_at, start_by, *body.get("deferred", ())),
        version=version,
        decision=None if decision is None else DecisionRecord(**json.loads(decision)),
        lease=Lease(fence, lease_until, runner),
        grant_id=grant_id,
        **(_read_progress(body) if body else {}),
    )


def read_payload(row: Row) -> Payload:
    """Read the last columns of a row; a cached payload is returned as it is."""
    return row if isinstance(row, Payload) else Payload(*row[-PAYLOAD_COLUMN_COUNT:])


def _decision_json(decision_record: DecisionRecord) -> str:
    return plain_json(decision_record._asdict())


def _progress_json(a: Approval) -> str | None:
    alarms, schema_errors = a.findings
    has_discussion = a.discussion is not NO_DISCUSSION and any(a.discussion)
    rare = _rare_progress(a) if schema_errors or a.erasure or a.deadlines.deferred or has_discussion else {}
    has_timers = a.timers is not NO_TIMERS and any(a.timers)
    if not (rare or alarms or a.votes or a.editors or a.delegations or has_timers):
        return None
    body: dict[str, object] = {
        "alarms": alarms,
        "votes": a.votes,  # as lists of their fields, in this order
        "editors": a.editors,
        "delegations": [[d.by, sorted(d.teams), d.role, sorted(d.to.users), sorted(d.to.teams)] for d in a.delegations],
        "escalated": a.timers.escalated,
        "reminded": a.timers.reminded,
        **rare,
    }
    return plain_json(body)


def _rare_progress(a: Approval) -> dict[str, object]:
    discussion, deadlines = a.discussion, a.deadlines
    body = {
        "claimed": discussion.claimed_by,
        "asked": discussion.asked,
        "replied": discussion.replied,
        "misfits": [[problem.pointer, problem.message] for problem in a.findings.schema_errors],
        "erased": a.erasure and [*a.erasure],
        "deferred": [deadlines.deferred, deadlines.deferred_until] if deadlines.deferred else None,
    }
    return {name: value for name, value in body.items() if value}


def _read_progress(body: dict[str, Any]) -> dict[str, Any]:
    erased = body.get("erased")
    return {
        "findings": Findings(tuple(body["alarms"]), tuple(Problem(*each) for each in body.get("misfits", ()))),
        "votes": tuple(Vote(*vote) for vote in body["votes"]),
        "editors": tuple(body["editors"]),
        "delegations": tuple(
            Delegation(by, frozenset(teams), role, People(frozenset(users), frozenset(to)))
            for by, teams, role, users, to in body["delegations"]
        ),
        "timers": TimerProgress(body["reminded"], body["escalated"]),
        "erasure": None if erased is None else ErasureRecord(*erased),
        "discussion": Discussion(body.get("claimed", ""), body.get("asked", 0), tuple(body.get("replied", ()))),
    }


def read_entries(found: Iterable[Row]) -> Sequence[Entry]:
    return list(map(Entry._make, found))


def read_run(row: Row) -> Run:
    run_id, workspace, agent, status, runner, lease_until, created_at = row
    return Run(
        run_id,
        workspace=workspace,
        agent=agent,
        status=status,
        runner=runner,
        lease_until=lease_until,
        created_at=created_at,
    )


def run_values(run: Run) -> tuple[object, ...]:
    return (run.workspace, run.id, run.agent, run.status, run.runner, run.lease_until, run.created_at)


def read_grant(row: Row) -> Grant:
    values = dict(zip(_GRANT_COLUMNS, row, strict=True))
    return Grant(**{**values, "teams": frozenset(json.loads(values["teams"]))})


def grant_values(g: Grant) -> tuple[object, ...]:
    teams = teams_json(g.teams)
    scope = (g.workspace, g.id, g.tool, g.spec_sha256, g.created_by, teams, g.role, g.created_at, g.expires_at)
    limits = (g.agent, g.when, g.max_uses, g.uses, g.revoked_at, g.reason, g.budget_of, g.budget, g.spent)
    return (*scope, *limits)


def read_user(row: Row) -> User:
    name, role, teams, email, away_until, away_to, removed_at = row
    return User(
        name,
        role,
        teams=frozenset(json.loads(teams)),
        email=email,
        away_until=away_until,
        away_to=_read_people(away_to),
        removed_at=removed_at,
    )


def user_values(workspace: str, user: User) -> tuple[object, ...]:
    away = (user.away_until, "" if user.away_to is None else plain_json(people_json(user.away_to)))
    return (workspace, user.name, user.role, teams_json(user.teams), user.email, *away, user.removed_at)


def people_json(people: People) -> dict[str, object]:
    return {"users": sorted(people.users), "teams": sorted(people.teams)}


def _read_people(text: str) -> People | None:
    body = json.loads(text) if text else None
    return body and People(frozenset(body["users"]), frozenset(body["teams"]))


def teams_json(teams: frozenset[str]) -> str:
    return json.dumps(sorted(teams))


def read_key(row: Row) -> ApiKey:
    """Read an API key. If an agent's key names a person, that person is its requester."""
    agents, tools, requester = row[9:12]
    bound = row[4] if row[3] == AGENT and row[4] else requester
    values = dict(zip(_KEY_COLUMNS, row, strict=True))
    return ApiKey(**{**values, "agents": _read_names(agents), "tools": _read_names(tools), "requester": bound})


def key_values(workspace: str, key: ApiKey) -> tuple[object, ...]:
    who = (key.id, workspace, key.name, key.role, key.person, key.created_by, key.created_at)
    word = key.requester if key.requester in (ANY_REQUESTER, NO_REQUESTER) and not key.person else ""
    lists = [plain_json(names) if names else "" for names in (key.agents, key.tools)]
    return (*who, *lists, word, key.expires_at, key.rotated_from, key.root, key.per_minute, key.pending)


def _read_names(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text else ()


def read_pin(row: Row) -> Pin:
    tool, definition, agent, author, at = row
    return Pin(tool, bytes(definition), agent, author, at)


def read_policy(row: Row) -> PolicyVersion:
    version, sha256, body, author, at, reason, source = row
    return PolicyVersion(version, sha256=sha256, body=body, author=author, at=at, reason=reason, source=source)


def read_freezes(found: Iterable[Row]) -> tuple[Freeze, ...]:
    """Read freezes: one row for each key that a freeze covers, or one row without a key."""
    keys: dict[Row, set[str]] = {}
    for *row, key in found:
        keys.setdefault(tuple(row), set()).update([key] if key else [])
    return tuple(_read_freeze(row, frozenset(used)) for row, used in keys.items())


def _read_freeze(row: Row, keys: frozenset[str]) -> Freeze:
    freeze_id, workspace, scope, name, reason, by, at, released_at, released_by, settled_at = row
    return Freeze(
        id=freeze_id,
        workspace=workspace,
        scope=scope,
        name=name,
        reason=reason,
        by=by,
        at=at,
        released_at=released_at,
        released_by=released_by,
        settled_at=settled_at,
        keys=keys,
    )


def freeze_values(f: Freeze) -> tuple[object, ...]:
    scope = (f.workspace, f.id, f.scope, f.name, fold_confusables(f.name), f.reason, f.by, f.at)
    return (*scope, f.released_at, f.released_by, f.settled_at)

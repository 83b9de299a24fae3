"""Freezes, the emergency stop: nothing in a freeze's scope starts, and the deadlines of what it covers are paused.

A freeze is on from `at` to `released_at`. After that it stays open until every paused deadline was moved
(`settled_at`), so that no deadline passes in between, even if the process that released it was killed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, assert_never, get_args

from interlock.core.approval.approval import Approval
from interlock.core.approval.execute import START_TOKEN_PREFIX
from interlock.core.call import MAX_NAME, ToolCall, stored_caller
from interlock.core.confusables import fold_confusables, fold_pattern, matches_pattern
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import Frozen, InvalidRequest
from interlock.core.fast_dataclasses import next_version
from interlock.core.ledger.event import SYSTEM_ACTOR, Change, Event, Moment

FreezeScope = Literal["workspace", "agent", "key", "tool"]
SCOPES: tuple[str, ...] = get_args(FreezeScope)
ANY_AGENT = "*"  # in place of an agent: every name
DEFERRABLE_STATUSES = frozenset({"pending", "approved", "rejected"})  # statuses with a deadline of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A freeze; `name` is the agent's, the id of the key, or a pattern of tools; empty for a workspace.

    `keys` are the keys it covers as well: for an agent every key that has used its name; for each such key and for a
    frozen key, all keys of its rotation chain.
    """

    id: str
    workspace: str
    scope: FreezeScope
    name: str
    reason: str
    by: str
    at: int
    released_at: int | None = None
    released_by: str = ""
    settled_at: int | None = None
    keys: frozenset[str] = frozenset()

    @property
    def is_on(self) -> bool:
        return self.released_at is None

    @property
    def scope_text(self) -> str:
        """The scope as text."""
        return f"the {self.scope} {self.name}" if self.name else f"the workspace {self.workspace}"


class FreezeTarget(NamedTuple):
    """What a freeze may cover: the agents of a call, its tool, and the id of the key that it came with, if any."""

    workspace: str
    agents: tuple[str, ...]
    key: str
    tool: str
    earlier_keys: frozenset[str] = frozenset()  # the key it was proposed with, and the first key of that rotation chain

    @property
    def keys(self) -> frozenset[str]:
        return self.earlier_keys | {self.key} if self.key else self.earlier_keys


def approval_target(approval: Approval, key: str = "") -> FreezeTarget:
    """The target for an approval; `key` is the one used to start it."""
    subject, caller = approval.subject, stored_caller(approval.subject)
    if caller is None:
        return FreezeTarget(subject.workspace, subject.path, key, subject.tool)
    earlier = frozenset({caller.credential, caller.root} - {""})
    return FreezeTarget(subject.workspace, subject.path + caller.agents, key, subject.tool, earlier)


def call_target(call: ToolCall) -> FreezeTarget:
    if call.caller is None:
        return FreezeTarget(call.workspace, call.path, "", call.tool)
    earlier = frozenset({call.caller.root} - {""})
    return FreezeTarget(call.workspace, call.path + call.caller.agents, call.key, call.tool, earlier)


def runner_key_id(runner: str) -> str:
    """The key id of a start over HTTP; empty for other runners."""
    return runner.removeprefix(START_TOKEN_PREFIX).partition(":")[0] if runner.startswith(START_TOKEN_PREFIX) else ""


def make(draft: Freeze, open_now: Iterable[Freeze], moment: Moment) -> Change[Freeze]:
    """Make a freeze; a scope that is already frozen keeps its first freeze and reason."""
    check(draft)
    for each in open_now:
        if each.is_on and (each.scope, fold_confusables(each.name)) == (draft.scope, fold_confusables(draft.name)):
            return Change(each)
    freeze = replace(draft, at=moment.now)
    return Change(freeze, (_event("frozen", freeze, freeze.by, freeze.reason),))


def release(freeze: Freeze, by: str, reason: str, moment: Moment) -> Change[Freeze]:
    if not freeze.is_on:
        return Change(freeze)
    released = replace(freeze, released_at=moment.now, released_by=by)
    return Change(released, (_event("unfrozen", released, by, reason),))


def settle(freeze: Freeze, moment: Moment) -> Freeze:
    return replace(freeze, settled_at=moment.now)


def check(draft: Freeze) -> None:
    if draft.scope not in SCOPES:
        raise InvalidRequest(f"The scope of a freeze is one of {', '.join(SCOPES)}.")
    if bool(draft.name.strip()) == (draft.scope == "workspace"):
        raise InvalidRequest("Give the name of the agent, key or tool; a freeze of the workspace has none.")
    if len(draft.name) > MAX_NAME or not draft.name.isprintable():
        raise InvalidRequest(f"A name is up to {MAX_NAME} characters that can be seen.")
    if not draft.reason.strip() or len(draft.reason) > MAX_COMMENT:
        raise InvalidRequest(f"Give a reason of up to {MAX_COMMENT} characters; everybody affected sees it.")


def covers(freeze: Freeze, target: FreezeTarget) -> bool:
    """Whether the freeze covers the target; names are compared folded, so that another spelling does not escape it."""
    if freeze.workspace != target.workspace:
        return False
    match freeze.scope:
        case "workspace":
            return True
        case "agent":
            return not target.keys.isdisjoint(freeze.keys) or fold_confusables(freeze.name) in map(
                fold_confusables, target.agents
            )
        case "key":
            return freeze.name in target.keys or not target.keys.isdisjoint(freeze.keys)
        case "tool":
            return matches_pattern(fold_confusables(target.tool), fold_pattern(freeze.name))
        case _:
            assert_never(freeze.scope)


def find_active_freeze(freezes: Iterable[Freeze], target: FreezeTarget) -> Freeze | None:
    """The first active freeze that covers the target."""
    return next((freeze for freeze in freezes if freeze.is_on and covers(freeze, target)), None)


def freeze_message(freeze: Freeze) -> str:
    """The message for callers that a freeze stops."""
    return f"Frozen by {freeze.by} ({freeze.scope_text}): {freeze.reason}"


def frozen_error(freeze: Freeze, approval_id: str) -> Frozen:
    message = (
        f"{freeze_message(freeze)} Nothing in its scope starts until an admin releases it; then start this call again."
    )
    return Frozen(message, approval_id=approval_id, freeze_id=freeze.id, reason=freeze.reason)


def defer_deadlines(approval: Approval, freezes: Iterable[Freeze], moment: Moment) -> Change[Approval]:
    """Move the deadlines by the time that freezes paused them; without events if that is zero."""
    resumable = approval.status == "running" and approval.subject.idempotent
    if approval.status not in DEFERRABLE_STATUSES and not resumable:
        return Change(approval)
    target = approval_target(approval)
    spans = [(each.at, each.released_at or moment.now) for each in freezes if covers(each, target)]
    by = _covered_time(spans, max(approval.created_at, approval.deadlines.deferred_until), moment.now) if spans else 0
    if not by:
        return Change(approval)
    old = approval.deadlines
    new = old._replace(
        expires_at=old.expires_at + (by if approval.status in ("pending", "rejected") else 0),
        start_by=None if old.start_by is None else old.start_by + by,
        deferred=old.deferred + by,
        deferred_until=moment.now,
    )
    event = Event(
        "deferred", SYSTEM_ACTOR, {"by": by, "expires_at": new.expires_at, "start_by": new.start_by}, approval.id
    )
    return Change(next_version(approval, deadlines=new), (event,))


def _covered_time(spans: list[tuple[int, int]], since: int, now: int) -> int:
    """How much of the time from `since` to `now` the spans cover together."""
    total, reached = 0, since
    for begin, end in sorted(spans):
        total += max(0, min(end, now) - max(begin, reached))
        reached = max(reached, end)
    return total


def _event(kind: str, freeze: Freeze, actor: str, reason: str) -> Event:
    data = {"freeze": freeze.id, "scope": freeze.scope, "name": freeze.name}
    return Event(kind, actor, data, "", {"reason": reason} if reason else None)

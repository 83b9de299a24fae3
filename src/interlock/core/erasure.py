"""Forgetting: what of an approval is taken and what stays, and the event that says what was taken, and for whom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from interlock.core.approval import FINAL, Approval
from interlock.core.changing import moved
from interlock.core.event import TIME, Event

Scope = Literal["retention", "approval", "thread", "person"]


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is to be forgotten, who wants it, and why; `what` is an approval's id, a thread or a person's name."""

    scope: Scope
    what: str = ""
    reason: str = ""
    by: str = TIME


RETENTION = Erasure("retention")


@dataclass(frozen=True, slots=True)
class Erased:
    """How many approvals, entries of the ledger and threads; `open` are ids and statuses of what had to be left."""

    approvals: int = 0
    entries: int = 0
    open: tuple[tuple[str, str], ...] = ()
    threads: int = 0

    def __add__(self, other: Erased) -> Erased:
        left = dict(self.open) | dict(other.open)
        return Erased(
            self.approvals + other.approvals,
            self.entries + other.entries,
            tuple(left.items()),
            self.threads + other.threads,
        )


def has_ended(approval: Approval, now: int) -> bool:
    """Whether nothing can come of it any more; a rejection ends when it can no longer be undone."""
    released = approval.status == "rejected" and now >= (approval.release_at or 0)
    return released or approval.status in FINAL


def without_content(approval: Approval, by: str, at: int) -> Approval:
    """Who, when and what became of it stay. Without nonce and digests nobody can check a guess of the arguments."""
    decided = approval.decision
    return moved(
        approval,
        subject=approval.subject._replace(nonce=""),
        args_sha256="",
        alarms=(),  # they point into the arguments
        misfits=(),
        votes=tuple(vote._replace(args_sha256="") for vote in approval.votes),
        decision=None if decided is None else replace(decided, reason="", comment=""),
        erased_at=at,
        erased_by=by,
    )


def without_words_of(approval: Approval, person: str) -> Approval:
    """The same approval if the person said nothing about it that is kept in its row."""
    decided = approval.decision
    if decided is None or decided.by != person or not (decided.reason or decided.comment):
        return approval
    return moved(approval, decision=replace(decided, reason="", comment=""))


def erased_event(erasure: Erasure, entries: Iterable[int], approvals: int) -> Event:
    """What was asked for is content, since it may be a name; so it can be erased in its turn."""
    data = {"scope": erasure.scope, "entries": ranges(entries), "approvals": approvals}
    content = {"what": erasure.what, "reason": erasure.reason} if erasure.what else None
    return Event("erased", erasure.by, data, "", content)


def ranges(numbers: Iterable[int]) -> list[list[int]]:
    """First and last of each run of consecutive numbers."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number <= found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found

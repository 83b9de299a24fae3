"""Erasure and retention: which parts of an approval are erased, and the event that says what was erased and why."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from interlock.core.approval.approval import FINAL_STATUSES, Approval, ErasureRecord, Findings
from interlock.core.fast_dataclasses import next_version
from interlock.core.ledger.event import SYSTEM_ACTOR, Event

if TYPE_CHECKING:
    from interlock.core.ledger.chain import Entry


ErasureScope = Literal["retention", "approval", "thread", "person"]


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure: its scope, actor and reason; `target` is an approval's id, a thread or a person's name."""

    scope: ErasureScope
    target: str = ""
    reason: str = ""
    by: str = SYSTEM_ACTOR


RETENTION = Erasure("retention")


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """Numbers of approvals, ledger entries and threads; `skipped` are ids and statuses of what could not be erased."""

    approvals: int = 0
    entries: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    threads: int = 0

    def __add__(self, other: ErasureResult) -> ErasureResult:
        left = dict(self.skipped) | dict(other.skipped)
        return ErasureResult(
            self.approvals + other.approvals,
            self.entries + other.entries,
            tuple(left.items()),
            self.threads + other.threads,
        )


def is_final(approval: Approval, now: int) -> bool:
    """Whether it can no longer change; a rejection is final when it can no longer be undone."""
    released = approval.status == "rejected" and now >= (approval.deadlines.release_at or 0)
    return released or approval.status in FINAL_STATUSES


def erase_content(approval: Approval, by: str, at: int) -> Approval:
    """Erase content; who, when and the outcome stay.

    Without nonce and digests no guess of the arguments can be checked.
    """
    decision_record = approval.decision
    return next_version(
        approval,
        subject=approval.subject._replace(nonce=""),
        args_sha256="",
        findings=Findings(),  # they point into the arguments
        votes=tuple(vote._replace(args_sha256="") for vote in approval.votes),
        decision=None if decision_record is None else decision_record._replace(reason="", comment=""),
        erasure=ErasureRecord(at, by),
    )


def erase_words_by(approval: Approval, person: str) -> Approval:
    """Erase a person's words from the row; the same approval if it holds none."""
    decision_record = approval.decision
    if (
        decision_record is None
        or decision_record.by != person
        or not (decision_record.reason or decision_record.comment)
    ):
        return approval
    return next_version(approval, decision=decision_record._replace(reason="", comment=""))


def erased_event(erasure: Erasure, entries: Iterable[int], approvals: int) -> Event:
    """The event of an erasure; its target is content, since it may be a name, so it can be erased as well."""
    data = {"scope": erasure.scope, "entries": to_ranges(entries), "approvals": approvals}
    content = {"what": erasure.target, "reason": erasure.reason} if erasure.target else None
    return Event("erased", erasure.by, data, "", content)


def to_ranges(numbers: Iterable[int]) -> list[list[int]]:
    """The first and last of each run of consecutive numbers."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number <= found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


Range = tuple[int, int]  # the first and the last entry
SCOPES: tuple[str, ...] = get_args(ErasureScope)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureTotal:
    """What one actor erased in one scope: `times` erasures, the first at `since` and the last at `until`."""

    scope: str
    actor: str
    entries: int
    approvals: int
    times: int
    since: int
    until: int

    def to_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


class ErasureTracker:
    """Tracker of missing contents and of erasures, fed as the entries are read."""

    def __init__(self) -> None:
        self.missing = array("q")
        self._ranges: list[Range] = []
        self._totals: dict[tuple[str, str], ErasureTotal] = {}
        self._merged: tuple[list[int], list[int]] | None = None

    def note(self, entry: Entry) -> str:
        """The problem with an entry of the kind `erased`; empty if there is none."""
        read = _parse_erasure(entry.data)
        if read is None:
            return "The entry does not list in a known format what was erased."
        scope, named, approvals = read
        if any(not 0 < first <= last < entry.seq for first, last in named):
            return "The entry names entries as erased that do not come before it."
        count = sum(last - first + 1 for first, last in named)
        self._add(
            ErasureTotal(
                scope=scope,
                actor=entry.actor,
                entries=count,
                approvals=approvals,
                times=1,
                since=entry.at,
                until=entry.at,
            )
        )
        self._ranges += named
        self._merged = None
        return ""

    def covers(self, seq: int) -> bool:
        """Whether an erasure covers the content of an entry."""
        firsts, lasts = self._merged = self._merged or _merge_ranges(self._ranges)
        place = bisect_right(firsts, seq)
        return place > 0 and seq <= lasts[place - 1]

    def unexplained(self) -> Iterator[Range]:
        """Missing contents without an erasure; consecutive entries are one range: an emptied table is one violation."""
        run: Range | None = None
        for seq in self.missing:
            if self.covers(seq):
                continue
            if run is not None and seq == run[1] + 1:
                run = (run[0], seq)
                continue
            if run is not None:
                yield run
            run = (seq, seq)
        if run is not None:
            yield run

    def summary(self) -> tuple[ErasureTotal, ...]:
        return tuple(self._totals.values())

    def join(self, later: ErasureTracker) -> None:
        self.missing += later.missing
        self._ranges += later._ranges
        self._merged = None
        for total in later._totals.values():
            self._add(total)

    def _add(self, new: ErasureTotal) -> None:
        old = self._totals.get((new.scope, new.actor))
        if old is not None:
            new = replace(
                new,
                entries=old.entries + new.entries,
                approvals=old.approvals + new.approvals,
                times=old.times + new.times,
                since=old.since,
            )
        self._totals[new.scope, new.actor] = new


def _parse_erasure(data: str) -> tuple[str, list[Range], int] | None:
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        return None
    match facts:
        case {"scope": str(scope), "entries": list(pairs), "approvals": int(approvals)} if scope in SCOPES:
            named = [(pair[0], pair[1]) for pair in pairs if _is_range(pair)]
            return (scope, named, approvals) if len(named) == len(pairs) else None
        case _:
            return None


def _is_range(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)


def _merge_ranges(named: list[Range]) -> tuple[list[int], list[int]]:
    """The starts and the ends of the ranges, sorted and without overlaps."""
    firsts: list[int] = []
    lasts: list[int] = []
    for first, last in sorted(named):
        if lasts and first <= lasts[-1] + 1:
            lasts[-1] = max(lasts[-1], last)
        else:
            firsts.append(first)
            lasts.append(last)
    return firsts, lasts

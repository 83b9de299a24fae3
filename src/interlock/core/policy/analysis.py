"""Policy rehearsal (dry run): what a draft policy would have done with recorded calls; usage of rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappush, heappushpop
from typing import cast

from interlock.core.call import ToolCall, ToolSpec
from interlock.core.fast_dataclasses import fast_replace
from interlock.core.ledger.chain import Entry
from interlock.core.policy import claims
from interlock.core.policy.policy import Allow, Ask, People, Policy, Verdict, VerdictKind

VerdictPair = tuple[VerdictKind, VerdictKind]
RUNS_ON_EXPIRY = 1  # runs although nobody answered
RUNS_UNASKED = 2  # runs without asking anybody


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call as proposed, with its verdict at that time; a denied one has redacted arguments."""

    call: ToolCall
    spec: ToolSpec
    verdict: VerdictKind
    rule: str
    at: int
    approval_id: str = ""
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class ChangedCall:
    """A call that the draft treats differently; `loosened`: it could run without the people who are asked now."""

    recorded: RecordedCall
    old: Verdict
    new: Verdict
    loosened: bool

    @property
    def verdict_pair(self) -> VerdictPair:
        return self.old.kind, self.new.kind


@dataclass(frozen=True, slots=True)
class VerdictChangeCause:
    """The rules behind a kind of change; "" stands for the defaults."""

    old: VerdictKind
    new: VerdictKind
    old_rule: str
    new_rule: str
    loosened: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalReport:
    """Result of a rehearsal; the most severe `causes` and `changed` come first.

    `verdict_counts` counts calls by their verdict in force and by the draft. `answers_needed` counts, for each group of
    people, how many of them would have had to answer: in force, and by the draft. `outdated` counts the calls that the
    policy in force judges differently from the one of their time.
    """

    calls: int = 0
    first: int = 0
    last: int = 0
    verdict_counts: Mapping[VerdictPair, int] = field(default_factory=dict)
    other_terms: int = 0
    loosened: int = 0
    outdated: int = 0
    causes: Mapping[VerdictChangeCause, int] = field(default_factory=dict)
    answers_needed: Mapping[People | None, tuple[int, int]] = field(default_factory=dict)
    changed: tuple[ChangedCall, ...] = ()

    @property
    def changed_verdicts(self) -> int:
        """How many calls would get another kind of verdict."""
        return sum(count for (old, new), count in self.verdict_counts.items() if old != new)


RankedChange = tuple[tuple[bool, bool], int, ChangedCall]


def rehearse(recorded: Iterable[RecordedCall], in_force: Policy, draft: Policy, keep: int = 100) -> RehearsalReport:
    rehearsal = Rehearsal(in_force, draft, keep)
    rehearsal.feed(recorded)
    return rehearsal.report()


class Rehearsal:
    """A rehearsal, fed page by page, oldest first: memory grows with the rules and `keep`, not with the calls."""

    def __init__(self, in_force: Policy, draft: Policy, keep: int) -> None:
        self._in_force = in_force
        self._draft = draft
        self._keep = keep
        self._kept: list[RankedChange] = []
        self._verdict_counts: Counter[VerdictPair] = Counter()
        self._causes: Counter[VerdictChangeCause] = Counter()
        self._asked: tuple[Counter[People | None], Counter[People | None]] = (Counter(), Counter())
        self._calls = self._first = self._last = self._outdated = 0

    def feed(self, page: Iterable[RecordedCall]) -> None:
        for each in page:
            self._judge(each)

    def report(self) -> RehearsalReport:
        before, after = self._asked
        return RehearsalReport(
            calls=self._calls,
            first=self._first,
            last=self._last,
            verdict_counts=dict(self._verdict_counts),
            other_terms=sum(count for cause, count in self._causes.items() if cause.old == cause.new),
            loosened=sum(count for cause, count in self._causes.items() if cause.loosened),
            outdated=self._outdated,
            causes=dict(sorted(self._causes.items(), key=_cause_order)),
            answers_needed={people: (before[people], after[people]) for people in before | after},
            changed=tuple(changed for _, _, changed in sorted(self._kept, key=_change_rank, reverse=True)),
        )

    def _judge(self, each: RecordedCall) -> None:
        old, new = judge_recorded(self._in_force, each), judge_recorded(self._draft, each)
        self._calls += 1
        self._verdict_counts[old.kind, new.kind] += 1
        self._first, self._last = self._first or each.at, each.at
        self._outdated += old.kind != each.verdict
        for verdict, asked in zip((old, new), self._asked, strict=True):
            _count_asked(verdict, asked)
        if old.kind != new.kind or not _same_terms(old, new):
            self._note(ChangedCall(each, old, new, _permissiveness(new) > _permissiveness(old)))

    def _note(self, changed: ChangedCall) -> None:
        old, new = changed.old, changed.new
        self._causes[VerdictChangeCause(old.kind, new.kind, old.rule, new.rule, changed.loosened)] += 1
        entry = ((changed.loosened, old.kind != new.kind), self._calls, changed)  # the number breaks every tie
        if len(self._kept) < self._keep:
            heappush(self._kept, entry)
        elif self._keep:
            heappushpop(self._kept, entry)


def _cause_order(item: tuple[VerdictChangeCause, int]) -> tuple[bool, bool, int]:
    """Loosened first, then those with another verdict, then the most frequent."""
    cause, count = item
    return not cause.loosened, cause.old == cause.new, -count


def _change_rank(kept: RankedChange) -> tuple[tuple[bool, bool], int]:
    return kept[:2]


def judge_recorded(policy: Policy, each: RecordedCall) -> Verdict:
    """Judge a recorded call; a question to people stays one even where reads are allowed, as it needs an answer."""
    call = fast_replace(each.call, condition_budgets={})  # no other policy has spent budget on it yet
    verdict = claims.judge(policy, call, each.spec).verdict
    question = each.spec.effect == "read" and each.spec.decisions == ("respond",)
    return policy.default_ask if question and isinstance(verdict, Allow) else verdict


def _count_asked(verdict: Verdict, asked: Counter[People | None]) -> None:
    if isinstance(verdict, Ask):
        for stage in verdict.stages:
            asked[stage.approvers] += stage.quorum


def _same_terms(old: Verdict, new: Verdict) -> bool:
    """Whether two verdicts of one kind mean the same to people: a rule may be renamed."""
    return not isinstance(old, Ask) or not isinstance(new, Ask) or replace(old, rule=new.rule) == new


def _permissiveness(verdict: Verdict) -> int:
    match verdict:
        case Allow():
            return RUNS_UNASKED
        case Ask(on_expiry="approve"):
            return RUNS_ON_EXPIRY
        case _:
            return 0


VERDICTS: Mapping[str, VerdictKind] = {"proposed": "ask", "allowed": "allow", "denied": "deny"}
ASKED_BY = frozenset({"grant", "preview"})  # `by` of an entry: the policy asked, and this answered before a person
SHADOW_KEY = b'"shadow"'  # most entries have no such note, and need not be parsed


@dataclass(frozen=True, slots=True)
class ShadowRuleUsage:
    """One shadow rule: how many calls it would have decided, and from which verdict to which."""

    rule: str
    calls: int
    verdict_counts: Mapping[VerdictPair, int]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """Usage of shadow rules in `calls`; what the rules noted for `erased` ones is unknown."""

    calls: int
    erased: int
    rules: tuple[ShadowRuleUsage, ...]


class ShadowRuleCounter:
    """Counter fed page by page: memory grows with the rules, not with the ledger."""

    def __init__(self, since: int = 0) -> None:
        self._since = since
        self._calls = self._erased = 0
        self._verdict_counts: dict[str, Counter[VerdictPair]] = {}
        self._times: dict[str, tuple[int, int]] = {}

    def feed(self, page: Iterable[Entry]) -> None:
        for entry in page:
            if entry.kind in VERDICTS and entry.at >= self._since:
                self._calls += 1
                self._note(entry)

    def report(self) -> ShadowReport:
        rules = [
            ShadowRuleUsage(rule, turns.total(), dict(turns.most_common()), *self._times[rule])
            for rule, turns in self._verdict_counts.items()
        ]
        return ShadowReport(
            self._calls, self._erased, tuple(sorted(rules, key=lambda shadow: (-shadow.calls, shadow.rule)))
        )

    def _note(self, entry: Entry) -> None:
        if entry.content is None:
            self._erased += 1
        elif SHADOW_KEY in entry.content:
            for rule, then in _shadow_notes(entry.content):
                self._verdict_counts.setdefault(rule, Counter())[recorded_verdict(entry), then] += 1
                first, _ = self._times.get(rule, (entry.at, entry.at))
                self._times[rule] = (first, entry.at)


def _shadow_notes(content: bytes) -> list[tuple[str, VerdictKind]]:
    notes = json.loads(content).get("shadow", [])  # the marker may also occur in a text of the call
    return [(note["rule"], note["then"]) for note in notes]


def recorded_verdict(entry: Entry) -> VerdictKind:
    """The policy's verdict; a call that a grant allowed, or whose preview said that it would fail, counts as asked."""
    data = cast(Mapping[str, object], json.loads(entry.data))
    return "ask" if data.get("by") in ASKED_BY else VERDICTS[entry.kind]


@dataclass(frozen=True, slots=True)
class RuleUsage:
    """One rule, or "" for calls that no rule decided: how many it allowed, asked about and denied."""

    rule: str
    verdicts: Mapping[VerdictKind, int]
    last: int

    @property
    def calls(self) -> int:
        return sum(self.verdicts.values())


class RuleUsageCounter:
    """Counter fed page by page: memory grows with the rules, not with the ledger."""

    def __init__(self, since: int = 0) -> None:
        self._since = since
        self._verdicts: dict[str, Counter[VerdictKind]] = {}
        self._last: dict[str, int] = {}

    def feed(self, page: Iterable[Entry]) -> None:
        for entry in page:
            if entry.kind in VERDICTS and entry.at >= self._since:
                self._note(entry)

    def report(self) -> tuple[RuleUsage, ...]:
        found = (RuleUsage(rule, dict(verdicts), self._last[rule]) for rule, verdicts in self._verdicts.items())
        return tuple(sorted(found, key=lambda matched: (-matched.calls, matched.rule)))

    def _note(self, entry: Entry) -> None:
        rule = str(json.loads(entry.data).get("rule", ""))
        self._verdicts.setdefault(rule, Counter())[recorded_verdict(entry)] += 1
        self._last[rule] = entry.at

"""Erasure: what of an approval is erased, what stays, and what the ledger records about it."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.approval.approval import STATUSES, DecisionRecord, ErasureRecord, Findings, decide
from interlock.core.ledger.chain import Entry
from interlock.core.ledger.erasure import (
    RETENTION,
    Erasure,
    ErasureResult,
    ErasureTotal,
    ErasureTracker,
    erase_content,
    erase_words_by,
    erased_event,
    is_final,
    to_ranges,
)
from interlock.core.ledger.event import Event
from interlock.core.policy.policy import Ask, Stage
from tests.unit.builders import ALICE, NOW, approval_in_status, approve, at, call, pending

OPEN = {"pending", "approved", "running", "unknown", "rejected"}  # a rejection until it cannot be undone


@pytest.mark.parametrize("status", STATUSES)
def test_only_what_has_ended_can_be_erased(status: str) -> None:  # R49
    assert is_final(approval_in_status(status), NOW) is (status not in OPEN)


def test_a_rejection_ends_when_it_can_no_longer_be_undone() -> None:
    rejected = approval_in_status("rejected")
    assert rejected.deadlines.release_at is not None
    assert not is_final(rejected, rejected.deadlines.release_at - 1)
    assert is_final(rejected, rejected.deadlines.release_at)


def test_digests_nonce_and_texts_are_erased_and_names_stay() -> None:  # R41
    waiting = replace(pending(Ask("two", (Stage(None, 2),))), findings=Findings(alarms=("bidi:/to",)))
    voted = decide(waiting, approve(waiting, "bidi:/to"), ALICE, at()).state
    ended = replace(
        voted,
        status="failed",
        decision=DecisionRecord("approve", "bob", NOW, via="web", reason="a reason", comment="a comment"),
    )
    left = erase_content(ended, "ada", NOW + 5)
    assert left.decision == DecisionRecord("approve", "bob", NOW, via="web")
    assert left.votes == (voted.votes[0]._replace(args_sha256=""),)
    assert left.subject == ended.subject._replace(nonce="")
    assert (left.args_sha256, left.findings.alarms, left.version) == ("", (), ended.version + 1)
    assert left.erasure == ErasureRecord(NOW + 5, "ada")
    changed = {"decision", "votes", "subject", "args_sha256", "findings", "version", "erasure"}
    assert {name for name, value in vars(left).items() if vars(ended)[name] != value} == changed


def test_what_nobody_decided_can_be_erased_too() -> None:
    assert erase_content(approval_in_status("cancelled"), "ada", NOW).decision is None


def test_only_the_texts_of_one_person_are_erased() -> None:
    decided = DecisionRecord("reject", "bob", NOW, via="web", reason="a reason", comment="a comment")
    rejected = approval_in_status("rejected", decision=decided)
    left = erase_words_by(rejected, "bob")
    assert left == replace(
        rejected, decision=DecisionRecord("reject", "bob", NOW, via="web"), version=rejected.version + 1
    )
    assert erase_words_by(left, "bob") is left
    assert erase_words_by(rejected, "ann") is rejected
    undecided = approval_in_status("cancelled")
    assert erase_words_by(undecided, "bob") is undecided


def test_an_erased_call_comes_back_by_its_tool_alone() -> None:  # R24
    subject = pending().subject
    assert subject.is_same_call(call())
    assert not subject.is_same_call(call({"amount": 6, "to": "ann"}))
    erased = subject._replace(nonce="")
    assert erased.is_same_call(call({"amount": 6, "to": "ann"}))
    assert not erased.is_same_call(call(tool="drop"))


def test_the_event_names_entries_and_keeps_what_was_asked_for_in_its_content() -> None:  # R49
    event = erased_event(Erasure("person", "ann", "she asked", "ada"), {7, 3, 4, 5}, 2)
    data = {"scope": "person", "entries": [[3, 5], [7, 7]], "approvals": 2}
    assert event == Event("erased", "ada", data, "", {"what": "ann", "reason": "she asked"})


def test_time_has_no_reason_of_its_own() -> None:
    data = {"scope": "retention", "entries": [[1, 1]], "approvals": 0}
    assert erased_event(RETENTION, [1], 0) == Event("erased", "interlock", data, "", None)


@given(st.lists(st.integers(1, 60)))
def test_ranges_hold_the_same_numbers_sorted_and_merged(numbers: list[int]) -> None:
    found = to_ranges(numbers)
    assert {n for first, last in found for n in range(first, last + 1)} == set(numbers)
    assert all(first <= last for first, last in found)
    assert all(one[1] + 1 < two[0] for one, two in pairwise(found))


def test_what_was_erased_adds_up_and_names_what_is_open_once() -> None:
    one, two = ErasureResult(1, 2, (("a", "pending"),), 5), ErasureResult(3, 4, (("a", "pending"), ("b", "running")), 6)
    assert one + two == ErasureResult(4, 6, (("a", "pending"), ("b", "running")), 11)


def erased_entry(*ranges: tuple[int, int], seq: int = 100, actor: str = "ann") -> Entry:
    data = {"scope": "person", "entries": [list(each) for each in ranges], "approvals": 2}
    return Entry("default", seq, seq * 10, "erased", actor, "", json.dumps(data), "", "")


def covered_numbers(gaps: ErasureTracker) -> list[int]:
    return [seq for seq in range(1, 30) if gaps.covers(seq)]


# R49
def test_what_lies_between_two_ranges_is_not_covered() -> None:
    gaps = ErasureTracker()
    assert covered_numbers(gaps) == []
    assert gaps.note(erased_entry((10, 12), (1, 3), (5, 5), (6, 7), (2, 3), (11, 14))) == ""
    assert covered_numbers(gaps) == [1, 2, 3, 5, 6, 7, 10, 11, 12, 13, 14]


# R49
def test_a_later_erasure_counts_though_somebody_has_looked_before() -> None:
    gaps, later = ErasureTracker(), ErasureTracker()
    gaps.note(erased_entry((1, 2)))
    assert covered_numbers(gaps) == [1, 2]
    gaps.note(erased_entry((4, 4)))
    assert covered_numbers(gaps) == [1, 2, 4]
    later.note(erased_entry((6, 6), seq=200, actor="bob"))
    later.note(erased_entry((8, 9), seq=300))
    gaps.join(later)
    assert covered_numbers(gaps) == [1, 2, 4, 6, 8, 9]
    assert gaps.summary() == (
        ErasureTotal(scope="person", actor="ann", entries=5, approvals=6, times=3, since=1_000, until=3_000),
        ErasureTotal(scope="person", actor="bob", entries=1, approvals=2, times=1, since=2_000, until=2_000),
    )


# R49
def test_adjacent_unexplained_gaps_are_one_violation() -> None:
    gaps = ErasureTracker()
    gaps.missing.extend([1, 2, 3, 5, 6, 8])
    gaps.note(erased_entry((6, 6)))
    assert list(gaps.unexplained()) == [(1, 3), (5, 5), (8, 8)]

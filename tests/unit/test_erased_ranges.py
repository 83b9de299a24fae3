"""Erased ranges: which ledger entries an erasure names, and only those."""

from __future__ import annotations

import json

from interlock.core.ledger.chain import Entry
from interlock.core.ledger.erasure import ErasureTotal, ErasureTracker


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

"""The ledger chain: every alteration and every violated invariant is found, and erasure keeps it verifiable."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.approval.approval import Approval, cancel, decide, delegate, resolve_unknown, undo
from interlock.core.approval.discussion import ask, claim, comment, release, reply
from interlock.core.approval.execute import abandon, finish, start
from interlock.core.approval.propose import allow, request_approval
from interlock.core.approval.timers import fire_next_timer
from interlock.core.canonical import canonical
from interlock.core.ledger.chain import GENESIS, Entry, Head, Verifier, hash_link, make_entry, skeleton
from interlock.core.ledger.event import Change, Event, Payload
from interlock.core.ledger.invariants import Violation
from interlock.core.policy.policy import Allow, Ask, EscalationStep, Stage
from tests.unit.builders import (
    ADMIN,
    ALICE,
    BOB,
    CAROL,
    FINANCE,
    LEASE,
    NOW,
    OTHER_ARGS,
    PAY,
    TWO_OF_FINANCE,
    VIEWER,
    approve,
    at,
    edit,
    pending,
    prepare_edit,
    proposal,
    reject,
    respond,
    start_call,
    store_row,
    users,
)

SALT = b"0123456789abcdef"


def chain(*events: Event, workspace: str = "default") -> list[Entry]:
    """A chain with valid links, as the program writes it, or a forger with write access to the database."""
    entries: list[Entry] = []
    head = Head(workspace)
    for number, event in enumerate(events):
        entry = make_entry(event, head, NOW + number, SALT + bytes([number]))
        head = Head(workspace, entry.seq, entry.link, entry.at)
        entries.append(entry)
    return entries


def last_head(entries: Sequence[Entry]) -> Head:
    last = entries[-1]
    return Head(last.workspace, last.seq, last.link, last.at)


def verify(entries: Sequence[Entry], exported: Head | None = None, kept: Head | None = None) -> Verifier:
    verifier = Verifier("default", exported)
    verifier.feed(entries)
    verifier.finish(kept or (last_head(entries) if entries else Head("default")))
    return verifier


def violations(*events: Event) -> list[str]:
    """The violations of a forged chain; its links are valid, so that only invariants can be violated.

    It says the same when it has seen such entries before, and may take the quick way.
    """
    found = [fault.message for fault in verify(chain(*events)).violations]
    before = [one._replace(approval_id="before") for one in (*COMPLETE_HISTORY[:1], VOTED, *COMPLETE_HISTORY[1:])]
    assert [fault.message for fault in verify(chain(*before, *events)).violations] == found
    return found


B1, B2, B9 = "b1" * 32, "b2" * 32, "b9" * 32  # as long as a digest, so that the quick way is taken where there is one


def event(kind: str, status: str | None, actor: str = "alice", **data: object) -> Event:
    facts = {"binding": B1, **data} if status is None else {"status": status, "binding": B1, **data}
    return Event(kind, actor, facts, "a1", {"via": "web"})


PROPOSED = event("proposed", "pending", "agent", quorum=[1])
APPROVED = event("approved", "approved")
VOTED = event("voted", "pending")
STARTED = event("started", "running", "r1", fence=1)
SUCCEEDED = event("succeeded", "succeeded", "r1", fence=1)
COMPLETE_HISTORY = (PROPOSED, APPROVED, STARTED, SUCCEEDED)
COMPLETE_CHAIN = (
    Event("denied", "agent", {"tool": "x"}, "", {"reason": "no"}),
    *COMPLETE_HISTORY,
    Event("run_closed", "r1", {"run": "r"}),
)
MIXED = chain(*COMPLETE_CHAIN)
REWRITTEN = "The chain does not contain the saved head: it was rewritten."
ALTERED_LINK = "The entry, or one before it, was altered: its link does not match."


# --- sealing


# R49
def test_an_entry_is_linked_to_the_one_before_it() -> None:
    first, second = chain(PROPOSED, APPROVED)
    assert (first.seq, second.seq, first.workspace) == (1, 2, "default")
    assert first.link == hash_link(GENESIS, hashed_bytes(first))
    assert second.link == hash_link(first.link, hashed_bytes(second))
    assert second.link == sha256(first.link.encode() + hashed_bytes(second)).hexdigest()


# R49: spelled out, so that a record of today can be verified in years
def test_the_first_link_is_made_of_these_very_bytes() -> None:
    entry = make_entry(Event("run_closed", "r1", {"run": "r"}), Head("default"), 7, SALT)
    body = (
        b'{"actor":"r1","approval":"","at":7,"data":{"run":"r"},'
        b'"digest":"","kind":"run_closed","seq":1,"workspace":"default"}'
    )
    assert entry.link == sha256(b"0" * 64 + body).hexdigest()


def hashed_bytes(entry: Entry) -> bytes:
    return skeleton(*entry[:8])


# R49
@given(
    st.text(max_size=5, alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\x00")),
    st.integers(0, 2**60),
    st.dictionaries(
        st.sampled_from(["status", "rule", "é"]), st.text('ab"\\é', max_size=4) | st.integers(), max_size=3
    ),
)
def test_what_is_hashed_is_canonical_json(name: str, when: int, data: dict[str, object]) -> None:
    entry = make_entry(Event(name, name, data, name, {"c": name}), Head(name), when, SALT)
    content = canonical({"c": name})
    expected = {
        "actor": name,
        "approval": name,
        "at": when,
        "data": data,
        "digest": sha256(SALT + content).hexdigest(),
        "kind": name,
        "seq": 1,
        "workspace": name,
    }
    assert hashed_bytes(entry) == canonical(expected)
    assert (entry.salt, entry.content) == (SALT, content)


# R49
def test_an_entry_without_content_has_no_digest_and_keeps_no_salt() -> None:
    entry = make_entry(Event("run_closed", "r1", {}), Head("w", 4, "f" * 64, 9), NOW, SALT)
    assert (entry.seq, entry.digest, entry.salt, entry.content) == (5, "", None, None)


def test_a_head_has_a_json_form() -> None:
    assert Head("w", 3, "aa", 9).to_json() == {"workspace": "w", "seq": 3, "link": "aa", "at": 9}


# --- whole chains


# R49
def test_a_whole_chain_has_no_faults() -> None:
    verifier = verify(MIXED, last_head(MIXED))
    assert (verifier.violations, verifier.erased, verifier.head) == ([], 0, last_head(MIXED))
    assert verify([]).violations == []


# R49
@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_a_chain_can_be_fed_in_pieces(size: int) -> None:
    verifier = Verifier("default", last_head(MIXED))
    for start_at in range(0, len(MIXED), size):
        verifier.feed(MIXED[start_at : start_at + size])
    verifier.finish(last_head(MIXED))
    assert verifier.violations == []


Changes = Callable[[], list[Change[Approval]]]


def apply_verbs(first: Change[Approval], *verbs: Callable[[Approval], Change[Approval]]) -> list[Change[Approval]]:
    changes = [first]
    for verb in verbs:
        changes.append(verb(changes[-1].state))
    return changes


def request(terms: Ask = Ask(), **more: object) -> Change[Approval]:  # noqa: B008  frozen
    return request_approval(proposal(**more), terms, at())


ESCALATION = Ask("r", (Stage(FINANCE),), escalation_steps=(EscalationStep(1, users("dave")),), remind=(2,))
HISTORIES: dict[str, Changes] = {
    "approved, run and done": lambda: apply_verbs(
        request(),
        lambda a: decide(a, approve(a), ALICE, at()),
        start_call,
        lambda a: finish(a, 1, Payload(result=b"5"), at(), ok=True),
    ),
    "allowed, run and failed": lambda: apply_verbs(
        allow(proposal(), Allow("r"), at()), start_call, lambda a: finish(a, 1, Payload(error="Boom."), at(), ok=False)
    ),
    "two people, one rejection, undone": lambda: apply_verbs(
        request(TWO_OF_FINANCE),
        lambda a: decide(a, approve(a), ALICE, at()),
        lambda a: decide(a, reject(a), BOB, at()),
        lambda a: undo(a, BOB, at()),
        lambda a: decide(a, approve(a), BOB, at()),
        lambda a: cancel(a, "agent", "", at()),
    ),
    "edited into a stricter rule": lambda: apply_verbs(
        request(),
        lambda a: decide(a, edit(a), ALICE, at(), prepare_edit(a, OTHER_ARGS, TWO_OF_FINANCE)),
        lambda a: decide(a, approve(a), BOB, at()),
        lambda a: start_call(a, args=OTHER_ARGS),
    ),
    "delegated, escalated, reminded, refused and expired": lambda: apply_verbs(
        request(ESCALATION),
        lambda a: delegate(a, users("carol"), ALICE, at()),
        lambda a: fire_next_timer(a, at(NOW + 1)),
        lambda a: fire_next_timer(a, at(NOW + 2)),
        lambda a: decide(a, approve(a), ADMIN, at()),
        lambda a: fire_next_timer(a, at(NOW + 10**9)),
    ),
    "approved by time and lapsed": lambda: apply_verbs(
        request(Ask(stages=(Stage(FINANCE, 2),), on_expiry="approve")),
        lambda a: fire_next_timer(a, at(NOW + 10**9)),
        lambda a: fire_next_timer(a, at(NOW + 2 * 10**9)),
    ),
    "lost, finished late and resolved": lambda: apply_verbs(
        allow(proposal(), Allow(), at()),
        start_call,
        lambda a: abandon(a, 1, at()),
        lambda a: finish(a, 1, Payload(result=b"5"), at(), ok=True),
        lambda a: resolve_unknown(a, "seen", CAROL, None, at(), ok=True),
    ),
    "idempotent, started twice": lambda: apply_verbs(
        allow(proposal(replace(PAY, idempotent=True)), Allow(), at()),
        start_call,
        lambda a: start(store_row(a), "r2", LEASE, "", at(NOW + LEASE), runner_is_dead=False),
        lambda a: finish(a, 2, Payload(), at(NOW + LEASE), ok=True),
    ),
    "claimed, asked about, replied to, commented on, released and answered": lambda: apply_verbs(
        request(),
        lambda a: claim(a, ALICE, at()),
        lambda a: ask(a, "Why?", ALICE, at()),
        lambda a: claim(a, VIEWER, at()),
        lambda a: reply(a, 1, "Because.", "agent:helper", at()),
        lambda a: comment(a, "Fine.", ALICE),
        lambda a: release(a, ALICE, at()),
        lambda a: decide(a, respond(a), ALICE, at()),
        lambda a: comment(a, "Too late?", BOB),
    ),
    "answered": lambda: apply_verbs(request(), lambda a: decide(a, respond(a), ALICE, at())),
}


# R49
@pytest.mark.parametrize("name", HISTORIES)
def test_a_valid_history_violates_no_invariant(name: str) -> None:
    changes = HISTORIES[name]()
    result = [one for change in changes for one in change.events]
    verifier = verify(chain(*result))
    assert verifier.violations == []
    (approval_id,) = verifier.invariants
    standing, last = verifier.invariants.state(approval_id), changes[-1].state
    assert standing is not None
    assert (standing.status, standing.binding, standing.fence) == (last.status, last.binding, last.lease.fence)


# --- alterations


ALTERED: dict[str, object] = {
    "workspace": "other",
    "seq": 99,
    "at": NOW - 1,
    "kind": "reminded",
    "actor": "eve",
    "approval_id": "a2",
    "data": '{"status":"pending"}',
    "digest": "f" * 64,
    "link": "f" * 64,
}


# R49
@pytest.mark.parametrize("number", range(len(MIXED)))
@pytest.mark.parametrize("field", ALTERED)
def test_every_alteration_of_an_entry_is_found(field: str, number: int) -> None:
    forged = [*MIXED[:number], MIXED[number]._replace(**{field: ALTERED[field]}), *MIXED[number + 1 :]]
    found = verify(forged, kept=last_head(MIXED)).violations
    assert found, "nothing was found"
    assert found[0].seq in {MIXED[number].seq, forged[number].seq}, "the first fault is where it was altered"


# R49
@pytest.mark.parametrize("number", range(5))
def test_altered_content_is_found(number: int) -> None:
    old = MIXED[number]
    for fields in ({"content": b'{"via":"mail"}'}, {"salt": b"pepper"}, {"content": b""}):
        forged = [*MIXED[:number], old._replace(**fields), *MIXED[number + 1 :]]
        assert verify(forged).violations == [Violation(old.seq, "The content of the entry was altered.")]


# R49
def test_content_cannot_be_added_where_there_was_none() -> None:
    forged = [*MIXED[:-1], MIXED[-1]._replace(content=b"{}", salt=SALT)]
    assert verify(forged).violations == [Violation(6, "Content was added to an entry that had none.")]


# R49
@pytest.mark.parametrize("number", range(len(MIXED)))
def test_every_deletion_is_found(number: int) -> None:
    forged = [*MIXED[:number], *MIXED[number + 1 :]]
    assert verify(forged, kept=last_head(MIXED)).violations


# R49
@pytest.mark.parametrize("number", range(len(MIXED) - 1))
def test_every_swap_is_found(number: int) -> None:
    swapped = [*MIXED[:number], MIXED[number + 1], MIXED[number], *MIXED[number + 2 :]]
    assert verify(swapped, kept=last_head(MIXED)).violations
    renumbered = [entry._replace(seq=place + 1) for place, entry in enumerate(swapped)]
    assert verify(renumbered, kept=last_head(MIXED)).violations


# R49
@pytest.mark.parametrize("number", range(len(MIXED) + 1))
def test_every_insertion_is_found(number: int) -> None:
    before = last_head(MIXED[:number]) if number else Head("default")
    extra = make_entry(event("voted", "pending"), before, before.at, SALT)
    forged = [*MIXED[:number], extra, *MIXED[number:]]
    assert verify(forged, kept=last_head(MIXED)).violations


# R49
@pytest.mark.parametrize("length", range(len(MIXED)))
def test_a_cut_tail_is_found_by_the_head_that_was_kept(length: int) -> None:
    cut = MIXED[:length]
    end = last_head(cut) if cut else Head("default")
    assert verify(cut, None, end).violations == [], "a chain alone does not show it"
    (fault,) = verify(cut, last_head(MIXED), end).violations
    assert (fault.seq, "tail was cut" in fault.message) == (6, True)
    (by_row,) = verify(cut, None, last_head(MIXED)).violations
    assert "tail was cut" in by_row.message


# R49
def test_a_whole_rewrite_is_found_by_the_head_that_was_kept() -> None:
    other = chain(
        Event("denied", "agent", {"tool": "y"}, "", {"reason": "no"}), *COMPLETE_HISTORY, Event("run_closed", "r1", {})
    )
    assert verify(other).violations == [], "a chain alone does not show it"
    for exported in (last_head(MIXED), last_head(MIXED[:1]), last_head(MIXED[:3])):
        assert verify(other, exported).violations == [Violation(exported.seq, REWRITTEN)]


# R49
def test_an_old_head_fits_a_chain_that_grew() -> None:
    for length in range(1, len(MIXED)):
        assert verify(MIXED, last_head(MIXED[:length])).violations == []
    assert verify(MIXED, Head("default")).violations == []


# R49
@pytest.mark.parametrize("kept", [Head("default", 6, "f" * 64), Head("default", 5, MIXED[-1].link), Head("default")])
def test_a_stored_head_that_is_not_the_end_is_found(kept: Head) -> None:
    assert any("stored head" in fault.message for fault in verify(MIXED, None, kept).violations)


# R49
def test_the_chain_of_another_workspace_is_not_this_ones() -> None:
    foreign = chain(*COMPLETE_HISTORY, workspace="other")
    assert [fault.message for fault in verify(foreign).violations] == [
        "The entry belongs to the workspace 'other'."
    ] * 4


# R49
@pytest.mark.parametrize("seq", [0, 1, 2, 8])
def test_numbers_that_are_not_consecutive_are_found_though_the_links_fit(seq: int) -> None:
    (first,) = chain(PROPOSED)
    second = make_entry(APPROVED, Head("default", seq, first.link, first.at), NOW, SALT)
    found = verify([first, second]).violations
    assert found == ([] if seq == 1 else [Violation(seq + 1, "Entry 2 is missing or out of order.")])


# R49
def test_time_that_runs_backwards_is_found() -> None:
    first = make_entry(PROPOSED, Head("default"), NOW, SALT)
    second = make_entry(APPROVED, last_head([first]), NOW - 1, SALT)
    assert verify([first, second]).violations == [Violation(2, "Its time is before that of the previous entry.")]
    assert verify([first, make_entry(APPROVED, last_head([first]), NOW, SALT)]).violations == []


# --- erasure


def erased_event(*ranges: object, actor: str = "ann", scope: object = "thread", **more: object) -> Event:
    return Event("erased", actor, {"scope": scope, "entries": list(ranges), "approvals": 1, **more})


def without_content(entries: Sequence[Entry], numbers: set[int]) -> list[Entry]:
    return [entry._replace(salt=None, content=None) if entry.seq in numbers else entry for entry in entries]


# R49
@given(st.sets(st.integers(1, 5), min_size=1))
def test_erasure_leaves_the_chain_whole_and_is_counted(numbers: set[int]) -> None:
    entries = chain(*COMPLETE_CHAIN, erased_event(*([number, number] for number in sorted(numbers))))
    verifier = verify(without_content(entries, numbers), last_head(entries))
    assert (verifier.violations, verifier.erased) == ([], len(numbers))


# R49
@pytest.mark.parametrize(
    ("ranges", "found"),
    [
        ([], {1: "The contents of entries 1 to 3 are missing, and no entry records an erasure."}),
        ([[1, 2]], {3: "The content of entry 3 is missing, and no entry records an erasure."}),
        ([[2, 2]], {1: "The content of entry 1 is missing", 3: "The content of entry 3 is missing"}),
        ([[3, 5]], {1: "The contents of entries 1 to 2 are missing"}),
        ([[1, 1], [2, 3]], {}),
        ([[2, 3], [1, 2]], {}),
        ([[1, 5]], {}),
    ],
)
def test_content_that_is_gone_needs_an_entry_that_says_who_erased_it(
    ranges: list[object], found: dict[int, str]
) -> None:
    entries = chain(*COMPLETE_CHAIN, erased_event(*ranges)) if ranges else chain(*COMPLETE_CHAIN)
    verifier = verify(without_content(entries, {1, 2, 3}))
    assert [fault.seq for fault in verifier.violations] == list(found)
    assert all(fault.message.startswith(found[fault.seq]) for fault in verifier.violations)
    assert verifier.erased == len([n for n in (1, 2, 3) if any(a <= n <= b for a, b in ranges)])


# R49
def test_content_without_its_salt_is_gone_too() -> None:
    kept = [MIXED[0]._replace(salt=None), MIXED[1]._replace(content=None), *MIXED[2:]]
    found = "The contents of entries 1 to 2 are missing, and no entry records an erasure."
    assert verify(kept).violations == [Violation(1, found)]


# R49
def test_content_that_was_kept_before_it_was_erased_is_no_fault() -> None:
    assert verify(chain(*COMPLETE_CHAIN, erased_event([1, 3]))).violations == []


# R49
@pytest.mark.parametrize("ranges", [[[1, 7]], [[7, 7]], [[8, 9]], [[0, 1]], [[3, 2]], [[1, 2], [6, 7]]])
def test_only_what_came_before_can_be_said_to_be_erased(ranges: list[object]) -> None:
    entries = chain(*COMPLETE_CHAIN, erased_event(*ranges), *COMPLETE_CHAIN[:1])
    found = verify(without_content(entries, {1})).violations
    assert found[0] == Violation(7, "The entry names entries as erased that do not come before it.")
    assert found[1].seq == 1, "and so it covers nothing"


# R49
@pytest.mark.parametrize(
    "data",
    [
        "[]",
        "{",
        "{}",
        '{"approvals":1,"entries":[[1,1]]}',
        '{"approvals":1,"entries":[[1,1]],"scope":"all"}',
        '{"approvals":1,"entries":[[1,1]],"scope":5}',
        '{"approvals":1,"entries":[[1]],"scope":"person"}',
        '{"approvals":1,"entries":[[true,1]],"scope":"person"}',
        '{"approvals":1,"entries":[5],"scope":"person"}',
        '{"approvals":1,"entries":"all","scope":"person"}',
        '{"approvals":null,"entries":[[1,1]],"scope":"person"}',
    ],
)
def test_an_erasure_that_cannot_be_understood_is_a_fault(data: str) -> None:
    entries = chain(*COMPLETE_CHAIN[:2], erased_event([1, 1]))
    last = entries[-1]
    forged = last._replace(data=data, link=hash_link(entries[-2].link, skeleton(*last[:6], data, last.digest)))
    found = verify([*entries[:-1], forged]).violations
    assert found == [Violation(3, "The entry does not list in a known format what was erased.")]


# R49
def test_an_erasure_does_not_belong_to_an_approval() -> None:
    stray = erased_event([1, 1])._replace(approval_id="a1")
    entries = chain(PROPOSED, stray)
    found = verify(without_content(entries, {1})).violations
    assert found[0] == Violation(2, "An entry of the kind erased cannot lead to None.")
    assert found[1].seq == 1


# R49
def test_erasures_are_summed_up_by_scope_and_actor() -> None:
    events = (
        *COMPLETE_CHAIN,
        erased_event([1, 2], actor="interlock", scope="retention"),
        erased_event([3, 3], reason="asked for"),
        erased_event([5, 5], [7, 8], actor="interlock", scope="retention"),
    )
    verifier = verify(chain(*events))
    assert [result.to_json() for result in verifier.erasures.summary()] == [
        {
            "scope": "retention",
            "actor": "interlock",
            "entries": 5,
            "approvals": 2,
            "times": 2,
            "since": NOW + 6,
            "until": NOW + 8,
        },
        {
            "scope": "thread",
            "actor": "ann",
            "entries": 1,
            "approvals": 1,
            "times": 1,
            "since": NOW + 7,
            "until": NOW + 7,
        },
    ]


# --- parts


def verify_in_parts(entries: Sequence[Entry], cuts: Sequence[int], exported: Head | None = None) -> Verifier:
    """Each part alone, then joined; where that fails, one after the other: as `audit verify` does it."""
    edges = [0, *sorted(cuts), len(entries)]
    whole = Verifier("default", exported)
    for begin, end in pairwise(edges):
        part = Verifier("default", exported, last_head(entries[:begin]) if begin else None)
        part.feed(entries[begin:end])
        if not whole.join(part):
            return verify(entries, exported)
    whole.finish(last_head(entries) if entries else Head("default"))
    return whole


def verifier_state(verifier: Verifier) -> tuple[object, ...]:
    standings = {name: verifier.invariants.state(name) for name in verifier.invariants}
    return verifier.violations, verifier.erased, verifier.head, standings, verifier.erasures.summary()


LONG = chain(
    *COMPLETE_CHAIN,
    *(one._replace(approval_id="a2") for one in COMPLETE_HISTORY[:2]),
    erased_event([1, 2]),
    event("decision_refused", None)._replace(approval_id="a2"),
    STARTED._replace(approval_id="a2"),
    PROPOSED._replace(approval_id="a3"),
    erased_event([3, 3], actor="bob"),
)


# R49
@given(st.lists(st.integers(0, len(LONG)), max_size=4))
def test_a_chain_can_be_verified_in_parts(cuts: list[int]) -> None:
    entries = without_content(LONG, {1, 2, 3})
    assert verifier_state(verify_in_parts(entries, cuts, last_head(LONG))) == verifier_state(
        verify(entries, last_head(LONG))
    )
    assert verify_in_parts(entries, cuts).violations == []


damaged_chains: st.SearchStrategy[Callable[[list[Entry], int], list[Entry]]] = st.sampled_from(
    [
        lambda entries, n: [*entries[:n], *entries[n + 1 :]],
        lambda entries, n: [*entries[:n], entries[n], *entries[n:]],
        lambda entries, n: [*entries[:n], *entries[n:][1::-1], *entries[n + 2 :]],
        lambda entries, n: [*entries[:n], entries[n]._replace(actor="eve"), *entries[n + 1 :]],
        lambda entries, n: [*entries[:n], entries[n]._replace(salt=None, content=None), *entries[n + 1 :]],
        lambda entries, n: [*entries[:n], entries[n]._replace(data="{"), *entries[n + 1 :]],
        lambda entries, n: entries,
    ]
)
histories = st.lists(
    st.tuples(
        st.sampled_from([*COMPLETE_HISTORY, event("rejected", "rejected"), event("undone", "pending")]),
        st.sampled_from(["a1", "a2"]),
    ).map(lambda pair: pair[0]._replace(approval_id=pair[1])),
    min_size=1,
    max_size=8,
)


# R49
@given(histories, damaged_chains, st.integers(0, 7), st.lists(st.integers(0, 8), max_size=3))
def test_parts_find_what_the_whole_finds(
    events: list[Event], damage: Callable[[list[Entry], int], list[Entry]], place: int, cuts: list[int]
) -> None:
    entries = chain(*events)
    damaged = damage(entries, place % len(entries))
    kept = last_head(entries)
    assert verifier_state(verify_in_parts(damaged, [min(cut, len(damaged)) for cut in cuts], kept)) == verifier_state(
        verify(damaged, kept)
    )


# R49
def test_an_approval_that_begins_in_two_parts_is_found() -> None:
    twice = chain(PROPOSED, PROPOSED)
    assert verifier_state(verify_in_parts(twice, [1])) == verifier_state(verify(twice))
    assert [fault.seq for fault in verify(twice).violations] == [2]


# R49
def test_a_part_that_begins_elsewhere_is_not_joined() -> None:
    whole = Verifier("default")
    whole.feed(MIXED[:2])
    late = Verifier("default", start=last_head(MIXED[:3]))
    assert not whole.join(late)


# R49
def test_what_began_before_the_first_entry_is_set_aside() -> None:
    verifier = Verifier("default", start=last_head(LONG[:3]))
    verifier.feed(LONG[3:])
    verifier.finish(last_head(LONG))
    assert verifier.violations == []
    assert [entry.seq for entry in verifier.invariants.unknown_entries] == [4, 5]
    assert sorted(verifier.invariants) == ["a2", "a3"]


# R49
def test_a_head_must_not_be_older_than_the_first_entry() -> None:
    for kept, found in ((MIXED[:1], "is older than the first entry"), (MIXED[:2], ""), (MIXED[:3], "")):
        verifier = Verifier("default", last_head(kept), last_head(MIXED[:2]))
        verifier.feed(MIXED[2:])
        verifier.finish()
        assert [found in fault.message for fault in verifier.violations] == ([True] if found else [])
    verifier = Verifier("default", Head("default", 2, "f" * 64), last_head(MIXED[:2]))
    assert verifier.violations == [Violation(2, REWRITTEN)]


# R49
def test_raw_skeletons_are_hashed_as_they_are() -> None:
    verifier = Verifier("default")
    verifier.feed_raw((entry, hashed_bytes(entry)) for entry in MIXED)
    verifier.finish(last_head(MIXED))
    assert verifier.violations == []
    spaced = Verifier("default")
    spaced.feed_raw([(MIXED[0], hashed_bytes(MIXED[0]).replace(b":", b": "))])
    assert [fault.message for fault in spaced.violations] == [ALTERED_LINK]


# R49
@pytest.mark.parametrize("fields", [{"at": "noon"}, {"content": "text"}, {"data": 5}, {"salt": 5}])
def test_an_entry_that_cannot_be_read_is_a_fault_and_no_crash(fields: dict[str, object]) -> None:
    forged = [*MIXED[:4], MIXED[4]._replace(**fields), *MIXED[5:]]
    for found in (verify(forged).violations, verify_raw(forged)):
        assert {fault.seq for fault in found} == {5}
        assert found[-1].message.startswith("The entry was altered: it cannot be read: ")


def verify_raw(entries: Sequence[Entry]) -> list[Violation]:
    verifier = Verifier("default")
    verifier.feed_raw((entry, hashed_bytes(whole)) for entry, whole in zip(entries, MIXED, strict=True))
    verifier.finish(last_head(MIXED))
    return verifier.violations


# --- the invariants, each violated once


ONCE = "An approval has one proposal, and it comes first."


# R49
@pytest.mark.parametrize(
    ("events", "found"),
    [
        ((STARTED,), "nothing became running: that is not a legal transition."),
        ((APPROVED,), ONCE),
        ((event("approved", "approved", binding=""),), ONCE),
        ((PROPOSED, STARTED), "pending became running: that is not a legal transition."),
        ((PROPOSED, STARTED), "What ran is not what was approved."),
        ((PROPOSED, event("rejected", "rejected"), STARTED), "rejected became running"),
        ((PROPOSED, event("rejected", "rejected"), APPROVED), "rejected became approved"),
        ((PROPOSED, event("expired", "expired"), APPROVED), "expired became approved"),
        ((PROPOSED, event("cancelled", "cancelled"), STARTED), "cancelled became running"),
        ((*COMPLETE_HISTORY, STARTED), "succeeded became running"),
        ((*COMPLETE_HISTORY, event("undone", "pending")), "succeeded became pending"),
        ((*COMPLETE_HISTORY[:3], event("started", "running", "r2", fence=2)), "Started a second time"),
        (
            (*COMPLETE_HISTORY[:3], event("lost", "unknown"), event("started", "running", fence=2)),
            "unknown became running",
        ),
        ((*COMPLETE_HISTORY[:2], event("started", "running", fence=2)), "The fence is 2; the next one is 1."),
        ((*COMPLETE_HISTORY[:2], event("started", "running")), "The fence is None; the next one is 1."),
        (
            (*COMPLETE_HISTORY[:2], event("started", "running", fence=1, binding=B2)),
            "What ran is not what was approved.",
        ),
        (
            (*COMPLETE_HISTORY[:2], event("started", "running", fence=1, binding=B2)),
            "The entry is about other arguments",
        ),
        ((PROPOSED, event("approved", "approved", binding=B2)), "The entry is about other arguments"),
        ((PROPOSED, event("delegated", "approved"), STARTED), "What ran is not what was approved."),
        ((PROPOSED, event("proposed", "pending", binding=B2)), ONCE),
        ((PROPOSED, event("allowed", "approved", binding=B2)), ONCE),
        ((PROPOSED, event("edited", "pending", binding=B2), APPROVED), "The entry is about other arguments"),
        ((PROPOSED, event("approved", "melted")), "An entry of the kind approved cannot lead to melted"),
        ((PROPOSED, event("reminded", "running")), "An entry of the kind reminded cannot lead to running"),
        ((PROPOSED, event("melted", "pending")), "An entry of the kind melted cannot lead to pending"),
        ((PROPOSED, Event("started", "r", {"binding": "b"}, "id")), "An entry of the kind started cannot lead to None"),
        ((event("proposed", "pending", expires_at=1), APPROVED), "Approved after the deadline"),
    ],
)
def test_a_violated_invariant_is_found(events: tuple[Event, ...], found: str) -> None:
    said = violations(*events)
    assert any(message.startswith(found) for message in said), said


# R49
def test_a_second_proposal_is_reported_and_replayed_from_there() -> None:
    wrong = ["succeeded became pending: that is not a legal transition.", ONCE]
    assert violations(*COMPLETE_HISTORY, PROPOSED, APPROVED) == wrong
    verifier = verify(chain(*COMPLETE_HISTORY, PROPOSED))
    assert (len(verifier.invariants), list(verifier.invariants)) == (1, ["a1"])


# R49
def test_an_approval_without_a_proposal_is_reported_once() -> None:
    assert violations(event("approved", "approved", binding="")) == [ONCE]
    assert violations(event("started", "running", binding="", fence=1)) == [
        "nothing became running: that is not a legal transition.",
        ONCE,
    ]


# R49
@pytest.mark.parametrize("events", [(STARTED,), COMPLETE_HISTORY])
def test_no_agent_and_no_tool_is_made_up_for_a_call_that_never_began_or_is_over(events: tuple[Event, ...]) -> None:
    state = verify(chain(*events)).invariants.state("a1")
    assert state is not None
    assert (state.agent, state.tool, state.first_content) == ("", "", None)


# R49
def test_a_binding_with_spaces_is_kept_whole() -> None:
    history = [each._replace(data={**each.data, "binding": "a b c"}) for each in (*COMPLETE_HISTORY, STARTED)]
    assert violations(*history) == [
        "succeeded became running: that is not a legal transition.",
        "What ran is not what was approved.",
        "The fence is 1; the next one is 2.",
    ]


TWO_VOTES = event("proposed", "pending", "agent", quorum=[1, 1])
VOTES_BY_BOB = event("approved", "approved", "bob")


# R48, R49
@pytest.mark.parametrize(
    ("events", "found"),
    [
        ((TWO_VOTES, VOTES_BY_BOB), ["Approved by 1 of 2 people."]),
        ((TWO_VOTES, VOTED, APPROVED), ["Approved by 1 of 2 people."]),
        ((TWO_VOTES, VOTED, VOTED, APPROVED), ["Approved by 1 of 2 people."]),
        ((TWO_VOTES, VOTED, VOTES_BY_BOB), []),
        ((TWO_VOTES, VOTED, event("rejected", "rejected", "bob"), event("undone", "pending", "bob"), VOTES_BY_BOB), []),
        ((TWO_VOTES, VOTED, event("edited", "pending", quorum=[2]), VOTES_BY_BOB), ["Approved by 1 of 2 people."]),
        (
            (TWO_VOTES, VOTED, event("reviewer_removed", "pending", voters=["alice"]), VOTES_BY_BOB),
            ["Approved by 1 of 2 people."],
        ),
        ((TWO_VOTES, VOTED, event("reviewer_removed", "pending", voters=[]), VOTES_BY_BOB), []),
        ((TWO_VOTES, VOTED, event("reviewer_removed", "pending", voters="alice"), VOTES_BY_BOB), []),
        ((TWO_VOTES, event("edited", "pending", quorum=[1]), VOTES_BY_BOB), ["Approved by 1 of 2 people."]),
        ((PROPOSED, event("edited", "pending", quorum=[1, 2]), VOTES_BY_BOB), ["Approved by 1 of 3 people."]),
        ((TWO_VOTES, event("approved", "approved", "interlock", by="expiry")), []),
        ((event("proposed", "pending", quorum=["2", 2]), VOTES_BY_BOB), ["Approved by 1 of 2 people."]),
        ((event("proposed", "pending"), VOTES_BY_BOB), []),
    ],
)
def test_a_quorum_is_counted_by_people(events: tuple[Event, ...], found: list[str]) -> None:
    assert violations(*events) == found


# R46, R49
def test_an_idempotent_call_may_be_started_again_with_the_next_fence() -> None:
    born = event("allowed", "approved", "agent", idempotent=True)
    again = event("started", "running", "r2", fence=2)
    assert violations(born, STARTED, again) == []
    assert violations(born, STARTED, STARTED) == ["The fence is 1; the next one is 2."]
    assert "Started a second time" in violations(event("allowed", "approved", idempotent="yes"), STARTED, again)[0]


# R49
def test_an_edit_binds_what_comes_after_it() -> None:
    edited = event("edited", "pending", binding=B2, quorum=[1])
    approved = event("approved", "approved", binding=B2)
    assert violations(PROPOSED, edited, approved, event("started", "running", fence=1, binding=B2)) == []
    old = violations(PROPOSED, edited, approved, STARTED)
    assert old[0] == "What ran is not what was approved."


# R41, R49
def test_refused_attempts_and_evidence_change_nothing() -> None:
    attempts = (event("decision_refused", None), event("finished_late", None, fence=7, binding=B9))
    assert violations(PROPOSED, *attempts, APPROVED, *attempts, STARTED, *attempts, SUCCEEDED) == []


# R49
@pytest.mark.parametrize("data", ["", "{", "[]", "5", '"x"', "null", "[" * 100_000, "NaN"])
def test_data_that_is_no_object_is_a_fault_and_no_crash(data: str) -> None:
    first = chain(PROPOSED)[0]
    body = skeleton(*first[:6], data, first.digest)
    entry = first._replace(data=data, link=hash_link(GENESIS, body))
    assert [fault.message for fault in verify([entry]).violations] == ["The data of the entry is not a JSON object."]


# R49
@pytest.mark.parametrize(("before", "after"), [("", ""), (" ", ""), ("", "\n"), ("\t", " ")])
def test_data_is_read_however_its_json_is_spaced(before: str, after: str) -> None:
    entries, last = [], Head("default")  # type: list[Entry], Head
    for number, one in enumerate((PROPOSED, APPROVED, STARTED._replace(data={**STARTED.data, "fence": 2}))):
        entry = make_entry(one, last, NOW + number, SALT)
        data = f"{before}{entry.data}{after}"
        link = hash_link(last.link, skeleton(*entry[:6], data, entry.digest))
        entries.append(entry._replace(data=data, link=link))
        last = last_head(entries)
    assert verify(entries).violations == [Violation(3, "The fence is 2; the next one is 1.")]


# R49
def test_a_digest_that_looks_like_data_is_not_taken_for_it() -> None:
    before = [one._replace(approval_id="before") for one in (*COMPLETE_HISTORY[:2], VOTED, *COMPLETE_HISTORY[2:])]
    *entries, last = chain(*before, PROPOSED, APPROVED, STARTED._replace(data={**STARTED.data, "binding": B2}))
    harmless = next(entry.data for entry in entries if entry.kind == "started")
    body = skeleton(*last[:7], harmless)
    forged = last._replace(digest=harmless, link=hash_link(entries[-1].link, body))
    assert "What ran is not what was approved." in [fault.message for fault in verify([*entries, forged]).violations]


# R49
@pytest.mark.parametrize(
    "spelled",
    [
        '{"binding":"%s","binding":"%s",',
        '{"binding":"%s","x":"%s","binding":"",',
        '{"binding":"%s","x":"%s","\\u0062inding":"",',
    ],
)
def test_a_second_binding_is_a_violation(spelled: str) -> None:
    """The last one counts, as for every reader of JSON, though the data begins as it should."""
    entries = chain(*(one._replace(approval_id="before") for one in COMPLETE_HISTORY), *COMPLETE_HISTORY[:1])
    last = make_entry(APPROVED, last_head(entries), NOW + 9, SALT)
    data = last.data.replace(f'{{"binding":"{B1}",', spelled % (B1, B2))
    assert data != last.data
    forged = last._replace(data=data, link=hash_link(entries[-1].link, skeleton(*last[:6], data, last.digest)))
    assert verify([*entries, forged]).violations[0].message.startswith("The entry is about other arguments")
    others = chain(*(one._replace(approval_id=name) for name in ("a1", "a2", "a3") for one in (PROPOSED, APPROVED)))
    copied = [entry._replace(data=data) if entry.kind == "approved" else entry for entry in others]
    found = [fault for fault in verify(copied).violations if fault.message.startswith("The entry is about")]
    assert [fault.seq for fault in found] == [2, 4, 6], "nor by saying it again"


# R49
def test_approvals_do_not_mix() -> None:
    other = Event("started", "r1", {"status": "running", "binding": B1, "fence": 1}, "a2")
    said = violations(PROPOSED, APPROVED, other)
    assert said[0].startswith("nothing became running")
    assert json.loads(chain(other)[0].data)["fence"] == 1
    assert pending().id not in {"a1", "a2"}

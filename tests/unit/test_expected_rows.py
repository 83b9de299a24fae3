"""Expected rows: what ledger entries say about an approval row; valid histories match, every other row differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from interlock.core import freeze
from interlock.core.approval import approval, discussion, execute, timers
from interlock.core.approval import vote as voting
from interlock.core.approval.approval import Approval, DecisionRecord, ErasureRecord, PreparedEdit, decide
from interlock.core.approval.propose import allow, allow_by_grant, request_approval
from interlock.core.call import Subject
from interlock.core.canonical import canonical, digest, plain_json
from interlock.core.decision import Acknowledgement, Approve, Edit, Reject, Respond
from interlock.core.errors import Problem
from interlock.core.grant import Grant
from interlock.core.ledger.chain import Entry, Head, make_entry
from interlock.core.ledger.erasure import erase_content
from interlock.core.ledger.event import Change, Event, Payload, Stored
from interlock.core.ledger.expected_rows import ExpectedRow, RowDifference
from interlock.core.ledger.row_digests import add_row_digests, shown_texts_sha256, subject_sha256, to_json_value
from interlock.core.policy.policy import Allow, Ask, EscalationStep, People, Stage
from interlock.core.removal import UpdatedMember, withdraw_participation
from tests.unit.builders import ALICE, BOB, DAVE, FINANCE, NOW, PAY, at, proposal, replace_fields

TWO_STAGES = Ask(
    "two",
    (Stage(FINANCE, 2),),
    remind=(1,),
    escalation_steps=(EscalationStep(2, People(frozenset({"dave"}))),),
    undo_window=9,
)
ONE_APPROVER = Ask("one", (Stage(FINANCE),), undo_window=9)
SILENCE_APPROVES = Ask("silent", on_expiry="approve")
OK = Payload(result=b'"ok"')


def without_row_digests(change: Change[Approval], old: Approval | None = None) -> tuple[Event, ...]:
    """As an earlier version wrote them."""
    return change.events


@dataclass
class ApprovalHistory:
    """A row and its entries, as the store would keep them."""

    stamp: Callable[..., tuple[Event, ...]] = add_row_digests
    stored: Stored = field(init=False)
    entries: list[Entry] = field(default_factory=list)

    def propose(self, change: Change[Approval]) -> ApprovalHistory:
        self.stored = Stored(change.state, change.payload or Payload())
        return self._seal(self.stamp(change), change.state.created_at)

    def apply(self, change: Change[Approval], now: int = NOW) -> ApprovalHistory:
        old, payload = self.stored
        new = change.payload or Payload()
        if new.args is not None:
            payload = payload._replace(args=new.args, shown=new.shown, sentence=new.sentence, preview=None)
        elif change.payload is not None:
            payload = payload._replace(result=new.result, error=new.error)
        self.stored = Stored(change.state, payload)
        return self._seal(self.stamp(change, old), now)

    def _seal(self, events: Sequence[Event], now: int) -> ApprovalHistory:
        for event in events:
            last = self.entries[-1] if self.entries else None
            head = Head("default", last.seq, last.link, last.at) if last else Head("default")
            self.entries.append(make_entry(event, head, now, b"salt"))
        return self

    @property
    def row(self) -> Approval:
        return self.stored.approval


def differences(entries: Sequence[Entry], stored: Stored) -> list[RowDifference]:
    expected = ExpectedRow()
    for entry in entries:
        expected.apply(entry)
    return list(expected.differences(stored))


def differing_fields(entries: Sequence[Entry], stored: Stored) -> set[str]:
    return {each.field for each in differences(entries, stored)}


def proposed(history: ApprovalHistory, terms: Ask = TWO_STAGES, **more: Any) -> ApprovalHistory:
    return history.propose(request_approval(proposal(**more), terms, at()))


def prepare_edit(row: Approval, args: object, terms: Ask) -> PreparedEdit:
    data = canonical(args)
    return PreparedEdit(
        replaces=row.args_sha256,
        args=data,
        shown=None,
        args_sha256=digest(data),
        sentence="Pay more?",
        alarms=("/to: odd",),
        terms=terms,
    )


def vote(history: ApprovalHistory, who: Any) -> ApprovalHistory:
    return history.apply(
        decide(history.row, Approve(Acknowledgement(history.row.args_sha256, history.row.findings.alarms)), who, at())
    )


def start_and_renew(history: ApprovalHistory) -> ApprovalHistory:
    history.apply(execute.start(history.stored, "attempt:1", 60_000, "", at(), runner_is_dead=False))
    return history.apply(execute.renew(history.row, 1, 60_000, at()))


def full_history(history: ApprovalHistory) -> ApprovalHistory:
    """Reminded, escalated, claimed, asked about, delegated, approved by two, and run."""
    proposed(
        history,
        agent_path=("a", "helper"),
        thread_id="t",
        agent_says="It is due.",
        preview="5",
        preview_version="v1",
        alarms=("/to: odd",),
    )
    history.apply(timers.fire_next_timer(history.row, at(NOW + 1)), NOW + 1).apply(
        timers.fire_next_timer(history.row, at(NOW + 2)), NOW + 2
    )
    history.apply(discussion.claim(history.row, ALICE, at())).apply(discussion.release(history.row, ALICE, at()))
    history.apply(discussion.claim(history.row, BOB, at())).apply(discussion.ask(history.row, "Why?", BOB, at()))
    history.apply(discussion.reply(history.row, 1, "So", "agent:helper", at()))
    history.apply(discussion.comment(history.row, "Hm", BOB))
    history.apply(approval.delegate(history.row, People(frozenset({"erin"})), ALICE, at()))
    vote(history, ALICE)
    vote(history, DAVE)
    start_and_renew(history)
    return history.apply(execute.finish(history.row, 1, OK, at(), ok=True))


def edited_history(history: ApprovalHistory) -> ApprovalHistory:
    proposed(history, ONE_APPROVER, schema_errors=(Problem("/to", "is odd"),))
    decision = Edit({"amount": 6}, Acknowledgement(history.row.args_sha256, ("/to: odd",)))
    history.apply(decide(history.row, decision, ALICE, at(), prepare_edit(history.row, {"amount": 6}, TWO_STAGES)))
    again = Edit({"amount": 7}, Acknowledgement(history.row.args_sha256, ("/to: odd",)))
    history.apply(decide(history.row, again, ALICE, at(), prepare_edit(history.row, {"amount": 7}, TWO_STAGES)))
    vote(history, BOB)
    start_and_renew(history)
    return history.apply(execute.finish(history.row, 1, Payload(error="No"), at(), ok=False))


def rejected_history(history: ApprovalHistory) -> ApprovalHistory:
    proposed(history, ONE_APPROVER)
    history.apply(decide(history.row, Reject("Never"), ALICE, at()))
    history.apply(approval.undo(history.row, ALICE, at()))
    return history.apply(decide(history.row, Reject("Never", Acknowledgement(comment="ever")), ALICE, at()))


def responded_history(history: ApprovalHistory) -> ApprovalHistory:
    proposed(history, ONE_APPROVER)
    return history.apply(decide(history.row, Respond("Ask her", seen=Acknowledgement(reason="I know")), ALICE, at()))


def expired_history(history: ApprovalHistory) -> ApprovalHistory:
    return proposed(history, ONE_APPROVER).apply(approval.expire(history.row, at(NOW + 10**9)), NOW + 10**9)


def approved_by_silence(history: ApprovalHistory) -> ApprovalHistory:
    return proposed(history, SILENCE_APPROVES).apply(approval.expire(history.row, at(NOW + 10**9)), NOW + 10**9)


def cancelled_history(history: ApprovalHistory) -> ApprovalHistory:
    return proposed(history, ONE_APPROVER).apply(approval.cancel(history.row, "agent:helper", "No need", at()))


def allowed_history(history: ApprovalHistory) -> ApprovalHistory:
    history.propose(allow(proposal(), Allow("free"), at()))
    return history.apply(execute.expire_unstarted(history.row, at()))


def granted_history(history: ApprovalHistory) -> ApprovalHistory:
    grant = Grant(
        id="g1",
        workspace="default",
        tool="pay",
        spec_sha256=PAY.sha256,
        created_by="alice",
        teams=frozenset(),
        role="reviewer",
        created_at=NOW,
        expires_at=NOW + 1,
    )
    history.propose(allow_by_grant(proposal(agent=""), ONE_APPROVER, grant, at()))
    start_and_renew(history)
    return history.apply(execute.finish(history.row, 1, Payload(), at(), ok=True))


def unknown_history(history: ApprovalHistory, *, ok: bool) -> ApprovalHistory:
    start_and_renew(history.propose(allow(proposal(), Allow("free"), at())))
    history.apply(execute.mark_unknown(history.row, at()))
    return history.apply(approval.resolve_unknown(history.row, "I looked", ALICE, b'"yes"', at(), ok=ok))


def resolved_as_done(history: ApprovalHistory) -> ApprovalHistory:
    return unknown_history(history, ok=True)


def resolved_as_failed(history: ApprovalHistory) -> ApprovalHistory:
    return unknown_history(history, ok=False)


def frozen_history(history: ApprovalHistory) -> ApprovalHistory:
    """Frozen while it is pending, and again while it is approved."""
    proposed(history, ONE_APPROVER)
    defer(history, NOW + 5)
    defer(history, NOW + 9)
    vote(history, ALICE)
    return defer(history, NOW + 12)


def defer(history: ApprovalHistory, now: int) -> ApprovalHistory:
    stop = freeze.Freeze(id="f", workspace="default", scope="workspace", name="", reason="x", by="ada", at=NOW)
    return history.apply(freeze.defer_deadlines(history.row, [stop], at(now)), now)


def removed_voter_history(history: ApprovalHistory) -> ApprovalHistory:
    """Two vote, and the one who also passed on what is theirs is removed."""
    proposed(history, replace(TWO_STAGES, stages=(Stage(FINANCE, 3),)))
    history.apply(discussion.claim(history.row, ALICE, at()))
    history.apply(approval.delegate(history.row, People(frozenset({"erin"})), ALICE, at()))
    vote(history, ALICE)
    vote(history, BOB)
    return remove_member(history, "alice")


def remove_member(history: ApprovalHistory, name: str) -> ApprovalHistory:
    change = withdraw_participation(history.row, UpdatedMember(name), "ada")
    assert change is not None
    return history.apply(change)


HISTORIES = [
    full_history,
    edited_history,
    rejected_history,
    responded_history,
    expired_history,
    approved_by_silence,
    cancelled_history,
    allowed_history,
    granted_history,
    resolved_as_done,
    resolved_as_failed,
]
HISTORIES += [frozen_history, removed_voter_history]


# R62
@pytest.mark.parametrize("stamp", [add_row_digests, without_row_digests])
@pytest.mark.parametrize("live", HISTORIES)
def test_a_valid_row_matches_its_entries(live: Callable[[ApprovalHistory], ApprovalHistory], stamp: Any) -> None:
    history = live(ApprovalHistory(stamp))
    assert differences(history.entries, history.stored) == []


@pytest.mark.parametrize("stamp", [add_row_digests, without_row_digests])
@pytest.mark.parametrize("live", HISTORIES)
def test_a_row_is_still_that_when_its_content_was_erased(
    live: Callable[[ApprovalHistory], ApprovalHistory], stamp: Any
) -> None:
    history = live(ApprovalHistory(stamp))
    bare = [entry._replace(salt=None, content=None) for entry in history.entries]
    left = Stored(erase_content(history.row, "ann", NOW), Payload())
    assert differences(bare, left) == []


@pytest.mark.parametrize("live", HISTORIES)
def test_any_one_entry_may_have_lost_its_content(live: Callable[[ApprovalHistory], ApprovalHistory]) -> None:
    history = live(ApprovalHistory())
    for place, entry in enumerate(history.entries):
        entries = [*history.entries[:place], entry._replace(salt=None, content=None), *history.entries[place + 1 :]]
        assert differences(entries, history.stored) == [], entry.kind


def replace_approval(history: ApprovalHistory, **changes: Any) -> Stored:
    return history.stored._replace(approval=replace_fields(history.row, **changes))


def replace_subject(history: ApprovalHistory, **changes: Any) -> Stored:
    return replace_approval(history, subject=history.row.subject._replace(**changes))


def replace_payload(history: ApprovalHistory, **changes: Any) -> Stored:
    return history.stored._replace(payload=history.stored.payload._replace(**changes))


OTHER_VALUES = DecisionRecord("reject", "mallory", NOW + 5, via="web", reason="No", comment="No")
ROWS: list[tuple[str, Callable[[ApprovalHistory], Stored]]] = [
    ("status", lambda history: replace_approval(history, status="failed")),
    ("binding", lambda history: replace_approval(history, binding="f" * 64)),
    ("requester", lambda history: replace_subject(history, requester="mallory")),
    ("agent", lambda history: replace_subject(history, agent="mallory")),
    ("agent_path", lambda history: replace_subject(history, agent_path=())),
    ("thread_id", lambda history: replace_subject(history, thread_id="")),
    ("run_id", lambda history: replace_subject(history, run_id="x")),
    ("call_id", lambda history: replace_subject(history, call_id="x")),
    ("effect", lambda history: replace_subject(history, effect="read")),
    ("tool", lambda history: replace_subject(history, tool="x")),
    ("idempotent", lambda history: replace_subject(history, idempotent=True)),
    ("subject", lambda history: replace_subject(history, priority="low")),
    ("subject", lambda history: replace_subject(history, owner="key:k9")),
    ("subject", lambda history: replace_subject(history, known='{"requester":"mallory"}')),
    ("terms", lambda history: replace_approval(history, terms=ONE_APPROVER)),
    ("expires_at", lambda history: replace_approval(history, expires_at=1)),
    ("created_at", lambda history: replace_approval(history, created_at=1)),
    ("start_by", lambda history: replace_approval(history, start_by=1)),
    ("release_at", lambda history: replace_approval(history, release_at=1)),
    ("fence", lambda history: replace_approval(history, fence=2)),
    ("runner", lambda history: replace_approval(history, runner="runner:2")),
    ("grant_id", lambda history: replace_approval(history, grant_id="g9")),
    ("claimed_by", lambda history: replace_approval(history, claimed_by="")),
    ("editors", lambda history: replace_approval(history, editors=("mallory",))),
    ("reminded", lambda history: replace_approval(history, reminded=0)),
    ("escalated", lambda history: replace_approval(history, escalated=0)),
    ("asked", lambda history: replace_approval(history, asked=0)),
    ("replied", lambda history: replace_approval(history, replied=())),
    ("alarms", lambda history: replace_approval(history, alarms=())),
    ("misfits", lambda history: replace_approval(history, schema_errors=(Problem("", "odd"),))),
    ("erased", lambda history: replace_approval(history, erasure=ErasureRecord(NOW, "mallory"))),
    ("delegations", lambda history: replace_approval(history, delegations=())),
    ("votes", lambda history: replace_approval(history, votes=history.row.votes[:1])),
    (
        "votes.seats",
        lambda history: replace_approval(
            history, votes=tuple(each._replace(on_behalf_of="x") for each in history.row.votes)
        ),
    ),
    *(
        (f"decision.{name}", lambda history: replace_approval(history, decision=OTHER_VALUES))
        for name in ("kind", "by", "at", "reason")
    ),
    *(
        (f"decision.{name}", lambda history: replace_approval(history, decision=OTHER_VALUES))
        for name in ("via", "comment")
    ),
    ("sentence", lambda history: replace_payload(history, sentence="x")),
    ("agent_says", lambda history: replace_payload(history, agent_says=None)),
    ("preview", lambda history: replace_payload(history, preview="x")),
    ("preview_version", lambda history: replace_payload(history, preview_version="v2")),
    ("preview_version", lambda history: replace_payload(history, preview_version=None)),
    ("result", lambda history: replace_payload(history, result=b"1")),
    ("error", lambda history: replace_payload(history, error="x")),
    ("args_sha256", lambda history: replace_approval(history, args_sha256="f" * 64)),
]


@pytest.mark.parametrize(("name", "forged"), ROWS, ids=[name for name, _ in ROWS])
def test_a_row_that_says_otherwise_differs_in_that_field(
    name: str, forged: Callable[[ApprovalHistory], Stored]
) -> None:
    history = full_history(ApprovalHistory())
    assert name in differing_fields(history.entries, forged(history))


def forge_words(history: ApprovalHistory) -> Stored:
    assert history.row.decision is not None
    return replace_approval(history, decision=history.row.decision._replace(via="x", reason="x", comment="x"))


def forge_result(history: ApprovalHistory) -> Stored:
    return replace_payload(history, result=b'"forged"')


WORDS = {"decision.via", "decision.reason", "decision.comment"}


@pytest.mark.parametrize(
    ("live", "forge", "names"),
    [
        (edited_history, lambda history: replace_approval(history, args_sha256="f" * 64), {"args_sha256"}),
        (edited_history, lambda history: replace_payload(history, preview="x"), {"preview"}),
        *((live, forge_result, {"result"}) for live in (responded_history, resolved_as_done, resolved_as_failed)),
        *((live, forge_words, WORDS) for live in (rejected_history, cancelled_history, full_history)),
        *((live, forge_words, WORDS) for live in (responded_history, expired_history, approved_by_silence)),
        *((live, forge_words, WORDS) for live in (allowed_history, granted_history)),
    ],
)
def test_what_a_row_says_otherwise_after_other_histories_is_found(
    live: Callable[[ApprovalHistory], ApprovalHistory], forge: Callable[[ApprovalHistory], Stored], names: set[str]
) -> None:
    history = live(ApprovalHistory())
    assert differing_fields(history.entries, forge(history)) == names


def test_a_version_stays_through_an_edit_and_none_is_added_to_a_row_without_one() -> None:  # R45
    history = proposed(ApprovalHistory(), preview="5", preview_version="v1")
    edit = prepare_edit(history.row, {"amount": 6, "to": "ann"}, TWO_STAGES)
    seen = Acknowledgement(history.row.args_sha256, ("/to: odd",))
    history.apply(decide(history.row, Edit({"amount": 6, "to": "ann"}, seen), ALICE, at(), edit))
    assert "edited" in [entry.kind for entry in history.entries]
    assert (history.stored.payload.preview, history.stored.payload.preview_version) == (None, "v1")
    assert differences(history.entries, history.stored) == []
    assert differing_fields(history.entries, replace_payload(history, preview_version="v2")) == {"preview_version"}
    bare = proposed(ApprovalHistory())
    assert differing_fields(bare.entries, replace_payload(bare, preview_version="v1")) == {"preview_version"}


def test_deadlines_that_a_freeze_moved_are_compared_with_where_it_moved_them() -> None:
    history = frozen_history(ApprovalHistory())
    assert history.row.deadlines.deferred == 12
    for change in (
        {"expires_at": history.row.deadlines.expires_at - 9},
        {"start_by": NOW},
        {"deferred": 0},
        {"deferred_until": NOW},
    ):
        assert differing_fields(history.entries, replace_approval(history, **change)) == set(change)
    assert differing_fields(
        proposed(ApprovalHistory()).entries, replace_approval(proposed(ApprovalHistory()), deferred=5, deferred_until=5)
    ) == {*("deferred", "deferred_until")}


def test_the_fence_of_a_late_report_is_not_that_of_the_row() -> None:
    history = full_history(ApprovalHistory())
    report = Event("finished_late", "runner", {"fence": 0}, history.row.id, {"ok": True})
    history.apply(Change(history.row, (report,)))
    assert differences(history.entries, history.stored) == []


def test_what_ended_with_somebody_who_was_removed_does_not_come_back() -> None:
    before, history = removed_voter_history(ApprovalHistory()).entries[:-1], removed_voter_history(ApprovalHistory())
    assert len(before) == len(history.entries) - 1
    had = replace(
        history.row, votes=history.row.votes * 2, discussion=history.row.discussion._replace(claimed_by="alice")
    )
    assert differing_fields(history.entries, Stored(had, history.stored.payload)) == {
        "votes",
        "votes.seats",
        "claimed_by",
    }
    bare = [entry._replace(salt=None, content=None) for entry in history.entries]
    gone = erase_content(had, "ann", NOW)
    assert differing_fields(bare, Stored(gone, Payload())) == {"votes"}, "who voted stays known when words are erased"


def test_an_allowed_call_has_the_window_of_its_terms() -> None:
    history = allowed_history(ApprovalHistory())
    assert "window" in differing_fields(history.entries, replace_approval(history, expires_at=NOW + 1))


def test_an_erased_row_still_has_to_be_about_the_same_call_and_decided_by_the_same_people() -> None:
    history = full_history(ApprovalHistory())
    bare = [entry._replace(salt=None, content=None) for entry in history.entries]
    left = erase_content(history.row, "ann", NOW)
    forged = replace(left, subject=left.subject._replace(requester="mallory"), decision=OTHER_VALUES, votes=())
    result = {"subject", "decision.kind", "decision.by", "decision.at", "votes"}
    assert differing_fields(bare, Stored(forged, Payload())) == result


def test_a_difference_names_fields_and_hides_texts() -> None:
    history = rejected_history(ApprovalHistory())
    row = replace_approval(history, decision=OTHER_VALUES._replace(kind="approve", at=NOW))
    said = {each.field: str(each) for each in differences(history.entries, row)}
    assert said["decision.by"] == "decision.by is mallory in its row; the ledger says alice."
    assert said["decision.reason"] == "decision.reason in its row differs from the ledger."
    assert str(RowDifference("x", 1, "a" * 300, None)) == f"x is {'a' * 200}… in its row; the ledger says null."
    assert str(RowDifference("binding", 1)) == "Its row is bound to other arguments than the ledger records."


HIDDEN = {
    *("binding", "subject", "terms", "args_sha256", "alarms", "misfits", "sentence", "agent_says", "preview"),
    *("preview_version", "result", "error", "decision.reason", "decision.comment"),
}


def test_words_results_and_digests_are_named_where_they_differ_but_never_shown() -> None:
    history = full_history(ApprovalHistory())
    found = [each for _, forge in ROWS for each in differences(history.entries, forge(history))]
    shown = {each.field for each in found if (each.actual, each.expected) != (None, None)}
    assert {each.field for each in found} - shown == HIDDEN
    assert str(RowDifference("result", 1)) == "result in its row differs from the ledger."


def test_a_change_without_an_event_kind_is_stated_in_the_entry() -> None:
    history = proposed(ApprovalHistory(), ONE_APPROVER)
    moved = replace(
        history.row,
        deadlines=history.row.deadlines._replace(expires_at=history.row.deadlines.expires_at + 5),
        votes=(voting.Vote("x", "x", 0, "", NOW, "web"),),
    )
    facts = {"status": "pending", "binding": moved.binding}
    history.apply(Change(moved, (Event("thawed", "ada", facts, moved.id),)))
    assert '"row":["expires_at","votes","votes.seats"]' in history.entries[-1].data
    assert differences(history.entries, history.stored) == []
    assert differing_fields(history.entries, replace_approval(history, expires_at=1)) == {"expires_at"}
    bare = [history.entries[0], history.entries[1]._replace(salt=None, content=None)]
    assert differences(bare, replace_approval(history, expires_at=1)) == [], "nobody knows it any more"


DECISION = {f"decision.{name}" for name in ("kind", "by", "at", "via", "reason", "comment")}
CREATION = {"subject", "terms", "args_sha256", "expires_at", "alarms", "misfits"}
OWN_FIELDS: dict[str, set[str]] = {
    "proposed": CREATION,
    "allowed": CREATION | DECISION | {"start_by", "grant_id"},
    "voted": {"votes", "votes.seats"},
    "approved": {"votes", "votes.seats", "start_by"} | DECISION,
    "edited": {"terms", "args_sha256", "alarms", "misfits", "votes", "votes.seats", "editors"},
    "rejected": DECISION | {"release_at"},
    "undone": DECISION | {"release_at"},
    "responded": DECISION,
    "expired": DECISION,
    "cancelled": DECISION,
    "claimed": {"claimed_by"},
    "released": {"claimed_by"},
    "asked": {"asked"},
    "replied": {"replied"},
    "reminded": {"reminded"},
    "escalated": {"escalated"},
    "started": {"fence"},
    "succeeded": {"fence"},
    "failed": {"fence"},
    "lost": {"fence"},
    "deferred": {"expires_at", "start_by", "deferred", "deferred_until"},
    "thawed": set(),  # a kind of a later version
}


@pytest.mark.parametrize("kind", OWN_FIELDS)
def test_an_entry_states_all_that_changed_but_what_its_kind_is_about(kind: str) -> None:
    old = proposed(ApprovalHistory()).row
    new = replace(
        replace_fields(old, expires_at=1, release_at=2, start_by=3, deferred=4, deferred_until=5, reminded=6),
        subject=old.subject._replace(nonce="x"),
        terms=ONE_APPROVER,
        args_sha256="x",
        votes=(voting.Vote("x", "x", 0, "", NOW, "web"),),
        editors=("x",),
        delegations=(voting.Delegation("x", frozenset(), "reviewer", People()),),
        decision=OTHER_VALUES,
        grant_id="x",
        erasure=ErasureRecord(NOW, "x"),
    )
    new = replace_fields(new, alarms=("x",), schema_errors=(Problem("", "x"),), escalated=7, fence=8, until=9)
    new = replace_fields(new, claimed_by="x", asked=1, replied=(1,))
    everything = set().union(*OWN_FIELDS.values()) | {"delegations", "erasure"}
    first, *_ = add_row_digests(Change(new, (Event(kind, "ada", {}, old.id),)), old)
    assert first.data["row"] == sorted(everything - OWN_FIELDS[kind])
    content: Any = first.content
    assert sorted(content["row"]) == first.data["row"]


def test_a_rebuilt_value_without_changes_is_not_stated() -> None:
    history = proposed(ApprovalHistory(), ONE_APPROVER)
    same = replace(history.row, timers=history.row.timers._replace(reminded=False))  # which is 0, and another object
    change = Change(same, (Event("thawed", "ada", {}, same.id),))
    assert add_row_digests(change, history.row) == change.events


def test_a_birth_states_what_its_kind_does_not_explain() -> None:
    change = request_approval(proposal(), ONE_APPROVER, at())
    assert "row" not in add_row_digests(change)[0].data
    odd = change._replace(state=replace(change.state, discussion=change.state.discussion._replace(claimed_by="ada")))
    assert add_row_digests(odd)[0].data["row"] == ["claimed_by"]
    plain = change._replace(state=replace(change.state))  # which gives every field its default
    assert add_row_digests(plain) == add_row_digests(change)


def test_a_refusal_states_nothing() -> None:
    history = proposed(ApprovalHistory(), ONE_APPROVER)
    change = decide(history.row, Approve(Acknowledgement(history.row.args_sha256)), DAVE, at())
    assert add_row_digests(change, history.row) == change.events
    assert add_row_digests(Change(history.row)) == ()


def test_the_stated_subject_is_all_that_is_not_empty_but_its_nonce() -> None:
    row = proposed(ApprovalHistory(add_row_digests), ONE_APPROVER).row
    subject = row.subject._replace(owner="agent:a", requester="ann", thread_id="")
    known = [[name, value] for name, value in subject._asdict().items() if value and name != "nonce"]
    wanted = digest(plain_json([row.id, row.created_at, known]).encode())
    assert subject_sha256(replace(row, subject=subject)) == wanted
    assert subject_sha256(replace(row, subject=subject._replace(nonce="other"))) == wanted


def test_the_stated_subject_changes_with_every_field_but_its_nonce() -> None:
    row = proposed(ApprovalHistory(add_row_digests), ONE_APPROVER).row
    texts = {name: f"some {name}" for name in Subject._fields}
    subject = Subject(**{**texts, "agent_path": ("a", "b"), "idempotent": True})  # type: ignore[arg-type]  # by name
    changed = {name: f"other {name}" for name in texts} | {"agent_path": ("a", "c"), "idempotent": False}
    stated = {name: subject_sha256(replace(row, subject=subject._replace(**{name: changed[name]}))) for name in changed}
    assert stated.pop("nonce") == subject_sha256(replace(row, subject=subject))
    assert len({*stated.values(), subject_sha256(replace(row, subject=subject))}) == len(Subject._fields)


def test_the_owner_that_a_migration_gave_is_not_stated() -> None:
    row = proposed(ApprovalHistory(add_row_digests), ONE_APPROVER).row
    nobody, anybody, agent = (replace(row, subject=row.subject._replace(owner=o)) for o in ("", "*", "agent:a"))
    assert subject_sha256(anybody) == subject_sha256(nobody) != subject_sha256(agent)


def test_what_was_open_before_is_compared_with_what_was_stated_of_it() -> None:
    history = proposed(ApprovalHistory(without_row_digests), ONE_APPROVER)
    row, seq = history.stored, 5

    def found(stored: Stored, entries: Sequence[Entry]) -> set[str]:
        expected = ExpectedRow()
        for entry in entries:
            expected.apply(entry)
        expected.apply_baseline(seq, subject_sha256(row.approval), ONE_APPROVER.sha256, shown_texts_sha256(row))
        return {each.field for each in expected.differences(stored)}

    assert found(row, history.entries) == set()
    assert found(replace_payload(history, sentence="x"), history.entries) == {"shown"}
    assert found(replace_approval(history, terms=TWO_STAGES), history.entries) == {"terms"}
    left = Stored(erase_content(history.row, "ann", NOW), Payload())
    assert found(left, [entry._replace(salt=None, content=None) for entry in history.entries]) == set()
    change = decide(
        history.row, Edit({"amount": 6}, Acknowledgement(history.row.args_sha256, ("/to: odd",))), ALICE, at()
    )
    assert change.error is not None
    decision = Edit({"amount": 6}, Acknowledgement(history.row.args_sha256, ("/to: odd",)))
    history.stamp = add_row_digests
    history.apply(decide(history.row, decision, ALICE, at(), prepare_edit(history.row, {"amount": 6}, TWO_STAGES)))
    later = [history.entries[0], *(entry._replace(seq=entry.seq + 5) for entry in history.entries[1:])]
    assert found(history.stored, later) == set()


def test_sets_and_tuples_are_spelled_as_json_spells_them() -> None:
    assert to_json_value((frozenset({"b", "a"}), ("x",), 1)) == [["a", "b"], ["x"], 1]


def test_an_entry_that_is_no_object_cannot_be_read() -> None:
    entry = proposed(ApprovalHistory(), ONE_APPROVER).entries[0]
    for data in ("[]", "{} {}", "nonsense"):
        with pytest.raises(ValueError):
            ExpectedRow().apply(entry._replace(data=data))

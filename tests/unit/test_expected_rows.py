"""What entries state of a row and what a row may then hold: honest lives raise nothing, every other row does."""

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
from interlock.core.canonical import canonical, digest, plain_json
from interlock.core.decision import Acknowledgement, Approve, Edit, Reject, Respond
from interlock.core.errors import Problem
from interlock.core.grant import Grant
from interlock.core.ledger.chain import Entry, Head, make_entry
from interlock.core.ledger.erasure import erase_content
from interlock.core.ledger.event import Change, Event, Payload, Stored
from interlock.core.ledger.expected_rows import ExpectedRow, RowDifference
from interlock.core.ledger.row_digests import shown_texts_sha256, stamp_events, subject_sha256, to_json_value
from interlock.core.policy.policy import Allow, Ask, EscalationStep, People, Stage
from interlock.core.removal import UpdatedMember, withdraw_participation
from tests.unit.builders import ALICE, BOB, DAVE, FINANCE, NOW, PAY, at, proposal, with_fields

ASKED = Ask(
    "two", (Stage(FINANCE, 2),), remind=(1,), ladder=(EscalationStep(2, People(frozenset({"dave"}))),), undo_window=9
)
ONE = Ask("one", (Stage(FINANCE),), undo_window=9)
SILENT = Ask("silent", on_expiry="approve")
OK = Payload(result=b'"ok"')


def unstamped(change: Change[Approval], old: Approval | None = None) -> tuple[Event, ...]:
    """As an earlier version wrote them."""
    return change.events


@dataclass
class Life:
    """A row and its entries, as the store would keep them."""

    stamp: Callable[..., tuple[Event, ...]] = stamp_events
    stored: Stored = field(init=False)
    entries: list[Entry] = field(default_factory=list)

    def begin(self, change: Change[Approval]) -> Life:
        self.stored = Stored(change.state, change.payload or Payload())
        return self._seal(self.stamp(change), change.state.created_at)

    def then(self, change: Change[Approval], now: int = NOW) -> Life:
        old, payload = self.stored
        new = change.payload or Payload()
        if new.args is not None:
            payload = payload._replace(args=new.args, shown=new.shown, sentence=new.sentence, preview=None)
        elif change.payload is not None:
            payload = payload._replace(result=new.result, error=new.error)
        self.stored = Stored(change.state, payload)
        return self._seal(self.stamp(change, old), now)

    def _seal(self, events: Sequence[Event], now: int) -> Life:
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


def fields(entries: Sequence[Entry], stored: Stored) -> set[str]:
    return {each.field for each in differences(entries, stored)}


def asked(life: Life, terms: Ask = ASKED, **more: Any) -> Life:
    return life.begin(request_approval(proposal(**more), terms, at()))


def edited(row: Approval, args: object, terms: Ask) -> PreparedEdit:
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


def vote(life: Life, who: Any) -> Life:
    return life.then(
        decide(life.row, Approve(Acknowledgement(life.row.args_sha256, life.row.findings.alarms)), who, at())
    )


def ran(life: Life) -> Life:
    life.then(execute.start(life.stored, "attempt:1", 60_000, "", at(), runner_is_dead=False))
    return life.then(execute.renew(life.row, 1, 60_000, at()))


def whole(life: Life) -> Life:
    """Reminded, escalated, claimed, asked about, delegated, approved by two, and run."""
    asked(life, agent_path=("a", "helper"), thread_id="t", agent_says="It is due.", preview="5", alarms=("/to: odd",))
    life.then(timers.fire_next_timer(life.row, at(NOW + 1)), NOW + 1).then(
        timers.fire_next_timer(life.row, at(NOW + 2)), NOW + 2
    )
    life.then(discussion.claim(life.row, ALICE, at())).then(discussion.release(life.row, ALICE, at()))
    life.then(discussion.claim(life.row, BOB, at())).then(discussion.ask(life.row, "Why?", BOB, at()))
    life.then(discussion.reply(life.row, 1, "So", "agent:helper", at()))
    life.then(discussion.comment(life.row, "Hm", BOB))
    life.then(approval.delegate(life.row, People(frozenset({"erin"})), ALICE, at()))
    vote(life, ALICE)
    vote(life, DAVE)
    ran(life)
    return life.then(execute.finish(life.row, 1, OK, at(), ok=True))


def changed(life: Life) -> Life:
    asked(life, ONE, misfits=(Problem("/to", "is odd"),))
    decision = Edit({"amount": 6}, Acknowledgement(life.row.args_sha256, ("/to: odd",)))
    life.then(decide(life.row, decision, ALICE, at(), edited(life.row, {"amount": 6}, ASKED)))
    again = Edit({"amount": 7}, Acknowledgement(life.row.args_sha256, ("/to: odd",)))
    life.then(decide(life.row, again, ALICE, at(), edited(life.row, {"amount": 7}, ASKED)))
    vote(life, BOB)
    ran(life)
    return life.then(execute.finish(life.row, 1, Payload(error="No"), at(), ok=False))


def refused(life: Life) -> Life:
    asked(life, ONE)
    life.then(decide(life.row, Reject("Never"), ALICE, at()))
    life.then(approval.undo(life.row, ALICE, at()))
    return life.then(decide(life.row, Reject("Never", Acknowledgement(comment="ever")), ALICE, at()))


def answered(life: Life) -> Life:
    asked(life, ONE)
    return life.then(decide(life.row, Respond("Ask her", seen=Acknowledgement(reason="I know")), ALICE, at()))


def timed_out(life: Life) -> Life:
    return asked(life, ONE).then(approval.expire(life.row, at(NOW + 10**9)), NOW + 10**9)


def silence(life: Life) -> Life:
    return asked(life, SILENT).then(approval.expire(life.row, at(NOW + 10**9)), NOW + 10**9)


def withdrawn(life: Life) -> Life:
    return asked(life, ONE).then(approval.cancel(life.row, "agent:helper", "No need", at()))


def allowed(life: Life) -> Life:
    life.begin(allow(proposal(), Allow("free"), at()))
    return life.then(execute.expire_unstarted(life.row, at()))


def granted(life: Life) -> Life:
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
    life.begin(allow_by_grant(proposal(agent=""), ONE, grant, at()))
    ran(life)
    return life.then(execute.finish(life.row, 1, Payload(), at(), ok=True))


def unknown(life: Life, *, ok: bool) -> Life:
    ran(life.begin(allow(proposal(), Allow("free"), at())))
    life.then(execute.mark_unknown(life.row, at()))
    return life.then(approval.resolve_unknown(life.row, "I looked", ALICE, b'"yes"', at(), ok=ok))


def found_done(life: Life) -> Life:
    return unknown(life, ok=True)


def found_failed(life: Life) -> Life:
    return unknown(life, ok=False)


def held_up(life: Life) -> Life:
    """Frozen while it is pending, and again while it is approved."""
    asked(life, ONE)
    defer(life, NOW + 5)
    defer(life, NOW + 9)
    vote(life, ALICE)
    return defer(life, NOW + 12)


def defer(life: Life, now: int) -> Life:
    stop = freeze.Freeze(id="f", workspace="default", scope="workspace", name="", reason="x", by="ada", at=NOW)
    return life.then(freeze.defer_deadlines(life.row, [stop], at(now)), now)


def left(life: Life) -> Life:
    """Two vote, and the one who also passed on what is theirs is removed."""
    asked(life, replace(ASKED, stages=(Stage(FINANCE, 3),)))
    life.then(discussion.claim(life.row, ALICE, at()))
    life.then(approval.delegate(life.row, People(frozenset({"erin"})), ALICE, at()))
    vote(life, ALICE)
    vote(life, BOB)
    return removed(life, "alice")


def removed(life: Life, name: str) -> Life:
    change = withdraw_participation(life.row, UpdatedMember(name), "ada")
    assert change is not None
    return life.then(change)


LIVES = [whole, changed, refused, answered, timed_out, silence, withdrawn, allowed, granted, found_done, found_failed]
LIVES += [held_up, left]


# R62
@pytest.mark.parametrize("stamp", [stamp_events, unstamped])
@pytest.mark.parametrize("live", LIVES)
def test_an_honest_row_is_what_its_entries_say(live: Callable[[Life], Life], stamp: Any) -> None:
    life = live(Life(stamp))
    assert differences(life.entries, life.stored) == []


@pytest.mark.parametrize("stamp", [stamp_events, unstamped])
@pytest.mark.parametrize("live", LIVES)
def test_a_row_is_still_that_when_its_content_was_erased(live: Callable[[Life], Life], stamp: Any) -> None:
    life = live(Life(stamp))
    bare = [entry._replace(salt=None, content=None) for entry in life.entries]
    left = Stored(erase_content(life.row, "ann", NOW), Payload())
    assert differences(bare, left) == []


@pytest.mark.parametrize("live", LIVES)
def test_any_one_entry_may_have_lost_its_content(live: Callable[[Life], Life]) -> None:
    life = live(Life())
    for place, entry in enumerate(life.entries):
        entries = [*life.entries[:place], entry._replace(salt=None, content=None), *life.entries[place + 1 :]]
        assert differences(entries, life.stored) == [], entry.kind


def but(life: Life, **changes: Any) -> Stored:
    return life.stored._replace(approval=with_fields(life.row, **changes))


def about(life: Life, **changes: Any) -> Stored:
    return but(life, subject=life.row.subject._replace(**changes))


def told(life: Life, **changes: Any) -> Stored:
    return life.stored._replace(payload=life.stored.payload._replace(**changes))


OTHER = DecisionRecord("reject", "mallory", NOW + 5, via="web", reason="No", comment="No")
ROWS: list[tuple[str, Callable[[Life], Stored]]] = [
    ("status", lambda life: but(life, status="failed")),
    ("binding", lambda life: but(life, binding="f" * 64)),
    ("requester", lambda life: about(life, requester="mallory")),
    ("agent", lambda life: about(life, agent="mallory")),
    ("agent_path", lambda life: about(life, agent_path=())),
    ("thread_id", lambda life: about(life, thread_id="")),
    ("run_id", lambda life: about(life, run_id="x")),
    ("call_id", lambda life: about(life, call_id="x")),
    ("effect", lambda life: about(life, effect="read")),
    ("tool", lambda life: about(life, tool="x")),
    ("idempotent", lambda life: about(life, idempotent=True)),
    ("subject", lambda life: about(life, priority="low")),
    ("subject", lambda life: about(life, owner="key:k9")),
    ("subject", lambda life: about(life, known='{"requester":"mallory"}')),
    ("terms", lambda life: but(life, terms=ONE)),
    ("expires_at", lambda life: but(life, expires_at=1)),
    ("created_at", lambda life: but(life, created_at=1)),
    ("start_by", lambda life: but(life, start_by=1)),
    ("release_at", lambda life: but(life, release_at=1)),
    ("fence", lambda life: but(life, fence=2)),
    ("runner", lambda life: but(life, runner="runner:2")),
    ("grant_id", lambda life: but(life, grant_id="g9")),
    ("claimed_by", lambda life: but(life, claimed_by="")),
    ("editors", lambda life: but(life, editors=("mallory",))),
    ("reminded", lambda life: but(life, reminded=0)),
    ("escalated", lambda life: but(life, escalated=0)),
    ("asked", lambda life: but(life, asked=0)),
    ("replied", lambda life: but(life, replied=())),
    ("alarms", lambda life: but(life, alarms=())),
    ("misfits", lambda life: but(life, misfits=(Problem("", "odd"),))),
    ("erased", lambda life: but(life, erasure=ErasureRecord(NOW, "mallory"))),
    ("delegations", lambda life: but(life, delegations=())),
    ("votes", lambda life: but(life, votes=life.row.votes[:1])),
    ("votes.seats", lambda life: but(life, votes=tuple(each._replace(seat="x") for each in life.row.votes))),
    *((f"decision.{name}", lambda life: but(life, decision=OTHER)) for name in ("kind", "by", "at", "reason")),
    *((f"decision.{name}", lambda life: but(life, decision=OTHER)) for name in ("via", "comment")),
    ("sentence", lambda life: told(life, sentence="x")),
    ("agent_says", lambda life: told(life, agent_says=None)),
    ("preview", lambda life: told(life, preview="x")),
    ("result", lambda life: told(life, result=b"1")),
    ("error", lambda life: told(life, error="x")),
    ("args_sha256", lambda life: but(life, args_sha256="f" * 64)),
]


@pytest.mark.parametrize(("name", "forged"), ROWS, ids=[name for name, _ in ROWS])
def test_a_row_that_says_otherwise_differs_in_that_field(name: str, forged: Callable[[Life], Stored]) -> None:
    life = whole(Life())
    assert name in fields(life.entries, forged(life))


def test_deadlines_that_a_freeze_moved_are_compared_with_where_it_moved_them() -> None:
    life = held_up(Life())
    assert life.row.deadlines.deferred == 12
    for change in (
        {"expires_at": life.row.deadlines.expires_at - 9},
        {"start_by": NOW},
        {"deferred": 0},
        {"deferred_until": NOW},
    ):
        assert fields(life.entries, but(life, **change)) == set(change)
    assert fields(asked(Life()).entries, but(asked(Life()), deferred=5, deferred_until=5)) == {
        *("deferred", "deferred_until")
    }


def test_the_fence_of_a_late_report_is_not_that_of_the_row() -> None:
    life = whole(Life())
    report = Event("finished_late", "runner", {"fence": 0}, life.row.id, {"ok": True})
    life.then(Change(life.row, (report,)))
    assert differences(life.entries, life.stored) == []


def test_what_ended_with_somebody_who_was_removed_does_not_come_back() -> None:
    before, life = left(Life()).entries[:-1], left(Life())
    assert len(before) == len(life.entries) - 1
    had = replace(life.row, votes=life.row.votes * 2, discussion=life.row.discussion._replace(claimed_by="alice"))
    assert fields(life.entries, Stored(had, life.stored.payload)) == {"votes", "votes.seats", "claimed_by"}
    bare = [entry._replace(salt=None, content=None) for entry in life.entries]
    gone = erase_content(had, "ann", NOW)
    assert fields(bare, Stored(gone, Payload())) == {"votes"}, "who voted stays known when words are erased"


def test_an_allowed_call_has_the_window_of_its_terms() -> None:
    life = allowed(Life())
    assert "window" in fields(life.entries, but(life, expires_at=NOW + 1))


def test_an_erased_row_still_has_to_be_about_the_same_call_and_decided_by_the_same_people() -> None:
    life = whole(Life())
    bare = [entry._replace(salt=None, content=None) for entry in life.entries]
    left = erase_content(life.row, "ann", NOW)
    forged = replace(left, subject=left.subject._replace(requester="mallory"), decision=OTHER, votes=())
    told = {"subject", "decision.kind", "decision.by", "decision.at", "votes"}
    assert fields(bare, Stored(forged, Payload())) == told


def test_words_are_not_told_and_names_are() -> None:
    life = refused(Life())
    row = but(life, decision=replace(OTHER, kind="approve", at=NOW))
    said = {each.field: str(each) for each in differences(life.entries, row)}
    assert said["decision.by"] == "decision.by is mallory in its row; the ledger says alice."
    assert said["decision.reason"] == "decision.reason in its row is not what the ledger says."
    assert str(RowDifference("x", 1, "a" * 300, None)) == f"x is {'a' * 200}… in its row; the ledger says null."
    assert str(RowDifference("binding", 1)) == "Its row is bound to other arguments than the ledger says."


def test_a_change_that_no_kind_explains_is_stated_beside_it() -> None:
    life = asked(Life(), ONE)
    moved = replace(
        life.row,
        deadlines=life.row.deadlines._replace(expires_at=life.row.deadlines.expires_at + 5),
        votes=(voting.Vote("x", "x", 0, "", NOW, "web"),),
    )
    facts = {"status": "pending", "binding": moved.binding}
    life.then(Change(moved, (Event("thawed", "ada", facts, moved.id),)))
    assert '"row":["expires_at","votes","votes.seats"]' in life.entries[-1].data
    assert differences(life.entries, life.stored) == []
    assert fields(life.entries, but(life, expires_at=1)) == {"expires_at"}
    bare = [life.entries[0], life.entries[1]._replace(salt=None, content=None)]
    assert differences(bare, but(life, expires_at=1)) == [], "nobody knows it any more"


def test_what_was_only_made_anew_is_not_stated() -> None:
    life = asked(Life(), ONE)
    same = replace(life.row, timers=life.row.timers._replace(reminded=False))  # which is 0, and another object
    change = Change(same, (Event("thawed", "ada", {}, same.id),))
    assert stamp_events(change, life.row) == change.events


def test_a_birth_states_what_its_kind_does_not_explain() -> None:
    change = request_approval(proposal(), ONE, at())
    assert "row" not in stamp_events(change)[0].data
    odd = change._replace(state=replace(change.state, discussion=change.state.discussion._replace(claimed_by="ada")))
    assert stamp_events(odd)[0].data["row"] == ["claimed_by"]
    plain = change._replace(state=replace(change.state))  # which gives every field its default
    assert stamp_events(plain) == stamp_events(change)


def test_a_refusal_states_nothing() -> None:
    life = asked(Life(), ONE)
    change = decide(life.row, Approve(Acknowledgement(life.row.args_sha256)), DAVE, at())
    assert stamp_events(change, life.row) == change.events
    assert stamp_events(Change(life.row)) == ()


def test_the_stated_subject_is_all_that_is_not_empty_but_its_nonce() -> None:
    row = asked(Life(stamp_events), ONE).row
    subject = row.subject._replace(owner="agent:a", requester="ann", thread_id="")
    known = [[name, value] for name, value in subject._asdict().items() if value and name != "nonce"]
    wanted = digest(plain_json([row.id, row.created_at, known]).encode())
    assert subject_sha256(replace(row, subject=subject)) == wanted
    assert subject_sha256(replace(row, subject=subject._replace(nonce="other"))) == wanted


def test_the_owner_that_a_migration_gave_is_not_stated() -> None:
    row = asked(Life(stamp_events), ONE).row
    nobody, anybody, agent = (replace(row, subject=row.subject._replace(owner=o)) for o in ("", "*", "agent:a"))
    assert subject_sha256(anybody) == subject_sha256(nobody) != subject_sha256(agent)


def test_what_was_open_before_is_compared_with_what_was_stated_of_it() -> None:
    life = asked(Life(unstamped), ONE)
    row, seq = life.stored, 5

    def found(stored: Stored, entries: Sequence[Entry]) -> set[str]:
        expected = ExpectedRow()
        for entry in entries:
            expected.apply(entry)
        expected.apply_baseline(seq, subject_sha256(row.approval), ONE.sha256, shown_texts_sha256(row))
        return {each.field for each in expected.differences(stored)}

    assert found(row, life.entries) == set()
    assert found(told(life, sentence="x"), life.entries) == {"shown"}
    assert found(but(life, terms=ASKED), life.entries) == {"terms"}
    left = Stored(erase_content(life.row, "ann", NOW), Payload())
    assert found(left, [entry._replace(salt=None, content=None) for entry in life.entries]) == set()
    change = decide(life.row, Edit({"amount": 6}, Acknowledgement(life.row.args_sha256, ("/to: odd",))), ALICE, at())
    assert change.error is not None
    decision = Edit({"amount": 6}, Acknowledgement(life.row.args_sha256, ("/to: odd",)))
    life.stamp = stamp_events
    life.then(decide(life.row, decision, ALICE, at(), edited(life.row, {"amount": 6}, ASKED)))
    later = [life.entries[0], *(entry._replace(seq=entry.seq + 5) for entry in life.entries[1:])]
    assert found(life.stored, later) == set()


def test_sets_and_tuples_are_spelled_as_json_spells_them() -> None:
    assert to_json_value((frozenset({"b", "a"}), ("x",), 1)) == [["a", "b"], ["x"], 1]


def test_an_entry_that_is_no_object_cannot_be_read() -> None:
    entry = asked(Life(), ONE).entries[0]
    for data in ("[]", "{} {}", "nonsense"):
        with pytest.raises(ValueError):
            ExpectedRow().apply(entry._replace(data=data))

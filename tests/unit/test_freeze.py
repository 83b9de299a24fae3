"""Freezes: their scope, what they stop, and how deadlines move."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.approval import execute
from interlock.core.approval.propose import request_approval
from interlock.core.approval.timers import next_timer_at
from interlock.core.call import Caller, agent_actor
from interlock.core.errors import DeniedNow, Frozen, InvalidRequest
from interlock.core.freeze import (
    SCOPES,
    Freeze,
    FreezeTarget,
    approval_target,
    call_target,
    covers,
    defer_deadlines,
    find_active_freeze,
    freeze_message,
    frozen_error,
    make,
    release,
    runner_key_id,
    settle,
)
from interlock.core.ledger.chain import Entry, Head, Verifier, make_entry
from interlock.core.ledger.event import Change, Event
from interlock.core.ledger.row_digests import add_row_digests
from interlock.core.policy.policy import Ask, EscalationStep
from interlock.core.rate_limit import ReadEntryLimiter
from tests.unit.builders import LEASE, NOW, approval_in_status, at, call, pending_with_payload, proposal, store_row

TARGET = FreezeTarget("default", ("boss", "bot"), "key1", "pay")


def freeze(scope: str = "workspace", name: str = "", **more: Any) -> Freeze:
    fields = {"id": "f1", "workspace": "default", "reason": "Stop.", "by": "ada", "at": NOW, **more}
    return Freeze(scope=scope, name=name, **fields)  # type: ignore[arg-type]


# R59
@pytest.mark.parametrize(
    ("scope", "name", "covered"),
    [
        ("workspace", "", True),
        ("agent", "bot", True),
        ("agent", "BOSS ", True),
        ("agent", "\uff42\uff4f\uff54", True),
        ("agent", "robot", False),
        ("key", "key1", True),
        ("key", "key", False),
        ("tool", "pay", True),
        ("tool", "Pa*", True),
        ("tool", "pays", False),
    ],
)
def test_a_freeze_covers_its_scope(scope: str, name: str, covered: bool) -> None:
    assert covers(freeze(scope, name), TARGET) is covered
    assert not covers(freeze(scope, name, workspace="other"), TARGET)


def test_a_tools_freeze_covers_the_tool_of_that_very_name() -> None:
    named = TARGET._replace(tool="note_pay[eu]")
    assert covers(freeze("tool", "note_pay[eu]"), named)
    assert covers(freeze("tool", "Note_*[EU]"), named)
    assert covers(freeze("tool", "note_pay?eu?"), named)
    assert not covers(freeze("tool", "note_pay[eu]"), TARGET._replace(tool="note_paye"))


# R59
def test_an_agents_freeze_covers_the_keys_that_used_its_name() -> None:
    assert covers(freeze("agent", "robot", keys=frozenset({"key1"})), TARGET)
    assert not covers(freeze("agent", "robot", keys=frozenset({"key2"})), TARGET)
    assert not covers(freeze("agent", "robot"), TARGET._replace(key=""))


# R59
def test_a_keys_freeze_covers_the_keys_of_its_chain() -> None:
    assert covers(freeze("key", "key0", keys=frozenset({"key0", "key1"})), TARGET)
    assert not covers(freeze("key", "key0", keys=frozenset({"key0", "key2"})), TARGET)


def test_the_key_of_a_start_is_in_the_name_of_its_attempt() -> None:
    assert runner_key_id("attempt:key1:a:b") == "key1"
    assert runner_key_id("runner:machine:1:2:3") == ""


def test_a_target_has_the_agents_of_the_path_or_the_one_that_calls() -> None:
    approval = approval_in_status("approved")
    assert approval_target(approval) == FreezeTarget("default", ("helper",), "", "pay")
    assert approval_target(approval, "key1").key == "key1"
    nested = replace(approval, subject=approval.subject._replace(agent_path=("a", "b")))
    assert approval_target(nested).agents == ("a", "b")
    alone = replace(approval, subject=approval.subject._replace(agent=""))
    assert approval_target(alone).agents == ()
    caller = Caller(owner="key:key0", owners=frozenset({"key:key0"}), agents=("biller",), credential="key1")
    caller = replace(caller, root="key0")
    result = call_target(call(caller=caller))
    assert result == FreezeTarget("default", ("helper", "biller"), "key1", "pay", frozenset({"key0"}))
    assert call_target(call()) == FreezeTarget("default", ("helper",), "", "pay")
    stored_one = pending_with_payload(caller=caller).approval
    assert approval_target(stored_one) == FreezeTarget(
        "default", ("helper", "biller"), "", "pay", frozenset({"key0", "key1"})
    )
    first = replace(caller, root="")  # its key is no rotation of another
    assert call_target(call(caller=first)).earlier_keys == frozenset()
    assert approval_target(pending_with_payload(caller=first).approval).earlier_keys == frozenset({"key1"})
    assert approval_target(pending_with_payload(caller=first).approval).keys == frozenset({"key1"})
    for name in ("key0", "key1", "key2"):  # the first of its chain, the one that proposed it, the one that starts it
        assert covers(freeze("key", name), approval_target(stored_one, "key2"))
    assert not covers(freeze("key", "key3"), approval_target(stored_one, "key2"))


# R59
def test_only_a_freeze_that_is_on_stops() -> None:
    on, off = freeze("tool", "pay"), freeze(released_at=NOW)
    assert find_active_freeze([off, on], TARGET) is on
    assert find_active_freeze([off], TARGET) is None


# R59
def test_a_freeze_is_made_once_for_a_scope_and_released_once() -> None:
    made = make(freeze("agent", "bot", at=0), [], at())
    assert made.state.at == NOW
    assert made.events == (
        Event("frozen", "ada", {"freeze": "f1", "scope": "agent", "name": "bot"}, "", {"reason": "Stop."}),
    )
    assert make(freeze("agent", "BOT", id="f2"), [made.state], at()) == Change(made.state)
    assert make(freeze("agent", "bot", id="f2"), [replace(made.state, released_at=NOW)], at()).events
    assert make(freeze("tool", "bot", id="f2"), [made.state], at()).events
    ended = release(made.state, "eve", "", at(NOW + 5))
    assert (ended.state.released_at, ended.state.released_by, ended.state.is_on) == (NOW + 5, "eve", False)
    assert ended.events[0].content is None
    assert release(ended.state, "bob", "again", at(NOW + 9)) == Change(ended.state)
    assert settle(ended.state, at(NOW + 9)).settled_at == NOW + 9


NAME_WANTED = "Give the name of the agent, key or tool; a freeze of the workspace has none."
NAME_UNFIT = "A name is up to 200 characters that can be seen."
REASON_WANTED = "Give a reason of up to 500 characters; everybody affected sees it."


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (freeze("galaxy"), "The scope of a freeze is one of workspace, agent, key, tool."),
        (freeze("workspace", "x"), NAME_WANTED),
        (freeze("agent", " "), NAME_WANTED),
        (freeze("tool", "x" * 201), NAME_UNFIT),
        (freeze("tool", "a\nb"), NAME_UNFIT),
        (freeze(reason=" "), REASON_WANTED),
        (freeze(reason="x" * 501), REASON_WANTED),
    ],
)
def test_a_freeze_that_makes_no_sense_is_refused(draft: Freeze, said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        make(draft, [], at())
    assert refused.value.message == said


def test_a_freeze_may_have_a_long_name_and_reason() -> None:
    assert make(freeze("tool", "x" * 200, reason="x" * 500), [], at()).events


def test_who_is_stopped_is_told_by_whom_and_why() -> None:
    assert freeze_message(freeze()) == "Frozen by ada (the workspace default): Stop."
    assert freeze_message(freeze("tool", "pay")) == "Frozen by ada (the tool pay): Stop."
    error = frozen_error(freeze(), "a1")
    assert isinstance(error, Frozen)
    assert error.to_json().items() >= {"approval_id": "a1", "freeze_id": "f1", "reason": "Stop."}.items()


# R59
@pytest.mark.parametrize("stopped", [frozen_error(freeze(), "id"), DeniedNow("No.", reason="Why")])
def test_what_is_stopped_does_not_start(stopped: Frozen | DeniedNow) -> None:
    def start(status: str, **more: Any) -> Change[Any]:
        approval = approval_in_status(status, **more)
        now = NOW + (LEASE if status == "running" else 0)
        return execute.start(store_row(approval), "r2", LEASE, "", at(now), runner_is_dead=False, start_error=stopped)

    with pytest.raises(type(stopped)):
        start("running", idempotent=True)
    if isinstance(stopped, Frozen):
        with pytest.raises(Frozen):
            start("approved")
        return
    change = start("approved")
    assert (change.state.status, change.error) == ("cancelled", stopped)
    assert change.state.decision.reason == "Why"
    assert [each.kind for each in change.events] == ["cancelled"]


def test_a_repeated_start_is_answered_though_all_is_stopped() -> None:
    running = approval_in_status("running", runner="attempt:key:1")
    again = execute.start(
        store_row(running),
        "attempt:key:1",
        LEASE,
        "",
        at(),
        runner_is_dead=False,
        start_error=frozen_error(freeze(), "id"),
    )
    assert again.state is running


# R59
@pytest.mark.parametrize(
    ("status", "moves", "starts"),
    [("pending", 5, None), ("rejected", 5, None), ("approved", 0, 5)],
)
def test_the_deadlines_of_what_is_covered_move_by_the_frozen_time(status: str, moves: int, starts: int | None) -> None:
    approval = approval_in_status(status)
    change = defer_deadlines(approval, [freeze(at=NOW + 10)], at(NOW + 15))
    later = change.state
    assert later.deadlines.expires_at == approval.deadlines.expires_at + moves
    assert later.deadlines.start_by == (None if starts is None else (approval.deadlines.start_by or 0) + starts)
    assert (later.deadlines.deferred, later.deadlines.deferred_until, later.version) == (
        5,
        NOW + 15,
        approval.version + 1,
    )
    assert change.events[0].data == {
        "by": 5,
        "expires_at": later.deadlines.expires_at,
        "start_by": later.deadlines.start_by,
    }
    assert defer_deadlines(later, [freeze(at=NOW + 10)], at(NOW + 15)) == Change(later)
    assert defer_deadlines(approval, [freeze("tool", "other", at=NOW)], at(NOW + 15)) == Change(approval)


def test_what_has_ended_or_runs_is_not_deferred_unless_it_waits_for_another_start() -> None:
    for status in ("running", "succeeded", "unknown", "expired"):
        approval = approval_in_status(status)
        assert defer_deadlines(approval, [freeze()], at(NOW + 9)) == Change(approval)
    idempotent = approval_in_status("running", idempotent=True)
    later = defer_deadlines(idempotent, [freeze()], at(NOW + 9)).state
    assert (next_timer_at(later) or 0) - (next_timer_at(idempotent) or 0) == 9


def test_reminders_and_rungs_move_along() -> None:
    terms = Ask(remind=(100,), escalation_steps=(EscalationStep(200),), expires_in=300)
    approval = approval_in_status("pending", terms=terms)
    assert next_timer_at(approval) == NOW + 100
    assert next_timer_at(defer_deadlines(approval, [freeze(at=NOW + 50)], at(NOW + 150)).state) == NOW + 200


spans = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=4)


# R59
@given(spans, st.lists(st.integers(0, 25), max_size=3))
def test_frozen_time_counts_once_however_freezes_overlap_and_whenever_it_is_reckoned(
    found: list[tuple[int, int]], looks: list[int]
) -> None:
    """What is settled by the end is how many moments some freeze was on."""
    frozen = [freeze(id=str(n), at=NOW + a, released_at=NOW + a + b) for n, (a, b) in enumerate(found)]
    approval = approval_in_status("pending")
    for look in sorted([*looks, 50]):
        now = NOW + look
        known = [
            replace(each, released_at=each.released_at if (each.released_at or 0) <= now else None)
            for each in frozen
            if each.at <= now
        ]
        approval = defer_deadlines(approval, known, at(now)).state
    assert approval.deadlines.deferred == sum(any(a <= t < a + b for a, b in found) for t in range(50))


def test_a_flood_of_refused_reads_gets_few_entries() -> None:
    entries = ReadEntryLimiter()
    assert sum(entries.allow(NOW) for _ in range(100)) == ReadEntryLimiter.MAX_PER_MINUTE
    assert entries.allow(NOW + 60_000)


# --- the invariant: no start during a freeze


def chain(*events: Event) -> list[Entry]:
    entries: list[Entry] = []
    head = Head("default")
    for number, event in enumerate(events):
        entries.append(make_entry(event, head, NOW + number, b"0123456789abcdef"))
        head = Head("default", entries[-1].seq, entries[-1].link, entries[-1].at)
    return entries


def event_about(kind: str, status: str, actor: str = "ada", **data: object) -> Event:
    return Event(kind, actor, {"status": status, "binding": "b1" * 32, **data}, "a1")


def freeze_event(scope: str, name: str = "") -> Event:
    return Event("frozen", "ada", {"freeze": "f1", "scope": scope, "name": name})


PROPOSED = event_about("proposed", "pending", "agent:bot", tool="pay", expires_at=NOW + 3)
APPROVED = event_about("approved", "approved")
STARTED = event_about("started", "running", "attempt:key1:x", fence=1)
UNFROZEN = Event("unfrozen", "ada", {"freeze": "f1", "scope": "workspace", "name": ""})


def violations(*events: Event) -> list[str]:
    verifier = Verifier("default")
    verifier.feed(chain(*events))
    return [fault.message for fault in verifier.violations]


# R59
@pytest.mark.parametrize(
    ("scope", "name"),
    [("workspace", ""), ("agent", "bot"), ("tool", "pay"), ("key", "key1")],
)
def test_a_start_between_frozen_and_unfrozen_breaks_a_law(scope: str, name: str) -> None:
    assert violations(PROPOSED, APPROVED, freeze_event(scope, name), STARTED) == ["Started while it was frozen."]
    assert violations(PROPOSED, APPROVED, freeze_event(scope, name), UNFROZEN, STARTED) == []
    other = {"agent": "x", "tool": "x", "key": "x"}.get(scope)
    if other is not None:
        assert violations(PROPOSED, APPROVED, freeze_event(scope, other), STARTED) == []
    assert scope in SCOPES


def test_a_call_of_no_agent_is_covered_by_no_agents_freeze() -> None:
    alone = PROPOSED._replace(actor=agent_actor(call(agent="")))
    for name in ("bot", "agent"):
        assert violations(alone, APPROVED, freeze_event("agent", name), STARTED) == []
    begun_nowhere = violations(STARTED)
    assert begun_nowhere[0] == "nothing became running: that is not a legal transition."
    for name in ("", "bot"):
        assert violations(freeze_event("agent", name), STARTED) == begun_nowhere
    named = PROPOSED._replace(actor=agent_actor(call(agent="agent")))
    assert violations(named, APPROVED, freeze_event("agent", "agent"), STARTED) == ["Started while it was frozen."]


def proposed_event(**more: Any) -> Event:
    """The first entry of a call, with all that a program writes there."""
    return add_row_digests(request_approval(proposal(**more), Ask(), at()))[0]._replace(approval_id="a1")


# R59
@pytest.mark.parametrize(
    ("scope", "name", "covered"),
    [
        ("agent", "boss", True),  # which called the one that calls
        ("agent", "helper", True),
        ("agent", "other", False),
        ("key", "proposing", True),
        ("key", "first", True),  # of which the proposing one is a rotation
        ("key", "other", False),
    ],
)
def test_the_law_sees_the_agents_and_the_key_that_a_call_was_proposed_with(
    scope: str, name: str, covered: bool
) -> None:
    caller = Caller(owner="key:first", owners=frozenset({"key:first"}), agents=(), credential="proposing")
    event = proposed_event(agent="helper", agent_path=("boss", "helper"), caller=replace(caller, root="first"))
    binding = event.data["binding"]
    after = [APPROVED, freeze_event(scope, name), STARTED]
    after = [each._replace(data={**each.data, "binding": binding}) if each.approval_id else each for each in after]
    assert violations(event, *after) == (["Started while it was frozen."] if covered else [])
    erased = event._replace(content=None)  # then only the one that calls is known
    assert violations(erased, *after) == (["Started while it was frozen."] if name == "helper" else [])


def test_the_law_takes_no_agents_name_for_a_key() -> None:
    caller = Caller(owner="agent:helper", owners=frozenset(), agents=("helper",), credential="proposing")
    event = proposed_event(agent="helper", caller=caller)
    after = [each._replace(data={**each.data, "binding": event.data["binding"]}) for each in (APPROVED, STARTED)]
    assert violations(event, after[0], freeze_event("key", "helper"), after[1]) == []


@pytest.mark.parametrize("content", [{"agent_path": 7}, {"agent_path": ["x"], "owner": 7, "credential": None}])
def test_the_invariant_accepts_any_entry_content(content: dict[str, object]) -> None:
    assert violations(PROPOSED._replace(content=content), APPROVED, freeze_event("tool", "pay"), STARTED)


def test_a_freeze_of_a_scope_that_there_is_not_is_a_fault() -> None:
    assert violations(freeze_event("galaxy")) == ["A freeze has an unknown scope."]


# R59
def test_a_deadline_that_was_held_up_moves_in_the_ledger_too() -> None:
    late = [Event("commented", "ada", {}, "a1")] * 2
    deferred = Event("deferred", "interlock", {"by": 9, "expires_at": NOW + 12, "start_by": None}, "a1")
    assert violations(PROPOSED, *late, deferred, APPROVED) == []
    assert violations(PROPOSED, *late, late[0], APPROVED) == ["Approved after the deadline."]


# R49, R59
@given(st.integers(0, 6))
def test_parts_see_what_was_frozen_before_and_inside_of_them(cut: int) -> None:
    honest = chain(PROPOSED, APPROVED, freeze_event("workspace"), UNFROZEN, STARTED)
    forged = chain(PROPOSED, APPROVED, freeze_event("workspace"), STARTED, UNFROZEN)
    for entries, wrong in ((honest, False), (forged, True)):
        first, second = entries[:cut], entries[cut:]
        whole = Verifier("default")
        whole.feed(first)
        start = Head("default", first[-1].seq, first[-1].link, first[-1].at) if first else None
        part = Verifier("default", None, start)
        part.feed(second)
        joined = whole.join(part)
        assert bool(whole.violations) == (wrong and (joined or cut > 3)) or not joined
        assert not (joined and wrong and not whole.violations)

"""Comments, questions and delegation: events about an approval that decide nothing."""

from dataclasses import replace

import pytest

from interlock.core.approval.approval import STATUSES, Approval
from interlock.core.approval.discussion import (
    MAX_AGENT_COMMENTS,
    MAX_QUESTION,
    MAX_QUESTIONS,
    agent_comment,
    ask,
    check_comment_limit,
    claim,
    comment,
    release,
    reply,
)
from interlock.core.decision import Reviewer
from interlock.core.errors import AlreadyDecided, Conflict, Expired, Forbidden, InvalidRequest, NotFound
from interlock.core.ledger.event import Change
from interlock.core.outcome import Waiting, approval_outcome
from interlock.core.policy.policy import Ask
from tests.unit.builders import (
    ADMIN,
    AGENT,
    ALICE,
    BOB,
    CAROL,
    NOW,
    TWO_OF_FINANCE,
    VIEWER,
    approval_in_status,
    at,
    pending,
    pending_with_payload,
)

DEADLINE = NOW + Ask().expires_in
RITA = Reviewer("rita", "user")  # the requester, who is no reviewer
ATTEMPTS = {
    "claim": claim,
    "release": release,
    "ask": lambda approval, who, moment: ask(approval, "Why?", who, moment),
}


def only_event(change: Change[Approval]) -> tuple[str, str, dict[str, object], dict[str, object]]:
    assert change.error is None
    (event,) = change.events
    assert event.approval_id == change.state.id
    return event.kind, event.actor, dict(event.data), dict(event.content or {})


def is_refused(change: Change[Approval], approval: Approval, attempt: str) -> bool:
    (event,) = change.events
    assert change.state is approval
    assert isinstance(change.error, Forbidden)
    assert (event.kind, dict(event.data)) == ("decision_refused", {"error": "forbidden"})
    return (event.content or {})["kind"] == attempt


def asked_approval(times: int = 1) -> Approval:
    approval = pending()
    for number in range(times):
        approval = ask(approval, f"Why {number + 1}?", ALICE, at()).state
    return approval


# --- claim and release


# R36
def test_a_claim_shows_who_is_on_it_and_can_be_taken_over_and_given_back() -> None:
    first = claim(pending(), ALICE, at())
    facts = {"status": "pending", "binding": first.state.binding}
    assert (first.state.discussion.claimed_by, first.state.version) == ("alice", 2)
    assert only_event(first) == ("claimed", "alice", facts, {"via": "web"})
    second = claim(first.state, BOB, at())
    assert (second.state.discussion.claimed_by, second.state.version) == ("bob", 3)
    free = release(second.state, BOB, at())
    assert (free.state.discussion.claimed_by, free.state.version) == ("", 4)
    assert only_event(free) == ("released", "bob", facts, {"via": "slack"})


# R36
def test_claiming_or_releasing_twice_changes_nothing() -> None:
    claimed = claim(pending(), ALICE, at()).state
    assert claim(claimed, ALICE, at()) == Change(claimed)
    assert release(pending(), ALICE, at()) == Change(pending())


# R36, R41
def test_a_claim_is_given_back_by_nobody_else() -> None:
    claimed = claim(pending(), ALICE, at()).state
    for other in (BOB, ADMIN):
        change = release(claimed, other, at())
        assert is_refused(change, claimed, "release")
        assert change.error is not None
        assert change.error.message == "alice has claimed this. Claim it yourself to take it over."
        assert change.error.ids == {"approval_id": claimed.id}


# R41, R48
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_only_those_who_may_decide_claim_release_and_ask(attempt: str) -> None:
    approval = pending(TWO_OF_FINANCE)
    for reviewer in (CAROL, VIEWER, AGENT):
        change = ATTEMPTS[attempt](approval, reviewer, at())
        assert is_refused(change, approval, attempt)
        assert change.error is not None
        message = "You may not decide this approval. It needs team finance."
        assert (change.error.message, change.error.ids) == (message, {"approval_id": approval.id})


# R36, R55
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nobody_claims_releases_or_asks_once_it_is_decided_or_too_late(attempt: str) -> None:
    with pytest.raises(AlreadyDecided):
        ATTEMPTS[attempt](approval_in_status("approved"), ALICE, at())
    assert ATTEMPTS[attempt](pending(), ALICE, at(DEADLINE - 1)).error is None
    late = ATTEMPTS[attempt](pending(), ALICE, at(DEADLINE))
    assert (late.state.status, type(late.error)) == ("expired", Expired)


# --- comments


# R41
@pytest.mark.parametrize("status", STATUSES)
def test_a_comment_is_an_event_and_changes_nothing(status: str) -> None:
    approval = approval_in_status(status)
    change = comment(approval, "Ask legal first.", ALICE)
    assert change.state is approval
    assert only_event(change) == ("commented", "alice", {}, {"text": "Ask legal first.", "via": "web"})


# R48
@pytest.mark.parametrize(
    ("reviewer", "may"),
    [
        (ALICE, True),
        (ADMIN, True),
        (RITA, True),
        (replace(RITA, name="ulf"), False),
        (VIEWER, False),
        (AGENT, False),
        (replace(RITA, role="viewer"), False),
    ],
)
def test_the_requester_reviewers_and_admins_comment(reviewer: Reviewer, may: bool) -> None:
    approval = pending()
    change = comment(approval, "Well.", reviewer)
    assert may is (change.error is None)
    if not may:
        assert is_refused(change, approval, "comment")
        assert change.error is not None
        message = "Only the requester, reviewers and admins can comment."
        assert (change.error.message, change.error.ids) == (message, {"approval_id": approval.id})


# R22, R55
@pytest.mark.parametrize(
    ("say", "limit", "label"),
    [
        (lambda text: comment(pending(), text, ALICE), 500, "A comment has 1 to 500 characters."),
        (lambda text: ask(pending(), text, ALICE, at()), 2_000, "A question has 1 to 2,000 characters."),
        (lambda text: reply(asked_approval(), 1, text, "agent", at()), 20_000, "A reply has 1 to 20,000 characters."),
    ],
)
def test_comments_have_a_maximum_length(say, limit: int, label: str) -> None:  # type: ignore[no-untyped-def]
    assert say("x" * limit).error is None
    for text in ("", " \n", "x" * (limit + 1)):
        with pytest.raises(InvalidRequest) as caught:
            say(text)
        assert caught.value.message == label
    with pytest.raises(InvalidRequest):
        say("a\x00b")


# --- questions and replies


# R55
def test_a_question_decides_nothing_and_waits_for_the_reply() -> None:
    change = ask(pending(), "Which account?", ALICE, at())
    facts = {"status": "pending", "binding": change.state.binding, "number": 1}
    assert (change.state.status, change.state.version, change.state.discussion.open_questions) == ("pending", 2, (1,))
    assert change.state.deadlines.expires_at == pending().deadlines.expires_at
    assert only_event(change) == ("asked", "alice", facts, {"text": "Which account?", "via": "web"})
    replied = reply(change.state, 1, "The first.", "agent:helper", at())
    assert (replied.state.status, replied.state.version, replied.state.discussion.open_questions) == ("pending", 3, ())
    assert only_event(replied) == ("replied", "agent:helper", facts, {"text": "The first."})


# R55
def test_questions_are_replied_to_in_any_order() -> None:
    approval = asked_approval(3)
    approval = reply(approval, 2, "So.", "agent", at()).state
    assert (approval.discussion.asked, approval.discussion.open_questions) == (3, (1, 3))
    assert reply(approval, 3, "And so.", "agent", at()).state.discussion.open_questions == (1,)


# R55
def test_a_reply_needs_a_question_that_is_open_on_a_call_that_waits() -> None:
    for number in (0, 2, -1):
        with pytest.raises(NotFound) as missing:
            reply(asked_approval(), number, "So.", "agent", at())
        assert missing.value.message == "There is no question with this number."
        assert missing.value.ids == {"approval_id": pending().id}
    once = reply(asked_approval(), 1, "So.", "agent", at()).state
    with pytest.raises(Conflict) as again:
        reply(once, 1, "No, so.", "agent", at())
    assert again.value.message == "This question has been answered already."
    assert again.value.ids == {"approval_id": once.id}
    with pytest.raises(AlreadyDecided):
        reply(replace(asked_approval(), status="rejected"), 1, "So.", "agent", at())
    assert reply(asked_approval(), 1, "So.", "agent", at(DEADLINE - 1)).error is None
    late = reply(asked_approval(), 1, "So.", "agent", at(DEADLINE))
    assert (late.state.status, type(late.error)) == ("expired", Expired)


# R55
def test_an_approval_has_a_limited_number_of_questions() -> None:
    approval = asked_approval(MAX_QUESTIONS)
    assert len(approval.discussion.open_questions) == MAX_QUESTIONS
    with pytest.raises(Conflict, match="asked 100 questions") as caught:
        ask(approval, "One more?", ALICE, at())
    assert caught.value.ids == {"approval_id": approval.id}


# R55
def test_a_waiting_caller_gets_the_open_questions() -> None:
    stored = pending_with_payload()
    approval = replace(stored.approval, discussion=stored.approval.discussion._replace(asked=2, replied=(1,)))
    assert approval_outcome(approval, stored.payload, NOW) == Waiting(
        approval.id, "pending", until=approval.deadlines.expires_at, args_sha256="", questions=(2,)
    )


# --- remarks


def test_an_agents_remark_is_kept_as_its_own_and_changes_nothing() -> None:
    approval = pending()
    change = agent_comment(approval, "It is urgent.", "agent:bot", at())
    assert change.state is approval
    assert only_event(change) == ("commented", "agent:bot", {}, {"text": "It is urgent.", "via": "agent"})


def test_an_agents_remark_comes_while_people_may_decide() -> None:
    for status in sorted(set(STATUSES) - {"pending"}):
        with pytest.raises(Expired if status == "expired" else AlreadyDecided):
            agent_comment(approval_in_status(status), "It is urgent.", "agent:bot", at())
    late = agent_comment(pending(), "It is urgent.", "agent:bot", at(DEADLINE))
    assert isinstance(late.error, Expired)
    assert "commented" not in [event.kind for event in late.events]


def test_an_agents_remark_has_a_length() -> None:
    for text in ("", "  ", "x" * (MAX_QUESTION + 1), "a\x00b"):
        with pytest.raises(InvalidRequest):
            agent_comment(pending(), text, "agent:bot", at())
    assert agent_comment(pending(), "x" * MAX_QUESTION, "agent:bot", at()).error is None


def test_an_agent_says_only_so_much_about_a_call() -> None:
    check_comment_limit(MAX_AGENT_COMMENTS - 1, "a")
    with pytest.raises(Conflict, match="Wait for people") as result:
        check_comment_limit(MAX_AGENT_COMMENTS, "a")
    assert result.value.ids == {"approval_id": "a"}

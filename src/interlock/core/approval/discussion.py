"""Discussion of an approval without a decision: assignment, comments, and questions to the agent with its replies."""

from __future__ import annotations

from typing import NamedTuple

from interlock.core.approval import vote
from interlock.core.approval.approval import (
    Approval,
    already_decided_error,
    expire_with_error,
    make_change,
    record_refusal,
)
from interlock.core.canonical import canonical
from interlock.core.decision import MAX_COMMENT, MAX_MESSAGE, Reviewer
from interlock.core.errors import Conflict, Forbidden, InvalidRequest, NotFound
from interlock.core.fast_dataclasses import next_version
from interlock.core.ledger.event import Change, Event, Moment

MAX_QUESTION = 2_000
MAX_QUESTIONS = 100  # per approval: its row holds which of them are open
MAX_AGENT_COMMENTS = 100  # per agent: reviewers read them all


class Question(NamedTuple):
    """A question that awaits the agent's reply."""

    number: int
    by: str
    text: str


def claim(approval: Approval, reviewer: Reviewer, moment: Moment) -> Change[Approval]:
    """Assign the approval to this reviewer: the last to claim it has it, and everybody may still decide."""
    refusal = _refuse_if_not_allowed(approval, "claim", reviewer, moment)
    if refusal is not None:
        return refusal
    if approval.discussion.claimed_by == reviewer.name:
        return Change(approval)
    claimed = next_version(approval, discussion=approval.discussion._replace(claimed_by=reviewer.name))
    return make_change(claimed, "claimed", reviewer.name, {}, reviewer.trace)


def release(approval: Approval, reviewer: Reviewer, moment: Moment) -> Change[Approval]:
    refusal = _refuse_if_not_allowed(approval, "release", reviewer, moment)
    if refusal is not None:
        return refusal
    if not approval.discussion.claimed_by:
        return Change(approval)
    if approval.discussion.claimed_by != reviewer.name:
        message = f"{approval.discussion.claimed_by} has claimed this. Claim it yourself to take it over."
        return record_refusal(approval, "release", reviewer, Forbidden(message, approval_id=approval.id))
    released = next_version(approval, discussion=approval.discussion._replace(claimed_by=""))
    return make_change(released, "released", reviewer.name, {}, reviewer.trace)


def comment(approval: Approval, text: str, reviewer: Reviewer) -> Change[Approval]:
    """Add a comment to the timeline in any state; the approval itself does not change."""
    if not vote.may_participate(approval, reviewer.name, reviewer.role):
        message = "Only the requester, reviewers and admins can comment."
        return record_refusal(approval, "comment", reviewer, Forbidden(message, approval_id=approval.id))
    _check_text("A comment", text, MAX_COMMENT)
    content = {"text": text, **reviewer.trace}
    return Change(approval, (Event("commented", reviewer.name, {}, approval.id, content),))


def ask(approval: Approval, text: str, reviewer: Reviewer, moment: Moment) -> Change[Approval]:
    """Ask the agent a question; the call stays pending and the deadline stays."""
    refusal = _refuse_if_not_allowed(approval, "ask", reviewer, moment)
    if refusal is not None:
        return refusal
    _check_text("A question", text, MAX_QUESTION)
    number = approval.discussion.asked + 1
    if number > MAX_QUESTIONS:
        message = f"The agent has been asked {MAX_QUESTIONS} questions about this call. Decide it, or let it expire."
        raise Conflict(message, approval_id=approval.id)
    content = {"text": text, **reviewer.trace}
    asked = next_version(approval, discussion=approval.discussion._replace(asked=number))
    return make_change(asked, "asked", reviewer.name, {"number": number}, content)


def reply(approval: Approval, number: int, text: str, actor: str, moment: Moment) -> Change[Approval]:
    """Record the agent's reply to one question; it decides nothing."""
    if not 1 <= number <= approval.discussion.asked:
        raise NotFound("There is no question with this number.", approval_id=approval.id)
    if approval.status != "pending":
        raise already_decided_error(approval)
    if moment.now >= approval.deadlines.expires_at:
        return expire_with_error(approval, moment)
    if number in approval.discussion.replied:
        raise Conflict("This question has been answered already.", approval_id=approval.id)
    _check_text("A reply", text, MAX_MESSAGE)
    discussion = approval.discussion
    replied = next_version(approval, discussion=discussion._replace(replied=(*discussion.replied, number)))
    return make_change(replied, "replied", actor, {"number": number}, {"text": text})


def agent_comment(approval: Approval, text: str, actor: str, moment: Moment) -> Change[Approval]:
    """Record an unsolicited remark of the agent while the call is pending; it triggers no notification."""
    if approval.status != "pending":
        raise already_decided_error(approval)
    if moment.now >= approval.deadlines.expires_at:
        return expire_with_error(approval, moment)
    _check_text("A remark", text, MAX_QUESTION)
    return Change(approval, (Event("commented", actor, {}, approval.id, {"text": text, "via": "agent"}),))


def check_comment_limit(said: int, approval_id: str) -> None:
    if said >= MAX_AGENT_COMMENTS:
        raise Conflict(
            f"The agent has said {MAX_AGENT_COMMENTS} things about this call. Wait for people.", approval_id=approval_id
        )


def _refuse_if_not_allowed(
    approval: Approval, attempt: str, reviewer: Reviewer, moment: Moment
) -> Change[Approval] | None:
    """Refuse unless the call is pending and the reviewer may decide it."""
    if approval.status != "pending":
        raise already_decided_error(approval)
    if moment.now >= approval.deadlines.expires_at:
        return expire_with_error(approval, moment)
    if vote.has_open_vote(approval, reviewer):
        return None
    error = Forbidden(vote.not_an_approver_text(approval), approval_id=approval.id)
    return record_refusal(approval, attempt, reviewer, error)


def _check_text(label: str, text: str, limit: int) -> None:
    if not text.strip() or len(text) > limit:
        raise InvalidRequest(f"{label} has 1 to {limit:,} characters.")
    canonical(text)  # NUL and lone surrogates cannot be stored

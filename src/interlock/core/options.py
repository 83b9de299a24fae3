"""What one person could decide now, and why not the rest: found out by trying, since deciding is pure."""

from __future__ import annotations

from interlock.core.approval import Approval, Edited, decide
from interlock.core.decision import Approve, Decision, Edit, Reject, Respond, Reviewer, Seen
from interlock.core.errors import Error
from interlock.core.event import Moment

VOTED = "You have approved this already. It still needs others."


def options(approval: Approval, reviewer: Reviewer, now: int) -> dict[str, str]:
    """For each kind of decision what stands in the way, or "": findings do not, once somebody looked at them."""
    seen = Seen(approval.args_sha256, approval.alarms)
    tries: tuple[Decision, ...] = (Approve(seen), Edit(b"{}", seen), Respond("?", seen=seen), Reject(seen=seen))
    return {each.kind: _hindrance(approval, each, reviewer, now) for each in tries}


def waits_for(approval: Approval, reviewer: Reviewer, now: int) -> bool:
    """Whether it needs this person's answer now: not what they voted on, and not what others have to approve first."""
    if approval.status != "pending":
        return False
    found = options(approval, reviewer, now)
    asked = [kind for kind in approval.terms.decisions if kind in ("approve", "edit")] or approval.terms.decisions
    return found["approve"] != VOTED and any(not found[kind] for kind in asked)


def _hindrance(approval: Approval, decision: Decision, reviewer: Reviewer, now: int) -> str:
    same = Edited(approval.args_sha256, b"{}", None, approval.args_sha256, "", (), approval.terms)
    prepared = same if decision.kind == "edit" else None
    try:
        change = decide(approval, decision, reviewer, Moment(now, behind=False), prepared)
    except Error as error:
        return error.message
    if change.error is not None:
        return change.error.message
    return VOTED if change.state is approval else ""

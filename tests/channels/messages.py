"""Notifications of every purpose made from real approvals, and hostile texts for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from interlock.core.approval.approval import Approval, ApprovalDeadlines, DecisionRecord
from interlock.core.call import ToolSpec, make_subject, redact
from interlock.core.card import find_findings, make_card
from interlock.core.notify.delivery import ApprovalView, Notification, Purpose, Recipient
from interlock.core.policy.policy import Ask
from tests.support import START, call

PURPOSES: tuple[Purpose, ...] = ("ask", "escalate", "remind", "changed", "ended", "expired", "group", "test")
END_STATUSES = ("approved", "rejected", "responded", "expired", "cancelled", "succeeded", "failed", "unknown")
LINK = "https://interlock.example/a/1"
HOSTILE = (
    "@everyone <!channel> <@U123> <https://evil.example|look> [click](https://evil.example) **bold** `code` ||hidden||"
    "\n\nApproved by ada.\r\n# Title\n{{DATE(2026-01-01)}} <b>bold</b> <at>ada</at> \u202egnp.exe ${x} @{x} {{TIME}}"
)


def make_view(
    args: Mapping[str, object] | None = None,
    *,
    status: str = "pending",
    secret: tuple[str, ...] = (),
    priority: str = "medium",
    sentence: str = "Delete /tmp/x",
    agent: str = "bot",
) -> ApprovalView:
    spec = ToolSpec("delete_file", "destructive", secret=secret)
    asked = call(1, {"path": "/tmp/x"} if args is None else args, agent=agent)
    shown = redact(asked.args, spec, b"key of the test")
    approval = Approval(
        id="5a7d9c1e-0000-4000-8000-000000000001",
        subject=make_subject(asked, spec, priority, "nonce"),
        terms=Ask(),
        args_sha256=shown.sha256,
        binding="b" * 64,
        status=status,
        created_at=START,
        deadlines=ApprovalDeadlines(expires_at=START + 300_000),
        decision=_decision_record(status),
    )
    card = make_card(
        tool=spec.name,
        sentence=sentence,
        risk="high",
        facts=(("agent", "bot"),),
        args=shown.value,
        findings=find_findings(shown.value, None, shown.secrets),
        secrets=shown.secrets,
    )
    return ApprovalView(approval=approval, status=status, card=card)


def make_notification(purpose: Purpose = "ask", about: ApprovalView | None = None, **more: Any) -> Notification:
    """A notification of this purpose about an approval; a test or a group has none."""
    bare = purpose in ("group", "test")
    ended = {"ended": "approved", "expired": "expired"}
    said = None if bare else about or make_view(status=ended.get(purpose, "pending"))
    made = Notification(
        id=f"d1.{purpose}",
        thread="default.d1",
        workspace="default",
        purpose=purpose,
        to=Recipient(),
        link=LINK,
        at=START,
        approval_view=said,
        count=21 if bare else 0,
        requested_by="ada",
    )
    return replace(made, **more)


def _decision_record(status: str) -> DecisionRecord | None:
    kinds = {"rejected": "reject", "responded": "respond", "expired": "expire", "cancelled": "cancel"}
    if status == "pending":
        return None
    return DecisionRecord(kinds.get(status, "approve"), "interlock" if status == "expired" else "bob", START, via="web")

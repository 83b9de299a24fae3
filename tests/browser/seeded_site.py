"""A site with content on every page: calls in every state, findings, people, conversations, rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.browser.site import Site, run_site

POLICY = {
    "version": 1,
    "defaults": {"expires_in": "1d"},
    "rules": [
        {"name": "reads are free", "effect": "read", "then": "allow"},
        {"name": "two people for transfers", "tools": ["fund_transfer"], "then": "ask", "quorum": 2},
        {"name": "deletions are urgent", "tools": ["delete_*"], "then": "ask", "priority": "high"},
        {"name": "nobody drops tables", "tools": ["drop_*"], "then": "deny", "reason": "Not allowed."},
    ],
}
MAIL = {"to": "ann@example.com", "subject": "Numbers", "body": "The numbers of the week.\nAll well."}
ODD = {
    "to": "supp\u043ert@example.com",
    "url": "https://ex\u0430mple.com/pay",
    "note": "in\u202evoice\u202c \u200bhidden",
    "emoji": "done \U0001f389",
    "long": "a" * 3_000 + " b",
}
NESTED = {"page": {"slug": "pricing", "tags": ["a", "b"], "live": True, "price": 12.5, "owner": None}, "count": 3}
SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "title": "To"},
        "subject": {"type": "string"},
        "body": {"type": "string"},
    },
    "required": ["to", "body"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class SeededSite:
    """Approval ids by status; the thread has a pending card."""

    site: Site
    agent: httpx2.Client
    ids: dict[str, str]
    thread: str


@contextmanager
def seed_site(folder: Path) -> Iterator[SeededSite]:
    with run_site(f"sqlite:///{folder / 'interlock.db'}", folder, "--demo") as site:
        site.put_policy(POLICY)
        site.person("bob", teams=("finance",))
        agent = site.agent()
        ids = {**make_pending_calls(site, agent), **make_decided_calls(site, agent)}
        yield SeededSite(site, agent, ids, start_conversation(site))


def make_pending_calls(site: Site, agent: httpx2.Client) -> dict[str, str]:
    for number in range(6):
        site.propose(agent, "send_mail", {**MAIL, "subject": f"Numbers {number}"}, schema=SCHEMA)
    return {
        "pending": site.propose(agent, "send_mail", MAIL, schema=SCHEMA, agent_says="**Please** approve."),
        "odd": site.propose(agent, "send_mail", ODD, agent_says="Nothing to see."),
        "nested": site.propose(agent, "save_page", NESTED, preview="- old\n+ new", effect="write"),
        "high": site.propose(agent, "delete_page", {"slug": "pricing"}, effect="destructive"),
        "quorum": site.propose(agent, "fund_transfer", {"amount": 2000, "recipient": "ann"}),
        "question": make_questions(site, agent),
    }


def make_questions(site: Site, agent: httpx2.Client) -> str:
    body = {"question": "Which colour?", "choices": ["red", "blue"], "run_id": "run", "call_id": "question"}
    return str(agent.post("/api/questions", json=body).json()["approval_id"])


def make_decided_calls(site: Site, agent: httpx2.Client) -> dict[str, str]:
    ids = {kind: site.propose(agent, "send_mail", {**MAIL, "subject": kind}, schema=SCHEMA) for kind in KINDS}
    for kind, approval_id in ids.items():
        decide(site, approval_id, **KINDS[kind])
    for kind, ok in (("succeeded", True), ("failed", False)):
        fence = agent.post(f"/api/calls/{ids[kind]}/start", json={}).json()["fence"]
        told = {"ok": True, "result": {"id": "m1"}} if ok else {"ok": False, "error": "The server said no."}
        agent.post(f"/api/calls/{ids[kind]}/finish", json={"fence": fence, **told})
    agent.post(f"/api/calls/{ids['running']}/start", json={"lease_seconds": 3600})
    return ids


KINDS: dict[str, dict[str, Any]] = {
    "approved": {"kind": "approve"},
    "edited": {"kind": "edit", "args": {**MAIL, "subject": "Better numbers"}},
    "rejected": {"kind": "reject", "reason": "Not now."},
    "responded": {"kind": "respond", "message": "Ask Eve first."},
    "running": {"kind": "approve"},
    "succeeded": {"kind": "approve"},
    "failed": {"kind": "approve"},
}


def decide(site: Site, approval_id: str, **decision: Any) -> None:
    digest = site.approval(approval_id)["args_sha256"]
    answer = site.admin.post(f"/api/approvals/{approval_id}/decision", json={"args_sha256": digest, **decision})
    assert answer.status_code == 200, answer.text


def start_conversation(site: Site) -> str:
    """A conversation that has come to a card."""
    message = 'create an issue titled "Fix login"'
    with site.admin.stream("POST", "/api/chat", json={"message": message}) as answer:
        assert "event: approval_request" in answer.iter_lines()
        return str(answer.headers["x-thread-id"])

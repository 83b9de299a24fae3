"""Reads the named statements, and puts the one statement together whose filters vary."""

from __future__ import annotations

import base64
import json
import re
from importlib.resources import files

from interlock.core.errors import InvalidRequest
from interlock.core.ports import Query

MAX_LIMIT = 500
APPROVAL = """
    a.workspace, a.id, a.run_id, a.call_id, a.tool, a.effect, a.agent, a.agent_path, a.thread_id, a.requester,
    a.priority, a.idempotent, a.spec_sha256, a.nonce, a.proposed, a.created_at, a.expires_at, a.terms_sha256,
    a.args_sha256, a.binding, a.status, a.version, a.progress, a.decision, a.release_at, a.start_by, a.fence,
    a.lease_until, a.runner, a.grant_id
"""
PAYLOAD = {
    "whole": "p.args, p.shown, p.sentence, p.agent_says, p.preview, p.result, p.error",
    "sentence": "null, null, p.sentence, null, null, null, null",
}
ODD = "status not in ('pending', 'succeeded')"  # neither waiting nor well: few, and the only ones in their index


def load_queries() -> dict[str, str]:
    text = (files(__package__) / "queries.sql").read_text()
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    words = {"{approval}": APPROVAL.strip(), "{payload}": PAYLOAD["whole"], "{odd}": ODD}
    for word, meaning in words.items():
        parts[1::2] = [statement.replace(word, meaning) for statement in parts[1::2]]
    return {name: statement.strip() for name, statement in zip(parts[::2], parts[1::2], strict=True)}


def list_query(workspace: str, query: Query) -> tuple[str, list[object]]:
    """Newest first; what is pending comes by time left. A cursor is the last row's place, so pages never shift."""
    place = "expires_at" if query.statuses == ("pending",) else "created_at"
    direction, beyond = ("", ">") if place == "expires_at" else ("desc", "<")
    where, values = ["a.workspace = ?"], [workspace]  # type: list[str], list[object]
    filters = {
        "tool": query.tool,
        "agent": query.agent,
        "thread_id": query.thread_id,
        "run_id": query.run_id,
        "requester": query.requester,
        "priority": query.priority,
    }
    for column, value in filters.items():
        if value:
            where.append(f"a.{column} = ?")
            values.append(value)
    if query.statuses == ("pending",):
        where.append("a.status = 'pending'")  # spelled out, so that the partial index is seen to fit
    elif query.statuses:
        where.append(f"a.status in ({', '.join('?' * len(query.statuses))})")
        values.extend(query.statuses)
    if query.cursor:
        where.append(f"(a.{place}, a.id) {beyond} (?, ?)")
        values.extend(read_cursor(query.cursor))
    text = (
        f"select {APPROVAL}, {PAYLOAD[query.payload]} from approvals a "  # noqa: S608  column names are ours
        f"left join payloads p on p.workspace = a.workspace and p.id = a.id "
        f"where {' and '.join(where)} order by a.{place} {direction}, a.id {direction} limit ?"
    )
    return text, [*values, min(max(query.limit, 1), MAX_LIMIT) + 1]


def make_cursor(place: int, approval_id: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([place, approval_id]).encode()).decode()


def read_cursor(cursor: str) -> list[object]:
    try:
        place, approval_id = json.loads(base64.urlsafe_b64decode(cursor))
        return [int(place), str(approval_id)]
    except (ValueError, TypeError):
        raise InvalidRequest("This cursor is not one that a list gave. Start from the first page.") from None

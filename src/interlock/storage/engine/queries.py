"""Load the named SQL statements, and build the statements whose filters vary."""

from __future__ import annotations

import base64
import json
import re
from importlib.resources import files

from interlock.core.approval.approval import STATUSES
from interlock.core.errors import InvalidRequest
from interlock.core.ports import ApprovalQuery

Sql = tuple[str, list[object]]
MAX_LIMIT = 500
APPROVAL_COLUMNS = """
    a.workspace, a.id, a.run_id, a.call_id, a.tool, a.effect, a.agent, a.agent_path, a.thread_id, a.requester,
    a.priority, a.idempotent, a.spec_sha256, a.nonce, a.proposed, a.created_at, a.expires_at, a.terms_sha256,
    a.args_sha256, a.binding, a.status, a.version, a.progress, a.decision, a.release_at, a.start_by, a.fence,
    a.lease_until, a.runner, a.grant_id, a.owner, a.known
"""
DELIVERY_COLUMNS = (
    "workspace, id, approval_id, channel, place, person, reason, priority, status, wanted, said, nudge, nudged, ref, "
    "attempts, fence, runner, error, created_at, since, due_at, sent_at, spent_at"
)
PAYLOAD_COLUMNS = {
    "whole": "p.args, p.shown, p.sentence, p.agent_says, p.preview, p.result, p.error, p.preview_version",
    "sentence": "null, null, p.sentence, null, null, null, null, null",
}
# Counted by time, tool and agent: proposals, their outcomes, and refused decisions.
CHARTED_KINDS = (
    "('proposed', 'allowed', 'denied', 'approved', 'edited', 'rejected', 'undone', 'responded', 'expired', "
    "'cancelled', 'decision_refused')"
)
# Entries that state the people, keys, policies, grants, agents, freezes and pins. The uses of grants are left out:
# every call that a grant allows writes one.
STATEMENT_KINDS = (
    "('user_changed', 'user_removed', 'away_changed', 'key_created', 'key_rotated', 'key_changed', 'key_revoked', "
    "'policy_changed', 'granted', 'grant_revoked', 'agent_changed', 'agent_deleted', 'frozen', 'unfrozen', "
    "'tool_pinned', 'tool_unpinned', 'stated', 'erased')"
)
RARE_STATUS_CONDITION = (
    "status not in ('pending', 'succeeded')"  # neither pending nor succeeded: few, and the only ones in their index
)
# A cross join, which SQLite never reorders: the few rows of the page come first, regardless of its estimates.
_JOIN_PAGE = (
    "cross join approvals a left join payloads p on p.workspace = a.workspace and p.id = a.id "
    "where a.workspace = ? and a.id = page.id"
)


def load_queries() -> dict[str, str]:
    text = (files(__package__) / "queries.sql").read_text()
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    words = {
        "{approval}": APPROVAL_COLUMNS.strip(),
        "{payload}": PAYLOAD_COLUMNS["whole"],
        "{rare_status}": RARE_STATUS_CONDITION,
        "{charted_kinds}": CHARTED_KINDS,
    }
    words |= {"{delivery}": DELIVERY_COLUMNS, "{statement_kinds}": STATEMENT_KINDS}
    for word, meaning in words.items():
        parts[1::2] = [statement.replace(word, meaning) for statement in parts[1::2]]
    return {name: statement.strip() for name, statement in zip(parts[::2], parts[1::2], strict=True)}


def clamp_limit(query: ApprovalQuery) -> int:
    return min(max(query.limit, 1), MAX_LIMIT)


def list_query(workspace: str, query: ApprovalQuery) -> Sql:
    """Query for a page, newest first, or pending ones by time left. A cursor is the last row, so pages never shift."""
    if query.statuses not in ((), ("pending",)):
        return _statuses_query(workspace, query)
    column, direction = ("expires_at", "") if query.statuses else ("created_at", "desc")
    status = " and a.status = 'pending'" if query.statuses else ""  # spelled out, so that the partial index is used
    after_cursor, values = _cursor_filter(query, column)
    created, times = created_between(query)
    text = (
        f"select {APPROVAL_COLUMNS}, {PAYLOAD_COLUMNS[query.payload]} from approvals a "  # noqa: S608  column names are ours
        f"left join payloads p on p.workspace = a.workspace and p.id = a.id "
        f"where a.workspace = ?{status}{after_cursor}{created} "
        f"order by a.{column} {direction}, a.id {direction} limit {clamp_limit(query) + 1:d}"
    )
    return text, [workspace, *values, *times]


def _statuses_query(workspace: str, query: ApprovalQuery) -> Sql:
    """Query for a page of each status, merged; statuses are spelled out, so that their index is used."""
    (after_cursor, values), (created, times) = _cursor_filter(query, "created_at"), created_between(query)
    most = clamp_limit(query) + 1
    pages = [
        f"select * from (select a.id, a.created_at from approvals a "  # noqa: S608
        f"where a.status = '{status}' and a.{RARE_STATUS_CONDITION} "
        f"and a.workspace = ?{after_cursor}{created} "
        f"order by a.created_at desc, a.id desc limit {most:d}) {status}_page"
        for status in query.statuses
    ]
    text = (
        f"select {APPROVAL_COLUMNS}, {PAYLOAD_COLUMNS[query.payload]} "  # noqa: S608
        f"from ({' union all '.join(pages)}) page {_JOIN_PAGE} "
        f"order by page.created_at desc, page.id desc limit {most:d}"
    )
    return text, [*[workspace, *values, *times] * len(pages), workspace]


def page_query(source: Sql, workspace: str, payload: str) -> Sql:
    """Query for the approvals of a page of documents, with the document's number as the last column."""
    text = (
        f"select {APPROVAL_COLUMNS}, {PAYLOAD_COLUMNS[payload]}, page.doc "  # noqa: S608
        f"from ({source[0]}) page {_JOIN_PAGE} order by page.doc desc"
    )
    return text, [*source[1], workspace]


def scan_pending_query(condition: Sql, workspace: str, query: ApprovalQuery, most: int, payload: str) -> Sql:
    """Query for pending approvals that match, by time left; at most `most` rows are scanned."""
    (pending, values), (created, times) = _pending_query(workspace, query, most), created_between(query)
    text = (
        f"select {APPROVAL_COLUMNS}, {PAYLOAD_COLUMNS[payload]} from ("  # noqa: S608  column names are ours
        f"select a.id, a.expires_at from ({pending}) a cross join docs d "
        f"where d.workspace = ? and d.id = a.id and {condition[0]}{created} "
        f"order by a.expires_at, a.id limit {clamp_limit(query) + 1:d}"
        f") page {_JOIN_PAGE} order by page.expires_at, page.id"
    )
    return text, [*values, workspace, *condition[1], *times, workspace]


def scan_end_query(workspace: str, query: ApprovalQuery, most: int) -> Sql:
    """Query for the position of the last row that `scan_pending_query` scans; no row if it reaches the end first."""
    pending, values = _pending_query(workspace, query, most)
    return f"select page.expires_at, page.id from ({pending}) page limit 1 offset {most - 1:d}", values  # noqa: S608


def sort_pending_query(source: Sql, workspace: str, query: ApprovalQuery, payload: str) -> Sql:
    """Query for pending approvals by time left, restricted to the ids of `source`."""
    (after_cursor, values), (created, times) = _cursor_filter(query, "expires_at"), created_between(query)
    text = (
        f"select {APPROVAL_COLUMNS}, {PAYLOAD_COLUMNS[payload]} from ({source[0]}) page {_JOIN_PAGE} "  # noqa: S608
        f"and a.status = 'pending'{after_cursor}{created} order by a.expires_at, a.id limit {clamp_limit(query) + 1:d}"
    )
    return text, [*source[1], workspace, *values, *times]


def created_between(query: ApprovalQuery) -> Sql:
    text, values = "", []  # type: str, list[object]
    if query.since:
        text, values = " and a.created_at >= ?", [query.since]
    if query.until is not None:
        text, values = f"{text} and a.created_at < ?", [*values, query.until]
    return text, values


def check_statuses(query: ApprovalQuery) -> None:
    """Raise InvalidRequest for an unknown status: statuses are spelled out in statements."""
    unknown = [status for status in query.statuses if status not in STATUSES]
    if unknown:
        raise InvalidRequest(f"There is no status {unknown[0]!r}. It is one of {', '.join(STATUSES)}.")


def make_cursor(*place: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def read_cursor(cursor: str) -> list[object]:
    """Return the time and id in a cursor."""
    time, approval_id = _decode_cursor(cursor, 2)
    if not isinstance(approval_id, str) or not approval_id.replace("-", "").isalnum():
        raise InvalidRequest(_INVALID_CURSOR)
    return [_check_int(time), approval_id]


def read_search_cursor(cursor: str) -> int:
    """Return the document number in a cursor."""
    return _check_int(_decode_cursor(cursor, 1)[0])


def _pending_query(workspace: str, query: ApprovalQuery, most: int) -> Sql:
    after_cursor, values = _cursor_filter(query, "expires_at")
    text = (
        "select a.id, a.expires_at, a.created_at from approvals a "  # noqa: S608  column names are ours
        f"where a.workspace = ? and a.status = 'pending'{after_cursor} "
        f"order by a.expires_at, a.id limit {most:d}"
    )
    return text, [workspace, *values]


def _cursor_filter(query: ApprovalQuery, column: str) -> Sql:
    if not query.cursor:
        return "", []
    beyond = ">" if column == "expires_at" else "<"
    return f" and (a.{column}, a.id) {beyond} (?, ?)", read_cursor(query.cursor)


def _decode_cursor(cursor: str, length: int) -> list[object]:
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor))
    except ValueError:
        raise InvalidRequest(_INVALID_CURSOR) from None
    if not isinstance(place, list) or len(place) != length:
        raise InvalidRequest(_INVALID_CURSOR)
    return place


def _check_int(number: object) -> int:
    if type(number) is not int or not -(2**62) < number < 2**62:
        raise InvalidRequest(_INVALID_CURSOR)
    return number


_INVALID_CURSOR = "This cursor is not one that this list gave. Start from the first page."

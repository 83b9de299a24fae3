"""Demo issues: a small team that builds a web shop."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from interlock.core.ports import ToolItemStore, ToolItemTransaction

ISSUE = "linear_issue"
TYPE_NAMES = {
    ISSUE: "Issue",
    "linear_comment": "Comment",
    "linear_cycle": "Cycle",
    "linear_label": "IssueLabel",
    "linear_project": "Project",
    "linear_project_status": "ProjectStatus",
    "linear_state": "WorkflowState",
    "linear_team": "Team",
    "linear_user": "User",
}
KINDS = tuple(TYPE_NAMES)


def format_time(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds // 1000, UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


HOUR = 3_600_000
DAY = 24 * HOUR
TEAM = "Demo"
STATES = {
    "Backlog": "backlog",
    "Todo": "unstarted",
    "In Progress": "started",
    "In Review": "started",
    "Done": "completed",
    "Canceled": "canceled",
}
PEOPLE = ("Ada Lovelace", "Grace Hopper", "Alan Turing", "Katherine Johnson")  # the first is the key's owner
LABELS = {"Bug": "#eb5757", "Feature": "#bb87fc", "Improvement": "#4ea7fc", "Security": "#f2994a", "Docs": "#95a2b3"}
PROJECT = "Checkout that nobody leaves"
STATUSES = {"Backlog": "backlog", "In Progress": "started", "Completed": "completed"}


async def fill_linear(items: ToolItemStore) -> bool:
    """Add the demo's team and its issues once; return False if there is a team already."""
    if await items.list("linear_team"):
        return False
    return bool(await items.change("", _put_all))


def _put_all(transaction: ToolItemTransaction) -> bool:
    if transaction.list("linear_team"):
        return False
    _put_references(transaction)
    for number, issue in enumerate(ISSUES, 1):
        age = (len(ISSUES) - number) * 7 * HOUR
        _put(transaction, ISSUE, str(number), {**_body(issue), "number": number}, age)
    sign_in = _id(ISSUE, "1")
    for number, words in enumerate(COMMENTS, 1):
        body = {"issue": sign_in, "body": words, "user": _id("linear_user", PEOPLE[number])}
        _put(transaction, "linear_comment", str(number), body, number * HOUR)
    return True


def _put_references(transaction: ToolItemTransaction) -> None:
    """Add the items that the issues refer to."""
    team = _id("linear_team", TEAM)
    first_state = _id("linear_state", "Todo")
    demo = {"key": "DEMO", "name": TEAM, "visibility": "public", "defaultIssueState": first_state}
    _put(transaction, "linear_team", TEAM, demo)
    for position, (name, kind) in enumerate(STATES.items()):
        _put(transaction, "linear_state", name, {"name": name, "type": kind, "team": team, "position": position})
    for name in PEOPLE:
        short = name.split()[0].lower()
        email = f"{short}@demo.example"
        body = {"name": name, "displayName": short, "email": email, "active": True, "isMe": name == PEOPLE[0]}
        _put(transaction, "linear_user", name, body)
    for name, color in LABELS.items():
        _put(transaction, "linear_label", name, {"name": name, "color": color, "isGroup": False, "team": None})
    for name, kind in STATUSES.items():
        _put(transaction, "linear_project_status", name, {"name": name, "type": kind})
    about = {"description": "Fewer people who leave with a full cart.", "content": None, "teamIds": [team]}
    status = _id("linear_project_status", "In Progress")
    _put(
        transaction,
        "linear_project",
        PROJECT,
        {"name": PROJECT, "status": status, "frequencyResolution": "weekly", **about},
    )
    dates = {"startsAt": format_time(transaction.now - 5 * DAY), "endsAt": format_time(transaction.now + 9 * DAY)}
    _put(transaction, "linear_cycle", "1", {"number": 1, "name": "Sprint 1", "team": team, **dates})


def _body(issue: DemoIssue) -> Mapping[str, object]:
    return {
        "title": issue.title,
        "description": issue.description or None,
        "priority": issue.priority,
        "state": _id("linear_state", issue.state),
        "assignee": _id("linear_user", issue.assignee) if issue.assignee else None,
        "labelIds": [_id("linear_label", label) for label in issue.labels.split()],
        "team": _id("linear_team", TEAM),
        "project": _id("linear_project", PROJECT) if issue.of_project else None,
        "cycle": _id("linear_cycle", "1") if issue.state.startswith("In ") else None,
        "creator": _id("linear_user", PEOPLE[0]),
        "parent": _id(ISSUE, str(issue.parent)) if issue.parent else None,
        "trashed": None,
    }


def _put(transaction: ToolItemTransaction, kind: str, name: str, body: Mapping[str, object], age: int = 0) -> None:
    stamp = format_time(transaction.now - age)
    transaction.put(kind, _id(kind, name), {**body, "archivedAt": None, "createdAt": stamp, "updatedAt": stamp})


def _id(kind: str, name: str) -> str:
    return str(UUID(bytes=sha256(f"{kind} {name}".encode()).digest()[:16], version=4))


class DemoIssue(NamedTuple):
    title: str
    state: str
    priority: int
    labels: str = ""
    description: str = ""
    assignee: str = ""
    of_project: bool = False
    parent: int = 0


COMMENTS = ("Seen by eleven customers since Monday.", "The cookie is set for the whole domain; that is why.")
ISSUES = (
    DemoIssue(
        "Sign-in fails after a password reset",
        "In Progress",
        1,
        "Bug Security",
        "After a reset the old session cookie is kept, and the next sign-in answers 403.\n\n"
        "1. Ask for a new password\n2. Set it\n3. Sign in: **403**",
        "Ada Lovelace",
    ),
    DemoIssue(
        "Cart loses items when two tabs are open",
        "Todo",
        2,
        "Bug",
        "The second tab writes its own copy over the first.",
        "Grace Hopper",
        of_project=True,
    ),
    DemoIssue(
        "Pay with a saved card",
        "In Review",
        2,
        "Feature",
        "Show the last four digits, never more.",
        "Alan Turing",
        of_project=True,
    ),
    DemoIssue(
        "Show shipping costs before the last step",
        "Todo",
        3,
        "Improvement",
        "Most people who leave do so when they first see them.",
        of_project=True,
    ),
    DemoIssue("Receipts in the customer's language", "Backlog", 4, "Feature"),
    DemoIssue(
        "Search takes two seconds for common words",
        "In Progress",
        2,
        "Improvement",
        "An index is missing on `products.name`.",
        "Katherine Johnson",
    ),
    DemoIssue(
        "Rotate the keys of the payment provider",
        "Todo",
        1,
        "Security",
        "They are 14 months old. The new ones are in the vault.",
        "Ada Lovelace",
    ),
    DemoIssue("Write down how to restore a backup", "Backlog", 3, "Docs", assignee="Katherine Johnson"),
    DemoIssue("Product pictures are cut off on small screens", "Done", 3, "Bug", assignee="Grace Hopper"),
    DemoIssue("Ask for a rating a week after delivery", "Canceled", 4, "Feature", "Not without consent."),
    DemoIssue(
        "Guest checkout without an account",
        "In Progress",
        2,
        "Feature",
        "An e-mail address is all that is needed.",
        "Alan Turing",
        of_project=True,
    ),
    DemoIssue("Clear old session cookies on every reset", "Todo", 2, "Bug", assignee="Ada Lovelace", parent=1),
)

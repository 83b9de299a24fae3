"""What the stand-in keeps, and how a thing of it is found and shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from graphql import GraphQLError

from interlock.core.ports import Record, Shelf
from interlock.demo.linear.kinds import ISSUE, NAMES

Thing = Mapping[str, Any]

ONE = {
    "assignee": "linear_user",
    "creator": "linear_user",
    "cycle": "linear_cycle",
    "defaultIssueState": "linear_state",
    "issue": ISSUE,
    "parent": ISSUE,
    "project": "linear_project",
    "state": "linear_state",
    "status": "linear_project_status",
    "team": "linear_team",
    "user": "linear_user",
}
PRIORITIES = ("No priority", "Urgent", "High", "Medium", "Low")  # documented
PLACE = "https://linear.app/demo"


def things(shelf: Shelf, kind: str) -> list[Thing]:
    return [_thing(kind, record) for record in shelf.list(kind)]


def found(shelf: Shelf, kind: str, wanted: str) -> Thing:
    """By id, or an issue by its identifier, such as DEMO-12 (documented); raises what Linear answers (seen)."""
    record = shelf.get(kind, wanted)
    if record is not None:
        return _thing(kind, record)
    if kind == ISSUE and re.fullmatch(r"[A-Z][A-Z0-9]*-[0-9]+", wanted):
        for issue in things(shelf, ISSUE):
            if shown(shelf, issue, "identifier") == wanted:
                return issue
    raise missing(NAMES[kind])


def shown(shelf: Shelf, thing: Thing, name: str) -> Any:
    """A field that is kept, or one that follows from those that are."""
    match thing.get("__kind__"), name:
        case "linear_issue", "identifier":
            return f"{found(shelf, 'linear_team', thing['team'])['key']}-{thing['number']}"
        case "linear_issue", "priorityLabel":
            return PRIORITIES[thing["priority"]]
        case "linear_issue", "url":
            return f"{PLACE}/issue/{shown(shelf, thing, 'identifier')}"
        case "linear_comment", "url":
            return f"{shown(shelf, found(shelf, ISSUE, thing['issue']), 'url')}#comment-{thing['id'][:8]}"
        case "linear_project", "url":
            return f"{PLACE}/project/{thing['id'][:8]}"
        case _:
            return thing.get(name)


def missing(name: str) -> GraphQLError:
    return refused(f"Entity not found: {name}", words=f"Could not find referenced {name}.")


def refused(message: str, code: str = "INPUT_ERROR", words: str = "") -> GraphQLError:
    """Seen: the shape of what Linear answers to a wrong input."""
    return GraphQLError(
        message,
        extensions={
            "type": "invalid input",
            "code": code,
            "statusCode": 400,
            "userError": True,
            "userPresentableMessage": words or message,
        },
    )


def _thing(kind: str, record: Record) -> Thing:
    return {**record.body, "id": record.id, "__kind__": kind}

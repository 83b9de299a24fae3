"""Entities of the fake Linear: look-up, stored and derived fields, and errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from graphql import GraphQLError

from interlock.core.ports import ToolItem, ToolItemTransaction
from interlock.demo.linear.content import ISSUE, TYPE_NAMES

Entity = Mapping[str, Any]

SINGLE_RELATIONS = {
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
BASE_URL = "https://linear.app/demo"


def list_entities(transaction: ToolItemTransaction, kind: str) -> list[Entity]:
    return [_to_entity(kind, item) for item in transaction.list(kind)]


def find_entity(transaction: ToolItemTransaction, kind: str, wanted: str) -> Entity:
    """Find by id, or an issue by its identifier, such as DEMO-12 (documented); raises Linear's error (seen)."""
    item = transaction.get(kind, wanted)
    if item is not None:
        return _to_entity(kind, item)
    if kind == ISSUE and re.fullmatch(r"[A-Z][A-Z0-9]*-[0-9]+", wanted):
        for issue in list_entities(transaction, ISSUE):
            if field_value(transaction, issue, "identifier") == wanted:
                return issue
    raise not_found_error(TYPE_NAMES[kind])


def field_value(transaction: ToolItemTransaction, thing: Entity, name: str) -> Any:
    """Return a stored field, or one derived from stored fields."""
    match thing.get("__kind__"), name:
        case "linear_issue", "identifier":
            return f"{find_entity(transaction, 'linear_team', thing['team'])['key']}-{thing['number']}"
        case "linear_issue", "priorityLabel":
            return PRIORITIES[thing["priority"]]
        case "linear_issue", "url":
            return f"{BASE_URL}/issue/{field_value(transaction, thing, 'identifier')}"
        case "linear_comment", "url":
            issue = find_entity(transaction, ISSUE, thing["issue"])
            return f"{field_value(transaction, issue, 'url')}#comment-{thing['id'][:8]}"
        case "linear_project", "url":
            return f"{BASE_URL}/project/{thing['id'][:8]}"
        case _:
            return thing.get(name)


def not_found_error(name: str) -> GraphQLError:
    return input_error(f"Entity not found: {name}", words=f"Could not find referenced {name}.")


def input_error(message: str, code: str = "INPUT_ERROR", words: str = "") -> GraphQLError:
    """Seen: the form of Linear's error for an invalid input."""
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


def _to_entity(kind: str, item: ToolItem) -> Entity:
    return {**item.body, "id": item.id, "__kind__": kind}

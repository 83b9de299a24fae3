"""The mutations that the stand-in knows, and the rules that Linear's schema does not hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from interlock.core.ports import ToolItemTransaction
from interlock.demo.linear.kinds import ISSUE, TYPE_NAMES, format_time
from interlock.demo.linear.things import Entity, find_entity, input_error, list_entities, not_found_error

LONGEST_TITLE = 255  # assumed
LONGEST_SUMMARY = 255  # seen
Args = Mapping[str, Any]
REFERENCES = {
    "assigneeId": ("assignee", "linear_user"),
    "cycleId": ("cycle", "linear_cycle"),
    "projectId": ("project", "linear_project"),
    "stateId": ("state", "linear_state"),
}
ISSUE_INPUTS = {"title", "description", "priority", "labelIds", *REFERENCES}


def apply_mutation(shelf: ToolItemTransaction, name: str, args: Args) -> object:
    if name not in MUTATIONS:
        raise input_error(f"The demo's stand-in for Linear does not do {name}.")
    return {"success": True, "lastSyncId": float(shelf.now), **MUTATIONS[name](shelf, args)}


def _issue_create(shelf: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _check_known_fields(new, ISSUE_INPUTS | {"id", "teamId"})
    team = find_entity(shelf, "linear_team", new["teamId"])
    if not (new.get("title") or "").strip():
        raise input_error("Argument Validation Error", "INVALID_INPUT", "title should not be empty.")
    numbers = [issue["number"] for issue in list_entities(shelf, ISSUE) if issue["team"] == team["id"]]
    empty: dict[str, object] = {
        "description": None,
        "priority": 0,
        "labelIds": [],
        "assignee": None,
        "cycle": None,
        "project": None,
    }
    body = {
        **empty,
        "number": max(numbers, default=0) + 1,
        "team": team["id"],
        "state": team["defaultIssueState"],
        "creator": _viewer(shelf)["id"],
        "parent": None,
        "trashed": None,
        "archivedAt": None,
        **_issue_fields(shelf, new, team["id"]),
    }
    return {"issue": _create_entity(shelf, ISSUE, new.get("id"), body)}


def _issue_update(shelf: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    """Documented: an update with `trashed` deletes."""
    issue, new = find_entity(shelf, ISSUE, args["id"]), args["input"]
    _check_known_fields(new, ISSUE_INPUTS | {"trashed"})
    body = _issue_fields(shelf, new, issue["team"])
    if "trashed" in new:
        body |= {"trashed": new["trashed"], "archivedAt": format_time(shelf.now) if new["trashed"] else None}
    return {"issue": _update_entity(shelf, issue, body)}


def _issue_delete(shelf: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    """Documented: it goes to the trash for 30 days. Assumed: to delete it again is no error."""
    issue = find_entity(shelf, ISSUE, args["id"])
    if args.get("permanentlyDelete"):
        raise input_error("Only admins may delete for good.", "FORBIDDEN")
    return {"entity": _update_entity(shelf, issue, {"trashed": True, "archivedAt": format_time(shelf.now)})}


def _issue_add_label(shelf: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    """Assumed: a label that is there already stays, and nothing is said."""
    issue = find_entity(shelf, ISSUE, args["id"])
    label = _label(shelf, args["labelId"], issue["team"])
    labels = issue["labelIds"]
    return {"issue": _update_entity(shelf, issue, {"labelIds": labels if label in labels else [*labels, label]})}


def _comment_create(shelf: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _check_known_fields(new, {"id", "issueId", "body"})
    issue = find_entity(shelf, ISSUE, new.get("issueId") or "")
    if not (new.get("body") or "").strip():
        raise input_error("Argument Validation Error", "INVALID_INPUT", "body should not be empty.")
    body = {"issue": issue["id"], "body": new["body"], "user": _viewer(shelf)["id"], "archivedAt": None}
    return {"comment": _create_entity(shelf, "linear_comment", new.get("id"), body)}


def _project_create(shelf: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _check_known_fields(new, {"id", "name", "teamIds", "description", "content"})
    _check_length("name", new["name"], LONGEST_TITLE)
    _check_length("description", new.get("description"), LONGEST_SUMMARY)
    body = {
        "name": new["name"],
        "description": new.get("description") or "",
        "content": new.get("content"),
        "teamIds": [find_entity(shelf, "linear_team", team)["id"] for team in new["teamIds"]],
        "status": next(
            status["id"] for status in list_entities(shelf, "linear_project_status") if status["type"] == "backlog"
        ),
        "frequencyResolution": "weekly",
        "archivedAt": None,
    }
    return {"project": _create_entity(shelf, "linear_project", new.get("id"), body)}


def _cycle_create(shelf: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _check_known_fields(new, {"id", "teamId", "name", "startsAt", "endsAt"})
    team = find_entity(shelf, "linear_team", new["teamId"])
    numbers = [cycle["number"] for cycle in list_entities(shelf, "linear_cycle") if cycle["team"] == team["id"]]
    body = {"team": team["id"], "number": max(numbers, default=0) + 1, "name": new.get("name"), "archivedAt": None}
    body |= {"startsAt": new["startsAt"], "endsAt": new["endsAt"]}
    _check_dates(body)
    return {"cycle": _create_entity(shelf, "linear_cycle", new.get("id"), body)}


def _cycle_update(shelf: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    cycle, new = find_entity(shelf, "linear_cycle", args["id"]), args["input"]
    _check_known_fields(new, {"name", "startsAt", "endsAt"})
    _check_dates({**cycle, **new})
    return {"cycle": _update_entity(shelf, cycle, new)}


def _issue_fields(shelf: ToolItemTransaction, new: Args, team: str) -> dict[str, Any]:
    body = {name: new[name] for name in ("title", "description", "priority") if name in new}
    _check_length("title", new.get("title"), LONGEST_TITLE)
    if new.get("priority", 0) not in range(5):
        raise input_error("Argument Validation Error", "INVALID_INPUT", "priority must not be greater than 4.")
    for name in REFERENCES.keys() & new.keys():
        field, kind = REFERENCES[name]
        body[field] = None if new[name] is None else find_entity(shelf, kind, new[name])["id"]
    if body.get("state") and find_entity(shelf, "linear_state", body["state"])["team"] != team:
        raise input_error("Discrepancy between issue team and state team.")  # seen in parts
    if "labelIds" in new:
        body["labelIds"] = [_label(shelf, label, team) for label in new["labelIds"]]
    return body


def _label(shelf: ToolItemTransaction, label_id: str, team: str) -> str:
    """Documented: a label belongs to one team, or to all."""
    label = find_entity(shelf, "linear_label", label_id)
    if label["team"] not in (None, team):
        raise input_error("The label belongs to another team.")
    return str(label["id"])


def _create_entity(shelf: ToolItemTransaction, kind: str, wanted: str | None, body: Args) -> Entity:
    """Documented: whoever makes a thing may give its id, a UUID of version 4. Seen: the answer to one that exists."""
    count = len(shelf.list(kind))
    new_id = wanted or str(uuid5(NAMESPACE_URL, f"{kind} {count} {shelf.now}"))
    if wanted is not None and not _is_version_4(wanted):
        raise input_error("Argument Validation Error", "INVALID_INPUT", "id must be a UUID.")
    if shelf.get(kind, new_id) is not None:
        raise input_error(
            f"conflict on insert of {TYPE_NAMES[kind]}",
            words=f"Entity {TYPE_NAMES[kind]} with id {new_id} already exists.",
        )
    stamp = format_time(shelf.now)
    shelf.put(kind, new_id, {**body, "createdAt": stamp, "updatedAt": stamp})
    return find_entity(shelf, kind, new_id)


def _update_entity(shelf: ToolItemTransaction, thing: Entity, changes: Args) -> Entity:
    body = {name: value for name, value in thing.items() if name not in ("id", "__kind__")}
    shelf.put(thing["__kind__"], thing["id"], {**body, **changes, "updatedAt": format_time(shelf.now)})
    return find_entity(shelf, thing["__kind__"], thing["id"])


def _viewer(shelf: ToolItemTransaction) -> Entity:
    for user in list_entities(shelf, "linear_user"):
        if user["isMe"]:
            return user
    raise not_found_error("User")


def _check_known_fields(new: Args, known: set[str]) -> None:
    if unknown := sorted(name for name, value in new.items() if name not in known and value is not None):
        raise input_error(f"The demo's stand-in for Linear does not take {', '.join(unknown)}.")


def _check_length(name: str, value: str | None, most: int) -> None:
    if value is not None and not 0 < len(value) <= most:
        raise input_error("Argument Validation Error", "INVALID_INPUT", f"{name} must be 1 to {most} characters long.")


def _check_dates(cycle: Args) -> None:
    """Assumed."""
    if str(cycle["startsAt"]) >= str(cycle["endsAt"]):
        raise input_error("The cycle's end must be after its start.")


def _is_version_4(wanted: str) -> bool:
    try:
        return UUID(wanted).version == 4
    except ValueError:
        return False


MUTATIONS: Mapping[str, Callable[[ToolItemTransaction, Args], Mapping[str, object]]] = {
    "commentCreate": _comment_create,
    "cycleCreate": _cycle_create,
    "cycleUpdate": _cycle_update,
    "issueAddLabel": _issue_add_label,
    "issueCreate": _issue_create,
    "issueDelete": _issue_delete,
    "issueUpdate": _issue_update,
    "projectCreate": _project_create,
}

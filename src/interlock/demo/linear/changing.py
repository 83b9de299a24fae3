"""The mutations that the stand-in knows, and the rules that Linear's schema does not hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from interlock.core.ports import Shelf
from interlock.demo.linear.kinds import ISSUE, NAMES, when
from interlock.demo.linear.things import Thing, found, missing, refused, things

LONGEST_TITLE = 255  # assumed
LONGEST_SUMMARY = 255  # seen
Args = Mapping[str, Any]
REFERENCES = {
    "assigneeId": ("assignee", "linear_user"),
    "cycleId": ("cycle", "linear_cycle"),
    "projectId": ("project", "linear_project"),
    "stateId": ("state", "linear_state"),
}
OF_AN_ISSUE = {"title", "description", "priority", "labelIds", *REFERENCES}


def changed(shelf: Shelf, name: str, args: Args) -> object:
    if name not in MUTATIONS:
        raise refused(f"The demo's stand-in for Linear does not do {name}.")
    return {"success": True, "lastSyncId": float(shelf.now), **MUTATIONS[name](shelf, args)}


def _issue_create(shelf: Shelf, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _only(new, OF_AN_ISSUE | {"id", "teamId"})
    team = found(shelf, "linear_team", new["teamId"])
    if not (new.get("title") or "").strip():
        raise refused("Argument Validation Error", "INVALID_INPUT", "title should not be empty.")
    numbers = [issue["number"] for issue in things(shelf, ISSUE) if issue["team"] == team["id"]]
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
        **_of_issue(shelf, new, team["id"]),
    }
    return {"issue": _added(shelf, ISSUE, new.get("id"), body)}


def _issue_update(shelf: Shelf, args: Args) -> Mapping[str, object]:
    """Documented: an update with `trashed` deletes."""
    issue, new = found(shelf, ISSUE, args["id"]), args["input"]
    _only(new, OF_AN_ISSUE | {"trashed"})
    body = _of_issue(shelf, new, issue["team"])
    if "trashed" in new:
        body |= {"trashed": new["trashed"], "archivedAt": when(shelf.now) if new["trashed"] else None}
    return {"issue": _kept(shelf, issue, body)}


def _issue_delete(shelf: Shelf, args: Args) -> Mapping[str, object]:
    """Documented: it goes to the trash for 30 days. Assumed: to delete it again is no error."""
    issue = found(shelf, ISSUE, args["id"])
    if args.get("permanentlyDelete"):
        raise refused("Only admins may delete for good.", "FORBIDDEN")
    return {"entity": _kept(shelf, issue, {"trashed": True, "archivedAt": when(shelf.now)})}


def _issue_add_label(shelf: Shelf, args: Args) -> Mapping[str, object]:
    """Assumed: a label that is there already stays, and nothing is said."""
    issue = found(shelf, ISSUE, args["id"])
    label = _label(shelf, args["labelId"], issue["team"])
    labels = issue["labelIds"]
    return {"issue": _kept(shelf, issue, {"labelIds": labels if label in labels else [*labels, label]})}


def _comment_create(shelf: Shelf, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _only(new, {"id", "issueId", "body"})
    issue = found(shelf, ISSUE, new.get("issueId") or "")
    if not (new.get("body") or "").strip():
        raise refused("Argument Validation Error", "INVALID_INPUT", "body should not be empty.")
    body = {"issue": issue["id"], "body": new["body"], "user": _viewer(shelf)["id"], "archivedAt": None}
    return {"comment": _added(shelf, "linear_comment", new.get("id"), body)}


def _project_create(shelf: Shelf, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _only(new, {"id", "name", "teamIds", "description", "content"})
    _within("name", new["name"], LONGEST_TITLE)
    _within("description", new.get("description"), LONGEST_SUMMARY)
    body = {
        "name": new["name"],
        "description": new.get("description") or "",
        "content": new.get("content"),
        "teamIds": [found(shelf, "linear_team", team)["id"] for team in new["teamIds"]],
        "status": next(
            status["id"] for status in things(shelf, "linear_project_status") if status["type"] == "backlog"
        ),
        "frequencyResolution": "weekly",
        "archivedAt": None,
    }
    return {"project": _added(shelf, "linear_project", new.get("id"), body)}


def _cycle_create(shelf: Shelf, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _only(new, {"id", "teamId", "name", "startsAt", "endsAt"})
    team = found(shelf, "linear_team", new["teamId"])
    numbers = [cycle["number"] for cycle in things(shelf, "linear_cycle") if cycle["team"] == team["id"]]
    body = {"team": team["id"], "number": max(numbers, default=0) + 1, "name": new.get("name"), "archivedAt": None}
    body |= {"startsAt": new["startsAt"], "endsAt": new["endsAt"]}
    _in_order(body)
    return {"cycle": _added(shelf, "linear_cycle", new.get("id"), body)}


def _cycle_update(shelf: Shelf, args: Args) -> Mapping[str, object]:
    cycle, new = found(shelf, "linear_cycle", args["id"]), args["input"]
    _only(new, {"name", "startsAt", "endsAt"})
    _in_order({**cycle, **new})
    return {"cycle": _kept(shelf, cycle, new)}


def _of_issue(shelf: Shelf, new: Args, team: str) -> dict[str, Any]:
    body = {name: new[name] for name in ("title", "description", "priority") if name in new}
    _within("title", new.get("title"), LONGEST_TITLE)
    if new.get("priority", 0) not in range(5):
        raise refused("Argument Validation Error", "INVALID_INPUT", "priority must not be greater than 4.")
    for name in REFERENCES.keys() & new.keys():
        field, kind = REFERENCES[name]
        body[field] = None if new[name] is None else found(shelf, kind, new[name])["id"]
    if body.get("state") and found(shelf, "linear_state", body["state"])["team"] != team:
        raise refused("Discrepancy between issue team and state team.")  # seen in parts
    if "labelIds" in new:
        body["labelIds"] = [_label(shelf, label, team) for label in new["labelIds"]]
    return body


def _label(shelf: Shelf, label_id: str, team: str) -> str:
    """Documented: a label belongs to one team, or to all."""
    label = found(shelf, "linear_label", label_id)
    if label["team"] not in (None, team):
        raise refused("The label belongs to another team.")
    return str(label["id"])


def _added(shelf: Shelf, kind: str, wanted: str | None, body: Args) -> Thing:
    """Documented: whoever makes a thing may give its id, a UUID of version 4. Seen: the answer to one that exists."""
    count = len(shelf.list(kind))
    new_id = wanted or str(uuid5(NAMESPACE_URL, f"{kind} {count} {shelf.now}"))
    if wanted is not None and not _is_version_4(wanted):
        raise refused("Argument Validation Error", "INVALID_INPUT", "id must be a UUID.")
    if shelf.get(kind, new_id) is not None:
        raise refused(
            f"conflict on insert of {NAMES[kind]}", words=f"Entity {NAMES[kind]} with id {new_id} already exists."
        )
    stamp = when(shelf.now)
    shelf.put(kind, new_id, {**body, "createdAt": stamp, "updatedAt": stamp})
    return found(shelf, kind, new_id)


def _kept(shelf: Shelf, thing: Thing, changes: Args) -> Thing:
    body = {name: value for name, value in thing.items() if name not in ("id", "__kind__")}
    shelf.put(thing["__kind__"], thing["id"], {**body, **changes, "updatedAt": when(shelf.now)})
    return found(shelf, thing["__kind__"], thing["id"])


def _viewer(shelf: Shelf) -> Thing:
    for user in things(shelf, "linear_user"):
        if user["isMe"]:
            return user
    raise missing("User")


def _only(new: Args, known: set[str]) -> None:
    if unknown := sorted(name for name, value in new.items() if name not in known and value is not None):
        raise refused(f"The demo's stand-in for Linear does not take {', '.join(unknown)}.")


def _within(name: str, value: str | None, most: int) -> None:
    if value is not None and not 0 < len(value) <= most:
        raise refused("Argument Validation Error", "INVALID_INPUT", f"{name} must be 1 to {most} characters long.")


def _in_order(cycle: Args) -> None:
    """Assumed."""
    if str(cycle["startsAt"]) >= str(cycle["endsAt"]):
        raise refused("The cycle's end must be after its start.")


def _is_version_4(wanted: str) -> bool:
    try:
        return UUID(wanted).version == 4
    except ValueError:
        return False


MUTATIONS: Mapping[str, Callable[[Shelf, Args], Mapping[str, object]]] = {
    "commentCreate": _comment_create,
    "cycleCreate": _cycle_create,
    "cycleUpdate": _cycle_update,
    "issueAddLabel": _issue_add_label,
    "issueCreate": _issue_create,
    "issueDelete": _issue_delete,
    "issueUpdate": _issue_update,
    "projectCreate": _project_create,
}

"""GraphQL resolvers of the fake Linear. A field that it does not know is an error, never invented.

It is long because the entities, with their stored and derived fields, stand beside the queries over them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from graphql import GraphQLError, GraphQLResolveInfo

from interlock.core.ports import ToolItem, ToolItemTransaction
from interlock.demo.linear.content import ISSUE, TYPE_NAMES, format_time

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


USUAL_PAGE, LARGEST_PAGE = 50, 250  # documented, and seen


class ItemSnapshot:
    """A read-only snapshot of the items, with the interface of a transaction."""

    now = 0

    def __init__(self, held: Mapping[str, Sequence[ToolItem]]) -> None:
        self._held = {kind: {item.id: item for item in items} for kind, items in held.items()}

    def get(self, kind: str, item_id: str) -> ToolItem | None:
        return self._held[kind].get(item_id)

    def list(self, kind: str) -> Sequence[ToolItem]:
        return list(self._held[kind].values())

    def put(self, kind: str, item_id: str, body: Mapping[str, object]) -> None:
        raise TypeError("A query changes nothing.")

    def delete(self, kind: str, item_id: str) -> None:
        raise TypeError("A query changes nothing.")


def resolve_field(source: Any, info: GraphQLResolveInfo[ToolItemTransaction], **args: Any) -> Any:
    """Resolve every field of every type."""
    transaction = info.context
    match info.parent_type.name:
        case "Query":
            return _query(transaction, info.field_name, args)
        case "Mutation":
            return apply_mutation(transaction, info.field_name, args)
        case _:
            return _field(transaction, source, info.field_name, args)


def _query(transaction: ToolItemTransaction, name: str, args: Mapping[str, Any]) -> object:
    if name in SINGLE:
        return find_entity(transaction, SINGLE[name], args["id"])
    if name in LISTS:
        return _page(transaction, list_entities(transaction, LISTS[name]), args)
    match name:
        case "viewer":
            return next(user for user in list_entities(transaction, "linear_user") if user["isMe"])
        case "searchIssues":
            return _search(transaction, args)
        case _:
            raise input_error(f"The demo's simulated Linear does not answer {name}.")


def _field(transaction: ToolItemTransaction, thing: Entity, name: str, args: Mapping[str, Any]) -> object:
    if name in LIST_RELATIONS and "__kind__" in thing:
        return _page(transaction, LIST_RELATIONS[name](transaction, thing), args)
    if name in SINGLE_RELATIONS and "__kind__" in thing:
        related = thing.get(name)
        return None if related is None else find_entity(transaction, SINGLE_RELATIONS[name], related)
    return field_value(transaction, thing, name)


def _search(transaction: ToolItemTransaction, args: Mapping[str, Any]) -> object:
    """Search; Linear ranks by meaning, here all words have to occur, in any order (assumed)."""
    sought = str(args["term"]).casefold().split()

    def has_all(issue: Entity) -> bool:
        text = " ".join(
            str(field_value(transaction, issue, name) or "") for name in ("identifier", "title", "description")
        )
        return all(word in text.casefold() for word in sought)

    hits = [issue for issue in list_entities(transaction, ISSUE) if has_all(issue)]
    return {**_page(transaction, hits, args), "totalCount": len(hits)}


def _page(transaction: ToolItemTransaction, all_of: Iterable[Entity], args: Mapping[str, Any]) -> dict[str, object]:
    """Documented: 50 at a time, the newest first; archived or trashed ones only on request."""
    first = args.get("first") or USUAL_PAGE
    if not 1 <= first <= LARGEST_PAGE or args.get("before") or args.get("last"):
        raise input_error(f"The demo's simulated Linear takes first: 1 to {LARGEST_PAGE}, and after.")
    order = args.get("orderBy") or "createdAt"
    fitting = [thing for thing in all_of if _is_listed(transaction, thing, args)]
    fitting.sort(key=lambda thing: (str(thing.get(order) or ""), float(thing.get("number") or 0)), reverse=True)
    begin = _index_after(fitting, args.get("after"))
    page = fitting[begin : begin + first]
    return {
        "nodes": page,
        "edges": [{"node": thing, "cursor": thing["id"]} for thing in page],
        "pageInfo": {
            "hasNextPage": begin + first < len(fitting),
            "hasPreviousPage": begin > 0,
            "startCursor": page[0]["id"] if page else None,
            "endCursor": page[-1]["id"] if page else None,
        },
    }


def _is_listed(transaction: ToolItemTransaction, thing: Entity, args: Mapping[str, Any]) -> bool:
    there = args.get("includeArchived") or not thing.get("archivedAt")
    return bool(there) and matches_filter(transaction, thing, args.get("filter") or {})


def _index_after(fitting: Sequence[Entity], cursor: str | None) -> int:
    if cursor is None:
        return 0
    ids = [thing["id"] for thing in fitting]
    if cursor not in ids:
        raise not_found_error("Cursor")
    return ids.index(cursor) + 1


def _related_by(kind: str, field: str) -> Callable[[ToolItemTransaction, Entity], Iterable[Entity]]:
    return lambda transaction, thing: [
        other for other in list_entities(transaction, kind) if other.get(field) == thing["id"]
    ]


def _labels(transaction: ToolItemTransaction, thing: Entity) -> Iterable[Entity]:
    if thing["__kind__"] != ISSUE:
        return _related_by("linear_label", "team")(transaction, thing)
    return [find_entity(transaction, "linear_label", label) for label in thing["labelIds"]]


SINGLE = {
    "issue": ISSUE,
    "comment": "linear_comment",
    "cycle": "linear_cycle",
    "project": "linear_project",
    "team": "linear_team",
    "user": "linear_user",
    "issueLabel": "linear_label",
    "workflowState": "linear_state",
}
LISTS = {
    "issues": ISSUE,
    "comments": "linear_comment",
    "cycles": "linear_cycle",
    "projects": "linear_project",
    "teams": "linear_team",
    "users": "linear_user",
    "issueLabels": "linear_label",
    "workflowStates": "linear_state",
}
LIST_RELATIONS: Mapping[str, Callable[[ToolItemTransaction, Entity], Iterable[Entity]]] = {
    "labels": _labels,
    "children": _related_by(ISSUE, "parent"),
    "comments": _related_by("linear_comment", "issue"),
    "attachments": lambda _shelf, _thing: (),
    "states": _related_by("linear_state", "team"),
    "issues": lambda shelf, thing: _related_by(ISSUE, thing["__kind__"].removeprefix("linear_"))(shelf, thing),
}


Filter = Mapping[str, Any]


def matches_filter(transaction: ToolItemTransaction, thing: Entity, wanted: Filter) -> bool:
    """Documented: all conditions of a filter have to hold, and one of those below `or`."""
    return all(
        _condition_holds(transaction, thing, name, condition)
        for name, condition in wanted.items()
        if condition is not None
    )


def _condition_holds(transaction: ToolItemTransaction, thing: Entity, name: str, condition: Any) -> bool:
    if name == "and":
        return all(matches_filter(transaction, thing, part) for part in condition)
    if name == "or":
        return any(matches_filter(transaction, thing, part) for part in condition)
    if name in SINGLE_RELATIONS:
        return _related_holds(transaction, thing.get(name), SINGLE_RELATIONS[name], condition)
    if name in LIST_FIELDS:
        kind, field = LIST_FIELDS[name]
        listed = [find_entity(transaction, kind, item) for item in thing[field]]
        return _some_holds(transaction, listed, condition)
    if name not in FILTERABLE_FIELDS:
        raise input_error(f"The demo's simulated Linear does not filter by {name}.")
    value = field_value(transaction, thing, name)
    return all(_compare(how, value, other) for how, other in condition.items())


def _related_holds(transaction: ToolItemTransaction, related: str | None, kind: str, condition: Filter) -> bool:
    """Documented: `null: true` holds if there is none; every other condition needs one."""
    rest = {name: part for name, part in condition.items() if name != "null"}
    if (null := condition.get("null")) is not None and (related is None) is not null:
        return False
    if not rest:
        return True
    return related is not None and matches_filter(transaction, find_entity(transaction, kind, related), rest)


def _some_holds(transaction: ToolItemTransaction, listed: Sequence[Entity], condition: Filter) -> bool:
    """Documented: `some` holds if one entity of the list fits."""
    if set(condition) != {"some"}:
        raise input_error("The demo's simulated Linear filters a list by some.")
    return any(matches_filter(transaction, each, condition["some"]) for each in listed)


def _compare(how: str, value: Any, other: Any) -> bool:
    if how not in COMPARISONS:
        raise input_error(f"The demo's simulated Linear does not compare by {how}.")
    if how == "null":
        return (value is None) is bool(other)
    return value is not None and COMPARISONS[how](value, other)


FILTERABLE_FIELDS = frozenset(
    (
        "active",
        "archivedAt",
        "body",
        "color",
        "createdAt",
        "description",
        "displayName",
        "email",
        "endsAt",
        "id",
        "isGroup",
        "isMe",
        "key",
        "name",
        "number",
        "priority",
        "startsAt",
        "title",
        "type",
        "updatedAt",
    )
)
LIST_FIELDS = {"accessibleTeams": ("linear_team", "teamIds")}  # the kind, and the stored field with the ids
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, other: bool(value == other),
    "neq": lambda value, other: bool(value != other),
    "in": lambda value, other: value in other,
    "nin": lambda value, other: value not in other,
    "eqIgnoreCase": lambda value, other: value.casefold() == other.casefold(),
    "contains": lambda value, other: other in value,
    "containsIgnoreCase": lambda value, other: other.casefold() in value.casefold(),
    "startsWith": lambda value, other: value.startswith(other),
    "gt": lambda value, other: value > other,
    "gte": lambda value, other: value >= other,
    "lt": lambda value, other: value < other,
    "lte": lambda value, other: value <= other,
    "null": lambda value, other: (value is None) is other,
}


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


def apply_mutation(transaction: ToolItemTransaction, name: str, args: Args) -> object:
    if name not in MUTATIONS:
        raise input_error(f"The demo's simulated Linear does not do {name}.")
    return {"success": True, "lastSyncId": float(transaction.now), **MUTATIONS[name](transaction, args)}


def _issue_create(transaction: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _check_known_fields(new, ISSUE_INPUTS | {"id", "teamId"})
    team = find_entity(transaction, "linear_team", new["teamId"])
    if not (new.get("title") or "").strip():
        raise input_error("Argument Validation Error", "INVALID_INPUT", "title should not be empty.")
    numbers = [issue["number"] for issue in list_entities(transaction, ISSUE) if issue["team"] == team["id"]]
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
        "creator": _viewer(transaction)["id"],
        "parent": None,
        "trashed": None,
        "archivedAt": None,
        **_issue_fields(transaction, new, team["id"]),
    }
    return {"issue": _create_entity(transaction, ISSUE, new.get("id"), body)}


def _issue_update(transaction: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    """Documented: an update with `trashed` deletes."""
    issue, new = find_entity(transaction, ISSUE, args["id"]), args["input"]
    _check_known_fields(new, ISSUE_INPUTS | {"trashed"})
    body = _issue_fields(transaction, new, issue["team"])
    if "trashed" in new:
        body |= {"trashed": new["trashed"], "archivedAt": format_time(transaction.now) if new["trashed"] else None}
    return {"issue": _update_entity(transaction, issue, body)}


def _issue_delete(transaction: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    """Documented: it goes to the trash for 30 days. Assumed: deleting it again is no error."""
    issue = find_entity(transaction, ISSUE, args["id"])
    if args.get("permanentlyDelete"):
        raise input_error("Only admins may delete for good.", "FORBIDDEN")
    return {"entity": _update_entity(transaction, issue, {"trashed": True, "archivedAt": format_time(transaction.now)})}


def _issue_add_label(transaction: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    """Assumed: adding a label that is there already is no error and changes nothing."""
    issue = find_entity(transaction, ISSUE, args["id"])
    label = _label(transaction, args["labelId"], issue["team"])
    labels = issue["labelIds"]
    return {"issue": _update_entity(transaction, issue, {"labelIds": labels if label in labels else [*labels, label]})}


def _issue_remove_label(transaction: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    """Assumed: removing a label that is not there is an error."""
    issue = find_entity(transaction, ISSUE, args["id"])
    label = _label(transaction, args["labelId"], issue["team"])
    if label not in issue["labelIds"]:
        raise not_found_error("IssueLabel")
    left = [each for each in issue["labelIds"] if each != label]
    return {"issue": _update_entity(transaction, issue, {"labelIds": left})}


def _comment_create(transaction: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _check_known_fields(new, {"id", "issueId", "body"})
    issue = find_entity(transaction, ISSUE, new.get("issueId") or "")
    if not (new.get("body") or "").strip():
        raise input_error("Argument Validation Error", "INVALID_INPUT", "body should not be empty.")
    body = {"issue": issue["id"], "body": new["body"], "user": _viewer(transaction)["id"], "archivedAt": None}
    return {"comment": _create_entity(transaction, "linear_comment", new.get("id"), body)}


def _project_create(transaction: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _check_known_fields(new, {"id", "name", "teamIds", "description", "content"})
    _check_length("name", new["name"], LONGEST_TITLE)
    _check_length("description", new.get("description"), LONGEST_SUMMARY)
    body = {
        "name": new["name"],
        "description": new.get("description") or "",
        "content": new.get("content"),
        "teamIds": [find_entity(transaction, "linear_team", team)["id"] for team in new["teamIds"]],
        "status": next(
            status["id"]
            for status in list_entities(transaction, "linear_project_status")
            if status["type"] == "backlog"
        ),
        "frequencyResolution": "weekly",
        "archivedAt": None,
    }
    return {"project": _create_entity(transaction, "linear_project", new.get("id"), body)}


def _cycle_create(transaction: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    new = args["input"]
    _check_known_fields(new, {"id", "teamId", "name", "startsAt", "endsAt"})
    team = find_entity(transaction, "linear_team", new["teamId"])
    numbers = [cycle["number"] for cycle in list_entities(transaction, "linear_cycle") if cycle["team"] == team["id"]]
    body = {"team": team["id"], "number": max(numbers, default=0) + 1, "name": new.get("name"), "archivedAt": None}
    body |= {"startsAt": new["startsAt"], "endsAt": new["endsAt"]}
    _check_dates(body)
    return {"cycle": _create_entity(transaction, "linear_cycle", new.get("id"), body)}


def _cycle_update(transaction: ToolItemTransaction, args: Args) -> Mapping[str, object]:
    cycle, new = find_entity(transaction, "linear_cycle", args["id"]), args["input"]
    _check_known_fields(new, {"name", "startsAt", "endsAt"})
    _check_dates({**cycle, **new})
    return {"cycle": _update_entity(transaction, cycle, new)}


def _issue_fields(transaction: ToolItemTransaction, new: Args, team: str) -> dict[str, Any]:
    body = {name: new[name] for name in ("title", "description", "priority") if name in new}
    _check_length("title", new.get("title"), LONGEST_TITLE)
    if new.get("priority", 0) not in range(5):
        raise input_error("Argument Validation Error", "INVALID_INPUT", "priority must not be greater than 4.")
    for name in REFERENCES.keys() & new.keys():
        field, kind = REFERENCES[name]
        body[field] = None if new[name] is None else find_entity(transaction, kind, new[name])["id"]
    if body.get("state") and find_entity(transaction, "linear_state", body["state"])["team"] != team:
        raise input_error("Discrepancy between issue team and state team.")  # seen in part
    if "labelIds" in new:
        body["labelIds"] = [_label(transaction, label, team) for label in new["labelIds"]]
    return body


def _label(transaction: ToolItemTransaction, label_id: str, team: str) -> str:
    """Documented: a label belongs to one team, or to all."""
    label = find_entity(transaction, "linear_label", label_id)
    if label["team"] not in (None, team):
        raise input_error("The label belongs to another team.")
    return str(label["id"])


def _create_entity(transaction: ToolItemTransaction, kind: str, wanted: str | None, body: Args) -> Entity:
    """Documented: the creator may give the id, a version 4 UUID. Seen: the response to one that exists."""
    count = len(transaction.list(kind))
    new_id = wanted or str(uuid5(NAMESPACE_URL, f"{kind} {count} {transaction.now}"))
    if wanted is not None and not _is_version_4(wanted):
        raise input_error("Argument Validation Error", "INVALID_INPUT", "id must be a UUID.")
    if transaction.get(kind, new_id) is not None:
        raise input_error(
            f"conflict on insert of {TYPE_NAMES[kind]}",
            words=f"Entity {TYPE_NAMES[kind]} with id {new_id} already exists.",
        )
    stamp = format_time(transaction.now)
    transaction.put(kind, new_id, {**body, "createdAt": stamp, "updatedAt": stamp})
    return find_entity(transaction, kind, new_id)


def _update_entity(transaction: ToolItemTransaction, thing: Entity, changes: Args) -> Entity:
    body = {name: value for name, value in thing.items() if name not in ("id", "__kind__")}
    transaction.put(thing["__kind__"], thing["id"], {**body, **changes, "updatedAt": format_time(transaction.now)})
    return find_entity(transaction, thing["__kind__"], thing["id"])


def _viewer(transaction: ToolItemTransaction) -> Entity:
    for user in list_entities(transaction, "linear_user"):
        if user["isMe"]:
            return user
    raise not_found_error("User")


def _check_known_fields(new: Args, known: set[str]) -> None:
    if unknown := sorted(name for name, value in new.items() if name not in known and value is not None):
        raise input_error(f"The demo's simulated Linear does not take {', '.join(unknown)}.")


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
    "issueRemoveLabel": _issue_remove_label,
    "issueUpdate": _issue_update,
    "projectCreate": _project_create,
}

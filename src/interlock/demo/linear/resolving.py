"""What each field of Linear's schema gives. A field that the stand-in does not know is refused, never made up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from graphql import GraphQLResolveInfo

from interlock.core.ports import ToolItem, ToolItemTransaction
from interlock.demo.linear import changing
from interlock.demo.linear.filters import matches_filter
from interlock.demo.linear.kinds import ISSUE
from interlock.demo.linear.things import (
    SINGLE_RELATIONS,
    Entity,
    field_value,
    find_entity,
    input_error,
    list_entities,
    not_found_error,
)

USUAL_PAGE, LARGEST_PAGE = 50, 250  # documented, and seen


class RecordSnapshot:
    """What the records held a moment ago, to be read like a shelf."""

    now = 0

    def __init__(self, held: Mapping[str, Sequence[ToolItem]]) -> None:
        self._held = {kind: {record.id: record for record in records} for kind, records in held.items()}

    def get(self, kind: str, record_id: str) -> ToolItem | None:
        return self._held[kind].get(record_id)

    def list(self, kind: str) -> Sequence[ToolItem]:
        return list(self._held[kind].values())

    def put(self, kind: str, record_id: str, body: Mapping[str, object]) -> None:
        raise TypeError("A query changes nothing.")

    def delete(self, kind: str, record_id: str) -> None:
        raise TypeError("A query changes nothing.")


def resolve_field(source: Any, info: GraphQLResolveInfo[ToolItemTransaction], **args: Any) -> Any:
    """Serves every field of every type."""
    shelf = info.context
    match info.parent_type.name:
        case "Query":
            return _query(shelf, info.field_name, args)
        case "Mutation":
            return changing.apply_mutation(shelf, info.field_name, args)
        case _:
            return _field(shelf, source, info.field_name, args)


def _query(shelf: ToolItemTransaction, name: str, args: Mapping[str, Any]) -> object:
    if name in SINGLE:
        return find_entity(shelf, SINGLE[name], args["id"])
    if name in LISTS:
        return _page(shelf, list_entities(shelf, LISTS[name]), args)
    match name:
        case "viewer":
            return next(user for user in list_entities(shelf, "linear_user") if user["isMe"])
        case "searchIssues":
            return _search(shelf, args)
        case _:
            raise input_error(f"The demo's stand-in for Linear does not answer {name}.")


def _field(shelf: ToolItemTransaction, thing: Entity, name: str, args: Mapping[str, Any]) -> object:
    if name in LIST_RELATIONS and "__kind__" in thing:
        return _page(shelf, LIST_RELATIONS[name](shelf, thing), args)
    if name in SINGLE_RELATIONS and "__kind__" in thing:
        related = thing.get(name)
        return None if related is None else find_entity(shelf, SINGLE_RELATIONS[name], related)
    return field_value(shelf, thing, name)


def _search(shelf: ToolItemTransaction, args: Mapping[str, Any]) -> object:
    """Linear ranks by meaning; here all words have to be there, in any order (assumed)."""
    sought = str(args["term"]).casefold().split()

    def has_all(issue: Entity) -> bool:
        text = " ".join(str(field_value(shelf, issue, name) or "") for name in ("identifier", "title", "description"))
        return all(word in text.casefold() for word in sought)

    hits = [issue for issue in list_entities(shelf, ISSUE) if has_all(issue)]
    return {**_page(shelf, hits, args), "totalCount": len(hits)}


def _page(shelf: ToolItemTransaction, all_of: Iterable[Entity], args: Mapping[str, Any]) -> dict[str, object]:
    """Documented: 50 at a time, the newest first, and what is archived or in the trash only if asked for."""
    first = args.get("first") or USUAL_PAGE
    if not 1 <= first <= LARGEST_PAGE or args.get("before") or args.get("last"):
        raise input_error(f"The demo's stand-in for Linear takes first: 1 to {LARGEST_PAGE}, and after.")
    order = args.get("orderBy") or "createdAt"
    fitting = [thing for thing in all_of if _is_listed(shelf, thing, args)]
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


def _is_listed(shelf: ToolItemTransaction, thing: Entity, args: Mapping[str, Any]) -> bool:
    there = args.get("includeArchived") or not thing.get("archivedAt")
    return bool(there) and matches_filter(shelf, thing, args.get("filter") or {})


def _index_after(fitting: Sequence[Entity], cursor: str | None) -> int:
    if cursor is None:
        return 0
    ids = [thing["id"] for thing in fitting]
    if cursor not in ids:
        raise not_found_error("Cursor")
    return ids.index(cursor) + 1


def _related_by(kind: str, field: str) -> Callable[[ToolItemTransaction, Entity], Iterable[Entity]]:
    return lambda shelf, thing: [other for other in list_entities(shelf, kind) if other.get(field) == thing["id"]]


def _labels(shelf: ToolItemTransaction, thing: Entity) -> Iterable[Entity]:
    if thing["__kind__"] != ISSUE:
        return _related_by("linear_label", "team")(shelf, thing)
    return [find_entity(shelf, "linear_label", label) for label in thing["labelIds"]]


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

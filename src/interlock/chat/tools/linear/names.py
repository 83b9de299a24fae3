"""What people call things, and which thing that is. In doubt nothing is picked, and the near ones are named."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from interlock.chat.tools.linear import documents
from interlock.chat.tools.linear.api import LinearClient, LinearNotFound, Node, get_nodes, get_text, require_object
from interlock.core.errors import ToolFailed

NOBODY = "nobody"
ME = "me"
MAX_SUGGESTIONS = 5
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*-[0-9]+")
SHARED_LABELS: Mapping[str, object] = {"team": {"null": True}}  # labels that every team has


class LinearEntity(NamedTuple):
    id: str
    name: str


async def find_issue(linear: LinearClient, wanted: str, document: str = documents.ISSUE) -> Node:
    """By its identifier, such as DEMO-12, or its id; one that was deleted too."""
    known = wanted.strip()
    try:
        data = await linear.ask(document, id=known.upper() if IDENTIFIER.fullmatch(known) else known)
    except LinearNotFound:
        raise ToolFailed(
            f"There is no issue {wanted!r} in Linear, or the key may not see it. Find it with linear_search_issues."
        ) from None
    return require_object(data.get("issue"), "issue")


async def find_person(linear: LinearClient, wanted: str) -> LinearEntity | None:
    """By name, display name or e-mail address; "me" is whose key it is, "nobody" is None."""
    if wanted.strip().casefold() == NOBODY:
        return None
    if wanted.strip().casefold() == ME:
        viewer = require_object((await linear.ask(documents.VIEWER)).get("viewer"), "person")
        return LinearEntity(get_text(viewer, "id"), get_text(viewer, "name"))
    active = {"active": {"eq": True}}
    exact = {**active, "or": _name_filters(wanted, "name", "displayName", "email")}
    data = await linear.ask(documents.PEOPLE, exact=exact, near=active)
    return _require_one(data, "person", wanted, ("name", "displayName", "email"), "email")


async def find_team(linear: LinearClient, wanted: str) -> LinearEntity:
    """By key or name; without any it is the one of the settings, or the only one there is."""
    wanted = wanted.strip() or linear.team
    data = await linear.ask(documents.TEAMS, exact={"or": _name_filters(wanted, "key", "name")}, near=None)
    there = get_nodes(data, "near")
    if not wanted and len(there) == 1:
        return LinearEntity(get_text(there[0], "id"), get_text(there[0], "name"))
    if not wanted:
        raise ToolFailed(f"Say which team is meant: {_join_names([_entity_label(node, 'key') for node in there])}.")
    return _require_one(data, "team", wanted, ("key", "name"), "key")


async def find_status(linear: LinearClient, wanted: str, team_id: str) -> LinearEntity:
    of_team = {"team": {"id": {"eq": team_id}}}
    exact = {**of_team, "or": _name_filters(wanted, "name")}
    data = await linear.ask(documents.STATES, exact=exact, near=of_team)
    return _require_one(data, "status", wanted, ("name",), "")


async def find_status_name(linear: LinearClient, wanted: str) -> str:
    """The name, if any team has such a status; many may."""
    data = await linear.ask(documents.STATES, exact={"or": _name_filters(wanted, "name")}, near=None)
    if found := get_nodes(data, "exact"):
        return get_text(found[0], "name")
    return _require_one(data, "status", wanted, ("name",), "").name


async def find_label(linear: LinearClient, wanted: str, team_id: str) -> LinearEntity:
    """A label of the team, or one that all teams share; a group of labels is none."""
    usable = {"isGroup": {"eq": False}, "or": [SHARED_LABELS, {"team": {"id": {"eq": team_id}}}]}
    exact = {"and": [usable, {"or": _name_filters(wanted, "name")}]}
    data = await linear.ask(documents.LABELS, exact=exact, near=usable)
    return _require_one(data, "label", wanted, ("name",), "")


async def find_cycle(linear: LinearClient, wanted: str) -> Node:
    """By id, name or number."""
    number = [{"number": {"eq": int(wanted)}}] if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else []
    data = await linear.ask(documents.CYCLES, exact={"or": [*_name_filters(wanted, "name"), *number]}, near=None)
    found = _require_one(data, "cycle", wanted, ("name",), "number")
    return next(node for node in get_nodes(data, "exact") if node.get("id") == found.id)


def _name_filters(wanted: str, *fields: str) -> list[Mapping[str, object]]:
    wanted = wanted.strip()
    by_id: list[Mapping[str, object]] = [{"id": {"eq": wanted}}] if UUID.fullmatch(wanted) else []
    return [*by_id, *({field: {"eqIgnoreCase": wanted}} for field in fields)]


def _require_one(data: Node, kind: str, wanted: str, fields: Sequence[str], apart: str) -> LinearEntity:
    """`apart` is the field that tells apart what has the same name."""
    match get_nodes(data, "exact"):
        case [one]:
            return LinearEntity(get_text(one, "id"), get_text(one, "name"))
        case []:
            raise ToolFailed(
                f"Linear has no {kind} {wanted!r}. {_suggestions(wanted, get_nodes(data, 'near'), fields, apart)}"
            )
        case many:
            raise ToolFailed(
                f"Linear has more than one {kind} {wanted!r}: "
                f"{_join_names([_entity_label(node, apart) for node in many])}."
                " Say which one, in another word."
            )


def _suggestions(wanted: str, there: Sequence[Node], fields: Sequence[str], apart: str) -> str:
    by_word = {get_text(node, field).casefold(): _entity_label(node, apart) for node in there for field in fields}
    by_word.pop("", None)
    sought = wanted.strip().casefold()
    close = get_close_matches(sought, by_word, MAX_SUGGESTIONS, 0.6)
    close += [word for word in by_word if sought and sought in word]
    shown = list(dict.fromkeys(by_word[word] for word in close))
    if shown:
        return f"Near to it: {_join_names(shown)}."
    return (
        f"There is: {_join_names([_entity_label(node, apart) for node in there])}."
        if there
        else "There is none at all."
    )


def _join_names(shown: Sequence[str]) -> str:
    more = f" and {len(shown) - MAX_SUGGESTIONS} more" if len(shown) > MAX_SUGGESTIONS else ""
    return ", ".join(shown[:MAX_SUGGESTIONS]) + more


def _entity_label(node: Node, apart: str) -> str:
    extra = node.get(apart)
    number = f"{extra:.0f}" if isinstance(extra, float) else str(extra or "")
    name = get_text(node, "name") or f"{apart} {number}"
    return f"{name} ({number})" if number and get_text(node, "name") else name

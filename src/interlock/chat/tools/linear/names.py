"""Resolution of names to Linear entities. An ambiguous or unknown name is an error that lists near matches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from interlock.chat.tools.linear import documents
from interlock.chat.tools.linear.api import LinearClient, LinearNotFound, Node, get_nodes, get_text, require_object
from interlock.core.errors import CallWouldFail

NOBODY = "nobody"
ME = "me"
MAX_SUGGESTIONS = 5
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*-[0-9]+")
SHARED_LABELS: Mapping[str, object] = {"team": {"null": True}}  # labels that all teams share


class LinearEntity(NamedTuple):
    id: str
    name: str


async def find_issue(
    linear: LinearClient, identifier: str, document: str = documents.ISSUE, **variables: object
) -> Node:
    """Find an issue by its identifier, such as DEMO-12, or its id; also a deleted one."""
    known = identifier.strip()
    try:
        data = await linear.query(document, id=known.upper() if IDENTIFIER.fullmatch(known) else known, **variables)
    except LinearNotFound:
        raise CallWouldFail(
            f"There is no issue {identifier!r} in Linear, or the key may not see it. Find it with linear_search_issues."
        ) from None
    return require_object(data.get("issue"), "issue")


async def find_person(linear: LinearClient, name: str) -> LinearEntity | None:
    """Find a person by name, display name or e-mail address; "me" is the key's owner, "nobody" is None."""
    if name.strip().casefold() == NOBODY:
        return None
    if name.strip().casefold() == ME:
        viewer = require_object((await linear.query(documents.VIEWER)).get("viewer"), "person")
        return LinearEntity(get_text(viewer, "id"), get_text(viewer, "name"))
    active = {"active": {"eq": True}}
    exact = {**active, "or": _name_filters(name, "name", "displayName", "email")}
    data = await linear.query(documents.PEOPLE, exact=exact, near=active)
    return _require_one(data, "person", name, ("name", "displayName", "email"), "email")


async def find_team(linear: LinearClient, name: str) -> LinearEntity:
    """Find a team by key or name; without a name, the one in the settings, or the only one."""
    name = name.strip() or linear.team
    data = await linear.query(documents.TEAMS, exact={"or": _name_filters(name, "key", "name")}, near=None)
    teams = get_nodes(data, "near")
    if not name and len(teams) == 1:
        return LinearEntity(get_text(teams[0], "id"), get_text(teams[0], "name"))
    if not name:
        raise CallWouldFail(f"Say which team is meant: {_join_names([_entity_label(node, 'key') for node in teams])}.")
    return _require_one(data, "team", name, ("key", "name"), "key")


async def find_status(linear: LinearClient, name: str, team_id: str) -> LinearEntity:
    of_team = {"team": {"id": {"eq": team_id}}}
    exact = {**of_team, "or": _name_filters(name, "name")}
    data = await linear.query(documents.STATES, exact=exact, near=of_team)
    return _require_one(data, "status", name, ("name",), "")


async def find_status_name(linear: LinearClient, name: str) -> str:
    """Return the name of a status, if any team has it; several may."""
    data = await linear.query(documents.STATES, exact={"or": _name_filters(name, "name")}, near=None)
    if found := get_nodes(data, "exact"):
        return get_text(found[0], "name")
    return _require_one(data, "status", name, ("name",), "").name


async def find_label(linear: LinearClient, name: str, team_id: str) -> LinearEntity:
    """Find a label of the team, or one that all teams share; a group of labels does not count."""
    usable = {"isGroup": {"eq": False}, "or": [SHARED_LABELS, {"team": {"id": {"eq": team_id}}}]}
    exact = {"and": [usable, {"or": _name_filters(name, "name")}]}
    data = await linear.query(documents.LABELS, exact=exact, near=usable)
    return _require_one(data, "label", name, ("name",), "")


async def find_cycle(linear: LinearClient, name: str) -> Node:
    """Find a cycle by id, name or number."""
    number = [{"number": {"eq": int(name)}}] if name.isascii() and name.isdigit() and len(name) < 10 else []
    data = await linear.query(documents.CYCLES, exact={"or": [*_name_filters(name, "name"), *number]}, near=None)
    found = _require_one(data, "cycle", name, ("name",), "number")
    return next(node for node in get_nodes(data, "exact") if node.get("id") == found.id)


def _name_filters(name: str, *fields: str) -> list[Mapping[str, object]]:
    name = name.strip()
    by_id: list[Mapping[str, object]] = [{"id": {"eq": name}}] if UUID.fullmatch(name) else []
    return [*by_id, *({field: {"eqIgnoreCase": name}} for field in fields)]


def _require_one(data: Node, kind: str, name: str, fields: Sequence[str], distinguishing_field: str) -> LinearEntity:
    """Return the only match; `distinguishing_field` tells entities of the same name apart."""
    match get_nodes(data, "exact"):
        case [one]:
            return LinearEntity(get_text(one, "id"), get_text(one, "name"))
        case []:
            raise CallWouldFail(
                f"Linear has no {kind} {name!r}. "
                f"{_suggestions(name, get_nodes(data, 'near'), fields, distinguishing_field)}"
            )
        case many:
            raise CallWouldFail(
                f"Linear has more than one {kind} {name!r}: "
                f"{_join_names([_entity_label(node, distinguishing_field) for node in many])}."
                " Say which one, in another word."
            )


def _suggestions(name: str, candidates: Sequence[Node], fields: Sequence[str], distinguishing_field: str) -> str:
    by_word = {
        get_text(node, field).casefold(): _entity_label(node, distinguishing_field)
        for node in candidates
        for field in fields
    }
    by_word.pop("", None)
    sought = name.strip().casefold()
    close = get_close_matches(sought, by_word, MAX_SUGGESTIONS, 0.6)
    close += [word for word in by_word if sought and sought in word]
    shown = list(dict.fromkeys(by_word[word] for word in close))
    if shown:
        return f"Near to it: {_join_names(shown)}."
    return (
        f"There is: {_join_names([_entity_label(node, distinguishing_field) for node in candidates])}."
        if candidates
        else "There is none at all."
    )


def _join_names(shown: Sequence[str]) -> str:
    more = f" and {len(shown) - MAX_SUGGESTIONS} more" if len(shown) > MAX_SUGGESTIONS else ""
    return ", ".join(shown[:MAX_SUGGESTIONS]) + more


def _entity_label(node: Node, distinguishing_field: str) -> str:
    extra = node.get(distinguishing_field)
    number = f"{extra:.0f}" if isinstance(extra, float) else str(extra or "")
    name = get_text(node, "name") or f"{distinguishing_field} {number}"
    return f"{name} ({number})" if number and get_text(node, "name") else name

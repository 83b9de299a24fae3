"""What people call things, and which thing that is. In doubt nothing is picked, and the near ones are named."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from interlock.chat.tools.linear import documents
from interlock.chat.tools.linear.api import Linear, Missing, Node, nodes, whole, words
from interlock.core.errors import ToolFailed

NOBODY = "nobody"
ME = "me"
MOST_NAMED = 5
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*-[0-9]+")
SHARED: Mapping[str, object] = {"team": {"null": True}}  # labels that every team has


class Found(NamedTuple):
    id: str
    name: str


async def issue(linear: Linear, wanted: str, document: str = documents.ISSUE) -> Node:
    """By its identifier, such as DEMO-12, or its id; one that was deleted too."""
    known = wanted.strip()
    try:
        data = await linear.ask(document, id=known.upper() if IDENTIFIER.fullmatch(known) else known)
    except Missing:
        raise ToolFailed(
            f"There is no issue {wanted!r} in Linear, or the key may not see it. Find it with linear_search_issues."
        ) from None
    return whole(data.get("issue"), "issue")


async def person(linear: Linear, wanted: str) -> Found | None:
    """By name, display name or e-mail address; "me" is whose key it is, "nobody" is None."""
    if wanted.strip().casefold() == NOBODY:
        return None
    if wanted.strip().casefold() == ME:
        viewer = whole((await linear.ask(documents.VIEWER)).get("viewer"), "person")
        return Found(words(viewer, "id"), words(viewer, "name"))
    active = {"active": {"eq": True}}
    exact = {**active, "or": _called(wanted, "name", "displayName", "email")}
    data = await linear.ask(documents.PEOPLE, exact=exact, near=active)
    return _only(data, "person", wanted, ("name", "displayName", "email"), "email")


async def team(linear: Linear, wanted: str) -> Found:
    """By key or name; without any it is the one of the settings, or the only one there is."""
    wanted = wanted.strip() or linear.team
    data = await linear.ask(documents.TEAMS, exact={"or": _called(wanted, "key", "name")}, near=None)
    there = nodes(data, "near")
    if not wanted and len(there) == 1:
        return Found(words(there[0], "id"), words(there[0], "name"))
    if not wanted:
        raise ToolFailed(f"Say which team is meant: {_listed([_shown(node, 'key') for node in there])}.")
    return _only(data, "team", wanted, ("key", "name"), "key")


async def status(linear: Linear, wanted: str, team_id: str) -> Found:
    of_team = {"team": {"id": {"eq": team_id}}}
    exact = {**of_team, "or": _called(wanted, "name")}
    data = await linear.ask(documents.STATES, exact=exact, near=of_team)
    return _only(data, "status", wanted, ("name",), "")


async def any_status(linear: Linear, wanted: str) -> str:
    """The name, if any team has such a status; many may."""
    data = await linear.ask(documents.STATES, exact={"or": _called(wanted, "name")}, near=None)
    if found := nodes(data, "exact"):
        return words(found[0], "name")
    return _only(data, "status", wanted, ("name",), "").name


async def label(linear: Linear, wanted: str, team_id: str) -> Found:
    """A label of the team, or one that all teams share; a group of labels is none."""
    usable = {"isGroup": {"eq": False}, "or": [SHARED, {"team": {"id": {"eq": team_id}}}]}
    exact = {"and": [usable, {"or": _called(wanted, "name")}]}
    data = await linear.ask(documents.LABELS, exact=exact, near=usable)
    return _only(data, "label", wanted, ("name",), "")


async def cycle(linear: Linear, wanted: str) -> Node:
    """By id, name or number."""
    number = [{"number": {"eq": int(wanted)}}] if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else []
    data = await linear.ask(documents.CYCLES, exact={"or": [*_called(wanted, "name"), *number]}, near=None)
    found = _only(data, "cycle", wanted, ("name",), "number")
    return next(node for node in nodes(data, "exact") if node.get("id") == found.id)


def _called(wanted: str, *fields: str) -> list[Mapping[str, object]]:
    wanted = wanted.strip()
    by_id: list[Mapping[str, object]] = [{"id": {"eq": wanted}}] if UUID.fullmatch(wanted) else []
    return [*by_id, *({field: {"eqIgnoreCase": wanted}} for field in fields)]


def _only(data: Node, kind: str, wanted: str, fields: Sequence[str], apart: str) -> Found:
    """`apart` is the field that tells apart what has the same name."""
    match nodes(data, "exact"):
        case [one]:
            return Found(words(one, "id"), words(one, "name"))
        case []:
            raise ToolFailed(f"Linear has no {kind} {wanted!r}. {_near(wanted, nodes(data, 'near'), fields, apart)}")
        case many:
            raise ToolFailed(
                f"Linear has more than one {kind} {wanted!r}: {_listed([_shown(node, apart) for node in many])}."
                " Say which one, in another word."
            )


def _near(wanted: str, there: Sequence[Node], fields: Sequence[str], apart: str) -> str:
    by_word = {words(node, field).casefold(): _shown(node, apart) for node in there for field in fields}
    by_word.pop("", None)
    sought = wanted.strip().casefold()
    close = get_close_matches(sought, by_word, MOST_NAMED, 0.6)
    close += [word for word in by_word if sought and sought in word]
    shown = list(dict.fromkeys(by_word[word] for word in close))
    if shown:
        return f"Near to it: {_listed(shown)}."
    return f"There is: {_listed([_shown(node, apart) for node in there])}." if there else "There is none at all."


def _listed(shown: Sequence[str]) -> str:
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return ", ".join(shown[:MOST_NAMED]) + more


def _shown(node: Node, apart: str) -> str:
    extra = node.get(apart)
    number = f"{extra:.0f}" if isinstance(extra, float) else str(extra or "")
    name = words(node, "name") or f"{apart} {number}"
    return f"{name} ({number})" if number and words(node, "name") else name

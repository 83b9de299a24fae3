"""Previews of a call's effect on the current state, without changing anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import unified_diff

from interlock.chat.tools.linear import documents, names
from interlock.chat.tools.linear.api import LinearClient, Node, get_nodes, get_path, get_text
from interlock.chat.tools.linear.operations import (
    cycle_json,
    find_open_issue,
    new_issue_input,
    parse_dates,
    text_argument,
)
from interlock.chat.tools.linear.sentences import PRIORITIES
from interlock.core.call import Args

UNASSIGNED = "nobody"
MAX_NAMED = 10


async def create_issue(linear: LinearClient, args: Args) -> str:
    """Preview a new issue; all names are resolved, so that a wrong one shows now."""
    team = await names.find_team(linear, text_argument(args, "team"))
    await new_issue_input(linear, args)
    assignee = text_argument(args, "assignee")
    person = await names.find_person(linear, assignee) if assignee else None
    return f"Team: {team.name}\nAssignee: {person.name if person else UNASSIGNED}"


async def update_issue(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    before = {
        "title": get_text(issue, "title"),
        "priority": _priority(issue),
        "description": get_text(issue, "description"),
    }
    after = {name: str(args[name]) for name in ("title", "description") if name in args}
    if "priority" in args:
        after["priority"] = _priority(args)
    return f"{_issue_title(issue)}\n{_difference(before, {**before, **after})}"


async def delete_issue(linear: LinearClient, args: Args) -> str:
    issue = await names.find_issue(linear, text_argument(args, "id"), documents.ISSUE_WITH_RELATIONS)
    if issue.get("trashed") is True:
        return f"{_issue_title(issue)}\nIt was deleted already; nothing would change."
    children = get_nodes(issue, "children")
    lines = [
        _issue_title(issue),
        f"Status: {get_text(issue, 'state', 'name')}",
        f"Assignee: {get_text(issue, 'assignee', 'name') or UNASSIGNED}",
        f"Comments: {_count(issue, 'comments')}",
        f"Attachments: {_count(issue, 'attachments')}",
        f"Sub-issues: {_count(issue, 'children')}",
        *(f"  {get_text(child, 'identifier')} {get_text(child, 'title')}" for child in children[:MAX_NAMED]),
        "For 30 days a person can take it out of the trash in Linear.",
    ]
    return "\n".join(lines)


async def assign_issue(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    person = await names.find_person(linear, text_argument(args, "assignee"))
    before = get_text(issue, "assignee", "name") or UNASSIGNED
    return _change_text(issue, "Assignee", before, person.name if person else UNASSIGNED)


async def change_status(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    status = await names.find_status(linear, text_argument(args, "status"), get_text(issue, "team", "id"))
    return _change_text(issue, "Status", get_text(issue, "state", "name"), status.name)


async def add_label(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    label = await names.find_label(linear, text_argument(args, "label"), get_text(issue, "team", "id"))
    before = [get_text(node, "name") for node in get_nodes(issue, "labels")]
    after = before if label.name in before else [*before, label.name]
    return _change_text(issue, "Labels", ", ".join(before) or "none", ", ".join(after))


async def remove_label(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    label = await names.find_label(linear, text_argument(args, "label"), get_text(issue, "team", "id"))
    before = [get_text(node, "name") for node in get_nodes(issue, "labels")]
    after = [name for name in before if name != label.name]
    return _change_text(issue, "Labels", ", ".join(before) or "none", ", ".join(after) or "none")


async def comment(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    return f"{_issue_title(issue)}\nStatus: {get_text(issue, 'state', 'name')}"


async def create_project(linear: LinearClient, args: Args) -> str:
    return f"Team: {(await names.find_team(linear, text_argument(args, 'team'))).name}"


async def create_cycle(linear: LinearClient, args: Args) -> str:
    dates = parse_dates(args)
    team = await names.find_team(linear, text_argument(args, "team"))
    return f"Team: {team.name}\nFrom {dates['startsAt']} to {dates['endsAt']}"


async def update_cycle(linear: LinearClient, args: Args) -> str:
    dates = parse_dates(args)
    cycle = cycle_json(await names.find_cycle(linear, text_argument(args, "id")))
    before = {name: str(cycle[name] or "") for name in ("name", "starts_at", "ends_at")}
    after = {"name": args.get("name"), "starts_at": dates.get("startsAt"), "ends_at": dates.get("endsAt")}
    changed = {name: str(value) for name, value in after.items() if value is not None}
    return f"Cycle {cycle['number']} of team {cycle['team']}\n{_difference(before, {**before, **changed})}"


def _issue_title(issue: Node) -> str:
    return f"{get_text(issue, 'identifier')} {get_text(issue, 'title')}"


def _change_text(issue: Node, what: str, before: str, after: str) -> str:
    change = f"{before} → {after}" if before != after else f"{after}, as it is already"
    return f"{_issue_title(issue)}\n{what}: {change}"


def _count(issue: Node, what: str) -> str:
    more = "more than " if get_path(issue, what, "pageInfo", "hasNextPage") is True else ""
    return f"{more}{len(get_nodes(issue, what))}"


def _priority(found: Mapping[str, object]) -> str:
    number = found.get("priority")
    known = isinstance(number, int | float) and number in range(len(PRIORITIES))
    return PRIORITIES[int(number)] if known and isinstance(number, int | float) else str(number)


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    lines = list(unified_diff(_lines(before), _lines(after), "now", "then", n=1, lineterm=""))
    return "\n".join(lines) or "Nothing would change."


def _lines(fields: Mapping[str, str]) -> list[str]:
    return [line for name, value in fields.items() for line in _field_lines(name, value)]


def _field_lines(name: str, value: str) -> Iterable[str]:
    first, *rest = value.splitlines() or [""]
    return [f"{name}: {first}", *(f"  {line}" for line in rest)]

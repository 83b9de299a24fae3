"""What people see of a call: a sentence, and a preview of its effect on the current state, without changing anything.

The card shows all the arguments below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import unified_diff
from typing import cast

from interlock.chat.tools.linear import documents, names
from interlock.chat.tools.linear.api import LinearClient, Node, get_nodes, get_path, get_text
from interlock.chat.tools.linear.names import NOBODY
from interlock.chat.tools.linear.operations import (
    cycle_json,
    find_open_issue,
    new_issue_input,
    parse_dates,
    text_argument,
)
from interlock.core.call import Args

PRIORITIES = ("No priority", "Urgent", "High", "Medium", "Low")
MAX_VALUE = 200  # characters of one value
UNASSIGNED = "nobody"
MAX_NAMED = 10
LABELS = {"starts_at": "start", "ends_at": "end"}  # of fields whose name is no word


# Sentences


def describe_create_issue(args: Args) -> str:
    who = _short(args.get("assignee") or NOBODY)
    parts = [f"Create issue {_quoted(args['title'])}{_in_team(args)}"]
    parts.append("unassigned" if who.casefold() == NOBODY else f"assigned to {who}")
    if "priority" in args:
        parts.append(f"priority {_priority(args['priority'])}")
    if labels := cast(Sequence[object], args.get("labels") or ()):
        parts.append(f"labelled {', '.join(_short(label) for label in labels)}")
    return ", ".join(parts)


def describe_update_issue(args: Args) -> str:
    return (
        f"Update issue {_short(args['id'])}: {_changes(args, title=_quoted, priority=_priority, description=_quoted)}"
    )


def describe_delete_issue(args: Args) -> str:
    return f"Delete issue {_short(args['id'])}? It can be restored from Linear's trash for a limited time."


def describe_assign_issue(args: Args) -> str:
    who = _short(args["assignee"])
    if who.strip().casefold() == NOBODY:
        return f"Take the assignee off issue {_short(args['id'])}"
    return f"Assign issue {_short(args['id'])} to {who}"


def describe_change_status(args: Args) -> str:
    return f"Change the status of issue {_short(args['id'])} to {_quoted(args['status'])}"


def describe_comment(args: Args) -> str:
    return f"Comment on issue {_short(args['id'])}: {_quoted(args['body'])}"


def describe_add_label(args: Args) -> str:
    return f"Add label {_quoted(args['label'])} to issue {_short(args['id'])}"


def describe_remove_label(args: Args) -> str:
    return f"Remove label {_quoted(args['label'])} from issue {_short(args['id'])}"


def describe_create_project(args: Args) -> str:
    return f"Create project {_quoted(args['name'])}{_in_team(args)}"


def describe_create_cycle(args: Args) -> str:
    name = f" {_quoted(args['name'])}" if args.get("name") else ""
    return f"Create cycle{name}{_in_team(args)}, from {_short(args['starts_at'])} to {_short(args['ends_at'])}"


def describe_update_cycle(args: Args) -> str:
    return f"Update cycle {_short(args['id'])}: {_changes(args, name=_quoted, starts_at=_short, ends_at=_short)}"


def _changes(args: Args, **shown: Callable[[object], str]) -> str:
    """The new values of the fields that change, each as its function shows it."""
    return ", ".join(f"{LABELS.get(name, name)} to {show(args[name])}" for name, show in shown.items() if name in args)


def _in_team(args: Args) -> str:
    return f" in team {_short(args['team'])}" if args.get("team") else ""


def _priority(number: object) -> str:
    known = isinstance(number, int) and 0 <= number < len(PRIORITIES)
    return PRIORITIES[cast(int, number)] if known else _short(number)


def _quoted(value: object) -> str:
    return f"'{_short(value)}'"


def _short(value: object) -> str:
    words = " ".join(str(value).split())
    return words if len(words) <= MAX_VALUE else f"{words[:MAX_VALUE]}…"


# Previews


async def preview_create_issue(linear: LinearClient, args: Args) -> str:
    """Preview a new issue; all names are resolved, so that a wrong one shows now."""
    team = await names.find_team(linear, text_argument(args, "team"))
    await new_issue_input(linear, args)
    assignee = text_argument(args, "assignee")
    person = await names.find_person(linear, assignee) if assignee else None
    return f"Team: {team.name}\nAssignee: {person.name if person else UNASSIGNED}"


async def preview_update_issue(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    before = {
        "title": get_text(issue, "title"),
        "priority": _issue_priority(issue),
        "description": get_text(issue, "description"),
    }
    after = {name: str(args[name]) for name in ("title", "description") if name in args}
    if "priority" in args:
        after["priority"] = _issue_priority(args)
    return f"{_issue_title(issue)}\n{_difference(before, {**before, **after})}"


async def preview_delete_issue(linear: LinearClient, args: Args) -> str:
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


async def preview_assign_issue(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    person = await names.find_person(linear, text_argument(args, "assignee"))
    before = get_text(issue, "assignee", "name") or UNASSIGNED
    return _change_text(issue, "Assignee", before, person.name if person else UNASSIGNED)


async def preview_change_status(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    status = await names.find_status(linear, text_argument(args, "status"), get_text(issue, "team", "id"))
    return _change_text(issue, "Status", get_text(issue, "state", "name"), status.name)


async def preview_add_label(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    label = await names.find_label(linear, text_argument(args, "label"), get_text(issue, "team", "id"))
    before = [get_text(node, "name") for node in get_nodes(issue, "labels")]
    after = before if label.name in before else [*before, label.name]
    return _change_text(issue, "Labels", ", ".join(before) or "none", ", ".join(after))


async def preview_remove_label(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    label = await names.find_label(linear, text_argument(args, "label"), get_text(issue, "team", "id"))
    before = [get_text(node, "name") for node in get_nodes(issue, "labels")]
    after = [name for name in before if name != label.name]
    return _change_text(issue, "Labels", ", ".join(before) or "none", ", ".join(after) or "none")


async def preview_comment(linear: LinearClient, args: Args) -> str:
    issue = await find_open_issue(linear, args)
    return f"{_issue_title(issue)}\nStatus: {get_text(issue, 'state', 'name')}"


async def preview_create_project(linear: LinearClient, args: Args) -> str:
    return f"Team: {(await names.find_team(linear, text_argument(args, 'team'))).name}"


async def preview_create_cycle(linear: LinearClient, args: Args) -> str:
    dates = parse_dates(args)
    team = await names.find_team(linear, text_argument(args, "team"))
    return f"Team: {team.name}\nFrom {dates['startsAt']} to {dates['endsAt']}"


async def preview_update_cycle(linear: LinearClient, args: Args) -> str:
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


def _issue_priority(found: Mapping[str, object]) -> str:
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

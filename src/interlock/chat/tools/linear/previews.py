"""What a call would do, as things are now; nothing is changed by looking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import unified_diff

from interlock.chat.tools.linear import documents, names
from interlock.chat.tools.linear.api import Linear, Node, inner, nodes, words
from interlock.chat.tools.linear.issues import new_issue, text, usable
from interlock.chat.tools.linear.planning import cycle_shown, dates_of
from interlock.chat.tools.linear.sentences import PRIORITIES
from interlock.core.call import Args

UNASSIGNED = "nobody"
MOST_NAMED = 10


async def create_issue(linear: Linear, args: Args) -> str:
    """All names are settled as they will be, so that a wrong one shows now."""
    team = await names.team(linear, text(args, "team"))
    await new_issue(linear, args)
    assignee = text(args, "assignee")
    person = await names.person(linear, assignee) if assignee else None
    return f"Team: {team.name}\nAssignee: {person.name if person else UNASSIGNED}"


async def update_issue(linear: Linear, args: Args) -> str:
    issue = await usable(linear, args)
    before = {"title": words(issue, "title"), "priority": _priority(issue), "description": words(issue, "description")}
    after = {name: str(args[name]) for name in ("title", "description") if name in args}
    if "priority" in args:
        after["priority"] = _priority(args)
    return f"{_named(issue)}\n{_difference(before, {**before, **after})}"


async def delete_issue(linear: Linear, args: Args) -> str:
    issue = await names.issue(linear, text(args, "id"), documents.ISSUE_WITH_ALL_THAT_HANGS_ON_IT)
    if issue.get("trashed") is True:
        return f"{_named(issue)}\nIt was deleted already; nothing would change."
    children = nodes(issue, "children")
    lines = [
        _named(issue),
        f"Status: {words(issue, 'state', 'name')}",
        f"Assignee: {words(issue, 'assignee', 'name') or UNASSIGNED}",
        f"Comments: {_count(issue, 'comments')}",
        f"Attachments: {_count(issue, 'attachments')}",
        f"Sub-issues: {_count(issue, 'children')}",
        *(f"  {words(child, 'identifier')} {words(child, 'title')}" for child in children[:MOST_NAMED]),
        "For 30 days a person can take it out of the trash in Linear.",
    ]
    return "\n".join(lines)


async def assign_issue(linear: Linear, args: Args) -> str:
    issue = await usable(linear, args)
    person = await names.person(linear, text(args, "assignee"))
    before = words(issue, "assignee", "name") or UNASSIGNED
    return _from_to(issue, "Assignee", before, person.name if person else UNASSIGNED)


async def change_status(linear: Linear, args: Args) -> str:
    issue = await usable(linear, args)
    status = await names.status(linear, text(args, "status"), words(issue, "team", "id"))
    return _from_to(issue, "Status", words(issue, "state", "name"), status.name)


async def add_label(linear: Linear, args: Args) -> str:
    issue = await usable(linear, args)
    label = await names.label(linear, text(args, "label"), words(issue, "team", "id"))
    before = [words(node, "name") for node in nodes(issue, "labels")]
    after = before if label.name in before else [*before, label.name]
    return _from_to(issue, "Labels", ", ".join(before) or "none", ", ".join(after))


async def comment(linear: Linear, args: Args) -> str:
    issue = await usable(linear, args)
    return f"{_named(issue)}\nStatus: {words(issue, 'state', 'name')}"


async def create_project(linear: Linear, args: Args) -> str:
    return f"Team: {(await names.team(linear, text(args, 'team'))).name}"


async def create_cycle(linear: Linear, args: Args) -> str:
    dates = dates_of(args)
    team = await names.team(linear, text(args, "team"))
    return f"Team: {team.name}\nFrom {dates['startsAt']} to {dates['endsAt']}"


async def update_cycle(linear: Linear, args: Args) -> str:
    dates = dates_of(args)
    cycle = cycle_shown(await names.cycle(linear, text(args, "id")))
    before = {name: str(cycle[name] or "") for name in ("name", "starts_at", "ends_at")}
    after = {"name": args.get("name"), "starts_at": dates.get("startsAt"), "ends_at": dates.get("endsAt")}
    changed = {name: str(value) for name, value in after.items() if value is not None}
    return f"Cycle {cycle['number']} of team {cycle['team']}\n{_difference(before, {**before, **changed})}"


def _named(issue: Node) -> str:
    return f"{words(issue, 'identifier')} {words(issue, 'title')}"


def _from_to(issue: Node, what: str, before: str, after: str) -> str:
    change = f"{before} → {after}" if before != after else f"{after}, as it is already"
    return f"{_named(issue)}\n{what}: {change}"


def _count(issue: Node, what: str) -> str:
    more = "more than " if inner(issue, what, "pageInfo", "hasNextPage") is True else ""
    return f"{more}{len(nodes(issue, what))}"


def _priority(found: Mapping[str, object]) -> str:
    number = found.get("priority")
    known = isinstance(number, int | float) and number in range(len(PRIORITIES))
    return PRIORITIES[int(number)] if known and isinstance(number, int | float) else str(number)


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    lines = list(unified_diff(_lines(before), _lines(after), "now", "then", n=1, lineterm=""))
    return "\n".join(lines) or "Nothing would change."


def _lines(fields: Mapping[str, str]) -> list[str]:
    return [line for name, value in fields.items() for line in _of_field(name, value)]


def _of_field(name: str, value: str) -> Iterable[str]:
    first, *rest = value.splitlines() or [""]
    return [f"{name}: {first}", *(f"  {line}" for line in rest)]

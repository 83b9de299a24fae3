"""One-line summaries of calls for people; the card shows all the arguments below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from interlock.chat.tools.linear.names import NOBODY
from interlock.core.call import Args

PRIORITIES = ("No priority", "Urgent", "High", "Medium", "Low")
MAX_VALUE = 200  # characters of one value


def create_issue(args: Args) -> str:
    who = _short(args.get("assignee") or NOBODY)
    parts = [f"Create issue {_quoted(args['title'])}{_in_team(args)}"]
    parts.append("unassigned" if who.casefold() == NOBODY else f"assigned to {who}")
    if "priority" in args:
        parts.append(f"priority {_priority(args['priority'])}")
    if labels := cast(Sequence[object], args.get("labels") or ()):
        parts.append(f"labelled {', '.join(_short(label) for label in labels)}")
    return ", ".join(parts)


def update_issue(args: Args) -> str:
    changes = [f"title to {_quoted(args['title'])}"] if "title" in args else []
    changes += [f"priority to {_priority(args['priority'])}"] if "priority" in args else []
    changes += [f"description to {_quoted(args['description'])}"] if "description" in args else []
    return f"Update issue {_short(args['id'])}: {', '.join(changes)}"


def delete_issue(args: Args) -> str:
    return f"Delete issue {_short(args['id'])}? It can be restored from Linear's trash for a limited time."


def assign_issue(args: Args) -> str:
    who = _short(args["assignee"])
    if who.strip().casefold() == NOBODY:
        return f"Take the assignee off issue {_short(args['id'])}"
    return f"Assign issue {_short(args['id'])} to {who}"


def change_status(args: Args) -> str:
    return f"Change the status of issue {_short(args['id'])} to {_quoted(args['status'])}"


def comment(args: Args) -> str:
    return f"Comment on issue {_short(args['id'])}: {_quoted(args['body'])}"


def add_label(args: Args) -> str:
    return f"Add label {_quoted(args['label'])} to issue {_short(args['id'])}"


def remove_label(args: Args) -> str:
    return f"Remove label {_quoted(args['label'])} from issue {_short(args['id'])}"


def create_project(args: Args) -> str:
    return f"Create project {_quoted(args['name'])}{_in_team(args)}"


def create_cycle(args: Args) -> str:
    name = f" {_quoted(args['name'])}" if args.get("name") else ""
    return f"Create cycle{name}{_in_team(args)}, from {_short(args['starts_at'])} to {_short(args['ends_at'])}"


def update_cycle(args: Args) -> str:
    changes = [f"name to {_quoted(args['name'])}"] if "name" in args else []
    changes += [f"start to {_short(args['starts_at'])}"] if "starts_at" in args else []
    changes += [f"end to {_short(args['ends_at'])}"] if "ends_at" in args else []
    return f"Update cycle {_short(args['id'])}: {', '.join(changes)}"


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

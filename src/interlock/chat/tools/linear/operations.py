"""What the tools do with issues, projects and cycles. Names are resolved before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from interlock.chat.tool import ToolInvocation
from interlock.chat.tools.linear import documents, names
from interlock.chat.tools.linear.api import (
    LinearClient,
    Node,
    create_or_find,
    get_nodes,
    get_path,
    get_text,
    idempotent_id,
    require_object,
)
from interlock.core.call import Args
from interlock.core.errors import CallWouldFail, ToolFailed

DEFAULT_LIMIT = 20
MAX_LIMIT = 1_000
PAGE_SIZE = 100
MAX_PAGES = 50  # of one list; a page may hold fewer nodes than were asked for
SHOWN_COMMENTS = 50  # the newest
MAX_SHOWN = 10_000  # characters of a description or a comment
MAX_SUMMARY = 255  # characters of a project's description; a longer one becomes its content
NOT_CHANGED = "It is not as it was to be."  # never shown: the original failure is reported instead


async def list_issues(linear: LinearClient, invocation: ToolInvocation) -> object:
    wanted: dict[str, object] = {}
    if status := text_argument(invocation.args, "status"):
        wanted["state"] = {"name": {"eqIgnoreCase": await names.find_status_name(linear, status)}}
    if assignee := text_argument(invocation.args, "assignee"):
        person = await names.find_person(linear, assignee)
        wanted["assignee"] = {"id": {"eq": person.id}} if person else {"null": True}
    found, more = await _read_pages(linear, documents.ISSUES, invocation.args, filter=wanted)
    return {"issues": [issue_json(node) for node in found], "more": more}


async def search_issues(linear: LinearClient, invocation: ToolInvocation) -> object:
    term = text_argument(invocation.args, "query")
    found, more = await _read_pages(linear, documents.SEARCH, invocation.args, term=term)
    return {"issues": [issue_json(node) for node in found], "more": more}


async def read_issue(linear: LinearClient, invocation: ToolInvocation) -> object:
    """Read an issue with its newest comments, the oldest of them first; also a deleted one, marked as such."""
    identifier = text_argument(invocation.args, "id")
    issue = await names.find_issue(linear, identifier, documents.ISSUE_WITH_COMMENTS, first=SHOWN_COMMENTS)
    comments = sorted(get_nodes(issue, "comments"), key=lambda node: get_text(node, "createdAt"))
    return {
        **issue_json(issue),
        "description": _shorten(get_text(issue, "description")),
        "deleted": issue.get("trashed") is True,
        "team": get_text(issue, "team", "key"),
        "project": get_text(issue, "project", "name") or None,
        "cycle": get_path(issue, "cycle", "name") or get_path(issue, "cycle", "number"),
        "parent": get_text(issue, "parent", "identifier") or None,
        "sub_issues": [
            {"id": get_text(node, "identifier"), "title": get_text(node, "title")}
            for node in get_nodes(issue, "children")
        ],
        "created_at": get_text(issue, "createdAt"),
        "updated_at": get_text(issue, "updatedAt"),
        "comments": [
            {
                "author": get_text(node, "user", "name") or None,
                "at": get_text(node, "createdAt"),
                "body": _shorten(get_text(node, "body")),
            }
            for node in comments
        ],
        "more_comments": get_path(issue, "comments", "pageInfo", "hasNextPage") is True,
    }


async def list_teams(linear: LinearClient, invocation: ToolInvocation) -> object:
    found, more = await _read_pages(linear, documents.TEAM_LIST, invocation.args)
    return {"teams": [{field: get_text(node, field) for field in ("key", "name")} for node in found], "more": more}


async def list_statuses(linear: LinearClient, invocation: ToolInvocation) -> object:
    """List the statuses in the order in which an issue goes through them."""
    wanted = await _team_filter(linear, invocation.args)
    found, more = await _read_pages(linear, documents.STATUS_LIST, invocation.args, filter=wanted)
    in_order = sorted(found, key=lambda node: (get_text(node, "team", "key"), _position(node)))
    statuses = [{"name": get_text(n, "name"), "type": get_text(n, "type"), **_team_json(n)} for n in in_order]
    return {"statuses": statuses, "more": more}


async def list_labels(linear: LinearClient, invocation: ToolInvocation) -> object:
    """List labels that an issue can have; those of a team come with the ones that all teams share."""
    of_team = await _team_filter(linear, invocation.args)
    wanted = {"isGroup": {"eq": False}, **({"or": [names.SHARED_LABELS, of_team]} if of_team else {})}
    found, more = await _read_pages(linear, documents.LABEL_LIST, invocation.args, filter=wanted)
    return {"labels": [{"name": get_text(node, "name"), **_team_json(node)} for node in found], "more": more}


async def list_projects(linear: LinearClient, invocation: ToolInvocation) -> object:
    team = await _named_team(linear, invocation.args)
    wanted = {"accessibleTeams": {"some": {"id": {"eq": team.id}}}} if team else {}
    found, more = await _read_pages(linear, documents.PROJECT_LIST, invocation.args, filter=wanted)
    projects = [{**_project_json(node), "description": get_text(node, "description")} for node in found]
    return {"projects": projects, "more": more}


async def list_cycles(linear: LinearClient, invocation: ToolInvocation) -> object:
    wanted = await _team_filter(linear, invocation.args)
    found, more = await _read_pages(linear, documents.CYCLE_LIST, invocation.args, filter=wanted)
    return {"cycles": [cycle_json(node) for node in found], "more": more}


async def _read_pages(linear: LinearClient, document: str, args: Args, **variables: object) -> tuple[list[Node], bool]:
    """Return at most `limit` nodes, and whether there are more. The document aliases its connection to `page`."""
    limit = min(cast(int, args.get("limit", DEFAULT_LIMIT)), MAX_LIMIT)
    found: list[Node] = []
    after, more = "", True
    for _ in range(MAX_PAGES):
        data = await linear.query(document, first=min(PAGE_SIZE, limit - len(found)), after=after or None, **variables)
        page = require_object(data.get("page"), "list")
        found += get_nodes(page)
        previous, after = after, get_text(page, "pageInfo", "endCursor")
        more = get_path(page, "pageInfo", "hasNextPage") is True
        if len(found) >= limit or not more or after in ("", previous):
            break
    return found[:limit], more or len(found) > limit


async def _named_team(linear: LinearClient, args: Args) -> names.LinearEntity | None:
    name = text_argument(args, "team")
    return await names.find_team(linear, name) if name else None


async def _team_filter(linear: LinearClient, args: Args) -> Mapping[str, object]:
    team = await _named_team(linear, args)
    return {"team": {"id": {"eq": team.id}}} if team else {}


def _team_json(node: Node) -> Mapping[str, object]:
    return {"team": get_text(node, "team", "key") or None}


def _position(node: Node) -> float:
    position = node.get("position")
    return float(position) if isinstance(position, int | float) else 0.0


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… (truncated: {len(text):,} characters)"


async def create_issue(linear: LinearClient, invocation: ToolInvocation) -> object:
    issue_id = idempotent_id("issue", invocation.key)

    async def make() -> object:
        done = await linear.mutate(
            documents.CREATE_ISSUE, "issue", input={"id": issue_id, **await new_issue_input(linear, invocation.args)}
        )
        return issue_json(done.get("issue"))

    async def look() -> object:
        return issue_json(await names.find_issue(linear, issue_id))

    return await create_or_find(make, look)


async def new_issue_input(linear: LinearClient, args: Args) -> Mapping[str, object]:
    team = await names.find_team(linear, text_argument(args, "team"))
    new: dict[str, object] = {"teamId": team.id, **pick_arguments(args, "title", "description", "priority")}
    if (assignee := text_argument(args, "assignee")) and (person := await names.find_person(linear, assignee)):
        new["assigneeId"] = person.id
    if labels := cast(Sequence[str], args.get("labels") or ()):
        new["labelIds"] = [(await names.find_label(linear, label, team.id)).id for label in labels]
    return new


async def update_issue(linear: LinearClient, invocation: ToolInvocation) -> object:
    """Update an issue. Only the arguments named here are passed on: Linear's own input could also delete it."""
    issue = await find_open_issue(linear, invocation.args)
    return await _update_issue(linear, issue, pick_arguments(invocation.args, "title", "description", "priority"))


async def delete_issue(linear: LinearClient, invocation: ToolInvocation) -> object:
    issue = await names.find_issue(linear, text_argument(invocation.args, "id"))

    async def make() -> None:
        await linear.mutate(documents.DELETE_ISSUE, id=issue["id"])

    async def look() -> None:
        if (await names.find_issue(linear, issue["id"])).get("trashed") is not True:
            raise ToolFailed(NOT_CHANGED)

    if issue.get("trashed") is not True:
        await create_or_find(make, look)
    return {"id": get_text(issue, "identifier"), "title": get_text(issue, "title"), "deleted": True}


async def assign_issue(linear: LinearClient, invocation: ToolInvocation) -> object:
    issue = await find_open_issue(linear, invocation.args)
    person = await names.find_person(linear, text_argument(invocation.args, "assignee"))
    return await _update_issue(linear, issue, {"assigneeId": person.id if person else None})


async def change_status(linear: LinearClient, invocation: ToolInvocation) -> object:
    issue = await find_open_issue(linear, invocation.args)
    status = await names.find_status(linear, text_argument(invocation.args, "status"), get_text(issue, "team", "id"))
    return await _update_issue(linear, issue, {"stateId": status.id})


async def add_label(linear: LinearClient, invocation: ToolInvocation) -> object:
    issue = await find_open_issue(linear, invocation.args)
    label = await names.find_label(linear, text_argument(invocation.args, "label"), get_text(issue, "team", "id"))

    async def make() -> object:
        done = await linear.mutate(documents.ADD_LABEL, "issue", id=issue["id"], labelId=label.id)
        return issue_json(done.get("issue"))

    async def look() -> object:
        now = await names.find_issue(linear, issue["id"])
        if not _has_label(now, label.id):
            raise ToolFailed(NOT_CHANGED)
        return issue_json(now)

    return issue_json(issue) if _has_label(issue, label.id) else await create_or_find(make, look)


async def remove_label(linear: LinearClient, invocation: ToolInvocation) -> object:
    issue = await find_open_issue(linear, invocation.args)
    label = await names.find_label(linear, text_argument(invocation.args, "label"), get_text(issue, "team", "id"))

    async def make() -> object:
        done = await linear.mutate(documents.REMOVE_LABEL, "issue", id=issue["id"], labelId=label.id)
        return issue_json(done.get("issue"))

    async def look() -> object:
        now = await names.find_issue(linear, issue["id"])
        if _has_label(now, label.id):
            raise ToolFailed(NOT_CHANGED)
        return issue_json(now)

    return await create_or_find(make, look) if _has_label(issue, label.id) else issue_json(issue)


async def comment(linear: LinearClient, invocation: ToolInvocation) -> object:
    comment_id = idempotent_id("comment", invocation.key)

    async def make() -> object:
        issue = await find_open_issue(linear, invocation.args)
        new = {"id": comment_id, "issueId": issue["id"], "body": text_argument(invocation.args, "body")}
        return _comment_json((await linear.mutate(documents.CREATE_COMMENT, "comment", input=new)).get("comment"))

    async def look() -> object:
        return _comment_json((await linear.query(documents.COMMENT, id=comment_id)).get("comment"))

    return await create_or_find(make, look)


async def find_open_issue(linear: LinearClient, args: Args) -> Node:
    issue = await names.find_issue(linear, text_argument(args, "id"))
    if issue.get("trashed") is True:
        raise CallWouldFail(f"Issue {get_text(issue, 'identifier')} was deleted. Restore it in Linear first.")
    return issue


def issue_json(found: object) -> Mapping[str, object]:
    """Return an issue for the model; `id` is what the other tools take."""
    issue = require_object(found, "issue")
    return {
        "id": get_text(issue, "identifier"),
        "title": get_text(issue, "title"),
        "status": get_text(issue, "state", "name"),
        "assignee": get_text(issue, "assignee", "name") or None,
        "priority": get_text(issue, "priorityLabel"),
        **(
            {"labels": [get_text(node, "name") for node in get_nodes(issue, "labels")]}
            if get_path(issue, "labels")
            else {}
        ),
        "url": get_text(issue, "url"),
    }


def text_argument(args: Args, name: str) -> str:
    value = args.get(name)
    return value if isinstance(value, str) else ""


def pick_arguments(args: Args, *fields: str) -> dict[str, object]:
    return {field: args[field] for field in fields if field in args}


async def _update_issue(linear: LinearClient, issue: Node, changed: Mapping[str, object]) -> object:
    async def make() -> object:
        done = await linear.mutate(documents.UPDATE_ISSUE, "issue", id=issue["id"], input=changed)
        return issue_json(done.get("issue"))

    async def look() -> object:
        now = await names.find_issue(linear, issue["id"])
        held = {
            **now,
            "assigneeId": get_text(now, "assignee", "id") or None,
            "stateId": get_text(now, "state", "id"),
        }
        if any(held.get(name) != value for name, value in changed.items()):
            raise ToolFailed(NOT_CHANGED)
        return issue_json(now)

    return await create_or_find(make, look)


def _has_label(issue: Node, label_id: str) -> bool:
    return any(node.get("id") == label_id for node in get_nodes(issue, "labels"))


def _comment_json(found: object) -> object:
    comment = require_object(found, "comment")
    fields = {field: get_text(comment, field) for field in ("id", "body", "url")}
    return {**fields, "issue": get_text(comment, "issue", "identifier")}


async def create_project(linear: LinearClient, invocation: ToolInvocation) -> object:
    project_id = idempotent_id("project", invocation.key)

    async def make() -> object:
        team = await names.find_team(linear, text_argument(invocation.args, "team"))
        about = text_argument(invocation.args, "description")
        where = "description" if len(about) <= MAX_SUMMARY else "content"
        new = {
            "id": project_id,
            "name": text_argument(invocation.args, "name"),
            "teamIds": [team.id],
            **({where: about} if about else {}),
        }
        return _project_json((await linear.mutate(documents.CREATE_PROJECT, "project", input=new)).get("project"))

    async def look() -> object:
        return _project_json((await linear.query(documents.PROJECT, id=project_id)).get("project"))

    return await create_or_find(make, look)


async def create_cycle(linear: LinearClient, invocation: ToolInvocation) -> object:
    cycle_id = idempotent_id("cycle", invocation.key)

    async def make() -> object:
        dates = parse_dates(invocation.args)
        team = await names.find_team(linear, text_argument(invocation.args, "team"))
        new = {"id": cycle_id, "teamId": team.id, **pick_arguments(invocation.args, "name"), **dates}
        return cycle_json((await linear.mutate(documents.CREATE_CYCLE, "cycle", input=new)).get("cycle"))

    async def look() -> object:
        return cycle_json((await linear.query(documents.CYCLE, id=cycle_id)).get("cycle"))

    return await create_or_find(make, look)


async def update_cycle(linear: LinearClient, invocation: ToolInvocation) -> object:
    changed = {**pick_arguments(invocation.args, "name"), **parse_dates(invocation.args)}
    cycle = await names.find_cycle(linear, text_argument(invocation.args, "id"))

    async def make() -> object:
        return cycle_json(
            (await linear.mutate(documents.UPDATE_CYCLE, "cycle", id=cycle["id"], input=changed)).get("cycle")
        )

    async def look() -> object:
        now = require_object((await linear.query(documents.CYCLE, id=cycle["id"])).get("cycle"), "cycle")
        if any(now.get(name) != value for name, value in changed.items()):
            raise ToolFailed(NOT_CHANGED)
        return cycle_json(now)

    return await create_or_find(make, look)


def parse_dates(args: Args) -> dict[str, object]:
    """Return dates in Linear's format; a date without a time is midnight, UTC."""
    times = {
        field: _parse_time(name, text_argument(args, name))
        for field, name in (("startsAt", "starts_at"), ("endsAt", "ends_at"))
        if name in args
    }
    if len(times) == 2 and times["startsAt"] >= times["endsAt"]:
        raise CallWouldFail("A cycle ends after it starts: give an ends_at that is later than starts_at.")
    return {field: f"{time:%Y-%m-%dT%H:%M:%S}.000Z" for field, time in times.items()}


def cycle_json(found: object) -> Mapping[str, object]:
    cycle = require_object(found, "cycle")
    number = get_path(cycle, "number")
    return {
        "id": get_text(cycle, "id"),
        "number": int(number) if isinstance(number, int | float) else None,
        "name": get_text(cycle, "name") or None,
        "starts_at": get_text(cycle, "startsAt"),
        "ends_at": get_text(cycle, "endsAt"),
        "team": get_text(cycle, "team", "key"),
    }


def _parse_time(name: str, given: str) -> datetime:
    try:
        time = datetime.fromisoformat(given)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise CallWouldFail(f"{name} is no date: write it like 2026-12-01 or 2026-12-01T09:00:00Z.") from None


def _project_json(found: object) -> Mapping[str, object]:
    project = require_object(found, "project")
    fields = {field: get_text(project, field) for field in ("id", "name", "url")}
    return {**fields, "status": get_text(project, "status", "name")}

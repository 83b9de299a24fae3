"""What the tools do with issues. Names are settled before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from interlock.chat.tool import Use
from interlock.chat.tools.linear import documents, names
from interlock.chat.tools.linear.api import Linear, Node, id_of, inner, nodes, once, whole, words
from interlock.core.call import Args
from interlock.core.errors import ToolFailed

FEW = 20
NOT_SO = "It is not as it was to be."  # the failure that led to looking is told, not this


async def list_issues(linear: Linear, use: Use) -> object:
    wanted: dict[str, object] = {}
    if status := text(use.args, "status"):
        wanted["state"] = {"name": {"eqIgnoreCase": await names.any_status(linear, status)}}
    if assignee := text(use.args, "assignee"):
        person = await names.person(linear, assignee)
        wanted["assignee"] = {"id": {"eq": person.id}} if person else {"null": True}
    data = await linear.ask(documents.ISSUES, filter=wanted, first=use.args.get("limit", FEW))
    return _listed(data.get("issues"))


async def search_issues(linear: Linear, use: Use) -> object:
    data = await linear.ask(documents.SEARCH, term=text(use.args, "query"), first=use.args.get("limit", FEW))
    return _listed(data.get("searchIssues"))


async def create_issue(linear: Linear, use: Use) -> object:
    issue_id = id_of("issue", use.key)

    async def make() -> object:
        done = await linear.change(documents.CREATE_ISSUE, input={"id": issue_id, **await new_issue(linear, use.args)})
        return outlined(done.get("issue"))

    async def look() -> object:
        return outlined(await names.issue(linear, issue_id))

    return await once(make, look)


async def new_issue(linear: Linear, args: Args) -> Mapping[str, object]:
    team = await names.team(linear, text(args, "team"))
    new: dict[str, object] = {"teamId": team.id, **given(args, "title", "description", "priority")}
    if (assignee := text(args, "assignee")) and (person := await names.person(linear, assignee)):
        new["assigneeId"] = person.id
    if labels := cast(Sequence[str], args.get("labels") or ()):
        new["labelIds"] = [(await names.label(linear, label, team.id)).id for label in labels]
    return new


async def update_issue(linear: Linear, use: Use) -> object:
    """Only what is named here is passed on: Linear's own input could also delete the issue."""
    issue = await usable(linear, use.args)
    return await _updated(linear, issue, given(use.args, "title", "description", "priority"))


async def delete_issue(linear: Linear, use: Use) -> object:
    issue = await names.issue(linear, text(use.args, "id"))

    async def make() -> None:
        await linear.change(documents.DELETE_ISSUE, id=issue["id"])

    async def look() -> None:
        if (await names.issue(linear, issue["id"])).get("trashed") is not True:
            raise ToolFailed(NOT_SO)

    if issue.get("trashed") is not True:
        await once(make, look)
    return {"id": words(issue, "identifier"), "title": words(issue, "title"), "deleted": True}


async def assign_issue(linear: Linear, use: Use) -> object:
    issue = await usable(linear, use.args)
    person = await names.person(linear, text(use.args, "assignee"))
    return await _updated(linear, issue, {"assigneeId": person.id if person else None})


async def change_status(linear: Linear, use: Use) -> object:
    issue = await usable(linear, use.args)
    status = await names.status(linear, text(use.args, "status"), words(issue, "team", "id"))
    return await _updated(linear, issue, {"stateId": status.id})


async def add_label(linear: Linear, use: Use) -> object:
    issue = await usable(linear, use.args)
    label = await names.label(linear, text(use.args, "label"), words(issue, "team", "id"))

    async def make() -> object:
        done = await linear.change(documents.ADD_LABEL, id=issue["id"], labelId=label.id)
        return outlined(done.get("issue"))

    async def look() -> object:
        now = await names.issue(linear, issue["id"])
        if not _has_label(now, label.id):
            raise ToolFailed(NOT_SO)
        return outlined(now)

    return outlined(issue) if _has_label(issue, label.id) else await once(make, look)


async def comment(linear: Linear, use: Use) -> object:
    comment_id = id_of("comment", use.key)

    async def make() -> object:
        issue = await usable(linear, use.args)
        new = {"id": comment_id, "issueId": issue["id"], "body": text(use.args, "body")}
        return _remark((await linear.change(documents.CREATE_COMMENT, input=new)).get("comment"))

    async def look() -> object:
        return _remark((await linear.ask(documents.COMMENT, id=comment_id)).get("comment"))

    return await once(make, look)


async def usable(linear: Linear, args: Args) -> Node:
    issue = await names.issue(linear, text(args, "id"))
    if issue.get("trashed") is True:
        raise ToolFailed(f"Issue {words(issue, 'identifier')} was deleted. Restore it in Linear first.")
    return issue


def outlined(found: object) -> Mapping[str, object]:
    """An issue as the model sees it; `id` is what the other tools take."""
    issue = whole(found, "issue")
    return {
        "id": words(issue, "identifier"),
        "title": words(issue, "title"),
        "status": words(issue, "state", "name"),
        "assignee": words(issue, "assignee", "name") or None,
        "priority": words(issue, "priorityLabel"),
        **({"labels": [words(node, "name") for node in nodes(issue, "labels")]} if inner(issue, "labels") else {}),
        "url": words(issue, "url"),
    }


def text(args: Args, name: str) -> str:
    value = args.get(name)
    return value if isinstance(value, str) else ""


def given(args: Args, *fields: str) -> dict[str, object]:
    return {field: args[field] for field in fields if field in args}


async def _updated(linear: Linear, issue: Node, changed: Mapping[str, object]) -> object:
    async def make() -> object:
        done = await linear.change(documents.UPDATE_ISSUE, id=issue["id"], input=changed)
        return outlined(done.get("issue"))

    async def look() -> object:
        now = await names.issue(linear, issue["id"])
        held = {
            **now,
            "assigneeId": words(now, "assignee", "id") or None,
            "stateId": words(now, "state", "id"),
        }
        if any(held.get(name) != value for name, value in changed.items()):
            raise ToolFailed(NOT_SO)
        return outlined(now)

    return await once(make, look)


def _has_label(issue: Node, label_id: str) -> bool:
    return any(node.get("id") == label_id for node in nodes(issue, "labels"))


def _listed(connection: object) -> object:
    found = [outlined(node) for node in nodes(whole(connection, "issues"))]
    return {"issues": found, "more": inner(connection, "pageInfo", "hasNextPage") is True}


def _remark(found: object) -> object:
    comment = whole(found, "comment")
    fields = {field: words(comment, field) for field in ("id", "body", "url")}
    return {**fields, "issue": words(comment, "issue", "identifier")}

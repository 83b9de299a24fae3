"""The pack's tools: names, schemas and descriptions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from interlock.chat.tool import RunTool, Tool, ToolContext, ToolInvocation, object_schema
from interlock.chat.tools.linear import cards, operations
from interlock.chat.tools.linear.api import LinearAccess, LinearClient, make_linear_access
from interlock.core.call import Args, ToolSpec

WorkFunction = Callable[[LinearClient, ToolInvocation], Awaitable[object]]
PreviewFunction = Callable[[LinearClient, Args], Awaitable[str]]


def read_tools(context: ToolContext) -> Sequence[Tool]:
    access = make_linear_access(context)
    if access is None:
        return ()
    listed = object_schema(status=STATUS, assignee=ASSIGNEE, limit=LIMIT)
    searched = object_schema("query", query=text_schema("Words to look for."), limit=LIMIT)
    of_team = object_schema(team=TEAM_FILTER, limit=LIMIT)
    read = partial(_read_tool, access)
    return (
        read("list_issues", "Lists issues of Linear, those that changed last first.", listed, operations.list_issues),
        read("search_issues", "Searches the issues of Linear.", searched, operations.search_issues),
        read(
            "read_issue",
            "Reads an issue of Linear with its description, sub-issues and newest comments.",
            object_schema("id", id=ISSUE),
            operations.read_issue,
        ),
        read("list_teams", "Lists the teams of Linear.", object_schema(limit=LIMIT), operations.list_teams),
        read("list_statuses", "Lists the statuses that issues of a team can have.", of_team, operations.list_statuses),
        read("list_labels", "Lists the labels that issues can have.", of_team, operations.list_labels),
        read("list_projects", "Lists the projects of Linear, the newest first.", of_team, operations.list_projects),
        read("list_cycles", "Lists the cycles of Linear, the newest first.", of_team, operations.list_cycles),
    )


def write_tools(context: ToolContext) -> Sequence[Tool]:
    access = make_linear_access(context)
    return () if access is None else (*_issue_tools(access), *_planning_tools(access))


def _issue_tools(access: LinearAccess) -> Sequence[Tool]:
    new = object_schema(
        "title",
        title=TITLE,
        description=MARKDOWN,
        team=TEAM,
        assignee=ASSIGNEE,
        priority=PRIORITY,
        labels={"type": "array", "items": LABEL, "maxItems": 20, "uniqueItems": True},
    )
    changed = {
        **object_schema("id", id=ISSUE, title=TITLE, description=MARKDOWN, priority=PRIORITY),
        "minProperties": 2,
    }
    write = partial(_write_tool, access)
    return (
        write("create_issue", "Creates an issue in Linear.", new, operations.create_issue),
        write("update_issue", "Changes title, description or priority of an issue.", changed, operations.update_issue),
        write(
            "delete_issue", "Deletes an issue.", object_schema("id", id=ISSUE), operations.delete_issue, "destructive"
        ),
        write(
            "assign_issue",
            "Assigns an issue to somebody.",
            object_schema("id assignee", id=ISSUE, assignee=ASSIGNEE),
            operations.assign_issue,
        ),
        write(
            "change_status",
            "Moves an issue to another status of its team.",
            object_schema("id status", id=ISSUE, status=STATUS),
            operations.change_status,
        ),
        write(
            "comment", "Comments on an issue.", object_schema("id body", id=ISSUE, body=MARKDOWN), operations.comment
        ),
        write(
            "add_label",
            "Adds a label to an issue.",
            object_schema("id label", id=ISSUE, label=LABEL),
            operations.add_label,
        ),
        write(
            "remove_label",
            "Takes a label off an issue.",
            object_schema("id label", id=ISSUE, label=LABEL),
            operations.remove_label,
        ),
    )


def _planning_tools(access: LinearAccess) -> Sequence[Tool]:
    project = object_schema("name", name=TITLE, description=MARKDOWN, team=TEAM)
    cycle = object_schema("starts_at ends_at", name=TITLE, starts_at=DATE, ends_at=DATE, team=TEAM)
    changed = {**object_schema("id", id=CYCLE, name=TITLE, starts_at=DATE, ends_at=DATE), "minProperties": 2}
    write = partial(_write_tool, access)
    return (
        write("create_project", "Creates a project in Linear.", project, operations.create_project),
        write("create_cycle", "Creates a cycle for a team.", cycle, operations.create_cycle),
        write("update_cycle", "Changes name or dates of a cycle.", changed, operations.update_cycle),
    )


def _read_tool(access: LinearAccess, name: str, about: str, takes: Mapping[str, object], work: WorkFunction) -> Tool:
    return Tool(ToolSpec(f"linear_{name}", "read", schema=takes), about, _run(access, work))


def _write_tool(
    access: LinearAccess, name: str, about: str, takes: Mapping[str, object], work: WorkFunction, effect: str = "write"
) -> Tool:
    """Make a tool; the functions of its sentence and its preview are in `cards`."""
    spec = ToolSpec(
        f"linear_{name}",
        effect,
        schema=takes,
        describe=getattr(cards, f"describe_{name}"),
        preview=_preview(access, getattr(cards, f"preview_{name}")),
        idempotent=True,
    )
    return Tool(spec, about, _run(access, work))


def _run(access: LinearAccess, work: WorkFunction) -> RunTool:
    async def run(invocation: ToolInvocation) -> object:
        async with access.open_client() as linear:
            return await work(linear, invocation)

    return run


def _preview(access: LinearAccess, look: PreviewFunction) -> Callable[[Args], Awaitable[str]]:
    async def preview(args: Args) -> str:
        async with access.open_client() as linear:
            return await look(linear, args)

    return preview


def text_schema(about: str, most: int = 200) -> Mapping[str, object]:
    return {"type": "string", "minLength": 1, "maxLength": most, "description": about}


ISSUE = text_schema("The issue's identifier, such as DEMO-12.")
CYCLE = text_schema("The cycle's id, number or name.")
TITLE = text_schema("In plain text.", 255)
MARKDOWN = text_schema("In Markdown.", 50_000)
TEAM = text_schema("A team's key or name; the usual one if left out.")
TEAM_FILTER = text_schema("A team's key or name; all teams if left out.")
STATUS = text_schema("The name of a status, such as In Progress.")
LABEL = text_schema("The name of a label that exists.")
ASSIGNEE = text_schema('A name or an e-mail address; "me" for the owner of the key, "nobody" for none.')
DATE = text_schema("A date or a time in ISO 8601, such as 2026-12-01.", 40)
LIMIT = {
    "type": "integer",
    "minimum": 1,
    "maximum": operations.MAX_LIMIT,
    "description": f"At most so many; {operations.DEFAULT_LIMIT} if left out. The result says whether there are more.",
}
PRIORITY = {"type": "integer", "minimum": 0, "maximum": 4, "description": "0 none, 1 urgent, 2 high, 3 medium, 4 low."}

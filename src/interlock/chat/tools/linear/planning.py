"""Project and cycle tools."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from interlock.chat.tool import ToolInvocation
from interlock.chat.tools.linear import documents, names
from interlock.chat.tools.linear.api import (
    LinearClient,
    create_or_find,
    get_path,
    get_text,
    idempotent_id,
    require_object,
)
from interlock.chat.tools.linear.issues import NOT_CHANGED, pick_arguments, text_argument
from interlock.core.call import Args
from interlock.core.errors import ToolFailed

MAX_SUMMARY = 255  # characters of a project's description; a longer one becomes its content


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
        return _project_json((await linear.mutate(documents.CREATE_PROJECT, input=new)).get("project"))

    async def look() -> object:
        return _project_json((await linear.query(documents.PROJECT, id=project_id)).get("project"))

    return await create_or_find(make, look)


async def create_cycle(linear: LinearClient, invocation: ToolInvocation) -> object:
    cycle_id = idempotent_id("cycle", invocation.key)

    async def make() -> object:
        dates = parse_dates(invocation.args)
        team = await names.find_team(linear, text_argument(invocation.args, "team"))
        new = {"id": cycle_id, "teamId": team.id, **pick_arguments(invocation.args, "name"), **dates}
        return cycle_json((await linear.mutate(documents.CREATE_CYCLE, input=new)).get("cycle"))

    async def look() -> object:
        return cycle_json((await linear.query(documents.CYCLE, id=cycle_id)).get("cycle"))

    return await create_or_find(make, look)


async def update_cycle(linear: LinearClient, invocation: ToolInvocation) -> object:
    changed = {**pick_arguments(invocation.args, "name"), **parse_dates(invocation.args)}
    cycle = await names.find_cycle(linear, text_argument(invocation.args, "id"))

    async def make() -> object:
        return cycle_json((await linear.mutate(documents.UPDATE_CYCLE, id=cycle["id"], input=changed)).get("cycle"))

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
        raise ToolFailed("A cycle ends after it starts: give an ends_at that is later than starts_at.")
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
        raise ToolFailed(f"{name} is no date: write it like 2026-12-01 or 2026-12-01T09:00:00Z.") from None


def _project_json(found: object) -> object:
    project = require_object(found, "project")
    fields = {field: get_text(project, field) for field in ("id", "name", "url")}
    return {**fields, "status": get_text(project, "status", "name")}

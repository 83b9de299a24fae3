"""What the tools do with projects and cycles."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from interlock.chat.tool import Use
from interlock.chat.tools.linear import documents, names
from interlock.chat.tools.linear.api import Linear, id_of, inner, once, whole, words
from interlock.chat.tools.linear.issues import NOT_SO, given, text
from interlock.core.call import Args
from interlock.core.errors import ToolFailed

SUMMARY = 255  # characters of a project's description; what is longer is its content


async def create_project(linear: Linear, use: Use) -> object:
    project_id = id_of("project", use.key)

    async def make() -> object:
        team = await names.team(linear, text(use.args, "team"))
        about = text(use.args, "description")
        where = "description" if len(about) <= SUMMARY else "content"
        new = {
            "id": project_id,
            "name": text(use.args, "name"),
            "teamIds": [team.id],
            **({where: about} if about else {}),
        }
        return _project((await linear.change(documents.CREATE_PROJECT, input=new)).get("project"))

    async def look() -> object:
        return _project((await linear.ask(documents.PROJECT, id=project_id)).get("project"))

    return await once(make, look)


async def create_cycle(linear: Linear, use: Use) -> object:
    cycle_id = id_of("cycle", use.key)

    async def make() -> object:
        dates = dates_of(use.args)
        team = await names.team(linear, text(use.args, "team"))
        new = {"id": cycle_id, "teamId": team.id, **given(use.args, "name"), **dates}
        return cycle_shown((await linear.change(documents.CREATE_CYCLE, input=new)).get("cycle"))

    async def look() -> object:
        return cycle_shown((await linear.ask(documents.CYCLE, id=cycle_id)).get("cycle"))

    return await once(make, look)


async def update_cycle(linear: Linear, use: Use) -> object:
    changed = {**given(use.args, "name"), **dates_of(use.args)}
    cycle = await names.cycle(linear, text(use.args, "id"))

    async def make() -> object:
        return cycle_shown((await linear.change(documents.UPDATE_CYCLE, id=cycle["id"], input=changed)).get("cycle"))

    async def look() -> object:
        now = whole((await linear.ask(documents.CYCLE, id=cycle["id"])).get("cycle"), "cycle")
        if any(now.get(name) != value for name, value in changed.items()):
            raise ToolFailed(NOT_SO)
        return cycle_shown(now)

    return await once(make, look)


def dates_of(args: Args) -> dict[str, object]:
    """As Linear takes them; a day without a time begins at midnight, UTC."""
    times = {
        field: _time(name, text(args, name))
        for field, name in (("startsAt", "starts_at"), ("endsAt", "ends_at"))
        if name in args
    }
    if len(times) == 2 and times["startsAt"] >= times["endsAt"]:
        raise ToolFailed("A cycle ends after it starts: give an ends_at that is later than starts_at.")
    return {field: f"{time:%Y-%m-%dT%H:%M:%S}.000Z" for field, time in times.items()}


def cycle_shown(found: object) -> Mapping[str, object]:
    cycle = whole(found, "cycle")
    number = inner(cycle, "number")
    return {
        "id": words(cycle, "id"),
        "number": int(number) if isinstance(number, int | float) else None,
        "name": words(cycle, "name") or None,
        "starts_at": words(cycle, "startsAt"),
        "ends_at": words(cycle, "endsAt"),
        "team": words(cycle, "team", "key"),
    }


def _time(name: str, given: str) -> datetime:
    try:
        time = datetime.fromisoformat(given)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ToolFailed(f"{name} is no date: write it like 2026-12-01 or 2026-12-01T09:00:00Z.") from None


def _project(found: object) -> object:
    project = whole(found, "project")
    fields = {field: words(project, field) for field in ("id", "name", "url")}
    return {**fields, "status": words(project, "status", "name")}

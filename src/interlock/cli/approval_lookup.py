"""From what a person types to one approval: the whole id, its beginning, or its end."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.app.inbox import View
from interlock.cli.context import Desk
from interlock.core.card import visible
from interlock.core.errors import Error, InvalidRequest, NotFound

LEAST = 4
NAMED = 5


async def view_of(desk: Desk, text: str) -> View:
    return await desk.parts.inbox.show(desk.workspace, await id_of(desk, text))


async def id_of(desk: Desk, text: str) -> str:
    if len(text) < LEAST:
        raise InvalidRequest(f"{text!r} is too short: give at least {LEAST} characters of the id.")
    try:
        return (await desk.parts.store.get(desk.workspace, text)).approval.id
    except NotFound:
        return await _only(desk, text, await desk.parts.store.ids_like(desk.workspace, text, NAMED + 1))


async def sweep(desk: Desk) -> None:
    """Without a server nobody else lets time pass; a list is shown even where nothing can be written."""
    try:
        await desk.parts.worker.sweep()
    except Error:
        return


async def _only(desk: Desk, text: str, ids: Sequence[str]) -> str:
    if len(ids) == 1:
        return ids[0]
    if not ids:
        raise NotFound(
            f"There is no approval {text!r} in the workspace {desk.workspace!r}. "
            "See: interlock approvals list --status all",
            approval_id=text,
        )
    found = [await desk.parts.store.get(desk.workspace, approval_id) for approval_id in ids[:NAMED]]
    named = ", ".join(f"{visible(s.approval.id)} ({visible(s.approval.subject.tool)})" for s in found)
    more = " and more" if len(ids) > NAMED else ""
    raise NotFound(
        f"{text!r} could be several approvals: {named}{more}. Give more of the id.",
        approval_id=text,
        candidates=list(ids[:NAMED]),
    )

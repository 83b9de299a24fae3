"""From what a person types to one approval: the whole id, its beginning, or its end."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.app.inbox import ApprovalDetails
from interlock.cli.context import CommandContext
from interlock.core.card import visible
from interlock.core.errors import Error, InvalidRequest, NotFound

MIN_ID_LENGTH = 4
MAX_NAMED = 5


async def find_approval_view(desk: CommandContext, text: str) -> ApprovalDetails:
    return await desk.parts.inbox.show(desk.workspace, await find_approval_id(desk, text))


async def find_approval_id(desk: CommandContext, text: str) -> str:
    if len(text) < MIN_ID_LENGTH:
        raise InvalidRequest(f"{text!r} is too short: give at least {MIN_ID_LENGTH} characters of the id.")
    try:
        return (await desk.parts.store.get(desk.workspace, text)).approval.id
    except NotFound:
        return await _require_one(desk, text, await desk.parts.store.ids_like(desk.workspace, text, MAX_NAMED + 1))


async def sweep_if_writable(desk: CommandContext) -> None:
    """Without a server nobody else lets time pass; a list is shown even where nothing can be written."""
    try:
        await desk.parts.worker.sweep()
    except Error:
        return


async def _require_one(desk: CommandContext, text: str, ids: Sequence[str]) -> str:
    if len(ids) == 1:
        return ids[0]
    if not ids:
        raise NotFound(
            f"There is no approval {text!r} in the workspace {desk.workspace!r}. "
            "See: interlock approvals list --status all",
            approval_id=text,
        )
    found = [await desk.parts.store.get(desk.workspace, approval_id) for approval_id in ids[:MAX_NAMED]]
    named = ", ".join(f"{visible(s.approval.id)} ({visible(s.approval.subject.tool)})" for s in found)
    more = " and more" if len(ids) > MAX_NAMED else ""
    raise NotFound(
        f"{text!r} could be several approvals: {named}{more}. Give more of the id.",
        approval_id=text,
        candidates=list(ids[:MAX_NAMED]),
    )

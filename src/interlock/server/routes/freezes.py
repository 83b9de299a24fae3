"""Freezes, the kill switch over HTTP: list, freeze, release."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from interlock.app.freezes import Freezes, freeze_warnings
from interlock.core.call import MAX_NAME
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import NotFound
from interlock.core.freeze import Freeze
from interlock.presenters.policy import freeze_json
from interlock.server.dependencies import ADMINS, VIEWERS, PrincipalDep, StateDep, documented_errors, require_roles
from interlock.server.http import RequestBody, example
from interlock.server.state import ServerState

router = APIRouter(tags=["freezes"])
FreezeScope = Literal["workspace", "agent", "key", "tool"]


class FreezeBody(RequestBody):
    """`name` is an agent, the id of a key, or a tool, in which * matches any letters; empty for a workspace."""

    model_config = example({"scope": "tool", "name": "wire_*", "reason": "The bank asked us to stop."})

    scope: FreezeScope
    name: Annotated[str, Field(max_length=MAX_NAME)] = ""
    reason: Annotated[str, Field(min_length=1, max_length=MAX_COMMENT)]


class FreezeInfo(BaseModel):
    """Until it is released, calls in its scope are refused and none starts.

    `warnings` come with a new freeze, if nothing is known that it stops.
    """

    id: str
    scope: FreezeScope
    name: str
    reason: str
    created_by: str
    created_at: str
    released_at: str | None
    released_by: str | None
    warnings: list[str] = []


class FreezeList(BaseModel):
    items: list[FreezeInfo]
    next: str | None = None


@router.get("/api/freeze", responses=documented_errors(), **require_roles(VIEWERS))
async def list_freezes(
    server_state: StateDep, principal: PrincipalDep, state: Literal["on", "all"] = "on"
) -> FreezeList:
    """The active freezes, or the newest 1,000 of all."""
    freezes = _freezes(server_state)
    found = await (freezes.list_all if state == "all" else freezes.list_active)(principal.workspace)
    return FreezeList(items=[_info(each) for each in found])


@router.post("/api/freeze", responses=documented_errors(404, 409), status_code=201, **require_roles(ADMINS))
async def freeze(body: FreezeBody, state: StateDep, principal: PrincipalDep) -> FreezeInfo:
    """Freeze a scope: nothing in it starts any more, at once. A scope that is frozen already keeps its reason."""
    if body.scope == "key" and body.name not in {key.id for key in await state.accounts.keys(principal.workspace)}:
        raise NotFound("There is no key with this id in the workspace. Give the id that the list of keys shows.")
    made = await _freezes(state).freeze(principal.workspace, body.scope, body.name, body.reason, principal.reviewer())
    await state.workspaces.refresh(principal.workspace)
    warnings = freeze_warnings(made, await state.store.tools(principal.workspace))
    return _info(made).model_copy(update={"warnings": warnings})


@router.delete("/api/freeze/{freeze_id}", responses=documented_errors(404), **require_roles(ADMINS))
async def unfreeze(
    freeze_id: str, state: StateDep, principal: PrincipalDep, reason: Annotated[str, Query(max_length=MAX_COMMENT)] = ""
) -> FreezeInfo:
    """Release a freeze. The deadlines of the calls that it covered are extended by its duration."""
    released = await _freezes(state).release(principal.workspace, freeze_id, reason, principal.reviewer())
    await state.workspaces.refresh(principal.workspace)
    return _info(released)


def _freezes(state: ServerState) -> Freezes:
    return Freezes(state.store.freezes, state.clock)


def _info(freeze: Freeze) -> FreezeInfo:
    fields: dict[str, Any] = freeze_json(freeze)
    return FreezeInfo(**fields)

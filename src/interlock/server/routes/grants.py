"""Grants: standing permissions that let calls through without asking; list, make, show, revoke."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from interlock.app.gate import uuid7
from interlock.core.call import MAX_NAME
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import Conflict, InvalidRequest
from interlock.core.grant import Grant
from interlock.core.identity import Principal
from interlock.presenters.policy import grant_json, grant_view_json, grant_warnings
from interlock.runtime.durations import parse_duration
from interlock.server.dependencies import (
    DECIDERS,
    VIEWERS,
    PrincipalDep,
    RequestDep,
    StateDep,
    documented_errors,
    require_recent_sign_in,
    require_roles,
)
from interlock.server.http import HttpRequest, RequestBody, example, reject_misconfigured
from interlock.server.state import ServerState

router = APIRouter(tags=["grants"])


class GrantBody(RequestBody):
    """`budget` is a decimal number as a text, `budget_of` the argument that is summed."""

    model_config = example(
        {
            "tool": "send_mail",
            "agent": "billing",
            "expires_in": "8h",
            "max_uses": 20,
            "reason": "Today's letters.",
        }
    )

    tool: Annotated[str, Field(max_length=MAX_NAME)]
    expires_in: str
    reason: Annotated[str, Field(min_length=1, max_length=MAX_COMMENT)]
    agent: Annotated[str, Field(max_length=MAX_NAME)] = "*"
    when: Annotated[str, Field(max_length=10_000)] = ""
    max_uses: int | None = None
    budget: Annotated[str, Field(max_length=MAX_NAME)] = ""
    budget_of: Annotated[str, Field(max_length=MAX_NAME)] = ""


class GrantInfo(BaseModel):
    """`uses_left` and `budget_left` are null without a limit; amounts are texts, since JSON numbers are not exact."""

    id: str
    tool: str
    agent: str
    when: str
    state: Literal["active", "revoked", "used up", "expired"]
    reason: str
    created_by: str
    created_at: str
    expires_at: str
    revoked_at: str | None
    uses: int
    max_uses: int | None
    uses_left: int | None
    budget_of: str | None
    budget: str | None
    spent: str | None
    budget_left: str | None
    spec_sha256: str


class CreatedGrant(GrantInfo):
    warnings: list[str]


class GrantList(BaseModel):
    items: list[GrantInfo]
    next: str | None = None


class GrantUse(BaseModel):
    approval_id: str
    at: str
    status: str
    sentence: str
    amount: str | None


class GrantDetails(GrantInfo):
    """A grant with the newest calls that it allowed."""

    revoked_by: str | None
    revoked_reason: str | None
    calls: list[GrantUse]


@router.get("/api/grants", responses=documented_errors(), **require_roles(VIEWERS))
async def list_grants(
    server_state: StateDep, principal: PrincipalDep, state: Literal["active", "all"] = "active"
) -> GrantList:
    """The newest 1,000 active grants, or the newest 1,000 of all."""
    inbox = (await server_state.workspaces.services(principal.workspace)).inbox
    grants = await (inbox.grants if state == "all" else inbox.active_grants)(principal.workspace)
    return GrantList(items=[_info(grant, server_state.clock()) for grant in grants])


@router.post("/api/grants", responses=documented_errors(404, 409), status_code=201, **require_recent_sign_in(DECIDERS))
async def make_grant(body: GrantBody, state: StateDep, principal: PrincipalDep, request: RequestDep) -> CreatedGrant:
    """Make a grant: calls of a tool that it covers are approved in your name, without asking."""
    if not body.reason.strip():
        raise InvalidRequest("The reason is empty. Say briefly why no approval is needed.")
    inbox = (await state.workspaces.services(principal.workspace)).inbox
    definition = await inbox.definition(principal.workspace, body.tool, body.agent)
    draft = _draft(body, principal, state, definition.spec.sha256, _grant_id(request, principal, state))
    try:
        with reject_misconfigured("/when"):
            grant = await inbox.grant(draft, principal.reviewer())
    except Conflict:
        grant = await _existing_grant(state, draft, principal)
    return CreatedGrant(**_fields(grant, state.clock()), warnings=list(grant_warnings(grant, definition)))


@router.get("/api/grants/{grant_id}", responses=documented_errors(404), **require_roles(VIEWERS))
async def show_grant(grant_id: str, state: StateDep, principal: PrincipalDep) -> GrantDetails:
    """One grant: what it covers, its limits, who made it and why, and the calls that it allowed."""
    inbox = (await state.workspaces.services(principal.workspace)).inbox
    view: dict[str, Any] = grant_view_json(await inbox.show_grant(principal.workspace, grant_id), state.clock())
    return GrantDetails(**view)


@router.delete("/api/grants/{grant_id}", responses=documented_errors(404), **require_roles(DECIDERS))
async def revoke_grant(
    grant_id: str, state: StateDep, principal: PrincipalDep, reason: Annotated[str, Query(max_length=MAX_COMMENT)] = ""
) -> GrantInfo:
    """Revoke a grant; only its creator or an admin can. Calls that it allowed stay allowed."""
    inbox = (await state.workspaces.services(principal.workspace)).inbox
    return _info(await inbox.revoke(principal.workspace, grant_id, principal.reviewer(), reason), state.clock())


def _draft(body: GrantBody, principal: Principal, state: ServerState, spec_sha256: str, grant_id: str) -> Grant:
    return Grant(
        id=grant_id,
        workspace=principal.workspace,
        tool=body.tool,
        spec_sha256=spec_sha256,
        created_by="",
        teams=frozenset(),
        role="",
        created_at=0,
        expires_at=state.clock() + parse_duration(body.expires_in),
        agent=body.agent,
        when=body.when,
        max_uses=body.max_uses,
        reason=body.reason,
        budget_of=body.budget_of,
        budget=body.budget,
    )


def _grant_id(request: HttpRequest, principal: Principal, state: ServerState) -> str:
    """The grant's id; the same for a retry with the same Idempotency-Key."""
    key = request.headers.get(b"idempotency-key")
    if not key:
        return uuid7(state.clock())
    seed = sha256(b"\0".join((b"grant", principal.workspace.encode(), principal.name.encode(), key))).digest()
    return str(UUID(bytes=seed[:16], version=5))


async def _existing_grant(state: ServerState, draft: Grant, principal: Principal) -> Grant:
    """The grant of the first request; a different request with the same Idempotency-Key is refused."""
    made = await state.store.grant(principal.workspace, draft.id)
    same = (made.tool, made.agent, made.when, made.max_uses, made.budget_of, made.reason)
    if same != (draft.tool, draft.agent, draft.when, draft.max_uses, draft.budget_of, draft.reason):
        raise Conflict("This Idempotency-Key was used for another grant. Send a new one.", grant_id=made.id)
    return made


def _info(grant: Grant, now: int) -> GrantInfo:
    return GrantInfo(**_fields(grant, now))


def _fields(grant: Grant, now: int) -> dict[str, Any]:
    return grant_json(grant, now)

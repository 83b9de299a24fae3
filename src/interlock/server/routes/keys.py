"""API keys: admins make them for agents and for people, everybody their own."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from interlock.accounts.keys import NEVER_EXPIRES
from interlock.core.errors import Forbidden, NotFound
from interlock.core.identity import AGENT, MAX_QUOTA, ApiKey, KeyBindings, Principal, check_own_key, lesser_role
from interlock.runtime.durations import optional_rfc3339, parse_duration, rfc3339
from interlock.server.dependencies import (
    ADMINS,
    VIEWERS,
    PrincipalDep,
    StateDep,
    documented_errors,
    require_recent_sign_in,
    require_roles,
)
from interlock.server.http import RequestBody, example
from interlock.server.routes.people import Names, PersonRole, Text, traced_accounts
from interlock.server.state import ServerState

router = APIRouter(tags=["people and keys"])
Quota = Annotated[int, Field(ge=0, le=MAX_QUOTA)] | None


class OwnKeyBody(RequestBody):
    """`expires_in` is a duration such as `90d`, or `never`; by default, the key lasts for 90 days.

    If it is made with a key, it expires with that key at the latest.
    """

    model_config = example({"name": "my script", "role": "viewer", "expires_in": "30d"})

    name: Text
    role: PersonRole | None = None
    expires_in: Text = ""


class KeyBody(RequestBody):
    """A key for a person belongs to the `user`, or to the person of the key's own name, who is added if missing.

    A key for an agent is bound to the names in `agents`: other names are refused. An unbound key may use any name, and
    allow rules and grants that name an agent or a person do not apply to it. `tools` are patterns of the tools that it
    may propose. `requester` is the one person that it acts for, whose account has to exist, `any` for a back end that
    authenticates its own users, or `none` for work without a requester; `user` names one person too, who is added if
    missing. `per_minute` and `pending` are quotas of its own: `0` is no limit; by default, the server's apply.
    `expires_in` is a duration such as `90d`, or `never`; by default, a key of an agent does not expire, and one of a
    person expires after 90 days.
    """

    model_config = example({"name": "billing", "role": "agent", "agents": ["billing"], "requester": "none"})

    name: Text
    role: Literal["agent", "viewer", "reviewer", "admin"]
    user: Text = ""
    agents: Names
    tools: Names
    requester: Text = ""
    per_minute: Quota = None
    pending: Quota = None
    expires_in: Text = ""


class RotateKeyBody(RequestBody):
    """The old key stays valid for the `overlap`. The new one lasts as long as the old one did, or for `expires_in`."""

    model_config = example({"overlap": "24h"})

    overlap: Text = "24h"
    expires_in: Text = ""


class KeyInfo(BaseModel):
    """`id` is the beginning of the key. `user` is its owner; for an agent's key, the one requester that it is bound to.

    `per_minute` and `pending` are quotas of its own: `0` is no limit, `null` is the server's.
    """

    id: str
    name: str
    role: str
    user: str | None
    agents: list[str]
    tools: list[str]
    requester: str | None
    per_minute: int | None
    pending: int | None
    created_by: str
    created_at: str
    used_at: str | None
    expires_at: str | None
    revoked_at: str | None
    rotated_from: str | None


class CreatedKey(KeyInfo):
    """`key` is shown here and nowhere else."""

    key: str


class KeyList(BaseModel):
    items: list[KeyInfo]
    next: str | None = None


@router.get("/api/me/keys", responses=documented_errors(), **require_roles(VIEWERS))
async def list_my_keys(state: StateDep, principal: PrincipalDep) -> KeyList:
    """Your own keys."""
    return KeyList(items=[_key_info(key) for key in await _my_keys(state, principal)])


@router.post("/api/me/keys", responses=documented_errors(409), status_code=201, **require_recent_sign_in(VIEWERS))
async def make_my_key(body: OwnKeyBody, state: StateDep, principal: PrincipalDep) -> CreatedKey:
    """Make a key of your own, with at most your own role. It ends when your password changes."""
    role = body.role or principal.role
    if lesser_role(role, principal.role) != role:
        raise Forbidden(f"You are {principal.role} here, so that a key of yours cannot be for more.")
    made = await traced_accounts(state, principal).create_key(
        principal.workspace,
        body.name,
        role,
        principal.name,
        principal.name,
        lifetime=_parse_lifetime(body.expires_in),
        until=principal.expires_at,
    )
    return _created_key(*made)


@router.post(
    "/api/me/keys/{key_id}/rotate",
    responses=documented_errors(404, 409),
    status_code=201,
    **require_recent_sign_in(VIEWERS),
)
async def rotate_my_key(
    key_id: str, state: StateDep, principal: PrincipalDep, body: RotateKeyBody | None = None
) -> CreatedKey:
    """Rotate one of your own keys: a new one replaces it, and the old one ends after the overlap.

    With a key, only keys of at most its role; the new one expires with that key at the latest.
    """
    await _require_own_key(state, principal, key_id)
    return await _rotate(state, principal, key_id, body or RotateKeyBody(), principal.expires_at)


@router.delete("/api/me/keys/{key_id}", responses=documented_errors(404), **require_roles(VIEWERS))
async def revoke_my_key(key_id: str, state: StateDep, principal: PrincipalDep) -> KeyInfo:
    """Revoke one of your own keys, at once and for good. With a key, only keys of at most its role."""
    await _require_own_key(state, principal, key_id)
    return _key_info(await traced_accounts(state, principal).revoke_key(principal.workspace, key_id, principal.name))


@router.get("/api/keys", responses=documented_errors(), **require_roles(ADMINS))
async def list_keys(state: StateDep, principal: PrincipalDep) -> KeyList:
    """The newest 1,000 keys of the workspace, including revoked ones."""
    return KeyList(items=[_key_info(key) for key in await state.accounts.keys(principal.workspace)])


@router.post("/api/keys", responses=documented_errors(409), status_code=201, **require_recent_sign_in(ADMINS))
async def make_key(body: KeyBody, state: StateDep, principal: PrincipalDep) -> CreatedKey:
    """Make a key for an agent's program, or for a person."""
    bindings = KeyBindings(tuple(body.agents), tuple(body.tools), body.requester, body.per_minute, body.pending)
    made = await traced_accounts(state, principal).create_key(
        principal.workspace,
        body.name,
        body.role,
        principal.name,
        user=body.user,
        bindings=bindings,
        lifetime=_parse_lifetime(body.expires_in),
    )
    await state.workspaces.refresh(principal.workspace)
    return _created_key(*made)


@router.post(
    "/api/keys/{key_id}/rotate",
    responses=documented_errors(404, 409),
    status_code=201,
    **require_recent_sign_in(ADMINS),
)
async def rotate_key(
    key_id: str, state: StateDep, principal: PrincipalDep, body: RotateKeyBody | None = None
) -> CreatedKey:
    """Rotate a key: a new one with the same bindings replaces it, and the old one ends after the overlap."""
    return await _rotate(state, principal, key_id, body or RotateKeyBody())


@router.delete("/api/keys/{key_id}", responses=documented_errors(404), **require_roles(ADMINS))
async def revoke_key(key_id: str, state: StateDep, principal: PrincipalDep) -> KeyInfo:
    """Revoke a key, at once and for good."""
    return _key_info(await traced_accounts(state, principal).revoke_key(principal.workspace, key_id, principal.name))


async def _rotate(
    state: ServerState, principal: Principal, key_id: str, body: RotateKeyBody, until: int | None = None
) -> CreatedKey:
    overlap, lasts = parse_duration(body.overlap), _parse_lifetime(body.expires_in)
    return _created_key(
        *await traced_accounts(state, principal).rotate_key(
            principal.workspace, key_id, principal.name, overlap, lasts, until
        )
    )


async def _require_own_key(state: ServerState, principal: Principal, key_id: str) -> None:
    found = next((key for key in await _my_keys(state, principal) if key.id == key_id), None)
    if found is None:
        raise NotFound("You have no key with this id.", key_id=key_id)
    check_own_key(principal, found)


async def _my_keys(state: ServerState, principal: Principal) -> list[ApiKey]:
    return [
        key
        for key in await state.accounts.keys(principal.workspace)
        if key.person == principal.name and key.role != AGENT
    ]


def _parse_lifetime(text: str) -> int | None:
    if not text:
        return None
    return NEVER_EXPIRES if text == "never" else parse_duration(text)


def _created_key(key: ApiKey, secret: str) -> CreatedKey:
    return CreatedKey(**_key_info(key).model_dump(), key=secret)


def _key_info(key: ApiKey) -> KeyInfo:
    return KeyInfo(
        id=key.id,
        name=key.name,
        role=key.role,
        user=key.person or None,
        agents=list(key.agents),
        tools=list(key.tools),
        requester=key.requester or None,
        per_minute=key.per_minute,
        pending=key.pending,
        created_by=key.created_by,
        created_at=rfc3339(key.created_at),
        used_at=optional_rfc3339(key.used_at),
        expires_at=optional_rfc3339(key.expires_at),
        revoked_at=optional_rfc3339(key.revoked_at),
        rotated_from=key.rotated_from or None,
    )

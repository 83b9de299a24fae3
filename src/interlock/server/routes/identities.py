"""Who somebody elsewhere is here: said by the person, with a link that the other side gave to nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from interlock.core.errors import Forbidden, NotFound
from interlock.core.identity import MAX_TOKEN, Principal, check_full_rights
from interlock.notify.status import identity_id, identity_json
from interlock.runtime.durations import rfc3339
from interlock.server.dependencies import (
    ADMINS,
    VIEWERS,
    PrincipalDep,
    StateDep,
    documented_errors,
    require_recent_sign_in,
    require_roles,
)
from interlock.server.http import RequestBody
from interlock.server.state import ServerState
from interlock.storage.tables.deliveries import ChannelIdentity

router = APIRouter(tags=["people and keys"])


class IdentityLinkBody(RequestBody):
    """`link` is what stands behind `link=` in the address that the channel gave."""

    link: Annotated[str, Field(max_length=MAX_TOKEN)]


class IdentityInfo(BaseModel):
    """`outside` is what the channel calls them by."""

    id: str
    channel: str
    outside: str
    user: str
    at: str


class IdentityList(BaseModel):
    items: list[IdentityInfo]
    next: str | None = None


class IdentityLinkInfo(BaseModel):
    """What a link would say; `user` is who is known as that already, if anybody is."""

    channel: str
    kind: str
    outside: str
    user: str | None
    expires_at: str


@router.get("/api/me/identities", responses=documented_errors(), **require_roles(VIEWERS))
async def list_my_identities(site: StateDep, who: PrincipalDep) -> IdentityList:
    """Accounts elsewhere with which one can answer as oneself."""
    return IdentityList(items=[_info(each) for each in await _mine(site, who)])


@router.post("/api/me/identities/look", responses=documented_errors(404), **require_roles(VIEWERS))
async def inspect_identity_link(body: IdentityLinkBody, site: StateDep, who: PrincipalDep) -> IdentityLinkInfo:
    """Whom a link is about. Binds nothing."""
    claim = await site.reach.of(who.workspace).claim(body.link)
    known = await site.store.deliveries.identity(who.workspace, claim.channel, claim.outside)
    kind = site.settings.of(who.workspace).channels[claim.channel].kind
    expires_at = rfc3339(claim.expires_at)
    return IdentityLinkInfo(
        channel=claim.channel, kind=kind, outside=claim.outside, user=known or None, expires_at=expires_at
    )


@router.post(
    "/api/me/identities", responses=documented_errors(404, 409), status_code=201, **require_recent_sign_in(VIEWERS)
)
async def link_my_identity(body: IdentityLinkBody, site: StateDep, who: PrincipalDep) -> IdentityInfo:
    """Says that this is oneself there: from then on, what is decided through that account counts as one's own."""
    if who.via != "web":
        raise Forbidden("A key cannot say who you are elsewhere. Sign in and open the link.")
    claim = await site.reach.of(who.workspace).claim(body.link)
    await site.store.deliveries.bind(who.workspace, claim.channel, claim.outside, who.name, who.name)
    return next(_info(each) for each in await _mine(site, who) if each[:2] == claim[:2])


@router.delete(
    "/api/me/identities/{identity_id}", responses=documented_errors(404), status_code=204, **require_roles(VIEWERS)
)
async def unlink_my_identity(identity_id: str, site: StateDep, who: PrincipalDep) -> None:
    """From then on, that account elsewhere is nobody here. A key that is for less than its person cannot."""
    check_full_rights(who)
    await _unlink(site, who, identity_id, await _mine(site, who))


@router.get("/api/identities", responses=documented_errors(), **require_roles(ADMINS))
async def list_identities(site: StateDep, who: PrincipalDep) -> IdentityList:
    """Everybody's accounts elsewhere; at most 10,000."""
    return IdentityList(items=[_info(each) for each in await site.store.deliveries.identities(who.workspace)])


@router.delete(
    "/api/identities/{identity_id}", responses=documented_errors(404), status_code=204, **require_roles(ADMINS)
)
async def unlink_identity(identity_id: str, site: StateDep, who: PrincipalDep) -> None:
    """From then on, that account elsewhere is nobody here."""
    await _unlink(site, who, identity_id, await site.store.deliveries.identities(who.workspace))


async def _unlink(site: ServerState, who: Principal, wanted: str, known: Sequence[ChannelIdentity]) -> None:
    found = next((each for each in known if identity_id(each) == wanted), None)
    if found is None:
        raise NotFound("There is no account elsewhere with this id.", identity_id=wanted)
    await site.store.deliveries.unbind(who.workspace, found.channel, found.outside, who.name)


async def _mine(site: ServerState, who: Principal) -> list[ChannelIdentity]:
    return [each for each in await site.store.deliveries.identities(who.workspace) if each.person == who.name]


def _info(identity: ChannelIdentity) -> IdentityInfo:
    return IdentityInfo.model_validate(identity_json(identity))

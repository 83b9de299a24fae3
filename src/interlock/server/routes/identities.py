"""Who somebody elsewhere is here: said by the person, with a link that the other side gave to nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from interlock.core.errors import Forbidden, NotFound
from interlock.core.identity import MAX_TOKEN, Principal, check_whole
from interlock.notify.status import identity_id, identity_json
from interlock.runtime.durations import rfc3339
from interlock.server.dependencies import ADMINS, LOOKERS, Caller, Here, fails, may, recently
from interlock.server.http import Body
from interlock.server.state import Site
from interlock.storage.tables.deliveries import Identity

router = APIRouter(tags=["people and keys"])


class Binding(Body):
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


class Claimed(BaseModel):
    """What a link would say; `user` is who is known as that already, if anybody is."""

    channel: str
    kind: str
    outside: str
    user: str | None
    expires_at: str


@router.get("/api/me/identities", responses=fails(), **may(LOOKERS))
async def list_my_identities(site: Here, who: Caller) -> IdentityList:
    """Accounts elsewhere with which one can answer as oneself."""
    return IdentityList(items=[_info(each) for each in await _mine(site, who)])


@router.post("/api/me/identities/look", responses=fails(404), **may(LOOKERS))
async def look_at_binding(body: Binding, site: Here, who: Caller) -> Claimed:
    """Whom a link is about. Binds nothing."""
    claim = await site.reach.of(who.workspace).claim(body.link)
    known = await site.store.deliveries.identity(who.workspace, claim.channel, claim.outside)
    kind = site.settings.of(who.workspace).channels[claim.channel].kind
    expires_at = rfc3339(claim.expires_at)
    return Claimed(channel=claim.channel, kind=kind, outside=claim.outside, user=known or None, expires_at=expires_at)


@router.post("/api/me/identities", responses=fails(404, 409), status_code=201, **recently(LOOKERS))
async def bind_me(body: Binding, site: Here, who: Caller) -> IdentityInfo:
    """Says that this is oneself there: from then on, what is decided through that account counts as one's own."""
    if who.via != "web":
        raise Forbidden("A key cannot say who you are elsewhere. Sign in and open the link.")
    claim = await site.reach.of(who.workspace).claim(body.link)
    await site.store.deliveries.bind(who.workspace, claim.channel, claim.outside, who.name, who.name)
    return next(_info(each) for each in await _mine(site, who) if each[:2] == claim[:2])


@router.delete("/api/me/identities/{identity_id}", responses=fails(404), status_code=204, **may(LOOKERS))
async def unbind_me(identity_id: str, site: Here, who: Caller) -> None:
    """From then on, that account elsewhere is nobody here. A key that is for less than its person cannot."""
    check_whole(who)
    await _unbind(site, who, identity_id, await _mine(site, who))


@router.get("/api/identities", responses=fails(), **may(ADMINS))
async def list_identities(site: Here, who: Caller) -> IdentityList:
    """Everybody's accounts elsewhere; at most 10,000."""
    return IdentityList(items=[_info(each) for each in await site.store.deliveries.identities(who.workspace)])


@router.delete("/api/identities/{identity_id}", responses=fails(404), status_code=204, **may(ADMINS))
async def unbind(identity_id: str, site: Here, who: Caller) -> None:
    """From then on, that account elsewhere is nobody here."""
    await _unbind(site, who, identity_id, await site.store.deliveries.identities(who.workspace))


async def _unbind(site: Site, who: Principal, wanted: str, known: Sequence[Identity]) -> None:
    found = next((each for each in known if identity_id(each) == wanted), None)
    if found is None:
        raise NotFound("There is no account elsewhere with this id.", identity_id=wanted)
    await site.store.deliveries.unbind(who.workspace, found.channel, found.outside, who.name)


async def _mine(site: Site, who: Principal) -> list[Identity]:
    return [each for each in await site.store.deliveries.identities(who.workspace) if each.person == who.name]


def _info(identity: Identity) -> IdentityInfo:
    return IdentityInfo.model_validate(identity_json(identity))

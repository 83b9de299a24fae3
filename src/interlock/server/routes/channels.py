"""The ways to people: which there are, whether they work, and what comes back through them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from interlock.core.identity import ADMIN, Principal
from interlock.notify.channel import Callback
from interlock.notify.service import FrontDesk, Reach
from interlock.notify.status import state_json, states
from interlock.server.dependencies import ADMINS, LOOKERS, Caller, Given, Here, fails, may
from interlock.server.http import Asked
from interlock.server.state import Site

router = APIRouter(tags=["channels"])

REPLIED: dict[str, Any] = {
    "description": "What the other service wants to hear.",
    "content": {"application/json": {"schema": {"description": "In the words of that service."}}},
}


class Off(BaseModel):
    """Since when nothing is sent, because the other side said so."""

    since: str
    why: str


class ChannelInfo(BaseModel):
    """`priorities` and `teams` are those whose requests are told there; `is_default` if it is for all others.

    `personal` reaches people one by one; people can answer through one that `answers`. What waits (`due`) and what was
    given up (`parked`) is counted up to 1,000; `due_since` is when the oldest that is late had something to say.
    `error` is what went wrong with one of them, for admins.
    """

    name: str
    kind: str
    is_default: bool
    priorities: list[str]
    teams: list[str]
    personal: bool
    answers: bool
    off: Off | None
    due: int
    due_since: str | None
    parked: int
    last_sent_at: str | None
    error: str | None


class ChannelList(BaseModel):
    items: list[ChannelInfo]
    next: str | None = None


class Tested(BaseModel):
    """Where a test went: to a `person`, or to the channel's own place."""

    channel: str
    person: str


@router.get("/api/channels", responses=fails(), **may(LOOKERS))
async def list_channels(site: Here, who: Caller) -> ChannelList:
    """The ways to people that are configured and how each stands, without addresses and secrets."""
    return ChannelList(items=await _channels(site, who))


@router.post("/api/channels/{name}/test", responses=fails(404, 502), **may(ADMINS))
async def test_channel(name: str, site: Here, who: Caller) -> Tested:
    """Sends a message through a channel now; to whoever asks, if it reaches people one by one."""
    message = await site.reach.test(who.workspace, name, who.name)
    return Tested(channel=name, person=message.to.person)


@router.post("/api/channels/{name}/on", responses=fails(404), **may(ADMINS))
async def switch_on(name: str, site: Here, who: Caller) -> ChannelInfo:
    """Switches a channel on again whose other side wanted nothing more. One that is on stays so."""
    site.reach.of(who.workspace).channel(name)
    await site.store.deliveries.switch_on(who.workspace, name, who.name)
    return next(each for each in await _channels(site, who) if each.name == name)


@router.post(
    "/channels/{name}/callback", responses={200: REPLIED, **fails(404, 409, 410, 422)}, response_class=Response
)
async def callback(name: str, site: Here, asked: Given) -> Response:
    """What another service passes on from a person. The channel proves that it is that service, and who that is.

    The channel is one of the default workspace; others have theirs at `/channels/{workspace}/{name}/callback`.
    """
    return await _answered(site.reach, name, asked)


@router.post(
    "/channels/{workspace}/{name}/callback",
    responses={200: REPLIED, **fails(404, 409, 410, 422)},
    response_class=Response,
)
async def callback_of_workspace(workspace: str, name: str, site: Here, asked: Given) -> Response:
    """The same for a channel of any workspace: its own secret alone is compared, and it decides in its own alone."""
    return await _answered(site.reach.of(workspace), name, asked)


async def _answered(reach: Reach, name: str, asked: Asked) -> Response:
    headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in asked.headers.items()}
    reply = await reach.answering(name).answer(Callback(headers, asked.body), FrontDesk(reach, name))
    return Response(reply.body, reply.status, media_type=reply.kind)


async def _channels(site: Site, who: Principal) -> list[ChannelInfo]:
    found = await states(site.reach.of(who.workspace))
    return [ChannelInfo.model_validate(state_json(each, errors=who.role == ADMIN)) for each in found]

"""Channels: the configured ones and their state, test messages, webhooks with the answers of people, deliveries."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from interlock.core.errors import InvalidRequest
from interlock.core.identity import ADMIN, Principal
from interlock.core.notify.delivery import Delivery, Reason, Status
from interlock.notify.channel import InboundRequest
from interlock.notify.service import InboundHandler, NotificationService
from interlock.notify.status import channel_state_json, delivery_json, read_channel_states, requeue_delivery
from interlock.server.dependencies import (
    ADMINS,
    VIEWERS,
    PrincipalDep,
    RequestDep,
    StateDep,
    documented_errors,
    require_roles,
)
from interlock.server.http import HttpRequest
from interlock.server.state import ServerState
from interlock.storage.engine.queries import MAX_LIMIT
from interlock.storage.tables.deliveries import FROM_NEWEST, DeliveryCursor

router = APIRouter(tags=["channels"])

CALLBACK_RESPONSE: dict[str, Any] = {
    "description": "The response that the other service expects.",
    "content": {"application/json": {"schema": {"description": "Defined by that service."}}},
}


class ChannelDisabled(BaseModel):
    """A channel that was disabled because the other service refused."""

    since: str
    why: str


class ChannelInfo(BaseModel):
    """`priorities` and `teams` are those whose requests are sent there; `is_default` if it is for all others.

    A `personal` channel reaches people individually; people can answer through one that `answers`. Messages that are
    `due`, and those that were given up (`parked`), are counted up to 1,000; `due_since` is the time since which the
    oldest late one is due. `error` is the error of one of them, for admins.
    """

    name: str
    kind: str
    is_default: bool
    priorities: list[str]
    teams: list[str]
    personal: bool
    answers: bool
    off: ChannelDisabled | None
    due: int
    due_since: str | None
    parked: int
    last_sent_at: str | None
    error: str | None


class ChannelList(BaseModel):
    items: list[ChannelInfo]
    next: str | None = None


class ChannelTest(BaseModel):
    """The recipient of a test message: a `person`, or the channel's own destination."""

    channel: str
    person: str


@router.get("/api/channels", responses=documented_errors(), **require_roles(VIEWERS))
async def list_channels(state: StateDep, principal: PrincipalDep) -> ChannelList:
    """The configured channels and the state of each, without addresses and secrets."""
    return ChannelList(items=await _channels(state, principal))


@router.post("/api/channels/{name}/test", responses=documented_errors(404, 502), **require_roles(ADMINS))
async def test_channel(name: str, state: StateDep, principal: PrincipalDep) -> ChannelTest:
    """Send a test message through a channel now; to the caller, if it reaches people individually."""
    message = await state.notifications.send_test(principal.workspace, name, principal.name)
    return ChannelTest(channel=name, person=message.to.person)


@router.post("/api/channels/{name}/enable", responses=documented_errors(404), **require_roles(ADMINS))
async def enable_channel(name: str, state: StateDep, principal: PrincipalDep) -> ChannelInfo:
    """Enable a channel that was switched off because the other service refused. One that is on stays on."""
    state.notifications.for_workspace(principal.workspace).channel(name)
    await state.store.deliveries.enable_channel(principal.workspace, name, principal.name)
    return next(each for each in await _channels(state, principal) if each.name == name)


@router.post(
    "/channels/{name}/callback",
    responses={200: CALLBACK_RESPONSE, **documented_errors(404, 409, 410, 422)},
    response_class=Response,
)
async def callback(name: str, state: StateDep, request: RequestDep) -> Response:
    """Receive a person's answer from another service (webhook). The channel authenticates the service and the person.

    The channel is one of the default workspace; others have theirs at `/channels/{workspace}/{name}/callback`.
    """
    return await _handle_callback(state.notifications, name, request)


@router.post(
    "/channels/{workspace}/{name}/callback",
    responses={200: CALLBACK_RESPONSE, **documented_errors(404, 409, 410, 422)},
    response_class=Response,
)
async def workspace_callback(workspace: str, name: str, state: StateDep, request: RequestDep) -> Response:
    """Receive a webhook for a channel of any workspace.

    Only the channel's own secret is compared, and it can decide only in its own workspace.
    """
    return await _handle_callback(state.notifications.for_workspace(workspace), name, request)


async def _handle_callback(notifications: NotificationService, name: str, request: HttpRequest) -> Response:
    headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in request.headers.items()}
    reply = await notifications.get_inbound_channel(name).answer(
        InboundRequest(headers, request.body), InboundHandler(notifications, name)
    )
    return Response(reply.body, reply.status, media_type=reply.content_type)


async def _channels(state: ServerState, principal: Principal) -> list[ChannelInfo]:
    found = await read_channel_states(state.notifications.for_workspace(principal.workspace))
    return [ChannelInfo.model_validate(channel_state_json(each, errors=principal.role == ADMIN)) for each in found]


class DeliveryInfo(BaseModel):
    """One message through one channel, without its text: to a `person`, a `place`, or the channel's own destination.

    `approval_id` is null if the message is about the number of pending approvals. `sent_at` is the time of the last
    notification, `due_at` that of the next attempt. `error` is for admins.
    """

    id: str
    approval_id: str | None
    channel: str
    person: str | None
    place: str | None
    reason: Reason
    priority: str
    status: Annotated[Status, Field(description="`grouped` is part of a summary; `dropped` is not sent any more.")]
    attempts: int
    created_at: str
    sent_at: str | None
    due_at: str | None
    error: str | None


class DeliveryList(BaseModel):
    items: list[DeliveryInfo]
    next: str | None = None


class DeliveriesQuery(BaseModel):
    """With a `channel`, a page may be short although there is more: then it has `next`."""

    status: Status = "parked"
    channel: Annotated[str, Field(max_length=100)] = ""
    cursor: Annotated[str, Field(max_length=200)] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 100


@router.get("/api/deliveries", responses=documented_errors(), **require_roles(VIEWERS))
async def list_deliveries(
    state: StateDep, principal: PrincipalDep, query: Annotated[DeliveriesQuery, Query()]
) -> DeliveryList:
    """Deliveries by status, the newest first; without a status, those that were given up (dead letters)."""
    place = _parse_cursor(query.cursor)
    page = await state.store.deliveries.page(principal.workspace, query.status, query.channel, place, query.limit)
    following = None if page.next is None else f"{page.next[0]}.{page.next[1]}"
    return DeliveryList(items=[_info(each, principal) for each in page.items], next=following)


@router.get("/api/approvals/{approval_id}/deliveries", responses=documented_errors(404), **require_roles(VIEWERS))
async def list_approval_deliveries(approval_id: str, state: StateDep, principal: PrincipalDep) -> DeliveryList:
    """The deliveries of an approval; at most 1,000. They are deleted together with its content."""
    await state.store.get(principal.workspace, approval_id)
    found = await state.store.deliveries.for_approval(principal.workspace, approval_id)
    return DeliveryList(items=[_info(each, principal) for each in found])


@router.post("/api/deliveries/{delivery_id}/retry", responses=documented_errors(404, 409), **require_roles(ADMINS))
async def retry_delivery_now(delivery_id: str, state: StateDep, principal: PrincipalDep) -> DeliveryInfo:
    """Retry a delivery now, if it is due later or was given up."""
    return _info(
        await requeue_delivery(state.notifications.for_workspace(principal.workspace), delivery_id, principal.name),
        principal,
    )


def _info(delivery: Delivery, principal: Principal) -> DeliveryInfo:
    return DeliveryInfo.model_validate(delivery_json(delivery, errors=principal.role == ADMIN))


def _parse_cursor(cursor: str) -> DeliveryCursor:
    if not cursor:
        return FROM_NEWEST
    at, _, delivery_id = cursor.partition(".")
    if not (at.isascii() and at.isdigit() and len(at) < 16 and delivery_id):
        raise InvalidRequest("The cursor is what the last page gave as next.")
    return int(at), delivery_id

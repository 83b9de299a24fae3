"""Deliveries of messages to people: list them with their state, and retry them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from interlock.core.errors import InvalidRequest
from interlock.core.identity import ADMIN, Principal
from interlock.core.notify.delivery import Delivery, Reason, Status
from interlock.notify.status import delivery_json, requeue_delivery
from interlock.server.dependencies import ADMINS, VIEWERS, PrincipalDep, StateDep, documented_errors, require_roles
from interlock.storage.engine.queries import MAX_LIMIT
from interlock.storage.tables.deliveries import FROM_NEWEST, DeliveryCursor

router = APIRouter(tags=["channels"])


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

"""How a delivery lies in its row."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.delivery import Delivery, Way
from interlock.core.errors import NotFound
from interlock.stores.rows import Row
from interlock.stores.transaction import Transaction


def save(tx: Transaction, d: Delivery) -> None:
    tx.write(
        "write_delivery",
        *(
            d.workspace,
            d.id,
            d.approval_id,
            *d.way,
            d.reason,
            d.priority,
            d.status,
            d.wanted,
            d.said,
            d.nudge,
            d.nudged,
        ),
        *(d.ref, d.attempts, d.fence, d.runner, d.error, d.created_at, d.since, d.due_at, d.sent_at, d.spent_at),
    )


def one(found: Sequence[Row], delivery_id: str) -> Delivery:
    if not found:
        raise NotFound("There is no delivery with this id.", delivery_id=delivery_id)
    return delivery_of(found[0])


def delivery_of(row: Row) -> Delivery:
    workspace, delivery_id, approval_id, channel, place, person, reason, priority, status, wanted, said = row[:11]
    nudge, nudged, ref, attempts, fence, runner, error, created_at, since, due_at, sent_at, spent_at = row[11:]
    return Delivery(
        workspace,
        delivery_id,
        approval_id,
        Way(channel, place, person),
        reason,
        priority,
        status,
        wanted,
        created_at,
        since,
        due_at,
        said,
        nudge,
        nudged,
        ref,
        attempts,
        fence,
        runner,
        sent_at,
        error,
        spent_at,
    )

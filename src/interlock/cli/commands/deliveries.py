"""`interlock deliveries`: notifications and their delivery status, with retries of failed ones (dead letters)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from interlock.cli.cards import check_id_length
from interlock.cli.context import CommandContext, command, open_database, open_notifications
from interlock.cli.output import local_time, print_json, say, short_id, shorten, show, table
from interlock.core.card import escape_invisible
from interlock.core.errors import NotFound
from interlock.core.notify.delivery import Delivery
from interlock.notify.service import NotificationService
from interlock.notify.status import delivery_json, requeue_delivery
from interlock.storage.tables.deliveries import FROM_NEWEST

app = typer.Typer()

MAX_LISTED = 500


class DeliveryStatus(StrEnum):
    PARKED = "parked"
    DUE = "due"
    SENDING = "sending"
    SENT = "sent"
    DROPPED = "dropped"
    GROUPED = "grouped"


@command(app, open_database, "list")
async def list_deliveries(
    context: CommandContext,
    status: Annotated[DeliveryStatus, typer.Option(help="`parked` are dead letters.")] = DeliveryStatus.PARKED,
    channel: Annotated[str, typer.Option(metavar="NAME", help="Only deliveries through this channel.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=MAX_LISTED, help="Maximum number of rows.")] = 50,
) -> None:
    """List deliveries by status, newest first; dead letters by default."""
    page = await context.services.store.deliveries.page(context.workspace, status.value, channel, FROM_NEWEST, limit)
    if context.json:
        following = None if page.next is None else f"{page.next[0]}.{page.next[1]}"
        print_json({"items": [delivery_json(each, errors=True) for each in page.items], "next": following})
    elif page.items:
        heads = ("ID", "CHANNEL", "TO", "ABOUT", "REASON", "SINCE", "TRIES", "ERROR")
        show(table(heads, map(_row, page.items), "ERROR", spare=("REASON", "TRIES")))
        if page.next is not None:
            say(f"More results: --limit {MAX_LISTED}, or the web app.")
    else:
        say(f"No deliveries are {status.value}.")


@command(app, open_notifications)
async def retry(
    opened: tuple[CommandContext, NotificationService],
    delivery_id: Annotated[
        str,
        typer.Argument(metavar="ID", show_default=False, help="Id, or at least 4 characters of its beginning or end."),
    ],
) -> None:
    """Retry a dead letter, or a due delivery at once. A running server or worker sends it."""
    context, notifications = opened
    whole = await _find_delivery_id(context, delivery_id)
    delivery = await requeue_delivery(notifications, whole, (await context.resolve_reviewer("")).name)
    if context.json:
        print_json(delivery_json(delivery, errors=True))
    else:
        say(f"Queued for retry through {delivery.target.channel}; a running server or worker sends it.")


async def _find_delivery_id(context: CommandContext, text: str) -> str:
    """Complete a partial id, searching the newest deliveries that can be retried."""
    check_id_length(text)
    deliveries = context.services.store.deliveries
    try:
        return (await deliveries.get(context.workspace, text)).id
    except NotFound:
        found = [
            each for status in ("parked", "due") for each in await deliveries.list_deliveries(context.workspace, status)
        ]
    ids = [each.id for each in found if each.id.startswith(text) or each.id.endswith(text)]
    if len(ids) != 1:
        trouble = "matches several deliveries" if ids else "matches no due delivery or dead letter"
        raise NotFound(f"{escape_invisible(text)!r} {trouble}. See: interlock deliveries list", delivery_id=text)
    return ids[0]


def _row(delivery: Delivery) -> tuple[str, ...]:
    to = delivery.target.person or delivery.target.destination
    about = short_id(delivery.approval_id) if delivery.approval_id else ""
    what = (
        delivery.reason,
        local_time(delivery.pending_since),
        str(delivery.attempts),
        shorten(escape_invisible(delivery.error)),
    )
    return (short_id(delivery.id), delivery.target.channel, escape_invisible(to), escape_invisible(about), *what)

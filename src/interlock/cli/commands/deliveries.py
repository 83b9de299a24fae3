"""`interlock deliveries`: messages to people, and what became of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from interlock.cli.commands.channels import reaching
from interlock.cli.context import Desk, command, kept
from interlock.cli.output import clock_time, print_json, say, short, short_id, show, table
from interlock.core.card import visible
from interlock.core.errors import InvalidRequest, NotFound
from interlock.core.notify.delivery import Delivery
from interlock.notify.service import Reach
from interlock.notify.status import delivery_json, send_again
from interlock.storage.tables.deliveries import NEWEST

app = typer.Typer()

LEAST = 4  # characters of an id
MOST = 500


class Status(StrEnum):
    PARKED = "parked"
    DUE = "due"
    SENDING = "sending"
    SENT = "sent"
    DROPPED = "dropped"
    GROUPED = "grouped"


@command(app, kept, "list")
async def list_deliveries(
    desk: Desk,
    status: Annotated[Status, typer.Option(help="Parked is what was given up.")] = Status.PARKED,
    channel: Annotated[str, typer.Option(metavar="NAME", help="Only through this channel.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="At most so many.")] = 50,
) -> None:
    """Messages to people by how they stand, the newest first; those that were given up, unless told otherwise."""
    page = await desk.parts.store.deliveries.page(desk.workspace, status.value, channel, NEWEST, limit)
    if desk.json:
        following = None if page.next is None else f"{page.next[0]}.{page.next[1]}"
        print_json({"items": [delivery_json(each, errors=True) for each in page.items], "next": following})
    elif page.items:
        heads = ("ID", "CHANNEL", "TO", "ABOUT", "REASON", "SINCE", "TRIES", "ERROR")
        show(table(heads, map(_row, page.items), "ERROR", spare=("REASON", "TRIES")))
        if page.next is not None:
            say(f"There is more: --limit {MOST}, or the page.")
    else:
        say(f"No message is {status.value}.")


@command(app, reaching)
async def again(
    at: tuple[Desk, Reach],
    delivery_id: Annotated[
        str, typer.Argument(metavar="ID", show_default=False, help="The id; its beginning or end, if 4 or more.")
    ],
) -> None:
    """Try at once what waits or was given up. A running server or worker sends it."""
    desk, reach = at
    whole = await _id_of(desk, delivery_id)
    delivery = await send_again(reach, whole, (await desk.person("")).name)
    if desk.json:
        print_json(delivery_json(delivery, errors=True))
    else:
        say(f"It is sent again through {delivery.way.channel}, by the server or worker that runs.")


async def _id_of(desk: Desk, text: str) -> str:
    """A part of an id is looked for among the newest of what can be sent again."""
    if len(text) < LEAST:
        raise InvalidRequest(f"{text!r} is too short: give at least {LEAST} characters of the id.")
    deliveries = desk.parts.store.deliveries
    try:
        return (await deliveries.get(desk.workspace, text)).id
    except NotFound:
        found = [each for status in ("parked", "due") for each in await deliveries.listed(desk.workspace, status)]
    ids = [each.id for each in found if each.id.startswith(text) or each.id.endswith(text)]
    if len(ids) != 1:
        trouble = "could be several" if ids else "is none that waits or was given up"
        raise NotFound(f"{visible(text)!r} {trouble}. See: interlock deliveries list", delivery_id=text)
    return ids[0]


def _row(delivery: Delivery) -> tuple[str, ...]:
    to = delivery.way.person or delivery.way.place
    about = short_id(delivery.approval_id) if delivery.approval_id else ""
    what = (delivery.reason, clock_time(delivery.since), str(delivery.attempts), short(visible(delivery.error)))
    return (short_id(delivery.id), delivery.way.channel, visible(to), visible(about), *what)

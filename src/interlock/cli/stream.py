"""`approvals watch` where nobody looks: one line for each event, as text or as JSON."""

from __future__ import annotations

import asyncio
import sys

from interlock.cli.board import Sweeping
from interlock.cli.cards import event_line
from interlock.cli.output import print_json_line, printable, short, short_id
from interlock.cli.shared import Desk
from interlock.core.card import visible
from interlock.core.errors import Error, NotFound
from interlock.core.event import Stored
from interlock.core.ledger import Entry
from interlock.core.ports import Query
from interlock.presenters.approval import entry_json, item_json, sentence_of
from interlock.runtime.durations import rfc3339


async def stream(desk: Desk) -> None:
    """Begins with what waits already; ends when it is interrupted."""
    store, sweeping, said = desk.parts.store, Sweeping(desk, lambda: None), ""
    async with store.watch(desk.workspace) as watch:
        last = (await store.head(desk.workspace)).seq
        await _waiting(desk)
        while True:
            trouble = sweeping.trouble
            try:
                last = await _news(desk, last)
                sweeping.step()
            except Error as error:
                trouble = error.message
            if trouble != said:
                _tell_trouble(trouble)
                said = trouble
            await watch.changed(1.0)
            await asyncio.sleep(0)


async def _waiting(desk: Desk) -> None:
    page = await desk.parts.inbox.list(desk.workspace, Query(("pending",), limit=500))
    for stored in page.items:
        _print_waiting(desk, stored)


async def _news(desk: Desk, after: int) -> int:
    async for entries in desk.parts.store.entries(desk.workspace, after):
        for entry in entries:
            await _print_event(desk, entry)
            after = entry.seq
    return after


def _print_waiting(desk: Desk, stored: Stored) -> None:
    approval, now = stored.approval, desk.now()
    if desk.json:
        head = {"seq": None, "at": rfc3339(now), "kind": "waiting", "approval_id": approval.id}
        print_json_line({**head, "approval": item_json(stored, now)})
    else:
        _line(f"{rfc3339(now)}  {visible(short_id(approval.id)):8}  waiting{_about(stored)}")


async def _print_event(desk: Desk, entry: Entry) -> None:
    stored = await _stored(desk, entry.approval_id)
    if desk.json:
        print_json_line({**entry_json(entry), "approval": item_json(stored, desk.now()) if stored else None})
    else:
        _line(event_line(entry) + (_about(stored) if stored else ""))


async def _stored(desk: Desk, approval_id: str) -> Stored | None:
    try:
        return await desk.parts.store.get(desk.workspace, approval_id) if approval_id else None
    except NotFound:
        return None


def _about(stored: Stored) -> str:
    return f"  {visible(stored.approval.subject.tool)}: {short(sentence_of(stored))}"


def _line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _tell_trouble(trouble: str) -> None:
    sys.stderr.write(f"{printable(trouble) or 'The database answers again.'}\n")
    sys.stderr.flush()

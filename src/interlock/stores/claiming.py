"""Which deliveries go now: the urgent ones first, no more for one person than they can read, and of a flood one."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from interlock.core import delivery as deliveries
from interlock.core.call import PRIORITIES
from interlock.core.delivery import MINUTE, Delivery, Way, by_way
from interlock.core.event import TIME, Event
from interlock.stores.delivery_rows import delivery_of, save
from interlock.stores.transaction import Transaction
from interlock.stores.writer import Work

WINDOW = 200  # due ones of each priority that are looked at
ASKED = ("mark", "", "")  # the rows have to be asked for: what is remembered of approvals does not help
STUBBORN = 3  # what failed lets others go first, up to so often: the channel may be well, and the message not


class Bounds(NamedTuple):
    """`limit` messages at once; `most` a minute for one person or place."""

    limit: int
    most: int


class Taken(NamedTuple):
    """`more`: there are more due than were looked at."""

    deliveries: Sequence[Delivery]
    more: bool


def claim(workspace: str, channel: str, runner: str, bounds: Bounds) -> Work:
    """Of what is due: some go, many become one, and what would be too much waits a minute."""

    def run(tx: Transaction) -> Taken:
        alone(tx, workspace)
        now = tx.moment(workspace).now
        due = _due(tx, workspace, channel, now)
        more = any(sum(each.priority == priority for each in due) >= WINDOW for priority in PRIORITIES)
        go = _paced(tx, due, _lately(tx, workspace, channel, now), bounds.most, now)
        able = [each for each in go if not (more and each.reason == "group")]  # it grows until all have been looked at
        taken = [deliveries.claimed(each, runner, now) for each in sorted(able, key=_turn)[: bounds.limit]]
        for each in taken:
            save(tx, each)
        return Taken(taken, more)

    return Work(run, workspace, (ASKED,), brief=False)


def strand(workspace: str, channel: str, before: int, why: str) -> Work:
    """What was due before that is given up, up to a window of each priority; how many these were."""

    def run(tx: Transaction) -> int:
        alone(tx, workspace)
        found = _due(tx, workspace, channel, before)
        for each in found:
            given_up = deliveries.parked(each, why)
            save(tx, given_up)
            tx.tell(workspace, [delivery_event("delivery_parked", given_up, each)])
        return len(found)

    return Work(run, workspace, (ASKED,), brief=False)


def alone(tx: Transaction, workspace: str) -> None:
    """Each of these steps reads rows that another one of the same batch may have changed."""
    tx.alone(f"deliveries of {workspace}")


def _due(tx: Transaction, workspace: str, channel: str, now: int) -> list[Delivery]:
    values = [value for priority in PRIORITIES for value in (channel, workspace, priority, now, WINDOW)]
    return [delivery_of(row) for row in tx.fetch("due_deliveries", *values)]


def _lately(tx: Transaction, workspace: str, channel: str, now: int) -> dict[Way, int]:
    """How much each has heard within a minute, with what is on its way."""
    found = tx.fetch("told_lately", workspace, channel, now - MINUTE, workspace, channel, now)
    return {Way(channel, place, person): count for place, person, count in found}


def _paced(tx: Transaction, due: Sequence[Delivery], lately: dict[Way, int], most: int, now: int) -> list[Delivery]:
    go: list[Delivery] = []
    for (_, way), mine in by_way(due).items():
        pace = deliveries.paced(mine, lately.get(way, 0), most)
        go += pace.go
        if pace.grouped:
            group = deliveries.group_of(pace.grouped, str(uuid.uuid4()), now)
            save(tx, group)
            go.append(group)
        for each in pace.grouped:
            save(tx, deliveries.grouped(each))
        for each in pace.held:
            save(tx, replace(each, status="due", due_at=now + MINUTE))
    return go


def _turn(delivery: Delivery) -> tuple[int, int, bool, int]:
    return (
        min(delivery.attempts, STUBBORN),
        -PRIORITIES.index(delivery.priority),
        not delivery.is_loud,
        delivery.since,
    )


def delivery_event(kind: str, delivery: Delivery, done: Delivery, actor: str = TIME) -> Event:
    """Where, and whether it was said for the first time; to whom is content, and can be erased."""
    data: dict[str, object] = {"delivery": delivery.id, "channel": delivery.way.channel, "reason": delivery.reason}
    data["what"] = "sent" if not done.said else "reminded" if done.is_loud else "changed"
    to = {"person": delivery.way.person, "place": delivery.way.place, "error": delivery.error}
    return Event(kind, actor, data, delivery.approval_id, {key: text for key, text in to.items() if text} or None)

"""What was told to whom is forgotten with what it was about, and with whom it was told to; on both databases."""

from __future__ import annotations

import pytest

from interlock.app import audit
from interlock.app.bootstrap import AppServices
from interlock.core.decision import Reject
from interlock.core.ledger.erasure import Erasure
from interlock.core.notify.routing import ChannelCapabilities, Routes
from interlock.core.ports import ApprovalQuery, User
from interlock.notify.channel import DeliveryRejected
from tests.contract.test_dispatcher import Set, Told
from tests.places import Place
from tests.support import ADA, BOB, START, Clock, approve, pending

DAY = 86_400_000
MAIL = Routes({"mail": ChannelCapabilities(personal=True)}, "mail")


@pytest.fixture
async def mail(parts: AppServices) -> Set:
    made = Set(parts, MAIL, mail=Told())
    for name in ("ada", "bob"):
        await parts.store.put_user("default", User(name, "admin", email=f"{name}@example.com"), "ada")
    await made.sweep()
    return made


async def faults(parts: AppServices) -> list[str]:
    return [str(fault) for fault in (await audit.verify(parts.store, "default")).violations]


def told(place: Place) -> list[tuple[str, str]]:
    return sorted(place.sql("select person, status from deliveries"))


async def end(parts: AppServices, approval_id: str) -> None:
    """For good: a rejection that nobody can take back."""
    await parts.inbox.decide("default", approval_id, Reject("Not now."), BOB)


async def erase(parts: AppServices, erasure: Erasure) -> None:
    async for _ in parts.inbox.erase("default", erasure, ADA):
        pass


async def test_deliveries_go_with_the_content_of_what_they_were_about(
    mail: Set, parts: AppServices, place: Place, clock: Clock
) -> None:  # R41
    ended = await pending(parts)
    await mail.sweep()
    await end(parts, ended)
    await mail.sweep()
    assert told(place) == [("ada", "sent"), ("bob", "sent")]
    clock.forward(DAY)
    while await parts.store.apply_retention(DAY // 2):
        pass
    assert told(place) == []
    assert await faults(parts) == []


async def test_what_is_told_of_what_still_waits_is_kept(
    mail: Set, parts: AppServices, place: Place, clock: Clock
) -> None:
    await pending(parts)
    await mail.sweep()
    clock.forward(DAY)
    while await parts.store.apply_retention(DAY // 2):
        pass
    assert told(place) == [("ada", "sent"), ("bob", "sent")]


async def test_what_was_given_up_can_be_looked_at_for_thirty_days(
    mail: Set, parts: AppServices, place: Place, clock: Clock
) -> None:  # R41
    approval_id = await pending(parts)
    await mail.sweep()
    mail.channels["mail"].trouble = DeliveryRejected("No.")
    await end(parts, approval_id)
    await mail.sweep()
    clock.forward(29 * DAY)
    while await parts.store.apply_retention(DAY):
        pass
    await parts.worker.sweep()
    assert {status for _, status in told(place)} == {"parked"}
    clock.forward(2 * DAY)
    await parts.worker.sweep()
    assert told(place) == []


async def test_an_erased_person_is_in_no_delivery_and_is_nobody_elsewhere(
    mail: Set, parts: AppServices, place: Place
) -> None:  # R41
    approval_id = await pending(parts)
    await mail.sweep()
    await parts.store.deliveries.bind("default", "mail", "harriet-vane", "bob", "bob")
    await approve(parts, approval_id)
    await mail.sweep()
    await parts.accounts.remove_user("default", "bob", "ada")
    await erase(parts, Erasure("person", "bob"))
    assert told(place) == [("ada", "sent")]
    assert await parts.store.deliveries.identities("default") == []
    contents = repr([bytes(row[0]) for row in place.sql("select content from contents")])
    assert '"person":"ada"' in contents
    assert '"person":"bob"' not in contents
    assert "harriet-vane" not in contents
    assert await faults(parts) == []


async def test_erasing_the_content_of_a_call_tells_nobody_of_it_again(
    mail: Set, parts: AppServices, clock: Clock
) -> None:
    approval_id = await pending(parts)
    await mail.sweep()
    await end(parts, approval_id)
    clock.forward(DAY)
    await mail.sweep()
    said = len(mail.channels["mail"].heard)
    await erase(parts, Erasure("approval", approval_id))
    await mail.sweep()
    assert len(mail.channels["mail"].heard) == said
    assert (await parts.inbox.list("default", ApprovalQuery())).items[0].approval.erasure
    assert parts.clock() > START

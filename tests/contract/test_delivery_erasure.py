"""Erasure of deliveries: with the approval and with the recipient, on both databases."""

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
from tests.databases import Place
from tests.support import ADA, BOB, START, Clock, approve, pending

DAY = 86_400_000
MAIL = Routes({"mail": ChannelCapabilities(personal=True)}, "mail")


@pytest.fixture
async def mail(services: AppServices) -> Set:
    made = Set(services, MAIL, mail=Told())
    for name in ("ada", "bob"):
        await services.store.put_user("default", User(name, "admin", email=f"{name}@example.com"), "ada")
    await made.sweep()
    return made


async def violations(services: AppServices) -> list[str]:
    return [str(fault) for fault in (await audit.verify(services.store, "default")).violations]


def stored_deliveries(place: Place) -> list[tuple[str, str]]:
    return sorted(place.sql("select person, status from deliveries"))


async def reject_finally(services: AppServices, approval_id: str) -> None:
    """For good: a rejection that nobody can take back."""
    await services.inbox.decide("default", approval_id, Reject("Not now."), BOB)


async def erase(services: AppServices, erasure: Erasure) -> None:
    async for _ in services.inbox.erase("default", erasure, ADA):
        pass


async def test_deliveries_go_with_the_content_of_what_they_were_about(
    mail: Set, services: AppServices, place: Place, clock: Clock
) -> None:  # R41
    ended = await pending(services)
    await mail.sweep()
    await reject_finally(services, ended)
    await mail.sweep()
    assert stored_deliveries(place) == [("ada", "sent"), ("bob", "sent")]
    clock.forward(DAY)
    while await services.store.apply_retention(DAY // 2):
        pass
    assert stored_deliveries(place) == []
    assert await violations(services) == []


async def test_deliveries_of_pending_approvals_are_kept(
    mail: Set, services: AppServices, place: Place, clock: Clock
) -> None:
    await pending(services)
    await mail.sweep()
    clock.forward(DAY)
    while await services.store.apply_retention(DAY // 2):
        pass
    assert stored_deliveries(place) == [("ada", "sent"), ("bob", "sent")]


async def test_dead_deliveries_are_kept_for_thirty_days(
    mail: Set, services: AppServices, place: Place, clock: Clock
) -> None:  # R41
    approval_id = await pending(services)
    await mail.sweep()
    mail.channels["mail"].trouble = DeliveryRejected("No.")
    await reject_finally(services, approval_id)
    await mail.sweep()
    clock.forward(29 * DAY)
    while await services.store.apply_retention(DAY):
        pass
    await services.worker.sweep()
    assert {status for _, status in stored_deliveries(place)} == {"parked"}
    clock.forward(2 * DAY)
    await services.worker.sweep()
    assert stored_deliveries(place) == []


async def test_an_erased_person_is_in_no_delivery(mail: Set, services: AppServices, place: Place) -> None:  # R41
    approval_id = await pending(services)
    await mail.sweep()
    await services.store.deliveries.bind("default", "mail", "harriet-vane", "bob", "bob")
    await approve(services, approval_id)
    await mail.sweep()
    await services.accounts.remove_user("default", "bob", "ada")
    await erase(services, Erasure("person", "bob"))
    assert stored_deliveries(place) == [("ada", "sent")]
    assert await services.store.deliveries.identities("default") == []
    contents = repr([bytes(row[0]) for row in place.sql("select content from contents")])
    assert '"person":"ada"' in contents
    assert '"person":"bob"' not in contents
    assert "harriet-vane" not in contents
    assert await violations(services) == []


async def test_erasing_a_call_sends_no_new_message(mail: Set, services: AppServices, clock: Clock) -> None:
    approval_id = await pending(services)
    await mail.sweep()
    await reject_finally(services, approval_id)
    clock.forward(DAY)
    await mail.sweep()
    said = len(mail.channels["mail"].heard)
    await erase(services, Erasure("approval", approval_id))
    await mail.sweep()
    assert len(mail.channels["mail"].heard) == said
    assert (await services.inbox.list("default", ApprovalQuery())).items[0].approval.erasure
    assert services.clock() > START

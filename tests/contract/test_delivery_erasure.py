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
from tests.contract.test_dispatcher import FakeChannel, FakeChannels
from tests.databases import Database
from tests.support import ADA, BOB, START, Clock, approve, propose_pending

DAY = 86_400_000
MAIL = Routes({"mail": ChannelCapabilities(personal=True)}, "mail")


@pytest.fixture
async def mail(services: AppServices) -> FakeChannels:
    made = FakeChannels(services, MAIL, mail=FakeChannel())
    for name in ("ada", "bob"):
        await services.store.put_user("default", User(name, "admin", email=f"{name}@example.com"), "ada")
    await made.sweep()
    return made


async def violations(services: AppServices) -> list[str]:
    return [str(fault) for fault in (await audit.verify(services.store, "default")).violations]


def stored_deliveries(database: Database) -> list[tuple[str, str]]:
    return sorted(database.sql("select person, status from deliveries"))


async def reject_finally(services: AppServices, approval_id: str) -> None:
    """For good: a rejection that nobody can take back."""
    await services.inbox.decide("default", approval_id, Reject("Not now."), BOB)


async def erase(services: AppServices, erasure: Erasure) -> None:
    async for _ in services.inbox.erase("default", erasure, ADA):
        pass


async def test_deliveries_go_with_the_content_of_what_they_were_about(
    mail: FakeChannels, services: AppServices, database: Database, clock: Clock
) -> None:  # R41
    ended = await propose_pending(services)
    await mail.sweep()
    await reject_finally(services, ended)
    await mail.sweep()
    assert stored_deliveries(database) == [("ada", "sent"), ("bob", "sent")]
    clock.advance(DAY)
    while await services.store.apply_retention(DAY // 2):
        pass
    assert stored_deliveries(database) == []
    assert await violations(services) == []


async def test_deliveries_of_pending_approvals_are_kept(
    mail: FakeChannels, services: AppServices, database: Database, clock: Clock
) -> None:
    await propose_pending(services)
    await mail.sweep()
    clock.advance(DAY)
    while await services.store.apply_retention(DAY // 2):
        pass
    assert stored_deliveries(database) == [("ada", "sent"), ("bob", "sent")]


async def test_dead_deliveries_are_kept_for_thirty_days(
    mail: FakeChannels, services: AppServices, database: Database, clock: Clock
) -> None:  # R41
    approval_id = await propose_pending(services)
    await mail.sweep()
    mail.channels["mail"].failure = DeliveryRejected("No.")
    await reject_finally(services, approval_id)
    await mail.sweep()
    clock.advance(29 * DAY)
    while await services.store.apply_retention(DAY):
        pass
    await services.worker.sweep()
    assert {status for _, status in stored_deliveries(database)} == {"parked"}
    clock.advance(2 * DAY)
    await services.worker.sweep()
    assert stored_deliveries(database) == []


async def test_an_erased_person_is_in_no_delivery(
    mail: FakeChannels, services: AppServices, database: Database
) -> None:  # R41
    approval_id = await propose_pending(services)
    await mail.sweep()
    await services.store.deliveries.bind("default", "mail", "harriet-vane", "bob", "bob")
    await approve(services, approval_id)
    await mail.sweep()
    await services.accounts.remove_user("default", "bob", "ada")
    await erase(services, Erasure("person", "bob"))
    assert stored_deliveries(database) == [("ada", "sent")]
    assert await services.store.deliveries.identities("default") == []
    contents = repr([bytes(row[0]) for row in database.sql("select content from contents")])
    assert '"person":"ada"' in contents
    assert '"person":"bob"' not in contents
    assert "harriet-vane" not in contents
    assert await violations(services) == []


async def test_erasing_a_call_sends_no_new_message(mail: FakeChannels, services: AppServices, clock: Clock) -> None:
    approval_id = await propose_pending(services)
    await mail.sweep()
    await reject_finally(services, approval_id)
    clock.advance(DAY)
    await mail.sweep()
    said = len(mail.channels["mail"].messages)
    await erase(services, Erasure("approval", approval_id))
    await mail.sweep()
    assert len(mail.channels["mail"].messages) == said
    assert (await services.inbox.list("default", ApprovalQuery())).items[0].approval.erasure
    assert services.clock() > START

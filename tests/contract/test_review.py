"""The port behind `interlock approvals`: over a database and over a server the same commands do the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from interlock.app.bootstrap import AppServices, build_services
from interlock.cli.approval_records import ApprovalRow, ApprovalRows, parse_view
from interlock.cli.cards import render_card
from interlock.cli.context import CommandOptions, open_database
from interlock.cli.review import DatabaseReview, Resolution, Review, ReviewChanges
from interlock.cli.server_review import open_server_review
from interlock.cli.user_folder import Login
from interlock.core.call import ToolSpec
from interlock.core.decision import Acknowledgement, Edit
from interlock.core.errors import (
    DigestMismatch,
    FindingsNotAcknowledged,
    Forbidden,
    InvalidRequest,
    NotFound,
    StoreUnavailable,
    Unauthenticated,
)
from interlock.core.policy.policy import People
from interlock.core.ports import ApprovalQuery
from tests.databases import Database
from tests.interlock_server import make_keys, run_server_in_thread
from tests.support import ADA, propose_pending

pytestmark = pytest.mark.postgres_nightly  # what the database does is shown by the tests of inbox and search
POLICY = "version: 1\ndefaults: {undo_window: 1h}\n"
SEND = ToolSpec("send", "write", describe="Send to {to} with {token}", secret=("token",), schema={"type": "object"})
PLAIN = {"to": "carol", "token": "hunter2-secret"}
USER_ONLY_FIELDS = ("may_decide", "may_not", "seconds_left")


@pytest.fixture
async def services(database: Database) -> AsyncIterator[AppServices]:
    services = build_services(database.url)
    await services.store.open()
    await services.put_policy("default", POLICY, "ada", {})
    yield services
    await services.store.close()


@pytest.fixture
async def keys(services: AppServices) -> dict[str, str]:
    return await make_keys(services)


@pytest.fixture(params=["database", "server"])
async def review(request: pytest.FixtureRequest, database: Database, keys: dict[str, str]) -> AsyncIterator[Review]:
    """As bob, who has to be named over a database and is the owner of the key over a server."""
    async with AsyncExitStack() as stack:
        if request.param == "database":
            context = await stack.enter_async_context(open_database(CommandOptions(database=database.url)))
            yield DatabaseReview(context)
            return
        url = stack.enter_context(run_server_in_thread(database.url))
        yield await stack.enter_async_context(open_server_review(login(url, keys["reviewer"]), "default"))


def login(url: str, key: str) -> Login:
    return Login(url=url, key=key, key_id=key[:12], user="bob", role="reviewer", workspace="default", expires_at=2**50)


# R68
async def test_lists_and_cards_are_the_same(review: Review, services: AppServices) -> None:
    first = await propose_pending(services, 1, SEND, args=PLAIN, agent="mailer")
    second = await propose_pending(services, 2, SEND, args={"to": "dave", "token": "x"}, agent="other")
    page = await review.list(ApprovalQuery(("pending",)))
    assert ([row.id for row in page.items], page.next) == ([first, second], None)
    assert [row.agent for row in (await search(review, ApprovalQuery((), agent="mailer"))).items] == ["mailer"]
    short = await review.list(ApprovalQuery(("pending",), limit=1))
    assert [row.id for row in (await review.list(ApprovalQuery(("pending",), cursor=short.next or ""))).items] == [
        second
    ]
    view = await review.show(first)
    assert (view.row.status, view.row.votes_text, view.card.tool) == ("pending", "0 of 1", "send")
    assert "carol" in view.row.sentence
    assert "hunter2" not in str(view)
    assert {field.name: field.type for field in view.card.fields} == {"to": "string", "token": "secret"}
    assert (view.approvers, view.decisions) == (
        "1 person: the requester, a reviewer or an admin", ("approve", "edit", "respond", "reject"),
    )  # fmt: skip
    assert [entry["kind"] for entry in view.timeline] == ["proposed"]
    with pytest.raises(NotFound):
        await review.show("01a1de20-049e-7a93-9108-5bfe3bb63157")


async def search(review: Review, query: ApprovalQuery) -> ApprovalRows:
    """On a busy machine another writer may hold the database while a search brings its index up to date."""
    async with asyncio.timeout(60):
        while (page := await review.list(query)).is_index_behind:
            pass
    return page


# R68
async def test_a_database_and_its_server_give_the_same(
    database: Database, keys: dict[str, str], services: AppServices
) -> None:
    approval_id = await propose_pending(services, 1, SEND, args=PLAIN, agent="mailer")
    await propose_pending(services, 2, SEND, args={"to": "b\u202eob", "token": "x"})
    with run_server_in_thread(database.url) as url:
        async with (
            open_database(CommandOptions(database=database.url)) as context,
            open_server_review(login(url, keys["reviewer"]), "") as over_server,
        ):
            over_database = DatabaseReview(context)
            await assert_same(over_database, over_server, approval_id)
            await over_server.decide(await over_database.show(approval_id), {"kind": "reject", "reason": "no"}, "bob")
            await assert_same(over_database, over_server, approval_id)


async def assert_same(first: Review, second: Review, approval_id: str) -> None:
    for query in (ApprovalQuery(), ApprovalQuery(("pending",)), ApprovalQuery(limit=1)):
        one, other = await first.list(query), await second.list(query)
        assert [for_everybody(row) for row in one.items] == [for_everybody(row) for row in other.items]
        assert (one.next, one.is_index_behind) == (other.next, other.is_index_behind)
    shown, there = await first.show(approval_id), await second.show(approval_id)
    assert replace(shown, row=for_everybody(shown.row)) == replace(there, row=for_everybody(there.row))
    for part in (approval_id, approval_id[-8:], approval_id[-8:].upper(), "zzzzzzzz"):
        assert list(await first.find_ids(part, 2)) == list(await second.find_ids(part, 2)), part


def for_everybody(row: ApprovalRow) -> ApprovalRow:
    """As --json prints it, without what depends on who asks, and when."""
    shown = {name: value for name, value in row.json.items() if name not in USER_ONLY_FIELDS}
    return replace(row, json=json.loads(json.dumps(shown)))


async def test_an_approval_is_found_by_a_part_of_its_id(review: Review, services: AppServices) -> None:
    approval_id = await propose_pending(services)
    assert await review.find_ids(approval_id, 2) == [approval_id]
    assert await review.find_ids(approval_id[-8:], 2) == [approval_id]
    assert await review.find_ids("zzzzzzzz", 2) == []


async def test_a_search_by_words_people_arguments_and_time(review: Review, services: AppServices) -> None:
    await propose_pending(services, 1, SEND, args=PLAIN)
    while await services.store.update_search_index():
        pass
    now = services.clock()
    matching = (
        ApprovalQuery(text="carol"),
        ApprovalQuery(arguments=(("to", "carol"),)),
        ApprovalQuery(since=now - 60_000, until=now + 60_000),
    )
    for query in matching:
        assert len((await review.list(query)).items) == 1, query
    for query in (ApprovalQuery(text="erin"), ApprovalQuery(arguments=(("to", 5),)), ApprovalQuery(since=now + 60_000)):
        assert (await review.list(query)).items == [], query


async def test_a_decision_is_about_the_arguments_that_were_shown(review: Review, services: AppServices) -> None:
    approval_id = await propose_pending(services, 1, SEND, args=PLAIN)
    before = await review.show(approval_id)
    stored = await services.store.get("default", approval_id)
    edit = Edit(b'{"to":"mallory","token":"x"}', Acknowledgement(stored.approval.args_sha256))
    await services.put_policy("default", "version: 1\nrules: [{name: two, then: ask, quorum: 2}]\n", "ada", {})
    await services.inbox.decide("default", approval_id, edit, ADA)
    with pytest.raises(DigestMismatch):
        await review.decide(before, {"kind": "approve"}, "bob")
    after = await review.decide(await review.show(approval_id), {"kind": "reject", "reason": "no"}, "bob")
    assert after.status == "rejected"


async def test_an_approval_counts_once_as_the_person(review: Review, services: AppServices) -> None:
    approval_id = await propose_pending(services, 1, SEND, args=PLAIN)
    view = await review.show(approval_id)
    after = await review.decide(view, {"kind": "approve", "comment": "as agreed", "acknowledged": []}, "bob")
    assert (after.id, after.status, after.have, after.need) == (approval_id, "approved", 1, 1)
    assert after.start_by is not None
    body = (await review.show(approval_id)).json
    assert (body["decision"]["by"], body["decision"]["comment"]) == ("bob", "as agreed")
    assert body["votes"][0]["args_sha256"] == view.row.args_sha256


async def test_a_rejection_is_undone_by_its_author(review: Review, services: AppServices) -> None:
    approval_id = await propose_pending(services)
    rejected = await review.decide(await review.show(approval_id), {"kind": "reject"}, "bob")
    assert (rejected.status, rejected.release_at is not None) == ("rejected", True)
    assert (await review.undo(approval_id, "bob")).status == "pending"


async def test_delegates_and_unknown_outcomes(review: Review, services: AppServices) -> None:
    approval_id = await propose_pending(services)
    assert await review.delegate(approval_id, People(teams=frozenset({"finance"})), "bob") == "bob"
    assert (await review.show(approval_id)).json["delegations"][0]["to"]["teams"] == ["finance"]
    await review.decide(await review.show(approval_id), {"kind": "approve"}, "bob")
    started = await services.gate.start("default", approval_id, "runner")
    await services.gate.abandon("default", approval_id, started.fence)
    result = await review.resolve(approval_id, Resolution(True, "the bank says so", {"paid": 5}), "bob")
    assert result.status == "succeeded"
    assert (await review.show(approval_id)).json["result"] == {"paid": 5}


async def test_alarms_are_acknowledged_over_both(review: Review, services: AppServices) -> None:
    approval_id = await propose_pending(services, 1, SEND, args={"to": "b\u202eob"})
    view = await review.show(approval_id)
    assert [finding.level for finding in view.card.findings] == ["alarm"]
    with pytest.raises(FindingsNotAcknowledged):
        await review.decide(view, {"kind": "approve"}, "bob")
    seen = [finding.id for finding in view.card.findings]
    assert (await review.decide(view, {"kind": "approve", "acknowledged": seen}, "bob")).status == "approved"


async def test_only_what_needs_the_person(review: Review, services: AppServices) -> None:
    rule = "{name: ada alone, tools: [send], then: ask, approvers: {users: [ada]}}"
    await services.put_policy("default", f"version: 1\nrules: [{rule}]\n", "ada", {})
    await propose_pending(services, 1, SEND, args=PLAIN)
    mine = await propose_pending(services, 2)
    assert [row.id for row in (await review.list(ApprovalQuery(("pending",)), mine="bob")).items] == [mine]


async def test_events_are_followed_from_the_beginning_of_the_watch(review: Review, services: AppServices) -> None:
    await propose_pending(services, 1)
    async with review.watch() as changes, asyncio.timeout(60):
        approval_id = await propose_pending(services, 2)
        found: list[Any] = []
        while not found:
            await changes.wait(1)
            found = [each for each in await changes.new_events() if each["kind"] == "proposed"]
        assert [each["approval_id"] for each in found] == [approval_id]
        row = await changes.row(approval_id)
        assert row is not None
        assert (row.id, row.status) == (approval_id, "pending")
        assert await changes.row("01a1de20-049e-7a93-9108-5bfe3bb63157") is None
        assert changes.trouble == ""


# The server alone


async def test_a_key_acts_as_its_owner_in_its_workspace(database: Database, keys: dict[str, str]) -> None:
    with run_server_in_thread(database.url) as url:
        async with open_server_review(login(url, keys["reviewer"]), "default") as review:
            assert (review.user, review.workspace, review.place) == ("bob", "default", f"default on {url}")
            with pytest.raises(Forbidden, match="and cannot act as ada there"):
                await review.undo("01a1de20-049e-7a93-9108-5bfe3bb63157", "ada")
            with pytest.raises(NotFound, match="is not an id"):
                await review.show("../users")
        for key, workspace, error in (
            (keys["reviewer"], "ops", InvalidRequest),
            (keys["agent"], "default", Forbidden),
            (f"{keys['reviewer'][:-1]}_", "default", Unauthenticated),
        ):
            with pytest.raises(error, match="interlock login"):
                async with open_server_review(login(url, key), workspace):
                    pass
    with pytest.raises(StoreUnavailable):
        async with open_server_review(login(url, keys["reviewer"]), "default"):
            pass


async def test_a_watch_ends_when_its_key_is_revoked(
    database: Database, keys: dict[str, str], services: AppServices
) -> None:
    with run_server_in_thread(database.url) as url:
        async with open_server_review(login(url, keys["reviewer"]), "default") as review, review.watch() as changes:
            await services.accounts.revoke_key("default", keys["reviewer"][:12], "ada")
            with pytest.raises(Unauthenticated, match="its key was revoked"):
                await wait_for_end(changes)


async def wait_for_end(changes: ReviewChanges) -> None:
    async with asyncio.timeout(60):
        while True:
            await changes.wait(1)


async def test_what_a_server_sends_does_not_control_the_terminal(review: Review, services: AppServices) -> None:
    body = add_controls((await review.show(await propose_pending(services))).json)
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(render_card(parse_view(body), 0, full=True))
    assert "Delete file" in captured.get() or "delete_file" in captured.get()
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(captured.get())


def add_controls(value: Any, name: str = "") -> Any:
    """Every text but times with what sets the title of a terminal, clears its line and turns its text around."""
    match value:
        case str() if not name.endswith(("_at", "_by")) and name not in ("at", "tool"):  # those are parsed
            return f"{value}\x1b]0;title\x07\x9b2K\u202e"
        case dict():
            return {key: add_controls(each, key) for key, each in value.items()}
        case list():
            return [add_controls(each, name) for each in value]
        case _:
            return value

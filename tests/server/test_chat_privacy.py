"""What was said in a thread is in the thread alone; and it can be taken from there, for good."""

from __future__ import annotations

import asyncio
import json

import pytest

from interlock.app import audit
from interlock.app.bootstrap import AppServices
from interlock.core.chat.transcript import ToolRequest
from interlock.core.ledger.erasure import Erasure, ErasureResult
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from tests.databases import Database
from tests.server.asgi_request import send_request
from tests.server.chat_harness import ScriptedModel, StreamReader, delete_cms_item, put_cms_items, run_chat_loop
from tests.server.conftest import ClientFactory
from tests.support import ADA, Clock, approve

Keys = dict[str, str]
PRIVATE = "harriet-vane"
PUBLISH = ToolRequest("c1", "cms_publish_post", f'{{"slug": "{PRIVATE}"}}')
DELETE = ToolRequest("c2", "cms_delete_page", f'{{"slug": "{PRIVATE}"}}')
MISSING = ToolRequest("c3", "cms_archive_post", f'{{"slug": "{PRIVATE}-2"}}')


async def erase(services: AppServices, scope: str, what: str, *, dry_run: bool = False) -> ErasureResult:
    total, erasure = ErasureResult(), Erasure(scope, what, "they asked for it")  # type: ignore[arg-type]
    async for erased in services.inbox.erase("default", erasure, ADA, dry_run=dry_run):
        total += erased
    return total


def tables_containing(database: Database, needle: str) -> set[str]:
    """The tables that hold a text anywhere."""
    words = needle.encode()
    return {
        table
        for table in database.tables()
        for row in database.sql(f"select * from {table}")
        if any(words in (bytes(cell) if isinstance(cell, bytes | memoryview) else str(cell).encode()) for cell in row)
    }


@pytest.fixture
async def thread_id(app: RequestMiddleware, state: ServerState, services: AppServices, keys: Keys) -> str:
    """Somebody's name in every place that can hold one: words, arguments, results, and an answer to a question."""
    turns = [
        [f"About {PRIVATE}.", PUBLISH, MISSING],
        ["Done.", DELETE],
        [f"Shall I delete {PRIVATE}?"],
        ["I left it."],
    ]
    await put_cms_items(state, PRIVATE)
    async with run_chat_loop(state, ScriptedModel(*turns)):
        stream = await StreamReader(
            app, keys["reviewer"], "POST", "/api/chat", message=f"Publish {PRIVATE}", once=PRIVATE
        ).wait_started()
        (card,) = [
            event.data["approval"]["id"]
            for event in await stream.read_until("approval_request")
            if event.name == "approval_request"
        ]
        await delete_cms_item(state, "post", PRIVATE)  # an item of a tool is not the thread's
        await approve(services, card, ADA)
        await stream.read_all()
        more = {"message": f"no, not {PRIVATE}", "thread_id": stream.thread_id}
        await (await StreamReader(app, keys["reviewer"], "POST", "/api/chat", **more).wait_started()).read_all()
    await delete_cms_item(state, "page", PRIVATE)
    return stream.thread_id


async def test_no_word_of_a_thread_is_in_the_ledger_or_its_stream(  # R48
    app: RequestMiddleware, services: AppServices, keys: Keys, client: ClientFactory, thread_id: str, database: Database
) -> None:
    admin = client(keys["admin"])
    listed = (await admin.get("/api/audit?limit=500")).json()["items"]
    exported = (await admin.get("/api/audit/export")).text.splitlines()
    headers = {"authorization": f"Bearer {keys['admin']}", "last-event-id": "0"}
    live = await send_request(app, "GET", "/api/events", headers, enough=lambda text: b"thread_ended" in text)
    entries = [json.dumps(entry) for entry in listed if entry["kind"].startswith("thread_")]
    entries += [line for line in (*exported, *live.text.splitlines()) if '"kind":"thread_' in line]
    assert len([entry for entry in entries if thread_id in entry]) == len(entries) >= 3 * 10
    assert [entry for entry in entries if PRIVATE in entry] == []
    assert "events" not in tables_containing(database, PRIVATE)


@pytest.mark.postgres_smoke
async def test_an_erased_thread_is_gone_from_every_table(  # R41, R49
    state: ServerState, services: AppServices, keys: Keys, client: ClientFactory, thread_id: str, database: Database
) -> None:
    assert {"lines", "threads", "payloads"} <= tables_containing(database, PRIVATE)
    would = await erase(services, "thread", thread_id, dry_run=True)
    done = await erase(services, "thread", thread_id)
    assert (would.approvals, would.threads, would.skipped) == (done.approvals, done.threads, done.skipped) == (1, 1, ())
    assert tables_containing(database, PRIVATE) <= {"answers"}  # the key that the program chose itself
    assert (await audit.verify(services.store, "default")).violations == ()
    shown = (await client(keys["reviewer"]).get(f"/api/threads/{thread_id}")).json()
    assert (shown["title"], shown["user"], shown["status"], shown["confirmation"]) == ("", "bob", "idle", None)
    assert [(line["kind"], line["actor"]) for line in shown["lines"]] == [("erased", "ada")]
    assert await erase(services, "thread", thread_id) == ErasureResult()


async def test_a_person_who_is_erased_takes_their_threads_along(  # R41
    services: AppServices, keys: Keys, thread_id: str, database: Database
) -> None:
    done = await erase(services, "person", "bob")
    assert (done.threads, done.skipped) == (1, ())
    assert tables_containing(database, PRIVATE) <= {"answers"}
    assert (await audit.verify(services.store, "default")).violations == ()


async def test_a_thread_at_work_is_left_and_named(
    app: RequestMiddleware, state: ServerState, services: AppServices, keys: Keys
) -> None:
    go_on = asyncio.Event()
    async with run_chat_loop(state, ScriptedModel(["Hello", go_on, "."])):
        stream = await StreamReader(app, keys["reviewer"], "POST", "/api/chat", message="Hello").wait_started()
        await stream.next_event()
        done = await erase(services, "thread", stream.thread_id)
        assert (done.threads, done.skipped) == (0, ((stream.thread_id, "running"),))
        go_on.set()
        await stream.read_all()
    assert (await erase(services, "thread", stream.thread_id)).threads == 1


async def test_an_erased_thread_goes_on_with_what_is_said_next(
    app: RequestMiddleware, state: ServerState, services: AppServices, keys: Keys, thread_id: str
) -> None:
    await erase(services, "thread", thread_id)
    model = ScriptedModel(["Who are you?"])
    async with run_chat_loop(state, model):
        more = {"message": "Hello again", "thread_id": thread_id}
        stream = await StreamReader(app, keys["reviewer"], "POST", "/api/chat", **more).wait_started()
        assert [event.name for event in await stream.read_all()][-1] == "done"
    assert [message.text for message in model.prompts[0].messages] == ["Hello again"]  # type: ignore[union-attr]


async def test_retry_after_an_erasure_adds_no_message(
    app: RequestMiddleware, services: AppServices, keys: Keys, thread_id: str, state: ServerState
) -> None:
    await erase(services, "thread", thread_id)
    again = StreamReader(app, keys["reviewer"], "POST", "/api/chat", message=f"Publish {PRIVATE}", once=PRIVATE)
    await again.read_all()
    assert (again.status, json.loads(again.text)["error"]) == (409, "conflict")
    assert len(await state.store.threads.entries("default", thread_id)) == 1


async def test_age_takes_what_people_decided_and_leaves_the_thread(  # R41
    services: AppServices, clock: Clock, thread_id: str, database: Database
) -> None:
    clock.advance(30 * 86_400_000)
    while await services.store.apply_retention(86_400_000) is not None:
        pass
    assert "payloads" not in tables_containing(database, PRIVATE)
    assert len(await services.store.threads.entries("default", thread_id)) > 10

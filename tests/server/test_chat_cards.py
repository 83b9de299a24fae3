"""Cards of a chat: the page may be closed, time may run out, and what was decided can be found again."""

from __future__ import annotations

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.chat.transcript import ToolRequest, ToolResult
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from tests.server.chat_harness import ScriptedModel, StreamReader, fold_events, run_chat_loop
from tests.server.conftest import ClientFactory
from tests.support import Clock

Keys = dict[str, str]
PUBLISH = ToolRequest("c1", "cms_publish_post", '{"slug": "hello"}')
OTHER = ToolRequest("c2", "cms_archive_post", '{"slug": "hello"}')


async def ask_and_leave(app: RequestMiddleware, keys: Keys, cards: int = 1) -> tuple[str, str, list[str]]:
    """The person closes the page once they were asked: thread, last event and cards."""
    stream = await StreamReader(app, keys["reviewer"], "POST", "/api/chat", message="Publish it").wait_started()
    while len(found := [event for event in stream.events if event.name == "approval_request"]) < cards:
        await stream.next_event()
    await stream.leave()
    return stream.thread_id, stream.events[-1].id, [event.data["approval"]["id"] for event in found]


async def follow_thread(app: RequestMiddleware, keys: Keys, thread_id: str, last: str) -> StreamReader:
    stream = await StreamReader(app, keys["reviewer"], "GET", f"/api/threads/{thread_id}/events", last).wait_started()
    await stream.read_until("done")
    await stream.leave()
    return stream


async def test_a_card_is_decided_while_nobody_reads(  # R3, R36
    app: RequestMiddleware, state: ServerState, keys: Keys, client: ClientFactory
) -> None:
    async with run_chat_loop(state, ScriptedModel(["Now.", PUBLISH], ["Done."])):
        thread_id, last, (card,) = await ask_and_leave(app, keys)
        inbox = client(keys["admin"])
        for query in (f"thread_id={thread_id}", "user=bob", f"thread_id={thread_id}&user=bob"):
            listed = (await inbox.get(f"/api/approvals/pending?{query}")).json()["items"]
            assert [item["id"] for item in listed] == [card], query
        shown = (await inbox.get(f"/api/approvals/{card}")).json()
        body = {"kind": "approve", "args_sha256": shown["args_sha256"]}
        assert (await inbox.post(f"/api/approvals/{card}/decision", json=body)).status_code == 200
        told = fold_events((await follow_thread(app, keys, thread_id, last)).events)
    assert [name for name, _ in told] == ["approval_resolved", "tool_call_result", "delta", "done"]
    assert (await inbox.get(f"/api/approvals/pending?thread_id={thread_id}")).json()["items"] == []
    decision = (await inbox.get(f"/api/approvals/{card}")).json()["decision"]
    assert (decision["by"], decision["kind"], bool(decision["at"])) == ("ada", "approve", True)


async def test_what_was_edited_is_said_in_the_words_of_its_tool(  # R2, R12
    app: RequestMiddleware, state: ServerState, keys: Keys, client: ClientFactory
) -> None:
    rename = ToolRequest("c1", "cms_update_post", '{"slug": "hello", "title": "First"}')
    async with run_chat_loop(state, ScriptedModel(["Now.", rename], ["Done."])):
        _, _, (card,) = await ask_and_leave(app, keys)
        inbox = client(keys["admin"])
        shown = (await inbox.get(f"/api/approvals/{card}")).json()
        args = {"slug": "hello", "title": "Second"}
        edit = {"kind": "edit", "args_sha256": shown["args_sha256"], "args": args}
        edited = (await inbox.post(f"/api/approvals/{card}/decision", json=edit)).json()
    assert edited["sentence"] == shown["sentence"].replace("First", "Second")
    assert "Second" in edited["sentence"]


async def test_a_card_that_nobody_answers_times_out_everywhere(  # R5
    app: RequestMiddleware, state: ServerState, services: AppServices, keys: Keys, clock: Clock, client: ClientFactory
) -> None:
    model = ScriptedModel(["Now.", PUBLISH], ["Then not."])
    async with run_chat_loop(state, model):
        thread_id, last, (card,) = await ask_and_leave(app, keys)
        clock.advance(599_000)
        await services.worker.sweep()
        assert (await services.store.get("default", card)).approval.status == "pending"
        clock.advance(1_000)
        await services.worker.sweep()
        told = dict(fold_events((await follow_thread(app, keys, thread_id, last)).events))
    assert (told["approval_resolved"]["status"], told["approval_resolved"]["approved"]) == ("expired", False)
    assert "timed out" in told["approval_resolved"]["reason"]
    result = told["tool_call_result"]["tool_call"]["result"]
    assert (result["success"], result["status"], "timed out" in result["reason"]) == (False, "expired", True)
    (heard,) = [message for message in model.prompts[-1].messages if isinstance(message, ToolResult)]
    assert heard.content == result
    assert (await client(keys["viewer"]).get(f"/api/approvals/{card}")).json()["status"] == "expired"


@pytest.mark.parametrize("first", [0, 1])
async def test_cards_of_one_turn_are_decided_in_any_order(  # R3
    app: RequestMiddleware, state: ServerState, keys: Keys, client: ClientFactory, clock: Clock, first: int
) -> None:
    model, person = ScriptedModel(["Both.", PUBLISH, OTHER], ["Done."]), client(keys["reviewer"])
    async with run_chat_loop(state, model):
        thread_id, last, cards = await ask_and_leave(app, keys, 2)
        for number in (first, 1 - first):
            body = {"approvalId": cards[number], "approved": number == 1, "reason": "As agreed."}
            assert (await person.post("/api/chat/approve", json=body)).status_code == 200
        clock.advance(10_000)  # a rejection is released to the agent when it can no longer be undone
        told = fold_events((await follow_thread(app, keys, thread_id, last)).events)
    names = [name for name, _ in told]
    final = [data for name, data in told if name == "approval_resolved" and "release_at" not in data]
    assert len(final) == names.count("tool_call_result") == 2
    results = [message for message in model.prompts[-1].messages if isinstance(message, ToolResult)]
    assert [result.call_id for result in results] == ["c1", "c2"]  # whatever came first


async def test_a_rejection_and_its_undoing_are_streamed_at_once(  # R3, R14
    app: RequestMiddleware, state: ServerState, keys: Keys, client: ClientFactory, clock: Clock
) -> None:
    person = client(keys["reviewer"])
    async with run_chat_loop(state, ScriptedModel(["Now.", PUBLISH], ["Then not."])):
        thread_id, last, (card,) = await ask_and_leave(app, keys)
        path = f"/api/threads/{thread_id}/events"
        stream = await StreamReader(app, keys["reviewer"], "GET", path, last).wait_started()
        body = {"approval_id": card, "approved": False, "reason": "Not today."}
        assert (await person.post("/api/agent/approve", json=body)).status_code == 200
        await stream.read_until("approval_resolved")
        assert (await person.post(f"/api/approvals/{card}/undo", json={})).status_code == 200
        await stream.read_until("approval_request")
        assert (await person.post("/api/chat/approve", json=body)).status_code == 200
        await stream.wait_until(lambda: [event.name for event in stream.events].count("approval_resolved") == 2)
        clock.advance(10_000)
        await stream.read_until("done")
        await stream.leave()
    told = [(name, data) for name, data in fold_events(stream.events) if name.startswith("approval")]
    assert [(name, "release_at" in data) for name, data in told] == [
        ("approval_resolved", True),
        ("approval_request", False),
        ("approval_resolved", True),
        ("approval_resolved", False),
    ]
    assert (told[0][1]["status"], told[0][1]["approved"], told[0][1]["reason"]) == ("rejected", False, "Not today.")
    assert told[1][1] == card


@pytest.mark.postgres_smoke
async def test_what_was_decided_in_a_thread_can_be_found_later(  # R8
    app: RequestMiddleware, state: ServerState, keys: Keys, client: ClientFactory
) -> None:
    person = client(keys["reviewer"])
    async with run_chat_loop(state, ScriptedModel(["Now.", PUBLISH], ["Done."])):
        thread_id, last, (card,) = await ask_and_leave(app, keys)
        await person.post("/api/chat/approve", json={"approvalId": card, "approved": True})
        await follow_thread(app, keys, thread_id, last)
    for query in (f"thread_id={thread_id}", "tool=cms_publish_post&status=succeeded", "q=hello"):
        items = (await person.get(f"/api/approvals?{query}")).json()["items"]
        assert [(item["id"], item["thread_id"]) for item in items] == [(card, thread_id)], query

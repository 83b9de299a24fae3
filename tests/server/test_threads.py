"""A thread as it is shown: the calls that the model wrote, and nothing in them that is secret."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from interlock.core.chat.transcript import ToolRequest
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from tests.server.chat_harness import ScriptedModel, StreamReader, put_cms_items, run_chat_loop
from tests.server.conftest import ClientFactory

TOKEN = "token-that-nobody-sees"
POST = f'{{"url": "https://example.com/x", "body": "hi", "headers": {{"authorization": "{TOKEN}"}}}}'


# R11 R36
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (POST, {"url": "https://example.com/x", "body": "hi"}),
        ('{"url": 5', None),  # no JSON: what is secret in it cannot be told apart
        ("[]", None),
    ],
)
async def test_what_is_secret_in_a_call_is_not_shown_with_its_thread(
    app: RequestMiddleware,
    state: ServerState,
    keys: dict[str, str],
    client: ClientFactory,
    text: str,
    shown: dict[str, object] | None,
) -> None:
    key = keys["reviewer"]
    async with run_chat_loop(state, ScriptedModel(["I post it.", ToolRequest("c1", "http_post", text)], ["Done."])):
        stream = await StreamReader(app, key, "POST", "/api/chat", message="post it").wait_started()
        while (await stream.next_event()).name != "tool_call_start":
            pass
        thread_id = stream.thread_id
        whole = await _first_reply(client(key), thread_id)
        await client(key).post(f"/api/threads/{thread_id}/stop")
        await stream.read_all()
    (call,) = whole["calls"]
    assert (call["id"], call["name"]) == ("c1", "http_post")
    assert TOKEN not in str(whole)
    if shown is None:
        assert call["args"] is None
    else:
        assert shown.items() <= call["args"].items()
        assert "$secret" in str(call["args"]["headers"])


# R36
async def test_calls_without_secrets_are_shown_as_the_model_wrote_them(
    app: RequestMiddleware, state: ServerState, keys: dict[str, str], client: ClientFactory
) -> None:
    key = keys["reviewer"]
    wishes = [ToolRequest("c1", "cms_read_post", '{"slug": "x"}'), ToolRequest("c2", "no_such_tool", "not even JSON")]
    async with run_chat_loop(state, ScriptedModel(["Look.", *wishes], ["Done."])):
        stream = await StreamReader(app, key, "POST", "/api/chat", message="look").wait_started()
        await stream.read_all()
        whole = await _first_reply(client(key), stream.thread_id)
    assert [call["args"] for call in whole["calls"]] == [{"slug": "x"}, "not even JSON"]
    assert {"wishes", "opaque", "seen"}.isdisjoint(whole)


# R19 R45
async def test_a_question_is_shown_without_the_version_that_the_server_keeps_for_its_answer(
    app: RequestMiddleware, state: ServerState, keys: dict[str, str], client: ClientFactory
) -> None:
    key = keys["reviewer"]
    await put_cms_items(state, "about")
    wish = ToolRequest("c1", "cms_delete_page", '{"slug": "about"}')
    async with run_chat_loop(state, ScriptedModel(["I ask.", wish], ["Shall I?"])):
        stream = await StreamReader(app, key, "POST", "/api/chat", message="delete it").wait_started()
        await stream.read_all()
    lines = (await client(key).get(f"/api/threads/{stream.thread_id}")).json()["lines"]
    (asked,) = [line["body"] for line in lines if line["kind"] == "resulted"]
    assert asked["status"] == "confirming"
    assert "preview_version" not in asked


# R4
async def test_the_end_of_a_turn_names_the_reply_that_it_came_to(
    app: RequestMiddleware, state: ServerState, keys: dict[str, str], client: ClientFactory
) -> None:
    key = keys["reviewer"]
    async with run_chat_loop(state, ScriptedModel(["Look.", ToolRequest("c1", "cms_list_pages", "{}")], ["Done."])):
        stream = await StreamReader(app, key, "POST", "/api/chat", message="look").wait_started()
        events = await stream.read_all()
    lines = (await client(key).get(f"/api/threads/{stream.thread_id}")).json()["lines"]
    (named,) = [line for line in lines if str(line["n"]) == events[-1].data["message_id"]]
    assert (events[-1].name, named["kind"], named["body"]["text"]) == ("done", "replied", "Done.")


# R3
async def test_some_of_the_lines_can_be_asked_for_and_a_stream_goes_on_behind_them(
    app: RequestMiddleware, state: ServerState, keys: dict[str, str], client: ClientFactory
) -> None:
    key = keys["reviewer"]
    async with run_chat_loop(state, ScriptedModel(["Look.", ToolRequest("c1", "cms_list_pages", "{}")], ["Done."])):
        stream = await StreamReader(app, key, "POST", "/api/chat", message="look").wait_started()
        events = await stream.read_all()
    path = f"/api/threads/{stream.thread_id}"

    async def lines(query: str) -> tuple[list[int], str | None]:
        shown = (await client(key).get(f"{path}?{query}")).json()
        return [line["n"] for line in shown["lines"]], shown["position"]

    every, position = await lines("")
    assert position == events[-1].id
    assert await lines(f"after={every[1]}") == (every[2:], position)
    assert await lines("last=2") == (every[-2:], position)
    assert (await lines(f"before={every[2]}&last=1"))[0] == every[1:2]
    assert await lines(f"after={every[-1]}") == ([], None)
    start = next(event for event in events if event.name == "tool_call_start")
    assert (await lines(f"before={every[2]}"))[1] == start.id


# R3
@pytest.mark.postgres_smoke
async def test_threads_are_found_by_words_of_their_titles_in_bounded_pages(
    app: RequestMiddleware, state: ServerState, keys: dict[str, str], client: ClientFactory
) -> None:
    key = keys["reviewer"]
    titles = ["Pages of Übersee", "the 100% page", "nothing", "PAGE one"]
    async with run_chat_loop(state, ScriptedModel(*(["Yes."] for _ in titles))):
        for title in titles:
            await (await StreamReader(app, key, "POST", "/api/chat", message=title).wait_started()).read_all()

    async def found(query: str) -> tuple[list[str], str | None]:
        shown = (await client(key).get(f"/api/threads?{query}")).json()
        return sorted(item["title"] for item in shown["items"]), shown["next"]

    pages = ["PAGE one", "Pages of Übersee", "the 100% page"]
    assert await found("q=page") == (pages, None)
    assert await found("q=%C3%BCBERSEE") == (["Pages of Übersee"], None)
    assert await found("q=100%25") == (["the 100% page"], None)
    assert await found("q=_") == ([], None)
    first, following = await found("q=page&limit=2")
    rest, end = await found(f"q=page&limit=2&cursor={following}")
    assert (sorted(first + rest), len(rest), end) == (pages, 1, None)
    assert (await client(keys["admin"]).get("/api/threads?q=page")).json()["items"] == []


async def _first_reply(client: httpx2.AsyncClient, thread_id: str) -> dict[str, Any]:
    """The first reply."""
    lines = (await client.get(f"/api/threads/{thread_id}")).json()["lines"]
    return next(line["body"] for line in lines if line["kind"] == "replied")

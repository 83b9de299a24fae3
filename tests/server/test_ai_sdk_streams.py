"""A turn as the AI SDK's stream tells it when something comes in between."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from interlock.core.chat.transcript import ToolRequest
from interlock.core.errors import ModelFailed
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from tests.server.chat_harness import ScriptedModel, StreamReader, run_chat_loop
from tests.support import Clock

Keys = dict[str, str]
PUBLISH = ToolRequest("c1", "cms_publish_post", '{"slug": "hello"}')


def post_message(app: RequestMiddleware, key: str, message: str, **more: object) -> StreamReader:
    """One message of a chat; its text is its id too."""
    said = {"id": message, "role": "user", "parts": [{"type": "text", "text": message}]}
    return StreamReader(app, key, "POST", "/ai-sdk/chat", id="chat", messages=[said], **more)


def read_parts(stream: StreamReader) -> list[Any]:
    frames = [block[6:] for block in stream.text.split("\n\n") if block.startswith("data: ")]
    return [frame if frame == "[DONE]" else json.loads(frame) for frame in frames]


def part_names(stream: StreamReader) -> list[str]:
    return [part if part == "[DONE]" else part["type"] for part in read_parts(stream)]


async def wait_for_part(stream: StreamReader, name: str) -> None:
    """Until a part of this name was told."""
    await stream.wait_until(lambda: name in part_names(stream))


async def read_all_parts(stream: StreamReader) -> list[str]:
    await stream.read_all()
    return part_names(stream)


async def test_turn_is_streamed_in_steps(app: RequestMiddleware, state: ServerState, keys: Keys) -> None:
    wish = ToolRequest("c1", "cms_list_posts", "{}")
    async with run_chat_loop(state, ScriptedModel(["I ", "look.", wish], ["Done."])):
        stream = await post_message(app, keys["reviewer"], "go").wait_started()
        told = await read_all_parts(stream)
    assert stream.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert stream.headers["content-type"] == "text/event-stream"
    squeezed = [name for n, name in enumerate(told) if name != "text-delta" or told[n - 1] != "text-delta"]
    assert squeezed == [
        *("start", "start-step", "text-start", "text-delta", "text-end", "tool-input-available"),
        *("tool-output-available", "finish-step", "start-step", "text-start", "text-delta", "text-end"),
        *("finish-step", "finish", "[DONE]"),
    ]


async def test_a_turn_without_a_last_word_is_finished(app: RequestMiddleware, state: ServerState, keys: Keys) -> None:
    async with run_chat_loop(state, ScriptedModel([ToolRequest("c1", "cms_list_posts", "{}")], [])):
        told = await read_all_parts(await post_message(app, keys["reviewer"], "go").wait_started())
    assert (told[-3:], "error" in told, "text-start" in told) == (["finish-step", "finish", "[DONE]"], False, False)


async def test_after_an_error_the_same_message_is_tried_again(
    app: RequestMiddleware, state: ServerState, keys: Keys
) -> None:
    wish = ToolRequest("c1", "cms_list_posts", "{}")
    async with run_chat_loop(state, ScriptedModel([wish], [ModelFailed("Out of credit.")], ["Done."])):
        first = await post_message(app, keys["reviewer"], "go").wait_started()
        assert (await read_all_parts(first))[-2:] == ["error", "[DONE]"]
        assert read_parts(first)[-2]["errorText"] == "Out of credit."
        again = await post_message(app, keys["reviewer"], "go", trigger="regenerate-message").wait_started()
        told = await read_all_parts(again)
    assert "error" not in told
    assert read_parts(again)[0] == read_parts(first)[0]
    assert [part["delta"] for part in read_parts(again)[:-1] if part["type"] == "text-delta"] == ["Done."]
    assert told.count("tool-output-available") == 1  # it was done before, and is shown again
    refused = await post_message(app, keys["reviewer"], "go", trigger="regenerate-message").wait_started()
    assert refused.status == 409


async def test_words_that_are_said_anew_replace_the_first(
    app: RequestMiddleware, state: ServerState, keys: Keys, clock: Clock
) -> None:
    more = asyncio.Event()
    async with run_chat_loop(
        state, ScriptedModel(["Half a", more, ModelFailed("Cut off.", is_retryable=True)], ["All of it."])
    ):
        stream = await post_message(app, keys["reviewer"], "go").wait_started()
        await wait_for_part(stream, "text-delta")
        more.set()
        await wait_for_part(stream, "reset-step")
        clock.advance(5_000)  # the model is tried again after a while
        told = await read_all_parts(stream)
    assert told.count("reset-step") == 1
    behind = read_parts(stream)[told.index("reset-step") :]
    assert "".join(part["delta"] for part in behind[:-1] if part["type"] == "text-delta") == "All of it."


async def test_a_new_message_ends_the_one_before(app: RequestMiddleware, state: ServerState, keys: Keys) -> None:
    more = asyncio.Event()
    async with run_chat_loop(state, ScriptedModel(["One moment", more, "."], ["Here I am."])):
        first = await post_message(app, keys["reviewer"], "go").wait_started()
        await wait_for_part(first, "text-delta")
        second = await post_message(app, keys["reviewer"], "wait").wait_started()
        assert (await read_all_parts(first))[-2:] == ["finish", "[DONE]"]
        more.set()
        assert (await read_all_parts(second))[-2:] == ["finish", "[DONE]"]
        replayed = await post_message(app, keys["reviewer"], "go").wait_started()
        assert (await read_all_parts(replayed))[-2:] == ["finish", "[DONE]"]
    assert read_parts(first)[0] != read_parts(second)[0]
    assert read_parts(replayed)[0] == read_parts(first)[0]
    assert "Here I am." not in replayed.text


async def test_a_call_that_a_new_message_withdraws_is_closed_in_the_old_one(
    app: RequestMiddleware, state: ServerState, keys: Keys
) -> None:
    async with run_chat_loop(state, ScriptedModel([PUBLISH], ["All right."])):
        first = await post_message(app, keys["reviewer"], "publish it").wait_started()
        assert (await read_all_parts(first))[-4:] == ["tool-approval-request", "finish-step", "finish", "[DONE]"]
        await (await post_message(app, keys["reviewer"], "never mind").wait_started()).read_all()
        replayed = await post_message(app, keys["reviewer"], "publish it").wait_started()
        told = await read_all_parts(replayed)
    assert told[-4:] == ["tool-output-error", "finish-step", "finish", "[DONE]"]


async def test_a_stopped_turn_says_so(app: RequestMiddleware, state: ServerState, keys: Keys) -> None:
    forever = asyncio.Event()
    async with run_chat_loop(state, ScriptedModel(["I think", forever])):
        stream = await post_message(app, keys["reviewer"], "go").wait_started()
        await wait_for_part(stream, "text-delta")
        who = await state.accounts.authenticate_key(keys["reviewer"])
        doors = await state.workspaces.services("default")
        await state.assistant.threads.stop(doors, who, stream.thread_id)
        await stream.read_all()
    parts = read_parts(stream)
    assert parts[-2] == {"type": "finish", "finishReason": "interrupted"}
    assert {"type": "reset-step"} not in parts  # what was said stays


@pytest.mark.postgres_smoke
async def test_chat_is_replayed_from_its_newest_message(app: RequestMiddleware, state: ServerState, keys: Keys) -> None:
    key = keys["reviewer"]
    assert (await StreamReader(app, key, "GET", "/ai-sdk/chat/chat/stream").wait_started()).status == 204
    async with run_chat_loop(state, ScriptedModel(["First."], ["Second."])):
        await (await post_message(app, key, "one").wait_started()).read_all()
        second = await post_message(app, key, "two").wait_started()
        await second.read_all()
        again = await StreamReader(app, key, "GET", "/ai-sdk/chat/chat/stream").wait_started()
        await again.read_all()
    assert read_parts(again)[0] == read_parts(second)[0]
    assert "Second." in again.text
    assert "First." not in again.text

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
from tests.server.chat_harness import Following, Speaker, speaking
from tests.support import Clock

Keys = dict[str, str]
PUBLISH = ToolRequest("c1", "cms_publish_post", '{"slug": "hello"}')


def posted(app: RequestMiddleware, key: str, message: str, **more: object) -> Following:
    """One message of a chat; its text is its id too."""
    said = {"id": message, "role": "user", "parts": [{"type": "text", "text": message}]}
    return Following(app, key, "POST", "/ai-sdk/chat", id="chat", messages=[said], **more)


def parts(stream: Following) -> list[Any]:
    frames = [block[6:] for block in stream.text.split("\n\n") if block.startswith("data: ")]
    return [frame if frame == "[DONE]" else json.loads(frame) for frame in frames]


def names(stream: Following) -> list[str]:
    return [part if part == "[DONE]" else part["type"] for part in parts(stream)]


async def seen(stream: Following, name: str) -> None:
    """Until a part of this name was told."""
    await stream.until_true(lambda: name in names(stream))


async def ended(stream: Following) -> list[str]:
    await stream.ended()
    return names(stream)


async def test_a_turn_is_told_in_steps(app: RequestMiddleware, site: ServerState, keys: Keys) -> None:
    wish = ToolRequest("c1", "cms_list_posts", "{}")
    async with speaking(site, Speaker(["I ", "look.", wish], ["Done."])):
        stream = await posted(app, keys["reviewer"], "go").begun()
        told = await ended(stream)
    assert stream.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert stream.headers["content-type"] == "text/event-stream"
    squeezed = [name for n, name in enumerate(told) if name != "text-delta" or told[n - 1] != "text-delta"]
    assert squeezed == [
        *("start", "start-step", "text-start", "text-delta", "text-end", "tool-input-available"),
        *("tool-output-available", "finish-step", "start-step", "text-start", "text-delta", "text-end"),
        *("finish-step", "finish", "[DONE]"),
    ]


async def test_after_an_error_the_same_message_is_tried_again(
    app: RequestMiddleware, site: ServerState, keys: Keys
) -> None:
    wish = ToolRequest("c1", "cms_list_posts", "{}")
    async with speaking(site, Speaker([wish], [ModelFailed("Out of credit.")], ["Done."])):
        first = await posted(app, keys["reviewer"], "go").begun()
        assert (await ended(first))[-2:] == ["error", "[DONE]"]
        assert parts(first)[-2]["errorText"] == "Out of credit."
        again = await posted(app, keys["reviewer"], "go", trigger="regenerate-message").begun()
        told = await ended(again)
    assert "error" not in told
    assert parts(again)[0] == parts(first)[0]
    assert [part["delta"] for part in parts(again)[:-1] if part["type"] == "text-delta"] == ["Done."]
    assert told.count("tool-output-available") == 1  # it was done before, and is shown again
    refused = await posted(app, keys["reviewer"], "go", trigger="regenerate-message").begun()
    assert refused.status == 409


async def test_words_that_are_said_anew_replace_the_first(
    app: RequestMiddleware, site: ServerState, keys: Keys, clock: Clock
) -> None:
    more = asyncio.Event()
    async with speaking(site, Speaker(["Half a", more, ModelFailed("Cut off.", is_retryable=True)], ["All of it."])):
        stream = await posted(app, keys["reviewer"], "go").begun()
        await seen(stream, "text-delta")
        more.set()
        await seen(stream, "reset-step")
        clock.forward(5_000)  # the model is tried again after a while
        told = await ended(stream)
    assert told.count("reset-step") == 1
    behind = parts(stream)[told.index("reset-step") :]
    assert "".join(part["delta"] for part in behind[:-1] if part["type"] == "text-delta") == "All of it."


async def test_a_new_message_ends_the_one_before(app: RequestMiddleware, site: ServerState, keys: Keys) -> None:
    more = asyncio.Event()
    async with speaking(site, Speaker(["One moment", more, "."], ["Here I am."])):
        first = await posted(app, keys["reviewer"], "go").begun()
        await seen(first, "text-delta")
        second = await posted(app, keys["reviewer"], "wait").begun()
        assert (await ended(first))[-2:] == ["finish", "[DONE]"]
        more.set()
        assert (await ended(second))[-2:] == ["finish", "[DONE]"]
        replayed = await posted(app, keys["reviewer"], "go").begun()
        assert (await ended(replayed))[-2:] == ["finish", "[DONE]"]
    assert parts(first)[0] != parts(second)[0]
    assert parts(replayed)[0] == parts(first)[0]
    assert "Here I am." not in replayed.text


async def test_a_call_that_a_new_message_withdraws_is_closed_in_the_old_one(
    app: RequestMiddleware, site: ServerState, keys: Keys
) -> None:
    async with speaking(site, Speaker([PUBLISH], ["All right."])):
        first = await posted(app, keys["reviewer"], "publish it").begun()
        assert (await ended(first))[-4:] == ["tool-approval-request", "finish-step", "finish", "[DONE]"]
        await (await posted(app, keys["reviewer"], "never mind").begun()).ended()
        replayed = await posted(app, keys["reviewer"], "publish it").begun()
        told = await ended(replayed)
    assert told[-4:] == ["tool-output-error", "finish-step", "finish", "[DONE]"]


async def test_a_stopped_turn_says_so(app: RequestMiddleware, site: ServerState, keys: Keys) -> None:
    forever = asyncio.Event()
    async with speaking(site, Speaker(["I think", forever])):
        stream = await posted(app, keys["reviewer"], "go").begun()
        await seen(stream, "text-delta")
        who = await site.accounts.authenticate_key(keys["reviewer"])
        doors = await site.workspaces.services("default")
        await site.assistant.threads.stop(doors, who, stream.thread_id)
        await stream.ended()
    assert parts(stream)[-2] == {"type": "finish", "finishReason": "interrupted"}


@pytest.mark.postgres_smoke
async def test_a_chat_is_told_again_from_its_newest_message(
    app: RequestMiddleware, site: ServerState, keys: Keys
) -> None:
    key = keys["reviewer"]
    assert (await Following(app, key, "GET", "/ai-sdk/chat/chat/stream").begun()).status == 204
    async with speaking(site, Speaker(["First."], ["Second."])):
        await (await posted(app, key, "one").begun()).ended()
        second = await posted(app, key, "two").begun()
        await second.ended()
        again = await Following(app, key, "GET", "/ai-sdk/chat/chat/stream").begun()
        await again.ended()
    assert parts(again)[0] == parts(second)[0]
    assert "Second." in again.text
    assert "First." not in again.text

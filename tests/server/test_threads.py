"""A thread as it is shown: the calls that the model wrote, and nothing in them that is secret."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from interlock.core.prompt import Wish
from interlock.web.entrance import Entrance
from interlock.web.site import Site
from tests.server.chats import Following, Speaker, speaking
from tests.server.conftest import As

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
    app: Entrance, site: Site, keys: dict[str, str], client: As, text: str, shown: dict[str, object] | None
) -> None:
    key = keys["reviewer"]
    async with speaking(site, Speaker(["I post it.", Wish("c1", "http_post", text)], ["Done."])):
        stream = await Following(app, key, "POST", "/api/chat", message="post it").begun()
        while (await stream.next()).name != "tool_call_start":
            pass
        thread_id = stream.thread_id
        whole = await _replied(client(key), thread_id)
        await client(key).post(f"/api/threads/{thread_id}/stop")
        await stream.ended()
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
    app: Entrance, site: Site, keys: dict[str, str], client: As
) -> None:
    key = keys["reviewer"]
    wishes = [Wish("c1", "cms_read_post", '{"slug": "x"}'), Wish("c2", "no_such_tool", "not even JSON")]
    async with speaking(site, Speaker(["Look.", *wishes], ["Done."])):
        stream = await Following(app, key, "POST", "/api/chat", message="look").begun()
        await stream.ended()
        whole = await _replied(client(key), stream.thread_id)
    assert [call["args"] for call in whole["calls"]] == [{"slug": "x"}, "not even JSON"]
    assert {"wishes", "opaque", "seen"}.isdisjoint(whole)


# R4
async def test_the_end_of_a_turn_names_the_reply_that_it_came_to(
    app: Entrance, site: Site, keys: dict[str, str], client: As
) -> None:
    key = keys["reviewer"]
    async with speaking(site, Speaker(["Look.", Wish("c1", "cms_list_pages", "{}")], ["Done."])):
        stream = await Following(app, key, "POST", "/api/chat", message="look").begun()
        events = await stream.ended()
    lines = (await client(key).get(f"/api/threads/{stream.thread_id}")).json()["lines"]
    (named,) = [line for line in lines if str(line["n"]) == events[-1].data["message_id"]]
    assert (events[-1].name, named["kind"], named["body"]["text"]) == ("done", "replied", "Done.")


async def _replied(client: httpx2.AsyncClient, thread_id: str) -> dict[str, Any]:
    """The first reply."""
    lines = (await client.get(f"/api/threads/{thread_id}")).json()["lines"]
    return next(line["body"] for line in lines if line["kind"] == "replied")

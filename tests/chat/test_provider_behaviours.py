"""What a thread makes of everything that a provider may send, over both interfaces of OpenAI, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from interlock.chat.providers import open_model
from interlock.core.chat.thread import Thread
from interlock.core.chat.transcript import ModelReply
from tests.chat.provider_behaviours import BEHAVIOURS, CHAT, RESPONSES, Behaviour, Interface, Result, table
from tests.chat_harness import ChatHarness, open_chat
from tests.databases import SqliteFile
from tests.fakes.model_server import ModelServer, run_models
from tests.support import Clock

MODELS = {CHAT: "openai-chat:m", RESPONSES: "openai-responses:m"}
TIMEOUT = 30  # seconds without a byte
SHORT_TIMEOUT = 1  # the same, where the provider falls silent
DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("wire", [CHAT, RESPONSES], ids=["chat", "responses"])
@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour.name)
async def test_each_behaviour_has_the_result_of_the_table(
    behaviour: Behaviour, wire: Interface, tmp_path: Path, clock: Clock
) -> None:  # R3 R6 R35
    expected = behaviour.chat if wire is CHAT else behaviour.responses
    async with run_models(lambda _: ModelReply("Done.")) as server:
        server.raw_answers.extend(behaviour.send(wire))
        options = {"url": f"{server.url}/v1", "key": "k", "timeout": timeout_for(server)}
        model: Any = open_model(MODELS[wire], {"openai": options})
        async with open_chat(SqliteFile(tmp_path / "interlock.db"), clock, main=model) as chat:
            thread = await chat.say("Go")
            seen = await follow(chat, thread, server)
            assert expected.end in seen.end
            assert replace(seen, end=expected.end) == expected
            await chat.say("Thanks", thread)  # the conversation is still one that the provider accepts
            assert (await chat.last_end(thread))["status"] == "done"
            assert server.violations == []


def test_the_table_is_in_the_docs() -> None:
    message = "put it there: python -m tests.chat.provider_behaviours"
    assert table() in (DOCS / "models.md").read_text(), message


async def follow(chat: ChatHarness, thread: Thread, server: ModelServer) -> Result:
    """Approve every card and let the time of every retry come, until the turn has ended."""
    waits: list[int] = []
    while (now := await chat.store.threads.get("default", thread.id)).status == "waiting":
        if cards := await chat.pending_approvals(thread):
            for card in cards:
                await chat.approve(card)
        else:
            wait = cast(int, now.due_at) - chat.clock()
            waits.append(wait // 1000)
            await chat.advance(wait)
    ended = await chat.last_end(thread)
    texts = [str(entry.body["text"]) for entry in await chat.entries(thread, "replied")]
    return Result(
        text=texts[-1] if texts else "",
        told=tuple(str(entry.body["status"]) for entry in await chat.entries(thread, "resulted")),
        ran=tuple(name for name, _ in chat.effects.calls),
        end="done" if ended["status"] == "done" else str(ended["reason"]),
        waits=tuple(waits),
        requests=len(server.turns),
    )


def timeout_for(server: ModelServer) -> int:
    return SHORT_TIMEOUT if any(answer.ending == "hang" for answer in server.raw_answers) else TIMEOUT

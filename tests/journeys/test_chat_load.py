"""Two hundred people chat at once, and a few decide: every thread ends well, and each effect happens once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import httpx2

from tests.journeys.chat_client import ChatServer, Json, ScriptedModel

THREADS = 200
DECIDERS = 8
TIME_LIMIT = 100.0  # seconds; on an idle machine it takes a tenth of that


async def test_two_hundred_threads_at_once_end_well(server: ChatServer) -> None:  # R3 R6
    server.models.reply = ScriptedModel()
    begun, cards = len(server.models.turns), asyncio.Queue[Json]()
    headers = {"authorization": f"Bearer {server.keys['reviewer']}"}
    limits = httpx2.Limits(max_connections=THREADS + DECIDERS)
    async with (
        httpx2.AsyncClient(base_url=server.server.url, headers=headers, timeout=TIME_LIMIT, limits=limits) as client,
        asyncio.timeout(TIME_LIMIT),
        asyncio.TaskGroup() as group,
    ):
        deciders = [group.create_task(decide(client, cards)) for _ in range(DECIDERS)]
        chats = [group.create_task(chat(client, number, cards)) for number in range(THREADS)]
        threads = await asyncio.gather(*chats)
        for each in deciders:
            each.cancel()
    titles = Counter(body["title"] for body in server.items("objective").values())
    assert [titles[f"Crowd {number}"] for number in range(THREADS)] == [1] * THREADS
    assert len(set(threads)) == THREADS
    assert server.models.violations == []
    assert Counter(turn.is_complete for turn in server.models.turns[begun:]) == {True: 2 * THREADS}
    for thread in threads[::20]:
        kinds = [line["kind"] for line in server.bob.thread(thread)["lines"]]
        assert kinds == ["said", "replied", "asked", "decided", "resulted", "replied", "ended"]


async def chat(client: httpx2.AsyncClient, number: int, cards: asyncio.Queue[Json]) -> str:
    """Gives the thread once it is done."""
    body = {"message": f'create an objective "Crowd {number}"', "agent": ("openai", "anthropic")[number % 2]}
    seen = list[str]()
    async with client.stream("POST", "/api/chat", json=body) as response:
        assert response.status_code == 200
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                data = json.loads(line.removeprefix("data: "))
                seen.append(data["type"])
                if data["type"] == "approval_request":
                    cards.put_nowait(data["approval"])
    ends = [name for name in seen if name != "delta"]
    assert ends == ["tool_call_start", "approval_request", "approval_resolved", "tool_call_result", "done"]
    return str(response.headers["x-thread-id"])


async def decide(client: httpx2.AsyncClient, cards: asyncio.Queue[Json]) -> None:
    while True:
        card = await cards.get()
        body = {"kind": "approve", "args_sha256": card["args_sha256"]}
        answer = await client.post(f"/api/approvals/{card['id']}/decision", json=body)
        assert answer.status_code == 200, answer.text

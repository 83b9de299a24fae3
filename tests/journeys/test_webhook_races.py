"""The page and a webhook decide the same call at the same moment, on a real server: one of them, and both see it."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from interlock.notify.channels.webhook import WebhookSigner
from tests.databases import Database
from tests.fakes.http_receiver import ReceivedRequest, Receiver, run_receiver
from tests.interlock_server import create_keys, run_server

ROUNDS = 20
TIMEOUT = 60.0  # seconds, as a last bound
SECRET = f"whsec_{base64.b64encode(b'of the test, and of nobody else!').decode()}"
SIGNER = WebhookSigner([SECRET])
CONFIGURATION = """
channels:
  hook: {{kind: webhook, url: "{url}", secret: "{secret}", allow_private: true, acts_as: bob}}
routing: {{default_channel: hook}}
"""
JSON = {"content-type": "application/json"}
CALL = {"tool": "delete_file", "args": {"path": "/tmp/x"}, "run_id": "run", "effect": "destructive"}


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with run_receiver() as made:
        yield made


async def test_the_page_and_a_webhook_in_a_race_have_one_winner_that_both_see(
    database: Database, tmp_path: Path, receiver: Receiver
) -> None:  # R24 R25 R47
    keys = await create_keys(database.url)
    (tmp_path / "interlock.yaml").write_text(CONFIGURATION.format(url=receiver.url, secret=SECRET))
    winners = []
    with run_server(database.url, tmp_path) as server:
        async with httpx2.AsyncClient(base_url=server.url, timeout=TIMEOUT) as http:
            for number in range(ROUNDS):
                winners.append(await _race(http, keys, receiver, number))
        assert server.stop() == 0
    assert len(winners) == ROUNDS
    assert set(winners) <= {"ada", "bob"}


async def _race(http: httpx2.AsyncClient, keys: dict[str, str], receiver: Receiver, number: int) -> str:
    """Who won this one. The page rejects, the webhook approves, and whoever is late hears what stands."""
    agent, ada = ({"authorization": f"Bearer {keys[role]}"} for role in ("agent", "admin"))
    told = (await http.post("/api/calls", json={**CALL, "call_id": f"c{number}"}, headers=agent)).json()
    approval_id = told["approval_id"]
    asked = await _received(receiver, lambda body: body == ("approval.pending", approval_id))
    digest = asked.json["data"]["args_sha256"]
    body = json.dumps({"approval_id": approval_id, "decision": {"kind": "approve", "args_sha256": digest}})
    signed = SIGNER.headers(f"msg_{number}", body, int(time.time() * 1000))
    path, said = f"/api/approvals/{approval_id}/decision", {"kind": "reject", "args_sha256": digest}
    page, hook = await asyncio.gather(
        _after(number % 5, http.post(path, json=said, headers=ada)),
        _after(0, http.post("/channels/hook/callback", content=body, headers={**signed, **JSON})),
    )
    assert sorted((page.status_code, hook.status_code)) == [200, 409]
    late = page if page.status_code == 409 else hook
    assert late.json()["error"] == "already_decided"
    winner, status = ("bob", "approved") if late is page else ("ada", "rejected")
    assert late.json()["decision"]["by"] == winner
    shown = (await http.get(f"/api/approvals/{approval_id}", headers=ada)).json()
    assert (shown["status"], shown["decision"]["by"]) == (status, winner)
    ended = (await _received(receiver, lambda body: body == ("approval.ended", approval_id))).json["data"]
    assert (ended["status"], ended["decision"]["by"]) == (status, winner)
    assert ended["decision"]["via"] == ("hook" if winner == "bob" else shown["decision"]["via"])
    return winner


async def _after(milliseconds: int, request: Awaitable[httpx2.Response]) -> httpx2.Response:
    """Later by so little that now the one is first and now the other."""
    await asyncio.sleep(milliseconds / 1000)
    return await request


async def _received(receiver: Receiver, wanted: Callable[[tuple[str, str]], Any]) -> ReceivedRequest:
    async with asyncio.timeout(TIMEOUT):
        while True:
            for heard in reversed(receiver.requests):
                if wanted((heard.json["type"], heard.json["data"].get("id", ""))):
                    return heard
            await asyncio.sleep(0.01)

"""Slack and a server in a process of its own, as people start it: both ways that a click can come."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import build_services
from interlock.core.ports import User
from tests.fakes.slack import APP, BOT, SECRET, Slack, buttons, served
from tests.interlock_server import make_keys, serving

CONFIGURATION = """
channels:
  chat: {{kind: slack, token: "${{TOKEN}}", signing_secret: "{secret}", app_token: "{app}",
    url: "{url}/api/", allow_private: true}}
routing: {{default_channel: chat}}
"""


async def prepared(database: str) -> dict[str, str]:
    parts = build_services(database)
    await parts.store.open()
    try:
        keys = await make_keys(parts)
        await parts.store.put_user("default", User("bob", "reviewer", email="bob@example.com"), "ada")
        return keys
    finally:
        await parts.store.close()


@pytest.mark.parametrize("way", ["request", "connection"])
async def test_a_call_is_decided_in_slack_and_the_agent_goes_on(tmp_path: Path, way: str) -> None:  # R25
    database = f"sqlite:///{tmp_path / 'interlock.db'}"
    keys = await prepared(database)
    async with served(Slack(lambda: time.time_ns() // 1_000_000)) as slack:
        slack.add_room("approvals")
        bob = slack.add_user("bob", "bob@example.com")
        text = CONFIGURATION.format(secret=SECRET, app=APP, url=slack.url)
        (tmp_path / "interlock.yaml").write_text(text)
        running = serving(database, tmp_path, environ={"TOKEN": BOT})
        server = await asyncio.to_thread(running.__enter__)
        try:
            async with httpx2.AsyncClient(base_url=server.url, timeout=30) as http:
                await _decided(http, slack, keys["agent"], bob, way)
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)
    log = (tmp_path / "serve.log").read_text()
    assert [secret for secret in (BOT, APP, SECRET) if secret in log] == []


async def _decided(http: httpx2.AsyncClient, slack: Slack, key: str, bob: str, way: str) -> None:
    headers = {"authorization": f"Bearer {key}"}
    body: Any = {"tool": "pay_out", "args": {"amount": 7}, "run_id": "run", "call_id": "call", "effect": "write"}
    asked = (await http.post("/api/calls", json=body, headers=headers)).json()
    assert asked["outcome"] == "waiting"
    await slack.until(lambda: len(slack.shown) == 1)
    payload = slack.click(bob, "approve")
    if way == "request":
        post = slack.signed(payload)
        clicked = await http.post("/channels/chat/callback", content=post.body, headers=dict(post.headers))
        assert (clicked.status_code, clicked.content) == (200, b"")
    else:
        assert await slack.deliver(payload) == {}
    told = (await http.get(f"/api/calls/{asked['approval_id']}?wait=30", headers=headers)).json()
    assert (told["outcome"], told["status"]) == ("proceed", "approved")
    await slack.until(lambda: not list(buttons(slack.shown[0])))
    assert "bob approved it through chat." in str(slack.shown[0]["blocks"])
    assert slack.refusals == []

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
from tests.fakes.slack import APP, BOT, SECRET, FakeSlack, buttons, run_slack
from tests.interlock_server import make_keys, run_server

CONFIGURATION = """
channels:
  chat: {{kind: slack, token: "${{TOKEN}}", signing_secret: "{secret}", app_token: "{app}",
    url: "{url}/api/", allow_private: true}}
routing: {{default_channel: chat}}
"""


async def prepare_database(database: str) -> dict[str, str]:
    services = build_services(database)
    await services.store.open()
    try:
        keys = await make_keys(services)
        await services.store.put_user("default", User("bob", "reviewer", email="bob@example.com"), "ada")
        return keys
    finally:
        await services.store.close()


@pytest.mark.parametrize("way", ["request", "connection"])
async def test_a_call_is_decided_in_slack_and_the_agent_goes_on(tmp_path: Path, way: str) -> None:  # R25
    database = f"sqlite:///{tmp_path / 'interlock.db'}"
    keys = await prepare_database(database)
    async with run_slack(FakeSlack(lambda: time.time_ns() // 1_000_000)) as slack:
        slack.add_channel("approvals")
        bob = slack.add_user("bob", "bob@example.com")
        text = CONFIGURATION.format(secret=SECRET, app=APP, url=slack.url)
        (tmp_path / "interlock.yaml").write_text(text)
        running = run_server(database, tmp_path, environ={"TOKEN": BOT})
        server = await asyncio.to_thread(running.__enter__)
        try:
            async with httpx2.AsyncClient(base_url=server.url, timeout=30) as http:
                await _decide_by_click(http, slack, keys["agent"], bob, way)
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)
    log = (tmp_path / "serve.log").read_text()
    assert [secret for secret in (BOT, APP, SECRET) if secret in log] == []


async def _decide_by_click(http: httpx2.AsyncClient, slack: FakeSlack, key: str, bob: str, way: str) -> None:
    headers = {"authorization": f"Bearer {key}"}
    body: Any = {"tool": "pay_out", "args": {"amount": 7}, "run_id": "run", "call_id": "call", "effect": "write"}
    asked = (await http.post("/api/calls", json=body, headers=headers)).json()
    assert asked["outcome"] == "waiting"
    await slack.wait_until(lambda: len(slack.all_messages) == 1)
    payload = slack.click(bob, "approve")
    if way == "request":
        post = slack.sign(payload)
        clicked = await http.post("/channels/chat/callback", content=post.body, headers=dict(post.headers))
        assert (clicked.status_code, clicked.content) == (200, b"")
    else:
        assert await slack.deliver(payload) == {}
    told = (await http.get(f"/api/calls/{asked['approval_id']}?wait=30", headers=headers)).json()
    assert (told["outcome"], told["status"]) == ("proceed", "approved")
    await slack.wait_until(lambda: not list(buttons(slack.all_messages[0])))
    assert "bob approved it through chat." in str(slack.all_messages[0]["blocks"])
    assert slack.refusals == []

"""The web page, Slack and a mail decide the same call at the same moment, on a real server: one winner, seen by all."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from interlock.app.bootstrap import build_services
from interlock.core.ports import User
from tests.databases import Database
from tests.fakes.mail_server import MailServer, mail_server
from tests.fakes.slack import BOT, SECRET, FakeSlack, buttons, run_slack
from tests.interlock_server import make_keys, run_server

ROUNDS = 20
TIMEOUT = 60.0  # seconds, as a last bound
CONFIGURATION = """
server: {{public_url: "http://127.0.0.1:{port}"}}
channels:
  chat: {{kind: slack, token: "{token}", signing_secret: "{secret}", url: "{slack}/api/", allow_private: true,
    per_minute: 1000}}
  mail: {{kind: email, host: 127.0.0.1, port: {smtp}, tls: none, from: "interlock@example.com", per_minute: 1000}}
routing: {{default_channel: chat, priority_map: {{low: [chat, mail], medium: [chat, mail], high: [chat, mail]}}}}
"""
CALL = {"tool": "delete_file", "args": {"path": "/tmp/x"}, "run_id": "run", "effect": "destructive"}
WORDS = {"reject": "rejected", "approve": "approved"}
T = TypeVar("T")


@dataclass
class DecisionSurfaces:
    """ada is at the page, bob in Slack, and eve has a mail."""

    page: httpx2.AsyncClient
    mailed: httpx2.AsyncClient
    agent: httpx2.AsyncClient
    slack: FakeSlack
    bob: str
    mails: MailServer

    def link(self, approval_id: str) -> str:
        """The token of eve's mail about this call, if it came."""
        found = [re.search(rf"/a/{approval_id}\?t=(\S+)", mail.text) for mail in self.mails.mails_to("eve@example.com")]
        return next((each[1] for each in found if each), "")

    def shown(self, approval_id: str) -> dict[str, Any] | None:
        """What Slack shows of this call."""
        return next((each for each in self.slack.all_messages if approval_id in str(each["blocks"])), None)

    def decided_mails(self, approval_id: str, words: str) -> list[str]:
        texts = [mail.text for mail in self.mails.mails_to("eve@example.com")]
        return [text for text in texts if approval_id in text and words in text]


@pytest.mark.timeout(300)
async def test_the_page_slack_and_a_mail_in_a_race_have_one_winner_that_all_three_show(
    database: Database, tmp_path: Path
) -> None:  # R24, R25, R27, R47
    keys = await prepare_database(database.url)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with mail_server(tmp_path, tls="none") as mails:
        async with run_slack(FakeSlack(lambda: time.time_ns() // 1_000_000)) as slack:
            slack.add_channel("approvals")
            bob = slack.add_user("bob", "bob@example.com")
            text = CONFIGURATION.format(port=port, token=BOT, secret=SECRET, slack=slack.url, smtp=mails.port)
            (tmp_path / "interlock.yaml").write_text(text)
            running = run_server(database.url, tmp_path, port=port)
            server = await asyncio.to_thread(running.__enter__)
            try:
                clients = [client(server.url, keys.get(role, "")) for role in ("admin", "", "agent")]
                surfaces = DecisionSurfaces(*clients, slack, bob, mails)
                winners = [await race(surfaces, number) for number in range(ROUNDS)]
                for each in clients:
                    await each.aclose()
            finally:
                await asyncio.to_thread(running.__exit__, None, None, None)
            assert slack.refusals == []
    assert len(winners) == ROUNDS
    assert set(winners) <= {"ada", "bob", "eve"}


async def prepare_database(database: str) -> dict[str, str]:
    services = build_services(database)
    await services.store.open()
    try:
        keys = await make_keys(services)
        for name in ("bob", "eve"):
            await services.store.put_user("default", User(name, "reviewer", email=f"{name}@example.com"), "ada")
        return keys
    finally:
        await services.store.close()


def client(url: str, key: str) -> httpx2.AsyncClient:
    headers = {"authorization": f"Bearer {key}"} if key else {"origin": url}
    return httpx2.AsyncClient(base_url=url, timeout=TIMEOUT, headers=headers)


async def race(on: DecisionSurfaces, number: int) -> str:
    """Who won. The page rejects, the others approve; now the one begins a little later, and now the other."""
    asked = (await on.agent.post("/api/calls", json={**CALL, "call_id": f"c{number}"})).json()
    approval_id = asked["approval_id"]
    message = await wait_for_value(lambda: on.shown(approval_id))
    link = await wait_for_value(lambda: on.link(approval_id))
    if number == 0:
        await sign_in(on, link)
    before = (await on.page.get(f"/api/approvals/{approval_id}")).json()
    said = {"args_sha256": before["args_sha256"]}
    path = f"/api/approvals/{approval_id}/decision"
    click = on.slack.sign(on.slack.click(on.bob, "approve", message))
    whispers = len(on.slack.ephemerals)
    page, mail, slack = await asyncio.gather(
        after(head_start(number, 0), on.page.post(path, json={"kind": "reject", **said})),
        after(
            head_start(number, 1),
            on.mailed.post(path, json={"kind": "approve", **said}, headers={"interlock-link": link}),
        ),
        after(
            head_start(number, 2),
            on.agent.post("/channels/chat/callback", content=click.body, headers=dict(click.headers)),
        ),
    )
    assert slack.status_code == 200
    assert {page.status_code, mail.status_code} <= {200, 409}
    after_all = (await on.page.get(f"/api/approvals/{approval_id}")).json()
    winner, words = after_all["decision"]["by"], WORDS[after_all["decision"]["kind"]]
    won = {"ada": page.status_code == 200, "eve": mail.status_code == 200, "bob": winner == "bob"}
    assert [name for name, is_first in won.items() if is_first] == [winner]
    assert (winner == "ada") == (words == "rejected")
    if winner != "bob":
        await wait_for_value(lambda: len(on.slack.ephemerals) == whispers + 1)
    told = await wait_for_value(lambda: (now := on.shown(approval_id)) and not list(buttons(now)) and now)
    assert f"{winner} {words} it" in str(told["blocks"])
    if winner != "eve":
        await wait_for_value(lambda: on.decided_mails(approval_id, f"{winner} {words} it"))
    return winner


async def sign_in(on: DecisionSurfaces, link: str) -> None:
    """By a code that is mailed to whom the link is for."""
    asked = await on.mailed.post("/api/links/code", json={"token": link})
    assert asked.status_code == 200, asked.text

    def code() -> str:
        found = [re.search(r"^    (\d{8})$", mail.text, re.M) for mail in on.mails.mails_to("eve@example.com")]
        return next((each[1] for each in found if each), "")

    given = {"token": link, "ticket": asked.json()["ticket"], "code": await wait_for_value(code)}
    entered = await on.mailed.post("/api/links/session", json=given)
    assert entered.status_code == 200, entered.text


def head_start(number: int, place: int) -> int:
    """In each round one of them does not wait for so many milliseconds; those who take longer to be heard win too."""
    return 0 if number % 3 == place else 2 * number


async def after(milliseconds: int, request: Awaitable[httpx2.Response]) -> httpx2.Response:
    await asyncio.sleep(milliseconds / 1000)
    return await request


async def wait_for_value(look: Callable[[], T]) -> T:
    async with asyncio.timeout(TIMEOUT):
        while not (found := look()):  # noqa: ASYNC110  what is waited for is elsewhere
            await asyncio.sleep(0.01)
    return found

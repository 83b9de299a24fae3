"""A server with Slack as its channel, users in both, and their clicks and forms."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from interlock.app.bootstrap import AppServices
from interlock.config.models import ChannelSettings, RoutingSettings, ServerSettings, Settings
from interlock.core.call import QUESTION_TOOL, ToolSpec
from interlock.core.outcome import Waiting
from interlock.core.ports import User
from interlock.notify.dispatcher import Dispatcher
from interlock.server.app import build_app
from interlock.server.serve import make_server_state
from interlock.server.state import ServerState
from tests.databases import Database
from tests.fakes.slack import APP, BOT, SECRET, FakeSlack, Json, OpenView, SignedRequest, run_slack
from tests.support import Clock, call, open_services, propose_pending, status

PUBLIC = "https://interlock.example"
ASK = ToolSpec(QUESTION_TOOL, "read", decisions=("respond",), describe="{question}")
PAY = ToolSpec(
    "pay_out",
    "write",
    schema={
        "type": "object",
        "properties": {
            "amount": {"type": "integer", "minimum": 1},
            "recipient": {"type": "string"},
            "currency": {"enum": ["EUR", "USD"]},
            "urgent": {"type": "boolean"},
            "note": {"type": "string"},
            "key": {"type": "string"},
            "splits": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["amount", "recipient"],
        "additionalProperties": False,
    },
    describe="Pay {amount} to {recipient}",
    secret=("/key",),
)
PAY_ARGS = {
    "amount": 123456789012345678901234567890,
    "recipient": "ada",
    "currency": "EUR",
    "urgent": False,
    "key": "hunter2-of-the-call",
    "splits": [1, 2],
}


@dataclass
class SlackScenario:
    """`users` maps the names of accounts to their Slack ids."""

    slack: FakeSlack
    services: AppServices
    state: ServerState
    dispatcher: Dispatcher
    http: httpx2.AsyncClient
    clock: Clock
    users: dict[str, str]

    async def sweep(self) -> int:
        await self.state.workspaces.refresh("default")
        return await self.dispatcher.sweep()

    async def ask(self, number: int | str = 1, spec: ToolSpec = PAY, **more: Any) -> str:
        """Propose a call that needs a decision and dispatch it to Slack."""
        if spec is PAY:
            more = {"args": PAY_ARGS, **more}
        approval_id = await propose_pending(self.services, number, spec, **more)
        await self.sweep()
        return approval_id

    async def question(self, **asked: object) -> str:
        """Ask an agent's question and dispatch it to Slack."""
        outcome = await self.services.gate.ask(call(args={"question": "Which?", **asked}, tool=QUESTION_TOOL), ASK)
        assert isinstance(outcome, Waiting), outcome
        await self.sweep()
        return outcome.approval_id

    async def post(self, post: SignedRequest) -> httpx2.Response:
        headers = {name.encode(): value.encode("latin-1") for name, value in post.headers.items()}
        return await self.http.post("/channels/slack/callback", content=post.body, headers=headers)

    async def click(self, name: str, action: str, message: Json | None = None) -> httpx2.Response:
        user = self.users.get(name, name)
        return await self.post(self.slack.sign(self.slack.click(user, action, message)))

    async def open_form(self, name: str, action: str) -> OpenView:
        """Click a button and return the form that it opens."""
        before = set(self.slack.views)
        answer = await self.click(name, action)
        assert (answer.status_code, answer.content) == (200, b"")
        [new] = set(self.slack.views) - before
        return self.slack.views[new]

    async def submit(
        self, form: OpenView, values: Mapping[str, object] | None = None, user: str = ""
    ) -> Mapping[str, str]:
        """Submit a form; returns the errors by field, empty if it was accepted."""
        answer = await self.post(self.slack.sign(self.slack.submit(form.id, values, user)))
        assert answer.status_code == 200, answer.text
        self.slack.handle_view_response(form.id, answer.content)
        labels = {each.get("block_id"): each["label"]["text"] for each in form.view["blocks"] if "label" in each}
        return {labels[block]: said for block, said in form.errors.items()}

    async def status(self, approval_id: str) -> str:
        return await status(self.services, approval_id)

    async def events(self, *kinds: str) -> list[tuple[str, str, Json]]:
        """Kind, actor and content of those entries of the ledger."""
        entries = [entry async for chunk in self.services.store.entries("default") for entry in chunk]
        return [(e.kind, e.actor, json.loads(e.content or b"{}")) for e in entries if e.kind in kinds]

    async def decision(self, approval_id: str) -> tuple[str, str, str]:
        """Kind, reviewer and channel of the decision."""
        decided = (await self.services.store.get("default", approval_id)).approval.decision
        assert decided is not None
        return decided.kind, decided.by, decided.via

    @property
    def ephemeral_texts(self) -> list[str]:
        return [each["text"] for each in self.slack.ephemerals]


@asynccontextmanager
async def open_slack_scenario(
    database: Database, clock: Clock, policy: str = "", **settings: object
) -> AsyncIterator[SlackScenario]:
    """`settings` are those of the channel; its token, secret and address are there already."""
    async with run_slack(FakeSlack(clock)) as slack, open_services(database, clock, policy) as services:
        slack.add_channel("approvals")
        own = {"token": BOT, "signing_secret": SECRET, "url": f"{slack.url}/api/", "allow_private": True}
        given = {key: value for key, value in {**own, **settings}.items() if value is not None}
        configured = Settings(
            server=ServerSettings(public_url=PUBLIC),
            channels={"slack": ChannelSettings("slack", given)},
            routing=RoutingSettings("slack", team_routing={"finance": ("#finance-ops",)}),
        )
        state = await make_server_state(configured, services)
        users = {}
        for name, role, teams in (
            ("ada", "admin", ()),
            ("bob", "reviewer", ("finance",)),
            ("eve", "reviewer", ()),
            ("vic", "viewer", ()),
        ):
            await services.store.put_user(
                "default", User(name, role, teams=frozenset(teams), email=f"{name}@example.com"), "ada"
            )
            users[name] = slack.add_user(name, f"{name}@example.com")
        transport = httpx2.ASGITransport(app=build_app(state))
        async with (
            state.notifications.open(),
            httpx2.AsyncClient(transport=transport, base_url=PUBLIC, timeout=None) as http,
        ):
            scenario = SlackScenario(slack, services, state, state.notifications.make_dispatcher(), http, clock, users)
            await scenario.sweep()  # from here on people are told
            yield scenario


def socket_mode_settings() -> dict[str, object]:
    """Settings for a server without a public address."""
    return {"signing_secret": None, "app_token": APP}

"""Only what is meant is allowed: every route by everybody by ours, theirs and nobody's, as the document lists them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

import pytest

from interlock.config.models import ChannelSettings, Settings, WorkspaceSettings
from interlock.server.http import AsgiApp, Header, Receive, Scope, Send
from tests.server import access_matrix
from tests.server.access_matrix import OURS, THEIRS, Operation, TwoWorkspaces
from tests.server.asgi_request import send_request

Check = Callable[[TwoWorkspaces, Operation], AsyncGenerator[str, None]]


@pytest.fixture
def settings() -> Settings:
    """Each workspace has a channel at whose other end there is nobody."""
    nowhere = {"routing_key": "0" * 32, "url": "http://127.66.66.66/", "allow_private": True}
    theirs = WorkspaceSettings({access_matrix.THEIR_CHANNEL: ChannelSettings("pagerduty", nowhere)})
    return Settings(
        channels={access_matrix.CHANNEL: ChannelSettings("pagerduty", nowhere)}, workspaces={THEIRS: theirs}
    )


async def problems(two_workspaces: TwoWorkspaces, check: Check) -> str:
    """One to a line."""
    return "\n".join(
        [
            problem
            for each in access_matrix.operations(two_workspaces.document)
            async for problem in check(two_workspaces, each)
        ]
    )


async def has_problem(problems: AsyncGenerator[str, None]) -> bool:
    """The first problem is enough: nothing is asked after it."""
    async with aclosing(problems):
        return await anext(problems, None) is not None


async def test_every_route_refuses_those_whom_it_is_not_for(two_workspaces: TwoWorkspaces) -> None:  # R21, R48
    assert await problems(two_workspaces, access_matrix.refusals) == ""


async def test_every_route_serves_those_whom_it_is_for_with_what_is_theirs(
    two_workspaces: TwoWorkspaces,
) -> None:  # R48
    """Lists, searches, figures and streams as well: all of the other workspace carries one word, which never shows."""
    assert await problems(two_workspaces, access_matrix.permissions) == ""


async def test_what_one_agent_proposed_is_not_there_for_the_key_of_another(
    two_workspaces: TwoWorkspaces,
) -> None:  # R48
    """For each route: keys that are bound to the agent whose call it is, to another agent, and to none."""
    await two_workspaces.add_keys()
    assert await problems(two_workspaces, access_matrix.ownership) == ""


async def test_in_a_list_of_decisions_what_is_theirs_is_as_unknown_as_nothing(two_workspaces: TwoWorkspaces) -> None:
    ours, theirs = [await access_matrix.approval(two_workspaces, workspace, "") for workspace in (OURS, THEIRS)]
    nothing = theirs._replace(id=access_matrix.NOTHING)
    body = {"decisions": [access_matrix.decision(each) for each in (theirs, nothing, ours)]}
    headers = {**await two_workspaces.headers(OURS, "reviewer"), "content-type": "application/json"}
    got = await send_request(two_workspaces.app, "POST", "/api/approvals/bulk", headers, json.dumps(body).encode())
    other, unknown, own = got.json()["results"]
    assert own["ok"]
    assert other == json.loads(json.dumps(unknown).replace(nothing.id, theirs.id))
    assert other["error"] == "not_found"


@pytest.mark.postgres_smoke
async def test_an_id_that_is_taken_elsewhere_is_as_free_as_any_other(two_workspaces: TwoWorkspaces) -> None:
    """Whoever chooses ids and names learns nothing from them about other workspaces."""
    theirs = await access_matrix.request_to_decide(two_workspaces, THEIRS, "")
    body = {"requestId": theirs.id, "actionType": "config_update", "payload": {"key": "ours", "value": "1"}}
    assert (await two_workspaces.request_done(OURS, "agent", "POST", "/requests", body))["status"] == "pending"
    for workspace, key in ((OURS, "ours"), (THEIRS, THEIRS)):
        headers = {"authorization": f"Bearer {two_workspaces.keys[workspace]['viewer']}"}
        shown = (await send_request(two_workspaces.app, "GET", f"/api/approvals/{theirs.id}", headers)).json()
        assert shown["args"]["key"].startswith(key)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_route_without_its_check_would_be_noticed(two_workspaces: TwoWorkspaces) -> None:
    """The red control, for each route: whoever asks is taken for somebody who may."""
    unnoticed = []
    for operation in access_matrix.operations(two_workspaces.document):
        if operation.roles is not None:
            role = min(operation.roles)
            lax = replace(
                two_workspaces, app=ImpersonatingApp(two_workspaces.app, await two_workspaces.headers(OURS, role))
            )
            unnoticed += [] if await has_problem(access_matrix.refusals(lax, operation)) else [operation.name]
    assert unnoticed == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_route_that_looks_into_another_workspace_would_be_noticed(two_workspaces: TwoWorkspaces) -> None:
    """The same, for each route with an id: whoever asks is taken for somebody of the other workspace."""
    unnoticed = []
    for operation in access_matrix.operations(two_workspaces.document):
        if operation.roles is not None and operation.has_id and operation.name not in access_matrix.OPEN_ROUTES:
            lax = replace(
                two_workspaces,
                app=ImpersonatingApp(two_workspaces.app, await two_workspaces.headers(THEIRS, min(operation.roles))),
            )
            unnoticed += [] if await has_problem(access_matrix.permissions(lax, operation)) else [operation.name]
    assert unnoticed == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_route_that_serves_another_agents_key_would_be_noticed(two_workspaces: TwoWorkspaces) -> None:
    """The same, for each route with an id of agents: whoever asks is taken for the key that proposed the call."""
    await two_workspaces.add_keys()
    lax = replace(two_workspaces, app=ImpersonatingApp(two_workspaces.app, await two_workspaces.headers(OURS, "owner")))
    asked = [
        each
        for each in access_matrix.operations(two_workspaces.document)
        if "agent" in (each.roles or ()) and each.has_id
    ]
    assert [each.name for each in asked if not await has_problem(access_matrix.ownership(lax, each))] == []
    assert len(asked) > 10


class ImpersonatingApp:
    """Whoever asks is somebody else."""

    def __init__(self, app: AsgiApp, headers: dict[str, str]) -> None:
        self._app = app
        self._headers: list[Header] = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rest = [each for each in scope["headers"] if each[0] not in (b"authorization", b"cookie", b"origin")]
        await self._app({**scope, "headers": [*rest, *self._headers]}, receive, send)

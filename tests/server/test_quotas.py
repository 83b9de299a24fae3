"""How much one agent key may ask for: the rest of the server must not drown in it."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.load import load_settings
from interlock.config.models import QuotaSettings, ServerSettings, Settings
from interlock.core.approval.execute import MAX_LATE_REPORTS
from interlock.core.call import ToolSpec, propose
from interlock.core.errors import TooManyRequests
from interlock.core.identity import KeyBindings, Principal
from interlock.server.quotas import QuotaEnforcer
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.support import Clock, event_kinds

Keys = dict[str, str]
PER_MINUTE, PENDING = 5, 3


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    return Settings(server=ServerSettings(quotas=getattr(request, "param", QuotaSettings(PER_MINUTE, 0))))


def call(number: int, effect: str = "write") -> dict[str, Any]:
    return {"tool": f"{effect}_it", "args": {}, "run_id": "run", "call_id": f"c{number}", "effect": effect}


async def test_key_over_its_rate_gets_retry_after(client: ClientFactory, keys: Keys, clock: Clock) -> None:
    agent = client(keys["agent"])
    answers = [await agent.post("/api/calls", json=call(number)) for number in range(PER_MINUTE + 1)]
    assert [answer.status_code for answer in answers] == [200] * PER_MINUTE + [429]
    assert answers[-1].headers["retry-after"] == "60"
    assert "within a minute" in answers[-1].json()["message"]
    known, read = await agent.post("/api/calls", json=call(0)), await agent.post("/api/calls", json=call(99, "read"))
    assert (known.json()["outcome"], read.json()["outcome"]) == ("waiting", "proceed")
    question = {"question": "Which?", "run_id": "run", "call_id": "q"}
    assert (await agent.post("/api/questions", json=question)).status_code == 429
    wanted = {"requestId": "7d0f6c1e-58a9-4b6e-9a43-1f2e3d4c5b6a", "actionType": "fund_transfer", "payload": {}}
    assert (await agent.post("/requests", json=wanted)).status_code == 429
    function = {"run_id": "run", "call_id": "f", "spec": {"fn": "pay", "kwargs": {}}}
    assert (await agent.post("/humanlayer/v1/function_calls", json=function)).status_code == 429
    clock.advance(60_000)
    assert (await agent.post("/api/calls", json=call(PER_MINUTE))).status_code == 200


async def test_reads_are_not_counted(client: ClientFactory, keys: Keys) -> None:
    agent = client(keys["agent"])
    for number in range(3 * PER_MINUTE):
        assert (await agent.post("/api/calls", json=call(number, "read"))).status_code == 200
    assert (await agent.post("/api/calls", json=call(99))).status_code == 200


async def test_one_key_does_not_use_up_what_another_has(client: ClientFactory, keys: Keys) -> None:
    agent, other = client(keys["agent"]), client(await another(client, keys))
    for number in range(PER_MINUTE + 1):
        last = await agent.post("/api/calls", json=call(number))
    assert last.status_code == 429
    assert (await other.post("/api/calls", json=call(99))).status_code == 200


@pytest.mark.parametrize("settings", [QuotaSettings(0, PENDING)], indirect=True)
async def test_a_key_has_so_many_calls_that_wait_and_no_more(client: ClientFactory, keys: Keys, clock: Clock) -> None:
    agent, other, bob = client(keys["agent"]), client(await another(client, keys)), client(keys["reviewer"])
    told = [(await agent.post("/api/calls", json=call(number))).json() for number in range(PENDING)]
    assert (await other.post("/api/calls", json=call(50))).status_code == 200
    full = await agent.post("/api/calls", json=call(90))
    assert (full.status_code, full.headers["retry-after"]) == (429, "1")  # as far as this process knows
    clock.advance(1_000)
    full = await agent.post("/api/calls", json=call(90))
    assert (full.status_code, full.headers["retry-after"]) == (429, "5")  # as the database says
    assert "3 calls of this key or its agent are pending already" in full.json()["message"]
    decision = {"kind": "reject", "args_sha256": told[1]["args_sha256"]}
    assert (await bob.post(f"/api/approvals/{told[1]['approval_id']}/decision", json=decision)).status_code == 200
    assert (await agent.post("/api/calls", json=call(90))).status_code == 429  # it is looked up once in a second
    clock.advance(1_000)
    assert (await agent.post("/api/calls", json=call(90))).status_code == 200
    assert (await agent.post("/api/calls", json=call(91))).status_code == 429
    assert (await agent.post("/api/calls", json=call(0))).json()["outcome"] == "waiting"


@pytest.mark.postgres_smoke
@pytest.mark.parametrize("settings", [QuotaSettings(0, PENDING)], indirect=True)
async def test_what_is_pending_counts_on_every_server_and_after_a_restart(
    client: ClientFactory, keys: Keys, state: ServerState, services: AppServices
) -> None:
    """And with every key of the same agent, or of the same chain of rotations."""
    bindings = [KeyBindings(("office",)), KeyBindings(("office", "night")), KeyBindings()]
    made = [await services.accounts.create_key("default", "bot", "agent", "ada", "", each) for each in bindings]
    rotated = await services.accounts.rotate_key("default", made[2][0].id, "ada")
    office, several, loose, replaced = (client(secret) for _, secret in (*made, rotated))
    for number in range(PENDING):
        assert (await office.post("/api/calls", json=call(number))).status_code == 200
        assert (await loose.post("/api/calls", json=call(10 + number))).status_code == 200
    restart(state)
    for number, each in enumerate((office, several, loose, replaced)):
        assert (await each.post("/api/calls", json=call(90 + number))).status_code == 429
    night = {**call(99), "agent": "night"}
    assert (await several.post("/api/calls", json=night)).status_code == 429, "all its agents count together"
    assert (await client(keys["agent"]).post("/api/calls", json=call(98))).status_code == 200


@pytest.mark.parametrize("settings", [QuotaSettings(0, PENDING)], indirect=True)
async def test_several_keys_of_an_agent_have_no_more_together(
    client: ClientFactory, services: AppServices, clock: Clock
) -> None:
    several = KeyBindings(("office", "night"))
    bindings = (
        KeyBindings(("office",)),
        several,
        KeyBindings(("office",)),
        KeyBindings(("office",), pending=PENDING + 1),
    )
    made = [await services.accounts.create_key("default", "bot", "agent", "ada", "", each) for each in bindings]
    agents = [client(secret) for _, secret in made]
    for number, agent in enumerate(agents):  # all of them have looked
        read = {**call(number, "read"), "agent": "office"}
        assert (await agent.post("/api/calls", json=read)).status_code == 200
    wanted = [
        agent.post("/api/calls", json={**call(10 * number + each), "agent": "office"})
        for number in range(PENDING)
        for each, agent in enumerate(agents)
    ]
    answers = await asyncio.gather(*wanted)
    assert sum(answer.status_code == 200 for answer in answers) in (PENDING, PENDING + 1)
    assert await services.store.count_pending("default", "agent:office", 99) in (PENDING, PENDING + 1)
    assert (await agents[1].post("/api/calls", json={**call(90), "agent": "night"})).status_code == 429
    clock.advance(1_000)
    assert (await agents[0].post("/api/calls", json=call(91))).status_code == 429


@pytest.mark.parametrize("settings", [QuotaSettings(0, PENDING)], indirect=True)
async def test_many_calls_at_once_get_no_more_than_one_after_another(
    client: ClientFactory, keys: Keys, state: ServerState
) -> None:
    """Nor do they before the database was asked for the first time."""
    agent = client(keys["agent"])
    await agent.post("/api/calls", json=call(0))
    restart(state)
    answers = await asyncio.gather(*[agent.post("/api/calls", json=call(number)) for number in range(1, 3 * PENDING)])
    assert sorted(each.status_code for each in answers)[:PENDING] == [200, 200, 429]


@pytest.mark.parametrize("settings", [QuotaSettings(0, PENDING)], indirect=True)
async def test_the_database_is_asked_once_a_second_at_most(
    client: ClientFactory, keys: Keys, state: ServerState, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    count = state.store.count_pending

    async def counting(workspace: str, owner: str, limit: int) -> int:
        asked.append(owner)
        return await count(workspace, owner, limit)

    monkeypatch.setattr(state.store, "count_pending", counting)
    agent = client(keys["agent"])
    for number in range(2 * PENDING):
        await agent.post("/api/calls", json=call(number))
        await agent.post("/api/calls", json=call(number, "read"))
    assert len(asked) == 1
    clock.advance(1_000)
    await agent.post("/api/calls", json=call(90))
    assert len(asked) == 2


@pytest.mark.parametrize("settings", [QuotaSettings(0, 1)], indirect=True)
async def test_what_asks_nobody_is_let_through_while_others_are_pending(
    client: ClientFactory, keys: Keys, services: AppServices, state: ServerState
) -> None:
    await services.put_policy("default", "rules: [{name: free, tools: [note], then: allow}]", "ada", {})
    await state.workspaces.refresh("default")
    agent = client(keys["agent"])
    assert (await agent.post("/api/calls", json=call(0))).status_code == 200
    assert (await agent.post("/api/calls", json=call(1))).status_code == 429
    assert (await agent.post("/api/calls", json={**call(2), "tool": "note"})).json()["outcome"] == "proceed"


async def test_a_key_can_have_quotas_of_its_own(client: ClientFactory, keys: Keys, clock: Clock) -> None:
    make: Callable[..., Any] = client(keys["admin"]).post
    for body, expected in (
        ({"per_minute": 1}, [200, 429, 429]),
        ({"per_minute": 0, "pending": 2}, [200, 200, 429]),
        ({}, [200] * PER_MINUTE + [429]),
        ({"per_minute": 0}, [200] * (PER_MINUTE + 1)),
    ):
        made = await make("/api/keys", json={"name": "own", "role": "agent", **body})
        agent = client(made.json()["key"])
        run = {"run_id": json.dumps(body)}
        answers = [await agent.post("/api/calls", json={**call(number), **run}) for number in range(len(expected))]
        assert [answer.status_code for answer in answers] == expected


def restart(state: ServerState) -> None:
    """As far as quotas go."""
    state.quotas = QuotaEnforcer(state.settings.server.quotas, state.store, state.clock)


@pytest.mark.parametrize("settings", [QuotaSettings(0, PENDING)], indirect=True)
async def test_what_was_decided_makes_room(client: ClientFactory, keys: Keys, clock: Clock) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    for number in range(4 * PENDING):
        clock.advance(500)
        told = (await agent.post("/api/calls", json=call(number))).json()
        decision = {"kind": "approve", "args_sha256": told["args_sha256"]}
        await bob.post(f"/api/approvals/{told['approval_id']}/decision", json=decision)
    assert (await agent.post("/api/calls", json=call(99))).status_code == 200


async def test_quotas_of_a_key_hold_as_it_is_looked_up_last(
    services: AppServices, state: ServerState, clock: Clock
) -> None:
    doors = await state.workspaces.services("default")
    spec = ToolSpec("write_it", "write")

    async def ask(who: Principal, number: int) -> None:
        gate = doors.gate_for(who)
        wanted = propose("write_it", {}, "run", f"c{number}")
        await state.quotas.run_within_quota(who, gate, wanted, spec, lambda: gate.check(wanted, spec))

    few = Principal("default", "billing", "agent", credential="ilk_1", per_minute=1)
    await ask(few, 1)
    with pytest.raises(TooManyRequests, match="1 calls within a minute"):
        await ask(few, 2)
    more = replace(few, per_minute=2)
    await ask(more, 3)
    with pytest.raises(TooManyRequests, match="2 calls within a minute"):
        await ask(more, 4)
    await ask(replace(few, per_minute=0), 5)


async def test_runs_and_pauses_and_remarks_count_as_calls_do(client: ClientFactory, keys: Keys, clock: Clock) -> None:
    agent = client(keys["agent"])
    function = {"run_id": "run", "call_id": "f", "spec": {"fn": "pay", "kwargs": {}}}
    assert (await agent.post("/humanlayer/v1/function_calls", json=function)).status_code == 200
    for number in range(PER_MINUTE - 1):
        assert (await agent.post("/api/runs", json={"agent": f"a{number}"})).status_code == 200
    escalation = {"escalation_msg": "Look!"}
    writes = {
        "/api/runs": {"agent": "more"},
        "/api/pauses": {"run_id": "p"},
        "/humanlayer/v1/agent/function_calls/f/escalate_email": escalation,
    }
    for path, body in writes.items():
        full = await agent.post(path, json=body)
        assert (full.status_code, full.headers.get("retry-after")) == (429, "60"), path
    assert (await agent.post("/api/runs", json={"run_id": "mine"})).status_code == 200, "nothing is opened"
    clock.advance(60_000)
    for path, body in writes.items():
        assert (await agent.post(path, json=body)).status_code == 200, path


@pytest.mark.parametrize("settings", [QuotaSettings(0, PENDING)], indirect=True)
async def test_a_key_has_so_many_open_runs_and_no_more(client: ClientFactory, keys: Keys) -> None:
    agent, other = client(keys["agent"]), client(await another(client, keys))
    wanted = [agent.post("/api/runs", json={"agent": f"a{number}", "runner": "r"}) for number in range(3 * PENDING)]
    answers = await asyncio.gather(*wanted)
    opened = [answer.json()["run_id"] for answer in answers if answer.status_code == 200]
    assert len(opened) == PENDING
    full = next(answer for answer in answers if answer.status_code == 429)
    assert "runs of this key or its agent are open" in full.json()["message"]
    assert full.headers["retry-after"] == "5"
    assert (await other.post("/api/runs", json={})).status_code == 200
    assert (await agent.post(f"/api/runs/{opened[0]}/close", json={"runner": "r"})).status_code == 200
    assert (await agent.post("/api/runs", json={"agent": "b"})).status_code == 200


@pytest.mark.parametrize("settings", [QuotaSettings(0, PENDING)], indirect=True)
async def test_the_state_of_paused_runs_is_bounded(client: ClientFactory, keys: Keys) -> None:
    agent, other = client(keys["agent"]), client(await another(client, keys))
    state = b64encode(bytes(3 << 20)).decode()
    answers = [await agent.post("/api/pauses", json={"run_id": f"p{n}", "state": state}) for n in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert "16 MiB" in answers[-1].json()["message"]
    assert (await agent.post("/api/pauses", json={"run_id": "p0", "state": state})).status_code == 200, "in its place"
    assert (await other.post("/api/pauses", json={"run_id": "q", "state": state})).status_code == 200
    fence = answers[1].json()["fence"]
    assert (await agent.post("/api/pauses/complete", json={"run_id": "p1", "fence": fence})).json()["over"]
    assert (await agent.post("/api/pauses", json={"run_id": "p9", "state": state})).status_code == 200


async def test_late_reports_do_not_fill_the_ledger(
    client: ClientFactory, keys: Keys, services: AppServices, state: ServerState
) -> None:
    await state.workspaces.put_policy("default", "rules: [{name: free, then: allow}]", "ada")
    agent = client(keys["agent"])
    told = (await agent.post("/api/calls", json={**call(0), "args": {"token": "hunter2"}, "secret": ["token"]})).json()
    path = f"/api/calls/{told['approval_id']}"
    assert (await agent.post(f"{path}/start", json={})).status_code == 200
    assert (await agent.post(f"{path}/finish", json={"fence": 1, "ok": True, "result": 1})).status_code == 200
    for number in range(3 * MAX_LATE_REPORTS):
        for _ in range(2):
            body = {"fence": 1, "ok": False, "error": f"hunter2 {number}"}
            late = await agent.post(f"{path}/finish", json=body)
            assert (late.status_code, late.json()["error"]) == (409, "lease_lost")
        assert (await event_kinds(services)).count("finished_late") == min(number + 1, MAX_LATE_REPORTS)


def test_people_have_no_quotas(state: ServerState) -> None:
    assert state.quotas.key_limits(Principal("default", "ada", "admin")) is None
    assert state.quotas.key_limits(Principal("default", "billing", "agent")) == QuotaSettings(PER_MINUTE, 0)
    own = Principal("default", "billing", "agent", per_minute=0, pending=7)
    assert state.quotas.key_limits(own) == QuotaSettings(0, 7)


def test_the_configuration_sets_them(tmp_path: Any) -> None:
    file = tmp_path / "interlock.yaml"
    file.write_text(json.dumps({"server": {"quotas": {"per_minute": 10}}}))
    assert load_settings(file, {}).server.quotas == QuotaSettings(10, 5_000)
    assert load_settings(
        None, {"INTERLOCK_CONFIG": str(file), "INTERLOCK_QUOTAS": "off"}
    ).server.quotas == QuotaSettings(0, 0)


async def another(client: ClientFactory, keys: Keys) -> str:
    made = await client(keys["admin"]).post("/api/keys", json={"name": "other", "role": "agent"})
    assert made.status_code in (200, 201), made.text
    return str(made.json()["key"])

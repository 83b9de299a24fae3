"""How much one agent key may ask for: the rest of the server must not drown in it."""

import json
from typing import Any

import pytest

from interlock.configuration import Quotas, Server, Settings
from interlock.core.identity import Principal
from interlock.settings import load_settings
from interlock.web.site import Site
from tests.server.conftest import As
from tests.support import Clock

Keys = dict[str, str]
PER_MINUTE, PENDING = 5, 3


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    return Settings(server=Server(quotas=getattr(request, "param", Quotas(PER_MINUTE, 0))))


def call(number: int, effect: str = "write") -> dict[str, Any]:
    return {"tool": f"{effect}_it", "args": {}, "run_id": "run", "call_id": f"c{number}", "effect": effect}


async def test_a_key_that_asks_too_often_is_told_when_to_come_again(client: As, keys: Keys, clock: Clock) -> None:
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
    clock.forward(60_000)
    assert (await agent.post("/api/calls", json=call(PER_MINUTE))).status_code == 200


async def test_reads_are_not_counted(client: As, keys: Keys) -> None:
    agent = client(keys["agent"])
    for number in range(3 * PER_MINUTE):
        assert (await agent.post("/api/calls", json=call(number, "read"))).status_code == 200
    assert (await agent.post("/api/calls", json=call(99))).status_code == 200


async def test_one_key_does_not_use_up_what_another_has(client: As, keys: Keys) -> None:
    agent, other = client(keys["agent"]), client(await another(client, keys))
    for number in range(PER_MINUTE + 1):
        last = await agent.post("/api/calls", json=call(number))
    assert last.status_code == 429
    assert (await other.post("/api/calls", json=call(99))).status_code == 200


@pytest.mark.parametrize("settings", [Quotas(0, PENDING)], indirect=True)
async def test_a_key_has_so_many_calls_that_wait_and_no_more(client: As, keys: Keys, clock: Clock) -> None:
    agent, other, bob = client(keys["agent"]), client(await another(client, keys)), client(keys["reviewer"])
    told = [(await agent.post("/api/calls", json=call(number))).json() for number in range(PENDING)]
    assert (await other.post("/api/calls", json=call(50))).status_code == 200
    full = await agent.post("/api/calls", json=call(90))
    assert (full.status_code, full.headers["retry-after"]) == (429, "5")
    assert "wait for people already" in full.json()["message"]
    decision = {"kind": "reject", "args_sha256": told[1]["args_sha256"]}
    assert (await bob.post(f"/api/approvals/{told[1]['approval_id']}/decision", json=decision)).status_code == 200
    assert (await agent.post("/api/calls", json=call(90))).status_code == 429  # it is looked up once in a second
    clock.forward(1_000)
    assert (await agent.post("/api/calls", json=call(90))).status_code == 200
    assert (await agent.post("/api/calls", json=call(91))).status_code == 429


@pytest.mark.parametrize("settings", [Quotas(0, PENDING)], indirect=True)
async def test_what_was_decided_makes_room(client: As, keys: Keys, clock: Clock) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    for number in range(4 * PENDING):
        clock.forward(500)
        told = (await agent.post("/api/calls", json=call(number))).json()
        decision = {"kind": "approve", "args_sha256": told["args_sha256"]}
        await bob.post(f"/api/approvals/{told['approval_id']}/decision", json=decision)
    assert (await agent.post("/api/calls", json=call(99))).status_code == 200


def test_people_have_no_quotas(site: Site) -> None:
    assert site.quotas.limits_of(Principal("default", "ada", "admin")) is None
    assert site.quotas.limits_of(Principal("default", "billing", "agent")) == Quotas(PER_MINUTE, 0)


def test_the_configuration_sets_them(tmp_path: Any) -> None:
    file = tmp_path / "interlock.yaml"
    file.write_text(json.dumps({"server": {"quotas": {"per_minute": 10}}}))
    assert load_settings(file, {}).server.quotas == Quotas(10, 5_000)
    assert load_settings(None, {"INTERLOCK_CONFIG": str(file), "INTERLOCK_QUOTAS": "off"}).server.quotas == Quotas(0, 0)


async def another(client: As, keys: Keys) -> str:
    made = await client(keys["admin"]).post("/api/keys", json={"name": "other", "role": "agent"})
    assert made.status_code in (200, 201), made.text
    return str(made.json()["key"])

"""An agent's own calls over HTTP: listed and shown to the keys that they belong to, and to nobody else."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.identity import KeyBindings
from tests.server.conftest import ClientFactory
from tests.server.test_calls import decide, propose
from tests.support import Clock

BOUND = KeyBindings(("office",))
FOR_PEOPLE = {"quorum", "alarms", "claimed_by", "rule", "open_questions", "votes", "card", "timeline", "may_decide"}


async def make_key(services: AppServices, name: str, bindings: KeyBindings = KeyBindings()) -> str:  # noqa: B008  frozen
    return (await services.accounts.create_key("default", name, "agent", "test", "", bindings))[1]


async def own_ids(agent: httpx2.AsyncClient, **filters: Any) -> list[str]:
    answer = await agent.get("/api/calls", params=filters)
    assert answer.status_code == 200, answer.text
    return [item["call_id"] for item in answer.json()["items"]]


@pytest.mark.postgres_smoke
async def test_a_key_lists_its_own_calls_the_newest_first_and_no_others(
    client: ClientFactory, keys: dict[str, str], services: AppServices, clock: Clock
) -> None:  # R18 R66
    mine, other = client(keys["agent"]), client(await make_key(services, "other"))
    for number in range(3):
        await propose(mine, call_id=f"mine{number}", thread_id=f"t{number % 2}")
        await propose(other, call_id=f"other{number}", run_id="another run")
        clock.advance(1)
    assert await own_ids(mine) == ["mine2", "mine1", "mine0"]
    assert await own_ids(other) == ["other2", "other1", "other0"]
    assert await own_ids(mine, status="pending", thread_id="t0") == ["mine2", "mine0"]
    assert await own_ids(mine, run_id="another run") == []
    assert await own_ids(client(await make_key(services, "third"))) == []


async def test_keys_of_one_agent_share_their_calls(
    client: ClientFactory, keys: dict[str, str], services: AppServices
) -> None:  # R18
    first, second = [client(await make_key(services, name, BOUND)) for name in ("first", "second")]
    told = await propose(first, agent="office")
    assert await own_ids(second) == ["call1"]
    assert (await second.get(f"/api/calls/{told['approval_id']}/details")).json()["call_id"] == "call1"


async def test_a_call_of_another_key_is_not_found(
    client: ClientFactory, keys: dict[str, str], services: AppServices
) -> None:  # R18
    told, other = await propose(client(keys["agent"])), client(await make_key(services, "other"))
    foreign, nothing = [
        await other.get(f"/api/calls/{name}/details")
        for name in (told["approval_id"], "00000000-0000-7000-8000-000000000000")
    ]
    assert (foreign.status_code, foreign.json()["error"]) == (nothing.status_code, nothing.json()["error"])
    assert (foreign.status_code, foreign.json()["error"]) == (404, "not_found")


async def test_pages_follow_each_other_and_their_cursors_name_no_call(
    client: ClientFactory, keys: dict[str, str], services: AppServices, clock: Clock
) -> None:  # R18 R66
    mine, other = client(keys["agent"]), client(await make_key(services, "other"))
    for number in range(5):
        await propose(mine, call_id=f"mine{number}")
        await propose(other, call_id=f"other{number}", run_id="another run")
        clock.advance(1)
    seen, cursor = list[str](), ""
    while cursor is not None:
        page = (await mine.get("/api/calls", params={"status": "pending", "limit": 2, "cursor": cursor})).json()
        seen += [item["call_id"] for item in page["items"]]
        cursor = page["next"]
        if cursor is not None:
            assert all(isinstance(part, int) for part in json.loads(urlsafe_b64decode(cursor)))
    assert seen == ["mine4", "mine3", "mine2", "mine1", "mine0"]


async def test_an_agent_learns_how_its_call_was_decided_and_not_by_whom(
    client: ClientFactory, keys: dict[str, str], clock: Clock
) -> None:  # R18
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await propose(agent, secret=["path"])
    await decide(bob, told, "reject", reason="Not this one.", comment="Told the team.")
    path = f"/api/calls/{told['approval_id']}/details"
    before = (await agent.get(path)).json()
    assert (before["status"], before["decision"]) == ("rejected", None)  # it can still be undone
    clock.advance(8_000)
    after = (await agent.get(path)).json()
    assert (after["decision"]["kind"], after["decision"]["reason"]) == ("reject", "Not this one.")
    assert "/tmp/x" not in json.dumps(after["args"])
    text = (await agent.get("/api/calls")).text + json.dumps(after)
    assert "bob" not in text
    assert "Told the team." not in text
    assert FOR_PEOPLE.isdisjoint(after)


@pytest.mark.parametrize(
    "query", [{"status": "waiting"}, {"limit": 0}, {"limit": 501}, {"cursor": "x"}, {"owner": "key:other"}]
)
async def test_a_filter_that_there_is_not_is_refused(
    client: ClientFactory, keys: dict[str, str], query: dict[str, Any]
) -> None:
    answer = await client(keys["agent"]).get("/api/calls", params=query)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")

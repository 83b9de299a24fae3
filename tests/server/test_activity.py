"""What agents did in the last days, over HTTP."""

from __future__ import annotations

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.identity import KeyBindings
from interlock.runtime.durations import DAY, rfc3339
from interlock.server.routes import activity
from interlock.server.routes.activity import AgentActivityDetails, AgentActivityList
from tests.interlock_server import make_keys
from tests.server.conftest import ClientFactory
from tests.server.test_calls import decide, propose
from tests.support import START, Clock

POLICY = {"version": 1, "rules": [{"name": "never", "tools": ["drop"], "then": "deny", "reason": "Never that."}]}


# R10, R18
@pytest.mark.postgres_smoke
async def test_an_agents_calls_are_counted_by_outcome_day_and_tool(
    client: ClientFactory, keys: dict[str, str], clock: Clock
) -> None:
    agent, bob, ada = client(keys["agent"]), client(keys["reviewer"]), client(keys["admin"])
    assert (await ada.put("/api/policy", json=POLICY)).status_code == 200
    await decide(bob, await propose(agent, call_id="a", agent="clerk", tool="send"))
    clock.advance(DAY)
    rejected = await propose(agent, call_id="b", agent="clerk", tool="pay")
    await decide(bob, rejected, "reject")
    await propose(agent, call_id="c", agent="clerk", tool="send")
    assert (await propose(agent, call_id="d", agent="clerk", tool="drop"))["outcome"] == "refused"
    newest = await propose(agent, call_id="e", agent="other")

    body = (await client(keys["viewer"]).get("/api/agents/clerk/activity")).json()
    AgentActivityDetails.model_validate(body)
    tools, days = body.pop("tools"), body.pop("days")
    assert {name: value for name, value in body.items() if value} == {
        "name": "clerk",
        "since": rfc3339(clock() - 30 * DAY),
        "first_seen_at": rfc3339(START),
        "last_seen_at": rfc3339(clock()),
        "calls": 3,
        "asked": 3,
        "approved": 1,
        "rejected": 1,
        "pending": 1,
        "denied": 1,
        "complete": True,
    }
    used = [(each["tool"], each["calls"], each["approved"], each["rejected"], each["pending"]) for each in tools]
    assert used == [("pay", 1, 0, 1, 0), ("send", 2, 1, 0, 1)]
    assert [each["first_used_at"] for each in tools] == [rfc3339(clock()), rfc3339(START)]
    assert len(days) == 31
    assert [(each["calls"], each["asked"]) for each in days[-2:]] == [(1, 1), (2, 2)]

    listed = (await bob.get("/api/activity")).json()
    AgentActivityList.model_validate(listed)
    clerk, other = listed["items"]
    assert listed["complete"] is True
    assert (clerk["name"], clerk["calls"], clerk["pending"], clerk["denied"]) == ("clerk", 3, 1, 1)
    assert (other["name"], other["last_approval_id"]) == ("other", newest["approval_id"])
    clock.advance(40 * DAY)
    [clerk, _] = (await bob.get("/api/activity")).json()["items"]
    assert (clerk["calls"], clerk["denied"]) == (0, 0)
    later = (await bob.get("/api/agents/clerk/activity")).json()
    assert (later["calls"], later["last_seen_at"]) == (0, clerk["last_seen_at"])
    assert later["last_seen_at"] is not None


# R58
async def test_a_key_shows_that_its_agent_connected_before_its_first_call(
    client: ClientFactory, keys: dict[str, str], services: AppServices, clock: Clock
) -> None:
    bob = client(keys["reviewer"])
    made, secret = await services.accounts.create_key(
        "default", "clerk", "agent", "ada", bindings=KeyBindings(("clerk",))
    )
    await services.accounts.create_key("default", "two", "agent", "ada", bindings=KeyBindings(("x", "y")))
    [listed] = (await bob.get("/api/activity")).json()["items"]
    assert (listed["name"], listed["last_seen_at"], listed["last_approval_id"]) == ("clerk", None, None)
    assert (await client(secret).get("/api/calls/unknown")).status_code in (400, 404)
    [listed] = (await bob.get("/api/activity")).json()["items"]
    assert listed["last_seen_at"] is not None
    await services.accounts.revoke_key("default", made.id, "ada")
    assert (await bob.get("/api/activity")).json()["items"] == []


# R58
@pytest.mark.postgres_smoke
@pytest.mark.parametrize("name", ["clerk", "cl|erk"])
async def test_a_call_that_only_claims_an_agents_name_is_not_that_of_its_key(
    client: ClientFactory, keys: dict[str, str], services: AppServices, clock: Clock, name: str
) -> None:
    _, secret = await services.accounts.create_key("default", "new", "agent", "ada", bindings=KeyBindings((name,)))

    async def newest() -> tuple[str | None, str | None]:
        [listed] = (await client(keys["viewer"]).get("/api/activity")).json()["items"]
        assert (listed["key_used_at"] is None) == (listed["last_bound_approval_id"] is None)
        return listed["last_approval_id"], listed["last_bound_approval_id"]

    claimed = await propose(client(keys["agent"]), call_id="a", agent=name)
    assert await newest() == (claimed["approval_id"], None)
    clock.advance(1_000)
    made = await propose(client(secret), call_id="b", agent=name)
    assert await newest() == (made["approval_id"], made["approval_id"])
    clock.advance(1_000)
    claimed = await propose(client(keys["agent"]), call_id="c", agent=name)
    assert await newest() == (claimed["approval_id"], made["approval_id"])


# R18
@pytest.mark.postgres_smoke
async def test_names_that_a_key_claims_hide_no_other_agent(
    client: ClientFactory,
    keys: dict[str, str],
    services: AppServices,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(activity, "MAX_AGENTS", 1)
    agent, ada = client(keys["agent"]), client(keys["admin"])
    await services.accounts.create_key("default", "k", "agent", "ada", bindings=KeyBindings(("zoe",)))
    await ada.put("/api/agents/writer", json={"instructions": "Write."})
    for number, name in enumerate(("writer", "a0", "a1", "a2", "z3")):
        await propose(agent, call_id=str(number), agent=name)
        clock.advance(1_000)
    listed = (await ada.get("/api/activity")).json()
    assert [each["name"] for each in listed["items"]] == ["writer", "zoe", "z3"]
    assert (listed["left_out"], listed["complete"]) == (3, False)
    monkeypatch.undo()
    whole = (await ada.get("/api/activity")).json()
    assert [each["name"] for each in whole["items"]] == ["writer", "zoe", "z3", "a2", "a1", "a0"]
    assert (whole["left_out"], whole["complete"]) == (0, True)


async def test_activity_is_for_people_of_the_workspace(
    client: ClientFactory, keys: dict[str, str], services: AppServices
) -> None:
    agent = client(keys["agent"])
    await propose(agent, agent="clerk")
    assert (await agent.get("/api/activity")).status_code == 403
    elsewhere = client((await make_keys(services, "elsewhere"))["viewer"])
    assert (await elsewhere.get("/api/activity")).json()["items"] == []
    assert (await elsewhere.get("/api/agents/clerk/activity")).status_code == 404
    assert (await elsewhere.get("/api/activity", params={"days": 91})).status_code == 400

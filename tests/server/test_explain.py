"""What a call would meet, as the page asks it: the same that the call meets when an agent makes it."""
# R56, R57

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.models import ActionSettings, Settings
from interlock.core.call import ToolSpec
from interlock.core.identity import KeyBindings
from interlock.policy.templates import read_template
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory

UNBOUND = "as a call with an agent key that is bound to no agent: what it declares about its tool is a claim"
EMBEDDED = "as a call of a program that opens the database itself: what it says of its tool is known"
OUTCOMES = {"allow": "proceed", "ask": "waiting", "deny": "refused"}


@pytest.fixture
def settings() -> Settings:
    schema = {"type": "object", "properties": {"amount": {"type": "number"}}}
    return Settings(actions={"fund_transfer": ActionSettings(schema, "finance")})


@pytest.fixture
async def strict(state: ServerState) -> None:
    await state.workspaces.put_policy("default", read_template("strict"), "ada")
    specs = [ToolSpec("get_weather", "read"), ToolSpec("create_issue", "destructive")]
    await state.workspaces.pin("default", specs, "", "ada")


async def explain(admin: httpx2.AsyncClient, /, **call: Any) -> dict[str, Any]:
    answer = await admin.post("/api/policy/explain", json=call)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def propose(agent: httpx2.AsyncClient, /, **call: Any) -> dict[str, Any]:
    answer = await agent.post("/api/calls", json={"args": {}, "run_id": "run", "call_id": uuid4().hex, **call})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


PAGE = {"slug": "page-1"}
ROWS = {
    "an unknown read": ({"tool": "look_up", "effect": "read", "agent": "mailer"}, "deny", "(read) is ignored"),
    "a pinned read": ({"tool": "get_weather"}, "allow", "get_weather is pinned as read."),
    "a registered tool said to read": (
        {"tool": "cms_delete_page", "effect": "read", "args": PAGE},
        "ask",
        "cms_delete_page is registered as destructive: the effect read that the call declares is ignored.",
    ),
    "a pinned tool said to write": (
        {"tool": "create_issue", "effect": "write"},
        "ask",
        "create_issue is pinned as destructive: the effect write that the call declares is ignored.",
    ),
    "a registered tool": ({"tool": "cms_delete_page", "args": PAGE}, "ask", "registered as destructive."),
    "a configured action": ({"tool": "fund_transfer"}, "ask", "fund_transfer is registered as write."),
}


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("row", ROWS)
async def test_a_call_is_explained_as_it_is_judged(client: ClientFactory, keys: dict[str, str], row: str) -> None:
    call, verdict, note = ROWS[row]
    ada, bob = client(keys["admin"]), client(keys["reviewer"])
    told = await explain(ada, **call)
    assert (told["judged_as"], told["verdict"]) == (UNBOUND, verdict)
    assert note in " ".join(told["notes"])
    met = await propose(client(keys["agent"]), **call)
    assert met["outcome"] == OUTCOMES[verdict]
    if verdict == "ask":
        card = (await bob.get(f"/api/approvals/{met['approval_id']}")).json()
        assert told["rule"] == card["rule"]
    assert (await explain(ada, **call, key={"name": "mailer"}))["verdict"] == verdict


@pytest.mark.usefixtures("strict")
async def test_the_terms_are_those_of_the_card(client: ClientFactory, keys: dict[str, str], state: ServerState) -> None:
    """The team of an action, one person more where the requester is not known, what joins them for a changed tool."""
    for call in ({"tool": "create_issue", "effect": "write"}, {"tool": "fund_transfer"}):
        told = await explain(client(keys["admin"]), **call)
        met = await propose(client(keys["agent"]), **call)
        stored = await state.store.get("default", met["approval_id"])
        terms = stored.approval.terms
        assert told["terms"]["stages"][0]["quorum"] == terms.stages[0].quorum
        assert told["terms"]["notes"] if terms.notes else "notes" not in told["terms"]
        people = terms.stages[0].approvers
        assert told["terms"]["stages"][0]["approvers"] == (
            None if people is None else {"users": sorted(people.users), "teams": sorted(people.teams)}
        )


@pytest.mark.usefixtures("strict")
async def test_embedded_program_is_trusted(client: ClientFactory, keys: dict[str, str]) -> None:
    ada = client(keys["admin"])
    told = await explain(ada, tool="look_up", effect="read", embedded=True)
    assert (told["judged_as"], told["verdict"], told["rule"]) == (EMBEDDED, "allow", "reads pass")
    told = await explain(ada, tool="get_weather", embedded=True)
    assert (told["verdict"], "pinned as read, and is judged as that" in told["notes"][0]) == ("allow", True)
    told = await explain(ada, tool="get_weather", effect="write", embedded=True)
    assert (told["rule"], "its own definition is used: write" in told["notes"][0]) == ("changes ask", True)


async def test_a_key_that_is_bound_is_explained_as_one(
    client: ClientFactory, keys: dict[str, str], services: AppServices
) -> None:
    ada = client(keys["admin"])
    rule = {"name": "billing pays", "agents": ["billing"], "then": "allow"}
    await ada.put("/api/policy", json={"version": 1, "rules": [rule]})
    call: dict[str, Any] = {"tool": "pay", "effect": "write", "agent": "billing"}
    loose = await explain(ada, **call)
    assert (loose["verdict"], "interlock keys create" in " ".join(loose["notes"])) == ("ask", True)
    bound = await explain(ada, **call, key={"agents": ["billing"], "requester": "none"})
    assert bound["verdict"] == "allow"
    assert "bound to the agent billing and to no requester" in bound["judged_as"]
    _, secret = await services.accounts.create_key("default", "b", "agent", "ada", bindings=KeyBindings(("billing",)))
    assert (await propose(client(secret), **call))["outcome"] == "proceed"
    refused = await ada.post("/api/policy/explain", json={**call, "key": {"agents": ["support"]}})
    assert (refused.status_code, "refuses such a call" in refused.json()["message"]) == (400, True)


async def test_arguments_that_do_not_fit_are_reported(client: ClientFactory, keys: dict[str, str]) -> None:
    told = await explain(client(keys["admin"]), tool="fund_transfer", args={"amount": "much"})
    assert "do not fit the schema of fund_transfer (/amount" in " ".join(told["notes"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"key": None}, "without one: embedded"),
        ({"key": {"agent": "x"}}, "key of a call is an object with name, agents"),
        ({"key": {"name": 5}}, "name and requester of a key are texts"),
        ({"key": {"teams": "x"}}, "teams of a call is a list"),
        ({"key": {}, "embedded": True}, "has no key"),
        ({"embedded": "yes"}, "embedded is true"),
        ({"schema": []}, "schema of a call is not what it should be"),
    ],
)
async def test_a_question_that_cannot_be_is_refused(
    client: ClientFactory, keys: dict[str, str], call: dict[str, Any], words: str
) -> None:
    answer = await client(keys["admin"]).post("/api/policy/explain", json={"tool": "x", **call})
    assert (answer.status_code, words in answer.json()["message"]) == (400, True), answer.text

"""Questions of agents to people, and of people to agents."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from interlock.server.models import OutcomeJson
from tests.server.conftest import ClientFactory
from tests.server.test_approvals import post_action
from tests.server.test_calls import decide, propose

Keys = dict[str, str]
QUESTION = {"question": "Which account?", "run_id": "run", "call_id": "q1"}


async def ask(agent: httpx2.AsyncClient, /, **more: Any) -> dict[str, Any]:
    answer = await agent.post("/api/questions", json={**QUESTION, **more})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    OutcomeJson.model_validate(body)
    return body


# R37
@pytest.mark.postgres_smoke
async def test_an_agent_asks_and_gets_the_answer(client: ClientFactory, keys: Keys) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await ask(agent)
    assert (told["outcome"], told["status"]) == ("waiting", "pending")
    shown = (await bob.get(f"/api/approvals/{told['approval_id']}")).json()
    assert (shown["tool"], shown["sentence"]) == ("request_human_input", "Which account?")
    assert shown["may_decide"] == ["respond"]
    assert (await decide(bob, told)).status_code == 422
    assert (await decide(bob, told, "respond", message="The second.")).status_code == 200
    again = await ask(agent)
    assert (again["outcome"], again["message"]) == ("answered", "The second.")


# R37
@pytest.mark.parametrize(
    ("more", "wrong", "right"),
    [
        ({"choices": ["red", "blue"]}, {"message": "green"}, {"message": "red"}),
        ({"schema": {"type": "integer"}}, {"answer": "one"}, {"answer": 1}),
    ],
)
async def test_an_answer_has_to_fit_the_question(
    client: ClientFactory, keys: Keys, more: dict[str, Any], wrong: dict[str, Any], right: dict[str, Any]
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await ask(agent, **more)
    refused = await decide(bob, told, "respond", **wrong)
    assert (refused.status_code, refused.json()["error"]) == (422, "invalid_decision")
    assert (await decide(bob, told, "respond", **right)).status_code == 200
    assert (await ask(agent, **more))["message"] == next(iter(right.values()))


@pytest.mark.parametrize(
    "more",
    [
        {"schema": {"type": "nothing"}},
        {"schema": {"type": "string"}, "choices": ["a"]},
        {"question": ""},
        {"choices": [1]},
        {"schema": {"$ref": "https://example.com/schema.json"}},
        {"run_id": ""},
    ],
)
async def test_a_question_that_nobody_could_answer_is_refused(
    client: ClientFactory, keys: Keys, more: dict[str, Any]
) -> None:
    answer = await client(keys["agent"]).post("/api/questions", json={**QUESTION, **more})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


# R24
async def test_a_known_question_with_other_words_is_a_conflict(client: ClientFactory, keys: Keys) -> None:
    await ask(client(keys["agent"]))
    answer = await client(keys["agent"]).post("/api/questions", json={**QUESTION, "question": "Who?"})
    assert (answer.status_code, answer.json()["error"]) == (409, "call_mismatch")


# R55
async def test_an_agent_answers_what_people_ask_and_nothing_is_decided(client: ClientFactory, keys: Keys) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await propose(agent)
    path = f"/api/calls/{told['approval_id']}"
    waiting = asyncio.create_task(agent.get(path, params={"wait": "30", "heard": "0"}))
    await asyncio.sleep(0)
    await post_action(bob, told, "ask", question="Which file?")
    assert (await waiting).json()["questions"] == [1]
    assert (await agent.get(f"{path}/questions")).json()["items"] == [{"number": 1, "by": "bob", "text": "Which file?"}]
    replied = await agent.post(f"{path}/answer", json={"number": 1, "text": "The old one."})
    assert replied.json() == {"approval_id": told["approval_id"], "status": "pending", "number": 1}
    assert (await agent.get(f"{path}/questions")).json()["items"] == []
    shown = (await bob.get(f"/api/approvals/{told['approval_id']}")).json()
    reply = shown["questions"][0]["reply"]
    assert (reply["by"], reply["text"], shown["status"]) == ("agent:bot", "The old one.", "pending")
    twice = await agent.post(f"{path}/answer", json={"number": 1, "text": "Another."})
    assert twice.status_code == 409
    assert (await agent.post(f"{path}/answer", json={"number": 2, "text": "x"})).status_code == 404


@pytest.mark.parametrize("heard", ["x", "-1", "1.5", "9" * 20])
async def test_heard_is_a_number(client: ClientFactory, keys: Keys, heard: str) -> None:
    told = await propose(client(keys["agent"]))
    path = f"/api/calls/{told['approval_id']}"
    answer = await client(keys["agent"]).get(path, params={"wait": "1", "heard": heard})
    assert answer.status_code == 400


@pytest.mark.parametrize("role", ["viewer", "reviewer", "admin"])
async def test_people_ask_and_answer_nothing_in_an_agents_name(
    client: ClientFactory, keys: Keys, role: str
) -> None:  # R48
    told = await propose(client(keys["agent"]))
    person = client(keys[role])
    assert (await person.post("/api/questions", json=QUESTION)).status_code == 403
    answer = await person.post(f"/api/calls/{told['approval_id']}/answer", json={"number": 1, "text": "x"})
    assert answer.status_code == 403

"""Outside systems: typed requests in, answers out."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from interlock.app.gate import uuid7
from interlock.config.models import ActionSettings, Settings, ToolSettings, VerificationSettings
from interlock.core.call import ToolSpec
from interlock.core.freeze import Freeze
from interlock.runtime.durations import rfc3339
from interlock.server.routes.external import ExternalRequestJson
from interlock.server.state import ServerState
from tests.interlock_server import make_keys
from tests.server.conftest import ClientFactory
from tests.support import AppServices, Clock, event_kinds

Keys = dict[str, str]
PAY = {"amount": 100, "recipient": "ann@example.com"}


async def send(agent: httpx2.AsyncClient, payload: Any = PAY, action: str = "fund_transfer", **more: Any) -> Any:
    request_id = more.pop("request_id", None) or str(uuid4())
    body = {"requestId": request_id, "actionType": action, "payload": payload}
    metadata = {"initiatedBy": "rita", "priority": "high", **more}
    return await agent.post("/requests", json={**body, "metadata": metadata})


async def assert_accepted(agent: httpx2.AsyncClient, *given: Any, **more: Any) -> str:
    answer = await send(agent, *given, **more)
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "pending"
    return str(answer.json()["requestId"])


async def refusals(person: httpx2.AsyncClient, request_id: str) -> list[dict[str, Any]]:
    """The entries of refused answers to a request."""
    timeline = (await person.get(f"/api/approvals/{request_id}")).json()["timeline"]
    return [entry for entry in timeline if entry["kind"] == "decision_refused"]


async def submit(person: httpx2.AsyncClient, request_id: str, decision: str, **more: Any) -> httpx2.Response:
    return await person.post("/submit", json={"requestId": request_id, "decision": decision, **more})


async def resume(anybody: httpx2.AsyncClient, request_id: str) -> dict[str, Any]:
    answer = await anybody.get(f"/resume/{request_id}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    ExternalRequestJson.model_validate(body)
    return body


# R22, R29
async def test_a_request_is_taken_in_approved_and_resumed(client: ClientFactory, keys: Keys, clock: Clock) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    request_id = await assert_accepted(agent)
    waiting = await resume(agent, request_id)
    assert (waiting["status"], waiting["decision"], waiting["payload"]) == ("pending", None, None)
    shown = (await bob.get(f"/api/approvals/{request_id}")).json()
    assert (shown["tool"], shown["requester"], shown["priority"]) == ("fund_transfer", "rita", "high")
    done = await submit(bob, request_id, "approved", comment="Fine.")
    assert done.status_code == 200, done.text
    assert await resume(agent, request_id) == {
        "requestId": request_id,
        "status": "approved",
        "decision": "approved",
        "payload": PAY,
        "comment": "Fine.",
        "reviewerId": "bob",
        "resolvedAt": rfc3339(clock()),
        "expiresAt": rfc3339(clock() + 48 * 3_600_000),
        "final": True,
        "flags": [],
        "stopped": None,
    }
    assert (await resume(bob, request_id))["status"] == "approved"
    started = await agent.post(f"/api/calls/{request_id}/start", json={})
    assert started.json()["args"] == PAY


# R22
async def test_a_rejection_is_final_when_it_cannot_be_taken_back(
    client: ClientFactory, keys: Keys, clock: Clock
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    request_id = await assert_accepted(agent)
    await submit(bob, request_id, "rejected", comment="Too much.")
    told = await resume(agent, request_id)
    assert (told["status"], told["decision"], told["comment"]) == ("rejected", "rejected", "Too much.")
    assert (told["payload"], told["final"]) == (None, False)
    clock.advance(8_000)
    assert (await resume(agent, request_id))["final"] is True


# R22, R59
@pytest.mark.parametrize("scope", ["workspace", "tool", "key"])
async def test_frozen_approved_request_is_not_reported_as_approved(
    client: ClientFactory, keys: Keys, clock: Clock, services: AppServices, scope: str
) -> None:
    agent, bob, ada = client(keys["agent"]), client(keys["reviewer"]), client(keys["admin"])
    before, after = await assert_accepted(agent), await assert_accepted(agent)
    assert (await submit(bob, before, "approved", comment="Fine.")).json()["decision"] == "approved"
    key = next(key.id for key in await services.accounts.keys("default") if key.role == "agent")
    name = {"workspace": "", "tool": "fund_*", "key": key}[scope]
    frozen = await ada.post("/api/freeze", json={"scope": scope, "name": name, "reason": "Stop it."})
    assert frozen.status_code == 201, frozen.text
    clock.advance(2 * 3_600_000)  # past the time to start it, which stands still
    assert (await submit(bob, after, "modified", modifiedPayload={**PAY, "amount": 1})).json()["stopped"] == "frozen"
    told = [await resume(agent, before), await resume(agent, after), (await send(agent, request_id=before)).json()]
    for each in told:
        assert (each["status"], each["decision"], each["payload"]) == ("pending", None, None)
        assert (each["final"], each["reviewerId"], each["resolvedAt"]) == (False, None, None)
        assert (each["stopped"], "Stop it." in each["comment"]) == ("frozen", True)
    start = await agent.post(f"/api/calls/{before}/start", json={})
    assert (start.status_code, start.json()["error"]) == (409, "frozen")
    assert (await ada.delete(f"/api/freeze/{frozen.json()['id']}")).status_code == 200
    released = await resume(agent, before)
    assert (released["status"], released["payload"], released["comment"]) == ("approved", PAY, "Fine.")
    assert (await resume(agent, after))["decision"] == "modified"


# R22, R59
async def test_freeze_of_another_process_is_seen_before_an_approval_is_reported(
    client: ClientFactory, keys: Keys, services: AppServices, clock: Clock
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    request_id = await assert_accepted(agent)
    await submit(bob, request_id, "approved")
    draft = Freeze(
        id=uuid7(clock()), workspace="default", scope="workspace", name="", reason="Stop it.", by="ada", at=0
    )
    await services.store.freezes.add(draft)  # and nobody told this process
    assert (await resume(agent, request_id))["stopped"] == "frozen"


# R22, R59
async def test_request_that_the_current_policy_denies_is_not_reported_as_approved(
    client: ClientFactory, keys: Keys, state: Any
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    request_id = await assert_accepted(agent)
    await submit(bob, request_id, "approved")
    deny = "version: 1\nrules: [{name: stop, tools: [fund_transfer], then: deny, reason: No more.}]\n"
    await state.workspaces.put_policy("default", deny, "ada")
    told = await resume(agent, request_id)
    assert (told["status"], told["decision"], told["payload"]) == ("denied", "rejected", None)
    assert (told["reviewerId"], told["final"], told["stopped"]) == ("policy", False, "denied_now")
    assert "No more." in told["comment"]
    await state.workspaces.put_policy("default", "version: 1\n", "ada")
    assert (await resume(agent, request_id))["status"] == "approved"  # a look ends nothing
    await state.workspaces.put_policy("default", deny, "ada")
    assert (await agent.post(f"/api/calls/{request_id}/start", json={})).json()["error"] == "denied_now"
    ended = await resume(agent, request_id)
    assert (ended["status"], ended["decision"], ended["final"]) == ("cancelled", "rejected", True)


# R22
async def test_a_modified_payload_is_what_may_be_done(client: ClientFactory, keys: Keys) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    request_id = await assert_accepted(agent)
    less = {**PAY, "amount": 50}
    assert (await submit(bob, request_id, "modified", modifiedPayload=less)).status_code == 200
    told = await resume(agent, request_id)
    assert (told["decision"], told["payload"], told["status"]) == ("modified", less, "approved")


# R22, R27
@pytest.mark.parametrize(
    ("decision", "more", "where"),
    [
        ("modified", {}, "/modifiedPayload: is missing; the decision modified needs the whole changed payload"),
        (
            "rejected",
            {"modifiedPayload": PAY},
            "/modifiedPayload: goes with the decision modified, and this one is rej",
        ),
        ("modified", {"modifiedPayload": {"amount": -1, "recipient": "x"}}, "/amount"),
        ("modified", {"modifiedPayload": {**PAY, "extra": 1}}, "extra"),
        ("approved", {"comment": "x" * 501}, "/comment: has 501 characters; at most 500 are accepted"),
    ],
)
async def test_an_answer_that_does_not_fit_leaves_the_request_open(
    client: ClientFactory, keys: Keys, decision: str, more: dict[str, Any], where: str
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    request_id = await assert_accepted(agent)
    answer = await submit(bob, request_id, decision, **more)
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_decision"), answer.text
    assert where in answer.text
    assert (await resume(agent, request_id))["status"] == "pending"
    (entry,) = await refusals(bob, request_id)  # R41
    assert (entry["actor"], entry["data"]["error"], entry["content"]["via"]) == ("bob", "invalid_decision", "key")
    assert entry["content"]["fields"] == [problem["pointer"] for problem in answer.json()["problems"]]
    assert "x" * 20 not in json.dumps(entry)


# R22, R29, R41
@pytest.mark.parametrize("reviewer_id", ["bob", "BOB", "bob@example.com", "Bob@Example.com"])
async def test_a_reviewer_id_may_be_that_of_who_is_signed_in(
    client: ClientFactory, keys: Keys, reviewer_id: str
) -> None:
    agent, bob, ada = client(keys["agent"]), client(keys["reviewer"]), client(keys["admin"])
    body = {"role": "reviewer", "email": "bob@example.com"}
    assert (await ada.put("/api/users/bob", json=body)).status_code == 200
    request_id = await assert_accepted(agent)
    answer = await submit(bob, request_id, "approved", reviewerId=reviewer_id)
    assert (answer.status_code, answer.json()["reviewerId"]) == (200, "bob"), answer.text


# R22, R29, R41
@pytest.mark.parametrize("reviewer_id", ["ada", "b\u043eb", "", "bob ", "bob@example.com"])
async def test_an_answer_in_another_name_is_refused_and_recorded(
    client: ClientFactory, keys: Keys, reviewer_id: str
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    request_id = await assert_accepted(agent)
    answer = await submit(bob, request_id, "approved", reviewerId=reviewer_id)
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    assert "comes from bob, who is signed in" in answer.json()["message"]
    assert (await resume(agent, request_id))["status"] == "pending"
    (entry,) = await refusals(bob, request_id)
    assert (entry["actor"], entry["data"], entry["content"]["kind"]) == ("bob", {"error": "forbidden"}, "approve")
    assert entry["content"]["fields"] == ["/reviewerId"]


# R22, R41
@pytest.mark.parametrize(
    ("wrong", "fields"),
    [
        ({"decision": "yes"}, ["/decision"]),
        ({"decision": "approved", "comment": 5, "argsSha256": 5}, ["/comment", "/argsSha256"]),
        ({"decision": "approved", "argsSha256": "0" * 65}, ["/argsSha256"]),
        ({"decision": "approved", "reviewerId": "x" * 1_000}, ["/reviewerId"]),
        ({"decision": "approved", **{f"extra{number}": "secret" for number in range(20)}}, 5),
        ({"decision": "approved", "y" * 1_000: 1}, ["/" + "y" * 199]),
    ],
)
async def test_an_answer_of_the_wrong_form_is_recorded_with_its_fields(
    client: ClientFactory, keys: Keys, wrong: dict[str, Any], fields: list[str] | int
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    request_id = await assert_accepted(agent)
    answer = await bob.post("/submit", json={"requestId": request_id.upper(), **wrong})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    (entry,) = await refusals(bob, request_id)
    assert (entry["actor"], entry["data"]) == ("bob", {"error": "invalid_request"})
    found = entry["content"]["fields"]
    assert (len(found) if isinstance(fields, int) else found) == fields
    assert "secret" not in json.dumps(entry)


# R41
async def test_an_answer_of_the_wrong_form_from_a_stranger_leaves_no_entry(client: ClientFactory, keys: Keys) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    request_id = await assert_accepted(agent)
    wrong = {"requestId": request_id, "decision": "yes"}
    statuses = [(await each.post("/submit", json=wrong)).status_code for each in (agent, client(keys["viewer"]))]
    assert statuses == [403, 403]
    for nothing in ({"decision": "yes"}, {"requestId": "no", "decision": "yes"}, [], "text"):
        assert (await bob.post("/submit", json=nothing)).status_code == 400
    assert await refusals(bob, request_id) == []


# R22, R27
async def test_a_payload_that_does_not_fit_is_flagged_cannot_be_approved_and_can_be_mended(
    client: ClientFactory, keys: Keys, services: AppServices
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    answer = await send(agent, {"amount": -5, "recipient": "ann"})
    request_id = answer.json()["requestId"]
    assert [flag["pointer"] for flag in answer.json()["flags"]] == ["/amount"]
    refused = await submit(bob, request_id, "approved")
    assert (refused.status_code, refused.json()["problems"][0]["pointer"]) == (422, "/amount")
    assert "decision_refused" in await event_kinds(services)
    assert (await submit(bob, request_id, "modified", modifiedPayload=PAY)).status_code == 200
    mended = await resume(agent, request_id)
    assert (mended["decision"], mended["payload"], mended["flags"]) == ("modified", PAY, [])


# R24
@pytest.mark.postgres_smoke
async def test_the_same_request_is_one_and_another_under_its_id_is_a_conflict(
    client: ClientFactory, keys: Keys, services: AppServices
) -> None:
    agent, request_id = client(keys["agent"]), str(uuid4())
    answers = await asyncio.gather(*[send(agent, request_id=request_id.upper()) for _ in range(20)])
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert (await event_kinds(services)).count("proposed") == 1
    others: list[dict[str, Any]] = [{"payload": {**PAY, "amount": 1}}, {"action": "other"}, {"initiatedBy": "eve"}]
    for other in others:
        answer = await send(agent, request_id=request_id, **other)
        assert (answer.status_code, answer.json()["error"]) == (409, "call_mismatch"), other


@pytest.mark.parametrize(
    "change",
    [
        {"requestId": "17"},
        {"payload": [1]},
        {"actionType": 1},
        {"metadata": {"priority": "urgent"}},
        {"metadata": {"expiresAt": "tomorrow"}},
        {"metadata": {"expiresAt": "2020-01-01T00:00:00Z"}},
        {"metadata": {"approved": True}},
        {"approved": True},
    ],
)
async def test_a_wrong_request_is_refused(client: ClientFactory, keys: Keys, change: dict[str, Any]) -> None:
    body = {"requestId": str(uuid4()), "actionType": "fund_transfer", "payload": PAY, **change}
    answer = await client(keys["agent"]).post("/requests", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), answer.text


# R22, R28
async def test_a_request_expires_when_it_says_so(client: ClientFactory, keys: Keys, clock: Clock) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    request_id = await assert_accepted(agent, expiresAt=rfc3339(clock() + 5_000))
    clock.advance(5_000)
    told = await resume(agent, request_id)
    assert (told["status"], told["decision"], told["payload"]) == ("expired", "rejected", None)
    late = await submit(bob, request_id, "approved")
    assert (late.status_code, late.json()["error"]) == (410, "expired")


# R26
async def test_the_team_of_an_action_decides_once_there_are_people_in_it(client: ClientFactory, keys: Keys) -> None:
    agent, bob, ada = client(keys["agent"]), client(keys["reviewer"]), client(keys["admin"])
    request_id = await assert_accepted(agent)
    assert (await submit(ada, request_id, "approved")).status_code == 403
    assert (await submit(bob, request_id, "approved")).status_code == 200
    article = {"url": "https://example.com/a", "tags": ["news"]}
    nobodys = await assert_accepted(agent, article, "content_publish")
    assert (await submit(ada, nobodys, "approved")).status_code == 200


# R48
async def test_a_rule_says_otherwise(client: ClientFactory, keys: Keys, state: Any, clock: Clock) -> None:
    rules = """
version: 1
rules:
  - {name: ada pays, tools: [fund_transfer], when: args.amount < 1000, then: ask, approvers: {users: [ada]},
     expires_in: 1m}
  - {name: not so much, tools: [fund_transfer], then: deny, reason: Too much.}
"""
    await state.workspaces.put_policy("default", rules, "ada")
    agent, bob, ada = client(keys["agent"]), client(keys["reviewer"]), client(keys["admin"])
    request_id = await assert_accepted(agent)
    assert (await resume(agent, request_id))["expiresAt"] == rfc3339(clock() + 60_000)
    assert (await submit(bob, request_id, "approved")).status_code == 403
    assert (await submit(ada, request_id, "approved")).status_code == 200
    denied = (await send(agent, {**PAY, "amount": 5000})).json()
    assert (denied["status"], denied["decision"], denied["comment"]) == ("denied", "rejected", "Too much.")


# R48
async def test_only_agents_ask_and_only_people_answer(client: ClientFactory, keys: Keys, services: AppServices) -> None:
    agent = client(keys["agent"])
    request_id = await assert_accepted(agent)
    for role in ("viewer", "reviewer", "admin"):
        assert (await send(client(keys[role]))).status_code == 403
    for role in ("agent", "viewer"):
        assert (await submit(client(keys[role]), request_id, "approved")).status_code == 403
    stranger = await make_keys(services, "elsewhere")
    assert (await client(stranger["agent"]).get(f"/resume/{request_id}")).status_code == 404
    assert (await submit(client(stranger["admin"]), request_id, "approved")).status_code == 404


@pytest.mark.parametrize(
    ("action", "payload", "sentence"),
    [
        ("fund_transfer", {"amount": 1500, "recipient": "ACME Ltd"}, "Transfer 1500 to 'ACME Ltd'"),
        ("fund_transfer", {"amount": 0.1, "recipient": "x' now"}, 'Transfer 0.1 to "x\' now"'),
        ("fund_transfer", {"amount": 10**20 + 1, "recipient": "x"}, "Transfer 100000000000000000001 to 'x'"),
        (
            "content_publish",
            {"url": "https://a.example/b", "tags": ["a", "b"]},
            "Publish 'https://a.example/b' with the tags ['a', 'b']",
        ),
        ("config_update", {"key": "rate", "value": "5"}, "Set 'rate' to '5'"),
        ("config_update", {"key": "rate", "value": 5}, "Set 'rate' to 5"),
        ("close_account", {"id": 7}, "Run close_account: id = 7"),
    ],
)
async def test_a_card_says_what_a_ready_action_would_do(
    client: ClientFactory, keys: Keys, action: str, payload: dict[str, Any], sentence: str
) -> None:  # R2, R22
    request_id = await assert_accepted(client(keys["agent"]), payload, action)
    shown = (await client(keys["reviewer"]).get(f"/api/approvals/{request_id}")).json()
    assert shown["card"]["sentence"] == shown["sentence"] == sentence


class TestDescribed:
    @pytest.fixture
    def settings(self) -> Settings:
        schema = {"type": "object", "properties": {"name": {"type": "string"}, "iban": {"type": "string"}}}
        own = ToolSettings(
            describe="Hire {name!r}, paid to {iban}",
            effect="destructive",
            secret=("iban",),
            preview="A contract is sent to {name}.",
        )
        return Settings(actions={"hire": ActionSettings(schema, "", own), "fire": ActionSettings(schema)})

    async def test_an_action_has_the_words_effect_and_secrets_of_the_configuration(
        self, client: ClientFactory, keys: Keys
    ) -> None:  # R2
        agent, bob, hired = client(keys["agent"]), client(keys["reviewer"]), {"name": "ann", "iban": "DE89370400"}
        call = {"tool": "hire", "args": hired, "run_id": "r", "call_id": "c", "effect": "read", "description": "Reads."}
        told = (await agent.post("/api/calls", json=call)).json()
        for approval_id in (await assert_accepted(agent, hired, "hire"), told["approval_id"]):
            shown = (await bob.get(f"/api/approvals/{approval_id}")).json()
            assert shown["sentence"] == "Hire 'ann', paid to (hidden)"
            assert (shown["effect"], shown["card"]["preview"]) == ("destructive", "A contract is sent to ann.")
            assert "DE89370400" not in str(shown)

    async def test_an_action_without_words_is_named_with_its_arguments(self, client: ClientFactory, keys: Keys) -> None:
        request_id = await assert_accepted(client(keys["agent"]), {"name": "ann"}, "fire")  # R2
        shown = (await client(keys["reviewer"]).get(f"/api/approvals/{request_id}")).json()
        assert shown["sentence"] == "Fire: name = ann"


class TestConfigured:
    @pytest.fixture
    def settings(self) -> Settings:
        schema = {"type": "object", "properties": {"key": {"type": "string"}}}
        lenient = VerificationSettings(schema_strictness="lenient", allow_modifications=False, max_comment_length=10)
        return Settings(actions={"update": ActionSettings(schema, "nobody")}, verification=lenient)

    async def test_verification_is_as_configured(self, client: ClientFactory, keys: Keys) -> None:  # R27, R30
        agent, bob = client(keys["agent"]), client(keys["reviewer"])
        request_id = await assert_accepted(agent, {"key": "a", "more": 1}, "update")
        assert (await resume(agent, request_id))["flags"] == []
        modified = await submit(bob, request_id, "modified", modifiedPayload={"key": "b"})
        assert (modified.status_code, modified.json()["error"]) == (422, "invalid_decision")
        assert (await submit(bob, request_id, "approved", comment="x" * 11)).status_code == 422
        shown = (await bob.get(f"/api/approvals/{request_id}")).json()
        assert shown["decisions"] == ["approve", "reject"]

    async def test_a_configured_team_decides_though_nobody_is_in_it(
        self, client: ClientFactory, keys: Keys
    ) -> None:  # R26
        request_id = await assert_accepted(client(keys["agent"]), {"key": "a"}, "update")
        assert (await submit(client(keys["admin"]), request_id, "approved")).status_code == 403


HEADERS = {"url": "https://api.example.com/x", "headers": {"Authorization": "Bearer hunter2"}, "body": "x"}


@pytest.mark.parametrize("tool", ["http_post", "HTTP_Post"])
async def test_what_is_registered_of_a_tool_counts_for_a_request(
    client: ClientFactory, keys: Keys, services: AppServices, state: ServerState, tool: str
) -> None:
    agent, vic = client(keys["agent"]), client(keys["viewer"])
    request_id = await assert_accepted(agent, HEADERS, tool)
    card = await vic.get(f"/api/approvals/{request_id}")
    assert "hunter2" not in card.text
    assert card.json()["effect"] == "write"
    for odd in ({"address": "nowhere"}, {**HEADERS, "headers": [["Authorization", "Bearer hunter2"]]}):
        refused = await send(agent, odd, tool)
        assert refused.status_code == 400, "in what does not fit, a secret could stand anywhere"
    await state.workspaces.put_policy("default", "version: 1\nrules:\n  - {name: no, then: deny}\n", "ada")
    assert (await send(agent, HEADERS, tool)).json()["status"] == "denied"
    entries = [entry async for page in services.store.entries("default", 0) for entry in page]
    denied = [entry for entry in entries if entry.kind == "denied"]
    assert denied
    assert not [entry for entry in entries if b"hunter2" in (entry.content or b"")]


async def test_a_pin_of_a_ready_action_keeps_the_schema_of_the_action(
    client: ClientFactory, keys: Keys, state: ServerState
) -> None:
    await state.workspaces.pin("default", [ToolSpec("fund_transfer", "destructive")], "", "ada")
    answer = (await send(client(keys["agent"]), {"amount": -5, "recipient": "ann"})).json()
    assert answer["flags"]
    shown = (await client(keys["viewer"]).get(f"/api/approvals/{answer['requestId']}")).json()
    assert shown["effect"] == "destructive"

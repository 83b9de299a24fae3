"""What a program with an agent's key says of its own call, over the wire: it can only tighten.

Each test is something that was done to a running server.
"""
# R56

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.call import ToolSpec
from interlock.core.identity import KeyBindings
from interlock.runtime.durations import rfc3339
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.support import Clock

CALL = {"tool": "run_sql", "args": {"sql": "DROP TABLE users"}, "run_id": "run", "call_id": "c1"}


async def put_policy(state: ServerState, text: str) -> None:
    await state.workspaces.put_policy("default", f"version: 1\n{text}", "ada")


async def propose(agent: httpx2.AsyncClient, /, **claims: Any) -> dict[str, Any]:
    answer = await agent.post("/api/calls", json={**CALL, "call_id": uuid4().hex, **claims})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


SILENCE_APPROVES = """
rules:
  - {name: slow, then: ask, on_expiry: approve, expires_in: 30m, quorum: 2}
"""


async def test_a_proposal_approves_nothing_where_silence_does(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    await put_policy(state, SILENCE_APPROVES)
    agent = client(keys["agent"])
    told = await propose(agent, expires_in="0s")
    assert (told["outcome"], told["status"]) == ("waiting", "pending")
    assert (await agent.get(f"/api/calls/{told['approval_id']}")).json()["status"] == "pending"
    refused = await agent.post(f"/api/calls/{told['approval_id']}/start", json={})
    assert (refused.status_code, refused.json()["error"]) == (409, "not_approved")


async def test_nor_does_the_expiry_of_a_request(
    client: ClientFactory, keys: dict[str, str], state: ServerState, clock: Clock
) -> None:
    await put_policy(state, SILENCE_APPROVES)
    body = {"requestId": str(uuid4()), "actionType": "run_sql", "payload": {}, "metadata": {}}
    until = (await client(keys["agent"]).post("/requests", json=body)).json()["expiresAt"]
    body = {**body, "requestId": str(uuid4()), "metadata": {"expiresAt": rfc3339(clock() + 1_000)}}
    assert (await client(keys["agent"]).post("/requests", json=body)).json()["expiresAt"] == until


async def test_no_call_takes_the_rejection_away(client: ClientFactory, keys: dict[str, str]) -> None:
    told = await propose(client(keys["agent"]), decisions=["approve"])
    body = {"kind": "reject", "args_sha256": told["args_sha256"], "reason": "No."}
    rejected = await client(keys["reviewer"]).post(f"/api/approvals/{told['approval_id']}/decision", json=body)
    assert (rejected.status_code, rejected.json()["status"]) == (200, "rejected")


# R57
@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("cms_delete_post", {"slug": "welcome"}),
        ("CMS_Delete_Post", {"slug": "welcome"}),
        ("http_post", {"url": "https://example.com/", "body": "x"}),
        ("fund_transfer", {"amount": 1, "recipient": "ann"}),
        ("Fund_Transfer", {"amount": 1, "recipient": "ann"}),
    ],
)
async def test_a_registered_tool_is_no_read_because_its_caller_says_so(
    client: ClientFactory, keys: dict[str, str], state: ServerState, tool: str, args: dict[str, object]
) -> None:
    await put_policy(state, "rules:\n  - {name: reads are free, effect: read, then: allow}\n")
    told = await propose(client(keys["agent"]), tool=tool, args=args, effect="read")
    assert told["outcome"] == "waiting"
    assert told["approval_id"]


async def test_a_tool_that_a_rule_denies_is_denied_whatever_it_calls_itself(
    client: ClientFactory, keys: dict[str, str], state: ServerState, services: AppServices
) -> None:
    await put_policy(
        state,
        "rules:\n  - {name: reads are free, effect: read, then: allow}\n"
        "  - {name: nobody drops, tools: [drop_*], then: deny, reason: Dropping is not allowed.}\n",
    )
    agent = client(keys["agent"])
    assert (await propose(agent, tool="get_weather", effect="read"))["outcome"] == "proceed"
    for tool in ("drop_users", "Drop_users"):
        told = await propose(agent, tool=tool, effect="read")
        assert (told["outcome"], told["reason"]) == ("refused", "Dropping is not allowed.")
    entries = [entry async for page in services.store.entries("default") for entry in page]
    assert [entry.kind for entry in entries].count("denied") == 2


async def test_a_switch_from_outside_lifts_nothing_and_says_where_it_would(
    client: ClientFactory, keys: dict[str, str]
) -> None:
    told = await propose(client(keys["agent"]), switch="off", effect="destructive")
    assert told["outcome"] == "waiting"
    assert "tool_approvals" in " ".join(told["warnings"])


async def test_a_claimed_name_opens_no_rule(client: ClientFactory, keys: dict[str, str], state: ServerState) -> None:
    await put_policy(
        state,
        "rules:\n  - {name: billing pays, agents: [billing], then: allow}\n"
        "  - {name: ada may, users: [ada], then: allow}\n"
        "  - {name: friends, agents: [friend], then: ask}\n"
        "  - {name: others, then: ask, quorum: 2}\n",
    )
    agent, ada = client(keys["agent"]), client(keys["admin"])
    for claims in ({"agent": "billing"}, {"initiated_by": "ada"}, {"agent": "friend"}):
        told = await propose(agent, effect="write", **claims)
        assert told["outcome"] == "waiting", claims
        shown = (await ada.get(f"/api/approvals/{told['approval_id']}")).json()
        assert shown["quorum"]["need"] == 2, claims
    assert "--agent billing" in " ".join((await propose(agent, effect="write", agent="billing"))["warnings"])


async def test_a_grant_for_an_agent_covers_no_call_that_only_claims_its_name(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await propose(agent, effect="write", agent="billing")
    grant = {"tool": "run_sql", "agent": "billing", "expires_in": "1h", "reason": "It is fine."}
    assert (await bob.post("/api/grants", json=grant)).status_code in (200, 201)
    assert (await propose(agent, effect="write", agent="billing"))["outcome"] == "waiting"
    grant = {"tool": "run_sql", "expires_in": "1h", "reason": "It is fine."}
    assert (await bob.post("/api/grants", json=grant)).status_code in (200, 201)
    assert (await propose(agent, effect="write", agent="billing"))["outcome"] == "proceed"


async def test_a_claimed_idempotence_gives_one_start(client: ClientFactory, keys: dict[str, str], clock: Clock) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await propose(agent, idempotent=True)
    path, body = f"/api/calls/{told['approval_id']}", {"kind": "approve", "args_sha256": told["args_sha256"]}
    assert (await bob.post(f"/api/approvals/{told['approval_id']}/decision", json=body)).status_code == 200
    assert (await agent.post(f"{path}/start", json={"lease_seconds": 1})).status_code == 200
    clock.advance(2_000)
    again = await agent.post(f"{path}/start", json={})
    assert (again.status_code, again.json()["error"]) == (409, "already_started")


@pytest.mark.parametrize(
    "tool", ["fund_transf\u0435r", "fund_transfer ", "fund\u200b_transfer", "cms_delete_p\u043est"]
)
async def test_a_name_that_looks_like_a_known_one_is_denied_on_record(
    client: ClientFactory, keys: dict[str, str], state: ServerState, services: AppServices, tool: str
) -> None:
    await put_policy(state, "rules:\n  - {name: money, tools: [fund_transfer], then: ask, quorum: 2}\n")
    told = await propose(client(keys["agent"]), tool=tool, effect="read")
    assert (told["outcome"], told["status"]) == ("refused", "denied")
    assert "looks like" in told["reason"]
    entries = [entry async for page in services.store.entries("default") for entry in page]
    assert entries[-1].kind == "denied"


MIXED = {
    "a tool": {"tool": "dr\u2d54p_users", "effect": "read"},
    "an agent": {"agent": "b\u2d54b"},
    "an agent above": {"agent_path": ["b\u2d54b", "helper"]},
    "a requester": {"initiated_by": "b\u2d54b"},
}


@pytest.mark.parametrize("what", MIXED)
async def test_a_name_that_mixes_alphabets_is_denied_on_record(
    client: ClientFactory, keys: dict[str, str], services: AppServices, what: str
) -> None:
    told = await propose(client(keys["agent"]), **MIXED[what])
    assert (told["outcome"], told["status"]) == ("refused", "denied")
    assert "U+2D54 TIFINAGH LETTER YAR" in told["reason"]
    entries = [entry async for page in services.store.entries("default") for entry in page]
    assert entries[-1].kind == "denied"


# R57
async def test_names_that_somebody_here_gave_may_mix_alphabets(
    client: ClientFactory, services: AppServices, state: ServerState
) -> None:
    await services.accounts.add_user("default", "b\u2d54b", "reviewer", "ada")
    await state.workspaces.refresh("default")
    agent = client(await bind_key(services, agents=("b\u2d54t",), requester="b\u2d54b"))
    assert (await propose(agent, agent="b\u2d54t"))["outcome"] == "waiting"
    assert (await propose(agent, tool="\u0443\u0434\u0430\u043b\u0438\u0442\u044c_file"))["outcome"] == "waiting"


async def test_a_plain_name_that_looks_like_a_known_one_in_other_letters_is_denied_too(
    client: ClientFactory, keys: dict[str, str], state: ServerState, services: AppServices
) -> None:
    """As seen from the other side: the account or the pin has the Cyrillic letter, the call the Latin one."""
    cyrillic = "\u0410nna"
    await services.accounts.add_user("default", cyrillic, "reviewer", "ada")
    await state.workspaces.pin("default", [ToolSpec("shr\u0435d", "write")], "", "ada")
    agent = client(keys["agent"])
    for claims in ({"initiated_by": "Anna"}, {"initiated_by": "\u0391nna"}, {"tool": "shred"}):
        told = await propose(agent, **claims)
        assert (told["outcome"], told["status"]) == ("refused", "denied"), claims
        assert "looks like" in told["reason"]
    for claims in ({}, {"initiated_by": cyrillic}, {"initiated_by": "bob"}, {"tool": "shr\u0435d"}):
        assert (await propose(agent, **claims))["outcome"] == "waiting", claims
    await services.accounts.add_user("default", "Anna", "reviewer", "ada")
    await state.workspaces.refresh("default")
    assert (await propose(agent, initiated_by="Anna"))["outcome"] == "waiting", "they are somebody by now"


FOUR_EYES = """
rules:
  - {name: four eyes, then: ask, exclude: [requester]}
"""


async def test_an_excluded_requester_stays_excluded_under_other_spellings(
    client: ClientFactory, keys: dict[str, str], state: ServerState, services: AppServices
) -> None:
    await put_policy(state, FOUR_EYES)
    await services.accounts.change_user("default", "bob", "ada", email="bob@example.com")
    await state.workspaces.refresh("default")
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    for name in ("bob", "BOB", "bob@example.com", "Bob@Example.com"):
        told = await propose(agent, initiated_by=name)
        body = {"kind": "approve", "args_sha256": told["args_sha256"]}
        refused = await bob.post(f"/api/approvals/{told['approval_id']}/decision", json=body)
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden"), name
    assert (await propose(agent, initiated_by="bob "))["status"] == "denied"


async def test_where_the_requester_is_not_known_one_more_person_has_to_approve(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    await put_policy(state, FOUR_EYES)
    for claims in ({}, {"initiated_by": "somebody else"}):
        told = await propose(client(keys["agent"]), **claims)
        shown = (await client(keys["admin"]).get(f"/api/approvals/{told['approval_id']}")).json()
        assert shown["quorum"]["need"] == 2
        assert any("one more person" in fact["text"] for fact in shown["card"]["facts"])


# R58
async def test_another_agents_call_is_not_there(
    client: ClientFactory, keys: dict[str, str], services: AppServices
) -> None:
    _, other = await services.accounts.create_key("default", "other", "agent", "ada")
    mine, theirs = client(keys["agent"]), client(other)
    told = await propose(mine, call_id="one", secret=["/sql"])
    clash = await theirs.post("/api/calls", json={**CALL, "call_id": "one", "secret": ["/sql"]})
    assert (clash.status_code, clash.json()["error"]) == (409, "call_mismatch")
    assert told["approval_id"] not in clash.text
    path = f"/api/calls/{told['approval_id']}"
    for answer in (
        await theirs.get(path),
        await theirs.post(f"{path}/start", json={}),
        await theirs.post(f"{path}/finish", json={"fence": 1, "ok": True}),
        await theirs.post(f"{path}/cancel", json={}),
        await theirs.post(f"{path}/renew", json={"fence": 1}),
        await theirs.get(f"{path}/questions"),
        await theirs.get(f"/resume/{told['approval_id']}"),
    ):
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), answer.request.url
    assert (await mine.get(path)).json()["status"] == "pending"


async def test_people_see_the_calls_of_all_agents(client: ClientFactory, keys: dict[str, str]) -> None:
    told = await propose(client(keys["agent"]))
    assert (await client(keys["admin"]).get(f"/resume/{told['approval_id']}")).json()["status"] == "pending"


async def test_a_team_that_is_only_claimed_with_its_person_opens_nothing(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    await put_policy(state, "rules:\n  - {name: finance may, teams: [finance], then: allow}\n")
    told = await propose(client(keys["agent"]), effect="write", initiated_by="bob")
    assert told["outcome"] == "waiting"
    assert "--requester bob" in " ".join(told["warnings"])


# Keys that are bound


async def bind_key(services: AppServices, **bindings: Any) -> str:
    _, key = await services.accounts.create_key("default", "bound", "agent", "ada", "", KeyBindings(**bindings))
    return key


# R58
async def test_a_bound_key_speaks_for_its_agent_said_or_not_and_for_no_other(
    client: ClientFactory, keys: dict[str, str], state: ServerState, services: AppServices
) -> None:
    await put_policy(state, "rules:\n  - {name: billing pays, agents: [billing], then: allow}\n")
    agent = client(await bind_key(services, agents=("billing",)))
    for claims in ({}, {"agent": "billing"}, {"agent": "clerk", "agent_path": ["billing", "clerk"]}):
        told = await propose(agent, effect="write", **claims)
        shown = (await client(keys["admin"]).get(f"/api/approvals/{told['approval_id']}")).json()
        # a rule that lets pass needs every agent of the path
        assert (told["outcome"] == "proceed") is ("agent_path" not in claims), claims
        assert shown["agent"] == claims.get("agent", "billing")
    for claims in ({"agent": "support"}, {"agent_path": ["support"]}):
        refused = await agent.post("/api/calls", json={**CALL, "call_id": uuid4().hex, **claims})
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden"), claims


# R58
async def test_a_key_with_several_agents_that_names_none_gets_the_strictest_verdict(
    client: ClientFactory, state: ServerState, services: AppServices
) -> None:
    await put_policy(
        state,
        "rules:\n  - {name: billing pays, agents: [billing], then: allow}\n"
        "  - {name: support never, agents: [support], then: deny, reason: Not support.}\n",
    )
    agent = client(await bind_key(services, agents=("billing", "support")))
    assert (await propose(agent, effect="write"))["outcome"] == "refused"
    assert (await propose(agent, effect="write", agent="billing"))["outcome"] == "proceed"


# R58
async def test_a_key_for_certain_tools_proposes_no_others(client: ClientFactory, services: AppServices) -> None:
    agent = client(await bind_key(services, tools=("run_*",)))
    assert (await propose(agent))["outcome"] == "waiting"
    refused = await agent.post("/api/calls", json={**CALL, "tool": "pay", "call_id": "c9"})
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    literal = client(await bind_key(services, tools=("pay[eu]",)))
    tools = ("pay[eu]", "paye")
    answers = [await literal.post("/api/calls", json={**CALL, "tool": tool, "call_id": tool}) for tool in tools]
    assert [answer.status_code for answer in answers] == [200, 403]


# R58
@pytest.mark.parametrize(
    ("requester", "claims", "need"),
    [
        ("bob", {}, 1),
        ("any", {"initiated_by": "bob"}, 1),
        ("none", {}, 1),
        ("any", {}, 2),
        ("", {"initiated_by": "bob"}, 2),
    ],
)
async def test_a_key_that_vouches_for_the_requester_costs_nobody_more(
    client: ClientFactory,
    keys: dict[str, str],
    state: ServerState,
    services: AppServices,
    requester: str,
    claims: dict[str, str],
    need: int,
) -> None:
    await put_policy(state, FOUR_EYES)
    told = await propose(client(await bind_key(services, requester=requester)), **claims)
    shown = (await client(keys["admin"]).get(f"/api/approvals/{told['approval_id']}")).json()
    assert shown["quorum"]["need"] == need
    assert shown["requester"] == ("bob" if requester == "bob" or claims else "")


async def test_a_requester_who_was_removed_is_only_a_name(
    client: ClientFactory, keys: dict[str, str], state: ServerState, services: AppServices
) -> None:
    """Neither by their teams nor by their name, also for a key that vouches for whom it names."""
    await services.accounts.add_user("default", "olga", "viewer", "ada", teams=frozenset({"ops"}))
    await state.workspaces.refresh("default")
    await put_policy(
        state,
        "rules:\n  - {name: ops, tools: [run_sql], teams: [ops], then: allow}\n"
        "  - {name: olga, tools: [drop], users: [olga], then: allow}\n"
        "  - {name: four eyes, then: ask, approvers: {teams: [finance]}, exclude: [requester]}\n",
    )
    agent = client(await bind_key(services, requester="any"))
    assert (await propose(agent, initiated_by="olga", effect="write"))["outcome"] == "proceed"
    assert (await propose(agent, initiated_by="olga", effect="write", tool="drop"))["outcome"] == "proceed"
    await services.accounts.remove_user("default", "olga", "ada")
    await state.workspaces.refresh("default")
    told = await propose(agent, initiated_by="olga", effect="write")
    shown = (await client(keys["admin"]).get(f"/api/approvals/{told['approval_id']}")).json()
    assert (told["outcome"], shown["requester"], shown["quorum"]["need"]) == ("waiting", "olga", 2)
    assert (await propose(agent, initiated_by="olga", effect="write", tool="drop"))["outcome"] == "waiting"


# R58
async def test_a_key_of_nobody_takes_no_requester(client: ClientFactory, services: AppServices) -> None:
    agent = client(await bind_key(services, requester="none"))
    refused = await agent.post("/api/calls", json={**CALL, "initiated_by": "bob"})
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")


# R58
async def test_another_key_of_the_same_agent_goes_on_with_its_calls(
    client: ClientFactory, services: AppServices
) -> None:
    first, second = (
        client(await bind_key(services, agents=("billing",))),
        client(await bind_key(services, agents=("billing",))),
    )
    told = await propose(first, call_id="one")
    assert (await second.get(f"/api/calls/{told['approval_id']}")).json()["status"] == "pending"
    assert (await propose(second, call_id="one"))["approval_id"] == told["approval_id"]


# R58
async def test_the_calls_of_two_agents_are_not_those_of_one_whose_name_holds_both(
    client: ClientFactory, services: AppServices
) -> None:
    both, one = client(await bind_key(services, agents=("a", "b"))), client(await bind_key(services, agents=("a|b",)))
    theirs, own = await propose(both), await propose(one)
    assert (await one.get(f"/api/calls/{theirs['approval_id']}")).status_code == 404
    assert (await both.get(f"/api/calls/{own['approval_id']}")).status_code == 404
    assert (await one.get(f"/api/calls/{own['approval_id']}")).status_code == 200


# R58
async def test_a_rotated_key_goes_on_with_the_calls_of_the_one_before(
    client: ClientFactory, keys: dict[str, str], services: AppServices
) -> None:
    key, secret = await services.accounts.create_key("default", "unbound", "agent", "ada")
    told = await propose(client(secret), call_id="one")
    _, rotated = await services.accounts.rotate_key("default", key.id, "ada")
    assert (await client(rotated).get(f"/api/calls/{told['approval_id']}")).json()["status"] == "pending"
    assert (await client(keys["agent"]).get(f"/api/calls/{told['approval_id']}")).status_code == 404


async def test_the_agent_that_calls_is_the_last_of_its_path(client: ClientFactory, keys: dict[str, str]) -> None:
    """Otherwise rules and freezes would look at one name, and the record would tell another."""
    agent = client(keys["agent"])
    refused = await agent.post("/api/calls", json={**CALL, "agent": "research", "agent_path": ["me"]})
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_request")
    told = await propose(agent, agent_path=["me", "research"])
    shown = (await client(keys["admin"]).get(f"/api/approvals/{told['approval_id']}")).json()
    assert (shown["agent"], shown["agent_path"]) == ("research", ["me", "research"])


# R58
async def test_answers_are_kept_by_whose_the_calls_are_and_not_by_the_name_of_a_key(
    client: ClientFactory, services: AppServices
) -> None:
    first, second = (
        client(await bind_key(services, agents=("billing",))),
        client(await bind_key(services, agents=("research",))),
    )
    headers = {"idempotency-key": "k1"}
    answers = [await each.post("/api/calls", json=CALL, headers=headers) for each in (first, second)]
    assert answers[0].json()["outcome"] == "waiting"
    assert (answers[1].status_code, answers[1].json()["error"]) == (409, "call_mismatch")
    call = {"run_id": "r", "call_id": "hl", "spec": {"fn": "drop", "kwargs": {"token": "s3cret"}}}
    path = "/humanlayer/v1/function_calls"
    assert (await first.post(path, json=call)).status_code == 200
    assert (await second.get(f"{path}/hl")).status_code == 404


async def test_no_interface_shortens_the_time_after_which_silence_approves(
    client: ClientFactory, keys: dict[str, str], state: ServerState, clock: Clock
) -> None:
    await put_policy(
        state,
        "rules:\n  - {name: slow, then: ask, on_expiry: approve, expires_in: {queue: 1h, paused: 2s, chat: 2s}}\n",
    )
    agent, later = client(keys["agent"]), rfc3339(clock() + 3_600_000)
    body = {"requestId": str(uuid4()), "actionType": "run_sql", "payload": {}}
    assert (await agent.post("/requests", json=body)).json()["expiresAt"] == later
    assert (await propose(agent, setting="paused"))["until"] == later
    call = {"run_id": "r", "call_id": "hl", "spec": {"fn": "run_sql", "kwargs": {}}}
    assert (await agent.post("/humanlayer/v1/function_calls", json=call)).status_code == 200
    found = (await client(keys["admin"]).get("/api/approvals", params={"run_id": "r"})).json()["items"]
    assert found[0]["expires_at"] == later


async def test_the_ledger_does_not_repeat_a_claimed_idempotence(
    client: ClientFactory, keys: dict[str, str], services: AppServices
) -> None:
    await propose(client(keys["agent"]), idempotent=True)
    entries = [entry async for page in services.store.entries("default") for entry in page]
    assert '"idempotent":false' in next(entry.data for entry in entries if entry.kind == "proposed")


@pytest.mark.parametrize(
    "rule",
    [
        "users: [bob@example.com]",
        "users: ['*@example.com']",
        "users: [bob]",
        'when: user.endsWith("@example.com")',
        'when: user == "bob"',
    ],
)
@pytest.mark.parametrize("said", ["bob", "bob@example.com"])
async def test_a_rule_that_denies_somebody_knows_them_by_name_and_address(
    client: ClientFactory, keys: dict[str, str], state: ServerState, services: AppServices, rule: str, said: str
) -> None:
    await services.accounts.change_user("default", "bob", "ada", email="bob@example.com")
    await put_policy(state, f"rules:\n  - {{name: not for them, {rule}, then: deny, reason: No.}}\n")
    told = await propose(client(keys["agent"]), effect="read", initiated_by=said)
    assert (told["outcome"], told["reason"]) == ("refused", "No.")
    assert (await propose(client(keys["agent"]), effect="read", initiated_by="ada"))["outcome"] == "proceed"


async def test_a_name_with_marks_or_pictures_is_a_name(client: ClientFactory, keys: dict[str, str]) -> None:
    for agent in (
        "Ad\u00e9b\u00e1y\u1ecd\u0300",
        "\U0001f6e0\ufe0f fixer",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    ):
        assert (await propose(client(keys["agent"]), effect="read", agent=agent))["outcome"] == "proceed"


async def test_nobody_edits_what_a_program_runs_by_itself(
    client: ClientFactory, keys: dict[str, str], services: AppServices, state: ServerState
) -> None:
    """HumanLayer's program runs the arguments that it has, also of a tool that is registered or pinned."""
    await services.store.pin("default", [ToolSpec("send", "write")], "", "ada")
    await state.workspaces.refresh("default")
    for tool, kwargs in (("send", {"to": "all"}), ("cms_delete_post", {"slug": "welcome"})):
        call = {"run_id": "r", "call_id": tool, "spec": {"fn": tool, "kwargs": kwargs}}
        assert (await client(keys["agent"]).post("/humanlayer/v1/function_calls", json=call)).status_code == 200
        [item] = (await client(keys["admin"]).get("/api/approvals", params={"tool": tool})).json()["items"]
        shown = (await client(keys["admin"]).get(f"/api/approvals/{item['id']}")).json()
        assert shown["decisions"] == ["approve", "reject"], tool


NAMED = 'rules:\n  - {name: money, tools: ["wire_*"], then: ask}\n'
DISTRUSTS = "defaults: {trust_declared: false}\n"


@pytest.mark.parametrize("policy", [NAMED, DISTRUSTS])
async def test_an_effect_that_is_not_believed_lowers_no_risk(
    client: ClientFactory, keys: dict[str, str], state: ServerState, policy: str
) -> None:
    await put_policy(state, policy)
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    risks = {}
    for effect in ("", "read", "write", "destructive"):
        told = await propose(agent, tool="wire_x", effect=effect)
        card = (await bob.get(f"/api/approvals/{told['approval_id']}")).json()
        risks[effect] = card["risk"]
        assert card["risk"] == card["card"]["risk"]
        claimed = [fact["text"] for fact in card["card"]["facts"] if fact["label"] == "claimed effect"]
        assert claimed == (["read, declared by the agent alone; not trusted"] if effect == "read" else [])
    assert risks == {"": "medium", "read": "medium", "write": "medium", "destructive": "high"}
    listed = (await bob.get("/api/approvals")).json()["items"]
    assert {item["risk"] for item in listed} == {"medium", "high"}

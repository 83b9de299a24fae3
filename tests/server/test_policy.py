"""The policy over HTTP: read, replaced, checked, explained and rehearsed."""

from __future__ import annotations

import asyncio
import json

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.models import InlinePolicy, Settings
from interlock.server.app import build_app
from interlock.server.serve import make_server_state
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.server.test_calls import CALL, propose

POLICY = """\
version: 1
rules:
  - name: nobody deletes
    tools: [delete_*]
    then: deny
    reason: Files stay.
"""
YAML = {"content-type": "application/yaml"}


@pytest.fixture
def ada(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["admin"])


async def put(ada: httpx2.AsyncClient, text: str = POLICY, **headers: str) -> httpx2.Response:
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return await ada.put("/api/policy", params={"reason": "we lost one"}, content=text, headers={**YAML, **more})


# R34
async def test_a_policy_holds_at_once(ada: httpx2.AsyncClient, client: ClientFactory, keys: dict[str, str]) -> None:
    answer = await put(ada)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["version"], body["author"], body["reason"], body["new"]) == (1, "ada", "we lost one", True)
    told = await propose(client(keys["agent"]))
    assert (told["outcome"], told["reason"]) == ("refused", "Files stay.")
    assert (await put(ada)).json()["new"] is False


async def test_a_policy_is_given_back_as_it_was_put_and_as_json(ada: httpx2.AsyncClient) -> None:
    await put(ada)
    text = await ada.get("/api/policy")
    assert (text.text, text.headers["content-type"].partition(";")[0]) == (POLICY, "application/yaml")
    assert text.headers["etag"] == '"1"'
    same = await ada.get("/api/policy", headers={"accept": "application/json"})
    assert same.json()["rules"][0]["tools"] == ["delete_*"]
    back = await ada.put("/api/policy", json=same.json())
    assert (back.status_code, back.json()["version"]) == (200, 2)
    assert (await ada.get("/api/policy", params={"version": "1"})).text == POLICY
    unknown = await ada.get("/api/policy", params={"version": "3"})
    assert unknown.status_code == 404
    assert unknown.json()["message"].startswith("There is no version 3 of the policy. See Versions on the Policy page,")


async def test_who_changed_the_policy_and_why_is_in_the_record(ada: httpx2.AsyncClient, state: ServerState) -> None:
    await put(ada)
    entries = [entry async for page in state.store.entries("default") for entry in page]
    entry = next(entry for entry in entries if entry.kind == "policy_changed")
    content = json.loads(entry.content or b"{}")
    assert (entry.actor, content["reason"]) == ("ada", "we lost one")
    assert (content["via"], content["credential"][:4], content["address"]) == ("key", "ilk_", "127.0.0.1")
    [version] = (await ada.get("/api/policy/versions")).json()["items"]
    assert (version["version"], version["author"], version["reason"]) == (1, "ada", "we lost one")


async def test_a_policy_with_a_mistake_changes_nothing(ada: httpx2.AsyncClient) -> None:
    answer = await put(ada, POLICY.replace("tools:", "tool:"))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert 'did you mean "tools"?' in answer.json()["message"]
    assert (await ada.get("/api/policy")).headers["etag"] == '"0"'


async def test_a_policy_that_changed_meanwhile_is_not_replaced(ada: httpx2.AsyncClient) -> None:
    assert (await put(ada, if_match='"0"')).status_code == 200
    late = await put(ada, POLICY + "# late\n", if_match='"0"')
    assert (late.status_code, late.json()["error"]) == (409, "stale")
    assert (await put(ada, POLICY + "# in time\n", if_match='"1"')).json()["version"] == 2


@pytest.mark.postgres_smoke
async def test_of_many_who_saw_the_same_policy_one_replaces_it(ada: httpx2.AsyncClient) -> None:
    answers = await asyncio.gather(*(put(ada, f"{POLICY}# {n}\n", if_match='"0"') for n in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9


async def test_what_is_no_policy_is_refused(ada: httpx2.AsyncClient) -> None:
    plain = await ada.put("/api/policy", content=POLICY, headers={"content-type": "text/plain"})
    assert (plain.status_code, plain.json()["error"]) == (415, "unsupported_media_type")
    bytes_ = await ada.put("/api/policy", content=b"\xff\xfe", headers=YAML)
    assert (bytes_.status_code, bytes_.json()["error"]) == (400, "invalid_request")


async def test_the_versions_say_that_the_servers_file_is_stale(
    services: AppServices, keys: dict[str, str], ada: httpx2.AsyncClient
) -> None:
    assert (await ada.get("/api/policy/versions")).json()["stale"] is None
    for text in (POLICY, "version: 1\n", POLICY):
        started = await make_server_state(Settings(policy=InlinePolicy(text)), services)
    transport = httpx2.ASGITransport(app=build_app(started))
    headers = {"authorization": f"Bearer {keys['admin']}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321", headers=headers) as stale:
        said = (await stale.get("/api/policy/versions")).json()["stale"]
    assert (said["judged_too"], said["command"]) == (True, "interlock policy put FILE")
    assert "version 2 by configuration replaced it" in said["message"]


async def test_a_check_says_what_is_wrong_and_changes_nothing(ada: httpx2.AsyncClient) -> None:
    good = (await ada.post("/api/policy/check", content=POLICY, headers=YAML)).json()
    assert (good["valid"], good["rules"], good["problems"]) == (True, ["nobody deletes"], [])
    assert (await ada.post("/api/policy/check", json={"policy": POLICY})).json() == good
    bad = (await ada.post("/api/policy/check", json={"policy": "rules: [{}]"})).json()
    assert bad["valid"] is False
    assert bad["problems"][0].startswith("line 1")
    assert (await ada.get("/api/policy")).headers["etag"] == '"0"'


async def test_a_verdict_is_explained(ada: httpx2.AsyncClient) -> None:
    call = {"tool": "delete_file", "args": {"path": "/tmp/x"}, "effect": "destructive"}
    now = (await ada.post("/api/policy/explain", json=call)).json()
    assert (now["verdict"], now["rule"]) == ("ask", "")
    then = (await ada.post("/api/policy/explain", json={"call": call, "policy": POLICY})).json()
    assert (then["verdict"], then["rule"], then["reason"]) == ("deny", "nobody deletes", "Files stay.")
    wrong = await ada.post("/api/policy/explain", json={"tol": "x"})
    assert wrong.status_code == 400


# R52
@pytest.mark.postgres_smoke
async def test_a_draft_is_rehearsed_over_what_was_recorded(
    ada: httpx2.AsyncClient, client: ClientFactory, keys: dict[str, str]
) -> None:
    agent = client(keys["agent"])
    for n in range(3):
        await propose(agent, call_id=f"call{n}")
    body = (await ada.post("/api/policy/rehearse", content=POLICY, headers=YAML, params={"limit": "1"})).json()
    assert (body["calls"], body["turned"], body["left_out"], body["retention"]) == (3, 3, 0, "forever")
    assert body["verdicts"]["ask"]["deny"] == 3
    assert len(body["changed"]) == 1
    assert body["diff"]["rules"][0]["kind"] == "added"
    assert CALL["tool"] == body["changed"][0]["tool"]


@pytest.mark.parametrize("role", ["agent", "viewer", "reviewer"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/policy"),
        ("PUT", "/api/policy"),
        ("GET", "/api/policy/versions"),
        ("POST", "/api/policy/check"),
        ("POST", "/api/policy/explain"),
        ("POST", "/api/policy/rehearse"),
        ("GET", "/api/policy/templates"),
        ("GET", "/api/policy/activity"),
    ],
)
async def test_the_policy_is_for_admins(
    client: ClientFactory, keys: dict[str, str], role: str, method: str, path: str
) -> None:
    answer = await client(keys[role]).request(method, path, content=POLICY, headers=YAML)
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


async def test_a_check_says_in_words_what_the_rules_say_and_what_is_new(ada: httpx2.AsyncClient) -> None:  # R34
    await put(ada)
    text = POLICY + "  - {name: two, tools: [pay], then: ask, quorum: 2, expires_in: 30m, mode: shadow}\n"
    told = (await ada.post("/api/policy/check", content=text, headers=YAML)).json()
    first, second = told["details"]
    assert (first["name"], first["line"], first["then"], first["shadow"]) == ("nobody deletes", 3, "deny", False)
    assert first["says"] == {"then": "deny", "tools": "delete_*", "reason": "Files stay."}
    assert (second["line"], second["shadow"], second["says"]["expires_in"]) == (7, True, "30m")
    assert second["says"]["approvers"] == "2 of anybody who may decide"
    assert told["defaults"]["undo_window"] == "8s"
    [change] = told["diff"]["rules"]
    assert (change["kind"], change["rule"], change["new_place"]) == ("added", "two", 2)
    wrong = (await ada.post("/api/policy/check", content="rules: 5", headers=YAML)).json()
    assert (wrong["details"], wrong["diff"]) == ([], None)


async def test_there_are_policies_to_start_from(ada: httpx2.AsyncClient) -> None:  # R39
    items = (await ada.get("/api/policy/templates")).json()["items"]
    assert [item["name"] for item in items] == ["balanced", "strict", "read-only", "money"]
    for item in items:
        assert item["body"].startswith(f"# {item['summary']}")
        checked = (await ada.post("/api/policy/check", content=item["body"], headers=YAML)).json()
        assert checked["valid"] or item["name"] == "money"  # which names a team that is not here


# R52
async def test_rule_statistics_and_shadow_results_are_shown(
    ada: httpx2.AsyncClient, client: ClientFactory, keys: dict[str, str]
) -> None:
    quiet = "  - {name: about others, tools: [pay], then: deny, mode: shadow}\n"
    shadow = "  - {name: would ask, tools: [delete_*], then: ask, mode: shadow}\n"
    await put(ada, POLICY.replace("rules:\n", "rules:\n" + quiet + shadow))
    agent = client(keys["agent"])
    for number in range(3):
        await propose(agent, call_id=f"call{number}")
    await propose(agent, tool="send", call_id="other")
    told = (await ada.get("/api/policy/activity")).json()
    assert (told["calls"], told["erased"], told["complete"]) == (4, 0, True)
    counts = {each["rule"]: (each["allow"], each["ask"], each["deny"]) for each in told["rules"]}
    assert counts == {"nobody deletes": (0, 0, 3), "": (0, 1, 0)}
    noted, silent = told["shadows"]
    assert (noted["rule"], noted["calls"], noted["in_force"]) == ("would ask", 3, True)
    assert noted["turns"] == [{"was": "deny", "would": "ask", "calls": 3}]
    assert (silent["rule"], silent["calls"], silent["first"], silent["in_force"]) == ("about others", 0, None, True)
    await put(ada)
    assert [each["in_force"] for each in (await ada.get("/api/policy/activity")).json()["shadows"]] == [False]
    assert (await ada.get("/api/policy/activity", params={"since": "soon"})).status_code == 400


# R5, R30
async def test_a_configured_deadline_counts_for_policies_that_give_none(services: AppServices) -> None:
    hour = 3_600_000
    state = await make_server_state(Settings(expires_in=72 * hour), services)
    gate = (await state.workspaces.services("default")).gate
    assert gate.policy.defaults.expires_in == dict.fromkeys(("chat", "queue", "paused"), 72 * hour)
    await state.workspaces.put_policy("default", "defaults: {expires_in: {chat: 1h}}", "ada")
    assert gate.policy.defaults.expires_in == {"chat": hour, "queue": 72 * hour, "paused": 72 * hour}
    again = await make_server_state(Settings(), services)
    kept = (await again.workspaces.services("default")).gate.policy.defaults.expires_in
    assert kept == {"chat": hour, "queue": 24 * hour, "paused": 24 * hour}

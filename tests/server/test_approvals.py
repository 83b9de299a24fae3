"""The reviewers' routes: lists, one approval, and what can be done besides deciding."""

from __future__ import annotations

from typing import Any, cast

import httpx2
import pytest

from interlock.runtime.durations import rfc3339
from interlock.server.models import ApprovalJson, ApprovalPageJson
from tests.interlock_server import make_keys
from tests.server.conftest import ClientFactory
from tests.server.test_calls import decide, propose
from tests.support import AppServices, Clock

Keys = dict[str, str]
POLICY = """
version: 1
rules:
  - name: two of finance
    tools: [pay]
    then: ask
    approvers: {teams: [finance]}
    quorum: 2
"""


async def show(person: httpx2.AsyncClient, approval_id: str) -> dict[str, Any]:
    answer = await person.get(f"/api/approvals/{approval_id}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    ApprovalJson.model_validate(body)
    return body


async def post_action(person: httpx2.AsyncClient, told: dict[str, Any], verb: str, **body: Any) -> httpx2.Response:
    return await person.post(f"/api/approvals/{told['approval_id']}/{verb}", json=body)


async def timeline(person: httpx2.AsyncClient, told: dict[str, Any]) -> list[dict[str, Any]]:
    shown = await person.get(f"/api/approvals/{told['approval_id']}")
    return cast(list[dict[str, Any]], shown.json()["timeline"])


async def list_ids(person: httpx2.AsyncClient, path: str = "/api/approvals", **filters: Any) -> list[str]:
    answer = await person.get(path, params=filters)
    assert answer.status_code == 200, answer.text
    ApprovalPageJson.model_validate(answer.json())
    return [item["call_id"] for item in answer.json()["items"]]


# R36
@pytest.mark.postgres_smoke
async def test_approvals_are_listed_by_everything_that_people_look_for(
    client: ClientFactory, keys: Keys, services: AppServices, state: Any, clock: Clock
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    await state.workspaces.put_policy("default", POLICY, "ada")
    first = await propose(agent, call_id="one", initiated_by="rita", thread_id="t1", priority="high")
    clock.advance(1)
    await propose(agent, call_id="two", tool="pay", args={"amount": 5}, agent="billing", run_id="other")
    assert (await decide(bob, first)).status_code == 200
    while await services.store.update_search_index():
        pass
    assert await list_ids(bob) == ["two", "one"]
    assert await list_ids(bob, "/api/approvals/pending") == ["two"]
    assert await list_ids(bob, status="approved,rejected") == ["one"]
    found = {
        "one": [{"user": "rita"}, {"user": "bob"}, {"thread_id": "t1"}, {"priority": "high"}, {"q": "delete"}],
        "two": [{"tool": "pay"}, {"agent": "billing"}, {"run_id": "other"}, {"team": "finance"}],
    }
    for call_id, queries in found.items():
        for query in queries:
            assert await list_ids(bob, **query) == [call_id], query
    assert await list_ids(bob, team="legal") == []


# R8
async def test_approvals_are_listed_by_when_they_were_proposed(client: ClientFactory, keys: Keys, clock: Clock) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    for number in range(3):
        await propose(agent, call_id=f"c{number}")
        clock.advance(60_000)
    since, until = rfc3339(clock() - 120_000), rfc3339(clock() - 60_000)
    assert await list_ids(bob, since=since) == ["c2", "c1"]
    assert await list_ids(bob, since=since, until=until, tool="delete_file") == ["c1"]
    assert (await bob.get("/api/approvals", params={"since": "yesterday"})).status_code == 400


@pytest.mark.postgres_smoke
async def test_a_list_is_turned_page_by_page(client: ClientFactory, keys: Keys, clock: Clock) -> None:
    agent, vic = client(keys["agent"]), client(keys["viewer"])
    for number in range(5):
        await propose(agent, call_id=f"c{number}")
        clock.advance(1)
    seen, cursor = [], ""
    while cursor is not None:
        page = (await vic.get("/api/approvals/pending", params={"limit": 2, "cursor": cursor})).json()
        seen += [item["call_id"] for item in page["items"]]
        cursor = page["next"]
    assert seen == [f"c{number}" for number in range(5)]


# R36
async def test_a_person_lists_what_waits_for_them_alone(client: ClientFactory, keys: Keys, state: Any) -> None:
    await state.workspaces.put_policy("default", POLICY, "ada")
    agent, bob, ada, vic = (client(keys[role]) for role in ("agent", "reviewer", "admin", "viewer"))
    await propose(agent, call_id="anyone")
    payment = await propose(agent, call_id="finance", tool="pay")
    assert sorted(await list_ids(bob, status="pending", mine="true")) == ["anyone", "finance"]
    assert await list_ids(ada, "/api/approvals/pending", mine="true") == ["anyone"]
    assert await list_ids(vic, mine="true") == []
    assert (await decide(bob, payment)).status_code == 200
    assert await list_ids(bob, mine="true") == ["anyone"]
    rows = (await ada.get("/api/approvals/pending")).json()["items"]
    may = {row["call_id"]: row["may_decide"] for row in rows}
    assert may == {"anyone": ["approve", "edit", "respond", "reject"], "finance": []}
    assert all(row["seconds_left"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        ({"status": "open"}, "pending, rejected, approved"),
        ({"status": "pending,open"}, "'open'"),
        ({"priority": "urgent"}, "'low', 'medium' or 'high'"),
        ({"limit": "0"}, "greater than or equal to 1"),
        ({"limit": "501"}, "less than or equal to 500"),
        ({"limit": "many"}, "integer"),
        ({"cursor": "?"}, "first page"),
        ({"cursor": "WzEsICJcdTAwMDAiXQ=="}, "first page"),
        ({"stauts": "pending"}, "stauts"),
        ({"q": "!!"}, "letters or digits"),
    ],
)
async def test_a_wrong_filter_is_refused_with_what_is_right(
    client: ClientFactory, keys: Keys, filters: dict[str, str], told: str
) -> None:
    answer = await client(keys["viewer"]).get("/api/approvals", params=filters)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert told in answer.json()["message"]


# R53
async def test_one_approval_shows_all_that_it_takes_to_decide(client: ClientFactory, keys: Keys, state: Any) -> None:
    await state.workspaces.put_policy("default", POLICY, "ada")
    args = {"to": "ann\u202eexe", "token": "sk-very-secret", "amount": 12345678901234567890123}
    more = {"secret": ["token"], "preview": "Ann gets it.", "agent_says": "Trust me."}
    told = await propose(client(keys["agent"]), tool="pay", args=args, expires_in="90s", **more)
    answer = await client(keys["reviewer"]).get(f"/api/approvals/{told['approval_id']}")
    shown = answer.json()
    ApprovalJson.model_validate(shown)
    assert answer.headers["etag"] == f'"{shown["version"]}"'
    assert "sk-very-secret" not in answer.text
    assert shown["args"]["amount"] == 12345678901234567890123
    assert "\u202e" not in shown["card"]["fields"][1]["text"] + shown["card"]["fields"][2]["text"]
    assert [(each["kind"], each["level"]) for each in shown["findings"]] == [
        ("bidi", "alarm"),
        ("agent_secret", "alarm"),
    ]
    assert (shown["rule"], shown["seconds_left"], shown["needed"]) == ("two of finance", 90.0, "team finance")
    assert shown["stages"] == [{"approvers": {"users": [], "teams": ["finance"]}, "need": 2, "have": 0, "done": False}]
    assert (shown["card"]["agent_preview"], shown["card"]["agent_says"]) == ("Ann gets it.", "Trust me.")
    assert shown["may_decide"] == ["approve", "edit", "respond", "reject"]
    assert shown["timeline"][0]["kind"] == "proposed"


# R12
async def test_one_approval_comes_with_the_schema_that_an_edit_has_to_fit(client: ClientFactory, keys: Keys) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    told = await propose(agent, tool="create_issue", args={"title": "Fix login"}, schema=schema)
    assert (await show(bob, told["approval_id"]))["schema"] == schema
    changed = {"type": "object", "properties": {"title": {"type": "string", "maxLength": 3}}}
    later = await propose(agent, tool="create_issue", args={"title": "Fix"}, schema=changed, call_id="later")
    assert (await show(bob, later["approval_id"]))["schema"] == changed
    assert (await show(bob, told["approval_id"]))["schema"] == schema
    bare = await propose(agent, tool="create_issue", args={"title": "Fix"}, call_id="bare")
    assert (await show(bob, bare["approval_id"]))["schema"] is None


# R48
async def test_everybody_is_told_what_they_may_decide_and_why_not(
    client: ClientFactory, keys: Keys, state: Any
) -> None:
    await state.workspaces.put_policy("default", POLICY, "ada")
    told = await propose(client(keys["agent"]), tool="pay")
    for role in ("viewer", "admin"):
        shown = await show(client(keys[role]), told["approval_id"])
        assert shown["may_decide"] == []
        assert "team finance" in shown["may_not"]["approve"]
    bob = client(keys["reviewer"])
    assert (await decide(bob, told)).json()["may_not"].keys() == {"approve"}


# R21
@pytest.mark.parametrize("approval_id", ["nothing", "018f0000-0000-7000-8000-000000000000", "x" * 5000])
async def test_an_unknown_id_is_not_found(client: ClientFactory, keys: Keys, approval_id: str) -> None:
    bob = client(keys["reviewer"])
    answers = [await bob.get(f"/api/approvals/{approval_id}")]
    answers += [await bob.post(f"/api/approvals/{approval_id}/{verb}") for verb in ("undo", "claim", "release")]
    answers += [await client(keys["agent"]).get(f"/api/calls/{approval_id}")]
    assert [(answer.status_code, answer.json()["error"]) for answer in answers] == [(404, "not_found")] * 5


DECISIONS: list[dict[str, Any]] = [
    {"kind": "approve"},
    {"kind": "edit", "args": {"path": "/tmp/y"}},
    {"kind": "respond", "message": "Ask Eve"},
    {"kind": "reject"},
]


# R21
async def test_an_expired_id_is_gone_for_every_answer_and_for_the_agent(
    client: ClientFactory, keys: Keys, clock: Clock
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await propose(agent)
    clock.advance(24 * 3_600_000)
    seen = {"args_sha256": told["args_sha256"]}
    answers = [await post_action(bob, told, "decision", **seen, **decision) for decision in DECISIONS]
    answers.append(await agent.post(f"/api/calls/{told['approval_id']}/start", json={}))
    assert [(answer.status_code, answer.json()["error"]) for answer in answers] == [(410, "expired")] * 5
    assert all("expired" in answer.json()["message"] for answer in answers)
    assert (await show(bob, told["approval_id"]))["status"] == "expired"


# R21
async def test_a_used_id_says_who_decided_it_and_takes_no_second_answer(client: ClientFactory, keys: Keys) -> None:
    agent, bob, ada = client(keys["agent"]), client(keys["reviewer"]), client(keys["admin"])
    told = await propose(agent)
    args = (await show(bob, told["approval_id"]))["args"]
    await decide(bob, told)
    seen = {"args_sha256": told["args_sha256"]}
    answers = [await post_action(ada, told, "decision", **seen, **decision) for decision in DECISIONS]
    assert [(answer.status_code, answer.json()["error"]) for answer in answers] == [(409, "already_decided")] * 4
    assert {(answer.json()["decision"]["kind"], answer.json()["decision"]["by"]) for answer in answers} == {
        ("approve", "bob")
    }
    shown = await show(ada, told["approval_id"])
    assert (shown["status"], shown["args"]) == ("approved", args)


# R21
async def test_an_id_that_was_started_is_not_started_again(client: ClientFactory, keys: Keys) -> None:
    agent = client(keys["agent"])
    told = await propose(agent)
    await decide(client(keys["reviewer"]), told)
    path = f"/api/calls/{told['approval_id']}"
    started = await agent.post(f"{path}/start", json={})
    again = await agent.post(f"{path}/start", json={})
    assert (started.status_code, again.status_code, again.json()["error"]) == (200, 409, "already_started")
    done = {"fence": started.json()["fence"], "ok": True}
    assert (await agent.post(f"{path}/finish", json=done)).status_code == 200
    late = await agent.post(f"{path}/start", json={})
    assert (late.status_code, late.json()["error"]) == (409, "already_started")


async def test_the_approvals_of_another_workspace_do_not_exist(
    client: ClientFactory, keys: Keys, services: AppServices
) -> None:
    told = await propose(client(keys["agent"]))
    stranger = client((await make_keys(services, "elsewhere"))["admin"])
    assert (await stranger.get(f"/api/approvals/{told['approval_id']}")).status_code == 404
    bodies: dict[str, dict[str, Any]] = {
        "undo": {},
        "claim": {},
        "release": {},
        "comment": {"text": "hello"},
        "ask": {"question": "why?"},
        "delegate": {"users": ["bob"]},
        "resolve-unknown": {"ok": True},
        "decision": {"kind": "approve"},
    }
    for verb, body in bodies.items():
        assert (await post_action(stranger, told, verb, **body)).status_code == 404, verb
    assert await list_ids(stranger) == []
    bulk = await stranger.post(
        "/api/approvals/bulk", json={"decisions": [{"id": told["approval_id"], "kind": "approve"}]}
    )
    assert bulk.json()["results"][0]["error"] == "not_found"


@pytest.mark.parametrize("role", ["agent", "viewer"])
async def test_agents_and_viewers_do_nothing_with_approvals(
    client: ClientFactory, keys: Keys, role: str
) -> None:  # R48
    told = await propose(client(keys["agent"]))
    person = client(keys[role])
    for verb, body in {"claim": {}, "comment": {"text": "x"}, "ask": {"question": "x"}, "undo": {}}.items():
        assert (await post_action(person, told, verb, **body)).status_code == 403, verb
    bulk = await person.post("/api/approvals/bulk", json={"decisions": [{"id": "x", "kind": "approve"}]})
    assert bulk.status_code == 403
    if role == "agent":
        assert (await person.get("/api/approvals")).status_code == 403
        assert (await person.get(f"/api/approvals/{told['approval_id']}")).status_code == 403


# R36, R42
async def test_many_are_decided_at_once_and_each_has_its_own_end(client: ClientFactory, keys: Keys) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = [await propose(agent, call_id=f"c{number}") for number in range(4)]
    seen = {"args_sha256": told[0]["args_sha256"]}
    decisions = [
        {"id": told[0]["approval_id"], "kind": "approve", **seen},
        {"id": told[1]["approval_id"], "kind": "yes"},
        {"id": told[2]["approval_id"], "kind": "reject", "reason": "no", **seen},
        {"id": "nothing", "kind": "approve", **seen},
        {"id": told[0]["approval_id"], "kind": "reject", **seen},
        {"id": told[3]["approval_id"], "kind": "approve", "args_sha256": "0" * 64},
        {"kind": "approve"},
    ]
    answer = await bob.post("/api/approvals/bulk", json={"decisions": decisions})
    results = answer.json()["results"]
    assert [result.get("error") or result["status"] for result in results] == [
        "approved",
        "invalid_decision",
        "rejected",
        "not_found",
        "already_decided",
        "digest_mismatch",
        "invalid_request",
    ]
    assert [result["ok"] for result in results] == [True, False, True, False, False, False, False]
    assert results[4]["decision"]["by"] == "bob"


@pytest.mark.parametrize("kind", ["approve", "edit", "respond", "reject"])
async def test_a_decision_without_what_was_seen_decides_nothing_and_says_what_to_send(
    client: ClientFactory, keys: Keys, kind: str
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await propose(agent)
    more = {"edit": {"args": {"amount": 1}}, "respond": {"message": "no"}}.get(kind, {})
    one = await post_action(bob, told, "decision", kind=kind, **more)
    sent = {"decisions": [{"id": told["approval_id"], "kind": kind, **more}]}
    many = (await bob.post("/api/approvals/bulk", json=sent)).json()["results"][0]
    assert (one.status_code, one.json()["error"], many["error"]) == (422, "invalid_decision", "invalid_decision")
    assert one.json()["problems"][0]["pointer"] == many["problems"][0]["pointer"] == "/args_sha256"
    assert "carries args_sha256" in one.json()["message"]
    after = (await bob.get(f"/api/approvals/{told['approval_id']}")).json()
    assert after["status"] == "pending"
    assert [entry["kind"] for entry in after["timeline"]] == ["proposed", "decision_refused", "decision_refused"]


async def test_answers_that_come_too_late_leave_entries_and_nobody_fills_the_ledger_with_them(
    client: ClientFactory, keys: Keys, clock: Clock
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    decided, expired = [await propose(agent, call_id=f"c{number}") for number in range(2)]
    assert (
        await post_action(bob, decided, "decision", kind="reject", args_sha256=decided["args_sha256"])
    ).status_code == 200
    again = await post_action(bob, decided, "decision", kind="approve", args_sha256=decided["args_sha256"])
    clock.advance(24 * 3_600_000)
    late = await post_action(bob, expired, "decision", kind="approve", args_sha256=expired["args_sha256"])
    assert (again.status_code, late.status_code) == (409, 410)
    kinds = [[entry["kind"] for entry in await timeline(bob, told)] for told in (decided, expired)]
    assert kinds == [["proposed", "rejected", "decision_refused"], ["proposed", "expired", "decision_refused"]]
    for _ in range(70):
        assert (await post_action(bob, expired, "decision", kind="reject", args_sha256="0" * 64)).status_code == 410
    tried = [entry for entry in await timeline(bob, expired) if entry["kind"] == "decision_refused"]
    assert len(tried) == 60


# R14, R41
async def test_every_refused_answer_leaves_one_entry_with_what_was_wrong(
    client: ClientFactory, keys: Keys, clock: Clock
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await propose(agent)
    path, seen = f"/api/approvals/{told['approval_id']}/decision", {"args_sha256": told["args_sha256"]}
    attempts: list[tuple[Any, int, str, str, list[str] | None]] = [
        ({"kind": "approve", "args_sha256": "0" * 64}, 409, "digest_mismatch", "approve", ["/args_sha256"]),
        ({"kind": "yes", **seen}, 422, "invalid_decision", "", ["/kind"]),
        ({"kind": "approve", "comment": "x" * 501, **seen}, 422, "invalid_decision", "", ["/comment"]),
        ({"kind": "approve", "args": {}, **seen}, 422, "invalid_decision", "", ["/args"]),
        ({"kind": "edit", "args": [], **seen}, 422, "invalid_decision", "", ["/args"]),
        ({"kind": "respond", **seen}, 422, "invalid_decision", "", ["/message"]),
        ({"kind": "approve", "sure": True, **seen}, 422, "invalid_decision", "", ["/sure"]),
        ([], 422, "invalid_decision", "", [""]),
    ]
    for body, status, error, _, _ in attempts:
        answer = await bob.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]) == (status, error)
    unread = await bob.post(path, content=b'{"kind": "approve"', headers={"content-type": "application/json"})
    assert unread.status_code == 400
    short = {"approvalId": told["approval_id"], "approved": "yes"}
    for other in ("/api/chat/approve", "/api/agent/approve"):
        assert (await bob.post(other, json=short)).status_code == 400
    assert (await post_action(bob, told, "undo")).status_code == 409
    found = [entry for entry in await timeline(bob, told) if entry["kind"] == "decision_refused"]
    expected = [(error, kind, fields) for _, _, error, kind, fields in attempts]
    expected += [
        ("invalid_request", "", None),
        *[("invalid_request", "", ["/approved"])] * 2,
        ("conflict", "undo", None),
    ]
    assert [
        (entry["data"]["error"], entry["content"]["kind"], entry["content"].get("fields")) for entry in found
    ] == expected
    assert {(entry["actor"], entry["content"]["via"]) for entry in found} == {("bob", "key")}


# R41
async def test_refusals_that_are_not_recorded_any_more_are_still_refused_and_decisions_count(
    client: ClientFactory, keys: Keys, clock: Clock
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await propose(agent)
    for _ in range(65):
        answer = await post_action(bob, told, "decision", kind="approve", args_sha256="0" * 64)
        assert (answer.status_code, answer.json()["error"]) == (409, "digest_mismatch")
    assert [entry["kind"] for entry in await timeline(bob, told)].count("decision_refused") == 60
    decided = await post_action(bob, told, "decision", kind="approve", args_sha256=told["args_sha256"])
    assert (decided.status_code, decided.json()["status"]) == (200, "approved")


# R3, R16
@pytest.mark.parametrize("path", ["/api/chat/approve", "/api/agent/approve"])
async def test_the_short_decision_takes_both_spellings_of_its_fields(
    client: ClientFactory, keys: Keys, path: str
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    first, second = [await propose(agent, call_id=f"c{number}") for number in range(2)]
    both = {"approvalId": first["approval_id"], "approval_id": second["approval_id"], "approved": True}
    refused = await bob.post(path, json=both)
    assert (refused.status_code, "approvalId and approval_id differ" in refused.json()["message"]) == (400, True)
    wrong = {"approval_id": first["approval_id"], "args_sha256": "0" * 64, "approved": True}
    assert (await bob.post(path, json=wrong)).json()["error"] == "digest_mismatch"
    for body in (
        {"approval_id": first["approval_id"], "args_sha256": first["args_sha256"]},
        {**dict.fromkeys(("approvalId", "approval_id"), second["approval_id"])},
    ):
        done = await bob.post(path, json={**body, "approved": True})
        assert (done.status_code, done.json()["status"]) == (200, "approved"), done.text
    for wrong_form in ([], {"approved": True}, {"approval_id": 5, "approved": True}):
        assert (await bob.post(path, json=wrong_form)).status_code == 400


async def test_five_hundred_decisions_are_the_most(client: ClientFactory, keys: Keys) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = [await propose(agent, call_id=f"c{number}") for number in range(20)]
    one = [{"id": each["approval_id"], "kind": "approve", "args_sha256": each["args_sha256"]} for each in told]
    many = [one[number % 20] for number in range(500)]
    results = (await bob.post("/api/approvals/bulk", json={"decisions": many})).json()["results"]
    assert sum(result["ok"] for result in results) == 20
    for wrong in ([], [*many, many[0]], [1], {}):
        assert (await bob.post("/api/approvals/bulk", json={"decisions": wrong})).status_code == 400


# R17
async def test_a_rejection_is_undone_while_the_agent_has_not_heard_of_it(
    client: ClientFactory, keys: Keys, clock: Clock
) -> None:
    agent, bob, ada = client(keys["agent"]), client(keys["reviewer"]), client(keys["admin"])
    told = await propose(agent)
    await decide(ada, told, "reject", reason="not now")
    assert (await post_action(bob, told, "undo")).status_code == 403
    assert (await post_action(ada, told, "undo")).json()["status"] == "pending"
    await decide(bob, told, "reject")
    clock.advance(8_000)
    late = await post_action(bob, told, "undo")
    assert (late.status_code, late.json()["error"]) == (410, "expired")


# R36
async def test_a_claim_is_shown_taken_over_and_released(client: ClientFactory, keys: Keys) -> None:
    bob, ada = client(keys["reviewer"]), client(keys["admin"])
    told = await propose(client(keys["agent"]))
    assert (await post_action(bob, told, "claim")).json()["claimed_by"] == "bob"
    assert (await ada.get("/api/approvals")).json()["items"][0]["claimed_by"] == "bob"
    assert (await post_action(ada, told, "claim")).json()["claimed_by"] == "ada"
    assert (await post_action(bob, told, "release")).status_code == 403
    assert (await post_action(ada, told, "release")).json()["claimed_by"] == ""


# R40
async def test_a_seat_is_passed_on_to_people_who_exist(client: ClientFactory, keys: Keys, state: Any) -> None:
    await state.workspaces.put_policy("default", POLICY, "ada")
    bob, ada = client(keys["reviewer"]), client(keys["admin"])
    told = await propose(client(keys["agent"]), tool="pay")
    for nobody in ({"users": ["adda"]}, {"teams": ["fnance"]}, {}):
        assert (await post_action(bob, told, "delegate", **nobody)).status_code == 400
    passed = (await post_action(bob, told, "delegate", users=["ada"])).json()
    assert passed["delegations"] == [{"by": "bob", "to": {"users": ["ada"], "teams": []}}]
    assert "approve" in (await show(ada, told["approval_id"]))["may_decide"]
    assert (await decide(ada, told)).json()["votes"][0]["seat"] == "bob"


# R55
async def test_a_reviewer_asks_and_says_something_without_deciding(client: ClientFactory, keys: Keys) -> None:
    bob = client(keys["reviewer"])
    told = await propose(client(keys["agent"]))
    shown = (await post_action(bob, told, "ask", question="Which file?")).json()
    assert shown["status"] == "pending"
    assert [(q["number"], q["by"], q["text"], q["reply"]) for q in shown["questions"]] == [
        (1, "bob", "Which file?", None)
    ]
    said = (await post_action(bob, told, "comment", text="I asked.")).json()
    assert said["timeline"][-1]["content"]["text"] == "I asked."
    for verb, body in {"ask": {"question": ""}, "comment": {"text": "x" * 501}}.items():
        assert (await post_action(bob, told, verb, **body)).status_code == 400


# R6
async def test_an_unknown_outcome_is_resolved_by_a_person(
    client: ClientFactory, keys: Keys, clock: Clock, services: AppServices
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await propose(agent)
    await decide(bob, told)
    assert (await post_action(bob, told, "resolve-unknown", ok=True)).status_code == 409
    await agent.post(f"/api/calls/{told['approval_id']}/start", json={"lease_seconds": 1})
    clock.advance(1_000)
    await services.worker.sweep()
    done = (await post_action(bob, told, "resolve-unknown", ok=True, note="I looked.", result={"rows": 1})).json()
    assert (done["status"], done["result"]) == ("succeeded", {"rows": 1})

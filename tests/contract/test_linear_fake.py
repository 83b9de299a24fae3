"""The fake Linear server: it refuses what Linear refuses, and a refusal changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.chat.tool import ToolContext, ToolInvocation
from interlock.chat.tools.linear import pack
from interlock.chat.tools.linear.api import idempotent_id
from interlock.core.ports import ToolItemStore
from interlock.demo.linear.content import KINDS, fill_linear
from interlock.demo.linear.server import FakeLinear
from tests.fakes.linear import full_schema_app, run_linear, run_linear_sdk
from tests.node_packages import PROVIDER

pytestmark = pytest.mark.postgres_nightly  # test_tool_items.py owns what the database does here

CREATE = "mutation ($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { id identifier } } }"
UPDATE = "mutation ($id: String!, $input: IssueUpdateInput!) { issueUpdate(id: $id, input: $input) { success } }"
CYCLE = "mutation ($input: CycleCreateInput!) { cycleCreate(input: $input) { success } }"


class LinearClient:
    def __init__(self, items: ToolItemStore, http: httpx2.AsyncClient) -> None:
        self.items = items
        self.http = http

    async def ask(self, query: str, **variables: object) -> tuple[int, Any]:
        response = await self.http.post("/graphql", json={"query": query, "variables": variables})
        return response.status_code, response.json()

    async def assert_refused(self, query: str, **variables: object) -> Mapping[str, Any]:
        """The first error; what it was about is as it was."""
        before = await self.all_rows()
        status, answer = await self.ask(query, **variables)
        assert await self.all_rows() == before
        assert status in (200, 400)
        assert not (answer.get("data") or {}).get("issueCreate")
        first: Mapping[str, Any] = answer["errors"][0]
        return {**first, "status": status}

    async def all_rows(self) -> object:
        return [await self.items.list(kind) for kind in KINDS]

    async def id(self, kind: str, name: str = "") -> str:
        found = await self.items.list(f"linear_{kind}")
        return next(item.id for item in found if not name or item.body["name"] == name)


@pytest.fixture
async def linear(services: AppServices) -> AsyncIterator[LinearClient]:
    items = services.store.tool_items("default")
    assert await fill_linear(items) is True
    headers = {"authorization": "lin_api_any"}
    async with httpx2.AsyncClient(
        transport=FakeLinear(items), base_url="https://linear.example", headers=headers
    ) as http:
        yield LinearClient(items, http)


async def test_the_demo_is_filled_once(linear: LinearClient) -> None:
    before = await linear.all_rows()
    assert await fill_linear(linear.items) is False
    assert await linear.all_rows() == before
    assert len(await linear.items.list("linear_issue")) == 12


async def test_the_pack_works_inside_the_process_without_a_key(linear: LinearClient) -> None:  # R7
    kit = ToolContext("default", linear.items, transport=FakeLinear(linear.items))
    create = next(tool for tool in pack.write_tools(kit) if tool.name == "linear_create_issue")
    made: Any = await create.run(ToolInvocation({"title": "Fix login"}, "approval-1"))
    assert made["id"] == "DEMO-13"


# --- what is no request at all ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("authorization", "status"), [("", 401), ("Bearer lin_api_x", 400), ("lin_api_x", 200), ("Bearer lin_oauth_x", 200)]
)
async def test_a_key_is_needed_in_its_own_form(linear: LinearClient, authorization: str, status: int) -> None:
    linear.http.headers["authorization"] = authorization
    answered, answer = await linear.ask("{ viewer { name } }")
    assert answered == status
    assert (status == 200) is ("data" in answer)


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"[]", b'{"query": 1}', b'{"query": "{ viewer { id } }" ' + b" " * 2**20]
)
async def test_what_is_no_graphql_is_refused(linear: LinearClient, body: bytes) -> None:
    response = await linear.http.post("/graphql", content=body)
    assert (response.status_code, response.json()["errors"][0]["extensions"]["code"]) == (400, "BAD_REQUEST")


async def test_only_post_is_taken(linear: LinearClient) -> None:
    assert (await linear.http.get("/graphql")).status_code == 405


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("{ viewer { id ", "Syntax Error"),
        ("{ viewer { salary } }", "Cannot query field 'salary'"),
        ("{ issues(colour: red) { nodes { id } } }", "Unknown argument"),
        ('mutation { issueUpdate(id: "x", input: {colour: "red"}) { success } }', "unknown field 'colour'"),
        ('mutation { issueCreate(input: {title: "x"}) { success } }', "required field 'teamId'"),
        ("query ($id: Int!) { issue(id: $id) { id } }", "used in position expecting type"),
        ("fragment F on Issue { id }", "Fragment 'F' is never used"),
        ("query A { viewer { id } } query B { viewer { id } }", "which operation"),
    ],
)
async def test_a_document_that_does_not_fit_the_schema_is_refused(linear: LinearClient, query: str, words: str) -> None:
    error = await linear.assert_refused(query)
    assert error["status"] == 400
    assert words in error["message"]


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"input": None},
        {"input": {"title": "no team"}},
        {"input": {"teamId": "t", "title": 5}},
        {"input": {"teamId": "t", "colour": "red"}},
        {"input": {"teamId": "t", "priority": "high"}},
    ],
)
async def test_variables_that_do_not_fit_the_schema_are_refused(
    linear: LinearClient, variables: dict[str, object]
) -> None:
    assert (await linear.assert_refused(CREATE, **variables))["status"] == 400


async def test_a_time_that_is_none_is_refused(linear: LinearClient) -> None:
    new = {"teamId": await linear.id("team"), "startsAt": "tomorrow", "endsAt": "2026-12-01"}
    assert (await linear.assert_refused(CYCLE, input=new))["status"] == 400


# --- rules that the schema does not hold ------------------------------------------------------------------------------


async def test_an_id_that_exists_is_refused_in_linears_words(linear: LinearClient) -> None:
    new = {"id": idempotent_id("issue", "a"), "teamId": await linear.id("team"), "title": "Once"}
    status, answer = await linear.ask(CREATE, input=new)
    assert (status, answer["data"]["issueCreate"]["issue"]["id"]) == (200, new["id"])
    error = await linear.assert_refused(CREATE, input=new)
    assert (error["status"], error["message"]) == (200, "conflict on insert of Issue")
    assert error["extensions"]["code"] == "INPUT_ERROR"
    assert error["extensions"]["userPresentableMessage"] == f"Entity Issue with id {new['id']} already exists."


@pytest.mark.parametrize("wanted", ["", "1", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"])
async def test_an_id_of_another_form_is_refused(linear: LinearClient, wanted: str) -> None:
    error = await linear.assert_refused(CREATE, input={"id": wanted, "teamId": await linear.id("team"), "title": "x"})
    assert error["extensions"]["userPresentableMessage"] == "id must be a UUID."


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": ""},
        {"title": " "},
        {"title": "x" * 256},
        {"priority": 5},
        {"assigneeId": "nobody"},
        {"stateId": "none"},
        {"labelIds": ["none"]},
        {"teamId": "none"},
        {"dueDate": "2026-12-01"},
    ],
)
async def test_an_issue_that_breaks_a_rule_is_refused(linear: LinearClient, wrong: dict[str, object]) -> None:
    new = {"teamId": await linear.id("team"), "title": "x", **wrong}
    assert (await linear.assert_refused(CREATE, input=new))["status"] == 200


async def test_states_and_labels_of_another_team_are_refused(linear: LinearClient) -> None:
    def other_team(items: Any) -> None:
        body = {"name": "Other", "team": "other", "archivedAt": None}
        items.put("linear_state", "other-state", body)
        items.put("linear_label", "other-label", body)

    await linear.items.change("", other_team)
    for wrong in ({"stateId": "other-state"}, {"labelIds": ["other-label"]}):
        assert await linear.assert_refused(UPDATE, id="DEMO-1", input=wrong)


@pytest.mark.parametrize(
    "query",
    [
        '{ issue(id: "DEMO-99") { id } }',
        '{ issue(id: "") { id } }',
        'mutation { issueDelete(id: "DEMO-99") { success } }',
        'mutation { issueAddLabel(id: "DEMO-1", labelId: "none") { success } }',
        'mutation { issueRemoveLabel(id: "DEMO-1", labelId: "none") { success } }',
        'mutation { commentCreate(input: {body: "x"}) { success } }',
        'mutation { cycleUpdate(id: "none", input: {name: "x"}) { success } }',
    ],
)
async def test_a_missing_entity_gives_linears_error(linear: LinearClient, query: str) -> None:
    error = await linear.assert_refused(query)
    assert error["message"].startswith("Entity not found: ")
    assert error["extensions"]["code"] == "INPUT_ERROR"


@pytest.mark.parametrize(
    "query",
    [
        "{ organization { id } }",
        'mutation { issueArchive(id: "DEMO-1") { success } }',
        'mutation { issueDelete(id: "DEMO-1", permanentlyDelete: true) { success } }',
        "{ issues(filter: {dueDate: {null: true}}) { nodes { id } } }",
        '{ issues(filter: {title: {endsWith: "x"}}) { nodes { id } } }',
        '{ projects(filter: {accessibleTeams: {every: {key: {eq: "DEMO"}}}}) { nodes { id } } }',
        "{ issues(last: 3) { nodes { id } } }",
        "{ issues(first: 251) { nodes { id } } }",
        '{ issues(after: "nowhere") { nodes { id } } }',
        'mutation { commentCreate(input: {issueId: "DEMO-1", body: " "}) { success } }',
        "{ viewer { url } }",
    ],
)
async def test_unsupported_queries_are_refused(linear: LinearClient, query: str) -> None:
    assert (await linear.assert_refused(query))["message"]


async def test_two_mutations_of_which_one_fails_change_nothing(linear: LinearClient) -> None:
    good = 'a: issueUpdate(id: "DEMO-1", input: {title: "Changed"}) { success }'
    bad = 'b: issueUpdate(id: "DEMO-99", input: {title: "Changed"}) { success }'
    assert await linear.assert_refused(f"mutation {{ {good} {bad} }}")


# --- lists ------------------------------------------------------------------------------------------------------------


async def test_pages_follow_each_other_without_a_gap(linear: LinearClient) -> None:
    page_info = "pageInfo { hasNextPage endCursor }"
    query = f"query ($after: String) {{ issues(first: 5, after: $after) {{ nodes {{ number }} {page_info} }} }}"
    seen: list[int] = []
    after: str | None = None
    while True:
        _, answer = await linear.ask(query, after=after)
        page = answer["data"]["issues"]
        seen += [int(node["number"]) for node in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert seen == list(range(12, 0, -1))


async def test_the_trash_is_shown_only_on_request(linear: LinearClient) -> None:
    assert (await linear.ask(UPDATE, id="DEMO-1", input={"trashed": True}))[0] == 200
    for wanted, count in (("", 11), ("(includeArchived: true)", 12)):
        _, answer = await linear.ask(f"{{ issues{wanted} {{ nodes {{ id }} }} }}")
        assert len(answer["data"]["issues"]["nodes"]) == count


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ('{number: {in: [1, 2]}, or: [{title: {contains: "Cart"}}, {priority: {gt: 2}}]}', [2]),
        ('{and: [{priority: {lte: 1}}, {state: {name: {neq: "Todo"}}}]}', [1]),
        ("{parent: {null: false}}", [12]),
        ('{parent: {title: {startsWith: "Sign-in"}}}', [12]),
        ('{assignee: {null: true}, state: {name: {nin: ["Todo", "Backlog"]}}}', [10]),
        ('{title: {containsIgnoreCase: "CARD"}}', [3]),
        ("{number: {gte: 12}}", [12]),
        ("{number: {lt: 2}, description: {null: false}}", [1]),
    ],
)
async def test_filters_hold_together(linear: LinearClient, wanted: str, numbers: list[int]) -> None:
    _, answer = await linear.ask(f"{{ issues(filter: {wanted}) {{ nodes {{ number }} }} }}")
    assert [node["number"] for node in answer["data"]["issues"]["nodes"]] == numbers


async def test_things_lead_to_each_other(linear: LinearClient) -> None:
    query = """{ issue(id: "DEMO-12") {
        parent { comments { nodes { user { name } issue { identifier } } } }
        team { states { nodes { name } } labels { nodes { id } } issues(first: 1) { edges { cursor node { id } } } }
    } }"""
    _, answer = await linear.ask(query)
    issue = answer["data"]["issue"]
    assert {node["user"]["name"] for node in issue["parent"]["comments"]["nodes"]} == {"Grace Hopper", "Alan Turing"}
    assert len(issue["team"]["states"]["nodes"]) == 6
    edge = issue["team"]["issues"]["edges"][0]
    assert edge["cursor"] == edge["node"]["id"]


# --- Linear's own SDK -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not PROVIDER.is_installed(), reason=PROVIDER.missing)
async def test_linears_own_sdk_works_against_the_fake(linear: LinearClient) -> None:
    """By the whole of Linear's schema; its errors are those that the SDK knows."""
    async with run_linear(full_schema_app(linear.items)) as line:
        result = await asyncio.to_thread(run_linear_sdk, line.url)
    assert result == {
        "viewer": "Ada Lovelace",
        "team": "Demo",
        "states": ["Backlog", "Canceled", "Done", "In Progress", "In Review", "Todo"],
        "label": "Docs",
        "users": ["Grace Hopper"],
        "issues": ["DEMO-12", "DEMO-11", "DEMO-10"],
        "search": ["DEMO-2"],
        "create": "DEMO-13",
        "again": ["InvalidInputLinearError", "Entity Issue with id ID already exists."],
        "update": True,
        "labelled": True,
        "comment": "Hello",
        "project": "Search",
        "cycle": 2,
        "renamed": "Last",
        "read": ["Changed", "Urgent", "Todo", ["Docs"]],
        "deleted": True,
        "missing": ["InvalidInputLinearError", "Could not find referenced Issue."],
        "wrongKey": ["AuthenticationLinearError", "It looks like you're trying to use an API key as a Bearer token."],
    }

"""The Linear tool pack against the demo's fake over real HTTP; effects are counted in the database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import UUID

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.app.gate import render_preview
from interlock.chat.tool import Tool, ToolContext, ToolInvocation
from interlock.chat.tools.linear import operations, pack
from interlock.chat.tools.linear.api import LinearClient, idempotent_id, make_linear_access
from interlock.core.call import propose
from interlock.core.errors import CallWouldFail, EffectUnknown, Misconfigured, ToolFailed
from interlock.core.ports import ToolItemStore
from interlock.demo.linear.content import fill_linear
from interlock.demo.linear.server import FakeLinear
from interlock.runtime.json_schema import validate
from tests.fakes.linear import FaultyConnection, run_linear
from tests.support import Clock

pytestmark = pytest.mark.postgres_nightly  # test_tool_items.py owns what the database does here

KEY = "lin_api_secret"


class LinearToolHarness:
    """Uses tools as the loop does: the arguments fit the schema, and each call has a key."""

    def __init__(self, items: ToolItemStore, line: FaultyConnection) -> None:
        self.items = items
        self.line = line
        self.kit = ToolContext("default", items, {"key": KEY, "url": line.url})

    @property
    def tools(self) -> Mapping[str, Tool]:
        return {tool.name: tool for tool in (*pack.read_tools(self.kit), *pack.write_tools(self.kit))}

    async def use(self, name: str, key: str = "approval-1", /, **args: object) -> Any:
        tool = self.tools[f"linear_{name}"]
        assert validate(tool.spec.schema or {}, args) == ()
        return await tool.run(ToolInvocation(args, key))

    async def preview(self, name: str, /, **args: object) -> str:
        look = self.tools[f"linear_{name}"].spec.preview
        assert look is not None
        seen = await look(args)  # type: ignore[misc]  # ours are all async
        assert self.line.mutations == []
        return str(seen)

    def sentence(self, name: str, /, **args: object) -> str:
        return self.tools[f"linear_{name}"].spec.sentence(args)

    async def count(self, kind: str) -> int:
        return len(await self.items.list(f"linear_{kind}"))

    async def issue(self, identifier: str) -> Mapping[str, Any]:
        number = int(identifier.removeprefix("DEMO-"))
        return next(item.body for item in await self.items.list("linear_issue") if item.body["number"] == number)


@pytest.fixture
async def linear(services: AppServices) -> AsyncIterator[LinearToolHarness]:
    items = services.store.tool_items("default")
    await fill_linear(items)
    async with run_linear(FakeLinear(items)) as line:
        yield LinearToolHarness(items, line)


# --- reads ------------------------------------------------------------------------------------------------------------


async def test_issues_are_listed_with_what_changed_last_first(linear: LinearToolHarness, clock: Clock) -> None:  # R7
    clock.advance(1_000)
    await linear.use("change_status", id="DEMO-4", status="Done")
    found = await linear.use("list_issues", limit=3)
    assert [issue["id"] for issue in found["issues"]] == ["DEMO-4", "DEMO-12", "DEMO-11"]
    assert found["more"] is True
    assert found["issues"][0] == {
        "id": "DEMO-4",
        "title": "Show shipping costs before the last step",
        "status": "Done",
        "assignee": None,
        "priority": "Medium",
        "url": "https://linear.app/demo/issue/DEMO-4",
    }


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({"status": "in progress"}, ["DEMO-11", "DEMO-6", "DEMO-1"]),
        ({"assignee": "me"}, ["DEMO-12", "DEMO-7", "DEMO-1"]),
        ({"assignee": "Grace Hopper", "status": "Todo"}, ["DEMO-2"]),
        ({"assignee": "nobody", "status": "Backlog"}, ["DEMO-5"]),
        ({"assignee": "alan@demo.example"}, ["DEMO-11", "DEMO-3"]),
    ],
)
async def test_issues_are_listed_by_status_and_assignee(
    linear: LinearToolHarness, wanted: Any, ids: list[str]
) -> None:  # R7
    assert [issue["id"] for issue in (await linear.use("list_issues", **wanted))["issues"]] == ids


async def test_issues_are_found_by_words(linear: LinearToolHarness) -> None:  # R7
    found = await linear.use("search_issues", query="tabs cart")
    assert [issue["id"] for issue in found["issues"]] == ["DEMO-2"]
    assert await linear.use("search_issues", query="nothing of the kind") == {"issues": [], "more": False}


@pytest.mark.parametrize(
    ("cursors", "pages"), [(["same"] * 9, 2), ([f"c{n}" for n in range(99)], operations.MAX_PAGES)]
)
async def test_a_list_whose_pages_never_end_is_read_only_so_far(
    linear: LinearToolHarness, monkeypatch: pytest.MonkeyPatch, cursors: list[str], pages: int
) -> None:  # R7
    asked: list[object] = []

    async def query(_: LinearClient, document: str, **variables: object) -> Mapping[str, object]:
        asked.append(variables["after"])
        return {"page": {"nodes": [], "pageInfo": {"hasNextPage": True, "endCursor": cursors[len(asked) - 1]}}}

    monkeypatch.setattr(LinearClient, "query", query)
    assert await linear.use("list_teams") == {"teams": [], "more": True}
    assert asked == [None, *cursors[: pages - 1]]


async def test_an_issue_is_read_with_its_comments_oldest_first(linear: LinearToolHarness) -> None:  # R7
    found = await linear.use("read_issue", id="demo-1")
    assert (found["id"], found["status"], found["assignee"], found["team"]) == (
        "DEMO-1",
        "In Progress",
        "Ada Lovelace",
        "DEMO",
    )
    assert found["description"].startswith("After a reset the old session cookie is kept")
    assert (found["cycle"], found["parent"], found["deleted"]) == ("Sprint 1", None, False)
    assert found["sub_issues"] == [{"id": "DEMO-12", "title": "Clear old session cookies on every reset"}]
    assert [(comment["author"], comment["body"]) for comment in found["comments"]] == [
        ("Alan Turing", "The cookie is set for the whole domain; that is why."),
        ("Grace Hopper", "Seen by eleven customers since Monday."),
    ]
    assert found["more_comments"] is False
    assert (await linear.use("read_issue", id="DEMO-12"))["parent"] == "DEMO-1"


async def test_only_the_newest_comments_of_an_issue_are_read_and_long_texts_are_cut(
    linear: LinearToolHarness, clock: Clock
) -> None:  # R7
    issue = next(item.id for item in await linear.items.list("linear_issue") if item.body["number"] == 2)

    def comment_often(items: Any) -> None:
        for number in range(60):
            body = {"issue": issue, "body": f"{number} {'x' * 20_000}", "user": None, "archivedAt": None}
            stamp = f"2026-12-01T00:{number:02}:00.000Z"
            items.put("linear_comment", f"many-{number}", {**body, "createdAt": stamp, "updatedAt": stamp})

    await linear.items.change("", comment_often)
    found = await linear.use("read_issue", id="DEMO-2")
    assert [comment["body"].split()[0] for comment in found["comments"]] == [str(number) for number in range(10, 60)]
    assert found["more_comments"] is True
    assert found["comments"][0]["author"] is None
    assert found["comments"][0]["body"].endswith("x… (truncated: 20,003 characters)")


async def test_what_names_can_mean_is_listed(linear: LinearToolHarness) -> None:  # R7
    assert await linear.use("list_teams") == {"teams": [{"key": "DEMO", "name": "Demo"}], "more": False}
    statuses = (await linear.use("list_statuses", team="demo"))["statuses"]
    assert [status["name"] for status in statuses] == [
        *("Backlog", "Todo", "In Progress", "In Review", "Done", "Canceled")
    ]
    assert statuses[0] == {"name": "Backlog", "type": "backlog", "team": "DEMO"}
    labels = (await linear.use("list_labels", team="DEMO"))["labels"]
    assert {label["name"] for label in labels} == {"Bug", "Feature", "Improvement", "Security", "Docs"}
    assert {label["team"] for label in labels} == {None}
    project = (await linear.use("list_projects", team="DEMO"))["projects"][0]
    assert (project["name"], project["status"]) == ("Checkout that nobody leaves", "In Progress")
    assert [cycle["name"] for cycle in (await linear.use("list_cycles", team="DEMO"))["cycles"]] == ["Sprint 1"]


@pytest.mark.parametrize("what", ["statuses", "labels", "projects", "cycles"])
async def test_a_list_of_one_team_has_nothing_of_another(linear: LinearToolHarness, what: str) -> None:  # R7
    demo = (await linear.items.list("linear_team"))[0]

    def add_team(items: Any) -> None:
        items.put("linear_team", "ops-id", {**demo.body, "key": "OPS", "name": "Operations"})
        items.put(
            "linear_label", "ops-label", {"name": "Pager", "isGroup": False, "team": "ops-id", "archivedAt": None}
        )

    await linear.items.change("", add_team)
    found = [await linear.use(f"list_{what}", **args) for args in ({}, {"team": "DEMO"}, {"team": "OPS"})]
    names = [{item["name"] for item in each[what]} for each in found]
    assert names[0] == names[1] | names[2]
    if what == "labels":
        assert names[2] - names[1] == {"Pager"}  # beside those that all teams share
    else:
        assert names[2] == set()


async def test_a_list_continues_beyond_a_page_of_a_hundred(linear: LinearToolHarness) -> None:  # R7
    body = (await linear.items.list("linear_issue"))[0].body

    def add_many(items: Any) -> None:
        for number in range(100, 350):
            items.put("linear_issue", f"many-{number}", {**body, "number": number, "title": f"Issue {number}"})

    await linear.items.change("", add_many)
    linear.line.requests.clear()
    found = await linear.use("list_issues", limit=230)
    assert (len(found["issues"]), found["more"]) == (230, True)
    assert len({issue["id"] for issue in found["issues"]}) == 230
    assert [request["variables"]["first"] for request in linear.line.requests] == [100, 100, 30]
    everything = await linear.use("list_issues", limit=1_000)
    assert (len(everything["issues"]), everything["more"]) == (262, False)
    assert len((await linear.use("search_issues", query="issue", limit=240))["issues"]) == 240
    assert validate(linear.tools["linear_list_issues"].spec.schema or {}, {"limit": 1_001}) != ()


# --- writes -----------------------------------------------------------------------------------------------------------


async def test_an_issue_is_created_with_names_that_people_use(linear: LinearToolHarness) -> None:  # R7
    made = await linear.use(
        "create_issue", title="Fix login", team="demo", assignee="katherine", priority=1, labels=["bug", "Docs"]
    )
    assert (made["id"], made["assignee"], made["status"]) == ("DEMO-13", "Katherine Johnson", "Todo")
    assert (made["priority"], made["labels"]) == ("Urgent", ["Bug", "Docs"])
    assert await linear.count("issue") == 13


async def test_an_issue_changes_in_what_is_named_and_in_nothing_else(linear: LinearToolHarness) -> None:  # R7
    before = await linear.issue("DEMO-2")
    await linear.use("update_issue", id="demo-2", title="Carts in two tabs", priority=4)
    after = await linear.issue("DEMO-2")
    assert {name for name in before if before[name] != after[name]} <= {"title", "priority", "updatedAt"}
    assert (after["title"], after["priority"]) == ("Carts in two tabs", 4)


async def test_an_update_cannot_delete(linear: LinearToolHarness) -> None:  # R7
    """Linear deletes by an update with `trashed`; the schema refuses it, and what slips through is not passed on."""
    tool = linear.tools["linear_update_issue"]
    sly = {"id": "DEMO-2", "title": "Kept", "trashed": True}
    assert validate(tool.spec.schema or {}, sly) != ()
    await tool.run(ToolInvocation(sly, "approval-1"))
    assert (await linear.issue("DEMO-2"))["trashed"] is None


async def test_an_update_of_nothing_does_not_fit(linear: LinearToolHarness) -> None:
    for name in ("linear_update_issue", "linear_update_cycle"):
        assert validate(linear.tools[name].spec.schema or {}, {"id": "1"}) != ()


async def test_an_issue_is_assigned_and_taken_off_again(linear: LinearToolHarness) -> None:  # R7
    assert (await linear.use("assign_issue", id="DEMO-4", assignee="me"))["assignee"] == "Ada Lovelace"
    assert (await linear.use("assign_issue", id="DEMO-4", assignee="nobody"))["assignee"] is None


async def test_the_status_of_an_issue_changes(linear: LinearToolHarness) -> None:  # R7
    assert (await linear.use("change_status", id="DEMO-4", status="in review"))["status"] == "In Review"


async def test_a_label_is_added_once(linear: LinearToolHarness) -> None:  # R7
    for _ in range(2):
        assert (await linear.use("add_label", id="DEMO-2", label="security"))["labels"] == ["Bug", "Security"]
    assert linear.line.mutations == ["AddLabel"]


async def test_a_label_is_removed_once(linear: LinearToolHarness) -> None:  # R7
    for _ in range(2):
        assert (await linear.use("remove_label", id="DEMO-1", label="bug"))["labels"] == ["Security"]
    assert linear.line.mutations == ["RemoveLabel"]


async def test_a_comment_is_made(linear: LinearToolHarness) -> None:  # R7
    made = await linear.use("comment", id="DEMO-2", body="I look at it **today**.")
    assert (made["issue"], made["body"]) == ("DEMO-2", "I look at it **today**.")
    assert await linear.count("comment") == 3


async def test_a_project_is_created(linear: LinearToolHarness) -> None:  # R7
    assert (await linear.use("create_project", name="Faster search", description="Short"))["status"] == "Backlog"
    assert (await linear.use("create_project", "approval-2", name="Long", description="x" * 256))["name"] == "Long"
    bodies = {item.body["name"]: item.body for item in await linear.items.list("linear_project")}
    assert (bodies["Faster search"]["description"], bodies["Long"]["content"]) == ("Short", "x" * 256)


async def test_a_cycle_is_created_and_changed(linear: LinearToolHarness) -> None:  # R7
    made = await linear.use(
        "create_cycle", name="Sprint 2", starts_at="2026-12-01", ends_at="2026-12-14T10:00:00+01:00"
    )
    assert (made["number"], made["team"], made["ends_at"]) == (2, "DEMO", "2026-12-14T09:00:00.000Z")
    for named in (made["id"], "2", "sprint 2"):
        changed = await linear.use("update_cycle", id=named, ends_at="2026-12-20")
        assert (changed["ends_at"], changed["starts_at"]) == ("2026-12-20T00:00:00.000Z", made["starts_at"])
    assert (await linear.use("update_cycle", id="2", name="Last sprint"))["name"] == "Last sprint"


async def test_a_deleted_issue_is_gone_from_lists_and_takes_no_more_changes(linear: LinearToolHarness) -> None:  # R7
    for _ in range(2):
        assert (await linear.use("delete_issue", id="DEMO-12"))["deleted"] is True
    assert linear.line.mutations == ["DeleteIssue"]
    assert "DEMO-12" not in [issue["id"] for issue in (await linear.use("list_issues"))["issues"]]
    with pytest.raises(ToolFailed, match="was deleted"):
        await linear.use("comment", id="DEMO-12", body="Hello?")


# --- names that mean nothing, or too much -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("list_issues", {"status": "In Progres"}, "no status 'In Progres'. Near to it: In Progress"),
        ("list_issues", {"assignee": "Lovelace"}, "Near to it: Ada Lovelace (ada@demo.example)"),
        ("create_issue", {"title": "x", "team": "DEMOS"}, "no team 'DEMOS'. Near to it: Demo (DEMO)"),
        ("create_issue", {"title": "x", "assignee": "Grace Hoper"}, "Near to it: Grace Hopper (grace@demo.example)"),
        ("create_issue", {"title": "x", "labels": ["Bug", "Secrity"]}, "no label 'Secrity'. Near to it: Security"),
        ("create_issue", {"title": "x", "labels": ["%%%"]}, "There is: Improvement, "),
        ("update_issue", {"id": "DEMO-99", "title": "x"}, "no issue 'DEMO-99'"),
        ("delete_issue", {"id": "OTHER-1"}, "no issue 'OTHER-1'"),
        ("assign_issue", {"id": "DEMO-1", "assignee": "Bob"}, "no person 'Bob'"),
        ("assign_issue", {"id": "DEMO-99", "assignee": "me"}, "no issue 'DEMO-99'"),
        ("change_status", {"id": "DEMO-1", "status": "Shipped"}, "no status 'Shipped'. There is: "),
        ("comment", {"id": "nonsense", "body": "x"}, "no issue 'nonsense'"),
        ("add_label", {"id": "DEMO-1", "label": "Docz"}, "Near to it: Docs"),
        ("remove_label", {"id": "DEMO-1", "label": "Secrity"}, "Near to it: Security"),
        ("read_issue", {"id": "DEMO-99"}, "no issue 'DEMO-99'"),
        ("list_statuses", {"team": "OPS"}, "no team 'OPS'"),
        ("create_project", {"name": "x", "team": "OPS"}, "no team 'OPS'"),
        ("create_cycle", {"starts_at": "soon", "ends_at": "2026-12-14"}, "starts_at is no date"),
        ("create_cycle", {"starts_at": "2026-12-14", "ends_at": "2026-12-01"}, "later than starts_at"),
        ("update_cycle", {"id": "17", "name": "x"}, "no cycle '17'. There is: Sprint 1 (1)"),
    ],
)
async def test_what_is_not_there_fails_before_anything_is_written(
    linear: LinearToolHarness, name: str, args: dict[str, object], words: str
) -> None:  # R7
    with pytest.raises(ToolFailed) as failed:
        await linear.use(name, **args)
    assert words in failed.value.message
    assert linear.line.mutations == []


async def test_a_name_that_two_people_have_is_not_guessed(linear: LinearToolHarness) -> None:  # R7
    ada = next(item for item in await linear.items.list("linear_user") if item.body["displayName"] == "ada")
    twin = {**ada.body, "email": "twin@demo.example", "displayName": "twin", "isMe": False}
    await linear.items.change("", lambda items: items.put("linear_user", "another-id", twin))
    with pytest.raises(ToolFailed, match="more than one person") as failed:
        await linear.use("assign_issue", id="DEMO-1", assignee="Ada Lovelace")
    assert "ada@demo.example" in failed.value.message
    assert "twin@demo.example" in failed.value.message
    assert linear.line.mutations == []
    assert (await linear.use("assign_issue", id="DEMO-1", assignee="twin@demo.example"))["assignee"] == "Ada Lovelace"


async def test_with_two_teams_one_has_to_be_named_or_set(linear: LinearToolHarness) -> None:  # R7
    demo = (await linear.items.list("linear_team"))[0]
    other = {**demo.body, "key": "OPS", "name": "Operations"}
    await linear.items.change("", lambda items: items.put("linear_team", "another-id", other))
    with pytest.raises(ToolFailed, match="Say which team is meant") as failed:
        await linear.use("create_issue", title="x")
    assert "Operations (OPS)" in failed.value.message
    linear.kit = ToolContext("default", linear.items, {**linear.kit.settings, "team": "DEMO"})
    assert (await linear.use("create_issue", title="x"))["id"] == "DEMO-13"


# --- tries and troubles -----------------------------------------------------------------------------------------------

CREATES = {
    "issue": ("create_issue", {"title": "Fix login"}, "issueCreate"),
    "comment": ("comment", {"id": "DEMO-2", "body": "Hello"}, "commentCreate"),
    "project": ("create_project", {"name": "Search"}, "projectCreate"),
    "cycle": ("create_cycle", {"starts_at": "2026-12-01", "ends_at": "2026-12-14"}, "cycleCreate"),
}


@pytest.mark.parametrize("kind", CREATES)
async def test_a_second_try_with_the_same_key_makes_nothing_new(linear: LinearToolHarness, kind: str) -> None:  # R7
    name, args, _ = CREATES[kind]
    before = await linear.count(kind)
    first = await linear.use(name, "approval-1", **args)
    assert await linear.use(name, "approval-1", **args) == first
    assert await linear.count(kind) == before + 1
    assert (await linear.use(name, "approval-2", **args))["id"] != first["id"]
    assert await linear.count(kind) == before + 2


@pytest.mark.parametrize("kind", CREATES)
async def test_an_answer_that_was_lost_is_fetched(linear: LinearToolHarness, kind: str) -> None:  # R7
    name, args, mutation = CREATES[kind]
    before = await linear.count(kind)
    linear.line.lose_responses_to = mutation
    made = await linear.use(name, **args)
    linear.line.lose_responses_to = ""
    assert await linear.use(name, **args) == made
    assert await linear.count(kind) == before + 1


async def test_many_tries_at_once_make_one_issue(linear: LinearToolHarness) -> None:  # R7
    tries = [linear.use("create_issue", "approval-1", title="Fix login") for _ in range(5)]
    others = [linear.use("create_issue", f"approval-{n}", title="Another") for n in range(2, 5)]
    made = await asyncio.gather(*tries, *others)
    assert {issue["id"] for issue in made} == {"DEMO-13", "DEMO-14", "DEMO-15", "DEMO-16"}
    assert len({issue["id"] for issue in made[:5]}) == 1
    assert await linear.count("issue") == 16


async def test_a_second_try_finds_the_issue_also_when_a_name_is_gone(linear: LinearToolHarness) -> None:  # R7
    first = await linear.use("create_issue", title="Fix login", assignee="Grace Hopper")
    grace = next(item for item in await linear.items.list("linear_user") if item.body["displayName"] == "grace")
    await linear.items.change("", lambda items: items.put("linear_user", grace.id, {**grace.body, "active": False}))
    assert await linear.use("create_issue", title="Fix login", assignee="Grace Hopper") == first


CHANGES = {
    "issueUpdate": ("change_status", {"id": "DEMO-2", "status": "Done"}),
    "issueAddLabel": ("add_label", {"id": "DEMO-2", "label": "Docs"}),
    "issueRemoveLabel": ("remove_label", {"id": "DEMO-2", "label": "Bug"}),
    "issueDelete": ("delete_issue", {"id": "DEMO-2"}),
    "cycleUpdate": ("update_cycle", {"id": "1", "name": "Sprint X", "ends_at": "2027-03-01"}),
}


@pytest.mark.parametrize("mutation", CHANGES)
async def test_a_change_whose_answer_was_lost_is_found_to_be_made(
    linear: LinearToolHarness, mutation: str
) -> None:  # R7
    name, args = CHANGES[mutation]
    linear.line.lose_responses_to = mutation
    result = await linear.use(name, **args)
    linear.line.lose_responses_to = ""
    assert await linear.use(name, **args) == result


@pytest.mark.parametrize("mutation", [*CHANGES, *(mutation for _, _, mutation in CREATES.values())])
async def test_a_broken_connection_does_not_claim_that_nothing_happened(
    linear: LinearToolHarness, mutation: str
) -> None:  # R7
    name, args = {**CHANGES, **{made: (tool, takes) for tool, takes, made in CREATES.values()}}[mutation]
    linear.line.drop = mutation
    with pytest.raises(ToolFailed, match="not known whether Linear did it"):
        await linear.use(name, **args)
    linear.line.drop = ""
    assert await linear.use(name, **args)


async def test_an_answer_that_takes_too_long_does_not_claim_that_nothing_happened(
    linear: LinearToolHarness,
) -> None:  # R7
    async def never(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("too long")

    linear.kit = ToolContext("default", linear.items, transport=httpx2.MockTransport(never))
    with pytest.raises(ToolFailed, match=r"within 20 seconds\. Linear did nothing"):
        await linear.use("list_issues")
    access = make_linear_access(linear.kit)
    assert access is not None
    async with access.open_client() as talk:
        with pytest.raises(ToolFailed, match=r"within 20 seconds\. It is not known whether Linear did it"):
            await talk.mutate("mutation Any { any }")


RESET = "X-RateLimit-Requests-Reset"


@pytest.mark.parametrize(
    ("status", "headers", "body", "words"),
    [
        (401, {}, {"errors": [{"extensions": {"code": "AUTHENTICATION_ERROR"}}]}, "does not take the key"),
        (200, {}, {"errors": [{"extensions": {"code": "AUTHENTICATION_ERROR"}}]}, "does not take the key"),
        (400, {}, {"errors": [{"message": "x", "extensions": {"code": "RATELIMITED"}}]}, "Try again later"),
        (429, {RESET: "1800000000"}, {}, "Try again after 08:00 UTC"),
        (429, {RESET: "1800000000000"}, {}, "Try again after 08:00 UTC"),
        (403, {}, {"errors": [{"message": "Not your team"}]}, "may not do this in Linear. Linear did nothing. Not"),
        (500, {}, {}, "not known whether"),
        (502, {}, "<html>Bad gateway</html>", "not known whether"),
        (200, {}, "not json", "not known whether"),
        (200, {}, [], "not known whether"),
        (200, {}, {"data": None}, "not known whether"),
        (200, {}, {"data": {"done": {"success": False}}}, "did not do it"),
        (200, {}, {"data": {"done": None}}, "not known whether"),
        (200, {}, {"data": {"done": {"success": "yes"}}}, "not known whether"),
        (200, {}, {"data": {"done": {"success": True, "any": None}}}, "holds no any. It is not known whether"),
        (200, {}, {"errors": ["odd"], "data": None}, "not known whether"),
        (200, {}, {"errors": [{"message": f"Key {KEY} is odd"}]}, "Linear refused: Key … is odd"),
        (302, {"location": "https://elsewhere.example"}, "", "not known whether"),
    ],
)
async def test_errors_are_plain_and_never_contain_the_key(
    linear: LinearToolHarness, status: int, headers: dict[str, str], body: object, words: str
) -> None:  # R7, R46
    linear.line.override = (status, headers, (body if isinstance(body, str) else json.dumps(body)).encode())
    with pytest.raises(ToolFailed) as failed:
        await linear.use("list_issues")
    delete = linear.tools["linear_delete_issue"].spec
    shown = await render_preview(delete, propose(delete.name, {"id": "DEMO-1"}, "run", "call"))
    result = [failed.value.message, shown, repr(linear.tools)]
    assert shown.startswith("This may fail: ")
    access = make_linear_access(linear.kit)
    assert access is not None
    async with access.open_client() as talk:
        with pytest.raises(ToolFailed) as failed:
            await talk.mutate("mutation Any { any }", "any")
    assert words in failed.value.message
    assert isinstance(failed.value, EffectUnknown) == ("not known whether" in words)
    assert [text for text in (*result, failed.value.message, repr(access)) if KEY in text] == []


async def test_a_linear_that_is_not_there_did_nothing(linear: LinearToolHarness) -> None:  # R7
    linear.kit = ToolContext("default", linear.items, {"key": KEY, "url": "http://127.0.0.1:9/graphql"})
    with pytest.raises(ToolFailed, match=r"cannot be reached\. Linear did nothing"):
        await linear.use("change_status", id="DEMO-2", status="Done")


def test_without_a_key_there_are_no_tools() -> None:  # R7
    kit = ToolContext("default", None)  # type: ignore[arg-type]  # nothing is kept
    assert (pack.read_tools(kit), pack.write_tools(kit)) == ((), ())


def test_a_key_is_not_sent_in_the_clear() -> None:
    kit = ToolContext("default", None, {"key": KEY, "url": "http://linear.example/graphql"})  # type: ignore[arg-type]
    with pytest.raises(Misconfigured, match="https://"):
        pack.write_tools(kit)


def test_ids_have_the_form_that_linear_wants_and_follow_from_the_call() -> None:  # R7
    assert UUID(idempotent_id("issue", "approval-1")).version == 4
    assert idempotent_id("issue", "approval-1") == idempotent_id("issue", "approval-1")
    assert (
        len(
            {
                idempotent_id("issue", "approval-1"),
                idempotent_id("issue", "approval-2"),
                idempotent_id("comment", "approval-1"),
            }
        )
        == 3
    )


# --- what people see --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "sentence"),
    [
        ("create_issue", {"title": "Fix login bug"}, "Create issue 'Fix login bug', unassigned"),
        (
            "create_issue",
            {"title": "A", "team": "DEMO", "assignee": "Ada", "priority": 1, "labels": ["Bug", "Docs"]},
            "Create issue 'A' in team DEMO, assigned to Ada, priority Urgent, labelled Bug, Docs",
        ),
        (
            "update_issue",
            {"id": "DEMO-1", "title": "B", "priority": 0, "description": "C\nD"},
            "Update issue DEMO-1: title to 'B', priority to No priority, description to 'C D'",
        ),
        (
            "delete_issue",
            {"id": "DEMO-1"},
            "Delete issue DEMO-1? It can be restored from Linear's trash for a limited time.",
        ),
        ("assign_issue", {"id": "DEMO-1", "assignee": "Ada"}, "Assign issue DEMO-1 to Ada"),
        ("assign_issue", {"id": "DEMO-1", "assignee": "Nobody"}, "Take the assignee off issue DEMO-1"),
        ("change_status", {"id": "DEMO-1", "status": "Done"}, "Change the status of issue DEMO-1 to 'Done'"),
        ("comment", {"id": "DEMO-1", "body": "x" * 201}, f"Comment on issue DEMO-1: '{'x' * 200}…'"),
        ("add_label", {"id": "DEMO-1", "label": "Bug"}, "Add label 'Bug' to issue DEMO-1"),
        ("remove_label", {"id": "DEMO-1", "label": "Bug"}, "Remove label 'Bug' from issue DEMO-1"),
        ("create_project", {"name": "P", "team": "DEMO"}, "Create project 'P' in team DEMO"),
        (
            "create_cycle",
            {"starts_at": "2026-12-01", "ends_at": "2026-12-14", "name": "S"},
            "Create cycle 'S', from 2026-12-01 to 2026-12-14",
        ),
        (
            "update_cycle",
            {"id": "1", "name": "S", "starts_at": "2026-12-01", "ends_at": "2026-12-14"},
            "Update cycle 1: name to 'S', start to 2026-12-01, end to 2026-12-14",
        ),
    ],
)
async def test_every_call_is_one_sentence(
    linear: LinearToolHarness, name: str, args: dict[str, object], sentence: str
) -> None:  # R2
    assert linear.sentence(name, **args) == sentence


@pytest.mark.parametrize(
    ("name", "args", "lines"),
    [
        (
            "delete_issue",
            {"id": "DEMO-1"},
            [
                "DEMO-1 Sign-in fails after a password reset",
                "Status: In Progress",
                "Assignee: Ada Lovelace",
                "Comments: 2",
                "Attachments: 0",
                "Sub-issues: 1",
                "  DEMO-12 Clear old session cookies on every reset",
            ],
        ),
        (
            "update_issue",
            {"id": "DEMO-2", "title": "Carts", "priority": 1},
            [
                "-title: Cart loses items when two tabs are open",
                "-priority: High",
                "+title: Carts",
                "+priority: Urgent",
            ],
        ),
        ("update_issue", {"id": "DEMO-2", "priority": 2}, ["Nothing would change."]),
        ("assign_issue", {"id": "DEMO-2", "assignee": "me"}, ["Assignee: Grace Hopper → Ada Lovelace"]),
        ("assign_issue", {"id": "DEMO-4", "assignee": "nobody"}, ["Assignee: nobody, as it is already"]),
        ("change_status", {"id": "DEMO-2", "status": "done"}, ["Status: Todo → Done"]),
        ("add_label", {"id": "DEMO-2", "label": "docs"}, ["Labels: Bug → Bug, Docs"]),
        ("remove_label", {"id": "DEMO-2", "label": "bug"}, ["Labels: Bug → none"]),
        ("remove_label", {"id": "DEMO-2", "label": "docs"}, ["Labels: Bug, as it is already"]),
        ("comment", {"id": "DEMO-2", "body": "x"}, ["DEMO-2 Cart loses items when two tabs are open"]),
        ("create_issue", {"title": "x", "assignee": "me"}, ["Team: Demo", "Assignee: Ada Lovelace"]),
        ("create_project", {"name": "x"}, ["Team: Demo"]),
        ("create_cycle", {"starts_at": "2026-12-01", "ends_at": "2026-12-14"}, ["Team: Demo"]),
        ("update_cycle", {"id": "1", "name": "S"}, ["-name: Sprint 1", "+name: S"]),
    ],
)
async def test_a_preview_shows_the_effect_and_changes_nothing(
    linear: LinearToolHarness, name: str, args: dict[str, object], lines: list[str]
) -> None:  # R45
    seen = (await linear.preview(name, **args)).splitlines()
    assert [line for line in lines if line not in seen] == []


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("delete_issue", {"id": "DEMO-99"}, "There is no issue 'DEMO-99'"),
        ("assign_issue", {"id": "DEMO-2", "assignee": "Zoe Zimmer"}, "Linear has no person 'Zoe Zimmer'"),
        ("create_issue", {"title": "x", "assignee": "nobody else"}, "Linear has no person 'nobody else'"),
        ("create_issue", {"title": "x", "team": "Sales"}, "Linear has no team 'Sales'"),
        ("change_status", {"id": "DEMO-2", "status": "Dnoe"}, "Linear has no status 'Dnoe'"),
        ("add_label", {"id": "DEMO-2", "label": "nope"}, "Linear has no label 'nope'"),
        ("update_cycle", {"id": "99", "name": "S"}, "Linear has no cycle '99'"),
        ("create_cycle", {"starts_at": "soon", "ends_at": "2026-12-14"}, "starts_at is no date"),
        ("create_cycle", {"starts_at": "2026-12-14", "ends_at": "2026-12-01"}, "A cycle ends after it starts"),
    ],
)
async def test_a_preview_knows_what_would_fail_for_certain(
    linear: LinearToolHarness, name: str, args: dict[str, object], words: str
) -> None:  # R35, R45
    with pytest.raises(CallWouldFail) as refused:
        await linear.preview(name, **args)
    assert words in refused.value.message


async def test_an_issue_that_was_deleted_is_known_not_to_change(linear: LinearToolHarness) -> None:  # R35, R45
    await linear.use("delete_issue", id="DEMO-1")
    linear.line.requests.clear()
    with pytest.raises(CallWouldFail, match="was deleted"):
        await linear.preview("comment", id="DEMO-1", body="x")


async def test_the_preview_of_a_second_deletion_says_that_nothing_would_change(
    linear: LinearToolHarness,
) -> None:  # R45
    await linear.use("delete_issue", id="DEMO-1")
    linear.line.requests.clear()
    assert "nothing would change" in await linear.preview("delete_issue", id="DEMO-1")

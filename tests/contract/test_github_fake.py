"""The demo's fake GitHub: the GitHub tools work against it, and it refuses what GitHub refuses."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.chat.tool import Tool, ToolContext, ToolInvocation
from interlock.chat.tools import github
from interlock.core.errors import ToolFailed
from interlock.core.ports import ToolItemStore
from interlock.demo.github import DEMO_REPO, KINDS, FakeGitHub, fill_github
from interlock.runtime.json_schema import validate

pytestmark = pytest.mark.postgres_nightly  # test_tool_items.py owns what the database does here


class GitHubToolHarness:
    """The pack's tools on the demo's repository."""

    def __init__(self, items: ToolItemStore) -> None:
        self.items = items
        kit = ToolContext("default", items, {"token": "demo"}, FakeGitHub(items))
        self.tools: dict[str, Tool] = {tool.name: tool for tool in (*github.read_tools(kit), *github.write_tools(kit))}

    async def use(self, name: str, key: str = "approval-1", /, **args: object) -> Any:
        tool = self.tools[f"github_{name}"]
        given = args if name == "search_issues" else {"repo": DEMO_REPO, **args}
        assert validate(tool.spec.schema or {}, given) == ()
        return await tool.run(ToolInvocation(given, key))

    async def all_rows(self) -> object:
        return [await self.items.list(kind) for kind in KINDS]


@pytest.fixture
async def demo(services: AppServices) -> GitHubToolHarness:
    items = services.store.tool_items("default")
    assert await fill_github(items) is True
    return GitHubToolHarness(items)


async def test_the_repository_is_filled_once(demo: GitHubToolHarness) -> None:
    before = await demo.all_rows()
    assert await fill_github(demo.items) is False
    assert await demo.all_rows() == before


async def test_every_tool_works(demo: GitHubToolHarness) -> None:  # R7
    listed = await demo.use("list_issues")
    assert ([issue["number"] for issue in listed["issues"]], listed["more"]) == ([7, 6, 4, 1], False)
    assert [issue["number"] for issue in (await demo.use("list_issues", state="closed"))["issues"]] == [2]
    pulls = await demo.use("list_pull_requests")
    assert [(pull["number"], pull["reviewers"]) for pull in pulls["pull_requests"]] == [(5, []), (3, ["ada"])]
    labels = await demo.use("list_labels")
    assert {label["name"] for label in labels["labels"]} == {"bug", "enhancement", "documentation", "security"}
    read = await demo.use("read_issue", number=1)
    assert [comment["author"] for comment in read["comments"]] == ["alan", "grace"]
    assert (await demo.use("read_pull_request", number=3))["head"] == "demo:fix-sign-in"

    made = await demo.use("create_issue", title="Fix", labels=["Bug"], assignees=["grace"])
    assert (made["number"], made["labels"], made["assignees"]) == (8, ["bug"], ["grace"])
    assert await demo.use("create_issue", title="Fix", labels=["Bug"], assignees=["grace"]) == made
    opened = await demo.use("open_pull_request", "approval-2", title="Index", head="search-index", base="main")
    assert (opened["number"], opened["head"], opened["base"]) == (9, "demo:search-index", "main")
    asked = await demo.use("request_review", "approval-3", number=9, reviewers=["alan", "grace"])
    assert asked["reviewers"] == ["alan", "grace"]
    for _ in range(2):
        assert "#issuecomment-" in (await demo.use("comment", "approval-4", number=8, body="On it."))["url"]
    assert (await demo.use("read_issue", number=8))["of"] == 1
    assert (await demo.use("add_labels", number=8, labels=["security"]))["labels"] == ["bug", "security"]
    assert (await demo.use("remove_label", number=8, label="bug"))["labels"] == ["security"]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("sign-in", [1]),
        ("is:issue is:open assignee:@me", [7, 1]),
        ("is:pr review-requested:@me", [3]),
        ("type:pr author:alan state:open", [5]),
        (f"is:issue repo:{DEMO_REPO} label:security keys", [7]),
        ("is:issue repo:other/one", []),
    ],
)
async def test_issues_are_found_by_words_and_qualifiers(
    demo: GitHubToolHarness, query: str, numbers: list[int]
) -> None:  # R7
    assert [issue["number"] for issue in (await demo.use("search_issues", query=query))["issues"]] == numbers


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("read_issue", {"number": 99}, "was not found"),
        ("read_pull_request", {"number": 1}, "was not found"),
        ("list_issues", {"repo": "demo/other"}, "was not found"),
        ("search_issues", {"query": "is:issue created:>2026-01-01"}, "does not search by created"),
        ("create_issue", {"title": " "}, "title is missing field"),
        ("create_issue", {"title": "x", "assignees": ["mallory"]}, "cannot be assigned to 'mallory'"),
        ("open_pull_request", {"title": "x", "head": "gone", "base": "main"}, "head is invalid"),
        ("open_pull_request", {"title": "x", "head": "saved-cards", "base": "main"}, "already exists for demo:saved"),
        ("request_review", {"number": 5, "reviewers": ["mallory"]}, "only be requested from collaborators"),
        ("request_review", {"number": 5, "reviewers": ["alan"]}, "from pull request author"),
        ("add_labels", {"number": 1, "labels": ["bgu"]}, "has no label 'bgu'. There is: bug"),
    ],
)
async def test_what_github_refuses_changes_nothing(
    demo: GitHubToolHarness, name: str, args: dict[str, object], words: str
) -> None:  # R7
    before = await demo.all_rows()
    with pytest.raises(ToolFailed) as failed:
        await demo.use(name, **args)
    assert words in failed.value.message
    assert await demo.all_rows() == before


@pytest.mark.parametrize(
    ("method", "path", "headers", "content", "status"),
    [
        ("GET", f"/repos/{DEMO_REPO}/issues", {}, b"", 401),
        ("GET", f"/repos/{DEMO_REPO}/branches", {"authorization": "Bearer x"}, b"", 404),
        ("DELETE", f"/repos/{DEMO_REPO}/issues/1", {"authorization": "Bearer x"}, b"", 404),
        ("DELETE", f"/repos/{DEMO_REPO}/issues/4/labels/bug", {"authorization": "token x"}, b"", 404),
        ("POST", f"/repos/{DEMO_REPO}/issues/1/comments", {"authorization": "Bearer x"}, b'{"body": " "}', 422),
        ("POST", f"/repos/{DEMO_REPO}/issues", {"authorization": "Bearer x"}, b"[]", 400),
        ("POST", f"/repos/{DEMO_REPO}/issues", {"authorization": "Bearer x"}, b"{" + b" " * 2**20, 400),
    ],
)
async def test_what_is_no_request_is_refused(
    demo: GitHubToolHarness, method: str, path: str, headers: dict[str, str], content: bytes, status: int
) -> None:
    async with httpx2.AsyncClient(transport=FakeGitHub(demo.items), base_url="https://github.example") as client:
        response = await client.request(method, path, headers=headers, content=content)
    assert (response.status_code, response.json()["status"]) == (status, str(status))

"""The GitHub pack against a fake that GitHub's own OpenAPI description checks, on both databases."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.chat.tool import Tool, ToolContext, ToolInvocation
from interlock.chat.tools import github as github_tools
from interlock.core.call import propose
from interlock.core.canonical import canonical
from interlock.core.errors import CallWouldFail, EffectUnknown, Misconfigured, ToolFailed
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Finished
from tests.databases import Database
from tests.fakes.github import GitHub, Repo, run_github
from tests.node_packages import PROVIDER, node_command
from tests.support import Clock, approve, open_services

REPO = "octo/hello"
HOUR = 3_600_000
OCTOKIT = Path(__file__).resolve().parents[1] / "fakes" / "octokit.mjs"


@dataclass
class GitHubPack:
    """The pack's tools by name, and the GitHub that they reach."""

    github: GitHub
    repo: Repo
    tools: dict[str, Tool]

    async def run(self, name: str, key: str = "key", **args: object) -> dict[str, object]:
        return await self.tools[f"github_{name}"].run(ToolInvocation({"repo": REPO, **args}, key))

    async def preview(self, name: str, **args: object) -> str:
        return await self.tools[f"github_{name}"].spec.preview({"repo": REPO, **args})


@asynccontextmanager
async def open_pack(services: AppServices, clock: Clock, **settings: object) -> AsyncIterator[GitHubPack]:
    fake = GitHub(clock)
    async with run_github(fake) as url:
        kit = ToolContext(
            "default", services.store.tool_items("default"), {"token": fake.token, "url": url, **settings}
        )
        tools = {tool.name: tool for tool in (*github_tools.read_tools(kit), *github_tools.write_tools(kit))}
        yield GitHubPack(fake, fake.add_repo(REPO), tools)
    assert fake.faults == []  # every request and every answer fits GitHub's own description
    assert fake.versions <= {"2026-03-10"}


@pytest.fixture
async def pack(database: Database, clock: Clock) -> AsyncIterator[GitHubPack]:
    async with open_services(database, clock) as services, open_pack(services, clock) as made:
        yield made


@pytest.fixture
async def sqlite_pack(tmp_path: Path, clock: Clock) -> AsyncIterator[GitHubPack]:
    """Where the database does not matter."""
    async with open_services(tmp_path / "interlock.db", clock) as services, open_pack(services, clock) as made:
        yield made


async def test_an_issue_is_created(pack: GitHubPack) -> None:  # R7
    made = await pack.run("create_issue", title="Fix login", body="It fails.", labels=["bug"], assignees=["ada"])
    assert (made["number"], made["title"], made["assignees"], made["labels"]) == (1, "Fix login", ["ada"], ["bug"])
    assert made["url"] == "https://github.com/octo/hello/issues/1"
    (issue,) = pack.repo.issues.values()
    assert issue["body"].startswith("It fails.\n\n<!-- interlock:")


async def test_a_comment_a_pull_request_and_a_review_are_made(pack: GitHubPack) -> None:  # R7
    pack.github.open_issue(pack.repo, "Fix login")
    commented = await pack.run("comment", number=1, body="On it.")
    assert commented["url"].startswith("https://github.com/octo/hello/issues/1#issuecomment-")
    opened_ = await pack.run("open_pull_request", "k2", title="Fix", head="topic", base="main")
    assert (opened_["number"], opened_["head"], opened_["base"]) == (2, "octo:topic", "main")
    asked = await pack.run("request_review", "k3", number=2, reviewers=["ada", "bob"])
    assert asked["reviewers"] == ["ada", "bob"]


async def test_a_comment_goes_through_the_gate(database: Database, clock: Clock) -> None:  # R7
    async with open_services(database, clock) as services, open_pack(services, clock) as pack:
        pack.github.open_issue(pack.repo, "Login fails")
        tool = pack.tools["github_comment"]
        call = propose(tool.name, {"repo": REPO, "number": 1, "body": "On it."}, "run", "call")
        waiting = await services.gate.check(call, tool.spec)
        card = (await services.inbox.show("default", waiting.approval_id)).card
        assert (card.sentence, card.preview) == (
            f"Comment on {REPO}#1",
            "Issue #1 'Login fails', open, by interlock-bot.",
        )
        assert pack.repo.comments[1] == []  # nothing before a person says so
        await approve(services, waiting.approval_id)
        started = await services.gate.start("default", waiting.approval_id, "runner", 60_000, tool.spec.sha256)
        made = await tool.run(ToolInvocation(call.parsed_args, started.idempotency_key))
        payload = Payload(result=canonical(made))
        await services.gate.finish("default", waiting.approval_id, started.fence, ok=True, payload=payload)
        assert await services.gate.check(call, tool.spec) == Finished(
            "succeeded", made, approval_id=waiting.approval_id
        )
        assert len(pack.repo.comments[1]) == 1


async def test_issues_are_listed_without_pull_requests(sqlite_pack: GitHubPack) -> None:  # R7
    for number in range(35):
        sqlite_pack.github.open_issue(sqlite_pack.repo, f"Issue {number}", "text")
    await sqlite_pack.run("open_pull_request", title="Fix", head="topic", base="main")
    sqlite_pack.repo.issues[35]["state"] = "closed"
    listed = await sqlite_pack.run("list_issues")
    assert [one["number"] for one in listed["issues"]] == list(range(34, 4, -1))
    assert [one["number"] for one in (await sqlite_pack.run("list_issues", state="closed"))["issues"]] == [35]
    assert listed["more"] is True
    assert [one["number"] for one in (await sqlite_pack.run("list_issues", state="all", limit=2))["issues"]] == [35, 34]


async def test_a_list_continues_beyond_a_page_of_a_hundred(sqlite_pack: GitHubPack) -> None:  # R7
    for number in range(230):
        sqlite_pack.github.open_issue(sqlite_pack.repo, f"Issue {number}", "text")
    listed = await sqlite_pack.run("list_issues", limit=220)
    assert ([one["number"] for one in listed["issues"]], listed["more"]) == (list(range(230, 10, -1)), True)
    everything = await sqlite_pack.run("list_issues", limit=1_000)
    assert (len(everything["issues"]), everything["more"]) == (230, False)
    found = await sqlite_pack.run("search_issues", query="is:issue text", limit=150)
    assert (len(found["issues"]), found["total"], found["more"]) == (150, 230, True)
    assert (await sqlite_pack.run("search_issues", query="is:issue text", limit=1_000))["more"] is False


async def test_a_list_ends_after_so_many_pages_and_says_so(sqlite_pack: GitHubPack) -> None:
    for number in range(1_000):
        sqlite_pack.github.open_issue(sqlite_pack.repo, f"Issue {number}")
    before = len(sqlite_pack.github.requests)
    listed = await sqlite_pack.run("list_issues", limit=1_000)
    assert (len(listed["issues"]), listed["more"]) == (1_000, True)
    assert len(sqlite_pack.github.requests) - before == 10


async def test_pull_requests_are_listed_and_read_with_their_comments(sqlite_pack: GitHubPack) -> None:  # R7
    sqlite_pack.github.open_issue(sqlite_pack.repo, "First")
    await sqlite_pack.run("open_pull_request", title="Fix", head="topic", base="main", body="Fixes #1.")
    await sqlite_pack.run("request_review", "k2", number=2, reviewers=["ada"])
    sqlite_pack.github.comment(sqlite_pack.repo, 2, "Looks good.", "ada")
    sqlite_pack.repo.pulls[2]["comments"] = 1
    listed = await sqlite_pack.run("list_pull_requests")
    assert [(one["number"], one["head"], one["reviewers"]) for one in listed["pull_requests"]] == [
        (2, "octo:topic", ["ada"])
    ]
    assert listed["more"] is False
    read = await sqlite_pack.run("read_pull_request", number=2)
    assert (read["title"], read["base"], read["body"], read["reviewers"]) == ("Fix", "main", "Fixes #1.", ["ada"])
    assert [(one["author"], one["body"]) for one in read["comments"]] == [("ada", "Looks good.")]
    assert {"draft", "merged", "mergeable", "commits", "changed_files", "additions", "deletions"} <= read.keys()


async def test_labels_are_listed_added_and_removed(pack: GitHubPack) -> None:  # R7
    pack.github.open_issue(pack.repo, "First")
    assert [one["name"] for one in (await pack.run("list_labels"))["labels"]] == ["bug", "Good First Issue"]
    for _ in range(2):
        added = await pack.run("add_labels", number=1, labels=["Bug", "good first issue"])
        assert added["labels"] == ["bug", "Good First Issue"]  # as the repository writes them
    for _ in range(2):
        assert (await pack.run("remove_label", "k2", number=1, label="GOOD first issue"))["labels"] == ["bug"]
    assert sum(method == "DELETE" for method, _ in pack.github.requests) == 1


@pytest.mark.parametrize(
    ("name", "args"), [("add_labels", {"labels": ["bug", "securty"]}), ("remove_label", {"label": "bgu"})]
)
async def test_an_unknown_label_is_not_made(sqlite_pack: GitHubPack, name: str, args) -> None:  # R7
    sqlite_pack.github.open_issue(sqlite_pack.repo, "First")
    with pytest.raises(ToolFailed, match=r"octo/hello has no label '.+'\. There is: bug"):
        await sqlite_pack.run(name, number=1, **args)
    assert sqlite_pack.repo.labels == ["bug", "Good First Issue"]
    assert {method for method, _ in sqlite_pack.github.requests} == {"GET"}
    with pytest.raises(CallWouldFail, match="has no label"):  # so that nobody is asked about it
        await sqlite_pack.preview(name, number=1, **args)


@pytest.mark.parametrize(
    ("name", "args", "labels"),
    [("add_labels", {"labels": ["bug"]}, ["bug"]), ("remove_label", {"label": "bug"}, [])],
)
async def test_labels_after_a_lost_answer_are_looked_up(sqlite_pack: GitHubPack, name: str, args, labels) -> None:
    sqlite_pack.github.open_issue(sqlite_pack.repo, "First", labels=["bug"] if name == "remove_label" else [])
    sqlite_pack.github.trouble = "before"
    with pytest.raises(EffectUnknown, match="not known: look on GitHub"):
        await sqlite_pack.run(name, number=1, **args)
    sqlite_pack.github.trouble = "after"
    assert (await sqlite_pack.run(name, number=1, **args))["labels"] == labels


async def test_somebody_whom_github_would_leave_out_is_named_before_anything_is_sent(sqlite_pack: GitHubPack) -> None:
    args = {"title": "Fix", "assignees": ["ada", "mallory"]}
    with pytest.raises(CallWouldFail, match="cannot be assigned to 'mallory'"):
        await sqlite_pack.preview("create_issue", **args)
    with pytest.raises(ToolFailed, match=r"cannot be assigned to 'mallory'\. Nothing was sent"):
        await sqlite_pack.run("create_issue", **args)
    assert sqlite_pack.repo.issues == {}


async def test_issues_are_searched_and_read(sqlite_pack: GitHubPack) -> None:  # R7
    sqlite_pack.github.open_issue(sqlite_pack.repo, "Login fails", "Since Monday", labels=["bug"])
    sqlite_pack.github.open_issue(sqlite_pack.repo, "Other")
    for number in range(64):
        sqlite_pack.github.comment(sqlite_pack.repo, 1, f"comment {number}", "ada")
    found = await sqlite_pack.run("search_issues", query=f"repo:{REPO} is:open login")
    assert found["query"].endswith(" is:issue")  # GitHub refuses a search that is for neither issues nor pull requests
    assert [(one["repo"], one["number"]) for one in found["issues"]] == [(REPO, 1)]
    read = await sqlite_pack.run("read_issue", number=1)
    assert (read["title"], read["body"], read["labels"], read["of"]) == ("Login fails", "Since Monday", ["bug"], 64)
    assert [one["body"] for one in read["comments"]] == [f"comment {number}" for number in range(34, 64)]


async def test_what_was_written_is_read_without_its_mark(sqlite_pack: GitHubPack) -> None:
    await sqlite_pack.run("create_issue", title="One", body="text")
    await sqlite_pack.run("comment", "k2", number=1, body="word")
    read = await sqlite_pack.run("read_issue", number=1)
    assert (read["body"], [one["body"] for one in read["comments"]]) == ("text", ["word"])


WRITES = [
    ("create_issue", {"title": "Fix login", "body": "x"}, lambda repo: len(repo.issues) - 1),
    ("comment", {"number": 1, "body": "On it."}, lambda repo: len(repo.comments[1])),
    ("open_pull_request", {"title": "Fix", "head": "topic", "base": "main"}, lambda repo: len(repo.pulls)),
]
writes = pytest.mark.parametrize(("name", "args", "count"), WRITES, ids=[name for name, _, _ in WRITES])


@writes
async def test_a_second_try_makes_nothing_a_second_time(
    pack: GitHubPack, clock: Clock, name: str, args, count
) -> None:  # R7
    pack.github.open_issue(pack.repo, "First")
    first = await pack.run(name, **args)
    clock.advance(24 * HOUR)
    assert await pack.run(name, **args) == first
    assert count(pack.repo) == 1


@writes
async def test_another_call_with_the_same_arguments_is_another(sqlite_pack: GitHubPack, name: str, args, count) -> None:
    sqlite_pack.github.open_issue(sqlite_pack.repo, "First")
    first = await sqlite_pack.run(name, **args)
    if name == "open_pull_request":
        sqlite_pack.repo.pulls[first["number"]]["state"] = "closed"
    assert await sqlite_pack.run(name, "other", **args) != first
    assert count(sqlite_pack.repo) == 2


@pytest.mark.parametrize("trouble", ["after", "cut"])
@writes
async def test_an_answer_that_got_lost_is_found(pack: GitHubPack, name: str, args, count, trouble: str) -> None:  # R7
    pack.github.open_issue(pack.repo, "First")
    pack.github.trouble = trouble
    made = await pack.run(name, **args)
    assert made["url"]
    assert count(pack.repo) == 1
    assert await pack.run(name, **args) == made


@writes
async def test_what_was_not_made_is_made_by_the_next_try(sqlite_pack: GitHubPack, name: str, args, count) -> None:
    sqlite_pack.github.open_issue(sqlite_pack.repo, "First")
    sqlite_pack.github.trouble = "before"
    with pytest.raises(ToolFailed, match="not known: look on GitHub"):
        await sqlite_pack.run(name, **args)
    assert count(sqlite_pack.repo) == 0
    await sqlite_pack.run(name, **args)
    assert count(sqlite_pack.repo) == 1


async def test_a_crash_between_making_and_recording_makes_nothing_twice(pack: GitHubPack) -> None:
    """The program ends while it waits for the answer; the next one starts the same call again."""
    pack.github.trouble = "hold"
    running = asyncio.create_task(pack.run("create_issue", title="Fix"))
    await pack.github.held.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    pack.github.go_on.set()
    made = await pack.run("create_issue", title="Fix")
    assert (made["number"], len(pack.repo.issues)) == (1, 1)


async def test_a_program_that_is_killed_makes_nothing_twice(database: Database, clock: Clock) -> None:  # R7
    """kill -9 behind the effect and before its answer; the effects are counted by GitHub."""
    async with open_services(database, clock):
        fake = GitHub(clock)
        repo = fake.add_repo(REPO)
        async with run_github(fake) as url:
            command = [sys.executable, "-m", "tests.tools.github_program", database.url, url, fake.token]
            fake.trouble = "hold"
            first = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            await fake.held.wait()
            first.kill()
            await first.communicate()
            fake.go_on.set()
            clock.advance(10 * 60_000)
            second = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            told, _ = await second.communicate()
    assert (second.returncode, len(repo.issues)) == (0, 1)
    assert b"https://github.com/octo/hello/issues/1" in told


async def test_it_is_found_behind_hundreds_of_newer_ones(pack: GitHubPack, clock: Clock) -> None:
    made = await pack.run("create_issue", title="Fix")
    await pack.run("comment", "k2", number=1, body="On it.")
    clock.advance(48 * HOUR)
    for number in range(350):
        pack.github.open_issue(pack.repo, f"Issue {number}")
        pack.github.comment(pack.repo, 1, f"comment {number}")
    assert (await pack.run("create_issue", title="Fix"))["number"] == made["number"]
    await pack.run("comment", "k2", number=1, body="On it.")
    assert (len(pack.repo.issues), len(pack.repo.comments[1])) == (351, 351)


async def test_where_too_much_is_new_nothing_is_made(sqlite_pack: GitHubPack) -> None:
    for number in range(1_000):
        sqlite_pack.github.open_issue(sqlite_pack.repo, f"Issue {number}")
    with pytest.raises(ToolFailed, match="too many to look through"):
        await sqlite_pack.run("create_issue", title="Fix")
    assert len(sqlite_pack.repo.issues) == 1_000


async def test_old_entries_are_not_looked_through(sqlite_pack: GitHubPack, clock: Clock) -> None:
    for number in range(1_500):
        sqlite_pack.github.open_issue(sqlite_pack.repo, f"Issue {number}")
    clock.advance(2 * HOUR)
    await sqlite_pack.run("create_issue", title="Fix")
    assert len(sqlite_pack.github.requests) == 2  # one look, one write


@pytest.mark.parametrize("minutes", [-50, 50])
async def test_clocks_may_differ(sqlite_pack: GitHubPack, clock: Clock, minutes: int) -> None:
    sqlite_pack.github.clock = lambda: clock() + minutes * 60_000
    await sqlite_pack.run("create_issue", title="Fix")
    await sqlite_pack.run("create_issue", title="Fix")
    assert len(sqlite_pack.repo.issues) == 1


async def test_people_may_write_below_the_mark(sqlite_pack: GitHubPack) -> None:
    await sqlite_pack.run("create_issue", title="Fix")
    sqlite_pack.repo.issues[1]["body"] += "\n\nEdited by a person."
    await sqlite_pack.run("create_issue", title="Fix")
    assert len(sqlite_pack.repo.issues) == 1


async def test_a_write_without_a_key_is_refused(sqlite_pack: GitHubPack) -> None:
    with pytest.raises(ToolFailed, match="no key"):
        await sqlite_pack.run("create_issue", "", title="Fix")
    assert sqlite_pack.github.requests == []


async def test_who_is_asked_already_is_not_asked_again(sqlite_pack: GitHubPack) -> None:
    await sqlite_pack.run("open_pull_request", title="Fix", head="topic", base="main")
    for _ in range(2):
        asked = await sqlite_pack.run("request_review", "k2", number=1, reviewers=["ada"])
    assert asked["reviewers"] == ["ada"]


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("read_issue", {"number": 9}, "/issues/9 was not found, or the token may not see it"),
        ("comment", {"number": 9, "body": "x"}, "was not found"),
        ("list_issues", {"repo": "octo/other"}, "was not found"),
        ("create_issue", {"title": " "}, "title is missing field"),
        ("open_pull_request", {"title": "x", "head": "gone", "base": "main"}, "head is invalid"),
        ("request_review", {"number": 1, "reviewers": ["mallory"]}, "collaborators"),
        ("comment", {"number": True, "body": "x"}, "whole number above 0"),
        ("read_issue", {"number": 0}, "whole number above 0"),
        ("read_issue", {"number": "1/comments"}, "whole number above 0"),
    ],
)
async def test_what_github_refuses_is_said_in_plain_words(sqlite_pack: GitHubPack, name: str, args, words: str) -> None:
    await sqlite_pack.run("open_pull_request", "pull", title="Fix", head="topic", base="main")
    with pytest.raises(ToolFailed, match=words) as caught:
        await sqlite_pack.run(name, **args)
    assert sqlite_pack.github.token not in str(caught.value)


async def test_a_second_pull_request_from_the_same_branch_says_so(sqlite_pack: GitHubPack) -> None:
    await sqlite_pack.run("open_pull_request", title="Fix", head="topic", base="main")
    with pytest.raises(ToolFailed, match="already exists for octo:topic"):
        await sqlite_pack.run("open_pull_request", "other", title="Fix", head="topic", base="main")
    assert len(sqlite_pack.repo.pulls) == 1


@pytest.mark.parametrize(
    "repo",
    ["octo", "octo/", "/hello", "octo/..", "octo/.", "../user", "octo/a/b", "octo/a?x", "octo/%2e", "a b/c", "o/a\n"],
)
async def test_a_repository_is_never_another_path(sqlite_pack: GitHubPack, repo: str) -> None:
    with pytest.raises(ToolFailed, match="Write owner/name"):
        await sqlite_pack.run("list_issues", repo=repo)
    assert sqlite_pack.github.requests == []


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "1800000600"}, "after 2027-01-15T08:10:00"),
        ({"retry_after": "60"}, "in 60 seconds"),
        ({"x_ratelimit_reset": "soon"}, "Try again later"),
    ],
)
async def test_a_limit_says_when_it_ends(sqlite_pack: GitHubPack, headers: dict[str, str], words: str) -> None:
    sqlite_pack.github.limited = headers
    with pytest.raises(ToolFailed, match=f"limit of requests is reached.*{words}"):
        await sqlite_pack.run("list_issues")


async def test_a_wrong_token_says_whose_task_it_is(tmp_path: Path, clock: Clock) -> None:
    async with (
        open_services(tmp_path / "interlock.db", clock) as services,
        open_pack(services, clock, token="canary") as pack,
    ):
        with pytest.raises(ToolFailed, match=r"tools\.github\.token") as caught:
            await pack.run("list_issues")
        assert "canary" not in str(caught.value) + repr(pack.tools)


async def test_unreachable_github_is_reported(tmp_path: Path, clock: Clock) -> None:
    async with open_services(tmp_path / "interlock.db", clock) as services:
        settings = {"token": "token", "url": "http://127.0.0.1:9"}
        tools = github_tools.write_tools(ToolContext("default", services.store.tool_items("default"), settings))
        with pytest.raises(ToolFailed, match="cannot be reached"):
            await tools[0].run(ToolInvocation({"repo": REPO, "title": "x"}, "key"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx2.Response(301, headers={"location": "https://elsewhere.example/"}), "It moved"),
        (httpx2.Response(500), "GitHub fails"),
        (httpx2.Response(200, text="<html>"), "cannot be read"),
        (httpx2.Response(403, json={"message": "Resource not accessible"}), "may not do this: Resource not accessible"),
        (httpx2.Response(403, json={"message": "You have exceeded a secondary rate limit"}), "limit of requests"),
        (httpx2.Response(410, json={"message": "Issues are disabled for this repo"}), "Issues are disabled"),
        (httpx2.Response(422, json={"message": "No", "errors": ["a", {"x": 1}]}), "refuses it: a; {'x': 1}"),
        (httpx2.Response(418, text="teapot"), "HTTP 418"),
    ],
)
async def test_any_other_response_is_reported(answer: httpx2.Response, words: str) -> None:
    """Given by a transport, as in a demo: it is used again and never closed."""
    seen: list[httpx2.Request] = []

    def answered(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return answer

    tool = github_tools.read_tools(ToolContext("default", None, {"token": "canary"}, httpx2.MockTransport(answered)))[0]
    for _ in range(2):
        with pytest.raises(ToolFailed, match=words) as caught:
            await tool.run(ToolInvocation({"repo": REPO}, ""))
    assert "canary" not in str(caught.value)
    assert [request.url.host for request in seen] == ["api.github.com"] * 2  # the token goes nowhere else


@pytest.mark.parametrize("answer", [(500, "busy"), (201, "<html>"), (201, "{}")])
@pytest.mark.parametrize("search", [(200, "[]"), (403, "{}"), (500, "busy")])
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("create_issue", {"title": "Fix"}),
        ("comment", {"number": 1, "body": "On it."}),
        ("open_pull_request", {"title": "Fix", "head": "topic", "base": "main"}),
        ("request_review", {"number": 1, "reviewers": ["ada"]}),
    ],
)
async def test_a_write_whose_answer_cannot_be_read_has_an_unknown_effect(
    tmp_path: Path, clock: Clock, name: str, args: dict[str, object], search: tuple[int, str], answer: tuple[int, str]
) -> None:  # R46
    """GitHub shows nothing before it, and afterwards nothing, or an error."""
    sent: list[str] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.method)
        status, text = (answer if request.method == "POST" else search) if "POST" in sent else (200, "[]")
        return httpx2.Response(status, text=text)

    async with open_services(tmp_path / "interlock.db", clock) as services:
        items = services.store.tool_items("default")
        tools = github_tools.write_tools(ToolContext("default", items, {"token": "t"}, httpx2.MockTransport(respond)))
        (tool,) = [tool for tool in tools if tool.name == f"github_{name}"]
        with pytest.raises(EffectUnknown, match="not known: look on GitHub"):
            await tool.run(ToolInvocation({"repo": REPO, **args}, "key"))


async def test_a_preview_knows_that_an_issue_is_not_there(sqlite_pack: GitHubPack) -> None:  # R35
    with pytest.raises(CallWouldFail, match="was not found"):
        await sqlite_pack.preview("comment", number=77, body="x")


async def test_previews_show_what_is_touched(sqlite_pack: GitHubPack) -> None:
    sqlite_pack.github.open_issue(sqlite_pack.repo, "Login fails")
    await sqlite_pack.run("open_pull_request", title="Fix login", head="topic", base="main")
    await sqlite_pack.run("request_review", "k2", number=2, reviewers=["ada"])
    before = len(sqlite_pack.github.requests)
    assert await sqlite_pack.preview("comment", number=1, body="x") == "Issue #1 'Login fails', open, by interlock-bot."
    assert (await sqlite_pack.preview("comment", number=2, body="x")).startswith("Pull request #2 'Fix login'")
    asked = "Pull request #2 'Fix login', open, by interlock-bot. Asked so far: ada."
    assert await sqlite_pack.preview("request_review", number=2, reviewers=["bob"]) == asked
    labels = await sqlite_pack.preview("add_labels", number=1, labels=["BUG"])
    assert labels.splitlines() == ["Issue #1 'Login fails', open, by interlock-bot.", "Labels: none → bug"]
    assert (await sqlite_pack.preview("remove_label", number=1, label="bug")).endswith("Labels: none, as it is already")
    assert await sqlite_pack.preview("create_issue", title="x", labels=["bug"]) == "Repository octo/hello."
    new = await sqlite_pack.preview("create_issue", title="x", labels=["bug", "odd"])
    assert new.endswith("New labels, which GitHub would add to the repository: odd.")
    with pytest.raises(CallWouldFail, match=r"GitHub would refuse another one\.$"):
        await sqlite_pack.preview("open_pull_request", title="x", head="topic", base="main")
    first = await sqlite_pack.preview("open_pull_request", title="x", head="other", base="main")
    assert first == "From octo:other into main. No pull request is open between them."
    assert {method for method, _ in sqlite_pack.github.requests[before:]} == {"GET"}


def test_sentences_say_what_happens() -> None:  # R2
    specs = {tool.name: tool.spec for tool in github_tools.write_tools(ToolContext("default", None, {"token": "t"}))}
    args = {"repo": REPO, "number": 7, "title": "Fix login bug", "head": "topic", "base": "main"}
    args |= {"labels": ["bug", "docs"], "label": "bug"}
    sentences = {name: spec.sentence({**args, "reviewers": ["ada", "bob"]}) for name, spec in specs.items()}
    assert sentences == {
        "github_create_issue": "Create issue 'Fix login bug' in octo/hello, unassigned",
        "github_open_pull_request": "Open pull request 'Fix login bug' in octo/hello, from topic into main",
        "github_request_review": "Ask ada, bob to review octo/hello#7",
        "github_comment": "Comment on octo/hello#7",
        "github_add_labels": "Label octo/hello#7 bug, docs",
        "github_remove_label": "Remove label 'bug' from octo/hello#7",
    }
    assert specs["github_create_issue"].sentence({**args, "assignees": ["ada"]}).endswith(", assigned to ada")
    assert all(spec.idempotent for spec in specs.values())


def test_without_a_token_there_are_no_tools() -> None:
    kit = ToolContext("default", None)
    assert (github_tools.read_tools(kit), github_tools.write_tools(kit)) == ((), ())


@pytest.mark.parametrize(
    "settings",
    [
        *({"token": "a b"}, {"token": 7}, {"token": "t\n"}),
        *({"token": "t", "url": "http://ghe.example"}, {"token": "t", "url": 1}),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(Misconfigured, match=r"tools\.github"):
        github_tools.read_tools(ToolContext("default", None, settings))


async def test_fake_refuses_what_github_does_not_know(clock: Clock) -> None:
    """Its own proof: a request that does not fit the description is a fault, and gets no answer."""
    fake = GitHub(clock)
    fake.add_repo(REPO)
    headers = {"authorization": f"Bearer {fake.token}", "accept": "application/vnd.github+json"}
    headers["x-github-api-version"] = "2026-03-10"
    async with run_github(fake) as url, httpx2.AsyncClient(base_url=url, headers=headers) as client:
        wrong = [
            await client.get(f"/repos/{REPO}/issues?state=odd"),
            await client.get(f"/repos/{REPO}/issues?sorted=created"),
            await client.get(f"/repos/{REPO}/issues?since=yesterday"),
            await client.get("/search/issues"),
            await client.post(f"/repos/{REPO}/issues", json={"body": "no title"}),
            await client.post(f"/repos/{REPO}/issues", json={"title": "x", "labels": "bug"}),
            await client.post(f"/repos/{REPO}/pulls", json={"title": "x", "head": "topic", "base": "main", "odd": 1}),
        ]
        assert [answer.status_code for answer in wrong] == [422] * 7
        assert len(fake.faults) == 7
        versions = [await client.get(f"/repos/{REPO}/issues", headers={"x-github-api-version": "2020-01-01"})]
        assert [answer.status_code for answer in versions] == [400]
        assert (await client.delete(f"/repos/{REPO}")).status_code == 404


@pytest.mark.skipif(not PROVIDER.is_installed(), reason=PROVIDER.missing)
async def test_githubs_own_client_works_with_the_fake(clock: Clock) -> None:
    fake = GitHub(clock)
    fake.add_repo(REPO)
    async with run_github(fake) as url:
        command = node_command(OCTOKIT, str(PROVIDER.folder), url, fake.token)
        client = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        told, _ = await client.communicate()
    assert json.loads(told) == {
        "issue": 1,
        "labels": ["bug"],
        "comments": [f"comment {number}" for number in range(5)],
        "reviewers": ["ada"],
        "issues": [2, 1],
        "pulls": [2],
        "found": 1,
        "missing": 404,
    }
    assert fake.faults == []

"""The GitHub pack against a stand-in that GitHub's own OpenAPI description checks, on both databases."""

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
from interlock.chat.tools import github as pack
from interlock.core.call import propose
from interlock.core.canonical import canonical
from interlock.core.errors import Misconfigured, ToolFailed
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Finished
from tests.databases import Place
from tests.fakes.github import GitHub, Repo, serving
from tests.oidc_provider import FOLDER, MISSING, find_node
from tests.support import Clock, approve, opened

REPO = "octo/hello"
HOUR = 3_600_000
OCTOKIT = Path(__file__).resolve().parents[1] / "fakes" / "octokit.mjs"


@dataclass
class Desk:
    """The pack's tools by name, and the GitHub that they reach."""

    there: GitHub
    repo: Repo
    tools: dict[str, Tool]

    async def use(self, name: str, key: str = "key", **args: object) -> dict[str, object]:
        return await self.tools[f"github_{name}"].run(ToolInvocation({"repo": REPO, **args}, key))

    async def preview(self, name: str, **args: object) -> str:
        return await self.tools[f"github_{name}"].spec.preview({"repo": REPO, **args})


@asynccontextmanager
async def desk_at(parts: AppServices, clock: Clock, **settings: object) -> AsyncIterator[Desk]:
    there = GitHub(clock)
    async with serving(there) as url:
        kit = ToolContext("default", parts.store.records("default"), {"token": there.token, "url": url, **settings})
        tools = {tool.name: tool for tool in (*pack.reads(kit), *pack.writes(kit))}
        yield Desk(there, there.add_repo(REPO), tools)
    assert there.faults == []  # every request and every answer fits GitHub's own description
    assert there.versions <= {"2026-03-10"}


@pytest.fixture
async def desk(place: Place, clock: Clock) -> AsyncIterator[Desk]:
    async with opened(place, clock) as parts, desk_at(parts, clock) as made:
        yield made


@pytest.fixture
async def near(tmp_path: Path, clock: Clock) -> AsyncIterator[Desk]:
    """Where the database does not matter."""
    async with opened(tmp_path / "interlock.db", clock) as parts, desk_at(parts, clock) as made:
        yield made


async def test_an_issue_is_created(desk: Desk) -> None:  # R7
    made = await desk.use("create_issue", title="Fix login", body="It fails.", labels=["bug"], assignees=["ada"])
    assert (made["number"], made["title"], made["assignees"], made["labels"]) == (1, "Fix login", ["ada"], ["bug"])
    assert made["url"] == "https://github.com/octo/hello/issues/1"
    (issue,) = desk.repo.issues.values()
    assert issue["body"].startswith("It fails.\n\n<!-- interlock:")


async def test_a_comment_a_pull_request_and_a_review_are_made(desk: Desk) -> None:  # R7
    desk.there.open_issue(desk.repo, "Fix login")
    commented = await desk.use("comment", number=1, body="On it.")
    assert commented["url"].startswith("https://github.com/octo/hello/issues/1#issuecomment-")
    opened_ = await desk.use("open_pull_request", "k2", title="Fix", head="topic", base="main")
    assert (opened_["number"], opened_["head"], opened_["base"]) == (2, "octo:topic", "main")
    asked = await desk.use("request_review", "k3", number=2, reviewers=["ada", "bob"])
    assert asked["reviewers"] == ["ada", "bob"]


async def test_a_comment_goes_through_the_gate(place: Place, clock: Clock) -> None:  # R7
    async with opened(place, clock) as parts, desk_at(parts, clock) as desk:
        desk.there.open_issue(desk.repo, "Login fails")
        tool = desk.tools["github_comment"]
        call = propose(tool.name, {"repo": REPO, "number": 1, "body": "On it."}, "run", "call")
        waiting = await parts.gate.check(call, tool.spec)
        card = (await parts.inbox.show("default", waiting.approval_id)).card
        assert (card.sentence, card.preview) == (
            f"Comment on {REPO}#1",
            "Issue #1 'Login fails', open, by interlock-bot.",
        )
        assert desk.repo.comments[1] == []  # nothing before a person says so
        await approve(parts, waiting.approval_id)
        started = await parts.gate.start("default", waiting.approval_id, "runner", 60_000, tool.spec.sha256)
        made = await tool.run(ToolInvocation(call.parsed_args, started.idempotency_key))
        payload = Payload(result=canonical(made))
        await parts.gate.finish("default", waiting.approval_id, started.fence, ok=True, payload=payload)
        assert await parts.gate.check(call, tool.spec) == Finished("succeeded", made, approval_id=waiting.approval_id)
        assert len(desk.repo.comments[1]) == 1


async def test_issues_are_listed_without_pull_requests(near: Desk) -> None:  # R7
    for number in range(35):
        near.there.open_issue(near.repo, f"Issue {number}", "text")
    await near.use("open_pull_request", title="Fix", head="topic", base="main")
    near.repo.issues[35]["state"] = "closed"
    listed = await near.use("list_issues")
    assert [one["number"] for one in listed["issues"]] == list(range(34, 4, -1))
    assert [one["number"] for one in (await near.use("list_issues", state="closed"))["issues"]] == [35]
    assert [one["number"] for one in (await near.use("list_issues", state="all", limit=2))["issues"]] == [35, 34]


async def test_issues_are_searched_and_read(near: Desk) -> None:  # R7
    near.there.open_issue(near.repo, "Login fails", "Since Monday", labels=["bug"])
    near.there.open_issue(near.repo, "Other")
    for number in range(64):
        near.there.comment(near.repo, 1, f"comment {number}", "ada")
    found = await near.use("search_issues", query=f"repo:{REPO} is:open login")
    assert found["query"].endswith(" is:issue")  # GitHub refuses a search that is for neither issues nor pull requests
    assert [(one["repo"], one["number"]) for one in found["issues"]] == [(REPO, 1)]
    read = await near.use("read_issue", number=1)
    assert (read["title"], read["body"], read["labels"], read["of"]) == ("Login fails", "Since Monday", ["bug"], 64)
    assert [one["body"] for one in read["comments"]] == [f"comment {number}" for number in range(34, 64)]


async def test_what_was_written_is_read_without_its_mark(near: Desk) -> None:
    await near.use("create_issue", title="One", body="text")
    await near.use("comment", "k2", number=1, body="word")
    read = await near.use("read_issue", number=1)
    assert (read["body"], [one["body"] for one in read["comments"]]) == ("text", ["word"])


WRITES = [
    ("create_issue", {"title": "Fix login", "body": "x"}, lambda repo: len(repo.issues) - 1),
    ("comment", {"number": 1, "body": "On it."}, lambda repo: len(repo.comments[1])),
    ("open_pull_request", {"title": "Fix", "head": "topic", "base": "main"}, lambda repo: len(repo.pulls)),
]
writes = pytest.mark.parametrize(("name", "args", "count"), WRITES, ids=[name for name, _, _ in WRITES])


@writes
async def test_a_second_try_makes_nothing_a_second_time(desk: Desk, clock: Clock, name: str, args, count) -> None:  # R7
    desk.there.open_issue(desk.repo, "First")
    first = await desk.use(name, **args)
    clock.forward(24 * HOUR)
    assert await desk.use(name, **args) == first
    assert count(desk.repo) == 1


@writes
async def test_another_call_with_the_same_arguments_is_another(near: Desk, name: str, args, count) -> None:
    near.there.open_issue(near.repo, "First")
    first = await near.use(name, **args)
    if name == "open_pull_request":
        near.repo.pulls[first["number"]]["state"] = "closed"
    assert await near.use(name, "other", **args) != first
    assert count(near.repo) == 2


@pytest.mark.parametrize("trouble", ["after", "cut"])
@writes
async def test_an_answer_that_got_lost_is_found(desk: Desk, name: str, args, count, trouble: str) -> None:  # R7
    desk.there.open_issue(desk.repo, "First")
    desk.there.trouble = trouble
    made = await desk.use(name, **args)
    assert made["url"]
    assert count(desk.repo) == 1
    assert await desk.use(name, **args) == made


@writes
async def test_what_was_not_made_is_made_by_the_next_try(near: Desk, name: str, args, count) -> None:
    near.there.open_issue(near.repo, "First")
    near.there.trouble = "before"
    with pytest.raises(ToolFailed, match="not known: look on GitHub"):
        await near.use(name, **args)
    assert count(near.repo) == 0
    await near.use(name, **args)
    assert count(near.repo) == 1


async def test_a_crash_between_making_and_recording_makes_nothing_twice(desk: Desk) -> None:
    """The program ends while it waits for the answer; the next one starts the same call again."""
    desk.there.trouble = "hold"
    running = asyncio.create_task(desk.use("create_issue", title="Fix"))
    await desk.there.held.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    desk.there.go_on.set()
    made = await desk.use("create_issue", title="Fix")
    assert (made["number"], len(desk.repo.issues)) == (1, 1)


async def test_a_program_that_is_killed_makes_nothing_twice(place: Place, clock: Clock) -> None:  # R7
    """kill -9 behind the effect and before its answer; the effects are counted by GitHub."""
    async with opened(place, clock):
        there = GitHub(clock)
        repo = there.add_repo(REPO)
        async with serving(there) as url:
            command = [sys.executable, "-m", "tests.tools.github_program", place.url, url, there.token]
            there.trouble = "hold"
            first = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            await there.held.wait()
            first.kill()
            await first.communicate()
            there.go_on.set()
            clock.forward(10 * 60_000)
            second = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            told, _ = await second.communicate()
    assert (second.returncode, len(repo.issues)) == (0, 1)
    assert b"https://github.com/octo/hello/issues/1" in told


async def test_it_is_found_behind_hundreds_of_newer_ones(desk: Desk, clock: Clock) -> None:
    made = await desk.use("create_issue", title="Fix")
    await desk.use("comment", "k2", number=1, body="On it.")
    clock.forward(48 * HOUR)
    for number in range(350):
        desk.there.open_issue(desk.repo, f"Issue {number}")
        desk.there.comment(desk.repo, 1, f"comment {number}")
    assert (await desk.use("create_issue", title="Fix"))["number"] == made["number"]
    await desk.use("comment", "k2", number=1, body="On it.")
    assert (len(desk.repo.issues), len(desk.repo.comments[1])) == (351, 351)


async def test_where_too_much_is_new_nothing_is_made(near: Desk) -> None:
    for number in range(1_000):
        near.there.open_issue(near.repo, f"Issue {number}")
    with pytest.raises(ToolFailed, match="too many to look through"):
        await near.use("create_issue", title="Fix")
    assert len(near.repo.issues) == 1_000


async def test_old_entries_are_not_looked_through(near: Desk, clock: Clock) -> None:
    for number in range(1_500):
        near.there.open_issue(near.repo, f"Issue {number}")
    clock.forward(2 * HOUR)
    await near.use("create_issue", title="Fix")
    assert len(near.there.requests) == 2  # one look, one write


@pytest.mark.parametrize("minutes", [-50, 50])
async def test_clocks_may_differ(near: Desk, clock: Clock, minutes: int) -> None:
    near.there.clock = lambda: clock() + minutes * 60_000
    await near.use("create_issue", title="Fix")
    await near.use("create_issue", title="Fix")
    assert len(near.repo.issues) == 1


async def test_people_may_write_below_the_mark(near: Desk) -> None:
    await near.use("create_issue", title="Fix")
    near.repo.issues[1]["body"] += "\n\nEdited by a person."
    await near.use("create_issue", title="Fix")
    assert len(near.repo.issues) == 1


async def test_a_write_without_a_key_is_refused(near: Desk) -> None:
    with pytest.raises(ToolFailed, match="no key"):
        await near.use("create_issue", "", title="Fix")
    assert near.there.requests == []


async def test_who_is_asked_already_is_not_asked_again(near: Desk) -> None:
    await near.use("open_pull_request", title="Fix", head="topic", base="main")
    for _ in range(2):
        asked = await near.use("request_review", "k2", number=1, reviewers=["ada"])
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
async def test_what_github_refuses_is_said_in_plain_words(near: Desk, name: str, args, words: str) -> None:
    await near.use("open_pull_request", "pull", title="Fix", head="topic", base="main")
    with pytest.raises(ToolFailed, match=words) as caught:
        await near.use(name, **args)
    assert near.there.token not in str(caught.value)


async def test_a_second_pull_request_from_the_same_branch_says_so(near: Desk) -> None:
    await near.use("open_pull_request", title="Fix", head="topic", base="main")
    with pytest.raises(ToolFailed, match="already exists for octo:topic"):
        await near.use("open_pull_request", "other", title="Fix", head="topic", base="main")
    assert len(near.repo.pulls) == 1


@pytest.mark.parametrize(
    "repo",
    ["octo", "octo/", "/hello", "octo/..", "octo/.", "../user", "octo/a/b", "octo/a?x", "octo/%2e", "a b/c", "o/a\n"],
)
async def test_a_repository_is_never_another_path(near: Desk, repo: str) -> None:
    with pytest.raises(ToolFailed, match="Write owner/name"):
        await near.use("list_issues", repo=repo)
    assert near.there.requests == []


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "1800000600"}, "after 2027-01-15T08:10:00"),
        ({"retry_after": "60"}, "in 60 seconds"),
        ({"x_ratelimit_reset": "soon"}, "Try again later"),
    ],
)
async def test_a_limit_says_when_it_ends(near: Desk, headers: dict[str, str], words: str) -> None:
    near.there.limited = headers
    with pytest.raises(ToolFailed, match=f"limit of requests is reached.*{words}"):
        await near.use("list_issues")


async def test_a_wrong_token_says_whose_task_it_is(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path / "interlock.db", clock) as parts, desk_at(parts, clock, token="canary") as desk:
        with pytest.raises(ToolFailed, match=r"tools\.github\.token") as caught:
            await desk.use("list_issues")
        assert "canary" not in str(caught.value) + repr(desk.tools)


async def test_github_that_is_away_is_told(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path / "interlock.db", clock) as parts:
        settings = {"token": "token", "url": "http://127.0.0.1:9"}
        tools = pack.writes(ToolContext("default", parts.store.records("default"), settings))
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
async def test_any_other_answer_is_told(answer: httpx2.Response, words: str) -> None:
    """Given by a transport, as in a demo: it is used again and never closed."""
    seen: list[httpx2.Request] = []

    def answered(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return answer

    tool = pack.reads(ToolContext("default", None, {"token": "canary"}, httpx2.MockTransport(answered)))[0]
    for _ in range(2):
        with pytest.raises(ToolFailed, match=words) as caught:
            await tool.run(ToolInvocation({"repo": REPO}, ""))
    assert "canary" not in str(caught.value)
    assert [request.url.host for request in seen] == ["api.github.com"] * 2  # the token goes nowhere else


async def test_previews_show_what_is_touched(near: Desk) -> None:
    near.there.open_issue(near.repo, "Login fails")
    await near.use("open_pull_request", title="Fix login", head="topic", base="main")
    await near.use("request_review", "k2", number=2, reviewers=["ada"])
    before = len(near.there.requests)
    assert await near.preview("comment", number=1, body="x") == "Issue #1 'Login fails', open, by interlock-bot."
    assert (await near.preview("comment", number=2, body="x")).startswith("Pull request #2 'Fix login'")
    asked = "Pull request #2 'Fix login', open, by interlock-bot. Asked so far: ada."
    assert await near.preview("request_review", number=2, reviewers=["bob"]) == asked
    assert {method for method, _ in near.there.requests[before:]} == {"GET"}


def test_sentences_say_what_happens() -> None:  # R2
    specs = {tool.name: tool.spec for tool in pack.writes(ToolContext("default", None, {"token": "t"}))}
    args = {"repo": REPO, "number": 7, "title": "Fix login bug", "head": "topic", "base": "main"}
    sentences = {name: spec.sentence({**args, "reviewers": ["ada", "bob"]}) for name, spec in specs.items()}
    assert sentences == {
        "github_create_issue": "Create issue 'Fix login bug' in octo/hello, unassigned",
        "github_open_pull_request": "Open pull request 'Fix login bug' in octo/hello, from topic into main",
        "github_request_review": "Ask ada, bob to review octo/hello#7",
        "github_comment": "Comment on octo/hello#7",
    }
    assert specs["github_create_issue"].sentence({**args, "assignees": ["ada"]}).endswith(", assigned to ada")
    assert all(spec.idempotent for spec in specs.values())


def test_without_a_token_there_are_no_tools() -> None:
    kit = ToolContext("default", None)
    assert (pack.reads(kit), pack.writes(kit)) == ((), ())


@pytest.mark.parametrize(
    "settings",
    [
        *({"token": "a b"}, {"token": 7}, {"token": "t\n"}),
        *({"token": "t", "url": "http://ghe.example"}, {"token": "t", "url": 1}),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(Misconfigured, match=r"tools\.github"):
        pack.reads(ToolContext("default", None, settings))


async def test_the_stand_in_refuses_what_github_does_not_know(clock: Clock) -> None:
    """Its own proof: a request that does not fit the description is a fault, and gets no answer."""
    there = GitHub(clock)
    there.add_repo(REPO)
    headers = {"authorization": f"Bearer {there.token}", "accept": "application/vnd.github+json"}
    headers["x-github-api-version"] = "2026-03-10"
    async with serving(there) as url, httpx2.AsyncClient(base_url=url, headers=headers) as client:
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
        assert len(there.faults) == 7
        versions = [await client.get(f"/repos/{REPO}/issues", headers={"x-github-api-version": "2020-01-01"})]
        assert [answer.status_code for answer in versions] == [400]
        assert (await client.delete(f"/repos/{REPO}")).status_code == 404


@pytest.mark.skipif(not (FOLDER / "node_modules" / "@octokit" / "rest").is_dir(), reason=MISSING)
async def test_githubs_own_client_works_with_the_stand_in(clock: Clock) -> None:
    there = GitHub(clock)
    there.add_repo(REPO)
    async with serving(there) as url:
        command = [str(find_node()), str(OCTOKIT), str(FOLDER), url, there.token]
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
    assert there.faults == []

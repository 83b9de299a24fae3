"""A fake of GitHub, over real HTTP on loopback. Its own OpenAPI description decides what fits, both ways.

Each rule says where it is from: (documented) by GitHub's REST documentation or its OpenAPI description; (seen) in
answers of GitHub that people quote; (assumed) ours, where neither says anything.
"""

from __future__ import annotations

import asyncio
import copy
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from tests.fakes.asgi_server import serve_asgi
from tests.fakes.openapi import Document, Json, Operation

VENDOR = Path(__file__).resolve().parents[1] / "vendor" / "github"
VERSIONS = ("2022-11-28", "2026-03-10")  # (documented)
DOCS = "https://docs.github.com/rest"
ME = "interlock-bot"


@dataclass
class Repo:
    """`issues` are issues and pull requests in one sequence of numbers, as on GitHub; `pulls` are the latter alone."""

    name: str
    branches: set[str] = field(default_factory=lambda: {"main", "topic"})
    collaborators: set[str] = field(default_factory=lambda: {"ada", "bob"})
    labels: list[str] = field(default_factory=lambda: ["bug", "Good First Issue"])
    issues: dict[int, Json] = field(default_factory=dict)
    pulls: dict[int, Json] = field(default_factory=dict)
    comments: dict[int, list[Json]] = field(default_factory=dict)


class Refused(Exception):
    def __init__(self, status: int, message: str, errors: list[Json] | None = None, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}
        self.body: Json = {"message": message, "documentation_url": DOCS, "status": str(status)}
        self.body |= {"errors": errors} if errors is not None else {}


class GitHub:
    """`faults` are its own mistakes: answers that GitHub would never give. `trouble` is what happens to the next
    write: `before` and `after` it was carried out, an HTTP 502; `cut`, the connection ends instead of an answer;
    `hold`, it is carried out (`held`), and there is no answer until `go_on`.
    """

    def __init__(self, clock: Callable[[], int], token: str = "token-of-the-test") -> None:
        self.token, self.repos, self.trouble = token, {}, ""
        self.requests: list[tuple[str, str]] = []
        self.versions: set[str] = set()  # of the interface, that requests asked for
        self.faults: list[str] = []
        self.limited: dict[str, str] = {}  # headers of the answer that says so
        self.held, self.go_on = asyncio.Event(), asyncio.Event()
        self.clock, self._ids = clock, 0
        self._document, self._shapes = _description()
        self._does: dict[str, Callable[..., tuple[int, object]]] = {
            "issues/list-for-repo": self._list_issues,
            "issues/create": self._create_issue,
            "issues/get": self._get_issue,
            "issues/list-comments": self._list_comments,
            "issues/create-comment": self._create_comment,
            "issues/list-labels-for-repo": self._list_labels,
            "issues/add-labels": self._add_labels,
            "issues/remove-label": self._remove_label,
            "issues/check-user-can-be-assigned": self._check_assignee,
            "pulls/list": self._list_pulls,
            "pulls/create": self._create_pull,
            "pulls/get": self._get_pull,
            "pulls/request-reviewers": self._request_reviewers,
            "search/issues-and-pull-requests": self._search,
        }

    def add_repo(self, name: str) -> Repo:
        self.repos[name.lower()] = Repo(name)  # names are not case sensitive (documented)
        return self.repos[name.lower()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        self.requests.append((request.method, request.url.path))
        trouble, self.trouble = (self.trouble, "") if request.method in ("POST", "DELETE") else ("", self.trouble)
        answer = Response("Bad gateway", 502) if trouble == "before" else await self._respond(request)
        if trouble == "hold":
            self.held.set()
            await self.go_on.wait()
        if trouble == "after":
            answer = Response("Bad gateway", 502)
        if trouble == "cut":
            await send({"type": "http.response.start", "status": 201, "headers": [(b"content-length", b"9999")]})
            await send({"type": "http.response.body", "body": b"{", "more_body": True})
            raise ConnectionAbortedError
        await answer(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        operation = self._document.find(request.method, request.url.path)
        try:
            self._authenticate(request)
            if operation is None or operation.name not in self._does:
                raise Refused(404, "Not Found")
            status, body = self._run_operation(operation, request, await request.body())
            headers = _links(request, body)
        except Refused as refused:
            status, body, headers = refused.status, refused.body, refused.headers
        except Exception as error:
            self.faults.append(repr(error))
            raise
        if operation is not None and status not in (401, 403, 429, 400):  # any operation may give these (documented)
            self.faults += operation.response_problems(status, body)
        return Response(status_code=204) if status == 204 else JSONResponse(body, status, headers)

    def _authenticate(self, request: Request) -> None:
        headers = request.headers
        if not headers.get("user-agent"):
            raise Refused(403, "Request forbidden by administrative rules.")  # (documented)
        version = headers.get("x-github-api-version", VERSIONS[0])  # (documented)
        self.versions.add(version)
        if version not in VERSIONS:
            raise Refused(400, "That version of the API is not supported.")  # (documented)
        if headers.get("authorization") not in (f"Bearer {self.token}", f"token {self.token}"):  # (documented)
            raise Refused(401, "Bad credentials")  # (seen)
        if self.limited:
            raise Refused(403, "API rate limit exceeded for user ID 1.", **self.limited)  # (documented)

    def _run_operation(self, operation: Operation, request: Request, data: bytes) -> tuple[int, object]:
        body = json.loads(data) if data else None
        query = dict(request.query_params)
        problems = operation.problems(query, body)
        if problems:  # (assumed: GitHub ignores much of this)
            self.faults += [f"{operation.name}: {problem}" for problem in problems]
            raise Refused(422, "Validation Failed", [{"code": "custom", "message": problem} for problem in problems])
        values = operation.path_values(request.url.path)
        if "repo" not in values:
            return self._does[operation.name](query)
        repo = self.repos.get(f"{values['owner']}/{values['repo']}".lower())
        if repo is None:
            raise Refused(404, "Not Found")  # also for what the token may not see (documented)
        numbers = [int(values[name]) for name in ("issue_number", "pull_number") if values.get(name, "").isdigit()]
        names = [values[name] for name in ("name", "assignee") if name in values]
        return self._does[operation.name](repo, *numbers, *names, body if body is not None else query)

    def _list_issues(self, repo: Repo, query: Json) -> tuple[int, object]:
        """Pull requests are among them; the newest first, unless told otherwise; open ones (documented)."""
        state, since = query.get("state", "open"), query.get("since", "")
        found = [one for one in repo.issues.values() if state in ("all", one["state"]) and one["updated_at"] >= since]
        found.sort(key=lambda one: one["number"], reverse=query.get("direction", "desc") == "desc")
        return 200, _page(found, query)

    def _create_issue(self, repo: Repo, body: Json) -> tuple[int, object]:
        if not str(body["title"]).strip():
            raise Refused(422, "Validation Failed", [{"resource": "Issue", "field": "title", "code": "missing_field"}])
        more = {name: body[name] for name in ("labels", "assignees") if name in body}
        return 201, self.open_issue(repo, str(body["title"]), body.get("body"), **more)

    def open_issue(self, repo: Repo, title: str, body: str | None = "", **more: Any) -> Json:
        """Assignees without access are silently dropped (documented); labels are made where there are none (seen)."""
        issue = self._new_issue(repo, title, body)
        allowed = [name for name in more.get("assignees", ()) if name in repo.collaborators]
        issue["assignees"] = [self._user(name) for name in allowed]
        issue["assignee"] = issue["assignees"][0] if allowed else None
        issue["labels"] = [self._label(repo, name) for name in more.get("labels", ())]
        del issue["pull_request"]
        return issue

    def _get_issue(self, repo: Repo, number: int, _: Json) -> tuple[int, object]:
        if number not in repo.issues:
            raise Refused(404, "Not Found")
        return 200, repo.issues[number]

    def _list_comments(self, repo: Repo, number: int, query: Json) -> tuple[int, object]:
        """By ascending id (documented)."""
        self._get_issue(repo, number, {})
        return 200, _page([one for one in repo.comments[number] if one["updated_at"] >= query.get("since", "")], query)

    def _create_comment(self, repo: Repo, number: int, body: Json) -> tuple[int, object]:
        self._get_issue(repo, number, {})
        if not body["body"].strip():
            raise Refused(
                422, "Validation Failed", [{"resource": "IssueComment", "field": "body", "code": "unprocessable"}]
            )
        return 201, self.comment(repo, number, body["body"])

    def comment(self, repo: Repo, number: int, body: str, login: str = ME) -> Json:
        made = copy.deepcopy(self._shapes["issues/list-comments"][0])
        made |= {"id": self._id(), "body": body, "user": self._user(login), **self._times()}
        made["html_url"] = f"https://github.com/{repo.name}/issues/{number}#issuecomment-{made['id']}"
        repo.comments[number].append(made)
        repo.issues[number] |= {"comments": len(repo.comments[number]), "updated_at": made["updated_at"]}
        return made

    def _list_labels(self, repo: Repo, query: Json) -> tuple[int, object]:
        return 200, _page([self._label(repo, name) for name in repo.labels], query)

    def _add_labels(self, repo: Repo, number: int, body: Json) -> tuple[int, object]:
        """What is there already stays once (documented)."""
        issue: Any = self._get_issue(repo, number, {})[1]
        held = [one["name"] for one in issue["labels"]]
        issue["labels"] += [self._label(repo, name) for name in body["labels"] if name not in held]
        return 200, issue["labels"]

    def _remove_label(self, repo: Repo, number: int, name: str, _: Json) -> tuple[int, object]:
        issue: Any = self._get_issue(repo, number, {})[1]
        left = [one for one in issue["labels"] if one["name"].lower() != name.lower()]
        if len(left) == len(issue["labels"]):
            raise Refused(404, "Label does not exist")  # (seen)
        issue["labels"] = left
        return 200, left

    def _check_assignee(self, repo: Repo, login: str, _: Json) -> tuple[int, object]:
        if login not in repo.collaborators:
            raise Refused(404, "Not Found")  # (documented)
        return 204, None

    def _label(self, repo: Repo, name: str) -> Json:
        """Made where there is none of this name, in any case (seen)."""
        known = next((one for one in repo.labels if one.lower() == name.lower()), None)
        if known is None:
            repo.labels.append(name)
        return {**self._shapes["issues/add-labels"][0], "name": known or name}

    def _list_pulls(self, repo: Repo, query: Json) -> tuple[int, object]:
        state, head, base = query.get("state", "open"), query.get("head"), query.get("base")
        found = [
            _simple(one)
            for one in reversed(repo.pulls.values())
            if state in ("all", one["state"])
            and head in (None, one["head"]["label"])
            and base in (None, one["base"]["ref"])
        ]
        return 200, _page(found, query)

    def _create_pull(self, repo: Repo, body: Json) -> tuple[int, object]:
        head = body["head"] if ":" in body["head"] else f"{repo.name.partition('/')[0]}:{body['head']}"
        for name, branch in (("base", body["base"]), ("head", head.partition(":")[2])):
            if branch not in repo.branches:  # (seen)
                raise Refused(422, "Validation Failed", [{"resource": "PullRequest", "field": name, "code": "invalid"}])
        if any(
            (one["head"]["label"], one["base"]["ref"], one["state"]) == (head, body["base"], "open")
            for one in repo.pulls.values()
        ):
            message = f"A pull request already exists for {head}."  # (seen)
            raise Refused(422, "Validation Failed", [{"resource": "PullRequest", "code": "custom", "message": message}])
        return 201, self._new_pull(repo, head, body)

    def _new_pull(self, repo: Repo, head: str, body: Json) -> Json:
        issue = self._new_issue(repo, body["title"], body.get("body"))
        pull = copy.deepcopy(self._shapes["pulls/get"])
        pull |= {name: issue[name] for name in ("id", "number", "title", "body", "user", "created_at", "updated_at")}
        pull |= {
            "state": "open",
            "requested_reviewers": [],
            "requested_teams": [],
            "closed_at": None,
            "merged_at": None,
        }
        pull["head"] |= {"label": head, "ref": head.partition(":")[2]}
        pull["base"] |= {"label": f"{repo.name.partition('/')[0]}:{body['base']}", "ref": body["base"]}
        pull["html_url"] = f"https://github.com/{repo.name}/pull/{pull['number']}"
        repo.pulls[pull["number"]] = pull
        return pull

    def _get_pull(self, repo: Repo, number: int, _: Json) -> tuple[int, object]:
        if number not in repo.pulls:
            raise Refused(404, "Not Found")
        return 200, repo.pulls[number]

    def _request_reviewers(self, repo: Repo, number: int, body: Json) -> tuple[int, object]:
        """Who was asked already stays asked, once (assumed); only collaborators (documented), not the author (seen)."""
        pull = repo.pulls.get(number)
        if pull is None:
            raise Refused(422, "Validation Failed")  # (assumed: the description names no 404 here)
        for name in body.get("reviewers", ()):
            if name not in repo.collaborators:
                raise Refused(422, "Reviews may only be requested from collaborators.")  # (seen, and it goes on)
            if name not in [one["login"] for one in pull["requested_reviewers"]]:
                pull["requested_reviewers"].append(self._user(name))
        return 201, _simple(pull)

    def _search(self, query: Json) -> tuple[int, object]:
        """Words in title or body, and a few qualifiers (assumed: GitHub ranks, stems and knows more)."""
        words = query["q"].split()
        if not {"is:issue", "is:pull-request", "is:pr", "type:issue", "type:pr"} & set(words):
            raise Refused(422, "Query must include 'is:issue' or 'is:pull-request'")  # (seen)
        repos = [word[5:].lower() for word in words if word.startswith("repo:")]
        plain = [word.lower() for word in words if ":" not in word]
        pulls = not {"is:issue", "type:issue"} & set(words)
        found = [
            one
            for name, repo in self.repos.items()
            if name in repos or not repos
            for one in repo.issues.values()
            if ("pull_request" in one) == pulls
            and all(word in f"{one['title']} {one['body']}".lower() for word in plain)
        ]
        shape = self._shapes["search/issues-and-pull-requests"]
        items = [_like(shape["items"][0], {**one, "score": 1.0}) for one in found]
        return 200, {**shape, "total_count": len(found), "items": _page(items, query)}

    def _new_issue(self, repo: Repo, title: str, body: str | None) -> Json:
        number = len(repo.issues) + 1
        issue: Json = copy.deepcopy(self._shapes["issues/get"])
        issue |= {
            "id": self._id(),
            "number": number,
            "title": title,
            "body": body,
            "user": self._user(ME),
            **self._times(),
        }
        issue |= {
            "state": "open",
            "state_reason": None,
            "closed_by": None,
            "comments": 0,
            "labels": [],
            "milestone": None,
        }
        issue |= {"assignees": [], "assignee": None, "locked": False, "active_lock_reason": None}
        issue["html_url"] = f"https://github.com/{repo.name}/issues/{number}"
        issue["repository_url"] = f"https://api.github.com/repos/{repo.name}"
        repo.issues[number] = issue
        repo.comments[number] = []
        return issue

    def _user(self, login: str) -> Json:
        return {**self._shapes["issues/get"]["user"], "login": login}

    def _times(self) -> dict[str, str]:
        """To the second (documented)."""
        now = f"{datetime.fromtimestamp(self.clock() // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
        return {"created_at": now, "updated_at": now}

    def _id(self) -> int:
        self._ids += 1
        return self._ids


@cache
def _description() -> tuple[Document, Json]:
    """GitHub's own, and answers as it gives them by operation; never changed, so that all tests share it."""
    shapes = json.loads((VENDOR / "response-fixtures.json").read_text())
    return Document(VENDOR / "openapi.trimmed.json"), {name: one["body"] for name, one in shapes.items()}


def _page(found: list[Json], query: Json) -> list[Json]:
    """30 a page, at most 100 (documented)."""
    size, page = min(int(query.get("per_page", 30)), 100), int(query.get("page", 1))
    return found[(page - 1) * size : page * size]


def _links(request: Request, body: object) -> dict[str, str]:
    """Where the next page is (documented); there may be none behind a full one (assumed: GitHub knows)."""
    query = request.query_params
    full = isinstance(body, list) and len(body) == min(int(query.get("per_page", 30)), 100)
    page = int(query.get("page", 1)) + 1
    return {"link": f'<{request.url.include_query_params(page=page)}>; rel="next"'} if full else {}


def _simple(pull: Json) -> Json:
    """Lists know less of a pull request (documented)."""
    more = {"merged", "mergeable", "rebaseable", "mergeable_state", "merged_by", "comments", "review_comments"}
    more |= {"maintainer_can_modify", "commits", "additions", "deletions", "changed_files"}
    return {name: value for name, value in pull.items() if name not in more}


def _like(shape: Json, values: Json) -> Json:
    kept = {name: values.get(name, value) for name, value in shape.items()}
    return {name: value for name, value in kept.items() if name != "pull_request" or "pull_request" in values}


@asynccontextmanager
async def run_github(standin: GitHub) -> AsyncIterator[str]:
    """Its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with serve_asgi(standin, listening):
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"

"""GitHub: issues, comments, pull requests and reviews. Settings: `token`, and `url` for a self-hosted server.

GitHub has no idempotency key. So what is written carries a hidden mark derived from the call's key, which is searched
for before each attempt, in all that changed since shortly before the first: a retry creates no duplicate.

It is long because a pack is one module: its tools and the requests that they make.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, cast

import httpx2

from interlock.chat.tool import Tool, ToolContext, ToolInvocation, object_schema
from interlock.core.call import Args, ToolSpec
from interlock.core.errors import CallWouldFail, EffectUnknown, Misconfigured, ToolFailed
from interlock.core.ports import ToolItemStore
from interlock.runtime.durations import rfc3339

__all__ = ["read_tools", "write_tools"]


DEFAULT_LIMIT = 30
MAX_LIMIT = 100
MAX_BODY = 60_000  # characters; GitHub takes 65,536
MAX_SHOWN = 10_000
SHOWN_COMMENTS = 30
CLOCK_SKEW = 3_600_000  # milliseconds that our clock and GitHub's may differ
UNCLEAR = "Whether it was carried out is not known: look on GitHub before you try again."

_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_MARK = re.compile(r"\s*<!-- interlock:[0-9a-f]{32} -->\s*\Z")
_KIND = re.compile(r"(^|\s)(is|type):(issue|pr|pull-request)(\s|$)")

TEXT = {"type": "string", "minLength": 1, "maxLength": 1_000}
REPO = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+$", "description": "owner/name"}
NUMBER = {"type": "integer", "minimum": 1}
BODY = {"type": "string", "maxLength": MAX_BODY, "description": "Markdown."}
NAMES = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 100}, "maxItems": 20}
SOME_NAMES = {**NAMES, "minItems": 1}
HOW_MANY = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
STATE = {"type": "string", "enum": ["open", "closed", "all"], "default": "open"}


def read_tools(context: ToolContext) -> Sequence[Tool]:
    github = make_github_access(context.settings, context.transport)
    if github is None:
        return ()
    return (
        _read_tool(
            "github_list_issues",
            "Lists the issues of a GitHub repository, the newest first.",
            object_schema("repo", repo=REPO, state=STATE, limit=HOW_MANY),
            "List issues of {repo}",
            lambda invocation: _list_issues(github, invocation.args),
        ),
        _read_tool(
            "github_search_issues",
            "Searches issues and pull requests on GitHub, in GitHub's own search language, such as "
            "`repo:owner/name is:open login`.",
            object_schema("query", query={**TEXT, "maxLength": 256}, limit=HOW_MANY),
            "Search GitHub for {query}",
            lambda invocation: _search(github, invocation.args),
        ),
        _read_tool(
            "github_read_issue",
            "Reads an issue or a pull request of a GitHub repository, with its newest comments.",
            object_schema("repo number", repo=REPO, number=NUMBER),
            "Read {repo}#{number}",
            lambda invocation: _read_issue(github, invocation.args),
        ),
    )


def write_tools(context: ToolContext) -> Sequence[Tool]:
    github = make_github_access(context.settings, context.transport)
    if github is None:
        return ()
    writer = _GitHubWriter(github, context.records)
    return (
        Tool(
            ToolSpec(
                "github_create_issue",
                "write",
                schema=object_schema("repo title", repo=REPO, title=TEXT, body=BODY, labels=NAMES, assignees=NAMES),
                describe=_describe_new_issue,
                idempotent=True,
            ),
            "Creates an issue in a GitHub repository.",
            writer.create_issue,
        ),
        Tool(
            ToolSpec(
                "github_open_pull_request",
                "write",
                schema=object_schema("repo title head base", repo=REPO, title=TEXT, head=TEXT, base=TEXT, body=BODY),
                describe="Open pull request '{title}' in {repo}, from {head} into {base}",
                idempotent=True,
            ),
            "Opens a pull request in a GitHub repository, from the branch `head` into the branch `base`.",
            writer.open_pull_request,
        ),
        Tool(
            ToolSpec(
                "github_request_review",
                "write",
                schema=object_schema("repo number reviewers", repo=REPO, number=NUMBER, reviewers=SOME_NAMES),
                describe=lambda args: f"Ask {_join_names(args['reviewers'])} to review {args['repo']}#{args['number']}",
                preview=lambda args: _preview_pull(github, args),
                idempotent=True,  # a reviewer who was requested is not requested again
            ),
            "Asks people, by their login, to review a pull request.",
            writer.request_review,
        ),
        Tool(
            ToolSpec(
                "github_comment",
                "write",
                schema=object_schema("repo number body", repo=REPO, number=NUMBER, body={**BODY, "minLength": 1}),
                describe="Comment on {repo}#{number}",
                preview=lambda args: _preview_issue(github, args),
                idempotent=True,
            ),
            "Comments on an issue or a pull request of a GitHub repository.",
            writer.comment,
        ),
    )


def _read_tool(
    name: str, about: str, takes: Json, sentence: str, run: Callable[[ToolInvocation], Awaitable[object]]
) -> Tool:
    return Tool(ToolSpec(name, "read", schema=takes, describe=sentence), about, run)


def _describe_new_issue(args: Args) -> str:
    whose = f"assigned to {_join_names(args['assignees'])}" if args.get("assignees") else "unassigned"
    return f"Create issue '{args['title']}' in {args['repo']}, {whose}"


def _join_names(names: object) -> str:
    return ", ".join(cast(Sequence[str], names))


async def _list_issues(github: GitHubAccess, args: Args) -> object:
    """List issues, without the pull requests that GitHub's list includes."""
    limit = _limit(args)
    path = f"/repos/{_repo(args)}/issues"
    found: list[Json] = []
    async with github.open_client() as client:
        async for item in client.pages(path, state=str(args.get("state", "open")), sort="created", direction="desc"):
            if "pull_request" not in item:
                found.append(_issue_json(item))
            if len(found) == limit:
                break
    return {"repo": args["repo"], "issues": found}


async def _search(github: GitHubAccess, args: Args) -> object:
    query = str(args["query"])
    search_query = query if _KIND.search(query) else f"{query} is:issue"  # GitHub requires one or the other
    async with github.open_client() as client:
        found = await client.get("/search/issues", q=search_query, per_page=_limit(args))
    issues = [{"repo": _repo_name(item), **_issue_json(item)} for item in found["items"]]
    return {"query": search_query, "total": found["total_count"], "issues": issues}


async def _read_issue(github: GitHubAccess, args: Args) -> object:
    path = f"/repos/{_repo(args)}/issues/{_number(args)}"
    async with github.open_client() as client:
        issue = await client.get(path)
        comments = await _newest_comments(client, path, int(issue["comments"]))
    told = [{"author": _login(one), "at": one["created_at"], "body": _body_text(one)} for one in comments]
    return {
        "repo": args["repo"],
        **_issue_json(issue),
        "body": _body_text(issue),
        "comments": told,
        "of": issue["comments"],
    }


async def _newest_comments(client: GitHubClient, path: str, count: int) -> list[Json]:
    """Return the newest comments: GitHub sends the oldest first, so they are on the last two pages."""
    last = -(-count // SHOWN_COMMENTS)
    found: list[Json] = []
    for page in range(max(1, last - 1), last + 1):
        found += await client.get(f"{path}/comments", per_page=SHOWN_COMMENTS, page=page)
    return found[-SHOWN_COMMENTS:]


@dataclass(frozen=True)
class _GitHubWriter:
    """Writes, each once for its idempotency key."""

    github: GitHubAccess
    records: ToolItemStore

    async def create_issue(self, invocation: ToolInvocation) -> object:
        args, path = invocation.args, f"/repos/{_repo(invocation.args)}/issues"
        body = {"title": args["title"], "body": _with_mark(args.get("body", ""), invocation.key)}
        body |= {name: args[name] for name in ("labels", "assignees") if args.get(name)}
        since = await self._since(invocation.key)
        async with self.github.open_client() as client:
            made = await _create_once(
                lambda: client.pages(path, state="all", sort="created", direction="desc", since=since),
                lambda: client.post(path, body),
                invocation.key,
            )
        return {"repo": args["repo"], **_issue_json(made)}

    async def comment(self, invocation: ToolInvocation) -> object:
        path = f"/repos/{_repo(invocation.args)}/issues/{_number(invocation.args)}/comments"
        since = await self._since(invocation.key)
        body = {"body": _with_mark(invocation.args["body"], invocation.key)}
        async with self.github.open_client() as client:
            made = await _create_once(
                lambda: client.pages(path, since=since), lambda: client.post(path, body), invocation.key
            )
        return {"repo": invocation.args["repo"], "number": invocation.args["number"], "url": made["html_url"]}

    async def open_pull_request(self, invocation: ToolInvocation) -> object:
        """Open a pull request; all of those between the two branches are searched, since they are few."""
        args, repo = invocation.args, _repo(invocation.args)
        path, head, base = f"/repos/{repo}/pulls", str(args["head"]), str(args["base"])
        whose = head if ":" in head else f"{repo.partition('/')[0]}:{head}"
        body = {
            "title": args["title"],
            "head": head,
            "base": base,
            "body": _with_mark(args.get("body", ""), invocation.key),
        }
        async with self.github.open_client() as client:
            made = await _create_once(
                lambda: client.pages(path, state="all", head=whose, base=base, sort="created", direction="desc"),
                lambda: client.post(path, body),
                invocation.key,
            )
        return {"repo": args["repo"], **_pull_json(made)}

    async def request_review(self, invocation: ToolInvocation) -> object:
        path = f"/repos/{_repo(invocation.args)}/pulls/{_number(invocation.args)}/requested_reviewers"
        async with self.github.open_client() as client:
            made = await client.post(path, {"reviewers": invocation.args["reviewers"]})
        return {"repo": invocation.args["repo"], **_pull_json(made), "reviewers": _requested_reviewers(made)}

    async def _since(self, key: str) -> str:
        """Return a time shortly before the first attempt: everything that this call made is newer."""
        first = await self.records.change(key, lambda transaction: transaction.now)
        return rfc3339(cast(int, first) - CLOCK_SKEW)[:19] + "Z"


async def _create_once(look: Callable[[], AsyncIterator[Json]], make: Callable[[], Awaitable[Any]], key: str) -> Json:
    found = await _find_marked(look(), key)
    if found is not None:
        return found
    try:
        return cast(Json, await make())
    except GitHubResponseLost as lost:
        found = await _find_marked(look(), key)  # it may have been created, and only the response was lost
        if found is not None:
            return found
        raise EffectUnknown(f"{lost} {UNCLEAR}") from None


async def _find_marked(items: AsyncIterator[Json], key: str) -> Json | None:
    mark = _idempotency_mark(key)
    async for item in items:
        if mark in str(item.get("body") or ""):  # anywhere: people may have written below it since
            return item
    return None


def _with_mark(body: object, key: str) -> str:
    return f"{body}\n\n{_idempotency_mark(key)}" if body else _idempotency_mark(key)


def _idempotency_mark(key: str) -> str:
    """Return the hidden mark. It cannot be forged in advance: the key is made when the call is proposed."""
    if not key:
        raise ToolFailed("This call has no key, so nobody could tell a second try. Nothing was sent.")
    return f"<!-- interlock:{sha256(f'github {key}'.encode()).hexdigest()[:32]} -->"


async def _preview_issue(github: GitHubAccess, args: Args) -> str:
    async with github.open_client() as client:
        issue = await client.get(f"/repos/{_repo(args)}/issues/{_number(args)}")
    kind = "Pull request" if "pull_request" in issue else "Issue"
    return f"{kind} #{issue['number']} '{issue['title']}', {issue['state']}, by {_login(issue)}."


async def _preview_pull(github: GitHubAccess, args: Args) -> str:
    async with github.open_client() as client:
        pull = await client.get(f"/repos/{_repo(args)}/pulls/{_number(args)}")
    asked = ", ".join(_requested_reviewers(pull)) or "nobody"
    return (
        f"Pull request #{pull['number']} '{pull['title']}', {pull['state']}, by {_login(pull)}. Asked so far: {asked}."
    )


def _issue_json(item: Json) -> Json:
    return {
        "number": item["number"],
        "title": item["title"],
        "state": item["state"],
        "author": _login(item),
        "assignees": [one["login"] for one in item.get("assignees") or ()],
        "labels": [one if isinstance(one, str) else one.get("name") for one in item.get("labels") or ()],
        "comments": item.get("comments", 0),
        "updated_at": item["updated_at"],
        "url": item["html_url"],
    }


def _pull_json(item: Json) -> Json:
    return {
        "number": item["number"],
        "title": item["title"],
        "state": item["state"],
        "author": _login(item),
        "head": item["head"]["label"],
        "base": item["base"]["ref"],
        "url": item["html_url"],
    }


def _requested_reviewers(pull: Json) -> list[str]:
    return [one["login"] for one in pull.get("requested_reviewers") or ()]


def _login(item: Json) -> str:
    """Return the login of an account, which may have been deleted."""
    return str((item.get("user") or {}).get("login", "ghost"))


def _repo_name(item: Json) -> str:
    return "/".join(str(item["repository_url"]).rsplit("/", 2)[-2:])


def _body_text(item: Json) -> str:
    body = _MARK.sub("", str(item.get("body") or ""))
    return body if len(body) <= MAX_SHOWN else f"{body[:MAX_SHOWN]}… (cut: {len(body):,} characters)"


def _limit(args: Args) -> int:
    return max(1, min(MAX_LIMIT, cast(int, args.get("limit", DEFAULT_LIMIT))))


def _repo(args: Args) -> str:
    """Return the repository, checked here too, since it becomes part of a path."""
    repo = str(args["repo"])
    if not _REPO.fullmatch(repo):
        raise ToolFailed(f"'{repo[:100]}' is not a repository. Write owner/name.")
    return repo


def _number(args: Args) -> int:
    number = args["number"]
    if type(number) is not int or number < 1:
        raise ToolFailed("The number of an issue or a pull request is a whole number above 0.")
    return number


API_URL = "https://api.github.com"
API_VERSION = "2026-03-10"
REQUEST_TIMEOUT = 15.0
PAGE_SIZE = 100
MOST_PAGES = 10
MAX_MESSAGE = 500
MOVED = "It moved. Use the repository's new name."
FAILS = "Try again later; www.githubstatus.com says what is known."

Json = dict[str, Any]
Params = Mapping[str, str | int]


class GitHubResponseLost(Exception):
    """There was no response that tells whether the request was executed."""


@dataclass(frozen=True)
class GitHubAccess:
    token: str = field(repr=False)
    url: str
    transport: httpx2.AsyncBaseTransport | None = field(repr=False)

    @asynccontextmanager
    async def open_client(self) -> AsyncIterator[GitHubClient]:
        """Open a client for one use of a tool. Errors become ToolFailed, with a text for people and the model."""
        headers = {
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {self.token}",
            "user-agent": "interlock",
            "x-github-api-version": API_VERSION,
        }
        transport = None if self.transport is None else _BorrowedTransport(self.transport)
        async with httpx2.AsyncClient(
            base_url=self.url, headers=headers, transport=transport, timeout=REQUEST_TIMEOUT, verify=self._tls
        ) as client:
            try:
                yield GitHubClient(client)
            except GitHubResponseLost as lost:
                raise ToolFailed(str(lost)) from None

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return httpx2.create_ssl_context()  # slow: it reads all certificate authorities


def make_github_access(
    settings: Mapping[str, object], transport: httpx2.AsyncBaseTransport | None
) -> GitHubAccess | None:
    """Return the access, or None without a token: then there are no tools."""
    token, url = settings.get("token") or "", settings.get("url") or API_URL
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or " " in token:
        raise Misconfigured("tools.github.token is not a token: it holds spaces or other signs.")
    if not isinstance(url, str) or not url.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
        raise Misconfigured(f"tools.github.url begins with https://, such as {API_URL}.")
    return GitHubAccess(token, url.rstrip("/"), transport) if token else None


class GitHubClient:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def get(self, path: str, **params: str | int) -> Any:
        return await self._request("GET", path, params, None)

    async def post(self, path: str, body: Json) -> Any:
        return await self._request("POST", path, {}, body)

    async def pages(self, path: str, **params: str | int) -> AsyncIterator[Json]:
        """Yield the items of all pages. Raises ToolFailed if there are too many: a part could pass for the whole."""
        for page in range(1, MOST_PAGES + 1):
            items = cast(list[Json], await self.get(path, per_page=PAGE_SIZE, page=page, **params))
            for item in items:
                yield item
            if len(items) < PAGE_SIZE:
                return
        raise ToolFailed(f"{path} has more than {PAGE_SIZE * MOST_PAGES:,} new entries, too many to look through.")

    async def _request(self, method: str, path: str, params: Params, body: Json | None) -> Any:
        try:
            response = await self._client.request(method, path, params=params or None, json=body)
        except httpx2.ConnectError:
            raise ToolFailed("GitHub cannot be reached. Nothing was sent; try again later.") from None
        except httpx2.TransportError:
            raise GitHubResponseLost("GitHub did not answer.") from None
        if response.is_success:
            return _json(response)
        if response.status_code >= 500:
            raise GitHubResponseLost(f"GitHub fails (HTTP {response.status_code}). {FAILS}")
        error = CallWouldFail if response.status_code == 404 else ToolFailed
        raise error(_refusal(response, path))


def _refusal(response: httpx2.Response, path: str) -> str:
    body = _object(response)
    message = str(body.get("message") or "")[:MAX_MESSAGE]
    match response.status_code:
        case 401:
            return "GitHub does not take the token. An admin has to put a valid one into tools.github.token."
        case 403 | 429 if _is_limit(response, message):
            return f"GitHub's limit of requests is reached. {_retry_hint(response)}"
        case 403:
            return f"The token may not do this: {message or 'GitHub gives no reason'}."
        case 404:
            return f"{path} was not found, or the token may not see it. Check the repository and the number."
        case 422:
            return f"GitHub refuses it: {_field_errors(body) or message or 'it gives no reason'}."
        case status if response.has_redirect_location or 300 <= status < 400:
            return MOVED
        case status:
            return f"GitHub refuses it (HTTP {status}): {message or 'it gives no reason'}."


def _is_limit(response: httpx2.Response, message: str) -> bool:
    headers = response.headers
    return (
        response.status_code == 429
        or headers.get("x-ratelimit-remaining") == "0"
        or "retry-after" in headers
        or "rate limit" in message.lower()
    )


def _retry_hint(response: httpx2.Response) -> str:
    seconds, reset = response.headers.get("retry-after", ""), response.headers.get("x-ratelimit-reset", "")
    if seconds.isdigit():
        return f"Try again in {seconds} seconds."
    return (
        f"Try again after {rfc3339(int(reset) * 1000)}." if reset.isdigit() and len(reset) < 12 else "Try again later."
    )


def _field_errors(body: Json) -> str:
    """Return the errors by field, which GitHub sends in several forms."""
    errors = body.get("errors")
    return "; ".join(map(_field_error, errors[:10]))[:MAX_MESSAGE] if isinstance(errors, list) else ""


def _field_error(error: object) -> str:
    match error:
        case {"message": str(message)} if message:
            return message
        case {"field": field, "code": code}:
            return f"{field} is {str(code).replace('_', ' ')}"
        case _:
            return str(error)


def _json(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        raise GitHubResponseLost("GitHub's answer cannot be read.") from None


def _object(response: httpx2.Response) -> Json:
    try:
        value = response.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


class _BorrowedTransport(httpx2.AsyncBaseTransport):
    """A transport that belongs to another owner, who closes it."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._transport.handle_async_request(request)

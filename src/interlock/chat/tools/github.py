"""GitHub: issues, comments, labels, pull requests and reviews. Settings: `token`, and `url` for a self-hosted server.

GitHub has no idempotency key. So what is written carries a hidden mark derived from the call's key, which is searched
for before each attempt, in all that changed since shortly before the first: a retry creates no duplicate.

It is long because a pack is one module: its tools and the requests that they make.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeVar, cast
from urllib.parse import quote

import httpx2

from interlock.chat.tool import Tool, ToolContext, ToolInvocation, object_schema
from interlock.core.call import Args, ToolSpec
from interlock.core.errors import CallWouldFail, EffectUnknown, Misconfigured, ToolFailed
from interlock.core.ports import ToolItemStore
from interlock.runtime.durations import rfc3339

__all__ = ["read_tools", "write_tools"]


DEFAULT_LIMIT = 30
MAX_LIMIT = 1_000  # items of a list; GitHub's search finds no more either
MAX_SUGGESTIONS = 5
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
LABEL = {"type": "string", "minLength": 1, "maxLength": 100}
NAMES = {"type": "array", "items": LABEL, "maxItems": 20}
SOME_NAMES = {**NAMES, "minItems": 1}
HOW_MANY = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_LIMIT,
    "default": DEFAULT_LIMIT,
    "description": "At most so many; the result says whether there are more.",
}
STATE = {"type": "string", "enum": ["open", "closed", "all"], "default": "open"}


def read_tools(context: ToolContext) -> Sequence[Tool]:
    github = make_github_access(context.settings, context.transport)
    if github is None:
        return ()
    one = object_schema("repo number", repo=REPO, number=NUMBER)
    some = object_schema("repo", repo=REPO, state=STATE, limit=HOW_MANY)
    return (
        _read_tool(
            "github_list_issues",
            "Lists the issues of a GitHub repository, the newest first.",
            some,
            "List issues of {repo}",
            lambda invocation: _list_issues(github, invocation.args),
        ),
        _read_tool(
            "github_list_pull_requests",
            "Lists the pull requests of a GitHub repository, the newest first.",
            some,
            "List pull requests of {repo}",
            lambda invocation: _list_pull_requests(github, invocation.args),
        ),
        _read_tool(
            "github_list_labels",
            "Lists the labels of a GitHub repository.",
            object_schema("repo", repo=REPO, limit=HOW_MANY),
            "List labels of {repo}",
            lambda invocation: _list_labels(github, invocation.args),
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
            one,
            "Read {repo}#{number}",
            lambda invocation: _read_issue(github, invocation.args),
        ),
        _read_tool(
            "github_read_pull_request",
            "Reads a pull request of a GitHub repository: its branches, size, reviewers and newest comments.",
            one,
            "Read pull request {repo}#{number}",
            lambda invocation: _read_pull_request(github, invocation.args),
        ),
    )


def write_tools(context: ToolContext) -> Sequence[Tool]:
    github = make_github_access(context.settings, context.transport)
    if github is None:
        return ()
    writer = _GitHubWriter(github, context.items)
    return (*_creating_tools(github, writer), *_changing_tools(github, writer))


def _creating_tools(github: GitHubAccess, writer: _GitHubWriter) -> Sequence[Tool]:
    return (
        Tool(
            ToolSpec(
                "github_create_issue",
                "write",
                schema=object_schema("repo title", repo=REPO, title=TEXT, body=BODY, labels=NAMES, assignees=NAMES),
                describe=_describe_new_issue,
                preview=_preview(github, _preview_new_issue),
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
                preview=_preview(github, _preview_new_pull),
                idempotent=True,
            ),
            "Opens a pull request in a GitHub repository, from the branch `head` into the branch `base`.",
            writer.open_pull_request,
        ),
        Tool(
            ToolSpec(
                "github_comment",
                "write",
                schema=object_schema("repo number body", repo=REPO, number=NUMBER, body={**BODY, "minLength": 1}),
                describe="Comment on {repo}#{number}",
                preview=_preview(github, _preview_issue),
                idempotent=True,
            ),
            "Comments on an issue or a pull request of a GitHub repository.",
            writer.comment,
        ),
    )


def _changing_tools(github: GitHubAccess, writer: _GitHubWriter) -> Sequence[Tool]:
    """Tools that set a value: a retry changes nothing."""
    return (
        Tool(
            ToolSpec(
                "github_request_review",
                "write",
                schema=object_schema("repo number reviewers", repo=REPO, number=NUMBER, reviewers=SOME_NAMES),
                describe=lambda args: f"Ask {_join_names(args['reviewers'])} to review {args['repo']}#{args['number']}",
                preview=_preview(github, _preview_pull),
                idempotent=True,
            ),
            "Asks people, by their login, to review a pull request.",
            writer.request_review,
        ),
        Tool(
            ToolSpec(
                "github_add_labels",
                "write",
                schema=object_schema("repo number labels", repo=REPO, number=NUMBER, labels=SOME_NAMES),
                describe=lambda args: f"Label {args['repo']}#{args['number']} {_join_names(args['labels'])}",
                preview=_preview(github, _preview_added_labels),
                idempotent=True,
            ),
            "Adds labels, which the repository has to have, to an issue or a pull request.",
            writer.add_labels,
        ),
        Tool(
            ToolSpec(
                "github_remove_label",
                "write",
                schema=object_schema("repo number label", repo=REPO, number=NUMBER, label=LABEL),
                describe="Remove label '{label}' from {repo}#{number}",
                preview=_preview(github, _preview_removed_label),
                idempotent=True,
            ),
            "Takes a label off an issue or a pull request.",
            writer.remove_label,
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
    async with github.open_client() as client:
        found, more = await client.first_items(
            f"/repos/{_repo(args)}/issues",
            _limit(args),
            lambda item: "pull_request" not in item,
            state=str(args.get("state", "open")),
            sort="created",
            direction="desc",
        )
    return {"repo": args["repo"], "issues": [_issue_json(item) for item in found], "more": more}


async def _list_pull_requests(github: GitHubAccess, args: Args) -> object:
    path, state = f"/repos/{_repo(args)}/pulls", str(args.get("state", "open"))
    async with github.open_client() as client:
        found, more = await client.first_items(path, _limit(args), state=state, sort="created", direction="desc")
    pulls = [{**_pull_json(item), "reviewers": _requested_reviewers(item)} for item in found]
    return {"repo": args["repo"], "pull_requests": pulls, "more": more}


async def _list_labels(github: GitHubAccess, args: Args) -> object:
    async with github.open_client() as client:
        found, more = await client.first_items(f"/repos/{_repo(args)}/labels", _limit(args))
    labels = [{"name": item["name"], "description": item.get("description")} for item in found]
    return {"repo": args["repo"], "labels": labels, "more": more}


async def _search(github: GitHubAccess, args: Args) -> object:
    query, limit = str(args["query"]), _limit(args)
    search_query = query if _KIND.search(query) else f"{query} is:issue"  # GitHub requires one or the other
    items: list[Json] = []
    total = 0
    async with github.open_client() as client:
        for page in range(1, MOST_PAGES + 1):
            found = await client.get("/search/issues", q=search_query, per_page=min(PAGE_SIZE, limit), page=page)
            items, total = [*items, *found["items"]], int(found["total_count"])
            if not found["items"] or len(items) >= min(limit, total):
                break
    issues = [{"repo": _repo_name(item), **_issue_json(item)} for item in items[:limit]]
    return {"query": search_query, "total": total, "issues": issues, "more": total > len(issues)}


async def _read_issue(github: GitHubAccess, args: Args) -> object:
    path = f"/repos/{_repo(args)}/issues/{_number(args)}"
    async with github.open_client() as client:
        issue = await client.get(path)
        comments = await _newest_comments(client, path, int(issue["comments"]))
    return {
        "repo": args["repo"],
        **_issue_json(issue),
        "body": _body_text(issue),
        "comments": comments,
        "of": issue["comments"],
    }


async def _read_pull_request(github: GitHubAccess, args: Args) -> object:
    repo, number = _repo(args), _number(args)
    async with github.open_client() as client:
        pull = await client.get(f"/repos/{repo}/pulls/{number}")
        comments = await _newest_comments(client, f"/repos/{repo}/issues/{number}", int(pull["comments"]))
    facts = ("draft", "merged", "mergeable", "commits", "changed_files", "additions", "deletions")
    return {
        "repo": args["repo"],
        **_pull_json(pull),
        **{name: pull.get(name) for name in facts},
        "reviewers": _requested_reviewers(pull),
        "body": _body_text(pull),
        "comments": comments,
        "of": pull["comments"],
    }


async def _newest_comments(client: GitHubClient, path: str, count: int) -> list[Json]:
    """Return the newest comments: GitHub sends the oldest first, so they are on the last two pages."""
    last = -(-count // SHOWN_COMMENTS)
    found: list[Json] = []
    for page in range(max(1, last - 1), last + 1):
        found += await client.get(f"{path}/comments", per_page=SHOWN_COMMENTS, page=page)
    return [
        {"author": _login(one), "at": one["created_at"], "body": _body_text(one)} for one in found[-SHOWN_COMMENTS:]
    ]


@dataclass(frozen=True)
class _GitHubWriter:
    """Writes, each once for its idempotency key."""

    github: GitHubAccess
    items: ToolItemStore

    async def create_issue(self, invocation: ToolInvocation) -> object:
        args, path = invocation.args, f"/repos/{_repo(invocation.args)}/issues"
        body = {"title": args["title"], "body": _with_mark(args.get("body", ""), invocation.key)}
        body |= {name: args[name] for name in ("labels", "assignees") if args.get(name)}
        since = await self._since(invocation.key)
        async with self.github.open_client() as client:
            made = await _create_once(
                lambda: client.pages(path, state="all", sort="created", direction="desc", since=since),
                lambda: self._post_issue(client, args, body),
                invocation.key,
            )
        return {"repo": args["repo"], **_read_made(_issue_json, made)}

    async def _post_issue(self, client: GitHubClient, args: Args, body: Json) -> Any:
        await _check_assignees(client, args)
        return await client.post(f"/repos/{_repo(args)}/issues", body)

    async def comment(self, invocation: ToolInvocation) -> object:
        path = f"/repos/{_repo(invocation.args)}/issues/{_number(invocation.args)}/comments"
        since = await self._since(invocation.key)
        body = {"body": _with_mark(invocation.args["body"], invocation.key)}
        async with self.github.open_client() as client:
            made = await _create_once(
                lambda: client.pages(path, since=since), lambda: client.post(path, body), invocation.key
            )
        url = _read_made(lambda item: item["html_url"], made)
        return {"repo": invocation.args["repo"], "number": invocation.args["number"], "url": url}

    async def open_pull_request(self, invocation: ToolInvocation) -> object:
        """Open a pull request; all of those between the two branches are searched, since they are few."""
        args, repo = invocation.args, _repo(invocation.args)
        path, whose, base = f"/repos/{repo}/pulls", _head_label(args), str(args["base"])
        body = {
            "title": args["title"],
            "head": args["head"],
            "base": base,
            "body": _with_mark(args.get("body", ""), invocation.key),
        }
        async with self.github.open_client() as client:
            made = await _create_once(
                lambda: client.pages(path, state="all", head=whose, base=base, sort="created", direction="desc"),
                lambda: client.post(path, body),
                invocation.key,
            )
        return {"repo": args["repo"], **_read_made(_pull_json, made)}

    async def request_review(self, invocation: ToolInvocation) -> object:
        path = f"/repos/{_repo(invocation.args)}/pulls/{_number(invocation.args)}/requested_reviewers"
        async with self.github.open_client() as client:
            try:
                made = await client.post(path, {"reviewers": invocation.args["reviewers"]})
            except GitHubResponseLost as lost:
                raise EffectUnknown(f"{lost} {UNCLEAR}") from None
        told = _read_made(lambda item: {**_pull_json(item), "reviewers": _requested_reviewers(item)}, made)
        return {"repo": invocation.args["repo"], **told}

    async def add_labels(self, invocation: ToolInvocation) -> object:
        path = f"/repos/{_repo(invocation.args)}/issues/{_number(invocation.args)}"
        async with self.github.open_client() as client:
            labels = await _find_labels(client, invocation.args, cast(Sequence[str], invocation.args["labels"]))
            held = await _change_labels(
                client,
                path,
                lambda: client.post(f"{path}/labels", {"labels": labels}),
                lambda now: set(labels) <= set(now),
            )
        return {"repo": invocation.args["repo"], "number": invocation.args["number"], "labels": held}

    async def remove_label(self, invocation: ToolInvocation) -> object:
        path = f"/repos/{_repo(invocation.args)}/issues/{_number(invocation.args)}"
        async with self.github.open_client() as client:
            (label,) = await _find_labels(client, invocation.args, [str(invocation.args["label"])])
            held = _label_names(await client.get(path))
            if label in held:
                held = await _change_labels(
                    client,
                    path,
                    lambda: client.delete(f"{path}/labels/{quote(label, safe='')}"),
                    lambda now: label not in now,
                )
        return {"repo": invocation.args["repo"], "number": invocation.args["number"], "labels": held}

    async def _since(self, key: str) -> str:
        """Return a time shortly before the first attempt: everything that this call made is newer."""
        first = await self.items.change(key, lambda transaction: transaction.now)
        return rfc3339(cast(int, first) - CLOCK_SKEW)[:19] + "Z"


async def _create_once(look: Callable[[], AsyncIterator[Json]], make: Callable[[], Awaitable[Any]], key: str) -> Json:
    found = await _find_marked(look(), key)
    if found is not None:
        return found
    try:
        return cast(Json, await make())
    except GitHubResponseLost as lost:
        with suppress(GitHubResponseLost, ToolFailed):  # what GitHub does not show may still be there
            found = await _find_marked(look(), key)  # it may have been created, and only the response was lost
        if found is not None:
            return found
        raise EffectUnknown(f"{lost} {UNCLEAR}") from None


def _read_made(read: Callable[[Json], T], made: Json) -> T:
    """Read what was made. If it is not in the response, that says nothing about the effect."""
    try:
        return read(made)
    except (AttributeError, IndexError, KeyError, TypeError):
        raise EffectUnknown(f"GitHub's answer does not hold what was made. {UNCLEAR}") from None


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


async def _check_assignees(client: GitHubClient, args: Args) -> None:
    """Raise CallWouldFail for somebody to whom GitHub cannot assign issues here: it would leave them out silently."""
    for login in cast(Sequence[str], args.get("assignees") or ()):
        if not await client.exists(f"/repos/{_repo(args)}/assignees/{quote(login, safe='')}"):
            raise CallWouldFail(f"Issues of {args['repo']} cannot be assigned to {login!r}. Nothing was sent.")


async def _find_labels(client: GitHubClient, args: Args, wanted: Sequence[str]) -> list[str]:
    """Return the labels as the repository writes them; GitHub would make a new label of a name that it does not know.

    Raises CallWouldFail with similar names for an unknown one.
    """
    found, more = await client.first_items(f"/repos/{_repo(args)}/labels", MAX_LIMIT)
    known = {str(item["name"]).casefold(): str(item["name"]) for item in found}
    for name in wanted:
        if name.casefold() not in known and not more:
            near = get_close_matches(name.casefold(), known, MAX_SUGGESTIONS) or sorted(known)[:MAX_SUGGESTIONS]
            hint = f" There is: {', '.join(known[each] for each in near)}." if near else ""
            raise CallWouldFail(f"{args['repo']} has no label {name!r}.{hint}")
    return [known.get(name.casefold(), name) for name in wanted]


async def _change_labels(
    client: GitHubClient, path: str, change: Callable[[], Awaitable[Any]], is_done: Callable[[list[str]], bool]
) -> list[str]:
    """Change the labels of an issue, and return those that it has then; after a lost response they are looked up."""
    try:
        return [str(item["name"]) for item in await change()]
    except GitHubResponseLost as lost:
        with suppress(ToolFailed, GitHubResponseLost):
            held = _label_names(await client.get(path))
            if is_done(held):
                return held
        raise EffectUnknown(f"{lost} {UNCLEAR}") from None


def _preview(
    github: GitHubAccess, look: Callable[[GitHubClient, Args], Awaitable[str]]
) -> Callable[[Args], Awaitable[str]]:
    async def preview(args: Args) -> str:
        async with github.open_client() as client:
            return await look(client, args)

    return preview


async def _preview_new_issue(client: GitHubClient, args: Args) -> str:
    """Preview a new issue: the repository exists, and who and what is named in the call is known there."""
    await _check_assignees(client, args)
    found, more = await client.first_items(f"/repos/{_repo(args)}/labels", MAX_LIMIT)
    known = {str(item["name"]).casefold() for item in found}
    new = [name for name in cast(Sequence[str], args.get("labels") or ()) if name.casefold() not in known]
    lines = [f"Repository {args['repo']}."]
    if new and not more:
        lines.append(f"New labels, which GitHub would add to the repository: {', '.join(new)}.")
    return "\n".join(lines)


async def _preview_new_pull(client: GitHubClient, args: Args) -> str:
    path, head, base = f"/repos/{_repo(args)}/pulls", _head_label(args), str(args["base"])
    there = cast(list[Json], await client.get(path, state="open", head=head, base=base, per_page=1))
    if there:
        raise CallWouldFail(
            f"{_pull_line(there[0])} It is open between the same branches, so GitHub would refuse another one."
        )
    return f"From {head} into {base}. No pull request is open between them."


async def _preview_added_labels(client: GitHubClient, args: Args) -> str:
    added = await _find_labels(client, args, cast(Sequence[str], args["labels"]))
    return await _preview_labels(client, args, lambda held: [*held, *(name for name in added if name not in held)])


async def _preview_removed_label(client: GitHubClient, args: Args) -> str:
    (label,) = await _find_labels(client, args, [str(args["label"])])
    return await _preview_labels(client, args, lambda held: [name for name in held if name != label])


async def _preview_labels(client: GitHubClient, args: Args, change: Callable[[list[str]], list[str]]) -> str:
    issue = await client.get(f"/repos/{_repo(args)}/issues/{_number(args)}")
    held = _label_names(issue)
    before, after = ", ".join(held) or "none", ", ".join(change(held)) or "none"
    text = f"{before} → {after}" if before != after else f"{after}, as it is already"
    return f"{_issue_line(issue)}\nLabels: {text}"


async def _preview_issue(client: GitHubClient, args: Args) -> str:
    return _issue_line(await client.get(f"/repos/{_repo(args)}/issues/{_number(args)}"))


async def _preview_pull(client: GitHubClient, args: Args) -> str:
    pull = await client.get(f"/repos/{_repo(args)}/pulls/{_number(args)}")
    asked = ", ".join(_requested_reviewers(pull)) or "nobody"
    return f"{_pull_line(pull)} Asked so far: {asked}."


def _issue_line(issue: Json) -> str:
    kind = "Pull request" if "pull_request" in issue else "Issue"
    return f"{kind} #{issue['number']} '{issue['title']}', {issue['state']}, by {_login(issue)}."


def _pull_line(pull: Json) -> str:
    return f"Pull request #{pull['number']} '{pull['title']}', {pull['state']}, by {_login(pull)}."


def _issue_json(item: Json) -> Json:
    return {
        "number": item["number"],
        "title": item["title"],
        "state": item["state"],
        "author": _login(item),
        "assignees": [one["login"] for one in item.get("assignees") or ()],
        "labels": _label_names(item),
        "comments": item.get("comments", 0),
        "updated_at": item["updated_at"],
        "url": item["html_url"],
    }


def _label_names(item: Json) -> list[str]:
    return [one if isinstance(one, str) else str(one.get("name")) for one in item.get("labels") or ()]


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


def _head_label(args: Args) -> str:
    """Return the branch as GitHub's lists name it, with its owner; one without an owner is of the repository itself."""
    head = str(args["head"])
    return head if ":" in head else f"{_repo(args).partition('/')[0]}:{head}"


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
T = TypeVar("T")
Params = Mapping[str, str | int]


class GitHubResponseLost(Exception):
    """There was no response that tells whether the request was executed."""


class GitHubNotFound(CallWouldFail):
    """GitHub has nothing at this path, or the token may not see it."""


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

    async def delete(self, path: str) -> Any:
        return await self._request("DELETE", path, {}, None)

    async def exists(self, path: str) -> bool:
        """Return whether there is something at a path that answers without content."""
        try:
            await self._request("GET", path, {}, None)
        except GitHubNotFound:
            return False
        return True

    async def first_items(
        self, path: str, limit: int, is_wanted: Callable[[Json], bool] = lambda _: True, **params: str | int
    ) -> tuple[list[Json], bool]:
        """Return at most `limit` items, and whether there are more, or may be more after the last page that is read."""
        found: list[Json] = []
        for page in range(1, MOST_PAGES + 1):
            items = cast(list[Json], await self.get(path, per_page=PAGE_SIZE, page=page, **params))
            found += [item for item in items if is_wanted(item)]
            if len(found) > limit or len(items) < PAGE_SIZE:
                return found[:limit], len(found) > limit
        return found[:limit], True

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
            return None if response.status_code == 204 else _json(response)
        if response.status_code >= 500:
            raise GitHubResponseLost(f"GitHub fails (HTTP {response.status_code}). {FAILS}")
        failure = GitHubNotFound if response.status_code == 404 else ToolFailed
        raise failure(_refusal(response, path))


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

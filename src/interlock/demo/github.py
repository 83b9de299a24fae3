"""A fake GitHub for the demo, as an HTTP transport: one repository, with its data in Interlock's own database.

It answers the requests of the GitHub tools, with the fields that they read. Each rule says where it is from:
*documented* by GitHub, *seen* in responses that others published, or *assumed*.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx2

from interlock.core.ports import ToolItemStore, ToolItemTransaction
from interlock.demo.linear.resolvers import ItemSnapshot

REPO, ISSUE, COMMENT, LABEL = "github_repo", "github_issue", "github_comment", "github_label"
KINDS = (REPO, ISSUE, COMMENT, LABEL)
DEMO_REPO = "demo/shop"
OWNER = "ada"  # the owner of the demo's token
MOST_BYTES = 1024 * 1024
USUAL_PAGE, LARGEST_PAGE = 30, 100  # documented
HOUR = 3_600_000

Json = dict[str, Any]
Response = tuple[int, object]


class GitHubRefusal(Exception):
    """A response other than success; inside a transaction it rolls the transaction back."""

    def __init__(self, status: int, message: str, *errors: Mapping[str, object]) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"message": message, "status": str(status), **({"errors": list(errors)} if errors else {})}


class GitHubRequest(NamedTuple):
    """A request to an operation: the values in its path, its query and its body."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def number(self) -> int:
        return int(self.path["number"])


class FakeGitHub(httpx2.AsyncBaseTransport):
    """Stores its data in `items`, in kinds that begin with `github_`."""

    def __init__(self, items: ToolItemStore) -> None:
        self._items = items

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        status, answer = await self.answer(
            request.method, str(request.url), request.headers.get("authorization", ""), body
        )
        if status == 204:
            return httpx2.Response(status, request=request)
        return httpx2.Response(status, json=answer, request=request)

    async def answer(self, method: str, url: str, authorization: str, body: bytes) -> Response:
        """Return the status and the JSON that GitHub would return."""
        try:
            if not authorization.startswith(("Bearer ", "token ")):
                raise GitHubRefusal(401, "Requires authentication")  # seen
            operation, request = _find_operation(method, url, body)
            return await self._run(method, operation, request)
        except GitHubRefusal as refusal:
            return refusal.status, refusal.body

    async def _run(self, method: str, operation: Operation, request: GitHubRequest) -> Response:
        if method == "GET":
            snapshot = ItemSnapshot({kind: await self._items.list(kind) for kind in KINDS})
            return operation(snapshot, request)
        made = await self._items.change("", lambda transaction: list(operation(transaction, request)))
        return cast(Response, tuple(cast(list[object], made)))


Operation = Callable[[ToolItemTransaction, GitHubRequest], Response]


def _find_operation(method: str, url: str, body: bytes) -> tuple[Operation, GitHubRequest]:
    parts = urlsplit(url)
    for verb, pattern, operation in OPERATIONS:
        found = pattern.fullmatch(parts.path)
        if verb == method and found:
            path = {name: unquote(value) for name, value in found.groupdict().items()}
            return operation, GitHubRequest(path, dict(parse_qsl(parts.query)), _parse_body(body))
    raise GitHubRefusal(404, "Not Found")


def _parse_body(body: bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(body or b"{}") if len(body) <= MOST_BYTES else None
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise GitHubRefusal(400, "Problems parsing JSON")  # documented
    return parsed


# Reads


def _list_issues(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    """Documented: pull requests are among them; open ones, the newest first, unless the query says otherwise."""
    state, since = request.query.get("state", "open"), request.query.get("since", "")
    found = [
        _issue_json(transaction, issue)
        for issue in _issues(transaction, request)
        if state in ("all", issue["state"]) and issue["updated_at"] >= since
    ]
    return 200, _page(found, request, newest_first=request.query.get("direction", "desc") == "desc")


def _get_issue(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    return 200, _issue_json(transaction, _find_issue(transaction, request))


def _list_comments(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    """Documented: in the order in which they were made."""
    issue, since = _find_issue(transaction, request), request.query.get("since", "")
    return 200, _page([each for each in _comments(transaction, issue) if each["updated_at"] >= since], request)


def _list_pulls(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    state, head, base = request.query.get("state", "open"), request.query.get("head"), request.query.get("base")
    found = [
        _pull_json(transaction, issue)
        for issue in _issues(transaction, request)
        if "head" in issue and state in ("all", issue["state"])
    ]
    found = [pull for pull in found if head in (None, pull["head"]["label"]) and base in (None, pull["base"]["ref"])]
    return 200, _page(found, request, newest_first=True)


def _get_pull(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    return 200, _pull_json(transaction, _find_pull(transaction, request))


def _list_labels(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    _find_repo(transaction, request)
    return 200, _page([dict(item.body) for item in transaction.list(LABEL)], request)


def _check_assignee(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    """Documented: no content for somebody to whom issues can be assigned, otherwise not found."""
    if request.path["login"] not in _find_repo(transaction, request)["people"]:
        raise GitHubRefusal(404, "Not Found")
    return 204, None


def _search(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    """Search; GitHub ranks by relevance, here every word has to occur in title or body (assumed)."""
    terms = request.query.get("q", "").replace('"', " ").split()
    qualifiers = [term.partition(":") for term in terms if ":" in term]
    words = [term.casefold() for term in terms if ":" not in term]
    unknown = [name for name, _, _ in qualifiers if name not in QUALIFIERS]
    if unknown:
        message = f"The demo's simulated GitHub does not search by {unknown[0]}."
        raise GitHubRefusal(422, "Validation Failed", {"code": "custom", "message": message})
    found = [
        {**_issue_json(transaction, issue), "score": 1.0}
        for issue in (dict(item.body) for item in transaction.list(ISSUE))
        if all(word in f"{issue['title']} {issue['body']}".casefold() for word in words)
        and all(QUALIFIERS[name](issue, value.casefold()) for name, _, value in qualifiers)
    ]
    items = _page(found, request, newest_first=True)
    return 200, {"total_count": len(found), "incomplete_results": False, "items": items}


def _is(issue: Json, value: str) -> bool:
    kinds: dict[str, bool] = {"issue": "head" not in issue, "pr": "head" in issue, "pull-request": "head" in issue}
    return kinds[value] if value in kinds else bool(value == issue["state"])


def _person(value: str) -> str:
    return OWNER if value == "@me" else value


QUALIFIERS: Mapping[str, Callable[[Json, str], bool]] = {
    "assignee": lambda issue, value: _person(value) in issue["assignees"],
    "author": lambda issue, value: _person(value) == issue["author"],
    "is": _is,
    "label": lambda issue, value: value in [name.casefold() for name in issue["labels"]],
    "repo": lambda issue, value: value == issue["repo"].casefold(),
    "review-requested": lambda issue, value: _person(value) in issue.get("reviewers", ()),
    "state": lambda issue, value: value == issue["state"],
    "type": _is,
}


# Writes


def _create_issue(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    """Documented: assignees without access are left out. Seen: a label that does not exist is made."""
    title, people = str(request.body.get("title") or ""), _find_repo(transaction, request)["people"]
    if not title.strip():
        raise _field_error("Issue", "title", "missing_field")
    labels = [_make_label(transaction, name) for name in request.body.get("labels") or ()]
    assignees = [login for login in request.body.get("assignees") or () if login in people]
    issue = _add_issue(transaction, request, {"title": title, "labels": labels, "assignees": assignees})
    return 201, _issue_json(transaction, issue)


def _create_comment(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    issue, body = _find_issue(transaction, request), str(request.body.get("body") or "")
    if not body.strip():
        raise _field_error("IssueComment", "body", "unprocessable")
    comment = _put_comment(transaction, issue, OWNER, body, _format_time(transaction.now))
    return 201, _comment_json(comment)


def _create_pull(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    """Seen: both branches have to exist, and there may be one open pull request between them."""
    repo = _find_repo(transaction, request)
    head, base = str(request.body.get("head") or ""), str(request.body.get("base") or "")
    head = head.removeprefix(f"{repo['name'].partition('/')[0]}:")
    for field, branch in (("base", base), ("head", head)):
        if branch not in repo["branches"]:
            raise _field_error("PullRequest", field, "invalid")
    for pull in _issues(transaction, request):
        if (pull.get("head"), pull.get("base"), pull["state"]) == (head, base, "open"):
            message = f"A pull request already exists for {_label_of(pull, head)}."
            raise GitHubRefusal(422, "Validation Failed", {"resource": "PullRequest", "message": message})
    fields = {"title": str(request.body.get("title") or ""), "head": head, "base": base, "reviewers": []}
    return 201, _pull_json(transaction, _add_issue(transaction, request, fields))


def _request_reviewers(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    """Documented: only collaborators. Seen: not the author. Assumed: a second request for a person changes nothing."""
    pull, people = _find_pull(transaction, request), _find_repo(transaction, request)["people"]
    reviewers = [str(login) for login in request.body.get("reviewers") or ()]
    if pull["author"] in reviewers:
        raise GitHubRefusal(422, "Review cannot be requested from pull request author.")
    if any(login not in people for login in reviewers):
        raise GitHubRefusal(422, "Reviews may only be requested from collaborators.")
    asked = list(dict.fromkeys([*pull["reviewers"], *reviewers]))
    return 201, _pull_json(transaction, _update(transaction, pull, {"reviewers": asked}))


def _add_labels(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    issue = _find_issue(transaction, request)
    added = [_make_label(transaction, name) for name in request.body.get("labels") or ()]
    issue = _update(transaction, issue, {"labels": list(dict.fromkeys([*issue["labels"], *added]))})
    return 200, _issue_json(transaction, issue)["labels"]


def _remove_label(transaction: ToolItemTransaction, request: GitHubRequest) -> Response:
    """Documented: the labels that are left; not found for one that the issue does not have."""
    issue, name = _find_issue(transaction, request), request.path["label"].casefold()
    left = [label for label in issue["labels"] if label.casefold() != name]
    if len(left) == len(issue["labels"]):
        raise GitHubRefusal(404, "Label does not exist")
    return 200, _issue_json(transaction, _update(transaction, issue, {"labels": left}))["labels"]


_IN_REPO = r"/repos/(?P<owner>[^/]+)/(?P<repo>[^/]+)"
_IN_ISSUE, _IN_PULL = rf"{_IN_REPO}/issues/(?P<number>[0-9]+)", rf"{_IN_REPO}/pulls/(?P<number>[0-9]+)"
OPERATIONS: tuple[tuple[str, re.Pattern[str], Operation], ...] = tuple(
    (method, re.compile(path), operation)
    for method, path, operation in (
        ("GET", rf"{_IN_REPO}/issues", _list_issues),
        ("POST", rf"{_IN_REPO}/issues", _create_issue),
        ("GET", _IN_ISSUE, _get_issue),
        ("GET", rf"{_IN_ISSUE}/comments", _list_comments),
        ("POST", rf"{_IN_ISSUE}/comments", _create_comment),
        ("POST", rf"{_IN_ISSUE}/labels", _add_labels),
        ("DELETE", rf"{_IN_ISSUE}/labels/(?P<label>[^/]+)", _remove_label),
        ("GET", rf"{_IN_REPO}/pulls", _list_pulls),
        ("POST", rf"{_IN_REPO}/pulls", _create_pull),
        ("GET", _IN_PULL, _get_pull),
        ("POST", rf"{_IN_PULL}/requested_reviewers", _request_reviewers),
        ("GET", rf"{_IN_REPO}/labels", _list_labels),
        ("GET", rf"{_IN_REPO}/assignees/(?P<login>[^/]+)", _check_assignee),
        ("GET", "/search/issues", _search),
    )
)


# Items


def _find_repo(transaction: ToolItemTransaction, request: GitHubRequest) -> Json:
    """Documented: names are not case-sensitive."""
    item = transaction.get(REPO, f"{request.path['owner']}/{request.path['repo']}".lower())
    if item is None:
        raise GitHubRefusal(404, "Not Found")
    return dict(item.body)


def _issues(transaction: ToolItemTransaction, request: GitHubRequest) -> list[Json]:
    name = _find_repo(transaction, request)["name"]
    return [dict(item.body) for item in transaction.list(ISSUE) if item.body["repo"] == name]


def _find_issue(transaction: ToolItemTransaction, request: GitHubRequest) -> Json:
    item = transaction.get(ISSUE, _issue_id(_find_repo(transaction, request)["name"], request.number))
    if item is None:
        raise GitHubRefusal(404, "Not Found")
    return dict(item.body)


def _find_pull(transaction: ToolItemTransaction, request: GitHubRequest) -> Json:
    issue = _find_issue(transaction, request)
    if "head" not in issue:
        raise GitHubRefusal(404, "Not Found")
    return issue


def _comments(transaction: ToolItemTransaction, issue: Json) -> list[Json]:
    mine: list[Json] = [
        dict(item.body)
        for item in transaction.list(COMMENT)
        if (item.body["repo"], item.body["issue"]) == (issue["repo"], issue["number"])
    ]
    return [_comment_json(comment) for comment in sorted(mine, key=lambda comment: comment["id"])]


def _add_issue(transaction: ToolItemTransaction, request: GitHubRequest, fields: Mapping[str, object]) -> Json:
    """Add an issue or a pull request; they share one sequence of numbers (documented)."""
    number = max((issue["number"] for issue in _issues(transaction, request)), default=0) + 1
    stamp = _format_time(transaction.now)
    issue: Json = {
        "repo": _find_repo(transaction, request)["name"],
        "number": number,
        "state": "open",
        "author": OWNER,
        "body": str(request.body.get("body") or ""),
        "labels": [],
        "assignees": [],
        "created_at": stamp,
        "updated_at": stamp,
        **fields,
    }
    transaction.put(ISSUE, _issue_id(issue["repo"], number), issue)
    return issue


def _update(transaction: ToolItemTransaction, issue: Json, changes: Mapping[str, object]) -> Json:
    changed = {**issue, **changes, "updated_at": _format_time(transaction.now)}
    transaction.put(ISSUE, _issue_id(issue["repo"], issue["number"]), changed)
    return changed


def _put_comment(transaction: ToolItemTransaction, issue: Json, author: str, body: str, at: str) -> Json:
    number = len(transaction.list(COMMENT)) + 1
    comment: Json = {"id": number, "repo": issue["repo"], "issue": issue["number"], "author": author, "body": body}
    transaction.put(COMMENT, f"{number:06}", {**comment, "created_at": at})
    return {**comment, "created_at": at}


def _make_label(transaction: ToolItemTransaction, name: object) -> str:
    """Return the label as the repository writes it; it is added if there is none of this name."""
    for item in transaction.list(LABEL):
        if str(item.body["name"]).casefold() == str(name).casefold():
            return str(item.body["name"])
    transaction.put(LABEL, str(name).casefold(), {"name": str(name), "description": None})
    return str(name)


def _issue_json(transaction: ToolItemTransaction, issue: Json) -> Json:
    kind = "pull" if "head" in issue else "issues"
    return {
        **{name: issue[name] for name in ("number", "title", "state", "body", "created_at", "updated_at")},
        "user": {"login": issue["author"]},
        "assignees": [{"login": login} for login in issue["assignees"]],
        "labels": [{"name": name} for name in issue["labels"]],
        "comments": len(_comments(transaction, issue)),
        "html_url": f"https://github.com/{issue['repo']}/{kind}/{issue['number']}",
        "repository_url": f"https://api.github.com/repos/{issue['repo']}",
        **({"pull_request": {}} if "head" in issue else {}),
    }


def _pull_json(transaction: ToolItemTransaction, issue: Json) -> Json:
    shown = {name: value for name, value in _issue_json(transaction, issue).items() if name != "pull_request"}
    return {
        **shown,
        "head": {"label": _label_of(issue, issue["head"]), "ref": issue["head"]},
        "base": {"label": _label_of(issue, issue["base"]), "ref": issue["base"]},
        "requested_reviewers": [{"login": login} for login in issue["reviewers"]],
        "draft": False,
        "merged": issue["state"] == "closed",
        "mergeable": True,
        **{name: issue.get(name, 1) for name in ("commits", "changed_files", "additions", "deletions")},
    }


def _comment_json(comment: Json) -> Json:
    return {
        **{name: comment[name] for name in ("id", "body", "created_at")},
        "updated_at": comment["created_at"],
        "user": {"login": comment["author"]},
        "html_url": f"https://github.com/{comment['repo']}/issues/{comment['issue']}#issuecomment-{comment['id']}",
    }


def _label_of(issue: Json, branch: str) -> str:
    return f"{issue['repo'].partition('/')[0]}:{branch}"


def _issue_id(repo: str, number: int) -> str:
    return f"{repo}#{number:06}"


def _field_error(resource: str, field: str, code: str) -> GitHubRefusal:
    return GitHubRefusal(422, "Validation Failed", {"resource": resource, "field": field, "code": code})


def _page(found: Sequence[Json], request: GitHubRequest, *, newest_first: bool = False) -> list[Json]:
    size = min(int(request.query.get("per_page", USUAL_PAGE)), LARGEST_PAGE)
    begin = (int(request.query.get("page", 1)) - 1) * size
    return list(reversed(found) if newest_first else found)[begin : begin + size]


def _format_time(milliseconds: int) -> str:
    """Documented: times are to the second."""
    return f"{datetime.fromtimestamp(milliseconds // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


# Content: the repository of the team whose issues are in the demo's Linear


async def fill_github(items: ToolItemStore) -> bool:
    """Add the demo's repository once; return False if there is one already."""
    if await items.list(REPO):
        return False
    return bool(await items.change("", _put_all))


def _put_all(transaction: ToolItemTransaction) -> bool:
    if transaction.list(REPO):
        return False
    transaction.put(REPO, DEMO_REPO, {"name": DEMO_REPO, "branches": list(BRANCHES), "people": list(PEOPLE)})
    for name, about in LABELS.items():
        transaction.put(LABEL, name, {"name": name, "description": about})
    for number, issue in enumerate(ISSUES, 1):
        stamp = _format_time(transaction.now - (len(ISSUES) - number) * 9 * HOUR)
        body = {"repo": DEMO_REPO, "number": number, "created_at": stamp, "updated_at": stamp, **issue}
        transaction.put(ISSUE, _issue_id(DEMO_REPO, number), body)
    for number, (issue_number, author, text) in enumerate(COMMENTS):
        stamp = _format_time(transaction.now - (len(COMMENTS) - number) * HOUR)
        _put_comment(transaction, {"repo": DEMO_REPO, "number": issue_number}, author, text, stamp)
    return True


def _demo_issue(title: str, body: str, author: str, *assignees: str, labels: str = "", state: str = "open") -> Json:
    people = {"author": author, "assignees": list(assignees)}
    return {"title": title, "body": body, "state": state, "labels": labels.split(), **people}


def _demo_pull(title: str, body: str, author: str, branch: str, *reviewers: str) -> Json:
    size = {"commits": 3, "changed_files": 4, "additions": 61, "deletions": 18}
    branches = {"head": branch, "base": "main", "reviewers": list(reviewers)}
    return {**_demo_issue(title, body, author), **branches, **size}


PEOPLE = ("ada", "grace", "alan", "katherine")
BRANCHES = ("main", "fix-sign-in", "saved-cards", "search-index", "backup-docs")
LABELS = {
    "bug": "Something does not work",
    "enhancement": "Something new, or better than before",
    "documentation": "About the documentation",
    "security": "Handle with care",
}
ISSUES: tuple[Json, ...] = (
    _demo_issue(
        "Sign-in answers 403 after a password reset",
        "The session cookie from before the reset is still sent.",
        "grace",
        "ada",
        labels="bug security",
    ),
    _demo_issue(
        "Product pictures are cut off on small screens", "Below 360 pixels.", "alan", labels="bug", state="closed"
    ),
    _demo_pull("Clear old session cookies on a reset", "Fixes #1.", "grace", "fix-sign-in", "ada"),
    _demo_issue("Search takes two seconds for common words", "An index is missing.", "ada", "katherine"),
    _demo_pull("Pay with a saved card", "Shows the last four digits, never more.", "alan", "saved-cards"),
    _demo_issue(
        "Explain how to restore a backup", "Nobody has done it in a year.", "katherine", labels="documentation"
    ),
    _demo_issue("Rotate the keys of the payment provider", "They are 14 months old.", "alan", "ada", labels="security"),
)
COMMENTS = (
    (1, "alan", "I can reproduce it in every browser."),
    (1, "grace", "The cookie is set for the whole domain; #3 clears it."),
    (3, "ada", "Looks good so far. I would like to see a test for two devices."),
)

"""One conversation with GitHub's REST interface; whatever goes wrong in it is said in plain words."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import httpx2

from interlock.core.errors import Misconfigured, ToolFailed
from interlock.runtime.durations import rfc3339

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
    """No answer that says whether the request was carried out."""


@dataclass(frozen=True)
class GitHubAccess:
    token: str = field(repr=False)
    url: str
    transport: httpx2.AsyncBaseTransport | None = field(repr=False)

    @asynccontextmanager
    async def talk(self) -> AsyncIterator[GitHubClient]:
        """For one use of a tool. Whatever goes wrong inside is a ToolFailed, in words for people and the model."""
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
        return httpx2.create_ssl_context()  # takes a while: it reads all authorities


def make_github_access(
    settings: Mapping[str, object], transport: httpx2.AsyncBaseTransport | None
) -> GitHubAccess | None:
    """None without a token: then there are no tools."""
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
        return await self._said("GET", path, params, None)

    async def post(self, path: str, body: Json) -> Any:
        return await self._said("POST", path, {}, body)

    async def pages(self, path: str, **params: str | int) -> AsyncIterator[Json]:
        """Every item, page after page. Raises ToolFailed where there is no end: a part could be taken for the whole."""
        for page in range(1, MOST_PAGES + 1):
            items = cast(list[Json], await self.get(path, per_page=PAGE_SIZE, page=page, **params))
            for item in items:
                yield item
            if len(items) < PAGE_SIZE:
                return
        raise ToolFailed(f"{path} has more than {PAGE_SIZE * MOST_PAGES:,} new entries, too many to look through.")

    async def _said(self, method: str, path: str, params: Params, body: Json | None) -> Any:
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
        raise ToolFailed(_refusal(response, path))


def _refusal(response: httpx2.Response, path: str) -> str:
    told = _object(response)
    message = str(told.get("message") or "")[:MAX_MESSAGE]
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
            return f"GitHub refuses it: {_field_errors(told) or message or 'it gives no reason'}."
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


def _field_errors(told: Json) -> str:
    """What is wrong with which field: GitHub tells it in several ways."""
    errors = told.get("errors")
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
    """Somebody else's, who also closes it."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._transport.handle_async_request(request)

"""Client for Linear's GraphQL API: sends a document, and returns data or raises ToolFailed with a plain message."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import httpx2

from interlock.chat.tool import ToolContext
from interlock.core.errors import EffectUnknown, Misconfigured, ToolFailed

API_URL = "https://api.linear.app/graphql"
REQUEST_TIMEOUT = 20.0  # seconds
MAX_ERROR_TEXT = 300  # characters of Linear's own message
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
PERSONAL_KEY_PREFIX = "lin_api_"  # keys with this prefix are sent bare; all others are tokens
LostError = type[ToolFailed]
EFFECT_UNKNOWN = "It is not known whether Linear did it: look there before you try again."
NOTHING_DONE = "Linear did nothing."
Node = Mapping[str, Any]
T = TypeVar("T")


class LinearNotFound(ToolFailed):
    """Linear has no such entity, or this key cannot see it."""


@dataclass(frozen=True)
class LinearAccess:
    """Access to Linear; `team` is used if a call names none."""

    url: str
    key: str = field(repr=False)
    team: str = ""
    transport: httpx2.AsyncBaseTransport | None = None

    @asynccontextmanager
    async def open_client(self) -> AsyncIterator[LinearClient]:
        authorization = self.key if self.key.startswith(PERSONAL_KEY_PREFIX) else f"Bearer {self.key}"
        headers = {"authorization": authorization, "accept": "application/json"}
        async with httpx2.AsyncClient(
            headers=headers, timeout=REQUEST_TIMEOUT, transport=self.transport, verify=_tls_context()
        ) as http:
            yield LinearClient(self, http)


@lru_cache(maxsize=1)
def _tls_context() -> ssl.SSLContext:
    """Make the TLS context once: it takes 50 ms, longer than everything else here."""
    return httpx2.create_ssl_context()


def make_linear_access(context: ToolContext) -> LinearAccess | None:
    """Return the access, or None without a key; a fake transport accepts any."""
    settings = context.settings
    key = str(settings.get("key") or (f"{PERSONAL_KEY_PREFIX}demo" if context.transport else ""))
    url, team = str(settings.get("url") or API_URL), str(settings.get("team") or "")
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL_HOSTS):
        raise Misconfigured("The url of the linear tools has to begin with https://, since the key is sent there.")
    return LinearAccess(url, key, team, context.transport) if key else None


def idempotent_id(kind: str, key: str) -> str:
    """Derive the id of what a call creates, the same for every retry. Linear requires a version 4 UUID."""
    return str(UUID(bytes=sha256(f"interlock {kind} {key}".encode()).digest()[:16], version=4))


async def create_or_find(make: Callable[[], Awaitable[T]], look: Callable[[], Awaitable[T]]) -> T:
    """Create something; on an error, find it: an earlier attempt may have made it, or the response was lost.

    `look` raises if it does not exist.
    """
    try:
        return await make()
    except ToolFailed:
        with suppress(ToolFailed):
            return await look()
        raise


class LinearClient:
    def __init__(self, access: LinearAccess, http: httpx2.AsyncClient) -> None:
        self.team = access.team
        self._access = access
        self._http = http

    async def query(self, document: str, **variables: object) -> Node:
        return await self._exchange(document, variables, ToolFailed, NOTHING_DONE)

    async def mutate(self, document: str, made: str = "", /, **variables: object) -> Node:
        """Return the payload of a mutation, which the document aliases to `done`, with the object that was `made`."""
        done = get_path(await self._exchange(document, variables, EffectUnknown, EFFECT_UNKNOWN), "done")
        if not isinstance(done, Mapping) or not isinstance(done.get("success"), bool):
            raise EffectUnknown(f"Linear's answer does not say whether it did it. {EFFECT_UNKNOWN}")
        if not done["success"]:
            raise ToolFailed("Linear says that it did not do it, and gives no reason. Look at the issue in Linear.")
        if made and not isinstance(done.get(made), Mapping):
            raise EffectUnknown(f"Linear's answer holds no {made}. {EFFECT_UNKNOWN}")
        return done

    async def _exchange(
        self, document: str, variables: Mapping[str, object], lost_error: LostError, effect_hint: str
    ) -> Node:
        """Send a document; `lost_error` and `effect_hint` are used if there is no response."""
        try:
            body = {"query": document, "variables": variables}
            response = await self._http.post(self._access.url, json=body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            raise ToolFailed(f"Linear cannot be reached. {NOTHING_DONE} Try again later.") from None
        except httpx2.TimeoutException:
            raise lost_error(f"Linear did not answer within {REQUEST_TIMEOUT:.0f} seconds. {effect_hint}") from None
        except httpx2.HTTPError as error:
            raise lost_error(f"The connection to Linear broke ({type(error).__name__}). {effect_hint}") from None
        answer = _object(response)
        if errors := [error for error in _list(answer.get("errors")) if isinstance(error, Mapping)]:
            raise self._refusal(response, errors[0], lost_error, effect_hint)
        data = answer.get("data")
        if response.status_code != 200 or not isinstance(data, Mapping):
            raise self._refusal(response, {}, lost_error, effect_hint)
        return data

    def _refusal(self, response: httpx2.Response, error: Node, lost_error: LostError, effect_hint: str) -> ToolFailed:
        status, code = response.status_code, str(get_path(error, "extensions", "code") or "")
        message = str(error.get("message") or "")
        words = self._clean(str(get_path(error, "extensions", "userPresentableMessage") or message))
        if code == "RATELIMITED" or status == 429:
            return ToolFailed(
                f"Linear takes no more requests with this key for now. {NOTHING_DONE} {_retry_hint(response)}"
            )
        if code == "AUTHENTICATION_ERROR" or status == 401:
            return ToolFailed(f"Linear does not take the key. {NOTHING_DONE} An admin has to set a valid one.")
        if code == "FORBIDDEN" or status == 403:
            return ToolFailed(f"The key may not do this in Linear. {NOTHING_DONE} {words}".rstrip())
        if message.startswith("Entity not found"):
            return LinearNotFound(words)
        if status >= 500 or code in ("INTERNAL_SERVER_ERROR", "INTERNAL_ERROR") or not words:
            return lost_error(f"Linear failed (HTTP {status}). {effect_hint} {words}".rstrip())
        return ToolFailed(f"Linear refused: {words}")

    def _clean(self, words: str) -> str:
        words = " ".join(words.replace(self._access.key, "…").split())
        return words if len(words) <= MAX_ERROR_TEXT else f"{words[:MAX_ERROR_TEXT]}…"


def require_object(value: object, what: str) -> Node:
    """Return the object that was requested or created; raise if the response has none."""
    if not isinstance(value, Mapping):
        raise ToolFailed(f"Linear's answer holds no {what}. Look in Linear before you try again.")
    return value


def get_path(value: object, *path: str) -> object:
    """Return the value at a path, or None if it does not exist."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def get_text(value: object, *path: str) -> str:
    found = get_path(value, *path)
    return found if isinstance(found, str) else ""


def get_nodes(value: object, *path: str) -> list[Node]:
    return [node for node in _list(get_path(value, *path, "nodes")) if isinstance(node, Mapping)]


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _object(response: httpx2.Response) -> Node:
    try:
        answer = response.json()
    except ValueError:
        return {}
    return answer if isinstance(answer, Mapping) else {}


def _retry_hint(response: httpx2.Response) -> str:
    """Return when to retry; Linear sends the time in seconds or milliseconds since 1970."""
    stamp = response.headers.get("x-ratelimit-requests-reset", "")
    if not stamp.isascii() or not stamp.isdigit() or not 0 < int(stamp) < 10**14:
        return "Try again later."
    seconds = int(stamp) / (1000 if len(stamp) > 11 else 1)
    return f"Try again after {datetime.fromtimestamp(seconds, UTC):%H:%M} UTC."

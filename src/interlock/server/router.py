"""The outermost router, and the declarations of the ASGI routes, which it serves without the framework.

Size and time are limited before anything is parsed; then come the ASGI routes, then FastAPI. An ASGI route is declared
once: the router, the role checks and the OpenAPI document use the declaration.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import getdoc
from types import MethodType
from typing import Any, NamedTuple, get_type_hints

from pydantic import BaseModel

from interlock.core.canonical import MAX_BYTES
from interlock.core.errors import Error, InvalidRequest, StoreUnavailable, TooManyRequests
from interlock.server.auth import check_allowed
from interlock.server.http import (
    MINIMAL_HEADERS,
    SECURITY_HEADERS,
    AsgiApp,
    AsgiMessage,
    BodyTooLarge,
    Header,
    HttpRequest,
    HttpResponse,
    Receive,
    RequestTimeout,
    Scope,
    Send,
    UnsupportedMediaType,
    error_response,
    is_json,
    read_json,
    send_response,
    validate_model,
)
from interlock.server.idempotency import IdempotencyHandler, supports_idempotency
from interlock.server.middleware import Deadlines, HostAndCorsPolicy, preflight_response, with_cors_headers
from interlock.server.state import ServerState

BODY_TIMEOUT = 10.0  # seconds for a whole body to arrive
MAX_DRAINED = 16 * 1024 * 1024  # bytes of a body that is too large, which are read and discarded
DRAIN_TIMEOUT = 10.0
MAX_STREAMS = 10_000  # in one process
SINGLE_HEADERS = (
    b"authorization",
    b"content-length",
    b"content-type",
    b"cookie",
    b"host",
    b"idempotency-key",
    b"interlock-link",
    b"origin",
    b"x-api-key",
)
_KEYED_TEMPLATE = re.compile(r"/api/[^/{]+/\{[^/]+\}(/[^/{]+)?")  # found by key; routes of other shapes one by one
Handler = Callable[..., Awaitable[HttpResponse]]
StreamHandler = Callable[..., Awaitable[None]]
Model = type[BaseModel]


class Router:
    def __init__(
        self,
        state: ServerState,
        idempotency: IdempotencyHandler,
        routes: Collection[AsgiRoute],
        fallback: AsgiApp,
        host_policy: HostAndCorsPolicy,
    ) -> None:
        self._counters, self._stopping = state.counters, state.stopping
        self._auth = state.auth
        self._idempotency = idempotency
        self._fallback = fallback
        self._deadlines = Deadlines()
        self._host_policy = host_policy
        self._static_routes = {(each.method, each.template): each for each in routes if "{" not in each.template}
        varying = [(each, each.template.split("/")) for each in routes if "{" in each.template]
        self._keyed_routes = {
            _route_key(each.method, parts): each for each, parts in varying if _KEYED_TEMPLATE.fullmatch(each.template)
        }
        self._other_routes = [(each, parts) for each, parts in varying if not _KEYED_TEMPLATE.fullmatch(each.template)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": 1008})
            case _:
                await self._fallback(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = self._host_policy.allowed_origin(scope["headers"])
        if origin and scope["method"] == "OPTIONS":
            await send_response(send, preflight_response(origin, scope["headers"]), SECURITY_HEADERS)
            return
        send = with_cors_headers(origin, send) if origin else send
        try:
            route, values = self._match_route(scope)
            request = scope["interlock"] = await self._read(scope, receive, route)
            request.path_params = values
            if b"idempotency-key" in request.headers and supports_idempotency(request):
                response = await self._idempotency(request, partial(self._serve, request, route, receive), send)
                if response is not None:
                    await send_response(send, response, SECURITY_HEADERS)
            else:
                await self._serve(request, route, receive, send)
        except BodyTooLarge as error:
            await self._send_and_drain(error_response(error), receive, send)
        except Error as error:
            await send_response(send, error_response(error), SECURITY_HEADERS)

    async def _send_and_drain(self, response: HttpResponse, receive: Receive, send: Send) -> None:
        """Answer at once, and close the connection after the rest of the body: else the client would lose the response.

        The rest is limited in size and time.
        """
        ended, left = False, MAX_DRAINED

        async def held(message: AsgiMessage) -> None:
            await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

        await send_response(held, response, SECURITY_HEADERS)
        with suppress(TimeoutError), self._deadlines.timeout(DRAIN_TIMEOUT):
            while not ended and left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                ended = not message.get("more_body")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _serve(self, request: HttpRequest, route: AsgiRoute | None, receive: Receive, send: Send) -> None:
        try:
            if route is None:
                await self._forward(request, receive, send)
                return
            request.principal = await self._auth.authenticate(request)
            check_allowed(request.principal, route.roles)
            given: tuple[Any, ...] = ()
            if route.body is not None:
                given = (await request.parse_body(route.body, route.max_body),)
            elif route.query is not None:
                asked = request.scope.get("query_string")
                given = (validate_model(route.query, request.query) if asked else route.default_query,)
            if route.streams:
                await self._serve_stream(route, request, receive, send, given)
            else:
                await send_response(send, await route.handle(request, *given), MINIMAL_HEADERS)
        except Error as error:
            await send_response(send, error_response(error), SECURITY_HEADERS)

    async def _serve_stream(
        self, route: AsgiRoute, request: HttpRequest, receive: Receive, send: Send, given: tuple[Any, ...]
    ) -> None:
        if self._stopping.is_set():
            raise StoreUnavailable("This server is about to stop. Connect again.")
        if self._counters.streams >= MAX_STREAMS:
            raise TooManyRequests(f"{MAX_STREAMS:,} event streams are open. Try again later.", retry_after=15)
        self._counters.streams += 1
        try:
            await route.handle(request, receive, send, *given)
        finally:
            self._counters.streams -= 1

    def _match_route(self, scope: Scope) -> tuple[AsgiRoute | None, tuple[str, ...]]:
        """The route, and the parameters in its path."""
        method, path = scope["method"], scope["path"]
        parts = path.split("/")
        fixed = self._static_routes.get((method, path))
        route = fixed or self._keyed_routes.get(_route_key(method, parts))
        if route is None:
            return self._match_other_route(scope, parts)
        scope["template"] = route.template
        return route, () if fixed else tuple(parts[3:4])

    def _match_other_route(self, scope: Scope, parts: list[str]) -> tuple[AsgiRoute | None, tuple[str, ...]]:
        """A route of any other shape, of which there are few."""
        for route, names in self._other_routes:
            if route.method == scope["method"] and len(names) == len(parts):
                varying = [name.startswith("{") for name in names]
                if all(is_value or name == part for name, part, is_value in zip(names, parts, varying, strict=True)):
                    scope["template"] = route.template
                    return route, tuple(part for part, is_value in zip(parts, varying, strict=True) if is_value)
        return None, ()

    async def _read(self, scope: Scope, receive: Receive, route: AsgiRoute | None) -> HttpRequest:
        headers = _headers(scope)
        self._host_policy.check_host(headers)
        if b"content-encoding" in headers:
            raise UnsupportedMediaType("Compressed bodies are not taken. Send it plain.")
        length = headers.get(b"content-length")
        if length is None and b"transfer-encoding" not in headers:
            return HttpRequest(scope, headers, b"", receive)
        max_bytes = MAX_BYTES if route is None else route.max_body
        size = MAX_BYTES if length is None else _content_length(length, max_bytes)
        if size > MAX_BYTES and route is not None:
            check_allowed(await self._auth.authenticate(HttpRequest(scope, headers, b"", receive)), route.roles)
        return HttpRequest(scope, headers, await _read_body(receive, self._deadlines, max(size, MAX_BYTES)), receive)

    async def _forward(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Forward to FastAPI, with the body that was read; its response gets our headers."""
        if request.body and is_json(request.headers):
            await read_json(request.body)  # FastAPI's own parser accepts more than we do
        given = False

        async def replay() -> AsgiMessage:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def covered(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                set_by_route = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in SECURITY_HEADERS if h[0] not in set_by_route)]
            await send(message)

        await self._fallback(request.scope, replay, covered)


def _headers(scope: Scope) -> dict[bytes, bytes]:
    listed: list[Header] = scope["headers"]
    headers = dict(listed)
    if len(headers) != len(listed):
        names = [name for name, _ in listed]
        for name in SINGLE_HEADERS:
            if names.count(name) > 1:
                raise InvalidRequest(f"The header {name.decode()} is there twice. Send it once.")
    return headers


def _content_length(length: bytes, max_bytes: int) -> int:
    if not length.isdigit() or int(length) > max_bytes:
        raise _too_large(max_bytes)
    return int(length)


async def _read_body(receive: Receive, deadlines: Deadlines, max_bytes: int) -> bytes:
    try:
        with deadlines.timeout(BODY_TIMEOUT):
            message = await receive()
            body: bytes = message.get("body", b"")
            if len(body) > max_bytes:
                raise _too_large(max_bytes)
            return await _read_rest(body, receive, max_bytes) if message.get("more_body") else body
    except TimeoutError:
        raise RequestTimeout(f"The body did not arrive within {BODY_TIMEOUT:.0f} seconds. Send it again.") from None


async def _read_rest(body: bytes, receive: Receive, max_bytes: int) -> bytes:
    parts, size, more = [body], len(body), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestTimeout("The body ended before its end.")
        part: bytes = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > max_bytes:
            raise _too_large(max_bytes)
        more = bool(message.get("more_body"))
    return b"".join(parts)


def _too_large(max_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(f"A body has at most {max_bytes:,} bytes. Store large values elsewhere and pass a reference.")


def _route_key(method: str, parts: list[str]) -> tuple[str, int, str, str]:
    """The key of a route with `_KEYED_TEMPLATE`."""
    match parts:
        case ["", "api", name, _]:
            return method, 4, name, ""
        case ["", "api", name, _, verb]:
            return method, 5, name, verb
        case _:
            return method, 0, "", ""


# Declarations


class RouteDocs(NamedTuple):
    """What only the OpenAPI document needs; `responses` are the successful ones, by status."""

    tag: str
    responses: dict[int | str, dict[str, Any]]
    error_statuses: tuple[int, ...]
    body: Model | None = None
    query: Model | None = None
    text: str = ""


class AsgiRoute(NamedTuple):
    """A route without a framework; `template` is its path in the OpenAPI document.

    The router parses the `body` or the `query` of a request and passes it to the handler; for a request without a
    query, that is `default_query`. If `max_body` is larger than usual, the caller is authenticated before a large body
    is read. A handler that `streams` sends its response itself.
    """

    method: str
    template: str
    roles: frozenset[str]
    handle: Callable[..., Awaitable[Any]]
    docs: RouteDocs
    body: Model | None = None
    query: Model | None = None
    default_query: BaseModel | None = None
    max_body: int = MAX_BYTES
    streams: bool = False


@dataclass(frozen=True)
class AsgiRouter:
    """Decorators for the methods of a class that is made with the server's state; `tag` is the group of its routes.

    As in FastAPI, the docstring of a handler describes its route, and the type of its parameter `body` or `query` is
    what a request is parsed as. The decorator names the model instead if the handler parses a request itself.
    """

    tag: str

    def route(
        self,
        method: str,
        template: str,
        roles: frozenset[str],
        response: Any,
        *,
        errors: tuple[int, ...] = (),
        body: Model | None = None,
        max_body: int = MAX_BYTES,
    ) -> Callable[[Handler], AsgiRoute]:
        """A handler that takes the request, and its `body` or `query`; `response` is the model of its response."""
        docs = RouteDocs(self.tag, {200: {"model": response}}, errors, body)
        return lambda handle: _declare(method, template, roles, handle, docs)._replace(max_body=max_body)

    def stream(
        self,
        method: str,
        template: str,
        roles: frozenset[str],
        response: str,
        *,
        errors: tuple[int, ...] = (),
        query: Model | None = None,
        no_content: str = "",
    ) -> Callable[[StreamHandler], AsgiRoute]:
        """A handler that takes the request, `receive`, `send`, and its `body`; `response` describes the event stream.

        `no_content` says when there is none, and the status is 204.
        """
        content = {"text/event-stream": {"schema": {"type": "object"}}}  # the schema of each event
        responses: dict[int | str, dict[str, Any]] = {200: {"description": response, "content": content}}
        if no_content:
            responses[204] = {"description": no_content}
        docs = RouteDocs(self.tag, responses, errors, query=query)
        return lambda handle: _declare(method, template, roles, handle, docs)._replace(streams=True)


def declared_routes(handlers: type) -> list[AsgiRoute]:
    """The routes of a class, in the order of their declarations."""
    return [each for each in vars(handlers).values() if isinstance(each, AsgiRoute)]


def bind_routes(handlers: object) -> list[AsgiRoute]:
    """The routes of an object, ready to be served."""
    return [each._replace(handle=MethodType(each.handle, handlers)) for each in declared_routes(type(handlers))]


def _declare(
    method: str, template: str, roles: frozenset[str], handle: Callable[..., Awaitable[Any]], docs: RouteDocs
) -> AsgiRoute:
    hints = get_type_hints(handle)
    body, query = hints.get("body"), hints.get("query")
    text = " ".join((getdoc(handle) or "").split())
    docs = docs._replace(text=text, body=body or docs.body, query=query or docs.query)
    default_query = query() if query else None
    return AsgiRoute(method, template, roles, handle, docs, body=body, query=query, default_query=default_query)

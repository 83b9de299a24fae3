"""Middleware for every request: request ids, timeouts, trusted proxies, host names, CORS."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from itertools import count
from time import perf_counter
from types import TracebackType
from urllib.parse import urlsplit

from interlock.core.errors import Error
from interlock.server.http import (
    SECURITY_HEADERS,
    AsgiApp,
    AsgiMessage,
    Header,
    HttpRequest,
    HttpResponse,
    MisdirectedRequest,
    Receive,
    Scope,
    Send,
    error_response,
    send_response,
)
from interlock.server.state import OTHER_ROUTE, ServerState

CHECK_INTERVAL = 0.5  # seconds by which a deadline may be late


class Deadlines:
    def __init__(self) -> None:
        self._open: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def timeout(self, seconds: float) -> Deadline:
        """A context manager for use inside a task: cancels its block after so many seconds, and raises TimeoutError."""
        return Deadline(self, seconds)

    def add(self, each: Deadline) -> None:
        self._open[each] = None
        if self._timer is None:
            self._timer = each.loop.call_later(CHECK_INTERVAL, self._look)

    def remove(self, each: Deadline) -> None:
        self._open.pop(each, None)

    def _look(self) -> None:
        self._timer = None
        for each in [each for each in self._open if each.loop.time() >= each.expires_at]:
            self.remove(each)
            each.expire()
        if self._open:
            first = next(iter(self._open))
            self._timer = first.loop.call_later(CHECK_INTERVAL, self._look)


class Deadline:
    __slots__ = ("_deadlines", "_gave_up", "_seconds", "_task", "expires_at", "loop")

    def __init__(self, deadlines: Deadlines, seconds: float) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._gave_up = False

    def __enter__(self) -> Deadline:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a request is a task
        self._task, self.loop = task, task.get_loop()
        self.expires_at = self.loop.time() + self._seconds
        self._deadlines.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._deadlines.remove(self)
        if self._gave_up and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def cancel(self) -> None:
        """Lift the time limit."""
        self._deadlines.remove(self)

    def expire(self) -> None:
        self._gave_up = True
        self._task.cancel()


PREFLIGHT_MAX_AGE = 600  # seconds for which a browser may cache a preflight
EXPOSED_HEADERS = b"content-location, etag, retry-after, x-request-id, x-thread-id, x-vercel-ai-ui-message-stream"
ALLOWED_METHODS = b"GET, POST, PUT, PATCH, DELETE"
_HOST = re.compile(rb"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?")
_HEADER_NAMES = re.compile(rb"[A-Za-z0-9_, -]{0,1000}")


@dataclass(frozen=True)
class HostAndCorsPolicy:
    """`origins` are pages of other sites. They use a key: a browser sends no cookie of ours for them."""

    hosts: frozenset[str]
    origins: frozenset[bytes] = frozenset()

    def check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse unknown host names, against DNS rebinding: a browser would take us for the site of that name."""
        name = _host_name(headers.get(b"host", b""))
        if name in self.hosts or _is_ip_address(name):
            return
        raise MisdirectedRequest(
            "This server does not go by this name. Set server.public_url to the address that people use."
        )

    def allowed_origin(self, headers: Iterable[Header]) -> bytes:
        """The request's Origin if it is an allowed one, else empty."""
        if not self.origins:
            return b""
        return next((value for name, value in headers if name == b"origin" and value in self.origins), b"")


def make_host_and_cors_policy(host: str, public_url: str, origins: Iterable[str] = ()) -> HostAndCorsPolicy:
    """Host names only: a port is of no use to an attacker."""
    hosts = frozenset({"localhost", host.lower(), urlsplit(public_url).hostname or "localhost"})
    return HostAndCorsPolicy(hosts, frozenset(origin.encode() for origin in origins))


def preflight_response(origin: bytes, headers: Iterable[Header]) -> HttpResponse:
    """The answer to a CORS preflight; permissions are checked with the request itself."""
    wanted = dict(headers).get(b"access-control-request-headers", b"")
    more: tuple[Header, ...] = (
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-methods", ALLOWED_METHODS),
        (b"access-control-allow-headers", wanted if _HEADER_NAMES.fullmatch(wanted) else b""),
        (b"access-control-max-age", b"%d" % PREFLIGHT_MAX_AGE),
        (b"vary", b"origin"),
    )
    return HttpResponse(204, b"", more)


def with_cors_headers(origin: bytes, send: Send) -> Send:
    """Add the CORS headers that let the page read the response."""
    more = (
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", EXPOSED_HEADERS),
        (b"vary", b"origin"),
    )

    async def told(message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *more]
        await send(message)

    return told


@lru_cache(maxsize=100)
def _host_name(host: bytes) -> str:
    """The host name without its port; empty if it is invalid."""
    found = _HOST.fullmatch(host.lower())
    return (found[1] or found[2] or b"").decode() if found else ""


@lru_cache(maxsize=100)
def _is_ip_address(name: str) -> bool:
    """Whether it is an IP address, which unlike a name cannot be pointed elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


RESPONSE_TIMEOUT = 90.0  # seconds until a response has to begin: longer than any long poll
REFUSED_STATUSES = frozenset({401, 403, 408, 413, 421, 429, 503})
# With an https address: only https from then on, and the web app uses no device features.
HTTPS_HEADERS: tuple[Header, ...] = (
    (b"strict-transport-security", b"max-age=31536000"),
    (b"permissions-policy", b"camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_REQUEST_ID = re.compile(rb"[A-Za-z0-9_-]{1,64}")


class RequestMiddleware:
    def __init__(self, state: ServerState, inner: AsgiApp) -> None:
        self._counters, self._log = state.counters, state.log
        self._inner = inner
        self._deadlines = Deadlines()
        self._proxies = TrustedProxies(state.settings.server.proxies)
        self._prefix = secrets.token_hex(6).encode()
        self._extra_headers = HTTPS_HEADERS if state.settings.server.public_url.startswith("https://") else ()
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        self._proxies.resolve(scope)
        request_scope = RequestScope(scope, send, self._request_id(scope), self._extra_headers)
        scope["request_id"] = request_scope.id
        try:
            with self._deadlines.timeout(RESPONSE_TIMEOUT) as request_scope.deadline:
                await self._inner(scope, receive, request_scope.send)
        except TimeoutError as error:
            await self._send_failure(request_scope, error, ResponseTimeout("This request timed out. Try again later."))
        except Exception as error:  # noqa: BLE001  any failure is answered as an internal error
            await self._send_failure(request_scope, error, internal_error())
        finally:
            self._note(request_scope)

    def _request_id(self, scope: Scope) -> bytes:
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
                given: bytes = value
                return given
        return b"%b-%x" % (self._prefix, next(self._numbers))

    async def _send_failure(self, request_scope: RequestScope, error: Exception, public_error: Error) -> None:
        request_scope.deadline = None  # it has ended
        self._counters.failures += 1
        self._log.write_exception("request_failed", error, **request_scope.log_fields())
        if not request_scope.status:  # else the response has begun, and is cut off
            public_error.ids["request_id"] = request_scope.id.decode()
            await send_response(request_scope.send, error_response(public_error), SECURITY_HEADERS)

    def _note(self, request_scope: RequestScope) -> None:
        self._counters.record_request(
            (request_scope.method, request_scope.template, request_scope.status), perf_counter() - request_scope.begun
        )
        if self._log.every_request:
            self._log.write_limited("info", "request", **request_scope.log_fields())
        elif request_scope.status in REFUSED_STATUSES and self._log.logs_refusals:
            self._log.write_limited("warning", "request_refused", **request_scope.log_fields())


class RequestScope:
    """One request and its response; `status` is 0 until the response begins."""

    __slots__ = ("_extra_headers", "_scope", "_send", "begun", "deadline", "id", "status")

    def __init__(self, scope: Scope, send: Send, request_id: bytes, more: tuple[Header, ...] = ()) -> None:
        self._scope = scope
        self._extra_headers = more
        self._send = send
        self.id = request_id
        self.begun = perf_counter()
        self.deadline: Deadline | None = None
        self.status = 0

    async def send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], (b"x-request-id", self.id), *self._extra_headers]
            if self.deadline is not None:
                self.deadline.cancel()  # a response may go on for as long as it is read
                self.deadline = None
        await self._send(message)

    @property
    def method(self) -> str:
        method: str = self._scope["method"]
        return method if method in KNOWN_METHODS else OTHER_ROUTE

    @property
    def template(self) -> str:
        """The path template of the route, so that no id is in it."""
        found = self._scope.get("template") or getattr(self._scope.get("route"), "path", OTHER_ROUTE)
        return str(found)

    def log_fields(self) -> dict[str, object]:
        """Fields for the log: without the path, which can hold anything."""
        request: HttpRequest | None = self._scope.get("interlock")
        principal = request.principal if request is not None else None
        client = self._scope.get("client")
        return {
            "request_id": self.id.decode(),
            "method": self.method,
            "route": self.template,
            "status": self.status,
            "ms": round((perf_counter() - self.begun) * 1000, 1),
            "workspace": principal.workspace if principal else None,
            "role": principal.role if principal else None,
            "address": client[0] if client else None,
        }


KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class InternalError(Error):
    code, status = "internal", 500


def internal_error() -> InternalError:
    return InternalError("Something is wrong with the server; this was not your doing. Its log knows more by this id.")


class ResponseTimeout(Error):
    code, status = "too_long", 503


class TrustedProxies:
    """Trusted reverse proxies; `addresses` are IP addresses or networks such as 10.0.0.0/8."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(each, strict=False) for each in addresses]

    def resolve(self, scope: Scope) -> None:
        """Replace the proxy's address by the client's: the last in X-Forwarded-For that is not a trusted proxy."""
        client = scope.get("client")
        if not self._networks or not client or not self._is_ours(client[0]):
            return
        hops = [each.strip() for each in _forwarded_for(scope["headers"]).split(",") if each.strip()]
        for hop in reversed(hops):
            if not _is_ip_address(hop):
                return  # a proxy that forwards an invalid address cannot be trusted
            scope["client"] = (hop, 0)
            if not self._is_ours(hop):
                return

    def _is_ours(self, address: str) -> bool:
        if not _is_ip_address(address):
            return False
        parsed = ip_address(address)
        return any(parsed in network for network in self._networks)


def _forwarded_for(headers: list[Header]) -> str:
    return b",".join(value for name, value in headers if name == b"x-forwarded-for").decode("latin-1")

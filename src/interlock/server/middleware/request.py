"""Around every request: an id, a limit of time, a count, a line in the log, and an answer whatever goes wrong."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from itertools import count
from time import perf_counter

from interlock.core.errors import Error
from interlock.server.counters import OTHER_ROUTE
from interlock.server.http import (
    AsgiApp,
    AsgiMessage,
    Header,
    HttpRequest,
    Receive,
    Scope,
    Send,
    error_response,
    send_response,
)
from interlock.server.middleware.deadlines import Deadline, Deadlines
from interlock.server.router import SECURITY_HEADERS
from interlock.server.state import ServerState

RESPONSE_TIMEOUT = 90.0  # seconds until an answer has to begin: longer than any long poll
REFUSED_STATUSES = frozenset({401, 403, 408, 413, 421, 429, 503})
# Where people reach it by https: nowhere else from then on, and the page uses nothing of the device.
HTTPS_HEADERS: tuple[Header, ...] = (
    (b"strict-transport-security", b"max-age=31536000"),
    (b"permissions-policy", b"camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_REQUEST_ID = re.compile(rb"[A-Za-z0-9_-]{1,64}")


class RequestMiddleware:
    def __init__(self, site: ServerState, inner: AsgiApp) -> None:
        self._meters, self._log = site.meters, site.log
        self._inner = inner
        self._deadlines = Deadlines()
        self._proxies = TrustedProxies(site.settings.server.proxies)
        self._prefix = secrets.token_hex(6).encode()
        self._more = HTTPS_HEADERS if site.settings.server.public_url.startswith("https://") else ()
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        self._proxies.resolve(scope)
        visit = RequestScope(scope, send, self._request_id(scope), self._more)
        scope["request_id"] = visit.id
        try:
            with self._deadlines.within(RESPONSE_TIMEOUT) as visit.limit:
                await self._inner(scope, receive, visit.send)
        except TimeoutError as error:
            await self._broken(
                visit, error, ResponseTimeout("This took too long and was given up. Try again in a while.")
            )
        except Exception as error:  # noqa: BLE001  whatever it was, who asked is told that it was not their doing
            await self._broken(visit, error, internal_error())
        finally:
            self._note(visit)

    def _request_id(self, scope: Scope) -> bytes:
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
                given: bytes = value
                return given
        return b"%b-%x" % (self._prefix, next(self._numbers))

    async def _broken(self, visit: RequestScope, error: Exception, told: Error) -> None:
        visit.limit = None  # it is over
        self._meters.failures += 1
        self._log.failed("request_failed", error, **visit.facts())
        if not visit.status:  # else it has begun, and ends where it is
            told.ids["request_id"] = visit.id.decode()
            await send_response(visit.send, error_response(told), SECURITY_HEADERS)

    def _note(self, visit: RequestScope) -> None:
        self._meters.answered((visit.method, visit.template, visit.status), perf_counter() - visit.begun)
        if self._log.every_request:
            self._log.request("info", "request", **visit.facts())
        elif visit.status in REFUSED_STATUSES and self._log.problems:
            self._log.request("warning", "request_refused", **visit.facts())


class RequestScope:
    """One request on its way; `status` is 0 until the answer begins."""

    __slots__ = ("_more", "_scope", "_send", "begun", "id", "limit", "status")

    def __init__(self, scope: Scope, send: Send, request_id: bytes, more: tuple[Header, ...] = ()) -> None:
        self._scope = scope
        self._more = more
        self._send = send
        self.id = request_id
        self.begun = perf_counter()
        self.limit: Deadline | None = None
        self.status = 0

    async def send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], (b"x-request-id", self.id), *self._more]
            if self.limit is not None:
                self.limit.lift()  # an answer may go on for as long as it is read
                self.limit = None
        await self._send(message)

    @property
    def method(self) -> str:
        method: str = self._scope["method"]
        return method if method in KNOWN_METHODS else OTHER_ROUTE

    @property
    def template(self) -> str:
        """Of the route, so that no id is in it."""
        found = self._scope.get("template") or getattr(self._scope.get("route"), "path", OTHER_ROUTE)
        return str(found)

    def facts(self) -> dict[str, object]:
        """What may be told of it: not its path, which can hold anything."""
        asked: HttpRequest | None = self._scope.get("interlock")
        principal = asked.principal if asked is not None else None
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
    """`addresses` are those of the proxies, or networks such as 10.0.0.0/8."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(each, strict=False) for each in addresses]

    def resolve(self, scope: Scope) -> None:
        """Puts the client's own address in the place of the proxy's: the last one that is no proxy of ours."""
        client = scope.get("client")
        if not self._networks or not client or not self._is_ours(client[0]):
            return
        hops = [each.strip() for each in _forwarded_for(scope["headers"]).split(",") if each.strip()]
        for hop in reversed(hops):
            if not _is_ip_address(hop):
                return  # a proxy that writes what is no address cannot be believed
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


def _is_ip_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True

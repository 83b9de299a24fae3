"""Idempotency keys: a retry with the same Idempotency-Key gets the stored response of the first request."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import NamedTuple, Protocol

from interlock.core.errors import Conflict, Unauthenticated
from interlock.core.identity import Principal
from interlock.server.auth import Auth
from interlock.server.http import (
    JSON_TYPE,
    AsgiMessage,
    HttpRequest,
    HttpResponse,
    Send,
    error_response,
    idempotency_key,
)
from interlock.server.quotas import QuotaEnforcer
from interlock.storage.tables.idempotency import IdempotencyKey, IdempotencyRecord

REPLAYED_HEADER = (b"idempotency-replayed", b"true")
RETRYABLE_STATUSES = frozenset({408, 425, 429})  # errors that mean "later": a retry must be executed, not replayed
_EXCLUDED_PATHS = re.compile(
    r"/api/session.*|/api/links/.*|/api/calls/[^/]+/start|/api/pauses/claim|/api/chat"
)  # these detect retries themselves, set a cookie, or return what must not be stored
_SECRET_PATHS = re.compile(r"/api/(keys|me/keys|users/[^/]+/link)")  # responses that are shown once and never stored

Serve = Callable[[Send], Awaitable[None]]


class IdempotencyMismatch(Conflict):
    code = "idempotency_mismatch"


class RequestInProgress(Conflict):
    code = "in_progress"


class SecretAlreadyShown(Conflict):
    code = "answered_once"


class IdempotencyReservation(NamedTuple):
    """The right to execute the request and store its response."""

    key: IdempotencyKey
    token: bytes


class ResponseStore(Protocol):
    async def reserve(self, idempotency_key: IdempotencyKey, digest: str) -> IdempotencyRecord: ...
    async def save(self, idempotency_key: IdempotencyKey, token: bytes, status: int, body: bytes) -> None: ...
    async def release(self, idempotency_key: IdempotencyKey, token: bytes) -> None: ...


def supports_idempotency(request: HttpRequest) -> bool:
    return request.method == "POST" and not _EXCLUDED_PATHS.fullmatch(request.path)


class IdempotencyHandler:
    def __init__(self, responses: ResponseStore, auth: Auth, quotas: QuotaEnforcer) -> None:
        self._responses = responses
        self._quotas = quotas
        self._auth = auth
        self._in_flight: dict[IdempotencyKey, asyncio.Event] = {}

    async def __call__(self, request: HttpRequest, serve: Serve, send: Send) -> HttpResponse | None:
        """Reserve the key, serve the request, store the response, then send it.

        In this order, so that a client that got a response gets the same one for a retry. Returns the stored response,
        or None after the request was served.
        """
        key, principal = idempotency_key(request), await self._principal(request)
        if principal is None:
            await serve(send)
            return None
        slot = idempotency_slot(principal, key)
        first = self._in_flight.get(slot)
        if first is not None:  # a concurrent retry waits, and gets the same response
            await first.wait()
            return await self._reserve_or_replay(request, principal, slot, serve, send)
        done = self._in_flight[slot] = asyncio.Event()
        try:
            return await self._reserve_or_replay(request, principal, slot, serve, send)
        finally:
            del self._in_flight[slot]
            done.set()

    async def _reserve_or_replay(
        self, request: HttpRequest, principal: Principal, idempotency_key: IdempotencyKey, serve: Serve, send: Send
    ) -> HttpResponse | None:
        kept = await self._responses.reserve(idempotency_key, request_digest(request))
        if not kept.reservation_token:
            return _replay(request, kept)
        await self._serve_and_store(
            request, principal, IdempotencyReservation(idempotency_key, kept.reservation_token), serve, send
        )
        return None

    async def _principal(self, request: HttpRequest) -> Principal | None:
        """The caller, or None: responses without authentication are not stored, and the route itself refuses."""
        try:
            return await self._auth.authenticate(request)
        except Unauthenticated:
            return None

    async def _serve_and_store(
        self, request: HttpRequest, principal: Principal, reservation: IdempotencyReservation, serve: Serve, send: Send
    ) -> None:
        buffer = ResponseBuffer(send)
        idempotency_key, token = reservation
        try:
            await serve(buffer)
        except BaseException:
            await self._responses.release(idempotency_key, token)
            raise
        if (
            not buffer.is_final
            or not request.is_cacheable
            or not self._quotas.may_store_response(principal, len(buffer.body))
        ):
            await self._responses.release(idempotency_key, token)
        elif _SECRET_PATHS.fullmatch(request.path) and buffer.status < 400:
            await self._responses.save(idempotency_key, token, *_secret_shown_response())
        else:
            await self._responses.save(idempotency_key, token, buffer.status, buffer.body)
        await buffer.flush()


class ResponseBuffer:
    """Holds a JSON response back until it is stored; any other response passes through at once."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[AsgiMessage] = []
        self._is_json = True
        self.status = 0
        self.body = b""

    @property
    def is_final(self) -> bool:
        return self._is_json and 200 <= self.status < 500 and self.status not in RETRYABLE_STATUSES

    async def __call__(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            kinds = [value for name, value in message["headers"] if name == b"content-type"]
            self._is_json = not kinds or kinds[0].startswith(JSON_TYPE)
        if not self._is_json:
            await self._send(message)
            return
        self._held.append(message)
        self.body += message.get("body", b"")

    async def flush(self) -> None:
        for message in self._held:
            await self._send(message)


def idempotency_slot(principal: Principal, key: str) -> IdempotencyKey:
    """The idempotency slot of a caller, with the role: a key with fewer rights must not get responses to one with more.

    For agents it also has the owner of their calls: two keys may have the same name.
    """
    who = principal.owner if principal.is_agent else principal.actor
    return IdempotencyKey(principal.workspace, f"{principal.role}:{who}", key)


def request_digest(request: HttpRequest) -> str:
    query: bytes = request.scope.get("query_string", b"")
    return sha256(b"\0".join((request.path.encode(), query, request.body))).hexdigest()


def _replay(request: HttpRequest, kept: IdempotencyRecord) -> HttpResponse:
    if kept.digest != request_digest(request):
        raise IdempotencyMismatch("This Idempotency-Key was used for another request. Use a new one.")
    if not kept.status:
        raise RequestInProgress(
            "The first request with this Idempotency-Key is still being worked on. Try again in a second."
        )
    return HttpResponse(kept.status, kept.body, (REPLAYED_HEADER,))


def _secret_shown_response() -> tuple[int, bytes]:
    message = (
        "This was done already, and the answer held a secret that is shown once and not kept. If it got lost, revoke "
        "what was made and make another, with a new Idempotency-Key."
    )
    response = error_response(SecretAlreadyShown(message))
    return response.status, response.body

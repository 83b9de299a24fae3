"""Requests that may be sent again: with an Idempotency-Key the first one is done, and its answer is given again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import NamedTuple, Protocol

from interlock.core.errors import Conflict, Unauthenticated
from interlock.core.identity import Principal
from interlock.server.auth import Auth
from interlock.server.http import JSON, Answer, Asked, Message, Send, error_answer, idempotency_key
from interlock.server.quotas import QuotaKeeper
from interlock.storage.tables.idempotency import Kept, Place

REPLAYED = (b"idempotency-replayed", b"true")
PASSING = frozenset({408, 425, 429})  # errors that say "later": the next try must be a try
_BY_THEMSELVES = re.compile(
    r"/api/session.*|/api/links/.*|/api/calls/[^/]+/start|/api/pauses/claim|/api/chat"
)  # they know what is sent again, set a cookie, or give what must not be kept
_SECRET = re.compile(r"/api/(keys|me/keys|users/[^/]+/link)")  # answers that are shown once and never stored

Serve = Callable[[Send], Awaitable[None]]


class Mismatch(Conflict):
    code = "idempotency_mismatch"


class InProgress(Conflict):
    code = "in_progress"


class AnsweredOnce(Conflict):
    code = "answered_once"


class Claim(NamedTuple):
    """The right to work an answer out."""

    place: Place
    mark: bytes


class Answers(Protocol):
    async def claim(self, place: Place, digest: str) -> Kept: ...
    async def keep(self, place: Place, mark: bytes, status: int, body: bytes) -> None: ...
    async def drop(self, place: Place, mark: bytes) -> None: ...


def may_repeat(asked: Asked) -> bool:
    return asked.method == "POST" and not _BY_THEMSELVES.fullmatch(asked.path)


class Repeats:
    def __init__(self, answers: Answers, auth: Auth, quotas: QuotaKeeper) -> None:
        self._answers = answers
        self._quotas = quotas
        self._auth = auth
        self._working: dict[Place, asyncio.Event] = {}

    async def __call__(self, asked: Asked, serve: Serve, send: Send) -> Answer | None:
        """Claimed, worked out, kept, told: in this order, so that whoever was told something is told it again.

        Gives the answer that was kept, or None after the request was served.
        """
        key, principal = idempotency_key(asked), await self._principal(asked)
        if principal is None:
            await serve(send)
            return None
        place = place_of(principal, key)
        first = self._working.get(place)
        if first is not None:  # whoever sends it again meanwhile gets the same answer a moment later
            await first.wait()
            return await self._claimed(asked, principal, place, serve, send)
        done = self._working[place] = asyncio.Event()
        try:
            return await self._claimed(asked, principal, place, serve, send)
        finally:
            del self._working[place]
            done.set()

    async def _claimed(
        self, asked: Asked, principal: Principal, place: Place, serve: Serve, send: Send
    ) -> Answer | None:
        kept = await self._answers.claim(place, digest_of(asked))
        if not kept.mark:
            return _again(asked, kept)
        await self._work_out(asked, principal, Claim(place, kept.mark), serve, send)
        return None

    async def _principal(self, asked: Asked) -> Principal | None:
        """Nobody's answers are not kept: the route itself says who is missing."""
        try:
            return await self._auth.principal(asked)
        except Unauthenticated:
            return None

    async def _work_out(self, asked: Asked, principal: Principal, claim: Claim, serve: Serve, send: Send) -> None:
        caught = Caught(send)
        place, mark = claim
        try:
            await serve(caught)
        except BaseException:
            await self._answers.drop(place, mark)
            raise
        if not caught.is_final or not asked.changed or not self._quotas.may_keep(principal, len(caught.body)):
            await self._answers.drop(place, mark)
        elif _SECRET.fullmatch(asked.path) and caught.status < 400:
            await self._answers.keep(place, mark, *_told_once())
        else:
            await self._answers.keep(place, mark, caught.status, caught.body)
        await caught.pass_on()


class Caught:
    """Holds an answer in JSON back until it is kept; everything else goes through at once."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[Message] = []
        self._is_json = True
        self.status = 0
        self.body = b""

    @property
    def is_final(self) -> bool:
        return self._is_json and 200 <= self.status < 500 and self.status not in PASSING

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            kinds = [value for name, value in message["headers"] if name == b"content-type"]
            self._is_json = not kinds or kinds[0].startswith(JSON)
        if not self._is_json:
            await self._send(message)
            return
        self._held.append(message)
        self.body += message.get("body", b"")

    async def pass_on(self) -> None:
        for message in self._held:
            await self._send(message)


def place_of(principal: Principal, key: str) -> Place:
    """The role is part of it: a key with fewer rights is told nothing that one with more was told.

    Of agents, so is whose their calls are: two keys may have the same name.
    """
    who = principal.owner if principal.is_agent else principal.actor
    return Place(principal.workspace, f"{principal.role}:{who}", key)


def digest_of(asked: Asked) -> str:
    query: bytes = asked.scope.get("query_string", b"")
    return sha256(b"\0".join((asked.path.encode(), query, asked.body))).hexdigest()


def _again(asked: Asked, kept: Kept) -> Answer:
    if kept.digest != digest_of(asked):
        raise Mismatch("This Idempotency-Key was used for another request. Use a new one.")
    if not kept.status:
        raise InProgress("The first request with this Idempotency-Key is still being worked on. Try again in a second.")
    return Answer(kept.status, kept.body, (REPLAYED,))


def _told_once() -> tuple[int, bytes]:
    message = (
        "This was done already, and the answer held a secret that is shown once and not kept. If it got lost, revoke "
        "what was made and make another, with a new Idempotency-Key."
    )
    told = error_answer(AnsweredOnce(message))
    return told.status, told.body

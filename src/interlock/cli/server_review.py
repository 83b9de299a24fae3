"""The approvals of a server, as the person whose key `interlock login` made."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from interlock.app.bootstrap import wall_clock
from interlock.cli.approval_records import (
    ApprovalRow,
    ApprovalRows,
    DecisionResult,
    JsonObject,
    ShownApproval,
    parse_decision_result,
    parse_rows,
    parse_view,
)
from interlock.cli.output import local_time
from interlock.cli.review import Resolution, ReviewChanges, raise_if_ended
from interlock.cli.user_folder import Login
from interlock.core.errors import Forbidden, InvalidRequest, Misconfigured, NotFound, StoreUnavailable, Unauthenticated
from interlock.core.identity import AGENT
from interlock.core.policy.policy import People
from interlock.core.ports import ApprovalQuery
from interlock.runtime.durations import rfc3339
from interlock.sdk.codec import ResponseBody, not_understood_error
from interlock.sdk.transport import Transport, parse_server_address

T = TypeVar("T")
RETRY_TIMEOUT = 10.0  # seconds: a person waits at the terminal
NOT_CERTAIN = "It is unknown whether this was recorded. See: interlock approvals show ID"
MAX_EVENTS = 10_000  # events that are kept until they are shown
RESET = "reset"  # the kind of an event that says that the stream goes on at its own id
RECONNECT_SECONDS = 1.0
SETTLE_SECONDS = 0.1  # after an event, so that many of them cause one reload
RELOAD_SECONDS = 15.0  # without an event: the clock alone changes approvals too


@asynccontextmanager
async def open_server_review(login: Login, workspace: str) -> AsyncIterator[ServerReview]:
    """Connect, and check at once that the key is still valid, whose it is and for which workspace, if one is named."""
    again = f"interlock login {login.url}"
    address = parse_server_address(
        login.url,
        login.key,
        insecure=login.insecure,
        to_allow_http=f"log in with {again} --insecure",
        to_get_key=f"Log in: {again}",
    )
    transport = Transport(address, RETRY_TIMEOUT)
    try:
        me = transport.parse(_parse_me, await explain_login(login, transport.get("/api/me")))
        if me["role"] == AGENT:
            raise Forbidden(f"This is the key of an agent, which decides nothing. Log in: interlock login {login.url}")
        if workspace not in ("", me["workspace"]):
            raise InvalidRequest(
                f"You are logged in to the workspace {me['workspace']!r} of {login.url}. For another one: "
                f"interlock login {login.url} --workspace {workspace}"
            )
        yield ServerReview(login, transport, me)
    finally:
        await transport.close()


async def explain_login(login: Login, work: Awaitable[T]) -> T:
    """Say what to do about a key that is not valid any more."""
    try:
        return await work
    except Unauthenticated:
        raise invalid_login_error(login) from None


def invalid_login_error(login: Login) -> Unauthenticated:
    again = f"Log in again: interlock login {login.url}"
    if not login.key_id:
        return Unauthenticated(f"{login.url} does not accept the key of INTERLOCK_KEY. {again}")
    if wall_clock() >= login.expires_at:
        return Unauthenticated(f"Your login at {login.url} expired at {local_time(login.expires_at)}. {again}")
    return Unauthenticated(
        f"Your login at {login.url} is not valid any more: its key was revoked, or you changed your password or "
        f"signed out everywhere. {again}"
    )


class ServerReview:
    def __init__(self, login: Login, transport: Transport, me: ResponseBody) -> None:
        self.user = str(me["name"])
        self.workspace = str(me["workspace"])
        self.place = f"{self.workspace} on {login.url}"
        self._login = login
        self._transport = transport

    def now(self) -> int:
        return wall_clock()

    async def run_due_timers(self) -> None:
        """The server runs them."""

    async def list(self, query: ApprovalQuery, *, mine: str | None = None) -> ApprovalRows:
        if mine is not None:
            self._check_user(mine)
        given: dict[str, str | Sequence[str]] = {
            "status": ",".join(query.statuses),
            "tool": query.tool,
            "agent": query.agent,
            "thread_id": query.thread_id,
            "run_id": query.run_id,
            "user": query.person,
            "q": query.text,
            "arg": [f"{path}={json.dumps(value)}" for path, value in query.arguments],
            "since": rfc3339(query.since) if query.since else "",
            "until": "" if query.until is None else rfc3339(query.until),
            "mine": "" if mine is None else "true",
            "cursor": query.cursor,
            "limit": str(query.limit),
        }
        found = await self._get("/api/approvals", {name: value for name, value in given.items() if value})
        return self._transport.parse(parse_rows, found)

    async def show(self, approval_id: str) -> ShownApproval:
        return self._transport.parse(parse_view, await self._get(_path(approval_id)))

    async def find_ids(self, part: str, limit: int) -> Sequence[str]:
        found = await self._get("/api/approvals", {"id": part, "limit": str(limit)})
        return self._transport.parse(lambda body: [str(item["id"]) for item in body["items"]], found)

    async def decide(self, view: ShownApproval, body: Mapping[str, object], user: str) -> DecisionResult:
        """The server refuses the decision if the arguments are not those of the digest any more."""
        self._check_user(user)
        path = _path(view.row.id, "decision")
        return self._parse_decided(await self._post(path, {**body, "args_sha256": view.row.args_sha256}))

    async def undo(self, approval_id: str, user: str) -> DecisionResult:
        self._check_user(user)
        return self._parse_decided(await self._post(_path(approval_id, "undo"), {}))

    async def delegate(self, approval_id: str, people: People, user: str) -> str:
        self._check_user(user)
        named = {"users": sorted(people.users), "teams": sorted(people.teams)}
        await self._post(_path(approval_id, "delegate"), named)
        return self.user

    async def resolve(self, approval_id: str, resolution: Resolution, user: str) -> DecisionResult:
        self._check_user(user)
        body = {"ok": resolution.ok, "note": resolution.note, "result": resolution.result}
        return self._parse_decided(await self._post(_path(approval_id, "resolve-unknown"), body))

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[ReviewChanges]:
        """Follow the server's event stream. What is read after this begins misses no event."""
        changes = ServerChanges(self, self._transport, self._login)
        following = asyncio.create_task(changes.follow())
        changes.following = following
        try:
            await changes.wait_connected()
            yield changes
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def _check_user(self, user: str) -> None:
        """A key decides as its owner alone."""
        if user and user != self.user:
            raise Forbidden(
                f"You are logged in to {self._login.url} as {self.user}, and cannot act as {user} there. "
                f"{user} logs in with: interlock login {self._login.url}"
            )

    def _parse_decided(self, body: ResponseBody) -> DecisionResult:
        return self._transport.parse(parse_decision_result, body, NOT_CERTAIN)

    async def _get(self, path: str, params: Mapping[str, str | Sequence[str]] | None = None) -> JsonObject:
        return await explain_login(self._login, self._transport.get(path, params))

    async def _post(self, path: str, body: Mapping[str, object]) -> JsonObject:
        """Each request has a key of its own, so that a retry after a lost answer decides nothing twice."""
        headers = {"idempotency-key": secrets.token_hex(16), "prefer": "return=minimal"}
        work = self._transport.post(path, body, headers=headers, failure_note=NOT_CERTAIN)
        return await explain_login(self._login, work)


class ServerChanges:
    def __init__(self, review: ServerReview, transport: Transport, login: Login) -> None:
        self.trouble = ""
        self.following: asyncio.Task[None] | None = None
        self._review = review
        self.transport = transport
        self._login = login
        self._events: deque[JsonObject] = deque(maxlen=MAX_EVENTS)
        self._skipped = 0
        self.last_id = ""
        self._changed = asyncio.Event()
        self._connected = asyncio.Event()
        self._reload_at = 0.0

    async def wait(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        self._reload_at = self._reload_at or loop.time() + RELOAD_SECONDS
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            if loop.time() < self._reload_at:
                return False
        await asyncio.sleep(SETTLE_SECONDS)
        self._changed.clear()
        self._reload_at = 0.0
        await raise_if_ended(self.following)
        return True

    async def wait_connected(self) -> None:
        """Wait for the beginning of the stream, or for the error that ended it."""
        await self._connected.wait()
        await raise_if_ended(self.following)

    async def new_events(self) -> Sequence[JsonObject]:
        found = list(self._events)
        self._events.clear()
        return found

    def take_skipped(self) -> int:
        skipped, self._skipped = self._skipped, 0
        return skipped

    async def row(self, approval_id: str) -> ApprovalRow | None:
        try:
            return (await self._review.show(approval_id)).row
        except NotFound:
            return None

    async def follow(self) -> None:
        """Follow the stream, and connect again where it broke off; an invalid key ends it.

        While a server restarts, its proxy may give any answer; before the first event each of them ends it.
        """
        try:
            while True:
                try:
                    await self._follow_once()
                    self.trouble = f"{self._login.url} ended the stream of events. Connecting again."
                except (StoreUnavailable, Misconfigured) as error:
                    self.trouble = f"{self._login.url} sends no events ({error.message}). Trying again."
                    if not self._connected.is_set():
                        raise
                self._changed.set()
                await asyncio.sleep(RECONNECT_SECONDS)
        finally:
            self._connected.set()
            self._changed.set()

    async def _follow_once(self) -> None:
        headers = {"last-event-id": self.last_id} if self.last_id else {}
        try:
            async with self.transport.stream_lines("/api/events", headers) as lines:
                await self._read(lines)
            if not self._connected.is_set():
                raise StoreUnavailable(
                    f"{self._login.url} ended its stream of events at once. If a proxy is in front of it, it has to "
                    "pass event streams on."
                )
        except Unauthenticated:
            raise invalid_login_error(self._login) from None

    async def _read(self, lines: AsyncIterator[str]) -> None:
        """Read events. An id counts with its whole event: one that was cut off has to be sent again."""
        data = event_id = kind = ""
        async for line in lines:
            name, _, value = line.partition(": ")
            match name:
                case "id":
                    event_id = value
                case "data":
                    data = value
                case "":
                    before = self.last_id
                    self.last_id = event_id if event_id.isascii() and event_id.isdigit() else before
                    self._take(data)
                    if kind == RESET:
                        self._skipped += max(0, int(self.last_id or 0) - int(before or self.last_id or 0))
                    data = event_id = kind = ""
                case "event":
                    kind = value
                case _:  # what is for browsers
                    pass

    def _take(self, data: str) -> None:
        """One event is complete; a reset or an end tells only that something may have changed."""
        self._connected.set()
        self.trouble = ""
        if not data:
            return
        self._changed.set()
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise not_understood_error(self._login.url, "an event is no JSON") from None
        if isinstance(event, dict) and "approval_id" in event:
            self._skipped += len(self._events) == MAX_EVENTS  # the oldest one leaves
            self._events.append(event)


def _parse_me(body: ResponseBody) -> ResponseBody:
    return {name: str(body[name]) for name in ("name", "role", "workspace")}


def _path(approval_id: str, verb: str = "") -> str:
    """The route of an approval; an id that could lead to another route is refused."""
    if not approval_id.replace("-", "").replace("_", "").isalnum():
        raise NotFound(f"{approval_id[:100]!r} is not an id.")
    return f"/api/approvals/{approval_id}{'/' if verb else ''}{verb}"

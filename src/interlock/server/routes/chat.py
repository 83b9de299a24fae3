"""The chat's streams: POST /api/chat and GET /api/threads/{id}/events, as server-sent events."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated

from pydantic import Field

from interlock.chat.stream import Position, StreamEvent, parse_position
from interlock.chat.threads import UserMessage
from interlock.core.call import MAX_NAME
from interlock.core.chat.thread import MAX_TEXT, Thread
from interlock.core.errors import Conflict, InvalidRequest
from interlock.server.auth import Auth
from interlock.server.dependencies import approval_response
from interlock.server.http import Header, HttpRequest, Receive, RequestBody, Send, encode_json, idempotency_key
from interlock.server.idempotency import REPLAYED_HEADER, IdempotencyMismatch, idempotency_slot, request_digest
from interlock.server.state import ServerState
from interlock.server.streams.thread_stream import ThreadSubscribers
from interlock.storage.tables.idempotency import IdempotencyRecord
from interlock.storage.tables.threads import DONE_STATUS

FINAL_EVENTS = frozenset({"done", "error"})
NO_FINAL_EVENTS: frozenset[str] = frozenset()


class ChatMessageBody(RequestBody):
    """Without a `thread_id` a thread begins, with `agent` or the built-in assistant."""

    message: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    thread_id: Annotated[
        str, Field(max_length=MAX_NAME, description="The thread to go on with; without it one begins.")
    ] = ""
    agent: Annotated[
        str, Field(max_length=MAX_NAME, description="Whom a new thread is with; the assistant, if left out.")
    ] = ""


class ChatRoutes:
    def __init__(self, site: ServerState, auth: Auth) -> None:
        self._site = site
        self._readers = ThreadSubscribers(site, auth)

    async def send(self, asked: HttpRequest, receive: Receive, send: Send) -> None:
        """Takes the message, then tells what comes of it until the turn is over.

        Sent again under the same Idempotency-Key, it is the same message, and is told from there on.
        """
        self._readers.check_room()
        body, key = await asked.json(ChatMessageBody), idempotency_key(asked)
        said, more = UserMessage(body.message, body.thread_id, body.agent), tuple[Header, ...]()
        if key:
            kept = await self._said_once(asked, said, key)
            thread, line = await self._where(asked, kept)
            more = () if kept.mark else (REPLAYED_HEADER,)
        else:
            doors = await self._site.workspaces.doors(asked.person.workspace)
            thread = await self._site.assistant.threads.say(doors, asked.person, *said[:3])
            line = thread.lines
        await self._serve(asked, thread, Position(line, 0), receive, send, last=FINAL_EVENTS, more=more)

    async def follow(self, asked: HttpRequest, receive: Receive, send: Send) -> None:
        """All that happened since `Last-Event-ID`, then all that happens, without an end."""
        self._readers.check_room()
        (thread_id,), who = asked.values, asked.person
        thread = await self._site.assistant.threads.see(who, thread_id)
        text = asked.headers.get(b"last-event-id", b"").decode("latin-1").strip() or asked.query.get("after", "")
        after = parse_position(text or "0")
        if after.line > thread.lines:
            raise InvalidRequest("This thread has no such event. Leave Last-Event-ID out to begin anew.")
        await self._serve(asked, thread, after, receive, send, NO_FINAL_EVENTS)

    async def _serve(
        self,
        asked: HttpRequest,
        thread: Thread,
        after: Position,
        receive: Receive,
        send: Send,
        last: frozenset[str],
        more: tuple[Header, ...] = (),
    ) -> None:
        follower, frame = self._site.assistant.follower(thread, after), partial(self._frame, asked, thread.id)
        reader = self._readers.reader(asked, send, follower, frame, last)
        await self._readers.serve(reader, thread, after, receive, more)

    async def _said_once(self, asked: HttpRequest, said: UserMessage, key: str) -> IdempotencyRecord:
        who, digest = asked.person, request_digest(asked)
        doors = await self._site.workspaces.doors(who.workspace)
        kept = await self._site.assistant.threads.say_once(doors, who, said, idempotency_slot(who, key), digest)
        if kept.digest != digest:
            raise IdempotencyMismatch("This Idempotency-Key was used for another request. Use a new one.")
        if kept.status != DONE_STATUS:
            raise Conflict("This was sent already; what came of it has been erased.")
        return kept

    async def _where(self, asked: HttpRequest, kept: IdempotencyRecord) -> tuple[Thread, int]:
        done = json.loads(kept.body)
        return await self._site.assistant.threads.see(asked.person, done["thread_id"]), done["line"]

    async def _frame(self, asked: HttpRequest, thread_id: str, told: StreamEvent) -> bytes:
        body = encode_json({"type": told.name, "thread_id": thread_id, **told.data})
        if told.approval:
            body = b'%b,"approval":%b}' % (body[:-1], await self._approval(asked, told.approval))
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (str(told.position).encode(), told.name.encode(), body)

    async def _approval(self, asked: HttpRequest, approval_id: str) -> bytes:
        """As GET /api/approvals/{id} gives it, as it is now."""
        doors = await self._site.workspaces.doors(asked.person.workspace)
        reviewer = doors.reviewer(asked.person, self._site.clock())
        return (await approval_response(self._site, doors, approval_id, reviewer)).body

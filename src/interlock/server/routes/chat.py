"""Chat streams: POST /api/chat and GET /api/threads/{id}/events, as server-sent events (SSE)."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated

from pydantic import BaseModel, Field

from interlock.chat.stream import Position, StreamEvent, parse_position
from interlock.chat.threads import UserMessage
from interlock.core.call import MAX_NAME
from interlock.core.chat.thread import MAX_TEXT, Thread
from interlock.core.errors import Conflict, InvalidRequest
from interlock.server.dependencies import DECIDERS, approval_response
from interlock.server.fast_route import FastRouter
from interlock.server.http import Header, HttpRequest, Receive, RequestBody, Send, encode_json, example, idempotency_key
from interlock.server.idempotency import REPLAYED_HEADER, IdempotencyMismatch, idempotency_slot, request_digest
from interlock.server.state import ServerState
from interlock.server.streams.sse import last_event_id
from interlock.server.streams.thread_stream import ThreadStream
from interlock.storage.tables.idempotency import IdempotencyRecord
from interlock.storage.tables.threads import DONE_STATUS

FINAL_EVENTS = frozenset({"done", "error"})

fast = FastRouter("chat")


class ThreadEventsQuery(BaseModel):
    after: Annotated[str, Field(max_length=32, description="The id of the last event that was received.")] = ""


class ChatMessageBody(RequestBody):
    """A chat message. Without a `thread_id` it starts a thread, with `agent` or the built-in assistant."""

    model_config = example(
        {"message": "Publish the post hello-world.", "thread_id": "thread-0192f0c1-2b3d-7c4e-9f60-718293a4b5c8"}
    )

    message: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    thread_id: Annotated[
        str, Field(max_length=MAX_NAME, description="The thread to continue; by default, a new one.")
    ] = ""
    agent: Annotated[
        str, Field(max_length=MAX_NAME, description="The agent of a new thread; by default, the assistant.")
    ] = ""


class ChatRoutes:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    @fast.stream("POST", "/api/chat", DECIDERS, "An event stream until the turn is over.", errors=(404, 409, 429))
    async def send(self, request: HttpRequest, receive: Receive, send: Send, body: ChatMessageBody) -> None:
        """Send a message to an agent, and stream the events of its turn.

        The events are `delta`, `tool_call_start`, `tool_call_result`, `approval_request`, `approval_resolved`, and at
        the end `done` or `error`. The stream stays open while approvals are pending; after a disconnect, resume it with
        `GET /api/threads/{thread_id}/events`. A retry with the same `Idempotency-Key` is the same message, streamed
        from its beginning.
        """
        key = idempotency_key(request)
        user_message, extra_headers = UserMessage(body.message, body.thread_id, body.agent), tuple[Header, ...]()
        if key:
            kept = await self._say_idempotent(request, user_message, key)
            thread, line = await self._stored_position(request, kept)
            extra_headers = () if kept.reservation_token else (REPLAYED_HEADER,)
        else:
            services = await self._state.workspaces.services(request.current_principal.workspace)
            thread = await self._state.assistant.threads.say(services, request.current_principal, *user_message[:3])
            line = thread.entry_count
        stream = self._stream(request, thread, Position(line, 0))
        stream = stream._replace(final_events=FINAL_EVENTS, extra_headers=extra_headers)
        await self._state.thread_streams.serve(request, receive, send, thread, stream)

    @fast.stream(
        "GET",
        "/api/threads/{thread_id}/events",
        DECIDERS,
        "An event stream without an end.",
        errors=(404, 429),
        query=ThreadEventsQuery,
    )
    async def follow(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Stream the events of a thread: all of them, or those after `Last-Event-ID`, then new ones."""
        (thread_id,), principal = request.path_params, request.current_principal
        thread = await self._state.assistant.threads.get(principal, thread_id)
        after = parse_position(last_event_id(request) or "0")
        if after.line > thread.entry_count:
            raise InvalidRequest("This thread has no such event. Leave Last-Event-ID out to begin anew.")
        await self._state.thread_streams.serve(request, receive, send, thread, self._stream(request, thread, after))

    def _stream(self, request: HttpRequest, thread: Thread, after: Position) -> ThreadStream:
        encode = partial(self._encode_event, request, thread.id)
        return ThreadStream(self._state.assistant.follower(thread, after), encode, after)

    async def _say_idempotent(self, request: HttpRequest, user_message: UserMessage, key: str) -> IdempotencyRecord:
        principal, digest = request.current_principal, request_digest(request)
        services = await self._state.workspaces.services(principal.workspace)
        kept = await self._state.assistant.threads.say_idempotent(
            services, principal, user_message, idempotency_slot(principal, key), digest
        )
        if kept.digest != digest:
            raise IdempotencyMismatch("This Idempotency-Key was used for another request. Use a new one.")
        if kept.status != DONE_STATUS:
            raise Conflict("This was sent already; what came of it has been erased.")
        return kept

    async def _stored_position(self, request: HttpRequest, kept: IdempotencyRecord) -> tuple[Thread, int]:
        done = json.loads(kept.body)
        return await self._state.assistant.threads.get(request.current_principal, done["thread_id"]), done["line"]

    async def _encode_event(self, request: HttpRequest, thread_id: str, stream_event: StreamEvent) -> bytes:
        body = encode_json({"type": stream_event.name, "thread_id": thread_id, **stream_event.data})
        if stream_event.approval:
            body = b'%b,"approval":%b}' % (body[:-1], await self._approval(request, stream_event.approval))
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (
            str(stream_event.position).encode(),
            stream_event.name.encode(),
            body,
        )

    async def _approval(self, request: HttpRequest, approval_id: str) -> bytes:
        """The approval as GET /api/approvals/{id} returns it now."""
        services = await self._state.workspaces.services(request.current_principal.workspace)
        reviewer = services.reviewer(request.current_principal, self._state.clock())
        return (await approval_response(self._state, services, approval_id, reviewer)).body

"""One client's session: forwards frames unchanged in both directions, except for tool calls, which are gated.

Below it: the tools of all servers behind the client, with their current definitions, and which count as reads.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY as CAPABILITIES
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    ProgressToken,
    RequestId,
)

from interlock.chat.mcp.definition import (
    CheckSchema,
    StoredDefinitionHistory,
    claims_read_only,
    make_tool_spec,
)
from interlock.config.models import McpServerSettings
from interlock.core.call import Args
from interlock.core.errors import InvalidRequest
from interlock.integrations.mcp_gate.call import (
    CallCancelled,
    CallRejected,
    ToolCallHandler,
    UpstreamErrorReply,
    UpstreamTool,
)
from interlock.integrations.mcp_gate.frames import (
    GATE_ID_PREFIX,
    LOG_LEVEL,
    METHODS,
    NOTIFICATIONS,
    SUBSCRIPTION,
    BadFrame,
    Object,
    Reply,
    copy_envelope,
    is_modern,
    is_proper_id,
    make_error,
    make_notification,
    make_request,
    make_result,
    make_upstream_call,
    normalize_id,
    progress_token,
    read_meta,
    remember_id,
)
from interlock.integrations.mcp_gate.upstream import MergedUpstreams, Upstream, UpstreamLost, rename_request

CLOSE_GRACE = 10.0  # seconds that a running call may take to end after its client disconnected
CANCEL_GRACE = 5.0  # seconds for the same after its client cancelled it

SendFrame = Callable[[JSONRPCMessage, RequestId | None], Awaitable[None]]  # a frame, and the request that it relates to
EndUnanswered = Callable[[RequestId], Awaitable[None]]


@dataclass(kw_only=True)
class ActiveCall:
    """A tool call in progress, with the client's capabilities and a lookup of the tool's current definition."""

    session: GateSession
    request: JSONRPCRequest
    run_id: str
    is_modern: bool
    can_open_urls: bool
    token: ProgressToken | None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    was_sent_upstream: bool = False
    progress: float = float("-inf")  # the last value that the gate reported

    async def find(self, *, fresh: bool) -> UpstreamTool | None:
        return await self.session.find(self.request, fresh=fresh)

    async def notify(self, method: str, params: Object) -> None:
        self.progress = params.get("progress", self.progress)
        await self.session.send_frame(make_notification(method, params), self.request.id)

    async def show(self, approval_id: str, message: str, url: str) -> None:
        params = {"mode": "url", "message": message, "url": url, "elicitationId": approval_id}
        await self.session.send_frame(
            make_request(self.session.next_request_id(), "elicitation/create", params), self.request.id
        )


class GateSession:
    def __init__(
        self,
        handler: ToolCallHandler,
        upstream_options: UpstreamOptions,
        run_id: str,
        send_frame: SendFrame,
        end_unanswered: EndUnanswered | None = None,
    ) -> None:
        """Open a session.

        `end_unanswered` is called for a request that gets no response because its client cancelled it.
        """
        self.send_frame = send_frame
        self._end_unanswered = end_unanswered
        self.ended = asyncio.Event()
        self._handler = handler
        self._run_id = run_id
        self._upstreams = [
            Upstream(name, server, self._receive_upstream, self._on_upstream_lost)
            for name, server in upstream_options.servers.items()
        ]
        self._merged = MergedUpstreams(self._upstreams) if len(self._upstreams) > 1 else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._capabilities: Mapping[str, Any] = {}
        self._in_flight: dict[RequestId, JSONRPCRequest] = {}
        self._cancelled_ids: dict[RequestId, None] = {}  # cancelled requests that a server may still respond to
        self._server_requests: dict[RequestId, None] = {}  # requests of the server that the client has not answered
        self._calls: dict[RequestId, tuple[ActiveCall, asyncio.Task[None]]] = {}
        self._tools = UpstreamTools(self._upstreams, self._merged, upstream_options, handler.definition_history)
        self._ids = itertools.count(1)

    def next_request_id(self) -> str:
        return f"{GATE_ID_PREFIX}{next(self._ids)}"

    @property
    def close_reason(self) -> str:
        """Why a server ended; empty if none did."""
        return next((each.close_reason for each in self._upstreams if each.is_gone), "")

    async def drain(self, hurry: asyncio.Event | None = None) -> None:
        """Leave pending approvals as they are, and let running calls end, up to CLOSE_GRACE or until `hurry` is set."""
        for active_call, _ in self._calls.values():
            active_call.cancelled.set()
        tasks = [task for _, task in self._calls.values()]
        if tasks:
            hurrying = asyncio.create_task((hurry or asyncio.Event()).wait())
            ending = asyncio.create_task(asyncio.wait(tasks))
            await asyncio.wait([hurrying, ending], timeout=CLOSE_GRACE, return_when=asyncio.FIRST_COMPLETED)
            for task in (*tasks, hurrying, ending):
                task.cancel()
            await asyncio.gather(*tasks, hurrying, ending, return_exceptions=True)

    async def close(self) -> None:
        await self.drain()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(each.close() for each in self._upstreams))

    # From the client

    async def receive_frame(self, message: JSONRPCMessage) -> None:
        """Process a client's frame. An invalid request gets an error; other invalid frames are dropped and counted."""
        wrong = self.validate_frame(message)
        if wrong is None:
            await self._dispatch(message)
            return
        self._handler.rejections.count(wrong)
        if isinstance(message, JSONRPCRequest):
            more = {"data": message.method} if wrong.code == METHOD_NOT_FOUND else {}
            await self.send_frame(make_error(message.id, wrong.code, wrong.message, **more), None)

    async def _dispatch(self, message: JSONRPCMessage) -> None:
        match message:
            case JSONRPCRequest(method="tools/call"):
                self._start_call(message)
            case JSONRPCRequest():
                self._in_flight[message.id] = message
                if message.method == "initialize":
                    self._capabilities = (message.params or {}).get("capabilities") or {}
                if message.method == "tools/list":
                    self._tools.invalidate()  # the client now uses the new list
                await self._forward(message)
            case JSONRPCNotification(method="notifications/cancelled"):
                await self._cancel(message)
            case JSONRPCResponse(id=str() as own) | JSONRPCError(id=str() as own) if own.startswith(GATE_ID_PREFIX):
                """Answers a question of the gate: it comes from the agent's side, and decides nothing."""
            case JSONRPCNotification():
                await self._forward(message)
            case _:
                self._server_requests.pop(message.id, None)  # type: ignore[arg-type]  # a response here has an id
                await self._forward(message)

    def validate_frame(self, message: JSONRPCMessage) -> BadFrame | None:
        """The error of a frame; only requests and notifications of the protocol, and expected responses, are valid."""
        match message:
            case JSONRPCRequest() if self._is_id_in_use(message.id):
                return BadFrame("This id is in use.", message.id)
            case JSONRPCRequest() if message.method not in METHODS:
                return BadFrame("Method not found", message.id, METHOD_NOT_FOUND)
            case JSONRPCNotification() if message.method not in NOTIFICATIONS:
                return BadFrame("No notification of the protocol has this method, and a request has an id")
            case JSONRPCResponse() | JSONRPCError() if not self._is_expected_response(message.id):
                return BadFrame("This answers no request of a server")
        return None

    def _is_id_in_use(self, request_id: RequestId) -> bool:
        """Whether the id is in use or reserved for the gate: requests with equal ids would get each other's answer."""
        wanted = normalize_id(request_id)
        known = (*self._in_flight, *self._calls, *self._cancelled_ids)
        return wanted.startswith(GATE_ID_PREFIX) or any(normalize_id(each) == wanted for each in known)

    def _is_expected_response(self, request_id: RequestId | None) -> bool:
        if isinstance(request_id, str) and request_id.startswith(GATE_ID_PREFIX):
            return True
        if self._merged is not None:
            return self._merged.resolve_request_id(request_id, release=False) is not None
        return request_id in self._server_requests

    async def _forward(self, message: JSONRPCMessage) -> None:
        if self._merged is not None:
            await self._forward_merged(self._merged, message)
            return
        try:
            await self._upstreams[0].send(message)
        except UpstreamLost as lost:
            if isinstance(message, JSONRPCRequest):
                self._in_flight.pop(message.id, None)
                await self.send_frame(
                    make_error(message.id, CONNECTION_CLOSED, f"The MCP server is gone: {lost}"), None
                )

    async def _forward_merged(self, merged: MergedUpstreams, message: JSONRPCMessage) -> None:
        """Forward a message to its server, or to all."""
        if isinstance(message, JSONRPCRequest):
            task = asyncio.create_task(self._answer_merged(merged, message), name=f"{message.method} {message.id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        if isinstance(message, JSONRPCNotification):
            for each in self._upstreams:
                with suppress(UpstreamLost):
                    await each.send(message)
        elif known := merged.resolve_request_id(message.id):
            with suppress(UpstreamLost):
                await known[0].send(message.model_copy(update={"id": known[1]}))

    async def _answer_merged(self, merged: MergedUpstreams, request: JSONRPCRequest) -> None:
        try:
            reply = await merged.answer(request)
        except (UpstreamLost, TimeoutError) as lost:
            reply = make_error(request.id, CONNECTION_CLOSED, f"No MCP server is there: {lost}")
        if self._in_flight.pop(request.id, None) is not None:
            await self.send_frame(reply, None)

    async def _cancel(self, message: JSONRPCNotification) -> None:
        """Cancel a request in progress.

        The server is notified only if it got the request; the gate's own are not affected.
        """
        wanted: Any = (message.params or {}).get("requestId")
        if not is_proper_id(wanted):
            return
        if self._in_flight.pop(wanted, None) is not None:
            remember_id(self._cancelled_ids, wanted)
            await self._forward(message)
            if self._end_unanswered is not None:
                await self._end_unanswered(wanted)
            return
        active_call, task = self._calls.get(wanted, (None, None))
        if active_call is None or task is None:
            return
        active_call.cancelled.set()
        if active_call.was_sent_upstream:
            remember_id(self._cancelled_ids, wanted)
            await self._forward(message)
            if self._end_unanswered is not None:
                await self._end_unanswered(active_call.request.id)
            asyncio.get_running_loop().call_later(CANCEL_GRACE, task.cancel)

    # From a server

    async def _receive_upstream(self, upstream: Upstream, message: JSONRPCMessage) -> None:
        match message:
            case JSONRPCResponse() | JSONRPCError():
                await self._forward_response(upstream, message)
            case JSONRPCNotification(method="notifications/progress") if self._is_progress_behind(message):
                """Progress only ever grows, and the gate told of some while the call waited."""
            case _:
                if message.method == "notifications/tools/list_changed":
                    self._tools.invalidate()
                related = self._related_request_id(message)
                if self._merged is not None:
                    message = rename_request(self._merged, upstream, message)
                elif isinstance(message, JSONRPCRequest):
                    remember_id(self._server_requests, message.id)
                await self.send_frame(message, related)

    async def _forward_response(self, upstream: Upstream, answer: Reply) -> None:
        """Forward a response to its request; unsolicited responses are dropped."""
        if answer.id is None:
            await self.send_frame(answer, None)
            return
        self._cancelled_ids.pop(answer.id, None)
        request = self._in_flight.get(answer.id) if self._merged is None else None
        if request is not None:
            del self._in_flight[answer.id]
            self._record_version(upstream, request, answer)
            await self.send_frame(answer, None)

    def _record_version(self, upstream: Upstream, request: JSONRPCRequest, answer: Reply) -> None:
        if request.method == "initialize" and isinstance(answer, JSONRPCResponse):
            upstream.version = str(answer.result.get("protocolVersion", ""))

    def _related_request_id(self, message: JSONRPCRequest | JSONRPCNotification) -> RequestId | None:
        """The request that a message relates to, if it can be determined; else the newest one that may want it."""
        if SUBSCRIPTION in read_meta(message):
            found = read_meta(message)[SUBSCRIPTION]
            return found if isinstance(found, str | int) else None
        open_now = [*self._in_flight.values(), *(active_call.request for active_call, _ in self._calls.values())]
        if message.method == "notifications/progress":
            token = (message.params or {}).get("progressToken")
            return next((each.id for each in open_now if progress_token(each) == token), None)
        if message.method.endswith("/list_changed") or message.method == "notifications/resources/updated":
            return None
        wanting = [each for each in open_now if not is_modern(each) or LOG_LEVEL in read_meta(each)]
        return wanting[-1].id if wanting else None

    def _is_progress_behind(self, message: JSONRPCNotification) -> bool:
        params = message.params or {}
        told = [
            active_call.progress
            for active_call, _ in self._calls.values()
            if active_call.token == params.get("progressToken")
        ]
        progress = params.get("progress")
        return isinstance(progress, int | float) and any(progress <= each for each in told)

    async def _on_upstream_lost(self, upstream: Upstream) -> None:
        """Fail the pending requests. Sent calls, and requests to several servers, get the error from their own wait."""
        if self._merged is not None:
            self._tools.invalidate()
            if all(each.is_gone for each in self._upstreams):
                self.ended.set()
            return
        held = [active_call for active_call, _ in self._calls.values() if not active_call.was_sent_upstream]
        for active_call in held:
            active_call.cancelled.set()
        for request_id in [*self._in_flight, *(active_call.request.id for active_call in held)]:
            self._in_flight.pop(request_id, None)
            with suppress(Exception):
                await self.send_frame(
                    make_error(request_id, CONNECTION_CLOSED, f"The MCP server is gone: {upstream.close_reason}"), None
                )
        tasks = [task for _, task in self._calls.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_GRACE)
        self.ended.set()

    # Tool calls

    def _start_call(self, request: JSONRPCRequest) -> None:
        modern = is_modern(request)
        able = read_meta(request).get(CAPABILITIES) if modern else self._capabilities
        elicitation = able.get("elicitation") if isinstance(able, Mapping) else None
        can_open = isinstance(elicitation, Mapping) and "url" in elicitation
        active_call = ActiveCall(
            session=self,
            request=request,
            run_id=self._run_id,
            is_modern=modern,
            can_open_urls=can_open,
            token=progress_token(request),
        )
        task = asyncio.create_task(self._run_call(active_call), name=f"tools/call {request.id}")
        self._calls[request.id] = active_call, task
        task.add_done_callback(lambda _: self._calls.pop(request.id, None))

    async def _run_call(self, active_call: ActiveCall) -> None:
        reply = await self._make_reply(active_call)
        with suppress(Exception):  # the client may be gone
            if reply is not None and not active_call.cancelled.is_set():
                await self.send_frame(reply, None)
            elif self._end_unanswered is not None:
                await self._end_unanswered(active_call.request.id)

    async def _make_reply(self, active_call: ActiveCall) -> Reply | None:
        request = active_call.request
        try:
            found = await self._handler.answer(active_call, request.params or {})
        except UpstreamErrorReply as answer:
            return answer.reply
        except CallRejected as refusal:
            return make_error(request.id, refusal.code, refusal.message)
        except CallCancelled:
            return None
        except Exception as trouble:  # noqa: BLE001  an internal error is reported, and nothing else runs
            return make_error(request.id, INTERNAL_ERROR, f"The gate failed: {type(trouble).__name__}")
        if active_call.is_modern:
            found.setdefault("resultType", "complete")
        return make_result(request.id, found)

    async def find(self, request: JSONRPCRequest, *, fresh: bool) -> UpstreamTool | None:
        return await self._tools.find(request, fresh=fresh)

    async def schema(self, request: JSONRPCRequest) -> object:
        return await self._tools.schema(request)


@dataclass(frozen=True)
class UpstreamOptions:
    """The servers behind the gate, and the options for them."""

    servers: Mapping[str, McpServerSettings]
    check: CheckSchema
    trust_hints: bool = False


class UpstreamTools:
    def __init__(
        self,
        upstreams: Sequence[Upstream],
        merged: MergedUpstreams | None,
        upstream_options: UpstreamOptions,
        definition_history: StoredDefinitionHistory,
    ) -> None:
        self._upstreams = upstreams
        self._merged = merged
        self._upstream_options = upstream_options
        self._definition_history = definition_history
        self._tools: dict[str, tuple[Upstream, Mapping[str, Any]]] = {}

    def invalidate(self) -> None:
        """Clear the cache, so that the next lookup asks the server."""
        self._tools.clear()

    async def find(self, request: JSONRPCRequest, *, fresh: bool) -> UpstreamTool | None:
        """Find a tool. `fresh` lists the tools again, since not every server notifies of changes."""
        name = str((request.params or {}).get("name"))
        if fresh or name not in self._tools:
            await self._list(request)
        known = self._tools.get(name)
        if known is None:
            return None
        upstream, tool = known
        try:
            spec = make_tool_spec(upstream.name, upstream.server, tool, self._upstream_options.check, name)
        except InvalidRequest as wrong:
            raise CallRejected(f"{name} cannot be called: {wrong.message}") from None
        by_hint = not spec.effect and self._upstream_options.trust_hints and claims_read_only(tool)
        if by_hint:
            spec = replace(spec, effect="read")
        spec = await self._definition_history.effective_spec(spec)

        async def run(args: Args, carried: Mapping[str, Any]) -> Reply:
            await self._definition_history.accept(spec)
            frame = make_upstream_call(request, str(tool["name"]), args, carried)
            return await upstream.request(frame, tool.get("inputSchema"))

        return UpstreamTool(spec, tool.get("outputSchema") is not None, run, is_hinted_read=by_hint)

    async def schema(self, request: JSONRPCRequest) -> object:
        """The input schema of the called tool, if it is known."""
        name = str((request.params or {}).get("name"))
        with suppress(CallRejected, UpstreamLost, TimeoutError):
            if name not in self._tools:
                await self._list(request)
        known = self._tools.get(name)
        return known[1].get("inputSchema") if known else None

    async def _list(self, request: JSONRPCRequest) -> None:
        if self._merged is not None:
            self._tools = await self._merged.tools(copy_envelope(request))
            return
        upstream = self._upstreams[0]
        listed = await upstream.list_all("tools/list", "tools", copy_envelope(request))
        if isinstance(listed, JSONRPCError):
            raise CallRejected(
                f"The MCP server could not be asked for its tools: {listed.error.message}", INTERNAL_ERROR
            )
        self._tools = {str(tool.get("name")): (upstream, tool) for tool in listed}

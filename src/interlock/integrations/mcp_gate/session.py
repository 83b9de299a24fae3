"""One client of the gate: frames of the protocol go on as they came, in both directions, but for the calls of tools."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
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
    is_modern,
    is_proper_id,
    make_error,
    make_notification,
    make_request,
    make_result,
    normalize_id,
    progress_token,
    read_meta,
    remember_id,
)
from interlock.integrations.mcp_gate.merge import MergedUpstreams, rename_request
from interlock.integrations.mcp_gate.tools import UpstreamOptions, UpstreamTools
from interlock.integrations.mcp_gate.upstream import Upstream, UpstreamLost

CLOSE_GRACE = 10.0  # seconds that a call which runs gets to end when its client is gone
CANCEL_GRACE = 5.0  # and when its client wants no answer any more

SendFrame = Callable[[JSONRPCMessage, RequestId | None], Awaitable[None]]  # a frame, and the request that it belongs to
EndUnanswered = Callable[[RequestId], Awaitable[None]]


@dataclass(kw_only=True)
class ActiveCall:
    """A call on its way. Says what its client can do, and finds the tool as it is defined now."""

    session: GateSession
    request: JSONRPCRequest
    run_id: str
    is_modern: bool
    can_open: bool
    token: ProgressToken | None
    gave_up: asyncio.Event = field(default_factory=asyncio.Event)
    sent: bool = False
    progress: float = float("-inf")  # that the gate told of

    async def find(self, *, fresh: bool) -> UpstreamTool | None:
        return await self.session.find(self.request, fresh=fresh)

    async def notify(self, method: str, params: Object) -> None:
        self.progress = params.get("progress", self.progress)
        await self.session.tell(make_notification(method, params), self.request.id)

    async def show(self, approval_id: str, message: str, url: str) -> None:
        params = {"mode": "url", "message": message, "url": url, "elicitationId": approval_id}
        await self.session.tell(make_request(self.session.own_id(), "elicitation/create", params), self.request.id)


class GateSession:
    def __init__(
        self,
        desk: ToolCallHandler,
        offer: UpstreamOptions,
        run_id: str,
        tell: SendFrame,
        unanswered: EndUnanswered | None = None,
    ) -> None:
        """`unanswered` is told of a request that gets no answer, since its client wanted none any more."""
        self.tell = tell
        self._unanswered = unanswered
        self.ended = asyncio.Event()
        self._desk = desk
        self._run_id = run_id
        self._upstreams = [Upstream(name, server, self._pass, self._lost) for name, server in offer.servers.items()]
        self._merged = MergedUpstreams(self._upstreams) if len(self._upstreams) > 1 else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._capabilities: Mapping[str, Any] = {}
        self._in_flight: dict[RequestId, JSONRPCRequest] = {}
        self._given_up: dict[RequestId, None] = {}  # which a server may still answer
        self._of_server: dict[RequestId, None] = {}  # requests of the server that the client has not answered
        self._calls: dict[RequestId, tuple[ActiveCall, asyncio.Task[None]]] = {}
        self._tools = UpstreamTools(self._upstreams, self._merged, offer, desk.first_seen)
        self._ids = itertools.count(1)

    def own_id(self) -> str:
        return f"{GATE_ID_PREFIX}{next(self._ids)}"

    @property
    def why(self) -> str:
        """Why it ended, where a server did."""
        return next((each.why for each in self._upstreams if each.is_gone), "")

    async def settle(self, hurry: asyncio.Event | None = None) -> None:
        """What waits for people stays as it is; what runs may end, for a while, unless there is a hurry."""
        for calling, _ in self._calls.values():
            calling.gave_up.set()
        tasks = [task for _, task in self._calls.values()]
        if tasks:
            hurrying = asyncio.create_task((hurry or asyncio.Event()).wait())
            ending = asyncio.create_task(asyncio.wait(tasks))
            await asyncio.wait([hurrying, ending], timeout=CLOSE_GRACE, return_when=asyncio.FIRST_COMPLETED)
            for task in (*tasks, hurrying, ending):
                task.cancel()
            await asyncio.gather(*tasks, hurrying, ending, return_exceptions=True)

    async def close(self) -> None:
        await self.settle()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(each.close() for each in self._upstreams))

    # From the client

    async def hear(self, message: JSONRPCMessage) -> None:
        """What may not go on to a server is answered, or, where nobody could be told, dropped and counted."""
        wrong = self.problem_of(message)
        if wrong is None:
            await self._take(message)
            return
        self._desk.rejections.count(wrong)
        if isinstance(message, JSONRPCRequest):
            more = {"data": message.method} if wrong.code == METHOD_NOT_FOUND else {}
            await self.tell(make_error(message.id, wrong.code, wrong.message, **more), None)

    async def _take(self, message: JSONRPCMessage) -> None:
        match message:
            case JSONRPCRequest(method="tools/call"):
                self._call(message)
            case JSONRPCRequest():
                self._in_flight[message.id] = message
                if message.method == "initialize":
                    self._capabilities = (message.params or {}).get("capabilities") or {}
                if message.method == "tools/list":
                    self._tools.forget()  # the client goes by what it is told now
                await self._forward(message)
            case JSONRPCNotification(method="notifications/cancelled"):
                await self._cancel(message)
            case JSONRPCResponse(id=str() as own) | JSONRPCError(id=str() as own) if own.startswith(GATE_ID_PREFIX):
                """Answers a question of the gate: it comes from the agent's side, and decides nothing."""
            case JSONRPCNotification():
                await self._forward(message)
            case _:
                self._of_server.pop(message.id, None)  # type: ignore[arg-type]  # then it has one
                await self._forward(message)

    def problem_of(self, message: JSONRPCMessage) -> BadFrame | None:
        """Only requests and notifications that the protocol has go on, and answers to what a server asked."""
        match message:
            case JSONRPCRequest() if self._is_taken(message.id):
                return BadFrame("This id is in use.", message.id)
            case JSONRPCRequest() if message.method not in METHODS:
                return BadFrame("Method not found", message.id, METHOD_NOT_FOUND)
            case JSONRPCNotification() if message.method not in NOTIFICATIONS:
                return BadFrame("No notification of the protocol has this method, and a request has an id")
            case JSONRPCResponse() | JSONRPCError() if not self._is_asked(message.id):
                return BadFrame("This answers no request of a server")
        return None

    def _is_taken(self, request_id: RequestId) -> bool:
        """Two under one id would get each other's answers, and so would the gate's own."""
        wanted = normalize_id(request_id)
        known = (*self._in_flight, *self._calls, *self._given_up)
        return wanted.startswith(GATE_ID_PREFIX) or any(normalize_id(each) == wanted for each in known)

    def _is_asked(self, request_id: RequestId | None) -> bool:
        if isinstance(request_id, str) and request_id.startswith(GATE_ID_PREFIX):
            return True
        if self._merged is not None:
            return self._merged.lent(request_id, over=False) is not None
        return request_id in self._of_server

    async def _forward(self, message: JSONRPCMessage) -> None:
        if self._merged is not None:
            await self._spread(self._merged, message)
            return
        try:
            await self._upstreams[0].send(message)
        except UpstreamLost as lost:
            if isinstance(message, JSONRPCRequest):
                self._in_flight.pop(message.id, None)
                await self.tell(make_error(message.id, CONNECTION_CLOSED, f"The MCP server is gone: {lost}"), None)

    async def _spread(self, merged: MergedUpstreams, message: JSONRPCMessage) -> None:
        """To the server that it is about, or to all."""
        if isinstance(message, JSONRPCRequest):
            task = asyncio.create_task(self._joined(merged, message), name=f"{message.method} {message.id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        if isinstance(message, JSONRPCNotification):
            for each in self._upstreams:
                with suppress(UpstreamLost):
                    await each.send(message)
        elif known := merged.lent(message.id):
            with suppress(UpstreamLost):
                await known[0].send(message.model_copy(update={"id": known[1]}))

    async def _joined(self, merged: MergedUpstreams, asked: JSONRPCRequest) -> None:
        try:
            reply = await merged.answer(asked)
        except (UpstreamLost, TimeoutError) as lost:
            reply = make_error(asked.id, CONNECTION_CLOSED, f"No MCP server is there: {lost}")
        if self._in_flight.pop(asked.id, None) is not None:
            await self.tell(reply, None)

    async def _cancel(self, message: JSONRPCNotification) -> None:
        """Of a request that is on its way; the gate's own, and what a server never got, cannot be cancelled there."""
        wanted: Any = (message.params or {}).get("requestId")
        if not is_proper_id(wanted):
            return
        if self._in_flight.pop(wanted, None) is not None:
            remember_id(self._given_up, wanted)
            await self._forward(message)
            if self._unanswered is not None:
                await self._unanswered(wanted)
            return
        calling, task = self._calls.get(wanted, (None, None))
        if calling is None or task is None:
            return
        calling.gave_up.set()
        if calling.sent:
            remember_id(self._given_up, wanted)
            await self._forward(message)
            if self._unanswered is not None:
                await self._unanswered(calling.request.id)
            asyncio.get_running_loop().call_later(CANCEL_GRACE, task.cancel)

    # From a server

    async def _pass(self, upstream: Upstream, message: JSONRPCMessage) -> None:
        match message:
            case JSONRPCResponse() | JSONRPCError():
                await self._answered(upstream, message)
            case JSONRPCNotification(method="notifications/progress") if self._goes_back(message):
                """Progress only ever grows, and the gate told of some while the call waited."""
            case _:
                if message.method == "notifications/tools/list_changed":
                    self._tools.forget()
                related = self._related(message)
                if self._merged is not None:
                    message = rename_request(self._merged, upstream, message)
                elif isinstance(message, JSONRPCRequest):
                    remember_id(self._of_server, message.id)
                await self.tell(message, related)

    async def _answered(self, upstream: Upstream, answer: Reply) -> None:
        """An answer to what nobody asked, or to a call that was never sent, is none."""
        if answer.id is None:
            await self.tell(answer, None)
            return
        self._given_up.pop(answer.id, None)
        asked = self._in_flight.get(answer.id) if self._merged is None else None
        if asked is not None:
            del self._in_flight[answer.id]
            self._learn(upstream, asked, answer)
            await self.tell(answer, None)

    def _learn(self, upstream: Upstream, asked: JSONRPCRequest, answer: Reply) -> None:
        if asked.method == "initialize" and isinstance(answer, JSONRPCResponse):
            upstream.version = str(answer.result.get("protocolVersion", ""))

    def _related(self, message: JSONRPCRequest | JSONRPCNotification) -> RequestId | None:
        """The request that it belongs to, where that can be told; else the newest that may want to have it."""
        if SUBSCRIPTION in read_meta(message):
            found = read_meta(message)[SUBSCRIPTION]
            return found if isinstance(found, str | int) else None
        open_now = [*self._in_flight.values(), *(calling.request for calling, _ in self._calls.values())]
        if message.method == "notifications/progress":
            token = (message.params or {}).get("progressToken")
            return next((each.id for each in open_now if progress_token(each) == token), None)
        if message.method.endswith("/list_changed") or message.method == "notifications/resources/updated":
            return None
        wanting = [each for each in open_now if not is_modern(each) or LOG_LEVEL in read_meta(each)]
        return wanting[-1].id if wanting else None

    def _goes_back(self, message: JSONRPCNotification) -> bool:
        params = message.params or {}
        told = [calling.progress for calling, _ in self._calls.values() if calling.token == params.get("progressToken")]
        progress = params.get("progress")
        return isinstance(progress, int | float) and any(progress <= each for each in told)

    async def _lost(self, upstream: Upstream) -> None:
        """Whoever waits for it is told; calls, and what several are asked, are told where they wait."""
        if self._merged is not None:
            self._tools.forget()
            if all(each.is_gone for each in self._upstreams):
                self.ended.set()
            return
        held = [calling for calling, _ in self._calls.values() if not calling.sent]
        for calling in held:
            calling.gave_up.set()
        for request_id in [*self._in_flight, *(calling.request.id for calling in held)]:
            self._in_flight.pop(request_id, None)
            with suppress(Exception):
                await self.tell(
                    make_error(request_id, CONNECTION_CLOSED, f"The MCP server is gone: {upstream.why}"), None
                )
        tasks = [task for _, task in self._calls.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_GRACE)
        self.ended.set()

    # Calls of tools

    def _call(self, asked: JSONRPCRequest) -> None:
        modern = is_modern(asked)
        able = read_meta(asked).get(CAPABILITIES) if modern else self._capabilities
        elicitation = able.get("elicitation") if isinstance(able, Mapping) else None
        can_open = isinstance(elicitation, Mapping) and "url" in elicitation
        calling = ActiveCall(
            session=self,
            request=asked,
            run_id=self._run_id,
            is_modern=modern,
            can_open=can_open,
            token=progress_token(asked),
        )
        task = asyncio.create_task(self._answer(calling), name=f"tools/call {asked.id}")
        self._calls[asked.id] = calling, task
        task.add_done_callback(lambda _: self._calls.pop(asked.id, None))

    async def _answer(self, calling: ActiveCall) -> None:
        reply = await self._replied(calling)
        with suppress(Exception):  # a client that is gone is told nothing
            if reply is not None and not calling.gave_up.is_set():
                await self.tell(reply, None)
            elif self._unanswered is not None:
                await self._unanswered(calling.request.id)

    async def _replied(self, calling: ActiveCall) -> Reply | None:
        asked = calling.request
        try:
            found = await self._desk.answer(calling, asked.params or {})
        except UpstreamErrorReply as answer:
            return answer.reply
        except CallRejected as refusal:
            return make_error(asked.id, refusal.code, refusal.message)
        except CallCancelled:
            return None
        except Exception as trouble:  # noqa: BLE001  a fault of ours: it is said, and nothing more is run
            return make_error(asked.id, INTERNAL_ERROR, f"The gate failed: {type(trouble).__name__}")
        if calling.is_modern:
            found.setdefault("resultType", "complete")
        return make_result(asked.id, found)

    async def find(self, asked: JSONRPCRequest, *, fresh: bool) -> UpstreamTool | None:
        return await self._tools.find(asked, fresh=fresh)

    async def schema(self, asked: JSONRPCRequest) -> object:
        return await self._tools.schema(asked)

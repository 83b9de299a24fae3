"""One client of the gate: every frame goes on as it came, in both directions, but for the calls of tools."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY as CAPABILITIES
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    ProgressToken,
    RequestId,
)

from interlock.configuration import McpServer
from interlock.core.call import Args
from interlock.core.errors import InvalidRequest
from interlock.integrations.parts.mcp_call import Answer, Cancelled, Desk, Found, Refusal
from interlock.integrations.parts.mcp_frames import (
    LOG_LEVEL,
    OURS,
    SUBSCRIPTION,
    Object,
    Reply,
    envelope_of,
    error,
    is_modern,
    meta_of,
    notice,
    progress_token,
    request,
    result,
)
from interlock.integrations.parts.mcp_merge import Merged
from interlock.integrations.parts.mcp_upstream import Lost, Upstream
from interlock.tools.mcp.definition import Check, spec_of

MINE = ("name", "arguments", "requestState", "inputResponses")  # of a call; all else goes on as it came
GRACE = 10.0  # seconds that a call which runs gets to end when its client is gone
CANCELLED = 5.0  # and when its client wants no answer any more

Tell = Callable[[JSONRPCMessage, RequestId | None], Awaitable[None]]  # a frame, and the request that it belongs to
Unanswered = Callable[[RequestId], Awaitable[None]]


@dataclass(frozen=True)
class Offer:
    """What stands behind the gate, and what its user said of it."""

    servers: Mapping[str, McpServer]
    check: Check
    trust_hints: bool = False


@dataclass
class Calling:
    """A call on its way. Says what its client can do, and finds the tool as it is defined now."""

    session: Session
    request: JSONRPCRequest
    run_id: str
    is_modern: bool
    can_open: bool
    token: ProgressToken | None
    gave_up: asyncio.Event = field(default_factory=asyncio.Event)
    sent: bool = False
    progress: float = float("-inf")  # that the gate told of

    async def find(self, *, fresh: bool) -> Found | None:
        return await self.session.find(self.request, fresh=fresh)

    async def notify(self, method: str, params: Object) -> None:
        self.progress = params.get("progress", self.progress)
        await self.session.tell(notice(method, params), self.request.id)

    async def show(self, approval_id: str, message: str, url: str) -> None:
        params = {"mode": "url", "message": message, "url": url, "elicitationId": approval_id}
        await self.session.tell(request(self.session.own_id(), "elicitation/create", params), self.request.id)


class Session:
    def __init__(self, desk: Desk, offer: Offer, run_id: str, tell: Tell, unanswered: Unanswered | None = None) -> None:
        """`unanswered` is told of a request that gets no answer, since its client wanted none any more."""
        self.tell = tell
        self._unanswered = unanswered
        self.ended = asyncio.Event()
        self._desk = desk
        self._offer = offer
        self._run_id = run_id
        self._upstreams = [Upstream(name, server, self._pass, self._lost) for name, server in offer.servers.items()]
        self._merged = Merged(self._upstreams) if len(self._upstreams) > 1 else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._capabilities: Mapping[str, Any] = {}
        self._in_flight: dict[RequestId, JSONRPCRequest] = {}
        self._calls: dict[RequestId, tuple[Calling, asyncio.Task[None]]] = {}
        self._tools: dict[str, tuple[Upstream, Mapping[str, Any]]] = {}
        self._ids = itertools.count(1)

    def own_id(self) -> str:
        return f"{OURS}{next(self._ids)}"

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
            await asyncio.wait([hurrying, ending], timeout=GRACE, return_when=asyncio.FIRST_COMPLETED)
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
        match message:
            case JSONRPCRequest() if self._is_taken(message.id):
                await self.tell(error(message.id, INVALID_REQUEST, "This id is in use."), None)
            case JSONRPCRequest(method="tools/call"):
                self._call(message)
            case JSONRPCRequest():
                self._in_flight[message.id] = message
                if message.method == "initialize":
                    self._capabilities = (message.params or {}).get("capabilities") or {}
                if message.method == "tools/list":
                    self._tools.clear()  # the client goes by what it is told now
                await self._forward(message)
            case JSONRPCNotification(method="notifications/cancelled"):
                await self._cancel(message)
            case JSONRPCResponse(id=str() as own) | JSONRPCError(id=str() as own) if own.startswith(OURS):
                """Answers a question of the gate: it comes from the agent's side, and decides nothing."""
            case _:
                await self._forward(message)

    def _is_taken(self, request_id: RequestId) -> bool:
        """Two under one id would get each other's answers, and so would the gate's own."""
        own = isinstance(request_id, str) and request_id.startswith(OURS)
        return own or request_id in self._in_flight or request_id in self._calls

    async def _forward(self, message: JSONRPCMessage) -> None:
        if self._merged is not None:
            await self._spread(self._merged, message)
            return
        try:
            await self._upstreams[0].send(message)
        except Lost as lost:
            if isinstance(message, JSONRPCRequest):
                self._in_flight.pop(message.id, None)
                await self.tell(error(message.id, CONNECTION_CLOSED, f"The MCP server is gone: {lost}"), None)

    async def _spread(self, merged: Merged, message: JSONRPCMessage) -> None:
        """To the server that it is about, or to all."""
        if isinstance(message, JSONRPCRequest):
            task = asyncio.create_task(self._joined(merged, message), name=f"{message.method} {message.id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        if isinstance(message, JSONRPCNotification):
            for each in self._upstreams:
                with suppress(Lost):
                    await each.send(message)
        elif known := merged.lent(message.id):
            with suppress(Lost):
                await known[0].send(message.model_copy(update={"id": known[1]}))

    async def _joined(self, merged: Merged, asked: JSONRPCRequest) -> None:
        try:
            reply = await merged.answer(asked)
        except (Lost, TimeoutError) as lost:
            reply = error(asked.id, CONNECTION_CLOSED, f"No MCP server is there: {lost}")
        if self._in_flight.pop(asked.id, None) is not None:
            await self.tell(reply, None)

    async def _cancel(self, message: JSONRPCNotification) -> None:
        wanted = (message.params or {}).get("requestId")
        calling, task = self._calls.get(wanted, (None, None)) if isinstance(wanted, str | int) else (None, None)
        if calling is None or task is None:
            await self._forward(message)
            if self._in_flight.pop(wanted, None) is not None and self._unanswered:  # type: ignore[arg-type]  # then it is one
                await self._unanswered(wanted)  # type: ignore[arg-type]
            return
        calling.gave_up.set()
        if calling.sent:
            await self._forward(message)
            if self._unanswered is not None:
                await self._unanswered(calling.request.id)
            asyncio.get_running_loop().call_later(CANCELLED, task.cancel)

    # From a server

    async def _pass(self, upstream: Upstream, message: JSONRPCMessage) -> None:
        match message:
            case JSONRPCResponse() | JSONRPCError():
                asked = self._in_flight.pop(message.id, None) if message.id is not None else None
                self._learn(upstream, asked, message)
                await self.tell(message, None)
            case JSONRPCNotification(method="notifications/progress") if self._goes_back(message):
                """Progress only ever grows, and the gate told of some while the call waited."""
            case _:
                if message.method == "notifications/tools/list_changed":
                    self._tools.clear()
                related = self._related(message)
                if self._merged is not None:
                    message = _renamed(self._merged, upstream, message)
                await self.tell(message, related)

    def _learn(self, upstream: Upstream, asked: JSONRPCRequest | None, answer: Reply) -> None:
        if asked is not None and asked.method == "initialize" and isinstance(answer, JSONRPCResponse):
            upstream.version = str(answer.result.get("protocolVersion", ""))

    def _related(self, message: JSONRPCRequest | JSONRPCNotification) -> RequestId | None:
        """The request that it belongs to, where that can be told; else the newest that may want to have it."""
        if SUBSCRIPTION in meta_of(message):
            found = meta_of(message)[SUBSCRIPTION]
            return found if isinstance(found, str | int) else None
        open_now = [*self._in_flight.values(), *(calling.request for calling, _ in self._calls.values())]
        if message.method == "notifications/progress":
            token = (message.params or {}).get("progressToken")
            return next((each.id for each in open_now if progress_token(each) == token), None)
        if message.method.endswith("/list_changed") or message.method == "notifications/resources/updated":
            return None
        wanting = [each for each in open_now if not is_modern(each) or LOG_LEVEL in meta_of(each)]
        return wanting[-1].id if wanting else None

    def _goes_back(self, message: JSONRPCNotification) -> bool:
        params = message.params or {}
        told = [calling.progress for calling, _ in self._calls.values() if calling.token == params.get("progressToken")]
        progress = params.get("progress")
        return isinstance(progress, int | float) and any(progress <= each for each in told)

    async def _lost(self, upstream: Upstream) -> None:
        """Whoever waits for it is told; calls, and what several are asked, are told where they wait."""
        if self._merged is not None:
            self._tools.clear()
            if all(each.is_gone for each in self._upstreams):
                self.ended.set()
            return
        held = [calling for calling, _ in self._calls.values() if not calling.sent]
        for calling in held:
            calling.gave_up.set()
        for request_id in [*self._in_flight, *(calling.request.id for calling in held)]:
            self._in_flight.pop(request_id, None)
            with suppress(Exception):
                await self.tell(error(request_id, CONNECTION_CLOSED, f"The MCP server is gone: {upstream.why}"), None)
        tasks = [task for _, task in self._calls.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE)
        self.ended.set()

    # Calls of tools

    def _call(self, asked: JSONRPCRequest) -> None:
        modern = is_modern(asked)
        able = meta_of(asked).get(CAPABILITIES) if modern else self._capabilities
        elicitation = able.get("elicitation") if isinstance(able, Mapping) else None
        can_open = isinstance(elicitation, Mapping) and "url" in elicitation
        calling = Calling(self, asked, self._run_id, modern, can_open, progress_token(asked))
        task = asyncio.create_task(self._answer(calling), name=f"tools/call {asked.id}")
        self._calls[asked.id] = calling, task
        task.add_done_callback(lambda _: self._calls.pop(asked.id, None))

    async def _answer(self, calling: Calling) -> None:
        reply = await self._replied(calling)
        with suppress(Exception):  # a client that is gone is told nothing
            if reply is not None and not calling.gave_up.is_set():
                await self.tell(reply, None)
            elif self._unanswered is not None:
                await self._unanswered(calling.request.id)

    async def _replied(self, calling: Calling) -> Reply | None:
        asked = calling.request
        try:
            found = await self._desk.answer(calling, asked.params or {})
        except Answer as answer:
            return answer.reply
        except Refusal as refusal:
            return error(asked.id, refusal.code, refusal.message)
        except Cancelled:
            return None
        except Exception as trouble:  # noqa: BLE001  a fault of ours: it is said, and nothing more is run
            return error(asked.id, INTERNAL_ERROR, f"The gate failed: {type(trouble).__name__}")
        if calling.is_modern:
            found.setdefault("resultType", "complete")
        return result(asked.id, found)

    async def find(self, asked: JSONRPCRequest, *, fresh: bool) -> Found | None:
        """Not every server tells of its changes: what matters is listed again."""
        name = str((asked.params or {}).get("name"))
        if fresh or name not in self._tools:
            await self._list(asked)
        known = self._tools.get(name)
        if known is None:
            return None
        upstream, tool = known
        try:
            spec = spec_of(upstream.name, upstream.server, tool, self._offer.check, name)
        except InvalidRequest as wrong:
            raise Refusal(f"{name} cannot be called: {wrong.message}") from None
        if self._is_trusted(tool):
            spec = replace(spec, effect="read")

        async def run(args: Args, carried: Mapping[str, Any]) -> Reply:
            frame = _called(asked, str(tool["name"]), args, carried)
            return await upstream.ask(frame, tool.get("inputSchema"))

        return Found(spec, tool.get("outputSchema") is not None, run)

    async def schema(self, asked: JSONRPCRequest) -> object:
        """That of the tool that is called, as far as it is known without a question."""
        name = str((asked.params or {}).get("name"))
        with suppress(Refusal, Lost, TimeoutError):
            if name not in self._tools:
                await self._list(asked)
        known = self._tools.get(name)
        return known[1].get("inputSchema") if known else None

    async def _list(self, asked: JSONRPCRequest) -> None:
        if self._merged is not None:
            self._tools = await self._merged.tools(envelope_of(asked))
            return
        upstream = self._upstreams[0]
        listed = await upstream.listed("tools/list", "tools", envelope_of(asked))
        if isinstance(listed, JSONRPCError):
            raise Refusal(f"The MCP server could not be asked for its tools: {listed.error.message}", INTERNAL_ERROR)
        self._tools = {str(tool.get("name")): (upstream, tool) for tool in listed}

    def _is_trusted(self, tool: Mapping[str, Any]) -> bool:
        """A server's own word that a tool changes nothing counts only where the user said so."""
        hints = tool.get("annotations")
        return self._offer.trust_hints and isinstance(hints, Mapping) and hints.get("readOnlyHint") is True


def _renamed(
    merged: Merged, upstream: Upstream, message: JSONRPCRequest | JSONRPCNotification
) -> JSONRPCRequest | JSONRPCNotification:
    """A request of a server under an id that no other server's has; and what it says of it later."""
    if isinstance(message, JSONRPCRequest):
        return message.model_copy(update={"id": merged.lend(upstream, message.id)})
    wanted = (message.params or {}).get("requestId")
    name = merged.name_of(upstream, wanted) if message.method == "notifications/cancelled" else None
    return message.model_copy(update={"params": {**(message.params or {}), "requestId": name}}) if name else message


def _called(asked: JSONRPCRequest, tool: str, args: Args, carried: Mapping[str, Any]) -> JSONRPCRequest:
    """The call as it goes to the server: with the arguments that were approved, under the server's own name."""
    given = asked.params or {}
    params: Object = {"name": tool, **{key: value for key, value in given.items() if key not in MINE}, **carried}
    if args or "arguments" in given:
        params["arguments"] = dict(args)
    return asked.model_copy(update={"params": params})

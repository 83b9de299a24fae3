"""The upstream servers: the connection to each, and several of them merged as one.

A connection sends frames, matches responses, and makes the gate's own requests. Merged servers have merged lists, and
each request is routed to its server.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    METHOD_NOT_FOUND,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from interlock.chat.mcp.definition import tool_name
from interlock.chat.mcp.transport import StderrTail, open_streams
from interlock.config.models import McpServerSettings
from interlock.integrations.mcp_gate.frames import (
    GATE_ID_PREFIX,
    LIST_METHODS,
    Object,
    Reply,
    copy_envelope,
    is_modern,
    make_error,
    make_headers,
    make_request,
    make_result,
)

MAX_TOOLS = 1_000
MAX_PAGES = 100
LIST_TIMEOUT = 30.0  # seconds, for requests that the gate makes itself
STREAM_CLOSED = (anyio.ClosedResourceError, anyio.BrokenResourceError)
REMOVED_METHODS = (
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
)  # in 2026-07-28
UNCACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}  # cache fields of a list in 2026-07-28


class UpstreamLost(Exception):
    """The server is gone, or could not be started; the message is for people."""


class Upstream:
    def __init__(
        self,
        name: str,
        server: McpServerSettings,
        on_message: Callable[[Upstream, JSONRPCMessage], Awaitable[None]],
        on_lost: Callable[[Upstream], Awaitable[None]],
    ) -> None:
        """`on_message` gets every frame that does not answer a pending request; `on_lost` is called once at the end."""
        self.name = name
        self.server = server
        self.version = ""  # negotiated in the handshake
        self.is_modern: bool | None = None  # set by the first request of a connection: some servers keep it
        self._on_message = on_message
        self._on_lost = on_lost
        self._write: Any = None
        self._open = asyncio.Event()
        self._close_reason = ""
        self._pending: dict[RequestId, asyncio.Future[Reply]] = {}
        self._count = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def is_gone(self) -> bool:
        return bool(self._close_reason)

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"mcp {self.name}")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def reopen(self) -> None:
        """Prepare a new connection; requests pending on the old one fail with UpstreamLost."""
        await self.close()
        self._task, self._close_reason, self.version, self.is_modern = None, "", "", None
        self._open = asyncio.Event()

    async def send(self, message: JSONRPCMessage, schema: object = None) -> None:
        """Send a frame; raises UpstreamLost. `schema` is the input schema of a called tool."""
        self.start()
        if self.is_modern is None and isinstance(message, JSONRPCRequest):
            self.is_modern = is_modern(message)
        await self._open.wait()
        if self._close_reason:
            raise UpstreamLost(self._close_reason)
        headers = make_headers(message, self.version, schema) if self.server.url else {}
        metadata = ClientMessageMetadata(headers=headers) if headers else None
        try:
            await self._write.send(SessionMessage(message, metadata))
        except STREAM_CLOSED:
            raise UpstreamLost("it ended the connection") from None

    async def request(self, message: JSONRPCRequest, schema: object = None) -> Reply:
        """Send a request and wait for its response; raises UpstreamLost if the connection ends."""
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._pending[message.id] = answer
        try:
            await self.send(message, schema)
            return await answer
        finally:
            self._pending.pop(message.id, None)

    async def gate_request(self, method: str, params: Object) -> Reply:
        """A request of the gate itself, not forwarded for the client."""
        self._count += 1
        async with asyncio.timeout(LIST_TIMEOUT):
            return await self.request(make_request(f"{GATE_ID_PREFIX}{self._count}", method, params))

    async def list_all(self, method: str, key: str, envelope: Object) -> list[Mapping[str, Any]] | JSONRPCError:
        """The items of all pages, unchanged."""
        found: list[Mapping[str, Any]] = []
        more: Object = {}
        for _ in range(MAX_PAGES):
            reply = await self.gate_request(method, {**envelope, **more})
            if isinstance(reply, JSONRPCError):
                return reply
            found += [each for each in reply.result.get(key) or () if isinstance(each, Mapping)]
            cursor = reply.result.get("nextCursor")
            if not isinstance(cursor, str) or len(found) > MAX_TOOLS:
                break
            more = {"cursor": cursor}
        return found

    async def _run(self) -> None:
        stderr_tail = StderrTail()
        ended = "it ended the connection"
        try:
            async with open_streams(self.server, stderr_tail, lambda: None) as (read, write):
                self._write = write
                self._open.set()
                async for message in read:
                    if isinstance(message, SessionMessage):
                        await self._dispatch(message.message)
        except Exception as error:  # noqa: BLE001  any error fails the pending requests
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            ended = str(cause) or type(cause).__name__
        finally:
            said = stderr_tail.last()
            self._close_reason = self.server.redact(f"{ended} ({said})" if said else ended)
            self._open.set()
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(UpstreamLost(self._close_reason))
        with suppress(*STREAM_CLOSED):
            await self._on_lost(self)

    async def _dispatch(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            answer = self._pending.get(message.id) if message.id is not None else None
            if answer is not None:
                if not answer.done():
                    answer.set_result(message)
                return
            if isinstance(message.id, str) and message.id.startswith(GATE_ID_PREFIX):
                return
        await self._on_message(self, message)

    @property
    def close_reason(self) -> str:
        return self._close_reason


# Several servers as one

ListedItems = list[tuple[Upstream, Mapping[str, Any]]]


class MergedUpstreams:
    def __init__(self, upstreams: Sequence[Upstream]) -> None:
        self._upstreams = upstreams
        self._prompts: dict[str, tuple[Upstream, Mapping[str, Any]]] = {}
        self._resources: dict[str, Upstream] = {}
        self._mapped_requests: dict[str, tuple[Upstream, Any]] = {}
        self._ids = itertools.count(1)

    async def answer(self, request: JSONRPCRequest) -> Reply:
        """Answer a request; raises UpstreamLost if no server is left."""
        match request.method:
            case method if method in REMOVED_METHODS and is_modern(request):
                return make_error(request.id, METHOD_NOT_FOUND, "Method not found")
            case "initialize" | "server/discover":
                return await self._initialize_all(request)
            case "ping":
                return make_result(request.id, {})
            case method if method in LIST_METHODS:
                return await self._merge_lists(request, LIST_METHODS[method])
            case "logging/setLevel" | "subscriptions/listen":
                return (await self._request_all(request))[0][1]
            case _:
                return await self._route(request)

    async def tools(self, envelope: Object) -> dict[str, tuple[Upstream, Mapping[str, Any]]]:
        return expose_names(await self._list_all("tools/list", "tools", envelope))

    # Requests from servers to the client; ids of two servers may collide

    def map_request_id(self, upstream: Upstream, request_id: Any) -> str:
        name = f"{upstream.name}/{next(self._ids)}"
        self._mapped_requests[name] = upstream, request_id
        return name

    def resolve_request_id(self, name: object, *, release: bool = True) -> tuple[Upstream, Any] | None:
        if not isinstance(name, str):
            return None
        return self._mapped_requests.pop(name, None) if release else self._mapped_requests.get(name)

    def mapped_request_id(self, upstream: Upstream, request_id: Any) -> str | None:
        return next((name for name, known in self._mapped_requests.items() if known == (upstream, request_id)), None)

    # To all servers

    async def _initialize_all(self, request: JSONRPCRequest) -> Reply:
        """Initialize all servers. If one knows only older revisions, all use those, and the client falls back."""
        if request.method == "initialize":
            await asyncio.gather(*(each.reopen() for each in self._upstreams if each.is_modern))
        replies = await self._request_all(request)
        good = [(up, reply.result) for up, reply in replies if isinstance(reply, JSONRPCResponse)]
        bad = [reply for _, reply in replies if isinstance(reply, JSONRPCError)]
        if not good or (bad and request.method == "server/discover"):
            _mark_old_protocol(replies)
            return bad[0]
        found: Object = {}
        for upstream, each in good:
            upstream.version = str(each.get("protocolVersion", ""))
            found = _merge_capabilities(found, each)
        words = [f"{up.name}: {each['instructions']}" for up, each in good if each.get("instructions")]
        found |= {"instructions": "\n\n".join(words)} if words else {}
        if request.method == "initialize":
            found["protocolVersion"] = _oldest_version([up.version for up, _ in good])
            found["serverInfo"] = {"name": "interlock-mcp-gate", "version": "1"}
        else:
            versions = [set(each.get("supportedVersions") or ()) for _, each in good]
            found["supportedVersions"] = sorted(set.intersection(*versions))
        return make_result(request.id, found)

    async def _request_all(self, request: JSONRPCRequest) -> list[tuple[Upstream, Reply]]:
        there = [each for each in self._upstreams if not each.is_gone]
        answers = await asyncio.gather(*(each.request(request) for each in there), return_exceptions=True)
        found = [(each, got) for each, got in zip(there, answers, strict=True) if not isinstance(got, BaseException)]
        for got in answers:
            if isinstance(got, BaseException) and not isinstance(got, UpstreamLost):
                raise got
        if not found:
            raise UpstreamLost("; ".join(f"{each.name}: {each.close_reason}" for each in self._upstreams))
        return found

    # Lists

    async def _merge_lists(self, request: JSONRPCRequest, key: str) -> Reply:
        listed = await self._list_all(request.method, key, copy_envelope(request))
        if key in ("tools", "prompts"):
            known = expose_names(listed)
            items = [{**item, "name": name} for name, (_, item) in known.items()]
            self._prompts = known if key == "prompts" else self._prompts
        else:
            uri = "uri" if key == "resources" else "uriTemplate"
            for upstream, item in reversed(listed):  # of two resources with the same URI, the first one wins
                self._resources[str(item.get(uri))] = upstream
            items = list({str(item.get(uri)): dict(item) for _, item in reversed(listed)}.values())[::-1]
        return make_result(request.id, {key: items, **(UNCACHED if is_modern(request) else {})})

    async def _list_all(self, method: str, key: str, envelope: Object) -> ListedItems:
        """The items of all servers; a server without this list, or one that is gone, contributes none."""
        there = [each for each in self._upstreams if not each.is_gone]
        lists = await asyncio.gather(*(each.list_all(method, key, envelope) for each in there), return_exceptions=True)
        return [
            (upstream, item)
            for upstream, items in zip(there, lists, strict=True)
            if isinstance(items, list)
            for item in items
        ]

    # To one server

    async def _route(self, request: JSONRPCRequest) -> Reply:
        target = await self._target(request)
        if target is not None:
            upstream, frame = target
            return await upstream.request(frame)
        errors = []
        for upstream in self._upstreams:
            if not upstream.is_gone:
                reply = await upstream.request(request)
                if isinstance(reply, JSONRPCResponse):
                    return reply
                errors.append(reply)
        told = [each for each in errors if each.error.code != METHOD_NOT_FOUND]
        return told[0] if told else make_error(request.id, METHOD_NOT_FOUND, "Method not found")

    async def _target(self, request: JSONRPCRequest) -> tuple[Upstream, JSONRPCRequest] | None:
        """The server that the request is for; None if unknown, so that each server is tried in turn."""
        params = request.params or {}
        about = params.get("ref") if request.method == "completion/complete" else params
        if not isinstance(about, Mapping):
            return None
        name, uri = about.get("name"), about.get("uri")
        if isinstance(uri, str) and uri in self._resources:
            return self._resources[uri], request
        if not isinstance(name, str) or request.method not in ("prompts/get", "completion/complete"):
            return None
        if name not in self._prompts:
            self._prompts = expose_names(await self._list_all("prompts/list", "prompts", copy_envelope(request)))
        if name not in self._prompts:
            return None
        upstream, prompt = self._prompts[name]
        own = {**about, "name": prompt["name"]}
        changed = {**params, "ref": own} if request.method == "completion/complete" else own
        return upstream, request.model_copy(update={"params": changed})


def rename_request(
    merged: MergedUpstreams, upstream: Upstream, message: JSONRPCRequest | JSONRPCNotification
) -> JSONRPCRequest | JSONRPCNotification:
    """Map the id of a server's request, and of its later cancellation, to one that is unique across servers."""
    if isinstance(message, JSONRPCRequest):
        return message.model_copy(update={"id": merged.map_request_id(upstream, message.id)})
    wanted = (message.params or {}).get("requestId")
    name = merged.mapped_request_id(upstream, wanted) if message.method == "notifications/cancelled" else None
    return message.model_copy(update={"params": {**(message.params or {}), "requestId": name}}) if name else message


def _mark_old_protocol(replies: Sequence[tuple[Upstream, Reply]]) -> None:
    """Mark servers that do not know the newer revision: an older one can be used without reconnecting."""
    for upstream, reply in replies:
        if isinstance(reply, JSONRPCError):
            upstream.is_modern = False


def expose_names(listed: ListedItems) -> dict[str, tuple[Upstream, Mapping[str, Any]]]:
    """Exposed names: unchanged, but prefixed with the server's name if two servers share one."""
    counts = Counter(str(item.get("name")) for _, item in listed)
    found: dict[str, tuple[Upstream, Mapping[str, Any]]] = {}
    for upstream, item in listed:
        name = str(item.get("name"))
        name = name if counts[name] == 1 else tool_name(upstream.server.prefix or upstream.name, name)
        found.setdefault(name, (upstream, item))
    return found


def _merge_capabilities(one: Object, other: Mapping[str, Any]) -> Object:
    """The union of capabilities."""
    joined = dict(one)
    for key, value in other.items():
        known = joined.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            joined[key] = _merge_capabilities(dict(known), value)
        elif isinstance(known, bool) and isinstance(value, bool):
            joined[key] = known or value
        else:
            joined.setdefault(key, value)
    return joined


def _oldest_version(versions: Sequence[str]) -> str:
    known = [version for version in KNOWN_PROTOCOL_VERSIONS if version in versions]
    return known[0] if known else versions[0]

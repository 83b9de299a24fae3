"""Runs the server until a signal: opens the store, applies the policy, serves requests, and shuts down gracefully."""

from __future__ import annotations

import asyncio
import gc
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from interlock import __version__
from interlock.app.bootstrap import AppServices, build_gate_and_inbox, build_services, database_file, wall_clock
from interlock.app.gate import Gate
from interlock.app.inbox import Inbox
from interlock.app.workspaces import Workspaces
from interlock.chat.assistant import DemoSetup, build_assistant
from interlock.config.models import Settings
from interlock.core.call import DEFAULT_WORKSPACE, ToolSpec
from interlock.core.errors import Error, InvalidRequest
from interlock.core.policy.policy import Policy
from interlock.notify.service import build_notification_service
from interlock.notify.workspace_channels import policy_load_options
from interlock.policy.file import StalePolicy, read_configured_policy
from interlock.runtime.process_identity import is_any_address, local_url, publish_address
from interlock.server.app import build_app
from interlock.server.http import JSON_TYPE, RequestTimeout, encode_json
from interlock.server.lifecycle import SHUTDOWN_GRACE, background_jobs, capture_library_logs, listen, on_signal
from interlock.server.logs import JsonLogger
from interlock.server.state import ServerState

KEEP_ALIVE = 75  # seconds that a connection may be idle
RESERVED_FILES = 200
POLL_SECONDS = 10.0  # seconds: a thousand agents may wait, and each is notified of its changes
AUTHOR = "configuration"
DEMO_MESSAGE = (
    "The demo has an agent to chat with in the web app, and a few made-up calls to decide: approving them runs nothing."
)
SCRIPTED_MESSAGE = (
    "No key for a model is set, so a script answers in the demo's chat. To use a real model, set OPENAI_API_KEY, "
    "ANTHROPIC_API_KEY or GOOGLE_API_KEY in the environment and start it again."
)
PrintLine = Callable[[str], None]


async def serve(settings: Settings, say: PrintLine, *, worker: bool, demo: DemoSetup | None = None) -> None:
    """Run the server. `say` prints what people have to know: the address, and how the first admin gets in."""
    _raise_file_limit()
    app_services = build_services(settings.storage.url, retention=settings.storage.retention)
    async with AsyncExitStack() as stack:
        await app_services.store.open()
        stack.push_async_callback(app_services.store.close)
        await app_services.store.backfill_statements()
        listening = listen(settings.server.host, settings.server.port)
        state = await make_server_state(settings, app_services, demo=demo)
        capture_library_logs(state.log)
        state.log.write("info", "start", version=__version__, database=state.store.name)
        for note in settings.origin.notes:
            state.log.write("info", "configuration", message=note)
        stack.callback(state.log.write, "info", "stopped")
        stack.push_async_callback(state.accounts.drain)
        server = InterlockServer(state)
        stack.enter_context(on_signal(server.stop))
        await stack.enter_async_context(state.assistant.open())
        await stack.enter_async_context(state.notifications.open())
        stack.push_async_callback(state.background_tasks.drain)
        if worker:
            chores = (*state.assistant.background_tasks, *state.notifications.background_tasks)
            await stack.enter_async_context(background_jobs(state.log, app_services.worker.run, *chores))
        if demo is not None and await demo.fill(state.store, state.workspaces):
            say(DEMO_MESSAGE)
        if demo is not None:
            default_model = settings.default_model
            say(f"{default_model} answers in the demo's chat." if default_model else SCRIPTED_MESSAGE)
        url = _own_url(state, listening)
        file = database_file(settings.storage.url)
        if file and (settings.server.public_url or not is_any_address(listening.getsockname()[0])):
            stack.enter_context(publish_address(file, url))
        for line in await _welcome_lines(state, url):
            say(line)
        _tune_gc()
        await server.serve(sockets=[listening])


def _tune_gc() -> None:
    """Collect garbage rarely: reference counting frees what requests leave, and searching for the rest costs more."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def make_server_state(
    settings: Settings, app_services: AppServices, *, demo: DemoSetup | None = None
) -> ServerState:
    """Build the state. Raises Misconfigured if the policy does not load: the server must not start without it."""
    store = app_services.store
    await store.secret_key(DEFAULT_WORKSPACE)  # makes the workspace on the first start

    def make(policy: Policy) -> tuple[Gate, Inbox]:
        gate, inbox = build_gate_and_inbox(store, policy, POLL_SECONDS)
        inbox.find_registered_spec, gate.in_force.find_registered_spec = specs, registered
        return gate, inbox

    def specs(workspace: str, tool: str) -> ToolSpec | None:
        return assistant.tool_registry.spec(workspace, tool)

    def registered(workspace: str, tool: str) -> ToolSpec | None:
        return state.registered.spec(workspace, tool)

    log = JsonLogger(wall_clock, settings.server.log)
    configured = read_configured_policy(settings)
    workspaces = Workspaces(
        store,
        make,
        settings.toggles(),
        partial(policy_load_options, settings),
        configured,
        partial(log_stale_policy, log),
    )
    await workspaces.apply_configured_policy(AUTHOR, "The configuration changed.")
    assistant = build_assistant(settings, store, workspaces, log, demo=demo)
    notifications = build_notification_service(settings, store, workspaces, log)
    state = ServerState(
        settings=settings,
        store=store,
        accounts=app_services.accounts,
        workspaces=workspaces,
        clock=store.clock,
        log=log,
        assistant=assistant,
        notifications=notifications,
    )
    return state


def log_stale_policy(log: JsonLogger, stale: StalePolicy) -> None:
    log.write("warning", "policy_stale", message=stale.message, command=stale.command, version=stale.version)


class InterlockServer(uvicorn.Server):
    """Graceful shutdown: from the signal on it is not ready, waiting requests are answered, running ones finish."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        config = uvicorn.Config(
            build_app(state),
            loop="uvloop",
            http=_connection_class(),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=SHUTDOWN_GRACE,
        )
        super().__init__(config)

    def stop(self) -> None:
        self._state.log.write("info", "stopping")
        self._state.stopping.set()
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._state.log.write("info", "ready")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the caller handles signals."""
        yield


def _connection_class() -> type[HttpConnection]:
    """The connection class, limited to the number of open files without those that the database needs."""
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    class Bounded(HttpConnection):  # uvicorn needs a class
        most = min(MAX_CONNECTIONS, max(1, open_files - RESERVED_FILES))

    return Bounded


def _raise_file_limit() -> None:
    """Raise the limit of open files: every event stream holds one, and the usual limit of 1,024 is too low."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _own_url(state: ServerState, listening: socket.socket) -> str:
    """The address as configured, or where it listens: on all addresses of the machine, this one is as good as any."""
    return state.settings.server.public_url.rstrip("/") or local_url(*listening.getsockname()[:2])


async def _welcome_lines(state: ServerState, url: str) -> list[str]:
    lines = [f"Interlock is running at {url}"]
    if await state.accounts.needs_first_admin(DEFAULT_WORKSPACE):
        token = await state.accounts.create_link(DEFAULT_WORKSPACE, "interlock", role="admin")
        lines.append(f"Sign in with this one-time link to become the first admin: {url}/welcome#{token}")
    return lines


HEAD_TIMEOUT = 15.0  # seconds for the head of a request to arrive, from the connection or from its first byte
MAX_HEAD_BYTES = 64 * 1024  # bytes
MAX_CONNECTIONS = 10_000  # connections
REASON_PHRASES = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}


class HttpConnection(HttpToolsProtocol):
    """Limits that uvicorn lacks: the time and the size of a request's head, and the number of connections."""

    __slots__ = ("_head", "_in_head", "_timer")  # Python stores up to 30 attributes compactly, and uvicorn has 28

    most = MAX_CONNECTIONS
    head_seconds = HEAD_TIMEOUT

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head = 0  # bytes of the head so far, at least

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(CoalescingTransport(transport, self.loop))  # type: ignore[arg-type]  # duck-typed
        if len(self.connections) > self.most:
            self._refuse(
                TooManyConnections("This server has as many connections as it takes. Try again in a few seconds.")
            )
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._in_head:  # almost always: a head comes in one piece
            return
        self._head += len(data)
        if self._head > MAX_HEAD_BYTES:
            self._refuse(HeadTooLarge(f"The head of a request has at most {MAX_HEAD_BYTES:,} bytes."))
        elif self._timer is None:
            self._await_head()

    def on_message_begin(self) -> None:
        """Give routes the transport, to abort a connection: a graceful close waits for its reader forever."""
        self._in_head, self._head = True, 0
        super().on_message_begin()
        self.scope["extensions"] = {"interlock.transport": self.transport}  # type: ignore[dict-item]

    def on_header(self, name: bytes, value: bytes) -> None:
        """Ignore trailers: a key in one, which proxies do not see, must not count."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(InvalidRequest("This is no request that can be read. Is it HTTP/1.1?"))

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.head_seconds, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._refuse(RequestTimeout(f"The head of the request did not arrive within {self.head_seconds:.0f} seconds."))

    def _refuse(self, error: Error) -> None:
        self._stop_timer()
        self._in_head = False
        if self._is_answering():
            self.transport.close()  # anything sent now would be part of that response
            return
        body, status = encode_json(error.to_json()), error.status
        head = (
            f"HTTP/1.1 {status} {REASON_PHRASES.get(status, 'Service Unavailable')}\r\ncontent-length: {len(body)}\r\n"
        )
        kind = b"content-type: %b\r\nconnection: close\r\n\r\n" % JSON_TYPE
        self.transport.write(head.encode() + kind + body)
        self.transport.close()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete


class TooManyConnections(Error):
    code, status = "too_many_connections", 503


class HeadTooLarge(Error):
    code, status = "head_too_large", 431


class CoalescingTransport:
    """A transport that joins all writes of one event loop iteration."""

    __slots__ = ("_chunks", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._chunks: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._chunks:
            self._loop.call_soon(self._flush)
        self._chunks.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        if self._chunks:
            data, self._chunks = self._chunks, []
            self._transport.write(b"".join(data))

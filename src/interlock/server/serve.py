"""Runs the server until it is told to stop: opens the store, puts the policy in force, answers, and ends in order."""

from __future__ import annotations

import gc
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial

import uvicorn

from interlock import __version__
from interlock.app.bootstrap import Parts, doors_of, wall_clock, wire
from interlock.app.gate import Gate
from interlock.app.inbox import Inbox
from interlock.app.workspaces import Workspaces
from interlock.chat.assistant import Demo, assistant_of
from interlock.config.models import Settings
from interlock.core.call import ToolSpec
from interlock.core.policy import Policy
from interlock.notify.service import reach_of
from interlock.notify.workspace_channels import reaching_of
from interlock.policy.own_file import StalePolicy, configured_policy
from interlock.server.app import build
from interlock.server.connection import MOST, Connection
from interlock.server.listening import listen
from interlock.web.logs import Log
from interlock.web.running import GRACE, on_signal, take_logs, working
from interlock.web.site import Site

KEEP_ALIVE = 75  # seconds that a connection may be idle
SPARE_FILES = 200
LOOK_AGAIN = 10.0  # seconds: a thousand agents may wait, and each is woken when there is something for it
WORKSPACE = "default"
AUTHOR = "configuration"
DEMO = (
    "There is an agent to talk to, on the page. And there are a few calls to decide, which are made up: nothing "
    "happens when they are approved."
)
Say = Callable[[str], None]


async def serve(settings: Settings, say: Say, *, worker: bool, demo: Demo | None = None) -> None:
    """`say` is told what people have to know: the address, and how the first admin gets in."""
    _allow_many_connections()
    parts = wire(settings.storage.url, retention=settings.storage.retention)
    async with AsyncExitStack() as stack:
        await parts.store.open()
        stack.push_async_callback(parts.store.close)
        await parts.store.state()
        listening = listen(settings.server.host, settings.server.port)
        site = await site_of(settings, parts, demo=demo)
        take_logs(site.log)
        site.log.tell("info", "start", version=__version__, database=site.store.name)
        stack.callback(site.log.tell, "info", "stopped")
        stack.push_async_callback(site.accounts.settle)
        server = Server(site)
        stack.enter_context(on_signal(server.stop))
        await stack.enter_async_context(site.assistant.open())
        await stack.enter_async_context(site.reach.open())
        stack.push_async_callback(site.aside.settle)
        if worker:
            chores = (*site.assistant.chores, *site.reach.chores)
            await stack.enter_async_context(working(site.log, parts.worker.run, *chores))
        if demo is not None and await demo.fill(site.store, site.workspaces):
            say(DEMO)
        for line in await _welcome(site, listening):
            say(line)
        _collect_rarely()
        await server.serve(sockets=[listening])


def _collect_rarely() -> None:
    """What a request leaves is gone with its last reference; to look for the little that is not costs more."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def site_of(settings: Settings, parts: Parts, *, demo: Demo | None = None) -> Site:
    """Raises Misconfigured if the policy does not load: a server without its policy must not start."""
    store = parts.store
    await store.secret_key(WORKSPACE)  # makes the workspace on the first start

    def make(policy: Policy) -> tuple[Gate, Inbox]:
        gate, inbox = doors_of(store, policy, LOOK_AGAIN)
        inbox.specs, gate.stops.registered = specs, registered
        return gate, inbox

    def specs(workspace: str, tool: str) -> ToolSpec | None:
        return assistant.toolbox.spec(workspace, tool)

    def registered(workspace: str, tool: str) -> ToolSpec | None:
        return site.registered.spec(workspace, tool)

    log = Log(wall_clock, settings.server.log)
    own = configured_policy(settings)
    workspaces = Workspaces(
        store, make, settings.toggles(), partial(reaching_of, settings), own, partial(tell_stale, log)
    )
    await workspaces.apply_own(AUTHOR, "The configuration changed.")
    assistant = assistant_of(settings, store, workspaces, log, demo=demo)
    reach = reach_of(settings, store, workspaces, log)
    site = Site(settings, store, parts.accounts, workspaces, store.clock, log, assistant, reach)
    return site


def tell_stale(log: Log, stale: StalePolicy) -> None:
    log.tell("warning", "policy_stale", message=stale.message, command=stale.command, version=stale.version)


class Server(uvicorn.Server):
    """Stops in order: from the signal on it is not ready, those who wait are told, what was begun is finished."""

    def __init__(self, site: Site) -> None:
        self._site = site
        config = uvicorn.Config(
            build(site),
            loop="uvloop",
            http=_connections(),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
        )
        super().__init__(config)

    def stop(self) -> None:
        self._site.log.tell("info", "stopping")
        self._site.stopping.set()
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._site.log.tell("info", "ready")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are taken care of outside."""
        yield


def _connections() -> type[Connection]:
    """As many as there can be open files, but for those that the database needs."""
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    class Bounded(Connection):  # uvicorn asks for a class
        most = min(MOST, max(1, open_files - SPARE_FILES))

    return Bounded


def _allow_many_connections() -> None:
    """Every stream of events holds one; the usual limit of 1,024 is for programs of another time."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _welcome(site: Site, listening: socket.socket) -> list[str]:
    host, port = listening.getsockname()[:2]
    url = site.settings.server.public_url.rstrip("/") or f"http://{f'[{host}]' if ':' in host else host}:{port}"
    lines = [f"Interlock is running at {url}"]
    if await site.accounts.needs_first_admin(WORKSPACE):
        token = await site.accounts.create_link(WORKSPACE, "interlock", role="admin")
        lines.append(f"Sign in once with this link, and you are the first admin: {url}/welcome#{token}")
    return lines

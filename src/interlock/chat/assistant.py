"""Assembly of the chat: models, tools, threads, MCP servers, and the loop that advances threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, cast

from interlock.app.workspaces import Workspaces
from interlock.chat.agents import BUILT_IN, AgentDirectory
from interlock.chat.providers import LazyModel
from interlock.chat.stream import Drafts, Position, StreamEvent, ThreadFollower
from interlock.chat.threads import ThreadLoop, Threads
from interlock.chat.tool import ToolContext
from interlock.chat.tool_registry import OwnPacks, ToolRegistry, ToolSource
from interlock.chat.tools.documents import FolderIndexer
from interlock.chat.turn import TurnContext
from interlock.config.models import OWN_PACK_KEY, PACK_SETTINGS, AgentSettings, Settings, is_builtin_action
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.chat.thread import Thread
from interlock.core.chat.transcript import ChatModel
from interlock.core.errors import Misconfigured
from interlock.core.ports import ToolItemStore
from interlock.runtime.json_schema import check_schema
from interlock.runtime.process_identity import is_dead, make_runner_id
from interlock.storage.store import SqlStore
from interlock.storage.tables.threads import MAX_ENTRY_NUMBER

if TYPE_CHECKING:
    import httpx2

    from interlock.chat.mcp.connection import McpServers

SCRIPTED = "demo:scripted"
MAX_CHECKED_MODELS = 100  # that are kept open after a check: people can ask about any name
POLL_SECONDS = 5.0  # seconds: a wake-up is only a hint
NO_MODEL = "No model is set. Name one for the agent, as model: openai:NAME with OPENAI_API_KEY in the environment"

MCP_START_TIMEOUT = 10.0  # seconds that threads wait for MCP servers after a start

BackgroundTask = Callable[[asyncio.Event], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Assistant:
    """The chat of a server; the tools of `workspaces`, those of the configuration, are checked on open."""

    agents: AgentDirectory
    tool_registry: ToolRegistry
    threads: Threads
    drafts: Drafts
    loop: ThreadLoop
    store: SqlStore
    models: Models
    mcp: McpServers | None = None
    folders: FolderIndexer | None = None
    workspaces: Sequence[str] = (DEFAULT_WORKSPACE,)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Connect MCP servers while it is open; one that is down delays nothing.

        Raises Misconfigured for invalid settings of a tool pack, at startup instead of in the middle of a chat.
        """
        await asyncio.to_thread(self._check_packs)  # also loads the packs, which is slow
        async with self.mcp or nullcontext():
            yield

    def _check_packs(self) -> None:
        for workspace in self.workspaces:
            try:
                names = self.tool_registry.pack_tool_names(workspace)
            except Misconfigured as error:
                where = "" if workspace == DEFAULT_WORKSPACE else f"The workspace {workspace}: "
                raise Misconfigured(f"{where}{error.message}") from None
            if self.mcp is not None:
                self.mcp.reserve(workspace, names)

    @property
    def background_tasks(self) -> list[BackgroundTask]:
        """Background tasks of a process that runs the chat."""
        return [self._advance, *([self.folders.run] if self.folders else [])]

    async def _advance(self, stop: asyncio.Event) -> None:
        """Advance threads, after a short wait for MCP servers: approved calls of an unknown tool would be withdrawn."""
        if self.mcp is not None:
            first = [asyncio.create_task(self.mcp.wait_attempted()), asyncio.create_task(stop.wait())]
            await asyncio.wait(first, timeout=MCP_START_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
            for task in first:
                task.cancel()
        await self.loop.run(stop)

    def follower(self, thread: Thread, after: Position, before: int = MAX_ENTRY_NUMBER) -> ThreadFollower:
        return ThreadFollower(self.store.threads, self.drafts, self.store.clock, thread, after, before)

    async def follow(self, thread: Thread, after: Position) -> AsyncIterator[StreamEvent]:
        """Yield a thread's events, without an end; for a program with few threads."""
        follower = self.follower(thread, after)
        async with self.store.watch(thread.workspace, thread.id) as watch:
            while True:
                for stream_event in await follower.read_events():
                    yield stream_event
                await watch.wait(min(follower.poll_after or POLL_SECONDS, POLL_SECONDS))


class DemoService(NamedTuple):
    """A fake of the service behind a tool pack, used while no key for the real one is set."""

    settings: Mapping[str, object]
    make_transport: Callable[[ToolItemStore], httpx2.AsyncBaseTransport]


class DemoSetup(NamedTuple):
    """Demo in place of a configuration: agents, fake services by pack, and content with a few calls to decide."""

    agents: Mapping[str, AgentSettings]
    services: Mapping[str, DemoService]
    fill: Callable[[SqlStore, Workspaces], Awaitable[bool]]


def build_assistant(
    settings: Settings, store: SqlStore, workspaces: Workspaces, log: ChatLog, *, demo: DemoSetup | None = None
) -> Assistant:
    mcp = _mcp_servers(settings, log)
    agents, tool_registry, models = build_chat_components(
        settings, store, [] if mcp is None else [mcp.tools], demo=demo
    )
    drafts = Drafts(store.threads.write_draft, store.announce, store.clock)
    context = TurnContext(
        threads=store.threads,
        agents=agents,
        tool_registry=tool_registry,
        open_model=models.open,
        drafts=drafts,
        clock=store.clock,
        runner=make_runner_id(),
    )
    loop = ThreadLoop(context, workspaces.services, store.watch, is_dead, log.write_exception)
    threads = Threads(store.threads, agents, store.clock, drafts)
    folders, workspace_names = _folders(settings, store, log), (DEFAULT_WORKSPACE, *settings.workspaces)
    return Assistant(
        agents=agents,
        tool_registry=tool_registry,
        threads=threads,
        drafts=drafts,
        loop=loop,
        store=store,
        models=models,
        mcp=mcp,
        folders=folders,
        workspaces=workspace_names,
    )


class ChatComponents(NamedTuple):
    """The chat's parts from the configuration; nothing is connected or opened yet."""

    agents: AgentDirectory
    tool_registry: ToolRegistry
    models: Models


def build_chat_components(
    settings: Settings, store: SqlStore, sources: Sequence[ToolSource] = (), *, demo: DemoSetup | None = None
) -> ChatComponents:
    """Build the parts. Tools from outside the package are imported only if the configuration file was named."""
    own_packs = OwnPacks(
        lambda workspace: settings.for_workspace(workspace).own_packs(),
        settings.origin.code_source,
        [name for name, action in settings.actions.items() if not is_builtin_action(action)],
    )
    built_in = BUILT_IN if demo is None else demo.agents
    if demo is not None and not settings.default_model:
        built_in = {name: replace(agent, model=SCRIPTED) for name, agent in built_in.items()}
    return ChatComponents(
        AgentDirectory(settings.agents, built_in),
        ToolRegistry(_ToolContexts(settings, store, demo=demo).make, sources, own_packs),
        Models(settings, demo=demo),
    )


class ChatLog(Protocol):
    def write(self, level: Literal["info", "warning", "error"], event: str, **facts: object) -> None: ...
    def write_exception(self, event: str, error: BaseException, **facts: object) -> None: ...


def _mcp_servers(settings: Settings, log: ChatLog) -> McpServers | None:
    if not settings.mcp_servers:
        return None
    try:
        from interlock.chat.mcp.connection import McpServers
    except ModuleNotFoundError:
        raise Misconfigured('mcp_servers needs more packages: pip install "interlock-gate[mcp]"') from None
    return McpServers(settings.mcp_servers, check_schema, lambda line: log.write("warning", "mcp", note=line))


def _folders(settings: Settings, store: SqlStore, log: ChatLog) -> FolderIndexer | None:
    if not settings.documents:
        return None
    return FolderIndexer(
        settings.documents, store.documents(DEFAULT_WORKSPACE), lambda line: log.write("info", "documents", note=line)
    )


class _ToolContexts:
    """Makes the contexts of tool packs, with a workspace's own settings only."""

    def __init__(self, settings: Settings, store: SqlStore, *, demo: DemoSetup | None) -> None:
        self._settings = settings
        self._store = store
        self._demo = demo

    def make(self, workspace: str, pack: str) -> ToolContext:
        items = self._store.tool_items(workspace)
        own = self._settings.for_workspace(workspace)
        settings = {key: value for key, value in own.tools.get(pack, {}).items() if key != OWN_PACK_KEY}
        has_access = all(settings.get(name) for name in PACK_SETTINGS.get(pack, ())[:1])  # the first one is required
        fake = self._demo.services.get(pack) if self._demo and not has_access else None
        if fake is not None:
            return ToolContext(workspace, items, fake.settings, fake.make_transport(items))
        documents = self._store.documents(workspace) if own.documents else None
        return ToolContext(workspace, items, settings, documents=documents)


class Models:
    """Opens each model once; an empty name means the default."""

    def __init__(self, settings: Settings, *, demo: DemoSetup | None) -> None:
        self._settings = settings
        self._demo = demo
        self._models: dict[str, ChatModel] = {}

    @property
    def default(self) -> str:
        """The model of agents that name none; empty if there is none."""
        return self._settings.default_model or (SCRIPTED if self._demo else "")

    def open(self, name: str) -> ChatModel:
        model_name = name or self.default
        if model_name not in self._models:
            self._models[model_name] = self._load(model_name)
        return self._models[model_name]

    async def find_problem(self, name: str) -> str:
        """Return why a model cannot be used, or an empty text. Nothing is connected, so a wrong key is not found."""
        try:
            model = self._models.get(name) or self._load(name)
            if isinstance(model, LazyModel):
                await model.open()
        except Misconfigured as error:
            return error.message
        except Exception as error:  # noqa: BLE001  any exception of a provider's library is a problem of the model
            return f"The model cannot be opened ({type(error).__name__})."
        if len(self._models) < MAX_CHECKED_MODELS:
            self._models.setdefault(name, model)
        return ""

    def _load(self, name: str) -> ChatModel:
        if not name:
            raise Misconfigured(f"{NO_MODEL}, or start with --demo for a scripted one.")
        if name == SCRIPTED:
            return cast(ChatModel, import_module("interlock.demo.scripted_model").ScriptedModel())
        return LazyModel(name, self._settings.models)

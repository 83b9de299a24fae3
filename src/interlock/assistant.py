"""The agent that chats, put together: its models, its tools, its threads, and the loop that advances them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interlock.chat.agents import ASSISTANT, BUILT_IN, Agents
from interlock.chat.drafts import Drafts
from interlock.chat.loop import Failed, Loop
from interlock.chat.stream import Follower
from interlock.chat.threads import Threads
from interlock.chat.toolbox import Toolbox
from interlock.chat.turn import Parts
from interlock.configuration import Agent, Settings
from interlock.core.errors import Misconfigured
from interlock.core.prompt import Model
from interlock.core.thread import Thread
from interlock.demo.script import ScriptedModel
from interlock.runner import is_dead, this_runner
from interlock.stores.store import SqlStore
from interlock.tools.tool import Kit
from interlock.workspaces import Workspaces

SCRIPTED = "demo:scripted"
WRITER = "writer"
NO_MODEL = (
    "No model is set. Name one for the agent, as model: openai:NAME with OPENAI_API_KEY in the environment, "
    "or start with --demo for a scripted one."
)


@dataclass(frozen=True)
class Assistant:
    agents: Agents
    toolbox: Toolbox
    threads: Threads
    drafts: Drafts
    loop: Loop
    store: SqlStore

    def follower(self, thread: Thread) -> Follower:
        return Follower(self.store.threads, self.drafts, self.store.watch, thread)


def assistant_of(
    settings: Settings, store: SqlStore, workspaces: Workspaces, failed: Failed, *, demo: bool = False
) -> Assistant:
    agents = Agents({**(_demo_agents() if demo else {}), **settings.agents})
    toolbox = Toolbox(_Kits(settings, store, demo=demo).make)
    drafts = Drafts(store.threads.write_draft, store.announce, store.clock)
    models = _Models(settings, demo=demo)
    parts = Parts(store.threads, agents, toolbox, models.open, drafts, store.clock, this_runner())
    loop = Loop(parts, workspaces.doors, store.watch, is_dead, failed)
    return Assistant(agents, toolbox, Threads(store.threads, agents, store.clock), drafts, loop, store)


def _demo_agents() -> Mapping[str, Agent]:
    built_in = BUILT_IN[ASSISTANT]
    writer = Agent(
        instructions="You look after the posts of the web site: read, publish, archive and delete them.",
        tools=("cms",),
    )
    assistant = Agent(instructions=built_in.instructions, tools=built_in.tools, agents=(WRITER,))
    return {ASSISTANT: assistant, WRITER: writer}


class _Kits:
    def __init__(self, settings: Settings, store: SqlStore, *, demo: bool) -> None:
        self._settings = settings.tools
        self._store = store
        self._demo = demo

    def make(self, workspace: str, pack: str) -> Kit:
        records = self._store.records(workspace)
        settings = self._settings.get(pack, {})
        if pack == "linear" and self._demo and not settings:
            from interlock.demo.linear.standin import StandIn

            return Kit(workspace, records, {"key": "lin_api_demo"}, StandIn(records))
        return Kit(workspace, records, settings)


class _Models:
    """Each is opened once; a name that is empty means the default."""

    def __init__(self, settings: Settings, *, demo: bool) -> None:
        self._settings = settings
        self._demo = demo
        self._open: dict[str, Model] = {}

    def open(self, name: str) -> Model:
        wanted = name or (SCRIPTED if self._demo else "")
        if wanted not in self._open:
            self._open[wanted] = self._opened(wanted)
        return self._open[wanted]

    def _opened(self, name: str) -> Model:
        if not name:
            raise Misconfigured(NO_MODEL)
        return ScriptedModel()

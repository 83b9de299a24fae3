"""Agents of the chat: where each one's settings come from, and sub-agents.

A version stored by an admin overrides the file, and the file replaces built-in agents. A call of another agent is a
child thread of the calling one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import NAMESPACE_OID, uuid5

from interlock.app.gate import Gate
from interlock.app.inbox import Inbox
from interlock.chat.thread_lease import LeasedThread
from interlock.config.agents import AGENT_TOOL_PREFIX, overlay_stored_agent
from interlock.config.models import AgentSettings
from interlock.core.call import Args
from interlock.core.chat import thread as threads
from interlock.core.chat.thread import NewThreadEntry, Thread, ThreadOrigin, UnfinishedReply
from interlock.core.chat.transcript import PendingCall, last_reply_text, read_turn_state
from interlock.core.errors import NotFound, ToolFailed
from interlock.core.outcome import Waiting
from interlock.core.ports import AgentVersion, User
from interlock.presenters.model_message import ArgumentEdit, with_edit
from interlock.storage.tables.threads import SqlThreads

ASSISTANT = "assistant"
INSTRUCTIONS = "You are a careful assistant that can act through tools."
BUILT_IN: Mapping[str, AgentSettings] = {ASSISTANT: AgentSettings(instructions=INSTRUCTIONS, tools=("*",))}
MISSING_AGENT = "The agent {name} does not exist any more, so this conversation cannot continue. Start a new one."
MAX_DEPTH = 5  # agents in one path of calls
CALL_STATUS = {"done": "succeeded", "stopped": "cancelled"}  # of the call, by how the child thread ended

AgentOrigin = Literal["stored", "configuration", "built-in", "calls"]  # "calls": an external agent that calls the gate
AgentExists = Callable[[str], bool]


class ChatServices(Protocol):
    """The services of a workspace that the chat needs."""

    gate: Gate
    inbox: Inbox

    @property
    def agents(self) -> Mapping[str, AgentVersion]: ...
    @property
    def people(self) -> Mapping[str, User]: ...


@dataclass(frozen=True, slots=True)
class ResolvedAgent:
    """An agent and its origin; `stored` is its newest version, if it was changed."""

    agent: AgentSettings
    origin: AgentOrigin
    stored: AgentVersion | None = None


class AgentDirectory:
    """Directory of agents: `configured` in the configuration file, `built_in` as defaults."""

    def __init__(
        self, configured: Mapping[str, AgentSettings], built_in: Mapping[str, AgentSettings] = BUILT_IN
    ) -> None:
        self._defaults: dict[str, ResolvedAgent] = {
            name: ResolvedAgent(agent, "built-in") for name, agent in built_in.items()
        }
        self._defaults |= {name: ResolvedAgent(agent, "configuration") for name, agent in configured.items()}

    def get(self, services: ChatServices, name: str) -> AgentSettings:
        known = self._resolve(services.agents, name)
        if known is None:
            raise NotFound(f"There is no agent {name!r}. There are: {', '.join(self.names(services))}.")
        return known.agent

    def names(self, services: ChatServices) -> list[str]:
        return sorted(self.all(services.agents))

    def find_missing(self, services: ChatServices, names: Iterable[str]) -> str:
        """Return the first of these agents that does not exist any more, or an empty text."""
        return next((name for name in names if self._resolve(services.agents, name) is None), "")

    def all(self, stored: Mapping[str, AgentVersion]) -> dict[str, ResolvedAgent]:
        """Return all agents by name; `stored` are the versions in the workspace's store."""
        found = {name: self._resolve(stored, name) for name in sorted({*self._defaults, *stored})}
        return {name: known for name, known in found.items() if known is not None}

    def find_default(self, name: str) -> ResolvedAgent | None:
        """Return the agent of the configuration file or the program, as it is without stored settings."""
        return self._defaults.get(name)

    def preview(self, name: str, body: str) -> AgentSettings:
        """Return the agent as it would be if this body were stored."""
        return overlay_stored_agent(body, self._base(name))

    def _resolve(self, stored: Mapping[str, AgentVersion], name: str) -> ResolvedAgent | None:
        version = stored.get(name)
        if version is None or not version.has_settings:
            return self._defaults.get(name)
        return ResolvedAgent(overlay_stored_agent(version.body, self._base(name)), "stored", version)

    def _base(self, name: str) -> AgentSettings:
        return self._defaults[name].agent if name in self._defaults else AgentSettings()


# Sub-agents


class Subagents:
    """Starts, polls and stops child threads; `exists` tells whether there is an agent of this name now."""

    def __init__(self, store: SqlThreads, exists: AgentExists) -> None:
        self._store = store
        self._exists = exists

    async def begin(self, leased_thread: LeasedThread, call: PendingCall, args: Args) -> object:
        """Open the child thread; a retry returns the same one."""
        parent, name, task = (
            leased_thread.thread,
            call.tool_request.tool.removeprefix(AGENT_TOOL_PREFIX),
            str(args["task"]),
        )
        if not task.strip():
            raise ToolFailed("Say what the agent is to do: task is a text.")
        if not self._exists(name):
            raise ToolFailed(f"There is no agent {name!r} any more.")
        if name in parent.path or len(parent.path) >= MAX_DEPTH:
            raise ToolFailed(f"{name} cannot be called from {' > '.join(parent.path)}: too deep, or in a circle.")
        origin = ThreadOrigin(
            parent.workspace, name, parent.person, (*parent.path, name), parent.id, call.tool_request.id
        )
        child = _child_thread_id(parent, call)
        if not await self.has_thread(parent, call):  # if this thread was stopped meanwhile, no child is opened
            await leased_thread.open_child(child, lambda moment: threads.open_thread(child, origin, task, moment))
        return {"thread": child}

    async def record_delegation(self, leased_thread: LeasedThread, call: PendingCall) -> None:
        body = {
            "call": call.tool_request.id,
            "tool": call.tool_request.tool,
            "thread": _child_thread_id(leased_thread.thread, call),
        }
        await leased_thread.append(NewThreadEntry("delegated", f"agent:{leased_thread.thread.agent}", body))

    async def has_thread(self, parent: Thread, call: PendingCall) -> bool:
        child = _child_thread_id(parent, call)
        return (
            call.tool_request.tool.startswith(AGENT_TOOL_PREFIX)
            and await self._store.find(parent.workspace, child) is not None
        )

    async def poll(
        self, leased_thread: LeasedThread, call: PendingCall, withdrawal: str, edit: ArgumentEdit | None = None
    ) -> Waiting | None:
        """Return Waiting while the child is at work; its last reply becomes the result."""
        if withdrawal:
            await self.stop(leased_thread.thread.workspace, call.child, leased_thread.thread.person)
        child = await self._store.get(leased_thread.thread.workspace, call.child)
        if child.status != "idle":
            return Waiting("", "running", until=None)
        entries = await self._store.entries(child.workspace, child.id)
        ended = next((entry.body for entry in reversed(entries) if entry.kind == "ended"), {})
        status = str(ended.get("status", "done"))
        result: dict[str, object] = {"agent": child.agent, "status": status, "said": last_reply_text(entries)}
        if ended.get("reason"):
            result["reason"] = ended["reason"]
        result = with_edit(result, edit)
        spent = read_turn_state(entries)  # also counts for its caller, or limits could be evaded by delegation
        body = {
            "call": call.tool_request.id,
            "tool": call.tool_request.tool,
            "status": CALL_STATUS.get(status, "failed"),
            "result": result,
        }
        spending = {"tokens": spent.tokens, "took": spent.work_ms}
        await leased_thread.append(
            NewThreadEntry("resulted", f"agent:{leased_thread.thread.agent}", {**body, **spending})
        )
        return None

    async def stop(
        self, workspace: str, thread_id: str, person: str, said: UnfinishedReply | None = None
    ) -> list[Thread]:
        """Stop a thread after all threads below it; return those that were stopped. It keeps what it had `said`."""
        stopped: list[Thread] = []
        for child in await self._store.children(workspace, thread_id):
            stopped += await self.stop(workspace, child.id, person)
        with suppress(NotFound):
            stopped.append(
                await self._store.step(
                    workspace, thread_id, lambda thread, moment: threads.stop(thread, person, moment, said)
                )
            )
        return stopped


def _child_thread_id(parent: Thread, call: PendingCall) -> str:
    """Derive the id from the call, so that another process that takes over finds the same thread."""
    return threads.THREAD_ID_PREFIX + str(uuid5(NAMESPACE_OID, f"{parent.workspace}/{parent.id}/{call.id}"))

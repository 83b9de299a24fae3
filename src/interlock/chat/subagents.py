"""Sub-agents: a call of another agent is a child thread of the calling one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from uuid import NAMESPACE_OID, uuid5

from interlock.chat.thread_lease import LeasedThread
from interlock.config.agents import AGENT_TOOL_PREFIX
from interlock.core.call import Args
from interlock.core.chat import thread as threads
from interlock.core.chat.thread import NewThreadEntry, Thread, ThreadOrigin, UnfinishedReply
from interlock.core.chat.transcript import PendingCall, last_reply_text, read_turn_state
from interlock.core.errors import NotFound, ToolFailed
from interlock.core.outcome import Waiting
from interlock.presenters.model_message import ArgumentEdit, with_edit
from interlock.storage.tables.threads import SqlThreads

MAX_DEPTH = 5
STATUS = {"done": "succeeded", "stopped": "cancelled"}

AgentExists = Callable[[str], bool]


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
            "status": STATUS.get(status, "failed"),
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

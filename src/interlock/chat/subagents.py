"""Sub-agents: a call of another agent is a thread of its own, below the one that called."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from uuid import NAMESPACE_OID, uuid5

from interlock.chat.results import ArgumentEdit, with_edit
from interlock.chat.thread_lease import LeasedThread
from interlock.config.agents import AGENT_TOOL_PREFIX
from interlock.core.call import Args
from interlock.core.chat import thread as threads
from interlock.core.chat.thread import NewThreadEntry, Thread, ThreadOrigin
from interlock.core.chat.transcript import PendingCall, last_reply_text, read_turn_state
from interlock.core.errors import NotFound, ToolFailed
from interlock.core.outcome import Waiting
from interlock.storage.tables.threads import SqlThreads

MAX_DEPTH = 5
STATUS = {"done": "succeeded", "stopped": "cancelled"}

AgentExists = Callable[[str], bool]


class Subagents:
    """`exists`: whether there is an agent of this name now."""

    def __init__(self, store: SqlThreads, exists: AgentExists) -> None:
        self._store = store
        self._exists = exists

    async def begin(self, held: LeasedThread, call: PendingCall, args: Args) -> object:
        """Its thread; a second time the same one."""
        above, name, task = held.thread, call.wish.tool.removeprefix(AGENT_TOOL_PREFIX), str(args["task"])
        if not task.strip():
            raise ToolFailed("Say what the agent is to do: task is a text.")
        if not self._exists(name):
            raise ToolFailed(f"There is no agent {name!r} any more.")
        if name in above.path or len(above.path) >= MAX_DEPTH:
            raise ToolFailed(f"{name} cannot be called from {' > '.join(above.path)}: too deep, or in a circle.")
        place = ThreadOrigin(above.workspace, name, above.person, (*above.path, name), above.id, call.wish.id)
        child = _child_thread_id(above, call)
        if not await self.known(above, call):  # it may have been stopped meanwhile, and then nothing is opened any more
            await held.open_below(child, lambda moment: threads.open_thread(child, place, task, moment))
        return {"thread": child}

    async def delegated(self, held: LeasedThread, call: PendingCall) -> None:
        body = {"call": call.wish.id, "tool": call.wish.tool, "thread": _child_thread_id(held.thread, call)}
        await held.append(NewThreadEntry("delegated", f"agent:{held.thread.agent}", body))

    async def known(self, above: Thread, call: PendingCall) -> bool:
        child = _child_thread_id(above, call)
        return (
            call.wish.tool.startswith(AGENT_TOOL_PREFIX) and await self._store.find(above.workspace, child) is not None
        )

    async def look(
        self, held: LeasedThread, call: PendingCall, given_up: str, edit: ArgumentEdit | None = None
    ) -> Waiting | None:
        """Waiting while the child is at work; what it said last is the result."""
        if given_up:
            await self.stop(held.thread.workspace, call.child, held.thread.person)
        child = await self._store.get(held.thread.workspace, call.child)
        if child.status != "idle":
            return Waiting("", "running", until=None)
        lines = await self._store.lines(child.workspace, child.id)
        ended = next((line.body for line in reversed(lines) if line.kind == "ended"), {})
        status = str(ended.get("status", "done"))
        result: dict[str, object] = {"agent": child.agent, "status": status, "said": last_reply_text(lines)}
        if ended.get("reason"):
            result["reason"] = ended["reason"]
        result = with_edit(result, edit)
        spent = read_turn_state(lines)  # counts for its caller too, or limits could be passed on and on
        body = {"call": call.wish.id, "tool": call.wish.tool, "status": STATUS.get(status, "failed"), "result": result}
        spending = {"tokens": spent.tokens, "took": spent.took}
        await held.append(NewThreadEntry("resulted", f"agent:{held.thread.agent}", {**body, **spending}))
        return None

    async def stop(self, workspace: str, thread_id: str, person: str) -> list[Thread]:
        """It and all below it, those below first; gives what was stopped."""
        stopped: list[Thread] = []
        for child in await self._store.children(workspace, thread_id):
            stopped += await self.stop(workspace, child.id, person)
        with suppress(NotFound):
            stopped.append(
                await self._store.step(
                    workspace, thread_id, lambda thread, moment: threads.stop(thread, person, moment)
                )
            )
        return stopped


def _child_thread_id(above: Thread, call: PendingCall) -> str:
    """Follows from the call, so that whoever takes over finds the same thread."""
    return threads.THREAD_ID_PREFIX + str(uuid5(NAMESPACE_OID, f"{above.workspace}/{above.id}/{call.id}"))

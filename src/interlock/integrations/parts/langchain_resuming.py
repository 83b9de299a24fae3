"""Going on with threads of a graph whose decisions are there: for a process that does nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from langgraph.types import Command

from interlock.core.errors import Conflict
from interlock.core.pause import Pause
from interlock.integrations.parts.langchain_interrupts import LOOK, mark_of

EARLY = 3  # how often a thread may be found under way before its process counts as dead


def resumer(
    graph: Any, config: Callable[[Pause], Mapping[str, Any]] | None = None
) -> Callable[[Pause], Awaitable[None]]:
    """For `agent.resume_all` and `interlock resume`. `config` gives what else a thread needs, such as who its user is.

    A thread that went on by hand meanwhile is left alone. Interrupts that are not Interlock's stay as they are.
    """

    async def resume(pause: Pause) -> None:
        where = place_of(pause, config(pause) if config else {})
        state, go = await _reached(graph, where)
        waiting = [each.id for each in state.interrupts if mark_of(each.value)]
        if waiting:
            await go(Command(resume=dict.fromkeys(waiting, LOOK)), where)
        elif state.next and not state.interrupts:
            if pause.attempts <= EARLY:
                raise Conflict("The thread is under way, or has not come to its pause yet. It is looked at again.")
            await go(None, where)

    return resume


def place_of(pause: Pause, more: Mapping[str, Any]) -> dict[str, Any]:
    kept = json.loads(pause.state) if pause.state else {}
    return {**more, "configurable": {**kept, **more.get("configurable", {}), "thread_id": pause.run_id}}


async def _reached(graph: Any, where: Mapping[str, Any]) -> tuple[Any, Callable[..., Awaitable[Any]]]:
    """Where the thread stands, and what goes on with it: a checkpointer may be for threads of the system alone."""
    try:
        return await graph.aget_state(where), graph.ainvoke
    except NotImplementedError:
        return await asyncio.to_thread(graph.get_state, where), partial(asyncio.to_thread, graph.invoke)

"""The agent of the journey with its threads in SQLite or PostgreSQL: goes on by hand, or keeps going on with all."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from interlock.integrations.langchain import InterlockMiddleware, make_resume_function
from tests.frameworks.programs.langchain import ScriptedModel
from tests.frameworks.programs.model_scripts import AGENT, EFFECTS, Job


def make_checkpointer(url: str, folder: str) -> AbstractAsyncContextManager[Any]:
    if url.startswith("sqlite"):
        return AsyncSqliteSaver.from_conn_string(f"{folder}/threads.db")
    return AsyncPostgresSaver.from_conn_string(url)


async def by_hand(job: Job, graph: Any) -> Any:
    config = {"configurable": {"thread_id": job.run}}
    before = await graph.aget_state(config)
    begin: Any = None if before.values else {"messages": [HumanMessage("Go.")]}
    waiting = {each.id: "yes" for each in before.interrupts}
    found = await graph.ainvoke(Command(resume=waiting) if waiting else begin, config)
    return run_report(found)


async def resume_until_done(agent: Any, graph: Any) -> Any:
    """Goes on with what is ready until one thread has come to its end."""
    stop, resume, tried = asyncio.Event(), make_resume_function(graph), 0

    async def one(pause: Any) -> None:
        nonlocal tried
        tried += 1
        await resume(pause)
        stop.set()

    await agent.resume_all(one, stop)
    return {"tried": tried, "left": len(await agent.list_pauses())}


def run_report(found: Any) -> Any:
    results = [str(each.content) for each in found["messages"] if isinstance(each, ToolMessage)]
    return {"paused": "__interrupt__" in found, "results": results}


@asynccontextmanager
async def make_agent(job: Job) -> AsyncIterator[tuple[Any, Any]]:
    """The agent and its graph."""
    tools = [tool(job.send_mail, description="Sends a mail."), tool(job.get_weather, description="The weather.")]
    async with job.lock() as lock, make_checkpointer(job.url, job.folder) as saver:
        await saver.setup()
        agent = lock.agent(AGENT)
        gate = InterlockMiddleware(agent, EFFECTS)
        yield agent, create_agent(ScriptedModel(story=job.story), tools, middleware=[gate], checkpointer=saver)


async def resume(pause: Any) -> None:
    """For `interlock runs resume`, in a folder where the job lies."""
    async with make_agent(job_here()) as (_, graph):
        await make_resume_function(graph)(pause)


def job_here() -> Job:
    return Job(**json.loads(Path("job.json").read_bytes()))


async def main(role: str, job: Job) -> None:
    async with make_agent(job) as (agent, graph):
        job.meet_other()
        print(
            json.dumps(await (resume_until_done(agent, graph) if role == "keep" else by_hand(job, graph))), flush=True
        )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Job(**json.loads(sys.argv[2]))))

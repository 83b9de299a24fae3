"""LangGraph: an agent of LangChain with its approval middleware, and a checkpointer that keeps the paused graph."""

from __future__ import annotations

import itertools
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from benchmarks.durability import PRAGMAS, postgres_durability, sqlite_durability
from benchmarks.peers import CALLS, TOOL, PeerDatabase, Tool, Turns, UnaskedGates, arguments, gates
from interlock.integrations.langchain import InterlockMiddleware

TITLE = "LangGraph"
DATABASES = ("sqlite", "postgresql")
PACKAGES = ("langgraph", "langchain", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres")
ENVIRONMENT = ".venv-frameworks/langchain"
DURABLE = "sync"  # every step is written before the next one begins; the default, "async", writes beside it
APPROVE = {"decisions": [{"type": "approve"}]}


class Peer:
    async def open(self, place: PeerDatabase, tool: Tool) -> str:
        self._stack = AsyncExitStack()
        if place.database == "sqlite":
            path = str(place.folder / "langgraph.db")
            self._saver: Any = await self._stack.enter_async_context(AsyncSqliteSaver.from_conn_string(path))
        else:
            kwargs = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
            pool = AsyncConnectionPool(place.url, min_size=32, max_size=32, open=False, kwargs=kwargs)
            self._saver = AsyncPostgresSaver(await self._stack.enter_async_context(pool))
        await self._saver.setup()
        asking = [HumanInTheLoopMiddleware(interrupt_on={TOOL: True})]
        self._agent = create_agent(
            model=OneCallModel(), tools=[make_tool(tool)], middleware=asking, checkpointer=self._saver
        )
        return await self._durability(place.database)

    async def propose(self, key: str) -> Any:
        config = {"configurable": {"thread_id": key}}
        found = await self._agent.ainvoke({"messages": [HumanMessage(key)]}, config, durability=DURABLE)
        assert found["__interrupt__"]
        return config

    async def decide(self, key: str, paused: Any) -> None:
        await self._agent.ainvoke(Command(resume=APPROVE), paused, durability=DURABLE)

    async def listed(self) -> int:
        """There is no list of what is paused: every checkpoint is read, and the newest of each thread is looked at."""
        seen: set[str] = set()
        waiting = 0
        async for found in self._saver.alist(None):
            thread = found.config["configurable"]["thread_id"]
            if thread not in seen:
                seen.add(thread)
                waiting += any(write[1] == "__interrupt__" for write in found.pending_writes or ())
        return waiting

    async def close(self) -> None:
        await self._stack.aclose()

    async def _durability(self, database: str) -> str:
        if database == "sqlite":
            rows = [await (await self._saver.conn.execute(f"pragma {name}")).fetchone() for name in PRAGMAS]
            found = sqlite_durability(*(row[0] for row in rows))
        else:
            async with self._saver.conn.connection() as connection:
                found = await postgres_durability(connection)
        return f'durability="{DURABLE}", {found}'


def build_unasked(folder: Path) -> UnaskedGates:
    """An agent without a middleware, and with one whose tool needs no question."""
    thread = itertools.count()

    def turns(*middleware: Any) -> Turns:
        agent = create_agent(model=RepeatingModel(), tools=[make_tool(Tool())], middleware=middleware)

        async def run() -> None:
            found = await agent.ainvoke({"messages": [HumanMessage("x")]}, {**fresh(), "recursion_limit": 200})
            assert len(found["messages"]) == 2 + 2 * CALLS

        return run

    def fresh() -> dict[str, Any]:
        return {"configurable": {"thread_id": f"thread {next(thread)}"}}

    gated = (
        turns(InterlockMiddleware(gate, effects={TOOL: effect}))
        for gate, effect in zip(gates(folder), ("read", "write"), strict=True)
    )
    return UnaskedGates(turns(), turns(HumanInTheLoopMiddleware(interrupt_on={"another_tool": True})), *gated)


def make_tool(tool: Tool) -> Any:
    async def delete_file(path: str, key: str) -> str:
        """Deletes a file."""
        return tool.run(key)

    return StructuredTool.from_function(coroutine=delete_file, name=TOOL)


class OneCallModel(BaseChatModel):
    """A model that wants the tool once and is done then."""

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    async def _agenerate(self, messages: Any, *args: Any, **options: Any) -> Any:
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages))])

    def answer(self, messages: Any) -> Any:
        last = messages[-1]
        return AIMessage("done") if isinstance(last, ToolMessage) else tool_call_message(last.content)


class RepeatingModel(OneCallModel):
    """Wants it CALLS times."""

    def answer(self, messages: Any) -> Any:
        done = sum(isinstance(message, ToolMessage) for message in messages)
        return AIMessage("done") if done == CALLS else tool_call_message(str(done))


def tool_call_message(key: str) -> Any:
    return AIMessage("", tool_calls=[{"name": TOOL, "args": arguments(key), "id": f"call_{key}"}])

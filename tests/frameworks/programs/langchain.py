"""A LangChain agent with the middleware, whose threads lie in SQLite."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from interlock.integrations.langchain import InterlockMiddleware
from tests.frameworks.programs.model_scripts import AGENT, EFFECTS, LAST_REPLY, Job, RunReport, main, next_calls


class ScriptedModel(BaseChatModel):
    """Tells the story."""

    story: str

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        results = sum(isinstance(message, ToolMessage) for message in messages)
        calls = [{"id": c.id, "name": c.tool, "args": c.args} for c in next_calls(self.story, results)]
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage("" if calls else LAST_REPLY, tool_calls=calls))]
        )


async def run(job: Job) -> RunReport:
    config = {"configurable": {"thread_id": job.run}}
    async with job.lock() as lock, AsyncSqliteSaver.from_conn_string(f"{job.folder}/threads.db") as saver:
        gate = InterlockMiddleware(lock.agent(AGENT), EFFECTS)
        tools = [tool(job.send_mail, description="Sends a mail."), tool(job.get_weather, description="The weather.")]
        graph = create_agent(ScriptedModel(story=job.story), tools, middleware=[gate], checkpointer=saver)
        before = await graph.aget_state(config)
        waiting = {each.id: "yes" for each in before.interrupts}
        begin = None if before.values else {"messages": [HumanMessage("Go.")]}
        found = await graph.ainvoke(Command(resume=waiting) if waiting else begin, config)
    results = tuple(str(each.content) for each in found["messages"] if isinstance(each, ToolMessage))
    return RunReport("__interrupt__" in found, str(found["messages"][-1].content), results)


if __name__ == "__main__":
    main(run)

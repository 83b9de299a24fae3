"""A LangChain agent that pauses for a person in its own checkpointer, and goes on when the decision is there.

python examples/10_langchain.py               in one terminal: it pauses
interlock approvals list                      in another one
interlock approvals approve ID

The model is a script. A real one: python examples/10_langchain.py sqlite:///interlock.db anthropic:claude-sonnet-4-5
"""
# Needs langchain

import asyncio
import sys
import uuid
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from interlock import Interlock
from interlock.core.run import Pause
from interlock.integrations.langchain import InterlockMiddleware, make_resume_function


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: clear sky"


def send_mail(to: str, text: str) -> str:
    """Sends a mail."""
    return f"sent to {to}"  # the real work goes here


class Script(BaseChatModel):
    """What a model would say: first two tool calls, then an answer."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> "Script":
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        calls = [
            {"id": "call_1", "name": "get_weather", "args": {"city": "Oslo"}},
            {"id": "call_2", "name": "send_mail", "args": {"to": "ada@example.com", "text": "Clear sky."}},
        ]
        done = any(isinstance(message, ToolMessage) for message in messages)
        said = AIMessage("Ada knows of the weather.") if done else AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])


async def main(url: str, model: str = "") -> None:
    thread = {"configurable": {"thread_id": str(uuid.uuid4())}}
    async with Interlock(url) as lock, AsyncSqliteSaver.from_conn_string("threads.db") as saver:
        support = lock.agent("support")
        gate = InterlockMiddleware(support, effects={"get_weather": "read", "send_mail": "write"})
        graph = create_agent(model or Script(), [get_weather, send_mail], middleware=[gate], checkpointer=saver)

        begun = await graph.ainvoke({"messages": [HumanMessage("Mail Ada how the weather is in Oslo.")]}, thread)
        for pause in begun.get("__interrupt__", ()):
            print("It pauses:", pause.value["action_requests"][0]["description"])

        # From here on nothing is needed in memory: this could be another process. See `interlock runs resume`.
        over, resume = asyncio.Event(), make_resume_function(graph)

        async def go_on(pause: Pause) -> None:
            await resume(pause)
            if not (await graph.aget_state(thread)).next:
                over.set()

        await support.resume_all(go_on, over)
        for message in (await graph.aget_state(thread)).values["messages"]:
            print(f"{message.type}: {message.content or message.tool_calls}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["sqlite:///interlock.db"]))

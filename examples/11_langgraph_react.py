"""A ReAct loop as a LangGraph of one's own: search in texts, and tools of an MCP server. What changes things is asked.

python examples/11_langgraph_react.py         in one terminal: it pauses
interlock approvals list                      in another one
interlock approvals approve ID

The MCP server is this file too. The model is a script; name a real one as the second word: anthropic:claude-sonnet-4-5
"""
# Needs langchain

import asyncio
import re
import sys
import uuid
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import create_retriever_tool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from mcp.server.fastmcp import FastMCP

from interlock import Interlock
from interlock.core.run import Pause
from interlock.integrations.langchain import Gate, make_resume_function, send_each_call

TEXTS = [
    "Refunds are paid within 14 days of the return.",
    "A ticket is closed once the customer has confirmed that the matter is solved.",
    "Parcels to islands take three days longer.",
]
EFFECTS = {"search_handbook": "read", "list_tickets": "read", "close_ticket": "write"}


# Search in texts


class Handbook(BaseRetriever):
    """Finds the text with the most words of the question; a vector store goes in its place."""

    texts: list[str]

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        wanted = set(re.findall(r"\w{3,}", query.lower()))
        found = max(self.texts, key=lambda text: len(wanted & set(re.findall(r"\w{3,}", text.lower()))))
        return [Document(found)]


search_handbook = create_retriever_tool(Handbook(texts=TEXTS), "search_handbook", "Searches the handbook.")


# The MCP server: this file, started with the word "desk"

desk = FastMCP("desk", log_level="ERROR")


@desk.tool()
def list_tickets() -> list[str]:
    """The open tickets."""
    return ["T-17: parcel arrived, customer confirmed"]


@desk.tool()
def close_ticket(number: str, reason: str) -> str:
    """Closes a ticket."""
    return f"{number} is closed"


# The agent


class Script(BaseChatModel):
    """What a model would say, turn by turn."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> "Script":
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        turns: list[list[tuple[str, dict[str, Any]]]] = [
            [("search_handbook", {"query": "When is a ticket closed?"}), ("list_tickets", {})],
            [("close_ticket", {"number": "T-17", "reason": "The customer confirmed."})],
        ]
        said = sum(isinstance(message, AIMessage) for message in messages)
        turn = turns[said] if said < len(turns) else []
        calls = [{"id": f"call_{n}", "name": name, "args": args} for n, (name, args) in enumerate(turn)]
        message = AIMessage("" if calls else "T-17 is closed.", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


async def main(url: str, model: Any) -> None:
    server = {"command": sys.executable, "args": [__file__, "desk"], "transport": "stdio"}
    tools = [search_handbook, *await MultiServerMCPClient({"desk": server}).get_tools()]
    thinking = model.bind_tools(tools)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await thinking.ainvoke(state["messages"])]}

    async with Interlock(url) as lock:
        agent = lock.agent("support desk")
        gate = Gate(agent, EFFECTS)
        built = StateGraph(MessagesState).add_node("model", think).add_node("tools", gate.tool_node(tools))
        built.add_edge(START, "model").add_edge("tools", "model")
        built.add_conditional_edges("model", send_each_call("tools"), ["tools", END])
        graph = built.compile(checkpointer=InMemorySaver())

        thread: Any = {"configurable": {"thread_id": str(uuid.uuid4())}}
        await graph.ainvoke({"messages": [HumanMessage("Close the tickets that may be closed.")]}, thread)
        over, resume = asyncio.Event(), make_resume_function(graph)

        async def go_on(pause: Pause) -> None:
            await resume(pause)
            if not (await graph.aget_state(thread)).next:
                over.set()

        await agent.resume_all(go_on, over)
        for message in (await graph.aget_state(thread)).values["messages"]:
            name = message.name if isinstance(message, ToolMessage) else message.type
            print(f"{name}: {message.content or [call['name'] for call in message.tool_calls]}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["desk"]:
            desk.run()
        case [url, name]:
            asyncio.run(main(url, init_chat_model(name)))
        case words:
            asyncio.run(main(*words or ["sqlite:///interlock.db"], Script()))

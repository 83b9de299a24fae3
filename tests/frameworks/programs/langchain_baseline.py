"""LangChain's own approval step, without Interlock: what it does in the five cases. Prints what was seen, as JSON."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

ran: list[str] = []


@tool
async def send_mail(to: str) -> str:
    """Sends a mail."""
    await asyncio.sleep(0)
    ran.append(f"send_mail {to}")
    return f"sent to {to}"


@tool
def drop_table(to: str) -> str:
    """Drops a table."""
    ran.append(f"drop_table {to}")
    return "dropped"


class ScriptedModel(BaseChatModel):
    """One mail, then the end."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        call = {"name": "send_mail", "args": {"to": "bob"}, "id": "call_1"}
        done = any(isinstance(message, ToolMessage) for message in messages)
        said = AIMessage("Done.") if done else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=said)])


def make_agent(interrupt_on: dict[str, Any], saver: Any = None) -> Any:
    step = HumanInTheLoopMiddleware(interrupt_on=interrupt_on)
    return create_agent(
        ScriptedModel(), [send_mail, drop_table], middleware=[step], checkpointer=saver or InMemorySaver()
    )


def place(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def tool_messages(*decisions: dict[str, Any]) -> Command[Any]:
    return Command(resume={"decisions": list(decisions)})


async def resumed_twice() -> list[str]:
    ran.clear()
    agent, config = make_agent({"send_mail": True}), place("twice")
    await agent.ainvoke({"messages": [HumanMessage("go")]}, config)
    await asyncio.gather(*(agent.ainvoke(tool_messages({"type": "approve"}), config) for _ in range(2)))
    return list(ran)


async def rejected_and_the_predicate_turned() -> list[str]:
    ran.clear()
    answers = iter((True, False))
    asked = {"allowed_decisions": ["approve", "reject"], "when": lambda _: next(answers)}
    agent, config = make_agent({"send_mail": asked}), place("turned")
    await agent.ainvoke({"messages": [HumanMessage("go")]}, config)
    await agent.ainvoke(tool_messages({"type": "reject", "message": "no"}), config)
    return list(ran)


async def edited_into_a_forbidden_tool() -> list[str]:
    ran.clear()
    forbidden = {"allowed_decisions": ["reject"]}
    agent, config = make_agent({"send_mail": True, "drop_table": forbidden}), place("forbidden")
    await agent.ainvoke({"messages": [HumanMessage("go")]}, config)
    edit = {"type": "edit", "edited_action": {"name": "drop_table", "args": {"to": "users"}}}
    await agent.ainvoke(tool_messages(edit), config)
    return list(ran)


async def a_bad_edit() -> list[str]:
    """What the model was told of it."""
    agent, config = make_agent({"send_mail": True}), place("bad")
    await agent.ainvoke({"messages": [HumanMessage("go")]}, config)
    edit = {"type": "edit", "edited_action": {"name": "send_mail", "args": {"receiver": "carol"}}}
    found = await agent.ainvoke(tool_messages(edit), config)
    return [str(message.content) for message in found["messages"] if isinstance(message, ToolMessage)]


async def listing() -> dict[str, int]:
    """How many checkpoints are read to find out what is paused: there is nothing to ask for that alone."""
    saver = InMemorySaver()
    agent = make_agent({"send_mail": True}, saver)
    for number in range(20):
        await agent.ainvoke({"messages": [HumanMessage("go")]}, place(f"thread {number}"))
    return {"paused": 20, "read": len([each async for each in saver.alist(None)])}


async def main() -> None:
    found = {
        "resumed_twice": await resumed_twice(),
        "rejected_and_the_predicate_turned": await rejected_and_the_predicate_turned(),
        "edited_into_a_forbidden_tool": await edited_into_a_forbidden_tool(),
        "a_bad_edit": await a_bad_edit(),
        "listing": await listing(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())

"""What the programs about LangChain share: tools that note what they did, a scripted model, and a thread."""

from __future__ import annotations

import json
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from interlock import Interlock
from interlock.core.decision import Acknowledgement
from interlock.integrations.langchain import InterlockMiddleware

POLICY = """\
version: 1
defaults: {undo_window: 0s}
rules:
  - {name: mails to the board ask two, tools: [send_mail], when: 'args.to == "board"', then: ask, quorum: 2}
  - {name: never erase, tools: [erase], then: deny}
  - {name: mails to all ask, tools: [send_mail], when: 'args.to == "all"', then: ask}
"""
FREE = "version: 1\ndefaults: {undo_window: 0s}\nrules: [{name: all is free, then: allow}]\n"
ran: list[Any] = []
asked: list[int] = []


@tool
def send_mail(to: str, copies: int = 1) -> str:
    """Sends a mail."""
    ran.append([to, copies])
    return f"sent to {to}"


@tool
def get_weather(city: str) -> str:
    """The weather."""
    ran.append(city)
    return f"clear in {city}"


@tool
def erase(to: str) -> str:
    """Erases."""
    ran.append(f"erased {to}")
    return "erased"


class ScriptedModel(BaseChatModel):
    """Says its turns one after the other: by how many it said before."""

    turns: list[list[dict[str, Any]]]

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        asked.append(1)
        said = sum(isinstance(message, AIMessage) for message in messages)
        calls = self.turns[said] if said < len(self.turns) else []
        return ChatResult(generations=[ChatGeneration(message=AIMessage("" if calls else "Done.", tool_calls=calls))])


def call(name: str, ident: str = "call_1", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": ident}


TOOLS = [send_mail, get_weather, erase]
MAIL = call("send_mail", to="bob")
EFFECTS = {"send_mail": "write", "get_weather": "read", "erase": "destructive"}
GO: dict[str, Any] = {"messages": [HumanMessage("Go.")]}


class Thread:
    """One conversation with an agent of its own."""

    def __init__(self, lock: Interlock, name: str, turns: list[list[dict[str, Any]]], **how: Any) -> None:
        tools = how.pop("tools", [send_mail, get_weather, erase])
        more = {key: how.pop(key) for key in ("state_schema", "store") if key in how}
        values, behind = how.pop("values", {}), how.pop("behind", ())
        options = {"effects": EFFECTS} | how
        gate = InterlockMiddleware(lock.agent("clerk"), **options)
        self.lock, self.config = lock, {"configurable": {"thread_id": name, **values}}
        middleware = [gate, *behind]
        self.graph = create_agent(
            ScriptedModel(turns=turns), tools, middleware=middleware, checkpointer=InMemorySaver(), **more
        )
        ran.clear()
        asked.clear()

    async def go(self, answer: Any = None, **values: Any) -> list[Any]:
        """Begins, or resumes with this answer; gives the values of what it shows."""
        config = {"configurable": {**self.config["configurable"], **values}}
        found = await self.graph.ainvoke(GO if answer is None else Command(resume=answer), config)
        self.pending = sort_interrupts(found)
        return [each.value for each in self.pending]

    async def every(self, answer: Any) -> list[Any]:
        return await self.go({each.id: answer for each in self.pending})

    @property
    def results(self) -> list[str]:
        state = self.graph.get_state(self.config)
        return [str(each.content) for each in state.values["messages"] if isinstance(each, ToolMessage)]

    async def decide(self, decision: Any, who: str = "ada", which: int = 0) -> None:
        await self.lock.decide(mark(self.pending[which].value)["approval_id"], decision, who)


def sort_interrupts(found: Any) -> list[Any]:
    """By what they ask: pauses of one step come in the order in which their tasks happened to end."""
    return sorted(found.get("__interrupt__", ()), key=lambda each: json.dumps(each.value, sort_keys=True))


def mark(value: Any) -> dict[str, Any]:
    return value[0] if isinstance(value, list) else value


def words(value: Any) -> str:
    inner = mark(value)
    return str(inner["description"] if "description" in inner else inner["action_requests"][0]["description"])


def who(config: Any) -> str:
    return str(config["configurable"].get("user", "ada"))


def decided_arguments(**more: Any) -> dict[str, Any]:
    return {"decisions": [more]}


def seen(value: Any) -> Acknowledgement:
    return Acknowledgement(mark(value)["args_sha256"])

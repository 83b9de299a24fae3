"""A deep agent whose sub-agents have gates of their own. The pause of a sub-agent is one of the main thread.

python examples/12_deep_agent.py              in one terminal: it pauses
interlock approvals list                      in another one
interlock approvals approve ID

The model is a script. A real one: python examples/12_deep_agent.py sqlite:///interlock.db anthropic:claude-sonnet-4-5
"""
# Needs langchain

import asyncio
import sys
import uuid
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from interlock import Interlock
from interlock.core.run import Pause
from interlock.integrations.langchain import InterlockMiddleware, gated_subagents, make_resume_function

EFFECTS = {"search_web": "read", "send_mail": "write"}


def search_web(query: str) -> str:
    """Searches the web."""
    return f"Nothing new about {query}."


def send_mail(to: str, text: str) -> str:
    """Sends a mail."""
    return f"sent to {to}"


class Script(BaseChatModel):
    """What a model would say, turn by turn."""

    turns: list[list[tuple[str, dict[str, Any]]]]
    last: str

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> "Script":
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        said = sum(isinstance(message, AIMessage) for message in messages)
        turn = self.turns[said] if said < len(self.turns) else []
        calls = [{"id": f"call_{n}", "name": name, "args": args} for n, (name, args) in enumerate(turn)]
        message = AIMessage("" if calls else self.last, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


RESEARCH = {"description": "Look what is new about Oslo.", "subagent_type": "researcher"}
MAIL = {"description": "Mail to Ada what was found.", "subagent_type": "mailer"}
SCRIPTS = {
    "main": Script(turns=[[("task", RESEARCH)], [("task", MAIL)]], last="Ada knows."),
    "researcher": Script(turns=[[("search_web", {"query": "Oslo"})]], last="Nothing is new."),
    "mailer": Script(turns=[[("send_mail", {"to": "ada@example.com", "text": "Nothing is new."})]], last="Mailed."),
}


async def main(url: str, model: str = "") -> None:
    async with Interlock(url) as lock:
        top = lock.agent("main")
        specs = [
            {
                "name": "researcher",
                "description": "Finds things out.",
                "system_prompt": "Search, then say what you found.",
                "model": model or SCRIPTS["researcher"],
                "tools": [search_web],
                "tool_approvals": {"search_web": True},  # this one has to ask even for that
            },
            {
                "name": "mailer",
                "description": "Sends mails.",
                "system_prompt": "Send the mail that you are asked for.",
                "model": model or SCRIPTS["mailer"],
                "tools": [send_mail],
            },
        ]
        graph = create_deep_agent(
            model or SCRIPTS["main"],
            middleware=[InterlockMiddleware(top, EFFECTS, delegates=["task"])],
            subagents=gated_subagents(top, specs, EFFECTS),
            checkpointer=InMemorySaver(),
        )
        thread: Any = {"configurable": {"thread_id": str(uuid.uuid4())}}
        begun = await graph.ainvoke({"messages": [HumanMessage("Tell Ada what is new about Oslo.")]}, thread)
        for pause in begun.get("__interrupt__", ()):
            print("It pauses:", pause.value["action_requests"][0]["description"])
        over, resume = asyncio.Event(), make_resume_function(graph)

        async def go_on(pause: Pause) -> None:
            await resume(pause)
            if not (await graph.aget_state(thread)).next:
                over.set()

        await top.resume_all(go_on, over)
        for message in (await graph.aget_state(thread)).values["messages"]:
            print(f"{message.type}: {message.content or [call['args'] for call in message.tool_calls]}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["sqlite:///interlock.db"]))

"""An agent of Microsoft Agent Framework: its run pauses for people and goes on later. Its model is a script.

python examples/17_agent_framework.py         in one terminal: it waits
interlock approvals list                      in another one
interlock approvals approve ID
"""
# Needs agent_framework

import asyncio
import sys
import uuid
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message, tool

from interlock import Interlock
from interlock.core.run import Pause
from interlock.integrations.agent_framework import Gate


@tool
def get_weather(city: str) -> str:
    """Says what the weather is like."""
    return f"clear in {city}"


@tool
def send_mail(to: str, text: str) -> str:
    """Sends a mail."""
    return f"sent to {to}: {text}"


class Model(FunctionInvocationLayer, BaseChatClient):
    """What a model would say: first two tool calls, then an answer. Use OpenAIChatClient() or another instead."""

    def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
        told = [part.result for message in messages for part in message.contents if part.type == "function_result"]
        return answered(
            [f"Done: {told}"] if told else [called("get_weather", city="Oslo"), called("send_mail", **MAIL)]
        )


MAIL = {"to": "alice", "text": "Clear sky."}


def called(name: str, **args: str) -> Content:
    return Content.from_function_call(call_id=f"call_{name}", name=name, arguments=args)


async def answered(contents: list[Any]) -> ChatResponse:
    return ChatResponse(messages=[Message("assistant", contents)])


async def main(url: str) -> None:
    async with Interlock(url, agent="mailer") as lock:
        gate = Gate(lock.agent(), effects={"get_weather": "read"})  # of send_mail nothing is said: it asks
        agent = Agent(Model(), tools=[get_weather, send_mail], middleware=gate.middleware)

        session = agent.create_session(session_id=f"ticket-{uuid.uuid4()}")
        response = await agent.run("Mail alice the weather in Oslo.", session=session)
        for request in response.user_input_requests:  # the run is over, and kept: this program could end
            print("waits for people:", request.function_call.name)

        stop = asyncio.Event()

        async def resume(pause: Pause) -> None:  # in a program of its own it does so for every run of the agent
            _, went_on = await gate.resume(agent, pause)
            print(pause.run_id, "->", went_on.text)
            stop.set()

        await gate.agent.resume_all(resume, stop)


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"))

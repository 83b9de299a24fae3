"""An agent of Agno whose run pauses for people in Agno's database and goes on when they decided. Its model is a script.

python examples/18_agno.py                    in one terminal: it waits
interlock approvals list                      in another one
interlock approvals approve ID
"""
# Needs agno

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.models.base import Model
from agno.models.response import ModelResponse

from interlock import Interlock
from interlock.core.run import Pause
from interlock.integrations.agno import Gate


def get_weather(city: str) -> str:
    """Says what the weather is like."""
    return f"clear in {city}"


def send_mail(to: str, text: str) -> str:
    """Sends a mail."""
    return f"sent to {to}: {text}"


class Script(Model):
    """What a model would say: first two tool calls, then an answer. Use OpenAIChat() or another instead."""

    def invoke(self, messages: list[Any], **_: Any) -> ModelResponse:
        if told := [message.content for message in messages if message.role == "tool"]:
            return ModelResponse(role="assistant", content=f"Done: {told}")
        mail = called("send_mail", to="alice", text="Clear sky.")
        return ModelResponse(role="assistant", tool_calls=[called("get_weather", city="Oslo"), mail])

    async def ainvoke(self, messages: list[Any], **more: Any) -> ModelResponse:
        return self.invoke(messages, **more)

    def invoke_stream(self, messages: list[Any], **more: Any) -> Iterator[ModelResponse]:
        yield self.invoke(messages, **more)

    async def ainvoke_stream(self, messages: list[Any], **more: Any) -> AsyncIterator[ModelResponse]:
        yield self.invoke(messages, **more)

    def _parse_provider_response(self, response: ModelResponse, **_: Any) -> ModelResponse:
        return response

    def _parse_provider_response_delta(self, response: ModelResponse) -> ModelResponse:
        return response


def called(name: str, **args: str) -> dict[str, Any]:
    return {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}


async def main(url: str) -> None:
    async with Interlock(url, agent="mailer") as lock:
        gate = Gate(lock.agent(), effects={"get_weather": "read"})  # of send_mail nothing is said: it asks
        tools = gate.tools(get_weather, send_mail)
        agent = Agent(
            id="mailer", model=Script(id="script"), tools=tools, db=SqliteDb(db_file="agno.db"), telemetry=False
        )

        run = await gate.arun(agent, "Mail alice the weather in Oslo.", session_id=f"ticket-{uuid.uuid4()}")
        if run.is_paused:  # it is kept: this program could end
            print("waits for people:", [tool.tool_name for tool in run.tools_requiring_confirmation])

        stop = asyncio.Event()

        async def resume(pause: Pause) -> None:  # in a program of its own it does so for every run of the agent
            print(pause.run_id, "->", (await gate.resume(agent, pause)).content)
            stop.set()

        await gate.agent.resume_all(resume, stop)


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"))

"""A Pydantic AI agent whose run pauses for people and is gone on with when they decided. Its model is a script.

python examples/14_pydantic_ai.py             in one terminal: it waits
interlock approvals list                      in another one
interlock approvals approve ID
"""

import asyncio
import sys
import uuid

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from interlock import Interlock
from interlock.core.run import Pause
from interlock.integrations.pydantic_ai import Gate, resume


def get_weather(city: str) -> str:
    return f"clear in {city}"


def send_mail(to: str, text: str) -> str:
    return f"sent to {to}: {text}"


def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """What a model would say: first two tool calls, then an answer. Use "openai:gpt-6.1-terra" or another instead."""
    told = [part.content for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if isinstance(messages[-1], ModelRequest) and told:
        return ModelResponse([TextPart(f"Done: {told}")])
    weather, mail = {"city": "Oslo"}, {"to": "alice", "text": "Clear sky."}
    return ModelResponse([ToolCallPart("get_weather", weather), ToolCallPart("send_mail", mail)])


async def main(url: str) -> None:
    async with Interlock(url, agent="mailer") as lock:
        mailer = lock.agent()
        gate = Gate(mailer, effects={"get_weather": "read"})  # of send_mail nothing is said: it asks
        kinds = [str, DeferredToolRequests]
        agent = Agent(FunctionModel(model), tools=[get_weather, send_mail], output_type=kinds, capabilities=[gate])

        result = await agent.run("Mail alice the weather in Oslo.", conversation_id=f"ticket-{uuid.uuid4()}")
        if isinstance(result.output, DeferredToolRequests):  # the run is over, and kept: this program could end
            print("waits for people:", [call.tool_name for call in result.output.approvals])

        stop = asyncio.Event()

        async def go_on(pause: Pause) -> None:  # in a program of its own it does so for every run of the agent
            print(pause.run_id, "->", (await resume(agent, pause)).output)
            stop.set()

        await mailer.resume_all(go_on, stop)


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"))

"""An agent of the OpenAI Agents SDK whose run pauses until people have decided. The model here is a script: no key.

python examples/13_openai_agents.py           in one terminal: the run pauses, and is kept in the database
interlock approvals list                      in another one
interlock approvals approve ID                then it goes on: here, or in any process that calls resume_all

# Needs openai_agents
"""

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunResult, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from interlock import Interlock
from interlock.core.run import Pause
from interlock.integrations.openai_agents import gated


@function_tool
def look_up(order: str) -> str:
    """Looks an order up."""
    return f"{order} cost 20 euros"


@function_tool
def refund(order: str, euros: int) -> str:
    """Pays money back."""
    return f"{euros} euros for {order} were paid back"


class Script(Model):
    """What a model would say: a call, and another one after its result, and last what came of them."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.calls = calls

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:
        told = [item["output"] for item in input if item.get("type") == "function_call_output"]
        return ModelResponse(output=[self.said(told)], usage=Usage(), response_id=None)

    def said(self, told: list[str]) -> Any:
        if len(told) == len(self.calls):
            text = ResponseOutputText(type="output_text", text=". ".join(told), annotations=[])
            return ResponseOutputMessage(
                id="message", type="message", role="assistant", status="completed", content=[text]
            )
        tool, args = self.calls[len(told)]
        call_id = f"call_{len(told)}"
        return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=tool, arguments=json.dumps(args))

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def support() -> Agent[None]:
    billing = Agent("billing", tools=[refund], model=Script(("refund", {"order": "A1", "euros": 20})))
    ask = billing.as_tool("ask_billing", "Asks those who can pay money back.")
    script = Script(("look_up", {"order": "A1"}), ("ask_billing", {"input": "Pay A1 back."}))
    return Agent("support", tools=[look_up, ask], model=script)


async def main(url: str) -> None:
    set_tracing_disabled(disabled=True)
    with Interlock(url, agent="support") as lock:
        desk = gated(support(), lock.agent("support"), effects={"look_up": "read", "refund": "write"})
        result: RunResult | None = await desk.run("I want my money back for A1.", run_id=f"conversation-{uuid.uuid4()}")
        for held in result.interruptions if result else ():
            print(f"{held.agent.name} waits for a person: {held.name} {held.arguments}")

        over = asyncio.Event()

        async def resume(pause: Pause) -> None:
            result = await desk.resume(pause)
            if result and not result.interruptions:
                print(result.final_output)
                over.set()

        await lock.agent("support").resume_all(resume, over)  # this could be another process, on another day


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"))

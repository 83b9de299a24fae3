"""Pydantic AI: a run that pauses is kept by its Gate, and gone on with by whoever finds it ready."""

from __future__ import annotations

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from interlock.integrations.pydantic_ai import Gate, resume
from tests.frameworks.programs.model_scripts import (
    AGENT,
    EFFECTS,
    LAST_REPLY,
    Job,
    RunReport,
    main,
    next_calls,
    result_text,
)


async def run(job: Job) -> RunReport:
    with job.lock() as lock:
        clerk = lock.agent(AGENT)
        model, kinds = FunctionModel(scripted_model(job.story)), [str, DeferredToolRequests]
        gate = Gate(clerk, effects=EFFECTS)
        agent = Agent(model, tools=[job.send_mail, job.get_weather], output_type=kinds, capabilities=[gate])
        ready = [pause for pause in await clerk.acquire_ready_pauses(timeout=0) if pause.run_id == job.run]
        if ready:
            result = await resume(agent, ready[0])
            await clerk.complete_pause(ready[0])
        elif any(pause.run_id == job.run for pause in await clerk.list_pauses()):
            return RunReport(paused=True)
        else:
            result = await agent.run("Tell Bob.", conversation_id=job.run)
    if isinstance(result.output, DeferredToolRequests):
        return RunReport(paused=True)
    return RunReport(paused=False, said=result.output, results=tuple(tool_results(result.all_messages())))


def scripted_model(story: str):
    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        calls = next_calls(story, len(tool_results(messages)))
        parts = [ToolCallPart(call.tool, call.args, tool_call_id=call.id) for call in calls]
        return ModelResponse(parts or [TextPart(LAST_REPLY)])

    return model


def tool_results(messages: list[ModelMessage]) -> list[str]:
    parts = [part for message in messages for part in message.parts]
    return [result_text(part.content) for part in parts if isinstance(part, ToolReturnPart)]


if __name__ == "__main__":
    main(run)

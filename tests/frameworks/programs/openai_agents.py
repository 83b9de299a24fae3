"""The OpenAI Agents SDK: an agent with two tools, gated. A conversation that was kept goes on where it stood."""

from __future__ import annotations

from typing import Any

from agents import Agent, function_tool

from interlock.integrations.openai_agents import gated
from tests.frameworks.programs.model_scripts import AGENT, EFFECTS, Job, RunReport, main, next_calls
from tests.frameworks.programs.openai_agents_model import ScriptedModel, results


async def run(job: Job) -> RunReport:
    with job.lock() as lock:
        model = ScriptedModel(lambda told: next_calls(job.story, len(told)))
        tools = [function_tool(job.send_mail), function_tool(job.get_weather)]
        clerk = gated(Agent(AGENT, tools=tools, model=model), lock.agent(AGENT), EFFECTS)
        result: Any = None
        for pause in await clerk.gate.acquire_ready_pauses(0):
            result = await clerk.resume(pause)
        if result is None:
            result = await clerk.run("Go.", run_id=job.run)
    told = tuple(text.split("\n\n")[0] for text in results(result.to_input_list()))  # below it: that it was edited
    return RunReport(paused=bool(result.interruptions), said=str(result.final_output), results=told)


if __name__ == "__main__":
    main(run)

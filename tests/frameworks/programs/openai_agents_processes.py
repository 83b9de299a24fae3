"""The OpenAI Agents SDK in several processes: two that run one state at once, and one that goes on with all runs."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from agents import Agent, Runner, RunState, function_tool

from interlock.integrations.openai_agents import GatedAgent, gated
from tests.frameworks.programs.model_scripts import AGENT, EFFECTS, Job, next_calls
from tests.frameworks.programs.openai_agents_model import ScriptedModel


def make_agent(job: Job, lock: Any) -> GatedAgent:
    model = ScriptedModel(lambda told: next_calls(job.story, len(told)) or " | ".join(told))
    tools = [function_tool(job.send_mail), function_tool(job.get_weather)]
    return gated(Agent(AGENT, tools=tools, model=model), lock.agent(AGENT), EFFECTS)


async def begin(job: Job, clerk: GatedAgent) -> str:
    """As whoever drives the SDK alone would: the state lies in a file."""
    with clerk.conversation(job.run):
        result = await Runner.run(clerk.agent, "Go.")
        await clerk.save_pause(result)
    _state(job).write_text(json.dumps(result.to_state().to_json()))
    return ""


async def approve(job: Job, clerk: GatedAgent) -> str:
    state = await RunState.from_json(clerk.agent, json.loads(_state(job).read_text()))
    for item in state.get_interruptions():
        state.approve(item)
    job.meet_other()
    with clerk.conversation(job.run):
        return str((await Runner.run(clerk.agent, state)).final_output)


async def resume_all(_: Job, clerk: GatedAgent) -> str:
    """Until one run went on to its end."""
    stop, said = asyncio.Event(), ""

    async def resume(pause: Any) -> None:
        nonlocal said
        result = await clerk.resume(pause)
        said = str(result and result.final_output)
        stop.set()

    await clerk.gate.resume_all(resume, stop)
    return said


async def main(name: str, job: Job) -> None:
    with job.lock() as lock:
        said = await {"begin": begin, "approve": approve, "resume_all": resume_all}[name](job, make_agent(job, lock))
    print(json.dumps({"paused": False, "results": [said]}))


def _state(job: Job) -> Path:
    return Path(job.folder) / "state.json"


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Job(**json.loads(sys.argv[2]))))

"""Pydantic AI: goes on with a run from a state in a file, whoever else does so. Prints what the model was told."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from interlock.core.run import Pause
from interlock.integrations.pydantic_ai import Gate, resume
from tests.frameworks.programs.model_scripts import AGENT, Job

JOB = Job(**json.loads(sys.argv[1]))
STATE = (Path(JOB.folder) / "state").read_bytes()


def send(to: str) -> str:
    JOB.record_effect("send", {"to": to})
    return f"sent to {to}"


def done(_: list[ModelMessage], __: AgentInfo) -> ModelResponse:
    return ModelResponse([TextPart("Done.")])


async def resume_run() -> list[Any]:
    with JOB.lock() as lock:
        kinds = [str, DeferredToolRequests]
        agent = Agent(FunctionModel(done), tools=[send], output_type=kinds, capabilities=[Gate(lock.agent())])
        JOB.meet_other()
        result = await resume(agent, Pause(run_id=JOB.run, agent=AGENT, state=STATE, paused_at=0, fence=0))
    parts = [part for message in result.all_messages() for part in message.parts]
    return [part.content for part in parts if isinstance(part, ToolReturnPart)]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(resume_run())))

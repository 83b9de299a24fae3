"""CrewAI: one agent and one task. It cannot pause, so it waits inline."""

from __future__ import annotations

from typing import Any

from tests.frameworks.programs.crewai_model import ScriptedModel, quiet

quiet()

from crewai import Agent, Crew, Task  # noqa: E402  after its telemetry was switched off
from crewai.tools import tool  # noqa: E402

from interlock.integrations.crewai import gated  # noqa: E402
from tests.frameworks.programs.model_scripts import AGENT, EFFECTS, LAST_REPLY, Job, RunReport, main, next_calls  # noqa: E402


async def run(job: Job) -> RunReport:
    @tool
    def send_mail(to: str, text: str) -> str:
        """Sends a mail."""
        return job.send_mail(to, text)

    @tool
    def get_weather(city: str) -> str:
        """Looks at the weather."""
        return job.get_weather(city)

    results: list[str] = []

    def script(told: list[str]) -> Any:
        results[:] = told
        return next_calls(job.story, len(told)) or LAST_REPLY

    with job.lock() as lock:
        tools = gated([send_mail, get_weather], lock.agent(AGENT), effects=EFFECTS)
        clerk = Agent(
            role="Clerk", goal="Writes mails", backstory="At the desk.", tools=tools, llm=ScriptedModel(script)
        )
        task = Task(description="Write to Bob.", expected_output="Done.", agent=clerk)
        end = await Crew(agents=[clerk], tasks=[task]).kickoff_async()
    return RunReport(paused=False, said=str(end), results=tuple(results))


if __name__ == "__main__":
    main(run)

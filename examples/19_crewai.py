"""A crew of two: the one looks things up, the other one writes mails, each with a gate of its own. It waits for people.

python examples/19_crewai.py                  in one terminal: it waits
interlock approvals list                      in another one
interlock approvals approve ID

The model is a script. A real one: python examples/19_crewai.py sqlite:///interlock.db anthropic/claude-sonnet-4-5
"""
# Needs crewai

import os
import sys
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

from interlock import Interlock
from interlock.integrations.crewai import gated


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: clear sky"


@tool
def send_mail(to: str, text: str) -> str:
    """Sends a mail."""
    return f"sent to {to}"  # the real work goes here


class Script(BaseLLM):
    """What a model would say: one tool call, then an answer."""

    wish: dict[str, Any]

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        told = [message["content"] for message in messages if message["role"] == "tool"]
        return told[-1] if told else [{"id": "call_1", "type": "function", "function": self.wish}]


WEATHER = {"name": "get_weather", "arguments": {"city": "Oslo"}}
MAIL = {"name": "send_mail", "arguments": {"to": "ada@example.com", "text": "Clear sky."}}


def main(url: str, model: str = "") -> None:
    with Interlock(url) as lock:
        crew = lock.agent("crew")
        scout = Agent(
            role="Scout",
            goal="Knows the weather",
            backstory="Looks out of the window.",
            tools=gated([get_weather], crew.agent("scout"), effects={"get_weather": "read"}),
            llm=model or Script(model="script", wish=WEATHER),
        )
        writer = Agent(
            role="Writer",
            goal="Writes short mails",
            backstory="At the desk.",
            tools=gated([send_mail], crew.agent("writer"), effects={"send_mail": "write"}),
            llm=model or Script(model="script", wish=MAIL),
        )
        tasks = [
            Task(description="How is the weather in Oslo?", expected_output="One line.", agent=scout),
            Task(description="Mail it to ada@example.com.", expected_output="What was done.", agent=writer),
        ]
        done = Crew(agents=[scout, writer], tasks=tasks).kickoff()
        for output in done.tasks_output:
            print(f"{output.agent}: {output.raw}")


if __name__ == "__main__":
    main(*sys.argv[1:] or ["sqlite:///interlock.db"])

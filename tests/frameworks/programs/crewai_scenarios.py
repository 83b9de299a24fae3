"""What is special to CrewAI, one scene after the other in one process: its import takes longest."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

from tests.frameworks.programs.crewai_model import ScriptedModel, quiet

quiet()

from crewai import Agent, Crew, Task  # noqa: E402  after its telemetry was switched off
from crewai.hooks import clear_before_tool_call_hooks, register_before_tool_call_hook  # noqa: E402
from crewai.tools import BaseTool, tool  # noqa: E402

from interlock.core.errors import Misconfigured  # noqa: E402
from interlock.integrations.crewai import GatedTool, gated  # noqa: E402
from tests.frameworks.programs.model_scripts import MAIL, Call, Job  # noqa: E402

RULES = """\
version: 1
rules:
  - {name: not to eve, tools: [send_mail], when: 'args.to == "eve@example.com"', then: deny, reason: Not to Eve}
  - {name: all else, then: allow}
"""


class Scenarios:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.lock = job.lock(policy=RULES)

    def mail(self, **more: Any) -> BaseTool:
        """A tool with an effect that then fails, unless told otherwise."""

        @tool(**more)
        def send_mail(to: str, text: str) -> str:
            """Sends a mail."""
            self.job.send_mail(to, text)
            if text == "fail":
                raise ConnectionError("the line is dead")
            return f"sent to {to}"

        return send_mail

    def late(self) -> BaseTool:
        @tool
        async def send_mail(to: str, text: str) -> str:
            """Sends a mail."""
            await asyncio.sleep(0)
            return self.job.send_mail(to, text)

        return send_mail

    def gate(self, *tools: BaseTool, path: tuple[str, ...] = ("crew",)) -> list[GatedTool]:
        agent = self.lock.agent(path[0])
        for name in path[1:]:
            agent = agent.agent(name)
        return gated(tools, agent, effects={each.name: "write" for each in tools})

    # Scenes

    def a_tool_that_fails(self) -> dict[str, Any]:
        """Its ReAct loop invokes a tool that raises once more, and more often still."""
        bare = self.written([self.mail()], "fail@example.com")
        gate = self.written(self.gate(self.mail()), "once@example.com")
        return {"bare": bare, "gated": gate}

    def a_step_of_its_own(self) -> None:
        """A hook that trips lets the tool run."""

        def ask(_: object) -> bool:
            raise ConnectionError("nobody can be asked")

        register_before_tool_call_hook(ask)
        self.crew([self.mail()], mail("own@example.com"))
        clear_before_tool_call_hooks()

    def a_no_as_the_answer(self) -> str:
        """A result that counts as the answer of the task; a refusal does not."""
        return self.crew(self.gate(self.mail(result_as_answer=True)), mail("eve@example.com"))

    def the_same_again(self) -> str:
        """CrewAI keeps results and gives them again; what changes something is judged each time."""
        twice = mail("twice@example.com", "first")
        return self.crew(self.gate(self.mail()), twice, twice._replace(id="call_2"))

    def two_agents(self) -> str:
        """The one delegates to the other; each has a gate of its own."""
        words = {"coworker": "Writer", "task": "Write to Bob", "context": "It is late"}
        boss = [(Call("call_d", "delegate_work_to_coworker", words),)]
        clerk = agent("Writer", self.gate(self.mail(), path=("crew", "writer")), [(mail("bob@example.com"),)])
        head = agent("Head", self.gate(self.mail(), path=("crew", "head")), boss, allow_delegation=True)
        task = Task(description="Have Bob written to.", expected_output="Done.", agent=head)
        return str(Crew(agents=[head, clerk], tasks=[task]).kickoff())

    def in_async(self) -> str:
        clerk = agent("Clerk", self.gate(self.late()), [(mail("async@example.com"),)])
        task = Task(description="Write.", expected_output="Done.", agent=clerk)
        return str(asyncio.run(Crew(agents=[clerk], tasks=[task]).akickoff()))

    def with_a_secret(self) -> str:
        """The tool gets it, and nobody sees it."""
        agent = self.lock.agent("keeper")
        tools = gated([self.mail()], agent, effects={"send_mail": "write"}, secret={"send_mail": ("text",)})
        return self.crew(tools, mail("safe@example.com", "tok-123"))

    def from_a_checkpoint(self) -> str:
        (kept,) = self.gate(self.mail())
        back = GatedTool.model_validate(kept.model_dump(exclude={"tool_type"}))
        return back.format_output_for_agent(back.run(to="ghost@example.com", text="Hello"))

    def by_mistake(self) -> list[str]:
        (once,) = self.gate(self.mail())
        misread = lambda: gated([self.mail()], self.lock.agent("crew"), effects={"send_mial": "read"})  # noqa: E731
        return [error_message(misread), error_message(lambda: self.gate(once))]

    def crew(self, tools: Any, *calls: Call) -> str:
        """One turn for each call; what the model was told last is what it says."""
        clerk = agent("Clerk", tools, [(call,) for call in calls])
        task = Task(description="Write.", expected_output="Done.", agent=clerk)
        return str(Crew(agents=[clerk], tasks=[task]).kickoff())

    def written(self, tools: Any, to: str) -> int:
        """The same with a model that knows no function calls; gives how often the tool was asked for by it."""
        turns = [f'Thought: go\nAction: send_mail\nAction Input: {{"to": "{to}", "text": "fail"}}']
        model = TextModel(turns)
        clerk = Agent(role="Clerk", goal="Mails", backstory="Here.", tools=list(tools), llm=model, max_iter=3)
        Crew(agents=[clerk], tasks=[Task(description="Write.", expected_output="Done.", agent=clerk)]).kickoff()
        return model.asked


class TextModel(ScriptedModel):
    """Writes its calls as text, one after the other, and then the answer."""

    def __init__(self, turns: list[str]) -> None:
        super().__init__(lambda _: "")
        self._turns = turns
        self.asked = 0

    def supports_function_calling(self) -> bool:
        return False

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        if self.asked < len(self._turns):
            self.asked += 1
            return self._turns[self.asked - 1]
        return "Thought: I now can give a great answer\nFinal Answer: Done."


def mail(to: str, text: str = "Hello") -> Call:
    return MAIL._replace(args={"to": to, "text": text})


def agent(role: str, tools: Any, turns: list[tuple[Call, ...]], **more: Any) -> Agent:
    def script(told: list[str]) -> Any:
        return turns[len(told)] if len(told) < len(turns) else told[-1]

    return Agent(role=role, goal="Mails", backstory="Here.", tools=list(tools), llm=ScriptedModel(script), **more)


def error_message(make: Callable[[], object]) -> str:
    try:
        make()
    except Misconfigured as error:
        return error.message
    return ""


if __name__ == "__main__":
    scenes = Scenarios(Job(**json.loads(sys.argv[1])))
    with scenes.lock:
        told = {name: getattr(scenes, name)() for name in vars(Scenarios) if "_" in name.strip("_")}
    print(json.dumps(told), flush=True)

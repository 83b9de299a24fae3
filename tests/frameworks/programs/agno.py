"""An agent of Agno, with its runs in a database of Agno's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.models.base import Model
from agno.models.response import ModelResponse

from interlock.integrations.agno import Gate
from tests.frameworks.programs.model_scripts import (
    AGENT,
    EFFECTS,
    LAST_REPLY,
    Call,
    Job,
    RunReport,
    main,
    next_calls,
    result_text,
)


async def run(job: Job) -> RunReport:
    with job.lock() as lock:
        gate = Gate(lock.agent(AGENT), EFFECTS)
        db = SqliteDb(db_file=str(Path(job.folder) / "agno.db"))
        agent = Agent(
            id=AGENT,
            model=Script(partial(next_calls, job.story)),
            tools=gate.tools(*tools_of(job)),
            db=db,
            telemetry=False,
        )
        found = await agent.aget_last_run_output(session_id=job.run)
        if found is None:
            found = await gate.arun(agent, "Write to bob.", session_id=job.run)
        elif found.is_paused:
            found = await gate.acontinue_run(agent, found)
    results = [result.partition("\n\n")[0] for result in results_of(found.messages)]  # without a word on an edit
    return RunReport(found.is_paused, str(found.content), tuple(results))


class Script(Model):  # type: ignore[misc]
    """A model that wants what the script says once it has so many results, and nothing more at the end."""

    def __init__(self, says: Callable[[int], Sequence[Call]]) -> None:
        super().__init__(id="script")
        self.says, self.turns = says, 0

    def invoke(self, messages: Any, **_: Any) -> ModelResponse:
        self.turns += 1
        wanted = self.says(len(results_of(messages)))
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.tool, "arguments": result_text(c.args)}}
            for c in wanted
        ]
        return ModelResponse(role="assistant", content=None if calls else LAST_REPLY, tool_calls=calls)

    async def ainvoke(self, messages: Any, **more: Any) -> ModelResponse:
        return self.invoke(messages, **more)

    def invoke_stream(self, messages: Any, **more: Any) -> Iterator[ModelResponse]:
        yield self.invoke(messages, **more)

    async def ainvoke_stream(self, messages: Any, **more: Any) -> AsyncIterator[ModelResponse]:
        yield self.invoke(messages, **more)

    def _parse_provider_response(self, response: ModelResponse, **_: Any) -> ModelResponse:
        return response

    def _parse_provider_response_delta(self, response: ModelResponse) -> ModelResponse:
        return response


def tools_of(job: Job) -> list[Any]:
    def send_mail(to: str, text: str) -> str:
        """Sends a mail."""
        return job.send_mail(to, text)

    def get_weather(city: str) -> str:
        """Says what the weather is like."""
        return job.get_weather(city)

    return [send_mail, get_weather]


def results_of(messages: Any) -> list[str]:
    """The texts that the model has for its calls, in the order of the calls."""
    found = [(message.tool_call_id, str(message.content)) for message in messages or () if message.role == "tool"]
    calls = [call["id"] for message in messages or () for call in message.tool_calls or ()]
    return [text for _, text in sorted(found, key=lambda each: calls.index(each[0]))]


if __name__ == "__main__":
    main(run)

"""An agent of Microsoft Agent Framework that keeps its session in a file of the framework's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FileSessionStore,
    FunctionInvocationLayer,
    Message,
    tool,
)

from interlock.integrations.agent_framework import Gate, pending_requests
from tests.frameworks.programs.model_scripts import AGENT, EFFECTS, LAST_REPLY, Call, Job, RunReport, main, next_calls


async def run(job: Job) -> RunReport:
    with job.lock() as lock:
        gate = Gate(lock.agent(AGENT), EFFECTS)
        agent = Agent(ScriptedModel(partial(next_calls, job.story)), tools=make_tools(job), middleware=gate.middleware)
        store = FileSessionStore(Path(job.folder) / "sessions")
        session = await store.get(job.run)
        if session is None:
            session = agent.create_session(session_id=job.run)
            await agent.run("Write to bob.", session=session)
        elif pending_requests(session):
            await gate.recheck(agent, session)
        await store.set(job.run, session)
    history = session_messages(session)
    return RunReport(bool(pending_requests(session)), history[-1].text, tuple(tool_results(history)))


class ScriptedModel(FunctionInvocationLayer, BaseChatClient):  # type: ignore[misc]
    """A model that wants what the script says once it has so many results, and nothing more at the end."""

    def __init__(self, says: Callable[[int], Sequence[Call]]) -> None:
        super().__init__()
        self.says = says

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        async def answer() -> ChatResponse:
            wanted = self.says(len(tool_results(messages)))
            calls = [Content.from_function_call(call_id=c.id, name=c.tool, arguments=c.args) for c in wanted]
            return ChatResponse(messages=[Message("assistant", calls or [LAST_REPLY])])

        if not stream:
            return answer()

        async def updates() -> Any:
            for message in (await answer()).messages:
                yield ChatResponseUpdate(role="assistant", contents=message.contents)

        return self._build_response_stream(updates())


def make_tools(job: Job) -> list[Any]:
    @tool
    def send_mail(to: str, text: str) -> str:
        """Sends a mail."""
        return job.send_mail(to, text)

    @tool
    def get_weather(city: str) -> str:
        """Says what the weather is like."""
        return job.get_weather(city)

    return [send_mail, get_weather]


def session_messages(session: Any) -> list[Message]:
    (kept,) = [state["messages"] for state in session.state.values() if isinstance(state, dict) and "messages" in state]
    return list(kept)


def tool_results(messages: Any) -> list[str]:
    """The texts that the model has for its calls, in the order of the calls."""
    found = {c.id: c.items[0].text for m in messages for c in m.contents if c.type == "function_result"}
    calls = [c.id for m in messages for c in m.contents if c.type == "function_call"]
    return [found[call] for call in dict.fromkeys(calls) if call in found]


if __name__ == "__main__":
    main(run)

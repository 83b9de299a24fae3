"""A loop of one's own: what an agent tells the model, and that the examples' scripts speak as the vendors do."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Acknowledgement, Approve, Edit, Interlock, Reject, ToolSpec
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.decision import Decision
from interlock.core.ports import ApprovalQuery
from interlock.sdk.agent import Agent
from tests.databases import SqliteFile
from tests.fakes.vendor_schema import schema_errors
from tests.frameworks.framework_program import ROOT
from tests.support import BOB

pytestmark = pytest.mark.smoke  # needs no framework

TAKES = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
SEND = ToolSpec("send", "write", schema=TAKES)
Tell = Callable[[Agent, str, object, Callable[..., Any]], Any]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[AppServices]:
    services = build_services(SqliteFile(tmp_path / "interlock.db").url)
    await services.store.open()
    await services.put_policy("default", "version: 1\ndefaults: {undo_window: 0s}\n", "ada", {})
    yield services
    await services.store.close()


@pytest.fixture
def agent(desk: AppServices, tmp_path: Path) -> Any:
    with Interlock(SqliteFile(tmp_path / "interlock.db").url, agent="mailer") as lock:
        yield lock.agent()


@pytest.fixture(params=["async", "sync"])
def tell(request: pytest.FixtureRequest) -> Tell:
    def told(agent: Agent, call_id: str, args: object, function: Callable[..., Any]) -> Any:
        call = agent.call("send", args, "conversation", call_id)
        if request.param == "async":
            return agent.result(call, SEND, function)
        return asyncio.to_thread(agent.result_sync, call, SEND, function)

    return told


async def answer_pending(desk: AppServices, decide: Callable[[Acknowledgement], Decision]) -> None:
    async with asyncio.timeout(60), desk.store.watch("default") as watch:
        while not (found := (await desk.store.list("default", ApprovalQuery(statuses=("pending",)))).items):
            await watch.wait(1)
    approval = found[0].approval
    await desk.inbox.decide("default", approval.id, decide(Acknowledgement(approval.args_sha256)), BOB)


async def test_the_model_gets_what_came_of_its_call_once_people_decided(
    agent: Agent, desk: AppServices, tell: Tell
) -> None:  # R54
    sent: list[str] = []

    def send(to: str) -> str:
        sent.append(to)
        return f"sent to {to}"

    decisions: list[Callable[[Acknowledgement], Decision]] = [Approve, lambda seen: Edit({"to": "cat"}, seen)]
    for number, decide in enumerate([*decisions, lambda seen: Reject("Not on Sundays", seen)]):
        running = asyncio.ensure_future(tell(agent, str(number), {"to": "bob"}, send))
        await answer_pending(desk, decide)
        await running
    again = [await tell(agent, str(number), {"to": "bob"}, send) for number in range(3)]
    assert again[:2] == ["sent to bob", "sent to cat"]
    assert again[2]["error"] == "Access denied: Not on Sundays"
    assert sent == ["bob", "cat"]


async def test_what_a_function_raises_is_raised_once_and_told_from_then_on(
    agent: Agent, desk: AppServices, tell: Tell
) -> None:  # R46
    def send(to: str) -> str:
        raise OSError("The line was busy.")

    running = asyncio.ensure_future(tell(agent, "1", {"to": "bob"}, send))
    await answer_pending(desk, Approve)
    with pytest.raises(OSError, match="busy"):
        await running
    assert (await tell(agent, "1", {"to": "bob"}, send))["error"] == "OSError: The line was busy."


async def test_arguments_that_do_not_fit_are_the_models_to_mend(
    agent: Agent, desk: AppServices, tell: Tell
) -> None:  # R12
    told = await tell(agent, "1", {"to": 7}, print)
    assert (told["success"], told["status"]) == (False, "invalid")
    assert "to" in told["error"]
    assert (await desk.store.list("default", ApprovalQuery(statuses=()))).items == ()


async def test_an_async_function_is_awaited(agent: Agent, desk: AppServices) -> None:  # R54
    async def look(to: str) -> str:
        return f"saw {to}"

    call = agent.call("look", {"to": "sky"}, "conversation", "1")
    assert await agent.result(call, ToolSpec("look", "read", schema=TAKES), look) == "saw sky"


def test_the_scripts_of_the_examples_speak_as_the_vendors_do() -> None:  # R54
    begun, told = [{"role": "user"}], [{"role": "user"}, {"role": "tool"}]
    openai, anthropic = (load_example(name).scripted for name in ("15_openai_loop", "16_anthropic_loop"))
    for messages in (begun, told):
        asked = {"model": "any", "messages": messages}
        assert schema_errors("openai/chat", "CreateChatCompletionResponse", openai(asked)) == []
        assert schema_errors("anthropic", "message", anthropic(asked)) == []


def load_example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

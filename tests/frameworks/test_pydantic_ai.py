"""What is special to Pydantic AI. It is in our own environment: nearly all of it runs here, with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter
from pydantic_ai import (
    Agent,
    ApprovalRequiredToolset,
    BinaryContent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    ToolApproved,
    ToolDenied,
    ToolReturn,
    UserError,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls, Hooks
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool

from interlock import Acknowledgement, Approve, Edit, Interlock, Misconfigured, Reject, Respond, ToolSpec
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.decision import Decision
from interlock.core.errors import CallMismatch, InvalidDecision, StoreUnavailable
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from interlock.integrations.pydantic_ai import Gate, gated, resume, save_pause
from tests.databases import SqliteFile
from tests.frameworks.framework_program import PROGRAMS, ROOT, EffectServer, start_program, wait_finished
from tests.support import BOB

pytestmark = pytest.mark.smoke  # the framework of make test: it is in our own environment

ASKING = "version: 1\ndefaults: {undo_window: 0s}\n"
FREE = "version: 1\nrules: [{name: all is free, then: allow}]\n"
KINDS = [str, DeferredToolRequests]


@dataclass
class Mailbox:
    """Where tools leave their marks."""

    sent: list[str] = field(default_factory=list)

    def send(self, to: str) -> str:
        self.sent.append(to)
        return f"sent to {to}"


@dataclass
class Reviewers:
    """Where people sit, beside the programs that are tested."""

    services: AppServices
    url: str

    async def wait_pending(self, count: int = 1) -> list[Stored]:
        """Those that wait, once there are so many."""
        store, query = self.services.store, ApprovalQuery(statuses=("pending",))
        async with asyncio.timeout(60), store.watch("default") as watch:
            while len(found := (await store.list("default", query)).items) < count:
                await watch.wait(1)
        return [await store.get("default", stored.approval.id) for stored in found]

    async def decide(self, decision: Decision, stored: Stored | None = None) -> None:
        stored = stored or (await self.wait_pending())[0]
        await self.services.inbox.decide("default", stored.approval.id, decision, BOB)

    async def list_approvals(self) -> list[Stored]:
        return list((await self.services.store.list("default", ApprovalQuery(statuses=()))).items)


@pytest.fixture
async def reviewers(tmp_path: Path) -> AsyncIterator[Reviewers]:
    url = SqliteFile(tmp_path / "interlock.db").url
    services = build_services(url)
    await services.store.open()
    await services.put_policy("default", ASKING, "ada", {})
    yield Reviewers(services, url)
    await services.store.close()


@pytest.fixture
def lock(reviewers: Reviewers) -> Any:
    with Interlock(reviewers.url, agent="clerk") as opened:
        yield opened


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


def model(*turns: list[ToolCallPart] | str, heard: list[object] | None = None) -> FunctionModel:
    """Says one turn after the other: which one it is shows in the answers that it gave before."""

    def said(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        turn = turns[sum(isinstance(message, ModelResponse) for message in messages)]
        if heard is not None:
            heard.extend(part.content for part in messages[-1].parts if isinstance(part, ToolReturnPart))
        return ModelResponse([TextPart(turn)] if isinstance(turn, str) else turn)

    return FunctionModel(said)


def tool_call_response(to: object, call_id: str = "call_1", tool: str = "send") -> ToolCallPart:
    return ToolCallPart(tool, {"to": to}, tool_call_id=call_id)


def mailer(lock: Interlock, mailbox: Mailbox, *turns: Any, **gate: Any) -> Agent[Any, Any]:
    said = model(*(turns or ([tool_call_response("bob")], "Done.")))
    return Agent(said, tools=[mailbox.send], output_type=KINDS, capabilities=[Gate(lock.agent(), **gate)])


def results(result: Any) -> list[Any]:
    parts = [part for message in result.all_messages() for part in message.parts]
    return [part.content for part in parts if isinstance(part, ToolReturnPart)]


async def resume_run(lock: Interlock, agent: Agent[Any, Any]) -> Any:
    (pause,) = await lock.agent().acquire_ready_pauses(timeout=60)
    return await resume(agent, pause)


# The red control: its own step


async def test_without_interlock_an_approval_that_is_used_twice_runs_the_tool_twice(mailbox: Mailbox) -> None:
    agent = Agent(model([tool_call_response("bob")], "Done."), output_type=KINDS)
    agent.tool_plain(requires_approval=True)(mailbox.send)
    paused = await agent.run("Tell Bob.")
    yes = DeferredToolResults(approvals={"call_1": True})
    for _ in range(2):
        await agent.run(message_history=paused.all_messages(), deferred_tool_results=yes)
    assert mailbox.sent == ["bob", "bob"]


# Pause and go on


async def test_used_twice_from_the_same_history_it_runs_once(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R54
    agent = mailer(lock, mailbox)
    paused = await agent.run("Tell Bob.", conversation_id="ticket-7")
    await reviewers.decide(Approve())
    yes = DeferredToolResults(approvals={"call_1": True})
    ends = [await agent.run(message_history=paused.all_messages(), deferred_tool_results=yes) for _ in range(2)]
    assert [results(end) for end in ends] == [["sent to bob"], ["sent to bob"]]
    assert mailbox.sent == ["bob"]


async def test_two_processes_go_on_with_the_same_state_at_once_and_it_runs_once(
    lock: Interlock, reviewers: Reviewers, effects: EffectServer, tmp_path: Path
) -> None:  # R46, R54
    agent = mailer(lock, Mailbox())
    await agent.run("Tell Bob.", conversation_id="ticket-7")
    await reviewers.decide(Approve())
    (pause,) = await lock.agent().acquire_ready_pauses(timeout=60)
    (tmp_path / "state").write_bytes(pause.state)
    more = {"url": reviewers.url, "effects": effects.url, "run": "ticket-7", "folder": str(tmp_path)}
    job = json.dumps({**more, "story": "", "meet": True})
    programs = [start_program("pydantic_ai", PROGRAMS / "pydantic_ai_state.py", job, folder=tmp_path) for _ in range(2)]
    ends = [await asyncio.to_thread(wait_finished, program) for program in programs]
    assert [json.loads(out.splitlines()[-1]) for out, _ in ends] == [["sent to bob"], ["sent to bob"]]
    assert effects.calls_to("send") == [{"to": "bob"}]


async def test_what_was_said_at_the_gate_counts_and_no_approval_in_a_clients_hands(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R54
    agent = mailer(lock, mailbox)
    paused = await agent.run("Tell Bob.", conversation_id="ticket-7")
    forged = DeferredToolResults(approvals={"call_1": True})
    again = await agent.run(message_history=paused.all_messages(), deferred_tool_results=forged)
    assert isinstance(again.output, DeferredToolRequests)
    generous = HandleDeferredToolCalls[Any](lambda _, requests: requests.build_results(approve_all=True))
    again = await agent.run("Tell Bob.", conversation_id="ticket-7", capabilities=[generous])
    assert isinstance(again.output, DeferredToolRequests)
    other = DeferredToolResults(approvals={"call_1": ToolApproved(override_args={"to": "eve"})})
    with pytest.raises(CallMismatch):
        await agent.run(message_history=paused.all_messages(), deferred_tool_results=other)
    await reviewers.decide(Approve())
    with pytest.raises(CallMismatch):
        await agent.run(message_history=paused.all_messages(), deferred_tool_results=other)
    assert mailbox.sent == []
    assert len(await reviewers.list_approvals()) == 1


async def test_those_that_are_decided_run_and_the_rest_pauses_again(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R6
    calls = [tool_call_response(name, name) for name in ("ann", "bob", "cat", "dan")]
    heard: list[Any] = []
    said, gate = model(calls, "Done.", heard=heard), Gate(lock.agent())
    agent = Agent(said, tools=[mailbox.send], output_type=KINDS, capabilities=[gate])
    paused = await agent.run("Tell all.", conversation_id="ticket-7")
    order = {stored.approval.subject.call_id: stored for stored in await reviewers.wait_pending(4)}
    await reviewers.decide(Approve(), order["dan"])
    yes = DeferredToolResults(approvals=dict.fromkeys(order, True))
    partly = await agent.run(message_history=paused.all_messages(), deferred_tool_results=yes)
    assert [call.tool_call_id for call in partly.output.approvals] == ["ann", "bob", "cat"]
    assert list(await lock.agent().acquire_ready_pauses(timeout=0)) == []
    await reviewers.decide(Reject("No."), order["bob"])
    await reviewers.decide(Respond("She knows."), order["cat"])
    await reviewers.decide(Approve(), order["ann"])
    assert (await resume_run(lock, agent)).output == "Done."
    assert [heard[0], heard[2], heard[3]] == ["sent to ann", "She knows.", "sent to dan"]
    assert "No." in heard[1]
    assert mailbox.sent == ["dan", "ann"]


async def test_a_rejection_is_a_denial_in_the_frameworks_own_words(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R35
    agent = mailer(lock, mailbox)
    await agent.run("Tell Bob.", conversation_id="ticket-7")
    await reviewers.decide(Reject("Not on Sundays"))
    end = await resume_run(lock, agent)
    parts = [part for message in end.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [(part.outcome, "Access denied: Not on Sundays" in part.content) for part in parts] == [("denied", True)]


async def test_an_edit_runs_and_the_model_is_told_what_ran(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R11
    agent = mailer(lock, mailbox)
    await agent.run("Tell Bob.", conversation_id="ticket-7")
    (stored,) = await reviewers.wait_pending()
    with pytest.raises(InvalidDecision, match="to"):
        await reviewers.decide(Edit({"to": 7}, Acknowledgement(stored.approval.args_sha256)))
    await reviewers.decide(Edit({"to": "cat"}, Acknowledgement(stored.approval.args_sha256)))
    end = await resume_run(lock, agent)
    assert (mailbox.sent, results(end)) == (["cat"], ["sent to cat"])
    notes = [part.content for part in end.all_messages()[-2].parts if isinstance(part, UserPromptPart)]
    assert notes == ['A reviewer changed the arguments of this call. send ran with: {"to": "cat"}']


async def test_of_an_edited_secret_the_model_hears_only_the_name(lock: Interlock, reviewers: Reviewers) -> None:  # R11
    async def login(user: str, password: str) -> ToolReturn[str]:
        return ToolReturn("in", content=f"as {user}, {len(password)}")

    spec = ToolSpec("login", "write", secret=("/password",))
    call = ToolCallPart("login", {"user": "bob", "password": "hunter2"}, tool_call_id="1")
    gate = Gate(lock.agent(), effects={"login": spec})
    agent = Agent(model([call], "Done."), tools=[login], output_type=KINDS, capabilities=[gate])
    await agent.run("Go.", conversation_id="ticket-7")
    (stored,) = await reviewers.wait_pending()
    await reviewers.decide(Edit({"user": "bob", "password": "swordfish"}, Acknowledgement(stored.approval.args_sha256)))
    end = await resume_run(lock, agent)
    (note,) = [part.content for part in end.all_messages()[-2].parts if isinstance(part, UserPromptPart)]
    assert note == [
        "as bob, 9",
        "A reviewer changed the arguments of this call. login ran with: other values of password",
    ]


async def test_an_edit_that_only_the_tool_can_refuse_is_not_run_and_no_fault_of_the_models(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R12
    def known(_: RunContext[Any], to: str) -> None:
        if to != "bob":
            raise ModelRetry(f"Nobody is called {to}.")

    tools = FunctionToolset[Any]()
    tools.add_function(mailbox.send, args_validator=known)
    agent = Agent(
        model([tool_call_response("bob")], "Done."),
        toolsets=[tools],
        output_type=KINDS,
        capabilities=[Gate(lock.agent())],
    )
    await agent.run("Tell Bob.", conversation_id="ticket-7")
    (stored,) = await reviewers.wait_pending()
    await reviewers.decide(Edit({"to": "nobody"}, Acknowledgement(stored.approval.args_sha256)))
    end = await resume_run(lock, agent)
    assert mailbox.sent == []
    assert "A reviewer changed the arguments" in results(end)[0]
    assert [stored.approval.status for stored in await reviewers.list_approvals()] == ["failed"]


async def test_what_asked_still_asks_when_the_policy_becomes_free(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R35
    agent = mailer(lock, mailbox)
    paused = await agent.run("Tell Bob.", conversation_id="ticket-7")
    await reviewers.services.put_policy("default", FREE, "ada", {})
    yes = DeferredToolResults(approvals={"call_1": True})
    again = await agent.run(message_history=paused.all_messages(), deferred_tool_results=yes)
    assert isinstance(again.output, DeferredToolRequests)
    assert mailbox.sent == []


async def test_a_picture_in_the_history_is_the_same_afterwards(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R54
    agent, picture = mailer(lock, mailbox), BinaryContent(bytes(range(256)), media_type="image/png")
    await agent.run(["Tell Bob.", picture], conversation_id="ticket-7")
    await reviewers.decide(Approve())
    (prompt,) = (await resume_run(lock, agent)).all_messages()[0].parts
    assert prompt.content[1].data == picture.data


async def test_calls_that_the_run_deferred_for_itself_need_their_own_results(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R6
    def render(to: str) -> str:
        raise CallDeferred

    said = model([tool_call_response("bob"), tool_call_response("film", "call_2", "render")], "Done.")
    gate = Gate(lock.agent(), effects={"render": "read"})
    agent = Agent(said, tools=[mailbox.send, render], output_type=KINDS, capabilities=[gate])
    await agent.run("Both.", conversation_id="ticket-7")
    await reviewers.decide(Approve())
    (pause,) = await lock.agent().acquire_ready_pauses(timeout=60)
    with pytest.raises(UserError, match="all deferred tool calls"):
        await resume(agent, pause)
    end = await resume(agent, pause, DeferredToolResults(calls={"call_2": "film.mp4"}))
    assert results(end) == ["sent to bob", "film.mp4"]
    assert mailbox.sent == ["bob"]


async def test_a_streamed_run_pauses_as_well(lock: Interlock, reviewers: Reviewers, mailbox: Mailbox) -> None:  # R54
    async def stream(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[Any]:
        from pydantic_ai.models.function import DeltaToolCall

        if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
            yield "Done."
        else:
            yield {0: DeltaToolCall("send", '{"to": "bob"}', tool_call_id="call_1")}

    agent = Agent(
        FunctionModel(model([tool_call_response("bob")], "Done.").function, stream_function=stream),
        tools=[mailbox.send],
        output_type=KINDS,
        capabilities=[Gate(lock.agent())],
    )
    async with agent.run_stream("Tell Bob.", conversation_id="ticket-7") as streamed:
        assert isinstance(await streamed.get_output(), DeferredToolRequests)
    await reviewers.decide(Approve())
    end = await resume_run(lock, agent)
    assert (end.output, mailbox.sent) == ("Done.", ["bob"])


async def test_the_program_of_the_page_works(
    reviewers: Reviewers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # R54
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    page = (ROOT / "docs" / "frameworks" / "pydantic-ai.md").read_text()
    program: dict[str, Any] = {"__name__": "page"}
    exec(page.split("```python\n")[1].split("```")[0], program)  # noqa: S102  it is our own
    mail = ToolCallPart("send_mail", {"to": "bob", "text": "Clear."}, tool_call_id="call_2")
    said = model([ToolCallPart("get_weather", {"city": "Oslo"}), mail], "Done.")
    with program["lock"], program["agent"].override(model=said):
        await program["begin"]("Mail Bob the weather in Oslo.", "ticket-7")
        await reviewers.decide(Approve())
        (pause,) = await program["support"].acquire_ready_pauses(timeout=60)
        await program["go_on"](pause)
    assert capsys.readouterr().out.endswith("ticket-7 Done.\n")
    assert [stored.approval.subject.tool for stored in await reviewers.list_approvals()] == ["send_mail"]


# Waiting where it stands


async def test_inline_the_call_waits_for_people_and_the_run_goes_on(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R54
    agent = mailer(lock, mailbox, wait="inline")
    running = asyncio.ensure_future(agent.run("Tell Bob.", conversation_id="ticket-7"))
    (stored,) = await reviewers.wait_pending()
    await reviewers.decide(Edit({"to": "cat"}, Acknowledgement(stored.approval.args_sha256)))
    end = await running
    assert (end.output, results(end), mailbox.sent) == ("Done.", ["sent to cat"], ["cat"])
    assert list(await lock.agent().list_pauses()) == []


async def test_inline_a_run_that_begins_again_asks_nothing_new(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R23
    agent = mailer(lock, mailbox, wait="inline")
    first = asyncio.ensure_future(agent.run("Tell Bob.", conversation_id="ticket-7"))
    (stored,) = await reviewers.wait_pending()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    again = [asyncio.ensure_future(agent.run("Tell Bob.", conversation_id="ticket-7")) for _ in range(2)]
    await reviewers.decide(Approve(), stored)
    assert [results(end) for end in await asyncio.gather(*again)] == [["sent to bob"], ["sent to bob"]]
    assert mailbox.sent == ["bob"]
    assert len(await reviewers.list_approvals()) == 1


async def test_a_sub_agent_waits_inside_its_parents_call_with_its_path_and_its_own_switches(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R13
    support = lock.agent("support")
    billing_gate = Gate(support.agent("billing", tool_approvals={"look": True}), effects={"look": "read"})
    calls = [tool_call_response("bob"), tool_call_response("orders", "call_2", "look")]
    billing = Agent(model(calls, "Paid back."), tools=[mailbox.send], capabilities=[billing_gate])
    billing.tool_plain(name="look")(lambda to: f"saw {to}")

    async def ask_billing(ctx: RunContext[Any], to: str) -> str:
        return (await billing.run(to, conversation_id=ctx.conversation_id)).output

    gate = Gate(support, effects={"ask_billing": "read", "look": "read"})
    outer = model(
        [tool_call_response("pay", "call_1", "ask_billing"), tool_call_response("sky", "call_2", "look")], "Done."
    )
    agent = Agent(outer, tools=[ask_billing], output_type=KINDS, capabilities=[gate])
    agent.tool_plain(name="look")(lambda to: f"saw {to}")
    running = asyncio.ensure_future(agent.run("Pay back.", conversation_id="ticket-7"))
    found = await reviewers.wait_pending(2)
    subjects = [stored.approval.subject for stored in found]
    assert {subject.agent_path for subject in subjects} == {("support", "billing")}
    assert {(subject.run_id, subject.thread_id) for subject in subjects} == {("ticket-7", "ticket-7")}
    assert sorted(subject.tool for subject in subjects) == ["look", "send"]
    for stored in found:
        await reviewers.decide(Approve(), stored)
    assert results(await running) == ["Paid back.", "saw sky"]
    assert mailbox.sent == ["bob"]


def test_a_sub_agent_cannot_pause(lock: Interlock) -> None:  # R13
    with pytest.raises(Misconfigured, match="inline"):
        Gate(lock.agent("support").agent("billing"), wait="pause")
    with pytest.raises(Misconfigured, match="later"):
        Gate(lock.agent("support"), wait="later")  # type: ignore[arg-type]


# Which tools


async def test_one_toolset_is_gated_and_what_its_run_ended_with_is_kept(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R54
    tools = gated(FunctionToolset([mailbox.send]), lock.agent())
    free = FunctionToolset[Any]()
    free.add_function(lambda to: f"saw {to}", name="look")
    said = model([tool_call_response("bob"), tool_call_response("sky", "call_2", "look")], "Done.")
    agent = Agent(said, toolsets=[tools, free], output_type=KINDS)
    paused = await agent.run("Tell Bob.", conversation_id="ticket-7")
    assert await save_pause(lock.agent(), paused) is not None
    await reviewers.decide(Approve())
    end = await resume_run(lock, agent)
    assert await save_pause(lock.agent(), end) is None
    assert sorted(results(end)) == ["saw sky", "sent to bob"]


class FakeMcpToolset(AbstractToolset[Any]):
    """The tools of an MCP server, as far as a gate sees them."""

    def __init__(self, client: Client) -> None:
        self.client = client

    @property
    def id(self) -> str:
        return "served"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        validator: Any = TypeAdapter(dict[str, Any]).validator
        defined = [
            ToolDefinition(name=tool.name, parameters_json_schema=tool.input_schema, description=tool.description)
            for tool in (await self.client.list_tools()).tools
        ]
        return {
            each.name: ToolsetTool(toolset=self, tool_def=each, max_retries=1, args_validator=validator)
            for each in defined
        }

    async def call_tool(self, name: str, args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]) -> Any:
        return (await self.client.call_tool(name, args)).content[0].text  # type: ignore[union-attr]


async def test_tools_of_an_mcp_server_ask_and_one_that_changes_after_it_was_approved_does_not_run(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R54
    said, description = (
        model([tool_call_response("bob"), tool_call_response("cat", "call_2")], "Done."),
        ["Sends a mail."],
    )

    async def listed(*_: Any) -> types.ListToolsResult:
        schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
        return types.ListToolsResult(tools=[types.Tool(name="send", input_schema=schema, description=description[-1])])

    async def called(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        sent = mailbox.send(**(params.arguments or {}))
        return types.CallToolResult(content=[types.TextContent(type="text", text=sent)])

    server: Server[Any] = Server("small", on_list_tools=listed, on_call_tool=called)
    async with Client(server) as client:
        agent = Agent(said, toolsets=[FakeMcpToolset(client)], output_type=KINDS, capabilities=[Gate(lock.agent())])
        paused = await agent.run("Tell both.", conversation_id="ticket-7")
        for stored in await reviewers.wait_pending(2):
            await reviewers.decide(Approve(), stored)
        yes = DeferredToolResults(approvals={"call_1": True, "call_2": ToolDenied("Later.")})
        assert "sent to bob" in results(
            await agent.run(message_history=paused.all_messages(), deferred_tool_results=yes)
        )
        description.append("Sends a mail, and a copy to everybody.")
        yes = DeferredToolResults(approvals={"call_1": True, "call_2": True})
        end = await agent.run(message_history=paused.all_messages(), deferred_tool_results=yes)
    assert results(end) == ["sent to bob", "send is not the tool any more that was approved. It was not run."]
    assert mailbox.sent == ["bob"]


async def test_a_tool_that_requires_approval_by_itself_asks_at_the_gate_whatever_the_policy_allows(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R34
    await reviewers.services.put_policy("default", FREE, "ada", {})
    agent = Agent(model([tool_call_response("bob")], "Done."), output_type=KINDS, capabilities=[Gate(lock.agent())])
    agent.tool_plain(requires_approval=True)(mailbox.send)
    await agent.run("Tell Bob.", conversation_id="ticket-7")
    await reviewers.decide(Approve())
    assert (await resume_run(lock, agent)).output == "Done."
    assert mailbox.sent == ["bob"]


async def test_what_ends_a_run_is_not_asked_about(lock: Interlock, reviewers: Reviewers) -> None:  # R54
    def ends(to: str) -> str:
        return f"It is {to}."

    call = ToolCallPart("final_result", {"to": "done"}, tool_call_id="1")
    agent = Agent(model([call]), output_type=ends, capabilities=[Gate(lock.agent())])
    assert (await agent.run("Go.", conversation_id="ticket-7")).output == "It is done."
    assert await reviewers.list_approvals() == []


async def test_a_tool_behind_two_gates_is_refused_and_one_that_asks_for_itself_does_not_run(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R34
    twice = gated(FunctionToolset([mailbox.send]), lock.agent())
    agent = Agent(
        model([tool_call_response("bob")], "Done."),
        toolsets=[twice],
        output_type=KINDS,
        capabilities=[Gate(lock.agent())],
    )
    with pytest.raises(UserError, match="two gates"):
        await agent.run("Tell Bob.", conversation_id="ticket-7")
    own = ApprovalRequiredToolset(FunctionToolset([mailbox.send]))
    agent = Agent(
        model([tool_call_response("bob")], "Done."), toolsets=[own], capabilities=[Gate(lock.agent(), wait="inline")]
    )
    running = asyncio.ensure_future(agent.run("Tell Bob.", conversation_id="ticket-8"))
    await reviewers.decide(Approve())
    with pytest.raises(UserError, match="Leave that to the gate"):
        await running
    assert mailbox.sent == []


# Which call


async def test_a_retry_is_a_new_call_and_so_is_an_id_that_the_model_repeats(
    lock: Interlock, reviewers: Reviewers
) -> None:  # R46
    tried: list[str] = []

    def send(to: str) -> str:
        tried.append(to)
        if len(tried) == 1:
            raise ModelRetry("The line was busy.")
        return f"sent to {to}"

    said = model([tool_call_response("bob")], [tool_call_response("bob")], [tool_call_response("cat")], "Done.")
    agent = Agent(said, tools=[send], output_type=KINDS, capabilities=[Gate(lock.agent())])
    await agent.run("Tell both.", conversation_id="ticket-7")
    for _ in range(3):
        await reviewers.decide(Approve())
        end = await resume_run(lock, agent)
    assert (end.output, tried) == ("Done.", ["bob", "bob", "cat"])
    listed = {stored.approval.subject.call_id: stored.approval.status for stored in await reviewers.list_approvals()}
    assert listed == {"call_1": "failed", "call_1/1": "succeeded", "call_1/2": "succeeded"}


async def test_an_id_is_that_of_the_providers_answer_where_it_has_one(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R46
    def said(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        return ModelResponse([tool_call_response("bob")], provider_response_id="answer_7")

    agent = Agent(FunctionModel(said), tools=[mailbox.send], output_type=KINDS, capabilities=[Gate(lock.agent())])
    await agent.run("Tell Bob.", conversation_id="ticket-7")
    (stored,) = await reviewers.wait_pending()
    assert stored.approval.subject.call_id == "answer_7/call_1"


async def test_a_call_that_failed_before_is_told_and_not_run_again(
    lock: Interlock, reviewers: Reviewers
) -> None:  # R46
    tried: list[str] = []

    def send(to: str) -> str:
        tried.append(to)
        raise ModelRetry("The line was busy.")

    agent = Agent(
        model([tool_call_response("bob")], "Done."), tools=[send], output_type=KINDS, capabilities=[Gate(lock.agent())]
    )
    paused = await agent.run("Tell Bob.", conversation_id="ticket-7")
    await reviewers.decide(Approve())
    yes = DeferredToolResults(approvals={"call_1": True})
    for _ in range(2):
        end = await agent.run(message_history=paused.all_messages(), deferred_tool_results=yes)
    assert tried == ["bob"]
    assert "The line was busy." in results(end)[0]


async def test_a_tool_that_ran_out_of_time_may_have_run_and_nobody_is_told_that_it_failed(
    lock: Interlock, reviewers: Reviewers
) -> None:  # R46
    async def send(to: str) -> str:
        await asyncio.Event().wait()
        return f"sent to {to}"

    async def lost(to: str) -> str:
        raise ModelRetry("Gone.") from MCPError(-32000, "Connection closed")

    tools = FunctionToolset[Any]()
    tools.add_function(send, timeout=0.01)
    tools.add_function(lost)
    said = model([tool_call_response("bob"), tool_call_response("cat", "call_2", "lost")], "Done.")
    agent = Agent(said, toolsets=[tools], output_type=KINDS, capabilities=[Gate(lock.agent())])
    await agent.run("Tell Bob.", conversation_id="ticket-7")
    for stored in await reviewers.wait_pending(2):
        await reviewers.decide(Approve(), stored)
    end = await resume_run(lock, agent)
    assert ["its outcome is unknown" in told for told in results(end)] == [True, True]
    assert [stored.approval.status for stored in await reviewers.list_approvals()] == ["unknown", "unknown"]


async def test_a_result_with_more_than_a_value_is_its_value_when_it_is_told_again(
    lock: Interlock, reviewers: Reviewers
) -> None:  # R46
    def send(to: str) -> ToolReturn[str]:
        return ToolReturn(f"sent to {to}", content="a picture", metadata={"size": 3})

    agent = Agent(
        model([tool_call_response("bob")], "Done."), tools=[send], output_type=KINDS, capabilities=[Gate(lock.agent())]
    )
    paused = await agent.run("Tell Bob.", conversation_id="ticket-7")
    await reviewers.decide(Approve())
    yes = DeferredToolResults(approvals={"call_1": True})
    ends = [await agent.run(message_history=paused.all_messages(), deferred_tool_results=yes) for _ in range(2)]
    assert [results(end) for end in ends] == [["sent to bob"], ["sent to bob"]]


async def test_arguments_that_do_not_fit_go_back_to_the_model_and_ask_nobody(
    lock: Interlock, reviewers: Reviewers
) -> None:  # R12
    def wait(to: int) -> str:
        return f"waited {to}"

    said = model([tool_call_response("5", tool="wait")], [tool_call_response(5, "call_2", "wait")], "Done.")
    agent = Agent(said, tools=[wait], output_type=KINDS, capabilities=[Gate(lock.agent())])
    await agent.run("Wait.", conversation_id="ticket-7")
    (stored,) = await reviewers.wait_pending()
    assert stored.approval.subject.call_id == "call_2"


async def test_nothing_but_the_approved_value_runs_not_even_one_that_python_takes_for_the_same(
    lock: Interlock, reviewers: Reviewers
) -> None:  # R12
    given: list[Any] = []

    def keep_it(to: Any) -> None:
        given.append(to)

    said = model([tool_call_response(1, tool="keep_it"), tool_call_response(1, "call_2", "keep_it")], "Done.")
    agent = Agent(said, tools=[keep_it], output_type=KINDS, capabilities=[Gate(lock.agent())])
    paused = await agent.run("Keep it.", conversation_id="ticket-7")
    one, other = sorted(await reviewers.wait_pending(2), key=lambda stored: stored.approval.subject.call_id)
    await reviewers.decide(Approve(), one)
    await reviewers.decide(Edit({"to": True}, Acknowledgement(other.approval.args_sha256)), other)
    forged = {"call_1": ToolApproved(override_args={"to": True}), "call_2": True}
    await agent.run(message_history=paused.all_messages(), deferred_tool_results=DeferredToolResults(approvals=forged))
    assert sorted(map(repr, given)) == ["1", "True"]  # the two run side by side


async def test_people_see_what_a_hook_made_of_the_arguments(
    lock: Interlock, reviewers: Reviewers, mailbox: Mailbox
) -> None:  # R12
    hooks = Hooks[Any]()

    @hooks.on.before_tool_execute
    async def to_the_list(ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> dict[str, Any]:
        return {"to": f"{args['to']}@example.com"}

    agent = Agent(
        model([tool_call_response("bob")], "Done."),
        tools=[mailbox.send],
        output_type=KINDS,
        capabilities=[Gate(lock.agent()), hooks],
    )
    await agent.run("Tell Bob.", conversation_id="ticket-7")
    (stored,) = await reviewers.wait_pending()
    assert json.loads(stored.payload.args or b"") == {"to": "bob@example.com"}
    await reviewers.decide(Approve())
    await resume_run(lock, agent)
    assert mailbox.sent == ["bob@example.com"]


async def test_without_its_store_nothing_runs(tmp_path: Path, mailbox: Mailbox) -> None:  # R34
    lock = Interlock(f"sqlite:///{tmp_path / 'not here' / 'interlock.db'}", agent="clerk")
    agent = mailer(lock, mailbox, effects={"send": "read"})
    with pytest.raises((StoreUnavailable, Misconfigured)):
        await agent.run("Tell Bob.", conversation_id="ticket-7")
    assert mailbox.sent == []

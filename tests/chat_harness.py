"""A chat in one process: the real loop on a real database, recorded tools and a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from interlock.app.bootstrap import build_services
from interlock.app.gate import Gate
from interlock.app.inbox import Inbox
from interlock.app.policy_in_force import PolicyInForce
from interlock.app.workspaces import Workspaces, WorkspaceServices
from interlock.chat.agents import AgentDirectory
from interlock.chat.stream import Drafts
from interlock.chat.threads import ThreadLoop, Threads
from interlock.chat.tool import Tool, ToolContext, ToolInvocation, object_schema
from interlock.chat.tool_registry import ToolRegistry
from interlock.chat.turn import TurnContext
from interlock.config.models import AgentSettings
from interlock.core.approval.approval import Approval
from interlock.core.call import ToolSpec
from interlock.core.chat.thread import Thread, ThreadEntry
from interlock.core.chat.transcript import Delta, ModelReply, Prompt, ToolRequest, ToolResult
from interlock.core.decision import Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.errors import EffectUnknown, ToolFailed
from interlock.core.identity import Principal
from interlock.core.policy.policy import Policy
from interlock.core.ports import ApprovalQuery, User
from interlock.policy.conditions import compile_condition
from interlock.runtime.json_schema import validate
from interlock.storage.store import SqlStore
from tests.databases import Database
from tests.support import BOB, Clock

ANN = Principal("default", "ann", "reviewer", teams=frozenset({"editors"}))
BEN = Principal("default", "ben", "reviewer")
ROOT = Principal("default", "root", "admin")
PEOPLE = (
    User("ann", "reviewer", teams=frozenset({"editors"})),
    User("ben", "reviewer"),
    User("root", "admin"),
    User("fay", "reviewer", teams=frozenset({"finance"})),
)
FAY = Reviewer("fay", "reviewer", teams=frozenset({"finance"}), via="test")
TEXT = {"type": "string"}
TIMEOUT = 30.0  # seconds until a test that waits for a condition gives up

Turn = ModelReply | Exception | Callable[[Prompt], ModelReply]


def tool_request(call: str, tool: str, **args: object) -> ToolRequest:
    return ToolRequest(call, tool, json.dumps(args))


def tool_calls(*wishes: ToolRequest, text: str = "") -> ModelReply:
    return ModelReply(text, wishes)


class ScriptedModel:
    """Gives its turns one after the other, then `Done.`; records the prompts."""

    name = "test:script"

    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)
        self.prompts: list[Prompt] = []

    async def turn(self, prompt: Prompt) -> AsyncIterator[Delta | ModelReply]:
        self.prompts.append(prompt)
        turn = self.turns.pop(0) if self.turns else ModelReply("Done.")
        reply = turn(prompt) if callable(turn) else turn
        if isinstance(reply, Exception):
            raise reply
        yield Delta(reply.text)
        yield reply

    @property
    def tool_results(self) -> dict[str, Any]:
        """The result of each call in the last prompt, in their order."""
        messages = self.prompts[-1].messages
        return {message.call_id: message.content for message in messages if isinstance(message, ToolResult)}


@dataclass
class RecordedTools:
    """Tools that record their calls outside of the database; slow ones wait until `hold` is set."""

    calls: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    removed: set[str] = field(default_factory=set)  # tools that there are no more
    sentence: str = "Send to {to}"
    more: list[Tool] = field(default_factory=list)
    look_up_error: Exception | None = None  # raised by the preview of t_file and t_wipe

    def tools(self, workspace: str) -> Sequence[Tool]:
        return [tool for tool in (*self._all(), *self.more) if tool.name not in self.removed]

    def _all(self) -> Sequence[Tool]:
        page = object_schema("page", page=TEXT, confirmed={"type": "boolean"})
        return (
            self._tool(ToolSpec("t_look", "read", schema=object_schema("what", what=TEXT))),
            self._tool(ToolSpec("t_send", "write", schema=object_schema("to", to=TEXT), describe=self.sentence)),
            self._tool(ToolSpec("t_file", "write", schema=object_schema("to", to=TEXT), preview=self._look_up)),
            self._tool(ToolSpec("t_put", "write", schema=object_schema("to", to=TEXT), idempotent=True)),
            self._tool(
                ToolSpec(
                    "t_wipe",
                    "destructive",
                    schema=page,
                    describe="Delete {page}. This cannot be undone.",
                    preview=lambda args: self._look_up(f"Page {args['page']}, 3 sections"),
                    confirm="chat",
                )
            ),
            self._tool(ToolSpec("t_wipe_more", "destructive", schema=page, confirm="chat")),
            Tool(ToolSpec("t_wipe_slow", "destructive", schema=page, confirm="chat"), "Deletes slowly", self._slow),
            Tool(ToolSpec("t_fail", "write"), "Fails", self._fail),
            Tool(ToolSpec("t_crash", "write", secret=("token",)), "Crashes", self._crash),
            Tool(ToolSpec("t_unsure", "write", idempotent=True), "Gets no answer", self._lose_response),
            Tool(ToolSpec("t_slow", "read"), "Reads slowly", self._slow),
            Tool(ToolSpec("t_slow_write", "write"), "Writes slowly", self._slow),
            Tool(ToolSpec("t_much", "write"), "Gives much", self._return_much),
        )

    def calls_to(self, tool: str) -> list[Mapping[str, object]]:
        return [args for name, args in self.calls if name == tool]

    def _tool(self, spec: ToolSpec) -> Tool:
        async def run(use: ToolInvocation) -> object:
            self.calls.append((spec.name, use.args))
            self.keys.append(use.key)
            return {"ran": spec.name}

        return Tool(spec, f"Does {spec.name}", run)

    def _look_up(self, found: object) -> str:
        if self.look_up_error is not None:
            raise self.look_up_error
        return str(found)

    async def _fail(self, use: ToolInvocation) -> object:
        raise ToolFailed("The other side said no.")

    async def _crash(self, use: ToolInvocation) -> object:
        raise ValueError(f"cannot use {use.args.get('token')}")

    async def _lose_response(self, use: ToolInvocation) -> object:
        self.calls.append(("t_unsure", use.args))
        raise EffectUnknown("The other side hung up.")

    async def _slow(self, use: ToolInvocation) -> object:
        self.started.set()
        await self.hold.wait()
        self.calls.append(("t_slow", use.args))
        return "at last"

    async def _return_much(self, use: ToolInvocation) -> object:
        self.calls.append(("t_much", use.args))
        return ["x" * 90_000] * 20


class ChatHarness:
    """`dead_runners` are the runners that count as dead."""

    def __init__(
        self,
        store: SqlStore,
        clock: Clock,
        agents: Mapping[str, AgentSettings],
        models: Mapping[str, ScriptedModel],
        effects: RecordedTools | None = None,
    ) -> None:
        self.store, self.clock, self.models = store, clock, dict(models)
        self.effects = effects or RecordedTools()
        self.dead_runners: set[str] = set()
        self.failures: list[Exception] = []
        toggles = {name: dict(agent.tool_approvals) for name, agent in agents.items()}
        self.workspaces = Workspaces(store, self._build_services, toggles)
        self.agents = AgentDirectory(agents)
        self.drafts = self._make_drafts()
        self.threads = Threads(store.threads, self.agents, store.clock, self.drafts)
        self.tool_registry = ToolRegistry(
            lambda workspace, _: ToolContext(workspace, store.tool_items(workspace)), [self.effects.tools]
        )
        self.loop = self.make_loop("first", self.drafts)
        self.services: WorkspaceServices

    def _make_drafts(self) -> Drafts:
        return Drafts(self.store.threads.write_draft, self.store.announce, self.store.clock)

    def make_loop(self, runner: str, drafts: Drafts | None = None) -> ThreadLoop:
        """A loop with another runner id and drafts of its own, as of another process."""
        context = TurnContext(
            threads=self.store.threads,
            agents=self.agents,
            tool_registry=self.tool_registry,
            open_model=lambda name: self.models[name or "main"],
            drafts=drafts or self._make_drafts(),
            clock=self.store.clock,
            runner=runner,
        )
        return ThreadLoop(
            context,
            self.workspaces.services,
            self.store.watch,
            self.dead_runners.__contains__,
            lambda _, e: self.failures.append(e),
        )

    @property
    def model(self) -> ScriptedModel:
        return self.models["main"]

    async def say(self, text: str, thread: Thread | None = None, who: Principal = ANN, agent: str = "main") -> Thread:
        """Send a message and run the loop until it is idle."""
        said = await self.threads.say(self.services, who, text, thread.id if thread else "", agent)
        await self.run_until_idle()
        return said

    async def run_until_idle(self) -> None:
        """Run until nothing is due, or everything left waits for people or for the clock."""
        while await self.loop.sweep():
            await self.loop.wait_idle()

    async def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        await self.run_until_idle()

    async def pending_approvals(self, thread: Thread) -> list[Approval]:
        """The pending approvals of a thread, in the order of their calls."""
        query = ApprovalQuery(statuses=("pending",), thread_id=thread.id)
        found = (await self.services.inbox.list(thread.workspace, query)).items
        return sorted((stored.approval for stored in found), key=lambda approval: approval.subject.call_id)

    async def decide(self, card: Approval, decision: Decision, reviewer: Reviewer = BOB) -> None:
        await self.services.inbox.decide("default", card.id, decision, reviewer)
        await self.run_until_idle()

    async def approve(self, card: Approval, reviewer: Reviewer = BOB) -> None:
        await self.decide(card, Approve(Acknowledgement(card.args_sha256)), reviewer)

    async def edit(self, card: Approval, **args: object) -> None:
        await self.decide(card, Edit(args, Acknowledgement(card.args_sha256)))

    async def respond(self, card: Approval, message: str = "", answer: object = None) -> None:
        await self.decide(card, Respond(message, answer, Acknowledgement(card.args_sha256)))

    async def reject(self, card: Approval, reason: str = "") -> None:
        await self.decide(card, Reject(reason, Acknowledgement(card.args_sha256)))

    async def status(self, thread: Thread) -> str:
        return (await self.store.threads.get(thread.workspace, thread.id)).status

    async def entries(self, thread: Thread, *kinds: str) -> list[ThreadEntry]:
        found = await self.store.threads.entries(thread.workspace, thread.id)
        return [line for line in found if not kinds or line.kind in kinds]

    async def last_end(self, thread: Thread) -> Mapping[str, object]:
        """Status and reason of the last turn; fails if the thread is not idle."""
        assert await self.status(thread) == "idle"
        body = (await self.entries(thread, "ended"))[-1].body
        return {name: body[name] for name in ("status", "reason")}

    async def put_policy(self, text: str) -> None:
        await self.workspaces.put_policy("default", text, "root")

    def _build_services(self, policy: Policy) -> tuple[Gate, Inbox]:
        store, dead = self.store, self.dead_runners.__contains__
        in_force = PolicyInForce(store, policy)
        gate = Gate(store, in_force, store.clock, compile_condition, validate, dead)
        return gate, Inbox(store, in_force, store.clock, compile_condition, validate)


MAIN = AgentSettings(instructions="Be brief.", tools=("t", "request_human_input"))


@asynccontextmanager
async def open_chat(
    database: Database,
    clock: Clock,
    *turns: Turn,
    agents: Mapping[str, AgentSettings] | None = None,
    **models: ScriptedModel,
) -> AsyncIterator[ChatHarness]:
    """`turns` are those of the agent `main`."""
    clock.drive(database)
    store = build_services(database.url, clock).store
    await store.open()
    try:
        for user in PEOPLE:
            await store.put_user("default", user, "root")
        chat = ChatHarness(store, clock, {"main": MAIN, **(agents or {})}, {"main": ScriptedModel(*turns), **models})
        chat.services = await chat.workspaces.services("default")
        yield chat
        assert chat.failures == []
    finally:
        await store.close()


async def wait_until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not condition():  # noqa: ASYNC110  what is waited for sets no event
            await asyncio.sleep(0.005)

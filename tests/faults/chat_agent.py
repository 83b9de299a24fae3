"""The chat agent of the fault suites: every model turn and every tool effect is a line in a file.

The model does what it is told: each line of a message is a call, `tool {"arguments": …}`; behind a line `then` come
the calls of its next turn. A line with # tells messages apart; `# flaky` makes the first try of the model fail.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from interlock.app.bootstrap import build_gate_and_inbox
from interlock.app.workspaces import Workspaces
from interlock.chat.agents import ASSISTANT, AgentDirectory
from interlock.chat.stream import Drafts
from interlock.chat.threads import ThreadLoop, Threads
from interlock.chat.tool import Tool, ToolContext, ToolInvocation, object_schema
from interlock.chat.tool_registry import ToolRegistry
from interlock.chat.turn import TurnContext
from interlock.config.agents import AGENT_TOOL_PREFIX
from interlock.config.models import AgentSettings
from interlock.core.call import QUESTION_TOOL, ToolSpec
from interlock.core.canonical import canonical, digest
from interlock.core.chat.transcript import (
    Delta,
    ModelReply,
    Prompt,
    PromptMessage,
    PromptUserMessage,
    ToolRequest,
    ToolResult,
)
from interlock.core.errors import ModelFailed
from interlock.core.identity import Principal
from interlock.core.ports import User
from interlock.runtime.process_identity import is_dead, make_runner_id
from interlock.storage.store import SqlStore
from tests.faults.points import FaultPoint
from tests.faults.processes import append_line, read_lines

POLICY = """version: 1
defaults: {expires_in: 1h, undo_window: 50ms}
rules:
  - {name: free, tools: [put], then: allow}
  - {name: asked, tools: [agent_editor], then: ask}
"""
PERSON = "ann"
ANN = User(PERSON, "admin")
BACK_OFF = (20, 40, 80)  # milliseconds
LOOK_EVERY = 0.1  # seconds
TEXT = {"type": "string", "maxLength": 200}
TOOLS = ("look", "send", "put", "save", "drop", QUESTION_TOOL)
AGENTS = {
    ASSISTANT: AgentSettings(instructions="Do as you are told.", tools=TOOLS, agents=("writer", "editor")),
    "writer": AgentSettings(instructions="Write.", tools=TOOLS),
    "editor": AgentSettings(instructions="Edit.", tools=TOOLS),
}


@dataclass(frozen=True)
class ExternalLog:
    """Where the world writes down what it saw."""

    folder: Path
    point: FaultPoint | None = None

    @property
    def effects(self) -> Path:
        return self.folder / "effects.txt"

    @property
    def turns(self) -> Path:
        return self.folder / "turns.txt"

    @property
    def late(self) -> Path:
        """Who stood still for longer than a lease: it cannot know what others did meanwhile, and writes nothing."""
        return self.folder / "late.txt"

    def hit(self, name: str) -> None:
        if self.point is not None:
            self.point(name)


class ScriptedModel:
    """The model."""

    name = "test:obedient"

    def __init__(self, outside: ExternalLog) -> None:
        self._outside = outside

    async def turn(self, prompt: Prompt) -> AsyncIterator[Delta | ModelReply]:
        outside, mark = self._outside, prompt_digest(prompt.messages)
        outside.hit("before the model")
        append_line(outside.turns, mark, str(time.time_ns() // 1_000_000), str(os.getpid()))
        if "# flaky" in last_message(prompt.messages)[0] and [t[0] for t in read_lines(outside.turns)].count(mark) == 1:
            raise ModelFailed("The model is busy.", is_retryable=True)
        for word in ("As ", "you ", "say."):
            outside.hit("before a delta")
            yield Delta(word)
            await asyncio.sleep(0)
        outside.hit("after the model")
        yield replies_since_message(prompt.messages)


def prompt_digest(messages: Sequence[PromptMessage]) -> str:
    """What a model was asked, as one word."""
    return digest(canonical([_message_text(each) for each in messages]))[:24]


def last_message(messages: Sequence[PromptMessage]) -> tuple[str, Sequence[PromptMessage]]:
    """The last message, and what came behind it."""
    place = max(n for n, each in enumerate(messages) if isinstance(each, PromptUserMessage))
    said = messages[place]
    return str(said[0]), messages[place + 1 :]


def replies_since_message(messages: Sequence[PromptMessage]) -> ModelReply:
    text, behind = last_message(messages)
    turn = sum(isinstance(each, ModelReply) for each in behind)
    if text == "yes" and not turn:
        return ModelReply("Then I do it.", (is_confirmed(messages),), tokens=3)
    stages = [tool_requests(stage) for stage in text.split("\nthen\n")]
    if turn < len(stages) and stages[turn]:
        return ModelReply("As you say.", stages[turn], tokens=3)
    return ModelReply("That is all.", tokens=3)


def tool_requests(stage: str) -> tuple[ToolRequest, ...]:
    calls = [line.partition(" ") for line in stage.splitlines() if " {" in line and not line.startswith("#")]
    return tuple(ToolRequest(f"call_{n}", tool, args) for n, (tool, _, args) in enumerate(calls))


def is_confirmed(messages: Sequence[PromptMessage]) -> ToolRequest:
    """The same call once more, behind a yes."""
    asked = [each for each in messages if isinstance(each, ToolResult) and "requires_confirmation" in str(each.content)]
    given = [tool_request for each in messages if isinstance(each, ModelReply) for tool_request in each.tool_requests]
    tool_request = next(tool_request for tool_request in reversed(given) if tool_request.tool == asked[-1].tool)
    return ToolRequest("call_0", tool_request.tool, json.dumps({**json.loads(tool_request.args), "confirmed": True}))


def build_tools(outside: ExternalLog) -> Sequence[Tool]:
    """`put` is let through, `save` and `put` may be repeated under one key, `drop` is confirmed in words."""
    to, key = object_schema("to", to=TEXT), object_schema("k", k=TEXT)
    page = object_schema("page", page=TEXT, confirmed={"type": "boolean"})
    specs = (
        ToolSpec("send", "write", schema=to, describe="Send to {to}"),
        ToolSpec("put", "write", schema=key, describe="Put {k}", idempotent=True),
        ToolSpec("save", "write", schema=key, describe="Save {k}", idempotent=True),
        ToolSpec("drop", "destructive", schema=page, describe="Drop {page}. This cannot be undone.", confirm="chat"),
    )
    look = Tool(ToolSpec("look", "read", schema=object_schema()), "Looks.", _look)
    return (look, *(Tool(spec, spec.name, partial(_run_tool, outside, spec.name)) for spec in specs))


async def _look(_: ToolInvocation) -> object:
    return {"seen": True}


async def _run_tool(outside: ExternalLog, tool: str, use: ToolInvocation) -> object:
    outside.hit("before the tool")
    append_line(outside.effects, use.key, tool, canonical(use.args).decode())
    outside.hit("after the tool")
    await asyncio.sleep(0)
    return {"did": tool}


@dataclass(frozen=True)
class Chat:
    """All that a process needs to go on with threads, and to speak in them as their person."""

    store: SqlStore
    threads: Threads
    loop: ThreadLoop
    workspaces: Workspaces


def build_chat(store: SqlStore, outside: ExternalLog, lease: int) -> Chat:
    agents = AgentDirectory(AGENTS, {})
    toolbox = ToolRegistry(
        lambda workspace, _: ToolContext(workspace, store.tool_items(workspace)), [lambda _: [*build_tools(outside)]]
    )
    drafts = Drafts(store.threads.write_draft, store.announce, store.clock)
    model = ScriptedModel(outside)
    services = TurnContext(
        threads=store.threads,
        agents=agents,
        tool_registry=toolbox,
        open_model=lambda _: model,
        drafts=drafts,
        clock=store.clock,
        runner=make_runner_id(),
        lease=lease,
        tool_lease=lease,
        retry_delays=BACK_OFF,
        poll_seconds=LOOK_EVERY,
    )
    workspaces = Workspaces(store, partial(build_gate_and_inbox, store), {})
    loop = ThreadLoop(services, workspaces.services, store.watch, is_dead, _ignore_error)
    return Chat(store, Threads(store.threads, agents, store.clock, drafts), loop, workspaces)


def person(workspace: str) -> Principal:
    return Principal(workspace, PERSON, "admin")


def delegation(task: str, agent: str = "writer") -> str:
    """A line that hands a task to another agent; people are asked first if it is the editor."""
    return f"{AGENT_TOOL_PREFIX}{agent} {json.dumps({'task': task})}"


def _ignore_error(event: str, error: Exception) -> None:
    """Faults are judged by the final state, not by log lines."""


def _message_text(message: PromptMessage) -> list[object]:
    match message:
        case ModelReply():
            return ["replied", message.text, [list(tool_request) for tool_request in message.tool_requests]]
        case ToolResult():
            return ["result", message.call_id, message.content]
        case _:
            return ["said", message[0]]

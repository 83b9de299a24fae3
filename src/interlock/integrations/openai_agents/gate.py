"""The gate of an agent of the OpenAI Agents SDK."""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import agents

from interlock.core.call import ToolSpec
from interlock.core.errors import Misconfigured
from interlock.core.outcome import Answered, Refused, Waiting
from interlock.core.pause import Pause
from interlock.integrations.openai_agents.calls import (
    ConversationContext,
    GatedInvoker,
    HeldCall,
    call_key,
    current_conversation,
    enter_conversation,
    parse_arguments,
    to_text,
)
from interlock.sdk.agent import Agent, to_model_message


def gated(
    agent: agents.Agent[Any],
    gate: Agent,
    effects: Mapping[str, str | ToolSpec] | None = None,
    *,
    ungated: Collection[str] = (),
) -> GatedAgent:
    """Gates the tools of an agent, of those that it hands off to and of those that it has as tools, in their place.

    `effects` says what a tool does: "read", "write" or "destructive", or more by a ToolSpec. What cannot be gated, such
    as a tool that the provider of the model runs, is refused unless `ungated` names it.
    """
    made = GatedAgent(agent, gate, dict(effects or {}), frozenset(ungated))
    made.look()
    return made


@dataclass(frozen=True)
class GatedAgent:
    """An agent whose tools ask. `run` and `resume` keep what waits; around `Runner` itself stands `conversation`."""

    agent: agents.Agent[Any]
    gate: Agent
    effects: Mapping[str, str | ToolSpec]
    ungated: frozenset[str]

    async def run(self, input: Any, run_id: str = "", **options: Any) -> agents.RunResult:
        """`Runner.run` in the conversation `run_id`, or that of the session; where it has interruptions, it is kept.

        Options are those of `Runner.run`.
        """
        with self.conversation(run_id or _session_id(options)) as here:
            result = await agents.Runner.run(self.agent, input, **options)
            return await self._further(here, result, options)

    async def resume(self, pause: Pause, **options: Any) -> agents.RunResult | None:
        """Goes on as far as the decisions allow; None if there is no new one. Session and context are given again."""
        state, asked = await self._restored(pause, options)
        with self.conversation(pause.run_id, asked) as here:
            if not await self._settled(here, state):
                await self.gate.pause(pause.run_id, pause.state)
                return None
            result = await agents.Runner.run(self.agent, state, **options)
            result = await self._further(here, result, options)
        await self.gate.resumed(pause)
        return result

    @asynccontextmanager
    async def run_streamed(
        self, input: Any, run_id: str = "", **options: Any
    ) -> AsyncIterator[agents.RunResultStreaming]:
        """`Runner.run_streamed`: its events are read inside, and if it waits for people at the end, it is kept."""
        with self.conversation(run_id or _session_id(options)) as here:
            result = agents.Runner.run_streamed(self.agent, input, **options)  # its task has the conversation from here
        yield result
        await self._kept(here, result)

    @asynccontextmanager
    async def resume_streamed(self, pause: Pause, **options: Any) -> AsyncIterator[agents.RunResultStreaming]:
        """The same for a run that was kept."""
        state, asked = await self._restored(pause, options)
        with self.conversation(pause.run_id, asked) as here:
            await self._settled(here, state)
            result = agents.Runner.run_streamed(self.agent, state, **options)
        yield result
        await self._kept(here, result)
        if result.is_complete:
            await self.gate.resumed(pause)

    @contextmanager
    def conversation(self, run_id: str, asked: Mapping[str, HeldCall] | None = None) -> Iterator[ConversationContext]:
        """What `Runner` does inside belongs to this conversation."""
        if not run_id:
            raise Misconfigured("A run needs a name: pass run_id, the id of the conversation, or a session.")
        self.look()
        with enter_conversation(ConversationContext(run_id, asked=dict(asked or {}))) as here:
            yield here

    async def keep(self, result: agents.RunResultBase) -> Pause | None:
        """Inside `conversation`: keeps a run that waits for people, so that any process can go on with it."""
        return await self._kept(current_conversation("keep"), result)

    async def _kept(self, here: ConversationContext, result: Any) -> Pause | None:
        with enter_conversation(here):
            if not result.interruptions or not await self._asked(here, result):
                return None
        kept = {"state": result.to_state().to_json(), "asked": here.asked}
        return await self.gate.pause(here.run_id, json.dumps(kept).encode())

    # What people decided, in the words of the SDK

    async def _further(self, here: ConversationContext, result: Any, options: Mapping[str, Any]) -> Any:
        """What is decided already goes on at once; the rest is kept."""
        while result.interruptions:
            await self._asked(here, result)
            state = result.to_state()
            if not await self._settled(here, state):
                await self._kept(here, result)
                break
            result = await agents.Runner.run(self.agent, state, **options)
        return result

    async def _asked(self, here: ConversationContext, result: Any) -> bool:
        """Asks about what the SDK held back without asking; tells whether all that it holds back is gated."""
        for item in result.interruptions:
            args = parse_arguments(item.arguments)
            if self._key(item) in here.asked:
                continue
            tools = await item.agent.get_all_tools(result.context_wrapper)
            named = [tool for tool in tools if getattr(tool, "qualified_name", "") == item.qualified_name]
            gateways = [tool.on_invoke_tool for tool in named if isinstance(tool.on_invoke_tool, GatedInvoker)]
            if not gateways:
                return False
            if not isinstance(args, dict) or not await gateways[0].asks(result.context_wrapper, args, item.call_id):
                here.asked[self._key(item)] = HeldCall()
        return True

    async def _settled(self, here: ConversationContext, state: Any) -> bool:
        """Tells the SDK what became of each call that it holds back; whether there was anything to tell."""
        news = False
        for item in state.get_interruptions():
            known = here.asked.get(self._key(item))
            if known is None:
                continue
            outcome = await self.gate.wait(known.approval_id, 0) if known.approval_id else None
            match outcome:
                case Waiting(status=status) if status != "running":
                    continue
                case Refused() | Answered():
                    state.reject(item, rejection_message=to_text(to_model_message(outcome, item.qualified_name)))
                case _:
                    state.approve(item)  # which says no more than: look again
            news = True
        return news

    async def _restored(self, pause: Pause, options: Mapping[str, Any]) -> tuple[Any, dict[str, HeldCall]]:
        kept, given = json.loads(pause.state), options.get("context")
        again = None if given is None else lambda _: given
        state = await agents.RunState.from_json(self.agent, kept["state"], context_deserializer=again)
        return state, {name: HeldCall(*each) for name, each in kept["asked"].items()}

    def _key(self, item: Any) -> str:
        name = self.gate.name if item.agent.name == self.agent.name else item.agent.name
        return call_key(name, item.qualified_name, item.call_id, parse_arguments(item.arguments))

    # Gating

    def look(self) -> None:
        """Gates what is not gated yet: tools and agents may have been added."""
        seen: set[int] = set()
        ahead = deque([(self.agent, self.gate)])
        while ahead:
            agent, gate = ahead.popleft()
            if id(agent) not in seen:
                seen.add(id(agent))
                self._gate_tools(agent, gate)
                self._gate_servers(agent, gate)
                ahead.extend((other, gate.agent(other.name)) for other in self._below(agent, gate))

    def _gate_tools(self, agent: Any, gate: Agent) -> None:
        tools = [self._tool(tool, agent, gate) for tool in agent.tools]
        if any(new is not old for new, old in zip(tools, agent.tools, strict=True)):
            agent.tools = tools

    def _gate_servers(self, agent: Any, gate: Agent) -> None:
        """Its MCP servers move to where only the gate finds them: a clone of the agent has none, and no free ones."""
        for server in agent.mcp_servers:
            if getattr(server, "max_retry_attempts", 0):
                raise Misconfigured(f"The MCP server {server.name} may send a call twice. Set max_retry_attempts=0.")
        if not agent.mcp_servers:
            return
        before, owner = agent.__dict__.get("get_mcp_tools"), agent.clone()
        agent.mcp_servers = []

        async def get_mcp_tools(context: Any) -> list[Any]:
            found = [*(await before(context) if before else ()), *await owner.get_mcp_tools(context)]
            return [self._tool(tool, agent, gate) for tool in found]

        agent.get_mcp_tools = get_mcp_tools

    def _below(self, agent: Any, gate: Agent) -> Iterator[Any]:
        """The agents that it hands off to, and those that it has as tools."""
        for other in agent.handoffs:
            target = other if isinstance(other, agents.Agent) else _handoff_agent(other)
            if target is None:
                self._gate_when_known(other, gate)
            else:
                yield target
        for tool in agent.tools:
            gateway = getattr(tool, "on_invoke_tool", None)
            if isinstance(gateway, GatedInvoker) and gateway.is_agent:
                yield tool._agent_instance  # the SDK has no public word for it

    def _gate_when_known(self, handoff: Any, gate: Agent) -> None:
        """A handoff that was made by hand names its agent when it happens, and not before."""
        invoke = handoff.on_invoke_handoff
        if hasattr(invoke, "gates"):
            return

        async def on_invoke_handoff(context: Any, text: str) -> Any:
            other = await invoke(context, text)
            replace(self, agent=other, gate=gate.agent(other.name)).look()
            return other

        on_invoke_handoff.gates = True  # type: ignore[attr-defined]
        handoff.on_invoke_handoff = on_invoke_handoff

    def _tool(self, tool: Any, agent: Any, gate: Agent) -> Any:
        if not isinstance(tool, agents.FunctionTool):
            return self._left(tool, agent)
        there = tool.on_invoke_tool
        if not isinstance(there, GatedInvoker):
            mine = copy.copy(tool)  # the same tool may be another agent's too, with another gate
            mine.on_invoke_tool = gateway = GatedInvoker(gate, self._spec(tool), tool)
            mine.needs_approval = gateway.asks
            return mine
        if there.gate != gate:
            whose = " > ".join(there.gate.path)
            raise Misconfigured(f"{tool.name} of {agent.name} is gated as one of {whose}. Make an agent for each gate.")
        return tool

    def _left(self, tool: Any, agent: Any) -> Any:
        if tool.name in self.ungated:
            return tool
        raise Misconfigured(
            f"{tool.name} of the agent {agent.name} cannot be gated: it is no function tool. Take it away, or accept "
            f"that it asks nobody: gated(…, ungated=[{tool.name!r}])."
        )

    def _spec(self, tool: Any) -> ToolSpec:
        """A tool of which nothing is said is unknown, and asks; to call another agent has no effect of its own."""
        name = tool.qualified_name
        said = self.effects.get(name, "read" if tool._is_agent_tool else "")
        spec = said if isinstance(said, ToolSpec) else ToolSpec(name, said)
        return replace(spec, name=name, schema=tool.params_json_schema)


def _session_id(options: Mapping[str, Any]) -> str:
    return str(getattr(options.get("session"), "session_id", ""))


def _handoff_agent(handoff: Any) -> Any:
    known = handoff._agent_ref  # the SDK has no public word for it
    return known() if known is not None else None

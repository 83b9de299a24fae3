"""The tools of the servers behind one client of the gate: found as they are defined now, with what counts as a read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from mcp_types import INTERNAL_ERROR, JSONRPCError, JSONRPCRequest

from interlock.chat.mcp.definition import Check, says_it_only_reads, spec_of
from interlock.config.models import McpServer
from interlock.core.call import Args
from interlock.core.errors import InvalidRequest
from interlock.integrations.mcp_gate.call import Found, Refusal
from interlock.integrations.mcp_gate.first_seen import FirstSeen
from interlock.integrations.mcp_gate.frames import Reply, called, envelope_of
from interlock.integrations.mcp_gate.merge import Merged
from interlock.integrations.mcp_gate.upstream import Lost, Upstream


@dataclass(frozen=True)
class Offer:
    """What stands behind the gate, and what its user said of it."""

    servers: Mapping[str, McpServer]
    check: Check
    trust_hints: bool = False


class Tools:
    def __init__(
        self, upstreams: Sequence[Upstream], merged: Merged | None, offer: Offer, first_seen: FirstSeen
    ) -> None:
        self._upstreams = upstreams
        self._merged = merged
        self._offer = offer
        self._first_seen = first_seen
        self._known: dict[str, tuple[Upstream, Mapping[str, Any]]] = {}

    def forget(self) -> None:
        """The next who looks for a tool asks the server."""
        self._known.clear()

    async def find(self, asked: JSONRPCRequest, *, fresh: bool) -> Found | None:
        """Not every server tells of its changes: what matters is listed again."""
        name = str((asked.params or {}).get("name"))
        if fresh or name not in self._known:
            await self._list(asked)
        known = self._known.get(name)
        if known is None:
            return None
        upstream, tool = known
        try:
            spec = spec_of(upstream.name, upstream.server, tool, self._offer.check, name)
        except InvalidRequest as wrong:
            raise Refusal(f"{name} cannot be called: {wrong.message}") from None
        by_hint = not spec.effect and self._offer.trust_hints and says_it_only_reads(tool)
        if by_hint:
            spec = replace(spec, effect="read")
        spec = await self._first_seen.settled(spec)

        async def run(args: Args, carried: Mapping[str, Any]) -> Reply:
            await self._first_seen.accept(spec)
            frame = called(asked, str(tool["name"]), args, carried)
            return await upstream.ask(frame, tool.get("inputSchema"))

        return Found(spec, tool.get("outputSchema") is not None, run, by_hint=by_hint)

    async def schema(self, asked: JSONRPCRequest) -> object:
        """That of the tool that is called, as far as it is known without a question."""
        name = str((asked.params or {}).get("name"))
        with suppress(Refusal, Lost, TimeoutError):
            if name not in self._known:
                await self._list(asked)
        known = self._known.get(name)
        return known[1].get("inputSchema") if known else None

    async def _list(self, asked: JSONRPCRequest) -> None:
        if self._merged is not None:
            self._known = await self._merged.tools(envelope_of(asked))
            return
        upstream = self._upstreams[0]
        listed = await upstream.listed("tools/list", "tools", envelope_of(asked))
        if isinstance(listed, JSONRPCError):
            raise Refusal(f"The MCP server could not be asked for its tools: {listed.error.message}", INTERNAL_ERROR)
        self._known = {str(tool.get("name")): (upstream, tool) for tool in listed}

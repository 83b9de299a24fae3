"""The tools of the servers behind one client: current definitions, and which count as reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from mcp_types import INTERNAL_ERROR, JSONRPCError, JSONRPCRequest

from interlock.chat.mcp.definition import (
    CheckSchema,
    StoredDefinitionHistory,
    claims_read_only,
    make_tool_spec,
)
from interlock.config.models import McpServerSettings
from interlock.core.call import Args
from interlock.core.errors import InvalidRequest
from interlock.integrations.mcp_gate.call import CallRejected, UpstreamTool
from interlock.integrations.mcp_gate.frames import Reply, copy_envelope, make_upstream_call
from interlock.integrations.mcp_gate.merge import MergedUpstreams
from interlock.integrations.mcp_gate.upstream import Upstream, UpstreamLost


@dataclass(frozen=True)
class UpstreamOptions:
    """The servers behind the gate, and the options for them."""

    servers: Mapping[str, McpServerSettings]
    check: CheckSchema
    trust_hints: bool = False


class UpstreamTools:
    def __init__(
        self,
        upstreams: Sequence[Upstream],
        merged: MergedUpstreams | None,
        upstream_options: UpstreamOptions,
        definition_history: StoredDefinitionHistory,
    ) -> None:
        self._upstreams = upstreams
        self._merged = merged
        self._upstream_options = upstream_options
        self._definition_history = definition_history
        self._tools: dict[str, tuple[Upstream, Mapping[str, Any]]] = {}

    def invalidate(self) -> None:
        """Clear the cache, so that the next lookup asks the server."""
        self._tools.clear()

    async def find(self, request: JSONRPCRequest, *, fresh: bool) -> UpstreamTool | None:
        """Find a tool. `fresh` lists the tools again, since not every server notifies of changes."""
        name = str((request.params or {}).get("name"))
        if fresh or name not in self._tools:
            await self._list(request)
        known = self._tools.get(name)
        if known is None:
            return None
        upstream, tool = known
        try:
            spec = make_tool_spec(upstream.name, upstream.server, tool, self._upstream_options.check, name)
        except InvalidRequest as wrong:
            raise CallRejected(f"{name} cannot be called: {wrong.message}") from None
        by_hint = not spec.effect and self._upstream_options.trust_hints and claims_read_only(tool)
        if by_hint:
            spec = replace(spec, effect="read")
        spec = await self._definition_history.effective_spec(spec)

        async def run(args: Args, carried: Mapping[str, Any]) -> Reply:
            await self._definition_history.accept(spec)
            frame = make_upstream_call(request, str(tool["name"]), args, carried)
            return await upstream.request(frame, tool.get("inputSchema"))

        return UpstreamTool(spec, tool.get("outputSchema") is not None, run, is_hinted_read=by_hint)

    async def schema(self, request: JSONRPCRequest) -> object:
        """The input schema of the called tool, if it is known."""
        name = str((request.params or {}).get("name"))
        with suppress(CallRejected, UpstreamLost, TimeoutError):
            if name not in self._tools:
                await self._list(request)
        known = self._tools.get(name)
        return known[1].get("inputSchema") if known else None

    async def _list(self, request: JSONRPCRequest) -> None:
        if self._merged is not None:
            self._tools = await self._merged.tools(copy_envelope(request))
            return
        upstream = self._upstreams[0]
        listed = await upstream.list_all("tools/list", "tools", copy_envelope(request))
        if isinstance(listed, JSONRPCError):
            raise CallRejected(
                f"The MCP server could not be asked for its tools: {listed.error.message}", INTERNAL_ERROR
            )
        self._tools = {str(tool.get("name")): (upstream, tool) for tool in listed}

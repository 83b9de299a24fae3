"""All MCP servers of the configuration, and their tools under names that are used once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType

from interlock.chat.mcp.connection import ConnectionTimeouts, McpConnection
from interlock.chat.mcp.definition import CheckSchema
from interlock.chat.tool import Tool
from interlock.config.models import McpServerSettings, is_secure_url


class McpServers:
    """Entering it waits for nobody: a server that is down keeps nothing else from working.

    `tell` takes lines for the log; `taken` are names that other tools have already.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServerSettings],
        check: CheckSchema,
        tell: Callable[[str], None],
        *,
        taken: Collection[str] = (),
        pace: ConnectionTimeouts | None = None,
    ) -> None:
        self._connections = [
            McpConnection(name, server, check, pace or ConnectionTimeouts(), self._note)
            for name, server in servers.items()
        ]
        self._taken = frozenset(taken)
        self._tell = tell
        self._told: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> McpServers:
        self._tasks = [asyncio.create_task(each.run(), name=f"mcp {each.name}") for each in self._connections]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def tried(self) -> None:
        """Until each server has answered, or failed, once."""
        await asyncio.gather(*(each.tried.wait() for each in self._connections))

    def tools(self, workspace: str) -> Sequence[Tool]:
        """What is known now; a server that went away keeps its tools, and a call of one says that it is away."""
        return [tool for _, tool in self._named(workspace)]

    def problems(self) -> Sequence[str]:
        workspaces = dict.fromkeys(name for each in self._connections for name in each.server.workspaces)
        kept = {(name, id(tool)) for name in workspaces for _, tool in self._named(name)}
        clashes = [
            f'The tool {tool.name} of the MCP server "{each.name}" is left out: the name is taken. Give the server a '
            "prefix of its own."
            for each in self._connections
            for tool in each.tools
            if any((name, id(tool)) not in kept for name in each.server.workspaces)
        ]
        open_ways = [
            f'The MCP server "{each.name}" is reached by plain http: whoever is on the way can read and change it. '
            "Use https."
            for each in self._connections
            if each.server.url and not is_secure_url(each.server.url)
        ]
        return [*(said for each in self._connections for said in each.problems()), *clashes, *open_ways]

    def _note(self, name: str) -> None:
        """Each problem is told once, and again if it comes back after the server was connected."""
        if any(each.connected for each in self._connections if each.name == name):
            self._told = {line for line in self._told if f'"{name}"' not in line}
        early = [f'"{each.name}"' for each in self._connections if not each.tried.is_set()]
        found = [line for line in self.problems() if not any(name in line for name in early)]
        for line in found:
            if line not in self._told:
                self._tell(line)
        self._told |= set(found)

    def _named(self, workspace: str) -> Sequence[tuple[McpConnection, Tool]]:
        """The first keeps a name within a workspace, in the order of the configuration."""
        found: dict[str, tuple[McpConnection, Tool]] = {}
        for each in (each for each in self._connections if workspace in each.server.workspaces):
            for tool in each.tools:
                if tool.name not in self._taken:
                    found.setdefault(tool.name, (each, tool))
        return list(found.values())

"""Definitions of MCP tools as a gate first saw them, stored across restarts to detect changes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from interlock.chat.mcp.definition import DefinitionHistory, tool_identity
from interlock.core.call import ToolSpec
from interlock.core.errors import Error
from interlock.core.ports import ToolItemStore, ToolItemTransaction

KIND = "mcp_tool"
MAX_KEPT = 20  # maximum definitions per tool


class StoredDefinitionHistory:
    """The history of definitions; without `records`, over a server, it lasts only while the gate runs."""

    def __init__(self, records: ToolItemStore | None = None) -> None:
        self._records = records
        self._definitions = DefinitionHistory()

    async def effective_spec(self, spec: ToolSpec) -> ToolSpec:
        """The spec; a changed definition does not count as a read."""
        if not self._definitions.has_seen(spec):
            self._definitions.remember(spec, await self._load_or_store(spec))
        return self._definitions.effective_spec(spec)

    async def accept(self, spec: ToolSpec) -> None:
        """Accept the definition after an allowed call.

        If it cannot be stored, approval is needed again after a restart.
        """
        if self._definitions.accept(spec):
            with suppress(Error):
                await self._load_or_store(spec, accept=True)

    async def _load_or_store(self, spec: ToolSpec, *, accept: bool = False) -> Sequence[str]:
        tool, definition = tool_identity(spec)
        if self._records is None:
            return [definition]

        def step(transaction: ToolItemTransaction) -> object:
            found = transaction.get(KIND, tool)
            known = list(cast(Sequence[str], found.body["definitions"])) if found is not None else []
            if definition not in known and (accept or not known):
                known = [*known, definition][-MAX_KEPT:]
                transaction.put(KIND, tool, {"definitions": known})
            return known

        return cast(Sequence[str], await self._records.change("", step))

"""Tool definitions of MCP servers, and which were seen first: the digest holds all that a reviewer relied on."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast
from urllib.parse import urlsplit

import mcp_types as types

from interlock.chat.tool import with_confirmed_argument
from interlock.config.agents import find_tool_setting_problems
from interlock.config.models import McpServerSettings, ToolSettings
from interlock.core.call import ToolSpec
from interlock.core.canonical import canonical, digest
from interlock.core.confusables import matches_pattern
from interlock.core.errors import Error, InvalidRequest
from interlock.core.ports import ToolItemStore, ToolItemTransaction
from interlock.core.sentence import GeneratedSentence, TemplatePreview, tool_title

MAX_NAME = 64  # characters that model providers allow
MAX_ABOUT = 4_000
KIND = "mcp_tool"  # of the stored definitions
MAX_KEPT = 20  # maximum definitions per tool
MCP_SCHEMA_KEY = "x-mcp"  # metadata of the server in its tool's schema; not shown to models

DIGESTED_FIELDS = (
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
)  # `_meta` may vary by itself

CheckSchema = Callable[[Mapping[str, object]], None]  # raises InvalidRequest if a JSON Schema is wrong


@dataclass(frozen=True, slots=True)
class McpToolDefinition:
    """A tool of an MCP server; `tool` is the server's own name for it."""

    tool: str
    spec: ToolSpec
    description: str


class DefinitionHistory:
    """The definitions of each tool since it was first seen.

    A tool whose definition has changed is no longer a read, even if configured as one, until a call with the new
    definition was allowed.
    """

    def __init__(self) -> None:
        self._definitions: dict[str, set[str]] = {}

    def has_seen(self, spec: ToolSpec) -> bool:
        """Return whether the tool was seen, with any definition."""
        return tool_identity(spec)[0] in self._definitions

    def remember(self, spec: ToolSpec, definitions: Collection[str]) -> None:
        """Add definitions that were known before."""
        self._definitions.setdefault(tool_identity(spec)[0], set()).update(definitions)

    def effective_spec(self, spec: ToolSpec) -> ToolSpec:
        tool, definition = tool_identity(spec)
        known = self._definitions.setdefault(tool, {definition})
        return spec if spec.effect != "read" or definition in known else replace(spec, effect="")

    def accept(self, spec: ToolSpec) -> bool:
        """Accept a definition; return False if it was known already."""
        tool, definition = tool_identity(spec)
        known = self._definitions.setdefault(tool, set())
        is_new = definition not in known
        known.add(definition)
        return is_new


def make_definition(name: str, server: McpServerSettings, tool: types.Tool, check: CheckSchema) -> McpToolDefinition:
    """Make a definition. Raises InvalidRequest for an invalid one. A server's claims about effects are not trusted."""
    wire = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    spec = make_tool_spec(name, server, wire, check, tool_name(server.prefix or name, tool.name))
    return McpToolDefinition(tool.name, with_confirmed_argument(spec), _about(name, tool))


def make_tool_spec(
    name: str, server: McpServerSettings, tool: Mapping[str, object], check: CheckSchema, known_as: str
) -> ToolSpec:
    """Make the spec of a `tool` as the server sends it; all that a person may have relied on is in the digest."""
    wire = {key: tool[key] for key in DIGESTED_FIELDS if tool.get(key) is not None}
    own_name = str(tool["name"])
    metadata: dict[str, object] = {
        "server": name,
        "tool": own_name,
        "at": _server_location(server),
        "origin": digest(canonical([server.command, list(server.args), server.cwd, server.url])),
        "description": str(tool.get("description") or "")[:MAX_ABOUT],
        "annotations": canonical(wire.get("annotations", {})).decode(),
        "sha256": digest(canonical(wire)),
    }
    given = tool.get("inputSchema")
    schema = {**(given if isinstance(given, Mapping) else {"type": "object"}), MCP_SCHEMA_KEY: metadata}
    check(schema)
    own = server.tools.get(own_name, ToolSettings())
    _check_settings(own, schema)
    return ToolSpec(
        known_as,
        own.effect or ("read" if matches_any(server.reads, own_name) else ""),
        schema=schema,
        describe=own.describe or GeneratedSentence(_title(name, own_name)),
        preview=TemplatePreview(own.preview) if own.preview and isinstance(own.preview, str) else None,
        secret=own.secret,
        idempotent=matches_any(server.idempotent, own_name),
        confirm=own.confirm,
    )


def _check_settings(own: ToolSettings, schema: Mapping[str, object]) -> None:
    """Raise InvalidRequest if the configuration does not fit the tool as the server defines it now."""
    properties = schema.get("properties")
    names = properties.keys() if isinstance(properties, Mapping) else None
    for key, problem in find_tool_setting_problems(own, names):
        raise InvalidRequest(f"{key} in the configuration does not fit it: {problem}")


def claims_read_only(tool: Mapping[str, object]) -> bool:
    """Return the server's own claim; one that also claims to be destructive is not believed."""
    hints = tool.get("annotations")
    if not isinstance(hints, Mapping):
        return False
    return hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True


def tool_name(prefix: str, tool: str) -> str:
    """Return a name of letters, digits, `_` and `-`. A long one ends with a digest, to keep names distinct."""
    clean = re.sub(r"[^A-Za-z0-9_-]", "_", f"{prefix}_{tool}")
    return clean if len(clean) <= MAX_NAME else f"{clean[: MAX_NAME - 9]}_{digest(tool.encode())[:8]}"


def strip_invisible(text: str) -> str:
    """Remove characters that a model reads and a person does not see."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")


def matches_any(patterns: tuple[str, ...], tool: str) -> bool:
    return any(matches_pattern(tool, pattern) for pattern in patterns)


def tool_identity(spec: ToolSpec) -> tuple[str, str]:
    """Return the tool's identity on its server, and the digest of its definition."""
    metadata = (spec.schema or {}).get(MCP_SCHEMA_KEY)
    if not isinstance(metadata, Mapping):
        raise TypeError(f"{spec.name} is no tool of an MCP server.")
    return digest(canonical([metadata["origin"], metadata["tool"]])), str(metadata["sha256"])


def _server_location(server: McpServerSettings) -> str:
    """Return the server's location for people: no arguments, and no part of a URL that could be a secret."""
    return urlsplit(server.url).hostname or "" if server.url else server.command


def _title(server: str, tool: str) -> str:
    return f'{tool_title(strip_invisible(tool))} (MCP server "{server}")'


def _about(server: str, tool: types.Tool) -> str:
    words = strip_invisible(tool.description or tool.title or "").strip()[:MAX_ABOUT]
    return f'From the MCP server "{server}", in its own words: {words}' if words else f'From the MCP server "{server}".'


class StoredDefinitionHistory:
    """The history of definitions across restarts; without `items`, over a server, it lasts while the gate runs."""

    def __init__(self, items: ToolItemStore | None = None) -> None:
        self._items = items
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
        if self._items is None:
            return [definition]

        def step(transaction: ToolItemTransaction) -> object:
            found = transaction.get(KIND, tool)
            known = list(cast(Sequence[str], found.body["definitions"])) if found is not None else []
            if definition not in known and (accept or not known):
                known = [*known, definition][-MAX_KEPT:]
                transaction.put(KIND, tool, {"definitions": known})
            return known

        return cast(Sequence[str], await self._items.change("", step))

"""The Tool of a pack: its spec for the gate, its description for the model, and the function that runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from interlock.core.call import Args, ToolSpec
from interlock.core.chat.transcript import PromptTool
from interlock.core.ports import DocumentIndex, ToolItemStore

if TYPE_CHECKING:
    import httpx2


class ToolInvocation(NamedTuple):
    """One use of a tool: the approved arguments, and an idempotency key, the same for every retry of the call.

    The key is empty for a read.
    """

    args: Args
    key: str


RunTool = Callable[
    [ToolInvocation], Awaitable[object]
]  # returns JSON; raises ToolFailed with a text for the model and for people


@dataclass(frozen=True)
class Tool:
    """A tool; `description` is for the model, `source` is a pack or `mcp:<server>`."""

    spec: ToolSpec
    description: str
    run: RunTool
    source: str = ""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def prompt_tool(self) -> PromptTool:
        """The tool as a model sees it, without extensions of JSON Schema, which providers reject."""
        schema = self.spec.schema or {"type": "object", "properties": {}}
        return PromptTool(
            self.name, self.description, {key: inner for key, inner in schema.items() if not key.startswith("x-")}
        )


@dataclass(frozen=True)
class ToolContext:
    """Context of a pack in one workspace; `settings` are its own part of the configuration's `tools`.

    `transport` replaces the network if there is no real service, as in the demo.
    """

    workspace: str
    records: ToolItemStore
    settings: Mapping[str, object] = field(default_factory=dict)
    transport: httpx2.AsyncBaseTransport | None = None
    documents: DocumentIndex | None = None


def object_schema(required: str = "", /, **properties: Mapping[str, object]) -> dict[str, object]:
    """Make the schema of an object without other properties; `required` are names separated by spaces."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }

"""A tool as its pack makes it: what the gate knows of it, what the model is told, and the function that runs."""

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
    """One use of a tool: the arguments as they were approved, and a key that is the same for every try of this call.

    The key is empty for a read.
    """

    args: Args
    key: str


RunTool = Callable[
    [ToolInvocation], Awaitable[object]
]  # gives JSON; raises ToolFailed with words for the model and for people


@dataclass(frozen=True)
class Tool:
    """`description` is what the model is told of it; `source` where it comes from: a pack, or `mcp:<server>`."""

    spec: ToolSpec
    description: str
    run: RunTool
    source: str = ""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def prompt_tool(self) -> PromptTool:
        """What a schema says beside JSON Schema is for people: models' providers refuse unknown words."""
        schema = self.spec.schema or {"type": "object", "properties": {}}
        return PromptTool(
            self.name, self.description, {key: inner for key, inner in schema.items() if not key.startswith("x-")}
        )


@dataclass(frozen=True)
class ToolContext:
    """What a pack is given for one workspace; `settings` are its own part of the configuration's `tools`.

    `transport` stands in for the network where there is no real service, as in the demo.
    """

    workspace: str
    records: ToolItemStore
    settings: Mapping[str, object] = field(default_factory=dict)
    transport: httpx2.AsyncBaseTransport | None = None
    documents: DocumentIndex | None = None


def object_schema(required: str = "", /, **properties: Mapping[str, object]) -> dict[str, object]:
    """An object that takes nothing else; `required` are names with spaces between them."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }

"""The Tool of a pack: its spec for the gate, its description for the model, and the function that runs.

A function that is declared with `@tool` becomes one here.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.core.call import Args, ToolSpec
from interlock.core.canonical import read_canonical
from interlock.core.chat.transcript import PromptTool
from interlock.core.errors import InvalidRequest, Misconfigured, ToolFailed
from interlock.core.ports import DocumentIndex, ToolItemStore
from interlock.core.preview import Preview, to_preview
from interlock.core.sentence import tool_title
from interlock.runtime.functions import FunctionTool, stored_result
from interlock.runtime.json_schema import validate
from interlock.runtime.offload import TooManyThreads, run_in_own_thread

if TYPE_CHECKING:
    import httpx2


CONFIRMED = "confirmed"  # the argument by which a model says that the person has confirmed the call
CONFIRMED_SCHEMA: Mapping[str, object] = {
    "type": "boolean",
    "description": "Set it once the user has said yes; it counts only together with that.",
}
MAX_DESCRIPTION = 4_000  # characters of a description for the model
PREVIEW_TIMEOUT = 10.0  # seconds
PREVIEW_RETRY = 0.05  # seconds until a preview looks for a free thread again
MAX_PREVIEW_THREADS = 32  # of synchronous previews, also of those that go on after their timeout

_preview_slots = threading.Semaphore(MAX_PREVIEW_THREADS)


class ToolInvocation(NamedTuple):
    """One use of a tool: the approved arguments, and an idempotency key, the same for every retry of the call.

    The key is empty for a read. `preview_version` is the version that the tool's own preview gave;
    empty if people were not asked.
    """

    args: Args
    key: str
    preview_version: str = ""


RunTool = Callable[
    [ToolInvocation], Awaitable[object]
]  # returns JSON; raises ToolFailed with a text for the model and for people


@dataclass(frozen=True)
class Tool:
    """A tool; `description` is for the model, `source` is a pack or `mcp:<server>`.

    `defaults` are of arguments that a model may leave out: people see them, and the tool gets them.
    """

    spec: ToolSpec
    description: str
    run: RunTool
    source: str = ""
    defaults: Args = field(default_factory=dict)

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
    items: ToolItemStore
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


def with_confirmed_argument(spec: ToolSpec) -> ToolSpec:
    """Add the argument that a tool with `confirm="chat"` needs, if it has none of its own."""
    schema = spec.schema or {"type": "object"}
    properties = schema.get("properties", {})
    if not spec.confirm or not isinstance(properties, Mapping) or CONFIRMED in properties:
        return spec
    return replace(spec, schema={**schema, "properties": {**properties, CONFIRMED: CONFIRMED_SCHEMA}})


def without_confirmed_argument(spec: ToolSpec, args: Args) -> Args:
    """The arguments for the tool itself, without the one that was added."""
    properties = (spec.schema or {}).get("properties", {})
    is_added = isinstance(properties, Mapping) and properties.get(CONFIRMED) == CONFIRMED_SCHEMA
    return {name: value for name, value in args.items() if name != CONFIRMED} if is_added else args


def make_tool(function: FunctionTool) -> Tool:
    """Make a tool of a declared function. Raises Misconfigured if it returns something that is not a result."""
    name, body = function.spec.name, function.body
    if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
        raise Misconfigured(f"{name} yields its results; a tool returns them: return a list.")
    spec = with_confirmed_argument(function.spec)
    spec = replace(spec, preview=_make_preview(spec))

    async def run(invocation: ToolInvocation) -> object:
        args = without_confirmed_argument(spec, invocation.args)
        try:
            values = function.parse(args)
        except InvalidRequest as error:
            raise ToolFailed(f"{error.message} Nothing was run.") from None
        return _plain_result(await _call(partial(body, **values)))

    described = function.description[:MAX_DESCRIPTION] or f"{tool_title(name)}."
    return Tool(spec, described, run, defaults=_valid_defaults(function))


def adapt_tool(tool: Tool) -> Tool:
    """Make a Tool from outside as careful as a declared function: with a timeout, off the event loop."""
    spec = with_confirmed_argument(tool.spec)

    async def run(invocation: ToolInvocation) -> object:
        args = without_confirmed_argument(spec, invocation.args)
        return _plain_result(await _call(partial(tool.run, invocation._replace(args=args))))

    return replace(tool, spec=replace(spec, preview=_make_preview(spec)), run=run)


def _valid_defaults(function: FunctionTool) -> Args:
    """The defaults that a person could be shown; one that its own hint refuses, as in `x: int = None`, is left out."""
    schema = {**(function.spec.schema or {}), "required": []}
    return {name: value for name, value in function.defaults().items() if not validate(schema, {name: value})}


def _plain_result(result: object) -> object:
    return read_canonical(stored_result(result))


async def _call(function: Callable[[], Any], slots: threading.Semaphore | None = None) -> object:
    """Call a function from outside: a synchronous one must not block the event loop, and none may end it."""
    try:
        if inspect.iscoroutinefunction(function):
            return await function()
        given = await run_in_own_thread(function, slots)
        return await given if inspect.isawaitable(given) else given
    except SystemExit:
        raise ToolFailed("The tool tried to end the program.") from None


def _make_preview(spec: ToolSpec) -> Callable[[Args], Awaitable[str | Preview]] | None:
    """The preview of a declared function, with a timeout: a call must not wait for it for ever.

    Past the bound of threads it waits for a free one: a model that proposes many calls at once must not get them shown
    without a preview, and without the version that its tool compares.
    """
    preview = spec.preview
    if preview is None:
        return None

    async def shown(args: Args) -> str | Preview:
        try:
            async with asyncio.timeout(PREVIEW_TIMEOUT):
                made = await _call_when_free(partial(preview, without_confirmed_argument(spec, args)))
                return to_preview(made)
        except TimeoutError:
            return f"No preview: it took more than {PREVIEW_TIMEOUT:g} seconds."

    return shown


async def _call_when_free(preview: Callable[[], Any]) -> object:
    while True:
        try:
            return await _call(preview, _preview_slots)
        except TooManyThreads:
            await asyncio.sleep(PREVIEW_RETRY)

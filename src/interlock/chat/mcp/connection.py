"""MCP client: a background connection to each server with reconnects, its tool list kept current, and calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType

import mcp_types as types
from mcp.client import Client
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError
from mcp.shared.exceptions import MCPError

from interlock.chat.mcp.definition import (
    MCP_SCHEMA_KEY,
    CheckSchema,
    DefinitionHistory,
    McpToolDefinition,
    make_definition,
)
from interlock.chat.mcp.transport import StderrTail, open_streams
from interlock.chat.tool import PREVIEW_TIMEOUT, Tool, ToolInvocation, without_confirmed_argument
from interlock.config.models import McpServerSettings, PreviewCall, ToolSettings, is_secure_url
from interlock.core.call import MAX_ERROR, Args, ToolSpec
from interlock.core.canonical import canonical
from interlock.core.errors import EffectUnknown, InvalidRequest, ToolFailed, did_you_mean
from interlock.core.sentence import fill_arguments
from interlock.runtime.json_schema import validate

MAX_TOOLS = 1_000
MAX_PAGES = 100
CONNECTION_ERRORS = (types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTimeouts:
    """Timeouts in seconds. `initial_backoff` and `max_backoff` limit the pause between attempts to connect.

    `min_refresh_interval` is the least time between two reads of the tool list. A server that announces no changes is
    polled every `poll_interval`; a call waits for a connection as long as `connect_timeout`.
    """

    initial_backoff: float = 0.5
    min_refresh_interval: float = 0.2
    max_backoff: float = 60.0
    poll_interval: float = 30.0
    response_timeout: float = 20.0
    call_timeout: float = 60.0
    connect_timeout: float = 10.0


class McpConnection:
    """Connection to one server. `tools` are those of its last listing; `problems` are texts for people."""

    def __init__(
        self,
        name: str,
        server: McpServerSettings,
        check: CheckSchema,
        timeouts: ConnectionTimeouts,
        on_change: Callable[[str], None],
    ) -> None:
        """`on_change` is called with the name on every connect and disconnect, and when other tools are left out."""
        self.name = name
        self.server = server
        self.tools: Sequence[Tool] = ()
        self.attempted = asyncio.Event()
        self._on_change = on_change
        self._check = check
        self._timeouts = timeouts
        self._error = "it has not answered yet"
        self._omitted_tools: list[str] = []
        self._definitions = DefinitionHistory()
        self._client: Client | None = None
        self._connected = asyncio.Event()
        self._stale = asyncio.Event()
        self._ended = False

    @property
    def connected(self) -> bool:
        return self._connected.is_set()

    def problems(self) -> Sequence[str]:
        said = f'The MCP server "{self.name}" is not connected: {self._error}. It is tried again.'
        return [*([said] if self._error else ()), *self._omitted_tools]

    # Connecting

    async def run(self) -> None:
        """Connect and reconnect until it is cancelled."""
        tries = 0
        while True:
            stderr_tail = StderrTail()
            try:
                await self._connect(stderr_tail)
            except Exception as error:  # noqa: BLE001  any error is reported, and the connection retried
                self._error = self.server.redact(_failure_reason(error, stderr_tail))
            if self._client is not None:
                self._client, tries = None, 0
            self.attempted.set()
            self._on_change(self.name)
            await asyncio.sleep(min(self._timeouts.initial_backoff * 2 ** min(tries, 10), self._timeouts.max_backoff))
            tries += 1

    async def _connect(self, stderr_tail: StderrTail) -> None:
        """Connect. An old child process that exits at the newest protocol's first message gets the legacy one."""
        try:
            await self._session("auto", stderr_tail)
        except Exception:
            if self.server.url or self._client is not None or not self._ended:
                raise
            await self._session("legacy", stderr_tail)

    async def _session(self, mode: str, stderr_tail: StderrTail) -> None:
        self._ended = False
        client = Client(
            open_streams(self.server, stderr_tail, self._on_end),
            mode=mode,
            cache=None,  # a listing always comes from the server
            read_timeout_seconds=self._timeouts.response_timeout,
            message_handler=self._on_message,
            client_info=types.Implementation(name="interlock", version="1"),
        )
        async with client:
            await self._refresh(client)
            self._client, self._error = client, ""
            self._connected.set()
            self.attempted.set()
            self._on_change(self.name)
            listening = asyncio.create_task(self._listen(client))
            try:
                await self._poll_tools(client)
            finally:
                self._connected.clear()
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    async def _poll_tools(self, client: Client) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timeouts.poll_interval):
                    await self._stale.wait()
            self._stale.clear()
            if self._ended:
                raise ConnectionError("it ended the connection")
            await self._refresh(client)
            await asyncio.sleep(self._timeouts.min_refresh_interval)

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes, as servers of the newest protocol require; the others send them unasked."""
        with suppress(ListenNotSupportedError, MCPError):
            while True:
                async with client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        self._stale.set()
                await asyncio.sleep(self._timeouts.poll_interval)

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._stale.set()

    def _on_end(self) -> None:
        self._ended = True
        self._connected.clear()
        self._stale.set()

    # Tools

    async def _refresh(self, client: Client) -> None:
        known = {tool.spec.sha256: tool for tool in self.tools}
        made, left_out = self._make_definitions(await _list_tools(client))
        self.tools = [known.get(each.spec.sha256) or self._tool(each) for each in made]
        if left_out != self._omitted_tools:
            self._omitted_tools = left_out
            self._on_change(self.name)

    def _make_definitions(self, listed: Sequence[types.Tool]) -> tuple[list[McpToolDefinition], list[str]]:
        made, left_out = [], []
        for tool in listed[:MAX_TOOLS]:
            try:
                found = make_definition(self.name, self.server, tool, self._check)
                made.append(replace(found, spec=self._definitions.effective_spec(found.spec)))
            except InvalidRequest as error:
                left_out.append(f'The tool "{tool.name}" of the MCP server "{self.name}" is left out: {error.message}')
        left_out += self._unknown_settings(listed)
        if len(listed) > MAX_TOOLS:
            left_out.append(f'The MCP server "{self.name}" has over {MAX_TOOLS:,} tools; the rest is left out.')
        return made, left_out

    def _unknown_settings(self, listed: Sequence[types.Tool]) -> list[str]:
        """Report settings of tools that the server does not have: what they should hide or ask would not be."""
        names = [tool.name for tool in listed]
        return [
            f'mcp_servers.{self.name}.tools has "{name}", which the MCP server "{self.name}" does not list'
            f"{did_you_mean(name, names)}"
            for name in self.server.tools
            if name not in names
        ]

    def _tool(self, definition: McpToolDefinition) -> Tool:
        async def run(invocation: ToolInvocation) -> object:
            return await self._call(definition, invocation)

        look_up = self.server.tools.get(definition.tool, ToolSettings()).preview
        spec = definition.spec
        if isinstance(look_up, PreviewCall):
            spec = replace(spec, preview=partial(self._look_up, look_up))
        return Tool(spec, definition.description, run, f"mcp:{self.name}")

    async def _look_up(self, look_up: PreviewCall, args: Args) -> str:
        """Call a read of the server for the preview of another tool; the reviewer is told whose words these are."""
        found = next((tool for tool in self.tools if _own_name(tool.spec) == look_up.tool), None)
        if found is None or found.spec.effect != "read":
            return f"No preview: {look_up.tool} is not there, or was changed since it was declared to be a read."
        given = fill_arguments(look_up.args, args)
        if problems := validate(found.spec.schema or {}, given):
            return f"No preview: {look_up.tool} does not take these arguments: {problems[0]}"
        try:
            async with asyncio.timeout(PREVIEW_TIMEOUT):
                result = await found.run(ToolInvocation(given, ""))
        except TimeoutError:
            return f"No preview: {look_up.tool} took more than {PREVIEW_TIMEOUT:g} seconds."
        except ToolFailed as error:
            return f"No preview: {error.message}"
        said = f'{look_up.tool} of the MCP server "{self.name}" says:'
        return _cut(f"{said}\n{_result_text(result)}", MAX_PREVIEW)

    # Calls

    async def _call(self, definition: McpToolDefinition, invocation: ToolInvocation) -> object:
        client = await self._wait_connected()
        await self._require_unchanged(client, definition)
        self._definitions.accept(definition.spec)
        try:
            args = dict(without_confirmed_argument(definition.spec, invocation.args))
            result = await client.session.call_tool(
                definition.tool, args, self._timeouts.call_timeout, allow_input_required=True
            )
        except MCPError as error:
            raise self._call_error(definition, error) from None
        except Exception as error:  # noqa: BLE001  it was sent, and there is no valid response
            self._stale.set()
            raise self._effect_unknown(definition, _failure_reason(error)) from None
        return parse_tool_result(self.name, definition.tool, result)

    async def _wait_connected(self) -> Client:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeouts.connect_timeout):
                await self._connected.wait()
        if self._client is None or not self._connected.is_set():
            why = self._error or "it ended the connection"
            raise ToolFailed(f'The MCP server "{self.name}" is not connected: {why}. Nothing was run.')
        return self._client

    async def _require_unchanged(self, client: Client, definition: McpToolDefinition) -> None:
        """List the tools right before the call: not every server announces its changes."""
        try:
            await self._refresh(client)
        except Exception as error:  # noqa: BLE001  the listing failed, so the tool is not called
            self._stale.set()
            said = self.server.redact(_failure_reason(error))
            raise ToolFailed(f'The MCP server "{self.name}" could not be asked: {said}. Nothing was run.') from None
        if definition.spec.sha256 not in {tool.spec.sha256 for tool in self.tools}:
            raise ToolFailed(
                f'The MCP server "{self.name}" changed or removed {definition.tool} meanwhile. Nothing was run: look '
                "at the tool as it is now, then propose the call again."
            )

    def _call_error(self, definition: McpToolDefinition, error: MCPError) -> ToolFailed:
        said = self.server.redact(error.message)
        if error.code in CONNECTION_ERRORS:
            self._stale.set()
            return self._effect_unknown(definition, said)
        return ToolFailed(f'The MCP server "{self.name}" refused {definition.tool}: {said}')

    def _effect_unknown(self, definition: McpToolDefinition, said: str) -> EffectUnknown:
        return EffectUnknown(
            f'The MCP server "{self.name}" gave no answer to {definition.tool} ({self.server.redact(said)}). '
            "It may have run: look before you call it again."
        )


async def _list_tools(client: Client) -> Sequence[types.Tool]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None or len(tools) > MAX_TOOLS:
            break
    return tools


def _failure_reason(error: BaseException, stderr_tail: StderrTail | None = None) -> str:
    """Return the first cause as text, with the last line of a child's standard error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    said = stderr_tail.last() if stderr_tail else ""
    words = str(error) or type(error).__name__
    return f"{words} ({said})" if said else words


MAX_ANSWER = 100_000  # characters
MAX_PREVIEW = 20_000  # characters


def parse_tool_result(server: str, tool: str, result: types.CallToolResult | types.InputRequiredResult) -> object:
    """Parse a result. Raises ToolFailed if the server reports an error, or asks for input."""
    if isinstance(result, types.InputRequiredResult):
        raise ToolFailed(
            f'The MCP server "{server}" asked for input in the middle of {tool} and was given none: questions of a '
            "server are not answered, since the decision was made before. Call it with all that it needs."
        )
    text = "\n".join(map(_text, result.content)).replace("\x00", "")
    if result.is_error:
        raise ToolFailed(f'The MCP server "{server}" says that {tool} failed: {_cut(text, MAX_ERROR) or "no reason"}')
    structured = _structured_text(result.structured_content)
    if structured is None:
        return {"text": _cut(text, MAX_ANSWER)}
    if len(structured) > MAX_ANSWER:
        return {"text": _cut(structured, MAX_ANSWER)}
    value = {"structured": json.loads(structured)}
    return (
        value if _repeats_structured(text, structured) else {**value, "text": _cut(text, MAX_ANSWER - len(structured))}
    )


def _result_text(result: object) -> str:
    match result:
        case {"text": str(text), **others} if not others:
            return text
        case _:
            return canonical(result).decode()


def _own_name(spec: ToolSpec) -> str:
    """The name that the server has for a tool."""
    metadata = (spec.schema or {}).get(MCP_SCHEMA_KEY)
    return str(metadata["tool"]) if isinstance(metadata, Mapping) else ""


def _structured_text(content: object) -> str | None:
    if content is None:
        return None
    try:
        return canonical(content).decode()
    except InvalidRequest:  # NUL, or nested too deeply: the text is used
        return None


def _repeats_structured(text: str, structured: str) -> bool:
    """Return whether the text repeats the structured result, as servers do for older clients."""
    try:
        return not text or canonical(json.loads(text)).decode() == structured
    except (ValueError, RecursionError, InvalidRequest):
        return False


def _text(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent() | types.AudioContent():
            return f"[{block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown]"
        case types.ResourceLink():
            return f"[{block.name}: {block.uri}]"
        case types.EmbeddedResource(resource=types.TextResourceContents() as inner):
            return inner.text
        case _:
            return f"[{block.resource.uri}, not shown]"


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: max(most, 0)]}\n[cut here: {len(text):,} characters in all]"


class McpServers:
    """All configured MCP servers. Entering it does not wait: a server that is down blocks nothing else.

    `log` takes lines for the log; `reserved_names` are the names of other tools.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServerSettings],
        check: CheckSchema,
        log: Callable[[str], None],
        *,
        reserved_names: Collection[str] = (),
        timeouts: ConnectionTimeouts | None = None,
    ) -> None:
        self._connections = [
            McpConnection(name, server, check, timeouts or ConnectionTimeouts(), self._log_problems)
            for name, server in servers.items()
        ]
        self._reserved_names = frozenset(reserved_names)
        self._pack_names: dict[str, frozenset[str]] = {}  # by workspace
        self._log = log
        self._logged: set[str] = set()
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

    def reserve(self, workspace: str, names: Iterable[str]) -> None:
        """Leave out, and report, tools whose names a pack of the workspace has."""
        self._pack_names[workspace] = frozenset(names)

    async def wait_attempted(self) -> None:
        """Wait until each server has been connected, or has failed, once."""
        await asyncio.gather(*(each.attempted.wait() for each in self._connections))

    def tools(self, workspace: str) -> Sequence[Tool]:
        """Return the known tools; a disconnected server keeps its tools, and a call of one reports that."""
        return [tool for _, tool in self._unique_tools(workspace)]

    def problems(self) -> Sequence[str]:
        workspaces = dict.fromkeys(name for each in self._connections for name in each.server.workspaces)
        kept = {(name, id(tool)) for name in workspaces for _, tool in self._unique_tools(name)}
        clashes = [
            f'The tool {tool.name} of the MCP server "{each.name}" is left out: the name is taken. Give the server a '
            "prefix of its own."
            for each in self._connections
            for tool in each.tools
            if any((name, id(tool)) not in kept for name in each.server.workspaces)
        ]
        open_ways = [
            f'The MCP server "{each.name}" is reached by plain http: anybody on the way can read and change it. '
            "Use https."
            for each in self._connections
            if each.server.url and not is_secure_url(each.server.url)
        ]
        return [*(said for each in self._connections for said in each.problems()), *clashes, *open_ways]

    def _log_problems(self, name: str) -> None:
        """Log each problem once, and again if it recurs after the server was connected."""
        if any(each.connected for each in self._connections if each.name == name):
            self._logged = {line for line in self._logged if f'"{name}"' not in line}
        early = [f'"{each.name}"' for each in self._connections if not each.attempted.is_set()]
        found = [line for line in self.problems() if not any(name in line for name in early)]
        for line in found:
            if line not in self._logged:
                self._log(line)
        self._logged |= set(found)

    def _unique_tools(self, workspace: str) -> Sequence[tuple[McpConnection, Tool]]:
        """Return the tools with unique names within a workspace; the first in the configuration wins."""
        found: dict[str, tuple[McpConnection, Tool]] = {}
        taken = self._reserved_names | self._pack_names.get(workspace, frozenset())
        for each in (each for each in self._connections if workspace in each.server.workspaces):
            for tool in each.tools:
                if tool.name not in taken:
                    found.setdefault(tool.name, (each, tool))
        return list(found.values())

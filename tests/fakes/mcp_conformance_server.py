"""The server under test of the MCP conformance suite, over streamable HTTP on loopback, of either revision.

`python -m tests.fakes.mcp_conformance_server` prints its address and serves until it is ended.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY

from tests.fakes import mcp_conformance_fixtures as fixtures
from tests.fakes.mcp_conformance_fixtures import text

Context = ServerRequestContext[Any, Any]
NAME = "conformance-fixtures"
RETRY_MS = 100


def main() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # whoever comes from now on waits until it is taken
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        app = make_server().streamable_http_app(event_store=RecordedEvents(), retry_interval=RETRY_MS)
        config = uvicorn.Config(app, log_level="warning", lifespan="on")
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


def make_server() -> Server[Any]:
    tools = Tools(InMemorySubscriptionBus())
    server: Server[Any] = Server(
        NAME,
        version="1.0",
        instructions="Fixtures of the conformance suite.",
        on_list_tools=list_tools,
        on_call_tool=tools.call,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=subscribe,
        on_subscriptions_listen=ListenHandler(tools.bus),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, subscribe)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return server


async def list_tools(_ctx: Context, _params: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=fixtures.OFFERED_TOOLS)


async def list_prompts(_ctx: Context, _params: object) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=fixtures.OFFERED_PROMPTS)


async def list_resources(_ctx: Context, _params: object) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=fixtures.OFFERED_RESOURCES)


async def list_templates(_ctx: Context, _params: object) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=fixtures.OFFERED_TEMPLATES)


async def read(_ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    template = re.fullmatch(r"test://template/([^/]+)/data", uri)
    if uri == "test://static-binary":
        contents = [types.BlobResourceContents(uri=uri, mime_type="image/png", blob=fixtures.PNG)]
        return types.ReadResourceResult(contents=contents)
    if template:
        said = json.dumps({"id": template[1], "templateTest": True, "data": f"Data for ID: {template[1]}"})
        return _read_contents(uri, "application/json", said)
    if uri not in fixtures.TEXTS:
        raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    return _read_contents(uri, "text/plain", fixtures.TEXTS[uri])


def _read_contents(uri: str, mime_type: str, said: str) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=mime_type, text=said)])


async def subscribe(_ctx: Context, _params: object) -> types.EmptyResult:
    return types.EmptyResult()


async def complete(_ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [word for word in ("test1", "test2", "paris") if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


async def get_prompt(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return _prompt_result(text("This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            return _prompt_result(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))
        case "test_prompt_with_embedded_resource":
            resource = fixtures.embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            return _prompt_result(resource, text("Please process the embedded resource above."))
        case "test_prompt_with_image":
            image = types.ImageContent(data=fixtures.PNG, mime_type="image/png")
            return _prompt_result(image, text("Please analyze the image above."))
        case "test_input_required_result_prompt":
            return open_requests(ctx, params) or _prompt_result(text(f"With the context {answered_requests(params)}"))
        case _:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name}")


def _prompt_result(*contents: types.ContentBlock) -> types.GetPromptResult:
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=each) for each in contents])


class Tools:
    """Calls, and who is told that the lists changed."""

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self.bus = bus

    async def call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        name, given = params.name, params.arguments or {}
        if name in fixtures.CONTENTS:
            return types.CallToolResult(content=fixtures.CONTENTS[name])
        if name in fixtures.ROUNDS:
            return open_requests(ctx, params) or text_result(f"state-ok, with {answered_requests(params)}")
        match name:
            case "test_error_handling":
                content = [text("This tool intentionally returns an error for testing")]
                return types.CallToolResult(content=list(content), is_error=True)
            case "test_trigger_tool_change":
                await self.bus.publish(ToolsListChanged())
                return text_result("The list of tools changed.")
            case "test_trigger_prompt_change":
                await self.bus.publish(PromptsListChanged())
                return text_result("The list of prompts changed.")
            case "test_x_mcp_header" | "json_schema_2020_12_tool":
                return text_result(json.dumps(given))
            case _:
                return await run_notifying_tool(ctx, name, given)


async def run_notifying_tool(ctx: Context, name: str, given: dict[str, Any]) -> types.CallToolResult:
    """Tools that tell the client something while they run."""
    match name:
        case "test_tool_with_logging" | "test_logging_tool":
            for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
                await ctx.session.send_log_message("info", line, related_request_id=ctx.request_id)
            return text_result("Logged three lines.")
        case "test_tool_with_progress":
            for progress in (0, 50, 100):
                await ctx.session.report_progress(progress, 100)
            return text_result("Reported progress three times.")
        case "test_reconnection":
            if ctx.close_sse_stream is not None:
                await ctx.close_sse_stream()
            return text_result("Reconnected.")
        case _:
            return await run_asking_tool(ctx, name, given)


async def run_asking_tool(ctx: Context, name: str, given: dict[str, Any]) -> types.CallToolResult:
    """Tools that need something of the client."""
    match name:
        case "test_missing_capability":
            require_sampling(ctx)
            return text_result("The client has it.")
        case "test_sampling":
            request = fixtures.sampling(given["prompt"]).params
            result = await ctx.session.create_message(
                request.messages, max_tokens=request.max_tokens, related_request_id=ctx.request_id
            )
            return text_result(f"LLM response: {result.content.model_dump_json()}")
        case "test_elicitation":
            return await elicit(ctx, given["message"], fixtures.USER)
        case _ if name in fixtures.TALKS:
            return await elicit(ctx, *fixtures.TALKS[name])
        case _:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name}")


async def elicit(ctx: Context, message: str, schema: dict[str, Any]) -> types.CallToolResult:
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return text_result(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")


def require_sampling(ctx: Context) -> None:
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "The client did not declare sampling", needed)


def open_requests(
    ctx: Context, params: types.CallToolRequestParams | types.GetPromptRequestParams
) -> types.InputRequiredResult | None:
    """What is still asked, if anything; the state names the rounds that are over."""
    rounds = fixtures.ROUNDS[params.name]
    over = int((params.request_state or "0").removeprefix("round-"))
    given = params.input_responses or {}
    if over < len(rounds) and set(supported_requests(ctx, params.name, rounds[over])) <= set(given):
        over += 1
    if over >= len(rounds):
        return None
    state = f"round-{over}" if params.name in fixtures.WITH_STATE else None
    return types.InputRequiredResult(
        input_requests=supported_requests(ctx, params.name, rounds[over]), request_state=state
    )


def supported_requests(
    ctx: Context, name: str, requests: dict[str, types.InputRequest]
) -> dict[str, types.InputRequest]:
    """Only the tool that is about capabilities looks at them: the suite declares few when it calls the others."""
    declared = ctx.session.client_capabilities
    if name != "test_input_required_result_capabilities" or declared is None or declared.elicitation is not None:
        return requests
    return {key: each for key, each in requests.items() if not isinstance(each, types.ElicitRequest)}


def answered_requests(params: types.CallToolRequestParams | types.GetPromptRequestParams) -> str:
    return json.dumps({key: each.model_dump(mode="json") for key, each in (params.input_responses or {}).items()})


def text_result(line: str) -> types.CallToolResult:
    return types.CallToolResult(content=[text(line)])


class RecordedEvents(EventStore):
    """What was sent on each stream, for a client that comes back."""

    def __init__(self) -> None:
        self.events: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        if not last_event_id.isdecimal() or not 0 < int(last_event_id) <= len(self.events):
            return None
        stream_id = self.events[int(last_event_id) - 1][0]
        for count, (stream, message) in enumerate(self.events[int(last_event_id) :], int(last_event_id) + 1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(count)))
        return stream_id


if __name__ == "__main__":
    main()

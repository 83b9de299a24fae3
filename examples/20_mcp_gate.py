"""Any MCP client and any MCP server, unchanged: the gate stands between them. Here both are in one file.

python examples/20_mcp_gate.py                in one terminal: it waits
interlock approvals approve ID                in another one

The client starts `interlock mcp-gate -- SERVER` where it would have started SERVER.
"""

import asyncio
import sys
from pathlib import Path

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SERVER = [sys.executable, str(Path(__file__).resolve()), "serve"]
TEXT = {"type": "string"}
TOOLS = [
    types.Tool(name="list_notes", description="All notes.", input_schema={"type": "object"}),
    types.Tool(
        name="add_note",
        description="Writes a note.",
        input_schema={"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
    ),
]
notes = ["Buy milk."]


async def client(database: str) -> None:
    gate = ["-m", "interlock", "mcp-gate", "--database", database, "--reads", "list_*", "--wait", "10"]
    async with Client(StdioServerParameters(command=sys.executable, args=[*gate, "--", *SERVER])) as mcp:
        print(await said(mcp, "list_notes", {}), flush=True)  # a read: nobody is asked
        answer = await said(mcp, "add_note", {"text": "Call Alice."})
        while answer.startswith("add_note has not run yet"):
            print(answer, flush=True)
            answer = await said(mcp, "add_note", {"text": "Call Alice."})  # the same call: it finds its approval
        print(answer, flush=True)


async def said(mcp: Client, tool: str, args: dict[str, object]) -> str:
    result = await mcp.call_tool(tool, args)
    return " ".join(block.text for block in result.content if isinstance(block, types.TextContent))


async def serve() -> None:
    """A server that knows nothing of Interlock."""

    async def listed(_: object, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=TOOLS)

    async def called(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == "add_note":
            notes.append(str((params.arguments or {})["text"]))
        return types.CallToolResult(content=[types.TextContent(text=" ".join(notes))])

    server: Server[object] = Server("notes", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    word = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path('interlock.db').absolute()}"
    asyncio.run(serve() if word == "serve" else client(word))

"""An MCP server that is as lenient as any can be, and writes down each frame that reaches it.

    python -m tests.tools.mcp_recorder FOLDER

FOLDER/tools.json may change what its tools are said to be; FOLDER/frames gets a line for each frame. It runs whatever
looks like a call of a tool: with any id or none, in a batch, in another case, with spaces; FOLDER/ran gets a line for
each. `Recorder.serve_http` is the same at a loopback address.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

TOOLS = [
    {"name": "note", "inputSchema": {"type": "object"}},
    {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]


class Recorder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def answers(self, line: bytes) -> list[dict[str, Any]]:
        """To each frame of a line that is one frame, or several."""
        with (self.folder / "frames").open("ab") as file:
            file.write(line.strip() + b"\n")
        told = json.loads(line)
        return [each for frame in (told if isinstance(told, list) else [told]) for each in self._answer(frame)]

    def _answer(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        loose = {key.strip().lower(): value for key, value in frame.items()}
        method = "".join(str(loose.get("method", "")).split()).lower()
        params = loose.get("params")
        match method:
            case "initialize":
                about = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "recorder", "version": "1"}}
                result = {**about, "capabilities": {"tools": {}}}
            case "tools/list":
                file = self.folder / "tools.json"
                tools = json.loads(file.read_text()) if file.exists() else TOOLS
                result = {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            case "tools/call":
                with (self.folder / "ran").open("a") as file:
                    file.write(json.dumps(params) + "\n")
                result = {"content": [{"type": "text", "text": "done"}]}
                asks = {"jsonrpc": "2.0", "id": "of the server", "method": "sampling/createMessage", "params": {}}
                return [asks, {"jsonrpc": "2.0", "id": frame.get("id"), "result": result}]
            case _:
                result = {}
        return [{"jsonrpc": "2.0", "id": frame["id"], "result": result}] if "id" in frame and "method" in frame else []

    @asynccontextmanager
    async def serve_http(self) -> AsyncIterator[str]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            lines = dict(line.split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
            body = await reader.readexactly(int(lines.get("content-length", "0")))
            told = [each for each in self.answers(body) if "method" not in each] if head.startswith("post") else []
            data = json.dumps(told[0]).encode() if told else b""
            status = "200 OK" if told else "202 Accepted" if body else "405 Method Not Allowed"
            fields = f"content-type: application/json\r\ncontent-length: {len(data)}\r\nconnection: close"
            writer.write(f"HTTP/1.1 {status}\r\n{fields}\r\n\r\n".encode() + data)
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


def main() -> None:
    recorder = Recorder(Path(sys.argv[1]))
    for line in sys.stdin.buffer:
        for answer in recorder.answers(line):
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

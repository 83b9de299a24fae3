"""A function-calling loop over the Anthropic SDK with a gate of ten lines. Without ANTHROPIC_API_KEY: a script.

python examples/16_anthropic_loop.py          in one terminal: it waits
interlock approvals list                      in another one
interlock approvals approve ID
"""

import asyncio
import json
import os
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from anthropic import AsyncAnthropic

from interlock import Interlock, ToolSpec


def get_weather(city: str) -> str:
    return f"clear in {city}"


def send_mail(to: str, text: str) -> str:
    return f"sent to {to}: {text}"


def takes(*names: str) -> dict[str, Any]:
    properties = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "required": list(names), "additionalProperties": False}


FUNCTIONS = {"get_weather": get_weather, "send_mail": send_mail}
SPECS = {
    "get_weather": ToolSpec("get_weather", "read", schema=takes("city")),
    "send_mail": ToolSpec("send_mail", "write", schema=takes("to", "text"), describe="Send a mail to {to}"),
}
TOOLS: Any = [{"name": spec.name, "input_schema": spec.schema} for spec in SPECS.values()]


async def main(url: str) -> None:
    client, conversation = connected(), f"conversation-{uuid.uuid4()}"  # keep it: the same ids get the same answers
    messages: list[Any] = [{"role": "user", "content": "Mail alice the weather in Oslo."}]
    async with Interlock(url, agent="mailer") as lock:
        agent = lock.agent()
        while (said := await answer(client, messages)).stop_reason == "tool_use":
            results: list[Any] = []
            for asked in (part for part in said.content if part.type == "tool_use"):
                call = agent.call(asked.name, asked.input, conversation, asked.id)
                result = await agent.result(call, SPECS[asked.name], FUNCTIONS[asked.name])  # asks, waits, runs once
                results.append({"type": "tool_result", "tool_use_id": asked.id, "content": json.dumps(result)})
                print(asked.name, "->", result)
            messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]
    print(said.content[0].text)


async def answer(client: AsyncAnthropic, messages: list[Any]) -> Any:
    model = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5-5")
    return await client.messages.create(model=model, max_tokens=1_000, messages=messages, tools=TOOLS)


# Without a key: what the model would say


def connected() -> AsyncAnthropic:
    if "ANTHROPIC_API_KEY" in os.environ:
        return AsyncAnthropic()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Script)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return AsyncAnthropic(base_url=f"http://127.0.0.1:{server.server_port}", api_key="none")


class Script(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps(scripted(asked)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def scripted(asked: dict[str, Any]) -> dict[str, Any]:
    """First two calls, then an answer."""
    wanted = {"get_weather": {"city": "Oslo"}, "send_mail": {"to": "alice", "text": "Clear sky."}}
    said: list[dict[str, Any]] = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": args, "caller": {"type": "direct"}}
        for number, (name, args) in enumerate(wanted.items())
    ]
    if len(asked["messages"]) > 1:
        said = [{"type": "text", "text": "Alice has it.", "citations": None}]
    reason = said[0]["type"] if said[0]["type"] == "tool_use" else "end_turn"
    known = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "stop_sequence": None}
    return {**known, "content": said, "stop_reason": reason, "usage": {"input_tokens": 1, "output_tokens": 1}}


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"))

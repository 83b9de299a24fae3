"""A function-calling loop over the OpenAI SDK with a gate of ten lines. Without OPENAI_API_KEY: a script.

python examples/15_openai_loop.py             in one terminal: it waits
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

from openai import AsyncOpenAI

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
TOOLS: Any = [{"type": "function", "function": {"name": s.name, "parameters": s.schema}} for s in SPECS.values()]


async def main(url: str) -> None:
    client, conversation = connected(), f"conversation-{uuid.uuid4()}"  # keep it: the same ids get the same answers
    messages: list[Any] = [{"role": "user", "content": "Mail alice the weather in Oslo."}]
    async with Interlock(url, agent="mailer") as lock:
        agent = lock.agent()
        while (said := await answer(client, messages)).tool_calls:
            messages.append(said)
            for asked in said.tool_calls:
                name, args = asked.function.name, json.loads(asked.function.arguments)
                call = agent.call(name, args, conversation, asked.id)
                result = await agent.result(call, SPECS[name], FUNCTIONS[name])  # asks, waits, runs once, tells
                messages.append({"role": "tool", "tool_call_id": asked.id, "content": json.dumps(result)})
                print(name, "->", result)
    print(said.content)


async def answer(client: AsyncOpenAI, messages: list[Any]) -> Any:
    model = os.environ.get("OPENAI_MODEL", "gpt-6.1-terra")
    return (await client.chat.completions.create(model=model, messages=messages, tools=TOOLS)).choices[0].message


# Without a key: what the model would say


def connected() -> AsyncOpenAI:
    if "OPENAI_API_KEY" in os.environ:
        return AsyncOpenAI()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Script)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return AsyncOpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none")


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
    said: dict[str, Any] = {"role": "assistant", "content": "Alice has it.", "refusal": None}
    if asked["messages"][-1]["role"] != "tool":
        wanted = {"get_weather": {"city": "Oslo"}, "send_mail": {"to": "alice", "text": "Clear sky."}}
        calls = [{"name": name, "arguments": json.dumps(args)} for name, args in wanted.items()]
        said["content"] = None
        said["tool_calls"] = [{"id": f"call_{n}", "type": "function", "function": call} for n, call in enumerate(calls)]
    reason = "tool_calls" if "tool_calls" in said else "stop"
    choice = {"index": 0, "message": said, "finish_reason": reason, "logprobs": None}
    known = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": asked["model"]}
    return {**known, "choices": [choice]}


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"))

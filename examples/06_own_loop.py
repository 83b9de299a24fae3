"""A function-calling loop of your own, without decorators: check, wait, start, finish. The model here is a script.

python examples/06_own_loop.py                in one terminal: it waits
interlock approvals list                      in another one
interlock approvals approve ID
"""

import asyncio
import json
import sys
import uuid
from typing import Any

from interlock import Interlock, Proceed, ToolCall, Waiting, propose, to_model_message

Message = dict[str, Any]


def get_weather(city: str) -> dict[str, str]:
    return {"city": city, "sky": "clear"}


def send_mail(to: str, text: str) -> str:
    return f"sent to {to}: {text}"


TOOLS = {"get_weather": get_weather, "send_mail": send_mail}


def model(messages: list[Message]) -> Message:
    """What a model would say: first two tool calls, then an answer."""
    if any(message["role"] == "tool" for message in messages):
        return {"role": "assistant", "content": "Done."}
    calls = [
        {"id": "call_1", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
        {"id": "call_2", "name": "send_mail", "arguments": '{"to": "alice", "text": "Clear sky."}'},
    ]
    return {"role": "assistant", "tool_calls": calls}


async def result_of(lock: Interlock, call: ToolCall) -> object:
    """What the model is told, whatever the policy or people say. `check` never runs anything."""
    outcome = await lock.check(call)
    while isinstance(outcome, Waiting):
        outcome = await lock.wait(outcome.approval_id)
    match outcome:
        case Proceed(args, ""):  # an allowed read: there is nothing to start
            return TOOLS[call.tool](**json.loads(args))
        case Proceed(_, approval_id):
            return await execute(lock, call.tool, approval_id)
        case _:  # the result, if it ran before this program was started again; what a person answered; or why not
            return to_model_message(outcome, call.tool)


async def execute(lock: Interlock, tool: str, approval_id: str) -> object:
    started = await lock.start(approval_id)  # one winner; from here on the call counts as started
    try:
        result = TOOLS[tool](**json.loads(started.args))  # the bytes that were approved, not those that were proposed
    except Exception as error:  # noqa: BLE001  whatever went wrong, the record and the model are told
        await lock.finish(approval_id, started.fence, error=f"{type(error).__name__}: {error}")
        return {"error": str(error)}
    await lock.finish(approval_id, started.fence, result)
    return result


async def main(url: str) -> None:
    run_id = f"conversation-{uuid.uuid4()}"  # keep it with the conversation: the same ids get the same answers
    messages: list[Message] = [{"role": "user", "content": "Mail alice the weather in Oslo."}]
    async with Interlock(url, agent="mailer", run_id=run_id) as lock:
        lock.tool(get_weather, effect="read")  # registers what is known of the tool; the loop calls it by itself
        lock.tool(send_mail, effect="write", describe="Send a mail to {to}")
        while "tool_calls" in (reply := model(messages)):
            messages.append(reply)
            for asked in reply["tool_calls"]:
                call = propose(asked["name"], json.loads(asked["arguments"]), run_id, asked["id"], agent="mailer")
                content = json.dumps(await result_of(lock, call))
                messages.append({"role": "tool", "tool_call_id": asked["id"], "content": content})
                print(asked["name"], "->", content)
    print(reply["content"])


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"))

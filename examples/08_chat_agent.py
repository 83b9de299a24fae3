"""An agent that chats and acts, in your own program and without a server. Its model is the demo's script.

python examples/08_chat_agent.py              in one terminal: it waits
interlock approvals list                      in another one
interlock approvals approve ID
"""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from interlock.app.bootstrap import build_services
from interlock.chat.stream import Position
from interlock.config.load import load_settings
from interlock.core.identity import Principal
from interlock.server.lifecycle import background_jobs
from interlock.server.serve import make_server_state
from interlock.server.state import ServerState

MESSAGES = ("list objectives", 'create an objective "Answer within a day"', "ask me which colour to use")


async def say(state: ServerState, principal: Principal, text: str, thread_id: str) -> str:
    """Prints what comes of a message, until the agent has nothing more to do; gives the id of the conversation."""
    services = await state.workspaces.services(principal.workspace)
    thread = await state.assistant.threads.say(services, principal, text, thread_id, "" if thread_id else "clerk")
    print("\nann:", text)
    async for event in state.assistant.follow(thread, Position(thread.entry_count)):
        match event.name, event.data:
            case "delta", {"content": content}:
                print(content, end="", flush=True)
            case "tool_call_result", {"tool_call": {"name": name, "result": result}}:
                print(f"\n[{name}] {result}")
            case "approval_request", _:
                print(f"\n[waits] interlock approvals show {event.approval}")
            case ("done", _) | ("error", _):
                break
    return thread.id


async def main(url: str) -> None:
    settings = load_settings(Path(__file__).with_suffix(".yaml"), overrides={"storage.url": url})
    services = build_services(url)
    async with AsyncExitStack() as stack:
        await services.store.open()
        stack.push_async_callback(services.store.close)
        state = await make_server_state(settings, services)
        await stack.enter_async_context(state.assistant.open())
        await stack.enter_async_context(
            background_jobs(state.log, services.worker.run, *state.assistant.background_tasks)
        )
        thread_id, ann = "", Principal("default", "ann", "reviewer")
        for text in MESSAGES:
            thread_id = await say(state, ann, text, thread_id)


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"))

"""What the MCP gate is made of, each by itself: counting calls, sealing states, naming tools, opening the door."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from interlock import Interlock
from interlock.config.models import McpServerSettings
from interlock.core.call import ToolSpec
from interlock.core.canonical import digest
from interlock.core.errors import InvalidRequest
from interlock.core.outcome import Answered, Finished, Refused, Waiting
from interlock.integrations.mcp_gate.call import (
    CallCounter,
    CallState,
    ToolCallHandler,
    UpstreamTool,
    is_sealed,
    outcome_result,
    seal,
    unseal,
)
from interlock.integrations.mcp_gate.frames import make_headers, make_request
from interlock.integrations.mcp_gate.http import HttpAccess, ReplayBuffer
from interlock.integrations.mcp_gate.upstream import Upstream, UpstreamLost, expose_names

pytestmark = pytest.mark.smoke  # starts next to nothing

KEY = b"k" * 32
STATE = CallState(approval_id="approval", run_id="run", call_id="note:abc:1", tool="note", args_sha256=digest(b"{}"))


# --- which call it is -------------------------------------------------------------------------------------------------


def test_the_same_call_is_the_same_until_it_was_answered_for_good() -> None:  # R54
    numbers = CallCounter()
    assert numbers.acquire("run", "call") == 1
    numbers.release("run", "call", 1, is_final=False)
    assert numbers.acquire("run", "call") == 1
    numbers.release("run", "call", 1, is_final=True)
    assert numbers.acquire("run", "call") == 2
    assert numbers.acquire("another run", "call") == 1


def test_calls_at_the_same_time_are_others_and_end_in_any_order() -> None:  # R54
    numbers = CallCounter()
    assert [numbers.acquire("run", "call") for _ in range(3)] == [1, 2, 3]
    numbers.release("run", "call", 2, is_final=True)
    numbers.release("run", "call", 1, is_final=False)
    assert numbers.acquire("run", "call") == 1
    numbers.release("run", "call", 1, is_final=True)
    numbers.release("run", "call", 3, is_final=True)
    assert numbers.acquire("run", "call") == 4


def test_a_state_comes_back_whole_and_only_for_its_call() -> None:  # R54
    sealed = seal(STATE.next(), KEY)
    assert is_sealed(sealed)
    assert unseal(sealed, KEY, run_id="run", tool="note", args=b"{}") == STATE.next()
    others: list[dict[str, Any]] = [
        {"run_id": "other", "tool": "note", "args": b"{}"},
        {"run_id": "run", "tool": "other", "args": b"{}"},
        {"run_id": "run", "tool": "note", "args": b'{"a":1}'},
    ]
    for other in others:
        with pytest.raises(InvalidRequest, match="belongs to another call"):
            unseal(sealed, KEY, **other)


@pytest.mark.parametrize("change", [lambda s: s[:-2], lambda s: s + "AA", lambda s: s.replace(".", "..", 1)])
def test_a_state_that_was_touched_is_none_of_ours(change: Any) -> None:  # R54
    with pytest.raises(InvalidRequest, match="not made by this gate"):
        unseal(change(seal(STATE, KEY)), KEY, run_id="run", tool="note", args=b"{}")


def test_a_state_under_another_key_is_none_of_ours() -> None:  # R54
    with pytest.raises(InvalidRequest, match="not made by this gate"):
        unseal(seal(STATE, b"o" * 32), KEY, run_id="run", tool="note", args=b"{}")
    assert not is_sealed("a state of a server")
    assert not is_sealed(None)


class FakeClient:
    """A client that may give up in the middle, before a tool that takes its time."""

    def __init__(self, tool: UpstreamTool) -> None:
        self.run_id, self.is_modern, self.can_open_urls, self.token = "run", False, False, None
        self.cancelled = asyncio.Event()
        self.was_sent_upstream = False
        self._tool = tool

    async def find(self, *, fresh: bool) -> UpstreamTool:
        return self._tool

    async def notify(self, method: str, params: dict[str, Any]) -> None: ...
    async def show(self, approval_id: str, message: str, url: str) -> None: ...


async def test_a_result_that_nobody_waited_for_is_given_to_the_same_call_that_comes_next(tmp_path: Path) -> None:
    begun, go, ran = asyncio.Event(), asyncio.Event(), []  # R54

    async def run(args: Any, _: Any) -> types.JSONRPCResponse:
        begun.set()
        await go.wait()
        ran.append(args)
        return types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"content": [{"type": "text", "text": str(len(ran))}]})

    tool = UpstreamTool(ToolSpec("note", "write"), has_output_schema=False, run=run)
    policy = {"version": 1, "rules": [{"name": "free", "tools": ["note"], "then": "allow"}]}
    with Interlock(f"sqlite:///{tmp_path / 'interlock.db'}", policy=policy, agent="gate") as lock:
        desk = ToolCallHandler(lock.agent(), KEY, wait=0)
        first = FakeClient(tool)
        calling = asyncio.create_task(desk.answer(first, {"name": "note", "arguments": {}}))
        async with asyncio.timeout(60):
            await begun.wait()
        first.cancelled.set()
        go.set()
        await calling
        answers = [await desk.answer(FakeClient(tool), {"name": "note"}) for _ in range(2)]
    assert [answer["content"][0]["text"] for answer in answers] == ["1", "2"]
    assert len(ran) == 2


# --- what the client is told ------------------------------------------------------------------------------------------


def model_message(outcome: Any, *, has_shape: bool = False) -> dict[str, Any]:
    return outcome_result(outcome, "note", has_output_schema=has_shape, earlier=False)


def test_every_end_of_a_call_is_a_result_that_clients_can_show() -> None:  # R35 R54
    stored = {"content": [{"type": "text", "text": "noted"}], "structuredContent": {"n": 1}}
    assert model_message(Finished("succeeded", stored)) == stored
    assert model_message(Finished("succeeded", "cut short"))["content"][0]["text"] == "cut short"
    assert model_message(Finished("failed", None, "no such file"))["isError"]
    assert "its outcome is unknown" in model_message(Finished("unknown"))["content"][0]["text"]
    assert model_message(Refused("no"))["_meta"] == {"interlock/status": "denied"}
    assert not model_message(Answered("later"))["isError"]
    with pytest.raises(TypeError, match="nothing to tell"):
        model_message(Waiting("id"))


def test_where_a_tool_promises_a_shape_plain_words_are_an_error_and_an_object_is_the_result() -> None:  # R54
    assert model_message(Answered("later"), has_shape=True)["isError"]
    given = model_message(Answered({"sum": 3}), has_shape=True)
    assert (given["isError"], given["structuredContent"]) == (False, {"sum": 3})


# --- servers ----------------------------------------------------------------------------------------------------------


async def do_nothing(*_: object) -> None: ...


def upstream(name: str, **more: Any) -> Upstream:
    return Upstream(name, McpServerSettings(**more), do_nothing, do_nothing)


def test_only_names_that_two_servers_have_get_the_name_of_their_server() -> None:  # R54
    one, two = upstream("one"), upstream("two", prefix="second")
    known = expose_names([(one, {"name": "search"}), (one, {"name": "add"}), (two, {"name": "search"})])
    assert {name: owner.name for name, (owner, _) in known.items()} == {
        "one_search": "one",
        "add": "one",
        "second_search": "two",
    }


async def test_what_is_said_of_a_server_that_is_not_there_holds_no_secret() -> None:  # R54
    secret = "a-secret-of-a-test"
    script = f"import sys; sys.exit('cannot use {secret}')"
    dead = upstream("dead", command=sys.executable, args=("-c", script), env={"TOKEN": secret})
    with pytest.raises(UpstreamLost) as lost:
        async with asyncio.timeout(60):
            await dead.request(make_request(1, "ping"))
    assert "cannot use …" in str(lost.value)
    with pytest.raises(UpstreamLost, match="cannot use …"):
        await dead.send(make_request(2, "ping"))
    await dead.close()


def test_a_server_at_an_address_reads_in_headers_what_the_frame_says() -> None:  # R54
    meta = {types.PROTOCOL_VERSION_META_KEY: "2026-07-28"}
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    call = make_request(1, "tools/call", {"name": "é", "arguments": {"region": "north"}, "_meta": meta})
    assert make_headers(call, "", schema) == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?w6k=?=",
        "Mcp-Param-Region": "north",
    }
    assert make_headers(make_request(1, "tools/list"), "2025-11-25") == {"mcp-protocol-version": "2025-11-25"}
    assert make_headers(make_request(1, "initialize"), "2025-11-25") == {}


# --- HTTP -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:8322"}, None),
        ({"host": "localhost"}, None),
        ({"host": "[::1]:8322", "origin": "http://localhost:3000"}, None),
        ({"host": "127.0.0.1.evil.example:8322"}, 421),
        ({}, 421),
        ({"host": "localhost", "origin": "null"}, 403),
        ({"host": "localhost", "origin": "https://localhost.evil.example"}, 403),
    ],
)
def test_without_a_token_only_this_machine_comes_in(headers: dict[str, str], status: int | None) -> None:  # R54
    refused = HttpAccess().find_rejection(headers)
    assert (refused[0] if refused else None) == status


async def test_frames_that_a_client_missed_can_be_had_again() -> None:  # R54
    kept, found = ReplayBuffer(), []
    first = await kept.store_event("a", None)
    await kept.store_event("b", make_request(1, "ping"))
    await kept.store_event("a", make_request(2, "ping"))

    async def take(event: Any) -> None:
        found.append(event.message.id)

    assert await kept.replay_events_after(first, take) == "a"
    assert found == [2]
    for number in range(300):
        await kept.store_event("c", make_request(number, "ping"))
    assert await kept.replay_events_after(first, take) is None

"""A client whose connection breaks while a person decides comes back, and gets the answer of the call that it made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.server.streamable_http import EventMessage
from mcp_types import JSONRPCResponse

from interlock.integrations.mcp_gate.http import MAX_KEPT_BYTES, ReplayBuffer
from tests.frameworks.auto_approver import auto_approve
from tests.frameworks.mcp_conformance_suite import run_server
from tests.frameworks.real_mcp_servers import CLIENT, git
from tests.journeys.shell import Shell, wait_until

REVISION = "2025-11-25"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_the_answer_waits_for_a_client_that_comes_back(folder: Path, shell: Shell) -> None:  # R54 R6
    real = git(folder)
    assert real.write is not None
    gate = shell.command("mcp-gate", "--http", "--port", "0", "--", *real.command)
    served = run_server(gate, shell.folder / "gate.log", env=shell.env(), cwd=shell.folder)
    with served as address, closing(HttpClient(address)) as client:
        place = client.call_and_leave(real.write.tool, real.write.args)
        assert real.seen() == real.before
        with auto_approve(shell.url):
            wait_until(lambda: real.seen() == real.after, "the approved call ran")
        answer = client.reconnect(place)
        assert real.expected_write in json.dumps(answer["result"])
        assert client.reconnect(place) == answer
    assert real.seen() == real.after


class HttpClient:
    """A client that can hang up at any time."""

    def __init__(self, address: str) -> None:
        self.http = httpx2.Client(base_url=address, timeout=60, trust_env=False)
        self.headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": REVISION}
        hello = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": CLIENT}
        answer = self._post({"id": 1, "method": "initialize", "params": hello})
        self.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        assert self._post({"method": "notifications/initialized"}).status_code == 202

    def call_and_leave(self, tool: str, args: dict[str, Any]) -> str:
        """Gives the place in the stream at which it left."""
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": args}}
        with self.http.stream("POST", "", json=call, headers=self.headers) as stream:
            return next(place for place, _ in events(stream))

    def reconnect(self, place: str) -> dict[str, Any]:
        with self.http.stream("GET", "", headers={**self.headers, "last-event-id": place}) as stream:
            return next(json.loads(data) for _, data in events(stream) if data)

    def close(self) -> None:
        self.http.close()

    def _post(self, message: dict[str, Any]) -> httpx2.Response:
        return self.http.post("", json={"jsonrpc": "2.0", **message}, headers=self.headers)


def events(stream: httpx2.Response) -> Iterator[tuple[str, str]]:
    """The id and the data of each."""
    found: dict[str, str] = {}
    for line in stream.iter_lines():
        if line:
            key, _, value = line.partition(":")
            found[key] = value.strip()
        elif "id" in found:
            yield found["id"], found.get("data", "")
            found = {}


async def test_what_is_kept_for_a_session_is_bounded_in_bytes() -> None:  # R54
    kept, seen = ReplayBuffer(), []
    first = await kept.store_event("stream", None)
    big = JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "x" * (MAX_KEPT_BYTES // 2)})
    places = [await kept.store_event("stream", big) for _ in range(3)]

    async def replayed(event: EventMessage) -> None:
        seen.append(event.event_id)

    assert await kept.replay_events_after(first, replayed) is None
    assert await kept.replay_events_after(places[-1], replayed) == "stream"
    assert seen == []

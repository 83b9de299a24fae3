"""The demo's fake Linear, served over real HTTP with network failures."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphql import GraphQLResolveInfo, build_schema, is_list_type, is_non_null_type, is_object_type

from interlock.core.ports import ToolItemStore
from interlock.demo.linear.resolvers import resolve_field
from interlock.demo.linear.server import FakeLinear
from tests.fakes.asgi_server import serve_asgi
from tests.node_packages import PROVIDER, node_command

FULL = Path(__file__).parents[1] / "vendor" / "linear" / "schema.full.graphql.gz"
EMPTY: Mapping[str, Any] = {"Boolean": False, "Float": 0.0, "Int": 0, "JSONObject": {}, "String": ""}


@dataclass
class FaultyConnection:
    """Failures to come on the way to the fake; `requests` holds every request that arrived."""

    url: str = ""
    requests: list[Mapping[str, Any]] = field(default_factory=list)
    lose_responses_to: str = ""  # done, but the connection breaks before the answer is out
    drop: str = ""  # the connection breaks before it is done
    override: tuple[int, Mapping[str, str], bytes] | None = None

    @property
    def mutations(self) -> list[str]:
        """The names of the mutations that arrived."""
        texts = [str(request["query"]).split() for request in self.requests]
        return [words[1].partition("(")[0] for words in texts if words[0] == "mutation"]


@asynccontextmanager
async def run_linear(standin: FakeLinear) -> AsyncIterator[FaultyConnection]:
    line = FaultyConnection()

    async def app(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        body = await _body(receive)
        line.requests.append(json.loads(body))
        if line.override:
            return await _send(send, *line.override)
        if line.drop and line.drop in line.requests[-1]["query"]:
            return await _hang_up(send)
        authorization = dict(scope["headers"]).get(b"authorization", b"").decode()
        status, answer = await standin.answer(scope["method"], authorization, body)
        if line.lose_responses_to and line.lose_responses_to in line.requests[-1]["query"]:
            return await _hang_up(send)
        return await _send(send, status, {"content-type": "application/json"}, json.dumps(answer).encode())

    with socket.create_server(("127.0.0.1", 0)) as listening:
        line.url = f"http://127.0.0.1:{listening.getsockname()[1]}/graphql"
        async with serve_asgi(app, listening):
            yield line


def full_schema_app(items: ToolItemStore) -> FakeLinear:
    """By the whole of Linear's schema, for Linear's own SDK, which asks for far more than is kept.

    What nothing is kept of is answered as empty, as in a workspace that uses none of it.
    """
    schema = build_schema(gzip.decompress(FULL.read_bytes()).decode(), assume_valid=True)
    return FakeLinear(items, schema, _or_empty)


def run_linear_sdk(url: str) -> dict[str, Any]:
    """What Linear's own SDK says when it is used against this address."""
    command = node_command(Path(__file__).with_name("linear_sdk.mjs"), str(PROVIDER.folder), url)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _or_empty(source: Any, info: GraphQLResolveInfo[Any], **args: Any) -> Any:
    value = resolve_field(source, info, **args)
    return _empty_value(info.return_type) if value is None else value


def _empty_value(wanted: Any) -> Any:
    """None also where that is not allowed, so that dates, ids and choices are never made up."""
    inner = wanted.of_type if is_non_null_type(wanted) else None
    if is_list_type(inner):
        return []
    return {} if is_object_type(inner) else EMPTY.get(str(inner))


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def _hang_up(send: Any) -> None:
    """The server closes a connection on which it cannot give the whole of what it promised."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9999")]})


async def _send(send: Any, status: int, headers: Mapping[str, str], body: bytes) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})

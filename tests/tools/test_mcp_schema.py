"""Every message to a server is one by the protocol's own schema, of the version that was agreed on."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from interlock.config.models import McpServerSettings
from interlock.core.errors import ToolFailed
from tests.tools.mcp_harness import ROOT, command, connect_servers, run, wait_until

VENDOR = Path(__file__).parents[1] / "vendor" / "mcp"


def validator(version: str, kind: str) -> jsonschema_rs.Validator:
    schema = json.loads(gzip.decompress((VENDOR / f"schema-{version}.json.gz").read_bytes()))
    return jsonschema_rs.validator_for({**schema, "$ref": f"#/$defs/{kind}"})


def recorded_messages(file: Path, mark: str) -> Iterator[dict[str, Any]]:
    for line in file.read_text().splitlines():
        if line.startswith(mark):
            yield json.loads(line[1:])


@pytest.mark.parametrize(("options", "version"), [(("--old",), "2025-11-25"), ((), "2026-07-28")])
async def test_requests_and_notices_are_by_the_schema(options: tuple[str, ...], version: str, tmp_path: Path) -> None:
    log = tmp_path / "wire"
    tee = ("-m", "tests.tools.stdio_recorder", str(log), sys.executable, *command(tmp_path, *options))
    async with connect_servers(files=McpServerSettings(sys.executable, tee, cwd=str(ROOT))) as servers:
        assert await run(servers, "files_note", text="hello") == {"text": "noted"}
        await run(servers, "files_change")
        for name in ("files_fail", "files_ask", "files_note"):
            with suppress(ToolFailed):
                await run(servers, name)
        await wait_until(lambda: "evil.example" in log.read_text())
    said = list(recorded_messages(log, ">"))
    requests = [message for message in said if "id" in message and "method" in message]
    notices = [message for message in said if "id" not in message]
    agreed = [message for message in requests if message["method"] != "server/discover" or not options]  # a first try
    assert {"tools/list", "tools/call"} <= {message["method"] for message in requests}
    assert _invalid_messages(agreed, validator(version, "ClientRequest")) == []
    assert _invalid_messages(notices, validator(version, "ClientNotification")) == []
    assert ("initialize" in {message["method"] for message in said if "method" in message}) == bool(options)


async def test_a_server_that_ends_over_an_unknown_first_question_is_asked_in_its_own_way(tmp_path: Path) -> None:
    tee = (
        "-m",
        "tests.tools.stdio_recorder",
        str(tmp_path / "wire"),
        "--stern",
        sys.executable,
        *command(tmp_path, "--old"),
    )
    async with connect_servers(files=McpServerSettings(sys.executable, tee, cwd=str(ROOT))) as servers:
        assert await run(servers, "files_note", text="hello") == {"text": "noted"}


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_the_schema_refuses_what_is_no_request(version: str) -> None:
    """The red control."""
    wrong = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {}}}
    assert _invalid_messages([wrong], validator(version, "ClientRequest")) == [wrong]


def _invalid_messages(messages: list[dict[str, Any]], valid: jsonschema_rs.Validator) -> list[dict[str, Any]]:
    return [message for message in messages if not valid.is_valid(message)]

"""Real MCP servers: their command, their calls, and where their effects show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.node_packages import MCP

Json = dict[str, Any]
CLIENT = {"name": "tests", "version": "1"}
PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {
    f"{PREFIX}protocolVersion": "2026-07-28",
    f"{PREFIX}clientInfo": CLIENT,
    f"{PREFIX}clientCapabilities": {},
}


@dataclass(frozen=True)
class Call:
    tool: str
    args: Json


@dataclass(frozen=True)
class RealServer:
    """A server at work in a folder: `told` is in what its read says, `done` in what its write says when it ran once.

    `seen` gives what its writes left behind, which is different if one ran twice.
    """

    name: str
    command: list[str]
    read: Call
    expected_read: str
    expected_write: str = ""
    write: Call | None = None
    other: Call | None = None
    seen: Callable[[], object] = lambda: None
    before: object = None
    after: object = None
    modern: bool = False


def filesystem(folder: Path) -> RealServer:
    file = folder / "notes.txt"
    file.write_text("one\n")
    edits = [{"oldText": "one", "newText": "one one"}]
    return RealServer(
        "filesystem",
        MCP.command("@modelcontextprotocol/server-filesystem/dist/index.js", str(folder)),
        Call("read_text_file", {"path": str(file)}),
        "one",
        "one one",
        Call("edit_file", {"path": str(file), "edits": edits}),
        Call("write_file", {"path": str(folder / "more.txt"), "content": "more"}),
        lambda: [(each.name, each.read_text()) for each in sorted(folder.glob("*.txt"))],
        [("notes.txt", "one\n")],
        [("notes.txt", "one one\n")],
    )


def memory(folder: Path) -> RealServer:
    file = folder / "memory.jsonl"
    file.write_text('{"type":"entity","name":"ada","entityType":"person","observations":["a reviewer"]}\n')

    def entity(name: str) -> Json:
        return {"entities": [{"name": name, "entityType": "person", "observations": ["an operator"]}]}

    return RealServer(
        "memory",
        ["env", f"MEMORY_FILE_PATH={file}", *MCP.command("@modelcontextprotocol/server-memory/dist/index.js")],
        Call("read_graph", {}),
        "a reviewer",
        "bob",
        Call("create_entities", entity("bob")),
        Call("create_entities", entity("eve")),
        lambda: [json.loads(line)["name"] for line in file.read_text().splitlines()],
        ["ada"],
        ["ada", "bob"],
    )


def everything(_folder: Path) -> RealServer:
    """What it changes is inside of it: called twice, its tool would say that it stopped what it had started."""
    return RealServer(
        "everything",
        MCP.command("@modelcontextprotocol/server-everything/dist/index.js"),
        Call("get-sum", {"a": 2, "b": 3}),
        "The sum of 2 and 3 is 5.",
        "Started simulated",
        Call("toggle-simulated-logging", {}),
        Call("toggle-subscriber-updates", {}),
    )


def everything_over_http() -> list[str]:
    """Says its address."""
    node, *words = MCP.command("@modelcontextprotocol/server-everything/dist/index.js", "streamableHttp")
    return [node, "--import", str(Path(__file__).parent / "loopback.mjs"), *words]


def git(folder: Path) -> RealServer:
    for words in (["init", "-q"], ["config", "user.name", "ada"], ["config", "user.email", "ada@example.com"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    (folder / "notes.txt").write_text("one\n")
    subprocess.run(["git", "-C", str(folder), "add", "notes.txt"], check=True)
    subprocess.run(["git", "-C", str(folder), "commit", "-qm", "begin"], check=True)
    (folder / "notes.txt").write_text("two\n")
    subprocess.run(["git", "-C", str(folder), "add", "notes.txt"], check=True)

    def log() -> list[str]:
        command = ["git", "-C", str(folder), "log", "--format=%s"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    return RealServer(
        "git",
        [sys.executable, "-m", "mcp_server_git", "--repository", str(folder)],
        Call("git_log", {"repo_path": str(folder)}),
        "begin",
        "Changes committed",
        Call("git_commit", {"repo_path": str(folder), "message": "go on"}),
        Call("git_commit", {"repo_path": str(folder), "message": "go astray"}),
        log,
        ["begin"],
        ["go on", "begin"],
        modern=True,
    )


def time(_folder: Path) -> RealServer:
    """It only reads."""
    return RealServer(
        "time",
        [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"],
        Call("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        "21:00",
        modern=True,
    )


MAKERS: dict[str, Callable[[Path], RealServer]] = {
    made.__name__: made for made in (filesystem, memory, everything, git, time)
}


def list_tools(command: list[str], revision: str, folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Each tool as the wire has it, keys sorted, by name: read without any client that could drop something."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdin
            assert process.stdout
            tools = list(_pages(process.stdin, process.stdout, revision))
        finally:
            process.kill()
    return {tool["name"]: json.dumps(tool, sort_keys=True) for tool in tools}


def _pages(to: IO[str], back: IO[str], revision: str) -> Iterator[Json]:
    meta: Json = {"_meta": ENVELOPE} if revision == "2026-07-28" else {}
    if not meta:
        hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT}
        _request(to, back, 1, "initialize", hello)
        _send(to, {"method": "notifications/initialized"})
    count, cursor = 2, None
    while count == 2 or cursor:
        page = _request(to, back, count, "tools/list", meta | ({"cursor": cursor} if cursor else {}))
        yield from page["tools"]
        count, cursor = count + 1, page.get("nextCursor")


def _request(to: IO[str], back: IO[str], count: int, method: str, params: Json) -> Json:
    _send(to, {"id": count, "method": method, "params": params})
    for line in back:
        answer = json.loads(line)
        if answer.get("id") == count and "method" not in answer:
            result: Json = answer["result"]
            return result
    raise AssertionError(f"No answer to {method}")


def _send(to: IO[str], message: Json) -> None:
    to.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    to.flush()

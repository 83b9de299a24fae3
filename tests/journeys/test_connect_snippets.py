"""What the page "Connect an agent" shows to copy, run as it is shown against a real server."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import interlock
from interlock.config.load import load_settings
from tests.interlock_server import create_keys, run_server
from tests.journeys.shell import TIMEOUT, wait_until

TOP = Path(__file__).resolve().parents[2]
CONNECT = TOP / "ui" / "src" / "pages" / "connect"
SNIPPETS = {file.stem: file.read_text() for file in (CONNECT / "snippets").glob("*.txt")}
PLACEHOLDERS = ("http://localhost:8321", "ilk_your_key", "my-agent")
AGENT = "first-agent"


@dataclass
class FirstRun:
    """A new server, an admin, and a key that was just made for an agent."""

    url: str
    admin: httpx2.Client
    key: str
    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def snippet(self, name: str) -> str:
        """As the page shows it: with this server, the key and the agent's name."""
        text = SNIPPETS[name]
        for placeholder, value in zip(PLACEHOLDERS, (self.url, self.key, AGENT), strict=True):
            assert placeholder in text, f"{name} does not name {placeholder}"
            text = text.replace(placeholder, value)
        return text

    def start(self, *command: str, more: dict[str, str] | None = None) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env={**self.env(), **(more or {})},
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        self.started.append(process)
        return process

    def env(self) -> dict[str, str]:
        """Where `interlock` is found, and nothing of it is set."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
        path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
        return {**kept, "PATH": path, "HOME": str(self.folder), "NO_PROXY": "*"}

    def first_call(self) -> dict[str, Any]:
        """The call, as soon as the page would light up."""
        wait_until(lambda: bool(self._activity()["last_approval_id"]), "the first call", pause=0.1)
        shown: dict[str, Any] = self.admin.get(f"/api/approvals/{self._activity()['last_approval_id']}").json()
        assert (shown["agent"], shown["status"]) == (AGENT, "pending")
        return shown

    def approve(self, shown: dict[str, Any]) -> None:
        body = {"kind": "approve", "args_sha256": shown["args_sha256"]}
        answer = self.admin.post(f"/api/approvals/{shown['id']}/decision", json=body)
        assert answer.status_code == 200, answer.text

    def _activity(self) -> dict[str, Any]:
        [found] = self.admin.get("/api/activity").json()["items"]
        assert found["name"] == AGENT
        return dict(found)


@pytest.fixture
def first_run(tmp_path: Path) -> Iterator[FirstRun]:
    database = f"sqlite:///{tmp_path / 'interlock.db'}"
    keys = asyncio.run(create_keys(database))
    with run_server(database, tmp_path) as server, server.client(keys["admin"]) as admin:
        body = {"name": AGENT, "role": "agent", "agents": [AGENT]}
        made = FirstRun(server.url, admin, admin.post("/api/keys", json=body).json()["key"], tmp_path)
        yield made
        for process in made.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


# R21
def test_the_python_program_waits_for_its_first_decision_and_runs(first_run: FirstRun) -> None:
    process = first_run.start(sys.executable, "-c", first_run.snippet("python"))
    shown = first_run.first_call()
    assert shown["tool"] == "create_issue"
    first_run.approve(shown)
    out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (0, "{'id': 1, 'title': 'Fix the login page'}\n"), err


# R22
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed. Debian: apt-get install curl")
def test_the_curl_command_proposes_the_first_call(first_run: FirstRun) -> None:
    process = first_run.start("bash", "-c", first_run.snippet("curl"))
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, err
    assert (json.loads(out)["outcome"], json.loads(out)["approval_id"]) == ("waiting", first_run.first_call()["id"])


# R54
async def test_the_mcp_configuration_starts_a_gate_in_front_of_a_server(first_run: FirstRun) -> None:
    [server] = json.loads(first_run.snippet("mcp"))["mcpServers"].values()
    args = server["args"][: server["args"].index("--") + 1]
    args += [sys.executable, "-m", "tests.tools.mcp_server", str(first_run.folder)]  # in the place of the reader's own
    env = {**first_run.env(), **server["env"], "PYTHONPATH": os.pathsep.join([str(TOP / "src"), str(TOP)])}
    command = shutil.which(server["command"], path=env["PATH"]) or ""
    with Path(os.devnull).open("w") as quiet:  # noqa: ASYNC230  it is nothing
        stdio = StdioServerParameters(command=command, args=args, env=env, cwd=first_run.folder)
        async with Client(stdio_client(stdio, quiet), mode="legacy", cache=None) as client:
            calling = asyncio.create_task(client.call_tool("note", {"text": "first"}))
            shown = await asyncio.to_thread(first_run.first_call)
            assert (shown["tool"], (first_run.folder / "ran").exists()) == ("note", False)
            first_run.approve(shown)
            async with asyncio.timeout(TIMEOUT):
                assert not (await calling).is_error
    assert (first_run.folder / "ran").read_text().splitlines() == ["first"]


# R54
def test_the_settings_of_claude_code_hold_a_call_and_record_its_end(first_run: FirstRun) -> None:
    settings = json.loads(first_run.snippet("claude_code"))
    hooks = {event: entry["hooks"][0] for event, [entry] in settings["hooks"].items()}
    assert hooks["PreToolUse"]["onFailure"] == "block"
    call = {"session_id": "s", "transcript_path": "t", "cwd": str(first_run.folder), "permission_mode": "default"}
    call |= {"tool_name": "Bash", "tool_input": {"command": "make deploy"}, "tool_use_id": "use-1"}

    def run(event: str, **more: Any) -> subprocess.Popen[str]:
        process = first_run.start("bash", "-c", hooks[event]["command"], more=settings["env"])
        assert process.stdin is not None
        process.stdin.write(json.dumps({**call, "hook_event_name": event, **more}))
        process.stdin.close()
        process.stdin = None
        return process

    before = run("PreToolUse")
    shown = first_run.first_call()
    assert shown["tool"] == "Bash"
    first_run.approve(shown)
    out, err = before.communicate(timeout=TIMEOUT)
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "allow", err
    after = run("PostToolUse", tool_response={"stdout": "done"})
    assert after.wait(TIMEOUT) == 0
    assert first_run.admin.get(f"/api/approvals/{shown['id']}").json()["status"] == "succeeded"


# R54
@pytest.mark.smoke
@pytest.mark.parametrize("name", ["python", "langgraph", "openai_agents"])
def test_a_program_compiles_and_uses_names_that_exist(name: str) -> None:
    """Frameworks are not installed beside the server: what a program takes from an integration is read, not run."""
    tree = ast.parse(SNIPPETS[name])
    compile(tree, name, "exec")
    taken = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module is not None]
    ours = {(node.module or "", each.name) for node in taken for each in node.names if "interlock" in str(node.module)}
    assert ours
    assert [(module, each) for module, each in ours if each not in names_of(module)] == []


@pytest.mark.smoke
def test_the_snippets_are_the_tabs_of_the_page_and_name_extras_that_exist() -> None:
    page = (CONNECT / "snippets.ts").read_text()
    assert sorted(re.findall(r'from "\./snippets/(\w+)\.txt\?raw"', page)) == sorted(SNIPPETS)
    extras = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"\.\[([\w,-]+)\]", page)
    assert named
    assert [each for line in named for each in line.split(",") if each not in extras] == []


@pytest.mark.smoke
def test_the_line_that_sets_a_model_sets_it() -> None:
    """The page says it where the chat has no model."""
    page = (TOP / "ui" / "src" / "pages" / "agents" / "MissingModel.tsx").read_text()
    [(name, value)] = re.findall(r'MODEL_LINE = "export (\w+)=(\S+)";', page)
    others = re.findall(r"\b[A-Z]+_API_KEY\b", page)
    for variable in {name, *others}:
        assert load_settings(environ={variable: value}, find=lambda: None).default_model
    assert load_settings(environ={}, find=lambda: None).default_model == ""


def names_of(module: str) -> set[str]:
    """The names that a module of the package exports."""
    if module == "interlock":
        return set(interlock.__all__)
    path = TOP / "src" / Path(*module.split("."))
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imported = {each.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for each in node.names}
    return defined | imported

"""What `interlock doctor` says of the chat: agents and their models, packs of tools, MCP servers, documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shutil import which

from interlock.chat.agents import ResolvedAgent
from interlock.chat.assistant import NO_MODEL, SCRIPTED, ChatComponents, build_chat_components
from interlock.chat.providers import open_model
from interlock.chat.tool_registry import known_tools
from interlock.config.agents import find_agent_warnings
from interlock.config.models import DEFAULT_WORKSPACE, PACK_SETTINGS, McpServerSettings, Settings, is_secure_url
from interlock.core.errors import Misconfigured
from interlock.core.ports import AgentVersion
from interlock.presenters.text import pluralize
from interlock.storage.engine.metrics import CheckResult
from interlock.storage.store import SqlStore


def check_chat(
    given: Settings, store: SqlStore, stored: Mapping[str, AgentVersion], workspace: str = DEFAULT_WORKSPACE
) -> Iterator[CheckResult]:
    """`stored` are the agents that were changed here. No server is reached, and no key is shown."""
    settings, parts = given.of(workspace), build_chat_components(given, store)
    try:
        packs = parts.toolbox.packs(workspace)
    except Misconfigured as error:
        yield CheckResult("fail", "tools", error.message, "Correct it: the server does not start with it.")
    else:
        yield from _agents(settings, parts, parts.agents.all(stored), workspace)
        yield _packs(packs, workspace)
    for name, server in settings.mcp_servers.items():
        yield _mcp_server(name, server)
    for folder in settings.documents:
        yield (
            CheckResult("ok", "documents", str(folder))
            if folder.exists()
            else CheckResult("warn", "documents", f"{folder} is not there", "Make it, or take it out of documents.")
        )


def _agents(
    settings: Settings, parts: ChatComponents, known: Mapping[str, ResolvedAgent], workspace: str
) -> Iterator[CheckResult]:
    others = {name: each.agent for name, each in known.items()}
    tools = known_tools(parts.toolbox.all(workspace).values())
    for name, each in known.items():
        yield _agent(settings, name, each, len(parts.toolbox.of(each.agent, workspace)))
        if settings.mcp_servers:
            continue  # their tools are not known here, so nothing can be said about names
        for warning in find_agent_warnings(name, each.agent, tools, others):
            yield CheckResult("warn", "agents", f"{name}: {warning}", f"See: GET /api/agents/{name}")


def _agent(settings: Settings, name: str, known: ResolvedAgent, tools: int) -> CheckResult:
    model = known.agent.model or settings.default_model
    found = f"{name} ({known.origin}), {model or 'no model'}, {pluralize(tools, 'tool', 'tools')}"
    try:
        if not model:
            raise Misconfigured(f"{NO_MODEL}. A server with --demo has a scripted one.")
        if model != SCRIPTED:
            open_model(model, settings.models)
    except Misconfigured as error:
        mild = known.origin == "built-in" and not model  # nobody asked for a chat yet
        return CheckResult("ok" if mild else "warn", "agents", found, error.message)
    return CheckResult("ok", "agents", found)


def _packs(packs: Mapping[str, int], workspace: str) -> CheckResult:
    at = "" if workspace == DEFAULT_WORKSPACE else f"workspaces.{workspace}."
    ready = ", ".join(f"{pack} {number}" for pack, number in packs.items() if number)
    bare = [pack for pack, number in packs.items() if not number and PACK_SETTINGS[pack]]
    found = f"{ready}; not set up: {', '.join(f'{at}tools.{pack}.{PACK_SETTINGS[pack][0]}' for pack in bare)}"
    missing = ", ".join(sorted(PACK_SETTINGS.keys() - packs.keys()))
    todo = f'For {missing}: pip install "interlock-gate[chat]"' if missing else ""
    return CheckResult("ok", "tools", found if bare else ready, todo)


def _mcp_server(name: str, server: McpServerSettings) -> CheckResult:
    if server.url and is_secure_url(server.url):
        return CheckResult("ok", "mcp", f"{name}, by its address")
    if server.url:
        return CheckResult("warn", "mcp", f"{name} is reached by plain http", "Use https: it can be read on the way.")
    if which(server.command) is None:
        todo = "Install it, or give the whole path in mcp_servers."
        return CheckResult("warn", "mcp", f"{name}: there is no program {server.command}", todo)
    return CheckResult("ok", "mcp", f"{name}, the program {server.command}")

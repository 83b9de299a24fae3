"""The checks of `interlock doctor`: channels and routing, workspaces, server, chat and tools."""

from __future__ import annotations

import resource
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from importlib.util import find_spec
from ipaddress import ip_address
from shutil import which
from urllib.parse import urlsplit

from interlock.chat.agents import ResolvedAgent
from interlock.chat.assistant import NO_MODEL, SCRIPTED, ChatComponents, build_chat_components
from interlock.chat.providers import open_model
from interlock.chat.tool_registry import known_tools
from interlock.config.agents import find_agent_warnings
from interlock.config.models import (
    PACK_SETTINGS,
    ChannelSettings,
    McpServerSettings,
    ServerSettings,
    Settings,
    StorageSettings,
    is_secret_name,
    is_secure_url,
)
from interlock.core.approval.vote import DECIDING_ROLES
from interlock.core.call import DEFAULT_WORKSPACE, PRIORITIES
from interlock.core.card import escape_invisible
from interlock.core.errors import Misconfigured, did_you_mean
from interlock.core.notify.routing import (
    DASHBOARD,
    DESTINATION_PREFIX,
    ChannelCapabilities,
    Routes,
    accepting_channels,
    channel_origins,
    find_unreachable,
)
from interlock.core.policy.policy import Policy, Rule
from interlock.core.ports import AgentVersion, User
from interlock.notify.channel import CHANNEL_KINDS, ChannelContext, open_channel
from interlock.notify.workspace_channels import make_routes, open_workspace_channels
from interlock.presenters.text import join_or_none, pluralize
from interlock.storage.engine.metrics import CheckResult
from interlock.storage.store import SqlStore

MAX_NAMED = 10  # names listed in a message
DOES_NOT_START = "Fix it: the server cannot start with it."
NAME_THE_FILE = "Code is imported only from a configuration file that is named: interlock doctor --config FILE"
SECRETS = ("signing_secret", "app_token", "secret", "secrets")  # settings that authenticate callbacks of a channel


async def check_channels(settings: Settings, users: Sequence[User], policy: Policy) -> AsyncIterator[CheckResult]:
    """Check the channels of one workspace. Sends nothing and connects to nothing: `interlock channels test` does."""
    capabilities: dict[str, ChannelCapabilities] = {}
    source = settings.origin.code_source
    for name, channel in settings.channels.items():
        if ":" in channel.kind and not source.is_trusted:
            yield CheckResult(
                "warn", "channels", f"{name} was not checked: {channel.kind} is not imported", NAME_THE_FILE
            )
            continue
        try:
            made, capabilities[name] = open_channel(
                name, channel.kind, ChannelContext(name, channel.settings, settings.server.public_url), source
            )
        except Misconfigured as error:
            yield CheckResult("fail", "channels", error.message, DOES_NOT_START)
        else:
            await made.close()
    if len(capabilities) < len(settings.channels):
        return  # routing to the other channels cannot be checked without these
    there = [user for user in users if user.removed_at is None]
    for line in _route_checks(settings, make_routes(settings, capabilities), there, policy):
        yield line


async def check_other_workspaces(
    settings: Settings, shown: str, known: Sequence[str] | None = None
) -> AsyncIterator[CheckResult]:
    """Check all workspaces except `shown`: whether the server starts with them, and what each lacks.

    `known` are the workspaces in the database, if there is one.
    """
    for name in sorted({DEFAULT_WORKSPACE, *settings.workspaces} - {shown}):
        try:
            made = open_workspace_channels(settings.for_workspace(name), settings.server.public_url)
        except Misconfigured as error:
            yield CheckResult("fail", "workspaces", f"{name}: {error.message}", DOES_NOT_START)
            continue
        for channel in made.channels.values():
            await channel.close()
        if made.channels:
            yield CheckResult("ok", "workspaces", f"{name} is notified through {join_or_none(list(made.channels))}")
    for name in settings.workspaces_without_channels(known or ()):
        yield CheckResult(
            "warn", "workspaces", f"{name} has no channels: approvals only appear in the web app", _where_to_add(name)
        )
    for name in sorted(settings.workspaces.keys() - set(known if known is not None else settings.workspaces)):
        todo = f"Correct the name, or create it: interlock workspaces add {name}"
        yield CheckResult(
            "warn", "workspaces", f"{name} is configured but does not exist{did_you_mean(name, known or ())}", todo
        )
    for line in (*_escalations(settings), *_shared_secrets(settings)):
        yield line


def _where_to_add(workspace: str) -> str:
    if workspace == DEFAULT_WORKSPACE:
        return "Add some at the top of interlock.yaml, under channels."
    return f"Add some in interlock.yaml, under workspaces: {workspace}: channels."


def _escalations(settings: Settings) -> Iterator[CheckResult]:
    target = settings.escalation.channel
    if target in ("", DASHBOARD):
        return
    for name in sorted(settings.workspaces_with_channels()):
        own = settings.for_workspace(name)
        if own.escalation.channel not in own.channels and not own.escalation.channel.startswith(DESTINATION_PREFIX):
            found = f"escalation.channel is {target}, which {name} does not have"
            yield CheckResult("warn", "workspaces", found, "Its escalations go to the channels of its calls.")


def _shared_secrets(settings: Settings) -> Iterator[CheckResult]:
    """Warn of secrets shared by two workspaces: such a secret does not prove which of them is meant."""
    holders: dict[str, set[str]] = {}
    for workspace in sorted(settings.workspaces_with_channels()):
        for name, channel in settings.for_workspace(workspace).channels.items():
            for value in _callback_secrets(channel):
                for secret in value if isinstance(value, list | tuple) else (value,):
                    if isinstance(secret, str) and secret:
                        holders.setdefault(secret, set()).add(f"{workspace}/{name}")
    for names in sorted({tuple(sorted(each)) for each in holders.values()}):
        if len({name.partition("/")[0] for name in names}) > 1:
            todo = "Give each workspace a secret, or an app, of its own."
            yield CheckResult("warn", "workspaces", f"{join_or_none(list(names))} have the same secret", todo)


def _callback_secrets(channel: ChannelSettings) -> Iterator[object]:
    """Secrets that authenticate callbacks; of a kind from outside, every secret, since any of them may."""
    for key, value in channel.settings.items():
        if key in SECRETS or (channel.kind not in CHANNEL_KINDS and is_secret_name(key)):
            yield value


def _route_checks(settings: Settings, routes: Routes, people: Sequence[User], policy: Policy) -> Iterator[CheckResult]:
    if not routes.capabilities:
        yield CheckResult("ok", "channels", "none: approvals only appear in the web app")
    origins_by_channel = _routes_by_channel(routes, policy)
    for name, origin in origins_by_channel.items():
        found = f"{name} ({settings.channels[name].kind}): {'; '.join(origin) or 'nothing is routed to it'}"
        todo = "" if origin else "Name it in routing or escalation, or in the channels of a rule."
        yield CheckResult("ok" if origin else "warn", "channels", found, todo)
    missing = find_unreachable(routes)
    for gap in missing:
        yield CheckResult("fail", "routing", gap, "Fix routing: the server cannot start with it.")
    if not missing:
        yield CheckResult(
            "ok", "routing", "; ".join(f"{name} to {_channels_text(routes, name)}" for name in PRIORITIES)
        )
        yield from _teams(routes, people)
    yield from _idle_rules(routes, policy)
    yield from _unreachable(routes, origins_by_channel, people)


def _routes_by_channel(routes: Routes, policy: Policy) -> dict[str, list[str]]:
    """The routes that lead to each channel, including rules of the policy."""
    found = channel_origins(routes)
    for rule in _asking_rules(policy):
        for step in rule.ask.escalation_steps:
            _add(found, step.channels, f"escalation by the rule {escape_invisible(rule.name)}")
        _add(found, rule.ask.channels, f"the rule {escape_invisible(rule.name)}")
    for step in policy.defaults.escalation_steps:
        _add(found, step.channels, "escalation by the policy")
    return found


def _add(found: dict[str, list[str]], names: Sequence[str], origin: str) -> None:
    for name in names:
        if origin not in found.get(name, [origin]):
            found[name].append(origin)


def _asking_rules(policy: Policy) -> list[Rule]:
    return [rule for rule in policy.rules if rule.then == "ask"]


def _channels_text(routes: Routes, priority: str) -> str:
    return " and ".join(routes.priorities.get(priority) or (routes.default,))


def _teams(routes: Routes, people: Sequence[User]) -> Iterator[CheckResult]:
    teams = sorted({team for user in people for team in user.teams})
    own = [
        f"{escape_invisible(team)} at {' and '.join(routes.channels_by_origin[team])}"
        for team in teams
        if team in routes.channels_by_origin
    ]
    others = [escape_invisible(team) for team in teams if team not in routes.channels_by_origin]
    said = [*own, *([f"by priority: {join_or_none(others)}"] if others else [])]
    if said:
        yield CheckResult("ok", "routing", f"every team is reached: {'; '.join(said)}")


def _idle_rules(routes: Routes, policy: Policy) -> Iterator[CheckResult]:
    """Warn of rules whose channels do not accept the priority of their calls, which are then routed without them."""
    for rule in _asking_rules(policy):
        priorities = (rule.ask.priority,) if rule.ask.priority else PRIORITIES
        refused = [p for p in priorities if rule.ask.channels and not accepting_channels(routes, rule.ask.channels, p)]
        if refused:
            found = f"no channel of the rule {escape_invisible(rule.name)} accepts the priority {', '.join(refused)}"
            yield CheckResult("warn", "routing", found, "These calls are routed by priority and team instead.")


def _unreachable(
    routes: Routes, origins_by_channel: dict[str, list[str]], people: Sequence[User]
) -> Iterator[CheckResult]:
    used = [
        name for name, capabilities in routes.capabilities.items() if capabilities.personal and origins_by_channel[name]
    ]
    silent = sorted(user.name for user in people if user.role in DECIDING_ROLES and not user.email)
    if used and silent:
        more = f" and {len(silent) - MAX_NAMED} more" if len(silent) > MAX_NAMED else ""
        names = f"{', '.join(map(escape_invisible, silent[:MAX_NAMED]))}{more}"
        found = f"{names} may decide but cannot be notified through {', '.join(used)}"
        yield CheckResult("warn", "routing", found, "Give them an address: interlock users add NAME --email ADDRESS")


MIN_OPEN_FILES = 4_096  # every connection is an open file
REQUEST_TIMEOUT = 5.0  # seconds
SERVER_PACKAGES = ("argon2", "authlib", "fastapi", "httptools", "httpx2", "prometheus_client", "uvicorn", "uvloop")


def check_server(settings: Settings) -> Iterator[CheckResult]:
    missing = [name for name in SERVER_PACKAGES if find_spec(name) is None]
    if missing:
        todo = 'Install it to run a server: pip install "interlock-gate[server]"'
        yield CheckResult("warn", "server", f"not installed: {', '.join(missing)}", todo)
    yield _address(settings.server)
    if not missing:
        yield _port(settings.server)
        yield from _provider(settings.server.oidc.issuer if settings.server.oidc else "")
    yield _files()
    yield _retention(settings.storage)


def _retention(storage: StorageSettings) -> CheckResult:
    """The retention, always reported: erased content can no longer be shown, searched or rehearsed."""
    if storage.retention is None:
        return CheckResult("ok", "retention", "forever: the content of finished calls is kept")
    return CheckResult(
        "ok", "retention", f"{storage.retention_text}: the content of finished calls is erased after that"
    )


def _address(server: ServerSettings) -> CheckResult:
    """Check the public address: passwords must not be sent unencrypted."""
    parts = urlsplit(server.public_url)
    if parts.scheme == "https" and parts.hostname:
        if server.proxies:
            return CheckResult("ok", "address", server.public_url)
        todo = "Set the proxy's address in server.proxies; otherwise all clients appear to come from it."
        return CheckResult("warn", "address", f"{server.public_url}, without a trusted proxy", todo)
    if server.public_url and parts.scheme != "http":
        return CheckResult(
            "fail", "address", server.public_url, "server.public_url must be an address such as https://name."
        )
    if is_local(parts.hostname or server.host):
        return CheckResult(
            "ok", "address", server.public_url or f"http://{server.host}:{server.port}, this machine only"
        )
    todo = "Put a proxy with TLS in front of it, and set server.public_url to its https:// address."
    return CheckResult("warn", "address", f"{server.public_url or server.host} is reached without TLS", todo)


def _port(server: ServerSettings) -> CheckResult:
    import httpx2

    where = f"{server.host}:{server.port}"
    if server.port == 0 or _is_free(server):
        return CheckResult("ok", "port", f"{where} is free")
    try:
        answer = httpx2.get(
            f"http://{_reachable_host(server.host)}:{server.port}/healthz", timeout=REQUEST_TIMEOUT, trust_env=False
        )
        ours = answer.json() == {"status": "ok"} and "x-request-id" in answer.headers
    except (httpx2.HTTPError, ValueError):
        ours = False
    if ours:
        return CheckResult("ok", "port", f"an Interlock server is running at {where}")
    return CheckResult(
        "fail", "port", f"another program is listening at {where}", "Choose another one: server.port, or --port."
    )


def _is_free(server: ServerSettings) -> bool:
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((server.host, server.port))
        except OSError:
            return False
    return True


def _provider(issuer: str) -> Iterator[CheckResult]:
    import httpx2

    if not issuer:
        return
    place = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        answer = httpx2.get(place, timeout=REQUEST_TIMEOUT)
        found = answer.raise_for_status().json().get("issuer")
    except (httpx2.HTTPError, ValueError, AttributeError) as error:
        todo = "Check server.oidc.issuer and the network; until then nobody can sign in through it."
        yield CheckResult(
            "fail", "provider", f"{issuer} does not answer as an OpenID provider: {type(error).__name__}", todo
        )
        return
    if found == issuer:
        yield CheckResult("ok", "provider", issuer)
    else:
        yield CheckResult(
            "fail", "provider", f"{issuer} reports the issuer {found}", "Set server.oidc.issuer to exactly that."
        )


def _files() -> CheckResult:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or most >= MIN_OPEN_FILES:
        return CheckResult("ok", "open files", "as many as needed" if most == resource.RLIM_INFINITY else f"{most:,}")
    return CheckResult("warn", "open files", f"{most:,}", f"Allow {MIN_OPEN_FILES:,} or more (ulimit -n, LimitNOFILE).")


def is_local(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _reachable_host(host: str) -> str:
    """A host to connect to, in place of a wildcard address."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104  not for listening
    return f"[{name}]" if ":" in name else name


def check_chat(
    all_settings: Settings, store: SqlStore, stored: Mapping[str, AgentVersion], workspace: str = DEFAULT_WORKSPACE
) -> Iterator[CheckResult]:
    """Check agents, models, tools and documents.

    `stored` are the agents changed here. Nothing connects, no key is shown.
    """
    settings, components = all_settings.for_workspace(workspace), build_chat_components(all_settings, store)
    try:
        packs = components.tool_registry.packs(workspace)
    except Misconfigured as error:
        yield CheckResult("fail", "tools", error.message, "Fix it: the server cannot start with it.")
    else:
        yield from _agents(settings, components, components.agents.all(stored), workspace)
        yield _packs(packs, workspace)
        for pack, path in components.tool_registry.packs_not_loaded(workspace).items():
            todo = f"To check it: interlock doctor --config {settings.file}"
            yield CheckResult("ok", "tools", f"{pack}, from {path}: not imported here", todo)
    for name, server in settings.mcp_servers.items():
        yield _mcp_server(name, server)
    for folder in settings.documents:
        yield (
            CheckResult("ok", "documents", str(folder))
            if folder.exists()
            else CheckResult("warn", "documents", f"{folder} does not exist", "Create it, or remove it from documents.")
        )


def _agents(
    settings: Settings, components: ChatComponents, known: Mapping[str, ResolvedAgent], workspace: str
) -> Iterator[CheckResult]:
    others = {name: each.agent for name, each in known.items()}
    tools = known_tools(components.tool_registry.all(workspace).values())
    for name, each in known.items():
        yield _agent(settings, name, each, len(components.tool_registry.tools_for_agent(each.agent, workspace)))
        if settings.mcp_servers or components.tool_registry.packs_not_loaded(workspace):
            continue  # not all tools are known here, so tool names cannot be checked
        todo = "Change it on the Agents page, or in interlock.yaml."
        for warning in find_agent_warnings(name, each.agent, tools, others):
            yield CheckResult("warn", "agents", f"{name}: {warning}", todo)


def _agent(settings: Settings, name: str, known: ResolvedAgent, tools: int) -> CheckResult:
    model = known.agent.model or settings.default_model
    found = f"{name} ({known.origin}), {model or 'no model'}, {pluralize(tools, 'tool', 'tools')}"
    try:
        if not model:
            raise Misconfigured(f"{NO_MODEL}. `interlock serve --demo` has a scripted one.")
        if model != SCRIPTED:
            open_model(model, settings.models)
    except Misconfigured as error:
        mild = known.origin == "built-in" and not model  # chat is not set up
        return CheckResult("ok" if mild else "warn", "agents", found, error.message)
    return CheckResult("ok", "agents", found)


def _packs(packs: Mapping[str, int], workspace: str) -> CheckResult:
    at = "" if workspace == DEFAULT_WORKSPACE else f"workspaces.{workspace}."
    ready = ", ".join(f"{pack} {number}" for pack, number in packs.items() if number)
    bare = [pack for pack, number in packs.items() if not number and PACK_SETTINGS.get(pack)]
    found = f"{ready}; not set up: {', '.join(f'{at}tools.{pack}.{PACK_SETTINGS[pack][0]}' for pack in bare)}"
    missing = ", ".join(sorted(PACK_SETTINGS.keys() - packs.keys()))
    todo = f'For {missing}: pip install "interlock-gate[chat]"' if missing else ""
    return CheckResult("ok", "tools", found if bare else ready, todo)


def _mcp_server(name: str, server: McpServerSettings) -> CheckResult:
    if server.url and is_secure_url(server.url):
        return CheckResult("ok", "mcp", f"{name}, by URL")
    if server.url:
        return CheckResult(
            "warn", "mcp", f"{name} is reached by plain http", "Use https: the traffic is not encrypted."
        )
    if which(server.command) is None:
        todo = "Install it, or give the full path in mcp_servers."
        return CheckResult("warn", "mcp", f"{name}: there is no program {server.command}", todo)
    return CheckResult("ok", "mcp", f"{name}, the program {server.command}")

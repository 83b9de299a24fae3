"""Load the settings from one file and the environment; the only module that reads the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from ipaddress import ip_network
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo

from interlock.config.agents import (
    TOOL_KEYS,
    plain_mapping,
    read_agents,
    read_mcp_servers,
    read_packs,
    read_tool_settings,
)
from interlock.config.aliases import resolve_aliases
from interlock.config.models import (
    APPLY_MODES,
    BUILTIN_ACTIONS,
    DEFAULT_MODEL_KEY,
    DEFAULT_MODELS,
    FOREVER,
    MASK,
    MODEL_VARIABLES,
    REQUEST_LOG_LEVELS,
    SECTIONS,
    ActionSettings,
    AuditSettings,
    ChannelSettings,
    ConfigOrigin,
    EscalationSettings,
    InlinePolicy,
    JsonMapping,
    OidcSettings,
    PolicyFile,
    PreviewCall,
    QuietHoursSettings,
    QuotaSettings,
    RequestLogLevel,
    RoutingSettings,
    ServerSettings,
    Settings,
    StorageSettings,
    ToolSettings,
    VerificationSettings,
    WorkspaceSettings,
    is_secure_url,
)
from interlock.config.yaml import Fields, YamlNode, YamlReader, read_yaml, to_json
from interlock.core.call import DEFAULT_WORKSPACE, PRIORITIES
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import InvalidRequest, Misconfigured
from interlock.core.identity import MAX_QUOTA, check_workspace
from interlock.core.notify.routing import DASHBOARD, DESTINATION_PREFIX

__all__ = [
    "InlinePolicy",
    "Settings",
    "agent_key",
    "child_environment",
    "gate_token",
    "load_settings",
    "names_storage",
    "server_url",
]

DEFAULT_FILE = "interlock.yaml"


def load_settings(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
    find: Callable[[], Path | None] = lambda: Path(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None,
) -> Settings:
    """Load settings; `overrides` are from the command line, such as {"server.port": 9000}; None means not given.

    `find` finds a file if none is named: by default in the working folder.
    """
    env = os.environ if environ is None else environ
    file = path or (Path(env["INTERLOCK_CONFIG"]) if env.get("INTERLOCK_CONFIG") else find())
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    if url := env.get("INTERLOCK_DATABASE_URL"):
        given = {"storage.url": url, **given}
    if key := env.get("INTERLOCK_SIGNING_KEY"):
        given = {"audit.signing_key": str(Path(key).absolute()), **given}
    try:
        settings = _settings(file, env, given)
        is_named = path is not None or bool(env.get("INTERLOCK_CONFIG"))
        return replace(settings, origin=replace(settings.origin, is_named=is_named))
    except Misconfigured as error:
        where = f"{file}: " if file else ""
        raise Misconfigured("\n".join(where + line for line in error.message.splitlines())) from None


def child_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a child process on behalf of others: everything but Interlock's own variables."""
    env = os.environ if environ is None else environ
    return {name: value for name, value in env.items() if not name.startswith("INTERLOCK_")}


def agent_key(environ: Mapping[str, str] | None = None) -> str:
    """INTERLOCK_KEY, not an option: a command line can be read by everybody on the machine."""
    return (os.environ if environ is None else environ).get("INTERLOCK_KEY", "")


def gate_token(environ: Mapping[str, str] | None = None) -> str:
    """INTERLOCK_GATE_TOKEN: the token that clients of an MCP gate have to send."""
    return (os.environ if environ is None else environ).get("INTERLOCK_GATE_TOKEN", "")


def names_storage(environ: Mapping[str, str] | None = None) -> bool:
    """Whether the environment names a database or a configuration."""
    env = os.environ if environ is None else environ
    return bool(env.get("INTERLOCK_DATABASE_URL") or env.get("INTERLOCK_CONFIG"))


def server_url(environ: Mapping[str, str] | None = None) -> str:
    """INTERLOCK_URL: the address of a server, for a command that takes one instead of a database."""
    return (os.environ if environ is None else environ).get("INTERLOCK_URL", "")


def _settings(file: Path | None, env: Mapping[str, str], overrides: Mapping[str, object]) -> Settings:
    reader = YamlReader()
    interpolator = _Interpolator(env, reader)
    document = read_yaml(_read_text(file), reader.add_problem) if file else None
    if document is None or document.value is None:
        document = YamlNode({}, 1)
    document = interpolator.interpolate(document)
    aliases = resolve_aliases(reader, document, has_url="storage.url" in overrides)
    _override(document, overrides)
    top = reader.fields(document, SECTIONS, "the configuration")
    default_workspace, others = read_workspace_settings(reader, top), read_workspaces(reader, top)
    targets = {DASHBOARD, *default_workspace.channels, *(name for each in others.values() for name in each.channels)}
    folder = file.parent if file else Path()
    models, default_model = _models(reader, top, env)
    settings = Settings(
        storage=_storage(reader, top),
        server=_server(reader, top, env.get("INTERLOCK_QUOTAS", "")),
        policy=_policy(reader, top, folder),
        actions={**BUILTIN_ACTIONS, **_actions(reader, top)},
        routing=default_workspace.routing,
        verification=_verification(reader, top),
        escalation=_escalation(reader, top, targets),
        audit=_audit(reader, top, folder),
        channels=default_workspace.channels,
        agents=read_agents(reader, top),
        mcp_servers=read_mcp_servers(reader, top, folder),
        documents=tuple(folder / name for name in reader.texts(top, "documents")),
        tools=default_workspace.tools,
        models=models,
        default_model=default_model,
        origin=ConfigOrigin(file, notes=aliases.notes),
        masked_values=interpolator.masked_values,
        workspaces=others,
        expires_in=aliases.expires_in,
    )
    _check_pack_names(reader, top, settings)
    reader.finish()
    return settings


def _check_pack_names(reader: YamlReader, top: Fields, settings: Settings) -> None:
    """A name stands for one thing in an agent's `tools`: a pack, or the tools of an MCP server."""
    packs = {
        name for each in (DEFAULT_WORKSPACE, *settings.workspaces) for name in settings.for_workspace(each).own_packs()
    }
    for name, server in settings.mcp_servers.items():
        if (server.prefix or name) in packs:
            message = f'"{server.prefix or name}" is also a pack in tools: give the MCP server another prefix'
            reader.add_problem(reader.mapping(top, "mcp_servers")[name].line, message)


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise Misconfigured(f"The file cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Misconfigured("The file is not UTF-8.") from None


_REFERENCE = re.compile(r"\$(?:(\$)|\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}|(\{))")


@dataclass(slots=True)
class _Interpolator:
    """Puts the environment into `${NAME}` and `${NAME:-default}`; `$$` is a dollar sign."""

    env: Mapping[str, str]
    reader: YamlReader
    masked_values: dict[str, str] = field(default_factory=dict)

    def interpolate(self, item: YamlNode) -> YamlNode:
        match item.value:
            case dict() as members:
                return YamlNode({key: self.interpolate(inner) for key, inner in members.items()}, item.line)
            case list() as items:
                return YamlNode([self.interpolate(inner) for inner in items], item.line)
            case str(text) if "$" in text:
                return self._interpolate_text(text, item.line)
            case _:
                return item

    def _interpolate_text(self, text: str, line: int) -> YamlNode:
        value = _REFERENCE.sub(lambda found: self._value(found, line), text)
        shown = _REFERENCE.sub(lambda found: MASK if self.env.get(found[2] or "") else self._value(found, 0), text)
        if shown != value:
            self.masked_values[value] = shown
        return YamlNode(value, line, is_interpolated="${" in text)

    def _value(self, found: re.Match[str], line: int) -> str:
        dollar, name, default, broken = found.groups()
        value = self.env.get(name or "", "")
        if broken:
            self._add_problem(
                line, "${ begins a reference such as ${NAME} or ${NAME:-default}; write $${ for the text itself"
            )
        elif name and default is None and name not in self.env:
            self._add_problem(line, f"the environment has no {name}; set it, or give a default: ${{{name}:-…}}")
        return dollar or value or default or ""

    def _add_problem(self, line: int, message: str) -> None:
        if line:  # 0: the second pass over the same text
            self.reader.add_problem(line, message)


def _override(document: YamlNode, overrides: Mapping[str, object]) -> None:
    for path, value in overrides.items():
        section, _, key = path.partition(".")
        if isinstance(document.value, dict):
            part = document.value.setdefault(section, YamlNode({}, 0))
            if isinstance(part.value, dict):
                part.value[key] = YamlNode(cast(str | int, value), 0)


def _storage(reader: YamlReader, top: Fields) -> StorageSettings:
    fields, base = reader.section(top, "storage", ("url", "retention")), StorageSettings()
    url = reader.text(fields, "url", base.url)
    kept = fields.get("retention")
    if kept is None or kept.value == FOREVER:
        return StorageSettings(url, None)
    return StorageSettings(url, reader.duration(fields, "retention", 0))


def _server(reader: YamlReader, top: Fields, quotas: str) -> ServerSettings:
    fields, base = (
        reader.section(top, "server", tuple(each.name for each in dataclass_fields(ServerSettings))),
        ServerSettings(),
    )
    return ServerSettings(
        host=reader.text(fields, "host", base.host),
        port=reader.integer(fields, "port", base.port, 0, 65_535),
        public_url=reader.text(fields, "public_url"),
        oidc=_oidc(reader, fields),
        log=cast(RequestLogLevel, reader.choice(fields, "log", REQUEST_LOG_LEVELS, base.log)),
        proxies=_proxies(reader, fields),
        origins=_origins(reader, fields),
        quotas=read_quotas(reader, fields, quotas),
    )


def _oidc(reader: YamlReader, fields: Fields) -> OidcSettings | None:
    if "oidc" not in fields:
        return None
    given = reader.section(fields, "oidc", tuple(each.name for each in dataclass_fields(OidcSettings)))
    issuer = reader.text(given, "issuer").rstrip("/") if "issuer" in given else ""
    for key in ("issuer", "client_id"):
        if key not in given:
            reader.add_problem(fields["oidc"].line, f"oidc needs {key}: the provider says what it is")
    if issuer and not is_secure_url(issuer):
        reader.add_problem(given["issuer"].line, "issuer must begin with https://, or be on this machine")
    scopes = reader.texts(given, "scopes") or OidcSettings(issuer="", client_id="").scopes
    return OidcSettings(
        issuer=issuer,
        client_id=reader.text(given, "client_id"),
        client_secret=reader.text(given, "client_secret"),
        workspace=reader.text(given, "workspace", DEFAULT_WORKSPACE),
        role=reader.choice(given, "role", ("viewer", "reviewer")),
        teams_claim=reader.text(given, "teams_claim"),
        allowed_domains=tuple(domain.lower().removeprefix("@") for domain in reader.texts(given, "allowed_domains")),
        scopes=scopes if "openid" in scopes else ("openid", *scopes),
    )


def _proxies(reader: YamlReader, fields: Fields) -> tuple[str, ...]:
    for address in (addresses := reader.texts(fields, "proxies")):
        try:
            ip_network(address, strict=False)
        except ValueError:
            reader.add_problem(
                fields["proxies"].line, f'proxies: "{address}" is no address or network such as 10.0.0.0/8'
            )
    return addresses


def _origins(reader: YamlReader, fields: Fields) -> tuple[str, ...]:
    origins = reader.texts(fields, "origins")
    for each in (each for each in origins if not re.fullmatch(r"https?://[a-z0-9.:\[\]-]+", each)):
        reader.add_problem(fields["origins"].line, f'origins: "{each}" is no origin such as https://inbox.example.com')
    return origins


def _policy(reader: YamlReader, top: Fields, folder: Path) -> Path | PolicyFile | InlinePolicy | None:
    """`file` and `apply` are no keys of a policy: a section that has one of them names a file."""
    if "policy" not in top:
        return None
    value = top["policy"].value
    if isinstance(value, dict) and {"file", "apply"} & value.keys():
        fields = reader.section(top, "policy", ("file", "apply"))
        if "file" not in fields:
            reader.add_problem(top["policy"].line, "policy: apply goes with file: the path of a policy")
        always = reader.choice(fields, "apply", APPLY_MODES, "changed") == "always"
        return PolicyFile(folder / reader.text(fields, "file"), "always" if always else "changed")
    if isinstance(value, dict):
        return InlinePolicy(to_json(top["policy"]))
    return folder / reader.text(top, "policy")


def _actions(reader: YamlReader, top: Fields) -> dict[str, ActionSettings]:
    actions = {}
    for name, item in reader.mapping(top, "actions").items():
        fields = reader.fields(item, ("schema", "team", *TOOL_KEYS), "an action")
        base, schema = BUILTIN_ACTIONS.get(name, ActionSettings({})), plain_mapping(reader.mapping(fields, "schema"))
        properties = (schema or base.schema).get("properties")
        names = properties.keys() if isinstance(properties, Mapping) else None
        own = read_tool_settings(reader, fields, names, ToolSettings() if schema else base.tool)
        if isinstance(own.preview, PreviewCall):
            reader.add_problem(fields["preview"].line, "preview of an action is a text: it looks nothing up")
        actions[name] = ActionSettings(schema or base.schema, reader.text(fields, "team"), own)
    return actions


def _verification(reader: YamlReader, top: Fields) -> VerificationSettings:
    keys = ("enabled", "schema_strictness", "allow_modifications", "max_comment_length")
    fields, base = reader.section(top, "verification", keys), VerificationSettings()
    return VerificationSettings(
        reader.boolean(fields, "enabled", default=base.enabled),
        reader.choice(fields, "schema_strictness", ("strict", "lenient"), base.schema_strictness),
        reader.boolean(fields, "allow_modifications", default=base.allow_modifications),
        reader.integer(fields, "max_comment_length", base.max_comment_length, 0, MAX_COMMENT),
    )


def _escalation(reader: YamlReader, top: Fields, targets: set[str]) -> EscalationSettings:
    fields = reader.section(top, "escalation", ("auto_reject_after", "notify_on_expiry", "channel"))
    base = EscalationSettings()
    return EscalationSettings(
        reader.duration(fields, "auto_reject_after", base.auto_reject_after, 1),
        reader.boolean(fields, "notify_on_expiry", default=base.notify_on_expiry),
        read_target(reader, fields, "channel", targets) or base.channel,
    )


def _audit(reader: YamlReader, top: Fields, folder: Path) -> AuditSettings:
    name = reader.text(reader.section(top, "audit", ("signing_key",)), "signing_key")
    return AuditSettings(folder / name if name else None)


def _models(reader: YamlReader, top: Fields, env: Mapping[str, str]) -> tuple[dict[str, JsonMapping], str]:
    """The settings of each provider, and the default model for agents that name none; empty if there is none.

    A key of the environment is for the provider's own address: with an address in the file, only a key in the file
    counts.
    """
    entries = reader.mapping(top, "models")
    default_model = reader.text(entries, DEFAULT_MODEL_KEY)
    if default_model and ":" not in default_model:
        reader.add_problem(
            entries[DEFAULT_MODEL_KEY].line,
            f"{DEFAULT_MODEL_KEY} names a model with its provider, such as {DEFAULT_MODELS[0]}",
        )
    models = {name: plain_mapping(reader.mapping(entries, name)) for name in entries if name != DEFAULT_MODEL_KEY}
    elsewhere = {name for name, known in models.items() if known.get("url")}
    for variable, (name, key) in MODEL_VARIABLES.items():
        known = models.get(name, {})
        if env.get(variable) and not known.get(key) and not (key == "key" and name in elsewhere):
            models[name] = {**known, key: env[variable]}
    ready = (model for model in DEFAULT_MODELS if models.get(model.partition(":")[0], {}).get("key"))
    return models, default_model or next(ready, "")


def read_quotas(reader: YamlReader, server: Fields, override: str = "") -> QuotaSettings:
    """Read quotas; `override` is from the environment: `off` is for load tests."""
    fields, base = reader.section(server, "quotas", ("per_minute", "pending")), QuotaSettings()
    if override == "off":
        return QuotaSettings(0, 0)
    per_minute = reader.integer(fields, "per_minute", base.per_minute, 0, MAX_QUOTA)
    return QuotaSettings(per_minute, reader.integer(fields, "pending", base.pending, 0, MAX_QUOTA))


WORKSPACE_KEYS = tuple(each.name for each in dataclass_fields(WorkspaceSettings))


def read_workspaces(reader: YamlReader, top: Fields) -> dict[str, WorkspaceSettings]:
    """Workspaces other than the default one, whose sections are at the top of the file."""
    found = {}
    for name, item in reader.mapping(top, "workspaces").items():
        _check_name(reader, name, item.line)
        found[name] = read_workspace_settings(reader, reader.fields(item, WORKSPACE_KEYS, "a workspace"))
    return found


def read_workspace_settings(reader: YamlReader, fields: Fields) -> WorkspaceSettings:
    """Settings of a workspace; `fields` are its own, or those at the top of the file."""
    channels = _channels(reader, fields)
    return WorkspaceSettings(channels, _routing(reader, fields, {DASHBOARD, *channels}), read_packs(reader, fields))


def _check_name(reader: YamlReader, name: str, line: int) -> None:
    if name == DEFAULT_WORKSPACE:
        reader.add_problem(line, f"{', '.join(WORKSPACE_KEYS)} of the workspace {name} stand at the top of the file")
    try:
        check_workspace(name)
    except InvalidRequest as error:
        reader.add_problem(line, error.message)


def _routing(reader: YamlReader, top: Fields, targets: set[str]) -> RoutingSettings:
    keys = ("default_channel", "priority_map", "team_routing", "quiet_hours", "reminders")
    fields, base = reader.section(top, "routing", keys), RoutingSettings()
    priorities = reader.section(fields, "priority_map", PRIORITIES)
    teams = reader.mapping(fields, "team_routing")
    return RoutingSettings(
        read_target(reader, fields, "default_channel", targets) or base.default_channel,
        {name: _targets(reader, priorities, name, targets) for name in priorities},
        {name: _targets(reader, teams, name, targets) for name in teams},
        _quiet_hours(reader, fields),
        _reminders(reader, fields),
    )


def read_target(reader: YamlReader, fields: Fields, key: str, targets: set[str]) -> str:
    """One channel or destination; empty if there is none."""
    found = _targets(reader, fields, key, targets)
    if len(found) > 1:
        reader.add_problem(fields[key].line, f"{key} is one channel")
    return found[0] if found else ""


def _reminders(reader: YamlReader, fields: Fields) -> tuple[int, ...] | None:
    """Reminders; an empty list means none."""
    if "reminders" not in fields:
        return None
    return tuple(sorted(reader.node_duration(item, "reminders", 1) for item in reader.entries(fields, "reminders")))


def _targets(reader: YamlReader, fields: Fields, key: str, targets: set[str]) -> tuple[str, ...]:
    """Channels and destinations; whether a channel has destinations is checked when the channels are opened."""
    value = fields[key].value if key in fields else None
    items = [item.value for item in value] if isinstance(value, list) else [value]
    places = [item for item in items if isinstance(item, str) and item.startswith(DESTINATION_PREFIX)]
    return reader.texts(fields, key, {*targets, *places}, "channel")


def _quiet_hours(reader: YamlReader, fields: Fields) -> QuietHoursSettings | None:
    if "quiet_hours" not in fields:
        return None
    hours = reader.section(fields, "quiet_hours", ("from", "to", "timezone"))
    zone = reader.text(hours, "timezone", "UTC")
    for key in ("from", "to"):
        if not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", reader.text(hours, key)):
            reader.add_problem(fields["quiet_hours"].line, f"quiet_hours needs {key}: a time of day such as 22:00")
    if "from" in hours and reader.text(hours, "from") == reader.text(hours, "to"):
        reader.add_problem(fields["quiet_hours"].line, "quiet_hours begin when they end; that is never or always")
    try:
        ZoneInfo(zone)
    except (OSError, ValueError, KeyError):
        reader.add_problem(
            fields["quiet_hours"].line, f'timezone "{zone}" is not known; it is a name such as Europe/Berlin'
        )
    return QuietHoursSettings(reader.text(hours, "from"), reader.text(hours, "to"), zone)


def _channels(reader: YamlReader, top: Fields) -> dict[str, ChannelSettings]:
    channels = {}
    for name, item in reader.mapping(top, "channels").items():
        fields = reader.mapping({name: item}, name)
        if "kind" not in fields:
            reader.add_problem(item.line, f'the channel "{name}" needs a kind, such as slack, email or webhook')
        settings = plain_mapping({key: inner for key, inner in fields.items() if key != "kind"})
        channels[name] = ChannelSettings(reader.text(fields, "kind"), settings)
    return channels

"""One file and the environment, made into frozen Settings: the only reader of the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from ipaddress import ip_network
from pathlib import Path
from typing import cast

from interlock.config.agents import read_agents
from interlock.config.mcp import read_mcp_servers
from interlock.config.models import (
    APPLY_MODES,
    BUILTIN_ACTIONS,
    DASHBOARD,
    DEFAULT_MODEL_KEY,
    DEFAULT_MODELS,
    FOREVER,
    MASK,
    MODEL_VARIABLES,
    REQUEST_LOG_LEVELS,
    SECTIONS,
    ActionSettings,
    AuditSettings,
    EscalationSettings,
    InlinePolicy,
    JsonMapping,
    OidcSettings,
    PolicyFile,
    QuotaSettings,
    RequestLogLevel,
    ServerSettings,
    Settings,
    StorageSettings,
    VerificationSettings,
    is_secure_url,
)
from interlock.config.workspaces import plain_mapping, read_target, read_workspace_settings, read_workspaces
from interlock.config.yaml import Fields, YamlNode, YamlReader, read_yaml, to_json
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import Misconfigured
from interlock.core.identity import MAX_QUOTA

__all__ = ["InlinePolicy", "Settings", "agent_key", "child_environment", "fault_plan", "gate_token", "load_settings"]
__all__ += ["server_url"]

DEFAULT_FILE = "interlock.yaml"


def load_settings(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
    find: Callable[[], Path | None] = lambda: Path(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None,
) -> Settings:
    """`overrides` are from the command line, such as {"server.port": 9000}; None there means not given.

    `find` looks for a file where none is named: in the working folder, unless something else is said.
    """
    env = os.environ if environ is None else environ
    file = path or (Path(env["INTERLOCK_CONFIG"]) if env.get("INTERLOCK_CONFIG") else find())
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    if url := env.get("INTERLOCK_DATABASE_URL"):
        given = {"storage.url": url, **given}
    if key := env.get("INTERLOCK_SIGNING_KEY"):
        given = {"audit.signing_key": str(Path(key).absolute()), **given}
    try:
        return _settings(file, env, given)
    except Misconfigured as error:
        where = f"{file}: " if file else ""
        raise Misconfigured("\n".join(where + line for line in error.message.splitlines())) from None


def child_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a program that is started in somebody else's name gets: everything, but for what is ours."""
    env = os.environ if environ is None else environ
    return {name: value for name, value in env.items() if not name.startswith("INTERLOCK_")}


def agent_key(environ: Mapping[str, str] | None = None) -> str:
    """INTERLOCK_KEY: a command line can be read by everybody on the machine."""
    return (os.environ if environ is None else environ).get("INTERLOCK_KEY", "")


def gate_token(environ: Mapping[str, str] | None = None) -> str:
    """INTERLOCK_GATE_TOKEN: what clients of an MCP gate have to show."""
    return (os.environ if environ is None else environ).get("INTERLOCK_GATE_TOKEN", "")


def fault_plan(environ: Mapping[str, str] | None = None) -> str:
    """Where tests make things go wrong; empty in every real installation."""
    return (os.environ if environ is None else environ).get("INTERLOCK_FAULT", "")


def server_url(environ: Mapping[str, str] | None = None) -> str:
    """The address of a server, for a command that takes one instead of a database."""
    return (os.environ if environ is None else environ).get("INTERLOCK_URL", "")


def _settings(file: Path | None, env: Mapping[str, str], overrides: Mapping[str, object]) -> Settings:
    read = YamlReader()
    filler = _Interpolator(env, read)
    document = read_yaml(_read_text(file), read.complain) if file else None
    if document is None or document.value is None:
        document = YamlNode({}, 1)
    document = filler.fill(document)
    _override(document, overrides)
    top = read.fields(document, SECTIONS, "the configuration")
    own, others = read_workspace_settings(read, top), read_workspaces(read, top)
    targets = {DASHBOARD, *own.channels, *(name for each in others.values() for name in each.channels)}
    folder = file.parent if file else Path()
    settings = Settings(
        _storage(read, top),
        _server(read, top, env.get("INTERLOCK_QUOTAS", "")),
        _policy(read, top, folder),
        {**BUILTIN_ACTIONS, **_actions(read, top)},
        own.routing,
        _verification(read, top),
        _escalation(read, top, targets),
        _audit(read, top, folder),
        own.channels,
        read_agents(read, top),
        read_mcp_servers(read, top, folder),
        tuple(folder / name for name in read.texts(top, "documents")),
        own.tools,
        *_models(read, top, env),
        fault_plan(env),
        file,
        filler.shown,
        others,
    )
    read.finish()
    return settings


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
    read: YamlReader
    shown: dict[str, str] = field(default_factory=dict)

    def fill(self, item: YamlNode) -> YamlNode:
        match item.value:
            case dict() as members:
                return YamlNode({key: self.fill(inner) for key, inner in members.items()}, item.line)
            case list() as items:
                return YamlNode([self.fill(inner) for inner in items], item.line)
            case str(text) if "$" in text:
                return self._filled(text, item.line)
            case _:
                return item

    def _filled(self, text: str, line: int) -> YamlNode:
        value = _REFERENCE.sub(lambda found: self._value(found, line), text)
        shown = _REFERENCE.sub(lambda found: MASK if self.env.get(found[2] or "") else self._value(found, 0), text)
        if shown != value:
            self.shown[value] = shown
        return YamlNode(value, line, filled="${" in text)

    def _value(self, found: re.Match[str], line: int) -> str:
        dollar, name, default, broken = found.groups()
        value = self.env.get(name or "", "")
        if broken:
            self._complain(
                line, "${ begins a reference such as ${NAME} or ${NAME:-default}; write $${ for the text itself"
            )
        elif name and default is None and name not in self.env:
            self._complain(line, f"the environment has no {name}; set it, or give a default: ${{{name}:-…}}")
        return dollar or value or default or ""

    def _complain(self, line: int, message: str) -> None:
        if line:  # 0: the second look at the same text
            self.read.complain(line, message)


def _override(document: YamlNode, overrides: Mapping[str, object]) -> None:
    for path, value in overrides.items():
        section, _, key = path.partition(".")
        if isinstance(document.value, dict):
            part = document.value.setdefault(section, YamlNode({}, 0))
            if isinstance(part.value, dict):
                part.value[key] = YamlNode(cast(str | int, value), 0)


def _storage(read: YamlReader, top: Fields) -> StorageSettings:
    fields, base = read.section(top, "storage", ("url", "retention")), StorageSettings()
    url = read.text(fields, "url", base.url)
    kept = fields.get("retention")
    if kept is None or kept.value == FOREVER:
        return StorageSettings(url, None)
    return StorageSettings(url, read.duration(fields, "retention", 0))


def _server(read: YamlReader, top: Fields, quotas: str) -> ServerSettings:
    fields, base = (
        read.section(top, "server", tuple(each.name for each in dataclass_fields(ServerSettings))),
        ServerSettings(),
    )
    return ServerSettings(
        read.text(fields, "host", base.host),
        read.whole(fields, "port", base.port, 0, 65_535),
        read.text(fields, "public_url"),
        _oidc(read, fields),
        cast(RequestLogLevel, read.choice(fields, "log", REQUEST_LOG_LEVELS, base.log)),
        _proxies(read, fields),
        _origins(read, fields),
        read_quotas(read, fields, quotas),
    )


def _oidc(read: YamlReader, fields: Fields) -> OidcSettings | None:
    if "oidc" not in fields:
        return None
    given = read.section(fields, "oidc", tuple(each.name for each in dataclass_fields(OidcSettings)))
    issuer = read.text(given, "issuer").rstrip("/") if "issuer" in given else ""
    for key in ("issuer", "client_id"):
        if key not in given:
            read.complain(fields["oidc"].line, f"oidc needs {key}: the provider says what it is")
    if issuer and not is_secure_url(issuer):
        read.complain(given["issuer"].line, "issuer must begin with https://, or be on this machine")
    scopes = read.texts(given, "scopes") or OidcSettings("", "").scopes
    return OidcSettings(
        issuer,
        read.text(given, "client_id"),
        read.text(given, "client_secret"),
        read.text(given, "workspace", "default"),
        read.choice(given, "role", ("viewer", "reviewer")),
        read.text(given, "teams_claim"),
        tuple(domain.lower().removeprefix("@") for domain in read.texts(given, "allowed_domains")),
        scopes if "openid" in scopes else ("openid", *scopes),
    )


def _proxies(read: YamlReader, fields: Fields) -> tuple[str, ...]:
    for address in (addresses := read.texts(fields, "proxies")):
        try:
            ip_network(address, strict=False)
        except ValueError:
            read.complain(fields["proxies"].line, f'proxies: "{address}" is no address or network such as 10.0.0.0/8')
    return addresses


def _origins(read: YamlReader, fields: Fields) -> tuple[str, ...]:
    origins = read.texts(fields, "origins")
    for each in (each for each in origins if not re.fullmatch(r"https?://[a-z0-9.:\[\]-]+", each)):
        read.complain(fields["origins"].line, f'origins: "{each}" is no origin such as https://inbox.example.com')
    return origins


def _policy(read: YamlReader, top: Fields, folder: Path) -> Path | PolicyFile | InlinePolicy | None:
    """`file` and `apply` are no keys of a policy: a section that has one of them names a file."""
    if "policy" not in top:
        return None
    value = top["policy"].value
    if isinstance(value, dict) and {"file", "apply"} & value.keys():
        fields = read.section(top, "policy", ("file", "apply"))
        if "file" not in fields:
            read.complain(top["policy"].line, "policy: apply goes with file: the path of a policy")
        always = read.choice(fields, "apply", APPLY_MODES, "changed") == "always"
        return PolicyFile(folder / read.text(fields, "file"), "always" if always else "changed")
    if isinstance(value, dict):
        return InlinePolicy(to_json(top["policy"]))
    return folder / read.text(top, "policy")


def _actions(read: YamlReader, top: Fields) -> dict[str, ActionSettings]:
    actions = {}
    for name, item in read.mapping(top, "actions").items():
        fields = read.fields(item, ("schema", "team"), "an action")
        schema = plain_mapping(read.mapping(fields, "schema"))
        actions[name] = ActionSettings(
            schema or BUILTIN_ACTIONS.get(name, ActionSettings({})).schema, read.text(fields, "team")
        )
    return actions


def _verification(read: YamlReader, top: Fields) -> VerificationSettings:
    keys = ("enabled", "schema_strictness", "allow_modifications", "max_comment_length")
    fields, base = read.section(top, "verification", keys), VerificationSettings()
    return VerificationSettings(
        read.truth(fields, "enabled", default=base.enabled),
        read.choice(fields, "schema_strictness", ("strict", "lenient"), base.schema_strictness),
        read.truth(fields, "allow_modifications", default=base.allow_modifications),
        read.whole(fields, "max_comment_length", base.max_comment_length, 0, MAX_COMMENT),
    )


def _escalation(read: YamlReader, top: Fields, targets: set[str]) -> EscalationSettings:
    fields = read.section(top, "escalation", ("auto_reject_after", "notify_on_expiry", "channel"))
    base = EscalationSettings()
    return EscalationSettings(
        read.duration(fields, "auto_reject_after", base.auto_reject_after, 1),
        read.truth(fields, "notify_on_expiry", default=base.notify_on_expiry),
        read_target(read, fields, "channel", targets) or base.channel,
    )


def _audit(read: YamlReader, top: Fields, folder: Path) -> AuditSettings:
    name = read.text(read.section(top, "audit", ("signing_key",)), "signing_key")
    return AuditSettings(folder / name if name else None)


def _models(read: YamlReader, top: Fields, env: Mapping[str, str]) -> tuple[dict[str, JsonMapping], str]:
    """What each provider is to know, and the model that counts where an agent names none; empty if there is none.

    A key of the environment is for the provider's own address: one that the file names gets a key from the file alone.
    """
    entries = read.mapping(top, "models")
    wanted = read.text(entries, DEFAULT_MODEL_KEY)
    if wanted and ":" not in wanted:
        read.complain(
            entries[DEFAULT_MODEL_KEY].line,
            f"{DEFAULT_MODEL_KEY} names a model with its provider, such as {DEFAULT_MODELS[0]}",
        )
    models = {name: plain_mapping(read.mapping(entries, name)) for name in entries if name != DEFAULT_MODEL_KEY}
    elsewhere = {name for name, known in models.items() if known.get("url")}
    for variable, (name, key) in MODEL_VARIABLES.items():
        known = models.get(name, {})
        if env.get(variable) and not known.get(key) and not (key == "key" and name in elsewhere):
            models[name] = {**known, key: env[variable]}
    ready = (model for model in DEFAULT_MODELS if models.get(model.partition(":")[0], {}).get("key"))
    return models, wanted or next(ready, "")


def read_quotas(read: YamlReader, server: Fields, wanted: str = "") -> QuotaSettings:
    """`wanted` is from the environment: `off` is for load tests, which ask as fast as they can."""
    fields, base = read.section(server, "quotas", ("per_minute", "pending")), QuotaSettings()
    if wanted == "off":
        return QuotaSettings(0, 0)
    per_minute = read.whole(fields, "per_minute", base.per_minute, 0, MAX_QUOTA)
    return QuotaSettings(per_minute, read.whole(fields, "pending", base.pending, 0, MAX_QUOTA))

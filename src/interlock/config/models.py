"""Settings as frozen models, with working defaults, and masking of secrets for display."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args
from urllib.parse import urlsplit

from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.decision import MAX_COMMENT
from interlock.core.notify.routing import DASHBOARD
from interlock.runtime.durations import format_duration, parse_duration
from interlock.runtime.import_path import INSTALLED_CODE, CodeSource

MASK = "***"
FOREVER = "forever"
RESERVED_TOOL_PREFIXES = (
    "agent",
    "cms",
    "documents",
    "github",
    "http",
    "linear",
    "okr",
    "request",
)  # prefixes of built-in tools
PACK_SETTINGS: Mapping[str, tuple[str, ...]] = {  # settings of each pack under `tools`; the first one is required
    "ask_human": (),
    "cms": (),
    "documents": (),
    "github": ("token", "url"),
    "http": ("allow", "allow_private", "seconds"),
    "linear": ("key", "team", "url"),
    "okr": (),
}
MIN_REDACTED_LENGTH = 8  # characters: a shorter text cannot be told from ordinary words
OWN_PACK_KEY = "use"  # in the settings of a pack from outside: where its tools are, `module:attribute`
JsonMapping = Mapping[str, object]
DEFAULT_MODEL_KEY = "default"  # among the models: the one for agents that name none
DEFAULT_MODELS = (
    "openai:gpt-6.1-terra",
    "anthropic:claude-sonnet-5-5",
    "google:gemini-3.8-flash",
)  # chosen by the available key
MODEL_VARIABLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "OPENAI_API_KEY": ("openai", "key"),
        "OPENAI_BASE_URL": ("openai", "url"),
        "ANTHROPIC_API_KEY": ("anthropic", "key"),
        "ANTHROPIC_BASE_URL": ("anthropic", "url"),
        "GOOGLE_API_KEY": ("google", "key"),
        "GEMINI_API_KEY": ("google", "key"),
        "OLLAMA_BASE_URL": ("ollama", "url"),
    }
)
ApplyMode = Literal["changed", "always"]
APPLY_MODES: tuple[ApplyMode, ...] = get_args(ApplyMode)
RequestLogLevel = Literal["none", "problems", "requests"]
REQUEST_LOG_LEVELS: tuple[RequestLogLevel, ...] = get_args(RequestLogLevel)


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Storage; `retention` is None if everything is kept."""

    url: str = "sqlite:///interlock.db"
    retention: int | None = None

    @property
    def retention_text(self) -> str:
        """The retention as text."""
        return FOREVER if self.retention is None else format_duration(self.retention)


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """An OpenID provider. With a `role`, people who were not added can sign in too, with that role.

    With `allowed_domains`, only people with a verified e-mail address there; `teams_claim` names the claim with the
    teams.
    """

    issuer: str
    client_id: str
    client_secret: str = ""
    workspace: str = DEFAULT_WORKSPACE
    role: str = ""
    teams_claim: str = ""
    allowed_domains: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ("openid", "email", "profile")


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """Quotas for each agent key: calls recorded in a minute, and pending calls. 0 is no limit."""

    per_minute: int = 3_000
    pending: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Server; `log` is the request log, `proxies` are addresses and networks whose X-Forwarded-For is trusted.

    `origins` are other sites whose pages may send requests with a key (CORS), such as https://inbox.example.com.
    """

    host: str = "127.0.0.1"
    port: int = 8321
    public_url: str = ""
    oidc: OidcSettings | None = None
    log: RequestLogLevel = "problems"
    proxies: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    quotas: QuotaSettings = QuotaSettings()


@dataclass(frozen=True, slots=True)
class InlinePolicy:
    """A policy inside the configuration file; its text keeps the lines of that file."""

    text: str


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy file; `apply: always` puts it in force at every start, `changed` (the default) only if it is new."""

    file: Path
    apply: ApplyMode = "changed"


@dataclass(frozen=True, slots=True)
class PreviewCall:
    """A read of the same MCP server whose result is a preview; `args` are values and templates."""

    tool: str
    args: JsonMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """The operator's knowledge of an action or of a tool of an MCP server; empty is not given.

    `describe` and `preview` are templates over the arguments, as in `Delete {path}`.
    """

    describe: str = ""
    effect: str = ""
    confirm: str = ""
    secret: tuple[str, ...] = ()
    preview: str | PreviewCall = ""


@dataclass(frozen=True, slots=True)
class ActionSettings:
    schema: JsonMapping
    team: str = ""
    tool: ToolSettings = ToolSettings()


@dataclass(frozen=True, slots=True)
class QuietHoursSettings:
    start: str
    end: str
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class RoutingSettings:
    """Routing; `team_routing` maps a team or an action to channels, or to a Slack destination such as `#finance-ops`.

    Without `reminders` there is one at half time; an empty list means none.
    """

    default_channel: str = DASHBOARD
    priority_map: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    team_routing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quiet_hours: QuietHoursSettings | None = None
    reminders: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class VerificationSettings:
    enabled: bool = True
    schema_strictness: str = "strict"
    allow_modifications: bool = True
    max_comment_length: int = MAX_COMMENT


@dataclass(frozen=True, slots=True)
class EscalationSettings:
    auto_reject_after: int = parse_duration("48h")
    notify_on_expiry: bool = True
    channel: str = ""


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Audit; `signing_key` is a file outside the database: write access to the ledger must not allow signing it."""

    signing_key: Path | None = None


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    kind: str
    settings: JsonMapping = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    model: str = ""
    _: KW_ONLY
    instructions: str = ""
    tools: tuple[str, ...] = ()
    tool_approvals: Mapping[str, bool] = field(default_factory=dict)
    agents: tuple[str, ...] = ()
    limits: JsonMapping = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class McpServerSettings:
    """An MCP server: a program with its arguments, or a URL; its tools are named `<prefix>_<tool>`.

    `reads` are patterns of tools that change nothing and need no approval, `idempotent` of those that may be retried.
    `tools` has what the operator says of single tools, by their own names.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    _: KW_ONLY
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    reads: tuple[str, ...] = ()
    idempotent: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = (DEFAULT_WORKSPACE,)
    tools: Mapping[str, ToolSettings] = field(default_factory=dict)

    def redact(self, text: str) -> str:
        """A message of this server, without what it was given to sign in with."""
        secrets = {*self.headers.values(), *self.env.values(), self.url}
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= MIN_REDACTED_LENGTH:
                text = text.replace(secret, "…")
        return text


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    """The own settings of a workspace other than the default one."""

    channels: Mapping[str, ChannelSettings] = field(default_factory=dict)
    routing: RoutingSettings = RoutingSettings()
    tools: Mapping[str, JsonMapping] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigOrigin:
    """The file that the settings are from; `notes` say what was read under another name, or ignored.

    `is_named`: the file was named, by `--config` or the environment, and not only found in the working folder.
    """

    file: Path | None = None
    is_named: bool = False
    notes: tuple[str, ...] = ()

    @property
    def code_source(self) -> CodeSource:
        """Where the tools and channels are imported from that the file names."""
        return CodeSource(self.file.absolute().parent, self.is_named) if self.file else INSTALLED_CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings; `masked_values` says how to show a value from the environment.

    `default_model` is for agents that name none; it is empty if no provider has a key. `channels`, `routing`, `tools`
    and `documents` belong to the default workspace; `for_workspace` gives the settings of another one. `expires_in` is
    for policies whose defaults give none.
    """

    storage: StorageSettings = StorageSettings()
    server: ServerSettings = ServerSettings()
    policy: Path | PolicyFile | InlinePolicy | None = None
    actions: Mapping[str, ActionSettings] = field(default_factory=lambda: dict(BUILTIN_ACTIONS))
    routing: RoutingSettings = RoutingSettings()
    verification: VerificationSettings = VerificationSettings()
    escalation: EscalationSettings = EscalationSettings()
    audit: AuditSettings = AuditSettings()
    channels: Mapping[str, ChannelSettings] = field(default_factory=dict)
    agents: Mapping[str, AgentSettings] = field(default_factory=dict)
    mcp_servers: Mapping[str, McpServerSettings] = field(default_factory=dict)
    documents: tuple[Path, ...] = ()
    tools: Mapping[str, JsonMapping] = field(default_factory=dict)
    models: Mapping[str, JsonMapping] = field(default_factory=dict)
    default_model: str = ""
    origin: ConfigOrigin = ConfigOrigin()
    masked_values: Mapping[str, str] = field(default_factory=dict, repr=False)
    workspaces: Mapping[str, WorkspaceSettings] = field(default_factory=dict)
    expires_in: int | None = None

    @property
    def file(self) -> Path | None:
        return self.origin.file

    def with_trusted_code(self) -> Settings:
        """The same settings for a server or worker, which runs the configuration that it finds, its code included."""
        return replace(self, origin=replace(self.origin, is_named=True))

    def for_workspace(self, workspace: str) -> Settings:
        """The settings of one workspace, without those of any other.

        An escalation to a destination such as `#leads` is for the default workspace.
        """
        if workspace == DEFAULT_WORKSPACE:
            return self
        own, target = self.workspaces.get(workspace, WorkspaceSettings()), self.escalation.channel
        return replace(
            self,
            channels=own.channels,
            routing=own.routing,
            tools=own.tools,
            documents=(),
            mcp_servers={name: each for name, each in self.mcp_servers.items() if workspace in each.workspaces},
            escalation=replace(self.escalation, channel=target if target in own.channels else ""),
            workspaces={},
        )

    def workspaces_with_channels(self) -> frozenset[str]:
        """Names of the workspaces that have channels."""
        others = {name for name, own in self.workspaces.items() if own.channels}
        return frozenset(others | ({DEFAULT_WORKSPACE} if self.channels else set()))

    def workspaces_without_channels(self, known: Iterable[str]) -> list[str]:
        """Workspaces that only have their inbox, if any other has channels."""
        able = self.workspaces_with_channels()
        return sorted({*known, *self.workspaces} - able) if able else []

    def own_packs(self) -> dict[str, str]:
        """Where the tools of each pack from outside the package are."""
        return {name: str(own[OWN_PACK_KEY]) for name, own in self.tools.items() if OWN_PACK_KEY in own}

    def toggles(self) -> dict[str, Mapping[str, bool]]:
        return {name: agent.tool_approvals for name, agent in self.agents.items()}

    def public(self) -> dict[str, object]:
        """The effective configuration as plain data, with everything masked that could be a secret."""
        sections = {name: _plain_data(getattr(self, name)) for name in SECTIONS}
        if self.default_model:
            sections["models"] = {DEFAULT_MODEL_KEY: self.default_model, **self.models}
        masked = {name: _mask(value, name, name, self.masked_values) for name, value in sections.items()}
        return {**masked, "workspaces": {name: self.for_workspace(name)._own() for name in self.workspaces}}

    def _own(self) -> dict[str, object]:
        parts = {each.name: _plain_data(getattr(self, each.name)) for each in fields(WorkspaceSettings)}
        return {name: _mask(value, name, name, self.masked_values) for name, value in parts.items()}


def is_builtin_action(action: ActionSettings) -> bool:
    """Whether it is a built-in action that was not configured."""
    return any(action is each for each in BUILTIN_ACTIONS.values())


def is_secure_url(url: str) -> bool:
    """Whether requests to it cannot be read in transit: HTTPS, or this machine."""
    parts = urlsplit(url)
    near = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and near))


def _object_schema(required: list[str], **properties: JsonMapping) -> JsonMapping:
    return {"type": "object", "required": required, "properties": properties}


_TEXT: JsonMapping = {"type": "string", "minLength": 1}
BUILTIN_ACTIONS: Mapping[str, ActionSettings] = MappingProxyType(
    {
        "fund_transfer": ActionSettings(
            _object_schema(["amount", "recipient"], amount={"type": "number", "exclusiveMinimum": 0}, recipient=_TEXT),
            "finance",
            ToolSettings(describe="Transfer {amount} to {recipient!r}"),
        ),
        "content_publish": ActionSettings(
            _object_schema(
                ["url", "tags"], url={"type": "string", "format": "uri"}, tags={"type": "array", "items": _TEXT}
            ),
            "editorial",
            ToolSettings(describe="Publish {url!r} with the tags {tags}"),
        ),
        "config_update": ActionSettings(
            _object_schema(["key", "value"], key=_TEXT, value={}),
            "platform",
            ToolSettings(describe="Set {key!r} to {value!r}"),
        ),
    }
)


SECTIONS = (
    *("storage", "server", "policy", "actions", "routing", "verification", "escalation", "audit"),
    *("channels", "agents", "mcp_servers", "documents", "tools", "models", "workspaces"),
)
_SECRET_KEY = re.compile(r"secret|token|passw|credential|authorization|cookie|(^|[_-]|api)key$", re.IGNORECASE)
_PASSWORD = re.compile(
    r"(://[^:/?#@\s]*:)[^\s]*@|([?&][^=&]*(?:secret|token|passw|key|sig)[^=&]*=)[^&\s]*", re.IGNORECASE
)
_DEFAULT_TEXTS = {"retention": FOREVER, "reminders": "at half time"}  # shown if a setting is not given
_DURATIONS = ("retention", "auto_reject_after", "reminders")


def _plain_data(value: object) -> object:
    match value:
        case InlinePolicy():
            return "in this file"
        case Path():
            return str(value)
        case Mapping():
            return {str(name): _plain_data(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain_data(inner) for inner in value]
        case ActionSettings():  # the file has these keys beside each other
            return {"schema": _plain_data(value.schema), "team": value.team, **_given(value.tool)}
        case ToolSettings():
            return _given(value)
        case _ if is_dataclass(value):
            return {item.name: _plain_data(getattr(value, item.name)) for item in fields(value)}
        case _:
            return value


def _given(own: ToolSettings) -> dict[str, object]:
    return {item.name: _plain_data(found) for item in fields(own) if (found := getattr(own, item.name))}


def _mask(value: object, section: str, key: str, masked_values: Mapping[str, str]) -> object:
    match value:
        case dict() if section == "mcp_servers" and key in ("env", "headers"):
            return dict.fromkeys(value, MASK)  # these names do not show what is secret
        case dict():
            return {name: _mask(inner, section, name, masked_values) for name, inner in value.items()}
        case list():
            return [_mask(inner, section, key, masked_values) for inner in value]
        case int() if key in _DURATIONS:
            return format_duration(value)
        case None if key in _DEFAULT_TEXTS:
            return _DEFAULT_TEXTS[key]
        case str() if value in masked_values:
            return masked_values[value]
        case str() if value:
            return _mask_text(value, section, key)
        case _:
            return value


def is_secret_name(key: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return _SECRET_KEY.search(key) is not None


def _mask_text(value: str, section: str, key: str) -> str:
    if is_secret_name(key):
        return MASK
    scheme, separator, _ = value.partition("://")
    if separator and section == "channels":
        return f"{scheme}://{MASK}"  # the URL of a webhook is its password
    return _PASSWORD.sub(lambda found: f"{found[1]}{MASK}@" if found[1] else f"{found[2]}{MASK}", value)

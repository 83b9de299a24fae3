"""The configuration file and the environment: precedence, errors, and redaction."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.config.load import InlinePolicy, Settings, load_settings
from interlock.config.models import (
    ActionSettings,
    ChannelSettings,
    EscalationSettings,
    McpServerSettings,
    OidcSettings,
    PolicyFile,
    QuietHoursSettings,
)
from interlock.core.errors import Misconfigured
from interlock.policy.conditions import compile_condition
from interlock.policy.file import load_policy
from interlock.runtime.json_schema import check_schema, validate

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "docs" / f"{name}.md" for name in ("configuration", "agents", "models", "guides/own-tools")]
EXAMPLES = [text for page in PAGES for text in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.M | re.S)]
HOUR = 3_600_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(folder: Path, text: str, environ: Mapping[str, str] | None = None, **overrides: object) -> Settings:
    (folder / "interlock.yaml").write_text(text)
    return load_settings(None, environ or {}, {name.replace("__", "."): value for name, value in overrides.items()})


def complaints(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(Misconfigured) as caught:
        load(folder, text, environ)
    return [line.removeprefix("interlock.yaml: ") for line in caught.value.message.splitlines()]


def test_without_a_file_everything_has_a_default(folder: Path) -> None:  # R30
    settings = load_settings(None, {})
    assert settings == Settings()
    assert settings.storage.url == "sqlite:///interlock.db"
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8321)
    assert (settings.storage.retention, settings.escalation.auto_reject_after) == (None, 48 * HOUR)
    assert settings.routing.default_channel == "dashboard"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_of_the_documentation_loads(folder: Path, text: str) -> None:
    assert load(folder, text).file == Path("interlock.yaml")


def test_the_agents_of_the_example_load(folder: Path) -> None:  # R9, R30
    text = (REPOSITORY / "examples" / "08_chat_agent.yaml").read_text()
    settings = load(folder, text)
    assert settings.agents["clerk"].agents == ("writer",)
    assert settings.default_model == "demo:scripted"
    assert settings.toggles()["writer"] == {"cms_read_post": False, "cms_publish_post": True}


def test_what_is_finished_can_be_kept_for_ever(folder: Path) -> None:  # R30
    settings = load(folder, "storage: {retention: forever}")
    assert settings.storage.retention is None
    said = {"url": "sqlite:///interlock.db", "retention": "forever"}
    assert settings.public()["storage"] == load(folder, "").public()["storage"] == said
    assert load(folder, "storage: {retention: 0s}").storage.retention == 0
    assert load(folder, "storage: {retention: 30d}").public()["storage"] == {**said, "retention": "30d"}


def test_an_empty_file_is_the_defaults(folder: Path) -> None:
    assert load(folder, "# nothing\n").server.port == 8321


def test_ready_actions_are_there_and_can_be_replaced(folder: Path) -> None:  # R22
    settings = load(folder, "actions: {fund_transfer: {team: treasury}, hire: {schema: {type: object}}}")
    for action in settings.actions.values():
        check_schema(action.schema)
    transfer = settings.actions["fund_transfer"]
    assert transfer.team == "treasury"
    assert validate(transfer.schema, {"amount": 0, "recipient": "x"})
    assert not validate(transfer.schema, {"amount": 5, "recipient": "x"})
    assert settings.actions["hire"] == ActionSettings({"type": "object"})
    assert settings.actions["config_update"].team == "platform"


def test_routing_leads_to_channels_and_places(folder: Path) -> None:  # R26
    text = """\
channels: {mail: {kind: email, host: h}, pager: {kind: pagerduty}}
routing:
  default_channel: mail
  priority_map: {low: mail, high: [pager, dashboard]}
  team_routing: {finance: "#finance-ops", fund_transfer: [mail, "#money"]}
  quiet_hours: {from: 22:00, to: 07:00, timezone: Europe/Berlin}
  reminders: [2h, 5m]
escalation: {channel: pager}
"""
    settings = load(folder, text)
    routing = settings.routing
    assert routing.priority_map == {"low": ("mail",), "high": ("pager", "dashboard")}
    assert routing.team_routing == {"finance": ("#finance-ops",), "fund_transfer": ("mail", "#money")}
    assert routing.quiet_hours == QuietHoursSettings("22:00", "07:00", "Europe/Berlin")
    assert routing.reminders == (5 * 60_000, 2 * HOUR)
    assert settings.channels["mail"] == ChannelSettings("email", {"host": "h"})


def test_a_place_is_a_target_wherever_a_channel_is(folder: Path) -> None:  # R26
    text = """\
channels: {chat: {kind: slack}}
routing: {default_channel: "#all", priority_map: {high: ["#urgent", chat]}}
escalation: {channel: "#leads"}
"""
    settings = load(folder, text)
    assert (settings.routing.default_channel, settings.escalation.channel) == ("#all", "#leads")
    assert settings.routing.priority_map == {"high": ("#urgent", "chat")}


OWN_EXAMPLES = """\
channels: {chat: {kind: slack, token: "${OURS}"}, hook: {kind: webhook, url: https://hooks.example/ours}}
routing: {default_channel: chat, reminders: [5m]}
tools: {github: {token: "${OURS}"}}
documents: [handbook]
escalation: {channel: chat}
mcp_servers: {files: {command: run}, far: {command: run, workspaces: [lab]}}
workspaces:
  lab:
    channels: {chat: {kind: slack, token: "${THEIRS}"}, pager: {kind: pagerduty}}
    routing: {default_channel: pager}
    tools: {linear: {key: "${THEIRS}"}}
  bare: {}
"""
ENVIRON = {"OURS": "hunter2-ours", "THEIRS": "hunter2-theirs"}


def test_each_workspace_has_channels_routing_and_tools_of_its_own(folder: Path) -> None:  # R60
    settings = load(folder, OWN_EXAMPLES, ENVIRON)
    lab, bare, unknown = (settings.for_workspace(name) for name in ("lab", "bare", "unknown"))
    assert settings.for_workspace("default") is settings
    assert lab.channels["chat"].settings == {"token": "hunter2-theirs"}
    assert (set(lab.channels), lab.routing.default_channel) == ({"chat", "pager"}, "pager")
    assert (lab.tools, lab.documents, set(lab.mcp_servers)) == ({"linear": {"key": "hunter2-theirs"}}, (), {"far"})
    assert (lab.escalation.channel, bare.escalation.channel) == ("chat", "")
    for none in (bare, unknown):
        assert (none.channels, none.tools, none.routing.reminders) == ({}, {}, None)
    for other in (lab, bare, unknown):
        assert "hunter2-ours" not in repr((other.channels, other.tools, other.workspaces))


def test_a_target_is_a_channel_of_the_same_workspace(folder: Path) -> None:  # R60
    text = """\
channels: {chat: {kind: slack}}
routing: {default_channel: pager}
escalation: {channel: pager}
workspaces:
  lab:
    channels: {pager: {kind: pagerduty}}
    routing: {default_channel: chat}
"""
    assert complaints(folder, text) == [
        'line 2: unknown channel "pager"; it is one of chat, dashboard',
        'line 7: unknown channel "chat"; it is one of dashboard, pager',
    ]


def test_who_has_channels_and_who_has_the_inbox_only(folder: Path) -> None:  # R60
    settings = load(folder, OWN_EXAMPLES, ENVIRON)
    assert settings.workspaces_with_channels() == {"default", "lab"}
    assert settings.workspaces_without_channels(["default", "zebra"]) == ["bare", "zebra"]
    assert load(folder, "workspaces: {lab: {}}").workspaces_without_channels(["default"]) == []


def test_what_workspaces_have_is_shown_without_secrets(folder: Path) -> None:  # R60
    shown = load(
        folder,
        OWN_EXAMPLES + "    tools: {github: {token: hunter2}}\n".replace("    tools", "  kept:\n    tools"),
        ENVIRON,
    )
    public = cast(dict[str, dict[str, object]], shown.public()["workspaces"])
    assert "hunter2" not in json.dumps(shown.public())
    assert public["lab"]["channels"] == {
        "chat": {"kind": "slack", "settings": {"token": "***"}},
        "pager": {"kind": "pagerduty", "settings": {}},
    }
    assert public["kept"]["tools"] == {"github": {"token": "***"}}


def test_agents_give_their_toggles(folder: Path) -> None:  # R9
    settings = load(folder, "agents: {a: {tools: pay, tool_approvals: {pay: true}, agents: [b]}, b: {}}")
    assert settings.toggles() == {"a": {"pay": True}, "b": {}}
    assert settings.agents["a"].tools == ("pay",)


def test_agents_are_checked_line_by_line(folder: Path) -> None:  # R9, R13, R30
    text = """\
agents:
  a:
    model: gpt-5
    limits: {turns: 0, tokns: 5, time: 5}
    agents: [a, b, d]
  b: {agents: [c], limits: {turns: "${TURNS}"}}
  c: {agents: [a], limits: {tokens: 100, time: 10m}}
tools:
  linaer: {key: x}
  linear: {token: x}
"""
    assert complaints(folder, text, {"TURNS": "20"}) == [
        'line 3: model is "gpt-5"; write provider:name, such as openai:gpt-5',
        "line 4: limits.time must be a duration such as 90s or 10m, from 1s to 1d",
        "line 4: limits.turns must be a whole number from 1 to 1,000",
        'line 4: unknown key "tokns" in limits; did you mean "tokens"?',
        "line 5: a and b would call each other in a circle; take one out of the other's agents",
        "line 5: a lists itself in agents; remove it there",
        'line 5: unknown agent "d"; it is one of b, c',
        "line 6: b and c would call each other in a circle; take one out of the other's agents",
        "line 7: c and a would call each other in a circle; take one out of the other's agents",
        'line 9: unknown key "linaer" in tools; did you mean "linear"?',
        'line 10: unknown key "token" in linear; it is one of key, team, url',
    ]


# --- where values come from -------------------------------------------------------------------------------------------


def test_the_environment_fills_references(folder: Path) -> None:  # R30
    text = "server: {host: '${HOST}', port: '${PORT:-8000}', public_url: 'https://${NAME:-x}.example/$$/$5'}"
    server = load(folder, text, {"HOST": "10.0.0.1", "NAME": ""}).server
    assert (server.host, server.port, server.public_url) == ("10.0.0.1", 8000, "https://x.example/$/$5")


def test_numbers_and_truths_may_come_from_the_environment_and_secrets_stay_texts(folder: Path) -> None:
    text = "verification: {enabled: '${ON}'}\nchannels: {s: {kind: slack, token: '${TOKEN}'}}"
    settings = load(folder, text, {"ON": "false", "TOKEN": "12345"})
    assert settings.verification.enabled is False
    assert settings.channels["s"].settings == {"token": "12345"}


def test_a_reference_to_nothing_leaves_the_default(folder: Path) -> None:
    text = "server: {host: '${HOST:-}', port: '${PORT:-}'}\nchannels: {s: {kind: slack, token: '${TOKEN:-}'}}"
    settings = load(folder, text)
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8321)
    assert settings.channels["s"].settings == {"token": ""}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("server:\n  host: ${HOST}", "line 2: the environment has no HOST; set it, or give a default: ${HOST:-…}"),
        ("server:\n  host: ${HOST", "line 2: ${ begins a reference"),
        ("server:\n  host: '${}'", "line 2: ${ begins a reference"),
        (
            "server: {port: '${PORT}'}",
            "line 1: port must be a whole number from 0 to 65535, not what the environment holds",
        ),
    ],
)
def test_a_broken_reference_is_a_complaint(folder: Path, text: str, words: str) -> None:
    found = complaints(folder, text, {"PORT": "hunter2"})
    assert len(found) == 1
    assert found[0].startswith(words)


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(folder: Path) -> None:
    text, environ = "storage: {url: 'sqlite:///file.db'}", {"INTERLOCK_DATABASE_URL": "sqlite:///env.db"}
    assert load(folder, text).storage.url == "sqlite:///file.db"
    assert load(folder, text, environ).storage.url == "sqlite:///env.db"
    assert load(folder, text, environ, storage__url="sqlite:///flag.db").storage.url == "sqlite:///flag.db"
    assert load(folder, text, environ, storage__url=None, server__port=9).storage.url == "sqlite:///env.db"


def test_overrides_are_checked_like_the_file(folder: Path) -> None:
    with pytest.raises(Misconfigured, match="port must be a whole number from 0 to 65535, not 70000"):
        load(folder, "", None, server__port=70_000)
    with pytest.raises(Misconfigured, match="did you mean"):
        load(folder, "", None, server__prot=1)


def test_the_file_is_the_named_one_or_that_of_the_working_folder(folder: Path) -> None:
    (folder / "other.yaml").write_text("server: {port: 1}")
    (folder / "interlock.yaml").write_text("server: {port: 2}")
    assert load_settings(None, {}).server.port == 2
    assert load_settings(None, {"INTERLOCK_CONFIG": "other.yaml"}).server.port == 1
    assert load_settings(Path("other.yaml"), {"INTERLOCK_CONFIG": "interlock.yaml"}).server.port == 1


def test_a_file_that_cannot_be_read_is_refused(folder: Path) -> None:
    with pytest.raises(Misconfigured, match=r"missing.yaml: The file cannot be read: No such file"):
        load_settings(Path("missing.yaml"), {})
    (folder / "bad.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(Misconfigured, match="not UTF-8"):
        load_settings(Path("bad.yaml"), {})


def test_paths_count_from_the_folder_of_the_file(folder: Path) -> None:
    (folder / "conf").mkdir()
    (folder / "conf" / "x.yaml").write_text("policy: policy.yaml\ndocuments: [handbook]")
    settings = load_settings(Path("conf/x.yaml"), {})
    assert (settings.policy, settings.documents) == (Path("conf/policy.yaml"), (Path("conf/handbook"),))


def test_a_policy_file_may_say_when_it_is_applied(folder: Path) -> None:
    assert load(folder, "policy: {file: p.yaml}").policy == PolicyFile(Path("p.yaml"), "changed")
    assert load(folder, "policy: {file: p.yaml, apply: always}").policy == PolicyFile(Path("p.yaml"), "always")
    assert load(folder, "policy: {file: p.yaml, apply: always}").public()["policy"] == {
        "file": "p.yaml",
        "apply": "always",
    }
    with pytest.raises(Misconfigured, match="apply"):
        load(folder, "policy: {file: p.yaml, apply: never}")
    with pytest.raises(Misconfigured, match="apply goes with file"):
        load(folder, "policy: {apply: always}")
    with pytest.raises(Misconfigured, match="rules"):
        load(folder, "policy: {file: p.yaml, rules: []}")


def test_a_policy_in_the_file_keeps_its_lines(folder: Path) -> None:
    text = """\
server: {port: 1}
policy:
  rules:
    - name: money
      tools: [pay]
      then: deny
      reason: Ask ${BOSS}.

    - name: more
      then: ask
      qourum: 2
"""
    found = load(folder, text, {"BOSS": "ann"}).policy
    assert isinstance(found, InlinePolicy)
    with pytest.raises(Misconfigured, match='line 11: unknown key "qourum"'):
        load_policy(found.text, compile_condition)
    loaded = load_policy(found.text.replace("qourum", "quorum"), compile_condition)
    assert loaded.rule_lines == {"money": 4, "more": 9}
    assert loaded.policy.rules[0].reason == "Ask ann."


# --- what is refused --------------------------------------------------------------------------------------------------


def test_all_mistakes_are_listed_with_lines_and_the_nearest_right_name(folder: Path) -> None:  # R30
    text = """\
storrage: {}
server:
  prot: 80
storage:
  retention: 24
routing:
  default_channel: slak
channels:
  slack: {}
agents:
  a: {agents: [bb]}
  b: {tool_approvals: {pay: "yes"}}
mcp_servers:
  files: {}
verification: {max_comment_length: 501}
"""
    assert complaints(folder, text) == [
        'line 1: unknown key "storrage" in the configuration; did you mean "storage"?',
        'line 3: unknown key "prot" in server; did you mean "port"?',
        "line 5: retention is 24 without a unit; write 24s if seconds are meant",
        'line 7: unknown channel "slak"; did you mean "slack"?',
        'line 9: the channel "slack" needs a kind, such as slack, email or webhook',
        'line 11: unknown agent "bb"; did you mean "b"?',
        'line 12: pay must be true or false, not the text "yes"',
        'line 14: the MCP server "files" needs a command or a url, and not both',
        "line 15: max_comment_length must be a whole number from 0 to 500, not 501",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("server: 5", "server must be a mapping of keys to values, not 5"),
        ("[]", "the configuration must be a mapping"),
        ("routing: {quiet_hours: {from: 22, to: 07:00}}", "quiet_hours needs from: a time of day such as 22:00"),
        (
            "routing: {quiet_hours: {from: 22:00, to: 07:00, timezone: Mars/Phobos}}",
            'timezone "Mars/Phobos" is not known',
        ),
        ("routing: {priority_map: {urgent: dashboard}}", 'unknown key "urgent" in priority_map'),
        ("routing: {team_routing: {finance: slack}}", 'unknown channel "slack"'),
        ("escalation: {channel: pager}", 'unknown channel "pager"'),
        ("escalation: {channel: ['#a', '#b']}", "channel is one channel"),
        ("escalation: {channel: [{}]}", "channel must be"),
        ("routing: {default_channel: dashbord}", 'unknown channel "dashbord"; did you mean "dashboard"?'),
        ("routing: {quiet_hours: {from: 22:00, to: 22:00}}", "quiet_hours begin when they end"),
        ("actions: {hire: {shema: {}}}", 'unknown key "shema" in an action; did you mean "schema"?'),
        ("server: {oidc: {issuer: https://id.example}}", "oidc needs client_id"),
        ("server: {oidc: {issuer: http://id.example, client_id: x}}", "issuer must begin with https://"),
        ("server: {oidc: {isuer: https://id.example, client_id: x}}", 'did you mean "issuer"?'),
        ("server: {oidc: {issuer: https://id.example, client_id: x, role: admin}}", 'role is "admin"'),
        ("mcp_servers: {f: {comand: x}}", 'unknown key "comand" in an MCP server; did you mean "command"?'),
        ("mcp_servers: {f: {command: x, url: https://x.example}}", "needs a command or a url, and not both"),
        ("mcp_servers: {f: {url: 'http://['}}", "url must begin with https:// or http://"),
        ("mcp_servers: {f: {url: files.example}}", "url must begin with https:// or http://"),
        ("mcp_servers: {f: {command: x, headers: {a: b}}}", "headers does not go with a command"),
        ("mcp_servers: {f: {url: https://x.example, args: [a]}}", "args does not go with a url"),
        ("mcp_servers: {f: {command: x, args: [[a]]}}", "args must be a text, not a list"),
        ("mcp_servers: {f: {command: x, env: {A: [b]}}}", "A must be a text, not a list"),
        ("mcp_servers: {cms: {command: x}}", 'tools named cms_… are Interlock\'s own: give "cms" a prefix of its own'),
        ("mcp_servers: {my files: {command: x}}", '"my files" cannot begin the name of a tool'),
        ("server: {port: 1, port: 2}", 'the key "port" appears twice'),
        ("workspaces: {lab: {chanels: {}}}", 'unknown key "chanels" in a workspace; did you mean "channels"?'),
        (
            "workspaces: {lab: {agents: {}}}",
            'unknown key "agents" in a workspace; it is one of channels, routing, tools',
        ),
        ("workspaces: {lab: 5}", "a workspace must be a mapping of keys to values, not 5"),
        ("workspaces: {default: {}}", "channels, routing, tools of the workspace default stand at the top of the file"),
        ("workspaces: {My Lab: {}}", '"My Lab" cannot be a workspace'),
        ("workspaces: {lab: {tools: {githb: {token: x}}}}", 'unknown key "githb" in tools; did you mean "github"?'),
        ("workspaces: {lab: {channels: {hook: {}}}}", 'the channel "hook" needs a kind'),
    ],
)
def test_what_is_wrong_is_refused(folder: Path, text: str, words: str) -> None:
    assert words in "\n".join(complaints(folder, text))


def test_a_provider_has_all_that_is_said_of_it(folder: Path) -> None:
    text = """\
server:
  oidc:
    issuer: https://id.example/
    client_id: interlock
    client_secret: "${SECRET}"
    role: viewer
    teams_claim: groups
    allowed_domains: ["@Example.com", example.org]
    scopes: [email]
"""
    oidc = load(folder, text, {"SECRET": "hunter2"}).server.oidc
    domains = ("example.com", "example.org")
    scopes = ("openid", "email")
    assert oidc == OidcSettings(
        issuer="https://id.example",
        client_id="interlock",
        client_secret="hunter2",
        workspace="default",
        role="viewer",
        teams_claim="groups",
        allowed_domains=domains,
        scopes=scopes,
    )


def test_an_mcp_server_has_all_that_is_said_of_it(folder: Path) -> None:  # R54
    text = """\
mcp_servers:
  files:
    command: files-server
    args: [--root, .]
    env: {TOKEN: "${TOKEN}", LEVEL: 3, EMPTY: ""}
    cwd: work
    reads: [read_*, list_*]
    idempotent: read_*
  cms: {url: https://cms.example/mcp, headers: {Authorization: "Bearer ${TOKEN}"}, prefix: site, workspaces: [web]}
"""
    servers = load(folder, text, {"TOKEN": "hunter2"}).mcp_servers
    env = {"TOKEN": "hunter2", "LEVEL": "3", "EMPTY": ""}
    assert servers == {
        "files": McpServerSettings(
            "files-server",
            ("--root", "."),
            env=env,
            cwd=str(folder / "work"),
            reads=("read_*", "list_*"),
            idempotent=("read_*",),
        ),
        "cms": McpServerSettings(
            url="https://cms.example/mcp",
            headers={"Authorization": "Bearer hunter2"},
            prefix="site",
            workspaces=("web",),
        ),
    }


# --- what may be shown ------------------------------------------------------------------------------------------------


def test_the_effective_configuration_is_shown_without_secrets(folder: Path) -> None:
    text = """\
storage: {url: 'postgresql://app:hunter2@db.example/x'}
server: {oidc: {issuer: https://id.example, client_id: interlock, client_secret: hunter2}}
channels:
  slack: {kind: slack, token: hunter2, room: "${ROOM}"}
  hook: {kind: webhook, url: https://hooks.example/services/hunter2}
mcp_servers:
  files: {url: "https://mcp.example/?api_key=hunter2", headers: {Authorization: Bearer hunter2}}
  shell: {command: run, env: {GITHUB_TOKEN: hunter2, LEVEL: "pre-${LEVEL}", MODE: "${MODE:-plain}"}}
agents: {a: {limits: {tokens: 5}}}
policy: {rules: []}
"""
    settings = load(folder, text, {"ROOM": "hunter2", "LEVEL": "hunter2"})
    shown = settings.public()
    assert "hunter2" not in json.dumps(shown)
    assert "hunter2" not in repr(settings.masked_values.values())
    assert shown["storage"] == {"url": "postgresql://app:***@db.example/x", "retention": "forever"}
    assert shown["channels"] == {
        "slack": {"kind": "slack", "settings": {"token": "***", "room": "***"}},
        "hook": {"kind": "webhook", "settings": {"url": "https://***"}},
    }
    servers = cast(dict[str, dict[str, object]], shown["mcp_servers"])
    assert servers["files"]["url"] == "https://mcp.example/?api_key=***"
    assert servers["files"]["headers"] == {"Authorization": "***"}
    assert servers["shell"]["env"] == {"GITHUB_TOKEN": "***", "LEVEL": "***", "MODE": "***"}
    assert shown["policy"] == "in this file"
    assert cast(dict[str, dict[str, object]], shown["agents"])["a"]["limits"] == {"tokens": 5}  # no secret


def test_what_is_shown_is_plain_data(folder: Path) -> None:
    shown = load(folder, EXAMPLES[0]).public()
    assert json.loads(json.dumps(shown)) == shown
    assert set(shown) >= {"storage", "server", "policy", "actions", "routing", "verification", "escalation", "channels"}


SECTIONS = st.sampled_from(("storage", "server", "policy", "actions", "routing", "channels", "agents", "kind", "url"))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.sampled_from(["${X}", "$", "${", "5m"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(SECTIONS, inner, max_size=3)),
    max_leaves=15,
)


@given(value=st.dictionaries(SECTIONS, VALUES, max_size=4))
def test_any_structure_is_a_configuration_or_misconfigured(
    value: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_text(json.dumps(value))
    try:
        shown = load_settings(file, {"X": "hidden"}).public()
    except Misconfigured as error:
        shown = error.to_json()
    assert json.dumps(shown)


def test_what_the_server_logs_and_whom_it_believes_can_be_set(tmp_path: Path) -> None:
    file = tmp_path / "interlock.yaml"
    file.write_text("server: {log: requests, proxies: [127.0.0.1, 10.0.0.0/8]}")
    server = load_settings(file, {}).server
    assert (server.log, server.proxies) == ("requests", ("127.0.0.1", "10.0.0.0/8"))
    file.write_text("server: {log: everything, proxies: [proxy.example]}")
    with pytest.raises(Misconfigured) as result:
        load_settings(file, {})
    assert 'log is "everything"; it is one of none, problems, requests' in result.value.message
    assert '"proxy.example" is no address or network such as 10.0.0.0/8' in result.value.message


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "null",
        "inbox.example.com",
        "https://inbox.example.com/",
        "https://Inbox.example.com",
        "https://a@b",
        "ftp://a",
    ],
)
def test_other_sites_are_named_by_their_origins(tmp_path: Path, origin: str) -> None:
    file = tmp_path / "interlock.yaml"
    file.write_text("server: {origins: ['https://inbox.example.com', 'http://localhost:3000', 'http://[::1]:3000']}")
    assert load_settings(file, {}).server.origins[1:] == ("http://localhost:3000", "http://[::1]:3000")
    file.write_text(f"server: {{origins: ['{origin}']}}")
    with pytest.raises(Misconfigured, match="is no origin such as"):
        load_settings(file, {})


TEMPLATE = """
approval_engine:
  storage:
    type: Postgres
    connection_string: ${DB_URL}
    table: approval_requests
    ttl_hours: 72
  escalation:
    auto_reject_after_hours: 1.5
    notify_on_expiry: false
    escalation_channel: pager
channels:
  pager: {kind: pagerduty}
"""
DB_URL = "postgresql://ada:hunter2@db/approvals"


def test_the_approval_engine_template_is_read_as_our_own_settings(folder: Path) -> None:  # R30
    settings = load(folder, TEMPLATE, {"DB_URL": DB_URL})
    assert settings.storage.url == DB_URL
    assert settings.escalation == EscalationSettings(90 * 60_000, notify_on_expiry=False, channel="pager")
    assert settings.expires_in == 72 * HOUR
    assert [note.partition(":")[0] for note in settings.origin.notes] == [
        f"line {line}" for line in (2, 5, 6, 7, 9, 11)
    ]
    assert "storage.table is ignored" in settings.origin.notes[2]
    assert "hunter2" not in json.dumps([settings.public(), settings.origin.notes])


@pytest.mark.parametrize(("own", "pending"), [("", 72 * HOUR), ("defaults: {expires_in: {chat: 5m}}", 72 * HOUR)])
def test_ttl_hours_is_the_deadline_of_policies_that_give_none(own: str, pending: int) -> None:  # R5, R30
    policy = load_policy(own, compile_condition, expires_in=72 * HOUR).policy
    assert policy.defaults.expires_in == {"chat": 5 * 60_000 if own else pending, "queue": pending, "paused": pending}


@pytest.mark.parametrize(
    "text",
    [
        "storage: {type: sqlite}",
        "storage: {type: sqlite, connection_string: sqlite:///interlock.db, url: sqlite:///interlock.db}",
        "storage: {url: sqlite:///interlock.db}\napproval_engine: {storage: {url: sqlite:///interlock.db}}",
        "storage: {type: '${NONE:-}', connection_string: '${NONE:-}'}",
        "escalation: {auto_reject_after: 48h, auto_reject_after_hours: 48}",
        "storage: {ttl_hours: '${HOURS:-0.5}'}\npolicy: {defaults: {expires_in: 30m}}",
    ],
)
def test_a_setting_may_be_given_in_both_spellings_with_one_value(folder: Path, text: str) -> None:
    settings = load(folder, text)
    assert (settings.storage.url, settings.escalation.auto_reject_after) == ("sqlite:///interlock.db", 48 * HOUR)


def test_a_database_named_outside_of_the_file_replaces_that_of_the_template(folder: Path) -> None:
    assert load(folder, "storage: {type: postgres}", storage__url="sqlite:///own.db").storage.url == "sqlite:///own.db"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("storage: {type: redis}", "line 1: storage.type is one of sqlite and postgresql; nothing else is supported"),
        ("storage: {type: 5}", "line 1: storage.type is one of"),
        ("storage: {type: postgres}", "line 1: storage.type is postgresql: give its connection_string, postgresql://…"),
        (
            "storage:\n  type: sqlite\n  connection_string: postgresql://ada:hunter2@db/x",
            "line 2: storage.type is sqlite, but the address on line 3 does not begin with sqlite:///",
        ),
        ("storage: {type: postgres, url: host=db password=hunter2}", "does not begin with postgresql://"),
        ("storage: {connection_string: 5}", "line 1: url must be a text, not 5"),
        (
            "storage:\n  url: sqlite:///a.db\n  connection_string: sqlite:///b.db",
            "line 3: storage.connection_string and storage.url (line 2) are the same setting with two values",
        ),
        (
            "approval_engine:\n  storage: {url: sqlite:///b.db}\nstorage: {url: sqlite:///a.db}",
            "line 2: approval_engine.storage.url and storage.url (line 3) are the same setting with two values",
        ),
        (
            "approval_engine:\n  documents: [a]\ndocuments: [b]",
            "line 2: approval_engine.documents and documents (line 3) are the same setting with two values",
        ),
        (
            "escalation:\n  auto_reject_after: 2h\n  auto_reject_after_hours: 3",
            "line 3: escalation.auto_reject_after_hours and escalation.auto_reject_after (line 2) are the same",
        ),
        (
            "escalation: {channel: dashboard, escalation_channel: '#ops'}",
            "escalation.escalation_channel and escalation.channel (line 1) are the same setting with two values",
        ),
        (
            "storage: {ttl_hours: 2}\npolicy: {defaults: {expires_in: {chat: 2h}}}",
            "line 1: storage.ttl_hours and defaults.expires_in of the policy (line 2) are the same setting",
        ),
        ("storage: {ttl_hours: 2}\npolicy: {defaults: {expires_in: soon}}", "are the same setting with two values"),
        *(
            (
                f"storage: {{ttl_hours: {wrong}}}",
                "line 1: ttl_hours must be a number of hours above 0 and at most 87,600",
            )
            for wrong in ("0", "-1", "0.0001", "87601", "true", "'72'", "72h", "[1]")
        ),
        (
            "escalation: {auto_reject_after_hours: 0}",
            "line 1: auto_reject_after_hours must be a number of hours above 0",
        ),
        ("storage: {ttl_hours: }", "line 1: storage.ttl_hours is empty; give it a value or remove the key"),
        ("approval_engine: ", "line 1: approval_engine is empty; give it a value or remove the key"),
        ("approval_engine: 5", "line 1: approval_engine must be a mapping of sections"),
        ("approval_engine: {stroage: {}}", 'unknown key "stroage" in the configuration; did you mean "storage"?'),
        ("storage: {tabel: x}", 'unknown key "tabel" in storage'),
        ("escalation: {escalation_channel: pagre}", 'unknown channel "pagre"'),
    ],
)
def test_a_template_that_cannot_be_meant_is_refused(folder: Path, text: str, words: str) -> None:  # R30
    said = complaints(folder, text)
    assert words in said[0]
    assert "hunter2" not in said[0]


def test_without_a_key_there_is_no_default_model(folder: Path) -> None:
    assert load(folder, "models: {ollama: {url: 'http://127.0.0.1:11434/v1'}}").default_model == ""
    assert load_settings(None, {"OLLAMA_BASE_URL": "http://127.0.0.1:11434/v1"}).default_model == ""


@pytest.mark.parametrize(
    ("environ", "model"),
    [
        ({"OPENAI_API_KEY": "hunter2"}, "openai:gpt-6.1-terra"),
        ({"ANTHROPIC_API_KEY": "hunter2"}, "anthropic:claude-sonnet-5-5"),
        ({"GEMINI_API_KEY": "hunter2"}, "google:gemini-3.8-flash"),
        ({"GOOGLE_API_KEY": "hunter2", "OPENAI_API_KEY": "hunter2"}, "openai:gpt-6.1-terra"),
    ],
)
def test_a_key_in_the_environment_makes_a_model_ready_and_is_not_shown(
    folder: Path, environ: dict[str, str], model: str
) -> None:
    settings = load_settings(None, environ)
    assert settings.default_model == model
    assert settings.models[model.partition(":")[0]]["key"] == "hunter2"
    shown = cast(dict[str, object], settings.public()["models"])
    assert shown["default"] == model
    assert "hunter2" not in json.dumps(shown)
    assert list(folder.iterdir()) == []


def test_the_file_wins_over_the_environment(folder: Path) -> None:
    text = "models: {default: 'anthropic:claude-opus-5-5', openai: {key: own}}"
    settings = load(folder, text, {"OPENAI_API_KEY": "other", "OPENAI_BASE_URL": "https://proxy.example/v1"})
    assert settings.default_model == "anthropic:claude-opus-5-5"
    assert settings.models["openai"] == {"key": "own", "url": "https://proxy.example/v1"}
    assert "default" not in settings.models


def test_a_key_of_the_environment_is_not_sent_to_another_address(folder: Path) -> None:
    environ = {"OPENAI_API_KEY": "hunter2"}
    elsewhere = load(folder, "models: {openai: {url: 'http://127.0.0.1:8000/v1'}}", environ)
    assert "key" not in elsewhere.models["openai"]
    wanted = load(folder, "models: {openai: {url: 'https://p.example/v1', key: '${OPENAI_API_KEY}'}}", environ)
    assert wanted.models["openai"]["key"] == "hunter2"
    assert "hunter2" not in json.dumps(wanted.public())


def test_a_default_model_has_its_provider(folder: Path) -> None:
    assert complaints(folder, "models: {default: gpt-5}") == [
        "line 1: default names a model with its provider, such as openai:gpt-6.1-terra"
    ]

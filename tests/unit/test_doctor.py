"""Checks of the doctor: channels, agents, models, tools, MCP servers, documents and the server's settings."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from interlock.app.bootstrap import build_gate_and_inbox, build_services, known_names
from interlock.app.workspaces import Workspaces
from interlock.chat.assistant import build_assistant, build_chat_components
from interlock.cli.doctor import check_channels, check_chat, check_other_workspaces, check_server, is_local
from interlock.config.load import load_settings
from interlock.config.models import (
    AgentSettings,
    ChannelSettings,
    EscalationSettings,
    McpServerSettings,
    OidcSettings,
    RoutingSettings,
    ServerSettings,
    Settings,
    StorageSettings,
    WorkspaceSettings,
)
from interlock.core.errors import Misconfigured
from interlock.core.notify.delivery import DeliveryTarget, make_test_delivery
from interlock.core.policy.policy import Policy
from interlock.core.ports import AgentVersion, User
from interlock.notify.service import NotificationService, build_notification_service
from interlock.notify.workspace_channels import policy_load_options
from interlock.policy.conditions import compile_condition
from interlock.policy.file import load_policy
from interlock.server.logs import JsonLogger
from interlock.storage.engine.metrics import CheckResult

CHANNEL_SECRET = "xoxb-never-shown"
SLACK = ChannelSettings("slack", {"token": CHANNEL_SECRET, "signing_secret": "s" * 32})
PAGER = ChannelSettings("pagerduty", {"routing_key": "k" * 32, "priorities": ["high"]})
PEOPLE = [
    User("ada", "admin", teams=frozenset({"finance", "legal"})),
    User("eve", "viewer", teams=frozenset({"gone"}), removed_at=1),
]
POLICY_WITH_ROUTES = Settings(
    channels={"chat": SLACK, "pager": PAGER, "spare": PAGER},
    routing=RoutingSettings("chat", {"high": ("pager", "#urgent")}, {"finance": ("#finance-ops",)}),
    escalation=EscalationSettings(channel="pager"),
)


async def check_results(settings: Settings, policy: str = "", people: list[User] = PEOPLE) -> list[CheckResult]:
    loaded = load_policy(policy, compile_condition).policy if policy else Policy()
    return [line async for line in check_channels(settings, people, loaded)]


async def test_the_page_alone_is_enough() -> None:
    assert [(line.state, line.found) for line in await check_results(Settings(), people=[])] == [
        ("ok", "none: approvals only appear in the web app"),
        ("ok", "low to dashboard; medium to dashboard; high to dashboard"),
    ]


async def test_each_channel_is_listed_with_its_routes() -> None:  # R26
    lines = await check_results(POLICY_WITH_ROUTES)
    places = "finance (#finance-ops); fund_transfer (#finance-ops)"
    assert [(line.state, line.found) for line in lines] == [
        ("ok", f"chat (slack): everything else; the priority high (#urgent); {places}"),
        ("ok", "pager (pagerduty): the priority high; escalation"),
        ("warn", "spare (pagerduty): nothing is routed to it"),
        ("ok", "low to chat; medium to chat; high to pager and #urgent"),
        ("ok", "every team is reached: finance at #finance-ops; by priority: legal"),
    ]
    assert CHANNEL_SECRET not in str(lines)


async def test_rules_lead_to_channels_too() -> None:
    policy = """
version: 1
defaults: {escalate: [{after: 1m, channels: [spare]}]}
rules:
  - {name: wire, tools: [pay], then: ask, channels: [pager], escalate: [{after: 1m, channels: [chat, spare]}]}
  - {name: urgent, then: ask, priority: high, channels: [pager]}
"""
    lines = [
        line
        for line in await check_results(POLICY_WITH_ROUTES, policy)
        if line.state == "warn" or "spare" in line.found
    ]
    spare = "escalation by the rule wire; escalation by the rule urgent; escalation by the policy"
    assert [(line.state, line.found) for line in lines] == [
        ("ok", f"spare (pagerduty): {spare}"),
        ("warn", "no channel of the rule wire accepts the priority low, medium"),
    ]


MAIL = ChannelSettings("email", {"host": "smtp.example.com", "from": "interlock@example.com"})


async def test_who_may_decide_and_has_no_address_is_named_where_mails_are_sent() -> None:  # R26
    people = [User(f"p{number:02}", "reviewer") for number in range(12)] + [User("vic", "viewer")]
    mailed = Settings(channels={"mail": MAIL}, routing=RoutingSettings("mail"))
    [warning] = [line for line in await check_results(mailed, people=people) if line.state == "warn"]
    assert warning.found.startswith("p00, p01, ")
    assert warning.found.endswith("p09 and 2 more may decide but cannot be notified through mail")
    reached = [User("ada", "admin", email="ada@example.com"), User("vic", "viewer")]
    assert {line.state for line in await check_results(mailed, people=reached)} == {"ok"}
    assert {line.state for line in await check_results(Settings(), people=people)} == {"ok"}


async def test_an_invalid_channel_is_reported_first() -> None:
    wrong = Settings(channels={"chat": ChannelSettings("slack", {"tokn": "x"}), "pager": PAGER})
    lines = await check_results(wrong)
    assert [(line.state, 'There is no setting "tokn"'.lower() in line.found.lower()) for line in lines] == [
        ("fail", True)
    ]


DOCS = Path(__file__).parents[2] / "docs" / "channels" / "routing.md"


async def test_the_doctor_accepts_the_examples_of_the_page(tmp_path: Path) -> None:  # R30
    config, policy = re.findall(r"^```yaml\n(.*?)^```$", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "interlock.yaml").write_text(config)
    environ = {"SLACK_TOKEN": CHANNEL_SECRET, "SLACK_SECRET": "s" * 32, "PAGERDUTY_KEY": "k" * 32}
    settings = load_settings(tmp_path / "interlock.yaml", environ)
    loaded = load_policy(policy, compile_condition, known_names([], policy_load_options(settings)))
    assert loaded.warnings == ()
    ada = User("ada", "admin", teams=frozenset({"finance"}), email="ada@example.com")
    lines = [line async for line in check_channels(settings, [ada], loaded.policy)]
    assert [line for line in lines if line.state != "ok"] == []
    assert "pager (pagerduty): the priority high; escalation by the rule transfers climb" in [x.found for x in lines]


NO_CHANNELS = Settings(channels={"pager": PAGER}, routing=RoutingSettings("pager"))


async def test_a_route_that_reaches_nobody_fails() -> None:  # R26
    fails = [line.found for line in await check_results(NO_CHANNELS) if line.state == "fail"]
    assert fails == ["no channel of pager takes the priority low", "no channel of pager takes the priority medium"]


def notification_service(folder: Path, settings: Settings) -> NotificationService:
    store = build_services(f"sqlite:///{folder / 'never-opened.db'}").store
    opened = Workspaces(store, lambda policy: build_gate_and_inbox(store, policy), {}, policy_load_options(settings))
    return build_notification_service(settings, store, opened, JsonLogger(store.clock, "none", lambda _: None))


def test_nothing_starts_while_some_calls_would_reach_nobody(tmp_path: Path) -> None:  # R26
    with pytest.raises(Misconfigured, match="would notify nobody: no channel of pager takes the priority low"):
        notification_service(tmp_path, NO_CHANNELS)
    assert set(notification_service(tmp_path, POLICY_WITH_ROUTES).channels) == {"chat", "pager", "spare"}


def test_an_unknown_kind_is_reported_with_its_channel() -> None:
    with pytest.raises(Misconfigured, match='The channel "chat": unknown kind of channel "slak"; did you mean "slack"'):
        policy_load_options(Settings(channels={"chat": ChannelSettings("slak")}))


HOOK = ChannelSettings("webhook", {"url": "https://hooks.example/x", "secret": f"whsec_{'A' * 44}"})
TWO_WORKSPACES = Settings(
    channels={"pager": SLACK},
    routing=RoutingSettings("pager"),
    escalation=EscalationSettings(channel="pager"),
    workspaces={"lab": WorkspaceSettings({"hook": HOOK}, RoutingSettings("hook")), "bare": WorkspaceSettings()},
)


async def other_workspace_results(settings: Settings, known: list[str] | None = None) -> list[tuple[str, str]]:
    return [(line.state, line.found) async for line in check_other_workspaces(settings, "default", known)]


async def test_the_doctor_names_workspaces_that_have_their_inbox_only() -> None:  # R60
    assert await other_workspace_results(TWO_WORKSPACES, ["default", "lab", "bare", "zebra"]) == [
        ("ok", "lab is notified through hook"),
        ("warn", "bare has no channels: approvals only appear in the web app"),
        ("warn", "zebra has no channels: approvals only appear in the web app"),
        ("warn", "escalation.channel is pager, which lab does not have"),
    ]
    assert await other_workspace_results(Settings(), ["default", "zebra"]) == [], (
        "nobody has channels, and nobody misses them"
    )


async def test_the_doctor_names_a_workspace_that_is_not_there() -> None:  # R60
    assert ("warn", 'lab is configured but does not exist; did you mean "labs"?') in await other_workspace_results(
        TWO_WORKSPACES, ["labs"]
    )
    assert not any("not there" in found for _, found in await other_workspace_results(TWO_WORKSPACES))


async def test_the_doctor_names_channels_of_two_workspaces_with_one_secret() -> None:  # R60
    more = {"url": "https://hooks.example/x", "secrets": [f"whsec_{'B' * 44}", HOOK.settings["secret"]]}
    both = Settings(
        channels={"h": HOOK, "i": HOOK}, workspaces={"lab": WorkspaceSettings({"k": ChannelSettings("webhook", more)})}
    )
    found = await other_workspace_results(both)
    assert found[-1] == ("warn", "default/h, default/i, lab/k have the same secret")
    assert "whsec" not in str(found)


async def test_the_doctor_compares_every_secret_of_a_channel_from_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # R25 R60
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    pager = ChannelSettings("mycompany.pager:Pager", {"url": "https://pager.example/x", "secret": "the same"})
    both = Settings(channels={"a": pager}, workspaces={"lab": WorkspaceSettings({"b": pager})})
    assert (await other_workspace_results(both))[-1] == ("warn", "default/a, lab/b have the same secret")
    keyed = [ChannelSettings("mycompany.pager:Pager", {"api_key": each}) for each in ("x", "x")]
    both = Settings(channels={"a": keyed[0]}, workspaces={"lab": WorkspaceSettings({"b": keyed[1]})})
    assert (await other_workspace_results(both))[-1] == ("warn", "default/a, lab/b have the same secret")


async def test_channels_of_any_workspace_are_right_or_nothing_starts(tmp_path: Path) -> None:  # R60
    wrong = Settings(workspaces={"lab": WorkspaceSettings({"chat": ChannelSettings("slack", {"tokn": "x"})})})
    [(_, found)] = [each for each in await other_workspace_results(wrong) if each[0] == "fail"]
    assert found.startswith('lab: The channel "chat": there is no setting "tokn"')
    with pytest.raises(Misconfigured, match='The workspace lab: The channel "chat": there is no setting "tokn"'):
        notification_service(tmp_path, wrong)


def test_a_workspace_reaches_people_through_its_own_channels(tmp_path: Path) -> None:  # R60
    made = notification_service(tmp_path, TWO_WORKSPACES)
    assert {name: set(made.for_workspace(name).channels) for name in ("default", "lab", "bare", "zebra")} == {
        "default": {"pager"},
        "lab": {"hook"},
        "bare": set(),
        "zebra": set(),
    }
    assert (made.routes.escalation, made.for_workspace("lab").routes.escalation) == ("pager", "")
    assert made.for_workspace("lab").for_workspace("default").channels == {}, (
        "nobody comes from one workspace to another"
    )


def test_a_code_is_mailed_through_a_channel_of_the_workspace_of_its_link(tmp_path: Path) -> None:  # R60
    made = notification_service(
        tmp_path, Settings(channels={"mail": MAIL}, workspaces={"lab": WorkspaceSettings({"post": MAIL})})
    )
    able = [("default", "mail"), ("lab", "post")]
    for workspace, channel in (*able, ("default", "post"), ("lab", "mail"), ("zebra", "mail")):
        delivery = make_test_delivery(workspace, "one", DeliveryTarget(channel, "", "ada"), "ada", 0)
        assert (made.find_code_channel(delivery) is not None) == ((workspace, channel) in able)


def test_a_policy_knows_the_channels_of_its_workspace() -> None:  # R60
    assert policy_load_options(TWO_WORKSPACES, "lab").channels == {"dashboard", "hook"}
    assert (
        policy_load_options(TWO_WORKSPACES, "zebra").channels,
        policy_load_options(TWO_WORKSPACES, "zebra").has_destinations,
    ) == (
        {"dashboard"},
        False,
    )


def test_a_policy_knows_the_channels_once_there_are_some() -> None:
    assert (policy_load_options(Settings()).channels, policy_load_options(Settings()).has_destinations) == (None, True)
    assert policy_load_options(POLICY_WITH_ROUTES).channels == {"dashboard", "chat", "pager", "spare"}
    assert (
        policy_load_options(POLICY_WITH_ROUTES).has_destinations,
        policy_load_options(NO_CHANNELS).has_destinations,
    ) == (True, False)


SCRIPTED_AGENT = "demo:scripted"
SECRET = "sk-never-shown"


@pytest.fixture
def config_folder(tmp_path: Path) -> Path:
    return tmp_path


def run_checks(folder: Path, *stored: AgentVersion, **settings: object) -> list[CheckResult]:
    store = build_services(f"sqlite:///{folder / 'never-opened.db'}").store
    known = {agent.name: agent for agent in stored}
    return [*check_chat(Settings(**settings), store, known)]  # type: ignore[arg-type]


def find_check(folder: Path, what: str, words: str = "", **settings: object) -> CheckResult:
    [found] = [check for check in run_checks(folder, **settings) if check.what == what and words in check.found]
    return found


def test_a_new_installation_says_how_to_set_a_model_and_is_content(config_folder: Path) -> None:
    found = find_check(config_folder, "agents")
    assert (found.state, found.found.startswith("assistant (built-in), no model, ")) == ("ok", True)
    assert "OPENAI_API_KEY" in found.todo
    assert {check.state for check in run_checks(config_folder)} == {"ok"}


def test_agents_are_shown_with_their_model_and_tools(config_folder: Path) -> None:  # R9
    agents = {"writer": AgentSettings(SCRIPTED_AGENT, tools=("cms_list_*",))}
    assert find_check(config_folder, "agents", "writer", agents=agents) == CheckResult(
        "ok", "agents", "writer (configuration), demo:scripted, 3 tools"
    )


def test_what_somebody_changed_is_what_is_shown(config_folder: Path) -> None:  # R9
    stored = AgentVersion("writer", 3, '{"tools":["okr"],"model":"demo:scripted"}', "ada", 0)
    found = [check.found for check in run_checks(config_folder, stored, agents={"writer": AgentSettings()})]
    assert "writer (stored), demo:scripted, 7 tools" in found


def test_a_model_that_cannot_be_opened_says_what_to_do_and_no_key(config_folder: Path) -> None:
    models = {"openai": {"key": SECRET}}
    agents = {
        "one": AgentSettings("openai:gpt-5"),
        "two": AgentSettings("opnai:gpt-5"),
        "three": AgentSettings("anthropic:claude"),
    }
    found = run_checks(config_folder, agents=agents, models=models)
    result = {check.found.split()[0]: check for check in found if check.what == "agents"}
    assert (result["one"].state, result["two"].state, result["three"].state) == ("ok", "warn", "warn")
    assert 'did you mean "openai"?' in result["two"].todo
    assert "ANTHROPIC_API_KEY" in result["three"].todo
    assert SECRET not in repr(found)


def test_names_that_are_ignored_are_warnings(config_folder: Path) -> None:  # R9
    found = find_check(
        config_folder, "agents", "cmss", agents={"writer": AgentSettings(SCRIPTED_AGENT, tools=("cmss",))}
    )
    assert (found.state, found.todo) == ("warn", "Change it on the Agents page, or in interlock.yaml.")


def test_packs_say_which_setting_they_lack(config_folder: Path) -> None:  # R7
    assert find_check(config_folder, "tools").found.endswith("; not set up: tools.github.token, tools.linear.key")
    ready = find_check(config_folder, "tools", tools={"linear": {"key": SECRET}, "github": {"token": SECRET}})
    assert "linear 19" in ready.found
    assert SECRET not in repr(ready)


def test_wrong_settings_of_a_pack_fail(config_folder: Path) -> None:  # R30
    found = find_check(config_folder, "tools", tools={"http": {"allow": "example.com"}})
    assert (found.state, "tools.http.allow is a list" in found.found) == ("fail", True)


@pytest.mark.parametrize(
    ("server", "state"),
    [
        (McpServerSettings(command="sh"), "ok"),
        (McpServerSettings(command="no-such-program-anywhere"), "warn"),
        (McpServerSettings(url="https://mcp.example/?key=hunter2"), "ok"),
        (McpServerSettings(url="http://mcp.example/"), "warn"),
    ],
)
def test_mcp_servers_are_listed_without_being_reached(
    config_folder: Path, server: McpServerSettings, state: str
) -> None:  # R54
    found = find_check(config_folder, "mcp", mcp_servers={"files": server})
    assert (found.state, "hunter2" in repr(found)) == (state, False)


def test_documents_that_are_not_there_are_said(config_folder: Path) -> None:  # R9
    (config_folder / "handbook").mkdir()
    assert find_check(config_folder, "documents", documents=(config_folder / "handbook",)).state == "ok"
    assert find_check(config_folder, "documents", documents=(config_folder / "handbok",)).state == "warn"


def test_credentials_of_tools_are_those_of_the_workspace(config_folder: Path) -> None:  # R60
    """What stands at the top of the configuration is the default workspace's."""
    store = build_services(f"sqlite:///{config_folder / 'never-opened.db'}").store
    lab = WorkspaceSettings(tools={"linear": {"key": SECRET}})
    toolbox = build_chat_components(
        Settings(tools={"github": {"token": SECRET}}, workspaces={"lab": lab}), store
    ).tool_registry
    able = {name: toolbox.packs(name) for name in ("default", "lab", "zebra")}
    assert {name: (packs["github"] > 0, packs["linear"] > 0) for name, packs in able.items()} == {
        "default": (True, False),
        "lab": (False, True),
        "zebra": (False, False),
    }


def test_the_doctor_says_what_the_tools_of_a_workspace_lack(config_folder: Path) -> None:  # R60
    store = build_services(f"sqlite:///{config_folder / 'never-opened.db'}").store
    settings = Settings(tools={"github": {"token": SECRET}}, documents=(config_folder / "gone",))
    [tools] = [check for check in check_chat(settings, store, {}, "lab") if check.what == "tools"]
    assert "not set up: workspaces.lab.tools.github.token" in tools.found
    assert not any(check.what == "documents" for check in check_chat(settings, store, {}, "lab"))


async def test_wrong_settings_of_tools_in_any_workspace_keep_the_server_from_starting(
    config_folder: Path,
) -> None:  # R60
    store = build_services(f"sqlite:///{config_folder / 'never-opened.db'}").store
    settings = Settings(workspaces={"lab": WorkspaceSettings(tools={"github": {"token": 5}})})
    opened = Workspaces(store, lambda policy: build_gate_and_inbox(store, policy), {})
    assistant = build_assistant(settings, store, opened, JsonLogger(store.clock, "none", lambda _: None))
    with pytest.raises(Misconfigured, match="The workspace lab: "):
        async with assistant.open():
            pass


def check_server_setting(what: str, **server: object) -> CheckResult:
    settings = Settings(storage=StorageSettings(), server=ServerSettings(**{"port": 0, **server}))  # type: ignore[arg-type]
    return next(line for line in check_server(settings) if line.what == what)


@pytest.mark.parametrize(
    ("server", "state"),
    [
        ({}, "ok"),
        ({"host": "::1"}, "ok"),
        ({"public_url": "http://localhost:8321"}, "ok"),
        ({"public_url": "https://approvals.example", "proxies": ("127.0.0.1",)}, "ok"),
        ({"public_url": "https://approvals.example"}, "warn"),
        ({"host": "192.0.2.1"}, "warn"),
        ({"public_url": "http://approvals.example"}, "warn"),
        ({"public_url": "approvals.example"}, "fail"),
    ],
)
def test_an_address_without_tls_is_for_this_machine_only(server: dict[str, object], state: str) -> None:
    line = check_server_setting("address", **server)
    assert line.state == state
    assert bool(line.todo) is (state != "ok")


def test_a_port_is_free_or_taken_by_something_else() -> None:
    assert check_server_setting("port").state == "ok"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        other.close()
        assert "is free" in check_server_setting("port", port=port).found
    with serve_json({"hello": "world"}) as url:
        line = check_server_setting("port", port=int(url.rpartition(":")[2]))
    assert (line.state, "another program is listening" in line.found) == ("fail", True)


def test_a_server_of_ours_at_the_port_is_fine() -> None:
    with serve_json({"status": "ok"}) as url:
        line = check_server_setting("port", port=int(url.rpartition(":")[2]))
    assert (line.state, "an Interlock server is running" in line.found) == ("ok", True)


def test_the_provider_has_to_answer_by_its_own_name() -> None:
    with serve_json({"issuer": "https://other.example"}) as url:
        assert (
            check_server_setting(
                "provider", oidc=OidcSettings(issuer=url, client_id="interlock", client_secret="secret")
            ).found
            == f"{url} reports the issuer https://other.example"
        )
    gone = check_server_setting(
        "provider", oidc=OidcSettings(issuer=url, client_id="interlock", client_secret="secret")
    )
    assert (gone.state, "ConnectError" in gone.found) == ("fail", True)


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.9", True), ("[::1]", True), ("localhost", True), ("192.0.2.1", False), ("a.b", False)]
)
def test_local_is_what_nobody_else_can_reach(host: str, local: bool) -> None:
    assert is_local(host) is local


@contextmanager
def serve_json(body: dict[str, str]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("x-request-id", "1")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Not into the output of the tests."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""Checks of the doctor: agents, models, tools, MCP servers and documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.app.bootstrap import build_gate_and_inbox, build_services
from interlock.app.workspaces import Workspaces
from interlock.chat.assistant import build_assistant, build_chat_components
from interlock.cli.doctor import check_chat
from interlock.config.models import AgentSettings, McpServerSettings, Settings, WorkspaceSettings
from interlock.core.errors import Misconfigured
from interlock.core.ports import AgentVersion
from interlock.server.logs import JsonLogger
from interlock.storage.engine.metrics import CheckResult

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
    assert "writer (stored), demo:scripted, 5 tools" in found


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
    assert found.state == "warn"


def test_packs_say_which_setting_they_lack(config_folder: Path) -> None:  # R7
    assert find_check(config_folder, "tools").found.endswith("; not set up: tools.github.token, tools.linear.key")
    ready = find_check(config_folder, "tools", tools={"linear": {"key": SECRET}, "github": {"token": SECRET}})
    assert "linear 12" in ready.found
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

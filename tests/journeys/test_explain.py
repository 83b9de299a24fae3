"""What a call would meet, on the command line: as a server on the same database judges it."""
# R56, R57

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.app.bootstrap import wall_clock
from interlock.core.call import ToolSpec
from interlock.policy.templates import read_template
from tests.journeys.shell import CommandResult, Shell
from tests.support import Clock, open_services

pytestmark = pytest.mark.smoke

UNBOUND = "Judged as a call with an agent key that is bound to no agent: what it declares about its tool is a claim."
CONFIGURATION = """\
actions:
  fund_transfer: {schema: {type: object}, team: finance}
mcp_servers:
  files: {command: files-server}
"""


def explain(shell: Shell, call: object, *words: str) -> CommandResult:
    (shell.folder / "call.json").write_text(json.dumps(call))
    return shell("policy", "explain", "call.json", *words)


@pytest.fixture
async def strict(shell: Shell) -> Shell:
    (shell.folder / "interlock.yaml").write_text(CONFIGURATION)
    async with open_services(shell.path, Clock(wall_clock()), read_template("strict")) as services:
        specs = [ToolSpec("get_weather", "read"), ToolSpec("create_issue", "destructive")]
        await services.store.pin("default", specs, "", "ada")
        await services.store.put_agent(
            "default", "mailer", '{"tool_approvals": {"get_weather": true}}', "ada", "", None
        )
    return shell


@pytest.mark.parametrize(
    ("call", "verdict", "words"),
    [
        ({"tool": "look_up", "effect": "read", "agent": "mailer"}, "deny", "look_up is not a known tool"),
        ({"tool": "look_up", "effect": "read", "key": {"name": "mailer"}}, "deny", "(read) is ignored"),
        ({"tool": "get_weather"}, "allow", 'by the rule "reads pass"'),
        ({"tool": "get_weather", "agent": "mailer"}, "ask", "because the agent's tool_approvals say so"),
        (
            {"tool": "cms_delete_page", "effect": "read", "args": {"slug": "x"}},
            "ask",
            "cms_delete_page is registered as destructive: the effect read that the call declares is ignored.",
        ),
        ({"tool": "create_issue", "effect": "write"}, "ask", "declaration differs from its pin"),
        ({"tool": "cms_delete_page", "args": {"slug": "x"}}, "ask", "is registered as destructive."),
        ({"tool": "fund_transfer"}, "ask", "fund_transfer is registered as write."),
        ({"tool": "look_up", "effect": "read", "embedded": True}, "allow", "a program that opens the database itself"),
    ],
)
async def test_a_call_is_explained_as_a_server_judges_it(
    strict: Shell, call: dict[str, Any], verdict: str, words: str
) -> None:
    told = explain(strict, call)
    out = " ".join(told.out.split())
    assert (told.code, words in out) == (0, True), out
    assert out.startswith(UNBOUND) != call.get("embedded", False)
    assert explain(strict, call, "--json").json["verdict"] == verdict


async def test_what_cannot_be_known_here_is_said(strict: Shell) -> None:
    told = explain(strict, {"tool": "files_read"}, "--json").json
    assert "Tools of MCP servers (files) are known only to a running server." in told["notes"][0]
    assert not any("MCP" in note for note in explain(strict, {"tool": "get_weather"}, "--json").json["notes"])


def test_without_a_database_packs_are_known_and_pins_are_not(shell: Shell) -> None:
    told = explain(shell, {"tool": "cms_delete_page", "args": {"slug": "x"}, "effect": "read"}, "--json").json
    assert (told["verdict"], "registered as destructive" in told["notes"][0]) == ("ask", True)
    told = explain(shell, {"tool": "look_up", "effect": "read"}, "--json").json
    assert (told["verdict"], "There is no database:" in told["notes"][0]) == ("allow", True)
    assert not [each for each in shell.folder.iterdir() if each.suffix == ".db"]

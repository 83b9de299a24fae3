"""Tools on the command line: the source of each definition, pinned one by one or all of an agent. R57"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from interlock.app.bootstrap import wall_clock
from interlock.core.call import ToolSpec, propose
from tests.journeys.shell import Shell
from tests.support import Clock, open_services

pytestmark = pytest.mark.smoke

POLICY = """\
version: 1
rules:
  - {name: mails, tools: [send_*], then: ask}
"""


async def declare_tools(shell: Shell, effects: Mapping[str, str]) -> None:
    """As an agent over HTTP declares its tools."""
    async with open_services(shell.path, Clock(wall_clock()), POLICY) as services:
        for tool, effect in effects.items():
            call = propose(tool, {}, "run", tool, agent="mailer")
            await services.gate.check(call, ToolSpec(tool, effect, secret=("token",), declared=True))


def pinned_tools(shell: Shell) -> list[dict[str, object]]:
    items: list[dict[str, object]] = shell("tools", "list", "--json").json["items"]
    return [tool for tool in items if tool["standing"] == "pinned"]


async def test_tools_of_an_agent_are_listed_and_pinned(shell: Shell) -> None:
    await declare_tools(shell, {"file_letter": "write", "send_letter": "write", "stamp": "", "burn": "write"})
    listed = shell("tools", "list", "--agent", "mailer")
    assert [line.split()[:3] for line in listed.out.splitlines()[1:3]] == [
        ["burn", "declared", "write"],
        ["file_letter", "declared", "write"],
    ]
    assert "2 tools are trusted on their agents' declaration alone" in listed.out
    [line] = [each for each in shell("doctor", "--json").json["checks"] if each["what"] == "pins"]
    assert (line["state"], line["found"]) == (
        "warn",
        "2 tools are trusted on their agents' declaration alone: burn, file_letter",
    )
    assert "interlock tools pin" in line["todo"]

    one = shell("tools", "pin", "burn", "--from-agent", "mailer", "--effect", "destructive", "--user", "ada")
    assert one.out == (
        "Pinned burn as destructive, secret token, without a schema. Calls that declare it differently need approval.\n"
    )
    piped = shell("tools", "pin", "--all-of", "mailer")
    assert (piped.code, "file_letter" in piped.out) == (2, True)
    assert "Nothing was pinned, since there is no terminal to confirm at. To pin: add --yes" in piped.err
    assert "file_letter" not in {each["name"] for each in pinned_tools(shell)}
    all_of = shell("tools", "pin", "--all-of", "mailer", "--yes")
    assert "Skipped: send_letter, since the rule 'mails' names it." in all_of.out
    assert "Skipped: stamp, since its effect is not declared" in all_of.out
    assert all_of.out.endswith("Pinned 1 tool of mailer.\n")
    told = {tool["name"]: tool for tool in shell("tools", "list", "--json").json["items"]}
    assert (told["burn"]["standing"], told["burn"]["effect"], told["burn"]["pinned_by"]) == (
        "pinned",
        "destructive",
        "ada",
    )
    assert told["cms_delete_post"]["standing"] == "registered"
    assert not [each for each in shell("doctor", "--json").json["checks"] if each["what"] == "pins"]
    assert shell("tools", "unpin", "burn").out == "Unpinned burn. From now on its agents' declarations define it.\n"


async def test_a_tool_whose_name_looks_like_another_is_marked_and_pinned_only_when_one_is_sure(shell: Shell) -> None:
    imitation = "f\u0456le_letter"
    await declare_tools(shell, {"file_letter": "write", imitation: "write"})
    listed = shell("tools", "list", "--agent", "mailer").out
    assert "f\\u{456}le_letter looks like file_letter" in listed
    unsure = shell("tools", "pin", imitation)
    assert (unsure.code, "f\\u{456}le_letter looks like file_letter. Pin it?" in unsure.err) == (2, True)
    assert pinned_tools(shell) == []
    assert shell("tools", "pin", imitation, "--yes").code == 0
    refused = shell("tools", "pin", "file_letter", "--yes")
    assert (refused.code, "which is pinned: it is not pinned." in refused.err) == (1, True)


async def test_what_cannot_be_pinned_says_why(shell: Shell) -> None:
    await declare_tools(shell, {"stamp": "", "burn": "write"})
    for words, code, hint in (
        (("pin",), 2, "or --all-of AGENT"),
        (("pin", "burn", "--all-of", "mailer"), 2, "or --all-of AGENT"),
        (("pin", "stamp"), 2, "Give its effect"),
        (("pin", "nosuch"), 1, "To pin it unseen, give an effect"),
        (("pin", "cms_delete_post"), 1, "is registered"),
        (("pin", "--all-of", "nobody"), 1, "has declared no tool"),
        (("unpin", "burn"), 1, "interlock tools list"),
    ):
        done = shell("tools", *words)
        assert (done.code, hint in done.err) == (code, True), done

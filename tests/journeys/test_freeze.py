"""The brake on the command line: freeze, what doctor says, unfreeze."""

from __future__ import annotations

import pytest

from interlock.app.bootstrap import wall_clock
from tests.journeys.shell import Shell
from tests.support import Clock, open_services, propose_pending

pytestmark = pytest.mark.smoke


async def test_a_workspace_is_frozen_told_of_and_released(shell: Shell) -> None:  # R59
    async with open_services(shell.path, Clock(wall_clock())):
        pass
    assert "Frozen: the workspace default." in shell("freeze", "--reason", "A runaway agent.").out
    assert "is already frozen by" in shell("freeze", "--reason", "Once more.").out
    assert "A runaway agent." in shell("doctor").out
    frozen = shell("freeze", "--tool", "pay_*", "--reason", "The bank.").out
    assert "Frozen: the tool pay_*." in frozen
    assert "interlock unfreeze --tool 'pay_*' --reason TEXT" in frozen
    both = shell("freeze", "--tool", "a", "--agent", "b", "--reason", "x")
    assert (both.code, "one of --agent, --key and --tool" in both.err) == (2, True)
    assert "There is no key 'k'" in shell("freeze", "--key", "k", "--reason", "x").err
    assert "Released: the workspace default." in shell("unfreeze", "--reason", "It was stopped.").out
    again = shell("unfreeze", "--reason", "It was stopped.")
    assert (again.code, "the tool pay_*" in again.err) == (1, True)
    (item,) = shell("unfreeze", "--tool", "PAY_*", "--reason", "Mended.", "--json").json["items"]
    assert item["released_by"]
    assert "A runaway agent." not in shell("doctor").out


async def test_a_name_of_which_no_call_is_known_is_frozen_with_a_doubt(shell: Shell) -> None:  # R59
    async with open_services(shell.path, Clock(wall_clock())) as services:
        await propose_pending(services, agent="mailer")
    doubt = "No call of this agent is known; check the name."
    assert doubt in shell("freeze", "--agent", "nosuchagent", "--reason", "x").out
    assert shell("freeze", "--agent", "nosuchagent", "--reason", "x", "--json").json["warnings"] == [doubt]
    assert "No call of such a tool is known" in shell("freeze", "--tool", "nosuch_*", "--reason", "x").out
    known = [("--agent", "Mailer"), ("--tool", "DELETE_*")]
    assert [shell("freeze", *words, "--reason", "x", "--json").json["warnings"] for words in known] == [[], []]

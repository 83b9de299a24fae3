"""Routing on the command line: what does not start, what the doctor says, and which names a policy may use."""

from __future__ import annotations

import pytest

from tests.journeys.shell import Shell
from tests.journeys.test_accounts import assert_refused

pytestmark = pytest.mark.smoke

KEY = "k" * 32
ONLY_HIGH = f"""
channels: {{pager: {{kind: pagerduty, routing_key: {KEY}, priorities: [high]}}}}
routing: {{priority_map: {{low: pager}}, reminders: [7m]}}
"""
POLICY = """
version: 1
rules:
  - {name: pay, tools: [pay], then: ask, expires_in: 1h, channels: [%s], escalate: [{after: 5m, channels: [pager]}]}
"""


def configure(shell: Shell, text: str) -> None:
    (shell.folder / "interlock.yaml").write_text(text)


def test_nothing_starts_while_a_priority_has_no_channel(shell: Shell) -> None:  # R26
    configure(shell, ONLY_HIGH)
    shell("migrate")
    for command in (("serve", "--port", "0"), ("worker",)):
        assert_refused(shell.process(*command), 2, "no channel of pager takes the priority low")
    done = shell("doctor")
    assert (done.code, "no channel of pager takes the priority low" in done.out, KEY in done.out) == (1, True, False)


def test_a_policy_names_channels_that_there_are(shell: Shell) -> None:  # R26, R28, R30
    configure(shell, ONLY_HIGH.replace("low: pager", "high: pager"))
    file = shell.folder / "policy.yaml"
    file.write_text(POLICY % "pagr")
    assert_refused(shell("policy", "check", str(file)), 2, 'unknown channel "pagr"; did you mean "pager"?')
    file.write_text(POLICY % "'#ops'")
    assert_refused(shell("policy", "check", str(file)), 2, '"#ops" is a place, and no channel has places')
    file.write_text(POLICY % "pager")
    assert shell("policy", "put", str(file)).code == 0
    (shell.folder / "call.json").write_text('{"tool": "pay", "args": {}}')
    told = " ".join(shell("policy", "explain", str(shell.folder / "call.json")).out.split())
    assert [words for words in ("channels pager", "reminds after 7m", "by pager") if words not in told] == []
    assert "pager (pagerduty): the priority high; escalation by the rule pay; the rule pay" in " ".join(
        shell("doctor").out.split()
    )

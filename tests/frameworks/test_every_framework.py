"""One journey for every framework, on its real version, with a scripted model; what tools did is counted outside.

A new program in `programs/` is covered by itself.
"""

from __future__ import annotations

import json
from pkgutil import iter_modules

import pytest

from interlock import integrations
from interlock.core.errors import InvalidDecision
from tests.frameworks.framework_program import PROGRAMS, TIMEOUT, EffectServer, Framework, read_result, wait_finished
from tests.interlock_server import run_server
from tests.journeys.shell import Shell, wait_until

INLINE = ("plain", "crewai")  # these cannot pause: their process waits
ENTRY_POINTS = {"claude_code", "mcp_gate"}  # these hold no agent, and have journeys of their own
ENGINES = {"dbos", "inngest", "restate", "temporal", "workflow_tools"}  # so have these, in tests/engines
FILES = {each.name for each in iter_modules(integrations.__path__)} - ENTRY_POINTS - ENGINES
NAMES = sorted({"plain"} | FILES)
MAILED = {"to": "bob@example.com", "text": "Hello"}
ASKING = """\
version: 1
defaults: {undo_window: 0s}
rules: [{name: mails ask, tools: [send_mail], then: ask}]
"""
FREE = "version: 1\nrules: [{name: all is free, then: allow}]\n"
SMOKE = ASKING.replace("then: ask", "then: ask, expires_in: 1s")


@pytest.fixture(params=NAMES)
def framework(request: pytest.FixtureRequest, shell: Shell, effects: EffectServer) -> Framework:
    name: str = request.param
    made = Framework(name, shell, effects, inline=name in INLINE)
    made.put_policy(ASKING)
    return made


def test_every_framework_has_its_program() -> None:
    assert [name for name in NAMES if not (PROGRAMS / f"{name}.py").exists()] == []


# R54
def test_approved_it_runs_once_however_often_it_is_resumed(framework: Framework) -> None:
    first = framework.run_to_end("mail", ("approve",))
    assert not first.paused
    assert first.results == ["sent to bob@example.com"]
    again = framework.run("mail")
    assert not again.paused
    assert framework.effects.calls_to("send_mail") == [MAILED]
    assert [item["status"] for item in framework.list_approvals("all")] == ["succeeded"]


# R11, R12
def test_edited_it_runs_with_what_the_person_wrote_and_a_bad_edit_goes_back_to_them(framework: Framework) -> None:
    program = framework.start("mail")
    if not framework.inline:
        assert read_result(program).paused
    (item,) = framework.wait_pending()
    with pytest.raises(InvalidDecision, match="/to"):
        framework.reviewer.decide(item["id"], "edit", json.dumps({"to": 7, "text": "Hello"}))
    edited = {"to": "carol@example.com", "text": "Hello"}
    framework.reviewer.decide(item["id"], "edit", json.dumps(edited))
    end = read_result(program) if framework.inline else framework.run("mail")
    assert end.results == ["sent to carol@example.com"]
    assert framework.effects.calls_to("send_mail") == [edited]


# R11
def test_answered_the_model_gets_the_words_and_nothing_runs(framework: Framework) -> None:
    end = framework.run_to_end("mail", ("respond", "Ask Carol instead"))
    assert not end.paused
    assert "Ask Carol instead" in end.results[0]
    assert framework.effects.calls == []


# R35
def test_rejected_it_stays_so_even_when_the_policy_becomes_free(framework: Framework) -> None:
    program = framework.start("mail")
    if not framework.inline:
        assert read_result(program).paused
    framework.decide("reject", "--reason", "Not on Sundays")
    framework.put_policy(FREE)
    end = read_result(program) if framework.inline else framework.run("mail")
    assert not end.paused
    assert "Not on Sundays" in end.results[0]
    assert framework.effects.calls == []


# R5
def test_expired_the_model_is_told_that_it_timed_out(framework: Framework) -> None:
    framework.put_policy(SMOKE)
    program = framework.start("mail")
    if not framework.inline:
        assert read_result(program).paused
    wait_until(lambda: bool(framework.list_approvals("expired")), "it expired", TIMEOUT)
    end = read_result(program) if framework.inline else framework.run("mail")
    assert not end.paused
    assert "timed out" in end.results[0]
    assert framework.effects.calls == []


# R6
def test_of_two_calls_one_asks_and_each_gets_its_result(framework: Framework) -> None:
    end = framework.run_to_end("two", ("approve",))
    assert end.results == ["clear in Oslo", "sent to bob@example.com"]
    assert framework.effects.calls_to("send_mail") == [MAILED]
    assert framework.effects.calls_to("get_weather") == [{"city": "Oslo"}]


# R6
def test_two_that_ask_are_decided_each_on_its_own(framework: Framework) -> None:
    program = framework.start("two mails")
    if not framework.inline:
        assert read_result(program).paused
    first = framework.wait_pending()[0]
    framework.reviewer.decide(first["id"], "reject")  # a second one may wait by now, and is listed before it
    if not framework.inline and len(framework.list_approvals("pending")) == 0:
        assert framework.run("two mails").paused, "the second one is asked about in its turn"
    framework.decide("approve")
    end = read_result(program) if framework.inline else framework.run("two mails")
    assert not end.paused
    assert len(end.results) == 2
    rejected = next(item for item in framework.list_approvals("all") if item["id"] == first["id"])
    assert rejected["status"] == "rejected"
    (sent,) = framework.effects.calls_to("send_mail")
    assert [f"sent to {sent['to']}" in result for result in end.results].count(True) == 1


# R24, R46
def test_resumed_twice_at_once_it_runs_once(framework: Framework) -> None:
    if framework.inline:
        programs = [framework.start("mail", meet=True) for _ in range(2)]
        framework.decide("approve")
    else:
        assert framework.run("mail").paused
        framework.decide("approve")
        programs = [framework.start("mail", meet=True) for _ in range(2)]
    ends = [wait_finished(program) for program in programs]
    assert framework.effects.calls_to("send_mail") == [MAILED], ends
    assert 0 in [program.returncode for program in programs], ends
    assert [item["status"] for item in framework.list_approvals("all")] == ["succeeded"]


# R46
def test_killed_inside_the_tool_it_is_not_run_again_and_the_model_is_told(framework: Framework) -> None:
    with framework.effects.hold():
        program = framework.start("mail")
        if not framework.inline:
            assert read_result(program).paused
        framework.decide("approve")
        program = program if framework.inline else framework.start("mail")
        wait_until(lambda: bool(framework.effects.calls), "the tool ran", TIMEOUT)
        program.kill()
        program.communicate()
    end = framework.run("mail")
    assert not end.paused
    assert "outcome is unknown" in end.results[0]
    assert framework.effects.calls_to("send_mail") == [MAILED]
    assert [item["status"] for item in framework.list_approvals("all")] == ["unknown"]


# R23
def test_killed_while_it_waits_it_asks_nothing_new(framework: Framework) -> None:
    program = framework.start("mail")
    (item,) = framework.wait_pending()
    program.kill()
    program.communicate()
    program = framework.start("mail")
    if not framework.inline:
        assert read_result(program).paused
    assert [each["id"] for each in framework.wait_pending()] == [item["id"]]
    framework.decide("approve")
    end = read_result(program) if framework.inline else framework.run("mail")
    assert end.results == ["sent to bob@example.com"]
    assert framework.effects.calls_to("send_mail") == [MAILED]


# R54
def test_over_a_server_it_is_the_same(framework: Framework) -> None:
    key = framework.shell("keys", "create", "--name", "clerk", "--role", "agent").out.split()[-1]
    with run_server(framework.shell.url, framework.shell.folder) as server:
        framework.more = {"url": server.url, "key": key}
        end = framework.run_to_end("mail", ("approve",))
        again = framework.run("mail")
    assert end.results == ["sent to bob@example.com"]
    assert not again.paused
    assert framework.effects.calls_to("send_mail") == [MAILED]

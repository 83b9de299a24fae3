"""The life of a policy on the command line: started from a template, put in force, compared, tried out, kept."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from interlock.app.bootstrap import os_user, wall_clock
from interlock.core.call import ToolSpec
from interlock.core.ports import User
from interlock.policy.templates import TEMPLATE_NAMES, read_template
from tests.journeys.shell import CommandResult, Shell
from tests.support import BOB, Clock, approve, call, open_services

pytestmark = pytest.mark.smoke

DAY = 86_400_000
PAY = ToolSpec("pay", "write", describe="Pay {amount} to {to}", secret=("key",))
LOOK = ToolSpec("look", "read")
ASK = "rules: [{name: payments ask, tools: [pay], then: ask}]"
LIMITS = """
rules:
  - {name: small payments pass, tools: [pay], when: args.amount <= 10, then: allow}
  - {name: nothing to eve, tools: [pay], when: args.to == "eve", then: deny, reason: Not to eve.}
  - {name: payments ask, tools: [pay], then: ask}
"""
SHADOWED = """
rules:
  - {name: would stop eve, tools: [pay], when: args.to == "eve", then: deny, mode: shadow}
  - {name: would let small ones pass, tools: [pay], when: args.amount <= 10, then: allow, mode: shadow}
  - {name: would stop reading, tools: [look], then: deny, mode: shadow}
  - {name: tiny payments pass, tools: [pay], when: args.amount <= 1, then: allow}
  - {name: nothing huge, tools: [pay], when: args.amount > 1000, then: deny}
  - {name: payments ask, tools: [pay], then: ask}
"""


def write(shell: Shell, name: str, text: str) -> str:
    (shell.folder / name).write_text(text)
    return name


def put(shell: Shell, text: str, *words: str) -> CommandResult:
    return shell("policy", "put", write(shell, "policy.yaml", text), *words)


async def pay(shell: Shell, *payments: tuple[object, str], ago: int = 0, policy: str = "", **more: object) -> None:
    async with open_services(shell.path, Clock(wall_clock() - ago), policy) as services:
        for amount, to in payments:
            args = {"amount": amount, "to": to, "key": "hunter2"}
            number = f"{amount} {to} {ago}"
            await services.gate.check(call(number, args, tool="pay", **{"agent": "office", **more}), PAY)


def assert_refused(done: CommandResult, code: int, *words: str) -> None:
    assert (done.code, done.out) == (code, ""), done
    assert done.err.startswith("Error: "), done.err
    assert [word for word in words if word not in done.err] == [], done.err


# Templates


# R39
def test_a_team_starts_from_a_template(shell: Shell) -> None:
    listed = shell("policy", "templates").out
    assert [name for name in TEMPLATE_NAMES if name not in listed] == []
    assert [item["name"] for item in shell("policy", "templates", "--json").json["items"]] == list(TEMPLATE_NAMES)
    for name in TEMPLATE_NAMES:
        printed = shell("policy", "template", name)
        assert (printed.code, printed.out) == (0, read_template(name))
        write(shell, "policy.yaml", printed.out)
        assert shell("policy", "check", "policy.yaml").out.endswith("no warnings.\n")
    assert put(shell, read_template("strict")).code == 0
    assert shell("policy", "template", "money", "--json").json["body"] == read_template("money")


def test_a_template_that_is_not_there_is_refused_with_those_that_are(shell: Shell) -> None:
    assert_refused(shell("policy", "template", "lax"), 1, "'lax'", "balanced, strict, read-only, money")


# Versions


# R52
def test_every_version_keeps_its_author_and_its_reason(shell: Shell) -> None:
    first = put(shell, ASK, "--reason", "a beginning")
    assert first.out == "Version 1 is in force, with 1 rule. What changed: 1 rule added.\n"
    assert "2 rules added" in put(shell, LIMITS).out
    newest, oldest = shell("policy", "history", "--json").json["items"]
    assert (newest["version"], newest["reason"], newest["author"]) == (2, "", os_user())
    assert (oldest["version"], oldest["reason"], oldest["author"]) == (1, "a beginning", os_user())
    told = shell("policy", "history").out.splitlines()
    assert told[0].split() == ["VERSION", "WHEN", "WHO", "REASON", "SHA256"]
    assert told[1].startswith("2 (in force)  ")
    assert "a beginning" in told[2]
    assert oldest["sha256"][:12] in told[2]
    assert len(shell("policy", "history", "--limit", "1", "--json").json["items"]) == 1


# R52
def test_an_old_version_can_be_shown_and_put_back(shell: Shell) -> None:
    put(shell, ASK)
    put(shell, LIMITS)
    assert shell("policy", "show").out == LIMITS
    assert shell("policy", "show", "1").out == ASK
    assert shell("policy", "show", "1", "--json").json["body"] == ASK
    assert put(shell, shell("policy", "show", "1").out).out.startswith("Version 3 is in force")
    assert [item["version"] for item in shell("policy", "history", "--json").json["items"]] == [3, 2, 1]
    assert_refused(shell("policy", "show", "4"), 1, "There is no version 4", "Versions are 1 to 3.")
    assert_refused(shell("policy", "show", "0"), 1, "There is no version 0")


def test_a_database_without_a_policy_says_what_holds(shell: Shell) -> None:
    shell("migrate")
    assert "the defaults: reads are allowed, all other calls need approval" in shell("policy", "history").out
    assert shell("policy", "history", "--json").json["items"] == []
    assert shell("policy", "show").out == ""
    assert shell("policy", "show", "--json").json == {"version": None, "body": ""}
    assert_refused(shell("policy", "show", "1"), 1, "None is stored yet.")


def test_the_policy_in_force_put_again_makes_no_version(shell: Shell) -> None:
    put(shell, ASK)
    again = put(shell, ASK)
    assert (again.code, again.out) == (
        0,
        "Nothing to do: this policy is already in force, as version 1.\n",
    )
    assert put(shell, ASK, "--json").json["new"] is False
    assert put(shell, ASK + "\n# a comment", "--json").json["new"] is True
    assert put(shell, ASK + "\n# another").out.endswith("What changed: only comments and formatting.\n")


# R30
def test_a_file_with_a_mistake_changes_nothing(shell: Shell) -> None:
    put(shell, ASK)
    assert_refused(put(shell, "rules: [{name: x, then: perhaps}]"), 2, "policy.yaml: line 1:", "perhaps")
    assert_refused(shell("policy", "put", "nowhere.yaml"), 2, "cannot be read")
    assert_refused(put(shell, LIMITS, "--reason", "x" * 501), 2, "501", "500")
    assert shell("policy", "show").out == ASK


# R48
async def test_only_an_admin_puts_a_policy_in_force(shell: Shell) -> None:
    async with open_services(shell.path, Clock(wall_clock())) as services:
        await services.store.put_user("default", User(os_user(), "viewer"), "test")
    assert_refused(put(shell, ASK), 1, os_user(), "only an admin")
    async with open_services(shell.path, Clock(wall_clock())) as services:
        await services.store.put_user("default", User(os_user(), "admin"), "test")
    assert put(shell, ASK).code == 0


def test_warnings_are_told_when_a_policy_is_put(shell: Shell) -> None:
    done = put(shell, "rules:\n  - {name: all, then: ask}\n  - {name: never, then: deny}\n")
    assert "warning: policy.yaml, line 3" in done.out
    assert done.out.splitlines()[-1].startswith("Version 1 is in force")


# What differs


# R52
def test_a_draft_is_compared_with_the_policy_in_force(shell: Shell) -> None:
    put(shell, ASK)
    write(shell, "draft.yaml", LIMITS.replace("{name: payments ask", "{name: payments ask, quorum: 2"))
    told = shell("policy", "diff", "draft.yaml").out
    assert "to draft.yaml: 2 rules added, 1 changed." in told
    assert '  + 1  "small payments pass"\n' in told
    assert "         when: args.amount <= 10\n" in told
    assert '  ~ 3  "payments ask"\n' in told
    assert "         approvers: not set → 2 of anybody who may decide\n" in told
    body = shell("policy", "diff", "draft.yaml", "--json").json
    assert [(each["kind"], each["rule"], each["new_place"]) for each in body["rules"]] == [
        ("added", "small payments pass", 1),
        ("added", "nothing to eve", 2),
        ("changed", "payments ask", 3),
    ]
    change = {"key": "approvers", "old": None, "new": "2 of anybody who may decide"}
    assert body["rules"][2]["changes"] == [change]


# R52
def test_versions_are_compared_from_the_first_to_the_second(shell: Shell) -> None:
    assert put(shell, ASK).code == 0
    assert_refused(shell("policy", "diff"), 1, "fewer than two versions", "interlock policy diff FILE")
    put(shell, LIMITS)
    put(shell, LIMITS.replace("<= 10", "<= 20"))
    assert "when: args.amount <= 10 → args.amount <= 20" in shell("policy", "diff").out
    assert "2 rules added" in shell("policy", "diff", "1").out
    assert "2 rules added" in shell("policy", "diff", "1", "2").out
    assert "2 rules removed" in shell("policy", "diff", "2", "1").out
    write(shell, "draft.yaml", ASK)
    for order in (["draft.yaml", "2"], ["2", "draft.yaml"]):
        assert "to draft.yaml: 2 rules removed" in shell("policy", "diff", *order).out
    assert "they are the same" in shell("policy", "diff", "draft.yaml", "1").out
    assert_refused(shell("policy", "diff", "7"), 1, "There is no version 7")


def test_moved_rules_defaults_and_switches_are_told(shell: Shell) -> None:
    put(shell, "rules: [{name: a, tools: [a], then: ask}, {name: b, tools: [b], then: ask}]")
    draft = (
        "defaults: {unknown_tools: deny}\nagents: {bot: {tool_approvals: {pay: true}}}\n"
        "rules: [{name: b, tools: [b], then: ask}, {name: other, tools: [a], then: ask}]"
    )
    told = shell("policy", "diff", write(shell, "draft.yaml", draft)).out
    assert "1 rule renamed, 1 moved; the defaults differ; the tool_approvals of agents differ." in told
    assert '  > 2 → 1  "b"\n' in told
    assert '  ~ 2  "other" (was "a")\n' in told
    assert "         unknown_tools: ask → deny\n" in told
    assert "         bot.pay: not set → true\n" in told


# Shadow


# R52
async def test_shadow_rules_are_noted_for_asked_allowed_and_denied_calls(shell: Shell) -> None:
    await pay(shell, (50, "eve"), (1, "eve"), (2_000, "eve"), (5, "bob"), (50, "bob"), policy=SHADOWED)
    body = shell("policy", "shadow", "--json").json
    found = {item["rule"]: {(t["from"], t["to"]): t["calls"] for t in item["turns"]} for item in body["items"]}
    assert (body["calls"], body["erased"]) == (5, 0)
    assert found == {
        "would stop eve": {("ask", "deny"): 1, ("allow", "deny"): 1, ("deny", "deny"): 1},
        "would let small ones pass": {("allow", "allow"): 1, ("ask", "allow"): 1},
        "would stop reading": {},
    }
    told = shell("policy", "shadow").out.splitlines()
    assert told[1].split()[:4] == ["would", "stop", "eve", "3"]
    assert "1 ask → deny" in told[1]
    assert "5 calls of the last 30d, without allowed reads, which are only counted." in told


# R52
async def test_allowed_reads_leave_no_note(shell: Shell) -> None:
    async with open_services(shell.path, Clock(wall_clock()), SHADOWED) as services:
        await services.gate.check(call(1, {}, tool="look"), LOOK)
    body = shell("policy", "shadow", "--json").json
    assert (body["calls"], [item["calls"] for item in body["items"]]) == (0, [0, 0, 0])


async def test_a_shadow_rule_that_is_enforced_now_keeps_its_notes(shell: Shell) -> None:
    await pay(shell, (50, "eve"), policy=SHADOWED)
    put(shell, SHADOWED.replace(", mode: shadow", ""))
    (item,) = shell("policy", "shadow", "--json").json["items"]
    assert (item["rule"], item["calls"], item["in_force"]) == ("would stop eve", 1, False)
    assert "removed or enforced" in shell("policy", "shadow").out


async def test_older_notes_can_be_left_out(shell: Shell) -> None:
    await pay(shell, (50, "eve"), ago=3 * DAY, policy=SHADOWED)
    assert shell("policy", "shadow", "--since", "2d", "--json").json["calls"] == 0
    assert shell("policy", "shadow", "--since", "4d", "--json").json["calls"] == 1
    assert_refused(shell("policy", "shadow", "--since", "soon"), 2, "not a duration")


def test_without_shadow_rules_there_is_nothing_to_tell(shell: Shell) -> None:
    put(shell, ASK)
    assert shell("policy", "shadow").out.startswith("No rule has mode: shadow")


# Rehearsal


def rehearse(shell: Shell, draft: str, *words: str) -> Any:
    done = shell("policy", "rehearse", write(shell, "draft.yaml", draft), "--json", *words)
    assert done.code == 0, done
    return done.json


# R52
async def test_a_rehearsal_says_what_would_change_and_by_which_rule(shell: Shell) -> None:
    await pay(shell, (5, "bob"), (50, "bob"), (50, "eve"), policy=ASK)
    body = rehearse(shell, LIMITS)
    assert (body["calls"], body["turned"], body["loosened"], body["erased"]) == (3, 2, 1, 0)
    assert body["verdicts"]["ask"] == {"allow": 1, "ask": 1, "deny": 1}
    assert [(each["from"], each["to"], each["new_rule"]) for each in body["changed"]] == [
        ("ask", "allow", "small payments pass"),
        ("ask", "deny", "nothing to eve"),
    ]
    first = body["changed"][0]
    assert (first["tool"], first["agent"], first["sentence"], first["loosened"]) == (
        "pay",
        "office",
        "Pay 5 to bob",
        True,
    )
    assert body["answers_per_day"] == [{"who": "the requester, a reviewer or an admin", "now": 3.0, "draft": 1.0}]
    assert [each["kind"] for each in body["diff"]["rules"]] == ["added", "added"]


# R52
async def test_a_rehearsal_is_told_to_people(shell: Shell) -> None:
    await pay(shell, (5, "bob"), (50, "bob"), (50, "eve"), policy=ASK)
    told = shell("policy", "rehearse", write(shell, "draft.yaml", LIMITS)).out
    for words in (
        "In force: version 1 in the database, by ada",
        "Draft:    draft.yaml: 2 rules added",
        "Rehearsed 3 calls of the last 30d",
        "2 calls would get a different verdict; 0 would need approval on different terms.",
        "LOOSENED: 1 call could run without the approvals required now.",
        "Pay 5 to bob",
        "Content is available since 20",
        "it is kept forever (storage.retention).",
        "Allowed reads are only counted (0 so far) and cannot be rehearsed.",
    ):
        assert words in told
    assert ["ask", "1", "1", "1"] in [line.split() for line in told.splitlines()]
    assert "hunter2" not in told


# R52
async def test_allowed_and_denied_calls_are_rehearsed_too(shell: Shell) -> None:
    await pay(
        shell, (5, "bob"), (50, "eve"), (50, "bob"), policy=LIMITS, requester="rita", teams=("ops",), priority="low"
    )
    body = rehearse(shell, "rules: [{name: ops pay, tools: [pay], users: [rita], teams: [ops], then: ask}]")
    assert body["verdicts"]["allow"]["ask"] == body["verdicts"]["deny"]["ask"] == body["verdicts"]["ask"]["ask"] == 1
    by_priority = rehearse(shell, "rules: [{name: low, tools: [pay], priorities: [low], then: deny}]")
    assert sum(by_priority["verdicts"][kind]["deny"] for kind in ("allow", "ask", "deny")) == 3
    by_agent = rehearse(shell, "rules: [{name: office, agents: [office], when: args.amount == 50, then: deny}]")
    assert (by_agent["verdicts"]["deny"]["deny"], by_agent["verdicts"]["ask"]["deny"]) == (1, 1)
    (denied,) = [each for each in body["changed"] if each["from"] == "deny"]
    assert (denied["approval_id"], denied["sentence"]) == (None, "Pay 50 to eve")
    assert "hunter2" not in json.dumps(body)


# R52
async def test_in_a_pipeline_a_draft_that_loosens_fails(shell: Shell) -> None:
    await pay(shell, (5, "bob"), policy=ASK)
    draft = write(shell, "draft.yaml", LIMITS)
    done = shell("policy", "rehearse", draft, "--fail-on-loosened")
    assert (done.code, done.err) == (1, "")
    assert "LOOSENED" in done.out
    assert shell("policy", "rehearse", draft, "--fail-on-loosened", "--json").json["loosened"] == 1
    stricter = write(shell, "stricter.yaml", ASK.replace("then: ask", "then: deny"))
    assert shell("policy", "rehearse", stricter, "--fail-on-loosened").code == 0


# R52
async def test_the_rehearsal_records_nothing(shell: Shell) -> None:
    await pay(shell, (5, "bob"), policy=ASK)
    before = shell("audit", "head").out
    rehearse(shell, LIMITS)
    assert shell("audit", "head").out == before
    assert shell("policy", "show").out == ASK


async def test_older_calls_can_be_left_out_and_the_list_is_bounded(shell: Shell) -> None:
    await pay(shell, (5, "bob"), (6, "bob"), (7, "bob"), ago=3 * DAY, policy=ASK)
    await pay(shell, (8, "bob"))
    assert rehearse(shell, LIMITS, "--since", "2d")["calls"] == 1
    body = rehearse(shell, LIMITS, "--limit", "2")
    assert (body["calls"], body["turned"], len(body["changed"])) == (4, 4, 2)
    assert body["changed"][0]["sentence"] == "Pay 8 to bob"
    told = shell("policy", "rehearse", "draft.yaml", "--limit", "1").out
    assert "… and 3 more; --limit N lists more of them" in told
    assert body["answers_per_day"][0]["now"] == pytest.approx(4 / 3, abs=0.01)


# R52
async def test_calls_that_were_judged_by_another_policy_are_told(shell: Shell) -> None:
    await pay(shell, (5, "bob"), (50, "bob"), policy=LIMITS)
    put(shell, ASK)
    body = rehearse(shell, ASK)
    assert (body["outdated"], body["turned"], body["changed"]) == (1, 0, [])
    assert "1 call was decided by an older policy" in shell("policy", "rehearse", "draft.yaml").out


# R9
async def test_the_switches_of_the_configuration_count_for_both_sides(shell: Shell) -> None:
    write(shell, "interlock.yaml", "agents: {office: {tool_approvals: {pay: true}}}")
    await pay(shell, (5, "bob"), policy=ASK)
    assert rehearse(shell, LIMITS)["verdicts"]["ask"] == {"allow": 0, "ask": 1, "deny": 0}


async def test_a_call_that_was_decided_is_rehearsed_as_it_was_proposed(shell: Shell) -> None:
    async with open_services(shell.path, Clock(wall_clock()), ASK) as services:
        outcome: Any = await services.gate.check(call(1, {"amount": 5, "to": "bob"}, tool="pay"), PAY)
        assert await approve(services, outcome.approval_id, BOB) == "approved"
    body = rehearse(shell, LIMITS)
    assert (body["calls"], body["changed"][0]["recorded"], body["changed"][0]["to"]) == (1, "ask", "allow")


def test_without_calls_there_is_nothing_to_rehearse(shell: Shell) -> None:
    put(shell, ASK)
    done = shell("policy", "rehearse", write(shell, "draft.yaml", LIMITS), "--fail-on-loosened")
    assert done.code == 0
    assert "There are no calls in the last 30d to rehearse." in done.out


def test_a_draft_with_a_mistake_is_not_rehearsed(shell: Shell) -> None:
    put(shell, ASK)
    done = shell("policy", "rehearse", write(shell, "draft.yaml", "rules: [{name: x, then: perhaps}]"))
    assert_refused(done, 2, "draft.yaml: line 1:")
    assert_refused(shell("policy", "rehearse", "nowhere.yaml"), 2, "cannot be read")


async def test_at_a_terminal_the_bar_is_gone_when_the_answer_is_there(shell: Shell) -> None:
    await pay(shell, (5, "bob"), policy=ASK)
    write(shell, "draft.yaml", LIMITS)
    with shell.terminal("policy", "rehearse", "draft.yaml") as terminal:
        assert terminal.exit_code() == 0
        assert "LOOSENED" in terminal.screen()


# R52
async def test_calls_whose_arguments_were_erased_are_told_and_left_out(shell: Shell) -> None:
    await pay(shell, (5, "bob"), (50, "bob"), (50, "eve"), policy=LIMITS)
    with sqlite3.connect(shell.path) as database:
        database.execute("delete from payloads where sentence = 'Pay 5 to bob'")
        database.execute("delete from contents where seq in (select seq from events where kind = 'denied')")
    database.close()
    body = rehearse(shell, ASK)
    assert (body["calls"], body["erased"]) == (1, 2)
    told = shell("policy", "rehearse", "draft.yaml").out
    assert "2 calls could not be rehearsed: their arguments were erased, or too long to be recorded." in told
    assert "The shadow verdicts of 1 call were erased." in shell("policy", "shadow").out

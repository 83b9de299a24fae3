"""The life of an approval on the command line, and every way in which a command says no."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.app.bootstrap import wall_clock
from interlock.cli.context import CommandOptions, open_database
from interlock.cli.review import DatabaseReview
from interlock.core.call import ToolSpec
from interlock.core.ports import User
from interlock.policy.file import ConfiguredPolicy, read_policy_file
from tests.journeys.seeds import (
    ASK_ADA,
    DECEIT,
    NO_MAIL_TO_EVE,
    NO_UNDO,
    TWO_PEOPLE,
    ask_question,
    propose_by_urgency,
    propose_mail,
    propose_payment,
    start_lost_call,
)
from tests.journeys.shell import TIMEOUT, CommandResult, Shell
from tests.support import Clock, open_services, propose_pending

pytestmark = pytest.mark.smoke
NO_DESTRUCTION = "rules: [{name: nobody destroys, effect: destructive, then: deny}, {name: the rest, then: ask}]"
ONE_FOR_EVERY_PAYMENT = "version: 1\nrules: [{name: payments, tools: [pay], then: ask}]\n"
TWO_FOR_LARGE_PAYMENTS = """
version: 1
rules:
  - {name: large, tools: [pay], when: args.amount > 100, then: ask, quorum: 2}
  - {name: small, tools: [pay], then: ask}
"""

ITEM = (
    *("id", "tool", "status", "args_sha256", "sentence", "agent", "thread_id", "run_id", "priority"),
    *("created_at", "expires_at"),
)
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def assert_refused(done: CommandResult, code: int, *words: str) -> None:
    """One plain line on standard error, nothing on standard output, no traceback."""
    assert (done.code, done.out) == (code, ""), done
    assert done.err.startswith("Error: "), done.err
    assert done.err.count("\n") == 1, done.err
    assert [word for word in words if word not in done.err] == [], done.err


def read_status(shell: Shell, approval_id: str) -> str:
    return str(shell("approvals", "show", approval_id, "--json").json["status"])


async def add_finance_team(shell: Shell) -> None:
    async with open_services(shell.path, Clock(wall_clock())) as services:
        for name, role, team in (
            ("ada", "reviewer", "finance"),
            ("bob", "reviewer", "finance"),
            ("vic", "viewer", "x"),
        ):
            await services.store.put_user("default", User(name, role, teams=frozenset({team})), "test")


# Looking


async def test_a_pending_call_is_listed_shown_and_approved(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    listed = shell("approvals", "list")
    assert listed.code == 0
    for word in (approval_id[-8:], "Mail bob", "send_mail", "writer", "pending", "medium", "0 of 1"):
        assert word in listed.out
    assert "Mail bob" in shell("approvals", "show", approval_id).out
    approved = shell("approvals", "approve", approval_id, "--comment", "fine")
    assert approved.code == 0
    assert "Approved" in approved.out
    assert shell("approvals", "list").out == "No approvals are pending.\n"
    assert read_status(shell, approval_id) == "approved"


async def test_a_list_in_json_has_the_fields_of_the_interface(shell: Shell) -> None:
    approval_id = await propose_mail(shell, thread_id="t1")
    body = shell("approvals", "list", "--json").json
    assert body["next"] is None
    (item,) = body["items"]
    assert [name for name in ITEM if name not in item] == []
    assert (item["id"], item["status"], item["thread_id"]) == (approval_id, "pending", "t1")
    assert RFC3339.fullmatch(item["created_at"])
    assert RFC3339.fullmatch(item["expires_at"])


async def test_one_approval_in_json_has_card_votes_decision_and_timeline(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    shell("approvals", "approve", approval_id, "--user", "ada", "--comment", "fine")
    body = shell("approvals", "show", approval_id, "--json").json
    assert body["args"] == {"to": "bob"}
    assert body["findings"] == []
    assert body["card"]["fields"][0]["text"] == '"bob"'
    assert [vote["by"] for vote in body["votes"]] == ["ada"]
    assert body["decision"]["kind"] == "approve"
    assert (body["decision"]["via"], body["decision"]["comment"]) == ("cli", "fine")
    assert [entry["kind"] for entry in body["timeline"]] == ["proposed", "approved"]


async def test_a_card_comes_in_its_order_with_everything_on_it(shell: Shell) -> None:
    approval_id = await propose_payment(shell, {"amount": 5, "to": "x" * 3_000, "key": "hunter2"})
    out = shell("approvals", "show", approval_id).out
    marks = ["HIGH RISK", "pay", "Pay 5", "requester", "rule", "left", "Arguments", "amount", "Preview", "unverified"]
    places = [out.index(mark) for mark in [*marks, "Timeline", "proposed  agent:planner"]]
    assert places == sorted(places)
    assert "hunter2" not in out
    assert "hidden, fingerprint" in out
    assert "Balance after: 95" in out
    assert "3,000 characters, sha256" in out
    assert "x" * 3_000 not in out
    assert "x" * 3_000 in shell("approvals", "show", approval_id, "--full").out


async def test_pages_continue_where_the_last_one_ended(shell: Shell) -> None:
    ids = [await propose_mail(shell, number) for number in range(3)]
    first = shell("approvals", "list", "--limit", "2", "--json").json
    rest = shell("approvals", "list", "--limit", "2", "--cursor", first["next"], "--json").json
    assert [item["id"] for item in first["items"] + rest["items"]] == ids
    assert rest["next"] is None


async def test_pending_approvals_are_listed_in_the_order_of_the_inbox(shell: Shell) -> None:
    expected = await propose_by_urgency(shell)
    for words in ((), ("--tool", "send_mail"), ("--search", "bob", "--status", "pending")):
        items = shell("approvals", "list", "--json", *words).json["items"]
        found = {item["id"] for item in items}
        assert [item["id"] for item in items] == [each for each in expected if each in found], words
        assert len(found) >= 2
    newest_first = [item["id"] for item in shell("approvals", "list", "--status", "all", "--json").json["items"]]
    assert newest_first[0] == expected[1]


async def test_lists_are_filtered(shell: Shell) -> None:
    await propose_mail(shell)
    for option, value in (("--tool", "send_mail"), ("--agent", "writer"), ("--run", "run")):
        assert len(shell("approvals", "list", option, value, "--json").json["items"]) == 1
        assert shell("approvals", "list", option, "another", "--json").json["items"] == []


async def test_without_a_server_an_expired_call_shows_as_expired(shell: Shell) -> None:
    approval_id = await propose_mail(shell, ago=25 * 3_600_000)
    assert shell("approvals", "list", "--json").json["items"] == []
    (item,) = shell("approvals", "list", "--status", "expired", "--json").json["items"]
    assert item["id"] == approval_id
    assert_refused(shell("approvals", "approve", approval_id), 1, "expired")


async def test_another_workspace_sees_nothing(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    assert shell("approvals", "list", "--workspace", "other", "--json").json["items"] == []
    assert_refused(shell("approvals", "show", approval_id, "--workspace", "other"), 1, "There is no approval")


# Ids


async def test_an_id_is_known_by_its_beginning_and_by_its_end(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    for part in (approval_id[:4], approval_id[:9].upper(), approval_id[-8:]):
        assert shell("approvals", "show", part, "--json").json["id"] == approval_id


async def test_an_id_that_fits_two_names_both(shell: Shell) -> None:
    ids = [await propose_mail(shell, number) for number in (1, 2)]
    common = ids[0][:6]
    assert_refused(shell("approvals", "approve", common), 1, "matches several approvals", *ids)
    body = shell("approvals", "approve", common, "--json").json
    assert sorted(body["candidates"]) == sorted(ids)
    assert read_status(shell, ids[0]) == "pending"


async def test_an_id_that_is_unknown_or_too_short_is_refused(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    assert_refused(shell("approvals", "show", "ffffffff"), 1, "There is no approval", "approvals list")
    assert_refused(shell("approvals", "show", approval_id[:3]), 2, "at least 4 characters")


# Deciding


async def test_a_rejection_says_until_when_it_can_be_undone_and_is_undone(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    rejected = shell("approvals", "reject", approval_id, "--reason", "not now")
    assert rejected.code == 0
    assert f"to undo it before: interlock approvals undo {approval_id[-8:]}" in rejected.out
    assert shell("approvals", "undo", approval_id).out.startswith("Undone")
    assert read_status(shell, approval_id) == "pending"
    assert_refused(shell("approvals", "undo", approval_id), 1, "Only a rejection can be undone")


async def test_a_rejection_of_which_the_agent_was_told_stays(shell: Shell) -> None:
    approval_id = await propose_mail(shell, policy=NO_UNDO)
    shell("approvals", "reject", approval_id)
    assert_refused(shell("approvals", "undo", approval_id), 1, "Too late to undo")


async def test_a_second_decision_is_refused_and_says_who_decided(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    shell("approvals", "approve", approval_id, "--user", "ada")
    assert_refused(shell("approvals", "reject", approval_id), 1, "Already decided: ada")
    refused = shell("approvals", "reject", approval_id, "--json")
    assert (refused.code, refused.json["error"], refused.json["decision"]["by"]) == (1, "already_decided", "ada")


async def test_an_edit_shows_what_changes_and_runs_with_it(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    edited = shell("approvals", "edit", approval_id, "--args", '{"to": "carol", "cc": ["dan"]}')
    assert edited.code == 0
    assert "Approved with your changes" in edited.out
    assert edited.err.splitlines() == ['- /to: "bob"', '+ /to: "carol"', '+ /cc: ["dan"]']
    assert shell("approvals", "show", approval_id, "--json").json["args"] == {"to": "carol", "cc": ["dan"]}


async def test_arguments_of_an_edit_come_from_a_file_or_from_standard_input(shell: Shell) -> None:
    first, second = [await propose_mail(shell, number) for number in (1, 2)]
    (shell.folder / "args.json").write_text('{"to": "from a file"}')
    assert shell("approvals", "edit", first, "--args", "@args.json").code == 0
    assert shell("approvals", "edit", second, "--args", "-", stdin='{"to": "from a pipe"}').code == 0
    shown = [shell("approvals", "show", name, "--json").json["args"]["to"] for name in (first, second)]
    assert shown == ["from a file", "from a pipe"]


async def test_an_edit_keeps_the_secret_whose_fingerprint_it_returns(shell: Shell) -> None:
    approval_id = await propose_payment(shell, {"amount": 5, "key": "hunter2"})
    args = shell("approvals", "show", approval_id, "--json").json["args"]
    done = shell("approvals", "edit", approval_id, "--args", json.dumps({**args, "amount": 4}))
    assert done.code == 0, done
    async with open_services(shell.path, Clock(wall_clock())) as services:
        kept = (await services.store.get("default", approval_id)).payload.args
    assert json.loads(kept or b"") == {"amount": 4, "key": "hunter2"}


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ("{oops", 2, "--args: The value is not JSON"),
        ('{"to": 1, "to": 2}', 2, "appears twice"),
        ("[1]", 2, "must be an object"),
        ("@nowhere.json", 2, "nowhere.json: No such file"),
        ('{"to": "bob"}', 2, "The arguments are unchanged"),
        ('{"to": "eve"}', 1, "Eve gets no mail."),
    ],
)
async def test_an_edit_that_cannot_be_is_refused(shell: Shell, args: str, code: int, words: str) -> None:
    approval_id = await propose_mail(shell, policy=NO_MAIL_TO_EVE)
    refused = shell("approvals", "edit", approval_id, "--args", args)
    assert refused.code == code
    assert refused.out == ""
    assert words in refused.err.splitlines()[-1]
    assert "Traceback" not in refused.err
    assert read_status(shell, approval_id) == "pending"


async def test_a_decided_call_is_not_edited(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    assert shell("approvals", "approve", approval_id, "--yes").code == 0
    refused = shell("approvals", "edit", approval_id, "--args", '{"to": "bob"}')
    assert_refused(refused, 1, "This approval is approved. Nothing was changed.")


async def test_a_call_that_the_policy_denies_by_now_is_not_approved(shell: Shell) -> None:  # R59
    approval_id = await propose_mail(shell, args={"to": "eve"})
    async with open_services(shell.path, Clock(wall_clock()), NO_MAIL_TO_EVE):
        pass
    refused = shell("approvals", "approve", approval_id, "--yes")
    assert_refused(refused, 1, "denies this call", "not to eve", "Eve gets no mail.")
    assert read_status(shell, approval_id) == "pending"


async def test_a_stored_switch_of_an_agent_counts_when_the_command_line_approves(shell: Shell) -> None:
    async with open_services(shell.path, Clock(wall_clock()), NO_DESTRUCTION) as services:
        approval_id = await propose_pending(services, 1, ToolSpec("shred", "write", declared=True), agent="bot")
        await services.store.put_agent("default", "bot", json.dumps({"tool_approvals": {"shred": True}}), "ada")
    assert_refused(shell("approvals", "approve", approval_id, "--yes"), 1, "denies this call")
    assert read_status(shell, approval_id) == "pending"


async def test_the_command_line_judges_by_its_own_file_too_while_another_files_text_is_in_force(tmp_path: Path) -> None:
    url, config = f"sqlite:///{tmp_path / 'interlock.db'}", tmp_path / "interlock.yaml"
    config.write_text(f"storage: {{url: '{url}'}}\npolicy: {tmp_path / 'own.yaml'}\n")
    (tmp_path / "own.yaml").write_text(TWO_FOR_LARGE_PAYMENTS)
    (tmp_path / "other.yaml").write_text(ONE_FOR_EVERY_PAYMENT)
    for name in ("own.yaml", "other.yaml"):
        async with open_services(tmp_path / "interlock.db", Clock(wall_clock())) as services:
            policy = ConfiguredPolicy(read_policy_file(tmp_path / name), name)
            await services.apply_policy("default", policy, "ada", {})
            approval_id = await propose_pending(services, name, ToolSpec("pay", "write"), args={"amount": 5})
    async with open_database(CommandOptions(config=config)) as context:
        review = DatabaseReview(context)
        view = await review.show(approval_id)
        edited = await review.decide(view, {"kind": "edit", "args": {"amount": 100_000}}, "")
    assert (edited.status, edited.need) == ("pending", 2)


async def test_an_edit_that_does_not_fit_the_tool_is_refused_with_the_place(shell: Shell) -> None:
    approval_id = await propose_payment(shell, {"amount": 5})
    refused = shell("approvals", "edit", approval_id, "--args", '{"amount": "much"}', "--json")
    assert (refused.code, refused.json["error"]) == (1, "invalid_decision")
    assert refused.json["problems"][0]["pointer"] == "/amount"


async def test_an_answer_replaces_the_call(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    assert "Answered" in shell("approvals", "respond", approval_id, "ask me tomorrow").out
    body = shell("approvals", "show", approval_id, "--json").json
    assert (body["status"], body["result"]) == ("responded", "ask me tomorrow")


@pytest.mark.parametrize(
    ("schema", "words", "result"),
    [
        ({"type": "integer"}, ["42"], 42),
        ({"type": "integer"}, ["--answer", "42"], 42),
        ({"type": "string"}, ["42"], "42"),
        (None, ["42"], "42"),
    ],
)
async def test_an_answer_is_data_where_the_question_has_a_schema(
    shell: Shell, schema: object, words: list[str], result: object
) -> None:
    approval_id = await ask_question(shell, **({"schema": schema} if schema else {}))
    assert shell("approvals", "respond", approval_id, *words).code == 0
    assert shell("approvals", "show", approval_id, "--json").json["result"] == result


async def test_an_answer_that_does_not_fit_is_refused(shell: Shell) -> None:
    approval_id = await ask_question(shell, choices=["yes", "no"])
    assert_refused(shell("approvals", "respond", approval_id, "maybe"), 1, "does not fit the question")
    assert_refused(shell("approvals", "approve", approval_id), 1, "cannot be answered by approve")
    assert_refused(shell("approvals", "respond", approval_id), 2, "MESSAGE or --answer")


async def test_two_people_have_to_agree_and_one_counts_once(shell: Shell) -> None:
    approval_id = await propose_mail(shell, policy=TWO_PEOPLE)
    await add_finance_team(shell)
    assert "1 of 2" in shell("approvals", "approve", approval_id, "--user", "ada").out
    again = shell("approvals", "approve", approval_id, "--user", "ada")
    assert "You have already approved this; nothing changed" in again.out
    assert "1 of 2" in shell("approvals", "list").out
    assert_refused(shell("approvals", "approve", approval_id), 1, "Error: You may not decide this approval. It needs")
    assert_refused(
        shell("approvals", "approve", approval_id, "--user", "mallory"),
        1,
        "mallory may not decide this approval. It needs",
    )
    assert "Approved" in shell("approvals", "approve", approval_id, "--user", "bob").out


async def test_a_viewer_may_not_decide(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    await add_finance_team(shell)
    assert_refused(
        shell("approvals", "approve", approval_id, "--user", "vic"), 1, "vic may not decide this approval. It needs"
    )


async def test_a_delegate_decides_in_the_place_of_another(shell: Shell) -> None:
    approval_id = await propose_mail(shell, policy=ASK_ADA)
    assert_refused(
        shell("approvals", "approve", approval_id, "--user", "bob"), 1, "bob may not decide this approval. It needs"
    )
    told = shell("approvals", "delegate", approval_id, "--to-user", "bob", "--user", "ada")
    assert told.out == "bob may now decide this on behalf of ada.\n"
    assert shell("approvals", "approve", approval_id, "--user", "bob").code == 0
    assert "for ada" in shell("approvals", "show", approval_id).out
    assert_refused(shell("approvals", "delegate", approval_id), 2, "Give a delegate")


async def test_a_call_of_which_nobody_knows_is_resolved_by_somebody_who_looked(shell: Shell) -> None:
    approval_id = await start_lost_call(shell)
    assert shell("approvals", "list", "--status", "unknown", "--json").json["items"][0]["id"] == approval_id
    assert_refused(shell("approvals", "resolve", approval_id), 2, "--succeeded or --failed")
    assert_refused(shell("approvals", "resolve", approval_id, "--failed", "--result", "1"), 2, "--note")
    done = shell("approvals", "resolve", approval_id, "--succeeded", "--note", "saw it", "--result", '{"sent": true}')
    assert done.out == "Recorded: send_mail succeeded.\n"
    body = shell("approvals", "show", approval_id, "--json").json
    assert (body["status"], body["result"]) == ("succeeded", {"sent": True})
    assert_refused(shell("approvals", "resolve", approval_id, "--failed"), 1, "Only an unknown outcome")


async def test_a_comment_is_bounded(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    assert_refused(shell("approvals", "approve", approval_id, "--comment", "x" * 501), 1, "more than 500 characters")


# Deceit


async def test_deceptive_arguments_are_shown_as_code_points(shell: Shell) -> None:
    approval_id = await propose_mail(shell, args=DECEIT, agent_says="\x1b[2Jall is well")
    for done in (shell("approvals", "list"), shell("approvals", "show", approval_id)):
        assert "\\u{202e}" in done.out
        assert not set("\u202e\x1b") & set(done.out + done.err)
    out = shell("approvals", "show", approval_id).out
    assert "U+202E RIGHT-TO-LEFT OVERRIDE" in out
    assert "U+0430 CYRILLIC SMALL LETTER A" in out
    assert shell("approvals", "show", approval_id, "--json").out.isascii()


async def test_deceptive_arguments_are_not_approved_until_acknowledged(shell: Shell) -> None:
    approval_id = await propose_mail(shell, args=DECEIT)
    assert_refused(shell("approvals", "approve", approval_id), 1, "bidi:/to", "lookalike:/to")
    half = shell("approvals", "approve", approval_id, "--acknowledge", "bidi:/to")
    assert_refused(half, 1, "lookalike:/to")
    both = ["--acknowledge", "bidi:/to", "--acknowledge", "lookalike:/to"]
    assert shell("approvals", "approve", approval_id, *both).code == 0


async def test_what_is_acknowledged_wholesale_is_shown_first(shell: Shell) -> None:
    approval_id = await propose_mail(shell, args=DECEIT)
    done = shell("approvals", "approve", approval_id, "--acknowledge-all")
    assert done.code == 0
    assert "RIGHT-TO-LEFT OVERRIDE" in done.err


async def test_a_finding_is_acknowledged_as_it_is_shown(shell: Shell) -> None:
    approval_id = await propose_mail(shell, args={"t\u200bo": "bob"})
    out = shell("approvals", "show", approval_id).out
    (shown,) = re.findall(r"ALARM  (\S+)", out)
    assert shown.isascii()
    assert shell("approvals", "approve", approval_id, "--acknowledge", shown).code == 0


async def test_an_edit_into_deceit_is_refused_until_acknowledged(shell: Shell) -> None:
    approval_id = await propose_mail(shell)
    args = ["--args", json.dumps(DECEIT)]
    assert "acknowledge" in shell("approvals", "edit", approval_id, *args).err
    assert read_status(shell, approval_id) == "pending"
    assert shell("approvals", "edit", approval_id, *args, "--acknowledge-all").code == 0


# Wrong use


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["approvals", "list", "--status", "pendin"], "Did you mean pending?"),
        (["approvals", "list", "--cursor", "nonsense"], "cursor"),
        (["approvals", "list", "--limit", "0"], "--limit"),
        (["approvals", "list", "--colour"], "No such option: --colour"),
        (["approvals", "frob"], "No such command 'frob'"),
        (["approvals", "show"], "Missing argument 'ID'"),
        (["approvals", "edit", "abcd"], "Missing option '--args'"),
        (["users", "add", "ada", "--role", "boss"], "--role"),
        (["users", "add", "a\u202eb"], "cannot be a name"),
        (["users", "add", "agent:x"], "Interlock uses itself"),
        (["approvals", "list", "--config", "nowhere.yaml"], "nowhere.yaml"),
        (["approvals", "list", "--database", "sqlite:/oops"], "Write sqlite:////oops for that file."),
        (["approvals", "list", "--database", "/tmp/x/demo.db"], "Write sqlite:////tmp/x/demo.db for that file."),
        (["approvals", "list", "--database", "./x/demo.db"], "Write sqlite:///x/demo.db for that file."),
        (["approvals", "list", "--database", "demo.db"], "Write sqlite:///demo.db for that file."),
        (
            ["approvals", "list", "--database", "demo"],
            "Use sqlite:///file.db, sqlite:////folder/file.db or postgresql:",
        ),
        (["approvals", "list", "--database", "~/demo.db"], "Use sqlite:///file.db, "),
        (["approvals", "list", "--database", "mysql://a@b/c.db"], "Use sqlite:///file.db, "),
        (["policy", "check", "nowhere.yaml"], "cannot be read"),
        (["policy", "explain", "nowhere.json"], "nowhere.json: No such file"),
        (["audit", "verify", "--head", "nowhere.json"], "nowhere.json: No such file"),
    ],
)
async def test_wrong_use_exits_2_with_one_line(shell: Shell, words: list[str], expected: str) -> None:
    shell("migrate")
    assert_refused(shell(*words), 2, expected)


def test_a_database_that_is_not_there_is_neither_an_empty_inbox_nor_made(shell: Shell) -> None:
    for words in (["approvals", "list"], ["audit", "verify"], ["audit", "head"], ["users", "list"]):
        assert_refused(shell(*words), 2, "There is no database at", f"interlock migrate --database {shell.url}")
    assert not shell.path.exists()


def test_a_file_that_is_no_database_is_left_alone(shell: Shell) -> None:
    shell.path.write_text("a letter to my mother, long enough to be mistaken for something else\n" * 10)
    assert_refused(shell("approvals", "list"), 1, "is not a database")


def test_an_argument_that_is_not_utf8_is_refused(shell: Shell) -> None:
    shell("migrate")
    assert_refused(shell.process("approvals", "show", "abcd\udcff"), 2, "not UTF-8")


def test_errors_in_json_stand_on_standard_output(shell: Shell) -> None:
    for words, code, kind in (
        (["approvals", "list"], 2, "misconfigured"),
        (["approvals", "frob"], 2, "invalid_request"),
    ):
        done = shell(*words, "--json")
        assert (done.code, done.err, done.json["error"]) == (code, "", kind)
        assert done.json["message"]


def test_the_help_names_the_commands_and_loads_neither_store_nor_rules(shell: Shell) -> None:
    told = shell("--help").out
    assert [word for word in ("approvals", "policy", "audit", "users", "doctor") if word not in told] == []
    program = (
        "import sys; from interlock.cli import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "heavy = {'interlock.app.bootstrap', 'interlock.core.card', 'sqlite3', 'cel', 'yaml', 'asyncio'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    assert shell.program(sys.executable, "-c", program, stdout=subprocess.DEVNULL).wait(TIMEOUT) == 0


def test_the_version_is_told(shell: Shell) -> None:
    assert re.fullmatch(r"interlock \d+\.\d+\.\d+\n", shell("--version").out)


# People, migrations, doctor


def test_people_are_added_changed_and_listed(shell: Shell) -> None:
    assert shell("users", "add", "ada", "--role", "admin", "--team", "finance", "--team", "ops").out.startswith("Added")
    assert "only admin" in shell("users", "add", "ada").err
    shell("users", "add", "root", "--role", "admin")
    assert shell("users", "add", "ada").out == "Changed ada: reviewer, teams: none.\n"
    shell("users", "add", "bob", "--team", "finance")
    assert "finance" in shell("users", "list").out
    assert shell("users", "list", "--json").json == {
        "items": [
            {"name": "ada", "role": "reviewer", "teams": [], "email": ""},
            {"name": "bob", "role": "reviewer", "teams": ["finance"], "email": ""},
            {"name": "root", "role": "admin", "teams": [], "email": ""},
        ],
        "next": None,
    }


def test_migrate_says_what_it_did(shell: Shell) -> None:
    assert "applied" in shell("migrate").out
    assert "up to date" in shell("migrate").out
    assert shell("migrate", "--json").json["applied"] == []


def test_migrate_refuses_the_database_of_another_program(shell: Shell) -> None:
    with sqlite3.connect(shell.path) as connection:
        connection.execute("create table cats (name text)")
    assert_refused(shell("migrate"), 2, "belongs to another program")


def test_the_doctor_is_content_with_a_new_installation(shell: Shell) -> None:
    assert f"Create it: interlock migrate --database {shell.url}" in shell("doctor").out
    shell("migrate")
    done = shell("doctor")
    assert done.code == 0
    assert "fail" not in done.out
    body = shell("doctor", "--json").json
    assert body["ok"] is True
    assert {"program", "sqlite", "database", "journal", "clock", "policy", "ledger"} <= {
        check["what"] for check in body["checks"]
    }
    assert body["configuration"]["server"]["port"] == 8321


def test_the_doctor_shows_no_secrets(shell: Shell) -> None:
    (shell.folder / "interlock.yaml").write_text("channels: {ops: {kind: slack, token: xoxb-secret}}")
    for words in (["doctor"], ["doctor", "--json"]):
        done = shell(*words)
        assert done.code == 0
        assert "xoxb-secret" not in done.out


def test_the_template_of_the_page_is_used_as_it_is_and_the_doctor_says_how_it_was_read(shell: Shell) -> None:  # R30
    page = (
        (Path(__file__).parents[2] / "docs" / "configuration.md").read_text().partition("## The `approval_engine`")[2]
    )
    template = page.partition("```yaml\n")[2].partition("```")[0]
    shown = page.partition("```text\n")[2].partition("```")[0]
    (shell.folder / "interlock.yaml").write_text(template)  # INTERLOCK_DATABASE_URL names the database of this test
    shell("migrate")
    done = shell("doctor")
    assert done.code == 0, done
    assert shown in done.out
    assert 'escalation: {"auto_reject_after": "2d", "notify_on_expiry": true, "channel": "dashboard"}' in done.out
    (shell.folder / "call.json").write_text('{"tool": "send_mail", "args": {}}')
    assert "expires   after 3d; then it counts as timed out" in shell("policy", "explain", "call.json").out
    (shell.folder / "interlock.yaml").write_text(template.replace("type: postgresql", "type: redis"))
    refused = shell("doctor")
    assert refused.code == 1
    assert "line 3: storage.type is one of sqlite and postgresql; nothing else is supported" in refused.out


async def test_the_doctor_finds_a_clock_that_went_back(shell: Shell) -> None:
    await propose_mail(shell, ago=-3_600_000)
    done = shell("doctor")
    assert done.code == 1
    assert "fail  clock" in done.out
    assert "Correct the clock" in done.out


def test_the_doctor_finds_a_policy_that_does_not_load_and_a_team_without_people(shell: Shell) -> None:
    shell("migrate")
    (shell.folder / "policy.yaml").write_text(TWO_PEOPLE)
    (shell.folder / "interlock.yaml").write_text("policy: policy.yaml")
    lonely = shell("doctor")
    assert lonely.code == 0
    assert "the team finance has to decide, but has no members" in lonely.out
    assert "interlock users add NAME --team finance" in lonely.out
    (shell.folder / "policy.yaml").write_text("rules: [{name: x, then: perhaps}]")
    broken = shell("doctor")
    assert broken.code == 1
    assert "fail  policy" in broken.out


def test_the_doctor_finds_a_configuration_that_does_not_load(shell: Shell) -> None:
    (shell.folder / "interlock.yaml").write_text("servr: {}")
    done = shell("doctor")
    assert (done.code, "fail  configuration" in done.out) == (1, True)


# Policies


def test_a_policy_is_checked_with_its_lines(shell: Shell) -> None:
    policy = shell.folder / "policy.yaml"
    policy.write_text("rules:\n  - name: all\n    then: ask\n  - name: never\n    then: deny\n")
    done = shell("policy", "check", "policy.yaml")
    assert done.code == 0
    assert "2 rules, 1 warning" in done.out
    assert "never reached" in done.out
    policy.write_text("rules:\n  - name: x\n    then: perhaps\n    tols: [a]\n")
    bad = shell("policy", "check", "policy.yaml")
    assert bad.code == 2
    assert "policy.yaml: line 3:" in bad.err
    assert "policy.yaml: line 4:" in bad.err


async def test_a_policy_with_an_unknown_team_is_refused_where_there_are_teams(shell: Shell) -> None:
    (shell.folder / "policy.yaml").write_text(TWO_PEOPLE.replace("finance]", "finanze]"))
    assert shell("policy", "check", "policy.yaml").code == 0
    await add_finance_team(shell)
    assert_refused(shell("policy", "check", "policy.yaml"), 2, "finanze", "finance")


def explain(shell: Shell, call: object, *words: str) -> CommandResult:
    (shell.folder / "call.json").write_text(json.dumps(call))
    return shell("policy", "explain", "call.json", *words)


def test_a_call_is_explained_by_the_rule_it_meets(shell: Shell) -> None:
    (shell.folder / "policy.yaml").write_text(TWO_PEOPLE)
    call = {"tool": "send_mail", "args": {"to": "bob"}, "effect": "write", "initiated_by": "ada"}
    told = explain(shell, call, "--policy", "policy.yaml")
    assert told.code == 0
    for words in ("two of finance", "2 people: team finance", "needs approval"):
        assert words in told.out
    body = explain(shell, call, "--policy", "policy.yaml", "--json").json
    assert (body["verdict"], body["rule"], body["terms"]["stages"][0]["quorum"]) == ("ask", "two of finance", 2)


async def test_without_a_file_the_policy_in_force_explains(shell: Shell) -> None:
    read = {"tool": "read_file", "args": {}, "effect": "read"}
    assert explain(shell, read, "--json").json["verdict"] == "allow"
    (shell.folder / "interlock.yaml").write_text("policy: {rules: [{name: closed, then: deny}]}")
    assert explain(shell, read, "--json").json["rule"] == "closed"
    await propose_mail(shell, policy=NO_MAIL_TO_EVE)
    body = explain(shell, {"tool": "send_mail", "args": {"to": "eve"}}, "--json").json
    assert (body["verdict"], body["reason"]) == ("deny", "Eve gets no mail.")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ([], "A call is an object"),
        ({"tool": "x", "arg": {}}, 'did you mean "args"?'),
        ({"tool": "x", "args": []}, "arguments of a call are an object"),
        ({"tool": "x", "effect": "boom"}, "effect is 'boom'"),
        ({"tool": "x", "expires_in": "soon"}, "is not a duration"),
        ({"tool": "x", "teams": "finance"}, "teams of a call is a list"),
    ],
)
def test_a_call_that_cannot_be_is_refused(shell: Shell, call: object, words: str) -> None:
    assert_refused(explain(shell, call), 2, words)


# Configuration


async def test_the_configuration_names_the_database_and_the_option_wins(shell: Shell, tmp_path: Path) -> None:
    await propose_mail(shell)
    shell.extra = {"INTERLOCK_DATABASE_URL": ""}
    (tmp_path / "interlock.yaml").write_text("storage: {url: 'sqlite:///approvals.db'}")
    assert len(shell("approvals", "list", "--json").json["items"]) == 1
    assert_refused(shell("approvals", "list", "--database", "sqlite:///other.db"), 2, "other.db")


async def test_pending_calls_of_all_statuses_are_listed_newest_first(shell: Shell) -> None:
    async with open_services(shell.path, Clock(wall_clock() - 1_000)) as services:
        first = await propose_pending(services, 1)
    second = await propose_mail(shell, 2)
    shell("approvals", "reject", second)
    items = shell("approvals", "list", "--status", "all", "--json").json["items"]
    assert [(item["id"], item["status"]) for item in items] == [(second, "rejected"), (first, "pending")]

"""A standing permission on the command line: made, used, looked at, revoked; and every way in which it says no."""

from __future__ import annotations

import json

import pytest

from interlock.app.bootstrap import wall_clock
from interlock.core.call import ToolSpec, propose
from interlock.core.outcome import Proceed
from interlock.core.ports import User
from tests.journeys.shell import CommandResult, Shell
from tests.support import Clock, open_services

pytestmark = pytest.mark.smoke

SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "number"}, "to": {"type": "string"}, "pin": {"type": "string"}},
    "additionalProperties": False,
}
PAY = ToolSpec("pay", "write", schema=SCHEMA, describe="Pay {amount} to {to}", secret=("pin",))
ADD = ("grants", "add", "pay", "--for", "2h", "--reason", "rent week")


async def propose_payment(shell: Shell, number: int, amount: object, to: str = "bob", agent: str = "office") -> str:
    """The id of a call that was let through; empty if people are asked."""
    async with open_services(shell.path, Clock(wall_clock())) as services:
        call = propose("pay", {"amount": amount, "to": to}, "run", f"call{number}", agent=agent)
        outcome = await services.gate.check(call, PAY)
        return outcome.approval_id if isinstance(outcome, Proceed) else ""


def only_grant(shell: Shell, *words: str) -> dict[str, object]:
    (item,) = shell("grants", "list", *words, "--json").json["items"]
    assert isinstance(item, dict)
    return item


def assert_refused(done: CommandResult, code: int, *words: str) -> None:
    assert (done.code, done.out) == (code, ""), done
    assert done.err.startswith("Error: "), done.err
    assert done.err.count("\n") == 1, done.err
    assert [word for word in words if word not in done.err] == [], done.err


async def test_a_grant_is_made_used_shown_and_revoked(shell: Shell) -> None:  # R51
    assert not await propose_payment(shell, 1, 20)
    limits = (
        "--agent",
        "off*",
        "--when",
        'args.to == "bob"',
        "--uses",
        "10",
        "--budget",
        "50",
        "--budget-of",
        "amount",
    )
    made = shell(*ADD, *limits, "--user", "ada")
    assert (made.code, made.err) == (0, "")
    for words in ("off* may call pay without approval until", '(for 2h 00m), if args.to == "bob"', "10 times at most"):
        assert words in made.out
    assert "up to 50 of amount in total" in made.out
    grant_id = str(only_grant(shell)["id"])
    assert f"interlock grants revoke {grant_id[-8:]}" in made.out

    first, second = await propose_payment(shell, 2, 30.1), await propose_payment(shell, 3, 12.5)
    assert first
    assert second
    assert not await propose_payment(shell, 4, 7.5), "7.4 is left"
    assert not await propose_payment(shell, 5, 1, to="eve")
    assert not await propose_payment(shell, 6, 1, agent="shop")

    heads, row = shell("grants", "list").out.splitlines()
    assert heads.split()[:4] == ["ID", "TOOL", "AGENT", "WHEN"]
    for words in (grant_id[-8:], "pay", "off*", 'args.to == "bob"', "1h 59m", "8", "7.4 amount", "ada", "rent week"):
        assert words in row
    shown = shell("grants", "show", grant_id[-8:]).out
    for words in ("active", "2 of 10", "42.6 of 50 spent, counted in amount", "by ada", "rent week", PAY.sha256):
        assert words in shown
    lines = [line.split(maxsplit=5)[2:] for line in shown.splitlines() if "Pay " in line]
    assert lines == [
        [second[-8:], "approved", "12.5", "Pay 12.5 to bob"],
        [first[-8:], "approved", "30.1", "Pay 30.1 to bob"],
    ]

    card = shell("approvals", "show", first).out
    assert f"{grant_id}, made by ada" in card
    assert f"Covered by the grant {grant_id}, which ada made." in card.partition("Timeline")[2]

    revoked = shell("grants", "revoke", grant_id[:13], "--reason", "the week is over", "--user", "ada")
    assert (revoked.code, revoked.err) == (0, "")
    assert "pay needs approval again" in revoked.out
    assert not await propose_payment(shell, 7, 1)
    assert "nothing changed" in shell("grants", "revoke", grant_id).out
    assert shell("grants", "list").out == "There are no active grants. To include ended ones: --all\n"
    assert "revoked" in shell("grants", "list", "--all").out
    assert "by ada: the week is over" in shell("grants", "show", grant_id).out
    assert shell("audit", "verify").code == 0


async def test_grants_in_json_say_all_that_is_left(shell: Shell) -> None:  # R51
    await propose_payment(shell, 1, 20)
    made = shell(*ADD, "--uses", "3", "--budget", "100.50", "--budget-of", "/amount", "--json").json
    assert made["warnings"] == []
    approval_id = await propose_payment(shell, 2, 0.3)
    item = only_grant(shell)
    limits = {"uses": 1, "max_uses": 3, "uses_left": 2, "budget": "100.5", "spent": "0.3", "budget_left": "100.2"}
    assert {name: item[name] for name in limits} == limits
    assert (item["id"], item["state"], item["tool"], item["agent"]) == (made["id"], "active", "pay", "*")
    shown = shell("grants", "show", str(item["id"]), "--json").json
    (call,) = shown["calls"]
    assert (call["approval_id"], call["amount"], call["status"]) == (approval_id, "0.3", "approved")
    gone = shell("grants", "revoke", str(item["id"]), "--reason", "done", "--json").json
    assert gone["state"] == "revoked"
    assert shell("grants", "show", str(item["id"]), "--json").json["revoked_reason"] == "done"
    assert shell("grants", "list", "--json").json == {"items": [], "next": None}
    assert only_grant(shell, "--all")["budget_left"] == "100.2"


async def test_a_grant_without_limits_is_warned_about(shell: Shell) -> None:  # R51
    await propose_payment(shell, 1, 20)
    broad = shell(*ADD)
    assert broad.code == 0
    assert broad.err.startswith("Warning: the only limit is time")
    assert shell(*ADD, "--json").json["warnings"][0].startswith("the only limit is time")
    for limit in (("--uses", "1"), ("--budget", "1", "--budget-of", "amount"), ("--when", "args.amount < 10")):
        assert shell(*ADD, *limit).err == "", limit


async def test_several_definitions_of_a_tool_are_warned_about(shell: Shell) -> None:  # R47, R51
    async with open_services(shell.path, Clock(wall_clock())) as services:
        for number, describe in enumerate(("Pay", "Send")):
            spec = ToolSpec("pay", "write", describe=describe)
            await services.gate.check(propose("pay", {}, "run", f"call{number}"), spec)
    made = shell(*ADD, "--uses", "1")
    assert "1 other definition is in use for pay" in made.err


async def test_a_grant_for_a_tool_that_nobody_called_is_refused(shell: Shell) -> None:  # R51
    await propose_payment(shell, 1, 20)
    unknown = shell("grants", "add", "payy", "--for", "2h", "--reason", "x")
    assert_refused(unknown, 1, "No call of 'payy' has been seen", "Did you mean pay?")
    elsewhere = shell(*ADD, "--workspace", "other", "--json")
    assert (elsewhere.code, elsewhere.json["error"], elsewhere.json["tool"]) == (1, "not_found", "pay")


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("--for", "2y"), 2, "is not a duration"),
        (("--for", "367d"), 2, "within a year"),
        (("--for", "0s"), 2, "in the future"),
        (("--reason", " "), 2, "--reason is empty"),
        (("--reason", "a" * 501), 2, "at most 500 characters"),
        (("--uses", "0"), 2, "at least one use"),
        (("--budget", "5"), 2, "must be given together"),
        (("--budget", "1e9", "--budget-of", "amount"), 2, "number above 0"),
        (("--budget", "5", "--budget-of", "amont"), 2, "There are: amount, pin, to"),
        (("--budget", "5", "--budget-of", "pin"), 2, "is secret"),
        (("--when", "args.amount <"), 2, "condition"),
        (("--user", "policy"), 1, "people, never a program"),
        (("--user", "agent:office"), 1, "people, never a program"),
        (("--user", "vic"), 1, "Only reviewers and admins"),
    ],
)
async def test_a_wrong_grant_is_refused_in_one_line(
    shell: Shell, words: tuple[str, ...], code: int, complaint: str
) -> None:  # R51
    await propose_payment(shell, 1, 20)
    async with open_services(shell.path, Clock(wall_clock())) as services:
        await services.store.put_user("default", User("vic", "viewer"), "test")
    assert_refused(shell(*ADD, *words), code, complaint)
    assert shell("grants", "list", "--all", "--json").json["items"] == []


async def test_only_its_maker_or_an_admin_revokes_a_grant(shell: Shell) -> None:  # R48, R51
    await propose_payment(shell, 1, 20)
    async with open_services(shell.path, Clock(wall_clock())) as services:
        for name in ("bob", "eve"):
            await services.store.put_user("default", User(name), "test")
    grant_id = shell(*ADD, "--uses", "1", "--user", "bob", "--json").json["id"]
    assert_refused(shell("grants", "revoke", grant_id, "--user", "eve"), 1, "bob made this grant")
    assert only_grant(shell)["state"] == "active"


async def test_ids_that_fit_none_or_several_are_refused(shell: Shell) -> None:  # R51
    await propose_payment(shell, 1, 20)
    ids = [shell(*ADD, "--uses", "1", "--json").json["id"] for _ in range(2)]
    assert_refused(shell("grants", "show", "abc"), 2, "too short")
    assert_refused(shell("grants", "show", "zzzz"), 1, "no grant 'zzzz'", "interlock grants list --all")
    assert_refused(shell("grants", "revoke", ids[0][:8]), 1, "matches several grants", *ids)
    assert len(shell("grants", "list", "--json").json["items"]) == 2


async def test_a_word_that_hides_something_is_shown_as_it_is(shell: Shell) -> None:  # R51, design rule 8
    await propose_payment(shell, 1, 20)
    made = shell(*ADD, "--uses", "1", "--agent", "off\u202eice", "--json")
    assert made.json["error"] == "invalid_request"
    grant_id = shell("grants", "add", "pay", "--for", "2h", "--reason", "a\u202eb", "--uses", "1", "--json").json["id"]
    for out in (shell("grants", "list").out, shell("grants", "show", grant_id).out):
        assert "\u202e" not in out
        assert "a\\u{202e}b" in out.lower()


async def test_uses_that_lie_too_far_back_are_said_to_be_missing(shell: Shell) -> None:  # R51
    await propose_payment(shell, 1, 20)
    grant_id = shell(*ADD, "--uses", "500", "--json").json["id"]
    async with open_services(shell.path, Clock(wall_clock())) as services:
        for number in range(60):
            call = propose("pay", {"amount": number}, "run", f"many{number}")
            assert isinstance(await services.gate.check(call, PAY), Proceed)
    shown = shell("grants", "show", grant_id).out
    assert shown.count("Pay: amount = ") == 50
    assert "50 of 60 calls: the newest" in shown
    assert len(json.loads(shell("grants", "show", grant_id, "--json").out)["calls"]) == 50

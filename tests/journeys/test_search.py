"""Searching on the command line."""

from __future__ import annotations

import pytest

from interlock.app.bootstrap import wall_clock
from interlock.cli.commands.approvals import SearchOptions
from interlock.core.errors import InvalidRequest
from tests.journeys.seeds import propose_mail, propose_payment
from tests.journeys.shell import CommandResult, Shell

pytestmark = pytest.mark.smoke

HOUR = 3_600_000


def result_ids(done: CommandResult) -> list[str]:
    assert done.code == 0, done
    assert done.json["behind"] is False
    return [item["id"] for item in done.json["items"]]


async def test_a_person_finds_an_old_decision_by_what_they_remember(shell: Shell) -> None:  # R8
    old = await propose_mail(
        shell, 1, ago=50 * HOUR, args={"to": "bob", "subject": "Quarterly report"}, requester="zoe"
    )
    new = await propose_mail(shell, 2, args={"to": "carol", "subject": "Lunch"})
    paid = await propose_payment(shell, {"amount": 120, "to": "bob", "key": "hunter2"}, 3)
    shell("approvals", "reject", new, "--user", "ann", "--reason", "Not in work time")
    listed = ("approvals", "list", "--json")
    for words, ids in (
        (("--search", "quarterly rep"), [old]),
        (("--search", "work time"), [new]),
        (("--search", "hunter2"), []),
        (("--search", "bob"), [paid, old]),
        (("--search", "bob", "--tool", "pay"), [paid]),
        (("--search", "bob", "--status", "pending"), [paid]),
        (("--search", "bob", "--status", "expired", "--status", "rejected"), [old]),
        (("--person", "ann"), [new]),
        (("--person", "zoe"), [old]),
        (("--arg", "to=bob"), [paid, old]),
        (("--arg", "to=bob", "--arg", "amount=120.0"), [paid]),
        (
            (
                "--arg",
                'amount="120"',
            ),
            [],
        ),
        (("--since", "1d"), [paid, new]),
        (("--until", "1d"), [old]),
        (("--since", "2020-01-31", "--until", "2020-02-01T14:00"), []),
        (("--agent", "writer", "--status", "all"), [new, old]),
        (("--agent", "writer"), []),
    ):
        assert result_ids(shell(*listed, *words)) == ids, words


async def test_a_search_is_shown_as_a_list(shell: Shell) -> None:
    await propose_mail(shell, 1)
    await propose_mail(shell, 2, args={"to": "carol"})
    out = shell("approvals", "list", "--search", "carol").out
    assert "Mail carol" in out
    assert "Mail bob" not in out
    assert shell("approvals", "list", "--search", "nobody").out == "No approvals found.\n"
    told = shell("approvals", "list", "--search", "nobody", "--status", "pending").out
    assert told == "No pending approvals match. To search all: --status all\n"


async def test_pages_of_a_search_are_turned_by_cursor(shell: Shell) -> None:
    ids = [await propose_mail(shell, number) for number in range(5)]
    words = ("approvals", "list", "--search", "bob", "--limit", "2", "--json")
    first = shell(*words).json
    second = shell(*words, "--cursor", first["next"]).json
    third = shell(*words, "--cursor", second["next"]).json
    assert [item["id"] for page in (first, second, third) for item in page["items"]] == ids[::-1]
    assert third["next"] is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--search", "?!"), "There is no word to search for. Give letters or digits."),
        (("--arg", "bob"), "--arg 'bob' is not PATH=VALUE. Write --arg to=bob or --arg order.total=100."),
        (("--arg", "to=[1]"), "The argument to is compared with a text, a number, true, false or null."),
        (("--since", "tomorrow"), "--since 'tomorrow' is not a time. Write 90m, 7d, 2026-01-31 or 2026-01-31T14:00."),
        (("--until", "99999999d"), "too long"),
        (("--status", "open"), "There is no status 'open'."),
        (("--search", "x", "--cursor", "nonsense"), "This cursor is not one that this list gave."),
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused(shell: Shell, words: tuple[str, ...], told: str) -> None:
    await propose_mail(shell)
    done = shell("approvals", "list", *words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err


@pytest.mark.parametrize(
    ("typed", "value"),
    [("a=5", 5), ("a=5.5", 5.5), ("a=true", True), ("a=null", None), ('a="5"', "5"), ("a=x=y", "x=y"), ("a=", "")],
)
def test_a_value_is_json_if_it_can_be_read_as_such(typed: str, value: object) -> None:
    assert SearchOptions(arg=[typed]).query((), 0).arguments == (("a", value),)


def test_times_are_ago_or_on_the_clock_of_who_types_them() -> None:
    now = wall_clock()
    query = SearchOptions(since="2h", until="2026-01-31T10:00+02:00").query((), now)
    assert query.since == now - 2 * HOUR
    assert query.until == 1_769_846_400_000
    assert SearchOptions(since="3650d").query((), 1_000).since == 0
    with pytest.raises(InvalidRequest, match="is not a time"):
        SearchOptions(since="9999-99-99").query((), now)

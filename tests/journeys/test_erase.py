"""`interlock erase`: asks first, says what went and what had to stay, and leaves a record that verifies."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from interlock.app.bootstrap import wall_clock
from interlock.core.ledger.event import Payload
from tests.journeys.seeds import MAIL
from tests.journeys.shell import Shell
from tests.support import Clock, approve, open_services, propose_pending

pytestmark = pytest.mark.smoke

DAY = 86_400_000
PATIENT = "defaults: {expires_in: 30d}"


async def send_mail(shell: Shell, number: int = 1, *, ago: int = 0, **more: object) -> str:
    """The id of a mail that went out `ago` milliseconds before now."""
    async with open_services(shell.path, Clock(wall_clock() - ago), PATIENT) as services:
        approval_id = await propose_pending(
            services, number, MAIL, **{"args": {"to": "harriet"}, "agent": "writer", **more}
        )
        await approve(services, approval_id)
        execution = await services.gate.start("default", approval_id, "r")
        payload = Payload(result=b'"sent"')
        await services.gate.finish("default", approval_id, execution.fence, ok=True, payload=payload)
        return approval_id


async def make_pending(shell: Shell, number: int = 2, **more: object) -> str:
    async with open_services(shell.path, Clock(wall_clock()), PATIENT) as services:
        return await propose_pending(services, number, MAIL, **{"args": {"to": "harriet"}, **more})


def read_args(shell: Shell, approval_id: str) -> Mapping[str, object] | None:
    return shell("approvals", "show", approval_id, "--json").json["args"]  # type: ignore[no-any-return]


async def test_one_approval_is_erased_and_its_card_says_so(shell: Shell) -> None:  # R49
    approval_id = await send_mail(shell)
    done = shell("erase", "--approval", approval_id[-8:], "--reason", "a mistake", "--user", "ada")
    assert (done.code, done.out) == (0, "Erased 1 approval and the details of 3 ledger entries.\n"), done
    card = shell("approvals", "show", approval_id).out
    assert "harriet" not in card
    assert "The content of this call was erased." in card
    assert "UTC by ada" in card
    assert "succeeded" in card
    assert shell("audit", "verify").code == 0
    again = shell("erase", "--approval", approval_id)
    assert (again.code, again.out) == (0, "Nothing to erase.\n")


async def test_what_is_open_is_left_named_and_exits_with_1(shell: Shell) -> None:
    gone, left = await send_mail(shell, thread_id="t"), await make_pending(shell, thread_id="t")
    done = shell("erase", "--thread", "t")
    assert done.code == 1
    assert done.out.splitlines() == [
        "Erased 1 approval and the details of 3 ledger entries.",
        "Kept, since they have not finished: 1 approval.",
        f"  {left[-8:]}  pending",
        "Run the command again when they have finished.",
    ]
    assert (read_args(shell, gone), read_args(shell, left)) == (None, {"to": "harriet"})
    body = shell("erase", "--thread", "t", "--json").json
    assert body == {
        "approvals": 0,
        "entries": 0,
        "threads": 0,
        "open": [{"id": left, "status": "pending"}],
        "dry_run": False,
    }


async def test_a_dry_run_changes_nothing(shell: Shell) -> None:
    approval_id = await send_mail(shell, requester="zoe")
    head = shell("audit", "head").out
    done = shell("erase", "--person", "zoe", "--dry-run")
    assert done.code == 0
    assert done.out == "This would erase 1 approval and the details of 3 ledger entries. Nothing was changed.\n"
    assert (shell("audit", "head").out, read_args(shell, approval_id)) == (head, {"to": "harriet"})


@pytest.mark.parametrize(("answer", "is_erased"), [("y", True), ("n", False)])
async def test_at_a_terminal_it_asks_first(shell: Shell, answer: str, is_erased: bool) -> None:
    approval_id = await send_mail(shell)
    with shell.terminal("erase", "--approval", approval_id) as terminal:
        terminal.assert_shows("This permanently erases 1 approval", "Earlier backups", "Erase it?")
        terminal.press(f"{answer}\n")
        assert terminal.exit_code() == (0 if is_erased else 1)
    assert (read_args(shell, approval_id) is None) is is_erased


async def test_with_yes_nobody_is_asked(shell: Shell) -> None:
    approval_id = await send_mail(shell)
    with shell.terminal("erase", "--approval", approval_id, "--yes") as terminal:
        terminal.assert_shows("Erased 1 approval")
        assert terminal.exit_code() == 0


async def test_only_admins_erase(shell: Shell) -> None:
    approval_id = await send_mail(shell, ago=2 * DAY)
    shell("users", "add", "bob")
    for words in (["--approval", approval_id], ["--retention"]):
        done = shell("erase", *words, "--user", "bob")
        assert (done.code, done.out, "Ask an admin" in done.err) == (1, "", True), done
    assert read_args(shell, approval_id) is not None


@pytest.mark.parametrize(
    "words",
    [[], ["--thread", "a", "--person", "b"], ["--retention", "--dry-run"], ["--thread", "a", "--reason", "x" * 501]],
)
def test_wrong_use_exits_with_2(shell: Shell, words: list[str]) -> None:
    shell("migrate")
    done = shell("erase", *words)
    assert (done.code, done.out) == (2, ""), done


async def test_what_the_settings_no_longer_keep_is_erased_on_demand(shell: Shell) -> None:  # R30
    old, recent = await send_mail(shell, 1, ago=3 * DAY), await send_mail(shell, 2)
    (shell.folder / "interlock.yaml").write_text("storage: {retention: forever}")
    done = shell("erase", "--retention")
    assert (done.code, "is forever" in done.err) == (2, True)
    (shell.folder / "interlock.yaml").write_text("storage: {retention: 2d}")
    done = shell("erase", "--retention", "--json")
    assert done.json == {"approvals": 1, "entries": 3, "threads": 0, "open": [], "dry_run": False}
    assert (read_args(shell, old), read_args(shell, recent)) == (None, {"to": "harriet"})
    assert shell("erase", "--retention").out == "Nothing to erase.\n"
    assert shell("audit", "verify").code == 0


async def test_a_look_erases_nothing(shell: Shell) -> None:
    """The default keeps content for a day; a list must not be what takes the rest away."""
    approval_id = await send_mail(shell, ago=30 * DAY)
    shell("approvals", "list", "--status", "all")
    assert read_args(shell, approval_id) == {"to": "harriet"}

"""`interlock audit`: a sound record is found sound, and whatever somebody does to the tables is found."""

from __future__ import annotations

import json
import sqlite3

import pytest

from interlock.wiring import wall_clock
from tests.journeys.programs import Done, Shell
from tests.journeys.seeds import mail, pay
from tests.support import Clock, opened, pending


async def recorded(shell: Shell) -> tuple[str, str]:
    """An edited and approved mail, and a pending payment with a secret: 5 entries."""
    sent = await mail(shell)
    shell("approvals", "edit", sent, "--args", '{"to": "carol"}')
    waiting = await pay(shell, {"amount": 5, "key": "hunter2"}, 2)
    shell("approvals", "approve", waiting, "--user", "ada", "--comment", "x" * 501)
    return sent, waiting


def tamper(shell: Shell, *statements: str) -> None:
    with sqlite3.connect(shell.path) as connection:
        triggers = connection.execute("select name from sqlite_master where type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"drop trigger {name}")
        for statement in statements:
            connection.execute(statement)
    connection.close()


def assert_invalid(done: Done, *words: str) -> None:
    assert done.code == 1, done
    assert "INVALID" in done.out
    assert [word for word in words if word not in done.out] == [], done.out


async def test_a_sound_record_is_valid(shell: Shell) -> None:
    await recorded(shell)
    head = shell("audit", "head").json
    done = shell("audit", "verify")
    assert (done.code, done.out) == (0, f"valid: {head['seq']} entries, head {head['link']}\n")
    body = shell("audit", "verify", "--json").json
    assert (body["valid"], body["entries"], body["faults"]) == (True, head["seq"], [])


def test_an_empty_ledger_and_a_missing_workspace_are_valid(shell: Shell) -> None:
    shell("migrate")
    for words in ([], ["--workspace", "nowhere"]):
        done = shell("audit", "verify", *words)
        assert done.code == 0
        assert done.out.startswith("valid: 0 entries")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("update events set actor = 'mallory' where seq = 2", "entry 2: The entry was altered"),
        (
            "update events set data = replace(data, 'pending', 'approved') where seq = 1",
            "entry 1: The entry was altered",
        ),
        ("delete from events where seq = 2", "Entry 2 is missing"),
        ("delete from events where seq = (select max(seq) from events)", "the tail was cut"),
        ("update contents set content = cast('{}' as blob) where seq = 1", "The content of the entry was altered"),
        ("update contents set content = '{}' where seq = 1", "entry 1: The entry was altered: it cannot be read"),
        ("update events set at = 'noon' where seq = 2", "entry 2: The entry was altered"),
        ("update heads set seq = seq + 1", "The stored head is not the end of the chain"),
        ("update approvals set status = 'approved' where status = 'pending'", "the ledger says pending"),
        ("update approvals set args_sha256 = binding where status = 'pending'", "Its arguments were altered"),
        ("update approvals set binding = args_sha256 where status = 'pending'", "Its row is bound to other arguments"),
        ("update approvals set tool = 'drop_table' where status = 'pending'", "Its row was altered"),
        ("update payloads set args = cast('{}' as blob) where shown is null", "Its arguments were altered"),
        ("update payloads set args = cast('{}' as blob) where shown is not null", "Its row was altered"),
        ("update payloads set args = 'a text' where shown is null", "Its row cannot be read"),
        ("delete from payloads where shown is not null", "Its arguments are gone"),
        ("delete from approvals where status = 'pending'", "its row is gone"),
        ("update approvals set decision = 'nonsense' where status = 'approved'", "cannot be read"),
    ],
)
async def test_tampering_is_found(shell: Shell, statement: str, words: str) -> None:
    await recorded(shell)
    tamper(shell, statement)
    assert_invalid(shell("audit", "verify"), words)


async def test_a_row_of_which_the_ledger_knows_nothing_is_found(shell: Shell) -> None:
    await recorded(shell)
    tamper(
        shell,
        "create temp table copy as select * from approvals where status = 'pending'",
        "update copy set id = 'forged', call_id = 'forged'",
        "insert into approvals select * from copy",
    )
    assert_invalid(shell("audit", "verify"), "approval forged: The ledger knows nothing of it.")


async def test_a_cut_tail_is_found_with_a_head_that_was_kept_elsewhere(shell: Shell) -> None:
    await mail(shell)
    short = shell("audit", "head").out
    await mail(shell, 2)
    (shell.folder / "head.json").write_text(shell("audit", "head").out)
    assert shell("audit", "verify", "--head", "head.json").code == 0
    old = json.loads(short)
    tamper(
        shell,
        f"delete from events where seq > {old['seq']}",
        f"delete from contents where seq > {old['seq']}",
        "delete from approvals where call_id = 'call2'",
        f"update heads set seq = {old['seq']}, link = '{old['link']}', at = {old['at']}",
    )
    assert shell("audit", "verify").code == 0  # the chain alone does not show it
    assert_invalid(shell("audit", "verify", "--head", "head.json"), "The chain ends before the head")


async def test_a_head_that_is_older_than_the_ledger_still_fits(shell: Shell) -> None:
    await mail(shell)
    (shell.folder / "head.json").write_text(shell("audit", "head").out)
    await mail(shell, 2)
    assert shell("audit", "verify", "--head", "head.json").code == 0


async def test_details_that_were_erased_leave_the_record_valid(shell: Shell) -> None:
    sent, _ = await recorded(shell)
    shell("approvals", "reject", sent)
    tamper(shell, "delete from contents where seq = 1")
    done = shell("audit", "verify")
    assert done.code == 0
    assert "1 were erased" in done.out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "is not JSON"),
        ('{"seq": 1}', "is not what `interlock audit head` prints"),
        ('{"workspace": "other", "seq": 1, "link": "x", "at": 1}', "Say --workspace other"),
    ],
)
def test_a_head_that_is_none_is_refused(shell: Shell, text: str, words: str) -> None:
    shell("migrate")
    (shell.folder / "head.json").write_text(text)
    done = shell("audit", "verify", "--head", "head.json")
    assert (done.code, done.out) == (2, "")
    assert words in done.err


async def test_a_record_that_others_go_on_writing_is_valid(shell: Shell) -> None:
    await mail(shell, 0)
    async with opened(shell.path, Clock(wall_clock())) as parts:
        verifying = shell.start("audit", "verify")
        number = 0
        while verifying.poll() is None:
            number += 1
            await pending(parts, f"busy{number}")
    out, err = verifying.communicate()
    assert (verifying.returncode, err) == (0, b""), out
    assert out.startswith(b"valid: ")
    assert number > 1

"""`interlock audit`: a sound record is found sound, and whatever somebody does to the tables is found."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from interlock.app.bootstrap import wall_clock
from interlock.core.ledger.chain import Head, make_entry
from interlock.core.ledger.event import Event
from tests.journeys.seeds import propose_mail, propose_payment
from tests.journeys.shell import TIMEOUT, CommandResult, Shell
from tests.support import Clock, open_services, propose_pending

pytestmark = pytest.mark.smoke


async def record_calls(shell: Shell) -> tuple[str, str]:
    """An edited and approved mail, and a pending payment with a secret: 5 entries."""
    sent = await propose_mail(shell)
    shell("approvals", "edit", sent, "--args", '{"to": "carol"}')
    waiting = await propose_payment(shell, {"amount": 5, "key": "hunter2"}, 2)
    shell("approvals", "approve", waiting, "--user", "ada", "--comment", "x" * 501)
    return sent, waiting


def tamper(shell: Shell, *statements: str) -> None:
    with sqlite3.connect(shell.path) as connection:
        triggers = connection.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"drop trigger {name}")
        for statement in (*statements, *(made for _, made in triggers)):
            connection.execute(statement)
    connection.close()


def assert_invalid(done: CommandResult, *words: str) -> None:
    assert done.code == 1, done
    assert "INVALID" in done.out
    assert [word for word in words if word not in done.out] == [], done.out


async def test_a_sound_record_is_valid(shell: Shell) -> None:
    await record_calls(shell)
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
        ("update events set actor = 'mallory' where seq = 2", "entry 2: The entry, or one before it, was altered"),
        (
            "update events set data = replace(data, 'pending', 'approved') where seq = 1",
            "entry 1: The entry, or one before it, was altered",
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
        ("update approvals set tool = 'drop_table' where status = 'pending'", "tool is drop_table in its row"),
        ("update payloads set args = cast('{}' as blob) where shown is null", "Its arguments were altered"),
        ("update payloads set args = cast('{}' as blob) where shown is not null", "Its row was altered"),
        ("update payloads set args = 'a text' where shown is null", "Its row cannot be read"),
        ("delete from payloads where shown is not null", "Its arguments are missing, and no entry records an erasure"),
        ("delete from approvals where status = 'pending'", "Its row is missing"),
        ("update approvals set decision = 'nonsense' where status = 'approved'", "cannot be read"),
        ("update approvals set requester = 'mallory'", "requester is mallory in its row; the ledger says"),
        ("update payloads set sentence = 'Nothing'", "sentence in its row differs from the ledger."),
        (
            "insert into users (workspace, name, role, teams) values ('default', 'mallory', 'admin', '[]')",
            "user mallory: No entry of the ledger records its creation.",
        ),
    ],
)
async def test_tampering_is_found(shell: Shell, statement: str, words: str) -> None:
    await record_calls(shell)
    tamper(shell, statement)
    assert_invalid(shell("audit", "verify"), words)


async def test_a_row_of_which_the_ledger_knows_nothing_is_found(shell: Shell) -> None:
    await record_calls(shell)
    tamper(
        shell,
        "create temp table copy as select * from approvals where status = 'pending'",
        "update copy set id = 'forged', call_id = 'forged'",
        "insert into approvals select * from copy",
    )
    assert_invalid(shell("audit", "verify"), "approval forged: The ledger has no entry about it.")


async def test_a_cut_tail_is_found_with_a_head_that_was_kept_elsewhere(shell: Shell) -> None:
    await propose_mail(shell)
    short = shell("audit", "head").out
    await propose_mail(shell, 2)
    (shell.folder / "head.json").write_text(shell("audit", "head").out)
    assert shell("audit", "verify", "--head", "head.json").code == 0
    old = json.loads(short)
    tamper(
        shell,
        f"delete from events where seq > {old['seq']}",
        f"delete from contents where seq > {old['seq']}",
        "delete from approvals where call_id = 'call2'",
        "update tallies set n = 1 where status = 'pending'",
        f"update heads set seq = {old['seq']}, link = '{old['link']}', at = {old['at']}",
    )
    assert shell("audit", "verify").code == 0  # the chain alone does not show it
    assert_invalid(shell("audit", "verify", "--head", "head.json"), "The chain ends before the saved head")


async def test_a_head_that_is_older_than_the_ledger_still_fits(shell: Shell) -> None:
    await propose_mail(shell)
    (shell.folder / "head.json").write_text(shell("audit", "head").out)
    await propose_mail(shell, 2)
    assert shell("audit", "verify", "--head", "head.json").code == 0


def append(shell: Shell, event: Event) -> None:
    with sqlite3.connect(shell.path) as connection:
        head = Head(*connection.execute("select workspace, seq, link, at from heads").fetchone())
        entry = make_entry(event, head, head.at, b"")
        names = "workspace, seq, at, kind, actor, approval_id, data, digest, link"
        connection.execute(f"insert into events ({names}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)", entry[:9])
        connection.execute("update heads set seq = ?, link = ?", (entry.seq, entry.link))
    connection.close()


async def erase(shell: Shell, approval_id: str, *ranges: tuple[int, int], told: bool = True, row: bool = True) -> None:
    """As erasing an approval leaves the tables."""
    if told:
        data = {"scope": "approval", "entries": [list(each) for each in ranges], "approvals": 1}
        append(shell, Event("erased", "ann", data))
    tamper(shell, *(f"delete from contents where seq between {first} and {last}" for first, last in ranges))
    if row:
        tamper(
            shell,
            f"update approvals set args_sha256 = '', nonce = '' where id = '{approval_id}'",
            f"delete from payloads where id = '{approval_id}'",
        )


async def test_what_was_erased_is_said_and_leaves_the_record_valid(shell: Shell) -> None:
    sent, _ = await record_calls(shell)
    await erase(shell, sent, (1, 3))
    done = shell("audit", "verify")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^erased: 3 entries of one approval by ann on \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", done.out, re.M)
    (told,) = shell("audit", "verify", "--json").json["erasures"]
    assert (told["scope"], told["actor"], told["entries"], told["times"]) == ("approval", "ann", 3, 1)
    shell("audit", "export", "--out", "e.tsv")
    assert "erased: 3 entries of one approval by ann" in shell("audit", "verify", "--export", "e.tsv").out


@pytest.mark.parametrize(
    ("ranges", "told", "row", "words"),
    [
        (
            [(1, 3)],
            False,
            False,
            "entry 1: The contents of entries 1 to 3 are missing, and no entry records an erasure.",
        ),
        ([(1, 3)], False, True, "Its arguments are missing, and no entry records an erasure."),
        ([(2, 3)], True, True, "Its arguments are missing, and no entry records an erasure."),
    ],
)
async def test_what_nobody_says_was_erased_is_found(
    shell: Shell, ranges: list[tuple[int, int]], told: bool, row: bool, words: str
) -> None:
    sent, _ = await record_calls(shell)
    await erase(shell, sent, *ranges, told=told, row=row)
    assert_invalid(shell("audit", "verify"), words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "is not JSON"),
        ('{"seq": 1}', "is not output of `interlock audit head`"),
        ('{"workspace": "other", "seq": 1, "link": "x", "at": 1}', "Use --workspace other"),
    ],
)
def test_a_head_that_is_none_is_refused(shell: Shell, text: str, words: str) -> None:
    shell("migrate")
    (shell.folder / "head.json").write_text(text)
    done = shell("audit", "verify", "--head", "head.json")
    assert (done.code, done.out) == (2, "")
    assert words in done.err


async def test_a_record_that_others_go_on_writing_is_valid(shell: Shell) -> None:
    await propose_mail(shell, 0)
    async with open_services(shell.path, Clock(wall_clock())) as services:
        verifying = shell.start("audit", "verify")
        number = 0
        while verifying.poll() is None:
            number += 1
            await propose_pending(services, f"busy{number}")
    out, err = verifying.communicate()
    assert (verifying.returncode, err) == (0, b""), out
    assert out.startswith(b"valid: ")
    assert number > 1


# --- in parts


@pytest.mark.nightly
async def test_several_processes_find_the_same(shell: Shell) -> None:
    await record_calls(shell)
    verify = ("audit", "verify", "--jobs")
    assert shell.process(*verify, "3", "--json").json == shell(*verify, "1", "--json").json
    tamper(shell, "update events set actor = 'mallory' where seq = 2")
    three = shell.process(*verify, "3")
    assert three == shell(*verify, "1")
    assert_invalid(three, "entry 2: The entry, or one before it, was altered")
    tamper(shell, "delete from events where seq = 2")
    assert shell.process(*verify, "2") == shell(*verify, "1")


@pytest.mark.nightly
async def test_more_processes_than_entries_are_no_harm(shell: Shell) -> None:
    await propose_mail(shell)
    assert shell.process("audit", "verify", "--jobs", "8").code == 0


# --- signing


def keygen(shell: Shell, name: str) -> str:
    return shell("audit", "keygen", name).out.splitlines()[-1]


async def test_a_signed_head_is_trusted_by_its_key_alone(shell: Shell) -> None:
    await record_calls(shell)
    key, other = keygen(shell, "key.pem"), keygen(shell, "other.pem")
    (shell.folder / "key.pub").write_text(key + "\n")
    (shell.folder / "unsigned.json").write_text(shell("audit", "head").out)
    shell.extra["INTERLOCK_SIGNING_KEY"] = "key.pem"
    head = shell("audit", "head")
    (shell.folder / "head.json").write_text(head.out)
    assert (head.json["key"], head.json["fingerprint"]) == (key, sha256(key.encode()).hexdigest()[:16])
    (shell.folder / "altered.json").write_text(head.out.replace(f'"seq": {head.json["seq"]}', '"seq": 1'))
    for trusted in (key, "key.pub"):
        done = shell("audit", "verify", "--head", "head.json", "--key", trusted)
        assert done.code == 0
        assert "by the trusted key" in done.out
    for name, trusted, words in (
        ("unsigned.json", key, "The head unsigned.json is not signed."),
        ("altered.json", key, "The head altered.json was altered: its signature does not match."),
        ("altered.json", "", "The head altered.json was altered: its signature does not match."),
        ("head.json", other, f"is signed by another key: fingerprint {head.json['fingerprint']}, not "),
    ):
        done = shell("audit", "verify", "--head", name, *(["--key", trusted] if trusted else []))
        assert (done.code, done.out) == (1, "")
        assert words in done.err


async def test_without_a_trusted_key_a_signature_shows_integrity_and_not_origin(shell: Shell) -> None:
    await propose_mail(shell)
    key = keygen(shell, "key.pem")
    (shell.folder / "interlock.yaml").write_text("audit: {signing_key: key.pem}")
    (shell.folder / "head.json").write_text(shell("audit", "head").out)
    done = shell("audit", "verify", "--head", "head.json")
    mark = sha256(key.encode()).hexdigest()[:16]
    assert done.code == 0
    assert f"was not altered since the key {mark} signed it. This does not prove whose key it is" in done.out
    (told,) = shell("audit", "verify", "--head", "head.json", "--json").json["signatures"]
    assert (told["of"], told["key"], told["trusted"]) == ("head.json", key, False)


def test_a_key_is_made_once_and_for_its_owner(shell: Shell) -> None:
    made = shell("audit", "keygen", "key.pem", "--json").json
    assert re.fullmatch("[0-9a-f]{64}", made["key"])
    assert (shell.folder / "key.pem").stat().st_mode & 0o777 == 0o600
    again = shell("audit", "keygen", "key.pem")
    assert (again.code, again.out) == (2, "")
    assert "already exists, and a key is never replaced" in again.err


async def test_a_signing_key_that_cannot_be_used_is_refused(shell: Shell) -> None:
    await propose_mail(shell)
    shell.extra["INTERLOCK_SIGNING_KEY"] = "nowhere.pem"
    for words in (["head"], ["export"]):
        done = shell("audit", *words)
        assert (done.code, done.out) == (2, "")
        assert "nowhere.pem cannot be read" in done.err


def test_a_key_without_anything_signed_is_wrong_use(shell: Shell) -> None:
    shell("migrate")
    done = shell("audit", "verify", "--key", "ab" * 32)
    assert done.code == 2
    assert "--head FILE or --export FILE" in done.err


# --- exports


async def test_an_export_is_verified_without_the_database(shell: Shell) -> None:
    await record_calls(shell)
    shell.extra["INTERLOCK_SIGNING_KEY"] = "key.pem"
    key = keygen(shell, "key.pem")
    (shell.folder / "head.json").write_text(shell("audit", "head").out)
    piped = shell("audit", "export")
    link = json.loads((shell.folder / "head.json").read_text())["link"]
    told = shell("audit", "export", "--out", "e.tsv").out
    assert told == f"e.tsv: 4 entries, head {link}, signed by the key {sha256(key.encode()).hexdigest()[:16]}\n"
    assert (shell.folder / "e.tsv").read_text().splitlines()[:-1] == piped.out.splitlines()[:-1]  # signed later
    assert (shell.folder / "e.tsv").stat().st_mode & 0o777 == 0o600
    shell.path.unlink()
    for name in ("e.tsv", "-"):
        done = shell("audit", "verify", "--export", name, "--head", "head.json", "--key", key, stdin=piped.out)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"valid: 4 entries, head {link}\nsigned: head.json")


async def test_exports_chain_on(shell: Shell) -> None:
    await record_calls(shell)
    shell("audit", "export", "--out", "a.tsv")
    await propose_mail(shell, 7)
    shell("audit", "export", "--since", "4", "--out", "b.tsv")
    shell("audit", "export", "--since", "2", "--out", "late.tsv")
    assert shell("audit", "verify", "--export", "a.tsv", "--export", "b.tsv").code == 0
    alone = shell("audit", "verify", "--export", "late.tsv")
    assert alone.code == 0
    assert alone.out.startswith("valid: 3 entries after entry 2, head ")
    assert "not checked: 1 entry is about earlier approvals." in alone.out
    wrong = shell("audit", "verify", "--export", "b.tsv", "--export", "a.tsv")
    assert_invalid(wrong, "a.tsv does not continue the previous export")
    assert wrong.out.endswith("Keep an unmodified copy of the export.\n")
    beyond = shell("audit", "export", "--since", "99")
    assert beyond.code == 2
    assert "has no entry 99 to continue from; its newest is 5." in beyond.err


async def test_a_damaged_export_is_found(shell: Shell) -> None:
    await record_calls(shell)
    lines = shell("audit", "export").out.splitlines(keepends=True)
    (shell.folder / "cut.tsv").write_text("".join(lines[:3]))
    assert_invalid(shell("audit", "verify", "--export", "cut.tsv"), "entry 2: cut.tsv ends without its head")
    (shell.folder / "altered.tsv").write_text(
        "".join(lines).replace('"actor":"agent:writer"', '"actor":"agent:eve"', 1)
    )
    assert_invalid(
        shell("audit", "verify", "--export", "altered.tsv"), "entry 1: The entry, or one before it, was altered"
    )
    (shell.folder / "none.tsv").write_text("hello\n")
    none = shell("audit", "verify", "--export", "none.tsv")
    assert (none.code, none.out) == (2, "")
    assert "none.tsv is not an export of a ledger" in none.err


@pytest.mark.parametrize(
    "statement",
    [
        "update events set data = data || char(10) where seq = 3",
        "update contents set content = cast(char(9) as blob) where seq = 2",
        "update contents set content = 5 where seq = 2",
    ],
)
async def test_an_export_that_fails_leaves_no_file_and_replaces_none(shell: Shell, statement: str) -> None:
    await record_calls(shell)
    shell("audit", "export", "--out", "e.tsv")
    before = (shell.folder / "e.tsv").read_bytes()
    tamper(shell, statement)
    for name in ("e.tsv", "new.tsv"):
        done = shell("audit", "export", "--out", name)
        assert (done.code, done.out) == (1, "")
        assert re.search(r"Entry \d was altered and cannot be written as a line. See: interlock audit verify", done.err)
    assert (shell.folder / "e.tsv").read_bytes() == before
    assert [path.name for path in shell.folder.iterdir() if ".tsv" in path.name] == ["e.tsv"]


async def test_a_ledger_whose_tail_was_cut_is_exported_with_the_head_that_shows_it(shell: Shell) -> None:
    await record_calls(shell)
    tamper(shell, "delete from events where seq = 4")
    shell("audit", "export", "--out", "e.tsv")
    words = "The head at the end of e.tsv is of entry 4 and does not fit entry 3, the last one here"
    assert_invalid(shell("audit", "verify", "--export", "e.tsv"), words)


async def test_a_reader_who_has_seen_enough_is_no_error(shell: Shell) -> None:
    await record_calls(shell)
    reader, writer = os.pipe()
    exporting = shell.start("audit", "export", out=writer)
    os.close(writer)
    os.close(reader)
    _, err = exporting.communicate(timeout=TIMEOUT)
    assert (exporting.returncode, err) == (0, b"")


async def test_exports_of_another_workspace_are_told_apart(shell: Shell) -> None:
    await propose_mail(shell)
    shell("audit", "export", "--workspace", "other", "--out", "other.tsv")
    assert shell("audit", "verify", "--export", "other.tsv").code == 0
    done = shell("audit", "verify", "--export", "other.tsv", "--workspace", "third")
    assert done.code == 2
    assert "The export belongs to the workspace 'other', not to 'third'." in done.err


@pytest.mark.nightly
def test_a_ledger_in_postgresql_is_verified_in_parts_and_exported_alike(shell: Shell, postgres_url: str) -> None:
    shell.url = postgres_url
    shell("migrate")
    for name in ("ann", "bob", "carol"):
        shell("users", "add", name, "--team", "finance")
    verify = ("audit", "verify", "--json", "--jobs")
    whole, parts = shell(*verify, "1"), shell.process(*verify, "3")
    assert (whole.code, whole.json["entries"]) == (0, 3)
    assert parts == whole
    shell("audit", "export", "--out", "e.tsv")
    assert shell("audit", "verify", "--export", "e.tsv").out == f"valid: 3 entries, head {whole.json['head']['link']}\n"


def test_the_programs_in_the_documentation_verify_an_export(shell: Shell) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "ledger.md").read_text()
    chain, signature = re.findall(r"```python\n(.*?)```", page, re.S)
    for name in ("ann", "bob", "carol"):
        shell("users", "add", name, "--team", "finance")
    (shell.folder / "key.pub").write_text(keygen(shell, "key.pem") + "\n")
    shell.extra["INTERLOCK_SIGNING_KEY"] = "key.pem"
    shell("audit", "export", "--out", "export.tsv")
    head = shell("audit", "head").json
    assert run(shell, chain + signature) == CommandResult(0, f"3 {head['link']}\n", "")
    whole = (shell.folder / "export.tsv").read_text()
    for old, new, words in (
        ('"user":"carol"', '"user":"eve"', "entry 3 was altered"),
        ('"teams":["finance"]', '"teams":["other"]', "the content of entry 1 was altered"),
        ('"signed_at":', '"signed_at":1', "InvalidSignature"),
    ):
        assert old in whole
        (shell.folder / "export.tsv").write_text(whole.replace(old, new, 1))
        altered = run(shell, chain + signature)
        assert (altered.code, words in altered.err) == (1, True), altered.err


def run(shell: Shell, program: str) -> CommandResult:
    pipe = subprocess.PIPE
    running = shell.program(sys.executable, "-c", program, stdout=pipe, stderr=pipe, text=True)
    out, err = running.communicate(timeout=TIMEOUT)
    return CommandResult(running.returncode, out, err)

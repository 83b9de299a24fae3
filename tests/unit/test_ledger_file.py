"""Ledger exports: verified without a database, over their exact bytes; every change is found."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Sequence
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from interlock.app import ledger_file
from interlock.app.audit import AuditReport
from interlock.app.checkpoint_signing import Ed25519Signer, distrust_reason
from interlock.app.ledger_file import ExportFile, verify_exports
from interlock.core.errors import Misconfigured
from interlock.core.ledger.chain import Entry, Head, make_entry, sign, skeleton
from interlock.core.ledger.event import Event

SIGNER = Ed25519Signer(Ed25519PrivateKey.from_private_bytes(b"\1" * 32))
SALT = b"0123456789abcdef"
BINDING = "b1" * 32


def event(kind: str, status: str, approval_id: str, **data: object) -> Event:
    facts = {"status": status, "binding": BINDING, **data}
    return Event(kind, 'ann\t"é"\n', facts, approval_id, {"comment": "a\tb\nc \\ ü"})


def history(approval_id: str) -> tuple[Event, ...]:
    return (
        event("proposed", "pending", approval_id, quorum=[1]),
        event("approved", "approved", approval_id, stage=0),
        Event("started", "r1", {"status": "running", "binding": BINDING, "fence": 1}, approval_id),
        event("succeeded", "succeeded", approval_id, fence=1),
    )


def chain(*events: Event) -> list[Entry]:
    entries: list[Entry] = []
    head = Head("default")
    for number, event in enumerate(events):
        entries.append(make_entry(event, head, 1_000 + number, SALT + bytes([number])))
        head = last_head(entries)
    return entries


def last_head(entries: Sequence[Entry]) -> Head:
    last = entries[-1]
    return Head(last.workspace, last.seq, last.link, last.at)


ENTRIES = chain(Event("denied", "agent", {"tool": "x"}, "", {"reason": "no"}), *history("a1"), *history("a2"))
HEAD = last_head(ENTRIES)


def write_export(entries: Sequence[Entry] = ENTRIES, after: Head = Head("default"), end: Head | None = None) -> bytes:  # noqa: B008  a tuple
    """An export as the documentation describes it, written independently of the tested code."""
    top = {"format": "interlock-ledger", "version": 1, "workspace": "default", "after": after.to_json()}
    last = sign(end or (last_head(entries) if entries else after), SIGNER, 5_000)
    rows = [
        b"\t".join(
            (entry.link.encode(), skeleton(*entry[:8]), (entry.salt or b"").hex().encode(), entry.content or b"")
        )
        for entry in entries
    ]
    return b"\n".join([compact_json(top), *rows, compact_json(last.to_json())]) + b"\n"


def compact_json(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def verify(*files: bytes, kept: Head | None = None, trusted: str = "") -> AuditReport:
    sources = [ExportFile(f"export{number}", io.BytesIO(file)) for number, file in enumerate(files, 1)]
    return asyncio.run(verify_exports(sources, kept, lambda signed: distrust_reason(signed, trusted)))[0]


def assert_violation(report: AuditReport, seq: int, words: str) -> None:
    said = [(fault.seq, fault.message) for fault in report.violations]
    assert any(number == seq and words in message for number, message in said), said


# R49
def test_a_whole_export_is_valid() -> None:
    report = verify(write_export(), kept=HEAD, trusted=SIGNER.key)
    assert (report.violations, report.entries, report.approvals, report.head) == ((), 9, 2, HEAD)
    assert (report.since, report.unknown_entries) == (0, 0)


# R49
def test_an_empty_ledger_has_an_export_too() -> None:
    assert verify(write_export([])).to_json()["entries"] == 0


# R49
def test_names_that_json_has_to_spell_otherwise_are_read_as_they_are() -> None:
    start = Head('the "inner" \\ one')
    entry = make_entry(Event("denied", "agent", {}, "", None), start, 1, SALT)
    file = write_export([entry], start).replace(
        b'"workspace":"default"', b'"workspace":' + compact_json(start.workspace), 1
    )
    report = verify(file)
    assert (report.violations, report.head.workspace, report.entries) == ((), start.workspace, 1)


# R49
@pytest.mark.parametrize("size", [1, 7, 300])
def test_lines_may_go_over_several_blocks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(ledger_file, "BLOCK_SIZE", size)
    assert verify(write_export(), kept=HEAD, trusted=SIGNER.key).violations == ()


# R49
def test_the_longest_line_is_as_long_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = max(map(len, write_export().splitlines()))
    monkeypatch.setattr(ledger_file, "BLOCK_SIZE", 1)
    monkeypatch.setattr(ledger_file, "MAX_LINE", longest)
    assert verify(write_export()).violations == ()
    monkeypatch.setattr(ledger_file, "MAX_LINE", longest - 1)
    with pytest.raises(Misconfigured) as caught:
        verify(write_export())
    assert caught.value.message == f"export1 holds a line of more than {longest - 1:,} bytes; that is no ledger."


# R49
def test_a_head_that_does_not_fit_is_told_in_full() -> None:
    report = verify(write_export(ENTRIES[:4], end=HEAD))
    assert [(fault.seq, fault.message) for fault in report.violations] == [
        (
            9,
            "The head at the end of export1 is of entry 9 and does not fit entry 4, the last one here: "
            "entries were cut or altered.",
        )
    ]


# R49
def test_a_last_line_that_is_no_head_is_told() -> None:
    report = verify(write_export().replace(b'"key":', b'"kez":'))
    assert [(fault.seq, fault.message) for fault in report.violations] == [
        (9, "export1: The last line is not a head: it was altered.")
    ]


# R49: what anybody can do with ten lines of their own
def test_an_export_can_be_verified_without_us() -> None:
    link = "0" * 64
    for line in write_export().decode().split("\n")[1:-2]:
        stated, body, salt, content = line.split("\t")
        link = sha256((link + body).encode()).hexdigest()
        assert link == stated
        digest = json.loads(body)["digest"]
        assert digest == (sha256(bytes.fromhex(salt) + content.encode()).hexdigest() if salt else "")
    assert link == HEAD.link


# R49
@pytest.mark.parametrize("cut", range(10))
def test_exports_that_follow_on_each_other_are_one_chain(cut: int) -> None:
    middle = last_head(ENTRIES[:cut]) if cut else Head("default")
    early, late = write_export(ENTRIES[:cut]), write_export(ENTRIES[cut:], middle)
    report = verify(early, late, kept=HEAD, trusted=SIGNER.key)
    assert (report.violations, report.entries, report.approvals, report.unknown_entries) == ((), 9, 2, 0)
    alone = verify(late, kept=HEAD)
    assert (alone.violations, alone.entries, alone.since) == ((), 9 - cut, cut)
    assert alone.unknown_entries == {2: 3, 3: 2, 4: 1, 6: 3, 7: 2, 8: 1}.get(cut, 0)


# R49
def test_exports_in_the_wrong_order_are_found() -> None:
    early, late = write_export(ENTRIES[:4]), write_export(ENTRIES[4:], last_head(ENTRIES[:4]))
    report = verify(late, early)
    assert_violation(report, 1, "export2 does not continue the previous export, which ends with entry 9: it follows")
    rewritten = write_export(ENTRIES[4:], Head("default", 4, "f" * 64))
    assert_violation(verify(early, rewritten), 5, "it follows a different entry 4")


# R49
def test_a_gap_between_exports_is_found() -> None:
    report = verify(write_export(ENTRIES[:3]), write_export(ENTRIES[4:], last_head(ENTRIES[:4])))
    assert_violation(report, 5, "which ends with entry 3: it follows entry 4")


# R49
def test_erased_content_is_an_empty_column() -> None:
    scope = {"scope": "person", "entries": [[2, 3], [5, 5]], "approvals": 1}
    entries = chain(
        *(Event("denied", "agent", {"tool": "x"}, "", {"n": n}) for n in range(5)), Event("erased", "bob", scope)
    )
    gone = [entry._replace(salt=None, content=None) if entry.seq in (2, 3, 5) else entry for entry in entries]
    report = verify(write_export(gone))
    assert (report.violations, report.erased) == ((), 3)
    assert report.erasures[0].to_json()["actor"] == "bob"
    assert_violation(
        verify(write_export(gone[:5])), 5, "The content of entry 5 is missing, and no entry records an erasure."
    )
    later = verify(write_export(entries[:5]), write_export(gone[5:], last_head(entries[:5])))
    assert later.violations == (), "an earlier export still holds it"


# --- damage, each kind once


LINES = write_export().split(b"\n")


def join_lines(lines: Sequence[bytes]) -> bytes:
    return b"\n".join(lines)


# R49
@pytest.mark.parametrize("number", range(1, 10))
def test_every_deletion_swap_and_insertion_is_found(number: int) -> None:
    deleted = verify(join_lines([*LINES[:number], *LINES[number + 1 :]]))
    assert_violation(deleted, min(number + 1, 9), "missing or out of order" if number < 9 else "entries were cut")
    twice = verify(join_lines([*LINES[:number], LINES[number], *LINES[number:]]))
    assert_violation(twice, number, "missing or out of order")
    if number < 9:
        swapped = [*LINES[:number], LINES[number + 1], LINES[number], *LINES[number + 2 :]]
        assert_violation(verify(join_lines(swapped)), number + 1, "missing or out of order")


# R49
@pytest.mark.parametrize("number", range(1, 10))
def test_a_cut_is_found_with_and_without_the_last_line(number: int) -> None:
    bare = verify(join_lines([*LINES[:number], b""]))
    assert_violation(bare, number - 1, f"export1 ends without its head: it was cut after entry {number - 1}.")
    footed = verify(join_lines([*LINES[:number], LINES[-2], b""]))
    assert_violation(footed, 9, f"does not fit entry {number - 1}, the last one here")


# R49
@pytest.mark.parametrize("number", range(1, 10))
def test_a_forged_end_is_found_by_a_head_or_a_key(number: int) -> None:
    cut = ENTRIES[: number - 1]
    end = last_head(cut) if cut else Head("default")
    forged = join_lines([*LINES[:number], compact_json(end.to_json()), b""])
    assert verify(forged).violations == (), "a chain alone does not show it"
    assert_violation(verify(forged, kept=HEAD), 9, "The chain ends before the saved head")
    assert_violation(verify(forged, trusted=SIGNER.key), end.seq, "is not signed")


# R49
def test_a_rewritten_chain_is_found_by_an_older_head() -> None:
    other = chain(Event("denied", "agent", {"tool": "y"}, "", {"reason": "no"}), *history("a1"))
    assert verify(write_export(other)).violations == ()
    for number in (1, 3, 5):
        report = verify(write_export(other), kept=last_head(ENTRIES[:number]))
        assert_violation(report, number, "does not contain the saved head: it was rewritten")


# R49
def test_a_changed_signature_or_signed_value_is_found() -> None:
    for old, new in ((b'"signed_at":5000', b'"signed_at":5001'), (b'"signature":"', b'"signature":"00')):
        assert_violation(verify(write_export().replace(old, new)), 9, "was altered: its signature does not match")
    other = Ed25519Signer(Ed25519PrivateKey.from_private_bytes(b"\2" * 32)).key
    assert_violation(verify(write_export(), trusted=other), 9, "is signed by another key")
    assert_violation(
        verify(write_export().replace(b'"fingerprint":"', b'"fingerprint":"0')), 9, "The last line is not a head"
    )
    assert_violation(verify(join_lines([*LINES[:-2], b"{nonsense", b""])), 9, "The last line is not a head")


# R49
def test_bytes_after_the_head_are_reported_once() -> None:
    report = verify(write_export() + b"more\nand more\n")
    assert [fault.message for fault in report.violations] == ["export1 continues after its head: something was added."]


# R49
@pytest.mark.parametrize("number", [1, 2, 5, 9])
def test_changed_content_and_salt_are_found(number: int) -> None:
    link, body, salt, content = LINES[number].split(b"\t")
    for cells in (
        (link, body, salt, content + b" "),
        (link, body, salt, content[:-2] + b'!"'),
        (link, body, salt[2:], content),
        (link, body, b"ff" + salt[2:], content),
        (link, body, salt, b""),
    ):
        report = verify(join_lines([*LINES[:number], b"\t".join(cells), *LINES[number + 1 :]]))
        assert [(f.seq, f.message) for f in report.violations] == [(number, "The content of the entry was altered.")]
    gone = verify(join_lines([*LINES[:number], b"\t".join((link, body, b"", content)), *LINES[number + 1 :]]))
    assert_violation(gone, number, "is missing, and no entry records an erasure")


UNREADABLE = "The entry was altered: it cannot be read: "


# R49
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", f"{UNREADABLE}a line has 4 columns, and this has 1."),
        (b"a\tb\tc\td\te", f"{UNREADABLE}a line has 4 columns, and this has 5."),
        (b"f" * 64 + b"\t{}\t\t", f"{UNREADABLE}its second column is not the skeleton of an entry."),
        (b"f" * 64 + b"\t\xff\t\t", f"{UNREADABLE}'utf-8'"),
        (LINES[3].replace(b"\t" + SALT.hex().encode()[:4], b"\tsalt"), "non-hexadecimal"),
    ],
)
def test_a_line_that_cannot_be_read_is_a_fault_with_its_number(line: bytes, words: str) -> None:
    assert_violation(verify(join_lines([*LINES[:3], line, *LINES[4:]])), 3, words)


# R49
def test_one_unreadable_line_leaves_the_rest_of_the_chain_readable() -> None:
    link = LINES[1].split(b"\t")[0]
    report = verify(join_lines([LINES[0], link + b"\t?\t\t", *LINES[2:]]))
    assert [fault.seq for fault in report.violations] == [1]


NO_EXPORT = "export1 is not an export of a ledger: its first line is not what `interlock audit export` writes."


# R49
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"version":1', b'"version":2', "export1 is written in version 2 of the format; this Interlock reads 1."),
        (b"interlock-ledger", b"other-ledger", NO_EXPORT),
        (b'"seq":0', b'"seq":"0"', NO_EXPORT),
        (b'"workspace":"default"}', b'"workspace":"other"}', NO_EXPORT),
        (write_export(), b"", NO_EXPORT),
        (b'{"after"', b'"after"', NO_EXPORT),
    ],
)
def test_what_is_no_export_is_refused(old: bytes, new: bytes, words: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        verify(write_export().replace(old, new, 1))
    assert caught.value.message == words


# R49
def test_exports_of_two_workspaces_are_refused() -> None:
    with pytest.raises(Misconfigured) as caught:
        verify(write_export(), write_export([]).replace(b'"default"', b'"other"'))
    assert caught.value.message == "export2 belongs to the workspace 'other', not to 'default'."


# R49
def test_without_an_export_there_is_nothing_to_verify() -> None:
    with pytest.raises(Misconfigured) as caught:
        verify()
    assert caught.value.message == "There is no export to verify."


# R49
def test_a_line_that_never_ends_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_file, "MAX_LINE", 5_000)
    monkeypatch.setattr(ledger_file, "BLOCK_SIZE", 1_000)
    assert verify(write_export()).violations == ()
    with pytest.raises(Misconfigured, match="a line of more than 5,000 bytes"):
        verify(write_export() + b"x" * 10_000)


# --- damage at random


@st.composite
def damage(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes that differ in one place or a few: taken away, put in, doubled or changed."""
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(whole)))
        end = min(len(whole), begin + draw(st.integers(0, 400)))
        whole = whole[:begin] + draw(st.binary(max_size=5) | st.just(whole[begin:end] * 2)) + whole[end:]
    return whole


FIRST, _, REST = write_export().partition(b"\n")


# R49
@given(damage(REST))
def test_every_damage_to_an_export_is_found(made: bytes) -> None:
    report = verify(FIRST + b"\n" + made, kept=HEAD, trusted=SIGNER.key)
    assert bool(report.violations) == (made not in (REST, REST[:-1])), report.violations


# R49
@given(damage(FIRST))
def test_a_first_line_that_was_changed_is_refused_or_changes_nothing_behind_it(made: bytes) -> None:
    try:
        report = verify(made + b"\n" + REST, kept=HEAD, trusted=SIGNER.key)
    except Misconfigured:
        return
    assert report.violations or (report.head, report.entries) == (HEAD, 9)


# R49
@given(st.integers(1, 9), st.data())
def test_a_flipped_bit_is_found_in_the_entry_where_it_is(number: int, data: st.DataObject) -> None:
    line = bytearray(LINES[number])
    place = data.draw(st.integers(0, len(line) - 1))
    line[place] ^= 1 << data.draw(st.integers(0, 7))
    report = verify(join_lines([*LINES[:number], bytes(line), *LINES[number + 1 :]]))
    found = [f"entry {fault.seq}: {fault.message}" for fault in report.violations]
    assert any(each.startswith(f"entry {number}: ") or f"Entry {number} is missing" in each for each in found), found

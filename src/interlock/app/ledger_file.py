"""Export of the ledger to a file: the exact bytes that were hashed, to be verified without a database.

One line for each entry, tab separated: link, skeleton, salt in hex, content; the last two are empty if there is none,
or if it was erased. The first line names the entry before, the last one is the head.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import BinaryIO

from interlock.app.audit import AuditReport, ProgressCallback, head_at, make_report
from interlock.core.canonical import parse_json, plain_json
from interlock.core.errors import Conflict, InvalidRequest, Misconfigured
from interlock.core.ledger.chain import PARSE_ERRORS, Entry, Head, SignedHead, Verifier, read_head, skeleton
from interlock.core.ports import LedgerReader

FORMAT = "interlock-ledger"
VERSION = 1
BLOCK_SIZE = 1 << 18
MAX_LINE = 1 << 26
_TEXT = r'("[^"\\]*(?:\\.[^"\\]*)*")'
_SKELETON = re.compile(
    rf'\{{"actor":{_TEXT},"approval":{_TEXT},"at":(-?[0-9]+),"data":(.*),'
    rf'"digest":"([0-9a-f]*)","kind":{_TEXT},"seq":([0-9]+),"workspace":{_TEXT}\}}'
)
_LINK = re.compile(rb"[0-9a-f]{64}")


# Writing


async def export(
    store: LedgerReader, workspace: str, since: int, sign: Callable[[Head], SignedHead], progress: ProgressCallback
) -> AsyncIterator[bytes]:
    """Blocks of whole lines: the entries after `since`, up to the end of the ledger at the time of reading."""
    last = await head_at(store, workspace, since)
    if last is None:
        end = (await store.head(workspace)).seq
        raise InvalidRequest(f"The ledger has no entry {since} to continue from; its newest is {end}.")
    yield _json_line({"format": FORMAT, "version": VERSION, "workspace": workspace, "after": last.to_json()})
    while True:
        before, head = last, await store.head(workspace)
        async for entries in store.entries(workspace, last.seq):
            yield b"".join([_entry_line(entry) for entry in entries])
            last = Head(workspace, entries[-1].seq, entries[-1].link, entries[-1].at)
            progress(last.seq - since, max(head.seq, last.seq) - since)
            await asyncio.sleep(0)  # a store that answers at once must not block Ctrl-C
        newest = await store.head(workspace)
        if newest.seq <= last.seq or last == before:
            break  # the stored head is written even if it does not fit: the verifier then reports it
    yield _json_line(sign(newest).to_json())


def _json_line(body: object) -> bytes:
    return plain_json(body).encode() + b"\n"


def _entry_line(entry: Entry) -> bytes:
    salt, content = entry.salt, entry.content
    try:
        cells = (
            entry.link.encode(),
            skeleton(*entry[:8]),
            b"" if salt is None else salt.hex().encode(),
            b"" if content is None else content,
        )
        line = b"\t".join(cells)
    except PARSE_ERRORS:
        line = b"\n"
    if b"\n" in line or line.count(b"\t") != 3:  # JSON escapes them, so this was not written by Interlock
        raise Conflict(
            f"Entry {entry.seq} was altered and cannot be written as a line. See: interlock audit verify", seq=entry.seq
        )
    return line + b"\n"


# Reading


@dataclass(frozen=True, slots=True)
class ExportFile:
    """An export to read; `name` is for messages."""

    name: str
    file: BinaryIO


DistrustCheck = Callable[[SignedHead], str]  # why a head is not trusted; empty if it is


async def verify_exports(
    sources: Iterable[ExportFile],
    head: Head | None,
    distrust: DistrustCheck,
    on_read: Callable[[int], None] = lambda _: None,
) -> tuple[AuditReport, list[tuple[str, SignedHead]]]:
    """Verify exports as one chain, each continuing the one before; also returns the heads at their ends.

    `on_read` gets the number of bytes of each block read.
    """
    verifier: Verifier | None = None
    unknown_entries, heads = 0, []  # type: int, list[tuple[str, SignedHead]]
    for source in sources:
        blocks = _read_blocks(source, on_read)
        first, *lines = next(blocks, [b""])
        verifier = _continue_chain(verifier, _read_header(source.name, first), head, source.name)
        reading = ExportReader(source.name, verifier, distrust)
        for block in chain([lines], blocks):
            for line in block:
                reading.take(line)
            await asyncio.sleep(0)
        heads += [(source.name, end) for end in reading.finish()]
        unknown_entries += reading.unknown_entries
    if verifier is None:
        raise Misconfigured("There is no export to verify.")
    verifier.finish()
    return replace(make_report(verifier, []), unknown_entries=unknown_entries), heads


def _continue_chain(verifier: Verifier | None, after: Head, head: Head | None, name: str) -> Verifier:
    if verifier is None:
        return Verifier(after.workspace, head, after)
    if after.workspace != verifier.workspace:
        raise Misconfigured(f"{name} belongs to the workspace {after.workspace!r}, not to {verifier.workspace!r}.")
    last = verifier.head
    if (after.seq, after.link) != (last.seq, last.link):
        verifier.add_violation(
            after.seq + 1,
            f"{name} does not continue the previous export, which ends with entry {last.seq}: "
            f"it follows {'a different ' if after.seq == last.seq else ''}entry {after.seq}.",
        )
    return verifier


class ExportReader:
    """Reader for the lines of one export after its first."""

    def __init__(self, name: str, verifier: Verifier, distrust: DistrustCheck) -> None:
        self.unknown_entries = 0
        self._name = name
        self._verifier = verifier
        self._distrust = distrust
        self._end: SignedHead | None = None
        self._ended = self._added = False

    def take(self, line: bytes) -> None:
        if self._ended:
            self._added = True
        elif line.startswith(b"{"):
            self._ended = True
            self._close(line)
        else:
            self._entry(line)

    def finish(self) -> list[SignedHead]:
        last = self._verifier.head.seq
        if self._added:
            self._verifier.add_violation(last, f"{self._name} continues after its head: something was added.")
        if not self._ended:
            self._verifier.add_violation(last, f"{self._name} ends without its head: it was cut after entry {last}.")
        return [] if self._end is None else [self._end]

    def _entry(self, line: bytes) -> None:
        verifier = self._verifier
        try:
            verifier.feed_raw([_read_line(line)])
        except PARSE_ERRORS as error:
            link = line.partition(b"\t")[0]
            verifier.add_unreadable(verifier.head.seq + 1, link.decode() if _LINK.fullmatch(link) else "", error)
        if verifier.invariants.unknown_entries:  # only counted, to bound memory: an export can be of any length
            self.unknown_entries += len(verifier.invariants.unknown_entries)
            verifier.invariants.unknown_entries.clear()

    def _close(self, line: bytes) -> None:
        last = self._verifier.head
        try:
            end = read_head(parse_json(line))
        except InvalidRequest:
            end = None
        if end is None or plain_json(end.to_json()).encode() != line:
            self._verifier.add_violation(last.seq, f"{self._name}: The last line is not a head: it was altered.")
            return
        if end.head != last:
            said = f"The head at the end of {self._name} is of entry {end.head.seq} and does not fit"
            self._verifier.add_violation(
                end.head.seq, f"{said} entry {last.seq}, the last one here: entries were cut or altered."
            )
        if reason := self._distrust(end):
            self._verifier.add_violation(end.head.seq, f"The head at the end of {self._name} {reason}.")
        self._end = end


def _read_line(line: bytes) -> tuple[Entry, bytes]:
    cells = line.split(b"\t")
    if len(cells) != 4:
        raise ValueError(f"a line has 4 columns, and this has {len(cells)}")
    link, body, salt, content = cells
    found = _SKELETON.fullmatch(body.decode())
    if found is None:
        raise ValueError("its second column is not the skeleton of an entry")
    actor, approval, at, data, digest, kind, seq, workspace = found.groups()
    there = salt or content
    entry = Entry(
        workspace=_unquote(workspace),
        seq=int(seq),
        at=int(at),
        kind=_unquote(kind),
        actor=_unquote(actor),
        approval_id=_unquote(approval),
        data=data,
        digest=digest,
        link=link.decode(),
        salt=bytes.fromhex(salt.decode()) if salt else None,
        content=content if there else None,
    )
    return entry, body


def _unquote(text: str) -> str:
    return str(json.loads(text)) if "\\" in text else text[1:-1]


def _read_header(name: str, line: bytes) -> Head:
    try:
        body = parse_json(line)
    except InvalidRequest:
        body = None
    match body:
        case {"format": "interlock-ledger", "version": 1, "workspace": str(workspace), "after": after}:
            start = read_head(after)
            if start is not None and start.head.workspace == workspace:
                return start.head
        case {"format": "interlock-ledger", "version": int(version)}:
            raise Misconfigured(
                f"{name} is written in version {version} of the format; this Interlock reads {VERSION}."
            )
        case _:
            pass
    raise Misconfigured(
        f"{name} is not an export of a ledger: its first line is not what `interlock audit export` writes."
    )


def _read_blocks(source: ExportFile, on_read: Callable[[int], None]) -> Iterator[list[bytes]]:
    """Lines without their ends; limited, so that a file without line ends does not fill the memory."""
    rest = b""
    while block := source.file.read(BLOCK_SIZE):
        on_read(len(block))
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > MAX_LINE:
            raise Misconfigured(f"{source.name} holds a line of more than {MAX_LINE:,} bytes; that is no ledger.")
        if lines:
            yield lines
    if rest:
        yield [rest]

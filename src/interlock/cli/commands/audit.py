"""`interlock audit`: verify the ledger, and export it for verification without the database."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Annotated, Any, NamedTuple

import typer
from rich import progress as bars
from rich.console import Console

from interlock.app import audit, ledger_file
from interlock.app.audit import AuditReport, ProgressCallback, verify_part
from interlock.app.bootstrap import build_services
from interlock.cli.context import CommandContext, CommandOptions, command, open_database, without_database
from interlock.cli.output import local_time, print_json, say
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.canonical import parse_json
from interlock.core.card import escape_invisible
from interlock.core.errors import Conflict, Error, InvalidRequest, Misconfigured
from interlock.core.ledger.chain import Head, SignedHead, Verifier, key_fingerprint, read_head, sign
from interlock.core.ledger.erasure import ErasureTotal
from interlock.core.ports import HeadSigner, Store
from interlock.presenters.text import pluralize

app = typer.Typer()

Key = Annotated[
    str,
    typer.Option(metavar="FILE|HEX", show_default=False, help="Trusted public key; other signatures are refused."),
]


@command(app, without_database)
async def verify(
    options: CommandOptions,
    head: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output of an earlier `interlock audit head`, to compare with.")
    ] = None,
    key: Key = "",
    export: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Verify an export instead of the database; - is standard input. Repeatable."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=0, show_default="one per processor, if the ledger is long", help="Number of processes.")
    ] = 0,
) -> None:
    """Verify every entry of the ledger, and every approval against it. Exits with 1 if invalid."""
    trusted = _check_trusted_key(key, signed=head is not None or bool(export))
    known_heads = [] if head is None else [_read_head(head, trusted)]
    if export:
        report, source = await _verify_export(options, export, known_heads, trusted), "export"
    else:
        report, source = await _verify_database(options, known_heads, jobs), "database"
    print_report(report, known_heads, trusted, source, json=options.json)
    if report.violations:
        raise typer.Exit(1)


async def _verify_database(options: CommandOptions, known_heads: list[NamedHead], jobs: int) -> audit.AuditReport:
    head = _expected_head(options.workspace, known_heads)
    async with open_database(options) as context:
        with _progress("Reading the ledger", shown=not context.json) as step:
            verify_pool = None if jobs == 1 else VerifyPool(context.services.store, context.settings.storage.url, jobs)
            return await audit.verify(context.services.store, context.workspace, head, step, verify_pool)


async def _verify_export(
    options: CommandOptions, names: list[str], known_heads: list[NamedHead], trusted: str
) -> audit.AuditReport:
    """Verify exports, without a database; the workspace is that of the exports."""
    from interlock.app.checkpoint_signing import distrust_reason

    total = _size(names)
    with _progress("Reading the export", shown=not options.json) as step:
        done = 0

        def read(size: int) -> None:
            nonlocal done
            done += size
            step(done, max(total, done))

        head = known_heads[0].signed.head if known_heads else None
        report, heads = await ledger_file.verify_exports(
            _sources(names), head, lambda signed: distrust_reason(signed, trusted), read
        )
    _expected_head(report.head.workspace, known_heads)
    if options.workspace not in (DEFAULT_WORKSPACE, report.head.workspace):
        raise Misconfigured(
            f"The export belongs to the workspace {report.head.workspace!r}, not to {options.workspace!r}."
        )
    known_heads += [NamedHead(name, signed) for name, signed in heads]
    return report


def _size(names: list[str]) -> int:
    return sum(Path(name).stat().st_size for name in names if name != "-")


def _sources(names: list[str]) -> Iterator[ledger_file.ExportFile]:
    for name in names:
        if name == "-":
            yield ledger_file.ExportFile("standard input", sys.stdin.buffer)
            continue
        with Path(name).open("rb") as file:
            yield ledger_file.ExportFile(name, file)


@command(app, open_database, "head")
async def print_head(context: CommandContext) -> None:
    """Print the number and link of the newest entry. Store it elsewhere: `verify --head` then detects truncation."""
    signer = _signer(context)
    print_json(sign(await context.services.store.head(context.workspace), signer, context.now()).to_json())


@command(app, open_database)
async def export(
    context: CommandContext,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default="standard output", help="Output file.")
    ] = None,
    since: Annotated[
        int, typer.Option(min=0, metavar="SEQ", help="Only entries after this number, to continue an earlier export.")
    ] = 0,
) -> None:
    """Export the ledger as text, with exactly the bytes that were hashed, for `verify --export`."""
    signer, ends = _signer(context), []  # type: HeadSigner | None, list[SignedHead]

    def end(head: Head) -> SignedHead:
        ends.append(sign(head, signer, context.now()))
        return ends[-1]

    with _progress("Writing the ledger", shown=True) as step:
        blocks = ledger_file.export(context.services.store, context.workspace, since, end, step)
        if out is None:
            await _write_stdout(blocks)
            return
        with _atomic_file(out) as file:
            async for block in blocks:
                file.write(block)
    _print_export(context, out, since, ends[-1])


@command(app, without_database)
async def keygen(
    options: CommandOptions,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File for the private key.")],
) -> None:
    """Create a key that signs heads. The last line is the public key: give it to those who verify."""
    from interlock.app.checkpoint_signing import make_key

    key = make_key(file).key
    if options.json:
        print_json({"file": str(file), "key": key, "fingerprint": key_fingerprint(key)})
        return
    say(f"{file}: new private key, readable only by you. Set it as audit.signing_key or INTERLOCK_SIGNING_KEY.")
    say("Anybody with this key and write access to the database could rewrite the ledger and sign it: keep them apart.")
    say(f"Its fingerprint is {key_fingerprint(key)}. Public key, for those who verify:")
    say(key)


def _check_trusted_key(key: str, *, signed: bool) -> str:
    if key and not signed:
        raise Misconfigured("--key gives the trusted key. Also give what it signed: --head FILE or --export FILE.")
    if not key:
        return ""
    from interlock.app.checkpoint_signing import read_public_key

    return read_public_key(key)


def _read_head(path: Path, trusted: str) -> NamedHead:
    from interlock.app.checkpoint_signing import distrust_reason

    try:
        signed = read_head(parse_json(path.read_bytes()))
    except InvalidRequest as error:
        raise Misconfigured(f"{path}: {error.message.replace('The body', 'The file')}") from None
    if signed is None:
        raise Misconfigured(
            f"{path} is not output of `interlock audit head`: workspace, seq, link and at, optionally signed."
        )
    if reason := distrust_reason(signed, trusted):
        raise Conflict(f"The head {path} {reason}. Do not rely on it; nothing was verified.")
    return NamedHead(str(path), signed)


def _expected_head(workspace: str, known_heads: list[NamedHead]) -> Head | None:
    for name, signed in known_heads:
        if signed.head.workspace != workspace:
            other = signed.head.workspace
            raise Misconfigured(f"{name} is the head of the workspace {other!r}. Use --workspace {other}.")
        return signed.head
    return None


def _signer(context: CommandContext) -> HeadSigner | None:
    path = context.settings.audit.signing_key
    if path is None:
        return None
    from interlock.app.checkpoint_signing import load_signer

    return load_signer(path)


@contextmanager
def _progress(what: str, *, shown: bool) -> Iterator[audit.ProgressCallback]:
    """A progress bar on standard error, if it is a terminal."""
    console = Console(stderr=True)
    with bars.Progress(console=console, transient=True, disable=not (shown and console.is_terminal)) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


async def _write_stdout(blocks: AsyncIterator[bytes]) -> None:
    """Write to standard output; a reader that closes the pipe early, such as `head`, is no error."""
    out = sys.stdout.buffer
    try:
        async for block in blocks:
            out.write(block)
        out.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the flush at exit does not fail


@contextmanager
def _atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Write under a temporary name until complete: a partial export must not look like a complete one."""
    with NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise


def _print_export(context: CommandContext, out: Path, since: int, end: SignedHead) -> None:
    if context.json:
        print_json({"file": str(out), "since": since, "head": end.to_json()})
        return
    signed = f", signed by the key {key_fingerprint(end.key)}" if end.key else ", not signed"
    say(f"{out}: {pluralize(end.head.seq - since, 'entry', 'entries')}, head {end.head.link}{signed}")


MAX_SHOWN = 100  # violations; one altered entry breaks every later link


class NamedHead(NamedTuple):
    """A head to compare with, and the name of its source."""

    name: str
    signed: SignedHead


def print_report(
    report: AuditReport, known_heads: Sequence[NamedHead], trusted: str, source: str, *, json: bool
) -> None:
    signatures = [each for each in known_heads if each.signed.key]
    if json:
        print_json({**report.to_json(), "signatures": [_signature_json(each, trusted) for each in signatures]})
        return
    entries = pluralize(report.entries, "entry", "entries")
    entries += f" after entry {report.since}" if report.since else ""
    if report.violations:
        _print_faults(report, entries, source)
    else:
        say(f"valid: {entries}, head {report.head.link}")
    if report.erasures:
        say("erased: " + "; ".join(map(_erased_text, report.erasures)))
    if report.unknown_entries:
        count = pluralize(report.unknown_entries, "entry is", "entries are")
        say(f"not checked: {count} about earlier approvals. Give the earlier export as well, before this one.")
    for each in signatures if not report.violations else ():
        _print_signature(each, trusted)


def _print_faults(report: AuditReport, entries: str, source: str) -> None:
    for violation in report.violations[:MAX_SHOWN]:
        say(
            f"entry {violation.seq}: {escape_invisible(violation.message)}"
            if violation.seq
            else escape_invisible(violation.message),
            style="red",
        )
    if len(report.violations) > MAX_SHOWN:
        say(f"… and {len(report.violations) - MAX_SHOWN:,} more; use --json for all")
    faults = pluralize(len(report.violations), "fault", "faults")
    say(f"INVALID: {faults} in {entries}. Keep an unmodified copy of the {source}.")


def _erased_text(total: ErasureTotal) -> str:
    """A summary such as `312 entries by retention since …`, `4 entries of one thread by ann on …`."""
    entries = pluralize(total.entries, "entry", "entries")
    if total.scope == "retention":
        return f"{entries} by retention since {local_time(total.since)}"
    who = f"by {escape_invisible(total.actor)}"
    if total.times == 1:
        return f"{entries} of one {total.scope} {who} on {local_time(total.until)}"
    return f"{entries} of {_plural(total.scope)} {who}, the last on {local_time(total.until)}"


def _plural(scope: str) -> str:
    return "people" if scope == "person" else f"{scope}s"


def _print_signature(named_head: NamedHead, trusted: str) -> None:
    name, mark = escape_invisible(named_head.name), key_fingerprint(named_head.signed.key)
    if trusted:
        say(f"signed: {name}, at {local_time(named_head.signed.signed_at)}, by the trusted key ({mark})")
    else:
        say(f"signed: {name} was not altered since the key {mark} signed it. This does not prove whose key it is:")
        say("        compare the fingerprint with the one you were given, or give the trusted key with --key.")


def _signature_json(named_head: NamedHead, trusted: str) -> dict[str, object]:
    signed = named_head.signed
    return {
        "of": named_head.name,
        "signed_at": signed.signed_at,
        "key": signed.key,
        "fingerprint": key_fingerprint(signed.key),
        "trusted": signed.key == trusted,
    }


MIN_ENTRIES_PER_PROCESS = 100_000  # entries that make another process worthwhile
PROGRESS_POLL = 0.1  # seconds between two progress updates


@dataclass(frozen=True, slots=True)
class VerifyRange:
    url: str
    workspace: str
    after: int
    until: int
    head: Head | None


class VerifyPool:
    """Parallel verification for `audit.verify`.

    Without a number of jobs, one per processor, and none for a short ledger.
    """

    def __init__(self, store: Store, url: str, jobs: int) -> None:
        self._store = store
        self._url = url
        self._jobs = jobs

    async def __call__(
        self, workspace: str, end: int, head: Head | None, progress: ProgressCallback
    ) -> AsyncGenerator[Verifier | None, None]:
        count = min(self._jobs, end) or min(_processors(), end // MIN_ENTRIES_PER_PROCESS)
        if count < 2:
            return
        edges = [end * number // count for number in range(count + 1)]
        helpers = [
            VerifyProcess(VerifyRange(self._url, workspace, after, until, head)) for after, until in pairwise(edges[1:])
        ]

        def told(done: int, _: int) -> None:
            progress(done + sum(helper.done for helper in helpers), end)

        try:
            yield await verify_part(self._store, workspace, 0, edges[1], head, told)
            for helper in helpers:
                while not await asyncio.to_thread(helper.ready, PROGRESS_POLL):
                    told(edges[1], end)
                yield await asyncio.to_thread(helper.result)
        finally:
            for helper in helpers:
                helper.stop()


class VerifyProcess:
    """A spawned process: a fork would inherit this one's threads and open connections."""

    def __init__(self, part: VerifyRange) -> None:
        context = multiprocessing.get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._done = context.Value("q", 0, lock=False)
        self._process = context.Process(target=_run_process, args=(part, sender, self._done), daemon=True)
        self._process.start()
        sender.close()

    @property
    def done(self) -> int:
        return int(self._done.value)

    def ready(self, timeout: float) -> bool:
        return self._receiver.poll(timeout)

    def result(self) -> Verifier | None:
        """The verifier; None if the process failed: its range is then verified without it."""
        try:
            verifier: Verifier | None = self._receiver.recv()
        except EOFError:
            return None
        return verifier

    def stop(self) -> None:
        self._process.terminate()
        self._process.join()
        self._receiver.close()


def _run_process(part: VerifyRange, sender: Connection, done: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends this one
    try:
        verifier = asyncio.run(_verify_range(part, done))
    except (Error, OSError):
        verifier = None
    with suppress(OSError):  # the parent may have ended
        sender.send(verifier)


async def _verify_range(part: VerifyRange, done: Any) -> Verifier | None:
    def progress(count: int, _: int) -> None:
        done.value = count

    store = build_services(part.url).store
    await store.open()
    try:
        return await verify_part(store, part.workspace, part.after, part.until, part.head, progress)
    finally:
        await store.close()


def _processors() -> int:
    """The number of processors available to this process, if the system tells; else all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

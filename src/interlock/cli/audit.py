"""`interlock audit`: prove that the record is whole, and that the approvals are what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from interlock import audit
from interlock.cli.output import print_json, say
from interlock.cli.shared import Desk, command, kept
from interlock.cli.words import counted
from interlock.core.canonical import parse
from interlock.core.card import visible
from interlock.core.errors import InvalidRequest, Misconfigured
from interlock.core.ledger import Head

app = typer.Typer()

MAX_SHOWN = 100  # faults; one altered entry breaks every link behind it


@command(app, kept)
async def verify(
    desk: Desk,
    head: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `interlock audit head` printed earlier.")
    ] = None,
) -> None:
    """Check every entry of the ledger, and every approval against it. Invalid exits 1."""
    exported = _read_head(head, desk.workspace) if head else None
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=desk.json or not console.is_terminal) as progress:
        task = progress.add_task("Reading the ledger", total=None)
        report = await audit.verify(
            desk.parts.store,
            desk.workspace,
            exported,
            lambda seq, end: progress.update(task, completed=seq, total=end),
        )
    if desk.json:
        print_json(report.to_json())
    else:
        _tell(report)
    if report.faults:
        raise typer.Exit(1)


@command(app, kept, "head")
async def print_head(desk: Desk) -> None:
    """Print the newest entry's number and link. Keep it elsewhere: `verify --head` then shows a cut tail."""
    print_json((await desk.parts.store.head(desk.workspace)).to_json())


def _read_head(path: Path, workspace: str) -> Head:
    try:
        body = parse(path.read_bytes())
    except InvalidRequest as error:
        raise Misconfigured(f"{path}: {error.message.replace('The body', 'The file')}") from None
    match body:
        case {"workspace": str(name), "seq": int(seq), "link": str(link), "at": int(at)}:
            if name != workspace:
                raise Misconfigured(f"{path} is the head of the workspace {name!r}. Say --workspace {name}.")
            return Head(name, seq, link, at)
        case _:
            raise Misconfigured(f"{path} is not what `interlock audit head` prints: workspace, seq, link and at.")


def _tell(report: audit.Report) -> None:
    entries = counted(report.entries, "entry", "entries")
    if not report.faults:
        erased = f"; the details of {report.erased:,} were erased, as retention allows" if report.erased else ""
        say(f"valid: {entries}, head {report.head.link}{erased}")
        return
    for fault in report.faults[:MAX_SHOWN]:
        say(f"entry {fault.seq}: {visible(fault.message)}" if fault.seq else visible(fault.message), style="red")
    if len(report.faults) > MAX_SHOWN:
        say(f"… and {len(report.faults) - MAX_SHOWN:,} more; --json shows all")
    say(
        f"INVALID: {counted(len(report.faults), 'fault', 'faults')} in {entries}. Keep a copy of the database as it is."
    )

"""`interlock erase`: forget what has ended, for good. Who, when and what became of it stay in the record."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from interlock.cli import prompts
from interlock.cli.approval_lookup import id_of, sweep
from interlock.cli.context import Desk, at_terminal
from interlock.cli.output import print_json, say, short_id, show
from interlock.core.card import visible
from interlock.core.chat.thread import PREFIX
from interlock.core.decision import Reviewer
from interlock.core.errors import Forbidden, InvalidRequest
from interlock.core.ledger.erasure import Erased, Erasure
from interlock.presenters.text import counted
from interlock.runtime.durations import show_duration

MOST_NAMED = 20


@dataclass(frozen=True)
class Wanted:
    """What was given on the command line: one of the first four."""

    approval: str = ""
    thread: str = ""
    person: str = ""
    retention: bool = False
    reason: str = ""
    dry_run: bool = False
    yes: bool = False
    user: str = ""


async def erase(desk: Desk, wanted: Wanted) -> None:
    if sum(map(bool, (wanted.approval, wanted.thread, wanted.person, wanted.retention))) != 1:
        raise InvalidRequest(
            "Say what to erase: --approval ID, --thread ID, --person NAME or --retention, one of them."
        )
    person = await desk.person(wanted.user)
    if wanted.retention:
        await _by_retention(desk, wanted, person)
        return
    await sweep(desk)  # what is over by the clock has ended
    erasure = await _erasure(desk, wanted)
    if at_terminal() and not (wanted.yes or wanted.dry_run):
        await _ask(desk, erasure, person)
    done = await _counted(desk, desk.parts.inbox.erase(desk.workspace, erasure, person, dry_run=wanted.dry_run))
    _tell(desk, done, dry_run=wanted.dry_run)
    if done.open and not wanted.dry_run:
        raise typer.Exit(1)


async def _erasure(desk: Desk, wanted: Wanted) -> Erasure:
    reason = prompts.bounded("--reason", wanted.reason)
    if wanted.approval:
        return Erasure("approval", await id_of(desk, wanted.approval), reason)
    return Erasure("thread", wanted.thread, reason) if wanted.thread else Erasure("person", wanted.person, reason)


async def _ask(desk: Desk, erasure: Erasure, person: Reviewer) -> None:
    found = await _counted(desk, desk.parts.inbox.erase(desk.workspace, erasure, person, dry_run=True))
    if found.approvals or found.entries or found.threads:
        show(Text(f"This erases {_amount(found)}, for good. A backup made before still has it."), stderr=True)
        prompts.confirm("Erase it?")


async def _by_retention(desk: Desk, wanted: Wanted, person: Reviewer) -> None:
    """For where no worker runs; a worker with the same settings does this by itself."""
    retention = desk.settings.storage.retention
    if wanted.dry_run:
        raise InvalidRequest("--dry-run goes with --approval, --thread or --person.")
    if person.role != "admin":
        raise Forbidden(f"{person.name} may not erase anything. Ask an admin.")
    if retention is None:
        raise InvalidRequest("storage.retention is forever: nothing is erased by age. Set it, such as retention: 30d.")
    if at_terminal() and not wanted.yes:
        age = show_duration(retention)
        show(Text(f"This erases the content of all that ended more than {age} ago, in every workspace."), stderr=True)
        prompts.confirm("Erase it?")
    _tell(desk, await _counted(desk, _forgotten(desk, retention)), dry_run=False)


async def _forgotten(desk: Desk, retention: int) -> AsyncIterator[Erased]:
    while (erased := await desk.parts.store.forget(retention)) is not None:
        yield erased


async def _counted(desk: Desk, lots: AsyncIterator[Erased]) -> Erased:
    console, total = Console(stderr=True), Erased()
    with Progress(console=console, transient=True, disable=desk.json or not console.is_terminal) as progress:
        task = progress.add_task("Erasing", total=None)
        async for erased in lots:
            total += erased
            progress.update(task, description=f"Erasing: {_amount(total)}")
    return total


def _tell(desk: Desk, done: Erased, *, dry_run: bool) -> None:
    if desk.json:
        left = [{"id": approval_id, "status": status} for approval_id, status in done.open]
        amounts = {"approvals": done.approvals, "entries": done.entries, "threads": done.threads}
        print_json({**amounts, "open": left, "dry_run": dry_run})
        return
    if not (done.approvals or done.entries or done.threads):
        say("There is nothing to erase.")
    elif dry_run:
        say(f"This would erase {_amount(done)}. Nothing was changed.")
    else:
        say(f"Erased {_amount(done)}.")
    if done.open:
        say(f"Left, since they have not ended: {_left(done)}.")
        for approval_id, status in done.open[:MOST_NAMED]:
            say(f"  {visible(short_id(approval_id))}  {status}")
        if len(done.open) > MOST_NAMED:
            say(f"  … and {len(done.open) - MOST_NAMED:,} more; --json shows all")
        say("Run the same command again when they have ended.")


def _amount(erased: Erased) -> str:
    approvals = counted(erased.approvals, "approval", "approvals")
    details = f"the details of {counted(erased.entries, 'entry', 'entries')} of the ledger"
    if not erased.threads:
        return f"{approvals} and {details}"
    return f"{approvals}, {counted(erased.threads, 'thread', 'threads')} and {details}"


def _left(erased: Erased) -> str:
    threads = sum(each.startswith(PREFIX) for each, _ in erased.open)
    amounts = [(len(erased.open) - threads, "approval", "approvals"), (threads, "thread", "threads")]
    return " and ".join(counted(number, one, many) for number, one, many in amounts if number)

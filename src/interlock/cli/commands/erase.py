"""`interlock erase`: permanently erase content of finished calls. Who, when and the outcome stay in the ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from interlock.cli import prompts
from interlock.cli.cards import find_approval_id
from interlock.cli.context import CommandContext, is_interactive
from interlock.cli.output import print_json, say, short_id, show
from interlock.cli.review import DatabaseReview
from interlock.core.card import escape_invisible
from interlock.core.chat.thread import THREAD_ID_PREFIX
from interlock.core.decision import Reviewer
from interlock.core.errors import Forbidden, InvalidRequest
from interlock.core.ledger.erasure import Erasure, ErasureResult
from interlock.presenters.text import pluralize
from interlock.runtime.durations import format_duration

MAX_NAMED = 20


@dataclass(frozen=True, kw_only=True)
class EraseOptions:
    """Options of the command line; exactly one of the first four is given."""

    approval: str = ""
    thread: str = ""
    person: str = ""
    retention: bool = False
    reason: str = ""
    dry_run: bool = False
    yes: bool = False
    user: str = ""


async def erase(context: CommandContext, options: EraseOptions) -> None:
    if sum(map(bool, (options.approval, options.thread, options.person, options.retention))) != 1:
        raise InvalidRequest("Give exactly one of --approval ID, --thread ID, --person NAME and --retention.")
    person = await context.resolve_reviewer(options.user)
    if options.retention:
        await _by_retention(context, options, person)
        return
    await DatabaseReview(context).run_due_timers()  # an approval that has expired by the clock counts as finished
    erasure = await _erasure(context, options)
    if is_interactive() and not (options.yes or options.dry_run):
        await _ask(context, erasure, person)
    done = await _count_erased(
        context, context.services.inbox.erase(context.workspace, erasure, person, dry_run=options.dry_run)
    )
    _print_erased(context, done, dry_run=options.dry_run)
    if done.skipped and not options.dry_run:
        raise typer.Exit(1)


async def _erasure(context: CommandContext, options: EraseOptions) -> Erasure:
    reason = prompts.check_length("--reason", options.reason)
    if options.approval:
        return Erasure("approval", await find_approval_id(DatabaseReview(context), options.approval), reason)
    return Erasure("thread", options.thread, reason) if options.thread else Erasure("person", options.person, reason)


async def _ask(context: CommandContext, erasure: Erasure, person: Reviewer) -> None:
    found = await _count_erased(context, context.services.inbox.erase(context.workspace, erasure, person, dry_run=True))
    if found.approvals or found.entries or found.threads:
        show(Text(f"This permanently erases {_amount_text(found)}. Earlier backups still contain it."), stderr=True)
        prompts.confirm("Erase it?")


async def _by_retention(context: CommandContext, options: EraseOptions, person: Reviewer) -> None:
    """Erase by retention, for installations without a worker; a worker with the same settings does it by itself."""
    retention = context.settings.storage.retention
    if options.dry_run:
        raise InvalidRequest("--dry-run requires --approval, --thread or --person.")
    if person.role != "admin":
        raise Forbidden(f"Only admins erase content, and {person.name} is not one. Ask an admin.")
    if retention is None:
        raise InvalidRequest(
            "storage.retention is forever: nothing is erased by age. Set it, for example to retention: 30d."
        )
    if is_interactive() and not options.yes:
        age = format_duration(retention)
        show(
            Text(f"This erases the content of all calls that finished more than {age} ago, in every workspace."),
            stderr=True,
        )
        prompts.confirm("Erase it?")
    _print_erased(context, await _count_erased(context, _erase_expired(context, retention)), dry_run=False)


async def _erase_expired(context: CommandContext, retention: int) -> AsyncIterator[ErasureResult]:
    while (erased := await context.services.store.apply_retention(retention)) is not None:
        yield erased


async def _count_erased(context: CommandContext, lots: AsyncIterator[ErasureResult]) -> ErasureResult:
    console, total = Console(stderr=True), ErasureResult()
    with Progress(console=console, transient=True, disable=context.json or not console.is_terminal) as progress:
        task = progress.add_task("Erasing", total=None)
        async for erased in lots:
            total += erased
            progress.update(task, description=f"Erasing: {_amount_text(total)}")
    return total


def _print_erased(context: CommandContext, done: ErasureResult, *, dry_run: bool) -> None:
    if context.json:
        left = [{"id": approval_id, "status": status} for approval_id, status in done.skipped]
        amounts = {"approvals": done.approvals, "entries": done.entries, "threads": done.threads}
        print_json({**amounts, "open": left, "dry_run": dry_run})
        return
    if not (done.approvals or done.entries or done.threads):
        say("Nothing to erase.")
    elif dry_run:
        say(f"This would erase {_amount_text(done)}. Nothing was changed.")
    else:
        say(f"Erased {_amount_text(done)}.")
    if done.skipped:
        say(f"Kept, since they have not finished: {_remaining_text(done)}.")
        for approval_id, status in done.skipped[:MAX_NAMED]:
            say(f"  {escape_invisible(short_id(approval_id))}  {status}")
        if len(done.skipped) > MAX_NAMED:
            say(f"  … and {len(done.skipped) - MAX_NAMED:,} more; use --json for all")
        say("Run the command again when they have finished.")


def _amount_text(erased: ErasureResult) -> str:
    approvals = pluralize(erased.approvals, "approval", "approvals")
    details = f"the details of {pluralize(erased.entries, 'ledger entry', 'ledger entries')}"
    if not erased.threads:
        return f"{approvals} and {details}"
    return f"{approvals}, {pluralize(erased.threads, 'thread', 'threads')} and {details}"


def _remaining_text(erased: ErasureResult) -> str:
    threads = sum(each.startswith(THREAD_ID_PREFIX) for each, _ in erased.skipped)
    amounts = [(len(erased.skipped) - threads, "approval", "approvals"), (threads, "thread", "threads")]
    return " and ".join(pluralize(number, one, many) for number, one, many in amounts if number)

"""`interlock approvals`: what waits on people."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from interlock.cli import deciding
from interlock.cli.cards import card_of, styled_risk, styled_status, time_left, votes_of
from interlock.cli.lookup import sweep, view_of
from interlock.cli.output import nearest, print_json, say, short, short_id, show, span, table
from interlock.cli.shape import item_json, sentence_of, view_json
from interlock.cli.shared import ApprovalId, Desk, User, command, kept
from interlock.core.approval import STATUSES
from interlock.core.card import risk_of, visible
from interlock.core.errors import InvalidRequest
from interlock.core.event import Stored
from interlock.core.outcome import status_at
from interlock.core.ports import Query

HEADS = ("ID", "RISK", "WHAT", "TOOL", "AGENT", "STATUS", "AGE", "LEFT", "VOTES")
SPARE = ("AGENT", "AGE", "TOOL", "VOTES", "LEFT")

app = typer.Typer()

Status = Annotated[str, typer.Option(metavar="STATUS", help=f"One of {', '.join(STATUSES)}, or all.")]
Limit = Annotated[int, typer.Option(min=1, max=500, help="At most so many.")]


@command(app, kept, "list")
async def list_approvals(
    desk: Desk,
    status: Status = "pending",
    tool: Annotated[str, typer.Option(help="Only of this tool.")] = "",
    agent: Annotated[str, typer.Option(help="Only of this agent.")] = "",
    run: Annotated[str, typer.Option(help="Only of this run.")] = "",
    thread: Annotated[str, typer.Option(help="Only of this thread.")] = "",
    limit: Limit = 50,
    cursor: Annotated[str, typer.Option(help="Where the page before ended.")] = "",
) -> None:
    """What waits for a decision, the most urgent first; with --status, what became of the others."""
    wanted = _statuses(status)
    await sweep(desk)
    query = Query(wanted, tool, agent, thread, run, cursor=cursor, limit=limit)
    page = await desk.parts.inbox.list(desk.workspace, query)
    now = desk.now()
    items = [stored for stored in page.items if not wanted or status_at(stored.approval, now) in wanted]
    if desk.json:
        print_json({"items": [item_json(stored, now) for stored in items], "next": page.next})
        return
    if items:
        show(listed(items, now))
    else:
        say("Nothing waits for a decision." if status == "pending" else "There is nothing to show.")
    if page.next:
        say(f"There is more: --cursor {page.next}", style="dim")


def listed(items: list[Stored], now: int) -> Table:
    return table(HEADS, [_row(stored, now) for stored in items], stretch="WHAT", spare=SPARE)


@command(app, kept, "show")
async def show_approval(
    desk: Desk,
    approval_id: ApprovalId,
    full: Annotated[bool, typer.Option("--full", help="Show long values whole.")] = False,
) -> None:
    """The card: what would run, with which arguments, who has to agree, and what happened so far."""
    await sweep(desk)
    view = await view_of(desk, approval_id)
    if desk.json:
        print_json(view_json(view, desk.now()))
    else:
        show(card_of(view, desk.now(), full=full))


@command(app, kept, "watch")
async def watch_approvals(
    desk: Desk,
    user: User = "",
    once: Annotated[bool, typer.Option("--once", help="Print what waits now, and end.")] = False,
) -> None:
    """Stay on it: a live list that can decide. Off a terminal, one line for each event until interrupted."""
    if once:
        await list_approvals(desk)
        return
    from interlock.cli.watch import watch

    await watch(desk, user)


app.add_typer(deciding.app)


def _row(stored: Stored, now: int) -> tuple[Text | str, ...]:
    approval, subject = stored.approval, stored.approval.subject
    status = status_at(approval, now)
    return (
        visible(short_id(approval.id)),
        styled_risk(risk_of(subject.effect, subject.priority)),
        short(sentence_of(stored)),
        visible(subject.tool),
        visible(subject.agent),
        styled_status(status),
        span(now - approval.created_at),
        time_left(approval, status, now),
        votes_of(approval),
    )


def _statuses(text: str) -> tuple[str, ...]:
    if text == "all":
        return ()
    if text not in STATUSES:
        raise InvalidRequest(
            f"There is no status {text!r}.{nearest(text, STATUSES)} See: interlock approvals list --help"
        )
    return (text,)

"""`interlock approvals`: what waits on people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from interlock.cli.approval_lookup import find_approval_view, sweep_if_writable
from interlock.cli.cards import render_card, styled_risk, styled_status, time_left, votes_text
from interlock.cli.commands import decide as deciding
from interlock.cli.context import ApprovalId, CommandContext, User, command, open_database
from interlock.cli.output import did_you_mean, duration_text, print_json, say, short_id, shorten, show, table
from interlock.core.approval.approval import STATUSES
from interlock.core.canonical import parse_json
from interlock.core.card import risk_level, visible
from interlock.core.errors import InvalidRequest
from interlock.core.ledger.event import Stored
from interlock.core.outcome import status_at
from interlock.core.ports import ApprovalPage, ApprovalQuery
from interlock.presenters.approval import approval_item_json, approval_json, approval_sentence
from interlock.runtime.durations import parse_duration

COLUMNS = ("ID", "RISK", "WHAT", "TOOL", "AGENT", "STATUS", "AGE", "LEFT", "VOTES")
NOTHING = "There is nothing to show."
MAX_PAGES = 10
OPTIONAL_COLUMNS = ("AGENT", "AGE", "TOOL", "VOTES", "LEFT")

app = typer.Typer()

Limit = Annotated[int, typer.Option(min=1, max=500, help="At most so many.")]
PENDING = ("pending",)
Status = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STATUS",
        show_default="pending; all in a search",
        help=f"One of {', '.join(STATUSES)}, or all. Can be given several times.",
    ),
]
Search = Annotated[str, typer.Option(metavar="TEXT", help="With all these words; the last may be a beginning.")]
Person = Annotated[str, typer.Option(metavar="NAME", help="Requested, decided, voted on or edited by them.")]
Arg = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH=VALUE", help="With this argument, as in to=bob or order.total=100. Several: all of them."
    ),
]
Since = Annotated[str, typer.Option(metavar="TIME", help="Made since then: 7d, 2026-01-31 or 2026-01-31T14:00.")]
Until = Annotated[str, typer.Option(metavar="TIME", help="Made before then.")]


@command(app, open_database, "list")
async def list_approvals(
    desk: CommandContext,
    *,
    status: Status = None,
    search: Search = "",
    tool: Annotated[str, typer.Option(help="Only of this tool.")] = "",
    agent: Annotated[str, typer.Option(help="Only of this agent, or of agents that it called.")] = "",
    person: Person = "",
    arg: Arg = None,
    run: Annotated[str, typer.Option(help="Only of this run.")] = "",
    thread: Annotated[str, typer.Option(help="Only of this thread.")] = "",
    since: Since = "",
    until: Until = "",
    limit: Limit = 50,
    cursor: Annotated[str, typer.Option(help="Where the page before ended.")] = "",
) -> None:
    """What waits for a decision, the most urgent first; or whatever is searched for, the newest first."""
    given = SearchOptions(search, person, arg or (), since, until)
    wanted = given.statuses(status or ())
    await sweep_if_writable(desk)
    query = replace(given.query(wanted, desk.now()), tool=tool, agent=agent, thread_id=thread, run_id=run)
    page = await _fill_page(desk, replace(query, cursor=cursor, limit=limit))
    now = desk.now()
    if desk.json:
        items = [approval_item_json(stored, now) for stored in page.items]
        print_json({"items": items, "next": page.next, "behind": page.behind})
        return
    if page.items:
        show(approvals_table(page.items, now))
    else:
        say(_nothing_found(query))
    if page.next:
        say(f"There is more: --cursor {page.next}", style="dim")
    if page.behind:
        say("Not everything can be searched yet; newer approvals may be missing. Try again in a moment.", style="dim")


async def _fill_page(desk: CommandContext, query: ApprovalQuery) -> ApprovalPage:
    """A page of a search may be short and yet have a next one; a person should not have to turn it."""
    page = await desk.parts.inbox.list(desk.workspace, query)
    items = _still_matching(page, query, desk.now())
    for _ in range(MAX_PAGES):
        if page.next is None or len(items) >= query.limit:
            break
        rest = replace(query, cursor=page.next, limit=query.limit - len(items))
        page = await desk.parts.inbox.list(desk.workspace, rest)
        items += _still_matching(page, query, desk.now())
    return replace(page, items=items)


def _still_matching(page: ApprovalPage, query: ApprovalQuery, now: int) -> tuple[Stored, ...]:
    """Where nobody could write that time has passed, the clock still says so."""
    return tuple(s for s in page.items if not query.statuses or status_at(s.approval, now) in query.statuses)


def _nothing_found(query: ApprovalQuery) -> str:
    if query == ApprovalQuery(PENDING):
        return "Nothing waits for a decision."
    return "Nothing that waits fits. To look at the others too: --status all" if query.statuses == PENDING else NOTHING


def approvals_table(items: Sequence[Stored], now: int) -> Table:
    return table(COLUMNS, [_row(stored, now) for stored in items], stretch="WHAT", spare=OPTIONAL_COLUMNS)


@command(app, open_database, "show")
async def show_approval(
    desk: CommandContext,
    approval_id: ApprovalId,
    full: Annotated[bool, typer.Option("--full", help="Show long values whole.")] = False,
) -> None:
    """The card: what would run, with which arguments, who has to agree, and what happened so far."""
    await sweep_if_writable(desk)
    view = await find_approval_view(desk, approval_id)
    if desk.json:
        print_json(approval_json(view, desk.now()))
    else:
        show(render_card(view, desk.now(), full=full))


@command(app, open_database, "watch")
async def watch_approvals(
    desk: CommandContext,
    user: User = "",
    once: Annotated[bool, typer.Option("--once", help="Print what waits now, and end.")] = False,
    mine: Annotated[bool, typer.Option("--mine", help="Only what waits for you, in the live list.")] = False,
) -> None:
    """Stay on it: a live list that can decide. Off a terminal, one line for each event until interrupted."""
    if once:
        await list_approvals(desk)
        return
    from interlock.cli.tui.watch import watch

    await watch(desk, user, mine=mine)


app.add_typer(deciding.app)


def _row(stored: Stored, now: int) -> tuple[Text | str, ...]:
    approval, subject = stored.approval, stored.approval.subject
    status = status_at(approval, now)
    return (
        visible(short_id(approval.id)),
        styled_risk(risk_level(subject.effect, subject.priority)),
        shorten(approval_sentence(stored)),
        visible(subject.tool),
        visible(subject.agent),
        styled_status(status),
        duration_text(now - approval.created_at),
        time_left(approval, status, now),
        votes_text(approval),
    )


@dataclass(frozen=True)
class SearchOptions:
    """What was given on the command line; these make a list a search."""

    search: str = ""
    person: str = ""
    arg: Sequence[str] = ()
    since: str = ""
    until: str = ""

    @property
    def is_search(self) -> bool:
        return any((self.search, self.person, self.arg, self.since, self.until))

    def statuses(self, status: Sequence[str]) -> tuple[str, ...]:
        """Who looks for something does not care whether it still waits; who looks at the list wants what waits."""
        if not status:
            return () if self.is_search else PENDING
        return () if "all" in status else tuple(dict.fromkeys(map(_check_status, status)))

    def query(self, statuses: tuple[str, ...], now: int) -> ApprovalQuery:
        return ApprovalQuery(
            statuses,
            text=self.search,
            person=self.person,
            arguments=tuple(map(_parse_argument_filter, self.arg)),
            since=_parse_moment("--since", self.since, now) or 0,
            until=_parse_moment("--until", self.until, now),
        )


def _check_status(text: str) -> str:
    if text not in STATUSES:
        raise InvalidRequest(
            f"There is no status {text!r}.{did_you_mean(text, STATUSES)} See: interlock approvals list --help"
        )
    return text


def _parse_argument_filter(text: str) -> tuple[str, object]:
    """The value is JSON if it can be read as such: 5 is a number, "5" in quotation marks a text."""
    path, equals, value = text.partition("=")
    if not path or not equals:
        raise InvalidRequest(f"--arg {text!r} is not PATH=VALUE. Write --arg to=bob or --arg order.total=100.")
    try:
        return path, parse_json(value)
    except InvalidRequest:
        return path, value


def _parse_moment(option: str, text: str, now: int) -> int | None:
    """A time ago, or a time on the clock of the person who types it."""
    if not text:
        return None
    try:
        if re.fullmatch(r"[0-9]+(ms|s|m|h|d)", text):
            return max(0, now - parse_duration(text))
        return max(0, int(datetime.fromisoformat(text).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest(f"{option} {text!r} is no time. Write 90m, 7d, 2026-01-31 or 2026-01-31T14:00.") from None

"""`interlock approvals`: list, search, show, decide and watch approvals."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from interlock.cli import prompts
from interlock.cli.approval_records import ApprovalRow, ApprovalRows, DecisionResult, ShownApproval
from interlock.cli.cards import (
    decision_text,
    find_approval_view,
    print_events,
    render_card,
    styled_risk,
    styled_status,
    time_left,
)
from interlock.cli.context import (
    ApprovalId,
    command,
    is_interactive,
    missing_package_error,
)
from interlock.cli.output import (
    did_you_mean,
    print_json,
    say,
    short_id,
    shorten,
    show,
    table,
)
from interlock.cli.review import ActingUser, Resolution, Review, ReviewContext, ReviewOptions, open_review
from interlock.core.approval.approval import STATUSES
from interlock.core.card import escape_invisible
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import AlreadyDecided, FindingsNotAcknowledged, InvalidRequest
from interlock.core.policy.policy import People
from interlock.core.ports import ApprovalQuery
from interlock.core.search import parse_argument_filter
from interlock.presenters.text import people_text
from interlock.runtime.durations import duration_text, parse_duration

COLUMNS = ("ID", "RISK", "WHAT", "TOOL", "AGENT", "STATUS", "AGE", "LEFT", "VOTES")
NOTHING = "No approvals found."
MAX_PAGES = 10
OPTIONAL_COLUMNS = ("AGENT", "AGE", "TOOL", "VOTES", "LEFT")

app = typer.Typer()

Limit = Annotated[int, typer.Option(min=1, max=500, help="Maximum number of rows.")]
PENDING = ("pending",)
Status = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STATUS",
        show_default="pending; all in a search",
        help=f"One of {', '.join(STATUSES)}, or all. Repeatable.",
    ),
]
Search = Annotated[str, typer.Option(metavar="TEXT", help="Full-text search; the last word may be a prefix.")]
Person = Annotated[str, typer.Option(metavar="NAME", help="Requested, decided, voted on or edited by this person.")]
Arg = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH=VALUE",
        help="Only calls with this argument, such as to=bob or order.total=100. Repeatable; all must match.",
    ),
]
Since = Annotated[
    str, typer.Option(metavar="TIME", help="Only calls made since then: 7d, 2026-01-31 or 2026-01-31T14:00.")
]
Until = Annotated[str, typer.Option(metavar="TIME", help="Only calls made before then.")]


@command(app, open_review, "list", kind=ReviewOptions)
async def list_approvals(
    context: ReviewContext,
    *,
    status: Status = None,
    search: Search = "",
    tool: Annotated[str, typer.Option(help="Only calls of this tool.")] = "",
    agent: Annotated[str, typer.Option(help="Only calls of this agent, or of agents that it called.")] = "",
    person: Person = "",
    arg: Arg = None,
    run: Annotated[str, typer.Option(help="Only calls of this run.")] = "",
    thread: Annotated[str, typer.Option(help="Only calls of this thread.")] = "",
    since: Since = "",
    until: Until = "",
    limit: Limit = 50,
    cursor: Annotated[str, typer.Option(help="Cursor of the next page, as printed by the previous one.")] = "",
) -> None:
    """List pending approvals in the order of the inbox, or search results, newest first."""
    given = SearchOptions(search, person, arg or (), since, until)
    wanted = given.statuses(status or ())
    await context.review.run_due_timers()
    query = replace(given.query(wanted, context.now()), tool=tool, agent=agent, thread_id=thread, run_id=run)
    page = await _fill_page(context.review, replace(query, cursor=cursor, limit=limit))
    if context.json:
        items = [row.json for row in page.items]
        print_json({"items": items, "next": page.next, "behind": page.is_index_behind})
        return
    if page.items:
        show(approvals_table(page.items, context.now()))
    else:
        say(_nothing_found(query))
    if page.next:
        say(f"More results: --cursor {escape_invisible(page.next)}", style="dim")
    if page.is_index_behind:
        say("The search index is catching up; recent approvals may be missing. Try again in a moment.", style="dim")


async def _fill_page(review: Review, query: ApprovalQuery) -> ApprovalRows:
    """Fill the page: a page of a search may be short and still have a next one."""
    page = await review.list(query)
    items = _still_matching(page, query)
    for _ in range(MAX_PAGES):
        if page.next is None or len(items) >= query.limit:
            break
        page = await review.list(replace(query, cursor=page.next, limit=query.limit - len(items)))
        items += _still_matching(page, query)
    return replace(page, items=sorted(items, key=lambda row: row.urgency) if query.statuses == PENDING else items)


def _still_matching(page: ApprovalRows, query: ApprovalQuery) -> list[ApprovalRow]:
    """Items whose status still matches by the clock, also if a read-only database could not record the change."""
    return [row for row in page.items if not query.statuses or row.status in query.statuses]


def _nothing_found(query: ApprovalQuery) -> str:
    if query == ApprovalQuery(PENDING):
        return "No approvals are pending."
    return "No pending approvals match. To search all: --status all" if query.statuses == PENDING else NOTHING


def approvals_table(items: Sequence[ApprovalRow], now: int) -> Table:
    return table(COLUMNS, [_row(row, now) for row in items], stretch="WHAT", spare=OPTIONAL_COLUMNS)


@command(app, open_review, "show", kind=ReviewOptions)
async def show_approval(
    context: ReviewContext,
    approval_id: ApprovalId,
    full: Annotated[bool, typer.Option("--full", help="Show long values in full.")] = False,
) -> None:
    """Show one approval: the call, its arguments, who has to approve, and its history."""
    await context.review.run_due_timers()
    view = await find_approval_view(context.review, approval_id)
    if context.json:
        print_json(view.json)
    else:
        show(render_card(view, context.now(), full=full))


@command(app, open_review, "watch", kind=ReviewOptions)
async def watch_approvals(
    context: ReviewContext,
    user: ActingUser = "",
    once: Annotated[bool, typer.Option("--once", help="Print the pending approvals and exit.")] = False,
    mine: Annotated[
        bool, typer.Option("--mine", help="In the live list, show only approvals that need your decision.")
    ] = False,
) -> None:
    """Show a live list of pending approvals, to decide from. Without a terminal: print one line per event."""
    if once:
        await list_approvals(context)
        return
    if context.json or not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        await print_events(context.review, as_json=context.json)
        return
    try:
        from interlock.cli.watch import run_live_view
    except ImportError as error:
        raise missing_package_error(error, "terminal") from None
    await run_live_view(context.review, user, mine=mine)


def _row(row: ApprovalRow, now: int) -> tuple[Text | str, ...]:
    return (
        escape_invisible(short_id(row.id)),
        styled_risk(row.risk),
        shorten(row.sentence),
        escape_invisible(row.tool),
        escape_invisible(row.agent),
        styled_status(row.status),
        duration_text(now - row.created_at),
        time_left(row, now),
        row.votes_text,
    )


@dataclass(frozen=True)
class SearchOptions:
    """Search options of the command line; any of them makes a list a search."""

    search: str = ""
    person: str = ""
    arg: Sequence[str] = ()
    since: str = ""
    until: str = ""

    @property
    def is_search(self) -> bool:
        return any((self.search, self.person, self.arg, self.since, self.until))

    def statuses(self, status: Sequence[str]) -> tuple[str, ...]:
        """The statuses to query: by default, pending for a list and all for a search."""
        if not status:
            return () if self.is_search else PENDING
        return () if "all" in status else tuple(dict.fromkeys(map(_check_status, status)))

    def query(self, statuses: tuple[str, ...], now: int) -> ApprovalQuery:
        return ApprovalQuery(
            statuses,
            text=self.search,
            person=self.person,
            arguments=tuple(map(_argument_filter, self.arg)),
            since=_parse_moment("--since", self.since, now) or 0,
            until=_parse_moment("--until", self.until, now),
        )


def _check_status(text: str) -> str:
    if text not in STATUSES:
        raise InvalidRequest(
            f"There is no status {text!r}.{did_you_mean(text, STATUSES)} See: interlock approvals list --help"
        )
    return text


def _argument_filter(text: str) -> tuple[str, object]:
    try:
        return parse_argument_filter(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"--arg {error.message} Write --arg to=bob or --arg order.total=100.") from None


def _parse_moment(option: str, text: str, now: int) -> int | None:
    """Parse a duration ago, or a time in the local time zone."""
    if not text:
        return None
    try:
        if re.fullmatch(r"[0-9]+(ms|s|m|h|d)", text):
            return max(0, now - parse_duration(text))
        return max(0, int(datetime.fromisoformat(text).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest(
            f"{option} {text!r} is not a time. Write 90m, 7d, 2026-01-31 or 2026-01-31T14:00."
        ) from None


Comment = Annotated[
    str, typer.Option(metavar="TEXT", help=f"Comment, recorded in the ledger; up to {MAX_COMMENT} characters.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation prompt (implied without a terminal).")]
Acknowledge = Annotated[
    list[str] | None,
    typer.Option(metavar="FINDING", help="Id of a finding that you have reviewed. Repeatable."),
]
AcknowledgeAll = Annotated[bool, typer.Option("--acknowledge-all", help="Print all findings, and acknowledge them.")]


@command(app, open_review, kind=ReviewOptions)
async def approve(
    context: ReviewContext,
    approval_id: ApprovalId,
    comment: Comment = "",
    acknowledge: Acknowledge = None,
    acknowledge_all: AcknowledgeAll = False,
    yes: Yes = False,
    user: ActingUser = "",
) -> None:
    """Approve the call with the arguments on the card."""
    view = await find_approval_view(context.review, approval_id)
    asks = is_interactive() and not yes
    if asks:
        show(render_card(view, context.now()), stderr=True)
    seen = prompts.acknowledged_ids(view.card.findings, acknowledge or (), all_of_them=acknowledge_all)
    if asks and view.row.status == "pending":
        seen = prompts.acknowledge_each(view.card.findings, seen)
        prompts.confirm("Approve this call?")
    after = await _decide(context, view, {"kind": "approve", "comment": comment, "acknowledged": seen}, user)
    await print_decision(context, view, after)


@command(app, open_review, kind=ReviewOptions)
async def edit(
    context: ReviewContext,
    approval_id: ApprovalId,
    args: Annotated[
        str, typer.Option(metavar="JSON", help="All arguments; @FILE reads a file, - reads standard input.")
    ],
    comment: Comment = "",
    acknowledge: Acknowledge = None,
    acknowledge_all: AcknowledgeAll = False,
    yes: Yes = False,
    user: ActingUser = "",
) -> None:
    """Change the arguments, and approve them unless the rule excludes editors."""
    new_args = prompts.json_option("--args", args)
    if not isinstance(new_args, Mapping):
        raise InvalidRequest('--args must be an object, such as {"title": "Fix login"}.')
    view = await find_approval_view(context.review, approval_id)
    if view.row.status != "pending":
        raise AlreadyDecided(f"This approval is {view.row.status}. Nothing was changed.", approval_id=view.row.id)
    prompts.show_changes(view, new_args)
    findings = prompts.findings_in(view, new_args)
    seen = prompts.acknowledged_ids(findings, acknowledge or (), all_of_them=acknowledge_all)
    if is_interactive() and not yes:
        seen = prompts.acknowledge_each(findings, seen)
        prompts.confirm("Approve the call with these arguments?")
    body = {"kind": "edit", "args": new_args, "comment": comment, "acknowledged": seen}
    await print_decision(context, view, await _decide(context, view, body, user))


@command(app, open_review, kind=ReviewOptions)
async def respond(
    context: ReviewContext,
    approval_id: ApprovalId,
    message: Annotated[str, typer.Argument(metavar="[MESSAGE]", show_default=False, help="Answer for the agent.")] = "",
    answer: Annotated[
        str, typer.Option(metavar="JSON", help="JSON answer instead of text, validated by the question's schema.")
    ] = "",
    comment: Comment = "",
    user: ActingUser = "",
) -> None:
    """Answer the agent instead of running the call. A question can only be answered."""
    if bool(message) == bool(answer):
        raise InvalidRequest("Give either MESSAGE or --answer JSON.")
    view = await find_approval_view(context.review, approval_id)
    data = prompts.json_option("--answer", answer) if answer else prompts.parse_answer(view, message)
    said = {"message": message} if data is None else {"answer": data}
    await print_decision(
        context, view, await _decide(context, view, {"kind": "respond", "comment": comment, **said}, user)
    )


@command(app, open_review, kind=ReviewOptions)
async def reject(
    context: ReviewContext,
    approval_id: ApprovalId,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason, sent to the agent.")] = "",
    comment: Comment = "",
    user: ActingUser = "",
) -> None:
    """Reject the call. Can be undone within the undo window."""
    view = await find_approval_view(context.review, approval_id)
    after = await _decide(context, view, {"kind": "reject", "reason": reason, "comment": comment}, user)
    await print_decision(context, view, after)


@command(app, open_review, kind=ReviewOptions)
async def undo(context: ReviewContext, approval_id: ApprovalId, user: ActingUser = "") -> None:
    """Undo a rejection within its undo window."""
    view = await find_approval_view(context.review, approval_id)
    await print_decision(context, view, await context.review.undo(view.row.id, user))


@command(app, open_review, kind=ReviewOptions)
async def delegate(
    context: ReviewContext,
    approval_id: ApprovalId,
    to_user: Annotated[list[str] | None, typer.Option(metavar="NAME", help="User to delegate to. Repeatable.")] = None,
    to_team: Annotated[list[str] | None, typer.Option(metavar="TEAM", help="Team to delegate to. Repeatable.")] = None,
    user: ActingUser = "",
) -> None:
    """Delegate your vote on this approval."""
    people = People(frozenset(to_user or ()), frozenset(to_team or ()))
    if people == People():
        raise InvalidRequest("Give a delegate: --to-user NAME or --to-team TEAM.")
    view = await find_approval_view(context.review, approval_id)
    name = await context.review.delegate(view.row.id, people, user)
    if context.json:
        print_json((await context.review.show(view.row.id)).json)
    else:
        say(f"{people_text(people)} may now decide this on behalf of {escape_invisible(name)}.")


@command(app, open_review, kind=ReviewOptions)
async def resolve(
    context: ReviewContext,
    approval_id: ApprovalId,
    succeeded: Annotated[bool, typer.Option("--succeeded", help="You checked: it took effect.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="You checked: it did not take effect.")] = False,
    note: Annotated[str, typer.Option(metavar="TEXT", help="Evidence, recorded in the ledger.")] = "",
    result: Annotated[str, typer.Option(metavar="JSON", help="Result of the tool, for the agent.")] = "",
    user: ActingUser = "",
) -> None:
    """Record the outcome of a call whose status is unknown. Runs nothing."""
    if succeeded == failed:
        raise InvalidRequest("Give either --succeeded or --failed.")
    if failed and result:
        raise InvalidRequest("--result requires --succeeded. Describe the failure with --note.")
    given = prompts.json_option("--result", result) if result else None
    view = await find_approval_view(context.review, approval_id)
    resolution = Resolution(succeeded, prompts.check_length("--note", note), given)
    await print_decision(context, view, await context.review.resolve(view.row.id, resolution, user))


async def _decide(context: ReviewContext, view: ShownApproval, body: Mapping[str, object], user: str) -> DecisionResult:
    try:
        return await context.review.decide(view, body, user)
    except FindingsNotAcknowledged as error:
        error.message += " (--acknowledge ID, or --acknowledge-all)"
        raise


async def print_decision(context: ReviewContext, before: ShownApproval, after: DecisionResult) -> None:
    if context.json:
        print_json((await context.review.show(after.id)).json)
    else:
        say(decision_text(before.row, after, context.now()))

"""`interlock grants`: standing permissions: list, show, add, revoke."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from interlock.app.gate import uuid7
from interlock.app.inbox import GrantView, LatestDefinition
from interlock.cli.cards import MAX_NAMED, check_id_length, styled_status
from interlock.cli.context import CommandContext, User, command, open_database
from interlock.cli.output import (
    did_you_mean,
    grid,
    local_time,
    print_json,
    say,
    short_id,
    shorten,
    show,
    table,
)
from interlock.core.card import escape_invisible
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import InvalidRequest, NotFound
from interlock.core.grant import Grant, state_at
from interlock.core.outcome import status_at
from interlock.core.ports import ApprovalQuery
from interlock.presenters.approval import approval_sentence, entry_content
from interlock.presenters.policy import grant_amount, grant_json, grant_view_json, grant_warnings
from interlock.presenters.text import pluralize
from interlock.runtime.durations import duration_text, parse_duration

app = typer.Typer()

MAX_LISTED = 1_000  # maximum grants in a list
GrantId = Annotated[
    str,
    typer.Argument(metavar="ID", show_default=False, help="Id, or at least 4 characters of its beginning or end."),
]


@command(app, open_database, "list")
async def list_grants(
    context: CommandContext,
    everything: Annotated[bool, typer.Option("--all", help="Also list expired, used-up and revoked grants.")] = False,
) -> None:
    """List grants and their remaining uses and budget, newest first."""
    inbox = context.services.inbox
    grants = await (inbox.grants if everything else inbox.active_grants)(context.workspace)
    now = context.now()
    if context.json:
        print_json({"items": [grant_json(grant, now) for grant in grants], "next": None})
    elif grants:
        show(grants_table(grants, now, with_state=everything))
        if len(grants) == MAX_LISTED:
            say(f"There may be more: only the newest {MAX_LISTED:,} are listed.", style="dim")
    else:
        say("There are no grants." if everything else "There are no active grants. To include ended ones: --all")


@command(app, open_database, "show")
async def show_grant(context: CommandContext, grant_id: GrantId) -> None:
    """Show one grant: its scope and limits, who created it and why, and the calls that it allowed."""
    view = await context.services.inbox.show_grant(context.workspace, await _find_grant_id(context, grant_id))
    if context.json:
        print_json(grant_view_json(view, context.now()))
    else:
        show(render_grant(view, context.now()))


@command(app, open_database)
async def add(
    context: CommandContext,
    tool: Annotated[str, typer.Argument(metavar="TOOL", show_default=False, help="Full name of the tool.")],
    *,
    term: Annotated[str, typer.Option("--for", metavar="TIME", help="Duration: 30m, 2h, 7d; at most a year.")],
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help=f"Reason, recorded in the ledger; up to {MAX_COMMENT} characters.")
    ],
    agent: Annotated[str, typer.Option(metavar="NAME", help="Only for this agent; * is a wildcard.")] = "*",
    when: Annotated[
        str, typer.Option(metavar="CEL", help="Only if this condition is true, such as 'args.amount < 10'.")
    ] = "",
    uses: Annotated[int | None, typer.Option(metavar="N", help="Maximum number of calls.")] = None,
    budget: Annotated[str, typer.Option(metavar="NUMBER", help="Maximum sum of an argument over all calls.")] = "",
    budget_of: Annotated[str, typer.Option(metavar="NAME", help="Argument to sum up; or a pointer such as /a/b.")] = "",
    user: User = "",
) -> None:
    """Create a standing approval for calls of one tool."""
    if not reason.strip():
        raise InvalidRequest("--reason is empty. Say briefly why no approval is needed.")
    if bool(budget) != bool(budget_of):
        raise InvalidRequest(
            "--budget NUMBER and --budget-of NAME must be given together: the amount, and the argument to sum up."
        )
    now = context.now()
    until = now + parse_duration(term)
    definition = await _definition(context, tool, agent)
    draft = Grant(
        id=uuid7(now),
        workspace=context.workspace,
        tool=tool,
        spec_sha256=definition.spec.sha256,
        created_by="",
        teams=frozenset(),
        role="",
        created_at=0,
        expires_at=until,
        agent=agent,
        when=when,
        max_uses=uses,
        reason=reason,
        budget_of=budget_of,
        budget=budget,
    )
    grant = await context.services.inbox.grant(draft, await context.resolve_reviewer(user))
    print_new_grant(context, grant, definition, now)


@command(app, open_database)
async def revoke(
    context: CommandContext,
    grant_id: GrantId,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason, recorded in the ledger.")] = "",
    user: User = "",
) -> None:
    """Revoke a grant. Calls already allowed may still start; later calls need approval again."""
    before = await context.services.store.grant(context.workspace, await _find_grant_id(context, grant_id))
    person = await context.resolve_reviewer(user)
    grant = await context.services.inbox.revoke(context.workspace, before.id, person, reason)
    if context.json:
        print_json(grant_json(grant, context.now()))
    elif before.revoked_at is not None:
        say("This grant is already revoked; nothing changed.")
    else:
        say(f"Revoked: {escape_invisible(grant.tool)} needs approval again. Calls already allowed may still start.")


async def _definition(context: CommandContext, tool: str, agent: str) -> LatestDefinition:
    try:
        return await context.services.inbox.definition(context.workspace, tool, agent)
    except NotFound as error:
        page = await context.services.inbox.list(context.workspace, ApprovalQuery(limit=500))
        known = {stored.approval.subject.tool for stored in page.items}
        raise NotFound(error.message + did_you_mean(tool, known), tool=tool) from None


async def _find_grant_id(context: CommandContext, text: str) -> str:
    check_id_length(text)
    try:
        return (await context.services.store.grant(context.workspace, text)).id
    except NotFound:
        ids = await context.services.store.find_grant_ids(context.workspace, text, MAX_NAMED + 1)
    if len(ids) == 1:
        return ids[0]
    if not ids:
        raise NotFound(
            f"There is no grant {text!r} in the workspace {context.workspace!r}. See: interlock grants list --all",
            grant_id=text,
        )
    named = ", ".join(escape_invisible(grant_id) for grant_id in ids[:MAX_NAMED])
    more = " and more" if len(ids) > MAX_NAMED else ""
    raise NotFound(
        f"{text!r} matches several grants: {named}{more}. Give more of the id.",
        grant_id=text,
        candidates=list(ids[:MAX_NAMED]),
    )


COLUMNS = ("ID", "TOOL", "AGENT", "WHEN", "LEFT", "USES LEFT", "BUDGET LEFT", "BY", "REASON")
OPTIONAL_COLUMNS = ("WHEN", "BY", "AGENT", "BUDGET LEFT", "USES LEFT")
MAX_TEXT = 60  # characters of a condition or a reason in a list


def grants_table(grants: Sequence[Grant], now: int, *, with_state: bool) -> Table:
    heads = (*COLUMNS[:1], "STATE", *COLUMNS[1:]) if with_state else COLUMNS
    return table(
        heads, [_row(grant, now, with_state=with_state) for grant in grants], stretch="REASON", spare=OPTIONAL_COLUMNS
    )


def render_grant(view: GrantView, now: int) -> Group:
    return Group(*_parts(view, now))


def print_new_grant(context: CommandContext, grant: Grant, definition: LatestDefinition, now: int) -> None:
    """Print the new grant, the definition it is bound to, and warnings."""
    doubts = list(grant_warnings(grant, definition))
    if context.json:
        print_json({**grant_json(grant, now), "warnings": doubts})
        return
    for doubt in doubts:
        show(Text(f"Warning: {doubt}", style="yellow"), stderr=True)
    until = f"until {local_time(grant.expires_at)} (for {duration_text(grant.expires_at - now)})"
    say(f"Granted: {_who(grant)} may call {escape_invisible(grant.tool)} without approval {until}{_limits(grant)}.")
    caller = f" by {escape_invisible(definition.agent)}" if definition.agent else ""
    say(
        f"It applies to the tool as it was called{caller} at {local_time(definition.at)}; "
        "a changed tool needs approval again."
    )
    say(f"To revoke it: interlock grants revoke {escape_invisible(short_id(grant.id))}")


def _row(grant: Grant, now: int, *, with_state: bool) -> tuple[Text | str, ...]:
    state = state_at(grant, now)
    uses, budget = grant.uses_left, grant.budget_left
    return (
        escape_invisible(short_id(grant.id)),
        *((_styled(state),) if with_state else ()),
        escape_invisible(grant.tool),
        escape_invisible(grant.agent),
        shorten(escape_invisible(grant.when), MAX_TEXT),
        duration_text(grant.expires_at - now) if state == "active" else "",
        "" if uses is None else f"{uses:,}",
        "" if budget is None else f"{budget} {escape_invisible(grant.budget_of)}",
        escape_invisible(grant.created_by),
        shorten(escape_invisible(grant.reason), MAX_TEXT),
    )


def _parts(view: GrantView, now: int) -> Iterator[RenderableType]:
    grant = view.grant
    yield Text.assemble(("Grant", "bold"), f" for {escape_invisible(grant.tool)}: ", _styled(view.state))
    yield grid([(label, Text(text)) for label, text in _facts(view, now) if text])
    if grant.uses:
        yield Text("\nCalls allowed by this grant", style="bold")
        yield _uses_table(view, now)
    if len(view.recent_calls) < grant.uses:
        where = "the newest, of the last 10,000 calls in its period"
        yield Text(f"  {len(view.recent_calls):,} of {pluralize(grant.uses, 'call', 'calls')}: {where}", style="dim")


def _facts(view: GrantView, now: int) -> Iterator[tuple[str, str]]:
    grant = view.grant
    left = f", {duration_text(grant.expires_at - now)} left" if view.state == "active" else ""
    yield "agent", escape_invisible(grant.agent)
    yield "when", escape_invisible(grant.when)
    yield "until", f"{local_time(grant.expires_at)}{left}"
    yield "uses", f"{grant.uses:,}" + ("" if grant.max_uses is None else f" of {grant.max_uses:,}")
    if grant.budget:
        yield "budget", f"{grant.spent} of {grant.budget} spent, counted in {escape_invisible(grant.budget_of)}"
    yield "created", f"{local_time(grant.created_at)} by {escape_invisible(grant.created_by)}"
    yield "reason", escape_invisible(grant.reason)
    yield "revoked", _revocation_text(view)
    yield "id", f"{escape_invisible(grant.id)} (short: {escape_invisible(short_id(grant.id))})"
    yield "definition", grant.spec_sha256


def _revocation_text(view: GrantView) -> str:
    if view.grant.revoked_at is None:
        return ""
    at = local_time(view.grant.revoked_at)
    if view.revocation_entry is None:
        return f"{at}; too long ago to show who revoked it; the ledger does"
    why = escape_invisible(str((entry_content(view.revocation_entry) or {}).get("reason", "")))
    return f"{at} by {escape_invisible(view.revocation_entry.actor)}" + (f": {why}" if why else "")


def _uses_table(view: GrantView, now: int) -> Table:
    made = Table.grid(padding=(0, 2))
    for _ in range(5):
        made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for stored in view.recent_calls:
        approval = stored.approval
        status = styled_status(status_at(approval, now))
        amount = grant_amount(stored, view.grant)
        name = escape_invisible(short_id(approval.id))
        made.add_row("", local_time(approval.created_at), name, status, amount, shorten(approval_sentence(stored)))
    return made


def _who(grant: Grant) -> str:
    return "every agent" if grant.agent == "*" else escape_invisible(grant.agent)


def _limits(grant: Grant) -> str:
    uses = "" if grant.max_uses is None else f", {pluralize(grant.max_uses, 'time', 'times')} at most"
    budget = f", up to {grant.budget} of {escape_invisible(grant.budget_of)} in total" if grant.budget else ""
    return (f", if {escape_invisible(grant.when)}" if grant.when else "") + uses + budget


def _styled(state: str) -> Text:
    return Text(state, style="green" if state == "active" else "dim")

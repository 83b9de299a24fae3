"""Grants as people read them and as JSON; what a person is told who has made one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from interlock.app.inbox import Definition, GrantView
from interlock.cli.cards import styled_status
from interlock.cli.output import clock_time, grid, print_json, say, short, short_id, show, span, table
from interlock.cli.shared import Desk
from interlock.core.card import visible
from interlock.core.grant import Grant, state_at
from interlock.core.outcome import status_at
from interlock.presenters.approval import content_of, sentence_of
from interlock.presenters.policy import grant_amount, grant_doubts, grant_json
from interlock.presenters.text import counted

HEADS = ("ID", "TOOL", "AGENT", "WHEN", "LEFT", "USES LEFT", "BUDGET LEFT", "BY", "REASON")
SPARE = ("WHEN", "BY", "AGENT", "BUDGET LEFT", "USES LEFT")
WORDS = 60  # characters of a condition or a reason in a list


def listed(grants: Sequence[Grant], now: int, *, with_state: bool) -> Table:
    heads = (*HEADS[:1], "STATE", *HEADS[1:]) if with_state else HEADS
    return table(heads, [_row(grant, now, with_state=with_state) for grant in grants], stretch="REASON", spare=SPARE)


def view_of(view: GrantView, now: int) -> Group:
    return Group(*_parts(view, now))


def told(desk: Desk, grant: Grant, definition: Definition, now: int) -> None:
    """What was made, on which definition, and what to think twice about."""
    doubts = list(grant_doubts(grant, definition))
    if desk.json:
        print_json({**grant_json(grant, now), "warnings": doubts})
        return
    for doubt in doubts:
        show(Text(f"Warning: {doubt}", style="yellow"), stderr=True)
    until = f"until {clock_time(grant.expires_at)} (for {span(grant.expires_at - now)})"
    say(f"Granted: {_who(grant)} may call {visible(grant.tool)} without asking {until}{_limits(grant)}.")
    caller = f" by {visible(definition.agent)}" if definition.agent else ""
    say(f"It holds for the tool as it was called{caller} at {clock_time(definition.at)}; a changed tool asks again.")
    say(f"To end it: interlock grants revoke {visible(short_id(grant.id))}")


def _row(grant: Grant, now: int, *, with_state: bool) -> tuple[Text | str, ...]:
    state = state_at(grant, now)
    uses, budget = grant.uses_left, grant.budget_left
    return (
        visible(short_id(grant.id)),
        *((_styled(state),) if with_state else ()),
        visible(grant.tool),
        visible(grant.agent),
        short(visible(grant.when), WORDS),
        span(grant.expires_at - now) if state == "active" else "",
        "" if uses is None else f"{uses:,}",
        "" if budget is None else f"{budget} {visible(grant.budget_of)}",
        visible(grant.created_by),
        short(visible(grant.reason), WORDS),
    )


def _parts(view: GrantView, now: int) -> Iterator[RenderableType]:
    grant = view.grant
    yield Text.assemble(("Grant", "bold"), f" for {visible(grant.tool)}: ", _styled(view.state))
    yield grid([(label, Text(text)) for label, text in _facts(view, now) if text])
    if grant.uses:
        yield Text("\nCalls that it let through", style="bold")
        yield _used(view, now)
    if len(view.used) < grant.uses:
        where = "the newest, among the last 10,000 calls of its time"
        yield Text(f"  {len(view.used):,} of {counted(grant.uses, 'call', 'calls')}: {where}", style="dim")


def _facts(view: GrantView, now: int) -> Iterator[tuple[str, str]]:
    grant = view.grant
    left = f", {span(grant.expires_at - now)} left" if view.state == "active" else ""
    yield "agent", visible(grant.agent)
    yield "when", visible(grant.when)
    yield "until", f"{clock_time(grant.expires_at)}{left}"
    yield "uses", f"{grant.uses:,}" + ("" if grant.max_uses is None else f" of {grant.max_uses:,}")
    if grant.budget:
        yield "budget", f"{grant.spent} of {grant.budget} spent, counted in {visible(grant.budget_of)}"
    yield "made", f"{clock_time(grant.created_at)} by {visible(grant.created_by)}"
    yield "reason", visible(grant.reason)
    yield "revoked", _revoked(view)
    yield "id", f"{visible(grant.id)} (short: {visible(short_id(grant.id))})"
    yield "definition", grant.spec_sha256


def _revoked(view: GrantView) -> str:
    if view.grant.revoked_at is None:
        return ""
    at = clock_time(view.grant.revoked_at)
    if view.revoked is None:
        return f"{at}; by whom is in the ledger, too far back to look for here"
    why = visible(str((content_of(view.revoked) or {}).get("reason", "")))
    return f"{at} by {visible(view.revoked.actor)}" + (f": {why}" if why else "")


def _used(view: GrantView, now: int) -> Table:
    made = Table.grid(padding=(0, 2))
    for _ in range(5):
        made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for stored in view.used:
        approval = stored.approval
        status = styled_status(status_at(approval, now))
        amount = grant_amount(stored, view.grant)
        name = visible(short_id(approval.id))
        made.add_row("", clock_time(approval.created_at), name, status, amount, short(sentence_of(stored)))
    return made


def _who(grant: Grant) -> str:
    return "every agent" if grant.agent == "*" else visible(grant.agent)


def _limits(grant: Grant) -> str:
    uses = "" if grant.max_uses is None else f", {counted(grant.max_uses, 'time', 'times')} at most"
    budget = f", up to {grant.budget} of {visible(grant.budget_of)} in all" if grant.budget else ""
    return (f", if {visible(grant.when)}" if grant.when else "") + uses + budget


def _styled(state: str) -> Text:
    return Text(state, style="green" if state == "active" else "dim")

"""Grants as people read them and as JSON; what a person is told who has made one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from interlock.cli.cards import styled_status
from interlock.cli.output import clock_time, grid, print_json, say, short, short_id, show, span, table
from interlock.cli.shared import Desk
from interlock.cli.words import counted
from interlock.core.budget import Amounts, plain
from interlock.core.card import visible
from interlock.core.event import Stored
from interlock.core.grant import Grant, state_at
from interlock.core.outcome import status_at
from interlock.durations import optional_rfc3339, rfc3339
from interlock.inbox import Definition, GrantView
from interlock.shape import content_of, sentence_of

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
    doubts = list(_doubts(grant, definition))
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


def grant_json(grant: Grant, now: int) -> dict[str, object]:
    """What is left is null where there is no limit; amounts are texts, since JSON numbers are not exact."""
    return {
        "id": grant.id,
        "tool": grant.tool,
        "agent": grant.agent,
        "when": grant.when,
        "state": state_at(grant, now),
        "reason": grant.reason,
        "created_by": grant.created_by,
        "created_at": rfc3339(grant.created_at),
        "expires_at": rfc3339(grant.expires_at),
        "revoked_at": optional_rfc3339(grant.revoked_at),
        "uses": grant.uses,
        "max_uses": grant.max_uses,
        "uses_left": grant.uses_left,
        "budget_of": grant.budget_of or None,
        "budget": grant.budget or None,
        "spent": grant.spent if grant.budget else None,
        "budget_left": grant.budget_left,
        "spec_sha256": grant.spec_sha256,
    }


def view_json(view: GrantView, now: int) -> dict[str, object]:
    revoked = None if view.revoked is None else content_of(view.revoked)
    return {
        **grant_json(view.grant, now),
        "revoked_by": None if view.revoked is None else view.revoked.actor,
        "revoked_reason": None if revoked is None else revoked.get("reason"),
        "calls": [
            {
                "approval_id": stored.approval.id,
                "at": rfc3339(stored.approval.created_at),
                "status": status_at(stored.approval, now),
                "sentence": sentence_of(stored),
                "amount": _amount(stored, view.grant) or None,
            }
            for stored in view.used
        ],
    }


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
        amount = _amount(stored, view.grant)
        name = visible(short_id(approval.id))
        made.add_row("", clock_time(approval.created_at), name, status, amount, short(sentence_of(stored)))
    return made


def _amount(stored: Stored, grant: Grant) -> str:
    """Empty without a budget, and once the arguments were erased."""
    shown = stored.payload.shown or stored.payload.args
    amount = Amounts(shown).at(grant.budget_of) if grant.budget and shown else None
    return "" if amount is None else plain(amount)


def _doubts(grant: Grant, definition: Definition) -> Iterator[str]:
    if grant.max_uses is None and not grant.budget and not grant.when:
        yield "there is no limit but time: give --uses, --budget or --when if not every call is meant."
    if definition.others:
        more = counted(definition.others, "other definition is", "other definitions are")
        yield f"{more} in use for {visible(grant.tool)}; calls with those are still asked about."


def _who(grant: Grant) -> str:
    return "every agent" if grant.agent == "*" else visible(grant.agent)


def _limits(grant: Grant) -> str:
    uses = "" if grant.max_uses is None else f", {counted(grant.max_uses, 'time', 'times')} at most"
    budget = f", up to {grant.budget} of {visible(grant.budget_of)} in all" if grant.budget else ""
    return (f", if {visible(grant.when)}" if grant.when else "") + uses + budget


def _styled(state: str) -> Text:
    return Text(state, style="green" if state == "active" else "dim")

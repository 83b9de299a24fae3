"""`interlock grants`: standing permissions, and an end to them."""

from __future__ import annotations

from typing import Annotated

import typer

from interlock.app.gate import uuid7
from interlock.app.inbox import Definition
from interlock.cli import granted
from interlock.cli.lookup import LEAST, NAMED
from interlock.cli.output import nearest, print_json, say, show
from interlock.cli.shared import Desk, User, command, kept
from interlock.core.card import visible
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import InvalidRequest, NotFound
from interlock.core.grant import Grant
from interlock.core.ports import Query
from interlock.presenters.policy import grant_json, grant_view_json
from interlock.runtime.durations import parse_duration

app = typer.Typer()

MOST = 1_000  # grants that a list holds
GrantId = Annotated[
    str,
    typer.Argument(metavar="ID", show_default=False, help="The id; its beginning or end, if 4 characters or more."),
]


@command(app, kept, "list")
async def list_grants(
    desk: Desk,
    everything: Annotated[bool, typer.Option("--all", help="Also those that expired, are used up or revoked.")] = False,
) -> None:
    """What is let through without asking, and what is left of it; the newest first."""
    inbox = desk.parts.inbox
    grants = await (inbox.grants if everything else inbox.active_grants)(desk.workspace)
    now = desk.now()
    if desk.json:
        print_json({"items": [grant_json(grant, now) for grant in grants], "next": None})
    elif grants:
        show(granted.listed(grants, now, with_state=everything))
        if len(grants) == MOST:
            say(f"There may be more: a list holds the newest {MOST:,}.", style="dim")
    else:
        say("There are no grants." if everything else "There are no active grants. Ended ones: --all shows them.")


@command(app, kept, "show")
async def show_grant(desk: Desk, grant_id: GrantId) -> None:
    """What a grant covers, its limits, who made it and why, and the calls that it let through."""
    view = await desk.parts.inbox.show_grant(desk.workspace, await _id_of(desk, grant_id))
    if desk.json:
        print_json(grant_view_json(view, desk.now()))
    else:
        show(granted.view_of(view, desk.now()))


@command(app, kept)
async def add(
    desk: Desk,
    tool: Annotated[str, typer.Argument(metavar="TOOL", show_default=False, help="One tool, by its whole name.")],
    *,
    term: Annotated[str, typer.Option("--for", metavar="TIME", help="How long: 30m, 2h, 7d; a year at most.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help=f"Why, for the record; up to {MAX_COMMENT} characters.")],
    agent: Annotated[str, typer.Option(metavar="NAME", help="Only for this agent; * stands for any letters.")] = "*",
    when: Annotated[str, typer.Option(metavar="CEL", help="Only if this holds, such as 'args.amount < 10'.")] = "",
    uses: Annotated[int | None, typer.Option(metavar="N", help="At most so many calls.")] = None,
    budget: Annotated[str, typer.Option(metavar="NUMBER", help="What all calls may add up to.")] = "",
    budget_of: Annotated[str, typer.Option(metavar="NAME", help="The argument that is added up; or /a/b.")] = "",
    user: User = "",
) -> None:
    """Let calls of a tool through without asking, as if you approved each of them."""
    if not reason.strip():
        raise InvalidRequest("--reason is empty. Say in a few words why nobody needs to be asked.")
    if bool(budget) != bool(budget_of):
        raise InvalidRequest("--budget NUMBER and --budget-of NAME go together: how much, and of which argument.")
    now = desk.now()
    until = now + parse_duration(term)
    definition = await _definition(desk, tool, agent)
    draft = Grant(
        id=uuid7(now),
        workspace=desk.workspace,
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
    grant = await desk.parts.inbox.grant(draft, await desk.person(user))
    granted.told(desk, grant, definition, now)


@command(app, kept)
async def revoke(
    desk: Desk,
    grant_id: GrantId,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the record.")] = "",
    user: User = "",
) -> None:
    """End a grant. Calls that it let through may still start; the next one is asked about."""
    before = await desk.parts.store.grant(desk.workspace, await _id_of(desk, grant_id))
    person = await desk.person(user)
    grant = await desk.parts.inbox.revoke(desk.workspace, before.id, person, reason)
    if desk.json:
        print_json(grant_json(grant, desk.now()))
    elif before.revoked_at is not None:
        say("This grant was revoked already, so nothing changed.")
    else:
        say(f"Revoked: from now on {visible(grant.tool)} is asked about again. What it let through stays allowed.")


async def _definition(desk: Desk, tool: str, agent: str) -> Definition:
    try:
        return await desk.parts.inbox.definition(desk.workspace, tool, agent)
    except NotFound as error:
        page = await desk.parts.inbox.list(desk.workspace, Query(limit=500))
        known = {stored.approval.subject.tool for stored in page.items}
        raise NotFound(error.message + nearest(tool, known), tool=tool) from None


async def _id_of(desk: Desk, text: str) -> str:
    if len(text) < LEAST:
        raise InvalidRequest(f"{text!r} is too short: give at least {LEAST} characters of the id.")
    try:
        return (await desk.parts.store.grant(desk.workspace, text)).id
    except NotFound:
        ids = await desk.parts.store.grant_ids_like(desk.workspace, text, NAMED + 1)
    if len(ids) == 1:
        return ids[0]
    if not ids:
        raise NotFound(
            f"There is no grant {text!r} in the workspace {desk.workspace!r}. See: interlock grants list --all",
            grant_id=text,
        )
    named = ", ".join(visible(grant_id) for grant_id in ids[:NAMED])
    more = " and more" if len(ids) > NAMED else ""
    raise NotFound(
        f"{text!r} could be several grants: {named}{more}. Give more of the id.",
        grant_id=text,
        candidates=list(ids[:NAMED]),
    )

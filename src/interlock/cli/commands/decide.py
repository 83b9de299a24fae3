"""The decisions of `interlock approvals`. Each carries the digest of the card that was read in the same command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from interlock.app.inbox import View
from interlock.cli import prompts
from interlock.cli.approval_lookup import view_of
from interlock.cli.cards import card_of, votes_of
from interlock.cli.context import ApprovalId, Desk, User, at_terminal, command, kept
from interlock.cli.output import clock_time, print_json, say, short_id, show, span
from interlock.core.approval.approval import Approval
from interlock.core.approval.vote import quorum
from interlock.core.card import visible
from interlock.core.decision import MAX_COMMENT, Reviewer, read_decision
from interlock.core.errors import FindingsNotAcknowledged, InvalidRequest
from interlock.core.policy.policy import People
from interlock.presenters.approval import seats, view_json
from interlock.presenters.text import counted, who

app = typer.Typer()

Comment = Annotated[str, typer.Option(metavar="TEXT", help=f"A note for the record, up to {MAX_COMMENT} characters.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask. Off a terminal nobody is asked anyway.")]
Acknowledge = Annotated[
    list[str] | None,
    typer.Option(metavar="FINDING", help="The id of a finding that you looked at; may be given several times."),
]
AcknowledgeAll = Annotated[
    bool, typer.Option("--acknowledge-all", help="Show all findings, and take them as looked at.")
]


@command(app, kept)
async def approve(
    desk: Desk,
    approval_id: ApprovalId,
    comment: Comment = "",
    acknowledge: Acknowledge = None,
    acknowledge_all: AcknowledgeAll = False,
    yes: Yes = False,
    user: User = "",
) -> None:
    """Let the call run, with the arguments on the card."""
    view = await view_of(desk, approval_id)
    asks = at_terminal() and not yes
    if asks:
        show(card_of(view, desk.now()), stderr=True)
    seen = prompts.acknowledged(view.card.findings, acknowledge or (), all_of_them=acknowledge_all)
    if asks and view.status == "pending":
        seen = prompts.acknowledge_each(view.card.findings, seen)
        prompts.confirm("Approve this call?")
    after = await _decide(desk, view, {"kind": "approve", "comment": comment, "acknowledged": seen}, user)
    await decided(desk, view, after)


@command(app, kept)
async def edit(
    desk: Desk,
    approval_id: ApprovalId,
    args: Annotated[str, typer.Option(metavar="JSON", help="All arguments; @FILE reads a file, - standard input.")],
    comment: Comment = "",
    acknowledge: Acknowledge = None,
    acknowledge_all: AcknowledgeAll = False,
    yes: Yes = False,
    user: User = "",
) -> None:
    """Change the arguments; that is also your approval, unless the rule says otherwise."""
    from interlock.cli.policy_in_force import load_current

    wanted = prompts.json_option("--args", args)
    if not isinstance(wanted, Mapping):
        raise InvalidRequest('--args: the arguments are an object, such as {"title": "Fix login"}.')
    view = await view_of(desk, approval_id)
    prompts.show_changes(view, wanted)
    findings = prompts.findings_in(view, wanted)
    seen = prompts.acknowledged(findings, acknowledge or (), all_of_them=acknowledge_all)
    if at_terminal() and not yes:
        seen = prompts.acknowledge_each(findings, seen)
        prompts.confirm("Let the call run with these arguments?")
    await load_current(desk)  # an edit is judged by the policy of now
    body = {"kind": "edit", "args": wanted, "comment": comment, "acknowledged": seen}
    await decided(desk, view, await _decide(desk, view, body, user))


@command(app, kept)
async def respond(
    desk: Desk,
    approval_id: ApprovalId,
    message: Annotated[str, typer.Argument(metavar="[MESSAGE]", show_default=False, help="What to say.")] = "",
    answer: Annotated[str, typer.Option(metavar="JSON", help="Data instead of a text, checked by the question.")] = "",
    comment: Comment = "",
    user: User = "",
) -> None:
    """Answer instead of letting the call run; a question can only be answered."""
    if bool(message) == bool(answer):
        raise InvalidRequest("Give a MESSAGE or --answer JSON, one of the two.")
    view = await view_of(desk, approval_id)
    data = prompts.json_option("--answer", answer) if answer else prompts.as_data(view, message)
    said = {"message": message} if data is None else {"answer": data}
    await decided(desk, view, await _decide(desk, view, {"kind": "respond", "comment": comment, **said}, user))


@command(app, kept)
async def reject(
    desk: Desk,
    approval_id: ApprovalId,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="What the agent is told.")] = "",
    comment: Comment = "",
    user: User = "",
) -> None:
    """Do not let the call run. It can be undone until the agent is told."""
    view = await view_of(desk, approval_id)
    after = await _decide(desk, view, {"kind": "reject", "reason": reason, "comment": comment}, user)
    await decided(desk, view, after)


@command(app, kept)
async def undo(desk: Desk, approval_id: ApprovalId, user: User = "") -> None:
    """Take back a rejection that the agent has not heard of yet."""
    view = await view_of(desk, approval_id)
    person = await desk.person(user)
    await decided(desk, view, await desk.parts.inbox.undo(desk.workspace, view.stored.approval.id, person))


@command(app, kept)
async def delegate(
    desk: Desk,
    approval_id: ApprovalId,
    to_user: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A person; may be given twice.")] = None,
    to_team: Annotated[list[str] | None, typer.Option(metavar="TEAM", help="A team; may be given twice.")] = None,
    user: User = "",
) -> None:
    """Let somebody else decide in your place, this once."""
    people = People(frozenset(to_user or ()), frozenset(to_team or ()))
    if people == People():
        raise InvalidRequest("Say to whom: --to-user NAME or --to-team TEAM.")
    view = await view_of(desk, approval_id)
    person = await desk.person(user)
    await desk.parts.inbox.delegate(desk.workspace, view.stored.approval.id, people, person)
    await delegated(desk, view, people, person)


@command(app, kept)
async def resolve(
    desk: Desk,
    approval_id: ApprovalId,
    succeeded: Annotated[bool, typer.Option("--succeeded", help="You looked: it was done.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="You looked: it was not done.")] = False,
    note: Annotated[str, typer.Option(metavar="TEXT", help="How you know.")] = "",
    result: Annotated[str, typer.Option(metavar="JSON", help="What the tool gave, for the agent.")] = "",
    user: User = "",
) -> None:
    """Say how a call ended of which nobody knows. Nothing runs."""
    if succeeded == failed:
        raise InvalidRequest("Say how it ended: --succeeded or --failed, one of the two.")
    if failed and result:
        raise InvalidRequest("--result goes with --succeeded. Say what went wrong with --note.")
    given = prompts.json_option("--result", result) if result else None
    view = await view_of(desk, approval_id)
    after = await desk.parts.inbox.resolve_unknown(
        desk.workspace,
        view.stored.approval.id,
        await desk.person(user),
        ok=succeeded,
        note=prompts.bounded("--note", note),
        result=given,
    )
    await decided(desk, view, after)


async def _decide(desk: Desk, view: View, body: Mapping[str, object], user: str) -> Approval:
    approval = view.stored.approval
    decision = read_decision({**body, "args_sha256": approval.args_sha256})
    try:
        return await desk.parts.inbox.decide(desk.workspace, approval.id, decision, await desk.person(user))
    except FindingsNotAcknowledged as error:
        error.message += " (--acknowledge ID, or --acknowledge-all)"
        raise


async def decided(desk: Desk, before: View, after: Approval) -> None:
    if desk.json:
        print_json(view_json(await desk.parts.inbox.show(desk.workspace, after.id), desk.now()))
    else:
        say(result_of(before.stored.approval, after, desk.now()))


async def delegated(desk: Desk, view: View, people: People, person: Reviewer) -> None:
    if desk.json:
        print_json(view_json(await desk.parts.inbox.show(desk.workspace, view.stored.approval.id), desk.now()))
    else:
        say(f"{who(people)} may now decide this in place of {visible(person.name)}.")


def result_of(before: Approval, after: Approval, now: int) -> str:
    tool, name = visible(after.subject.tool), visible(short_id(after.id))
    match after.status:
        case "approved":
            edited = " with your changes" if before.args_sha256 != after.args_sha256 else ""
            until = after.start_by or now
            return f"Approved{edited}: {tool} may start until {clock_time(until)} (for {span(until - now)})."
        case "rejected":
            until = after.release_at or now
            return (
                f"Rejected: {tool} will not run. The agent is told at {clock_time(until)} (in {span(until - now)}); "
                f"until then: interlock approvals undo {name}"
            )
        case "pending":
            return _still_pending(before, after, tool)
        case "responded":
            return f"Answered: {tool} will not run; the agent gets what you said."
        case status:
            return f"Recorded: {tool} {status}."


def _still_pending(before: Approval, after: Approval, tool: str) -> str:
    if before.status == "rejected":
        return f"Undone: {tool} waits for a decision again."
    if before.version == after.version:
        return f"You had approved this already, so nothing changed: {votes_of(after)} approvals."
    missing = counted(quorum(after) - seats(after), "more person", "more people")
    if before.args_sha256 != after.args_sha256:
        return f"Changed: the new arguments wait for {missing}; earlier approvals no longer count."
    return f"Your approval counts: {votes_of(after)}. It waits for {missing}."

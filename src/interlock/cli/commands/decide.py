"""The decisions of `interlock approvals`. Each carries the digest of the card that was read in the same command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from interlock.app.inbox import ApprovalDetails
from interlock.cli import prompts
from interlock.cli.approval_lookup import find_approval_view
from interlock.cli.cards import render_card, votes_text
from interlock.cli.context import ApprovalId, CommandContext, User, command, is_interactive, open_database
from interlock.cli.output import duration_text, local_time, print_json, say, short_id, show
from interlock.core.approval.approval import Approval
from interlock.core.approval.vote import total_quorum
from interlock.core.card import visible
from interlock.core.decision import MAX_COMMENT, Reviewer, read_decision
from interlock.core.errors import FindingsNotAcknowledged, InvalidRequest
from interlock.core.policy.policy import People
from interlock.presenters.approval import approval_json, vote_count
from interlock.presenters.text import people_text, pluralize

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


@command(app, open_database)
async def approve(
    desk: CommandContext,
    approval_id: ApprovalId,
    comment: Comment = "",
    acknowledge: Acknowledge = None,
    acknowledge_all: AcknowledgeAll = False,
    yes: Yes = False,
    user: User = "",
) -> None:
    """Let the call run, with the arguments on the card."""
    view = await find_approval_view(desk, approval_id)
    asks = is_interactive() and not yes
    if asks:
        show(render_card(view, desk.now()), stderr=True)
    seen = prompts.acknowledged_ids(view.card.findings, acknowledge or (), all_of_them=acknowledge_all)
    if asks and view.status == "pending":
        seen = prompts.acknowledge_each(view.card.findings, seen)
        prompts.confirm("Approve this call?")
    after = await _decide(desk, view, {"kind": "approve", "comment": comment, "acknowledged": seen}, user)
    await print_decision(desk, view, after)


@command(app, open_database)
async def edit(
    desk: CommandContext,
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
    view = await find_approval_view(desk, approval_id)
    prompts.show_changes(view, wanted)
    findings = prompts.findings_in(view, wanted)
    seen = prompts.acknowledged_ids(findings, acknowledge or (), all_of_them=acknowledge_all)
    if is_interactive() and not yes:
        seen = prompts.acknowledge_each(findings, seen)
        prompts.confirm("Let the call run with these arguments?")
    await load_current(desk)  # an edit is judged by the policy of now
    body = {"kind": "edit", "args": wanted, "comment": comment, "acknowledged": seen}
    await print_decision(desk, view, await _decide(desk, view, body, user))


@command(app, open_database)
async def respond(
    desk: CommandContext,
    approval_id: ApprovalId,
    message: Annotated[str, typer.Argument(metavar="[MESSAGE]", show_default=False, help="What to say.")] = "",
    answer: Annotated[str, typer.Option(metavar="JSON", help="Data instead of a text, checked by the question.")] = "",
    comment: Comment = "",
    user: User = "",
) -> None:
    """Answer instead of letting the call run; a question can only be answered."""
    if bool(message) == bool(answer):
        raise InvalidRequest("Give a MESSAGE or --answer JSON, one of the two.")
    view = await find_approval_view(desk, approval_id)
    data = prompts.json_option("--answer", answer) if answer else prompts.parse_answer(view, message)
    said = {"message": message} if data is None else {"answer": data}
    await print_decision(desk, view, await _decide(desk, view, {"kind": "respond", "comment": comment, **said}, user))


@command(app, open_database)
async def reject(
    desk: CommandContext,
    approval_id: ApprovalId,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="What the agent is told.")] = "",
    comment: Comment = "",
    user: User = "",
) -> None:
    """Do not let the call run. It can be undone until the agent is told."""
    view = await find_approval_view(desk, approval_id)
    after = await _decide(desk, view, {"kind": "reject", "reason": reason, "comment": comment}, user)
    await print_decision(desk, view, after)


@command(app, open_database)
async def undo(desk: CommandContext, approval_id: ApprovalId, user: User = "") -> None:
    """Take back a rejection that the agent has not heard of yet."""
    view = await find_approval_view(desk, approval_id)
    person = await desk.person(user)
    await print_decision(desk, view, await desk.parts.inbox.undo(desk.workspace, view.stored.approval.id, person))


@command(app, open_database)
async def delegate(
    desk: CommandContext,
    approval_id: ApprovalId,
    to_user: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A person; may be given twice.")] = None,
    to_team: Annotated[list[str] | None, typer.Option(metavar="TEAM", help="A team; may be given twice.")] = None,
    user: User = "",
) -> None:
    """Let somebody else decide in your place, this once."""
    people = People(frozenset(to_user or ()), frozenset(to_team or ()))
    if people == People():
        raise InvalidRequest("Say to whom: --to-user NAME or --to-team TEAM.")
    view = await find_approval_view(desk, approval_id)
    person = await desk.person(user)
    await desk.parts.inbox.delegate(desk.workspace, view.stored.approval.id, people, person)
    await print_delegation(desk, view, people, person)


@command(app, open_database)
async def resolve(
    desk: CommandContext,
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
    view = await find_approval_view(desk, approval_id)
    after = await desk.parts.inbox.resolve_unknown(
        desk.workspace,
        view.stored.approval.id,
        await desk.person(user),
        ok=succeeded,
        note=prompts.check_length("--note", note),
        result=given,
    )
    await print_decision(desk, view, after)


async def _decide(desk: CommandContext, view: ApprovalDetails, body: Mapping[str, object], user: str) -> Approval:
    approval = view.stored.approval
    decision = read_decision({**body, "args_sha256": approval.args_sha256})
    try:
        return await desk.parts.inbox.decide(desk.workspace, approval.id, decision, await desk.person(user))
    except FindingsNotAcknowledged as error:
        error.message += " (--acknowledge ID, or --acknowledge-all)"
        raise


async def print_decision(desk: CommandContext, before: ApprovalDetails, after: Approval) -> None:
    if desk.json:
        print_json(approval_json(await desk.parts.inbox.show(desk.workspace, after.id), desk.now()))
    else:
        say(decision_text(before.stored.approval, after, desk.now()))


async def print_delegation(desk: CommandContext, view: ApprovalDetails, people: People, person: Reviewer) -> None:
    if desk.json:
        print_json(approval_json(await desk.parts.inbox.show(desk.workspace, view.stored.approval.id), desk.now()))
    else:
        say(f"{people_text(people)} may now decide this in place of {visible(person.name)}.")


def decision_text(before: Approval, after: Approval, now: int) -> str:
    tool, name = visible(after.subject.tool), visible(short_id(after.id))
    match after.status:
        case "approved":
            edited = " with your changes" if before.args_sha256 != after.args_sha256 else ""
            until = after.start_by or now
            return f"Approved{edited}: {tool} may start until {local_time(until)} (for {duration_text(until - now)})."
        case "rejected":
            until = after.release_at or now
            return (
                f"Rejected: {tool} will not run. The agent is told at {local_time(until)} "
                f"(in {duration_text(until - now)}); "
                f"until then: interlock approvals undo {name}"
            )
        case "pending":
            return _pending_text(before, after, tool)
        case "responded":
            return f"Answered: {tool} will not run; the agent gets what you said."
        case status:
            return f"Recorded: {tool} {status}."


def _pending_text(before: Approval, after: Approval, tool: str) -> str:
    if before.status == "rejected":
        return f"Undone: {tool} waits for a decision again."
    if before.version == after.version:
        return f"You had approved this already, so nothing changed: {votes_text(after)} approvals."
    missing = pluralize(total_quorum(after) - vote_count(after), "more person", "more people")
    if before.args_sha256 != after.args_sha256:
        return f"Changed: the new arguments wait for {missing}; earlier approvals no longer count."
    return f"Your approval counts: {votes_text(after)}. It waits for {missing}."

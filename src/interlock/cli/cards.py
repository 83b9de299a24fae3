"""Approvals as terminal text: the card, decisions, a stream of events; also lookup by a part of the id, and timers.

Only labels start at the left edge of a card, never untrusted text.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from interlock.app.inbox import ApprovalDetails
from interlock.cli.context import CommandContext
from interlock.cli.output import grid, local_time, print_json_line, printable, short_id, shorten
from interlock.core.approval.approval import Approval, DecisionRecord
from interlock.core.approval.vote import total_quorum
from interlock.core.card import Card, CardField, Finding, escape_invisible, head_and_tail
from interlock.core.errors import Error, InvalidRequest, NotFound
from interlock.core.ledger.chain import Entry
from interlock.core.ledger.event import Payload, Stored
from interlock.core.ports import ApprovalQuery
from interlock.presenters.approval import (
    approval_item_json,
    approval_sentence,
    entry_content,
    entry_json,
    vote_count,
)
from interlock.presenters.text import approvers_text, pluralize
from interlock.runtime.durations import duration_text, rfc3339

RISK_STYLES: Mapping[str, str] = {"high": "bold white on red", "medium": "bold yellow", "low": "green"}
STATUS_STYLES: Mapping[str, str] = {
    "pending": "bold yellow",
    "approved": "green",
    "running": "cyan",
    "succeeded": "green",
    "responded": "green",
    "failed": "red",
    "unknown": "bold white on red",
}
MAX_TEXT = 4_000  # characters of a preview, a quotation or a result; --full shows all
MAX_VALUE = 400  # shown characters of a long argument
_BREAK = re.compile(r"\\(n|.)")
SHOWN_EVENT_FIELDS = ("reason", "comment", "note", "error", "to", "seat", "users", "teams", "ok", "person", "place")


def render_card(view: ApprovalDetails, now: int, *, full: bool = False) -> Group:
    return Group(*_parts(view, now, full=full))


def render_findings(findings: Sequence[Finding]) -> Group:
    return Group(*(part for finding in findings for part in _finding(finding)))


def styled_risk(risk: str) -> Text:
    return Text(risk, style=RISK_STYLES.get(risk, ""))


def styled_status(status: str) -> Text:
    return Text(status, style=STATUS_STYLES.get(status, "dim"))


def time_left(approval: Approval, status: str, now: int) -> str:
    """The time until the approval expires, or until the approved call must have started; empty for others."""
    match status:
        case "pending":
            return duration_text(approval.deadlines.expires_at - now)
        case "approved":
            return duration_text((approval.deadlines.start_by or now) - now)
        case _:
            return ""


def votes_text(approval: Approval) -> str:
    return f"{vote_count(approval)} of {total_quorum(approval)}"


def _parts(view: ApprovalDetails, now: int, *, full: bool) -> Iterator[RenderableType]:
    approval, payload, card = view.stored.approval, view.stored.payload, view.card
    yield Text.assemble((f" {card.risk.upper()} RISK ", RISK_STYLES.get(card.risk, "")), "  ", (card.tool, "bold"))
    yield Padding(Text(card.sentence if full else shorten(card.sentence, MAX_VALUE), style="bold"), (0, 0, 0, 2))
    yield Text()
    yield _facts(view, now)
    yield from _arguments(card, payload, full=full)
    yield from _quotation("Preview", card.preview, full=full)
    yield from _quotation("The agent's description (unverified)", card.agent_description, full=full)
    yield from _quotation("The agent's preview (unverified)", card.agent_preview, full=full)
    yield from _quotation("The agent says (unverified)", card.agent_says, full=full)
    yield from _section("Votes", _votes(approval))
    yield from _section("Decision", _decision(approval.decision))
    yield from _section("Timeline", _timeline(view.timeline))
    yield from _quotation("Result", escape_invisible((payload.result or b"").decode()), full=full)
    yield from _quotation("Error", escape_invisible(payload.error or ""), full=full)


def _facts(view: ApprovalDetails, now: int) -> Table:
    approval = view.stored.approval
    rows: list[tuple[str, Text]] = [(label, Text(text)) for label, text in view.card.facts]
    left = time_left(approval, view.status, now)
    status = styled_status(view.status)
    if left:
        status.append(f", {left} left" if view.status == "pending" else f", may start for {left}", style="not bold")
    rows.append(("status", status))
    rows.append(("needs", Text(f"{approvers_text(approval.terms)} ({votes_text(approval)})")))
    rows.append(("answers", Text(", ".join(approval.terms.decisions))))
    rows.append(
        ("proposed", Text(f"{local_time(approval.created_at)}, {duration_text(now - approval.created_at)} ago"))
    )
    rows.append(("id", Text(f"{escape_invisible(approval.id)} (short: {escape_invisible(short_id(approval.id))})")))
    rows.append(("args_sha256", Text(approval.args_sha256)))
    return grid(rows)


def _arguments(card: Card, payload: Payload, *, full: bool) -> Iterator[RenderableType]:
    yield Text("\nArguments", style="bold")
    if payload.args is None:
        yield Padding(Text("erased", style="dim"), (0, 0, 0, 2))
        return
    if not card.fields:
        yield Padding(Text("none", style="dim"), (0, 0, 0, 2))
    fields = Table.grid(padding=(0, 2))
    fields.add_column()
    fields.add_column(overflow="fold", max_width=40)
    fields.add_column(style="dim", no_wrap=True)
    fields.add_column(overflow="fold")
    known = {finding.id: finding for finding in card.findings}
    for field in card.fields:
        found = [known[name] for name in field.findings]
        name = Text("  " * (field.pointer.count("/") - 1) + field.name)
        style = "bold" if any(finding.level == "alarm" for finding in found) else None
        fields.add_row("", name, field.type, Group(_value(field, full=full), render_findings(found)), style=style)
    yield fields
    placed = {name for field in card.fields for name in field.findings}
    about_all = [finding for finding in card.findings if finding.id not in placed]
    if about_all:
        yield Padding(render_findings(about_all), (0, 0, 0, 2))


def _value(field: CardField, *, full: bool) -> Text:
    if field.type in ("object", "array") and field.length:
        return Text(pluralize(field.length, "member", "members"), style="dim")
    if full or not field.sha256:
        return Text(field.text, overflow="fold")
    head, tail = head_and_tail(field.text, MAX_VALUE)
    cut = f" … ({field.length:,} characters, sha256 {field.sha256}; --full shows all) … "
    return Text.assemble(head, (cut, "italic"), tail, overflow="fold")


def _finding(finding: Finding) -> Iterator[Text]:
    """A finding; its id is shown in the form that --acknowledge accepts."""
    loud = finding.level == "alarm"
    mark = "!! ALARM" if loud else "note"
    yield Text(f"{mark}  {escape_invisible(finding.id)}", style="bold red" if loud else "cyan", overflow="fold")
    yield Text(f"   {finding.message}", style="red" if loud else "cyan", overflow="fold")


def _quotation(title: str, text: str, *, full: bool) -> Iterator[RenderableType]:
    if not text:
        return
    head, tail = (text, "") if full else head_and_tail(text, MAX_TEXT)
    cut = f" … ({len(text):,} characters; --full shows all) … " if tail else ""
    quoted = Text.assemble(_restore_line_breaks(head), (cut, "italic"), _restore_line_breaks(tail), overflow="fold")
    yield Text(f"\n{title}", style="bold")
    yield Padding(quoted, (0, 0, 0, 4))


def _restore_line_breaks(text: str) -> str:
    """Turn the escaped \\n of a visible text back into line breaks; other escapes stay."""
    return _BREAK.sub(lambda found: "\n" if found[1] == "n" else found[0], text)


def _section(title: str, rows: Sequence[tuple[str, Text]]) -> Iterator[RenderableType]:
    if rows:
        yield Text(f"\n{title}", style="bold")
        yield grid(rows)


def _votes(approval: Approval) -> list[tuple[str, Text]]:
    return [
        (
            local_time(vote.at),
            Text(
                f"{escape_invisible(vote.by)} via {escape_invisible(vote.via)}"
                + _on_behalf_text(vote.by, vote.on_behalf_of)
            ),
        )
        for vote in approval.votes
    ]


def _on_behalf_text(voter: str, on_behalf_of: str) -> str:
    return "" if voter == on_behalf_of else f" for {escape_invisible(on_behalf_of)}"


def _decision(decision_record: DecisionRecord | None) -> list[tuple[str, Text]]:
    if decision_record is None:
        return []
    facts = {
        decision_record.kind: f"{escape_invisible(decision_record.by)}, {local_time(decision_record.at)}"
        + (f" via {decision_record.via}" if decision_record.via else ""),
        "reason": escape_invisible(decision_record.reason),
        "comment": escape_invisible(decision_record.comment),
    }
    return [(label, Text(text)) for label, text in facts.items() if text]


def _timeline(entries: Sequence[Entry]) -> list[tuple[str, Text]]:
    return [(local_time(entry.at), _event(entry)) for entry in entries]


def _event(entry: Entry) -> Text:
    content = entry_content(entry)
    line = Text.assemble((entry.kind, "bold"), f"  {escape_invisible(entry.actor)}")
    if entry.digest and content is None:
        return line.append("  (details were erased)", style="dim")
    if entry.kind.startswith("deliver"):
        line.append(f"  {escape_invisible(str(json.loads(entry.data).get('channel')))}")
    if entry.kind == "decision_refused":
        wrong = ", ".join(cast(list[str], (content or {}).get("fields", [])))
        line.append(f"  {json.loads(entry.data)['error']}" + (f" ({escape_invisible(wrong)})" if wrong else ""))
    for label, value in (content or {}).items():
        if label in ("via", "args_sha256") and isinstance(value, str):
            line.append(f"  {label} {escape_invisible(value)[:16]}", style="dim")
        elif label in SHOWN_EVENT_FIELDS and value:
            line.append(f"  {label}: {escape_invisible(str(value))}")
    return line


def event_line(entry: Entry) -> str:
    """An event on one line, for a stream of events."""
    return f"{rfc3339(entry.at)}  {escape_invisible(short_id(entry.approval_id)):8}  {_event(entry).plain}"


def decision_text(before: Approval, after: Approval, now: int) -> str:
    tool, name = escape_invisible(after.subject.tool), escape_invisible(short_id(after.id))
    match after.status:
        case "approved":
            edited = " with your changes" if before.args_sha256 != after.args_sha256 else ""
            until = after.deadlines.start_by or now
            return f"Approved{edited}: {tool} may start until {local_time(until)} (for {duration_text(until - now)})."
        case "rejected":
            until = after.deadlines.release_at or now
            return (
                f"Rejected: {tool} will not run. The agent is notified at {local_time(until)} "
                f"(in {duration_text(until - now)}); "
                f"to undo it before: interlock approvals undo {name}"
            )
        case "pending":
            return _pending_text(before, after, tool)
        case "responded":
            return f"Answered: {tool} will not run; the agent gets your answer."
        case status:
            return f"Recorded: {tool} {status}."


def _pending_text(before: Approval, after: Approval, tool: str) -> str:
    if before.status == "rejected":
        return f"Undone: {tool} is pending again."
    if before.version == after.version:
        return f"You have already approved this; nothing changed: {votes_text(after)} approvals."
    missing = pluralize(total_quorum(after) - vote_count(after), "more person", "more people")
    if before.args_sha256 != after.args_sha256:
        return f"Changed: the new arguments need {missing}; earlier approvals no longer count."
    return f"Your approval counts: {votes_text(after)}. {missing} needed."


async def print_events(context: CommandContext) -> None:
    """Print pending approvals, then events until interrupted."""
    store, trouble, printed = context.services.store, "", ""

    def report(error: str) -> None:
        nonlocal trouble
        trouble = error

    timers = asyncio.create_task(run_timers(context, report))
    async with store.watch(context.workspace) as watch:
        last = (await store.head(context.workspace)).seq
        await _print_all_waiting(context)
        while not timers.done():
            error = trouble
            try:
                last = await _print_new_events(context, last)
            except Error as found:
                error = found.message
            if error != printed:
                _print_trouble(error)
                printed = error
            await watch.wait(1.0)
    await timers


async def _print_all_waiting(context: CommandContext) -> None:
    page = await context.services.inbox.list(context.workspace, ApprovalQuery(("pending",), limit=500))
    for stored in page.items:
        _print_waiting(context, stored)


async def _print_new_events(context: CommandContext, after: int) -> int:
    async for entries in context.services.store.entries(context.workspace, after):
        for entry in entries:
            await _print_event(context, entry)
            after = entry.seq
    return after


def _print_waiting(context: CommandContext, stored: Stored) -> None:
    approval, now = stored.approval, context.now()
    if context.json:
        head = {"seq": None, "at": rfc3339(now), "kind": "waiting", "approval_id": approval.id}
        print_json_line({**head, "approval": approval_item_json(stored, now)})
    else:
        _line(f"{rfc3339(now)}  {escape_invisible(short_id(approval.id)):8}  waiting{_about(stored)}")


async def _print_event(context: CommandContext, entry: Entry) -> None:
    stored = await _stored(context, entry.approval_id)
    if context.json:
        print_json_line(
            {**entry_json(entry), "approval": approval_item_json(stored, context.now()) if stored else None}
        )
    else:
        _line(event_line(entry) + (_about(stored) if stored else ""))


async def _stored(context: CommandContext, approval_id: str) -> Stored | None:
    try:
        return await context.services.store.get(context.workspace, approval_id) if approval_id else None
    except NotFound:
        return None


def _about(stored: Stored) -> str:
    return f"  {escape_invisible(stored.approval.subject.tool)}: {shorten(approval_sentence(stored))}"


def _line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _print_trouble(trouble: str) -> None:
    sys.stderr.write(f"{printable(trouble) or 'The database is available again.'}\n")
    sys.stderr.flush()


MIN_ID_LENGTH = 4
MAX_NAMED = 5
SLOW_DATABASE_SECONDS = 2.0  # of waiting for the database before a message is shown


async def find_approval_view(context: CommandContext, text: str) -> ApprovalDetails:
    return await context.services.inbox.show(context.workspace, await find_approval_id(context, text))


def check_id_length(text: str) -> None:
    if len(text) < MIN_ID_LENGTH:
        raise InvalidRequest(f"{text!r} is too short: give at least {MIN_ID_LENGTH} characters of the id.")


async def find_approval_id(context: CommandContext, text: str) -> str:
    check_id_length(text)
    try:
        return (await context.services.store.get(context.workspace, text)).approval.id
    except NotFound:
        return await _require_one(
            context, text, await context.services.store.find_ids(context.workspace, text, MAX_NAMED + 1)
        )


async def sweep_if_writable(context: CommandContext) -> None:
    """Run the timers, since there may be no server that does; a read-only database is no error."""
    try:
        await context.services.worker.sweep()
    except Error:
        return


async def run_timers(context: CommandContext, report: Callable[[str], None]) -> None:
    """Run the timers each second; reports an error, and an empty text once they run again.

    A sweep that waits for a locked database must not freeze its caller: this is a task of its own.
    """
    while True:
        sweep = asyncio.ensure_future(context.services.worker.sweep())
        if not (await asyncio.wait({sweep}, timeout=SLOW_DATABASE_SECONDS))[0]:
            report("The database is locked by another program. Waiting; the view may be out of date.")
        try:
            await sweep
            report("")
        except Error as error:
            report(error.message)
        await asyncio.sleep(1.0)


async def _require_one(context: CommandContext, text: str, ids: Sequence[str]) -> str:
    if len(ids) == 1:
        return ids[0]
    if not ids:
        raise NotFound(
            f"There is no approval {text!r} in the workspace {context.workspace!r}. "
            "See: interlock approvals list --status all",
            approval_id=text,
        )
    found = [await context.services.store.get(context.workspace, approval_id) for approval_id in ids[:MAX_NAMED]]
    named = ", ".join(f"{escape_invisible(s.approval.id)} ({escape_invisible(s.approval.subject.tool)})" for s in found)
    more = " and more" if len(ids) > MAX_NAMED else ""
    raise NotFound(
        f"{text!r} matches several approvals: {named}{more}. Give more of the id.",
        approval_id=text,
        candidates=list(ids[:MAX_NAMED]),
    )

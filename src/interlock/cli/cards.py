"""Approvals as terminal text: the card, decisions, a stream of events; also lookup by a part of the id.

Only labels start at the left edge of a card, never untrusted text.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from interlock.cli.approval_records import ApprovalRow, DecisionResult, JsonObject, ShownApproval
from interlock.cli.output import grid, local_time, print_json_line, printable, short_id, shorten
from interlock.cli.review import Review
from interlock.core.canonical import canonical
from interlock.core.card import CardField, Finding, escape_invisible, head_and_tail
from interlock.core.errors import Error, InvalidRequest, NotFound
from interlock.core.ports import ApprovalQuery
from interlock.presenters.text import pluralize
from interlock.runtime.durations import duration_text, parse_rfc3339, rfc3339

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


def render_card(view: ShownApproval, now: int, *, full: bool = False) -> Group:
    return Group(*_parts(view, now, full=full))


def render_findings(findings: Sequence[Finding]) -> Group:
    return Group(*(part for finding in findings for part in _finding(finding)))


def styled_risk(risk: str) -> Text:
    return Text(risk, style=RISK_STYLES.get(risk, ""))


def styled_status(status: str) -> Text:
    return Text(status, style=STATUS_STYLES.get(status, "dim"))


def time_left(row: ApprovalRow, now: int) -> str:
    """The time until the approval expires, or until the approved call must have started; empty for others."""
    match row.status:
        case "pending":
            return duration_text(row.expires_at - now)
        case "approved":
            return duration_text((row.start_by or now) - now)
        case _:
            return ""


def _parts(view: ShownApproval, now: int, *, full: bool) -> Iterator[RenderableType]:
    card, body = view.card, view.json
    yield Text.assemble((f" {card.risk.upper()} RISK ", RISK_STYLES.get(card.risk, "")), "  ", (card.tool, "bold"))
    yield Padding(Text(card.sentence if full else shorten(card.sentence, MAX_VALUE), style="bold"), (0, 0, 0, 2))
    yield Text()
    yield _facts(view, now)
    yield from _arguments(view, full=full)
    yield from _quotation("Preview", card.preview, full=full)
    yield from _quotation("The agent's description (unverified)", card.agent_description, full=full)
    yield from _quotation("The agent's preview (unverified)", card.agent_preview, full=full)
    yield from _quotation("The agent says (unverified)", card.agent_says, full=full)
    yield from _section("Votes", _votes(body["votes"]))
    yield from _section("Decision", _decision(body["decision"]))
    yield from _section("Timeline", [(_local(entry["at"]), _event(entry)) for entry in view.timeline])
    result = "" if body["result"] is None else canonical(body["result"]).decode()
    yield from _quotation("Result", escape_invisible(result), full=full)
    yield from _quotation("Error", escape_invisible(body["error_message"] or ""), full=full)


def _facts(view: ShownApproval, now: int) -> Table:
    row = view.row
    rows: list[tuple[str, Text]] = [(label, Text(text)) for label, text in view.card.facts]
    left = time_left(row, now)
    status = styled_status(row.status)
    if left:
        status.append(f", {left} left" if row.status == "pending" else f", may start for {left}", style="not bold")
    rows.append(("status", status))
    rows.append(("needs", Text(f"{view.approvers} ({row.votes_text})")))
    rows.append(("answers", Text(", ".join(view.decisions))))
    rows.append(("proposed", Text(f"{local_time(row.created_at)}, {duration_text(now - row.created_at)} ago")))
    rows.append(("id", Text(f"{escape_invisible(row.id)} (short: {escape_invisible(short_id(row.id))})")))
    rows.append(("args_sha256", Text(row.args_sha256)))
    return grid(rows)


def _arguments(view: ShownApproval, *, full: bool) -> Iterator[RenderableType]:
    card = view.card
    yield Text("\nArguments", style="bold")
    if view.args is None:
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


def _votes(votes: Sequence[JsonObject]) -> list[tuple[str, Text]]:
    return [(_local(vote["at"]), Text(_vote_text(vote))) for vote in votes]


def _vote_text(vote: JsonObject) -> str:
    on_behalf = "" if vote["by"] == vote["seat"] else f" for {escape_invisible(vote['seat'])}"
    return f"{escape_invisible(vote['by'])} via {escape_invisible(vote['via'])}{on_behalf}"


def _decision(decision: JsonObject | None) -> list[tuple[str, Text]]:
    if decision is None:
        return []
    facts = {
        escape_invisible(decision["kind"]): f"{escape_invisible(decision['by'])}, {_local(decision['at'])}"
        + (f" via {escape_invisible(decision['via'])}" if decision["via"] else ""),
        "reason": escape_invisible(decision["reason"]),
        "comment": escape_invisible(decision["comment"]),
    }
    return [(label, Text(text)) for label, text in facts.items() if text]


def _local(time: str) -> str:
    return local_time(parse_rfc3339(time))


def _event(entry: JsonObject) -> Text:
    content, kind = cast("Mapping[str, object] | None", entry["content"]), escape_invisible(entry["kind"])
    line = Text.assemble((kind, "bold"), f"  {escape_invisible(entry['actor'])}")
    if entry["digest"] and content is None:
        return line.append("  (details were erased)", style="dim")
    if kind.startswith("deliver"):
        line.append(f"  {escape_invisible(str(entry['data'].get('channel')))}")
    if kind == "decision_refused":
        wrong = ", ".join(cast("list[str]", (content or {}).get("fields", [])))
        error = escape_invisible(str(entry["data"]["error"]))
        line.append(f"  {error}" + (f" ({escape_invisible(wrong)})" if wrong else ""))
    for label, value in (content or {}).items():
        if label in ("via", "args_sha256") and isinstance(value, str):
            line.append(f"  {label} {escape_invisible(value)[:16]}", style="dim")
        elif label in SHOWN_EVENT_FIELDS and value:
            line.append(f"  {label}: {escape_invisible(str(value))}")
    return line


def event_line(entry: JsonObject) -> str:
    """An event on one line, for a stream of events."""
    moment = escape_invisible(entry["at"])
    return f"{moment}  {escape_invisible(short_id(entry['approval_id'])):8}  {_event(entry).plain}"


def decision_text(before: ApprovalRow, after: DecisionResult, now: int) -> str:
    tool, name = escape_invisible(before.tool), escape_invisible(short_id(after.id))
    match after.status:
        case "approved":
            edited = " with your changes" if before.args_sha256 != after.args_sha256 else ""
            until = after.start_by or now
            return f"Approved{edited}: {tool} may start until {local_time(until)} (for {duration_text(until - now)})."
        case "rejected":
            until = after.release_at or now
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


def _pending_text(before: ApprovalRow, after: DecisionResult, tool: str) -> str:
    if before.status == "rejected":
        return f"Undone: {tool} is pending again."
    votes = f"{after.have} of {after.need}"
    if before.version == after.version:
        return f"You have already approved this; nothing changed: {votes} approvals."
    missing = pluralize(after.need - after.have, "more person", "more people")
    if before.args_sha256 != after.args_sha256:
        return f"Changed: the new arguments need {missing}; earlier approvals no longer count."
    return f"Your approval counts: {votes}. {missing} needed."


async def print_events(review: Review, *, as_json: bool) -> None:
    """Print pending approvals, then events until interrupted."""
    printed, waiting = "", deque[JsonObject]()
    async with review.watch() as changes:
        page = await review.list(ApprovalQuery(("pending",), limit=500))
        for row in page.items:
            _print_waiting(row, review.now(), as_json=as_json)
        while True:
            trouble = changes.trouble
            try:
                waiting.extend(await changes.new_events())
                if skipped := changes.take_skipped():
                    _print_skipped(skipped, review.now(), as_json=as_json)
                rows: dict[str, ApprovalRow | None] = {"": None}  # each is read once, however many events it has
                while waiting:
                    approval_id = waiting[0]["approval_id"] or ""
                    if approval_id not in rows:
                        rows[approval_id] = await changes.row(approval_id)
                    _print_event(waiting[0], rows[approval_id], as_json=as_json)
                    waiting.popleft()
            except Error as error:
                trouble = error.message
            if trouble != printed:
                _print_trouble(trouble)
                printed = trouble
            await changes.wait(1.0)


def _print_waiting(row: ApprovalRow, now: int, *, as_json: bool) -> None:
    if as_json:
        head = {"seq": None, "at": rfc3339(now), "kind": "waiting", "approval_id": row.id}
        print_json_line({**head, "approval": row.json})
    else:
        _line(f"{rfc3339(now)}  {escape_invisible(short_id(row.id)):8}  waiting{_about(row)}")


def _print_skipped(count: int, now: int, *, as_json: bool) -> None:
    if as_json:
        print_json_line({"seq": None, "at": rfc3339(now), "kind": "skipped", "approval_id": "", "count": count})
    else:
        _line(f"{rfc3339(now)}  {'':8}  {pluralize(count, 'event was', 'events were')} skipped")


def _print_event(entry: JsonObject, row: ApprovalRow | None, *, as_json: bool) -> None:
    if as_json:
        print_json_line({**entry, "approval": row.json if row else None})
    else:
        _line(event_line(entry) + (_about(row) if row else ""))


def _about(row: ApprovalRow) -> str:
    return f"  {escape_invisible(row.tool)}: {shorten(row.sentence)}"


def _line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _print_trouble(trouble: str) -> None:
    sys.stderr.write(f"{printable(trouble) or 'It is available again.'}\n")
    sys.stderr.flush()


MIN_ID_LENGTH = 4
MAX_NAMED = 5


async def find_approval_view(review: Review, text: str) -> ShownApproval:
    return await review.show(await find_approval_id(review, text))


def check_id_length(text: str) -> None:
    if len(text) < MIN_ID_LENGTH:
        raise InvalidRequest(f"{text!r} is too short: give at least {MIN_ID_LENGTH} characters of the id.")


async def find_approval_id(review: Review, text: str) -> str:
    """The id that this is, or is the beginning or end of."""
    check_id_length(text)
    ids = await review.find_ids(text, MAX_NAMED + 1)
    if len(ids) == 1 or text in ids:
        return text if text in ids else ids[0]
    if not ids:
        raise NotFound(
            f"There is no approval {text!r} in the workspace {review.workspace!r}. "
            "See: interlock approvals list --status all",
            approval_id=text,
        )
    found = [(await review.show(approval_id)).row for approval_id in ids[:MAX_NAMED]]
    named = ", ".join(f"{escape_invisible(row.id)} ({escape_invisible(row.tool)})" for row in found)
    more = " and more" if len(ids) > MAX_NAMED else ""
    raise NotFound(
        f"{text!r} matches several approvals: {named}{more}. Give more of the id.",
        approval_id=text,
        candidates=list(ids[:MAX_NAMED]),
    )

"""Slack blocks of a message, within Slack's limits; no argument can inject markup, a mention or a link.

Values are formatted as code, where nothing becomes bold, an emoji or a link; a backtick would end the code and is
escaped like hidden characters (`escape_invisible`). Sentences are plain text. In both, & < > are escaped: without `<`
there is no mention and no link.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from interlock.core.card import CardField, Finding, escape_invisible
from interlock.core.notify.delivery import ApprovalView, Notification
from interlock.notify import message_text

Json = dict[str, Any]
MAX_BLOCKS = 50
MAX_TEXT = 8_500  # characters of all blocks; Slack refuses at about 11,000
MAX_HEADER = 150
MAX_PREVIEW = 600
MAX_QUOTE = 300
TAIL = 5  # blocks after the arguments
BLANK = "\\u{20}"
MAX_NAME = 120
INLINE = 80  # characters of a value on one line with its name
MAX_LINES = 2_500  # characters of such lines in one block
VERBS = {"approve": "Approve", "edit": "Edit", "respond": "Answer", "reject": "Reject"}
NEEDS_FULL_VIEW = ("approve", "edit")  # only if the message shows the call in full
UNCUT = 1 << 30
MAX_LONG_NAME, MAX_SHORT_VALUE, MAX_LONG_VALUE, MAX_CODE, MAX_NOTE = 700, 500, 2_000, 3_000, 1_900


def render_message(message: Notification, *, interactive: bool) -> Json:
    """Render a message. `text` is for device notifications; `interactive` if Slack can send us clicks.

    A reminder is a reply to the message, which itself is not changed by it.
    """
    if message.purpose == "remind":
        message = replace(message, purpose="changed")
    return {
        "text": escape_and_cut(message_text.title(message, 400), 2_000),
        "blocks": _blocks(message, interactive=interactive),
    }


def render_reminder(message: Notification) -> Json:
    """Render a reminder, as a reply to the message."""
    approval_view = message.approval_view
    asked = message_text.approvers_sentence(approval_view.approval) if approval_view else ""
    return {
        "text": escape_and_cut(message_text.title(message, 400), 2_000),
        "blocks": [text_block(message_text.title(message, 400)), note_block(asked), link_block(message)],
    }


def is_shown_in_full(approval_view: ApprovalView) -> bool:
    """Return whether a message shows every argument, finding and preview, all uncut."""
    card, fields = approval_view.card, _fields(approval_view)
    groups = list(_details(approval_view))
    return (
        len(fields) <= message_text.MAX_FIELDS
        and all(map(_is_uncut, fields))
        and all(fits_in_note(f"{_sign(each)} {each.message}") for each in card.findings)
        and all(
            len(text) <= MAX_PREVIEW and len(escape_code(text, UNCUT)) <= MAX_CODE for text in _previews(approval_view)
        )
        and len(_fit_blocks(iter(groups), *_space_left(_head(approval_view, "")))) == sum(map(len, groups))
    )


def fits_in_note(text: str) -> bool:
    """Return whether a text fits in a note uncut."""
    return len(escape(text)) <= MAX_NOTE


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_and_cut(text: str, limit: int) -> str:
    """Escape a visible text and cut it to the limit, which includes the escapes."""
    for size in (limit, limit // 2, limit // 5):
        cut = escape(message_text.shorten(text, size))
        if len(cut) <= limit:
            return cut
    return cut[:limit]


def escape_code(text: str, limit: int = MAX_CODE) -> str:
    """Escape text for code: no backticks inside, and no blanks at its ends, with which it would not be code."""
    ends = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    if any(ends):
        text = f"{BLANK * ends[0]}{text.strip(' ')}{BLANK * ends[1]}"
    return escape_and_cut(text.replace("`", "\\u{60}") or BLANK, limit)


def text_block(text: str) -> Json:
    return {"type": "section", "text": label_object(escape_and_cut(text, 2_900) or " ")}


def note_block(text: str) -> Json:
    return {"type": "context", "elements": [label_object(escape_and_cut(text, MAX_NOTE) or " ")]}


def link_block(message: Notification) -> Json:
    """Link without a button, since a button needs an app that handles clicks."""
    is_over = message.approval_view is not None and not message.approval_view.is_open
    return markup_block(f"<{escape(message.link)}|{'View it' if is_over else 'Review and decide'}>")


def markup_block(text: str) -> Json:
    """Block with markup, for text that is escaped already."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _blocks(message: Notification, *, interactive: bool) -> list[Json]:
    approval_view = message.approval_view
    if approval_view is None:
        return [text_block(message_text.title(message, 400)), link_block(message)]
    blocks = _head(approval_view, message_text.title(message, 120))
    blocks += _fit_blocks(_details(approval_view), *_space_left(blocks))
    blocks += [note_block(message_text.status_sentence(approval_view))]
    blocks += [note_block(message_text.shorten(approval_view.result, MAX_QUOTE))] if approval_view.result else []
    if approval_view.is_open and message.purpose != "expired":
        blocks += [_deadline(approval_view)]
        if interactive:
            return [*blocks, {"type": "actions", "block_id": "decide", "elements": _buttons(message, approval_view)}]
    return [*blocks, link_block(message)]


def _head(approval_view: ApprovalView, title: str) -> list[Json]:
    text = label_object(escape_and_cut(message_text.shorten(title, 120), MAX_HEADER))
    more = [text_block(approval_view.card.sentence)] if len(approval_view.card.sentence) > 120 else []
    return [{"type": "header", "text": text}, *more, _facts(approval_view)]


def _facts(approval_view: ApprovalView) -> Json:
    """Names and risk, each as code: names come from outside."""
    facts = {"risk": approval_view.card.risk, "tool": approval_view.card.tool, **dict(approval_view.card.facts)}
    shown = [(label, facts[label]) for label in ("risk", "tool", "agent", "requester", "rule") if facts.get(label)]
    return {
        "type": "section",
        "fields": [
            {"type": "mrkdwn", "text": f"*{label.capitalize()}*\n`{escape_code(text, 200)}`", "verbatim": True}
            for label, text in shown
        ],
    }


def _details(approval_view: ApprovalView) -> Iterator[list[Json]]:
    """Yield groups of blocks that stay together: an argument and its findings."""
    card, fields = approval_view.card, _fields(approval_view)
    yield from _arguments(fields[: message_text.MAX_FIELDS], card.findings)
    if len(fields) > message_text.MAX_FIELDS:
        yield [note_block(f"{len(fields) - message_text.MAX_FIELDS} more arguments are shown on the page.")]
    told = {each.pointer for each in fields[: message_text.MAX_FIELDS]}
    yield from ([_finding_block(each)] for each in card.findings if each.pointer not in told)
    if card.preview:
        yield [markup_block(f"*Preview*\n```{escape_code(message_text.shorten(card.preview, MAX_PREVIEW))}```")]
    for name, said in message_text.claims(approval_view, MAX_PREVIEW):
        yield [markup_block(f"*{name}*\n```{escape_code(said)}```")]
    if card.agent_says:
        yield [
            markup_block(
                "*Agent's explanation (not verified)*\n"
                f"```{escape_code(message_text.shorten(card.agent_says, MAX_QUOTE))}```"
            )
        ]


def _fields(approval_view: ApprovalView) -> list[CardField]:
    """Return the fields, without objects and arrays that have members and no findings."""
    fields = approval_view.card.fields
    return [each for each in fields if each.type not in ("object", "array") or not each.length or each.findings]


def _previews(approval_view: ApprovalView) -> tuple[str, ...]:
    return approval_view.card.preview, approval_view.card.agent_preview


def _is_uncut(field: CardField) -> bool:
    limit = MAX_SHORT_VALUE if len(field.text) <= INLINE else MAX_LONG_VALUE
    name = escape_invisible(field.pointer.removeprefix("/"))
    whole_name = len(name) <= MAX_NAME and len(escape_code(name, UNCUT)) <= MAX_LONG_NAME
    return whole_name and len(field.text) <= message_text.MAX_VALUE and len(escape_code(field.text, UNCUT)) <= limit


def _arguments(fields: Sequence[CardField], findings: Sequence[Finding]) -> Iterator[list[Json]]:
    """Yield short arguments as lines of one block; a long one, or one with findings, has its own block."""
    lines: list[str] = []
    for each in fields:
        marks = [_finding_block(finding) for finding in findings if finding.id in each.findings]
        value = escape_code(each.text or _members(each), MAX_SHORT_VALUE)
        line = f"`{_name(each)}`  `{value}`" if len(each.text) <= INLINE else ""
        if lines and (marks or not line or sum(map(len, lines)) + len(line) > MAX_LINES):
            yield [markup_block("\n".join(lines))]
            lines = []
        if marks or not line:
            yield [markup_block(_argument(each)), *marks]
        else:
            lines.append(line)
    if lines:
        yield [markup_block("\n".join(lines))]


def _finding_block(finding: Finding) -> Json:
    return note_block(f"{_sign(finding)} {finding.message}")


def _sign(finding: Finding) -> str:
    return "⚠" if finding.level == "alarm" else "Note:"


def _argument(field: CardField) -> str:
    value = message_text.shorten(field.text, message_text.MAX_VALUE)
    cut = f"\n_{field.length:,} characters; shown in full on the page_" if value != field.text else ""
    return f"`{_name(field)}`\n```{escape_code(value or _members(field), MAX_LONG_VALUE)}```{cut}"


def _name(field: CardField) -> str:
    return escape_code(message_text.shorten(escape_invisible(field.pointer.removeprefix("/")), MAX_NAME), MAX_LONG_NAME)


def _members(field: CardField) -> str:
    return f"({field.type} with {field.length:,} members)"


def _space_left(head: list[Json]) -> tuple[int, int]:
    """Return the blocks and characters left for details, for any title."""
    return MAX_BLOCKS - TAIL - len(head), MAX_TEXT - 1_500 - MAX_HEADER - _size(head[1:])


def _fit_blocks(groups: Iterator[list[Json]], blocks: int, size: int) -> list[Json]:
    """Return the groups that fit, with a last note if there is more."""
    shown: list[Json] = []
    for group in groups:
        if len(shown) + len(group) >= blocks or _size(shown) + _size(group) > size:
            return [*shown, note_block("This message shows only part of the call. Open the page to see all of it.")]
        shown += group
    return shown


def _size(blocks: list[Json]) -> int:
    """Count the characters of all texts."""
    texts = [each.get("text") or {} for each in blocks]
    texts += [part for each in blocks for part in (*each.get("fields", ()), *each.get("elements", ()))]
    return sum(len(str(text.get("text", ""))) for text in texts)


def _deadline(approval_view: ApprovalView) -> Json:
    """Deadline in the reader's time zone, which Slack computes."""
    at = approval_view.approval.deadlines.expires_at
    date = f"<!date^{at // 1000}^{{date_short_pretty}} {{time}}|{message_text.utc_time(at)}>"
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": f"Decide by {date}", "verbatim": True}]}


def _buttons(message: Notification, approval_view: ApprovalView) -> list[Json]:
    """Buttons. Their value names the delivery and the arguments seen; it is looked up again, and not trusted."""
    value = f"{message.thread} {approval_view.approval.args_sha256}"
    allowed = [kind for kind in VERBS if kind in approval_view.approval.terms.decisions]
    look = {"type": "button", "action_id": "open", "text": label_object("Open"), "url": message.link}
    if not is_shown_in_full(approval_view) and set(NEEDS_FULL_VIEW) & set(allowed):
        others = [_button(kind, value, is_risky=False) for kind in allowed if kind not in NEEDS_FULL_VIEW]
        return [{**look, "text": label_object("Open to review"), "style": "primary"}, *others]
    return [*(_button(kind, value, is_risky=approval_view.card.risk == "high") for kind in allowed), look]


def _button(kind: str, value: str, *, is_risky: bool) -> Json:
    button: Json = {"type": "button", "action_id": kind, "text": label_object(VERBS[kind]), "value": value}
    if kind != "approve":
        return button
    if not is_risky:
        return {**button, "style": "primary"}
    confirm = {
        "title": label_object("Approve this?"),
        "text": label_object("High risk. It runs as soon as enough people have approved."),
        "confirm": label_object("Approve"),
        "deny": label_object("Go back"),
        "style": "danger",
    }
    return {**button, "style": "danger", "confirm": confirm}


def label_object(text: str) -> Json:
    """Plain-text object, for our own words or for a text that is escaped and cut already."""
    return {"type": "plain_text", "text": text, "emoji": False}

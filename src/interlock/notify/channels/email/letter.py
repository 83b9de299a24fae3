"""A mail before it is text or HTML: both are made of the same words, so neither says more than the other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html import escape

from interlock.core.card import visible
from interlock.core.notify.message import ApprovalView, Notification
from interlock.notify import message_text as words

MAX_SENTENCE = 500
MAX_NAME = 100
MAX_WARNINGS = 20
WIDTH = 72
CODE_LIFETIME = "ten minutes"
_LINK = re.compile(r"://|(?i:\bwww\.)")


@dataclass(frozen=True, slots=True)
class MailContent:
    """`link` is the only one in the mail, under the words of `action`. `code` stands by itself, to be copied."""

    subject: str
    lead: str
    why: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    arguments: tuple[tuple[str, str], ...] = ()
    claims: tuple[tuple[str, str], ...] = ()
    code: str = ""
    action: str = ""
    link: str = ""
    foot: str = ""


def approval_mail(message: Notification, *, is_personal: bool, has_codes: bool = False) -> MailContent:
    """`has_codes`: people can sign in with a code that is mailed to them."""
    topic = message.topic
    if topic is None:
        return _mail_without_approval(message)
    if topic.is_open:
        return replace(
            _open_approval_mail(message, topic, is_personal=is_personal),
            foot=_about_the_link(is_personal=is_personal, has_codes=has_codes),
        )
    return _ended_approval_mail(message, topic)


def code_mail(code: str, person: str) -> MailContent:
    return MailContent(
        "Your sign-in code",
        f"Somebody, and we hope it was you, opened the link of a mail and wants to sign in as {visible(person)}.",
        code=code,
        foot=f"The code counts for {CODE_LIFETIME}, once, and only in the browser that asked for it. "
        "Give it to nobody. "
        "If it was not you, do nothing: without the code nobody gets in.",
    )


def to_plain_text(given: MailContent) -> str:
    return "\n".join(_lines(given))


def defuse_links(text: str) -> str:
    """Mail programs make links of what looks like one; the only link here is ours."""
    return _LINK.sub(lambda found: f"{found[0][:-1]}[.]" if found[0].endswith(".") else "[:]//", text)


def _mail_without_approval(message: Notification) -> MailContent:
    title = words.title(message)
    if message.purpose == "group":
        lead = f"{title}. They came faster than they could be told one by one."
        return MailContent(title, lead, action="Open the inbox", link=message.link)
    return MailContent(title, "If you can read this, the channel works. There is nothing to decide.")


def _open_approval_mail(message: Notification, topic: ApprovalView, *, is_personal: bool) -> MailContent:
    return MailContent(
        words.title(message),
        words.shorten(topic.card.sentence, MAX_SENTENCE),
        f"{_why(message, is_personal=is_personal)} {words.approvers_sentence(topic.approval)}",
        tuple(_facts(topic)),
        tuple(words.shorten(each, MAX_SENTENCE) for each in words.warnings(topic)[:MAX_WARNINGS]),
        tuple((words.shorten(name, MAX_NAME), value) for name, value in words.arguments(topic)),
        tuple(words.claims(topic)),
        action="Look at it and decide",
        link=message.link,
    )


def _ended_approval_mail(message: Notification, topic: ApprovalView) -> MailContent:
    """Nothing is left to decide, so the link is that of the page, and of nobody in particular."""
    said = words.status_sentence(topic)
    return MailContent(
        words.title(message),
        f"{said} {topic.result}".strip(),
        "There is nothing left to decide.",
        (("Call", words.shorten(topic.card.sentence, MAX_SENTENCE)), *_facts(topic)),
        action="Look at it",
        link=message.link.partition("?")[0],
    )


def _why(message: Notification, *, is_personal: bool) -> str:
    if not is_personal:
        return "This goes to a list: whoever may decide it can sign in and do so."
    match message.purpose:
        case "remind" if message.revised:
            return "You get this again because its arguments were changed since you were told."
        case "remind":
            return "You get this again because you may decide it and nobody has."
        case "escalate":
            return "You get this because nobody has decided it yet and it was passed on to you."
        case _:
            return "You get this because you may decide it."


def _facts(topic: ApprovalView) -> Iterator[tuple[str, str]]:
    yield "Risk", topic.card.risk
    yield "Tool", words.shorten(topic.card.tool, MAX_NAME)
    known = {"agent": "Agent", "requester": "For"}
    for label, text in topic.card.facts:
        if label in known and text:
            yield known[label], words.shorten(text, MAX_NAME)
    if topic.is_open:
        yield "Until", words.utc_time(topic.approval.expires_at)


def _about_the_link(*, is_personal: bool, has_codes: bool) -> str:
    if not is_personal:
        return "The link shows the call to those who are signed in."
    ways = "as usual, or with a code that is mailed to you" if has_codes else "as usual"
    return (
        f"The link shows the call and decides nothing by itself. To decide, you sign in: {ways}. "
        "Forwarding this mail lets nobody else decide."
    )


def _lines(given: MailContent) -> Iterator[str]:
    yield defuse_links(given.lead)
    if given.code:
        yield from ("", f"    {given.code}")
    if given.why:
        yield from ("", given.why)
    yield from _details(given)
    if given.link:
        yield from ("", f"{given.action}:", given.link)
    if given.foot:
        yield from ("", "-" * WIDTH, given.foot)


def _details(given: MailContent) -> Iterator[str]:
    if given.warnings:
        yield from ("", "Look twice:", *(f"  ! {defuse_links(each)}" for each in given.warnings))
    if given.facts:
        yield from ("", *(f"{label}: {defuse_links(value)}" for label, value in given.facts))
    if given.arguments:
        yield from (
            "",
            "Arguments:",
            *(f"  {defuse_links(name)}: {defuse_links(value)}" for name, value in given.arguments),
        )
    if given.claims:
        yield from ("", *(f"{label}: {defuse_links(value)}" for label, value in given.claims))


FONT = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
CELL = "padding:4px 12px 4px 0;vertical-align:top;text-align:left"
VALUE = f"{CELL};font-family:ui-monospace,Menlo,Consolas,monospace;word-break:break-word"
BUTTON = "display:inline-block;padding:12px 20px;background:#1f4e79;color:#ffffff;text-decoration:none"
STYLE = (
    "<style>:root{color-scheme:light dark;supported-color-schemes:light dark}"
    "@media (prefers-color-scheme:dark){.page{background:#1b1b1b!important;color:#eeeeee!important}"
    ".quiet{color:#b0b0b0!important}.warn{background:#4a3500!important;color:#ffe2a0!important}}</style>"
)
_JOINTS = re.compile(r"(?<=\S)([.:@/]+)(?=\S)")


def to_html(given: MailContent) -> str:
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark">{STYLE}<title>{escape(given.subject)}</title></head>'
        f'<body class="page" style="margin:0;padding:24px;background:#ffffff;color:#1b1b1b;{FONT};'
        f'font-size:15px;line-height:1.5"><div style="max-width:600px">{"".join(_parts(given))}</div></body></html>\n'
    )


def _parts(given: MailContent) -> Iterator[str]:
    yield f'<p style="margin:0 0 12px;font-size:17px;font-weight:600;word-break:break-word">{_text(given.lead)}</p>'
    if given.code:
        yield f'<p style="margin:0 0 12px;font-size:26px;letter-spacing:2px;{VALUE}">{_text(given.code)}</p>'
    if given.why:
        yield f'<p style="margin:0 0 12px">{_text(given.why)}</p>'
    if given.warnings:
        listed = "".join(f"<li>{_text(each)}</li>" for each in given.warnings)
        yield (
            '<div class="warn" style="margin:0 0 12px;padding:8px 12px;background:#fff3d6;color:#5c3b00;'
            f'word-break:break-word"><strong>Look twice:</strong><ul style="margin:4px 0 0;padding-left:20px">'
            f"{listed}</ul></div>"
        )
    yield from _tables(given)
    if given.link:
        yield (
            f'<p style="margin:20px 0"><a href="{escape(given.link)}" style="{BUTTON}">{_text(given.action)}</a></p>'
        )
    if given.foot:
        yield f'<p class="quiet" style="margin:20px 0 0;color:#5a5a5a;font-size:13px">{_text(given.foot)}</p>'


def _tables(given: MailContent) -> Iterator[str]:
    if given.facts:
        yield _table(given.facts)
    if given.arguments:
        yield '<p style="margin:0 0 4px;font-weight:600">Arguments:</p>'
        yield _table(given.arguments)
    if given.claims:
        yield _table(given.claims)


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(
        f'<tr><th scope="row" style="{CELL};font-weight:400" class="quiet">{_text(name)}</th>'
        f'<td style="{VALUE}">{_text(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table role="presentation" style="border-collapse:collapse;margin:0 0 12px">{lines}</table>'


def _text(text: str) -> str:
    """Mail programs make links of what looks like one, unless it is taken apart; what is read stays the same."""
    pieces = _JOINTS.split(text)
    return "".join(f"<span>{each}</span>" if number % 2 else escape(each) for number, each in enumerate(pieces))

"""E-mail over SMTP: a mail to each possible reviewer, with a link that shows the call and decides nothing.

Settings: `host`, `port`, `tls` (starttls, implicit, or none to this machine), `ca_file` for a mail server with a
private certificate authority, `user`, `password`, `from`, `reply_to`. With `to`, a list of addresses, the mails go to
these instead of to people, and their links are not personal. `codes: false` disables sign-in codes by mail.

It is long because a channel is one module: the mail's content and its transport.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import sha256
from html import escape
from typing import Any

import aiosmtplib

from interlock.accounts.passwords import CODE_LIFETIME
from interlock.core.card import escape_invisible
from interlock.core.errors import Misconfigured
from interlock.core.notify.delivery import ApprovalView, Notification, Recipient
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify import message_text
from interlock.notify.channel import ChannelContext, DeliveryDelayed, DeliveryRejected, text_setting
from interlock.runtime.durations import MINUTE

__all__ = ["CAPABILITIES", "SETTINGS", "connect"]


SETTINGS = ("host", "port", "tls", "ca_file", "user", "password", "from", "to", "reply_to", "codes")
CAPABILITIES = ChannelCapabilities(personal=True)
SMTP_TIMEOUT = 15.0  # for each step of the SMTP session
MISCONFIGURED_RETRY = 60.0  # seconds until the retry if the configuration has to be changed
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
PORTS = {"starttls": 587, "implicit": 465, "none": 25}
MAX_TO = 20
END_SENT_MARK = " told"  # suffix of a reference: the end was sent to this person


@dataclass(frozen=True, kw_only=True)
class SmtpServer:
    """The mail server, its TLS mode and credentials."""

    host: str
    port: int
    tls: str
    context: ssl.SSLContext | None
    user: str
    password: str = field(repr=False)
    sender: str  # the bare address


@dataclass(frozen=True)
class MailHeaders:
    """Headers of every mail; `domain` is the domain of message ids."""

    sender: str
    reply_to: str
    domain: str


def connect(context: ChannelContext) -> EmailChannel:
    settings = context.settings
    sender, reply_to = text_setting(settings, "from"), text_setting(settings, "reply_to", "")
    addresses = [_address(each, "to") for each in _read_recipients(settings)]
    codes = settings.get("codes", True)
    if not isinstance(codes, bool):
        raise Misconfigured("codes must be true or false")
    from_address = _address(sender, "from")
    if reply_to:
        _address(reply_to, "reply_to")
    headers = MailHeaders(sender, reply_to, from_address.rpartition("@")[2])
    return EmailChannel(
        _read_smtp_server(settings, from_address), headers, addresses, has_codes=codes and not addresses
    )


class EmailChannel:
    def __init__(self, server: SmtpServer, headers: MailHeaders, to: Sequence[str], *, has_codes: bool) -> None:
        self.capabilities = ChannelCapabilities(personal=not to)
        self.has_codes = has_codes
        self._server = server
        self._headers = headers
        self._to = to

    async def send(self, message: Notification) -> str:
        name = _message_name(message)
        await self._send_message(self._addresses(message.to), self._content(message), message, name)
        return name

    async def update(self, message: Notification, ref: str) -> str:
        """Send a further mail, since mails cannot be changed: for a reminder, once for the end, and if it reopens."""
        first = ref.removesuffix(END_SENT_MARK)
        is_end_sent = ref != first
        if message.purpose == "ended":
            if is_end_sent or _is_own_decision(message):
                return ref
            await self._send_follow_up(message, first)
            return first + END_SENT_MARK
        if message.purpose == "changed" and not is_end_sent:
            return ref
        await self._send_follow_up(message, first)
        return first

    async def send_code(self, to: Recipient, code: str, name: str, at: int) -> None:
        """Send a sign-in code; `name` is unique to this mail."""
        mail = self._build_mail(code_mail(code, to.person), self._addresses(to), f"code.{name}", at)
        await _send_mail(self._server, mail, self._addresses(to))

    async def close(self) -> None:
        """Do nothing: each mail has a connection of its own."""

    def _content(self, message: Notification) -> MailContent:
        return approval_mail(message, is_personal=not self._to, has_codes=self.has_codes)

    async def _send_follow_up(self, message: Notification, first: str) -> None:
        content = self._content(message)
        await self._send_message(self._addresses(message.to), content, message, _message_name(message), first)

    async def _send_message(
        self, to: Sequence[str], content: MailContent, message: Notification, name: str, first: str = ""
    ) -> None:
        mail = self._build_mail(content, to, name, message.at)
        if message.approval_view is not None:
            before = [f"{message.workspace}.{message.approval_view.approval.id}", *([first] if first else [])]
            mail["References"] = " ".join(f"<{each}@{self._headers.domain}>" for each in before)
        if first:
            mail["In-Reply-To"] = f"<{first}@{self._headers.domain}>"
        await _send_mail(self._server, mail, to)

    def _build_mail(self, content: MailContent, to: Sequence[str], name: str, at: int) -> EmailMessage:
        mail = EmailMessage(policy=SMTP)
        mail["Subject"] = _line(content.subject)
        mail["From"] = self._headers.sender
        mail["To"] = ", ".join(to)
        if self._headers.reply_to:
            mail["Reply-To"] = self._headers.reply_to
        mail["Date"] = format_datetime(datetime.fromtimestamp(at / 1000, UTC))
        mail["Message-ID"] = f"<{name}@{self._headers.domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail["X-Auto-Response-Suppress"] = "All"
        mail.set_content(to_plain_text(content), cte="quoted-printable")
        mail.add_alternative(to_html(content), subtype="html", cte="quoted-printable")
        return mail

    def _addresses(self, to: Recipient) -> Sequence[str]:
        if self._to:
            return self._to
        if not to.person:
            raise DeliveryRejected(
                "This channel sends to individual users, and this message has no recipient. Set `to` to a list address."
            )
        if not to.email:
            raise DeliveryRejected(f"{to.person} has no e-mail address. An admin can add it to their account.")
        try:
            return [_address(to.email, "the address")]
        except Misconfigured:
            raise DeliveryRejected(f"The e-mail address of {to.person} is not valid. An admin can change it.") from None


def _is_own_decision(message: Notification) -> bool:
    """Return whether the recipient made the decision, so that no mail is needed."""
    decision_record = message.approval_view.approval.decision if message.approval_view else None
    return decision_record is not None and bool(message.to.person) and decision_record.by == message.to.person


def _message_name(message: Notification) -> str:
    """Return the message id, the same for every retry, so that duplicates are detected; each test has its own."""
    said = f"{message.workspace}/{message.id}" + (f"/{message.at}" if message.purpose == "test" else "")
    return sha256(said.encode()).hexdigest()[:32]


def _line(subject: str) -> str:
    """Make a single line, without what a mail program would decode as an encoded word."""
    return " ".join(subject.split()).replace("=?", "= ?")


# SMTP


async def _send_mail(server: SmtpServer, mail: EmailMessage, to: Sequence[str]) -> None:
    """Send a mail. Raises DeliveryDelayed or DeliveryRejected, without the server's own message."""
    client = aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        username=server.user or None,
        password=server.password or None,
        use_tls=server.tls == "implicit",
        start_tls=server.tls == "starttls",
        tls_context=server.context,
        local_hostname=server.sender.rpartition("@")[2],
        timeout=SMTP_TIMEOUT,
    )
    try:
        await _transmit(client, server.sender, mail.as_bytes(), to)
    except aiosmtplib.SMTPException as error:
        raise _to_delivery_error(error) from None
    except ssl.SSLError:
        raise _certificate_error() from None
    except OSError:
        raise DeliveryDelayed("The mail server cannot be reached.") from None


async def _transmit(client: aiosmtplib.SMTP, sender: str, mail: bytes, to: Sequence[str]) -> None:
    """Transmit a mail. Once it is accepted, later errors in the session are ignored; the socket is always closed."""
    await client.connect()
    transport = client.transport
    try:
        await client.sendmail(sender, list(to), mail)
        with suppress(aiosmtplib.SMTPException, OSError):
            await client.quit()
    finally:
        client.close()
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()


def _to_delivery_error(error: aiosmtplib.SMTPException) -> DeliveryDelayed | DeliveryRejected:
    match error:
        case aiosmtplib.SMTPRecipientsRefused(recipients=refused):
            return _refusal_error(min(each.code for each in refused), "the address")
        case aiosmtplib.SMTPDataError(code=code):
            return _refusal_error(code, "the mail")
        case aiosmtplib.SMTPTimeoutError():
            return DeliveryDelayed(f"The mail server did not respond within {SMTP_TIMEOUT:g} seconds.")
        case _:
            return _to_misconfiguration(error)


def _to_misconfiguration(error: aiosmtplib.SMTPException) -> DeliveryDelayed:
    """Translate an error that affects every mail: they are retried for a day, until the configuration is fixed."""
    match error:
        case aiosmtplib.SMTPAuthenticationError():
            return DeliveryDelayed(
                "The mail server rejected user and password. Check both in the configuration.", MISCONFIGURED_RETRY
            )
        case aiosmtplib.SMTPSenderRefused(code=code) if code >= 500:
            return DeliveryDelayed(f"The mail server rejects this sender ({code}). Check `from`.", MISCONFIGURED_RETRY)
        case _ if type(error) in (aiosmtplib.SMTPException, aiosmtplib.SMTPNotSupported):
            return DeliveryDelayed(
                "The mail server lacks a feature that the channel needs. Check `tls` and `user`.", MISCONFIGURED_RETRY
            )
        case aiosmtplib.SMTPResponseException(code=code):
            return DeliveryDelayed(f"The mail server is not ready ({code}).")
        case _ if isinstance(error.__cause__, ssl.SSLError):
            return _certificate_error()
        case _:
            return DeliveryDelayed("The mail server cannot be reached, or closed the connection.")


def _certificate_error() -> DeliveryDelayed:
    return DeliveryDelayed(
        "The mail server's certificate is not trusted. Check `host`, `tls` and `ca_file`.", MISCONFIGURED_RETRY
    )


def _refusal_error(code: int, what: str) -> DeliveryDelayed | DeliveryRejected:
    if code < 500:
        return DeliveryDelayed(f"The mail server temporarily rejects {what} ({code}).")
    return DeliveryRejected(f"The mail server rejected {what} ({code}).")


# Settings


def _read_smtp_server(settings: Mapping[str, object], sender: str) -> SmtpServer:
    host, tls = text_setting(settings, "host"), text_setting(settings, "tls", "starttls")
    if tls not in PORTS:
        raise Misconfigured(f"tls must be one of {', '.join(PORTS)}")
    if tls == "none" and host not in LOCAL_HOSTS:
        raise Misconfigured("tls: none is only for a mail server on this machine; otherwise mails could be intercepted")
    port = settings.get("port", PORTS[tls])
    if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65_535:
        raise Misconfigured("port must be a number from 1 to 65535")
    user, password = text_setting(settings, "user", ""), text_setting(settings, "password", "")
    if bool(user) != bool(password):
        raise Misconfigured("user and password must be set together, or not at all")
    context = None if tls == "none" else _tls_context(text_setting(settings, "ca_file", ""))
    return SmtpServer(host=host, port=port, tls=tls, context=context, user=user, password=password, sender=sender)


def _tls_context(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError):
        raise Misconfigured("ca_file must be a file of PEM certificates") from None


def _read_recipients(settings: Mapping[str, object]) -> list[str]:
    value = settings.get("to", ())
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, Sequence) or not all(isinstance(each, str) for each in listed) or len(listed) > MAX_TO:
        raise Misconfigured(f"to must be an address, or a list of at most {MAX_TO}")
    return [str(each) for each in listed]


def _address(given: str, setting: str) -> str:
    """Return the bare address of `Interlock <interlock@example.com>`. Raises Misconfigured unless it is exactly one."""
    header: Any = SMTP.header_factory("to", given) if given.isprintable() else None
    found: Sequence[Any] = header.addresses if header is not None and not header.defects else ()
    if len(found) != 1 or not found[0].username or not found[0].domain or not found[0].addr_spec.isascii():
        raise Misconfigured(f"{setting} is not an e-mail address, such as interlock@example.com")
    return str(found[0].addr_spec)


MAX_SENTENCE = 500
MAX_NAME = 100
MAX_WARNINGS = 20
WIDTH = 72
_LINK = re.compile(r"://|(?i:\bwww\.)")


@dataclass(frozen=True, slots=True)
class MailContent:
    """Content of a mail. `link` is its only link, with the text `action`; `code` has its own line, to be copied."""

    subject: str
    lead: str
    _: KW_ONLY
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
    """Build the mail about an approval. `has_codes`: people can sign in with a code by mail."""
    approval_view = message.approval_view
    if approval_view is None:
        return _mail_without_approval(message)
    if approval_view.is_open:
        return replace(
            _open_approval_mail(message, approval_view, is_personal=is_personal),
            foot=_about_the_link(is_personal=is_personal, has_codes=has_codes),
        )
    return _ended_approval_mail(message, approval_view)


def code_mail(code: str, person: str) -> MailContent:
    return MailContent(
        "Your sign-in code",
        f"Someone, hopefully you, opened a link in a mail to sign in as {escape_invisible(person)}.",
        code=code,
        foot=f"The code is valid for {CODE_LIFETIME // MINUTE} minutes, once, and only in the browser that requested "
        "it. Do not share it. "
        "If it was not you, do nothing: no one can sign in without the code.",
    )


def to_plain_text(content: MailContent) -> str:
    return "\n".join(_lines(content))


def defuse_links(text: str) -> str:
    """Break up text that mail programs would turn into a link; the only link is ours."""
    return _LINK.sub(lambda found: f"{found[0][:-1]}[.]" if found[0].endswith(".") else "[:]//", text)


def _mail_without_approval(message: Notification) -> MailContent:
    title = message_text.title(message)
    if message.purpose == "group":
        lead = f"{title}. They arrived too fast to be sent one by one."
        return MailContent(title, lead, action="Open the inbox", link=message.link)
    return MailContent(title, "This channel works. There is nothing to decide.")


def _open_approval_mail(message: Notification, approval_view: ApprovalView, *, is_personal: bool) -> MailContent:
    return MailContent(
        message_text.title(message),
        message_text.shorten(approval_view.card.sentence, MAX_SENTENCE),
        why=f"{_why(message, is_personal=is_personal)} {message_text.approvers_sentence(approval_view.approval)}",
        facts=tuple(_facts(approval_view)),
        warnings=tuple(
            message_text.shorten(each, MAX_SENTENCE) for each in message_text.warnings(approval_view)[:MAX_WARNINGS]
        ),
        arguments=tuple(
            (message_text.shorten(name, MAX_NAME), value) for name, value in message_text.arguments(approval_view)
        ),
        claims=tuple(message_text.claims(approval_view)),
        action="Review and decide",
        link=message.link,
    )


def _ended_approval_mail(message: Notification, approval_view: ApprovalView) -> MailContent:
    """Build the mail about the end. Nothing is left to decide, so its link is the page's, and not personal."""
    said = message_text.status_sentence(approval_view)
    return MailContent(
        message_text.title(message),
        f"{said} {approval_view.result}".strip(),
        why="Nothing is left to decide.",
        facts=(("Call", message_text.shorten(approval_view.card.sentence, MAX_SENTENCE)), *_facts(approval_view)),
        action="View it",
        link=message.link.partition("?")[0],
    )


def _why(message: Notification, *, is_personal: bool) -> str:
    if not is_personal:
        return "This mail goes to a list. Anyone on it who may decide can sign in and do so."
    match message.purpose:
        case "remind" if message.revised:
            return "You are receiving this again because the arguments have changed since the last message."
        case "remind":
            return "You are receiving this again because you may decide it and it is still pending."
        case "escalate":
            return "You are receiving this because it is still pending and was escalated to you."
        case _:
            return "You are receiving this because you may decide it."


def _facts(approval_view: ApprovalView) -> Iterator[tuple[str, str]]:
    yield "Risk", approval_view.card.risk
    yield "Tool", message_text.shorten(approval_view.card.tool, MAX_NAME)
    known = {"agent": "Agent", "requester": "For"}
    for label, text in approval_view.card.facts:
        if label in known and text:
            yield known[label], message_text.shorten(text, MAX_NAME)
    if approval_view.is_open:
        yield "Until", message_text.utc_time(approval_view.approval.deadlines.expires_at)


def _about_the_link(*, is_personal: bool, has_codes: bool) -> str:
    if not is_personal:
        return "The link opens the call for people who are signed in."
    ways = "as usual, or with a code that is mailed to you" if has_codes else "as usual"
    return (
        f"The link opens the call and decides nothing by itself. To decide, sign in: {ways}. "
        "Forwarding this mail does not let anyone else decide."
    )


def _lines(content: MailContent) -> Iterator[str]:
    yield defuse_links(content.lead)
    if content.code:
        yield from ("", f"    {content.code}")
    if content.why:
        yield from ("", content.why)
    yield from _details(content)
    if content.link:
        yield from ("", f"{content.action}:", content.link)
    if content.foot:
        yield from ("", "-" * WIDTH, content.foot)


def _details(content: MailContent) -> Iterator[str]:
    if content.warnings:
        yield from ("", "Check carefully:", *(f"  ! {defuse_links(each)}" for each in content.warnings))
    if content.facts:
        yield from ("", *(f"{label}: {defuse_links(value)}" for label, value in content.facts))
    if content.arguments:
        yield from (
            "",
            "Arguments:",
            *(f"  {defuse_links(name)}: {defuse_links(value)}" for name, value in content.arguments),
        )
    if content.claims:
        yield from ("", *(f"{label}: {defuse_links(value)}" for label, value in content.claims))


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


def to_html(content: MailContent) -> str:
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark">{STYLE}<title>{escape(content.subject)}</title></head>'
        f'<body class="page" style="margin:0;padding:24px;background:#ffffff;color:#1b1b1b;{FONT};'
        f'font-size:15px;line-height:1.5"><div style="max-width:600px">{"".join(_parts(content))}</div></body></html>\n'
    )


def _parts(content: MailContent) -> Iterator[str]:
    yield f'<p style="margin:0 0 12px;font-size:17px;font-weight:600;word-break:break-word">{_text(content.lead)}</p>'
    if content.code:
        yield f'<p style="margin:0 0 12px;font-size:26px;letter-spacing:2px;{VALUE}">{_text(content.code)}</p>'
    if content.why:
        yield f'<p style="margin:0 0 12px">{_text(content.why)}</p>'
    if content.warnings:
        listed = "".join(f"<li>{_text(each)}</li>" for each in content.warnings)
        yield (
            '<div class="warn" style="margin:0 0 12px;padding:8px 12px;background:#fff3d6;color:#5c3b00;'
            f'word-break:break-word"><strong>Check carefully:</strong><ul style="margin:4px 0 0;padding-left:20px">'
            f"{listed}</ul></div>"
        )
    yield from _tables(content)
    if content.link:
        yield (
            f'<p style="margin:20px 0"><a href="{escape(content.link)}" style="{BUTTON}">'
            f"{_text(content.action)}</a></p>"
        )
    if content.foot:
        yield f'<p class="quiet" style="margin:20px 0 0;color:#5a5a5a;font-size:13px">{_text(content.foot)}</p>'


def _tables(content: MailContent) -> Iterator[str]:
    if content.facts:
        yield _table(content.facts)
    if content.arguments:
        yield '<p style="margin:0 0 4px;font-weight:600">Arguments:</p>'
        yield _table(content.arguments)
    if content.claims:
        yield _table(content.claims)


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(
        f'<tr><th scope="row" style="{CELL};font-weight:400" class="quiet">{_text(name)}</th>'
        f'<td style="{VALUE}">{_text(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table role="presentation" style="border-collapse:collapse;margin:0 0 12px">{lines}</table>'


def _text(text: str) -> str:
    """Escape text, and break up what mail programs would turn into a link, without a visible change."""
    pieces = _JOINTS.split(text)
    return "".join(f"<span>{each}</span>" if number % 2 else escape(each) for number, each in enumerate(pieces))

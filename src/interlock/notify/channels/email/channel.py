"""Connects an e-mail channel: one mail to each person, over SMTP."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import sha256
from typing import Any

import aiosmtplib

from interlock.core.errors import Misconfigured
from interlock.core.notify.message import Notification, Recipient
from interlock.core.notify.routing import ChannelCapabilities
from interlock.notify.channel import ChannelContext, DeliveryDelayed, DeliveryRejected, text_setting
from interlock.notify.channels.email.letter import MailContent, approval_mail, code_mail, to_html, to_plain_text

SETTINGS = ("host", "port", "tls", "ca_file", "user", "password", "from", "to", "reply_to", "codes")
MEANS = ChannelCapabilities(personal=True)
SMTP_TIMEOUT = 15.0  # for each step of a conversation with the mail server
MISCONFIGURED_RETRY = 60.0  # seconds before the next try where somebody has to change the configuration
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
PORTS = {"starttls": 587, "implicit": 465, "none": 25}
MAX_TO = 20
END_SENT_MARK = " told"  # behind a reference: this person knows how it ended


@dataclass(frozen=True)
class SmtpServer:
    """Which mail server, and how to talk to it."""

    host: str
    port: int
    tls: str
    context: ssl.SSLContext | None
    user: str
    password: str = field(repr=False)
    sender: str  # the address alone


@dataclass(frozen=True)
class MailHeaders:
    """What stands in the head of every mail; `domain` ends the names of mails."""

    sender: str
    reply_to: str
    domain: str


def connect(kit: ChannelContext) -> EmailChannel:
    given = kit.settings
    sender, reply_to = text_setting(given, "from"), text_setting(given, "reply_to", "")
    addresses = [_address(each, "to") for each in _read_recipients(given)]
    codes = given.get("codes", True)
    if not isinstance(codes, bool):
        raise Misconfigured("codes is true or false")
    from_address = _address(sender, "from")
    if reply_to:
        _address(reply_to, "reply_to")
    heads = MailHeaders(sender, reply_to, from_address.rpartition("@")[2])
    return EmailChannel(_read_smtp_server(given, from_address), heads, addresses, has_codes=codes and not addresses)


class EmailChannel:
    def __init__(self, post: SmtpServer, heads: MailHeaders, to: Sequence[str], *, has_codes: bool) -> None:
        self.means = ChannelCapabilities(personal=not to)
        self.has_codes = has_codes
        self._post = post
        self._heads = heads
        self._to = to

    async def send(self, message: Notification) -> str:
        name = _message_name(message)
        await self._mail(self._receivers(message.to), self._letter(message), message, name)
        return name

    async def update(self, message: Notification, ref: str) -> str:
        """A mail cannot be changed. A further one is sent for a reminder, once for the end, and if it opens again."""
        first = ref.removesuffix(END_SENT_MARK)
        knows = ref != first
        if message.purpose == "ended":
            if knows or _is_own_decision(message):
                return ref
            await self._follow(message, first)
            return first + END_SENT_MARK
        if message.purpose == "changed" and not knows:
            return ref
        await self._follow(message, first)
        return first

    async def send_code(self, to: Recipient, code: str, name: str, at: int) -> None:
        """`name` is the same for no other mail."""
        mail = self._made(code_mail(code, to.person), self._receivers(to), f"code.{name}", at)
        await _send_mail(self._post, mail, self._receivers(to))

    async def close(self) -> None:
        """Each mail has a connection of its own."""

    def _letter(self, message: Notification) -> MailContent:
        return approval_mail(message, is_personal=not self._to, has_codes=self.has_codes)

    async def _follow(self, message: Notification, first: str) -> None:
        given = self._letter(message)
        await self._mail(self._receivers(message.to), given, message, _message_name(message), first)

    async def _mail(
        self, to: Sequence[str], given: MailContent, message: Notification, name: str, first: str = ""
    ) -> None:
        mail = self._made(given, to, name, message.at)
        if message.topic is not None:
            before = [f"{message.workspace}.{message.topic.approval.id}", *([first] if first else [])]
            mail["References"] = " ".join(f"<{each}@{self._heads.domain}>" for each in before)
        if first:
            mail["In-Reply-To"] = f"<{first}@{self._heads.domain}>"
        await _send_mail(self._post, mail, to)

    def _made(self, given: MailContent, to: Sequence[str], name: str, at: int) -> EmailMessage:
        mail = EmailMessage(policy=SMTP)
        mail["Subject"] = _line(given.subject)
        mail["From"] = self._heads.sender
        mail["To"] = ", ".join(to)
        if self._heads.reply_to:
            mail["Reply-To"] = self._heads.reply_to
        mail["Date"] = format_datetime(datetime.fromtimestamp(at / 1000, UTC))
        mail["Message-ID"] = f"<{name}@{self._heads.domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail["X-Auto-Response-Suppress"] = "All"
        mail.set_content(to_plain_text(given), cte="quoted-printable")
        mail.add_alternative(to_html(given), subtype="html", cte="quoted-printable")
        return mail

    def _receivers(self, to: Recipient) -> Sequence[str]:
        if self._to:
            return self._to
        if not to.person:
            raise DeliveryRejected(
                "This channel writes to people, and this is for nobody in particular. Set `to` for a list."
            )
        if not to.email:
            raise DeliveryRejected(f"{to.person} has no e-mail address. An admin can add it to their account.")
        try:
            return [_address(to.email, "the address")]
        except Misconfigured:
            raise DeliveryRejected(
                f"The e-mail address of {to.person} cannot be written to. An admin can change it."
            ) from None


def _is_own_decision(message: Notification) -> bool:
    """Nobody has to be told what they did themselves."""
    decided = message.topic.approval.decision if message.topic else None
    return decided is not None and bool(message.to.person) and decided.by == message.to.person


def _message_name(message: Notification) -> str:
    """The same for every try, so that a mail that comes twice is one; every test is a new one."""
    said = f"{message.workspace}/{message.id}" + (f"/{message.at}" if message.purpose == "test" else "")
    return sha256(said.encode()).hexdigest()[:32]


def _line(subject: str) -> str:
    """One line that is read as it stands: what looks like an encoded word would be decoded by whoever reads it."""
    return " ".join(subject.split()).replace("=?", "= ?")


# Talking to the mail server


async def _send_mail(post: SmtpServer, mail: EmailMessage, to: Sequence[str]) -> None:
    """Raises Later or Never, in words that hold nothing of what the server said."""
    client = aiosmtplib.SMTP(
        hostname=post.host,
        port=post.port,
        username=post.user or None,
        password=post.password or None,
        use_tls=post.tls == "implicit",
        start_tls=post.tls == "starttls",
        tls_context=post.context,
        local_hostname=post.sender.rpartition("@")[2],
        timeout=SMTP_TIMEOUT,
    )
    try:
        await _transmit(client, post.sender, mail.as_bytes(), to)
    except aiosmtplib.SMTPException as error:
        raise _to_delivery_error(error) from None
    except ssl.SSLError:
        raise _certificate_error() from None
    except OSError:
        raise DeliveryDelayed("The mail server cannot be reached.") from None


async def _transmit(client: aiosmtplib.SMTP, sender: str, mail: bytes, to: Sequence[str]) -> None:
    """Once the mail is taken, how the conversation ends changes nothing; its socket is closed either way."""
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
            return DeliveryDelayed(f"The mail server did not answer within {SMTP_TIMEOUT:g} seconds.")
        case _:
            return _to_misconfiguration(error)


def _to_misconfiguration(error: aiosmtplib.SMTPException) -> DeliveryDelayed:
    """What is wrong for every mail parks none: they wait for a day until somebody has put it right."""
    match error:
        case aiosmtplib.SMTPAuthenticationError():
            return DeliveryDelayed(
                "The mail server did not take user and password. Check both in the configuration.", MISCONFIGURED_RETRY
            )
        case aiosmtplib.SMTPSenderRefused(code=code) if code >= 500:
            return DeliveryDelayed(
                f"The mail server does not take mails from this sender ({code}). Check `from`.", MISCONFIGURED_RETRY
            )
        case _ if type(error) in (aiosmtplib.SMTPException, aiosmtplib.SMTPNotSupported):
            return DeliveryDelayed(
                "The mail server does not offer what the channel needs. Check `tls` and `user`.", MISCONFIGURED_RETRY
            )
        case aiosmtplib.SMTPResponseException(code=code):
            return DeliveryDelayed(f"The mail server is not ready ({code}).")
        case _ if isinstance(error.__cause__, ssl.SSLError):
            return _certificate_error()
        case _:
            return DeliveryDelayed("The mail server cannot be reached, or ended the conversation.")


def _certificate_error() -> DeliveryDelayed:
    return DeliveryDelayed(
        "The mail server's certificate does not hold. Check `host`, `tls` and `ca_file`.", MISCONFIGURED_RETRY
    )


def _refusal_error(code: int, what: str) -> DeliveryDelayed | DeliveryRejected:
    if code < 500:
        return DeliveryDelayed(f"The mail server does not take {what} now ({code}).")
    return DeliveryRejected(f"The mail server refused {what} ({code}).")


# Settings


def _read_smtp_server(given: Mapping[str, object], sender: str) -> SmtpServer:
    host, tls = text_setting(given, "host"), text_setting(given, "tls", "starttls")
    if tls not in PORTS:
        raise Misconfigured(f"tls is one of {', '.join(PORTS)}")
    if tls == "none" and host not in LOCAL_HOSTS:
        raise Misconfigured("tls is none only for a mail server on this machine; else everybody on the way reads along")
    port = given.get("port", PORTS[tls])
    if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65_535:
        raise Misconfigured("port is a number from 1 to 65535")
    user, password = text_setting(given, "user", ""), text_setting(given, "password", "")
    if bool(user) != bool(password):
        raise Misconfigured("user and password go together; without both, nobody signs in at the mail server")
    context = None if tls == "none" else _tls_context(text_setting(given, "ca_file", ""))
    return SmtpServer(host, port, tls, context, user, password, sender)


def _tls_context(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError):
        raise Misconfigured("ca_file cannot be read as certificates in PEM") from None


def _read_recipients(given: Mapping[str, object]) -> list[str]:
    value = given.get("to", ())
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, Sequence) or not all(isinstance(each, str) for each in listed) or len(listed) > MAX_TO:
        raise Misconfigured(f"to is an address, or a list of at most {MAX_TO}")
    return [str(each) for each in listed]


def _address(given: str, setting: str) -> str:
    """The address alone of `Interlock <interlock@example.com>`. Raises Misconfigured for what is not exactly one."""
    header: Any = SMTP.header_factory("to", given) if given.isprintable() else None
    found: Sequence[Any] = header.addresses if header is not None and not header.defects else ()
    if len(found) != 1 or not found[0].username or not found[0].domain or not found[0].addr_spec.isascii():
        raise Misconfigured(f"{setting} is not an e-mail address, such as interlock@example.com")
    return str(found[0].addr_spec)

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
from interlock.core.notify.message import Message, Recipient
from interlock.core.notify.routing import Means
from interlock.notify.channel import Kit, Later, Never, text
from interlock.notify.channels.email.letter import Letter, code_letter, html_of, letter, plain_text

SETTINGS = ("host", "port", "tls", "ca_file", "user", "password", "from", "to", "reply_to", "codes")
MEANS = Means(personal=True)
SECONDS = 15.0  # for each step of a conversation with the mail server
PATIENCE = 60.0  # seconds before the next try where somebody has to change the configuration
HERE = frozenset({"localhost", "127.0.0.1", "::1"})
PORTS = {"starttls": 587, "implicit": 465, "none": 25}
MAX_TO = 20
TOLD = " told"  # behind a reference: this person knows how it ended


@dataclass(frozen=True)
class Post:
    """Which mail server, and how to talk to it."""

    host: str
    port: int
    tls: str
    context: ssl.SSLContext | None
    user: str
    password: str = field(repr=False)
    sender: str  # the address alone


@dataclass(frozen=True)
class Heads:
    """What stands in the head of every mail; `domain` ends the names of mails."""

    sender: str
    reply_to: str
    domain: str


def connect(kit: Kit) -> Email:
    given = kit.settings
    sender, reply_to = text(given, "from"), text(given, "reply_to", "")
    addresses = [_address(each, "to") for each in _listed(given)]
    codes = given.get("codes", True)
    if not isinstance(codes, bool):
        raise Misconfigured("codes is true or false")
    from_address = _address(sender, "from")
    if reply_to:
        _address(reply_to, "reply_to")
    heads = Heads(sender, reply_to, from_address.rpartition("@")[2])
    return Email(_post(given, from_address), heads, addresses, has_codes=codes and not addresses)


class Email:
    def __init__(self, post: Post, heads: Heads, to: Sequence[str], *, has_codes: bool) -> None:
        self.means = Means(personal=not to)
        self.has_codes = has_codes
        self._post = post
        self._heads = heads
        self._to = to

    async def send(self, message: Message) -> str:
        name = _name(message)
        await self._mail(self._receivers(message.to), self._letter(message), message, name)
        return name

    async def update(self, message: Message, ref: str) -> str:
        """A mail cannot be changed. A further one is sent for a reminder, once for the end, and if it opens again."""
        first = ref.removesuffix(TOLD)
        knows = ref != first
        if message.purpose == "ended":
            if knows or _did_it(message):
                return ref
            await self._follow(message, first)
            return first + TOLD
        if message.purpose == "changed" and not knows:
            return ref
        await self._follow(message, first)
        return first

    async def send_code(self, to: Recipient, code: str, name: str, at: int) -> None:
        """`name` is the same for no other mail."""
        mail = self._made(code_letter(code, to.person), self._receivers(to), f"code.{name}", at)
        await _handed_over(self._post, mail, self._receivers(to))

    async def close(self) -> None:
        """Each mail has a connection of its own."""

    def _letter(self, message: Message) -> Letter:
        return letter(message, is_personal=not self._to, has_codes=self.has_codes)

    async def _follow(self, message: Message, first: str) -> None:
        given = self._letter(message)
        await self._mail(self._receivers(message.to), given, message, _name(message), first)

    async def _mail(self, to: Sequence[str], given: Letter, message: Message, name: str, first: str = "") -> None:
        mail = self._made(given, to, name, message.at)
        if message.topic is not None:
            before = [f"{message.workspace}.{message.topic.approval.id}", *([first] if first else [])]
            mail["References"] = " ".join(f"<{each}@{self._heads.domain}>" for each in before)
        if first:
            mail["In-Reply-To"] = f"<{first}@{self._heads.domain}>"
        await _handed_over(self._post, mail, to)

    def _made(self, given: Letter, to: Sequence[str], name: str, at: int) -> EmailMessage:
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
        mail.set_content(plain_text(given), cte="quoted-printable")
        mail.add_alternative(html_of(given), subtype="html", cte="quoted-printable")
        return mail

    def _receivers(self, to: Recipient) -> Sequence[str]:
        if self._to:
            return self._to
        if not to.person:
            raise Never("This channel writes to people, and this is for nobody in particular. Set `to` for a list.")
        if not to.email:
            raise Never(f"{to.person} has no e-mail address. An admin can add it to their account.")
        try:
            return [_address(to.email, "the address")]
        except Misconfigured:
            raise Never(f"The e-mail address of {to.person} cannot be written to. An admin can change it.") from None


def _did_it(message: Message) -> bool:
    """Nobody has to be told what they did themselves."""
    decided = message.topic.approval.decision if message.topic else None
    return decided is not None and bool(message.to.person) and decided.by == message.to.person


def _name(message: Message) -> str:
    """The same for every try, so that a mail that comes twice is one; every test is a new one."""
    said = f"{message.workspace}/{message.id}" + (f"/{message.at}" if message.purpose == "test" else "")
    return sha256(said.encode()).hexdigest()[:32]


def _line(subject: str) -> str:
    """One line that is read as it stands: what looks like an encoded word would be decoded by whoever reads it."""
    return " ".join(subject.split()).replace("=?", "= ?")


# Talking to the mail server


async def _handed_over(post: Post, mail: EmailMessage, to: Sequence[str]) -> None:
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
        timeout=SECONDS,
    )
    try:
        await _said(client, post.sender, mail.as_bytes(), to)
    except aiosmtplib.SMTPException as error:
        raise _judged(error) from None
    except ssl.SSLError:
        raise _unknown() from None
    except OSError:
        raise Later("The mail server cannot be reached.") from None


async def _said(client: aiosmtplib.SMTP, sender: str, mail: bytes, to: Sequence[str]) -> None:
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


def _judged(error: aiosmtplib.SMTPException) -> Later | Never:
    match error:
        case aiosmtplib.SMTPRecipientsRefused(recipients=refused):
            return _refused(min(each.code for each in refused), "the address")
        case aiosmtplib.SMTPDataError(code=code):
            return _refused(code, "the mail")
        case aiosmtplib.SMTPTimeoutError():
            return Later(f"The mail server did not answer within {SECONDS:g} seconds.")
        case _:
            return _misconfigured(error)


def _misconfigured(error: aiosmtplib.SMTPException) -> Later:
    """What is wrong for every mail parks none: they wait for a day until somebody has put it right."""
    match error:
        case aiosmtplib.SMTPAuthenticationError():
            return Later("The mail server did not take user and password. Check both in the configuration.", PATIENCE)
        case aiosmtplib.SMTPSenderRefused(code=code) if code >= 500:
            return Later(f"The mail server does not take mails from this sender ({code}). Check `from`.", PATIENCE)
        case _ if type(error) in (aiosmtplib.SMTPException, aiosmtplib.SMTPNotSupported):
            return Later("The mail server does not offer what the channel needs. Check `tls` and `user`.", PATIENCE)
        case aiosmtplib.SMTPResponseException(code=code):
            return Later(f"The mail server is not ready ({code}).")
        case _ if isinstance(error.__cause__, ssl.SSLError):
            return _unknown()
        case _:
            return Later("The mail server cannot be reached, or ended the conversation.")


def _unknown() -> Later:
    return Later("The mail server's certificate does not hold. Check `host`, `tls` and `ca_file`.", PATIENCE)


def _refused(code: int, what: str) -> Later | Never:
    if code < 500:
        return Later(f"The mail server does not take {what} now ({code}).")
    return Never(f"The mail server refused {what} ({code}).")


# Settings


def _post(given: Mapping[str, object], sender: str) -> Post:
    host, tls = text(given, "host"), text(given, "tls", "starttls")
    if tls not in PORTS:
        raise Misconfigured(f"tls is one of {', '.join(PORTS)}")
    if tls == "none" and host not in HERE:
        raise Misconfigured("tls is none only for a mail server on this machine; else everybody on the way reads along")
    port = given.get("port", PORTS[tls])
    if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65_535:
        raise Misconfigured("port is a number from 1 to 65535")
    user, password = text(given, "user", ""), text(given, "password", "")
    if bool(user) != bool(password):
        raise Misconfigured("user and password go together; without both, nobody signs in at the mail server")
    context = None if tls == "none" else _context(text(given, "ca_file", ""))
    return Post(host, port, tls, context, user, password, sender)


def _context(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError):
        raise Misconfigured("ca_file cannot be read as certificates in PEM") from None


def _listed(given: Mapping[str, object]) -> list[str]:
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

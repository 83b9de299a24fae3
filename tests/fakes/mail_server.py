"""A mail server on loopback: an unmodified aiosmtpd with STARTTLS and AUTH under its own certificate.

It takes what SMTP takes and refuses the rest: no mail before STARTTLS and AUTH, no address that a test forbids.
"""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP as LINES
from email.policy import default
from pathlib import Path
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USER, PASSWORD = "interlock", "smtp password hunter2"
HOST = "127.0.0.1"
ACCEPTED = "250 OK"


@dataclass
class Mail:
    """One that was taken, as it came."""

    sender: str
    to: list[str]
    raw: bytes

    @property
    def parsed(self) -> EmailMessage:
        return message_from_bytes(self.raw, policy=default)

    @property
    def text(self) -> str:
        return self._part("plain")

    @property
    def html(self) -> str:
        return self._part("html")

    def _part(self, kind: str) -> str:
        part = self.parsed.get_body((kind,))
        assert part is not None
        return str(part.get_content()).replace("\r\n", "\n")


@dataclass
class MailServer:
    """`overrides` are responses that replace the usual ones, by command: MAIL, RCPT, DATA."""

    port: int
    tls: str
    ca_file: Path
    accepted: list[Mail] = field(default_factory=list)
    refused: list[Mail] = field(default_factory=list)  # as far as their data came
    overrides: dict[str, str] = field(default_factory=dict)
    tls_sessions: list[bool] = field(default_factory=list)

    def settings(self, **more: Any) -> dict[str, Any]:
        given = {"host": HOST, "port": self.port, "user": USER, "password": PASSWORD, "ca_file": str(self.ca_file)}
        return {"from": "Interlock <interlock@example.com>", **given, **more}

    def mails_to(self, address: str) -> list[Mail]:
        return [mail for mail in self.accepted if mail.to == [address]]

    # What aiosmtpd calls

    async def handle_MAIL(self, _: SMTP, __: Session, envelope: Envelope, address: str, ___: list[str]) -> str:
        envelope.mail_from = address
        return self.overrides.get("MAIL", ACCEPTED)

    async def handle_RCPT(self, _: SMTP, __: Session, envelope: Envelope, address: str, ___: list[str]) -> str:
        said = self.overrides.get(f"RCPT {address}", self.overrides.get("RCPT", ACCEPTED))
        if said == ACCEPTED:
            envelope.rcpt_tos.append(address)
        return said

    async def handle_DATA(self, _: SMTP, session: Session, envelope: Envelope) -> str:
        said = self.overrides.get("DATA", ACCEPTED)
        mail = Mail(envelope.mail_from or "", list(envelope.rcpt_tos), cast(bytes, envelope.content))
        (self.accepted if said == ACCEPTED else self.refused).append(mail)
        self.tls_sessions.append(session.ssl is not None or self.tls == "implicit")
        return said


@contextmanager
def mail_server(folder: Path, *, tls: str = "starttls") -> Iterator[MailServer]:
    """`tls` as in the channel's settings; with none, anybody may send."""
    ca_file, context = certificate(folder)
    server = MailServer(0, tls, ca_file)
    options: dict[str, Any] = {"decode_data": False, "enable_SMTPUTF8": False}
    if tls != "none":
        options |= {"authenticator": _authenticate, "auth_require_tls": tls == "starttls"}
    if tls == "starttls":
        options |= {"auth_required": True, "tls_context": context, "require_starttls": True}
    listening = socket.create_server((HOST, 0))
    server.port = listening.getsockname()[1]
    outer = context if tls == "implicit" else None
    ready: Future[Callable[[], object]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(server, listening, outer, options, ready)), name="mail")
    thread.start()
    stop = ready.result(timeout=30)
    try:
        yield server
    finally:
        stop()
        thread.join()


async def _serve(
    server: MailServer,
    listening: socket.socket,
    outer: ssl.SSLContext | None,
    options: dict[str, Any],
    ready: Future[Callable[[], object]],
) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    made = await loop.create_server(lambda: SMTP(server, loop=loop, **options), sock=listening, ssl=outer)
    ready.set_result(lambda: loop.call_soon_threadsafe(stop.set))
    await stop.wait()
    made.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def assert_valid_mime(mail: Mail) -> None:
    """Check what MIME requires: no defect in any part, correct line ends, ASCII only."""
    parsed = mail.parsed
    assert [part.defects for part in parsed.walk() if part.defects] == []
    for name, value in parsed.items():
        assert not value.defects, name
    assert parsed.as_bytes(policy=LINES)
    lines = mail.raw.split(b"\r\n")
    assert max(map(len, lines)) <= 998
    assert all(b"\n" not in line and b"\r" not in line for line in lines)
    assert mail.raw.isascii()
    assert parsed.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in parsed.iter_parts()] == ["text/plain", "text/html"]


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Self-made, for loopback; whoever trusts the file trusts the server."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start.replace(year=2120))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    ca_file, key_file = folder / "mail.pem", folder / "mail.key"
    ca_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(ca_file, key_file)
    return ca_file, context


def _authenticate(_: SMTP, __: Session, ___: Envelope, ____: str, given: object) -> AuthResult:
    assert isinstance(given, LoginPassword)
    right = given.login == USER.encode() and given.password == PASSWORD.encode()
    return AuthResult(success=right, handled=right)

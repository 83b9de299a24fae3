"""Web servers on loopback, and a fake network with made-up names and addresses."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpcore2
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok"


@dataclass
class WebServer:
    """`responses` by path; `requests` as they arrived; `connection_count` connections."""

    port: int = 0
    responses: dict[str, Answer] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    connection_count: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                (int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")), 0
            )
            self.requests.append(head + (await reader.readexactly(length)).decode())
            answer = self.responses.get(head.split()[1], OK)
            if callable(answer):
                await answer(writer)
            else:
                writer.write(answer)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def run_web_server(tls: ssl.SSLContext | None = None, **answers: Answer) -> AsyncIterator[WebServer]:
    """`answers` are named for paths: `a` for `/a`."""
    made = WebServer(responses={f"/{name}": answer for name, answer in answers.items()})
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


def redirect(location: str, status: int = 302) -> bytes:
    return f"HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode()


def page(body: bytes, kind: str = "text/plain", *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"content-type: {kind}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class FakeNetwork(httpcore2.AsyncNetworkBackend):
    """Public addresses lead to servers of the test; `connections` lists the real targets."""

    def __init__(self, servers: Mapping[str, int] | None = None) -> None:
        self.connections: list[tuple[str, int]] = []
        self.servers = servers or {}
        self._real = httpcore2.AnyIOBackend()

    async def connect_tcp(self, host: str, port: int, *more: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        self.connections.append((host, port))
        if host not in self.servers:
            raise httpcore2.ConnectError(f"Nobody is at {host}.")
        return await self._real.connect_tcp("127.0.0.1", self.servers[host], *more, **options)


class FakeResolver:
    """A resolver that gives its answers in order and repeats the last."""

    def __init__(self, **names: Sequence[Sequence[str]]) -> None:
        self._names = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.lookup_count: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.lookup_count.append(host)
        answers = self._names.get(host)
        if not answers:
            raise OSError(f"{host} is unknown")
        return answers.pop(0) if len(answers) > 1 else answers[0]


def authority(folder: Path, *names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS for a server with these names, and for a client that trusts nobody but the one who signed for it."""
    now = datetime.now(UTC)
    key, ca_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of the test")])

    def signed(subject: x509.Name, public: ec.EllipticCurvePublicKey, *extensions: tuple[Any, bool]) -> bytes:
        made = x509.CertificateBuilder(ca, subject, public, x509.random_serial_number())
        made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        for extension, critical in extensions:
            made = made.add_extension(extension, critical)
        return made.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM)

    known = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    own = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    root = signed(ca, ca_key.public_key(), (x509.BasicConstraints(ca=True, path_length=None), True), (own, False))
    alternative = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    leaf = signed(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])]),
        key.public_key(),
        (alternative, False),
        (known, False),
    )
    file = folder / "server.pem"
    file.write_bytes(leaf + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=root.decode())

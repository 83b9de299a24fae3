"""Requests to the public web: `http_get` reads, `http_post` asks. Private addresses only if the settings say so.

Settings: `allow`, the only hosts that may be reached (`name`, or `name:port` for a port other than 80 and 443);
`allow_private`, for addresses of your own network; `seconds`, how long a request may take.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeVar, cast
from urllib.parse import urljoin

import httpx2

from interlock.chat.tool import Kit, Tool, Use, schema
from interlock.core.call import Args, ToolSpec
from interlock.core.errors import EffectUnknown, Error, InvalidRequest, Misconfigured, ToolFailed
from interlock.net.address_policy import Egress, Target, target_of
from interlock.net.ssrf import Pinned

T = TypeVar("T")
Headers = dict[str, str]
Told = dict[str, object]

SECONDS = 10.0  # for a request with all of its redirects
MOST_SECONDS = 60.0
MAX_ANSWER = 1024 * 1024  # bytes that are read
MAX_SHOWN = 20_000  # characters that a model is given
MAX_REDIRECTS = 3
MAX_HEADERS = 20
MAX_HEADER = 4_000
REDIRECTS = frozenset({301, 302, 303, 307, 308})
AGENT = "interlock"
# What says where the request goes, how long it is or how it travels is said by the transport alone.
NOT_TO_SET = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "expect", "host", "http2-settings", "keep-alive"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding"),
        *("upgrade", "via"),
    }
)
TOLD = ("content-type", "content-length", "etag", "last-modified", "link", "location", "retry-after")
HARMLESS = frozenset({"accept", "accept-language", "user-agent"})  # may go along to another host

# Headers that hold a secret. What is hidden is found by its name as it is written, so that each word of one may be in
# small letters, in capitals or begin with one; any other spelling is refused.
KEYS = (
    *("Authorization", "Proxy-Authorization", "Cookie", "Api-Key", "ApiKey", "X-Api-Key", "X-Api-Token", "X-Auth-Key"),
    *("X-Auth-Token", "X-Access-Token", "X-Token", "X-Secret", "X-Session-Token", "X-Goog-Api-Key", "X-Csrf-Token"),
    *("X-Gitlab-Token", "X-Vault-Token", "X-Functions-Key", "Private-Token"),
)
SPELLED = tuple(
    "-".join(words)
    for name in KEYS
    for words in product(*(dict.fromkeys((word, word.lower(), word.upper())) for word in name.split("-")))
)
SECRET = tuple(f"/headers/{name}" for name in SPELLED)
_KEYS = frozenset(map(str.lower, KEYS))
TEXTUAL = (
    "text/",
    "application/json",
    "application/xml",
    "application/javascript",
    "application/x-www-form-urlencoded",
)
CHARSETS = frozenset({"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "windows-1252", "utf-16"})
TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")

URL = {"type": "string", "description": "Begins with https:// or http://.", "maxLength": 8_000}
HEADERS = {
    "type": "object",
    "additionalProperties": {"type": "string", "maxLength": MAX_HEADER},
    "maxProperties": MAX_HEADERS,
}
BODY = {"description": "A text is sent as it is; anything else as JSON."}


def reads(kit: Kit) -> Sequence[Tool]:
    web = _web(kit)

    async def get(use: Use) -> object:
        return await web.get(str(use.args["url"]), _headers(use.args))

    spec = ToolSpec(
        "http_get",
        "read",
        schema("url", url=URL, headers=HEADERS),
        describe="Read {url}",
        secret=SECRET,
    )
    return (Tool(spec, "Reads a page or an interface on the public web by HTTP GET.", get),)


def writes(kit: Kit) -> Sequence[Tool]:
    web = _web(kit)

    async def post(use: Use) -> object:
        return await web.post(str(use.args["url"]), _headers(use.args), use.args["body"])

    def preview(args: Args) -> str:
        try:
            content, kind = _content(args["body"], _headers(args))
            target = target_of(str(args["url"]), web.egress)
        except Error as error:
            return f"It would be refused: {error.message}"
        return f"Sends {len(content):,} bytes of {kind} to {target.host}, port {target.port}. No redirect is followed."

    spec = ToolSpec(
        "http_post",
        "write",
        schema("url body", url=URL, body=BODY, headers=HEADERS),
        describe="Send POST request to {url}?",
        preview=preview,
        secret=SECRET,
    )
    return (Tool(spec, "Sends data to an interface on the public web by HTTP POST.", post),)


UNCLEAR = " It may have arrived all the same: look before you send it again."


@dataclass(frozen=True)
class _Web:
    egress: Egress
    seconds: float
    transport: httpx2.AsyncBaseTransport | None

    async def get(self, url: str, headers: Headers) -> object:
        return await self._bounded(self._followed(url, headers), ToolFailed, "")

    async def post(self, url: str, headers: Headers, body: object) -> object:
        content, kind = _content(body, headers)
        sent = self._sent("POST", url, {"content-type": kind, **headers}, content)
        answer, _ = await self._bounded(sent, EffectUnknown, UNCLEAR)
        return answer

    async def _bounded(self, work: Awaitable[T], lost: type[ToolFailed], then: str) -> T:
        """All that can go wrong on the way, in words for the model; `lost` and `then` say what a lost answer means."""
        try:
            async with asyncio.timeout(self.seconds):
                return await work
        except InvalidRequest as error:
            raise ToolFailed(error.message) from None
        except httpx2.ConnectError as error:
            raise ToolFailed(f"The host cannot be reached: {_trouble(error)}. Nothing was sent.") from None
        except (TimeoutError, httpx2.TimeoutException):
            raise lost(f"No whole answer within {self.seconds:g} seconds.{then}") from None
        except httpx2.TransportError:
            raise lost(f"The connection broke before the answer was whole.{then}") from None
        except httpx2.InvalidURL:
            raise ToolFailed("This is not a URL. Write it like https://example.com/path.") from None

    async def _followed(self, url: str, headers: Headers) -> object:
        for _ in range(1 + MAX_REDIRECTS):
            answer, onward = await self._sent("GET", url, headers)
            if onward is None:
                return answer
            headers = _carried(headers, target_of(url, self.egress), target_of(onward, self.egress))
            url = onward
        raise ToolFailed(f"The server redirects more than {MAX_REDIRECTS} times, at last to {url[:500]}")

    async def _sent(self, method: str, url: str, headers: Headers, content: bytes = b"") -> tuple[Told, str | None]:
        """The answer, and where a redirect leads."""
        target_of(url, self.egress)
        sent = {"accept": "*/*", "user-agent": AGENT, **headers, "accept-encoding": "identity"}
        request = httpx2.Request(method, url, headers=sent, content=content or None)
        transport = self.transport or Pinned(self.egress, tls=self._tls)
        try:
            response = await transport.handle_async_request(request)
            try:
                return await _told(response), _onward(url, response)
            finally:
                await response.aclose()
        finally:
            if transport is not self.transport:
                await transport.aclose()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return httpx2.create_ssl_context()  # takes a while: it reads all authorities


def _web(kit: Kit) -> _Web:
    """Raises Misconfigured: a wrong list must not become an open one."""
    allow, private = kit.settings.get("allow", []), kit.settings.get("allow_private", False)
    seconds = kit.settings.get("seconds", SECONDS)
    if not isinstance(allow, list | tuple) or not all(isinstance(host, str) and host for host in allow):
        raise Misconfigured('tools.http.allow is a list of hosts, such as ["api.example.com", "example.com:8443"].')
    if not isinstance(private, bool):
        raise Misconfigured("tools.http.allow_private is true or false.")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= MOST_SECONDS:
        raise Misconfigured(f"tools.http.seconds is a number above 0, at most {MOST_SECONDS:g}.")
    if "allow" in kit.settings and not allow:
        raise Misconfigured("tools.http.allow is empty. List the hosts, or leave it out to allow all public ones.")
    hosts = frozenset(host.lower().removesuffix(".") for host in allow)
    return _Web(Egress(hosts, private), float(seconds), kit.transport)


def _headers(args: Args) -> Headers:
    """In small letters. Raises ToolFailed for those that are not for a caller to set."""
    given = cast(Mapping[str, str], args.get("headers") or {})
    if odd := [name for name in given if name.lower() in _KEYS and name not in SPELLED]:
        raise ToolFailed(f'The header "{odd[0]}" is spelled so that its value would be shown. Write {odd[0].title()}.')
    headers = {name.lower(): value for name, value in given.items()}
    for name, value in headers.items():
        if (
            name in NOT_TO_SET
            or name.startswith(("proxy-", "sec-", "x-forwarded-"))
            or not set(name) <= TOKEN
            or not name
        ):
            raise ToolFailed(f'The header "{name[:100]}" cannot be set. Leave it out.')
        if not value.isascii() or not value.isprintable() or len(value) > MAX_HEADER:
            raise ToolFailed(f'The header "{name}" is at most {MAX_HEADER:,} printable ASCII characters.')
    return headers


def _content(body: object, headers: Headers) -> tuple[bytes, str]:
    """What is sent, and what it is."""
    match body:
        case str():
            return body.encode(), headers.get("content-type", "text/plain; charset=utf-8")
        case _:
            return json.dumps(body, ensure_ascii=False).encode(), headers.get("content-type", "application/json")


def _carried(headers: Headers, here: Target, there: Target) -> Headers:
    """What goes along to the next address. Raises InvalidRequest where the way would become open to readers."""
    if here.scheme == "https" and there.scheme == "http":
        raise InvalidRequest(f"The server redirects from https:// to http://{there.host}, which is not followed.")
    return headers if here == there else {name: value for name, value in headers.items() if name in HARMLESS}


def _onward(url: str, response: httpx2.Response) -> str | None:
    location = response.headers.get("location")
    return urljoin(url, location).partition("#")[0] if location and response.status_code in REDIRECTS else None


async def _told(response: httpx2.Response) -> Told:
    kind = response.headers.get("content-type", "")
    data, whole = await _read(response)
    told: Told = {
        "status": response.status_code,
        "headers": {name: response.headers[name][:1_000] for name in TOLD if name in response.headers},
    }
    if not _is_text(kind) or response.headers.get("content-encoding", "identity") != "identity":
        return {**told, "body": "", "cut": f"The body is not text ({kind or 'of no type'}), so it is left out."}
    body = data.decode(_charset(response), "replace").replace("\0", "\ufffd")
    if whole and len(body) <= MAX_SHOWN:
        return {**told, "body": body}
    return {**told, "body": body[:MAX_SHOWN], "cut": f"These are the first {MAX_SHOWN:,} characters; there are more."}


async def _read(response: httpx2.Response) -> tuple[bytes, bool]:
    """As it came: what was compressed against our wish could unfold to anything. False if there is more."""
    data = bytearray()
    async with aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            data += piece
            if len(data) > MAX_ANSWER:
                return bytes(data[:MAX_ANSWER]), False
    return bytes(data), True


def _is_text(kind: str) -> bool:
    bare = kind.partition(";")[0].strip().lower()
    return not bare or bare.startswith(TEXTUAL) or bare.endswith(("+json", "+xml"))


def _charset(response: httpx2.Response) -> str:
    """One of a few: some of Python's codecs take very long."""
    named = (response.charset_encoding or "utf-8").lower()
    return named if named in CHARSETS else "utf-8"


def _trouble(error: BaseException) -> str:
    """The innermost reason that people can do something about."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({inner.verify_message})"
        inner = inner.__cause__ or inner.__context__
    return "it does not answer there, or not safely"

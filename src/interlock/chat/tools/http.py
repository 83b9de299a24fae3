"""HTTP tools with SSRF protection: `http_get` reads, `http_post` asks. Private addresses only if the settings allow.

Settings: `allow`, the only hosts that may be reached (`name`, or `name:port` for a port other than 80 and 443);
`allow_private`, for addresses of your own network; `seconds`, the timeout of a request.
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

from interlock.chat.tool import Tool, ToolContext, ToolInvocation, object_schema
from interlock.core.call import Args, ToolSpec
from interlock.core.errors import CallWouldFail, EffectUnknown, Error, InvalidRequest, Misconfigured, ToolFailed
from interlock.net.ssrf import EgressPolicy, Endpoint, PinnedTransport, check_endpoint

T = TypeVar("T")
Headers = dict[str, str]
ResponseJson = dict[str, object]

DEFAULT_TIMEOUT = 10.0  # seconds, for a request with all of its redirects
MAX_TIMEOUT = 60.0
MAX_RESPONSE = 1024 * 1024  # bytes that are read
MAX_SHOWN = 20_000  # characters shown to the model
MAX_REDIRECTS = 3
MAX_HEADERS = 20
MAX_HEADER = 4_000
REDIRECTS = frozenset({301, 302, 303, 307, 308})
USER_AGENT = "interlock"
# Headers about destination, length and framing, which only the transport sets.
FORBIDDEN_HEADERS = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "expect", "host", "http2-settings", "keep-alive"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding"),
        *("upgrade", "via"),
    }
)
SHOWN_HEADERS = ("content-type", "content-length", "etag", "last-modified", "link", "location", "retry-after")
CROSS_HOST_HEADERS = frozenset({"accept", "accept-language", "user-agent"})  # may be sent to another host

# Headers that hold a secret. Secrets are redacted by the name as written, so each word of it may be in lower case, in
# upper case or capitalized; any other spelling is refused.
SECRET_HEADERS = (
    *("Authorization", "Proxy-Authorization", "Cookie", "Api-Key", "ApiKey", "X-Api-Key", "X-Api-Token", "X-Auth-Key"),
    *("X-Auth-Token", "X-Access-Token", "X-Token", "X-Secret", "X-Session-Token", "X-Goog-Api-Key", "X-Csrf-Token"),
    *("X-Gitlab-Token", "X-Vault-Token", "X-Functions-Key", "Private-Token"),
)
SECRET_SPELLINGS = tuple(
    "-".join(words)
    for name in SECRET_HEADERS
    for words in product(*(dict.fromkeys((word, word.lower(), word.upper())) for word in name.split("-")))
)
SECRET_POINTERS = tuple(f"/headers/{name}" for name in SECRET_SPELLINGS)
_KEYS = frozenset(map(str.lower, SECRET_HEADERS))
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


def read_tools(context: ToolContext) -> Sequence[Tool]:
    web = _make_fetcher(context)

    async def get(invocation: ToolInvocation) -> object:
        return await web.get(str(invocation.args["url"]), _headers(invocation.args))

    spec = ToolSpec(
        "http_get",
        "read",
        schema=object_schema("url", url=URL, headers=HEADERS),
        describe="Read {url}",
        secret=SECRET_POINTERS,
    )
    return (Tool(spec, "Reads a page or an interface on the public web by HTTP GET.", get),)


def write_tools(context: ToolContext) -> Sequence[Tool]:
    web = _make_fetcher(context)

    async def post(invocation: ToolInvocation) -> object:
        return await web.post(str(invocation.args["url"]), _headers(invocation.args), invocation.args["body"])

    def preview(args: Args) -> str:
        try:
            content, kind = _content(args["body"], _headers(args))
            target = check_endpoint(str(args["url"]), web.egress)
        except Error as error:
            raise CallWouldFail(error.message) from None
        return f"Sends {len(content):,} bytes of {kind} to {target.host}, port {target.port}. No redirect is followed."

    spec = ToolSpec(
        "http_post",
        "write",
        schema=object_schema("url body", url=URL, body=BODY, headers=HEADERS),
        describe="Send a POST request to {url!r}",
        preview=preview,
        secret=SECRET_POINTERS,
    )
    return (Tool(spec, "Sends data to an interface on the public web by HTTP POST.", post),)


UNCLEAR = " It may have arrived all the same: look before you send it again."


@dataclass(frozen=True)
class _HttpFetcher:
    egress: EgressPolicy
    seconds: float
    transport: httpx2.AsyncBaseTransport | None

    async def get(self, url: str, headers: Headers) -> object:
        return await self._with_timeout(self._follow_redirects(url, headers), ToolFailed, "")

    async def post(self, url: str, headers: Headers, body: object) -> object:
        content, kind = _content(body, headers)
        sent = self._send("POST", url, {"content-type": kind, **headers}, content)
        answer, _ = await self._with_timeout(sent, EffectUnknown, UNCLEAR)
        return answer

    async def _with_timeout(self, work: Awaitable[T], error_type: type[ToolFailed], hint: str) -> T:
        """Run a request with a timeout and errors as texts for the model. `error_type` and `hint`: no response came."""
        try:
            async with asyncio.timeout(self.seconds):
                return await work
        except InvalidRequest as error:
            raise ToolFailed(error.message) from None
        except httpx2.ConnectError as error:
            raise ToolFailed(f"The host cannot be reached: {_failure_reason(error)}. Nothing was sent.") from None
        except (TimeoutError, httpx2.TimeoutException):
            raise error_type(f"No whole answer within {self.seconds:g} seconds.{hint}") from None
        except httpx2.TransportError:
            raise error_type(f"The connection broke before the answer was whole.{hint}") from None
        except httpx2.InvalidURL:
            raise ToolFailed("This is not a URL. Write it like https://example.com/path.") from None
        except (httpx2.HTTPError, ValueError):
            raise error_type(f"The answer could not be read.{hint}") from None

    async def _follow_redirects(self, url: str, headers: Headers) -> object:
        for _ in range(1 + MAX_REDIRECTS):
            answer, redirect_url = await self._send("GET", url, headers)
            if redirect_url is None:
                return answer
            headers = _redirect_headers(
                headers, check_endpoint(url, self.egress), check_endpoint(redirect_url, self.egress)
            )
            url = redirect_url
        raise ToolFailed(f"The server redirects more than {MAX_REDIRECTS} times, at last to {url[:500]}")

    async def _send(
        self, method: str, url: str, headers: Headers, content: bytes = b""
    ) -> tuple[ResponseJson, str | None]:
        """Send a request; return the response, and the URL of a redirect."""
        check_endpoint(url, self.egress)
        sent = {"accept": "*/*", "user-agent": USER_AGENT, **headers, "accept-encoding": "identity"}
        request = httpx2.Request(method, url, headers=sent, content=content or None)
        transport = self.transport or PinnedTransport(self.egress, tls=self._tls)
        try:
            response = await transport.handle_async_request(request)
            try:
                return await _response_json(response), _redirect_url(url, response)
            finally:
                await response.aclose()
        finally:
            if transport is not self.transport:
                await transport.aclose()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return httpx2.create_ssl_context()  # slow: it reads all certificate authorities


def _make_fetcher(context: ToolContext) -> _HttpFetcher:
    """Make the fetcher. Raises Misconfigured: an invalid allow list must not become an open one."""
    allow, private = context.settings.get("allow", []), context.settings.get("allow_private", False)
    seconds = context.settings.get("seconds", DEFAULT_TIMEOUT)
    if not isinstance(allow, list | tuple) or not all(isinstance(host, str) and host for host in allow):
        raise Misconfigured('tools.http.allow is a list of hosts, such as ["api.example.com", "example.com:8443"].')
    if not isinstance(private, bool):
        raise Misconfigured("tools.http.allow_private is true or false.")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= MAX_TIMEOUT:
        raise Misconfigured(f"tools.http.seconds is a number above 0, at most {MAX_TIMEOUT:g}.")
    if "allow" in context.settings and not allow:
        raise Misconfigured("tools.http.allow is empty. List the hosts, or leave it out to allow all public ones.")
    hosts = frozenset(host.lower().removesuffix(".") for host in allow)
    return _HttpFetcher(EgressPolicy(hosts, private), float(seconds), context.transport)


def _headers(args: Args) -> Headers:
    """Return the headers in lower case. Raises ToolFailed for those that a caller must not set."""
    given = cast(Mapping[str, str], args.get("headers") or {})
    if odd := [name for name in given if name.lower() in _KEYS and name not in SECRET_SPELLINGS]:
        raise ToolFailed(f'The header "{odd[0]}" is spelled so that its value would be shown. Write {odd[0].title()}.')
    headers = {name.lower(): value for name, value in given.items()}
    for name, value in headers.items():
        if (
            name in FORBIDDEN_HEADERS
            or name.startswith(("proxy-", "sec-", "x-forwarded-"))
            or not set(name) <= TOKEN
            or not name
        ):
            raise ToolFailed(f'The header "{name[:100]}" cannot be set. Leave it out.')
        if not value.isascii() or not value.isprintable() or len(value) > MAX_HEADER:
            raise ToolFailed(f'The header "{name}" is at most {MAX_HEADER:,} printable ASCII characters.')
    return headers


def _content(body: object, headers: Headers) -> tuple[bytes, str]:
    """Return the body and its content type."""
    match body:
        case str():
            return body.encode(), headers.get("content-type", "text/plain; charset=utf-8")
        case _:
            return json.dumps(body, ensure_ascii=False).encode(), headers.get("content-type", "application/json")


def _redirect_headers(headers: Headers, source: Endpoint, target: Endpoint) -> Headers:
    """Return the headers for the next URL. Raises InvalidRequest for a redirect from https to http."""
    if source.scheme == "https" and target.scheme == "http":
        raise InvalidRequest(f"The server redirects from https:// to http://{target.host}, which is not followed.")
    return (
        headers if source == target else {name: value for name, value in headers.items() if name in CROSS_HOST_HEADERS}
    )


def _redirect_url(url: str, response: httpx2.Response) -> str | None:
    location = response.headers.get("location")
    return urljoin(url, location).partition("#")[0] if location and response.status_code in REDIRECTS else None


async def _response_json(response: httpx2.Response) -> ResponseJson:
    kind = response.headers.get("content-type", "")
    data, whole = await _read_bounded(response)
    told: ResponseJson = {
        "status": response.status_code,
        "headers": {name: response.headers[name][:1_000] for name in SHOWN_HEADERS if name in response.headers},
    }
    if not _is_text(kind) or response.headers.get("content-encoding", "identity") != "identity":
        return {**told, "body": "", "cut": f"The body is not text ({kind or 'of no type'}), so it is left out."}
    body = data.decode(_charset(response), "replace").replace("\0", "\ufffd")
    if whole and len(body) <= MAX_SHOWN:
        return {**told, "body": body}
    return {**told, "body": body[:MAX_SHOWN], "cut": f"These are the first {MAX_SHOWN:,} characters; there are more."}


async def _read_bounded(response: httpx2.Response) -> tuple[bytes, bool]:
    """Read the raw body: unrequested compression could be a bomb. False if there is more than the limit."""
    data = bytearray()
    async with aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            data += piece
            if len(data) > MAX_RESPONSE:
                return bytes(data[:MAX_RESPONSE]), False
    return bytes(data), True


def _is_text(kind: str) -> bool:
    bare = kind.partition(";")[0].strip().lower()
    return not bare or bare.startswith(TEXTUAL) or bare.endswith(("+json", "+xml"))


def _charset(response: httpx2.Response) -> str:
    """Return one of a few charsets: some of Python's codecs are very slow."""
    named = (response.charset_encoding or "utf-8").lower()
    return named if named in CHARSETS else "utf-8"


def _failure_reason(error: BaseException) -> str:
    """Return the innermost cause that people can act on."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({inner.verify_message})"
        inner = inner.__cause__ or inner.__context__
    return "it does not answer there, or not safely"

"""HTTP transport to a server: retries with exponential backoff and a timeout, TLS checks, and error mapping."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from interlock.core.canonical import MAX_BYTES, canonical
from interlock.core.errors import ClockBehind, Misconfigured, StoreUnavailable, Unauthenticated
from interlock.sdk.codec import ResponseBody, parse_answer, parse_error, shown

if TYPE_CHECKING:
    import httpx2
import ipaddress
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

RETRY_TIMEOUT = 60.0  # seconds without a response after which a server counts as unavailable
FIRST_RESPONSE_TIMEOUT = 5.0  # the same before the first response: a wrong address should fail soon
MAX_BACKOFF = 2.0  # seconds; short, so that programs continue soon after a restart of the server
RESPONSE_TIMEOUT = 30.0  # seconds until a response begins
STREAM_TIMEOUT = 60.0  # seconds without a heartbeat after which an event stream counts as broken
FOREVER = float("inf")
NOTHING_RAN = "Nothing was run."
IN_PROGRESS = "in_progress"  # an earlier request with the same idempotency key is still being processed
EVENT_STREAM = "text/event-stream"
MAX_LINE_BYTES = 16 * 1024 * 1024  # of an event stream; an event is shorter
UNAVAILABLE_STATUSES = frozenset({502, 503, 504})  # from the server, or from a proxy that cannot reach it


T = TypeVar("T")
QueryParams = Mapping[str, str | Sequence[str]]


class Transport:
    def __init__(self, address: ServerAddress, retry_timeout: float = RETRY_TIMEOUT) -> None:
        self.address = address
        self._retry_timeout = retry_timeout
        self._has_responded = False
        self._http: httpx2.AsyncClient | None = None

    async def get(self, path: str, params: QueryParams | None = None, **how: Any) -> ResponseBody:
        return await self._request_with_retry("GET", path, params=params, **how)

    async def post(
        self, path: str, body: Mapping[str, object], *, max_bytes: int = MAX_BYTES, **how: Any
    ) -> ResponseBody:
        return await self._request_with_retry("POST", path, content=canonical(body, max_bytes), **how)

    def parse(self, parse: Callable[[ResponseBody], T], body: ResponseBody, note: str = "") -> T:
        """Parse an answer of this server; raises Misconfigured if it is not understood. `note` ends the error."""
        return parse_answer(parse, body, self.address.url, note)

    @asynccontextmanager
    async def stream_lines(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[AsyncIterator[str]]:
        """The lines of an event stream; raises StoreUnavailable if it does not begin or breaks off. Never retries.

        Raises Misconfigured if the answer is no event stream, such as the page of a proxy.
        """
        http, errors = self._http_client(), import_httpx()
        limits = errors.Timeout(RESPONSE_TIMEOUT, connect=FIRST_RESPONSE_TIMEOUT, read=STREAM_TIMEOUT)
        wanted = {"accept": EVENT_STREAM, **headers}
        try:
            async with http.stream("GET", path, headers=wanted, timeout=limits) as response:
                if response.status_code != 200:
                    await response.aread()
                    self._parse_response(response)
                if response.headers.get("content-type", "").partition(";")[0].strip().lower() != EVENT_STREAM:
                    raise self._not_interlock_error(response)
                yield _split_lines(response.aiter_bytes())
        except (errors.TransportError, errors.DecodingError) as error:
            trouble = self._to_transport_error(error)
            raise (StoreUnavailable(str(trouble)) if isinstance(trouble, _NoResponse) else trouble) from error
        except _NoResponse as error:
            raise StoreUnavailable(str(error)) from error

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def _request_with_retry(
        self,
        method: str,
        path: str,
        *,
        retry_timeout: float | None = None,
        failure_note: str = NOTHING_RAN,
        **what: Any,
    ) -> ResponseBody:
        """Retry until there is a response or the time is over; `failure_note` ends the error."""
        now = asyncio.get_running_loop().time
        began, attempt = now(), 0
        while True:
            try:
                return await self._send_once(method, path, **what)
            except _NoResponse as error:
                trouble = error
            attempt += 1
            pause = max(trouble.pause, _backoff_seconds(attempt))
            if now() + pause - began > self._effective_retry_timeout(retry_timeout):
                raise self._unavailable_error(trouble, now() - began, failure_note) from trouble.__cause__
            await asyncio.sleep(pause)

    def _effective_retry_timeout(self, retry_timeout: float | None) -> float:
        seconds = self._retry_timeout if retry_timeout is None else retry_timeout
        return seconds if self._has_responded else min(seconds, FIRST_RESPONSE_TIMEOUT)

    async def _send_once(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        read_timeout: float = RESPONSE_TIMEOUT,
        **what: Any,
    ) -> ResponseBody:
        http, errors = self._http_client(), import_httpx()
        limits = errors.Timeout(RESPONSE_TIMEOUT, connect=FIRST_RESPONSE_TIMEOUT, read=read_timeout, pool=None)
        try:
            response = await http.request(method, path, headers=headers, timeout=limits, **what)
        except (errors.TransportError, errors.DecodingError) as error:
            raise self._to_transport_error(error) from error
        return self._parse_response(response)

    def _parse_response(self, response: httpx2.Response) -> ResponseBody:
        status, body = response.status_code, _object(response)
        if body is not None and status == 200:
            self._has_responded = True
            return body
        ours = body is not None and isinstance(body.get("error"), str) and isinstance(body.get("message"), str)
        if not ours and status not in UNAVAILABLE_STATUSES:
            raise self._not_interlock_error(response)
        error = (
            self.parse(partial(parse_error, status), body)
            if ours and body is not None
            else StoreUnavailable(f"HTTP {status}.")
        )
        self._has_responded = self._has_responded or ours
        match error:
            case ClockBehind():
                raise error
            case _ if status in UNAVAILABLE_STATUSES or status == 429 or (body or {}).get("error") == IN_PROGRESS:
                raise _NoResponse(error.message, _seconds(response.headers.get("retry-after", ""))) from error
            case Unauthenticated():
                raise Unauthenticated(
                    f"{self.address.url} does not accept this key: {error.message} {HOW_TO_GET_A_KEY}"
                )
            case _:
                raise error

    def _to_transport_error(self, error: Exception) -> Exception:
        """Misconfigured for TLS errors, which a retry would not change; a retryable error for all others."""
        unsafe = _find_cause(error, ssl.SSLError)
        if unsafe is None:
            return _NoResponse(f"{type(error).__name__}: {error}".rstrip(": "))
        if isinstance(unsafe, ssl.SSLCertVerificationError):
            what = f"its certificate is not trusted ({unsafe.verify_message})"
            help_ = "If your own certificate authority signed it, set its file as SSL_CERT_FILE."
        else:
            what, help_ = (
                f"it does not speak TLS as it should ({unsafe.reason})",
                "Check that it uses https:// on this port.",
            )
        return Misconfigured(f"{self.address.url} cannot be reached safely: {what}. {help_} {NOTHING_RAN}")

    def _not_interlock_error(self, response: httpx2.Response) -> Misconfigured:
        """The error for a foreign response. Redirects are never followed: the key is for this address only."""
        url, status = self.address.url, response.status_code
        if response.has_redirect_location:
            return Misconfigured(
                f"{url} redirects to {response.headers['location'][:200]!r}. Use Interlock's own address."
            )
        kind = shown(response.headers.get("content-type", "nothing").partition(";")[0])
        return Misconfigured(
            f"{url} is not an Interlock server (HTTP {status}, {kind}). Check the address and the port; "
            "a path belongs to it only if Interlock is served below that path."
        )

    def _unavailable_error(self, trouble: _NoResponse, seconds: float, failure_note: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"No answer from {self.address.url} for {seconds:.0f} s ({trouble}). Check the address, and that "
            f"the server runs (interlock serve). {failure_note}"
        )

    def _http_client(self) -> httpx2.AsyncClient:
        """The HTTP client, bound to the loop that first uses it.

        The environment's proxies apply, except to loopback.
        """
        if self._http is None:
            library = import_httpx()
            self._http = library.AsyncClient(
                base_url=self.address.url,
                headers={
                    "authorization": f"Bearer {self.address.key}",
                    "content-type": "application/json",
                    "accept": "application/json",
                    "accept-encoding": "identity",
                },
                limits=library.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=60.0),
                trust_env=not self.address.is_local,
            )
        return self._http


class _NoResponse(Exception):
    """A failed attempt that may be retried; `pause` is the server's Retry-After in seconds."""

    def __init__(self, words: str, pause: float = 0.0) -> None:
        super().__init__(words)
        self.pause = pause


async def _split_lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Split at newlines alone: an event may contain U+2028 and other characters at which Python splits text."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode(errors="replace")
        if len(rest) > MAX_LINE_BYTES:
            raise _NoResponse(f"A line of its event stream has more than {MAX_LINE_BYTES} bytes")


def _backoff_seconds(attempt: int) -> float:
    """Exponential backoff with jitter, since many programs reconnect after a restart of the server."""
    longest = min(MAX_BACKOFF, 0.05 * 2 ** min(attempt, 10))
    return random.uniform(longest / 2, longest)  # noqa: S311  not used for security


def _seconds(text: str) -> float:
    return float(text[:9]) if text.isascii() and text.isdigit() else 0.0


def _object(response: httpx2.Response) -> dict[str, Any] | None:
    try:
        value = response.json()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _find_cause(error: BaseException | None, kind: type[ssl.SSLError]) -> ssl.SSLError | None:
    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, kind):
            return error
        error, seen = error.__cause__ or error.__context__, seen + 1
    return None


def import_httpx() -> Any:
    """The HTTP library, which only programs need that reach a server."""
    try:
        import httpx2
    except ImportError:
        raise Misconfigured(
            "A server is reached with httpx2. Install it: pip install 'interlock-gate[client]'"
        ) from None
    return httpx2


DEFAULT_PORTS = {"http": 80, "https": 443}
HOW_TO_ALLOW_HTTP = "give insecure=True (--insecure)"
HOW_TO_GET_A_KEY = "Create one on the server: interlock keys create --name NAME --role agent --agent NAME"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    url: str
    key: str = field(repr=False)
    is_local: bool


def parse_server_address(
    url: str,
    key: str | None,
    *,
    insecure: bool = False,
    to_allow_http: str = HOW_TO_ALLOW_HTTP,
    to_get_key: str = HOW_TO_GET_A_KEY,
) -> ServerAddress:
    """Validate address and key. `insecure` allows http:// to another machine, exposing the key and the arguments.

    `to_allow_http` and `to_get_key` are the advice of the errors.
    """
    parts = _split(url)
    if parts is None or not parts.hostname or parts.query or parts.fragment:
        raise Misconfigured(
            f"{_without_password(url)!r} is not the address of a server. Write it like https://interlock.example."
        )
    if "@" in parts.netloc:
        raise Misconfigured(
            f"Leave the name and the password out of the address {_without_password(url)!r}. Pass the key as key=…."
        )
    local = _is_loopback(parts.hostname)
    if parts.scheme == "http" and not local and not insecure:
        raise Misconfigured(
            f"{url} is not encrypted: the key and all arguments could be intercepted. Use https://, "
            f"or {to_allow_http} if the network is your own."
        )
    return ServerAddress(url.rstrip("/"), _check_key(key, url, to_get_key), local)


def spell_address(url: str) -> str:
    """The address as browsers spell an origin, so that one server has one spelling; others are left as they are."""
    parts = _split(url)
    if parts is None or not parts.hostname:
        return url.rstrip("/")
    host = parts.hostname if parts.hostname.isascii() else _idna(parts.hostname, url)
    place = f"[{host}]" if ":" in host else host
    place += "" if parts.port in (None, DEFAULT_PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{place}{parts.path}".rstrip("/")


def _idna(host: str, url: str) -> str:
    """The name as it is sent."""
    library = import_httpx()
    try:
        return str(library.URL(scheme="https", host=host).raw_host.decode())
    except library.InvalidURL:
        raise Misconfigured(
            f"{_without_password(url)!r} is not the address of a server: its name is invalid."
        ) from None


def _split(url: str) -> SplitResult | None:
    """The parts of an http address; None if it is none."""
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and url.isprintable() and parts.port != 0
    except ValueError:  # such as http://[, or port 99999
        return None
    return parts if is_http else None


def _check_key(key: str | None, url: str, to_get_key: str) -> str:
    if not key:
        raise Misconfigured(f"A server requires a key: Interlock({url!r}, key=…). {to_get_key}")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise Misconfigured(f"The given key is not valid: it contains spaces or other invalid characters. {to_get_key}")
    return key


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _without_password(url: str) -> str:
    """The address with a possible user name and password masked."""
    head, at, tail = url.partition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at else url

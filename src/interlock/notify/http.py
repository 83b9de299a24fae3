"""HTTP client for channels with SSRF protection: bounded, no redirects, public addresses unless settings allow others.

Errors hold no addresses, keys or responses: all of these may be secret.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cached_property
from urllib.parse import urlsplit

import httpx2

from interlock.core.errors import InvalidRequest, Misconfigured
from interlock.net.ssrf import DEFAULT_PORTS, EgressPolicy, HostNotFound, PinnedTransport, check_endpoint
from interlock.notify.channel import ChannelContext, ChannelGone, DeliveryDelayed, DeliveryRejected, DeliveryUnknown

REQUEST_TIMEOUT = 10.0
USER_AGENT = "interlock"
MAX_RESPONSE = 1024 * 1024  # bytes that are read
MAX_RETRY_AFTER = 3_600.0  # seconds, the upper limit of a Retry-After
RETRYABLE_STATUSES = frozenset({408, 425, 429})


class HttpPoster:
    """HTTP client of one channel; `service` is the service's name for people."""

    def __init__(self, context: ChannelContext, service: str, url: str) -> None:
        private = context.settings.get("allow_private", False)
        if not isinstance(private, bool):
            raise Misconfigured("allow_private must be true or false")
        self._egress = _egress(url, private=private)
        self._service = service
        self._transport = context.transport
        self._url = check_url(url, self._egress)

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        transport = self._transport or PinnedTransport(self._egress)
        return httpx2.AsyncClient(
            transport=transport, timeout=REQUEST_TIMEOUT, follow_redirects=False, headers={"user-agent": USER_AGENT}
        )

    async def post(
        self, content: bytes, headers: Mapping[str, str], url: str = "", accepted_statuses: frozenset[int] = frozenset()
    ) -> httpx2.Response:
        """Post and return a successful response, or one of `accepted_statuses`.

        Raises DeliveryDelayed, DeliveryRejected or ChannelGone for all others.
        """
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                answer = await self._request(url or self._url, content, headers)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            raise DeliveryDelayed(f"{self._service} cannot be reached.") from None
        except (TimeoutError, httpx2.TimeoutException):
            raise DeliveryUnknown(f"{self._service} did not respond within {REQUEST_TIMEOUT:g} seconds.") from None
        except InvalidRequest as error:
            if not isinstance(error, HostNotFound):
                raise DeliveryRejected(f"{self._service} is at an address that requests may not be sent to.") from None
            raise DeliveryDelayed(f"{self._service} cannot be found: its host name has no address.") from None
        except httpx2.TransportError:
            raise DeliveryUnknown(f"{self._service} closed the connection without a response.") from None
        return answer if answer.status_code in accepted_statuses else self._check_status(answer)

    async def close(self) -> None:
        if "_client" in self.__dict__:
            await self._client.aclose()

    async def _request(self, url: str, content: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        async with self._client.stream("POST", url, content=content, headers=dict(headers)) as answer:
            body = bytearray()
            async for piece in answer.aiter_raw():
                body += piece
                if len(body) > MAX_RESPONSE:
                    break
            return httpx2.Response(answer.status_code, headers=_plain(answer.headers), content=bytes(body))

    def _check_status(self, answer: httpx2.Response) -> httpx2.Response:
        status = answer.status_code
        if 200 <= status < 300:
            return answer
        if status == 410:
            raise ChannelGone(f"{self._service} reports that this address is gone (410).")
        if status in RETRYABLE_STATUSES or status >= 500:
            raise DeliveryDelayed(f"{self._service} responded with {status}.", parse_retry_after(answer.headers))
        if 300 <= status < 400:
            raise DeliveryRejected(f"{self._service} redirects ({status}), and redirects are not followed.")
        raise DeliveryRejected(f"{self._service} rejected the request ({status}).")


def _egress(url: str, *, private: bool) -> EgressPolicy:
    """Return the egress policy. A non-standard port in the settings' URL is allowed for that host alone."""
    try:
        parts = urlsplit(url)
        odd = parts.port not in (None, *DEFAULT_PORTS.values())
    except ValueError:
        odd = False  # not a URL: `check_url` reports it
    return EgressPolicy(frozenset({f"{parts.hostname}:{parts.port}"}) if odd else frozenset(), private)


def check_url(url: str, egress: EgressPolicy) -> str:
    """Raise Misconfigured for a URL that requests must not go to."""
    try:
        target = check_endpoint(url, egress)
    except InvalidRequest as error:
        raise Misconfigured(f"url: {error.message}") from None
    if target.scheme != "https" and not egress.private:
        raise Misconfigured("url must begin with https://, unless allow_private is true for your own network")
    return url


def parse_retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds of a Retry-After, given as a number or a date; 0 if it cannot be parsed."""
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdigit():
        return min(float(text[:8]), MAX_RETRY_AFTER)
    try:
        until, said = parsedate_to_datetime(text), parsedate_to_datetime(headers.get("date", ""))
        return min(max(0.0, (until - said).total_seconds()), MAX_RETRY_AFTER)
    except (ValueError, TypeError):  # no dates, or only one of them with a zone
        return 0.0


def _plain(headers: httpx2.Headers) -> dict[str, str]:
    """Drop the headers about the encoding, since the body was read raw."""
    return {name: value for name, value in headers.items() if name not in ("content-encoding", "content-length")}

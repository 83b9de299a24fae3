"""HTTP requests, responses, JSON bodies and error responses, without a framework: that keeps the ASGI routes fast."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]  # typeshed lacks it
from typing import Annotated, Any, NamedTuple, TypeVar, Unpack
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, FailFast, Strict, ValidationError

from interlock.core.canonical import MAX_BYTES, parse_json
from interlock.core.errors import (
    AlreadyDecided,
    Error,
    InvalidRequest,
    Misconfigured,
    StoreUnavailable,
    TooManyRequests,
    Unauthenticated,
)
from interlock.core.identity import Principal
from interlock.runtime.durations import rfc3339
from interlock.runtime.offload import offload

Scope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]
FindApproval = Callable[[object], Awaitable[str]]  # by the parsed body

JSON_TYPE = b"application/json"
MAX_IDEMPOTENCY_KEY = 200
MAX_QUERY_PARAMS = 100  # parameters
# Callers see neither where the database is nor its error: those are for operators.
STORE_UNAVAILABLE_MESSAGE = (
    "The database cannot be used now; nothing was run. Try again in a while. To find out why: interlock doctor"
)

SECURITY_HEADERS: tuple[Header, ...] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)

# Each header costs the server's protocol two look-ups, and a program that reads JSON needs no more than these.
MINIMAL_HEADERS = tuple(
    header for header in SECURITY_HEADERS if header[0] in (b"cache-control", b"x-content-type-options")
)


class RequestBody(BaseModel):
    """A request body: exactly these fields, of exactly these types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, serialize_by_alias=True)


def example(fields: Mapping[str, object], **config: Unpack[ConfigDict]) -> ConfigDict:
    """The `model_config` of a body with an example: as text, since FastAPI would sort its fields and drop its nulls."""
    return {**config, "json_schema_extra": {"example": json.dumps(fields)}}


ModelT = TypeVar("ModelT", bound=BaseModel)
T = TypeVar("T")
# JSON has only lists, which a strict tuple refuses; FailFast avoids one message for each item of a long list.
JsonList = Annotated[tuple[T, ...], Strict(strict=False), FailFast()]


class HttpResponse(NamedTuple):
    status: int
    body: bytes
    headers: tuple[Header, ...] = ()
    content_type: bytes = JSON_TYPE


class HttpRequest:
    """One request, fully read. Authentication sets `principal`; `path_params` are the parameters in its path.

    For a decision, `find_approval` finds the id of its approval, also if its body is invalid.
    """

    __slots__ = (
        *("_receive", "body", "find_approval", "headers", "is_cacheable", "method", "path", "path_params"),
        *("principal", "scope"),
    )

    def __init__(self, scope: Scope, headers: Mapping[bytes, bytes], body: bytes, receive: Receive) -> None:
        self.scope = scope
        self._receive = receive
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = headers
        self.body = body
        self.path_params: tuple[str, ...] = ()
        self.principal: Principal | None = None
        self.find_approval: FindApproval | None = None
        self.is_cacheable = True  # False if the route recorded nothing: a retry may then be executed again

    @property
    def current_principal(self) -> Principal:
        """The authenticated caller; raises Unauthenticated if there is none."""
        if self.principal is None:
            raise Unauthenticated("This needs a key or a session.")
        return self.principal

    @property
    def query(self) -> dict[str, str]:
        raw: bytes = self.scope.get("query_string", b"")
        try:
            pairs = parse_qsl(
                raw.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_QUERY_PARAMS, errors="strict"
            )
        except ValueError:
            raise InvalidRequest("The query is not readable: names and values are UTF-8, percent-encoded.") from None
        return dict(pairs)

    async def disconnected(self) -> None:
        """Return once the client has closed the connection."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def parse_body(self, model: type[ModelT], max_bytes: int = MAX_BYTES) -> ModelT:
        return validate_model(model, await self.parse_json(max_bytes))

    async def parse_json(self, max_bytes: int = MAX_BYTES) -> object:
        """Parse the body strictly; pages of other sites cannot send its content type without a CORS preflight."""
        if not is_json(self.headers):
            raise UnsupportedMediaType("The body has to be JSON: send Content-Type: application/json.")
        return await read_json(self.body, max_bytes)


def idempotency_key(request: HttpRequest) -> str:
    """The Idempotency-Key header; empty if there is none."""
    given = request.headers.get(b"idempotency-key")
    if given is None:
        return ""
    key = given.decode("latin-1")
    if not 1 <= len(key) <= MAX_IDEMPOTENCY_KEY or not key.isascii() or not key.isprintable():
        raise InvalidRequest(f"An Idempotency-Key has 1 to {MAX_IDEMPOTENCY_KEY} visible ASCII characters.")
    return key


def is_json(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == JSON_TYPE


async def read_json(body: bytes, max_bytes: int = MAX_BYTES) -> object:
    """Parse strictly; a large body off the event loop."""
    return await offload(len(body), lambda: parse_json(body, max_bytes))


def validate_model(model: type[ModelT], value: object) -> ModelT:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise to_invalid_request(error) from None


def to_invalid_request(error: ValidationError) -> InvalidRequest:
    return invalid_request(
        [(each["loc"], each["msg"]) for each in error.errors(include_url=False, include_input=False)]
    )


def invalid_request(found: list[tuple[tuple[int | str, ...], str]]) -> InvalidRequest:
    problems = [{"pointer": _json_pointer(place), "message": message} for place, message in found[:50]]
    first = problems[0]
    return InvalidRequest(f"{first['pointer'] or 'The body'}: {first['message']}.", problems=problems)


@contextmanager
def reject_misconfigured(pointer: str = "") -> Iterator[None]:
    """Turn a policy or condition in a request that does not load into InvalidRequest, one problem for each line."""
    try:
        yield
    except Misconfigured as error:
        problems = [{"pointer": pointer, "message": line} for line in error.message.splitlines()[:50]]
        raise InvalidRequest(error.message, problems=problems) from None


def json_response(value: object, status: int = 200, headers: tuple[Header, ...] = ()) -> HttpResponse:
    return HttpResponse(status, encode_json(value), headers)


def encode_json(value: object) -> bytes:
    return "".join(_encode(value, 0)).encode()


def _reject_unserializable(value: object) -> object:
    raise TypeError(f"A value of type {type(value).__name__} has no JSON form.")


# What json.dumps rebuilds at every call: no check for cycles, the given order, no blanks, not only ASCII.
_encode = c_make_encoder(None, _reject_unserializable, encode_basestring, None, ":", ",", False, False, True)


def error_response(error: Error) -> HttpResponse:
    match error:
        case Unauthenticated():
            return json_response(error.to_json(), 401, ((b"www-authenticate", b'Bearer realm="interlock"'),))
        case TooManyRequests():
            wait = str(error.ids.get("retry_after", 1)).encode()
            return json_response(error.to_json(), 429, ((b"retry-after", wait),))
        case BodyTooLarge() | RequestTimeout():  # the rest of the body is not read
            return json_response(error.to_json(), error.status, ((b"connection", b"close"),))
        case AlreadyDecided():
            return json_response(already_decided_json(error), error.status)
        case StoreUnavailable():
            return json_response({**error.to_json(), "message": STORE_UNAVAILABLE_MESSAGE}, error.status)
        case _:
            return json_response(error.to_json(), error.status)


def already_decided_json(error: AlreadyDecided) -> dict[str, object]:
    """Times are numbers inside the program, RFC 3339 text outside."""
    body = error.to_json()
    decision = body.get("decision")
    if isinstance(decision, dict):
        body["decision"] = {**decision, "at": rfc3339(decision["at"])}
    return body


async def send_response(send: Send, response: HttpResponse, extra_headers: tuple[Header, ...] = ()) -> None:
    headers = [
        (b"content-type", response.content_type),
        (b"content-length", b"%d" % len(response.body)),
        *response.headers,
        *extra_headers,
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


class UnsupportedMediaType(Error):
    code, status = "unsupported_media_type", 415


class BodyTooLarge(Error):
    code, status = "too_large", 413


class RequestTimeout(Error):
    code, status = "too_slow", 408


class MisdirectedRequest(Error):
    code, status = "wrong_host", 421


def _json_pointer(place: tuple[int | str, ...]) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in place)

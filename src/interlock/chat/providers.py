"""Models of any provider, by name: `provider:name`. Slow libraries are imported when the first model is opened."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from interlock.core.chat.transcript import Delta, ModelReply, Prompt
from interlock.core.errors import Misconfigured, did_you_mean

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

    from interlock.chat.provider_turn import ProviderModel
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)

from interlock.core.errors import ModelFailed

CONNECT_TIMEOUT = 10.0  # seconds
READ_TIMEOUT = 60.0  # seconds without a byte; the configuration's `timeout` overrides it
OPENAI_URL = "https://api.openai.com/v1"
COMMON_OPTIONS = ("key", "url", "timeout", "max_tokens")
JSON, HTML = "application/json", "text/html"
MAX_WHOLE_ANSWER = 2 * 1024 * 1024  # bytes of an answer that is not streamed
Options = Mapping[str, object]
MakeClient = Callable[[str, Options], object]  # of a provider's section and its options


class LazyModel:
    """Opens the model at its first turn and outside of the event loop, which the import would block for seconds."""

    def __init__(self, name: str, settings: Mapping[str, Options]) -> None:
        self.name = name
        self._settings = settings
        self._opened: ProviderModel | None = None

    async def turn(self, prompt: Prompt) -> AsyncGenerator[Delta | ModelReply]:
        async with aclosing((await self.open()).turn(prompt)) as items:
            async for item in items:
                yield item

    async def open(self) -> ProviderModel:
        """Open the model once. No connection is made yet."""
        if self._opened is None:
            self._opened = await asyncio.to_thread(open_model, self.name, self._settings)
        return self._opened


def open_model(name: str, settings: Mapping[str, Options]) -> ProviderModel:
    """Open a model. `settings` are the configuration's `models`, by provider. No connection is made yet."""
    kind, _, model = name.partition(":")
    if not kind or not model:
        raise Misconfigured(f'The model "{name}" needs its provider first, such as openai:NAME or anthropic:NAME.')
    section, options = _options(kind, settings)
    try:
        from interlock.chat.provider_turn import ProviderModel
    except ImportError:
        raise Misconfigured(f'The model "{name}" needs more packages: pip install "interlock-gate[chat]"') from None
    interface, api = _open_api(name, settings, _client)
    model_settings: dict[str, object] = {"max_retries": 0, "timeout": _timeout_seconds(section, options)}
    if "max_tokens" in options:
        model_settings["max_tokens"] = options["max_tokens"]
    if interface in ("openai", "openai-responses"):
        model_settings["openai_store"] = False  # the thread has all of it: the provider need not store anything
    kept = {key: value for key, value in model_settings.items() if key not in api.unsupported_settings}

    def open_recorded(body: bytes) -> Model[Any]:
        return _open_api(name, settings, partial(_recorded_client, body))[1]

    return ProviderModel(name, api, kept, open_recorded, str(options.get("key", "")))


def _open_api(name: str, settings: Mapping[str, Options], make_client: MakeClient) -> tuple[str, Model[Any]]:
    """Return the kind of the provider's interface, and the model behind it."""
    from pydantic_ai.models import infer_model

    kind, _, model = name.partition(":")
    interface, provider = _provider(kind, settings, make_client)
    return interface, infer_model(f"{interface}:{model}", lambda _: provider)


def _options(kind: str, settings: Mapping[str, Options]) -> tuple[str, Options]:
    """Return the provider's section: `openai-chat` and `openai-responses` are two interfaces of `openai`, and so on."""
    family = kind.rpartition("-")[0]
    section = family if kind not in settings and family in settings else kind
    return section, settings.get(section, {})


def _provider(kind: str, settings: Mapping[str, Options], make_client: MakeClient) -> tuple[str, Provider[Any]]:
    """Return the provider, and the kind of its interface."""
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.providers import infer_provider_class

    section, options = _options(kind, settings)
    if kind == "openai" and options.get("url", OPENAI_URL) != OPENAI_URL:
        return "openai-chat", _openai_compatible(
            section, options, make_client
        )  # OpenAI-compatible services have this interface
    try:
        maker = infer_provider_class(kind)
    except ValueError:
        if "url" in options:
            return "openai-chat", _openai_compatible(section, options, make_client)
        known = {*_known_providers(), *settings}
        raise Misconfigured(
            f'No provider of models is called "{kind}". For a service that speaks as OpenAI does, '
            f"set models.{kind}.url to its address{did_you_mean(kind, known)}"
        ) from None
    except ImportError as error:
        wanted = re.search(r"pip install \"?([\w\[\]-]+)", str(error))
        more = f": pip install '{wanted[1]}'" if wanted else ""
        raise Misconfigured(f"The provider {kind} needs a package that is not installed{more}") from None
    try:
        return kind, maker(**_arguments(maker, section, options, make_client))
    except UserError as error:
        variable = re.search(r"`([A-Z][A-Z0-9_]+)`", str(error))
        other = f", or {variable[1]} in the environment" if variable else ""
        missing = "url" if re.search("URL|ENDPOINT", str(variable and variable[1])) else "key"
        raise Misconfigured(f"The provider {kind} needs models.{section}.{missing}{other}.") from None


def _openai_compatible(section: str, options: Options, make_client: MakeClient) -> Provider[Any]:
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    _refuse_unknown(section, options, COMMON_OPTIONS)
    client: Any = make_client(section, options)
    return OpenAICompatibleProvider(
        section, base_url=str(options["url"]), api_key=_text(options, "key"), http_client=client
    )


def _arguments(
    maker: type[Provider[Any]], section: str, options: Options, make_client: MakeClient
) -> dict[str, object]:
    """Return the constructor's arguments; its own parameters, such as `api_version`, may be given by name."""
    takes = inspect.signature(maker.__init__).parameters
    _refuse_unknown(section, options, (*COMMON_OPTIONS, *takes))
    given = {name: value for name, value in options.items() if name not in COMMON_OPTIONS}
    if "http_client" in takes:
        given["http_client"] = make_client(section, options)
    address = "azure_endpoint" if "azure_endpoint" in takes else "base_url"
    for name, value in (("api_key", _text(options, "key")), (address, _text(options, "url"))):
        if name in takes and value:
            given[name] = value
    return given


def _client(section: str, options: Options) -> object:
    """Make a client without keep-alive: a stale connection would fail a turn, and none needs to be closed."""
    import httpx2
    from pydantic_ai.models import create_async_httpx2_client

    timeout = httpx2.Timeout(
        _timeout_seconds(section, options), connect=min(CONNECT_TIMEOUT, _timeout_seconds(section, options))
    )
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    client = create_async_httpx2_client(timeout=timeout, limits=limits)
    client.event_hooks = {"response": [_raise_if_not_streamed]}
    return client


class AnswerNotStreamed(Exception):
    """The provider sent a JSON body or a web page where a stream was requested.

    `body` is None if it was not read, since it is too long or a web page.
    """

    def __init__(self, content_type: str, body: bytes | None = None) -> None:
        super().__init__(f"The answer is no stream, but {content_type}.")
        self.content_type = content_type
        self.body = body


async def _raise_if_not_streamed(response: httpx2.Response) -> None:
    """Read a JSON body here: the providers' libraries look for events in it, and find none."""
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.status_code != 200 or content_type not in (JSON, HTML) or not _requests_stream(response.request):
        return
    if content_type == HTML:
        raise AnswerNotStreamed(HTML)
    pieces, size = [], 0
    async for piece in response.aiter_bytes():
        pieces.append(piece)
        size += len(piece)
        if size > MAX_WHOLE_ANSWER:
            raise AnswerNotStreamed(JSON)
    raise AnswerNotStreamed(JSON, b"".join(pieces))


def _requests_stream(request: httpx2.Request) -> bool:
    try:
        body = json.loads(request.content)
    except (ValueError, RuntimeError):  # no JSON, or a body that is sent in pieces
        return False
    return isinstance(body, dict) and body.get("stream") is True


def _recorded_client(body: bytes, *_: object) -> object:
    """Make a client that connects to nothing, and gives this answer to its request."""
    import httpx2
    from pydantic_ai.models import create_async_httpx2_client

    content_type = JSON if is_whole_answer(body) else "text/event-stream"
    answer = httpx2.Response(200, content=body, headers={"content-type": content_type})
    return create_async_httpx2_client(transport=httpx2.MockTransport(lambda _: answer))


def is_whole_answer(body: bytes) -> bool:
    """Return whether a body that is called JSON is an object; some proxies call a stream of events JSON as well."""
    return body.lstrip().startswith(b"{")


def _timeout_seconds(section: str, options: Options) -> float:
    match options.get("timeout", READ_TIMEOUT):
        case bool():
            pass
        case int() | float() as seconds if seconds > 0:
            return float(seconds)
    raise Misconfigured(f"models.{section}.timeout is a number of seconds, such as {READ_TIMEOUT:.0f}.")


def _text(options: Options, key: str) -> str | None:
    value = options.get(key)
    return str(value) if value else None


def _refuse_unknown(section: str, options: Options, known: tuple[str, ...]) -> None:
    for key in options:
        if key not in known:
            raise Misconfigured(f'models.{section} has an unknown key "{key}"{did_you_mean(key, known)}')


def _known_providers() -> set[str]:
    from pydantic_ai.models import KnownModelName

    names: tuple[str, ...] = get_args(KnownModelName.__value__)
    return {name.partition(":")[0] for name in names} | {"ollama", "openai-chat", "openai-responses"}


MAX_PROVIDER_TEXT = 300
RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})  # temporary failures, independent of the request
# The first match counts, so narrower types come first.
_FINAL: tuple[tuple[type[Exception], str], ...] = (
    (
        ModelContextWindowExceededError,
        "This conversation is too long for {model}. Begin a new thread, or choose a model that takes more.",
    ),
    (ModelAuthenticationError, "{model} refused the key. Check models.{provider}.key, and what the key may use."),
    (ModelNotFoundError, "{model} was not found. Check the name of the model and models.{provider}.url."),
    (ModelQuotaExceededError, "The account for {model} has no credit left. Add some, or choose another model."),
    (ContentFilterError, "{model} refused to answer this. Put it in other words, or choose another model."),
    (
        ModelRequestRejectedError,
        "{model} did not accept the request{said}. Choose another model, or begin a new thread.",
    ),
    (UserError, "{model} cannot be used like this{said}. Check models.{provider} in the configuration."),
)
_RETRYABLE: tuple[tuple[type[Exception], str], ...] = (
    (ModelRateLimitError, "{model} takes no more requests at the moment. Try again in a while."),
    (ModelUnavailableError, "{model} is overloaded or away at the moment. Try again in a while."),
    (ModelServerError, "{model} had an error of its own. Try again in a while."),
    (ModelTimeoutError, "{model} did not answer in time. Try again in a while, or raise models.{provider}.timeout."),
    (ModelConnectionError, "The connection to {model} failed. Check the network and models.{provider}.url."),
)


def to_model_failure(error: Exception, model: str, secret: str) -> ModelFailed:
    words = {"model": model, "provider": model.partition(":")[0], "said": _provider_text(error, secret)}
    for kind, text in _FINAL:
        if isinstance(error, kind):
            return ModelFailed(text.format(**words), is_retryable=False)
    wait = getattr(error, "retry_after", None)
    ids = {"retry_after": wait} if wait else {}
    for kind, text in _RETRYABLE:
        if isinstance(error, kind):
            return ModelFailed(text.format(**words), is_retryable=True, **ids)
    if isinstance(error, ModelHTTPError) and error.status_code < 500 and error.status_code not in RETRYABLE_STATUSES:
        return ModelFailed("{model} did not accept the request{said}.".format(**words), is_retryable=False)
    return ModelFailed(
        "The answer of {model} could not be read{said}. It can be tried again.".format(**words),
        is_retryable=True,
        **ids,
    )


def _provider_text(error: Exception, secret: str) -> str:
    """Return the provider's message, without our key."""
    body = error.body if isinstance(error, ModelAPIError) else str(error)
    match body:
        case {"error": {"message": str(text)}} | {"message": str(text)}:
            pass
        case str(text):
            pass
        case _:
            return ""
    plain = " ".join(text.replace(secret, "***").split() if secret else text.split())
    return f": {plain[:MAX_PROVIDER_TEXT].rstrip('.')}" if plain else ""

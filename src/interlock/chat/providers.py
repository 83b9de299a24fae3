"""Models of any provider, by name: `provider:name`. What is slow to load is loaded when the first model is opened."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, get_args

from interlock.config.yaml import nearest
from interlock.core.errors import Misconfigured
from interlock.core.prompt import Delta, Prompt, Replied

if TYPE_CHECKING:
    from pydantic_ai.providers import Provider

    from interlock.chat.provider_turn import ProvidedModel

CONNECT = 10.0  # seconds
SILENCE = 60.0  # seconds without a byte; the configuration's `timeout` sets another
OPENAI = "https://api.openai.com/v1"
OWN = ("key", "url", "timeout", "max_tokens")
Options = Mapping[str, object]


class LaterModel:
    """Opened at its first turn and beside the event loop, which a provider's library would hold up for seconds."""

    def __init__(self, name: str, settings: Mapping[str, Options]) -> None:
        self.name = name
        self._settings = settings
        self._opened: ProvidedModel | None = None

    async def turn(self, prompt: Prompt) -> AsyncGenerator[Delta | Replied]:
        if self._opened is None:
            self._opened = await asyncio.to_thread(open_model, self.name, self._settings)
        async with aclosing(self._opened.turn(prompt)) as items:
            async for item in items:
                yield item


def open_model(name: str, settings: Mapping[str, Options]) -> ProvidedModel:
    """`settings` are the configuration's `models`: what each provider is to know. Nothing is reached yet."""
    kind, _, model = name.partition(":")
    if not kind or not model:
        raise Misconfigured(f'The model "{name}" needs its provider first, such as openai:NAME or anthropic:NAME.')
    section, options = _options(kind, settings)
    try:
        from pydantic_ai.models import infer_model

        from interlock.chat.provider_turn import ProvidedModel
    except ImportError:
        raise Misconfigured(f'The model "{name}" needs more packages: pip install "interlock-gate[chat]"') from None
    kind, provider = _provider(kind, section, options, settings)
    api = infer_model(f"{kind}:{model}", lambda _: provider)
    wanted: dict[str, object] = {"max_retries": 0, "timeout": _seconds(section, options)}
    if "max_tokens" in options:
        wanted["max_tokens"] = options["max_tokens"]
    if kind in ("openai", "openai-responses"):
        wanted["openai_store"] = False  # the log has all of it: nothing needs to be kept at the provider's
    kept = {key: value for key, value in wanted.items() if key not in api.unsupported_settings}
    return ProvidedModel(name, api, kept, str(options.get("key", "")))


def _options(kind: str, settings: Mapping[str, Options]) -> tuple[str, Options]:
    """`openai-chat` and `openai-responses` are two ways to speak with the one provider `openai`, and so on."""
    family = kind.rpartition("-")[0]
    section = family if kind not in settings and family in settings else kind
    return section, settings.get(section, {})


def _provider(kind: str, section: str, options: Options, settings: Mapping[str, Options]) -> tuple[str, Provider[Any]]:
    """The provider, and the kind of interface that is spoken with it."""
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.providers import infer_provider_class

    if kind == "openai" and options.get("url", OPENAI) != OPENAI:
        return "openai-chat", _compatible(section, options)  # what others offer as OpenAI's is this interface
    try:
        maker = infer_provider_class(kind)
    except ValueError:
        if "url" in options:
            return "openai-chat", _compatible(section, options)
        known = {*_known(), *settings}
        raise Misconfigured(
            f'No provider of models is called "{kind}". For a service that speaks as OpenAI does, '
            f"set models.{kind}.url to its address{nearest(kind, known)}"
        ) from None
    except ImportError as error:
        wanted = re.search(r"pip install \"?([\w\[\]-]+)", str(error))
        more = f": pip install '{wanted[1]}'" if wanted else ""
        raise Misconfigured(f"The provider {kind} needs a package that is not installed{more}") from None
    try:
        return kind, maker(**_arguments(maker, section, options))
    except UserError as error:
        variable = re.search(r"`([A-Z][A-Z0-9_]+)`", str(error))
        other = f", or {variable[1]} in the environment" if variable else ""
        missing = "url" if re.search("URL|ENDPOINT", str(variable and variable[1])) else "key"
        raise Misconfigured(f"The provider {kind} needs models.{section}.{missing}{other}.") from None


def _compatible(section: str, options: Options) -> Provider[Any]:
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    _refuse_unknown(section, options, OWN)
    client = _client(section, options)
    return OpenAICompatibleProvider(
        section, base_url=str(options["url"]), api_key=_text(options, "key"), http_client=client
    )


def _arguments(maker: type[Provider[Any]], section: str, options: Options) -> dict[str, object]:
    """What the provider's own constructor takes may be given under its own name, such as `api_version`."""
    takes = inspect.signature(maker.__init__).parameters
    _refuse_unknown(section, options, (*OWN, *takes))
    given = {name: value for name, value in options.items() if name not in OWN}
    if "http_client" in takes:
        given["http_client"] = _client(section, options)
    address = "azure_endpoint" if "azure_endpoint" in takes else "base_url"
    for name, value in (("api_key", _text(options, "key")), (address, _text(options, "url"))):
        if name in takes and value:
            given[name] = value
    return given


def _client(section: str, options: Options) -> object:
    """Keeps no connection between turns: one that had gone stale would cost a turn, and nobody has to close it."""
    import httpx2
    from pydantic_ai.models import create_async_httpx2_client

    timeout = httpx2.Timeout(_seconds(section, options), connect=min(CONNECT, _seconds(section, options)))
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    return create_async_httpx2_client(timeout=timeout, limits=limits)


def _seconds(section: str, options: Options) -> float:
    match options.get("timeout", SILENCE):
        case bool():
            pass
        case int() | float() as seconds if seconds > 0:
            return float(seconds)
    raise Misconfigured(f"models.{section}.timeout is a number of seconds, such as {SILENCE:.0f}.")


def _text(options: Options, key: str) -> str | None:
    value = options.get(key)
    return str(value) if value else None


def _refuse_unknown(section: str, options: Options, known: tuple[str, ...]) -> None:
    for key in options:
        if key not in known:
            raise Misconfigured(f'models.{section} has an unknown key "{key}"{nearest(key, known)}')


def _known() -> set[str]:
    from pydantic_ai.models import KnownModelName

    names: tuple[str, ...] = get_args(KnownModelName.__value__)
    return {name.partition(":")[0] for name in names} | {"ollama", "openai-chat", "openai-responses"}

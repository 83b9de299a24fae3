"""What every channel is: a file named after its kind with `SETTINGS`, `CAPABILITIES` and `connect`.

`send` tells something for the first time and gives a reference; `update` has that reference and tells what changed, or
reminds. A channel that people can answer through also has `answer`; one that keeps a connection open has `listen`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast, runtime_checkable

from interlock.core.call import PRIORITIES
from interlock.core.decision import Decision, Reviewer
from interlock.core.errors import DeliveryFailed, Misconfigured
from interlock.core.notify.delivery import ApprovalView, Delivery, Notification, Recipient
from interlock.core.notify.routing import DASHBOARD, ChannelCapabilities
from interlock.notify import channels as folder

if TYPE_CHECKING:
    import httpx2

CHANNEL_KINDS = tuple(sorted(each.name for each in iter_modules(folder.__path__)))  # a file or a folder each
COMMON_SETTINGS = ("priorities", "per_minute")  # settings that every channel takes
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class DeliveryDelayed(DeliveryFailed):
    """It could not be said now: the other side is away, slow or asks for patience, for `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float = 0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DeliveryUnknown(DeliveryDelayed):
    """It may have been said, or not: the other side was reached, and gave no answer."""


class DeliveryRejected(DeliveryFailed):
    """This message will not be taken, however often it is sent."""


class ChannelGone(DeliveryFailed):
    """The other side wants nothing more from us: the channel is switched off."""


@dataclass(frozen=True)
class ChannelContext:
    """What a channel is given; `settings` are its own part of the configuration.

    `public_url` is where people find the page. `transport` stands in for the network in tests.
    """

    name: str
    settings: Mapping[str, object] = field(default_factory=dict)
    public_url: str = ""
    transport: httpx2.AsyncBaseTransport | None = None


class Channel(Protocol):
    async def send(self, message: Notification) -> str:
        """Gives what `update` needs. Sent again after a failure with the same id. Raises Later, Never or Gone."""

    async def update(self, message: Notification, ref: str) -> str:
        """The message has changed or ended, or is to be remembered; gives the reference that counts from now on."""

    async def close(self) -> None: ...


class InboundRequest(NamedTuple):
    """A request from the other side, as it came; header names are in small letters."""

    headers: Mapping[str, str]
    body: bytes


class InboundResponse(NamedTuple):
    status: int
    body: bytes = b""
    content_type: str = "application/json"


class InboundPort(Protocol):
    """Where a channel takes what people say. Who they are is proven here, and what they may is decided here.

    It is the channel's of one `workspace`: in any other one there is nobody and nothing for it.
    """

    @property
    def workspace(self) -> str: ...

    async def delivery(self, thread: str) -> Delivery:
        """The one that a message's `thread` names. Raises NotFound."""

    async def find_reviewer(self, workspace: str, external_id: str, email: str = "") -> Reviewer | None:
        """Who this is: bound to an account before, or by an address that the other side has proven; else None."""

    async def member(self, workspace: str, name: str) -> Reviewer | None:
        """An account by its name, for channels whose other side is one person by configuration."""

    async def get_approval_view(self, workspace: str, approval_id: str) -> ApprovalView:
        """The approval as it is now. Raises NotFound."""

    async def decide(self, workspace: str, approval_id: str, decision: Decision, reviewer: Reviewer) -> ApprovalView:
        """Raises what the person has to be told."""

    async def run_once(
        self, workspace: str, key: str, work: Callable[[], Awaitable[InboundResponse]], digest: str = ""
    ) -> InboundResponse:
        """Does the work once for each key; whoever comes again gets the first reply.

        Raises Conflict if the key was used with another digest.
        """

    async def make_identity_link(self, workspace: str, external_id: str) -> str:
        """Where somebody who is signed in says that this is them; for a quarter of an hour, and for them alone."""

    def now(self) -> int: ...


@runtime_checkable
class InboundChannel(Protocol):
    """A channel that people answer through."""

    async def answer(self, request: InboundRequest, inbound: InboundPort) -> InboundResponse:
        """Proves that the request is the other side's, and does what it says. Raises nothing."""


@runtime_checkable
class ListeningChannel(Protocol):
    """A channel that keeps a connection of its own to the other side."""

    async def listen(self, inbound: InboundPort, stop: asyncio.Event) -> None:
        """Until it is told to stop; connects again by itself."""


@runtime_checkable
class SelfDescribingChannel(Protocol):
    """A channel that is another one with other settings: it says itself what it is, in place of its module."""

    capabilities: ChannelCapabilities


@runtime_checkable
class SignInCodeChannel(Protocol):
    """A channel to an address that is one person's alone: a code that comes through it proves who enters it."""

    has_codes: bool

    async def send_code(self, to: Recipient, code: str, name: str, at: int) -> None:
        """`name` is new for every code. Raises Later or Never."""


class ChannelModule(Protocol):
    """The module of a channel."""

    SETTINGS: tuple[str, ...]
    CAPABILITIES: ChannelCapabilities

    def connect(self, context: ChannelContext) -> Channel:
        """Raises Misconfigured for settings that cannot be right; opens no connection yet."""


def load_channel_module(kind: str) -> ChannelModule:
    """The module of a kind. Raises Misconfigured with what to do."""
    if kind not in CHANNEL_KINDS:
        near = get_close_matches(kind, CHANNEL_KINDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(CHANNEL_KINDS)}"
        raise Misconfigured(f'there is no kind of channel "{kind}"; {hint}')
    try:
        return cast(ChannelModule, import_module(f"interlock.notify.channels.{kind}"))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("interlock") or find_spec(error.name) is not None:
            raise
        raise Misconfigured(
            f"the channel needs the package {error.name}: pip install 'interlock-gate[{kind}]'"
        ) from None


def open_channel(name: str, kind: str, context: ChannelContext) -> tuple[Channel, ChannelCapabilities]:
    """A channel of the configuration. Raises Misconfigured, which names the channel."""
    try:
        if name == DASHBOARD or not _NAME.fullmatch(name):
            raise Misconfigured("a name consists of small letters, digits, - and _, and dashboard is taken")
        module = load_channel_module(kind)
        known = {*module.SETTINGS, *COMMON_SETTINGS}
        for setting in context.settings:
            if setting not in known:
                near = get_close_matches(setting, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(known))}"
                raise Misconfigured(f'there is no setting "{setting}" for {kind}; {hint}')
        channel = module.connect(context)
        capabilities = channel.capabilities if isinstance(channel, SelfDescribingChannel) else module.CAPABILITIES
        return channel, override_capabilities(capabilities, context.settings)
    except Misconfigured as error:
        raise Misconfigured(f'The channel "{name}": {error.message}') from None


def override_capabilities(capabilities: ChannelCapabilities, settings: Mapping[str, object]) -> ChannelCapabilities:
    priorities = settings.get("priorities", sorted(capabilities.priorities))
    rate_per_minute = settings.get("per_minute", capabilities.rate_per_minute)
    if not isinstance(priorities, list | tuple) or not all(each in PRIORITIES for each in priorities):
        raise Misconfigured(f"priorities is a list of {', '.join(PRIORITIES)}")
    if not isinstance(rate_per_minute, int) or isinstance(rate_per_minute, bool) or not 1 <= rate_per_minute <= 1_000:
        raise Misconfigured("per_minute is a number from 1 to 1000: messages a minute for one person or place")
    return replace(capabilities, priorities=frozenset(priorities), rate_per_minute=rate_per_minute)


def text_setting(settings: Mapping[str, object], key: str, default: str | None = None) -> str:
    """A setting that is a text; without a default it has to be there."""
    value = settings.get(key, default)
    if not isinstance(value, str) or (default is None and not value):
        raise Misconfigured(f"{key} is missing" if value is None else f"{key} is not a text")
    return value

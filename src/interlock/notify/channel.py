"""The interface of a channel: a module named after its kind, with `SETTINGS`, `CAPABILITIES` and `connect`.

`send` sends a first message and returns a reference; `update` gets that reference and sends a change or a reminder. A
channel that takes decisions also has `answer` for inbound requests; one that keeps a connection open has `listen`.
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
from interlock.core.errors import DeliveryFailed, Error, Misconfigured
from interlock.core.notify.delivery import ApprovalView, Delivery, Notification, Recipient
from interlock.core.notify.routing import DASHBOARD, ChannelCapabilities
from interlock.notify import channels as folder

if TYPE_CHECKING:
    import httpx2

CHANNEL_KINDS = tuple(sorted(each.name for each in iter_modules(folder.__path__)))  # a module or a package each
COMMON_SETTINGS = ("priorities", "per_minute")  # settings of every channel
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class DeliveryDelayed(DeliveryFailed):
    """Delivery failed for now: the service is down, slow or rate limits us; retry after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float = 0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DeliveryUnknown(DeliveryDelayed):
    """Delivery outcome unknown: the service was reached, but did not answer."""


class DeliveryRejected(DeliveryFailed):
    """The service refuses this message; a retry is useless."""


class ChannelGone(DeliveryFailed):
    """The service wants no more messages: the channel is disabled."""


@dataclass(frozen=True)
class ChannelContext:
    """Context of a channel; `settings` are its own part of the configuration.

    `public_url` is the address of the dashboard. `transport` replaces the network in tests.
    """

    name: str
    settings: Mapping[str, object] = field(default_factory=dict)
    public_url: str = ""
    transport: httpx2.AsyncBaseTransport | None = None


class Channel(Protocol):
    async def send(self, message: Notification) -> str:
        """Send a message, and return the reference for `update`. A retry has the same message id.

        Raises DeliveryDelayed, DeliveryRejected or ChannelGone.
        """

    async def update(self, message: Notification, ref: str) -> str:
        """Send a change, the end or a reminder of a message; return the reference that is valid from then on."""

    async def close(self) -> None: ...


class InboundRequest(NamedTuple):
    """An inbound request as received; header names are in lower case."""

    headers: Mapping[str, str]
    body: bytes


class InboundResponse(NamedTuple):
    status: int
    body: bytes = b""
    content_type: str = "application/json"


class InboundPort(Protocol):
    """Takes the decisions that arrive through a channel; authenticates people and checks their rights.

    It belongs to the channel of one `workspace`: it finds nobody and nothing in any other one.
    """

    @property
    def workspace(self) -> str: ...

    async def delivery(self, thread: str) -> Delivery:
        """Return the delivery that a message's `thread` names. Raises NotFound."""

    async def find_reviewer(self, workspace: str, external_id: str, email: str = "") -> Reviewer | None:
        """Return the linked account, or the one with an e-mail address that the service has verified; else None."""

    async def member(self, workspace: str, name: str) -> Reviewer | None:
        """Return an account by name, for channels that act for one person by configuration."""

    async def get_approval_view(self, workspace: str, approval_id: str) -> ApprovalView:
        """Return the current approval. Raises NotFound."""

    async def decide(self, workspace: str, approval_id: str, decision: Decision, reviewer: Reviewer) -> ApprovalView:
        """Decide an approval. Raises an error whose message is for the person."""

    async def record_refusal(
        self, workspace: str, approval_id: str, reviewer: Reviewer, error: Error, attempted: Decision | None = None
    ) -> None:
        """Record an answer that the channel refuses before `decide`, which records its own refusals."""

    async def run_once(
        self, workspace: str, key: str, work: Callable[[], Awaitable[InboundResponse]], digest: str = ""
    ) -> InboundResponse:
        """Do the work once for each idempotency key; a retry gets the first response.

        Raises Conflict if the key was used with another digest.
        """

    async def make_identity_link(self, workspace: str, external_id: str) -> str:
        """Return a link with which a signed-in person links this external account; valid for 15 minutes."""

    def now(self) -> int: ...


@runtime_checkable
class InboundChannel(Protocol):
    """A channel that takes inbound requests."""

    async def answer(self, request: InboundRequest, inbound: InboundPort) -> InboundResponse:
        """Verify that a request comes from the service, and handle it. Never raises."""


@runtime_checkable
class ListeningChannel(Protocol):
    """A channel that keeps its own connection to the service."""

    async def listen(self, inbound: InboundPort, stop: asyncio.Event) -> None:
        """Listen until `stop` is set; reconnects by itself."""


@runtime_checkable
class SelfDescribingChannel(Protocol):
    """A channel whose capabilities depend on its settings: its own are used instead of its module's."""

    capabilities: ChannelCapabilities


@runtime_checkable
class SignInCodeChannel(Protocol):
    """A channel to an address that only one person reads: a sign-in code sent through it proves their identity."""

    has_codes: bool

    async def send_code(self, to: Recipient, code: str, name: str, at: int) -> None:
        """Send a sign-in code; `name` is new for every code. Raises DeliveryDelayed or DeliveryRejected."""


class ChannelModule(Protocol):
    """The module of a channel."""

    SETTINGS: tuple[str, ...]
    CAPABILITIES: ChannelCapabilities

    def connect(self, context: ChannelContext) -> Channel:
        """Make the channel, without opening a connection. Raises Misconfigured for invalid settings."""


def load_channel_module(kind: str) -> ChannelModule:
    """Import the module of a kind. Raises Misconfigured with a hint."""
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
    """Make a configured channel. Raises Misconfigured, which names the channel."""
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
    """Return a text setting, which is required if there is no default."""
    value = settings.get(key, default)
    if not isinstance(value, str) or (default is None and not value):
        raise Misconfigured(f"{key} is missing" if value is None else f"{key} is not a text")
    return value

"""The interface of a channel, and the loader of its kinds.

A kind of ours is a module named after it, with `SETTINGS`, `CAPABILITIES` and `connect`. A kind from outside is a class
with `settings` and `capabilities` that is made from a `ChannelContext`: the configuration names it by its import path,
or an installed package by an entry point of the group `interlock.channels`.

`send` sends a first message and returns a reference; `update` gets that reference and sends a change or a reminder. A
channel that takes decisions also has `answer` for inbound requests; one that keeps a connection open has `listen`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from interlock.core.call import PRIORITIES
from interlock.core.decision import Decision, Reviewer, read_decision_with_digest
from interlock.core.errors import (
    DeliveryFailed,
    Error,
    InvalidDecision,
    InvalidRequest,
    Misconfigured,
    StoreUnavailable,
    Unauthenticated,
    did_you_mean,
)
from interlock.core.notify.delivery import ApprovalView, Delivery, Notification, Recipient
from interlock.core.notify.routing import DASHBOARD, ChannelCapabilities
from interlock.notify import channels as folder
from interlock.runtime.durations import rfc3339
from interlock.runtime.import_path import (
    CHANNEL_ENTRY_POINTS,
    INSTALLED_CODE,
    CodeSource,
    entry_point_names,
    find_entry_point,
    import_object,
)

if TYPE_CHECKING:
    import httpx2

__all__ = [  # what a channel from outside may need, and what loads channels
    "CHANNEL_KINDS",
    "COMMON_SETTINGS",
    "ApprovalView",
    "Channel",
    "ChannelCapabilities",
    "ChannelContext",
    "ChannelGone",
    "ChannelType",
    "Decision",
    "Delivery",
    "DeliveryDelayed",
    "DeliveryFailed",
    "DeliveryRejected",
    "DeliveryUnknown",
    "Error",
    "InboundChannel",
    "InboundPort",
    "InboundRequest",
    "InboundResponse",
    "InvalidDecision",
    "InvalidRequest",
    "ListeningChannel",
    "Misconfigured",
    "Notification",
    "Recipient",
    "Reviewer",
    "SignInCodeChannel",
    "Unauthenticated",
    "error_response",
    "json_response",
    "load_channel_type",
    "open_channel",
    "read_decision_with_digest",
    "text_setting",
]
CHANNEL_KINDS = tuple(sorted(each.name for each in iter_modules(folder.__path__)))  # a module or a package each
COMMON_SETTINGS = ("priorities", "per_minute")  # settings of every channel
CLASS_ATTRIBUTES, CLASS_METHODS, OPTIONAL_METHODS = (
    ("settings", "capabilities"),
    ("send", "update", "close"),
    ("answer", "listen"),
)
UNAVAILABLE = "The database cannot be used now; nothing was decided. Try again in a while, with the same id."
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
    """A channel whose capabilities depend on its settings: its own are used instead of its kind's."""

    capabilities: ChannelCapabilities


@runtime_checkable
class SignInCodeChannel(Protocol):
    """A channel to an address that only one person reads: a sign-in code sent through it proves their identity."""

    has_codes: bool

    async def send_code(self, to: Recipient, code: str, name: str, at: int) -> None:
        """Send a sign-in code; `name` is new for every code. Raises DeliveryDelayed or DeliveryRejected."""


class ChannelType(NamedTuple):
    """A kind of channel: the names of its settings, its capabilities, and what makes a channel of a context.

    `connect` opens no connection. It raises Misconfigured for invalid settings.
    """

    settings: tuple[str, ...]
    capabilities: ChannelCapabilities
    connect: Callable[[ChannelContext], Channel]


def load_channel_type(kind: str, source: CodeSource = INSTALLED_CODE) -> ChannelType:
    """Load a kind: one of ours, a class by its import path, or the entry point of an installed package.

    Ours come first, so that no installed package can replace them. Raises Misconfigured with a hint.
    """
    if kind in CHANNEL_KINDS:
        return _own_type(kind)
    if ":" in kind:
        return _class_type(kind, import_object(kind, source))
    path = find_entry_point(CHANNEL_ENTRY_POINTS, kind)
    if path:
        return _class_type(kind, import_object(path, INSTALLED_CODE))
    kinds = {*CHANNEL_KINDS, *entry_point_names(CHANNEL_ENTRY_POINTS)}
    raise Misconfigured(f'unknown kind of channel "{kind}"{did_you_mean(kind, kinds)}')


def open_channel(
    name: str, kind: str, context: ChannelContext, source: CodeSource = INSTALLED_CODE
) -> tuple[Channel, ChannelCapabilities]:
    """Make a configured channel. Raises Misconfigured, which names the channel."""
    try:
        if name == DASHBOARD or not _NAME.fullmatch(name):
            raise Misconfigured("a channel name consists of lower-case letters, digits, - and _; dashboard is reserved")
        channel_type = load_channel_type(kind, source)
        known = {*channel_type.settings, *COMMON_SETTINGS}
        for setting in context.settings:
            if setting not in known:
                raise Misconfigured(f'there is no setting "{setting}" for {kind}{did_you_mean(setting, known)}')
        channel = channel_type.connect(context)
        own = channel.capabilities if isinstance(channel, SelfDescribingChannel) else channel_type.capabilities
        return channel, override_capabilities(own, context.settings)
    except Misconfigured as error:
        raise Misconfigured(f'The channel "{name}": {error.message}') from None


def override_capabilities(capabilities: ChannelCapabilities, settings: Mapping[str, object]) -> ChannelCapabilities:
    priorities = settings.get("priorities", sorted(capabilities.priorities))
    rate_per_minute = settings.get("per_minute", capabilities.rate_per_minute)
    if not isinstance(priorities, list | tuple) or not all(each in PRIORITIES for each in priorities):
        raise Misconfigured(f"priorities must be a list of {', '.join(PRIORITIES)}")
    if not isinstance(rate_per_minute, int) or isinstance(rate_per_minute, bool) or not 1 <= rate_per_minute <= 1_000:
        raise Misconfigured("per_minute must be a number from 1 to 1000: messages per minute for one recipient")
    return replace(capabilities, priorities=frozenset(priorities), rate_per_minute=rate_per_minute)


def text_setting(settings: Mapping[str, object], key: str, default: str | None = None) -> str:
    """Return a text setting, which is required if there is no default."""
    value = settings.get(key, default)
    if not isinstance(value, str) or (default is None and not value):
        raise Misconfigured(f"{key} is missing" if value is None else f"{key} must be text")
    return value


def json_response(value: object, status: int = 200) -> InboundResponse:
    return InboundResponse(status, json.dumps(value, separators=(",", ":")).encode())


def error_response(error: Error) -> InboundResponse:
    """The response to a request that was refused, as elsewhere in the HTTP API."""
    body = error.to_json()
    if isinstance(error, StoreUnavailable):  # the database's address and its errors are only for operators
        body["message"] = UNAVAILABLE
    decision = body.get("decision")
    if isinstance(decision, dict):  # times are numbers internally, and text in responses
        body["decision"] = {**decision, "at": rfc3339(decision["at"])}
    return json_response(body, error.status)


def _own_type(kind: str) -> ChannelType:
    try:
        module: Any = import_module(f"{folder.__name__}.{kind}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("interlock") or find_spec(error.name) is not None:
            raise
        raise Misconfigured(
            f"the channel needs the package {error.name}: pip install 'interlock-gate[{kind}]'"
        ) from None
    return ChannelType(module.SETTINGS, module.CAPABILITIES, module.connect)


def _class_type(kind: str, found: Any) -> ChannelType:
    """Check a class from outside, so that a mistake is found at the start and not with the first message."""
    if not isinstance(found, type):
        raise Misconfigured(f"{kind} is not a class")
    for name in (*CLASS_ATTRIBUTES, *CLASS_METHODS):
        if not hasattr(found, name):
            near = get_close_matches(name, vars(found), 1)
            raise Misconfigured(f"{kind} has no {name}" + (f"; it has {near[0]}" if near else ""))
    for name in (*CLASS_METHODS, *OPTIONAL_METHODS):
        if hasattr(found, name) and not inspect.iscoroutinefunction(getattr(found, name)):
            raise Misconfigured(f"{name} of {kind} is not an async function")
    attributes: Any = found
    if not isinstance(attributes.capabilities, ChannelCapabilities):
        raise Misconfigured(f"capabilities of {kind} is not a ChannelCapabilities")
    settings = _class_settings(kind, attributes.settings)
    return ChannelType(settings, attributes.capabilities, lambda context: _make(kind, attributes, context))


def _class_settings(kind: str, settings: object) -> tuple[str, ...]:
    if not isinstance(settings, tuple | list) or not all(isinstance(name, str) for name in settings):
        raise Misconfigured(f'settings of {kind} is a tuple of names, such as ("url", "token")')
    if taken := {*settings} & {*COMMON_SETTINGS, "kind"}:
        raise Misconfigured(f"{kind} cannot have a setting {_join(taken)}: every channel has it")
    return tuple(settings)


def _make(kind: str, channel_class: Callable[[ChannelContext], Channel], context: ChannelContext) -> Channel:
    try:
        return channel_class(context)
    except Misconfigured:
        raise
    except Exception as error:  # its text may hold a secret of the settings
        raise Misconfigured(f"{kind} raised {type(error).__name__} when it was made from its settings") from error


def _join(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
